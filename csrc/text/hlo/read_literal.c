/* Literals: numbers of every element type, nested braces, tuples, and the elided form {...}.
 *
 *   f32[] 1.5        s32[2] {1, 2}        f32[2,2] { { 1, 2 }, { 3, 4 } }        (s32[] 1, pred[2] {1,0}) f32[99] {...}
 * Elements are stored row-major whatever the layout. The array is allocated at its first value, when it is known
 * that the rest of the text is long enough to hold one byte for each element; so a short text can't ask for
 * gigabytes. */
#include "../../base/number/number.h"
#include "read.h"

#include <stdio.h>

/* One array being read. Blanks and commas between values are skipped freely, as XLA's parser does; only braces and
 * counts are checked. */
typedef struct array_state {
  const ir_type *type;
  base_dtype dtype;
  uint8_t *data; /* NULL until the first value */
  size_t size;   /* of an element */
  int64_t stored;
  uint32_t level;            /* open braces */
  int64_t seen[IR_MAX_RANK]; /* elements or subarrays seen in the open brace of each level */
  bool elided;
  const char *at;
} array_state;

/* --- numbers --- */

/*   300 is out of range for s8 */
static int out_of_range(text_reader *r, const char *at, const char *end, base_dtype t) {
  int n = end - at < 60 ? (int)(end - at) : 60;
  return text_fail(r, at, XLAC_E_BAD_LITERAL, "%.*s is out of range for %s", n, at, base_dtype_of(t)->text);
}

/* Whether v, an integer of 64 bits, is one of type t. pred takes any integer: XLA makes true of all but 0. */
static bool integer_fits(base_dtype t, int64_t v) {
  unsigned bits = base_dtype_of(t)->bits;
  if (t == XLAC_PRED || bits == 64) return true;
  if (base_dtype_is_unsigned(t)) return v >= 0 && (uint64_t)v < UINT64_C(1) << bits;
  return v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1);
}

/* Machines are little-endian, so the low bytes come first. */
static void store_integer(base_dtype t, void *to, size_t size, int64_t v) {
  assert(size <= sizeof v && !base_dtype_is_float(t));
  if (t == XLAC_PRED) v = v != 0;
  memcpy(to, &v, size); /* the low bytes: values narrower than a byte are sign-extended already */
}

/* Up to 18 digits are summed on the way, longer numbers are parsed again with checks. Numbers of u64 above the
 * largest s64 have their bits in v. */
static int read_integer(text_reader *r, array_state *s, void *to) {
  const char *p = r->lx.p;
  bool negative = *p == '-';
  const char *digits = p + negative, *d = digits;
  uint64_t v = 0;
  for (; text_is(*d, TEXT_DIGIT); d++) v = v * 10 + (uint64_t)(*d - '0');
  if (d == digits || text_is(*d, TEXT_ALPHA) || *d == '.') return text_expected(r, XLAC_E_BAD_LITERAL, "an integer");
  if (d - digits > 18) {
    bool fits =
        negative || s->dtype != XLAC_U64 ? base_parse_i64(p, d, (int64_t *)&v) == d : base_parse_u64(p, d, &v) == d;
    if (!fits) return out_of_range(r, p, d, s->dtype);
  } else if (negative) {
    v = -v;
  }
  if (!integer_fits(s->dtype, (int64_t)v)) return out_of_range(r, p, d, s->dtype);
  store_integer(s->dtype, to, s->size, (int64_t)v);
  r->lx.p = d;
  return 0;
}

/* A NaN with sign and payload; payload 0 is the type's usual one. Only types with infinities have payloads. In XLA's
 * text a NaN's payload stands for the mantissa's bits; a plain "nan" has the quiet bit alone. f8e4m3fn and its like
 * have one NaN, so that only its sign is kept. */
