/* The table of attribute pairs: for each opcode, which HLO attribute is which StableHLO attribute.
 *
 * An opcode without a row has no attribute that is the same in both but for its spelling. Whoever adds an op adds
 * its row here, and cases to tests/stablehlo/test_from_hlo.py and test_to_hlo.py. */
#include "attr_pairs.h"

/* A row ends in an entry without a name, so rows need no lengths. */
#define ATTR_PAIRS(...) ((const attr_pair[]){__VA_ARGS__, {NULL, NULL, 0, 0}})
#define ATTR_PAIR(name, key, kind) {name, NULL, IR_ATTR_##key, PAIR_##kind}
#define ATTR_PAIR_FIELD(name, field, key, kind) {name, field, IR_ATTR_##key, PAIR_##kind}

/* Elementwise functions that take a result accuracy. */
#define PAIRS_ACCURACY ATTR_PAIRS(ATTR_PAIR("result_accuracy", RESULT_ACCURACY, ACCURACY))
/* Batch normalisation, all three ops. */
#define PAIRS_EPSILON ATTR_PAIRS(ATTR_PAIR("epsilon", EPSILON, F32), ATTR_PAIR("feature_index", FEATURE_INDEX, INT))
/* Collectives: who takes part. HLO's channel_id is one number; StableHLO's channel_handle has a type beside it. */
#define PAIRS_GROUP \
  ATTR_PAIR("replica_groups", REPLICA_GROUPS, GROUPS), ATTR_PAIR("channel_handle", CHANNEL_ID, CHANNEL)
#define PAIRS_GLOBAL PAIRS_GROUP, ATTR_PAIR("use_global_device_ids", USE_GLOBAL_DEVICE_IDS, UNIT)
/* The four lists of a dot, as fields of a struct. */
#define PAIRS_DOT(name)                                                                \
  ATTR_PAIR_FIELD(name, "lhs_batching_dimensions", LHS_BATCH_DIMS, SPARSE),            \
      ATTR_PAIR_FIELD(name, "rhs_batching_dimensions", RHS_BATCH_DIMS, SPARSE),        \
      ATTR_PAIR_FIELD(name, "lhs_contracting_dimensions", LHS_CONTRACTING_DIMS, INTS), \
      ATTR_PAIR_FIELD(name, "rhs_contracting_dimensions", RHS_CONTRACTING_DIMS, INTS)
#define PAIRS_RAGGED "ragged_dot_dimension_numbers"
#define PAIRS_GATHER "dimension_numbers"
#define PAIRS_SCATTER "scatter_dimension_numbers"

/* By opcode, in the order of the kinds of op: elementwise, shapes, gather and scatter, contractions, linear algebra,
 * collectives. */
