/* Views of a buffer for others: NumPy's arrays and the buffer protocol. Each keeps the buffer's memory where it
 * is.
 *
 * A view is one xlac_buffer_open, undone by one xlac_buffer_close. While one is open the buffer can be neither
 * donated nor deleted: whoever tries gets an error instead of a dangling pointer. */
#include "buffer.h"

#include <string.h>

/* --- NumPy --- */

/* The base of an array: one open view. NumPy drops its base when the array dies, and so the view is closed. */
typedef struct py_view {
  PyObject_HEAD xlac_buffer *b;
} py_view;

/* The close may be what frees the memory, where the Buffer itself is gone already. */
static void view_dealloc(PyObject *self) {
  assert(((py_view *)self)->b);
  PyTypeObject *type = Py_TYPE(self);
  xlac_buffer_close(((py_view *)self)->b);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* Not to be made from Python, and with nothing to see: it is only ever the base of an array. */
static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, (void *)view_dealloc},
    {Py_tp_doc, "Keeps the memory of a Buffer for an array that views it."},
    {0, NULL},
};

PyType_Spec py_view_spec = {
    .name = "xlac._core.View",
    .basicsize = sizeof(py_view),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = view_slots,
};

/* A new reference; NULL with an exception where the buffer is deleted or memory is out, and the buffer is closed
 * again then. */
static PyObject *view_open(py_state *st, xlac_buffer *b) {
  assert(b);
  xlac_error err = {.code = 0};
  if (xlac_buffer_open(b, &err) != 0) return py_raise(st, &err, PY_ANY);
  py_view *view = PyObject_New(py_view, st->view_type);
  if (view == NULL)
    xlac_buffer_close(b);
  else
    view->b = b;
  return (PyObject *)view;
}

/* An empty buffer may have no address, and NumPy would take NULL for a wish to allocate: any address will do.
 * Steals descr, also on failure, as NumPy's function does. The array does not own the memory: its base is set by
 * the caller. */
static PyObject *view_array(void **numpy, PyObject *view, const xlac_buffer_info *info, PyObject *descr) {
  assert(view && info->rank <= NPY_MAXDIMS);
  npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  for (uint32_t d = 0; d < info->rank; d++) {
    dims[d] = (npy_intp)info->dims[d];
    strides[d] = (npy_intp)info->strides[d];
  }
  void *data = info->data ? info->data : (void *)view;
  return PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)descr, (int)info->rank, dims, strides, data,
                              info->readonly ? 0 : NPY_ARRAY_WRITEABLE, NULL);
}

/* Memory that the host doesn't see is copied to where it does. */
static PyObject *view_of_copy(py_state *st, xlac_buffer *b) {
  xlac_buffer *here = py_buffer_moved(st, b, NULL);
  PyObject *copy = here ? py_wrap_buffer(st, here) : NULL, *array = copy ? py_buffer_numpy(copy, NULL) : NULL;
  Py_XDECREF(copy);
  return array;
}

/* The facts are read anew once the view is open, since only then is the address sure to stay.
 * PyArray_SetBaseObject steals the view, also on failure. */
PyObject *py_buffer_numpy(PyObject *self, PyObject *unused) {
  (void)unused;
  py_state *st = py_state_of(self);
  void **numpy = py_numpy(st);
  xlac_buffer_info info;
  xlac_buffer_get(((py_buffer *)self)->b, &info);
  if (info.device) return view_of_copy(st, ((py_buffer *)self)->b);
  if (numpy && info.rank > NPY_MAXDIMS)
    return PyErr_Format(PyExc_BufferError, "NumPy's arrays have at most %d dimensions", NPY_MAXDIMS);
  PyObject *view = numpy ? view_open(st, ((py_buffer *)self)->b) : NULL;
  PyObject *descr = view ? py_descr(st, info.dtype) : NULL;
  if (view) xlac_buffer_get(((py_buffer *)self)->b, &info);
  PyObject *array = descr ? view_array(numpy, view, &info, descr) : NULL;
  if (array == NULL) {
    Py_XDECREF(view);
    return NULL;
  }
  if (PyArray_SetBaseObject((PyArrayObject *)array, view) < 0) {
    Py_DECREF(array);
    return NULL;
  }
  py_count_out(st, info.bytes, false);
  return array;
}

