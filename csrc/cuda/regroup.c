/* Products of groups, as several queries' heads that share one head of keys are: scores that a program has in another
 * order than its product makes them are made in that order, so that they are batches, rows and columns as attention has
 * them, and products of such scores take them as they lie. What is moved instead is operands and results, which are
 * smaller: else nothing is done. */
#include "product.h"

#include "../passes/hlo/hlo_make.h"
#include "print/dot.h"

enum { CU_REGROUP_CHAIN = 8, CU_REGROUP_TIMES = 4 };

/* An operand of a product: its dimensions by what they are. */
typedef struct cu_regroup_side {
  ir_op *op;
  uint32_t n_batch, n_terms, n_free;
  int64_t batch[IR_MAX_RANK], terms[IR_MAX_RANK], free[IR_MAX_RANK];
} cu_regroup_side;

/* What stands between a product and a transposition: conversions, and scalars that all elements are scaled by. */
typedef struct cu_regroup_chain {
  ir_op *ops[CU_REGROUP_CHAIN], *moved; /* from the inside; moved: the transposition, or NULL */
  uint32_t n;
} cu_regroup_chain;

static const ir_attr_key cu_regroup_keys[2][2] = {{IR_ATTR_LHS_BATCH_DIMS, IR_ATTR_LHS_CONTRACTING_DIMS},
                                                  {IR_ATTR_RHS_BATCH_DIMS, IR_ATTR_RHS_CONTRACTING_DIMS}};

static void cu_regroup_side_of(const ir_op *dot, uint32_t side, cu_regroup_side *out) {
  const ir_ints *batch = ir_get_ints(dot, cu_regroup_keys[side][0]),
                *terms = ir_get_ints(dot, cu_regroup_keys[side][1]);
  *out = (cu_regroup_side){.op = ir_operand(dot, side), .n_batch = batch->n, .n_terms = terms->n};
  for (uint32_t i = 0; i < batch->n; i++) out->batch[i] = batch->v[i];
  for (uint32_t i = 0; i < terms->n; i++) out->terms[i] = terms->v[i];
  for (uint32_t d = 0; d < out->op->type->rank; d++)
    if (!ir_ints_has(batch, d) && !ir_ints_has(terms, d)) out->free[out->n_free++] = d;
}

/* --- chains --- */

static bool cu_regroup_is_scalar(const ir_op *op) {
  return op->opcode == IR_OP_BROADCAST && ir_operand_type(op, 0)->rank == 0;
}

/* The operand whose elements it has, one by one; -1: it is no link of a chain. */
static int cu_regroup_main(const ir_op *op) {
  if (op->control_succs || op->n_control_preds || !hlo_is_plain(op->type)) return -1;
  if (op->opcode == IR_OP_CONVERT) return 0;
  if (op->opcode != IR_OP_MULTIPLY && op->opcode != IR_OP_DIVIDE) return -1;
  for (int i = 0; i < 2; i++)
    if (cu_regroup_is_scalar(ir_operand(op, 1 - (uint32_t)i))) return i;
  return -1;
}

static ir_op *cu_regroup_user(const ir_op *op) {
  return op->uses && !op->uses->next && !ir_is_result(op) ? op->uses->user : NULL;
}

/* From the product to a transposition of it, where nobody else reads what lies between. */
static bool cu_regroup_above(ir_op *dot, cu_regroup_chain *x) {
  *x = (cu_regroup_chain){.n = 0};
  for (ir_op *op = cu_regroup_user(dot); op; op = cu_regroup_user(op)) {
    if (op->opcode == IR_OP_TRANSPOSE) return x->moved = op, hlo_is_plain(op->type);
    int main = cu_regroup_main(op);
    if (x->n == CU_REGROUP_CHAIN || main < 0 || ir_operand(op, (uint32_t)main) != (x->n ? x->ops[x->n - 1] : dot))
      return false;
    x->ops[x->n++] = op;
  }
  return false;
}

