/* Elements attributes: dense<...>, array<...>, dense_resource<...>.
 *
 *   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>    dense<1.0> : tensor<8xf32>    dense<"0x0000803F"> : tensor<1xf32>
 *   array<i64: 1, 2>    dense_resource<weights> : tensor<1000xf32>
 * The type stands behind the elements, and how to read them depends on it: the cursor goes to the end of the
 * brackets, reads the type, comes back for the elements, and goes on behind the type. Elements are stored row-major
 * in the width that ir_literal has. Elements that are all alike are kept as a splat of one, as MLIR keeps them. */
#include "read.h"

/* ---- dense_resource<key>, and the section at the end of the text that has the data: {-# dialect_resources: ... #-}.
 */

/* Where the hex string of each key begins. Values are skipped as strings, so that a key is a word with a colon.
 *   {-# dialect_resources: { builtin: { weights: "0x04000000..." } } #-} */
static int mlir_find_resources(mlir_reader *r) {
  for (const char *p = r->resources; p && p < r->lx.end;) {
    if (!text_is(*p, TEXT_ALPHA) && *p != '"') {
      p++;
      continue;
    }
    const char *e = *p == '"' ? text_string_end(&r->lx, p) : text_name_end(p);
    if (!e) return 0;
    const char *v = e;
    while (*v == ' ' || *v == ':') v++;
    bool has_data = v > e && v[0] == '"' && v[1] == '0' && v[2] == 'x';
    bool quoted = *p == '"';
    const base_istr *key = has_data ? ir_intern(r->m, p + quoted, (size_t)(e - p) - 2u * quoted) : NULL;
    mlir_resource found = {.hex = v};
    if (has_data && (!key || !BASE_VEC_PUSH(r->alloc, &r->resource_list, found) ||
                     !base_map_set(&r->resource_rows, base_key(key), r->resource_list.n - 1)))
      return mlir_no_memory(r);
    p = e;
  }
  return 0;
}

/* The row of a key, or NULL; they are all found when the first is asked for. */
static int mlir_resource_row(mlir_reader *r, const base_istr *key, mlir_resource **out) {
  uint64_t row;
  if (r->resources && !r->resources_found) TRY(mlir_find_resources(r));
  r->resources_found = true;
  *out = base_map_get(&r->resource_rows, base_key(key), &row) ? &r->resource_list.items[row] : NULL;
  return 0;
}

/* The caller frees *out. */
static int mlir_hex_bytes(mlir_reader *r, const char *digits, size_t n, uint8_t **out) {
  for (size_t i = 0; i < 2 * n; i++)
    if (mlir_hex_digit(digits[i]) < 0)
      return mlir_fail(r, digits + i, XLAC_E_BAD_LITERAL, "expected hexadecimal digits in a resource, found '%.*s'",
                       1 + ((unsigned char)digits[i] >= 0xC0), digits + i);
  uint8_t *bytes = base_malloc(r->alloc, n + 1);
  if (!bytes) return mlir_no_memory(r);
  for (size_t i = 0; i < n; i++)
    bytes[i] = (uint8_t)((unsigned)mlir_hex_digit(digits[2 * i]) << 4 | (unsigned)mlir_hex_digit(digits[2 * i + 1]));
  *out = bytes;
  return 0;
}

/* A resource that has all elements keeps all, also where they are alike. `n` bytes of data were given; the literal
 * in `dense` may be a splat of them. */
static int mlir_whole_literal(mlir_reader *r, const ir_mattr *dense, size_t n, ir_mattr *a) {
  const ir_type *type = a->type;
  size_t size = base_dtype_bytes((base_dtype)type->dtype);
  a->splat = dense->splat;
  a->v.literal = dense->v.literal;
  if (!dense->splat || type->count < 1 || n != (size_t)type->count * size) return 0;
  const ir_type *held = ir_tensor(r->m, (base_dtype)type->dtype, type->rank, type->dims, NULL, NULL, NULL);
  ir_literal *l = held ? ir_literal_new(r->m, held) : NULL;
  if (!l) return mlir_no_memory(r);
  for (int64_t i = 0; i < type->count; i++) memcpy((char *)l->data + (size_t)i * size, dense->v.literal->data, size);
  a->splat = false;
  a->v.literal = l;
  return 0;
}

