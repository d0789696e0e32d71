/* What the passes need to know of ops beyond their traits, and edits that stay linear. */
#ifndef XLAC_PASSES_EFFECTS_H
#define XLAC_PASSES_EFFECTS_H

#include "../ir/ir.h"

enum {
  OPT_EFFECT = 1,      /* something happens besides the result: must run, once */
  OPT_RANDOM = 2,      /* two runs may differ */
  OPT_ENVIRONMENT = 4, /* depends on who runs it: collectives, ids, custom calls */
  OPT_ASYNC = 8        /* part of an async chain, whose links must stay as they are */
};

/* Facts of a module as it stands; made anew after computations change. */
typedef struct opt_facts {
  base_arena arena;
  ir_computation **order; /* callees first */
  uint32_t n_order;
  uint8_t *of_computation; /* by computation id: the union over its ops */
  uint8_t *in_edge;        /* by op id: the op has control predecessors or is one */
  uint32_t n_ids;
} opt_facts;

XLAC_MUST_USE int opt_facts_make(opt_facts *f, const ir_module *m, xlac_error *err);
void opt_facts_free(opt_facts *f);
/* Of the op itself and all it calls. */
unsigned opt_op_facts(const opt_facts *f, const ir_op *op);
static inline bool opt_in_edge(const opt_facts *f, const ir_op *op) {
  return op->id < f->n_ids ? f->in_edge[op->id] != 0 : op->n_control_preds != 0;
}
/* false once it has been removed. */
static inline bool opt_is_linked(const ir_op *op) {
  return op->prev || op->parent->first == op;
}
/* The order to visit c's ops in: the schedule, or post-order. In `arena`; NULL when out of memory. */
ir_op **opt_op_order(const ir_computation *c, base_arena *arena, uint32_t *n);
/* Puts an unscheduled computation's list in post-order: the order its text would give it. false when out of memory. */
XLAC_MUST_USE bool opt_sort_ops(ir_computation *c, base_arena *arena);
/* By computation id, 1 where the entry or a computation of `roots` reaches it. roots: n_roots bytes by id, 0 where the
 * computation is one; may be NULL. In `arena`; NULL when out of memory. */
uint8_t *opt_reachable(const ir_module *m, const uint8_t *roots, uint32_t n_roots, base_arena *arena);
/* By computation id: 1 for those that ops of the opcode call, such as what async starts wrap, which may hold one op
 * alone. In the arena; NULL: out of memory. */
uint8_t *opt_called_by(const ir_module *m, base_arena *arena, ir_opcode opcode);

#endif
