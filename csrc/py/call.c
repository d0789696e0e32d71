/* Calls of an executable. Arrays that are what the program wants go to it as stored, and results are written
 * where the caller gets them: a call allocates nothing else. All other arguments are converted first.
 *
 * A call goes by leaves (call_by_leaves): pointers to the arrays of the arguments, and to those of the results.
 * Where an argument does not fit its parameter, it goes by values instead (py_call_values), the way that the
 * interpreter takes, whose errors name the argument: a call that fails may be slow. A status of 1 means "by
 * values" throughout. */
#include "executable.h"
#include "buffer.h"

/* --- calls by values --- */

/* What slow_start needs: what to run, and what is to be told of it. */
typedef struct slow_run {
  const xlac_executable *exe;
  char **json; /* NULL: without a profile */
  py_clock clock;
  size_t *n;
} slow_run;

/* A py_start_fn: runs without the GIL, so it touches nothing of Python's. */
static int slow_start(void *what, const xlac_interpret_options *options, uint32_t n, xlac_value *const *values,
                      xlac_value **out, xlac_error *err) {
  assert(what);
  const slow_run *r = what;
  if (r->json && r->clock == PY_CLOCK_LANES)
    return xlac_executable_timeline(r->exe, options, n, values, out, r->json, r->n, err);
  if (r->json && r->clock == PY_CLOCK_STEPS)
    return xlac_executable_profile(r->exe, options, n, values, out, r->json, r->n, err);
  if (r->json) return xlac_executable_count(r->exe, options, n, values, out, r->json, r->n, err);
  return xlac_executable_run(r->exe, options, n, values, out, err);
}

/* Values of the arguments, in the types of their parameters; -1 with an exception. Those made so far are in
 * `values` either way, for the caller to release. */
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

/* With out=, the results are made first and then copied to where the caller wants them: what goes by values has no
 * place to be written to. */
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
  assert(self->exe);
  slow_run what = {.exe = self->exe};
  if (self->recording) return py_call_recorded(self, call);
  return slow_call(self, call, &what);
}

PyObject *py_call_profiled(py_executable *self, const py_call *call, py_clock clock, char **json, size_t *n) {
  assert(self->exe && json && n);
  slow_run what = {.exe = self->exe, .json = json, .n = n, .clock = clock};
  return slow_call(self, call, &what);
}

/* --- calls by arrays --- */

/* Pointers for so many arrays lie on the stack, for more they are allocated. */
enum { CALL_FEW = 24 };

/* --- arguments by position and name --- */

/* 1: it was one of the options of a call; 0: it is a parameter's name, if anything; -1 with an exception. */
static int call_option(py_call *call, PyObject *name, PyObject *value) {
  assert(PyUnicode_Check(name));
  if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
    call->out = value == Py_None ? NULL : value;
  } else if (PyUnicode_CompareWithASCIIString(name, "seed") == 0) {
    call->options.seed = PyLong_AsUnsignedLongLongMask(value);
  } else if (PyUnicode_CompareWithASCIIString(name, "replica") == 0) {
    call->options.replica = PyLong_AsLongLong(value);
  } else if (PyUnicode_CompareWithASCIIString(name, "partition") == 0) {
    call->options.partition = PyLong_AsLongLong(value);
  } else if (PyUnicode_CompareWithASCIIString(name, "progress") == 0) {
    call->progress = value == Py_None ? NULL : value;
  } else if (PyUnicode_CompareWithASCIIString(name, "donate") == 0) {
    call->required = value != Py_None;
    if (call->required && (!PyUnicode_Check(value) || PyUnicode_CompareWithASCIIString(value, "require") != 0))
      PyErr_Format(PyExc_ValueError,
                   "donate is \"require\" or None, not %R; single arguments are marked by "
                   "xlac.donate(x)",
                   value);
  } else {
    return 0;
  }
  return PyErr_Occurred() ? -1 : 1;
}

