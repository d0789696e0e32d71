/* Values of the interpreter: reference-counted arrays, tuples and tokens, each one allocation with its data behind it.
 *
 * Kinds of data: own (behind the struct, aligned to 64), lent (somebody else's: an argument, a literal,
 * foreign memory with a release function), and a view (lent by a base value, to which it holds a
 * reference). Only own data that one reference holds may be written in place. */
#include "blocks.h"
#include "heap.h"

#define DATA_ALIGN ((size_t)64)

/* Fills err with what ran out. */
static interp_value *value_oom(interp_ctx *ctx) {
  int status = base_oom(ctx->err, "an interpreter value");
  (void)status;
  return NULL;
}

/* A value with `extra` bytes behind its struct and dims, 64-aligned when `aligned`. NULL when out of
 * memory. dims lie between struct and data. */
static interp_value *value_new(base_alloc alloc, interp_kind kind, uint32_t rank, size_t extra, void **data) {
  size_t head = sizeof(interp_value) + rank * sizeof(int64_t), size;
  if (!base_add(head + DATA_ALIGN, extra, &size)) return NULL;
  interp_value *v = base_malloc(alloc, size);
  if (!v) return NULL;
  memset(v, 0, sizeof *v);
  atomic_init(&v->refs, 1);
  v->kind = (uint8_t)kind;
  v->alloc = alloc;
  v->rank = rank;
  v->dims = (int64_t *)(v + 1);
  uintptr_t end = (uintptr_t)v + head;
  *data = (char *)v + head + (DATA_ALIGN - end % DATA_ALIGN) % DATA_ALIGN;
  return v;
}

/* Element count of dims in *count and their bytes in *bytes; false on overflow. An empty array has 0
 * elements, also where the product of its other sizes does not fit. */
static bool array_size(base_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *count, size_t *bytes) {
  bool fits = true, empty = false;
  *count = 1;
  for (uint32_t i = 0; i < rank; i++) {
    assert(dims[i] >= 0);
    empty |= dims[i] == 0;
    fits &= base_mul_i64(*count, dims[i], count);
  }
  if (empty) *count = 0;
  return (fits || empty) && base_mul((size_t)*count, base_dtype_bytes(dtype), bytes) && *bytes <= PTRDIFF_MAX;
}

/* own: with room for its data; else data points to that room's place, which is empty, until the caller
 * sets it. */
static interp_value *array_new(base_alloc alloc, base_dtype dtype, uint32_t rank, const int64_t *dims, bool own) {
  int64_t count;
  size_t bytes;
  void *data;
  assert(dtype != BASE_DTYPE_INVALID && dtype < BASE_DTYPE_COUNT);
  if (!array_size(dtype, rank, dims, &count, &bytes)) return NULL;
  interp_value *v = value_new(alloc, INTERP_ARRAY, rank, own ? bytes : 0, &data);
  if (!v) return NULL;
  v->dtype = (uint8_t)dtype;
  v->count = count;
  v->data = data;
  if (rank) memcpy(v->dims, dims, rank * sizeof *dims);
  return v;
}

/* Arrays of INTERP_HEAP_MIN bytes and more come from the run's heap, which keeps blocks for the next. */
static base_alloc array_alloc(const interp_ctx *ctx, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  int64_t count;
  size_t bytes;
  bool big = array_size(dtype, rank, dims, &count, &bytes) && bytes >= INTERP_HEAP_MIN;
  return big && ctx->heap ? interp_heap_alloc(ctx->heap) : ctx->options.alloc;
}

interp_value *interp_array(interp_ctx *ctx, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  interp_value *v = array_new(array_alloc(ctx, dtype, rank, dims), dtype, rank, dims, true);
  return v ? v : value_oom(ctx);
}

/* An op whose type leaves a size open must compute it itself. */
interp_value *interp_array_for(interp_ctx *ctx, const ir_op *op) {
  assert(ir_is_tensor(op->type));
  for (uint32_t d = 0; d < op->type->rank; d++) {
    if (op->type->dims[d] >= 0) continue;
    int status = interp_fail(ctx, op, XLAC_E_EVAL, "nothing says what size dimension %u has", d);
    (void)status;
    return NULL;
  }
  return interp_array(ctx, op->type->dtype, op->type->rank, op->type->dims);
}

interp_value *interp_tuple(interp_ctx *ctx, uint32_t n, interp_value *const *elements) {
  void *data;
  interp_value *v = value_new(ctx->options.alloc, INTERP_TUPLE, 0, n * sizeof *elements, &data);
  if (!v) return value_oom(ctx);
  v->n_elements = n;
  v->elements = data;
  for (uint32_t i = 0; i < n; i++) v->elements[i] = interp_retain(elements[i]);
  return v;
}

