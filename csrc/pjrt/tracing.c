/* Profiles: what jax.profiler.trace and its kin write down of the plugin's work, beside what the client itself does.
 *
 * Runs, their steps and compilations are noted while a profiler records, and given as an XSpace (a protocol buffer of
 * TSL's): a plane for each device with a line of programs and one of ops, another plane for compilations. Times are
 * those of CLOCK_REALTIME, by which clients order planes of several sources.
 *
 * Profilers belong to no client: the interface has them for the process. So what is recorded is the one thing here that
 * the process has once; one profiler records at a time. */
#include <stdio.h>
#include <time.h>

#include "abi_extensions.h"
#include "pjrt.h"
#include "wire.h"

enum {
  TRACING_EVENTS_MAX = 1 << 20,
  TRACING_COMPILER = -1, /* the "device" of compilations */
  TRACING_HEADS = 1024
};

typedef enum tracing_line { TRACING_PROGRAMS, TRACING_OPS, TRACING_LINES } tracing_line;

typedef struct tracing_event {
  uint32_t name;
  int32_t device;
  uint8_t line;
  int64_t start, ns;
} tracing_event;

/* Events of one name and one op_name share it. Chained by the hash of both. */
typedef struct tracing_name {
  char *text; /* then op_name */
  const char *op_name;
  uint32_t next; /* 1 + its number; 0: none */
} tracing_name;

BASE_VEC(tracing_events, tracing_event);
BASE_VEC(tracing_names, tracing_name);

struct PLUGIN_Profiler {
  unsigned char *bytes; /* what it has recorded, once it was stopped */
  size_t n;
};

static struct tracing_record {
  pthread_mutex_t lock;      /* of all that follows */
  atomic_bool records;       /* somebody does; read without the lock */
  const PLUGIN_Profiler *by; /* who */
  int64_t start;
  tracing_names names;
  uint32_t heads[TRACING_HEADS]; /* of chains of names */
  tracing_events events;
} tracing_record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t tracing_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- recording --- */

int64_t pjrt_trace_now(void) {
  return atomic_load_explicit(&tracing_record.records, memory_order_relaxed) ? tracing_clock() : 0;
}

/* Its number; UINT32_MAX when out of memory: the event is left out. Under the lock. */
static uint32_t tracing_name_of(struct tracing_record *r, const char *text, const char *op_name) {
  uint32_t *head = &r->heads[pjrt_hash(pjrt_hash(PJRT_HASH_START, text), op_name) % TRACING_HEADS];
  for (uint32_t at = *head; at; at = r->names.items[at - 1].next) {
    const tracing_name *n = &r->names.items[at - 1];
    if (!strcmp(n->text, text) && !strcmp(n->op_name, op_name)) return at - 1;
  }
  size_t n = strlen(text) + 1, m = strlen(op_name) + 1;
  char *copy = base_malloc(base_alloc_libc, n + m);
  if (!copy) return UINT32_MAX;
  memcpy(copy, text, n);
  memcpy(copy + n, op_name, m);
  const tracing_name name = {copy, copy + n, *head};
  if (BASE_VEC_PUSH(base_alloc_libc, &r->names, name)) {
    *head = r->names.n;
    return r->names.n - 1;
  }
  pjrt_free(copy);
  return UINT32_MAX;
}

/* What began before the recording did is no part of it. */
static void tracing_push(struct tracing_record *r, uint32_t name, int32_t device, tracing_line line, int64_t start,
                         int64_t ns) {
  const tracing_event event = {name, device, (uint8_t)line, start, ns > 0 ? ns : 0};
  if (name != UINT32_MAX && r->events.n < TRACING_EVENTS_MAX && start >= r->start)
    (void)BASE_VEC_PUSH(base_alloc_libc, &r->events, event);
}

void pjrt_trace_run(const PJRT_Executable *e, PJRT_Device *const *devices, uint32_t n, int64_t start) {
  struct tracing_record *r = &tracing_record;
  if (!start) return;
  assert(n > 0 && devices[0]);
  pthread_mutex_lock(&r->lock);
  int64_t ns = tracing_clock() - start;
  for (uint32_t i = 0; r->by && i < n; i++)
    tracing_push(r, tracing_name_of(r, e->name, ""), devices[i]->description.id, TRACING_PROGRAMS, start, ns);
  pthread_mutex_unlock(&r->lock);
}

