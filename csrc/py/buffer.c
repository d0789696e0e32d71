/* xlac.Buffer: what it says of itself, and what buffers need of the module's state: its types, counters and
 * constants.
 *
 * A Buffer holds one reference to an xlac_buffer, which counts references and views itself and may be used from
 * any thread; several Buffers may have the same one. */
#include "buffer.h"

#include <structmember.h>

#include "dlpack.h"
#include "py.h"

enum { BUFFER_COPY_LONG = 256 << 10 }; /* bytes: copies from here on are made without the GIL */

/* Steals b, also on failure. */
PyObject *py_wrap_buffer(py_state *st, xlac_buffer *b) {
  assert(b);
  py_buffer *self = PyObject_New(py_buffer, st->buffer_type);
  if (self == NULL) {
    xlac_buffer_release(b);
    return NULL;
  }
  self->b = b;
  self->weakrefs = NULL;
  return (PyObject *)self;
}

/* The memory may be another library's, whose release may run Python: an exception on its way is not its business.
 * Weak references go first, while the object is whole: their callbacks may still look at it. */
static void buffer_dealloc(PyObject *object) {
  py_buffer *self = (py_buffer *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  xlac_buffer_release(self->b);
  PyErr_Restore(kind, value, traceback);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* --- helpers that other files share --- */

/* Only the objects None, True and False: DLPack and NumPy agree on them, and a number would be a mistake. */
py_copy py_copy_of(PyObject *object) {
  if (object == NULL || object == Py_None) return PY_COPY_IF_NEEDED;
  if (object == Py_False) return PY_COPY_NEVER;
  if (object == Py_True) return PY_COPY_ALWAYS;
  PyErr_Format(PyExc_TypeError, "copy is None, True or False, not %R", object);
  return PY_COPY_WRONG;
}

PyObject *py_raise_buffer_error(const xlac_error *err) {
  assert(err->message[0]);
  if (err->hint[0]) return PyErr_Format(PyExc_BufferError, "%s; %s", err->message, err->hint);
  return PyErr_Format(PyExc_BufferError, "%s", err->message);
}

/* The GIL is given away for long copies only, since giving it away costs about as much as copying some kilobytes.
 * b stays as it is meanwhile: the caller has a reference, and a donation of it by another thread makes the copy
 * fail with an error. */
xlac_buffer *py_buffer_copied(py_state *st, xlac_buffer *b) {
  assert(b);
  xlac_buffer_info info;
  xlac_buffer *copy = NULL;
  xlac_error err = {.code = 0};
  int status = 0;
  xlac_buffer_get(b, &info);
  if (info.bytes < BUFFER_COPY_LONG) {
    status = xlac_buffer_copy(&copy, st->runtime, b, &err);
  } else {
    Py_BEGIN_ALLOW_THREADS;
    status = xlac_buffer_copy(&copy, st->runtime, b, &err);
    Py_END_ALLOW_THREADS;
  }
  if (status) py_raise(st, &err, PY_ANY);
  return status ? NULL : copy;
}

xlac_buffer *py_buffer_moved(py_state *st, xlac_buffer *b, const xlac_device *to) {
  xlac_buffer *copy = NULL;
  xlac_error err = {.code = 0};
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = xlac_buffer_copy_on(&copy, to, st->runtime, b, &err);
  Py_END_ALLOW_THREADS;
  if (status) py_raise(st, &err, PY_ANY);
  return status ? NULL : copy;
}

PyObject *py_buffer_place(xlac_buffer *b) {
  xlac_buffer_info info;
  xlac_device_info device;
  xlac_buffer_get(b, &info);
  if (info.device == NULL) return PyUnicode_InternFromString("cpu");
  xlac_device_get(info.device, &device);
  return PyUnicode_FromString(device.name);
}

void py_count_in(py_state *st, size_t bytes, bool copied) {
  assert(st->counters);
  xlac_counters_add(st->counters, copied ? XLAC_COUNT_COPIES_IN : XLAC_COUNT_ARRAYS_IN, 1);
  xlac_counters_add(st->counters, copied ? XLAC_COUNT_BYTES_COPIED_IN : XLAC_COUNT_BYTES_IN, (int64_t)bytes);
}

void py_count_out(py_state *st, size_t bytes, bool copied) {
  assert(st->counters);
  xlac_counters_add(st->counters, copied ? XLAC_COUNT_COPIES_OUT : XLAC_COUNT_ARRAYS_OUT, 1);
  xlac_counters_add(st->counters, copied ? XLAC_COUNT_BYTES_COPIED_OUT : XLAC_COUNT_BYTES_OUT, (int64_t)bytes);
}

/* --- attributes --- */

/* The facts as they are now. `deleted` and `data` may be others a moment later, when another thread donates the
 * buffer; shape and type never change. */
static xlac_buffer_info buffer_info_of(PyObject *self) {
  xlac_buffer_info info;
  xlac_buffer_get(((py_buffer *)self)->b, &info);
  return info;
}

/* A tuple of ints; NULL with an exception. */
static PyObject *buffer_ints(uint32_t n, const int64_t *values) {
  PyObject *tuple = PyTuple_New(n);
  for (uint32_t i = 0; tuple && i < n; i++) {
    PyObject *one = PyLong_FromLongLong(values[i]);
    if (one == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, one);
  }
  return tuple;
}

/* The attributes: those that describe the array answer also for a deleted buffer, since only its memory is gone. */
static PyObject *buffer_shape(PyObject *self, void *unused) {
  (void)unused;
  xlac_buffer_info info = buffer_info_of(self);
  return buffer_ints(info.rank, info.dims);
}

/* In bytes, as NumPy has them; DLPack's count elements. */
static PyObject *buffer_strides_of(PyObject *self, void *unused) {
  (void)unused;
  xlac_buffer_info info = buffer_info_of(self);
  return buffer_ints(info.rank, info.strides);
}

/* The same object for the same type, mostly: py_descr keeps what it makes. */
static PyObject *buffer_dtype(PyObject *self, void *unused) {
  (void)unused;
  return py_descr(py_state_of(self), buffer_info_of(self).dtype);
}

static PyObject *buffer_ndim(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(buffer_info_of(self).rank);
}

static PyObject *buffer_size(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(buffer_info_of(self).count);
}

/* Of the elements: with strides the memory they are spread over may be more, or less. */
static PyObject *buffer_nbytes(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromSize_t(buffer_info_of(self).bytes);
}

/* JAX's and PyTorch's arrays have this attribute, too. */
static PyObject *buffer_device(PyObject *self, void *unused) {
  (void)unused;
  return py_buffer_place(((py_buffer *)self)->b);
}

/* numba's interface, version 3, which says no element types but NumPy's own. Nothing is in flight when somebody has a
 * Buffer, so there is no stream to wait for. */
static PyObject *buffer_cuda_interface(PyObject *self, void *unused) {
  (void)unused;
  xlac_buffer *b = ((py_buffer *)self)->b;
  xlac_buffer_info info = buffer_info_of(self);
  PyObject *descr = info.device && !info.deleted ? py_descr(py_state_of(self), info.dtype) : NULL;
  PyObject *kind = descr ? PyObject_GetAttrString(descr, "kind") : NULL;
  PyObject *type =
      kind && PyUnicode_CompareWithASCIIString(kind, "V") != 0 ? PyObject_GetAttrString(descr, "str") : NULL;
  Py_XDECREF(kind);
  Py_XDECREF(descr);
  if (type == NULL) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_AttributeError,
                      "__cuda_array_interface__ is of Buffers of NumPy's own types in a GPU's memory");
    return NULL;
  }
  xlac_buffer_share(b);
  return Py_BuildValue("{s:N,s:N,s:N,s:(NO),s:i,s:O}", "shape", buffer_ints(info.rank, info.dims), "strides",
                       info.dense ? Py_NewRef(Py_None) : buffer_ints(info.rank, info.strides), "typestr", type, "data",
                       PyLong_FromVoidPtr(info.data), info.readonly ? Py_True : Py_False, "version", 3, "stream",
                       Py_None);
}

