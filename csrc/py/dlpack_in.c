/* Others' tensors as buffers, by DLPack: element types, the tensor itself, and asking an object for it.
 *
 * A producer's word is not taken for more than it must be: what is not an array in this machine's memory is refused
 * and given back to him, once, on whatever way out. Whether the memory is as large as he says nobody can check. */
#include <string.h>

#include "dlpack.h"

/* --- element types --- */

/* By number of the element type, so that an export asks nothing. */
void dl_types_fill(py_state *st) {
  assert(xlac_dtype_count() <= PY_MAX_DTYPES);
  for (uint32_t dtype = 1; dtype < xlac_dtype_count() && dtype < PY_MAX_DTYPES; dtype++)
    xlac_dtype_dlpack(dtype, &st->dl_codes[dtype], &st->dl_bits[dtype]);
}

/* A search: there are few types. 0 bits mean "DLPack has no such type", so they match nothing. */
uint32_t dl_type_in(const py_state *st, dl_type t) {
  for (uint32_t dtype = 1; dtype < PY_MAX_DTYPES; dtype++)
    if (st->dl_bits[dtype] == t.bits && st->dl_codes[dtype] == t.code && t.bits) return dtype;
  return 0;
}

/* 0 where there is none. */
uint32_t dl_type_by_name(dl_type t) {
  for (uint32_t dtype = 1; dtype < xlac_dtype_count(); dtype++) {
    dl_type own = {.lanes = 1};
    xlac_dtype_dlpack(dtype, &own.code, &own.bits);
    if (own.code == t.code && own.bits == t.bits) return dtype;
  }
  return 0;
}

/* 0 bits where DLPack has no type for it. */
dl_type dl_type_out(const py_state *st, uint32_t dtype) {
  assert(dtype < PY_MAX_DTYPES);
  return (dl_type){st->dl_codes[dtype], st->dl_bits[dtype], 1};
}

/* --- narrower than a byte --- */

/* The element at a place counted in elements; its bits may lie in two bytes. Bits beyond the element's are
 * whatever is beside it. */
static uint32_t narrow_load(const dl_narrow *n, int64_t place) {
  assert(n->bits > 0 && n->bits < 8);
  if (!n->packed) return n->data[place];
  int64_t bit = place * n->bits;
  const uint8_t *at = n->data + (bit >> 3);
  uint32_t shift = (uint32_t)bit & 7, v = at[0];
  if (shift + n->bits > 8) v |= (uint32_t)at[1] << 8;
  return v >> shift;
}

/* As xlac writes it: with the sign in the bits beside. */
static uint8_t narrow_extended(const dl_narrow *n, uint32_t v) {
  assert(n->bits > 0 && n->bits < 8);
  v &= (1u << n->bits) - 1;
  bool negative = n->is_signed && (v >> (n->bits - 1)) != 0;
  return (uint8_t)(negative ? v | ~((1u << n->bits) - 1) : v);
}

/* To the next place, row-major; false after the last. `at` are the indices and `place` the place that they mean;
 * both are at the beginning again after the last. */
static bool narrow_next(const dl_narrow *n, int64_t *at, int64_t *place) {
  for (uint32_t d = n->rank; d-- > 0;) {
    *place += n->steps[d];
    if (++at[d] < n->dims[d]) return true;
    *place -= n->steps[d] * n->dims[d];
    at[d] = 0;
  }
  return false;
}

/* A pass over all elements in row-major order, which costs as much as a copy; the types that need it are rare. */
bool dl_narrow_read(const dl_narrow *n, uint8_t *to) {
  assert(n->rank <= DL_MAX_RANK);
  int64_t at[DL_MAX_RANK] = {0}, place = 0;
  bool clean = true;
  for (uint32_t d = 0; d < n->rank; d++)
    if (n->dims[d] == 0) return true;
  do {
    uint32_t v = narrow_load(n, place);
    uint8_t byte = narrow_extended(n, v);
    clean = clean &&
            (byte == v || v >> n->bits == 0); /* ml_dtypes has both forms of negative numbers, and xlac reads both */
    if (to) *to++ = byte;
  } while (narrow_next(n, at, &place));
  return clean;
}

/* Little-endian within a byte, as DLPack says: the first element lies in the lowest bits. Elements of three bits,
 * say, cross bytes. */
