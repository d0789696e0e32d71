/* The driver: a list of ops to look at, filled in text order, until nothing changes; once for each strategy, level
 * and user priority. Each look either changes a sharding, which only ever gets more axes, or leaves all as it is, so
 * that every run ends. As MLIR's greedy rewrite driver, in which Shardy's propagation runs, it also removes ops that
 * nobody needs: that they are gone changes who reads a value, and with that which ops pass shardings on at level 0. */
#include "../common/common.h"
#include "propagate.h"

/* --- what can't be propagated through --- */

/* Shardy's own conditions and words (it checks them at the beginning of every propagation pass). */
static int drive_check_type(const ir_op *op, const ir_type *t, xlac_error *err) {
  const char *name = ir_opcode_info(op->opcode)->mlir ? ir_opcode_info(op->opcode)->mlir->name : "";
  if (t->kind == IR_TYPE_TUPLE)
    return base_fail_at(err, XLAC_E_VERIFY_SHARDING, op->line, op->col, name,
                        "Shardy propagation doesn't support tuples");
  if (t->kind != IR_TYPE_UNRANKED && !(t->kind == IR_TYPE_TENSOR && t->has_dynamic)) return 0;
  return base_fail_at(err, XLAC_E_VERIFY_SHARDING, op->line, op->col, name,
                      "Shardy propagation only supports ranked tensors with a static shape");
}

/* An edge's input is a result of an op with data flow, or an argument of a named or manual computation. */
static int drive_check_edge(const ir_op *op, xlac_error *err) {
  const ir_op *input = op->operands[0].op, *owner = input->parent->owner;
  bool argument = input->opcode == IR_OP_PARAMETER && owner &&
                  (owner->opcode == IR_OP_SDY_NAMED_COMPUTATION || owner->opcode == IR_OP_SDY_MANUAL_COMPUTATION);
  if (argument || shard_is_flow(input)) return 0;
  return base_hint(
      err,
      base_fail_at(err, XLAC_E_VERIFY_SHARDING, op->line, op->col, "sdy.data_flow_edge",
                   "the edge's input owns no data flow: expected a result of a while, case, barrier, named "
                   "or manual computation, or an argument of one of the latter two"),
      "leave edges to sdy-add-data-flow-edges");
}

/* Before anything is changed; parameters have been checked with their function. */
static int drive_check(const ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_PARAMETER) continue;
      if (op->opcode == IR_OP_SDY_DATA_FLOW_EDGE) TRY(drive_check_edge(op, err));
      for (uint32_t i = 0; i < op->n_results; i++) TRY(drive_check_type(op, op->types[i], err));
    }
  }
  return 0;
}

/* The only function, or the one called main.
 * Whose results are the program's. Where Shardy aborts ("Failed to lookup function: main"), this is an error. */
static int drive_main(const ir_module *m, ir_computation **main, xlac_error *err) {
  uint32_t n = 0;
  *main = NULL;
  const ir_computation *second = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    if (n++ == 0 || strcmp(c->name->s, "main") == 0) *main = c;
    if (n > 1) second = second ? second : c;
  }
  if (n == 1 || (n > 1 && strcmp((*main)->name->s, "main") == 0)) return 0;
  if (n == 0)
    return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, m->first && m->first->line ? m->first->line : 1, 1, "",
                        "there is no function to propagate shardings through");
  return base_hint(err,
                   base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, second->line, second->col, "func.func",
                                "of several functions none is called main: can't tell whose results are the program's"),
                   "call it main, or propagate through modules of one function");
}

/* --- the list --- */

static void drive_fill(shard_driver *d, ir_computation *c);
/* Ops before their regions' ops, in text order; an op is on the list at most once, so the list never outgrows n_ids. */
static void drive_fill_op(shard_driver *d, ir_op *op) {
  assert(d->n_pending < d->pending_cap);
  d->marks[op->id] = 1;
  d->pending[d->n_pending++] = op;
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) drive_fill(d, op->called[i]);
}
/* Regions nest no deeper than the reader allows. */
static void drive_fill(shard_driver *d, ir_computation *c) {
  IR_FOR_OPS(op, c)
  if (op->id < d->state.n_ids) drive_fill_op(d, op);
}

