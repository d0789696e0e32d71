/* Protocol buffers on the wire: fields of numbers and lengths. No schema here: a message is split into its fields,
 * and whoever knows the message asks for them by number. Fields of an unknown number or of an unexpected wire type
 * are passed over, as the protocol wants; a singular message that occurs several times is merged.
 *
 *   proto_open_sub(&s, in, 15, &window);        the message in field 15 of `in`, or an empty one
 *   while (proto_next(&s, window, 1, PROTO_LENGTH, &at, &f)) ...    its repeated field 1
 *   proto_close(&s, window);
 * Opening a message costs one pass over its bytes, asking for a field one over its fields. Bytes are never copied. */
#ifndef XLAC_TEXT_PROTO_WIRE_H
#define XLAC_TEXT_PROTO_WIRE_H

#include "../../base/str.h"

/* The lower three bits of a tag. All other numbers are refused. */
typedef enum proto_wire_type {
  PROTO_VARINT = 0,
  PROTO_FIXED64 = 1,
  PROTO_LENGTH = 2,
  PROTO_FIXED32 = 5
} proto_wire_type;

/* A field as it stands on the wire, value still undecoded where it has a length. Split off, not understood: what the
 * bytes mean is up to whoever asks for the field. */
typedef struct proto_field {
  uint32_t number;
  uint8_t wire;     /* proto_wire_type */
  uint64_t value;   /* the number, or the count of bytes at p */
  const uint8_t *p; /* where the value begins */
} proto_field;

/* A run of fields on the stack of its source. Its fields lie on the source's stack, in the order of the message. */
typedef struct proto_message {
  uint32_t first, n;
} proto_message;

BASE_VEC(proto_fields, proto_field);
BASE_VEC(proto_numbers, int64_t);

/* Bytes being read. Open messages lie on one stack and are closed in the opposite order. The bytes being read.
 * Messages that are open have their fields on the one stack, so that reading allocates little; `numbers` is the same
 * for lists. */
typedef struct proto_source {
  const uint8_t *base, *end;
  base_alloc alloc;
  proto_fields fields;
  proto_numbers numbers;
  uint32_t depth, max_depth;
  xlac_error *err;
} proto_source;

/* Frees the lists; the bytes are the caller's. */
void proto_source_close(proto_source *s);
/* Fails with the offset of `at` in the message. */
int proto_fail(proto_source *s, const uint8_t *at, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
int proto_no_memory(proto_source *s);

/* The fields of the n bytes at p. Closed by proto_close, which may be left out once something has failed. Nesting
 * beyond s->max_depth is an error. */
XLAC_MUST_USE int proto_open(proto_source *s, const uint8_t *p, size_t n, proto_message *out);
/* All occurrences of message field `number`, merged; an empty message where there is none. */
XLAC_MUST_USE int proto_open_sub(proto_source *s, proto_message in, uint32_t number, proto_message *out);
/* One occurrence. */
XLAC_MUST_USE int proto_open_field(proto_source *s, proto_field f, proto_message *out);
/* Gives back the room of the fields of `m`. Messages are closed in the reverse order of their opening. */
void proto_close(proto_source *s, proto_message m);

/* The next field of that number and wire type at or after index *at, which moves past it. */
bool proto_next(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire, uint32_t *at,
                proto_field *out);
/* The last one, which counts. */
bool proto_find(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire, proto_field *out);
uint32_t proto_count(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire);
/* Numbers of 32 bits come sign-extended, as the protocol writes them. */
int64_t proto_int(const proto_source *s, proto_message m, uint32_t number);   /* 0 where absent */
double proto_double(const proto_source *s, proto_message m, uint32_t number); /* 0 where absent */
float proto_float(const proto_source *s, proto_message m, uint32_t number);
base_slice proto_bytes(const proto_source *s, proto_message m, uint32_t number); /* {NULL, 0} where absent */
/* Appends a repeated number, packed or not, to s->numbers; *from is where it begins. The caller drops it. Packed
 * numbers are a field with a length; both kinds may be mixed. */
XLAC_MUST_USE int proto_list(proto_source *s, proto_message m, uint32_t number, uint32_t *from);

/* --- writing: appends to a text; failures show there --- */

void proto_put_varint(base_text *out, uint64_t v);
void proto_put_int(base_text *out, uint32_t number, int64_t v); /* nothing for 0 */
void proto_put_int_always(base_text *out, uint32_t number, int64_t v);
void proto_put_double(base_text *out, uint32_t number, double v); /* nothing for 0 */
void proto_put_float(base_text *out, uint32_t number, float v);
void proto_put_bytes(base_text *out, uint32_t number, const char *p, size_t n);     /* nothing when empty */
void proto_put_list(base_text *out, uint32_t number, const int64_t *v, uint32_t n); /* packed; nothing when empty */
/* A message's fields go between the two. proto_end takes what proto_begin gave. */
size_t proto_begin(base_text *out, uint32_t number);
void proto_end(base_text *out, size_t begin);

static inline void proto_put_str(base_text *out, uint32_t number, const base_istr *s) {
  if (s) proto_put_bytes(out, number, s->s, s->n);
}

#endif
