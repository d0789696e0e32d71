/* Chains: what they are told by, making them of ops, and taking them apart. */
#include <stdio.h>

#include "async.h"

/* What passes on chains need: roles of computations, and lists of opcodes in options. */

int async_oom(const async_edit *e) {
  return base_oom(e->err, "a pass on async ops");
}

/* What backends do without any work at run time. */
bool async_is_free(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_BITCAST:
    case IR_OP_AFTER_ALL:
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_OPT_BARRIER:
    case IR_OP_PARTITION_ID:
    case IR_OP_REPLICA_ID:
      return true;
    default:
      return false;
  }
}

/* Whether what op calls runs op by op where op itself does.
 * Others (reductions, fusions, sorts) run what they call as part of themselves. */
static bool async_calls_sequences(const ir_op *op) {
  return op->opcode == IR_OP_WHILE || op->opcode == IR_OP_CONDITIONAL || op->opcode == IR_OP_CALL;
}

/* Callers before callees: a callee's role is known once all its callers have been looked at. */
static void async_find_roles(async_edit *e) {
  uint8_t *roles = e->roles, *inside = roles + e->n_computations;
  roles[e->m->entry->id] = ASYNC_ROLE_SEQUENCE;
  for (uint32_t i = e->facts.n_order; i-- > 0;) {
    const ir_computation *c = e->facts.order[i];
    if (inside[c->id]) roles[c->id] = ASYNC_ROLE_INSIDE; /* also called by an op that wants it whole */
    IR_FOR_OPS(op, c) {
      bool follows = ir_opcode_has(op->opcode, IR_ASYNC_UPDATE) || ir_opcode_has(op->opcode, IR_ASYNC_DONE);
      for (uint32_t k = 0; k < op->n_called && !follows; k++) {
        uint32_t id = op->called[k]->id;
        e->callers[id]++;
        if (op->opcode == IR_OP_ASYNC_START) {
          roles[id] = ASYNC_ROLE_WRAPPED;
        } else if (async_calls_sequences(op) && roles[c->id] != ASYNC_ROLE_INSIDE) {
          if (roles[id] != ASYNC_ROLE_WRAPPED) roles[id] = ASYNC_ROLE_SEQUENCE; /* one op, whoever else calls it */
        } else {
          inside[id] = 1;
        }
      }
    }
  }
}

/* `roles` has a second half, which async_find_roles uses while it looks. */
int async_edit_begin(async_edit *e, ir_module *m, xlac_error *err) {
  *e = (async_edit){.m = m, .err = err};
  TRY(opt_facts_make(&e->facts, m, err));
  e->n_computations = m->n_computation_ids;
  size_t n = (size_t)e->n_computations;
  e->roles = base_arena_zalloc(&e->facts.arena, 2 * n + 1);
  e->callers = base_arena_zalloc(&e->facts.arena, (n + 1) * sizeof *e->callers);
  if (!e->roles || !e->callers) {
    async_edit_end(e);
    return async_oom(e);
  }
  async_find_roles(e);
  return 0;
}

void async_edit_end(async_edit *e) {
  opt_facts_free(&e->facts);
}

/* Passes edit as they go: new computations are not visited, by design. */
int async_each(async_edit *e, async_visit_fn *fn, void *ctx) {
  for (uint32_t i = 0; i < e->facts.n_order; i++)
    if (e->roles[e->facts.order[i]->id] == ASYNC_ROLE_SEQUENCE) TRY(fn(e, e->facts.order[i], ctx));
  return 0;
}

/* Takes the first name off the list.
 * Blanks separate too; an empty name is the end. */
static base_slice async_list_next(base_slice *list) {
  while (list->n && (*list->p == ',' || *list->p == ' ')) list->p++, list->n--;
  base_slice name = {list->p, 0};
  while (name.n < list->n && name.p[name.n] != ',' && name.p[name.n] != ' ') name.n++;
  list->p += name.n;
  list->n -= name.n;
  return name;
}

