/* The Python types GraphSession and GraphStep, on which python/xlac/graph_session.py builds.
 *
 * A session has the variables of a clustered graph and what is compiled of it; a step is one way to run it, from
 * feeds to fetches. References go from step to session to graph, so that handles die in the opposite order. The
 * library locks a session while a step runs. */
#include <string.h>

#include "clusters.h"
#include "run.h"

/* Whatever locks the session runs without the GIL: a step that runs holds the lock and asks for the GIL. */
#define UNLOCKED(statement)           \
  do {                                \
    Py_BEGIN_ALLOW_THREADS statement; \
    Py_END_ALLOW_THREADS              \
  } while (0)

/* s is NULL only while the object is being made. */
typedef struct py_session {
  PyObject_HEAD xlac_session *s;
  PyObject *clusters;
} py_session;

/* step is NULL only while the object is being made; the counts are those of its names. */
typedef struct py_step {
  PyObject_HEAD xlac_step *step;
  py_session *session;
  uint32_t n_feeds, n_fetches;
} py_step;

static xlac_session *session_of(PyObject *self) {
  return ((py_session *)self)->s;
}

/* The last step is gone, as each has a reference. */
static void session_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  UNLOCKED(xlac_session_destroy(session_of(self)));
  Py_XDECREF(((py_session *)self)->clusters);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* The session's lock is taken for it, hence without the GIL. */
static void step_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  UNLOCKED(xlac_step_destroy(((py_step *)self)->step));
  Py_XDECREF(((py_step *)self)->session);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- sessions --- */

/* On failure the object goes as it is: xlac_session_destroy takes NULL. */
PyObject *py_clusters_session(PyObject *clusters, PyObject *args, PyObject *kwargs) {
  assert(clusters);
  static char *names[] = {"threads", "blas", "no_blas", "numerics", "compile_at_once", "always_defer", "seed", NULL};
  py_state *st = py_state_of(clusters);
  xlac_session_options options = {XLAC_OPTIONS(xlac_session_options), .runtime = st->runtime};
  unsigned int threads = 0, numerics = 0;
  unsigned long long seed = 0;
  int at_once = 0, defer = 0, no_blas = 0;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$IzpIppK:session", names, &threads, &options.blas_path, &no_blas,
                                   &numerics, &at_once, &defer, &seed))
    return NULL;
  options.threads = threads;
  options.no_blas = no_blas;
  options.numerics = (xlac_numerics)numerics;
  options.compile_at_once = at_once;
  options.always_defer = defer;
  options.seed = seed;
  py_session *self = PyObject_New(py_session, st->session_type);
  if (self == NULL) return NULL;
  self->s = NULL;
  self->clusters = Py_NewRef(clusters);
  int status = 0;
  UNLOCKED(status = xlac_session_create(&self->s, py_clusters_handle(clusters), &options, &err));
  if (status != 0) {
    Py_DECREF(self);
    return py_raise(st, &err, PY_ANY);
  }
  return (PyObject *)self;
}

/* Names in the order in which steps met them. The strings live as long as the session; variables come and never
 * go. */
