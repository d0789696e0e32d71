/* Random plans, placed by the planner, then broken: whatever makes a step read what another one has written over must
 * be found by plan_check. Truth is a run on tags. Says "plans broken found", or aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { STEPS = 12, ARGUMENTS = 3, UNIT = 64, MEMORY = 4096, REGION = 1 << 12 };

static unsigned seed = 1;
static uint32_t pick(uint32_t n) {
  return (uint32_t)rand_r(&seed) % n;
}

typedef struct world {
  plan_program p;
  plan_buffer buffers[ARGUMENTS + STEPS];
  plan_step steps[STEPS];
  uint32_t in[STEPS][3], out[STEPS][1], interface[ARGUMENTS + STEPS], over[1];
  plan_routine routines[STEPS];
} world;

static ir_op *some_op(void) {
  static ir_op op;
  static struct {
    base_istr s;
    char text[8];
  } name;
  op.name = &name.s;
  return &op;
}

static void reads(world *w, uint32_t buffer, uint32_t step) {
  w->buffers[buffer].last = step;
}

/* Step s makes buffer ARGUMENTS + s; the last one is the result, over argument 0. */
static void make(world *w) {
  static ir_type type;
  static ir_computation c;
  c.name = some_op()->name;
  memset(w, 0, sizeof *w);
  for (uint32_t b = 0; b < ARGUMENTS + STEPS; b++) {
    w->buffers[b] = (plan_buffer){
        .bytes = UNIT * (1 + pick(2)), .type = &type, .op = some_op(), .first = UINT32_MAX, .last = UINT32_MAX};
    if (b < ARGUMENTS) w->buffers[b].place = PLAN_ARGUMENT, w->buffers[b].number = b;
  }
  for (uint32_t s = 0; s < STEPS; s++) {
    uint32_t n = 1 + pick(3), made = ARGUMENTS + s;
    for (uint32_t i = 0; i < n; i++) reads(w, w->in[s][i] = pick(made), s);
    if (s && pick(2)) reads(w, w->in[s][0] = made - 1, s);
    w->out[s][0] = made;
    w->buffers[made].first = w->buffers[made].last = s;
    w->routines[s].in_place = pick(2);
    w->steps[s] = (plan_step){.kind = PLAN_ROUTINE,
                              .op = some_op(),
                              .n_in = n,
                              .n_out = 1,
                              .in = w->in[s],
                              .out = w->out[s],
                              .routine = &w->routines[s],
                              .frame = UINT32_MAX};
  }
  uint32_t last = ARGUMENTS + STEPS - 1;
  w->buffers[last].place = PLAN_RESULT;
  w->buffers[last].bytes = w->buffers[0].bytes;
  w->over[0] = w->buffers[0].last == UINT32_MAX || w->buffers[0].last < STEPS - 1 ? 0 : UINT32_MAX;
  w->p = (plan_program){.computation = &c,
                        .n_arguments = ARGUMENTS,
                        .n_results = 1,
                        .n_buffers = ARGUMENTS + STEPS,
                        .n_steps = STEPS,
                        .buffers = w->buffers,
                        .interface = w->interface,
                        .steps = w->steps,
                        .device = {.buffer_bytes = sizeof(void *)},
                        .over = w->over};
}

/* Of a plan that has its places: values may lie in result memory, too. */
static void list_interface(world *w) {
  for (uint32_t b = 0; b < ARGUMENTS + STEPS; b++)
    if (w->buffers[b].place != PLAN_FRAME) w->interface[w->p.n_interface++] = b;
}

/* Where a buffer begins in a memory that holds arguments, then the result, then the frame. */
static int64_t begin(const world *w, uint32_t b) {
  const plan_buffer *x = &w->buffers[b];
  if (x->place == PLAN_ARGUMENT) return x->number * REGION;
  if (x->place == PLAN_RESULT) return w->over[0] == UINT32_MAX ? ARGUMENTS * REGION : w->over[0] * REGION;
  return (ARGUMENTS + 1) * REGION + x->offset;
}

static bool meet(const world *w, uint32_t a, uint32_t b) {
  return begin(w, a) < begin(w, b) + w->buffers[b].bytes && begin(w, b) < begin(w, a) + w->buffers[a].bytes;
}

/* Whether each step reads what was meant. */
static bool runs_right(const world *w) {
  static uint32_t memory[(ARGUMENTS + 2) * REGION];
  for (uint32_t b = 0; b < ARGUMENTS; b++)
    for (int64_t i = 0; i < w->buffers[b].bytes; i++) memory[begin(w, b) + i] = b;
  for (uint32_t s = 0; s < STEPS; s++) {
    uint32_t made = w->out[s][0];
    for (uint32_t k = 0; k < w->steps[s].n_in; k++) {
      uint32_t b = w->in[s][k];
      for (int64_t i = 0; i < w->buffers[b].bytes; i++)
        if (memory[begin(w, b) + i] != b) return false;
      bool passed = begin(w, b) == begin(w, made) && plan_may_overwrite(&w->steps[s], w->buffers, b, made);
      if (meet(w, b, made) && !passed) return false;
    }
    for (int64_t i = 0; i < w->buffers[made].bytes; i++) memory[begin(w, made) + i] = made;
  }
  return true;
}

/* Another place for a value of the frame, or the result over another argument. */
static void mutate(world *w) {
  uint32_t a = ARGUMENTS + pick(STEPS - 1), b = ARGUMENTS + pick(STEPS - 1);
  if (pick(4) == 0)
    w->over[0] = pick(ARGUMENTS);
  else
    w->buffers[a].offset = w->buffers[b].offset + (pick(4) ? 0 : UNIT);
}

static bool accepted(const world *w) {
  xlac_error err;
  return plan_check(&w->p, base_alloc_libc, &err) == 0;
}

int main(int argc, char **argv) {
  static world w;
  xlac_error err;
  int broken = 0, found = 0, rounds = argc > 1 ? atoi(argv[1]) : 1000;
  for (int i = 0; i < rounds; i++) {
    make(&w);
    if (plan_place_buffers(&w.p, w.steps, w.buffers, base_alloc_libc, &err) != 0) return 1;
    list_interface(&w);
    if (!runs_right(&w) || !accepted(&w)) return fprintf(stderr, "plan %d is wrong as placed\n", i), 1;
    for (int k = 0; k < 8; k++) {
      world changed = w;
      for (uint32_t s = 0; s < STEPS; s++) { /* the copy's own parts */
        changed.steps[s].in = changed.in[s];
        changed.steps[s].out = changed.out[s];
        changed.steps[s].routine = &changed.routines[s];
      }
      changed.p.buffers = changed.buffers;
      changed.p.steps = changed.steps;
      changed.p.interface = changed.interface;
      changed.p.over = changed.over;
      mutate(&changed);
      if (runs_right(&changed)) continue;
      broken++;
      if (accepted(&changed)) return fprintf(stderr, "plan %d, mutation %d: not found\n", i, k), 1;
      found++;
    }
  }
  printf("%d %d %d\n", rounds, broken, found);
  return 0;
}
