/* xlac.Executable: arrays in, a compiled program without the GIL, arrays out. */
#include "run.h"

typedef struct py_executable {
  PyObject_HEAD xlac_executable *exe;
} py_executable;

static int executable_start(void *what, const xlac_interpret_options *options, uint32_t n, xlac_value *const *values,
                            xlac_value **out, xlac_error *err) {
  return xlac_executable_run(what, options, n, values, out, err);
}

static int executable_arguments(py_state *st, const py_executable *self, PyObject *args, PyObject *keep,
                                xlac_value **values) {
  for (uint32_t i = 0; i < (uint32_t)PyTuple_GET_SIZE(args); i++) {
    const char *name = "";
    const xlac_type *type = xlac_executable_param(self->exe, i, &name);
    char what[160];
    xlac_error err = {.code = 0};
    int status = 0;
    PyOS_snprintf(what, sizeof what, "argument %u (%.100s)", i, name);
    if (type != NULL) {
      status = py_to_value(st, PyTuple_GET_ITEM(args, i), type, what, keep, &values[i]);
    } else if ((status = xlac_value_token(&values[i], &err)) != 0) { /* one too many: the run says so */
      py_raise(st, &err, PY_ANY);
    }
    if (status) return -1;
  }
  return 0;
}

static int executable_options(PyObject *kwargs, xlac_interpret_options *options, PyObject **progress) {
  static char *names[] = {"seed", "replica", "partition", "progress", NULL};
  unsigned long long seed = 0;
  long long replica = 0, partition = 0;
  PyObject *none = PyTuple_New(0);
  if (none == NULL) return -1;
  int ok = PyArg_ParseTupleAndKeywords(none, kwargs, "|$KLLO:Executable", names, &seed, &replica, &partition, progress);
  Py_DECREF(none);
  options->seed = seed;
  options->replica = replica;
  options->partition = partition;
  return ok ? 0 : -1;
}

static PyObject *executable_call(PyObject *object, PyObject *args, PyObject *kwargs) {
  py_executable *self = (py_executable *)object;
  py_state *st = py_state_of(object);
  xlac_interpret_options options = {.seed = 0};
  PyObject *progress = Py_None, *result = NULL;
  if (kwargs != NULL && executable_options(kwargs, &options, &progress) < 0) return NULL;
  py_run run = {.st = st, .m = xlac_executable_module(self->exe), .progress = progress == Py_None ? NULL : progress};
  uint32_t n = (uint32_t)PyTuple_GET_SIZE(args);
  xlac_value **values = PyMem_Calloc(n + 1u, sizeof *values);
  PyObject *keep = PyList_New(0);
  if (values == NULL || keep == NULL)
    PyErr_NoMemory();
  else if (executable_arguments(st, self, args, keep, values) == 0)
    result = py_run_values(&run, &options, executable_start, self->exe, n, values);
  for (uint32_t i = 0; values && i < n; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
  Py_XDECREF(keep);
  return result;
}

static void executable_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  xlac_executable_destroy(((py_executable *)object)->exe);
  type->tp_free(object);
  Py_DECREF(type);
}

static PyObject *executable_plan(PyObject *object, PyObject *unused) {
  (void)unused;
  char *text = NULL;
  size_t n = 0;
  xlac_error err = {.code = 0};
  if (xlac_executable_plan(((py_executable *)object)->exe, &text, &n, &err) != 0)
    return py_raise(py_state_of(object), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

static PyObject *executable_memory(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sLsLsLsLsL}", "frame_bytes", (long long)info.frame_bytes, "peak_bytes",
                       (long long)info.peak_bytes, "argument_bytes", (long long)info.argument_bytes, "result_bytes",
                       (long long)info.result_bytes, "constant_bytes", (long long)info.constant_bytes);
}

static PyObject *executable_timings(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sdsdsd}", "copy", info.seconds[XLAC_COMPILE_COPY], "passes", info.seconds[XLAC_COMPILE_PASSES],
                       "plan", info.seconds[XLAC_COMPILE_PLAN]);
}

static PyObject *executable_steps(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sIsIsIsIszss}", "all", info.n_steps, "kernels", info.n_kernels, "routines", info.n_routines,
                       "interpreted", info.n_interpreted, "why_interpreted", info.interpreted, "blas", info.blas);
}

static PyObject *executable_repr(PyObject *object) {
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  if (info.interpreted) return PyUnicode_FromFormat("<xlac.Executable: interpreted, since %s>", info.interpreted);
  return PyUnicode_FromFormat("<xlac.Executable: %u steps, %u of them kernels, %u dots, %u interpreted>", info.n_steps,
                              info.n_kernels, info.n_routines, info.n_interpreted);
}

static PyMethodDef executable_methods[] = {
    {"plan", executable_plan, METH_NOARGS, "The plan as text, a line a step"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef executable_getset[] = {
    {"memory", executable_memory, NULL, "Bytes: frame, peak, arguments, results, constants", NULL},
    {"timings", executable_timings, NULL, "Seconds of compilation, by stage", NULL},
    {"steps", executable_steps, NULL, "Counts of steps by kind, and the BLAS in use", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot executable_slots[] = {
    {Py_tp_dealloc, (void *)executable_dealloc},
    {Py_tp_call, (void *)executable_call},
    {Py_tp_repr, (void *)executable_repr},
    {Py_tp_methods, executable_methods},
    {Py_tp_getset, executable_getset},
    {Py_tp_doc, "A compiled program: call it with arrays. Made by xlac.compile."},
    {0, NULL},
};

PyType_Spec py_executable_spec = {
    .name = "xlac.Executable",
    .basicsize = sizeof(py_executable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = executable_slots,
};

static PyObject *executable_wrap(py_state *st, xlac_executable *exe) {
  py_executable *self = PyObject_New(py_executable, st->executable_type);
  if (self == NULL) {
    xlac_executable_destroy(exe);
    return NULL;
  }
  self->exe = exe;
  return (PyObject *)self;
}

PyObject *py_compile(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"module", "threads", "blas", "use_blas", "fuse", "passes", NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *module;
  xlac_compile_options options = {.threads = 0};
  xlac_error err = {.code = 0};
  xlac_executable *exe = NULL;
  unsigned int threads = 0;
  int blas = 1, fuse = 1, passes = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$Izppp:compile", names, st->module_type, &module, &threads,
                                   &options.blas_path, &blas, &fuse, &passes))
    return NULL;
  options.threads = threads;
  options.no_blas = !blas;
  options.no_fusion = !fuse;
  options.no_passes = !passes;
  PyThreadState *thread = PyEval_SaveThread();
  int status = xlac_compile(((py_module *)module)->m, &options, &exe, &err);
  PyEval_RestoreThread(thread);
  return status == 0 ? executable_wrap(st, exe) : py_raise(st, &err, PY_ANY);
}
