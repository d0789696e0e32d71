/* The conformance suite of devices: what runtime/device.h promises, on any device. Run with two names, of the device
 * and of another one for what goes between two: "cpu cpu:1". Says how many checks passed, or what failed and where. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "convert/convert.h"
#include "driver/compile.h"
#include "text/text.h"
#include "third.h"

#define CHECK(what)                                                               \
  do {                                                                            \
    atomic_fetch_add(&checks, 1);                                                 \
    if (!(what)) {                                                                \
      printf("%s: line %d: %s: %s\n", current, __LINE__, #what, failure.message); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)
#define OK(call) CHECK((call) == 0)
#define FAILS(call, with) CHECK((call) == -(with) && failure.code == (with) && failure.message[0])

enum { N = 64, THREADS = 8, ROUNDS = 200 };

static atomic_uint checks;
static const char *current = "";
static _Thread_local xlac_error failure; /* of the last call on this thread */
#define ERR (&failure)

typedef struct world {
  rt_device_set *devices;
  rt_device *d, *other;
} world;

static const rt_device_kind kinds[] = {
    {"cpu", NULL}, {"interp", NULL}, {"cuda", NULL}, {"third", third_device_create}, {NULL, NULL}};
static rt_device_kind own_kinds[5];

/* --- programs --- */

static const char sum[] =
    "HloModule m\nENTRY e { x = f32[64] parameter(0)\n y = f32[64] parameter(1)\n ROOT z = f32[64] add(x, y) }";
static const char two[] =
    "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[64] negate(x)\n b = f32[64] multiply(x, x)\n"
    " ROOT t = (f32[64], f32[64]) tuple(a, b) }";
static const char given[] =
    "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e { x = f32[64] parameter(0)\n"
    " one = f32[] constant(1)\n b = f32[64] broadcast(one), dimensions={}\n ROOT z = f32[64] add(x, b) }";
static const char endless[] =
    "HloModule m\nc { s = (f32[64], pred[]) parameter(0)\n ROOT p = pred[] get-tuple-element(s), index=1 }\n"
    "b { s = (f32[64], pred[]) parameter(0)\n x = f32[64] get-tuple-element(s), index=0\n y = f32[64] cosine(x)\n"
    " p = pred[] get-tuple-element(s), index=1\n ROOT t = (f32[64], pred[]) tuple(y, p) }\n"
    "ENTRY e { x = f32[64] parameter(0)\n p = pred[] constant(true)\n s = (f32[64], pred[]) tuple(x, p)\n"
    " w = (f32[64], pred[]) while(s), condition=c, body=b\n ROOT r = f32[64] get-tuple-element(w), index=0 }";
static const char unknown_call[] =
    "HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] custom-call(x), custom_call_target=\"nobody\" "
    "}";

static rt_executable *build(world *w, rt_device *d, const char *text) {
  const text_parse_options read = {.chlo = false};
  const driver_options options = {.devices = w->devices, .device = d, .build = {.threads = 2, .no_blas = true}};
  ir_module *m = NULL;
  rt_executable *exe = NULL;
  OK(text_parse_hlo(&m, text, strlen(text), &read, ERR));
  OK(driver_compile(m, &options, NULL, &exe, ERR));
  ir_module_destroy(m);
  CHECK(exe->device == d && exe->module && exe->n_results > 0);
  return exe;
}

static bool is_visible(const rt_device *d) {
  return d->facts.spaces[0].host_visible;
}

/* N floats to or from memory of the device's that the host does not see. */
static void transfer(rt_device *d, float *to, const float *from, uint32_t to_space, uint32_t from_space) {
  const rt_copy copy = {to, from, N * sizeof(float), to_space, from_space};
  rt_queue *q = NULL;
  OK(rt_queue_create(d, &q, ERR));
  OK(rt_queue_copy(q, &copy, NULL, ERR));
  OK(rt_queue_drain(q, NULL, NULL, ERR));
  rt_queue_destroy(q);
}

