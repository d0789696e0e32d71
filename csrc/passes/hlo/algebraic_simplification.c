/* algebraic-simplification: HLO ops become simpler ones with the same bits.
 * Requires: nothing. Preserves: side effects, async chains, ops in control edges, the schedule, all ops whose types are
 * not plain (dynamic, laid out otherwise than row by row). Ops that lose their users stay for dce. Fused computations
 * stay as they are, as in XLA: each of their parameters must have users. So do those that async starts wrap, which hold
 * one op.
 *
 * One sweep, operands before users, so that a rule sees operands that are simple already; work is linear in the ops. */
#include <math.h>

#include "algebraic_simplification.h"

enum { HS_ROUNDS = 8, HS_MAX_LOOK = 4096 /* elements of a literal that are worth a look */ };

/* --- for the rules --- */

/* Layouts are part of types, so equal shapes may still be two types. */
ir_op *hs_as(const ir_op *op, ir_op *with) {
  return with->type == op->type ? with : NULL;
}

bool hs_is_integral(const ir_type *t) {
  return base_dtype_is_integer((base_dtype)t->dtype) || t->dtype == XLAC_PRED;
}

bool hs_is(const ir_op *op, double value) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  if (op->opcode != IR_OP_CONSTANT || op->u.literal->elided || !ir_is_tensor(op->type)) return false;
  base_dtype t = (base_dtype)op->type->dtype;
  const base_dtype_info *info = base_dtype_of(t);
  if (base_dtype_is_complex(t) || op->type->count == 0 || op->type->count > HS_MAX_LOOK) return false;
  for (int64_t i = 0; i < op->type->count; i++) {
    double x = base_load_f64(t, (const char *)op->u.literal->data + i * info->bytes);
    /* -0.0 equals 0.0, so signs are compared too; NaN equals nothing. */
    if (x != value || (x == 0 && signbit(x) != signbit(value))) return false;
  }
  return true;
}

/* --- the sweep --- */

/* Operands that are one of an op's several results are left out: rules look at ir_operand alone. A tuple is plain to
 * whom takes an element of it. */
static bool hs_may(const hs_run *s, const ir_op *op) {
  if (op->n_results != 1 || opt_in_edge(&s->facts, op) || !hlo_is_plain(op->type)) return false;
  const bool takes = op->opcode == IR_OP_GET_TUPLE_ELEMENT;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!(takes || hlo_is_plain(ir_operand_type(op, i))) || op->operands[i].index) return false;
  return (opt_op_facts(&s->facts, op) & (OPT_EFFECT | OPT_RANDOM | OPT_ASYNC)) == 0;
}

/* One rule for each opcode: tables may not compete. */
static void hs_rules(hs_rule **by_opcode, size_t n, const hs_row *const *tables) {
  for (size_t t = 0; t < n; t++)
    for (const hs_row *r = tables[t]; r->opcode != IR_OP_INVALID; r++) {
      assert(!by_opcode[r->opcode]);
      by_opcode[r->opcode] = r->rule;
    }
}

/* What replaces op, if it is new, is looked at too. */
static void hs_op(hs_run *s, hs_rule *const *rules, ir_op *op) {
  for (int round = 0; round < HS_ROUNDS && !s->x.failed && rules[op->opcode] && hs_may(s, op); round++) {
    uint32_t ids = s->x.m->n_ids;
    s->x.before = op;
    ir_op *with = rules[op->opcode](s, op);
    /* A rule that changes op in place is asked again; so is what is new. Old ops were visited before. */
    if (!with || s->x.failed || with->type != op->type) return;
    if (with == op) continue;
    if (!ir_replace_uses(op, with)) s->x.failed = true;
    if (with->id < ids) return;
    op = with;
  }
}

/* One order for the whole sweep: new ops stand before the op at hand and are looked at right away. */
static void hs_computation(hs_run *s, hs_rule *const *rules, const ir_computation *c) {
  base_arena scratch;
  base_arena_init(&scratch, s->x.m->alloc);
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &scratch, &n);
  s->x.failed = s->x.failed || !order;
  for (uint32_t i = 0; i < n && !s->x.failed; i++) hs_op(s, rules, order[i]);
  base_arena_free(&scratch);
}

