/* Literals from their messages: elements stand there in the order of the shape's layout. */
#include "read.h"

static int wrong_amount(proto_reader *r, proto_message in, const ir_type *t, uint64_t found, uint64_t expected) {
  char text[160];
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_LITERAL, "a literal of shape %s needs %llu %s, found %llu",
                    ir_type_text(t, text, sizeof text), (unsigned long long)expected, "bytes or numbers",
                    (unsigned long long)found);
}

static int new_array(proto_reader *r, const ir_type *t, ir_literal **out) {
  *out = ir_literal_new(r->m, t);
  return *out ? 0 : proto_no_memory(&r->s);
}

/* Narrow integers stand in a byte each, zero-extended there and sign-extended here; other bits are not looked at. */
static void extend_narrow(base_dtype dtype, uint8_t *data, int64_t n) {
  unsigned bits = base_dtype_of(dtype)->bits;
  if (base_dtype_of(dtype)->bytes != 1 || bits >= 8 || dtype == XLAC_PRED) return;
  uint8_t mask = (uint8_t)((1u << bits) - 1), sign = base_dtype_is_signed(dtype) ? (uint8_t)(1u << (bits - 1)) : 0;
  for (int64_t i = 0; i < n; i++) {
    data[i] &= mask;
    if (data[i] & sign) data[i] |= (uint8_t)~mask;
  }
}

static void place_raw(ir_literal *l, const uint8_t *from) {
  size_t size = base_dtype_bytes((base_dtype)l->type->dtype);
  proto_walk w;
  assert(l->data);
  if (!proto_walk_start(&w, l->type)) {
    memcpy(l->data, from, (size_t)l->type->count * size);
    return;
  }
  int64_t place = 0;
  for (int64_t i = 0; i < l->type->count; i++, place = proto_walk_next(&w, place))
    memcpy((uint8_t *)l->data + (size_t)place * size, from + (size_t)i * size, size);
}

/* bytes, or fixed-width numbers: one field, or many that are to be joined. */
static int read_raw(proto_reader *r, proto_message in, const ir_type *t, uint32_t number, ir_literal **out) {
  uint64_t want = (uint64_t)t->count * base_dtype_bytes((base_dtype)t->dtype), found = 0;
  bool joins = base_dtype_of((base_dtype)t->dtype)->bits >= 32;
  proto_field f;
  r->bytes.n = 0;
  for (uint32_t i = in.first; i < in.first + in.n; i++) {
    f = r->s.fields.items[i];
    if (f.number != number || f.wire == PROTO_VARINT) continue;
    uint64_t n = f.wire == PROTO_LENGTH ? f.value : f.wire == PROTO_FIXED32 ? 4 : 8;
    if (!joins) r->bytes.n = 0;
    found = joins ? found + n : n;
    if (found <= want) base_put(&r->bytes, (const char *)f.p, (size_t)n);
  }
  if (r->bytes.failed) return proto_no_memory(&r->s);
  if (found != want) return wrong_amount(r, in, t, found, want);
  TRY(new_array(r, t, out));
  if (want == 0) return 0;
  place_raw(*out, (const uint8_t *)r->bytes.s);
  extend_narrow((base_dtype)t->dtype, (*out)->data, t->count);
  return 0;
}

static void store_number(base_dtype dtype, void *to, int64_t v) {
  uint32_t narrow = (uint32_t)v;
  if (dtype == XLAC_PRED)
    *(uint8_t *)to = v != 0;
  else
    memcpy(to, base_dtype_bytes(dtype) == 4 ? (void *)&narrow : (void *)&v, base_dtype_bytes(dtype));
}

static int read_numbers(proto_reader *r, proto_message in, const ir_type *t, uint32_t number, ir_literal **out) {
  uint32_t from;
  proto_walk w;
  TRY(proto_list(&r->s, in, number, &from));
  uint32_t n = r->s.numbers.n - from;
  r->s.numbers.n = from;
  if (n != (uint64_t)t->count) return wrong_amount(r, in, t, n, (uint64_t)t->count);
  TRY(new_array(r, t, out));
  size_t size = base_dtype_bytes((base_dtype)t->dtype);
  bool walks = proto_walk_start(&w, t);
  int64_t place = 0;
  for (uint32_t i = 0; i < n; i++) {
    store_number((base_dtype)t->dtype, (uint8_t *)(*out)->data + (size_t)place * size, r->s.numbers.items[from + i]);
    place = walks ? proto_walk_next(&w, place) : place + 1;
  }
  return 0;
}

static int read_literal_of(proto_reader *r, proto_message in, const ir_type *t, const ir_literal **out);

static int read_literal_parts(proto_reader *r, proto_message in, const ir_type *t, const ir_literal **out) {
  uint32_t at = in.first, from = r->pointers.n;
  proto_field f;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    proto_message element;
    const ir_literal *l;
    if (!proto_next(&r->s, in, 10, PROTO_LENGTH, &at, &f)) return wrong_amount(r, in, t, i, t->n_elements);
    TRY(proto_open_field(&r->s, f, &element));
    TRY(read_literal_of(r, element, t->elements[i], &l));
    proto_close(&r->s, element);
    if (!BASE_VEC_PUSH(r->s.alloc, &r->pointers, l)) return proto_no_memory(&r->s);
  }
  *out = ir_literal_tuple(r->m, t, (const ir_literal *const *)(r->pointers.items + from));
  r->pointers.n = from;
  return *out ? 0 : proto_no_memory(&r->s);
}

static int read_literal_of(proto_reader *r, proto_message in, const ir_type *t, const ir_literal **out) {
  char text[160];
  base_proto_values how;
  if (ir_is_tuple(t)) return read_literal_parts(r, in, t, out);
  if (!ir_is_tensor(t))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_LITERAL, "no literal has the shape %s",
                      ir_type_text(t, text, sizeof text));
  /* The elements are in the order of the literal's own layout, which may differ from its place's. */
  const ir_type *own = t;
  if (proto_count(&r->s, in, 1, PROTO_LENGTH)) TRY(proto_read_type_in(r, in, 1, &own));
  if (!ir_same_bare(own, t))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_LITERAL, "a part of a tuple literal has not the shape %s",
                      ir_type_text(t, text, sizeof text));
  uint32_t field = proto_literal_field((base_dtype)own->dtype, &how);
  ir_literal *l = NULL;
  TRY(how == BASE_PROTO_RAW ? read_raw(r, in, own, field, &l) : read_numbers(r, in, own, field, &l));
  *out = l;
  return 0;
}

int proto_read_literal(proto_reader *r, proto_message in, const ir_literal **out) {
  const ir_type *t;
  TRY(proto_read_type_in(r, in, 1, &t));
  return read_literal_of(r, in, t, out);
}
