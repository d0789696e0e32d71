/* Opcodes and their facts, from ops.def. Constant tables only. */
#ifndef XLAC_IR_OPCODE_H
#define XLAC_IR_OPCODE_H

#include "attr.h"

/* Columns of a row. A consumer redefines those it wants before including ops.def; ops_columns.h sets all to nothing. */
typedef enum ir_opcode {
  IR_OP_INVALID = 0,
#include "ops_columns.h"
#define OP(code, text, arity, columns) IR_OP_##code,
#include "ops.def"
#undef OP
  IR_OP_COUNT
} ir_opcode;

#define IR_VARIADIC (-1)

typedef enum ir_trait {
  IR_ELEMENTWISE = 1 << 0, /* same dims in and out, element by element */
  IR_COMMUTATIVE = 1 << 1,
  IR_COLLECTIVE = 1 << 2,
  IR_SIDE_EFFECT = 1 << 3, /* dead code elimination keeps it */
  IR_ASYNC_START = 1 << 4, /* generic or first-class */
  IR_ASYNC_UPDATE = 1 << 5,
  IR_ASYNC_DONE = 1 << 6,
  IR_DATA_MOVEMENT = 1 << 7,    /* result elements are operand elements, unchanged */
  IR_NONDETERMINISTIC = 1 << 8, /* never merged or folded: rng and such */
  IR_HAS_ACCURACY = 1 << 9,     /* may carry result_accuracy */
  IR_NEWER = 1 << 10            /* not in jaxlib 0.10.2 */
} ir_trait;

/* Which element types operand 0 may have: sets of base_dtype_kind. */
typedef enum ir_type_set {
  IR_T_PRED = 1 << 0,
  IR_T_SINT = 1 << 1,
  IR_T_UINT = 1 << 2,
  IR_T_FLOAT = 1 << 3,
  IR_T_COMPLEX = 1 << 4,
  IR_T_INT = IR_T_SINT | IR_T_UINT,
  IR_T_REAL = IR_T_INT | IR_T_FLOAT,
  IR_T_NUMBER = IR_T_REAL | IR_T_COMPLEX,
  IR_T_ANY = IR_T_NUMBER | IR_T_PRED
} ir_type_set;

typedef enum ir_attr_flags {
  IR_OPTIONAL = 0,
  IR_REQUIRED = 1 << 0, /* the reader refuses the op without it */
  IR_ALWAYS = 1 << 1    /* printed even when it has its default value */
} ir_attr_flags;

typedef struct ir_attr_spec {
  uint16_t key; /* 0 ends the list */
  uint16_t flags;
} ir_attr_spec;

typedef struct ir_verify_options ir_verify_options;
typedef int ir_infer_fn(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err);
/* Rules beyond what inference, arity and attribute kinds cover. */
typedef int ir_verify_fn(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err);

typedef struct ir_op_info {
  const char *text;
  int8_t arity; /* operands, or IR_VARIADIC */
  uint32_t traits;
  uint32_t types;            /* ir_type_set of operand 0; 0: not constrained here */
  const ir_attr_spec *attrs; /* own attributes in print order; every op may also have the common ones */
  uint16_t start, done;      /* PAIR: the matching start/done opcodes, or 0 */
  const char *doc;           /* one sentence, for the op reference */
  ir_infer_fn *infer;        /* NULL: the type does not follow from the operands */
  ir_verify_fn *verify;      /* NULL: nothing beyond the general rules */
} ir_op_info;

extern const ir_op_info ir_op_table[IR_OP_COUNT];
static inline const ir_op_info *ir_opcode_info(unsigned opcode) {
  return &ir_op_table[opcode];
}
static inline bool ir_opcode_has(unsigned opcode, ir_trait trait) {
  return (ir_op_table[opcode].traits & trait) != 0;
}
static inline const char *ir_opcode_text(unsigned opcode) {
  return ir_op_table[opcode].text;
}
/* The opcode of this name ("async-start", not the sugar), or IR_OP_INVALID. */
ir_opcode ir_opcode_from_text(const char *s, size_t n);
/* Whether the attribute is one of the opcode's own; *flags then set (may be NULL). */
bool ir_opcode_takes(unsigned opcode, ir_attr_key key, uint16_t *flags);
/* The words that a NAME or NAMES attribute of the opcode may hold, NULL at the end; NULL where any will do.
 * attr_words.c. */
const char *const *ir_attr_words(unsigned opcode, ir_attr_key key);

#endif
