/* Timelines of an executable's runs. What is made of them is Python's (xlac.timeline). */
#include "executable.h"

/* The names and threads of its lanes. */
PyObject *py_executable_lanes(PyObject *object, void *unused) {
  xlac_lane lane;
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list && xlac_executable_lane(((py_executable *)object)->exe, i, &lane); i++) {
    PyObject *pair = Py_BuildValue("sI", lane.thread, (unsigned int)lane.threads);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* (result, JSON). */
PyObject *py_executable_run_timeline(PyObject *object, PyObject *args, PyObject *kwargs) {
  py_call call = {.options = {XLAC_OPTIONS(xlac_interpret_options)},
                  .args = PySequence_Fast_ITEMS(args),
                  .n = (uint32_t)PyTuple_GET_SIZE(args)};
  char *text = NULL;
  size_t n = 0;
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "timeline takes the program's arguments by position, and nothing else");
  PyObject *result = py_call_profiled((py_executable *)object, &call, PY_CLOCK_LANES, &text, &n);
  PyObject *times = result ? py_text(text, (Py_ssize_t)n) : NULL;
  PyObject *both = times ? PyTuple_Pack(2, result, times) : NULL;
  Py_XDECREF(result);
  Py_XDECREF(times);
  return both;
}

/* Recording calls go by values, so that all others need not ask. */
PyObject *py_executable_record(PyObject *object, PyObject *arg) {
  py_executable *self = (py_executable *)object;
  int on = PyObject_IsTrue(arg);
  if (on < 0) return NULL;
  if (on && !self->recording) {
    self->was_planned = self->planned;
    self->planned = false;
  } else if (!on && self->recording) {
    self->planned = self->was_planned;
  }
  self->recording = on != 0;
  Py_RETURN_NONE;
}

PyObject *py_executable_recorded(PyObject *object, void *unused) {
  py_executable *self = (py_executable *)object;
  (void)unused;
  return Py_NewRef(self->recorded ? self->recorded : Py_None);
}

PyObject *py_call_recorded(py_executable *self, const py_call *call) {
  char *json = NULL;
  size_t n = 0;
  PyObject *result = py_call_profiled(self, call, PY_CLOCK_LANES, &json, &n);
  PyObject *text = result ? py_text(json, (Py_ssize_t)n) : NULL;
  if (text == NULL) Py_CLEAR(result);
  if (text) Py_XSETREF(self->recorded, text);
  return result;
}