/* Lists are a handful of names: no index is made. */
bool async_list_has(base_slice list, const char *name) {
  for (base_slice next = async_list_next(&list); next.n; next = async_list_next(&list))
    if (base_slice_is(next, name)) return true;
  return false;
}

/* Before the pass begins, so that a misspelt name costs no work. */
int async_check_opcodes(base_slice list, const char *pass, xlac_error *err) {
  for (base_slice next = async_list_next(&list); next.n; next = async_list_next(&list)) {
    if (ir_opcode_from_text(next.p, next.n) != IR_OP_INVALID) continue;
    int n = next.n < 80 ? (int)next.n : 80;
    int status = base_fail(err, XLAC_E_BAD_PIPELINE, "%s: there is no opcode \"%.*s\"", pass, n, next.p);
    return base_hint(err, status, "names are those of HLO text, with commas between: ops=dot,all-reduce");
  }
  return 0;
}

/* Making chains of ops. */

ir_opcode async_plain_of(unsigned opcode) {
  switch (opcode) {
    case IR_OP_COPY_START:
    case IR_OP_COPY_DONE:
      return IR_OP_COPY;
    case IR_OP_ALL_REDUCE_START:
    case IR_OP_ALL_REDUCE_DONE:
      return IR_OP_ALL_REDUCE;
    case IR_OP_ALL_GATHER_START:
    case IR_OP_ALL_GATHER_DONE:
      return IR_OP_ALL_GATHER;
    case IR_OP_COLLECTIVE_PERMUTE_START:
    case IR_OP_COLLECTIVE_PERMUTE_DONE:
      return IR_OP_COLLECTIVE_PERMUTE;
    default:
      return IR_OP_INVALID;
  }
}

/* Ops of a kind that has its own opcodes for this, and ops without work of their own, are none of ours. */
bool async_may_wrap(const ir_op *op) {
  const uint32_t chains = IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE;
  if (async_is_free(op) || op->opcode == IR_OP_DOMAIN) return false;
  if (ir_opcode_info(op->opcode)->traits & chains) return false;
  return ir_opcode_pair_start(op->opcode) == IR_OP_INVALID;
}

/* A copy that changes the layout is not a copy-start: its two shapes must be the same. */
bool async_may_pair(const ir_op *op) {
  if (op->opcode == IR_OP_COPY) return ir_is_tensor(op->type) && op->type == ir_operand_type(op, 0);
  return ir_opcode_pair_start(op->opcode) != IR_OP_INVALID;
}

/* op's name with a suffix. */
static const base_istr *async_suffixed(async_edit *e, const ir_op *op, const char *suffix) {
  size_t n = op->name->n + strlen(suffix) + 1;
  char *stem = base_arena_alloc(&e->facts.arena, n);
  if (!stem) return NULL;
  snprintf(stem, n, "%s%s", op->name->s, suffix);
  return ir_fresh_name(e->m, stem);
}

/* true where there is nothing to copy. */
static bool async_copy_attr(ir_op *to, const ir_op *from, ir_attr_key key) {
  const ir_attr *a = ir_attr_find(from, key);
  return !a || ir_attr_set(to, *a);
}

/* An op of a chain for `of`, before it.
 * It gets op's place in the text, so that messages name the source line. */
static ir_op *async_make_link(async_edit *e, ir_op *of, ir_opcode opcode, const ir_type *t, const char *suffix,
                              uint32_t n_operands, uint32_t n_called) {
  const base_istr *name = t ? async_suffixed(e, of, suffix) : NULL;
  ir_op *link = name ? ir_op_new(of->parent, opcode, t, name, n_operands, n_called) : NULL;
  if (!link || !async_copy_attr(link, of, IR_ATTR_METADATA)) return NULL;
  ir_op_move(link, of);
  link->line = of->line, link->col = of->col;
  return link;
}

