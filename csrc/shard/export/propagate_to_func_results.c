/* sdy-propagate-to-func-results: results of functions but the main one have the shardings of what is returned.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

int shard_to_func_results(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  const ir_computation *entry = shc_main(m, true);
  bool ok = true;
  if (!entry) return shc_no_main(m, err);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || c->owner || c == entry || c->declaration) continue;
    for (uint32_t i = 0; i < c->n_results && ok; i++) ok = sdy_set_result(c, i, sdy_shown(m, c->results[i]));
  }
  return ok ? 0 : base_oom(err, "sdy-propagate-to-func-results");
}
