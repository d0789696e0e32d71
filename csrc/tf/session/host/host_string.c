/* Ops on strings. Results are made in two steps, since an object has all its bytes in one block: the text of all
 * strings one after the other, with where each one ends; then the object (str_give). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../strings.h"

/* Input i, a tensor of strings; borrowed. */
static int str_in(tfs_call *c, uint32_t i, tfs_object **out) {
  return tfs_object_in(c, i, TFS_STRINGS, out);
}

/* Strings of o's shape from a text that has them one after the other, string i up to ends[i]. t may have failed:
 * that is out of memory. */
static int str_give(tfs_call *c, uint32_t rank, const int64_t *dims, base_text *t, const size_t *ends) {
  assert(ends);
  char *to = NULL;
  tfs_object *o = t->failed ? NULL : tfs_strings_new(c->alloc, rank, dims, t->n, &to);
  if (o && t->n) memcpy(to, t->s, t->n);
  for (int64_t i = 0; o && i < o->n_strings; i++) {
    size_t from = i ? ends[i - 1] : 0;
    o->strings[i] = (base_slice){to + from, ends[i] - from};
  }
  return tfs_give_object(c, 0, o);
}

/* Appends string i of the result. */
typedef void str_one_fn(tfs_call *c, const void *ctx, base_text *t, int64_t i);

/* A tensor of n strings of that shape, each made by `one`. */
static int str_each(tfs_call *c, uint32_t rank, const int64_t *dims, int64_t n, str_one_fn *one, const void *ctx) {
  assert(n >= 0 && one);
  base_text t;
  size_t *ends = base_malloc(c->alloc, (size_t)(n + 1) * sizeof *ends);
  if (!ends) return tfs_oom(c);
  base_text_init(&t, c->alloc);
  for (int64_t i = 0; i < n; i++) {
    one(c, ctx, &t, i);
    ends[i] = t.n;
  }
  int status = str_give(c, rank, dims, &t, ends);
  base_text_free(&t);
  base_free(c->alloc, ends);
  return status;
}

/* --- each string by itself --- */

/* A result like input 0, which is the context. */
static int str_each_of_input(tfs_call *c, str_one_fn *one) {
  tfs_object *o = NULL;
  TRY(str_in(c, 0, &o));
  return str_each(c, o->rank, o->dims, o->n_strings, one, o);
}

/* Letters of ASCII differ in one bit. */
static void str_lower(tfs_call *c, const void *ctx, base_text *t, int64_t at) {
  base_slice s = ((const tfs_object *)ctx)->strings[at];
  bool upper = c->unit->host->arg == 1;
  for (size_t i = 0; i < s.n; i++) {
    char ch = s.p[i];
    if (upper ? ch >= 'a' && ch <= 'z' : ch >= 'A' && ch <= 'Z') ch = (char)(ch ^ 32);
    base_putc(t, ch);
  }
}

/* In the C locale, whatever the program's is. */
static bool str_is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Spaces at both ends. */
static void str_strip(tfs_call *c, const void *ctx, base_text *t, int64_t i) {
  base_slice s = ((const tfs_object *)ctx)->strings[i];
  (void)c;
  while (s.n && str_is_space(s.p[s.n - 1])) s.n--;
  while (s.n && str_is_space(s.p[0])) s.p++, s.n--;
  base_put(t, s.p, s.n);
}

/* 0: to lower case, 1: to upper case; ASCII. */
int tfs_host_string_case(tfs_call *c) {
  return str_each_of_input(c, str_lower);
}

int tfs_host_string_strip(tfs_call *c) {
  return str_each_of_input(c, str_strip);
}

/* --- numbers --- */

/* In bytes, or in characters: all bytes but those that go on with one. */
int tfs_host_string_length(tfs_call *c) {
  tfs_object *o = NULL;
  bool bytes = !base_slice_is(tfs_attr_str(c, "unit"), "UTF8_CHAR");
  TRY(str_in(c, 0, &o));
  interp_value *v = tfs_new_tensor(c->alloc, XLAC_S32, o->rank, o->dims);
  for (int64_t i = 0; v && i < o->n_strings; i++) {
    int64_t n = 0;
    for (size_t k = 0; k < o->strings[i].n; k++) n += bytes || (o->strings[i].p[k] & 0xC0) != 0x80;
    base_store_i64(XLAC_S32, (char *)v->data + i * 4, n);
  }
  return tfs_give_tensor(c, 0, v);
}