/* A link that reads the one before it. */
static ir_op *async_make_follower(async_edit *e, ir_op *of, ir_opcode opcode, const ir_type *t, const char *suffix,
                                  ir_op *on) {
  ir_op *link = async_make_link(e, of, opcode, t, suffix, 1, 0);
  if (link) ir_set_operand(link, 0, (ir_value){on, 0});
  return link;
}

/* What waited for op waits for done, what op waited for start waits for; op goes. */
static bool async_settle(ir_op *op, ir_op *start, ir_op *done) {
  assert(start != done);
  if (!async_copy_attr(done, op, IR_ATTR_SHARDING)) return false;
  IR_FOR_CONTROL_PREDS(edge, op)
  if (!ir_add_control_pred(start, edge->pred)) return false;
  ir_drop_control_preds(op);
  if (!ir_replace_uses(op, done)) return false;
  ir_op_remove(op);
  return true;
}

/* --- generic chains --- */

/* The first element of a generic start's type. */
static const ir_type *async_tuple_of_operands(async_edit *e, const ir_op *op) {
  const ir_type **elements = BASE_ARRAY(&e->facts.arena, const ir_type *, (size_t)op->n_operands + 1);
  for (uint32_t i = 0; elements && i < op->n_operands; i++) elements[i] = ir_operand_type(op, i);
  return elements ? ir_tuple(e->m, op->n_operands, elements) : NULL;
}

/* ((operands...), outputs, u32[])
 * The u32[] is the context that backends keep their handle in. */
static const ir_type *async_generic_type(async_edit *e, const ir_op *op) {
  const ir_type *elements[3] = {async_tuple_of_operands(e, op), op->type, ir_scalar(e->m, XLAC_U32)};
  return elements[0] && elements[2] ? ir_tuple(e->m, 3, elements) : NULL;
}

/* The computation's copy, with copies of all that it calls: they are to run on a thread of their own. */
static ir_computation *async_copy_computation(async_edit *e, const ir_computation *c, const base_istr *thread,
                                              uint32_t depth);

/* A computation has one execution thread, so one that ops on two threads call must be two. */
bool async_own_callees(async_edit *e, ir_op *op, const base_istr *thread, uint32_t depth) {
  if (op->opcode == IR_OP_ASYNC_START) {
    if (ir_attr_find(op, IR_ATTR_ASYNC_THREAD)) return true; /* names a thread of its own */
    if (thread && !ir_set_str(op, IR_ATTR_ASYNC_THREAD, thread->s, thread->n)) return false;
  }
  for (uint32_t i = 0; i < op->n_called; i++) {
    ir_computation *c = op->called[i];
    if (c->execution_thread == thread) continue;
    bool shared = c->id >= e->n_computations || e->callers[c->id] > 1;
    if (shared && c->id < e->n_computations) e->callers[c->id]--;
    if (shared && !(c = async_copy_computation(e, c, thread, depth + 1))) return false;
    ir_set_called(op, i, c);
    ir_set_execution_thread(c, thread);
    if (shared) continue;
    if (depth > 600) return false; /* verified modules nest calls less deeply */
    IR_FOR_OPS(inner, c)
    if (!async_own_callees(e, inner, thread, depth + 1)) return false;
  }
  return true;
}

/* A computation belongs to one chain, so the copy of a start wraps a copy. */
static bool async_copy_wrapped_of(async_edit *e, const ir_op *start, base_map *map, const base_istr *thread,
                                  uint32_t depth) {
  if (start->opcode != IR_OP_ASYNC_START) return true;
  const ir_computation *c = start->called[0];
  if (ir_attr_find(start, IR_ATTR_ASYNC_THREAD)) thread = c->execution_thread;
  ir_computation *copy = async_copy_computation(e, c, thread, depth + 1);
  return copy && base_map_set(map, base_key(c), base_key(copy));
}

