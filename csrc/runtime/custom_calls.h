/* The registry of custom calls: target name to function. Devices look a target up when a call is made or run. Reading
 * is thread-safe; an entry may be added while no call that has the registry runs. */
#ifndef XLAC_RUNTIME_CUSTOM_CALLS_H
#define XLAC_RUNTIME_CUSTOM_CALLS_H

#include "../include/xlac_ffi.h"
#include "../ir/ir.h"

struct interp_value;

/* A function on the interpreter's values. Returns 0 or fills err. Results are to be filled in place: result[i], the
 * leaves of op's result type depth first, have dtype, dims and data, all zero, but for those that alias an operand:
 * they hold it. */
typedef int rt_custom_call_fn(void *ctx, const ir_op *op, uint32_t n_operands, struct interp_value *const *operands,
                              struct interp_value **result, xlac_error *err);
/* A native implementation (xlac_ffi.h). Stays where it is while it is used: `user` may point to it. */
typedef struct rt_native {
  xlac_ffi_fn *run;
  void *user;
  const void *inside[3]; /* of the built-in ones */
} rt_native;

typedef struct rt_registry rt_registry;
/* *out is the caller's, who ends it with rt_registry_destroy (NULL is fine). OUT_OF_MEMORY is the one error, here and
 * below, after which the registry is as it was. */
XLAC_MUST_USE int rt_registry_create(rt_registry **out, base_alloc alloc, xlac_error *err);
void rt_registry_destroy(rt_registry *r);
/* Replaces an earlier entry of that name. The target is copied; ctx is borrowed. */
XLAC_MUST_USE int rt_registry_add(rt_registry *r, const char *target, rt_custom_call_fn *fn, void *ctx,
                                  xlac_error *err);
XLAC_MUST_USE int rt_registry_add_native(rt_registry *r, const char *target, rt_native native, xlac_error *err);
/* NULL when there is none, or when it is native: then *native is filled. r may be NULL. */
rt_custom_call_fn *rt_registry_find(const rt_registry *r, const char *target, void **ctx, rt_native *native);

#endif
