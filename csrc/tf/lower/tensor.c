/* Reads TensorProto messages where they are. A tensor is either tensor_content, its bytes as they are in memory,
 * or a list in a field by type (float_val, int_val, ...), of which the last element stands for all that are
 * missing. */
#include "tensor.h"

/* Quantised types are the integers that hold them. What is not in the list is INVALID, 0. References count as what
 * they refer to. */
base_dtype tfl_dtype_of(unsigned tf_type) {
  static const uint8_t types[TF_TYPE_END] = {
#define TF_TYPE(name, number, word, element) [number] = element,
#include "../graph/tf_types.def"
#undef TF_TYPE
  };
  unsigned base = tf_base_type(tf_type);
  return base < TF_TYPE_END ? (base_dtype)types[base] : BASE_DTYPE_INVALID;
}

/* Fields of TensorShapeProto: 2 dim (in it 1 size), 3 unknown_rank. -1 is a size that is not known. dims has
 * TFL_MOST_DIMS places, of which those beyond *rank stay as they are. A message of no bytes is a scalar's shape,
 * as protocol buffers leave out what is empty. */
int tfl_read_shape(base_slice message, bool *known, uint32_t *rank, int64_t *dims, xlac_error *err) {
  assert(known && rank && dims);
  const char *at = message.p;
  *known = true;
  *rank = 0;
  for (tf_raw_field f, size; message.p && tf_raw_next(&at, message.p + message.n, &f);) {
    if (f.number == 3 && f.value) *known = false;
    if (f.number != 2 || f.wire != 2) continue;
    if (*rank == TFL_MOST_DIMS)
      return base_fail(err, XLAC_E_LOWER, "a shape has more than %d dimensions", TFL_MOST_DIMS);
    int64_t n = tf_raw_find(f.bytes, 1, &size) ? (int64_t)size.value : 0;
    if (n < -1) return base_fail(err, XLAC_E_LOWER, "a shape has a dimension of size %lld", (long long)n);
    dims[(*rank)++] = n;
  }
  return 0;
}

/* --- elements that are listed, each a varint or of fixed width, packed or one by one --- */

/* How a type's list looks on the wire. */
typedef struct tensor_list {
  uint32_t field;
  uint8_t wire;  /* of one element */
  uint8_t bytes; /* of one element of the list, in the result */
  uint8_t parts; /* elements of the list that make an element of the tensor */
  bool from_bits;
} tensor_list;

/* Field and wire type: float_val 5, double_val 6, int_val 7, scomplex_val 9, int64_val 10, bool_val 11,
 * dcomplex_val 12, half_val 13, uint32_val 16, uint64_val 17, float8_val 18. Narrow integers are all in int_val. */
static tensor_list tensor_list_of(base_dtype t) {
  assert(t != BASE_DTYPE_INVALID);
  uint8_t size = (uint8_t)base_dtype_bytes(t);
  switch (t) {
    case XLAC_F32:
      return (tensor_list){5, 5, 4, 1, true};
    case XLAC_F64:
      return (tensor_list){6, 1, 8, 1, true};
    case XLAC_C64:
      return (tensor_list){9, 5, 4, 2, true};
    case XLAC_C128:
      return (tensor_list){12, 1, 8, 2, true};
    case XLAC_S64:
      return (tensor_list){10, 0, 8, 1, false};
    case XLAC_PRED:
      return (tensor_list){11, 0, 1, 1, false};
    case XLAC_U32:
      return (tensor_list){16, 0, 4, 1, false};
    case XLAC_U64:
      return (tensor_list){17, 0, 8, 1, false};
    case XLAC_F16:
    case XLAC_BF16:
      return (tensor_list){13, 0, 2, 1, false};
    default:
      return (tensor_list){base_dtype_is_float(t) ? 18u : 7u, 0, size, 1, false};
  }
}

/* Wraps one element in a message of its own, so that tf_raw_next reads it: field 1 of that wire type. *at moves
 * behind the element; false at a malformed one, or one that is cut off. */
bool tfl_next_packed(const char **at, const char *end, uint8_t wire, uint64_t *v) {
  assert(wire == 0 || wire == 1 || wire == 5);
  size_t left = (size_t)(end - *at), n = 0;
  char one[16] = {(char)(1 << 3 | wire)};
  if (wire != 0) {
    n = wire == 1 ? 8 : 4;
    if (left < n) return false;
  } else {
    while (n < left && n < 10 && ((uint8_t)(*at)[n] & 0x80)) n++;
    if (n >= left || n >= 10) return false;
    n++;
  }
  memcpy(one + 1, *at, n);
  const char *p = one;
  tf_raw_field f;
  if (!tf_raw_next(&p, one + 1 + n, &f)) return false;
  *at += n;
  *v = f.value;
  return true;
}

