/* XLA's pipelines around Shardy, as passes that run others. Source: XLA's passes, and its dumps of programs. */
#include "../passes/simplify/mlir_simplify.h"
#include "pipeline.h"
#include "../shard/round_trip/round_trip.h"

static int round_trip_run(ir_module *m, const char *text, xlac_error *err) {
  m->verified = IR_VERIFIED; /* passes leave it so */
  return opt_run_pipeline(m, text, strlen(text), NULL, err);
}

/* The patterns of `canonicalize` that compute nothing; what nobody needs goes on the way. */
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

static int rt_import_pipeline(ir_module *m, bool constants, bool meshes, xlac_error *err) {
  TRY(round_trip_run(m, "symbol-dce,stablehlo-ext-prepare-for-hlo-export", err));
  if (constants) TRY(round_trip_run(m, "func.func(xla-sdy-import-constants)", err));
  TRY(round_trip_run(m, "stablehlo-ext-canonicalize-from-hlo-import,xla-sdy-round-trip-import-shardy-attrs", err));
  TRY(shard_flatten_calls(m, true, err));
  TRY(round_trip_run(m,
                     "symbol-dce,xla-sdy-round-trip-shard-map-import,sdy-unflatten-call-graph,symbol-dce,"
                     "xla-sdy-import-sdy-custom-calls,func.func(xla-sdy-open-while-free-vars-sharding)",
                     err));
  if (meshes) TRY(round_trip_run(m, "sdy-lift-inlined-meshes,xla-sdy-round-trip-dedup-meshes", err));
  return rt_tidy(m, err);
}

int shard_pass_round_trip_import(ir_module *m, const opt_args *args, xlac_error *err) {
  return rt_import_pipeline(m, opt_get(args, "enable-constant-import"), opt_get(args, "lift-and-dedup-meshes"), err);
}

int shard_pass_stablehlo_import(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  TRY(round_trip_run(m, "xla-sdy-import-shardings", err));
  return rt_import_pipeline(m, true, false, err);
}

int shard_pass_round_trip_export(ir_module *m, const opt_args *args, xlac_error *err) {
  TRY(round_trip_run(m, opt_get(args, "keep-meshes-inlined") ? "canonicalize" : "canonicalize,sdy-lift-inlined-meshes",
                     err));
  return round_trip_run(
      m,
      "xla-sdy-round-trip-dedup-meshes,xla-sdy-round-trip-export-ops,xla-sdy-round-trip-shard-map-export,"
      "xla-sdy-round-trip-export-shardy-attrs,xla-sdy-stablehlo-export-shardings",
      err);
}

int shard_pass_stablehlo_export(ir_module *m, const opt_args *args, xlac_error *err) {
  bool keep = opt_get(args, "keep-hlo-sharding-constraints");
  TRY(round_trip_run(
      m,
      keep ? "xla-sdy-export-ops{keep-hlo-sharding-constraints=true},"
             "xla-sdy-stablehlo-round-trip-shard-map-export{create-hlo-sharding-constraints=true},symbol-dce"
           : "xla-sdy-export-ops,xla-sdy-stablehlo-round-trip-shard-map-export,symbol-dce",
      err));
  return round_trip_run(m,
                        opt_get(args, "add-missing-sharding-to-control-flow")
                            ? "xla-sdy-stablehlo-export-shardings{add-missing-sharding-to-control-flow=true}"
                            : "xla-sdy-stablehlo-export-shardings",
                        err);
}
