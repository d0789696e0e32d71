/* Instructions to their messages: shardings, replica groups and metadata, the plain attributes by table (tables.c),
 * the others by a function each.
 *
 * Fields at their defaults are left out, as proto3 does; what XLA's reader wants in any case is in write_wanted. */
#include "write.h"
#include "../../base/number/number.h"

/* ---- Shardings, replica groups and metadata to their messages. */

/* The IR keeps "{1,2}"; the message has the numbers. */
static void write_profile(base_text *out, const base_istr *text) {
  const char *p = text->s, *end = text->s + text->n;
  size_t at = proto_begin(out, 5);
  while (p < end) {
    int64_t v;
    const char *after = base_parse_i64(p, end, &v);
    if (after) proto_put_varint(out, (uint64_t)v);
    p = after ? after : p + 1;
  }
  proto_end(out, at);
}

/* Payloads lie in the module; an op refers to one by its number. */
static void write_payload(proto_writer *w, const base_istr *text) {
  assert(text->n > 0);
  size_t at = proto_begin(w->out, 20);
  proto_put_int_always(w->out, 2, w->n_payloads++);
  proto_end(w->out, at);
  proto_put_bytes(&w->payloads, 22, text->s, text->n);
}

/* Plain fields by table. */
void proto_write_metadata(proto_writer *w, uint32_t number, const ir_metadata *m) {
  size_t at = proto_begin(w->out, number);
  for (uint32_t i = 0; i < proto_n_metadata_fields; i++) {
    const proto_metadata_field *f = &proto_metadata_fields[i];
    const void *member = (const char *)m + f->offset;
    if (f->is_string)
      proto_put_str(w->out, f->number, *(const base_istr *const *)member);
    else
      proto_put_int(w->out, f->number, *(const int64_t *)member);
  }
  if (m->profile_type && m->profile_type->n) write_profile(w->out, m->profile_type);
  proto_put_int(w->out, 15, m->stack_frame_id);
  if (m->payload && m->payload->n) write_payload(w, m->payload);
  proto_end(w->out, at);
}

/* xla.OpSharding.Type. */
static int64_t sharding_number(uint8_t kind) {
  static const uint8_t numbers[] = {
      [IR_SHARDING_REPLICATED] = 0, [IR_SHARDING_MAXIMAL] = 1, [IR_SHARDING_TUPLE] = 2,    [IR_SHARDING_TILED] = 3,
      [IR_SHARDING_MANUAL] = 4,     [IR_SHARDING_UNKNOWN] = 5, [IR_SHARDING_UNREDUCED] = 6};
  assert(kind < sizeof numbers);
  return numbers[kind];
}

/* The message wants an order in any case. */
static void write_iota(base_text *out, uint32_t dims_field, uint32_t perm_field, uint32_t n, const int64_t *reshape,
                       const int64_t *perm) {
  int64_t identity[IR_MAX_RANK];
  assert(n <= IR_MAX_RANK);
  for (uint32_t i = 0; i < n; i++) identity[i] = i;
  proto_put_list(out, dims_field, reshape, n);
  proto_put_list(out, perm_field, perm ? perm : identity, n);
}

/* Tiles, devices, and what the last tile dimensions mean. */
static void write_tiling(base_text *out, const ir_sharding *s) {
  int64_t kinds[IR_MAX_RANK];
  proto_put_list(out, 3, s->dims, s->n_dims);
  if (s->iota)
    write_iota(out, 9, 10, s->n_reshape, s->reshape, s->perm);
  else
    proto_put_list(out, 4, s->devices, s->n_devices);
  proto_put_int(out, 6, s->replicate_on_last_dim);
  assert(s->n_subgroups <= IR_MAX_RANK);
  for (uint32_t i = 0; i < s->n_subgroups; i++) kinds[i] = sharding_number(s->subgroups[i]);
  proto_put_list(out, 8, kinds, s->n_subgroups);
}

/* The kind says which fields there are. */
static int write_sharding_fields(proto_writer *w, const ir_sharding *s) {
  if (s->named_text) return proto_write_named_sharding(w, s->named_text);
  proto_put_int(w->out, 1, sharding_number(s->kind));
  if (s->kind == IR_SHARDING_TILED) write_tiling(w->out, s);
  if (s->kind == IR_SHARDING_MAXIMAL) proto_put_list(w->out, 4, &s->device, 1);
  for (uint32_t i = 0; i < s->n_elements; i++) TRY(proto_write_sharding(w, 5, s->elements[i]));
  for (uint32_t i = 0; i < s->n_metadata; i++) proto_write_metadata(w, 7, s->metadata[i]);
  if (s->group) {
    proto_put_int(w->out, 11, 1);
    proto_put_int(w->out, 12, s->group_id);
    proto_put_int(w->out, 13, s->group == 2);
  }
  return 0;
}

