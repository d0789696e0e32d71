/* Running groups: tile by tile of rows, the tiles on the pool's threads. */
#include "../gemm/dot_gemm.h"
#include "group_inside.h"

typedef struct grp_run {
  const cpu_group *g;
  const plan_program *p;
  const cpu_code *code;
  void *const *pointers;
  const cpu_routine *routines; /* by number */
  rt_pool *pool;
  uint64_t given; /* by step: its operand is packed already */
} grp_run;

/* Where row 0 of the buffer would be: for values without one, such that the rows of this tile are in the scratch
 * memory. */
static void *grp_pointer(const grp_run *x, uint32_t buffer, int64_t row, char *scratch) {
  const int64_t *at = x->g->at;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const plan_step *s = &x->p->steps[x->g->first + i];
    for (uint32_t j = 0; j < s->n_out; j++, at++)
      if (s->out[j] == buffer && *at >= 0)
        return (void *)((uintptr_t)(scratch + *at) - (uintptr_t)(x->p->buffers[buffer].bytes / x->g->rows * row));
  }
  return x->pointers[buffer];
}

/* Memory of a thread: for tiles, and for what it packs. */
typedef struct grp_scratch {
  char *tile, *packed;
} grp_scratch;

/* Where a product's operand is packed: for all rows, or for the range that row `from` is in. */
static cpu_gemm_packed grp_packed(const grp_run *x, uint32_t number, int64_t from, const grp_scratch *scratch) {
  const plan_step *s = &x->p->steps[x->g->first + number];
  if (!x->g->batches || cpu_group_is_given(x->given, number))
    return (cpu_gemm_packed){x->pointers[s->frame], 0, s->routine->lines.batches};
  char *to = scratch->packed;
  for (uint32_t i = 0; i < number; i++) {
    const plan_step *before = &x->p->steps[x->g->first + i];
    if (before->kind == PLAN_ROUTINE) to += cpu_group_packed_bytes(before);
  }
  return (cpu_gemm_packed){to, from / (x->g->rows / x->g->batches), 1};
}

/* Lines of a product: those of the rows from .. to. */
static void grp_product(const grp_run *x, uint32_t number, int64_t from, int64_t to, const grp_scratch *scratch) {
  const plan_step *s = &x->p->steps[x->g->first + number];
  int64_t each = s->routine->lines.n / x->g->rows;
  assert(s->n_in == 2 && s->n_out == 1 && s->routine->lines.n % x->g->rows == 0);
  cpu_gemm_run_lines(x->routines[s->routine->number].lines, x->pool, grp_pointer(x, s->in[0], from, scratch->tile),
                     grp_packed(x, number, from, scratch), grp_pointer(x, s->out[0], from, scratch->tile), from * each,
                     to * each);
}

/* Rows from .. to of one kernel of the group. The first one has nothing fetched ahead: it is the one that reads
 * from memory. */
static void grp_kernel(const grp_run *x, uint32_t number, int64_t from, int64_t to, char *scratch,
                       cpu_vm_ahead *ahead) {
  const plan_step *s = &x->p->steps[x->g->first + number];
  assert(number < x->g->n && s->kind == PLAN_KERNEL && from < to);
  const void *few[16], **in = few;
  void *out[KERNEL_MAX_STORES];
  for (uint32_t i = 0; i < s->n_out; i++) out[i] = grp_pointer(x, s->out[i], from, scratch);
  if (s->n_in > 16) in = __builtin_alloca(s->n_in * sizeof *in);
  for (uint32_t i = 0; i < s->n_in; i++) in[i] = grp_pointer(x, s->in[i], from, scratch);
  cpu_vm_run_rows(x->code->steps[x->g->first + number], x->g->rows, from, to, in, out,
                  number + 1 == x->g->n && cpu_run_is_last(x->p, s), number && ahead->n ? ahead : NULL);
}

/* Rows from..to, which are read next: rows of different lengths take turns by the longest. */
static void grp_look_ahead(const grp_run *x, int64_t from, int64_t to, cpu_vm_ahead *ahead) {
  *ahead = (cpu_vm_ahead){.n = from < to && x->g->ahead ? x->g->n_read : 0, .step = x->g->ahead, .far = true};
  for (uint32_t i = 0; i < ahead->n; i++) {
    int64_t row = x->g->read_bytes[i];
    ahead->from[i] = (const char *)x->pointers[x->g->read[i]] + row * from;
    if (row * (to - from) > ahead->bytes) ahead->bytes = row * (to - from);
  }
}

static void grp_step(const grp_run *x, uint32_t number, int64_t from, int64_t to, const grp_scratch *scratch,
                     cpu_vm_ahead *ahead) {
  if (x->p->steps[x->g->first + number].kind == PLAN_KERNEL)
    grp_kernel(x, number, from, to, scratch->tile, ahead);
  else
    grp_product(x, number, from, to, scratch);
}

