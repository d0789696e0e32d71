/* sort. The sorted dimension is brought last, an order of element numbers is found row by row (by keys where the
 * comparator is a plain < or >, else by running it), and the operands are picked in that order. Always stable.
 *
 * `compare(p0, p1), direction=LT` of one operand's elements is most sorts that there are; it needs no
 * calls of the comparator. -0 and 0 are equal unless the comparison is TOTALORDER; NaN without TOTALORDER
 * has no place in an order, so such arrays run by the comparator, whatever comes of it. */
#include "../algorithm/sort_keys.h"
#include "../algorithm/sort_merge.h"
#include "../blocks.h"

typedef struct sort_run {
  interp_ctx *ctx;
  const ir_op *op;
  uint32_t n, dim;
  int64_t rows, length;
  int64_t moved[IR_MAX_RANK]; /* the dims with the sorted one last */
  const void **data;          /* operands in that order of dims */
  interp_value **held;        /* what keeps them */
  base_dtype *types;
} sort_run;

/* Which operand's elements a comparator of the form compare(p, q) sorts by. False where it is of another form, or keys
 * can't stand for it. */
typedef struct sort_order {
  uint32_t operand;
  bool descending, total;
} sort_order;

/* Parameters 2 k and 2 k + 1 are elements of operand k; crossed parameters turn the direction round. */
static bool sort_order_of(const ir_computation *c, sort_order *o) {
  const ir_op *root = ir_root(c);
  if (root->opcode != IR_OP_COMPARE) return false;
  const ir_op *a = ir_operand(root, 0), *b = ir_operand(root, 1);
  const ir_direction direction = (ir_direction)ir_get_word(root, IR_ATTR_DIRECTION);
  const ir_comparison type = (ir_comparison)ir_get_word(root, IR_ATTR_TYPE);
  if (a->opcode != IR_OP_PARAMETER || b->opcode != IR_OP_PARAMETER) return false;
  if ((a->u.number ^ b->u.number) != 1) return false;
  bool less = direction == IR_DIRECTION_LT;
  if (!less && direction != IR_DIRECTION_GT) return false;
  base_dtype t = a->type->dtype;
  o->operand = (uint32_t)a->u.number / 2;
  o->descending = less == (a->u.number % 2 == 1);
  o->total = type == IR_COMPARISON_TOTALORDER;
  if (type == IR_COMPARISON_NONE || o->total || !base_dtype_is_integer(t)) return interp_sort_keyable(t);
  return type == (base_dtype_is_signed(t) ? IR_COMPARISON_SIGNED : IR_COMPARISON_UNSIGNED);
}

/* Total order of floats is that of their bits, which keys have for the IEEE-like types only. */
static bool keys_serve(const sort_run *s, const sort_order *o) {
  base_dtype t = s->types[o->operand];
  if (!base_dtype_is_float(t)) return true;
  if (o->total) return t == XLAC_F16 || t == XLAC_BF16 || t == XLAC_F32 || t == XLAC_F64;
  return !interp_has_nan(t, s->data[o->operand], s->rows * s->length);
}

/* Row by row; order has element numbers of the whole array. */
static int sort_by_keys(const sort_run *s, const sort_order *o, int64_t *order) {
  base_dtype t = s->types[o->operand];
  const char *data = s->data[o->operand];
  interp_keyed *v = INTERP_SCRATCH(s->ctx, interp_keyed, s->length),
               *spare = INTERP_SCRATCH(s->ctx, interp_keyed, s->length);
  int status = v && spare ? 0 : interp_failed(s->ctx);
  for (int64_t row = 0; row < s->rows && status == 0; row++) {
    int64_t at = row * s->length;
    interp_sort_keys(t, data + at * (int64_t)base_dtype_bytes(t), s->length, !o->total, o->descending, v);
    status = interp_sort_keyed(s->ctx, v, spare, s->length);
    for (int64_t i = 0; i < s->length && status == 0; i++) order[at + i] = at + v[i].at;
    if (status == 0) status = interp_tick(s->ctx, (uint64_t)s->length);
  }
  interp_scratch_free(s->ctx, v);
  interp_scratch_free(s->ctx, spare);
  return status;
}