/* Facts are of the module before the sweep; ops made since are in no control edge. */
static int hs_sweep(ir_module *m, const char *pass, size_t n, const hs_row *const *tables, xlac_error *err) {
  hs_run s = {.x = {.m = m}};
  hs_rule *rules[IR_OP_COUNT] = {NULL};
  TRY(opt_facts_make(&s.facts, m, err));
  hs_rules(rules, n, tables);
  const uint8_t *fused = opt_called_by(m, &s.facts.arena, IR_OP_FUSION);
  const uint8_t *wrapped = opt_called_by(m, &s.facts.arena, IR_OP_ASYNC_START);
  s.x.failed = !fused || !wrapped;
  IR_FOR_COMPUTATIONS(c, m)
  if (!s.x.failed && !fused[c->id] && !wrapped[c->id]) hs_computation(&s, rules, c);
  opt_facts_free(&s.facts);
  return s.x.failed ? base_oom(err, pass) : 0;
}

int opt_algebraic_simplification(ir_module *m, const opt_args *args, xlac_error *err) {
  static const hs_row *const tables[] = {hs_math_rules, hs_move_rules, hs_dot_rules, hs_window_rules};
  (void)args;
  return hs_sweep(m, "algebraic-simplification", sizeof tables / sizeof *tables, tables, err);
}

int opt_reassociate(ir_module *m, const opt_args *args, xlac_error *err) {
  static const hs_row *const tables[] = {hs_loose_rules};
  (void)args;
  return hs_sweep(m, "reassociate", 1, tables, err);
}

/* Dots take their operands as stored: transpositions become other dimension numbers. */

/* t = f32[4,3] transpose(a), dimensions={1,0}; dot(t, b), lhs_contracting_dims={1} is dot(a, b),
 * lhs_contracting_dims={0}: kernels read operands in any order of dimensions, so the copy is saved. */
typedef struct hs_dot_keys {
  ir_attr_key batch, contracting;
} hs_dot_keys;

static const hs_dot_keys hs_sides[] = {{IR_ATTR_LHS_BATCH_DIMS, IR_ATTR_LHS_CONTRACTING_DIMS},
                                       {IR_ATTR_RHS_BATCH_DIMS, IR_ATTR_RHS_CONTRACTING_DIMS}};

/* Nothing is said of the op that would have to be said anew. */
static bool hs_dot_is_plain(const ir_op *op) {
  return op->n_operands == 2 && !ir_attr_find(op, IR_ATTR_SPARSITY_CONFIG);
}

/* Dimension i of the transposed operand is dimension permutation[i] of what it was made from. */
static bool hs_set_moved(ir_op *op, ir_attr_key key, const ir_ints *list, const int64_t *permutation) {
  assert(permutation != NULL);
  int64_t moved[IR_MAX_RANK];
  for (uint32_t i = 0; list && i < list->n; i++) moved[i] = permutation[list->v[i]];
  return !list || ir_set_ints(op, key, list->n, moved);
}

/* Whether free dimensions of operand `side` stay in their order, for that is the order of the result's, where its
 * dimension d becomes dimension to[d] of what is read instead. */
static bool hs_keeps_order(const ir_op *op, uint32_t side, const int64_t *to) {
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch), *sum = ir_get_ints(op, hs_sides[side].contracting);
  int64_t last = -1;
  for (uint32_t d = 0; d < ir_operand_type(op, side)->rank; d++) {
    if (ir_ints_has(batch, d) || ir_ints_has(sum, d)) continue;
    if (to[d] < last) return false;
    last = to[d];
  }
  return true;
}

static bool hs_read_instead(hs_run *s, ir_op *op, uint32_t side, ir_op *instead, const int64_t *to) {
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch), *sum = ir_get_ints(op, hs_sides[side].contracting);
  assert(hs_keeps_order(op, side, to));
  if (!hs_set_moved(op, hs_sides[side].batch, batch, to) || !hs_set_moved(op, hs_sides[side].contracting, sum, to)) {
    s->x.failed = true;
    return false;
  }
  ir_set_operand(op, side, (ir_value){instead, 0});
  return true;
}

static bool hs_take_transpose(hs_run *s, ir_op *op, uint32_t side) {
  const ir_op *from = ir_operand(op, side);
  const ir_ints *to = from->opcode == IR_OP_TRANSPOSE ? ir_get_ints(from, IR_ATTR_DIMENSIONS) : NULL;
  return to && hs_keeps_order(op, side, to->v) && hs_read_instead(s, op, side, ir_operand(from, 0), to->v);
}

/* How many of op's free dimensions there are on that side. */
static uint32_t hs_free_dims(const ir_op *op, uint32_t side) {
  assert(side < 2);
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch), *sum = ir_get_ints(op, hs_sides[side].contracting);
  return ir_operand_type(op, side)->rank - (batch ? batch->n : 0) - (sum ? sum->n : 0);
}

enum { HS_DOT_BLOCK = 512 /* terms of a dot that are added up in order, as reduce does (docs/numerics.md) */ };

