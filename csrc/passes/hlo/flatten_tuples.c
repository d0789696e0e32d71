/* flatten-tuples: takes tuples apart.
 * Requires: nothing. Afterwards no get-tuple-element reads a tuple op, and what while, conditional, call and fusion
 * take and give is an array or a flat tuple of arrays and tokens, in depth-first order. docs/design/passes.md says what
 * later passes may build on that. Preserves: the entry's parameters and result, operands of all other ops, the
 * schedule, side effects. */
#include "../effects.h"
#include "../pass.h"

/* A loop on ((f32[2], f32[]), s32[]) becomes one on (f32[2], f32[], s32[]):
 *    before: t = (f32[2], f32[]) tuple(a, z);  u = ((f32[2], f32[]), s32[]) tuple(t, i);  w = while(u)
 *    after:  u = (f32[2], f32[], s32[]) tuple(a, z, i);  w = while(u)
 *    before: s = (f32[2], f32[]) get-tuple-element(w), index=0;  x = f32[] get-tuple-element(s), index=1
 *    after:  x = f32[] get-tuple-element(w), index=1
 * Whether a computation's interface may change is asked of all its callers (flat_find_rigid), so types change on both
 * sides of a call or on neither. */
enum { FLAT_MAX_LEAVES = 1 << 20 };

/* The leaves of a tuple-typed value: ops of other types, in depth-first order; NULL until somebody asks. */
typedef struct flat_leaves {
  ir_op **items;
  uint32_t n;
} flat_leaves;

typedef struct flat_tuples {
  ir_module *m;
  opt_facts facts;
  uint32_t *set_of;    /* by computation id: computations called by one op change together (union-find) */
  uint8_t *rigid;      /* by set: its computations keep their interfaces */
  const ir_type **was; /* by op id: the type before the pass */
  flat_leaves *leaves; /* by op id, tuple-typed ones */
  ir_op **tuple_of;    /* by op id: its leaves as a flat tuple, once made */
  base_map counts;     /* type -> its number of leaves */
  bool out_of_memory;
  xlac_error *err;
} flat_tuples;

static int flat_oom(const flat_tuples *r) {
  return base_oom(r->err, "flatten-tuples");
}

/* --- which interfaces change --- */

/* Paths are halved on the way. */
static uint32_t flat_set(flat_tuples *r, uint32_t id) {
  while (r->set_of[id] != id) id = r->set_of[id] = r->set_of[r->set_of[id]];
  return id;
}

/* The lesser id stands for the set; one rigid member makes all of them rigid. */
static void flat_join(flat_tuples *r, uint32_t a, uint32_t b) {
  assert(a < r->m->n_computation_ids && b < r->m->n_computation_ids);
  a = flat_set(r, a), b = flat_set(r, b);
  r->rigid[a < b ? a : b] |= r->rigid[a < b ? b : a];
  r->set_of[a < b ? b : a] = a < b ? a : b;
}

/* A fusion's aliasing names places in its tuples, which would have to be counted anew. */
static bool flat_is_caller(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_WHILE:
    case IR_OP_CONDITIONAL:
    case IR_OP_CALL:
      return op->n_called > 0;
    case IR_OP_FUSION:
      return op->n_called == 1 && !ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
    default:
      return false;
  }
}

/* An async start wraps one op and nothing beside it, so there is no place to take that op's tuples apart. */
static void flat_keep_wrapped(flat_tuples *r, const ir_op *start) {
  IR_FOR_OPS(op, start->called[0])
  for (uint32_t i = 0; i < op->n_called; i++) r->rigid[flat_set(r, op->called[i]->id)] = 1;
}

/* Other callers (reduce, sort, custom calls) take what they want to take, in the form they want it. */
static void flat_find_rigid(flat_tuples *r) {
  for (uint32_t i = 0; i < r->m->n_computation_ids; i++) r->set_of[i] = i;
  r->rigid[r->m->entry->id] = 1;
  IR_FOR_COMPUTATIONS(c, r->m) {
    if (c->owner) r->rigid[flat_set(r, c->id)] = 1;
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_ASYNC_START && op->n_called) flat_keep_wrapped(r, op);
      for (uint32_t i = 0; i < op->n_called; i++) {
        flat_join(r, op->called[0]->id, op->called[i]->id);
        if (!flat_is_caller(op)) r->rigid[flat_set(r, op->called[i]->id)] = 1;
      }
    }
  }
}

static bool flat_changes(flat_tuples *r, const ir_computation *c) {
  return !r->rigid[flat_set(r, c->id)];
}

