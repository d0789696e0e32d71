/* Custom calls registered in Python. Functions of Python get arrays and give arrays; native code is handed on.
 *
 * st->custom_calls maps a target to a function, or to a capsule with native code. A run needs them as a registry
 * of the library's: where all are native, one registry serves all runs (st->native_calls) until something is
 * registered; functions of Python need the run they are called from, so each run has a registry of its own then. */
#include "../include/xlac_ffi.h"
#include "run.h"

#include <string.h>

/* The context of one target in one run. */
struct py_custom_call {
  py_run *run;
  PyObject *function;
  char target[64]; /* for messages */
};

/* --- native code --- */

/* The names by which our capsules are told from others, and from one another. */
static const char native_name[] = "xlac.native", native_registry_name[] = "xlac.registry";

/* Native code as it was registered; the registry copies the target. */
typedef struct py_native {
  xlac_ffi_target target;
  PyObject *keep; /* what it was registered as */
} py_native;

/* Destructor of the capsule. Runs that still call the code hold the capsule, through the registry's list. */
static void forget_native(PyObject *capsule) {
  py_native *n = PyCapsule_GetPointer(capsule, native_name);
  Py_XDECREF(n->keep);
  PyMem_Free(n);
}

/* A capsule with the code at an address; NULL with an exception. `keep` is what the address came from (a ctypes
 * function, say), which must not be unloaded. Addresses are copied as bytes, since C has no conversion from data
 * to functions. */
static PyObject *make_native(unsigned long long address, unsigned long long user, PyObject *keep) {
  assert(address);
  py_native *n = PyMem_Calloc(1, sizeof *n);
  if (n == NULL) return PyErr_NoMemory();
  uintptr_t at = (uintptr_t)address, with = (uintptr_t)user;
  n->target.struct_size = sizeof n->target;
  n->target.version = XLAC_FFI_VERSION;
  memcpy(&n->target.run, &at, sizeof at);
  memcpy(&n->target.user, &with, sizeof with);
  PyObject *capsule = PyCapsule_New(n, native_name, forget_native);
  if (capsule == NULL)
    PyMem_Free(n);
  else
    n->keep = Py_NewRef(keep);
  return capsule;
}

/* 0, or -1 with an exception. */
static int add_native(PyObject *capsule, xlac_registry *registry, const char *target, py_state *st) {
  assert(registry && target);
  const py_native *n = PyCapsule_GetPointer(capsule, native_name);
  xlac_error err = {.code = 0};
  if (n == NULL) return -1;
  return xlac_registry_add_native(registry, target, &n->target, &err) == 0 ? 0 : (py_raise(st, &err, PY_ANY), -1);
}

/* Destructor of the shared registry's capsule. The registry holds what it calls: the dictionary's values, in a
 * list that is the capsule's context. */
static void forget_registry(PyObject *capsule) {
  xlac_registry_destroy(PyCapsule_GetPointer(capsule, native_registry_name));
  Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
}

/* A registry of all targets, which are native; NULL with an exception. The list of values is stolen by the capsule
 * only when its context is set. */
static PyObject *make_registry(py_state *st) {
  assert(st->native_calls == NULL);
  PyObject *name, *value, *values = PyDict_Values(st->custom_calls), *capsule = NULL;
  xlac_registry *registry = NULL;
  xlac_error err = {.code = 0};
  Py_ssize_t at = 0;
  if (values == NULL) return NULL;
  if (xlac_registry_create(&registry, &err) != 0) {
    Py_DECREF(values);
    return py_raise(st, &err, PY_ANY);
  }
  int status = 0;
  while (status == 0 && PyDict_Next(st->custom_calls, &at, &name, &value)) {
    const char *target = PyUnicode_AsUTF8(name);
    status = target ? add_native(value, registry, target, st) : -1;
  }
  if (status == 0) capsule = PyCapsule_New(registry, native_registry_name, forget_registry);
  if (capsule == NULL || PyCapsule_SetContext(capsule, values) < 0) {
    if (capsule == NULL) xlac_registry_destroy(registry);
    Py_DECREF(values);
    Py_CLEAR(capsule);
  }
  return capsule;
}