/* Through the attribute, since the array may be of a subclass or of a dtype that the C API counts otherwise. */
static void view_count_copy(py_state *st, PyObject *array) {
  PyObject *bytes = PyObject_GetAttrString(array, "nbytes");
  size_t n = bytes ? PyLong_AsSize_t(bytes) : 0;
  Py_XDECREF(bytes);
  if (PyErr_Occurred()) PyErr_Clear(); /* an array has its size: nothing to tell anybody */
  py_count_out(st, n, true);
}

/* The view as another dtype, or a copy of it. Steals. `wanted` NULL: a copy of the same type. The view dies with
 * the copy made, so the buffer can be donated at once. */
static PyObject *view_converted(py_state *st, PyObject *view, PyArray_Descr *wanted) {
  void **numpy = py_numpy(st);
  PyArrayObject *array = (PyArrayObject *)view;
  PyObject *copy = NULL;
  if (wanted)
    copy = PyArray_CastToType(array, (PyArray_Descr *)Py_NewRef((PyObject *)wanted), 0);
  else
    copy = PyArray_NewCopy(array, NPY_CORDER);
  Py_DECREF(view);
  if (copy) view_count_copy(st, copy);
  return copy;
}

/* What np.asarray(buffer, dtype, copy) gives, by the rules of NumPy 2: copy=False is a promise, None a wish, True
 * an order. */
static PyObject *view_as(py_state *st, PyObject *self, PyArray_Descr *wanted, py_copy copy) {
  assert(copy != PY_COPY_WRONG);
  void **numpy = py_numpy(st);
  xlac_buffer_info info;
  xlac_buffer_get(((py_buffer *)self)->b, &info);
  if (info.device && copy == PY_COPY_NEVER)
    return PyErr_SetString(PyExc_ValueError, "an array of a GPU's memory would be a copy, and copy=False forbids it"),
           NULL;
  PyObject *view = py_buffer_numpy(self, NULL);
  if (view == NULL) return NULL;
  bool same = wanted == NULL || PyArray_EquivTypes(PyArray_DESCR((PyArrayObject *)view), wanted);
  if (same && copy != PY_COPY_ALWAYS) return view;
  if (copy != PY_COPY_NEVER) return view_converted(st, view, wanted);
  PyErr_Format(PyExc_ValueError, "an array of another dtype (%R) would be a copy, and copy=False forbids it",
               (PyObject *)wanted);
  Py_DECREF(view);
  return NULL;
}

/* NumPy 1 calls it without `copy`, which is None then. */
PyObject *py_buffer_array(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"dtype", "copy", NULL};
  py_state *st = py_state_of(self);
  void **numpy = py_numpy(st);
  PyObject *dtype = Py_None, *copy = Py_None;
  if (numpy == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy)) return NULL;
  py_copy how = py_copy_of(copy);
  PyArray_Descr *wanted = NULL;
  if (how == PY_COPY_WRONG || (dtype != Py_None && !PyArray_DescrConverter(dtype, &wanted))) return NULL;
  PyObject *array = view_as(st, self, wanted, how);
  Py_XDECREF((PyObject *)wanted);
  return array;
}

/* --- the buffer protocol --- */

static const struct {
  const char *dtype, *format;
  /* Format strings of the struct module, as the buffer protocol wants them; memoryview has none for bf16, float8 and
   * narrower integers, and NumPy's extension "Zf" is understood by NumPy. */
} view_formats[] = {
    {"pred", "?"}, {"s8", "b"},  {"s16", "h"},  {"s32", "i"},   {"s64", sizeof(long) == 8 ? "l" : "q"},
    {"u8", "B"},   {"u16", "H"}, {"u32", "I"},  {"f16", "e"},   {"u64", sizeof(long) == 8 ? "L" : "Q"},
    {"f32", "f"},  {"f64", "d"}, {"c64", "Zf"}, {"c128", "Zd"},
};

