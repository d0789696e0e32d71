/* Tensor types, and tensors' data, as bytecode holds them.
 *
 * MLIR's data is the raw buffer of a DenseElementsAttr: row-major, little-endian, one byte for elements narrower
 * than that, i1 packed eight to a byte (or one each, from older writers), and a single element for a splat. */
#include "bytecode.h"

/* --- types --- */

/* What a tensor of this element type is made of; false where no tensor can have it. Types that are text here (index)
 * are held as s64. */
static bool bc_element_parts(const ir_type *e, base_dtype *dtype, const ir_quant **quant, const base_istr **text) {
  *quant = NULL;
  *text = NULL;
  if (e->kind == IR_TYPE_ELEMENT) {
    *dtype = (base_dtype)e->dtype;
    *quant = e->quant;
    return true;
  }
  *dtype = XLAC_S64; /* what index is held as */
  *text = e->text;
  return e->kind == IR_TYPE_OTHER;
}

/* bounds<5, ?> as they are written, for types on which they mean nothing. */
static int bc_encoding_text(bc_cursor *c, const ir_mattr *encoding, const base_istr **out) {
  base_text t;
  base_text_init(&t, c->r->m->alloc);
  text_put_mlir_attr(&t, encoding);
  *out = t.failed ? NULL : ir_intern(c->r->m, t.s, t.n);
  base_text_free(&t);
  return *out ? 0 : bc_no_memory(c->r);
}

/* Moves bounds into the dimensions they bound; *any is false where the encoding has none. A dimension has a bound or a
 * size, as StableHLO checks where the type is made. */
static int bc_apply_bounds(bc_cursor *c, const ir_mattr *encoding, uint32_t rank, int64_t *dims, bool *any) {
  assert(rank <= IR_MAX_RANK);
  uint32_t n = 0;
  *any = false;
  if (!encoding || encoding->kind != IR_M_STRUCT || strcmp(encoding->name, "type_extensions") != 0) return 0;
  const int64_t *bounds = ir_m_ints(ir_m_field(encoding, "bounds"), &c->r->scratch, &n);
  if (!bounds) return 0;
  if (n != rank) return BC_BAD(c, "%u bounds for a tensor of rank %u", n, rank);
  for (uint32_t i = 0; i < rank; i++) {
    if (bounds[i] < 0) continue;
    if (dims[i] >= 0) return BC_BAD(c, "dimension %u has a size, so it can't have a bound", i);
    dims[i] = bounds[i];
    *any = true;
  }
  return 0;
}

/* A dimension without a size is IR_UNBOUNDED unless the encoding bounds it. */
int bc_make_tensor(bc_cursor *c, const ir_type *element, uint32_t rank, const int64_t *dims, const ir_mattr *encoding,
                   const ir_type **out) {
  base_dtype dtype;
  const ir_quant *quant;
  const base_istr *text, *encoding_text = NULL;
  bool dynamic[IR_MAX_RANK] = {false};
  int64_t sizes[IR_MAX_RANK] = {0};
  if (rank > IR_MAX_RANK) return bc_fail(c, XLAC_E_TOO_LARGE, "a tensor of rank %u; at most %d", rank, IR_MAX_RANK);
  if (!bc_element_parts(element, &dtype, &quant, &text)) return BC_BAD(c, "a type that no tensor can have");
  for (uint32_t i = 0; i < rank; i++) {
    dynamic[i] = dims[i] < 0;
    sizes[i] = dynamic[i] ? IR_UNBOUNDED : dims[i];
  }
  bool bounded;
  TRY(bc_apply_bounds(c, encoding, rank, sizes, &bounded));
  if (encoding && !bounded) TRY(bc_encoding_text(c, encoding, &encoding_text));
  *out = ir_tensor_mlir(c->r->m, dtype, quant, text, rank, sizes, dynamic, encoding_text, c->r->err);
  return bc_made(c, *out);
}

