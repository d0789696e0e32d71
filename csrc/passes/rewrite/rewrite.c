/* The cursor, replacement and removal; the driver that applies patterns; copies of regions and functions. In MLIR
 * form what a region or function returns is a list of values beside its ops, not an operand of a terminator:
 * replacement looks there too. A region may return a value of an enclosing one ("leak"); such regions are listed, so
 * that replacing a value need not search the module. */
#include <stdio.h>

#include "rewrite.h"

/* A region that returns what it did not make: it must be looked at when that value is replaced.
 * For example %x = ...; "stablehlo.case"(%i) ({ stablehlo.return %x }): the branch returns %x, which it did not make.
 */
static bool rewrite_leaks(const ir_computation *c) {
  if (!c->owner) return false;
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op->parent != c) return true;
  return false;
}

/* Each region once. The list only grows, but for regions that are erased. */
static void rewrite_note_leak(opt_rewriter *rw, ir_computation *c) {
  if (!rewrite_leaks(c)) return;
  for (uint32_t i = 0; i < rw->n_leaks; i++)
    if (rw->leaks[i] == c) return;
  if (rw->n_leaks == rw->leak_cap) {
    uint32_t cap = rw->leak_cap ? rw->leak_cap * 2 : 8;
    ir_computation **grown = BASE_ARRAY(&rw->arena, ir_computation *, cap);
    if (!grown) {
      rw->failed = true;
      return;
    }
    if (rw->n_leaks) memcpy(grown, rw->leaks, rw->n_leaks * sizeof(*grown));
    rw->leaks = grown;
    rw->leak_cap = cap;
  }
  rw->leaks[rw->n_leaks++] = c;
}

/* Finds the leaks there are; a module is entered once and then edited through rw alone. */
int opt_rewriter_init(opt_rewriter *rw, ir_module *m, xlac_error *err) {
  assert(m->form == IR_FORM_MLIR);
  *rw = (opt_rewriter){.m = m, .err = err};
  base_arena_init(&rw->arena, m->alloc);
  rw->name = ir_intern(m, "", 0);
  rw->failed = !rw->name;
  IR_FOR_COMPUTATIONS(c, m) rewrite_note_leak(rw, c);
  int status = opt_rewriter_status(rw);
  if (status) opt_rewriter_free(rw);
  return status;
}

void opt_rewriter_free(opt_rewriter *rw) {
  base_arena_free(&rw->arena);
}

/* The arena's own failure counts too: makers of lists in it do not always look. */
int opt_rewriter_status(const opt_rewriter *rw) {
  return rw->failed || rw->arena.failed ? base_oom(rw->err, "a pass") : 0;
}

/* The message says what was expected; where is added here, from the op's place in the text. */
int opt_rewrite_fail(const opt_rewriter *rw, const ir_op *op, base_code code, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
  const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : mlir ? mlir->name : "";
  return base_fail_at(rw->err, code, op->line, op->col, name, "%s", message);
}

/* The location of what is replaced is that of its replacement, so that errors of later passes still name a source
 * line. */
void opt_at(opt_rewriter *rw, ir_op *op) {
  rw->into = op->parent;
  rw->before = op;
  rw->origin = op;
}

void opt_at_end(opt_rewriter *rw, ir_computation *c, const ir_op *origin) {
  rw->into = c;
  rw->before = NULL;
  rw->origin = origin;
}

/* Parameters come first among a computation's ops. */
void opt_at_start(opt_rewriter *rw, ir_computation *c) {
  ir_op *first = c->first;
  while (first && first->opcode == IR_OP_PARAMETER) first = first->next;
  opt_at_end(rw, c, first);
  rw->before = first;
}

/* New ops are appended to the computation, and moved. */
static void rewrite_place(const opt_rewriter *rw, ir_op *op) {
  if (rw->before) ir_op_move(op, rw->before);
  if (!rw->origin) return;
  op->loc = rw->origin->loc;
  op->line = rw->origin->line;
  op->col = rw->origin->col;
}

/* No value and no type is the NULL of a maker that failed. */
static bool rewrite_whole(uint32_t n, const ir_value *operands, uint32_t n_results, const ir_type *const *types) {
  for (uint32_t i = 0; i < n; i++)
    if (!operands[i].op) return false;
  for (uint32_t i = 0; i < n_results; i++)
    if (!types[i]) return false;
  return true;
}

