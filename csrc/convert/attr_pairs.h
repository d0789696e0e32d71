/* Which of an HLO op's typed attributes is which of the StableHLO op's inherent ones. One table serves both ways.
 *
 *   HLO        dimensions={1,0}, slice_sizes={1,4}
 *   StableHLO  permutation = array<i64: 1, 0>, slice_sizes = array<i64: 1, 4>
 *
 * Attributes that need more than a change of spelling (windows, paddings, slices, comparisons) have no pair:
 * from_hlo_attrs.c and to_hlo_attrs.c have a function for each. */
#ifndef XLAC_CONVERT_ATTR_PAIRS_H
#define XLAC_CONVERT_ATTR_PAIRS_H

#include "convert.h"

/* How the value is written in each form, StableHLO first. */
typedef enum attr_pair_kind {
  PAIR_INT,       /* 3 : i64 and 3 */
  PAIR_I32,       /* 3 : i32 and 3 */
  PAIR_DIM,       /* 3 : i64 and {3} */
  PAIR_INTS,      /* array<i64: 3, 4> and {3,4} */
  PAIR_SPARSE,    /* the same; HLO leaves out an empty list */
  PAIR_BOOL,      /* false and false */
  PAIR_FLAG,      /* false and nothing */
  PAIR_UNIT,      /* nothing and nothing */
  PAIR_F32,       /* 1.0 : f32 and 1 */
  PAIR_WORD,      /* an enum's word, the same in both */
  PAIR_COUNT,     /* 1 : i64 and nothing */
  PAIR_PRECISION, /* [HIGH, DEFAULT] and {high,default} */
  PAIR_ALGORITHM,
  PAIR_CONV_DIMS,
  PAIR_GROUPS,  /* dense<[[0, 1]]> and {{0,1}} */
  PAIR_TARGETS, /* dense<[[0, 1]]> and {{0,1}}, source-target pairs */
  PAIR_CHANNEL, /* #stablehlo.channel_handle<handle = 1, type = 0> and 1 */
  PAIR_ACCURACY
} attr_pair_kind;

/* A row of the table. Rows with a `field` stand for a part of a struct, such as dot_dimension_numbers; all rows of
 * one struct follow one another, so that the struct can be made in one go. */
typedef struct attr_pair {
  const char *name;  /* NULL ends */
  const char *field; /* of the struct `name`, or NULL: the attribute itself */
  uint16_t key;      /* ir_attr_key */
  uint8_t kind;      /* attr_pair_kind */
} attr_pair;

/* The pairs of an opcode, fields of one struct one after another; never NULL. */
const attr_pair *attr_pairs(unsigned opcode);

/* HLO's name for a dot algorithm, and its parts. The types are words as in StableHLO, but "f8" is any 8-bit float
 * and "tf32" a type that exists here by name only. `products` is num_primitive_operations: bf16_bf16_f32_x3 does 3. */
typedef struct attr_algorithm {
  ir_dot algorithm;
  const char *operands, *accumulation; /* NULL ends */
  int64_t products;
  bool imprecise;
} attr_algorithm;
extern const attr_algorithm attr_algorithms[];

/* What a custom call may have in HLO and has no place for in StableHLO: it travels as "mhlo.<name>" in HLO's words.
 * IR_ATTR_NONE ends. */
extern const ir_attr_key attr_call_extras[];
/* Ops that StableHLO lacks and XLA encodes as custom calls "mhlo.<op>". IR_OP_INVALID ends. */
extern const ir_opcode attr_encoded_ops[];

#endif
