/* The typed backend_config of a custom call: MLIR's text for a dictionary of numbers, strings, arrays and dictionaries.
 * What else MLIR has is handed on as text.
 *
 * `{axis = 1 : i64, names = ["a"], scale = 2.0 : f32, dims = array<i64: 1, 2>}` becomes a list of typed
 * attributes, which a native function reads from its frame. Everything read lies in the arena and may not
 * point into the text. */
#include "../../base/number/number.h"
#include "native.h"

enum { NATIVE_MAX_DEPTH = 32 };

typedef struct native_reader {
  const char *p, *end;
  base_arena *arena;
  const char *why; /* what is wrong */
  bool failed;     /* out of memory */
  uint32_t depth;
} native_reader;
BASE_VEC(native_attr_list, xlac_ffi_attr);

/* The first reason stays. Always false. */
static bool native_wrong(native_reader *r, const char *why) {
  if (!r->why) r->why = why;
  return false;
}

/* Spaces and line ends; MLIR's comments do not occur in attributes as printed. */
static void native_blank(native_reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r')) r->p++;
}

/* Consumes c where it is next, after blanks. */
static bool native_take(native_reader *r, char c) {
  native_blank(r);
  if (r->p == r->end || *r->p != c) return false;
  r->p++;
  return true;
}

static bool native_is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
}

/* Letters, digits and _.$ ; may be empty. */
static base_slice native_word(native_reader *r) {
  native_blank(r);
  const char *from = r->p;
  while (r->p < r->end && native_is_word(*r->p)) r->p++;
  return (base_slice){from, (size_t)(r->p - from)};
}

/* -1: no such digit. */
static int native_hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* The byte at an escape's first character after '\', or -1. */
static int native_escape(native_reader *r) {
  static const char names[] = "ntr\"\\", bytes[] = "\n\t\r\"\\";
  const char *at = r->p < r->end && *r->p ? strchr(names, *r->p) : NULL;
  if (at) {
    r->p++;
    return (unsigned char)bytes[at - names];
  }
  int high = r->end - r->p >= 2 ? native_hex(r->p[0]) : -1, low = high >= 0 ? native_hex(r->p[1]) : -1;
  if (low < 0) return -1;
  r->p += 2;
  return high * 16 + low;
}

/* After the opening quote. */
static const char *native_string(native_reader *r, uint64_t *n) {
  char *out = base_arena_alloc(r->arena, (size_t)(r->end - r->p) + 1);
  size_t m = 0;
  if (!out) {
    r->failed = true;
    return NULL;
  }
  while (r->p < r->end && *r->p != '"') {
    int c = (unsigned char)*r->p++;
    if (c == '\\' && (c = native_escape(r)) < 0) break;
    out[m++] = (char)c;
  }
  if (r->p == r->end || *r->p != '"') {
    (void)native_wrong(r, "a string does not end, or has an escape that is none");
    return NULL;
  }
  r->p++;
  out[m] = 0;
  *n = m;
  return out;
}

/* "ui8", "i32", "f32": what MLIR calls an element type. */
static base_dtype native_type(base_slice word) {
  char text[32] = "";
  if (base_slice_is(word, "i1")) return XLAC_PRED;
  if (base_slice_is(word, "index")) return XLAC_S64;
  if (word.n == 0 || word.n >= sizeof text - 1) return BASE_DTYPE_INVALID;
  memcpy(text, word.p, word.n);
  if (text[0] == 'u' && text[1] == 'i') {
    memmove(text + 1, text + 2, strlen(text + 1));
  } else if (text[0] == 's' && text[1] == 'i') {
    memmove(text + 1, text + 2, strlen(text + 1));
  } else if (text[0] == 'i') {
    text[0] = 's';
  }
  for (char *p = text; *p; p++)
    if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
  return base_dtype_from_text(text, strlen(text));
}

