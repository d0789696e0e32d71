/* Internal to the writer of HloModuleProto. Everything appends to w->out; running out of memory shows there, other
 * failures are returned.
 *
 * Fields are written in the order of their numbers where nothing else is said, as XLA's serializer does. Ids are
 * made of numbers in lists, so that a reader which sorts by id finds the order of the module again. */
#ifndef XLAC_TEXT_PROTO_WRITE_H
#define XLAC_TEXT_PROTO_WRITE_H

#include "../../base/map.h"
#include "proto.h"
#include "tables.h"
#include "wire.h"

/* One module being written. */
typedef struct proto_writer {
  base_text *out;
  const ir_module *m;
  base_arena arena;
  uint32_t *computation_numbers; /* by computation id: its number in the order of the module's list */
  uint32_t *op_numbers;          /* by op id: its number in its computation */
  uint32_t n_payloads;
  base_text payloads; /* field 22 of the module, as written */
  bool *fused;        /* by computation id: called by a fusion */
  ir_module *scratch; /* what texts that are read on the way are made in; NULL until needed */
  uint32_t depth;     /* of modules within modules */
  xlac_error *err;
} proto_writer;

/* `depth`: how many modules this one stands in. */
XLAC_MUST_USE int proto_write_module(base_text *out, const ir_module *m, uint32_t depth, xlac_error *err);
/* write_type.c */
void proto_write_type(base_text *out, uint32_t number, const ir_type *t);
/* A literal as the field `number`. */
void proto_write_literal(base_text *out, uint32_t number, const ir_literal *l);
/* write_op.c */
XLAC_MUST_USE int proto_write_sharding(proto_writer *w, uint32_t number, const ir_sharding *s);
XLAC_MUST_USE int proto_write_groups(proto_writer *w, const ir_op *op);
/* OpMetadata as the field `number`. */
void proto_write_metadata(proto_writer *w, uint32_t number, const ir_metadata *m);
/* write_text.c: what the IR keeps as text */
XLAC_MUST_USE int proto_write_named_sharding(proto_writer *w, const base_istr *text);
XLAC_MUST_USE int proto_write_mesh_groups(proto_writer *w, const base_istr *text);
XLAC_MUST_USE int proto_write_origin(proto_writer *w, const base_istr *text);
XLAC_MUST_USE int proto_write_recovery_table(proto_writer *w, const base_istr *text);
/* write_op.c */
XLAC_MUST_USE int proto_write_op(proto_writer *w, const ir_op *op);
/* The id of an op: its computation's number in the upper 32 bits, its own in the lower, as XLA numbers them. */
int64_t proto_op_id(const proto_writer *w, const ir_op *op);
void proto_write_dict(base_text *out, uint32_t number, const ir_dict *d);

#endif
