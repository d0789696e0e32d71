/* What must hold of kernels, whatever made them: the reader of their text, fusion's lowering, a backend's own
 * changes. What a backend may rely on is what is checked here; a kernel that passes reads and writes nothing outside
 * of arrays of the right size (kernel_check_memory), uses no value before it is there, and needs no check while it
 * runs.
 *
 * Errors name the value or store by its number. */
#include "kernel.h"

static int kverify_fail(xlac_error *err, uint32_t i, const char *what) {
  return base_fail(err, XLAC_E_VERIFY, "kernel value v%u %s", i, what);
}

/* Box b is one, and not empty where the kernel has iterations. NULL, all iterations, is fine. */
static int kverify_box(const kernel *k, uint32_t i, const kernel_box *b, xlac_error *err) {
  for (uint32_t d = 0; b && d < k->rank; d++)
    if (b->from[d] < 0 || b->from[d] >= b->to[d] || b->to[d] > k->extents[d])
      return kverify_fail(err, i, "has an empty box of iterations, or one that reaches beyond the kernel's");
  return 0;
}

/* in[j] is defined wherever value i is: everywhere in `box`. */
static int kverify_defined(const kernel *k, uint32_t i, uint32_t j, const kernel_box *box, xlac_error *err) {
  const kernel_value *from = &k->values[k->values[i].in[j]];
  if (kernel_box_has(k, from->box, box)) return 0;
  return base_fail(err, XLAC_E_VERIFY, "kernel value v%u uses v%u in iterations where that is not defined", i,
                   k->values[i].in[j]);
}

/* There is a loop for the op, on the types of its operands. */
static int kverify_op(const kernel *k, uint32_t i, xlac_error *err) {
  assert(i < k->n_values);
  const kernel_value *v = &k->values[i];
  scalar_loop l;
  for (uint32_t j = 0; j < v->n_in; j++)
    if (j > 2 || v->in[j] >= i)
      return base_fail(err, XLAC_E_VERIFY, "kernel value v%u uses v%u, which is not before it", i, v->in[j]);
  if (!kernel_loop_of(k, i, &l)) return kverify_fail(err, i, "is not an elementwise op on these types");
  for (uint32_t j = 0; j < v->n_in; j++) TRY(kverify_defined(k, i, j, v->box, err));
  return 0;
}

/* The part of v's box that is in its pick: in dimension d only what is before (-1), within (0) or after it (1). Empty
 * parts are NULL. */
static const kernel_box *kverify_part(const kernel *k, const kernel_value *v, uint32_t d, int side, kernel_box *part) {
  for (uint32_t j = 0; j < k->rank; j++) {
    part->from[j] = v->box ? v->box->from[j] : 0;
    part->to[j] = v->box ? v->box->to[j] : k->extents[j];
  }
  for (uint32_t j = 0; j < k->rank; j++) {
    if (side && j != d) continue;
    int64_t from = side == 1 ? v->pick->to[j] : v->pick->from[j], to = side == -1 ? v->pick->from[j] : v->pick->to[j];
    if (side != -1 && part->from[j] < from) part->from[j] = from;
    if (side != 1 && part->to[j] > to) part->to[j] = to;
    if (part->from[j] >= part->to[j]) return NULL;
  }
  return part;
}

/* A box minus a box is a union of boxes, two for each dimension: what lies before the pick and what lies after it.
 * in[1] must be defined in all of them, in[0] in the pick. */
static int kverify_pick(const kernel *k, uint32_t i, xlac_error *err) {
  assert(i < k->n_values);
  const kernel_value *v = &k->values[i];
  kernel_box part;
  if (v->n_in != 2 || !v->pick) return kverify_fail(err, i, "picks from what is not two values, or without a box");
  for (uint32_t j = 0; j < 2; j++)
    if (v->in[j] >= i || k->values[v->in[j]].dtype != v->dtype)
      return base_fail(err, XLAC_E_VERIFY, "kernel value v%u uses v%u, which is none of its type before it", i,
                       v->in[j]);
  TRY(kverify_box(k, i, v->pick, err));
  if (k->count == 0) return 0;
  if (kverify_part(k, v, 0, 0, &part)) TRY(kverify_defined(k, i, 0, &part, err));
  for (uint32_t d = 0; d < k->rank; d++)
    for (int side = -1; side <= 1; side += 2)
      if (kverify_part(k, v, d, side, &part)) TRY(kverify_defined(k, i, 1, &part, err));
  return 0;
}

