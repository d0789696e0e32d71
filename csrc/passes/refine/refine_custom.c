/* Custom calls whose shapes are operands: indices_of_shape_operands says for each result which operand. */
#include "refine.h"

#include <stdio.h>

/* Depth of tuple types is bounded by their maker. */
static uint32_t shapes_count(uint32_t n, const ir_type *const *types) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    count += ir_is_tuple(types[i]) ? shapes_count(types[i]->n_elements, types[i]->elements) : 1;
  return count;
}

static const ir_type **shapes_flatten(uint32_t n, const ir_type *const *types, const ir_type **out) {
  for (uint32_t i = 0; i < n; i++) {
    if (ir_is_tuple(types[i])) {
      out = shapes_flatten(types[i]->n_elements, types[i]->elements, out);
    } else {
      *out++ = types[i];
    }
  }
  return out;
}

/* Upstream's rule: both have a rank, it is one, and sizes known on both sides agree. */
static bool shapes_fit(uint32_t rank, const int64_t *sizes, const ir_type *t) {
  if (t->kind == IR_TYPE_UNRANKED) return true;
  if (!ir_is_tensor(t) || t->rank != rank) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (sizes[d] >= 0 && !ir_dim_is_dynamic(t, d) && t->dims[d] != sizes[d]) return false;
  return true;
}

static int shapes_check_attribute(opt_rewriter *rw, const ir_op *op, const ir_mattr *a, uint32_t n) {
  const ir_type *t = a->type;
  if (!t || t->rank != 1 || t->dims[0] != n)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "indices_of_shape_operands is expected to have one element for each of the %u results", n);
  if (t->dtype != XLAC_S64 || t->text)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, "indices_of_shape_operands is expected to be of i64");
  return 0;
}

static int shapes_check_result(opt_rewriter *rw, const ir_op *op, uint32_t i, uint32_t rank, const int64_t *sizes,
                               const ir_type *t) {
  if (shapes_fit(rank, sizes, t)) return 0;
  char text[200];
  size_t n = 0;
  for (uint32_t d = 0; d < rank && n < sizeof text - 24; d++)
    n += (size_t)snprintf(text + n, sizeof text - n, d ? ", %lld" : "%lld", (long long)sizes[d]);
  text[n] = 0;
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_SHAPE,
                          "indices_of_shape_operands: the shape [%s] of result %u does not fit its type", text, i);
}

static int shapes_read(opt_rewriter *rw, ir_op *op, const ir_type *const *types, opt_shapes *s, bool *known) {
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->operands[i] < 0 || s->operands[i] >= op->n_operands)
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                              "indices_of_shape_operands has %lld; expected numbers of operands, in [0, %u)",
                              (long long)s->operands[i], op->n_operands);
    ir_value shape = opt_operand(op, (uint32_t)s->operands[i]);
    if (!opt_constant_ints(rw, shape, &s->dims[i], &s->ranks[i])) return opt_rewriter_status(rw);
    TRY(shapes_check_result(rw, op, i, s->ranks[i], s->dims[i], types[i]));
  }
  *known = true;
  return 0;
}

int opt_shapes_of(opt_rewriter *rw, ir_op *op, opt_shapes *s, bool *known) {
  const ir_mattr *a = ir_mattr_of(op, "indices_of_shape_operands");
  *known = false;
  if (!a || a->kind != IR_M_DENSE || !a->v.literal || a->v.literal->elided) return 0;
  s->n = shapes_count(op->n_results, op->types);
  TRY(shapes_check_attribute(rw, op, a, s->n));
  uint32_t n = 0;
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)s->n + 1);
  s->operands = ir_m_ints(a, &rw->arena, &n);
  s->dims = BASE_ARRAY(&rw->arena, const int64_t *, (size_t)s->n + 1);
  s->ranks = BASE_ARRAY(&rw->arena, uint32_t, (size_t)s->n + 1);
  rw->failed = rw->failed || !types || (s->n && !s->operands) || !s->dims || !s->ranks;
  TRY(opt_rewriter_status(rw));
  shapes_flatten(op->n_results, op->types, types);
  return shapes_read(rw, op, types, s, known);
}

/* --- refinement --- */

typedef struct custom_refine {
  opt_rewriter *rw;
  const opt_shapes *shapes;
  uint32_t next;
} custom_refine;

static const ir_type *custom_type(custom_refine *x, const ir_type *t);

static const ir_type *custom_tuple(custom_refine *x, const ir_type *t) {
  const ir_type **parts = BASE_ARRAY(&x->rw->arena, const ir_type *, (size_t)t->n_elements + 1);
  for (uint32_t i = 0; parts && i < t->n_elements; i++)
    if (!(parts[i] = custom_type(x, t->elements[i]))) return NULL;
  return parts ? ir_tuple(x->rw->m, t->n_elements, parts) : NULL;
}

/* t with the next shape. */
static const ir_type *custom_type(custom_refine *x, const ir_type *t) {
  if (ir_is_tuple(t)) return custom_tuple(x, t);
  uint32_t i = x->next++, rank = x->shapes->ranks[i];
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
  if (rank > IR_MAX_RANK) return NULL;
  if (ir_is_tensor(t) && (t->encoding || !t->has_dynamic)) return t;
  for (uint32_t d = 0; d < rank; d++) {
    bool unknown = x->shapes->dims[i][d] < 0;
    dims[d] = unknown ? ir_is_tensor(t) ? t->dims[d] : IR_UNBOUNDED : x->shapes->dims[i][d];
    dynamic[d] = unknown && (!ir_is_tensor(t) || ir_dim_is_dynamic(t, d));
  }
  return ir_tensor_mlir(x->rw->m, (base_dtype)t->dtype, t->quant, t->text, rank, dims, dynamic, NULL, NULL);
}

/* Tuples are refined as a whole: only get_tuple_element and StableHLO's own ops read them. */
static void custom_refine_result(opt_rewriter *rw, ir_value v, const ir_type *type, bool *changed) {
  if (!type || type == opt_type(v)) return;
  if (!ir_is_tuple(type)) {
    opt_refine_value(rw, v, type, changed);
    return;
  }
  opt_set_type(rw, v, type);
  *changed = true;
}

int opt_refine_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  opt_shapes shapes;
  bool known = false;
  TRY(opt_shapes_of(rw, op, &shapes, &known));
  if (!known) return 0;
  custom_refine x = {.rw = rw, .shapes = &shapes};
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_type *t = custom_type(&x, op->types[i]);
    custom_refine_result(rw, opt_result(op, i), t, changed);
  }
  if (strcmp(ir_m_get_str(op, "call_target_name"), OPT_REFINE_WRAPPER) == 0 && op->n_results == 1 &&
      op->n_operands > 0 && ir_operand_type(op, 0) == op->type) {
    opt_replace_one(rw, op, opt_operand(op, 0));
    *changed = true;
  }
  return opt_rewriter_status(rw);
}