/* Whether op takes and gives flat tuples after the pass. */
static bool flat_op_changes(flat_tuples *r, const ir_op *op) {
  return flat_is_caller(op) && flat_changes(r, op->called[0]);
}

/* --- types --- */

/* Tuples of what are not tuples; anything else is flat, too. */
static bool flat_is_flat(const ir_type *t) {
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++)
    if (ir_is_tuple(t->elements[i])) return false;
  return true;
}

/* Depth first, which is the order of XLA's ShapeTree leaves. */
static void flat_collect(const ir_type *t, const ir_type **out, uint32_t *n) {
  if (!ir_is_tuple(t)) {
    out[(*n)++] = t;
    return;
  }
  for (uint32_t i = 0; i < t->n_elements; i++) flat_collect(t->elements[i], out, n);
}

/* Leaves of a type; empty tuples have none. A short text can nest tuples so that they double at each level, so counts
 * are kept by type and stop at FLAT_MAX_LEAVES + 1. */
static uint32_t flat_count(flat_tuples *r, const ir_type *t) {
  uint64_t n = 0;
  if (!ir_is_tuple(t)) return 1;
  if (base_map_get(&r->counts, base_key(t), &n)) return (uint32_t)n;
  for (uint32_t i = 0; i < t->n_elements; i++) n += flat_count(r, t->elements[i]);
  if (n > FLAT_MAX_LEAVES) n = FLAT_MAX_LEAVES + 1;
  r->out_of_memory = !base_map_set(&r->counts, base_key(t), n) || r->out_of_memory;
  return (uint32_t)n;
}

/* NULL when out of memory. */
static const ir_type *flat_type(flat_tuples *r, const ir_type *t) {
  if (flat_is_flat(t)) return t;
  const ir_type **leaves = BASE_ARRAY(&r->facts.arena, const ir_type *, (size_t)flat_count(r, t) + 1);
  uint32_t n = 0;
  if (!leaves) return NULL;
  flat_collect(t, leaves, &n);
  return ir_tuple(r->m, n, leaves);
}

/* New ops have the type they were made with. */
static const ir_type *flat_was(const flat_tuples *r, const ir_op *op) {
  return op->id < r->facts.n_ids && r->was[op->id] ? r->was[op->id] : op->type;
}

/* --- leaves --- */

/* before NULL: at the end of the computation. */
static ir_op *flat_new(flat_tuples *r, ir_opcode opcode, const ir_type *t, const char *stem, uint32_t n, ir_op *before,
                       ir_computation *c) {
  const base_istr *name = ir_fresh_name(r->m, stem);
  ir_op *op = name ? ir_op_new(c, opcode, t, name, n, 0) : NULL;
  if (op && before) ir_op_move(op, before);
  return op;
}

/* Right after the tuple, so that a schedule stays valid for all its readers. Shardings of tuples are split. */
static ir_op *flat_make_element(flat_tuples *r, ir_op *tuple, uint32_t index) {
  assert(ir_is_tuple(tuple->type) && index < tuple->type->n_elements);
  ir_op *op = flat_new(r, IR_OP_GET_TUPLE_ELEMENT, tuple->type->elements[index], "get-tuple-element", 1, tuple->next,
                       tuple->parent);
  if (!op || !ir_set_int(op, IR_ATTR_INDEX, index)) return NULL;
  ir_set_operand(op, 0, (ir_value){tuple, 0});
  const ir_sharding *s = ir_get_sharding(tuple);
  if (!s || s->kind != IR_SHARDING_TUPLE || !flat_is_flat(tuple->type) || s->n_elements != tuple->type->n_elements)
    return op;
  ir_attr a = ir_attr_make(IR_ATTR_SHARDING);
  a.v.sharding = s->elements[index];
  return ir_attr_set(op, a) ? op : NULL;
}

static flat_leaves *flat_leaves_of(flat_tuples *r, ir_op *op);

/* Operands that are tuples give their own leaves. */
static bool flat_leaves_of_tuple(flat_tuples *r, ir_op *op, flat_leaves *out) {
  assert(out->items != NULL);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_op *operand = ir_operand(op, i);
    if (!ir_is_tuple(flat_was(r, operand))) {
      out->items[out->n++] = operand;
      continue;
    }
    flat_leaves *inner = flat_leaves_of(r, operand);
    if (!inner) return false;
    if (inner->n) memcpy(out->items + out->n, inner->items, inner->n * sizeof *inner->items);
    out->n += inner->n;
  }
  return true;
}

