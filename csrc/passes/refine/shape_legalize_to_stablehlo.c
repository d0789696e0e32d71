/* shape-legalize-to-stablehlo: shapes computed by shape, tensor and arith ops on index become StableHLO on i32:
 * shape.shape_of becomes get_dimension_size of each dimension, concatenated; arith.muli a multiply; and so on.
 * Requires: nothing. Preserves: all other ops. Where an index meets what stays an index (a function's argument or
 * result), a builtin.unrealized_conversion_cast stands between; those that meet one another vanish. An op of these
 * dialects that has no counterpart is an error; tensor.cast stays. Sizes beyond 2^31 do not fit. */
#include "../../ir/sdy/sdy.h"
#include "../rewrite/rewrite.h"

/* These dialects are not registered: their ops are told by their names. */
static bool shape_is_name(const ir_op *op, const char *name) {
  return op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, name) == 0;
}

/* index or a tensor of index. */
static bool shape_is_index(const ir_type *t) {
  return t && t->text && strcmp(t->text->s, "index") == 0 && (ir_is_tensor(t) || t->kind == IR_TYPE_OTHER);
}

/* The type of i32 that stands for an index or a static tensor of them; NULL for others. */
static const ir_type *shape_i32(opt_rewriter *rw, const ir_type *t) {
  if (!t) return NULL;
  if (t->kind == IR_TYPE_OTHER) return shape_is_index(t) ? opt_tensor(rw, XLAC_S32, 0, NULL) : NULL;
  if (!opt_is_static(t)) return NULL;
  bool is_i32 = t->dtype == XLAC_S32 && !t->text;
  return is_i32 || shape_is_index(t) ? opt_tensor(rw, XLAC_S32, t->rank, t->dims) : NULL;
}

/* A cast back undoes a cast. */
static ir_value shape_cast(opt_rewriter *rw, ir_value v, const ir_type *type) {
  assert(type != NULL);
  if (opt_type(v) == type) return v;
  if (v.op && shape_is_name(v.op, "builtin.unrealized_conversion_cast") && opt_type(opt_operand(v.op, 0)) == type)
    return opt_operand(v.op, 0);
  ir_value cast = opt_make(rw, IR_OP_UNREGISTERED, type, 1, &v);
  if (cast.op) ir_set_op_name(cast.op, ir_intern(rw->m, "builtin.unrealized_conversion_cast", 34));
  rw->failed = rw->failed || !cast.op || !cast.op->u.name;
  return cast;
}

/* An arith.constant of type index. */
static bool shape_constant(ir_value v, int64_t *out) {
  if (!v.op || !shape_is_name(v.op, "arith.constant")) return false;
  const ir_mattr *a = ir_mattr_of(v.op, "value");
  if (!a || a->kind != IR_M_INTEGER || opt_type(v)->kind != IR_TYPE_OTHER) return false;
  *out = a->v.i;
  return true;
}

/* v as i32; its op is NULL where it has no such form. */
static ir_value shape_to_i32(opt_rewriter *rw, ir_value v) {
  int64_t number = 0;
  if (shape_constant(v, &number)) return opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), number);
  const ir_type *type = shape_i32(rw, opt_type(v));
  return type ? shape_cast(rw, v, type) : (ir_value){NULL, 0};
}

/* Replaces op by v, cast to op's type; false where that can't be. */
static bool shape_replace(opt_rewriter *rw, ir_op *op, ir_value v) {
  if (!v.op || op->n_results != 1) return false;
  if (shape_i32(rw, op->type) != opt_type(v)) return false;
  opt_replace_one(rw, op, shape_cast(rw, v, op->type));
  return true;
}

/* One element, as a scalar. */
static ir_value shape_element(opt_rewriter *rw, ir_value v, const int64_t *at) {
  int64_t limits[IR_MAX_RANK] = {0}, ones[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; v.op && d < opt_type(v)->rank; d++) {
    limits[d] = at[d] + 1;
    ones[d] = 1;
  }
  return opt_reshape(rw, opt_slice(rw, v, at, limits, ones), opt_tensor(rw, XLAC_S32, 0, NULL));
}

/* Rewrites op; false: it is not among the forms that have a counterpart. */
typedef bool shape_fn(opt_rewriter *rw, ir_op *op);

/* The result must be a tensor of index, not !shape.shape. */
static bool shape_shape_of(opt_rewriter *rw, ir_op *op) {
  ir_value a = opt_operand(op, 0);
  if (!ir_is_tensor(opt_type(a)) || !shape_i32(rw, op->type)) return false;
  return shape_replace(rw, op, opt_extents(rw, a));
}

