/* softmax(x) v, where x is elementwise of a product of matrices, what is elementwise of a product alone, and sums and
 * products of what is, as one piece: recognised by what the ops compute, and put into a computation of its own, which a
 * fusion op calls.
 *
 *   s = dot(q, k); x = anything elementwise of s; m = max(x); e = exp(x - m); w = e / sum(e); dot(w, v)
 *
 * Rows are what the maximum and the sum leave. Everything is looked at in row-major order, so that reshapes, units and
 * conversions between floats may stand anywhere in between. */
#include "../base/map.h"
#include "fuse.h"

enum { ATT_MAX_OPS = 96 /* in one, with masks and the like */ };

/* --- what it is --- */

static bool att_is_float(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && base_dtype_is_float((base_dtype)t->dtype);
}

/* What it has the numbers of, in their order. */
static ir_op *att_through(ir_op *op) {
  while (op->opcode == IR_OP_RESHAPE || op->opcode == IR_OP_COPY ||
         (op->opcode == IR_OP_CONVERT && att_is_float(op->type) && att_is_float(ir_operand_type(op, 0))))
    op = ir_operand(op, 0);
  return op;
}

/* The number that a constant has, also broadcast. */
static bool att_number(const ir_op *op, double *out) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  if (op->opcode != IR_OP_CONSTANT || op->u.literal->elided || !ir_is_tensor(op->type) || op->type->count != 1)
    return false;
  *out = base_load_f64((base_dtype)op->type->dtype, op->u.literal->data);
  return true;
}

/* Less than which no number of the type is. */
static bool att_is_least(const ir_op *op) {
  double v = 0;
  return att_number(op, &v) && v <= -65504 && (v - v != 0 || op->type->dtype == XLAC_F16 || v <= -0x1.fep127);
}

/* Whether the op gives each of its operand's elements to `keys` neighbours. */
static bool att_spreads(const ir_op *op, int64_t keys) {
  const ir_type *from = ir_operand_type(op, 0), *to = op->type;
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  int64_t next = 0, inside = 1;
  if (from->count * keys != to->count) return false;
  for (uint32_t i = 0; i < from->rank; i++) {
    if (from->dims[i] == 1) continue;
    for (; next < dims->v[i]; next++)
      if (to->dims[next] != 1) return false;
    if (to->dims[next++] != from->dims[i]) return false;
  }
  for (; next < to->rank; next++) inside *= to->dims[next];
  return inside == keys;
}

/* The reduction that the op has the results of, `keys` times each; it may be compared with the least number. */
static ir_op *att_reduction(ir_op *op, int64_t keys) {
  for (;;) {
    op = att_through(op);
    bool most = op->opcode == IR_OP_MAXIMUM, first = most && att_is_least(ir_operand(op, 0));
    bool alike = op->opcode == IR_OP_BROADCAST && op->type->count == ir_operand_type(op, 0)->count;
    if (!alike && !first && !(most && att_is_least(ir_operand(op, 1))) &&
        !(op->opcode == IR_OP_BROADCAST && att_spreads(op, keys)))
      return op;
    op = ir_operand(op, first);
  }
}

/* How many neighbours those dimensions of t are; 0: others stand between. */
static int64_t att_neighbours(const ir_type *t, const ir_ints *dims) {
  bool reduced[IR_MAX_RANK] = {false}, inside = true;
  int64_t keys = 1;
  for (uint32_t i = 0; i < dims->n; i++) reduced[dims->v[i]] = true;
  for (uint32_t d = t->rank; d-- > 0;) {
    if (t->dims[d] == 1) continue;
    if (reduced[d] && !inside) return 0;
    inside = inside && reduced[d];
    if (reduced[d]) keys *= t->dims[d];
  }
  return keys;
}

/* Of how many neighbours each result of the reduction is made; 0: they are none. */
static int64_t att_keys(const ir_op *op) {
  return att_neighbours(ir_operand_type(op, 0), ir_get_ints(op, IR_ATTR_DIMENSIONS));
}

/* Of how many neighbours of that operand each result of the dot is made. */
static int64_t att_terms(const ir_op *dot, uint32_t side) {
  return att_neighbours(ir_operand_type(dot, side),
                        ir_get_ints(dot, side ? IR_ATTR_RHS_CONTRACTING_DIMS : IR_ATTR_LHS_CONTRACTING_DIMS));
}

