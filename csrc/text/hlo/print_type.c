/* Prints types and literals.
 *
 *   f32[2,<=3]{1,0:T(8,128)S(1)}   (f32[], s32[2])   s32[2] {1, 2}   f32[2,2] { { 1, 2 }, { 3, 4 } }
 * A module names few types many times: text_write_type copies the text that it wrote for the same type before. */
#include "print.h"
#include "../../base/number/narrow_float.h"
#include "../../base/number/number.h"

/* Deeper types come from nobody's text; the printer fails rather than overflow its stack. */
enum { MAX_TYPE_DEPTH = 4096, COMMENT_EVERY = 5 };

static void print_type_at(base_text *out, const ir_type *t, bool layouts, unsigned depth);

void text_put_index_comment(base_text *out, uint32_t i) {
  if (i == 0 || i % COMMENT_EVERY != 0) return;
  BASE_PUT(out, "/*index=");
  base_put_u64(out, i);
  BASE_PUT(out, "*/");
}

/* Most numbers in types are short. */
static void put_type_dim(base_text *out, int64_t v) {
  if (v >= 0 && v < 10)
    base_putc(out, (char)('0' + v));
  else
    base_put_i64(out, v);
}

/*   T(8,128)(2,1) */
static void put_layout_tiles(base_text *out, const ir_layout *l) {
  if (l->n_tiles == 0) return;
  base_putc(out, 'T');
  for (uint32_t i = 0; i < l->n_tiles; i++) {
    const ir_tile *tile = &l->tiles[i];
    base_putc(out, '(');
    for (uint32_t d = 0; d < tile->rank; d++) {
      if (d) base_putc(out, ',');
      if (tile->dims[d] == IR_TILE_COMBINE)
        base_putc(out, '*');
      else
        put_type_dim(out, tile->dims[d]);
    }
    base_putc(out, ')');
  }
}

/*   S(1) */
static void put_number_suffix(base_text *out, const char *tag, int64_t v, int64_t otherwise) {
  if (v == otherwise) return;
  base_puts(out, tag);
  base_putc(out, '(');
  base_put_i64(out, v);
  base_putc(out, ')');
}

/*   #(s32)      the type of pointers or of indices in a layout */
static void put_dtype_suffix(base_text *out, char tag, base_dtype t) {
  if (t == BASE_DTYPE_INVALID) return;
  base_putc(out, tag);
  base_putc(out, '(');
  base_puts(out, base_dtype_of(t)->text);
  base_putc(out, ')');
}

/*   SC(0:4)(1:2,3) */
static void put_layout_splits(base_text *out, const ir_layout *l) {
  if (l->n_splits == 0) return;
  BASE_PUT(out, "SC");
  for (uint32_t i = 0; i < l->n_splits; i++) {
    base_putc(out, '(');
    put_type_dim(out, l->splits[i].dimension);
    base_putc(out, ':');
    text_put_ints(out, l->splits[i].indices, l->splits[i].n);
    base_putc(out, ')');
  }
}

/* Sparse levels, D(...), are not shown: XLA reads them for old texts' sake and drops them. */
static void put_layout_suffixes(base_text *out, const ir_layout *l, unsigned depth) {
  put_layout_tiles(out, l);
  put_number_suffix(out, "L", l->tail_padding, 1);
  put_dtype_suffix(out, '#', l->index_type);
  put_dtype_suffix(out, '*', l->pointer_type);
  put_number_suffix(out, "E", l->element_bits, 0);
  put_number_suffix(out, "S", l->memory_space, 0);
  put_layout_splits(out, l);
  if (l->physical) {
    BASE_PUT(out, "P(");
    print_type_at(out, l->physical, true, depth + 1);
    base_putc(out, ')');
  }
  put_number_suffix(out, "M", l->metadata_prefix_bytes, 0);
}

