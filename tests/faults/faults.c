/* Runs programs with an allocator whose n-th request fails, for n = 0, 1, 2, ... until a run gets through. Each failed
 * run must say OUT_OF_MEMORY and leave nothing allocated.
 *
 *   faults interpret FILE.hlo ...         a run of the interpreter
 *   faults compile FILE.hlo ...           passes and plan, then calls of what was compiled
 *   faults lower FILE.pb ...              the last tensor of a GraphDef as StableHLO, of the shapes its placeholders
 * say faults PIPELINE FILE ...              passes on the program, StableHLO or HLO
 *
 * Arguments are ones. Printed is the number of requests of each kind. */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/driver/compile.h"
#include "../../csrc/tf/lower/tensor.h"
#include "../../csrc/tf/lower/whole.h"
#include "../../csrc/pipeline/pipeline.h"
#include "../../csrc/ir/stablehlo/stablehlo.h"
#include "../../csrc/text/mlir/mlir.h"
#include "../../csrc/text/text.h"

typedef struct faulty {
  long left, live;
} faulty;

static void *faulty_call(void *ctx, void *p, size_t size) {
  faulty *f = ctx;
  if (size == 0) {
    f->live--;
    free(p);
    return NULL;
  }
  if (f->left-- <= 0) return NULL;
  void *fresh = realloc(p, size);
  if (!p && fresh) f->live++;
  return fresh;
}

static const long faulty_never = 1L << 60;
static char text[1 << 20];
static size_t text_n;

static void fail(const char *path, long n, const char *why, const xlac_error *err) {
  fprintf(stderr, "%s: request %ld fails: %s (%u:%u: %s)\n", path, n, why, err->line, err->col, err->message);
  exit(1);
}

/* Whether the run got through. */
static bool passed(const char *path, long n, int status, const faulty *f, long kept, const xlac_error *err) {
  if (f->live != kept) fail(path, n, "blocks are left", err);
  if (status && status != -XLAC_E_OUT_OF_MEMORY) fail(path, n, "another error", err);
  return status == 0;
}

static ir_module *read_hlo(const char *path, base_alloc alloc) {
  ir_module *m = NULL;
  xlac_error err = {0};
  text_parse_options options = {.alloc = alloc};
  if (text_parse_hlo(&m, text, text_n, &options, &err) || ir_verify(m, NULL, &err)) fail(path, -1, "unread", &err);
  return m;
}

static interp_value *argument(const ir_type *t) {
  size_t bytes = (size_t)ir_type_bytes(t);
  void *data = calloc(bytes + 1, 1);
  for (int64_t i = 0; i < t->count; i++)
    base_store_f64(t->dtype, (char *)data + (size_t)i * base_dtype_bytes(t->dtype), 1);
  return interp_lend(base_alloc_libc, t->dtype, t->rank, t->dims, data, free, data);
}

static interp_value **arguments(const ir_module *m) {
  interp_value **args = calloc(m->entry->n_params + 1, sizeof *args);
  for (uint32_t i = 0; i < m->entry->n_params; i++) args[i] = argument(m->entry->params[i]->type);
  return args;
}

static void forget(const ir_module *m, interp_value **args) {
  for (uint32_t i = 0; i < m->entry->n_params; i++) interp_release(args[i]);
  free(args);
}

static void interpret(const char *path) {
  ir_module *m = read_hlo(path, base_alloc_libc);
  interp_value **args = arguments(m);
  for (long n = 0;; n++) {
    faulty f = {n, 0};
    xlac_error err = {0};
    interp_options options = {.alloc = {faulty_call, &f}};
    interp_value *out = NULL;
    int status = interp_run(m, &options, m->entry->n_params, args, &out, &err);
    interp_release(out);
    if (!passed(path, n, status, &f, 0, &err)) continue;
    printf("%s %ld\n", path, n);
    break;
  }
  forget(m, args);
  ir_module_destroy(m);
}

static const char compile_passes[] =
    "inline-calls,batch-norm-expander,while-loop-simplifier,inline-calls,constant-folding,algebraic-simplification,"
    "while-loop-invariant-code-motion,cse,dce";

static int compile(const char *path, faulty *f, long fails_at, rt_executable **exe, xlac_error *err) {
  const opt_pipeline_options nothing = {0};
  driver_options options = {.alloc = {faulty_call, f}, .build = {.threads = 1, .no_blas = true}, .no_passes = true};
  ir_module *m = read_hlo(path, options.alloc);
  f->left = fails_at;
  int status = pipeline_run_text(m, compile_passes, sizeof compile_passes - 1, &nothing, err);
  if (status == 0) return driver_finish(m, &options, NULL, exe, err);
  ir_module_destroy(m);
  return status;
}

static long calls(const char *path, faulty *f, const rt_executable *exe) {
  const ir_module *m = exe->module;
  rt_recycler *memory = rt_host_memory(rt_host_of(exe->device));
  interp_value **args = arguments(m);
  long n = 0;
  for (;; n++) {
    xlac_error err = {0};
    const rt_call_options options = {.seed = 1};
    interp_value *out = NULL;
    rt_recycler_trim(memory, 0);
    long live = f->live;
    f->left = n;
    int status = rt_run_values(exe, &options, m->entry->n_params, args, &out, NULL, &err);
    f->left = faulty_never;
    interp_release(out);
    rt_recycler_trim(memory, 0);
    if (status && !exe->plan->interpreted && n < 2 && !strstr(err.message, "a call")) {
      fail(path, n, "no word on what was too much", &err);
    }
    if (passed(path, n, status, f, live, &err)) break;
  }
  forget(m, args);
  return n;
}

