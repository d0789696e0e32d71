/* Prints attribute values: one function per kind, and strings in C escapes. What stands before "=" and whether an
 * attribute is worth printing is print_extra.c's business.
 *
 * put_* append to a base_text and need no more; text_write_* also need to know of the run (modes, renumbered
 * frames). */
#include "print.h"
#include "../../base/number/number.h"
#include "../../ir/names.h"

#include <stdio.h>

/* ---- Prints strings with C escapes, and decides which texts need no quotes because they are a JSON object. */

/* 0 for bytes that stand for themselves inside quotes: printable ASCII but for both quotes and the backslash. */
static const uint8_t needs_escape[256] = {
    [0 ... 0x1F] = 1, ['"'] = 1, ['\''] = 1, ['\\'] = 1, [0x7F ... 0xFF] = 1,
};

/* Letters for those that have one, else three octal digits: what absl::CEscape writes. */
static void put_escape(base_text *out, unsigned char c) {
  static const char letters[][2] = {{'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}, {'"', '"'}, {'\'', '\''}, {'\\', '\\'}};
  base_putc(out, '\\');
  for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
    if ((unsigned char)letters[i][0] == c) {
      base_putc(out, letters[i][1]);
      return;
    }
  }
  base_putc(out, (char)('0' + (c >> 6)));
  base_putc(out, (char)('0' + (c >> 3 & 7)));
  base_putc(out, (char)('0' + (c & 7)));
}

/* Runs of plain bytes are copied at once. */
void text_put_escaped(base_text *out, const char *s, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && !needs_escape[(unsigned char)s[run]]) run++;
    base_put(out, s + i, run - i);
    if (run < n) put_escape(out, (unsigned char)s[run++]);
    i = run;
  }
}

/* NULL is printed as "". */
void text_put_quoted(base_text *out, const base_istr *s) {
  base_putc(out, '"');
  if (s) text_put_escaped(out, s->s, s->n);
  base_putc(out, '"');
}

/* Bytes of the well-formed UTF-8 character at s, 0 when there is none. Overlong forms, surrogates and code points
 * beyond U+10FFFF are not well-formed (Unicode, table 3-7). */
static size_t utf8_length(const unsigned char *s, size_t n) {
  assert(n > 0);
  size_t want = s[0] < 0x80                   ? 1
                : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                : (s[0] & 0xF0) == 0xE0       ? 3
                : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                              : 0;
  if (want == 0 || want > n) return 0;
  for (size_t i = 1; i < want; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
  }
  if (want == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0))) return 0;
  if (want == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))) return 0;
  return want;
}

/* Whether the reader gives the same string where s stands between quotes without any escapes. */
static bool reads_back_raw(const base_istr *s) {
  for (size_t i = 0, step; i < s->n; i += step) {
    step = utf8_length((const unsigned char *)s->s + i, s->n - i);
    if (step == 0 || s->s[i] == '"' || s->s[i] == '\\' || s->s[i] == 0) return false;
  }
  return true;
}

/* In quotes but as it is, where the reader gets the same string from that. */
void text_put_raw_quoted(base_text *out, const base_istr *s) {
  if (!reads_back_raw(s)) {
    text_put_quoted(out, s);
    return;
  }
  base_putc(out, '"');
  base_put(out, s->s, s->n);
  base_putc(out, '"');
}

/* JSON's four blanks. */
static size_t skip_json_blanks(const char *s, size_t n, size_t i) {
  while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r')) i++;
  return i;
}

/* The byte after the string that begins at i, or n + 1 when it does not end. */
static size_t skip_json_string(const char *s, size_t n, size_t i) {
  for (i++; i < n; i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == '"')
      return i + 1;
  }
  return n + 1;
}

/* Follows XLA's test, which looks at braces and strings alone: {a} passes. */
bool text_is_json_dict(const char *s, size_t n) {
  size_t i = skip_json_blanks(s, n, 0), depth = 0;
  if (i == n || s[i] != '{') return false;
  do {
    if (s[i] == '"') {
      i = skip_json_string(s, n, i);
      continue;
    }
    depth += s[i] == '{';
    depth -= s[i] == '}';
    i++;
  } while (depth && i < n);
  return depth == 0 && skip_json_blanks(s, n, i) == n;
}

