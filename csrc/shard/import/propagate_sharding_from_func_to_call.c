/* sdy-propagate-sharding-from-func-to-call: calls without shardings get those of the function's results.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

typedef struct imp_calls {
  opt_symbols symbols;
  xlac_error *err;
} imp_calls;

static int imp_call_shardings(void *ctx, ir_op *op) {
  imp_calls *x = ctx;
  const sdy_shardings *list;
  ir_computation *f = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
  if (!f || sdy_get_list(op)) return 0;
  bool ok = shc_result_shardings(f, &list) && (!list || sdy_set_list(op, list));
  return ok ? 0 : base_oom(x->err, "the shardings of a call");
}

int shard_func_to_call(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_calls x = {.err = err};
  TRY(opt_symbols_make(&x.symbols, m, err));
  int status = shc_walk_module(m, true, imp_call_shardings, &x);
  opt_symbols_free(&x.symbols);
  return status;
}