/* True from the moment the memory is taken; false again where a call that took it could not begin. */
static PyObject *buffer_is_deleted(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(buffer_info_of(self).deleted);
}

/* Set by who gave the memory, and for good. */
static PyObject *buffer_readonly(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(buffer_info_of(self).readonly);
}

/* len(): the first dimension, as NumPy has it; -1 with a TypeError for a scalar. */
static Py_ssize_t buffer_length(PyObject *self) {
  xlac_buffer_info info = buffer_info_of(self);
  if (info.rank) return (Py_ssize_t)info.dims[0];
  PyErr_SetString(PyExc_TypeError, "a buffer of rank 0 has no length");
  return -1;
}

/* What Python's own operators make of the elements, by NumPy's view of them: steals the view. */
static PyObject *buffer_with(PyObject *view, PyObject *(*make)(PyObject *)) {
  PyObject *made = view ? make(view) : NULL;
  Py_XDECREF(view);
  return made;
}

static PyObject *buffer_iter(PyObject *self) {
  return buffer_with(py_buffer_numpy(self, NULL), PyObject_GetIter);
}
static PyObject *buffer_float(PyObject *self) {
  return buffer_with(py_buffer_numpy(self, NULL), PyNumber_Float);
}
static PyObject *buffer_int(PyObject *self) {
  return buffer_with(py_buffer_numpy(self, NULL), PyNumber_Long);
}

