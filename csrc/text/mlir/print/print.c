/* Printing modules in MLIR form as MLIR itself does: module, functions, entry points. Source: the MLIR language
 * reference; StableHLO's and func's assembly formats.
 *
 *   module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
 *     func.func public @main(%arg0: tensor<8xf32> loc("x")) -> (tensor<8xf32> {jax.result_info = ""}) { ... }
 *   } */
#include "print.h"

/* Keys are compared by letters: an attribute's key may come from another module's table of strings. */
static bool mprint_is(const base_istr *key, const char *s) {
  return strcmp(key->s, s) == 0;
}

/* A dictionary but for one key or two, after ` keyword`; nothing when nothing is left. `open` is what stands before
 * the first entry, its brace included. */
static void mprint_dict_without(mprint *p, const ir_mdict *d, const char *open, const char *a, const char *b) {
  bool some = false;
  for (uint32_t i = 0; d && i < d->n; i++) {
    if (mprint_is(d->v[i].key, a) || mprint_is(d->v[i].key, b)) continue;
    base_puts(p->out, some ? ", " : open);
    some = true;
    mprint_entry(p, &d->v[i]);
  }
  if (some) base_putc(p->out, '}');
}

/* --- functions, pretty --- */

/* A declaration has no names for its arguments. */
static void mprint_parameter(mprint *p, const ir_computation *c, uint32_t i) {
  const ir_op *param = c->params[i];
  if (!c->declaration) {
    mprint_argument(p, param);
    return;
  }
  mprint_type(p->out, param->type);
  if (!param->mlir || param->mlir->n == 0) return;
  base_putc(p->out, ' ');
  mprint_dict(p, param->mlir);
}

/* NULL for an empty dictionary too, which is not printed. */
static const ir_mdict *mprint_result_attrs(const ir_computation *c, uint32_t i) {
  const ir_mdict *d = ir_result_attrs(c, i);
  return d && d->n ? d : NULL;
}

/* A single result without attributes has no parentheses, unless it is a function type itself. */
static void mprint_function_results(mprint *p, const ir_computation *c) {
  uint32_t n = ir_function_results(c);
  if (n == 0) return;
  BASE_PUT(p->out, " -> ");
  bool bare = n == 1 && !mprint_result_attrs(c, 0) && ir_function_result_type(c, 0)->kind != IR_TYPE_FUNCTION;
  if (!bare) base_putc(p->out, '(');
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_type(p->out, ir_function_result_type(c, i));
    if (!mprint_result_attrs(c, i)) continue;
    base_putc(p->out, ' ');
    mprint_dict(p, mprint_result_attrs(c, i));
  }
  if (!bare) base_putc(p->out, ')');
}

/* Visibility stands before the name, everything else that is not an argument's or result's behind "attributes". */
static void mprint_pretty_function(mprint *p, const ir_computation *c) {
  BASE_PUT(p->out, "func.func ");
  const ir_mattr *visibility = ir_mdict_get(c->mlir, "sym_visibility");
  if (visibility && visibility->str) {
    base_put(p->out, visibility->str->s, visibility->str->n);
    base_putc(p->out, ' ');
  }
  mprint_symbol(p->out, c->name->s, c->name->n);
  base_putc(p->out, '(');
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_parameter(p, c, i);
  }
  base_putc(p->out, ')');
  mprint_function_results(p, c);
  mprint_dict_without(p, c->mlir, " attributes {", "sym_visibility", "sym_name");
  if (c->declaration) return;
  base_putc(p->out, ' ');
  mprint_region(p, c, false);
}

/* --- functions, generic --- */

/* Absent where no argument has any: then MLIR has no such property. */
static void mprint_argument_attrs(mprint *p, const ir_computation *c) {
  bool any = false;
  for (uint32_t i = 0; i < c->n_params; i++) any = any || (c->params[i]->mlir && c->params[i]->mlir->n);
  if (!any) return;
  BASE_PUT(p->out, "arg_attrs = [");
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_dict(p, c->params[i]->mlir);
  }
  BASE_PUT(p->out, "], ");
}

/*   , res_attrs = [{jax.result_info = "x"}, {}]
 *
 * Nothing where no result has any, as MLIR prints it. */
static void mprint_result_attr_list(mprint *p, const ir_computation *c) {
  bool any = false;
  uint32_t n = ir_function_results(c);
  for (uint32_t i = 0; i < n; i++) any = any || mprint_result_attrs(c, i);
  if (!any) return;
  BASE_PUT(p->out, ", res_attrs = [");
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_dict(p, mprint_result_attrs(c, i));
  }
  base_putc(p->out, ']');
}

/*   (tensor<2xf32>, tensor<i32>) -> tensor<2xf32>      () -> (tensor<f32>, tensor<f32>)      () -> ()
 *
 * One result stands without parentheses, but for a function type, whose arrow would be read as this one's. A
 * function that has kept its type, since its body does not show it, prints that. */
