/* Buffers for others, by DLPack. Who takes a tensor of ours needs no GIL to give it back.
 *
 * A tensor that goes out is a view of a buffer: while it lives, the buffer can't be donated. What can't go out as
 * it lies (because of strides, or elements narrower than a byte) goes as a copy, unless copy=False forbids it; the
 * flags tell the other side of a copy and of padding. */
#include "dlpack.h"

/* One allocation: the tensor, and what it views. Dims and steps are the buffer's own. */
typedef struct dl_handed {
  union {
    dl_legacy legacy;
    dl_versioned versioned;
  } tensor;
  xlac_buffer *b;
} dl_handed;

/* The deleters, called once by whoever has the tensor, on any thread: nothing of Python's is touched but its raw
 * allocator. */
static void handed_delete(dl_handed *handed) {
  assert(handed->b);
  xlac_buffer_close(handed->b);
  PyMem_RawFree(handed);
}

static void handed_delete_legacy(dl_legacy *self) {
  handed_delete((dl_handed *)self->ctx);
}

static void handed_delete_versioned(dl_versioned *self) {
  handed_delete((dl_handed *)self->ctx);
}

int32_t dl_device_of(const xlac_buffer_info *info, int32_t *number) {
  xlac_device_info device = {.ordinal = 0};
  if (info->device) xlac_device_get(info->device, &device);
  *number = (int32_t)device.ordinal;
  return info->device ? DL_CUDA : DL_CPU;
}

/* Only views of what has elements have an address; steps are NULL for a scalar. Dims and steps are borrowed from
 * the buffer, and not to be written to, though DLPack's type has no const. */
void dl_describe(const xlac_buffer_info *info, dl_type type, dl_tensor *out) {
  assert(info->rank == 0 || info->steps);
  int32_t number = 0, device = dl_device_of(info, &number);
  *out = (dl_tensor){.data = info->count ? info->data : NULL,
                     .device = device,
                     .device_number = number,
                     .rank = (int32_t)info->rank,
                     .type = type,
                     .dims = (int64_t *)(uintptr_t)info->dims,
                     .steps = info->rank ? (int64_t *)(uintptr_t)info->steps : NULL};
}

/* Opens b, which the tensor's deleter closes. The tensor comes first in the allocation, so the pointer to it is
 * that to the whole. */
void *dl_hand_out(xlac_buffer *b, dl_type type, const dl_version *version, uint64_t flags, xlac_error *err) {
  assert(b);
  xlac_buffer_info info;
  if (xlac_buffer_open(b, err) != 0) return NULL;
  dl_handed *handed = PyMem_RawMalloc(sizeof *handed);
  if (handed == NULL) {
    xlac_buffer_close(b);
    if (err) *err = (xlac_error){.code = 600, .message = "out of memory exporting a buffer"};
    return NULL;
  }
  xlac_buffer_get(b, &info);
  handed->b = b;
  xlac_buffer_share(b);
  if (version) {
    handed->tensor.versioned =
        (dl_versioned){.version = *version, .ctx = handed, .deleter = handed_delete_versioned, .flags = flags};
    dl_describe(&info, type, &handed->tensor.versioned.tensor);
  } else {
    handed->tensor.legacy = (dl_legacy){.ctx = handed, .deleter = handed_delete_legacy};
    dl_describe(&info, type, &handed->tensor.legacy.tensor);
  }
  return &handed->tensor;
}

/* --- what needs a copy --- */

/* Why b can't go out as it is; NULL: it can. */
static const char *export_obstacle(const xlac_buffer_info *info, dl_type type, const dl_wish *wish) {
  assert(type.bits);
  if (info->steps == NULL) return "its strides are not whole numbers of elements";
  if (info->readonly && !wish->versioned) return "it is read-only, which DLPack before 1.0 can't say";
  if (type.bits < 8 && (!wish->versioned || wish->minor < DL_MINOR_OF_PADDED))
    return "its elements have a byte each, and DLPack before 1.1 knows only packed ones";
  return NULL;
}

/* Whether narrow elements have to be put side by side for this receiver. */
static bool export_packs(dl_type type, const dl_wish *wish) {
  return type.bits < 8 && (!wish->versioned || wish->minor < DL_MINOR_OF_PADDED);
}

/* A dense copy, packed in place where the receiver wants it; NULL with err, or with an exception set (of the
 * copying). */