/* A number as text from r->p on; stores it as an element of type t (BASE_DTYPE_INVALID: what it looks like). */
static bool native_number(native_reader *r, base_dtype *t, int64_t *i, double *f) {
  native_blank(r);
  const char *from = r->p, *end = NULL;
  bool minus = from < r->end && *from == '-';
  uint64_t u = 0;
  if (r->end - from > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X')) {
    for (r->p += 2; r->p < r->end && native_hex(*r->p) >= 0; r->p++) u = u * 16 + (uint64_t)native_hex(*r->p);
    *i = (int64_t)u; /* of a float: its bits */
    *t = XLAC_U64;
    return true;
  }
  while (r->p < r->end && (native_is_word(*r->p) || *r->p == '-' || *r->p == '+')) r->p++;
  bool real = false;
  for (const char *p = from; p < r->p; p++) real = real || *p == '.' || *p == 'e' || *p == 'E';
  if (real) {
    end = base_parse_f64(from, r->p, f);
    *t = XLAC_F64;
  } else if (minus) {
    end = base_parse_i64(from, r->p, i);
    *t = XLAC_S64;
  } else {
    end = base_parse_u64(from, r->p, &u);
    *i = (int64_t)u;
    *t = XLAC_S64;
  }
  return end == r->p && from < r->p ? true : native_wrong(r, "a number can't be read");
}

/* Element i of a list of numbers, as read by native_number, to memory of type t. Hexadecimal numbers stand
 * for the bits of floats. */
static void native_store(base_dtype t, char *to, base_dtype read, int64_t i, double f) {
  size_t bytes = base_dtype_bytes(t);
  if (read == XLAC_F64)
    base_store_f64(t, to, f);
  else if (base_dtype_is_float(t) && read == XLAC_U64)
    memcpy(to, &i, bytes); /* bits */
  else if (base_dtype_is_float(t))
    base_store_f64(t, to, (double)i);
  else
    base_store_i64(t, to, i);
}

/* `1 : i32`; without a type, i64 or f64 by how it looks. */
static bool native_scalar(native_reader *r, xlac_ffi_attr *a) {
  base_dtype read = BASE_DTYPE_INVALID, t = BASE_DTYPE_INVALID;
  if (!native_number(r, &read, &a->i, &a->f)) return false;
  t = read == XLAC_F64 ? XLAC_F64 : XLAC_S64;
  if (native_take(r, ':')) t = native_type(native_word(r));
  if (t == BASE_DTYPE_INVALID || base_dtype_is_complex(t)) return native_wrong(r, "a number has a type that is none");
  if (base_dtype_is_float(t)) {
    char element[16] = "";
    native_store(t, element, read, a->i, a->f);
    a->f = base_load_f64(t, element);
    a->i = 0;
  } else if (read == XLAC_F64) {
    return native_wrong(r, "an integer has a fraction");
  } else {
    a->f = base_dtype_is_unsigned(t) ? (double)(uint64_t)a->i : (double)a->i;
  }
  a->kind = base_dtype_is_float(t) ? XLAC_FFI_FLOAT : XLAC_FFI_INT;
  a->dtype = native_dtype(t);
  return true;
}

/* Numbers up to `close`, one after the other; without a place to put them, only counted. */
static bool native_numbers(native_reader *r, char close, base_dtype t, char *to, uint64_t *n) {
  *n = 0;
  if (native_take(r, close)) return true;
  do {
    base_dtype read = XLAC_S64;
    int64_t i = 0;
    double f = 0;
    native_blank(r);
    if (r->p < r->end && (*r->p == 't' || *r->p == 'f')) {
      i = base_slice_is(native_word(r), "true");
    } else if (!native_number(r, &read, &i, &f)) {
      return false;
    }
    if (to) native_store(t, to + *n * base_dtype_bytes(t), read, i, f);
    ++*n;
  } while (native_take(r, ','));
  return native_take(r, close) ? true : native_wrong(r, "a list of numbers does not end");
}

