/* The Python type ClusteredGraph, on which python/xlac/clusters.py builds, conversions of GraphDefs, and
 * TensorFlow graphs as modules.
 *
 * Nothing here knows TensorFlow: graphs are bytes and names, and what comes back is text, numbers and names.
 * Strings for the library are borrowed from Python's objects, which the arguments keep alive for the call. */
#include "clusters.h"

#include <string.h>

#include "py.h"

/* --- graphs as modules --- */

/* More than any graph was seen to have. */
enum { MOST_LOWERED_DIMS = 64 };

/* The inputs and fetches of a graph as C arrays, allocated by PyMem; dims has a row for each input. Freed by
 * free_lowered in whatever state. */
typedef struct lowered_inputs {
  Py_ssize_t n, n_fetches;
  xlac_graph_input *inputs;
  int64_t (*dims)[MOST_LOWERED_DIMS];
  const char **fetches;
} lowered_inputs;

/* 0, or -1 with an exception. Whether the sizes are sound the library says. */
static int read_lowered_dims(PyObject *tuple, int64_t *dims, uint32_t *rank) {
  assert(dims && rank);
  Py_ssize_t n = PyTuple_Size(tuple);
  if (n < 0) return -1;
  if (n > MOST_LOWERED_DIMS) {
    PyErr_SetString(PyExc_ValueError, "an input has too many dimensions");
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    dims[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  *rank = (uint32_t)n;
  return 0;
}

/* (tensor, dtype or None, dims, data or None, variable). The data must be as long as its shape takes: the library
 * reads just that much. Where the product of the sizes overflows, it refuses the shape before it reads. */
static int read_lowered_input(PyObject *item, xlac_graph_input *in, int64_t *dims) {
  assert(in && dims);
  const char *dtype = NULL, *data = NULL;
  Py_ssize_t n_data = 0;
  PyObject *shape;
  int variable = 0;
  if (!PyArg_ParseTuple(item, "szO!z#p:input", &in->tensor, &dtype, &PyTuple_Type, &shape, &data, &n_data, &variable))
    return -1;
  if (read_lowered_dims(shape, dims, &in->rank) < 0) return -1;
  in->dims = dims;
  in->variable = variable != 0;
  in->unset = dtype == NULL;
  in->data = data;
  in->dtype = dtype ? xlac_dtype_from_text(dtype) : 0;
  if (dtype && in->dtype == 0) {
    PyErr_Format(PyExc_ValueError, "'%.60s' is not an element type", dtype);
    return -1;
  }
  size_t bytes = xlac_dtype_bytes(in->dtype);
  for (uint32_t i = 0; i < in->rank; i++) bytes *= (size_t)dims[i];
  if (data == NULL || bytes == (size_t)n_data) return 0;
  PyErr_Format(PyExc_ValueError, "the data of input '%.100s' has %zd bytes, its shape takes %zu", in->tensor, n_data,
               bytes);
  return -1;
}

/* The strings belong to Python's objects. */
static void free_lowered(lowered_inputs *all) {
  PyMem_Free(all->inputs);
  PyMem_Free(all->dims);
  PyMem_Free(all->fetches);
}

/* -1 with an exception; free_lowered follows in either case. */
static int read_lowered(PyObject *inputs, PyObject *fetches, lowered_inputs *all) {
  assert(all->inputs == NULL && all->fetches == NULL);
  all->n = PyTuple_Size(inputs);
  all->n_fetches = PyTuple_Size(fetches);
  if (all->n < 0 || all->n_fetches < 0) return -1;
  all->inputs = PyMem_Calloc((size_t)all->n + 1, sizeof *all->inputs);
  all->dims = PyMem_Calloc((size_t)all->n + 1, sizeof *all->dims);
  all->fetches = PyMem_Calloc((size_t)all->n_fetches + 1, sizeof *all->fetches);
  if (!all->inputs || !all->dims || !all->fetches) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < all->n; i++)
    if (read_lowered_input(PyTuple_GetItem(inputs, i), &all->inputs[i], all->dims[i]) < 0) return -1;
  for (Py_ssize_t i = 0; i < all->n_fetches; i++) {
    all->fetches[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(fetches, i), NULL);
    if (all->fetches[i] == NULL) return -1;
  }
  return 0;
}

/* (module, report as text), or NULL with an exception. */
static PyObject *run_lower(py_state *st, PyObject *graph, xlac_graph_format format, const lowered_inputs *all) {
  xlac_error err = {.code = 0};
  PyObject *holder;
  const char *bytes;
  char *report = NULL;
  Py_ssize_t n;
  size_t n_report = 0;
  xlac_module *m = NULL;
  if (py_source(graph, &holder, &bytes, &n) < 0) return NULL;
  int status = xlac_graph_lower(&m, bytes, (size_t)n, format, (uint32_t)all->n, all->inputs, (uint32_t)all->n_fetches,
                                all->fetches, &report, &n_report, &err);
  Py_DECREF(holder);
  if (status != 0) return py_raise(st, &err, PY_ANY);
  PyObject *module = py_wrap_module(st, m), *text = py_text(report, (Py_ssize_t)n_report);
  PyObject *both = module && text ? PyTuple_Pack(2, module, text) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(text);
  return both;
}

/* Formats that are not names count as "auto": xlac.lower_graph has checked them. */
PyObject *py_lower_graph(PyObject *core, PyObject *args) {
  PyObject *graph, *inputs, *fetches;
  const char *format;
  lowered_inputs all = {.n = 0};
  if (!PyArg_ParseTuple(args, "OsO!O!:lower_graph", &graph, &format, &PyTuple_Type, &inputs, &PyTuple_Type, &fetches))
    return NULL;
  xlac_graph_format number = strcmp(format, "text") == 0    ? XLAC_GRAPH_TEXT
                             : strcmp(format, "proto") == 0 ? XLAC_GRAPH_PROTO
                                                            : XLAC_GRAPH_AUTO;
  PyObject *result =
      read_lowered(inputs, fetches, &all) < 0 ? NULL : run_lower(PyModule_GetState(core), graph, number, &all);
  free_lowered(&all);
  return result;
}

/* True, False, or NULL with an exception for what is not a str. */
PyObject *py_has_lowering(PyObject *core, PyObject *op) {
  (void)core;
  const char *name = PyUnicode_AsUTF8AndSize(op, NULL);
  return name ? PyBool_FromLong(xlac_graph_has_lowering(name)) : NULL;
}

/* --- the type --- */

/* The library's handle is never NULL, and does not change: methods read it, and sessions lock it (session.c). It
 * belongs to one thread at a time, which the GIL sees to but while a step runs. */
typedef struct py_clusters {
  PyObject_HEAD xlac_clusters *c;
} py_clusters;

static xlac_clusters *clusters_of(PyObject *self) {
  assert(((py_clusters *)self)->c);
  return ((py_clusters *)self)->c;
}

xlac_clusters *py_clusters_handle(PyObject *clusters) {
  return clusters_of(clusters);
}

/* Sessions have a reference to this object, so none is left that uses the handle. */
static void clusters_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  xlac_clusters_destroy(clusters_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

/* Names in graphs may be any bytes: those that are not UTF-8 come as surrogates, and go back the same way. */
static PyObject *text_or_none(const char *s) {
  if (s == NULL) Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "surrogateescape");
}

/* (name, op, device, cluster, candidate, deadness, scope). "N" steals each part, and the whole is NULL where one
 * of them is. */
static PyObject *node_tuple(const xlac_clustered_node *n) {
  return Py_BuildValue("(NNNNNKN)", text_or_none(n->name), text_or_none(n->op), text_or_none(n->device),
                       text_or_none(n->cluster), PyBool_FromLong(n->candidate), (unsigned long long)n->deadness,
                       text_or_none(n->scope));
}

/* All nodes, by number: a list of tuples, of which python/xlac/clusters.py makes objects when asked. */
static PyObject *clusters_nodes(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  xlac_clustered_node n;
  for (uint32_t i = 0; list && xlac_clusters_node(clusters_of(self), i, &n); i++) {
    PyObject *item = node_tuple(&n);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* Only nodes that are in a cluster; what most callers want. */
static PyObject *clusters_assignment(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *dict = PyDict_New();
  xlac_clustered_node n;
  for (uint32_t i = 0; dict && xlac_clusters_node(clusters_of(self), i, &n); i++) {
    if (n.cluster == NULL) continue;
    PyObject *name = text_or_none(n.name), *cluster = text_or_none(n.cluster);
    if (name == NULL || cluster == NULL || PyDict_SetItem(dict, name, cluster) < 0) Py_CLEAR(dict);
    Py_XDECREF(name);
    Py_XDECREF(cluster);
  }
  return dict;
}

/* Nodes by number; an output or input of -1 is a control edge's. */
static PyObject *clusters_edges(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *list = PyList_New(0);
  xlac_graph_edge e;
  for (uint32_t i = 0; list && xlac_clusters_edge(clusters_of(self), i, &e); i++) {
    PyObject *item = Py_BuildValue("(IiIi)", e.src, e.src_output, e.dst, e.dst_input);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* Numbers beyond 32 bits become one that no node has, so that the library says so. */
static PyObject *clusters_deadness(PyObject *self, PyObject *number) {
  unsigned long i = PyLong_AsUnsignedLong(number);
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (i == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  if (xlac_clusters_deadness(clusters_of(self), i > UINT32_MAX ? UINT32_MAX : (uint32_t)i, &text, &n, &err) != 0)
    return py_raise(py_state_of(self), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

/* The pairs lie one after another, and are freed here. */
static PyObject *clusters_unsafe_pairs(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  uint32_t *pairs = NULL;
  size_t n = 0;
  if (xlac_clusters_unsafe_pairs(clusters_of(self), &pairs, &n, &err) != 0)
    return py_raise(py_state_of(self), &err, PY_ANY);
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (size_t i = 0; list && i < n; i++) {
    PyObject *item = Py_BuildValue("(II)", pairs[2 * i], pairs[2 * i + 1]);
    if (item == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)i, item);
  }
  xlac_free(pairs);
  return list;
}

/* One node: why it is where it is; two: why they are not together. */
static PyObject *clusters_why(PyObject *self, PyObject *args) {
  const char *a, *b = NULL;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (!PyArg_ParseTuple(args, "s|z:why", &a, &b)) return NULL;
  int status = b ? xlac_clusters_why_not(clusters_of(self), a, b, &text, &n, &err)
                 : xlac_clusters_why(clusters_of(self), a, &text, &n, &err);
  return status == 0 ? py_text(text, (Py_ssize_t)n) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* Takes what the library wrote, and frees it. */
static PyObject *give_bytes(char *bytes, size_t n, bool text) {
  assert(bytes || n == 0);
  PyObject *object = text ? NULL : PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
  if (text) return py_text(bytes, (Py_ssize_t)n);
  xlac_free(bytes);
  return object;
}

/* `how` comes from xlac.ClusteredGraph, which knows three words; any other means "marked". */
static PyObject *clusters_write(PyObject *self, PyObject *args) {
  int text;
  const char *how = "marked";
  xlac_error err = {.code = 0};
  char *bytes = NULL;
  size_t n = 0;
  if (!PyArg_ParseTuple(args, "p|s:write", &text, &how)) return NULL;
  xlac_graph_format format = text ? XLAC_GRAPH_TEXT : XLAC_GRAPH_PROTO;
  int status =
      strcmp(how, "annotated") == 0      ? xlac_clusters_write_annotated(clusters_of(self), format, &bytes, &n, &err)
      : strcmp(how, "encapsulated") == 0 ? xlac_clusters_write_encapsulated(clusters_of(self), format, &bytes, &n, &err)
                                         : xlac_clusters_write(clusters_of(self), format, &bytes, &n, &err);
  return status == 0 ? give_bytes(bytes, n, text != 0) : py_raise(py_state_of(self), &err, PY_ANY);
}

/* Seconds on the clock, of the one time that the graph was clustered. */
static PyObject *clusters_times(PyObject *self, PyObject *unused) {
  (void)unused;
  xlac_cluster_times t;
  xlac_clusters_times(clusters_of(self), &t);
  return Py_BuildValue("{sdsdsd}", "read", t.read_seconds, "import", t.import_seconds, "cluster", t.cluster_seconds);
}

static PyMethodDef clusters_methods[] = {
    {"times", clusters_times, METH_NOARGS, "{\"read\", \"import\", \"cluster\"}: seconds"},
    {"nodes", clusters_nodes, METH_NOARGS, "[(name, op, device, cluster, candidate, deadness, scope)], by number"},
    {"assignment", clusters_assignment, METH_NOARGS, "{node: cluster} of the nodes that are in one"},
    {"edges", clusters_edges, METH_NOARGS, "[(src, src_output, dst, dst_input)], by number; -1 for control"},
    {"deadness", clusters_deadness, METH_O, "deadness(number): when the node is alive, as a formula"},
    {"unsafe_pairs", clusters_unsafe_pairs, METH_NOARGS,
     "[(before, after)]: resource ops that may not share a cluster"},
    {"why", clusters_why, METH_VARARGS,
     "why(node, other=None): why it is in its cluster or in none; why not with the other"},
    {"write", clusters_write, METH_VARARGS,
     "write(text, how='marked'): the GraphDef as bytes or as text: with the clusters' marks, with nodes named by "
     "cluster\n"
     "('annotated'), or with functions in the clusters' place ('encapsulated')"},
    {"session", PY_KEYWORDS(py_clusters_session), "session(**options): a GraphSession"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot clusters_slots[] = {
    {Py_tp_dealloc, clusters_dealloc},
    {Py_tp_methods, clusters_methods},
    {Py_tp_doc, "A clustered GraphDef. Use it through xlac.cluster."},
    {0, NULL},
};

PyType_Spec py_clusters_spec = {
    .name = "xlac._core.ClusteredGraph",
    .basicsize = sizeof(py_clusters),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = clusters_slots,
};

/* --- functions --- */

/* 0, or -1 with a ValueError. The word "auto" itself is what tells XLAC_GRAPH_AUTO from a failure. */
static int format_number(const char *name, xlac_graph_format *out) {
  assert(name && out);
  *out = strcmp(name, "text") == 0 ? XLAC_GRAPH_TEXT : strcmp(name, "proto") == 0 ? XLAC_GRAPH_PROTO : XLAC_GRAPH_AUTO;
  if (*out != XLAC_GRAPH_AUTO || strcmp(name, "auto") == 0) return 0;
  PyErr_Format(PyExc_ValueError, "format %.60s is unknown: there are auto, proto and text", name);
  return -1;
}

/* Clustering a large graph takes long, so it goes without the GIL and heeds Ctrl-C. The flags' strings are
 * borrowed for the call. */
static PyObject *run_cluster(py_state *st, const char *bytes, Py_ssize_t n, xlac_graph_format format,
                             const xlac_cluster_flags *flags) {
  assert(bytes && flags);
  xlac_error err = {.code = 0};
  xlac_clusters *c = NULL;
  int status;
  PY_WORK(status = xlac_cluster_graph(&c, bytes, (size_t)n, format, flags, &err));
  if (status != 0) return py_raise(st, &err, PY_ANY);
  py_clusters *self = PyObject_New(py_clusters, st->clusters_type);
  if (self == NULL) {
    xlac_clusters_destroy(c);
    return NULL;
  }
  self->c = c;
  return (PyObject *)self;
}

/* --- devices={"TPU": {"compilation_device": "XLA_CPU_JIT", ...}} --- */

/* Where a registration has its flags, by name. */
typedef struct device_flag {
  const char *key;
  bool *at;
} device_flag;
enum { DEVICE_FLAGS = 9 };

/* By name, to read and to write: there is one list, so no flag can be forgotten in one direction. */
static void list_device_flags(xlac_device_registration *d, device_flag rows[DEVICE_FLAGS]) {
  const device_flag list[DEVICE_FLAGS] = {
      {"cluster_resource_variable_ops_unsafely", &d->cluster_resource_variable_ops_unsafely},
      {"cluster_stack_ops", &d->cluster_stack_ops},
      {"cluster_tensor_array_ops", &d->cluster_tensor_array_ops},
      {"cluster_stateful_rng_ops", &d->cluster_stateful_rng_ops},
      {"cluster_control_trigger", &d->cluster_control_trigger},
      {"elide_assert_and_checknumerics", &d->elide_assert_and_checknumerics},
      {"cluster_variant_ops", &d->cluster_variant_ops},
      {"cluster_slow_ops", &d->cluster_slow_ops},
      {"cluster_inaccurate_ops", &d->cluster_inaccurate_ops},
  };
  memcpy(rows, list, sizeof list);
}

/* 0, or -1 with an exception, also for a name that is not a flag's. */
static int read_device_flag(xlac_device_registration *d, const char *key, PyObject *value) {
  assert(d && key);
  device_flag rows[DEVICE_FLAGS];
  int is_true = PyObject_IsTrue(value);
  if (is_true < 0) return -1;
  list_device_flags(d, rows);
  for (int i = 0; i < DEVICE_FLAGS; i++) {
    if (strcmp(rows[i].key, key) != 0) continue;
    *rows[i].at = is_true != 0;
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "a device's registration has no field %.60s", key);
  return -1;
}

/* In the order of xlac_autoclustering_policy. */
static const char *const policy_names[] = {"if_enabled_globally", "if_explicitly_requested", "always"};

/* 0, or -1 with an exception. */
static int read_policy(xlac_device_registration *d, PyObject *value) {
  const char *text = PyUnicode_AsUTF8(value);
  if (text == NULL) return -1;
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, policy_names[i]) != 0) continue;
    d->autoclustering_policy = (xlac_autoclustering_policy)i;
    return 0;
  }
  PyErr_Format(PyExc_ValueError,
               "autoclustering_policy is if_enabled_globally, if_explicitly_requested or always, not %s", text);
  return -1;
}

/* One registration, in the words of device_dict; the strings are borrowed. 0, or -1 with an exception. */
static int read_device(xlac_device_registration *d, PyObject *type, PyObject *fields) {
  assert(d);
  PyObject *key, *value;
  Py_ssize_t at = 0;
  *d = (xlac_device_registration){.type = PyUnicode_AsUTF8(type), .compilation_device = "XLA_CPU_JIT"};
  if (d->type == NULL) return -1;
  if (!PyDict_Check(fields)) {
    PyErr_Format(PyExc_TypeError, "the registration of device %s is a dict, not %s", d->type, Py_TYPE(fields)->tp_name);
    return -1;
  }
  while (PyDict_Next(fields, &at, &key, &value)) {
    const char *name = PyUnicode_AsUTF8(key);
    if (name == NULL) return -1;
    if (strcmp(name, "compilation_device") == 0) {
      d->compilation_device = PyUnicode_AsUTF8(value);
      if (d->compilation_device == NULL) return -1;
    } else if ((strcmp(name, "autoclustering_policy") == 0 ? read_policy(d, value) : read_device_flag(d, name, value)) <
               0)
      return -1;
  }
  return 0;
}

/* Memory for the registrations (PyMem), which refer to strings of `devices`; NULL with an exception, or for none.
 * Since NULL may mean either, the caller asks PyErr_Occurred. */
static xlac_device_registration *read_devices(PyObject *devices, size_t *n) {
  PyObject *type, *fields;
  Py_ssize_t at = 0;
  *n = 0;
  if (devices == NULL || devices == Py_None) return NULL;
  if (!PyDict_Check(devices)) {
    PyErr_SetString(PyExc_TypeError, "devices is a dict of device types to dicts of their registrations");
    return NULL;
  }
  xlac_device_registration *list = PyMem_Calloc((size_t)PyDict_Size(devices) + 1, sizeof *list);
  if (list == NULL) return (xlac_device_registration *)PyErr_NoMemory();
  while (PyDict_Next(devices, &at, &type, &fields)) {
    if (read_device(&list[*n], type, fields) < 0) {
      PyMem_Free(list);
      return NULL;
    }
    ++*n;
  }
  return list;
}

/* Flags that are not given stay as xlac_cluster_flags_init has them, so that their defaults are written down once.
 * The graph may be text or bytes; py_source says which and keeps it alive. */
PyObject *py_cluster(PyObject *core, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"graph",
                          "format",
                          "min_cluster_size",
                          "max_cluster_size",
                          "clustering_fuel",
                          "auto_jit",
                          "auto_jit_single_gpu",
                          "global_jit_level",
                          "ops_to_cluster",
                          "cluster_exclude_ops",
                          "session_name",
                          "default_device",
                          "cpu_global_jit",
                          "session_cpu_global_jit",
                          "deterministic_cluster_names",
                          "disable_deadness_safety_checks_for_debugging",
                          "disable_resource_variable_safety_checks_for_debugging",
                          "cluster_scoping",
                          "partially_decluster",
                          "clone_constants",
                          "devices",
                          NULL};
  py_state *st = PyModule_GetState(core);
  PyObject *object, *holder, *devices = NULL;
  const char *format = "auto", *bytes;
  Py_ssize_t n;
  xlac_cluster_flags f;
  xlac_graph_format number;
  xlac_cluster_flags_init(&f);
  long long min = f.min_cluster_size, max = f.max_cluster_size, fuel = f.clustering_fuel, jit = 0, single = 0,
            level = f.global_jit_level;
  int b[8] = {f.cpu_global_jit};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$sLLLLLLssssppppppppO:cluster", names, &object, &format, &min, &max,
                                   &fuel, &jit, &single, &level, &f.ops_to_cluster, &f.cluster_exclude_ops,
                                   &f.session_name, &f.default_device, &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6],
                                   &b[7], &devices))
    return NULL;
  if (format_number(format, &number) < 0) return NULL;
  xlac_device_registration *registered = read_devices(devices, &f.n_devices);
  if (PyErr_Occurred() || py_source(object, &holder, &bytes, &n) < 0) {
    PyMem_Free(registered);
    return NULL;
  }
  f.devices = registered;
  f.min_cluster_size = min;
  f.max_cluster_size = max;
  f.clustering_fuel = fuel;
  f.auto_jit = jit;
  f.auto_jit_single_gpu = single;
  f.global_jit_level = level;
  f.cpu_global_jit = b[0];
  f.session_cpu_global_jit = b[1];
  f.deterministic_cluster_names = b[2];
  f.disable_deadness_safety_checks_for_debugging = b[3];
  f.disable_resource_variable_safety_checks_for_debugging = b[4];
  f.cluster_scoping = b[5];
  f.partially_decluster = b[6];
  f.clone_constants = b[7];
  PyObject *result = run_cluster(st, bytes, n, number, &f);
  PyMem_Free(registered);
  Py_DECREF(holder);
  return result;
}

/* Text to bytes or back, without looking at what the graph means. */
PyObject *py_graph_convert(PyObject *core, PyObject *args) {
  PyObject *object, *holder;
  const char *from, *to, *bytes;
  xlac_graph_format from_number, to_number;
  xlac_error err = {.code = 0};
  Py_ssize_t n;
  char *out = NULL;
  size_t n_out = 0;
  if (!PyArg_ParseTuple(args, "Oss:graph_convert", &object, &from, &to)) return NULL;
  if (format_number(from, &from_number) < 0 || format_number(to, &to_number) < 0) return NULL;
  if (py_source(object, &holder, &bytes, &n) < 0) return NULL;
  int status = xlac_graph_convert(bytes, (size_t)n, from_number, to_number, &out, &n_out, &err);
  Py_DECREF(holder);
  if (status != 0) return py_raise(PyModule_GetState(core), &err, PY_PARSING);
  return give_bytes(out, n_out, to_number == XLAC_GRAPH_TEXT);
}

/* A line for each op, fields apart by tabs. */
PyObject *py_cluster_op_list(PyObject *core, PyObject *unused) {
  (void)unused;
  xlac_error err = {.code = 0};
  char *text = NULL;
  size_t n = 0;
  if (xlac_cluster_op_list(&text, &n, &err) != 0) return py_raise(PyModule_GetState(core), &err, PY_ANY);
  return py_text(text, (Py_ssize_t)n);
}

/* In the words that devices= takes: what this gives can be given back. */
static PyObject *device_dict(xlac_device_registration *d) {
  assert((size_t)d->autoclustering_policy < sizeof policy_names / sizeof *policy_names);
  device_flag rows[DEVICE_FLAGS];
  PyObject *dict = Py_BuildValue("{ssss}", "compilation_device", d->compilation_device, "autoclustering_policy",
                                 policy_names[d->autoclustering_policy]);
  list_device_flags(d, rows);
  for (int i = 0; dict && i < DEVICE_FLAGS; i++)
    if (PyDict_SetItemString(dict, rows[i].key, *rows[i].at ? Py_True : Py_False) < 0) Py_CLEAR(dict);
  return dict;
}

/* {type: registration}, of the devices that TensorFlow registers itself. */
PyObject *py_cluster_devices(PyObject *core, PyObject *unused) {
  (void)core;
  (void)unused;
  PyObject *all = PyDict_New();
  xlac_device_registration d;
  for (uint32_t i = 0; all && xlac_cluster_device(i, &d); i++) {
    PyObject *one = device_dict(&d);
    if (one == NULL || PyDict_SetItemString(all, d.type, one) < 0) Py_CLEAR(all);
    Py_XDECREF(one);
  }
  return all;
}
