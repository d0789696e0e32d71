/* dot, dot_general, ragged_dot, by the constraints dot_general_c1 to c24.
 *
 * The result's dimensions are the batching ones, then lhs's free ones, then rhs's; its element type is whatever was
 * declared (f32 from bf16 operands, say). */
#include "verify.h"

/* At most one for each operand; fewer are allowed. */
int sv_check_precision(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "precision_config");
  if (!a || a->v.list->n <= 2) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %u precisions; expected at most 2", a->v.list->n);
}

/* Deprecated in StableHLO but still read: matrices and vectors without batches. */
int sv_infer_dot(const sv *v) {
  const ir_type *a = sv_in(v, 0), *b = sv_in(v, 1);
  TRY(sv_check_precision(v));
  bool ranks = (a->rank == 1 || a->rank == 2) && (b->rank == 1 || b->rank == 2);
  if (!ranks || !sv_dims_fit(sv_dim(a, a->rank - 1), sv_dim(b, 0)))
    return sv_fail(v, NULL, "has operands of %s and %s; expected ranks 1 or 2 and one contracted size", SV_SHOW(a),
                   SV_SHOW(b));
  sv_shape s = {.rank = 0};
  if (a->rank == 2) sv_push_dim(&s, a, 0);
  if (b->rank == 2) sv_push_dim(&s, b, 1);
  return sv_make(v, &s, sv_declared_element(v), v->out);
}

/* Pairwise; lists are in range and of one length. */
static int sv_check_dot_sizes(const sv *v, const char *id, const char *what, sv_ints lhs, sv_ints rhs) {
  assert(lhs.n == rhs.n);
  for (uint32_t i = 0; i < lhs.n; i++) {
    int64_t a = sv_dim(sv_in(v, 0), (uint32_t)lhs.v[i]), b = sv_dim(sv_in(v, 1), (uint32_t)rhs.v[i]);
    if (!sv_dims_fit(a, b))
      return sv_fail(v, id, "has %s dimensions of sizes %lld and %lld at place %u", what, (long long)a, (long long)b,
                     i);
  }
  return 0;
}

/* dot_general_c1 to c10; ragged_dot has the same numbers and more. */
int sv_read_dot(const sv *v, const ir_mattr *numbers, sv_dot *d) {
  assert(d);
  uint32_t lhs_rank = sv_in(v, 0)->rank, rhs_rank = sv_in(v, 1)->rank;
  *d = (sv_dot){
      sv_field_ints(v, numbers, "lhs_batching_dimensions"), sv_field_ints(v, numbers, "rhs_batching_dimensions"),
      sv_field_ints(v, numbers, "lhs_contracting_dimensions"), sv_field_ints(v, numbers, "rhs_contracting_dimensions")};
  TRY(sv_check_precision(v));
  if (d->lhs_batch.n != d->rhs_batch.n)
    return sv_fail(v, "dot_general_c1", "has %u batching dimensions of lhs and %u of rhs", d->lhs_batch.n,
                   d->rhs_batch.n);
  if (d->lhs_contracting.n != d->rhs_contracting.n)
    return sv_fail(v, "dot_general_c2", "has %u contracting dimensions of lhs and %u of rhs", d->lhs_contracting.n,
                   d->rhs_contracting.n);
  TRY(sv_check_distinct(v, "dot_general_c3", "lhs_batching_dimensions", d->lhs_batch, "lhs_contracting_dimensions",
                        d->lhs_contracting));
  TRY(sv_check_distinct(v, "dot_general_c4", "rhs_batching_dimensions", d->rhs_batch, "rhs_contracting_dimensions",
                        d->rhs_contracting));
  TRY(sv_check_dims(v, "dot_general_c5", "lhs_batching_dimensions", d->lhs_batch, lhs_rank));
  TRY(sv_check_dims(v, "dot_general_c6", "lhs_contracting_dimensions", d->lhs_contracting, lhs_rank));
  TRY(sv_check_dims(v, "dot_general_c7", "rhs_batching_dimensions", d->rhs_batch, rhs_rank));
  TRY(sv_check_dims(v, "dot_general_c8", "rhs_contracting_dimensions", d->rhs_contracting, rhs_rank));
  TRY(sv_check_dot_sizes(v, "dot_general_c9", "batching", d->lhs_batch, d->rhs_batch));
  return sv_check_dot_sizes(v, "dot_general_c10", "contracting", d->lhs_contracting, d->rhs_contracting);
}

