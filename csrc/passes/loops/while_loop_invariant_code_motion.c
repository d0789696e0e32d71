/* while-loop-invariant-code-motion: what a loop's body computes anew at every trip, from values that never change, is
 * computed once before the loop and carried round; so are the products of all rows that the body takes one by one.
 * Requires: nothing; sees loops whose state is a tuple that is read by element, and starts from a tuple op. Leaves what
 * is cheap (broadcasts, iotas, constants) and what has more elements than all it is made of. Preserves: side effects,
 * random ops, collectives and custom calls, control edges, the schedule. */
#include "../pass.h"
#include "while_products.h"

/*    before: body: x, y = elements 1, 2; e = exponential(x); z = add(y, e); root (h, x, z)
 *    after:  body: x, y, e = elements 1, 2, 3; z = add(y, e); root (h, x, z, e)
 *            and exponential(a) of the first x before the loop, as the first value of element 3 */
enum { MOTION_MAX = 64 /* values that one loop carries for this */ };

/* Arrays by op id are of the module as it is before the loop at hand is changed. */
typedef struct motion_run {
  hlo_maker x;
  opt_facts facts;
  const uint32_t *callers;
  base_arena scratch;  /* of one loop */
  uint8_t *fixed;      /* by op id: never changes */
  uint8_t *moves;      /* by op id: is computed before the loop */
  uint8_t *needed;     /* by op id: what moves needs it there */
  uint32_t n_products; /* of all rows, which must move */
  const ir_op *products[WHILE_PRODUCTS];
  bool failed;
} motion_run;

/* What has no facts at all may run once, earlier, or in vain: a loop that never turns. */
static bool motion_may_copy(const motion_run *r, const ir_op *op) {
  if (op->n_results != 1 || !ir_is_tensor(op->type) || op->type->has_dynamic || opt_in_edge(&r->facts, op))
    return false;
  return opt_op_facts(&r->facts, op) == 0 && op->opcode != IR_OP_PARAMETER;
}

/* Elements that the body passes through, and what is computed from fixed values. */
static bool motion_is_fixed(const motion_run *r, const while_state *w, const ir_op *op) {
  int64_t element = while_element_of(op, w->inside);
  if (element >= 0)
    return while_is_invariant(w, (uint32_t)element) && ir_is_tensor(op->type) && !opt_in_edge(&r->facts, op);
  if (!motion_may_copy(r, op)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!r->fixed[ir_operand(op, i)->id]) return false;
  return true;
}

/* A broadcast has the bytes of what it spreads. */
static int64_t motion_bytes(const ir_op *op) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  return ir_is_tensor(op->type) ? ir_type_bytes(op->type) : 0;
}

/* What is cheap to make costs more to carry than to make again; what grows would take memory all through the loop. */
static bool motion_is_worth(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_CONSTANT:
    case IR_OP_BROADCAST:
    case IR_OP_IOTA:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_RESHAPE:
    case IR_OP_BITCAST:
      return false;
    default:
      break;
  }
  int64_t made_of = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) made_of += motion_bytes(ir_operand(op, i));
  return ir_type_bytes(op->type) <= made_of;
}

static bool motion_is_product(const motion_run *r, const ir_op *op) {
  for (uint32_t i = 0; i < r->n_products; i++)
    if (r->products[i] == op) return true;
  return false;
}

/* Some user of op stays in the loop. */
static bool motion_is_carried(const motion_run *r, const ir_op *op) {
  IR_FOR_USES(use, op) {
    if (!r->moves[use->user->id]) return true;
  }
  return false;
}

/* From users to operands; an element's operand is the state itself. */
static void motion_mark_needed(motion_run *r, ir_op *const *order, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    if (!r->needed[order[i]->id]) continue;
    for (uint32_t k = 0; k < order[i]->n_operands; k++)
      if (order[i]->opcode != IR_OP_GET_TUPLE_ELEMENT) r->needed[ir_operand(order[i], k)->id] = 1;
  }
}

/* By op id, of the body as it is now. */
static bool motion_find_fixed(motion_run *r, const while_state *w, ir_op *const *order, uint32_t n) {
  size_t ids = (size_t)r->x.m->n_ids + 1;
  r->fixed = base_arena_zalloc(&r->scratch, ids);
  r->moves = base_arena_zalloc(&r->scratch, ids);
  r->needed = base_arena_zalloc(&r->scratch, ids);
  if (!order || !r->fixed || !r->moves || !r->needed) return false;
  for (uint32_t i = 0; i < n; i++) r->fixed[order[i]->id] = motion_is_fixed(r, w, order[i]);
  return true;
}

/* What moves, carried values into `carried`, products first: there is room for all of those.
 * In two steps, since an op moves for its users' sake only if all that it needs moves too. */
