/* Error records to Python exceptions, and strings both ways.
 *
 * The library's records have a number, a message, a place and a hint; xlac.errors has a class for each kind of
 * error, with those as attributes. Which class it is follows from the number, and where the number is of several
 * stages, from the stage. */
#include "py.h"

#include <stdarg.h>
#include <string.h>

/* Numbers of the library's errors (xlac.codes) that need something special here. */
typedef enum py_code {
  PY_INTERRUPTED = 402,
  PY_DEVICE = 405,
  PY_ARGUMENT_COUNT = 500,
  PY_BAD_ARGUMENT = 503,
  PY_OUT_OF_MEMORY = 600
} py_code;

/* The names are those of classes in xlac.errors. 1xx are of reading, 2xx and 3xx of checking, 5xx of arguments. */
static const char *class_name(int32_t code, py_stage stage) {
  if (code == PY_OUT_OF_MEMORY) return "OutOfMemoryError";
  if (code == PY_DEVICE) return "DeviceError";
  if (stage == PY_PARSING && code != PY_BAD_ARGUMENT) return "ParseError";
  if (stage == PY_VERIFYING) return "VerifyError";
  if (code >= PY_ARGUMENT_COUNT && code <= PY_BAD_ARGUMENT) return "ArgumentError";
  if (code >= PY_BUFFER_DELETED && code <= PY_DONATION_TWICE) return "DonationError";
  if (code >= 100 && code < 200) return "ParseError";
  if (code >= 200 && code < 400) return "VerifyError";
  return "Error";
}

/* Messages quote names, which may be any bytes; nobody reads them back, so what is not UTF-8 is replaced. */
static PyObject *decode(const char *s) {
  assert(s);
  return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace");
}

/* Where making the exception fails, that failure is what is raised: there is an exception in any case. */
PyObject *py_raise(py_state *st, const xlac_error *err, py_stage stage) {
  assert(st->errors);
  /* The signal handler's exception says it. */
  if (err->code == PY_INTERRUPTED && (PyErr_Occurred() || PyErr_CheckSignals() != 0)) return NULL;
  PyObject *cls = PyObject_GetAttrString(st->errors, class_name(err->code, stage));
  PyObject *message = decode(err->message), *op = decode(err->op), *hint = decode(err->hint);
  PyObject *exception = NULL;
  if (cls && message && op && hint)
    exception = PyObject_CallFunction(cls, "OiIIOO", message, (int)err->code, (unsigned)err->line, (unsigned)err->col,
                                      op, hint);
  if (exception) PyErr_SetObject(cls, exception);
  Py_XDECREF(exception);
  Py_XDECREF(cls);
  Py_XDECREF(message);
  Py_XDECREF(op);
  Py_XDECREF(hint);
  return NULL;
}

/* A note is a help: where it can't be made, the error is as it was. */
PyObject *py_show_source(PyObject *source) {
  PyObject *type, *value, *traceback;
  if (source == NULL || !PyErr_Occurred()) return NULL;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (PyObject_HasAttrString(value, "_note_place")) {
    PyObject *noted = PyObject_CallMethod(value, "_note_place", "O", source);
    if (noted == NULL) PyErr_Clear();
    Py_XDECREF(noted);
  }
  PyErr_Restore(type, value, traceback);
  return NULL;
}

/* For what this extension finds wrong itself, before the library is asked. */
PyObject *py_raise_argument(py_state *st, const char *format, ...) {
  xlac_error err = {.code = PY_BAD_ARGUMENT};
  va_list args;
  va_start(args, format);
  PyOS_vsnprintf(err.message, sizeof err.message, format, args);
  va_end(args);
  return py_raise(st, &err, PY_ANY);
}

/* n < 0: up to the first zero byte. NULL with a MemoryError for NULL, which the library gives only when out of
 * memory. */
PyObject *py_text(char *text, Py_ssize_t n) {
  if (text == NULL) return PyErr_NoMemory();
  PyObject *s = PyUnicode_DecodeUTF8(text, n < 0 ? (Py_ssize_t)strlen(text) : n, "surrogateescape");
  xlac_free(text);
  return s;
}

/* -1 with an exception. A str that is UTF-8 keeps its encoded form itself, so no copy is made; one with surrogates
 * is encoded anew. */
int py_source(PyObject *object, PyObject **holder, const char **text, Py_ssize_t *n) {
  assert(object && holder);
  if (PyUnicode_Check(object)) {
    const char *utf8 = PyUnicode_AsUTF8AndSize(object, n);
    if (utf8) {
      *holder = Py_NewRef(object);
      *text = utf8;
      return 0;
    }
    PyErr_Clear();
    object = PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape");
    if (object == NULL) return -1;
  } else if (PyBytes_Check(object)) {
    Py_INCREF(object);
  } else {
    PyErr_Format(PyExc_TypeError, "expected text as str or bytes, found %.100s", Py_TYPE(object)->tp_name);
    return -1;
  }
  *holder = object;
  *text = PyBytes_AS_STRING(object);
  *n = PyBytes_GET_SIZE(object);
  return 0;
}

/* What is easier in Python is written in Python: methods of our types are functions of modules of the package,
 * imported when first called. Any failure on the way is the call's exception. */
PyObject *py_delegate(const char *file, const char *name, PyObject *self, PyObject *args, PyObject *kwargs) {
  assert(file && name && self);
  PyObject *module = PyImport_ImportModule(file);
  PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
  PyObject *head = function ? PyTuple_Pack(1, self) : NULL;
  PyObject *all = head ? (args ? PySequence_Concat(head, args) : Py_NewRef(head)) : NULL;
  PyObject *result = all ? PyObject_Call(function, all, kwargs) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(function);
  Py_XDECREF(head);
  Py_XDECREF(all);
  return result;
}

/* Python's own lookup, and where that finds nothing, what xlac.elsewhere knows of the name, put behind the error's
 * words: names are tried that other libraries have. */
PyObject *py_attribute(PyObject *self, PyObject *name) {
  assert(self && name);
  PyObject *found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  if (PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_')
    return NULL; /* Python's own question */
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  PyObject *args = PyTuple_Pack(1, name), *said = args ? PyObject_Str(error) : NULL;
  PyObject *hint = said ? py_delegate("xlac.elsewhere", "hint", self, args, NULL) : NULL;
  PyObject *both = hint && PyUnicode_Check(hint) && PyUnicode_GET_LENGTH(hint) ? PyUnicode_Concat(said, hint) : NULL;
  PyObject *words = both ? PyTuple_Pack(1, both) : NULL;
  if (words) PyObject_SetAttrString(error, "args", words);
  PyErr_Clear(); /* without a hint the error stands as it was */
  Py_XDECREF(args);
  Py_XDECREF(said);
  Py_XDECREF(hint);
  Py_XDECREF(both);
  Py_XDECREF(words);
  PyErr_Restore(type, error, trace);
  return NULL;
}
