/* Buffers of what Python has: arrays, numbers, lists.
 *
 * Memory of an array is taken as stored where xlac has its element type in native byte order, with whatever
 * strides; the buffer then owns a reference to the array. Since a buffer may die on any thread, in a run without
 * the GIL, the reference is released by care (owner_release). */
#include "buffer.h"
#include "dlpack.h"

/* --- Python objects as owners of memory --- */

/* What the buffer of an array's memory owns: a reference, and the interpreter that the object is of. Allocated by
 * PyMem_Raw, since it is freed also without the GIL. */
typedef struct py_owner {
  PyObject *object;
  PyInterpreterState *interpreter;
} py_owner;

/* The thread state with which this thread may use Python right now; NULL where it has none or has given the GIL
 * away. The function for it has had three names. */
static PyThreadState *owner_current_thread(void) {
#if PY_VERSION_HEX >= 0x030d0000
  return PyThreadState_GetUnchecked();
#elif PY_VERSION_HEX >= 0x030c0000
  return _PyThreadState_UncheckedGet();
#else
  /* before 3.12 that is the state of whoever holds the GIL */
  PyThreadState *holder = _PyThreadState_UncheckedGet(), *mine = PyGILState_GetThisThreadState();
  if (holder == NULL || mine == NULL) return NULL;
  return holder == mine || holder->thread_id == PyThread_get_thread_ident() ? holder : NULL;
#endif
}

/* While the interpreter goes down, asking for the GIL from another thread would hang it or end the thread. */
static bool owner_is_finalizing(void) {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

/* From a thread that Python does not know, or that has given the GIL away. The main interpreter has a thread state
 * for every thread that asks; in others one is made for the moment. */
static void owner_release_elsewhere(const py_owner *owner) {
  assert(owner->object && owner->interpreter);
  if (!Py_IsInitialized() || owner_is_finalizing()) return; /* nobody can free it any more */
  if (owner->interpreter == PyInterpreterState_Main()) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF(owner->object);
    PyGILState_Release(gil);
    return;
  }
  PyThreadState *thread = PyThreadState_New(owner->interpreter);
  if (thread == NULL) return;
  PyEval_RestoreThread(thread);
  Py_DECREF(owner->object);
  PyThreadState_Clear(thread);
  PyThreadState_DeleteCurrent();
}

/* From any thread, with or without the GIL. The xlac_buffer calls it once, when the last of its references and
 * views is gone. */
static void owner_release(void *ctx) {
  assert(ctx);
  py_owner *owner = ctx;
  PyThreadState *thread = Py_IsInitialized() ? owner_current_thread() : NULL;
  if (thread && PyThreadState_GetInterpreter(thread) == owner->interpreter)
    Py_DECREF(owner->object);
  else
    owner_release_elsewhere(owner);
  PyMem_RawFree(owner);
}

/* --- NumPy's arrays --- */

/* Other byte orders, and none of our element types, can't be taken as stored. 0 then: such an array is copied,
 * or refused. */
static uint32_t array_dtype(PyArrayObject *a) {
  return PyArray_ISNBO(PyArray_DESCR(a)->byteorder) ? py_dtype_of(PyArray_DESCR(a)) : 0;
}

/* A buffer on the array's memory, which it keeps alive; NULL with an exception, and no reference is taken then.
 * xlac_buffer_wrap copies dims and strides, so the array's own may change later. */
static xlac_buffer *array_wrap(py_state *st, PyArrayObject *a, uint32_t dtype) {
  assert(dtype && dtype < xlac_dtype_count());
  _Static_assert(sizeof(npy_intp) == sizeof(int64_t), "dims and strides are taken as they are");
  xlac_layout layout = {.dtype = dtype,
                        .rank = (uint32_t)PyArray_NDIM(a),
                        .dims = (const int64_t *)PyArray_DIMS(a),
                        .strides = (const int64_t *)PyArray_STRIDES(a),
                        .readonly = !PyArray_ISWRITEABLE(a)};
  py_owner *owner = PyMem_RawMalloc(sizeof *owner);
  if (owner == NULL) return (xlac_buffer *)PyErr_NoMemory();
  *owner = (py_owner){(PyObject *)a, PyInterpreterState_Get()};
  xlac_memory memory = {PyArray_DATA(a), owner_release, owner};
  xlac_buffer *b = NULL;
  xlac_error err = {.code = 0};
  if (xlac_buffer_wrap(&b, st->counters, &layout, &memory, &err) != 0) {
    PyMem_RawFree(owner);
    py_raise(st, &err, PY_ANY);
    return NULL;
  }
  Py_INCREF(a);
  return b;
}