/* All rows at once, in lanes. */
static int sort_by_comparator(const sort_run *s, int64_t *order) {
  interp_sort by = {s->ctx, s->op->called[0], NULL, s->n, s->data, s->types, s->rows, s->length};
  TRY(interp_body_prepare(s->ctx, by.comparator, &by.body));
  int status = interp_sort_by_body(&by, order);
  interp_body_free(by.body);
  return status;
}

/* Strides of an array of the operands' dims, in the order of `moved`. */
static void moved_strides(const sort_run *s, const interp_value *x, int64_t *strides) {
  assert(s->dim < x->rank);
  int64_t own[IR_MAX_RANK];
  uint32_t at = 0;
  interp_strides(x->rank, x->dims, own);
  for (uint32_t d = 0; d < x->rank; d++)
    if (d != s->dim) strides[at++] = own[d];
  strides[at] = own[s->dim];
}

/* Operand i with the sorted dimension last and elements in the comparator's type. */
static int sort_take(sort_run *s, uint32_t i, interp_value *operand, base_dtype t) {
  interp_value *x = interp_as(s->ctx, operand, t);
  if (!x) return interp_failed(s->ctx);
  s->types[i] = t;
  s->held[i] = x;
  s->data[i] = x->data;
  if (s->dim + 1 == x->rank) return 0;
  int64_t strides[IR_MAX_RANK];
  moved_strides(s, x, strides);
  interp_value *moved = interp_array(s->ctx, t, x->rank, s->moved);
  if (!moved) return interp_failed(s->ctx);
  int status = interp_copy_box(s->ctx, base_dtype_bytes(t), x->rank, s->moved, moved->data, x->data, 0, strides);
  interp_release(x);
  s->held[i] = moved;
  s->data[i] = moved->data;
  return status;
}

/* Operand i in the found order, its dims back in their places. */
static int sort_give(const sort_run *s, uint32_t i, const interp_value *operand, const int64_t *order,
                     interp_value **result) {
  size_t bytes = base_dtype_bytes(s->types[i]);
  int64_t strides[IR_MAX_RANK], dense[IR_MAX_RANK], count = s->rows * s->length;
  interp_value *r = interp_array(s->ctx, s->types[i], operand->rank, operand->dims);
  if (!r) return interp_failed(s->ctx);
  *result = r;
  if (s->dim + 1 == operand->rank) {
    interp_copy_listed(bytes, r->data, s->data[i], order, count);
    return 0;
  }
  void *picked = interp_scratch(s->ctx, count, bytes);
  if (!picked) return interp_failed(s->ctx);
  interp_copy_listed(bytes, picked, s->data[i], order, count);
  moved_strides(s, r, strides);
  interp_strides(r->rank, s->moved, dense);
  int status = interp_strided_copy(s->ctx, bytes, r->rank, s->moved, r->data, strides, picked, dense);
  interp_scratch_free(s->ctx, picked);
  return status;
}

/* rows x length elements. */
static void sort_shape(sort_run *s, const interp_value *x) {
  uint32_t at = 0;
  s->length = x->dims[s->dim];
  s->rows = 1;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (d == s->dim) continue;
    s->moved[at++] = x->dims[d];
    s->rows *= x->dims[d];
  }
  s->moved[at] = s->length;
}