/* What products read whole: for the range of rows that begins with `row`, or for all on the threads of the pool. */
static void grp_pack(const grp_run *x, rt_pool *pool, int64_t row, const grp_scratch *scratch) {
  for (uint32_t i = 0; i < x->g->n; i++) {
    const plan_step *s = &x->p->steps[x->g->first + i];
    if (s->kind == PLAN_ROUTINE && !cpu_group_is_given(x->given, i))
      cpu_gemm_pack_lines(x->routines[s->routine->number].lines, pool, x->pointers[s->in[1]],
                          grp_packed(x, i, row, scratch));
  }
}

static int64_t grp_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Rows first .. last, a tile at a time through all steps. */
static void grp_tiles(const grp_run *x, int64_t first, int64_t last, const grp_scratch *scratch) {
  assert(first <= last && last <= x->g->rows);
  for (int64_t row = first; row < last; row += x->g->tile) {
    int64_t to = grp_least(row + x->g->tile, last);
    cpu_vm_ahead ahead;
    grp_look_ahead(x, to, grp_least(to + x->g->tile, last), &ahead);
    for (uint32_t i = 0; i < x->g->n; i++) grp_step(x, i, row, to, scratch, &ahead);
  }
}

/* For rt_parallel_for: rows, with scratch memory on the stack. */
static void grp_rows(void *ctx, size_t begin, size_t end) {
  const grp_run *x = ctx;
  grp_scratch scratch = {__builtin_alloca_with_align((size_t)x->g->scratch + 64, 512), NULL};
  grp_tiles(x, (int64_t)begin, (int64_t)end, &scratch);
}

/* For rt_parallel_for: ranges of rows, each with what its products read. */
static void grp_batches(void *ctx, size_t begin, size_t end) {
  const grp_run *x = ctx;
  int64_t range = x->g->rows / x->g->batches;
  grp_scratch scratch = {__builtin_alloca_with_align((size_t)x->g->scratch + 64, 512),
                         __builtin_alloca_with_align((size_t)x->g->packed + 64, 512)};
  for (int64_t i = (int64_t)begin; i < (int64_t)end && !rt_pool_stopping(x->pool); i++) {
    grp_pack(x, NULL, i * range, &scratch);
    grp_tiles(x, i * range, (i + 1) * range, &scratch);
  }
}

int64_t cpu_group_ranges(const cpu_group *g) {
  return g->batches;
}

void cpu_group_run_range(const cpu_run *run, const cpu_group *g, const plan_program *p, void *const *const *pointers,
                         uint32_t n, int64_t range) {
  int64_t rows = g->rows / g->batches;
  grp_scratch scratch = {__builtin_alloca_with_align((size_t)g->scratch + 64, 512),
                         __builtin_alloca_with_align((size_t)g->packed + 64, 512)};
  assert(range >= 0 && range < g->batches);
  for (uint32_t i = 0; i < n; i++) {
    grp_run x = {g, p, cpu_code_of(run->exe, p), pointers[i], run->exe->routines.items, run->exe->pool, 0};
    if (i == 0) grp_pack(&x, NULL, range * rows, &scratch);
    grp_tiles(&x, range * rows, (range + 1) * rows, &scratch);
  }
}

static void grp_run_all(const grp_run *x) {
  void *ctx = (void *)(uintptr_t)x;
  if (x->g->batches) {
    rt_parallel_for(x->pool, (size_t)x->g->batches, 1, grp_batches, ctx);
    return;
  }
  grp_pack(x, x->pool, 0, NULL);
  rt_parallel_for(x->pool, (size_t)x->g->rows, (size_t)x->g->tile, grp_rows, ctx);
}

int cpu_group_run(cpu_run *run, const cpu_group *g, const plan_program *p, void *const *pointers, uint64_t given) {
  grp_run x = {g, p, cpu_code_of(run->exe, p), pointers, run->exe->routines.items, run->exe->pool, given};
  uint64_t work = 1;
  run->ran.groups++;
  if (run->stop.asked) rt_pool_heed(x.pool, &run->stop);
  grp_run_all(&x);
  if (run->stop.asked) rt_pool_heed(x.pool, NULL);
  if (run->stop.stopped)
    return interp_place_error(&run->ctx, p->steps[g->first].op,
                              base_fail(run->ctx.err, XLAC_E_INTERRUPTED, "the run was interrupted"));
  for (uint32_t i = 0; i < g->n; i++) work += cpu_step_work(&p->steps[g->first + i]);
  return interp_tick(&run->ctx, work);
}
