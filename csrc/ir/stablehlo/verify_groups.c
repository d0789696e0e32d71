/* Collectives: replica groups, channels, shapes.
 *
 * Groups are a dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, padded with -1 where groups may differ in size, or axes of
 * a mesh (replica_group_mesh_axes). How many participants there are is not known here, so ids are checked against one
 * another only. */
#include "verify.h"

/* A mesh by its symbol must exist; one that is written in place must have the axes that are named. */
static int sv_check_mesh_groups(const sv *v, const ir_mattr *a) {
  const ir_mattr *mesh = ir_m_field(a, "mesh"), *axes = ir_m_field(a, "axes");
  if (mesh && mesh->kind == IR_M_SYMBOL) {
    if (sv_symbol_exists(v, mesh->v.list->v[0]->str->s)) return 0;
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL, "names the mesh @%s, which the module does not have",
                        mesh->v.list->v[0]->str->s);
  }
  if (!mesh || mesh->kind != IR_M_STRUCT || strcmp(mesh->name, "mesh") != 0)
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL,
                        "has replica groups of no mesh; expected @name or #stablehlo.mesh");
  const ir_mattr *all = ir_m_field(mesh, "axes");
  for (uint32_t i = 0; axes && axes->kind == IR_M_ARRAY && i < axes->v.list->n; i++) {
    const ir_mattr *axis = axes->v.list->v[i];
    const ir_mattr *name = axis->kind == IR_M_STRUCT ? ir_m_field(axis, "name") : NULL;
    bool found = false;
    if (!name) return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL, "has an axis %u that is not an axis_ref", i);
    for (uint32_t k = 0; all && all->kind == IR_M_ARRAY && k < all->v.list->n; k++) {
      const ir_mattr *there = all->v.list->v[k]->kind == IR_M_STRUCT ? ir_m_field(all->v.list->v[k], "name") : NULL;
      found = found || (there && ir_mattr_equal(there, name));
    }
    if (!found)
      return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL, "names the axis \"%s\", which its mesh does not have",
                          name->str ? name->str->s : "");
  }
  return 0;
}

/* What an op asks of its groups. */
typedef struct sv_group_rules {
  bool same_size;   /* no -1 */
  bool complete;    /* every number below their count is there */
  bool global;      /* use_global_device_ids */
  int64_t expected; /* size of a group, or -1 */
} sv_group_rules;

/* all_gather_c2 and c4. Ids are below their count when they are complete, so an array of marks does. */
static int sv_check_ids(const sv *v, sv_ints ids, const sv_group_rules *rules) {
  uint32_t n = ids.n, used = 0;
  int64_t out_of_range = -1;
  bool *seen = base_arena_zalloc(v->arena, n + 1u);
  if (!seen) return sv_oom(v);
  for (uint32_t i = 0; i < n; i++) {
    int64_t id = ids.v[i];
    if (id == -1 && !rules->same_size) continue;
    if (id < 0) return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_gather_c4", "has replica id %lld", (long long)id);
    used++;
    if (id >= n) {
      out_of_range = id;
      continue;
    }
    if (seen[id])
      return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_gather_c2", "has replica id %lld twice", (long long)id);
    seen[id] = true;
  }
  if (!rules->complete) return 0;
  for (uint32_t i = 0; i < used; i++)
    if (!seen[i])
      return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_gather_c4", "lacks replica id %u in its groups%s", i,
                          out_of_range >= 0 ? ", which has larger ones" : "");
  return 0;
}