/* A tensor's data while it is filled; n counts elements of the list, two for a complex number. */
typedef struct tensor_fill {
  tensor_list list;
  char *data;
  int64_t n, room; /* elements of the list */
} tensor_fill;

/* The low bytes of v, which on this machine come first; false where there is no room. */
static bool tensor_put(tensor_fill *t, uint64_t v) {
  assert(t->n <= t->room && t->list.bytes <= 8);
  if (t->n == t->room) return false;
  memcpy(t->data + t->n++ * t->list.bytes, &v, t->list.bytes);
  return true;
}

/* All fields of the list's number, packed or single, in order. False for more elements than there is room for, or
 * malformed ones. */
static bool tensor_listed(base_slice message, tensor_fill *t) {
  assert(t->data && t->n == 0);
  const char *at = message.p, *end = message.p + message.n;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);) {
    if (f.number != t->list.field) continue;
    if (t->list.field == 18 && f.wire == 2) { /* bytes, one for each */
      for (size_t i = 0; i < f.bytes.n; i++)
        if (!tensor_put(t, (uint8_t)f.bytes.p[i])) return false;
      continue;
    }
    if (f.wire != 2 && !tensor_put(t, f.value)) return false;
    if (f.wire != 2) continue;
    const char *p = f.bytes.p;
    while (p < f.bytes.p + f.bytes.n) {
      uint64_t v = 0;
      if (!tfl_next_packed(&p, f.bytes.p + f.bytes.n, t->list.wire, &v) || !tensor_put(t, v)) return false;
    }
  }
  return true;
}

/* The last element listed stands for the rest. An odd part of a complex number at the end is left out. */
static void tensor_repeat(tensor_fill *t) {
  assert(t->list.parts > 0);
  size_t size = (size_t)t->list.bytes * t->list.parts;
  int64_t have = t->n / t->list.parts, want = t->room / t->list.parts;
  if (have == 0) {
    memset(t->data, 0, (size_t)want * size);
    return;
  }
  for (int64_t i = have; i < want; i++) memcpy(t->data + (size_t)i * size, t->data + (size_t)(have - 1) * size, size);
}

/* `data` has room for count elements. tensor_content counts where it has any bytes; a list is read otherwise. */
static int tensor_elements(base_slice message, base_dtype t, int64_t count, void *data, xlac_error *err) {
  assert(count >= 0);
  tf_raw_field content;
  size_t size = (size_t)count * base_dtype_bytes(t);
  if (tf_raw_find(message, 4, &content) && content.wire == 2 && content.bytes.n > 0) {
    if (content.bytes.n != size)
      return base_fail(err, XLAC_E_LOWER, "a tensor has %zu bytes of content, its shape takes %zu", content.bytes.n,
                       size);
    memcpy(data, content.bytes.p, size);
    return 0;
  }
  tensor_list list = tensor_list_of(t);
  tensor_fill fill = {.list = list, .data = data, .room = count * list.parts};
  if (!tensor_listed(message, &fill))
    return base_fail(err, XLAC_E_LOWER, "a tensor lists more elements than its shape has, or malformed ones");
  tensor_repeat(&fill);
  return 0;
}

/* Memory is bounded by what the shape says, and that by 2^59 bytes: a message of a few bytes may ask for much,
 * which then fails as any allocation does. *data is in the arena, and one byte longer than needed, so that an
 * empty tensor has an address as well. */
int tfl_read_tensor(base_slice message, base_arena *arena, tfl_shape *shape, void **data, xlac_error *err) {
  assert(arena && shape && data);
  tf_raw_field f;
  bool known = true;
  int64_t count = 1;
  size_t bytes = 0;
  unsigned type = tf_raw_find(message, 1, &f) && f.value < TF_TYPE_END ? (unsigned)f.value : 0;
  *shape = (tfl_shape){.dtype = tfl_dtype_of(type)};
  if (shape->dtype == BASE_DTYPE_INVALID)
    return base_fail(err, XLAC_E_LOWER, "a tensor of %s: expected numbers or truth values", tf_type_word(type));
  if (tf_raw_find(message, 2, &f) && f.wire == 2) TRY(tfl_read_shape(f.bytes, &known, &shape->rank, shape->dims, err));
  for (uint32_t d = 0; d < shape->rank; d++)
    if (shape->dims[d] < 0 || !base_mul_i64(count, shape->dims[d], &count)) known = false;
  if (!known || !base_mul((size_t)count, 16, &bytes))
    return base_fail(err, XLAC_E_LOWER, "a tensor's shape is unknown in part or too large");
  *data = base_arena_aligned(arena, (size_t)count * base_dtype_bytes(shape->dtype) + 1, 64);
  if (!*data) return base_oom(err, "reading a tensor");
  return tensor_elements(message, shape->dtype, count, *data, err);
}
