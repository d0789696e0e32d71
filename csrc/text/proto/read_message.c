/* Attributes of an instruction that are messages: a function for each. */
#include "../hlo/print.h"
#include "read.h"

static int read_window_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message window;
  proto_field f;
  TRY(proto_open_sub(&r->s, in, 15, &window));
  uint32_t at = window.first, n = proto_count(&r->s, window, 1, PROTO_LENGTH);
  ir_window *w = base_arena_zalloc(&r->m->arena, sizeof *w + n * sizeof w->v[0]);
  if (!w) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, window, 1, PROTO_LENGTH, &at, &f); w->n++) {
    proto_message d;
    TRY(proto_open_field(&r->s, f, &d));
    w->v[w->n] = (ir_window_dim){proto_int(&r->s, d, 1),     proto_int(&r->s, d, 2), proto_int(&r->s, d, 3),
                                 proto_int(&r->s, d, 4),     proto_int(&r->s, d, 5), proto_int(&r->s, d, 6),
                                 proto_int(&r->s, d, 7) != 0};
    proto_close(&r->s, d);
  }
  proto_close(&r->s, window);
  a->v.window = w;
  if (w->n == 0) a->key = IR_ATTR_NONE;
  return 0;
}

/* Whether each of n + 2 dimensions is named once: others have no dim_labels. */
static bool names_each_dim(int64_t a, int64_t b, const int64_t *spatial, uint32_t n) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n + 2; i++) {
    int64_t d = i == 0 ? a : i == 1 ? b : spatial[i - 2];
    if (d < 0 || d >= (int64_t)n + 2 || (seen >> d & 1)) return false;
    seen |= UINT64_C(1) << d;
  }
  return true;
}

static bool names_conv_dims(const ir_conv_dims *c) {
  return names_each_dim(c->input_batch, c->input_feature, c->input_spatial, c->n_spatial) &&
         names_each_dim(c->kernel_input_feature, c->kernel_output_feature, c->kernel_spatial, c->n_spatial) &&
         names_each_dim(c->output_batch, c->output_feature, c->output_spatial, c->n_spatial);
}

static int read_conv_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message m;
  uint32_t n_input, n_kernel, n_output;
  ir_conv_dims *c = BASE_NEW(&r->m->arena, ir_conv_dims);
  if (!c) return proto_no_memory(&r->s);
  TRY(proto_open_sub(&r->s, in, 16, &m));
  c->input_batch = proto_int(&r->s, m, 7);
  c->input_feature = proto_int(&r->s, m, 8);
  c->kernel_input_feature = proto_int(&r->s, m, 3);
  c->kernel_output_feature = proto_int(&r->s, m, 4);
  c->output_batch = proto_int(&r->s, m, 9);
  c->output_feature = proto_int(&r->s, m, 10);
  TRY(proto_read_array(r, m, 11, &n_input, &c->input_spatial));
  TRY(proto_read_array(r, m, 6, &n_kernel, &c->kernel_spatial));
  TRY(proto_read_array(r, m, 12, &n_output, &c->output_spatial));
  if (n_input != n_kernel || n_input != n_output || n_input > IR_MAX_RANK - 2)
    return proto_fail(&r->s, proto_place(r, m), XLAC_E_BAD_ATTRIBUTE,
                      "a convolution's operands and result have %u, %u and %u spatial dimensions", n_input, n_kernel,
                      n_output);
  c->n_spatial = n_input;
  if (!names_conv_dims(c))
    return proto_fail(&r->s, proto_place(r, m), XLAC_E_BAD_ATTRIBUTE,
                      "a convolution's dimension numbers do not name each dimension once");
  proto_close(&r->s, m);
  a->v.conv = c;
  return 0;
}

static int read_padding_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message config;
  proto_field f;
  TRY(proto_open_sub(&r->s, in, 21, &config));
  uint32_t at = config.first, n = proto_count(&r->s, config, 1, PROTO_LENGTH);
  ir_padding *p = base_arena_zalloc(&r->m->arena, sizeof *p + n * sizeof p->v[0]);
  if (!p) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, config, 1, PROTO_LENGTH, &at, &f); p->n++) {
    proto_message d;
    TRY(proto_open_field(&r->s, f, &d));
    p->v[p->n] = (ir_padding_dim){proto_int(&r->s, d, 1), proto_int(&r->s, d, 2), proto_int(&r->s, d, 3)};
    proto_close(&r->s, d);
  }
  proto_close(&r->s, config);
  a->v.padding = p;
  return 0;
}

static int read_slice_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_field f;
  uint32_t at = in.first, n = proto_count(&r->s, in, 17, PROTO_LENGTH);
  ir_slice *s = base_arena_zalloc(&r->m->arena, sizeof *s + n * sizeof s->v[0]);
  if (!s) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, in, 17, PROTO_LENGTH, &at, &f); s->n++) {
    proto_message d;
    TRY(proto_open_field(&r->s, f, &d));
    s->v[s->n] = (ir_slice_dim){proto_int(&r->s, d, 1), proto_int(&r->s, d, 2), proto_int(&r->s, d, 3)};
    proto_close(&r->s, d);
  }
  a->v.slice = s;
  return 0;
}

