/* Others' tensors as buffers, by DLPack. A producer's word is not taken for more than it must be: what is no array in
 * this machine's memory is refused, and given back to him. */
#include "dlpack.h"

#include <string.h>

/* A tensor on its way in. */
typedef struct dl_arrival {
  py_state *st;
  const dl_tensor *tensor;
  uint64_t flags;
  py_copy copy;
  void (*release)(void *ctx); /* NULL: nobody wants to hear of it */
  void *ctx;
  /* as a buffer */
  uint32_t dtype, rank;
  int64_t dims[DL_MAX_RANK + 1], steps[DL_MAX_RANK + 1];
} dl_arrival;

static void release_versioned(void *ctx) {
  dl_versioned *m = ctx;
  m->deleter(m);
}

static void release_legacy(void *ctx) {
  dl_legacy *m = ctx;
  m->deleter(m);
}

/* Back to the producer, whatever exception is on its way. */
static void arrival_return(void (*release)(void *ctx), void *ctx) {
  PyObject *type, *value, *traceback;
  if (release == NULL) return;
  PyErr_Fetch(&type, &value, &traceback);
  release(ctx);
  PyErr_Restore(type, value, traceback);
}

static int arrival_refuse(const char *format, ...) {
  va_list args;
  va_start(args, format);
  PyErr_FormatV(PyExc_BufferError, format, args);
  va_end(args);
  return -1;
}

/* --- reading the description --- */

static int arrival_check(const dl_tensor *t) {
  if (t->device != DL_CPU && t->device != DL_CUDA_HOST && t->device != DL_ROCM_HOST)
    return arrival_refuse(
        "the tensor is on DLPack device (%d, %d), not in memory that the CPU can read; device='cpu' "
        "asks its producer for a copy",
        (int)t->device, (int)t->device_number);
  if (t->rank < 0 || t->rank > DL_MAX_RANK)
    return arrival_refuse("the tensor has %d dimensions; there can be 0 to %d", (int)t->rank, DL_MAX_RANK);
  if (t->rank && t->dims == NULL) return arrival_refuse("the tensor has %d dimensions but no shape", (int)t->rank);
  for (int32_t d = 0; d < t->rank; d++)
    if (t->dims[d] < 0)
      return arrival_refuse("dimension %d of the tensor is negative: %lld", (int)d, (long long)t->dims[d]);
  if (t->type.lanes == 0 || (t->type.lanes > 1 && t->rank == DL_MAX_RANK))
    return arrival_refuse("the tensor's elements have %d lanes", (int)t->type.lanes);
  return 0;
}

static bool arrival_is_empty(const dl_arrival *a) {
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] == 0) return true;
  return false;
}

/* Steps of a dense array; false where they are beyond 2^63. */
static bool arrival_dense_steps(dl_arrival *a) {
  int64_t step = 1;
  for (uint32_t d = a->rank; d-- > 0;) {
    a->steps[d] = step;
    if (a->dims[d] > 1 && __builtin_mul_overflow(step, a->dims[d], &step)) return false;
  }
  return true;
}

/* In elements without lanes; false where they are beyond 2^63. Who has no elements need not say sound ones. */
static bool arrival_steps(dl_arrival *a) {
  const dl_tensor *t = a->tensor;
  if (arrival_is_empty(a)) return memset(a->steps, 0, sizeof a->steps) != NULL;
  if (t->steps == NULL) return arrival_dense_steps(a);
  for (int32_t d = 0; d < t->rank; d++)
    if (__builtin_mul_overflow(t->steps[d], (int64_t)t->type.lanes, &a->steps[d])) return false;
  if (t->type.lanes > 1) a->steps[a->rank - 1] = 1;
  return true;
}

/* Lanes become a last dimension. */
static int arrival_read(dl_arrival *a) {
  const dl_tensor *t = a->tensor;
  if (arrival_check(t) < 0) return -1;
  a->dtype = dl_type_in(a->st, t->type);
  if (a->dtype == 0)
    return arrival_refuse("xlac has no element type for DLPack type code %d of %d bits", (int)t->type.code,
                          (int)t->type.bits);
  a->rank = (uint32_t)t->rank;
  for (uint32_t d = 0; d < a->rank; d++) a->dims[d] = t->dims[d];
  if (t->type.lanes > 1) a->dims[a->rank++] = t->type.lanes;
  bool fits = arrival_steps(a) && t->offset <= PTRDIFF_MAX && (t->offset == 0 || t->data != NULL);
  return fits ? 0 : arrival_refuse("the tensor's strides or offset are beyond the address space");
}

static void *arrival_data(const dl_arrival *a) {
  return a->tensor->data ? (char *)a->tensor->data + a->tensor->offset : NULL;
}

/* --- elements narrower than a byte --- */

