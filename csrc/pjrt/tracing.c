/* Profiles: what jax.profiler.trace and its kin write down of the plugin's work, beside what the client itself does.
 *
 * Runs and compilations are noted while a profiler records, and given as an XSpace (a protocol buffer of TSL's): a
 * plane for each device, another for compilations, an event for each. Times are those of CLOCK_REALTIME, by which
 * clients order planes of several sources.
 *
 * Profilers belong to no client: the interface has them for the process. So what is recorded is the one thing here that
 * the process has once; one profiler records at a time. */
#include <stdio.h>
#include <time.h>

#include "abi_extensions.h"
#include "pjrt.h"
#include "wire.h"

enum { TRACING_EVENTS_MAX = 1 << 20, TRACING_COMPILER = -1 /* the "device" of compilations */ };

typedef struct tracing_event {
  uint32_t name;
  int32_t device;
  int64_t start, ns;
} tracing_event;

BASE_VEC(tracing_events, tracing_event);
BASE_VEC(tracing_names, char *);

struct PLUGIN_Profiler {
  unsigned char *bytes; /* what it has recorded, once it was stopped */
  size_t n;
};

static struct tracing_record {
  pthread_mutex_t lock;      /* of all that follows */
  _Atomic uint32_t session;  /* of who records, read without the lock; 0: nobody does */
  uint32_t sessions;         /* so far */
  const PLUGIN_Profiler *by; /* who records */
  int64_t start;
  tracing_names names; /* its own */
  tracing_events events;
} tracing_record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t tracing_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- recording --- */

int64_t pjrt_trace_now(void) {
  return atomic_load_explicit(&tracing_record.session, memory_order_relaxed) ? tracing_clock() : 0;
}

/* Under the lock; UINT32_MAX when out of memory: the event is left out. */
static uint32_t tracing_name(struct tracing_record *r, const char *what, const char *name) {
  char text[256];
  int n = snprintf(text, sizeof text, "%s%s", what, name);
  char *copy = n < 0 ? NULL : pjrt_copy_text(text, strlen(text));
  if (copy && BASE_VEC_PUSH(base_alloc_libc, &r->names, copy)) return r->names.n - 1;
  pjrt_free(copy);
  return UINT32_MAX;
}

static void tracing_push(struct tracing_record *r, uint32_t name, int32_t device, int64_t start) {
  bool counts = name != UINT32_MAX && r->events.n < TRACING_EVENTS_MAX && start >= r->start;
  const tracing_event event = {name, device, start, counts ? tracing_clock() - start : 0};
  if (counts) (void)BASE_VEC_PUSH(base_alloc_libc, &r->events, event);
}

void pjrt_trace_run(PJRT_Executable *e, PJRT_Device *const *devices, uint32_t n, int64_t start) {
  struct tracing_record *r = &tracing_record;
  if (!start) return;
  assert(n > 0 && devices[0]);
  pthread_mutex_lock(&r->lock);
  uint32_t session = atomic_load(&r->session);
  if (session && e->trace_session != session) {
    e->trace_session = session;
    e->trace_name = tracing_name(r, "", e->name);
  }
  for (uint32_t i = 0; session && i < n; i++) tracing_push(r, e->trace_name, devices[i]->description.id, start);
  pthread_mutex_unlock(&r->lock);
}

void pjrt_trace_compilation(const char *name, int64_t start) {
  struct tracing_record *r = &tracing_record;
  if (!start) return;
  pthread_mutex_lock(&r->lock);
  if (atomic_load(&r->session)) tracing_push(r, tracing_name(r, "compile ", name), TRACING_COMPILER, start);
  pthread_mutex_unlock(&r->lock);
}

/* --- an XSpace: written twice, first only counted --- */

typedef struct tracing_out {
  unsigned char *at; /* NULL: only count */
  size_t n;
} tracing_out;

static void tracing_put(tracing_out *o, const void *bytes, size_t n) {
  if (o->at && n) memcpy(o->at + o->n, bytes, n);
  o->n += n;
}