/* The first four bytes are the alignment. A resource whose data is missing or malformed stays a name with a type, as
 * MLIR keeps it. */
static int mlir_fill_resource(mlir_reader *r, const char *at, const char *hex, ir_mattr *a) {
  assert(*hex == '"');
  const char *end = text_string_end(&r->lx, hex);
  if (!end || a->type->kind != IR_TYPE_TENSOR || a->type->has_dynamic || end - hex < 12 || (end - hex) % 2) return 0;
  size_t n = (size_t)(end - hex - 4) / 2;
  uint8_t *bytes = NULL;
  uint32_t alignment;
  const ir_mattr *dense;
  TRY(mlir_hex_bytes(r, hex + 3, n, &bytes));
  memcpy(&alignment, bytes, sizeof alignment);
  a->bits = alignment;
  int status = mlir_literal_of_bytes(r, at, a->type, bytes + 4, n - 4, &dense);
  if (status == 0) status = mlir_whole_literal(r, dense, n - 4, a);
  base_free(r->alloc, bytes);
  return status;
}

/* Uses of one key share the attribute, where they also have one type. */
int mlir_read_resource(mlir_reader *r, const ir_mattr **out) {
  TRY(mlir_want(r, "<"));
  const char *at = r->lx.p;
  mlir_resource *row;
  const base_istr *key;
  if (*at == '"') {
    TRY(mlir_read_string(r, &key));
  } else {
    base_slice w = mlir_word(r);
    if (!w.n || !(key = ir_intern(r->m, w.p, w.n))) return mlir_expected(r, "a resource's key");
    mlir_skip_word(r, w);
  }
  TRY(mlir_want(r, ">"));
  TRY(mlir_want(r, ":"));
  const ir_type *type;
  TRY(mlir_read_type(r, &type));
  TRY(mlir_resource_row(r, key, &row));
  if (row && row->made && row->made->type == type) {
    *out = row->made;
    return 0;
  }
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, key->s, key->n);
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_RESOURCE;
  a->type = type;
  *out = a;
  if (!row) return 0;
  row->made = a;
  return mlir_fill_resource(r, at, row->hex, a);
}

/* One dense<...> being read: elements of `dtype` go to `data` in order. */
typedef struct mlir_dense_state {
  const ir_type *type;
  base_dtype dtype;
  size_t size; /* bytes of an element */
  uint8_t *data;
  int64_t stored, capacity;
  uint32_t level, depth;     /* of brackets; depth: of the innermost, once known */
  int64_t dims[IR_MAX_RANK]; /* extents as written, -1 unknown */
  const char *at;
} mlir_dense_state;

/* The value of a hexadecimal digit, or -1. */
int mlir_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* --- scalars --- */

/* Signless integers take both readings: 255 and -1 are both i8. */
static bool mlir_int_in_range(base_dtype t, int64_t v) {
  unsigned bits = base_dtype_of(t)->bits;
  if (t == XLAC_PRED) return v == 0 || v == 1 || v == -1;
  if (bits == 64) return true;
  int64_t high = INT64_C(1) << bits, low = -(INT64_C(1) << (bits - 1));
  return v >= low && v < high;
}

/* Of bits beyond the type's, as MLIR allows them in text, the low ones count. */
static void mlir_put_int(base_dtype t, void *to, size_t size, int64_t v) {
  assert(size <= sizeof v);
  unsigned bits = base_dtype_of(t)->bits;
  if (t == XLAC_PRED) v = v != 0;
  if (bits < 64 && t != XLAC_PRED) { /* literals keep narrow values extended as their type says */
    uint64_t low = (uint64_t)v << (64 - bits);
    v = base_dtype_is_unsigned(t) ? (int64_t)(low >> (64 - bits)) : (int64_t)low >> (64 - bits);
  }
  memcpy(to, &v, size);
}

