/* Ops that move elements: compositions become one op, and what leaves memory as it is becomes a reshape. */
#include "algebraic_simplification.h"

/* An op without the list has none to move: a broadcast of a scalar. */
static const int64_t *hs_dims_of(const ir_op *op, uint32_t *n) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  *n = list ? list->n : 0;
  return list ? list->v : NULL;
}

/* An op of op's type on `from`. */
static ir_op *hs_make_dims(hs_run *s, const ir_op *op, ir_opcode opcode, ir_op *from, uint32_t n, const int64_t *dims) {
  ir_op *made = hlo_make(&s->x, opcode, op->type, 1, &from);
  if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, n, dims)) s->x.failed = true;
  return made;
}

/* No reshape where the shape is right already. */
static ir_op *hs_reshape_of(hs_run *s, const ir_op *op, ir_op *from) {
  assert(!from || from->type->count == op->type->count);
  return from->type == op->type ? from : hlo_make(&s->x, IR_OP_RESHAPE, op->type, 1, &from);
}

static bool hs_is_scalar_broadcast(const ir_op *op) {
  return op->opcode == IR_OP_BROADCAST && ir_operand_type(op, 0)->rank == 0;
}

/* Of a reshape, the first shape is all that counts; a scalar can be broadcast to the new shape at once. */
static ir_op *hs_reshape(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  if (from->type == op->type) return from;
  if (from->opcode == IR_OP_RESHAPE) return hs_reshape_of(s, op, ir_operand(from, 0));
  return hs_is_scalar_broadcast(from) ? hs_make_dims(s, op, IR_OP_BROADCAST, ir_operand(from, 0), 0, NULL) : NULL;
}

static bool hs_increases(uint32_t n, const int64_t *v) {
  for (uint32_t i = 1; i < n; i++)
    if (v[i] <= v[i - 1]) return false;
  return true;
}

/* One that adds only dimensions of extent 1 moves nothing; of two in a row the outer map is applied to the inner one.
 */
static ir_op *hs_broadcast(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  uint32_t n = 0, m = 0;
  const int64_t *dims = hs_dims_of(op, &n);
  if (from->type->count == op->type->count && hs_increases(n, dims) && op->type->count)
    return hs_reshape_of(s, op, from);
  if (from->opcode != IR_OP_BROADCAST) return NULL;
  const int64_t *inner = hs_dims_of(from, &m);
  int64_t composed[IR_MAX_RANK];
  for (uint32_t i = 0; i < m; i++) composed[i] = dims[inner[i]];
  return hs_make_dims(s, op, IR_OP_BROADCAST, ir_operand(from, 0), m, composed);
}

