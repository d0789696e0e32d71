/* Rows of host_memory.def for nodes. */
#include "host_memory.h"

#include "../graph/packed_rows.h"

/* A table's strings, op and alternatives, and the offset in them of each row. */
#define HOST_MEMORY(op, cpu, gpu) char TF_PACKED_ROW[sizeof(op "\0" cpu "\0" gpu)];
typedef struct tf_host_texts {
#include "host_memory.def"
} tf_host_texts;
#undef HOST_MEMORY

#define HOST_MEMORY(op, cpu, gpu) op "\0" cpu "\0" gpu,
static const tf_host_texts tf_all_host_texts = {
#include "host_memory.def"
};
#undef HOST_MEMORY

#define HOST_MEMORY(op, cpu, gpu) offsetof(tf_host_texts, TF_PACKED_ROW),
static const uint32_t tf_host_rows[] = {
#include "host_memory.def"
};
#undef HOST_MEMORY

#define HOST_MEMORY_XLA(op, other) char TF_PACKED_ROW[sizeof(op "\0" other)];
typedef struct tf_host_xla_texts {
#include "host_memory_xla.def"
} tf_host_xla_texts;
#undef HOST_MEMORY_XLA

#define HOST_MEMORY_XLA(op, other) op "\0" other,
static const tf_host_xla_texts tf_all_host_xla_texts = {
#include "host_memory_xla.def"
};
#undef HOST_MEMORY_XLA

#define HOST_MEMORY_XLA(op, other) offsetof(tf_host_xla_texts, TF_PACKED_ROW),
static const uint32_t tf_host_xla_rows[] = {
#include "host_memory_xla.def"
};
#undef HOST_MEMORY_XLA

/* The row of `op`, from its name on; NULL where there is none. */
static const char *tf_host_row_of(const void *texts, const uint32_t *rows, size_t n, const char *op) {
  size_t from = 0, to = n;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    const char *row = (const char *)texts + rows[middle];
    int order = strcmp(op, row);
    if (order == 0) return row;
    if (order < 0)
      to = middle;
    else
      from = middle + 1;
  }
  return NULL;
}

/* On CPUs and GPUs. */
static const char *tf_host_alternatives_of(const char *op, bool gpu) {
  const char *row = tf_host_row_of(&tf_all_host_texts, tf_host_rows, sizeof tf_host_rows / sizeof *tf_host_rows, op);
  if (!row) return gpu ? "-" : "";
  const char *on_cpu = tf_packed_next(row), *on_gpu = tf_packed_next(on_cpu);
  return gpu && strcmp(on_gpu, "=") != 0 ? on_gpu : on_cpu;
}

/* On devices that are neither. */
static const char *tf_host_xla_alternatives_of(const char *op) {
  const char *row =
      tf_host_row_of(&tf_all_host_xla_texts, tf_host_xla_rows, sizeof tf_host_xla_rows / sizeof *tf_host_xla_rows, op);
  return row ? tf_packed_next(row) : "-";
}

/* Up to the next `stop`, which is passed over. */
static base_slice tf_host_cut(base_slice *text, char stop) {
  const char *end = text->n ? memchr(text->p, stop, text->n) : NULL;
  base_slice part = {text->p, end ? (size_t)(end - text->p) : text->n};
  text->p += part.n + (end != NULL);
  text->n -= part.n + (end != NULL);
  return part;
}

/* "T:int32 Tidx:int32|int64" */
static bool tf_host_fits(const tf_node *n, base_slice conditions) {
  while (conditions.n > 0) {
    base_slice types = tf_host_cut(&conditions, ' '), attr = tf_host_cut(&types, ':');
    unsigned type = 0;
    if (!tf_attr_type(tf_attr_or_default(n->op, n->def->attrs, attr), &type)) return false;
    if (!(tf_type_set_of(types) & tf_type_bit(tf_base_type(type)))) return false;
  }
  return true;
}

static bool tf_host_listed(base_slice args, base_slice name) {
  while (args.n > 0) {
    base_slice arg = tf_host_cut(&args, ',');
    if (arg.n == name.n && memcmp(arg.p, name.p, arg.n) == 0) return true;
  }
  return false;
}

static void tf_host_mark(const tf_node *n, const tf_arg_def *list, uint32_t count, base_slice args, uint8_t *host) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t values = tf_arg_values(n, &list[i]);
    uint8_t listed = tf_host_listed(args, list[i].name);
    for (int64_t k = 0; k < values; k++) host[at++] |= listed;
  }
}

static bool tf_calls_function(const tf_node *n) {
  return n->op->function || tf_node_is(n, "PartitionedCall") || tf_node_is(n, "StatefulPartitionedCall") ||
         tf_node_is(n, "While") || tf_node_is(n, "SymbolicGradient");
}

static const char *tf_host_alternatives(const tf_node *n, base_slice device_type) {
  bool cpu = base_slice_is(device_type, "CPU"), gpu = base_slice_is(device_type, "GPU");
  base_slice label;
  bool labelled = tf_attr_string(tf_attr_find(n->def->attrs, "_kernel"), &label) && label.n > 0;
  if (labelled || tf_calls_function(n) || (cpu && !(n->op->flags & TF_OP_HOST))) return "-";
  return cpu || gpu ? tf_host_alternatives_of(n->op->name->s, gpu) : tf_host_xla_alternatives_of(n->op->name->s);
}

/* The arguments that the row says; *no_kernel: there is none for the node. */
static base_slice tf_host_args(const tf_node *n, base_slice device_type, bool *no_kernel) {
  base_slice rest = base_slice_of(tf_host_alternatives(n, device_type));
  *no_kernel = base_slice_is(rest, "-");
  while (rest.n > 0 && !*no_kernel) {
    base_slice args = tf_host_cut(&rest, ';'), conditions = tf_host_cut(&args, '>');
    if (!tf_host_fits(n, conditions)) continue;
    *no_kernel = base_slice_is(args, "*");
    return args;
  }
  return (base_slice){"", 0};
}

/* What attributes of the node itself say: numbers of its inputs or of its outputs. */
static void tf_host_mark_listed(const tf_node *n, const char *attr, uint8_t *host, uint32_t count) {
  const char *at = NULL;
  for (int64_t i; tf_attr_next_int(tf_attr_find(n->def->attrs, attr), &at, &i);)
    if (i >= 0 && i < (int64_t)count) host[i] = 1;
}

void tf_host_memory(const tf_node *n, base_slice device_type, uint8_t *host) {
  bool no_kernel;
  base_slice args = tf_host_args(n, device_type, &no_kernel);
  bool int32s = no_kernel && !tf_attr_is_true(n->def->attrs, "_XlaMustCompile");
  for (uint32_t i = 0; i < n->n_inputs + n->n_outputs; i++) {
    unsigned type = tf_base_type(n->types[i]);
    host[i] = type == TF_STRING || type == TF_RESOURCE || (int32s && type == TF_INT32);
  }
  tf_host_mark(n, n->op->inputs, n->op->n_inputs, args, host);
  tf_host_mark(n, n->op->outputs, n->op->n_outputs, args, host + n->n_inputs);
  tf_host_mark_listed(n, "_input_hostmem", host, n->n_inputs);
  tf_host_mark_listed(n, "_output_hostmem", host + n->n_inputs, n->n_outputs);
}
