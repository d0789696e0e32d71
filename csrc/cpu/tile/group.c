/* Finding groups: which kernels can go row by row together. For softmax over [1000,512] these are the kernels
 *
 *    m = max(x) by row       [1000]
 *    e = exp(x - m)          [1000,512]   s = sum(e) by row
 *    y = e / s               [1000,512]
 *
 * whose iterations are all cut into the same 1000 rows. Two steps agree if whatever one writes and the other reads
 * or writes is either no common memory, or the same rows of one buffer: then a tile of rows may go through all of
 * them before the next tile begins. */
#include "group_inside.h"

enum {
  GROUP_MAX_STEPS = 16,
  GROUP_MIN_ROWS = 16,
  GROUP_MIN_BYTES = 64 << 10, /* of memory that the group goes through: below, it is in the cache anyway */
  GROUP_LANES = 1024,
  GROUP_TILE = 64 << 10 /* bytes that a tile of rows should go through */
};

/* The rows of a kernel: the first `whole` dimensions count `before` of them, and dimension `whole` each `parts` more.
 */
typedef struct rows_cut {
  uint32_t whole;
  int64_t parts;
} rows_cut;

/* How `rows` rows cut the kernel's dimensions from the outermost on; false where the cut would not be by whole
 * indexes. */
static bool rows_cut_of(const kernel *k, int64_t rows, rows_cut *cut) {
  assert(rows > 0 && k->count > 0);
  int64_t before = 1;
  uint32_t d = 0;
  while (d < k->rank && rows % (before * k->extents[d]) == 0 && before < rows) before *= k->extents[d++];
  cut->whole = d;
  cut->parts = rows / before;
  if (before == rows) return true;
  return d < k->rank && rows % before == 0 && k->extents[d] % cut->parts == 0;
}

/* Whether what the index reads in a row is in the same row of the buffer of `elements`. */
static bool rows_is_aligned(const kernel *k, const kernel_index *index, int64_t elements, int64_t rows) {
  rows_cut cut = {0, 1};
  if (elements % rows || !rows_cut_of(k, rows, &cut)) return false;
  int64_t row = elements / rows, stride = row, low = index->offset, high = index->offset;
  for (uint32_t d = cut.whole; d < k->rank; d++) {
    int64_t n = d == cut.whole ? k->extents[d] / cut.parts : k->extents[d], reach = (n - 1) * index->strides[d];
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  if (low < 0 || high >= row) return false;
  if (cut.parts > 1) {
    if (index->strides[cut.whole] * (k->extents[cut.whole] / cut.parts) != row) return false;
    stride *= cut.parts;
  }
  for (uint32_t d = cut.whole; d-- > 0;) {
    if (k->extents[d] != 1 && index->strides[d] != stride) return false;
    stride *= k->extents[d];
  }
  return true;
}

/* Whether the kernel by itself can run row by row: its stores are dense, it has no scan, its reduction is in one
 * piece and within rows. */
static bool rows_kernel_fits(const plan_step *s, int64_t rows) {
  const kernel *k = s->kernel;
  rows_cut cut;
  if (s->kind != PLAN_KERNEL || k->count == 0 || k->count % rows || kernel_pieces(k) != 1) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (!k->stores[i].by && (k->stores[i].index.offset || !kernel_is_dense(k, &k->stores[i].index))) return false;
  kernel_scans scans;
  if (kernel_find_scans(k, &scans)) return false;
  if (k->reduction) return k->reduction->reduced > 0 && k->reduction->outer % rows == 0;
  return rows_cut_of(k, rows, &cut);
}

/* 0: scratch memory, or a token. */
static int64_t rows_elements(const plan_buffer *b) {
  return b->type ? b->type->count : 0;
}

/* All loads of the step from the memory of `buffer` are of the same row. */
static bool rows_reads_rows(const plan_program *p, const plan_step *s, uint32_t buffer, int64_t rows) {
  const kernel *k = s->kernel;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_LOAD || s->in[v->buffer] != buffer) continue;
    if (v->n_in || !rows_is_aligned(k, v->index, rows_elements(&p->buffers[buffer]), rows)) return false;
  }
  return true;
}

/* An argument may be given away, and then is the memory of a result or of what lies in its spare room. */
static bool rows_may_be_over(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (b->place != PLAN_ARGUMENT) return false;
  if (a->place == PLAN_RESULT) return p->over && p->over[a->number] == b->number;
  return a->place == PLAN_SPARE && p->spares[a->number] == b->number;
}