/* Only dimensions of extent 1 change their order. */
static bool hs_keeps_memory(const ir_type *from, uint32_t n, const int64_t *permutation) {
  int64_t last = -1;
  for (uint32_t i = 0; i < n; i++) {
    if (from->dims[permutation[i]] == 1) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

/* Broadcast to the transposed shape right away, where its dimensions still increase. */
static ir_op *hs_transpose_broadcast(hs_run *s, ir_op *op, const ir_op *from, const int64_t *permutation) {
  uint32_t n = 0;
  const int64_t *dims = hs_dims_of(from, &n);
  int64_t moved[IR_MAX_RANK], inverse[IR_MAX_RANK];
  for (uint32_t i = 0; i < op->type->rank; i++) inverse[permutation[i]] = i;
  for (uint32_t i = 0; i < n; i++) moved[i] = inverse[dims[i]];
  if (!hs_increases(n, moved)) return NULL;
  return hs_make_dims(s, op, IR_OP_BROADCAST, ir_operand(from, 0), n, moved);
}

/* The factors that two shapes of as many elements have in common, in order: dimension i of each is the product of those
 * factors f with in_a[f] == i (in_b). false where their dimensions don't divide one another. */
typedef struct hs_factors {
  uint32_t n, in_a[IR_MAX_RANK], in_b[IR_MAX_RANK];
  int64_t v[IR_MAX_RANK];
} hs_factors;
/* [6, 4] and [2, 12]: the factors 2, 3, 4, of which 2 and 3 make dimension 0 of the first, 3 and 4 dimension 1 of the
 * second. [2, 3] and [3, 2] have none: 2 and 3 do not divide one another. */
static bool hs_factor(const ir_type *a, const ir_type *b, hs_factors *f) {
  int64_t left_a = 1, left_b = 1;
  uint32_t i = 0, j = 0;
  f->n = 0;
  if (a->count == 0) return false;
  for (;;) {
    while (left_a == 1 && i < a->rank) left_a = a->dims[i++];
    while (left_b == 1 && j < b->rank) left_b = b->dims[j++];
    if (left_a == 1 || left_b == 1) return left_a == left_b;
    int64_t v = left_a < left_b ? left_a : left_b;
    if (f->n == IR_MAX_RANK || left_a % v || left_b % v) return false;
    f->in_a[f->n] = i - 1;
    f->in_b[f->n] = j - 1;
    f->v[f->n++] = v;
    left_a /= v;
    left_b /= v;
  }
}

/* transpose(reshape(transpose(x))) is reshape(transpose(reshape(x))): x is cut as finely as the shapes between ask. */
static ir_op *hs_transpose_twice(hs_run *s, const ir_op *op, const ir_op *reshape, const int64_t *outer) {
  ir_op *inner = ir_operand(reshape, 0), *x = inner->opcode == IR_OP_TRANSPOSE ? ir_operand(inner, 0) : NULL;
  hs_factors f;
  uint32_t n = 0, place[IR_MAX_RANK], at = 0;
  int64_t fine[IR_MAX_RANK], permutation[IR_MAX_RANK];
  if (!x || !hlo_is_plain(x->type) || !hs_factor(inner->type, reshape->type, &f)) return NULL;
  const int64_t *first = hs_dims_of(inner, &n);
  for (uint32_t d = 0; d < x->type->rank; d++)
    for (uint32_t k = 0; k < f.n; k++)
      if (first[f.in_a[k]] == d) place[k] = at, fine[at++] = f.v[k];
  at = 0;
  for (uint32_t o = 0; o < op->type->rank; o++)
    for (uint32_t k = 0; k < f.n; k++)
      if (f.in_b[k] == outer[o]) permutation[at++] = place[k];
  assert(at == f.n);
  bool stays = true;
  for (uint32_t k = 0; k < f.n; k++) stays = stays && permutation[k] == k;
  if (stays) return hs_reshape_of(s, op, x);
  ir_op *cut =
      hlo_make(&s->x, IR_OP_RESHAPE, ir_tensor_default(s->x.m, (base_dtype)op->type->dtype, f.n, fine, NULL), 1, &x);
  ir_op *turned = hlo_transpose(&s->x, cut, permutation);
  return hlo_make(&s->x, IR_OP_RESHAPE, op->type, 1, &turned);
}

/* In the order of how much is saved: no copy, one copy less, other dimension numbers of a dot. */
static ir_op *hs_transpose(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  uint32_t n = 0;
  const int64_t *permutation = hs_dims_of(op, &n);
  if (hs_keeps_memory(from->type, n, permutation)) return hs_reshape_of(s, op, from);
  assert(n == op->type->rank);
  if (from->opcode == IR_OP_BROADCAST) return hs_transpose_broadcast(s, op, from, permutation);
  if (from->opcode == IR_OP_RESHAPE) return hs_transpose_twice(s, op, from, permutation);
  if (from->opcode != IR_OP_TRANSPOSE) return hs_transpose_of_dot(s, op);
  const int64_t *inner = hs_dims_of(from, &n);
  int64_t composed[IR_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) composed[i] = inner[permutation[i]];
  return hs_make_dims(s, op, IR_OP_TRANSPOSE, ir_operand(from, 0), n, composed);
}

/* Of op's type: only where it reads from changes. */
static ir_op *hs_make_slice(hs_run *s, const ir_op *op, ir_op *from, const ir_slice *slice) {
  ir_op *made = hlo_make(&s->x, IR_OP_SLICE, op->type, 1, &from);
  ir_attr a = ir_attr_make(IR_ATTR_SLICE);
  a.v.slice = slice;
  if (made && !ir_attr_set(made, a)) s->x.failed = true;
  return made;
}

/* In the module's arena, since attributes live as long as the module. */
static ir_slice *hs_new_slice(hs_run *s, uint32_t n) {
  ir_slice *slice = base_arena_zalloc(&s->x.m->arena, sizeof *slice + n * sizeof *slice->v);
  s->x.failed = s->x.failed || !slice;
  if (slice) slice->n = n;
  return slice;
}

static const ir_slice *hs_slice_of(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SLICE);
  return a ? a->v.slice : NULL;
}

/* Starts and strides compose; the limit is the least that has all elements. */
static ir_op *hs_slice(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  if (from->type == op->type) return from;
  const ir_slice *outer = hs_slice_of(op), *inner = from->opcode == IR_OP_SLICE ? hs_slice_of(from) : NULL;
  if (!outer || !inner || op->type->count == 0) return NULL;
  assert(outer->n == inner->n);
  ir_slice *both = hs_new_slice(s, outer->n);
  for (uint32_t d = 0; both && d < outer->n; d++) {
    const ir_slice_dim *o = &outer->v[d], *i = &inner->v[d];
    both->v[d].start = i->start + o->start * i->stride;
    both->v[d].stride = o->stride * i->stride;
    both->v[d].limit = both->v[d].start + (op->type->dims[d] - 1) * both->v[d].stride + 1;
  }
  return both ? hs_make_slice(s, op, ir_operand(from, 0), both) : NULL;
}

/* What has no elements adds none. */
static ir_op *hs_concatenate(hs_run *s, ir_op *op) {
  uint32_t n = 0, full = 0, last = 0;
  const int64_t *dims = hs_dims_of(op, &n);
  if (op->n_operands == 1) return ir_operand(op, 0);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (ir_operand_type(op, i)->dims[dims[0]] == 0) continue;
    full++;
    last = i;
  }
  if (full == 1) return ir_operand(op, last);
  if (full == op->n_operands || full == 0) return NULL;
  for (uint32_t i = op->n_operands; i-- > 0;)
    if (ir_operand_type(op, i)->dims[dims[0]] == 0) ir_operand_remove(op, i);
  (void)s;
  return op;
}

