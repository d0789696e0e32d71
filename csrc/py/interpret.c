/* xlac.interpret and xlac.run_parallel: arrays in, the reference interpreter without the GIL, arrays out. Also
 * what every run needs that Python code is called from (run.h): polling, the threads that work for it, and its
 * errors. */
#include <time.h>

#include "run.h"

/* --- one run --- */

/* Ctrl-C is heeded within such a time; taking the GIL more often would slow other threads down. */
#define POLL_SECONDS 0.05

/* A clock that nobody sets. */
double py_run_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs signal handlers (Python does so in the main thread only) and the progress callback. True when either raised. */
bool py_run_poll(void *ctx) {
  py_run *run = ctx;
  double now = py_run_now();
  if (now - run->polled < POLL_SECONDS) return false;
  run->polled = now;
  py_run_enter(run);
  bool stop = PyErr_CheckSignals() != 0;
  if (!stop && run->progress) {
    PyObject *result = PyObject_CallFunction(run->progress, "d", now - run->started);
    stop = result == NULL;
    Py_XDECREF(result);
  }
  py_run_leave(run);
  return stop;
}

/* "argument 1 (x)". */
static void name_argument(py_module *module, uint32_t number, xlac_op *param, char *buf, size_t size) {
  assert(param && size > 0);
  xlac_op_info info;
  xlac_op_get(module->m, param, &info);
  PyOS_snprintf(buf, size, "argument %u (%.100s)", number, info.name);
}

/* Values in the types of the entry's parameters; 0, or -1 with an exception. args: the module, then the arrays.
 * What was made is in `values` either way. */
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

/* --- threads that work for a run --- */

/* Whether this is the thread that began the run: it has a thread state already, which others must make. */
static bool run_is_here(const py_run *run) {
  return run->caller == PyThread_get_thread_ident();
}

/* Of the interpreter that began the run: the function that is called belongs to it. */
bool py_run_visit(py_run *run) {
  assert(run->interpreter);
  if (run_is_here(run)) {
    py_run_enter(run);
    return true;
  }
  PyThreadState *own = PyThreadState_New(run->interpreter);
  if (own) PyEval_RestoreThread(own);
  return own != NULL;
}

/* On the same thread as py_run_visit, and with the GIL. */
void py_run_unvisit(py_run *run) {
  if (run_is_here(run)) {
    py_run_leave(run);
    return;
  }
  PyThreadState_Clear(PyThreadState_Get());
  PyThreadState_DeleteCurrent();
}

/* --- errors --- */

/* With the GIL and an exception set, which is taken away. Several calls may fail in one run, on several threads;
 * the run's error names one of them. */
void py_run_keep_error(py_run *run, const char *op, xlac_error *err) {
  assert(op && err);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value && traceback) PyException_SetTraceback(value, traceback);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *s = text ? PyUnicode_AsUTF8(text) : NULL;
  const char *kind = value ? Py_TYPE(value)->tp_name : "an error";
  PyOS_snprintf(err->message, sizeof err->message, "%.100s%s%.400s", kind, s && *s ? ": " : "", s ? s : "");
  Py_XDECREF(text);
  PyErr_Clear();
  PyObject *pair = value ? Py_BuildValue("(sO)", op, value) : NULL;
  if (pair && run->errors == NULL) run->errors = PyList_New(0);
  if (pair && run->errors) (void)PyList_Append(run->errors, pair);
  PyErr_Clear(); /* without memory the error has no cause */
  Py_XDECREF(pair);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

/* The exception of the op that err names. A new reference, or NULL. The list is dropped: the run is over. Names in
 * the record are cut off, and are compared as far as they go. */
static PyObject *run_cause(py_run *run, const xlac_error *err) {
  PyObject *found = NULL;
  for (Py_ssize_t i = 0; run->errors && i < PyList_GET_SIZE(run->errors) && found == NULL; i++) {
    PyObject *pair = PyList_GET_ITEM(run->errors, i);
    const char *op = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 0));
    if (op && strncmp(op, err->op, sizeof err->op - 1) == 0) found = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
  }
  Py_CLEAR(run->errors);
  return found;
}

