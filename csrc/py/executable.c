/* xlac.Executable: the object, what a call needs to know (prepared once, when the executable is wrapped), and
 * making one by xlac.compile and xlac.load.
 *
 * A call must find out quickly whether its arguments fit, so the types of parameters and results are flattened:
 * nodes in preorder say how tuples are nested, and leaves say what the arrays are, as NumPy describes them. */
#include "executable.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { EXECUTABLE_QUICK_WORK = 1 << 14 }; /* elements: some ten microseconds */

/* Also of one that was half made: everything is NULL or 0 at first. The leaves are freed before the library's
 * handle, whose types they point to. */
static void executable_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  py_executable *self = (py_executable *)object;
  for (uint32_t i = 0; self->leaves && i < self->n_arguments + self->n_results; i++) Py_XDECREF(self->leaves[i].descr);
  PyMem_Free(self->leaves);
  PyMem_Free(self->nodes);
  PyMem_Free(self->over);
  PyMem_Free(self->dims);
  Py_XDECREF(self->names);
  Py_XDECREF(self->numbers);
  Py_XDECREF(self->kept);
  Py_XDECREF(self->recorded);
  xlac_executable_destroy(self->exe);
  type->tp_free(object);
  Py_DECREF(type);
}

/* Where calls find the function: Python then calls it without making a tuple of the arguments. */
static PyMemberDef executable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(py_executable, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot executable_slots[] = {
    {Py_tp_dealloc, (void *)executable_dealloc},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_getattro, (void *)py_attribute},
    {Py_tp_repr, (void *)py_executable_repr},
    {Py_tp_methods, py_executable_methods},
    {Py_tp_members, executable_members},
    {Py_tp_getset, py_executable_getset},
    {Py_tp_doc,
     "A compiled program, made by xlac.compile or xlac.load: call it with an array for each of its `inputs`.\n\n"
     "    executable(*arrays, out=None, seed=None, replica=0, partition=0, progress=None)\n\n"
     "Arrays are of NumPy, PyTorch, JAX, Buffers, or lists and numbers, with the element types of `inputs`; "
     "xlac.donate(array)\n"
     "gives one away. The result is an array, or a tuple of those of `outputs`; `out` has arrays to write them to. Any "
     "thread may\n"
     "call. Raises ArgumentError, which is a TypeError and a ValueError, for arrays that do not fit."},
    {0, NULL},
};

PyType_Spec py_executable_spec = {
    .name = "xlac.Executable",
    .basicsize = sizeof(py_executable),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = executable_slots,
};

/* --- what calls need to know --- */

/* How much room the types take. */
typedef struct executable_count {
  size_t nodes, dims;
} executable_count;

/* Nesting is that of a type, which is bounded. */
static void executable_count_type(const xlac_type *t, executable_count *count) {
  xlac_type_info info;
  xlac_type_get(t, &info);
  count->nodes++;
  count->dims += info.rank;
  for (uint32_t i = 0; info.kind == XLAC_TYPE_TUPLE && i < info.n_elements; i++)
    executable_count_type(xlac_type_element(t, i), count);
}

/* Where the next node, leaf and dimensions go. */
typedef struct executable_fill {
  py_executable *self;
  py_state *st;
  uint32_t node, leaf;
  npy_intp *dims;
} executable_fill;

/* False where NumPy has no such arrays: the first call says so. */
static bool executable_fill_leaf(executable_fill *f, const xlac_type *t, const xlac_type_info *info) {
  assert(f->leaf <= f->node && t);
  py_leaf *leaf = &f->self->leaves[f->leaf++];
  *leaf = (py_leaf){.type = t, .rank = (int)info->rank, .dims = f->dims};
  if (info->kind != XLAC_TYPE_TENSOR) return info->kind == XLAC_TYPE_TOKEN;
  if (info->rank > NPY_MAXDIMS) return false;
  leaf->descr = (PyArray_Descr *)py_descr(f->st, info->dtype);
  if (leaf->descr == NULL) return PyErr_Clear(), false;
  leaf->bytes = xlac_dtype_bytes(info->dtype);
  for (uint32_t d = 0; d < info->rank; d++) {
    leaf->dims[d] = (npy_intp)info->dims[d];
    leaf->bytes *= (size_t)info->dims[d];
  }
  f->dims += info->rank;
  return true;
}

