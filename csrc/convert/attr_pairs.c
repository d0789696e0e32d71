/* The pairs of attributes that column MLIR_ATTRS of ops.def gives: for each opcode, which HLO attribute is which
 * StableHLO attribute. An opcode without that column has none that is the same in both but for its spelling. Whoever
 * fills it adds cases to tests/stablehlo/test_from_hlo.py and test_to_hlo.py. */
#include "attr_pairs.h"

#include "../ir/ops_columns.h"
#undef MLIR_ATTRS
#define MLIR_ATTRS(...) (const attr_pair[]){__VA_ARGS__, {NULL, NULL, 0, 0}},
#define P(name, key, kind) {name, NULL, IR_ATTR_##key, PAIR_##kind}
#define F(name, field, key, kind) {name, field, IR_ATTR_##key, PAIR_##kind}
#define OP(code, text, arity, columns) [IR_OP_##code] = {columns},
static const struct {
  const attr_pair *pairs;
} attr_pair_rows[IR_OP_COUNT] = {
#include "../ir/ops.def"
};
#undef OP
#undef P
#undef F

/* Opcodes without a row share one empty list. */
const attr_pair *attr_pairs(unsigned opcode) {
  static const attr_pair none = {NULL, NULL, 0, 0};
  assert(opcode < IR_OP_COUNT);
  return attr_pair_rows[opcode].pairs ? attr_pair_rows[opcode].pairs : &none;
}

/* A search takes the first row that fits. Rows are XLA's names of algorithms; StableHLO can say others, which are
 * refused. */
const attr_algorithm attr_algorithms[] = {
    {IR_DOT_F8_F8_F32, "f8", "f32", 1, false},          {IR_DOT_F8_F8_F32_FAST_ACCUM, "f8", "f32", 1, true},
    {IR_DOT_F8_F8_ANY, "f8", "f8", 1, false},           {IR_DOT_F8_F8_ANY_FAST_ACCUM, "f8", "f8", 1, true},
    {IR_DOT_F16_F16_F16, "f16", "f16", 1, false},       {IR_DOT_F16_F16_F32, "f16", "f32", 1, false},
    {IR_DOT_BF16_BF16_BF16, "bf16", "bf16", 1, false},  {IR_DOT_BF16_BF16_F32, "bf16", "f32", 1, false},
    {IR_DOT_BF16_BF16_F32_X3, "bf16", "f32", 3, false}, {IR_DOT_BF16_BF16_F32_X6, "bf16", "f32", 6, false},
    {IR_DOT_BF16_BF16_F32_X9, "bf16", "f32", 9, false}, {IR_DOT_TF32_TF32_F32, "tf32", "f32", 1, false},
    {IR_DOT_TF32_TF32_F32_X3, "tf32", "f32", 3, false}, {IR_DOT_F32_F32_F32, "f32", "f32", 1, false},
    {IR_DOT_F64_F64_F64, "f64", "f64", 1, false},       {IR_DOT_UNSET, NULL, NULL, 0, false},
};

/* XLA sets these on custom calls that replace other ops (a convolution by cuDNN has a window and dim_labels). */
const ir_attr_key attr_call_extras[] = {IR_ATTR_WINDOW,
                                        IR_ATTR_DIM_LABELS,
                                        IR_ATTR_FEATURE_GROUP_COUNT,
                                        IR_ATTR_BATCH_GROUP_COUNT,
                                        IR_ATTR_OPERAND_PRECISION,
                                        IR_ATTR_PADDING_TYPE,
                                        IR_ATTR_SCHEDULE,
                                        IR_ATTR_LITERAL,
                                        IR_ATTR_NONE};

/* IR_OP_TOPK among them only where it asks for the smallest: StableHLO has the other one as chlo.top_k. */
const ir_opcode attr_encoded_ops[] = {IR_OP_TOPK,
                                      IR_OP_STOCHASTIC_CONVERT,
                                      IR_OP_RNG_GET_AND_UPDATE_STATE,
                                      IR_OP_SCALED_DOT,
                                      IR_OP_DOMAIN,
                                      IR_OP_SHUFFLE,
                                      IR_OP_INVALID};
