/* A scatter of one window to a known place, which is what JAX makes of x.at[1:-1].add(y): the part of x that the window
 * lies on, combined with it, and put back.
 *
 *    scatter(x, {1}, y), to_apply=add  ->  dynamic-update-slice(x, add(slice(x), y), 1)
 *
 * Where it is most of x, that is put together of its parts, since kernels compute through concatenations. */
#include "algebraic_simplification.h"

enum { HS_AROUND = 4096 /* elements: fewer are copied as fast as they are computed through edges */ };

typedef struct hs_window {
  int64_t starts[IR_MAX_RANK], sizes[IR_MAX_RANK];
} hs_window;

/* Element number `at` of op where it is known: constants, what is put together of some, and broadcasts of one. */
static bool hs_known(const ir_op *op, int64_t at, int64_t *value) {
  switch (op->opcode) {
    case IR_OP_CONSTANT: {
      if (op->u.literal->elided) return false;
      const base_dtype t = (base_dtype)op->type->dtype;
      *value = base_load_i64(t, (const char *)op->u.literal->data + (size_t)at * base_dtype_bytes(t));
      return t != XLAC_U64 || *value >= 0;
    }
    case IR_OP_RESHAPE:
      return hs_known(ir_operand(op, 0), at, value);
    case IR_OP_BROADCAST:
      return ir_operand_type(op, 0)->count == 1 && hs_known(ir_operand(op, 0), 0, value);
    case IR_OP_CONCATENATE:
      for (uint32_t i = 0; op->type->rank == 1 && i < op->n_operands; i++) {
        int64_t n = ir_operand_type(op, i)->count;
        if (at < n) return hs_known(ir_operand(op, i), at, value);
        at -= n;
      }
      return false;
    default:
      return false;
  }
}

