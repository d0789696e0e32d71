/* Tiles: kernels and products one after another that go through memory together, some rows at a time
 * (fuse/fusion_tile.c has what is asked of each kernel by itself, plan_lines what a product can do). Two steps agree if
 * whatever one writes and the other reads or writes is either no common memory, or the same rows of one buffer: then a
 * tile of rows may go through all of them before the next tile begins. That depends on where values lie, so tiles are
 * found when all places are fixed; they save no places, since a device may run their steps one by one as well. */
#include "build.h"

enum { TILE_MAX_STEPS = 16, TILE_BATCHES = 4 };

BASE_VEC(tile_list, plan_tile);

/* Looking for tiles. */
typedef struct tile_run {
  const plan_program *p;
  const fusion_model *m;
  bool products;  /* those that have some */
  uint32_t limit; /* the step before which they end */
} tile_run;

/* 0: scratch memory, or a token. */
static int64_t tile_elements(const plan_buffer *b) {
  return b->type ? b->type->count : 0;
}

static bool tile_has_lines(const plan_step *s) {
  return s->kind == PLAN_ROUTINE && s->routine->lines.n;
}

/* Whether step i may be one of a tile. */
static bool tile_takes(const tile_run *x, uint32_t i) {
  const plan_step *s = &x->p->steps[i];
  return i < x->limit && (s->kind == PLAN_KERNEL || (x->products && tile_has_lines(s)));
}

/* Whether the step can go by so many rows: of a product, each is some of its lines. */
static bool tile_goes_by_rows(const plan_step *s, int64_t rows) {
  assert(rows > 0);
  return s->kind == PLAN_KERNEL ? fusion_goes_by_rows(s->kernel, rows) : s->routine->lines.n % rows == 0;
}

/* What a product reads is either whole or line by line; an operand may be both. */
static bool tile_product_reads_by_rows(const plan_step *s, uint32_t buffer, int64_t rows) {
  assert(s->n_in <= 64);
  for (uint32_t i = 0; i < s->n_in; i++)
    if (s->in[i] == buffer && !(s->routine->lines.own >> i & 1)) return false;
  return s->routine->lines.n % rows == 0;
}

bool plan_reads_by_rows(const plan_program *p, const plan_step *s, uint32_t buffer, int64_t rows) {
  const kernel *k = s->kernel;
  assert(s->kind == PLAN_KERNEL || tile_has_lines(s));
  if (s->kind == PLAN_ROUTINE) return tile_product_reads_by_rows(s, buffer, rows);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_LOAD || s->in[v->buffer] != buffer) continue;
    if (v->n_in || !fusion_reads_own_row(k, v->index, tile_elements(&p->buffers[buffer]), rows)) return false;
  }
  return true;
}

/* An argument may be donated, and then is the memory of a result or of what lies in its spare room. */
static bool tile_may_be_over(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (b->place != PLAN_ARGUMENT) return false;
  if (a->place == PLAN_RESULT) return p->over && p->over[a->number] == b->number;
  return a->place == PLAN_SPARE && p->spares[a->number] == b->number;
}

static bool tile_overlap(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (a->place != b->place) return tile_may_be_over(p, a, b) || tile_may_be_over(p, b, a);
  if (a->place == PLAN_FRAME || a->place == PLAN_SPARE) return plan_places_overlap(a, b);
  if (a->place == PLAN_TILE) return a == b;
  return a->number == b->number && a->place != PLAN_CONSTANT;
}

/* Of two that overlap. Spare room is entered at its beginning or not at all. */
static bool tile_same_memory(const plan_buffer *a, const plan_buffer *b) {
  if (a->bytes != b->bytes) return false;
  if (a->place == b->place) return (a->place != PLAN_FRAME && a->place != PLAN_SPARE) || a->offset == b->offset;
  const plan_buffer *spare = a->place == PLAN_SPARE ? a : b;
  return spare->place != PLAN_SPARE || spare->offset == 0;
}

/* A buffer that a step of the tile writes and one that `reader` (before or after it) reads: either no memory of theirs
 * is shared, or the same rows of it, each read within its own row. */
static bool tile_is_safe(const plan_program *p, uint32_t written, const plan_step *reader, uint32_t read,
                         int64_t rows) {
  const plan_buffer *a = &p->buffers[written], *b = &p->buffers[read];
  if (!tile_overlap(p, a, b)) return true;
  return tile_same_memory(a, b) && plan_reads_by_rows(p, reader, read, rows);
}