/* Whether op combines, by that op and from a number that changes nothing, what `of` has the numbers of. */
static bool att_combines(const ir_op *op, ir_opcode by, ir_op *of) {
  double init = 1;
  const ir_op *combiner = fusion_reduction(op);
  if (!combiner || combiner->opcode != by || att_through(ir_operand(op, 0)) != of) return false;
  return by == IR_OP_ADD ? att_number(ir_operand(op, 1), &init) && init == 0 : att_is_least(ir_operand(op, 1));
}

/* Without what has just a place: numbers of a kernel, at other indexes or the same. */
static bool att_is_inside(const ir_op *op) {
  if (op->n_control_preds || !fusion_is_candidate(op)) return false;
  if (op->opcode == IR_OP_CONSTANT) return op->type->count == 1;
  return op->opcode == IR_OP_IOTA || op->opcode == IR_OP_BROADCAST || op->opcode == IR_OP_RESHAPE ||
         op->opcode == IR_OP_TRANSPOSE || ir_opcode_has((ir_opcode)op->opcode, IR_ELEMENTWISE);
}

/* The product of which x is elementwise. */
static ir_op *att_find_scores(ir_op *x, int64_t count, uint32_t *left) {
  if (x->opcode == IR_OP_DOT && x->type->count == count) return x;
  if (*left == 0 || !att_is_inside(x) || x->type->count != count) return NULL;
  --*left;
  for (uint32_t i = 0; i < x->n_operands; i++) {
    ir_op *found = att_find_scores(ir_operand(x, i), count, left);
    if (found) return found;
  }
  return NULL;
}

/* The sum that the op divides by. */
static ir_op *att_find_sum(ir_op *op) {
  while (op->opcode != IR_OP_REDUCE && op->n_operands == 1) op = ir_operand(op, 0);
  return op->opcode == IR_OP_REDUCE && ir_is_tensor(op->type) ? op : NULL;
}

static bool att_is_softmax(ir_op *weights, fusion_attention *a) {
  ir_op *quotient = att_through(weights);
  if (quotient->opcode != IR_OP_DIVIDE) return false;
  ir_op *e = att_through(ir_operand(quotient, 0)), *less = e;
  if (e->opcode == IR_OP_EXP) less = att_through(ir_operand(e, 0));
  a->sum = att_find_sum(ir_operand(quotient, 1));
  if (less->opcode != IR_OP_SUBTRACT || !att_is_float(less->type) || !a->sum) return false;
  a->keys = att_keys(a->sum);
  a->x = ir_operand(less, 0);
  a->most = att_reduction(ir_operand(less, 1), a->keys);
  return a->keys > 1 && a->most->opcode == IR_OP_REDUCE && ir_is_tensor(a->most->type) &&
         att_reduction(ir_operand(quotient, 1), a->keys) == a->sum && att_keys(a->most) == a->keys &&
         att_combines(a->sum, IR_OP_ADD, e) && att_combines(a->most, IR_OP_MAXIMUM, att_through(a->x));
}

bool fusion_attention_of(ir_op *out, fusion_attention *a) {
  if (out->opcode == IR_OP_TUPLE && out->n_operands == 3) out = ir_operand(out, 0);
  if (out->opcode != IR_OP_DOT || out->n_operands != 2 || !att_is_float(out->type)) return false;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t left = ATT_MAX_OPS;
    *a = (fusion_attention){.out = out, .side = side};
    if (!att_is_float(ir_operand_type(out, side)) || !att_is_softmax(ir_operand(out, side), a)) continue;
    a->scores = att_find_scores(a->x, a->x->type->count, &left);
    return a->scores && a->scores->n_operands == 2 && att_is_float(a->scores->type) &&
           ir_operand_type(out, side)->count == a->x->type->count && att_terms(out, side) == a->keys;
  }
  return false;
}

/* --- what is elementwise of a product --- */

bool fusion_product_of(ir_op *x, fusion_attention *a) {
  uint32_t left = ATT_MAX_OPS;
  if (x->opcode == IR_OP_DOT || !ir_is_tensor(x->type)) return false;
  *a = (fusion_attention){.x = x, .out = x};
  a->scores = att_find_scores(x, x->type->count, &left);
  return a->scores && a->scores->n_operands == 2;
}

/* Of its elements in their order. */
static bool att_follows(const ir_op *op, int64_t count) {
  return op->type->count == count && op->opcode != IR_OP_BROADCAST && op->opcode != IR_OP_TRANSPOSE &&
         att_is_inside(op);
}

