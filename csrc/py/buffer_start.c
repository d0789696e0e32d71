/* What buffers need of the module's state. */
#include "dlpack.h"

static PyObject *start_constant(py_state *st, py_name name) {
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
    case PY_DL_VERSION:
      return Py_BuildValue("(ii)", DL_MAJOR, DL_MINOR);
    default:
      return Py_BuildValue("(ii)", DL_CPU, 0);
  }
}

static PyTypeObject *start_type(PyObject *core, PyType_Spec *spec) {
  return (PyTypeObject *)PyType_FromModuleAndSpec(core, spec, NULL);
}

int py_buffers_start(PyObject *core) {
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