/* Preorder: a tuple's node comes before those of its elements. */
static void executable_fill_type(executable_fill *f, const xlac_type *t) {
  assert(t);
  xlac_type_info info;
  xlac_type_get(t, &info);
  if (info.kind != XLAC_TYPE_TUPLE) {
    f->self->nodes[f->node++] = info.kind == XLAC_TYPE_TENSOR ? PY_NODE_ARRAY : PY_NODE_TOKEN;
    if (!executable_fill_leaf(f, t, &info)) f->self->planned = false;
    return;
  }
  f->self->nodes[f->node++] = (int32_t)info.n_elements;
  for (uint32_t i = 0; i < info.n_elements; i++) executable_fill_type(f, xlac_type_element(t, i));
}

/* Counts first, then allocates all at once: 0, or -1 with an exception. Leaves are never more than nodes. */
static int executable_allocate(py_executable *self) {
  assert(self->exe && self->leaves == NULL);
  executable_count count = {0, 0};
  const char *name = NULL;
  const xlac_type *t = NULL;
  for (; (t = xlac_executable_param(self->exe, self->n_params, &name)) != NULL; self->n_params++)
    executable_count_type(t, &count);
  executable_count_type(xlac_executable_result(self->exe), &count);
  self->leaves = PyMem_Calloc(count.nodes + 1, sizeof *self->leaves);
  self->nodes = PyMem_Calloc(count.nodes + 1, sizeof *self->nodes);
  self->dims = PyMem_Calloc(count.dims + 1, sizeof *self->dims);
  self->over = PyMem_Malloc((count.nodes + 1) * sizeof *self->over);
  self->names = PyTuple_New(self->n_params);
  self->numbers = PyDict_New();
  return self->leaves && self->nodes && self->over && self->dims && self->names && self->numbers
             ? 0
             : (PyErr_NoMemory(), -1);
}

/* The length of "x.12" without ".12"; the whole where there is none. */
static Py_ssize_t executable_short_name(PyObject *name) {
  assert(PyUnicode_Check(name));
  Py_ssize_t n = PyUnicode_GET_LENGTH(name), at = n;
  while (at > 0 && Py_UNICODE_ISDECIMAL(PyUnicode_READ_CHAR(name, at - 1))) at--;
  return at > 1 && at < n && PyUnicode_READ_CHAR(name, at - 1) == '.' ? at - 1 : n;
}

/* numbers[name] = i, or None where another one has that name. 0, or -1 with an exception; name may be NULL, with
 * one. */
static int executable_number_name(PyObject *numbers, PyObject *name, uint32_t i) {
  int known = name ? PyDict_Contains(numbers, name) : -1;
  PyObject *number = known > 0 ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(i);
  int status = known >= 0 && number ? PyDict_SetItem(numbers, name, number) : -1;
  Py_XDECREF(number);
  return status;
}

/* Full names first, so that none is hidden by the short form of another. */
static int executable_number_names(py_executable *self) {
  PyObject *shortened = PyDict_New();
  int status = shortened ? 0 : -1;
  for (uint32_t i = 0; i < self->n_params && status == 0; i++) {
    PyObject *name = PyTuple_GET_ITEM(self->names, i);
    Py_ssize_t n = executable_short_name(name);
    status = executable_number_name(self->numbers, name, i);
    if (status < 0 || n == PyUnicode_GET_LENGTH(name)) continue;
    PyObject *part = PyUnicode_Substring(name, 0, n);
    status = executable_number_name(shortened, part, i);
    Py_XDECREF(part);
  }
  if (status == 0) status = PyDict_Merge(self->numbers, shortened, 0);
  Py_XDECREF(shortened);
  return status;
}

/* Donations whose memory goes to temporaries have no result. */
static void executable_note_donations(py_executable *self) {
  assert(self->over);
  xlac_donation d;
  for (uint32_t i = 0; i < self->n_results; i++) self->over[i] = UINT32_MAX;
  for (uint32_t i = 0; xlac_executable_donation(self->exe, i, &d); i++)
    if (d.result != UINT32_MAX) self->over[d.result] = d.argument;
}

/* 0, or -1 with an exception. `planned` goes off where the interpreter runs the program whole, or NumPy has no
 * such arrays. */
