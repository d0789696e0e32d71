/* xlac.interpret: arrays in, the reference interpreter without the GIL, arrays out. */
#include "py.h"

#include <time.h>

#define POLL_SECONDS 0.05

/* What the interpreter's polls need: the thread state to take the GIL with, and whom to tell about progress. */
typedef struct py_run {
  PyThreadState *thread;
  PyObject *progress; /* called with the seconds run so far, or NULL */
  double started, polled;
} py_run;

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs signal handlers (Python does so in the main thread only) and the progress callback. True when either raised. */
static bool poll_python(void *ctx) {
  py_run *run = ctx;
  double now = now_seconds();
  if (now - run->polled < POLL_SECONDS) return false;
  run->polled = now;
  PyEval_RestoreThread(run->thread);
  bool stop = PyErr_CheckSignals() != 0;
  if (!stop && run->progress) {
    PyObject *result = PyObject_CallFunction(run->progress, "d", now - run->started);
    stop = result == NULL;
    Py_XDECREF(result);
  }
  run->thread = PyEval_SaveThread();
  return stop;
}

/* "argument 1 (x)". */
static void name_argument(py_module *module, uint32_t number, xlac_op *param, char *buf, size_t size) {
  xlac_op_info info;
  xlac_op_get(module->m, param, &info);
  PyOS_snprintf(buf, size, "argument %u (%.100s)", number, info.name);
}

static int convert_arguments(py_state *st, py_module *module, PyObject *args, PyObject *keep, xlac_value **values) {
  xlac_computation *entry = xlac_module_entry(module->m);
  uint32_t n = (uint32_t)PyTuple_GET_SIZE(args) - 1;
  for (uint32_t i = 0; i < n; i++) {
    PyObject *object = PyTuple_GET_ITEM(args, i + 1);
    xlac_op *param = entry ? xlac_computation_param(module->m, entry, i) : NULL;
    char what[160];
    xlac_op_info info;
    int status;
    if (param) {
      name_argument(module, i, param, what, sizeof what);
      xlac_op_get(module->m, param, &info);
      status = py_to_value(st, object, info.type, what, keep, &values[i]);
    } else {
      xlac_error err = {.code = 0};
      status = xlac_value_token(&values[i], &err); /* one too many, whatever it is: the run says so */
      if (status != 0) py_raise(st, &err, PY_ANY);
    }
    if (status) return -1;
  }
  return 0;
}

static PyObject *run_values(py_state *st, py_module *module, xlac_interpret_options *options, PyObject *progress,
                            uint32_t n, xlac_value **values) {
  xlac_error err = {.code = 0};
  xlac_value *result = NULL;
  double now = now_seconds();
  py_run run = {.progress = progress == Py_None ? NULL : progress, .started = now, .polled = now};
  options->interrupted = poll_python;
  options->interrupt_ctx = &run;
  run.thread = PyEval_SaveThread();
  int status = xlac_interpret(module->m, options, n, values, &result, &err);
  PyEval_RestoreThread(run.thread);
  return status == 0 ? py_from_value(st, result) : py_raise(st, &err, PY_ANY);
}

static int parse_options(PyObject *kwargs, xlac_interpret_options *options, PyObject **progress) {
  static char *names[] = {"seed", "replica", "partition", "progress", NULL};
  unsigned long long seed = 0;
  long long replica = 0, partition = 0;
  PyObject *none = PyTuple_New(0);
  if (none == NULL) return -1;
  int ok = PyArg_ParseTupleAndKeywords(none, kwargs, "|$KLLO:interpret", names, &seed, &replica, &partition, progress);
  Py_DECREF(none);
  options->seed = seed;
  options->replica = replica;
  options->partition = partition;
  return ok ? 0 : -1;
}

PyObject *py_interpret(PyObject *core, PyObject *args, PyObject *kwargs) {
  py_state *st = PyModule_GetState(core);
  xlac_interpret_options options = {.seed = 0};
  PyObject *progress = Py_None;
  if (PyTuple_GET_SIZE(args) < 1 || !Py_IS_TYPE(PyTuple_GET_ITEM(args, 0), st->module_type))
    return PyErr_Format(PyExc_TypeError, "interpret needs a Module as its first argument");
  if (parse_options(kwargs, &options, &progress) < 0) return NULL;
  py_module *module = (py_module *)PyTuple_GET_ITEM(args, 0);
  uint32_t n = (uint32_t)PyTuple_GET_SIZE(args) - 1;
  xlac_value **values = PyMem_Calloc(n + 1u, sizeof *values);
  PyObject *keep = PyList_New(0), *result = NULL;
  if (values == NULL || keep == NULL) PyErr_NoMemory();
  else if (convert_arguments(st, module, args, keep, values) == 0)
    result = run_values(st, module, &options, progress, n, values);
  for (uint32_t i = 0; values && i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
  Py_XDECREF(keep);
  return result;
}
