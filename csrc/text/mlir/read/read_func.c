/* Regions and functions.
 *
 *   func.func private @f(%arg0: tensor<2xf32> {mhlo.sharding = "..."}) -> (tensor<2xf32> {jax.result_info = ""}) {
 *     return %arg0 : tensor<2xf32>
 *   }
 * A region is one block here: StableHLO has no others. A function is isolated from above: names defined before its
 * mark are hidden while it is read (isolated_at). */
#include "read.h"

/* --- regions --- */

/* Not yet attached to an op: mlir_finish_op adopts the regions that wait on r->regions. */
ir_computation *mlir_new_region(mlir_reader *r) {
  ir_computation *c = ir_computation_new(r->m, "region", 6);
  if (c) c->kind = IR_REGION;
  if (c) text_where(&r->lx, r->lx.p, &c->line, &c->col);
  return c;
}

/* `at` NULL: the argument has no name in this text, and nothing is bound to it. */
int mlir_add_arg(mlir_reader *r, ir_computation *c, const char *at, const base_istr *name, const ir_type *type) {
  assert(c && type && name);
  ir_op *p = ir_op_new(c, IR_OP_PARAMETER, type, name, 0, 0);
  if (!p || !ir_set_parameter(p, c->n_params)) return mlir_no_memory(r);
  text_where(&r->lx, at ? at : r->lx.p, &p->line, &p->col);
  return at ? mlir_bind(r, at, name, p, 0, 1) : 0;
}

/* "%a" of an argument being defined. */
static int mlir_read_arg_name(mlir_reader *r, const base_istr **name) {
  if (*r->lx.p != '%') return mlir_expected(r, "an argument such as %arg0");
  const char *p = r->lx.p + 1, *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$') e++;
  *name = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *name ? 0 : mlir_no_memory(r);
}

/* "%a: type {attributes} loc(...)" */
int mlir_read_arg(mlir_reader *r, ir_computation *c, bool attributes) {
  const base_istr *name;
  const ir_type *type;
  const char *at = r->lx.p;
  TRY(mlir_read_arg_name(r, &name));
  TRY(mlir_want(r, ":"));
  TRY(mlir_read_type(r, &type));
  TRY(mlir_add_arg(r, c, at, name, type));
  ir_op *p = c->params[c->n_params - 1];
  if (attributes && *r->lx.p == '{') {
    uint32_t from = r->entries.n;
    TRY(mlir_read_entries(r));
    TRY(mlir_take_dict(r, from, &p->mlir));
  }
  return mlir_read_trailing_loc(r, &p->loc);
}

/* "^bb0(%a: t, %b: t):" */
static int mlir_read_label(mlir_reader *r, ir_computation *c) {
  assert(*r->lx.p == '^');
  r->lx.p++;
  mlir_skip_word(r, mlir_word(r));
  if (mlir_eat(r, "(")) {
    if (!mlir_eat(r, ")")) {
      do TRY(mlir_read_arg(r, c, false));
      while (mlir_eat(r, ","));
      TRY(mlir_want(r, ")"));
    }
  }
  return mlir_want(r, ":");
}

/* A region that holds nothing at all is marked as a declaration, which is what a function's would be. */
int mlir_read_region_body(mlir_reader *r, ir_computation *c) {
  assert(c->n_ops == c->n_params);
  TRY(mlir_enter(r, r->lx.p));
  TRY(mlir_want(r, "{"));
  if (*r->lx.p == '^') TRY(mlir_read_label(r, c));
  bool ended = false;
  while (!ended && *r->lx.p != '}') {
    if (*r->lx.p == '^') return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "a region of several blocks is not supported");
    TRY(mlir_read_statement(r, c, &ended));
  }
  if (!ended && c->n_ops == 0) c->declaration = true;
  if (*r->lx.p == '^') return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "a region of several blocks is not supported");
  TRY(mlir_want(r, "}"));
  mlir_leave(r);
  return 0;
}