static bool att_lists(uint32_t n, ir_op *const *all, const ir_op *op) {
  for (uint32_t i = 0; i < n; i++)
    if (all[i] == op) return true;
  return false;
}

/* The one op that all that is elementwise of the dot leads to; NULL: there is none, or several. */
static ir_op *att_end_of(ir_op *dot) {
  enum { MOST = 32 };
  ir_op *all[MOST] = {dot}, *end = NULL;
  uint32_t n = 1;
  for (uint32_t i = 0; i < n; i++) IR_FOR_USES(use, all[i]) {
      if (att_lists(n, all, use->user) || !att_follows(use->user, dot->type->count)) continue;
      if (n == MOST) return NULL;
      all[n++] = use->user;
    }
  for (uint32_t i = 0; i < n; i++) {
    bool leaves = ir_is_result(all[i]);
    IR_FOR_USES(use, all[i]) leaves = leaves || !att_lists(n, all, use->user);
    if (leaves && end) return NULL;
    if (leaves) end = all[i];
  }
  return end == dot ? NULL : end;
}

/* --- products and sums of rows, of what is elementwise of products --- */

enum { ATT_MAX_EXITS = 16 /* of a region: attention with its gradients has seven */ };

/* Everything that is elementwise of a product, and of others that it meets there, and what leads out of it. Of the
 * maxima and sums that an attention's kernel makes by the way the calls are elements of that kernel's. */
typedef struct att_region {
  uint32_t n, n_exits;
  ir_op *all[ATT_MAX_OPS];
  fusion_attention exits[ATT_MAX_EXITS];
  ir_op *calls[ATT_MAX_EXITS];
} att_region;

static bool att_add(att_region *r, ir_op *op) {
  if (att_lists(r->n, r->all, op)) return true;
  if (r->n < ATT_MAX_OPS) r->all[r->n++] = op;
  return r->all[r->n - 1] == op;
}

static bool att_grow(att_region *r, int64_t count) {
  for (uint32_t i = 0; i < r->n; i++) {
    ir_op *op = r->all[i];
    for (uint32_t j = 0; j < op->n_operands && op->opcode != IR_OP_DOT; j++) {
      uint32_t left = ATT_MAX_OPS;
      ir_op *dot = att_find_scores(ir_operand(op, j), count, &left);
      if (dot && !att_add(r, dot)) return false;
    }
    IR_FOR_USES(use, op)
    if (att_follows(use->user, count) && !att_add(r, use->user)) return false;
  }
  return true;
}

int64_t fusion_row_length(const ir_op *op) {
  double init = 1;
  const ir_op *combiner = fusion_reduction(op);
  if (!combiner || (combiner->opcode != IR_OP_ADD && combiner->opcode != IR_OP_MAXIMUM)) return 0;
  bool neutral = combiner->opcode == IR_OP_ADD ? att_number(ir_operand(op, 1), &init) && init == 0
                                               : att_is_least(ir_operand(op, 1));
  return neutral ? att_keys(op) : 0;
}

/* false: it is neither a product of `of` and something else, nor a sum of its rows. */
static bool att_add_exit(att_region *r, ir_op *op, ir_op *of) {
  for (uint32_t i = 0; i < r->n_exits; i++)
    if (r->exits[i].out == op) return true;
  if (!op->uses && !ir_is_result(op)) return true;
  bool dot = op->opcode == IR_OP_DOT && op->n_operands == 2 && att_is_float(op->type);
  if (r->n_exits == ATT_MAX_EXITS || (!dot && fusion_row_length(op) < 2)) return false;
  fusion_attention a = {.out = op, .x = of, .side = ir_operand(op, 0) != of};
  if (dot && att_lists(r->n, r->all, ir_operand(op, 1 - a.side))) return false;
  r->exits[r->n_exits++] = a;
  return true;
}

static bool att_find_exits(att_region *r) {
  for (uint32_t i = 0; i < r->n; i++) {
    ir_op *op = r->all[i];
    if (op->control_succs || op->n_control_preds || ir_is_result(op)) return false;
    IR_FOR_USES(use, op)
    if (!att_lists(r->n, r->all, use->user) && !att_add_exit(r, use->user, op)) return false;
  }
  return true;
}

