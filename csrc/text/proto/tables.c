/* The tables of HloModuleProto: numbers as in jaxlib 0.10.2's xla/service/hlo.proto and xla/xla_data.proto. Both
 * reader and writer go by them, so that a field is named once. */
#include "tables.h"

#include <stddef.h>

/* ROW(attribute, opcode or 0, field of the message, field within that, field, form): 0 for messages that the
 * field does not lie in. ROW(LHS_BATCH_DIMS, IR_OP_RAGGED_DOT, 90, 1, 3, INTS): field 3 of field 1 of field 90. */
static const proto_attr proto_attrs[] = {
#define ROW(key, only, outer, inner, field, form) {IR_ATTR_##key, only, outer, inner, field, PROTO_FORM_##form}
    ROW(ALGORITHM, IR_OP_RNG_BIT_GENERATOR, 0, 0, 70, ENUM),
    ROW(ALGORITHM, 0, 51, 0, 2, ENUM),
    ROW(OPERAND_PRECISION, 0, 51, 0, 1, ENUMS),
    ROW(API_VERSION, 0, 0, 0, 77, ENUM),
    ROW(ASYNC_THREAD, 0, 0, 0, 79, STRING),
    ROW(BATCH_GROUP_COUNT, 0, 0, 0, 58, INT),
    ROW(FEATURE_GROUP_COUNT, 0, 0, 0, 50, INT),
    ROW(CHANNEL_ID, 0, 0, 0, 26, INT),
    ROW(CONSTRAIN_LAYOUT, 0, 0, 0, 56, BOOL),
    ROW(CONVOLUTION_KIND, 0, 0, 0, 97, ENUM),
    ROW(CROSS_PROGRAM_PREFETCH_INDEX, 0, 0, 0, 80, PRESENT),
    ROW(CUSTOM_CALL_HAS_SIDE_EFFECT, 0, 0, 0, 65, BOOL),
    ROW(CUSTOM_CALL_TARGET, 0, 0, 0, 28, STRING),
    ROW(DELTA, 0, 0, 0, 66, INT),
    ROW(DIM_LABELS, 0, 0, 0, 16, MESSAGE),
    ROW(DIMENSIONS, 0, 0, 0, 14, INTS),
    ROW(DIRECTION, 0, 0, 0, 63, WORD),
    ROW(DISTRIBUTION, 0, 0, 0, 23, ENUM),
    ROW(DOMAIN, 0, 0, 0, 54, MESSAGE),
    ROW(DYNAMIC_SLICE_SIZES, 0, 0, 0, 20, INTS),
    ROW(EPSILON, 0, 0, 0, 24, FLOAT),
    ROW(EXPONENT_BITS, 0, 0, 0, 18, INT),
    ROW(MANTISSA_BITS, 0, 0, 0, 19, INT),
    ROW(FEATURE_INDEX, 0, 0, 0, 25, INT),
    ROW(FFT_LENGTH, 0, 0, 0, 32, INTS),
    ROW(FFT_TYPE, 0, 0, 0, 31, ENUM),
    ROW(FRONTEND_ATTRIBUTES, 0, 0, 0, 68, MESSAGE),
    ROW(INDEX, 0, 0, 0, 13, INT),
    ROW(INDICES_ARE_SORTED, 0, 0, 0, 67, BOOL),
    ROW(UNIQUE_INDICES, 0, 0, 0, 69, BOOL),
    ROW(INFEED_CONFIG, 0, 0, 0, 27, STRING),
    ROW(INFERRED_DIMENSION, 0, 0, 0, 14, ONE),
    ROW(IOTA_DIMENSION, 0, 0, 0, 14, ONE),
    ROW(IS_ASSOCIATIVE, 0, 0, 0, 96, ENUM),
    ROW(IS_COMPOSITE, 0, 0, 0, 89, BOOL),
    ROW(IS_HOST_TRANSFER, 0, 0, 0, 47, BOOL),
    ROW(IS_REVERSE, 0, 0, 0, 94, BOOL),
    ROW(IS_STABLE, 0, 0, 0, 60, BOOL),
    ROW(K, 0, 0, 0, 81, INT),
    ROW(LARGEST, 0, 0, 0, 85, BOOL),
    ROW(KIND, 0, 0, 0, 11, WORD),
    ROW(LEFT_SIDE, 0, 59, 0, 1, BOOL),
    ROW(LOWER, IR_OP_CHOLESKY, 62, 0, 1, BOOL),
    ROW(LOWER, 0, 59, 0, 2, BOOL),
    ROW(UNIT_DIAGONAL, 0, 59, 0, 3, BOOL),
    ROW(TRANSPOSE_A, 0, 59, 0, 4, ENUM),
    ROW(LHS_CONTRACTING_DIMS, IR_OP_RAGGED_DOT, 90, 1, 1, INTS),
    ROW(RHS_CONTRACTING_DIMS, IR_OP_RAGGED_DOT, 90, 1, 2, INTS),
    ROW(LHS_BATCH_DIMS, IR_OP_RAGGED_DOT, 90, 1, 3, INTS),
    ROW(RHS_BATCH_DIMS, IR_OP_RAGGED_DOT, 90, 1, 4, INTS),
    ROW(LHS_RAGGED_DIMS, 0, 90, 0, 2, INTS),
    ROW(RHS_GROUP_DIMS, 0, 90, 0, 3, INTS),
    ROW(LHS_CONTRACTING_DIMS, 0, 30, 0, 1, INTS),
    ROW(RHS_CONTRACTING_DIMS, 0, 30, 0, 2, INTS),
    ROW(LHS_BATCH_DIMS, 0, 30, 0, 3, INTS),
    ROW(RHS_BATCH_DIMS, 0, 30, 0, 4, INTS),
    ROW(OFFSET_DIMS, 0, 33, 0, 1, INTS),
    ROW(COLLAPSED_SLICE_DIMS, 0, 33, 0, 2, INTS),
    ROW(START_INDEX_MAP, 0, 33, 0, 3, INTS),
    ROW(INDEX_VECTOR_DIM, IR_OP_GATHER, 33, 0, 4, INT),
    ROW(OPERAND_BATCHING_DIMS, 0, 33, 0, 5, INTS),
    ROW(START_INDICES_BATCHING_DIMS, 0, 33, 0, 6, INTS),
    ROW(SLICE_SIZES, 0, 0, 0, 34, INTS),
    ROW(UPDATE_WINDOW_DIMS, 0, 48, 0, 1, INTS),
    ROW(INSERTED_WINDOW_DIMS, 0, 48, 0, 2, INTS),
    ROW(SCATTER_DIMS_TO_OPERAND_DIMS, 0, 48, 0, 3, INTS),
    ROW(INDEX_VECTOR_DIM, 0, 48, 0, 4, INT),
    ROW(INPUT_BATCHING_DIMS, 0, 48, 0, 5, INTS),
    ROW(SCATTER_INDICES_BATCHING_DIMS, 0, 48, 0, 6, INTS),
    ROW(LITERAL, 0, 0, 0, 8, MESSAGE),
    ROW(METADATA, 0, 0, 0, 7, MESSAGE),
    ROW(NUM_CARRIES, 0, 0, 0, 95, INT),
    ROW(OPERAND_LAYOUT_CONSTRAINTS, 0, 0, 0, 57, MESSAGE),
    ROW(ORIGIN, 0, 0, 0, 88, MESSAGE),
    ROW(OUTFEED_CONFIG, 0, 0, 0, 22, STRING),
    ROW(OUTFEED_SHAPE, 0, 0, 0, 29, MESSAGE),
    ROW(OUTPUT_TO_OPERAND_ALIASING, 0, 0, 0, 74, MESSAGE),
    ROW(PADDING, 0, 0, 0, 21, MESSAGE),
    ROW(PADDING_TYPE, 0, 0, 0, 75, ENUM),
    ROW(PARAMETER_REPLICATION, 0, 61, 0, 1, INTS),
    ROW(REPLICA_GROUPS, 0, 0, 0, 87, MESSAGE),
    ROW(RESULT_ACCURACY, 0, 0, 0, 91, MESSAGE),
    ROW(SCHEDULE, 0, 0, 0, 76, ENUM),
    ROW(SHARDING, 0, 0, 0, 40, MESSAGE),
    ROW(SLICE, 0, 0, 0, 17, MESSAGE),
    ROW(PERMUTE_SLICE_SIZES, 0, 0, 0, 20, MESSAGE),
    ROW(SOURCE_TARGET_PAIRS, 0, 0, 0, 52, MESSAGE),
    ROW(SPARSITY_CONFIG, 0, 0, 0, 98, MESSAGE),
    ROW(STATISTICS, 0, 0, 0, 82, MESSAGE),
    ROW(TYPE, 0, 0, 0, 72, WORD),
    ROW(USE_GLOBAL_DEVICE_IDS, 0, 0, 0, 71, BOOL),
    ROW(WINDOW, 0, 0, 0, 15, MESSAGE),
    ROW(BACKEND_CONFIG, 0, 0, 0, 43, MESSAGE),
#undef ROW
};
/* A row for one opcode stands before the row for all others. */
enum { N_PROTO_ATTRS = sizeof proto_attrs / sizeof *proto_attrs };

