/* Passes: the table, running a pipeline, and the passes that explain: async chains and shardings.
 *
 * A pipeline is text, "dce,cse,algebraic-simplification{...}", read by pipeline/. It runs under the
 * module's lock, on the module itself; a pass that fails leaves what the ones before it have made. */
#include "api.h"
#include "../pipeline/pipeline.h"
#include "../passes/async/explain.h"
#include "../shard/explain/explain.h"

/* --- Passes: the table, and running a pipeline. --- */

/* Static texts. False past the end of the table. */
bool xlac_pass_get(uint32_t index, xlac_pass_info *out) {
  assert(out);
  for (uint32_t i = 0; pipeline_passes[i].name; i++) {
    if (i != index) continue;
    const opt_option_info *options = pipeline_passes[i].options;
    uint32_t n = 0;
    while (options && options[n].name) n++;
    *out = (xlac_pass_info){pipeline_passes[i].name, pipeline_passes[i].doc, n};
    return true;
  }
  return false;
}

/* Option `option` of pass `index`. */
bool xlac_pass_option(uint32_t index, uint32_t option, const char **name, const char **doc) {
  xlac_pass_info info;
  if (!xlac_pass_get(index, &info) || option >= info.n_options) return false;
  *name = pipeline_passes[index].options[option].name;
  *doc = pipeline_passes[index].options[option].doc;
  return true;
}

/* The caller's callback, and the handle that its module argument must be. */
typedef struct after_pass {
  xlac_pass_callback fn;
  void *ctx;
  xlac_module *module;
} after_pass;

/* Nonzero from the callback stops the pipeline. */
static int call_after(void *ctx, const char *pass, uint32_t index, ir_module *m, xlac_error *err) {
  after_pass *after = ctx;
  (void)index;
  assert(after->module->ir == m);
  (void)m;
  /* The callback may read the module through its handle, which must not be locked then. */
  api_unlock(after->module);
  int status = after->fn(after->ctx, pass, after->module);
  api_lock(after->module);
  return status ? base_fail(err, XLAC_E_INTERRUPTED, "the pipeline was stopped after %s", pass) : 0;
}

/* The pipeline's names and options are checked before the first pass runs. */
int xlac_module_run(xlac_module *m, const char *pipeline, const xlac_pipeline_options *given, xlac_error *err) {
  xlac_pipeline_options options;
  TRY(api_read_pipeline_options(&options, given, err));
  TRY(api_check_text(pipeline, "the pipeline", err));
  TRY(api_lock_edit(m, err));
  int status = api_check_whole(m->ir, err);
  after_pass after = {.module = m, .fn = options.after, .ctx = options.ctx};
  const opt_pipeline_options inner = {
      .after = options.after ? call_after : NULL, .ctx = &after, .verify_each = options.verify_each};
  if (status == 0) status = pipeline_run_text(m->ir, pipeline, strlen(pipeline), &inner, err);
  return api_done(m, status);
}

/* --- What async chains hide and what they don't, by the cost model. --- */

/* Rates that are zero or less are left at the model's defaults. Units: 10^9 floating-point operations or
 * bytes a second. */
static int explain_hlo(ir_module *ir, const xlac_async_model *model, char **json, size_t *n, xlac_error *err) {
  async_model inner = async_model_default;
  base_text t;
  if (model && model->gigaflops > 0) inner.gigaflops = model->gigaflops;
  if (model && model->memory_gigabytes > 0) inner.memory = model->memory_gigabytes;
  if (model && model->link_gigabytes > 0) inner.link = model->link_gigabytes;
  const ir_verify_options lenient = {.xla_compat = true};
  TRY(ir_verify(ir, &lenient, err));
  base_text_init(&t, base_alloc_libc);
  int status = async_put_json(&t, ir, &inner, err);
  if (status == 0) return api_give_text(&t, json, n, err);
  base_text_free(&t);
  return status;
}

/* Reads only; MLIR form is looked at through its translation. */
int xlac_module_explain_async(xlac_module *m, const xlac_async_model *model, char **json, size_t *n, xlac_error *err) {
  ir_module *translated = NULL;
  const convert_to_hlo_options executable = {.executable = true};
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0 && m->ir->form == IR_FORM_MLIR) status = convert_to_hlo(&translated, m->ir, &executable, err);
  if (status == 0) status = explain_hlo(translated ? translated : m->ir, model, json, n, err);
  ir_module_destroy(translated);
  return api_done(m, status);
}

/* --- Propagation of shardings with its reasons, and what it leaves to move. --- */

static int sharding_form(const xlac_module *m, xlac_error *err) {
  if (m->ir->form == IR_FORM_MLIR) return 0;
  return base_hint(err,
                   base_fail(err, XLAC_E_BAD_ARGUMENT, "shardings are propagated in StableHLO, this is an HLO module"),
                   "xlac_module_to_stablehlo makes one of it");
}

/* Propagation of the
 * module's shardings, with the reason of every step. JSON. */
int xlac_module_explain_sharding(xlac_module *m, char **text, size_t *n, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = sharding_form(m, err);
  if (status == 0) status = stablehlo_verify(m->ir, err);
  if (status == 0) status = shard_explain(m->ir, &t, err);
  if (status == 0) return api_done(m, api_give_text(&t, text, n, err));
  base_text_free(&t);
  return api_done(m, status);
}

/* Where the shardings that are there make data move. */
int xlac_module_reshards(xlac_module *m, char **text, size_t *n, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  base_text t;
  base_text_init(&t, base_alloc_libc);
  int status = sharding_form(m, err);
  if (status == 0) status = shard_list_reshards(m->ir, &t, err);
  if (status == 0) return api_done(m, api_give_text(&t, text, n, err));
  base_text_free(&t);
  return api_done(m, status);
}

/* `value` is a name as the printer gives it; `sharding` is
 * Shardy's text, `#sdy.sharding<@mesh, [{"x"}, {}]>`; empty: none. */
int xlac_module_annotate(xlac_module *m, const char *value, const char *sharding, xlac_error *err) {
  if (value == NULL || sharding == NULL)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "value and sharding must not be NULL");
  TRY(api_lock_edit(m, err));
  int status = sharding_form(m, err);
  if (status == 0) status = shard_annotate(m->ir, value, sharding, err);
  return api_done(m, status);
}
