/* Shapes, layouts and literals from their messages: xla.ShapeProto, xla.LayoutProto, xla.LiteralProto.
 *
 * ShapeProto: 2 element type, 3 dimensions, 4 tuple's elements, 5 layout, 6 which dimensions are dynamic. The
 * numbers of a layout's lists stay on the reader's stack until the layout is interned. */
#include "read.h"

/* Tiles and splits of one layout: XLA's own have one or two. */
enum { MAX_PROTO_PARTS = 64 };

/* Arrays of a layout while it is being read; ir_layout_intern copies them. */
typedef struct layout_parts {
  ir_tile tiles[MAX_PROTO_PARTS];
  ir_split splits[MAX_PROTO_PARTS];
  uint32_t tile_from[MAX_PROTO_PARTS], split_from[MAX_PROTO_PARTS];
} layout_parts;

/* IR_TILE_COMBINE, a negative number, means that the dimension is combined with the next one. */
static int read_proto_tiles(proto_reader *r, proto_message in, layout_parts *parts, uint32_t *n) {
  uint32_t at = in.first;
  proto_field f;
  while (proto_next(&r->s, in, 6, PROTO_LENGTH, &at, &f)) {
    proto_message tile;
    if (*n == MAX_PROTO_PARTS)
      return proto_fail(&r->s, f.p, XLAC_E_TOO_LARGE, "a layout with more than %d tiles", MAX_PROTO_PARTS);
    TRY(proto_open_field(&r->s, f, &tile));
    TRY(proto_list(&r->s, tile, 1, &parts->tile_from[*n]));
    parts->tiles[*n].rank = r->s.numbers.n - parts->tile_from[*n];
    for (uint32_t i = parts->tile_from[*n]; i < r->s.numbers.n; i++) {
      int64_t v = r->s.numbers.items[i];
      if (v < 0 && v != IR_TILE_COMBINE)
        return proto_fail(&r->s, f.p, XLAC_E_BAD_SHAPE_TEXT, "a tile dimension is negative (%lld)", (long long)v);
    }
    ++*n;
    proto_close(&r->s, tile);
  }
  return 0;
}

/* SplitConfigProto, field 17: a dimension and where it is cut. The numbers stay in the reader's list until the
 * layout is made. */
static int read_proto_splits(proto_reader *r, proto_message in, layout_parts *parts, uint32_t *n) {
  uint32_t at = in.first;
  proto_field f;
  while (proto_next(&r->s, in, 17, PROTO_LENGTH, &at, &f)) {
    proto_message split;
    if (*n == MAX_PROTO_PARTS)
      return proto_fail(&r->s, f.p, XLAC_E_TOO_LARGE, "a layout with more than %d splits", MAX_PROTO_PARTS);
    TRY(proto_open_field(&r->s, f, &split));
    TRY(proto_list(&r->s, split, 2, &parts->split_from[*n]));
    parts->splits[*n].n = r->s.numbers.n - parts->split_from[*n];
    parts->splits[*n].dimension = proto_int(&r->s, split, 1);
    ++*n;
    proto_close(&r->s, split);
  }
  return 0;
}

/* As XLA has it: each dimension once. */
static int check_minor_to_major(proto_reader *r, const uint8_t *at, const int64_t *order, uint32_t n, uint32_t rank) {
  uint64_t seen = 0;
  if (n != rank)
    return proto_fail(&r->s, at, XLAC_E_BAD_SHAPE_TEXT, "minor_to_major has %u entries for %u dimensions", n, rank);
  for (uint32_t i = 0; i < n; i++) {
    if (order[i] < 0 || order[i] >= (int64_t)rank || seen >> order[i] & 1)
      return proto_fail(&r->s, at, XLAC_E_BAD_SHAPE_TEXT, "minor_to_major has no order of %u dimensions", rank);
    seen |= UINT64_C(1) << order[i];
  }
  return 0;
}

/* Absent is 0, no type. */
static int read_index_dtype(proto_reader *r, proto_message in, uint32_t number, base_dtype *out) {
  int64_t v = proto_int(&r->s, in, number);
  *out = proto_dtype_of(v);
  if (v == 0 || base_dtype_is_unsigned(*out)) return 0;
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHAPE_TEXT, "a layout's index types are unsigned integers");
}

/* A tail padding of 0 is XLA's default of 1. */
static int read_layout_facts(proto_reader *r, proto_message in, ir_layout *l) {
  l->tail_padding = proto_int(&r->s, in, 16);
  if (l->tail_padding == 0) l->tail_padding = 1;
  l->element_bits = proto_int(&r->s, in, 7);
  l->memory_space = proto_int(&r->s, in, 8);
  l->metadata_prefix_bytes = proto_int(&r->s, in, 15);
  TRY(read_index_dtype(r, in, 11, &l->index_type));
  TRY(read_index_dtype(r, in, 12, &l->pointer_type));
  if (proto_count(&r->s, in, 10, PROTO_LENGTH)) return proto_read_type_in(r, in, 10, &l->physical);
  return 0;
}

