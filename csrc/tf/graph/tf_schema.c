/* The tables behind tf_schema.h. */
#include "tf_schema.h"

/* One list of all rows; a message begins after the END of the one before. */
static const tf_field_info tf_all_fields[] = {
    {.kind = TF_FIELD_END},
#define MESSAGE(name)
#define FIELD(name, number, kind, repeated, message) {name, number, TF_FIELD_##kind, repeated, TF_MSG_##message},
#define END() {.kind = TF_FIELD_END},
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

/* Places in that list, counted by the compiler. */
enum tf_field_place {
  TF_AT_NONE_LAST = 0,
#define MESSAGE(name) TF_AT_##name, TF_AT_##name##_BACK = TF_AT_##name - 1,
#define FIELD(name, number, kind, repeated, message) TF_AT_LINE(__LINE__),
#define END() TF_AT_LINE(__LINE__),
#define TF_AT_LINE(line) TF_AT_LINE2(line)
#define TF_AT_LINE2(line) TF_AT_ROW_##line
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
#undef TF_AT_LINE
#undef TF_AT_LINE2
};

static const uint16_t tf_message_places[TF_MSG_COUNT] = {
    [TF_MSG_NONE] = 0,
#define MESSAGE(name) [TF_MSG_##name] = TF_AT_##name,
#define FIELD(name, number, kind, repeated, message)
#define END()
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

static const struct tf_full_type_row {
  const char *name;
  int number;
} tf_full_type_rows[] = {
    {"TFT_UNSET", 0},
    {"TFT_VAR", 1},
    {"TFT_ANY", 2},
    {"TFT_PRODUCT", 3},
    {"TFT_NAMED", 4},
    {"TFT_FOR_EACH", 20},
    {"TFT_CALLABLE", 100},
    {"TFT_BOOL", 200},
    {"TFT_UINT8", 201},
    {"TFT_UINT16", 202},
    {"TFT_UINT32", 203},
    {"TFT_UINT64", 204},
    {"TFT_INT8", 205},
    {"TFT_INT16", 206},
    {"TFT_INT32", 207},
    {"TFT_INT64", 208},
    {"TFT_HALF", 209},
    {"TFT_FLOAT", 210},
    {"TFT_DOUBLE", 211},
    {"TFT_COMPLEX64", 212},
    {"TFT_COMPLEX128", 213},
    {"TFT_STRING", 214},
    {"TFT_BFLOAT16", 215},
    {"TFT_TENSOR", 1000},
    {"TFT_ARRAY", 1001},
    {"TFT_OPTIONAL", 1002},
    {"TFT_LITERAL", 1003},
    {"TFT_ENCODED", 1004},
    {"TFT_SHAPE_TENSOR", 1005},
    {"TFT_DATASET", 10102},
    {"TFT_RAGGED", 10103},
    {"TFT_ITERATOR", 10104},
    {"TFT_MUTEX_LOCK", 10202},
    {"TFT_LEGACY_VARIANT", 10203},
};

const tf_field_info *tf_schema_fields(tf_message message) {
  assert(message < TF_MSG_COUNT);
  return &tf_all_fields[tf_message_places[message]];
}

const tf_field_info *tf_schema_by_name(tf_message message, base_slice name) {
  for (const tf_field_info *f = tf_schema_fields(message); f->kind != TF_FIELD_END; f++)
    if (base_slice_is(name, f->name)) return f;
  return NULL;
}

const tf_field_info *tf_schema_by_number(tf_message message, uint32_t number) {
  for (const tf_field_info *f = tf_schema_fields(message); f->kind != TF_FIELD_END; f++)
    if (f->number == number) return f;
  return NULL;
}

int tf_full_type_of_name(base_slice name) {
  for (size_t i = 0; i < sizeof tf_full_type_rows / sizeof *tf_full_type_rows; i++)
    if (base_slice_is(name, tf_full_type_rows[i].name)) return tf_full_type_rows[i].number;
  return -1;
}

const char *tf_full_type_name(int64_t number) {
  for (size_t i = 0; i < sizeof tf_full_type_rows / sizeof *tf_full_type_rows; i++)
    if (tf_full_type_rows[i].number == number) return tf_full_type_rows[i].name;
  return NULL;
}
