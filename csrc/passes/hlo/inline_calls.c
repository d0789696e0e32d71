/* inline-calls: calls become the ops of what they call, with fresh names.
 *
 * From the callers down: a computation that stays takes in the bodies of what it calls, then what those call, until no
 * call is left; what only calls reached goes as it was. So each op is copied once for each place it ends up at, and the
 * work is that of writing the result, whose size is known before anything is done.
 * Requires: nothing. Preserves: metadata (ops without a place in a source file get that of the call), control edges,
 * the schedule, async chains (a wrapped computation stays as it is). Computations that nobody calls any more go. */
#include "../../base/plural.h"
#include "../effects.h"
#include "../pass.h"

/*    f { p = f32[2] parameter(0); ROOT n = f32[2] negate(p) }      ENTRY e { a = f32[2] parameter(0)
 *    ENTRY e { a = f32[2] parameter(0)                        ->     n.1 = f32[2] negate(a)
 *      b = f32[2] call(a), to_apply=f                                ROOT n.2 = f32[2] negate(n.1) }
 *      ROOT c = f32[2] call(b), to_apply=f } */
BASE_VEC(inline_calls, ir_op *);

typedef struct inline_run {
  ir_module *m;
  base_arena arena;
  base_map map;       /* callee's op or computation -> its copy or the argument */
  inline_calls calls; /* of the present computation, the next one last */
  int64_t *sizes;     /* by computation id: ops it comes to have */
  uint8_t *wrapped;   /* by computation id: by an async start */
  bool fusions;
  int64_t max_ops;
  xlac_error *err;
} inline_run;

static int inline_oom(const inline_run *r) {
  return base_oom(r->err, "inline-calls");
}

/* Computations wrapped by async starts may hold a call, but nothing in its place.
 * Execution threads are said by computation, so a call of one on another thread stays. */
static bool inline_wants(const inline_run *r, const ir_op *op) {
  if (op->opcode != IR_OP_CALL && !(r->fusions && op->opcode == IR_OP_FUSION)) return false;
  return op->n_called == 1 && op->called[0]->execution_thread == op->parent->execution_thread &&
         !r->wrapped[op->parent->id];
}

/* A copy of c, which an async start wraps: such a computation may not have two callers. It holds parameters and a root.
 */
static ir_computation *inline_copy_wrapped(inline_run *r, const ir_computation *c) {
  const base_istr *name = ir_fresh_name(r->m, c->name->s);
  ir_computation *copy = name ? ir_computation_new(r->m, name->s, name->n) : NULL;
  if (!copy) return NULL;
  ir_set_execution_thread(copy, c->execution_thread);
  copy->frontend_attributes = c->frontend_attributes;
  copy->hidden = c->hidden;
  copy->line = c->line, copy->col = c->col;
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &r->arena, &n), *root = NULL;
  if (!order) return NULL;
  for (uint32_t i = 0; i < n; i++) {
    ir_op *op = ir_op_clone(order[i], copy, &r->map);
    if (!op || !base_map_set(&r->map, base_key(order[i]), base_key(op))) return NULL;
    if (order[i] == ir_root(c)) root = op;
  }
  return ir_set_root(copy, root) ? copy : NULL;
}

/* The copy's callees: the same ones, but for wrapped computations. */
static bool inline_prepare_callees(inline_run *r, const ir_op *op) {
  if (op->opcode != IR_OP_ASYNC_START || op->n_called == 0) return true;
  ir_computation *copy = inline_copy_wrapped(r, op->called[0]);
  return copy && base_map_set(&r->map, base_key(op->called[0]), base_key(copy));
}

/* What a library's functions are made of often has no place in the user's source: the call has. */
static bool inline_source(const inline_run *r, const ir_op *call, ir_op *copy) {
  const ir_metadata *at = ir_get_metadata(call), *own = ir_get_metadata(copy);
  if (!at || !at->source_file || (own && own->source_file)) return true;
  ir_metadata *m = base_arena_zalloc(&r->m->arena, sizeof *m);
  if (!m) return false;
  if (own) *m = *own;
  m->source_file = at->source_file;
  m->source_line = at->source_line, m->source_end_line = at->source_end_line;
  m->source_column = at->source_column, m->source_end_column = at->source_end_column;
  ir_attr placed = ir_attr_make(IR_ATTR_METADATA);
  placed.v.metadata = m;
  return ir_attr_set(copy, placed);
}