/* Operands are linked at once, so that uses are right at any time. An operand of NULL is an earlier failure: nothing
 * is made then. */
ir_op *opt_make_n(opt_rewriter *rw, ir_opcode opcode, uint32_t n_results, const ir_type *const *types, uint32_t n,
                  const ir_value *operands, uint32_t n_regions) {
  assert(rw->into);
  rw->failed = rw->failed || !rewrite_whole(n, operands, n_results, types);
  ir_op *op = rw->failed ? NULL : ir_op_new_n(rw->into, opcode, n_results, types, rw->name, n, n_regions);
  if (!op) {
    rw->failed = true;
    return NULL;
  }
  for (uint32_t i = 0; i < n; i++) ir_set_operand(op, i, operands[i]);
  rewrite_place(rw, op);
  opt_enqueue(rw, op);
  return op;
}

/* The case of one result and no regions, which is most ops. */
ir_value opt_make(opt_rewriter *rw, ir_opcode opcode, const ir_type *type, uint32_t n, const ir_value *operands) {
  return (ir_value){opt_make_n(rw, opcode, 1, &type, n, operands, 0), 0};
}

/* Attributes are made in the module's arena and shared freely; setting one never changes another op. */
void opt_set(opt_rewriter *rw, ir_value v, const char *key, const ir_mattr *value) {
  assert(key != NULL);
  rw->failed = rw->failed || !v.op || !value || !ir_m_set(v.op, key, value);
}

/* An op with one result keeps its type in the op itself. */
void opt_set_types(opt_rewriter *rw, ir_op *op, const ir_type *const *types) {
  rw->failed = rw->failed || !rewrite_whole(0, NULL, op->n_results, types);
  if (rw->failed || op->n_results == 0) return;
  rw->failed = !ir_set_types(op, types);
}

/* Arguments are added one by one (opt_region_argument). */
ir_computation *opt_region(opt_rewriter *rw, ir_op *op, uint32_t index) {
  assert(!op || index < op->n_called);
  ir_computation *c = op ? ir_computation_new(rw->m, "region", 6) : NULL;
  if (!c) {
    rw->failed = true;
    return NULL;
  }
  ir_set_region(op, index, c);
  return c;
}

/* Parameters have the location of the cursor, but are not placed by it. */
ir_value opt_region_argument(opt_rewriter *rw, ir_computation *region, const ir_type *type) {
  rw->failed = rw->failed || !region || !type;
  ir_op *op = rw->failed ? NULL : ir_op_new(region, IR_OP_PARAMETER, type, rw->name, 0, 0);
  if (op && rw->origin) op->loc = rw->origin->loc;
  rw->failed = !op || !ir_set_parameter(op, region->n_params);
  return (ir_value){rw->failed ? NULL : op, 0};
}

void opt_set_results(opt_rewriter *rw, ir_computation *c, uint32_t n, const ir_value *values) {
  rw->failed = rw->failed || !c || !rewrite_whole(n, values, 0, NULL) || !ir_set_results(c, n, values);
  if (!rw->failed) rewrite_note_leak(rw, c);
}

/* What a region gives back decides about its op, which is looked at again. */
static void rewrite_results(opt_rewriter *rw, ir_computation *c, const ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (c->results[i].op != op) continue;
    ir_set_result(c, i, values[c->results[i].index]);
    opt_enqueue(rw, c->owner);
  }
}

/* Uses by ops first, then what regions and functions return, the leaks among them. */
void opt_replace_results(opt_rewriter *rw, ir_op *op, const ir_value *values) {
  rw->failed = rw->failed || !rewrite_whole(op->n_results, values, 0, NULL);
  if (rw->failed) return;
  for (ir_use *use = op->uses, *next = NULL; use; use = next) {
    next = use->next;
    ir_value v = values[use->index];
    opt_enqueue(rw, use->user);
    if (v.op != op || v.index != use->index) ir_set_operand(use->user, use->slot, v);
  }
  rewrite_results(rw, op->parent, op, values);
  for (uint32_t i = 0; i < rw->n_leaks; i++) rewrite_results(rw, rw->leaks[i], op, values);
  /* If the replacement comes from outside, the op's own region may leak now. */
  bool outer = false;
  for (uint32_t i = 0; i < op->n_results; i++) outer = outer || values[i].op->parent != op->parent;
  if (outer) rewrite_note_leak(rw, op->parent);
}

