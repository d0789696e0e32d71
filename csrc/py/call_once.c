/* Before anything is given away: no memory may be given twice, or be given and lent, in one call. */
#include "buffer.h"
#include "executable.h"

/* An argument's place among the leaves, and what is there. */
typedef struct once_leaf {
  PyObject *value; /* borrowed; an ndarray, a Buffer, or anything else */
  uint32_t param;
  bool given;
  uintptr_t low, high; /* its memory; equal where that is not known or empty */
} once_leaf;

typedef struct once_walk {
  const py_executable *self;
  py_state *st;
  once_leaf *leaves;
  uint32_t node, leaf;
} once_walk;

static void once_span(once_leaf *l, const void *data, int rank, const npy_intp *dims, const npy_intp *strides,
                      npy_intp size) {
  l->low = l->high = (uintptr_t)data;
  for (int d = 0; d < rank; d++) {
    if (dims[d] == 0) {
      l->low = l->high = 0;
      return;
    }
    npy_intp last = (dims[d] - 1) * strides[d];
    *(last < 0 ? &l->low : &l->high) += (uintptr_t)last;
  }
  l->high += (uintptr_t)size;
}

static void once_memory(once_walk *w, once_leaf *l) {
  void **numpy = w->st->numpy;
  if (numpy && PyArray_Check(l->value)) {
    PyArrayObject *a = (PyArrayObject *)l->value;
    once_span(l, PyArray_DATA(a), PyArray_NDIM(a), PyArray_DIMS(a), PyArray_STRIDES(a),
              (npy_intp)xlac_dtype_bytes(py_dtype_of(PyArray_DESCR(a))));
  } else if (py_is_buffer(w->st, l->value)) {
    xlac_buffer_info info;
    xlac_buffer_get(((py_buffer *)l->value)->b, &info);
    if (info.data)
      once_span(l, info.data, (int)info.rank, (const npy_intp *)info.dims, (const npy_intp *)info.strides,
                (npy_intp)xlac_dtype_bytes(info.dtype));
  }
}

/* False where the argument has not the structure of its parameter: then another error is on its way. */
static bool once_argument(once_walk *w, uint32_t param, PyObject *object) {
  int32_t kind = w->self->nodes[w->node++];
  if (kind < 0) {
    once_leaf *l = &w->leaves[w->leaf++];
    bool given = Py_IS_TYPE(object, w->st->donation_type);
    *l = (once_leaf){given ? ((py_donation *)object)->value : object, param, given, 0, 0};
    once_memory(w, l);
    return true;
  }
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || PySequence_Fast_GET_SIZE(object) != kind) return false;
  for (int32_t i = 0; i < kind; i++)
    if (i >= PySequence_Fast_GET_SIZE(object) || !once_argument(w, param, PySequence_Fast_GET_ITEM(object, i)))
      return false;
  return true;
}

/* The leaf that has memory of leaf i, which is given away; UINT32_MAX where none has. */
static uint32_t once_rival(const once_walk *w, uint32_t i) {
  const once_leaf *g = &w->leaves[i];
  for (uint32_t k = 0; k < w->leaf; k++) {
    const once_leaf *l = &w->leaves[k];
    bool same = l->value == g->value || (l->low < g->high && g->low < l->high);
    if (k != i && same) return k;
  }
  return UINT32_MAX;
}

static void once_raise(const once_walk *w, uint32_t i, uint32_t k) {
  const once_leaf *a = &w->leaves[i < k ? i : k], *b = &w->leaves[i < k ? k : i];
  xlac_error err = {.code = PY_DONATION_TWICE};
  PyOS_snprintf(err.message, sizeof err.message,
                "duplicate: argument %u (%.100s) is %s and argument %u (%.100s) is %s, but both lie in the same memory",
                a->param, PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->self->names, a->param)), a->given ? "donated" : "lent",
                b->param, PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->self->names, b->param)), b->given ? "donated" : "lent");
  PyOS_snprintf(err.hint, sizeof err.hint, "donate memory once, and lend a copy of it elsewhere");
  py_raise(w->st, &err, PY_ANY);
}

int py_gifts_check(const py_executable *self, py_state *st, const py_call *call) {
  once_walk w = {.self = self, .st = st};
  int status = 0;
  if (py_numpy(st) == NULL) return -1;
  if ((w.leaves = PyMem_Calloc(self->n_arguments + 1u, sizeof *w.leaves)) == NULL) return PyErr_NoMemory(), -1;
  bool fits = call->n == self->n_params;
  for (uint32_t i = 0; fits && i < call->n; i++) fits = once_argument(&w, i, call->args[i]);
  for (uint32_t i = 0; fits && status == 0 && i < w.leaf; i++) {
    uint32_t rival = w.leaves[i].given ? once_rival(&w, i) : UINT32_MAX;
    if (rival == UINT32_MAX) continue;
    once_raise(&w, i, rival);
    status = -1;
  }
  PyMem_Free(w.leaves);
  return status;
}

/* (leaf, parameter, value) of each argument that is marked, and whether others lie in its memory. */
PyObject *py_gifts_list(const py_executable *self, py_state *st, const py_call *call) {
  once_walk w = {.self = self, .st = st};
  PyObject *list = PyList_New(0);
  if (py_numpy(st) == NULL) Py_CLEAR(list);
  if (list && (w.leaves = PyMem_Calloc(self->n_arguments + 1u, sizeof *w.leaves)) == NULL) {
    Py_CLEAR(list);
    PyErr_NoMemory();
  }
  bool fits = list && call->n == self->n_params;
  for (uint32_t i = 0; fits && i < call->n; i++) fits = once_argument(&w, i, call->args[i]);
  for (uint32_t i = 0; fits && list && i < w.leaf; i++) {
    if (!w.leaves[i].given) continue;
    PyObject *row = py_gift_row(self, st, i, w.leaves[i].param, w.leaves[i].value, once_rival(&w, i));
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  PyMem_Free(w.leaves);
  return list;
}
