/* The op table: ops.def turned into one constant array. */
#include "opcode.h"

#include "ir.h"

/* While a part of the tree is built without the others, a missing function is a NULL in the table. */
#ifdef XLAC_PARTIAL
#define PARTIAL __attribute__((weak))
#else
#define PARTIAL
#endif

#include "ops_columns.h"
#undef INFER
#undef VERIFY
#define INFER(fn) ir_infer_fn ir_infer_##fn PARTIAL;
#define VERIFY(fn) ir_verify_fn ir_verify_##fn PARTIAL;
#define OP(code, text, arity, columns) columns
#include "ops.def"
#undef OP

#include "ops_columns.h"
#undef TRAITS
#undef TYPES
#undef ATTRS
#undef PAIR
#undef INFER
#undef VERIFY
#undef DOC
#undef MLIR
#define TRAITS(set) .traits = (set),
#define TYPES(set) .types = (set),
#define A(key, flags) {IR_ATTR_##key, (flags)},
#define ATTRS(...) .attrs = (const ir_attr_spec[]){__VA_ARGS__{0, 0}},
#define PAIR(start_op, done_op) .start = IR_OP_##start_op, .done = IR_OP_##done_op,
#define INFER(fn) .infer = ir_infer_##fn,
#define VERIFY(fn) .verify = ir_verify_##fn,
#define DOC(sentence) .doc = (sentence),
#define M(name, constraint, flags) {#name, IR_MC_##constraint, (flags), NULL},
#define MS(name, constraint, sub, flags) {#name, IR_MC_##constraint, (flags), (sub)},
#define MLIR(name, operands, results, regions, form, ...)         \
  .mlir = &(const ir_mlir_info){(name),    (operands), (results), \
                                (regions), (form),     (const ir_mattr_spec[]){__VA_ARGS__{NULL, 0, 0, NULL}}},
#define OP(code, name, operands, columns) [IR_OP_##code] = {.text = (name), .arity = (operands), columns},
const ir_op_info ir_op_table[IR_OP_COUNT] = {
#include "ops.def"
};
#undef OP
#undef A
#undef M
#undef MS

const ir_attr_info ir_attr_table[IR_ATTR_COUNT] = {
#define ATTR(key, name, value_kind) [IR_ATTR_##key] = {.text = (name), .kind = IR_KIND_##value_kind},
#include "attrs/attrs.def"
#undef ATTR
};

ir_opcode ir_opcode_pair_start(unsigned opcode) {
  switch (opcode) {
    case IR_OP_COPY:
      return IR_OP_COPY_START;
    case IR_OP_ALL_REDUCE:
      return IR_OP_ALL_REDUCE_START;
    case IR_OP_ALL_GATHER:
      return IR_OP_ALL_GATHER_START;
    case IR_OP_COLLECTIVE_PERMUTE:
      return IR_OP_COLLECTIVE_PERMUTE_START;
    default:
      return IR_OP_INVALID;
  }
}

bool ir_opcode_takes(unsigned opcode, ir_attr_key key, uint16_t *flags) {
  assert(opcode < IR_OP_COUNT);
  const ir_attr_spec *spec = ir_op_table[opcode].attrs;
  if (!spec) return false;
  for (; spec->key; spec++) {
    if (spec->key == key) {
      if (flags) *flags = spec->flags;
      return true;
    }
  }
  return false;
}
