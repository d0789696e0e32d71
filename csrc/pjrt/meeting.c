/* Custom calls that all devices of a run come to, and one of them makes: a callback of Python's in a program whose
 * arrays are sharded, but which isn't written device by device, is called once.
 *
 * All devices have the same operands there. The first that comes makes the call, the others wait for its results and
 * copy them. Devices are known by their threads, each of which runs one of them: a device's n-th call of an op is the
 * same call as another's n-th. */
#include <stdio.h>

#include "../include/xlac_ffi.h"
#include "pjrt.h"

typedef struct joint_seat { /* how often a thread has come to an op */
  struct joint_seat *next;
  const char *op;
  pthread_t thread;
  uint64_t calls;
} joint_seat;

typedef struct joint_call {
  struct joint_call *next;
  const char *op; /* the executable's text, the same for all devices */
  uint64_t number;
  uint32_t came, left;
  bool over;
  int status;
  char *results; /* one after another */
  char error[MEETING_ERROR];
} joint_call;

struct pjrt_meeting {
  pthread_mutex_t lock;
  pthread_cond_t over;
  uint32_t n_devices;
  joint_seat *seats;
  joint_call *calls;
};

pjrt_meeting *pjrt_meeting_create(uint32_t n_devices) {
  pjrt_meeting *m = pjrt_alloc(sizeof *m);
  if (!m) return NULL;
  assert(n_devices > 1);
  m->n_devices = n_devices;
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->over, NULL);
  return m;
}

static void joint_free_call(joint_call *c) {
  pjrt_free(c->results);
  pjrt_free(c);
}

void pjrt_meeting_destroy(pjrt_meeting *m) {
  if (!m) return;
  for (joint_seat *s = m->seats, *next; s; s = next) next = s->next, pjrt_free(s);
  for (joint_call *c = m->calls, *next; c; c = next) next = c->next, joint_free_call(c);
  pthread_cond_destroy(&m->over);
  pthread_mutex_destroy(&m->lock);
  pjrt_free(m);
}

/* --- under the lock --- */

/* The number of this thread's call; UINT64_MAX when out of memory. */
static uint64_t joint_number(pjrt_meeting *m, const char *op) {
  pthread_t self = pthread_self();
  for (joint_seat *s = m->seats; s; s = s->next)
    if (pthread_equal(s->thread, self) && strcmp(s->op, op) == 0) return s->calls++;
  joint_seat *s = pjrt_alloc(sizeof *s);
  if (!s) return UINT64_MAX;
  *s = (joint_seat){m->seats, op, self, 1};
  m->seats = s;
  return 0;
}

static joint_call *joint_find(pjrt_meeting *m, const char *op, uint64_t number) {
  for (joint_call *c = m->calls; c; c = c->next)
    if (c->number == number && strcmp(c->op, op) == 0) return c;
  joint_call *c = pjrt_alloc(sizeof *c);
  if (!c) return NULL;
  c->next = m->calls;
  c->op = op;
  c->number = number;
  return m->calls = c;
}

/* The last device that has its results takes the call away. */
static void joint_leave(pjrt_meeting *m, joint_call *c) {
  assert(c->left < c->came);
  if (++c->left < m->n_devices) return;
  joint_call **at = &m->calls;
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  joint_free_call(c);
}

/* --- results --- */

static void joint_keep(joint_call *c, const xlac_ffi_frame *frame) {
  size_t bytes = 0, at = 0;
  for (uint32_t i = 0; i < frame->n_results; i++) bytes += frame->results[i].bytes;
  c->results = pjrt_alloc(bytes + 1);
  if (!c->results) c->status = -1, snprintf(c->error, sizeof c->error, "out of memory: %zu bytes of results", bytes);
  for (uint32_t i = 0; c->results && i < frame->n_results; at += frame->results[i].bytes, i++)
    if (frame->results[i].bytes) memcpy(c->results + at, frame->results[i].data, frame->results[i].bytes);
}

static void joint_copy(const joint_call *c, const xlac_ffi_frame *frame) {
  size_t at = 0;
  for (uint32_t i = 0; i < frame->n_results; at += frame->results[i].bytes, i++)
    if (frame->results[i].bytes) memcpy(frame->results[i].data, c->results + at, frame->results[i].bytes);
}

/* --- the call --- */

static void joint_make(pjrt_meeting *m, joint_call *c, xlac_ffi_frame *frame, pjrt_meeting_fn *call) {
  pthread_mutex_unlock(&m->lock);
  int status = call(frame, c->error); /* nobody else touches c before it is over */
  c->status = status;
  if (status == 0) joint_keep(c, frame);
  pthread_mutex_lock(&m->lock);
  c->over = true;
  pthread_cond_broadcast(&m->over);
}

int pjrt_meeting_call(pjrt_meeting *m, xlac_ffi_frame *frame, pjrt_meeting_fn *call) {
  char error[MEETING_ERROR] = "out of memory: a call of Python";
  int status = -1;
  pthread_mutex_lock(&m->lock);
  uint64_t number = joint_number(m, frame->op);
  joint_call *c = number == UINT64_MAX ? NULL : joint_find(m, frame->op, number);
  if (c) {
    if (c->came++ == 0) joint_make(m, c, frame, call);
    while (!c->over) pthread_cond_wait(&m->over, &m->lock);
    status = c->status;
    memcpy(error, c->error, sizeof error);
    if (status == 0) joint_copy(c, frame);
    joint_leave(m, c);
  }
  pthread_mutex_unlock(&m->lock);
  return status ? frame->fail(frame, "%s", error) : 0;
}
