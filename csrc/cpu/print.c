/* What the CPU runs of a plan, for people: instructions that are one list, kernels that are one tile, steps. */
#include <stdio.h>

#include "../plan/report.h"
#include "async.h"
#include "routine.h"
#include "threaded/list.h"

/* Who runs a step, and where that is decided beforehand. */
static void exeput_how(base_text *out, const cpu_executable *exe, const plan_program *p, const plan_step *s) {
  static const char *const kinds[] = {"vector VM", "routine", "copy",   "while", "conditional",
                                      "call",      "start",   "update", "done"};
  _Static_assert(sizeof kinds / sizeof *kinds == PLAN_DONE + 1, "a word for each kind of step");
  base_putf(out, "%s", s->kind == PLAN_ROUTINE ? s->routine->name : kinds[s->kind]);
  if (s->kind == PLAN_KERNEL) base_putf(out, ", %lld iterations", (long long)s->kernel->count);
  if (s->kind != PLAN_START) return;
  const cpu_start *start = cpu_step_code(exe, p, s);
  if (start->at_once)
    BASE_PUT(out, ", where it is started");
  else
    base_putf(out, ", on lane %u", (unsigned)start->number);
}

/* A step by itself, with the programs that it runs. */
static void exeput_step(base_text *out, const cpu_executable *exe, const plan_program *p, const plan_step *s) {
  base_putf(out, "  %u %s %s: ", (unsigned)(s - p->steps), ir_opcode_text(s->op->opcode), s->op->name->s);
  exeput_how(out, exe, p, s);
  for (uint32_t i = 0; i < s->n_nested; i++)
    base_putf(out, "%s%s", i ? ", " : "; runs ", s->nested[i]->computation->name->s);
  base_putc(out, '\n');
}

/* Steps that run as one: "  0-3 group of 4 kernels, tile by tile". */
static void exeput_steps(base_text *out, uint32_t first, uint32_t n, const char *what) {
  base_putf(out, "  %u", (unsigned)first);
  if (n > 1) base_putf(out, "-%u", (unsigned)(first + n - 1));
  base_putf(out, " %s\n", what);
}

/* As list_run.c runs it: instructions, then a group, then a step, each where there is one. */
static void exeput_part(base_text *out, const cpu_executable *exe, const plan_program *p, const list_part *part) {
  char what[80];
  if (part->n) {
    snprintf(what, sizeof what, "list of %u instructions, threaded", (unsigned)part->n);
    exeput_steps(out, part->at, part->n_steps, what);
  }
  if (part->group) {
    snprintf(what, sizeof what, "group of %u kernels, tile by tile", (unsigned)cpu_group_steps(part->group));
    exeput_steps(out, cpu_group_first(part->group), cpu_group_steps(part->group), what);
  }
  if (part->step) exeput_step(out, exe, p, part->step);
}

/* A program that the interpreter runs has no list, and so only its first line. */
static void exeput_program(base_text *out, const cpu_executable *exe, const plan_program *p) {
  const cpu_list *l = cpu_code_of(exe, p)->list;
  assert(p->number < cpu_plan_of(exe)->n_programs);
  base_putf(out, "program %s, %lld bytes of frame\n", p->computation->name->s, (long long)p->frame_bytes);
  for (uint32_t i = 0; l && i < l->n_parts; i++) exeput_part(out, exe, p, &l->parts[i]);
}

int cpu_executable_print(const rt_executable *base, base_text *out, xlac_error *err) {
  const cpu_executable *exe = (const cpu_executable *)base;
  plan_list list;
  bool ok = plan_list_programs(exe->alloc, base->plan, &list);
  for (uint32_t i = 0; ok && i < list.n; i++) exeput_program(out, exe, list.items[i]);
  BASE_VEC_FREE(exe->alloc, &list);
  return ok ? 0 : base_oom(err, "an executable's text");
}
