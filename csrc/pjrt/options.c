/* CompileOptionsProto, as far as a program's compilation depends on it: the device assignment, and the options that
 * users give with jit(compiler_options=...). Names are a table: ours, and XLA's that change no result. */
#include <stdio.h>
#include <stdlib.h>

#include "pjrt.h"
#include "wire.h"

/* --- options by name --- */

typedef enum option_kind {
  OPTION_IGNORED_BOOL,
  OPTION_IGNORED_INT,

  OPTION_BOOL,
  OPTION_INT,
  OPTION_NUMERICS
} option_kind;
typedef struct option_row {
  const char *name;
  option_kind kind;
  size_t at; /* in pjrt_compile_options */
} option_row;

static const option_row option_rows[] = {
    {"xlac_numerics", OPTION_NUMERICS, offsetof(pjrt_compile_options, fast)},
    {"xlac_threads", OPTION_INT, offsetof(pjrt_compile_options, threads)},
    {"xlac_no_fusion", OPTION_BOOL, offsetof(pjrt_compile_options, no_fusion)},
    {"xlac_no_passes", OPTION_BOOL, offsetof(pjrt_compile_options, no_passes)},
    /* XLA's say how to compile and what to write, not what a program means. The values of these are looked at. */
    {"xla_embed_ir_in_executable", OPTION_IGNORED_BOOL, 0},
    {"xla_dump_max_hlo_modules", OPTION_IGNORED_INT, 0},
};

/* Other names behind XLA's "xla_" that its CPU takes in jaxlib 0.9 to 0.11: they say how it compiles and what it
 * writes, and nothing to us. */
static const char option_of_xla[] =
    " allow_excess_precision allow_h2h_copy_when_automatic_host_compute_offload_disabled"
    " allow_scalar_index_dynamic_ops backend_extra_options backend_optimization_level candidate_configs_file"
    " cmd_buffer_trace_cache_size compile_all_supported_configs cpu_collective_call_terminate_timeout_seconds"
    " cpu_collective_call_warn_stuck_seconds cpu_collective_timeout_seconds cpu_copy_insertion_use_region_analysis"
    " cpu_emitter_verification_level cpu_enable_concurrency_optimized_scheduler cpu_enable_fast_math"
    " cpu_enable_fast_min_max cpu_enable_platform_dependent_math cpu_enable_xprof_traceme"
    " cpu_experimental_enable_tiling_propagation cpu_experimental_onednn_custom_call"
    " cpu_experimental_onednn_fusion_type cpu_experimental_xnn_fusion_type cpu_experimental_xnn_graph_fusion_mode"
    " cpu_experimental_ynn_fusion_type cpu_fast_math_honor_division cpu_fast_math_honor_functions"
    " cpu_fast_math_honor_infs cpu_fast_math_honor_nans cpu_ftz cpu_generate_unique_c_style_kernel_entry_points"
    " cpu_max_isa cpu_multi_thread_eigen cpu_opt_preset cpu_parallel_codegen_split_count cpu_prefer_vector_width"
    " cpu_scheduler_type cpu_strict_dot_conv_math cpu_use_acl cpu_use_fusion_emitters cpu_use_new_xtile_lowering"
    " cpu_use_onednn cpu_use_thunk_runtime cpu_use_xnnpack debug_buffer_assignment_show_max"
    " deduplicate_backend_configs_min_size detailed_logging detect_unstable_reductions"
    " detect_unstable_reductions_post_optimizations disable_all_hlo_passes disable_automatic_host_compute_offload"
    " disable_hlo_passes dump_buffer_assignment_analysis dump_compact_gte dump_compress_protos"
    " dump_disable_metadata dump_emitter_re dump_enable_mlir_pretty_form dump_full_hlo_config"
    " dump_fusion_visualization dump_hlo_as_dot dump_hlo_as_html dump_hlo_as_long_text dump_hlo_as_proto"
    " dump_hlo_as_riegeli dump_hlo_as_text dump_hlo_as_url dump_hlo_module_re dump_hlo_pass_re dump_hlo_pipeline_re"
    " dump_hlo_snapshots dump_hlo_to_subfolder dump_hlo_unoptimized_snapshots dump_include_timestamp"
    " dump_large_constants dump_latency_hiding_schedule dump_module_metadata dump_to early_exit_with_layouts"
    " eliminate_hlo_implicit_broadcast enable_command_buffers_during_profiling enable_dumping"
    " enable_enzyme_comms_opt enable_fast_math enable_hlo_modules_upload enable_hlo_passes_only"
    " enable_hlo_sharding_v3 enable_nccl_symmetric_buffers_for_collectives enable_rgv3_materialization"
    " enable_scoped_logging_timers flags_reset force_config force_host_platform_device_count"
    " hlo_evaluator_use_fast_path hlo_graph_addresses hlo_graph_sharding_color hlo_pass_fix_detect_cycles"
    " hlo_print_inline_stack_frames hlo_profile keep_shardings_after_spmd llvm_disable_expensive_passes"
    " llvm_enable_alias_scope_metadata llvm_enable_invariant_load_metadata llvm_enable_noalias_metadata"
    " llvm_force_inline_before_split multiheap_size_constraint_per_heap partitioning_algorithm"
    " pjrt_allow_auto_layout_in_hlo recognize_reduction_optimization_level reduce_window_rewrite_base_length"
    " run_hlo_passes_starting_from sdy_export_all_reduce_scatter spmd_enable_dynamic_slice_collective_broadcast"
    " step_marker_location syntax_sugar_async_ops test_add_command_buffer_mode test_all_input_layouts"
    " test_all_output_layouts unsupported_crash_on_hlo_pass_fix_max_iterations"
    " unsupported_crash_on_hlo_pass_noop_change unsupported_crash_on_hlo_pass_silent_hlo_change"
    " while_loop_all_reduce_dus_code_motion_max_size_bytes ";

