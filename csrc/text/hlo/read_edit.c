/* Setting one attribute of an op from text, for editors: text_parse_attr. */
#include "read.h"

/* --- names of the module and the computation --- */

static int know_computations(text_reader *r) {
  IR_FOR_COMPUTATIONS(c, r->m) {
    text_symbol *y = text_symbol_of(r, c->name->s, c->name->n);
    if (!y) return text_no_memory(r);
    y->comp = c;
  }
  return 0;
}

static int know_ops(text_reader *r, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    text_symbol *y = text_symbol_of(r, op->name->s, op->name->n);
    if (!y) return text_no_memory(r);
    y->op = op;
    y->scope = r->scope;
  }
  return 0;
}

/* --- cycles --- */

/* Pushes what has not been seen yet. */
static int push_new(text_reader *r, base_map *seen, const void *p) {
  uint64_t known;
  if (base_map_get(seen, base_key(p), &known)) return 0;
  if (!base_map_set(seen, base_key(p), 1) || !BASE_VEC_PUSH(r->alloc, &r->pointers, p)) return text_no_memory(r);
  return 0;
}

/* Whether `from` calls `wanted`, through any number of calls. */
static int calls_computation(text_reader *r, base_map *seen, const ir_computation *from, const ir_computation *wanted,
                             bool *found) {
  TRY(push_new(r, seen, from));
  while (r->pointers.n) {
    const ir_computation *c = r->pointers.items[--r->pointers.n];
    *found = *found || c == wanted;
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) TRY(push_new(r, seen, op->called[i]));
    }
  }
  return 0;
}

/* Whether `from` comes after `wanted`, through operands and control predecessors. */
static int follows_op(text_reader *r, base_map *seen, const ir_op *from, const ir_op *wanted, bool *found) {
  TRY(push_new(r, seen, from));
  while (r->pointers.n) {
    const ir_op *op = r->pointers.items[--r->pointers.n];
    *found = *found || op == wanted;
    for (uint32_t i = 0; i < op->n_operands; i++) TRY(push_new(r, seen, op->operands[i].op));
    for (uint32_t i = 0; i < op->n_control_preds; i++) TRY(push_new(r, seen, op->control_preds[i]));
  }
  return 0;
}

static int check_new_calls(text_reader *r, base_map *seen, const ir_op *op, const text_attr_scope *s) {
  for (uint32_t i = s->first_called; i < r->comps.n; i++) {
    const ir_computation *c = r->comps.items[i];
    bool found = false;
    if (!c) continue;
    base_map_clear(seen);
    TRY(calls_computation(r, seen, c, op->parent, &found));
    if (found)
      return text_fail(r, r->lx.text, XLAC_E_EDIT, "'%s' would call itself through '%s'", op->parent->name->s,
                       c->name->s);
  }
  return 0;
}

static int check_preds(text_reader *r, base_map *seen, const ir_op *op) {
  bool found = false;
  for (uint32_t i = 0; i < r->ops.n; i++) TRY(follows_op(r, seen, r->ops.items[i], op, &found));
  if (!found) return 0;
  return text_fail(r, r->lx.text, XLAC_E_EDIT, "'%s' would have to run before itself", op->name->s);
}

static int check_cycles(text_reader *r, const ir_op *op, const text_attr_scope *s) {
  base_map seen;
  base_map_init(&seen, r->alloc);
  int status = check_new_calls(r, &seen, op, s);
  base_map_clear(&seen);
  if (status == 0) status = check_preds(r, &seen, op);
  base_map_free(&seen);
  return status;
}

/* --- setting --- */

static int set_called(text_reader *r, ir_op *op, const text_attr_scope *s, bool list) {
  assert(r->comps.n >= s->first_called);
  uint32_t n = r->comps.n - s->first_called, total = list || n > op->n_called ? n : op->n_called;
  ir_computation **called = BASE_ARRAY(&r->m->arena, ir_computation *, (size_t)total + 1);
  if (!called) return text_no_memory(r);
  for (uint32_t i = 0; i < total; i++) {
    ir_computation *given = i < n ? r->comps.items[s->first_called + i] : NULL;
    called[i] = given || i >= op->n_called ? given : op->called[i];
    if (!called[i]) return text_fail(r, r->lx.text, XLAC_E_EDIT, "set the computation before this one first");
  }
  op->called = called;
  op->n_called = total;
  r->m->verified = false;
  return 0;
}

static int set_preds(text_reader *r, ir_op *op) {
  assert(r->m->n_control_edges >= op->n_control_preds);
  ir_op **preds = base_arena_memdup(&r->m->arena, r->ops.items, r->ops.n * sizeof *preds);
  if (!preds) return text_no_memory(r);
  r->m->n_control_edges += r->ops.n - op->n_control_preds;
  op->control_preds = preds;
  op->n_control_preds = r->ops.n;
  r->m->verified = false;
  return 0;
}

static bool is_called_list(unsigned key) {
  return key == IR_ATTR_BRANCH_COMPUTATIONS || key == IR_ATTR_CALLED_COMPUTATIONS;
}

static int set_from_text(text_reader *r, ir_op *op, unsigned key) {
  text_attr_scope s = {.opcode = op->opcode, .type = op->type};
  ir_attr a = ir_attr_make((ir_attr_key)key);
  s.pred = op->n_operands > 0 && ir_operand_type(op, 0)->dtype == XLAC_PRED;
  r->op_name = op->name;
  r->no_bodies = true;
  if (!text_takes_attr(r, &s, key))
    return text_fail(r, r->lx.text, XLAC_E_BAD_ATTRIBUTE, "%s has no attribute '%s'", ir_opcode_text(op->opcode),
                     ir_attr_table[key].text);
  if (a.kind == IR_KIND_CALLED) TRY(know_computations(r));
  if (a.kind == IR_KIND_OPS) TRY(know_ops(r, op->parent));
  unsigned kind = a.kind;
  TRY(text_read_value(r, &s, &a));
  if (r->lx.p != r->lx.end) return text_expected(r, XLAC_E_SYNTAX, "nothing more");
  TRY(check_cycles(r, op, &s));
  if (kind == IR_KIND_CALLED) return set_called(r, op, &s, is_called_list(key));
  if (kind == IR_KIND_OPS) return set_preds(r, op);
  if (a.key != IR_ATTR_NONE) return ir_attr_set(op, a) ? 0 : text_no_memory(r);
  ir_attr_remove(op, (ir_attr_key)key); /* an empty value is none */
  return 0;
}

int text_parse_attr(ir_op *op, const char *key, size_t key_n, const char *text, size_t n, xlac_error *err) {
  assert(op->parent);
  ir_module *m = op->parent->module;
  unsigned attr = ir_attr_from_text(key, key_n);
  text_reader r;
  if (attr == IR_ATTR_SLICE_SIZES && op->opcode != IR_OP_GATHER) attr = IR_ATTR_PERMUTE_SLICE_SIZES;
  if (attr == IR_ATTR_NONE)
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "there is no attribute '%.*s'", (int)(key_n < 60 ? key_n : 60), key);
  int status = text_reader_open(&r, m, m->alloc, text, n, NULL, err);
  if (status == 0) status = set_from_text(&r, op, attr);
  text_reader_close(&r);
  return status;
}
