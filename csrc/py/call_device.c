/* Calls whose results are Buffers in memory that the host doesn't see, a GPU's: arguments that lie there are used where
 * they are, others are copied there. A status of 1 means "by values", as in call.c. */
#include "buffer.h"
#include "executable.h"

/* One call on its way. What is lent and donated is the input's. */
typedef struct device_call {
  const py_executable *self;
  py_state *st;
  const py_call *call;
  xlac_input *in;
  PyObject *keep; /* a list: what converted arguments lie in */
  uint32_t node, leaf;
  bool checked; /* no memory is given twice */
} device_call;

static bool device_fits(const py_leaf *leaf, uint32_t dtype, uint32_t rank, const int64_t *dims) {
  xlac_type_info type;
  xlac_type_get(leaf->type, &type);
  bool same = dtype == type.dtype && (int)rank == leaf->rank;
  for (uint32_t d = 0; same && d < rank; d++) same = dims[d] == leaf->dims[d];
  return same;
}

static bool device_buffer_fits(const py_leaf *leaf, PyObject *buffer) {
  xlac_buffer_info info;
  xlac_buffer_get(((py_buffer *)buffer)->b, &info);
  return device_fits(leaf, info.dtype, info.rank, info.dims);
}

static void device_release_value(void *ctx) {
  xlac_value_release(ctx);
}

/* The object as a Buffer on the host, of just the leaf's type: 1 where it is of another one. */
static int device_convert(device_call *c, uint32_t leaf, uint32_t param, PyObject *object, xlac_buffer **out) {
  char what[160];
  xlac_value *v = NULL;
  xlac_value_info info;
  xlac_error err = {.code = 0};
  const py_leaf *want = &c->self->leaves[leaf];
  PyOS_snprintf(what, sizeof what, "argument %u (%.100s)", param,
                PyUnicode_AsUTF8(PyTuple_GET_ITEM(c->self->names, param)));
  if (py_to_value(c->st, object, want->type, what, c->keep, &v) < 0) return -1;
  xlac_value_get(v, &info);
  if (info.kind != XLAC_VALUE_ARRAY || !device_fits(want, info.dtype, info.rank, info.dims)) {
    xlac_value_release(v);
    return 1;
  }
  xlac_layout layout = {.dtype = info.dtype, .rank = info.rank, .dims = info.dims, .readonly = true};
  xlac_memory memory = {(void *)(uintptr_t)info.data, device_release_value, v};
  if (xlac_buffer_wrap(out, NULL, &layout, &memory, &err) == 0) return 0;
  xlac_value_release(v);
  return py_raise(c->st, &err, PY_ANY), -1;
}

/* As a Buffer where it lies, if that is in a GPU's memory: kept until the call is over. A new reference to the object
 * itself otherwise; NULL with an exception. */
static PyObject *device_found(device_call *c, PyObject *object) {
  if (py_is_buffer(c->st, object) || !py_lies_on_gpu(c->st, object)) return Py_NewRef(object);
  xlac_buffer *b = py_buffer_from_dlpack(c->st, object, PY_COPY_IF_NEEDED, false);
  PyObject *found = b ? py_wrap_buffer(c->st, b) : NULL;
  if (found && PyList_Append(c->keep, found) < 0) Py_CLEAR(found);
  return found;
}

static int device_lend(device_call *c, uint32_t leaf, uint32_t param, PyObject *given) {
  xlac_buffer *b = NULL;
  xlac_error err = {.code = 0};
  PyObject *object = device_found(c, given);
  if (object == NULL) return -1;
  int status = 0;
  if (py_is_buffer(c->st, object) && device_buffer_fits(&c->self->leaves[leaf], object))
    b = xlac_buffer_retain(((py_buffer *)object)->b);
  else
    status = device_convert(c, leaf, param, object, &b);
  Py_DECREF(object);
  if (status) return status;
  status = xlac_input_lend(c->in, leaf, b, &err);
  xlac_buffer_release(b);
  return status ? (py_raise(c->st, &err, PY_ANY), -1) : 0;
}

