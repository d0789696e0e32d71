/* From MLIR form to HLO form: types, values, functions, regions, the end of a module. The ops are in to_hlo_ops.c.
 *
 * Regions become computations of their own. HLO's may use nothing from outside of them; StableHLO's may. What a
 * reducer or comparator uses from outside must be constants, which are made again inside; what a while or a branch
 * uses is passed in (to_hlo_control.c). */
#include "../ir/check/check.h"
#include "to_hlo.h"

#include <stdio.h>

/* ---- From MLIR form to HLO form: types, and which of them HLO has. */

/* Element by element. */
static const ir_type *to_hlo_tuple_type(to_hlo *t, const ir_type *type) {
  const ir_type **elements = BASE_ARRAY(&t->to->arena, const ir_type *, type->n_elements + 1u);
  for (uint32_t i = 0; elements && i < type->n_elements; i++)
    if (!(elements[i] = to_hlo_type(t, type->elements[i]))) return NULL;
  return elements ? ir_tuple(t->to, type->n_elements, elements) : NULL;
}

/*   tensor<2x?xf32, #stablehlo.bounds<?, 5>>    f32[2,<=5]{1,0}
 *   !stablehlo.future<tensor<2xf32>>            f32[2]{0}
 *   tuple<tensor<f32>, !stablehlo.token>        (f32[], token[])
 *
 * HLO's types in memory have layouts, MLIR's have none: they get the default one. */
const ir_type *to_hlo_type(to_hlo *t, const ir_type *type) {
  if (ir_is_tuple(type) || type->kind == IR_TYPE_FUTURE)
    return type->kind == IR_TYPE_FUTURE && type->n_elements == 1 ? to_hlo_type(t, type->elements[0])
                                                                 : to_hlo_tuple_type(t, type);
  if (!ir_is_tensor(type)) return ir_type_import(t->to, type);
  const ir_type *plain =
      type->quant ? ir_tensor_mlir(t->to, (base_dtype)type->dtype, type->quant, NULL, type->rank, type->dims,
                                   type->dynamic, NULL, NULL)
                  : ir_tensor(t->to, (base_dtype)type->dtype, type->rank, type->dims, type->dynamic, NULL, NULL);
  const ir_layout *layout = ir_layout_default(t->to, type->rank);
  return plain && layout ? ir_type_with_layout(t->to, plain, layout) : NULL;
}

/* `hint` says what to do about it. */
static int to_hlo_refuse_type(const to_hlo *t, const ir_op *op, const ir_type *type, const char *hint) {
  return base_hint(t->err,
                   to_hlo_fail(t, op, XLAC_E_VERIFY_SHAPE, "%s has the type %s, which HLO does not have",
                               op->opcode == IR_OP_PARAMETER ? "an argument" : "a result", IR_SHOW(type)),
                   "%s", hint);
}

int to_hlo_check_type(const to_hlo *t, const ir_op *op, const ir_type *type) {
  if (type->quant)
    return to_hlo_refuse_type(t, op, type,
                              "run the pass stablehlo-legalize-quant-to-math first: it computes on the "
                              "stored integers");
  if (type->kind >= IR_TYPE_UNRANKED || type->text)
    return to_hlo_refuse_type(t, op, type, "HLO has ranked tensors of numbers, tuples of them, and tokens");
  if (ir_is_tensor(type) && ir_is_unbounded(type))
    return to_hlo_refuse_type(t, op, type,
                              "HLO has bounded dimensions only: give the arguments static types with the pass "
                              "stablehlo-refine-arguments and run stablehlo-refine-shapes first, or give the "
                              "dimensions bounds");
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(to_hlo_check_type(t, op, type->elements[i]));
  return 0;
}

int to_hlo_check_results(const to_hlo *t, const ir_op *op) {
  if (t->options.executable) return 0; /* it keeps StableHLO's types for the interpreter */
  for (uint32_t i = 0; i < op->n_results; i++) TRY(to_hlo_check_type(t, op, op->types[i]));
  return 0;
}