/* Whether dot is one of numbers whose product and sum are those of multiply and add, bit for bit. */
static bool hs_dot_is_elementwise(const ir_op *op) {
  base_dtype t = (base_dtype)op->type->dtype;
  for (uint32_t side = 0; side < 2; side++)
    if (ir_operand_type(op, side)->dtype != t || !hlo_is_plain(ir_operand_type(op, side))) return false;
  if (!hlo_is_plain(op->type) || base_dtype_is_complex(t) || t == XLAC_PRED) return false;
  return ir_get_word(op, IR_ATTR_ALGORITHM) == IR_DOT_UNSET && !ir_attr_find(op, IR_ATTR_OPERAND_PRECISION);
}

/* One side of a dot that contracts nothing, broadcast to the result: its dimension d is the result's dims[d]. NULL
 * where these do not increase, or memory has run out. */
static ir_op *hs_dot_spread(hs_run *s, ir_op *op, uint32_t side) {
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch);
  uint32_t rank = ir_operand_type(op, side)->rank, n_batch = batch ? batch->n : 0, free = n_batch;
  int64_t dims[IR_MAX_RANK], last = -1;
  if (side) free = op->type->rank - (rank - n_batch);
  for (uint32_t d = 0; d < rank; d++) {
    dims[d] = -1;
    for (uint32_t i = 0; i < n_batch; i++)
      if (batch->v[i] == d) dims[d] = i;
    if (dims[d] < 0) dims[d] = free++;
    if (dims[d] <= last) return NULL;
    last = dims[d];
  }
  return hlo_broadcast(&s->x, ir_operand(op, side), op->type, rank, dims);
}

/* An outer product, or a scaling by batches, is a multiplication; added to 0, since a dot's sums begin with it and so
 * are never -0. */
static ir_op *hs_dot_outer(hs_run *s, ir_op *op) {
  ir_op *a = hs_dot_spread(s, op, 0), *b = a ? hs_dot_spread(s, op, 1) : NULL;
  if (!b) return NULL;
  ir_op *product = hlo_binary(&s->x, IR_OP_MULTIPLY, a, b);
  return hlo_binary(&s->x, IR_OP_ADD, product, hlo_splat(&s->x, op->type, 0));
}

/* Whether the list counts up from `from`. */
static bool hs_counts_from(const ir_ints *list, int64_t from) {
  for (uint32_t i = 0; list && i < list->n; i++)
    if (list->v[i] != from + i) return false;
  return true;
}

/* Dots of vectors, for each of a batch, are a sum of products, which fuse with what is around them. */
static ir_op *hs_dot_inner(hs_run *s, ir_op *op) {
  const ir_ints *batch = ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), *sum = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  uint32_t n = batch ? batch->n : 0;
  base_dtype t = (base_dtype)op->type->dtype;
  bool exact = t == XLAC_F32 || t == XLAC_F64 || base_dtype_is_integer(t);
  if (!exact || ir_operand_type(op, 0)->count / (op->type->count ? op->type->count : 1) > HS_DOT_BLOCK) return NULL;
  for (uint32_t side = 0; side < 2; side++)
    if (!hs_counts_from(ir_get_ints(op, hs_sides[side].batch), 0) ||
        !hs_counts_from(ir_get_ints(op, hs_sides[side].contracting), n))
      return NULL;
  ir_op *product = hlo_binary(&s->x, IR_OP_MULTIPLY, ir_operand(op, 0), ir_operand(op, 1));
  return hlo_sum(&s->x, product, op->type, sum->n, sum->v);
}

/* NULL where it is a product of matrices, or of a matrix and a vector. */
static ir_op *hs_dot_by_elements(hs_run *s, ir_op *op) {
  const ir_ints *sum = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  if (op->type->count == 0 || !hs_dot_is_elementwise(op)) return NULL;
  if (!sum || sum->n == 0) return hs_dot_outer(s, op);
  return hs_free_dims(op, 0) == 0 && hs_free_dims(op, 1) == 0 ? hs_dot_inner(s, op) : NULL;
}

/* Where dimension d of a dot's result stands once the sides have changed places: batch dimensions stay, and the right
 * side's free ones come before the left side's. */
static int64_t hs_swapped_dim(const ir_op *dot, int64_t d) {
  int64_t left = hs_free_dims(dot, 0), right = hs_free_dims(dot, 1), batch = dot->type->rank - left - right;
  return d < batch ? d : d < batch + left ? d + right : d - left;
}

/* Whether a transposition of the result is better made from the dot whose sides are swapped: it is that dot, or its
 * last dimension is of the left side, so that single elements would move where rows can. */