static const attr_pair *const attr_pair_rows[IR_OP_COUNT] = {
    [IR_OP_CBRT] = PAIRS_ACCURACY,
    [IR_OP_COSINE] = PAIRS_ACCURACY,
    [IR_OP_EXP] = PAIRS_ACCURACY,
    [IR_OP_EXPM1] = PAIRS_ACCURACY,
    [IR_OP_LOG] = PAIRS_ACCURACY,
    [IR_OP_LOG1P] = PAIRS_ACCURACY,
    [IR_OP_LOGISTIC] = PAIRS_ACCURACY,
    [IR_OP_RSQRT] = PAIRS_ACCURACY,
    [IR_OP_SINE] = PAIRS_ACCURACY,
    [IR_OP_SQRT] = PAIRS_ACCURACY,
    [IR_OP_TAN] = PAIRS_ACCURACY,
    [IR_OP_TANH] = PAIRS_ACCURACY,
    [IR_OP_REDUCE_PRECISION] =
        ATTR_PAIRS(ATTR_PAIR("exponent_bits", EXPONENT_BITS, I32), ATTR_PAIR("mantissa_bits", MANTISSA_BITS, I32)),
    [IR_OP_IOTA] = ATTR_PAIRS(ATTR_PAIR("iota_dimension", IOTA_DIMENSION, INT)),
    [IR_OP_RNG] = ATTR_PAIRS(ATTR_PAIR("rng_distribution", DISTRIBUTION, RNG_WORD)),
    [IR_OP_RNG_BIT_GENERATOR] = ATTR_PAIRS(ATTR_PAIR("rng_algorithm", ALGORITHM, RNG_WORD)),
    [IR_OP_BROADCAST] = ATTR_PAIRS(ATTR_PAIR("broadcast_dimensions", DIMENSIONS, INTS)),
    [IR_OP_CONCATENATE] = ATTR_PAIRS(ATTR_PAIR("dimension", DIMENSIONS, DIM)),
    [IR_OP_GET_DIMENSION_SIZE] = ATTR_PAIRS(ATTR_PAIR("dimension", DIMENSIONS, DIM)),
    [IR_OP_SET_DIMENSION_SIZE] = ATTR_PAIRS(ATTR_PAIR("dimension", DIMENSIONS, DIM)),
    [IR_OP_TRANSPOSE] = ATTR_PAIRS(ATTR_PAIR("permutation", DIMENSIONS, INTS)),
    [IR_OP_REVERSE] = ATTR_PAIRS(ATTR_PAIR("dimensions", DIMENSIONS, INTS)),
    [IR_OP_REDUCE] = ATTR_PAIRS(ATTR_PAIR("dimensions", DIMENSIONS, INTS)),
    [IR_OP_MAP] = ATTR_PAIRS(ATTR_PAIR("dimensions", DIMENSIONS, INTS)),
    [IR_OP_DYNAMIC_SLICE] = ATTR_PAIRS(ATTR_PAIR("slice_sizes", DYNAMIC_SLICE_SIZES, INTS)),
    [IR_OP_GATHER] = ATTR_PAIRS(
        ATTR_PAIR_FIELD(PAIRS_GATHER, "offset_dims", OFFSET_DIMS, INTS),
        ATTR_PAIR_FIELD(PAIRS_GATHER, "collapsed_slice_dims", COLLAPSED_SLICE_DIMS, INTS),
        ATTR_PAIR_FIELD(PAIRS_GATHER, "operand_batching_dims", OPERAND_BATCHING_DIMS, SPARSE),
        ATTR_PAIR_FIELD(PAIRS_GATHER, "start_indices_batching_dims", START_INDICES_BATCHING_DIMS, SPARSE),
        ATTR_PAIR_FIELD(PAIRS_GATHER, "start_index_map", START_INDEX_MAP, INTS),
        ATTR_PAIR_FIELD(PAIRS_GATHER, "index_vector_dim", INDEX_VECTOR_DIM, INT),
        ATTR_PAIR("slice_sizes", SLICE_SIZES, INTS), ATTR_PAIR("indices_are_sorted", INDICES_ARE_SORTED, FLAG)),
    [IR_OP_SCATTER] = ATTR_PAIRS(
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "update_window_dims", UPDATE_WINDOW_DIMS, INTS),
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "inserted_window_dims", INSERTED_WINDOW_DIMS, INTS),
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "input_batching_dims", INPUT_BATCHING_DIMS, SPARSE),
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "scatter_indices_batching_dims", SCATTER_INDICES_BATCHING_DIMS, SPARSE),
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "scatter_dims_to_operand_dims", SCATTER_DIMS_TO_OPERAND_DIMS, INTS),
        ATTR_PAIR_FIELD(PAIRS_SCATTER, "index_vector_dim", INDEX_VECTOR_DIM, INT),
        ATTR_PAIR("indices_are_sorted", INDICES_ARE_SORTED, FLAG), ATTR_PAIR("unique_indices", UNIQUE_INDICES, FLAG)),
    [IR_OP_GET_TUPLE_ELEMENT] = ATTR_PAIRS(ATTR_PAIR("index", INDEX, I32)),
    [IR_OP_CONVOLUTION] = ATTR_PAIRS(ATTR_PAIR("dimension_numbers", DIM_LABELS, CONV_DIMS),
                                     ATTR_PAIR("feature_group_count", FEATURE_GROUP_COUNT, COUNT),
                                     ATTR_PAIR("batch_group_count", BATCH_GROUP_COUNT, COUNT),
                                     ATTR_PAIR("precision_config", OPERAND_PRECISION, PRECISION)),
    [IR_OP_DOT] =
        ATTR_PAIRS(PAIRS_DOT("dot_dimension_numbers"), ATTR_PAIR("precision_config", OPERAND_PRECISION, PRECISION),
                   ATTR_PAIR("algorithm", ALGORITHM, ALGORITHM)),
    [IR_OP_RAGGED_DOT] = ATTR_PAIRS(PAIRS_DOT(PAIRS_RAGGED),
                                    ATTR_PAIR_FIELD(PAIRS_RAGGED, "lhs_ragged_dimensions", LHS_RAGGED_DIMS, INTS),
                                    ATTR_PAIR_FIELD(PAIRS_RAGGED, "rhs_group_dimensions", RHS_GROUP_DIMS, SPARSE),
                                    ATTR_PAIR("precision_config", OPERAND_PRECISION, PRECISION)),
    [IR_OP_SORT] = ATTR_PAIRS(ATTR_PAIR("is_stable", IS_STABLE, FLAG)),
    [IR_OP_TOPK] = ATTR_PAIRS(ATTR_PAIR("k", K, INT)),
    [IR_OP_CHOLESKY] = ATTR_PAIRS(ATTR_PAIR("lower", LOWER, FLAG)),
    [IR_OP_TRIANGULAR_SOLVE] =
        ATTR_PAIRS(ATTR_PAIR("left_side", LEFT_SIDE, BOOL), ATTR_PAIR("lower", LOWER, BOOL),
                   ATTR_PAIR("unit_diagonal", UNIT_DIAGONAL, BOOL), ATTR_PAIR("transpose_a", TRANSPOSE_A, WORD)),
    [IR_OP_FFT] = ATTR_PAIRS(ATTR_PAIR("fft_type", FFT_TYPE, WORD), ATTR_PAIR("fft_length", FFT_LENGTH, INTS)),
    [IR_OP_BATCH_NORM_TRAINING] = PAIRS_EPSILON,
    [IR_OP_BATCH_NORM_INFERENCE] = PAIRS_EPSILON,
    [IR_OP_BATCH_NORM_GRAD] = PAIRS_EPSILON,
    [IR_OP_ALL_GATHER] = ATTR_PAIRS(ATTR_PAIR("all_gather_dim", DIMENSIONS, DIM), PAIRS_GLOBAL),
    [IR_OP_ALL_REDUCE] = ATTR_PAIRS(PAIRS_GLOBAL),
    [IR_OP_COLLECTIVE_REDUCE] = ATTR_PAIRS(PAIRS_GLOBAL),
    [IR_OP_REDUCE_SCATTER] = ATTR_PAIRS(ATTR_PAIR("scatter_dimension", DIMENSIONS, DIM), PAIRS_GLOBAL),
    [IR_OP_ALL_TO_ALL] = ATTR_PAIRS(PAIRS_GROUP),
    [IR_OP_COLLECTIVE_BROADCAST] = ATTR_PAIRS(PAIRS_GROUP),
    [IR_OP_COLLECTIVE_PERMUTE] = ATTR_PAIRS(ATTR_PAIR("source_target_pairs", SOURCE_TARGET_PAIRS, TARGETS),
                                            ATTR_PAIR("channel_handle", CHANNEL_ID, CHANNEL)),
};