/* What came in, in xlac.stats(): bytes of the elements, not of the memory they are spread over. */
static void count_in(py_state *st, xlac_buffer *b, bool copied) {
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  py_count_in(st, info.bytes, copied);
}

/* A copy in native byte order, on xlac's memory. NumPy turns the bytes around where that is needed; then xlac
 * copies to memory of its own, aligned as its kernels like it and ready to be donated. Two copies for another byte
 * order, which is rare. */
static xlac_buffer *array_copy(py_state *st, void **numpy, PyArrayObject *a) {
  PyArray_Descr *native = PyArray_DescrNewByteorder(PyArray_DESCR(a), NPY_NATIVE);
  PyObject *plain = native ? PyArray_FromArray(a, native, 0) : NULL;
  uint32_t dtype = plain ? array_dtype((PyArrayObject *)plain) : 0;
  xlac_buffer *lent = dtype ? array_wrap(st, (PyArrayObject *)plain, dtype) : NULL;
  xlac_buffer *copy = lent ? py_buffer_copied(st, lent) : NULL;
  xlac_buffer_release(lent);
  Py_XDECREF(plain);
  if (copy) count_in(st, copy, true);
  return copy;
}

/* Raises with the dtype's name before `why`; NULL, for any pointer. */
static void *array_refuse(PyArrayObject *a, PyObject *exception, const char *why) {
  PyErr_Format(exception, "an array of dtype %S %s", PyArray_DESCR(a), why);
  return NULL;
}

/* `numpy` is here only to be fetched: the macros of NumPy's header use the local variable of that name. */
xlac_buffer *py_buffer_of_array(py_state *st, PyObject *array, py_copy copy) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (!PyArray_CheckExact(array) && py_is_masked(array))
    return PyErr_SetString(PyExc_ValueError, PY_MASKED_WORDS), NULL;
  PyArrayObject *a = (PyArrayObject *)array;
  uint32_t dtype = array_dtype(a);
  if (dtype == 0 && py_dtype_of(PyArray_DESCR(a)) == 0)
    return array_refuse(a, PyExc_TypeError, "can't be a buffer: xlac has no such element type");
  if (dtype == 0 && copy == PY_COPY_NEVER)
    return array_refuse(a, PyExc_BufferError, "is in another byte order: that takes a copy, and copy=False forbids it");
  if (dtype == 0 || copy == PY_COPY_ALWAYS) return array_copy(st, numpy, a);
  xlac_buffer *b = array_wrap(st, a, dtype);
  if (b) count_in(st, b, false);
  return b;
}

/* --- anything --- */

/* np.asarray(object, dtype). *fresh: nobody else has the array, so that its making was a copy. A new reference, or
 * NULL with an exception. NumPy decides what is an array: lists, numbers, scalars, objects with __array__ or the
 * buffer protocol. */
static PyObject *any_array(PyObject *object, PyObject *dtype, bool *fresh) {
  PyObject *module = PyImport_ImportModule("numpy");
  PyObject *array = NULL;
  if (module) array = PyObject_CallMethod(module, "asarray", dtype ? "(OO)" : "(O)", object, dtype);
  Py_XDECREF(module);
  if (array == NULL) return NULL;
  *fresh = array != object && Py_REFCNT(array) == 1 && PyArray_BASE((PyArrayObject *)array) == NULL;
  return array;
}

/* The array that NumPy made of a list is kept as it is: to copy it once more would be a waste. */
static xlac_buffer *any_buffer(py_state *st, PyObject *object, PyObject *dtype) {
  bool fresh = false;
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (PyArray_Check(object) && !PyArray_CheckExact(object) && py_is_masked(object))
    return PyErr_SetString(PyExc_ValueError, PY_MASKED_WORDS), NULL;
  PyObject *array = any_array(object, dtype, &fresh);
  if (array == NULL) return NULL;
  xlac_buffer *b = NULL;
  uint32_t known = array_dtype((PyArrayObject *)array);
  if (fresh && known) { /* NumPy's copy is ours to keep */
    b = array_wrap(st, (PyArrayObject *)array, known);
    if (b) count_in(st, b, true);
  } else {
    b = py_buffer_of_array(st, array, PY_COPY_IF_NEEDED);
  }
  Py_DECREF(array);
  return b;
}

/* Whether the object's type has the attribute. As with all special methods, what the object itself has does not
 * count. */
static bool any_has(PyObject *object, PyObject *name) {
  PyObject *method = PyObject_GetAttr((PyObject *)Py_TYPE(object), name);
  if (method == NULL) PyErr_Clear();
  Py_XDECREF(method);
  return method != NULL;
}