/* `group`: of rhs of a ragged_dot. */
static void sv_push_free_dims(sv_shape *s, const ir_type *t, sv_ints batch, sv_ints contracting, sv_ints group) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sv_has(batch, i) && !sv_has(contracting, i) && !sv_has(group, i)) sv_push_dim(s, t, i);
}

/* Of a batching dimension both sides tell what they know. */
int sv_infer_dot_general(const sv *v) {
  sv_dot d;
  const ir_type *a = sv_in(v, 0), *b = sv_in(v, 1);
  TRY(sv_read_dot(v, ir_mattr_of(v->op, "dot_dimension_numbers"), &d));
  sv_shape s = {.rank = 0};
  for (uint32_t i = 0; i < d.lhs_batch.n; i++) {
    uint32_t l = (uint32_t)d.lhs_batch.v[i], r = (uint32_t)d.rhs_batch.v[i];
    int64_t dim = sv_dim(a, l), bound = sv_bound(a, l);
    TRY(sv_most_specific_dim(v, i, &dim, &bound, sv_dim(b, r), sv_bound(b, r)));
    sv_push(&s, dim, bound);
  }
  sv_push_free_dims(&s, a, d.lhs_batch, d.lhs_contracting, (sv_ints){NULL, 0});
  sv_push_free_dims(&s, b, d.rhs_batch, d.rhs_contracting, (sv_ints){NULL, 0});
  return sv_make(v, &s, sv_declared_element(v), v->out);
}

/* --- algorithms --- */

typedef struct sv_dot_algorithm_row {
  const char *lhs, *rhs, *accumulator;
  int64_t operations;
} sv_dot_algorithm_row;
/* The algorithms that some hardware has. */
static const sv_dot_algorithm_row sv_dot_algorithms[] = {
    {"f16", "f16", "f16", 1},   {"f16", "f16", "f32", 1},   {"bf16", "bf16", "bf16", 1}, {"bf16", "bf16", "f32", 1},
    {"bf16", "bf16", "f32", 3}, {"bf16", "bf16", "f32", 6}, {"bf16", "bf16", "f32", 9},  {"tf32", "tf32", "f32", 1},
    {"tf32", "tf32", "f32", 3}, {"f32", "f32", "f32", 1},   {"f64", "f64", "f64", 1},
};

/* tf32 is not an element type of ours and is spelled by its text. */
static const char *sv_precision_name(const ir_mattr *algorithm, const char *field) {
  const ir_mattr *a = ir_m_field(algorithm, field);
  if (!a || a->kind != IR_M_TYPE) return "";
  if (a->type->text) return a->type->text->s;
  return base_dtype_of((base_dtype)a->type->dtype)->text;
}

/* f8e8m0fnu is a scale's type, not a number's. */
static bool sv_is_f8(const char *name) {
  return strncmp(name, "f8", 2) == 0 && strcmp(name, "f8e8m0fnu") != 0;
}

/* Imprecise accumulation exists for f8 alone. */
static bool sv_algorithm_is_known(const ir_mattr *a, int64_t operations) {
  const char *lhs = sv_precision_name(a, "lhs_precision_type"), *rhs = sv_precision_name(a, "rhs_precision_type");
  const char *accumulator = sv_precision_name(a, "accumulation_type");
  const ir_mattr *imprecise = ir_m_field(a, "allow_imprecise_accumulation");
  if (sv_is_f8(lhs) && sv_is_f8(rhs) && strcmp(accumulator, "f32") == 0 && operations == 1) return true;
  if (imprecise && imprecise->kind == IR_M_BOOL && imprecise->v.b) return false;
  for (size_t i = 0; i < sizeof sv_dot_algorithms / sizeof *sv_dot_algorithms; i++) {
    const sv_dot_algorithm_row *r = &sv_dot_algorithms[i];
    if (strcmp(r->lhs, lhs) == 0 && strcmp(r->rhs, rhs) == 0 && strcmp(r->accumulator, accumulator) == 0 &&
        r->operations == operations)
      return true;
  }
  return false;
}

