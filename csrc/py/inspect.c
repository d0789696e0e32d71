/* What an executable says of itself, and timelines of its runs. What can be counted from the plan or made of a
 * timeline is Python's (xlac.report, xlac.timeline): here the library's text and numbers go to Python as they are. */
#include "executable.h"

/* --- reports --- */

PY_DELEGATE(executable_explain, "xlac.report", "explain")
PY_DELEGATE(executable_profile, "xlac.report", "profile")
PY_DELEGATE(executable_timeline, "xlac.timeline", "timeline")
PY_DELEGATE(executable_run_async, "xlac.future", "run_async")

/* Attributes that Python works out when first asked; it keeps them in the dict _kept. */
static PyObject *executable_cost(PyObject *object, void *unused) {
  (void)unused;
  return py_delegate("xlac.report", "cost", object, NULL, NULL);
}

/* Bytes by kind, worked out from the plan. */
static PyObject *executable_memory(PyObject *object, void *unused) {
  (void)unused;
  return py_delegate("xlac.report", "memory", object, NULL, NULL);
}

static PyObject *executable_timings(PyObject *object, void *unused) {
  (void)unused;
  return py_delegate("xlac.report", "timings", object, NULL, NULL);
}

static PyObject *executable_cache(PyObject *object, void *unused) {
  (void)unused;
  return PyUnicode_FromString(xlac_executable_cache(((py_executable *)object)->exe));
}