/* Opcodes without a row share one empty list. */
const attr_pair *attr_pairs(unsigned opcode) {
  static const attr_pair none = {NULL, NULL, 0, 0};
  assert(opcode < IR_OP_COUNT);
  return attr_pair_rows[opcode] ? attr_pair_rows[opcode] : &none;
}

/* A search takes the first row that fits. Rows are XLA's names of algorithms; StableHLO can say others, which are
 * refused. */
const attr_algorithm attr_algorithms[] = {
    {"dot_any_f8_any_f8_f32", "f8", "f32", 1, false},  {"dot_any_f8_any_f8_f32_fast_accum", "f8", "f32", 1, true},
    {"dot_any_f8_any_f8_any", "f8", "f8", 1, false},   {"dot_any_f8_any_f8_any_fast_accum", "f8", "f8", 1, true},
    {"dot_f16_f16_f16", "f16", "f16", 1, false},       {"dot_f16_f16_f32", "f16", "f32", 1, false},
    {"dot_bf16_bf16_bf16", "bf16", "bf16", 1, false},  {"dot_bf16_bf16_f32", "bf16", "f32", 1, false},
    {"dot_bf16_bf16_f32_x3", "bf16", "f32", 3, false}, {"dot_bf16_bf16_f32_x6", "bf16", "f32", 6, false},
    {"dot_bf16_bf16_f32_x9", "bf16", "f32", 9, false}, {"dot_tf32_tf32_f32", "tf32", "f32", 1, false},
    {"dot_tf32_tf32_f32_x3", "tf32", "f32", 3, false}, {"dot_f32_f32_f32", "f32", "f32", 1, false},
    {"dot_f64_f64_f64", "f64", "f64", 1, false},       {NULL, NULL, NULL, 0, false},
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