/* Some ninety rows: a search from the beginning is fast enough for a format that is read once. */
const proto_attr *proto_attr_of(unsigned opcode, unsigned key) {
  for (uint32_t i = 0; i < N_PROTO_ATTRS; i++) {
    const proto_attr *a = &proto_attrs[i];
    if (a->key == key && (a->only == 0 || a->only == opcode)) return a;
  }
  return NULL;
}

/* --- element types --- */

/* The number of xla.PrimitiveType; every element type has one. */
int64_t proto_dtype_number(base_dtype t) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT && base_dtype_of(t)->proto);
  return base_dtype_of(t)->proto;
}

/* BASE_DTYPE_INVALID for numbers of what is not an element type: tuples, tokens, opaque values. */
base_dtype proto_dtype_of(int64_t number) {
  for (int t = BASE_DTYPE_INVALID + 1; t < BASE_DTYPE_COUNT; t++)
    if (base_dtype_table[t].proto == number) return (base_dtype)t;
  return BASE_DTYPE_INVALID;
}

/* The field of LiteralProto that holds elements of type t, and how they stand there. */
uint32_t proto_literal_field(base_dtype t, base_proto_values *how) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT && base_dtype_of(t)->proto_field);
  *how = (base_proto_values)base_dtype_of(t)->proto_values;
  return base_dtype_of(t)->proto_field;
}