int to_hlo_fail(const to_hlo *t, const ir_op *op, base_code code, const char *format, ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(t->err, code, op->line, op->col, op->name->s, "%s", message);
}

int to_hlo_no_memory(const to_hlo *t) {
  return base_oom(t->err, "translating to HLO");
}

/* --- values --- */

int to_hlo_bind(to_hlo *t, const ir_op *op, ir_op *const *results) {
  assert(t && op && (op->n_results == 0 || results));
  ir_op **kept = BASE_ARRAY(&t->to->arena, ir_op *, op->n_results + 1u);
  if (!kept) return to_hlo_no_memory(t);
  if (op->n_results) memcpy(kept, results, op->n_results * sizeof *kept);
  return base_map_set(&t->values, base_key(op), base_key(kept)) ? 0 : to_hlo_no_memory(t);
}

ir_op *to_hlo_value(const to_hlo *t, ir_value v) {
  assert(v.op && v.index < v.op->n_results);
  ir_op **results = base_map_ptr(&t->values, v.op);
  return results ? results[v.index] : NULL;
}

/* Names are made up from the opcode ("add.3"): StableHLO's values have none that stay. Line, column and what any op
 * may carry are the source op's; x->op is NULL for what is made on the way into a region. */
ir_op *to_hlo_emit(to_hlo_op *x, ir_opcode opcode, const ir_type *type, uint32_t n, ir_op *const *operands,
                   uint32_t n_called) {
  assert(x->into && (n == 0 || operands));
  const base_istr *name = ir_fresh_name(x->t->to, ir_opcode_text(opcode));
  ir_op *op = name && type ? ir_op_new(x->into, opcode, type, name, n, n_called) : NULL;
  if (!op) return NULL;
  for (uint32_t i = 0; i < n; i++) ir_set_operand(op, i, (ir_value){operands[i], 0});
  if (x->op) {
    op->line = x->op->line;
    op->col = x->op->col;
    if (to_hlo_common(x->t, x->op, op) != 0) return NULL;
  }
  return op;
}

/*   %e = f32[8] get-tuple-element(%sort), index=0 */
static ir_op *to_hlo_element(to_hlo_op *x, ir_op *tuple, uint32_t index) {
  assert(ir_is_tuple(tuple->type) && index < tuple->type->n_elements);
  ir_op *e = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, tuple->type->elements[index], 1, &tuple, 0);
  return e && ir_set_int(e, IR_ATTR_INDEX, index) ? e : NULL;
}

int to_hlo_results(to_hlo_op *x, ir_op *made) {
  if (!made) return to_hlo_no_memory(x->t);
  if (x->op->n_results == 1) {
    x->results[0] = made;
    return 0;
  }
  for (uint32_t i = 0; i < x->op->n_results; i++)
    if (!(x->results[i] = to_hlo_element(x, made, i))) return to_hlo_no_memory(x->t);
  return 0;
}

const ir_type *to_hlo_result_type(to_hlo_op *x) {
  const ir_op *op = x->op;
  if (op->n_results == 1) return to_hlo_type(x->t, op->type);
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, op->n_results + 1u);
  for (uint32_t i = 0; types && i < op->n_results; i++)
    if (!(types[i] = to_hlo_type(x->t, op->types[i]))) return NULL;
  return types ? ir_tuple(x->t->to, op->n_results, types) : NULL;
}

/* --- computations --- */

/* HLO's computation gives its root. Several results, or none, or one where `tuple` asks for it, are packed. */
int to_hlo_finish(to_hlo *t, ir_computation *into, uint32_t n, ir_op *const *results, bool tuple) {
  assert(n == 0 || results);
  to_hlo_op x = {.t = t, .into = into};
  ir_op *root = n == 1 && !tuple ? results[0] : NULL;
  if (!root) {
    const ir_type **types = BASE_ARRAY(&t->to->arena, const ir_type *, n + 1u);
    for (uint32_t i = 0; types && i < n; i++) types[i] = results[i]->type;
    root = types ? to_hlo_emit(&x, IR_OP_TUPLE, ir_tuple(t->to, n, types), n, results, 0) : NULL;
  }
  return root && ir_set_root(into, root) ? 0 : to_hlo_no_memory(t);
}

