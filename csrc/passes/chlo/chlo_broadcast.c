/* CHLO's broadcasting ops: the operands are brought to the result's shape, then the plain op follows. NumPy's rule:
 * trailing dimensions are aligned, sizes of 1 stretch; broadcast_dimensions may say otherwise. Static and bounded
 * shapes need broadcast_in_dim alone, others sizes computed at run time. */
#include "chlo.h"

/* The op without broadcasting; IR_OP_INVALID for what is not a broadcasting op. */
static ir_opcode chlo_plain(unsigned opcode) {
  switch (opcode) {
#define PLAIN(op)                 \
  case IR_OP_CHLO_BROADCAST_##op: \
    return IR_OP_##op;
    PLAIN(ADD)
    PLAIN(AND)
    PLAIN(ATAN2)
    PLAIN(COMPARE)
    PLAIN(COMPLEX)
    PLAIN(DIVIDE)
    PLAIN(MAXIMUM)
    PLAIN(MINIMUM)
    PLAIN(MULTIPLY)
    PLAIN(NEXT_AFTER)
    PLAIN(OR)
    PLAIN(POLYGAMMA)
    PLAIN(POWER)
    PLAIN(REMAINDER)
    PLAIN(SELECT)
    PLAIN(SHIFT_LEFT)
    PLAIN(SHIFT_RIGHT_ARITHMETIC)
    PLAIN(SHIFT_RIGHT_LOGICAL)
    PLAIN(SUBTRACT)
    PLAIN(XOR)
    PLAIN(ZETA)
#undef PLAIN
    default:
      return IR_OP_INVALID;
  }
}

/* select has three. */
enum { SPREAD_OPERANDS = 3 };

/* One op's operands, where their dimensions go, and the sizes of the result's dimensions. */
typedef struct spread_plan {
  opt_rewriter *rw;
  const ir_type *to;
  uint32_t n;
  ir_value v[SPREAD_OPERANDS];
  int64_t map[SPREAD_OPERANDS][IR_MAX_RANK];
  bool keep[SPREAD_OPERANDS]; /* a scalar predicate holds for all elements as it is */
} spread_plan;

/* The present type of operand k. */
static const ir_type *spread_type(const spread_plan *s, uint32_t k) {
  return opt_type(s->v[k]);
}

/* Dimensions of operand k: the last ones of the result, or as the attribute says of the operand of lower rank. False
 * where they don't fit. */
static bool spread_map(spread_plan *s, const ir_op *op, uint32_t k) {
  const ir_type *t = spread_type(s, k);
  uint32_t n = 0, rank = s->to->rank;
  const int64_t *given = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), &s->rw->arena, &n);
  if (t->rank > rank) return false;
  bool use = given && t->rank < rank;
  if (use && n != t->rank) return false;
  for (uint32_t d = 0; d < t->rank; d++) {
    s->map[k][d] = use ? given[d] : (int64_t)(rank - t->rank + d);
    if (s->map[k][d] < 0 || s->map[k][d] >= rank || (d > 0 && s->map[k][d] <= s->map[k][d - 1])) return false;
  }
  return true;
}

/* With both operands of the result's rank the attribute has nothing to say but that. */
static bool spread_given_fits(const spread_plan *s, const ir_op *op) {
  uint32_t n = 0, low = s->to->rank;
  const int64_t *given = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), &s->rw->arena, &n);
  if (!given) return true;
  for (uint32_t k = 0; k < s->n; k++)
    if (spread_type(s, k)->rank < low) low = spread_type(s, k)->rank;
  if (n != low) return false;
  for (uint32_t i = 0; i < n; i++)
    if (given[i] < 0 || given[i] >= s->to->rank || (low == s->to->rank && given[i] != i)) return false;
  return true;
}

/* A scalar predicate of select is taken by StableHLO as it is. */
static bool spread_start(spread_plan *s, opt_rewriter *rw, const ir_op *op) {
  *s = (spread_plan){.rw = rw, .to = op->type, .n = op->n_operands};
  assert(s->n <= SPREAD_OPERANDS);
  if (!ir_is_tensor(s->to)) return false;
  for (uint32_t k = 0; k < s->n; k++) {
    s->v[k] = opt_operand(op, k);
    if (!ir_is_tensor(spread_type(s, k))) return false;
  }
  if (!spread_given_fits(s, op)) return false;
  for (uint32_t k = 0; k < s->n; k++)
    if (!spread_map(s, op, k)) return false;
  if (op->opcode == IR_OP_CHLO_BROADCAST_SELECT) s->keep[0] = spread_type(s, 0)->rank == 0;
  return true;
}