/* The list is a stack: reversed, its first op comes off first. */
static void drive_seed(shard_driver *d) {
  d->n_pending = 0;
  IR_FOR_COMPUTATIONS(c, d->state.m) {
    if (c->kind == IR_FUNCTION) drive_fill(d, c);
  }
  for (uint32_t i = 0, j = d->n_pending; i + 1 < j; i++) { /* the first comes off the end */
    ir_op *op = d->pending[--j];
    d->pending[j] = d->pending[i];
    d->pending[i] = op;
  }
}

/* --- ops that nobody needs go, as in every pass of that driver --- */

static bool drive_is_gone(const shard_driver *d, const ir_op *op) {
  return op->id < d->state.n_ids && d->gone[op->id];
}

/* Who reads a value still: up to two readers besides `dead` are told apart.
 * Readers that are gone no longer count; `dead` is the op that is about to go. */
static uint32_t drive_readers(const shard_driver *d, uint32_t slot, const ir_op *dead) {
  const shard_state *s = &d->state;
  const ir_op *other = NULL;
  uint32_t n = 0;
  for (uint32_t i = s->return_first[slot]; i < s->return_first[slot + 1] && n < 2; i++)
    n += !(s->returns[i].c->owner && drive_is_gone(d, s->returns[i].c->owner));
  for (uint32_t i = s->use_first[slot]; i < s->use_first[slot + 1] && n < 2; i++) {
    const ir_op *user = s->uses[i]->user;
    if (s->uses[i]->op != s->slots[slot].op || user == dead || user == other || drive_is_gone(d, user)) continue;
    other = user;
    n++;
  }
  return n;
}

/* The first user is nearly always there, which is cheaper to see than to count readers. */
static bool drive_unused(const shard_driver *d, const ir_op *op) {
  if (op->uses && !drive_is_gone(d, op->uses->user)) return false; /* nearly always */
  for (uint32_t r = 0; r < op->n_results; r++)
    if (drive_readers(d, shard_slot_of(&d->state, op, r), NULL)) return false;
  return true;
}

/* isOpTriviallyDead: no readers and no effects. What the dialect keeps for its own sake stays: constraints, groups,
 * edges, collectives. */
static bool drive_dead(const shard_driver *d, const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_SDY_MESH:
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_SHARDING_GROUP:
    case IR_OP_SDY_DATA_FLOW_EDGE:
    case IR_OP_SDY_FUNC_DATA_FLOW_EDGE:
      return false;
    default:
      return !sdy_is_collective(op) && drive_unused(d, op) && opt_is_pure(op);
  }
}

/* The op that makes an operand of a dead op is looked at again if at most one other op reads it.
 * An operand's maker may be dead now; MLIR's driver adds it if it has no use left but possibly one. */
static void drive_push_maker(shard_driver *d, const ir_op *dead, ir_op *maker, uint32_t index) {
  if (maker->opcode == IR_OP_PARAMETER || drive_is_gone(d, maker)) return;
  if (drive_readers(d, shard_slot_of(&d->state, maker, index), dead) < 2) shard_push(d, maker);
}

/* An op goes with its regions: the last of them first, and in each the last op first. */
static void drive_forget(shard_driver *d, ir_op *op) {
  assert(op->id < d->state.n_ids && !d->gone[op->id]);
  for (uint32_t i = op->n_called; i-- > 0;) {
    ir_computation *c = op->called[i];
    if (c->owner != op) continue;
    for (uint32_t r = 0; r < c->n_results; r++) drive_push_maker(d, NULL, c->results[r].op, c->results[r].index);
    for (ir_op *inner = c->last; inner; inner = inner->prev)
      if (inner->id < d->state.n_ids) drive_forget(d, inner);
  }
  for (uint32_t i = 0; i < op->n_operands; i++) {
    shard_gone_use gone = {&op->operands[i], op->operands[i].op};
    if (d->trace && !BASE_VEC_PUSH(d->trace->alloc, &d->trace->gone, gone)) d->trace->failed = true;
    drive_push_maker(d, op, op->operands[i].op, op->operands[i].index);
  }
  d->gone[op->id] = 1;
}

