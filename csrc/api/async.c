/* What async chains hide and what they don't, by the cost model. */
#include "../passes/async/explain.h"
#include "api.h"

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

int xlac_module_explain_async(xlac_module *m, const xlac_async_model *model, char **json, size_t *n, xlac_error *err) {
  ir_module *translated = NULL;
  const stablehlo_to_hlo_options executable = {.executable = true};
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0 && m->ir->form == IR_FORM_MLIR) status = stablehlo_to_hlo(&translated, m->ir, &executable, err);
  if (status == 0) status = explain_hlo(translated ? translated : m->ir, model, json, n, err);
  ir_module_destroy(translated);
  return api_done(m, status);
}
