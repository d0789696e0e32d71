/* Modules, computations and ops come into being here, or as copies of others.
 *
 * Everything that a module points to lies in its arena or in its tables, so destroying it is a handful of frees, and
 * a copy shares nothing with the original. Ids of ops and of computations are handed out in the order of creation and
 * never used again: side tables of passes are arrays indexed by id. */
#include "attrs/import_memo.h"
#include "ir.h"
#include "types/type_table.h"

/* The module is usable at once: no computations, HLO form, one replica and one partition. When something fails *out
 * stays as it was. */
int ir_module_create(ir_module **out, const char *name, base_alloc alloc, xlac_error *err) {
  assert(out && name);
  ir_module *m = base_malloc(alloc, sizeof *m);
  if (!m) return base_oom(err, "a module");
  memset(m, 0, sizeof *m);
  m->alloc = alloc;
  base_arena_init(&m->arena, alloc);
  base_interner_init(&m->strings, &m->arena);
  base_map_init(&m->name_counters, alloc);
  m->config.replica_count = 1;
  m->config.num_partitions = 1;
  m->name = ir_intern(m, name, strlen(name));
  if (!m->name || ir_type_table_create(m) != 0) {
    ir_module_destroy(m);
    return base_oom(err, "a module");
  }
  *out = m;
  return 0;
}

void ir_module_destroy(ir_module *m) {
  if (!m) return;
  ir_type_table_destroy(m);
  base_map_free(&m->name_counters);
  base_interner_free(&m->strings);
  base_arena_free(&m->arena);
  base_free(m->alloc, m);
}

/* Interned strings are compared by pointer within one module only: passes that work across modules compare their
 * bytes. */
const base_istr *ir_intern(ir_module *m, const char *s, size_t n) {
  return base_intern(&m->strings, s, n);
}

/* Interned strings include every name ever used, so a string that is not interned is a name nobody has. */
static const base_istr *numbered_name(ir_module *m, const base_istr *stem) {
  uint64_t next = 1;
  base_map_get(&m->name_counters, base_key(stem), &next);
  base_text t;
  base_text_init(&t, m->alloc);
  /* The counter of the stem remembers where the last search ended, so that n fresh names of one stem cost n look-ups
   * and not n^2. */
  for (;; next++) {
    t.n = 0;
    base_put(&t, stem->s, stem->n);
    base_putc(&t, '.');
    base_put_u64(&t, next);
    if (t.failed || !base_intern_find(&m->strings, t.s, t.n)) break;
  }
  const base_istr *name = t.failed ? NULL : ir_intern(m, t.s, t.n);
  base_text_free(&t);
  if (!base_map_set(&m->name_counters, base_key(stem), next + 1)) return NULL;
  return name;
}

/* "add" while nobody has that name; then "add.1", "add.2", ... A name that has been given up is not given again. */
const base_istr *ir_fresh_name(ir_module *m, const char *stem) {
  assert(stem && *stem);
  size_t n = strlen(stem);
  if (!base_intern_find(&m->strings, stem, n)) return ir_intern(m, stem, n);
  const base_istr *base = ir_intern(m, stem, n);
  return base ? numbered_name(m, base) : NULL;
}

/* The name is taken as it is: two computations may share one until ir_uniquify_names has run. */
ir_computation *ir_computation_new(ir_module *m, const char *name, size_t name_n) {
  assert(m && (name || name_n == 0));
  ir_computation *c = BASE_NEW(&m->arena, ir_computation);
  if (!c || !(c->name = ir_intern(m, name, name_n))) return NULL;
  c->module = m;
  c->id = m->n_computation_ids++;
  c->prev = m->last;
  if (m->last) {
    m->last->next = c;
  } else {
    m->first = c;
  }
  m->last = c;
  m->n_computations++;
  if (!m->entry) m->entry = c;
  ir_edited(m);
  return c;
}

/* Appends to the computation's list, which is the order of the text. */
static void link_last(ir_computation *c, ir_op *op) {
  assert(!op->prev && !op->next);
  op->parent = c;
  op->prev = c->last;
  if (c->last) {
    c->last->next = op;
  } else {
    c->first = op;
  }
  c->last = op;
  c->n_ops++;
}