/*   -5   0xFF   true */
static int mlir_dense_int(mlir_reader *r, base_dtype t, void *to, size_t size) {
  const char *p = r->lx.p, *e = p;
  int64_t v = 0;
  uint64_t u = 0;
  if (mlir_eat_word(r, "true") || mlir_eat_word(r, "false")) {
    v = *p == 't';
    if (t != XLAC_PRED) return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "expected integer elements, but parsed a boolean");
    mlir_put_int(t, to, size, v);
    return 0;
  }
  bool negative = *p == '-';
  if (negative && base_dtype_is_unsigned(t))
    return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "expected unsigned integer elements, but parsed negative value");
  if (p[negative] == '0' && p[negative + 1] == 'x') {
    for (e = p + negative + 2; mlir_hex_digit(*e) >= 0; e++) u = u << 4 | (uint64_t)mlir_hex_digit(*e);
    v = (int64_t)(negative ? 0 - u : u);
  } else {
    e = base_parse_i64(p, r->lx.end, &v);
    if (!e && (e = base_parse_u64(p, r->lx.end, &u))) v = (int64_t)u;
  }
  if (!e || *e == '.' || text_is(*e, TEXT_ALPHA))
    return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "expected integer elements");
  if (!mlir_int_in_range(t, v))
    return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "integer constant out of range for the type");
  r->lx.p = e;
  text_skip(&r->lx);
  mlir_put_int(t, to, size, v);
  return 0;
}

/* "0x7F800000" gives the bits, with no more of them than the type has. A float needs a dot or an exponent: MLIR
 * tells floats from integers by their spelling. */
static int mlir_dense_float(mlir_reader *r, base_dtype t, void *to) {
  const char *p = r->lx.p;
  if (p[0] == '0' && p[1] == 'x') {
    uint64_t bits = 0;
    const char *e = p + 2;
    bool fits = true;
    for (; mlir_hex_digit(*e) >= 0; e++) {
      fits = fits && !(bits >> 60);
      bits = bits << 4 | (uint64_t)mlir_hex_digit(*e);
    }
    unsigned width = base_dtype_of(t)->bits;
    if (!fits || (width < 64 && bits >> width))
      return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "hexadecimal float constant out of range for the type");
    r->lx.p = e;
    text_skip(&r->lx);
    memcpy(to, &bits, base_dtype_bytes(t));
    return 0;
  }
  const char *e;
  if (t == XLAC_F32) {
    float v;
    if ((e = base_parse_f32(p, r->lx.end, &v))) memcpy(to, &v, sizeof v);
  } else {
    double v;
    if ((e = base_parse_f64(p, r->lx.end, &v))) base_store_f64(t, to, v);
  }
  if (!e) return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "expected floating point elements");
  bool integral = memchr(p, '.', (size_t)(e - p)) == NULL && memchr(p, 'e', (size_t)(e - p)) == NULL;
  if (integral) return mlir_fail(r, p, XLAC_E_BAD_LITERAL, "expected floating point elements, but parsed integer");
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* Complex numbers are (real, imaginary). */
static int mlir_dense_scalar(mlir_reader *r, base_dtype t, uint8_t *to) {
  size_t size = base_dtype_bytes(t);
  if (base_dtype_is_complex(t)) {
    base_dtype part = t == XLAC_C64 ? XLAC_F32 : XLAC_F64;
    TRY(mlir_want(r, "("));
    TRY(mlir_dense_float(r, part, to));
    TRY(mlir_want(r, ","));
    TRY(mlir_dense_float(r, part, to + size / 2));
    return mlir_want(r, ")");
  }
  return base_dtype_is_float(t) ? mlir_dense_float(r, t, to) : mlir_dense_int(r, t, to, size);
}

/* --- lists --- */

/* Room for one more element. The room grows by doubling, up to what the type holds, since a text may promise more. */
static bool mlir_dense_reserve(mlir_reader *r, mlir_dense_state *s) {
  assert(s->size > 0 && s->stored <= s->capacity);
  if (s->stored < s->capacity) return true;
  int64_t capacity = s->capacity ? s->capacity * 2 : 64;
  if (s->type->kind == IR_TYPE_TENSOR && s->type->count > 0 && capacity - 1 > s->type->count)
    capacity = s->type->count + 1;
  if (capacity <= s->stored) capacity = s->stored * 2 + 1;
  uint8_t *data = base_realloc(r->alloc, s->data, (size_t)capacity * s->size);
  if (!data) return false;
  s->data = data;
  s->capacity = capacity;
  return true;
}

