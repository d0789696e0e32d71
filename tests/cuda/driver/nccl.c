/* NCCL's entry points: the ranks of a clique, each with a communicator, exchange what their streams bring. An operation
 * is enqueued on a stream as one piece of work, all operations of a group as one; the stream stands there until the
 * others have come. What a rank brings is copied when its stream comes to it, so that results depend on nobody's speed;
 * sums are made in the order of the ranks. What ranks do not agree on (which operation, how many elements of what
 * type), a stream or memory of another device, sends that nobody receives, and groups that are not ended, are findings;
 * and so is a rank that waits for seconds for one that does not come. */
#include "nccl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NCCL_SUCCESS = 0, NCCL_SYSTEM = 2, NCCL_ARGUMENT = 4, NCCL_USAGE = 5, NCCL_BUSY = 7 };
enum { S8, U8, S32, U32, S64, U64, F16, F32, F64, BF16, TYPES };
enum { SUM, PRODUCT, MAXIMUM, MINIMUM, REDUCERS };
static const char *const kinds[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "send", "receive"};
static const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
enum { COMM = 0x434f4d4d };

typedef struct comm {
  int magic, rank;
  clique *clique;
  sim_device *device;
  struct meeting *begun; /* of ranks that are processes: enqueued when it is next asked whether they are */
} comm;

typedef struct operation {
  operation_kind kind;
  address from, to;
  size_t n;
  int type, reducer, peer;
  uint64_t nth;
} operation;

typedef struct meeting { /* one rank's operations of a group */
  sim_work work;
  comm *comm;
  void *stream;
  uint32_t n;
  operation *operations;
  struct meeting *next;
} meeting;

static _Thread_local struct {
  int depth, error;
  meeting *first;
} group;

bool nccl_is_open(const char *call) {
  if (group.depth == 0) return false;
  report(INVALID_VALUE, "nccl: %s within a group that was not ended", call);
  return true;
}

/* ---- numbers ---- */

static double load(int type, const char *at) {
  uint16_t h;
  uint32_t wide;
  float f;
  double d;
  memcpy(&h, at, sizeof h);
  switch (type) {
    case F16: {
      int e = h >> 10 & 31, m = h & 1023;
      d = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
      return h >> 15 ? -d : d;
    }
    case BF16:
      wide = (uint32_t)h << 16;
      memcpy(&f, &wide, sizeof f);
      return f;
    case F32:
      memcpy(&f, at, sizeof f);
      return f;
    default:
      memcpy(&d, at, sizeof d);
      return d;
  }
}

/* To nearest, ties to even. */
static uint16_t narrow(double v, int digits, int least, int infinity) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  int e;
  if (isnan(v)) return (uint16_t)(infinity | infinity >> 1);
  v = fabs(v);
  if (v == 0) return sign;
  frexp(v, &e);
  if (e < least) e = least;
  double units = nearbyint(ldexp(v, digits - e));
  if (isinf(v)) return (uint16_t)(sign | infinity);
  uint32_t bits = (uint32_t)units + ((uint32_t)(e - least) << (digits - 1));
  return (uint16_t)(sign | (bits > (uint32_t)infinity ? (uint32_t)infinity : bits));
}

static void store(int type, char *at, double v) {
  uint16_t h;
  float f = (float)v;
  if (type == F64) memcpy(at, &v, sizeof v);
  if (type == F32) memcpy(at, &f, sizeof f);
  if (type == F16) h = narrow(v, 11, -13, 0x7c00), memcpy(at, &h, sizeof h);
  if (type == BF16) h = narrow((double)f, 8, -125, 0x7f80), memcpy(at, &h, sizeof h);
}

static uint64_t whole(int type, const char *at) {
  int64_t v = 0;
  memcpy(&v, at, sizes[type]);
  if (type == S8) v = (int8_t)v;
  if (type == S32) v = (int32_t)v;
  return (uint64_t)v;
}