/* Puts the argument where its parameter's number says; -1 with an exception. */
static int call_named(const py_executable *self, PyObject *name, PyObject *value, PyObject **room) {
  PyObject *number = PyDict_GetItemWithError(self->numbers, name);
  if (number == NULL && PyErr_Occurred()) return -1;
  if (number == NULL || number == Py_None) {
    PyErr_Format(PyExc_TypeError, "the program has %s parameter %R; its parameters are %R",
                 number ? "more than one" : "no", name, self->names);
    return -1;
  }
  long i = PyLong_AsLong(number);
  if (room[i]) {
    PyErr_Format(PyExc_TypeError, "argument %U is given twice", name);
    return -1;
  }
  room[i] = value;
  return 0;
}

/* Options may stand between arguments; `room` is filled only when the first name comes that is not an option, so that
 * a call with a seed alone copies nothing. Where there are too many arguments, the run by values says so, unless
 * some are named as well. */
int py_call_parse(const py_executable *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **room,
                  py_call *call) {
  assert(kwnames && PyTuple_Check(kwnames));
  bool named = false;
  *call = (py_call){.options = {XLAC_OPTIONS(xlac_interpret_options)}, .args = args, .n = (uint32_t)n};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i);
    int option = call_option(call, name, args[n + i]);
    if (option < 0) return -1;
    if (option) continue;
    if (!named && n <= (Py_ssize_t)self->n_params) {
      for (uint32_t k = 0; k < self->n_params; k++) room[k] = k < (uint32_t)n ? args[k] : NULL;
      named = true;
    }
    if (!named) {
      PyErr_Format(PyExc_TypeError, "%zd arguments for %u parameters, and %R as well", n, self->n_params, name);
      return -1;
    }
    if (call_named(self, name, args[n + i], room) < 0) return -1;
  }
  if (!named) return 0;
  for (uint32_t i = 0; i < self->n_params; i++)
    if (room[i] == NULL) {
      PyErr_Format(PyExc_TypeError, "argument %U is missing", PyTuple_GET_ITEM(self->names, i));
      return -1;
    }
  call->args = room;
  call->n = self->n_params;
  return 0;
}

/* --- arguments as pointers --- */

/* What had to be converted, alive until the run is over. */
typedef struct call_kept {
  PyObject *list;
  xlac_value **values;
  uint32_t n;
} call_kept;

/* One call on its way by leaves. The arrays of pointers are the caller's; what `kept`, `gifts`, `at` and `opened`
 * have is released at the end of call_by_leaves, in whatever state the call is left. */
typedef struct call_state {
  const py_executable *self;
  py_state *st;
  void **numpy;
  void **arguments, **results;
  call_kept kept;
  py_gifts gifts;
  const py_call *call;
  xlac_argument *at;    /* where some argument has strides, or is donated for temporaries; else NULL */
  xlac_buffer **opened; /* by leaf: Buffers that are borrowed, or NULL */
  bool started;
} call_state;

/* The array's memory if it is just what the leaf wants. NULL where it is not. Types are compared by NumPy's number
 * and not by ==, since equal dtypes may be several objects; the pointer is compared first because it mostly is the
 * same. */
static void *call_lent(const py_leaf *leaf, PyObject *object, void **numpy) {
  if (!PyArray_Check(object) || leaf->descr == NULL) return NULL;
  if (!PyArray_CheckExact(object) && py_is_masked(object)) return NULL; /* which its conversion refuses */
  PyArrayObject *a = (PyArrayObject *)object;
  PyArray_Descr *d = PyArray_DESCR(a);
  if (d != leaf->descr && (d->type_num != leaf->descr->type_num || !PyArray_ISNBO(d->byteorder))) return NULL;
  if (!PyArray_ISCARRAY_RO(a) || PyArray_NDIM(a) != leaf->rank) return NULL;
  const npy_intp *dims = PyArray_DIMS(a);
  for (int i = 0; i < leaf->rank; i++)
    if (dims[i] != leaf->dims[i]) return NULL;
  return PyArray_DATA(a);
}