static bool rows_overlap(const plan_program *p, const plan_buffer *a, const plan_buffer *b) {
  if (a->place != b->place) return rows_may_be_over(p, a, b) || rows_may_be_over(p, b, a);
  if (a->place == PLAN_FRAME || a->place == PLAN_SPARE) return plan_places_overlap(a, b);
  return a->number == b->number && a->place != PLAN_CONSTANT;
}

/* Of two that overlap. Spare room is entered at its beginning or not at all. */
static bool rows_same_memory(const plan_buffer *a, const plan_buffer *b) {
  if (a->bytes != b->bytes) return false;
  if (a->place == b->place) return (a->place != PLAN_FRAME && a->place != PLAN_SPARE) || a->offset == b->offset;
  const plan_buffer *spare = a->place == PLAN_SPARE ? a : b;
  return spare->place != PLAN_SPARE || spare->offset == 0;
}

/* A buffer that `writer` of the group writes and one that `reader` (before or after it) reads: either no memory of
 * theirs is shared, or the same rows of it, each read within its own row. */
static bool rows_is_safe(const plan_program *p, uint32_t written, const plan_step *reader, uint32_t read,
                         int64_t rows) {
  const plan_buffer *a = &p->buffers[written], *b = &p->buffers[read];
  if (!rows_overlap(p, a, b)) return true;
  return rows_same_memory(a, b) && rows_reads_rows(p, reader, read, rows);
}

/* What `reader` reads and `writer` writes, of which one comes before the other or both are one step. */
static bool rows_agree(const plan_program *p, const plan_step *writer, const plan_step *reader, int64_t rows) {
  for (uint32_t i = 0; i < reader->n_in; i++)
    for (uint32_t j = 0; j < writer->n_out; j++)
      if (!rows_is_safe(p, writer->out[j], reader, reader->in[i], rows)) return false;
  return true;
}

/* Both ways, since a tile of the later step runs before the next tile of the earlier one; and what both write. */
static bool rows_steps_agree(const plan_program *p, const plan_step *a, const plan_step *b, int64_t rows) {
  if (!rows_agree(p, b, a, rows) || !rows_agree(p, a, b, rows)) return false;
  for (uint32_t i = 0; i < a->n_out; i++) {
    for (uint32_t j = 0; j < b->n_out; j++) {
      const plan_buffer *x = &p->buffers[a->out[i]], *y = &p->buffers[b->out[j]];
      if (rows_overlap(p, x, y) && !rows_same_memory(x, y)) return false;
    }
  }
  return true;
}

/* Step `last` can join the steps from `first` on; itself it may write over what it reads. */
static bool rows_joins(const plan_program *p, uint32_t first, uint32_t last, int64_t rows) {
  const plan_step *s = &p->steps[last];
  if (s->kind != PLAN_KERNEL || !rows_kernel_fits(s, rows)) return false;
  if (!rows_agree(p, s, s, rows)) return false;
  for (uint32_t i = first; i < last; i++)
    if (!rows_steps_agree(p, &p->steps[i], s, rows)) return false;
  return true;
}

/* The rows are those of the first reduction. */
static int64_t rows_rows(const plan_program *p, uint32_t first) {
  for (uint32_t i = first; i < p->n_steps && i < first + GROUP_MAX_STEPS && p->steps[i].kind == PLAN_KERNEL; i++) {
    const kernel_reduction *r = p->steps[i].kernel->reduction;
    if (r) return r->outer;
  }
  return 0;
}

/* Whether a step before `last` reads or writes the buffer. */
static bool rows_is_seen(const plan_program *p, uint32_t first, uint32_t last, uint32_t buffer) {
  for (uint32_t i = first; i < last; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_out; j++)
      if (s->out[j] == buffer) return true;
    for (uint32_t j = 0; j < s->n_in; j++)
      if (s->in[j] == buffer) return true;
  }
  return false;
}

/* Bytes of a row of all that the group reads and writes row by row. */
static int64_t rows_row_bytes(const plan_program *p, uint32_t first, uint32_t n, int64_t rows) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < first + n; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++)
      if (!rows_is_seen(p, first, i, s->in[j]) && rows_reads_rows(p, s, s->in[j], rows))
        bytes += p->buffers[s->in[j]].bytes / rows;
    for (uint32_t j = 0; j < s->n_out; j++) bytes += p->buffers[s->out[j]].bytes / rows;
  }
  return bytes;
}