/* [(name, seconds)] of the passes that compilation ran, in order. */
static PyObject *executable_passes(PyObject *object, void *unused) {
  (void)unused;
  const char *name = NULL;
  double seconds = 0;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && xlac_executable_pass(((py_executable *)object)->exe, i, &name, &seconds); i++) {
    PyObject *pair = Py_BuildValue("sd", name, seconds);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* Functions of the library that write a text about an executable. */
typedef int executable_text_fn(const xlac_executable *exe, char **text, size_t *n, xlac_error *err);

/* A str, or NULL with an exception. */
static PyObject *executable_text(PyObject *object, executable_text_fn *fn) {
  assert(fn);
  char *text = NULL;
  size_t n = 0;
  xlac_error err = {.code = 0};
  if (fn(((py_executable *)object)->exe, &text, &n, &err) != 0) return py_raise(py_state_of(object), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

/* JSON that xlac.report counts from. */
static PyObject *executable_report(PyObject *object, PyObject *unused) {
  (void)unused;
  return executable_text(object, xlac_executable_report);
}

/* None, or the exception that says which step is wrong: tests call it for every program. */
static PyObject *executable_check(PyObject *object, PyObject *unused) {
  xlac_error err = {.code = 0};
  (void)unused;
  if (xlac_executable_check(((py_executable *)object)->exe, &err) == 0) Py_RETURN_NONE;
  return py_raise(py_state_of(object), &err, PY_ANY);
}

/* UINT32_MAX: of all of them. */
static PyObject *executable_donation_text(PyObject *object, PyObject *unused) {
  char *text = NULL;
  size_t n = 0;
  xlac_error err = {.code = 0};
  (void)unused;
  if (xlac_executable_explain_donation(((py_executable *)object)->exe, UINT32_MAX, &text, &n, &err) != 0)
    return py_raise(py_state_of(object), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

/* The arguments as a call would get them, but nothing is run or given. */
static PyObject *executable_gifts(PyObject *object, PyObject *args) {
  py_call call = {.options = {XLAC_OPTIONS(xlac_interpret_options)},
                  .args = PySequence_Fast_ITEMS(args),
                  .n = (uint32_t)PyTuple_GET_SIZE(args)};
  return py_gifts_list((py_executable *)object, py_state_of(object), &call);
}

/* A text about each fusion: the library keeps what decided it. */
static PyObject *executable_fusion(PyObject *object, PyObject *unused) {
  (void)unused;
  return executable_text(object, xlac_executable_fusion);
}

/* JSON that xlac.report reads. */
static PyObject *executable_sharding(PyObject *object, PyObject *unused) {
  (void)unused;
  return executable_text(object, xlac_executable_sharding);
}

/* In the language that xlac.kernels reads. */
static PyObject *executable_kernels(PyObject *object, PyObject *unused) {
  (void)unused;
  return executable_text(object, xlac_executable_kernels);
}

/* Bytes with a version and a checksum: xlac.load checks both. */
static PyObject *executable_serialize(PyObject *object, PyObject *unused) {
  (void)unused;
  char *bytes = NULL;
  size_t n = 0;
  xlac_error err = {.code = 0};
  if (xlac_executable_serialize(((py_executable *)object)->exe, &bytes, &n, &err) != 0)
    return py_raise(py_state_of(object), &err, PY_ANY);
  PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
  xlac_free(bytes);
  return result;
}

/* A call by values, with a clock of that kind: (result, JSON), or NULL with an exception. */
static PyObject *executable_run_told(PyObject *object, PyObject *args, PyObject *kwargs, py_clock clock) {
  py_executable *self = (py_executable *)object;
  py_call call = {.options = {XLAC_OPTIONS(xlac_interpret_options)},
                  .args = PySequence_Fast_ITEMS(args),
                  .n = (uint32_t)PyTuple_GET_SIZE(args)};
  char *text = NULL;
  size_t n = 0;
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError,
                        "profile takes the program's arguments by position, repeat and warmup, and nothing else");
  PyObject *result = py_call_profiled(self, &call, clock, &text, &n);
  PyObject *times = result ? py_text(text, (Py_ssize_t)n) : NULL;
  PyObject *both = times ? PyTuple_Pack(2, result, times) : NULL;
  Py_XDECREF(result);
  Py_XDECREF(times);
  return both;
}

static PyObject *executable_run_profile(PyObject *object, PyObject *args, PyObject *kwargs) {
  return executable_run_told(object, args, kwargs, PY_CLOCK_STEPS);
}

static PyObject *executable_run_count(PyObject *object, PyObject *args, PyObject *kwargs) {
  return executable_run_told(object, args, kwargs, PY_CLOCK_NONE);
}

/* For people; _report has the same for programs. */
static PyObject *executable_plan(PyObject *object, PyObject *unused) {
  (void)unused;
  return executable_text(object, xlac_executable_plan);
}

/* Bytes, in the words of xlac.report. */
static PyObject *executable_sizes(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sLsLsLsLsL}", "frame_bytes", (long long)info.frame_bytes, "peak_bytes",
                       (long long)info.peak_bytes, "argument_bytes", (long long)info.argument_bytes, "result_bytes",
                       (long long)info.result_bytes, "constant_bytes", (long long)info.constant_bytes);
}

/* An executable never changes, so neither does what it says of itself. */
static PyObject *executable_kept(PyObject *object, void *unused) {
  py_executable *self = (py_executable *)object;
  (void)unused;
  if (self->kept == NULL) self->kept = PyDict_New();
  return Py_XNewRef(self->kept);
}

/* Seconds of compilation by stage. */
static PyObject *executable_stages(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sdsdsd}", "copy", info.seconds[XLAC_COMPILE_COPY], "passes", info.seconds[XLAC_COMPILE_PASSES],
                       "plan", info.seconds[XLAC_COMPILE_PLAN]);
}

/* Steps by what runs them, and why the interpreter runs the whole program where it does. */
static PyObject *executable_steps(PyObject *object, void *unused) {
  (void)unused;
  xlac_executable_info info;
  xlac_executable_get(((py_executable *)object)->exe, &info);
  return Py_BuildValue("{sIsIsIsIszss}", "all", info.n_steps, "kernels", info.n_kernels, "routines", info.n_routines,
                       "interpreted", info.n_interpreted, "why_interpreted", info.interpreted, "blas", info.blas);
}