/* A slot knows its user and its place for good; what it refers to (op, index, the list's links) is set by link_use. */
static void init_slots(ir_op *op, uint32_t n_operands) {
  for (uint32_t i = 0; i < n_operands; i++) {
    op->operands[i].user = op;
    op->operands[i].slot = i;
  }
}

ir_op *ir_op_new_n(ir_computation *c, ir_opcode opcode, uint32_t n_results, const ir_type *const *types,
                   const base_istr *name, uint32_t n_operands, uint32_t n_called) {
  assert(opcode > IR_OP_INVALID && opcode < IR_OP_COUNT && n_results <= UINT16_MAX);
  ir_module *m = c->module;
  /* One block: the op, its operand slots, its called computations. */
  size_t operand_bytes = (size_t)n_operands * sizeof(ir_use),
         called_bytes = (size_t)n_called * sizeof(ir_computation *);
  assert(c && n_operands < UINT32_MAX / sizeof(ir_use) && n_called < UINT32_MAX / sizeof(ir_computation *));
  ir_op *op = base_arena_zalloc(&m->arena, sizeof *op + operand_bytes + called_bytes);
  if (!op) return NULL;
  op->operands = (ir_use *)(op + 1);
  op->called = (ir_computation **)((char *)(op + 1) + operand_bytes);
  op->opcode = (uint16_t)opcode;
  op->n_results = (uint16_t)n_results;
  op->n_operands = n_operands;
  op->n_called = n_called;
  op->name = name;
  op->type = n_results ? types[0] : NULL;
  op->types = &op->type;
  /* One result, the usual case, needs no array of its own: `types` points at the op's own field. */
  if (n_results > 1 && !(op->types = base_arena_memdup(&m->arena, types, n_results * sizeof *types))) return NULL;
  init_slots(op, n_operands);
  op->id = m->n_ids++;
  link_last(c, op);
  ir_edited(m);
  return op;
}

ir_op *ir_op_new(ir_computation *c, ir_opcode opcode, const ir_type *type, const base_istr *name, uint32_t n_operands,
                 uint32_t n_called) {
  return ir_op_new_n(c, opcode, 1, &type, name, n_operands, n_called);
}

/* Copies of ops and of whole modules. */

/* Attribute values are immutable, so a copy within the module shares them; into another module they are made anew
 * there. */
static bool clone_attrs(ir_op *to, const ir_op *from) {
  ir_module *m = to->parent->module;
  bool same_module = m == from->parent->module;
  for (uint16_t i = 0; i < from->n_attrs; i++) {
    ir_attr a = from->attrs[i];
    if (!same_module && !ir_attr_import(m, &from->attrs[i], &a)) return false;
    if (!ir_attr_set(to, a)) return false;
  }
  return true;
}

/* `few` has room for one. What is longer stays with the copy. */
static const ir_type *const *clone_types(ir_module *m, const ir_op *op, const ir_type **few) {
  if (m == op->parent->module) return op->types;
  const ir_type **types = op->n_results < 2 ? few : BASE_ARRAY(&m->arena, const ir_type *, op->n_results);
  for (uint32_t i = 0; types && i < op->n_results; i++)
    if (!(types[i] = ir_type_import(m, op->types[i]))) return NULL;
  return types;
}

/* MLIR form's part of an op: attributes, location, the name of an op that xlac does not know. `done` spares repeated
 * copies of a dictionary that thousands of ops share; NULL outside of clones of whole modules. */
static bool clone_mlir(ir_op *to, const ir_op *from, bool same_module, base_map *done) {
  assert(to->opcode == from->opcode);
  ir_module *m = to->parent->module;
  if (same_module)
    to->mlir = from->mlir;
  else
    to->mlir = done ? ir_mdict_import_once(m, from->mlir, done) : ir_mdict_import(m, from->mlir);
  to->properties = from->properties;
  to->loc = same_module ? from->loc : ir_mattr_import(m, from->loc);
  if (from->opcode == IR_OP_UNREGISTERED && !(to->u.name = ir_intern(m, from->u.name->s, from->u.name->n)))
    return false;
  return (to->mlir || !from->mlir) && (to->loc || !from->loc);
}

