/* sdy-close-shardings: dimensions take no more axes, and nothing is said to be replicated any more.
 * Requires: nothing. Preserves: which axes shard what. */
#include "../common/common.h"

typedef struct exp_close {
  ir_module *m;
  bool wrong; /* a dimension has a priority and nothing to say */
} exp_close;

static bool exp_is_closed(const sdy_sharding *s) {
  for (uint32_t i = 0; i < s->n_dims; i++)
    if (s->dims[i].open) return false;
  return s->replicated.n == 0;
}

static const sdy_sharding *exp_close_map(void *ctx, const sdy_sharding *s) {
  exp_close *x = ctx;
  ir_module *m = x->m;
  if (exp_is_closed(s)) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  if (!to || !dims) return NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    dims[i].open = false;
    x->wrong |= dims[i].priority >= 0 && dims[i].axes.n == 0;
  }
  to->dims = dims;
  to->replicated = (sdy_axes){0};
  return to;
}

int shard_close_shardings(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  exp_close x = {.m = m};
  TRY(shc_map(m, exp_close_map, &x, err));
  return x.wrong ? shc_verify(m, err) : 0;
}