static PyObject *buffer_subscript(PyObject *self, PyObject *key) {
  PyObject *view = py_buffer_numpy(self, NULL), *part = view ? PyObject_GetItem(view, key) : NULL;
  Py_XDECREF(view);
  return part;
}

/* "Buffer(f32[2,3])", and what is special about it. */
static PyObject *buffer_repr(PyObject *self) {
  xlac_buffer_info info = buffer_info_of(self);
  PyObject *dims = PyList_New(0), *comma = PyUnicode_FromString(","), *joined = NULL;
  for (uint32_t d = 0; dims && d < info.rank; d++) {
    PyObject *one = PyUnicode_FromFormat("%lld", (long long)info.dims[d]);
    if (one == NULL || PyList_Append(dims, one) < 0) Py_CLEAR(dims);
    Py_XDECREF(one);
  }
  if (dims && comma) joined = PyUnicode_Join(comma, dims);
  PyObject *text = joined ? PyUnicode_FromFormat("Buffer(%s[%U]%s%s)", xlac_dtype_text(info.dtype), joined,
                                                 info.readonly ? ", read-only" : "", info.deleted ? ", deleted" : "")
                          : NULL;
  Py_XDECREF(dims);
  Py_XDECREF(comma);
  Py_XDECREF(joined);
  return text;
}

/* --- methods --- */

/* The address is of use only as long as nobody donates or deletes the buffer, hence "unsafe". It is opened for a
 * moment so that a deleted one raises. */