/* The attention that makes a row's maximum or sum by the way; NULL: none does. */
static const fusion_attention *att_maker(const att_region *r, const ir_op *rows) {
  for (uint32_t i = 0; i < r->n_exits; i++)
    if (r->exits[i].most == rows || r->exits[i].sum == rows) return &r->exits[i];
  return NULL;
}

/* Which products are attention, that makes the maxima and sums of its rows. Without sums of rows it is not what this is
 * for: a product of a product would be no better for it. */
static bool att_choose(att_region *r) {
  bool sums = false;
  for (uint32_t i = 0; i < r->n_exits; i++) {
    fusion_attention a;
    sums = sums || r->exits[i].out->opcode == IR_OP_REDUCE;
    if (fusion_attention_of(r->exits[i].out, &a)) r->exits[i] = a;
  }
  return sums;
}

/* --- a computation of its own --- */

/* How an op is made: it lies in memory, follows from nothing, spreads what lies in memory, follows from the scores.
 * All but the first are computed inside. */
enum { ATT_UNSEEN, ATT_OTHER, ATT_BARE, ATT_WIDE, ATT_PATH, ATT_READ = 8 /* besides: by something inside */ };

typedef struct att_run {
  const fusion_attention *a;
  const att_region *region; /* others read what lies between, too; NULL: nobody does */
  uint8_t *marks;           /* by op id */
  base_map map;             /* op -> its copy, or the parameter that stands for it */
  uint32_t n, n_inputs;
  ir_op *ops[ATT_MAX_OPS], *inputs[ATT_MAX_OPS]; /* inside, each behind its operands; what they read */
  bool failed;                                   /* there are too many */
} att_run;

static uint8_t att_mark(att_run *x, ir_op *op);

static bool att_is_product(const att_run *x, const ir_op *op) {
  return op == x->a->scores || (x->region && op->opcode == IR_OP_DOT && att_lists(x->region->n, x->region->all, op));
}

static uint8_t att_made(att_run *x, ir_op *op) {
  uint8_t most = ATT_BARE;
  bool other = false;
  if (att_is_product(x, op)) return ATT_PATH;
  if (op != x->a->sum && op != x->a->most && !att_is_inside(op)) return ATT_OTHER;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint8_t of = att_mark(x, ir_operand(op, i));
    other = other || of == ATT_OTHER;
    most = of > most ? of : most;
  }
  if (most >= ATT_WIDE || !other) return most;
  return op->opcode == IR_OP_BROADCAST && op->type->count > ir_operand_type(op, 0)->count ? ATT_WIDE : ATT_OTHER;
}

/* The number of ops bounds the depth. */
static uint8_t att_mark(att_run *x, ir_op *op) {
  uint8_t *mark = &x->marks[op->id];
  if (*mark != ATT_UNSEEN || x->failed) return *mark;
  *mark = att_made(x, op);
  x->failed = x->failed || x->n == ATT_MAX_OPS;
  if (*mark != ATT_OTHER && !x->failed) x->ops[x->n++] = op;
  return *mark;
}

/* Whether nobody else needs what follows from the scores. */
static bool att_is_alone(const att_run *x, const ir_op *op) {
  if (x->marks[op->id] != ATT_PATH) return true;
  if (op->control_succs || op->n_control_preds || ir_is_result(op)) return false;
  IR_FOR_USES(use, op)
  if (use->user != x->a->out && x->marks[use->user->id] != ATT_PATH) return false;
  return true;
}

/* What only ops outside read is computed there. */
static void att_drop_unread(att_run *x) {
  uint32_t first = x->n; /* of those that stay, which go to the end */
  assert(x->n > 0 && x->ops[x->n - 1] == x->a->out);
  for (uint32_t i = x->n; i-- > 0;) {
    ir_op *op = x->ops[i];
    if (op != x->a->out && x->marks[op->id] < ATT_READ) continue;
    for (uint32_t j = 0; j < op->n_operands; j++) x->marks[ir_operand(op, j)->id] |= ATT_READ;
    x->ops[--first] = op;
  }
  x->n -= first;
  memmove(x->ops, x->ops + first, x->n * sizeof *x->ops);
}