/* All elements stand equally deep. */
static int mlir_dense_one(mlir_reader *r, mlir_dense_state *s) {
  if (!mlir_dense_reserve(r, s)) return mlir_no_memory(r);
  if (s->depth == 0) s->depth = s->level + 1;
  if (s->depth != s->level + 1)
    return mlir_fail(r, s->at, XLAC_E_BAD_LITERAL,
                     "tensor literal is invalid; ranks are not consistent between elements");
  TRY(mlir_dense_scalar(r, s->dtype, s->data + (size_t)s->stored * s->size));
  s->stored++;
  return 0;
}

/* Every list of one level has the same length. Errors point at the opening '<', as MLIR's do. */
static int mlir_dense_list(mlir_reader *r, mlir_dense_state *s) {
  if (s->level == IR_MAX_RANK)
    return mlir_fail(r, s->at, XLAC_E_TOO_DEEP, "a literal of more than %d dimensions", IR_MAX_RANK);
  TRY(mlir_want(r, "["));
  uint32_t level = s->level++;
  int64_t n = 0;
  if (*r->lx.p != ']') {
    do {
      TRY(*r->lx.p == '[' ? mlir_dense_list(r, s) : mlir_dense_one(r, s));
      n++;
    } while (mlir_eat(r, ","));
  }
  s->level--;
  assert(s->level == level);
  if (s->dims[level] >= 0 && s->dims[level] != n)
    return mlir_fail(r, s->at, XLAC_E_BAD_LITERAL,
                     "tensor literal is invalid; ranks are not consistent between elements");
  s->dims[level] = n;
  return mlir_want(r, "]");
}

/* Whether the brackets have the extents of the type; a type without elements takes any. */
static bool mlir_dense_same_shape(const mlir_dense_state *s) {
  for (uint32_t i = 0; i < s->type->rank; i++)
    if (s->dims[i] != s->type->dims[i]) return s->type->count == 0;
  return s->type->rank == IR_MAX_RANK || s->dims[s->type->rank] < 0;
}

/* --- making the attribute --- */

/* Elements that are all the first: a splat, however it was written. */
static bool mlir_all_alike(const uint8_t *data, int64_t n, size_t size) {
  for (int64_t i = 1; i < n; i++)
    if (memcmp(data, data + (size_t)i * size, size) != 0) return false;
  return n > 0;
}

/* MLIR keeps elements that are all alike as a splat. `n` elements, fewer than the type has only where they are all
 * alike. */
static int mlir_make_dense(mlir_reader *r, const ir_type *type, base_dtype dtype, const uint8_t *data, int64_t n,
                           const ir_mattr **out) {
  assert(n >= 0 && (data || n == 0));
  size_t size = base_dtype_bytes(dtype);
  bool splat = mlir_all_alike(data, n, size);
  const ir_type *held = splat ? ir_tensor(r->m, dtype, 0, NULL, NULL, NULL, NULL)
                              : ir_tensor(r->m, dtype, type->rank, type->dims, NULL, NULL, NULL);
  ir_literal *l = held ? ir_literal_new(r->m, held) : NULL;
  if (!l) return mlir_no_memory(r);
  assert(held->count <= n);
  if (held->count) memcpy(l->data, data, (size_t)held->count * size);
  *out = ir_m_dense(r->m, type, l, splat);
  return *out ? 0 : mlir_no_memory(r);
}

/* Bits of narrow integers beyond their width are the sign's, or zero. */
static void mlir_clean_narrow(base_dtype t, uint8_t *data, int64_t n) {
  unsigned bits = base_dtype_of(t)->bits;
  if (bits >= 8 || base_dtype_is_float(t)) return;
  for (int64_t i = 0; i < n; i++) mlir_put_int(t, data + i, 1, t == XLAC_PRED ? data[i] & 1 : (int8_t)data[i]);
}

