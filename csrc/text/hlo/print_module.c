/* Prints modules: the header line, the source tables, the computations, callees first. Also sets up and ends every
 * run of the printer, and tells which modules have a text at all.
 *
 * The bytes are those of XLA's HloModule::ToString with the same options. Each mode is a set of switches in
 * text_printer, changed in the order in which XLA's HloPrintOptions are built: default, then short or canonical,
 * then fingerprint. */
#include "print.h"
#include "../../ir/check/check.h"
#include "../text.h"

BASE_VEC(text_op_vec, ir_op *);

/* HloPrintOptions' defaults, but for print_large_constants, which has to be asked for there. */
static void set_default_mode(text_printer *p, const text_print_options *o) {
  p->percent = p->ids = p->metadata = p->backend_config = p->program_shape = p->control_deps = true;
  p->index_comments = p->io_config = true;
  p->large_constants = !o->elide_large_constants;
  p->operand_shapes = o->operand_shapes;
}

/* HloPrintOptions::ShortParsable. */
static void set_short_mode(text_printer *p) {
  p->large_constants = true;
  p->percent = p->metadata = p->program_shape = p->control_deps = p->index_comments = false;
}

/* HloPrintOptions::Canonical: names are numbers, called computations stand where they are called. */
static void set_canonical_mode(text_printer *p) {
  p->percent = p->metadata = p->backend_config = p->program_shape = p->control_deps = p->index_comments = false;
  p->large_constants = false;
  p->operand_shapes = p->bodies = p->canonical = true;
}

/* HloPrintOptions::Fingerprint, on top of canonical. */
static void set_fingerprint_mode(text_printer *p) {
  p->ids = p->io_config = false;
  p->essential_constants = p->full_groups = true;
}

/* The single switches of the caller come last. */
static void set_mode(text_printer *p, const text_print_options *o) {
  set_default_mode(p, o);
  if (o->mode == TEXT_SHORT) set_short_mode(p);
  if (o->mode == TEXT_CANONICAL || o->mode == TEXT_FINGERPRINT) set_canonical_mode(p);
  if (o->mode == TEXT_FINGERPRINT) set_fingerprint_mode(p);
  if (o->no_metadata) p->metadata = false;
  if (o->no_ids) p->ids = false;
  p->indent = o->indent;
  p->exact = o->exact;
}

/* A failed allocation shows in out->failed, which text_printer_finish looks at; so there is nothing to check here. */
void text_printer_init(text_printer *p, base_text *out, const ir_module *m, const text_print_options *options) {
  static const text_print_options defaults = {0};
  *p = (text_printer){.out = out, .module = m, .start = out->n};
  base_arena_init(&p->arena, out->alloc);
  base_map_init(&p->type_places, out->alloc);
  base_map_init(&p->chains, out->alloc);
  set_mode(p, options ? options : &defaults);
  if (!p->canonical || !m) return;
  p->canonical_names = BASE_ARRAY(&p->arena, uint32_t, (size_t)m->n_ids + 1);
  if (p->canonical_names)
    memset(p->canonical_names, 0, ((size_t)m->n_ids + 1) * sizeof *p->canonical_names);
  else
    out->failed = true;
}

/* Grows with the module. Thirty computations of which each calls the one before twice would otherwise print 2^30
 * bodies. */
size_t text_canonical_limit(const text_printer *p) {
  assert(p->module);
  return TEXT_MAX_CANONICAL + (size_t)TEXT_MAX_PER_OP * p->module->n_ids;
}

/* Must be called once for each init. What has been written stays in out also after a failure. */
int text_printer_finish(text_printer *p, xlac_error *err) {
  int status = p->status;
  base_map_free(&p->type_places);
  base_map_free(&p->chains);
  base_arena_free(&p->arena);
  if (p->out->failed) return base_oom(err, "printing a module");
  if (status == XLAC_E_TOO_DEEP)
    return base_fail(err, XLAC_E_TOO_DEEP, "called computations nest deeper than %d levels", TEXT_MAX_NESTING);
  if (status != 0)
    return base_hint(
        err,
        base_fail(err, XLAC_E_TOO_LARGE, "the canonical text is over %zu bytes: every call's body is written out",
                  TEXT_MAX_CANONICAL),
        "print in the default or the short mode, which name called computations");
  return 0;
}

/* --- header --- */

/*   , input_output_alias={ {0}: (1, {}, may-alias) } */
static void write_aliases(text_printer *p, const ir_config *c) {
  base_text *out = p->out;
  if (c->n_aliases == 0) return;
  BASE_PUT(out, ", input_output_alias={ ");
  for (uint32_t i = 0; i < c->n_aliases; i++) {
    const ir_alias *a = &c->aliases[i];
    if (i) BASE_PUT(out, ", ");
    text_put_index(out, a->output);
    BASE_PUT(out, ": (");
    base_put_i64(out, a->operand);
    BASE_PUT(out, ", ");
    text_put_index(out, a->index);
    base_puts(out, a->must ? ", must-alias)" : ", may-alias)");
  }
  BASE_PUT(out, " }");
}