/* Every operand is picked in the one order that the comparator gave. */
static int sort_all(sort_run *s, interp_value *const *operands, interp_value **results) {
  sort_order o;
  for (uint32_t i = 0; i < s->n; i++) {
    const ir_computation *c = s->op->called[0];
    base_dtype t = c->params[2 * i]->type->dtype;
    if (c->params[2 * i + 1]->type->dtype != t)
      return interp_fail(s->ctx, s->op, XLAC_E_EVAL, "%s compares operand %u in two types", c->name->s, i);
    TRY(sort_take(s, i, operands[i], t));
  }
  int64_t *order = INTERP_SCRATCH(s->ctx, int64_t, s->rows * s->length);
  if (!order) return interp_failed(s->ctx);
  bool keys = sort_order_of(s->op->called[0], &o) && keys_serve(s, &o);
  int status = keys ? sort_by_keys(s, &o, order) : sort_by_comparator(s, order);
  for (uint32_t i = 0; i < s->n && status == 0; i++) status = sort_give(s, i, operands[i], order, &results[i]);
  interp_scratch_free(s->ctx, order);
  return status;
}

/* Operands of one shape; the result is a tuple where there are several. */
int interp_eval_sort(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  uint32_t n = op->n_operands;
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const ir_computation *c = op->called[0];
  sort_run s = {.ctx = ctx, .op = op, .n = n};
  if (c->n_params != 2 * n || !ir_is_scalar(ir_root(c)->type) || ir_root(c)->type->dtype != XLAC_PRED)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s does not compare %u pairs", c->name->s, n);
  TRY(interp_need_one_size(ctx, op, operands, 0, n));
  if (operands[0]->rank == 0) { /* one element is sorted */
    *out = ir_is_tuple(op->type) ? interp_tuple(ctx, n, operands) : interp_retain(operands[0]);
    return *out ? 0 : interp_failed(ctx);
  }
  assert(list->n == 1 && list->v[0] >= 0 && list->v[0] < operands[0]->rank);
  s.dim = (uint32_t)list->v[0];
  sort_shape(&s, operands[0]);
  interp_value **results = INTERP_SCRATCH(ctx, interp_value *, n);
  s.data = INTERP_SCRATCH(ctx, const void *, n);
  s.held = INTERP_SCRATCH(ctx, interp_value *, n);
  s.types = INTERP_SCRATCH(ctx, base_dtype, n);
  int status = results && s.data && s.held && s.types ? 0 : interp_failed(ctx);
  if (status == 0) {
    memset(results, 0, n * sizeof *results);
    memset(s.held, 0, n * sizeof *s.held);
    status = sort_all(&s, operands, results);
    interp_release_all(n, s.held);
    if (status == 0)
      status = interp_finish_all(ctx, op, n, results, out);
    else
      interp_release_all(n, results);
  }
  interp_scratch_free(ctx, results);
  interp_scratch_free(ctx, s.data);
  interp_scratch_free(ctx, s.held);
  interp_scratch_free(ctx, s.types);
  return status;
}

/* --- topk: the k first elements of each row in descending (or ascending) total order, equal ones by place. --- */

enum { TOPK_SINK = 32 /* element operations that sinking one element takes */ };

/* Whether a comes after b in the result. */
static inline bool keyed_after(const interp_keyed *a, const interp_keyed *b) {
  return a->key != b->key ? a->key > b->key : a->at > b->at;
}

/* Restores the heap (the latest element on top) of n elements below place i. */
static void heap_sink(interp_keyed *heap, int64_t n, int64_t i) {
  interp_keyed x = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && keyed_after(&heap[child + 1], &heap[child])) child++;
    if (!keyed_after(&heap[child], &x)) break;
    heap[i] = heap[child];
  }
  heap[i] = x;
}

/* A row whose k first are sought: they lie at the front of v, as a heap until all elements have been seen. */
typedef struct topk_row {
  const interp_value *x;
  const char *from;
  int64_t k;
  bool largest;
  interp_keyed *v;
} topk_row;

/* Keys such that the first k in ascending order are sought. */
static void topk_keys(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  interp_sort_keys(r->x->dtype, r->from + begin * (int64_t)base_dtype_bytes(r->x->dtype), end - begin, false,
                   r->largest, r->v + begin);
  for (int64_t i = begin; i < end; i++) r->v[i].at = i;
}

/* Elements before k are sunk from the last to the first, so that all places after them are heaps already. */
static void topk_heap(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = begin; i < end; i++) heap_sink(r->v, r->k, r->k / 2 - 1 - i);
}

