/* while-loop-simplifier: loops that are known to turn never are their first state, those that turn once a call of their
 * body (which inline-calls takes apart), those that turn `unroll` times or fewer, on large arrays and with little but
 * arithmetic in their bodies, as many calls: what they compute is then one kernel; constants that a loop carries round
 * go into its body; elements that pass through unchanged are read where they come from; elements that nothing needs go.
 * Requires: nothing; sees loops whose state is a tuple that is read by element. Preserves: side effects, control edges,
 * shardings (loops with any of these stay as they are). */
#include "../pass.h"
#include "while_state.h"

/* A counter that starts at 2 with the condition "less than 3" turns once:
 *    u = (s32[], f32[4]) tuple(2, a);  w = while(u), condition=c, body=b   ->   w = call(u), to_apply=b */
enum {
  UNROLL_OPS = 800,    /* of all turns together */
  UNROLL_ELEMENTS = 17 /* of an array that is computed: smaller ones stay in registers (cpu/loop) */
};
typedef struct simpler_loop {
  hlo_maker x;
  opt_facts facts;
  const uint32_t *callers;
  int unroll;
  bool failed;
} simpler_loop;

/* A constant, or the broadcast of a scalar one. */
static bool loop_is_constant(const ir_op *op) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  return op->opcode == IR_OP_CONSTANT && ir_is_tensor(op->type) && op->n_control_preds == 0;
}

/* Constants can't be shared between computations, so readers inside get their own, next to them. */
static ir_op *loop_copy_constant(simpler_loop *s, ir_op *constant, ir_op *before) {
  assert(loop_is_constant(constant));
  base_map map;
  base_map_init(&map, s->x.m->alloc);
  bool broadcast = constant->opcode == IR_OP_BROADCAST, ok = true;
  if (broadcast) {
    ir_op *inner = ir_op_clone(ir_operand(constant, 0), before->parent, &map);
    ok = inner && base_map_set(&map, base_key(ir_operand(constant, 0)), base_key(inner));
    if (ok) ir_op_move(inner, before);
  }
  ir_op *copy = ok ? ir_op_clone(constant, before->parent, &map) : NULL;
  if (copy) ir_op_move(copy, before);
  base_map_free(&map);
  s->failed = s->failed || !copy;
  return copy;
}

/* Readers of element i of `tuple` read a copy of the constant; the body's root goes on passing the element. */
static bool loop_put_constant(simpler_loop *s, const while_state *w, ir_op *tuple, uint32_t i, ir_op *constant) {
  bool changed = false;
  for (ir_use *use = tuple->uses; use && !s->failed; use = use->next) {
    ir_op *reader = use->user;
    if (while_element_of(reader, tuple) != i || opt_in_edge(&s->facts, reader)) continue;
    bool passes = ir_operand(w->root, i) == reader;
    if (reader->type != constant->type || (!reader->uses && !ir_is_result(reader))) continue;
    if (passes && ir_use_count(reader) == 1) continue;
    ir_op *copy = loop_copy_constant(s, constant, reader);
    if (!copy || !ir_replace_uses(reader, copy)) return s->failed = true, false;
    if (passes) ir_set_operand(w->root, i, (ir_value){reader, 0});
    changed = true;
  }
  return changed;
}

/* After the loop an element that passed through is what it was before. */
static bool loop_read_before(simpler_loop *s, const while_state *w, uint32_t i) {
  bool changed = false;
  for (ir_use *use = w->loop->uses, *next = NULL; use && !s->failed; use = next) {
    ir_op *reader = use->user, *was = ir_operand(w->init, i);
    next = use->next;
    if (while_element_of(reader, w->loop) != i || opt_in_edge(&s->facts, reader) || reader->type != was->type) continue;
    if (!reader->uses && !ir_is_result(reader)) continue;
    if (!ir_replace_uses(reader, was)) s->failed = true;
    changed = true;
  }
  return changed;
}

/* --- elements that nothing needs --- */

/* Marks from what is read after the loop and what the condition reads, back through the body. */
typedef struct simpler_need {
  uint8_t *elements, *seen; /* by index; by op id */
  ir_op **pending;
  uint32_t n;
} simpler_need;

static void loop_need_op(simpler_need *need, ir_op *op) {
  if (need->seen[op->id]) return;
  need->seen[op->id] = 1;
  need->pending[need->n++] = op;
}

/* Its next value is needed too. */
static void loop_need_element(simpler_need *need, const while_state *w, uint32_t i) {
  if (need->elements[i]) return;
  need->elements[i] = 1;
  loop_need_op(need, ir_operand(w->root, i));
}

