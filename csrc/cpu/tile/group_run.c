/* Running groups: tile by tile of rows, the tiles on the pool's threads. */
#include "group_inside.h"

typedef struct grp_run {
  const cpu_group *g;
  const plan_program *p;
  const cpu_code *code;
  void *const *pointers;
} grp_run;

/* Where row 0 of the buffer would be: for values without one, such that the rows of this tile are in the scratch
 * memory. */
static void *grp_pointer(const grp_run *x, uint32_t buffer, int64_t row, char *scratch) {
  const int64_t *room = x->g->room;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const plan_step *s = &x->p->steps[x->g->first + i];
    for (uint32_t j = 0; j < s->n_out; j++, room++) {
      if (s->out[j] == buffer && *room)
        return (void *)((uintptr_t)scratch - (uintptr_t)(x->p->buffers[buffer].bytes / x->g->rows * row));
      scratch += *room;
    }
  }
  return x->pointers[buffer];
}

/* Rows from .. to of one kernel of the group. The first one has nothing fetched ahead: it is the one that reads
 * from memory. */
static void grp_step(const grp_run *x, uint32_t number, int64_t from, int64_t to, char *scratch, cpu_vm_ahead *ahead) {
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

static int64_t grp_least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* For rt_parallel_for: rows begin .. end, a tile at a time through all steps, with scratch memory on the stack. */
static void grp_rows(void *ctx, size_t begin, size_t end) {
  const grp_run *x = ctx;
  char *scratch = __builtin_alloca_with_align((size_t)x->g->scratch + 64, 512);
  int64_t last = (int64_t)end;
  assert(begin <= end && last <= x->g->rows);
  for (int64_t row = (int64_t)begin; row < last; row += x->g->tile) {
    int64_t to = grp_least(row + x->g->tile, last);
    cpu_vm_ahead ahead;
    grp_look_ahead(x, to, grp_least(to + x->g->tile, last), &ahead);
    for (uint32_t i = 0; i < x->g->n; i++) grp_step(x, i, row, to, scratch, &ahead);
  }
}

int cpu_group_run(cpu_run *run, const cpu_group *g, const plan_program *p, void *const *pointers) {
  grp_run x = {g, p, cpu_code_of(run->exe, p), pointers};
  uint64_t work = 1;
  run->ran.groups++;
  if (run->stop.asked) rt_pool_heed(run->exe->pool, &run->stop);
  rt_parallel_for(run->exe->pool, (size_t)g->rows, (size_t)g->tile, grp_rows, &x);
  if (run->stop.asked) rt_pool_heed(run->exe->pool, NULL);
  if (run->stop.stopped)
    return interp_place_error(&run->ctx, p->steps[g->first].op,
                              base_fail(run->ctx.err, XLAC_E_INTERRUPTED, "the run was interrupted"));
  for (uint32_t i = 0; i < g->n; i++) work += (uint64_t)p->steps[g->first + i].kernel->count / 16;
  return interp_tick(&run->ctx, work);
}