static bool att_find(att_run *x) {
  ir_op *out = x->a->out;
  bool whole = out == x->a->x || out->opcode == IR_OP_REDUCE;
  for (uint32_t i = 0; i < out->n_operands; i++)
    if (whole || i == x->a->side) (void)att_mark(x, ir_operand(out, i));
  if (x->failed || x->n + 1 >= ATT_MAX_OPS || x->a->out->n_control_preds || x->a->out->control_succs) return false;
  for (uint32_t i = 0; i < x->n && !x->region; i++)
    if (!att_is_alone(x, x->ops[i])) return false;
  x->ops[x->n++] = x->a->out;
  att_drop_unread(x);
  return true;
}

/* Parameters for what op reads from outside. false when out of memory, or where there are too many. */
static bool att_add_inputs(att_run *x, ir_computation *c, const ir_op *op) {
  uint64_t known = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_op *from = ir_operand(op, i);
    if (base_map_get(&x->map, base_key(from), &known)) continue;
    const base_istr *name = ir_fresh_name(c->module, "parameter");
    ir_op *p = name && x->n_inputs < ATT_MAX_OPS ? ir_op_new(c, IR_OP_PARAMETER, from->type, name, 0, 0) : NULL;
    if (!p || !ir_set_parameter(p, x->n_inputs) || !base_map_set(&x->map, base_key(from), base_key(p))) return false;
    x->inputs[x->n_inputs++] = from;
  }
  return true;
}

/* The result, and its rows' maxima and sums. */
static ir_op *att_with_rows(att_run *x, ir_computation *c) {
  ir_op *const parts[] = {x->a->out, x->a->most, x->a->sum};
  const ir_type *types[] = {parts[0]->type, parts[1]->type, parts[2]->type};
  const ir_type *type = ir_tuple(c->module, 3, types);
  const base_istr *name = ir_fresh_name(c->module, "tuple");
  ir_op *tuple = type && name ? ir_op_new(c, IR_OP_TUPLE, type, name, 3, 0) : NULL;
  for (uint32_t i = 0; i < 3 && tuple; i++) ir_set_operand(tuple, i, (ir_value){base_map_ptr(&x->map, parts[i]), 0});
  return tuple;
}

static bool att_copy(att_run *x, ir_computation *c) {
  ir_op *copy = NULL;
  for (uint32_t i = 0; i < x->n; i++) {
    copy = att_add_inputs(x, c, x->ops[i]) ? ir_op_clone(x->ops[i], c, &x->map) : NULL;
    if (!copy || !base_map_set(&x->map, base_key(x->ops[i]), base_key(copy))) return false;
  }
  if (x->region && x->a->sum) copy = att_with_rows(x, c);
  return copy && ir_set_root(c, copy);
}

static const char *att_name(const fusion_attention *a) {
  return a->out == a->x ? "product" : a->sum ? "attention" : "recomputed";
}

static ir_op *att_call(const att_run *x, ir_computation *c) {
  ir_op *out = x->a->out;
  const ir_attr *metadata = ir_attr_find(out, IR_ATTR_METADATA);
  const base_istr *name = ir_fresh_name(c->module, att_name(x->a));
  ir_op *call = name ? ir_op_new(out->parent, IR_OP_FUSION, ir_root(c)->type, name, x->n_inputs, 1) : NULL;
  if (!call || !ir_set_word(call, IR_ATTR_KIND, IR_FUSION_CUSTOM) || (metadata && !ir_attr_set(call, *metadata)))
    return NULL;
  for (uint32_t i = 0; i < x->n_inputs; i++) ir_set_operand(call, i, (ir_value){x->inputs[i], 0});
  ir_set_called(call, 0, c);
  ir_op_move(call, out);
  return call;
}

static int att_make(att_run *x, ir_module *m, ir_op **call, xlac_error *err) {
  const base_istr *name = ir_fresh_name(m, att_name(x->a));
  ir_computation *c = name ? ir_computation_new(m, name->s, name->n) : NULL;
  if (c && att_copy(x, c) && (*call = att_call(x, c))) return 0;
  return base_oom(err, "a computation for a product");
}

/* *call: NULL where it is none. */
static int att_make_one(ir_module *m, const fusion_attention *a, const att_region *region, ir_op **call,
                        xlac_error *err) {
  base_arena scratch;
  int status = 0;
  *call = NULL;
  base_arena_init(&scratch, m->alloc);
  att_run *x = base_arena_zalloc(&scratch, sizeof *x);
  if (x) *x = (att_run){.a = a, .region = region, .marks = base_arena_zalloc(&scratch, (size_t)m->n_ids + 1)};
  if (!x || !x->marks) {
    status = base_oom(err, "a computation for a product");
  } else if (att_find(x)) {
    base_map_init(&x->map, m->alloc);
    status = att_make(x, m, call, err);
    base_map_free(&x->map);
  }
  base_arena_free(&scratch);
  return status;
}