/* From an operand down to a transposition; without one the chain is empty. */
static void cu_regroup_below(ir_op *op, cu_regroup_chain *x) {
  uint32_t n = 0;
  ir_op *links[CU_REGROUP_CHAIN];
  *x = (cu_regroup_chain){.n = 0};
  while (op->opcode != IR_OP_TRANSPOSE) {
    int main = cu_regroup_main(op);
    if (n == CU_REGROUP_CHAIN || main < 0) return;
    links[n++] = op;
    op = ir_operand(op, (uint32_t)main);
  }
  if (!hlo_is_plain(op->type) || !hlo_is_plain(ir_operand_type(op, 0))) return;
  x->moved = op;
  while (n > 0) x->ops[x->n++] = links[--n];
}

/* The chain again, over `from`. */
static ir_op *cu_regroup_again(hlo_maker *make, const cu_regroup_chain *x, ir_op *from) {
  for (uint32_t i = 0; i < x->n && from; i++) {
    const ir_op *op = x->ops[i];
    uint32_t main = (uint32_t)cu_regroup_main(op);
    ir_op *operands[2] = {from, from};
    for (uint32_t j = 0; j < op->n_operands; j++) {
      const ir_type *t = ir_type_with_dtype(make->m, from->type, (base_dtype)ir_operand_type(op, j)->dtype);
      if (j != main) operands[j] = t ? hlo_broadcast(make, ir_operand(ir_operand(op, j), 0), t, 0, NULL) : NULL;
    }
    from = hlo_make(make, (ir_opcode)op->opcode, ir_type_with_dtype(make->m, from->type, (base_dtype)op->type->dtype),
                    op->n_operands, operands);
  }
  return from;
}

/* --- moving operands --- */

static bool cu_regroup_rises(uint32_t n, const int64_t *list) {
  bool rises = true;
  for (uint32_t i = 1; i < n; i++) rises = rises && list[i - 1] < list[i];
  return rises;
}

static bool cu_regroup_turns(uint32_t n, const int64_t *place) {
  bool turns = false;
  for (uint32_t i = 0; i < n; i++) turns = turns || place[i] != i;
  return turns;
}

static ir_op *cu_regroup_transpose(hlo_maker *make, ir_op *from, const int64_t *order) {
  return from && cu_regroup_turns(from->type->rank, order) ? hlo_transpose(make, from, order) : from;
}

/* So that its free dimensions lie in the order in which they are listed. */
static void cu_regroup_sort(hlo_maker *make, cu_regroup_side *x) {
  int64_t order[IR_MAX_RANK], n = 0, *const lists[] = {x->batch, x->free, x->terms};
  const uint32_t counts[] = {x->n_batch, x->n_free, x->n_terms};
  if (cu_regroup_rises(x->n_free, x->free)) return;
  for (int i = 0; i < 3; i++)
    for (uint32_t j = 0; j < counts[i]; j++) {
      order[n] = lists[i][j];
      lists[i][j] = n++;
    }
  x->op = cu_regroup_transpose(make, x->op, order);
}

/* With new dimensions outside of all, along which it is the same. In its lists number i of these is -1 - i so far. */
static void cu_regroup_spread(hlo_maker *make, cu_regroup_side *x, uint32_t n, const int64_t *extents) {
  int64_t dims[IR_MAX_RANK], places[IR_MAX_RANK], *const lists[] = {x->batch, x->free, x->terms};
  const uint32_t counts[] = {x->n_batch, x->n_free, x->n_terms};
  const ir_type *from = x->op ? x->op->type : NULL;
  if (n == 0 || !from) return;
  assert(from->rank + n <= IR_MAX_RANK);
  for (uint32_t i = 0; i < n; i++) dims[n - 1 - i] = extents[i];
  for (uint32_t d = 0; d < from->rank; d++) {
    dims[n + d] = from->dims[d];
    places[d] = n + d;
  }
  for (int i = 0; i < 3; i++)
    for (uint32_t j = 0; j < counts[i]; j++) lists[i][j] += n;
  const ir_type *t = ir_tensor_default(make->m, (base_dtype)from->dtype, from->rank + n, dims, NULL);
  x->op = hlo_broadcast(make, x->op, t, from->rank, places);
}

/* The product of them, as `like` computes it; of the result the batch comes first, then the first one's free
 * dimensions. */