static void *export_copy(py_state *st, xlac_buffer *b, dl_type type, const dl_wish *wish, xlac_error *err) {
  assert(wish->copy != PY_COPY_NEVER);
  xlac_buffer_info info;
  bool packs = export_packs(type, wish);
  xlac_buffer *copy = wish->to_cpu ? py_buffer_moved(st, b, NULL) : py_buffer_copied(st, b);
  if (copy == NULL) return NULL;
  xlac_buffer_get(copy, &info);
  if (packs && info.device) {
    xlac_buffer_release(copy);
    PyErr_SetString(PyExc_BufferError, "elements narrower than a byte can't be packed in a GPU's memory");
    return NULL;
  }
  if (packs) dl_narrow_pack(type.bits, info.data, info.count);
  uint64_t flags = DL_COPIED | (type.bits < 8 && !packs ? DL_PADDED : 0);
  dl_version version = {DL_MAJOR, wish->minor};
  void *tensor = dl_hand_out(copy, type, wish->versioned ? &version : NULL, flags, err);
  xlac_buffer_release(copy); /* the tensor's view keeps it */
  if (tensor) py_count_out(st, info.bytes, true);
  return tensor;
}

/* NULL with err. */
static void *export_view(py_state *st, xlac_buffer *b, const xlac_buffer_info *info, dl_type type, const dl_wish *wish,
                         xlac_error *err) {
  assert(info->steps || info->rank == 0);
  uint64_t flags = (info->readonly ? DL_READ_ONLY : 0) | (type.bits < 8 ? DL_PADDED : 0);
  dl_version version = {DL_MAJOR, wish->minor};
  void *tensor = dl_hand_out(b, type, wish->versioned ? &version : NULL, flags, err);
  if (tensor) py_count_out(st, info->bytes, false);
  return tensor;
}

/* Whether it can be where the other side wants it: -1 with an exception. From a GPU it can go to the CPU, as a copy. */
static int export_place(const xlac_buffer_info *info, dl_wish *wish) {
  int32_t number = 0, device = dl_device_of(info, &number);
  if (!wish->placed || (wish->device == device && wish->number == number)) return 0;
  wish->to_cpu = device != DL_CPU && wish->device == DL_CPU;
  if (wish->to_cpu) return 0;
  PyErr_Format(PyExc_BufferError, "the buffer is on the %s, and can't be exported to device (%ld, %ld)",
               device == DL_CPU ? "CPU" : "GPU", wish->device, wish->number);
  return -1;
}

/* What streams mean: none on the CPU. A GPU's Buffers are ready when Python has them, whichever stream it is. */
static int export_stream(PyObject *self, PyObject *stream) {
  xlac_buffer_info info;
  if (stream == Py_None) return 0;
  xlac_buffer_get(((py_buffer *)self)->b, &info);
  if (info.device && PyLong_Check(stream) && PyObject_IsTrue(stream)) return 0;
  PyErr_SetString(PyExc_BufferError, info.device ? "stream is the number of a CUDA stream, -1 or None; 0 could mean two"
                                                 : "stream must be None for arrays on the CPU");
  return -1;
}

/* A buffer that is deleted fails in dl_hand_out or in copying it, whose message says where it went. */
void *dl_export(py_state *st, xlac_buffer *b, const dl_wish *wish) {
  assert(b && wish->copy != PY_COPY_WRONG);
  xlac_buffer_info info;
  xlac_error err;
  err.code = 0;
  xlac_buffer_get(b, &info);
  dl_type type = dl_type_out(st, info.dtype);
  if (type.bits == 0)
    return PyErr_Format(PyExc_BufferError, "DLPack has no type for %s", xlac_dtype_text(info.dtype)), NULL;
  dl_wish own = *wish;
  if (export_place(&info, &own) < 0) return NULL;
  wish = &own;
  const char *obstacle = own.to_cpu ? "it is in a GPU's memory" : export_obstacle(&info, type, wish);
  if (obstacle && wish->copy == PY_COPY_NEVER && !info.deleted)
    return PyErr_Format(PyExc_BufferError, "the buffer can't be exported without a copy: %s", obstacle), NULL;
  void *tensor = obstacle || wish->copy == PY_COPY_ALWAYS ? export_copy(st, b, type, wish, &err)
                                                          : export_view(st, b, &info, type, wish, &err);
  if (tensor == NULL && !PyErr_Occurred()) py_raise(st, &err, PY_ANY);
  if (tensor) xlac_counters_add(st->counters, XLAC_COUNT_DLPACK_EXPORTS, 1);
  return tensor;
}

