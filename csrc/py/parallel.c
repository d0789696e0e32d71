/* xlac.run_parallel: lists of arrays in, one participant each; a list of results out. */
#include "run.h"

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

static xlac_computation *parallel_computation(xlac_module *m, const char *name) {
  return name == NULL ? xlac_module_entry(m) : xlac_computation_find(m, name);
}

/* One argument of participant i, in the type of its parameter where there is one. */
static int parallel_argument(parallel_call *call, uint32_t i, uint32_t k, PyObject *object) {
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

static xlac_value **parallel_room(PyObject *tuple) {
  xlac_value **values = PyMem_Calloc((size_t)PyTuple_GET_SIZE(tuple) + 1, sizeof *values);
  if (values == NULL) PyErr_NoMemory();
  return values;
}

static int parallel_participant(parallel_call *call, uint32_t i, PyObject *args, PyObject *name, PyObject *infeed) {
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

/* Consumes the values. */
static PyObject *parallel_list(parallel_call *call, xlac_value **values) {
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

static int parallel_begin_call(parallel_call *call, PyObject *args, PyObject *programs, PyObject *infeed) {
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

static void parallel_release(xlac_value **values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
}

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
