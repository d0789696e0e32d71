/* What the messages of a GraphDef consist of (tf_messages.def), and the text form of any of them. The text is protocol
 * buffers' text format; it and the bytes on the wire hold the same. Constant tables; functions are thread-safe. */
#ifndef XLAC_TF_GRAPH_TF_SCHEMA_H
#define XLAC_TF_GRAPH_TF_SCHEMA_H

#include "../../base/str.h"

typedef enum tf_message {
  TF_MSG_NONE,
#define MESSAGE(name) TF_MSG_##name,
#define FIELD(name, number, kind, repeated, message)
#define END()
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
  TF_MSG_COUNT
} tf_message;

typedef enum tf_field_kind {
  TF_FIELD_END,
  TF_FIELD_STRING,
  TF_FIELD_BYTES,
  TF_FIELD_INT32,
  TF_FIELD_INT64,
  TF_FIELD_UINT32,
  TF_FIELD_UINT64,
  TF_FIELD_FIXED64,
  TF_FIELD_BOOL,
  TF_FIELD_FLOAT,
  TF_FIELD_DOUBLE,
  TF_FIELD_TYPE, /* an element type */
  TF_FIELD_FULL_TYPE_ID,
  TF_FIELD_MESSAGE,
  TF_FIELD_MAP
} tf_field_kind;

/* One row of tf_messages.def. */
typedef struct tf_field_info {
  const char *name;
  uint8_t number, kind;
  bool repeated;
  uint8_t message; /* MESSAGE, MAP: tf_message */
} tf_field_info;

/* The fields of a message, ended by a row of kind END. */
const tf_field_info *tf_schema_fields(tf_message message);
/* NULL where the message has no such field. */
const tf_field_info *tf_schema_by_name(tf_message message, base_slice name);
const tf_field_info *tf_schema_by_number(tf_message message, uint32_t number);
/* "TFT_TENSOR" <-> 1000; -1 and NULL where there is none. */
int tf_full_type_of_name(base_slice name);
const char *tf_full_type_name(int64_t number);

/* Reads the text of `message` and appends its bytes. Errors have line and column. */
XLAC_MUST_USE int tf_text_to_wire(base_text *out, tf_message message, const char *text, size_t n, xlac_error *err);
/* Appends the text of the n bytes of `message`: two spaces a level, maps sorted by key, as TensorFlow writes it. Fields
 * of unknown numbers are left out. */
XLAC_MUST_USE int tf_wire_to_text(base_text *out, tf_message message, const void *bytes, size_t n, xlac_error *err);

#endif
