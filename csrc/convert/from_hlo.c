/* From HLO form to MLIR form: the module, functions, regions. The ops are in from_hlo_ops.c.
 *
 *   ENTRY %main (p: (f32[2], s32[])) -> f32[2]       func.func public @main(%arg0: tensor<2xf32>,
 *                                                                           %arg1: tensor<i32>) -> tensor<2xf32>
 *
 * The entry becomes the public function @main. A computation that is called (call, fusion, custom-call) becomes a
 * private function, once; one that an op has as its body, condition or reducer becomes a region of that op, anew for
 * each op. */
#include "from_hlo.h"

#include <stdio.h>

int from_hlo_fail(const from_hlo *t, const ir_op *op, base_code code, const char *format, ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(t->err, code, op->line, op->col, op->name->s, "%s", message);
}

/* A computation that several ops use as their region is copied into each, and so is what it calls: chains that
 * double must end. A million ops and sixteen times the program is more than a program becomes that is meant to be
 * run. */
static uint32_t from_hlo_limit(const ir_module *m) {
  uint64_t n = 1u << 20;
  IR_FOR_COMPUTATIONS(c, m) n += 16 * (uint64_t)c->n_ops;
  return n < UINT32_MAX / 2 ? (uint32_t)n : UINT32_MAX / 2;
}

int from_hlo_no_memory(const from_hlo *t) {
  if (t->n_made >= t->max_made)
    return base_hint(t->err, base_fail(t->err, XLAC_E_TOO_LARGE, "the translated program is too large"),
                     "each region is a copy of its computation: have shared ones called");
  return base_oom(t->err, "translating to StableHLO");
}

/* --- parameters, bodies, results --- */

ir_op *from_hlo_argument(from_hlo *t, ir_computation *into, const ir_type *type) {
  assert(into && type);
  const base_istr *name = ir_intern(t->to, "arg", 3);
  ir_op *p = name ? ir_op_new(into, IR_OP_PARAMETER, type, name, 0, 0) : NULL;
  return p && ir_set_parameter(p, into->n_params) ? p : NULL;
}

/* From here on uses of `op` see this tree. A region that is made a second time binds its ops anew. */
static int from_hlo_bind(from_hlo *t, const ir_op *op, const from_hlo_tree *tree) {
  return tree && base_map_set(&t->trees, base_key(op), base_key(tree)) ? 0 : from_hlo_no_memory(t);
}

/*   %p = (f32[2], (s32[], pred[])) parameter(0)    %arg0: tensor<2xf32>, %arg1: tensor<i32>, %arg2: tensor<i1> */
static int from_hlo_one_parameter(from_hlo *t, const ir_op *p, ir_computation *into) {
  assert(p->opcode == IR_OP_PARAMETER);
  uint32_t n, at = 0;
  const ir_type **types;
  const from_hlo_tree *tree;
  TRY(from_hlo_leaf_types(t, p, p->type, &n, &types));
  ir_value *leaves = BASE_ARRAY(&t->to->arena, ir_value, n + 1u);
  if (!leaves) return from_hlo_no_memory(t);
  for (uint32_t i = 0; i < n; i++) {
    leaves[i] = (ir_value){from_hlo_argument(t, into, types[i]), 0};
    if (!leaves[i].op) return from_hlo_no_memory(t);
    leaves[i].op->line = p->line;
    leaves[i].op->col = p->col;
    leaves[i].op->loc = from_hlo_location(t, p);
  }
  TRY(from_hlo_build(t, p->type, leaves, &at, &tree));
  return from_hlo_bind(t, p, tree);
}

/* One op: operands are looked up, the rule is run, and what the op has become is kept. */
static int from_hlo_statement(from_hlo *t, const ir_op *op, ir_computation *into) {
  assert(op->opcode != IR_OP_PARAMETER); /* these are bound before the body */
  from_hlo_op x = {.t = t, .op = op, .type = op->type, .into = into};
  x.operands = BASE_ARRAY(&t->to->arena, const from_hlo_tree *, op->n_operands + 1u);
  if (!x.operands) return from_hlo_no_memory(t);
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!(x.operands[i] = base_map_ptr(&t->trees, ir_operand(op, i))))
      return from_hlo_fail(t, op, XLAC_E_VERIFY_STRUCTURE, "operand %u is not defined before its use", i);
  TRY(from_hlo_one(&x));
  return from_hlo_bind(t, op, x.result);
}

