/* Opcodes and their facts, from ops.def. Constant tables only. */
#ifndef XLAC_IR_OPCODE_H
#define XLAC_IR_OPCODE_H

#include "attrs/attr.h"

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

/* Facts that passes, verifiers and backends ask of an opcode instead of listing opcodes. */
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
  IR_NEWER = 1 << 10,           /* not in jaxlib 0.10.2 */
  IR_MLIR_ONLY = 1 << 11,       /* no HLO op: HLO text neither has nor reads it */
  IR_FOLDS_SHAPES = 1 << 12,    /* stablehlo-aggressive-folder folds it on integers, also where it folds shapes alone */
  IR_FOLDS = 1 << 13,           /* the same pass folds it unless it folds shapes alone */
  IR_QUANT_REAL = 1 << 14       /* on quantised tensors it is computed on the real numbers that they stand for */
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

/* Of one attribute of one opcode. */
typedef enum ir_attr_flags {
  IR_OPTIONAL = 0,
  IR_REQUIRED = 1 << 0,     /* the reader refuses the op without it */
  IR_ALWAYS = 1 << 1,       /* printed even when it has its default value */
  IR_NON_NEGATIVE = 1 << 2, /* MLIR integers */
  IR_POSITIVE = 1 << 3
} ir_attr_flags;

/* HLO form: one of the opcode's own attributes. */
typedef struct ir_attr_spec {
  uint16_t key; /* 0 ends the list */
  uint16_t flags;
} ir_attr_spec;

/* What an MLIR op's inherent attribute must be: the constraints of StableHLO's and CHLO's definitions. */
typedef enum ir_mattr_constraint {
  IR_MC_I64,            /* IR_M_INTEGER of i64 */
  IR_MC_I32,            /* of i32 */
  IR_MC_F32,            /* IR_M_FLOAT of f32 */
  IR_MC_BOOL,           /* IR_M_BOOL */
  IR_MC_UNIT,           /* IR_M_UNIT */
  IR_MC_STRING,         /* IR_M_STRING */
  IR_MC_SYMBOL,         /* flat IR_M_SYMBOL */
  IR_MC_SYMBOLS,        /* IR_M_ARRAY of flat symbols */
  IR_MC_I64S,           /* IR_M_DENSE_ARRAY of i64 */
  IR_MC_BOOLS,          /* IR_M_DENSE_ARRAY of i1 */
  IR_MC_DENSE_I64,      /* IR_M_DENSE of i64 */
  IR_MC_ELEMENTS,       /* IR_M_DENSE or IR_M_RESOURCE */
  IR_MC_DICT,           /* IR_M_DICT */
  IR_MC_ARRAY,          /* IR_M_ARRAY */
  IR_MC_STRING_OR_DICT, /* IR_M_STRING or IR_M_DICT */
  IR_MC_TYPED,          /* anything with a type */
  IR_MC_ENUM,           /* IR_M_ENUM named `sub` */
  IR_MC_PRECISIONS,     /* IR_M_ARRAY of IR_M_ENUM named `sub` */
  IR_MC_STRUCT,         /* IR_M_STRUCT named `sub` */
  IR_MC_GROUPS,         /* IR_M_DENSE of i64, rank 2, or IR_M_STRUCT "replica_group_mesh_axes" */
  IR_MC_LAYOUTS,        /* IR_M_ARRAY of IR_M_DENSE of index, rank 1 */
  IR_MC_TILINGS,        /* IR_M_ARRAY of such arrays */
  IR_MC_ALIASES,        /* IR_M_ARRAY of IR_M_STRUCT "output_operand_alias" */
  IR_MC_SDY             /* IR_M_SDY of the kind named `sub` */
} ir_mattr_constraint;

/* MLIR form: one of the op's inherent attributes; `sub` names the enum or struct where the constraint needs one. */
typedef struct ir_mattr_spec {
  const char *name;   /* NULL ends the list */
  uint8_t constraint; /* ir_mattr_constraint */
  uint8_t flags;      /* ir_attr_flags */
  const char *sub;
} ir_mattr_spec;

/* clang-format off: a table */
/* The MLIR column of a row: MLIR("stablehlo.iota", operands, results, regions, form, attributes). Counts may be
 * IR_VARIADIC. `form` is the pretty syntax that stands after the op's name, read and printed by text/mlir_form*; ""
 * means that the op has the generic form only. It is a list of items with a blank between:
 *
 *   %0 %1        operand of that number
 *   %*           all operands, with commas
 *   $name        an inherent attribute, bare: 3, [0, 1], HIGHEST, @f, "s"; those of the form are left out of {}
 *   x=$name      the same after "x=", without blanks
 *   {}           the dictionary of all other attributes, if any
 *   [name x y ]  the items between only where the attribute is there (and expected once the first item is seen)
 *   :fn          ": (operand types) -> result type(s)"
 *   :out         ": result types"
 *   :ops->out    ": operand types -> result type"
 *   :(ops)->out  the same with parentheses around the operand types
 *   :same :same* one type when operands and result agree, else as :fn (same*: nothing when there is no operand)
 *   :select :tuple :complex  the shortened types of those ops
 *   <word>       a pair of functions of its own
 *   others       that word or punctuation mark
 *
 * Source: the assembly formats of StableHLO 1.20. */
