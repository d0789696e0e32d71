/* Refinement of shapes: the parameters' types first, then what follows from them. */
#include <stdio.h>

#include "../../ir/stablehlo/stablehlo.h"
#include "../../ir/stablehlo/verify.h"
#include "../../text/mlir/mlir.h"
#include "../rewrite/fold.h"
#include "refine.h"

/* stablehlo-refine-arguments: gives the parameters of @main (or of the only function) more specific types.
 * Requires: a type for each parameter. Preserves: the body, which sees the old types through custom calls until
 * stablehlo-refine-shapes has gone over it. */

int opt_refine_fail(const opt_rewriter *rw, const ir_computation *c, base_code code, const char *format, ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(rw->err, code, c->line, c->col, "func.func", "@%s %s", c->name->s, message);
}

/* jax.export names it main; a module of one function needs no name. */
int opt_refine_target(ir_module *m, ir_computation **out, xlac_error *err) {
  ir_computation *only = NULL, *main = NULL;
  uint32_t n = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    only = c;
    n++;
    if (strcmp(c->name->s, "main") == 0) main = c;
  }
  *out = n == 1 ? only : main;
  if (!*out)
    return base_fail(err, XLAC_E_VERIFY_STRUCTURE,
                     "the module has %u functions and no @main, which would be the one to refine", n);
  if ((*out)->declaration)
    return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, (*out)->line, (*out)->col, "func.func",
                        "@%s has no body to refine", (*out)->name->s);
  return 0;
}

/* Quantisation parameters are part of the element type. */
static bool arguments_same_element(const ir_type *a, const ir_type *b) {
  return a->dtype == b->dtype && a->text == b->text && ir_quant_equal(a->quant, b->quant);
}

/* NULL where `to` refines `from`, else what is wrong. */
static const char *arguments_problem(const ir_type *from, const ir_type *to) {
  bool from_shaped = ir_is_tensor(from) || from->kind == IR_TYPE_UNRANKED;
  bool to_shaped = ir_is_tensor(to) || to->kind == IR_TYPE_UNRANKED;
  if (from == to) return NULL;
  if (!from_shaped || !to_shaped) return "both are expected to be tensors";
  if (!arguments_same_element(from, to)) return "expected the same element type";
  if (!ir_is_tensor(to)) return "expected a type with a rank";
  if (!ir_is_tensor(from)) return NULL;
  if (from->rank != to->rank) return "expected the same rank";
  for (uint32_t d = 0; d < to->rank; d++)
    if (!ir_dim_is_dynamic(from, d) && (ir_dim_is_dynamic(to, d) || from->dims[d] != to->dims[d]))
      return "expected known sizes to stay";
  return NULL;
}

/* All or nothing: types are checked before any parameter changes. */
static int arguments_check(const opt_rewriter *rw, const ir_computation *c, uint32_t n, const ir_type *const *types) {
  if (n != c->n_params)
    return opt_refine_fail(rw, c, XLAC_E_ARGUMENT_COUNT, "has %u arguments; %u types were given", c->n_params, n);
  for (uint32_t i = 0; i < n; i++) {
    const char *problem = arguments_problem(c->params[i]->type, types[i]);
    if (!problem) continue;
    return opt_refine_fail(rw, c, XLAC_E_ARGUMENT_TYPE, "can't have argument %u of %s refined to %s: %s", i,
                           SV_SHOW(c->params[i]->type), SV_SHOW(types[i]), problem);
  }
  return 0;
}

/* %arg0 : new type; %0 = custom_call @stablehlo.shape_refinement_operand_wrapper(%arg0, sizes) : old type, which
 * users read. */
