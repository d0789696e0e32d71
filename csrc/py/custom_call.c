/* Custom calls written in Python: arrays in, arrays out, called by the interpreter. */
#include "run.h"

#include <string.h>

struct py_custom_call {
  py_run *run;
  PyObject *function;
  char target[64]; /* for messages */
};

PyObject *py_register_custom_call(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  PyObject *name, *function;
  if (!PyArg_ParseTuple(args, "UO:register_custom_call", &name, &function)) return NULL;
  if (function != Py_None && !PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "a custom call must be a function or None, found %.100s",
                        Py_TYPE(function)->tp_name);
  int status = function != Py_None                            ? PyDict_SetItem(st->custom_calls, name, function)
               : PyDict_Contains(st->custom_calls, name) == 1 ? PyDict_DelItem(st->custom_calls, name)
                                                              : 0;
  if (status < 0) return NULL;
  Py_RETURN_NONE;
}

/* --- operands: copies, because the function may keep them for longer than the run keeps its memory --- */

static PyObject *array_of_operand(py_state *st, const xlac_value *v) {
  xlac_value_info info;
  xlac_error err = {.code = 0};
  xlac_value *copy = NULL;
  xlac_value_get(v, &info);
  if (info.kind == XLAC_VALUE_TOKEN) Py_RETURN_NONE;
  if (info.kind == XLAC_VALUE_ARRAY) {
    if (xlac_value_copy(&copy, info.dtype, info.rank, info.dims, info.data, &err) != 0)
      return py_raise(st, &err, PY_ANY);
    return py_from_value(st, copy);
  }
  PyObject *tuple = PyTuple_New(info.n_elements);
  for (uint32_t i = 0; tuple && i < info.n_elements; i++) {
    PyObject *element = array_of_operand(st, xlac_value_element(v, i));
    if (element == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, element);
  }
  return tuple;
}

static PyObject *operand_tuple(py_state *st, uint32_t n, xlac_value *const *operands) {
  PyObject *tuple = PyTuple_New(n);
  for (uint32_t i = 0; tuple && i < n; i++) {
    PyObject *array = array_of_operand(st, operands[i]);
    if (array == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, array);
  }
  return tuple;
}

/* --- results --- */

static int fail_result(py_state *st, const xlac_type *t, const char *what) {
  char *text = xlac_type_print(t, false);
  py_raise_argument(st, "%s must be %s, but the function gave something else", what, text ? text : "?");
  xlac_free(text);
  return -1;
}

/* Copies the arrays of v, of type t, to the memory of the leaves from results[*at] on. Nesting is the type's. */
static int copy_leaves(py_state *st, const xlac_type *t, const xlac_value *v, const char *what, void *const *results,
                       uint32_t *at) {
  xlac_type_info type;
  xlac_value_info value;
  xlac_type_get(t, &type);
  xlac_value_get(v, &value);
  if (type.kind == XLAC_TYPE_TUPLE) {
    if (value.n_elements != type.n_elements) return fail_result(st, t, what);
    for (uint32_t i = 0; i < type.n_elements; i++)
      if (copy_leaves(st, xlac_type_element(t, i), xlac_value_element(v, i), what, results, at) < 0) return -1;
    return 0;
  }
  void *target = results[(*at)++];
  if (type.kind != XLAC_TYPE_TENSOR) return 0;
  bool fits = value.kind == XLAC_VALUE_ARRAY && value.dtype == type.dtype && value.rank == type.rank &&
              (type.rank == 0 || memcmp(value.dims, type.dims, type.rank * sizeof *type.dims) == 0);
  if (!fits) return fail_result(st, t, what);
  if (value.bytes) memcpy(target, value.data, value.bytes);
  return 0;
}