/* The run's error; what a custom call raised becomes its cause, unless it is one that must not be held up. An
 * exception that is not an Exception (KeyboardInterrupt, SystemExit) comes out as it is. */
PyObject *py_run_raise(py_run *run, const xlac_error *err) {
  PyObject *value = run_cause(run, err);
  if (value && !PyErr_GivenExceptionMatches(value, PyExc_Exception)) {
    PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    Py_DECREF(value);
    return NULL;
  }
  py_raise(run->st, err, PY_ANY);
  if (value) {
    PyObject *outer_type, *outer, *outer_traceback;
    PyErr_Fetch(&outer_type, &outer, &outer_traceback);
    PyErr_NormalizeException(&outer_type, &outer, &outer_traceback);
    PyException_SetCause(outer, value);
    PyErr_Restore(outer_type, outer, outer_traceback);
  }
  return NULL;
}

/* Appends (id, array) to the list for each probed value. 0, or -1 with an exception. The values are the probes'
 * until xlac_probes_get gives a reference, which py_from_value takes over. */
static int give_probes(py_run *run, xlac_probes *probes, PyObject *list) {
  for (uint32_t i = 0; i < xlac_probes_count(probes); i++) {
    const char *id = NULL;
    xlac_value *value = NULL;
    xlac_error err = {.code = 0};
    if (xlac_probes_get(probes, i, &id, &value, &err) != 0) return py_raise(run->st, &err, PY_ANY), -1;
    PyObject *array = py_from_value(run->st, value);
    PyObject *name = array ? PyUnicode_DecodeUTF8(id, (Py_ssize_t)strlen(id), "surrogateescape") : NULL;
    PyObject *pair = name ? PyTuple_Pack(2, name, array) : NULL;
    int status = pair ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    Py_XDECREF(name);
    Py_XDECREF(array);
    if (status < 0) return -1;
  }
  return 0;
}

/* The registry is made and dropped with the GIL; in between, the run takes it only to poll and for custom calls. */
int py_run_begin(py_run *run, xlac_interpret_options *options) {
  assert(run->st && !run->thread);
  if (py_custom_calls_begin(run, &run->calls) < 0) return -1;
  options->interrupted = py_run_poll;
  options->interrupt_ctx = run;
  options->registry = run->calls.registry;
  run->started = run->polled = py_run_now();
  run->caller = PyThread_get_thread_ident();
  run->interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
  py_run_leave(run);
  return 0;
}

int py_run_end(py_run *run, int status, const xlac_error *err) {
  py_run_enter(run);
  py_custom_calls_end(&run->calls);
  if (status != 0) return py_run_raise(run, err), -1;
  Py_CLEAR(run->errors);
  return 0;
}

/* Arrays own the values: nothing of the run is left but they. */
PyObject *py_run_values(py_run *run, xlac_interpret_options *options, py_start_fn *start, void *what, uint32_t n,
                        xlac_value **values) {
  assert(run->st && start);
  xlac_value *result = NULL;
  xlac_error err = {.code = 0};
  if (py_run_begin(run, options) < 0) return NULL;
  int status = start(what, options, n, values, &result, &err);
  return py_run_end(run, status, &err) < 0 ? NULL : py_from_value(run->st, result);
}

/* A py_start_fn for a module. */
static int start_interpreter(void *what, const xlac_interpret_options *options, uint32_t n, xlac_value *const *values,
                             xlac_value **out, xlac_error *err) {
  return xlac_interpret(what, options, n, values, out, err);
}

/* The run, and then what its probes saw, also when it has failed: its error comes first. `list` None: without
 * probes. The exception of the run is kept aside while the list is filled. */