/* Until nothing new is needed. */
static void loop_follow(simpler_need *need, const while_state *w) {
  while (need->n) {
    const ir_op *op = need->pending[--need->n];
    int64_t element = while_element_of(op, w->inside);
    if (element >= 0) loop_need_element(need, w, (uint32_t)element);
    for (uint32_t i = 0; i < op->n_operands; i++) loop_need_op(need, ir_operand(op, i));
    IR_FOR_CONTROL_PREDS(e, op) loop_need_op(need, e->pred);
  }
}

/* An element read outside and not used there any more does not count. */
static void loop_need_read(simpler_need *need, const while_state *w, const ir_op *tuple) {
  IR_FOR_USES(use, tuple) {
    if (use->user->uses || ir_is_result(use->user))
      loop_need_element(need, w, (uint32_t)while_element_of(use->user, tuple));
  }
}

/* Effects in the body happen whether or not anything reads their results. */
static void loop_find_needed(simpler_loop *s, simpler_need *need, const while_state *w) {
  loop_need_read(need, w, w->loop);
  loop_need_read(need, w, w->condition);
  IR_FOR_OPS(op, w->root->parent) {
    if ((opt_op_facts(&s->facts, op) & OPT_EFFECT) || opt_in_edge(&s->facts, op)) loop_need_op(need, op);
  }
  loop_follow(need, w);
}

/* Control edges hold on to the readers of elements, which dropping would remove. */
static bool loop_readers_are_free(const simpler_loop *s, const ir_op *tuple) {
  IR_FOR_USES(use, tuple) {
    if (opt_in_edge(&s->facts, use->user)) return false;
  }
  return true;
}

/* Ops of the body that fed an element nobody needs would keep reading it. */
static void loop_cut_body(const while_state *w, const simpler_need *need, base_arena *scratch, bool *ok) {
  uint32_t n = 0;
  ir_op **order = ir_post_order(w->root->parent, scratch, &n);
  *ok = order != NULL;
  for (uint32_t i = n; order && i-- > 0;) {
    ir_op *op = order[i];
    if (op != w->root && op != w->inside && !need->seen[op->id] && !op->uses && !ir_is_result(op)) ir_op_remove(op);
  }
}

/* The state with only the needed elements, in their order. */
static bool loop_drop(simpler_loop *s, while_state *w, const simpler_need *need, base_arena *scratch) {
  uint32_t n = 0, *moved = BASE_ARRAY(scratch, uint32_t, (size_t)w->n + 1);
  ir_op **first = BASE_ARRAY(scratch, ir_op *, (size_t)w->n + 1),
        **next = BASE_ARRAY(scratch, ir_op *, (size_t)w->n + 1);
  if (!moved || !first || !next) return false;
  for (uint32_t i = 0; i < w->n; i++) {
    moved[i] = need->elements[i] ? n : UINT32_MAX;
    if (!need->elements[i]) continue;
    first[n] = ir_operand(w->init, i);
    next[n++] = ir_operand(w->root, i);
  }
  bool ok = true;
  ir_op *old = w->root;
  /* The old root holds the dead values' last uses: they are cut once it reads something that stays. */
  for (uint32_t i = 0; i < w->n; i++)
    if (!need->elements[i]) ir_set_operand(old, i, (ir_value){w->inside, 0});
  loop_cut_body(w, need, scratch, &ok);
  return ok && while_set_state(w, &s->x, n, first, next, moved);
}

/* One element at least stays: a loop on an empty tuple would have no state to test. */
static void loop_drop_unneeded(simpler_loop *s, while_state *w) {
  base_arena scratch;
  base_arena_init(&scratch, s->x.m->alloc);
  simpler_need need = {.elements = base_arena_zalloc(&scratch, (size_t)w->n + 1),
                       .seen = base_arena_zalloc(&scratch, (size_t)s->x.m->n_ids + 1),
                       .pending = BASE_ARRAY(&scratch, ir_op *, (size_t)s->x.m->n_ids + 1)};
  bool free_to = loop_readers_are_free(s, w->loop) && loop_readers_are_free(s, w->inside) &&
                 loop_readers_are_free(s, w->condition);
  s->failed = s->failed || !need.elements || !need.seen || !need.pending;
  if (!s->failed && free_to) {
    uint32_t kept = 0;
    loop_find_needed(s, &need, w);
    for (uint32_t i = 0; i < w->n; i++) kept += need.elements[i];
    if (kept && kept < w->n) s->failed = !loop_drop(s, w, &need, &scratch);
  }
  base_arena_free(&scratch);
}