static bool hs_wants_swap(const ir_op *dot, const ir_ints *permutation) {
  assert(permutation->n == dot->type->rank);
  int64_t left = hs_free_dims(dot, 0), right = hs_free_dims(dot, 1), batch = dot->type->rank - left - right;
  bool only_sides = true;
  if (!left || !right) return false;
  for (uint32_t i = 0; i < permutation->n; i++) only_sides &= hs_swapped_dim(dot, permutation->v[i]) == i;
  int64_t last = permutation->v[permutation->n - 1];
  return only_sides || (last >= batch && last < batch + left);
}

/* The left side's dimension numbers become the right side's. */
static void hs_swap_attrs(hs_run *s, ir_op *made, const ir_op *dot) {
  for (uint32_t side = 0; side < 2; side++) {
    const ir_ints *batch = ir_get_ints(dot, hs_sides[side].batch), *sum = ir_get_ints(dot, hs_sides[side].contracting);
    if (batch && !ir_set_ints(made, hs_sides[!side].batch, batch->n, batch->v)) s->x.failed = true;
    if (sum && !ir_set_ints(made, hs_sides[!side].contracting, sum->n, sum->v)) s->x.failed = true;
  }
}

/* The dot with its sides swapped, or NULL: its dimensions are dot's in that order. */
static ir_op *hs_swap_sides(hs_run *s, const ir_op *dot) {
  int64_t dims[IR_MAX_RANK];
  for (uint32_t d = 0; d < dot->type->rank; d++) dims[hs_swapped_dim(dot, d)] = dot->type->dims[d];
  const ir_type *type = ir_tensor_default(s->x.m, (base_dtype)dot->type->dtype, dot->type->rank, dims, NULL);
  ir_op *made = hlo_make(&s->x, IR_OP_DOT, type, 2, (ir_op *[]){ir_operand(dot, 1), ir_operand(dot, 0)});
  if (made) hs_swap_attrs(s, made, dot);
  return made;
}

/* Whether dot may become the one with its sides swapped, with one user to be told. Operands of two types may be two
 * algorithms, and precision is said by operand. */
static bool hs_can_swap(const hs_run *s, const ir_op *dot) {
  if (dot->opcode != IR_OP_DOT || !hs_dot_is_plain(dot) || ir_use_count(dot) != 1 || ir_is_result(dot)) return false;
  if (opt_in_edge(&s->facts, dot) || !hlo_is_plain(dot->type)) return false;
  return ir_operand_type(dot, 0)->dtype == ir_operand_type(dot, 1)->dtype &&
         !ir_attr_find(dot, IR_ATTR_OPERAND_PRECISION) && ir_get_word(dot, IR_ATTR_ALGORITHM) == IR_DOT_UNSET;
}

/* Where a product's batches lie side by side in what another product gives, that one changes its sides: then a batch is
 * rows of neighbours. So it is with einsum("etf,efd,te->td"): its first product is [e,d,t], the second has batches t.
 */
static bool hs_swap_below(hs_run *s, ir_op *op, uint32_t side) {
  ir_op *inner = ir_operand(op, side);
  const ir_ints *batch = ir_get_ints(op, hs_sides[side].batch);
  if (!hs_can_swap(s, inner) || !hs_free_dims(inner, 1) || !hs_free_dims(inner, 0)) return false;
  int64_t last = inner->type->rank - 1, then_last = last - hs_free_dims(inner, 1), to[IR_MAX_RANK];
  if (!ir_ints_has(batch, last) || ir_ints_has(batch, then_last)) return false;
  for (int64_t d = 0; d <= last; d++) to[d] = hs_swapped_dim(inner, d);
  ir_op *made = hs_keeps_order(op, side, to) ? hs_swap_sides(s, inner) : NULL;
  return made && hs_read_instead(s, op, side, made, to);
}

/* Both sides, so that one visit suffices. */
static ir_op *hs_dot(hs_run *s, ir_op *op) {
  if (!hs_dot_is_plain(op)) return NULL;
  ir_op *instead = hs_dot_by_elements(s, op);
  if (instead) return instead;
  bool changed = false;
  for (uint32_t side = 0; side < 2; side++)
    if (hs_take_transpose(s, op, side) || hs_swap_below(s, op, side)) changed = true;
  return changed ? op : NULL;
}