/* Of an op that makes a tuple otherwise: by elements, and elements of those where it stays nested. */
static bool flat_leaves_of_producer(flat_tuples *r, ir_op *op, flat_leaves *out) {
  for (uint32_t i = 0; i < op->type->n_elements; i++) {
    if (flat_count(r, op->type->elements[i]) == 0) continue;
    ir_op *element = flat_make_element(r, op, i);
    if (!element) return false;
    if (!ir_is_tuple(element->type)) {
      out->items[out->n++] = element;
    } else if (!flat_leaves_of_producer(r, element, out)) {
      return false;
    }
  }
  return true;
}

/* The leaves of elements before it are skipped. */
static bool flat_leaves_of_element(flat_tuples *r, ir_op *op, flat_leaves *out) {
  ir_op *tuple = ir_operand(op, 0);
  const ir_type *t = flat_was(r, tuple);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  flat_leaves *all = flat_leaves_of(r, tuple);
  uint32_t skip = 0;
  if (!all) return false;
  for (int64_t i = 0; i < index; i++) skip += flat_count(r, t->elements[i]);
  out->n = flat_count(r, t->elements[index]);
  assert(skip + out->n <= all->n);
  if (out->n) memcpy(out->items, all->items + skip, out->n * sizeof *out->items);
  return true;
}

/* NULL when out of memory. Recursion goes as deep as tuples nest; chains of tuple and element ops were visited before,
 * in order, so their leaves are there. */
static flat_leaves *flat_leaves_of(flat_tuples *r, ir_op *op) {
  assert(op->id < r->facts.n_ids);
  flat_leaves *l = &r->leaves[op->id];
  if (l->items) return l;
  flat_leaves found = {BASE_ARRAY(&r->facts.arena, ir_op *, (size_t)flat_count(r, flat_was(r, op)) + 1), 0};
  if (!found.items) return NULL;
  bool ok = op->opcode == IR_OP_TUPLE               ? flat_leaves_of_tuple(r, op, &found)
            : op->opcode == IR_OP_GET_TUPLE_ELEMENT ? flat_leaves_of_element(r, op, &found)
                                                    : flat_leaves_of_producer(r, op, &found);
  if (!ok) return NULL;
  assert(found.n == flat_count(r, flat_was(r, op)));
  *l = found;
  return l;
}

/* --- putting leaves together again --- */

/* A flat tuple of op's leaves, or op itself if that is what it is. NULL when out of memory. */
static ir_op *flat_value_of(flat_tuples *r, ir_op *op, ir_op *before) {
  const ir_type *t = flat_was(r, op);
  if (!ir_is_tuple(t)) return op;
  bool forwards = op->opcode == IR_OP_GET_TUPLE_ELEMENT;
  if (!forwards && op->type == flat_type(r, t)) return op;
  if (r->tuple_of[op->id]) return r->tuple_of[op->id];
  flat_leaves *l = flat_leaves_of(r, op);
  const ir_type *flat = flat_type(r, t);
  ir_op *tuple = l && flat ? flat_new(r, IR_OP_TUPLE, flat, "tuple", l->n, before, before->parent) : NULL;
  for (uint32_t i = 0; tuple && i < l->n; i++) ir_set_operand(tuple, i, (ir_value){l->items[i], 0});
  /* Placed at its first user; another one that comes earlier can't be, as users are visited in order. */
  return r->tuple_of[op->id] = tuple;
}

/* A tuple of type t from leaves, nested as t is. */
static ir_op *flat_nest(flat_tuples *r, const ir_type *t, ir_op *const *leaves, uint32_t *at, ir_op *before) {
  if (!ir_is_tuple(t)) return leaves[(*at)++];
  ir_op **elements = BASE_ARRAY(&r->facts.arena, ir_op *, (size_t)t->n_elements + 1);
  if (!elements) return NULL;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!(elements[i] = flat_nest(r, t->elements[i], leaves, at, before))) return NULL;
  ir_op *tuple = flat_new(r, IR_OP_TUPLE, t, "tuple", t->n_elements, before, before->parent);
  for (uint32_t i = 0; tuple && i < t->n_elements; i++) ir_set_operand(tuple, i, (ir_value){elements[i], 0});
  return tuple;
}