/* Fields of OpMetadata: number, whether it is a string, and where it is kept. */
const proto_metadata_field proto_metadata_fields[] = {
#define ROW(number, is_string, member) {number, is_string, offsetof(ir_metadata, member)}
    ROW(1, true, op_type),
    ROW(2, true, op_name),
    ROW(3, true, source_file),
    ROW(4, false, source_line),
    ROW(17, false, source_end_line),
    ROW(18, false, source_column),
    ROW(19, false, source_end_column),
    ROW(8, false, size_of_generated_code),
    ROW(9, false, size_of_memory_working_set),
    ROW(12, true, deduplicated_name),
    ROW(16, true, scheduling_name),
#undef ROW
};
const uint32_t proto_n_metadata_fields = sizeof proto_metadata_fields / sizeof *proto_metadata_fields;

/* --- element orders --- */

/* A layout that does not fit the type is ignored: literals of such are refused elsewhere. */
bool proto_walk_start(proto_walk *w, const ir_type *t) {
  bool is_row_major = true;
  if (!t->layout || t->layout->rank != t->rank || t->rank < 2) return false;
  w->rank = t->rank;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t d = t->layout->minor_to_major[i], stride = 1;
    if (d < 0 || d >= (int64_t)t->rank) return false;
    is_row_major = is_row_major && d == (int64_t)(t->rank - 1 - i);
    for (uint32_t j = (uint32_t)d + 1; j < t->rank; j++) stride *= t->dims[j];
    w->index[i] = 0;
    w->size[i] = t->dims[d];
    w->stride[i] = stride;
  }
  return !is_row_major;
}

/* Counts like an odometer whose fastest wheel is the most minor dimension; after the last element it is at 0 again. */
int64_t proto_walk_next(proto_walk *w, int64_t place) {
  for (uint32_t i = 0; i < w->rank; i++) {
    place += w->stride[i];
    if (++w->index[i] < w->size[i]) return place;
    place -= w->size[i] * w->stride[i];
    w->index[i] = 0;
  }
  assert(place == 0);
  return place;
}