PyMethodDef py_executable_methods[] = {
    {"plan", executable_plan, METH_NOARGS, "plan($self)\n--\n\nThe plan as text, a line a step."},
    {"explain", PY_KEYWORDS(executable_explain),
     "explain($self, topic='schedule', *arrays)\n--\n\nWhy the program runs as it does: \"fusion\", \"kernels\", "
     "\"schedule\", \"cost\", \"memory\", \"donation\" or \"sharding\"."},
    {"profile", PY_KEYWORDS(executable_profile),
     "profile($self, *arrays, repeat=1, warmup=0)\n--\n\nRuns with a clock at every step: a Profile"},
    {"timeline", PY_KEYWORDS(executable_timeline),
     "timeline($self, *arrays)\n--\n\nWhat went on when, and on which lane: a Timeline."},
    {"record_timeline", py_executable_record, METH_O,
     "record_timeline($self, on, /)\n--\n\nWhether calls from now on are recorded, for timeline()."},
    {"run_async", PY_KEYWORDS(executable_run_async),
     "run_async($self, *arrays, out=None, **named)\n--\n\nLike a call, but returns a future at once."},
    {"serialize", executable_serialize, METH_NOARGS, "serialize($self)\n--\n\nThe executable as bytes, for xlac.load."},
    {"_repr_html_", py_executable_html, METH_NOARGS, "What it takes and gives, as a table for notebooks"},
    {"_copy_module", py_executable_copy_module, METH_NOARGS, "The program after the passes: a copy"},
    {"_copy_local", py_executable_copy_local, METH_NOARGS, "What each device runs, a copy; None for one device"},
    {"_check", executable_check, METH_NOARGS, "Proves that no step writes over what is still to be read"},
    {"_kernels", executable_kernels, METH_NOARGS, "All kernels as text"},
    {"_donations", executable_donation_text, METH_NOARGS, "What becomes of arguments that are donated"},
    {"_gifts", executable_gifts, METH_VARARGS, "(leaf, parameter, obstacle or None) of each argument that is marked"},
    {"_fusion", executable_fusion, METH_NOARGS, "Why ops are in one kernel or not"},
    {"_call_shards", py_executable_call_shards, METH_VARARGS, "Buffers by device and leaf, in and out"},
    {"_shards", py_executable_shards, METH_NOARGS, "(devices, first here, how many, arguments, results, donations)"},
    {"_sharding", executable_sharding, METH_NOARGS, "What partitioning came to, as JSON"},
    {"_report", executable_report, METH_NOARGS, "The plan as JSON"},
    {"_timeline", PY_KEYWORDS(py_executable_run_timeline), "(result, events as JSON)"},
    {"_profile", PY_KEYWORDS(executable_run_profile), "(result, times of all steps as JSON)"},
    {"_count", PY_KEYWORDS(executable_run_count), "(result, what a call runs as JSON)"},
    {NULL, NULL, 0, NULL},
};

/* In the words of xlac.compile. */
static PyObject *executable_numerics_name(PyObject *self, void *unused) {
  xlac_executable_info info;
  (void)unused;
  xlac_executable_get(((py_executable *)self)->exe, &info);
  return PyUnicode_FromString(info.numerics == XLAC_NUMERICS_FAST ? "fast" : "strict");
}

/* {'argument': leaf, 'result': leaf or None, 'must': bool, 'in_place': bool, 'why': text} each. py_text frees the
 * text, also where it is NULL. */