/* Depth is bounded because verified modules are: this guards the C stack against those that are not. */
static ir_computation *async_copy_computation(async_edit *e, const ir_computation *c, const base_istr *thread,
                                              uint32_t depth) {
  base_map map;
  const base_istr *name = ir_fresh_name(e->m, c->name->s);
  ir_computation *copy = name && depth <= 600 ? ir_computation_new(e->m, name->s, name->n) : NULL;
  uint32_t n = 0;
  ir_op **order = copy ? opt_op_order(c, &e->facts.arena, &n) : NULL;
  if (!order) return NULL;
  copy->frontend_attributes = c->frontend_attributes;
  copy->hidden = c->hidden;
  ir_set_execution_thread(copy, thread);
  base_map_init(&map, e->m->alloc);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) {
    if (!(ok = async_copy_wrapped_of(e, order[i], &map, thread, depth))) break;
    ir_op *op = ir_op_clone(order[i], copy, &map);
    for (uint32_t k = 0; op && k < op->n_called; k++)
      if (op->called[k]->id < e->n_computations) e->callers[op->called[k]->id]++;
    ok = op && base_map_set(&map, base_key(order[i]), base_key(op)) && async_own_callees(e, op, thread, depth);
    if (ok && order[i] == ir_root(c)) ok = ir_set_root(copy, op);
  }
  base_map_free(&map);
  return ok ? copy : NULL;
}

/* A parameter for each operand and op on them.
 * `hidden`: HLO text prints it as sugar, op-start(...), not as a computation of its own. */
static ir_computation *async_wrap_computation(async_edit *e, const ir_op *op, const base_istr *thread) {
  const base_istr *name = ir_fresh_name(e->m, "async_wrapped");
  ir_computation *c = name ? ir_computation_new(e->m, name->s, name->n) : NULL;
  ir_op **params = BASE_ARRAY(&e->facts.arena, ir_op *, (size_t)op->n_operands + 1);
  if (!c || !params) return NULL;
  c->hidden = true;
  ir_set_execution_thread(c, thread);
  c->line = op->line, c->col = op->col;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const base_istr *param = ir_fresh_name(e->m, "async_param");
    params[i] = param ? ir_op_new(c, IR_OP_PARAMETER, ir_operand_type(op, i), param, 0, 0) : NULL;
    if (!params[i] || !ir_set_parameter(params[i], i)) return NULL;
  }
  ir_op *root = ir_op_clone(op, c, NULL);
  if (!root) return NULL;
  ir_drop_control_preds(root);
  for (uint32_t i = 0; i < op->n_operands; i++) ir_set_operand(root, i, (ir_value){params[i], 0});
  ir_attr_remove(root, IR_ATTR_SHARDING); /* the done has it; sugar would move it */
  if (thread && !async_own_callees(e, root, thread, 0)) return NULL;
  return ir_set_root(c, root) ? c : NULL;
}

/* Attributes that the sugar gives to the start and the wrapped op alike. */
static bool async_copy_shared(ir_op *start, const ir_op *op) {
  return async_copy_attr(start, op, IR_ATTR_BACKEND_CONFIG) &&
         async_copy_attr(start, op, IR_ATTR_FRONTEND_ATTRIBUTES) && async_copy_attr(start, op, IR_ATTR_STATISTICS) &&
         async_copy_attr(start, op, IR_ATTR_ORIGIN);
}

