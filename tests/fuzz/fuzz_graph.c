/* Fuzzes GraphDefs, as messages and as text: what is read is clustered, marked, explained and written as text, which
 * reads back as the same. Drivers as in fuzz_reader.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/tf/cluster/cluster.h"
#include "../../csrc/tf/cluster/explain.h"
#include "../../csrc/tf/cluster/graph_write.h"
#include "../../csrc/tf/cluster/resources.h"
#include "../../csrc/tf/graph/tf_schema.h"
#include "common/fuzz.h" /* goes on after findings */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s\n", what, err->code, err->line, err->col, err->message);
  abort();
}

/* Text of a message's text is that text. */
static void print_twice(const char *bytes, size_t n) {
  xlac_error err = {0};
  base_text once, wire, twice;
  base_text_init(&once, base_alloc_libc);
  base_text_init(&wire, base_alloc_libc);
  base_text_init(&twice, base_alloc_libc);
  if (tf_wire_to_text(&once, TF_MSG_GRAPH_DEF, bytes, n, &err) == 0 && once.n > 0) {
    if (tf_text_to_wire(&wire, TF_MSG_GRAPH_DEF, once.s, once.n, &err) != 0)
      report("the text does not read back", &err);
    if (tf_wire_to_text(&twice, TF_MSG_GRAPH_DEF, wire.s ? wire.s : "", wire.n, &err) != 0)
      report("no second text", &err);
    if (once.n != twice.n || memcmp(once.s, twice.s, once.n) != 0)
      report("the text reads back as something else", &err);
  }
  base_text_free(&once);
  base_text_free(&wire);
  base_text_free(&twice);
}

static void explain(tf_pass *p) {
  xlac_error err = {0};
  base_text out;
  base_text_init(&out, base_alloc_libc);
  for (uint32_t i = 0; i < p->graph.nodes.n && i < 20; i++) {
    if (tf_explain_node(p, i, &out, &err) != 0) report("no explanation", &err);
    if (tf_explain_pair(p, i, p->graph.nodes.n - 1 - i, &out, &err) != 0) report("no explanation of two", &err);
  }
  if (tf_write_clustered(p, &out, &err) != 0) report("no marked graph", &err);
  base_text_free(&out);
}

static void cluster(tf_graph_def *def, bool scoping) {
  xlac_error err = {0};
  tf_pass p;
  tf_flags flags = tf_flags_default();
  tf_unsafe_list pairs = {.n = 0};
  flags.min_cluster_size = 1;
  flags.cluster_scoping = scoping;
  flags.clone_constants = !scoping;
  flags.partially_decluster = true;
  int status = tf_cluster_import(&p, def, &flags, &err);
  if (status == 0) status = tf_cluster_run(&p, &err);
  if (status != 0 && (err.code != -status || !err.message[0])) report("an error without code or message", &err);
  if (status == 0) {
    explain(&p);
    if (tf_find_unsafe_pairs(&p.graph, NULL, &pairs, &err) != 0) report("no pairs", &err);
    BASE_VEC_FREE(p.graph.alloc, &pairs);
  }
  tf_pass_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int text = 0; text < 2; text++) {
    xlac_error err = {0};
    tf_graph_def *def = NULL;
    int status = tf_graph_def_read(&def, base_alloc_libc, data, size, text != 0, &err);
    if (status != 0 && (err.code != -status || !err.message[0])) report("an error without code or message", &err);
    if (status != 0) continue;
    print_twice(def->bytes, def->n_bytes);
    cluster(def, size % 2 != 0);
    tf_graph_def_free(def);
  }
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_WORDS                                                                                                  \
  "node { name: \"n\" op: \"Relu\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", "input: \"^x\"", \
      "input: \"a:1\"", "DT_RESOURCE", "DT_VARIANT", "DT_BOOL", "\"Switch\"", "\"Merge\"", "\"Enter\"", "\"Exit\"", \
      "\"NextIteration\"", "\"LoopCond\"", "\"While\"", "\"If\"", "\"Const\"", "\"Shape\"", "\"NoOp\"",             \
      "\"AssignVariableOp\"", "\"ReadVariableOp\"", "\"F\"", "i: 3", "b: true", "list { type: DT_FLOAT }",          \
      "_XlaCompile", "frame_name", "device: \"/gpu:0\""
#include "driver.h"
#endif
