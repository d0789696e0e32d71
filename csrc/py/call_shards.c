/* Calls of programs for many devices with shards: a Buffer for each device and leaf, in and out, as stored. What
 * becomes of arrays and of shards that are cut otherwise, xlac.sharded says. */
#include "../include/xlac_network.h"
#include "buffer.h"
#include "executable.h"

/* One call. All lists are by device, by leaf. */
typedef struct shards_call {
  py_executable *self;
  py_state *st;
  xlac_group group;
  uint32_t from, here; /* the devices that are ours: lists have those */
  PyObject *const *in; /* borrowed Buffers */
  void **arguments, **results;
  xlac_buffer **opened; /* lent, to be closed; or NULL */
  xlac_buffer **copies; /* of what lies on another GPU; or NULL */
  xlac_memory *taken;   /* by result; data NULL: new memory */
  xlac_buffer **takers; /* whose memory that was */
  xlac_buffer **out;
  const bool *given; /* by argument leaf */
  bool *apart;       /* by result leaf: each device has its own, though others have the same part */
  uint32_t *like;    /* by result: the one whose Buffer it is */
  uint32_t *over;    /* by argument leaf: the result that takes its memory */
} shards_call;

/* Of a device here. */
static const xlac_device *shards_memory(const shards_call *c, uint32_t device) {
  return xlac_executable_shard_memory(c->self->exe, c->from + device);
}

/* Whether the Buffer is just the shard; an exception says what is wrong with it. */
static bool shards_fit(const shards_call *c, uint32_t leaf, uint32_t device, const xlac_buffer_info *info) {
  xlac_shard shard;
  bool same = xlac_executable_shard(c->self->exe, false, leaf, device, &shard) && info->dtype == shard.dtype &&
              info->rank == shard.rank && info->dense && info->aligned;
  for (uint32_t d = 0; same && d < info->rank; d++) same = info->dims[d] == shard.dims[d];
  if (!same)
    PyErr_Format(PyExc_ValueError, "argument leaf %u: what device %u is given is not its shard, dense and aligned",
                 leaf, device);
  return same;
}

/* A shard that is donated: its memory is that of a result of the same device. */
static int shards_take(shards_call *c, size_t at, uint32_t leaf, uint32_t device, xlac_buffer *b) {
  size_t result = (size_t)device * c->group.n_results + c->over[leaf];
  xlac_error err = {.code = 0};
  if (xlac_buffer_take(b, &c->taken[result], &err) != 0) return py_raise(c->st, &err, PY_ANY), -1;
  c->takers[result] = xlac_buffer_retain(b);
  c->arguments[at] = c->taken[result].data;
  return 0;
}

/* On another GPU than the device's: copied to it. */
static int shards_bring(shards_call *c, size_t at, uint32_t device, xlac_buffer *b) {
  xlac_error err = {.code = 0};
  xlac_buffer_info info;
  if (xlac_buffer_copy_on(&c->copies[at], shards_memory(c, device), c->st->runtime, b, &err) != 0)
    return py_raise(c->st, &err, PY_ANY), -1;
  xlac_buffer_get(c->copies[at], &info);
  xlac_counters_add(c->st->counters, XLAC_COUNT_COPIES_IN, 1);
  xlac_counters_add(c->st->counters, XLAC_COUNT_BYTES_COPIED_IN, (int64_t)info.bytes);
  c->arguments[at] = info.data;
  return 0;
}

static int shards_argument(shards_call *c, size_t at, uint32_t leaf, uint32_t device) {
  xlac_error err = {.code = 0};
  xlac_buffer_info info;
  if (c->in[at] == Py_None) return 0; /* a token */
  if (!py_is_buffer(c->st, c->in[at])) return PyErr_SetString(PyExc_TypeError, "shards are Buffers"), -1;
  xlac_buffer *b = ((py_buffer *)c->in[at])->b;
  xlac_buffer_get(b, &info);
  if (!info.deleted && !shards_fit(c, leaf, device, &info)) return -1;
  if (!info.deleted && info.device && info.device != shards_memory(c, device)) return shards_bring(c, at, device, b);
  if (c->given[leaf]) return shards_take(c, at, leaf, device, b);
  if (xlac_buffer_open(b, &err) != 0) return py_raise(c->st, &err, PY_ANY), -1;
  c->opened[at] = b;
  xlac_buffer_get(b, &info);
  c->arguments[at] = info.data;
  return 0;
}