/* What `reader` reads and `writer` writes, of which one comes before the other or both are one step. */
static bool tile_agree(const plan_program *p, const plan_step *writer, const plan_step *reader, int64_t rows) {
  for (uint32_t i = 0; i < reader->n_in; i++)
    for (uint32_t j = 0; j < writer->n_out; j++)
      if (!tile_is_safe(p, writer->out[j], reader, reader->in[i], rows)) return false;
  return true;
}

/* Both ways, since a tile of the later step runs before the next tile of the earlier one; and what both write. */
static bool tile_steps_agree(const plan_program *p, const plan_step *a, const plan_step *b, int64_t rows) {
  if (!tile_agree(p, b, a, rows) || !tile_agree(p, a, b, rows)) return false;
  for (uint32_t i = 0; i < a->n_out; i++) {
    for (uint32_t j = 0; j < b->n_out; j++) {
      const plan_buffer *x = &p->buffers[a->out[i]], *y = &p->buffers[b->out[j]];
      if (tile_overlap(p, x, y) && !tile_same_memory(x, y)) return false;
    }
  }
  return true;
}

/* Why step `last` can't go with the steps from `first` on by so many rows; NULL where it can. Itself it may write over
 * what it reads. */
static const char *tile_disagreement(const plan_program *p, uint32_t first, uint32_t last, int64_t rows) {
  const plan_step *s = &p->steps[last];
  if (!tile_goes_by_rows(s, rows)) return "the next step does not go by those rows";
  if (!tile_agree(p, s, s, rows)) return "the next step reads other rows of the memory that it writes";
  for (uint32_t i = first; i < last; i++)
    if (!tile_steps_agree(p, &p->steps[i], s, rows)) return "the next step needs other rows than those of the tile";
  return NULL;
}

/* Bytes of what products read whole in a batch. */
static int64_t tile_whole(const plan_program *p, uint32_t first, uint32_t n) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < first + n; i++)
    if (p->steps[i].kind == PLAN_ROUTINE)
      bytes += p->steps[i].routine->lines.packed / p->steps[i].routine->lines.batches;
  return bytes;
}

/* How many ranges of rows there are whose parts of operands can be packed as each begins, so that they stay in the
 * second cache: all products have as many, each range is enough work for a thread, and they are enough for some
 * threads. 0: that is not so. */
static int64_t tile_batches(const tile_run *x, uint32_t first, uint32_t n, int64_t rows) {
  int64_t batches = 0;
  for (uint32_t i = first; i < first + n; i++) {
    if (x->p->steps[i].kind != PLAN_ROUTINE) continue;
    const plan_lines *l = &x->p->steps[i].routine->lines;
    if (batches && batches != l->batches) return 0;
    batches = l->batches;
  }
  bool fit = tile_whole(x->p, first, n) <= (int64_t)x->m->facts.cache_bytes[1] / 2;
  return fit && batches >= TILE_BATCHES && rows % batches == 0 ? batches : 0;
}

/* Tiles of a range are equally large, but for the last. */
static int64_t tile_even(int64_t range, int64_t at_a_time, int64_t at_once) {
  int64_t tiles = (range + at_a_time - 1) / at_a_time, each = (range + tiles - 1) / tiles;
  return (each + at_once - 1) / at_once * at_once;
}

/* Whether a step from `from` to `to` - 1 reads the buffer. */
static bool tile_is_read(const plan_program *p, uint32_t from, uint32_t to, uint32_t buffer) {
  for (uint32_t i = from; i < to; i++)
    for (uint32_t j = 0; j < p->steps[i].n_in; j++)
      if (p->steps[i].in[j] == buffer) return true;
  return false;
}

/* Whether step `last` has to do with the steps from `first` on: it reads what they write, or, if it is a kernel, what
 * they read. */
static bool tile_is_linked(const plan_program *p, uint32_t first, uint32_t last) {
  const plan_step *s = &p->steps[last];
  for (uint32_t j = 0; j < s->n_in; j++) {
    uint32_t written = p->buffers[s->in[j]].first;
    if (written != UINT32_MAX && written >= first && written < last) return true;
    if (s->kind == PLAN_KERNEL && tile_is_read(p, first, last, s->in[j])) return true;
  }
  return first == last;
}

