/* Kernels by their text (xlac.kernels): for reading one and for trying it out by itself. Arrays come as buffers of
 * bytes; element types and shapes are the kernel's. */
#include <string.h>

#include "py.h"

/* Errors of the text are ParseErrors, with line and column. */
PyObject *py_kernel_text(PyObject *core, PyObject *source) {
  PyObject *holder = NULL;
  const char *text = NULL;
  char *out = NULL;
  size_t out_n = 0;
  Py_ssize_t n = 0;
  xlac_error err = {.code = 0};
  if (py_source(source, &holder, &text, &n) < 0) return NULL;
  int status = xlac_kernel_text(text, (size_t)n, &out, &out_n, &err);
  Py_DECREF(holder);
  return status ? py_raise(PyModule_GetState(core), &err, PY_PARSING) : py_text(out, (Py_ssize_t)out_n);
}

/* One side of the call's arrays. */
typedef struct kernel_arrays {
  PyObject *items; /* a fast sequence */
  Py_buffer *views;
  void **data;
  int64_t *bytes;
  uint32_t n;
} kernel_arrays;

/* 0, or -1 with an exception; kernel_arrays_close follows in either case, for the n that are open. */
static int kernel_arrays_open(kernel_arrays *a, PyObject *sequence, int flags) {
  memset(a, 0, sizeof *a);
  a->items = PySequence_Fast(sequence, "arrays must be a sequence");
  if (a->items == NULL) return -1;
  size_t n = (size_t)PySequence_Fast_GET_SIZE(a->items);
  a->views = PyMem_Calloc(n + 1, sizeof *a->views);
  a->data = PyMem_Calloc(n + 1, sizeof *a->data);
  a->bytes = PyMem_Calloc(n + 1, sizeof *a->bytes);
  if (a->views == NULL || a->data == NULL || a->bytes == NULL) return PyErr_NoMemory(), -1;
  for (; a->n < n; a->n++) {
    Py_buffer *view = &a->views[a->n];
    if (PyObject_GetBuffer(PySequence_Fast_GET_ITEM(a->items, a->n), view, flags) < 0) return -1;
    a->data[a->n] = view->buf;
    a->bytes[a->n] = (int64_t)view->len;
  }
  return 0;
}

/* Also of one that was never opened, all zero. */
static void kernel_arrays_close(kernel_arrays *a) {
  for (uint32_t i = 0; i < a->n; i++) PyBuffer_Release(&a->views[i]);
  PyMem_Free(a->views);
  PyMem_Free(a->data);
  PyMem_Free(a->bytes);
  Py_XDECREF(a->items);
}

/* Without the GIL: the buffers are locked by their views. */
static int kernel_call(const char *text, size_t n, const xlac_kernel_call *call, xlac_error *err) {
  assert(text && call);
  PyThreadState *thread = PyEval_SaveThread();
  int status = xlac_kernel_run(text, n, call, err);
  PyEval_RestoreThread(thread);
  return status;
}

/* `reference`: one iteration after another, instead of by vectors. */
PyObject *py_kernel_run(PyObject *core, PyObject *args) {
  PyObject *source = NULL, *inputs = NULL, *outputs = NULL, *holder = NULL;
  unsigned threads = 1;
  int reference = 0, status = -1;
  const char *text = NULL;
  Py_ssize_t n = 0;
  kernel_arrays in = {.n = 0}, out = {.n = 0};
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "OOOIp:kernel_run", &source, &inputs, &outputs, &threads, &reference)) return NULL;
  if (py_source(source, &holder, &text, &n) < 0) return NULL;
  bool open = kernel_arrays_open(&in, inputs, PyBUF_SIMPLE) == 0 &&
              kernel_arrays_open(&out, outputs, PyBUF_SIMPLE | PyBUF_WRITABLE) == 0;
  if (open) {
    xlac_kernel_call call = {.n_in = in.n, .in = (const void *const *)in.data, .in_bytes = in.bytes};
    call.n_out = out.n;
    call.out = out.data;
    call.out_bytes = out.bytes;
    call.threads = threads;
    call.reference = reference != 0;
    status = kernel_call(text, (size_t)n, &call, &err);
  }
  kernel_arrays_close(&in);
  kernel_arrays_close(&out);
  Py_DECREF(holder);
  if (!open) return NULL;
  return status ? py_raise(PyModule_GetState(core), &err, PY_PARSING) : Py_NewRef(Py_None);
}