/* The first device here that has the same part of a result in the host's memory; `device` itself where that is apart.
 */
static uint32_t shards_like(const shards_call *c, const xlac_shard *own, uint32_t leaf, uint32_t device) {
  bool alone = own->first || c->apart[leaf] || shards_memory(c, device);
  for (uint32_t d = 0; d < device && !alone; d++) {
    xlac_shard s;
    if (!xlac_executable_shard(c->self->exe, true, leaf, c->from + d, &s) || s.part != own->part) continue;
    if (shards_memory(c, d) || c->taken[(size_t)d * c->group.n_results + leaf].data) continue;
    if (memcmp(s.start, own->start, own->rank * sizeof *s.start) == 0) return d;
  }
  return device;
}

/* New memory, or what an argument left, or what a device before it has. The Buffer owns it from here on. */
static int shards_result(shards_call *c, size_t at, uint32_t leaf, uint32_t device) {
  xlac_shard s;
  xlac_error err = {.code = 0};
  xlac_buffer_info info;
  int status;
  c->like[at] = (uint32_t)at;
  if (!xlac_executable_shard(c->self->exe, true, leaf, c->from + device, &s)) return 0; /* a token */
  const xlac_device *memory = shards_memory(c, device);
  const xlac_layout layout = {.dtype = s.dtype, .rank = s.rank, .dims = s.dims, .device = memory};
  uint32_t like = c->taken[at].data ? device : shards_like(c, &s, leaf, device);
  if (like < device) {
    c->like[at] = like * c->group.n_results + leaf;
    c->results[at] = c->results[c->like[at]];
    return 0;
  }
  if (c->taken[at].data)
    status = xlac_buffer_wrap(&c->out[at], c->st->counters, &layout, &c->taken[at], &err);
  else if (memory)
    status = xlac_buffer_create_on(&c->out[at], memory, c->st->counters, s.dtype, s.rank, s.dims, &err);
  else
    status = xlac_buffer_create(&c->out[at], c->st->runtime, c->st->counters, s.dtype, s.rank, s.dims, &err);
  if (status) return py_raise(c->st, &err, PY_ANY), -1;
  xlac_buffer_get(c->out[at], &info);
  c->results[at] = info.data;
  return 0;
}

static int shards_prepare(shards_call *c) {
  for (uint32_t d = 0; d < c->here; d++)
    for (uint32_t i = 0; i < c->group.n_arguments; i++)
      if (shards_argument(c, (size_t)d * c->group.n_arguments + i, i, d) < 0) return -1;
  return 0;
}

static int shards_make_results(shards_call *c) {
  for (uint32_t d = 0; d < c->here; d++)
    for (uint32_t i = 0; i < c->group.n_results; i++)
      if (shards_result(c, (size_t)d * c->group.n_results + i, i, d) < 0) return -1;
  return 0;
}

/* Before anything has run: what was taken belongs to its Buffer again, and the results' Buffers never own it. */
static void shards_give_back(shards_call *c) {
  for (size_t i = 0; i < (size_t)c->here * c->group.n_results; i++) {
    xlac_memory ours;
    xlac_error err = {.code = 0};
    if (c->takers[i] && c->out[i]) (void)!xlac_buffer_take(c->out[i], &ours, &err);
    if (c->takers[i]) xlac_buffer_give_back(c->takers[i]);
  }
}

