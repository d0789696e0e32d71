/* TensorFlow graphs as modules. */
#include "py.h"

#include <string.h>

enum { MOST_LOWERED_DIMS = 64 };

typedef struct lowered_inputs {
  Py_ssize_t n, n_fetches;
  xlac_graph_input *inputs;
  int64_t (*dims)[MOST_LOWERED_DIMS];
  const char **fetches;
} lowered_inputs;

static int read_lowered_dims(PyObject *tuple, int64_t *dims, uint32_t *rank) {
  Py_ssize_t n = PyTuple_Size(tuple);
  if (n < 0) return -1;
  if (n > MOST_LOWERED_DIMS) {
    PyErr_SetString(PyExc_ValueError, "an input has too many dimensions");
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    dims[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  *rank = (uint32_t)n;
  return 0;
}

/* (tensor, dtype or None, dims, data or None, variable) */
static int read_lowered_input(PyObject *item, xlac_graph_input *in, int64_t *dims) {
  const char *dtype = NULL, *data = NULL;
  Py_ssize_t n_data = 0;
  PyObject *shape;
  int variable = 0;
  if (!PyArg_ParseTuple(item, "szO!z#p:input", &in->tensor, &dtype, &PyTuple_Type, &shape, &data, &n_data, &variable))
    return -1;
  if (read_lowered_dims(shape, dims, &in->rank) < 0) return -1;
  in->dims = dims;
  in->variable = variable != 0;
  in->unset = dtype == NULL;
  in->data = data;
  in->dtype = dtype ? xlac_dtype_from_text(dtype) : 0;
  if (dtype && in->dtype == 0) {
    PyErr_Format(PyExc_ValueError, "'%.60s' is no element type", dtype);
    return -1;
  }
  size_t bytes = xlac_dtype_bytes(in->dtype);
  for (uint32_t i = 0; i < in->rank; i++) bytes *= (size_t)dims[i];
  if (data == NULL || bytes == (size_t)n_data) return 0;
  PyErr_Format(PyExc_ValueError, "the data of input '%.100s' has %zd bytes, its shape takes %zu", in->tensor, n_data,
               bytes);
  return -1;
}

static void free_lowered(lowered_inputs *all) {
  PyMem_Free(all->inputs);
  PyMem_Free(all->dims);
  PyMem_Free(all->fetches);
}

static int read_lowered(PyObject *inputs, PyObject *fetches, lowered_inputs *all) {
  all->n = PyTuple_Size(inputs);
  all->n_fetches = PyTuple_Size(fetches);
  if (all->n < 0 || all->n_fetches < 0) return -1;
  all->inputs = PyMem_Calloc((size_t)all->n + 1, sizeof *all->inputs);
  all->dims = PyMem_Calloc((size_t)all->n + 1, sizeof *all->dims);
  all->fetches = PyMem_Calloc((size_t)all->n_fetches + 1, sizeof *all->fetches);
  if (!all->inputs || !all->dims || !all->fetches) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < all->n; i++)
    if (read_lowered_input(PyTuple_GetItem(inputs, i), &all->inputs[i], all->dims[i]) < 0) return -1;
  for (Py_ssize_t i = 0; i < all->n_fetches; i++) {
    all->fetches[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(fetches, i), NULL);
    if (all->fetches[i] == NULL) return -1;
  }
  return 0;
}

static PyObject *run_lower(py_state *st, PyObject *graph, xlac_graph_format format, const lowered_inputs *all) {
  xlac_error err = {.code = 0};
  PyObject *holder;
  const char *bytes;
  char *report = NULL;
  Py_ssize_t n;
  size_t n_report = 0;
  xlac_module *m = NULL;
  if (py_source(graph, &holder, &bytes, &n) < 0) return NULL;
  int status = xlac_graph_lower(&m, bytes, (size_t)n, format, (uint32_t)all->n, all->inputs, (uint32_t)all->n_fetches,
                                all->fetches, &report, &n_report, &err);
  Py_DECREF(holder);
  if (status != 0) return py_raise(st, &err, PY_ANY);
  PyObject *module = py_wrap_module(st, m), *text = py_text(report, (Py_ssize_t)n_report);
  PyObject *both = module && text ? PyTuple_Pack(2, module, text) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(text);
  return both;
}

PyObject *py_lower_graph(PyObject *core, PyObject *args) {
  PyObject *graph, *inputs, *fetches;
  const char *format;
  lowered_inputs all = {.n = 0};
  if (!PyArg_ParseTuple(args, "OsO!O!:lower_graph", &graph, &format, &PyTuple_Type, &inputs, &PyTuple_Type, &fetches))
    return NULL;
  xlac_graph_format number = strcmp(format, "text") == 0    ? XLAC_GRAPH_TEXT
                             : strcmp(format, "proto") == 0 ? XLAC_GRAPH_PROTO
                                                            : XLAC_GRAPH_AUTO;
  PyObject *result =
      read_lowered(inputs, fetches, &all) < 0 ? NULL : run_lower(PyModule_GetState(core), graph, number, &all);
  free_lowered(&all);
  return result;
}

PyObject *py_has_lowering(PyObject *core, PyObject *op) {
  (void)core;
  const char *name = PyUnicode_AsUTF8AndSize(op, NULL);
  return name ? PyBool_FromLong(xlac_graph_has_lowering(name)) : NULL;
}
