/* Attributes of an instruction from its fields: basic values, origins, a function for each kind of message, and the
 * plain ones by table (tables.c).
 *
 *   field 14, of dimensions   packed 1, 0             dimensions={1,0}
 *   field 15, a Window        message of dimensions   window={size=2x2 stride=2x2}
 *   field 51, 2               3                       algorithm=dot_f16_f16_f16
 *
 * Reading an attribute fills an ir_attr; its key becomes IR_ATTR_NONE where the instruction says nothing of it.
 * Since proto3 does not write zeros, 0, false and "" mean absence unless the op must have the attribute. */
#include <stdlib.h>

#include "../hlo/print.h"
#include "read.h"

/* ---- Strings, lists of numbers and dictionaries of HloModuleProto. */

/* Strings of 2 GiB and more are refused: interned strings have 32-bit lengths. */
int proto_intern(proto_reader *r, const char *s, size_t n, const base_istr **out) {
  if (n > UINT32_MAX / 2) return proto_fail(&r->s, (const uint8_t *)s, XLAC_E_TOO_LARGE, "a string of %zu bytes", n);
  *out = ir_intern(r->m, n ? s : "", n);
  return *out ? 0 : proto_no_memory(&r->s);
}

/* NULL in *out for an empty or missing field: the two are the same in a message. */
int proto_read_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out) {
  base_slice s = proto_bytes(&r->s, in, number);
  *out = NULL;
  return s.n ? proto_intern(r, s.p, s.n, out) : 0;
}

/* Copied into the module's arena. */
int proto_read_ints(proto_reader *r, proto_message in, uint32_t number, const ir_ints **out) {
  uint32_t from;
  TRY(proto_list(&r->s, in, number, &from));
  *out = ir_ints_make(r->m, r->s.numbers.n - from, r->s.numbers.items + from);
  r->s.numbers.n = from;
  return *out ? 0 : proto_no_memory(&r->s);
}

/* The list as an array of the module's, for structs that keep their own length. */
int proto_read_array(proto_reader *r, proto_message in, uint32_t number, uint32_t *n, const int64_t **out) {
  const ir_ints *ints;
  TRY(proto_read_ints(r, in, number, &ints));
  *n = ints->n;
  *out = ints->v;
  return 0;
}

/* The order of a std::map of strings. */
static int compare_dict_keys(const void *a, const void *b) {
  const base_istr *x = ((const ir_dict_entry *)a)->key, *y = ((const ir_dict_entry *)b)->key;
  int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
  return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* The bytes of `number`, maybe none. */
int proto_read_any_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out) {
  base_slice s = proto_bytes(&r->s, in, number);
  return proto_intern(r, s.p, s.n, out);
}

/* A map's entry: key in field 1, value in field 2. */
static int read_dict_entry(proto_reader *r, proto_field f, ir_dict_entry *e) {
  assert(f.wire == PROTO_LENGTH);
  proto_message entry;
  TRY(proto_open_field(&r->s, f, &entry));
  TRY(proto_read_any_str(r, entry, 1, &e->key));
  TRY(proto_read_any_str(r, entry, 2, &e->value));
  e->raw = text_is_json_dict(e->value->s, e->value->n);
  proto_close(&r->s, entry);
  return 0;
}

/* xla.FrontendAttributes: sorted by key; of several entries with one key the last counts. */
int proto_read_dict(proto_reader *r, proto_message in, uint32_t number, const ir_dict **out) {
  proto_message map;
  proto_field f;
  TRY(proto_open_sub(&r->s, in, number, &map));
  uint32_t at = map.first, n = proto_count(&r->s, map, 1, PROTO_LENGTH);
  ir_dict *d = base_arena_zalloc(&r->m->arena, sizeof *d + n * sizeof d->v[0]);
  base_map seen;
  int status = d ? 0 : proto_no_memory(&r->s);
  base_map_init(&seen, r->s.alloc);
  while (status == 0 && proto_next(&r->s, map, 1, PROTO_LENGTH, &at, &f)) {
    ir_dict_entry e = {0};
    uint64_t place;
    if ((status = read_dict_entry(r, f, &e)) != 0) break;
    if (!base_map_get(&seen, base_key(e.key), &place)) place = d->n++;
    d->v[place] = e;
    if (!base_map_set(&seen, base_key(e.key), place)) status = proto_no_memory(&r->s);
  }
  base_map_free(&seen);
  TRY(status);
  proto_close(&r->s, map);
  if (d->n) qsort(d->v, d->n, sizeof d->v[0], compare_dict_keys);
  *out = d;
  return 0;
}