static PyObject *run_probed(py_run *run, xlac_interpret_options *options, uint32_t n, xlac_value **values,
                            PyObject *list) {
  xlac_error err = {.code = 0};
  if (list == Py_None) return py_run_values(run, options, start_interpreter, run->m, n, values);
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "probes must be a list");
  if (xlac_probes_create(&options->probes, &err) != 0) return py_raise(run->st, &err, PY_ANY);
  PyObject *type, *value, *traceback, *result = py_run_values(run, options, start_interpreter, run->m, n, values);
  PyErr_Fetch(&type, &value, &traceback);
  int status = give_probes(run, options->probes, list);
  if (type) PyErr_Restore(type, value, traceback);
  if (status < 0) Py_CLEAR(result);
  xlac_probes_destroy(options->probes);
  return result;
}

/* "eager", "lazy", or the seed of a shuffled order. 0, or -1 with an exception. */
static int read_async_order(PyObject *order, xlac_interpret_options *options) {
  if (PyLong_Check(order)) {
    options->async_order = XLAC_ASYNC_SHUFFLED;
    options->async_seed = PyLong_AsUnsignedLongLongMask(order);
    return PyErr_Occurred() ? -1 : 0;
  }
  if (!PyUnicode_Check(order)) return PyErr_SetString(PyExc_TypeError, "async_order is a string or a number"), -1;
  bool lazy = PyUnicode_CompareWithASCIIString(order, "lazy") == 0;
  options->async_order = lazy ? XLAC_ASYNC_LAZY : XLAC_ASYNC_EAGER;
  if (lazy || PyUnicode_CompareWithASCIIString(order, "eager") == 0) return 0;
  PyErr_Format(PyExc_ValueError, "async_order is \"eager\", \"lazy\" or the seed of a shuffled order, not %R", order);
  return -1;
}

/* 0, or -1 with an exception. Positional arguments are the program's, so an empty tuple stands for them. */
static int parse_options(PyObject *kwargs, xlac_interpret_options *options, PyObject **progress, PyObject **probes) {
  static char *names[] = {"seed", "replica", "partition", "progress", "probes", "blas", "async_order", NULL};
  unsigned long long seed = 0;
  long long replica = 0, partition = 0;
  PyObject *none = PyTuple_New(0);
  if (none == NULL) return -1;
  PyObject *order = NULL;
  int ok = PyArg_ParseTupleAndKeywords(none, kwargs, "|$KLLOOzO:interpret", names, &seed, &replica, &partition,
                                       progress, probes, &options->blas_path, &order);
  Py_DECREF(none);
  options->seed = seed;
  options->replica = replica;
  options->partition = partition;
  if (ok && order && read_async_order(order, options) < 0) return -1;
  return ok ? 0 : -1;
}

/* The module's text is never run through passes here: what is written is what is run. */
PyObject *py_interpret(PyObject *core, PyObject *args, PyObject *kwargs) {
  py_state *st = PyModule_GetState(core);
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options)};
  PyObject *progress = Py_None, *probes = Py_None;
  if (PyTuple_GET_SIZE(args) < 1 || !Py_IS_TYPE(PyTuple_GET_ITEM(args, 0), st->module_type))
    return PyErr_Format(PyExc_TypeError, "interpret needs a Module as its first argument");
  if (parse_options(kwargs, &options, &progress, &probes) < 0) return NULL;
  py_module *module = (py_module *)PyTuple_GET_ITEM(args, 0);
  py_run run = {.st = st, .m = module->m, .progress = progress == Py_None ? NULL : progress};
  uint32_t n = (uint32_t)PyTuple_GET_SIZE(args) - 1;
  xlac_value **values = PyMem_Calloc(n + 1u, sizeof *values);
  PyObject *keep = PyList_New(0), *result = NULL;
  if (values == NULL || keep == NULL)
    PyErr_NoMemory();
  else if (convert_arguments(st, module, args, keep, values) == 0)
    result = run_probed(&run, &options, n, values, probes);
  for (uint32_t i = 0; values && i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
  Py_XDECREF(keep);
  return result ? result : py_show_source(module->source);
}

/* --- several participants --- */

/* Lists of arrays in, one participant each; a list of results out. Everything is freed by parallel_end_call in
 * whatever state. */