/*   tensor<*xf32> */
int bc_make_unranked(bc_cursor *c, const ir_type *element, const ir_type **out) {
  base_dtype dtype;
  const ir_quant *quant;
  const base_istr *text;
  if (!bc_element_parts(element, &dtype, &quant, &text)) return BC_BAD(c, "a type that no tensor can have");
  *out = ir_unranked(c->r->m, dtype, quant, text);
  return bc_made(c, *out);
}

/* "complex<element>" and the like, for types that are only text here. */
static int bc_other_of(bc_cursor *c, const char *open, const char *dims, const ir_type *element, const ir_type **out) {
  base_text t;
  base_text_init(&t, c->r->m->alloc);
  base_puts(&t, open);
  base_puts(&t, dims);
  text_put_mlir_type(&t, element);
  base_putc(&t, '>');
  *out = t.failed ? NULL : ir_other_type(c->r->m, t.s, t.n);
  base_text_free(&t);
  return *out ? 0 : bc_no_memory(c->r);
}

/* MLIR has complex numbers of integers and floats; xlac keeps those it doesn't compute with as text. */
static bool bc_is_part(const ir_type *element) {
  if (element->kind == IR_TYPE_OTHER) return strchr("fibu", element->text->s[0]) != NULL;
  bool plain = element->kind == IR_TYPE_ELEMENT && !element->quant;
  return plain && !base_dtype_is_complex((base_dtype)element->dtype);
}

/* Only complex numbers of f32 and f64 are dtypes. */
int bc_make_complex(bc_cursor *c, const ir_type *element, const ir_type **out) {
  bool plain = element->kind == IR_TYPE_ELEMENT && !element->quant;
  base_dtype dtype = BASE_DTYPE_INVALID;
  if (plain && element->dtype == XLAC_F32) dtype = XLAC_C64;
  if (plain && element->dtype == XLAC_F64) dtype = XLAC_C128;
  if (!bc_is_part(element)) return BC_BAD(c, "an element type that complex numbers can't have");
  if (dtype == BASE_DTYPE_INVALID) return bc_other_of(c, "complex<", "", element, out);
  *out = ir_element(c->r->m, dtype, NULL);
  return bc_made(c, *out);
}

/*   memref<2x?xf32>, which xlac keeps as text */
int bc_make_memref(bc_cursor *c, const ir_type *element, uint32_t rank, const int64_t *dims, const ir_type **out) {
  base_text t;
  base_text_init(&t, c->r->m->alloc);
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0) {
      base_putc(&t, '?');
    } else {
      base_put_i64(&t, dims[i]);
    }
    base_putc(&t, 'x');
  }
  const char *text = base_text_cstr(&t);
  int status = text ? bc_other_of(c, "memref<", text, element, out) : bc_no_memory(c->r);
  base_text_free(&t);
  return status;
}

/* --- data --- */

/* The lowest bit of a byte comes first. */
static void bc_spread_bits(uint8_t *to, const uint8_t *from, int64_t n) {
  assert(n >= 0);
  for (int64_t i = 0; i < n; i++) to[i] = from[i / 8] >> (i % 8) & 1;
}

/* Elements narrower than a byte come in one each; here they are sign-extended, or have zeros above. */
static void bc_settle_narrow(base_dtype t, uint8_t *p, int64_t n) {
  assert(p || n == 0);
  unsigned bits = base_dtype_of(t)->bits;
  if (bits >= 8 || t == XLAC_PRED) return;
  bool is_signed = base_dtype_is_signed(t);
  for (int64_t i = 0; i < n; i++) {
    unsigned v = p[i] & ((1u << bits) - 1);
    if (is_signed && v >> (bits - 1)) v |= ~0u << bits;
    p[i] = (uint8_t)v;
  }
}

/* A literal of rank 0 is a splat of the type. */
static int bc_make_dense(bc_cursor *c, const ir_type *type, ir_literal *l, const ir_mattr **out) {
  assert(l->type->count == type->count || l->type->count == 1);
  *out = ir_m_dense(c->r->m, type, l, l->type->rank == 0 && l->type->count == 1);
  return bc_made(c, *out);
}