static int shards_run(shards_call *c, unsigned long long seed) {
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options), .seed = seed};
  xlac_error err = {.code = 0};
  py_run run = {.st = c->st, .m = xlac_executable_module(c->self->exe)};
  if (py_run_begin(&run, &options) < 0) return -1;
  int status = xlac_executable_call_shards(c->self->exe, &options, c->arguments, c->results, &err);
  return py_run_end(&run, status, &err);
}

/* The Buffers of all results; None for tokens. */
static PyObject *shards_list(shards_call *c) {
  size_t n = (size_t)c->here * c->group.n_results;
  PyObject *list = PyList_New((Py_ssize_t)n);
  for (size_t i = 0; list && i < n; i++) {
    PyObject *b = c->like[i] < i ? Py_NewRef(PyList_GET_ITEM(list, (Py_ssize_t)c->like[i]))
                  : c->out[i]    ? py_wrap_buffer(c->st, c->out[i])
                                 : Py_NewRef(Py_None);
    c->out[i] = NULL;
    if (b == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)i, b);
  }
  return list;
}

static void shards_end(shards_call *c) {
  size_t n = (size_t)c->here * c->group.n_arguments, m = (size_t)c->here * c->group.n_results;
  for (size_t i = 0; c->opened && i < n; i++)
    if (c->opened[i]) xlac_buffer_close(c->opened[i]);
  for (size_t i = 0; c->copies && i < n; i++) xlac_buffer_release(c->copies[i]);
  for (size_t i = 0; c->out && i < m; i++) xlac_buffer_release(c->out[i]);
  for (size_t i = 0; c->takers && i < m; i++) xlac_buffer_release(c->takers[i]);
  PyMem_Free(c->arguments);
  PyMem_Free(c->results);
  PyMem_Free(c->opened);
  PyMem_Free(c->copies);
  PyMem_Free(c->out);
  PyMem_Free(c->takers);
  PyMem_Free(c->taken);
  PyMem_Free(c->over);
  PyMem_Free(c->like);
  PyMem_Free(c->apart);
}

static bool shards_allocate(shards_call *c) {
  size_t n = (size_t)c->here * c->group.n_arguments + 1;
  size_t m = (size_t)c->here * c->group.n_results + 1;
  xlac_donation d;
  c->arguments = PyMem_Calloc(n, sizeof *c->arguments);
  c->opened = PyMem_Calloc(n, sizeof *c->opened);
  c->copies = PyMem_Calloc(n, sizeof *c->copies);
  c->results = PyMem_Calloc(m, sizeof *c->results);
  c->out = PyMem_Calloc(m, sizeof *c->out);
  c->takers = PyMem_Calloc(m, sizeof *c->takers);
  c->taken = PyMem_Calloc(m, sizeof *c->taken);
  c->over = PyMem_Calloc(c->group.n_arguments + 1u, sizeof *c->over);
  c->like = PyMem_Calloc(m, sizeof *c->like);
  c->apart = PyMem_Calloc(c->group.n_results + 1u, sizeof *c->apart);
  if (!c->arguments || !c->opened || !c->copies || !c->results || !c->out || !c->takers || !c->taken || !c->over ||
      !c->like || !c->apart)
    return PyErr_NoMemory(), false;
  for (uint32_t i = 0; i < c->group.n_arguments; i++) c->over[i] = UINT32_MAX;
  for (uint32_t i = 0; xlac_executable_shard_donation(c->self->exe, i, &d); i++) c->over[d.argument] = d.result;
  return true;
}

/* For each argument leaf whether its shards are donated; -1 with an exception. */
static int shards_given(const shards_call *c, PyObject *donated, bool *given) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(donated); i++) {
    unsigned long leaf = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(donated, i));
    if (PyErr_Occurred()) return -1;
    if (leaf >= c->group.n_arguments || c->over[leaf] == UINT32_MAX)
      return PyErr_Format(PyExc_ValueError, "no result takes the memory of argument leaf %lu", leaf), -1;
    given[leaf] = true;
  }
  return 0;
}