/* Whether op still has its old value: elements of ops that make unchanged tuples do, and tuples of such. */
static bool flat_stays(const flat_tuples *r, const ir_op *op) {
  bool stays = true;
  if (op->opcode == IR_OP_TUPLE) {
    for (uint32_t i = 0; stays && i < op->n_operands; i++)
      stays = !ir_is_tuple(flat_was(r, ir_operand(op, i))) || flat_stays(r, ir_operand(op, i));
    return stays;
  }
  while (op->opcode == IR_OP_GET_TUPLE_ELEMENT) op = ir_operand(op, 0);
  return op->opcode != IR_OP_TUPLE && op->type == flat_was(r, op);
}

/* What stands for op where its old type is wanted. */
static ir_op *flat_as_was(flat_tuples *r, ir_op *op, ir_op *before) {
  const ir_type *t = flat_was(r, op);
  if (!ir_is_tuple(t) || op->id >= r->facts.n_ids || flat_stays(r, op)) return op;
  uint32_t at = 0;
  flat_leaves *l = flat_leaves_of(r, op);
  return l ? flat_nest(r, t, l->items, &at, before) : NULL;
}

/* --- visiting --- */

/* An element read from an op that makes it, at a leaf nobody asked for yet, stays and becomes that leaf. */
static bool flat_adopts(flat_tuples *r, ir_op *op) {
  ir_op *tuple = ir_operand(op, 0);
  assert(tuple->id < r->facts.n_ids);
  return tuple->opcode != IR_OP_TUPLE && tuple->opcode != IR_OP_GET_TUPLE_ELEMENT && !r->leaves[tuple->id].items;
}

/* An element that reads a leaf either becomes that leaf or is replaced by it. */
static int flat_visit_element(flat_tuples *r, ir_op *op) {
  if (ir_is_tuple(flat_was(r, op))) return flat_leaves_of(r, op) ? 0 : flat_oom(r);
  ir_op *tuple = ir_operand(op, 0);
  if (flat_adopts(r, op) && flat_was(r, tuple) == tuple->type && flat_is_flat(tuple->type)) return 0;
  const ir_type *t = flat_was(r, tuple);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  flat_leaves *l = flat_leaves_of(r, tuple);
  uint32_t at = 0;
  if (!l) return flat_oom(r);
  for (int64_t i = 0; i < index; i++) at += flat_count(r, t->elements[i]);
  assert(at < l->n && l->items[at] != op);
  ir_op *leaf = l->items[at];
  bool is_new = leaf->opcode == IR_OP_GET_TUPLE_ELEMENT && leaf->id >= r->facts.n_ids;
  if (is_new && (!leaf->uses || opt_in_edge(&r->facts, op))) { /* keeps its name and who waits for it */
    ir_set_operand(op, 0, (ir_value){ir_operand(leaf, 0), 0});
    l->items[at] = op;
    return ir_set_int(op, IR_ATTR_INDEX, ir_get_int(leaf, IR_ATTR_INDEX, 0)) ? 0 : flat_oom(r);
  }
  bool ok = opt_in_edge(&r->facts, op) ? ir_replace_uses(op, leaf) : ir_replace_uses(op, leaf);
  return ok ? 0 : flat_oom(r);
}

/* Loops, branches, calls: flat operands, flat result. */
static int flat_visit_caller(flat_tuples *r, ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_op *operand = ir_operand(op, i), *flat = flat_value_of(r, operand, op);
    if (!flat) return flat_oom(r);
    if (flat != operand) ir_set_operand(op, i, (ir_value){flat, 0});
  }
  const ir_type *t = flat_type(r, op->type);
  if (!t) return flat_oom(r);
  if (t != op->type) ir_set_type(op, t);
  return 0;
}

/* Ops that take a tuple as it was (custom calls, outfeed, roots of rigid computations) get it as it was. */
static int flat_visit_other(flat_tuples *r, ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_op *operand = ir_operand(op, i), *same;
    if (!ir_is_tuple(flat_was(r, operand))) continue;
    if (!(same = flat_as_was(r, operand, op))) return flat_oom(r);
    if (same != operand) ir_set_operand(op, i, (ir_value){same, 0});
  }
  return 0;
}

/* Async ops must read one another directly; their results are not taken apart but by elements. */
static int flat_visit(flat_tuples *r, ir_op *op) {
  switch (op->opcode) {
    case IR_OP_TUPLE:
      return flat_leaves_of(r, op) ? 0 : flat_oom(r);
    case IR_OP_GET_TUPLE_ELEMENT:
      return flat_visit_element(r, op);
    case IR_OP_PARAMETER:
      return 0;
    default:
      return flat_op_changes(r, op) ? flat_visit_caller(r, op) : flat_visit_other(r, op);
  }
}