static int store_nan(text_reader *r, base_dtype t, void *to, bool negative, uint64_t payload, const char *at) {
  const base_dtype_info *info = base_dtype_of(t);
  assert(info->kind == BASE_KIND_FLOAT && info->bytes <= 8);
  unsigned m = info->mantissa_bits;
  const uint64_t usual64 = UINT64_C(1) << 51;
  if (payload == usual64) payload = 0;
  if (!base_float_has_inf(t)) {
    if (payload) return text_fail(r, at, XLAC_E_BAD_LITERAL, "NaNs of %s have no payload", info->text);
    uint32_t bits = base_float_from_f64(t, negative ? -__builtin_nan("") : __builtin_nan(""));
    memcpy(to, &bits, info->bytes);
    return 0;
  }
  uint64_t largest = (UINT64_C(1) << m) - 1;
  if (payload > largest)
    return text_fail(r, at, XLAC_E_BAD_LITERAL, "NaN payload 0x%llx does not fit in %s, whose largest is 0x%llx",
                     (unsigned long long)payload, info->text, (unsigned long long)largest);
  if (payload == 0) payload = UINT64_C(1) << (m - 1);
  uint64_t bits = ((UINT64_C(1) << info->exponent_bits) - 1) << m | payload | (uint64_t)negative << (info->bits - 1);
  memcpy(to, &bits, info->bytes);
  return 0;
}

/* nan or nan(0x123), the sign taken already. At most 13 hexadecimal digits: a double has 52 bits of mantissa. */
static int read_nan(text_reader *r, base_dtype t, void *to, bool negative, const char *at) {
  const char *p = r->lx.p + 3;
  uint64_t payload = 0;
  if (*p == '(') {
    const char *d = p + 3;
    if (p[1] != '0' || p[2] != 'x') return text_expected(r, XLAC_E_BAD_LITERAL, "nan or nan(0x...)");
    for (;; d++) {
      int c = *d | 0x20;
      int v = text_is(*d, TEXT_DIGIT) ? *d - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (v < 0 || payload >> 52) break;
      payload = payload << 4 | (uint64_t)v;
    }
    if (*d != ')' || payload == 0 || payload >> 52)
      return text_fail(r, at, XLAC_E_BAD_LITERAL, "a NaN payload must be hexadecimal, from 0x1 to 0xfffffffffffff");
    p = d + 1;
  } else if (text_is(*p, TEXT_NAME)) {
    return text_expected(r, XLAC_E_BAD_LITERAL, "a number");
  }
  TRY(store_nan(r, t, to, negative, payload, at));
  r->lx.p = p;
  return 0;
}

/* Rounds v to the type. false when it is out of range: finite, but rounding to no finite value. */
static bool store_real(base_dtype t, void *to, double v) {
  bool finite = __builtin_isfinite(v);
  if (t == XLAC_F64) {
    memcpy(to, &v, 8);
    return true;
  }
  if (t == XLAC_F32) {
    float f = (float)v;
    memcpy(to, &f, 4);
    return !finite || __builtin_isfinite(f);
  }
  uint32_t bits = base_float_from_f64(t, v);
  memcpy(to, &bits, base_dtype_bytes(t));
  return !finite || __builtin_isfinite(base_float_to_f64(t, bits));
}

/* XLA reads what looks like an integer as one of 64 bits, also where a float is wanted. Such a number is out of
 * range there, and must be here; written with a dot or an exponent it would be fine. */
static bool is_long_integer(const char *p, const char *e) {
  int64_t i;
  uint64_t u;
  for (const char *d = p; d < e; d++)
    if (!text_is(*d, TEXT_DIGIT) && !(d == p && *d == '-')) return false;
  return *p == '-' ? base_parse_i64(p, e, &i) != e : base_parse_u64(p, e, &u) != e;
}

/* A finite number that rounds to an infinity is refused; "inf" itself is taken, also by types without infinities,
 * which store what the conversion gives. */
static int read_real(text_reader *r, base_dtype t, void *to) {
  const char *p = r->lx.p;
  bool negative = *p == '-';
  if (p[negative] == 'n' && memcmp(p + negative, "nan", 3) == 0) {
    r->lx.p = p + negative;
    return read_nan(r, t, to, negative, p);
  }
  if (p[negative] == 'i' && memcmp(p + negative, "inf", 3) == 0 && !text_is(p[negative + 3], TEXT_NAME)) {
    r->lx.p = p + negative + 3;
    store_real(t, to, negative ? -__builtin_inf() : __builtin_inf());
    return 0;
  }
  double v;
  const char *e = base_parse_f64(p, r->lx.end, &v);
  if (!e || text_is(*e, TEXT_ALPHA)) return text_expected(r, XLAC_E_BAD_LITERAL, "a number");
  if (e - p > 19 && is_long_integer(p, e)) return out_of_range(r, p, e, t);
  if (__builtin_isinf(v) || !store_real(t, to, v)) return out_of_range(r, p, e, t);
  r->lx.p = e;
  return 0;
}