/* dot_general_c21 to c24, and i8 of the specification. */
static int sv_check_algorithm(const sv *v) {
  const ir_mattr *a = ir_mattr_of(v->op, "algorithm");
  if (!a) return 0;
  int64_t lhs = sv_field_int(a, "lhs_component_count", 0), rhs = sv_field_int(a, "rhs_component_count", 0);
  int64_t operations = sv_field_int(a, "num_primitive_operations", 0);
  if (lhs < 1)
    return sv_fail_attr(v, a, "dot_general_c22", "has lhs_component_count = %lld; expected 1 or more", (long long)lhs);
  if (rhs < 1)
    return sv_fail_attr(v, a, "dot_general_c23", "has rhs_component_count = %lld; expected 1 or more", (long long)rhs);
  if (operations < 1)
    return sv_fail_attr(v, a, "dot_general_c24", "has num_primitive_operations = %lld; expected 1 or more",
                        (long long)operations);
  if (lhs != 1 || rhs != 1 || !sv_algorithm_is_known(a, operations))
    return sv_fail_attr(v, a, "dot_general_i8", "has an algorithm that no hardware is known to have");
  const ir_mattr *precision = ir_mattr_of(v->op, "precision_config");
  for (uint32_t i = 0; precision && i < precision->v.list->n; i++)
    if (precision->v.list->v[i]->v.i != IR_PRECISION_DEFAULT)
      return sv_fail(v, "dot_general_c21", "has an algorithm and precision %s; expected DEFAULT beside an algorithm",
                     precision->v.list->v[i]->str->s);
  return 0;
}

/* dot_general_c15 and c16 beside what convolutions share. */
static int sv_check_dot_quant(const sv *v) {
  const ir_type *rhs = sv_in(v, 1);
  sv_ints contracting = sv_field_ints(v, ir_mattr_of(v->op, "dot_dimension_numbers"), "rhs_contracting_dimensions");
  for (uint32_t i = 0; rhs->quant && i < rhs->quant->n; i++)
    if (rhs->quant->zero_points[i] != 0)
      return sv_fail(v, "dot_general_c15", "has zero point %lld in rhs; expected 0",
                     (long long)rhs->quant->zero_points[i]);
  if (sv_is_quant_axis(rhs) && sv_has(contracting, rhs->quant->axis))
    return sv_fail(v, "dot_general_c16", "has rhs quantised along dimension %d, which is contracted", rhs->quant->axis);
  return sv_check_product_quant(v);
}

/* Quantised if any of the three is. */
int sv_verify_dot_general(const sv *v) {
  TRY(sv_check_algorithm(v));
  if (!sv_is_quant(sv_in(v, 0)) && !sv_is_quant(sv_in(v, 1)) && !sv_is_quant(sv_result(v, 0))) return 0;
  return sv_check_dot_quant(v);
}

/* --- ragged_dot --- */

/* Which kind of dimension of lhs is ragged. */
typedef enum sv_ragged_mode { SV_RAGGED_FREE, SV_RAGGED_CONTRACTING, SV_RAGGED_BATCH } sv_ragged_mode;

/* Which result there is depends on it: see ir/infer/infer_linalg.c for the three shapes. */
static sv_ragged_mode sv_ragged_mode_of(const sv_dot *d, int64_t ragged) {
  return sv_has(d->lhs_batch, ragged)         ? SV_RAGGED_BATCH
         : sv_has(d->lhs_contracting, ragged) ? SV_RAGGED_CONTRACTING
                                              : SV_RAGGED_FREE;
}

/* The dimensions of lhs that group_sizes has before the groups: those outside the ragged one. */
static void sv_ragged_prefix(const sv *v, const sv_dot *d, int64_t ragged, sv_shape *s) {
  const ir_type *lhs = sv_in(v, 0);
  sv_ragged_mode mode = sv_ragged_mode_of(d, ragged);
  s->rank = 0;
  for (uint32_t i = 0; i < d->lhs_batch.n && d->lhs_batch.v[i] != ragged; i++)
    sv_push_dim(s, lhs, (uint32_t)d->lhs_batch.v[i]);
  for (uint32_t i = 0; mode == SV_RAGGED_CONTRACTING && d->lhs_contracting.v[i] != ragged; i++)
    sv_push_dim(s, lhs, (uint32_t)d->lhs_contracting.v[i]);
  for (uint32_t i = 0; mode == SV_RAGGED_FREE && i < ragged; i++)
    if (!sv_has(d->lhs_batch, i) && !sv_has(d->lhs_contracting, i)) sv_push_dim(s, lhs, i);
}

