/* Matrix products. */
#include "routine.h"

static int dot_by_blas(const cpu_routine_run *r) {
  cpu_blas_dot(r->run->exe->blas, r->data, r->run->exe->pool, r->in[0], r->in[1], r->out[0]);
  return 0;
}

int cpu_prepare_dot(cpu_prepare_run *x) {
  plan_dot dot;
  if (!x->options->blas || !plan_dot_of(x->op, &dot)) return 0;
  x->out->name = "gemm";
  x->out->stoppable = true;
  x->out->work = (uint64_t)(dot.batch * dot.m * dot.n * dot.k) / 4;
  x->out->data = base_arena_memdup(x->arena, &dot, sizeof dot);
  x->code = dot_by_blas;
  return x->out->data ? 0 : base_oom(x->err, "a product");
}
