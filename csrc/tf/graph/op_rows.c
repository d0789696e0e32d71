/* The table of TensorFlow's ops. */
#include "op_def.h"
#include "packed_rows.h"

#define STATEFUL TF_OP_STATEFUL
#define HOST TF_OP_HOST
#define METADATA TF_OP_METADATA
#define XLA_ONLY TF_OP_XLA_ONLY

/* The strings: name, inputs, outputs, attributes; of ops that XLA compiles also what follows them in a row. */
#define OP_TEXT(name, inputs, outputs, attrs) name "\0" inputs "\0" outputs "\0" attrs
#define XLA_TEXT(name, inputs, outputs, attrs, cpu, gpu, const_args) \
  OP_TEXT(name, inputs, outputs, attrs) "\0" cpu "\0" gpu "\0" const_args
#define TF_OP(name, inputs, outputs, attrs, flags) char TF_PACKED_ROW[sizeof(OP_TEXT(name, inputs, outputs, attrs))];
#define TF_XLA_OP(name, inputs, outputs, attrs, flags, cpu, gpu, const_args, resource) \
  char TF_PACKED_ROW[sizeof(XLA_TEXT(name, inputs, outputs, attrs, cpu, gpu, const_args))];
typedef struct tf_op_texts {
#include "ops.def"
} tf_op_texts;
#undef TF_OP
#undef TF_XLA_OP

#define TF_OP(name, inputs, outputs, attrs, flags) OP_TEXT(name, inputs, outputs, attrs),
#define TF_XLA_OP(name, inputs, outputs, attrs, flags, cpu, gpu, const_args, resource) \
  XLA_TEXT(name, inputs, outputs, attrs, cpu, gpu, const_args),
static const tf_op_texts tf_all_op_texts = {
#include "ops.def"
};
#undef TF_OP
#undef TF_XLA_OP

typedef struct tf_packed_op {
  uint32_t text; /* in tf_all_op_texts */
  uint8_t flags, resource;
} tf_packed_op;
#define TF_OP(name, inputs, outputs, attrs, flags) {offsetof(tf_op_texts, TF_PACKED_ROW), flags, TF_RESOURCE_NONE},
#define TF_XLA_OP(name, inputs, outputs, attrs, flags, cpu, gpu, const_args, resource) \
  {offsetof(tf_op_texts, TF_PACKED_ROW), (flags) | TF_OP_XLA, TF_RESOURCE_##resource},
static const tf_packed_op tf_packed_ops[] = {
#include "ops.def"
};
#undef TF_OP
#undef TF_XLA_OP
#undef OP_TEXT
#undef XLA_TEXT
#undef STATEFUL
#undef HOST
#undef METADATA
#undef XLA_ONLY

static const char *tf_packed_op_name(uint32_t i) {
  return (const char *)&tf_all_op_texts + tf_packed_ops[i].text;
}

uint32_t tf_op_row_count(void) {
  return sizeof tf_packed_ops / sizeof *tf_packed_ops;
}

tf_op_row tf_op_row_at(uint32_t i) {
  assert(i < tf_op_row_count());
  tf_op_row row = {
      .name = tf_packed_op_name(i), .flags = tf_packed_ops[i].flags, .resource = tf_packed_ops[i].resource};
  row.inputs = tf_packed_next(row.name);
  row.outputs = tf_packed_next(row.inputs);
  row.attrs = tf_packed_next(row.outputs);
  if (!(row.flags & TF_OP_XLA)) return row;
  row.types[0] = tf_packed_next(row.attrs);
  row.types[1] = tf_packed_next(row.types[0]);
  row.const_args = tf_packed_next(row.types[1]);
  return row;
}

static int tf_compare_slice(base_slice a, const char *s) {
  size_t n = strlen(s), least = a.n < n ? a.n : n;
  int order = least ? memcmp(a.p, s, least) : 0;
  return order != 0 ? order : (a.n > n) - (a.n < n);
}

bool tf_op_row_find(base_slice name, tf_op_row *out) {
  uint32_t from = 0, to = tf_op_row_count();
  while (from < to) {
    uint32_t middle = from + (to - from) / 2;
    int order = tf_compare_slice(name, tf_packed_op_name(middle));
    if (order == 0) {
      *out = tf_op_row_at(middle);
      return true;
    }
    if (order < 0)
      to = middle;
    else
      from = middle + 1;
  }
  return false;
}
