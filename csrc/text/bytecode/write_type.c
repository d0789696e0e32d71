/* Types to bytecode: VHLO's for values, MLIR's own for the attributes of the module and for ops of sdy.
 *
 * Types that are made here on the stack (elements of tensors, parts of complex numbers) serve only for their marks. */
#include "../../ir/types/type_table.h"
#include "write.h"

/* `builtin`: as MLIR's own type; else as VHLO's. */
int bc_mark_type(bc_writer *w, bool builtin, const ir_type *t) {
  uint32_t type = 0;
  TRY(bc_add_type(w, builtin, t, &type));
  bc_mark(w, BC_MARK_TYPE, type);
  return 0;
}

/* An error where the version asked for is older than `first`. */
static int bc_needs(bc_writer *w, unsigned first, const char *what) {
  if (w->version >= first) return 0;
  return bc_cant_write(w, "StableHLO %s has no %s; it came with %u.%u", w->version_text, what, first / 1000,
                       first % 1000);
}

/* sdy.mesh<...>, !sdy.x: the text of an attribute or type, under its dialect. */
int bc_add_foreign(bc_writer *w, bc_pool *pool, const char *text, size_t n, uint32_t *out) {
  const char *dot = n ? memchr(text, '.', n) : NULL;
  uint32_t dialect = 0;
  if (!dot || n < 2) return bc_cant_write(w, "%.*s has no form in bytecode", n < 80 ? (int)n : 80, text);
  TRY(bc_pool_dialect(w, text + 1, (size_t)(dot - text) - 1, &dialect));
  const base_istr *copy = base_intern(&w->keys, text, n);
  if (!copy) return bc_write_memory(w);
  size_t from = w->marks.n;
  bc_mark_data(w, BC_MARK_TEXT, copy->s, n, 0);
  return bc_pool_add(w, pool, dialect, false, from, out);
}

/* --- elements --- */

/* Width and signedness of integers are one number. */
static void bc_mark_builtin_scalar(bc_writer *w, base_dtype t) {
  unsigned code = bc_float_code(t);
  if (code) {
    bc_mark(w, BC_MARK_VARINT, code);
    return;
  }
  bool is_unsigned = base_dtype_is_unsigned(t);
  bc_mark(w, BC_MARK_VARINT, BC_BT_INTEGER);
  bc_mark(w, BC_MARK_VARINT, (uint64_t)base_dtype_of(t)->bits << 2 | (is_unsigned ? 2 : 0));
}

/* Complex numbers are a type of their parts. */
static int bc_mark_scalar(bc_writer *w, bool builtin, base_dtype t) {
  if (base_dtype_is_complex(t)) {
    const ir_type part = {.kind = IR_TYPE_ELEMENT, .dtype = (uint8_t)base_dtype_real_part(t)};
    bc_mark(w, BC_MARK_VARINT, builtin ? BC_BT_COMPLEX : BC_VT_COMPLEX);
    return bc_mark_type(w, builtin, &part);
  }
  if (builtin) return bc_mark_builtin_scalar(w, t), 0;
  unsigned since = bc_scalar_since(t);
  if (!since) return bc_cant_write(w, "StableHLO has no type %s", base_dtype_of(t)->text);
  TRY(bc_needs(w, since, base_dtype_of(t)->text));
  bc_mark(w, BC_MARK_VARINT, base_dtype_of(t)->vhlo);
  return 0;
}

/* The bits of a double, as a number. */
static uint64_t bc_f64_bits(double v) {
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

/* The sign of the storage type stands in a flag too. */
static int bc_mark_quant(bc_writer *w, const ir_quant *q) {
  assert(q->n > 0 || q->axis >= 0); /* none along a dimension of size 0 */
  const ir_type storage = {.kind = IR_TYPE_ELEMENT, .dtype = q->storage};
  const ir_type expressed = {.kind = IR_TYPE_ELEMENT, .dtype = q->expressed};
  int64_t low = q->storage_min, high = q->storage_max;
  if (q->axis == -2) return bc_cant_write(w, "VHLO has no types that are quantised by blocks");
  if (q->axis >= 0) TRY(bc_needs(w, BC_V(0, 18), "types quantised per axis"));
  if (!q->has_range && base_dtype_of((base_dtype)q->storage)->bits > 32)
    return bc_cant_write(w, "a quantised type is stored in at most 32 bits, not as %s",
                         base_dtype_of((base_dtype)q->storage)->text);
  if (!q->has_range) ir_own_range((base_dtype)q->storage, &low, &high);
  bc_mark(w, BC_MARK_VARINT, q->axis >= 0 ? BC_VT_QUANT_AXIS : BC_VT_QUANT);
  bc_mark(w, BC_MARK_VARINT, base_dtype_is_signed((base_dtype)q->storage));
  TRY(bc_mark_type(w, false, &storage));
  TRY(bc_mark_type(w, false, &expressed));
  if (q->axis < 0) {
    bc_mark(w, BC_MARK_SIGNED, bc_f64_bits(q->scales[0]));
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)q->zero_points[0]);
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)low);
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)high);
    return 0;
  }
  bc_mark(w, BC_MARK_VARINT, (uint64_t)q->axis);
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)low);
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)high);
  bc_mark(w, BC_MARK_VARINT, q->n);
  for (uint32_t i = 0; i < q->n; i++) bc_mark(w, BC_MARK_SIGNED, bc_f64_bits(q->scales[i]));
  bc_mark(w, BC_MARK_VARINT, q->n);
  for (uint32_t i = 0; i < q->n; i++) bc_mark(w, BC_MARK_SIGNED, (uint64_t)q->zero_points[i]);
  return 0;
}

