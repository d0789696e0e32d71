/* sdy-remove-sub-axes-in-input-output-shardings: open dimensions of what the main function takes and gives lose the
 * first axis that is only a part of one, and all after it.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

static uint32_t exp_whole_axes(const sdy_dim *d) {
  uint32_t n = 0;
  while (n < d->axes.n && (!d->open || !d->axes.v[n].size)) n++;
  return n;
}

static const sdy_sharding *exp_without_sub_axes(ir_module *m, const sdy_sharding *s) {
  sdy_dim *dims = NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    uint32_t n = exp_whole_axes(&s->dims[i]);
    if (n == s->dims[i].axes.n) continue;
    if (!dims && !(dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims))) return NULL;
    dims[i].axes.n = n;
  }
  sdy_sharding *to = dims ? base_arena_memdup(&m->arena, s, sizeof *s) : NULL;
  if (to) to->dims = dims;
  return dims ? to : s;
}

int shard_drop_sub_axes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  ir_computation *f = shc_main(m, true);
  bool ok = true;
  if (!f) return shc_no_main(m, err);
  for (uint32_t i = 0; i < f->n_params && ok; i++) {
    ir_value v = {f->params[i], 0};
    const sdy_sharding *s = sdy_get(v), *to = s ? exp_without_sub_axes(m, s) : NULL;
    ok = to == s || (to && sdy_set(v, to));
  }
  for (uint32_t i = 0; i < f->n_results && ok; i++) {
    const sdy_sharding *s = sdy_get_result(f, i), *to = s ? exp_without_sub_axes(m, s) : NULL;
    ok = to == s || (to && sdy_set_result(f, i, to));
  }
  return ok ? shc_verify_fitting(m, err) : base_oom(err, "sdy-remove-sub-axes-in-input-output-shardings");
}