/* {1}: (0, {}) */
static bool async_set_alias(async_edit *e, ir_op *start) {
  assert(start->opcode == IR_OP_ASYNC_START);
  static const int64_t outputs[1] = {1};
  ir_aliasing *v = base_arena_zalloc(&e->m->arena, sizeof *v + sizeof(ir_alias));
  const ir_ints *output = ir_ints_make(e->m, 1, outputs), *none = ir_ints_make(e->m, 0, NULL);
  if (!v || !output || !none) return false;
  v->n = 1;
  v->v[0] = (ir_alias){.output = output, .operand = 0, .index = none};
  ir_attr a = ir_attr_make(IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  a.v.aliasing = v;
  return ir_attr_set(start, a);
}

/* The thread is named on the start as well as on the computation. */
static bool async_finish_start(async_edit *e, ir_op *start, const ir_op *op, const async_how *how) {
  if (how->alias_first && op->n_operands && !async_set_alias(e, start)) return false;
  return !how->thread || ir_set_str(start, IR_ATTR_ASYNC_THREAD, how->thread->s, how->thread->n);
}

/* start, updates, done: all before op, which then goes.
 * The start's type is ((operands), outputs, u32[]), and updates have the same; the done has the op's own type. */
ir_op *async_wrap_op(async_edit *e, ir_op *op, const async_how *how) {
  const ir_type *t = async_generic_type(e, op);
  ir_computation *c = t ? async_wrap_computation(e, op, how->thread) : NULL;
  ir_op *start = c ? async_make_link(e, op, IR_OP_ASYNC_START, t, "-start", op->n_operands, 1) : NULL, *at = start;
  if (!start) return NULL;
  ir_set_called(start, 0, c);
  for (uint32_t i = 0; i < op->n_operands; i++)
    ir_set_operand(start, i, (ir_value){op->operands[i].op, op->operands[i].index});
  if (!async_copy_shared(start, op) || !async_finish_start(e, start, op, how)) return NULL;
  for (uint32_t i = 0; i < how->updates && at; i++)
    at = async_make_follower(e, op, IR_OP_ASYNC_UPDATE, t, "-update", at);
  ir_op *done = at ? async_make_follower(e, op, IR_OP_ASYNC_DONE, op->type, "-done", at) : NULL;
  return done && async_settle(op, start, done) ? done : NULL;
}

/* --- first-class pairs --- */

/* The start's type: all-reduce the result; all-gather (operand, result); copy (result, operand, u32[]); collective-
 * permute (operand, result, u32[], u32[]). */
static const ir_type *async_pair_type(async_edit *e, const ir_op *op) {
  const ir_type *word = ir_scalar(e->m, XLAC_U32), *in = op->n_operands ? ir_operand_type(op, 0) : NULL;
  if (op->opcode == IR_OP_ALL_REDUCE) return op->type;
  if (!word || !in) return NULL;
  const ir_attr *sizes = ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
  bool in_place = op->opcode == IR_OP_COLLECTIVE_PERMUTE && sizes && sizes->v.lists && sizes->v.lists->n;
  if (op->n_operands != 1 && !in_place) in = async_tuple_of_operands(e, op);
  const ir_type *elements[4] = {in, op->type, word, word};
  if (op->opcode == IR_OP_COPY) elements[0] = op->type, elements[1] = in;
  uint32_t n = op->opcode == IR_OP_COPY ? 3 : op->opcode == IR_OP_COLLECTIVE_PERMUTE ? 4 : 2;
  return in ? ir_tuple(e->m, n, elements) : NULL;
}

ir_op *async_pair_op(async_edit *e, ir_op *op) {
  ir_opcode opcode = ir_opcode_pair_start(op->opcode);
  assert(async_may_pair(op));
  assert(opcode != IR_OP_INVALID);
  ir_op *start = async_make_link(e, op, opcode, async_pair_type(e, op), "-start", op->n_operands, op->n_called);
  if (!start) return NULL;
  for (uint32_t i = 0; i < op->n_operands; i++)
    ir_set_operand(start, i, (ir_value){op->operands[i].op, op->operands[i].index});
  for (uint32_t i = 0; i < op->n_called; i++) ir_set_called(start, i, op->called[i]);
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].key != IR_ATTR_SHARDING && !ir_attr_set(start, op->attrs[i])) return NULL;
  ir_op *done = async_make_follower(e, op, (ir_opcode)ir_opcode_info(opcode)->done, op->type, "-done", start);
  if (!done || !async_copy_attr(done, op, IR_ATTR_BACKEND_CONFIG)) return NULL;
  return async_settle(op, start, done) ? done : NULL;
}

