/* Edits that keep use lists, counts and roots right, and are counted (ir_edited), so that a verifier knows what it has
 * seen.
 *
 * The uses of an op form one doubly linked list through the operand slots of its users, whichever of its results they
 * use; `link` points at the pointer that points here, so that a slot leaves its list without knowing the head.
 * Nothing is freed: what is removed stays readable until the module goes. */
#include "ir.h"

static void touch(const ir_op *op) {
  assert(op->parent && op->parent->module);
  ir_edited(op->parent->module);
}

/* Nothing to do for a slot that is empty: a new op's, or one of an op that lost its operands. */
static void unlink_use(ir_use *use) {
  assert(!use->op || (use->link && *use->link == use));
  if (!use->op) return;
  *use->link = use->next;
  if (use->next) use->next->link = use->link;
  use->op = NULL;
  use->next = NULL;
  use->link = NULL;
}

/* The newest use comes first; the order of uses means nothing. */
static void link_use(ir_use *use, ir_value v) {
  assert(use->user && !use->link);
  assert(v.op && v.index < v.op->n_results);
  use->op = v.op;
  use->index = v.index;
  use->next = v.op->uses;
  use->link = &v.op->uses;
  if (use->next) use->next->link = &use->next;
  v.op->uses = use;
}

void ir_set_operand(ir_op *op, uint32_t slot, ir_value v) {
  assert(slot < op->n_operands);
  unlink_use(&op->operands[slot]);
  link_use(&op->operands[slot], v);
  touch(op);
}

/* Room for 2, 4, 8, ... operands, as a power of two in operand_room (0: the block the op was made with). Slots move,
 * so the list pointers to them must follow. */
static bool grow_operands(ir_op *op) {
  uint8_t room = 2;
  while (room < 31 && (uint32_t)1 << room <= op->n_operands) room++;
  ir_use *slots = BASE_ARRAY(&op->parent->module->arena, ir_use, (size_t)1 << room);
  if (!slots || op->n_operands >= (uint32_t)1 << room) return false;
  memcpy(slots, op->operands, op->n_operands * sizeof *slots);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!slots[i].op) continue;
    *slots[i].link = &slots[i];
    if (slots[i].next) slots[i].next->link = &slots[i].next;
  }
  op->operands = slots;
  op->operand_room = room;
  return true;
}

/* Appends; amortised constant time. Fails when out of memory, with nothing changed. */
bool ir_add_operand(ir_op *op, ir_value v) {
  assert(v.op);
  if ((op->operand_room == 0 || op->n_operands == (uint32_t)1 << op->operand_room) && !grow_operands(op)) return false;
  ir_use *use = &op->operands[op->n_operands];
  *use = (ir_use){.user = op, .slot = op->n_operands};
  op->n_operands++;
  link_use(use, v);
  touch(op);
  return true;
}

void ir_operand_remove(ir_op *op, uint32_t slot) {
  assert(slot < op->n_operands);
  /* Slots stay where they are, since their number and user are fixed; their values move down. */
  for (uint32_t i = slot; i + 1 < op->n_operands; i++) {
    ir_value v = {op->operands[i + 1].op, op->operands[i + 1].index};
    ir_set_operand(op, i, v);
  }
  unlink_use(&op->operands[--op->n_operands]);
  touch(op);
}

/* Parameter arrays grow by doubling, with holes as NULL. A number far beyond the count is the reader's error, not ours.
 */
bool ir_set_parameter(ir_op *op, int64_t number) {
  assert(op->opcode == IR_OP_PARAMETER && number >= 0 && number < UINT32_MAX / 2);
  ir_computation *c = op->parent;
  uint32_t need = (uint32_t)number + 1;
  if (need > c->n_params) {
    uint32_t cap = 4;
    while (cap < need) cap *= 2;
    /* The capacity is the power of two at or above n_params and is not stored: the array is full when n_params is 0
     * or a power of two. */
    bool full = c->n_params == 0 || (c->n_params & (c->n_params - 1)) == 0 || need > c->n_params * 2;
    if (full || cap > c->n_params * 2) {
      ir_op **params = base_arena_zalloc(&c->module->arena, (size_t)cap * sizeof *params);
      if (!params) return false;
      if (c->n_params) memcpy(params, c->params, c->n_params * sizeof *params);
      c->params = params;
    }
    c->n_params = need;
  }
  op->u.number = number;
  c->params[number] = op;
  touch(op);
  return true;
}