/* A literal of one element, or of all of them. */
static int bc_new_literal(bc_cursor *c, const ir_type *type, bool one, ir_literal **out) {
  base_dtype dtype = (base_dtype)type->dtype;
  const ir_type *t = ir_tensor(c->r->m, dtype, one ? 0 : type->rank, type->dims, NULL, NULL, c->r->err);
  TRY(bc_made(c, t));
  *out = ir_literal_new(c->r->m, t);
  return bc_made(c, *out);
}

/* MLIR stores elements that are all alike once. */
static bool bc_all_alike(const char *p, size_t n, size_t size) {
  return n <= size || memcmp(p, p + size, n - size) == 0;
}

/* A single byte 0xFF is a splat of true, 0 one of false; eight elements or fewer may also be packed into one byte. */
static int bc_dense_bits(bc_cursor *c, const ir_type *type, base_slice data, const ir_mattr **out) {
  assert(type->dtype == XLAC_PRED && !type->has_dynamic);
  ir_literal *l;
  const uint8_t *p = (const uint8_t *)data.p;
  size_t n = (size_t)type->count;
  bool packed = data.n == (n + 7) / 8 && data.n != n;
  if (n == 1 && data.n == 1) packed = false;
  bool one = n > 0 && data.n == 1 && (*p == 0xFF || *p == 0 || n == 1);
  if (!one && !packed && data.n != n && !(n == 0 && data.n == 1))
    return BC_BAD(c, "a tensor of %zu bits has %zu bytes of data", n, data.n);
  TRY(bc_new_literal(c, type, one, &l));
  if (one) {
    *(uint8_t *)l->data = *p != 0;
  } else if (packed && n > 0) {
    bc_spread_bits(l->data, p, type->count);
  } else {
    for (size_t i = 0; i < n; i++) ((uint8_t *)l->data)[i] = p[i] != 0;
  }
  if (!one && n > 0 && bc_all_alike(l->data, n, 1)) {
    uint8_t v = *(uint8_t *)l->data;
    TRY(bc_new_literal(c, type, true, &l));
    *(uint8_t *)l->data = v;
  }
  return bc_make_dense(c, type, l, out);
}

/* Data of one element may stand for all of them. */
int bc_dense(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  base_slice data = {0};
  TRY(bc_type(c, &type));
  TRY(bc_blob(c, &data));
  if (!ir_is_tensor(type) || type->has_dynamic) return BC_BAD(c, "data of a type that is not a static tensor");
  base_dtype dtype = (base_dtype)type->dtype;
  if (dtype == XLAC_PRED && !type->quant) return bc_dense_bits(c, type, data, out);
  size_t size = base_dtype_bytes(dtype), n = (size_t)type->count, bytes;
  bool fits = base_mul(n, size, &bytes) && (data.n == bytes || data.n == size);
  if (!fits || (type->text && strcmp(type->text->s, "index") != 0))
    return BC_BAD(c, "a tensor of %zu elements of %zu bytes has %zu bytes of data", n, size, data.n);
  bool one = data.n > 0 && bc_all_alike(data.p, data.n, size); /* also of no elements: a splat keeps its value */
  ir_literal *l;
  TRY(bc_new_literal(c, type, one, &l));
  if (data.n > 0) memcpy(l->data, data.p, one ? size : bytes);
  bc_settle_narrow(dtype, l->data, l->type->count);
  return bc_make_dense(c, type, l, out);
}

