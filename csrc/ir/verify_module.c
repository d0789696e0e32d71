/* Rules that several ops break together. */
#include "verify.h"

/* A computation belongs to one async chain. `starts`: computation to the first start that wraps it. */
static int check_chain(const ir_op *op, base_map *starts, xlac_error *err) {
  const ir_op *other = base_map_ptr(starts, op->called[0]);
  if (other)
    return ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "wraps %s, which %s wraps too; a computation belongs to one chain",
                          op->called[0]->name->s, other->name->s);
  return base_map_set(starts, base_key(op->called[0]), base_key(op)) ? 0 : base_oom(err, "a table of async chains");
}

static int check_chains(const ir_module *m, base_map *starts, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_ASYNC_START) TRY(check_chain(op, starts, err));
    }
  }
  return 0;
}

/* XLA refuses modules where some all-reduces constrain their layouts and others don't. */
static int check_constrained(const ir_module *m, xlac_error *err) {
  const ir_op *constrained = NULL, *free_op = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode != IR_OP_ALL_REDUCE && op->opcode != IR_OP_ALL_REDUCE_START) continue;
      const ir_op **slot = ir_get_bool(op, IR_ATTR_CONSTRAIN_LAYOUT, false) ? &constrained : &free_op;
      if (!*slot) *slot = op;
      if (constrained && free_op)
        return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err,
                              "%s constrain_layout but %s does not; a module has either all or none of its all-reduces do so",
                              constrained == op ? "has" : constrained->name->s, free_op->name->s);
    }
  }
  return 0;
}

int ir_verify_together(const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  (void)options;
  base_map starts;
  base_map_init(&starts, m->alloc);
  int status = check_chains(m, &starts, err);
  base_map_free(&starts);
  return status ? status : check_constrained(m, err);
}