static uint32_t motion_choose(motion_run *r, ir_op *const *order, uint32_t n, ir_op **carried) {
  assert((int)WHILE_PRODUCTS <= (int)MOTION_MAX);
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    r->moves[order[i]->id] = r->fixed[order[i]->id] && (motion_is_worth(order[i]) || motion_is_product(r, order[i]));
  for (int product = 1; product >= 0; product--)
    for (uint32_t i = 0; i < n && count < MOTION_MAX; i++) {
      if (!r->moves[order[i]->id] || motion_is_product(r, order[i]) != product) continue;
      if (!motion_is_carried(r, order[i])) continue;
      r->needed[order[i]->id] = 1;
      carried[count++] = order[i];
    }
  if (count) motion_mark_needed(r, order, n);
  return count;
}

/* Copies of what is needed go before the loop; map: from the body's ops to what stands for them there.
 * The loop's own ops stay where they are until their users read the carried value. */
static bool motion_copy(motion_run *r, const while_state *w, ir_op *const *order, uint32_t n, base_map *map) {
  for (uint32_t i = 0; i < n; i++) {
    ir_op *op = order[i];
    if (!r->needed[op->id]) continue;
    int64_t element = while_element_of(op, w->inside);
    ir_op *copy = element >= 0 ? ir_operand(w->init, (uint32_t)element) : ir_op_clone(op, w->loop->parent, map);
    if (!copy || !base_map_set(map, base_key(op), base_key(copy))) return false;
    if (element < 0) ir_op_move(copy, w->loop);
  }
  return true;
}

/* New elements come last, so old indices stay. They are read first of all: in a schedule the root may stand before what
 * it does not need, and it needs them. */
static bool motion_carry(motion_run *r, while_state *w, const base_map *map, ir_op *const *carried, uint32_t n) {
  assert(n > 0 && n <= MOTION_MAX);
  uint32_t old = w->n, all = old + n;
  ir_op **first = BASE_ARRAY(&r->scratch, ir_op *, (size_t)all + 1),
        **next = BASE_ARRAY(&r->scratch, ir_op *, (size_t)all + 1);
  uint32_t *moved = BASE_ARRAY(&r->scratch, uint32_t, (size_t)old + 1);
  if (!first || !next || !moved) return false;
  for (uint32_t i = 0; i < old; i++) {
    first[i] = ir_operand(w->init, i);
    next[i] = ir_operand(w->root, i);
    moved[i] = i;
  }
  for (uint32_t i = 0; i < n; i++) {
    uint64_t copy = 0;
    if (!base_map_get(map, base_key(carried[i]), &copy)) return false;
    first[old + i] = (ir_op *)(uintptr_t)copy;
    next[old + i] = carried[i];
  }
  if (!while_set_state(w, &r->x, all, first, next, moved)) return false;
  for (uint32_t i = 0; i < n; i++) {
    r->x.before = w->inside->next;
    ir_op *element = hlo_element(&r->x, w->inside, old + i);
    if (!element || !ir_replace_uses(carried[i], element)) return false;
    ir_op_remove(carried[i]);
  }
  return true;
}

/* Post-order: operands are judged before users. */
static bool motion_in(motion_run *r, while_state *w) {
  uint32_t n = 0;
  ir_op **order = ir_post_order(w->root->parent, &r->scratch, &n), *carried[MOTION_MAX];
  base_map map;
  r->n_products = 0;
  if (!motion_find_fixed(r, w, order, n)) return false;
  r->n_products = while_batch_products(w, &r->x, &r->facts, r->fixed, order, n, r->products);
  if (r->x.failed) return false;
  if (r->n_products) {
    order = ir_post_order(w->root->parent, &r->scratch, &n);
    if (!motion_find_fixed(r, w, order, n)) return false;
  }
  uint32_t count = motion_choose(r, order, n, carried);
  if (!count) return true;
  base_map_init(&map, r->x.m->alloc);
  bool ok = motion_copy(r, w, order, n, &map) && motion_carry(r, w, &map, carried, count);
  base_map_free(&map);
  return ok;
}

/* Inner loops first: what leaves one may leave the outer one as well. */
int opt_while_loop_invariant_code_motion(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  motion_run r = {.x = {.m = m}};
  TRY(opt_facts_make(&r.facts, m, err));
  uint32_t n = 0;
  ir_op **loops = while_list(m, &r.facts, &n);
  r.callers = while_count_callers(m, &r.facts.arena);
  r.failed = !loops || !r.callers;
  for (uint32_t i = 0; i < n && !r.failed; i++) {
    while_state w;
    if (!while_open(&w, loops[i], &r.facts, r.callers) || !w.init || opt_in_edge(&r.facts, w.init)) continue;
    base_arena_init(&r.scratch, m->alloc);
    r.failed = !motion_in(&r, &w);
    base_arena_free(&r.scratch);
  }
  opt_facts_free(&r.facts);
  return r.failed || r.x.failed ? base_oom(err, "while-loop-invariant-code-motion") : 0;
}