/* The product of all sizes. */
static bool shape_num_elements(opt_rewriter *rw, ir_op *op) {
  ir_value shape = shape_to_i32(rw, opt_operand(op, 0));
  if (!shape.op || opt_type(shape)->rank != 1 || !shape_i32(rw, op->type)) return false;
  ir_value product = opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), 1);
  for (int64_t i = 0; i < opt_type(shape)->dims[0] && !rw->failed; i++)
    product = opt_binary(rw, IR_OP_MULTIPLY, product, shape_element(rw, shape, &i));
  return shape_replace(rw, op, product);
}

/* A constant with the attribute's sizes. */
static bool shape_const_shape(opt_rewriter *rw, ir_op *op) {
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(ir_mattr_of(op, "shape"), &rw->arena, &n);
  const ir_type *type = shape_i32(rw, op->type);
  if (!type || type->rank != 1 || type->dims[0] != n || (n && !v)) return false;
  int32_t *data = BASE_ARRAY(&rw->arena, int32_t, (size_t)n + 1);
  rw->failed = rw->failed || !data;
  for (uint32_t i = 0; data && i < n; i++) data[i] = (int32_t)v[i];
  return data && shape_replace(rw, op, opt_constant_data(rw, type, data, false));
}

/* Ones before the shorter of two shapes, so that both have n sizes. */
static ir_value shape_pad(opt_rewriter *rw, ir_value v, int64_t n) {
  int64_t missing = v.op ? n - opt_type(v)->dims[0] : 0;
  if (missing <= 0) return v;
  ir_value parts[] = {opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 1, &missing), 1), v};
  return opt_concatenate(rw, 2, parts, 0, opt_tensor(rw, XLAC_S32, 1, &n));
}

/* That the shapes fit is for shape.cstr_broadcastable to see to: then the larger of two sizes is that of both. */
static bool shape_broadcast(opt_rewriter *rw, ir_op *op) {
  if (op->n_operands != 2) return false;
  ir_value a = shape_to_i32(rw, opt_operand(op, 0)), b = shape_to_i32(rw, opt_operand(op, 1));
  if (!a.op || !b.op || opt_type(a)->rank != 1 || opt_type(b)->rank != 1) return false;
  int64_t n = opt_type(a)->dims[0] > opt_type(b)->dims[0] ? opt_type(a)->dims[0] : opt_type(b)->dims[0];
  return shape_replace(rw, op, opt_binary(rw, IR_OP_MAXIMUM, shape_pad(rw, a, n), shape_pad(rw, b, n)));
}

/* With a constant dimension in range. */
static bool shape_dim(opt_rewriter *rw, ir_op *op) {
  int64_t d = 0;
  ir_value a = opt_operand(op, 0);
  if (op->n_operands != 2 || !ir_is_tensor(opt_type(a)) || !shape_constant(opt_operand(op, 1), &d)) return false;
  return d >= 0 && d < opt_type(a)->rank && shape_replace(rw, op, opt_extent(rw, a, (uint32_t)d));
}

/* With constant places in range. */
static bool shape_extract(opt_rewriter *rw, ir_op *op) {
  int64_t at[IR_MAX_RANK] = {0};
  ir_value a = shape_to_i32(rw, opt_operand(op, 0));
  if (!a.op || op->n_operands != opt_type(a)->rank + 1 || !shape_is_index(op->type)) return false;
  for (uint32_t d = 0; d < opt_type(a)->rank; d++)
    if (!shape_constant(opt_operand(op, d + 1), &at[d]) || at[d] < 0 || at[d] >= opt_type(a)->dims[d]) return false;
  return shape_replace(rw, op, shape_element(rw, a, at));
}

/* Each scalar becomes a tensor of one, and these are concatenated. */
static bool shape_from_elements(opt_rewriter *rw, ir_op *op) {
  int64_t one = 1;
  if (!ir_is_tensor(op->type) || op->type->rank != 1 || !shape_is_index(op->type)) return false;
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  rw->failed = rw->failed || !parts;
  for (uint32_t i = 0; parts && i < op->n_operands; i++) {
    ir_value v = shape_to_i32(rw, opt_operand(op, i));
    if (!v.op) return false;
    parts[i] = opt_reshape(rw, v, opt_tensor(rw, XLAC_S32, 1, &one));
    assert(opt_type(v)->rank == 0 || rw->failed);
  }
  if (!parts || op->n_operands == 0) return false;
  return shape_replace(rw, op, opt_concatenate(rw, op->n_operands, parts, 0, shape_i32(rw, op->type)));
}