/* --- types that are text here --- */

/* MLIR's name of a scalar type, as a dtype: i8 is s8, f8E4M3FN is f8e4m3fn. */
static base_dtype bc_dtype_of_name(const char *s, size_t n) {
  char name[24];
  if (n == 2 && memcmp(s, "i1", 2) == 0) return XLAC_PRED;
  if (n == 0 || n >= sizeof name - 1) return BASE_DTYPE_INVALID;
  size_t skip = n > 1 && s[0] == 'u' && s[1] == 'i' ? 1 : 0;
  for (size_t i = 0; i < n; i++) name[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
  if (skip) name[1] = 'u';
  if (name[0] == 'i') name[0] = 's';
  return base_dtype_from_text(name + skip, n - skip);
}

/* memref<2x?xf32> */
static int bc_mark_memref(bc_writer *w, const base_istr *text) {
  assert(text->n > 8);
  int64_t dims[IR_MAX_RANK] = {0};
  uint32_t rank = 0;
  const char *p = text->s + 7, *end = text->s + text->n - 1;
  while (p < end && rank < IR_MAX_RANK && (*p == '?' || (*p >= '0' && *p <= '9'))) {
    int64_t v = *p == '?' ? IR_UNBOUNDED : 0;
    if (*p == '?') p++;
    for (; *p >= '0' && *p <= '9' && v < INT64_MAX / 16; p++) v = v * 10 + (*p - '0');
    if (*p++ != 'x') return bc_cant_write(w, "VHLO has no type %.80s", text->s);
    dims[rank++] = v;
  }
  base_dtype dtype = p < end ? bc_dtype_of_name(p, (size_t)(end - p)) : BASE_DTYPE_INVALID;
  if (dtype == BASE_DTYPE_INVALID || *end != '>') return bc_cant_write(w, "VHLO has no type %.80s", text->s);
  TRY(bc_needs(w, BC_V(1, 13), "buffers"));
  const ir_type element = {.kind = IR_TYPE_ELEMENT, .dtype = (uint8_t)dtype};
  bc_mark(w, BC_MARK_VARINT, BC_VT_BUFFER);
  bc_mark(w, BC_MARK_VARINT, rank);
  for (uint32_t i = 0; i < rank; i++) bc_mark(w, BC_MARK_SIGNED, (uint64_t)dims[i]);
  return bc_mark_type(w, false, &element);
}

/* Types that are text in the IR and have a code in bytecode. */
static int bc_mark_other(bc_writer *w, bool builtin, const base_istr *text) {
  static const struct {
    const char *text;
    int16_t builtin, vhlo;
    uint16_t first;
  } names[] = {{"index", BC_BT_INDEX, BC_VT_INDEX, 0},
               {"none", BC_BT_NONE, BC_VT_NONE, BC_V(1, 6)},
               {"tf32", -1, BC_VT_TF32, BC_V(1, 6)},
               {"!shape.witness", -1, BC_VT_WITNESS, 0}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i].text, text->s) != 0 || (builtin && names[i].builtin < 0)) continue;
    if (!builtin) TRY(bc_needs(w, names[i].first, text->s));
    bc_mark(w, BC_MARK_VARINT, (uint64_t)(builtin ? names[i].builtin : names[i].vhlo));
    return 0;
  }
  if (!builtin && text->n > 8 && memcmp(text->s, "memref<", 7) == 0) return bc_mark_memref(w, text);
  return bc_cant_write(w, "VHLO has no type %.80s", text->s);
}

/* --- shapes and lists --- */

/* The element type of a tensor, which is not a type of its own in the module. */
static int bc_mark_element(bc_writer *w, bool builtin, const ir_type *t) {
  const ir_type element = {
      .kind = t->text ? IR_TYPE_OTHER : IR_TYPE_ELEMENT, .dtype = t->dtype, .quant = t->quant, .text = t->text};
  return bc_mark_type(w, builtin, &element);
}

/* Whether a dimension has a bound, for which VHLO has an encoding: #stablehlo.bounds<?, 5>. */
static bool bc_has_bounds(const ir_type *t) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (ir_dim_is_dynamic(t, i) && t->dims[i] != IR_UNBOUNDED) return true;
  return false;
}

