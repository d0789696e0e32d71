/* Each participant has a seat. It runs until it must wait: for the other members of a meeting, or for a
 * message. `running` counts those that run; when it comes to 0 while somebody waits, nobody will ever
 * come, and the run ends with an error that says who waits where for whom. Participants share no state but
 * the hub's, and all of that under its lock. */
#include "hub.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

typedef enum seat_state { SEAT_RUNNING, SEAT_MEETING, SEAT_RECEIVING, SEAT_FINISHED, SEAT_FAILED } seat_state;

BASE_VEC(seat_values, interp_value *);
typedef struct hub_seat {
  uint8_t state;                 /* seat_state */
  const ir_op *op;               /* where it waits */
  const interp_meeting *meeting; /* which */
  int64_t channel, from;         /* what it receives */
  pthread_cond_t wake;
  uint32_t fed_in;
  seat_values fed_out;
} hub_seat;

typedef struct hub_message {
  int64_t channel, from, to;
  interp_value *value;
  struct hub_message *next;
} hub_message;

struct interp_hub {
  base_alloc alloc;
  const interp_grid *grid;
  pthread_mutex_t lock;
  pthread_cond_t all_through;
  uint32_t n, running, left; /* running: neither waiting nor through; left: not through */
  _Atomic bool stopped;
  bool deadlocked, told; /* told: somebody's error says so */
  interp_meeting *meetings;
  hub_message *first, **last;
  hub_seat seats[];
};

/* The grid must outlive it. */
interp_hub *interp_hub_create(base_alloc alloc, const interp_grid *grid) {
  uint32_t n = (uint32_t)(grid->replicas * grid->partitions);
  interp_hub *h = base_malloc(alloc, sizeof *h + n * sizeof *h->seats);
  if (!h) return NULL;
  memset(h, 0, sizeof *h + n * sizeof *h->seats);
  h->alloc = alloc;
  h->grid = grid;
  h->n = h->running = h->left = n;
  h->last = &h->first;
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->all_through, NULL);
  for (uint32_t i = 0; i < n; i++) pthread_cond_init(&h->seats[i].wake, NULL);
  return h;
}

/* Values that somebody brought are released; others' places are NULL. */
static void meeting_free(base_alloc alloc, interp_meeting *m) {
  for (uint32_t i = 0; i < m->n * m->n_values; i++) interp_release(m->values[i]);
  base_free(alloc, m);
}

/* All participants are through; meetings that a failure left are freed here. */
void interp_hub_destroy(interp_hub *h) {
  if (!h) return;
  for (interp_meeting *m = h->meetings, *next; m; m = next) next = m->next, meeting_free(h->alloc, m);
  for (hub_message *m = h->first, *next; m; m = next) {
    next = m->next;
    interp_release(m->value);
    base_free(h->alloc, m);
  }
  for (uint32_t i = 0; i < h->n; i++) {
    for (uint32_t k = 0; k < h->seats[i].fed_out.n; k++) interp_release(h->seats[i].fed_out.items[k]);
    BASE_VEC_FREE(h->alloc, &h->seats[i].fed_out);
    pthread_cond_destroy(&h->seats[i].wake);
  }
  pthread_cond_destroy(&h->all_through);
  pthread_mutex_destroy(&h->lock);
  base_free(h->alloc, h);
}

const interp_grid *interp_hub_grid(const interp_hub *h) {
  return h->grid;
}

/* --- saying who waits for whom --- */