/* A scalar's layout shows only when it says something. */
static void put_type_layout(base_text *out, const ir_layout *l, unsigned depth) {
  size_t start = out->n;
  base_putc(out, '{');
  for (uint32_t i = 0; i < l->rank; i++) {
    if (i) base_putc(out, ',');
    put_type_dim(out, l->minor_to_major[i]);
  }
  size_t colon = out->n;
  base_putc(out, ':');
  size_t suffixes = out->n;
  put_layout_suffixes(out, l, depth);
  if (out->n == suffixes) out->n = colon;
  if (l->rank == 0 && out->n == colon)
    out->n = start;
  else
    base_putc(out, '}');
}

/* "<=" marks dimensions whose size is known only when the program runs, "?" those without a bound. */
static void put_tensor_type(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  base_puts(out, base_dtype_of((base_dtype)t->dtype)->text);
  base_putc(out, '[');
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d) base_putc(out, ',');
    if (t->dims[d] == IR_UNBOUNDED) {
      base_putc(out, '?');
      continue;
    }
    if (ir_dim_is_dynamic(t, d)) BASE_PUT(out, "<=");
    put_type_dim(out, t->dims[d]);
  }
  base_putc(out, ']');
  if (layouts && t->layout) put_type_layout(out, t->layout, depth);
}

/*   (f32[2], s32[]) */
static void put_type_elements(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  base_putc(out, '(');
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i) BASE_PUT(out, ", ");
    text_put_index_comment(out, i);
    print_type_at(out, t->elements[i], layouts, depth + 1);
  }
  base_putc(out, ')');
}

/* Too deep a nesting fails the text: no reader gives one. */
static void print_type_at(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  assert(t);
  if (depth > MAX_TYPE_DEPTH) {
    out->failed = true;
    return;
  }
  switch (t->kind) {
    case IR_TYPE_TENSOR:
      put_tensor_type(out, t, layouts, depth);
      return;
    case IR_TYPE_TUPLE:
      put_type_elements(out, t, layouts, depth);
      return;
    case IR_TYPE_TOKEN:
      BASE_PUT(out, "token[]");
      return;
    case IR_TYPE_OPAQUE:
      BASE_PUT(out, "opaque[]");
      return;
    case IR_TYPE_BUFFER:
      BASE_PUT(out, "b(");
      print_type_at(out, t->inner, layouts, depth + 1);
      base_putc(out, ')');
      return;
    case IR_TYPE_FUTURE:
      BASE_PUT(out, "future");
      put_type_elements(out, t, layouts, depth);
      return;
    default: /* what HLO does not have and only compiled programs hold: as MLIR writes it, for people to read */
      ir_put_type(out, t, false);
  }
}

/* The one that all others use; text_write_type remembers what it printed. */
void text_put_type(base_text *out, const ir_type *t, bool layouts) {
  print_type_at(out, t, layouts, 0);
}

/* Copies a part of the text itself, which may move while it grows. Growing first and taking addresses afterwards
 * keeps both valid. */
static void repeat_text(base_text *out, size_t at, size_t n) {
  assert(at + n <= out->n);
  if (out->cap - out->n < n && !base_text_grow(out, n)) return;
  memcpy(out->s + out->n, out->s + at, n);
  out->n += n;
}

/* An entry of type_places is the place of the text in 40 bits and its length in 24. */
void text_write_type(text_printer *p, const ir_type *t) {
  base_text *out = p->out;
  uint64_t place;
  if (base_map_get(&p->type_places, base_key(t), &place)) {
    repeat_text(out, (size_t)(place >> 24), (size_t)(place & 0xFFFFFF));
    return;
  }
  size_t at = out->n;
  print_type_at(out, t, true, 0);
  size_t n = out->n - at;
  /* Only a cache: what does not fit, for want of memory too, is printed again. */
  if (n <= 0xFFFFFF && !out->failed && at < (uint64_t)1 << 40)
    (void)base_map_set(&p->type_places, base_key(t), (uint64_t)at << 24 | n);
}

/* ---- Prints literals: scalars bare, rank 1 tight, rank 2 and up with blanks, rank 4 and up with index comments. */

/* Empty arrays print a pair of braces for every outer index; more than MAX_EMPTY_BRACES of them are elided. */
enum { MAX_SMALL = 10, MAX_LITERAL_DEPTH = 64, MAX_EMPTY_BRACES = 1 << 24, COMMENT_RANK = 4 };

