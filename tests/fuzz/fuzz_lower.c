/* Fuzzes the lowering of TensorFlow graphs: each tensor of a graph is lowered by itself, placeholders and variables
 * being inputs. What is lowered verifies (tfl_lower does it); the rest is an error that says why. Drivers as in
 * fuzz_reader.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/tf/lower/tensor.h"
#include "../../csrc/tf/lower/whole.h"
#include "common/fuzz.h" /* goes on after findings */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_INPUTS = 16, MOST_NODES = 64 };

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %s\n", what, err->code, err->message);
  abort();
}

static void name_of(char *buf, size_t size, const tf_node *n) {
  snprintf(buf, size, "%s", n->name->s);
}

/* Mostly what the node says itself, else drawn. */
static tfl_shape draw_shape(const tf_node *node, uint64_t seed) {
  xlac_error err = {0};
  base_slice written;
  unsigned type = 0;
  bool known = false;
  tfl_shape s = {.dtype = (base_dtype)(1 + (seed >> 33) % (BASE_DTYPE_COUNT - 1)), .rank = (uint32_t)(seed >> 40) % 5};
  for (uint32_t d = 0; d < s.rank; d++) s.dims[d] = (int64_t)(seed >> (44 + 3 * d)) % 5;
  if (seed >> 60 != 0 && tf_attr_type(tf_attr_find(node->def->attrs, "dtype"), &type) && tfl_dtype_of(type))
    s.dtype = tfl_dtype_of(type);
  if (seed >> 62 == 0 || !tf_attr_shape(tf_attr_find(node->def->attrs, "shape"), &written)) return s;
  if (tfl_read_shape(written, &known, &s.rank, s.dims, &err) != 0) s.rank = 0;
  for (uint32_t d = 0; d < s.rank; d++)
    if (s.dims[d] < 0 || s.dims[d] > 64) s.dims[d] = (int64_t)(seed >> (44 + 3 * (d % 5))) % 5;
  return s;
}

/* Placeholders and handles. */
static uint32_t draw_inputs(const tf_graph *g, uint64_t seed, tfl_named *inputs, char (*names)[128]) {
  static const int64_t data[1 << 12] = {2, 3, 1, 1, 2, 0, 0, 1};
  uint32_t n = 0;
  for (uint32_t id = 2; id < g->nodes.n && n < MOST_INPUTS; id++) {
    const tf_node *node = &g->nodes.items[id];
    bool handle = tf_node_is(node, "VarHandleOp");
    if (node->n_inputs != 0 || node->n_outputs != 1 || (!handle && !tf_node_is(node, "Placeholder"))) continue;
    seed = (seed ^ seed >> 29) * UINT64_C(6364136223846793005) + 1442695040888963407u;
    tfl_input in = {.shape = draw_shape(node, seed), .resource = handle, .unset = handle && seed >> 59 == 1};
    int64_t count = 1;
    for (uint32_t d = 0; d < in.shape.rank; d++) count *= in.shape.dims[d] < 64 ? in.shape.dims[d] : 1 << 20;
    if (!handle && (seed >> 30) % 4 == 0 && in.shape.rank < 4 && count < 1 << 11) in.data = data;
    name_of(names[n], sizeof names[n], node);
    inputs[n] = (tfl_named){.tensor = names[n], .input = in};
    n++;
  }
  return n;
}

static void lower_one(tf_graph_def *def, uint32_t id, uint64_t seed) {
  xlac_error err = {0};
  tf_graph g;
  tfl_named inputs[MOST_INPUTS];
  char names[MOST_INPUTS][128], fetch[128];
  const char *fetches[] = {fetch};
  ir_module *m = NULL;
  base_text t;
  if (tf_graph_import(&g, def, NULL, &err) != 0) return;
  base_text_init(&t, base_alloc_libc);
  if (id < g.nodes.n) {
    uint32_t n = draw_inputs(&g, seed, inputs, names);
    name_of(fetch, sizeof fetch, &g.nodes.items[id]);
    int status = tfl_lower_whole(&m, &t, &g, n, inputs, 1, fetches, &err);
    if (status != 0 && (err.code != -status || !err.message[0])) report("an error without code or message", &err);
    if (status != 0 && (err.code < 500 || err.code == XLAC_E_INTERNAL) && err.code != XLAC_E_UNKNOWN_NAME)
      report("a module that is wrong", &err);
  }
  if (m) ir_module_destroy(m);
  base_text_free(&t);
  tf_graph_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  tf_graph_def *def = NULL;
  uint64_t seed = base_hash((const char *)data, size);
  if (tf_graph_def_read(&def, base_alloc_libc, data, size, tf_graph_def_is_text(data, size), &err) != 0) return 0;
  for (uint32_t id = 2; id < def->n_nodes + 2 && id < MOST_NODES; id++) lower_one(def, id, seed + id);
  tf_graph_def_free(def);
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_WORDS                                                                                                  \
  "node { name: \"n\" op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", "input: \"^x\"", \
      "input: \"a:1\"", "DT_RESOURCE", "DT_VARIANT", "DT_BOOL", "DT_INT32", "DT_FLOAT", "DT_HALF", "\"While\"",     \
      "\"If\"", "\"Case\"", "\"Reshape\"", "\"Sum\"", "\"MatMul\"", "\"StridedSlice\"", "\"ConcatV2\"", "\"Pack\"", \
      "\"Einsum\"", "\"Range\"", "\"AssignVariableOp\"", "\"ReadVariableOp\"", "i: 3", "i: -1", "b: true",          \
      "int_val: -1", "int_val: 2", "dim { size: 2 }", "size: 0", "list { i: 1 i: 2 }"
#include "driver.h"
#endif
