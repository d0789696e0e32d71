/* What any op or argument may carry, and the facts of the module: the inverse of to_hlo_common.c.
 *
 *   HLO                                       MLIR
 *   metadata={op_name="f" source_file="a.py"} loc(fused["f", "a.py":3:0])
 *   sharding={devices=[2]<=[2]}               mhlo.sharding = "{devices=[2]<=[2]}"
 *   frontend_attributes={k="v"}               mhlo.frontend_attributes = {k = "v"}
 *   input_output_alias={ {0}: (1, {}) }       tf.aliasing_output = 0 : i32, on argument 1
 *   buffer_donor={ (0, {}) }                  jax.buffer_donor = true, on argument 0
 *   parameter(0), parameter_replication={true}  mhlo.parameter_replication = [true] */
#include "../text/text.h"
#include "from_hlo.h"

/* --- locations --- */

/* A table of frames may be circular, or a line as long as the table. */
enum { FROM_HLO_MAX_FRAMES = 64 };

/* loc("a.py":3:4) */
static const ir_mattr *from_hlo_file_location(from_hlo *t, const base_istr *file, int64_t line, int64_t col) {
  assert(file);
  ir_mloc loc = {.kind = IR_LOC_FILE, .line = line, .col = col};
  loc.name = ir_intern(t->to, file->s, file->n);
  return loc.name ? ir_m_loc(t->to, &loc) : NULL;
}

/* loc("name"), or loc("name"(child)). */
static const ir_mattr *from_hlo_name_location(from_hlo *t, const base_istr *name, const ir_mattr *child) {
  assert(name);
  ir_mloc loc = {.kind = IR_LOC_NAME, .child = child};
  loc.name = ir_intern(t->to, name->s, name->n);
  return loc.name ? ir_m_loc(t->to, &loc) : NULL;
}

/* Row `row`, counted from 1, of the table of locations, with the name of the function about it. NULL where the table
 * has no such row. */
static const ir_mattr *from_hlo_frame_place(from_hlo *t, uint32_t row) {
  const ir_source_tables *s = &t->from->sources;
  const ir_location *l = row >= 1 && row <= s->n_locations ? &s->locations[row - 1] : NULL;
  if (!l || l->file < 1 || l->file > s->n_files) return NULL;
  const ir_mattr *file = from_hlo_file_location(t, s->files[l->file - 1], l->line, l->column);
  bool named = l->function >= 1 && l->function <= s->n_functions;
  return file && named ? from_hlo_name_location(t, s->functions[l->function - 1], file) : file;
}

/* The frame, and who called it.
 *   loc(callsite("f"("a.py":3:4) at "main"("a.py":9:0))) */
static const ir_mattr *from_hlo_frames(from_hlo *t, uint32_t id, int depth) {
  const ir_source_tables *s = &t->from->sources;
  if (id < 1 || id > s->n_frames || depth > FROM_HLO_MAX_FRAMES) return NULL;
  const ir_frame *frame = &s->frames[id - 1];
  const ir_mattr *place = from_hlo_frame_place(t, frame->location);
  const ir_mattr *caller = frame->parent != id ? from_hlo_frames(t, frame->parent, depth + 1) : NULL;
  if (!place || !caller) return place;
  const ir_mloc loc = {.kind = IR_LOC_CALLSITE, .child = place, .caller = caller};
  return ir_m_loc(t->to, &loc);
}

/* Two facts about one place. */
static const ir_mattr *from_hlo_fused(from_hlo *t, const ir_mattr *a, const ir_mattr *b) {
  ir_mattrs *parts = base_arena_alloc(&t->to->arena, sizeof *parts + 2 * sizeof *parts->v);
  if (!parts) return NULL;
  parts->n = 2;
  parts->v[0] = a;
  parts->v[1] = b;
  const ir_mloc loc = {.kind = IR_LOC_FUSED, .parts = parts};
  return ir_m_loc(t->to, &loc);
}