static void arguments_wrap(opt_rewriter *rw, ir_computation *c, ir_op *parameter, const ir_type *type) {
  assert(ir_is_tensor(type));
  const ir_type *before = parameter->type;
  int64_t sizes[IR_MAX_RANK], one = 1, index = 1;
  for (uint32_t d = 0; d < type->rank; d++) sizes[d] = ir_dim_is_dynamic(type, d) ? INT64_MIN : type->dims[d];
  opt_at_start(rw, c);
  rw->origin = parameter;
  ir_value both[] = {{parameter, 0}, opt_i64s(rw, type->rank, sizes)};
  ir_value call = opt_make(rw, IR_OP_CUSTOM_CALL, before, 2, both);
  opt_set(rw, call, "call_target_name", ir_m_string(rw->m, OPT_REFINE_WRAPPER, strlen(OPT_REFINE_WRAPPER)));
  opt_set(rw, call, "indices_of_shape_operands", ir_m_dense_i64(rw->m, 1, &one, &index));
  if (rw->failed) return;
  opt_replace_results(rw, parameter, &call);
  ir_set_operand(call.op, 0, (ir_value){parameter, 0});
  opt_set_type(rw, (ir_value){parameter, 0}, type);
}

/* From the last to the first: each wrapper goes to the start of the function, so that they come out in order. */
int opt_refine_parameters(opt_rewriter *rw, ir_computation *c, uint32_t n, const ir_type *const *types) {
  TRY(arguments_check(rw, c, n, types));
  for (uint32_t i = n; i-- > 0 && !rw->failed;)
    if (c->params[i]->type != types[i]) arguments_wrap(rw, c, c->params[i], types[i]);
  return opt_rewriter_status(rw);
}

/* The next type of the list, up to a comma outside of brackets: "tensor<4x8xf32>,tensor<2xi32>". The > of an arrow
 * closes nothing. */
static base_slice arguments_next(base_slice *rest) {
  uint32_t depth = 0;
  size_t i = 0;
  for (; i < rest->n; i++) {
    char ch = rest->p[i];
    bool arrow = ch == '>' && i > 0 && rest->p[i - 1] == '-';
    if (ch == '<' || ch == '(' || ch == '[' || ch == '{') depth++;
    if (depth && !arrow && (ch == '>' || ch == ')' || ch == ']' || ch == '}')) depth--;
    if (ch == ',' && depth == 0) break;
  }
  base_slice one = {rest->p, i};
  size_t gone = i < rest->n ? i + 1 : i;
  *rest = (base_slice){rest->p + gone, rest->n - gone};
  return one;
}

/* There are at most as many types as characters. */
int opt_refine_arguments(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  ir_computation *target = NULL;
  base_slice rest = opt_get_text(args, "types");
  TRY(opt_refine_target(m, &target, err));
  TRY(opt_rewriter_init(&rw, m, err));
  const ir_type **types = BASE_ARRAY(&rw.arena, const ir_type *, rest.n + 1);
  uint32_t n = 0;
  int status = types ? 0 : base_oom(err, "a pass");
  while (status == 0 && rest.n) {
    base_slice text = arguments_next(&rest);
    status = text_parse_mlir_type(m, text.p, text.n, &types[n++], err);
    assert(n <= rest.n + text.n + 1 || status != 0);
  }
  if (status == 0) status = opt_refine_parameters(&rw, target, n, types);
  opt_rewriter_free(&rw);
  return status;
}

/* stablehlo-refine-shapes: makes the shapes of @main (or of the only function) and of all that it calls as static as
 * its parameters' types allow. One walk in program order does it, since types and sizes flow from operands to results:
 * result types are inferred again, and what computes sizes is folded. A function is refined for its first call;
 * arguments that are known integers become constants in it and leave its signature.
 * Requires: all calls of a function to agree, no recursion. Preserves: what the program computes. */

enum { REFINE_MAX_DEPTH = 500, REFINE_MAX_ELEMENTS = 1 << 16 };
/* A function that is running calls itself. */
typedef enum refine_state { REFINE_NEW, REFINE_RUNNING, REFINE_DONE } refine_state;

/* What a function is refined for: arguments without the known integers, and those. */
typedef struct refine_key {
  uint32_t n_tokens, n_constants, n_types; /* the types include the leading tokens */
  const ir_value *constants;
  const ir_type **types;
} refine_key;

/* pure: calls whose results are all known can go. */
typedef struct refine_function {
  uint8_t state;
  bool pure;
  refine_key key;
} refine_function;

typedef struct refine_run {
  opt_rewriter rw;
  opt_symbols symbols;
  opt_folder folder;
  refine_function *functions; /* by computation id */
  uint32_t n_functions, depth;
} refine_run;

