/* What a custom call's op says of its buffers: layouts, aliases, configuration.
 *
 * Made once per op, by the interpreter at each call and by compiled programs when they are built. A buffer
 * whose layout constraint is not row-major is `moved`: it is copied into that layout before the call, or
 * out of it after. */
#include "native.h"

/* The numbers that xlac_ffi.h gives are those of dtypes.def. */
#define DTYPE(name, ...) _Static_assert(XLAC_FFI_##name > 0, "an enumerator of each element type");
#include "../../base/dtypes.def"

uint32_t native_dtype(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  return info->ffi ? info->ffi : info->proto;
}

typedef struct native_maker {
  base_arena *arena;
  native_op *n;
  uint32_t at; /* buffers made so far */
  bool failed;
} native_maker;

/* The op's layouts count where it constrains its operands': then results have the layouts of its type.
 * Row-major where there is no constraint, or one that makes no sense. */
static const int64_t *native_minor_to_major(native_maker *x, const ir_type *t, const ir_type *constraint, bool *moved) {
  const ir_layout *l = constraint && ir_is_tensor(constraint) ? constraint->layout : NULL;
  int64_t *order = BASE_ARRAY(x->arena, int64_t, (size_t)t->rank + 1);
  *moved = false;
  if (!order) return NULL;
  for (uint32_t d = 0; d < t->rank; d++) order[d] = (int64_t)(t->rank - 1 - d);
  if (!l || l->rank != t->rank) return order;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (l->minor_to_major[d] < 0 || l->minor_to_major[d] >= t->rank) return order;
    *moved = *moved || (t->count > 1 && l->minor_to_major[d] != order[d]);
  }
  if (t->rank) memcpy(order, l->minor_to_major, t->rank * sizeof *order);
  return order;
}

/* The next buffer; tokens have no shape. Scratch is given out in multiples of 64 bytes. */
static void native_tensor(native_maker *x, const ir_type *t, const ir_type *constraint) {
  native_buffer *b = &x->n->buffers[x->at++];
  b->shape = (xlac_ffi_buffer){.dtype = XLAC_FFI_TOKEN};
  if (!ir_is_tensor(t)) return;
  b->shape.dtype = native_dtype(t->dtype);
  b->shape.rank = t->rank;
  b->shape.dims = t->dims;
  b->shape.count = t->count;
  b->shape.bytes = (uint64_t)ir_type_bytes(t);
  b->shape.minor_to_major = native_minor_to_major(x, t, constraint, &b->moved);
  x->failed = x->failed || !b->shape.minor_to_major;
  if (!b->moved) return;
  b->offset = x->n->scratch_bytes;
  x->n->scratch_bytes += ((int64_t)b->shape.bytes + 63) & ~INT64_C(63);
}

/* Types nest to a limited depth. constraint has the same structure, or is NULL. */
static void native_leaves(native_maker *x, const ir_type *t, const ir_type *constraint) {
  if (!ir_is_tuple(t)) {
    native_tensor(x, t, constraint);
    return;
  }
  bool same = constraint && ir_is_tuple(constraint) && constraint->n_elements == t->n_elements;
  for (uint32_t i = 0; i < t->n_elements; i++) native_leaves(x, t->elements[i], same ? constraint->elements[i] : NULL);
}

/* The number of the leaf at a tuple index path, among the leaves of t; UINT32_MAX where it leads to none. */
static uint32_t native_leaf_at(const ir_type *t, const ir_ints *path) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; path && i < path->n; i++) {
    if (!ir_is_tuple(t) || path->v[i] < 0 || path->v[i] >= t->n_elements) return UINT32_MAX;
    for (uint32_t k = 0; k < path->v[i]; k++) leaf += ir_type_leaves(t->elements[k]);
    t = t->elements[path->v[i]];
  }
  return ir_is_tensor(t) ? leaf : UINT32_MAX;
}

/* An alias shares memory only where both sides are laid out alike. */
static bool native_same_layout(const xlac_ffi_buffer *a, const xlac_ffi_buffer *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes) return false;
  if (a->rank == 0) return true; /* and there may be no arrays of dimensions */
  return memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
         memcmp(a->minor_to_major, b->minor_to_major, a->rank * sizeof *a->dims) == 0;
}

/* aliases[i]: the operand leaf that result leaf i begins as; UINT32_MAX: none. */
static void native_read_aliases(native_op *n) {
  const ir_attr *a = ir_attr_find(n->op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (uint32_t i = 0; i < n->n_results; i++) n->aliases[i] = UINT32_MAX;
  for (uint32_t i = 0; a && a->v.aliasing && i < a->v.aliasing->n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    if (alias->operand < 0 || alias->operand >= n->op->n_operands) continue;
    uint32_t to = native_leaf_at(n->op->type, alias->output), first = 0;
    uint32_t from = native_leaf_at(ir_operand_type(n->op, (uint32_t)alias->operand), alias->index);
    for (uint32_t k = 0; k < alias->operand; k++) first += ir_type_leaves(ir_operand_type(n->op, k));
    if (to == UINT32_MAX || from == UINT32_MAX) continue;
    const native_buffer *result = &n->buffers[n->n_operands + to], *operand = &n->buffers[first + from];
    if (native_same_layout(&result->shape, &operand->shape)) n->aliases[to] = first + from;
  }
}

/* API_VERSION_TYPED_FFI has a dictionary; older versions have opaque text. */
static int native_read_config(native_op *n, base_arena *arena, xlac_error *err) {
  const ir_attr *a = ir_attr_find(n->op, IR_ATTR_BACKEND_CONFIG);
  const base_istr *text = a && a->v.config ? a->v.config->text : NULL;
  n->opaque = "";
  if (!text) return 0;
  if (ir_get_word(n->op, IR_ATTR_API_VERSION) == IR_API_TYPED_FFI)
    return native_read_attrs(text->s, text->n, arena, n, err);
  n->opaque = text->s;
  n->opaque_size = text->n;
  return 0;
}

int native_prepare(const ir_op *op, base_arena *arena, native_op *out, xlac_error *err) {
  native_maker x = {.arena = arena, .n = out};
  const ir_attr *layouts = ir_attr_find(op, IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  const ir_types *constraints =
      layouts && layouts->v.types && layouts->v.types->n == op->n_operands ? layouts->v.types : NULL;
  *out = (native_op){.op = op, .target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET)};
  for (uint32_t i = 0; i < op->n_operands; i++) out->n_operands += ir_type_leaves(ir_operand_type(op, i));
  out->n_results = ir_type_leaves(op->type);
  out->buffers = BASE_ARRAY(arena, native_buffer, (size_t)out->n_operands + out->n_results + 1);
  out->aliases = BASE_ARRAY(arena, uint32_t, (size_t)out->n_results + 1);
  if (!out->buffers || !out->aliases) return base_oom(err, "a custom call");
  memset(out->buffers, 0, ((size_t)out->n_operands + out->n_results) * sizeof *out->buffers);
  for (uint32_t i = 0; i < op->n_operands; i++)
    native_leaves(&x, ir_operand_type(op, i), constraints ? constraints->v[i] : NULL);
  native_leaves(&x, op->type, constraints ? op->type : NULL);
  if (x.failed) return base_oom(err, "a custom call");
  assert(x.at == out->n_operands + out->n_results);
  native_read_aliases(out);
  return native_read_config(out, arena, err);
}

uint64_t native_in_place(const native_op *n) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < n->n_results && i < 64; i++)
    if (n->aliases[i] == i) bits |= UINT64_C(1) << i;
  return bits;
}