/* ---- Origins, of which the IR keeps the text. */

/*   {"name" {0,1}}   {"name"}   {} */
static int put_original(proto_reader *r, base_text *out, proto_message in, uint32_t number, bool always_named) {
  proto_message array;
  uint32_t from;
  TRY(proto_open_sub(&r->s, in, number, &array));
  TRY(proto_list(&r->s, array, 2, &from));
  base_slice name = proto_bytes(&r->s, array, 1);
  base_putc(out, '{');
  if (name.n || always_named || r->s.numbers.n > from) {
    base_putc(out, '"');
    text_put_escaped(out, name.p, name.n);
    base_putc(out, '"');
  }
  if (r->s.numbers.n > from) {
    base_puts(out, " {");
    text_put_ints(out, r->s.numbers.items + from, r->s.numbers.n - from);
    base_putc(out, '}');
  }
  base_putc(out, '}');
  r->s.numbers.n = from;
  proto_close(&r->s, array);
  return 0;
}

/* The tree of an origin is that of the op's type; `path` is the place of the leaf that is being looked for. */
typedef struct origin_walk {
  proto_reader *r;
  base_text *out;
  proto_message elements;
  int64_t path[IR_MAX_TYPE_DEPTH];
} origin_walk;

/* The element with this path; a leaf without one prints as {}. */
static int put_origin_leaf(origin_walk *w, uint32_t depth) {
  assert(depth <= IR_MAX_TYPE_DEPTH);
  proto_reader *r = w->r;
  uint32_t at = w->elements.first;
  proto_field f;
  while (proto_next(&r->s, w->elements, 1, PROTO_LENGTH, &at, &f)) {
    proto_message e;
    uint32_t from;
    TRY(proto_open_field(&r->s, f, &e));
    TRY(proto_list(&r->s, e, 1, &from));
    bool here = r->s.numbers.n - from == depth;
    for (uint32_t i = 0; here && i < depth; i++) here = r->s.numbers.items[from + i] == w->path[i];
    r->s.numbers.n = from;
    bool has_array = here && proto_count(&r->s, e, 2, PROTO_LENGTH);
    if (has_array) TRY(put_original(r, w->out, e, 2, false));
    proto_close(&r->s, e);
    if (here) return has_array ? 0 : (base_puts(w->out, "{}"), 0);
  }
  return base_puts(w->out, "{}"), 0;
}

/* Types nest no deeper than IR_MAX_TYPE_DEPTH, which bounds the recursion and the path. */
static int put_origin_tree(origin_walk *w, const ir_type *t, uint32_t depth) {
  if (!ir_is_tuple(t)) return put_origin_leaf(w, depth);
  assert(depth < IR_MAX_TYPE_DEPTH);
  base_putc(w->out, '(');
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i) base_puts(w->out, ", ");
    w->path[depth] = i;
    TRY(put_origin_tree(w, t->elements[i], depth + 1));
  }
  base_putc(w->out, ')');
  return 0;
}

/* Each leaf looks through all elements, so that their product is bounded. */
enum { MAX_ORIGIN_WORK = 1 << 26 };

/* What the IR keeps is the text that XLA prints for it. */
static int put_origin(proto_reader *r, base_text *out, proto_message origin, const ir_op *op) {
  origin_walk w = {.r = r, .out = out, .elements = origin};
  base_putc(out, '{');
  if (proto_int(&r->s, origin, 2)) {
    base_puts(out, "[synthetic_call]");
  } else if ((uint64_t)op->type->n_leaves * (origin.n + 1) > MAX_ORIGIN_WORK) {
    return proto_fail(&r->s, proto_place(r, origin), XLAC_E_TOO_LARGE,
                      "an origin of %u elements for a shape of %u leaves", origin.n, op->type->n_leaves);
  } else {
    TRY(put_origin_tree(&w, op->type, 0));
  }
  base_putc(out, '}');
  return out->failed ? proto_no_memory(&r->s) : 0;
}