static PyObject *buffer_pointer(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_buffer *b = ((py_buffer *)self)->b;
  xlac_buffer_info info;
  xlac_error err = {.code = 0};
  if (xlac_buffer_open(b, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  xlac_buffer_get(b, &info);
  xlac_buffer_close(b);
  return PyLong_FromVoidPtr(info.data);
}

/* Fails while views are open: arrays and tensors that others have would point at memory that is gone. */
static PyObject *buffer_delete(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_buffer *b = ((py_buffer *)self)->b;
  xlac_error err = {.code = 0};
  if (xlac_buffer_delete(b, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  xlac_buffer_taken_by(b, "it was deleted by delete()");
  Py_RETURN_NONE;
}

/* What Python sees: attributes first, then methods. Names and meanings are NumPy's where NumPy has such an
 * attribute. */
static PyGetSetDef buffer_getset[] = {
    {"shape", buffer_shape, NULL, "The dimensions.", NULL},
    {"strides", buffer_strides_of, NULL, "Bytes from one element to the next, in each dimension.", NULL},
    {"dtype", buffer_dtype, NULL, "The NumPy dtype.", NULL},
    {"ndim", buffer_ndim, NULL, "How many dimensions.", NULL},
    {"size", buffer_size, NULL, "How many elements.", NULL},
    {"nbytes", buffer_nbytes, NULL, "Bytes of the elements.", NULL},
    {"device", buffer_device, NULL, "Where it is: 'cpu', or the name of a device, as 'cuda:0'.", NULL},
    {"__cuda_array_interface__", buffer_cuda_interface, NULL, "For numba and others: of Buffers on a GPU.", NULL},
    {"is_deleted", buffer_is_deleted, NULL, "Whether the memory was donated or deleted.", NULL},
    {"readonly", buffer_readonly, NULL, "Whether nobody may write through this buffer, nor donate it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef buffer_methods[] = {
    {"numpy", py_buffer_numpy, METH_NOARGS, "numpy($self)\n--\n\nAn ndarray: a view; of a Buffer on a GPU a copy."},
    {"unsafe_pointer", buffer_pointer, METH_NOARGS, "unsafe_pointer($self)\n--\n\nThe first element's address, now."},
    {"delete", buffer_delete, METH_NOARGS, "delete($self)\n--\n\nGives the memory back now."},
    {"__array__", PY_KEYWORDS(py_buffer_array), "__array__(dtype=None, copy=None) -> ndarray"},
    {"__dlpack__", (PyCFunction)(void (*)(void))py_buffer_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) -> capsule"},
    {"__dlpack_device__", py_buffer_dlpack_device, METH_NOARGS, "__dlpack_device__() -> (1, 0): a CPU; (2, n): cuda:n"},
    {NULL, NULL, 0, NULL},
};

/* Heap types say by this where the list of their weak references lies. */
static PyMemberDef buffer_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_buffer, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* No traverse: a Buffer refers to no Python object but through memory that NumPy or another library owns, which
 * the collector can't look into. */
static PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, (void *)buffer_dealloc},
    {Py_tp_repr, (void *)buffer_repr},
    {Py_tp_getset, buffer_getset},
    {Py_tp_methods, buffer_methods},
    {Py_tp_members, buffer_members},
    {Py_sq_length, (void *)buffer_length},
    {Py_mp_length, (void *)buffer_length},
    {Py_mp_subscript, (void *)buffer_subscript},
    {Py_tp_iter, (void *)buffer_iter},
    {Py_nb_float, (void *)buffer_float},
    {Py_nb_int, (void *)buffer_int},
    {Py_bf_getbuffer, (void *)py_buffer_getbuffer},
    {Py_bf_releasebuffer, (void *)py_buffer_releasebuffer},
    {Py_tp_doc,
     "An array in memory that can be exchanged without a copy and donated. Made by xlac.asarray and "
     "xlac.from_dlpack."},
    {0, NULL},
};

/* Not immutable yet: the exchange table has to become an attribute first. */
PyType_Spec py_buffer_spec = {
    .name = "xlac.Buffer",
    .basicsize = sizeof(py_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};

/* --- the module's state --- */

/* The constant of that name; a new reference, or NULL with an exception. The tuples of keywords are made of names
 * that come before them in the enum, so the order in which py_buffers_start goes is fixed. */
static PyObject *start_constant(py_state *st, py_name name) {
  assert(name >= 0 && name < PY_NAMES);
  PyObject *const *n = st->names;
  switch (name) {
    case PY_NAME_DLPACK:
      return PyUnicode_InternFromString("__dlpack__");
    case PY_NAME_EXCHANGE:
      return PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    case PY_NAME_ARRAY:
      return PyUnicode_InternFromString("__array__");
    case PY_NAME_MAX_VERSION:
      return PyUnicode_InternFromString("max_version");
    case PY_NAME_COPY:
      return PyUnicode_InternFromString("copy");
    case PY_NAME_DL_DEVICE:
      return PyUnicode_InternFromString("dl_device");
    case PY_NAME_STREAM:
      return PyUnicode_InternFromString("stream");
    case PY_KEYWORDS_VERSION:
      return PyTuple_Pack(1, n[PY_NAME_MAX_VERSION]);
    case PY_KEYWORDS_COPY:
      return PyTuple_Pack(2, n[PY_NAME_MAX_VERSION], n[PY_NAME_COPY]);
    case PY_KEYWORDS_DEVICE:
      return PyTuple_Pack(3, n[PY_NAME_MAX_VERSION], n[PY_NAME_COPY], n[PY_NAME_DL_DEVICE]);
    case PY_KEYWORDS_STREAM:
      return PyTuple_Pack(2, n[PY_NAME_MAX_VERSION], n[PY_NAME_STREAM]);
    case PY_DL_VERSION:
      return Py_BuildValue("(ii)", DL_MAJOR, DL_MINOR);
    default:
      return Py_BuildValue("(ii)", DL_CPU, 0);
  }
}

/* A heap type of this interpreter's module; NULL with an exception. */
static PyTypeObject *start_type(PyObject *core, PyType_Spec *spec) {
  return (PyTypeObject *)PyType_FromModuleAndSpec(core, spec, NULL);
}

/* What was made before a failure is released by core_free, as the module is dropped. dl_types_fill comes before
 * the first buffer, since exports read its tables. */
int py_buffers_start(PyObject *core) {
  assert(PyModule_GetState(core));
  py_state *st = PyModule_GetState(core);
  xlac_error err = {.code = 0};
  if (xlac_counters_create(&st->counters, &err) != 0) return py_raise(st, &err, PY_ANY), -1;
  for (int i = 0; i < PY_NAMES; i++)
    if ((st->names[i] = start_constant(st, (py_name)i)) == NULL) return -1;
  dl_types_fill(st);
  if ((st->buffer_type = start_type(core, &py_buffer_spec)) == NULL) return -1;
  if ((st->view_type = start_type(core, &py_view_spec)) == NULL) return -1;
  if ((st->donation_type = start_type(core, &py_donation_spec)) == NULL) return -1;
  if (py_add_dlpack_exchange(st->buffer_type) < 0 || PyModule_AddType(core, st->buffer_type) < 0) return -1;
  return PyModule_AddType(core, st->donation_type);
}

/* --- counts --- */

/* What happened at the border, as a dict: the library numbers its counters from 0 and says their names. */
PyObject *py_stats(PyObject *core, PyObject *unused) {
  (void)unused;
  py_state *st = PyModule_GetState(core);
  PyObject *dict = PyDict_New();
  const char *name = NULL;
  for (uint32_t i = 0; dict && (name = xlac_counter_name(i)) != NULL; i++) {
    PyObject *n = PyLong_FromLongLong(xlac_counters_get(st->counters, i));
    if (n == NULL || PyDict_SetItemString(dict, name, n) < 0) Py_CLEAR(dict);
    Py_XDECREF(n);
  }
  return dict;
}

/* Counts of what is alive stay: they are not counts of events. */
PyObject *py_reset_stats(PyObject *core, PyObject *unused) {
  (void)unused;
  xlac_counters_reset(((py_state *)PyModule_GetState(core))->counters);
  Py_RETURN_NONE;
}