/* Taking chains apart: the ops themselves stand where the done stood. */

/* A pair's done reads its start directly. */
ir_op *async_start_of_done(const ir_op *done) {
  if (done->opcode == IR_OP_ASYNC_DONE) return ir_async_start_of(done);
  ir_op *start = done->n_operands ? ir_operand(done, 0) : NULL;
  return start && start->opcode == ir_opcode_info(done->opcode)->start ? start : NULL;
}

/* Never on itself. */
static bool async_add_preds(ir_op *to, const ir_op *from) {
  IR_FOR_CONTROL_PREDS(e, from)
  if (e->pred != to && !ir_add_control_pred(to, e->pred)) return false;
  return true;
}

/* What waited for the start or an update need not wait for the end: it waits for what the start waited for. */
static bool async_pass_edges_on(ir_op *start, ir_op *done) {
  for (ir_op *link = ir_operand(done, 0);; link = ir_operand(link, 0)) {
    while (link->control_succs) {
      ir_op *op = link->control_succs->succ;
      ir_remove_control_pred(op, link);
      if (op != start && !async_add_preds(op, start)) return false;
    }
    if (link == start) return true;
  }
}

/* The ops from `first` to the done wait for what the chain waited for.
 * What waited for the done is handled with its uses (ir_replace_uses). */
static bool async_take_edges(ir_op *first, ir_op *start, ir_op *done) {
  if (!async_pass_edges_on(start, done)) return false;
  for (ir_op *link = done;; link = ir_operand(link, 0)) {
    for (ir_op *op = link->n_control_preds ? first : NULL; op && op != done; op = op->next)
      if (!async_add_preds(op, link)) return false;
    ir_drop_control_preds(link);
    if (link == start) return true;
  }
}

/* From the done backwards, so that each link has lost its reader. */
static bool async_remove_chain(ir_op *start, ir_op *done, ir_op *result) {
  assert(start->parent == done->parent);
  if (!ir_replace_uses(done, result)) return false;
  for (ir_op *link = done, *next = NULL;; link = next) {
    next = link == start ? NULL : ir_operand(link, 0);
    ir_op_remove(link);
    if (!next) return true;
  }
}

/* Copies of the wrapped ops before the done. */
static ir_op *async_copy_wrapped(async_edit *e, const ir_op *start, ir_op *done, ir_op **first) {
  const ir_computation *c = start->called[0];
  base_map map;
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &e->facts.arena, &n), *result = NULL;
  if (!order) return NULL;
  base_map_init(&map, e->m->alloc);
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) {
    ir_op *copy = NULL;
    if (order[i]->opcode == IR_OP_PARAMETER) {
      copy = ir_operand(start, (uint32_t)order[i]->u.number);
    } else if ((copy = ir_op_clone(order[i], done->parent, &map))) {
      ir_op_move(copy, done);
      if (!*first) *first = copy;
    }
    ok = copy && base_map_set(&map, base_key(order[i]), base_key(copy));
    if (ok && order[i] == ir_root(c)) result = copy;
  }
  base_map_free(&map);
  return ok ? result : NULL;
}

/* Sharding: the done's is that of the result, unless the op has its own. */
static ir_op *async_unwrap_generic(async_edit *e, ir_op *start, ir_op *done) {
  assert(start->n_called == 1);
  ir_computation *c = start->called[0];
  ir_op *first = NULL, *result = async_copy_wrapped(e, start, done, &first);
  if (!result) return NULL;
  for (ir_op *op = first; op && op != done; op = op->next)
    if (!async_own_callees(e, op, start->parent->execution_thread, 0)) return NULL;
  const ir_attr *sharding = ir_attr_find(done, IR_ATTR_SHARDING);
  if (first && sharding && !ir_attr_find(result, IR_ATTR_SHARDING) && !ir_attr_set(result, *sharding)) return NULL;
  if (!async_take_edges(first, start, done)) return NULL;
  if (!async_remove_chain(start, done, result)) return NULL;
  bool called_elsewhere = c->id >= e->n_computations || e->callers[c->id] > 1;
  if (!called_elsewhere) ir_computation_remove(c);
  return result;
}