/* Ops in the order in which they must come; dead ones too. The order is the post-order that HLO text is printed in
 * too, so that what is printed does not depend on the order in which the ops were read. */
static int from_hlo_body(from_hlo *t, const ir_computation *from, ir_computation *into) {
  if (++t->depth > FROM_HLO_MAX_DEPTH)
    return base_fail(t->err, XLAC_E_TOO_DEEP, "computations nest deeper than %d", FROM_HLO_MAX_DEPTH);
  uint32_t n;
  ir_op **order = ir_post_order(from, &t->to->arena, &n);
  if (!order) return from_hlo_no_memory(t);
  for (uint32_t i = 0; i < n; i++)
    if (order[i]->opcode != IR_OP_PARAMETER) TRY(from_hlo_statement(t, order[i], into));
  t->depth--;
  return 0;
}

int from_hlo_returns(from_hlo *t, ir_computation *into, uint32_t n, const ir_value *values) {
  assert(into->n_results == 0 && (n == 0 || values));
  into->results = BASE_ARRAY(&t->to->arena, ir_value, n + 1u);
  if (!into->results) return from_hlo_no_memory(t);
  if (n) memcpy(into->results, values, n * sizeof *values);
  into->n_results = n;
  return 0;
}

/* HLO has no return: the root op's leaves are what the function or region returns. */
static int from_hlo_root(from_hlo *t, const ir_computation *from, ir_computation *into) {
  ir_op *root = ir_root(from);
  from_hlo_op x = {.t = t, .op = root, .type = root->type, .into = into};
  from_hlo_values leaves = {0};
  const from_hlo_tree *tree = base_map_ptr(&t->trees, root);
  if (!tree) return from_hlo_fail(t, root, XLAC_E_VERIFY_STRUCTURE, "the root is not defined");
  int status = from_hlo_flatten(&x, tree, &leaves);
  if (status == 0) status = from_hlo_returns(t, into, leaves.n, leaves.items);
  BASE_VEC_FREE(t->to->alloc, &leaves);
  return status;
}

/* Parameters, body, results: all of a function or of a region with arguments. */
static int from_hlo_fill(from_hlo *t, const ir_computation *from, ir_computation *into) {
  for (uint32_t i = 0; i < from->n_params; i++) TRY(from_hlo_one_parameter(t, from->params[i], into));
  TRY(from_hlo_body(t, from, into));
  return from_hlo_root(t, from, into);
}

/* --- regions --- */

int from_hlo_new_region(from_hlo *t, ir_op *owner, uint32_t index, ir_computation **out) {
  assert(index < owner->n_called);
  ir_computation *c = ir_computation_new(t->to, "region", 6);
  if (!c) return from_hlo_no_memory(t);
  c->kind = IR_REGION;
  c->owner = owner;
  c->line = owner->line;
  c->col = owner->col;
  owner->called[index] = *out = c;
  return 0;
}

int from_hlo_region(from_hlo *t, const ir_computation *from, ir_op *owner, uint32_t index) {
  ir_computation *c = NULL;
  TRY(from_hlo_new_region(t, owner, index, &c));
  return from_hlo_fill(t, from, c);
}

int from_hlo_closure(from_hlo *t, const ir_computation *from, const from_hlo_tree *argument, ir_op *owner,
                     uint32_t index) {
  ir_computation *c = NULL;
  TRY(from_hlo_new_region(t, owner, index, &c));
  assert(from->n_params == 1);
  TRY(from_hlo_bind(t, from->params[0], argument));
  TRY(from_hlo_body(t, from, c));
  return from_hlo_root(t, from, c);
}

/* --- functions --- */