/* Pointers into the stack are taken at the end: it moves while it grows. */
static int read_proto_layout(proto_reader *r, proto_message in, uint32_t rank, const ir_layout **out) {
  layout_parts parts;
  ir_layout l = {.rank = rank};
  uint32_t from;
  TRY(proto_list(&r->s, in, 1, &from));
  TRY(check_minor_to_major(r, proto_place(r, in), r->s.numbers.items + from, r->s.numbers.n - from, rank));
  TRY(read_proto_tiles(r, in, &parts, &l.n_tiles));
  TRY(read_proto_splits(r, in, &parts, &l.n_splits));
  TRY(read_layout_facts(r, in, &l));
  const int64_t *numbers = r->s.numbers.items;
  l.minor_to_major = rank ? numbers + from : NULL;
  for (uint32_t i = 0; i < l.n_tiles; i++) parts.tiles[i].dims = numbers + parts.tile_from[i];
  for (uint32_t i = 0; i < l.n_splits; i++) parts.splits[i].indices = numbers + parts.split_from[i];
  l.tiles = parts.tiles;
  l.splits = parts.splits;
  *out = ir_layout_intern(r->m, &l);
  r->s.numbers.n = from;
  return *out ? 0 : proto_no_memory(&r->s);
}

/* A dimension that is unbounded counts as dynamic, whatever its flag says. */
static int make_tensor(proto_reader *r, proto_message in, base_dtype dtype, const uint8_t *at, uint32_t from,
                       uint32_t rank, const ir_type **out) {
  assert(rank <= IR_MAX_RANK);
  bool dynamic[IR_MAX_RANK];
  uint32_t flags, n_dynamic = 0;
  const ir_layout *layout = NULL;
  xlac_error why = {0};
  TRY(proto_list(&r->s, in, 6, &flags));
  if (r->s.numbers.n != flags && r->s.numbers.n - flags != rank)
    return proto_fail(&r->s, at, XLAC_E_BAD_SHAPE_TEXT, "%u dynamic flags for %u dimensions", r->s.numbers.n - flags,
                      rank);
  for (uint32_t i = 0; i < rank; i++) {
    bool unbounded = r->s.numbers.items[from + i] == IR_UNBOUNDED;
    dynamic[i] = unbounded || (flags + i < r->s.numbers.n && r->s.numbers.items[flags + i]);
    n_dynamic += dynamic[i];
  }
  r->s.numbers.n = flags;
  if (proto_count(&r->s, in, 5, PROTO_LENGTH)) {
    proto_message l;
    TRY(proto_open_sub(&r->s, in, 5, &l));
    TRY(read_proto_layout(r, l, rank, &layout));
    proto_close(&r->s, l);
  }
  *out = ir_tensor(r->m, dtype, rank, r->s.numbers.items + from, n_dynamic ? dynamic : NULL, layout, &why);
  if (*out) return 0;
  return why.code ? proto_fail(&r->s, at, (base_code)why.code, "%s", why.message) : proto_no_memory(&r->s);
}

/* The dimensions wait on the stack for make_tensor. */
static int read_tensor_shape(proto_reader *r, proto_message in, int64_t number, const ir_type **out) {
  base_dtype dtype = proto_dtype_of(number);
  const uint8_t *at = proto_place(r, in);
  uint32_t from;
  if (dtype == BASE_DTYPE_INVALID)
    return proto_fail(&r->s, at, XLAC_E_BAD_SHAPE_TEXT, "%lld is not an element type", (long long)number);
  TRY(proto_list(&r->s, in, 3, &from));
  uint32_t rank = r->s.numbers.n - from;
  if (rank > IR_MAX_RANK)
    return proto_fail(&r->s, at, XLAC_E_TOO_LARGE, "a shape of %u dimensions; the most is %d", rank, IR_MAX_RANK);
  TRY(make_tensor(r, in, dtype, at, from, rank, out));
  r->s.numbers.n = from;
  return 0;
}

/* All shapes of a repeated field are appended to r->types, from *from on; the caller takes them off again. */
int proto_read_types(proto_reader *r, proto_message in, uint32_t number, uint32_t *from) {
  uint32_t at = in.first;
  proto_field f;
  *from = r->types.n;
  while (proto_next(&r->s, in, number, PROTO_LENGTH, &at, &f)) {
    proto_message shape;
    const ir_type *t;
    TRY(proto_open_field(&r->s, f, &shape));
    TRY(proto_read_type(r, shape, &t));
    proto_close(&r->s, shape);
    if (!BASE_VEC_PUSH(r->s.alloc, &r->types, t)) return proto_no_memory(&r->s);
  }
  return 0;
}