/*   , buffer_donor={ (0, {}) } */
static void write_donors(text_printer *p, const ir_config *c) {
  base_text *out = p->out;
  if (c->n_donors == 0) return;
  BASE_PUT(out, ", buffer_donor={ ");
  for (uint32_t i = 0; i < c->n_donors; i++) {
    if (i) BASE_PUT(out, ", ");
    base_putc(out, '(');
    base_put_i64(out, c->donors[i].parameter);
    BASE_PUT(out, ", ");
    text_put_index(out, c->donors[i].index);
    base_putc(out, ')');
  }
  BASE_PUT(out, " }");
}

/* The entry's own types where the header gave no layout. */
static const ir_type *entry_param_type(const ir_module *m, uint32_t i) {
  if (m->config.has_entry_layout) return m->config.entry_params[i];
  return m->entry->params[i] ? m->entry->params[i]->type : NULL;
}

/*   , entry_computation_layout={(f32[8]{0})->f32[8]{0}} */
static void write_entry_layout(text_printer *p, const ir_module *m) {
  assert(m->entry);
  base_text *out = p->out;
  const ir_op *root = ir_root(m->entry);
  uint32_t n = m->config.has_entry_layout ? m->config.n_entry_params : m->entry->n_params;
  const ir_type *result = m->config.has_entry_layout ? m->config.entry_result : root ? root->type : NULL;
  BASE_PUT(out, ", entry_computation_layout={(");
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = entry_param_type(m, i);
    if (i) BASE_PUT(out, ", ");
    text_put_index_comment(out, i);
    if (t) text_write_type(p, t);
  }
  BASE_PUT(out, ")->");
  if (result) text_write_type(p, result);
  base_putc(out, '}');
}

/* {false}, which is what a missing attribute means, is not shown. */
static void write_propagation(text_printer *p, const char *key, const ir_ints *flags) {
  if (!flags || (flags->n == 1 && !flags->v[0])) return;
  base_puts(p->out, key);
  for (uint32_t i = 0; i < flags->n; i++) {
    if (i) base_putc(p->out, ',');
    base_puts(p->out, flags->v[i] ? "true" : "false");
  }
  base_putc(p->out, '}');
}

/* Counts of one are the default and not printed. */
static void write_count(text_printer *p, const char *key, int64_t n) {
  if (n == 1) return;
  base_puts(p->out, key);
  base_put_i64(p->out, n);
}

/* The order of HloModule::ToString. */
static void write_config(text_printer *p, const ir_module *m) {
  const ir_config *c = &m->config;
  base_text *out = p->out;
  if (c->is_scheduled) BASE_PUT(out, ", is_scheduled=true");
  write_aliases(p, c);
  write_donors(p, c);
  if (c->alias_passthrough_params && c->alias_passthrough_params->n && c->alias_passthrough_params->v[0])
    BASE_PUT(out, ", alias_passthrough_params=true");
  write_entry_layout(p, m);
  write_propagation(p, ", allow_spmd_sharding_propagation_to_parameters={", c->spmd_to_parameters);
  write_propagation(p, ", allow_spmd_sharding_propagation_to_output={", c->spmd_to_output);
  write_count(p, ", replica_count=", c->replica_count);
  write_count(p, ", num_partitions=", c->num_partitions);
  if (c->frontend_attributes && c->frontend_attributes->n) {
    BASE_PUT(out, ", frontend_attributes=");
    text_put_dict(out, c->frontend_attributes);
  }
  if (c->origin_recovery_table) {
    BASE_PUT(out, ", origin_recovery_table=");
    base_put(out, c->origin_recovery_table->s, c->origin_recovery_table->n);
    base_putc(out, '\n');
  }
}

/* --- computations --- */

/* Who calls what, in one pass, so that no op has to look for it. `starts` gets the async starts. Updates and dones
 * repeat the call of their start and don't count as callers. */
static bool survey_callers(text_printer *p, text_op_vec *starts) {
  size_t n = p->module->n_computation_ids;
  p->callers = BASE_ARRAY(&p->arena, uint32_t, n + 1);
  p->fused = BASE_ARRAY(&p->arena, bool, n + 1);
  if (!p->callers || !p->fused) return false;
  memset(p->callers, 0, (n + 1) * sizeof *p->callers);
  memset(p->fused, 0, (n + 1) * sizeof *p->fused);
  IR_FOR_COMPUTATIONS(c, p->module) {
    IR_FOR_OPS(op, c) {
      if (op->n_called == 0 || op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE) continue;
      if (op->opcode == IR_OP_ASYNC_START && !BASE_VEC_PUSH(p->out->alloc, starts, op)) return false;
      for (uint32_t i = 0; i < op->n_called; i++) {
        p->callers[op->called[i]->id]++;
        p->fused[op->called[i]->id] |= op->opcode == IR_OP_FUSION;
      }
    }
  }
  return true;
}