/* i1 comes a byte each, or packed eight to a byte where the size says so; packed 0x00 and 0xFF are splats in MLIR.
 * The bytes of one element are a splat. */
int mlir_literal_of_bytes(mlir_reader *r, const char *at, const ir_type *type, const uint8_t *bytes, size_t n,
                          const ir_mattr **out) {
  assert(type->kind == IR_TYPE_TENSOR && !type->has_dynamic && type->count >= 0);
  base_dtype t = (base_dtype)type->dtype;
  size_t size = base_dtype_bytes(t);
  int64_t count = type->count;
  bool packed = t == XLAC_PRED && n == ((size_t)count + 7) / 8 && n != (size_t)count;
  bool splat = !packed && n == size && count != 1;
  if (!packed && !splat && n != (size_t)count * size)
    return mlir_fail(r, at, XLAC_E_BAD_LITERAL,
                     "elements hex data size is invalid for provided type: %zu bytes for %lld elements", n,
                     (long long)count);
  int64_t held = splat ? 1 : count;
  uint8_t *data = base_malloc(r->alloc, (size_t)held * size + 1);
  if (!data) return mlir_no_memory(r);
  if (packed && count == 8 && n == 1 && (bytes[0] == 0xFF || bytes[0] == 0)) memset(data, bytes[0] & 1, (size_t)count);
  for (int64_t i = 0; packed && i < count; i++) data[i] = bytes[i / 8] >> (i % 8) & 1;
  if (!packed && held) memcpy(data, bytes, (size_t)held * size);
  mlir_clean_narrow(t, data, held);
  int status = mlir_make_dense(r, type, t, data, held, out);
  base_free(r->alloc, data);
  return status;
}

/* dense<"0x..."> : cursor at the string. */
static int mlir_read_hex_dense(mlir_reader *r, const ir_type *type, const ir_mattr **out) {
  const char *p = r->lx.p + 1, *end = text_string_end(&r->lx, r->lx.p);
  if (!end) return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "a string that never ends");
  size_t digits = (size_t)(end - 1 - p);
  if (digits < 2 || p[0] != '0' || p[1] != 'x' || digits % 2)
    return mlir_fail(r, r->lx.p, XLAC_E_BAD_LITERAL,
                     "elements hex string should be of the form \"0x...\" with whole bytes");
  size_t n = digits / 2 - 1;
  uint8_t *bytes = base_malloc(r->alloc, n + 1);
  if (!bytes) return mlir_no_memory(r);
  bool ok = true;
  for (size_t i = 0; i < n; i++) {
    int high = mlir_hex_digit(p[2 + 2 * i]), low = mlir_hex_digit(p[3 + 2 * i]);
    ok = ok && high >= 0 && low >= 0;
    bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
  }
  int status = ok ? mlir_literal_of_bytes(r, r->lx.p, type, bytes, n, out)
                  : mlir_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "expected hexadecimal digits in the elements");
  base_free(r->alloc, bytes);
  if (status == 0) {
    r->lx.p = end;
    text_skip(&r->lx);
  }
  return status;
}

/* The cursor is behind '<'. */
static int mlir_read_elements(mlir_reader *r, mlir_dense_state *s, const ir_mattr **out) {
  const ir_type *type = s->type;
  if (*r->lx.p == '"' && s->dtype) return mlir_read_hex_dense(r, type, out);
  if (*r->lx.p == '[') {
    TRY(mlir_dense_list(r, s));
    if (!mlir_dense_same_shape(s) || s->stored != type->count)
      return mlir_fail(r, s->at, XLAC_E_BAD_LITERAL, "inferred shape of elements literal does not match type");
  } else if (*r->lx.p != '>') {
    TRY(mlir_dense_one(r, s));
  } else if (type->count != 0) {
    return mlir_fail(r, s->at, XLAC_E_BAD_LITERAL, "inferred shape of elements literal ([0]) does not match type");
  }
  if (type->count == 0 && s->stored == 1) return mlir_make_dense(r, type, s->dtype, s->data, 1, out);
  return mlir_make_dense(r, type, s->dtype, s->data, s->stored, out);
}