/* --- control edges --- */

/* Looks through the shorter one of the two lists that would have it: both are walked at once. */
static ir_control *find_control(const ir_op *pred, const ir_op *succ) {
  ir_control *a = succ->control_preds, *b = pred->control_succs;
  for (; a && b; a = a->next, b = b->next_succ) {
    if (a->pred == pred) return a;
    if (b->succ == succ) return b;
  }
  return NULL;
}

/* The last one of op's. */
static void link_control(ir_control *e, ir_op *op, ir_op *pred) {
  ir_control *first = op->control_preds;
  *e = (ir_control){.pred = pred, .succ = op, .prev = first ? first->prev : e, .next_succ = pred->control_succs};
  *(first ? &first->prev->next : &op->control_preds) = e;
  op->control_preds->prev = e;
  e->succ_link = &pred->control_succs;
  if (e->next_succ) e->next_succ->succ_link = &e->next_succ;
  pred->control_succs = e;
  op->n_control_preds++;
  op->parent->module->n_control_edges++;
  touch(op);
}

/* A second edge between the same two ops is not an edge: XLA keeps none either. */
bool ir_add_control_pred(ir_op *op, ir_op *pred) {
  assert(pred);
  if (find_control(pred, op)) return true;
  ir_control *e = BASE_NEW(&op->parent->module->arena, ir_control);
  if (e) link_control(e, op, pred);
  return e != NULL;
}

bool ir_set_control_preds(ir_op *op, uint32_t n, ir_op *const *preds) {
  ir_control *edges = BASE_ARRAY(&op->parent->module->arena, ir_control, (size_t)n + 1);
  if (!edges) return false;
  ir_drop_control_preds(op);
  for (uint32_t i = 0; i < n; i++)
    if (!find_control(preds[i], op)) link_control(&edges[i], op, preds[i]);
  return true;
}

/* The order of the others, in which they are printed, stays. */
static void remove_control(ir_control *e) {
  ir_op *op = e->succ;
  assert(op->n_control_preds > 0 && *e->succ_link == e);
  if (e->next) e->next->prev = e->prev;
  if (e == op->control_preds) {
    op->control_preds = e->next;
  } else {
    e->prev->next = e->next;
    if (!e->next) op->control_preds->prev = e->prev;
  }
  *e->succ_link = e->next_succ;
  if (e->next_succ) e->next_succ->succ_link = e->succ_link;
  op->n_control_preds--;
  op->parent->module->n_control_edges--;
  touch(op);
}

/* Nothing happens where there is no such edge. */
void ir_remove_control_pred(ir_op *op, const ir_op *pred) {
  ir_control *e = find_control(pred, op);
  if (e) remove_control(e);
}

void ir_drop_control_preds(ir_op *op) {
  while (op->control_preds) remove_control(op->control_preds);
}

void ir_set_type(ir_op *op, const ir_type *t) {
  assert(t && op->n_results == 1);
  op->type = t;
  touch(op);
}

/* Lists of types are shared and immutable: readers of the old one are not disturbed. */
bool ir_set_types(ir_op *op, const ir_type *const *types) {
  if (op->n_results == 0) return true;
  const ir_type *const *copy =
      op->n_results == 1 ? &op->type
                         : base_arena_memdup(&op->parent->module->arena, types, (size_t)op->n_results * sizeof *types);
  if (!copy) return false;
  op->type = types[0];
  op->types = copy;
  touch(op);
  return true;
}

void ir_set_opcode(ir_op *op, ir_opcode opcode) {
  assert(opcode > IR_OP_INVALID && opcode < IR_OP_COUNT);
  op->opcode = (uint16_t)opcode;
  touch(op);
}

void ir_set_literal(ir_op *op, const ir_literal *literal) {
  assert(op->opcode == IR_OP_CONSTANT);
  op->u.literal = literal;
  touch(op);
}

void ir_set_name(ir_op *op, const base_istr *name) {
  assert(name);
  op->name = name;
  touch(op);
}

void ir_set_op_name(ir_op *op, const base_istr *name) {
  assert(op->opcode == IR_OP_UNREGISTERED);
  op->u.name = name;
  touch(op);
}

