/* Changes of HLO and MLIR text that know what a program is made of: tokens, types, items of lists, lines. Much of what
 * comes out still parses, and some of it verifies. */
#include <ctype.h>

#include "fuzz.h"

enum { TEXT_MAX_TOKENS = 1 << 14, TEXT_MAX_TYPES = 1024, TEXT_MAX_WORD = 256 };

/* --- tokens --- */

typedef struct text_token {
  uint32_t at, n;
  char kind; /* 'n' number, 'w' word, '"' string, '%' '@' '#' '!' a name with that sigil, or the character */
} text_token;

typedef struct text_tokens {
  uint32_t n;
  text_token items[TEXT_MAX_TOKENS];
} text_tokens;

static bool text_in_word(uint8_t c) {
  return isalnum(c) || c == '_' || c == '.' || c == '-';
}

static size_t text_string_end(const fuzz_file *f, size_t at) {
  while (at < f->n && f->data[at] != '"' && f->data[at] != '\n') at += f->data[at] == '\\' ? 2 : 1;
  return at < f->n ? at + 1 : f->n;
}

static void text_split(const fuzz_file *f, text_tokens *t) {
  t->n = 0;
  for (size_t i = 0; i < f->n && t->n < TEXT_MAX_TOKENS;) {
    size_t start = i;
    uint8_t c = f->data[i++];
    if (isspace(c)) continue;
    char kind = (char)c;
    bool sigil = strchr("%@#!", c) != NULL && c && i < f->n && text_in_word(f->data[i]);
    if (text_in_word(c) || sigil) {
      while (i < f->n && text_in_word(f->data[i])) i++;
      bool number = isdigit(c) || (c == '-' && i > start + 1 && isdigit(f->data[start + 1]));
      if (!sigil) kind = number ? 'n' : 'w';
    } else if (c == '"') {
      i = text_string_end(f, i);
    }
    t->items[t->n++] = (text_token){(uint32_t)start, (uint32_t)(i - start), kind};
  }
}

static text_tokens text_here, text_there;

static const text_token *text_any(const text_tokens *t, uint64_t *state) {
  return t->n ? &t->items[fuzz_below(state, t->n)] : NULL;
}

/* A token of that kind, or NULL. */
static const text_token *text_of_kind(const text_tokens *t, const char *kinds, uint64_t *state) {
  for (int tries = 0; tries < 40 && t->n; tries++) {
    const text_token *token = text_any(t, state);
    if (token->kind && strchr(kinds, token->kind)) return token;
  }
  return NULL;
}

/* --- numbers --- */

static const char *const text_extremes[] = {"-1",
                                            "0",
                                            "1",
                                            "2",
                                            "3",
                                            "5",
                                            "7",
                                            "8",
                                            "64",
                                            "127",
                                            "128",
                                            "256",
                                            "2147483647",
                                            "2147483648",
                                            "-2147483648",
                                            "4294967295",
                                            "4294967296",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "9223372036854775808",
                                            "18446744073709551615",
                                            "1e400",
                                            "nan",
                                            "inf",
                                            "-0",
                                            "1.5",
                                            "0x7ff8"};
enum { TEXT_EXTREMES = sizeof text_extremes / sizeof *text_extremes };

/* A number near the one that was there, or an extreme one. */
static size_t text_draw_number(char *to, const char *old, uint64_t *state) {
  long long v = strtoll(old, NULL, 10);
  if (v > -100000 && v < 100000 && fuzz_below(state, 2)) {
    const long long near[] = {v + 1, v - 1, -v, 2 * v, v / 2, v ^ 1};
    return (size_t)sprintf(to, "%lld", near[fuzz_below(state, 6)]);
  }
  return (size_t)sprintf(to, "%s", text_extremes[fuzz_below(state, TEXT_EXTREMES)]);
}

