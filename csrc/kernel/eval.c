/* Kernels evaluated one iteration after another, one lane at a time: the reference that backends are compared with,
 * so nothing is clever here. Each op runs by the interpreter's loop for its opcode and types on one element; a value
 * of any type has a slot of 16 bytes. */
#include "kernel.h"

enum { KEVAL_BYTES = 16 /* room for an element of any type */ };

/* One evaluation. `index` is the present iteration. */
typedef struct keval_run {
  const kernel *k;
  const void *const *in;
  void *const *out;
  scalar_loop *loops;
  char *values; /* KEVAL_BYTES each */
  int64_t index[KERNEL_MAX_RANK];
  struct {
    scalar_loop combine;
    base_dtype type; /* that is summed in */
    char *sums;      /* of each result, KEVAL_BYTES each */
  } reduces[KERNEL_MAX_STORES];
  char **carries; /* by value, of scans: the result so far at each place outside of their dimension */
  kernel_scans scans;
  uint8_t *needed; /* by value: the first value of a reduction needs it */
} keval_run;

/* The index at the present iteration, in elements. */
static int64_t keval_at(const keval_run *x, const kernel_index *index) {
  int64_t at = index->offset;
  for (uint32_t d = 0; d < x->k->rank; d++) at += index->strides[d] * x->index[d];
  return at;
}

/* NULL has all iterations. */
static bool keval_is_in(const keval_run *x, const kernel_box *box) {
  for (uint32_t d = 0; box && d < x->k->rank; d++)
    if (x->index[d] < box->from[d] || x->index[d] >= box->to[d]) return false;
  return true;
}

/* A value of the present iteration; it must come before the one that asks. */
static const char *keval_of(const keval_run *x, uint32_t value) {
  assert(value < x->k->n_values);
  return x->values + (size_t)value * KEVAL_BYTES;
}

/* In elements: the affine part and the places that are computed. */
static int64_t keval_load_at(const keval_run *x, const kernel_value *v) {
  int64_t at = keval_at(x, v->index);
  for (uint32_t j = 0; j < v->n_in; j++)
    at += kernel_base_at(&v->bases[j], (base_dtype)x->k->values[v->in[j]].dtype, keval_of(x, v->in[j]));
  return at;
}

/* Narrow floats are combined in f32, as every backend does. */
static base_dtype keval_sum_type(uint8_t t) {
  return base_dtype_is_float((base_dtype)t) && t != XLAC_F64 ? XLAC_F32 : (base_dtype)t;
}

/* The carry of an iteration lies at its place outside of the scan's dimension. Iterations come in an order in which
 * the one before along that dimension is done already (keval_iterations). */
static void keval_scan(keval_run *x, uint32_t i, char *to) {
  assert(x->carries && x->carries[i]);
  const kernel_value *v = &x->k->values[i];
  base_dtype t = (base_dtype)v->dtype, sum = keval_sum_type(v->dtype);
  int64_t at = 0;
  for (uint32_t d = 0; d < x->k->rank; d++) at = at * x->k->extents[d] + x->index[d];
  char *carry = x->carries[i] + (at / x->scans.span * x->scans.inner + at % x->scans.inner) * KEVAL_BYTES;
  char wide[KEVAL_BYTES] __attribute__((aligned(16)));
  const void *args[3] = {carry, wide, NULL};
  if (keval_at(x, v->index) == 0) base_convert(sum, carry, t, keval_of(x, v->in[1]), 1);
  base_convert(sum, wide, t, keval_of(x, v->in[0]), 1);
  scalar_loop_run(&x->loops[i], 1, args, carry);
  base_convert(t, to, sum, carry, 1);
}

/* Values that are not defined at this iteration keep what they had: nobody looks, as the verifier has seen to it. */
static void keval_value(keval_run *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  if (!keval_is_in(x, v->box)) return;
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  char *to = x->values + (size_t)i * KEVAL_BYTES;
  const void *args[3] = {NULL, NULL, NULL};
  int64_t number = 0;
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      memcpy(to, (const char *)x->in[v->buffer] + keval_load_at(x, v) * (int64_t)bytes, bytes);
      break;
    case KERNEL_COUNT_UP:
      number = keval_at(x, v->index);
      base_convert((base_dtype)v->dtype, to, XLAC_S64, &number, 1);
      break;
    case KERNEL_CONSTANT:
      memcpy(to, v->data, bytes);
      break;
    case KERNEL_PICK:
      memcpy(to, keval_of(x, v->in[keval_is_in(x, v->pick) ? 0 : 1]), bytes);
      break;
    case KERNEL_SCAN:
      keval_scan(x, i, to);
      break;
    case KERNEL_OP:
      for (uint32_t j = 0; j < v->n_in; j++) args[j] = x->values + (size_t)v->in[j] * KEVAL_BYTES;
      scalar_loop_run(&x->loops[i], 1, args, to);
      break;
  }
}