/* Whether these dimensions are the leaf's. */
static bool call_matches(const py_leaf *leaf, int rank, const npy_intp *dims) {
  bool same = rank == leaf->rank;
  for (int i = 0; i < rank && same; i++) same = dims[i] == leaf->dims[i];
  return same;
}

/* Notes that the argument has strides, or may be written to. The array of places is made with the first of them,
 * so that most calls need none. */
static int call_place(call_state *s, uint32_t leaf, const npy_intp *strides, bool given) {
  assert(leaf < s->self->n_arguments);
  _Static_assert(sizeof(npy_intp) == sizeof(int64_t), "strides are taken as they are");
  if (s->at == NULL && (s->at = PyMem_Calloc(s->self->n_arguments, sizeof *s->at)) == NULL) return PyErr_NoMemory(), -1;
  s->at[leaf].strides = (const int64_t *)strides;
  s->at[leaf].given = given;
  return 0;
}

/* An array with strides, which is read in place. 1 where it must be converted. Who also writes arrays of the
 * caller's has it simpler with a copy. An empty array is converted: its strides may be anything. */
static int call_strided(call_state *s, uint32_t leaf, PyObject *object) {
  assert(leaf < s->self->n_arguments);
  const py_leaf *want = &s->self->leaves[leaf];
  void **numpy = s->numpy;
  if (!PyArray_Check(object) || want->descr == NULL || s->call->out) return 1;
  if (!PyArray_CheckExact(object) && py_is_masked(object)) return 1;
  PyArrayObject *a = (PyArrayObject *)object;
  PyArray_Descr *d = PyArray_DESCR(a);
  if (d->type_num != want->descr->type_num || !PyArray_ISNBO(d->byteorder) || !PyArray_ISALIGNED(a)) return 1;
  if (!call_matches(want, PyArray_NDIM(a), PyArray_DIMS(a)) || PyArray_SIZE(a) == 0) return 1;
  s->arguments[leaf] = PyArray_DATA(a);
  return call_place(s, leaf, PyArray_STRIDES(a), false);
}

/* A Buffer, which is borrowed until the call is over. 1 where it must be converted. It is opened before it is looked
 * at, so that no other thread can donate it in between; call_by_leaves closes it, also where it is then converted. */
static int call_buffer(call_state *s, uint32_t leaf, PyObject *object) {
  assert(leaf < s->self->n_arguments && py_is_buffer(s->st, object));
  const py_leaf *want = &s->self->leaves[leaf];
  xlac_buffer *b = ((py_buffer *)object)->b;
  xlac_buffer_info info;
  xlac_type_info type;
  xlac_error err = {.code = 0};
  if (want->descr == NULL) return 1;
  if (s->opened == NULL && (s->opened = PyMem_Calloc(s->self->n_arguments, sizeof *s->opened)) == NULL)
    return PyErr_NoMemory(), -1;
  if (xlac_buffer_open(b, &err) != 0) return py_raise(s->st, &err, PY_ANY), -1;
  s->opened[leaf] = b;
  xlac_buffer_get(b, &info);
  xlac_type_get(want->type, &type);
  if (info.dtype != type.dtype || !call_matches(want, (int)info.rank, (const npy_intp *)info.dims)) return 1;
  if (!info.aligned || (!info.dense && s->call->out)) return 1;
  if (info.device && (info.device != xlac_executable_memory(s->self->exe) || !info.dense)) return 1;
  s->arguments[leaf] = info.data;
  return info.dense ? 0 : call_place(s, leaf, (const npy_intp *)info.strides, false);
}

/* Whether a value that was converted is of just the leaf's type: conversion takes the element type from the
 * parameter, but no shape. */