static void text_change_number(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  const text_token *t = text_of_kind(&text_here, "n", state);
  if (!t || t->n >= 64) return;
  char old[64] = "", to[64];
  memcpy(old, buf->data + t->at, t->n);
  if (strpbrk(old, "x")) return; /* the dimensions of a tensor type */
  fuzz_splice(buf, t->at, t->n, to, text_draw_number(to, old, state));
}

/* --- types --- */

/* A type as it stands in the text: f32[2,<=3] or tensor<2x?xf32>. */
typedef struct text_type {
  uint32_t at, n;
  uint32_t dims, n_dims;       /* the bytes of its dimensions; of tensor types with the last 'x' */
  uint32_t element, n_element; /* and of its element type */
  bool mlir;
} text_type;

static uint32_t text_find_tensor(const fuzz_file *f, uint32_t at, text_type *out) {
  static const char start[] = "tensor<";
  uint32_t open = at + (uint32_t)sizeof start - 1, p = open, depth = 1;
  if (f->n - at < sizeof start || memcmp(f->data + at, start, sizeof start - 1) != 0) return 0;
  uint32_t dims = open;
  for (; p < f->n && (isdigit(f->data[p]) || f->data[p] == '?' || f->data[p] == 'x'); p++)
    if (f->data[p] == 'x') dims = p + 1;
  uint32_t end = dims;
  for (; end < f->n && depth > 0; end++) depth += (f->data[end] == '<') - (uint32_t)(f->data[end] == '>');
  if (depth > 0) return 0;
  *out = (text_type){at, end - at, open, dims - open, dims, end - 1 - dims, true};
  for (uint32_t i = dims; i < end - 1; i++) /* an encoding is not part of the element type */
    if (f->data[i] == ',' && f->data[i + 1] == ' ' && f->data[i + 2] == '#') out->n_element = i - dims;
  return out->n;
}

static uint32_t text_find_array(const fuzz_file *f, uint32_t at, text_type *out) {
  uint32_t p = at;
  while (p < f->n && isalnum(f->data[p])) p++;
  if (p == at || p - at > 12 || p >= f->n || f->data[p] != '[') return 0;
  char name[16] = "";
  memcpy(name, f->data + at, p - at);
  if (!xlac_dtype_from_text(name)) return 0;
  uint32_t end = p + 1;
  while (end < f->n && (isdigit(f->data[end]) || strchr(",<=?", f->data[end]))) end++;
  if (end >= f->n || f->data[end] != ']') return 0;
  *out = (text_type){at, end + 1 - at, p + 1, end - p - 1, at, p - at, false};
  return out->n;
}

static text_type text_types[TEXT_MAX_TYPES];

static uint32_t text_find_types(const fuzz_file *f) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n && n < TEXT_MAX_TYPES; i++) {
    if (i > 0 && text_in_word(f->data[i - 1])) continue;
    if (!isalpha(f->data[i])) continue;
    uint32_t length = f->data[i] == 't' ? text_find_tensor(f, i, &text_types[n]) : 0;
    if (!length) length = text_find_array(f, i, &text_types[n]);
    if (length) n++;
  }
  return n;
}

/* Puts `with` in place of the bytes at `at` in types[which], or in all types that are written like that one. */
static void text_retype(fuzz_file *buf, uint32_t n_types, uint32_t which, bool everywhere, uint32_t at, uint32_t drop,
                        const char *with) {
  char old[TEXT_MAX_WORD];
  const text_type chosen = text_types[which];
  if (chosen.n >= sizeof old) return;
  memcpy(old, buf->data + chosen.at, chosen.n);
  for (uint32_t i = n_types; i-- > 0;) { /* from the end, so that places stay right */
    const text_type *t = &text_types[i];
    bool same = t->n == chosen.n && memcmp(buf->data + t->at, old, t->n) == 0;
    if (i == which || (everywhere && same)) fuzz_splice(buf, t->at + (at - chosen.at), drop, with, strlen(with));
  }
}