/* Interior padding between no or one element is none. */
static ir_op *hs_pad(hs_run *s, ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PADDING);
  (void)s;
  for (uint32_t d = 0; a && d < a->v.padding->n; d++) {
    const ir_padding_dim *p = &a->v.padding->v[d];
    if (p->low || p->high || (p->interior && op->type->dims[d] > 1)) return NULL;
  }
  return a ? hs_as(op, ir_operand(op, 0)) : NULL;
}

/* Along dimensions of one element at most nothing is reversed. */
static ir_op *hs_reverse(hs_run *s, ir_op *op) {
  uint32_t n = 0;
  const int64_t *dims = hs_dims_of(op, &n);
  (void)s;
  for (uint32_t i = 0; i < n; i++)
    if (op->type->dims[dims[i]] > 1) return NULL;
  return ir_operand(op, 0);
}

/* Operands from `first` on are constant scalars: where a slice of the sizes of `part` starts in `whole`. */
static bool hs_starts(const ir_op *op, uint32_t first, const ir_type *whole, const ir_type *part, int64_t *starts) {
  if (op->n_operands != first + whole->rank) return false; /* starts as one vector */
  for (uint32_t d = 0; d < whole->rank; d++) {
    const ir_op *c = ir_operand(op, first + d);
    if (c->opcode != IR_OP_CONSTANT || c->u.literal->elided || c->type->rank != 0) return false;
    int64_t at = base_load_i64((base_dtype)c->type->dtype, c->u.literal->data), most = whole->dims[d] - part->dims[d];
    if (c->type->dtype == XLAC_U64 && at < 0) at = most;
    starts[d] = at < 0 ? 0 : at > most ? most : at;
  }
  return true;
}

/* The starts are clamped as the op itself does, so that the slice is always inside. */
static ir_op *hs_dynamic_slice(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  int64_t starts[IR_MAX_RANK];
  if (from->type == op->type) return from;
  if (!hs_starts(op, 1, from->type, op->type, starts)) return NULL;
  ir_slice *slice = hs_new_slice(s, op->type->rank);
  for (uint32_t d = 0; slice && d < slice->n; d++)
    slice->v[d] = (ir_slice_dim){starts[d], starts[d] + op->type->dims[d], 1};
  return slice ? hs_make_slice(s, op, from, slice) : NULL;
}

/* An update of the whole, or of nothing. */
static ir_op *hs_dynamic_update_slice(hs_run *s, ir_op *op) {
  (void)s;
  ir_op *update = ir_operand(op, 1);
  if (update->type == op->type) return update;
  return update->type->count == 0 ? ir_operand(op, 0) : NULL;
}

