/* Notes on data flow edges go to the ops that own the edges, and constraints that were applied before propagation note
 * it.
 */
#include "../import/edges.h"
#include "trace.h"

/* The notes of the edges of n owners under `key`, those that have any, as op's attribute `to`. */
static bool sink_notes(ir_op *op, uint32_t n, const ir_value *owners, const char *key, const char *to) {
  ir_module *m = op->parent->module;
  const ir_mattr **list = BASE_ARRAY(&m->arena, const ir_mattr *, n ? n : 1);
  if (!list) return false;
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    const ir_op *edge = sdy_edge_op(owners[i]);
    const ir_mattr *note = edge ? ir_mattr_of(edge, key) : NULL;
    if (note) list[k++] = note;
  }
  const ir_mattr *array = ir_m_array(m, k, list);
  return array && ir_m_set(op, to, array);
}

static bool sink_owners(opt_rewriter *rw, ir_op *op, bool results, ir_value **owners, uint32_t *n) {
  bool computation = op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || op->opcode == IR_OP_SDY_NAMED_COMPUTATION;
  *n = results ? op->n_results : computation ? op->called[0]->n_params : 0;
  *owners = BASE_ARRAY(&rw->arena, ir_value, *n + 1);
  for (uint32_t i = 0; *owners && i < *n; i++)
    (*owners)[i] = results ? (ir_value){op, i} : (ir_value){op->called[0]->params[i], 0};
  return *owners != NULL;
}

int shard_sink_notes(opt_rewriter *rw, ir_op *op, bool origins, bool edges) {
  for (int results = 0; results < 2 && (origins || edges); results++) {
    ir_value *owners = NULL;
    uint32_t n = 0;
    bool ok = sink_owners(rw, op, results, &owners, &n);
    ok = ok && (!origins || sink_notes(op, n, owners, "sdy.sharding_origins",
                                       results ? "sdy.result_sharding_origins" : "sdy.block_arg_sharding_origins"));
    ok = ok && (!edges || sink_notes(op, n, owners, "sdy.propagation_edges",
                                     results ? "sdy.result_propagation_edges" : "sdy.block_arg_propagation_edges"));
    if (!ok) return base_oom(rw->err, "propagation's notes");
  }
  return 0;
}

/* --- applied constraints: their axes came from the result to the operand, a step each --- */

static bool sink_note_constraint(ir_op *op, int64_t step) {
  ir_module *m = op->parent->module;
  const sdy_sharding *s = sdy_of(ir_mattr_of(op, "sharding"), SDY_SHARDING);
  uint32_t n = 0;
  for (uint32_t d = 0; s && d < s->n_dims; d++) n += s->dims[d].axes.n;
  if (n == 0) return true;
  sdy_edge *edges = BASE_ARRAY(&m->arena, sdy_edge, n);
  sdy_edge_value *to = BASE_NEW(&m->arena, sdy_edge_value);
  if (!edges || !to) return false;
  *to = (sdy_edge_value){false, 0};
  n = 0;
  for (uint32_t d = 0; d < s->n_dims; d++) {
    for (uint32_t a = 0; a < s->dims[d].axes.n; a++) {
      uint32_t i = n++; /* by name */
      for (; i > 0 && strcmp(edges[i - 1].axis.name->s, s->dims[d].axes.v[a].name->s) > 0; i--) edges[i] = edges[i - 1];
      edges[i] = (sdy_edge){.axis = s->dims[d].axes.v[a], .from = {true, 0}, .n = 1, .to = to};
    }
  }
  sdy_step one = {step, n, edges};
  const sdy_edges *made = sdy_edges_make(m, 1, &one);
  return made && ir_m_set(op, "sdy.propagation_edges", sdy_attr(m, SDY_EDGES, made));
}

typedef struct sink_constraints {
  int64_t step;
  const uint8_t *marked; /* by op id, what had a rule before */
  uint32_t n_ids;
} sink_constraints;

static int sink_constraint(void *ctx, ir_op *op) {
  sink_constraints *x = ctx;
  if (op->opcode != IR_OP_SDY_SHARDING_CONSTRAINT || !ir_mattr_of(op, "sdy.sharding_rule")) return 0;
  if (op->id < x->n_ids && x->marked[op->id]) return 0;
  return sink_note_constraint(op, x->step++) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* `marked`: by op id, what had a rule before constraints were applied (a constraint that is applied gets one). Steps
 * are in the order of the text, inner ops first. */
int shard_note_constraints(ir_module *m, const uint8_t *marked, uint32_t n_ids, xlac_error *err) {
  sink_constraints x = {shard_trace_first_step(m), marked, n_ids};
  return shc_walk_module(m, true, sink_constraint, &x) == 0 ? 0 : base_oom(err, "propagation's notes");
}
