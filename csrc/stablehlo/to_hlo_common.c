/* What any op or argument may carry, and the facts of the module: shardings, aliases, donors, counts, locations. */
#include "../text/text.h"
#include "to_hlo.h"

/* --- sharding --- */

static int put_sharding(to_hlo *t, const ir_mattr *a, ir_op *made) {
  if (!a || a->kind != IR_M_STRING || a->str->n == 0) return 0;
  ir_attr attr = ir_attr_make(IR_ATTR_SHARDING);
  xlac_error ignored = {0};
  /* A string that is no HLO sharding (another tool's) is no error of the program. */
  if (text_parse_sharding(t->to, a->str->s, a->str->n, &attr.v.sharding, &ignored) != 0) return 0;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* --- frontend attributes --- */

static int put_frontend(to_hlo *t, const ir_mattr *a, ir_op *made) {
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
  ir_attr attr = ir_attr_make(IR_ATTR_FRONTEND_ATTRIBUTES);
  attr.v.dict = d;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

/* --- locations --- */

/* The name and the place in a location, wherever they are nested. */
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
    d->source_line = file->line;
  }
  ir_attr attr = ir_attr_make(IR_ATTR_METADATA);
  attr.v.metadata = d;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(t);
}

int to_hlo_common(to_hlo *t, const ir_op *from, ir_op *made) {
  if (from->loc) TRY(put_metadata(t, from->loc, made));
  if (!from->mlir || made->opcode == IR_OP_GET_TUPLE_ELEMENT) return 0;
  TRY(put_sharding(t, ir_mattr_of(from, "mhlo.sharding"), made));
  return put_frontend(t, ir_mattr_of(from, "mhlo.frontend_attributes"), made);
}

/* --- the module --- */

static int count_attr(const ir_module *m, const char *name, int64_t *out) {
  const ir_mattr *a = ir_mdict_get(m->mlir, name);
  if (a && a->kind == IR_M_INTEGER && a->v.i > 0) *out = a->v.i;
  return 0;
}

static int add_alias(to_hlo *t, int64_t output, uint32_t parameter, bool tuple) {
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

int to_hlo_module_facts(to_hlo *t, const ir_computation *entry) {
  ir_config *config = &t->to->config;
  TRY(count_attr(t->from, "mhlo.num_replicas", &config->replica_count));
  TRY(count_attr(t->from, "mhlo.num_partitions", &config->num_partitions));
  const ir_computation *c = t->to->entry;
  config->has_entry_layout = true;
  config->n_entry_params = c->n_params;
  config->entry_params = BASE_ARRAY(&t->to->arena, const ir_type *, c->n_params + 1u);
  if (!config->entry_params) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < c->n_params; i++) config->entry_params[i] = c->params[i]->type;
  config->entry_result = ir_root(c)->type;
  return argument_facts(t, entry);
}

/* --- names --- */

static bool hlo_name_takes(char c, bool first) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return true;
  return !first && ((c >= '0' && c <= '9') || c == '.' || c == '-');
}

const base_istr *to_hlo_name(to_hlo *t, const base_istr *symbol) {
  bool prefix = symbol->n == 0 || (!hlo_name_takes(symbol->s[0], true) && hlo_name_takes(symbol->s[0], false));
  char *text = BASE_ARRAY(&t->to->arena, char, symbol->n + 2);
  size_t n = 0;
  if (!text) return NULL;
  if (prefix) text[n++] = '_';
  for (size_t i = 0; i < symbol->n; i++, n++) text[n] = hlo_name_takes(symbol->s[i], n == 0) ? symbol->s[i] : '_';
  return ir_intern(t->to, text, n);
}

const base_istr *to_hlo_fresh_name(to_hlo *t, const base_istr *symbol) {
  const base_istr *name = to_hlo_name(t, symbol);
  return name ? ir_fresh_name(t->to, name->s) : NULL;
}