/* Whether no function of Python is among them. */
static bool all_native(PyObject *functions) {
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(functions, &at, &name, &value))
    if (!PyCapsule_IsValid(value, native_name)) return false;
  return true;
}

/* Puts or, for None, removes a target; 0, or -1 with an exception. */
static int put_call(py_state *st, PyObject *name, PyObject *value) {
  assert(PyUnicode_Check(name));
  Py_CLEAR(st->native_calls); /* runs that use it hold it */
  if (value != Py_None) return PyDict_SetItem(st->custom_calls, name, value);
  return PyDict_Contains(st->custom_calls, name) == 1 ? PyDict_DelItem(st->custom_calls, name) : 0;
}

/* With an address, `function` is only what is to be kept alive. */
PyObject *py_register_custom_call(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  PyObject *name, *function;
  unsigned long long address = 0, user = 0;
  if (!PyArg_ParseTuple(args, "UO|KK:register_custom_call", &name, &function, &address, &user)) return NULL;
  if (address == 0 && function != Py_None && !PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "a custom call must be a function or None, found %.100s",
                        Py_TYPE(function)->tp_name);
  PyObject *value = address ? make_native(address, user, function) : Py_NewRef(function);
  if (value == NULL) return NULL;
  int status = put_call(st, name, value);
  Py_DECREF(value);
  if (status < 0) return NULL;
  Py_RETURN_NONE;
}

/* --- operands: copies, because the function may keep them for longer than the run keeps its memory --- */

/* A new reference; NULL with an exception. Nesting is that of a type, which is bounded. */
static PyObject *array_of_operand(py_state *st, const xlac_value *v) {
  assert(v);
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

/* The function's arguments, one for each operand. */
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

/* "f32[2,3]", of what a function gave: elements are not shown, there may be many. */
static void describe_value(const xlac_value_info *v, char *out, size_t size) {
  assert(size > 0);
  if (v->kind != XLAC_VALUE_ARRAY) {
    PyOS_snprintf(out, size, "a tuple of %u", v->n_elements);
    return;
  }
  PyOS_snprintf(out, size, "%s[", xlac_dtype_text(v->dtype));
  for (uint32_t d = 0; d < v->rank; d++) {
    size_t n = strlen(out);
    PyOS_snprintf(out + n, size - n, "%s%lld", d ? "," : "", (long long)v->dims[d]);
  }
  size_t n = strlen(out);
  PyOS_snprintf(out + n, size - n, "]");
}

/* -1 with an exception. */
static int fail_result(py_state *st, const xlac_type *t, const xlac_value_info *found, const char *what) {
  char *text = xlac_type_print(t, false), other[128];
  describe_value(found, other, sizeof other);
  py_raise_argument(st, "%s must be %s, but the function gave %s", what, text ? text : "?", other);
  xlac_free(text);
  return -1;
}

/* Copies the arrays of v, of type t, to the memory of the leaves from results[*at] on. Nesting is the type's. */
static int copy_leaves(py_state *st, const xlac_type *t, const xlac_value *v, const char *what, void *const *results,
                       uint32_t *at) {
  assert(t && v && results);
  xlac_type_info type;
  xlac_value_info value;
  xlac_type_get(t, &type);
  xlac_value_get(v, &value);
  if (type.kind == XLAC_TYPE_TUPLE) {
    if (value.n_elements != type.n_elements) return fail_result(st, t, &value, what);
    for (uint32_t i = 0; i < type.n_elements; i++)
      if (copy_leaves(st, xlac_type_element(t, i), xlac_value_element(v, i), what, results, at) < 0) return -1;
    return 0;
  }
  void *target = results[(*at)++];
  if (type.kind != XLAC_TYPE_TENSOR) return 0;
  bool fits = value.kind == XLAC_VALUE_ARRAY && value.dtype == type.dtype && value.rank == type.rank &&
              (type.rank == 0 || memcmp(value.dims, type.dims, type.rank * sizeof *type.dims) == 0);
  if (!fits) return fail_result(st, t, &value, what);
  if (value.bytes) memcpy(target, value.data, value.bytes);
  return 0;
}

/* The function's result, converted to the op's type and copied to where the run wants it: 0, or -1 with an
 * exception. The value lends the function's arrays, so `keep` lives as long as it. */
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

/* With the GIL: 0, or -1 with an exception. */
static int call_function(const py_custom_call *call, const xlac_op *op, uint32_t n, xlac_value *const *operands,
                         void *const *results) {
  assert(call->function);
  PyObject *args = operand_tuple(call->run->st, n, operands);
  PyObject *result = args ? PyObject_CallObject(call->function, args) : NULL;
  int status = result ? take_result(call, op, result, results) : -1;
  Py_XDECREF(args);
  Py_XDECREF(result);
  return status;
}

/* From a thread of the run, mostly without the GIL. The exception stays in run->errors, to become the cause of the
 * run's error: only its text fits into the record. */
static int call_python(void *ctx, const xlac_op *op, uint32_t n_operands, xlac_value *const *operands,
                       uint32_t n_results, void *const *results, xlac_error *err) {
  assert(ctx && err);
  const py_custom_call *call = ctx;
  (void)n_results; /* the op's type says the same */
  xlac_op_info info;
  if (!py_run_visit(call->run)) {
    PyOS_snprintf(err->message, sizeof err->message, "no memory for a thread of Python");
    return -1;
  }
  int status = call_function(call, op, n_operands, operands, results);
  if (status != 0) {
    xlac_op_get(call->run->m, (xlac_op *)(uintptr_t)op, &info);
    py_run_keep_error(call->run, info.name, err);
  }
  py_run_unvisit(call->run);
  return status;
}

/* 0, or -1 with an exception; calls that were begun have a function, which is what py_custom_calls_end goes by.
 * `calls` has one place more than the dictionary has entries. */
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
    if (PyCapsule_IsValid(function, native_name)) {
      if (add_native(function, registry, target, run->st) < 0) return -1;
    } else if (xlac_registry_add(registry, target, call_python, call, &err) != 0) {
      return py_raise(run->st, &err, PY_ANY), -1;
    }
  }
  return 0;
}

