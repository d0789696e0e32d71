/* The pipelines of Shardy, as passes that run others. Source: the order of its passes in its answers and descriptions.
 */
#include <stdio.h>

#include "../ir/stablehlo/stablehlo.h"
#include "pipeline.h"

opt_pass_fn shard_pass_import, shard_pass_propagation, shard_pass_export;

/* The module was verified before the first pass, and passes leave it valid: once is enough. */
static int pipeline_run(ir_module *m, const char *text, xlac_error *err) {
  m->verified = IR_VERIFIED;
  return opt_run_pipeline(m, text, strlen(text), NULL, err);
}

static int pipeline_import(ir_module *m, bool dedup, xlac_error *err) {
  TRY(pipeline_run(m,
                   "symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,"
                   "sdy-propagate-sharding-from-func-to-call,sdy-constant-or-scalar-splitter,symbol-dce,"
                   "sdy-manual-axes-cleanup,sdy-add-data-flow-edges",
                   err));
  return dedup ? pipeline_run(m, "sdy-apply-sharding-constraints,sdy-sharding-group-import", err) : 0;
}

int shard_pass_import(ir_module *m, const opt_args *args, xlac_error *err) {
  return pipeline_import(m, opt_get(args, "dedup-functions-fully"), err);
}

typedef struct pipeline_export_options {
  bool keep_rules, for_partitioning, collectives, even, no_gather_scatter, inline_meshes, origins, edges;
} pipeline_export_options;

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

int shard_pass_export(ir_module *m, const opt_args *args, xlac_error *err) {
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

int shard_pass_propagation(ir_module *m, const opt_args *args, xlac_error *err) {
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