/* Twice over the same text: to count, then to store. */
static bool native_fill_array(native_reader *r, char close, base_dtype t, xlac_ffi_attr *a) {
  const char *from = r->p;
  if (t == BASE_DTYPE_INVALID) return native_wrong(r, "an array has an element type that is none");
  if (!native_numbers(r, close, t, NULL, &a->n)) return false;
  char *data = base_arena_aligned(r->arena, (size_t)a->n * base_dtype_bytes(t) + 1, 64);
  r->p = from;
  r->failed = r->failed || !data;
  a->kind = XLAC_FFI_ARRAY;
  a->dtype = native_dtype(t);
  a->array = data;
  return data && native_numbers(r, close, t, data, &a->n);
}

/* After "array<": i32: 1, 2> */
static bool native_array(native_reader *r, xlac_ffi_attr *a) {
  base_dtype t = native_type(native_word(r));
  if (native_take(r, ':')) return native_fill_array(r, '>', t, a);
  if (!native_take(r, '>')) return native_wrong(r, "an array does not end");
  return t != BASE_DTYPE_INVALID ? (r->p--, native_fill_array(r, '>', t, a)) : native_wrong(r, "no element type");
}

/* The text of something in brackets that is not looked into, from r->p on. */
static bool native_other(native_reader *r, xlac_ffi_attr *a, const char *from) {
  int open = 0;
  bool quoted = false;
  for (; r->p < r->end; r->p++) {
    char c = *r->p;
    if (quoted) {
      if (c == '\\' && r->p + 1 < r->end) r->p++;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '<' || c == '[' || c == '(' || c == '{') open++;
    if (open == 0 && (c == ',' || c == '}' || c == ']' || c == ')')) break;
    if ((c == '>' && r->p[-1] != '-') || c == ']' || c == ')' || c == '}') open--;
  }
  while (r->p > from && r->p[-1] == ' ') r->p--;
  a->kind = XLAC_FFI_OTHER;
  a->n = (uint64_t)(r->p - from);
  a->s = base_arena_strndup(r->arena, from, (size_t)a->n);
  r->failed = r->failed || !a->s;
  return a->s && a->n ? true : native_wrong(r, "a value is missing");
}

static bool native_dict(native_reader *r, xlac_ffi_attr *a);

/* `size` times the number at r->p. */
static bool native_splat(native_reader *r, base_dtype t, uint64_t size, xlac_ffi_attr *a) {
  uint64_t bytes = base_dtype_bytes(t);
  if (size > ((uint64_t)1 << 32) / (bytes ? bytes : 1)) return native_wrong(r, "an array is too large");
  if (!native_fill_array(r, '>', t, a)) return false;
  char *all = base_arena_aligned(r->arena, (size_t)(size * bytes) + 1, 64);
  r->failed = r->failed || !all;
  for (uint64_t i = 0; all && i < size; i++) memcpy(all + i * bytes, a->array, bytes);
  a->array = all;
  a->n = size;
  return all != NULL;
}

/* "dense<[1, 2]> : tensor<2xi64>": an array where it is one list, or one number for all of it; else text. */
static bool native_dense(native_reader *r, xlac_ffi_attr *a, const char *from) {
  native_reader start = *r;
  bool list = native_take(r, '[');
  uint64_t n = 0;
  bool plain = native_numbers(r, list ? ']' : '>', XLAC_F64, NULL, &n) && (!list || native_take(r, '>'));
  if (plain && native_take(r, ':') && base_slice_is(native_word(r), "tensor") && native_take(r, '<')) {
    base_slice words = native_word(r); /* 2xi64 */
    const char *x = memchr(words.p, 'x', words.n), *end = NULL;
    int64_t size = 0;
    if (x && (end = base_parse_i64(words.p, x, &size)) == x && size >= 0 && (list ? (uint64_t)size == n : n == 1) &&
        native_take(r, '>')) {
      const char *after = r->p;
      base_dtype t = native_type((base_slice){x + 1, words.n - (size_t)(x + 1 - words.p)});
      r->p = start.p;
      if (list ? native_take(r, '[') && native_fill_array(r, ']', t, a)
               : t != BASE_DTYPE_INVALID && native_splat(r, t, (uint64_t)size, a)) {
        r->p = after;
        return true;
      }
    }
  }
  *r = (native_reader){from, start.end, start.arena, NULL, r->failed, start.depth};
  return native_other(r, a, from);
}

