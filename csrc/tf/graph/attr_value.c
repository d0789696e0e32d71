/* AttrValue messages, read where they are whenever somebody asks, by a small reader without a schema (tf_raw_*). */
#include "graph_def.h"

/* --- fields --- */

/* NULL where the number is longer than 64 bits or cut short; else the byte after it. */
static const char *tf_raw_long_varint(const char *p, const char *end, uint64_t *out) {
  uint64_t v = 0;
  for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)*p++;
    v |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *out = v;
      return p;
    }
  }
  return NULL;
}

/* Most are of one byte. */
static inline const char *tf_raw_varint(const char *p, const char *end, uint64_t *out) {
  if (p >= end || (uint8_t)*p >= 0x80) return tf_raw_long_varint(p, end, out);
  *out = (uint8_t)*p;
  return p + 1;
}

/* Little endian, n bytes. */
static const char *tf_raw_fixed(const char *p, const char *end, size_t n, uint64_t *out) {
  assert(n <= 8 && p <= end);
  if ((size_t)(end - p) < n) return NULL;
  *out = 0;
  for (size_t i = 0; i < n; i++) *out |= (uint64_t)(uint8_t)p[i] << (8 * i);
  return p + n;
}

/* Wire types: 0 varint, 1 and 5 fixed, 2 bytes. Groups (3, 4) do not occur in TensorFlow's messages and are
 * malformed. */
