/* Native custom calls (xlac_ffi.h), for every executor: what is known of an op before it runs, and one call of it. */
#ifndef XLAC_INTERP_CUSTOM_CALL_NATIVE_H
#define XLAC_INTERP_CUSTOM_CALL_NATIVE_H

#include "../../runtime/threads.h"
#include "../interp.h"

typedef struct native_buffer {
  xlac_ffi_buffer shape; /* data is NULL here */
  bool moved;            /* its layout is not row-major: the call has a copy in scratch memory, at: */
  int64_t offset;
} native_buffer;

/* An op as its calls see it. Immutable once made. */
typedef struct native_op {
  const ir_op *op;
  const char *target, *opaque;
  uint64_t opaque_size;
  uint32_t n_operands, n_results, n_attrs; /* leaves */
  native_buffer *buffers;                  /* of operands, then of results */
  uint32_t *aliases;                       /* by result: the operand whose value it holds at first, or UINT32_MAX */
  const xlac_ffi_attr *attrs;
  const char *bad_attrs; /* why the typed backend_config can't be read, or NULL */
  int64_t scratch_bytes;
} native_op;

/* In `arena`. Fails only when out of memory. Dimensions are those of the types: bounds where dynamic. */
XLAC_MUST_USE int native_prepare(const ir_op *op, base_arena *arena, native_op *out, xlac_error *err);
/* One call. in, out: row-major arrays (NULL for tokens), out being in where alias and memory say so. scratch:
 * scratch_bytes aligned to 64, or NULL where that is 0. pool: may be NULL. The error has the op's place. */
XLAC_MUST_USE int native_call(interp_ctx *ctx, const native_op *n, const rt_native *native, rt_pool *pool,
                              const void *const *in, void *const *out, void *scratch);

/* attrs: {name = value, ...} as MLIR writes it. *why says what can't be read. native_attrs.c */
XLAC_MUST_USE int native_read_attrs(const char *text, size_t n, base_arena *arena, native_op *out, xlac_error *err);
/* The number in xlac_ffi.h. */
uint32_t native_dtype(base_dtype t);

/* Whether some result leaf may be the memory of the operand leaf of the same number; bits by leaf. */
uint64_t native_in_place(const native_op *n);

#endif
