/* What calls in turns compute alike: of arguments in the same memory, of constants, of what all members of a collective
 * get; then of all that is made from such values alone. A part of the program that does much of it is run by the first
 * of the calls that are alike, for all of them. */
#include "routine.h"
#include "threaded/list.h"
#include "tile/group.h"
#include "turns.h"

enum { ALIKE_WORK = 1 << 15 /* elements, which are sooner computed by each call than waited for */ };

/* Calls that were alike, and are alike in this too. From the last on: those before it are not refined yet. */
static void alike_refine(uint8_t *of, const uint8_t *more, uint32_t n) {
  for (uint32_t i = n; i-- > 1;) {
    uint32_t first = 0;
    while (of[first] != of[i] || more[first] != more[i]) first++;
    of[i] = (uint8_t)first;
  }
}

static void alike_apart(uint8_t *of, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) of[i] = (uint8_t)i;
}

static uint8_t *alike_of(const cpu_alike *a, uint32_t buffer) {
  return a->of + (size_t)buffer * a->n;
}

/* An argument: those calls are alike that have it in the same place, where nobody writes to it. */
static void alike_argument(const cpu_alike *a, const cpu_turn *turns, uint32_t buffer, const plan_buffer *b) {
  uint8_t *of = alike_of(a, buffer);
  alike_apart(of, a->n);
  for (uint32_t i = 1; i < a->n && b->first == UINT32_MAX; i++) {
    uint32_t first = 0;
    while (turns[first].run->arguments[b->number] != turns[i].run->arguments[b->number]) first++;
    of[i] = (uint8_t)first;
  }
}

/* The same operands give the same results, in every call. */
static bool alike_is_pure(const plan_step *s) {
  if (s->kind == PLAN_KERNEL || s->kind == PLAN_COPY) return true;
  if (s->kind != PLAN_ROUTINE || s->routine->calls || s->routine->interpreted) return false;
  switch (s->op->opcode) {
    case IR_OP_RNG:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_FUSION:
    case IR_OP_PARTITION_ID:
    case IR_OP_REPLICA_ID:
      return false;
    default:
      return !ir_opcode_has(s->op->opcode, IR_COLLECTIVE | IR_SIDE_EFFECT | IR_ASYNC_START);
  }
}

static void alike_step(const cpu_alike *a, const cpu_executable *exe, const plan_step *s) {
  uint8_t of[CPU_MOST_ALIKE] = {0};
  bool meets = cpu_is_meeting(exe, s);
  for (uint32_t i = 0; i < a->n && meets; i++) {
    uint32_t member = cpu_meeting_shares(exe, s, i);
    of[i] = (uint8_t)(member < a->n ? member : i);
  }
  if (!meets && !alike_is_pure(s)) alike_apart(of, a->n);
  for (uint32_t i = 0; i < s->n_in && !meets; i++) alike_refine(of, alike_of(a, s->in[i]), a->n);
  for (uint32_t i = 0; i < s->n_out; i++) memcpy(alike_of(a, s->out[i]), of, a->n);
}

static bool alike_may_be_shared(const plan_buffer *b) {
  return b->place == PLAN_FRAME || b->place == PLAN_TILE || b->place == PLAN_RESULT;
}

static uint64_t alike_work(const plan_program *p, const plan_step *s) {
  if (s->kind == PLAN_KERNEL) return (uint64_t)s->kernel->count * s->kernel->n_values;
  if (s->kind == PLAN_ROUTINE) return s->routine->work;
  return s->kind == PLAN_COPY ? (uint64_t)p->buffers[s->in[0]].bytes / 8 : 0;
}

void cpu_alike_part(const cpu_alike *a, const plan_program *p, const list_part *part, uint8_t *of) {
  uint32_t first = 0, n = cpu_part_steps(p, part, &first);
  memset(of, 0, a->n);
  for (uint32_t k = first; k < first + n; k++)
    for (uint32_t i = 0; i < p->steps[k].n_out; i++) alike_refine(of, alike_of(a, p->steps[k].out[i]), a->n);
}

/* Whether all that the part gives can be in memory of all, and is much. */
static bool alike_is_once(const cpu_alike *a, const plan_program *p, const list_part *part) {
  uint8_t of[CPU_MOST_ALIKE];
  uint32_t first = 0, n = cpu_part_steps(p, part, &first), leaders = 0;
  uint64_t work = 0;
  for (uint32_t k = first; k < first + n; k++) {
    const plan_step *s = &p->steps[k];
    if (!alike_is_pure(s)) return false;
    work += alike_work(p, s);
    for (uint32_t i = 0; i < s->n_out; i++)
      if (!alike_may_be_shared(&p->buffers[s->out[i]])) return false;
  }
  if (work < ALIKE_WORK) return false;
  cpu_alike_part(a, p, part, of);
  for (uint32_t i = 0; i < a->n; i++) leaders += of[i] == i;
  return leaders < a->n;
}

uint32_t cpu_part_steps(const plan_program *p, const list_part *part, uint32_t *first) {
  if (part->group) {
    *first = cpu_group_first(part->group);
    return cpu_group_steps(part->group);
  }
  *first = part->step ? (uint32_t)(part->step - p->steps) : 0;
  return part->step != NULL;
}

bool cpu_alike_make(cpu_alike *a, const cpu_turn *turns, uint32_t n) {
  const cpu_executable *exe = turns->run->exe;
  const plan_program *p = cpu_plan_of(exe);
  const cpu_list *l = cpu_code_of(exe, p)->list;
  a->n = n;
  a->of = n < 2 || n > CPU_MOST_ALIKE || exe->base.turn_work < ALIKE_WORK
              ? NULL
              : rt_recycler_take(rt_host_memory(exe->host), (size_t)p->n_buffers * n + l->n_parts);
  if (!a->of) return false;
  a->once = a->of + (size_t)p->n_buffers * n;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->place == PLAN_ARGUMENT)
      alike_argument(a, turns, i, b);
    else if (b->place == PLAN_CONSTANT)
      memset(alike_of(a, i), 0, n);
    else
      alike_apart(alike_of(a, i), n);
  }
  for (uint32_t i = 0; i < p->n_steps; i++) alike_step(a, exe, &p->steps[i]);
  for (uint32_t i = 0; i < l->n_parts; i++) a->once[i] = alike_is_once(a, p, &l->parts[i]);
  return true;
}
