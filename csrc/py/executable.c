/* xlac.Executable: the object, and what it says of itself. */
#include "executable.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { EXECUTABLE_QUICK_WORK = 1 << 14 }; /* elements: some ten microseconds */

static void executable_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  py_executable *self = (py_executable *)object;
  for (uint32_t i = 0; self->leaves && i < self->n_arguments + self->n_results; i++) Py_XDECREF(self->leaves[i].descr);
  PyMem_Free(self->leaves);
  PyMem_Free(self->nodes);
  PyMem_Free(self->dims);
  Py_XDECREF(self->names);
  xlac_executable_destroy(self->exe);
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

static PyMemberDef executable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(py_executable, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot executable_slots[] = {
    {Py_tp_dealloc, (void *)executable_dealloc},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_repr, (void *)executable_repr},
    {Py_tp_methods, executable_methods},
    {Py_tp_members, executable_members},
    {Py_tp_getset, executable_getset},
    {Py_tp_doc, "A compiled program: call it with arrays. Made by xlac.compile."},
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

typedef struct executable_fill {
  py_executable *self;
  py_state *st;
  uint32_t node, leaf;
  npy_intp *dims;
} executable_fill;

/* False where NumPy has no such arrays: the first call says so. */
static bool executable_fill_leaf(executable_fill *f, const xlac_type *t, const xlac_type_info *info) {
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

static void executable_fill_type(executable_fill *f, const xlac_type *t) {
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

static int executable_allocate(py_executable *self) {
  executable_count count = {0, 0};
  const char *name = NULL;
  const xlac_type *t = NULL;
  for (; (t = xlac_executable_param(self->exe, self->n_params, &name)) != NULL; self->n_params++)
    executable_count_type(t, &count);
  executable_count_type(xlac_executable_result(self->exe), &count);
  self->leaves = PyMem_Calloc(count.nodes + 1, sizeof *self->leaves);
  self->nodes = PyMem_Calloc(count.nodes + 1, sizeof *self->nodes);
  self->dims = PyMem_Calloc(count.dims + 1, sizeof *self->dims);
  self->names = PyTuple_New(self->n_params);
  return self->leaves && self->nodes && self->dims && self->names ? 0 : (PyErr_NoMemory(), -1);
}

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
  self->n_arguments = f.leaf;
  self->result_node = f.node;
  executable_fill_type(&f, xlac_executable_result(self->exe));
  self->n_results = f.leaf - self->n_arguments;
  return 0;
}

static PyObject *executable_wrap(py_state *st, xlac_executable *exe) {
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
  options.runtime = st->runtime;
  PyThreadState *thread = PyEval_SaveThread();
  int status = xlac_compile(((py_module *)module)->m, &options, &exe, &err);
  PyEval_RestoreThread(thread);
  return status == 0 ? executable_wrap(st, exe) : py_raise(st, &err, PY_ANY);
}

/* --- the memory of all executables --- */

PyObject *py_trim(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"keep", NULL};
  py_state *st = PyModule_GetState(core);
  unsigned long long keep = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|K:trim", names, &keep)) return NULL;
  return PyLong_FromUnsignedLongLong(xlac_runtime_trim(st->runtime, keep));
}

PyObject *py_memory_limit(PyObject *core, PyObject *bytes) {
  py_state *st = PyModule_GetState(core);
  unsigned long long limit = PyLong_AsUnsignedLongLong(bytes);
  if (PyErr_Occurred()) return NULL;
  xlac_runtime_limit(st->runtime, limit);
  Py_RETURN_NONE;
}

PyObject *py_memory_stats(PyObject *core, PyObject *unused) {
  py_state *st = PyModule_GetState(core);
  xlac_runtime_info m;
  (void)unused;
  xlac_runtime_get(st->runtime, &m);
  return Py_BuildValue("{sKsKsKsKsKsKsKsKsI}", "taken", m.taken, "reused", m.reused, "live", m.live, "live_bytes",
                       m.live_bytes, "peak_bytes", m.peak_bytes, "kept", m.kept, "kept_bytes", m.kept_bytes,
                       "limit_bytes", m.limit_bytes, "threads", m.threads);
}