static int sv_check_groups(const sv *v, const sv_group_rules *rules) {
  assert(rules);
  const ir_mattr *a = ir_mattr_of(v->op, "replica_groups");
  if (a->kind == IR_M_STRUCT) return sv_check_mesh_groups(v, a);
  if (a->type->rank != 2)
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_gather_i3", "has replica groups of %s; expected rank 2",
                        SV_SHOW(a->type));
  int64_t groups = a->type->dims[0];
  sv_ints ids = sv_ints_of(v, a);
  if (!ids.v)
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL, "has replica groups that are not a list of integers");
  if (rules->global && ids.n == 0)
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, NULL,
                        "has no replica groups; expected some with use_global_device_ids");
  TRY(sv_check_ids(v, ids, rules));
  if (rules->expected < 0 || (groups > 0 && (int64_t)ids.n / groups == rules->expected)) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_to_all_c8", "has replica groups of %s; expected groups of %lld",
                      SV_SHOW(a->type), (long long)rules->expected);
}

/* A unit attribute: there or not. */
static bool sv_uses_global_ids(const sv *v) {
  return ir_mattr_of(v->op, "use_global_device_ids") != NULL;
}

/* `least` is 0 or 1, as upstream asks of the op. */
static int sv_check_channel(const sv *v, int64_t least) {
  int64_t id = sv_field_int(ir_mattr_of(v->op, "channel_handle"), "handle", 0);
  if (!sv_uses_global_ids(v) || id >= least) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "all_reduce_c4",
                      "has channel %lld; expected %lld or more with use_global_device_ids", (long long)id,
                      (long long)least);
}

/* --- all_gather, all_to_all --- */

/* all_gather_c1 and c6: only the gathered dimension grows, by a whole factor. */
static int sv_check_gathered(const sv *v, uint32_t i, int64_t d) {
  const ir_type *a = sv_in(v, i), *b = sv_result(v, i);
  if (d >= a->rank)
    return sv_fail(v, "all_gather_c1", "has all_gather_dim = %lld; expected one below the rank %u", (long long)d,
                   a->rank);
  int64_t from = sv_dim(a, (uint32_t)d);
  if (from == 0) return sv_fail(v, "all_gather_c6", "has size 0 in the gathered dimension");
  bool fits = a->rank == b->rank;
  for (uint32_t k = 0; fits && k < a->rank; k++) fits = k == d || sv_dims_fit(sv_dim(a, k), sv_dim(b, k));
  int64_t to = fits ? sv_dim(b, (uint32_t)d) : 0;
  if (fits && (from == SV_DYNAMIC || to == SV_DYNAMIC || to % from == 0)) return 0;
  return sv_fail(v, "all_gather_c6",
                 "has an operand of %s and a result of %s; expected a multiple in dimension %lld, the rest the same",
                 SV_SHOW(a), SV_SHOW(b), (long long)d);
}

/* The factor itself depends on the groups' size, which upstream does not compare either. */
int sv_verify_all_gather(const sv *v) {
  sv_group_rules rules = {.same_size = true, .complete = true, .global = sv_uses_global_ids(v), .expected = -1};
  TRY(sv_check_groups(v, &rules));
  TRY(sv_check_channel(v, 0));
  for (uint32_t i = 0; i < v->op->n_operands; i++)
    TRY(sv_check_gathered(v, i, ir_m_get_int(v->op, "all_gather_dim", 0)));
  return 0;
}

/* split_dimension is cut into split_count parts, which are strung together along concat_dimension. */
int sv_infer_all_to_all(const sv *v) {
  int64_t split = ir_m_get_int(v->op, "split_dimension", 0), concat = ir_m_get_int(v->op, "concat_dimension", 0);
  int64_t n = ir_m_get_int(v->op, "split_count", 1);
  if (v->op->n_operands != v->op->n_results)
    return sv_fail(v, NULL, "has %u operands and %u results", v->op->n_operands, v->op->n_results);
  for (uint32_t i = 0; i < v->op->n_operands; i++) {
    const ir_type *t = sv_in(v, i);
    sv_shape s;
    sv_shape_of(t, &s);
    if (split >= t->rank || concat >= t->rank)
      return sv_fail(v, split >= t->rank ? "all_to_all_c1" : "all_to_all_c3",
                     "has split_dimension = %lld and concat_dimension = %lld; expected both below the rank %u",
                     (long long)split, (long long)concat, t->rank);
    if (s.dims[split] != SV_DYNAMIC && s.dims[split] % n != 0)
      return sv_fail(v, "all_to_all_c2", "has size %lld in the split dimension; expected a multiple of %lld",
                     (long long)s.dims[split], (long long)n);
    int64_t *part = s.dims[split] != SV_DYNAMIC ? &s.dims[split] : &s.bounds[split];
    if (*part != SV_DYNAMIC) *part /= n;
    int64_t *whole = s.dims[concat] != SV_DYNAMIC ? &s.dims[concat] : &s.bounds[concat];
    if (*whole != SV_DYNAMIC && !base_mul_i64(*whole, n, whole))
      return sv_fail_code(v, XLAC_E_TOO_LARGE, NULL, "gives a dimension beyond 63 bits");
    TRY(sv_make(v, &s, sv_element_of(t), &v->out[i]));
  }
  return 0;
}