/* NULL: the protocol can't say the type. */
static const char *view_format(uint32_t dtype) {
  const char *text = xlac_dtype_text(dtype);
  for (size_t i = 0; i < sizeof view_formats / sizeof *view_formats; i++)
    if (strcmp(view_formats[i].dtype, text) == 0) return view_formats[i].format;
  return NULL;
}

/* Raises BufferError, the only exception that the protocol allows; -1. `why` has one %s, for `detail`. */
static int view_refuse(const char *why, const char *detail) {
  assert(strstr(why, "%s"));
  PyErr_Format(PyExc_BufferError, why, detail);
  return -1;
}

/* Whether the first index runs fastest, without gaps. Dimensions of 1 may have any stride, and an empty array lies
 * in every order. */
static bool view_is_fortran(const xlac_buffer_info *info) {
  int64_t step = (int64_t)xlac_dtype_bytes(info->dtype);
  for (uint32_t d = 0; d < info->rank && info->count > 0; d++) {
    if (info->dims[d] != 1 && info->strides[d] != step) return false;
    step *= info->dims[d];
  }
  return true;
}

/* What the buffer can't give. 0, or -1 with BufferError. The flags are bits that contain one another, so each is
 * compared with all of its bits. */
static int view_check(const xlac_buffer_info *info, int flags) {
  bool fortran = view_is_fortran(info);
  if (info->device) return view_refuse("the buffer is in a GPU's memory%s: numpy() copies it", "");
  if ((flags & PyBUF_WRITABLE) && info->readonly) return view_refuse("the buffer is read-only%s", "");
  if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !info->dense)
    return view_refuse("the buffer is not C-contiguous%s", "");
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !fortran)
    return view_refuse("the buffer is not Fortran-contiguous%s", "");
  if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !info->dense && !fortran)
    return view_refuse("the buffer is not contiguous%s", "");
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !info->dense)
    return view_refuse("the buffer has strides, and was asked for without them%s", "");
  if ((flags & PyBUF_FORMAT) && view_format(info->dtype) == NULL)
    return view_refuse("the buffer protocol has no format for %s: use numpy() or __array__()",
                       xlac_dtype_text(info->dtype));
  return 0;
}

/* Shape and strides point into the buffer's own, which live as long as it: nothing is to be freed on release. Who
 * asks without PyBUF_ND gets one dimension of bytes. */
int py_buffer_getbuffer(PyObject *self, Py_buffer *view, int flags) {
  _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "dims and strides are handed out as they are");
  xlac_buffer *b = ((py_buffer *)self)->b;
  xlac_buffer_info info;
  xlac_error err = {.code = 0};
  view->obj = NULL;
  if (xlac_buffer_open(b, &err) != 0) {
    py_raise(py_state_of(self), &err, PY_ANY);
    return -1;
  }
  xlac_buffer_get(b, &info);
  if (view_check(&info, flags) < 0) {
    xlac_buffer_close(b);
    return -1;
  }
  *view = (Py_buffer){.buf = info.data ? info.data : (void *)b, /* nobody reads an empty one */
                      .len = (Py_ssize_t)info.bytes,
                      .itemsize = (Py_ssize_t)xlac_dtype_bytes(info.dtype),
                      .readonly = info.readonly,
                      .ndim = (flags & PyBUF_ND) ? (int)info.rank : 1};
  if (flags & PyBUF_FORMAT) view->format = (char *)(uintptr_t)view_format(info.dtype);
  if ((flags & PyBUF_ND) && info.rank) view->shape = (Py_ssize_t *)(uintptr_t)info.dims;
  if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES && info.rank) view->strides = (Py_ssize_t *)(uintptr_t)info.strides;
  view->obj = Py_NewRef(self);
  py_count_out(py_state_of(self), info.bytes, false);
  return 0;
}

/* Python calls it once for each view that was given, and drops view->obj itself afterwards. */
void py_buffer_releasebuffer(PyObject *self, Py_buffer *view) {
  (void)view;
  xlac_buffer_close(((py_buffer *)self)->b);
}