static int shards_apart(shards_call *c, PyObject *apart) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(apart); i++) {
    unsigned long leaf = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(apart, i));
    if (PyErr_Occurred()) return -1;
    if (leaf >= c->group.n_results) return PyErr_Format(PyExc_ValueError, "there is no result leaf %lu", leaf), -1;
    c->apart[leaf] = true;
  }
  return 0;
}

static PyObject *shards_go(shards_call *c, PyObject *donated, unsigned long long seed) {
  bool *given = PyMem_Calloc(c->group.n_arguments + 1u, sizeof *given);
  PyObject *list = NULL;
  if (given == NULL) return PyErr_NoMemory();
  c->given = given;
  int status = shards_given(c, donated, given);
  if (status == 0) status = shards_prepare(c);
  if (status == 0) status = shards_make_results(c);
  if (status < 0) shards_give_back(c);
  if (status == 0 && shards_run(c, seed) == 0) list = shards_list(c);
  PyMem_Free(given);
  return list;
}

/* _call_shards(buffers, donated, apart, seed, resharded, bytes): a Buffer for each device and argument leaf, device 0's
 * first; leaves that are donated; leaves of results of which each device is to have its own, where those that have the
 * same part else share one; how many arguments were cut anew, to be counted. Gives the results' in the same order. */
PyObject *py_executable_call_shards(PyObject *object, PyObject *args) {
  shards_call c = {.self = (py_executable *)object, .st = py_state_of(object)};
  PyObject *buffers, *donated, *apart, *list = NULL;
  unsigned long long seed;
  long long resharded, bytes;
  if (!PyArg_ParseTuple(args, "O!O!O!KLL", &PyTuple_Type, &buffers, &PyTuple_Type, &donated, &PyTuple_Type, &apart,
                        &seed, &resharded, &bytes))
    return NULL;
  xlac_executable_group(c.self->exe, &c.group);
  xlac_executable_here(c.self->exe, &c.from, &c.here);
  if ((size_t)PyTuple_GET_SIZE(buffers) != (size_t)c.here * c.group.n_arguments || !c.group.n_devices)
    return PyErr_Format(PyExc_ValueError, "%zd shards for %u devices with %u arguments each", PyTuple_GET_SIZE(buffers),
                        c.here, c.group.n_arguments);
  c.in = PySequence_Fast_ITEMS(buffers);
  xlac_counters_add(c.st->counters, XLAC_COUNT_COPIES_IN, resharded);
  xlac_counters_add(c.st->counters, XLAC_COUNT_BYTES_COPIED_IN, bytes);
  if (shards_allocate(&c) && shards_apart(&c, apart) == 0) list = shards_go(&c, donated, seed);
  shards_end(&c);
  return list;
}

/* --- what xlac.sharded asks --- */

static PyObject *shards_tuple(uint32_t n, const int64_t *v) {
  PyObject *tuple = PyTuple_New(n);
  for (uint32_t i = 0; tuple && i < n; i++) {
    PyObject *one = PyLong_FromLongLong(v[i]);
    if (one == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, one);
  }
  return tuple;
}

/* The part that each device has; () where none is to be added to another. */
static PyObject *shards_parts(const py_executable *self, bool result, uint32_t leaf, uint32_t n_devices) {
  xlac_shard s = {.n_parts = 1};
  (void)xlac_executable_shard(self->exe, result, leaf, 0, &s);
  PyObject *parts = PyTuple_New(s.n_parts > 1 ? n_devices : 0);
  for (uint32_t d = 0; parts && s.n_parts > 1 && d < n_devices; d++) {
    (void)xlac_executable_shard(self->exe, result, leaf, d, &s);
    PyObject *part = PyLong_FromUnsignedLong(s.part);
    if (part == NULL)
      Py_CLEAR(parts);
    else
      PyTuple_SET_ITEM(parts, d, part);
  }
  return parts;
}

