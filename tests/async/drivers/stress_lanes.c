/* Lanes under many posters, for ThreadSanitizer: tasks in parts, tasks that wait for tasks of the same lane, tasks that
 * are taken back, lanes without threads, lanes that come and go. Exits 0 when all sums are right. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/lane.h"

enum { POSTERS = 4, ROUNDS = 200, PARTS = 5, DEPTH = 4, ROOM = 64 };

typedef struct work {
  rt_task task;
  int sum, depth; /* written without atomics: the lane must order it before who waits reads */
  char memory[ROOM];
} work;

static void count(rt_task *t, uint32_t part) {
  work *w = (work *)t;
  w->sum += (int)part + 1;
  memset(w->memory, (int)part, sizeof w->memory);
}

static void finish(rt_task *t) {
  while (!rt_task_help(t) && !rt_task_wait(t, 0.001)) continue;
}

/* Waits for a task of its own lane, which its thread may be the only one to run. */
static void nest(rt_task *t, uint32_t part) {
  work *w = (work *)t, inner = {.depth = w->depth + 1};
  (void)part;
  rt_task_init(&inner.task, t->lane, inner.depth < DEPTH ? nest : count);
  rt_task_post(&inner.task);
  finish(&inner.task);
  w->sum = inner.sum + 1;
}

static bool in_parts(rt_lane *l) {
  work w = {.sum = 0};
  rt_task_init(&w.task, l, count);
  for (int i = 0; i < PARTS; i++) rt_task_post(&w.task);
  finish(&w.task);
  return w.sum == PARTS * (PARTS + 1) / 2;
}

static bool part_by_part(rt_lane *l) {
  work w = {.sum = 0};
  rt_task_init(&w.task, l, count);
  for (int i = 0; i < PARTS; i++) {
    rt_task_post(&w.task);
    if (i % 2) finish(&w.task);
  }
  finish(&w.task);
  return w.sum == PARTS * (PARTS + 1) / 2;
}

static bool until(void *ctx) {
  int *parts = ctx;
  return (*parts)-- > 0;
}

/* Who waits runs some of the parts, in their order; where the lane has no threads, as many as it says, and the rest
 * later. */
static bool some_parts(rt_lane *l) {
  work w = {.sum = 0};
  int two = 2, none = 0, all = PARTS;
  rt_task_init(&w.task, l, count);
  for (int i = 0; i < PARTS; i++) rt_task_post(&w.task);
  rt_task_help_while(&w.task, until, &none);
  bool ok = rt_lane_size(l) > 0 || w.sum == 0;
  rt_task_help_while(&w.task, until, &two);
  ok = ok && (rt_lane_size(l) > 0 || (w.sum == 1 + 2 && !rt_task_is_idle(&w.task)));
  rt_task_help_while(&w.task, until, &all);
  ok = ok && (rt_lane_size(l) > 0 || rt_task_is_idle(&w.task));
  finish(&w.task);
  rt_task_help_while(&w.task, until, &all); /* nothing is left */
  return ok && w.sum == PARTS * (PARTS + 1) / 2;
}

static bool nested(rt_lane *l) {
  work w = {.depth = 1};
  rt_task_init(&w.task, l, nest);
  rt_task_post(&w.task);
  finish(&w.task);
  return w.sum == DEPTH;
}

/* Whatever has run, nothing does after a task was taken back: its memory is gone. */
static bool taken_back(rt_lane *l) {
  work many[8];
  for (int i = 0; i < 8; i++) {
    many[i] = (work){.sum = 0};
    rt_task_init(&many[i].task, l, count);
    for (int k = 0; k < PARTS; k++) rt_task_post(&many[i].task);
  }
  for (int i = 0; i < 8; i++) rt_task_cancel(&many[i].task);
  memset(many, 0xA5, sizeof many);
  return true;
}

typedef struct poster {
  rt_lane *lanes[3];
  bool ok;
} poster;

static void *post(void *arg) {
  poster *p = arg;
  p->ok = true;
  for (int i = 0; i < ROUNDS; i++) {
    rt_lane *l = p->lanes[i % 3];
    p->ok = p->ok && in_parts(l) && part_by_part(l) && some_parts(l) && nested(l) && taken_back(l);
  }
  return NULL;
}

static bool brief(void) {
  rt_lane *l = NULL;
  if (rt_lane_create(&l, 2, base_alloc_libc, NULL) != 0) return false;
  bool ok = in_parts(l) && nested(l);
  rt_lane_destroy(l);
  return ok;
}

int main(void) {
  static poster posters[POSTERS];
  pthread_t threads[POSTERS];
  rt_lane *lanes[3] = {NULL};
  bool ok = true;
  for (uint32_t i = 0; i < 3; i++)
    if (rt_lane_create(&lanes[i], i, base_alloc_libc, NULL) != 0) return 1;
  for (int i = 0; i < POSTERS; i++) {
    memcpy(posters[i].lanes, lanes, sizeof lanes);
    if (pthread_create(&threads[i], NULL, post, &posters[i]) != 0) return 1;
  }
  for (int i = 0; i < 50; i++) ok = brief() && ok;
  for (int i = 0; i < POSTERS; i++) {
    pthread_join(threads[i], NULL);
    ok = ok && posters[i].ok;
  }
  for (int i = 0; i < 3; i++) rt_lane_destroy(lanes[i]);
  if (!ok) printf("a sum is wrong\n");
  return ok ? 0 : 1;
}
