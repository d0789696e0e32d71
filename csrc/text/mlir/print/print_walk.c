/* Before printing: names for values, and the locations that will be mentioned.
 *
 * Names as MLIR gives them: all values of a region are numbered before those of the regions inside it, which go on from
 * where the region ended; each sees the names of the regions around it only. In the generic form numbers never repeat;
 * as regions are taken from a stack, the last function has the lowest. */
#include "print.h"

/* A region to be named, and where numbering stands in it. Regions inside begin with a copy of the scope around them. */
typedef struct mprint_scope {
  const ir_computation *region;
  uint32_t value, arg, conflict; /* next numbers */
  uint32_t taken;                /* bit set of the stems in use */
} mprint_scope;
BASE_VEC(mprint_scopes, mprint_scope);

/* A name that is taken gets a suffix, from a counter that all stems share: %c, %cst, %c_0, %cst_1. */
static mprint_name mprint_fresh(mprint_scope *s, mprint_stem stem) {
  assert(stem > MPRINT_ARG && stem < MPRINT_OTHER);
  uint32_t bit = 1u << stem;
  bool clash = s->taken & bit;
  s->taken |= bit;
  return (mprint_name){clash ? s->conflict++ : MPRINT_PLAIN, (uint8_t)stem};
}

/* How many of a scan's operands are its initial values. */
static uint32_t mprint_scan_inits(const ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "operandSegmentSizes");
  if (!a || a->kind != IR_M_DENSE_ARRAY || !a->v.literal || a->v.literal->type->count != 2) return 0;
  const ir_literal *l = a->v.literal;
  int64_t n = base_load_i64(l->type->dtype, (const char *)l->data + base_dtype_bytes(l->type->dtype));
  return n > 0 && n <= op->n_operands ? (uint32_t)n : 0;
}

/* What MLIR's OpAsmOpInterface asks for: while's arguments are %iterArg, scan's %input and %carry. */
static mprint_stem mprint_argument_stem(const ir_computation *c, uint32_t i) {
  const ir_op *op = c->owner;
  if (!op || c->kind != IR_REGION) return MPRINT_ARG;
  if (op->opcode == IR_OP_WHILE) return MPRINT_ITER_ARG;
  if (op->opcode == IR_OP_SCAN) return i < op->n_operands - mprint_scan_inits(op) ? MPRINT_INPUT : MPRINT_CARRY;
  return MPRINT_ARG;
}

/* Constants of integers are %c, all others %cst. */
static mprint_stem mprint_result_stem(const ir_op *op) {
  if (op->opcode != IR_OP_CONSTANT) return MPRINT_NUMBER;
  const ir_type *t = op->type;
  base_dtype_kind kind = (base_dtype_kind)base_dtype_of(t->dtype)->kind;
  bool integer = kind == BASE_KIND_PRED || kind == BASE_KIND_SINT || kind == BASE_KIND_UINT;
  return integer && !t->quant && !t->text ? MPRINT_C : MPRINT_CST;
}

/* The names of results that have one each, or NULL. */
static const uint8_t *mprint_result_stems(const ir_op *op) {
  static const uint8_t rng[] = {MPRINT_OUTPUT_STATE, MPRINT_OUTPUT};
  static const uint8_t training[] = {MPRINT_OUTPUT, MPRINT_BATCH_MEAN, MPRINT_BATCH_VAR};
  static const uint8_t grad[] = {MPRINT_GRAD_OPERAND, MPRINT_GRAD_SCALE, MPRINT_GRAD_OFFSET};
  static const uint8_t split[] = {MPRINT_HEAD, MPRINT_TAIL};
  static const uint8_t top_k[] = {MPRINT_VALUES, MPRINT_INDICES};
  switch (op->opcode) {
    case IR_OP_RNG_BIT_GENERATOR:
      return op->n_results == 2 ? rng : NULL;
    case IR_OP_BATCH_NORM_TRAINING:
      return op->n_results == 3 ? training : NULL;
    case IR_OP_BATCH_NORM_GRAD:
      return op->n_results == 3 ? grad : NULL;
    case IR_OP_TOPK:
      return op->n_results == 2 ? top_k : NULL;
    case IR_OP_UNREGISTERED:
      return op->n_results == 2 && strcmp(op->u.name->s, "shape.split_at") == 0 ? split : NULL;
    default:
      return NULL;
  }
}

/* --- names of other dialects --- */

/* One key for a region and a name of mprint::other_ids. Ops of the module itself, each in a computation of its own, are
 * of one region. */
static uint64_t mprint_taken_key(const ir_computation *c, uint64_t id) {
  bool of_module = c->kind == IR_SYMBOL && !c->owner;
  return (uint64_t)(of_module ? UINT32_MAX : c->id) << 32 | id;
}