/*   origin={{"x" {0}}, {"y"}}     field 88: original_value
 *
 * Kept as the text that HLO prints, since nothing here looks into it. */
int proto_read_origin_value(proto_reader *r, proto_message in, const ir_op *op, ir_attr *a) {
  proto_message origin;
  base_text text;
  TRY(proto_open_sub(&r->s, in, 88, &origin));
  base_text_init(&text, r->s.alloc);
  int status = put_origin(r, &text, origin, op);
  if (status == 0) status = proto_intern(r, text.s, text.n, &a->v.str);
  base_text_free(&text);
  TRY(status);
  proto_close(&r->s, origin);
  return 0;
}

/* ---- Attributes of an instruction that are messages: a function for each. */

/* xla.WindowDimension, whose fields are in the order of ir_window_dim. */
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

/* Whether input, kernel and output each name every one of their dimensions once; labels of others could not be
 * printed. */
static bool names_conv_dims(const ir_conv_dims *c) {
  return names_each_dim(c->input_batch, c->input_feature, c->input_spatial, c->n_spatial) &&
         names_each_dim(c->kernel_input_feature, c->kernel_output_feature, c->kernel_spatial, c->n_spatial) &&
         names_each_dim(c->output_batch, c->output_feature, c->output_spatial, c->n_spatial);
}

/* xla.ConvolutionDimensionNumbers. Text can't say dimensions that are named twice or not at all, so they are refused
 * here. */
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

/* xla.PaddingConfig: low, high, interior for each dimension. */
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

/* Start, limit and stride of each dimension. */
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

/* source_target_pairs: each a message of two numbers. */
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

/* output_to_operand_aliasing; absent where there are none. */
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

/* Numbers are kept as the text that XLA prints. */
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

/* A tolerance or a mode; the default mode is not an attribute. */
static int read_accuracy_value(proto_reader *r, proto_message in, ir_attr *a) {
  proto_message m, tolerance;
  ir_accuracy *accuracy = BASE_NEW(&r->m->arena, ir_accuracy);
  if (!accuracy) return proto_no_memory(&r->s);
  a->v.accuracy = accuracy;
  TRY(proto_open_sub(&r->s, in, 91, &m));
  if (proto_count(&r->s, m, 2, PROTO_LENGTH)) {
    TRY(proto_open_sub(&r->s, m, 2, &tolerance));
    accuracy->mode = IR_ACCURACY_TOLERANCE;
    accuracy->atol = proto_double(&r->s, tolerance, 1);
    accuracy->rtol = proto_double(&r->s, tolerance, 2);
    accuracy->ulps = proto_int(&r->s, tolerance, 3);
    proto_close(&r->s, tolerance);
  } else if (proto_int(&r->s, m, 1) == 1) {
    accuracy->mode = IR_ACCURACY_HIGHEST;
  } else {
    a->key = IR_ATTR_NONE;
  }
  proto_close(&r->s, m);
  return 0;
}

/*   domain={kind="sharding", entry={...}, exit={...}}     fields 54, 55
 *
 * Any other kind of domain has no place in a message. */
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

/* A JSON object is kept to be printed without quotes. */
static int read_config_value(proto_reader *r, proto_message in, ir_attr *a) {
  ir_config_text *c = BASE_NEW(&r->m->arena, ir_config_text);
  if (!c) return proto_no_memory(&r->s);
  TRY(proto_read_str(r, in, 43, &c->text));
  if (!c->text) return a->key = IR_ATTR_NONE, 0;
  c->raw = text_is_json_dict(c->text->s, c->text->n);
  a->v.config = c;
  return 0;
}

/* What is not listed is not an attribute of the IR, or is read with the op. */
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

/* XLA's numbers are those of words.h. */
static int check_word_number(proto_reader *r, proto_message in, const proto_attr *row, int64_t number) {
  const char *const *words = ir_attr_words(row->only, (ir_attr_key)row->key);
  if (*ir_attr_word(row->only, (ir_attr_key)row->key, number)) return 0;
  int status = proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "%lld is not a value of '%s'",
                          (long long)number, ir_attr_table[row->key].text);
  return base_hint(r->s.err, status, "one of %s, by their numbers", ir_words_text(words, (char[320]){0}, 320));
}