/* As many elements as it says, never a splat. */
int bc_dense_array(bc_cursor *c, const ir_type *element, int64_t n, base_slice data, const ir_mattr **out) {
  if (element->kind != IR_TYPE_ELEMENT || element->quant) return BC_BAD(c, "an array of no plain element type");
  base_dtype dtype = (base_dtype)element->dtype;
  size_t bytes;
  if (n < 0 || !base_mul((size_t)n, base_dtype_bytes(dtype), &bytes) || bytes != data.n)
    return BC_BAD(c, "an array of %lld elements has %zu bytes of data", (long long)n, data.n);
  const ir_type *type = ir_tensor(c->r->m, dtype, 1, &n, NULL, NULL, c->r->err);
  TRY(bc_made(c, type));
  ir_literal *l = ir_literal_new(c->r->m, type);
  ir_mattr *a = BASE_NEW(&c->r->m->arena, ir_mattr);
  if (!l || !a) return bc_no_memory(c->r);
  if (bytes) memcpy(l->data, data.p, bytes);
  if (dtype == XLAC_PRED)
    for (int64_t i = 0; i < n; i++) ((uint8_t *)l->data)[i] = ((uint8_t *)l->data)[i] != 0;
  bc_settle_narrow(dtype, l->data, n);
  *a = (ir_mattr){.kind = IR_M_DENSE_ARRAY, .type = element, .v = {.literal = l}};
  *out = a;
  return 0;
}

/* --- numbers with a type --- */

/* The width of an integer that is text here (index, si8, i17), or 0. */
static unsigned bc_text_width(const base_istr *text) {
  const char *s = text->s;
  if (strcmp(s, "index") == 0) return 64;
  if (*s == 's' || *s == 'u') s++;
  if (*s++ != 'i') return 0;
  unsigned v = 0;
  for (; *s >= '0' && *s <= '9' && v < 1 << 24; s++) v = v * 10 + (unsigned)(*s - '0');
  return *s ? 0 : v;
}

/* The value in the type's width, sign-extended for signed types. */
int bc_integer(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  uint64_t bits = 0;
  TRY(bc_type(c, &type));
  unsigned width = type->kind == IR_TYPE_OTHER ? bc_text_width(type->text) : 0;
  bool is_signed = true;
  if (type->kind == IR_TYPE_ELEMENT && !type->quant) {
    base_dtype t = (base_dtype)type->dtype;
    if (base_dtype_is_integer(t) || t == XLAC_PRED) width = base_dtype_of(t)->bits;
    is_signed = base_dtype_is_signed(t);
  }
  if (width == 0) return BC_BAD(c, "an integer of no integer type");
  TRY(bc_int_bits(c, width, &bits));
  if (type->kind == IR_TYPE_ELEMENT && type->dtype == XLAC_PRED) {
    *out = ir_m_bool(c->r->m, bits != 0);
    return bc_made(c, *out);
  }
  if (is_signed && width < 64 && bits >> (width - 1)) bits |= ~UINT64_C(0) << width;
  *out = ir_m_int(c->r->m, type, (int64_t)bits);
  return bc_made(c, *out);
}

/* The bits are kept, so that NaN payloads survive. */
int bc_float_bits(bc_cursor *c, const ir_type *type, const ir_mattr **out) {
  bool tf32 = type->kind == IR_TYPE_OTHER && strcmp(type->text->s, "tf32") == 0;
  bool plain = type->kind == IR_TYPE_ELEMENT && !type->quant && base_dtype_is_float((base_dtype)type->dtype);
  uint64_t bits = 0;
  if (!tf32 && !plain) return BC_BAD(c, "a float of no float type that xlac has");
  TRY(bc_int_bits(c, tf32 ? 19 : base_dtype_of((base_dtype)type->dtype)->bits, &bits));
  uint32_t wide = (uint32_t)bits << 13; /* tf32 is an f32 without its low bits */
  double v = tf32 ? base_load_f64(XLAC_F32, &wide) : base_load_f64((base_dtype)type->dtype, &bits);
  ir_mattr *a = BASE_NEW(&c->r->m->arena, ir_mattr);
  if (!a) return bc_no_memory(c->r);
  *a = (ir_mattr){.kind = IR_M_FLOAT, .type = type, .bits = bits, .v = {.f = v}};
  *out = a;
  return 0;
}

/* A type, then the number's bits. */
int bc_float(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  TRY(bc_type(c, &type));
  return bc_float_bits(c, type, out);
}
