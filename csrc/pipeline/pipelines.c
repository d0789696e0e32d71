/* Pipelines as passes that run others: Shardy's, XLA's around Shardy, and the passes before the translation to HLO.
 * Each is spelled as the text a user could run, so that `--print-after` of a pipeline and of its passes agree. */
#include <stdio.h>

#include "../ir/stablehlo/stablehlo.h"
#include "../passes/chlo/chlo.h"
#include "../passes/simplify/mlir_simplify.h"
#include "../passes/stablehlo/legalize_deprecated_ops.h"
#include "../shard/round_trip/round_trip.h"
#include "for_hlo.h"
#include "pipeline.h"

/* The pipelines of Shardy, as passes that run others. Source: the order of its passes in its answers and descriptions.
 */

opt_pass_fn pipeline_pass_import, pipeline_pass_propagation, pipeline_pass_export;

/* The module was verified before the first pass, and passes leave it valid: once is enough. */
static int pipeline_run(ir_module *m, const char *text, xlac_error *err) {
  const opt_pipeline_options inside = {.valid = true};
  return pipeline_run_text(m, text, strlen(text), &inside, err);
}

/* Shardy's addImportPipeline; what comes between data-flow edges and propagation depends on dedup-functions-fully,
 * which in the default mode happens after calls have been inlined. */
static int pipeline_import(ir_module *m, bool dedup, xlac_error *err) {
  TRY(pipeline_run(m,
                   "symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,"
                   "sdy-propagate-sharding-from-func-to-call,sdy-constant-or-scalar-splitter,symbol-dce,"
                   "sdy-manual-axes-cleanup,sdy-add-data-flow-edges",
                   err));
  return dedup ? pipeline_run(m, "sdy-apply-sharding-constraints,sdy-sharding-group-import", err) : 0;
}

int pipeline_pass_import(ir_module *m, const opt_args *args, xlac_error *err) {
  return pipeline_import(m, opt_get(args, "dedup-functions-fully"), err);
}

/* Options of sdy-export-pipeline, by what they do. */
typedef struct pipeline_export_options {
  bool keep_rules, for_partitioning, collectives, even, no_gather_scatter, inline_meshes, origins, edges;
} pipeline_export_options;

/* Reshards are made explicit, then (with collectives) reduced by canonicalisation and turned into collectives. */
static int pipeline_partition(ir_module *m, const pipeline_export_options *o, xlac_error *err) {
  TRY(pipeline_run(m,
                   o->collectives ? "func.func(sdy-insert-explicit-reshards{enable-full-version=true})"
                                  : "func.func(sdy-insert-explicit-reshards)",
                   err));
  if (o->collectives)
    TRY(pipeline_run(m, "canonicalize{enable-patterns=sdy-reshard},func.func(sdy-reshard-to-collectives)", err));
  TRY(pipeline_run(m, "canonicalize{enable-patterns=sdy-collective}", err));
  bool keep = !o->collectives || !o->no_gather_scatter;
  return keep ? 0 : pipeline_run(m, "func.func(sdy-remove-all-gather-reduce-scatter-for-cmv1)", err);
}

/* Edges go; what propagation noted on them goes to their ops, where it is asked for. */
static int pipeline_sink(ir_module *m, const pipeline_export_options *o, xlac_error *err) {
  char text[160];
  snprintf(
      text, sizeof text,
      "func.func(sdy-sink-data-flow-edges{sink-debug-sharding-origins=%s sink-debug-propagation-edge-sharding=%s})",
      o->origins ? "true" : "false", o->edges ? "true" : "false");
  return pipeline_run(m, text, err);
}

/* Shardy's addExportPipeline. for_partitioning leaves constraints and groups, for a partitioner that reads them. */
static int pipeline_export(ir_module *m, const pipeline_export_options *o, xlac_error *err) {
  TRY(pipeline_run(m, "func.func(sdy-constant-or-scalar-merger)", err));
  TRY(pipeline_sink(m, o, err));
  if (!o->for_partitioning)
    TRY(pipeline_run(m, "sdy-remove-sharding-groups,func.func(sdy-sharding-constraint-to-reshard)", err));
  if (o->even)
    TRY(pipeline_run(m, "sdy-update-non-divisible-input-output-shardings,sdy-remove-sub-axes-in-input-output-shardings",
                     err));
  TRY(pipeline_run(m, "sdy-close-shardings", err));
  TRY(stablehlo_verify(m, err)); /* collectives of the program itself may not fit the shardings they have now */
  if (!o->for_partitioning) TRY(pipeline_partition(m, o, err));
  if (o->origins || o->edges) TRY(pipeline_run(m, "sdy-remove-propagation-debug-info", err));
  if (!o->keep_rules) TRY(pipeline_run(m, "func.func(sdy-drop-sharding-rules)", err));
  return o->inline_meshes && !o->for_partitioning ? pipeline_run(m, "sdy-inline-meshes", err) : 0;
}