typedef struct parallel_call {
  py_state *st;
  py_module *module;
  int64_t replicas, partitions;
  uint32_t n;
  xlac_program *programs;
  xlac_value ***args, ***infeed; /* owned, as the programs have them */
  xlac_value **results, **outfeeds;
  PyObject *keep;
} parallel_call;

/* The computation of that name; without one the entry. NULL where there is none: the run says so. */
static xlac_computation *parallel_computation(xlac_module *m, const char *name) {
  return name == NULL ? xlac_module_entry(m) : xlac_computation_find(m, name);
}

/* One argument of participant i, in the type of its parameter where there is one. 0, or -1 with an exception. */
static int parallel_argument(parallel_call *call, uint32_t i, uint32_t k, PyObject *object) {
  assert(i < call->n);
  xlac_module *m = call->module->m;
  xlac_computation *c = parallel_computation(m, call->programs[i].name);
  xlac_op *param = c ? xlac_computation_param(m, c, k) : NULL;
  xlac_op_info info;
  char what[200];
  if (param == NULL) return py_to_any_value(call->st, object, call->keep, &call->args[i][k]);
  xlac_op_get(m, param, &info);
  PyOS_snprintf(what, sizeof what, "argument %u (%.80s) of participant %u", k, info.name, i);
  return py_to_value(call->st, object, info.type, what, call->keep, &call->args[i][k]);
}

/* Places for the values of a tuple; NULL with an exception. */
static xlac_value **parallel_room(PyObject *tuple) {
  xlac_value **values = PyMem_Calloc((size_t)PyTuple_GET_SIZE(tuple) + 1, sizeof *values);
  if (values == NULL) PyErr_NoMemory();
  return values;
}

/* What a participant runs, and with what: 0, or -1 with an exception. The counts grow value by value, so that on
 * failure just those that exist are released. */
static int parallel_participant(parallel_call *call, uint32_t i, PyObject *args, PyObject *name, PyObject *infeed) {
  assert(i < call->n);
  xlac_program *p = &call->programs[i];
  if (!PyTuple_Check(args) || !PyTuple_Check(infeed)) {
    PyErr_SetString(PyExc_TypeError, "arguments and infeeds of a participant are tuples");
    return -1;
  }
  if (name != Py_None && (p->name = PyUnicode_AsUTF8(name)) == NULL) return -1;
  if ((call->args[i] = parallel_room(args)) == NULL || (call->infeed[i] = parallel_room(infeed)) == NULL) return -1;
  p->args = call->args[i];
  p->infeed = call->infeed[i];
  for (; p->n_args < (uint32_t)PyTuple_GET_SIZE(args); p->n_args++)
    if (parallel_argument(call, i, p->n_args, PyTuple_GET_ITEM(args, p->n_args)) < 0) return -1;
  for (; p->n_infeed < (uint32_t)PyTuple_GET_SIZE(infeed); p->n_infeed++)
    if (py_to_any_value(call->st, PyTuple_GET_ITEM(infeed, p->n_infeed), call->keep, &call->infeed[i][p->n_infeed]) < 0)
      return -1;
  return 0;
}

/* Consumes the values. A list of arrays, or NULL with an exception. */
static PyObject *parallel_list(parallel_call *call, xlac_value **values) {
  assert(values);
  PyObject *list = PyList_New(call->n);
  for (uint32_t i = 0; i < call->n; i++) {
    PyObject *one = list ? py_from_value(call->st, values[i]) : NULL;
    if (list == NULL) xlac_value_release(values[i]);
    values[i] = NULL;
    if (list && one == NULL) Py_CLEAR(list);
    if (list) PyList_SET_ITEM(list, i, one);
  }
  return list;
}