/* The whole string must be the number, but for spaces. Floats may overflow to infinity, integers may not. */
static int str_number(tfs_call *c, base_slice s, interp_value *v, int64_t i) {
  assert(i >= 0 && i < v->count);
  char text[64], *end = text;
  base_dtype type = (base_dtype)v->dtype;
  void *to = (char *)v->data + (size_t)i * base_dtype_bytes(type);
  if (s.n < sizeof text) {
    if (s.n) memcpy(text, s.p, s.n);
    text[s.n] = 0;
    errno = 0;
    if (base_dtype_is_float(type))
      base_store_f64(type, to, strtod(text, &end));
    else
      base_store_i64(type, to, strtoll(text, &end, 10));
    while (str_is_space(*end)) end++;
    if (s.n && end == text + s.n && (errno == 0 || base_dtype_is_float(type))) return 0;
  }
  return tfs_fail(c, XLAC_E_EVAL, "'%.*s' is not a number", (int)(s.n < 100 ? s.n : 100), s.p);
}

/* The first string that is none fails it. */
int tfs_host_string_to_number(tfs_call *c) {
  tfs_object *o = NULL;
  base_dtype type = tfs_attr_dtype(c, "out_type");
  TRY(str_in(c, 0, &o));
  if (!base_dtype_is_float(type) && !base_dtype_is_integer(type))
    return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "out_type is not a type of numbers");
  interp_value *v = tfs_new_tensor(c->alloc, type, o->rank, o->dims);
  if (!v) return tfs_oom(c);
  for (int64_t i = 0; i < o->n_strings; i++) {
    int status = str_number(c, o->strings[i], v, i);
    if (status) interp_release(v);
    if (status) return status;
  }
  return tfs_give_tensor(c, 0, v);
}

/* How AsString writes a number: precision, scientific, shortest, width, fill. A format for snprintf; widths and
 * precisions out of bounds are left out, so that a number fits into str_of_number's room. */
static void str_number_format(tfs_call *c, bool real, char *format, size_t size) {
  assert(size >= 40);
  int precision = (int)tfs_attr_int(c, "precision", -1), width = (int)tfs_attr_int(c, "width", -1);
  base_slice fill = tfs_attr_str(c, "fill");
  char kind = tfs_attr_bool(c, "scientific") ? 'e' : tfs_attr_bool(c, "shortest") ? 'g' : 'f';
  int at = snprintf(format, size, "%%%.*s", (int)(fill.n ? 1 : 0), fill.p);
  if (width > 0 && width < 300) at += snprintf(format + at, size - (size_t)at, "%d", width);
  if (real && precision >= 0 && precision < 60) at += snprintf(format + at, size - (size_t)at, ".%d", precision);
  if (real)
    snprintf(format + at, size - (size_t)at, "%c", kind);
  else
    snprintf(format + at, size - (size_t)at, "%s", "lld");
}

/* The context of str_of_number. */
typedef struct str_numbers {
  const interp_value *v;
  char format[40];
} str_numbers;

/* One element by the format; truth values are words. */
static void str_of_number(tfs_call *c, const void *ctx, base_text *t, int64_t i) {
  const str_numbers *x = ctx;
  base_dtype type = (base_dtype)x->v->dtype;
  const char *p = (const char *)x->v->data + (size_t)i * base_dtype_bytes(type);
  char number[400];
  (void)c;
  if (type == XLAC_PRED) {
    base_putf(t, "%s", *p ? "true" : "false");
    return;
  }
  if (base_dtype_is_float(type))
    snprintf(number, sizeof number, x->format, base_load_f64(type, p));
  else
    snprintf(number, sizeof number, x->format, (long long)base_load_i64(type, p));
  base_putf(t, "%s", number);
}

/* The fill is a flag of printf's, hence one of these characters. */
int tfs_host_string_of(tfs_call *c) {
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, 0, &v));
  base_slice fill = tfs_attr_str(c, "fill");
  if (base_dtype_is_complex((base_dtype)v->dtype) || fill.n > 1 || (fill.n == 1 && !strchr(" +-0#", fill.p[0])))
    return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "it takes real numbers, and one of ' +-0#' as fill");
  str_numbers x = {.v = v};
  str_number_format(c, base_dtype_is_float((base_dtype)v->dtype), x.format, sizeof x.format);
  return str_each(c, v->rank, v->dims, v->count, str_of_number, &x);
}

/* --- several --- */

/* The shape of all inputs that are not scalars, which is one. Borrowed. Scalars go with any shape. */
static int str_common(tfs_call *c, const tfs_object **out) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    tfs_object *o = NULL;
    TRY(str_in(c, i, &o));
    bool fits = !*out || (*out)->rank == 0 || o->rank == 0 || o->rank == (*out)->rank;
    for (uint32_t d = 0; fits && *out && (*out)->rank && d < o->rank; d++) fits = o->dims[d] == (*out)->dims[d];
    if (!fits) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u has another shape", i);
    if (!*out || (*out)->rank == 0) *out = o;
  }
  return *out ? 0 : tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "it has no inputs");
}

static base_slice str_at(const tfs_object *o, int64_t i) {
  assert(i >= 0 && (o->rank == 0 || i < o->n_strings));
  return o->strings[o->rank ? i : 0];
}