/* NULL where the op says nothing of where it is from (or memory is short: a location is not part of the program). */
const ir_mattr *from_hlo_location(from_hlo *t, const ir_op *op) {
  const ir_metadata *m = ir_get_metadata(op);
  if (!m || (!m->op_name && !m->source_file && !m->stack_frame_id)) return NULL;
  const ir_mattr *frames = m->stack_frame_id ? from_hlo_frames(t, m->stack_frame_id, 0) : NULL;
  if (frames) return m->op_name ? from_hlo_name_location(t, m->op_name, frames) : frames;
  const ir_mattr *file = NULL, *name = NULL;
  if (m->source_file) file = from_hlo_file_location(t, m->source_file, m->source_line, m->source_column);
  if (m->op_name) name = from_hlo_name_location(t, m->op_name, NULL);
  return file && name ? from_hlo_fused(t, name, file) : name ? name : file;
}

/* --- shardings, frontend attributes --- */

/* HLO's own words, in a string: that is how MLIR has it too. */
const ir_mattr *from_hlo_sharding(from_hlo *t, const ir_sharding *s) {
  base_text text;
  base_text_init(&text, t->to->alloc);
  text_put_sharding(&text, s, true);
  const ir_mattr *a = text.failed ? NULL : ir_m_string(t->to, text.s, text.n);
  base_text_free(&text);
  return a;
}

/* A sharding that is not a tuple holds for every leaf. */
const ir_sharding *from_hlo_leaf_sharding(const ir_sharding *s, uint32_t i) {
  if (!s || s->kind != IR_SHARDING_TUPLE) return s;
  return i < s->n_elements ? s->elements[i] : NULL;
}

/* Strings to strings. */
const ir_mattr *from_hlo_dict(from_hlo *t, const ir_dict *d) {
  ir_mentry *entries = BASE_ARRAY(&t->to->arena, ir_mentry, d->n + 1u);
  if (!entries) return NULL;
  for (uint32_t i = 0; i < d->n; i++) {
    entries[i].key = ir_intern(t->to, d->v[i].key->s, d->v[i].key->n);
    entries[i].value = ir_m_string(t->to, d->v[i].value->s, d->v[i].value->n);
    if (!entries[i].key || !entries[i].value) return NULL;
  }
  const ir_mdict *made = ir_mdict_make(t->to, d->n, entries);
  return made ? ir_m_dict(t->to, made) : NULL;
}

static const ir_dict *from_hlo_frontend(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  return a && a->v.dict->n ? a->v.dict : NULL;
}

/* What the made op gives, counted as HLO's shardings of tuples count. */
static uint32_t from_hlo_result_leaves(const ir_op *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < op->n_results; i++) n += ir_type_leaves(op->types[i]);
  return n;
}

/* The start of an async chain has shardings for its operands, its outcome and its contexts, of which only the outcome
 * is a value of `made`. NULL with *failed false where there is none. */
static const ir_sharding *from_hlo_made_sharding(from_hlo_op *x, const ir_op *made, bool *failed) {
  const ir_sharding *s = ir_get_sharding(x->op);
  uint32_t n = from_hlo_result_leaves(made);
  *failed = false;
  if (!s || s->kind != IR_SHARDING_TUPLE || s->n_elements == n) return s;
  uint32_t first = x->op->type->n_elements > 1 ? ir_type_leaves(x->op->type->elements[0]) : 0;
  if (!first || first + n > s->n_elements || n == 0) return NULL;
  if (n == 1) return s->elements[first];
  ir_sharding *part = BASE_NEW(&x->t->to->arena, ir_sharding);
  *failed = !part;
  if (part) *part = (ir_sharding){.kind = IR_SHARDING_TUPLE, .n_elements = n, .elements = s->elements + first};
  return part;
}

int from_hlo_common(from_hlo_op *x, ir_op *made) {
  bool failed = false;
  const ir_sharding *s = from_hlo_made_sharding(x, made, &failed);
  if (failed) return from_hlo_no_memory(x->t);
  const ir_dict *d = from_hlo_frontend(x->op);
  if (s) TRY(from_hlo_put(x, made, "mhlo.sharding", from_hlo_sharding(x->t, s)));
  return d ? from_hlo_put(x, made, "mhlo.frontend_attributes", from_hlo_dict(x->t, d)) : 0;
}

/* --- arguments and results --- */

/* An argument's attribute: arguments are ops here, so that it is an attribute like any other. */
static int from_hlo_put_fact(from_hlo *t, ir_op *argument, const char *name, const ir_mattr *value) {
  return value && ir_m_set(argument, name, value) ? 0 : from_hlo_no_memory(t);
}

/* Frontend attributes are the whole parameter's, so each leaf has them; a sharding and the replication are taken
 * apart. */