static bool call_fits(const py_leaf *leaf, const xlac_value *v) {
  xlac_value_info info;
  xlac_type_info type;
  xlac_value_get(v, &info);
  xlac_type_get(leaf->type, &type);
  if (info.kind != XLAC_VALUE_ARRAY || info.dtype != type.dtype || info.rank != type.rank) return false;
  for (uint32_t i = 0; i < info.rank; i++)
    if (info.dims[i] != type.dims[i]) return false;
  return true;
}

/* Any other object. 1 where it does not fit: the slow call says why. The value goes to `kept` at once, whether it
 * fits or not, so that it is released in any case. */
static int call_convert(call_state *s, uint32_t leaf, uint32_t param, PyObject *object) {
  assert(leaf < s->self->n_arguments && param < s->self->n_params);
  char what[160];
  call_kept *kept = &s->kept;
  if (kept->list == NULL && (kept->list = PyList_New(0)) == NULL) return -1;
  if (kept->values == NULL && (kept->values = PyMem_Calloc(s->self->n_arguments, sizeof *kept->values)) == NULL)
    return PyErr_NoMemory(), -1;
  PyObject *name = PyTuple_GET_ITEM(s->self->names, param);
  PyOS_snprintf(what, sizeof what, "argument %u (%.100s)", param, PyUnicode_AsUTF8(name));
  xlac_value *v = NULL;
  if (py_to_value(s->st, object, s->self->leaves[leaf].type, what, kept->list, &v) < 0) return -1;
  kept->values[kept->n++] = v;
  if (!call_fits(&s->self->leaves[leaf], v)) return 1;
  xlac_value_info info;
  xlac_value_get(v, &info);
  s->arguments[leaf] = (void *)(uintptr_t)info.data;
  return 0;
}

/* Nesting is that of a type, which is bounded. `inside` a tuple nothing is converted: it goes by values as a
 * whole. Elements of a list are kept, since other threads may take them out of it while the program runs; a tuple
 * keeps its own. */
static int call_argument(call_state *s, uint32_t param, PyObject *object, bool inside, uint32_t *node, uint32_t *leaf) {
  int32_t kind = s->self->nodes[(*node)++];
  if (kind == PY_NODE_ARRAY) {
    uint32_t i = (*leaf)++;
    if (Py_IS_TYPE(object, s->st->donation_type)) {
      object = ((py_donation *)object)->value;
      if (!s->gifts.checked && py_gifts_check(s->self, s->st, s->call) < 0) return -1;
      s->gifts.checked = true;
      bool spare = false;
      int status = py_give(s->self, s->st, &s->gifts, i, param, object, &s->arguments[i], &spare);
      if (status == 0 && spare) status = call_place(s, i, NULL, true);
      if (status <= 0) return status;
    }
    s->arguments[i] = call_lent(&s->self->leaves[i], object, s->numpy);
    if (s->arguments[i]) return 0;
    int status = py_is_buffer(s->st, object) ? call_buffer(s, i, object) : call_strided(s, i, object);
    return status != 1 ? status : inside ? 1 : call_convert(s, i, param, object);
  }
  if (kind == PY_NODE_TOKEN) {
    s->arguments[(*leaf)++] = NULL;
    return object != Py_None;
  }
  bool list = PyList_Check(object);
  if ((!PyTuple_Check(object) && !list) || PySequence_Fast_GET_SIZE(object) != kind) return 1;
  for (int32_t i = 0; i < kind; i++) {
    if (list && PyList_GET_SIZE(object) != kind) return 1; /* somebody is changing it */
    PyObject *element = Py_NewRef(PySequence_Fast_GET_ITEM(object, i));
    int status = call_argument(s, param, element, true, node, leaf);
    if (status == 0 && list && s->kept.list == NULL) s->kept.list = PyList_New(0);
    if (status == 0 && list && (s->kept.list == NULL || PyList_Append(s->kept.list, element) < 0)) status = -1;
    Py_DECREF(element);
    if (status) return status;
  }
  return 0;
}