/* The op without operands, control edges and called computations. `done`: attributes copied before, or NULL. */
static ir_op *clone_shell(const ir_op *op, ir_computation *to, base_map *done) {
  ir_module *m = to->module;
  bool same_module = m == op->parent->module;
  const ir_type *few = NULL, *const *types = clone_types(m, op, &few);
  const base_istr *name = same_module ? ir_fresh_name(m, op->name->s) : ir_intern(m, op->name->s, op->name->n);
  if (!types || !name) return NULL;
  ir_op *c = ir_op_new_n(to, op->opcode, op->n_results, types, name, op->n_operands, op->n_called);
  if (!c || !clone_attrs(c, op)) return NULL;
  c->line = op->line;
  c->col = op->col;
  if (!clone_mlir(c, op, same_module, done)) return NULL;
  if (op->opcode == IR_OP_PARAMETER) return ir_set_parameter(c, op->u.number) ? c : NULL;
  if (op->opcode == IR_OP_CONSTANT && op->u.literal) {
    c->u.literal = same_module ? op->u.literal : ir_literal_import(m, op->u.literal);
    if (!c->u.literal) return NULL;
  }
  return c;
}

/* What p has become, or p itself where the map says nothing: operands from outside of the cloned part stay as they
 * are. */
static void *mapped(const base_map *map, void *p) {
  void *q = map ? base_map_ptr(map, p) : NULL;
  return q ? q : p;
}

/* `ops`, of a whole module's clone: what they have become, by id; else NULL, and the map knows. */
static ir_op *mapped_op(const base_map *map, ir_op *const *ops, ir_op *op) {
  return ops ? ops[op->id] : mapped(map, op);
}

/* Links the clone `c` of `op` to what its neighbours have become. */
static bool clone_links(ir_op *c, const ir_op *op, const base_map *map, ir_op *const *ops) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = {mapped_op(map, ops, op->operands[i].op), op->operands[i].index};
    assert(v.op->parent->module == c->parent->module);
    ir_set_operand(c, i, v);
  }
  IR_FOR_CONTROL_PREDS(e, op)
  if (!ir_add_control_pred(c, mapped_op(map, ops, e->pred))) return false;
  for (uint32_t i = 0; i < op->n_called; i++) c->called[i] = mapped(map, op->called[i]);
  return true;
}

/* The copy's operands must come before it in `to`, or be in the map: no link is left open. */
ir_op *ir_op_clone(const ir_op *op, ir_computation *to, const base_map *map) {
  assert(op && to);
  ir_op *c = clone_shell(op, to, NULL);
  return c && clone_links(c, op, map, NULL) ? c : NULL;
}

/* --- modules --- */

/* NULL, an absent list, stays NULL and is no failure. */
static const ir_ints *clone_ints(ir_module *m, const ir_ints *v, bool *ok) {
  if (!v) return NULL;
  const ir_ints *c = ir_ints_make(m, v->n, v->v);
  *ok = *ok && c;
  return c;
}

static bool clone_aliases(ir_module *m, const ir_config *from) {
  bool ok = true;
  ir_config *to = &m->config;
  to->aliases = base_arena_memdup(&m->arena, from->aliases, from->n_aliases * sizeof *from->aliases);
  to->donors = base_arena_memdup(&m->arena, from->donors, from->n_donors * sizeof *from->donors);
  if (!to->aliases || !to->donors) return false;
  for (uint32_t i = 0; i < from->n_aliases; i++) {
    to->aliases[i].output = clone_ints(m, from->aliases[i].output, &ok);
    to->aliases[i].index = clone_ints(m, from->aliases[i].index, &ok);
  }
  for (uint32_t i = 0; i < from->n_donors; i++) to->donors[i].index = clone_ints(m, from->donors[i].index, &ok);
  return ok;
}

/* n + 1 elements, so that a module without parameters asks the arena for something too. */
static bool clone_entry_layout(ir_module *m, const ir_config *from) {
  ir_config *to = &m->config;
  if (!from->has_entry_layout) return true;
  to->entry_params = BASE_ARRAY(&m->arena, const ir_type *, from->n_entry_params + 1);
  if (!to->entry_params || !(to->entry_result = ir_type_import(m, from->entry_result))) return false;
  for (uint32_t i = 0; i < from->n_entry_params; i++)
    if (!(to->entry_params[i] = ir_type_import(m, from->entry_params[i]))) return false;
  return true;
}

