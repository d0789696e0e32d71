/* Shapes, layouts and literals to their messages.
 *
 *   f32[2,3]{1,0}     element_type F32, dimensions [2, 3], layout {minor_to_major [1, 0]}
 *   (s32[], pred[])   element_type TUPLE, two tuple_shapes
 *
 * Literals go in the order of their layout; XLA reads them so. What is narrower than a byte goes in a byte each. */
#include "write.h"

/* Levels of sparse dimensions: D, C, S and H are 0 to 3. */
static void write_levels(base_text *out, const ir_layout *l) {
  static const char forms[] = "DCSH";
  if (!l->levels) return;
  int64_t level[IR_MAX_RANK], unique[IR_MAX_RANK], ordered[IR_MAX_RANK];
  for (uint32_t i = 0; i < l->rank; i++) {
    const char *form = strchr(forms, l->levels[i].form);
    assert(form);
    level[i] = form - forms;
    unique[i] = l->levels[i].unique;
    ordered[i] = l->levels[i].ordered;
  }
  proto_put_list(out, 9, level, l->rank);
  proto_put_list(out, 13, unique, l->rank);
  proto_put_list(out, 14, ordered, l->rank);
}

/* Field numbers of xla.LayoutProto. */
static void write_proto_layout(base_text *out, const ir_layout *l) {
  size_t at = proto_begin(out, 5);
  proto_put_list(out, 1, l->minor_to_major, l->rank);
  for (uint32_t i = 0; i < l->n_tiles; i++) {
    size_t tile = proto_begin(out, 6);
    proto_put_list(out, 1, l->tiles[i].dims, l->tiles[i].rank);
    proto_end(out, tile);
  }
  proto_put_int(out, 7, l->element_bits);
  proto_put_int(out, 8, l->memory_space);
  write_levels(out, l);
  if (l->physical) proto_write_type(out, 10, l->physical);
  if (l->index_type) proto_put_int(out, 11, proto_dtype_number(l->index_type));
  if (l->pointer_type) proto_put_int(out, 12, proto_dtype_number(l->pointer_type));
  proto_put_int(out, 15, l->metadata_prefix_bytes);
  proto_put_int(out, 16, l->tail_padding);
  for (uint32_t i = 0; i < l->n_splits; i++) {
    size_t split = proto_begin(out, 17);
    proto_put_int(out, 1, l->splits[i].dimension);
    proto_put_list(out, 2, l->splits[i].indices, l->splits[i].n);
    proto_end(out, split);
  }
  proto_end(out, at);
}

/* One flag for each dimension. */
static void write_tensor(base_text *out, const ir_type *t) {
  int64_t dynamic[IR_MAX_RANK];
  assert(t->rank <= IR_MAX_RANK);
  for (uint32_t i = 0; i < t->rank; i++) dynamic[i] = ir_dim_is_dynamic(t, i);
  proto_put_int(out, 2, proto_dtype_number((base_dtype)t->dtype));
  proto_put_list(out, 3, t->dims, t->rank);
  if (t->layout) write_proto_layout(out, t->layout);
  proto_put_list(out, 6, dynamic, t->rank);
}

/* Types nest at most IR_MAX_TYPE_DEPTH deep, so this may recurse. */
void proto_write_type(base_text *out, uint32_t number, const ir_type *t) {
  size_t at = proto_begin(out, number);
  switch ((ir_type_kind)t->kind) {
    case IR_TYPE_TENSOR:
      write_tensor(out, t);
      break;
    case IR_TYPE_TOKEN:
      proto_put_int(out, 2, PROTO_TOKEN);
      break;
    case IR_TYPE_OPAQUE:
      proto_put_int(out, 2, PROTO_OPAQUE);
      break;
    case IR_TYPE_BUFFER:
      proto_put_int(out, 2, PROTO_BUFFER);
      proto_write_type(out, 4, t->inner);
      break;
    default:
      proto_put_int(out, 2, PROTO_TUPLE);
      for (uint32_t i = 0; i < t->n_elements; i++) proto_write_type(out, 4, t->elements[i]);
  }
  proto_end(out, at);
}

/* --- literals --- */

/* An element as the varint that stands for it: signed ones sign-extended. */
static int64_t load_number(base_dtype dtype, const uint8_t *p) {
  assert(p);
  uint32_t narrow;
  int64_t wide;
  if (dtype == XLAC_PRED) return *p != 0;
  if (base_dtype_bytes(dtype) == 8) return memcpy(&wide, p, sizeof wide), wide;
  memcpy(&narrow, p, sizeof narrow);
  return dtype == XLAC_S32 ? (int64_t)(int32_t)narrow : (int64_t)narrow;
}

/* n bytes of elements; the bits above narrow ones are cleared. */
static void put_raw(base_text *out, base_dtype dtype, const uint8_t *p, size_t n) {
  assert(p || n == 0);
  unsigned bits = base_dtype_of(dtype)->bits;
  if (bits >= 8) {
    base_put(out, (const char *)p, n);
    return;
  }
  for (size_t i = 0; i < n; i++) base_putc(out, (char)(p[i] & ((1u << bits) - 1)));
}

/* In the order of the layout. */
static void write_elements(base_text *out, const ir_literal *l) {
  const ir_type *t = l->type;
  base_dtype dtype = (base_dtype)t->dtype;
  size_t size = base_dtype_bytes(dtype);
  base_proto_values how;
  proto_walk walk;
  uint32_t field = proto_literal_field(dtype, &how);
  bool walks = proto_walk_start(&walk, t);
  size_t at = proto_begin(out, field);
  if (how == BASE_PROTO_RAW && !walks) {
    put_raw(out, dtype, l->data, (size_t)t->count * size);
  } else {
    int64_t place = 0;
    for (int64_t i = 0; i < t->count; i++, place = walks ? proto_walk_next(&walk, place) : i) {
      const uint8_t *p = (const uint8_t *)l->data + (size_t)place * size;
      if (how == BASE_PROTO_RAW)
        put_raw(out, dtype, p, size);
      else
        proto_put_varint(out, (uint64_t)load_number(dtype, p));
    }
  }
  proto_end(out, at);
}

/* A literal of no elements has its shape only. */
void proto_write_literal(base_text *out, uint32_t number, const ir_literal *l) {
  size_t at = proto_begin(out, number);
  proto_write_type(out, 1, l->type);
  if (ir_is_tuple(l->type)) {
    for (uint32_t i = 0; i < l->type->n_elements; i++) proto_write_literal(out, 10, l->elements[i]);
  } else if (l->type->count > 0) {
    assert(l->data);
    write_elements(out, l);
  }
  proto_end(out, at);
}