bool tf_raw_next(const char **at, const char *end, tf_raw_field *out) {
  uint64_t tag = 0;
  const char *p = *at < end ? tf_raw_varint(*at, end, &tag) : NULL;
  if (!p) return false;
  *out = (tf_raw_field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
  if (out->wire == 0) {
    p = tf_raw_varint(p, end, &out->value);
  } else if (out->wire == 1 || out->wire == 5) {
    p = tf_raw_fixed(p, end, out->wire == 1 ? 8 : 4, &out->value);
  } else if (out->wire == 2) {
    p = tf_raw_varint(p, end, &out->value);
    if (!p || out->value > (size_t)(end - p)) return false;
    out->bytes = (base_slice){p, (size_t)out->value};
    p += out->value;
  } else {
    return false;
  }
  if (p) *at = p;
  return p != NULL;
}

/* The last field of a number counts, as protocol buffers merge; so the whole message is always walked. */
bool tf_raw_find(base_slice message, uint32_t number, tf_raw_field *out) {
  bool found = false;
  const char *at = message.p, *end = message.p + message.n;
  for (tf_raw_field f; at && tf_raw_next(&at, end, &f);) {
    if (f.number != number) continue;
    *out = f;
    found = true;
  }
  return found;
}

/* --- attributes --- */

base_slice tf_attr_find(tf_attrs attrs, const char *key) {
  assert(key != NULL && (attrs.n == 0 || attrs.v != NULL));
  size_t n = strlen(key);
  for (uint32_t i = 0; i < attrs.n; i++)
    if (attrs.v[i].key->n == n && memcmp(attrs.v[i].key->s, key, n) == 0) return attrs.v[i].value;
  return (base_slice){NULL, 0};
}

/* Whether an AttrValue holds the alternative of that field number: 2 s, 3 i, 4 f, 5 b, 6 type, 7 shape, 8 tensor,
 * 1 list, 9 placeholder, 10 func. */
static bool tf_attr_field(base_slice value, uint32_t number, uint8_t wire, tf_raw_field *f) {
  return value.p && tf_raw_find(value, number, f) && f->wire == wire;
}

bool tf_attr_type(base_slice value, unsigned *out) {
  assert(out != NULL);
  tf_raw_field f;
  if (!tf_attr_field(value, 6, 0, &f) || f.value > 255) return false;
  *out = (unsigned)f.value;
  return true;
}

bool tf_attr_int(base_slice value, int64_t *out) {
  tf_raw_field f;
  if (!tf_attr_field(value, 3, 0, &f)) return false;
  *out = (int64_t)f.value;
  return true;
}

bool tf_attr_bool(base_slice value, bool *out) {
  tf_raw_field f;
  if (!tf_attr_field(value, 5, 0, &f)) return false;
  *out = f.value != 0;
  return true;
}

/* A fixed32: the bits of an IEEE single. */
bool tf_attr_float(base_slice value, float *out) {
  tf_raw_field f;
  if (!tf_attr_field(value, 4, 5, &f)) return false;
  uint32_t bits = (uint32_t)f.value;
  memcpy(out, &bits, sizeof bits);
  return true;
}

/* For the alternatives that are strings or messages. */
static bool tf_attr_bytes(base_slice value, uint32_t number, base_slice *out) {
  tf_raw_field f = {0};
  if (!tf_attr_field(value, number, 2, &f)) return false;
  *out = f.bytes;
  return true;
}

bool tf_attr_string(base_slice value, base_slice *out) {
  return tf_attr_bytes(value, 2, out);
}
bool tf_attr_placeholder(base_slice value, base_slice *out) {
  return tf_attr_bytes(value, 9, out);
}
bool tf_attr_tensor(base_slice value, base_slice *out) {
  return tf_attr_bytes(value, 8, out);
}
bool tf_attr_shape(base_slice value, base_slice *out) {
  return tf_attr_bytes(value, 7, out);
}

/* A NameAttrList: 1 its name, 2 the attributes of the call, which tf_find_callees reads. */
bool tf_attr_func(base_slice value, base_slice *name, base_slice *message) {
  tf_raw_field f;
  if (!tf_attr_bytes(value, 10, message)) return false;
  *name = tf_raw_find(*message, 1, &f) && f.wire == 2 ? f.bytes : (base_slice){"", 0};
  return true;
}

/* Numbers of a packed or unpacked list, in field `number` of AttrValue.ListValue. `*at` walks over the list's
 * bytes; within a packed run it lies inside the run, so the runs' ends are found again from the beginning: lists
 * of types are short. */
static bool tf_attr_next_number(base_slice value, uint32_t number, const char **at, uint64_t *out) {
  base_slice list;
  if (!value.p || !tf_attr_bytes(value, 1, &list) || list.n == 0) return false;
  const char *p = list.p, *end = list.p + list.n;
  if (!*at) *at = list.p;
  for (tf_raw_field f; p < end;) {
    const char *begin = p;
    if (!tf_raw_next(&p, end, &f)) return false;
    if (f.number != number || p <= *at) continue;
    if (f.wire == 0 && begin >= *at) {
      *at = p;
      *out = f.value;
      return true;
    }
    const char *from = *at > f.bytes.p ? *at : f.bytes.p;
    if (f.wire != 2 || from >= f.bytes.p + f.bytes.n) continue;
    *at = tf_raw_varint(from, f.bytes.p + f.bytes.n, out);
    return *at != NULL;
  }
  return false;
}

/* What no uint8_t holds is 0, which is not a type and is refused where types are checked. */
bool tf_attr_next_type(base_slice value, const char **at, unsigned *out) {
  uint64_t v = 0;
  if (!tf_attr_next_number(value, 6, at, &v)) return false;
  *out = v < 256 ? (unsigned)v : 0;
  return true;
}

bool tf_attr_next_int(base_slice value, const char **at, int64_t *out) {
  uint64_t v = 0;
  if (!tf_attr_next_number(value, 3, at, &v)) return false;
  *out = (int64_t)v;
  return true;
}

/* Walks the list: counts are asked for once a node. */
uint32_t tf_attr_count_types(base_slice value) {
  uint32_t n = 0;
  const char *at = NULL;
  for (unsigned type; tf_attr_next_type(value, &at, &type);) n++;
  return n;
}

/* Field 9 of AttrValue.ListValue: NameAttrLists; `*at` is between two of them. */
bool tf_attr_next_func(base_slice value, const char **at, base_slice *name) {
  base_slice list;
  if (!value.p || !tf_attr_bytes(value, 1, &list)) return false;
  if (!*at) *at = list.p;
  for (tf_raw_field f; tf_raw_next(at, list.p + list.n, &f);) {
    if (f.number != 9 || f.wire != 2) continue;
    tf_raw_field g;
    *name = tf_raw_find(f.bytes, 1, &g) && g.wire == 2 ? g.bytes : (base_slice){"", 0};
    return true;
  }
  return false;
}

/* A missing attribute, or one of another kind, is not true. */
bool tf_attr_is_true(tf_attrs attrs, const char *key) {
  bool b = false;
  return tf_attr_bool(tf_attr_find(attrs, key), &b) && b;
}