/* An element, or one more value into the sum of its place. */
static void keval_store(const keval_run *x, uint32_t i) {
  const kernel_store *s = &x->k->stores[i];
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  const char *value = x->values + (size_t)s->value * KEVAL_BYTES;
  int64_t at = keval_at(x, &s->index);
  char wide[KEVAL_BYTES] __attribute__((aligned(16)));
  if (!s->by) {
    memcpy((char *)x->out[s->buffer] + at * (int64_t)base_dtype_bytes(t), value, base_dtype_bytes(t));
    return;
  }
  char *sum = x->reduces[i].sums + at * KEVAL_BYTES;
  const void *args[3] = {sum, wide, NULL};
  base_convert(x->reduces[i].type, wide, t, value, 1);
  scalar_loop_run(&x->reduces[i].combine, 1, args, sum);
}

/* Row-major; from the last to the first where scans go back, which is the same for all else. */
static void keval_iterations(keval_run *x) {
  const kernel *k = x->k;
  for (int64_t n = 0; n < k->count; n++) {
    int64_t rest = n;
    for (uint32_t d = k->rank; d-- > 0; rest /= k->extents[d]) x->index[d] = rest % k->extents[d];
    for (uint32_t d = 0; x->scans.back && d < k->rank; d++) x->index[d] = k->extents[d] - 1 - x->index[d];
    for (uint32_t i = 0; i < k->n_values; i++) keval_value(x, i);
    for (uint32_t i = 0; i < k->n_stores; i++) keval_store(x, i);
  }
}

/* All sums begin with init, whose values are the same at every iteration, and there may be none. How many sums each
 * reducing store has: 0 without a reduction. */
static int64_t keval_sums(const kernel *k) {
  return k->reduction ? k->reduction->outer * k->reduction->inner : 0;
}

static void keval_begin_sums(keval_run *x) {
  const kernel *k = x->k;
  assert(k->reduction);
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by) x->needed[k->stores[i].init] = 1;
  for (uint32_t i = k->n_values; i-- > 0;)
    for (uint32_t j = 0; x->needed[i] && j < k->values[i].n_in; j++) x->needed[k->values[i].in[j]] = 1;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (x->needed[i]) keval_value(x, i);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    for (int64_t j = 0; s->by && j < keval_sums(k); j++)
      base_convert(x->reduces[i].type, x->reduces[i].sums + j * KEVAL_BYTES, (base_dtype)k->values[s->init].dtype,
                   x->values + (size_t)s->init * KEVAL_BYTES, 1);
  }
}

/* Stores of no reduction never come here. */
static void keval_end_sums(const keval_run *x, uint32_t i) {
  const kernel_store *s = &x->k->stores[i];
  assert(s->by);
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  char *to = (char *)x->out[s->buffer];
  for (int64_t j = 0; j < keval_sums(x->k); j++)
    base_convert(t, to + (s->index.offset + j) * (int64_t)base_dtype_bytes(t), x->reduces[i].type,
                 x->reduces[i].sums + j * KEVAL_BYTES, 1);
}

/* false when out of memory. */
static bool keval_prepare_sums(keval_run *x, base_arena *scratch, bool *known) {
  for (uint32_t i = 0; i < x->k->n_stores; i++) {
    const kernel_store *s = &x->k->stores[i];
    base_dtype t = (base_dtype)x->k->values[s->value].dtype;
    if (!s->by) continue;
    x->reduces[i].type = keval_sum_type(t);
    x->reduces[i].sums = base_arena_aligned(scratch, (size_t)keval_sums(x->k) * KEVAL_BYTES + 1, 16);
    *known = *known && scalar_loop_binary(s->by, x->reduces[i].type, &x->reduces[i].combine);
    if (!x->reduces[i].sums) return false;
  }
  return true;
}