/* A registry of this run's own, for functions of Python that belong to it. */
static int begin_own(py_run *run, py_custom_calls *out) {
  assert(out->registry == NULL && out->calls == NULL);
  PyObject *functions = PyDict_Copy(run->st->custom_calls); /* what is registered meanwhile is for later runs */
  xlac_error err = {.code = 0};
  int status = -1;
  if (functions == NULL) return -1;
  if (xlac_registry_create(&out->registry, &err) != 0)
    py_raise(run->st, &err, PY_ANY);
  else if ((out->calls = PyMem_Calloc((size_t)PyDict_GET_SIZE(functions) + 1, sizeof *out->calls)) == NULL)
    PyErr_NoMemory();
  else
    status = add_calls(run, functions, out->registry, out->calls);
  Py_DECREF(functions);
  if (status < 0) py_custom_calls_end(out);
  return status;
}

/* With the GIL, before the run gives it away. Nothing registered costs a look at a dictionary's size. */
int py_custom_calls_begin(py_run *run, py_custom_calls *out) {
  py_state *st = run->st;
  *out = (py_custom_calls){.registry = NULL};
  if (PyDict_GET_SIZE(st->custom_calls) == 0) return 0;
  if (st->native_calls == NULL) {
    if (!all_native(st->custom_calls)) return begin_own(run, out);
    if ((st->native_calls = make_registry(st)) == NULL) return -1;
  }
  out->shared = Py_NewRef(st->native_calls);
  out->registry = PyCapsule_GetPointer(out->shared, native_registry_name);
  return out->registry ? 0 : -1;
}

/* With the GIL, after the run. A shared registry is the capsule's. */
void py_custom_calls_end(py_custom_calls *calls) {
  assert(calls->shared || calls->registry || calls->calls == NULL);
  if (calls->shared == NULL) xlac_registry_destroy(calls->registry);
  for (py_custom_call *call = calls->calls; call && call->function; call++) Py_DECREF(call->function);
  PyMem_Free(calls->calls);
  Py_XDECREF(calls->shared);
}