/* As XLA does: where the real part is a NaN the imaginary part becomes the same one. text_parse_options.halves keeps
 * both halves as written, which programs serialized by xlac need. */
static void spread_nan(base_dtype part, uint8_t *to) {
  size_t size = base_dtype_bytes(part);
  if (__builtin_isnan(base_load_f64(part, to))) memcpy(to + size, to, size);
}

/* (1, -2): a real and an imaginary part. */
static int read_complex(text_reader *r, base_dtype t, uint8_t *to) {
  base_dtype part = base_dtype_real_part(t);
  TRY(text_want(r, '(', "before the real part of a complex number"));
  TRY(read_real(r, part, to));
  text_skip(&r->lx);
  TRY(text_want(r, ',', "after the real part of a complex number"));
  TRY(read_real(r, part, to + base_dtype_bytes(part)));
  text_skip(&r->lx);
  if (*r->lx.p != ')') return text_expected(r, XLAC_E_BAD_LITERAL, "')' after a complex number");
  if (!r->halves) spread_nan(part, to);
  r->lx.p++;
  return 0;
}

/* true and false; pred literals may also be 1 and 0. */
static int read_truth(text_reader *r, array_state *s, void *to) {
  bool v;
  if (s->dtype != XLAC_PRED)
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "true and false are values of pred, not of %s",
                     base_dtype_of(s->dtype)->text);
  TRY(text_read_bool(r, &v));
  *(uint8_t *)to = v;
  return 0;
}

/* One value; no blanks skipped after it. */
static int read_value(text_reader *r, array_state *s, void *to) {
  switch (base_dtype_of(s->dtype)->kind) {
    case BASE_KIND_FLOAT:
      return *r->lx.p == 't' || *r->lx.p == 'f' ? read_truth(r, s, to) : read_real(r, s->dtype, to);
    case BASE_KIND_COMPLEX:
      return read_complex(r, s->dtype, to);
    default:
      return *r->lx.p == 't' || *r->lx.p == 'f' ? read_truth(r, s, to) : read_integer(r, s, to);
  }
}

/* --- arrays --- */

/* Every value takes at least two bytes of text, so a larger array can't be spelled out by what is left. A flat
 * literal is zeros for the most part, which the text does not spell out: those are charged to the budget. */
static int allocate_array(text_reader *r, array_state *s, bool flat) {
  assert(!s->data && s->type->count >= 0);
  size_t bytes = (size_t)ir_type_bytes(s->type);
  if (flat) {
    TRY(text_charge(r, s->at, bytes));
  } else if ((uint64_t)s->type->count > (uint64_t)(r->lx.end - r->lx.p)) {
    return text_fail(r, s->at, XLAC_E_BAD_LITERAL,
                     "a literal of %lld elements, but the rest of the text is too short for them",
                     (long long)s->type->count);
  }
  s->data = base_arena_aligned(&r->m->arena, bytes ? bytes : 1, 16);
  if (!s->data) return text_no_memory(r);
  if (flat) memset(s->data, 0, bytes);
  return 0;
}

/* Counts the value in the innermost brace, then reads it to the next place; row-major order is the order of the
 * text. */
static int store_next(text_reader *r, array_state *s) {
  uint32_t rank = s->type->rank;
  if (!text_is(*r->lx.p, TEXT_NAME) && *r->lx.p != '(') return text_expected(r, XLAC_E_BAD_LITERAL, "a value");
  if (s->level != rank)
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "a value stands %u braces deep, but the shape has %u dimensions",
                     s->level, rank);
  if (rank && ++s->seen[rank - 1] > s->type->dims[rank - 1])
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "more than %lld values in a row of a literal",
                     (long long)s->type->dims[rank - 1]);
  if (!s->data) TRY(allocate_array(r, s, false));
  assert(s->stored < s->type->count);
  TRY(read_value(r, s, s->data + (size_t)s->stored * s->size));
  s->stored++;
  return 0;
}