/* In a scheduled module copies are there for memory's sake. */
static ir_op *hs_copy(hs_run *s, ir_op *op) {
  return s->x.m->config.is_scheduled ? NULL : hs_as(op, ir_operand(op, 0));
}

/* Of plain types a bitcast that keeps the element type is a reshape, about which more is known. */
static ir_op *hs_bitcast(hs_run *s, ir_op *op) {
  ir_op *from = ir_operand(op, 0);
  if (from->type == op->type) return from;
  return from->type->dtype == op->type->dtype && from->type->count == op->type->count ? hs_reshape_of(s, op, from)
                                                                                      : NULL;
}

/* Sorting along one element. */
static ir_op *hs_sort(hs_run *s, ir_op *op) {
  uint32_t n = 0;
  const int64_t *dims = hs_dims_of(op, &n);
  (void)s;
  return op->n_operands == 1 && n == 1 && op->type->dims[dims[0]] <= 1 ? hs_as(op, ir_operand(op, 0)) : NULL;
}

/* The element itself: what is left of a call that gave several results and was inlined. Users see what computes it. */
static ir_op *hs_element(hs_run *s, ir_op *op) {
  const ir_op *tuple = ir_operand(op, 0);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  if (tuple->opcode != IR_OP_TUPLE || opt_in_edge(&s->facts, tuple) || tuple->operands[index].index) return NULL;
  return hs_as(op, ir_operand(tuple, (uint32_t)index));
}

/* The one op of a reduction's body, if it combines its two parameters and is the same in either order. */
static bool hs_combines(const ir_op *reduce, ir_opcode *opcode) {
  const ir_op *body = reduce->n_called == 1 ? ir_root(reduce->called[0]) : NULL;
  static const ir_opcode known[] = {IR_OP_ADD,     IR_OP_MULTIPLY, IR_OP_AND, IR_OP_OR,
                                    IR_OP_MAXIMUM, IR_OP_MINIMUM,  IR_OP_XOR};
  if (!body || body->n_operands != 2 || body->type->rank != 0) return false;
  const ir_op *a = ir_operand(body, 0), *b = ir_operand(body, 1);
  if (a->opcode != IR_OP_PARAMETER || b->opcode != IR_OP_PARAMETER || a == b) return false;
  *opcode = (ir_opcode)body->opcode;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i] == *opcode) return true;
  return false;
}

/* Over dimensions of extent 1 each element meets the initial value alone: so is an index with one component found to be
 * within bounds. */
static ir_op *hs_reduce(hs_run *s, ir_op *op) {
  ir_opcode opcode = IR_OP_ADD;
  ir_op *from = ir_operand(op, 0);
  base_dtype t = (base_dtype)op->type->dtype;
  bool exact = hs_is_integral(op->type) || t == XLAC_F32 || t == XLAC_F64;
  if (op->n_operands != 2 || op->type->count != from->type->count || op->type->count == 0) return NULL;
  if (!exact || from->type->dtype != t || ir_operand_type(op, 1)->dtype != t || !hs_combines(op, &opcode)) return NULL;
  ir_op *first = hlo_broadcast(&s->x, ir_operand(op, 1), op->type, 0, NULL), *x = hs_reshape_of(s, op, from);
  return x && first ? hlo_binary(&s->x, opcode, x, first) : NULL;
}

const hs_row hs_move_rules[] = {
    {IR_OP_GET_TUPLE_ELEMENT, hs_element},
    {IR_OP_RESHAPE, hs_reshape},
    {IR_OP_BROADCAST, hs_broadcast},
    {IR_OP_TRANSPOSE, hs_transpose},
    {IR_OP_SLICE, hs_slice},
    {IR_OP_CONCATENATE, hs_concatenate},
    {IR_OP_PAD, hs_pad},
    {IR_OP_REVERSE, hs_reverse},
    {IR_OP_REDUCE, hs_reduce},
    {IR_OP_DYNAMIC_SLICE, hs_dynamic_slice},
    {IR_OP_DYNAMIC_UPDATE_SLICE, hs_dynamic_update_slice},
    {IR_OP_SCATTER, hs_scatter},
    {IR_OP_COPY, hs_copy},
    {IR_OP_BITCAST, hs_bitcast},
    {IR_OP_SORT, hs_sort},
    {IR_OP_INVALID, NULL},
};
