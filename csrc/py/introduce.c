/* How an executable introduces itself: what it takes and gives, the program in it, how it looks in a notebook. Worked
 * out in Python (xlac.introduce) from a copy of its module, and kept. And results as Buffers, on request. */
#include "buffer.h"
#include "executable.h"

/* --- what Python works out --- */

/* Attributes that a function of that name in xlac.introduce gives. */
#define INTRODUCE(c_name, name)                                   \
  PyObject *c_name(PyObject *self, void *unused) {                \
    (void)unused;                                                 \
    return py_delegate("xlac.introduce", name, self, NULL, NULL); \
  }

INTRODUCE(py_executable_module, "module")
INTRODUCE(py_executable_inputs, "inputs")
INTRODUCE(py_executable_outputs, "outputs")
INTRODUCE(py_executable_signature, "signature")

PyObject *py_executable_html(PyObject *self, PyObject *unused) {
  (void)unused;
  return py_delegate("xlac.introduce", "html", self, NULL, NULL);
}

PyObject *py_executable_repr(PyObject *self) {
  return py_delegate("xlac.introduce", "line", self, NULL, NULL);
}

/* A copy, since the executable's own module must not be edited; None for NULL. */
static PyObject *copy_of(PyObject *object, xlac_module *m) {
  xlac_error err = {.code = 0};
  xlac_module *copy = NULL;
  int status;
  if (m == NULL) Py_RETURN_NONE;
  PY_WORK(status = xlac_module_clone(&copy, m, &err));
  return status == 0 ? py_wrap_module(py_state_of(object), copy) : py_raise(py_state_of(object), &err, PY_ANY);
}

PyObject *py_executable_copy_module(PyObject *object, PyObject *unused) {
  (void)unused;
  return copy_of(object, xlac_executable_module(((py_executable *)object)->exe));
}

/* What each device runs, of a program for several. */
PyObject *py_executable_copy_local(PyObject *object, PyObject *unused) {
  (void)unused;
  return copy_of(object, xlac_executable_local(((py_executable *)object)->exe));
}

/* --- results as Buffers --- */

/* Also tuples of tuples, as deep as a type may be. None stays: it stands for a token. Steals `result`. */
PyObject *py_results_as_buffers(py_state *st, PyObject *result) {
  void **numpy = result ? py_numpy(st) : NULL;
  PyObject *out = NULL;
  if (numpy && PyTuple_Check(result)) {
    Py_ssize_t n = PyTuple_GET_SIZE(result);
    out = PyTuple_New(n);
    for (Py_ssize_t i = 0; out && i < n; i++) {
      PyObject *part = py_results_as_buffers(st, Py_NewRef(PyTuple_GET_ITEM(result, i)));
      if (part == NULL)
        Py_CLEAR(out);
      else
        PyTuple_SET_ITEM(out, i, part);
    }
  } else if (numpy && PyArray_Check(result)) {
    xlac_buffer *b = py_buffer_of_array(st, result, PY_COPY_IF_NEEDED);
    out = b ? py_wrap_buffer(st, b) : NULL;
  } else if (numpy) {
    out = Py_NewRef(result);
  }
  Py_XDECREF(result);
  return out;
}

PyObject *py_executable_as_shards(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((py_executable *)self)->as_shards);
}

/* For xlac.compile: the program is for several devices. */
int py_executable_set_as_shards(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  int on = value ? PyObject_IsTrue(value) : 0;
  if (on >= 0) ((py_executable *)self)->as_shards = on != 0;
  return on < 0 ? -1 : 0;
}

PyObject *py_executable_as_buffers(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((py_executable *)self)->as_buffers);
}

/* For xlac.compile and xlac.load, before anybody else has the executable. */
int py_executable_set_as_buffers(PyObject *self, PyObject *value, void *unused) {
  (void)unused;
  int on = value ? PyObject_IsTrue(value) : 0;
  if (on >= 0) ((py_executable *)self)->as_buffers = on != 0;
  return on < 0 ? -1 : 0;
}
