/* Arguments marked with xlac.donate, and the check before anything is donated.
 *
 * Their memory becomes that of a result, where the program says which, or is lent to temporaries. What can't be
 * donated is borrowed like any other argument, and a DonationWarning says why; donate="require" makes that an
 * error. The check comes first, and for all marks at once: no memory may be given twice, or be given and lent, in
 * one call, since results would then be written over what is still to be read. */
#include <stdlib.h>

#include "buffer.h"
#include "executable.h"

/* --- no memory twice --- */

/* An argument's place among the leaves, and what is there. */
typedef struct once_leaf {
  PyObject *value; /* borrowed; an ndarray, a Buffer, or anything else */
  uint32_t param;
  bool given;
  uintptr_t low, high; /* its memory; equal where that is not known or empty */
} once_leaf;

/* What is sorted: where a leaf's memory begins. */
typedef struct once_span {
  uintptr_t low;
  uint32_t leaf;
} once_span;

/* A walk over the arguments along the nodes of their types. `leaf` is how many leaves there are so far. */
typedef struct once_walk {
  const py_executable *self;
  py_state *st;
  once_leaf *leaves;
  uint32_t node, leaf;
} once_walk;

/* From the first byte to the one after the last, with strides of either sign. It is as if all between belonged to
 * the array: two arrays that take turns in the same memory count as overlapping, which errs on the safe side. */
static void once_measure(once_leaf *l, const void *data, int rank, const npy_intp *dims, const npy_intp *strides,
                         npy_intp size) {
  assert(rank >= 0 && size >= 0);
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

/* Objects of other kinds stay with an empty span: they are converted, and so copied, before the program sees them. */
static void once_memory(once_walk *w, once_leaf *l) {
  assert(l->value);
  void **numpy = w->st->numpy;
  if (numpy && PyArray_Check(l->value)) {
    PyArrayObject *a = (PyArrayObject *)l->value;
    once_measure(l, PyArray_DATA(a), PyArray_NDIM(a), PyArray_DIMS(a), PyArray_STRIDES(a),
                 (npy_intp)xlac_dtype_bytes(py_dtype_of(PyArray_DESCR(a))));
  } else if (py_is_buffer(w->st, l->value)) {
    xlac_buffer_info info;
    xlac_buffer_get(((py_buffer *)l->value)->b, &info);
    if (info.data)
      once_measure(l, info.data, (int)info.rank, (const npy_intp *)info.dims, (const npy_intp *)info.strides,
                   (npy_intp)xlac_dtype_bytes(info.dtype));
  }
}

/* False where the argument has not the structure of its parameter: then another error is on its way. Nesting is
 * that of a type, which is bounded. The values are borrowed: arguments live as long as the call. */
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

/* The leaf that has memory of leaf i, which is donated; UINT32_MAX where none has. Equal objects count also
 * where their memory is unknown. */
static uint32_t once_rival(const once_walk *w, uint32_t i) {
  assert(i < w->leaf);
  const once_leaf *g = &w->leaves[i];
  for (uint32_t k = 0; k < w->leaf; k++) {
    const once_leaf *l = &w->leaves[k];
    bool same = l->value == g->value || (l->low < g->high && g->low < l->high);
    if (k != i && same) return k;
  }
  return UINT32_MAX;
}

/* The argument that comes first in the call is named first, whichever of the two is given. */
static void once_raise(const once_walk *w, uint32_t i, uint32_t k) {
  assert(i != k && i < w->leaf && k < w->leaf);
  const once_leaf *a = &w->leaves[i < k ? i : k], *b = &w->leaves[i < k ? k : i];
  xlac_error err = {.code = PY_DONATION_TWICE};
  PyOS_snprintf(err.message, sizeof err.message,
                "duplicate: argument %u (%.100s) is %s and argument %u (%.100s) is %s, but both lie in the same memory",
                a->param, PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->self->names, a->param)), a->given ? "donated" : "lent",
                b->param, PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->self->names, b->param)), b->given ? "donated" : "lent");
  PyOS_snprintf(err.hint, sizeof err.hint, "donate memory once, and lend a copy of it elsewhere");
  py_raise(w->st, &err, PY_ANY);
}