static ir_op *cu_regroup_dot(hlo_maker *make, const ir_op *like, base_dtype dtype, const cu_regroup_side *a,
                             const cu_regroup_side *b) {
  static const ir_attr_key kept[] = {IR_ATTR_OPERAND_PRECISION, IR_ATTR_ALGORITHM};
  const cu_regroup_side *const sides[] = {a, b};
  int64_t dims[IR_MAX_RANK];
  uint32_t n = 0;
  assert(a->n_batch == b->n_batch && a->n_terms == b->n_terms);
  if (!a->op || !b->op) return NULL;
  for (uint32_t i = 0; i < a->n_batch; i++) dims[n++] = a->op->type->dims[a->batch[i]];
  for (int s = 0; s < 2; s++)
    for (uint32_t i = 0; i < sides[s]->n_free; i++) dims[n++] = sides[s]->op->type->dims[sides[s]->free[i]];
  ir_op *made =
      hlo_make(make, IR_OP_DOT, ir_tensor_default(make->m, dtype, n, dims, NULL), 2, (ir_op *[]){a->op, b->op});
  for (int s = 0; s < 2 && made; s++)
    if (!ir_set_ints(made, cu_regroup_keys[s][0], sides[s]->n_batch, sides[s]->batch) ||
        !ir_set_ints(made, cu_regroup_keys[s][1], sides[s]->n_terms, sides[s]->terms))
      make->failed = true;
  for (int i = 0; i < 2 && made; i++) {
    const ir_attr *attr = ir_attr_find(like, kept[i]);
    if (attr && !ir_attr_set(made, *attr)) make->failed = true;
  }
  return made;
}

/* Two sides on the way to a product: where a free dimension of one becomes a batch, the other one is spread. */
typedef struct cu_regroup_pair {
  cu_regroup_side x, y;
  uint32_t n_spread;
  int64_t spread[IR_MAX_RANK], times; /* times: how often y is there then */
} cu_regroup_pair;

static void cu_regroup_add_batch(cu_regroup_pair *p, int64_t of_x, int64_t of_y) {
  p->x.batch[p->x.n_batch++] = of_x;
  p->y.batch[p->y.n_batch++] = of_y;
}

static void cu_regroup_add_spread(cu_regroup_pair *p, int64_t of_x) {
  int64_t extent = p->x.op->type->dims[of_x];
  assert(extent > 0 && p->n_spread < IR_MAX_RANK);
  cu_regroup_add_batch(p, of_x, -1 - (int64_t)p->n_spread);
  p->spread[p->n_spread++] = extent;
  p->times *= extent;
}

/* Elements that are moved before there is a product. */
static double cu_regroup_cost(const cu_regroup_pair *p) {
  double x = (double)p->x.op->type->count, y = (double)p->y.op->type->count;
  return (cu_regroup_rises(p->x.n_free, p->x.free) ? 0 : x) + (cu_regroup_rises(p->y.n_free, p->y.free) ? 0 : y) +
         (p->n_spread ? y * (double)p->times : 0);
}

static void cu_regroup_move(hlo_maker *make, cu_regroup_pair *p) {
  assert(p->n_spread == 0 || cu_regroup_rises(p->y.n_free, p->y.free));
  cu_regroup_sort(make, &p->x);
  cu_regroup_sort(make, &p->y);
  cu_regroup_spread(make, &p->y, p->n_spread, p->spread);
}

/* --- results --- */

/* The product as the transposition has its dimensions: batches, rows, and all columns, which are y's. false: they do
 * not lie so, or moving operands instead is no less. */