/* The dimension of operand k that lies along d; -1: none. */
static int spread_dim(const spread_plan *s, uint32_t k, uint32_t d) {
  for (uint32_t i = 0; i < spread_type(s, k)->rank; i++)
    if (s->map[k][i] == d) return (int)i;
  return -1;
}

/* Operand k's element type in the result's rank. */
static const ir_type *spread_shape(const spread_plan *s, uint32_t k, const int64_t *dims, const bool *dynamic) {
  const ir_type *t = spread_type(s, k);
  return ir_tensor_mlir(s->rw->m, (base_dtype)t->dtype, t->quant, t->text, s->to->rank, dims, dynamic, NULL, NULL);
}

/* Sizes and which are dynamic. */
static bool spread_same_shape(const ir_type *a, const ir_type *b) {
  bool same = a->rank == b->rank;
  for (uint32_t d = 0; same && d < a->rank; d++)
    same = a->dims[d] == b->dims[d] && ir_dim_is_dynamic(a, d) == ir_dim_is_dynamic(b, d);
  return same;
}

/* --- shapes known at run time --- */

/* The size of dimension d of the result: that of the operand that is not 1 there. */
static ir_value spread_extent(const spread_plan *s, uint32_t d) {
  opt_rewriter *rw = s->rw;
  ir_value size = {NULL, 0};
  bool known = false; /* size is that of a dimension that is static and not 1 */
  for (uint32_t k = 0; k < s->n && !known; k++) {
    int i = spread_dim(s, k, d);
    const ir_type *t = spread_type(s, k);
    if (i < 0) continue;
    bool dynamic = ir_dim_is_dynamic(t, (uint32_t)i);
    if (!dynamic && t->dims[i] == 1 && size.op) continue;
    ir_value next = opt_extent(rw, s->v[k], (uint32_t)i);
    known = !dynamic && t->dims[i] != 1;
    if (!size.op || known)
      size = next;
    else
      size = opt_select(rw, opt_compare(rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, size, opt_splat_like(rw, size, 1)),
                        next, size);
  }
  return size.op ? size : opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), 1);
}

/* All operands to one shape, computed from all of them. */
static void spread_dynamically(spread_plan *s) {
  ir_value sizes[IR_MAX_RANK];
  for (uint32_t d = 0; d < s->to->rank; d++) sizes[d] = spread_extent(s, d);
  ir_value extents = opt_join_extents(s->rw, s->to->rank, sizes);
  for (uint32_t k = 0; k < s->n; k++) {
    if (s->keep[k]) continue;
    const ir_type *type = spread_shape(s, k, s->to->dims, s->to->dynamic);
    s->v[k] = opt_dynamic_broadcast(s->rw, s->v[k], extents, type, s->map[k]);
  }
}

/* --- bounded and static shapes --- */

/* A dynamic dimension of operand k that lies along d and is not stretched. */
static bool spread_is_dynamic(const spread_plan *s, uint32_t k, uint32_t d) {
  int i = spread_dim(s, k, d);
  return i >= 0 && ir_dim_is_dynamic(spread_type(s, k), (uint32_t)i);
}

/* Operand k with the result's bounds as sizes, but for the dimensions that it has dynamic itself. */
static ir_value spread_whole(const spread_plan *s, uint32_t k) {
  bool dynamic[IR_MAX_RANK] = {false}, any = false;
  for (uint32_t d = 0; d < s->to->rank; d++) any = (dynamic[d] = spread_is_dynamic(s, k, d)) || any;
  const ir_type *type = spread_shape(s, k, s->to->dims, any ? dynamic : NULL);
  return opt_broadcast_in_dim(s->rw, s->v[k], type, s->map[k]);
}

/* Dimensions that another operand has dynamic get their size from it. */
static ir_value spread_sizes(const spread_plan *s, uint32_t k, const ir_value *operands, ir_value v) {
  opt_rewriter *rw = s->rw;
  bool dynamic[IR_MAX_RANK] = {false};
  for (uint32_t d = 0; d < s->to->rank; d++) dynamic[d] = spread_is_dynamic(s, k, d);
  for (uint32_t d = 0; v.op && d < s->to->rank; d++) {
    uint32_t from = 0;
    while (from < s->n && !spread_is_dynamic(s, from, d)) from++;
    if (dynamic[d] || from == s->n) continue;
    dynamic[d] = true;
    ir_value both[] = {v, opt_extent(rw, operands[from], (uint32_t)spread_dim(s, from, d))};
    v = opt_make(rw, IR_OP_SET_DIMENSION_SIZE, spread_shape(s, k, s->to->dims, dynamic), 2, both);
    opt_set(rw, v, "dimension", ir_m_i64(rw->m, d));
  }
  return v;
}

