/* What the CPU runs of a plan, for people: instructions that are one list, kernels that are one tile, steps. */
#include <stdio.h>

#include "../plan/cost.h"
#include "../plan/report.h"
#include "async.h"
#include "routine.h"
#include "loop/loop.h"
#include "threaded/list.h"

/* What the cost model says; nothing where it says nothing. */
static void exeput_time(base_text *out, double cycles) {
  if (cycles <= 0) return;
  BASE_PUT(out, ", predicted ");
  fusion_put_time(out, cycles);
}

/* Whether a loop is machine code as a whole, and if not, since when. */
static void exeput_loop(base_text *out, const cpu_executable *exe, const plan_program *p, const plan_step *s) {
  if (cpu_step_code(exe, p, s)) {
    BASE_PUT(out, ", one function of machine code");
    return;
  }
  const ir_op *op = cpu_loop_stops(exe, s);
  if (op) base_putf(out, ", steps one by one since %s is none of a loop's code", op->name->s);
}

/* Who runs a step, and where that is decided beforehand. */
static void exeput_how(base_text *out, const cpu_executable *exe, const plan_program *p, const plan_step *s) {
  static const char *const kinds[] = {"vector VM", "routine", "copy",   "while", "conditional",
                                      "call",      "start",   "update", "done"};
  _Static_assert(sizeof kinds / sizeof *kinds == PLAN_DONE + 1, "a word for each kind of step");
  bool native = s->kind == PLAN_KERNEL && cpu_vm_is_native(cpu_step_code(exe, p, s));
  base_putf(out, "%s", s->kind == PLAN_ROUTINE ? s->routine->name : native ? "machine code" : kinds[s->kind]);
  if (s->kind == PLAN_KERNEL) {
    base_putf(out, ", %lld iterations", (long long)s->kernel->count);
    exeput_time(out, plan_kernel_cycles(p, s));
  }
  if (s->kind == PLAN_WHILE) exeput_loop(out, exe, p, s);
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

/* A tile of the plan, with what its steps would take one by one. */
static void exeput_group(base_text *out, const plan_program *p, const plan_tile *t) {
  double one_by_one = 0;
  for (uint32_t i = t->first; i < t->first + t->n; i++) one_by_one += plan_kernel_cycles(p, &p->steps[i]);
  base_putf(out, "  %u-%u group of %u %s, tile by tile: %lld of %lld rows at a time", t->first, t->first + t->n - 1,
            t->n, t->products ? "kernels and products" : "kernels", (long long)t->at_a_time, (long long)t->rows);
  exeput_time(out, plan_tile_cycles(p, t));
  BASE_PUT(out, ", one by one ");
  fusion_put_time(out, one_by_one);
  base_putf(out, "; it ends there since %s\n", t->ends);
}

/* As list_run.c runs it: instructions, then a group, then a step, each where there is one. */
static void exeput_part(base_text *out, const cpu_executable *exe, const plan_program *p, const list_part *part) {
  char what[80];
  if (part->n) {
    snprintf(what, sizeof what, "list of %u instructions, threaded", (unsigned)part->n);
    exeput_steps(out, part->at, part->n_steps, what);
  }
  if (part->group) {
    const plan_tile *t = plan_tile_at(p, cpu_group_first(part->group));
    assert(t && t->n == cpu_group_steps(part->group));
    exeput_group(out, p, t);
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
