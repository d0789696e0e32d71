/* Kernels evaluated one iteration after another, one lane at a time: nothing is clever here. */
#include "kernel.h"

enum { KEVAL_BYTES = 16 /* room for an element of any type */ };

typedef struct keval_run {
  const kernel *k;
  const void *const *in;
  void *const *out;
  interp_loop *loops;
  char *values; /* KEVAL_BYTES each */
  int64_t index[KERNEL_MAX_RANK];
  interp_loop combine;
  base_dtype sum;  /* the type that is summed in */
  char *sums;      /* of each result */
  uint8_t *needed; /* by value: the reduction's first needs it */
} keval_run;

static int64_t keval_at(const keval_run *x, const kernel_index *index) {
  int64_t at = index->offset;
  for (uint32_t d = 0; d < x->k->rank; d++) at += index->strides[d] * x->index[d];
  return at;
}

static void keval_value(keval_run *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  char *to = x->values + (size_t)i * KEVAL_BYTES;
  const void *args[3] = {NULL, NULL, NULL};
  int64_t number = 0;
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      memcpy(to, (const char *)x->in[v->buffer] + keval_at(x, v->index) * (int64_t)bytes, bytes);
      break;
    case KERNEL_COUNT_UP:
      number = keval_at(x, v->index);
      base_convert((base_dtype)v->dtype, to, XLAC_S64, &number, 1);
      break;
    case KERNEL_CONSTANT:
      memcpy(to, v->data, bytes);
      break;
    case KERNEL_OP:
      for (uint32_t j = 0; j < v->n_in; j++) args[j] = x->values + (size_t)v->in[j] * KEVAL_BYTES;
      interp_loop_run(&x->loops[i], 1, args, to);
      break;
  }
}

static void keval_store(const keval_run *x, const kernel_store *s) {
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  const char *value = x->values + (size_t)s->value * KEVAL_BYTES;
  int64_t at = keval_at(x, &s->index);
  char wide[KEVAL_BYTES] __attribute__((aligned(16)));
  if (!x->k->reduction) {
    memcpy((char *)x->out[s->buffer] + at * (int64_t)base_dtype_bytes(t), value, base_dtype_bytes(t));
    return;
  }
  char *sum = x->sums + at * KEVAL_BYTES;
  const void *args[3] = {sum, wide, NULL};
  base_convert(x->sum, wide, t, value, 1);
  interp_loop_run(&x->combine, 1, args, sum);
}

static void keval_iterations(keval_run *x) {
  const kernel *k = x->k;
  for (int64_t n = 0; n < k->count; n++) {
    int64_t rest = n;
    for (uint32_t d = k->rank; d-- > 0; rest /= k->extents[d]) x->index[d] = rest % k->extents[d];
    for (uint32_t i = 0; i < k->n_values; i++) keval_value(x, i);
    for (uint32_t i = 0; i < k->n_stores; i++) keval_store(x, &k->stores[i]);
  }
}

/* All sums begin with init, whose values are the same at every iteration, and there may be none. */
static void keval_begin_sums(keval_run *x) {
  const kernel_reduction *r = x->k->reduction;
  base_dtype t = (base_dtype)x->k->values[r->init].dtype;
  x->needed[r->init] = 1;
  for (uint32_t i = r->init + 1; i-- > 0;)
    for (uint32_t j = 0; x->needed[i] && j < x->k->values[i].n_in; j++) x->needed[x->k->values[i].in[j]] = 1;
  for (uint32_t i = 0; i <= r->init; i++)
    if (x->needed[i]) keval_value(x, i);
  for (int64_t i = 0; i < r->outer * r->inner; i++)
    base_convert(x->sum, x->sums + i * KEVAL_BYTES, t, x->values + (size_t)r->init * KEVAL_BYTES, 1);
}

static void keval_end_sums(const keval_run *x) {
  const kernel_store *s = &x->k->stores[0];
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  char *to = (char *)x->out[s->buffer];
  for (int64_t i = 0; i < x->k->reduction->outer * x->k->reduction->inner; i++)
    base_convert(t, to + (s->index.offset + i) * (int64_t)base_dtype_bytes(t), x->sum, x->sums + i * KEVAL_BYTES, 1);
}

static int64_t keval_sums(const kernel *k) {
  return k->reduction ? k->reduction->outer * k->reduction->inner : 0;
}

static int keval_prepare(keval_run *x, base_arena *scratch, xlac_error *err) {
  const kernel *k = x->k;
  bool ok = true;
  x->loops = BASE_ARRAY(scratch, interp_loop, k->n_values);
  x->values = base_arena_aligned(scratch, (size_t)k->n_values * KEVAL_BYTES, 16);
  x->needed = base_arena_zalloc(scratch, k->n_values);
  x->sums = base_arena_aligned(scratch, (size_t)keval_sums(k) * KEVAL_BYTES + 1, 16);
  if (!x->loops || !x->values || !x->needed || !x->sums) return base_oom(err, "a kernel's evaluation");
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_OP) ok = ok && interp_loop_of(k->values[i].op, &x->loops[i]);
  if (k->reduction) {
    base_dtype t = (base_dtype)k->values[k->stores[0].value].dtype;
    x->sum = base_dtype_is_float(t) && t != XLAC_F64 ? XLAC_F32 : t;
    ok = ok && interp_loop_binary((ir_opcode)k->reduction->body->opcode, x->sum, &x->combine);
  }
  assert(ok); /* the verifier has seen to that */
  return ok ? 0 : base_fail(err, XLAC_E_INTERNAL, "a kernel that is not verified");
}

int kernel_eval(const kernel *k, base_alloc alloc, const void *const *in, const int64_t *in_bytes, void *const *out,
                const int64_t *out_bytes, xlac_error *err) {
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
    if (k->reduction) keval_end_sums(&x);
  }
  base_arena_free(&scratch);
  return status;
}

/* --- sizes --- */

static int keval_check(const kernel *k, const kernel_index *index, base_dtype t, int64_t bytes, const char *what,
                       uint32_t number, xlac_error *err) {
  int64_t least = index->offset, most = index->offset, elements = bytes / (int64_t)base_dtype_bytes(t);
  bool some = kernel_reach(k, index, &least, &most);
  if (!some && !kernel_is_constant(k, index)) return 0; /* no iterations, and nothing that is read before them */
  if (!some) least = most = index->offset;
  if (least >= 0 && most < elements) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel reaches element %lld of %s%u, which has %lld elements of %s",
                   (long long)(least < 0 ? least : most), what, number, (long long)elements, base_dtype_of(t)->text);
}

int kernel_check_memory(const kernel *k, const int64_t *in_bytes, uint32_t n_out, const int64_t *out_bytes,
                        xlac_error *err) {
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_LOAD)
      TRY(keval_check(k, v->index, (base_dtype)v->dtype, in_bytes[v->buffer], "in", v->buffer, err));
  }
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    base_dtype t = (base_dtype)k->values[s->value].dtype;
    if (s->buffer >= n_out)
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel stores to out%u of %u", s->buffer, n_out);
    if (k->reduction && keval_sums(k) > out_bytes[s->buffer] / (int64_t)base_dtype_bytes(t))
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "a kernel has %lld results, and out%u has no room for them",
                       (long long)keval_sums(k), s->buffer);
    if (k->count) TRY(keval_check(k, &s->index, t, out_bytes[s->buffer], "out", s->buffer, err));
  }
  return 0;
}