static int executable_describe(py_state *st, py_executable *self) {
  xlac_executable_info info;
  executable_fill f = {.self = self, .st = st};
  if (executable_allocate(self) < 0) return -1;
  xlac_executable_get(self->exe, &info);
  self->planned = info.interpreted == NULL;
  self->quick = info.work <= EXECUTABLE_QUICK_WORK;
  f.dims = self->dims;
  for (uint32_t i = 0; i < self->n_params; i++) {
    const char *text = "";
    executable_fill_type(&f, xlac_executable_param(self->exe, i, &text));
    PyObject *name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
    if (name == NULL) return -1;
    PyUnicode_InternInPlace(&name);
    PyTuple_SET_ITEM(self->names, i, name);
  }
  if (executable_number_names(self) < 0) return -1;
  self->n_arguments = f.leaf;
  self->result_node = f.node;
  executable_fill_type(&f, xlac_executable_result(self->exe));
  self->n_results = f.leaf - self->n_arguments;
  executable_note_donations(self);
  return 0;
}

/* Steals exe, also on failure. */
static PyObject *executable_wrap(py_state *st, xlac_executable *exe) {
  assert(exe);
  py_executable *self = PyObject_New(py_executable, st->executable_type);
  if (self == NULL) {
    xlac_executable_destroy(exe);
    return NULL;
  }
  memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
  self->exe = exe;
  self->call = py_executable_vectorcall;
  if (executable_describe(st, self) < 0) Py_CLEAR(self);
  return (PyObject *)self;
}

/* Numbers of parameters. NULL with an error set; freed by PyMem_Free. */
static uint32_t *executable_donated(PyObject *donate, uint32_t *n) {
  PyObject *all = PySequence_Fast(donate, "donate must be a sequence of parameter numbers");
  if (all == NULL) return NULL;
  *n = (uint32_t)PySequence_Fast_GET_SIZE(all);
  uint32_t *numbers = PyMem_Malloc((*n + 1u) * sizeof *numbers);
  if (numbers == NULL) PyErr_NoMemory();
  for (uint32_t i = 0; numbers && i < *n; i++) {
    unsigned long v = PyLong_AsUnsignedLong(PySequence_Fast_GET_ITEM(all, i));
    if (v > UINT32_MAX && !PyErr_Occurred()) PyErr_SetString(PyExc_OverflowError, "no such parameter number");
    numbers[i] = (uint32_t)v;
    if (!PyErr_Occurred()) continue;
    PyMem_Free(numbers);
    numbers = NULL;
  }
  Py_DECREF(all);
  return numbers;
}

/* Raises for the first donation without effect. For compile(require=True): 0, or -1 with an exception. */
static int executable_require(py_state *st, xlac_executable *exe) {
  assert(exe);
  xlac_donation d;
  xlac_executable_info info;
  xlac_error err = {.code = PY_DONATION_UNUSABLE};
  xlac_executable_get(exe, &info);
  if (info.interpreted)
    PyOS_snprintf(err.message, sizeof err.message,
                  "nothing can be donated: the interpreter runs the program whole, since %.300s", info.interpreted);
  for (uint32_t i = 0; !info.interpreted && err.message[0] == 0 && xlac_executable_donation(exe, i, &d); i++) {
    char *text = NULL;
    if (d.in_place || xlac_executable_explain_donation(exe, i, &text, NULL, NULL) != 0) continue;
    PyOS_snprintf(err.message, sizeof err.message, "argument %u can't be donated: %.500s", d.argument, text);
    xlac_free(text);
  }
  if (err.message[0] == 0) return 0;
  py_raise(st, &err, PY_ANY);
  return -1;
}

/* False with an exception. */
static bool executable_numerics(const char *text, xlac_numerics *out) {
  assert(text && out);
  *out = strcmp(text, "fast") == 0 ? XLAC_NUMERICS_FAST : XLAC_NUMERICS_STRICT;
  if (*out == XLAC_NUMERICS_FAST || strcmp(text, "strict") == 0) return true;
  PyErr_Format(PyExc_ValueError, "numerics must be 'strict' or 'fast', not '%.100s'", text);
  return false;
}

/* What compile and compile_dump take after the module. */
typedef struct executable_request {
  xlac_module *m;
  xlac_compile_options options; /* owns its donated parameters and lanes */
  const char *stage;            /* of a dump */
  int require;
} executable_request;

/* Frees what a request owns. */
static void executable_forget(executable_request *r) {
  PyMem_Free((void *)(uintptr_t)r->options.donate);
  py_lanes_forget(&r->options);
}