/* *to = *from copies numbers and flags; every pointer is then replaced by a copy that is m's own. */
static bool clone_config(ir_module *m, const ir_config *from) {
  bool ok = true;
  ir_config *to = &m->config;
  *to = *from;
  to->alias_passthrough_params = clone_ints(m, from->alias_passthrough_params, &ok);
  to->spmd_to_parameters = clone_ints(m, from->spmd_to_parameters, &ok);
  to->spmd_to_output = clone_ints(m, from->spmd_to_output, &ok);
  if (from->frontend_attributes) ok = ok && (to->frontend_attributes = ir_dict_import(m, from->frontend_attributes));
  if (from->origin_recovery_table) {
    to->origin_recovery_table = ir_intern(m, from->origin_recovery_table->s, from->origin_recovery_table->n);
    ok = ok && to->origin_recovery_table;
  }
  return ok && clone_aliases(m, from) && clone_entry_layout(m, from);
}

static const base_istr **clone_strings(ir_module *m, const base_istr **from, uint32_t n) {
  const base_istr **to = BASE_ARRAY(&m->arena, const base_istr *, n + 1);
  for (uint32_t i = 0; to && i < n; i++)
    if (!(to[i] = ir_intern(m, from[i]->s, from[i]->n))) return NULL;
  return to;
}

/* The rows refer to each other by number, so all but the strings are copied as they are. */
static bool clone_sources(ir_module *m, const ir_source_tables *from) {
  ir_source_tables *to = &m->sources;
  *to = *from;
  to->files = clone_strings(m, from->files, from->n_files);
  to->functions = clone_strings(m, from->functions, from->n_functions);
  to->locations = base_arena_memdup(&m->arena, from->locations, from->n_locations * sizeof *from->locations);
  to->frames = base_arena_memdup(&m->arena, from->frames, from->n_frames * sizeof *from->frames);
  return to->files && to->functions && to->locations && to->frames;
}

/* MLIR form's part of a computation. In HLO form all of it is absent, and this copies nothing but zeros. */
static bool clone_function_facts(ir_computation *c, const ir_computation *from) {
  ir_module *m = c->module;
  c->kind = from->kind;
  c->declaration = from->declaration;
  c->open_end = from->open_end;
  c->mlir = ir_mdict_import(m, from->mlir);
  c->loc = ir_mattr_import(m, from->loc);
  c->return_loc = ir_mattr_import(m, from->return_loc);
  c->return_line = from->return_line;
  c->return_col = from->return_col;
  c->return_mlir = ir_mdict_import(m, from->return_mlir);
  if (from->return_name && !(c->return_name = ir_intern(m, from->return_name->s, from->return_name->n))) return false;
  if (from->function_type && !(c->function_type = ir_type_import(m, from->function_type))) return false;
  uint32_t n = ir_function_results(from);
  if (from->result_mlir) {
    const ir_mdict **dicts = BASE_ARRAY(&m->arena, const ir_mdict *, n + 1);
    for (uint32_t i = 0; dicts && i < n; i++)
      if (!(dicts[i] = ir_mdict_import(m, from->result_mlir[i])) && from->result_mlir[i]) return false;
    if (!(c->result_mlir = dicts)) return false;
  }
  return (c->mlir || !from->mlir) && (c->loc || !from->loc) && (c->return_loc || !from->return_loc) &&
         (c->return_mlir || !from->return_mlir);
}

static bool clone_computation_facts(ir_computation *c, const ir_computation *from) {
  ir_module *m = c->module;
  c->line = from->line;
  c->col = from->col;
  c->hidden = from->hidden;
  if (!clone_function_facts(c, from)) return false;
  if (from->execution_thread) {
    c->execution_thread = ir_intern(m, from->execution_thread->s, from->execution_thread->n);
    if (!c->execution_thread) return false;
  }
  return !from->frontend_attributes || (c->frontend_attributes = ir_dict_import(m, from->frontend_attributes));
}