/* Whether the region, or one around it, has the name; how deep regions nest is bounded by who made them. */
static bool mprint_other_clashes(const mprint *p, const ir_computation *c, uint64_t id) {
  uint64_t there;
  for (; c; c = c->owner ? c->owner->parent : NULL)
    if (base_map_get(&p->other_taken, mprint_taken_key(c, id), &there)) return true;
  return false;
}

/* The names that stems stand for are taken in their bit sets. */
static mprint_stem mprint_stem_named(base_slice name) {
  if (base_slice_is(name, "c")) return MPRINT_C;
  return base_slice_is(name, "cst") ? MPRINT_CST : MPRINT_NUMBER;
}

/* The text is interned; *others keeps it with its suffix. false when out of memory. */
static bool mprint_name_other(mprint *p, mprint_scope *s, const ir_op *op, base_slice name) {
  const base_istr *text = base_intern(&p->other_texts, name.p, name.n);
  uint64_t id = 0;
  if (!text) return false;
  if (!base_map_get(&p->other_ids, base_key(text), &id)) {
    id = p->other_ids.n + 1;
    if (!base_map_set(&p->other_ids, base_key(text), id)) return false;
  }
  bool clash = mprint_other_clashes(p, s->region, id);
  mprint_other other = {text->s, text->n, clash ? s->conflict++ : MPRINT_PLAIN};
  p->names[op->id] = (mprint_name){p->others.n, MPRINT_OTHER};
  return BASE_VEC_PUSH(p->alloc, &p->others, other) &&
         (clash || base_map_set(&p->other_taken, mprint_taken_key(s->region, id), 1));
}

/* false when the op asks for no name of that sort. */
static bool mprint_name_foreign(mprint *p, mprint_scope *s, const ir_op *op) {
  base_text name;
  if (op->opcode != IR_OP_UNREGISTERED || p->generic) return false;
  base_text_init(&name, p->alloc);
  bool asks = mprint_foreign_name(&name, op);
  mprint_stem stem = mprint_stem_named((base_slice){name.s, name.n});
  if (asks && stem != MPRINT_NUMBER) {
    p->names[op->id] = mprint_fresh(s, stem);
  } else if (asks && (name.failed || !mprint_name_other(p, s, op, (base_slice){name.s, name.n}))) {
    p->failed = true;
  }
  base_text_free(&name);
  return asks;
}

/* Names the results of one op. In the generic form everything is numbered. */
static void mprint_name_op(mprint *p, mprint_scope *s, const ir_op *op) {
  if (mprint_name_foreign(p, s, op)) return;
  const uint8_t *each = p->generic ? NULL : mprint_result_stems(op);
  if (each) {
    p->names[op->id] = (mprint_name){p->each.n, MPRINT_EACH};
    for (uint32_t i = 0; i < op->n_results; i++)
      if (!BASE_VEC_PUSH(p->alloc, &p->each, mprint_fresh(s, (mprint_stem)each[i]))) p->failed = true;
    return;
  }
  mprint_stem stem = p->generic ? MPRINT_NUMBER : mprint_result_stem(op);
  p->names[op->id] = stem == MPRINT_NUMBER ? (mprint_name){s->value++, MPRINT_NUMBER} : mprint_fresh(s, stem);
}

/* Arguments first, then the ops in order. */
static void mprint_name_region(mprint *p, mprint_scope *s) {
  const ir_computation *c = s->region;
  for (uint32_t i = 0; i < c->n_params; i++) {
    mprint_stem stem = p->generic ? MPRINT_ARG : mprint_argument_stem(c, i);
    p->names[c->params[i]->id] = stem == MPRINT_ARG ? (mprint_name){s->arg++, MPRINT_ARG} : mprint_fresh(s, stem);
  }
  IR_FOR_OPS(op, c) {
    if (op->opcode != IR_OP_PARAMETER && op->n_results) mprint_name_op(p, s, op);
  }
}

/* Regions come off the stack in reverse, as in MLIR; that only matters for the generic form. */
static bool mprint_push_regions(mprint *p, mprint_scopes *stack, const ir_op *op, mprint_scope s) {
  for (uint32_t i = 0; i < op->n_called; i++) {
    s.region = op->called[i];
    if (!BASE_VEC_PUSH(p->alloc, stack, s)) return false;
  }
  return true;
}