/* Values of the group that nobody reads after it. */
static void rows_find_inner(const plan_program *p, cpu_group *g) {
  int64_t *room = g->room;
  for (uint32_t i = 0; i < g->n; i++) {
    const plan_step *s = &p->steps[g->first + i];
    for (uint32_t j = 0; j < s->n_out; j++, room++) {
      const plan_buffer *b = &p->buffers[s->out[j]];
      bool own = b->place == PLAN_FRAME || b->place == PLAN_SPARE || b->borrowed;
      bool inner = own && b->last < g->first + g->n && b->first == g->first + i;
      *room = inner ? ((b->bytes / g->rows * g->tile) + 63) & ~(int64_t)63 : 0;
      g->scratch += *room;
    }
  }
}

/* What comes from memory is fetched in the passes of all steps but the first. */
static void rows_find_read(const plan_program *p, const cpu_code *code, cpu_group *g) {
  int64_t passes = 0, bytes = 0;
  for (uint32_t i = 1; i < g->n; i++) passes += cpu_vm_passes(code->steps[g->first + i], g->rows, g->tile);
  const plan_step *s = &p->steps[g->first];
  for (uint32_t j = 0; j < s->n_in && g->n_read < CPU_VM_MAX_AHEAD; j++) {
    int64_t row = p->buffers[s->in[j]].bytes / g->rows;
    if (row < 64 || !rows_reads_rows(p, s, s->in[j], g->rows)) continue;
    g->read[g->n_read] = s->in[j];
    g->read_bytes[g->n_read++] = row;
    bytes = row * g->tile > bytes ? row * g->tile : bytes;
  }
  if (passes && g->n_read) g->ahead = (bytes / passes + 64) & ~(int64_t)63;
}

static uint32_t rows_outputs(const plan_program *p, uint32_t first, uint32_t n) {
  uint32_t outputs = 0;
  for (uint32_t i = first; i < first + n; i++) outputs += p->steps[i].n_out;
  return outputs;
}

static uint32_t rows_count(const plan_program *p, uint32_t first, int64_t rows) {
  uint32_t n = 0;
  if (rows < GROUP_MIN_ROWS) return 0;
  while (n < GROUP_MAX_STEPS && first + n < p->n_steps && rows_joins(p, first, first + n, rows)) n++;
  return n;
}

/* Whether a group that begins here could go through enough memory: most steps of large programs are small, and looking
 * at pairs of them would take longest of all compilation. */
static bool rows_may_be_large(const plan_program *p, uint32_t first) {
  int64_t bytes = 0;
  for (uint32_t i = first; i < p->n_steps && i < first + GROUP_MAX_STEPS && p->steps[i].kind == PLAN_KERNEL; i++) {
    const plan_step *s = &p->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++) bytes += p->buffers[s->in[j]].bytes;
    if ((bytes += p->buffers[s->out[0]].bytes) >= GROUP_MIN_BYTES) return true;
  }
  return false;
}

/* By the rows of a reduction; without one each element is a row. */
int cpu_group_make(const plan_program *p, const cpu_code *code, uint32_t first, base_arena *arena,
                   const cpu_group **out, xlac_error *err) {
  const kernel *k = p->steps[first].kernel;
  *out = NULL;
  if (!rows_may_be_large(p, first)) return 0;
  int64_t rows = rows_rows(p, first);
  uint32_t n = rows_count(p, first, rows);
  if (n < 2) n = rows_count(p, first, rows = k->reduction ? 0 : k->count);
  if (n < 2) return 0;
  int64_t row = rows_row_bytes(p, first, n, rows);
  if (row * rows < GROUP_MIN_BYTES || row > GROUP_TILE || row == 0) return 0;
  cpu_group *g = base_arena_zalloc(arena, sizeof *g + rows_outputs(p, first, n) * sizeof *g->room);
  if (!g) return base_oom(err, "a group of kernels");
  g->first = first;
  g->n = n;
  g->rows = rows;
  g->tile = GROUP_TILE / row < rows / 4 ? GROUP_TILE / row : rows / 4;
  if (g->tile > GROUP_LANES) g->tile = g->tile / GROUP_LANES * GROUP_LANES;
  assert(g->tile > 0 && g->n >= 2 && g->first + g->n <= p->n_steps);
  rows_find_inner(p, g);
  rows_find_read(p, code, g);
  *out = g;
  return 0;
}

uint32_t cpu_group_steps(const cpu_group *g) {
  return g->n;
}

uint32_t cpu_group_first(const cpu_group *g) {
  return g->first;
}