/* first, first + 1, ... in memory of the device's. */
static float *memory(rt_device *d, float first) {
  void *block = NULL;
  float values[N];
  OK(rt_allocate(d, 0, N * sizeof(float), &block, ERR));
  for (int i = 0; i < N; i++) values[i] = first + (float)i;
  if (is_visible(d))
    memcpy(block, values, sizeof values);
  else
    transfer(d, block, values, 0, RT_HOST);
  return block;
}

/* What is in that memory now: a copy in `home`, where the host does not see it. */
static const float *look(rt_device *d, const float *block, float home[N]) {
  if (is_visible(d)) return block;
  transfer(d, home, block, RT_HOST, 0);
  return home;
}

static const rt_call_options plain = {.seed = 1};

/* --- the suite --- */

static void facts(world *w) {
  char name[32], expected[32];
  const rt_device_facts *f = &w->d->facts;
  rt_device_name(w->d, name);
  snprintf(expected, sizeof expected, "%s:%u", f->kind, (unsigned)f->ordinal);
  CHECK(strcmp(name, expected) == 0 && f->units >= 1);
  CHECK(f->n_spaces >= 1 && f->n_spaces <= RT_MOST_SPACES);
  for (uint32_t i = 0; i < f->n_spaces; i++) CHECK(f->spaces[i].name && f->spaces[i].bytes >= 1 << 16);
  rt_device *again = NULL;
  OK(rt_device_set_open(w->devices, name, &again, ERR));
  CHECK(again == w->d &&
        (w->other == w->d || w->other->facts.ordinal != f->ordinal || w->other->facts.kind != f->kind));
}