/* 0 is the enum's default, which is absent unless needed. */
static int read_enum(proto_reader *r, proto_message in, const proto_attr *row, bool needed, ir_attr *a) {
  a->v.i = proto_int(&r->s, in, row->field);
  if (a->v.i == 0 && !needed) return a->key = IR_ATTR_NONE, 0;
  return check_word_number(r, in, row, a->v.i);
}

/* A list that is all defaults says nothing. */
static int read_enums(proto_reader *r, proto_message in, const proto_attr *row, ir_attr *a) {
  uint32_t from;
  bool any = false;
  TRY(proto_list(&r->s, in, row->field, &from));
  uint32_t n = r->s.numbers.n - from;
  for (uint32_t i = 0; i < n; i++) {
    int64_t v = r->s.numbers.items[from + i];
    any = any || v;
    TRY(check_word_number(r, in, row, v));
  }
  a->v.ints = ir_ints_make(r->m, n, r->s.numbers.items + from);
  r->s.numbers.n = from;
  if (!a->v.ints) return proto_no_memory(&r->s);
  if (!any) a->key = IR_ATTR_NONE;
  return 0;
}

/* The words of the text form are the only ones allowed. */
static int read_word(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row, ir_attr *a) {
  const char *const *words = ir_attr_words(op->opcode, (ir_attr_key)row->key);
  const base_istr *word;
  TRY(proto_read_str(r, in, row->field, &word));
  if (!word) return a->key = IR_ATTR_NONE, 0;
  a->v.i = ir_word_number(words, word->s, word->n);
  if (a->v.i >= 0) return 0;
  int status = proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "'%.60s' is not a value of '%s'", word->s,
                          ir_attr_table[row->key].text);
  return base_hint(r->s.err, status, "one of %s", ir_words_text(words, (char[320]){0}, 320));
}

/* Numbers for which 0 says nothing, or the usual. */
static bool says_nothing(unsigned key, int64_t v) {
  switch (key) {
    case IR_ATTR_FEATURE_GROUP_COUNT:
    case IR_ATTR_BATCH_GROUP_COUNT:
      return v == 0 || v == 1;
    case IR_ATTR_CHANNEL_ID:
      return v <= 0;
    default:
      return false;
  }
}

/* A list in the protocol that is one number in the IR. */
static int read_one(proto_reader *r, proto_message in, const proto_attr *row, ir_attr *a) {
  uint32_t from;
  TRY(proto_list(&r->s, in, row->field, &from));
  uint32_t n = r->s.numbers.n - from;
  a->v.i = n ? r->s.numbers.items[from] : 0;
  r->s.numbers.n = from;
  if (n == 0 && row->key == IR_ATTR_INFERRED_DIMENSION) a->key = IR_ATTR_NONE;
  if (n == 1 || (n == 0 && a->key == IR_ATTR_NONE)) return 0;
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_ATTRIBUTE, "'%s' is one number",
                    ir_attr_table[row->key].text);
}

/* Fills `a`; its key becomes NONE where the instruction says nothing of it. `needed`: the op must have it. */
static int read_plain_value(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row, bool needed,
                            ir_attr *a) {
  proto_field f;
  switch ((proto_form)row->form) {
    case PROTO_FORM_INT:
      a->v.i = proto_int(&r->s, in, row->field);
      if ((!needed && a->v.i == 0) || says_nothing(row->key, a->v.i)) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_PRESENT:
      a->v.i = proto_int(&r->s, in, row->field);
      if (!proto_find(&r->s, in, row->field, PROTO_VARINT, &f)) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_BOOL:
      a->v.b = proto_int(&r->s, in, row->field) != 0;
      if (!needed && !a->v.b) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_FLOAT:
      a->v.f = (double)proto_float(&r->s, in, row->field);
      return 0;
    case PROTO_FORM_STRING:
      if (needed) return proto_read_any_str(r, in, row->field, &a->v.str);
      TRY(proto_read_str(r, in, row->field, &a->v.str));
      if (!a->v.str) a->key = IR_ATTR_NONE;
      return 0;
    case PROTO_FORM_WORD:
      return read_word(r, in, op, row, a);
    case PROTO_FORM_ENUM:
      return read_enum(r, in, row, needed, a);
    case PROTO_FORM_ENUMS:
      return read_enums(r, in, row, a);
    case PROTO_FORM_ONE:
      return read_one(r, in, row, a);
    case PROTO_FORM_INTS:
      TRY(proto_read_ints(r, in, row->field, &a->v.ints));
      if (!needed && a->v.ints->n == 0) a->key = IR_ATTR_NONE;
      return 0;
    default:
      return proto_read_message_value(r, in, op, row, a);
  }
}