/* All computations and op shells first, links after: order in the lists need not follow the data. */
static bool clone_shells(ir_module *m, const ir_module *from, base_map *map, ir_op **ops) {
  IR_FOR_COMPUTATIONS(c, from) {
    ir_computation *copy = ir_computation_new(m, c->name->s, c->name->n);
    if (!copy || !clone_computation_facts(copy, c) || !base_map_set(map, base_key(c), base_key(copy))) return false;
    IR_FOR_OPS(op, c) {
      ops[op->id] = clone_shell(op, copy, map); /* of computations and attributes: no two have one address */
      if (!ops[op->id]) return false;
    }
  }
  return true;
}

/* After all shells are there: a result may be any op of the computation, and the owner of a region may come later in
 * the list than the region itself. */
static bool clone_results(ir_computation *copy, const ir_computation *c, ir_op *const *ops) {
  copy->results = BASE_ARRAY(&copy->module->arena, ir_value, c->n_results ? c->n_results : 1);
  if (!copy->results) return false;
  for (uint32_t i = 0; i < c->n_results; i++)
    copy->results[i] = (ir_value){ops[c->results[i].op->id], c->results[i].index};
  copy->n_results = c->n_results;
  copy->owner = c->owner ? ops[c->owner->id] : NULL;
  return true;
}

static bool clone_body(ir_module *m, const ir_module *from, base_map *map, ir_op **ops) {
  if (!ops || !clone_config(m, &from->config) || !clone_sources(m, &from->sources) || !clone_shells(m, from, map, ops))
    return false;
  IR_FOR_COMPUTATIONS(c, from) {
    if (!clone_results(mapped(map, c), c, ops)) return false;
    IR_FOR_OPS(op, c) {
      if (!clone_links(ops[op->id], op, map, ops)) return false;
    }
  }
  if (from->entry) m->entry = mapped(map, from->entry);
  ir_note_verified(m, ir_verified_as(from));
  m->unbounded = from->unbounded;
  return true;
}

/* Copies names, locations, sharing of dictionaries, and what the verifier has found; ids are given out anew and are
 * dense again. A failed copy leaves nothing behind. */
int ir_module_clone(ir_module **out, const ir_module *m, xlac_error *err) {
  assert(out && m);
  ir_module *copy = NULL;
  TRY(ir_module_create(&copy, m->name->s, m->alloc, err));
  /* The copy will need about what the original needs: one chunk for it instead of many that double. */
  base_arena_foresee(&copy->arena, m->arena.used);
  base_map map;
  base_map_init(&map, m->alloc);
  copy->form = m->form;
  copy->named = m->named;
  copy->mlir = ir_mdict_import(copy, m->mlir);
  copy->loc = ir_mattr_import(copy, m->loc);
  ir_op **ops = base_malloc(m->alloc, m->n_ids * sizeof *ops);
  bool ok = (copy->mlir || !m->mlir) && (copy->loc || !m->loc) && clone_body(copy, m, &map, ops);
  base_free(m->alloc, ops);
  base_map_free(&map);
  if (!ok) {
    ir_module_destroy(copy);
    return base_oom(err, "a copy of the module");
  }
  *out = copy;
  return 0;
}

/* Async chains lead from a done or update back to its start. A module under edit may have broken chains, even cyclic
 * ones, so the walk counts its steps. */
ir_op *ir_async_start_of(const ir_op *op) {
  assert(op && op->parent);
  uint32_t steps = 0;
  while (op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE) {
    bool is_first = steps == 0;
    /* Each step goes to another op of the computation, so more steps than ops means a cycle. */
    if (op->n_operands != 1 || steps++ > op->parent->n_ops) return NULL;
    if (op->opcode == IR_OP_ASYNC_DONE && !is_first) return NULL; /* a done ends a chain */
    op = op->operands[0].op;
  }
  return op->opcode == IR_OP_ASYNC_START ? (ir_op *)op : NULL;
}

ir_computation *ir_async_wrapped(const ir_op *op) {
  const ir_op *start = ir_async_start_of(op);
  return start && start->n_called == 1 ? start->called[0] : NULL;
}