/* dense<["a", "b"]> : tensor<2x!tf.string> */
static int mlir_read_strings(mlir_reader *r, const ir_type *type, const ir_mattr **out) {
  const ir_mattr *list;
  TRY(mlir_read_attr(r, &list));
  ir_mattr *a = (ir_mattr *)(uintptr_t)(list->kind == IR_M_ARRAY ? list : ir_m_array(r->m, 1, &list));
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_DENSE_STRING;
  a->type = type;
  *out = a;
  return 0;
}

/* Reads the type first, which stands behind the elements. */
static int mlir_read_new_dense(mlir_reader *r, const ir_mattr **out) {
  const char *open = r->lx.p, *close = *open == '<' ? mlir_balanced_end(r, open) : NULL;
  if (!close) return mlir_expected(r, "<elements>");
  r->lx.p = close;
  text_skip(&r->lx);
  TRY(mlir_want(r, ":"));
  const char *type_at = r->lx.p;
  mlir_dense_state s = {.at = open};
  TRY(mlir_read_type(r, &s.type));
  const char *after = r->lx.p;
  if (s.type->kind == IR_TYPE_OTHER && strncmp(s.type->text->s, "vector", 6) != 0)
    return mlir_fail(r, type_at, XLAC_E_BAD_SHAPE_TEXT, "elements literal must be a ranked tensor or vector type");
  if (s.type->kind != IR_TYPE_TENSOR)
    return mlir_fail(r, type_at, XLAC_E_BAD_SHAPE_TEXT, "elements literal type must be a ranked tensor");
  if (s.type->has_dynamic)
    return mlir_fail(r, type_at, XLAC_E_BAD_SHAPE_TEXT, "elements literal type must have static shape");
  s.dtype = (base_dtype)s.type->dtype;
  s.size = base_dtype_bytes(s.dtype);
  for (uint32_t i = 0; i < IR_MAX_RANK; i++) s.dims[i] = -1;
  r->lx.p = open;
  TRY(mlir_want(r, "<"));
  bool strings = s.type->text && s.type->text->s[0] == '!';
  int status = strings ? mlir_read_strings(r, s.type, out) : mlir_read_elements(r, &s, out);
  base_free(r->alloc, s.data);
  TRY(status);
  TRY(mlir_want(r, ">"));
  r->lx.p = after;
  text_skip(&r->lx);
  return 0;
}

/* Short constants without strings are remembered by their text, type included. */
int mlir_read_dense(mlir_reader *r, const ir_mattr **out) {
  base_slice seen = mlir_dense_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, MLIR_MEMO_DENSE, seen, &place))) {
    mlir_pass(r, seen);
    return 0;
  }
  TRY(mlir_read_new_dense(r, out));
  mlir_remember(r, place, MLIR_MEMO_DENSE, seen, *out);
  return 0;
}

/* array<i64: 1, 2>, cursor at '<'. */
int mlir_read_dense_array(mlir_reader *r, const ir_mattr **out) {
  mlir_dense_state s = {.at = r->lx.p};
  TRY(mlir_want(r, "<"));
  const char *at = r->lx.p;
  s.dtype = mlir_read_dtype(r);
  if (!s.dtype || base_dtype_is_complex(s.dtype))
    return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "expected integer or float type in an array");
  s.size = base_dtype_bytes(s.dtype);
  s.type = ir_element(r->m, s.dtype, NULL);
  if (!s.type) return mlir_no_memory(r);
  int status = 0;
  if (mlir_eat(r, ":")) {
    do status = mlir_dense_one(r, &s);
    while (status == 0 && mlir_eat(r, ","));
  }
  const ir_type *held = ir_tensor(r->m, s.dtype, 1, &s.stored, NULL, NULL, NULL);
  ir_literal *l = held ? ir_literal_new(r->m, held) : NULL;
  if (l && s.stored) memcpy(l->data, s.data, (size_t)s.stored * s.size);
  base_free(r->alloc, s.data);
  TRY(status);
  ir_mattr *a = l ? (ir_mattr *)(uintptr_t)ir_m_dense(r->m, s.type, l, false) : NULL;
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_DENSE_ARRAY;
  *out = a;
  return mlir_want(r, ">");
}