static int refine_function_for(refine_run *x, ir_computation *c, const refine_key *key);
static int refine_body(refine_run *x, ir_computation *c);

/* --- keys --- */

/* A scalar integer, as sizes are passed. */
static bool refine_is_size(const ir_type *t) {
  bool integer = t->dtype == XLAC_PRED || base_dtype_is_integer((base_dtype)t->dtype);
  return ir_is_tensor(t) && t->rank == 0 && integer && !t->quant && !t->text;
}

/* Tokens first, then known integers, then the rest. */
static bool refine_key_of(refine_run *x, const ir_op *op, bool take_constants, refine_key *key) {
  uint32_t n = op->n_operands, i = 0;
  ir_value *constants = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)n + 1);
  const ir_type **types = BASE_ARRAY(&x->rw.arena, const ir_type *, (size_t)n + 1);
  *key = (refine_key){.constants = constants, .types = types};
  if (!constants || !types) return (x->rw.failed = true), false;
  for (; i < n && ir_is_token(ir_operand_type(op, i)); i++) types[key->n_types++] = ir_operand_type(op, i);
  key->n_tokens = i;
  for (bool splat; take_constants && i < n && refine_is_size(ir_operand_type(op, i)); i++) {
    if (!opt_constant_of(opt_operand(op, i), &splat)) break;
    constants[key->n_constants++] = opt_operand(op, i);
  }
  for (; i < n; i++) types[key->n_types++] = ir_operand_type(op, i);
  return true;
}

/* By type and value. */
static bool refine_same_constant(ir_value a, ir_value b) {
  const ir_mattr *x = ir_mattr_of(a.op, "value"), *y = ir_mattr_of(b.op, "value");
  return opt_type(a) == opt_type(b) && ir_mattr_equal(x, y);
}

/* Whether two calls ask for the same refinement. A call without known integers agrees with any, as upstream has it. */
static bool refine_same_key(const refine_key *a, const refine_key *b) {
  if (a->n_types != b->n_types || (a->n_types && memcmp(a->types, b->types, a->n_types * sizeof *a->types) != 0))
    return false;
  if (a->n_constants == 0 || a->n_constants != b->n_constants) return a->n_constants == 0;
  for (uint32_t i = 0; i < a->n_constants; i++)
    if (!refine_same_constant(a->constants[i], b->constants[i])) return false;
  return true;
}

/* --- calls --- */

/* Known integers leave the call, with their attributes.
 * arg_attrs has an entry for each operand. */
static void refine_drop_operands(refine_run *x, ir_op *op, const refine_key *key) {
  const ir_mattr *attrs = ir_mattr_of(op, "arg_attrs");
  if (attrs && attrs->kind == IR_M_ARRAY && attrs->v.list->n == op->n_operands) {
    const ir_mattr **kept = BASE_ARRAY(&x->rw.arena, const ir_mattr *, (size_t)op->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; kept && i < op->n_operands; i++)
      if (i < key->n_tokens || i >= key->n_tokens + key->n_constants) kept[n++] = attrs->v.list->v[i];
    const ir_mattr *rest = kept ? ir_m_array(x->rw.m, n, kept) : NULL;
    opt_set(&x->rw, (ir_value){op, 0}, "arg_attrs", rest);
  }
  for (uint32_t i = 0; i < key->n_constants; i++) ir_operand_remove(op, key->n_tokens);
}

/* The constant that the callee returns as result i, if it is an integer. */
static const ir_mattr *refine_known_result(const ir_computation *callee, uint32_t i) {
  bool splat = false;
  const ir_type *t = opt_type(callee->results[i]);
  if (!opt_constant_of(callee->results[i], &splat) || t->quant) return NULL;
  if (t->dtype != XLAC_PRED && !base_dtype_is_integer((base_dtype)t->dtype)) return NULL;
  return ir_mattr_of(callee->results[i].op, "value");
}