/* The place in a scan's order goes from 0 along one dimension. */
static bool kverify_is_along(const kernel *k, const kernel_index *x) {
  uint32_t dims = 0;
  for (uint32_t d = 0; d < k->rank; d++) {
    if (!x->strides[d]) continue;
    dims++;
    if (x->strides[d] != 1 && x->strides[d] != -1) return false;
    if (x->offset != (x->strides[d] == 1 ? 0 : k->extents[d] - 1)) return false;
  }
  return dims == 1 || (dims == 0 && x->offset == 0);
}

/* No box and no reduction beside a scan: its carry would have gaps, or be summed in another order. */
static int kverify_scan(const kernel *k, uint32_t i, xlac_error *err) {
  assert(i < k->n_values);
  const kernel_value *v = &k->values[i];
  base_dtype t = (base_dtype)v->dtype;
  scalar_loop l;
  if (v->n_in != 2 || !v->index || v->box || k->reduction)
    return kverify_fail(err, i, "is not a scan of two values in all iterations of a kernel that sums up nothing else");
  for (uint32_t j = 0; j < 2; j++)
    if (v->in[j] >= i || k->values[v->in[j]].dtype != v->dtype || k->values[v->in[j]].box)
      return base_fail(err, XLAC_E_VERIFY, "kernel value v%u scans v%u, which is none of its type before it", i,
                       v->in[j]);
  if (!kernel_is_same(k, v->in[1])) return kverify_fail(err, i, "begins with what is not the same at every iteration");
  if (!scalar_loop_binary((scalar_code)v->op.code, t, &l))
    return kverify_fail(err, i, "combines by what is not an op on two of its type");
  if (k->count == 0) return 0;
  if (!kverify_is_along(k, v->index))
    return kverify_fail(err, i, "does not go along one dimension from its first place");
  kernel_scans all;
  (void)kernel_find_scans(k, &all);
  if (all.inner > KERNEL_MAX_CARRY)
    return base_fail(err, XLAC_E_VERIFY, "kernel value v%u keeps %lld results at a time, and at most %d are possible",
                     i, (long long)all.inner, KERNEL_MAX_CARRY);
  for (uint32_t j = 0; j < i; j++)
    if (k->values[j].kind == KERNEL_SCAN &&
        memcmp(k->values[j].index->strides, v->index->strides, k->rank * sizeof(int64_t)) != 0)
      return kverify_fail(err, i, "is a scan along another way than one before it");
  return 0;
}

/* Places are integers, there wherever the load is. */
static int kverify_bases(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_value *v = &k->values[i];
  if (v->n_in && !v->bases) return kverify_fail(err, i, "has no strides for the values that its place depends on");
  for (uint32_t j = 0; j < v->n_in; j++) {
    base_dtype t = v->in[j] < i ? (base_dtype)k->values[v->in[j]].dtype : BASE_DTYPE_INVALID;
    bool integer = t == XLAC_PRED || base_dtype_is_signed(t) || base_dtype_is_unsigned(t);
    if (v->in[j] >= i || !integer || v->bases[j].last < 0)
      return base_fail(err, XLAC_E_VERIFY,
                       "kernel value v%u is loaded from a place by v%u, which is not an integer before it", i,
                       v->in[j]);
    TRY(kverify_defined(k, i, j, v->box, err));
  }
  return 0;
}

/* Elements of arrays are at 0 or after it. What an array's end is, is not the kernel's to know. */
static int kverify_reach(bool some, int64_t least, const char *what, uint32_t i, xlac_error *err) {
  if (!some) return base_fail(err, XLAC_E_VERIFY, "%s%u has an index that overflows", what, i);
  if (least < 0)
    return base_fail(err, XLAC_E_VERIFY, "%s%u reaches element %lld, before the array", what, i, (long long)least);
  return 0;
}

/* Not below element 0 over all iterations and places; the end is the run's to check. */
static int kverify_load(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_value *v = &k->values[i];
  int64_t least = 0, most = 0;
  if (v->buffer >= k->n_inputs || !v->index)
    return base_fail(err, XLAC_E_VERIFY, "kernel value v%u loads from input %u of %u", i, v->buffer, k->n_inputs);
  TRY(kverify_bases(k, i, err));
  if (k->count == 0) return 0;
  bool some = kernel_load_reach(k, v, &least, &most);
  return kverify_reach(some, least, "kernel value v", i, err);
}

