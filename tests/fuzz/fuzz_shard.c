/* Fuzzes the dialect sdy: the reader of its attributes and ops, and on what it takes the printer (what is printed reads
 * back as the same), the verifier and the pipelines. Drivers as in fuzz_reader.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/pipeline/pipeline.h"
#include "../../csrc/ir/stablehlo/stablehlo.h"
#include "../../csrc/text/mlir/mlir.h"
#include "common/fuzz.h" /* goes on after findings */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pipelines[] = {
    "sdy-propagation-pipeline",
    "sdy-import-pipeline,sdy-aggressive-propagate,sdy-export-pipeline{enable-insert-explicit-collectives=true}",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives),"
    "canonicalize",
    "sdy-lift-inlined-meshes,sdy-manual-axes-cleanup,sdy-close-shardings,sdy-inline-meshes",
    "sdy-flatten-call-graph,sdy-import-func-calls,sdy-export-named-computations,sdy-unflatten-call-graph",
    "sdy-explicit-gather-scatter-batching,sdy-verify-unreduced-axes,sdy-resolve-single-device-sharding,"
    "sdy-resolve-permutation-factors",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}),sdy-resolve-permutation-factors",
    "func.func(sdy-populate-op-sharding-rules),sdy-drop-sharding-and-mesh",
};

static void report(const char *what, const xlac_error *err) {
  fprintf(stderr, "finding: %s: %d %u:%u %s\n", what, err->code, err->line, err->col, err->message);
  abort();
}

static ir_module *take(const char *text, size_t n, xlac_error *err) {
  ir_module *m = NULL;
  mlir_parse_options options = {.alloc = base_alloc_libc};
  int status = text_parse_mlir(&m, text, n, &options, err);
  if (status != 0 && (err->code != -status || !err->message[0])) report("an error without code or message", err);
  return status == 0 ? m : NULL;
}

static void print(base_text *t, const ir_module *m) {
  xlac_error err = {0};
  base_text_init(t, base_alloc_libc);
  if (text_print_mlir(t, m, &(mlir_print_options){0}, &err) != 0) report("the print fails", &err);
}

static void print_twice(const ir_module *m) {
  xlac_error err = {0};
  base_text once, twice;
  print(&once, m);
  ir_module *again = take(once.s, once.n, &err);
  if (!again) report("what is printed does not read back", &err);
  print(&twice, again);
  if (once.n != twice.n || memcmp(once.s, twice.s, once.n) != 0)
    report("what is printed reads back as something else", &err);
  base_text_free(&once);
  base_text_free(&twice);
  ir_module_destroy(again);
}

static void run(ir_module *m, const char *pipeline) {
  xlac_error err = {0};
  int status = pipeline_run_text(m, pipeline, strlen(pipeline), NULL, &err);
  if (status != 0 && (err.code == XLAC_E_BAD_PIPELINE || !err.message[0])) report(pipeline, &err);
  base_text text;
  if (status == 0) {
    print(&text, m);
    base_text_free(&text);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  ir_module *m = take((const char *)data, size, &err);
  if (!m) return 0;
  if (stablehlo_verify(m, &err) == 0) {
    print_twice(m);
    run(m, pipelines[size % (sizeof pipelines / sizeof *pipelines)]);
  }
  ir_module_destroy(m);
  return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_WORDS                                                                                                  \
  "{", "}", "(", ")", "[", "]", "<", ">", ",", "=", ":", "->", "?", "p0", "%0", "%arg0", "@mesh", "\"x\"", "\"y\"", \
      "\"x\":(1)2", "{\"x\", ?}", "[{}, {}]", "#sdy.sharding<@mesh, [{\"x\"}, {}]>", "replicated={\"x\"}",          \
      "unreduced={\"y\"}", "mesh<[\"x\"=2]>", "device_ids=[1, 0]", "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>",  \
      "#sdy.op_sharding_rule<([i, jk])->([i, jk]) {i=8, j=2, k=4}>", "reduction={k}", "blocked_propagation={i}",    \
      "custom", "sdy.reshard", "sdy.sharding_constraint", "sdy.all_gather [{\"x\"}, {}]",                           \
      "sdy.all_to_all [{\"x\"}: 0->1]", "out_sharding=", "in_shardings=", "out_shardings=", "manual_axes={\"x\"}",  \
      "sdy.data_flow_edge", "sdy.return", "sdy.named_computation<\"f\">", "sdy.propagation_barrier",                \
      "allowed_direction=NONE", "group_id=1", "64x16", "0", "8", "-1"
#include "driver.h"
#endif