static bool cu_regroup_plan_result(const ir_op *dot, const ir_op *moved, cu_regroup_pair *p) {
  const ir_ints *order = ir_get_ints(moved, IR_ATTR_DIMENSIONS);
  cu_regroup_side sides[2];
  for (uint32_t i = 0; i < 2; i++) cu_regroup_side_of(dot, i, &sides[i]);
  int64_t n_batch = sides[0].n_batch, second = n_batch + sides[0].n_free, n = (int64_t)order->n, lead = 0;
  if (n_batch == 0 || order->v[n - 1] < n_batch) return false;
  uint32_t side = order->v[n - 1] >= second; /* y's */
  *p = (cu_regroup_pair){.x = sides[1 - side], .y = sides[side], .times = 1};
  p->x.n_batch = p->y.n_batch = p->x.n_free = p->y.n_free = 0;
  for (int64_t i = 0; i < n; i++)
    if (order->v[i] < n_batch) lead = i + 1;
  for (int64_t i = 0; i < n; i++) {
    int64_t d = order->v[i];
    bool batch = d < n_batch, of_y = !batch && (d >= second) == side;
    if (batch) {
      cu_regroup_add_batch(p, sides[1 - side].batch[d], sides[side].batch[d]);
      continue;
    }
    int64_t place = sides[d >= second].free[d - (d >= second ? second : n_batch)];
    if (of_y && i < n - (int64_t)sides[side].n_free) return false;
    if (of_y)
      p->y.free[p->y.n_free++] = place;
    else if (i < lead)
      cu_regroup_add_spread(p, place);
    else
      p->x.free[p->x.n_free++] = place;
  }
  if (p->n_spread && (!cu_regroup_rises(p->y.n_free, p->y.free) || p->y.op->type->rank + p->n_spread > IR_MAX_RANK))
    return false;
  return p->x.n_free > 0 && p->x.op->type->count < moved->type->count && p->y.op->type->count < moved->type->count &&
         cu_regroup_cost(p) < (double)moved->type->count;
}

static ir_op *cu_regroup_result(hlo_maker *make, ir_op *dot, const cu_regroup_chain *chain, cu_regroup_pair *p) {
  cu_regroup_move(make, p);
  ir_op *made = cu_regroup_dot(make, dot, (base_dtype)dot->type->dtype, &p->x, &p->y);
  return cu_regroup_again(make, chain, made);
}

/* --- operands --- */

typedef struct cu_regroup_operand {
  cu_regroup_pair p;
  uint32_t side;              /* which operand x is */
  uint32_t n_sums;            /* terms outside of a batch, which are batches first and then added up */
  int64_t sums[IR_MAX_RANK];  /* their places in the new product */
  int64_t place[IR_MAX_RANK]; /* in it, without sums, of the dimensions of the old one */
} cu_regroup_operand;

/* Dimension d of x, where all before are done; `inside`: behind all batches. */
static void cu_regroup_take(cu_regroup_operand *o, const cu_regroup_side *x, const cu_regroup_side *y, int64_t d,
                            int64_t of_dot, bool inside, int64_t free_from) {
  cu_regroup_pair *p = &o->p;
  int64_t batch = base_list_at(x->batch, x->n_batch, of_dot), term = base_list_at(x->terms, x->n_terms, of_dot);
  int64_t at = (int64_t)p->x.n_batch - o->n_sums;
  assert(at >= 0 && (batch < 0 || term < 0));
  if (batch >= 0) {
    o->place[batch] = at;
    cu_regroup_add_batch(p, d, y->batch[batch]);
  } else if (term >= 0 && inside) {
    p->x.terms[p->x.n_terms++] = d;
    p->y.terms[p->y.n_terms++] = y->terms[term];
  } else if (term >= 0) {
    o->sums[o->n_sums++] = p->x.n_batch;
    cu_regroup_add_batch(p, d, y->terms[term]);
  } else {
    int64_t number = free_from + base_list_at(x->free, x->n_free, of_dot);
    o->place[number] = inside ? -1 : at; /* -1: it is known when all batches are */
    if (inside)
      p->x.free[p->x.n_free++] = d;
    else
      cu_regroup_add_spread(p, d);
  }
}

