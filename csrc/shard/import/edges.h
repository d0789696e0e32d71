/* Making data-flow edges, and taking back what they hold: shared by the passes that add and sink edges and those that
 * turn calls into named computations and back. `rw` says where errors go; what is made belongs to the module. */
#ifndef XLAC_SHARD_IMPORT_EDGES_H
#define XLAC_SHARD_IMPORT_EDGES_H

#include "../common/common.h"

/* An sdy.data_flow_edge for every edge that op owns: of its results, and of a manual or named computation's arguments.
 */
XLAC_MUST_USE int shard_add_edges(opt_rewriter *rw, ir_op *op);
/* What op's edges hold as op's own shardings; the edges stay. */
XLAC_MUST_USE int shard_sink_edges(opt_rewriter *rw, ir_op *op);

/* What propagation has noted on op's edges becomes attributes of op: propagate/trace.c. */
XLAC_MUST_USE int shard_sink_notes(opt_rewriter *rw, ir_op *op, bool origins, bool edges);
/* Notes on constraints that have been applied since `marked` (by op id) said which ops had a rule. */
XLAC_MUST_USE int shard_note_constraints(ir_module *m, const uint8_t *marked, uint32_t n_ids, xlac_error *err);

#endif
