/* from_dlpack: asking an object for its tensor. */
#include "dlpack.h"

/* Takes the tensor out of the capsule, which is told by its new name. NULL with an exception. */
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

/* x.__dlpack__(...), of a producer that knows versions, or else of one that does not. */
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

/* The device of what the capsule holds; 0 where that can't be read. */
static int32_t from_device(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, DL_LEGACY_NAME))
    return ((dl_legacy *)PyCapsule_GetPointer(capsule, DL_LEGACY_NAME))->tensor.device;
  if (!PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)) return 0;
  dl_versioned *m = PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME);
  return m->version.major == DL_MAJOR ? m->tensor.device : 0;
}

static bool from_is_elsewhere(int32_t device) {
  return device != 0 && device != DL_CPU && device != DL_CUDA_HOST && device != DL_ROCM_HOST;
}

static xlac_buffer *from_method(py_state *st, PyObject *object, py_copy copy, bool to_cpu) {
  PyObject *capsule = from_call(st, object, copy, false);
  if (capsule && to_cpu && copy != PY_COPY_NEVER && from_is_elsewhere(from_device(capsule))) {
    Py_DECREF(capsule);
    capsule = from_call(st, object, copy, true);
  }
  if (capsule == NULL) return NULL;
  xlac_buffer *b = from_capsule(st, capsule, copy);
  Py_DECREF(capsule);
  return b;
}

/* Says so; NULL. */
static xlac_buffer *from_deleted(py_state *st, xlac_buffer *b) {
  xlac_error err = {.code = 0};
  if (xlac_buffer_open(b, &err) == 0) return xlac_buffer_close(b), xlac_buffer_retain(b); /* given back meanwhile */
  py_raise(st, &err, PY_ANY);
  return NULL;
}

/* Another of our own: a second object for the same buffer, so that a donation of one is seen by both; or a copy. */
static xlac_buffer *from_buffer(py_state *st, xlac_buffer *b, py_copy copy) {
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  if (info.deleted) return from_deleted(st, b);
  xlac_buffer *out = copy == PY_COPY_ALWAYS ? py_buffer_copied(st, b) : xlac_buffer_retain(b);
  if (out) py_count_in(st, info.bytes, copy == PY_COPY_ALWAYS);
  if (out) xlac_counters_add(st->counters, XLAC_COUNT_DLPACK_IMPORTS, 1);
  return out;
}

static xlac_buffer *from_array(py_state *st, PyObject *array, py_copy copy) {
  xlac_buffer *b = py_buffer_of_array(st, array, copy);
  if (b) xlac_counters_add(st->counters, XLAC_COUNT_DLPACK_IMPORTS, 1);
  return b;
}

/* 1 where the table of functions is no help: the method says more. */
static int from_table(py_state *st, const dl_exchange *table, PyObject *object, py_copy copy, xlac_buffer **out) {
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

/* Only of types with a table: others speak for themselves. */
static int from_check_fit(PyObject *object) {
  for (size_t i = 0; i < sizeof from_unfit / sizeof *from_unfit; i++) {
    if (!from_is(object, from_unfit[i].name, from_unfit[i].is_method)) continue;
    PyErr_Format(PyExc_BufferError, "the %.100s %s; pass %s", Py_TYPE(object)->tp_name, from_unfit[i].what,
                 from_unfit[i].hint);
    return -1;
  }
  return 0;
}

xlac_buffer *py_buffer_from_dlpack(py_state *st, PyObject *object, py_copy copy, bool to_cpu) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (PyArray_CheckExact(object)) return from_array(st, object, copy); /* as its own method, for more types */
  if (py_is_buffer(st, object)) return from_buffer(st, ((py_buffer *)object)->b, copy);
  const dl_exchange *table = dl_exchange_of(st, Py_TYPE(object));
  xlac_buffer *b = NULL;
  if (table && from_check_fit(object) < 0) return NULL;
  if (copy == PY_COPY_NEVER) table = NULL;
  int status = table ? from_table(st, table, object, copy, &b) : 1;
  if (status <= 0) return b;
  b = from_method(st, object, copy, to_cpu);
  if (b || !PyErr_ExceptionMatches(PyExc_AttributeError) || PyObject_HasAttr(object, st->names[PY_NAME_DLPACK]))
    return b;
  PyErr_Format(PyExc_TypeError, "from_dlpack takes an object with the method __dlpack__, not %.100s",
               Py_TYPE(object)->tp_name);
  return NULL;
}

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