static void tracing_put_head(tracing_out *o, uint32_t field, size_t n) {
  unsigned char head[20];
  tracing_put(o, head, wire_put_head(head, field, n));
}

static void tracing_put_text(tracing_out *o, uint32_t field, const char *text) {
  tracing_put_head(o, field, strlen(text));
  tracing_put(o, text, strlen(text));
}

static void tracing_put_int(tracing_out *o, uint32_t field, int64_t value) {
  unsigned char bytes[20];
  size_t n = wire_put_varint(bytes, (uint64_t)field << 3);
  tracing_put(o, bytes, n + wire_put_varint(bytes + n, (uint64_t)value));
}

/* What a message is written from. */
typedef struct tracing_part {
  const struct tracing_record *r;
  int32_t device;
  size_t i; /* of an event or a name */
} tracing_part;
typedef void tracing_write(tracing_out *o, const tracing_part *p);

static void tracing_put_message(tracing_out *o, uint32_t field, tracing_write *write, const tracing_part *p) {
  tracing_out count = {NULL, 0};
  write(&count, p);
  tracing_put_head(o, field, count.n);
  write(o, p);
}

/* Metadata's ids begin with 1. */
static void tracing_write_event(tracing_out *o, const tracing_part *p) {
  const tracing_event *e = &p->r->events.items[p->i];
  assert(e->start >= p->r->start);
  tracing_put_int(o, 1, (int64_t)e->name + 1);
  tracing_put_int(o, 2, (e->start - p->r->start) * 1000); /* offset_ps */
  tracing_put_int(o, 3, (e->ns > 0 ? e->ns : 0) * 1000);  /* duration_ps */
}

static void tracing_write_line(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, 1);
  tracing_put_text(o, 2, p->device == TRACING_COMPILER ? "Compilations" : "Programs");
  tracing_put_int(o, 3, p->r->start); /* timestamp_ns */
  for (size_t i = 0; i < p->r->events.n; i++)
    if (p->r->events.items[i].device == p->device)
      tracing_put_message(o, 4, tracing_write_event, &(tracing_part){p->r, p->device, i});
}

static void tracing_write_metadata(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, (int64_t)p->i + 1);
  tracing_put_text(o, 2, p->r->names.items[p->i]);
}

static void tracing_write_name(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, (int64_t)p->i + 1);
  tracing_put_message(o, 2, tracing_write_metadata, p);
}

static void tracing_write_plane(tracing_out *o, const tracing_part *p) {
  char name[64] = "/device:CUSTOM:xlac compiler";
  if (p->device != TRACING_COMPILER) snprintf(name, sizeof name, "/device:CUSTOM:xlac:%d", p->device);
  tracing_put_int(o, 1, p->device + 1);
  tracing_put_text(o, 2, name);
  tracing_put_message(o, 3, tracing_write_line, p);
  for (size_t i = 0; i < p->r->names.n; i++)
    tracing_put_message(o, 4, tracing_write_name, &(tracing_part){p->r, p->device, i});
}

/* A plane for each device that an event is of. */
static void tracing_write_space(tracing_out *o, const struct tracing_record *r) {
  int32_t last = TRACING_COMPILER - 1;
  for (;;) {
    int32_t next = INT32_MAX;
    for (size_t i = 0; i < r->events.n; i++) {
      int32_t device = r->events.items[i].device;
      if (device > last && device < next) next = device;
    }
    if (next == INT32_MAX) return;
    tracing_put_message(o, 1, tracing_write_plane, &(tracing_part){r, next, 0});
    last = next;
  }
}

/* --- the profiler --- */

static void tracing_clear(struct tracing_record *r) {
  for (uint32_t i = 0; i < r->names.n; i++) pjrt_free(r->names.items[i]);
  BASE_VEC_FREE(base_alloc_libc, &r->names);
  BASE_VEC_FREE(base_alloc_libc, &r->events);
}