static int take_result(const py_custom_call *call, const xlac_op *op, PyObject *object, void *const *results) {
  py_state *st = call->run->st;
  xlac_op_info info;
  xlac_op_get(call->run->m, (xlac_op *)(uintptr_t)op, &info);
  char what[128];
  PyOS_snprintf(what, sizeof what, "the result of custom call %s", call->target);
  PyObject *keep = PyList_New(0);
  xlac_value *v = NULL;
  uint32_t at = 0;
  int status = keep ? py_to_value(st, object, info.type, what, keep, &v) : -1;
  if (status == 0) status = copy_leaves(st, info.type, v, what, results, &at);
  xlac_value_release(v);
  Py_XDECREF(keep);
  return status;
}

/* --- calls --- */

static int call_function(const py_custom_call *call, const xlac_op *op, uint32_t n, xlac_value *const *operands,
                         void *const *results) {
  PyObject *args = operand_tuple(call->run->st, n, operands);
  PyObject *result = args ? PyObject_CallObject(call->function, args) : NULL;
  int status = result ? take_result(call, op, result, results) : -1;
  Py_XDECREF(args);
  Py_XDECREF(result);
  return status;
}

/* What went wrong is kept as the cause of the error that the run ends with. */
static void keep_error(py_run *run, xlac_error *err) {
  PyErr_Fetch(&run->error[0], &run->error[1], &run->error[2]);
  PyErr_NormalizeException(&run->error[0], &run->error[1], &run->error[2]);
  PyObject *text = run->error[1] ? PyObject_Str(run->error[1]) : NULL;
  const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
  const char *kind = run->error[1] ? Py_TYPE(run->error[1])->tp_name : "an error";
  PyOS_snprintf(err->message, sizeof err->message, "%.100s%s%.400s", kind, s && *s ? ": " : "", s ? s : "");
  Py_XDECREF(text);
  PyErr_Clear();
}

static int call_python(void *ctx, const xlac_op *op, uint32_t n_operands, xlac_value *const *operands,
                       uint32_t n_results, void *const *results, xlac_error *err) {
  const py_custom_call *call = ctx;
  (void)n_results; /* the op's type says the same */
  py_run_enter(call->run);
  int status = call_function(call, op, n_operands, operands, results);
  if (status != 0) keep_error(call->run, err);
  py_run_leave(call->run);
  return status;
}

static int add_calls(py_run *run, PyObject *functions, xlac_registry *registry, py_custom_call *calls) {
  PyObject *name, *function;
  xlac_error err = {.code = 0};
  Py_ssize_t at = 0;
  for (py_custom_call *call = calls; PyDict_Next(functions, &at, &name, &function); call++) {
    const char *target = PyUnicode_AsUTF8(name);
    if (target == NULL) return -1;
    call->run = run;
    call->function = Py_NewRef(function);
    PyOS_snprintf(call->target, sizeof call->target, "%s", target);
    if (xlac_registry_add(registry, target, call_python, call, &err) != 0) return py_raise(run->st, &err, PY_ANY), -1;
  }
  return 0;
}

xlac_registry *py_custom_calls_begin(py_run *run, py_custom_call **calls) {
  xlac_registry *registry = NULL;
  xlac_error err = {.code = 0};
  *calls = NULL;
  if (PyDict_Size(run->st->custom_calls) == 0) return NULL;
  PyObject *functions = PyDict_Copy(run->st->custom_calls); /* what is registered meanwhile is for later runs */
  if (functions == NULL) return NULL;
  if (xlac_registry_create(&registry, &err) != 0) {
    py_raise(run->st, &err, PY_ANY);
  } else if ((*calls = PyMem_Calloc((size_t)PyDict_GET_SIZE(functions) + 1, sizeof **calls)) == NULL) {
    PyErr_NoMemory();
  } else {
    (void)add_calls(run, functions, registry, *calls);
  }
  Py_DECREF(functions);
  return registry;
}

void py_custom_calls_end(xlac_registry *registry, py_custom_call *calls) {
  xlac_registry_destroy(registry);
  for (py_custom_call *call = calls; call && call->function; call++) Py_DECREF(call->function);
  PyMem_Free(calls);
}