/* Why the steps from `first` on end before step `last`; NULL where they don't. */
static const char *tile_objection(const tile_run *x, uint32_t first, uint32_t last, int64_t rows) {
  if (last == x->p->n_steps) return "it is the last step";
  const plan_step *s = &x->p->steps[last];
  if (last == x->limit) return "the next steps go by rows of a product";
  if (s->kind == PLAN_ROUTINE && s->routine->lines.why) return s->routine->lines.why;
  if (!tile_takes(x, last)) return "a step that is not a kernel follows";
  if (last - first == TILE_MAX_STEPS) return "it has steps enough";
  if (x->products && !tile_is_linked(x->p, first, last)) return "the next step has nothing to do with the product";
  return tile_disagreement(x->p, first, last, rows);
}

bool plan_tile_holds(const plan_program *p, const plan_tile *t) {
  for (uint32_t i = t->first; i < t->first + t->n; i++)
    if (tile_disagreement(p, t->first, i, t->rows)) return false;
  return true;
}

/* The rows of the first reduction. */
static int64_t tile_reduction_rows(const tile_run *x, uint32_t first) {
  for (uint32_t i = first; i < first + TILE_MAX_STEPS && tile_takes(x, i); i++) {
    const plan_step *s = &x->p->steps[i];
    if (s->kind == PLAN_KERNEL && s->kernel->reduction) return s->kernel->reduction->outer;
  }
  return 0;
}

/* The lines of the first product. */
static int64_t tile_lines(const tile_run *x, uint32_t first) {
  for (uint32_t i = first; i < first + TILE_MAX_STEPS && tile_takes(x, i); i++)
    if (x->p->steps[i].kind == PLAN_ROUTINE) return x->p->steps[i].routine->lines.n;
  return 0;
}

/* How many rows products want at once, of those that the tile's rows are: the most that one of them does. 0: there is
 * none. */
static int64_t tile_at_once(const plan_program *p, uint32_t first, uint32_t n, int64_t rows) {
  int64_t most = 0;
  for (uint32_t i = first; i < first + n; i++) {
    const plan_step *s = &p->steps[i];
    if (s->kind != PLAN_ROUTINE) continue;
    int64_t each = s->routine->lines.n / rows, at_once = (s->routine->lines.at_once + each - 1) / each;
    if (at_once > most) most = at_once;
  }
  return most;
}

/* Whether a step before `last` reads or writes the buffer. */
static bool tile_is_seen(const plan_program *p, uint32_t first, uint32_t last, uint32_t buffer) {
  for (uint32_t i = first; i < last; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_out; j++)
      if (s->out[j] == buffer) return true;
    for (uint32_t j = 0; j < s->n_in; j++)
      if (s->in[j] == buffer) return true;
  }
  return false;
}

/* Whether step i's output of that buffer can have the room of an earlier one's, in a tile's scratch memory or where
 * both lie anyway. */
static bool tile_has_room(const plan_program *p, uint32_t first, uint32_t i, uint32_t buffer) {
  const plan_buffer *b = &p->buffers[buffer];
  for (uint32_t k = first; k < i; k++)
    for (uint32_t j = 0; j < p->steps[k].n_out; j++) {
      const plan_buffer *old = &p->buffers[p->steps[k].out[j]];
      bool dead =
          old->last < i || (old->last == i && plan_may_overwrite(&p->steps[i], p->buffers, p->steps[k].out[j], buffer));
      if ((old->bytes == b->bytes && dead) || tile_overlap(p, old, b)) return true;
    }
  return false;
}

/* Bytes of a row of all that the steps read and write row by row. */
static int64_t tile_row_bytes(const plan_program *p, uint32_t first, uint32_t n, int64_t rows) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < first + n; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++)
      if (!tile_is_seen(p, first, i, s->in[j]) && plan_reads_by_rows(p, s, s->in[j], rows))
        bytes += p->buffers[s->in[j]].bytes / rows;
    for (uint32_t j = 0; j < s->n_out; j++)
      if (!tile_has_room(p, first, i, s->out[j])) bytes += p->buffers[s->out[j]].bytes / rows;
  }
  return bytes;
}

bool plan_tile_keeps(const plan_program *p, const plan_tile *t, uint32_t step, uint32_t buffer) {
  const plan_buffer *b = &p->buffers[buffer];
  assert(step >= t->first && step < t->first + t->n);
  bool own = b->place == PLAN_FRAME || b->place == PLAN_SPARE || b->place == PLAN_TILE || b->borrowed;
  return own && b->last < t->first + t->n && b->first == step;
}