/* 1 where the elements are just as xlac has them, 0 where they must be copied. */
static int arrival_narrow(const dl_arrival *a, dl_narrow *n) {
  int64_t bits = a->tensor->type.bits, last = 0, reach = 0, all = 1;
  bool fits = true, empty = arrival_is_empty(a);
  for (uint32_t d = 0; d < a->rank && !empty && fits; d++) {
    fits = !__builtin_mul_overflow(a->dims[d] - 1, a->steps[d], &last) && last != INT64_MIN &&
           !__builtin_add_overflow(reach, last < 0 ? -last : last, &reach) &&
           !__builtin_mul_overflow(all, a->dims[d], &all);
  }
  if (!fits || reach > INT64_MAX / 16) return arrival_refuse("the tensor's strides are beyond the address space");
  if (!empty && a->tensor->data == NULL) return arrival_refuse("the tensor has elements but no data");
  *n = (dl_narrow){.bits = (uint32_t)bits,
                   .rank = a->rank,
                   .is_signed = a->tensor->type.code == 0,
                   .packed = !(a->flags & DL_PADDED),
                   .dims = a->dims,
                   .steps = a->steps,
                   .data = arrival_data(a)};
  return !n->packed && dl_narrow_read(n, NULL);
}

static xlac_buffer *arrival_unpack(const dl_arrival *a, const dl_narrow *n) {
  xlac_buffer_info info;
  xlac_buffer *b = NULL;
  xlac_error err = {.code = 0};
  if (xlac_buffer_create(&b, a->st->runtime, a->st->counters, a->dtype, a->rank, a->dims, &err) != 0) {
    py_raise(a->st, &err, PY_ANY);
    return NULL;
  }
  xlac_buffer_get(b, &info);
  (void)dl_narrow_read(n, info.data);
  py_count_in(a->st, info.bytes, true);
  arrival_return(a->release, a->ctx);
  return b;
}

/* --- the buffer --- */

/* On the producer's memory, who keeps it on failure. */
static xlac_buffer *arrival_wrap(dl_arrival *a) {
  int64_t bytes = (int64_t)xlac_dtype_bytes(a->dtype);
  bool fits = true;
  for (uint32_t d = 0; d < a->rank; d++) {
    bool counts = a->dims[d] > 1; /* a stride that is never gone may be anything */
    if (counts) fits = fits && !__builtin_mul_overflow(a->steps[d], bytes, &a->steps[d]);
  }
  if (!fits) return arrival_refuse("the tensor's strides are beyond the address space"), NULL;
  xlac_layout layout = {a->dtype, a->rank, a->dims, a->steps, (a->flags & DL_READ_ONLY) != 0};
  xlac_memory memory = {arrival_data(a), a->release, a->ctx};
  xlac_buffer *b = NULL;
  xlac_error err;
  err.code = 0;
  err.hint[0] = 0;
  if (xlac_buffer_wrap(&b, a->st->counters, &layout, &memory, &err) != 0) py_raise_buffer_error(&err);
  return b;
}

/* A copy instead of b, if one is wanted that the producer has not made. */
static xlac_buffer *arrival_copy(const dl_arrival *a, xlac_buffer *b) {
  bool copied = (a->flags & DL_COPIED) != 0, copies = a->copy == PY_COPY_ALWAYS && !copied;
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  if (copies) {
    xlac_buffer *copy = py_buffer_copied(a->st, b);
    xlac_buffer_release(b);
    b = copy;
  }
  if (b) py_count_in(a->st, info.bytes, copied || copies);
  return b;
}

static xlac_buffer *arrival_take(dl_arrival *a) {
  dl_narrow narrow;
  xlac_buffer *b = NULL;
  int plain = arrival_read(a) < 0 ? -1 : 1;
  if (plain > 0 && a->copy == PY_COPY_NEVER && (a->flags & DL_COPIED))
    plain = arrival_refuse("the producer made a copy, and copy=False forbids it");
  if (plain > 0 && a->tensor->type.bits < 8) plain = arrival_narrow(a, &narrow);
  if (plain == 0 && a->copy == PY_COPY_NEVER)
    plain = arrival_refuse(
        "elements of %d bits that are packed, or have other bits beside them, can't be taken without "
        "a copy, and copy=False forbids it",
        (int)a->tensor->type.bits);
  if (plain == 0) b = arrival_unpack(a, &narrow);
  if (plain > 0) b = arrival_wrap(a);
  if (b == NULL) arrival_return(a->release, a->ctx);
  if (b && plain) b = arrival_copy(a, b);
  if (b) xlac_counters_add(a->st->counters, XLAC_COUNT_DLPACK_IMPORTS, 1);
  return b;
}

xlac_buffer *dl_import_versioned(py_state *st, dl_versioned *m, py_copy copy) {
  void (*release)(void *ctx) = m->deleter ? release_versioned : NULL;
  if (m->version.major != DL_MAJOR) { /* what follows the deleter may be laid out in another way */
    arrival_refuse("the producer exports DLPack %u.%u, and xlac reads %d.x", m->version.major, m->version.minor,
                   DL_MAJOR);
    arrival_return(release, m);
    return NULL;
  }
  dl_arrival a;
  a.st = st, a.tensor = &m->tensor, a.flags = m->flags, a.copy = copy, a.release = release, a.ctx = m;
  return arrival_take(&a);
}

/* It can't say whether one may write to it, so nobody may. */
xlac_buffer *dl_import_legacy(py_state *st, dl_legacy *m, py_copy copy) {
  dl_arrival a;
  a.st = st, a.tensor = &m->tensor, a.flags = DL_READ_ONLY, a.copy = copy;
  a.release = m->deleter ? release_legacy : NULL, a.ctx = m;
  return arrival_take(&a);
}