static void allocation(world *w) {
  rt_memory_stats before = {0}, during = {0}, after = {0};
  for (uint32_t space = 0; space < w->d->facts.n_spaces; space++) {
    void *a = NULL, *b = NULL, *none = NULL;
    if (w->d->vtable->stats) w->d->vtable->stats(w->d, &before);
    OK(rt_allocate(w->d, space, 1000, &a, ERR));
    OK(rt_allocate(w->d, space, 1000, &b, ERR));
    OK(rt_allocate(w->d, space, 0, &none, ERR));
    CHECK(a && b && none && a != b && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
    if (w->d->facts.spaces[space].host_visible) {
      memset(a, 1, 1000);
      memset(b, 2, 1000);
      CHECK(((char *)a)[999] == 1);
    }
    if (w->d->vtable->stats) w->d->vtable->stats(w->d, &during);
    CHECK(!w->d->vtable->stats || (during.live == before.live + 3 && during.peak_bytes >= during.live_bytes));
    rt_release(w->d, space, a);
    rt_release(w->d, space, b);
    rt_release(w->d, space, none);
    rt_release(w->d, space, NULL);
    if (w->d->vtable->stats) w->d->vtable->stats(w->d, &after);
    CHECK(after.live == before.live && after.live_bytes == before.live_bytes);
  }
}

static void exhaustion(world *w) {
  void *block = NULL, *room = NULL;
  FAILS(rt_allocate(w->d, 0, SIZE_MAX / 2, &block, ERR), XLAC_E_OUT_OF_MEMORY);
  FAILS(rt_allocate(w->d, 0, (size_t)w->d->facts.spaces[0].bytes + 1, &block, ERR), XLAC_E_OUT_OF_MEMORY);
  FAILS(rt_allocate(w->d, w->d->facts.n_spaces, 1, &block, ERR), XLAC_E_BAD_ARGUMENT);
  CHECK(block == NULL);
  OK(rt_allocate(w->d, 0, 1 << 12, &room, ERR)); /* the device goes on */
  rt_release(w->d, 0, room);
}

static void copies(world *w) {
  rt_queue *q = NULL;
  rt_event *done = NULL;
  float *a = memory(w->d, 1), *b = memory(w->d, 100), *far = memory(w->other, 200), home[N], own[N], its[N];
  bool near = w->other == w->d,
       reaches = near || is_visible(w->other); /* else its memory is no concern of the queue's */
  OK(rt_queue_create(w->d, &q, ERR));
  const rt_copy within = {b, a, N * sizeof(float), 0, 0}, out = {home, b, N * sizeof(float), RT_HOST, 0};
  const rt_copy away = {reaches ? far : its, b, N * sizeof(float), near ? 0 : RT_HOST, 0};
  const rt_copy nothing = {b, far, 0, 0, RT_HOST};
  const rt_copy bad = {b, a, 4, w->d->facts.n_spaces, 0};
  OK(rt_queue_copy(q, &within, NULL, ERR));
  OK(rt_queue_copy(q, &out, NULL, ERR));
  OK(rt_queue_copy(q, &nothing, NULL, ERR));
  OK(rt_queue_copy(q, &away, &done, ERR));
  OK(rt_event_wait(done, NULL, NULL, ERR));
  const float *values = look(w->d, a, own);
  CHECK(memcmp(home, values, sizeof home) == 0);
  CHECK(memcmp(reaches ? look(w->other, far, its) : its, values, sizeof home) == 0);
  FAILS(rt_queue_copy(q, &bad, NULL, ERR), XLAC_E_BAD_ARGUMENT);
  rt_event_release(done);
  rt_queue_destroy(q);
  rt_release(w->d, 0, a);
  rt_release(w->d, 0, b);
  rt_release(w->other, 0, far);
}

static void call(world *w) {
  rt_executable *exe = build(w, w->d, two);
  float *x = memory(w->d, 2), *a = memory(w->d, 0), *b = memory(w->d, 0);
  CHECK(exe->n_arguments == 1 && exe->n_results == 2 && !exe->on_values);
  CHECK(exe->argument_types[0]->count == N && exe->result_types[1]->count == N);
  void *const arguments[] = {x}, *const results[] = {a, b};
  OK(rt_call(exe, &plain, arguments, results, ERR));
  float hx[N], ha[N], hb[N];
  const float *u = look(w->d, x, hx), *v = look(w->d, a, ha), *s = look(w->d, b, hb);
  for (int i = 0; i < N; i++) CHECK(v[i] == -u[i] && s[i] == u[i] * u[i] && u[i] == 2 + (float)i);
  rt_executable_destroy(exe);
  rt_release(w->d, 0, x);
  rt_release(w->d, 0, a);
  rt_release(w->d, 0, b);
}

/* Values are checked, and the results are new. */
static void values(world *w) {
  rt_executable *exe = build(w, w->d, two);
  const int64_t dims[] = {N};
  float data[N] = {3};
  interp_value *x = interp_lend(base_alloc_libc, XLAC_F32, 1, dims, data, NULL, NULL), *out = NULL;
  OK(rt_run_values(exe, &plain, 1, &x, &out, NULL, ERR));
  CHECK(out->kind == INTERP_TUPLE && ((float *)out->elements[1]->data)[0] == 9);
  FAILS(rt_run_values(exe, &plain, 0, NULL, &out, NULL, ERR), XLAC_E_ARGUMENT_COUNT);
  interp_release(out);
  interp_release(x);
  rt_executable_destroy(exe);
}

/* The result may be its argument's memory, and may be memory of its own. */
static void donation(world *w) {
  rt_executable *exe = build(w, w->d, given);
  float *x = memory(w->d, 5), *y = memory(w->d, 0);
  void *const at[] = {x}, *const elsewhere[] = {y};
  OK(rt_call(exe, &plain, at, elsewhere, ERR));
  float hx[N], hy[N];
  const float *u = look(w->d, x, hx), *v = look(w->d, y, hy);
  for (int i = 0; i < N; i++) CHECK(u[i] == 5 + (float)i && v[i] == 6 + (float)i);
  OK(rt_call(exe, &plain, at, at, ERR));
  u = look(w->d, x, hx);
  for (int i = 0; i < N; i++) CHECK(u[i] == 6 + (float)i);
  rt_executable_destroy(exe);
  rt_release(w->d, 0, x);
  rt_release(w->d, 0, y);
}

/* --- queues --- */

typedef struct note {
  int at, seen[16];
} note;
typedef struct noted {
  note *to;
  int value, fails;
} noted;

static int put_note(void *ctx, xlac_error *err) {
  const noted *x = ctx;
  if (x->to->at < 16) x->to->seen[x->to->at++] = x->value;
  return x->fails ? base_fail(err, XLAC_E_EVAL, "note %d fails", x->value) : 0;
}

static void order(world *w) {
  rt_queue *q = NULL;
  note n = {0};
  noted pieces[16];
  rt_executable *exe = build(w, w->d, sum);
  float *x = memory(w->d, 1), *y = memory(w->d, 1);
  void *const arguments[] = {x, x}, *const results[] = {y}, *const back[] = {x};
  OK(rt_queue_create(w->d, &q, ERR));
  for (int i = 0; i < 16; i++) {
    pieces[i] = (noted){&n, i, 0};
    OK(rt_queue_host_call(q, put_note, &pieces[i], NULL, ERR));
  }
  for (int i = 0; i < 3; i++) { /* each doubles what the one before has left */
    OK(rt_queue_execute(q, exe, &plain, arguments, results, NULL, ERR));
    const rt_copy again = {back[0], y, N * sizeof(float), 0, 0};
    OK(rt_queue_copy(q, &again, NULL, ERR));
  }
  OK(rt_queue_drain(q, NULL, NULL, ERR));
  for (int i = 0; i < 16; i++) CHECK(n.seen[i] == i);
  float home[N];
  const float *u = look(w->d, x, home);
  for (int i = 0; i < N; i++) CHECK(u[i] == 8 * (1 + (float)i));
  rt_queue_destroy(q);
  rt_executable_destroy(exe);
  rt_release(w->d, 0, x);
  rt_release(w->d, 0, y);
}

/* Who waits may run pieces, in their order; what waits for an event is left, and helping never waits. */
static void helping(world *w) {
  rt_queue *q = NULL;
  OK(rt_queue_create(w->d, &q, ERR));
  for (int round = 0; round < ROUNDS; round++) {
    rt_event *done[4] = {NULL}, *go = NULL;
    note n = {0};
    noted pieces[4] = {{&n, 0, 0}, {&n, 1, round % 2}, {&n, 2, 0}, {&n, 3, 0}};
    OK(rt_event_create(&go, base_alloc_libc, ERR));
    for (int i = 0; i < 4; i++) {
      if (i == 3) OK(rt_queue_wait_for(q, go, ERR));
      OK(rt_queue_host_call(q, put_note, &pieces[i], &done[i], ERR));
    }
    rt_queue_help(q, done[round % 4]);
    CHECK(rt_event_poll(done[3], NULL) == RT_EVENT_PENDING);
    rt_event_set(go, NULL);
    for (int i = 3; i >= 0; i--) {
      rt_queue_help(q, done[i]);
      if (pieces[i].fails)
        FAILS(rt_event_wait(done[i], NULL, NULL, ERR), XLAC_E_EVAL);
      else
        OK(rt_event_wait(done[i], NULL, NULL, ERR));
      rt_event_release(done[i]);
      rt_event_release(go);
      go = NULL;
    }
    for (int i = 0; i < 4; i++) CHECK(n.seen[i] == i && n.at == 4);
  }
  rt_queue_destroy(q);
}

static void between_queues(world *w) {
  rt_queue *one = NULL, *two_ = NULL;
  rt_event *go = NULL, *first = NULL, *second = NULL;
  note n = {0};
  noted a = {&n, 1, 0}, b = {&n, 2, 0};
  OK(rt_queue_create(w->d, &one, ERR));
  OK(rt_queue_create(w->other, &two_, ERR));
  OK(rt_event_create(&go, base_alloc_libc, ERR));
  OK(rt_queue_wait_for(one, go, ERR)); /* the host holds the first, and the first the second */
  OK(rt_queue_host_call(one, put_note, &a, &first, ERR));
  OK(rt_queue_wait_for(two_, first, ERR));
  OK(rt_queue_host_call(two_, put_note, &b, &second, ERR));
  usleep(2000);
  CHECK(n.at == 0 && rt_event_poll(second, NULL) == RT_EVENT_PENDING);
  rt_event_set(go, NULL);
  OK(rt_event_wait(second, NULL, NULL, ERR));
  CHECK(rt_event_poll(first, NULL) == RT_EVENT_READY && n.seen[0] == 1 && n.seen[1] == 2);
  rt_event_release(go);
  rt_queue_destroy(one);
  rt_queue_destroy(two_);
  rt_event_release(second); /* after the queues */
  rt_event_release(first);
}

/* What fails reaches all that waits for it, and nothing else. */
static void failures(world *w) {
  rt_queue *one = NULL, *two_ = NULL;
  rt_event *bad = NULL, *fine = NULL, *behind = NULL, *mark = NULL;
  note n = {0};
  noted fails = {&n, 1, 1}, good = {&n, 2, 0}, never = {&n, 3, 0};
  OK(rt_queue_create(w->d, &one, ERR));
  OK(rt_queue_create(w->other, &two_, ERR));
  OK(rt_queue_host_call(one, put_note, &fails, &bad, ERR));
  OK(rt_queue_host_call(one, put_note, &good, &fine, ERR)); /* the queue goes on */
  OK(rt_queue_wait_for(two_, bad, ERR));
  OK(rt_queue_host_call(two_, put_note, &never, &behind, ERR));
  FAILS(rt_event_wait(bad, NULL, NULL, ERR), XLAC_E_EVAL);
  OK(rt_event_wait(fine, NULL, NULL, ERR));
  FAILS(rt_event_wait(behind, NULL, NULL, ERR), XLAC_E_EVAL);
  CHECK(strcmp(failure.message, "note 1 fails") == 0 && n.at == 2);
  OK(rt_queue_record(one, &mark, ERR));
  FAILS(rt_event_wait(mark, NULL, NULL, ERR), XLAC_E_EVAL); /* the first since the last record */
  OK(rt_queue_drain(one, NULL, NULL, ERR));                 /* said once */
  FAILS(rt_queue_drain(two_, NULL, NULL, ERR), XLAC_E_EVAL);
  rt_event *all[] = {bad, fine, behind, mark};
  for (int i = 0; i < 4; i++) rt_event_release(all[i]);
  rt_queue_destroy(two_);
  rt_queue_destroy(one);
}

static void failing_programs(world *w) {
  rt_executable *exe = build(w, w->d, unknown_call), *elsewhere = build(w, w->other, sum);
  rt_queue *q = NULL;
  rt_event *done = NULL;
  float *x = memory(w->d, 1), *y = memory(w->d, 1);
  void *const arguments[] = {x, x}, *const results[] = {y};
  CHECK(rt_call(exe, &plain, arguments, results, ERR) < 0 && strstr(failure.message, "nobody"));
  OK(rt_queue_create(w->d, &q, ERR));
  OK(rt_queue_execute(q, exe, &plain, arguments, results, &done, ERR));
  CHECK(rt_event_wait(done, NULL, NULL, ERR) == -failure.code && strstr(failure.message, "nobody"));
  float home[N];
  CHECK(look(w->d, x, home)[3] == 4); /* arguments are as they were */
  if (w->other != w->d)
    FAILS(rt_queue_execute(q, elsewhere, &plain, arguments, results, NULL, ERR), XLAC_E_BAD_ARGUMENT);
  CHECK(rt_queue_drain(q, NULL, NULL, ERR) < 0);
  rt_event_release(done);
  rt_queue_destroy(q);
  rt_executable_destroy(exe);
  rt_executable_destroy(elsewhere);
  rt_release(w->d, 0, x);
  rt_release(w->d, 0, y);
}

static void count_ready(void *ctx, const xlac_error *why) {
  int *counts = ctx;
  counts[why != NULL]++;
}

static void callbacks(world *w) {
  rt_queue *q = NULL;
  rt_event *go = NULL, *bad = NULL;
  int counts[2] = {0, 0};
  const xlac_error why = {.code = XLAC_E_EVAL, .message = "by the host"};
  OK(rt_queue_create(w->d, &q, ERR));
  OK(rt_event_create(&go, base_alloc_libc, ERR));
  OK(rt_event_create(&bad, base_alloc_libc, ERR));
  for (int i = 0; i < 3; i++) OK(rt_event_on_ready(i ? go : bad, count_ready, counts, ERR));
  CHECK(counts[0] == 0 && counts[1] == 0);
  rt_event_set(go, NULL);
  rt_event_set(bad, &why);
  CHECK(counts[0] == 2 && counts[1] == 1);
  OK(rt_event_on_ready(bad, count_ready, counts, ERR)); /* at once */
  CHECK(counts[1] == 2);
  OK(rt_queue_wait_for(q, bad, ERR));
  OK(rt_queue_wait_for(q, go, ERR));
  FAILS(rt_queue_drain(q, NULL, NULL, ERR), XLAC_E_EVAL);
  CHECK(strcmp(failure.message, "by the host") == 0);
  rt_event_release(go);
  rt_event_release(bad);
  rt_queue_destroy(q);
}

/* --- threads, interrupts, ends --- */

typedef struct caller {
  world *w;
  const rt_executable *exe;
} caller;

static void *call_often(void *ctx) {
  const caller *c = ctx;
  rt_queue *q = NULL;
  float *x = memory(c->w->d, 1), *y = memory(c->w->d, 0), *z = memory(c->w->d, 0);
  void *const arguments[] = {x, x}, *const direct[] = {y}, *const queued[] = {z};
  OK(rt_queue_create(c->w->d, &q, ERR));
  for (int i = 0; i < ROUNDS; i++) {
    OK(rt_queue_execute(q, c->exe, &plain, arguments, queued, NULL, ERR));
    OK(rt_call(c->exe, &plain, arguments, direct, ERR));
    if (i % 50 == 0) OK(rt_queue_drain(q, NULL, NULL, ERR));
  }
  OK(rt_queue_drain(q, NULL, NULL, ERR));
  float hx[N], hy[N], hz[N];
  const float *u = look(c->w->d, x, hx), *v = look(c->w->d, y, hy), *t = look(c->w->d, z, hz);
  for (int i = 0; i < N; i++) CHECK(v[i] == 2 * u[i] && t[i] == v[i]);
  rt_queue_destroy(q);
  rt_release(c->w->d, 0, x);
  rt_release(c->w->d, 0, y);
  rt_release(c->w->d, 0, z);
  return NULL;
}

static void threads(world *w) {
  rt_executable *exe = build(w, w->d, sum);
  caller c = {w, exe};
  pthread_t all[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&all[i], NULL, call_often, &c) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  rt_executable_destroy(exe);
}

static bool soon(void *ctx) {
  return ++*(int *)ctx > 2;
}

static void interrupts(world *w) {
  rt_executable *exe = build(w, w->d, endless);
  rt_queue *q = NULL;
  rt_event *never = NULL, *done = NULL;
  int asked = 0, asked_waiting = 0, asked_queued = 0;
  float *x = memory(w->d, 1), *y = memory(w->d, 0);
  void *const arguments[] = {x}, *const results[] = {y};
  rt_call_options options = {.interrupted = soon, .interrupt_ctx = &asked};
  FAILS(rt_call(exe, &options, arguments, results, ERR), XLAC_E_INTERRUPTED);
  float home[N];
  CHECK(look(w->d, x, home)[1] == 2);
  OK(rt_event_create(&never, base_alloc_libc, ERR));
  FAILS(rt_event_wait(never, soon, &asked_waiting, ERR), XLAC_E_INTERRUPTED);
  OK(rt_queue_create(w->d, &q, ERR));
  options.interrupt_ctx = &asked_queued;
  OK(rt_queue_execute(q, exe, &options, arguments, results, &done, ERR));
  FAILS(rt_event_wait(done, NULL, NULL, ERR), XLAC_E_INTERRUPTED);
  rt_event_release(done);
  rt_event_release(never);
  rt_queue_destroy(q);
  rt_executable_destroy(exe);
  rt_release(w->d, 0, x);
  rt_release(w->d, 0, y);
}

/* A device of its own, that goes before all that was made with it. */
static void ends(world *w) {
  const rt_device_kind *kind = own_kinds;
  while (strcmp(kind->kind, w->d->facts.kind) != 0) kind++;
  rt_device *d = NULL;
  rt_queue *q = NULL;
  rt_event *done = NULL;
  const uint32_t ordinal = is_visible(w->d) ? 77 : w->d->facts.ordinal; /* the others are as many as there are */
  OK(kind->create(&d, ordinal, base_alloc_libc, ERR));
  CHECK(d->facts.ordinal == ordinal);
  rt_executable *exe = build(w, d, sum);
  float *x = memory(d, 1), *y = memory(d, 0);
  void *const arguments[] = {x, x}, *const results[] = {y};
  OK(rt_queue_create(d, &q, ERR));
  OK(rt_queue_execute(q, exe, &plain, arguments, results, &done, ERR));
  OK(rt_event_wait(done, NULL, NULL, ERR));
  float home[N];
  CHECK(look(d, y, home)[1] == 4);
  rt_release(d, 0, x);
  rt_release(d, 0, y);
  rt_device_release(d);
  rt_executable_destroy(exe);
  rt_queue_destroy(q);
  CHECK(rt_event_poll(done, NULL) == RT_EVENT_READY);
  rt_event_release(done);
}

static const struct {
  const char *name;
  void (*run)(world *w);
} suite[] = {{"facts", facts},
             {"allocation", allocation},
             {"exhaustion", exhaustion},
             {"copies", copies},
             {"call", call},
             {"values", values},
             {"donation", donation},
             {"order", order},
             {"helping", helping},
             {"between_queues", between_queues},
             {"failures", failures},
             {"failing_programs", failing_programs},
             {"callbacks", callbacks},
             {"threads", threads},
             {"interrupts", interrupts},
             {"ends", ends}};

int main(int argc, char **argv) {
  world w = {0};
  memcpy(own_kinds, kinds, sizeof kinds);
  own_kinds[0] = driver_device_kinds[0];
  own_kinds[1] = driver_device_kinds[1];
  own_kinds[2] = driver_device_kinds[2];
  CHECK(argc == 3);
  OK(rt_device_set_create(&w.devices, own_kinds, base_alloc_libc, ERR));
  OK(rt_device_set_open(w.devices, argv[1], &w.d, ERR));
  OK(rt_device_set_open(w.devices, argv[2], &w.other, ERR));
  for (size_t i = 0; i < sizeof suite / sizeof *suite; i++) {
    current = suite[i].name;
    suite[i].run(&w);
  }
  rt_device_set_release(w.devices);
  printf("%zu tests, %u checks\n", sizeof suite / sizeof *suite, atomic_load(&checks));
  return 0;
}
