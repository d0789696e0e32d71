/* DLPack's table of C functions, both ways: ours for others, and others' for us. Such a table belongs to the
 * process, not to an interpreter, so ours is constant, and finds the state of whichever interpreter calls.
 *
 * With it an array crosses the border without a capsule, a method call or keywords. The functions report by 0 and -1
 * with an exception, as DLPack says; allocate has a callback for that, since it may be called without the GIL. */
#include "dlpack.h"

#include <stdlib.h>

/* --- ours --- */

/* Of a Buffer, with the GIL: who asks has looked at the type. The tensor is the caller's. */
static int exchange_from_object(void *object, dl_versioned **out) {
  assert(object && out);
  dl_wish wish = {.minor = DL_MINOR, .versioned = true, .copy = PY_COPY_IF_NEEDED};
  dl_versioned *tensor = dl_export(py_state_of(object), ((py_buffer *)object)->b, &wish);
  if (tensor == NULL) return -1;
  *out = tensor;
  return 0;
}

/* Nobody says on which stream a GPU's tensor is being made. -1 with an exception. */
static int exchange_wait(py_state *st, xlac_buffer *b) {
  xlac_buffer_info info;
  xlac_error err = {.code = 0};
  xlac_buffer_get(b, &info);
  if (info.device == NULL || xlac_device_join(info.device, XLAC_ALL_STREAMS, &err) == 0) return 0;
  return py_raise(st, &err, PY_ANY), -1;
}

/* A new Buffer on a tensor, which is stolen. The module is found by its name in the interpreter that calls. */
static int exchange_to_object(dl_versioned *tensor, void **out) {
  assert(tensor && out);
  PyObject *core = PyImport_ImportModule("xlac._core");
  if (core == NULL) return -1;
  py_state *st = PyModule_GetState(core);
  xlac_buffer *b = dl_import_versioned(st, tensor, PY_COPY_IF_NEEDED);
  if (b && exchange_wait(st, b) < 0) {
    xlac_buffer_release(b);
    b = NULL;
  }
  PyObject *object = b ? py_wrap_buffer(st, b) : NULL;
  Py_DECREF(core);
  if (object == NULL) return -1;
  *out = object;
  return 0;
}

/* A bare tensor has no flags: what needs one goes the other way. The description borrows dims and steps from the
 * buffer, which the caller keeps alive while it reads; so it is opened only to see that it is not deleted. */
static int exchange_view_object(void *object, dl_tensor *out) {
  assert(object && out);
  py_state *st = py_state_of(object);
  xlac_buffer *b = ((py_buffer *)object)->b;
  xlac_buffer_info info;
  xlac_error err = {.code = 0};
  if (xlac_buffer_open(b, &err) != 0) return py_raise(st, &err, PY_ANY), -1;
  xlac_buffer_get(b, &info);
  xlac_buffer_close(b);
  dl_type type = dl_type_out(st, info.dtype);
  if (info.readonly || info.steps == NULL || type.bits < 8) {
    PyErr_SetString(PyExc_BufferError,
                    "a read-only buffer, one of elements narrower than a byte, or one whose strides "
                    "are not whole numbers of elements has no bare DLPack tensor");
    return -1;
  }
  dl_describe(&info, type, out);
  return 0;
}

/* The CPU has no streams: NULL means "none". */
static int exchange_stream(int32_t device, int32_t device_number, void **out) {
  (void)device, (void)device_number;
  *out = NULL;
  return 0;
}

/* Why no such tensor can be allocated; NULL where it can. Negative dimensions are refused by xlac_buffer_wrap. */
static const char *exchange_refuses(const dl_tensor *like) {
  if (like->device != DL_CPU) return "xlac allocates memory of CPUs only";
  if (like->rank < 0 || like->rank > DL_MAX_RANK || (like->rank && like->dims == NULL)) return "bad dimensions";
  if (like->type.lanes != 1 || dl_type_by_name(like->type) == 0) return "xlac has no such element type";
  return NULL;
}

/* Without Python: whoever asks need not have the GIL. The size saturates instead of wrapping around, and is
 * refused then. Freed by free: the runtime's memory belongs to an interpreter's state. */