/* A function's values are named by themselves; those within an op with a symbol belong to its own regions. */
static bool mprint_push_function(mprint *p, mprint_scopes *stack, const ir_computation *c) {
  mprint_scope s = {.region = c};
  if (c->kind == IR_FUNCTION) return BASE_VEC_PUSH(p->alloc, stack, s);
  return c->kind != IR_SYMBOL || !c->first || mprint_push_regions(p, stack, c->first, s);
}

/* Ops of the module itself see each other; functions see none of them. */
static mprint_scope mprint_name_symbols(mprint *p, const ir_module *m) {
  mprint_scope s = {0};
  IR_FOR_COMPUTATIONS(c, m) {
    s.region = c;
    IR_FOR_OPS(op, c) {
      if (c->kind == IR_SYMBOL && op->n_results) mprint_name_op(p, &s, op);
    }
  }
  return s;
}

/* Takes region after region off the stack; see the head of this file for the order. */
static bool mprint_name_all(mprint *p, mprint_scopes *stack, mprint_scope last) {
  while (stack->n) {
    mprint_scope s = stack->items[--stack->n];
    if (p->generic) {
      s.value = last.value;
      s.arg = last.arg;
    }
    mprint_name_region(p, &s);
    last = s;
    IR_FOR_OPS(op, s.region) {
      if (!mprint_push_regions(p, stack, op, s)) return false;
    }
  }
  return true;
}

/* Also called for texts of one op: then `c` is the function around it, and no other value is named. */
int mprint_name_values(mprint *p, const ir_module *m, const ir_computation *c, xlac_error *err) {
  assert(!p->names);
  base_interner_init(&p->other_texts, &p->arena);
  p->names = BASE_ARRAY(&p->arena, mprint_name, (size_t)m->n_ids + 1);
  if (!p->names) return base_oom(err, "names");
  memset(p->names, 0, ((size_t)m->n_ids + 1) * sizeof *p->names);
  mprint_scopes stack = {0};
  mprint_scope outer = mprint_name_symbols(p, m);
  bool ok = true;
  if (c)
    ok = mprint_push_function(p, &stack, c);
  else
    IR_FOR_COMPUTATIONS(f, m) ok = ok && mprint_push_function(p, &stack, f);
  ok = ok && mprint_name_all(p, &stack, outer);
  BASE_VEC_FREE(p->alloc, &stack);
  return ok && !p->failed ? 0 : base_oom(err, "names");
}

/* --- locations, in the order in which MLIR meets them --- */

static void mprint_visit_op(mprint *p, const ir_op *op);

/* Arguments' locations are printed in place, but what they mention is defined early. */
static void mprint_visit_arguments(mprint *p, const ir_computation *c) {
  for (uint32_t i = 0; i < c->n_params; i++) mprint_loc_visit(p, c->params[i]->loc, true);
}

/* In the order in which the text mentions them. */
static void mprint_visit_block(mprint *p, const ir_computation *c) {
  if (c->declaration) return;
  IR_FOR_OPS(op, c) {
    if (op->opcode != IR_OP_PARAMETER) mprint_visit_op(p, op);
  }
  if (!mprint_is_silent_return(p, c)) mprint_loc_visit(p, c->return_loc, false);
}

/* A reducer's arguments are printed in pairs. */
static void mprint_visit_reducer(mprint *p, const ir_op *op) {
  const ir_computation *c = op->called[0];
  assert(c->n_params % 2 == 0);
  uint32_t half = c->n_params / 2;
  for (uint32_t i = 0; i < half; i++) {
    mprint_loc_visit(p, c->params[i]->loc, true);
    mprint_loc_visit(p, c->params[half + i]->loc, true);
  }
  mprint_visit_block(p, c);
}

/* An op's own location comes before those of its regions. */
static void mprint_visit_op(mprint *p, const ir_op *op) {
  mprint_loc_visit(p, op->loc, false);
  if (!p->generic && op->opcode == IR_OP_REDUCE && op->n_called == 1) {
    if (!mprint_reduce_is_compact(op)) mprint_visit_reducer(p, op);
    return;
  }
  bool arguments = p->generic || op->opcode != IR_OP_WHILE;
  for (uint32_t i = 0; i < op->n_called; i++) {
    if (arguments && !op->called[i]->declaration) mprint_visit_arguments(p, op->called[i]);
    mprint_visit_block(p, op->called[i]);
  }
}

/* The function's own location, then its arguments', then those of its ops, in the order of MLIR's printer. */
void mprint_visit_function(mprint *p, const ir_computation *c) {
  if (c->kind == IR_SYMBOL) {
    if (c->first) mprint_visit_op(p, c->first);
    return;
  }
  mprint_loc_visit(p, c->loc, false);
  if (c->declaration) return;
  mprint_visit_arguments(p, c);
  mprint_visit_block(p, c);
}