/* Where the printer of a literal is. */
typedef struct literal_cursor {
  base_text *out;
  const ir_type *type;
  const char *at; /* the next element: they are stored in the order they print */
  size_t step;
  bool exact;
} literal_cursor;

/* An element's bytes as a number. */
static uint64_t load_bits(const char *p, size_t bytes) {
  uint64_t bits = 0;
  assert(bytes <= sizeof bits);
  memcpy(&bits, p, bytes); /* little-endian hosts only, as everywhere */
  return bits;
}

/* XLA's digits, which read back as the same bits but for the least f8e8m0fnu: a float without a mantissa is a power of
 * two, of which XLA prints two digits, and 2^-127 as 5.9e-39 reads as 2^-126. Where the bits count, f32's digits. */
static void put_float_bits(base_text *out, base_dtype t, const char *p, bool exact) {
  char text[32];
  uint64_t bits = load_bits(p, base_dtype_bytes(t));
  double v = exact && base_dtype_of(t)->mantissa_bits == 0 ? base_float_to_f64(t, (uint32_t)bits) : 0;
  bool power = v > 0; /* NaN is none */
  base_put(out, text,
           power ? base_print_float(XLAC_F32, base_f32_bits((float)v), text) : base_print_float(t, bits, text));
}

/* pred prints as a word where it is a scalar, as 0 or 1 in arrays. */
static void put_literal_element(base_text *out, base_dtype t, const char *p, bool is_scalar, bool exact) {
  switch (base_dtype_of(t)->kind) {
    case BASE_KIND_PRED:
      if (!is_scalar)
        base_putc(out, *p ? '1' : '0');
      else
        base_puts(out, *p ? "true" : "false");
      return;
    case BASE_KIND_SINT:
      base_put_i64(out, base_load_i64(t, p));
      return;
    case BASE_KIND_UINT:
      base_put_u64(out, (uint64_t)base_load_i64(t, p));
      return;
    case BASE_KIND_FLOAT:
      put_float_bits(out, t, p, exact);
      return;
    default:
      break;
  }
  base_dtype part = base_dtype_real_part(t);
  base_putc(out, '(');
  put_float_bits(out, part, p, exact);
  BASE_PUT(out, ", ");
  put_float_bits(out, part, p + base_dtype_bytes(part), exact);
  base_putc(out, ')');
}

/* n elements from the cursor on. */
static void put_literal_row(literal_cursor *c, int64_t n) {
  assert(n >= 0 && (n == 0 || c->at));
  for (int64_t i = 0; i < n; i++) {
    if (i) BASE_PUT(c->out, ", ");
    put_literal_element(c->out, (base_dtype)c->type->dtype, c->at, false, c->exact);
    c->at += c->step;
  }
}

/* The innermost dimension of a matrix and up: { 1, 2 }, but {1} and {} tight. */
static void put_inner_row(literal_cursor *c, int64_t n) {
  if (n > 1)
    BASE_PUT(c->out, "{ ");
  else
    base_putc(c->out, '{');
  put_literal_row(c, n);
  if (n > 1)
    BASE_PUT(c->out, " }");
  else
    base_putc(c->out, '}');
}

/* From rank 4 on a comment says which index of the dimension around begins here. */
static void put_outer_open(literal_cursor *c, uint32_t d, int64_t index) {
  base_putc(c->out, '{');
  if (c->type->rank >= COMMENT_RANK && d > 0) {
    BASE_PUT(c->out, " /*i");
    base_put_u64(c->out, d - 1);
    base_putc(c->out, '=');
    base_put_i64(c->out, index);
    BASE_PUT(c->out, "*/");
    if (c->type->dims[d] == 0) return;
  }
  base_putc(c->out, ' ');
}

