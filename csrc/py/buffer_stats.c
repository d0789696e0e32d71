/* What happened at the border, as a dict. */
#include "py.h"

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

PyObject *py_reset_stats(PyObject *core, PyObject *unused) {
  (void)unused;
  xlac_counters_reset(((py_state *)PyModule_GetState(core))->counters);
  Py_RETURN_NONE;
}