/* OpSharding as the field `number`. */
int proto_write_sharding(proto_writer *w, uint32_t number, const ir_sharding *s) {
  size_t at = proto_begin(w->out, number);
  TRY(write_sharding_fields(w, s));
  proto_end(w->out, at);
  return 0;
}

/* An empty list is written too: one group of all. */
static void write_group_lists(base_text *out, const ir_int_lists *lists) {
  size_t at = proto_begin(out, 87);
  for (uint32_t i = 0; lists && i < lists->n; i++) {
    size_t group = proto_begin(out, 1);
    proto_put_list(out, 1, lists->v[i]->v, lists->v[i]->n);
    proto_end(out, group);
  }
  proto_end(out, at);
}

/* In the field for their form: 93, 87 or 92. */
int proto_write_groups(proto_writer *w, const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *g = a ? a->v.groups : NULL;
  if (g && g->mesh_text) return proto_write_mesh_groups(w, g->mesh_text);
  if (!g || !g->iota) return write_group_lists(w->out, g ? g->lists : NULL), 0;
  assert(g->n_dims == 2);
  size_t at = proto_begin(w->out, 92);
  proto_put_int(w->out, 1, g->dims[0]);
  proto_put_int(w->out, 2, g->dims[1]);
  write_iota(w->out, 3, 4, g->n_reshape, g->reshape, g->perm);
  proto_end(w->out, at);
  return 0;
}

/* Unique in the module. */
int64_t proto_op_id(const proto_writer *w, const ir_op *op) {
  assert(op->id < w->m->n_ids);
  return (int64_t)w->computation_numbers[op->parent->id] << 32 | w->op_numbers[op->id];
}

/* FrontendAttributes: a map, whose entries are messages of key (1) and value (2). */
void proto_write_dict(base_text *out, uint32_t number, const ir_dict *d) {
  size_t at = proto_begin(out, number);
  for (uint32_t i = 0; i < d->n; i++) {
    size_t entry = proto_begin(out, 1);
    proto_put_str(out, 1, d->v[i].key);
    proto_put_str(out, 2, d->v[i].value);
    proto_end(out, entry);
  }
  proto_end(out, at);
}

/* --- kinds of their own --- */

/* In the order of the fields of xla.WindowDimension. */
static void write_window_value(base_text *out, const ir_window *v) {
  size_t at = proto_begin(out, 15);
  for (uint32_t i = 0; i < v->n; i++) {
    const ir_window_dim *d = &v->v[i];
    const int64_t parts[] = {d->size,          d->stride,  d->padding_low, d->padding_high, d->window_dilation,
                             d->base_dilation, d->reversal};
    size_t dim = proto_begin(out, 1);
    for (uint32_t f = 0; f < 7; f++) proto_put_int(out, f + 1, parts[f]);
    proto_end(out, dim);
  }
  proto_end(out, at);
}

/*   dim_labels=b01f_01io->b01f     ConvolutionDimensionNumbers, field 16 */
static void write_conv_value(base_text *out, const ir_conv_dims *c) {
  size_t at = proto_begin(out, 16);
  proto_put_int(out, 3, c->kernel_input_feature);
  proto_put_int(out, 4, c->kernel_output_feature);
  proto_put_list(out, 6, c->kernel_spatial, c->n_spatial);
  proto_put_int(out, 7, c->input_batch);
  proto_put_int(out, 8, c->input_feature);
  proto_put_int(out, 9, c->output_batch);
  proto_put_int(out, 10, c->output_feature);
  proto_put_list(out, 11, c->input_spatial, c->n_spatial);
  proto_put_list(out, 12, c->output_spatial, c->n_spatial);
  proto_end(out, at);
}

/* A message of three numbers. */
static void write_three(base_text *out, uint32_t number, int64_t a, int64_t b, int64_t c) {
  size_t at = proto_begin(out, number);
  proto_put_int(out, 1, a);
  proto_put_int(out, 2, b);
  proto_put_int(out, 3, c);
  proto_end(out, at);
}