/* Its operands' producers may have lost their last reader: opt_erase has the driver look at them again. */
void opt_replace_op(opt_rewriter *rw, ir_op *op, const ir_value *values) {
  opt_replace_results(rw, op, values);
  if (!rw->failed) opt_erase(rw, op);
}

/* For the most frequent case. */
void opt_replace_one(opt_rewriter *rw, ir_op *op, ir_value value) {
  assert(op->n_results == 1);
  opt_replace_op(rw, op, &value);
}

/* Order in the list does not matter. */
static void rewrite_forget_leak(opt_rewriter *rw, const ir_computation *c) {
  for (uint32_t i = 0; i < rw->n_leaks; i++)
    if (rw->leaks[i] == c) rw->leaks[i--] = rw->leaks[--rw->n_leaks];
}

/* Inner regions first: their ops use values of outer ones. Depth is that of the text, which the reader bounds. */
static void rewrite_drop_region(opt_rewriter *rw, ir_computation *c) {
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]) rewrite_drop_region(rw, op->called[i]);
    if (op->id < rw->n_marks) rw->marks[op->id] = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) opt_enqueue(rw, op->operands[i].op);
  }
  rewrite_forget_leak(rw, c);
  ir_computation_remove(c);
  IR_FOR_OPS(op, c)
  if (op->id < rw->n_marks) rw->marks[op->id] = 0;
}

/* The cursor moves on if it stood at op; the ops that made its operands are looked at again, since they may be dead
 * now. */
void opt_erase(opt_rewriter *rw, ir_op *op) {
  assert(!opt_is_used(rw, op));
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i] && op->called[i]->owner == op) rewrite_drop_region(rw, op->called[i]);
  for (uint32_t i = 0; i < op->n_operands; i++) opt_enqueue(rw, op->operands[i].op);
  if (rw->before == op) rw->before = op->next;
  if (rw->origin == op) rw->origin = NULL;
  if (op->id < rw->n_marks) rw->marks[op->id] = 0;
  ir_op_remove(op);
}

/* Lists of types are shared and immutable, so one of several is changed in a copy. */
void opt_set_type(opt_rewriter *rw, ir_value v, const ir_type *type) {
  assert(v.op != NULL && v.index < v.op->n_results);
  ir_op *op = v.op;
  if (op->n_results == 1) {
    ir_set_type(op, type);
    return;
  }
  const ir_type **types = base_arena_memdup(&rw->arena, op->types, op->n_results * sizeof *types);
  if (!types) {
    rw->failed = true;
    return;
  }
  types[v.index] = type;
  if (!ir_set_types(op, types)) rw->failed = true;
}

/* Parameters are ops here, numbered by their place: later ones are renumbered. */
void opt_erase_parameter(opt_rewriter *rw, ir_computation *c, uint32_t index) {
  assert(index < c->n_params);
  opt_erase(rw, c->params[index]);
  ir_parameter_slot_remove(c, index);
}

/* Uses by ops are answered at once; only ops without any are searched for among what regions return. */
bool opt_is_used(const opt_rewriter *rw, const ir_op *op) {
  if (op->uses) return true;
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return true;
  for (uint32_t k = 0; k < rw->n_leaks; k++)
    for (uint32_t i = 0; i < rw->leaks[k]->n_results; i++)
      if (rw->leaks[k]->results[i].op == op) return true;
  return false;
}

/* Random ops and collectives are impure: merging or dropping one changes the others' results or hangs them. */
bool opt_is_pure_alone(const ir_op *op) {
  unsigned impure =
      IR_SIDE_EFFECT | IR_NONDETERMINISTIC | IR_COLLECTIVE | IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE;
  for (unsigned bit = 1; bit <= impure; bit <<= 1)
    if (bit & impure && ir_opcode_has(op->opcode, (ir_trait)bit)) return false;
  if (op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_CALL || op->opcode == IR_OP_COMPOSITE) return false;
  return op->opcode != IR_OP_CUSTOM_CALL || !ir_m_get_bool(op, "has_side_effect");
}

/* Pure through and through: what its regions hold counts. */
bool opt_is_pure(const ir_op *op) {
  if (!opt_is_pure_alone(op)) return false;
  for (uint32_t i = 0; i < op->n_called; i++) IR_FOR_OPS(inner, op->called[i])
  if (inner->opcode != IR_OP_PARAMETER && !opt_is_pure(inner)) return false;
  return true;
}