static void combine(int type, int reducer, char *into, const char *x) {
  if (type >= F16 && type <= BF16) {
    double a = load(type, into), b = load(type, x);
    store(type, into,
          reducer == SUM       ? a + b
          : reducer == PRODUCT ? a * b
          : reducer == MAXIMUM ? fmax(a, b)
                               : fmin(a, b));
    return;
  }
  uint64_t a = whole(type, into), b = whole(type, x);
  bool less = type == U64 || type == U32 || type == U8 ? a < b : (int64_t)a < (int64_t)b;
  a = reducer == SUM ? a + b : reducer == PRODUCT ? a * b : (reducer == MAXIMUM) == less ? b : a;
  memcpy(into, &a, sizes[type]);
}

/* ---- running ---- */

/* Memory of the rank's device, touched by the work's op. sim.executing held. */
static int touch_range(const meeting *m, address at, size_t bytes, access_kind kind) {
  touch.op = m->work.op;
  touch.kernel = NULL;
  touch.acquired = NULL;
  touch.mark = (sim_mark){.op = m->work.op->id};
  return shadow_range(at, bytes, kind);
}

/* Between device memory and the host's. sim.lock held, given up meanwhile. */
static int transfer(meeting *m, address at, char *host, size_t bytes, access_kind kind) {
  pthread_mutex_unlock(&sim.lock);
  pthread_mutex_lock(&sim.executing);
  protect_enter();
  int result = touch_range(m, at, bytes, kind);
  if (result == SUCCESS && kind == ACCESS_READ) memcpy(host, (const void *)(uintptr_t)at, bytes);
  if (result == SUCCESS && kind == ACCESS_WRITE) memcpy((void *)(uintptr_t)at, host, bytes);
  protect_leave();
  pthread_mutex_unlock(&sim.executing);
  pthread_mutex_lock(&sim.lock);
  return result;
}

static size_t brought(const clique *c, const operation *o) {
  return o->n * sizes[o->type] * (o->kind == REDUCE_SCATTER ? (size_t)c->n : 1);
}

static int bring(meeting *m, const operation *o) {
  clique *c = m->comm->clique;
  parcel *p = calloc(1, sizeof *p);
  *p = (parcel){.kind = o->kind,
                .from = m->comm->rank,
                .to = o->kind == SEND ? o->peer : -1,
                .type = o->type,
                .n = o->n,
                .reducer = o->reducer,
                .root = o->kind == BROADCAST ? o->peer : 0,
                .nth = o->nth};
  p->size = brought(c, o);
  p->bytes = malloc(p->size + 1);
  int result = transfer(m, o->from, p->bytes, p->size, ACCESS_READ);
  if (c->folder[0]) {
    folder_put(c, p);
    free(p->bytes);
    free(p);
    return result;
  }
  p->next = c->parcels;
  c->parcels = p;
  pthread_cond_broadcast(&sim.changed);
  return result;
}

static parcel *find(clique *c, int from, int to, uint64_t nth) {
  parcel *p = c->parcels;
  if (c->folder[0]) return folder_find(c, from, to, nth);
  while (p != NULL && (p->from != from || p->to != to || p->nth != nth)) p = p->next;
  return p;
}

/* Until something may have changed; of other processes nobody is told. ETIMEDOUT: it is too late. */
static int wait_until(clique *c, const struct timespec *until) {
  struct timespec soon;
  if (!c->folder[0]) return pthread_cond_timedwait(&sim.changed, &sim.lock, until);
  clock_gettime(CLOCK_REALTIME, &soon);
  if (soon.tv_sec >= until->tv_sec) return ETIMEDOUT;
  soon.tv_nsec += 1000000;
  soon.tv_sec += soon.tv_nsec / 1000000000;
  soon.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&sim.changed, &sim.lock, &soon);
  return 0;
}

/* Waits; NULL: the clique was aborted, or nobody has come for long, which is a finding. */
static parcel *await(meeting *m, const operation *o, int from, int to) {
  clique *c = m->comm->clique;
  struct timespec until;
  parcel *p;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += setting("XLAC_CUDA_SIM_PATIENCE", 30);
  while ((p = find(c, from, to, o->nth)) == NULL && !c->aborted)
    if (wait_until(c, &until) == ETIMEDOUT) {
      report(LAUNCH_TIMEOUT, "nccl: rank %d waits in %s number %llu for rank %d, which does not come", m->comm->rank,
             kinds[o->kind], (unsigned long long)o->nth, from);
      c->aborted = true;
    }
  return c->aborted ? NULL : p;
}