/* The dimension that begins at or before byte `at` of a type's dimensions. */
static void text_one_dim(const fuzz_file *buf, const text_type *t, uint64_t *state, uint32_t *at, uint32_t *n) {
  char separator = t->mlir ? 'x' : ',';
  uint32_t end = t->dims + t->n_dims;
  *at = t->dims + fuzz_below(state, t->n_dims);
  while (*at > t->dims && buf->data[*at - 1] != separator) --*at;
  for (*n = 0; *at + *n < end && buf->data[*at + *n] != separator;) ++*n;
}

static void text_draw_dim(char *to, bool mlir, const char *old, uint64_t *state) {
  static const char *const sizes[] = {"0", "1", "2", "3", "4", "5", "8", "17", "64", "130"};
  uint32_t how = fuzz_below(state, 10);
  if (how < 4 && mlir) {
    strcpy(to, "?");
  } else if (how < 4) {
    sprintf(to, "<=%.20s", old[0] == '<' ? old + 2 : old);
  } else if (how < 9) {
    strcpy(to, sizes[fuzz_below(state, sizeof sizes / sizeof *sizes)]);
  } else {
    strcpy(to, text_extremes[fuzz_below(state, TEXT_EXTREMES - 6)]);
  }
}

/* One dimension of one type, or of all that are written like it. */
static void text_change_dim(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf), at, size;
  if (n == 0) return;
  uint32_t which = fuzz_below(state, n);
  if (text_types[which].n_dims == 0) return;
  text_one_dim(buf, &text_types[which], state, &at, &size);
  char old[32] = "", to[32];
  if (size >= sizeof old) return;
  memcpy(old, buf->data + at, size);
  text_draw_dim(to, text_types[which].mlir, old, state);
  text_retype(buf, n, which, fuzz_below(state, 2), at, size, to);
}

/* Everything that has the size of some dimension gets another: the program often stays a valid one. */
static void text_change_size(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf), at, size;
  if (n == 0) return;
  const text_type t = text_types[fuzz_below(state, n)];
  if (t.n_dims == 0) return;
  text_one_dim(buf, &t, state, &at, &size);
  char old[32] = "", to[32], separator = t.mlir ? 'x' : ',';
  if (size == 0 || size >= sizeof old) return;
  memcpy(old, buf->data + at, size);
  text_draw_dim(to, t.mlir, old, state);
  for (uint32_t i = n; i-- > 0;) {
    const text_type *u = &text_types[i];
    for (uint32_t p = u->dims + u->n_dims; p-- > u->dims;) {
      bool begins = p == u->dims || buf->data[p - 1] == (uint8_t)separator;
      uint32_t end = p + size;
      bool ends = end == u->dims + u->n_dims || (end < u->dims + u->n_dims && buf->data[end] == (uint8_t)separator);
      if (begins && ends && memcmp(buf->data + p, old, size) == 0) fuzz_splice(buf, p, size, to, strlen(to));
    }
  }
}

/* Every dimension of all types is known at run time only. */
static void text_make_dynamic(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf);
  uint32_t of = fuzz_below(state, 3);
  for (uint32_t i = n; i-- > 0;) {
    const text_type *t = &text_types[i];
    for (uint32_t p = t->dims + t->n_dims; p-- > t->dims && t->mlir;) {
      if (!isdigit(buf->data[p])) continue;
      uint32_t start = p;
      while (start > t->dims && isdigit(buf->data[start - 1])) start--;
      bool keep = of == 0 && p + 1 - start == 1 && buf->data[p] == '1';
      if (!keep) fuzz_splice(buf, start, p + 1 - start, "?", 1);
      p = start;
    }
  }
}

