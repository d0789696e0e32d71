/* Tiles: kernels one after another that go through memory together, some rows at a time (fuse/fusion_tile.c has what is
 * asked of each by itself). Two steps agree if whatever one writes and the other reads or writes is either no common
 * memory, or the same rows of one buffer: then a tile of rows may go through all of them before the next tile begins.
 * That depends on where values lie, so tiles are found when all places are fixed; they save no places, since a device
 * may run their steps one by one as well. */
#include "build.h"

enum { TILE_MAX_STEPS = 16 };

BASE_VEC(tile_list, plan_tile);

/* 0: scratch memory, or a token. */
static int64_t tile_elements(const plan_buffer *b) {
  return b->type ? b->type->count : 0;
}

bool plan_reads_by_rows(const plan_program *p, const plan_step *s, uint32_t buffer, int64_t rows) {
  const kernel *k = s->kernel;
  assert(k);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_LOAD || s->in[v->buffer] != buffer) continue;
    if (v->n_in || !fusion_reads_own_row(k, v->index, tile_elements(&p->buffers[buffer]), rows)) return false;
  }
  return true;
}

/* An argument may be given away, and then is the memory of a result or of what lies in its spare room. */
static bool tile_may_be_over(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (b->place != PLAN_ARGUMENT) return false;
  if (a->place == PLAN_RESULT) return p->over && p->over[a->number] == b->number;
  return a->place == PLAN_SPARE && p->spares[a->number] == b->number;
}

static bool tile_overlap(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (a->place != b->place) return tile_may_be_over(p, a, b) || tile_may_be_over(p, b, a);
  if (a->place == PLAN_FRAME || a->place == PLAN_SPARE) return plan_places_overlap(a, b);
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

/* Why step `last` can't join the steps from `first` on; NULL where it can. Itself it may write over what it reads. */
static const char *tile_objection(const plan_program *p, uint32_t first, uint32_t last, int64_t rows) {
  if (last == p->n_steps) return "it is the last step";
  const plan_step *s = &p->steps[last];
  if (s->kind != PLAN_KERNEL) return "a step that is no kernel follows";
  if (last - first == TILE_MAX_STEPS) return "it has steps enough";
  if (!fusion_goes_by_rows(s->kernel, rows)) return "the next kernel does not go by those rows";
  if (!tile_agree(p, s, s, rows)) return "the next kernel reads other rows of the memory that it writes";
  for (uint32_t i = first; i < last; i++)
    if (!tile_steps_agree(p, &p->steps[i], s, rows)) return "the next kernel needs other rows than those of the tile";
  return NULL;
}

/* The rows are those of the first reduction. */
static int64_t tile_rows(const plan_program *p, uint32_t first) {
  for (uint32_t i = first; i < p->n_steps && i < first + TILE_MAX_STEPS && p->steps[i].kind == PLAN_KERNEL; i++) {
    const kernel_reduction *r = p->steps[i].kernel->reduction;
    if (r) return r->outer;
  }
  return 0;
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

/* Bytes of a row of all that the steps read and write row by row. */
static int64_t tile_row_bytes(const plan_program *p, uint32_t first, uint32_t n, int64_t rows) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < first + n; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++)
      if (!tile_is_seen(p, first, i, s->in[j]) && plan_reads_by_rows(p, s, s->in[j], rows))
        bytes += p->buffers[s->in[j]].bytes / rows;
    for (uint32_t j = 0; j < s->n_out; j++) bytes += p->buffers[s->out[j]].bytes / rows;
  }
  return bytes;
}

bool plan_tile_keeps(const plan_program *p, const plan_tile *t, uint32_t step, uint32_t buffer) {
  const plan_buffer *b = &p->buffers[buffer];
  assert(step >= t->first && step < t->first + t->n);
  bool own = b->place == PLAN_FRAME || b->place == PLAN_SPARE || b->borrowed;
  return own && b->last < t->first + t->n && b->first == step;
}

/* How many steps from `first` on can go by so many rows; *ends: why no more. */
static uint32_t tile_count(const plan_program *p, uint32_t first, int64_t rows, const char **ends) {
  uint32_t n = 0;
  if (rows == 0) return 0;
  while (!(*ends = tile_objection(p, first, first + n, rows))) n++;
  return n;
}

/* Whether a tile that begins here could go through enough memory: most steps of large programs are small, and looking
 * at pairs of them would take longest of all compilation. */
static bool tile_may_be_large(const plan_program *p, const fusion_model *m, uint32_t first) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < p->n_steps && i < first + TILE_MAX_STEPS && p->steps[i].kind == PLAN_KERNEL; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++) bytes += p->buffers[s->in[j]].bytes;
    if ((bytes += p->buffers[s->out[0]].bytes) >= fusion_least_in_tiles(m)) return true;
  }
  return false;
}

/* The tile that begins with a kernel, by the rows of a reduction; without one each element is a row. false: none. */
static bool tile_find(const plan_program *p, const fusion_model *m, uint32_t first, plan_tile *out) {
  const kernel *k = p->steps[first].kernel;
  const char *ends = NULL;
  if (!tile_may_be_large(p, m, first)) return false;
  int64_t rows = tile_rows(p, first);
  uint32_t n = tile_count(p, first, rows, &ends);
  if (n < 2) n = tile_count(p, first, rows = k->reduction ? 0 : k->count, &ends);
  if (n < 2) return false;
  int64_t at_a_time = fusion_rows_at_a_time(m, rows, tile_row_bytes(p, first, n, rows));
  *out = (plan_tile){.first = first, .n = n, .rows = rows, .at_a_time = at_a_time, .ends = ends};
  return at_a_time > 0;
}

int plan_find_tiles(plan_program *p, const fusion_model *m, base_arena *arena, xlac_error *err) {
  tile_list found = {NULL, 0, 0};
  plan_tile t;
  bool ok = true;
  for (uint32_t i = 0; ok && i < p->n_steps; i++) {
    if (p->steps[i].kind != PLAN_KERNEL || !tile_find(p, m, i, &t)) continue;
    ok = BASE_VEC_PUSH(arena->alloc, &found, t);
    i += t.n - 1;
  }
  p->n_tiles = found.n;
  p->tiles = ok && found.n ? base_arena_memdup(arena, found.items, found.n * sizeof *found.items) : NULL;
  ok = ok && (p->tiles || !found.n);
  BASE_VEC_FREE(arena->alloc, &found);
  return ok ? 0 : base_oom(err, "a plan's tiles");
}

const plan_tile *plan_tile_at(const plan_program *p, uint32_t step) {
  uint32_t low = 0, high = p->n_tiles;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->tiles[middle].first < step)
      low = middle + 1;
    else
      high = middle;
  }
  return low < p->n_tiles && p->tiles[low].first == step ? &p->tiles[low] : NULL;
}