/* Between index and i32, tensors or scalars; other widths have no counterpart among tensors of index. */
static bool shape_index_cast(opt_rewriter *rw, ir_op *op) {
  ir_value a = opt_operand(op, 0);
  const ir_type *from = opt_type(a), *to = op->type, *scalar = opt_tensor(rw, XLAC_S32, 0, NULL);
  if (from->kind == IR_TYPE_ELEMENT) { /* an integer outside tensors */
    if (from->dtype != XLAC_S32 || !shape_is_index(to)) return false;
    opt_replace_one(rw, op, shape_cast(rw, shape_cast(rw, a, scalar), to));
    return true;
  }
  if (to->kind == IR_TYPE_ELEMENT) {
    ir_value v = shape_to_i32(rw, a);
    if (!v.op || opt_type(v) != scalar || !base_dtype_is_integer((base_dtype)to->dtype)) return false;
    if (to->dtype != XLAC_S32) v = opt_convert(rw, v, (base_dtype)to->dtype);
    opt_replace_one(rw, op, shape_cast(rw, v, to));
    return true;
  }
  return shape_i32(rw, to) && shape_replace(rw, op, shape_to_i32(rw, a));
}

/* On index only; arith.muli on tensors of integers is not of shapes. */
static bool shape_muli(opt_rewriter *rw, ir_op *op) {
  if (!shape_is_index(op->type)) return false;
  ir_value a = shape_to_i32(rw, opt_operand(op, 0)), b = shape_to_i32(rw, opt_operand(op, 1));
  return a.op && b.op && shape_replace(rw, op, opt_binary(rw, IR_OP_MULTIPLY, a, b));
}

static const struct shape_row {
  const char *name;
  shape_fn *fn;
  uint8_t operands; /* at least */
} shape_rows[] = {{"shape.shape_of", shape_shape_of, 1},
                  {"shape.num_elements", shape_num_elements, 1},
                  {"shape.const_shape", shape_const_shape, 0},
                  {"shape.broadcast", shape_broadcast, 0},
                  {"tensor.dim", shape_dim, 2},
                  {"tensor.extract", shape_extract, 1},
                  {"tensor.from_elements", shape_from_elements, 0},
                  {"arith.index_cast", shape_index_cast, 1},
                  {"arith.muli", shape_muli, 2}};

/* Ops that must not be left. */
static bool shape_is_illegal(const ir_op *op) {
  const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : "";
  if (strncmp(name, "tensor.", 7) == 0) return strcmp(name, "tensor.cast") != 0;
  return strncmp(name, "shape.", 6) == 0 || strcmp(name, "arith.index_cast") == 0 || strcmp(name, "arith.muli") == 0;
}

/* Only the row of that name can do it. */
static int shape_legalize(opt_rewriter *rw, ir_op *op) {
  assert(op->opcode == IR_OP_UNREGISTERED);
  const char *name = op->u.name->s;
  bool done = false;
  opt_at(rw, op);
  for (size_t i = 0; i < sizeof shape_rows / sizeof *shape_rows && !done; i++) {
    const struct shape_row *row = &shape_rows[i];
    if (strcmp(row->name, name) == 0 && op->n_operands >= row->operands && op->n_results == 1) done = row->fn(rw, op);
  }
  TRY(opt_rewriter_status(rw));
  if (done) return 0;
  int status = opt_rewrite_fail(rw, op, XLAC_E_LEGALIZE, "failed to legalize operation '%s'", name);
  return base_hint(
      rw->err, status,
      "shapes must be ranked tensors of index, indexes constant, and ops among those that have a counterpart");
}

/* Operands of index in StableHLO's own ops (sizes of dynamic ones) become i32. What sdy says of a value stays with it.
 */
static void shape_cast_operands(opt_rewriter *rw, ir_op *op) {
  opt_at(rw, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = opt_operand(op, i);
    if (!shape_is_index(opt_type(v))) continue;
    ir_value cast = shape_to_i32(rw, v);
    if (cast.op) ir_set_operand(op, i, cast);
  }
}

/* Constants and casts that only served ops which are gone. */
static bool shape_is_left(const opt_rewriter *rw, const ir_op *op) {
  bool ours = shape_is_name(op, "arith.constant") || shape_is_name(op, "builtin.unrealized_conversion_cast");
  return ours && !opt_is_used(rw, op);
}

/* Casts and constants that nobody needs any more, users first. */
static void shape_sweep(opt_rewriter *rw, ir_computation *c) {
  for (ir_op *op = c->last, *before = NULL; op; op = before) {
    before = op->prev;
    if (shape_is_left(rw, op)) opt_erase(rw, op);
  }
}

int opt_shape_legalize(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  int status = 0;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (shape_is_illegal(op))
        status = shape_legalize(&rw, op);
      else if (op->opcode != IR_OP_UNREGISTERED && op->opcode != IR_OP_CALL && !sdy_is_op(op))
        shape_cast_operands(&rw, op);
      if (status == 0) status = opt_rewriter_status(&rw);
    }
  }
  for (ir_computation *c = m->first; c && status == 0; c = c->next) shape_sweep(&rw, c);
  opt_rewriter_free(&rw);
  return status;
}
