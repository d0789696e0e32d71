/* The IR section of MLIR bytecode, while it is read. Internal to read.c and ir.c. */
#ifndef XLAC_TEXT_BYTECODE_IR_H
#define XLAC_TEXT_BYTECODE_IR_H

#include "bytecode.h"

BASE_VEC(bc_values, ir_value);

/* Values are numbered within an op that is isolated from above: first those of its region, then, beyond all of these,
 * those of each region inside while it is read. */
typedef struct bc_ir {
  bc_reader *r;
  bc_values values;
  uint32_t scope; /* where the numbers of the isolated op begin */
  uint32_t floor; /* of values that may be used: those before it are outside of an isolated region */
  uint32_t next;  /* the number of the region's next value */
  uint32_t depth;
} bc_ir;

/* An op whose head has been read; its regions still lie before the cursor. Lists are scratch memory of this op. */
typedef struct bc_op {
  const bc_op_name *name;
  const uint8_t *at; /* where it begins */
  const ir_mattr *loc;
  bc_op_attrs own;
  const bc_properties *shared; /* in place of `own`, where an op before had the same */
  uint32_t n_results, n_operands, n_regions;
  const ir_type **types;
  ir_value *operands;
  bool isolated;
} bc_op;

/* --- ir.c --- */
/* Everything of an op but its regions. */
XLAC_MUST_USE int bc_op_head(bc_ir *ir, bc_cursor *c, bc_op *op);
/* A dictionary; NULL for an empty one. */
XLAC_MUST_USE int bc_attr_dict(bc_cursor *c, const ir_mdict **out);
/* In which order uses stand in a list matters to nobody here. */
XLAC_MUST_USE int bc_skip_use_orders(bc_cursor *c, uint32_t n_values);

/* --- ir.c --- */
/* The op of a head, with its regions. */
XLAC_MUST_USE int bc_add_op(bc_ir *ir, bc_cursor *c, const bc_op *from, ir_computation *to, ir_op **out);
/* The regions of an op: new ones of `owner`, or into those given where that is NULL. */
XLAC_MUST_USE int bc_op_regions(bc_ir *ir, bc_cursor *c, const bc_op *op, ir_op *owner, ir_computation **regions);

#endif
