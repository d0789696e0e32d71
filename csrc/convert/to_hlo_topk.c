/* The custom call ApproxTopK where it says that it is but a fallback: sorted, then cut, as XLA itself takes it. */
#include "to_hlo.h"

static const ir_mattr *approx_config(const ir_op *op) {
  const ir_mattr *config = ir_mattr_of(op, "mhlo.backend_config");
  return config && config->kind == IR_M_DICT ? config : NULL;
}

/* The dimension that is sorted, or -1 where the op is not of this form. */
static int64_t approx_dimension(const ir_op *op) {
  const ir_mattr *config = approx_config(op), *called = ir_mattr_of(op, "called_computations");
  const ir_mattr *fallback = config ? ir_m_field(config, "is_fallback") : NULL;
  const ir_mattr *dim = config ? ir_m_field(config, "reduction_dim") : NULL;
  if (!fallback || fallback->kind != IR_M_BOOL || !fallback->v.b || !dim || dim->kind != IR_M_INTEGER) return -1;
  if (!called || called->v.list->n != 1 || op->n_results == 0 || op->n_operands != 2 * op->n_results) return -1;
  const ir_type *first = ir_operand_type(op, 0);
  if (!ir_is_tensor(first) || dim->v.i < 0 || dim->v.i >= first->rank) return -1;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_type *from = ir_operand_type(op, i), *to = op->types[i];
    if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->has_dynamic || to->has_dynamic) return -1;
    if (from->rank != first->rank || to->rank != first->rank || from->dtype != to->dtype) return -1;
    for (uint32_t d = 0; d < first->rank; d++) {
      bool fits = d == dim->v.i ? to->dims[d] <= from->dims[d] : to->dims[d] == from->dims[d];
      if (!fits || from->dims[d] != first->dims[d]) return -1;
    }
  }
  return dim->v.i;
}

bool to_hlo_is_approx_topk(const ir_op *op) {
  return strcmp(ir_m_get_str(op, "call_target_name"), "ApproxTopK") == 0 && approx_dimension(op) >= 0;
}

static ir_op *approx_sort(to_hlo_op *x, int64_t dimension, ir_computation *comparator) {
  uint32_t n = x->op->n_results;
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, n + 1u);
  for (uint32_t i = 0; types && i < n; i++) types[i] = x->operands[i]->type;
  const ir_type *type = !types ? NULL : n == 1 ? types[0] : ir_tuple(x->t->to, n, types);
  ir_op *sort = type ? to_hlo_emit(x, IR_OP_SORT, type, n, x->operands, 1) : NULL;
  if (!sort || !ir_set_ints(sort, IR_ATTR_DIMENSIONS, 1, &dimension) || !ir_set_bool(sort, IR_ATTR_IS_STABLE, true))
    return NULL;
  sort->called[0] = comparator;
  return sort;
}

static ir_op *approx_cut(to_hlo_op *x, ir_op *sorted, const ir_type *type) {
  ir_slice *s = base_arena_zalloc(&x->t->to->arena, sizeof *s + type->rank * sizeof *s->v);
  ir_op *cut = s ? to_hlo_emit(x, IR_OP_SLICE, type, 1, &sorted, 0) : NULL;
  if (!cut) return NULL;
  s->n = type->rank;
  for (uint32_t d = 0; d < type->rank; d++) s->v[d] = (ir_slice_dim){0, type->dims[d], 1};
  ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
  attr.v.slice = s;
  return ir_attr_set(cut, attr) ? cut : NULL;
}

int to_hlo_approx_topk(to_hlo_op *x) {
  ir_computation *comparator = NULL;
  const ir_mattr *called = ir_mattr_of(x->op, "called_computations");
  TRY(to_hlo_function(x, called->v.list->v[0]->v.list->v[0]->str, &comparator));
  ir_op *sort = approx_sort(x, approx_dimension(x->op), comparator);
  for (uint32_t i = 0; i < x->op->n_results; i++) {
    const ir_type *type = to_hlo_type(x->t, x->op->types[i]);
    ir_op *part = sort;
    if (sort && x->op->n_results > 1)
      part = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, sort->type->elements[i], 1, &sort, 0);
    if (part && part != sort && !ir_set_int(part, IR_ATTR_INDEX, i)) part = NULL;
    if (!part || !type || !(x->results[i] = approx_cut(x, part, type))) return to_hlo_no_memory(x->t);
  }
  return 0;
}