/* Integers that the callee gives whatever it is called with are known here too. */
static void refine_known_results(refine_run *x, ir_op *op, const ir_computation *callee) {
  opt_rewriter *rw = &x->rw;
  uint32_t known = 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  for (uint32_t i = 0; values && i < op->n_results; i++) {
    const ir_mattr *value = refine_known_result(callee, i);
    values[i] = opt_result(op, i);
    if (!value) continue;
    opt_at(rw, op);
    values[i] = opt_make(rw, IR_OP_CONSTANT, opt_type(callee->results[i]), 0, NULL);
    opt_set(rw, values[i], "value", value);
    known++;
  }
  rw->failed = rw->failed || !values;
  if (rw->failed) return;
  if (known) opt_replace_results(rw, op, values);
  if (known == op->n_results && x->functions[callee->id].pure && !opt_is_used(rw, op)) opt_erase(rw, op);
}

/* Composites too are refined through their decomposition, but keep their operands. */
static int refine_call(refine_run *x, ir_op *op) {
  ir_computation *callee = opt_callee(&x->symbols, op);
  bool call = op->opcode == IR_OP_CALL, changed = false;
  refine_key key;
  if (!callee) return call ? opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_CALLED, "calls a function without a body") : 0;
  if (!refine_key_of(x, op, call, &key)) return opt_rewriter_status(&x->rw);
  TRY(refine_function_for(x, callee, &key));
  for (uint32_t i = 0; i < op->n_results && i < callee->n_results; i++)
    opt_refine_value(&x->rw, opt_result(op, i), opt_type(callee->results[i]), &changed);
  if (key.n_constants) refine_drop_operands(x, op, &key);
  if (call && op->n_results == callee->n_results) refine_known_results(x, op, callee);
  return opt_rewriter_status(&x->rw);
}

/* --- ops --- */

/* A loop's state has the types it begins with. */
static void refine_loop(refine_run *x, ir_op *op) {
  bool changed = false;
  for (uint32_t r = 0; r < op->n_called; r++)
    for (uint32_t i = 0; i < op->n_operands && i < op->called[r]->n_params; i++)
      opt_refine_value(&x->rw, (ir_value){op->called[r]->params[i], 0}, ir_operand_type(op, i), &changed);
}

/* A cast to a less specific type that is only returned need not be. */
static void refine_cast(refine_run *x, ir_op *op) {
  if (op->n_operands != 1 || op->n_results != 1 || strcmp(op->u.name->s, "builtin.unrealized_conversion_cast") != 0)
    return;
  const ir_type *from = ir_operand_type(op, 0), *most = stablehlo_most_specific(x->rw.m, op, op->type, from);
  ir_computation *c = op->parent;
  if (op->uses || c->kind != IR_FUNCTION || most != from || from == op->type) return;
  opt_replace_one(&x->rw, op, opt_operand(op, 0));
}

/* Regions before the op, since results of the op may follow from theirs. Refinement may replace op by another: then
 * it is not there any more, and there is nothing left to fold. */
static int refine_one(refine_run *x, ir_op *op) {
  bool changed = false;
  ir_op *before = op->prev;
  ir_computation *c = op->parent;
  if (op->opcode == IR_OP_WHILE) refine_loop(x, op);
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(refine_body(x, op->called[i]));
  if (op->opcode == IR_OP_CALL || op->opcode == IR_OP_COMPOSITE) return refine_call(x, op);
  if (op->opcode == IR_OP_UNREGISTERED) return refine_cast(x, op), opt_rewriter_status(&x->rw);
  TRY(opt_refine_op(&x->rw, op, &changed));
  bool there = (before ? before->next : c->first) == op;
  return there ? opt_fold_op(&x->rw, &x->folder, op, &changed) : 0;
}

/* Depth of regions is that of the text, which its reader bounds. */
static int refine_body(refine_run *x, ir_computation *c) {
  IR_FOR_OPS_SAFE(op, c) {
    TRY(refine_one(x, op));
    TRY(opt_rewriter_status(&x->rw));
  }
  return 0;
}

/* --- functions --- */

/* Calls are as pure as what they call. */
static bool refine_body_is_pure(const refine_run *x, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    const ir_computation *callee = op->opcode == IR_OP_CALL ? opt_callee(&x->symbols, op) : NULL;
    if (op->opcode == IR_OP_PARAMETER || (callee && x->functions[callee->id].pure)) continue;
    if (!opt_is_pure_alone(op)) return false;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (!refine_body_is_pure(x, op->called[i])) return false;
  }
  return true;
}