/* Marks the computations that stand inside their start op. */
static bool mark_sugar(text_printer *p, const text_op_vec *starts) {
  size_t n = (size_t)p->module->n_computation_ids + 1;
  p->inside = BASE_ARRAY(&p->arena, bool, n);
  if (!p->inside) return false;
  memset(p->inside, 0, n);
  for (uint32_t i = 0; i < starts->n; i++) {
    bool is_sugar = false;
    const ir_op *start = text_async_start(p, starts->items[i], &is_sugar);
    if (start && is_sugar) p->inside[start->called[0]->id] = true;
  }
  return true;
}

/* What must be known of the whole module before its first line is printed: who calls what, and which async
 * computations are printed as the op that they hold. */
bool text_survey_module(text_printer *p) {
  text_op_vec starts = {0};
  bool ok = survey_callers(p, &starts) && mark_sugar(p, &starts);
  BASE_VEC_FREE(p->out->alloc, &starts);
  return ok;
}

/* Unless an edit changed that. */
static bool is_callee_first(const ir_module *m, base_arena *arena) {
  uint8_t *seen = base_arena_zalloc(arena, (size_t)m->n_computation_ids + 1);
  if (!seen) return false;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) {
        if (!seen[op->called[i]->id]) return false;
      }
    }
    seen[c->id] = 1;
  }
  return true;
}

/* Callees before callers in post-order from the entry, as HloModule::MakeComputationPostOrder; fingerprints and
 * protos have the order of the module's list where that is such an order. */
ir_computation **text_module_order(const ir_module *m, base_arena *arena, uint32_t *n) {
  ir_computation **order = ir_computation_order(m, arena, n);
  if (!order || !is_callee_first(m, arena)) return order;
  uint32_t i = 0;
  IR_FOR_COMPUTATIONS(c, m) order[i++] = c;
  assert(i == *n);
  return order;
}

/* In the order of the calls, the entry last. What is printed inside another's op is left out. */
static void write_computations(text_printer *p) {
  uint32_t n = 0;
  ir_computation **order = p->essential_constants ? text_module_order(p->module, &p->arena, &n)
                                                  : ir_computation_order(p->module, &p->arena, &n);
  if (!order) {
    p->out->failed = true;
    return;
  }
  for (uint32_t i = 0; i < n && p->status == 0; i++) {
    if (p->inside[order[i]->id]) continue;
    text_write_computation(p, order[i]);
    BASE_PUT(p->out, "\n\n");
  }
}

void text_write_header(text_printer *p, const ir_module *m) {
  for (uint32_t i = 0; i < p->indent; i++) BASE_PUT(p->out, "  ");
  BASE_PUT(p->out, "HloModule ");
  if (p->ids) base_put(p->out, m->name->s, m->name->n);
  write_config(p, m);
}

static void write_module(text_printer *p) {
  text_write_header(p, p->module);
  text_number_sources(p);
  text_write_sources(p);
  BASE_PUT(p->out, "\n\n");
  write_computations(p);
}

/* Prints what it can: text_check_hlo is for callers that must know whether the text says all. */
int text_print_hlo(base_text *out, const ir_module *m, const text_print_options *options, xlac_error *err) {
  assert(out && m && m->entry);
  text_printer p;
  text_printer_init(&p, out, m, options);
  if (text_survey_module(&p))
    write_module(&p);
  else
    out->failed = true;
  return text_printer_finish(&p, err);
}

/* ---- Whether HLO text holds all of a module: what compiled programs keep of StableHLO is shown in it, but not read
 * back.
 */

/* Futures, quantised types and types that are kept as MLIR's text have no HLO text. */
static bool type_has_text(const ir_type *t) {
  if (t->kind >= IR_TYPE_FUTURE || t->quant || t->text) return false;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!type_has_text(t->elements[i])) return false;
  return true;
}

/* Ops of MLIR that have no attributes are written by their names; others, and their attributes, are not. */
static bool op_has_text(const ir_op *op) {
  bool plain = ir_opcode_has_text(op->opcode) && op->opcode != IR_OP_UNREGISTERED;
  return plain && (!op->mlir || op->mlir->n == 0);
}

/* The name that the op has in MLIR, where HLO has none for it. */
static int refuse_op(const ir_op *op, xlac_error *err) {
  const ir_mlir_info *info = ir_op_table[op->opcode].mlir;
  const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : info ? info->name : ir_opcode_text(op->opcode);
  return base_fail_at(err, XLAC_E_BAD_EXECUTABLE, op->line, op->col, op->name->s, "HLO text has no op for %s", name);
}

/* Programs in the executable form may hold ops and types that only MLIR has. */
int text_check_hlo(const ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (!op_has_text(op)) return refuse_op(op, err);
      if (!type_has_text(op->type))
        return base_fail_at(err, XLAC_E_BAD_EXECUTABLE, op->line, op->col, op->name->s, "HLO text has no type for %s",
                            IR_SHOW(op->type));
    }
  }
  return 0;
}
