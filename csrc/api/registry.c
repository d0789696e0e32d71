/* The registry of custom calls: public functions behind the interpreter's own signature.
 *
 * A registry may serve many runs at once, but must not change while one uses it. */
#include "api.h"

/* One for each target that was added; a target added again leaves its old shim unused. */
typedef struct registry_shim registry_shim;
struct registry_shim {
  xlac_custom_call fn;
  void *ctx;
  registry_shim *next;
};

struct xlac_registry {
  rt_registry *inner;
  registry_shim *shims; /* owned; the inner registry points to them */
};

/* Empty: built-in targets need no entry. */
int xlac_registry_create(xlac_registry **out, xlac_error *err) {
  xlac_registry *r = base_malloc(base_alloc_libc, sizeof *r);
  if (r == NULL) return base_oom(err, "making a registry");
  r->shims = NULL;
  int status = rt_registry_create(&r->inner, base_alloc_libc, err);
  if (status != 0) {
    base_free(base_alloc_libc, r);
    return status;
  }
  *out = r;
  return 0;
}

void xlac_registry_destroy(xlac_registry *r) {
  if (r == NULL) return;
  rt_registry_destroy(r->inner);
  while (r->shims) {
    registry_shim *next = r->shims->next;
    base_free(base_alloc_libc, r->shims);
    r->shims = next;
  }
  base_free(base_alloc_libc, r);
}

/* What the interpreter calls: `results` holds the leaves of the result, zeroed, for the implementation to
 * fill. Tokens among the leaves have no data: NULL. What the function writes into its error's message
 * becomes part of ours; a message that is not terminated is cut. */
static int call_shim(void *ctx, const ir_op *op, uint32_t n_operands, interp_value *const *operands,
                     interp_value **results, xlac_error *err) {
  const registry_shim *shim = ctx;
  uint32_t n = ir_type_leaves(op->type);
  void **data = base_malloc(base_alloc_libc, ((size_t)n + 1) * sizeof *data);
  if (data == NULL) return base_oom(err, "calling a custom call");
  for (uint32_t i = 0; i < n; i++) data[i] = results[i]->kind == INTERP_ARRAY ? results[i]->data : NULL;
  xlac_error cause = {.code = 0};
  int status =
      shim->fn(shim->ctx, api_op_out(op), n_operands, (xlac_value *const *)(const void *)operands, n, data, &cause);
  base_free(base_alloc_libc, data);
  if (status == 0) return 0;
  cause.message[sizeof cause.message - 1] = 0;
  return base_fail_at(err, XLAC_E_EVAL, op->line, op->col, op->name->s, "custom call %s failed: %s",
                      ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET),
                      cause.message[0] ? cause.message : "it gave no reason");
}

/* The shim is linked only when the inner registry has it. */
int xlac_registry_add(xlac_registry *r, const char *target, xlac_custom_call fn, void *ctx, xlac_error *err) {
  TRY(api_check_text(target, "the target", err));
  if (!fn) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the custom call %.100s has no function", target);
  registry_shim *shim = base_malloc(base_alloc_libc, sizeof *shim);
  if (shim == NULL) return base_oom(err, "registering a custom call");
  *shim = (registry_shim){fn, ctx, r->shims};
  int status = rt_registry_add(r->inner, target, call_shim, shim, err);
  if (status != 0) {
    base_free(base_alloc_libc, shim);
    return status;
  }
  r->shims = shim;
  return 0;
}

/* struct_size and version as in xlac_ffi.h: older ones than ours are refused. */
int xlac_registry_add_native(xlac_registry *r, const char *target, const struct xlac_ffi_target *native,
                             xlac_error *err) {
  TRY(api_check_text(target, "the target", err));
  if (native == NULL || native->struct_size < sizeof *native || native->version < 1 || native->run == NULL)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the custom call %.100s has no function, or is of an unknown version",
                     target);
  rt_native own = {.run = native->run, .user = native->user};
  return rt_registry_add_native(r->inner, target, own, err);
}

const rt_registry *api_registry(const xlac_registry *r) {
  return r ? r->inner : NULL;
}

/* --- Probes: public functions over the interpreter's own. --- */

static interp_probes *probes_in(xlac_probes *p) {
  return (interp_probes *)p;
}

int xlac_probes_create(xlac_probes **out, xlac_error *err) {
  interp_probes *p = NULL;
  TRY(interp_probes_create(&p, base_alloc_libc, err));
  *out = (xlac_probes *)p;
  return 0;
}

void xlac_probes_destroy(xlac_probes *p) {
  interp_probes_destroy(probes_in(p));
}

uint32_t xlac_probes_count(xlac_probes *p) {
  return interp_probes_count(probes_in(p));
}

int xlac_probes_get(xlac_probes *p, uint32_t i, const char **id, xlac_value **value, xlac_error *err) {
  uint32_t n = interp_probes_count(probes_in(p));
  if (i >= n) return base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no number %u among %u probed values", i, n);
  *value = api_value_out(interp_retain(interp_probes_get(probes_in(p), i, id)));
  return 0;
}