/* Parameters of `from` as parameters of `into`. The parameter's number is its place. */
static int to_hlo_params(to_hlo *t, const ir_computation *from, ir_computation *into) {
  for (uint32_t i = 0; i < from->n_params; i++) {
    const ir_op *p = from->params[i];
    to_hlo_op x = {.t = t, .op = p, .into = into};
    TRY(to_hlo_check_results(t, p));
    ir_op *made = to_hlo_emit(&x, IR_OP_PARAMETER, to_hlo_type(t, p->type), 0, NULL, 0);
    if (!made || !ir_set_parameter(made, i)) return to_hlo_no_memory(t);
    TRY(to_hlo_bind(t, p, &made));
  }
  return 0;
}

/* One op: operands are looked up, the rule is run, and what the op has become is kept. */
static int to_hlo_statement(to_hlo *t, const ir_op *op, ir_computation *into) {
  ir_op **operands = BASE_ARRAY(&t->to->arena, ir_op *, op->n_operands + 1u);
  ir_op **results = BASE_ARRAY(&t->to->arena, ir_op *, op->n_results + 1u);
  if (!operands || !results) return to_hlo_no_memory(t);
  TRY(to_hlo_check_results(t, op));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = {op->operands[i].op, op->operands[i].index};
    if (!(operands[i] = to_hlo_value(t, v)))
      return to_hlo_fail(t, op, XLAC_E_VERIFY_STRUCTURE, "operand %u is not defined before its use", i);
  }
  to_hlo_op x = {t, op, into, operands, results};
  TRY(to_hlo_one(&x));
  return to_hlo_bind(t, op, results);
}

int to_hlo_body(to_hlo *t, const ir_computation *from, ir_computation *into) {
  if (++t->depth > TO_HLO_MAX_DEPTH)
    return base_fail(t->err, XLAC_E_TOO_DEEP, "functions and regions nest deeper than %d", TO_HLO_MAX_DEPTH);
  IR_FOR_OPS(op, from) {
    if (op->opcode != IR_OP_PARAMETER) TRY(to_hlo_statement(t, op, into));
  }
  t->depth--;
  return 0;
}

/* The ops that stand for what the function or region returns. */
static int to_hlo_returned(to_hlo *t, const ir_computation *from, ir_op ***out) {
  *out = BASE_ARRAY(&t->to->arena, ir_op *, from->n_results + 1u);
  if (!*out) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < from->n_results; i++)
    if (!((*out)[i] = to_hlo_value(t, from->results[i])))
      return base_fail(t->err, XLAC_E_VERIFY_STRUCTURE, "%s returns a value that nothing defines", from->name->s);
  return 0;
}

/* Parameters, body, root: all of a function. */
static int to_hlo_fill(to_hlo *t, const ir_computation *from, ir_computation *into, bool tuple) {
  ir_op **results;
  TRY(to_hlo_params(t, from, into));
  TRY(to_hlo_body(t, from, into));
  TRY(to_hlo_returned(t, from, &results));
  return to_hlo_finish(t, into, from->n_results, results, tuple);
}

/* Constants from outside are made again inside; nothing else may be captured. */
static int to_hlo_bring_capture(to_hlo_op *x, const ir_op *user, const ir_op *source, ir_computation *into) {
  if (source->opcode == IR_OP_CONSTANT) return to_hlo_statement(x->t, source, into);
  return base_hint(x->t->err,
                   to_hlo_fail(x->t, user, XLAC_E_VERIFY_CALLED,
                               "the region uses %%%s from outside; HLO has no captures here", source->name->s),
                   "only constants may be used from outside in the region of a reduction, sort, scatter or map");
}