/* For qsort: by where the memory begins. */
static int once_order(const void *a, const void *b) {
  uintptr_t x = ((const once_span *)a)->low, y = ((const once_span *)b)->low;
  return (x > y) - (x < y);
}

/* By address: an array meets an earlier one if it begins before the end of the one that reaches furthest. `all`
 * reaches furthest of all leaves so far, `given` of those that are donated: a leaf that is given may meet no
 * other, a leaf that is borrowed no given one. n log n, where comparing all pairs would be felt with thousands of
 * arguments. */
static int once_sweep(const once_walk *w, once_span *spans) {
  uint32_t n = 0, all = 0, given = UINT32_MAX;
  for (uint32_t i = 0; i < w->leaf; i++)
    if (w->leaves[i].low < w->leaves[i].high) spans[n++] = (once_span){w->leaves[i].low, i};
  qsort(spans, n, sizeof *spans, once_order);
  for (uint32_t i = 0; i < n; i++) {
    const once_leaf *l = &w->leaves[spans[i].leaf];
    uint32_t rival = l->given && i > 0 ? all : given;
    if (rival != UINT32_MAX && l->low < w->leaves[rival].high) return once_raise(w, spans[i].leaf, rival), -1;
    if (i == 0 || l->high > w->leaves[all].high) all = spans[i].leaf;
    if (l->given && (given == UINT32_MAX || l->high > w->leaves[given].high)) given = spans[i].leaf;
  }
  return 0;
}

/* Leaves and spans lie in one allocation, one after the other. */
int py_gifts_check(const py_executable *self, py_state *st, const py_call *call) {
  assert(self->planned);
  once_walk w = {.self = self, .st = st};
  if (py_numpy(st) == NULL) return -1;
  size_t each = sizeof *w.leaves + sizeof(once_span);
  if ((w.leaves = PyMem_Calloc(self->n_arguments + 1u, each)) == NULL) return PyErr_NoMemory(), -1;
  bool fits = call->n == self->n_params;
  for (uint32_t i = 0; fits && i < call->n; i++) fits = once_argument(&w, i, call->args[i]);
  int status = fits ? once_sweep(&w, (once_span *)(void *)(w.leaves + self->n_arguments + 1)) : 0;
  PyMem_Free(w.leaves);
  return status;
}

/* (leaf, parameter, value) of each argument that is marked, and whether others lie in its memory. For xlac's
 * report on donations: nothing is donated, and arguments that do not fit the program give an empty list. */
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

/* --- giving --- */

/* The name of the capsules that own memory of Buffers: of this process, since no one else may open one. */
static const char give_memory[] = "xlac.given";

/* The destructor of such a capsule: the last array on the memory is gone. Whatever exception is on its way is
 * kept, as the owner of the memory may be Python code. */
static void give_release(PyObject *capsule) {
  xlac_memory *m = PyCapsule_GetPointer(capsule, give_memory);
  if (m == NULL) return;
  if (m->release) m->release(m->ctx);
  PyMem_Free(m);
}

/* Lent instead: 1, or -1 where that is an error. Warns at the caller's line. Where warnings are errors the
 * exception is on its way, and nothing has been given. */
static int give_warn(const py_executable *self, py_state *st, bool required, uint32_t param, const char *why) {
  assert(param < self->n_params && why);
  PyObject *name = PyTuple_GET_ITEM(self->names, param);
  if (required) {
    xlac_error err = {.code = PY_DONATION_UNUSABLE};
    PyOS_snprintf(err.message, sizeof err.message, "argument %u (%.100s) can't be donated: %.400s", param,
                  PyUnicode_AsUTF8(name), why);
    return py_raise(st, &err, PY_ANY), -1;
  }
  PyObject *category = PyObject_GetAttrString(st->errors, "DonationWarning");
  int status = -1;
  if (category)
    status = PyErr_WarnFormat(category, 1, "argument %u (%U) is borrowed, not donated: %s", param, name, why);
  Py_XDECREF(category);
  return status < 0 ? -1 : 1;
}

