/* lanes= of xlac.compile and xlac.load: threads for what the program runs on other execution threads. */
#include "executable.h"

/* 0, or -1 with an exception. The name is borrowed from the pair. */
static int lane_take(PyObject *pair, xlac_lane *lane) {
  unsigned int threads = 0;
  if (!PyArg_ParseTuple(pair, "sI;lanes must be pairs of a name and a number of threads", &lane->thread, &threads))
    return -1;
  lane->threads = threads;
  return 0;
}

/* None, or an empty tuple, leaves the library its default: one lane of one thread where a program needs one. */
int py_lanes_take(PyObject *pairs, xlac_compile_options *options) {
  assert(options->lanes == NULL);
  Py_ssize_t n = pairs && pairs != Py_None ? PyTuple_Size(pairs) : 0;
  if (n <= 0) return n < 0 ? -1 : 0;
  xlac_lane *lanes = PyMem_Calloc((size_t)n, sizeof *lanes);
  if (lanes == NULL) return PyErr_NoMemory(), -1;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (lane_take(PyTuple_GET_ITEM(pairs, i), &lanes[i]) == 0) continue;
    PyMem_Free(lanes);
    return -1;
  }
  options->lanes = lanes;
  options->n_lanes = (uint32_t)n;
  return 0;
}

/* May be called twice, and without lanes. */
void py_lanes_forget(xlac_compile_options *options) {
  PyMem_Free((void *)(uintptr_t)options->lanes);
  options->lanes = NULL;
  options->n_lanes = 0;
}