/* Groups have split_count members each. */
int sv_verify_all_to_all(const sv *v) {
  sv_group_rules rules = {.same_size = true, .complete = true, .expected = ir_m_get_int(v->op, "split_count", 1)};
  return sv_check_groups(v, &rules);
}

/* --- reductions --- */

/* One computation serves all operands, so it is checked against each. */
static int sv_check_each_reducer(const sv *v, uint32_t n) {
  const ir_computation *c = sv_region(v, 0);
  sv_shape none = {.rank = 0};
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = sv_in(v, i), *scalar;
    TRY(sv_scalar_like(v, t, &scalar));
    TRY(sv_check_reducer(v, c, 1, &t, &scalar, &none));
  }
  return 0;
}

/* All but the dynamic root, which comes last. */
static uint32_t sv_data_operands(const sv *v) {
  bool root = ir_mattr_of(v->op, "has_dynamic_root") != NULL;
  return root && v->op->n_operands ? v->op->n_operands - 1 : v->op->n_operands;
}

/* Shapes stay; elements are those that the computation returns. */
static int sv_infer_accumulated(const sv *v) {
  uint32_t n = sv_data_operands(v);
  if (v->op->n_results != n)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has %u results for %u operands", v->op->n_results, n);
  for (uint32_t i = 0; i < n; i++)
    TRY(sv_like(v, sv_in(v, i), sv_accumulator(sv_region(v, 0), 0, sv_in(v, i)), &v->out[i]));
  return 0;
}

int sv_infer_all_reduce(const sv *v) {
  return sv_infer_accumulated(v);
}

int sv_infer_collective_reduce(const sv *v) {
  return sv_infer_accumulated(v);
}

/* Groups may be of different sizes, filled up with -1. */
static int sv_check_loose_groups(const sv *v) {
  sv_group_rules rules = {.complete = true, .global = sv_uses_global_ids(v), .expected = -1};
  TRY(sv_check_groups(v, &rules));
  return sv_check_channel(v, 1);
}

/* The result's type follows from the reducer; groups may differ in size. */
int sv_verify_all_reduce(const sv *v) {
  TRY(sv_check_loose_groups(v));
  return sv_check_each_reducer(v, v->op->n_operands);
}

/* With a dynamic root the last operand says which it is, for each of the others. */
static int sv_check_root(const sv *v) {
  uint32_t n = sv_data_operands(v);
  if (n == 0) return sv_fail(v, NULL, "has no data operand; expected at least one");
  if (n == v->op->n_operands) return 0;
  const ir_type *t = sv_in(v, n);
  if (sv_element_is(t, XLAC_S32) && t->rank == 1 && sv_dim(t, 0) == n) return 0;
  return sv_fail(v, NULL, "has a dynamic root of %s; expected tensor<%uxi32>", SV_SHOW(t), n);
}

/* As all_reduce, and the root where one is given. */
int sv_verify_collective_reduce(const sv *v) {
  TRY(sv_check_loose_groups(v));
  TRY(sv_check_root(v));
  return sv_check_each_reducer(v, sv_data_operands(v));
}