void dl_narrow_pack(uint32_t bits, uint8_t *bytes, int64_t n) {
  assert(bits > 0 && bits < 8 && n >= 0);
  uint32_t waiting = 0, have = 0;
  uint8_t *to = bytes; /* never overtakes what is read */
  for (int64_t i = 0; i < n; i++) {
    waiting |= (bytes[i] & ((1u << bits) - 1)) << have;
    have += bits;
    if (have < 8) continue;
    *to++ = (uint8_t)waiting;
    waiting >>= 8;
    have -= 8;
  }
  if (have) *to = (uint8_t)waiting;
}

/* --- tensors --- */

/* A tensor on its way in. Not cleared as a whole when it is made, since dims and steps have a kilobyte. */
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

/* A tensor's own deleter, as an xlac_memory's. */
static void release_versioned(void *ctx) {
  dl_versioned *m = ctx;
  m->deleter(m);
}

/* The tensor is the context: it has its own deleter. */
static void release_legacy(void *ctx) {
  dl_legacy *m = ctx;
  m->deleter(m);
}

/* Back to the producer, whatever exception is on its way. NULL: the producer wants to hear nothing. */
static void arrival_return(void (*release)(void *ctx), void *ctx) {
  PyObject *type, *value, *traceback;
  if (release == NULL) return;
  PyErr_Fetch(&type, &value, &traceback);
  release(ctx);
  PyErr_Restore(type, value, traceback);
}

/* Raises BufferError; -1. */
static int arrival_refuse(const char *format, ...) {
  assert(format);
  va_list args;
  va_start(args, format);
  PyErr_FormatV(PyExc_BufferError, format, args);
  va_end(args);
  return -1;
}

/* --- reading the description --- */

/* What the description must have to be read at all: 0, or -1 with an exception. Nothing is computed from sizes
 * yet. */
static int arrival_check(const dl_tensor *t) {
  if (t->device != DL_CPU && t->device != DL_CUDA && t->device != DL_CUDA_HOST && t->device != DL_ROCM_HOST)
    return arrival_refuse(
        "the tensor is on DLPack device (%d, %d), neither in memory that the CPU can read nor a CUDA GPU's; "
        "device='cpu' asks its producer for a copy",
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

/* Whether it has no elements; then neither address nor strides mean anything. */
static bool arrival_is_empty(const dl_arrival *a) {
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] == 0) return true;
  return false;
}

/* Steps of a dense array; false where they are beyond 2^63. */
static bool arrival_dense_steps(dl_arrival *a) {
  assert(a->rank <= DL_MAX_RANK);
  int64_t step = 1;
  for (uint32_t d = a->rank; d-- > 0;) {
    a->steps[d] = step;
    if (a->dims[d] > 1 && __builtin_mul_overflow(step, a->dims[d], &step)) return false;
  }
  return true;
}

/* In elements without lanes; false where they are beyond 2^63. Who has no elements need not say sound ones. */
static bool arrival_steps(dl_arrival *a) {
  assert(a->rank <= DL_MAX_RANK + 1);
  const dl_tensor *t = a->tensor;
  if (arrival_is_empty(a)) return memset(a->steps, 0, sizeof a->steps) != NULL;
  if (t->steps == NULL) return arrival_dense_steps(a);
  for (int32_t d = 0; d < t->rank; d++)
    if (__builtin_mul_overflow(t->steps[d], (int64_t)t->type.lanes, &a->steps[d])) return false;
  if (t->type.lanes > 1) a->steps[a->rank - 1] = 1;
  return true;
}

/* Lanes become a last dimension. 0, or -1 with an exception. Arrays with lanes (vectors of four floats, say) come
 * from graphics; their lanes are elements to xlac. */
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

/* The address of the first element: DLPack has an offset in bytes besides. */
static void *arrival_data(const dl_arrival *a) {
  return a->tensor->data ? (char *)a->tensor->data + a->tensor->offset : NULL;
}

/* --- elements narrower than a byte --- */

/* 1 where the elements are just as xlac has them, 0 where they must be copied. -1 with an exception. The elements
 * are read through strides that a producer has said, so the reach of all of them together must be within the
 * address space first. */
