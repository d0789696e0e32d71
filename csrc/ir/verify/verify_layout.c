/* Layouts against the shapes they belong to. */
#include "verify.h"

static int fail_layout(const ir_type *t, xlac_error *err, const char *what) {
  return base_fail(err, XLAC_E_VERIFY_LAYOUT, "layout of %s: %s", IR_SHOW(t), what);
}

static int check_order(const ir_type *t, const ir_layout *l, xlac_error *err) {
  assert(t->rank <= IR_MAX_RANK);
  if (l->rank != t->rank) return fail_layout(t, err, "minor_to_major must list every dimension once");
  bool seen[IR_MAX_RANK] = {false};
  for (uint32_t i = 0; i < l->rank; i++) {
    int64_t d = l->minor_to_major[i];
    if (d < 0 || d >= t->rank) return fail_layout(t, err, "minor_to_major names a dimension that does not exist");
    if (seen[d]) return fail_layout(t, err, "minor_to_major names a dimension twice");
    seen[d] = true;
  }
  return 0;
}

static int check_tiles(const ir_type *t, const ir_layout *l, xlac_error *err) {
  for (uint32_t i = 0; i < l->n_tiles; i++)
    for (uint32_t d = 0; d < l->tiles[i].rank; d++)
      if (l->tiles[i].dims[d] != IR_TILE_COMBINE && l->tiles[i].dims[d] <= 0)
        return fail_layout(t, err, "tile sizes must be positive");
  return 0;
}

static int check_splits(const ir_type *t, const ir_layout *l, xlac_error *err) {
  assert(l->rank == t->rank);
  for (uint32_t i = 0; i < l->n_splits; i++) {
    const ir_split *s = &l->splits[i];
    if (s->dimension < 0 || s->dimension >= t->rank)
      return fail_layout(t, err, "a split names a dimension that does not exist");
    int64_t last = 0;
    for (uint32_t k = 0; k < s->n; k++) {
      if (s->indices[k] <= last || s->indices[k] >= t->dims[s->dimension])
        return fail_layout(t, err, "split indices must rise strictly inside the dimension");
      last = s->indices[k];
    }
  }
  return 0;
}

static bool is_dense(const ir_layout *l) {
  for (uint32_t i = 0; l->levels && i < l->rank; i++)
    if (l->levels[i].form != 'D') return false;
  return true;
}

static int check_tensor_layout(const ir_type *t, xlac_error *err) {
  const ir_layout *l = t->layout;
  if (!l) return 0;
  TRY(check_order(t, l, err));
  TRY(check_tiles(t, l, err));
  TRY(check_splits(t, l, err));
  if (is_dense(l) && (l->index_type || l->pointer_type))
    return fail_layout(t, err, "index and pointer types are for sparse layouts");
  if (l->tail_padding <= 0) return fail_layout(t, err, "tail padding L(n) must be positive");
  return l->physical ? ir_verify_layouts(l->physical, err) : 0;
}

int ir_verify_layouts(const ir_type *t, xlac_error *err) {
  if (t->kind == IR_TYPE_TENSOR) return check_tensor_layout(t, err);
  if (t->kind == IR_TYPE_BUFFER) return ir_verify_layouts(t->inner, err);
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(ir_verify_layouts(t->elements[i], err));
  return 0;
}