/* A dynamic root has no result. */
int sv_infer_collective_broadcast(const sv *v) {
  uint32_t n = sv_data_operands(v);
  if (v->op->n_results != n)
    return sv_fail_code(v, XLAC_E_VERIFY_SHAPE, NULL, "has %u results for %u operands", v->op->n_results, n);
  for (uint32_t i = 0; i < n; i++) v->out[i] = sv_in(v, i);
  return 0;
}

/* Not everybody must be in a group. */
int sv_verify_collective_broadcast(const sv *v) {
  sv_group_rules rules = {.same_size = true, .expected = -1};
  TRY(sv_check_groups(v, &rules));
  return sv_check_root(v);
}

/* reduce_scatter_c2, c8, c9. */
int sv_verify_reduce_scatter(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_result(v, 0);
  int64_t d = ir_m_get_int(v->op, "scatter_dimension", 0);
  sv_group_rules rules = {.same_size = true, .complete = true, .global = sv_uses_global_ids(v), .expected = -1};
  TRY(sv_check_groups(v, &rules));
  TRY(sv_check_each_reducer(v, 1));
  TRY(sv_check_channel(v, 1));
  if (a->rank != b->rank || d >= a->rank)
    return sv_fail(v, "reduce_scatter_c2", "has scatter_dimension = %lld, an operand of %s and a result of %s",
                   (long long)d, SV_SHOW(a), SV_SHOW(b));
  bool fits = true;
  for (uint32_t k = 0; k < a->rank; k++) fits = fits && (k == d || sv_dims_fit(sv_dim(a, k), sv_dim(b, k)));
  int64_t from = sv_dim(a, (uint32_t)d), to = sv_dim(b, (uint32_t)d);
  bool known = from != SV_DYNAMIC && to != SV_DYNAMIC;
  if (!fits || (known && (to == 0 || from == 0 || from % to != 0)))
    return sv_fail(v, "reduce_scatter_c8", "has an operand of %s and a result of %s; expected a part of dimension %lld",
                   SV_SHOW(a), SV_SHOW(b), (long long)d);
  sv_element e = sv_accumulator(sv_region(v, 0), 0, a);
  if (b->dtype == e.dtype && b->text == e.text && ir_quant_equal(b->quant, e.quant)) return 0;
  return sv_fail(v, "reduce_scatter_c9", "has a result of %s; expected the elements that its computation returns",
                 SV_SHOW(b));
}

/* collective_permute_c1 to c4: pairs of ids, none twice as a source or twice as a target. */
int sv_verify_collective_permute(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "source_target_pairs");
  if (a->type->rank != 2 || a->type->dims[1] != 2)
    return sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "collective_permute_c1",
                        "has source_target_pairs of %s; expected pairs", SV_SHOW(a->type));
  sv_ints pairs = sv_ints_of(v, a);
  base_map seen[2];
  int status = 0;
  for (uint32_t k = 0; k < 2; k++) base_map_init(&seen[k], v->m->alloc);
  for (uint32_t i = 0; status == 0 && i < pairs.n; i++) {
    uint64_t ignored;
    if (pairs.v[i] < 0)
      status = sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, "collective_permute_c4",
                            "has the id %lld in source_target_pairs", (long long)pairs.v[i]);
    else if (base_map_get(&seen[i % 2], (uint64_t)pairs.v[i], &ignored))
      status = sv_fail_code(v, XLAC_E_VERIFY_COLLECTIVE, i % 2 ? "collective_permute_c3" : "collective_permute_c2",
                            "has %lld twice as a %s", (long long)pairs.v[i], i % 2 ? "target" : "source");
    else if (!base_map_set(&seen[i % 2], (uint64_t)pairs.v[i], 1))
      status = sv_oom(v);
  }
  for (uint32_t k = 0; k < 2; k++) base_map_free(&seen[k]);
  return status;
}