/* --- __dlpack__ --- */

/* Destructors of capsules that nobody consumed: who consumes one renames it. */
static void capsule_release_legacy(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, DL_LEGACY_NAME)) return; /* somebody took the tensor */
  dl_legacy *m = PyCapsule_GetPointer(capsule, DL_LEGACY_NAME);
  m->deleter(m);
}

/* The same of a tensor with a version. */
static void capsule_release_versioned(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)) return;
  dl_versioned *m = PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME);
  m->deleter(m);
}

/* A pair of ints, as max_version and dl_device are. 0, or -1 with an exception; `what` names the argument. */
static int export_pair(PyObject *object, const char *what, long *first, long *second) {
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2) {
    *first = PyLong_AsLong(PyTuple_GET_ITEM(object, 0));
    *second = PyErr_Occurred() ? 0 : PyLong_AsLong(PyTuple_GET_ITEM(object, 1));
    return PyErr_Occurred() ? -1 : 0;
  }
  PyErr_Format(PyExc_TypeError, "%s is a tuple of two integers or None, not %R", what, object);
  return -1;
}

/* The receiver says the newest version it understands. Without one, or with one before 1.0, it gets the struct of
 * old. */
static int export_version(PyObject *object, dl_wish *wish) {
  assert(wish);
  long major = 0, minor = 0;
  if (object == Py_None) return 0;
  if (export_pair(object, "max_version", &major, &minor) < 0) return -1;
  wish->versioned = major >= DL_MAJOR;
  wish->minor = major > DL_MAJOR || minor > DL_MINOR ? DL_MINOR : minor < 0 ? 0 : (uint32_t)minor;
  return 0;
}

/* 0, or -1 with an exception. */
static int export_device(PyObject *object, dl_wish *wish) {
  wish->placed = object != Py_None;
  return wish->placed ? export_pair(object, "dl_device", &wish->device, &wish->number) : 0;
}

/* Keywords are mostly interned, so the pointers are compared first. */
static int export_keyword(PyObject *self, PyObject *name, PyObject *value, dl_wish *wish) {
  assert(wish);
  py_state *st = py_state_of(self);
  PyObject *const *names = st->names;
  int which = PY_NAME_MAX_VERSION;
  while (which <= PY_NAME_STREAM && names[which] != name) which++;
  if (which > PY_NAME_STREAM)
    for (which = PY_NAME_MAX_VERSION; which <= PY_NAME_STREAM; which++)
      if (PyUnicode_Compare(names[which], name) == 0) break;
  switch (which) {
    case PY_NAME_MAX_VERSION:
      return export_version(value, wish);
    case PY_NAME_COPY:
      wish->copy = py_copy_of(value);
      return wish->copy == PY_COPY_WRONG ? -1 : 0;
    case PY_NAME_DL_DEVICE:
      return export_device(value, wish);
    case PY_NAME_STREAM:
      return export_stream(self, value);
    default:
      PyErr_Format(PyExc_TypeError, "__dlpack__() got an unexpected keyword argument '%U'", name);
      return -1;
  }
}

/* Keywords only, by position in args: the fast calling convention. The capsule owns the tensor until somebody
 * takes it out. */
PyObject *py_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  assert(((py_buffer *)self)->b);
  py_state *st = py_state_of(self);
  dl_wish wish = {.copy = PY_COPY_IF_NEEDED};
  if (n) return PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only"), NULL;
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
    if (export_keyword(self, PyTuple_GET_ITEM(kwnames, i), args[i], &wish) < 0) return NULL;
  void *tensor = dl_export(st, ((py_buffer *)self)->b, &wish);
  if (tensor == NULL) return NULL;
  PyObject *capsule = wish.versioned ? PyCapsule_New(tensor, DL_VERSIONED_NAME, capsule_release_versioned)
                                     : PyCapsule_New(tensor, DL_LEGACY_NAME, capsule_release_legacy);
  if (capsule == NULL) handed_delete((dl_handed *)tensor);
  return capsule;
}

/* The pair (1, 0), made once; or that of a GPU. */
PyObject *py_buffer_dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_buffer_info info;
  int32_t number = 0;
  xlac_buffer_get(((py_buffer *)self)->b, &info);
  if (info.device) return Py_BuildValue("(ii)", (int)dl_device_of(&info, &number), (int)number);
  return Py_NewRef(py_state_of(self)->names[PY_DL_CPU]);
}
