/* stablehlo.torch_index_select: a gather of whole slices along one dimension. */
#include "legalize_deprecated_ops.h"

typedef struct select_plan {
  uint32_t rank, index_rank, dim, batch;
} select_plan;

static const ir_mattr *select_numbers(opt_rewriter *rw, const select_plan *s) {
  int64_t offset[IR_MAX_RANK], batch[IR_MAX_RANK], dim = s->dim, added = (int64_t)s->index_rank - s->batch;
  uint32_t n = 0;
  for (uint32_t d = 0; d < s->batch; d++) batch[d] = d;
  for (uint32_t d = s->batch; d < s->rank; d++)
    if (d != s->dim) offset[n++] = d < s->dim ? d : d - 1 + added;
  const struct {
    const char *name;
    const ir_mattr *value;
  } list[] = {{"offset_dims", ir_m_i64s(rw->m, n, offset)},
              {"collapsed_slice_dims", ir_m_i64s(rw->m, 1, &dim)},
              {"operand_batching_dims", ir_m_i64s(rw->m, s->batch, batch)},
              {"start_indices_batching_dims", ir_m_i64s(rw->m, s->batch, batch)},
              {"start_index_map", ir_m_i64s(rw->m, 1, &dim)},
              {"index_vector_dim", ir_m_i64(rw->m, s->index_rank)}};
  ir_mentry fields[6];
  uint32_t k = 0;
  for (int i = 0; i < 6; i++) {
    if ((i == 2 || i == 3) && s->batch == 0) continue;
    fields[k] = (ir_mentry){ir_intern(rw->m, list[i].name, strlen(list[i].name)), list[i].value};
    if (!fields[k].key || !fields[k].value) return NULL;
    k++;
  }
  return ir_m_struct(rw->m, "stablehlo", "gather", k, fields);
}

/* The attributes of ops written long ago are not verified: what does not fit stays. */
static bool select_start(const ir_op *op, select_plan *s) {
  const ir_type *x = ir_operand_type(op, 0), *index = ir_operand_type(op, 1), *to = op->type;
  if (!opt_is_static(x) || !opt_is_static(index) || !opt_is_static(to)) return false;
  int64_t dim = ir_m_get_int(op, "dim", 0), batch = ir_m_get_int(op, "batch_dims", 0);
  if (dim < 0) dim += x->rank;
  if (batch < 0) batch += index->rank;
  if (dim < 0 || dim >= x->rank || batch < 0 || batch > dim || batch > index->rank) return false;
  if (!base_dtype_is_integer((base_dtype)index->dtype) || to->dtype != x->dtype || index->quant) return false;
  *s = (select_plan){x->rank, index->rank, (uint32_t)dim, (uint32_t)batch};
  uint32_t n = 0;
  if (to->rank != x->rank - 1 + index->rank - s->batch) return false;
  for (uint32_t d = 0; d < s->batch; d++)
    if (x->dims[d] != index->dims[d]) return false;
  for (uint32_t d = 0; d < s->dim; d++)
    if (to->dims[n++] != x->dims[d]) return false;
  for (uint32_t d = s->batch; d < index->rank; d++)
    if (to->dims[n++] != index->dims[d]) return false;
  for (uint32_t d = s->dim + 1; d < x->rank; d++)
    if (to->dims[n++] != x->dims[d]) return false;
  return true;
}

int opt_torch_index_select(opt_rewriter *rw, ir_op *op, bool *changed) {
  select_plan s;
  int64_t sizes[IR_MAX_RANK];
  if (!select_start(op, &s)) return 0;
  const ir_type *x = ir_operand_type(op, 0);
  if (x->dims[s.dim] == 0) return 0; /* nothing to select from */
  for (uint32_t d = 0; d < s.rank; d++) sizes[d] = d < s.batch || d == s.dim ? 1 : x->dims[d];
  ir_value both[] = {opt_operand(op, 0), opt_operand(op, 1)};
  ir_value v = opt_make(rw, IR_OP_GATHER, op->type, 2, both);
  opt_set(rw, v, "dimension_numbers", select_numbers(rw, &s));
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, s.rank, sizes));
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}