/* update and done may repeat the chain's computation; it is in the map already, as their start came first. */
static ir_op *inline_op(inline_run *r, const ir_op *op, ir_op *call) {
  if (!inline_prepare_callees(r, op)) return NULL;
  ir_op *copy = ir_op_clone(op, call->parent, &r->map);
  if (!copy || !base_map_set(&r->map, base_key(op), base_key(copy))) return NULL;
  ir_op_move(copy, call);
  return inline_source(r, call, copy) ? copy : NULL;
}

/* What the call waited for, ops without operands of their own come to wait for; others follow those. */
static bool inline_starts(const ir_op *call, const ir_op *op, ir_op *copy) {
  if (call->n_control_preds == 0 || op->n_control_preds) return true;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand(op, i)->opcode != IR_OP_PARAMETER) return true;
  IR_FOR_CONTROL_PREDS(e, call)
  if (!ir_add_control_pred(copy, e->pred)) return false;
  return true;
}

/* Ops that waited for the call wait for the callee's last ops: the root and those that nobody in the callee uses. */
static bool inline_ends(const ir_op *call, ir_op **copies, uint32_t n) {
  for (const ir_control *e = call->control_succs; e; e = e->next_succ)
    for (uint32_t i = 0; i < n; i++)
      if (!copies[i]->uses && !ir_add_control_pred(e->succ, copies[i])) return false;
  return true;
}

/* Calls among the ops come next, the first one first. */
static bool inline_push(inline_run *r, ir_op *const *ops, uint32_t n) {
  for (uint32_t i = n; i-- > 0;)
    if (inline_wants(r, ops[i]) && !BASE_VEC_PUSH(r->m->alloc, &r->calls, ops[i])) return false;
  return true;
}

/* Parameters stand for the call's operands; `result` is what stands for the call. */
static int inline_body(inline_run *r, ir_op *call, ir_op **order, uint32_t n, ir_op **result) {
  assert(call->n_called == 1 && call->n_operands == call->called[0]->n_params);
  const ir_computation *callee = call->called[0];
  ir_op **copies = BASE_ARRAY(&r->arena, ir_op *, (size_t)n + 1);
  uint32_t n_copies = 0;
  if (!copies) return inline_oom(r);
  /* Clearing takes as long as the map is large: one that served a large body is not cleared for each small one. */
  if (r->map.cap / 16 > n) base_map_free(&r->map);
  base_map_clear(&r->map);
  for (uint32_t i = 0; i < n; i++) {
    ir_op *copy;
    if (order[i]->opcode == IR_OP_PARAMETER) {
      copy = ir_operand(call, (uint32_t)order[i]->u.number);
      if (!base_map_set(&r->map, base_key(order[i]), base_key(copy))) return inline_oom(r);
    } else {
      if (!(copy = inline_op(r, order[i], call)) || !inline_starts(call, order[i], copy)) return inline_oom(r);
      copies[n_copies++] = copy;
    }
    if (order[i] == ir_root(callee)) *result = copy;
  }
  if (!inline_ends(call, copies, n_copies)) return inline_oom(r);
  return inline_push(r, copies, n_copies) ? 0 : inline_oom(r);
}

/* The call's own control edges have been handed on by inline_starts and inline_ends. */
static int inline_call(inline_run *r, ir_op *call) {
  uint32_t n = 0;
  ir_op **order = opt_op_order(call->called[0], &r->arena, &n), *result = NULL;
  if (!order) return inline_oom(r);
  TRY(inline_body(r, call, order, n, &result));
  assert(result);
  ir_drop_control_preds(call);
  if (!ir_replace_uses(call, result)) return inline_oom(r);
  ir_op_remove(call);
  return 0;
}

/* A stack: the calls in a body just taken in come before those that follow it, as in the text. */
static int inline_computation(inline_run *r, ir_computation *c) {
  r->calls.n = 0;
  for (ir_op *op = c->last; op; op = op->prev)
    if (inline_wants(r, op) && !BASE_VEC_PUSH(r->m->alloc, &r->calls, op)) return inline_oom(r);
  while (r->calls.n) {
    base_arena_mark here = base_arena_here(&r->arena);
    TRY(inline_call(r, r->calls.items[--r->calls.n]));
    base_arena_back(&r->arena, here);
  }
  return 0;
}

/* --- what there is to do, and how much it comes to --- */