/* An array without dimensions, or of one more or less. */
static void text_change_rank(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf);
  if (n == 0) return;
  uint32_t which = fuzz_below(state, n), how = fuzz_below(state, 5);
  const text_type t = text_types[which];
  bool everywhere = fuzz_below(state, 4) == 0;
  uint32_t at, size;
  if (how < 3) {
    text_retype(buf, n, which, everywhere, t.dims, t.n_dims, "");
  } else if (how == 3) {
    const char *more = t.mlir ? "2x" : t.n_dims ? "2," : "2";
    text_retype(buf, n, which, everywhere, t.dims, 0, more);
  } else if (t.n_dims) {
    text_one_dim(buf, &t, state, &at, &size);
    bool last = at + size >= t.dims + t.n_dims;
    text_retype(buf, n, which, everywhere, last && !t.mlir && at > t.dims ? at - 1 : at,
                size + (t.mlir || !last || at > t.dims), "");
  }
}

static const char *const text_dtypes_hlo[] = {
    "pred", "s2",   "s4",  "s8",  "s16", "s32",  "s64",      "u4",     "u8",       "u16",       "u32",   "u64",
    "f16",  "bf16", "f32", "f64", "c64", "c128", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "f8e8m0fnu", "token", "opaque"};
static const char *const text_dtypes_mlir[] = {
    "i1",           "i2",           "i4",       "i8",     "i16",      "i32",   "i64",  "ui4",
    "ui8",          "ui16",         "ui32",     "ui64",   "f16",      "bf16",  "f32",  "f64",
    "complex<f32>", "complex<f64>", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "index", "tf32", "i17"};
static const char *const text_quants[] = {
    "!quant.uniform<i8:f32, 2.0:15>",           "!quant.uniform<i8:f32, 0.5:1>",
    "!quant.uniform<u8:f32, 0.1:128>",          "!quant.uniform<i8<-128:127>:f32, 1.0>",
    "!quant.uniform<i4:f32, 0.25:-3>",          "!quant.uniform<i32:f32, 0.01>",
    "!quant.uniform<i8:bf16, 2.0:15>",          "!quant.uniform<i8:f32:0, {2.0:3, 0.5}>",
    "!quant.uniform<i8:f32:1, {2.0:3, 0.5:1}>", "!quant.uniform<f64<-128:127>:f32, 1.0:300>",
    "!quant.uniform<i8:f32, 2147483647:15>",    "!quant.uniform<i8:f64, 1.0e-40:2>",
};

static const char *text_draw_element(bool mlir, uint64_t *state) {
  if (!mlir) return text_dtypes_hlo[fuzz_below(state, sizeof text_dtypes_hlo / sizeof *text_dtypes_hlo)];
  if (fuzz_below(state, 3) == 0) return text_quants[fuzz_below(state, sizeof text_quants / sizeof *text_quants)];
  return text_dtypes_mlir[fuzz_below(state, sizeof text_dtypes_mlir / sizeof *text_dtypes_mlir)];
}

/* Another element type for one type, or for all that are written like it. */
static void text_change_element(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf);
  if (n == 0) return;
  uint32_t which = fuzz_below(state, n);
  const text_type t = text_types[which];
  text_retype(buf, n, which, fuzz_below(state, 2), t.element, t.n_element, text_draw_element(t.mlir, state));
}

/* Every type of that element type gets another one: f32 becomes quantised all over the program. */
static void text_change_elements(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t n = text_find_types(buf);
  if (n == 0) return;
  const text_type t = text_types[fuzz_below(state, n)];
  const char *with = text_draw_element(t.mlir, state);
  char old[TEXT_MAX_WORD];
  if (t.n_element >= sizeof old) return;
  memcpy(old, buf->data + t.element, t.n_element);
  for (uint32_t i = n; i-- > 0;) {
    const text_type *u = &text_types[i];
    if (u->n_element == t.n_element && memcmp(buf->data + u->element, old, u->n_element) == 0)
      fuzz_splice(buf, u->element, u->n_element, with, strlen(with));
  }
}

