/* Arrays for results. Large ones lie on blocks of the runtime's, which go back to it when the array dies: the array's
 * base is an object that lives in the block itself, before the data, so it costs no allocation. */
#include "executable.h"

enum {
  RESULT_BLOCK_BYTES = 2048, /* smaller arrays have their memory from NumPy, which keeps some as well */
  RESULT_BASE_BYTES = XLAC_BLOCK_HEADER
};
_Static_assert(sizeof(PyObject) <= RESULT_BASE_BYTES, "the base of an array fits in before its data");

static void block_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  xlac_runtime_give((char *)self + RESULT_BASE_BYTES);
  Py_DECREF(type);
}

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

static PyObject *result_out_of_memory(py_state *st, const py_leaf *leaf) {
  xlac_error err = {.code = 600};
  char *text = xlac_type_print(leaf->type, false);
  PyOS_snprintf(err.message, sizeof err.message, "out of memory: a result of type %.200s needs %zu bytes",
                text ? text : "?", leaf->bytes);
  xlac_free(text);
  return py_raise(st, &err, PY_ANY);
}

PyObject *py_result_array(py_state *st, const py_leaf *leaf) {
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

/* Nesting is that of a type, which is bounded. On failure the rest of the leaves is released. */
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

PyObject *py_result_of(const py_executable *self, PyObject **leaves) {
  uint32_t node = self->result_node, leaf = 0;
  PyObject *result = result_part(self, leaves, &node, &leaf);
  for (uint32_t i = 0; i < self->n_results; i++) Py_CLEAR(leaves[i]);
  return result;
}