/* The plain op of a first-class pair, before its done.
 * The start's attributes, but the done's sharding: it is the done that has the result's type. */
static ir_op *async_make_plain(async_edit *e, const ir_op *start, ir_op *done, ir_opcode opcode) {
  const base_istr *name = ir_fresh_name(e->m, ir_opcode_text(opcode));
  ir_op *op = name ? ir_op_new(done->parent, opcode, done->type, name, start->n_operands, start->n_called) : NULL;
  if (!op) return NULL;
  ir_op_move(op, done);
  op->line = start->line, op->col = start->col;
  for (uint32_t i = 0; i < start->n_operands; i++)
    ir_set_operand(op, i, (ir_value){start->operands[i].op, start->operands[i].index});
  for (uint32_t i = 0; i < start->n_called; i++) ir_set_called(op, i, start->called[i]);
  for (uint32_t i = 0; i < start->n_attrs; i++) {
    uint16_t key = start->attrs[i].key;
    bool kept = key != IR_ATTR_SHARDING && key != IR_ATTR_CROSS_PROGRAM_PREFETCH_INDEX;
    if (kept && !ir_attr_set(op, start->attrs[i])) return NULL;
  }
  const ir_attr *sharding = ir_attr_find(done, IR_ATTR_SHARDING);
  return !sharding || ir_attr_set(op, *sharding) ? op : NULL;
}

/* A wrapped start whose done would have to read the chain's done. Such a send or receive stays wrapped: outside, its
 * only consumer has to be its own done.
 * {send, recv} and starts of pairs are one half of something. */
static bool async_wraps_half(const ir_op *start) {
  const ir_op *root = start->opcode == IR_OP_ASYNC_START ? ir_root(start->called[0]) : NULL;
  return root &&
         (root->opcode == IR_OP_SEND || root->opcode == IR_OP_RECV || ir_opcode_has(root->opcode, IR_ASYNC_START));
}

/* Whether a link before the done is what the computation gives, besides: XLA's rules count consumers alone, so a
 * start with a done may be the root. Such a chain has to stay. */
static bool async_is_returned(const ir_op *start, const ir_op *done) {
  for (const ir_op *link = done; link != start;) {
    link = ir_operand(link, 0);
    if (ir_is_result(link)) return true;
  }
  return false;
}

/* Whether the chain's result is declared with other bounds, or another layout or memory, than what is computed in it
 * (the verifier asks for compatible shapes): its readers and aliases are told of the done's, so such a chain stays. */
static bool async_declares_other(const ir_op *start, const ir_op *done) {
  return start->opcode == IR_OP_ASYNC_START && ir_root(start->called[0])->type != done->type;
}

/* Generic chains hold the op itself, pairs the makings of one. */
ir_op *async_unwrap(async_edit *e, ir_op *done, bool *found) {
  ir_op *start = async_start_of_done(done);
  *found = start != NULL && !async_wraps_half(start) && !async_is_returned(start, done) &&
           !async_declares_other(start, done);
  if (!*found) return NULL;
  if (start->opcode == IR_OP_ASYNC_START) return async_unwrap_generic(e, start, done);
  ir_opcode plain = async_plain_of(done->opcode);
  *found = plain != IR_OP_INVALID;
  if (!*found) return NULL;
  ir_op *op = async_make_plain(e, start, done, plain);
  if (!op || !async_take_edges(op, start, done)) return NULL;
  return async_remove_chain(start, done, op) ? op : NULL;
}