/* Worklists and slots forget the op first. */
static void drive_erase(shard_driver *d, ir_op *op) {
  drive_forget(d, op);
  opt_erase(&d->rw, op);
  if (d->rw.failed) shard_driver_fail(d, base_oom(d->err, "propagation"));
}

/* So that a replay knows at which priority, level and strategy a look was made. */
static void drive_note_phase(shard_driver *d) {
  shard_trace *t = d->trace;
  shard_phase phase = {d->user_priority, d->level, d->strategy, t->looks.n};
  if (!BASE_VEC_PUSH(t->alloc, &t->phases, phase)) t->failed = true;
}

/* One fixed point. Results of the main function are looked at before and after, not between, as in Shardy. */
static void drive_run(shard_driver *d) {
  if (d->trace) drive_note_phase(d);
  shard_visit_results(d, d->main);
  drive_seed(d);
  while (d->n_pending && d->status == 0) {
    ir_op *op = d->pending[--d->n_pending];
    d->marks[op->id] = 0;
    if (d->gone[op->id]) continue;
    if (drive_dead(d, op))
      drive_erase(d, op);
    else
      shard_visit(d, op);
  }
  shard_visit_results(d, d->main);
}

/* --- schedules --- */

/* basic-then-aggressive runs both to their end at every level. */
static void drive_strategies(shard_driver *d) {
  if (d->options.strategy != SHARD_AGGRESSIVE) {
    d->strategy = SHARD_BASIC;
    drive_run(d);
  }
  if (d->options.strategy != SHARD_BASIC && d->status == 0) {
    d->strategy = SHARD_AGGRESSIVE;
    drive_run(d);
  }
}

/* Without op priorities there is one level, the last, at which everything is allowed. */
static void drive_levels(shard_driver *d) {
  for (d->level = d->options.by_op ? 0 : SHARD_LEVELS - 1; d->level < SHARD_LEVELS && d->status == 0; d->level++)
    drive_strategies(d);
}

/* --- before and after --- */

/* Tables are by op id, one more than there are ids so that an empty module's are not empty. */
static int drive_begin(shard_driver *d, ir_module *m, const shard_options *options, xlac_error *err) {
  d->options = *options;
  d->err = err;
  TRY(shard_groups_join(m, err));
  TRY(shard_state_make(&d->state, m, err));
  base_arena *a = &d->state.arena;
  size_t n = (size_t)d->state.n_ids + 1;
  base_arena_foresee(&d->maker.arena, 1); /* a chunk that stays, for one rule at a time */
  base_map_init(&d->kept_rules, m->alloc);
  base_map_init(&d->rule_attrs, m->alloc);
  d->pending = BASE_ARRAY(a, ir_op *, n);
  d->marks = base_arena_zalloc(a, n);
  d->gone = base_arena_zalloc(a, n);
  d->rules = base_arena_zalloc(a, n * sizeof *d->rules);
  d->has_rule = base_arena_zalloc(a, n);
  d->seen = base_arena_zalloc(a, n * sizeof *d->seen);
  d->seen_how = base_arena_zalloc(a, n * sizeof *d->seen_how);
  d->pending_cap = (uint32_t)n;
  bool ok = d->pending && d->marks && d->gone && d->rules && d->has_rule && d->seen && d->seen_how;
  return ok ? 0 : base_oom(err, "propagation");
}