/* Another type of the same program or of another one; an unranked tensor; a memref. */
static void text_change_type(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  char type[TEXT_MAX_WORD] = "";
  uint32_t n = text_find_types(fuzz_below(state, 4) ? buf : other), how = fuzz_below(state, 12);
  if (n == 0) return;
  text_type t = text_types[fuzz_below(state, n)];
  const fuzz_file *from = t.at + t.n <= buf->n && text_find_types(buf) == n ? buf : other;
  if (t.n >= sizeof type || t.at + t.n > from->n) return;
  memcpy(type, from->data + t.at, t.n);
  n = text_find_types(buf);
  if (n == 0) return;
  uint32_t which = fuzz_below(state, n);
  t = text_types[which];
  static const char *const odd[] = {"tensor<*xf32>", "memref<2xf32>",    "index",
                                    "!shape.shape",  "!stablehlo.token", "tuple<tensor<f32>>"};
  const char *with = t.mlir && how < 2 ? odd[fuzz_below(state, sizeof odd / sizeof *odd)] : type;
  text_retype(buf, n, which, fuzz_below(state, 2), t.at, t.n, with);
}

/* --- names and words --- */

/* A token becomes another of its kind: an operand, an op, a called computation, an attribute. */
static void text_change_token(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  const text_token *t = text_any(&text_here, state);
  bool own = !other || fuzz_below(state, 4);
  const text_tokens *from = own ? &text_here : &text_there;
  if (!t || from->n == 0) return;
  const char kind[2] = {t->kind, 0};
  const text_token *found = text_of_kind(from, kind, state);
  if (!found || found->n > TEXT_MAX_WORD) return;
  fuzz_splice(buf, t->at, t->n, (own ? buf : other)->data + found->at, found->n);
}

static bool text_is_operand(const text_tokens *t, uint32_t i) {
  return i > 0 && i + 1 < t->n && strchr("w%", t->items[i].kind) && strchr("(,", t->items[i - 1].kind) &&
         strchr("),", t->items[i + 1].kind);
}

/* An operand becomes another op's operand. */
static void text_change_operand(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t found[2], n = 0;
  for (int tries = 0; tries < 200 && n < 2 && text_here.n; tries++) {
    uint32_t i = fuzz_below(state, text_here.n);
    if (text_is_operand(&text_here, i)) found[n++] = i;
  }
  if (n < 2) return;
  const text_token *a = &text_here.items[found[0]], *b = &text_here.items[found[1]];
  if (b->n <= TEXT_MAX_WORD) fuzz_splice(buf, a->at, a->n, buf->data + b->at, b->n);
}

/* The type of a number in an attribute: "3 : i64". */
static void text_change_scalar(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  for (int tries = 0; tries < 200 && text_here.n > 2; tries++) {
    uint32_t i = 2 + fuzz_below(state, text_here.n - 2);
    const text_token *t = &text_here.items[i];
    if (t->kind != 'w' || t[-1].kind != ':' || t[-2].kind != 'n') continue;
    const char *with = text_draw_element(true, state);
    fuzz_splice(buf, t->at, t->n, with, strlen(with));
    return;
  }
}

/* Two names change places: operands, called computations, labels. */
static void text_swap_tokens(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  const text_token *a = text_of_kind(&text_here, "w%@", state);
  if (!a) return;
  const char kind[2] = {a->kind, 0};
  const text_token *b = text_of_kind(&text_here, kind, state);
  if (!b || a->n > TEXT_MAX_WORD || b->n > TEXT_MAX_WORD || a == b) return;
  if (a->at > b->at) {
    const text_token *t = a;
    a = b;
    b = t;
  }
  uint8_t first[TEXT_MAX_WORD];
  uint32_t n = a->n;
  memcpy(first, buf->data + a->at, n);
  uint32_t second_at = b->at, second_n = b->n;
  uint8_t second[TEXT_MAX_WORD];
  memcpy(second, buf->data + second_at, second_n);
  fuzz_splice(buf, second_at, second_n, first, n);
  fuzz_splice(buf, a->at, n, second, second_n);
}