/* Under the lock: what was recorded is p's bytes. */
static PJRT_Error *tracing_keep(struct tracing_record *r, PLUGIN_Profiler *p) {
  tracing_out count = {NULL, 0};
  assert(r->by == p && atomic_load(&r->session));
  atomic_store(&r->session, 0);
  r->by = NULL;
  tracing_write_space(&count, r);
  tracing_out out = {base_malloc(base_alloc_libc, count.n + 1), 0};
  if (out.at) tracing_write_space(&out, r);
  assert(!out.at || out.n == count.n);
  tracing_clear(r);
  pjrt_free(p->bytes);
  p->bytes = out.at;
  p->n = out.n;
  return out.at ? NULL : pjrt_out_of_memory("a profile");
}

static PJRT_Error *tracing_create(PLUGIN_Profiler_Create_Args *args) {
  args->profiler = pjrt_alloc(sizeof *args->profiler);
  return args->profiler ? NULL : pjrt_out_of_memory("a profiler");
}

static PJRT_Error *tracing_stop(PLUGIN_Profiler_Args *args) {
  struct tracing_record *r = &tracing_record;
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&r->lock);
  if (r->by == args->profiler) error = tracing_keep(r, args->profiler);
  pthread_mutex_unlock(&r->lock);
  return error;
}

static PJRT_Error *tracing_destroy(PLUGIN_Profiler_Args *args) {
  if (!args->profiler) return NULL;
  PJRT_Error *error = tracing_stop(args);
  pjrt_free(args->profiler->bytes);
  pjrt_free(args->profiler);
  return error;
}

static PJRT_Error *tracing_start(PLUGIN_Profiler_Args *args) {
  struct tracing_record *r = &tracing_record;
  PJRT_Error *error = NULL;
  pthread_mutex_lock(&r->lock);
  if (r->by) {
    error = pjrt_fail(PJRT_FAILED_PRECONDITION, "a profiler records already: one does so at a time");
  } else {
    r->by = args->profiler;
    r->start = tracing_clock();
    atomic_store(&r->session, ++r->sessions);
  }
  pthread_mutex_unlock(&r->lock);
  return error;
}

/* The bytes are the profiler's until it is destroyed or starts again. */
static PJRT_Error *tracing_collect(PLUGIN_Profiler_CollectData_Args *args) {
  PLUGIN_Profiler *p = args->profiler;
  if (args->buffer && p->n) memcpy(args->buffer, p->bytes, p->n);
  if (!args->buffer) args->buffer = p->bytes;
  args->buffer_size_in_bytes = p->n;
  return NULL;
}

/* --- its errors --- */

static void tracing_error_destroy(PLUGIN_Profiler_Error_Args *args) {
  PJRT_Error_Destroy_Args slot = {.struct_size = sizeof slot, .error = args->error};
  pjrt_error_destroy(&slot);
}

static void tracing_error_message(PLUGIN_Profiler_Error_Args *args) {
  PJRT_Error_Message_Args slot = {.struct_size = sizeof slot, .error = args->error};
  pjrt_error_message(&slot);
  args->message = slot.message;
  args->message_size = slot.message_size;
}

static PJRT_Error *tracing_error_code(PLUGIN_Profiler_Error_Args *args) {
  PJRT_Error_GetCode_Args slot = {.struct_size = sizeof slot, .error = args->error};
  PJRT_Error *error = pjrt_error_get_code(&slot);
  args->code = (int)slot.code;
  return error;
}

const PLUGIN_Profiler_Api pjrt_profiler = {.struct_size = sizeof pjrt_profiler,
                                           .error_destroy = tracing_error_destroy,
                                           .error_message = tracing_error_message,
                                           .error_get_code = tracing_error_code,
                                           .create = tracing_create,
                                           .destroy = tracing_destroy,
                                           .start = tracing_start,
                                           .stop = tracing_stop,
                                           .collect_data = tracing_collect};