static int read_pairs_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_field f;
  uint32_t at = in.first, n = proto_count(&r->s, in, 52, PROTO_LENGTH);
  ir_int_lists *lists = base_arena_alloc(&r->m->arena, sizeof *lists + n * sizeof lists->v[0]);
  if (!lists) return proto_no_memory(&r->s);
  for (lists->n = 0; proto_next(&r->s, in, 52, PROTO_LENGTH, &at, &f); lists->n++) {
    proto_message d;
    TRY(proto_open_field(&r->s, f, &d));
    int64_t pair[2] = {proto_int(&r->s, d, 1), proto_int(&r->s, d, 2)};
    if (!(lists->v[lists->n] = ir_ints_make(r->m, 2, pair))) return proto_no_memory(&r->s);
    proto_close(&r->s, d);
  }
  a->v.lists = lists;
  return 0;
}

/* The sizes of all slices one after another, of which each has as many as the first operand has dimensions. */
static int read_slice_sizes(proto_reader *r, proto_message in, const ir_op *op, ir_attr *a) {
  uint32_t from;
  TRY(proto_list(&r->s, in, 20, &from));
  uint32_t total = r->s.numbers.n - from;
  const ir_type *t = op->n_operands ? ir_operand_type(op, 0) : NULL;
  if (t && ir_is_tuple(t) && t->n_elements) t = t->elements[0];
  uint32_t each = t && ir_is_tensor(t) ? t->rank : 0;
  a->key = total ? a->key : IR_ATTR_NONE;
  if (total && (each == 0 || total % each))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "%u slice sizes for operands of %u dimensions",
                      total, each);
  uint32_t n = each ? total / each : 0;
  ir_int_lists *lists = base_arena_alloc(&r->m->arena, sizeof *lists + n * sizeof lists->v[0]);
  if (!lists) return proto_no_memory(&r->s);
  for (lists->n = 0; lists->n < n; lists->n++)
    if (!(lists->v[lists->n] = ir_ints_make(r->m, each, r->s.numbers.items + from + lists->n * each)))
      return proto_no_memory(&r->s);
  r->s.numbers.n = from;
  a->v.lists = lists;
  return 0;
}

static int read_aliasing_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_field f;
  uint32_t at = in.first, n = proto_count(&r->s, in, 74, PROTO_LENGTH);
  ir_aliasing *list = base_arena_zalloc(&r->m->arena, sizeof *list + n * sizeof list->v[0]);
  if (!list) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, in, 74, PROTO_LENGTH, &at, &f); list->n++) {
    proto_message d;
    ir_alias *alias = &list->v[list->n];
    TRY(proto_open_field(&r->s, f, &d));
    TRY(proto_read_ints(r, d, 1, &alias->output));
    TRY(proto_read_ints(r, d, 3, &alias->index));
    alias->operand = proto_int(&r->s, d, 2);
    proto_close(&r->s, d);
  }
  a->v.aliasing = list;
  if (list->n == 0) a->key = IR_ATTR_NONE;
  return 0;
}

/* Their types, where they are constrained at all. */
static int read_constraints(proto_reader *r, proto_message in, const ir_op *op, ir_attr *a) {
  uint32_t from;
  if (!proto_int(&r->s, in, 56)) return a->key = IR_ATTR_NONE, 0;
  TRY(proto_read_types(r, in, 57, &from));
  uint32_t n = r->types.n - from;
  if (n != op->n_operands)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "%u operand layout constraints for %u operands",
                      n, op->n_operands);
  ir_types *types = base_arena_alloc(&r->m->arena, sizeof *types + n * sizeof types->v[0]);
  if (!types) return proto_no_memory(&r->s);
  types->n = n;
  if (n) memcpy((void *)types->v, r->types.items + from, n * sizeof types->v[0]);
  r->types.n = from;
  a->v.types = types;
  return 0;
}

static int read_statistics_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message viz;
  proto_field f;
  TRY(proto_open_sub(&r->s, in, 82, &viz));
  uint32_t at = viz.first, n = proto_count(&r->s, viz, 1 + 1, PROTO_LENGTH);
  ir_dict *d = base_arena_zalloc(&r->m->arena, sizeof *d + n * sizeof d->v[0]);
  if (!d) return proto_no_memory(&r->s);
  d->visualizing_index = proto_int(&r->s, viz, 1);
  for (; proto_next(&r->s, viz, 2, PROTO_LENGTH, &at, &f); d->n++) {
    proto_message one;
    TRY(proto_open_field(&r->s, f, &one));
    TRY(proto_read_any_str(r, one, 1, &d->v[d->n].key));
    r->bytes.n = 0;
    text_put_double(&r->bytes, proto_double(&r->s, one, 2));
    if (r->bytes.failed) return proto_no_memory(&r->s);
    TRY(proto_intern(r, r->bytes.s, r->bytes.n, &d->v[d->n].value));
    d->v[d->n].raw = true;
    proto_close(&r->s, one);
  }
  proto_close(&r->s, viz);
  a->v.dict = d;
  if (d->n == 0) a->key = IR_ATTR_NONE;
  return 0;
}