static void mprint_signature(mprint *p, const ir_computation *c) {
  if (c->function_type) {
    mprint_type(p->out, c->function_type);
    return;
  }
  base_putc(p->out, '(');
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_type(p->out, c->params[i]->type);
  }
  BASE_PUT(p->out, ") -> ");
  bool bare = c->n_results == 1 && ir_function_result_type(c, 0)->kind != IR_TYPE_FUNCTION;
  if (!bare) base_putc(p->out, '(');
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_type(p->out, ir_function_result_type(c, i));
  }
  if (!bare) base_putc(p->out, ')');
}

/* MLIR prints properties in alphabetical order. */
static void mprint_generic_function(mprint *p, const ir_computation *c) {
  BASE_PUT(p->out, "\"func.func\"() <{");
  mprint_argument_attrs(p, c);
  BASE_PUT(p->out, "function_type = ");
  mprint_signature(p, c);
  if (ir_mdict_get(c->mlir, "no_inline")) BASE_PUT(p->out, ", no_inline");
  mprint_result_attr_list(p, c);
  BASE_PUT(p->out, ", sym_name = ");
  mprint_quoted(p->out, c->name->s, c->name->n);
  const ir_mattr *visibility = ir_mdict_get(c->mlir, "sym_visibility");
  if (visibility) {
    BASE_PUT(p->out, ", sym_visibility = ");
    mprint_attr(p, visibility);
  }
  BASE_PUT(p->out, "}> (");
  mprint_region(p, c, true);
  base_putc(p->out, ')');
  mprint_dict_without(p, c->mlir, " {", "sym_visibility", "no_inline");
  BASE_PUT(p->out, " : () -> ()");
}

/* A function or, for symbols (sdy.mesh), the one op of a computation of its own. */
static void mprint_member(mprint *p, const ir_computation *c) {
  mprint_spaces(p);
  if (c->kind == IR_SYMBOL) {
    if (c->first) mprint_op(p, c->first);
  } else {
    if (p->generic)
      mprint_generic_function(p, c);
    else
      mprint_pretty_function(p, c);
    mprint_trailing_loc(p, c->loc, true);
  }
  base_putc(p->out, '\n');
}

/* --- modules --- */

/* What stands on the module's own level: functions, and ops with a symbol (meshes). Regions are printed by their
 * owners. */
static bool mprint_is_member(const ir_computation *c) {
  return c->kind == IR_FUNCTION || c->kind == IR_SYMBOL;
}

/* Up to the opening brace and its newline. */
static void mprint_module_head(mprint *p, const ir_module *m) {
  const ir_mattr *visibility = ir_mdict_get(m->mlir, "sym_visibility");
  if (!p->generic) {
    BASE_PUT(p->out, "module");
    if (m->named) {
      base_putc(p->out, ' ');
      mprint_symbol(p->out, m->name->s, m->name->n);
    }
    mprint_dict_without(p, m->mlir, " attributes {", "sym_name", "sym_name");
    BASE_PUT(p->out, " {\n");
    return;
  }
  BASE_PUT(p->out, "\"builtin.module\"()");
  if (m->named || visibility) base_puts(p->out, " <{");
  if (m->named) {
    BASE_PUT(p->out, "sym_name = ");
    mprint_quoted(p->out, m->name->s, m->name->n);
  }
  if (visibility) {
    base_puts(p->out, m->named ? ", sym_visibility = " : "sym_visibility = ");
    mprint_attr(p, visibility);
  }
  if (m->named || visibility) base_puts(p->out, "}>");
  BASE_PUT(p->out, " ({\n");
}

/* Everything but the aliases and the resources. */
static void mprint_module(mprint *p, const ir_module *m) {
  mprint_module_head(p, m);
  bool empty = true;
  p->indent = 2;
  IR_FOR_COMPUTATIONS(c, m) {
    if (!mprint_is_member(c)) continue;
    empty = false;
    mprint_member(p, c);
  }
  p->indent = 0;
  if (empty && p->generic) BASE_PUT(p->out, "^bb0:\n");
  base_putc(p->out, '}');
  if (p->generic) {
    base_putc(p->out, ')');
    mprint_dict_without(p, m->mlir, " {", "sym_visibility", "sym_name");
    BASE_PUT(p->out, " : () -> ()");
  }
  mprint_trailing_loc(p, m->loc, true);
  base_putc(p->out, '\n');
}

/* The first pass, for locations: numbers of aliases depend on all locations of the module, so they must be known
 * before the first is printed. */
static void mprint_visit_module(mprint *p, const ir_module *m) {
  mprint_loc_visit(p, m->loc, false);
  IR_FOR_COMPUTATIONS(c, m) {
    if (mprint_is_member(c)) mprint_visit_function(p, c);
  }
  mprint_loc_number(p);
}