void pjrt_trace_step(void *ctx, const char *op, const char *op_name, int64_t start, int64_t ns) {
  struct tracing_record *r = &tracing_record;
  const pjrt_traced *of = ctx;
  assert(of->start > 0 && start >= 0);
  pthread_mutex_lock(&r->lock);
  if (r->by)
    tracing_push(r, tracing_name_of(r, op, op_name), of->device->description.id, TRACING_OPS, of->start + start, ns);
  pthread_mutex_unlock(&r->lock);
}

void pjrt_trace_compilation(const char *name, int64_t start) {
  struct tracing_record *r = &tracing_record;
  char text[256];
  if (!start) return;
  snprintf(text, sizeof text, "compile %s", name);
  pthread_mutex_lock(&r->lock);
  if (r->by)
    tracing_push(r, tracing_name_of(r, text, ""), TRACING_COMPILER, TRACING_PROGRAMS, start, tracing_clock() - start);
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
  tracing_line line;
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
  assert(e->start >= p->r->start && e->ns >= 0);
  tracing_put_int(o, 1, (int64_t)e->name + 1);
  tracing_put_int(o, 2, (e->start - p->r->start) * 1000); /* offset_ps */
  tracing_put_int(o, 3, e->ns * 1000);                    /* duration_ps */
}

static void tracing_write_line(tracing_out *o, const tracing_part *p) {
  static const char *const names[TRACING_LINES] = {[TRACING_PROGRAMS] = "Programs", [TRACING_OPS] = "Ops"};
  tracing_put_int(o, 1, (int64_t)p->line + 1);
  tracing_put_text(o, 2, p->device == TRACING_COMPILER ? "Compilations" : names[p->line]);
  tracing_put_int(o, 3, p->r->start); /* timestamp_ns */
  for (size_t i = 0; i < p->r->events.n; i++) {
    const tracing_event *e = &p->r->events.items[i];
    if (e->device == p->device && e->line == p->line)
      tracing_put_message(o, 4, tracing_write_event, &(tracing_part){p->r, p->device, p->line, i});
  }
}

/* The one statistic that there is, of names: what JAX calls the op. */
enum { TRACING_OP_NAME = 1 };

static void tracing_write_statistic(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, TRACING_OP_NAME);
  tracing_put_text(o, 5, p->r->names.items[p->i].op_name); /* str_value */
}

static void tracing_write_statistic_name(tracing_out *o, const tracing_part *p) {
  (void)p;
  tracing_put_int(o, 1, TRACING_OP_NAME);
  tracing_put_text(o, 2, "tf_op"); /* viewers know it by this name */
}

static void tracing_write_statistic_entry(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, TRACING_OP_NAME);
  tracing_put_message(o, 2, tracing_write_statistic_name, p);
}

static void tracing_write_metadata(tracing_out *o, const tracing_part *p) {
  tracing_put_int(o, 1, (int64_t)p->i + 1);
  tracing_put_text(o, 2, p->r->names.items[p->i].text);
  if (p->r->names.items[p->i].op_name[0]) tracing_put_message(o, 5, tracing_write_statistic, p);
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
  for (int line = 0; line < (p->device == TRACING_COMPILER ? 1 : TRACING_LINES); line++)
    tracing_put_message(o, 3, tracing_write_line, &(tracing_part){p->r, p->device, (tracing_line)line, 0});
  for (size_t i = 0; i < p->r->names.n; i++)
    tracing_put_message(o, 4, tracing_write_name, &(tracing_part){p->r, p->device, TRACING_PROGRAMS, i});
  tracing_put_message(o, 5, tracing_write_statistic_entry, p);
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
    tracing_put_message(o, 1, tracing_write_plane, &(tracing_part){r, next, TRACING_PROGRAMS, 0});
    last = next;
  }
}

/* --- the profiler --- */

static void tracing_clear(struct tracing_record *r) {
  for (uint32_t i = 0; i < r->names.n; i++) pjrt_free(r->names.items[i].text);
  memset(r->heads, 0, sizeof r->heads);
  BASE_VEC_FREE(base_alloc_libc, &r->names);
  BASE_VEC_FREE(base_alloc_libc, &r->events);
}

/* Under the lock: what was recorded is p's bytes. */
static PJRT_Error *tracing_keep(struct tracing_record *r, PLUGIN_Profiler *p) {
  tracing_out count = {NULL, 0};
  assert(r->by == p && atomic_load(&r->records));
  atomic_store(&r->records, false);
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
    atomic_store(&r->records, true);
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