/* Counts subarrays in the dimension that it closes over. */
static int open_brace(text_reader *r, array_state *s) {
  const ir_type *t = s->type;
  assert(s->level <= t->rank);
  if (s->level == t->rank)
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "braces are nested deeper than the %u dimensions of the shape",
                     t->rank);
  if (s->level > 0 && ++s->seen[s->level - 1] > t->dims[s->level - 1])
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "more than %lld subarrays in dimension %u of a literal",
                     (long long)t->dims[s->level - 1], s->level - 1);
  s->seen[s->level++] = 0;
  return 0;
}

/* Every brace must have exactly as many elements as its dimension. */
static int close_brace(text_reader *r, array_state *s) {
  assert(s->level > 0);
  int64_t want = s->type->dims[--s->level], got = s->seen[s->level];
  if (got != want)
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "expected %lld elements in dimension %u of a literal, found %lld",
                     (long long)want, s->level, (long long)got);
  return 0;
}

/* "...": the values are not known. {...} stands for the whole literal only; its dimension counts as full so that the
 * closing brace is content. */
static int elide(text_reader *r, array_state *s) {
  if (memcmp(r->lx.p, "...", 3) != 0) return text_expected(r, XLAC_E_BAD_LITERAL, "a value");
  if (s->level != 1) return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "... stands for values only as {...}");
  s->elided = true;
  s->seen[0] = s->type->dims[0];
  r->lx.p += 3;
  return 0;
}

/* What stands between the outermost braces, them included. */
static int read_nested(text_reader *r, array_state *s) {
  do {
    switch (*r->lx.p) {
      case '{':
        TRY(open_brace(r, s));
        r->lx.p++;
        break;
      case '}':
        TRY(close_brace(r, s));
        r->lx.p++;
        break;
      case ',':
        r->lx.p++;
        break;
      case '.':
        TRY(elide(r, s));
        break;
      default:
        TRY(store_next(r, s));
    }
    text_skip(&r->lx);
  } while (s->level > 0);
  return 0;
}

/* A value without braces for an array: XLA takes it as the first element and zeros for the rest.
 *   f32[3] constant(7)   is   {7, 0, 0} */
static int read_flat(text_reader *r, array_state *s) {
  if (*r->lx.p == '.') return elide(r, s);
  if (*r->lx.p == '}' || *r->lx.p == ',' || *r->lx.p == ')' || !*r->lx.p)
    return text_expected(r, XLAC_E_BAD_LITERAL, "a value");
  if (s->type->count == 0)
    return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "a value for an array that has no elements");
  TRY(allocate_array(r, s, s->type->rank > 0));
  TRY(read_value(r, s, s->data));
  text_skip(&r->lx);
  return 0;
}

/* A proto may leave out a scalar's value, and then {...} is what there is to print; XLA does not read that. */
static bool is_elided_scalar(text_reader *r) {
  static const char *const parts[] = {"{", "...", "}"};
  const char *from = r->lx.p;
  bool is = !r->strict;
  for (size_t i = 0; is && i < sizeof parts / sizeof *parts; i++) {
    size_t n = strlen(parts[i]);
    is = strncmp(r->lx.p, parts[i], n) == 0;
    if (is) r->lx.p += n;
    if (is) text_skip(&r->lx);
  }
  if (!is) r->lx.p = from;
  return is;
}

/* `data` stays NULL for an elided literal; whoever needs the values has to refuse it. */
static int read_array(text_reader *r, const ir_type *type, const ir_literal **out) {
  if (!ir_is_tensor(type)) return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "only arrays and tuples have values");
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->dims[i] == IR_UNBOUNDED)
      return text_fail(r, r->lx.p, XLAC_E_BAD_LITERAL, "a literal needs the size of every dimension");
  array_state s = {
      .type = type, .dtype = (base_dtype)type->dtype, .size = base_dtype_bytes(type->dtype), .at = r->lx.p};
  if (type->rank == 0 && is_elided_scalar(r)) {
    s.elided = true;
  } else if (*r->lx.p == '{') {
    TRY(read_nested(r, &s));
  } else {
    TRY(read_flat(r, &s));
  }
  if (s.elided && s.data) TRY(text_charge(r, s.at, (size_t)ir_type_bytes(type)));
  assert(s.elided || s.level == 0);
  ir_literal *l = BASE_NEW(&r->m->arena, ir_literal);
  if (!l) return text_no_memory(r);
  *l = (ir_literal){.type = type, .data = s.elided ? NULL : s.data, .elided = s.elided};
  *out = l;
  return 0;
}