/* Names of computations that ops call, found behind '=' or as @symbols, change places. */
static void text_swap_called(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  static const char *const keys[] = {"to_apply",         "condition",        "body", "calls", "select", "scatter",
                                     "true_computation", "false_computation"};
  uint32_t at[64], n = 0;
  for (uint32_t i = 0; i + 2 < text_here.n && n < 64; i++) {
    const text_token *t = &text_here.items[i];
    for (uint32_t k = 0; k < sizeof keys / sizeof *keys; k++)
      if (t->kind == 'w' && t->n == strlen(keys[k]) && memcmp(buf->data + t->at, keys[k], t->n) == 0 &&
          t[1].kind == '=') {
        at[n++] = i + 2;
        break;
      }
  }
  if (n < 2) return;
  const text_token *a = &text_here.items[at[fuzz_below(state, n)]], *b = &text_here.items[at[fuzz_below(state, n)]];
  if (b->n > TEXT_MAX_WORD) return;
  fuzz_splice(buf, a->at, a->n, buf->data + b->at, b->n);
}

/* --- lists, results, lines --- */

/* The item of a list around token i: from behind the comma or bracket before it to the one after it. */
static bool text_item(const text_tokens *t, uint32_t i, uint32_t *from, uint32_t *to, bool *first) {
  int depth = 0;
  uint32_t p = i;
  for (; p > 0; p--) {
    char c = t->items[p - 1].kind;
    if (strchr(")]}>", c) && !(c == '>' && p > 1 && t->items[p - 2].kind == '-')) depth++;
    if (strchr("([{<", c) && depth-- == 0) break;
    if (c == ',' && depth == 0) break;
  }
  if (p == 0) return false;
  *first = t->items[p - 1].kind != ',';
  *from = t->items[p - 1].at + t->items[p - 1].n;
  depth = 0;
  for (p = i; p < t->n; p++) {
    char c = t->items[p].kind;
    if (strchr("([{<", c)) depth++;
    if (strchr(")]}>", c) && depth-- == 0) break;
    if (c == ',' && depth == 0) break;
  }
  if (p == t->n) return false;
  *to = t->items[p].at;
  return *to >= *from;
}

/* An operand, attribute, type or number of a list is dropped, or there twice. */
static void text_change_list(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  uint32_t from, to;
  bool first;
  if (text_here.n == 0 || !text_item(&text_here, fuzz_below(state, text_here.n), &from, &to, &first)) return;
  if (to - from > 4096) return;
  if (fuzz_below(state, 2)) {
    if (!first)
      from--; /* the comma */
    else if (to < buf->n && buf->data[to] == ',')
      to++;
    fuzz_splice(buf, from, to - from, NULL, 0);
    return;
  }
  uint32_t times = fuzz_below(state, 8) ? 1 : 20;
  uint32_t n = to - from;
  while (times-- > 0) {
    fuzz_splice(buf, to, 0, buf->data + from, n);
    fuzz_splice(buf, to, 0, ",", 1);
  }
}

/* An op keeps its operands and has no results: "%0 = " goes, or "-> type" becomes "-> ()". */
static void text_drop_result(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  for (int tries = 0; tries < 30; tries++) {
    uint32_t i = text_here.n > 2 ? fuzz_below(state, text_here.n - 1) : 0;
    const text_token *t = &text_here.items[i];
    if (t->kind == '=' && i > 0 && text_here.items[i - 1].kind == '%') {
      uint32_t at = text_here.items[i - 1].at;
      fuzz_splice(buf, at, t->at + t->n - at, NULL, 0);
      return;
    }
    if (t->kind == '>' && i > 0 && text_here.items[i - 1].kind == '-' && i + 1 < text_here.n) {
      uint32_t at = t->at + 1, end = at;
      while (end < buf->n && buf->data[end] != '\n' && buf->data[end] != '{') end++;
      fuzz_splice(buf, at, end - at, " () ", 4);
      return;
    }
  }
}