/* A call, since inlining is another pass's work. */
static ir_op *loop_call_body(simpler_loop *s, ir_op *loop, ir_op *state) {
  const base_istr *name = ir_fresh_name(s->x.m, "call");
  ir_op *call = name ? ir_op_new(loop->parent, IR_OP_CALL, loop->type, name, 1, 1) : NULL;
  const ir_attr *metadata = ir_attr_find(loop, IR_ATTR_METADATA);
  s->failed = s->failed || !call;
  if (!call) return NULL;
  ir_set_called(call, 0, loop->called[1]);
  ir_set_operand(call, 0, (ir_value){state, 0});
  ir_op_move(call, loop);
  s->failed = s->failed || (metadata && !ir_attr_set(call, *metadata));
  return call;
}

/* What becomes a part of a kernel, or of its indexes. */
static bool loop_is_arithmetic(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_CONSTANT:
    case IR_OP_IOTA:
    case IR_OP_BROADCAST:
    case IR_OP_RESHAPE:
    case IR_OP_SLICE:
    case IR_OP_BITCAST_CONVERT:
      return true;
    default:
      return ir_opcode_has(op->opcode, IR_ELEMENTWISE) && op->n_called == 0;
  }
}

/* Whether memory is what so many turns would cost most of: arithmetic on arrays that are written and read at each. */
static bool loop_may_unroll(const ir_op *loop, int trips) {
  const ir_computation *body = loop->called[1];
  int64_t most = 0;
  if ((int64_t)body->n_ops * trips > UNROLL_OPS) return false;
  IR_FOR_OPS(op, body) {
    if (!loop_is_arithmetic(op)) return false;
    bool computes = ir_is_tensor(op->type) && ir_opcode_has(op->opcode, IR_ELEMENTWISE);
    if (computes && op->type->count > most) most = op->type->count;
  }
  return most >= UNROLL_ELEMENTS;
}

/* Whether the loop is gone. */
static bool loop_take_apart(simpler_loop *s, ir_op *loop) {
  ir_op *first = ir_operand(loop, 0);
  if (opt_in_edge(&s->facts, loop) || ir_attr_find(loop, IR_ATTR_SHARDING) || first->type != loop->type) return false;
  if (ir_root(loop->called[1])->type != loop->type || loop->called[1]->params[0]->type != loop->type) return false;
  int trips = while_known_trips(loop, &s->facts, s->unroll);
  if (trips < 0 || (trips > 1 && !loop_may_unroll(loop, trips))) return false;
  ir_op *instead = first;
  for (int i = 0; i < trips && instead; i++) instead = loop_call_body(s, loop, instead);
  if (!instead || !ir_replace_uses(loop, instead)) return s->failed = true;
  ir_op_remove(loop);
  return true;
}

/* First what makes elements unneeded, then dropping them. In a schedule calls stand where their loop stood, and all
 * other new ops right before what reads them. */
static void loop_simplify(simpler_loop *s, ir_op *op) {
  while_state w;
  if (loop_take_apart(s, op)) return;
  if (!while_open(&w, op, &s->facts, s->callers) || !w.init || opt_in_edge(&s->facts, w.init)) return;
  for (uint32_t i = 0; i < w.n && !s->failed; i++) {
    if (!while_is_invariant(&w, i)) continue;
    ir_op *was = ir_operand(w.init, i);
    loop_read_before(s, &w, i);
    if (!loop_is_constant(was)) continue;
    loop_put_constant(s, &w, w.inside, i, was);
    loop_put_constant(s, &w, w.condition, i, was);
  }
  if (!s->failed) loop_drop_unneeded(s, &w);
}

/* A loop that has been taken apart is gone from the module, but its list was made before: each is looked at once. */
int opt_while_loop_simplifier(ir_module *m, const opt_args *args, xlac_error *err) {
  simpler_loop s = {.x = {.m = m}, .unroll = (int)opt_get(args, "unroll")};
  TRY(opt_facts_make(&s.facts, m, err));
  uint32_t n = 0;
  ir_op **loops = while_list(m, &s.facts, &n);
  s.callers = while_count_callers(m, &s.facts.arena);
  s.failed = !s.callers || !loops;
  for (uint32_t i = 0; i < n && !s.failed; i++) loop_simplify(&s, loops[i]);
  opt_facts_free(&s.facts);
  return s.failed || s.x.failed ? base_oom(err, "while-loop-simplifier") : 0;
}