/* The names of the region go out of scope at its end. */
int mlir_read_region(mlir_reader *r, bool isolated) {
  ir_computation *c = mlir_new_region(r);
  if (!c) return mlir_no_memory(r);
  uint32_t mark = r->names.n, outer = r->isolated_at;
  if (isolated) r->isolated_at = mark;
  TRY(mlir_read_region_body(r, c));
  mlir_unbind(r, mark);
  r->isolated_at = outer;
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

/* --- functions --- */

/* The parts of a signature that follow the arguments. Result types and their attributes. */
typedef struct mlir_func_results {
  uint32_t types, n; /* in r->types */
  const ir_mdict **dicts;
  bool any_dict;
} mlir_func_results;

/* One type with its attributes; *dicts keeps them beside the types, NULL where there are none. */
static int mlir_read_result(mlir_reader *r, mlir_func_results *f, mlir_attr_list *dicts) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  const ir_mdict *d = NULL;
  if (*r->lx.p == '{') {
    uint32_t from = r->entries.n;
    TRY(mlir_read_entries(r));
    TRY(mlir_take_dict(r, from, &d));
  }
  const ir_mattr *kept = d ? ir_m_dict(r->m, d) : NULL;
  f->any_dict = f->any_dict || d;
  f->n++;
  bool ok = BASE_VEC_PUSH(r->alloc, &r->types, t) && BASE_VEC_PUSH(r->alloc, dicts, kept);
  return ok ? 0 : mlir_no_memory(r);
}

/* "-> t", "-> (t, t)" or nothing. A single type has no parentheses and no attributes. */
static int mlir_read_results(mlir_reader *r, mlir_func_results *f, mlir_attr_list *dicts) {
  f->types = r->types.n;
  if (!mlir_eat(r, "->")) return 0;
  if (!mlir_eat(r, "(")) {
    const ir_type *t;
    TRY(mlir_read_type(r, &t));
    f->n = 1;
    return BASE_VEC_PUSH(r->alloc, &r->types, t) && BASE_VEC_PUSH(r->alloc, dicts, NULL) ? 0 : mlir_no_memory(r);
  }
  if (mlir_eat(r, ")")) return 0;
  do TRY(mlir_read_result(r, f, dicts));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

/* The list is kept only where some result has attributes. */
static int mlir_take_result_dicts(mlir_reader *r, mlir_func_results *f, const mlir_attr_list *dicts) {
  assert(dicts->n == f->n);
  if (!f->any_dict) return 0;
  f->dicts = BASE_ARRAY(&r->m->arena, const ir_mdict *, f->n + 1u);
  if (!f->dicts) return mlir_no_memory(r);
  for (uint32_t i = 0; i < f->n; i++) f->dicts[i] = dicts->items[i] ? dicts->items[i]->v.dict : NULL;
  return 0;
}

/* Arguments of a definition have names, those of a declaration may be bare types. */
static int mlir_read_signature_arg(mlir_reader *r, ir_computation *c) {
  if (*r->lx.p == '%') return mlir_read_arg(r, c, true);
  const ir_type *t;
  const base_istr *name = ir_intern(r->m, "arg", 3);
  TRY(mlir_read_type(r, &t));
  if (!name) return mlir_no_memory(r);
  TRY(mlir_add_arg(r, c, NULL, name, t));
  ir_op *p = c->params[c->n_params - 1];
  if (*r->lx.p == '{') {
    uint32_t from = r->entries.n;
    TRY(mlir_read_entries(r));
    TRY(mlir_take_dict(r, from, &p->mlir));
  }
  return mlir_read_trailing_loc(r, &p->loc);
}

/*   (%arg0: tensor<f32> {a = 1}, %arg1: tensor<i32>) */
static int mlir_read_signature_args(mlir_reader *r, ir_computation *c) {
  TRY(mlir_want(r, "("));
  if (mlir_eat(r, ")")) return 0;
  do TRY(mlir_read_signature_arg(r, c));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

/* Keeps the declared type of a function whose body does not say it. */
static int mlir_declared_type(mlir_reader *r, ir_computation *c, const ir_type *const *results, uint32_t n) {
  assert(!c->function_type);
  const ir_type **inputs = BASE_ARRAY(&r->m->arena, const ir_type *, c->n_params + 1u);
  if (!inputs) return mlir_no_memory(r);
  for (uint32_t i = 0; i < c->n_params; i++) inputs[i] = c->params[i]->type;
  c->function_type = ir_function_type(r->m, c->n_params, n, inputs, results);
  return c->function_type ? 0 : mlir_no_memory(r);
}

/* Where a function returns something else than it declares, both are kept: the verifier says so in its turn. */
static int mlir_check_returned(mlir_reader *r, ir_computation *c, const ir_type *const *types, uint32_t n) {
  bool same = !c->open_end && c->n_results == n;
  for (uint32_t i = 0; same && i < n; i++) same = c->results[i].op->types[c->results[i].index] == types[i];
  return same ? 0 : mlir_declared_type(r, c, types, n);
}

/* An op that xlac does not know may end a function: the last one, where it has neither results nor regions. */
static bool mlir_ends_unknown(const mlir_reader *r, const ir_computation *c) {
  const ir_op *op = c->last;
  if (!r->allow_unregistered || !op || op->opcode != IR_OP_UNREGISTERED || op->n_results || op->n_called) return false;
  return !mlir_foreign_find(op->u.name->s);
}

/* A function without '{' is a declaration. */
static int mlir_read_body(mlir_reader *r, ir_computation *c, const mlir_func_results *f) {
  assert(c->kind == IR_FUNCTION && r->types.n >= f->types + f->n);
  if (*r->lx.p != '{') {
    c->declaration = true;
    c->n_results = 0;
    return mlir_declared_type(r, c, r->types.items + f->types, f->n);
  }
  TRY(mlir_enter(r, r->lx.p));
  TRY(mlir_want(r, "{"));
  if (*r->lx.p == '^') TRY(mlir_read_label(r, c));
  bool ended = false;
  while (!ended && *r->lx.p != '}') TRY(mlir_read_statement(r, c, &ended));
  if (*r->lx.p == '^') return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "a function of several blocks is not supported");
  c->open_end = !ended && mlir_ends_unknown(r, c);
  if (!ended && !c->open_end)
    return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "function @%s ends without func.return", c->name->s);
  TRY(mlir_want(r, "}"));
  mlir_leave(r);
  return mlir_check_returned(r, c, r->types.items + f->types, f->n);
}

