/* What any op or argument may carry, and the facts of the module: shardings, aliases, donors, counts, locations. The
 * inverse of from_hlo_common.c, which has a table of what is what.
 *
 * Attributes of other tools pass through here: what is not of the expected kind is passed by, not refused. */
#include <stdlib.h>

#include "../ir/names.h"
#include "../text/mlir/mlir.h"
#include "../text/text.h"
#include "to_hlo.h"

/* --- sharding --- */

static int put_sharding(to_hlo *t, const ir_mattr *a, ir_op *made) {
  if (!a || a->kind != IR_M_STRING || a->str->n == 0) return 0;
  ir_attr attr = ir_attr_make(IR_ATTR_SHARDING);
  xlac_error ignored = {0};
  /* A string that is not an HLO sharding (another tool's) is not an error of the program. */
  if (text_parse_sharding(t->to, a->str->s, a->str->n, &attr.v.sharding, &ignored) != 0) return 0;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* --- frontend attributes --- */

/* NULL in *out where there are none. Entries that are not strings are left out. */
static int frontend_dict(to_hlo *t, const ir_mattr *a, const ir_dict **out) {
  *out = NULL;
  if (!a || a->kind != IR_M_DICT || a->v.dict->n == 0) return 0;
  ir_dict *d = base_arena_zalloc(&t->to->arena, sizeof *d + a->v.dict->n * sizeof *d->v);
  if (!d) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < a->v.dict->n; i++) {
    const ir_mentry *e = &a->v.dict->v[i];
    if (e->value->kind != IR_M_STRING) continue;
    d->v[d->n].key = ir_intern(t->to, e->key->s, e->key->n);
    d->v[d->n].value = ir_intern(t->to, e->value->str->s, e->value->str->n);
    if (!d->v[d->n].key || !d->v[d->n].value) return to_hlo_no_memory(t);
    d->n++;
  }
  *out = d;
  return 0;
}