/* The nodes of all parameters follow one another, and so do the leaves; both counters just go on. */
static int call_arguments(call_state *s, const py_call *call) {
  assert(call->n == s->self->n_params);
  uint32_t node = 0, leaf = 0;
  for (uint32_t i = 0; i < call->n; i++) {
    int status = call_argument(s, i, call->args[i], false, &node, &leaf);
    if (status) return status;
  }
  return 0;
}

/* Only after the run: the arrays that were made for arguments die here. */
static void call_forget(call_kept *kept) {
  for (uint32_t i = 0; i < kept->n; i++) xlac_value_release(kept->values[i]);
  PyMem_Free(kept->values);
  Py_XDECREF(kept->list);
}

/* --- the run --- */

/* Nothing of Python's: it goes without the GIL. `at` is there where some argument is more than a pointer; then all of
 * them go that way. */
static int call_start(const call_state *s, const xlac_interpret_options *options, xlac_error *err) {
  const py_executable *self = s->self;
  if (s->at == NULL) return xlac_executable_call(self->exe, options, s->arguments, s->results, err);
  for (uint32_t i = 0; i < self->n_arguments; i++) s->at[i].data = s->arguments[i];
  return xlac_executable_call_at(self->exe, options, s->at, s->results, err);
}

/* Without the GIL where it may last. A quick program keeps the GIL, since giving it away would cost about as much
 * as the run; it can be neither interrupted nor watched. Programs with loops and custom calls are never quick, so
 * no registry is needed. The error record is not cleared as a whole: it has kilobytes. */
static int call_run(const call_state *s, py_call *call) {
  xlac_error err;
  err.code = 0;
  err.op[0] = 0;
  if (s->self->quick && call->progress == NULL) {
    if (call_start(s, &call->options, &err) == 0) return 0;
    return py_raise(s->st, &err, PY_ANY), -1;
  }
  py_run run = {.st = s->st, .m = xlac_executable_module(s->self->exe), .progress = call->progress};
  if (py_run_begin(&run, &call->options) < 0) return -1;
  return py_run_end(&run, call_start(s, &call->options, &err), &err);
}

/* An array for a result can't be made: where memory is what is missing, the error says for what. -1 with an
 * exception, the one that is set or a better one. */
static int call_no_memory(const py_executable *self, py_state *st) {
  assert(PyErr_Occurred());
  xlac_error err = {.code = 0};
  if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
  PyErr_Clear();
  (void)xlac_executable_out_of_memory(self->exe, &err);
  return py_raise(st, &err, PY_ANY), -1;
}

/* Arrays for the results: those of `out`, new ones for the rest. `arrays` has then a new reference for each result
 * that is an array. Arguments that are donated come before new ones, so that memory is really used again. */
static int call_results(call_state *s, const py_call *call, PyObject **arrays) {
  const py_executable *self = s->self;
  if (call->out && py_out_take(self, call->out, arrays) < 0) return -1;
  if (s->gifts.n && py_gifts_results(self, s->st, &s->gifts, arrays) < 0) return -1;
  for (uint32_t i = 0; i < self->n_results; i++) {
    const py_leaf *leaf = &self->leaves[self->n_arguments + i];
    if (arrays[i] == NULL && leaf->descr && (arrays[i] = py_result_array(s->st, leaf)) == NULL)
      return call_no_memory(self, s->st);
    s->results[i] = arrays[i] ? PyArray_DATA((PyArrayObject *)arrays[i]) : NULL;
  }
  return 0;
}

/* From here on it is about writing: `started` is set just before the run, as memory that was donated can't be
 * given back after it. On failure the arrays go, and with them what was computed so far. */