/* The result that the program computes over that argument; UINT32_MAX: none, and its memory is for temporaries. */
static uint32_t give_result_of(const py_executable *self, uint32_t leaf) {
  assert(leaf < self->n_arguments);
  for (uint32_t i = 0; i < self->n_results; i++)
    if (self->over[i] == leaf) return i;
  return UINT32_MAX;
}

/* Why the Buffer's memory can't become a result's; NULL where it can. Views are asked last of the things that the
 * user can see, as xlac_buffer_take decides about them for good. */
static const char *give_buffer_obstacle(const py_leaf *leaf, const xlac_buffer_info *info) {
  assert(leaf->descr);
  xlac_type_info type;
  xlac_type_get(leaf->type, &type);
  if (info->deleted) return "it was donated or deleted";
  if (info->dtype != type.dtype) return "its dtype is another one";
  bool same = (int)info->rank == leaf->rank;
  for (uint32_t i = 0; same && i < info->rank; i++) same = info->dims[i] == leaf->dims[i];
  if (!same) return "its shape is another one";
  if (info->readonly) return "it is read-only";
  if (info->views) return "views of it are alive";
  return info->dense && info->aligned ? NULL : "layout: it is not contiguous and aligned";
}

/* The number of the donation of that leaf, or UINT32_MAX. The library numbers donations from 0; *d is of the one
 * that was found. */
static uint32_t give_donation(const py_executable *self, uint32_t leaf, xlac_donation *d) {
  assert(leaf < self->n_arguments);
  for (uint32_t i = 0; xlac_executable_donation(self->exe, i, d); i++)
    if (d->argument == leaf) return i;
  return UINT32_MAX;
}

/* What the program does with the argument's memory, where it gives it to no result. */
static void give_no_result(const py_executable *self, uint32_t leaf, char *why, size_t size) {
  xlac_donation d;
  char *text = NULL;
  uint32_t i = give_donation(self, leaf, &d);
  if (i != UINT32_MAX && xlac_executable_explain_donation(self->exe, i, &text, NULL, NULL) == 0)
    PyOS_snprintf(why, size, "%s", text);
  else
    PyOS_snprintf(why, size,
                  "no result takes its memory: the program neither aliases nor donates it; "
                  "compile(donate=...) adds it");
  xlac_free(text);
}

/* Why the value can't be donated as that leaf: false where it can. */
static bool give_obstacle(const py_executable *self, void **numpy, uint32_t leaf, PyObject *value, char *why,
                          size_t size) {
  const char *obstacle = NULL;
  if (give_result_of(self, leaf) == UINT32_MAX && xlac_executable_spare(self->exe, leaf) == 0) {
    give_no_result(self, leaf, why, size);
    return true;
  }
  if (PyArray_Check(value)) {
    obstacle = py_array_obstacle(&self->leaves[leaf], (PyArrayObject *)value);
    if (!obstacle && !PyArray_CheckExact(value) && py_is_masked(value)) obstacle = "it is a masked array";
  } else {
    xlac_buffer_info info;
    xlac_buffer_get(((py_buffer *)value)->b, &info);
    obstacle = give_buffer_obstacle(&self->leaves[leaf], &info);
  }
  if (obstacle) PyOS_snprintf(why, size, "%s", obstacle);
  return obstacle != NULL;
}

int py_give_refused(const py_executable *self, py_state *st, bool required, uint32_t leaf, uint32_t param,
                    PyObject *value, const char *why) {
  void **numpy = py_numpy(st);
  char text[512];
  if (numpy == NULL) return -1;
  if (!why && self->leaves[leaf].descr && give_obstacle(self, numpy, leaf, value, text, sizeof text)) why = text;
  return why ? give_warn(self, st, required, param, why) : 0;
}