/* Checks of a value may rely on those before it. */
static int kverify_value(const kernel *k, uint32_t i, xlac_error *err) {
  assert(i < k->n_values);
  const kernel_value *v = &k->values[i];
  int64_t least = 0, most = 0;
  TRY(kverify_box(k, i, v->box, err));
  if (v->dtype == BASE_DTYPE_INVALID || v->dtype >= BASE_DTYPE_COUNT)
    return kverify_fail(err, i, "has no element type");
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      return kverify_load(k, i, err);
    case KERNEL_PICK:
      return kverify_pick(k, i, err);
    case KERNEL_SCAN:
      return kverify_scan(k, i, err);
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

/* First of all, since all other checks walk over rank, values and stores. */
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

/* outer * reduced * inner must be the iterations, and outer * inner count results. */
static int kverify_reduction(const kernel *k, xlac_error *err) {
  assert(k->reduction);
  const kernel_reduction *r = k->reduction;
  int64_t count = 0;
  bool some = false;
  if (r->outer < 0 || r->reduced < 0 || r->inner < 0 || !base_mul_i64(r->outer, r->reduced, &count) ||
      !base_mul_i64(count, r->inner, &count) || count != k->count || !base_mul_i64(r->outer, r->inner, &count))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction does not cover its iterations");
  for (uint32_t i = 0; i < k->n_stores; i++) some = some || k->stores[i].by;
  return some ? 0 : base_fail(err, XLAC_E_VERIFY, "a kernel has a reduction, and no store that reduces");
}

/* A store that reduces. The op must combine two values of the type that is stored, and `init` be one value for all
 * iterations. */
static int kverify_reducing(const kernel *k, const kernel_store *s, xlac_error *err) {
  assert(s->by);
  base_dtype t = (base_dtype)k->values[s->value].dtype;
  scalar_loop l;
  if (!k->reduction) return base_fail(err, XLAC_E_VERIFY, "a kernel's store reduces, and there is no \"over\"");
  if (!scalar_loop_binary(s->by, t, &l))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction combines %s by what is not an op on two of them",
                     base_dtype_of(t)->text);
  if (s->init >= k->n_values || k->values[s->init].dtype != t || !kernel_is_same(k, s->init))
    return base_fail(err, XLAC_E_VERIFY, "a kernel's reduction begins with v%u, which is not one %s for all iterations",
                     s->init, base_dtype_of(t)->text);
  return 0;
}

/* An output belongs to one store, so that stores may run in any order. */
static int kverify_store(const kernel *k, uint32_t i, xlac_error *err) {
  assert(i < k->n_stores);
  const kernel_store *s = &k->stores[i];
  if (s->value >= k->n_values) return base_fail(err, XLAC_E_VERIFY, "store %u of a kernel has no value", i);
  for (uint32_t j = 0; j < i; j++)
    if (k->stores[j].buffer == s->buffer)
      return base_fail(err, XLAC_E_VERIFY, "stores %u and %u of a kernel have one output", j, i);
  if (k->values[s->value].box)
    return base_fail(err, XLAC_E_VERIFY, "store %u of a kernel has v%u, which is not defined in all iterations", i,
                     s->value);
  int64_t least = 0, most = 0;
  bool some = kernel_reach(k, &s->index, &least, &most);
  return k->count ? kverify_reach(some, least, "store ", i, err) : 0;
}

/* Backends write outputs from the first element to the last, in vectors. */
static int kverify_store_order(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_store *s = &k->stores[i];
  if (s->by) TRY(kverify_reducing(k, s, err));
  bool ok = k->count == 0 || (s->by ? kverify_reduced_index(k, &s->index) : kernel_is_dense(k, &s->index));
  return ok ? 0 : base_fail(err, XLAC_E_VERIFY, "store %u of a kernel does not go through its output in order", i);
}

/* *part and *number are where the checks stopped; after success they mean nothing. */
int kernel_find_fault(const kernel *k, kernel_part *part, uint32_t *number, xlac_error *err) {
  assert(part && number);
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

/* kernel_find_fault without saying where. */
int kernel_verify(const kernel *k, xlac_error *err) {
  kernel_part part = KERNEL_SPACE;
  uint32_t number = 0;
  return kernel_find_fault(k, &part, &number, err);
}
