/* The table of TensorFlow's ops. */
#include "op_def.h"

#define STATEFUL TF_OP_STATEFUL
#define HOST TF_OP_HOST
#define METADATA TF_OP_METADATA
#define XLA_ONLY TF_OP_XLA_ONLY
#define TF_OP(name, inputs, outputs, attrs, flags) \
  {name, inputs, outputs, attrs, {NULL, NULL}, NULL, flags, TF_RESOURCE_NONE},
#define TF_XLA_OP(name, inputs, outputs, attrs, flags, cpu, gpu, const_args, resource) \
  {name, inputs, outputs, attrs, {cpu, gpu}, const_args, (flags) | TF_OP_XLA, TF_RESOURCE_##resource},
static const tf_op_row tf_all_op_rows[] = {
#include "ops.def"
};
#undef TF_OP
#undef TF_XLA_OP
#undef STATEFUL
#undef HOST
#undef METADATA
#undef XLA_ONLY

const tf_op_row *tf_op_rows(uint32_t *n) {
  *n = sizeof tf_all_op_rows / sizeof *tf_all_op_rows;
  return tf_all_op_rows;
}

static int tf_compare_slice(base_slice a, const char *s) {
  size_t n = strlen(s), least = a.n < n ? a.n : n;
  int order = least ? memcmp(a.p, s, least) : 0;
  return order != 0 ? order : (a.n > n) - (a.n < n);
}

const tf_op_row *tf_op_row_find(base_slice name) {
  uint32_t from = 0, to = sizeof tf_all_op_rows / sizeof *tf_all_op_rows;
  while (from < to) {
    uint32_t middle = from + (to - from) / 2;
    int order = tf_compare_slice(name, tf_all_op_rows[middle].name);
    if (order == 0) return &tf_all_op_rows[middle];
    if (order < 0)
      to = middle;
    else
      from = middle + 1;
  }
  return NULL;
}