/* Regions within the region are looked through too, each for what is not its own. */
static int to_hlo_bring_captures(to_hlo_op *x, const ir_computation *region, ir_computation *into) {
  IR_FOR_OPS(op, region) {
    for (uint32_t i = 0; i < op->n_operands; i++)
      if (op->operands[i].op->parent != region) TRY(to_hlo_bring_capture(x, op, op->operands[i].op, into));
    for (uint32_t i = 0; i < op->n_called; i++) TRY(to_hlo_bring_captures(x, op->called[i], into));
  }
  for (uint32_t i = 0; i < region->n_results; i++)
    if (region->results[i].op->parent != region)
      TRY(to_hlo_bring_capture(x, region->owner, region->results[i].op, into));
  return 0;
}

/* Values of constants that were rebound for a region are put back by translating the outer op's binding anew. */
static int to_hlo_restore_one(to_hlo_op *x, const ir_op *source, const base_map *saved) {
  void *old = base_map_ptr(saved, source);
  return !old || base_map_set(&x->t->values, base_key(source), base_key(old)) ? 0 : to_hlo_no_memory(x->t);
}

static int to_hlo_restore(to_hlo_op *x, const ir_computation *region, const base_map *saved) {
  IR_FOR_OPS(op, region) {
    for (uint32_t i = 0; i < op->n_operands; i++) TRY(to_hlo_restore_one(x, op->operands[i].op, saved));
    for (uint32_t i = 0; i < op->n_called; i++) TRY(to_hlo_restore(x, op->called[i], saved));
  }
  for (uint32_t i = 0; i < region->n_results; i++) TRY(to_hlo_restore_one(x, region->results[i].op, saved));
  return 0;
}

/* What a source op from outside of the region stands for before the region is translated; nothing where it has no
 * translation yet. */
static int to_hlo_save_one(to_hlo_op *x, const ir_computation *region, const ir_op *source, base_map *saved) {
  void *old = source->parent == region ? NULL : base_map_ptr(&x->t->values, source);
  return !old || base_map_set(saved, base_key(source), base_key(old)) ? 0 : to_hlo_no_memory(x->t);
}

/* For all that the region uses from outside; to_hlo_restore is the way back. */
static int to_hlo_save(to_hlo_op *x, const ir_computation *region, base_map *saved) {
  IR_FOR_OPS(op, region) {
    for (uint32_t i = 0; i < op->n_operands; i++) TRY(to_hlo_save_one(x, region, op->operands[i].op, saved));
    for (uint32_t i = 0; i < op->n_called; i++) TRY(to_hlo_save(x, op->called[i], saved));
  }
  for (uint32_t i = 0; i < region->n_results; i++) TRY(to_hlo_save_one(x, region, region->results[i].op, saved));
  return 0;
}

/*   ({ ^bb0(%a, %b): %s = stablehlo.add %a, %b; stablehlo.return %s })
 *
 *   %region.1 { %a = f32[] parameter(0)  %b = f32[] parameter(1)  ROOT %s = f32[] add(%a, %b) }
 *
 * Bindings are saved about it, since the constants that it brings in are bound to copies while it is translated. */
int to_hlo_scalar_region(to_hlo_op *x, const ir_computation *region, ir_computation **out) {
  assert(region && out);
  to_hlo *t = x->t;
  const base_istr *name = ir_fresh_name(t->to, "region");
  ir_computation *c = name ? ir_computation_new(t->to, name->s, name->n) : NULL;
  if (!c) return to_hlo_no_memory(t);
  base_map saved;
  base_map_init(&saved, t->to->alloc);
  int status = to_hlo_save(x, region, &saved);
  if (status == 0) status = to_hlo_params(t, region, c);
  if (status == 0) status = to_hlo_bring_captures(x, region, c);
  ir_op **results = NULL;
  if (status == 0) status = to_hlo_body(t, region, c);
  if (status == 0) status = to_hlo_returned(t, region, &results);
  if (status == 0) status = to_hlo_finish(t, c, region->n_results, results, false);
  if (status == 0) status = to_hlo_restore(x, region, &saved);
  base_map_free(&saved);
  *out = c;
  return status;
}

