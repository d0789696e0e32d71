/* The debugging attribute that says how axes came where they are. */
#include "verify_sdy.h"

static bool sdyv_edge_value(const ir_op *op, sdy_edge_value e, ir_value *out) {
  uint32_t n = e.result ? op->n_results : op->n_operands;
  if (e.index < 0 || e.index >= n) return false;
  *out = e.result ? (ir_value){(ir_op *)(uintptr_t)op, (uint32_t)e.index}
                  : (ir_value){op->operands[e.index].op, op->operands[e.index].index};
  return true;
}

/* Takes a note of the mesh of a value that an edge names. False where it is another than before. */
static bool sdyv_note_mesh(sdyv *v, sdy_edge_value e, const sdy_mesh **mesh) {
  ir_value value;
  if (!sdyv_edge_value(v->op, e, &value)) return true;
  const sdy_sharding *s = sdy_shown(v->m, value);
  const sdy_mesh *found = s ? sdyv_mesh(v, s) : NULL;
  if (!found) return true;
  if (!*mesh || sdy_mesh_is_empty(*mesh)) *mesh = found;
  return sdy_mesh_is_empty(found) || sdy_mesh_equal(found, *mesh);
}

static bool sdyv_common_edge_mesh(sdyv *v, const sdy_edges *edges, const sdy_mesh **mesh) {
  bool common = true;
  for (uint32_t i = 0; i < edges->n; i++)
    for (uint32_t k = 0; k < edges->v[i].n; k++) {
      const sdy_edge *e = &edges->v[i].edges[k];
      common = sdyv_note_mesh(v, e->from, mesh) && common;
      for (uint32_t t = 0; t < e->n; t++) common = sdyv_note_mesh(v, e->to[t], mesh) && common;
    }
  return common;
}

static int sdyv_check_edge_value(const sdyv *v, sdy_edge_value e) {
  ir_value value;
  if (v->op->opcode == IR_OP_SDY_FUNC_DATA_FLOW_EDGE || sdyv_edge_value(v->op, e, &value)) return 0;
  return sdyv_fail(v, "expected a value ref to have %s index in range [0, %u), got: %lld",
                   e.result ? "a result" : "an operand", e.result ? v->op->n_results : v->op->n_operands,
                   (long long)e.index);
}

int sdyv_check_edges(sdyv *v, const sdy_edges *edges) {
  const sdy_mesh *mesh = NULL;
  bool common = sdyv_common_edge_mesh(v, edges, &mesh);
  if (!mesh) return sdyv_fail(v, "expected propagation edges attr to reference a sharding.");
  if (!common) return sdyv_fail(v, "expected a common mesh for propagation edges attr.");
  for (uint32_t i = 0; i < edges->n; i++)
    for (uint32_t k = 0; k < edges->v[i].n; k++) {
      const sdy_edge *e = &edges->v[i].edges[k];
      if (sdy_mesh_find(mesh, e->axis.name) < 0)
        return sdyv_fail(v, "expected axis ref to be in one of the meshes: \"%s\"", e->axis.name->s);
      TRY(sdyv_check_edge_value(v, e->from));
      for (uint32_t t = 0; t < e->n; t++) TRY(sdyv_check_edge_value(v, e->to[t]));
    }
  return 0;
}