/* 0, or -1 with an exception and nothing to free. `stage` counts for dumps only. */
static int executable_read_request(py_state *st, PyObject *args, PyObject *kwargs, executable_request *r) {
  static char *names[] = {"module", "threads", "blas",       "use_blas",  "fuse",    "passes",
                          "donate", "lanes",   "async_work", "numerics",  "require", "device",
                          "stage",  "devices", "process",    "processes", NULL};
  PyObject *module, *donate = NULL, *lanes = NULL;
  unsigned int threads = 0, devices = 0, process = 0, processes = 0;
  unsigned long long async_work = 0;
  const char *numerics = "strict";
  int blas = 1, fuse = 1, passes = 1;
  *r = (executable_request){.options = {XLAC_OPTIONS(xlac_compile_options)}};
  xlac_compile_options *options = &r->options;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$IzpppOOKspzzIII:compile", names, st->module_type, &module,
                                   &threads, &options->blas_path, &blas, &fuse, &passes, &donate, &lanes, &async_work,
                                   &numerics, &r->require, &options->device, &r->stage, &devices, &process, &processes))
    return -1;
  if (!executable_numerics(numerics, &options->numerics)) return -1;
  if (py_lanes_take(lanes, options) < 0) return -1;
  if (donate && (options->donate = executable_donated(donate, &options->n_donate)) == NULL) {
    py_lanes_forget(options);
    return -1;
  }
  r->m = ((py_module *)module)->m;
  options->async_work = async_work;
  options->threads = threads;
  options->n_devices = devices;
  options->process = process;
  options->processes = processes;
  options->no_blas = !blas;
  options->no_fusion = !fuse;
  options->no_passes = !passes;
  options->runtime = st->runtime;
  options->counters = st->counters;
  return 0;
}

/* Compiling goes without the GIL and heeds Ctrl-C; options that own memory are freed in any case. */
PyObject *py_compile(PyObject *core, PyObject *args, PyObject *kwargs) {
  py_state *st = PyModule_GetState(core);
  executable_request request;
  xlac_error err = {.code = 0};
  xlac_executable *exe = NULL;
  int status;
  if (executable_read_request(st, args, kwargs, &request) < 0) return NULL;
  PY_WORK(status = xlac_compile(request.m, &request.options, &exe, &err));
  executable_forget(&request);
  if (status) {
    py_raise(st, &err, PY_ANY);
    return py_show_source(PyTuple_GET_SIZE(args) ? ((py_module *)PyTuple_GET_ITEM(args, 0))->source : NULL);
  }
  if (request.require && executable_require(st, exe) < 0) {
    xlac_executable_destroy(exe);
    return NULL;
  }
  PyObject *object = executable_wrap(st, exe);
  if (object) ((py_executable *)object)->required = request.require;
  return object;
}

/* The text of a stage, or the key in the cache, as a str; bytes that are not UTF-8 come as surrogates. */
PyObject *py_compile_dump(PyObject *core, PyObject *args, PyObject *kwargs) {
  py_state *st = PyModule_GetState(core);
  executable_request request;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  int status;
  if (executable_read_request(st, args, kwargs, &request) < 0) return NULL;
  bool key = request.stage && strcmp(request.stage, "cache-key") == 0;
  PY_WORK(status = key ? xlac_cache_key(request.m, &request.options, &text, &n, &err)
                       : xlac_compile_dump(request.m, &request.options, request.stage, &text, &n, &err));
  executable_forget(&request);
  if (status) return py_raise(st, &err, PY_ANY);
  PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "surrogateescape");
  xlac_free(text);
  return result;
}

/* (the program of one device, what is known of it as JSON) */
PyObject *py_rehearse(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .runtime = st->runtime};
  xlac_error err = {.code = 0};
  xlac_module *local = NULL;
  PyObject *module, *donate, *text = NULL;
  const char *passes;
  char *json = NULL;
  size_t n = 0;
  unsigned int devices;
  int status;
  if (!PyArg_ParseTuple(args, "O!IzO:_rehearse", st->module_type, &module, &devices, &passes, &donate)) return NULL;
  if ((options.donate = executable_donated(donate, &options.n_donate)) == NULL) return NULL;
  options.n_devices = devices;
  PY_WORK(status = xlac_rehearse(((py_module *)module)->m, &options, passes, &local, &json, &n, &err));
  PyMem_Free((void *)(uintptr_t)options.donate);
  if (status) return py_raise(st, &err, PY_ANY);
  PyObject *wrapped = py_wrap_module(st, local);
  if (wrapped)
    text = py_text(json, (Py_ssize_t)n);
  else
    xlac_free(json);
  PyObject *both = text ? PyTuple_Pack(2, wrapped, text) : NULL;
  Py_XDECREF(wrapped);
  Py_XDECREF(text);
  return both;
}