/* An encoding, for VHLO; unbounded and static dimensions are IR_UNBOUNDED there. */
static int bc_add_bounds(bc_writer *w, const ir_type *t, uint32_t *out) {
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_V_BOUNDS);
  bc_mark(w, BC_MARK_VARINT, t->rank);
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t bound = ir_dim_is_dynamic(t, i) ? t->dims[i] : IR_UNBOUNDED;
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)bound);
  }
  return bc_pool_add(w, &w->attrs, w->vhlo, true, from, out);
}

/* Tensors with any other encoding can't be written. */
static int bc_mark_tensor(bc_writer *w, bool builtin, const ir_type *t) {
  bool bounds = bc_has_bounds(t);
  if (t->encoding || (bounds && builtin)) return bc_cant_write(w, "a tensor's encoding has no form in VHLO");
  bc_mark(w, BC_MARK_VARINT, builtin ? BC_BT_TENSOR : bounds ? BC_VT_TENSOR_ENCODING : BC_VT_TENSOR);
  if (bounds) {
    uint32_t encoding = 0;
    TRY(bc_add_bounds(w, t, &encoding));
    bc_mark(w, BC_MARK_ATTR, encoding);
  }
  bc_mark(w, BC_MARK_VARINT, t->rank);
  for (uint32_t i = 0; i < t->rank; i++)
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)(ir_dim_is_dynamic(t, i) ? IR_UNBOUNDED : t->dims[i]));
  return bc_mark_element(w, builtin, t);
}

/*   n, then n numbers of types */
static int bc_mark_types(bc_writer *w, bool builtin, uint32_t n, const ir_type *const *types) {
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) TRY(bc_mark_type(w, builtin, types[i]));
  return 0;
}

/* The code and what follows it. */
static int bc_mark_type_body(bc_writer *w, bool builtin, const ir_type *t) {
  switch (t->kind) {
    case IR_TYPE_ELEMENT:
      if (t->quant) return bc_mark_quant(w, t->quant);
      return bc_mark_scalar(w, builtin, (base_dtype)t->dtype);
    case IR_TYPE_TENSOR:
      return bc_mark_tensor(w, builtin, t);
    case IR_TYPE_UNRANKED:
      bc_mark(w, BC_MARK_VARINT, builtin ? BC_BT_UNRANKED : BC_VT_UNRANKED);
      return bc_mark_element(w, builtin, t);
    case IR_TYPE_TUPLE:
      bc_mark(w, BC_MARK_VARINT, builtin ? BC_BT_TUPLE : BC_VT_TUPLE);
      return bc_mark_types(w, builtin, t->n_elements, t->elements);
    case IR_TYPE_FUTURE:
      TRY(bc_needs(w, BC_V(1, 15), "futures"));
      bc_mark(w, BC_MARK_VARINT, BC_VT_FUTURE);
      return bc_mark_types(w, false, t->n_elements, t->elements);
    case IR_TYPE_FUNCTION:
      bc_mark(w, BC_MARK_VARINT, builtin ? BC_BT_FUNCTION : BC_VT_FUNCTION);
      TRY(bc_mark_types(w, builtin, t->n_inputs, t->elements));
      return bc_mark_types(w, builtin, t->n_elements - t->n_inputs, t->elements + t->n_inputs);
    case IR_TYPE_TOKEN:
      bc_mark(w, BC_MARK_VARINT, BC_VT_TOKEN);
      return 0;
    case IR_TYPE_OTHER:
      return bc_mark_other(w, builtin, t->text);
    default:
      return bc_cant_write(w, "a type of HLO form");
  }
}

/* StableHLO's, as ops of sdy have it. */
static int bc_add_own_token(bc_writer *w, uint32_t *out) {
  uint32_t dialect = 0;
  size_t from = w->marks.n;
  TRY(bc_pool_dialect(w, "stablehlo", 9, &dialect));
  bc_mark(w, BC_MARK_VARINT, 0);
  return bc_pool_add(w, &w->types, dialect, true, from, out);
}

/* Types of other dialects go as their text. */
int bc_add_type(bc_writer *w, bool builtin, const ir_type *t, uint32_t *out) {
  assert(t);
  bool foreign = t->kind == IR_TYPE_OTHER && t->text->s[0] == '!' && strcmp(t->text->s, "!shape.witness") != 0;
  size_t from = w->marks.n;
  if (foreign) return bc_add_foreign(w, &w->types, t->text->s, t->text->n, out);
  if (builtin && t->kind == IR_TYPE_TOKEN) return bc_add_own_token(w, out);
  TRY(bc_write_deeper(w));
  TRY(bc_mark_type_body(w, builtin, t));
  w->depth--;
  bool vhlo_only = t->kind == IR_TYPE_FUTURE || (t->kind == IR_TYPE_ELEMENT && t->quant);
  return bc_pool_add(w, &w->types, builtin && !vhlo_only ? w->builtin : w->vhlo, true, from, out);
}