/* clang-format on */
typedef struct ir_mlir_info {
  const char *name;
  int8_t operands, results, regions;
  const char *form;
  const ir_mattr_spec *attrs; /* inherent ones in ODS order (that of VHLO's properties too), or NULL */
} ir_mlir_info;

typedef struct ir_verify_options ir_verify_options;
/* *out gets the type that follows from operands, attributes and called computations; op->type is not needed. */
typedef int ir_infer_fn(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err);
/* Rules beyond what inference, arity and attribute kinds cover. */
typedef int ir_verify_fn(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err);

/* A row of ops.def. Columns that a row leaves out are zero. */
typedef struct ir_op_info {
  const char *text;
  int8_t arity; /* operands, or IR_VARIADIC */
  uint32_t traits;
  uint32_t types;            /* ir_type_set of operand 0; 0: not constrained here */
  const ir_attr_spec *attrs; /* own attributes in print order; every op may also have the common ones */
  uint16_t start, done;      /* PAIR: the matching start/done opcodes, or 0 */
  const char *doc;           /* one sentence, for the op reference */
  const ir_mlir_info *mlir;  /* NULL: MLIR has no such op */
  ir_infer_fn *infer;        /* NULL: the type does not follow from the operands */
  ir_verify_fn *verify;      /* NULL: nothing beyond the general rules */
} ir_op_info;

extern const ir_op_info ir_op_table[IR_OP_COUNT];
/* opcode must be below IR_OP_COUNT: no bounds are checked. */
static inline const ir_op_info *ir_opcode_info(unsigned opcode) {
  return &ir_op_table[opcode];
}
static inline bool ir_opcode_has(unsigned opcode, ir_trait trait) {
  return (ir_op_table[opcode].traits & trait) != 0;
}
/* HLO's word, or, of ops that only MLIR has, the MLIR name. */
static inline const char *ir_opcode_text(unsigned opcode) {
  return ir_op_table[opcode].text;
}
/* The start that stands for the opcode made asynchronous, which has opcodes of its own for that, or IR_OP_INVALID. */
ir_opcode ir_opcode_pair_start(unsigned opcode);
/* The opcode of this name ("async-start", not the sugar), or IR_OP_INVALID. */
ir_opcode ir_opcode_from_text(const char *s, size_t n);
/* Whether HLO's text can hold an op: one of HLO's, or in executables one of MLIR's that has operands and nothing else.
 */
bool ir_opcode_has_text(unsigned opcode);
/* Also of the MLIR ops that executables have: CHLO's functions, and dynamic ops without attributes. */
ir_opcode ir_opcode_from_executable(const char *s, size_t n);
/* The opcode of this MLIR name ("stablehlo.add", "chlo.top_k", "func.call"), or IR_OP_INVALID. */
ir_opcode ir_opcode_from_mlir(const char *s, size_t n);
/* The inherent attribute of this name, or NULL. */
const ir_mattr_spec *ir_mattr_spec_find(unsigned opcode, const char *name, size_t n);
/* What the flags NON_NEGATIVE and POSITIVE ask of an integer: NULL where a has it, else "non-negative" or "positive".
 */
struct ir_mattr;
const char *ir_mattr_spec_lacks(const ir_mattr_spec *spec, const struct ir_mattr *a);
/* Whether the attribute is one of the opcode's own; *flags then set (may be NULL). */
bool ir_opcode_takes(unsigned opcode, ir_attr_key key, uint16_t *flags);
/* The words of a NAME or NAMES attribute of the opcode in HLO's spelling, by their numbers; "" where a number has none,
 * NULL at the end. attr.c. */
const char *const *ir_attr_words(unsigned opcode, ir_attr_key key);
/* One of them; "" where there is no such number. */
const char *ir_attr_word(unsigned opcode, ir_attr_key key, int64_t number);
/* The number of a word among `words`, or -1. */
int ir_word_number(const char *const *words, const char *s, size_t n);
/* "FFT, IFFT, RFFT or IRFFT" without the "or": the words, for errors. Returns buf. */
const char *ir_words_text(const char *const *words, char *buf, size_t size);

#endif
