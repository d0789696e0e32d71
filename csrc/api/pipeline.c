/* Passes: the table, and running a pipeline. */
#include "api.h"

#include "../pipeline/pipeline.h"

bool xlac_pass_get(uint32_t index, xlac_pass_info *out) {
  for (uint32_t i = 0; opt_pass_table[i].name; i++) {
    if (i != index) continue;
    const opt_option_info *options = opt_pass_table[i].options;
    uint32_t n = 0;
    while (options && options[n].name) n++;
    *out = (xlac_pass_info){opt_pass_table[i].name, opt_pass_table[i].doc, n};
    return true;
  }
  return false;
}

bool xlac_pass_option(uint32_t index, uint32_t option, const char **name, const char **doc) {
  xlac_pass_info info;
  if (!xlac_pass_get(index, &info) || option >= info.n_options) return false;
  *name = opt_pass_table[index].options[option].name;
  *doc = opt_pass_table[index].options[option].doc;
  return true;
}

/* The caller's callback, and the handle that its module argument must be. */
typedef struct after_pass {
  xlac_pass_callback fn;
  void *ctx;
  xlac_module *module;
} after_pass;

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

int xlac_module_run(xlac_module *m, const char *pipeline, const xlac_pipeline_options *given, xlac_error *err) {
  xlac_pipeline_options options;
  TRY(api_read_pipeline_options(&options, given, err));
  TRY(api_check_text(pipeline, "the pipeline", err));
  TRY(api_lock_edit(m, err));
  int status = api_check_whole(m->ir, err);
  after_pass after = {.module = m, .fn = options.after, .ctx = options.ctx};
  const opt_pipeline_options inner = {
      .after = options.after ? call_after : NULL, .ctx = &after, .verify_each = options.verify_each};
  if (status == 0) status = opt_run_pipeline(m->ir, pipeline, strlen(pipeline), &inner, err);
  return api_done(m, status);
}