/* The inputs were checked by str_common. */
static void str_joined(tfs_call *c, const void *separator, base_text *t, int64_t i) {
  const base_slice *between = separator;
  for (uint32_t k = 0; k < c->n_in; k++) {
    base_slice s = str_at(c->in[k].object, i);
    if (k) base_put(t, between->p, between->n);
    base_put(t, s.p, s.n);
  }
}

/* StringJoin: string by string, with the separator between. */
int tfs_host_string_join(tfs_call *c) {
  const tfs_object *like = NULL;
  base_slice separator = tfs_attr_str(c, "separator");
  TRY(str_common(c, &like));
  return str_each(c, like->rank, like->dims, like->n_strings, str_joined, &separator);
}

/* Equal (0), NotEqual (1). */
int tfs_host_string_equal(tfs_call *c) {
  const tfs_object *like = NULL;
  TRY(str_common(c, &like));
  interp_value *v = tfs_new_tensor(c->alloc, XLAC_PRED, like->rank, like->dims);
  for (int64_t i = 0; v && c->n_in == 2 && i < like->n_strings; i++) {
    base_slice a = str_at(c->in[0].object, i), b = str_at(c->in[1].object, i);
    bool same = a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
    ((uint8_t *)v->data)[i] = same != (c->unit->host->arg == 1);
  }
  return tfs_give_tensor(c, 0, v);
}

/* --- tf.print: tensors as text, nested, a few elements from both ends of each dimension --- */

/* Numbers or strings. */
typedef struct str_shown {
  const interp_value *v; /* or */
  const tfs_object *o;
  uint32_t rank;
  const int64_t *dims;
  int64_t most; /* from either end; negative: all */
} str_shown;

/* Strings in quotes. */
static void str_show_one(base_text *t, const str_shown *s, int64_t i) {
  if (s->v) {
    tfs_print_element(t, s->v, i);
    return;
  }
  base_putc(t, '"');
  base_put(t, s->o->strings[i].p, s->o->strings[i].n);
  base_putc(t, '"');
}

/* Dimension d from element `at` on, each of whose places has `size` elements. As deep as the rank, 64 at most. */
static void str_show(base_text *t, const str_shown *s, uint32_t d, int64_t at, int64_t size) {
  assert(d <= s->rank);
  if (d == s->rank) {
    str_show_one(t, s, at);
    return;
  }
  int64_t n = s->dims[d], inner = n ? size / n : 0;
  base_putc(t, '[');
  for (int64_t i = 0; i < n; i++) {
    if (i) {
      for (uint32_t k = d + 1; k < s->rank; k++) base_putc(t, '\n');
      for (uint32_t k = 0; k <= d && d + 1 < s->rank; k++) base_putc(t, ' ');
      if (d + 1 == s->rank) base_putc(t, ' ');
    }
    if (s->most >= 0 && i == s->most && n > 2 * s->most) {
      BASE_PUT(t, "...");
      i = n - s->most - 1;
      continue;
    }
    str_show(t, s, d + 1, at + i * inner, inner);
  }
  base_putc(t, ']');
}

/* Appends input i. */
static int str_put_value(tfs_call *c, uint32_t i, int64_t most, base_text *t) {
  assert(i < c->n_in);
  str_shown s = {.most = most};
  interp_value *v = NULL;
  if (tfs_is_object(&c->in[i], TFS_STRINGS)) {
    s.o = c->in[i].object;
    s.rank = s.o->rank;
    s.dims = s.o->dims;
    str_show(t, &s, 0, 0, s.o->n_strings);
    return 0;
  }
  TRY(tfs_tensor_in(c, i, &v));
  s.v = v;
  s.rank = v->rank;
  s.dims = v->dims;
  str_show(t, &s, 0, 0, v->count);
  return 0;
}

/* StringFormat: each placeholder in the template gives way to the next input. */
int tfs_host_string_format(tfs_call *c) {
  base_slice text = tfs_attr_str(c, "template"), place = tfs_attr_str(c, "placeholder");
  int64_t most = tfs_attr_int(c, "summarize", 3);
  uint32_t next = 0;
  int status = 0;
  base_text t;
  base_text_init(&t, c->alloc);
  for (size_t i = 0; i < text.n && status == 0;) {
    bool here = place.n && i + place.n <= text.n && memcmp(text.p + i, place.p, place.n) == 0;
    if (here && next < c->n_in) {
      status = str_put_value(c, next++, most, &t);
      i += place.n;
    } else {
      base_putc(&t, text.p[i++]);
    }
  }
  if (status == 0 && next < c->n_in)
    status = tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "its template has fewer places than it has inputs");
  if (status == 0) status = str_give(c, 0, NULL, &t, &t.n);
  base_text_free(&t);
  return status;
}