/* For xlac's report: the same obstacles as in a call, in the same words. */
PyObject *py_gift_row(const py_executable *self, py_state *st, uint32_t leaf, uint32_t param, PyObject *value,
                      uint32_t rival) {
  assert(leaf < self->n_arguments && value);
  void **numpy = py_numpy(st);
  char why[512];
  if (numpy == NULL) return NULL;
  if (rival != UINT32_MAX)
    PyOS_snprintf(why, sizeof why, "duplicate: argument %u lies in the same memory", rival);
  else if (self->leaves[leaf].descr == NULL)
    PyOS_snprintf(why, sizeof why, "it is a token");
  else if (!give_obstacle(self, numpy, leaf, value, why, sizeof why))
    return Py_BuildValue("(IIO)", leaf, param, Py_None);
  return Py_BuildValue("(IIs)", leaf, param, why);
}

/* A warning for each mark, or an error where donations are required: -1 with an exception. */
int py_give_nothing(const py_executable *self, py_state *st, const py_call *call) {
  for (uint32_t i = 0; i < call->n; i++) {
    if (!Py_IS_TYPE(call->args[i], st->donation_type)) continue;
    if (give_warn(self, st, call->required || self->required, i, "the interpreter runs this program whole") < 0)
      return -1;
  }
  return 0;
}

/* One more, all zero; NULL with an exception, and those so far stay. Marks are few: growing by one will do. */
static py_given *give_new(py_gifts *g) {
  py_given *grown = PyMem_Realloc(g->v, (g->n + 1u) * sizeof *grown);
  if (grown == NULL) return (py_given *)PyErr_NoMemory();
  g->v = grown;
  memset(&grown[g->n], 0, sizeof *grown);
  return &grown[g->n++];
}

/* An ndarray's memory stays its own, which a reference keeps: the result is an array on top of it. Only its name
 * says that it must not be used any more, and nobody can check that. */
static int give_array(const py_executable *self, py_gifts *g, uint32_t leaf, uint32_t param, PyObject *value,
                      void **data) {
  assert(value && data);
  py_given *given = give_new(g);
  if (given == NULL) return -1;
  given->param = param;
  given->result = give_result_of(self, leaf);
  given->base = Py_NewRef(value);
  *data = given->data = PyArray_DATA((PyArrayObject *)value);
  return 0;
}

/* A Buffer's memory is really taken: it is deleted from now on. The capsule owns the memory, for the arrays that
 * come to lie on it; *given is there before that, so that py_gifts_end gives back what was taken. */
static int give_buffer(const py_executable *self, py_state *st, py_gifts *g, uint32_t leaf, uint32_t param,
                       xlac_buffer *b, void **data) {
  assert(b && data);
  xlac_error err = {.code = 0};
  py_given *given = give_new(g);
  xlac_memory *memory = given ? PyMem_Malloc(sizeof *memory) : NULL;
  if (memory == NULL) return PyErr_NoMemory(), -1;
  if (xlac_buffer_take(b, memory, &err) != 0) {
    PyMem_Free(memory);
    return py_raise(st, &err, PY_ANY), -1;
  }
  given->param = param;
  given->taken = xlac_buffer_retain(b);
  given->result = give_result_of(self, leaf);
  given->base = PyCapsule_New(memory, give_memory, give_release);
  if (given->base == NULL) {
    PyMem_Free(memory);
    return -1;
  }
  *data = given->data = memory->data;
  return 0;
}