/* The driver: a worklist of ops, and a bound on the work. */

/* Rewrites that a module may take for each op it had: simplification chains are short.
 * A bound rather than a proof of termination, since patterns are many. */
enum { REWRITE_ROUNDS = 32 };

/* Marks grow with the ids of new ops; the list is twice as long each time. */
static bool greedy_room(opt_rewriter *rw, uint32_t id) {
  assert(rw->pending != NULL || rw->n_pending == 0);
  if (id >= rw->n_marks) {
    uint32_t n = rw->m->n_ids + rw->m->n_ids / 2 + 64;
    uint8_t *marks = base_arena_zalloc(&rw->arena, n);
    if (!marks) return false;
    if (rw->n_marks) memcpy(marks, rw->marks, rw->n_marks);
    rw->marks = marks;
    rw->n_marks = n;
  }
  if (rw->n_pending < rw->pending_cap) return true;
  uint32_t cap = rw->pending_cap * 2;
  ir_op **grown = BASE_ARRAY(&rw->arena, ir_op *, cap);
  if (!grown) return false;
  memcpy(grown, rw->pending, rw->n_pending * sizeof(*grown));
  rw->pending = grown;
  rw->pending_cap = cap;
  return true;
}

/* Outside a run of the driver there is no list, and nothing to do. */
void opt_enqueue(opt_rewriter *rw, ir_op *op) {
  if (!rw->pending || !op || (op->id < rw->n_marks && rw->marks[op->id])) return;
  if (!greedy_room(rw, op->id)) {
    rw->failed = true;
    return;
  }
  rw->marks[op->id] = 1;
  rw->pending[rw->n_pending++] = op;
}

/* All ops, so that the first one of the text comes off first. */
static void greedy_fill(opt_rewriter *rw) {
  rw->pending_cap = rw->m->n_ids + 64;
  rw->pending = BASE_ARRAY(&rw->arena, ir_op *, rw->pending_cap);
  rw->n_pending = 0;
  if (rw->n_marks) memset(rw->marks, 0, rw->n_marks);
  rw->failed = rw->failed || !rw->pending || !greedy_room(rw, rw->m->n_ids);
  if (rw->failed) return;
  for (ir_computation *c = rw->m->last; c; c = c->prev)
    for (ir_op *op = c->last; op; op = op->prev) opt_enqueue(rw, op);
}

/* Dead ops go first. Ops without results are kept, for some do something (assertions): their purity is not asked for.
 */
static int greedy_visit(opt_rewriter *rw, ir_op *op, uint32_t n, const opt_pattern *patterns, bool *changed) {
  bool does_something = op->n_results == 0 && op->n_called == 0 && op->opcode != IR_OP_CUSTOM_CALL;
  if (!does_something && !opt_is_used(rw, op) && opt_is_pure(op)) {
    opt_erase(rw, op);
    return 0;
  }
  for (uint32_t i = 0; i < n && !*changed; i++) {
    if (patterns[i].opcode != IR_OP_INVALID && patterns[i].opcode != op->opcode) continue;
    opt_at(rw, op);
    TRY(patterns[i].fn(rw, op, changed));
    TRY(opt_rewriter_status(rw));
  }
  return 0;
}

/* What was erased has no mark any more, so that the list need not be searched for it. */
static int greedy_run(opt_rewriter *rw, uint32_t n, const opt_pattern *patterns) {
  uint64_t budget = ((uint64_t)rw->m->n_ids + 64) * REWRITE_ROUNDS;
  while (rw->n_pending && budget) {
    ir_op *op = rw->pending[--rw->n_pending];
    if (!rw->marks[op->id]) continue;
    rw->marks[op->id] = 0;
    bool changed = false;
    TRY(greedy_visit(rw, op, n, patterns, &changed));
    if (!changed) continue;
    budget--;
    bool linked = op->prev || op->parent->first == op;
    if (linked) opt_enqueue(rw, op);
  }
  return opt_rewriter_status(rw);
}

/* Afterwards opt_enqueue does nothing again. */
int opt_rewrite(opt_rewriter *rw, uint32_t n, const opt_pattern *patterns) {
  assert(n == 0 || patterns != NULL);
  greedy_fill(rw);
  int status = opt_rewriter_status(rw);
  if (status == 0) status = greedy_run(rw, n, patterns);
  rw->pending = NULL;
  rw->n_pending = rw->pending_cap = 0;
  return status;
}