/* What stays, by computation id: the entry, what it never reached (`before`), and what is called otherwise. */
static uint8_t *inline_staying(inline_run *r, const uint8_t *before) {
  uint8_t *stays = base_arena_zalloc(&r->arena, (size_t)r->m->n_computation_ids + 1);
  if (!stays) return NULL;
  IR_FOR_COMPUTATIONS(c, r->m) {
    if (c == r->m->entry || !before[c->id]) stays[c->id] = 1;
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called && !inline_wants(r, op); i++) stays[op->called[i]->id] = 1;
    }
  }
  return stays;
}

/* Ops that c comes to have, and those of wrapped computations that are copied along; INT64_MAX where it is more.
 * Callees' sizes are known. */
static int64_t inline_size(const inline_run *r, const ir_computation *c) {
  int64_t n = 0;
  IR_FOR_OPS(op, c) {
    int64_t more = 1;
    if (inline_wants(r, op)) more = r->sizes[op->called[0]->id] - op->called[0]->n_params;
    if (op->opcode == IR_OP_ASYNC_START && op->n_called) more += op->called[0]->n_ops;
    if (!base_add_i64(n, more, &n)) return INT64_MAX;
  }
  return n;
}

/* The largest callee is named, since it is the one to look at. */
static int inline_too_large(const inline_run *r, const ir_computation *c) {
  const ir_op *call = NULL;
  IR_FOR_OPS(op, c) {
    if (inline_wants(r, op) && (!call || r->sizes[op->called[0]->id] > r->sizes[call->called[0]->id])) call = op;
  }
  assert(call);
  int status = base_fail_at(r->err, XLAC_E_TOO_LARGE, call->line, call->col, call->name->s,
                            "inlining %s would make the module larger than %lld op%s", call->called[0]->name->s,
                            (long long)r->max_ops, base_plural((uint64_t)r->max_ops));
  return base_hint(r->err, status, "raise the option max-ops of inline-calls");
}

/* Fails, with nothing done, where the computations that stay would come to have too many ops. One without calls has as
 * many as it has. */
static int inline_measure(inline_run *r, ir_computation **order, uint32_t n, const uint8_t *stays) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t size = r->sizes[order[i]->id] = inline_size(r, order[i]);
    if (!stays[order[i]->id]) continue;
    if ((!base_add_i64(sum, size, &sum) || sum > r->max_ops) && size > order[i]->n_ops)
      return inline_too_large(r, order[i]);
  }
  return 0;
}

/* Removes what the entry reached before and nobody reaches now. What it never reached stays, with all that it calls. */
static int inline_sweep(inline_run *r, const uint8_t *before, uint32_t n_before) {
  uint8_t *now = opt_reachable(r->m, before, n_before, &r->arena);
  if (!now) return inline_oom(r);
  for (ir_computation *c = r->m->first, *next; c; c = next) {
    next = c->next;
    if (!now[c->id]) ir_computation_remove(c);
  }
  return 0;
}

/* Sizes are needed for callees before callers; bodies go in in the same order, and callees that stay are complete by
 * then. */
static int inline_all(inline_run *r) {
  uint32_t n = 0, n_before = r->m->n_computation_ids;
  ir_computation **order = ir_computation_order(r->m, &r->arena, &n);
  uint8_t *before = opt_reachable(r->m, NULL, 0, &r->arena), *stays = NULL;
  r->sizes = BASE_ARRAY(&r->arena, int64_t, (size_t)n_before + 1);
  r->wrapped = opt_called_by(r->m, &r->arena, IR_OP_ASYNC_START);
  if (!order || !before || !r->sizes || !r->wrapped || !(stays = inline_staying(r, before))) return inline_oom(r);
  TRY(inline_measure(r, order, n, stays));
  for (uint32_t i = 0; i < n; i++)
    if (stays[order[i]->id]) TRY(inline_computation(r, order[i]));
  return inline_sweep(r, before, n_before);
}

int opt_inline_calls(ir_module *m, const opt_args *args, xlac_error *err) {
  if (m->n_computations == 1) return 0;
  inline_run r = {.m = m, .fusions = opt_get(args, "fusions") != 0, .max_ops = opt_get(args, "max-ops"), .err = err};
  base_arena_init(&r.arena, m->alloc);
  base_map_init(&r.map, m->alloc);
  int status = inline_all(&r);
  BASE_VEC_FREE(m->alloc, &r.calls);
  base_map_free(&r.map);
  base_arena_free(&r.arena);
  return status;
}