static int arrival_narrow(const dl_arrival *a, dl_narrow *n) {
  assert(a->tensor->type.bits < 8);
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

/* A buffer of its own with the elements, and the tensor is given back; NULL with an exception, and then it is not. */
static xlac_buffer *arrival_unpack(const dl_arrival *a, const dl_narrow *n) {
  assert(n->bits < 8);
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

const xlac_device *dl_device_in(py_state *st, int32_t number) {
  const xlac_device *device = NULL;
  char name[32];
  xlac_error err = {.code = 0};
  PyOS_snprintf(name, sizeof name, "cuda:%d", (int)number);
  if (xlac_runtime_find_device(st->runtime, name, &device, &err) != 0)
    (void)arrival_refuse(
        "the tensor is on DLPack device (%d, %d), which xlac has not: %s; device='cpu' asks its "
        "producer for a copy",
        DL_CUDA, (int)number, err.message);
  return device;
}

/* On the producer's memory, who keeps it on failure. NULL with an exception. Strides become bytes here;
 * xlac_buffer_wrap says what is wrong with the rest, as alignment or sizes beyond 2^63. */
static xlac_buffer *arrival_wrap(dl_arrival *a) {
  int64_t bytes = (int64_t)xlac_dtype_bytes(a->dtype);
  bool fits = true;
  for (uint32_t d = 0; d < a->rank; d++) {
    bool counts = a->dims[d] > 1; /* a stride that is never gone may be anything */
    if (counts) fits = fits && !__builtin_mul_overflow(a->steps[d], bytes, &a->steps[d]);
  }
  if (!fits) return arrival_refuse("the tensor's strides are beyond the address space"), NULL;
  const xlac_device *device = a->tensor->device == DL_CUDA ? dl_device_in(a->st, a->tensor->device_number) : NULL;
  if (a->tensor->device == DL_CUDA && device == NULL) return NULL;
  xlac_layout layout = {a->dtype, a->rank, a->dims, a->steps, (a->flags & DL_READ_ONLY) != 0, device};
  xlac_memory memory = {arrival_data(a), a->release, a->ctx};
  xlac_buffer *b = NULL;
  xlac_error err;
  err.code = 0;
  err.hint[0] = 0;
  if (xlac_buffer_wrap(&b, a->st->counters, &layout, &memory, &err) != 0) py_raise_buffer_error(&err);
  return b;
}

/* A copy instead of b, if one is wanted that the producer has not made. Steals b. The producer may have copied
 * already, which counts as a copy but needs no second one. */
static xlac_buffer *arrival_copy(const dl_arrival *a, xlac_buffer *b) {
  assert(b);
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

/* `plain`: 1 where the memory is taken as stored, 0 where it is unpacked, -1 where it is refused. After
 * arrival_wrap has succeeded the buffer owns the tensor, so it is given back here only where there is no buffer. */
static xlac_buffer *arrival_take(dl_arrival *a) {
  dl_narrow narrow;
  xlac_buffer *b = NULL;
  int plain = arrival_read(a) < 0 ? -1 : 1;
  if (plain > 0 && a->copy == PY_COPY_NEVER && (a->flags & DL_COPIED))
    plain = arrival_refuse("the producer made a copy, and copy=False forbids it");
  if (plain > 0 && a->tensor->type.bits < 8 && a->tensor->device == DL_CUDA)
    plain = arrival_refuse("elements of %d bits can't be taken from a GPU's memory; device='cpu' asks for a copy",
                           (int)a->tensor->type.bits);
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
  assert(st && m);
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
  assert(st && m);
  dl_arrival a;
  a.st = st, a.tensor = &m->tensor, a.flags = DL_READ_ONLY, a.copy = copy;
  a.release = m->deleter ? release_legacy : NULL, a.ctx = m;
  return arrival_take(&a);
}

/* --- from_dlpack --- */

/* Takes the tensor out of the capsule, which is told by its new name. NULL with an exception. The name is changed
 * before the tensor is used, so that the capsule's destructor leaves it alone whatever happens. */
static xlac_buffer *from_capsule(py_state *st, PyObject *capsule, py_copy copy) {
  if (PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME);
    if (PyCapsule_SetName(capsule, DL_VERSIONED_USED) < 0) return NULL;
    return dl_import_versioned(st, m, copy);
  }
  if (PyCapsule_IsValid(capsule, DL_LEGACY_NAME)) {
    dl_legacy *m = PyCapsule_GetPointer(capsule, DL_LEGACY_NAME);
    if (PyCapsule_SetName(capsule, DL_LEGACY_USED) < 0) return NULL;
    return dl_import_legacy(st, m, copy);
  }
  const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
  PyErr_Clear();
  if (name)
    PyErr_Format(PyExc_BufferError, "the capsule is named '%s': its tensor was taken already, or it has none", name);
  else
    PyErr_Format(PyExc_TypeError, "__dlpack__() gave %.100s, not a DLPack capsule", Py_TYPE(capsule)->tp_name);
  return NULL;
}

/* x.__dlpack__(...), of a producer that knows versions, or else of one that does not. A capsule, or whatever the
 * method gives; NULL with an exception. A TypeError may come from inside the method, too: the second call then
 * raises it again. */
static PyObject *from_call(py_state *st, PyObject *object, py_copy copy, bool to_cpu) {
  PyObject *const *names = st->names;
  PyObject *said = copy == PY_COPY_NEVER ? Py_False : copy == PY_COPY_ALWAYS ? Py_True : Py_None;
  PyObject *args[] = {object, names[PY_DL_VERSION], said, names[PY_DL_CPU]};
  PyObject *keywords = names[to_cpu                  ? PY_KEYWORDS_DEVICE
                             : copy == PY_COPY_NEVER ? PY_KEYWORDS_COPY
                                                     : PY_KEYWORDS_VERSION];
  PyObject *capsule = PyObject_VectorcallMethod(names[PY_NAME_DLPACK], args, 1, keywords);
  if (capsule || to_cpu || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  return PyObject_VectorcallMethod(names[PY_NAME_DLPACK], args, 1, NULL);
}

/* The device of what the capsule holds, and its number; 0 where that can't be read. */
static int32_t from_device(PyObject *capsule, int32_t *number) {
  const dl_tensor *t = NULL;
  if (PyCapsule_IsValid(capsule, DL_LEGACY_NAME)) {
    t = &((dl_legacy *)PyCapsule_GetPointer(capsule, DL_LEGACY_NAME))->tensor;
  } else if (PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)) {
    dl_versioned *m = PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME);
    t = m->version.major == DL_MAJOR ? &m->tensor : NULL;
  }
  if (t) *number = t->device_number;
  return t ? t->device : 0;
}

/* Memory that a CUDA or ROCm driver has pinned is in this machine and can be read. */
static bool from_is_elsewhere(int32_t device) {
  return device != 0 && device != DL_CPU && device != DL_CUDA_HOST && device != DL_ROCM_HOST;
}

/* The capsule again, with its work ordered before the stream that has always been there (1), and that is waited for:
 * then the tensor is ready for every stream of ours. A producer that takes no stream has all its device waited for.
 * Steals the capsule. */
static PyObject *from_stream(py_state *st, PyObject *object, PyObject *capsule, int32_t number) {
  PyObject *const *names = st->names;
  PyObject *one = PyLong_FromLong(1), *args[] = {object, names[PY_DL_VERSION], one};
  const xlac_device *device = one ? dl_device_in(st, number) : NULL;
  xlac_error err = {.code = 0};
  int status = 0;
  if (device == NULL) { /* whoever takes the tensor says so, and gives it back */
    PyErr_Clear();
    Py_XDECREF(one);
    return capsule;
  }
  PyObject *again = PyObject_VectorcallMethod(names[PY_NAME_DLPACK], args, 1, names[PY_KEYWORDS_STREAM]);
  Py_DECREF(one);
  bool joined = again != NULL;
  if (again == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    again = Py_NewRef(capsule);
  }
  Py_DECREF(capsule);
  if (again == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = xlac_device_join(device, joined ? 1 : XLAC_ALL_STREAMS, &err);
  Py_END_ALLOW_THREADS;
  if (status == 0) return again;
  Py_DECREF(again);
  return py_raise(st, &err, PY_ANY);
}

/* Asks for a copy on the CPU only where the tensor is elsewhere: producers that know one device only take no
 * dl_device. */
static xlac_buffer *from_method(py_state *st, PyObject *object, py_copy copy, bool to_cpu) {
  int32_t number = 0;
  PyObject *capsule = from_call(st, object, copy, false);
  if (capsule && to_cpu && copy != PY_COPY_NEVER && from_is_elsewhere(from_device(capsule, &number))) {
    Py_DECREF(capsule);
    capsule = from_call(st, object, copy, true);
  }
  if (capsule && from_device(capsule, &number) == DL_CUDA) capsule = from_stream(st, object, capsule, number);
  if (capsule == NULL) return NULL;
  xlac_buffer *b = from_capsule(st, capsule, copy);
  Py_DECREF(capsule);
  return b;
}

/* Says so; NULL. */
static xlac_buffer *from_deleted(py_state *st, xlac_buffer *b) {
  assert(b);
  xlac_error err = {.code = 0};
  if (xlac_buffer_open(b, &err) == 0) return xlac_buffer_close(b), xlac_buffer_retain(b); /* given back meanwhile */
  py_raise(st, &err, PY_ANY);
  return NULL;
}

/* Another of our own: a second object for the same buffer, so that a donation of one is seen by both; or a copy. */
static xlac_buffer *from_buffer(py_state *st, xlac_buffer *b, py_copy copy, bool to_cpu) {
  assert(b && copy != PY_COPY_WRONG);
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  if (info.deleted) return from_deleted(st, b);
  bool moves = to_cpu && info.device, copies = copy == PY_COPY_ALWAYS || moves;
  if (moves && copy == PY_COPY_NEVER)
    return arrival_refuse("the buffer is in a GPU's memory, and copy=False forbids a copy on the CPU"), NULL;
  xlac_buffer *out = moves ? py_buffer_moved(st, b, NULL) : copies ? py_buffer_copied(st, b) : xlac_buffer_retain(b);
  if (out) py_count_in(st, info.bytes, copies);
  if (out) xlac_counters_add(st->counters, XLAC_COUNT_DLPACK_IMPORTS, 1);
  return out;
}

/* NumPy's own export knows no types of ml_dtypes. */
static xlac_buffer *from_array(py_state *st, PyObject *array, py_copy copy) {
  xlac_buffer *b = py_buffer_of_array(st, array, copy);
  if (b) xlac_counters_add(st->counters, XLAC_COUNT_DLPACK_IMPORTS, 1);
  return b;
}

/* 1 where the table of functions is no help: the method says more. 0: *out is there; -1 with an exception. */
static int from_table(py_state *st, const dl_exchange *table, PyObject *object, py_copy copy, xlac_buffer **out) {
  assert(table->from_object && *out == NULL);
  dl_versioned *m = NULL;
  if (table->from_object(object, &m) != 0 || m == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "the producer gave no tensor and no reason");
    return -1;
  }
  if (m->version.major == DL_MAJOR && from_is_elsewhere(m->tensor.device)) {
    if (m->deleter) m->deleter(m);
    return 1;
  }
  *out = dl_import_versioned(st, m, copy);
  return *out ? 0 : -1;
}

/* Tensors of PyTorch's that are not what their memory says, or that a gradient is to flow through. Its table of
 * functions exports them without a word; of the negative bit its method says nothing either. */
static const struct {
  const char *name;
  bool is_method;
  const char *what, *hint;
} from_unfit[] = {
    {"requires_grad", false, "requires a gradient, which ends here", "x.detach()"},
    {"is_conj", true, "has the conjugate bit: its memory is not conjugated", "x.resolve_conj()"},
    {"is_neg", true, "has the negative bit: its memory is not negated", "x.resolve_neg()"},
};

/* 1: it is so; 0: not, or there is no such attribute. */
static int from_is(PyObject *object, const char *name, bool is_method) {
  PyObject *v = is_method ? PyObject_CallMethod(object, name, NULL) : PyObject_GetAttrString(object, name);
  int yes = v ? v == Py_True : 0;
  Py_XDECREF(v);
  if (!v) PyErr_Clear();
  return yes;
}

/* Only of types with a table: others speak for themselves. -1 with an exception. */
static int from_check_fit(PyObject *object) {
  for (size_t i = 0; i < sizeof from_unfit / sizeof *from_unfit; i++) {
    if (!from_is(object, from_unfit[i].name, from_unfit[i].is_method)) continue;
    PyErr_Format(PyExc_BufferError, "the %.100s %s; pass %s", Py_TYPE(object)->tp_name, from_unfit[i].what,
                 from_unfit[i].hint);
    return -1;
  }
  return 0;
}

/* What has no dense memory of plain elements; PyTorch says so itself, but in a RuntimeError with frames of C++. */
static const struct {
  const char *name, *what, *hint;
} from_shapeless[] = {
    {"is_sparse", "is sparse", "x.to_dense()"},
    {"is_sparse_csr", "is sparse", "x.to_dense()"},
    {"is_quantized", "is quantized", "x.dequantize()"},
    {"is_nested", "is nested", "x.to_padded_tensor(0)"},
    {"is_meta", "is on the device meta, without memory", "a tensor with elements"},
};

/* Makes PyTorch's RuntimeError a BufferError of one line. MemoryError and the like stay. */
static void from_raise_failure(PyObject *object) {
  if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_RuntimeError)) return;
  char line[200];
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *said = text ? PyUnicode_AsUTF8(text) : NULL, *name = Py_TYPE(object)->tp_name;
  PyErr_Clear();
  PyOS_snprintf(line, sizeof line, "%s", said ? said : "");
  line[strcspn(line, "\n")] = 0;
  size_t i = 0, n = sizeof from_shapeless / sizeof *from_shapeless;
  while (i < n && !from_is(object, from_shapeless[i].name, false)) i++;
  if (i < n)
    PyErr_Format(PyExc_BufferError, "the %.100s %s; pass %s", name, from_shapeless[i].what, from_shapeless[i].hint);
  else
    PyErr_Format(PyExc_BufferError, "the %.100s can't be exported: %s", name, line);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