/* Gives the length written, cut to `room`. */
static size_t seat_name(const interp_hub *h, uint32_t i, char *to, size_t room) {
  int n = snprintf(to, room, "(replica %lld, partition %lld)", (long long)(i / h->grid->partitions),
                   (long long)(i % h->grid->partitions));
  return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Gives the new end of the text. */
static size_t seat_append(char *text, size_t at, size_t room, const char *what) {
  assert(at < room);
  int n = snprintf(text + at, room - at, "%s", what);
  return n < 0 ? at : at + (size_t)n < room ? at + (size_t)n : room - 1;
}

/* "(replica 0, partition 0) waits in all-reduce %x for (replica 1, partition 0), which has finished" */
static size_t seat_explain(const interp_hub *h, uint32_t i, char *text, size_t at, size_t room) {
  const hub_seat *s = &h->seats[i];
  char line[200];
  at += seat_name(h, i, text + at, room - at);
  snprintf(line, sizeof line, " waits in %s %.60s", ir_opcode_text(s->op->opcode), s->op->name->s);
  at = seat_append(text, at, room, line);
  if (s->state == SEAT_RECEIVING) {
    snprintf(line, sizeof line, " for a message on channel %lld", (long long)s->channel);
    return seat_append(text, at, room, line);
  }
  for (uint32_t k = 0; k < s->meeting->n; k++) {
    if (s->meeting->here[k]) continue;
    const hub_seat *other = &h->seats[s->meeting->members[k]];
    at = seat_append(text, at, room, " for ");
    at += seat_name(h, s->meeting->members[k], text + at, room - at);
    if (other->state == SEAT_FINISHED) at = seat_append(text, at, room, ", which has finished");
    return at;
  }
  return at;
}

static int hub_deadlock(interp_ctx *ctx, const ir_op *op, const interp_hub *h) {
  char text[420];
  size_t at = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < h->n && at + 100 < sizeof text; i++) {
    if (h->seats[i].state != SEAT_MEETING && h->seats[i].state != SEAT_RECEIVING) continue;
    if (at) at = seat_append(text, at, sizeof text, "; ");
    at = seat_explain(h, i, text, at, sizeof text);
  }
  return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "the participants wait for one another: %s", text);
}

/* --- waiting; the lock is held --- */

/* Those who wait look at `stopped`. */
static void hub_wake_all(interp_hub *h) {
  for (uint32_t i = 0; i < h->n; i++) pthread_cond_signal(&h->seats[i].wake);
}

/* What it waited for is there. */
static void seat_resume(interp_hub *h, uint32_t i) {
  hub_seat *s = &h->seats[i];
  assert(s->state == SEAT_MEETING || s->state == SEAT_RECEIVING);
  s->state = SEAT_RUNNING;
  h->running++;
  pthread_cond_signal(&s->wake);
}

/* replica * partitions + partition. */
static uint32_t hub_place(const interp_ctx *ctx) {
  return (uint32_t)(ctx->options.replica * ctx->options.hub->grid->partitions + ctx->options.partition);
}

static int hub_stopped(interp_ctx *ctx) {
  return base_fail(ctx->err, XLAC_E_INTERRUPTED, "the run was interrupted");
}

/* Until somebody resumes us. Whoever is the last to stop running finds out that nobody will, and says so. */
static int hub_block(interp_ctx *ctx, const ir_op *op, seat_state state) {
  interp_hub *h = ctx->options.hub;
  hub_seat *s = &h->seats[hub_place(ctx)];
  s->state = (uint8_t)state;
  s->op = op;
  if (--h->running == 0 && !h->stopped) {
    h->deadlocked = h->told = true;
    h->stopped = true;
    int status = hub_deadlock(ctx, op, h);
    s->state = SEAT_RUNNING;
    h->running++;
    hub_wake_all(h);
    return status;
  }
  while (s->state == (uint8_t)state && !h->stopped) pthread_cond_wait(&s->wake, &h->lock);
  if (s->state == SEAT_RUNNING) return 0;
  bool tell = h->deadlocked && !h->told;
  int status = tell ? hub_deadlock(ctx, op, h) : hub_stopped(ctx);
  h->told |= tell;
  s->state = SEAT_RUNNING;
  h->running++;
  return status;
}

/* --- meetings --- */

/* One that is open and where our place is empty: a participant that is ahead opens the next. */
static interp_meeting *meeting_find(interp_hub *h, const ir_op *op, int64_t channel, uint32_t n,
                                    const uint32_t *members, uint32_t place) {
  for (interp_meeting *m = h->meetings; m; m = m->next) {
    if (m->complete || m->opcode != op->opcode || m->channel != channel || m->n != n || m->here[place]) continue;
    if (memcmp(m->members, members, n * sizeof *members) == 0) return m;
  }
  return NULL;
}