/* All symbols of a module share one scope. */
int mlir_check_new_symbol(mlir_reader *r, const char *at, const base_istr *name) {
  uint64_t there;
  if (base_map_get(&r->symbols, base_key(name), &there))
    return mlir_fail(r, at, XLAC_E_DUPLICATE_NAME, "redefinition of symbol named '%s'", name->s);
  return base_map_set(&r->symbols, base_key(name), 1) ? 0 : mlir_no_memory(r);
}

/* From the arguments to the location behind the body. */
static int mlir_read_func_rest(mlir_reader *r, ir_computation *c, mlir_attr_list *dicts) {
  mlir_func_results f = {0};
  TRY(mlir_read_signature_args(r, c));
  TRY(mlir_read_results(r, &f, dicts));
  TRY(mlir_take_result_dicts(r, &f, dicts));
  c->result_mlir = f.dicts;
  if (mlir_eat_word(r, "attributes")) TRY(mlir_read_entries(r));
  TRY(mlir_read_body(r, c, &f));
  r->types.n = f.types;
  return mlir_read_trailing_loc(r, &c->loc);
}

/* Functions may follow their callers: calls name symbols, which the verifier looks up. */
int mlir_read_func(mlir_reader *r, const char *at) {
  uint32_t mark = r->names.n, entries = r->entries.n;
  static const char *const visibilities[] = {"public", "private", "nested"};
  for (int i = 0; i < 3; i++)
    if (mlir_eat_word(r, visibilities[i]))
      TRY(mlir_add_attr(r, "sym_visibility", ir_m_string(r->m, visibilities[i], strlen(visibilities[i]))));
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_check_new_symbol(r, at, name));
  ir_computation *c = ir_computation_new(r->m, name->s, name->n);
  if (!c) return mlir_no_memory(r);
  c->kind = IR_FUNCTION;
  text_where(&r->lx, at, &c->line, &c->col);
  r->isolated_at = mark;
  mlir_attr_list dicts = {0};
  int status = mlir_read_func_rest(r, c, &dicts);
  BASE_VEC_FREE(r->alloc, &dicts);
  TRY(status);
  mlir_unbind(r, mark);
  r->isolated_at = 0;
  return mlir_take_dict(r, entries, &c->mlir);
}

/* --- the generic form --- */

/* The value of `key` among the entries from `from` on, taken out of them; NULL where it is absent. */
static const ir_mattr *mlir_take_entry(mlir_reader *r, uint32_t from, const char *key) {
  for (uint32_t i = from; i < r->entries.n; i++) {
    if (strcmp(r->entries.items[i].key->s, key) != 0) continue;
    const ir_mattr *a = r->entries.items[i].value;
    for (uint32_t k = i + 1; k < r->entries.n; k++) r->entries.items[k - 1] = r->entries.items[k];
    r->entries.n--;
    return a;
  }
  return NULL;
}