/* The type of a literal of type t: it has all its elements, and XLA does not pack them. Element sizes in layouts
 * (E(4)) say how a buffer is packed; a literal has one element a byte at least. */
static const ir_type *literal_type(ir_module *m, const ir_type *t) {
  if (!ir_is_tensor(t) || (!t->has_dynamic && t->layout->element_bits == 0)) return t;
  ir_layout layout = *t->layout;
  layout.element_bits = 0;
  const ir_layout *plain = ir_layout_intern(m, &layout);
  return plain ? ir_tensor(m, t->dtype, t->rank, t->dims, NULL, plain, NULL) : NULL;
}

/* The literals on the stack from `first` on as one of tuple type; the tuple's type is made of theirs. */
static int finish_tuple(text_reader *r, uint32_t first, const ir_literal **out) {
  assert(r->literals.n >= first);
  uint32_t n = r->literals.n - first, first_type = r->types.n;
  for (uint32_t i = 0; i < n; i++)
    if (!BASE_VEC_PUSH(r->alloc, &r->types, r->literals.items[first + i]->type)) return text_no_memory(r);
  const ir_type *type = ir_tuple(r->m, n, r->types.items + first_type);
  r->types.n = first_type;
  r->literals.n = first;
  *out = type ? ir_literal_tuple(r->m, type, r->literals.items ? r->literals.items + first : NULL) : NULL;
  return *out ? 0 : text_no_memory(r);
}

/* Parts of a tuple literal, until it is complete. */
static int push_literal(text_reader *r, const ir_literal *l) {
  return BASE_VEC_PUSH(r->alloc, &r->literals, l) ? 0 : text_no_memory(r);
}

/* Commas between elements may be missing: XLA's parser takes that. */
static int read_tuple_literal(text_reader *r, const ir_type *type, const ir_literal **out) {
  uint32_t first = r->literals.n;
  TRY(text_deeper(r));
  TRY(text_want(r, '(', "before the elements of a tuple literal"));
  for (uint32_t i = 0; *r->lx.p != ')' && i < type->n_elements; i++) {
    const ir_literal *l;
    TRY(text_read_literal(r, type->elements[i], &l));
    TRY(push_literal(r, l));
    if (i + 1 < type->n_elements) text_eat(&r->lx, ',');
  }
  if (*r->lx.p != ')' || r->literals.n - first != type->n_elements) {
    char what[80];
    snprintf(what, sizeof what, "a tuple literal of %u elements", type->n_elements);
    return text_expected(r, XLAC_E_BAD_LITERAL, what);
  }
  text_eat(&r->lx, ')');
  r->depth--;
  return finish_tuple(r, first, out);
}

/*   {1, 2}      ({1, 2}, 3) of a tuple */
int text_read_literal(text_reader *r, const ir_type *type, const ir_literal **out) {
  if (ir_is_tuple(type)) return read_tuple_literal(r, type, out);
  const ir_type *whole = literal_type(r->m, type);
  return whole ? read_array(r, whole, out) : text_no_memory(r);
}

/* The type stands in front of each element of a tuple, not of the tuple itself. */
int text_read_typed_literal(text_reader *r, const ir_literal **out) {
  const ir_type *type;
  if (*r->lx.p != '(') {
    TRY(text_read_type(r, &type));
    return text_read_literal(r, type, out);
  }
  uint32_t first = r->literals.n;
  TRY(text_deeper(r));
  TRY(text_want(r, '(', "before the elements of a tuple literal"));
  while (*r->lx.p != ')') {
    const ir_literal *l;
    TRY(text_read_typed_literal(r, &l));
    TRY(push_literal(r, l));
    if (!text_eat(&r->lx, ',') && *r->lx.p != ')')
      return text_expected(r, XLAC_E_BAD_LITERAL, "',' or ')' in a tuple literal");
  }
  text_eat(&r->lx, ')');
  r->depth--;
  return finish_tuple(r, first, out);
}