interp_value *interp_token(interp_ctx *ctx) {
  void *data;
  interp_value *v = value_new(ctx->options.alloc, INTERP_TOKEN, 0, 0, &data);
  return v ? v : value_oom(ctx);
}

/* NULL when out of memory; then release has not been called and the memory stays the caller's. */
interp_value *interp_lend(base_alloc alloc, base_dtype dtype, uint32_t rank, const int64_t *dims, void *data,
                          void (*release)(void *), void *release_ctx) {
  assert(dtype < BASE_DTYPE_COUNT);
  interp_value *v = array_new(alloc, dtype, rank, dims, false);
  if (!v) return NULL;
  if (data) v->data = data;
  v->lent = true;
  v->release = release;
  v->release_ctx = release_ctx;
  return v;
}

/* n_elements counts what is there, so that releasing it midway is right. */
static interp_value *literal_tuple(interp_ctx *ctx, const ir_literal *l) {
  uint32_t n = l->type->n_elements;
  void *data;
  interp_value *v = value_new(ctx->options.alloc, INTERP_TUPLE, 0, n * sizeof(interp_value *), &data);
  if (!v) return value_oom(ctx);
  v->elements = data;
  for (uint32_t i = 0; i < n; i++) {
    interp_value *e = interp_from_literal(ctx, l->elements[i]);
    if (!e) {
      interp_release(v);
      return NULL;
    }
    v->elements[v->n_elements++] = e;
  }
  return v;
}

/* Literal nesting is a type's nesting, which the IR limits, so the recursion is limited too. */
interp_value *interp_from_literal(interp_ctx *ctx, const ir_literal *l) {
  assert(!l->elided);
  if (ir_is_tuple(l->type)) return literal_tuple(ctx, l);
  if (ir_is_token(l->type)) return interp_token(ctx);
  assert(ir_is_tensor(l->type));
  interp_value *v = interp_lend(ctx->options.alloc, l->type->dtype, l->type->rank, l->type->dims, l->data, NULL, NULL);
  return v ? v : value_oom(ctx);
}

/* The last reference: elements first, then the owner's release, then the base. Depth is that of tuples. */
void interp_release(interp_value *v) {
  if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_release) != 1) return;
  atomic_thread_fence(memory_order_acquire);
  for (uint32_t i = 0; i < v->n_elements; i++) interp_release(v->elements[i]);
  if (v->release) v->release(v->release_ctx);
  interp_release(v->base);
  base_free(v->alloc, v);
}

/* A view counts as unique where the base is held by it alone: then nobody else can see the bytes. */
bool interp_is_unique(const interp_value *v) {
  if (atomic_load_explicit(&v->refs, memory_order_acquire) != 1) return false;
  const interp_value *owner = v->base ? v->base : v;
  return !owner->lent && (owner == v || atomic_load_explicit(&owner->refs, memory_order_acquire) == 1);
}

/* A tuple is copied one level deep: its elements are shared. NULL: out of memory or interrupted, v is
 * gone. */
interp_value *interp_make_unique(interp_ctx *ctx, interp_value *v) {
  if (v->kind == INTERP_TOKEN || interp_is_unique(v)) return v;
  interp_value *copy = v->kind == INTERP_TUPLE ? interp_tuple(ctx, v->n_elements, v->elements)
                                               : interp_array(ctx, v->dtype, v->rank, v->dims);
  int status = copy && v->kind == INTERP_ARRAY ? interp_copy_bytes(ctx, copy->data, v->data, interp_bytes(v)) : 0;
  interp_release(v);
  if (status == 0) return copy;
  interp_release(copy);
  return NULL;
}

/* Views of views hold the first base, so chains do not grow. Other element types are fine where sizes
 * agree (bitcast-convert). */
interp_value *interp_view(interp_ctx *ctx, interp_value *v, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  assert(v->kind == INTERP_ARRAY);
  interp_value *view = array_new(ctx->options.alloc, dtype, rank, dims, false);
  if (!view) return value_oom(ctx);
  assert(interp_bytes(view) <= interp_bytes(v));
  view->data = v->data;
  view->lent = true;
  view->base = interp_retain(v->base ? v->base : v);
  return view;
}

/* Sizes of 0 count as 1, so that strides stay meaningful. */
void interp_strides(uint32_t rank, const int64_t *dims, int64_t *strides) {
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i] > 0 ? dims[i] : 1;
  }
}