/* Adds the attribute, unless it says nothing. */
static int set_attr(proto_reader *r, ir_op *op, const ir_attr *a) {
  assert(a->key == IR_ATTR_NONE || a->key < IR_ATTR_COUNT);
  if (a->key == IR_ATTR_NONE) return 0;
  return ir_attr_set(op, *a) ? 0 : proto_no_memory(&r->s);
}

/* Opens the messages that the field lies in. */
static int read_attr_row(proto_reader *r, proto_message in, ir_op *op, const proto_attr *row, bool needed) {
  ir_attr a = ir_attr_make((ir_attr_key)row->key);
  proto_message outer, inner;
  if (row->outer == 0) {
    TRY(read_plain_value(r, in, op, row, needed, &a));
    return set_attr(r, op, &a);
  }
  TRY(proto_open_sub(&r->s, in, row->outer, &outer));
  if (row->inner) TRY(proto_open_sub(&r->s, outer, row->inner, &inner));
  TRY(read_plain_value(r, row->inner ? inner : outer, op, row, needed, &a));
  if (row->inner) proto_close(&r->s, inner);
  proto_close(&r->s, outer);
  return set_attr(r, op, &a);
}

/* Groups come in one of several fields. */
static int read_groups_attr(proto_reader *r, proto_message in, ir_op *op) {
  ir_attr a = ir_attr_make(IR_ATTR_REPLICA_GROUPS);
  bool present;
  TRY(proto_read_groups(r, in, &a.v.groups, &present));
  return present ? set_attr(r, op, &a) : 0;
}

/* A field of a message of its own is there or not, whatever is in it. */
static bool is_present(const proto_reader *r, proto_message in, const proto_attr *row) {
  return proto_count(&r->s, in, row->field, PROTO_LENGTH) > 0;
}

/* First the opcode's own attributes, then those that any op may have; both by their rows. */
int proto_read_attrs(proto_reader *r, proto_message in, ir_op *op) {
  static const uint16_t common[] = {
      IR_ATTR_SHARDING,       IR_ATTR_FRONTEND_ATTRIBUTES,   IR_ATTR_STATISTICS,     IR_ATTR_METADATA, IR_ATTR_ORIGIN,
      IR_ATTR_BACKEND_CONFIG, IR_ATTR_PARAMETER_REPLICATION, IR_ATTR_RESULT_ACCURACY};
  for (const ir_attr_spec *spec = ir_opcode_info(op->opcode)->attrs; spec && spec->key; spec++) {
    const proto_attr *row = proto_attr_of(op->opcode, spec->key);
    if (!row) continue;
    if (spec->key == IR_ATTR_REPLICA_GROUPS) {
      TRY(read_groups_attr(r, in, op));
      continue;
    }
    bool needed = (spec->flags & IR_REQUIRED) || spec->key == IR_ATTR_LARGEST;
    if (row->form == PROTO_FORM_MESSAGE && !needed && row->key != IR_ATTR_WINDOW && !is_present(r, in, row) &&
        row->key != IR_ATTR_PERMUTE_SLICE_SIZES)
      continue;
    TRY(read_attr_row(r, in, op, row, needed));
  }
  for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
    const proto_attr *row = proto_attr_of(op->opcode, common[i]);
    assert(row);
    if (common[i] == IR_ATTR_RESULT_ACCURACY && !ir_opcode_has(op->opcode, IR_HAS_ACCURACY)) continue;
    if (row->form != PROTO_FORM_MESSAGE || is_present(r, in, row)) TRY(read_attr_row(r, in, op, row, false));
  }
  return 0;
}