/* Copies of regions' and functions' ops. */

/* What the values of the original have become: by op, the copy; arguments are in a table of their own. */
typedef struct copied_run {
  opt_rewriter *rw;
  const ir_computation *from;
  const ir_value *args;
  base_map copies; /* op to op */
} copied_run;

/* Values from outside of what is copied stay. */
static ir_value copied_value(const copied_run *x, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER && v.op->parent == x->from) return x->args[v.op->u.number];
  ir_op *copy = base_map_ptr(&x->copies, v.op);
  return copy ? (ir_value){copy, v.index} : v;
}

static void copied_ops(copied_run *x, const ir_computation *from);

/* The cursor goes into the new region and comes back. */
static void copied_region(copied_run *x, ir_op *copy, const ir_op *op, uint32_t index) {
  opt_rewriter *rw = x->rw, at = *rw;
  const ir_computation *from = op->called[index];
  ir_computation *to = opt_region(rw, copy, index);
  if (!to) return;
  to->declaration = from->declaration;
  to->return_loc = from->return_loc;
  ir_set_return_attrs(to, from->return_mlir);
  to->return_name = from->return_name;
  opt_at_end(rw, to, NULL);
  for (uint32_t i = 0; i < from->n_params && !rw->failed; i++) {
    ir_value p = opt_region_argument(rw, to, from->params[i]->type);
    if (!p.op) break;
    p.op->loc = from->params[i]->loc;
    rw->failed = !base_map_set(&x->copies, base_key(from->params[i]), base_key(p.op));
  }
  copied_ops(x, from);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)from->n_results + 1);
  rw->failed = rw->failed || !results;
  for (uint32_t i = 0; !rw->failed && i < from->n_results; i++) results[i] = copied_value(x, from->results[i]);
  if (!rw->failed) opt_set_results(rw, to, from->n_results, results);
  rw->into = at.into;
  rw->before = at.before;
  rw->origin = at.origin;
}

/* Attributes are immutable, and shared with the original; names are not copied. */
static void copied_op(copied_run *x, const ir_op *op) {
  opt_rewriter *rw = x->rw;
  ir_value *operands = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  rw->failed = rw->failed || !operands;
  for (uint32_t i = 0; !rw->failed && i < op->n_operands; i++) operands[i] = copied_value(x, opt_operand(op, i));
  ir_op *copy = rw->failed ? NULL
                           : opt_make_n(rw, (ir_opcode)op->opcode, op->n_results, op->types, op->n_operands, operands,
                                        op->n_called);
  if (!copy) return;
  ir_set_mlir(copy, op->mlir);
  copy->loc = op->loc;
  copy->line = op->line;
  copy->col = op->col;
  copy->properties = op->properties;
  copy->u = op->u;
  rw->failed = !base_map_set(&x->copies, base_key(op), base_key(copy));
  for (uint32_t i = 0; i < op->n_called && !rw->failed; i++) copied_region(x, copy, op, i);
}

static void copied_ops(copied_run *x, const ir_computation *from) {
  IR_FOR_OPS(op, from)
  if (op->opcode != IR_OP_PARAMETER && !x->rw->failed) copied_op(x, op);
}

/* Depth of regions is the text's, which the reader bounds. */
void opt_inline(opt_rewriter *rw, const ir_computation *from, const ir_value *args, ir_value *results) {
  copied_run x = {.rw = rw, .from = from, .args = args};
  base_map_init(&x.copies, rw->m->alloc);
  assert(from != rw->into);
  copied_ops(&x, from);
  for (uint32_t i = 0; i < from->n_results; i++)
    results[i] = rw->failed ? (ir_value){NULL, 0} : copied_value(&x, from->results[i]);
  base_map_free(&x.copies);
}

/* The op's regions see the original operands, and its own operands are the new ones. */
void opt_copy_op(opt_rewriter *rw, const ir_op *op, const ir_value *operands, ir_value *results) {
  copied_run x = {.rw = rw};
  base_map_init(&x.copies, rw->m->alloc);
  copied_op(&x, op);
  ir_op *copy = base_map_ptr(&x.copies, op);
  base_map_free(&x.copies);
  rw->failed = rw->failed || !copy;
  for (uint32_t i = 0; !rw->failed && i < op->n_operands; i++) ir_set_operand(copy, i, operands[i]);
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = (ir_value){copy, i};
}