/* A name that no other function has: the stem, or with a number. */
static const base_istr *from_hlo_symbol(from_hlo *t, const char *stem, size_t n) {
  assert(stem);
  char *text = base_arena_alloc(&t->to->arena, n + 16);
  const base_istr *name = ir_intern(t->to, stem, n);
  uint64_t taken;
  if (!text) return NULL;
  for (unsigned i = 0; name && base_map_get(&t->symbols, base_key(name), &taken); i++) {
    int size = snprintf(text, n + 16, "%.*s_%u", (int)n, stem, i);
    name = ir_intern(t->to, text, (size_t)size);
  }
  return name && base_map_set(&t->symbols, base_key(name), 1) ? name : NULL;
}

/* HLO's name without the sign that symbols lack. */
static const base_istr *from_hlo_symbol_of(from_hlo *t, const ir_computation *from) {
  char *text = base_arena_strndup(&t->to->arena, from->name->s, from->name->n);
  for (char *p = text; p && *p; p++)
    if (*p == '-') *p = '_';
  return text ? from_hlo_symbol(t, text, from->name->n) : NULL;
}

/* Visibility is an attribute, as in MLIR: "public" for the entry, "private" for what it calls. */
static ir_computation *from_hlo_new_function(from_hlo *t, const base_istr *name, const char *visibility) {
  ir_computation *c = name ? ir_computation_new(t->to, name->s, name->n) : NULL;
  const ir_mattr *word = ir_m_string(t->to, visibility, strlen(visibility));
  if (!c || !word) return NULL;
  c->kind = IR_FUNCTION;
  c->mlir = ir_mdict_with(t->to, NULL, "sym_visibility", word);
  return c->mlir ? c : NULL;
}

/* The function is known before its body is translated, but HLO has no recursion, so nothing sees it half made. */
int from_hlo_function(from_hlo *t, const ir_computation *from, ir_computation **out) {
  if ((*out = base_map_ptr(&t->functions, from))) return 0;
  ir_computation *c = from_hlo_new_function(t, from_hlo_symbol_of(t, from), "private");
  if (!c || !base_map_set(&t->functions, base_key(from), base_key(c))) return from_hlo_no_memory(t);
  c->line = from->line;
  c->col = from->col;
  *out = c;
  TRY(from_hlo_fill(t, from, c));
  TRY(from_hlo_argument_facts(t, from, c));
  return from_hlo_result_facts(t, from, c);
}

/* The entry is translated first, and everything else when it is first called: what nothing calls is left out. */
static int from_hlo_module(from_hlo *t) {
  const ir_computation *entry = t->from->entry;
  ir_computation *c = from_hlo_new_function(t, from_hlo_symbol(t, "main", 4), "public");
  if (!c) return from_hlo_no_memory(t);
  c->line = entry->line;
  c->col = entry->col;
  t->to->entry = c;
  TRY(from_hlo_fill(t, entry, c));
  TRY(from_hlo_argument_facts(t, entry, c));
  TRY(from_hlo_result_facts(t, entry, c));
  return from_hlo_module_facts(t, c);
}

/* Verified before, leniently as XLA does, so that rules can rely on operands, attributes and types; and after, by
 * StableHLO's rules, since HLO allows more than StableHLO does. */
int convert_from_hlo(ir_module **out, ir_module *m, xlac_error *err) {
  const ir_verify_options compat = {.xla_compat = true};
  *out = NULL;
  if (m->form != IR_FORM_HLO) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the module is in MLIR form already");
  if (!ir_verified_as(m)) TRY(ir_verify(m, &compat, err));
  from_hlo t = {.from = m, .err = err, .max_made = from_hlo_limit(m)};
  TRY(ir_module_create(&t.to, m->name->s, m->alloc, err));
  t.to->form = IR_FORM_MLIR;
  t.to->named = true;
  base_map_init(&t.trees, m->alloc);
  base_map_init(&t.functions, m->alloc);
  base_map_init(&t.symbols, m->alloc);
  int status = from_hlo_module(&t);
  base_map_free(&t.trees);
  base_map_free(&t.functions);
  base_map_free(&t.symbols);
  if (status == 0) status = stablehlo_verify(t.to, err);
  if (status != 0) {
    ir_module_destroy(t.to);
    return status;
  }
  *out = t.to;
  return 0;
}
