/* Arrays for results: those that the caller gives, and those that a call makes.
 *
 * The caller's are written where they are, without a copy, unless the call still reads that memory: then the
 * result goes to a block first and is copied when the run is over. Those that a call makes are NumPy's where they
 * are small; large ones lie on blocks of the runtime's, which go back to it when the array dies: the array's base
 * is an object that lives in the block itself, before the data, so it costs no allocation. */
#include <string.h>

#include "executable.h"

#include "buffer.h"

/* --- given by the caller --- */

/* A walk over `out` or a result along the nodes of the result's type; `leaf` counts result leaves, from 0. */
typedef struct out_walk {
  const py_executable *self;
  py_state *st;
  PyObject **arrays;
  uint32_t node, leaf;
} out_walk;

/* Raises for the leaf at which the walk stands; -1. */
static int out_refuse(out_walk *w, const char *why) {
  assert(w->leaf < w->self->n_results);
  char *text = xlac_type_print(w->self->leaves[w->self->n_arguments + w->leaf].type, false);
  py_raise_argument(w->st, "out, array %u, must be a writable C-contiguous array of %s: %s", w->leaf, text ? text : "?",
                    why);
  xlac_free(text);
  return -1;
}

/* Also asked of arrays that are donated (call_give.c), hence not only of `out`. The words follow "the array" in
 * a message. */
const char *py_array_obstacle(const py_leaf *leaf, PyArrayObject *a) {
  assert(leaf->descr);
  PyArray_Descr *d = PyArray_DESCR(a);
  if (d->type_num != leaf->descr->type_num || !PyArray_ISNBO(d->byteorder)) return "its dtype is another one";
  bool same = PyArray_NDIM(a) == leaf->rank;
  for (int i = 0; same && i < leaf->rank; i++) same = PyArray_DIMS(a)[i] == leaf->dims[i];
  if (!same) return "its shape is another one";
  if (!PyArray_ISWRITEABLE(a)) return "it is read-only";
  return PyArray_ISCARRAY(a) ? NULL : "it is not contiguous and aligned";
}

/* --- arrays of other libraries, as NumPy's on the same memory --- */

/* On the memory that a DLPack producer lends without a copy. The base keeps it; NULL with an exception. */
static PyObject *out_of_dlpack(out_walk *w, void **numpy, PyObject *object) {
  xlac_buffer *b = py_buffer_from_dlpack(w->st, object, PY_COPY_NEVER, false);
  PyObject *owner = b ? py_wrap_buffer(w->st, b) : NULL;
  if (owner == NULL) return NULL;
  xlac_buffer_info info;
  xlac_buffer_get(b, &info);
  if (info.device) {
    Py_DECREF(owner);
    PyErr_SetString(PyExc_BufferError, "it lies in a GPU's memory");
    return NULL;
  }
  npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
  for (uint32_t d = 0; d < info.rank && d < NPY_MAXDIMS; d++)
    dims[d] = (npy_intp)info.dims[d], strides[d] = (npy_intp)info.strides[d];
  PyObject *descr = info.rank <= NPY_MAXDIMS ? py_descr(w->st, info.dtype) : NULL;
  PyObject *array = NULL;
  if (descr)
    array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)descr, (int)info.rank, dims, strides, info.data,
                                 info.readonly ? 0 : NPY_ARRAY_WRITEABLE, NULL);
  if (array == NULL) {
    Py_DECREF(owner);
    return NULL;
  }
  if (PyArray_SetBaseObject((PyArrayObject *)array, owner) < 0) Py_CLEAR(array);
  return array;
}

/* A new reference to an ndarray on the object's own memory. NULL without an exception: it has none that can be written
 * to; with one: it says why. Lists and what only has __array__ would be copied, and the copy written. */
static PyObject *out_view(out_walk *w, void **numpy, PyObject *object) {
  if (PyArray_Check(object)) return Py_NewRef(object);
  if (py_is_buffer(w->st, object)) return NULL;
  if (PyObject_HasAttr(object, w->st->names[PY_NAME_DLPACK])) return out_of_dlpack(w, numpy, object);
  if (PyObject_HasAttrString(object, "__array_interface__")) return PyArray_FROM_O(object);
  if (!PyObject_CheckBuffer(object)) return NULL;
  PyObject *memory = PyMemoryView_FromObject(object), *array = memory ? PyArray_FROM_O(memory) : NULL;
  Py_XDECREF(memory);
  return array;
}

