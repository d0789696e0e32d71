/* What must hold of kernels, whatever made them. */
#include "kernel.h"

static int kverify_fail(xlac_error *err, uint32_t i, const char *what) {
  return base_fail(err, XLAC_E_VERIFY, "kernel value v%u %s", i, what);
}

static int kverify_op(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_value *v = &k->values[i];
  interp_loop l;
  if (!v->op || !interp_loop_of(v->op, &l)) return kverify_fail(err, i, "is no elementwise op on these types");
  if (l.n_in != v->n_in || l.out != v->dtype) return kverify_fail(err, i, "is not of its op's type");
  for (uint32_t j = 0; j < v->n_in; j++)
    if (v->in[j] >= i || k->values[v->in[j]].dtype != l.in[j])
      return base_fail(err, XLAC_E_VERIFY, "kernel value v%u uses v%u, which is none of its type before it", i,
                       v->in[j]);
  return 0;
}

/* Elements of arrays are at 0 or after it. What an array's end is, is not the kernel's to know. */
static int kverify_index(const kernel *k, const kernel_index *index, const char *what, uint32_t i, xlac_error *err) {
  int64_t least = 0, most = 0;
  if (k->count == 0) return 0;
  if (!kernel_reach(k, index, &least, &most))
    return base_fail(err, XLAC_E_VERIFY, "%s%u has an index that overflows", what, i);
  if (least < 0)
    return base_fail(err, XLAC_E_VERIFY, "%s%u reaches element %lld, before the array", what, i, (long long)least);
  return 0;
}

static int kverify_value(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_value *v = &k->values[i];
  int64_t least = 0, most = 0;
  if (v->dtype == BASE_DTYPE_INVALID || v->dtype >= BASE_DTYPE_COUNT)
    return kverify_fail(err, i, "has no element type");
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      if (v->buffer >= k->n_inputs || !v->index)
        return base_fail(err, XLAC_E_VERIFY, "kernel value v%u loads from input %u of %u", i, v->buffer, k->n_inputs);
      return kverify_index(k, v->index, "kernel value v", i, err);
    case KERNEL_COUNT_UP:
      if (!v->index) return kverify_fail(err, i, "is an index of nothing");
      return k->count && !kernel_reach(k, v->index, &least, &most) ? kverify_fail(err, i, "has an index that overflows")
                                                                   : 0;
    case KERNEL_CONSTANT:
      return v->data ? 0 : kverify_fail(err, i, "is a constant without data");
    case KERNEL_OP:
      return kverify_op(k, i, err);
  }
  return kverify_fail(err, i, "is of no kind");
}

static int kverify_space(const kernel *k, xlac_error *err) {
  int64_t count = 1;
  if (k->rank > KERNEL_MAX_RANK || k->n_values == 0 || k->n_values > KERNEL_MAX_VALUES || k->n_stores == 0 ||
      k->n_stores > KERNEL_MAX_STORES)
    return base_fail(err, XLAC_E_VERIFY,
                     "a kernel of rank %u with %u values and %u stores; there are at most %u dimensions, "
                     "1 to %u values and 1 to %u stores",
                     k->rank, k->n_values, k->n_stores, KERNEL_MAX_RANK, KERNEL_MAX_VALUES, KERNEL_MAX_STORES);
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->extents[d] < 0 || !base_mul_i64(count, k->extents[d], &count))
      return base_fail(err, XLAC_E_VERIFY, "a kernel's extent %u is %lld", d, (long long)k->extents[d]);
  return count == k->count ? 0 : base_fail(err, XLAC_E_VERIFY, "a kernel's count is not that of its extents");
}