/* Whether an object that DLPack could not carry (JAX's int4, say) may still come as an array. Asked with an
 * exception set, which is there again afterwards; what is not an Exception, as KeyboardInterrupt, is let through. */
static bool any_has_array(py_state *st, PyObject *object) {
  assert(PyErr_Occurred());
  PyObject *type, *value, *traceback;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  PyErr_Fetch(&type, &value, &traceback);
  bool has = PyObject_HasAttr(object, st->names[PY_NAME_ARRAY]) || PyObject_CheckBuffer(object);
  PyErr_Restore(type, value, traceback);
  return has;
}

/* DLPack first: it takes no copy, and it says which device. Where it fails, NumPy may still know a way. */
static xlac_buffer *any_dlpack(py_state *st, PyObject *object) {
  xlac_buffer *b = py_buffer_from_dlpack(st, object, PY_COPY_IF_NEEDED, false);
  PyObject *type, *value, *traceback;
  if (b || !any_has_array(st, object)) return b;
  PyErr_Fetch(&type, &value, &traceback);
  b = any_buffer(st, object, NULL);
  if (b == NULL && PyErr_ExceptionMatches(PyExc_Exception)) return PyErr_Restore(type, value, traceback), NULL;
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return b;
}

/* With a dtype: NumPy converts. PyTorch's tensors of types that NumPy lacks reach it as Buffers. */
static xlac_buffer *any_converted(py_state *st, PyObject *object, PyObject *dtype) {
  if (!dl_exchange_of(st, Py_TYPE(object)) || py_is_buffer(st, object)) return any_buffer(st, object, dtype);
  xlac_buffer *b = py_buffer_from_dlpack(st, object, PY_COPY_IF_NEEDED, true), *converted = NULL;
  PyObject *wrapped = b ? py_wrap_buffer(st, b) : NULL;
  if (wrapped) converted = any_buffer(st, wrapped, dtype);
  Py_XDECREF(wrapped);
  return converted;
}

/* A new reference to the dtype that a name of ours or anything of NumPy's says. Ours come first: 'bf16' is not a name
 * that NumPy knows without ml_dtypes. */
static PyObject *any_dtype(py_state *st, PyObject *dtype) {
  const char *name = PyUnicode_Check(dtype) ? PyUnicode_AsUTF8(dtype) : NULL;
  if (PyUnicode_Check(dtype) && name == NULL) return NULL;
  uint32_t known = name ? xlac_dtype_from_text(name) : 0;
  return known ? py_descr(st, known) : Py_NewRef(dtype);
}

/* With a dtype NumPy converts, whatever the object is; without one, memory is taken as stored where it can be. */
static xlac_buffer *any_in(py_state *st, PyObject *object, PyObject *dtype) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  if (dtype == Py_None && PyArray_Check(object)) return py_buffer_of_array(st, object, PY_COPY_IF_NEEDED);
  if (dtype == Py_None)
    return any_has(object, st->names[PY_NAME_DLPACK]) ? any_dlpack(st, object) : any_buffer(st, object, NULL);
  PyObject *wanted = any_dtype(st, dtype);
  xlac_buffer *b = wanted ? any_converted(st, object, wanted) : NULL;
  Py_XDECREF(wanted);
  return b;
}

/* Where the buffer is to lie: where it does unless `name` says otherwise. Steals b; NULL with an exception. */
static xlac_buffer *any_on(py_state *st, xlac_buffer *b, const char *name) {
  const xlac_device *to = NULL;
  xlac_error err = {.code = 0};
  xlac_buffer_info info;
  if (b == NULL || name == NULL) return b;
  xlac_buffer_get(b, &info);
  xlac_buffer *moved = NULL;
  if (xlac_runtime_find_device(st->runtime, name, &to, &err) != 0)
    py_raise(st, &err, PY_ANY);
  else
    moved = to == info.device ? xlac_buffer_retain(b) : py_buffer_moved(st, b, to);
  xlac_buffer_release(b);
  return moved;
}

/* A Buffer comes back as the same object where nothing about it would change. */
PyObject *py_asarray(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"", "dtype", "device", NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *object = NULL, *dtype = Py_None;
  const char *device = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Oz:asarray", names, &object, &dtype, &device)) return NULL;
  bool same = dtype == Py_None && py_is_buffer(st, object);
  if (same && device == NULL) return Py_NewRef(object);
  xlac_buffer *b = any_on(st, same ? xlac_buffer_retain(((py_buffer *)object)->b) : any_in(st, object, dtype), device);
  return b ? py_wrap_buffer(st, b) : NULL;
}