static void drop_taken(clique *c) {
  for (parcel **at = &c->parcels, *p; (p = *at) != NULL;) {
    if (p->taken < (p->to >= 0 || c->folder[0] ? 1u : (uint32_t)c->n)) {
      at = &p->next;
      continue;
    }
    if (c->folder[0]) folder_take(c, p);
    *at = p->next;
    free(p->bytes);
    free(p);
  }
}

static int disagree(const meeting *m, const operation *o, const parcel *p) {
  return report(LAUNCH_FAILED,
                "nccl: rank %d does %s of %zu elements of type %d, reducer %d, root %d, and rank %d %s of %zu "
                "of type %d, reducer %d, root %d",
                m->comm->rank, kinds[o->kind], o->n, o->type, o->reducer, o->kind == BROADCAST ? o->peer : 0, p->from,
                kinds[p->kind], p->n, p->type, p->reducer, p->root);
}

static bool agrees(const operation *o, const parcel *p) {
  bool same = o->n == p->n && o->type == p->type;
  if (o->kind == RECEIVE) return same;
  return same && o->kind == p->kind && o->reducer == p->reducer && (o->kind != BROADCAST || o->peer == p->root);
}

/* What rank `from` brought, where it belongs in our result of `bytes`. */
static void merge(const meeting *m, const operation *o, const parcel *p, char *result, size_t bytes) {
  size_t each = sizes[o->type];
  const char *x = p->bytes + (o->kind == REDUCE_SCATTER ? (size_t)m->comm->rank * bytes : 0);
  if (o->kind == ALL_GATHER) memcpy(result + (size_t)p->from * o->n * each, x, o->n * each);
  if (o->kind == RECEIVE || (o->kind == BROADCAST && p->from == o->peer)) memcpy(result, x, bytes);
  if (o->kind != ALL_REDUCE && o->kind != REDUCE_SCATTER) return;
  if (p->from == 0) memcpy(result, x, bytes);
  for (size_t i = 0; p->from != 0 && i < bytes; i += each) combine(o->type, o->reducer, result + i, x + i);
}

static int take(meeting *m, const operation *o) {
  clique *c = m->comm->clique;
  size_t bytes = o->n * sizes[o->type] * (o->kind == ALL_GATHER ? (size_t)c->n : 1);
  char *result = malloc(bytes + 1);
  int error = SUCCESS;
  bool pair = o->kind == RECEIVE;
  for (int from = pair ? o->peer : 0; error == SUCCESS && from < (pair ? o->peer + 1 : c->n); from++) {
    parcel *p = await(m, o, from, pair ? m->comm->rank : -1);
    if (p == NULL) break;
    if (!agrees(o, p))
      error = disagree(m, o, p);
    else
      merge(m, o, p, result, bytes);
    p->taken++;
  }
  if (error == SUCCESS && !c->aborted) error = transfer(m, o->to, result, bytes, ACCESS_WRITE);
  free(result);
  drop_taken(c);
  return error;
}

/* Whether what a rank sent is still to be received. */
static bool is_there(clique *c, int rank, const operation *o) {
  return c->folder[0] ? folder_has(c, rank, o->peer, o->nth) : find(c, rank, o->peer, o->nth) != NULL;
}

/* All of a group's sends and parts go first: so they never wait for one another. A send is over when it is received. */
void nccl_meet(sim_stream *s, sim_work *work) {
  meeting *m = (meeting *)work;
  clique *c = m->comm->clique;
  int error = SUCCESS;
  for (uint32_t i = 0; i < m->n && error == SUCCESS && !c->aborted; i++)
    if (m->operations[i].kind != RECEIVE) error = bring(m, &m->operations[i]);
  for (uint32_t i = 0; i < m->n && error == SUCCESS && !c->aborted; i++)
    if (m->operations[i].kind != SEND) error = take(m, &m->operations[i]);
  const struct timespec ever = {.tv_sec = (time_t)1 << 40};
  for (uint32_t i = 0; i < m->n && error == SUCCESS; i++)
    while (m->operations[i].kind == SEND && !c->aborted && is_there(c, m->comm->rank, &m->operations[i]))
      wait_until(c, &ever);
  if (error != SUCCESS && s->device->sticky == SUCCESS) s->device->sticky = error;
  pthread_cond_broadcast(&sim.changed);
}