static int put_frontend(to_hlo *t, const ir_mattr *a, ir_op *made) {
  ir_attr attr = ir_attr_make(IR_ATTR_FRONTEND_ATTRIBUTES);
  TRY(frontend_dict(t, a, &attr.v.dict));
  return !attr.v.dict || ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* --- facts of arguments --- */

/*   mhlo.parameter_replication = [true]    parameter_replication={true}
 *
 * Arguments have one leaf, so the list has one member. */
static int put_replication(to_hlo *t, const ir_mattr *a, ir_op *made) {
  if (!a || a->kind != IR_M_ARRAY || made->opcode != IR_OP_PARAMETER || a->v.list->n != 1) return 0;
  const ir_mattr *v = a->v.list->v[0];
  const int64_t yes = v->kind == IR_M_BOOL && v->v.b;
  ir_attr attr = ir_attr_make(IR_ATTR_PARAMETER_REPLICATION);
  attr.v.ints = ir_ints_make(t->to, 1, &yes);
  return attr.v.ints && ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* HLO prints frontend attributes in the order of their keys. */
static int compare_dict_entries(const void *a, const void *b) {
  return strcmp(((const ir_dict_entry *)a)->key->s, ((const ir_dict_entry *)b)->key->s);
}

/*   composite.attributes={a = 1 : i32}, composite.name="my.op", composite.version="1", is_composite=true */
int to_hlo_composite(to_hlo_op *x, ir_op *made) {
  static const char *const keys[] = {"composite.attributes", "composite.name", "composite.version"};
  ir_module *m = x->t->to;
  const ir_attr *old = ir_attr_find(made, IR_ATTR_FRONTEND_ATTRIBUTES);
  const ir_mattr *attrs = ir_mattr_of(x->op, "composite_attributes");
  uint32_t n = old ? old->v.dict->n : 0;
  ir_dict *d = base_arena_zalloc(&m->arena, sizeof *d + (n + 3) * sizeof *d->v);
  base_text texts[3];
  if (!d) return to_hlo_no_memory(x->t);
  for (int i = 0; i < 3; i++) base_text_init(&texts[i], m->alloc);
  if (attrs) text_put_mlir_attr(&texts[0], attrs);
  if (!attrs) BASE_PUT(&texts[0], "{}");
  base_puts(&texts[1], ir_m_get_str(x->op, "name"));
  base_put_i64(&texts[2], ir_m_get_int(x->op, "version", 0));
  if (n) memcpy(d->v, old->v.dict->v, n * sizeof *d->v);
  bool ok = true;
  for (int i = 0; i < 3; i++) {
    ir_dict_entry *e = &d->v[n + (uint32_t)i];
    e->key = ir_intern(m, keys[i], strlen(keys[i]));
    e->value = texts[i].failed ? NULL : ir_intern(m, texts[i].s ? texts[i].s : "", texts[i].n);
    ok = ok && e->key && e->value;
    base_text_free(&texts[i]);
  }
  if (!ok) return to_hlo_no_memory(x->t);
  d->n = n + 3;
  qsort(d->v, d->n, sizeof *d->v, compare_dict_entries);
  ir_attr attr = ir_attr_make(IR_ATTR_FRONTEND_ATTRIBUTES);
  attr.v.dict = d;
  return ir_attr_set(made, attr) && ir_set_bool(made, IR_ATTR_IS_COMPOSITE, true) ? 0 : to_hlo_no_memory(x->t);
}

/* --- locations --- */

/* The name and the place in a location, wherever they are nested. A callsite's name and place are the callee's, the
 * innermost; of a fused one the first that is there. Depth is bounded, as locations nest as deep as a text likes. */
static void look_into(const ir_mattr *loc, const base_istr **name, const ir_mloc **file, int depth) {
  if (!loc || loc->kind != IR_M_LOC || depth > 32) return;
  const ir_mloc *l = loc->v.loc;
  switch ((ir_mloc_kind)l->kind) {
    case IR_LOC_UNKNOWN:
      return;
    case IR_LOC_FILE:
      if (!*file) *file = l;
      return;
    case IR_LOC_NAME:
      if (!*name) *name = l->name;
      look_into(l->child, name, file, depth + 1);
      return;
    case IR_LOC_CALLSITE:
      look_into(l->child, name, file, depth + 1);
      return;
    case IR_LOC_FUSED:
      for (uint32_t i = 0; i < l->parts->n; i++) look_into(l->parts->v[i], name, file, depth + 1);
      return;
  }
}

/*   loc("f"("a.py":3:4))    metadata={op_name="f" source_file="a.py" source_line=3} */
static int put_metadata(to_hlo *t, const ir_mattr *loc, ir_op *made) {
  const base_istr *name = NULL;
  const ir_mloc *file = NULL;
  look_into(loc, &name, &file, 0);
  if (!name && !file) return 0;
  ir_metadata *d = BASE_NEW(&t->to->arena, ir_metadata);
  if (!d) return to_hlo_no_memory(t);
  if (name && !(d->op_name = ir_intern(t->to, name->s, name->n))) return to_hlo_no_memory(t);
  if (file) {
    if (!(d->source_file = ir_intern(t->to, file->name->s, file->name->n))) return to_hlo_no_memory(t);
    d->source_line = (int32_t)file->line; /* of 32 bits there, with a sign */
  }
  ir_attr attr = ir_attr_make(IR_ATTR_METADATA);
  attr.v.metadata = d;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* Elements of a tuple are made here, not by the program, and have no sharding of their own. */
int to_hlo_common(to_hlo *t, const ir_op *from, ir_op *made) {
  if (from->loc) TRY(put_metadata(t, from->loc, made));
  if (!from->mlir || made->opcode == IR_OP_GET_TUPLE_ELEMENT) return 0;
  TRY(put_sharding(t, ir_mattr_of(from, "mhlo.sharding"), made));
  TRY(put_replication(t, ir_mattr_of(from, "mhlo.parameter_replication"), made));
  return put_frontend(t, ir_mattr_of(from, "mhlo.frontend_attributes"), made);
}

/* --- the module --- */

/* *out stays where the module does not say. */
static int count_attr(const ir_module *m, const char *name, int64_t *out) {
  const ir_mattr *a = ir_mdict_get(m->mlir, name);
  if (a && a->kind == IR_M_INTEGER && a->v.i > 0) *out = a->v.i;
  return 0;
}

/* Output {0} of a tuple; {} where the entry gives the one value itself. */
static int add_alias(to_hlo *t, int64_t output, uint32_t parameter, bool tuple) {
  assert(output >= 0 && parameter < t->entry->n_params);
  ir_config *config = &t->to->config;
  ir_alias *more = BASE_ARRAY(&t->to->arena, ir_alias, config->n_aliases + 1u);
  if (!more) return to_hlo_no_memory(t);
  ir_alias a = {.output = ir_ints_make(t->to, tuple ? 1 : 0, &output),
                .operand = parameter,
                .index = ir_ints_make(t->to, 0, NULL)};
  if (!a.output || !a.index) return to_hlo_no_memory(t);
  uint32_t at = 0; /* sorted by output index */
  while (at < config->n_aliases && config->aliases[at].output->n && config->aliases[at].output->v[0] < output) at++;
  if (at) memcpy(more, config->aliases, at * sizeof *more);
  more[at] = a;
  if (config->n_aliases > at) memcpy(more + at + 1, config->aliases + at, (config->n_aliases - at) * sizeof *more);
  config->aliases = more;
  config->n_aliases++;
  return 0;
}

static int add_donor(to_hlo *t, uint32_t parameter) {
  assert(parameter < t->entry->n_params);
  ir_config *config = &t->to->config;
  ir_donor *more = BASE_ARRAY(&t->to->arena, ir_donor, config->n_donors + 1u);
  if (!more) return to_hlo_no_memory(t);
  if (config->n_donors) memcpy(more, config->donors, config->n_donors * sizeof *more);
  more[config->n_donors] = (ir_donor){parameter, ir_ints_make(t->to, 0, NULL)};
  if (!more[config->n_donors].index) return to_hlo_no_memory(t);
  config->donors = more;
  config->n_donors++;
  return 0;
}

/* The verifier does not look at tf.aliasing_output, so its range is checked here. */
static int argument_facts(to_hlo *t, const ir_computation *entry) {
  bool tuple = entry->n_results != 1 || t->options.return_tuple;
  for (uint32_t i = 0; i < entry->n_params; i++) {
    const ir_op *p = entry->params[i];
    const ir_mattr *alias = ir_mattr_of(p, "tf.aliasing_output");
    if (alias && alias->kind == IR_M_INTEGER) {
      if (alias->v.i < 0 || alias->v.i >= entry->n_results)
        return to_hlo_fail(t, p, XLAC_E_VERIFY_ALIAS, "argument %u is to alias output %lld, but there are %u outputs",
                           i, (long long)alias->v.i, entry->n_results);
      TRY(add_alias(t, alias->v.i, i, tuple));
    }
    if (ir_m_get_bool(p, "jax.buffer_donor")) TRY(add_donor(t, i));
  }
  return 0;
}

/* A layout mode that is a layout ("{0,1}", not "default" or "auto") goes into the type. */
static int with_layout_mode(to_hlo *t, const ir_mattr *mode, const ir_type **type) {
  const ir_type *laid = NULL;
  xlac_error ignored = {0};
  base_text text;
  if (!mode || mode->kind != IR_M_STRING || mode->str->n == 0 || mode->str->s[0] != '{' || !ir_is_tensor(*type))
    return 0;
  base_text_init(&text, t->to->alloc);
  ir_put_type(&text, *type, false);
  base_put(&text, mode->str->s, mode->str->n);
  int status = text.failed ? -1 : text_parse_type(t->to, text.s, text.n, &laid, &ignored);
  base_text_free(&text);
  if (status == 0 && laid && laid->bare == (*type)->bare) *type = laid; /* else another tool's word */
  return 0;
}

static int result_layout(to_hlo *t, const ir_computation *entry, const ir_type **type) {
  const ir_mdict *const *facts = entry->result_mlir;
  if (!facts || !ir_is_tuple(*type))
    return facts ? with_layout_mode(t, ir_mdict_get(facts[0], "mhlo.layout_mode"), type) : 0;
  const ir_type **types = BASE_ARRAY(&t->to->arena, const ir_type *, (*type)->n_elements + 1u);
  if (!types) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < (*type)->n_elements; i++) {
    types[i] = (*type)->elements[i];
    if (i < entry->n_results) TRY(with_layout_mode(t, ir_mdict_get(facts[i], "mhlo.layout_mode"), &types[i]));
  }
  *type = ir_tuple(t->to, (*type)->n_elements, types);
  return *type ? 0 : to_hlo_no_memory(t);
}

/* Shardings of all results are the root's. Only where all results have one: HLO's root has one sharding for the
 * whole tuple, in which each element must be said. */
static int result_shardings(to_hlo *t, const ir_computation *entry, ir_op *root) {
  uint32_t n = entry->n_results;
  const ir_mdict *const *facts = entry->result_mlir;
  if (!facts || n == 0 || ir_get_sharding(root) || root->opcode == IR_OP_PARAMETER) return 0;
  for (uint32_t i = 0; i < n; i++)
    if (!ir_mdict_get(facts[i], "mhlo.sharding")) return 0;
  if (root->opcode != IR_OP_TUPLE) return put_sharding(t, ir_mdict_get(facts[0], "mhlo.sharding"), root);
  base_text text;
  base_text_init(&text, t->to->alloc);
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *a = ir_mdict_get(facts[i], "mhlo.sharding");
    base_puts(&text, i ? ", " : "{");
    if (a->kind == IR_M_STRING) base_put(&text, a->str->s, a->str->n);
  }
  base_putc(&text, '}');
  const ir_mattr *all = text.failed ? NULL : ir_m_string(t->to, text.s, text.n);
  base_text_free(&text);
  return all ? put_sharding(t, all, root) : to_hlo_no_memory(t);
}

/* The entry's layout is made of the types that the entry has got, and of the layout modes that JAX sets. */
int to_hlo_module_facts(to_hlo *t, const ir_computation *entry) {
  ir_config *config = &t->to->config;
  TRY(count_attr(t->from, "mhlo.num_replicas", &config->replica_count));
  TRY(count_attr(t->from, "mhlo.num_partitions", &config->num_partitions));
  TRY(frontend_dict(t, ir_mdict_get(t->from->mlir, "mhlo.frontend_attributes"), &config->frontend_attributes));
  const ir_computation *c = t->to->entry;
  config->has_entry_layout = true;
  config->n_entry_params = c->n_params;
  config->entry_params = BASE_ARRAY(&t->to->arena, const ir_type *, c->n_params + 1u);
  if (!config->entry_params) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < c->n_params; i++) {
    config->entry_params[i] = c->params[i]->type;
    TRY(with_layout_mode(t, ir_mattr_of(entry->params[i], "mhlo.layout_mode"), &config->entry_params[i]));
  }
  config->entry_result = ir_root(c)->type;
  TRY(result_layout(t, entry, &config->entry_result));
  TRY(result_shardings(t, entry, ir_root(c)));
  return argument_facts(t, entry);
}

/* --- names --- */

/*   "my func"    my_func        "3x"    _3x        ""    _ */
const base_istr *to_hlo_name(to_hlo *t, const base_istr *symbol) {
  assert(symbol);
  bool prefix = symbol->n == 0 || (!ir_name_takes(symbol->s[0], true) && ir_name_takes(symbol->s[0], false));
  char *text = BASE_ARRAY(&t->to->arena, char, symbol->n + 2);
  size_t n = 0;
  if (!text) return NULL;
  if (prefix) text[n++] = '_';
  for (size_t i = 0; i < symbol->n; i++, n++) text[n] = ir_name_takes(symbol->s[i], n == 0) ? symbol->s[i] : '_';
  return ir_intern(t->to, text, n);
}

/* Two symbols may be one HLO name: the second gets a number. */
const base_istr *to_hlo_fresh_name(to_hlo *t, const base_istr *symbol) {
  const base_istr *name = to_hlo_name(t, symbol);
  return name ? ir_fresh_name(t->to, name->s) : NULL;
}