bool py_lies_on_gpu(py_state *st, PyObject *object) {
  PyObject *type, *value, *traceback, *said = NULL, *kind = NULL;
  PyErr_Fetch(&type, &value, &traceback);
  void **numpy = py_numpy(st);
  if (numpy && !PyArray_Check(object)) said = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  if (said && PyTuple_Check(said) && PyTuple_GET_SIZE(said) == 2) kind = PyNumber_Index(PyTuple_GET_ITEM(said, 0));
  bool gpu = kind && PyLong_AsLong(kind) == DL_CUDA;
  Py_XDECREF(kind);
  Py_XDECREF(said);
  PyErr_Restore(type, value, traceback); /* in the place of what asking raised */
  return gpu;
}

/* The ways from fastest to slowest. A table can't be told not to copy, so copy=False goes by the method. */
xlac_buffer *py_buffer_from_dlpack(py_state *st, PyObject *object, py_copy copy, bool to_cpu) {
  assert(copy != PY_COPY_WRONG);
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (PyArray_CheckExact(object)) return from_array(st, object, copy); /* as its own method, for more types */
  if (PyArray_Check(object) && py_is_masked(object)) return PyErr_SetString(PyExc_BufferError, PY_MASKED_WORDS), NULL;
  if (py_is_buffer(st, object)) return from_buffer(st, ((py_buffer *)object)->b, copy, to_cpu);
  const dl_exchange *table = dl_exchange_of(st, Py_TYPE(object));
  xlac_buffer *b = NULL;
  if (table && from_check_fit(object) < 0) return NULL;
  int status = table && copy != PY_COPY_NEVER ? from_table(st, table, object, copy, &b) : 1;
  if (status > 0) b = from_method(st, object, copy, to_cpu);
  if (b == NULL && table) from_raise_failure(object);
  if (status <= 0) return b;
  if (b || !PyErr_ExceptionMatches(PyExc_AttributeError) || PyObject_HasAttr(object, st->names[PY_NAME_DLPACK]))
    return b;
  PyErr_Format(PyExc_TypeError, "from_dlpack takes an object with the method __dlpack__, not %.100s",
               Py_TYPE(object)->tp_name);
  return NULL;
}