/* A deleted Buffer is not lent with a warning: to use one is an error, which give_buffer raises. */
int py_give(const py_executable *self, py_state *st, py_gifts *g, uint32_t leaf, uint32_t param, PyObject *value,
            void **data, bool *spare) {
  assert(leaf < self->n_arguments && param < self->n_params);
  void **numpy = py_numpy(st);
  char why[512];
  if (numpy == NULL) return -1;
  if (self->leaves[leaf].descr == NULL) return 1;
  bool is_array = PyArray_Check(value);
  *spare = give_result_of(self, leaf) == UINT32_MAX;
  xlac_buffer_info info = {.deleted = false};
  if (!is_array) xlac_buffer_get(((py_buffer *)value)->b, &info);
  if (!info.deleted && info.device)
    return give_warn(
        self, st, g->required, param,
        "it lies in a GPU's memory, and results are arrays of the host's; compile with results=\"buffer\"");
  if (!info.deleted && give_obstacle(self, numpy, leaf, value, why, sizeof why))
    return give_warn(self, st, g->required, param, why);
  if (is_array) return give_array(self, g, leaf, param, value, data);
  return give_buffer(self, st, g, leaf, param, ((py_buffer *)value)->b, data);
}

/* Memory that goes to temporaries makes no array. The base is stolen, also on failure. */
int py_gifts_results(const py_executable *self, py_state *st, const py_gifts *g, PyObject **arrays) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return -1;
  for (uint32_t i = 0; i < g->n; i++) {
    if (g->v[i].result == UINT32_MAX) continue;
    const py_leaf *leaf = &self->leaves[self->n_arguments + g->v[i].result];
    PyObject **array = &arrays[g->v[i].result];
    if (*array) continue; /* out= has one for it */
    *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(leaf->descr), leaf->rank, leaf->dims, NULL,
                                  g->v[i].data, NPY_ARRAY_CARRAY, NULL);
    if (*array == NULL) return -1;
    if (PyArray_SetBaseObject((PyArrayObject *)*array, Py_NewRef(g->v[i].base)) < 0) return -1;
  }
  return 0;
}

/* Where the program that is running now stands: "step.py:12". Empty where no Python code is running, as in a
 * thread of C's. Must leave no exception behind: it is asked while one may be on its way (give_note keeps that). */
static void give_place(char *text, size_t size) {
  assert(size > 0);
  PyFrameObject *frame = PyEval_GetFrame();
  PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
  const char *file = code ? PyUnicode_AsUTF8(code->co_filename) : NULL;
  if (file)
    PyOS_snprintf(text, size, " at %.300s:%d", file, PyFrame_GetLineNumber(frame));
  else
    text[0] = 0;
  if (PyErr_Occurred()) PyErr_Clear();
  Py_XDECREF(code);
}

/* What the Buffer says when somebody asks for its memory later: "it was donated to m as argument 1 (x) at
 * step.py:12". */
static void give_note(const py_executable *self, const py_given *given) {
  assert(given->taken);
  PyObject *kind, *value, *traceback;
  char place[400], text[600];
  PyErr_Fetch(&kind, &value, &traceback);
  give_place(place, sizeof place);
  const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(self->names, given->param));
  PyOS_snprintf(text, sizeof text, "it was donated to %.60s as argument %u (%.60s)%s",
                xlac_module_name(xlac_executable_module(self->exe)), given->param, name ? name : "?", place);
  xlac_buffer_taken_by(given->taken, text);
  PyErr_Restore(kind, value, traceback);
}

/* Giving back: the memory goes to its Buffer again, so the capsule must forget it and not free it. */
void py_gifts_end(const py_executable *self, py_gifts *g, bool started) {
  for (uint32_t i = 0; i < g->n; i++) {
    py_given *given = &g->v[i];
    if (given->taken && !started) {
      if (given->base) {
        PyMem_Free(PyCapsule_GetPointer(given->base, give_memory));
        (void)PyCapsule_SetDestructor(given->base, NULL);
      }
      xlac_buffer_give_back(given->taken);
    } else if (given->taken) {
      give_note(self, given);
    }
    xlac_buffer_release(given->taken);
    Py_XDECREF(given->base);
  }
  PyMem_Free(g->v);
  *g = (py_gifts){.v = NULL};
}