/* Options by the names that Shardy's pipeline has for them. */
int pipeline_pass_export(ir_module *m, const opt_args *args, xlac_error *err) {
  pipeline_export_options o = {.keep_rules = opt_get(args, "keep-sharding-rules"),
                               .for_partitioning = opt_get(args, "avoid-export-for-partitioning"),
                               .collectives = opt_get(args, "enable-insert-explicit-collectives"),
                               .even = opt_get(args, "update-non-divisible-input-output-shardings"),
                               .no_gather_scatter = opt_get(args, "remove-all-gather-reduce-scatter-for-cmv1"),
                               .inline_meshes = opt_get(args, "inline-meshes"),
                               .origins = opt_get(args, "dump-sharding-origins"),
                               .edges = opt_get(args, "dump-propagation-edges")};
  return pipeline_export(m, &o, err);
}

/* Shardy's addPropagationPipeline: import, propagation by user priorities, export with even signatures. By default
 * every call is a named computation meanwhile; with dedup-functions-fully edges between calls and functions stand for
 * them. */
int pipeline_pass_propagation(ir_module *m, const opt_args *args, xlac_error *err) {
  bool dedup = opt_get(args, "dedup-functions-fully");
  TRY(pipeline_import(m, dedup, err));
  if (dedup)
    TRY(pipeline_run(m, "sdy-add-func-data-flow-edges", err));
  else
    TRY(pipeline_run(m,
                     "sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
                     "sdy-apply-sharding-constraints,sdy-sharding-group-import",
                     err));
  TRY(pipeline_run(m, "sdy-pre-order-funcs,sdy-user-priority-propagate{keep-sharding-rules=true}", err));
  TRY(pipeline_run(m,
                   dedup ? "sdy-propagate-to-func-results,func.func(sdy-sink-func-data-flow-edges)"
                         : "sdy-export-named-computations,sdy-propagate-to-func-results",
                   err));
  TRY(pipeline_run(m, "sdy-unflatten-call-graph,symbol-dce,sdy-insert-func-call-reshards", err));
  pipeline_export_options o = {.even = true};
  return pipeline_export(m, &o, err);
}

/* XLA's pipelines around Shardy, as passes that run others. Source: XLA's passes, and its dumps of programs. */

/* The patterns of `canonicalize` that compute nothing; what nobody needs goes on the way. XLA's import ends with a
 * canonicaliser too, which must not fold here what propagation should see. */
static int rt_tidy(ir_module *m, xlac_error *err) {
  static const opt_pattern *const sets[] = {opt_region_patterns, opt_sdy_collective_patterns, opt_sdy_reuse_patterns,
                                            opt_sdy_reshard_patterns, opt_sdy_computation_patterns};
  opt_pattern all[96];
  uint32_t n = 0;
  opt_rewriter rw;
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    for (const opt_pattern *p = sets[i]; p->fn; p++) {
      assert(n < sizeof all / sizeof *all);
      all[n++] = *p;
    }
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, n, all);
  opt_rewriter_free(&rw);
  return status;
}

/* XLA's addSdyRoundTripImportPipeline. */
static int rt_import_pipeline(ir_module *m, bool constants, bool meshes, xlac_error *err) {
  TRY(pipeline_run(m, "symbol-dce,stablehlo-ext-prepare-for-hlo-export", err));
  if (constants) TRY(pipeline_run(m, "func.func(xla-sdy-import-constants)", err));
  TRY(pipeline_run(m, "stablehlo-ext-canonicalize-from-hlo-import,xla-sdy-round-trip-import-shardy-attrs", err));
  TRY(shard_flatten_calls(m, true, err));
  TRY(pipeline_run(m,
                   "symbol-dce,xla-sdy-round-trip-shard-map-import,sdy-unflatten-call-graph,symbol-dce,"
                   "xla-sdy-import-sdy-custom-calls,func.func(xla-sdy-open-while-free-vars-sharding)",
                   err));
  if (meshes) TRY(pipeline_run(m, "sdy-lift-inlined-meshes,xla-sdy-round-trip-dedup-meshes", err));
  return rt_tidy(m, err);
}

int pipeline_pass_round_trip_import(ir_module *m, const opt_args *args, xlac_error *err) {
  return rt_import_pipeline(m, opt_get(args, "enable-constant-import"), opt_get(args, "lift-and-dedup-meshes"), err);
}

int pipeline_pass_stablehlo_import(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  TRY(pipeline_run(m, "xla-sdy-import-shardings", err));
  return rt_import_pipeline(m, true, false, err);
}