/* --- functions --- */

/* NULL where the module has no such function. */
static const ir_computation *to_hlo_find(const ir_module *m, const base_istr *name) {
  assert(name);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind == IR_FUNCTION && c->name == name) return c;
  }
  return NULL;
}

/* Counts one mention in an attribute: a symbol, or an array of them. False when out of memory. */
static bool to_hlo_mention(to_hlo *t, const ir_mattr *a) {
  uint64_t n = 0;
  if (!a) return true;
  if (a->kind == IR_M_ARRAY) {
    for (uint32_t i = 0; i < a->v.list->n; i++)
      if (a->v.list->v[i]->kind == IR_M_SYMBOL && !to_hlo_mention(t, a->v.list->v[i])) return false;
    return true;
  }
  if (a->kind != IR_M_SYMBOL) return true;
  const base_istr *name = a->v.list->v[0]->str;
  (void)base_map_get(&t->mentions, base_key(name), &n);
  return base_map_set(&t->mentions, base_key(name), n + 1);
}

/* How often each function is named, for to_hlo_mentioned_once. */
static int to_hlo_count_mentions(to_hlo *t) {
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, t->from) {
    IR_FOR_OPS(op, c) {
      ok = ok && to_hlo_mention(t, ir_mattr_of(op, "callee")) && to_hlo_mention(t, ir_mattr_of(op, "decomposition")) &&
           to_hlo_mention(t, ir_mattr_of(op, "called_computations"));
    }
  }
  return ok ? 0 : to_hlo_no_memory(t);
}

bool to_hlo_mentioned_once(const to_hlo *t, const base_istr *name) {
  uint64_t n = 0;
  return base_map_get(&t->mentions, base_key(name), &n) && n == 1;
}

/* While it is being translated the table holds 0 for it: whoever asks for it then is itself within it. */
int to_hlo_function(to_hlo_op *x, const base_istr *name, ir_computation **out) {
  to_hlo *t = x->t;
  const ir_computation *from = to_hlo_find(t->from, name);
  if (!from || from->declaration || ir_returns_otherwise(from))
    return to_hlo_fail(t, x->op, XLAC_E_UNKNOWN_NAME, "'%s' does not reference a function with a body", name->s);
  uint64_t known;
  if (base_map_get(&t->functions, base_key(from), &known)) {
    *out = (ir_computation *)(uintptr_t)known;
    if (*out) return 0;
    return to_hlo_fail(t, x->op, XLAC_E_VERIFY_CALLED, "function @%s calls itself; HLO has no recursion", name->s);
  }
  const base_istr *fresh = to_hlo_fresh_name(t, name);
  ir_computation *c = fresh ? ir_computation_new(t->to, fresh->s, fresh->n) : NULL;
  if (!c || !base_map_set(&t->functions, base_key(from), 0)) return to_hlo_no_memory(t);
  TRY(to_hlo_fill(t, from, c, false));
  if (!base_map_set(&t->functions, base_key(from), base_key(c))) return to_hlo_no_memory(t);
  *out = c;
  return 0;
}

