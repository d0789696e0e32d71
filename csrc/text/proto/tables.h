/* Where attributes, element types and words stand in HloModuleProto. Constant tables, shared by reader and writer. */
#ifndef XLAC_TEXT_PROTO_TABLES_H
#define XLAC_TEXT_PROTO_TABLES_H

#include "../../ir/ir.h"

/* How a plain value stands in its field. Enums of words are numbers in a message (fft_type=IFFT is 1); a list of one
 * is how HLO's text has what a message has as a plain number, such as the dimension of a sort. */
typedef enum proto_form {
  PROTO_FORM_NONE,
  PROTO_FORM_INT,     /* a number */
  PROTO_FORM_PRESENT, /* a number, 0 too where it is there */
  PROTO_FORM_BOOL,
  PROTO_FORM_FLOAT,
  PROTO_FORM_STRING,
  PROTO_FORM_WORD,  /* a NAME as a string */
  PROTO_FORM_ENUM,  /* a NAME as a number */
  PROTO_FORM_ENUMS, /* NAMES as numbers */
  PROTO_FORM_INTS,
  PROTO_FORM_ONE,    /* an INT as a list of one */
  PROTO_FORM_MESSAGE /* a message, or several fields, of its own kind */
} proto_form;

/* One attribute: its field, within message `inner` of message `outer` of the instruction (0: none). `only`: of this
 * opcode (0: of any; rows with an opcode stand before those without). `outer` and `inner` are fields of messages in
 * which the field lies, 0 for none; `only` is the one opcode that the row is for, 0 for all. */
typedef struct proto_attr {
  uint16_t key, only;
  uint8_t outer, inner, field, form;
} proto_attr;

/* NULL where the attribute has no place in the protocol. Rows are searched from the first: those of one opcode come
 * before those of any. */
const proto_attr *proto_attr_of(unsigned opcode, unsigned key);

/* xla.PrimitiveType. Numbers of types that are not a dtype stand in the enum below. */
int64_t proto_dtype_number(base_dtype t);
/* And back; BASE_DTYPE_INVALID for a number that is not an element type's. */
base_dtype proto_dtype_of(int64_t number);
/* Numbers of xla.PrimitiveType that are not element types. */
enum { PROTO_TUPLE = 13, PROTO_OPAQUE = 14, PROTO_TOKEN = 17, PROTO_BUFFER = 34 };
/* How a literal's elements are kept, and in which field of LiteralProto. */
uint32_t proto_literal_field(base_dtype t, base_proto_values *how);

/* xla.OpMetadata: its plain fields. */
typedef struct proto_metadata_field {
  uint8_t number;
  bool is_string;
  uint16_t offset; /* of the member of ir_metadata */
} proto_metadata_field;
extern const proto_metadata_field proto_metadata_fields[];
extern const uint32_t proto_n_metadata_fields;

/* Gather and the like name their fields through proto_attr_of; these are the fields of a window dimension etc. */
enum { PROTO_MAX_DEPTH = 100 };

/* The order of an array's elements in memory: for each element in order of the layout, its row-major place. */
typedef struct proto_walk {
  uint32_t rank;
  int64_t index[IR_MAX_RANK], stride[IR_MAX_RANK], size[IR_MAX_RANK]; /* minor first */
} proto_walk;
/* Whether the layout orders the elements otherwise than row-major; the walk is set up then. */
bool proto_walk_start(proto_walk *w, const ir_type *t);
/* Moves on; returns the row-major place of the element after the one at `place`. */
int64_t proto_walk_next(proto_walk *w, int64_t place);

#endif