/* Those for other devices are hundreds, and programs name them wherever they run. */
static bool option_is_of_xla(const char *name, size_t n) {
  char spaced[96];
  if (n < 8 || n > sizeof spaced || memcmp(name, "xla_", 4) != 0 || memchr(name, ' ', n)) return false;
  if (memcmp(name, "xla_gpu_", 8) == 0 || memcmp(name, "xla_tpu_", 8) == 0) return true;
  snprintf(spaced, sizeof spaced, " %.*s ", (int)(n - 4), name + 4);
  return strstr(option_of_xla, spaced) != NULL;
}

/* OptionOverrideProto: one of a text, a truth value, a whole number and a float. */
typedef struct option_value {
  uint32_t field; /* 1 to 4; 0: none */
  const char *text;
  size_t n;
  uint64_t bits;
} option_value;

static bool option_text_is(const option_value *v, const char *text) {
  return v->field == 1 && v->n == strlen(text) && memcmp(v->text, text, v->n) == 0;
}

static PJRT_Error *option_read_bool(const option_row *row, const option_value *v, bool *out) {
  bool yes = v->field == 2 ? v->bits != 0 : option_text_is(v, "True") || option_text_is(v, "true");
  bool no = v->field == 2 ? v->bits == 0 : option_text_is(v, "False") || option_text_is(v, "false");
  *out = yes;
  if (yes || no) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "While setting option %s, '%.*s' is not a valid bool value.", row->name,
                   (int)v->n, v->field == 1 ? v->text : "");
}

static PJRT_Error *option_read_int(const option_row *row, const option_value *v, int64_t *out) {
  char text[24] = "", *end = text;
  *out = (int64_t)v->bits;
  if (v->field == 3) return NULL;
  if (v->field == 1 && v->n > 0 && v->n < sizeof text) {
    memcpy(text, v->text, v->n);
    *out = strtoll(text, &end, 10);
  }
  if (end != text && !*end) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "While setting option %s, '%.*s' is not a valid int value.", row->name,
                   (int)v->n, v->field == 1 ? v->text : "");
}

static PJRT_Error *option_read_numerics(const option_value *v, bool *fast) {
  *fast = option_text_is(v, "fast");
  if (*fast || option_text_is(v, "strict")) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT,
                   "While setting option xlac_numerics, '%.*s' is neither \"strict\" nor \"fast\".", (int)v->n,
                   v->field == 1 ? v->text : "");
}