/*   padding=0_1x2_3_1     PaddingConfig, field 21: one message a dimension */
static void write_padding_value(base_text *out, const ir_padding *p) {
  size_t at = proto_begin(out, 21);
  for (uint32_t i = 0; i < p->n; i++) write_three(out, 1, p->v[i].low, p->v[i].high, p->v[i].interior);
  proto_end(out, at);
}

/*   output_to_operand_aliasing={{0}: (1, {})}     field 74, one message each */
static void write_aliasing_value(base_text *out, const ir_aliasing *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    const ir_alias *a = &list->v[i];
    size_t at = proto_begin(out, 74);
    proto_put_list(out, 1, a->output->v, a->output->n);
    proto_put_int(out, 2, a->operand);
    proto_put_list(out, 3, a->index->v, a->index->n);
    proto_end(out, at);
  }
}

/*   statistics={visualizing_index=0,flops=12.5}     field 82 */
static void write_statistics_value(base_text *out, const ir_dict *d) {
  size_t at = proto_begin(out, 82);
  proto_put_int(out, 1, d->visualizing_index);
  for (uint32_t i = 0; i < d->n; i++) {
    double v = 0;
    const base_istr *digits = d->v[i].value;
    size_t one = proto_begin(out, 2);
    proto_put_str(out, 1, d->v[i].key);
    if (base_parse_f64(digits->s, digits->s + digits->n, &v)) proto_put_double(out, 2, v);
    proto_end(out, one);
  }
  proto_end(out, at);
}

/*   result_accuracy={mode=highest}     field 1, an enum
 *   result_accuracy={tolerance={atol=0,rtol=0,ulps=2}}     field 2, a message
 *
 * The enum is written even where it is 0, since it is one of a choice, of which one must be there. */
static void write_accuracy_value(base_text *out, const ir_accuracy *a) {
  size_t at = proto_begin(out, 91);
  if (a->mode != IR_ACCURACY_TOLERANCE) {
    proto_put_int_always(out, 1, a->mode);
  } else {
    size_t tolerance = proto_begin(out, 2);
    proto_put_double(out, 1, a->atol);
    proto_put_double(out, 2, a->rtol);
    proto_put_int(out, 3, a->ulps);
    proto_end(out, tolerance);
  }
  proto_end(out, at);
}

/* constrain_layout, field 56, says that the shapes of field 57 are there. */
static void write_constraints(base_text *out, const ir_types *types) {
  proto_put_int(out, 56, 1);
  for (uint32_t i = 0; i < types->n; i++) proto_write_type(out, 57, types->v[i]);
}

/*   slice={[0:4:1]}     SliceDimensions, field 17: start, limit, stride */
static void write_slice_value(base_text *out, const ir_slice *s) {
  for (uint32_t i = 0; i < s->n; i++) write_three(out, 17, s->v[i].start, s->v[i].limit, s->v[i].stride);
}

/* All sizes in one packed list. */
static void write_slice_sizes(base_text *out, const ir_int_lists *lists) {
  size_t at = proto_begin(out, 20);
  for (uint32_t i = 0; i < lists->n; i++)
    for (uint32_t j = 0; j < lists->v[i]->n; j++) proto_put_varint(out, (uint64_t)lists->v[i]->v[j]);
  proto_end(out, at);
}

/*   source_target_pairs={{0,1},{1,0}}     SourceTarget, field 52 */
static void write_pairs(base_text *out, const ir_int_lists *lists) {
  for (uint32_t i = 0; i < lists->n; i++) {
    assert(lists->v[i]->n == 2);
    write_three(out, 52, lists->v[i]->v[0], lists->v[i]->v[1], 0);
  }
}

/* What only newer XLA, or xlac alone, has. */
static int no_place(proto_writer *w, const ir_op *op, const char *what) {
  int status = base_fail_at(w->err, XLAC_E_BAD_ATTRIBUTE, op->line, op->col, op->name->s,
                            "'%s' has no place in HloModuleProto", what);
  return base_hint(w->err, status, "print the module as text, which holds all of it");
}