static void release(sim_work *work) {
  free(((meeting *)work)->operations);
}

/* ---- groups ---- */

/* Which of all operations of its kind it is, is settled when it is enqueued. */
static void number(meeting *m) {
  clique *c = m->comm->clique;
  int us = m->comm->rank;
  for (uint32_t i = 0; i < m->n; i++) {
    operation *o = &m->operations[i];
    o->nth = o->kind == SEND ? c->sent[us][o->peer]++ : o->kind == RECEIVE ? c->received[us][o->peer]++ : c->met[us]++;
  }
}

static int enqueue(meeting *m) {
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(m->stream);
  int result = NCCL_SUCCESS;
  if (s == NULL || s->device != m->comm->device || s->capture != NULL) {
    report(INVALID_VALUE, "nccl: rank %d of device %d is given a stream %s", m->comm->rank, m->comm->device->ordinal,
           s != NULL && s->capture != NULL ? "that captures, which is not simulated" : "of another device, or none");
    result = NCCL_USAGE;
  }
  if (result == NCCL_SUCCESS) {
    number(m);
    m->work.kind = WORK_MEET;
    m->work.release = release;
    stream_add(s, &m->work, "NCCL's", m->n == 1 ? kinds[m->operations[0].kind] : "group");
  }
  pthread_mutex_unlock(&sim.lock);
  if (result != NCCL_SUCCESS) {
    free(m->operations);
    free(m);
  }
  return result;
}

/* Ranks that are processes don't block: theirs is enqueued in the background, which is when it is asked for. */
static int end_group(void) {
  int result = group.error;
  bool busy = false;
  for (meeting *m = group.first, *next; m != NULL; m = next) {
    next = m->next;
    if (result == NCCL_SUCCESS && m->comm->clique->folder[0]) {
      meeting **end = &m->comm->begun;
      while (*end != NULL) end = &(*end)->next;
      m->next = NULL;
      *end = m;
      busy = true;
    } else if (result == NCCL_SUCCESS) {
      result = enqueue(m);
    } else {
      free(m->operations);
      free(m);
    }
  }
  group.first = NULL;
  group.error = NCCL_SUCCESS;
  return result == NCCL_SUCCESS && busy ? NCCL_BUSY : result;
}

EXPORT int ncclGroupStart(void) {
  ENTER(ncclGroupStart);
  group.depth++;
  return NCCL_SUCCESS;
}

/* Ends the group also where the call shall fail: nothing of it is enqueued then. */
EXPORT int ncclGroupEnd(void) {
  int failed = api_enter("ncclGroupEnd");
  if (group.depth == 0) return NCCL_USAGE;
  if (failed != SUCCESS) group.error = NCCL_SYSTEM;
  return --group.depth == 0 ? end_group() : NCCL_SUCCESS;
}

static bool is_own(const comm *c, address at, size_t bytes) {
  pthread_mutex_lock(&sim.lock);
  const allocation *a = shadow_find(at);
  bool own = bytes == 0 || (a != NULL && !a->freed && (a->kind != MEMORY_DEVICE || a->device == c->device->ordinal));
  pthread_mutex_unlock(&sim.lock);
  if (!own)
    report(INVALID_VALUE, "nccl: rank %d is given 0x%llx, which is not memory of device %d", c->rank,
           (unsigned long long)at, c->device->ordinal);
  return own;
}

static int fail_group(int error) {
  if (group.depth > 0) group.error = error;
  return error;
}