static int read_accuracy_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message m, tolerance;
  ir_accuracy *accuracy = BASE_NEW(&r->m->arena, ir_accuracy);
  if (!accuracy) return proto_no_memory(&r->s);
  a->v.accuracy = accuracy;
  TRY(proto_open_sub(&r->s, in, 91, &m));
  if (proto_count(&r->s, m, 2, PROTO_LENGTH)) {
    TRY(proto_open_sub(&r->s, m, 2, &tolerance));
    accuracy->atol = proto_double(&r->s, tolerance, 1);
    accuracy->rtol = proto_double(&r->s, tolerance, 2);
    accuracy->ulps = proto_int(&r->s, tolerance, 3);
    proto_close(&r->s, tolerance);
  } else if (proto_int(&r->s, m, 1) == 1) {
    TRY(proto_intern(r, "highest", 7, &accuracy->mode));
  } else {
    a->key = IR_ATTR_NONE;
  }
  proto_close(&r->s, m);
  return 0;
}

static int read_domain_value(proto_reader *r, proto_message in, ir_attr *a) {
  ir_domain *d = BASE_NEW(&r->m->arena, ir_domain);
  proto_message entry, exit;
  if (!d) return proto_no_memory(&r->s);
  TRY(proto_intern(r, "sharding", 8, &d->kind));
  TRY(proto_open_sub(&r->s, in, 54, &entry));
  TRY(proto_read_sharding(r, entry, &d->exit)); /* the text names the two the other way round */
  proto_close(&r->s, entry);
  TRY(proto_open_sub(&r->s, in, 55, &exit));
  TRY(proto_read_sharding(r, exit, &d->entry));
  proto_close(&r->s, exit);
  a->v.domain = d;
  return 0;
}

static int read_config_value(proto_reader *r, proto_message in, ir_attr *a) {
  ir_config_text *c = BASE_NEW(&r->m->arena, ir_config_text);
  if (!c) return proto_no_memory(&r->s);
  TRY(proto_read_str(r, in, 43, &c->text));
  if (!c->text) return a->key = IR_ATTR_NONE, 0;
  c->raw = text_is_json_dict(c->text->s, c->text->n);
  a->v.config = c;
  return 0;
}

int proto_read_message_value(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row, ir_attr *a) {
  proto_message m;
  switch ((ir_attr_key)row->key) {
    case IR_ATTR_WINDOW:
      return read_window_value(r, in, a);
    case IR_ATTR_DIM_LABELS:
      return read_conv_value(r, in, a);
    case IR_ATTR_PADDING:
      return read_padding_value(r, in, a);
    case IR_ATTR_SLICE:
      return read_slice_value(r, in, a);
    case IR_ATTR_SOURCE_TARGET_PAIRS:
      return read_pairs_value(r, in, a);
    case IR_ATTR_PERMUTE_SLICE_SIZES:
      return read_slice_sizes(r, in, op, a);
    case IR_ATTR_OUTPUT_TO_OPERAND_ALIASING:
      return read_aliasing_value(r, in, a);
    case IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS:
      return read_constraints(r, in, op, a);
    case IR_ATTR_STATISTICS:
      return read_statistics_value(r, in, a);
    case IR_ATTR_RESULT_ACCURACY:
      return read_accuracy_value(r, in, a);
    case IR_ATTR_DOMAIN:
      return read_domain_value(r, in, a);
    case IR_ATTR_BACKEND_CONFIG:
      return read_config_value(r, in, a);
    case IR_ATTR_ORIGIN:
      return proto_read_origin_value(r, in, op, a);
    case IR_ATTR_OUTFEED_SHAPE:
      return proto_read_type_in(r, in, 29, &a->v.type);
    case IR_ATTR_FRONTEND_ATTRIBUTES:
      TRY(proto_read_dict(r, in, 68, &a->v.dict));
      if (a->v.dict->n == 0) a->key = IR_ATTR_NONE;
      return 0;
    case IR_ATTR_LITERAL:
    case IR_ATTR_METADATA:
    case IR_ATTR_SHARDING:
      TRY(proto_open_sub(&r->s, in, row->field, &m));
      if (row->key == IR_ATTR_LITERAL) TRY(proto_read_literal(r, m, &a->v.literal));
      if (row->key == IR_ATTR_METADATA) TRY(proto_read_metadata(r, m, &a->v.metadata));
      if (row->key == IR_ATTR_SHARDING) TRY(proto_read_sharding(r, m, &a->v.sharding));
      proto_close(&r->s, m);
      return 0;
    default:
      a->key = IR_ATTR_NONE; /* read elsewhere, or nowhere */
      return 0;
  }
}
