/* Modules and computations to their messages.
 *
 * Computations stand callees first, ops in post-order: readers need what is used before its users. The ids say in
 * which order the module has them. */
#include "write.h"

/* Types of parameters and result, and the parameters' names. */
static void write_program_shape(base_text *out, const ir_computation *c) {
  size_t at = proto_begin(out, 4);
  for (uint32_t i = 0; i < c->n_params; i++)
    if (c->params[i]) proto_write_type(out, 1, c->params[i]->type);
  proto_write_type(out, 2, ir_root(c)->type);
  for (uint32_t i = 0; i < c->n_params; i++)
    if (c->params[i]) proto_put_str(out, 3, c->params[i]->name);
  proto_end(out, at);
}

/* HloComputationProto, field 3 of the module: name, instructions, shape of the program, id, the root's id, thread. */
static int write_proto_computation(proto_writer *w, const ir_computation *c) {
  uint32_t n = 0;
  size_t at = proto_begin(w->out, 3);
  proto_put_str(w->out, 1, c->name);
  ir_op **order = ir_post_order(c, &w->arena, &n);
  if (!order) return base_oom(w->err, "writing a module");
  for (uint32_t i = 0; i < n; i++) TRY(proto_write_op(w, order[i]));
  write_program_shape(w->out, c);
  proto_put_int(w->out, 5, w->computation_numbers[c->id]);
  proto_put_int(w->out, 6, proto_op_id(w, ir_root(c)));
  if (c->execution_thread) proto_put_str(w->out, 8, c->execution_thread);
  proto_end(w->out, at);
  return 0;
}

/* Numbers in the order of the lists: whoever reads them puts the parts back in that order. An op's id is computation
 * << 32 | place: proto_op_id. */
static int number_parts(proto_writer *w) {
  const ir_module *m = w->m;
  uint32_t n = 0;
  w->computation_numbers = BASE_ARRAY(&w->arena, uint32_t, (size_t)m->n_computation_ids + 1);
  w->op_numbers = BASE_ARRAY(&w->arena, uint32_t, (size_t)m->n_ids + 1);
  w->fused = base_arena_zalloc(&w->arena, (size_t)m->n_computation_ids + 1);
  if (!w->computation_numbers || !w->op_numbers || !w->fused) return base_oom(w->err, "writing a module");
  IR_FOR_COMPUTATIONS(c, m) {
    uint32_t k = 0;
    w->computation_numbers[c->id] = n++;
    IR_FOR_OPS(op, c) {
      w->op_numbers[op->id] = k++;
      if (op->opcode == IR_OP_FUSION && op->n_called) w->fused[op->called[0]->id] = true;
    }
  }
  return 0;
}

/* Parameters are called p0, p1 and so on, as XLA calls them there. */
static void write_entry_shape(proto_writer *w) {
  const ir_module *m = w->m;
  const ir_config *c = &m->config;
  size_t at = proto_begin(w->out, 4);
  uint32_t n = c->has_entry_layout ? c->n_entry_params : m->entry->n_params;
  for (uint32_t i = 0; i < n; i++)
    proto_write_type(w->out, 1, c->has_entry_layout ? c->entry_params[i] : m->entry->params[i]->type);
  proto_write_type(w->out, 2, c->has_entry_layout ? c->entry_result : ir_root(m->entry)->type);
  for (uint32_t i = 0; i < n; i++) {
    char name[16];
    uint32_t k = 15;
    for (uint32_t v = i; k == 15 || v; v /= 10) name[--k] = (char)('0' + v % 10);
    name[--k] = 'p';
    proto_put_bytes(w->out, 3, name + k, 15 - k);
  }
  proto_end(w->out, at);
}

/* Fused computations have no order of their own. */
static void write_schedule(proto_writer *w) {
  size_t at = proto_begin(w->out, 7);
  IR_FOR_COMPUTATIONS(c, w->m) {
    if (w->fused[c->id]) continue;
    size_t entry = proto_begin(w->out, 1);
    proto_put_int(w->out, 1, w->computation_numbers[c->id]);
    size_t value = proto_begin(w->out, 2), list = proto_begin(w->out, 1);
    IR_FOR_OPS(op, c) proto_put_varint(w->out, (uint64_t)proto_op_id(w, op));
    proto_end(w->out, list);
    proto_end(w->out, value);
    proto_end(w->out, entry);
  }
  proto_end(w->out, at);
}