static PyObject *call_into(call_state *s, py_call *call, PyObject **arrays) {
  const py_executable *self = s->self;
  void **blocks = NULL;
  int status = call_results(s, call, arrays);
  if (status == 0 && (call->out || s->gifts.n)) {
    blocks = PyMem_Calloc(self->n_results + 1u, sizeof *blocks);
    status = blocks ? py_out_separate(self, s->st, arrays, s->arguments, s->results, blocks) : (PyErr_NoMemory(), -1);
  }
  s->started = status == 0;
  if (status == 0) status = call_run(s, call);
  if (blocks) py_out_finish(self, arrays, blocks, status == 0);
  PyMem_Free(blocks);
  if (status == 0 && call->out) return py_out_given(self, call->out, py_result_of(self, arrays));
  if (status == 0) return py_result_of(self, arrays);
  for (uint32_t i = 0; i < self->n_results; i++) Py_CLEAR(arrays[i]);
  return NULL;
}

/* The order matters: what was donated is settled before Buffers are closed, and values live to the end because
 * arguments point into them. */
static void call_end(call_state *s) {
  py_gifts_end(s->self, &s->gifts, s->started);
  for (uint32_t i = 0; s->opened && i < s->self->n_arguments; i++)
    if (s->opened[i]) xlac_buffer_close(s->opened[i]);
  PyMem_Free(s->opened);
  PyMem_Free(s->at);
  call_forget(&s->kept);
}

/* By leaves where the arguments are arrays as the program wants them; by values programs that the interpreter runs
 * whole, and calls with too few or too many arguments. `room` has places for arguments, results and their arrays, in
 * this order. */
static PyObject *call_any(py_executable *self, py_call *call) {
  void *few[CALL_FEW], **room = few;
  size_t n = (size_t)self->n_arguments + 2 * (size_t)self->n_results;
  if (call->n != self->n_params) return py_call_values(self, call);
  if (!self->planned)
    return py_give_nothing(self, py_state_of((PyObject *)self), call) < 0 ? NULL : py_call_values(self, call);
  if (n > CALL_FEW && (room = PyMem_Malloc(n * sizeof *room)) == NULL) return PyErr_NoMemory();
  call_state s = {.self = self, .st = py_state_of((PyObject *)self), .arguments = room};
  PyObject **arrays = (PyObject **)(room + self->n_arguments + self->n_results);
  s.results = room + self->n_arguments;
  s.call = call;
  s.gifts.required = call->required || self->required;
  s.numpy = s.st->numpy;
  for (uint32_t i = 0; i < self->n_results; i++) arrays[i] = NULL;
  int status = call_arguments(&s, call);
  PyObject *result = NULL;
  if (status == 0) result = call_into(&s, call, arrays);
  call_end(&s);
  if (room != few) PyMem_Free(room);
  return status > 0 ? py_call_values(self, call) : result;
}

/* With results as arrays, or as Buffers. */
static PyObject *call_made(py_executable *self, py_call *call) {
  if (!self->as_buffers || call->out) return call_any(self, call);
  if (self->planned && xlac_executable_memory(self->exe)) return py_call_on_device(self, call);
  return py_results_as_buffers(py_state_of((PyObject *)self), call_any(self, call));
}

/* Calls without keywords, by far the most, skip all parsing; only what is read is cleared. */
PyObject *py_executable_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  assert(Py_IS_TYPE(object, py_state_of(object)->executable_type));
  py_executable *self = (py_executable *)object;
  py_call call;
  if (self->as_shards) return py_call_sharded(object, args, PyVectorcall_NARGS(nargsf), kwnames);
  if (kwnames == NULL) {
    memset(&call, 0, sizeof call);
    call.options.struct_size = sizeof call.options;
    call.args = args;
    call.n = (uint32_t)PyVectorcall_NARGS(nargsf);
    return call_made(self, &call);
  }
  PyObject *few[CALL_FEW], **room = few, *result = NULL;
  if (self->n_params > CALL_FEW && (room = PyMem_Malloc(self->n_params * sizeof *room)) == NULL)
    return PyErr_NoMemory();
  if (py_call_parse(self, args, PyVectorcall_NARGS(nargsf), kwnames, room, &call) == 0) result = call_made(self, &call);
  if (room != few) PyMem_Free(room);
  return result;
}
