/* Calls by values. */
#include "executable.h"

typedef struct slow_run {
  const xlac_executable *exe;
  char **json; /* NULL: without a profile */
  py_clock clock;
  size_t *n;
} slow_run;

static int slow_start(void *what, const xlac_interpret_options *options, uint32_t n, xlac_value *const *values,
                      xlac_value **out, xlac_error *err) {
  const slow_run *r = what;
  if (r->json && r->clock == PY_CLOCK_LANES)
    return xlac_executable_timeline(r->exe, options, n, values, out, r->json, r->n, err);
  if (r->json && r->clock == PY_CLOCK_STEPS)
    return xlac_executable_profile(r->exe, options, n, values, out, r->json, r->n, err);
  if (r->json) return xlac_executable_count(r->exe, options, n, values, out, r->json, r->n, err);
  return xlac_executable_run(r->exe, options, n, values, out, err);
}

static int slow_arguments(py_state *st, const py_executable *self, const py_call *call, PyObject *keep,
                          xlac_value **values) {
  for (uint32_t i = 0; i < call->n; i++) {
    const char *name = "";
    const xlac_type *type = xlac_executable_param(self->exe, i, &name);
    char what[160];
    xlac_error err = {.code = 0};
    int status = 0;
    PyOS_snprintf(what, sizeof what, "argument %u (%.100s)", i, name);
    if (type != NULL) {
      status = py_to_value(st, call->args[i], type, what, keep, &values[i]);
    } else if ((status = xlac_value_token(&values[i], &err)) != 0) { /* one too many: the run says so */
      py_raise(st, &err, PY_ANY);
    }
    if (status) return -1;
  }
  return 0;
}

static PyObject *slow_call(py_executable *self, const py_call *call, slow_run *what) {
  py_state *st = py_state_of((PyObject *)self);
  PyObject *result = NULL, *keep = PyList_New(0);
  xlac_value **values = PyMem_Calloc(call->n + 1u, sizeof *values);
  py_run run = {.st = st, .m = xlac_executable_module(self->exe), .progress = call->progress};
  xlac_interpret_options options = call->options;
  if (values == NULL || keep == NULL)
    PyErr_NoMemory();
  else if (slow_arguments(st, self, call, keep, values) == 0)
    result = py_run_values(&run, &options, slow_start, what, call->n, values);
  for (uint32_t i = 0; values && i < call->n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
  Py_XDECREF(keep);
  return result && call->out ? py_out_copy(self, call->out, result) : result;
}

PyObject *py_call_values(py_executable *self, const py_call *call) {
  slow_run what = {.exe = self->exe};
  if (self->recording) return py_call_recorded(self, call);
  return slow_call(self, call, &what);
}

PyObject *py_call_profiled(py_executable *self, const py_call *call, py_clock clock, char **json, size_t *n) {
  slow_run what = {.exe = self->exe, .json = json, .n = n, .clock = clock};
  return slow_call(self, call, &what);
}