/* The bytes are locked by their view while they are read. */
PyObject *py_load(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"bytes",      "threads", "blas",    "use_blas",  "lanes",
                          "async_work", "device",  "process", "processes", NULL};
  py_state *st = PyModule_GetState(core);
  xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .runtime = st->runtime, .counters = st->counters};
  xlac_error err = {.code = 0};
  xlac_executable *exe = NULL;
  Py_buffer bytes;
  PyObject *lanes = NULL;
  unsigned int threads = 0;
  unsigned long long async_work = 0;
  int blas = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|$IzpOKzII:load", names, &bytes, &threads, &options.blas_path,
                                   &blas, &lanes, &async_work, &options.device, &options.process, &options.processes))
    return NULL;
  if (py_lanes_take(lanes, &options) < 0) {
    PyBuffer_Release(&bytes);
    return NULL;
  }
  options.async_work = async_work;
  options.no_blas = !blas;
  options.threads = threads;
  int status;
  PY_WORK(status = xlac_executable_load(bytes.buf, (size_t)bytes.len, &options, &exe, &err));
  PyBuffer_Release(&bytes);
  py_lanes_forget(&options);
  return status == 0 ? executable_wrap(st, exe) : py_raise(st, &err, PY_ANY);
}

/* --- the memory of all executables --- */

/* Gives memory back that was kept for the next calls; how many bytes. */
PyObject *py_trim(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"keep", NULL};
  py_state *st = PyModule_GetState(core);
  unsigned long long keep = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|K:trim", names, &keep)) return NULL;
  return PyLong_FromUnsignedLongLong(xlac_runtime_trim(st->runtime, keep));
}

/* What is kept beyond it goes back when it is next given. */
PyObject *py_memory_limit(PyObject *core, PyObject *bytes) {
  py_state *st = PyModule_GetState(core);
  unsigned long long limit = PyLong_AsUnsignedLongLong(bytes);
  if (PyErr_Occurred()) return NULL;
  xlac_runtime_limit(st->runtime, limit);
  Py_RETURN_NONE;
}

/* Counts of blocks and bytes, at one moment of all threads. */
PyObject *py_memory_stats(PyObject *core, PyObject *unused) {
  py_state *st = PyModule_GetState(core);
  xlac_runtime_info m;
  (void)unused;
  xlac_runtime_get(st->runtime, &m);
  return Py_BuildValue("{sKsKsKsKsKsKsKsKsI}", "taken", m.taken, "reused", m.reused, "live", m.live, "live_bytes",
                       m.live_bytes, "peak_bytes", m.peak_bytes, "kept", m.kept, "kept_bytes", m.kept_bytes,
                       "limit_bytes", m.limit_bytes, "threads", m.threads);
}

/* --- devices --- */

static PyObject *executable_device_row(const xlac_device_info *d) {
  return Py_BuildValue("(ssIIsKKKO)", d->name, d->kind, d->ordinal, d->units, d->memory, d->memory_bytes, d->live_bytes,
                       d->peak_bytes, d->host_visible ? Py_True : Py_False);
}

/* One context of each kind is there for the asking; others once something has opened them. */
PyObject *py_devices(PyObject *core, PyObject *unused) {
  static const char *const always[] = {"cpu", "interp"};
  py_state *st = PyModule_GetState(core);
  xlac_device_info info;
  xlac_error err = {.code = 0};
  (void)unused;
  for (size_t i = 0; i < sizeof always / sizeof *always; i++)
    if (xlac_runtime_open_device(st->runtime, always[i], &info, &err) != 0) return py_raise(st, &err, PY_ANY);
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && xlac_runtime_device(st->runtime, i, &info); i++) {
    PyObject *row = executable_device_row(&info);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

PyObject *py_executable_device(PyObject *self, void *unused) {
  xlac_device_info info;
  (void)unused;
  xlac_executable_device(((py_executable *)self)->exe, &info);
  return PyUnicode_FromString(info.name);
}