/* Free dimensions that are still free keep their order, x's as they lie there. */
static void cu_regroup_place_free(cu_regroup_operand *o, const cu_regroup_side *x, const cu_regroup_side *y,
                                  const int64_t *at) {
  const cu_regroup_pair *p = &o->p;
  int64_t batches = (int64_t)p->x.n_batch - o->n_sums;
  int64_t x_from = batches + (o->side ? p->y.n_free : 0), y_from = batches + (o->side ? 0 : p->x.n_free);
  int64_t x_old = (int64_t)x->n_batch + (o->side ? y->n_free : 0),
          y_old = (int64_t)x->n_batch + (o->side ? 0 : x->n_free);
  for (uint32_t i = 0; i < y->n_free; i++) o->place[y_old + i] = y_from + i;
  for (uint32_t i = 0; i < x->n_free; i++)
    if (o->place[x_old + i] < 0) o->place[x_old + i] = x_from + base_list_at(p->x.free, p->x.n_free, at[x->free[i]]);
}

/* Neighbours in memory. */
static bool cu_regroup_is_one(uint32_t n, const int64_t *list) {
  bool one = true;
  for (uint32_t i = 1; i < n; i++) one = one && list[i] == list[0] + i;
  return one;
}

/* false: the product takes it as it lies already, or would move no less. */
static bool cu_regroup_plan_operand(const ir_op *dot, uint32_t side, const ir_op *moved, cu_regroup_operand *o) {
  cu_regroup_side x, y;
  int64_t of_dot[IR_MAX_RANK], at[IR_MAX_RANK], lead = 0; /* by x's dimension the dot's, and back */
  cu_regroup_side_of(dot, side, &x);
  cu_regroup_side_of(dot, 1 - side, &y);
  if (x.n_batch == 0) return false;
  *o = (cu_regroup_operand){.side = side, .p = {.x.op = x.op, .y = y, .times = 1}};
  if (moved) o->p.x.op = ir_operand(moved, 0);
  o->p.y.n_batch = o->p.y.n_terms = 0;
  uint32_t rank = x.op->type->rank;
  for (uint32_t d = 0; d < rank; d++) {
    at[d] = moved ? ir_get_ints(moved, IR_ATTR_DIMENSIONS)->v[d] : d;
    of_dot[at[d]] = d;
  }
  for (uint32_t i = 0; i < x.n_batch; i++) lead = at[x.batch[i]] >= lead ? at[x.batch[i]] + 1 : lead;
  for (uint32_t d = 0; d < rank; d++)
    cu_regroup_take(o, &x, &y, d, of_dot[d], d >= lead, (int64_t)x.n_batch + (side ? y.n_free : 0));
  cu_regroup_place_free(o, &x, &y, at);
  const cu_regroup_pair *p = &o->p;
  double result = (double)dot->type->count, sums = 1;
  for (uint32_t i = 0; i < o->n_sums; i++) sums *= (double)p->x.op->type->dims[p->x.batch[o->sums[i]]];
  double cost = cu_regroup_cost(p) + (o->n_sums ? 2 * sums * result : 0) +
                (cu_regroup_turns(dot->type->rank, o->place) ? result : 0);
  bool listed = cu_regroup_rises(x.n_terms, x.terms);
  return (moved || p->n_spread || o->n_sums || !listed) && p->x.n_terms > 0 &&
         cu_regroup_is_one(p->x.n_terms, p->x.terms) && cu_regroup_is_one(p->x.n_free, p->x.free) &&
         p->y.op->type->rank + p->n_spread <= IR_MAX_RANK && dot->type->rank + o->n_sums <= IR_MAX_RANK &&
         dot->type->count < p->x.op->type->count && cost < (double)p->x.op->type->count;
}

/* The new product's results in the old one's order, and of its type. */
static ir_op *cu_regroup_back(hlo_maker *make, const ir_op *dot, const cu_regroup_operand *o, ir_op *made) {
  int64_t dims[IR_MAX_RANK], order[IR_MAX_RANK];
  for (uint32_t i = 0; i < dot->type->rank; i++) {
    assert(o->place[i] >= 0 && o->place[i] < dot->type->rank);
    dims[o->place[i]] = dot->type->dims[i];
    order[i] = o->place[i];
  }
  if (o->n_sums && made) {
    const ir_type *t = ir_tensor_default(make->m, (base_dtype)made->type->dtype, dot->type->rank, dims, NULL);
    made = t ? hlo_sum(make, made, t, o->n_sums, o->sums) : NULL;
  }
  return cu_regroup_transpose(make, hlo_convert(make, made, (base_dtype)dot->type->dtype), order);
}