/* 0, or -1 with an exception. */
static int from_option(PyObject *name, PyObject *value, py_copy *copy, bool *to_cpu) {
  if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) {
    *copy = py_copy_of(value);
    return *copy == PY_COPY_WRONG ? -1 : 0;
  }
  if (PyUnicode_CompareWithASCIIString(name, "device") != 0) {
    PyErr_Format(PyExc_TypeError, "from_dlpack() got an unexpected keyword argument '%U'", name);
    return -1;
  }
  if (value == Py_None) return 0;
  if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "cpu") == 0) return *to_cpu = true, 0;
  PyErr_Format(PyExc_ValueError, "device is 'cpu' or None, not %R", value);
  return -1;
}

/* The names of the array API standard: device and copy. */
PyObject *py_from_dlpack(PyObject *core, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  py_state *st = PyModule_GetState(core);
  py_copy copy = PY_COPY_IF_NEEDED;
  bool to_cpu = false;
  if (n != 1) return PyErr_Format(PyExc_TypeError, "from_dlpack() takes one positional argument, not %zd", n);
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
    if (from_option(PyTuple_GET_ITEM(kwnames, i), args[1 + i], &copy, &to_cpu) < 0) return NULL;
  xlac_buffer *b = py_buffer_from_dlpack(st, args[0], copy, to_cpu);
  return b ? py_wrap_buffer(st, b) : NULL;
}