static void text_line(const fuzz_file *f, uint64_t *state, uint32_t lines, size_t *at, size_t *n) {
  *at = f->n ? fuzz_random(state) % f->n : 0;
  while (*at > 0 && f->data[*at - 1] != '\n') --*at;
  size_t end = *at;
  for (; lines > 0 && end < f->n; lines--) {
    while (end < f->n && f->data[end] != '\n') end++;
    end += end < f->n;
  }
  *n = end - *at;
}

/* A line goes, is there twice, moves, or comes from elsewhere. */
static void text_change_line(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  static const uint32_t counts[] = {1, 1, 1, 2, 5};
  size_t at, n, to, unused;
  uint32_t how = fuzz_below(state, 4);
  bool graft = how == 3;
  text_line(graft ? other : buf, state, counts[fuzz_below(state, 5)], &at, &n);
  if (how == 0) {
    fuzz_splice(buf, at, n, NULL, 0);
    return;
  }
  uint8_t *copy = malloc(n + 1);
  if (!copy) return;
  memcpy(copy, (graft ? other : buf)->data + at, n);
  if (how == 1) fuzz_splice(buf, at, n, NULL, 0);
  text_line(buf, state, 1, &to, &unused);
  fuzz_splice(buf, to, 0, copy, n);
  free(copy);
}

/* Thousands of brackets, often where a type stands. */
static void text_nest(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  static const char *const opens[] = {"(", "[", "{", "<", "tuple<", "tensor<", "complex<", "((f32[]", "{a="};
  static const uint32_t depths[] = {5, 250, 300, 5000, 50000};
  size_t at = buf->n ? fuzz_random(state) % buf->n : 0;
  uint32_t n_types = fuzz_below(state, 2) ? text_find_types(buf) : 0;
  if (n_types) at = text_types[fuzz_below(state, n_types)].at;
  const char *open = opens[fuzz_below(state, sizeof opens / sizeof *opens)];
  uint32_t depth = depths[fuzz_below(state, 5)];
  size_t length = strlen(open), room = (FUZZ_MAX_INPUT - buf->n) / length;
  if (depth > room) depth = (uint32_t)room;
  uint8_t *text = malloc(depth * length + 1);
  if (!text) return;
  for (uint32_t i = 0; i < depth; i++) memcpy(text + i * length, open, length);
  fuzz_splice(buf, at, 0, text, depth * length);
  free(text);
}

/* Characters where none are expected. */
static void text_put_byte(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  (void)other;
  static const char *const odd[] = {"\xff", "\xc3(", "\x1b", "\"",    "\\", "\\ff", "/*",    "//",
                                    "?",    "-",     "x",    "{...}", "<=", "#loc", "^bb0:", "ROOT "};
  const char *with = odd[fuzz_below(state, sizeof odd / sizeof *odd)];
  fuzz_splice(buf, buf->n ? fuzz_random(state) % buf->n : 0, fuzz_below(state, 3), with, strlen(with));
}

typedef void text_change(fuzz_file *buf, const fuzz_file *other, uint64_t *state);
static const struct {
  text_change *change;
  uint32_t weight;
} text_changes[] = {
    {text_change_number, 14},  {text_change_dim, 12},    {text_change_size, 12},
    {text_make_dynamic, 8},    {text_change_rank, 6},    {text_change_element, 6},
    {text_change_elements, 6}, {text_change_type, 6},    {text_change_token, 14},
    {text_swap_tokens, 4},     {text_swap_called, 3},    {text_change_list, 12},
    {text_drop_result, 3},     {text_change_line, 8},    {text_nest, 2},
    {text_put_byte, 2},        {text_change_operand, 8}, {text_change_scalar, 3},
};

void fuzz_mutate_text(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  enum { N = sizeof text_changes / sizeof *text_changes };
  uint32_t sum = 0;
  for (uint32_t i = 0; i < N; i++) sum += text_changes[i].weight;
  uint32_t at = fuzz_below(state, sum), i = 0;
  while (at >= text_changes[i].weight) at -= text_changes[i++].weight;
  text_split(buf, &text_here);
  text_split(other, &text_there);
  text_changes[i].change(buf, other, state);
}