/* New operands are made from the old ones, so they are exchanged at the end. */
static void spread_within_bounds(spread_plan *s) {
  ir_value made[SPREAD_OPERANDS];
  for (uint32_t k = 0; k < s->n; k++) {
    made[k] = s->v[k];
    if (s->keep[k] || spread_same_shape(spread_type(s, k), s->to)) continue;
    made[k] = spread_sizes(s, k, s->v, spread_whole(s, k));
  }
  for (uint32_t k = 0; k < s->n; k++) s->v[k] = made[k];
}

/* --- the op --- */

/* Every shape is known up to bounds, and no dimension of size 1 meets one that only the operand knows. */
static bool spread_is_bounded(const spread_plan *s) {
  bool ok = opt_is_static(s->to) || opt_is_bounded(s->to);
  for (uint32_t k = 0; k < s->n; k++) {
    const ir_type *t = spread_type(s, k);
    ok = ok && (opt_is_static(t) || opt_is_bounded(t));
    for (uint32_t d = 0; ok && d < t->rank; d++) {
      uint32_t to = (uint32_t)s->map[k][d];
      ok = ir_dim_is_dynamic(t, d) ? ir_dim_is_dynamic(s->to, to) && t->dims[d] == s->to->dims[to]
                                   : t->dims[d] == 1 || t->dims[d] == s->to->dims[to];
    }
  }
  return ok;
}

/* The result is dynamic in just those dimensions in which an operand is. */
static bool spread_is_dynamic_nowhere_but_there(const spread_plan *s) {
  for (uint32_t d = 0; d < s->to->rank; d++) {
    bool any = false;
    for (uint32_t k = 0; k < s->n; k++) any = any || spread_is_dynamic(s, k, d);
    if (ir_dim_is_dynamic(s->to, d) != any) return false;
  }
  return true;
}

/* Only compare has attributes of its own; CHLO's enums become StableHLO's. */
static void spread_attributes(opt_rewriter *rw, const ir_op *op, ir_value v) {
  if (op->opcode != IR_OP_CHLO_BROADCAST_COMPARE) return;
  const ir_mattr *type = ir_mattr_of(op, "compare_type");
  int direction = ir_m_get_word(op, "comparison_direction");
  opt_set(rw, v, "comparison_direction", ir_m_enum(rw->m, "stablehlo", "comparison_direction", direction));
  if (type) opt_set(rw, v, "compare_type", ir_m_enum(rw->m, "stablehlo", "comparison_type", (int)type->v.i));
}

/* Whether the plain op takes such elements: CHLO's own ops say nothing of them. */
static bool spread_elements_fit(ir_opcode opcode, const ir_type *t) {
  static const uint8_t sets[] = {[BASE_KIND_PRED] = IR_T_PRED,
                                 [BASE_KIND_SINT] = IR_T_SINT,
                                 [BASE_KIND_UINT] = IR_T_UINT,
                                 [BASE_KIND_FLOAT] = IR_T_FLOAT,
                                 [BASE_KIND_COMPLEX] = IR_T_COMPLEX};
  uint32_t types = ir_opcode_info(opcode)->types;
  bool any = opcode == IR_OP_MAXIMUM || opcode == IR_OP_MINIMUM;
  return any || t->quant || types == 0 || (types & sets[base_dtype_of((base_dtype)t->dtype)->kind]) != 0;
}

/* Unranked operands, and element types that the plain op does not take, are left: the pass reports them. */
int opt_chlo_broadcast(opt_rewriter *rw, ir_op *op, bool *changed) {
  spread_plan s;
  if (!spread_start(&s, rw, op) || !spread_elements_fit(chlo_plain(op->opcode), spread_type(&s, 0))) return 0;
  if (spread_is_bounded(&s) && spread_is_dynamic_nowhere_but_there(&s))
    spread_within_bounds(&s);
  else
    spread_dynamically(&s);
  ir_value v = opt_make(rw, chlo_plain(op->opcode), op->type, s.n, s.v);
  spread_attributes(rw, op, v);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}