/* Raises for an object that is not an array to write to, with the words of its own library where it had any; -1. */
static int out_refuse_object(out_walk *w, PyObject *object) {
  PyObject *type = NULL, *value = NULL, *traceback = NULL;
  char why[400];
  if (PyErr_Occurred() && (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)))
    return -1;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *text = value ? PyObject_Str(value) : NULL;
  const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
  PyErr_Clear();
  if (py_is_buffer(w->st, object))
    PyOS_snprintf(why, sizeof why, "a Buffer does not change; xlac.donate gives its memory to a result");
  else
    PyOS_snprintf(why, sizeof why, "a %.100s %s%.200s", Py_TYPE(object)->tp_name,
                  said ? "can't be written to: " : "has no memory of its own that could be written to",
                  said ? said : "");
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return out_refuse(w, why);
}

/* The same for an array: with what it is, beside what is wrong with it. */
static int out_refuse_array(out_walk *w, PyObject *array, const char *why) {
  PyObject *dtype = PyObject_GetAttrString(array, "dtype"), *shape = PyObject_GetAttrString(array, "shape");
  PyObject *text = dtype && shape ? PyUnicode_FromFormat("%s (%S of shape %S)", why, dtype, shape) : NULL;
  const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
  PyErr_Clear();
  int status = out_refuse(w, said ? said : why);
  Py_XDECREF(dtype);
  Py_XDECREF(shape);
  Py_XDECREF(text);
  Py_DECREF(array);
  return status;
}

/* None means "make one", and tokens have no array: both leave NULL. */
static int out_array(out_walk *w, PyObject *object) {
  void **numpy = py_numpy(w->st);
  const py_leaf *leaf = &w->self->leaves[w->self->n_arguments + w->leaf];
  if (numpy == NULL) return -1;
  if (leaf->descr == NULL || object == Py_None) return w->leaf++, 0;
  PyObject *view = out_view(w, numpy, object);
  if (view == NULL || !PyArray_Check(view)) return Py_XDECREF(view), out_refuse_object(w, object);
  const char *why = py_array_obstacle(leaf, (PyArrayObject *)view);
  if (!why && !PyArray_CheckExact(view) && py_is_masked(view)) why = "its mask would hide results: pass x.data";
  if (why) return out_refuse_array(w, view, why);
  w->arrays[w->leaf++] = view;
  return 0;
}

/* Nesting is that of a type, which is bounded. */
static int out_part(out_walk *w, PyObject *object) {
  int32_t kind = w->self->nodes[w->node++];
  if (kind < 0) return out_array(w, object);
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || PySequence_Fast_GET_SIZE(object) != kind) {
    py_raise_argument(w->st, "out must have the structure of the result: a tuple of %d where it has a %.100s",
                      (int)kind, Py_TYPE(object)->tp_name);
    return -1;
  }
  for (int32_t i = 0; i < kind; i++)
    if (i >= PySequence_Fast_GET_SIZE(object) || out_part(w, PySequence_Fast_GET_ITEM(object, i)) < 0) return -1;
  return 0;
}

/* `arrays` has n_results places, NULL at first; on failure those that were filled are the caller's to release. */
int py_out_take(const py_executable *self, PyObject *out, PyObject **arrays) {
  assert(out && arrays);
  out_walk w = {.self = self, .st = py_state_of((PyObject *)(uintptr_t)self), .arrays = arrays};
  w.node = self->result_node;
  return out_part(&w, out);
}

/* Addresses are compared as numbers: the arrays are not of one object. Nothing overlaps what is empty. */
static bool out_overlap(const void *a, size_t n, const void *b, size_t m) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return n && m && x < y + m && y < x + n;
}

/* Whether argument k is to be read while result i is written: not where it is the one that the program lets result i
 * be computed over, and is given as it is. */
static bool out_is_read(const py_executable *self, uint32_t i, void *result, uint32_t k, void *argument) {
  assert(i < self->n_results && k < self->n_arguments);
  const py_leaf *in = &self->leaves[k], *out = &self->leaves[self->n_arguments + i];
  if (self->over[i] == k && result == argument && in->bytes == out->bytes) return false;
  return out_overlap(result, out->bytes, argument, in->bytes);
}