int from_hlo_argument_facts(from_hlo *t, const ir_computation *from, ir_computation *made) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < from->n_params; i++) {
    const ir_op *p = from->params[i];
    const ir_sharding *s = ir_get_sharding(p);
    const ir_dict *d = from_hlo_frontend(p);
    const ir_attr *replicated = ir_attr_find(p, IR_ATTR_PARAMETER_REPLICATION);
    for (uint32_t leaf = 0; leaf < ir_type_leaves(p->type); leaf++, at++) {
      ir_op *argument = made->params[at];
      assert(at < made->n_params && argument->opcode == IR_OP_PARAMETER);
      const ir_sharding *part = from_hlo_leaf_sharding(s, leaf);
      const ir_mattr *yes = ir_m_bool(t->to, true);
      if (part) TRY(from_hlo_put_fact(t, argument, "mhlo.sharding", from_hlo_sharding(t, part)));
      if (d) TRY(from_hlo_put_fact(t, argument, "mhlo.frontend_attributes", from_hlo_dict(t, d)));
      if (replicated && leaf < replicated->v.ints->n && replicated->v.ints->v[leaf])
        TRY(from_hlo_put_fact(t, argument, "mhlo.parameter_replication", yes ? ir_m_array(t->to, 1, &yes) : NULL));
    }
  }
  return 0;
}

/* Results of functions are not ops; their attributes stand in an array beside them, which is made when the first is
 * set. */
static int from_hlo_put_result(from_hlo *t, ir_computation *made, uint32_t i, const char *name, const ir_mattr *value) {
  assert(i < made->n_results);
  const ir_mdict **facts = (const ir_mdict **)(uintptr_t)made->result_mlir;
  if (!value) return from_hlo_no_memory(t);
  if (!facts) {
    facts = base_arena_zalloc(&t->to->arena, made->n_results * sizeof *facts);
    if (!facts) return from_hlo_no_memory(t);
    made->result_mlir = facts;
  }
  facts[i] = ir_mdict_with(t->to, facts[i], name, value);
  return facts[i] ? 0 : from_hlo_no_memory(t);
}

/* The root's sharding, leaf by leaf, as attributes of the results. */
int from_hlo_result_facts(from_hlo *t, const ir_computation *from, ir_computation *made) {
  const ir_sharding *s = ir_get_sharding(ir_root(from));
  for (uint32_t i = 0; s && i < made->n_results; i++) {
    const ir_sharding *part = from_hlo_leaf_sharding(s, i);
    if (part) TRY(from_hlo_put_result(t, made, i, "mhlo.sharding", from_hlo_sharding(t, part)));
  }
  return 0;
}

/* --- aliases and donors --- */

/* How many leaves come before the part at `path`. A path that leads out of the type ends there.
 *
 *   (f32[], (s32[], pred[])), path {1,1}    2 */
static uint32_t from_hlo_leaf_at(const ir_type *type, const ir_ints *path) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < path->n && ir_is_tuple(type); i++) {
    for (int64_t k = 0; k < path->v[i] && k < type->n_elements; k++) n += ir_type_leaves(type->elements[k]);
    if (path->v[i] < 0 || path->v[i] >= type->n_elements) return n;
    type = type->elements[path->v[i]];
  }
  return n;
}

/* The argument that is the leaf at `path` of parameter `number`; NULL where there is none. */
static ir_op *from_hlo_alias_argument(from_hlo *t, ir_computation *made, int64_t number, const ir_ints *path) {
  const ir_computation *entry = t->from->entry;
  uint32_t at = 0;
  if (number < 0 || number >= entry->n_params) return NULL;
  for (int64_t i = 0; i < number; i++) at += ir_type_leaves(entry->params[i]->type);
  at += from_hlo_leaf_at(entry->params[number]->type, path);
  return at < made->n_params ? made->params[at] : NULL;
}