/* debug-sharding-origins and debug-propagation-edge-sharding: notes become attributes. */
static int drive_notes(shard_driver *d, xlac_error *err) {
  if (!d->trace) return 0;
  if (d->trace->failed) return base_oom(err, "propagation's notes");
  if (d->options.debug_origins) TRY(shard_trace_write_origins(d->trace, &d->state, err));
  if (d->options.debug_edges) TRY(shard_trace_write_edges(d->trace, &d->state, d->main, err));
  return 0;
}

/* Levels run inside user priorities, as in Shardy: all op priorities and strategies for priority 0, then for 1.
 * Stored once, in the end. */
static int drive_schedule(shard_driver *d, ir_module *m, bool told, xlac_error *err) {
  if (d->trace) {
    /* Changes are logged from here on: a replay starts from the shardings that the module has now. */
    d->state.logs = true;
    d->trace->with_origins = d->options.debug_origins;
    d->trace->step = d->options.debug_edges ? shard_trace_first_step(m) : 0;
    shard_trace_begin(d->trace, &d->state);
  }
  if (d->options.by_user)
    shard_by_user_priority(d, drive_levels);
  else
    drive_levels(d);
  if (d->trace && (told || d->options.debug_edges || d->options.debug_origins) && d->status == 0) shard_replay(d);
  TRY(d->status);
  TRY(shard_state_store(&d->state, err));
  TRY(shard_store_rules(d, err));
  return drive_notes(d, err);
}

/* Attributes with notes need a trace; explain brings its own (shard_propagate_traced). */
int shard_propagate(ir_module *m, const shard_options *options, xlac_error *err) {
  shard_trace trace;
  bool notes = options->debug_origins || options->debug_edges;
  if (notes) shard_trace_init(&trace, m->alloc);
  int status = shard_propagate_traced(m, options, notes ? &trace : NULL, NULL, NULL, err);
  if (notes) shard_trace_free(&trace);
  return status == 0 ? shc_verify_fitting(m, err) : status;
}

/* `done` is called before the table is freed and after the module was changed. */
int shard_propagate_traced(ir_module *m, const shard_options *options, shard_trace *trace, shard_done_fn *done,
                           void *ctx, xlac_error *err) {
  shard_driver d;
  memset(&d, 0, sizeof d);
  d.trace = trace;
  TRY(drive_check(m, err));
  TRY(drive_main(m, &d.main, err));
  TRY(opt_rewriter_init(&d.rw, m, err));
  shard_maker_init(&d.maker, m, options->conservative);
  shard_pool_init(&d.pool, m->alloc);
  int status = drive_begin(&d, m, options, err);
  if (status == 0) status = drive_schedule(&d, m, done != NULL, err);
  if (status == 0 && done) status = done(ctx, trace, &d.state, d.main, err);
  base_map_free(&d.kept_rules);
  base_map_free(&d.rule_attrs);
  if (d.state.m) shard_state_free(&d.state);
  shard_pool_free(&d.pool);
  shard_maker_free(&d.maker);
  opt_rewriter_free(&d.rw);
  return status;
}

/* Who must be looked at again when a sharding changes. The order in which ops come on the list decides who wins where
 * shardings are in conflict, so all of this is as in Shardy's driver: a list that gives back what came last, an op with
 * all the ops it lies in, readers before makers. */

/* A bound on recursion: MLIR's verifier allows recursive functions, which would never end here. */
enum { NOTIFY_MAX_CALLS = 256 };

/* The first error stays. */
void shard_driver_fail(shard_driver *d, int status) {
  if (d->status == 0) d->status = status;
}

/* `marks` keeps an op from waiting twice. */
static void notify_push_one(shard_driver *d, ir_op *op) {
  if (d->marks[op->id]) return;
  if (d->n_pending == d->pending_cap) {
    shard_driver_fail(d, base_oom(d->err, "propagation"));
    return;
  }
  d->marks[op->id] = 1;
  d->pending[d->n_pending++] = op;
}

/* With the op all ops that it lies in: they may own edges that its value flows through. */
void shard_push(shard_driver *d, ir_op *op) {
  while (op && op->id < d->state.n_ids) {
    notify_push_one(d, op);
    op = op->parent->owner;
  }
}