/* Whether the value is the same at every iteration. */
static bool kverify_is_constant(const kernel *k, uint32_t i) {
  bool same[KERNEL_MAX_VALUES];
  assert(i < k->n_values && k->n_values <= KERNEL_MAX_VALUES);
  for (uint32_t at = 0; at <= i; at++) {
    const kernel_value *v = &k->values[at];
    same[at] = v->kind == KERNEL_CONSTANT || (v->kind != KERNEL_OP && kernel_is_constant(k, v->index));
    if (v->kind != KERNEL_OP) continue;
    same[at] = true;
    for (uint32_t j = 0; j < v->n_in; j++) same[at] = same[at] && same[v->in[j]];
  }
  return same[i];
}

/* The output of a reduction is row-major over what it keeps. */
static bool kverify_reduced_index(const kernel *k, const kernel_index *index) {
  const kernel_reduction *r = k->reduction;
  int64_t inside = 1, stride = 1;
  for (uint32_t d = k->rank; d-- > 0;) {
    if (k->extents[d] == 1) continue;
    bool reduced = inside >= r->inner && inside < r->inner * r->reduced;
    if (index->strides[d] != (reduced ? 0 : stride)) return false;
    inside *= k->extents[d];
    if (!reduced) stride *= k->extents[d];
  }
  return index->offset == 0;
}

static int kverify_reduction(const kernel *k, xlac_error *err) {
  const kernel_reduction *r = k->reduction;
  int64_t count = 0;
  interp_loop l;
  if (r->outer < 0 || r->reduced < 0 || r->inner < 0 || !base_mul_i64(r->outer, r->reduced, &count) ||
      !base_mul_i64(count, r->inner, &count) || count != k->count || !base_mul_i64(r->outer, r->inner, &count))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction does not cover its iterations");
  if (k->n_stores != 1 || r->init >= k->n_values)
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction has one store, and begins with one of its values");
  base_dtype t = (base_dtype)k->values[k->stores[0].value].dtype;
  if (!r->body || !interp_loop_binary((ir_opcode)r->body->opcode, t, &l))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction combines %s by what is no op on two of them",
                     base_dtype_of(t)->text);
  if (k->values[r->init].dtype != t || !kverify_is_constant(k, r->init))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction begins with v%u, which is not one %s for all iterations",
                     r->init, base_dtype_of(t)->text);
  return 0;
}

static int kverify_store(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_store *s = &k->stores[i];
  if (s->value >= k->n_values) return base_fail(err, XLAC_E_VERIFY, "store %u of a kernel has no value", i);
  for (uint32_t j = 0; j < i; j++)
    if (k->stores[j].buffer == s->buffer)
      return base_fail(err, XLAC_E_VERIFY, "stores %u and %u of a kernel have one output", j, i);
  return kverify_index(k, &s->index, "store ", i, err);
}

static int kverify_store_order(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_index *index = &k->stores[i].index;
  bool ok = k->count == 0 || (k->reduction ? kverify_reduced_index(k, index) : kernel_is_dense(k, index));
  return ok ? 0 : base_fail(err, XLAC_E_VERIFY, "store %u of a kernel does not go through its output in order", i);
}

int kernel_find_fault(const kernel *k, kernel_part *part, uint32_t *number, xlac_error *err) {
  *part = KERNEL_SPACE;
  *number = 0;
  TRY(kverify_space(k, err));
  *part = KERNEL_VALUE;
  for (; *number < k->n_values; ++*number) TRY(kverify_value(k, *number, err));
  *part = KERNEL_STORE;
  for (*number = 0; *number < k->n_stores; ++*number) TRY(kverify_store(k, *number, err));
  *part = KERNEL_REDUCTION;
  if (k->reduction) TRY(kverify_reduction(k, err));
  *part = KERNEL_STORE;
  for (*number = 0; *number < k->n_stores; ++*number) TRY(kverify_store_order(k, *number, err));
  return 0;
}

int kernel_verify(const kernel *k, xlac_error *err) {
  kernel_part part = KERNEL_SPACE;
  uint32_t number = 0;
  return kernel_find_fault(k, &part, &number, err);
}