/* How many steps from `first` on can go by so many rows; *ends: why no more. */
static uint32_t tile_count(const tile_run *x, uint32_t first, int64_t rows, const char **ends) {
  uint32_t n = 0;
  if (rows == 0) return 0;
  while (!(*ends = tile_objection(x, first, first + n, rows))) n++;
  return n;
}

/* Whether a tile that begins here could go through enough memory: most steps of large programs are small, and looking
 * at pairs of them would take longest of all compilation. */
static bool tile_may_be_large(const tile_run *x, uint32_t first) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < first + TILE_MAX_STEPS && tile_takes(x, i); i++) {
    const plan_step *s = &x->p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++) bytes += x->p->buffers[s->in[j]].bytes;
    if ((bytes += x->p->buffers[s->out[0]].bytes) >= fusion_least_in_tiles(x->m)) return true;
  }
  return false;
}

/* Whether any of the steps after the first has to do with it. One that has not had better go before the tile: what it
 * makes may be the operand that a later product reads whole. */
static bool tile_needs_first(const plan_program *p, uint32_t first, uint32_t n) {
  const plan_step *s = &p->steps[first];
  for (uint32_t j = 0; j < s->n_out; j++)
    if (tile_is_read(p, first + 1, first + n, s->out[j])) return true;
  return s->kind == PLAN_ROUTINE;
}

/* The tile of all steps that can go by so many rows from `first` on. false: there are too few of them, or too little
 * memory. */
static bool tile_by(const tile_run *x, uint32_t first, int64_t rows, plan_tile *out) {
  const char *ends = NULL;
  uint32_t n = tile_count(x, first, rows, &ends);
  if (n < 2 || (x->products && !tile_needs_first(x->p, first, n))) return false;
  int64_t at_once = tile_at_once(x->p, first, n, rows), bytes = tile_row_bytes(x->p, first, n, rows);
  int64_t at_a_time = fusion_rows_at_a_time(x->m, rows, bytes, at_once, tile_whole(x->p, first, n));
  *out = (plan_tile){.first = first, .n = n, .products = at_once, .rows = rows, .at_a_time = at_a_time, .ends = ends};
  if (at_once) out->batches = tile_batches(x, first, n, rows);
  if (at_a_time && out->batches) out->at_a_time = tile_even(rows / out->batches, at_a_time, at_once);
  return at_a_time > 0 && out->products == x->products;
}

/* The tile that begins with that step, by the rows of a reduction or a product; without one each element is a row. */
static bool tile_find(const tile_run *x, uint32_t first, plan_tile *out) {
  const kernel *k = x->p->steps[first].kernel;
  if (!tile_may_be_large(x, first)) return false;
  if (tile_by(x, first, tile_reduction_rows(x, first), out)) return true;
  if (x->products) return tile_by(x, first, tile_lines(x, first), out);
  return !k->reduction && tile_by(x, first, k->count, out);
}

/* The tiles of x->p's steps, with those that it has already. false when out of memory. */
static bool tile_find_all(tile_run *x, base_alloc alloc, tile_list *found) {
  const plan_program *p = x->p;
  uint32_t known = 0;
  plan_tile t;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    bool is = known < p->n_tiles && p->tiles[known].first == i;
    x->limit = known < p->n_tiles ? p->tiles[known].first : p->n_steps;
    if (is)
      t = p->tiles[known++];
    else if (!tile_takes(x, i) || !tile_find(x, i, &t))
      continue;
    if (!BASE_VEC_PUSH(alloc, found, t)) return false;
    i += t.n - 1;
  }
  return true;
}

int plan_find_tiles(plan_program *p, const fusion_model *m, bool products, base_arena *arena, xlac_error *err) {
  tile_list found = {NULL, 0, 0};
  tile_run x = {.p = p, .m = m, .products = products};
  bool ok = tile_find_all(&x, arena->alloc, &found);
  p->n_tiles = found.n;
  p->tiles = ok && found.n ? base_arena_memdup(arena, found.items, found.n * sizeof *found.items) : NULL;
  ok = ok && (p->tiles || !found.n);
  BASE_VEC_FREE(arena->alloc, &found);
  return ok ? 0 : base_oom(err, "a plan's tiles");
}