/* Empty dictionaries say nothing and are not kept. */
static int mlir_set_arg_attrs(mlir_reader *r, ir_computation *c, const ir_mattr *list) {
  if (!list) return 0;
  if (list->kind != IR_M_ARRAY) return mlir_expected(r, "arg_attrs as a list of dictionaries");
  for (uint32_t i = 0; i < list->v.list->n && i < c->n_params; i++)
    if (list->v.list->v[i]->kind == IR_M_DICT && list->v.list->v[i]->v.dict->n)
      c->params[i]->mlir = list->v.list->v[i]->v.dict;
  return 0;
}

/*   res_attrs = [{a = 1}, {}] */
static int mlir_set_result_attrs(mlir_reader *r, ir_computation *c, const ir_mattr *list, uint32_t n) {
  if (!list) return 0;
  if (list->kind != IR_M_ARRAY || list->v.list->n != n)
    return mlir_expected(r, "res_attrs as a dictionary for each result");
  const ir_mdict **dicts = BASE_ARRAY(&r->m->arena, const ir_mdict *, n + 1u);
  if (!dicts) return mlir_no_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *d = list->v.list->v[i];
    dicts[i] = d->kind == IR_M_DICT && d->v.dict->n ? d->v.dict : NULL;
  }
  c->result_mlir = dicts;
  return 0;
}

/* An empty region is a declaration: its parameters come from the type. */
static int mlir_declare(mlir_reader *r, ir_computation *c, const ir_type *type) {
  const base_istr *name = ir_intern(r->m, "arg", 3);
  if (!name) return mlir_no_memory(r);
  for (uint32_t i = 0; i < type->n_inputs; i++) TRY(mlir_add_arg(r, c, NULL, name, type->elements[i]));
  c->declaration = true;
  c->function_type = type;
  return 0;
}

/* Cursor after "func.func" in quotes: () <{function_type = ..., sym_name = "f"}> ({ ... }) {...} : () -> () */
int mlir_read_generic_func(mlir_reader *r, const char *at) {
  uint32_t mark = r->names.n, entries = r->entries.n, regions = r->regions.n;
  TRY(mlir_want(r, "("));
  TRY(mlir_want(r, ")"));
  if (mlir_eat(r, "<")) {
    TRY(mlir_read_entries(r));
    TRY(mlir_want(r, ">"));
  }
  TRY(mlir_want(r, "("));
  r->isolated_at = mark;
  TRY(mlir_read_region(r, true));
  r->isolated_at = 0;
  TRY(mlir_want(r, ")"));
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  TRY(mlir_want(r, ":"));
  uint32_t types = r->types.n, inputs, results;
  TRY(mlir_read_function_type(r, &inputs, &results));
  r->types.n = types;
  const ir_mattr *name = mlir_take_entry(r, entries, "sym_name"), *type = mlir_take_entry(r, entries, "function_type");
  if (!name || name->kind != IR_M_STRING)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "'func.func' op requires attribute 'sym_name'");
  if (!type || type->kind != IR_M_TYPE || type->type->kind != IR_TYPE_FUNCTION)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "'func.func' op requires attribute 'function_type'");
  TRY(mlir_check_new_symbol(r, at, name->str));
  assert(r->regions.n == regions + 1);
  ir_computation *c = r->regions.items[regions];
  r->regions.n = regions;
  c->kind = IR_FUNCTION;
  c->name = name->str;
  text_where(&r->lx, at, &c->line, &c->col);
  /* Until here it was a region, whose usual end this is. */
  bool ends_as_region = !c->return_name && !c->declaration && !c->open_end && !r->plain_return;
  if (ends_as_region && !(c->return_name = ir_intern(r->m, "stablehlo.return", 16))) return mlir_no_memory(r);
  uint32_t n_results = type->type->n_elements - type->type->n_inputs;
  const ir_mattr *args = mlir_take_entry(r, entries, "arg_attrs"), *res = mlir_take_entry(r, entries, "res_attrs");
  TRY(mlir_read_trailing_loc(r, &c->loc));
  if (c->declaration) {
    c->declaration = false;
    TRY(mlir_declare(r, c, type->type));
  } else {
    TRY(mlir_check_returned(r, c, type->type->elements + type->type->n_inputs, n_results));
  }
  TRY(mlir_set_arg_attrs(r, c, args));
  TRY(mlir_set_result_attrs(r, c, res, n_results));
  mlir_unbind(r, mark);
  return mlir_take_dict(r, entries, &c->mlir);
}