/* XLA's addSdyRoundTripExportPipeline: attributes as text, and mhlo.sharding beside it. */
int pipeline_pass_round_trip_export(ir_module *m, const opt_args *args, xlac_error *err) {
  TRY(pipeline_run(m, opt_get(args, "keep-meshes-inlined") ? "canonicalize" : "canonicalize,sdy-lift-inlined-meshes",
                   err));
  return pipeline_run(
      m,
      "xla-sdy-round-trip-dedup-meshes,xla-sdy-round-trip-export-ops,xla-sdy-round-trip-shard-map-export,"
      "xla-sdy-round-trip-export-shardy-attrs,xla-sdy-stablehlo-export-shardings",
      err);
}

/* XLA's addStablehloExportPipeline: all of sdy in terms of mhlo.sharding, for the SPMD partitioner. */
int pipeline_pass_stablehlo_export(ir_module *m, const opt_args *args, xlac_error *err) {
  bool keep = opt_get(args, "keep-hlo-sharding-constraints");
  TRY(pipeline_run(
      m,
      keep ? "xla-sdy-export-ops{keep-hlo-sharding-constraints=true},"
             "xla-sdy-stablehlo-round-trip-shard-map-export{create-hlo-sharding-constraints=true},symbol-dce"
           : "xla-sdy-export-ops,xla-sdy-stablehlo-round-trip-shard-map-export,symbol-dce",
      err));
  return pipeline_run(m,
                      opt_get(args, "add-missing-sharding-to-control-flow")
                          ? "xla-sdy-stablehlo-export-shardings{add-missing-sharding-to-control-flow=true}"
                          : "xla-sdy-stablehlo-export-shardings",
                      err);
}

/* The passes that come before the translation to HLO. */

/* Why an op is beyond HLO, which decides the pass that expands it. */
typedef enum beyond_kind { BEYOND_NOTHING, BEYOND_CHLO, BEYOND_DEPRECATED, BEYOND_DYNAMIC } beyond_kind;

/* CHLO's ops are asked for one by one: some are HLO's under another name. */
static beyond_kind beyond_kind_of(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_EINSUM:
    case IR_OP_UNARY_EINSUM:
    case IR_OP_TORCH_INDEX_SELECT:
      return BEYOND_DEPRECATED;
    case IR_OP_DYNAMIC_BROADCAST_IN_DIM:
    case IR_OP_DYNAMIC_CONV:
    case IR_OP_DYNAMIC_GATHER:
    case IR_OP_DYNAMIC_IOTA:
    case IR_OP_DYNAMIC_PAD:
    case IR_OP_REAL_DYNAMIC_SLICE:
    case IR_OP_STABLEHLO_DYNAMIC_RESHAPE:
      return BEYOND_DYNAMIC;
    default: {
      const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
      bool chlo = mlir && strncmp(mlir->name, "chlo.", 5) == 0;
      return chlo && opt_chlo_is_not_in_hlo(op) ? BEYOND_CHLO : BEYOND_NOTHING;
    }
  }
}

static bool beyond_has(const ir_module *m, beyond_kind kind) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c)
    if (beyond_kind_of(op) == kind) return true;
  }
  return false;
}

bool pipeline_is_beyond_hlo(const ir_module *m) {
  if (m->form != IR_FORM_MLIR) return false;
  return beyond_has(m, BEYOND_CHLO) || beyond_has(m, BEYOND_DEPRECATED) || beyond_has(m, BEYOND_DYNAMIC);
}

/* In this order: CHLO's expansions may use deprecated ops no more, but dynamic ones. */
int pipeline_expand_for_hlo(ir_module *m, xlac_error *err) {
  static const char canonicalize[] = "stablehlo-canonicalize-dynamism";
  const size_t n = sizeof canonicalize - 1;
  if (beyond_has(m, BEYOND_DEPRECATED)) TRY(opt_legalize_deprecated(m, false, err));
  if (beyond_has(m, BEYOND_CHLO)) TRY(opt_legalize_chlo(m, OPT_CHLO_NOT_IN_HLO, err));
  const opt_pass_info *pass = pipeline_pass_find(canonicalize, n, IR_FORM_MLIR);
  if (pass && beyond_has(m, BEYOND_DYNAMIC)) TRY(pipeline_run_text(m, canonicalize, n, NULL, err));
  return 0;
}

/* A clone, since the caller's module is what errors and text refer to. */
int pipeline_expand_for_executor(ir_module *m, ir_module **out, xlac_error *err) {
  bool any = false;
  *out = NULL;
  if (m->form != IR_FORM_MLIR) return 0;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) any = any || opt_chlo_is_exact(op);
  }
  xlac_error ignored = {.code = 0};
  if (!any || stablehlo_verify(m, &ignored)) return 0; /* what is wrong is said of what it is translated to */
  TRY(ir_module_clone(out, m, err));
  int status = opt_legalize_chlo(*out, OPT_CHLO_EXACT, err);
  if (status) ir_module_destroy(*out);
  return status;
}