/* false when out of memory. One carry for each place outside of the scan's dimension. */
static bool keval_prepare_scans(keval_run *x, base_arena *scratch, bool *known) {
  const kernel *k = x->k;
  x->carries = BASE_ARRAY(scratch, char *, k->n_values);
  if (!x->carries) return false;
  if (!kernel_find_scans(k, &x->scans) || k->count == 0) return true;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_SCAN) continue;
    *known = *known && scalar_loop_binary((scalar_code)v->op.code, keval_sum_type(v->dtype), &x->loops[i]);
    size_t carries = (size_t)(k->count / x->scans.span * x->scans.inner);
    if (!(x->carries[i] = base_arena_aligned(scratch, carries * KEVAL_BYTES, 16))) return false;
  }
  return true;
}

/* Looks up the loops and makes room. `ok` false is a kernel that was not verified. */
static int keval_prepare(keval_run *x, base_arena *scratch, xlac_error *err) {
  const kernel *k = x->k;
  bool ok = true;
  x->loops = BASE_ARRAY(scratch, scalar_loop, k->n_values);
  x->values = base_arena_aligned(scratch, (size_t)k->n_values * KEVAL_BYTES, 16);
  x->needed = base_arena_zalloc(scratch, k->n_values);
  if (!x->loops || !x->values || !x->needed || !keval_prepare_sums(x, scratch, &ok) ||
      !keval_prepare_scans(x, scratch, &ok))
    return base_oom(err, "a kernel's evaluation");
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_OP) ok = ok && kernel_loop_of(k, i, &x->loops[i]);
  assert(ok); /* the verifier has seen to that */
  return ok ? 0 : base_fail(err, XLAC_E_INTERNAL, "a kernel that is not verified");
}

/* Nothing is written before all sizes have been checked. */
int kernel_eval(const kernel *k, base_alloc alloc, const void *const *in, const int64_t *in_bytes, void *const *out,
                const int64_t *out_bytes, xlac_error *err) {
  assert(k && in && out);
  keval_run x = {.k = k, .in = in, .out = out};
  base_arena scratch;
  uint32_t n_out = 0;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].buffer >= n_out) n_out = k->stores[i].buffer + 1;
  TRY(kernel_check_memory(k, in_bytes, n_out, out_bytes, err));
  base_arena_init(&scratch, alloc);
  int status = keval_prepare(&x, &scratch, err);
  if (status == 0) {
    if (k->reduction) keval_begin_sums(&x);
    keval_iterations(&x);
    for (uint32_t i = 0; i < k->n_stores; i++)
      if (k->stores[i].by) keval_end_sums(&x, i);
  }
  base_arena_free(&scratch);
  return status;
}

/* --- sizes --- */

/* Elements least..most of an array of so many bytes. */
static int keval_check(base_dtype t, int64_t bytes, int64_t least, int64_t most, const char *what, uint32_t number,
                       xlac_error *err) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  int64_t elements = bytes / (int64_t)base_dtype_bytes(t);
  if (least >= 0 && most < elements) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel reaches element %lld of %s%u, which has %lld elements of %s",
                   (long long)(least < 0 ? least : most), what, number, (long long)elements, base_dtype_of(t)->text);
}

/* Without iterations, what is the same at each is read all the same, for reductions' initial values. */
static int keval_check_load(const kernel *k, const kernel_value *v, const int64_t *in_bytes, xlac_error *err) {
  int64_t least = v->index->offset, most = least;
  if (!kernel_load_reach(k, v, &least, &most)) {
    if (!kernel_is_constant(k, v->index) || v->n_in) return 0;
    least = most = v->index->offset;
  }
  return keval_check((base_dtype)v->dtype, in_bytes[v->buffer], least, most, "in", v->buffer, err);
}

/* What backends check before they run a kernel: its text says nothing of the arrays' ends. */
int kernel_check_memory(const kernel *k, const int64_t *in_bytes, uint32_t n_out, const int64_t *out_bytes,
                        xlac_error *err) {
  assert(k->n_values > 0 && k->n_stores > 0);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_LOAD) TRY(keval_check_load(k, v, in_bytes, err));
  }
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    base_dtype t = (base_dtype)k->values[s->value].dtype;
    if (s->buffer >= n_out)
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel stores to out%u of %u", s->buffer, n_out);
    if (s->by && keval_sums(k) > out_bytes[s->buffer] / (int64_t)base_dtype_bytes(t))
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel has %lld results, and out%u has no room for them",
                       (long long)keval_sums(k), s->buffer);
    int64_t least = 0, most = 0;
    if (k->count && kernel_reach(k, &s->index, &least, &most))
      TRY(keval_check(t, out_bytes[s->buffer], least, most, "out", s->buffer, err));
  }
  return 0;
}
