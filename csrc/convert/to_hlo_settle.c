/* From MLIR form to HLO form, the end of it: the ops come into the order in which they are printed, and the module is
 * verified, so that nothing is handed out that HLO does not have. */
#include "to_hlo.h"

/* Computations are printed in the order in which ops call them, and ops in post-order: once the ops stand in that
 * order, what is printed and read again is printed the same. */
static bool to_hlo_order(ir_computation *c, base_arena *arena) {
  uint32_t n = 0;
  ir_op **order = ir_post_order(c, arena, &n);
  if (!order) return false;
  for (uint32_t i = 0; i < n; i++)
    if (i + 1 < n || order[i] != c->last) ir_op_move(order[i], NULL);
  return true;
}

/* StableHLO takes more than HLO does. */
static int to_hlo_verify(to_hlo *t) {
  const ir_verify_options lenient = {.xla_compat = true};
  int status = ir_verify(t->to, &lenient, t->err);
  if (status == 0 || status == -XLAC_E_OUT_OF_MEMORY || (t->err && t->err->hint[0])) return status;
  return base_hint(t->err, status,
                   "this is how the StableHLO op reads in HLO, which does not allow it; the module can be compiled and "
                   "interpreted as it is");
}

int to_hlo_settle(to_hlo *t) {
  base_arena arena;
  base_arena_init(&arena, t->to->alloc);
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, t->to) {
    base_arena_mark here = base_arena_here(&arena);
    ok = ok && to_hlo_order(c, &arena);
    base_arena_back(&arena, here);
  }
  base_arena_free(&arena);
  return ok ? to_hlo_verify(t) : to_hlo_no_memory(t);
}