/* Aliases in field 8, donors in field 18; both messages are there even when empty. */
static void write_alias_entries(base_text *out, const ir_config *c) {
  size_t at = proto_begin(out, 8);
  for (uint32_t i = 0; i < c->n_aliases; i++) {
    const ir_alias *a = &c->aliases[i];
    size_t entry = proto_begin(out, 1);
    proto_put_list(out, 1, a->output->v, a->output->n);
    proto_put_int(out, 2, a->operand);
    proto_put_list(out, 3, a->index->v, a->index->n);
    proto_put_int(out, 4, a->must ? 2 : 1);
    proto_end(out, entry);
  }
  proto_end(out, at);
  at = proto_begin(out, 18);
  for (uint32_t i = 0; i < c->n_donors; i++) {
    size_t entry = proto_begin(out, 1);
    proto_put_int(out, 1, c->donors[i].parameter);
    proto_put_list(out, 2, c->donors[i].index->v, c->donors[i].index->n);
    proto_end(out, entry);
  }
  proto_end(out, at);
}

/* Tables of strings that other fields give rows of. */
static void write_name_rows(base_text *out, uint32_t number, const base_istr **names, uint32_t n) {
  assert(names || n == 0);
  for (uint32_t i = 0; i < n; i++) {
    size_t at = proto_begin(out, number); /* empty ones count */
    base_put(out, names[i]->s, names[i]->n);
    proto_end(out, at);
  }
}

/* Rows keep their numbers: ops refer to them. */
static void write_tables(base_text *out, const ir_source_tables *t) {
  if (t->n_files + t->n_functions + t->n_locations + t->n_frames == 0) return;
  size_t at = proto_begin(out, 17);
  write_name_rows(out, 1, t->files, t->n_files);
  write_name_rows(out, 2, t->functions, t->n_functions);
  for (uint32_t i = 0; i < t->n_locations; i++) {
    const ir_location *l = &t->locations[i];
    size_t row = proto_begin(out, 3);
    proto_put_int(out, 1, l->file);
    proto_put_int(out, 2, l->function);
    proto_put_int(out, 3, l->line);
    proto_put_int(out, 4, l->column);
    proto_put_int(out, 5, l->end_line);
    proto_put_int(out, 6, l->end_column);
    proto_end(out, row);
  }
  for (uint32_t i = 0; i < t->n_frames; i++) {
    size_t row = proto_begin(out, 4);
    proto_put_int(out, 1, t->frames[i].location);
    proto_put_int(out, 2, t->frames[i].parent == i + 1 ? 0 : t->frames[i].parent);
    proto_end(out, row);
  }
  proto_end(out, at);
}

/* Callees before callers, as the reader wants them. */
static int write_all_computations(proto_writer *w) {
  uint32_t n = 0;
  ir_computation **order = text_module_order(w->m, &w->arena, &n);
  if (!order) return base_oom(w->err, "writing a module");
  for (uint32_t i = 0; i < n; i++) TRY(write_proto_computation(w, order[i]));
  return 0;
}

/* The payloads of metadata come last, since ops add to them. */
static int write_module_fields(proto_writer *w) {
  const ir_module *m = w->m;
  base_text *out = w->out;
  TRY(number_parts(w));
  proto_put_str(out, 1, m->name);
  proto_put_str(out, 2, m->entry->name);
  TRY(write_all_computations(w));
  write_entry_shape(w);
  proto_put_int(out, 6, w->computation_numbers[m->entry->id]);
  if (m->config.is_scheduled) write_schedule(w);
  write_alias_entries(out, &m->config);
  write_tables(out, &m->sources);
  if (m->config.frontend_attributes) proto_write_dict(out, 19, m->config.frontend_attributes);
  if (m->config.origin_recovery_table) TRY(proto_write_recovery_table(w, m->config.origin_recovery_table));
  base_put(out, w->payloads.s ? w->payloads.s : "", w->payloads.n);
  return 0;
}

/* Also for modules within recovery tables. */
int proto_write_module(base_text *out, const ir_module *m, uint32_t depth, xlac_error *err) {
  proto_writer w = {.out = out, .m = m, .depth = depth, .err = err};
  assert(m->entry && ir_root(m->entry));
  base_arena_init(&w.arena, out->alloc);
  base_text_init(&w.payloads, out->alloc);
  int status = write_module_fields(&w);
  if (status == 0 && (out->failed || w.payloads.failed)) status = base_oom(err, "writing a module");
  base_text_free(&w.payloads);
  if (w.scratch) ir_module_destroy(w.scratch);
  base_arena_free(&w.arena);
  return status;
}

/* 2^31 - 1 bytes are what protobuf's own readers take. */
int text_print_proto(base_text *out, const ir_module *m, xlac_error *err) {
  size_t start = out->n;
  TRY(proto_write_module(out, m, 0, err));
  if (out->n - start <= INT32_MAX) return 0;
  return base_fail(err, XLAC_E_TOO_LARGE, "the module's %zu bytes are more than a message may have, 2^31 - 1",
                   out->n - start);
}
