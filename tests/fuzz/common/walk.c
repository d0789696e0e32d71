/* Everything there is to know about a module's parts, as a tool or the Python face would ask for it. */
#include "fuzz.h"

enum { WALK_MAX_DEPTH = 8, WALK_MAX_OPS = 400, SMALL_ELEMENTS = 1 << 14, SMALL_BYTES = 1 << 21, SMALL_SIZE = 9 };

static void walk_type(const xlac_type *t, int depth) {
  xlac_type_info info;
  xlac_type_get(t, &info);
  bool any_kind = getenv("FUZZ_ANY_KIND") != NULL; /* to see what lies behind that fault: classes.py */
  if (!any_kind && (info.kind < XLAC_TYPE_TENSOR || info.kind > XLAC_TYPE_OTHER)) {
    char *text = xlac_type_print(t, true);
    fprintf(stderr, "%s\n", text ? text : "");
    fuzz_report("a type of a kind that xlac.h does not list", NULL);
  }
  bool tensor = info.kind == XLAC_TYPE_TENSOR;
  if (tensor && !xlac_dtype_text(info.dtype)) fuzz_report("a tensor without element type", NULL);
  if (tensor && info.rank && !info.dims) fuzz_report("a tensor without dimensions", NULL);
  for (uint32_t d = 0; tensor && d < info.rank; d++) {
    bool dynamic = info.dynamic && info.dynamic[d];
    if (info.dims[d] < 0 && !(dynamic && info.dims[d] == INT64_MIN)) fuzz_report("a negative dimension", NULL);
  }
  for (uint32_t i = 0; i < info.n_elements && depth < WALK_MAX_DEPTH && i < 64; i++)
    walk_type(xlac_type_element(t, i), depth + 1);
  if (xlac_type_element(t, info.n_elements)) fuzz_report("an element past the end", NULL);
  if (depth == 0) xlac_free(xlac_type_print(t, true));
}

static void walk_attrs(xlac_module *m, xlac_op *op, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    xlac_error err = {0};
    char *text = NULL;
    const char *key = xlac_op_attr_key(m, op, i);
    if (!key) fuzz_report("an attribute without name", NULL);
    fuzz_failed(xlac_op_attr(m, op, key, &text, &err), &err);
    xlac_free(text);
  }
}

static void walk_constant(xlac_module *m, xlac_op *op) {
  xlac_error err = {0};
  xlac_value *value = NULL;
  if (!fuzz_failed(xlac_op_constant(m, op, &value, &err), &err)) xlac_value_release(value);
}

static void walk_op(xlac_module *m, xlac_op *op) {
  xlac_op_info info;
  xlac_op *users[8];
  xlac_op_get(m, op, &info);
  if (!info.name || !info.opcode) fuzz_report("an op without name or opcode", NULL);
  if (info.type) walk_type(info.type, 0); /* NULL: an op without results */
  for (uint32_t i = 0; i < info.n_operands; i++)
    if (!xlac_op_operand(m, op, i)) fuzz_report("an operand is missing", NULL);
  if (xlac_op_operand(m, op, info.n_operands)) fuzz_report("an operand past the end", NULL);
  for (uint32_t i = 0; i < info.n_called; i++)
    if (!xlac_op_called(m, op, i)) fuzz_report("a called computation is missing", NULL);
  if (xlac_op_users(m, op, users, 8) != xlac_op_users(m, op, NULL, 0)) fuzz_report("two numbers of users", NULL);
  walk_attrs(m, op, info.n_attrs);
  if (strcmp(info.opcode, "constant") == 0) walk_constant(m, op);
}

void fuzz_walk(xlac_module *m) {
  uint32_t n = 0;
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c)) {
    if (!xlac_computation_name(m, c)) fuzz_report("a computation without name", NULL);
    xlac_computation_root(m, c);
    xlac_computation_thread(m, c);
    for (uint32_t i = 0; i < xlac_computation_param_count(m, c); i++) xlac_computation_param(m, c, i);
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op)) {
      if (++n > WALK_MAX_OPS) return;
      walk_op(m, op);
    }
  }
}

/* Bytes of a value of type t, or -1 where it is not small. */
static int64_t small_bytes(const xlac_type *t, int depth) {
  xlac_type_info info;
  xlac_type_get(t, &info);
  int64_t sum = 0, count = 1;
  for (uint32_t i = 0; i < info.n_elements; i++) {
    int64_t bytes = depth < WALK_MAX_DEPTH ? small_bytes(xlac_type_element(t, i), depth + 1) : -1;
    if (bytes < 0 || (sum += bytes) > SMALL_BYTES) return -1;
  }
  if (info.kind != XLAC_TYPE_TENSOR) return sum;
  for (uint32_t d = 0; d < info.rank; d++) {
    int64_t size = info.dims[d] == INT64_MIN ? SMALL_SIZE : info.dims[d];
    if (size > SMALL_ELEMENTS || (count *= size) > SMALL_ELEMENTS) return -1;
  }
  return count * (int64_t)xlac_dtype_bytes(info.dtype);
}

bool fuzz_is_small(xlac_module *m) {
  int64_t sum = 0;
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c)) {
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op)) {
      xlac_op_info info;
      xlac_op_get(m, op, &info);
      int64_t bytes = info.type ? small_bytes(info.type, 0) : 0;
      if (bytes < 0 || (sum += bytes) > SMALL_BYTES) return false;
    }
  }
  return true;
}
