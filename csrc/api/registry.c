/* The registry of custom calls: public functions behind the interpreter's own signature. */
#include "api.h"

typedef struct registry_shim registry_shim;
struct registry_shim {
  xlac_custom_call fn;
  void *ctx;
  registry_shim *next;
};

struct xlac_registry {
  interp_registry *inner;
  registry_shim *shims; /* owned; the inner registry points to them */
};

int xlac_registry_create(xlac_registry **out, xlac_error *err) {
  xlac_registry *r = base_malloc(base_alloc_libc, sizeof *r);
  if (r == NULL) return base_oom(err, "making a registry");
  r->shims = NULL;
  int status = interp_registry_create(&r->inner, base_alloc_libc, err);
  if (status != 0) {
    base_free(base_alloc_libc, r);
    return status;
  }
  *out = r;
  return 0;
}

void xlac_registry_destroy(xlac_registry *r) {
  if (r == NULL) return;
  interp_registry_destroy(r->inner);
  while (r->shims) {
    registry_shim *next = r->shims->next;
    base_free(base_alloc_libc, r->shims);
    r->shims = next;
  }
  base_free(base_alloc_libc, r);
}

/* The arrays among the leaves of a result, depth first: their data. */
static uint32_t gather_leaves(const interp_value *v, void **leaves, uint32_t n) {
  if (v->kind == INTERP_ARRAY) {
    if (leaves) leaves[n] = v->data;
    return n + 1;
  }
  for (uint32_t i = 0; v->kind == INTERP_TUPLE && i < v->n_elements; i++) n = gather_leaves(v->elements[i], leaves, n);
  return n;
}

/* What the interpreter calls: `*result` has the op's shape, its arrays are for the implementation to fill. */
static int call_shim(void *ctx, const ir_op *op, uint32_t n_operands, interp_value *const *operands, interp_value **result,
                     xlac_error *err) {
  const registry_shim *shim = ctx;
  assert(*result);
  uint32_t n = gather_leaves(*result, NULL, 0);
  void **leaves = base_malloc(base_alloc_libc, (n + 1u) * sizeof *leaves);
  if (leaves == NULL) return base_oom(err, "calling a custom call");
  gather_leaves(*result, leaves, 0);
  xlac_error cause = {.code = 0};
  int status = shim->fn(shim->ctx, api_op_out(op), n_operands, (xlac_value *const *)(const void *)operands, n, leaves, &cause);
  base_free(base_alloc_libc, leaves);
  if (status == 0) return 0;
  return base_fail_at(err, XLAC_E_EVAL, op->line, op->col, op->name->s, "custom call %s failed: %s",
                      ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET), cause.message[0] ? cause.message : "it gave no reason");
}

int xlac_registry_add(xlac_registry *r, const char *target, xlac_custom_call fn, void *ctx, xlac_error *err) {
  registry_shim *shim = base_malloc(base_alloc_libc, sizeof *shim);
  if (shim == NULL) return base_oom(err, "registering a custom call");
  *shim = (registry_shim){fn, ctx, r->shims};
  int status = interp_registry_add(r->inner, target, call_shim, shim, err);
  if (status != 0) {
    base_free(base_alloc_libc, shim);
    return status;
  }
  r->shims = shim;
  return 0;
}

const interp_registry *api_registry(const xlac_registry *r) { return r ? r->inner : NULL; }