/* Only memory of the program's own device can become a result's. */
static int device_give(device_call *c, uint32_t leaf, uint32_t param, PyObject *value) {
  xlac_error err = {.code = 0};
  const char *why = NULL;
  xlac_buffer_info info = {.device = NULL};
  bool required = c->call->required || c->self->required;
  if (!c->checked && py_gifts_check(c->self, c->st, c->call) < 0) return -1;
  c->checked = true;
  if (py_is_buffer(c->st, value)) xlac_buffer_get(((py_buffer *)value)->b, &info);
  if (info.device != xlac_executable_memory(c->self->exe)) why = "it lies in other memory than the program's results";
  int status = info.deleted ? 0 : py_give_refused(c->self, c->st, required, leaf, param, value, why);
  if (status) return status < 0 ? -1 : device_lend(c, leaf, param, value);
  if (xlac_input_donate(c->in, leaf, ((py_buffer *)value)->b, &err) == 0) return 0;
  return py_raise(c->st, &err, PY_ANY), -1;
}

/* Nesting is that of a type, which is bounded. */
static int device_argument(device_call *c, uint32_t param, PyObject *object) {
  int32_t kind = c->self->nodes[c->node++];
  if (kind == PY_NODE_TOKEN) {
    c->leaf++;
    return object != Py_None;
  }
  if (kind == PY_NODE_ARRAY && Py_IS_TYPE(object, c->st->donation_type))
    return device_give(c, c->leaf++, param, ((py_donation *)object)->value);
  if (kind == PY_NODE_ARRAY) return device_lend(c, c->leaf++, param, object);
  PyObject *parts = PyTuple_Check(object) || PyList_Check(object) ? PySequence_Tuple(object) : NULL;
  if (parts == NULL) return PyErr_Occurred() ? -1 : 1;
  int status = PyTuple_GET_SIZE(parts) == kind ? PyList_Append(c->keep, parts) : 1;
  for (int32_t i = 0; status == 0 && i < kind; i++) status = device_argument(c, param, PyTuple_GET_ITEM(parts, i));
  Py_DECREF(parts);
  return status;
}

/* The results as the program's structure of Buffers. */
static PyObject *device_results(device_call *c, xlac_buffer **results) {
  uint32_t n = c->self->n_results;
  PyObject **leaves = PyMem_Calloc(n + 1u, sizeof *leaves), *out = NULL;
  bool ok = leaves != NULL;
  for (uint32_t i = 0; i < n; i++) {
    if (ok && results[i])
      ok = (leaves[i] = py_wrap_buffer(c->st, results[i])) != NULL;
    else
      xlac_buffer_release(results[i]);
  }
  if (ok)
    out = py_result_of(c->self, leaves);
  else if (leaves == NULL)
    PyErr_NoMemory();
  for (uint32_t i = 0; leaves && i < n; i++) Py_XDECREF(leaves[i]);
  PyMem_Free(leaves);
  return out;
}

static PyObject *device_run(device_call *c) {
  xlac_buffer **results = PyMem_Calloc(c->self->n_results + 1u, sizeof *results);
  xlac_interpret_options options = c->call->options;
  xlac_error err = {.code = 0};
  py_run run = {.st = c->st, .m = xlac_executable_module(c->self->exe), .progress = c->call->progress};
  PyObject *out = NULL;
  if (results == NULL) return PyErr_NoMemory();
  if (py_run_begin(&run, &options) == 0 &&
      py_run_end(&run, xlac_executable_run_input(c->self->exe, &options, c->in, results, &err), &err) == 0)
    out = device_results(c, results);
  PyMem_Free(results);
  return out;
}

PyObject *py_call_on_device(py_executable *self, const py_call *call) {
  device_call c = {.self = self, .st = py_state_of((PyObject *)self), .call = call, .keep = PyList_New(0)};
  xlac_error err = {.code = 0};
  PyObject *result = NULL;
  int status = c.keep ? 0 : -1;
  if (status == 0 && call->n != self->n_params) status = 1;
  if (status == 0 && xlac_input_create(&c.in, self->exe, &err) != 0) status = (py_raise(c.st, &err, PY_ANY), -1);
  for (uint32_t i = 0; status == 0 && i < call->n; i++) status = device_argument(&c, i, call->args[i]);
  if (status == 0) result = device_run(&c);
  xlac_input_destroy(c.in);
  Py_XDECREF(c.keep);
  return status > 0 ? py_results_as_buffers(py_state_of((PyObject *)self), py_call_values(self, call)) : result;
}
