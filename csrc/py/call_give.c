/* Arguments marked with xlac.donate: their memory becomes that of a result, where the program says which. What can't be
 * given away is lent like any other, and a DonationWarning says why. */
#include "buffer.h"
#include "executable.h"

static const char give_memory[] = "xlac.given";

static void give_release(PyObject *capsule) {
  xlac_memory *m = PyCapsule_GetPointer(capsule, give_memory);
  if (m == NULL) return;
  if (m->release) m->release(m->ctx);
  PyMem_Free(m);
}

/* 1, or -1 where warnings are errors. */
static int give_warn(const py_executable *self, uint32_t param, const char *why) {
  PyObject *module = PyImport_ImportModule("xlac.errors");
  PyObject *category = module ? PyObject_GetAttrString(module, "DonationWarning") : NULL;
  int status = -1;
  if (category)
    status = PyErr_WarnFormat(category, 1, "argument %u (%U) is lent, not given away: %s", param,
                              PyTuple_GET_ITEM(self->names, param), why);
  Py_XDECREF(category);
  Py_XDECREF(module);
  return status < 0 ? -1 : 1;
}

static uint32_t give_result_of(const py_executable *self, uint32_t leaf) {
  for (uint32_t i = 0; i < self->n_results; i++)
    if (self->over[i] == leaf) return i;
  return UINT32_MAX;
}

static const char *give_buffer_obstacle(const py_leaf *leaf, const xlac_buffer_info *info) {
  xlac_type_info type;
  xlac_type_get(leaf->type, &type);
  if (info->dtype != type.dtype) return "its dtype is another one";
  bool same = (int)info->rank == leaf->rank;
  for (uint32_t i = 0; same && i < info->rank; i++) same = info->dims[i] == leaf->dims[i];
  if (!same) return "its shape is another one";
  if (info->readonly) return "it is read-only";
  if (info->views) return "views of it are alive";
  return info->dense && info->aligned ? NULL : "it is not contiguous and aligned";
}

static py_given *give_new(py_gifts *g) {
  py_given *grown = PyMem_Realloc(g->v, (g->n + 1u) * sizeof *grown);
  if (grown == NULL) return (py_given *)PyErr_NoMemory();
  g->v = grown;
  memset(&grown[g->n], 0, sizeof *grown);
  return &grown[g->n++];
}

static int give_array(const py_executable *self, py_gifts *g, uint32_t leaf, uint32_t param, PyObject *value,
                      void **data) {
  const char *why = py_array_obstacle(&self->leaves[leaf], (PyArrayObject *)value);
  if (why) return give_warn(self, param, why);
  py_given *given = give_new(g);
  if (given == NULL) return -1;
  given->result = give_result_of(self, leaf);
  given->base = Py_NewRef(value);
  *data = given->data = PyArray_DATA((PyArrayObject *)value);
  return 0;
}

static int give_buffer(const py_executable *self, py_state *st, py_gifts *g, uint32_t leaf, uint32_t param,
                       xlac_buffer *b, void **data) {
  xlac_buffer_info info;
  xlac_error err = {.code = 0};
  xlac_buffer_get(b, &info);
  const char *why = info.deleted ? NULL : give_buffer_obstacle(&self->leaves[leaf], &info);
  if (why) return give_warn(self, param, why);
  py_given *given = give_new(g);
  xlac_memory *memory = given ? PyMem_Malloc(sizeof *memory) : NULL;
  if (memory == NULL) return PyErr_NoMemory(), -1;
  if (xlac_buffer_take(b, memory, &err) != 0) {
    PyMem_Free(memory);
    return py_raise(st, &err, PY_ANY), -1;
  }
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

int py_give(const py_executable *self, py_state *st, py_gifts *g, uint32_t leaf, uint32_t param, PyObject *value,
            void **data) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return -1;
  if (self->leaves[leaf].descr == NULL) return 1;
  if (give_result_of(self, leaf) == UINT32_MAX)
    return give_warn(
        self, param,
        "no result takes its memory; Executable.donations lists those that do, compile(donate=...) adds more");
  if (PyArray_Check(value)) return give_array(self, g, leaf, param, value, data);
  return give_buffer(self, st, g, leaf, param, ((py_buffer *)value)->b, data);
}

int py_gifts_results(const py_executable *self, py_state *st, const py_gifts *g, PyObject **arrays) {
  void **numpy = py_numpy(st);
  if (numpy == NULL) return -1;
  for (uint32_t i = 0; i < g->n; i++) {
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

void py_gifts_end(py_gifts *g, bool started) {
  for (uint32_t i = 0; i < g->n; i++) {
    py_given *given = &g->v[i];
    if (given->taken && !started) {
      if (given->base) {
        PyMem_Free(PyCapsule_GetPointer(given->base, give_memory));
        (void)PyCapsule_SetDestructor(given->base, NULL);
      }
      xlac_buffer_give_back(given->taken);
    } else if (given->taken) {
      xlac_buffer_taken_by(given->taken, "a call it was donated to");
    }
    xlac_buffer_release(given->taken);
    Py_XDECREF(given->base);
  }
  PyMem_Free(g->v);
  *g = (py_gifts){NULL, 0};
}