static PyObject *executable_donations(PyObject *self, void *unused) {
  xlac_donation d;
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list && xlac_executable_donation(((py_executable *)self)->exe, i, &d); i++) {
    PyObject *result = d.result == UINT32_MAX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(d.result);
    char *why = NULL;
    (void)xlac_executable_explain_donation(((py_executable *)self)->exe, i, &why, NULL, NULL);
    PyObject *item =
        Py_BuildValue("{sIsNsOsOsN}", "argument", d.argument, "result", result, "must", d.must ? Py_True : Py_False,
                      "in_place", d.in_place ? Py_True : Py_False, "why", py_text(why, -1));
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

PyGetSetDef py_executable_getset[] = {
    {"cost", executable_cost, NULL, "Flops, elementary functions and bytes of a call, in all and by op", NULL},
    {"memory", executable_memory, NULL, "Bytes: frame, peak, arguments, results, constants; and the plan of the frame",
     NULL},
    {"timings", executable_timings, NULL, "Seconds of compilation, by stage and pass", NULL},
    {"_cache", executable_cache, NULL, "What came of the cache on disk: \"hit\", \"stored\", \"\", or why neither",
     NULL},
    {"donations", executable_donations, NULL,
     "Arguments that may be donated, by leaf, and the results that are computed over them", NULL},
    {"_sizes", executable_sizes, NULL, "Bytes: frame, peak, arguments, results, constants", NULL},
    {"device", py_executable_device, NULL, "The device that runs it: the interpreter where that runs the program whole",
     NULL},
    {"inputs", py_executable_inputs, NULL, "The parameters: names, types, shardings, what becomes of their memory",
     NULL},
    {"outputs", py_executable_outputs, NULL, "The results: names, types, shardings, whose memory they take", NULL},
    {"module", py_executable_module, NULL, "The program that it runs, after the passes", NULL},
    {"__signature__", py_executable_signature, NULL, "For inspect.signature", NULL},
    {"_as_buffers", py_executable_as_buffers, py_executable_set_as_buffers, "Whether results are Buffers", NULL},
    {"_as_shards", py_executable_as_shards, py_executable_set_as_shards, "Whether results are ShardedBuffers", NULL},
    {"_lanes", py_executable_lanes, NULL, "Execution threads that have lanes, and the lanes' threads", NULL},
    {"_recorded", py_executable_recorded, NULL, "The last recorded call's events as JSON, or None", NULL},
    {"_kept", executable_kept, NULL, "A dict for what is worked out once", NULL},
    {"_stages", executable_stages, NULL, "Seconds by stage", NULL},
    {"_passes", executable_passes, NULL, "Seconds by pass, in order", NULL},
    {"numerics", executable_numerics_name, NULL, "\"strict\" or \"fast\"", NULL},
    {"steps", executable_steps, NULL, "Counts of steps by kind, and the BLAS in use", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* --- timelines --- */

/* The names and threads of its lanes. [(name, threads)], in the library's order. */
PyObject *py_executable_lanes(PyObject *object, void *unused) {
  xlac_lane lane;
  PyObject *list = PyList_New(0);
  (void)unused;
  for (uint32_t i = 0; list && xlac_executable_lane(((py_executable *)object)->exe, i, &lane); i++) {
    PyObject *pair = Py_BuildValue("sI", lane.thread, (unsigned int)lane.threads);
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* (result, JSON). */
PyObject *py_executable_run_timeline(PyObject *object, PyObject *args, PyObject *kwargs) {
  py_call call = {.options = {XLAC_OPTIONS(xlac_interpret_options)},
                  .args = PySequence_Fast_ITEMS(args),
                  .n = (uint32_t)PyTuple_GET_SIZE(args)};
  char *text = NULL;
  size_t n = 0;
  if (kwargs && PyDict_GET_SIZE(kwargs))
    return PyErr_Format(PyExc_TypeError, "timeline takes the program's arguments by position, and nothing else");
  PyObject *result = py_call_profiled((py_executable *)object, &call, PY_CLOCK_LANES, &text, &n);
  PyObject *times = result ? py_text(text, (Py_ssize_t)n) : NULL;
  PyObject *both = times ? PyTuple_Pack(2, result, times) : NULL;
  Py_XDECREF(result);
  Py_XDECREF(times);
  return both;
}

/* Recording calls go by values, so that all others need not ask. `planned` is what it was before as soon as
 * recording ends: calls go by leaves again. */
PyObject *py_executable_record(PyObject *object, PyObject *arg) {
  py_executable *self = (py_executable *)object;
  int on = PyObject_IsTrue(arg);
  if (on < 0) return NULL;
  if (on && !self->recording) {
    self->was_planned = self->planned;
    self->planned = false;
  } else if (!on && self->recording) {
    self->planned = self->was_planned;
  }
  self->recording = on != 0;
  Py_RETURN_NONE;
}

/* None before the first recorded call. */
PyObject *py_executable_recorded(PyObject *object, void *unused) {
  py_executable *self = (py_executable *)object;
  (void)unused;
  return Py_NewRef(self->recorded ? self->recorded : Py_None);
}

/* The last call's is kept, in place of the one before; a call that fails leaves that one. */
PyObject *py_call_recorded(py_executable *self, const py_call *call) {
  assert(self->recording);
  char *json = NULL;
  size_t n = 0;
  PyObject *result = py_call_profiled(self, call, PY_CLOCK_LANES, &json, &n);
  PyObject *text = result ? py_text(json, (Py_ssize_t)n) : NULL;
  if (text == NULL) Py_CLEAR(result);
  if (text) Py_XSETREF(self->recorded, text);
  return result;
}