/* `end` goes again: it only marks the place. */
static int flat_visit_root(flat_tuples *r, ir_computation *c) {
  ir_op *root = ir_root(c), *now;
  if (!ir_is_tuple(flat_was(r, root))) return 0;
  /* A place at the end for what is made: before nothing. */
  const base_istr *name = ir_fresh_name(r->m, "end");
  ir_op *end = name ? ir_op_new(c, IR_OP_AFTER_ALL, ir_token(r->m), name, 0, 0) : NULL;
  if (!end || !end->type) return flat_oom(r);
  now = flat_changes(r, c) ? flat_value_of(r, root, end) : flat_as_was(r, root, end);
  ir_op_remove(end);
  return now && ir_set_root(c, now) ? 0 : flat_oom(r);
}

/* Tuples and elements that the pass left without users. */
static void flat_sweep(flat_tuples *r, ir_op **order, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    ir_op *op = order[i];
    bool movable = op->opcode == IR_OP_TUPLE || op->opcode == IR_OP_GET_TUPLE_ELEMENT;
    if (movable && opt_is_linked(op) && !op->uses && !ir_is_result(op) && !opt_in_edge(&r->facts, op)) ir_op_remove(op);
  }
}

/* New ops nobody uses, the same way: they come after all old ones in no particular order, so until none goes. */
static void flat_sweep_new(flat_tuples *r, ir_computation *c) {
  for (bool again = true; again;) {
    again = false;
    IR_FOR_OPS_SAFE(op, c) {
      if (op->id < r->facts.n_ids || op->uses || ir_is_result(op)) continue;
      ir_op_remove(op);
      again = true;
    }
  }
}

static int flat_rewrite(flat_tuples *r, ir_computation *c) {
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &r->facts.arena, &n);
  if (!order) return flat_oom(r);
  for (uint32_t i = 0; i < n; i++) r->was[order[i]->id] = order[i]->type;
  /* Parameters before ops: readers of their elements must find the new type. */
  for (uint32_t i = 0; i < c->n_params && flat_changes(r, c); i++) {
    const ir_type *t = flat_type(r, c->params[i]->type);
    if (!t) return flat_oom(r);
    if (t != c->params[i]->type) ir_set_type(c->params[i], t);
  }
  for (uint32_t i = 0; i < n; i++) TRY(flat_visit(r, order[i]));
  TRY(flat_visit_root(r, c));
  flat_sweep(r, order, n);
  flat_sweep_new(r, c);
  flat_sweep(r, order, n);
  return 0;
}

/* Before anything is changed. */
static int flat_check_sizes(flat_tuples *r) {
  IR_FOR_COMPUTATIONS(c, r->m) {
    IR_FOR_OPS(op, c) {
      if (flat_count(r, op->type) <= FLAT_MAX_LEAVES) continue;
      return base_fail_at(r->err, XLAC_E_TOO_LARGE, op->line, op->col, op->name->s,
                          "a tuple of more than %d arrays can't be taken apart", FLAT_MAX_LEAVES);
    }
  }
  return r->out_of_memory ? flat_oom(r) : 0;
}

/* Callees first: a caller finds its callees' roots in their new form. */
static int flat_all(flat_tuples *r) {
  TRY(flat_check_sizes(r));
  base_arena *arena = &r->facts.arena;
  size_t ids = (size_t)r->facts.n_ids + 1, computations = (size_t)r->m->n_computation_ids + 1;
  r->set_of = BASE_ARRAY(arena, uint32_t, computations);
  r->rigid = base_arena_zalloc(arena, computations);
  r->was = base_arena_zalloc(arena, ids * sizeof *r->was);
  r->leaves = base_arena_zalloc(arena, ids * sizeof *r->leaves);
  r->tuple_of = base_arena_zalloc(arena, ids * sizeof *r->tuple_of);
  if (!r->set_of || !r->rigid || !r->was || !r->leaves || !r->tuple_of) return flat_oom(r);
  flat_find_rigid(r);
  for (uint32_t i = 0; i < r->facts.n_order; i++) TRY(flat_rewrite(r, r->facts.order[i]));
  return 0;
}

int opt_flatten_tuples(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  flat_tuples r = {.m = m, .err = err};
  TRY(opt_facts_make(&r.facts, m, err));
  base_map_init(&r.counts, m->alloc);
  int status = flat_all(&r);
  base_map_free(&r.counts);
  opt_facts_free(&r.facts);
  return status;
}