/* The op at work is not put on the list again for its own changes: its strategy has seen them. */
static void notify_op(shard_driver *d, ir_op *op) {
  if (op != d->current) shard_push(d, op);
}

static void notify_readers(shard_driver *d, uint32_t slot);

/* The edge of which operand `n` of op (or what its region gives back as number n) is a source. */
static ir_op *notify_edge(const shard_driver *d, const ir_op *op, uint32_t n, bool given_back) {
  assert(op->opcode < IR_OP_COUNT);
  if (!shard_is_flow(op) || n >= op->n_results) return NULL;
  bool computation = op->opcode == IR_OP_SDY_NAMED_COMPUTATION || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  if (computation && !given_back) return NULL; /* Shardy looks for the edge on the operand itself, where it never is */
  return shard_edge_of(&d->state, shard_slot_of(&d->state, op, n));
}

/* A function's result goes on to the results of all its calls. */
static void notify_returned(shard_driver *d, const shard_return *r) {
  ir_computation *c = r->c;
  if (c->owner) {
    ir_op *edge = notify_edge(d, c->owner, r->index, true);
    notify_op(d, edge ? edge : c->owner);
    return;
  }
  const shard_callers *callers = &d->state.callers[c->id];
  for (uint32_t i = 0; i < callers->n; i++)
    if (r->index < callers->calls[i]->n_results)
      notify_readers(d, shard_slot_of(&d->state, callers->calls[i], r->index));
}

/* An operand of a call goes on as the callee's argument. */
static void notify_use(shard_driver *d, const ir_use *use) {
  ir_op *user = use->user, *edge = notify_edge(d, user, use->slot, false);
  if (edge) {
    notify_op(d, edge);
  } else if (user->opcode == IR_OP_CALL) {
    const ir_computation *callee = shard_callee(&d->state, user);
    if (callee && use->slot < callee->n_params)
      notify_readers(d, shard_slot_of(&d->state, callee->params[use->slot], 0));
  } else {
    notify_op(d, user);
  }
}

/* Calls nest no deeper than there are functions, unless they are recursive. */
static void notify_readers(shard_driver *d, uint32_t slot) {
  const shard_state *s = &d->state;
  if (d->depth >= NOTIFY_MAX_CALLS) {
    const ir_op *op = s->slots[slot].op;
    const uint32_t line = op->line ? op->line : op->parent->line, col = op->line ? op->col : op->parent->col;
    shard_driver_fail(d, base_fail_at(d->err, XLAC_E_TOO_DEEP, line, col, op->name->s,
                                      "calls are nested more than %d deep, or recursive", NOTIFY_MAX_CALLS));
    return;
  }
  d->depth++;
  for (uint32_t i = s->return_first[slot]; i < s->return_first[slot + 1]; i++) notify_returned(d, &s->returns[i]);
  for (uint32_t i = s->use_first[slot]; i < s->use_first[slot + 1]; i++)
    if (s->uses[i]->op == s->slots[slot].op) notify_use(d, s->uses[i]);
  d->depth--;
}

/* Shardy's order: other targets of the edge first, then the maker of the value, then its readers. */
void shard_notify(shard_driver *d, uint32_t slot) {
  shard_state *s = &d->state;
  ir_op *op = s->slots[slot].op;
  assert(op != NULL);
  if (op->opcode == IR_OP_SDY_DATA_FLOW_EDGE) {
    const ir_use *input = &op->operands[0];
    if (input->op->opcode == IR_OP_WHILE) {
      for (uint32_t r = 0; r < input->op->n_called; r++) {
        const ir_computation *c = input->op->called[r];
        if (input->index < c->n_params) notify_readers(d, shard_slot_of(s, c->params[input->index], 0));
      }
    }
  }
  if (op->opcode != IR_OP_PARAMETER)
    notify_op(d, op);
  else if (op->parent->owner)
    notify_op(d, op->parent->owner);
  notify_readers(d, slot);
}