static PyObject *session_names(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  uint32_t n = 0;
  UNLOCKED(n = xlac_session_variable_count(session_of(self)));
  for (uint32_t i = 0; list && i < n; i++) {
    const char *name = NULL;
    xlac_error err = {.code = 0};
    int status = 0;
    UNLOCKED(status = xlac_session_variable(session_of(self), i, &name, NULL, &err));
    if (status != 0) break; /* never: none goes */
    PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "surrogateescape");
    if (text == NULL || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

/* The value of variable number i; None where it has none. A copy: the variable may change the next moment. */
static PyObject *session_get(PyObject *self, PyObject *number) {
  unsigned long i = PyLong_AsUnsignedLong(number);
  const char *name = NULL;
  xlac_value *value = NULL;
  xlac_error err = {.code = 0};
  int status = 0;
  if (i == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  uint32_t k = i > UINT32_MAX ? UINT32_MAX : (uint32_t)i;
  UNLOCKED(status = xlac_session_variable(session_of(self), k, &name, &value, &err));
  if (status != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  return value ? py_from_value(py_state_of(self), value) : Py_NewRef(Py_None);
}

/* The array is borrowed for the call, in which the session copies it. A name that is new makes a variable. */
static PyObject *session_set(PyObject *self, PyObject *args) {
  const char *name = NULL;
  PyObject *object = NULL, *keep = NULL;
  xlac_value *value = NULL;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "sO:set", &name, &object) || (keep = PyList_New(0)) == NULL) return NULL;
  int status = py_to_any_value(py_state_of(self), object, keep, &value);
  if (status == 0) {
    UNLOCKED(status = xlac_session_set_variable(session_of(self), name, value, &err));
    xlac_value_release(value);
    if (status != 0) py_raise(py_state_of(self), &err, PY_ANY);
  }
  Py_DECREF(keep);
  return status == 0 ? Py_NewRef(Py_None) : NULL;
}

/* --- steps --- */

/* The strings of a tuple, borrowed from it; NULL with an exception. */
static const char **strings_of(PyObject *tuple) {
  assert(PyTuple_Check(tuple));
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  const char **list = PyMem_Calloc((size_t)n + 1, sizeof *list);
  if (list == NULL) return (const char **)(void *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < n; i++) {
    list[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i));
    if (list[i] != NULL) continue;
    PyMem_Free((void *)list);
    return NULL;
  }
  return list;
}

/* 0, or -1 with an exception. The names are borrowed for the call, and the session copies what it keeps. */
static int step_fill(py_step *self, PyObject *feeds, PyObject *fetches, PyObject *targets) {
  assert(self->session && self->step == NULL);
  const char **lists[3] = {strings_of(feeds), NULL, NULL};
  xlac_error err = {.code = 0};
  int status = -1;
  if (lists[0]) lists[1] = strings_of(fetches);
  if (lists[1]) lists[2] = strings_of(targets);
  self->n_feeds = (uint32_t)PyTuple_GET_SIZE(feeds);
  self->n_fetches = (uint32_t)PyTuple_GET_SIZE(fetches);
  if (lists[2]) {
    uint32_t n_targets = (uint32_t)PyTuple_GET_SIZE(targets);
    UNLOCKED(status = xlac_step_create(&self->step, self->session->s, self->n_feeds, lists[0], self->n_fetches,
                                       lists[1], n_targets, lists[2], &err));
    if (status != 0) py_raise(py_state_of((PyObject *)self), &err, PY_ANY);
  }
  for (int i = 0; i < 3; i++) PyMem_Free((void *)lists[i]);
  return status == 0 ? 0 : -1;
}

/* Prunes the graph; nothing runs yet. */
static PyObject *session_step(PyObject *session, PyObject *args) {
  PyObject *feeds, *fetches, *targets;
  if (!PyArg_ParseTuple(args, "O!O!O!:step", &PyTuple_Type, &feeds, &PyTuple_Type, &fetches, &PyTuple_Type, &targets))
    return NULL;
  py_step *self = PyObject_New(py_step, py_state_of(session)->step_type);
  if (self == NULL) return NULL;
  self->step = NULL;
  self->session = (py_session *)Py_NewRef(session);
  if (step_fill(self, feeds, fetches, targets) < 0) Py_CLEAR(self);
  return (PyObject *)self;
}

/* What the Python side converts arrays to, before it calls run. */
static PyObject *step_feeds(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  const char *name = NULL;
  uint32_t dtype = 0;
  for (uint32_t i = 0; list && xlac_step_feed(((py_step *)self)->step, i, &name, &dtype); i++) {
    PyObject *pair = Py_BuildValue("(sN)", name, py_descr(py_state_of(self), dtype));
    if (pair == NULL || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* 0, or -1 with an exception. Without the GIL; the run polls for Ctrl-C, and other threads may wait for the
 * session's lock meanwhile. */
static int step_run_values(py_step *self, xlac_value **args, xlac_value **results) {
  assert(self->step && args && results);
  py_run run = {.st = py_state_of((PyObject *)self)};
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = py_run_poll,
                                    .interrupt_ctx = &run};
  xlac_error err = {.code = 0};
  run.started = run.polled = py_run_now();
  run.caller = PyThread_get_thread_ident();
  run.interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
  py_run_leave(&run);
  int status = xlac_step_run(self->step, &options, args, results, &err);
  py_run_enter(&run);
  if (status == 0) return 0;
  py_run_raise(&run, &err);
  return -1;
}

/* Releases what is left of the results. A tuple of arrays; NULL with an exception. Each value goes over to its
 * array. */
static PyObject *step_give(py_step *self, xlac_value **results) {
  assert(results);
  PyObject *tuple = PyTuple_New(self->n_fetches);
  for (uint32_t i = 0; i < self->n_fetches; i++) {
    if (tuple == NULL) {
      xlac_value_release(results[i]);
      continue;
    }
    PyObject *array = py_from_value(py_state_of((PyObject *)self), results[i]);
    if (array == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, array);
  }
  return tuple;
}

/* Arguments and results lie in one array, arguments first. Arrays are borrowed until the run is over. */
static PyObject *step_run(PyObject *object, PyObject *args) {
  py_step *self = (py_step *)object;
  uint32_t n = self->n_feeds, done = 0;
  if (!PyTuple_Check(args) || PyTuple_GET_SIZE(args) != (Py_ssize_t)n)
    return PyErr_Format(PyExc_TypeError, "run takes a tuple of %u arrays", n);
  xlac_value **values = PyMem_Calloc((size_t)n + self->n_fetches + 1, sizeof *values);
  PyObject *keep = PyList_New(0), *result = NULL;
  if (values == NULL) PyErr_NoMemory();
  while (values && keep && done < n &&
         py_to_any_value(py_state_of(object), PyTuple_GET_ITEM(args, done), keep, &values[done]) == 0)
    done++;
  if (values && keep && done == n && step_run_values(self, values, values + n) == 0)
    result = step_give(self, values + n);
  for (uint32_t i = 0; i < done; i++) xlac_value_release(values[i]);
  PyMem_Free(values);
  Py_XDECREF(keep);
  return result;
}

/* JSON, by cluster and node. */
static PyObject *step_report(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (xlac_step_report(((py_step *)self)->step, &text, &n, &err) != 0) return py_raise(py_state_of(self), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

/* --- types --- */

/* What Python sees of sessions. */
static PyMethodDef session_methods[] = {
    {"names", session_names, METH_NOARGS, "the names of the variables, by number"},
    {"get", session_get, METH_O, "get(number): a copy of a variable's value; None where it has none"},
    {"set", session_set, METH_VARARGS, "set(name, array): a variable's value, copied"},
    {"step", session_step, METH_VARARGS, "step(feeds, fetches, targets): tuples of names to a GraphStep"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot session_slots[] = {
    {Py_tp_dealloc, (void *)session_dealloc},
    {Py_tp_methods, session_methods},
    {Py_tp_doc, "The variables of a clustered graph, and what is compiled of it. Use it through Clusters."},
    {0, NULL},
};
PyType_Spec py_session_spec = {
    .name = "xlac._core.GraphSession",
    .basicsize = sizeof(py_session),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = session_slots,
};

/* What Python sees of steps. */
static PyMethodDef step_methods[] = {
    {"feeds", step_feeds, METH_NOARGS, "[(name, NumPy dtype)]"},
    {"run", step_run, METH_O, "run(arrays): a tuple of arrays in the order of feeds to one in that of fetches"},
    {"report", step_report, METH_NOARGS, "what was run, compiled and fallen back, as JSON"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot step_slots[] = {
    {Py_tp_dealloc, (void *)step_dealloc},
    {Py_tp_methods, step_methods},
    {Py_tp_doc, "One way to run a clustered graph. Use it through Clusters.executable."},
    {0, NULL},
};
PyType_Spec py_step_spec = {
    .name = "xlac._core.GraphStep",
    .basicsize = sizeof(py_step),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = step_slots,
};
