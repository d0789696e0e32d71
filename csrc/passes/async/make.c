/* Making chains of ops. */
#include "async.h"

#include <stdio.h>

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

/* A copy that changes the layout is no copy-start: its two shapes must be the same. */
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

static bool async_copy_attr(ir_op *to, const ir_op *from, ir_attr_key key) {
  const ir_attr *a = ir_attr_find(from, key);
  return !a || ir_attr_set(to, *a);
}

/* An op of a chain for `of`, before it. */
static ir_op *async_make_link(async_edit *e, ir_op *of, ir_opcode opcode, const ir_type *t, const char *suffix,
                              uint32_t n_operands, uint32_t n_called) {
  const base_istr *name = t ? async_suffixed(e, of, suffix) : NULL;
  ir_op *link = name ? ir_op_new(of->parent, opcode, t, name, n_operands, n_called) : NULL;
  if (!link || !async_copy_attr(link, of, IR_ATTR_METADATA)) return NULL;
  ir_op_move(link, of);
  link->line = of->line, link->col = of->col;
  return link;
}

static ir_op *async_make_follower(async_edit *e, ir_op *of, ir_opcode opcode, const ir_type *t, const char *suffix,
                                  ir_op *on) {
  ir_op *link = async_make_link(e, of, opcode, t, suffix, 1, 0);
  if (link) ir_set_operand(link, 0, (ir_value){on, 0});
  return link;
}

/* What waited for op waits for done, what op waited for start waits for; op goes. */
static bool async_settle(async_edit *e, ir_op *op, ir_op *start, ir_op *done) {
  if (!async_copy_attr(done, op, IR_ATTR_SHARDING)) return false;
  if (!async_in_edge(e, op)) {
    if (!opt_replace(op, done)) return false;
    opt_remove(op);
    return true;
  }
  for (uint32_t i = 0; i < op->n_control_preds; i++)
    if (!ir_add_control_pred(start, op->control_preds[i])) return false;
  while (op->n_control_preds) ir_remove_control_pred(op, op->control_preds[0]);
  if (!ir_replace_uses(op, done)) return false;
  ir_op_remove(op);
  return true;
}

/* --- generic chains --- */

static const ir_type *async_tuple_of_operands(async_edit *e, const ir_op *op) {
  const ir_type **elements = BASE_ARRAY(&e->facts.arena, const ir_type *, (size_t)op->n_operands + 1);
  for (uint32_t i = 0; elements && i < op->n_operands; i++) elements[i] = ir_operand_type(op, i);
  return elements ? ir_tuple(e->m, op->n_operands, elements) : NULL;
}

/* ((operands...), outputs, u32[]) */
static const ir_type *async_generic_type(async_edit *e, const ir_op *op) {
  const ir_type *elements[3] = {async_tuple_of_operands(e, op), op->type, ir_scalar(e->m, XLAC_U32)};
  return elements[0] && elements[2] ? ir_tuple(e->m, 3, elements) : NULL;
}

/* The computation's copy, with copies of all that it calls: they are to run on a thread of their own. */
static ir_computation *async_copy_computation(async_edit *e, const ir_computation *c, const base_istr *thread,
                                              uint32_t depth);

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
    if (shared && !(op->called[i] = c = async_copy_computation(e, c, thread, depth + 1))) return false;
    c->execution_thread = thread;
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
  copy->execution_thread = thread;
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

/* A parameter for each operand and op on them. */
static ir_computation *async_wrap_computation(async_edit *e, const ir_op *op, const base_istr *thread) {
  const base_istr *name = ir_fresh_name(e->m, "async_wrapped");
  ir_computation *c = name ? ir_computation_new(e->m, name->s, name->n) : NULL;
  ir_op **params = BASE_ARRAY(&e->facts.arena, ir_op *, (size_t)op->n_operands + 1);
  if (!c || !params) return NULL;
  c->hidden = true;
  c->execution_thread = thread;
  c->line = op->line, c->col = op->col;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const base_istr *param = ir_fresh_name(e->m, "async_param");
    params[i] = param ? ir_op_new(c, IR_OP_PARAMETER, ir_operand_type(op, i), param, 0, 0) : NULL;
    if (!params[i] || !ir_set_parameter(params[i], i)) return NULL;
  }
  ir_op *root = ir_op_clone(op, c, NULL);
  if (!root) return NULL;
  while (root->n_control_preds) ir_remove_control_pred(root, root->control_preds[0]);
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

static bool async_finish_start(async_edit *e, ir_op *start, const ir_op *op, const async_how *how) {
  if (how->alias_first && op->n_operands && !async_set_alias(e, start)) return false;
  return !how->thread || ir_set_str(start, IR_ATTR_ASYNC_THREAD, how->thread->s, how->thread->n);
}

ir_op *async_wrap_op(async_edit *e, ir_op *op, const async_how *how) {
  const ir_type *t = async_generic_type(e, op);
  ir_computation *c = t ? async_wrap_computation(e, op, how->thread) : NULL;
  ir_op *start = c ? async_make_link(e, op, IR_OP_ASYNC_START, t, "-start", op->n_operands, 1) : NULL, *at = start;
  if (!start) return NULL;
  start->called[0] = c;
  for (uint32_t i = 0; i < op->n_operands; i++)
    ir_set_operand(start, i, (ir_value){op->operands[i].op, op->operands[i].index});
  if (!async_copy_shared(start, op) || !async_finish_start(e, start, op, how)) return NULL;
  for (uint32_t i = 0; i < how->updates && at; i++)
    at = async_make_follower(e, op, IR_OP_ASYNC_UPDATE, t, "-update", at);
  ir_op *done = at ? async_make_follower(e, op, IR_OP_ASYNC_DONE, op->type, "-done", at) : NULL;
  return done && async_settle(e, op, start, done) ? done : NULL;
}

/* --- first-class pairs --- */

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
  ir_op *start = async_make_link(e, op, opcode, async_pair_type(e, op), "-start", op->n_operands, op->n_called);
  if (!start) return NULL;
  for (uint32_t i = 0; i < op->n_operands; i++)
    ir_set_operand(start, i, (ir_value){op->operands[i].op, op->operands[i].index});
  for (uint32_t i = 0; i < op->n_called; i++) start->called[i] = op->called[i];
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].key != IR_ATTR_SHARDING && !ir_attr_set(start, op->attrs[i])) return NULL;
  ir_op *done = async_make_follower(e, op, (ir_opcode)ir_opcode_info(opcode)->done, op->type, "-done", start);
  if (!done || !async_copy_attr(done, op, IR_ATTR_BACKEND_CONFIG)) return NULL;
  return async_settle(e, op, start, done) ? done : NULL;
}