/* Where the only window lies. false: there are others, or it is not known, or not all of it is within the array. */
static bool hs_only_window(const ir_op *op, hs_window *w) {
  const ir_type *array = op->type, *updates = ir_operand_type(op, 2);
  const ir_ints *to = ir_get_ints(op, IR_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
  const ir_ints *inserted = ir_get_ints(op, IR_ATTR_INSERTED_WINDOW_DIMS);
  const ir_ints *window = ir_get_ints(op, IR_ATTR_UPDATE_WINDOW_DIMS),
                *batch = ir_get_ints(op, IR_ATTR_INPUT_BATCHING_DIMS);
  if ((batch && batch->n) || !to || !base_dtype_is_integer((base_dtype)ir_operand_type(op, 1)->dtype) ||
      ir_operand_type(op, 1)->count != (int64_t)to->n)
    return false;
  for (uint32_t d = 0, next = 0; d < array->rank; d++) {
    w->starts[d] = 0;
    w->sizes[d] = ir_ints_has(inserted, d) ? 1 : updates->dims[window->v[next++]];
  }
  for (uint32_t k = 0; k < to->n; k++)
    if (!hs_known(ir_operand(op, 1), k, &w->starts[to->v[k]])) return false;
  for (uint32_t d = 0; d < array->rank; d++)
    if (w->sizes[d] == 0 || w->starts[d] < 0 || w->starts[d] > INT32_MAX || w->starts[d] > array->dims[d] - w->sizes[d])
      return false;
  return true;
}

/* What the body does with an element and its update: an opcode on both, in that order; IR_OP_COPY: the update alone;
 * IR_OP_INVALID: something else. */
static ir_opcode hs_scatter_combiner(const ir_op *op) {
  const ir_op *body = ir_root(op->called[0]);
  if (body->opcode == IR_OP_PARAMETER && body == op->called[0]->params[1]) return IR_OP_COPY;
  switch (body->opcode) {
    case IR_OP_ADD:
    case IR_OP_SUBTRACT:
    case IR_OP_MULTIPLY:
    case IR_OP_DIVIDE:
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
    case IR_OP_AND:
    case IR_OP_OR:
    case IR_OP_XOR:
      break;
    default:
      return IR_OP_INVALID;
  }
  bool both = ir_operand(body, 0) == op->called[0]->params[0] && ir_operand(body, 1) == op->called[0]->params[1];
  return both && body->type->dtype == op->type->dtype ? (ir_opcode)body->opcode : IR_OP_INVALID;
}

static ir_op *hs_window_of(hs_run *s, ir_op *x, const ir_type *type, const hs_window *w) {
  ir_slice *slice = base_arena_zalloc(&s->x.m->arena, sizeof *slice + type->rank * sizeof *slice->v);
  ir_op *made = slice ? hlo_make(&s->x, IR_OP_SLICE, type, 1, &x) : NULL;
  s->x.failed = s->x.failed || !made;
  if (!made) return NULL;
  slice->n = type->rank;
  for (uint32_t d = 0; d < type->rank; d++) slice->v[d] = (ir_slice_dim){w->starts[d], w->starts[d] + w->sizes[d], 1};
  ir_attr a = ir_attr_make(IR_ATTR_SLICE);
  a.v.slice = slice;
  if (!ir_attr_set(made, a)) s->x.failed = true;
  return made;
}

/* What x has beside the window along dimension d, from..end, and within it along those before. */
static ir_op *hs_window_beside(hs_run *s, ir_op *x, const hs_window *w, uint32_t d, int64_t from, int64_t end) {
  hs_window part = *w;
  part.starts[d] = from, part.sizes[d] = end - from;
  const ir_type *type = ir_tensor_default(s->x.m, (base_dtype)x->type->dtype, x->type->rank, part.sizes, NULL);
  if (!type) return s->x.failed = true, NULL;
  return hs_window_of(s, x, type, &part);
}

/* x with value in the window, put together of their parts, dimension by dimension: kernels have no memory between these
 * and what computes the value. */
static ir_op *hs_around(hs_run *s, ir_op *x, ir_op *value, hs_window w) {
  for (uint32_t d = x->type->rank; d-- > 0;) {
    int64_t from = w.starts[d], end = from + w.sizes[d], most = x->type->dims[d];
    ir_op *parts[3];
    uint32_t n = 0;
    if (from > 0) parts[n++] = hs_window_beside(s, x, &w, d, 0, from);
    parts[n++] = value;
    if (end < most) parts[n++] = hs_window_beside(s, x, &w, d, end, most);
    w.starts[d] = 0, w.sizes[d] = most;
    const ir_type *type = ir_tensor_default(s->x.m, (base_dtype)x->type->dtype, x->type->rank, w.sizes, NULL);
    const int64_t along = d;
    if (!type) return s->x.failed = true, NULL;
    if (n == 1) continue;
    value = hlo_make(&s->x, IR_OP_CONCATENATE, type, n, parts);
    if (value && !ir_set_ints(value, IR_ATTR_DIMENSIONS, 1, &along)) s->x.failed = true;
  }
  return value;
}

ir_op *hs_scatter(hs_run *s, ir_op *op) {
  hs_window w;
  if (op->n_operands != 3 || op->n_called != 1 || op->type->rank == 0 || op->type->count == 0 ||
      !hs_only_window(op, &w))
    return NULL;
  ir_opcode opcode = hs_scatter_combiner(op);
  if (opcode == IR_OP_INVALID || ir_operand_type(op, 2)->dtype != op->type->dtype) return NULL;
  const ir_type *type = ir_tensor_default(s->x.m, (base_dtype)op->type->dtype, op->type->rank, w.sizes, NULL);
  ir_op *x = ir_operand(op, 0), *value = ir_operand(op, 2), *operands[2 + IR_MAX_RANK];
  if (!type) return s->x.failed = true, NULL;
  if (value->type != type) value = hlo_make(&s->x, IR_OP_RESHAPE, type, 1, &value);
  if (opcode != IR_OP_COPY) value = hlo_binary(&s->x, opcode, hs_window_of(s, x, type, &w), value);
  bool computes = opcode != IR_OP_COPY || ir_opcode_has(ir_operand(op, 2)->opcode, IR_ELEMENTWISE);
  if (computes && op->type->count >= HS_AROUND && type->count >= op->type->count / 2) return hs_around(s, x, value, w);
  operands[0] = x, operands[1] = value;
  for (uint32_t d = 0; d < op->type->rank; d++) operands[2 + d] = hlo_scalar(&s->x, XLAC_S32, (double)w.starts[d]);
  return hlo_make(&s->x, IR_OP_DYNAMIC_UPDATE_SLICE, op->type, 2 + op->type->rank, operands);
}