/* Two results that overlap are an error, as there is no order in which both could be right; the pointers of arrays
 * are compared, since results[k] may be a block already. */
int py_out_separate(const py_executable *self, py_state *st, PyObject *const *arrays, void *const *arguments,
                    void **results, void **blocks) {
  const py_leaf *out = self->leaves + self->n_arguments;
  for (uint32_t i = 0; i < self->n_results; i++) {
    if (arrays[i] == NULL) continue;
    for (uint32_t k = 0; k < i; k++)
      if (arrays[k] && out_overlap(results[i], out[i].bytes, PyArray_DATA((PyArrayObject *)arrays[k]), out[k].bytes)) {
        py_raise_argument(st, "out, array %u, overlaps array %u", i, k);
        return -1;
      }
    bool read = false;
    for (uint32_t k = 0; k < self->n_arguments && !read; k++) read = out_is_read(self, i, results[i], k, arguments[k]);
    if (!read) continue;
    if ((blocks[i] = xlac_runtime_take(st->runtime, out[i].bytes)) == NULL) return PyErr_NoMemory(), -1;
    results[i] = blocks[i];
  }
  return 0;
}

/* ran: whether the results are to be copied; the blocks go back either way. */
void py_out_finish(const py_executable *self, PyObject *const *arrays, void **blocks, bool ran) {
  for (uint32_t i = 0; i < self->n_results; i++) {
    if (blocks[i] == NULL) continue;
    if (ran) memcpy(PyArray_DATA((PyArrayObject *)arrays[i]), blocks[i], self->leaves[self->n_arguments + i].bytes);
    xlac_runtime_give(blocks[i]);
  }
}

/* NumPy copies, so that a result whose shape is found out in the run fits or is refused; -1 with an exception. */
static int out_fill(out_walk *w, PyObject *object, PyObject *made, void **numpy) {
  int32_t kind = w->self->nodes[w->node++];
  if (kind < 0) {
    PyObject *array = w->arrays[w->leaf++];
    if (array == NULL) return 0;
    if (!PyArray_SAMESHAPE((PyArrayObject *)array, (PyArrayObject *)made)) {
      py_raise_argument(w->st, "out, array %u, has another shape than the result of this run", w->leaf - 1);
      return -1;
    }
    return PyArray_CopyInto((PyArrayObject *)array, (PyArrayObject *)made);
  }
  for (int32_t i = 0; i < kind; i++) {
    PyObject *part = PyTuple_GET_ITEM(made, i);
    if (out_fill(w, object, part, numpy) < 0) return -1;
  }
  return 0;
}

/* The result with what the caller gave in place of the arrays made, or written to. A new reference; NULL with an
 * exception. The structure is new, too: tuples can't be changed. */
static PyObject *out_replace(out_walk *w, PyObject *object, PyObject *made) {
  int32_t kind = w->self->nodes[w->node++];
  if (kind < 0) {
    const py_leaf *leaf = &w->self->leaves[w->self->n_arguments + w->leaf++];
    return Py_NewRef(leaf->descr && object != Py_None ? object : made);
  }
  PyObject *tuple = PyTuple_New(kind);
  bool parts = PyTuple_Check(object) || PyList_Check(object); /* another thread may have changed a list meanwhile */
  for (int32_t i = 0; tuple && i < kind; i++) {
    bool there = parts && i < PySequence_Fast_GET_SIZE(object);
    PyObject *part = out_replace(w, there ? PySequence_Fast_GET_ITEM(object, i) : Py_None, PyTuple_GET_ITEM(made, i));
    if (part == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, part);
  }
  return tuple;
}

PyObject *py_out_given(const py_executable *self, PyObject *out, PyObject *result) {
  assert(out);
  out_walk w = {.self = self, .st = py_state_of((PyObject *)(uintptr_t)self), .node = self->result_node};
  PyObject *given = result ? out_replace(&w, out, result) : NULL;
  Py_XDECREF(result);
  return given;
}

/* Two walks over the same nodes, first to copy and then to put together, so that a failure leaves nothing half
 * replaced. */
