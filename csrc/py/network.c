/* Networks for xlac.distributed: in capsules, since Python sees nothing of them. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../include/xlac_network.h"
#include "executable.h"

#define NETWORK_NAME "xlac.network"

static xlac_network *network_of(PyObject *capsule) {
  return PyCapsule_GetPointer(capsule, NETWORK_NAME);
}

static void network_free(PyObject *capsule) {
  xlac_network *net = network_of(capsule);
  Py_BEGIN_ALLOW_THREADS;
  xlac_network_release(net);
  Py_END_ALLOW_THREADS;
}

/* Names stay borrowed from the list. -1 with an exception; the sockets that have been read are *n. */
static int network_read_peers(PyObject *list, xlac_peer *peers, uint32_t *n) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "is", &peers[i].fd, &peers[i].name)) return -1;
    (*n)++;
  }
  return 0;
}

/* _network(rank, [(fd, name)]): by rank; ours is -1. Takes the descriptors. */
PyObject *py_network(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  unsigned int rank;
  uint32_t n = 0;
  PyObject *list;
  xlac_network *net = NULL;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "IO!", &rank, &PyList_Type, &list)) return NULL;
  xlac_peer *peers = PyMem_Calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *peers);
  if (peers == NULL) return PyErr_NoMemory();
  int status = network_read_peers(list, peers, &n);
  if (status == 0 && xlac_network_create(&net, rank, n, peers, &err) != 0) (void)py_raise(st, &err, PY_ANY);
  for (uint32_t i = 0; status < 0 && i < n; i++)
    if (peers[i].fd >= 0) close(peers[i].fd);
  PyMem_Free(peers);
  PyObject *capsule = net ? PyCapsule_New(net, NETWORK_NAME, network_free) : NULL;
  if (net && capsule == NULL) xlac_network_release(net);
  return capsule;
}

/* --- what may hang in somebody else's code, with the GIL held: the process ends then, with what can be said --- */

typedef struct network_deadline {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t news;
  bool over;
  struct timespec until;
  size_t n;
  char text[];
} network_deadline;

static void *network_watch(void *ctx) {
  network_deadline *d = ctx;
  int status = 0;
  pthread_mutex_lock(&d->lock);
  while (!d->over && status == 0) status = pthread_cond_timedwait(&d->news, &d->lock, &d->until);
  bool over = d->over;
  pthread_mutex_unlock(&d->lock);
  if (over) return NULL;
  (void)!write(STDERR_FILENO, d->text, d->n);
  _exit(1);
}

static void network_meet_deadline(PyObject *capsule) {
  network_deadline *d = PyCapsule_GetPointer(capsule, NULL);
  pthread_mutex_lock(&d->lock);
  d->over = true;
  pthread_cond_signal(&d->news);
  pthread_mutex_unlock(&d->lock);
  pthread_join(d->thread, NULL);
  pthread_cond_destroy(&d->news);
  pthread_mutex_destroy(&d->lock);
  PyMem_Free(d);
}

/* _network_deadline(seconds, text) -> what is to be let go of before that, or the process ends with the text. */
PyObject *py_network_deadline(PyObject *core, PyObject *args) {
  double seconds;
  const char *text;
  Py_ssize_t n;
  (void)core;
  if (!PyArg_ParseTuple(args, "ds#", &seconds, &text, &n)) return NULL;
  network_deadline *d = PyMem_Calloc(1, sizeof *d + (size_t)n);
  if (d == NULL) return PyErr_NoMemory();
  d->n = (size_t)n;
  memcpy(d->text, text, d->n);
  clock_gettime(CLOCK_REALTIME, &d->until);
  d->until.tv_sec += (time_t)seconds + 1;
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->news, NULL);
  if (pthread_create(&d->thread, NULL, network_watch, d) == 0) return PyCapsule_New(d, NULL, network_meet_deadline);
  PyMem_Free(d);
  return PyErr_NoMemory();
}

static PyObject *network_list(uint32_t n, const char *all, const size_t *sizes) {
  PyObject *list = PyList_New(n);
  for (uint32_t i = 0; list && i < n; all += sizes[i++]) {
    PyObject *one = PyBytes_FromStringAndSize(all, (Py_ssize_t)sizes[i]);
    if (one == NULL)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, (Py_ssize_t)i, one);
  }
  return list;
}

/* _network_gather(network, n, bytes) -> [bytes]: those of all n ranks. */
PyObject *py_network_gather(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  unsigned int n;
  PyObject *capsule, *list = NULL;
  Py_buffer data;
  char *all = NULL;
  xlac_error err = {.code = 0};
  int status;
  if (!PyArg_ParseTuple(args, "OIy*", &capsule, &n, &data)) return NULL;
  xlac_network *net = network_of(capsule);
  size_t *sizes = net ? PyMem_Calloc((size_t)n + 1, sizeof *sizes) : NULL;
  if (sizes) {
    PY_WORK(status = xlac_network_gather(net, data.buf, (size_t)data.len, &all, sizes, &err));
    list = status ? py_raise(st, &err, PY_ANY) : network_list(n, all, sizes);
    xlac_free(all);
  }
  PyMem_Free(sizes);
  PyBuffer_Release(&data);
  return list || PyErr_Occurred() ? list : PyErr_NoMemory();
}

/* _network_close(network, why) */
PyObject *py_network_close(PyObject *core, PyObject *args) {
  PyObject *capsule;
  const char *why;
  (void)core;
  if (!PyArg_ParseTuple(args, "Oz", &capsule, &why)) return NULL;
  xlac_network *net = network_of(capsule);
  if (net == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  xlac_network_close(net, why);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

/* Tells the others why a call has failed that has not begun; the exception stays. */
static void network_refuse(const py_executable *self, uint64_t calls) {
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject *text = PyObject_Str(value ? value : kind);
  const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
  Py_BEGIN_ALLOW_THREADS;
  xlac_executable_refuse(self->exe, calls, said);
  Py_END_ALLOW_THREADS;
  Py_XDECREF(text);
  PyErr_Restore(kind, value, trace);
}

/* Calls of executables that have joined a network. */
static PyObject *network_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const py_executable *self = (const py_executable *)object;
  uint64_t calls = xlac_executable_calls(self->exe);
  PyObject *result = py_executable_vectorcall(object, args, nargsf, kwnames);
  if (result == NULL) network_refuse(self, calls);
  return result;
}

/* _join(executable, network, label) */
PyObject *py_network_join(PyObject *core, PyObject *args) {
  py_state *st = PyModule_GetState(core);
  PyObject *executable, *capsule;
  const char *label;
  xlac_error err = {.code = 0};
  if (!PyArg_ParseTuple(args, "O!Os", st->executable_type, &executable, &capsule, &label)) return NULL;
  xlac_network *net = network_of(capsule);
  if (net == NULL) return NULL;
  if (xlac_executable_join(((py_executable *)executable)->exe, net, NULL, label, &err) != 0)
    return py_raise(st, &err, PY_ANY);
  ((py_executable *)executable)->call = network_vectorcall;
  Py_RETURN_NONE;
}