static void att_drop(ir_op *call) {
  ir_computation *c = call->called[0];
  ir_op_remove(call);
  ir_computation_remove(c);
}

static int att_outline_one(ir_module *m, const fusion_attention *a, fusion_wants_fn *wants, void *ctx, bool *changed,
                           xlac_error *err) {
  ir_op *call = NULL;
  TRY(att_make_one(m, a, NULL, &call, err));
  if (!call) return 0;
  *changed = true;
  if (wants(ctx, call)) return ir_replace_uses(a->out, call) ? 0 : base_oom(err, "a computation for a product");
  att_drop(call);
  return 0;
}

int fusion_outline_attention(ir_module *m, ir_op *out, fusion_wants_fn *wants, void *ctx, bool *changed,
                             xlac_error *err) {
  fusion_attention a;
  return fusion_attention_of(out, &a) ? att_outline_one(m, &a, wants, ctx, changed, err) : 0;
}

int fusion_outline_product(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                           xlac_error *err) {
  fusion_attention a;
  ir_op *end = ir_is_tensor(dot->type) ? att_end_of(dot) : NULL;
  return end && fusion_product_of(end, &a) && a.scores == dot ? att_outline_one(m, &a, wants, ctx, changed, err) : 0;
}

/* --- all that leads out of a region --- */

static bool att_replace(ir_op *op, ir_op *call, uint32_t element) {
  if (!ir_is_tuple(call->type)) return ir_replace_uses(op, call);
  const base_istr *name = ir_fresh_name(call->parent->module, "get-tuple-element");
  ir_op *part = name ? ir_op_new(call->parent, IR_OP_GET_TUPLE_ELEMENT, op->type, name, 1, 0) : NULL;
  if (!part || !ir_set_int(part, IR_ATTR_INDEX, element)) return false;
  ir_set_operand(part, 0, (ir_value){call, 0});
  return ir_replace_uses(op, part);
}

static bool att_replace_all(const att_region *r) {
  bool ok = true;
  for (uint32_t i = 0; i < r->n_exits && ok; i++) {
    const fusion_attention *a = &r->exits[i];
    if (!r->calls[i]) continue;
    ok = att_replace(a->out, r->calls[i], 0);
    if (ok && a->sum) ok = att_replace(a->most, r->calls[i], 1) && att_replace(a->sum, r->calls[i], 2);
  }
  return ok;
}

/* All of them, or none: else the scores would be in memory and computed anew as well. */
static int att_outline_exits(att_region *r, ir_module *m, fusion_wants_fn *wants, void *ctx, bool *changed,
                             xlac_error *err) {
  bool all = true;
  for (uint32_t i = 0; i < r->n_exits && all; i++) {
    if (att_maker(r, r->exits[i].out)) continue;
    TRY(att_make_one(m, &r->exits[i], r, &r->calls[i], err));
    all = r->calls[i] && wants(ctx, r->calls[i]);
    *changed = true;
  }
  if (all && !att_replace_all(r)) return base_oom(err, "a computation for a product");
  for (uint32_t i = 0; i < r->n_exits && !all; i++)
    if (r->calls[i]) att_drop(r->calls[i]);
  return 0;
}

int fusion_outline_recomputed(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                              xlac_error *err) {
  if (!att_is_float(dot->type)) return 0;
  att_region *r = base_malloc(m->alloc, sizeof *r);
  if (!r) return base_oom(err, "a computation for a product");
  memset(r, 0, sizeof *r);
  bool is_one = att_add(r, dot) && att_grow(r, dot->type->count) && att_find_exits(r) && att_choose(r);
  int status = is_one ? att_outline_exits(r, m, wants, ctx, changed, err) : 0;
  base_free(m->alloc, r);
  return status;
}

int fusion_sort_computation(ir_computation *c, xlac_error *err) {
  base_arena scratch;
  uint32_t n = 0;
  base_arena_init(&scratch, c->module->alloc);
  ir_op **order = ir_post_order(c, &scratch, &n);
  for (uint32_t i = 0; order && i < n; i++) ir_op_move(order[i], NULL);
  base_arena_free(&scratch);
  return order ? 0 : base_oom(err, "an order of ops");
}