/* Attributes whose messages are not plain. */
static int write_message_value(proto_writer *w, const ir_op *op, const ir_attr *a) {
  base_text *out = w->out;
  switch ((ir_attr_key)a->key) {
    case IR_ATTR_WINDOW:
      return write_window_value(out, a->v.window), 0;
    case IR_ATTR_DIM_LABELS:
      return write_conv_value(out, a->v.conv), 0;
    case IR_ATTR_PADDING:
      return write_padding_value(out, a->v.padding), 0;
    case IR_ATTR_SLICE:
      return write_slice_value(out, a->v.slice), 0;
    case IR_ATTR_SOURCE_TARGET_PAIRS:
      return write_pairs(out, a->v.lists), 0;
    case IR_ATTR_PERMUTE_SLICE_SIZES:
      return write_slice_sizes(out, a->v.lists), 0;
    case IR_ATTR_OUTPUT_TO_OPERAND_ALIASING:
      return write_aliasing_value(out, a->v.aliasing), 0;
    case IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS:
      return write_constraints(out, a->v.types), 0;
    case IR_ATTR_STATISTICS:
      return write_statistics_value(out, a->v.dict), 0;
    case IR_ATTR_RESULT_ACCURACY:
      return write_accuracy_value(out, a->v.accuracy), 0;
    case IR_ATTR_DOMAIN:
      TRY(proto_write_sharding(w, 54, a->v.domain->exit)); /* named the other way round than in the text */
      return proto_write_sharding(w, 55, a->v.domain->entry);
    case IR_ATTR_BACKEND_CONFIG:
      return proto_put_str(out, 43, a->v.config->text), 0;
    case IR_ATTR_ORIGIN:
      return proto_write_origin(w, a->v.str);
    case IR_ATTR_OUTFEED_SHAPE:
      return proto_write_type(out, 29, a->v.type), 0;
    case IR_ATTR_FRONTEND_ATTRIBUTES:
      return proto_write_dict(out, 68, a->v.dict), 0;
    case IR_ATTR_LITERAL:
      if (!a->v.literal->elided) proto_write_literal(out, 8, a->v.literal);
      return 0;
    case IR_ATTR_METADATA:
      return proto_write_metadata(w, 7, a->v.metadata), 0;
    case IR_ATTR_SHARDING:
      return proto_write_sharding(w, 40, a->v.sharding);
    case IR_ATTR_REPLICA_GROUPS:
      return 0; /* written for every collective */
    default:
      return no_place(w, op, ir_attr_table[a->key].text);
  }
}

/* --- plain ones --- */

/*   operand_precision={high,default}     packed numbers of the enum */
static void write_words(proto_writer *w, const proto_attr *row, const ir_ints *numbers) {
  size_t at = proto_begin(w->out, row->field);
  for (uint32_t i = 0; i < numbers->n; i++) proto_put_varint(w->out, (uint64_t)numbers->v[i]);
  proto_end(w->out, at);
}

/* By the row's form. */
static int write_plain_value(proto_writer *w, const ir_op *op, const proto_attr *row, const ir_attr *a) {
  base_text *out = w->out;
  const char *word;
  switch ((proto_form)row->form) {
    case PROTO_FORM_INT:
      return proto_put_int(out, row->field, a->v.i), 0;
    case PROTO_FORM_PRESENT:
      return proto_put_int_always(out, row->field, a->v.i), 0;
    case PROTO_FORM_BOOL:
      return proto_put_int(out, row->field, a->v.b), 0;
    case PROTO_FORM_FLOAT:
      return proto_put_float(out, row->field, (float)a->v.f), 0;
    case PROTO_FORM_STRING:
      return proto_put_str(out, row->field, a->v.str), 0;
    case PROTO_FORM_WORD:
      word = ir_attr_word(op->opcode, (ir_attr_key)a->key, a->v.i);
      return proto_put_bytes(out, row->field, word, strlen(word)), 0;
    case PROTO_FORM_ENUM:
      return proto_put_int(out, row->field, a->v.i), 0;
    case PROTO_FORM_ENUMS:
      return write_words(w, row, a->v.ints), 0;
    case PROTO_FORM_INTS:
      return proto_put_list(out, row->field, a->v.ints->v, a->v.ints->n), 0;
    case PROTO_FORM_ONE:
      if (row->key == IR_ATTR_INFERRED_DIMENSION && a->v.i < 0) return 0;
      return proto_put_list(out, row->field, &a->v.i, 1), 0;
    default:
      return write_message_value(w, op, a);
  }
}

/* Attributes of one message stand together: a singular message is written once for each of them, which the protocol
 * merges. */