static ir_op *cu_regroup_operand_of(hlo_maker *make, ir_op *dot, const cu_regroup_chain *chain, cu_regroup_operand *o) {
  base_dtype t = (base_dtype)dot->type->dtype;
  if (chain->moved) o->p.x.op = cu_regroup_again(make, chain, o->p.x.op);
  if (!o->p.x.op) return NULL;
  cu_regroup_move(make, &o->p);
  const cu_regroup_side *sides[] = {&o->p.x, &o->p.y};
  ir_op *made = cu_regroup_dot(make, dot, o->n_sums && cuda_is_narrow_float(t) ? XLAC_F32 : t, sides[o->side],
                               sides[1 - o->side]);
  return cu_regroup_back(make, dot, o, made);
}

/* --- all --- */

static bool cu_regroup_is_product(const ir_op *dot) {
  return dot->opcode == IR_OP_DOT && dot->n_operands == 2 && hlo_is_plain(dot->type) && dot->type->count > 0 &&
         hlo_is_plain(ir_operand_type(dot, 0)) && hlo_is_plain(ir_operand_type(dot, 1)) && !dot->control_succs &&
         !dot->n_control_preds;
}

/* *made: what took its place; NULL: it stays. */
static int cu_regroup_one(hlo_maker *make, ir_op *dot, ir_op **made) {
  cu_regroup_chain chain;
  cu_regroup_pair p;
  cu_regroup_operand o;
  ir_op *from = dot;
  *made = NULL;
  if (cu_regroup_above(dot, &chain) && cu_regroup_plan_result(dot, chain.moved, &p)) {
    from = chain.moved;
    *made = cu_regroup_result(make, dot, &chain, &p);
  } else {
    for (uint32_t side = 0; side < 2 && !*made && !make->failed; side++) {
      cu_regroup_below(ir_operand(dot, side), &chain);
      if (cu_regroup_plan_operand(dot, side, chain.moved, &o)) *made = cu_regroup_operand_of(make, dot, &chain, &o);
    }
  }
  if (make->failed) return -1;
  return !*made || ir_replace_uses(from, *made) ? 0 : -1;
}

/* f32 beside floats of 16 bits, where the program's algorithm rounds both to these: rounded before, so that the product
 * is one of a single type, as tensor cores have them. JAX's attention has such gradients. */
static int cu_regroup_round(ir_module *m, ir_op *dot, bool *changed) {
  ir_dot algorithm = (ir_dot)ir_get_word(dot, IR_ATTR_ALGORITHM);
  base_dtype narrow = algorithm == IR_DOT_BF16_BF16_F32 ? XLAC_BF16
                      : algorithm == IR_DOT_F16_F16_F32 ? XLAC_F16
                                                        : XLAC_F32;
  for (uint32_t side = 0; side < 2 && narrow != XLAC_F32; side++) {
    hlo_maker make = {.m = m, .before = dot};
    ir_op *wide = ir_operand(dot, side);
    if (wide->type->dtype != XLAC_F32 || ir_operand_type(dot, 1 - side)->dtype != narrow) continue;
    ir_op *rounded = hlo_convert(&make, wide, narrow);
    if (!rounded) return -1;
    ir_set_operand(dot, side, (ir_value){rounded, 0});
    *changed = true;
  }
  return 0;
}

int cuda_product_regroup(ir_module *m, ir_op *dot, bool *changed, xlac_error *err) {
  if (cu_regroup_is_product(dot) && cu_regroup_round(m, dot, changed)) return base_oom(err, "a product of matrices");
  for (int i = 0; i < CU_REGROUP_TIMES && dot && cu_regroup_is_product(dot); i++) {
    hlo_maker make = {.m = m, .before = dot};
    ir_op *made = NULL;
    if (cu_regroup_one(&make, dot, &made)) return base_oom(err, "a product of matrices");
    *changed = *changed || made;
    while (made && made->opcode != IR_OP_DOT && made->n_operands) made = ir_operand(made, 0);
    dot = made;
  }
  return 0;
}
