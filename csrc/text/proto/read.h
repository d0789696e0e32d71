/* Internal to the reader of HloModuleProto: its state, and what its files do for one another. Every function that
 * reads a message takes it open, and leaves the stack of fields as it was. */
#ifndef XLAC_TEXT_PROTO_READ_H
#define XLAC_TEXT_PROTO_READ_H

#include "../../base/map.h"
#include "proto.h"
#include "tables.h"
#include "wire.h"

BASE_VEC(proto_types, const ir_type *);
BASE_VEC(proto_pointers, const void *);

/* Everything that reading a module carries along. Lists of unknown length grow on the stacks and are copied out;
 * each user sets them back to where they were. One module being read. The lists at the end are stacks, too: whoever
 * pushes onto them takes it off again. */
typedef struct proto_reader {
  proto_source s;
  ir_module *m;
  bool strict;                                   /* text_parse_options.strict */
  proto_message module;                          /* open for as long as the reader is */
  base_map computations;                         /* id -> ir_computation */
  base_map ops;                                  /* id -> ir_op, of the computation being read */
  base_map op_names, computation_names, wrapped; /* interned name, or computation, seen */
  proto_types types;
  proto_pointers pointers;
  base_text bytes; /* a text being put together */
} proto_reader;

/* --- read_type.c --- */
/* Types are interned in the module. */
XLAC_MUST_USE int proto_read_type(proto_reader *r, proto_message shape, const ir_type **out);
/* The type in message field `number`; an error where there is none. */
XLAC_MUST_USE int proto_read_type_in(proto_reader *r, proto_message in, uint32_t number, const ir_type **out);
/* All types in repeated field `number`, on r->types from *from on. The caller drops them. */
XLAC_MUST_USE int proto_read_types(proto_reader *r, proto_message in, uint32_t number, uint32_t *from);
/* Elements come out in row-major order. */
XLAC_MUST_USE int proto_read_literal(proto_reader *r, proto_message in, const ir_literal **out);

/* --- read_sharding.c --- */
/* In XLA's normal form, as the reader of text gives it. */
XLAC_MUST_USE int proto_read_sharding(proto_reader *r, proto_message in, const ir_sharding **out);
/* false in *present where the instruction has no groups. */
XLAC_MUST_USE int proto_read_groups(proto_reader *r, proto_message op, const ir_groups **out, bool *present);
/* A stack frame that the tables lack becomes none. */
XLAC_MUST_USE int proto_read_metadata(proto_reader *r, proto_message in, const ir_metadata **out);

/* --- read_attr.c --- */
/* All attributes of an instruction whose operands and called computations are there. */
XLAC_MUST_USE int proto_read_attrs(proto_reader *r, proto_message in, ir_op *op);
/* read_attr.c: the value of an attribute that is a message; its key becomes NONE where nothing is said. */
XLAC_MUST_USE int proto_read_message_value(proto_reader *r, proto_message in, const ir_op *op, const proto_attr *row,
                                           ir_attr *a);
/* read_attr.c */
XLAC_MUST_USE int proto_read_origin_value(proto_reader *r, proto_message in, const ir_op *op, ir_attr *a);

/* --- read_attr.c --- */
XLAC_MUST_USE int proto_read_dict(proto_reader *r, proto_message in, uint32_t number, const ir_dict **out);
/* A list of numbers, in the module's arena. */
XLAC_MUST_USE int proto_read_ints(proto_reader *r, proto_message in, uint32_t number, const ir_ints **out);
XLAC_MUST_USE int proto_read_array(proto_reader *r, proto_message in, uint32_t number, uint32_t *n,
                                   const int64_t **out);
/* The bytes of `number`, maybe none. */
XLAC_MUST_USE int proto_read_any_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out);
/* Interned; NULL for an empty one. */
XLAC_MUST_USE int proto_read_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out);
/* The bytes at s need no end. */
XLAC_MUST_USE int proto_intern(proto_reader *r, const char *s, size_t n, const base_istr **out);

/* --- read_op.c --- */
/* Makes the computation with all its ops, in the order of their ids or of the schedule. */
XLAC_MUST_USE int proto_read_computation(proto_reader *r, proto_message in);
XLAC_MUST_USE int proto_read_module(proto_reader *r);
/* Where message `m` lies, for errors. */
const uint8_t *proto_place(const proto_reader *r, proto_message m);

#endif