/* (A B)' is B' A': the same products, added in the same order. What is left of the transposition moves rows. */
ir_op *hs_transpose_of_dot(hs_run *s, ir_op *op) {
  const ir_op *dot = ir_operand(op, 0);
  const ir_ints *permutation = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  if (!hs_can_swap(s, dot) || !hs_wants_swap(dot, permutation)) return NULL;
  int64_t moved[IR_MAX_RANK];
  bool stays = true;
  for (uint32_t i = 0; i < permutation->n; i++) {
    moved[i] = hs_swapped_dim(dot, permutation->v[i]);
    stays &= moved[i] == i;
  }
  ir_op *made = hs_swap_sides(s, dot);
  if (stays || !made) return made;
  ir_op *turned = hlo_make(&s->x, IR_OP_TRANSPOSE, op->type, 1, &made);
  if (turned && !ir_set_ints(turned, IR_ATTR_DIMENSIONS, permutation->n, moved)) s->x.failed = true;
  return turned;
}

const hs_row hs_dot_rules[] = {{IR_OP_DOT, hs_dot}, {IR_OP_INVALID, NULL}};

/* Simplification of windows: padding that changes nothing becomes the window's own. */

/* The op of a computation that combines its two parameters by one op, or IR_OP_INVALID.
 * A pooling layer with its padding written out, as frontends do:
 *    p = f32[10] pad(a, -inf), padding=1_1;  reduce-window(p, -inf), window={size=3}, to_apply=maximum
 *    reduce-window(a, -inf), window={size=3 pad=1_1}, to_apply=maximum */
static unsigned hs_combiner(const ir_computation *c) {
  const ir_op *body = ir_combiner(c);
  bool one_type = body && ir_operand(body, 0)->type == body->type && ir_operand(body, 1)->type == body->type;
  return one_type && ir_is_scalar(body->type) ? body->opcode : IR_OP_INVALID;
}

/* Whether combining with `value` changes nothing, after `init` has taken part: 0 in sums that begin with 0, which are
 * never -0; the initial value itself in maxima and minima. */
static bool hs_is_neutral(unsigned combiner, const ir_op *init, const ir_op *value) {
  if (combiner == IR_OP_ADD) return hs_is(init, 0.0) && hs_is(value, 0.0) && !base_dtype_is_complex(value->type->dtype);
  if (combiner != IR_OP_MAXIMUM && combiner != IR_OP_MINIMUM) return false;
  if (init->opcode != IR_OP_CONSTANT || value->opcode != IR_OP_CONSTANT || init->type != value->type)
    return init == value;
  return memcmp(init->u.literal->data, value->u.literal->data, base_dtype_bytes((base_dtype)init->type->dtype)) == 0;
}

/* Negative padding crops, which a window's own padding would not undo; dilation counts padded elements too. */
static bool hs_can_pad(const ir_window *w, const ir_padding *p, const ir_type *padded) {
  if (w->n != p->n || padded->count == 0) return false;
  for (uint32_t d = 0; d < w->n; d++)
    if (w->v[d].base_dilation != 1 || p->v[d].low < 0 || p->v[d].high < 0) return false;
  return true;
}

/* An empty operand is left: its window sees initial values only. */
static ir_op *hs_reduce_window(hs_run *s, ir_op *op) {
  const ir_window *window = ir_get_window(op);
  ir_op *pad = op->n_operands == 2 ? ir_operand(op, 0) : NULL;
  const ir_attr *a = pad && pad->opcode == IR_OP_PAD ? ir_attr_find(pad, IR_ATTR_PADDING) : NULL;
  if (!a || !window || !hs_can_pad(window, a->v.padding, pad->type) || !hlo_is_plain(ir_operand_type(pad, 0)))
    return NULL;
  if (!hs_is_neutral(hs_combiner(op->called[0]), ir_operand(op, 1), ir_operand(pad, 1))) return NULL;
  if (ir_operand_type(pad, 0)->count == 0) return NULL;
  ir_window *own = base_arena_zalloc(&s->x.m->arena, sizeof *own + window->n * sizeof *own->v);
  ir_attr attr = *ir_attr_find(op, IR_ATTR_WINDOW);
  if (!own) return s->x.failed = true, NULL;
  own->n = window->n;
  for (uint32_t d = 0; d < window->n; d++) {
    own->v[d] = window->v[d];
    own->v[d].padding_low += a->v.padding->v[d].low;
    own->v[d].padding_high += a->v.padding->v[d].high;
    own->v[d].base_dilation = a->v.padding->v[d].interior + 1;
  }
  attr.v.window = own;
  if (!ir_attr_set(op, attr)) return s->x.failed = true, NULL;
  ir_set_operand(op, 0, (ir_value){ir_operand(pad, 0), pad->operands[0].index});
  return op;
}

const hs_row hs_window_rules[] = {{IR_OP_REDUCE_WINDOW, hs_reduce_window}, {IR_OP_INVALID, NULL}};