static int exchange_buffer(const dl_tensor *like, xlac_buffer **out, xlac_error *err) {
  size_t bytes = xlac_dtype_bytes(dl_type_by_name(like->type));
  bool empty = false;
  for (int32_t d = 0; d < like->rank; d++) {
    empty |= like->dims[d] == 0;
    if (!empty && like->dims[d] > 0 && __builtin_mul_overflow(bytes, (size_t)like->dims[d], &bytes)) bytes = SIZE_MAX;
  }
  void *data = NULL;
  if (bytes > PTRDIFF_MAX || posix_memalign(&data, 64, empty || bytes == 0 ? 64 : bytes) != 0) {
    *err = (xlac_error){.code = 600, .message = "out of memory"};
    return -1;
  }
  xlac_layout layout = {.dtype = dl_type_by_name(like->type), .rank = (uint32_t)like->rank, .dims = like->dims};
  xlac_memory memory = {data, free, data};
  int status = xlac_buffer_wrap(out, NULL, &layout, &memory, err);
  if (status) free(data);
  return status;
}

/* A new tensor of the prototype's type and shape, on memory of its own, with bytes as they come. */
static int exchange_allocate(dl_tensor *like, dl_versioned **out, void *ctx,
                             void (*set)(void *ctx, const char *kind, const char *message)) {
  assert(like && out && set);
  xlac_error err = {.code = 0};
  xlac_buffer *b = NULL;
  const dl_version version = {DL_MAJOR, DL_MINOR};
  const char *why = exchange_refuses(like);
  if (why) return set(ctx, "BufferError", why), -1;
  if (exchange_buffer(like, &b, &err) != 0)
    return set(ctx, err.code == 600 ? "MemoryError" : "BufferError", err.message), -1;
  dl_versioned *tensor = dl_hand_out(b, like->type, &version, like->type.bits < 8 ? DL_PADDED : 0, &err);
  xlac_buffer_release(b);
  if (tensor == NULL) return set(ctx, "MemoryError", err.message), -1;
  *out = tensor;
  return 0;
}

/* No `previous`: there has been no other major version with a table. */
static const dl_exchange exchange_table = {
    .version = {DL_MAJOR, DL_MINOR},
    .allocate = exchange_allocate,
    .from_object = exchange_from_object,
    .to_object = exchange_to_object,
    .view_object = exchange_view_object,
    .stream = exchange_stream,
};

/* From here on the type can't be changed. -1 with an exception, and the type is immutable also then. */
int py_add_dlpack_exchange(PyTypeObject *type) {
  assert(!(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE));
  PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&exchange_table, DL_EXCHANGE_NAME, NULL);
  int status = capsule ? PyObject_SetAttrString((PyObject *)type, "__dlpack_c_exchange_api__", capsule) : -1;
  Py_XDECREF(capsule);
  type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(type);
  return status;
}

/* --- others' --- */

/* The type's own attribute: a new reference, or NULL without an exception. Of the type and not of the object: a
 * table says how all objects of a type are read. */
static PyObject *exchange_attribute(py_state *st, PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject *found = NULL;
  if (PyObject_GetOptionalAttr((PyObject *)type, st->names[PY_NAME_EXCHANGE], &found) < 0) PyErr_Clear();
  return found;
#else
  PyObject *found = _PyType_Lookup(type, st->names[PY_NAME_EXCHANGE]); /* an exception for a miss would be dear */
  return Py_XNewRef(found);
#endif
}

/* The newest table whose major version is ours; one of an older version lays out its functions in another way. */
const dl_exchange *dl_exchange_of(py_state *st, PyTypeObject *type) {
  PyObject *capsule = exchange_attribute(st, type);
  dl_exchange *table = NULL;
  if (capsule && PyCapsule_IsValid(capsule, DL_EXCHANGE_NAME)) table = PyCapsule_GetPointer(capsule, DL_EXCHANGE_NAME);
  Py_XDECREF(capsule); /* the table lives as long as the process */
  while (table && table->version.major > DL_MAJOR) table = table->previous;
  return table && table->version.major == DL_MAJOR && table->from_object ? table : NULL;
}