/* One allocation with its lists. */
static interp_meeting *meeting_new(interp_hub *h, const ir_op *op, int64_t channel, uint32_t n, const uint32_t *members,
                                   uint32_t n_values) {
  size_t lists = (size_t)n * n_values * sizeof(interp_value *);
  interp_meeting *m = base_malloc(h->alloc, sizeof *m + lists + n * (sizeof *members + sizeof(bool)));
  if (!m) return NULL;
  memset(m, 0, sizeof *m + lists);
  m->values = (interp_value **)(m + 1);
  uint32_t *own = (uint32_t *)((char *)(m + 1) + lists);
  memcpy(own, members, n * sizeof *members);
  m->members = own;
  m->here = (bool *)(own + n);
  memset(m->here, 0, n * sizeof *m->here);
  m->n = n;
  m->n_values = n_values;
  m->opcode = op->opcode;
  m->channel = channel;
  m->next = h->meetings;
  h->meetings = m;
  return m;
}

static void meeting_remove(interp_hub *h, interp_meeting *m) {
  interp_meeting **link = &h->meetings;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
}

/* Who comes last completes the meeting and wakes the others. */
static int hub_meet_locked(interp_ctx *ctx, const ir_op *op, int64_t channel, uint32_t n, const uint32_t *members,
                           uint32_t place, uint32_t n_values, interp_value *const *values, interp_meeting **out) {
  interp_hub *h = ctx->options.hub;
  if (h->stopped) return hub_stopped(ctx);
  interp_meeting *m = meeting_find(h, op, channel, n, members, place);
  if (!m) m = meeting_new(h, op, channel, n, members, n_values);
  if (!m) return base_oom(ctx->err, "a meeting");
  if (m->n_values != n_values)
    return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "brings %u values where another participant brings %u", n_values,
                       m->n_values);
  for (uint32_t k = 0; k < n_values; k++) m->values[place * n_values + k] = interp_retain(values[k]);
  m->here[place] = true;
  *out = m;
  if (++m->arrived == n) {
    m->complete = true;
    for (uint32_t i = 0; i < n; i++)
      if (i != place) seat_resume(h, m->members[i]);
    return 0;
  }
  h->seats[hub_place(ctx)].meeting = m;
  return hub_block(ctx, op, SEAT_MEETING); /* after a failure all stop, and the hub frees the meeting */
}

int interp_hub_meet(interp_ctx *ctx, const ir_op *op, int64_t channel, uint32_t n_members, const uint32_t *members,
                    uint32_t place, uint32_t n_values, interp_value *const *values, interp_meeting **out) {
  assert(n_members > 0);
  interp_hub *h = ctx->options.hub;
  assert(place < n_members && members[place] == hub_place(ctx));
  pthread_mutex_lock(&h->lock);
  int status = hub_meet_locked(ctx, op, channel, n_members, members, place, n_values, values, out);
  pthread_mutex_unlock(&h->lock);
  return status;
}

void interp_hub_leave(interp_ctx *ctx, interp_meeting *m) {
  interp_hub *h = ctx->options.hub;
  pthread_mutex_lock(&h->lock);
  bool last = ++m->left == m->n;
  if (last) meeting_remove(h, m);
  pthread_mutex_unlock(&h->lock);
  if (last) meeting_free(h->alloc, m);
}

/* --- messages --- */

/* Never waits: messages queue up in order. */
int interp_hub_send(interp_ctx *ctx, const ir_op *op, int64_t channel, int64_t from, int64_t to, interp_value *v) {
  interp_hub *h = ctx->options.hub;
  hub_message *m = base_malloc(h->alloc, sizeof *m);
  (void)op;
  if (!m) return base_oom(ctx->err, "a message");
  *m = (hub_message){channel, from, to, interp_retain(v), NULL};
  pthread_mutex_lock(&h->lock);
  *h->last = m;
  h->last = &m->next;
  for (uint32_t i = 0; i < h->n; i++) {
    const hub_seat *s = &h->seats[i];
    if (s->state == SEAT_RECEIVING && s->channel == channel && (to < 0 || to == (int64_t)i) &&
        (s->from < 0 || s->from == from)) {
      seat_resume(h, i);
      break;
    }
  }
  pthread_mutex_unlock(&h->lock);
  return 0;
}