/* An argument that is aliased and a donor is said to be aliased only, which says more. */
static int from_hlo_aliases(from_hlo *t, ir_computation *made) {
  const ir_config *config = &t->from->config;
  const ir_type *i32 = ir_element(t->to, XLAC_S32, NULL);
  if (!i32) return from_hlo_no_memory(t);
  for (uint32_t i = 0; i < config->n_aliases; i++) {
    const ir_alias *a = &config->aliases[i];
    ir_op *argument = from_hlo_alias_argument(t, made, a->operand, a->index);
    int64_t output = from_hlo_leaf_at(ir_root(t->from->entry)->type, a->output);
    if (argument) TRY(from_hlo_put_fact(t, argument, "tf.aliasing_output", ir_m_int(t->to, i32, output)));
  }
  for (uint32_t i = 0; i < config->n_donors; i++) {
    ir_op *argument = from_hlo_alias_argument(t, made, config->donors[i].parameter, config->donors[i].index);
    bool aliased = argument && ir_mattr_of(argument, "tf.aliasing_output"); /* which is to donate it */
    if (argument && !aliased) TRY(from_hlo_put_fact(t, argument, "jax.buffer_donor", ir_m_bool(t->to, true)));
  }
  return 0;
}

/* --- layouts of the entry --- */

/* "{0,1}", or NULL in *out where the layout is the usual one. The part of the printed type behind the dimensions:
 * f32[2,3]{0,1} gives {0,1}. */
static int from_hlo_layout_text(from_hlo *t, const ir_type *type, const ir_mattr **out) {
  *out = NULL;
  if (!ir_is_tensor(type) || !type->layout || type->layout == ir_layout_default(t->from, type->rank)) return 0;
  base_text text;
  base_text_init(&text, t->to->alloc);
  text_put_type(&text, type, true);
  size_t at = 0;
  while (at < text.n && text.s[at] != '{') at++;
  if (!text.failed && at < text.n) *out = ir_m_string(t->to, text.s + at, text.n - at);
  bool ok = !text.failed && (*out || at == text.n);
  base_text_free(&text);
  return ok ? 0 : from_hlo_no_memory(t);
}

/* On arguments (made->params) or results, leaf by leaf. */
static int from_hlo_layouts(from_hlo *t, ir_computation *made, const ir_type *type, bool result, uint32_t *at) {
  const ir_mattr *text;
  if (ir_is_tuple(type)) {
    for (uint32_t i = 0; i < type->n_elements; i++) TRY(from_hlo_layouts(t, made, type->elements[i], result, at));
    return 0;
  }
  uint32_t i = (*at)++;
  TRY(from_hlo_layout_text(t, type, &text));
  if (!text) return 0;
  assert(result ? i < made->n_results : i < made->n_params);
  return result ? from_hlo_put_result(t, made, i, "mhlo.layout_mode", text)
                : from_hlo_put_fact(t, made->params[i], "mhlo.layout_mode", text);
}

/* --- the module --- */

static int from_hlo_module_attr(from_hlo *t, const char *name, const ir_mattr *value) {
  t->to->mlir = value ? ir_mdict_with(t->to, t->to->mlir, name, value) : NULL;
  return t->to->mlir ? 0 : from_hlo_no_memory(t);
}

/* XLA's parser, and so the lenient verifier, keeps any entry_computation_layout; one of another program says nothing.
 */
static bool from_hlo_layout_fits(const ir_module *m) {
  const ir_config *config = &m->config;
  bool fits = config->has_entry_layout && config->n_entry_params == m->entry->n_params &&
              ir_compatible(config->entry_result, ir_root(m->entry)->type);
  for (uint32_t i = 0; fits && i < config->n_entry_params; i++)
    fits = ir_compatible(config->entry_params[i], m->entry->params[i]->type);
  return fits;
}

/* Counts of 1 are the default of both and are not said. */
int from_hlo_module_facts(from_hlo *t, ir_computation *entry) {
  const ir_config *config = &t->from->config;
  uint32_t at = 0;
  if (config->num_partitions != 1)
    TRY(from_hlo_module_attr(t, "mhlo.num_partitions", ir_m_i32(t->to, config->num_partitions)));
  if (config->replica_count != 1)
    TRY(from_hlo_module_attr(t, "mhlo.num_replicas", ir_m_i32(t->to, config->replica_count)));
  if (config->frontend_attributes && config->frontend_attributes->n)
    TRY(from_hlo_module_attr(t, "mhlo.frontend_attributes", from_hlo_dict(t, config->frontend_attributes)));
  TRY(from_hlo_aliases(t, entry));
  if (!from_hlo_layout_fits(t->from)) return 0;
  for (uint32_t i = 0; i < config->n_entry_params; i++)
    TRY(from_hlo_layouts(t, entry, config->entry_params[i], false, &at));
  at = 0;
  return from_hlo_layouts(t, entry, config->entry_result, true, &at);
}