/* One vector for all, or one for each place of the dimensions outside of the ragged one. */
static int sv_check_group_sizes(const sv *v, const sv_dot *d, int64_t ragged) {
  const ir_type *sizes = sv_in(v, 2);
  sv_shape s;
  sv_ragged_prefix(v, d, ragged, &s);
  if (sizes->rank == 1) return 0;
  bool fits = sizes->rank == s.rank + 1;
  for (uint32_t i = 0; fits && i < s.rank; i++) fits = s.dims[i] == sv_dim(sizes, i);
  if (fits) return 0;
  return sv_fail(v, NULL, "has group_sizes of %s; expected rank 1, or the %u outer dimensions of lhs and the groups",
                 SV_SHOW(sizes), s.rank);
}

/* rhs has a dimension over the groups only where the ragged dimension is free. */
static int sv_check_group_dims(const sv *v, const sv_dot *d, int64_t ragged, sv_ints group) {
  const ir_type *rhs = sv_in(v, 1), *sizes = sv_in(v, 2);
  TRY(sv_check_dims(v, NULL, "rhs_group_dimensions", group, rhs->rank));
  TRY(sv_check_distinct(v, NULL, "rhs_group_dimensions", group, "rhs_batching_dimensions", d->rhs_batch));
  TRY(sv_check_distinct(v, NULL, "rhs_group_dimensions", group, "rhs_contracting_dimensions", d->rhs_contracting));
  uint32_t expected = sv_ragged_mode_of(d, ragged) == SV_RAGGED_FREE;
  if (group.n != expected) return sv_fail(v, NULL, "has %u rhs_group_dimensions; expected %u", group.n, expected);
  int64_t groups = sv_dim(sizes, sizes->rank - 1);
  if (expected && !sv_dims_fit(groups, sv_dim(rhs, (uint32_t)group.v[0])))
    return sv_fail(v, NULL, "has %lld groups, but rhs has %lld", (long long)groups,
                   (long long)sv_dim(rhs, (uint32_t)group.v[0]));
  return 0;
}

/* (lhs, rhs, group_sizes). */
int sv_infer_ragged_dot(const sv *v) {
  const ir_mattr *numbers = ir_mattr_of(v->op, "ragged_dot_dimension_numbers");
  const ir_type *lhs = sv_in(v, 0), *sizes = sv_in(v, 2);
  sv_dot d;
  TRY(sv_read_dot(v, numbers, &d));
  sv_ints ragged = sv_field_ints(v, numbers, "lhs_ragged_dimensions");
  sv_ints group = sv_field_ints(v, numbers, "rhs_group_dimensions");
  if (ragged.n != 1) return sv_fail(v, NULL, "has %u lhs_ragged_dimensions; expected exactly one", ragged.n);
  TRY(sv_check_dims(v, NULL, "lhs_ragged_dimensions", ragged, lhs->rank));
  if (sizes->rank == 0) return sv_fail(v, NULL, "has scalar group_sizes; expected rank 1 or more");
  TRY(sv_check_group_sizes(v, &d, ragged.v[0]));
  TRY(sv_check_group_dims(v, &d, ragged.v[0], group));
  sv_shape s = {.rank = 0};
  if (sv_ragged_mode_of(&d, ragged.v[0]) == SV_RAGGED_CONTRACTING) sv_push_dim(&s, sizes, sizes->rank - 1);
  for (uint32_t i = 0; i < d.lhs_batch.n; i++) sv_push_dim(&s, lhs, (uint32_t)d.lhs_batch.v[i]);
  sv_push_free_dims(&s, lhs, d.lhs_batch, d.lhs_contracting, (sv_ints){NULL, 0});
  sv_push_free_dims(&s, sv_in(v, 1), d.rhs_batch, d.rhs_contracting, group);
  return sv_make(v, &s, sv_declared_element(v), v->out);
}