PyObject *py_out_copy(const py_executable *self, PyObject *out, PyObject *result) {
  assert(out && result);
  py_state *st = py_state_of((PyObject *)(uintptr_t)self);
  void **numpy = py_numpy(st);
  PyObject **arrays = PyMem_Calloc(self->n_results + 1u, sizeof *arrays), *replaced = NULL;
  out_walk fill = {.self = self, .st = st, .arrays = arrays}, replace = fill;
  fill.node = replace.node = self->result_node;
  int status = arrays && numpy ? py_out_take(self, out, arrays) : (PyErr_NoMemory(), -1);
  if (status == 0 && out_fill(&fill, out, result, numpy) == 0) replaced = out_replace(&replace, out, result);
  for (uint32_t i = 0; arrays && i < self->n_results; i++) Py_XDECREF(arrays[i]);
  PyMem_Free(arrays);
  Py_DECREF(result);
  return replaced;
}

/* --- made --- */

enum {
  RESULT_BLOCK_BYTES = 2048, /* smaller arrays have their memory from NumPy, which keeps some as well */
  RESULT_BASE_BYTES = XLAC_BLOCK_HEADER
};
_Static_assert(sizeof(PyObject) <= RESULT_BASE_BYTES, "the base of an array fits in before its data");

/* The object is the head of the block, so giving the block back is freeing it. The type goes last: it is needed to
 * get here. */
static void block_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  xlac_runtime_give((char *)self + RESULT_BASE_BYTES);
  Py_DECREF(type);
}

/* No traverse and no weak references: the object has room for a PyObject's head and nothing else. */
static PyType_Slot block_slots[] = {
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_tp_doc, "The memory of a result: goes back to xlac for the next call when no array needs it any more."},
    {0, NULL},
};

PyType_Spec py_block_spec = {
    .name = "xlac._core.Block",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = block_slots,
};

/* Raises OutOfMemoryError, a MemoryError, with what was too large; NULL. */
static PyObject *result_out_of_memory(py_state *st, const py_leaf *leaf) {
  xlac_error err = {.code = 600};
  char *text = xlac_type_print(leaf->type, false);
  PyOS_snprintf(err.message, sizeof err.message, "out of memory: a result of type %.200s needs %zu bytes",
                text ? text : "?", leaf->bytes);
  xlac_free(text);
  return py_raise(st, &err, PY_ANY);
}

/* NPY_ARRAY_CARRAY without a base would leave the memory without owner: until PyArray_SetBaseObject has stolen the
 * base, a failure must give the block back itself. */
PyObject *py_result_array(py_state *st, const py_leaf *leaf) {
  assert(leaf->descr);
  void **numpy = py_numpy(st);
  if (numpy == NULL) return NULL;
  char *block = NULL;
  if (leaf->bytes >= RESULT_BLOCK_BYTES &&
      (block = xlac_runtime_take_headed(st->runtime, RESULT_BASE_BYTES, leaf->bytes)) == NULL)
    return result_out_of_memory(st, leaf);
  Py_INCREF(leaf->descr);
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, leaf->descr, leaf->rank, leaf->dims, NULL, block,
                                         block ? NPY_ARRAY_CARRAY : 0, NULL);
  if (block == NULL) return array;
  if (array == NULL) {
    xlac_runtime_give(block);
    return NULL;
  }
  PyObject *base = PyObject_Init((PyObject *)(void *)(block - RESULT_BASE_BYTES), st->block_type);
  if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) Py_CLEAR(array);
  return array;
}

/* Nesting is that of a type, which is bounded. On failure the rest of the leaves is released. The reference of
 * each leaf moves into the structure; NULL where there was no array (a token) gives None. */
static PyObject *result_part(const py_executable *self, PyObject **leaves, uint32_t *node, uint32_t *leaf) {
  int32_t kind = self->nodes[(*node)++];
  if (kind < 0) {
    PyObject *one = leaves[*leaf];
    leaves[(*leaf)++] = NULL;
    return one ? one : Py_NewRef(Py_None);
  }
  PyObject *tuple = PyTuple_New(kind);
  for (int32_t i = 0; tuple && i < kind; i++) {
    PyObject *part = result_part(self, leaves, node, leaf);
    if (part == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, part);
  }
  return tuple;
}

/* A bare array where the result is not a tuple. */
PyObject *py_result_of(const py_executable *self, PyObject **leaves) {
  assert(leaves);
  uint32_t node = self->result_node, leaf = 0;
  PyObject *result = result_part(self, leaves, &node, &leaf);
  for (uint32_t i = 0; i < self->n_results; i++) Py_CLEAR(leaves[i]);
  return result;
}