static int write_attr(proto_writer *w, const ir_op *op, const ir_attr *a) {
  const proto_attr *row = proto_attr_of(op->opcode, a->key);
  size_t outer = 0, inner = 0;
  if (!row) return no_place(w, op, ir_attr_table[a->key].text);
  if (row->outer) outer = proto_begin(w->out, row->outer);
  if (row->inner) inner = proto_begin(w->out, row->inner);
  TRY(write_plain_value(w, op, row, a));
  if (row->inner) proto_end(w->out, inner);
  if (row->outer) proto_end(w->out, outer);
  return 0;
}

/* What XLA's reader wants there even where it says nothing. */
static int write_wanted(proto_writer *w, const ir_op *op) {
  static const uint16_t counts[] = {IR_ATTR_FEATURE_GROUP_COUNT, IR_ATTR_BATCH_GROUP_COUNT};
  for (size_t i = 0; i < 2; i++) {
    if (ir_opcode_takes(op->opcode, (ir_attr_key)counts[i], NULL) && !ir_attr_find(op, (ir_attr_key)counts[i]))
      proto_put_int(w->out, proto_attr_of(op->opcode, counts[i])->field, 1);
  }
  if (op->opcode == IR_OP_CUSTOM_CALL && !ir_attr_find(op, IR_ATTR_API_VERSION)) proto_put_int(w->out, 77, 1);
  if (op->opcode == IR_OP_SCAN && !ir_attr_find(op, IR_ATTR_IS_ASSOCIATIVE)) proto_put_int(w->out, 96, 2);
  if (op->opcode == IR_OP_OUTFEED && !ir_attr_find(op, IR_ATTR_OUTFEED_SHAPE) && op->n_operands)
    proto_write_type(w->out, 29, ir_operand_type(op, 0));
  if (ir_opcode_takes(op->opcode, IR_ATTR_REPLICA_GROUPS, NULL)) TRY(proto_write_groups(w, op));
  return 0;
}

/* By their ids. */
static void write_predecessors(proto_writer *w, const ir_op *op) {
  if (op->n_control_preds == 0) return;
  size_t at = proto_begin(w->out, 37);
  IR_FOR_CONTROL_PREDS(e, op) proto_put_varint(w->out, (uint64_t)proto_op_id(w, e->pred));
  proto_end(w->out, at);
}

/* Operands, control predecessors, called computations. */
static void write_references(proto_writer *w, const ir_op *op) {
  assert(w->computation_numbers && w->op_numbers);
  bool swaps = op->opcode == IR_OP_WHILE && op->n_called == 2; /* XLA has the body first */
  if (op->n_operands) {
    size_t at = proto_begin(w->out, 36);
    for (uint32_t i = 0; i < op->n_operands; i++)
      proto_put_varint(w->out, (uint64_t)proto_op_id(w, op->operands[i].op));
    proto_end(w->out, at);
  }
  write_predecessors(w, op);
  if (op->n_called == 0) return;
  size_t at = proto_begin(w->out, 38);
  for (uint32_t i = 0; i < op->n_called; i++)
    proto_put_varint(w->out, w->computation_numbers[op->called[swaps ? 1 - i : i]->id]);
  proto_end(w->out, at);
}

/* HloInstructionProto: 1 name, 2 opcode, 3 shape, 8 literal, 9 parameter number, 35 id, 36 operands, and the rest by
 * table. */
int proto_write_op(proto_writer *w, const ir_op *op) {
  const char *opcode = ir_opcode_text(op->opcode);
  size_t at = proto_begin(w->out, 2);
  assert(op->name && op->type);
  proto_put_str(w->out, 1, op->name);
  proto_put_bytes(w->out, 2, opcode, strlen(opcode));
  proto_write_type(w->out, 3, op->type);
  if (op->opcode == IR_OP_CONSTANT && op->u.literal && !op->u.literal->elided)
    proto_write_literal(w->out, 8, op->u.literal);
  if (op->opcode == IR_OP_PARAMETER) proto_put_int(w->out, 9, op->u.number);
  proto_put_int(w->out, 35, proto_op_id(w, op));
  write_references(w, op);
  for (uint32_t i = 0; i < op->n_attrs; i++) TRY(write_attr(w, op, &op->attrs[i]));
  TRY(write_wanted(w, op));
  proto_end(w->out, at);
  return 0;
}