/* `out` is the caller's; everything else is freed by mprint_end. */
static mprint mprint_begin(base_text *out, const mlir_print_options *options, base_alloc alloc) {
  mprint p = {.out = out, .alloc = alloc};
  if (options) {
    p.generic = options->generic;
    p.locations = options->locations;
    p.elide_over = options->elide_over;
  }
  base_arena_init(&p.arena, alloc);
  base_map_init(&p.loc_rows, alloc);
  base_map_init(&p.resource_keys, alloc);
  base_map_init(&p.other_ids, alloc);
  base_map_init(&p.other_taken, alloc);
  return p;
}

/* `status` is what went wrong before, or 0. */
static int mprint_end(mprint *p, int status, xlac_error *err) {
  bool failed = p->failed || p->out->failed;
  BASE_VEC_FREE(p->alloc, &p->each);
  BASE_VEC_FREE(p->alloc, &p->others);
  BASE_VEC_FREE(p->alloc, &p->locs);
  BASE_VEC_FREE(p->alloc, &p->resources);
  base_map_free(&p->loc_rows);
  base_map_free(&p->resource_keys);
  base_map_free(&p->other_ids);
  base_map_free(&p->other_taken);
  base_interner_free(&p->other_texts);
  base_arena_free(&p->arena);
  if (status != 0) return status;
  return failed ? base_oom(err, "MLIR text") : 0;
}

/* The parts of a text in their order:
 *
 *   #loc = loc(unknown)                     aliases that block arguments use
 *   module @m attributes {...} { ... }
 *   #loc1 = loc("a.py":3:4)                 all other aliases
 *   {-# dialect_resources: {...} #-}        the data of dense_resource<...> */
int text_print_mlir(base_text *out, const ir_module *m, const mlir_print_options *options, xlac_error *err) {
  mprint p = mprint_begin(out, options, m->alloc);
  int status = mprint_name_values(&p, m, NULL, err);
  if (status == 0) {
    if (p.locations) mprint_visit_module(&p, m);
    if (p.locations && !p.failed) mprint_loc_aliases(&p, true);
    if (!p.failed) mprint_module(&p, m);
    if (p.locations && !p.failed) mprint_loc_aliases(&p, false);
    if (!p.failed) mprint_resources(&p);
  }
  return mprint_end(&p, status, err);
}

/* The function or symbol that the op is in. One op alone is named as in the text of its function; numbering the
 * others is not needed. */
static const ir_computation *mprint_function_of(const ir_op *op) {
  const ir_computation *c = op->parent;
  while (c->owner) c = c->owner->parent;
  return c;
}

/* Values have the names that they have in the whole function. In the generic form numbering runs through the whole
 * module. */
int text_print_mlir_op(base_text *out, const ir_op *op, const mlir_print_options *options, xlac_error *err) {
  const ir_module *m = op->parent->module;
  mprint p = mprint_begin(out, options, m->alloc);
  int status = mprint_name_values(&p, m, p.generic ? NULL : mprint_function_of(op), err);
  if (status == 0) mprint_op(&p, op);
  return mprint_end(&p, status, err);
}

/* What text_name_mlir_values passes along: the printer that knows the names, and whom to tell them. */
typedef struct mprint_naming {
  mprint *p;
  text_name_fn *fn;
  void *ctx;
  xlac_error *err;
} mprint_naming;

/* p->out serves as the buffer for one name at a time. */
static int mprint_tell_op(const mprint_naming *x, ir_op *op) {
  base_text *name = x->p->out;
  int status = 0;
  for (uint32_t i = 0; i < op->n_results && status == 0; i++) {
    name->n = 0;
    mprint_value(x->p, (ir_value){op, i});
    if (!name->failed) status = x->fn(x->ctx, (ir_value){op, i}, name->s, name->n, x->err);
  }
  return status;
}

/* An op's results, then what is in its regions. Depth is bounded by the verifier. */
static int mprint_tell_values(const mprint_naming *x, const ir_computation *c) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (c->params[i]) TRY(mprint_tell_op(x, c->params[i]));
  IR_FOR_OPS(op, c) {
    if (op->opcode != IR_OP_PARAMETER) TRY(mprint_tell_op(x, op));
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(mprint_tell_values(x, op->called[i]));
  }
  return 0;
}

/* For those who speak of values by the names of the printed text (../../../shard/explain). Nothing is printed. */
int text_name_mlir_values(const ir_module *m, text_name_fn *fn, void *ctx, xlac_error *err) {
  base_text name;
  base_text_init(&name, m->alloc);
  mprint p = mprint_begin(&name, NULL, m->alloc);
  mprint_naming x = {&p, fn, ctx, err};
  int status = mprint_name_values(&p, m, NULL, err);
  for (const ir_computation *c = m->first; c && status == 0; c = c->next)
    if (!c->owner) status = mprint_tell_values(&x, c);
  status = mprint_end(&p, status, err);
  base_text_free(&name);
  return status;
}