/* The entry, and with it all functions that it calls; what nothing calls is left out. */
static int to_hlo_module(to_hlo *t) {
  const ir_computation *entry = t->entry;
  if (!entry || entry->kind != IR_FUNCTION || entry->declaration || ir_returns_otherwise(entry))
    return base_hint(t->err, base_fail(t->err, XLAC_E_VERIFY_STRUCTURE, "the module has no function to enter by"),
                     "give it a function @main with a body that func.return ends");
  const base_istr *fresh = to_hlo_fresh_name(t, entry->name);
  ir_computation *c = fresh ? ir_computation_new(t->to, fresh->s, fresh->n) : NULL;
  if (!c) return to_hlo_no_memory(t);
  t->to->entry = c;
  TRY(to_hlo_count_mentions(t));
  if (!base_map_set(&t->functions, base_key(entry), 0)) return to_hlo_no_memory(t);
  TRY(to_hlo_fill(t, entry, c, t->options.return_tuple));
  return to_hlo_module_facts(t, entry);
}

/* The module keeps its name, made one that HLO can write; a module without a name is "main". */
int convert_to_hlo(ir_module **out, ir_module *m, const convert_to_hlo_options *options, xlac_error *err) {
  *out = NULL;
  if (m->form != IR_FORM_MLIR) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the module is in HLO form already");
  if (!ir_verified_as(m)) TRY(stablehlo_verify(m, err));
  to_hlo t = {.from = m, .err = err};
  if (options) t.options = *options;
  t.entry = t.options.entry ? t.options.entry : m->entry;
  TRY(ir_module_create(&t.to, "main", m->alloc, err));
  const base_istr *name = m->named ? to_hlo_name(&t, m->name) : t.to->name;
  if (!name) {
    ir_module_destroy(t.to);
    return base_oom(err, "a name");
  }
  t.to->name = name;
  base_map_init(&t.values, m->alloc);
  base_map_init(&t.functions, m->alloc);
  base_map_init(&t.mentions, m->alloc);
  int status = to_hlo_module(&t);
  if (status == 0 && !t.options.executable) status = to_hlo_settle(&t);
  base_map_free(&t.values);
  base_map_free(&t.functions);
  base_map_free(&t.mentions);
  if (status != 0) {
    ir_module_destroy(t.to);
    return status;
  }
  /* The executable form has types and ops that HLO's rules know nothing of; StableHLO's have checked it already. */
  if (t.options.executable) ir_note_verified(t.to, IR_VERIFIED);
  if (t.options.executable) t.to->unbounded = true;
  if (t.options.executable) t.to->config.is_scheduled = true; /* effects happen in the order of the text */
  *out = t.to;
  return 0;
}

/* ---- From MLIR form to HLO form, the end of it: the ops come into the order in which they are printed, and the module
 * is verified, so that nothing is handed out that HLO does not have. */

/* Computations are printed in the order in which ops call them, and ops in post-order: once the ops stand in that
 * order, what is printed and read again is printed the same. */
static bool to_hlo_order(ir_computation *c, base_arena *arena) {
  uint32_t n = 0;
  ir_op **order = ir_post_order(c, arena, &n);
  if (!order) return false;
  for (uint32_t i = 0; i < n; i++)
    if (i + 1 < n || order[i] != c->last) ir_op_move(order[i], NULL);
  return true;
}

/* StableHLO takes more than HLO does. The hint is for those who gave a correct StableHLO program. An error that has a
 * hint of its own keeps it. */
static int to_hlo_verify(to_hlo *t) {
  const ir_verify_options lenient = {.xla_compat = true};
  int status = ir_verify(t->to, &lenient, t->err);
  if (status == 0 || status == -XLAC_E_OUT_OF_MEMORY || (t->err && t->err->hint[0])) return status;
  return base_hint(t->err, status,
                   "this is how the StableHLO op reads in HLO, which does not allow it; the module can be compiled and "
                   "interpreted as it is");
}

/* The order of each computation needs memory for a moment only. */
int to_hlo_settle(to_hlo *t) {
  base_arena arena;
  base_arena_init(&arena, t->to->alloc);
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, t->to) {
    base_arena_mark here = base_arena_here(&arena);
    ok = ok && to_hlo_order(c, &arena);
    base_arena_back(&arena, here);
  }
  base_arena_free(&arena);
  return ok ? to_hlo_verify(t) : to_hlo_no_memory(t);
}
