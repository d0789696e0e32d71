/* Propagation of shardings with its reasons, and what it leaves to move. */
#include "../shard/explain/explain.h"
#include "api.h"

static int sharding_form(const xlac_module *m, xlac_error *err) {
  if (m->ir->form == IR_FORM_MLIR) return 0;
  return base_hint(err,
                   base_fail(err, XLAC_E_BAD_ARGUMENT, "shardings are propagated in StableHLO, this is an HLO module"),
                   "xlac_module_to_stablehlo makes one of it");
}

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

int xlac_module_annotate(xlac_module *m, const char *value, const char *sharding, xlac_error *err) {
  if (value == NULL || sharding == NULL)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "value and sharding must not be NULL");
  TRY(api_lock_edit(m, err));
  int status = sharding_form(m, err);
  if (status == 0) status = shard_annotate(m->ir, value, sharding, err);
  return api_done(m, status);
}