/* Most dictionaries that a pass looks at stay as they are: that is not an edit. */
void ir_set_mlir(ir_op *op, const ir_mdict *attrs) {
  if (op->mlir == attrs) return;
  op->mlir = attrs;
  touch(op);
}

void ir_set_called(ir_op *op, uint32_t index, ir_computation *c) {
  assert(index < op->n_called);
  op->called[index] = c;
  touch(op);
}

void ir_set_all_called(ir_op *op, uint32_t n, ir_computation **called) {
  assert(called || n == 0);
  op->called = called;
  op->n_called = n;
  touch(op);
}

void ir_set_region(ir_op *op, uint32_t index, ir_computation *c) {
  ir_set_called(op, index, c);
  c->kind = IR_REGION;
  c->owner = op;
}

/* Regions belong to one op. */
void ir_move_regions(ir_op *from, ir_op *to) {
  assert(from->n_called == to->n_called);
  for (uint32_t i = 0; i < from->n_called; i++) ir_set_region(to, i, from->called[i]);
  from->n_called = 0;
  touch(from);
}

/* Anything but a region belongs to no op. */
void ir_set_kind(ir_computation *c, ir_computation_kind kind) {
  assert(kind != IR_REGION);
  c->kind = (uint8_t)kind;
  c->owner = NULL;
  ir_edited(c->module);
}

void ir_set_computation_name(ir_computation *c, const base_istr *name) {
  assert(name);
  c->name = name;
  ir_edited(c->module);
}

void ir_set_execution_thread(ir_computation *c, const base_istr *thread) {
  c->execution_thread = thread;
  ir_edited(c->module);
}

void ir_set_function_attrs(ir_computation *f, const ir_mdict *attrs) {
  f->mlir = attrs;
  ir_edited(f->module);
}

void ir_set_all_result_attrs(ir_computation *f, const ir_mdict *const *attrs) {
  f->result_mlir = attrs;
  ir_edited(f->module);
}

void ir_set_return_attrs(ir_computation *f, const ir_mdict *attrs) {
  if (f->return_mlir == attrs) return;
  f->return_mlir = attrs;
  ir_edited(f->module);
}

void ir_set_function_type(ir_computation *f, const ir_type *t) {
  f->function_type = t;
  ir_edited(f->module);
}

void ir_set_module_name(ir_module *m, const base_istr *name) {
  assert(name);
  m->name = name;
  ir_edited(m);
}

void ir_set_entry(ir_module *m, ir_computation *c) {
  assert(!c || c->module == m);
  m->entry = c;
  ir_edited(m);
}

void ir_set_module_attrs(ir_module *m, const ir_mdict *attrs) {
  m->mlir = attrs;
  ir_edited(m);
}

ir_config *ir_edit_config(ir_module *m) {
  ir_edited(m);
  return &m->config;
}

/* The array is made anew each time, and the old one left to whoever still reads it. */
bool ir_set_result_attrs(ir_computation *f, uint32_t i, const ir_mdict *attrs) {
  assert(f);
  uint32_t n = ir_function_results(f);
  if (i >= n) return true;
  const ir_mdict **all = BASE_ARRAY(&f->module->arena, const ir_mdict *, n);
  if (!all) return false;
  for (uint32_t r = 0; r < n; r++) all[r] = ir_result_attrs(f, r);
  all[i] = attrs && attrs->n ? attrs : NULL;
  f->result_mlir = all;
  ir_edited(f->module);
  return true;
}

bool ir_set_root(ir_computation *c, ir_op *op) {
  assert(op->parent == c);
  if (!c->results && !(c->results = BASE_NEW(&c->module->arena, ir_value))) return false;
  c->results[0] = (ir_value){op, 0};
  c->n_results = 1;
  ir_edited(c->module);
  return true;
}

void ir_set_result(ir_computation *c, uint32_t i, ir_value v) {
  assert(i < c->n_results && v.op && v.index < v.op->n_results);
  c->results[i] = v;
  ir_edited(c->module);
}

bool ir_set_results(ir_computation *c, uint32_t n, const ir_value *results) {
  ir_value *copy = BASE_ARRAY(&c->module->arena, ir_value, (size_t)n + 1);
  if (!copy) return false;
  if (n) memcpy(copy, results, n * sizeof *copy);
  c->results = copy;
  c->n_results = n;
  ir_edited(c->module);
  return true;
}