static PJRT_Error *option_set(pjrt_compile_options *o, const char *name, size_t n, const option_value *v) {
  for (size_t i = 0; i < sizeof option_rows / sizeof *option_rows; i++) {
    const option_row *row = &option_rows[i];
    void *at = (char *)o + row->at;
    bool flag;
    int64_t number;
    if (strlen(row->name) != n || memcmp(row->name, name, n) != 0) continue;
    switch (row->kind) {
      case OPTION_IGNORED_BOOL:
        return option_read_bool(row, v, &flag);
      case OPTION_IGNORED_INT:
        return option_read_int(row, v, &number);
      case OPTION_BOOL:
        return option_read_bool(row, v, at);
      case OPTION_INT:
        return option_read_int(row, v, at);
      case OPTION_NUMERICS:
        return option_read_numerics(v, at);
    }
  }
  if (option_is_of_xla(name, n)) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT,
                   "No such compile option: '%.*s' is neither xlac's (docs/jax.md has them) nor "
                   "one of XLA's that xlac knows",
                   (int)n, name);
}

/* --- messages --- */

static PJRT_Error *options_malformed(void) {
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "the compile options are not a CompileOptionsProto");
}

/* An entry of map<string, OptionOverrideProto>. */
static PJRT_Error *options_read_override(pjrt_compile_options *o, wire_reader r) {
  wire_field f, inner;
  wire_reader name = {NULL, NULL, false};
  option_value v = {0, NULL, 0, 0};
  while (wire_next(&r, &f)) {
    if (f.number == 1) name = f.bytes;
    while (f.number == 2 && wire_next(&f.bytes, &inner))
      v = (option_value){inner.number, (const char *)inner.bytes.at, (size_t)(inner.bytes.end - inner.bytes.at),
                         inner.value};
  }
  if (r.bad || !name.at) return options_malformed();
  return option_set(o, (const char *)name.at, (size_t)(name.end - name.at), &v);
}

static PJRT_Error *options_add_device(pjrt_compile_options *o, uint64_t id) {
  if (id >= PJRT_DEVICES_MAX || o->n_devices >= PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "device %lld of the assignment", (long long)id);
  int32_t *grown = base_realloc(base_alloc_libc, o->devices, (o->n_devices + 1) * sizeof *grown);
  if (!grown) return pjrt_out_of_memory("a device assignment");
  o->devices = grown;
  o->devices[o->n_devices++] = (int32_t)id;
  return NULL;
}

/* ComputationDevice: the ids, one by one or packed. */
static PJRT_Error *options_read_devices(pjrt_compile_options *o, wire_reader r) {
  wire_field f;
  while (wire_next(&r, &f)) {
    if (f.number == 1 && f.wire == 0) PJRT_TRY(options_add_device(o, f.value));
    while (f.number == 1 && f.wire == 2 && f.bytes.at < f.bytes.end && !f.bytes.bad)
      PJRT_TRY(options_add_device(o, wire_varint(&f.bytes)));
    if (f.bytes.bad) r.bad = true;
  }
  return r.bad ? options_malformed() : NULL;
}

static PJRT_Error *options_read_assignment(pjrt_compile_options *o, wire_reader r) {
  wire_field f;
  while (wire_next(&r, &f))
    if (f.number == 3 && f.wire == 2) PJRT_TRY(options_read_devices(o, f.bytes));
  return r.bad ? options_malformed() : NULL;
}

/* ExecutableBuildOptionsProto. */
static PJRT_Error *options_read_build(pjrt_compile_options *o, wire_reader r) {
  wire_field f;
  while (wire_next(&r, &f)) {
    if (f.number == 4 && f.wire == 0) o->n_replicas = (uint32_t)f.value;
    if (f.number == 5 && f.wire == 0) o->n_partitions = (uint32_t)f.value;
    if (f.number == 9 && f.wire == 2) PJRT_TRY(options_read_assignment(o, f.bytes));
  }
  return r.bad ? options_malformed() : NULL;
}

PJRT_Error *pjrt_read_compile_options(pjrt_compile_options *out, const char *bytes, size_t n) {
  wire_field f;
  const unsigned char *at = (const unsigned char *)bytes;
  wire_reader r = {at, n ? at + n : at, false}; /* nothing may be NULL */
  *out = (pjrt_compile_options){.n_replicas = 1, .n_partitions = 1, .threads = -1};
  while (wire_next(&r, &f)) {
    if (f.number == 3 && f.wire == 2) PJRT_TRY(options_read_build(out, f.bytes));
    if (f.number == 7 && f.wire == 2) PJRT_TRY(options_read_override(out, f.bytes));
  }
  return r.bad ? options_malformed() : NULL;
}

void pjrt_compile_options_free(pjrt_compile_options *o) {
  pjrt_free(o->devices);
  o->devices = NULL;
}