/* The participants are threads of the library's; only this one polls and needs Python. */
static PyObject *parallel_run(parallel_call *call, unsigned long long seed) {
  xlac_error err = {.code = 0};
  py_run run = {.st = call->st, .m = call->module->m};
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = py_run_poll,
                                    .interrupt_ctx = &run, .seed = seed};
  run.started = run.polled = py_run_now();
  py_run_leave(&run);
  int status = xlac_run_parallel(call->module->m, &options, call->replicas, call->partitions, call->programs,
                                 call->results, call->outfeeds, &err);
  py_run_enter(&run);
  if (status != 0) return py_run_raise(&run, &err);
  PyObject *results = parallel_list(call, call->results), *outfeeds = parallel_list(call, call->outfeeds);
  PyObject *both = results && outfeeds ? PyTuple_Pack(2, results, outfeeds) : NULL;
  Py_XDECREF(results);
  Py_XDECREF(outfeeds);
  return both;
}

/* 0, or -1 with an exception. Sizes are compared before they are multiplied. */
static int parallel_begin_call(parallel_call *call, PyObject *args, PyObject *programs, PyObject *infeed) {
  assert(call->programs == NULL && call->keep == NULL);
  Py_ssize_t n = PyList_GET_SIZE(args);
  if (call->replicas < 1 || call->partitions < 1 || n < 1 || n > 65536 || call->replicas > n ||
      call->replicas * call->partitions != n || PyList_GET_SIZE(programs) != n || PyList_GET_SIZE(infeed) != n) {
    PyErr_Format(PyExc_ValueError,
                 "%lld x %lld participants need as many lists of arguments, programs and infeeds; "
                 "found %zd, %zd and %zd",
                 (long long)call->replicas, (long long)call->partitions, n, PyList_GET_SIZE(programs),
                 PyList_GET_SIZE(infeed));
    return -1;
  }
  call->n = (uint32_t)n;
  call->programs = PyMem_Calloc((size_t)n, sizeof *call->programs);
  call->args = PyMem_Calloc((size_t)n, sizeof *call->args);
  call->infeed = PyMem_Calloc((size_t)n, sizeof *call->infeed);
  call->results = PyMem_Calloc((size_t)n, sizeof *call->results);
  call->outfeeds = PyMem_Calloc((size_t)n, sizeof *call->outfeeds);
  call->keep = PyList_New(0);
  if (call->programs && call->args && call->infeed && call->results && call->outfeeds && call->keep) return 0;
  PyErr_NoMemory();
  return -1;
}

/* Places that were not filled are NULL, which is fine. */
static void parallel_release(xlac_value **values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
}

/* Counts in the programs say how many values there are. */
static void parallel_end_call(parallel_call *call) {
  for (uint32_t i = 0; i < call->n; i++) {
    if (call->programs && call->args && call->args[i]) parallel_release(call->args[i], call->programs[i].n_args);
    if (call->programs && call->infeed && call->infeed[i])
      parallel_release(call->infeed[i], call->programs[i].n_infeed);
  }
  PyMem_Free(call->programs);
  PyMem_Free(call->args);
  PyMem_Free(call->infeed);
  PyMem_Free(call->results);
  PyMem_Free(call->outfeeds);
  Py_XDECREF(call->keep);
}

/* The wrapper in Python has made lists of equal length, or this says what is wrong. */
PyObject *py_run_parallel(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"module", "args", "programs", "infeed", "replicas", "partitions", "seed", NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *module, *lists, *programs, *infeed, *result = NULL;
  long long replicas, partitions;
  unsigned long long seed = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!O!LL|$K:run_parallel", names, st->module_type, &module,
                                   &PyList_Type, &lists, &PyList_Type, &programs, &PyList_Type, &infeed, &replicas,
                                   &partitions, &seed))
    return NULL;
  parallel_call call = {.st = st, .module = (py_module *)module, .replicas = replicas, .partitions = partitions};
  int status = parallel_begin_call(&call, lists, programs, infeed);
  for (uint32_t i = 0; i < call.n && status == 0; i++)
    status = parallel_participant(&call, i, PyList_GET_ITEM(lists, i), PyList_GET_ITEM(programs, i),
                                  PyList_GET_ITEM(infeed, i));
  if (status == 0) result = parallel_run(&call, seed);
  parallel_end_call(&call);
  return result;
}