/*   1,0,2 */
void text_put_ints(base_text *out, const int64_t *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (i) base_putc(out, ',');
    base_put_i64(out, v[i]);
  }
}

/*   {1,0}      {} for NULL */
void text_put_index(base_text *out, const ir_ints *index) {
  base_putc(out, '{');
  if (index) text_put_ints(out, index->v, index->n);
  base_putc(out, '}');
}

/* printf's %.6g, as XLA prints these, whatever the locale's decimal point. */
void text_put_double(base_text *out, double v) {
  char text[40];
  int n = snprintf(text, sizeof text, "%.6g", v);
  assert(n > 0 && (size_t)n < sizeof text);
  for (int i = 0; i < n; i++) {
    bool is_known =
        (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') || text[i] == '-' || text[i] == '+';
    base_putc(out, is_known ? text[i] : '.'); /* the C locale may have another decimal point */
  }
}

/*   true      false */
static void put_bool(base_text *out, bool b) {
  if (b)
    BASE_PUT(out, "true");
  else
    BASE_PUT(out, "false");
}

/* A word without quotes. */
static void put_bare(base_text *out, const base_istr *s) {
  if (s) base_put(out, s->s, s->n);
}

/* A key that is not a name is quoted, against XLA, which writes what nothing can read. */
static void put_key(base_text *out, const base_istr *key) {
  if (ir_is_name(key->s, key->n))
    put_bare(out, key);
  else
    text_put_quoted(out, key);
}

/*   LT     {high,default} */
static void put_words(base_text *out, unsigned opcode, const ir_attr *a) {
  if (a->kind == IR_KIND_NAME) {
    base_puts(out, ir_attr_word(opcode, (ir_attr_key)a->key, a->v.i));
    return;
  }
  base_putc(out, '{');
  for (uint32_t i = 0; i < a->v.ints->n; i++) {
    if (i) base_putc(out, ',');
    base_puts(out, ir_attr_word(opcode, (ir_attr_key)a->key, a->v.ints->v[i]));
  }
  base_putc(out, '}');
}

/*   {true,false} */
static void put_bool_list(base_text *out, const ir_ints *bools) {
  base_putc(out, '{');
  for (uint32_t i = 0; i < bools->n; i++) {
    if (i) base_putc(out, ',');
    put_bool(out, bools->v[i] != 0);
  }
  base_putc(out, '}');
}

/*   {{0,1},{2,3}} */
static void put_int_lists(base_text *out, const ir_int_lists *lists) {
  base_putc(out, '{');
  for (uint32_t i = 0; lists && i < lists->n; i++) {
    if (i) base_putc(out, ',');
    text_put_index(out, lists->v[i]);
  }
  base_putc(out, '}');
}

/*   {f32[2]{0}, s32[]} */
static void put_type_list(base_text *out, const ir_types *types) {
  base_putc(out, '{');
  for (uint32_t i = 0; i < types->n; i++) {
    if (i) BASE_PUT(out, ", ");
    text_put_type(out, types->v[i], true);
  }
  base_putc(out, '}');
}

/* --- windows and convolutions --- */

/* Parts of a window, in the order in which they are printed. */
typedef enum window_part {
  WINDOW_SIZE,
  WINDOW_STRIDE,
  WINDOW_PAD,
  WINDOW_BASE,
  WINDOW_DILATE,
  WINDOW_REVERSE,
  WINDOW_PARTS
} window_part;

/* A part that is the default in all dimensions is left out. */
static bool is_default_window_part(const ir_window_dim *d, window_part part) {
  switch (part) {
    case WINDOW_STRIDE:
      return d->stride == 1;
    case WINDOW_PAD:
      return d->padding_low == 0 && d->padding_high == 0;
    case WINDOW_BASE:
      return d->base_dilation == 1;
    case WINDOW_DILATE:
      return d->window_dilation == 1;
    case WINDOW_REVERSE:
      return !d->reversal;
    default:
      return false; /* sizes always show */
  }
}

/* One dimension's share of a part: 3, or 0_1 of a padding. */
static void put_window_part(base_text *out, const ir_window_dim *d, window_part part) {
  switch (part) {
    case WINDOW_SIZE:
      base_put_i64(out, d->size);
      return;
    case WINDOW_STRIDE:
      base_put_i64(out, d->stride);
      return;
    case WINDOW_BASE:
      base_put_i64(out, d->base_dilation);
      return;
    case WINDOW_DILATE:
      base_put_i64(out, d->window_dilation);
      return;
    case WINDOW_REVERSE:
      base_putc(out, d->reversal ? '1' : '0');
      return;
    case WINDOW_PAD:
      base_put_i64(out, d->padding_low);
      base_putc(out, '_');
      base_put_i64(out, d->padding_high);
      return;
    default:
      assert(!"no such part of a window");
  }
}

/*   {size=3x3 stride=2x2 pad=1_1x1_1}
 * Parts that are at their default in all dimensions are left out. */
static void put_window(base_text *out, const ir_window *w) {
  static const char *const names[WINDOW_PARTS] = {
      "size=", "stride=", "pad=", "lhs_dilate=", "rhs_dilate=", "rhs_reversal="};
  base_putc(out, '{');
  for (window_part part = WINDOW_SIZE; w->n && part < WINDOW_PARTS; part++) {
    bool is_default = true;
    for (uint32_t d = 0; d < w->n; d++) is_default = is_default && is_default_window_part(&w->v[d], part);
    if (is_default) continue;
    if (part != WINDOW_SIZE) base_putc(out, ' ');
    base_puts(out, names[part]);
    for (uint32_t d = 0; d < w->n; d++) {
      if (d) base_putc(out, 'x');
      put_window_part(out, &w->v[d], part);
    }
  }
  base_putc(out, '}');
}

/* Spatial dimensions have one-digit names, so a label of two digits or more would not read back; the verifier refuses
 * those. */
static void put_dim_label(base_text *out, const int64_t *spatial, uint32_t n, int64_t a, char a_name, int64_t b,
                          char b_name) {
  for (int64_t d = 0; d < (int64_t)n + 2; d++) {
    if (d == a) {
      base_putc(out, a_name);
    } else if (d == b) {
      base_putc(out, b_name);
    } else {
      uint32_t i = 0;
      while (i < n && spatial[i] != d) i++;
      if (i < n)
        base_put_u64(out, i);
      else
        base_putc(out, '?');
    }
  }
}

/*   b01f_01io->b01f */
static void put_conv_dims(base_text *out, const ir_conv_dims *c) {
  put_dim_label(out, c->input_spatial, c->n_spatial, c->input_batch, 'b', c->input_feature, 'f');
  base_putc(out, '_');
  put_dim_label(out, c->kernel_spatial, c->n_spatial, c->kernel_input_feature, 'i', c->kernel_output_feature, 'o');
  BASE_PUT(out, "->");
  put_dim_label(out, c->output_spatial, c->n_spatial, c->output_batch, 'b', c->output_feature, 'f');
}

/* The interior is written for all dimensions or for none. */
static void put_padding(base_text *out, const ir_padding *padding) {
  bool has_interior = false;
  for (uint32_t i = 0; i < padding->n; i++) has_interior = has_interior || padding->v[i].interior != 0;
  for (uint32_t i = 0; i < padding->n; i++) {
    if (i) base_putc(out, 'x');
    base_put_i64(out, padding->v[i].low);
    base_putc(out, '_');
    base_put_i64(out, padding->v[i].high);
    if (!has_interior) continue;
    base_putc(out, '_');
    base_put_i64(out, padding->v[i].interior);
  }
}

/*   {[0:4:1], [1:9:2]}
 * Strides are written for all dimensions or for none, as in XLA. */
static void put_slice(base_text *out, const ir_slice *s) {
  bool has_stride = false;
  for (uint32_t i = 0; i < s->n; i++) has_stride = has_stride || s->v[i].stride != 1;
  base_putc(out, '{');
  for (uint32_t i = 0; i < s->n; i++) {
    if (i) BASE_PUT(out, ", ");
    base_putc(out, '[');
    base_put_i64(out, s->v[i].start);
    base_putc(out, ':');
    base_put_i64(out, s->v[i].limit);
    if (has_stride) {
      base_putc(out, ':');
      base_put_i64(out, s->v[i].stride);
    }
    base_putc(out, ']');
  }
  base_putc(out, '}');
}

/* --- dictionaries and small records --- */

/* A value that is a JSON object stands bare; everything else is quoted. */
void text_put_dict(base_text *out, const ir_dict *d) {
  assert(d);
  base_putc(out, '{');
  for (uint32_t i = 0; i < d->n; i++) {
    const ir_dict_entry *e = &d->v[i];
    if (i) base_putc(out, ',');
    put_key(out, e->key);
    base_putc(out, '=');
    if (e->raw || text_is_json_dict(e->value->s, e->value->n))
      put_bare(out, e->value);
    else
      text_put_quoted(out, e->value);
  }
  base_putc(out, '}');
}

/* Values are numbers, shown with six digits however they were written. */
static void put_statistics(base_text *out, const ir_dict *d) {
  BASE_PUT(out, "{visualizing_index=");
  base_put_i64(out, d->visualizing_index);
  for (uint32_t i = 0; i < d->n; i++) {
    const base_istr *value = d->v[i].value;
    double v;
    base_putc(out, ',');
    put_key(out, d->v[i].key);
    base_putc(out, '=');
    if (base_parse_f64(value->s, value->s + value->n, &v) == value->s + value->n)
      text_put_double(out, v);
    else
      put_bare(out, value);
  }
  base_putc(out, '}');
}

/*   {mode=highest}   {tolerance={atol=0.1,rtol=0,ulps=4}} */
static void put_accuracy(base_text *out, const ir_accuracy *a) {
  if (a->mode != IR_ACCURACY_TOLERANCE) {
    BASE_PUT(out, "{mode=");
    base_puts(out, IR_HLO_WORDS(ACCURACY)[a->mode]);
    base_putc(out, '}');
    return;
  }
  BASE_PUT(out, "{tolerance={atol=");
  text_put_double(out, a->atol);
  BASE_PUT(out, ",rtol=");
  text_put_double(out, a->rtol);
  BASE_PUT(out, ",ulps=");
  base_put_i64(out, a->ulps);
  BASE_PUT(out, "}}");
}

/*   backend_config={"a":1}      backend_config="text"
 *
 * JSON goes without quotes, as XLA prints it. */
static void put_config(base_text *out, const ir_config_text *c) {
  if (c->raw || text_is_json_dict(c->text->s, c->text->n))
    put_bare(out, c->text);
  else
    text_put_quoted(out, c->text);
}

/*   {{0}: (1, {})} */
static void put_aliasing(base_text *out, const ir_aliasing *a) {
  base_putc(out, '{');
  for (uint32_t i = 0; i < a->n; i++) {
    if (i) BASE_PUT(out, ", ");
    text_put_index(out, a->v[i].output);
    BASE_PUT(out, ": (");
    base_put_i64(out, a->v[i].operand);
    BASE_PUT(out, ", ");
    text_put_index(out, a->v[i].index);
    base_putc(out, ')');
  }
  base_putc(out, '}');
}

/*   {kind="sharding", entry={replicated}, exit={maximal device=0}} */
static void put_domain(base_text *out, const ir_domain *d, bool metadata) {
  BASE_PUT(out, "{kind=");
  text_put_quoted(out, d->kind);
  BASE_PUT(out, ", entry=");
  text_put_sharding(out, d->entry, metadata);
  BASE_PUT(out, ", exit=");
  text_put_sharding(out, d->exit, metadata);
  base_putc(out, '}');
}

/*   {%a, %b} */
static void write_called_list(text_printer *p, const ir_op *op) {
  base_putc(p->out, '{');
  for (uint32_t i = 0; i < op->n_called; i++) {
    if (i) BASE_PUT(p->out, ", ");
    text_write_name(p, op->called[i]->name);
  }
  base_putc(p->out, '}');
}

/* Which of op->called stands behind this key; lists have none. */
static int called_slot(const ir_op *op, unsigned key) {
  assert(ir_attr_table[key].kind == IR_KIND_CALLED);
  switch (key) {
    case IR_ATTR_BRANCH_COMPUTATIONS:
    case IR_ATTR_CALLED_COMPUTATIONS:
      return -1;
    case IR_ATTR_BODY:
    case IR_ATTR_SCATTER:
    case IR_ATTR_FALSE_COMPUTATION:
      return op->n_called > 1 ? 1 : -1;
    default:
      return op->n_called > 0 ? 0 : -1;
  }
}

/* A list, or the one computation behind this key. */
static void write_called_value(text_printer *p, const ir_op *op, unsigned key) {
  int slot = called_slot(op, key);
  if (slot < 0)
    write_called_list(p, op);
  else
    text_write_name(p, op->called[slot]->name);
}

/*   {%a, %b} */
static void write_control_preds(text_printer *p, const ir_op *op) {
  base_putc(p->out, '{');
  IR_FOR_CONTROL_PREDS(e, op) {
    if (e != op->control_preds) BASE_PUT(p->out, ", ");
    text_write_name(p, e->pred->name);
  }
  base_putc(p->out, '}');
}

/* With frames renumbered where the source tables have been. */
void text_write_metadata(text_printer *p, const ir_metadata *m) {
  base_putc(p->out, '{');
  text_put_metadata_fields(p->out, m, p->frames, p->module ? p->module->sources.n_frames : 0);
  base_putc(p->out, '}');
}

/* Every kind of attribute, without its key. */
void text_write_attr_value(text_printer *p, const ir_op *op, const ir_attr *a) {
  base_text *out = p->out;
  switch (a->kind) {
    case IR_KIND_BOOL:
      put_bool(out, a->v.b);
      return;
    case IR_KIND_INT:
      base_put_i64(out, a->v.i);
      return;
    case IR_KIND_FLOAT:
      text_put_double(out, a->v.f);
      return;
    case IR_KIND_STRING:
      text_put_quoted(out, a->v.str);
      return;
    case IR_KIND_ORIGIN:
      put_bare(out, a->v.str);
      return;
    case IR_KIND_NAME:
    case IR_KIND_NAMES:
      put_words(out, op->opcode, a);
      return;
    case IR_KIND_INTS:
      text_put_index(out, a->v.ints);
      return;
    case IR_KIND_BOOLS:
      put_bool_list(out, a->v.ints);
      return;
    case IR_KIND_INT_LISTS:
    case IR_KIND_PAIRS:
      put_int_lists(out, a->v.lists);
      return;
    case IR_KIND_TYPE:
      text_put_type(out, a->v.type, true);
      return;
    case IR_KIND_TYPES:
      put_type_list(out, a->v.types);
      return;
    case IR_KIND_WINDOW:
      put_window(out, a->v.window);
      return;
    case IR_KIND_CONV_DIMS:
      put_conv_dims(out, a->v.conv);
      return;
    case IR_KIND_PADDING:
      put_padding(out, a->v.padding);
      return;
    case IR_KIND_SLICE:
      put_slice(out, a->v.slice);
      return;
    case IR_KIND_GROUPS:
      text_put_groups(out, a->v.groups, p->full_groups);
      return;
    case IR_KIND_SHARDING:
      text_put_sharding(out, a->v.sharding, p->metadata);
      return;
    case IR_KIND_METADATA:
      text_write_metadata(p, a->v.metadata);
      return;
    case IR_KIND_CONFIG:
      put_config(out, a->v.config);
      return;
    case IR_KIND_DICT:
      text_put_dict(out, a->v.dict);
      return;
    case IR_KIND_STATISTICS:
      put_statistics(out, a->v.dict);
      return;
    case IR_KIND_ACCURACY:
      put_accuracy(out, a->v.accuracy);
      return;
    case IR_KIND_ALIASING:
      put_aliasing(out, a->v.aliasing);
      return;
    case IR_KIND_LITERAL:
      text_put_type(out, a->v.literal->type, true); /* attributes show their literals' types */
      base_putc(out, ' ');
      text_put_literal(out, a->v.literal, p->exact);
      return;
    case IR_KIND_DOMAIN:
      put_domain(out, a->v.domain, p->metadata);
      return;
    case IR_KIND_CALLED:
      write_called_value(p, op, a->key);
      return;
    case IR_KIND_OPS:
      write_control_preds(p, op);
      return;
    default:
      assert(!"no such kind of attribute");
  }
}

/* For a single attribute, in the default mode. */
void text_put_attr_value(base_text *out, const ir_op *op, const ir_attr *a) {
  text_printer p;
  text_print_options options = {0};
  text_printer_init(&p, out, op->parent->module, &options);
  text_write_attr_value(&p, op, a);
  if (text_printer_finish(&p, NULL) != 0) out->failed = true;
}