/* By its first character or word. */
static bool native_value(native_reader *r, xlac_ffi_attr *a) {
  native_blank(r);
  const char *from = r->p;
  if (native_take(r, '"')) {
    a->kind = XLAC_FFI_STRING;
    return (a->s = native_string(r, &a->n)) != NULL;
  }
  if (native_take(r, '{')) return native_dict(r, a);
  if (from < r->end && (*from == '-' || (*from >= '0' && *from <= '9'))) return native_scalar(r, a);
  base_slice word = native_word(r);
  if (base_slice_is(word, "true") || base_slice_is(word, "false") || base_slice_is(word, "unit")) {
    a->kind = XLAC_FFI_BOOL;
    a->dtype = XLAC_FFI_PRED;
    a->i = !base_slice_is(word, "false");
    return true;
  }
  if (base_slice_is(word, "array") && native_take(r, '<')) return native_array(r, a);
  if (base_slice_is(word, "dense") && native_take(r, '<')) return native_dense(r, a, from);
  r->p = from;
  return native_other(r, a, from);
}

/* `name = value`, or a name alone, which is true. */
static bool native_entry(native_reader *r, xlac_ffi_attr *a) {
  uint64_t n = 0;
  *a = (xlac_ffi_attr){.kind = 0};
  if (native_take(r, '"')) {
    a->name = native_string(r, &n);
  } else {
    base_slice word = native_word(r);
    if (word.n == 0) return native_wrong(r, "a name is missing");
    a->name = base_arena_strndup(r->arena, word.p, word.n);
    r->failed = r->failed || !a->name;
  }
  if (!a->name) return false;
  if (native_take(r, '=')) return native_value(r, a);
  a->kind = XLAC_FFI_BOOL; /* a unit attribute */
  a->dtype = XLAC_FFI_PRED;
  a->i = 1;
  return true;
}

static bool native_entries(native_reader *r, native_attr_list *list) {
  if (native_take(r, '}')) return true;
  do {
    xlac_ffi_attr a;
    if (!native_entry(r, &a)) return false;
    if (!BASE_VEC_PUSH(r->arena->alloc, list, a)) {
      r->failed = true;
      return false;
    }
  } while (native_take(r, ','));
  return native_take(r, '}') ? true : native_wrong(r, "a dictionary does not end");
}

/* After the opening brace. */
static bool native_dict(native_reader *r, xlac_ffi_attr *a) {
  native_attr_list list = {NULL, 0, 0};
  if (++r->depth > NATIVE_MAX_DEPTH) return native_wrong(r, "dictionaries are nested too deep");
  bool ok = native_entries(r, &list);
  r->depth--;
  xlac_ffi_attr *entries = ok ? base_arena_alloc(r->arena, list.n * sizeof *entries + 1) : NULL;
  if (entries && list.n) memcpy(entries, list.items, list.n * sizeof *entries);
  r->failed = r->failed || (ok && !entries);
  a->kind = XLAC_FFI_DICT;
  a->n = list.n;
  a->dict = entries;
  BASE_VEC_FREE(r->arena->alloc, &list);
  return entries != NULL;
}

/* Text that can't be read is not an error here: out->bad_attrs says why, and the call fails when it runs. */
int native_read_attrs(const char *text, size_t n, base_arena *arena, native_op *out, xlac_error *err) {
  native_reader r = {.p = text, .end = text + n, .arena = arena};
  xlac_ffi_attr all = {.kind = 0};
  native_blank(&r);
  if (r.p == r.end) return 0;
  bool ok = native_take(&r, '{') ? native_dict(&r, &all) : native_wrong(&r, "it is not a dictionary");
  native_blank(&r);
  if (ok && r.p != r.end) ok = native_wrong(&r, "there is more after the dictionary");
  if (r.failed) return base_oom(err, "a custom call's attributes");
  out->bad_attrs = ok ? NULL : r.why;
  out->n_attrs = ok ? (uint32_t)all.n : 0;
  out->attrs = ok ? all.dict : NULL;
  return 0;
}