/* Most elements come after the heap's last and are left alone. */
static void topk_sift(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = r->k + begin; i < r->k + end; i++) {
    if (keyed_after(&r->v[i], &r->v[0])) continue;
    r->v[0] = r->v[i];
    heap_sink(r->v, r->k, 0);
  }
}

/* Takes the last of the heap to the end, again and again: ascending keys remain. */
static void topk_drain(void *ctx, int64_t begin, int64_t end) {
  const topk_row *r = ctx;
  for (int64_t i = r->k - 1 - begin; i > r->k - 1 - end; i--) {
    interp_keyed last = r->v[0];
    r->v[0] = r->v[i];
    r->v[i] = last;
    heap_sink(r->v, i, 0);
  }
}

/* The k first elements of the row, in order, at the front of v. */
static int keep_first(interp_ctx *ctx, topk_row *r, int64_t n) {
  assert(r->k <= n);
  TRY(interp_in_blocks(ctx, n, topk_keys, r));
  if (r->k == 0) return 0;
  TRY(interp_in_heavy_blocks(ctx, r->k / 2, TOPK_SINK, topk_heap, r));
  TRY(interp_in_heavy_blocks(ctx, n - r->k, 4, topk_sift, r)); /* few of them stay */
  return interp_in_heavy_blocks(ctx, r->k - 1, TOPK_SINK, topk_drain, r);
}

/* values and indices have k as their last size. */
int interp_topk_rows(interp_ctx *ctx, const interp_value *x, int64_t k, bool largest, interp_value *values,
                     interp_value *indices) {
  assert(x->rank > 0 && k >= 0);
  int64_t n = x->dims[x->rank - 1], bytes = (int64_t)base_dtype_bytes(x->dtype), rows = n > 0 ? x->count / n : 0;
  interp_keyed *v = INTERP_SCRATCH(ctx, interp_keyed, n);
  int status = v ? 0 : interp_failed(ctx);
  for (int64_t row = 0; row < rows && status == 0; row++) {
    const char *from = (const char *)x->data + row * n * bytes;
    char *to = (char *)values->data + row * k * bytes;
    topk_row r = {x, from, k, largest, v};
    status = keep_first(ctx, &r, n);
    for (int64_t i = 0; i < k && status == 0; i++) {
      memcpy(to + i * bytes, from + v[i].at * bytes, (size_t)bytes);
      base_store_i64(indices->dtype, (char *)indices->data + (row * k + i) * (int64_t)base_dtype_bytes(indices->dtype),
                     v[i].at);
    }
    if (status == 0) status = interp_tick(ctx, (uint64_t)k);
  }
  interp_scratch_free(ctx, v);
  return status;
}

/* As chlo.top_k: (values, indices). */
int interp_eval_topk(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0];
  int64_t dims[IR_MAX_RANK];
  assert(ir_is_tuple(op->type) && op->type->n_elements == 2 && x->rank > 0);
  if (!interp_sort_keyable(x->dtype))
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s elements have no order", base_dtype_of(x->dtype)->text);
  int64_t n = x->dims[x->rank - 1], k = ir_get_int(op, IR_ATTR_K, 0);
  if (k > n)
    return interp_fail(ctx, op, XLAC_E_EVAL, "k is %lld, but the operand's last dimension has the run-time size %lld",
                       (long long)k, (long long)n);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[x->rank - 1] = k;
  interp_value *results[2] = {interp_array(ctx, x->dtype, x->rank, dims),
                              interp_array(ctx, op->type->elements[1]->dtype, x->rank, dims)};
  int status = results[0] && results[1] ? 0 : interp_failed(ctx);
  if (status == 0) status = interp_topk_rows(ctx, x, k, ir_get_bool(op, IR_ATTR_LARGEST, true), results[0], results[1]);
  if (status == 0) return interp_finish_all(ctx, op, 2, results, out);
  interp_release_all(2, results);
  return status;
}