/* Bounded in leaves and depth, since everything that walks types recurses. */
static int read_tuple_shape(proto_reader *r, proto_message in, const ir_type **out) {
  uint32_t from;
  TRY(proto_read_types(r, in, 4, &from));
  *out = ir_tuple(r->m, r->types.n - from, r->types.items + from);
  r->types.n = from;
  if (!*out) return proto_no_memory(&r->s);
  if ((*out)->n_leaves > IR_MAX_TYPE_LEAVES || (*out)->depth > IR_MAX_TYPE_DEPTH)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_TOO_LARGE, "a tuple shape of more than %d leaves",
                      IR_MAX_TYPE_LEAVES);
  return 0;
}

/*   b(f32[4])     the one shape within, field 4 */
static int read_buffer_shape(proto_reader *r, proto_message in, const ir_type **out) {
  uint32_t from;
  TRY(proto_read_types(r, in, 4, &from));
  if (r->types.n != from + 1 || !ir_is_tensor(r->types.items[from]))
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_SHAPE_TEXT, "a buffer has one shape, an array's");
  *out = ir_buffer(r->m, r->types.items[from]);
  r->types.n = from;
  return *out ? 0 : proto_no_memory(&r->s);
}

/* By the element type's number, which also says what is not an array. */
int proto_read_type(proto_reader *r, proto_message in, const ir_type **out) {
  int64_t number = proto_int(&r->s, in, 2);
  switch (number) {
    case PROTO_TUPLE:
      return read_tuple_shape(r, in, out);
    case PROTO_BUFFER:
      return read_buffer_shape(r, in, out);
    case PROTO_TOKEN:
    case PROTO_OPAQUE:
      *out = number == PROTO_TOKEN ? ir_token(r->m) : ir_opaque(r->m);
      return *out ? 0 : proto_no_memory(&r->s);
    default:
      return read_tensor_shape(r, in, number, out);
  }
}

/* A shape that must be there. */
int proto_read_type_in(proto_reader *r, proto_message in, uint32_t number, const ir_type **out) {
  proto_message shape;
  if (proto_count(&r->s, in, number, PROTO_LENGTH) == 0)
    return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_PROTO, "a shape (field %u) is missing", number);
  TRY(proto_open_sub(&r->s, in, number, &shape));
  TRY(proto_read_type(r, shape, out));
  proto_close(&r->s, shape);
  return 0;
}

/* ---- Literals from their messages: elements stand there in the order of the shape's layout. */

/* An error about the elements of a literal. */
static int wrong_amount(proto_reader *r, proto_message in, const ir_type *t, uint64_t found, uint64_t expected) {
  char text[160];
  return proto_fail(&r->s, proto_place(r, in), XLAC_E_BAD_LITERAL, "a literal of shape %s needs %llu %s, found %llu",
                    ir_type_text(t, text, sizeof text), (unsigned long long)expected, "bytes or numbers",
                    (unsigned long long)found);
}

/* The memory of a literal of this type, in the module. */
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

/* Elements stand in the order of the layout; ours are row-major. */
static void place_raw(ir_literal *l, const uint8_t *from) {
  assert(l->type->count >= 0);
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

/* bytes, or fixed-width numbers: one field, or many that are to be joined. `bytes` fields don't join: the last one
 * counts. Fixed-width numbers may come packed or one by one. */
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

/* Numbers of 32 bits keep their low half. */
static void store_number(base_dtype dtype, void *to, int64_t v) {
  assert(base_dtype_bytes(dtype) <= 8);
  uint32_t narrow = (uint32_t)v;
  if (dtype == XLAC_PRED)
    *(uint8_t *)to = v != 0;
  else
    memcpy(to, base_dtype_bytes(dtype) == 4 ? (void *)&narrow : (void *)&v, base_dtype_bytes(dtype));
}

/* Varints, one for each element. */
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

/* Elements of a tuple's literal are messages in field 10. */
static int read_literal_parts(proto_reader *r, proto_message in, const ir_type *t, const ir_literal **out) {
  assert(ir_is_tuple(t));
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

/* One literal, or a part of a tuple's: `t` is what the place wants it to be. */
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

/* LiteralProto: its shape is field 1, its elements stand in a field that depends on the element type. */
int proto_read_literal(proto_reader *r, proto_message in, const ir_literal **out) {
  const ir_type *t;
  TRY(proto_read_type_in(r, in, 1, &t));
  return read_literal_of(r, in, t, out);
}