/* (whole shape, shard's shape, (start, ...) by device, dtype, parts, how they are added up); None for a token. */
static PyObject *shards_leaf(const py_executable *self, bool result, uint32_t leaf, uint32_t n_devices) {
  xlac_shard s;
  if (!xlac_executable_shard(self->exe, result, leaf, 0, &s)) Py_RETURN_NONE;
  PyObject *starts = PyTuple_New(n_devices);
  for (uint32_t d = 0; starts && d < n_devices; d++) {
    (void)xlac_executable_shard(self->exe, result, leaf, d, &s);
    PyObject *start = shards_tuple(s.rank, s.start);
    if (start == NULL)
      Py_CLEAR(starts);
    else
      PyTuple_SET_ITEM(starts, d, start);
  }
  PyArray_Descr *descr = self->leaves[result ? self->n_arguments + leaf : leaf].descr;
  PyObject *dtype = descr ? (PyObject *)descr : Py_None;
  return starts ? Py_BuildValue("NNNONC", shards_tuple(s.rank, s.whole), shards_tuple(s.rank, s.dims), starts, dtype,
                                shards_parts(self, result, leaf, n_devices), s.how)
                : NULL;
}

/* The names of the devices here, where their shards are: "cpu", "cuda:1". */
static PyObject *shards_places(const py_executable *self, uint32_t from, uint32_t here) {
  PyObject *all = PyTuple_New(here);
  for (uint32_t d = 0; all && d < here; d++) {
    xlac_device_info info = {.name = "cpu"};
    const xlac_device *memory = xlac_executable_shard_memory(self->exe, from + d);
    if (memory) xlac_device_get(memory, &info);
    PyObject *name = PyUnicode_FromString(info.name);
    if (name == NULL)
      Py_CLEAR(all);
    else
      PyTuple_SET_ITEM(all, d, name);
  }
  return all;
}

/* _shards(): (devices, the first here, how many here, arguments, results, {argument leaf: result leaf that takes its
 * memory}, where shards are, by device here). */
PyObject *py_executable_shards(PyObject *object, PyObject *unused) {
  const py_executable *self = (py_executable *)object;
  xlac_group g;
  xlac_donation d;
  PyObject *sides[2] = {PyList_New(0), PyList_New(0)}, *over = PyDict_New();
  (void)unused;
  uint32_t from, here;
  xlac_executable_group(self->exe, &g);
  xlac_executable_here(self->exe, &from, &here);
  bool ok = sides[0] && sides[1] && over;
  for (uint32_t side = 0; side < 2; side++)
    for (uint32_t i = 0; ok && i < (side ? g.n_results : g.n_arguments); i++) {
      PyObject *leaf = shards_leaf(self, side == 1, i, g.n_devices);
      ok = leaf && PyList_Append(sides[side], leaf) == 0;
      Py_XDECREF(leaf);
    }
  for (uint32_t i = 0; ok && xlac_executable_shard_donation(self->exe, i, &d); i++) {
    PyObject *key = PyLong_FromUnsignedLong(d.argument), *value = PyLong_FromUnsignedLong(d.result);
    ok = key && value && (d.result == UINT32_MAX || PyDict_SetItem(over, key, value) == 0);
    Py_XDECREF(key);
    Py_XDECREF(value);
  }
  PyObject *all =
      ok ? Py_BuildValue("IIIOOON", g.n_devices, from, here, sides[0], sides[1], over, shards_places(self, from, here))
         : NULL;
  Py_XDECREF(sides[0]);
  Py_XDECREF(sides[1]);
  Py_XDECREF(over);
  return all;
}

/* A call whose results are ShardedBuffers. */
PyObject *py_call_sharded(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
  PyObject *positional = PyTuple_New(n), *named = kwnames ? PyDict_New() : NULL, *result = NULL;
  for (Py_ssize_t i = 0; positional && i < n; i++) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
  bool ok = positional && (named || !kwnames);
  for (Py_ssize_t i = 0; ok && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
    ok = PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, i), args[n + i]) == 0;
  if (ok) result = py_delegate("xlac.sharded", "call", object, positional, named);
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return result;
}