/* The known integers become constants in the function. */
static void refine_bind(refine_run *x, ir_computation *c, const refine_key *key) {
  assert(key->n_tokens + key->n_constants <= c->n_params || key->n_constants == 0);
  for (uint32_t i = key->n_constants; i-- > 0 && !x->rw.failed;) {
    ir_op *parameter = c->params[key->n_tokens + i];
    opt_at_start(&x->rw, c);
    x->rw.origin = parameter;
    ir_value constant = opt_make(&x->rw, IR_OP_CONSTANT, parameter->type, 0, NULL);
    opt_set(&x->rw, constant, "value", ir_mattr_of(key->constants[i].op, "value"));
    if (!x->rw.failed) opt_replace_results(&x->rw, parameter, &constant);
    if (!x->rw.failed) opt_erase_parameter(&x->rw, c, key->n_tokens + i);
  }
}

/* One signature for each function: it is refined in place. */
static int refine_again(const refine_run *x, const ir_computation *c, const refine_function *f, const refine_key *key) {
  if (!refine_same_key(key, &f->key))
    return opt_refine_fail(&x->rw, c, XLAC_E_VERIFY_CALLED,
                           "is called with other sizes or types of arguments than by its first call; a function can be "
                           "refined for one signature only");
  if (f->state == REFINE_RUNNING)
    return opt_refine_fail(&x->rw, c, XLAC_E_VERIFY_CALLED, "is refined while it calls itself");
  return 0;
}

/* Once for each function and key: the types of the arguments and the constants among them. A second call with another
 * key is an error (refine_again), since a function has one body. */
static int refine_function_for(refine_run *x, ir_computation *c, const refine_key *key) {
  assert(c->id < x->n_functions);
  refine_function *f = &x->functions[c->id];
  if (f->state != REFINE_NEW) return refine_again(x, c, f, key);
  if (x->depth >= REFINE_MAX_DEPTH)
    return opt_refine_fail(&x->rw, c, XLAC_E_TOO_DEEP, "is called through more than %d others", REFINE_MAX_DEPTH);
  *f = (refine_function){.state = REFINE_RUNNING, .key = *key};
  x->depth++;
  refine_bind(x, c, key);
  TRY(opt_rewriter_status(&x->rw));
  TRY(opt_refine_parameters(&x->rw, c, key->n_types, key->types));
  TRY(refine_body(x, c));
  x->depth--;
  f->state = REFINE_DONE;
  f->pure = refine_body_is_pure(x, c);
  return 0;
}

/* The driver without patterns removes what nobody needs any more. */
static int refine_entry(refine_run *x, ir_computation *c) {
  refine_key key = {.n_types = c->n_params};
  x->n_functions = x->rw.m->n_computation_ids;
  x->functions = BASE_ARRAY(&x->rw.arena, refine_function, (size_t)x->n_functions + 1);
  key.types = BASE_ARRAY(&x->rw.arena, const ir_type *, (size_t)c->n_params + 1);
  x->rw.failed = x->rw.failed || !x->functions || !key.types;
  TRY(opt_rewriter_status(&x->rw));
  memset(x->functions, 0, ((size_t)x->n_functions + 1) * sizeof *x->functions);
  for (uint32_t i = 0; i < c->n_params; i++) key.types[i] = c->params[i]->type;
  TRY(refine_function_for(x, c, &key));
  return opt_rewrite(&x->rw, 0, NULL);
}

/* What does not fit together shows only when sizes are known: so the module is verified here. */
int opt_refine_shapes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  refine_run x = {.folder = {.shapes_only = true, .max_elements = REFINE_MAX_ELEMENTS}};
  ir_computation *target = NULL;
  TRY(opt_refine_target(m, &target, err));
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = opt_symbols_make(&x.symbols, m, err);
  if (status == 0) {
    status = refine_entry(&x, target);
    opt_symbols_free(&x.symbols);
  }
  opt_rewriter_free(&x.rw);
  return status ? status : stablehlo_verify(m, err);
}