static int add(comm *c, void *stream, operation o) {
  if (c == NULL || c->magic != COMM) return fail_group(NCCL_ARGUMENT);
  bool peer = o.kind == BROADCAST || o.kind == SEND || o.kind == RECEIVE;
  if (o.type < 0 || o.type >= TYPES || o.reducer < 0 || o.reducer >= REDUCERS ||
      (peer && (o.peer < 0 || o.peer >= c->clique->n)))
    return fail_group(NCCL_ARGUMENT);
  size_t bytes = o.n * sizes[o.type];
  if ((o.kind != RECEIVE && !is_own(c, o.from, bytes)) || (o.kind != SEND && !is_own(c, o.to, bytes)))
    return fail_group(NCCL_ARGUMENT);
  meeting *m = group.first;
  while (m != NULL && (m->comm != c || m->stream != stream)) m = m->next;
  if (m == NULL) {
    m = calloc(1, sizeof *m);
    *m = (meeting){.comm = c, .stream = stream, .next = group.first};
    group.first = m;
  }
  m->operations = realloc(m->operations, (m->n + 1) * sizeof o);
  m->operations[m->n++] = o;
  return group.depth > 0 ? NCCL_SUCCESS : end_group();
}

#define ENTER_NCCL(name)                                                            \
  do {                                                                              \
    int result_ = api_enter(#name);                                                 \
    if (result_ == LEFT_OUT) return NCCL_SUCCESS;                                   \
    if (result_ != SUCCESS) return fail_group(result_ < 8 ? result_ : NCCL_SYSTEM); \
  } while (0)

EXPORT int ncclAllReduce(address from, address to, size_t n, int type, int reducer, comm *c, void *stream) {
  ENTER_NCCL(ncclAllReduce);
  return add(c, stream,
             (operation){.kind = ALL_REDUCE, .from = from, .to = to, .n = n, .type = type, .reducer = reducer});
}
EXPORT int ncclReduceScatter(address from, address to, size_t n, int type, int reducer, comm *c, void *stream) {
  ENTER_NCCL(ncclReduceScatter);
  return add(c, stream,
             (operation){.kind = REDUCE_SCATTER, .from = from, .to = to, .n = n, .type = type, .reducer = reducer});
}
EXPORT int ncclAllGather(address from, address to, size_t n, int type, comm *c, void *stream) {
  ENTER_NCCL(ncclAllGather);
  return add(c, stream, (operation){.kind = ALL_GATHER, .from = from, .to = to, .n = n, .type = type});
}
EXPORT int ncclBroadcast(address from, address to, size_t n, int type, int root, comm *c, void *stream) {
  ENTER_NCCL(ncclBroadcast);
  return add(c, stream, (operation){.kind = BROADCAST, .from = from, .to = to, .n = n, .type = type, .peer = root});
}
EXPORT int ncclSend(address from, size_t n, int type, int peer, comm *c, void *stream) {
  ENTER_NCCL(ncclSend);
  return add(c, stream, (operation){.kind = SEND, .from = from, .n = n, .type = type, .peer = peer});
}
EXPORT int ncclRecv(address to, size_t n, int type, int peer, comm *c, void *stream) {
  ENTER_NCCL(ncclRecv);
  return add(c, stream, (operation){.kind = RECEIVE, .to = to, .n = n, .type = type, .peer = peer});
}

/* ---- communicators ---- */

EXPORT int ncclGetVersion(int *version) {
  ENTER_NCCL(ncclGetVersion);
  *version = 22700;
  return NCCL_SUCCESS;
}

EXPORT const char *ncclGetErrorString(int error) {
  static const char *const texts[] = {
      "no error",         "unhandled cuda error", "unhandled system error", "internal error",
      "invalid argument", "invalid usage",        "remote process exited",  "in progress"};
  return error >= 0 && error < 8 ? texts[error] : "unknown result code";
}

EXPORT int ncclCommInitAll(comm **out, int n, const int *devices) {
  ENTER_NCCL(ncclCommInitAll);
  if (out == NULL || n < 1 || n > RANKS_MAX) return NCCL_ARGUMENT;
  for (int i = 0; i < n; i++)
    for (int k = 0; k <= i; k++)
      if (devices[i] < 0 || devices[i] >= sim.n_devices || (k < i && devices[k] == devices[i])) return NCCL_USAGE;
  clique *c = calloc(1, sizeof *c);
  c->n = c->alive = n;
  pthread_mutex_lock(&sim.lock);
  for (int i = 0; i < n; i++) {
    out[i] = calloc(1, sizeof *out[i]);
    *out[i] = (comm){COMM, i, c, &sim.devices[devices[i]], NULL};
  }
  sim.n_cliques++;
  pthread_mutex_unlock(&sim.lock);
  return NCCL_SUCCESS;
}

typedef struct unique_id {
  char bytes[128];
} unique_id;

EXPORT int ncclGetUniqueId(unique_id *out) {
  ENTER_NCCL(ncclGetUniqueId);
  if (out == NULL) return NCCL_ARGUMENT;
  memset(out, 0, sizeof *out);
  return folder_make(out->bytes) ? NCCL_SUCCESS : NCCL_SYSTEM;
}

typedef struct config {
  size_t bytes;
  unsigned magic, version;
  int blocking;
} config;

/* Only the kind that does not block is simulated, on the device of the context that is current. */
EXPORT int ncclCommInitRankConfig(comm **out, int n, unique_id id, int rank, const config *how) {
  ENTER_NCCL(ncclCommInitRankConfig);
  sim_device *device = current_device();
  unsigned char gpu[16];
  if (out == NULL || n < 1 || n > RANKS_MAX || rank < 0 || rank >= n || device == NULL) return NCCL_ARGUMENT;
  if (how == NULL || how->magic != 0xcafebeef || how->version < 21400 || how->blocking != 0) return NCCL_ARGUMENT;
  clique *c = calloc(1, sizeof *c);
  c->n = n;
  c->alive = 1;
  memcpy(c->folder, id.bytes, sizeof c->folder - 1);
  *out = calloc(1, sizeof **out);
  **out = (comm){COMM, rank, c, device, NULL};
  device_uuid(gpu, device->ordinal);
  folder_join(c, rank, gpu);
  pthread_mutex_lock(&sim.lock);
  sim.n_cliques++;
  pthread_mutex_unlock(&sim.lock);
  return NCCL_BUSY;
}

EXPORT int ncclCommGetAsyncError(comm *c, int *error) {
  ENTER_NCCL(ncclCommGetAsyncError);
  if (c == NULL || c->magic != COMM || error == NULL) return NCCL_ARGUMENT;
  *error = NCCL_SUCCESS;
  if (c->clique->folder[0] == 0) return NCCL_SUCCESS;
  int joined = folder_joined(c->clique);
  if (joined < c->clique->n) *error = joined < 0 ? NCCL_USAGE : NCCL_BUSY;
  for (meeting *m = c->begun, *next; *error == NCCL_SUCCESS && m != NULL; m = next) {
    next = m->next;
    c->begun = next;
    *error = enqueue(m);
  }
  return NCCL_SUCCESS;
}

/* Who aborts ends his own waiting; ranks that are other processes go on waiting, until they abort, too.
 * Communicators stay, marked, so that their use is an error and not a crash. */
static int end_comm(comm *c, bool abort) {
  if (c == NULL || c->magic != COMM) return NCCL_ARGUMENT;
  pthread_mutex_lock(&sim.lock);
  c->magic = 0;
  clique *all = c->clique;
  all->aborted |= abort;
  if (!abort && c->begun != NULL)
    report(SUCCESS, "nccl: rank %d ends, and never asked whether what it has begun is enqueued", c->rank);
  if (all->folder[0]) folder_leave(all, c->rank);
  if (--all->alive == 0) {
    sim.n_cliques--;
    if (all->parcels != NULL && !all->aborted)
      report(SUCCESS, "nccl: rank %d has sent what rank %d never received", all->parcels->from, all->parcels->to);
  }
  pthread_cond_broadcast(&sim.changed);
  pthread_mutex_unlock(&sim.lock);
  return NCCL_SUCCESS;
}

EXPORT int ncclCommDestroy(comm *c) {
  ENTER_NCCL(ncclCommDestroy);
  return end_comm(c, false);
}
EXPORT int ncclCommAbort(comm *c) {
  ENTER_NCCL(ncclCommAbort);
  return end_comm(c, true);
}