/* The first that fits; its reference is the caller's. NULL: none. */
static interp_value *message_take(interp_hub *h, int64_t channel, int64_t from, int64_t to) {
  for (hub_message **link = &h->first; *link; link = &(*link)->next) {
    hub_message *m = *link;
    if (m->channel != channel || (m->to >= 0 && m->to != to) || (from >= 0 && m->from != from)) continue;
    interp_value *v = m->value;
    *link = m->next;
    if (h->last == &m->next) h->last = link;
    base_free(h->alloc, m);
    return v;
  }
  return NULL;
}

/* Woken without a message, as another one took it, it waits again. */
int interp_hub_receive(interp_ctx *ctx, const ir_op *op, int64_t channel, int64_t from, int64_t to,
                       interp_value **out) {
  interp_hub *h = ctx->options.hub;
  int status = 0;
  pthread_mutex_lock(&h->lock);
  while (status == 0 && !(*out = message_take(h, channel, from, to))) {
    if (h->stopped) {
      status = hub_stopped(ctx);
      break;
    }
    hub_seat *s = &h->seats[hub_place(ctx)];
    s->channel = channel;
    s->from = from;
    status = hub_block(ctx, op, SEAT_RECEIVING);
  }
  pthread_mutex_unlock(&h->lock);
  return status;
}

interp_value *interp_hub_infeed(interp_ctx *ctx) {
  uint32_t i = hub_place(ctx);
  hub_seat *s = &ctx->options.hub->seats[i];
  const interp_program *p = &ctx->options.hub->grid->programs[i];
  return s->fed_in < p->n_infeed ? p->infeed[s->fed_in++] : NULL; /* the seat is this thread's */
}

int interp_hub_outfeed(interp_ctx *ctx, interp_value *v) {
  interp_hub *h = ctx->options.hub;
  if (!BASE_VEC_PUSH(h->alloc, &h->seats[hub_place(ctx)].fed_out, v)) return base_oom(ctx->err, "an outfeed");
  interp_retain(v);
  return 0;
}

uint32_t interp_hub_fed_out(const interp_hub *h, uint32_t i, interp_value ***values) {
  *values = h->seats[i].fed_out.items;
  return h->seats[i].fed_out.n;
}

/* --- beginning and end --- */

/* When the last that runs is through and others wait, one of them must find out that nobody comes. */
static void hub_check_stuck(interp_hub *h) {
  if (h->running || !h->left || h->stopped) return;
  for (uint32_t i = 0; i < h->n; i++) {
    if (h->seats[i].state != SEAT_MEETING && h->seats[i].state != SEAT_RECEIVING) continue;
    h->deadlocked = true;
    h->stopped = true;
    hub_wake_all(h);
    return;
  }
}

/* After a failure the others stop at their next poll or wait. */
void interp_hub_finish(interp_hub *h, uint32_t participant, bool failed) {
  pthread_mutex_lock(&h->lock);
  h->seats[participant].state = failed ? SEAT_FAILED : SEAT_FINISHED;
  h->running--;
  h->left--;
  if (failed && !h->stopped) {
    h->stopped = true;
    hub_wake_all(h);
  }
  hub_check_stuck(h);
  if (h->left == 0) pthread_cond_signal(&h->all_through);
  pthread_mutex_unlock(&h->lock);
}

void interp_hub_stop(interp_hub *h) {
  pthread_mutex_lock(&h->lock);
  h->stopped = true;
  hub_wake_all(h);
  pthread_mutex_unlock(&h->lock);
}

bool interp_hub_stopped(const interp_hub *h) {
  return h->stopped;
}

bool interp_hub_wait(interp_hub *h, int milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += milliseconds * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  pthread_mutex_lock(&h->lock);
  int status = 0;
  while (h->left && status != ETIMEDOUT) status = pthread_cond_timedwait(&h->all_through, &h->lock, &until);
  bool all = h->left == 0;
  pthread_mutex_unlock(&h->lock);
  return all;
}