static void compile_and_call(const char *path) {
  for (long n = 0;; n++) {
    faulty f = {faulty_never, 0};
    xlac_error err = {0};
    rt_executable *exe = NULL;
    int status = compile(path, &f, n, &exe, &err);
    f.left = faulty_never;
    if (!passed(path, n, status, &f, status ? 0 : f.live, &err)) continue;
    long called = calls(path, &f, exe);
    rt_executable_destroy(exe);
    if (f.live) fail(path, n, "blocks are left at the end", &err);
    printf("%s %ld %ld\n", path, n, called);
    break;
  }
}

static int read_program(ir_module **m, base_alloc alloc, xlac_error *err) {
  mlir_parse_options mlir = {.alloc = alloc, .allow_unregistered = true};
  text_parse_options hlo = {.alloc = alloc};
  if (text_n > 9 && memcmp(text, "HloModule", 9) == 0) {
    TRY(text_parse_hlo(m, text, text_n, &hlo, err));
    return ir_verify(*m, NULL, err);
  }
  TRY(text_parse_mlir(m, text, text_n, &mlir, err));
  return stablehlo_verify(*m, err);
}

static void run_passes(const char *pipeline, const char *path) {
  for (long n = 0;; n++) {
    faulty f = {faulty_never, 0};
    opt_pipeline_options each = {.verify_each = true};
    ir_module *m = NULL;
    xlac_error err = {0};
    if (read_program(&m, (base_alloc){faulty_call, &f}, &err)) fail(path, n, "unread", &err);
    f.left = n;
    int status = pipeline_run_text(m, pipeline, strlen(pipeline), &each, &err);
    ir_module_destroy(m);
    if (!passed(path, n, status, &f, 0, &err)) continue;
    printf("%s %ld\n", path, n);
    break;
  }
}

/* --- graphs --- */

enum { MOST_GRAPH_INPUTS = 16 };

/* Placeholders and variables, as they say themselves. */
static uint32_t graph_inputs(const tf_graph *g, tfl_named *inputs, const char **fetch) {
  uint32_t n = 0;
  for (uint32_t id = 2; id < g->nodes.n; id++) {
    const tf_node *node = &g->nodes.items[id];
    if (node->n_inputs && node->n_outputs) *fetch = node->name->s;
    bool variable = tf_node_is(node, "VarHandleOp"), known = false;
    if ((!variable && !tf_node_is(node, "Placeholder")) || n == MOST_GRAPH_INPUTS) continue;
    tfl_named *in = &inputs[n++];
    *in = (tfl_named){.tensor = node->name->s, .input = {.resource = variable}};
    unsigned type = 0;
    base_slice shape = {"", 0};
    (void)tf_attr_type(tf_attr_find(node->def->attrs, "dtype"), &type);
    (void)tf_attr_shape(tf_attr_find(node->def->attrs, "shape"), &shape);
    in->input.shape.dtype = tfl_dtype_of(type);
    if (tfl_read_shape(shape, &known, &in->input.shape.rank, in->input.shape.dims, NULL) != 0) abort();
  }
  return n;
}

static int lower_graph(tf_graph_def *def, base_alloc alloc, xlac_error *err) {
  tf_graph g;
  tfl_named inputs[MOST_GRAPH_INPUTS];
  const char *fetch = "";
  ir_module *m = NULL;
  base_text report;
  TRY(tf_graph_import(&g, def, NULL, err));
  base_text_init(&report, alloc);
  uint32_t n = graph_inputs(&g, inputs, &fetch);
  int status = tfl_lower_whole(&m, &report, &g, n, inputs, 1, &fetch, err);
  if (m) ir_module_destroy(m);
  base_text_free(&report);
  tf_graph_free(&g);
  return status;
}

static void lower(const char *path) {
  bool through = false;
  long n = 0;
  for (; !through; n++) {
    faulty f = {n, 0};
    base_alloc alloc = {faulty_call, &f};
    xlac_error err = {0};
    tf_graph_def *def = NULL;
    int status = tf_graph_def_read(&def, alloc, text, text_n, false, &err);
    if (status == 0) status = lower_graph(def, alloc, &err);
    tf_graph_def_free(def);
    through = passed(path, n, status, &f, 0, &err);
  }
  printf("%s %ld\n", "lower", n - 1);
}

int main(int argc, char **argv) {
  for (int i = 2; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) return 2;
    text_n = fread(text, 1, sizeof text, file);
    fclose(file);
    if (strcmp(argv[1], "interpret") == 0)
      interpret(argv[i]);
    else if (strcmp(argv[1], "compile") == 0)
      compile_and_call(argv[i]);
    else if (strcmp(argv[1], "lower") == 0)
      lower(argv[i]);
    else
      run_passes(argv[1], argv[i]);
  }
  return 0;
}
