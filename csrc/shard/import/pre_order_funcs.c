/* sdy-pre-order-funcs: functions come before those they call.
 * Requires: nothing. Preserves: all but the order of functions. */
#include "../common/common.h"

int shard_pre_order_funcs(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_symbols symbols;
  base_arena arena;
  uint32_t n = 0;
  TRY(opt_symbols_make(&symbols, m, err));
  base_arena_init(&arena, m->alloc);
  ir_computation **list = shc_functions(m, &symbols, true, &arena, &n);
  for (uint32_t i = 0; list && i < n; i++) shc_move(list[i], NULL);
  base_arena_free(&arena);
  opt_symbols_free(&symbols);
  return list ? 0 : base_oom(err, "sdy-pre-order-funcs");
}
