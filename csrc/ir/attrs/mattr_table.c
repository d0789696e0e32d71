/* StableHLO's and CHLO's structured attributes and enums, as constant tables. Source: their definitions, 1.20. */
#include "../ir.h"

#define FIELDS(...) ((const ir_field_info[]){__VA_ARGS__, {NULL, 0, false, NULL}})
#define DIMS(name) {name, IR_F_I64S, false, NULL}
#define NUMBER(name) {name, IR_F_I64, false, NULL}

static const ir_struct_info mattr_structs[] = {
    {"stablehlo", "gather",
     FIELDS(DIMS("offset_dims"), DIMS("collapsed_slice_dims"), DIMS("operand_batching_dims"),
            DIMS("start_indices_batching_dims"), DIMS("start_index_map"), NUMBER("index_vector_dim"))},
    {"stablehlo", "scatter",
     FIELDS(DIMS("update_window_dims"), DIMS("inserted_window_dims"), DIMS("input_batching_dims"),
            DIMS("scatter_indices_batching_dims"), DIMS("scatter_dims_to_operand_dims"), NUMBER("index_vector_dim"))},
    {"stablehlo", "dot",
     FIELDS(DIMS("lhs_batching_dimensions"), DIMS("rhs_batching_dimensions"), DIMS("lhs_contracting_dimensions"),
            DIMS("rhs_contracting_dimensions"))},
    {"chlo", "ragged_dot",
     FIELDS(DIMS("lhs_batching_dimensions"), DIMS("rhs_batching_dimensions"), DIMS("lhs_contracting_dimensions"),
            DIMS("rhs_contracting_dimensions"), DIMS("lhs_ragged_dimensions"), DIMS("rhs_group_dimensions"))},
    {"stablehlo", "dot_algorithm",
     FIELDS({"lhs_precision_type", IR_F_TYPE, true, NULL}, {"rhs_precision_type", IR_F_TYPE, true, NULL},
            {"accumulation_type", IR_F_TYPE, true, NULL}, {"lhs_component_count", IR_F_I64, true, NULL},
            {"rhs_component_count", IR_F_I64, true, NULL}, {"num_primitive_operations", IR_F_I64, true, NULL},
            {"allow_imprecise_accumulation", IR_F_BOOL, true, NULL})},
    /* conv has a syntax of its own, #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]> and raw<...>. */
    {"stablehlo", "conv",
     FIELDS({"input_batch_dimension", IR_F_I64, true, NULL}, {"input_feature_dimension", IR_F_I64, true, NULL},
            DIMS("input_spatial_dimensions"), {"kernel_input_feature_dimension", IR_F_I64, true, NULL},
            {"kernel_output_feature_dimension", IR_F_I64, true, NULL}, DIMS("kernel_spatial_dimensions"),
            {"output_batch_dimension", IR_F_I64, true, NULL}, {"output_feature_dimension", IR_F_I64, true, NULL},
            DIMS("output_spatial_dimensions"))},
    {"stablehlo", "channel_handle", FIELDS({"handle", IR_F_I64, true, NULL}, {"type", IR_F_I64, true, NULL})},
    {"stablehlo", "output_operand_alias",
     FIELDS({"output_tuple_indices", IR_F_I64S, true, NULL}, {"operand_index", IR_F_I64, true, NULL},
            {"operand_tuple_indices", IR_F_I64S, true, NULL})},
    {"stablehlo", "type_extensions", FIELDS({"bounds", IR_F_I64S, true, NULL})},
    {"stablehlo", "result_accuracy",
     FIELDS({"atol", IR_F_F64, false, NULL}, {"rtol", IR_F_F64, false, NULL}, NUMBER("ulps"),
            {"mode", IR_F_ENUM, true, "result_accuracy_mode"})},
    {"stablehlo", "axis_ref", FIELDS({"name", IR_F_STRING, true, NULL}, {"sub_axis_info", IR_F_ANY, false, NULL})},
    {"stablehlo", "sub_axis_info", FIELDS({"pre_size", IR_F_I64, true, NULL}, {"size", IR_F_I64, true, NULL})},
    {"stablehlo", "mesh_axis", FIELDS({"name", IR_F_STRING, true, NULL}, {"size", IR_F_I64, true, NULL})},
    {"stablehlo", "mesh", FIELDS({"axes", IR_F_ANY, true, NULL}, {"device_ids", IR_F_ANY, false, NULL})},
    {"stablehlo", "replica_group_mesh_axes", FIELDS({"mesh", IR_F_ANY, true, NULL}, {"axes", IR_F_ANY, true, NULL})},
};

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
static const ir_enum_info mattr_enums[] = {
    {"stablehlo", "precision", WORDS("DEFAULT", "HIGH", "HIGHEST")},
    {"stablehlo", "result_accuracy_mode", WORDS("DEFAULT", "HIGHEST", "TOLERANCE")},
    {"stablehlo", "fft_type", WORDS("FFT", "IFFT", "RFFT", "IRFFT")},
    {"stablehlo", "custom_call_api_version",
     WORDS("API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
           "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI")},
    {"stablehlo", "comparison_direction", WORDS("EQ", "NE", "GE", "GT", "LE", "LT")},
    {"stablehlo", "comparison_type", WORDS("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")},
    {"stablehlo", "transpose", WORDS("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")},
    {"stablehlo", "rng_distribution", WORDS("", "UNIFORM", "NORMAL")},
    {"stablehlo", "rng_algorithm", WORDS("DEFAULT", "THREE_FRY", "PHILOX")},
    {"chlo", "comparison_direction", WORDS("EQ", "NE", "GE", "GT", "LE", "LT")},
    {"chlo", "comparison_type", WORDS("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")},
    {"chlo", "precision", WORDS("DEFAULT", "HIGH", "HIGHEST")},
};

static bool table_word_is(const char *word, const char *s, size_t n) {
  return strncmp(word, s, n) == 0 && word[n] == 0;
}

const ir_struct_info *ir_struct_find(const char *dialect, size_t dialect_n, const char *name, size_t n) {
  for (size_t i = 0; i < sizeof mattr_structs / sizeof *mattr_structs; i++)
    if (table_word_is(mattr_structs[i].dialect, dialect, dialect_n) && table_word_is(mattr_structs[i].name, name, n))
      return &mattr_structs[i];
  return NULL;
}

const ir_enum_info *ir_enum_find(const char *dialect, size_t dialect_n, const char *name, size_t n) {
  for (size_t i = 0; i < sizeof mattr_enums / sizeof *mattr_enums; i++)
    if (table_word_is(mattr_enums[i].dialect, dialect, dialect_n) && table_word_is(mattr_enums[i].name, name, n))
      return &mattr_enums[i];
  return NULL;
}