/* Parameters are ops, numbered by their place. */
void ir_parameter_slot_remove(ir_computation *c, uint32_t index) {
  assert(index < c->n_params && !c->params[index]);
  for (uint32_t i = index + 1; i < c->n_params; i++) {
    c->params[i - 1] = c->params[i];
    c->params[i - 1]->u.number = i - 1;
  }
  c->n_params--;
  ir_edited(c->module);
}

/* Successors of `from` come after `to` instead. An edge from an op to itself is dropped: it would be a cycle. */
static bool replace_control(ir_op *from, ir_op *to) {
  while (from->control_succs) {
    ir_op *succ = from->control_succs->succ;
    remove_control(from->control_succs);
    if (succ != to && !ir_add_control_pred(succ, to)) return false;
  }
  return true;
}

/* All uses go over, those by `to` itself too: a caller that puts `to` between `from` and its users sets to's operand
 * again. */
bool ir_replace_uses(ir_op *from, ir_op *to) {
  assert(to->parent->module == from->parent->module);
  assert(from != to && from->n_results <= to->n_results);
  ir_computation *c = from->parent;
  if (!replace_control(from, to)) return false;
  while (from->uses) {
    ir_use *use = from->uses;
    ir_value v = {to, use->index};
    unlink_use(use);
    link_use(use, v);
  }
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == from) c->results[i].op = to;
  touch(from);
  return true;
}

bool ir_is_result(const ir_op *op) {
  assert(op->parent != NULL);
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return true;
  return false;
}

/* Out of the computation's list; its uses and slots are not looked at. */
static void unlink_op(ir_op *op) {
  ir_computation *c = op->parent;
  *(op->prev ? &op->prev->next : &c->first) = op->next;
  *(op->next ? &op->next->prev : &c->last) = op->prev;
  op->prev = op->next = NULL;
  assert(c->n_ops > 0);
  c->n_ops--;
}

static void drop_control(ir_op *op) {
  while (op->control_succs) remove_control(op->control_succs);
  ir_drop_control_preds(op);
}

void ir_op_remove(ir_op *op) {
  assert(!op->uses && !ir_is_result(op));
  ir_computation *c = op->parent;
  touch(op);
  for (uint32_t i = 0; i < op->n_operands; i++) unlink_use(&op->operands[i]);
  drop_control(op);
  if (op->opcode == IR_OP_PARAMETER && op->u.number >= 0 && op->u.number < c->n_params && c->params[op->u.number] == op)
    c->params[op->u.number] = NULL;
  unlink_op(op);
}

/* Callers' op->called must have been changed before. */
void ir_computation_remove(ir_computation *c) {
  ir_module *m = c->module;
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_operands; i++) unlink_use(&op->operands[i]);
    drop_control(op);
  }
  *(c->prev ? &c->prev->next : &m->first) = c->next;
  *(c->next ? &c->next->prev : &m->last) = c->prev;
  m->n_computations--;
  if (m->entry == c) m->entry = m->first;
  ir_edited(m);
}

void ir_computation_move(ir_computation *c, ir_computation *before) {
  assert(!before || before->module == c->module);
  ir_module *m = c->module;
  if (before == c || c->next == before) return;
  *(c->prev ? &c->prev->next : &m->first) = c->next;
  *(c->next ? &c->next->prev : &m->last) = c->prev;
  c->next = before;
  c->prev = before ? before->prev : m->last;
  *(c->prev ? &c->prev->next : &m->first) = c;
  *(before ? &before->prev : &m->last) = c;
  ir_edited(m);
}

/* The order of a computation is the order of its text; no use changes. Whether operands still come first is the
 * caller's affair. */
void ir_op_move(ir_op *op, ir_op *before) {
  ir_computation *c = before ? before->parent : op->parent;
  assert(op != before && c->module == op->parent->module);
  assert(c == op->parent || (op->opcode != IR_OP_PARAMETER && !op->control_preds && !op->control_succs));
  unlink_op(op);
  op->parent = c;
  op->next = before;
  op->prev = before ? before->prev : c->last;
  *(op->prev ? &op->prev->next : &c->first) = op;
  *(before ? &before->prev : &c->last) = op;
  c->n_ops++;
  touch(op);
}