/* Dimension d, which is element `index` of the dimension before. */
static void put_literal_dims(literal_cursor *c, uint32_t d, int64_t index) {
  assert(d < c->type->rank && c->type->rank <= IR_MAX_RANK);
  int64_t n = c->type->dims[d];
  if (d + 1 == c->type->rank) {
    put_inner_row(c, n);
    return;
  }
  put_outer_open(c, d, index);
  for (int64_t i = 0; i < n; i++) {
    if (i) BASE_PUT(c->out, ", ");
    put_literal_dims(c, d + 1, i);
  }
  BASE_PUT(c->out, " }");
}

/* f32[16777217,0] has no elements, and would still print sixteen million pairs of braces. */
static bool has_too_many_braces(const ir_type *t) {
  int64_t braces = 1;
  if (t->count != 0) return false;
  for (uint32_t d = 0; d < t->rank && t->dims[d] != 0; d++) {
    if (!base_mul_i64(braces, t->dims[d], &braces) || braces > MAX_EMPTY_BRACES) return true;
  }
  return false;
}

/*   {1, 2}      { { 1, 2 }, { 3, 4 } }      5 */
static void put_array(base_text *out, const ir_literal *l, bool exact) {
  const ir_type *t = l->type;
  literal_cursor c = {out, t, l->data, base_dtype_bytes((base_dtype)t->dtype), exact};
  if (has_too_many_braces(t) || (t->count > 0 && !l->data)) {
    BASE_PUT(out, "{...}");
  } else if (t->rank == 0) {
    put_literal_element(out, (base_dtype)t->dtype, c.at, true, exact);
  } else if (t->rank == 1) {
    base_putc(out, '{');
    put_literal_row(&c, t->dims[0]);
    base_putc(out, '}');
  } else {
    put_literal_dims(&c, 0, 0);
  }
}

/* Tuples print as ( a, b ); what is elided as {...}, which the reader takes. */
static void put_literal_at(base_text *out, const ir_literal *l, bool exact, unsigned depth) {
  if (l->elided || depth > MAX_LITERAL_DEPTH) {
    BASE_PUT(out, "{...}");
  } else if (ir_is_tensor(l->type)) {
    put_array(out, l, exact);
  } else {
    BASE_PUT(out, "( ");
    for (uint32_t i = 0; i < l->type->n_elements; i++) {
      if (i) BASE_PUT(out, ", ");
      put_literal_at(out, l->elements[i], exact, depth + 1);
    }
    BASE_PUT(out, " )");
  }
}

void text_put_literal(base_text *out, const ir_literal *l, bool exact) {
  put_literal_at(out, l, exact, 0);
}

/* Those that are printed even where large constants are elided. */
bool text_literal_is_small(const ir_literal *l) {
  return ir_is_tensor(l->type) && l->type->count <= MAX_SMALL;
}

/* Bit for bit, so that -0 is not 0. */
static bool is_all(const ir_literal *l, int64_t value) {
  if (!ir_is_tensor(l->type) || l->elided) return false;
  char want[16] = {0};
  const char *at = l->data;
  size_t bytes = base_dtype_bytes((base_dtype)l->type->dtype);
  assert(bytes <= sizeof want);
  base_store_i64((base_dtype)l->type->dtype, want, value);
  if (base_load_i64((base_dtype)l->type->dtype, want) != value) return false; /* s1 has no 1 */
  for (int64_t i = 0; i < l->type->count; i++) {
    if (memcmp(at + (size_t)i * bytes, want, bytes) != 0) return false;
  }
  return true;
}

/* pred does not count as an integer here. */
static bool has_only_integers(const ir_type *t, unsigned depth) {
  if (ir_is_tensor(t)) return base_dtype_is_integer((base_dtype)t->dtype);
  if (depth > MAX_LITERAL_DEPTH) return false;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (!has_only_integers(t->elements[i], depth + 1)) return false;
  }
  return true;
}

/* Fingerprints tell 0, 1 and integers apart, and take all other constants as equal: HloPrintOptions::Fingerprint. */
void text_put_essential_literal(base_text *out, const ir_literal *l) {
  if (is_all(l, 0))
    base_putc(out, '0');
  else if (is_all(l, 1))
    base_putc(out, '1');
  else if (has_only_integers(l->type, 0))
    put_literal_at(out, l, false, 0);
  else
    BASE_PUT(out, "{...}");
}
