/* What is to be known of a start before it runs: where, and in which parts. */
#include "async.h"
#include "list.h"
#include "vm_inside.h"

static bool start_has_starts(const plan_program *p) {
  for (uint32_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == PLAN_START) return true;
  return false;
}

/* One kernel or routine whose ranges can be run one after another, by whoever comes. */
static bool start_is_divisible(const plan_program *p) {
  const cpu_list *l = p->code;
  if (l->n_parts != 1 || l->parts[0].n || !l->parts[0].step) return false;
  const plan_step *s = l->parts[0].step;
  if (s->kind == PLAN_ROUTINE) return s->routine->divisible;
  return s->kind == PLAN_KERNEL && cpu_vm_is_divisible(s->code);
}

static cpu_cut start_cut(const plan_step *s) {
  if (!s->n_nested || !s->chain->updates) return CPU_CUT_NOT;
  const plan_program *p = s->nested[0];
  if (start_is_divisible(p)) return CPU_CUT_STEP;
  return ((const cpu_list *)p->code)->n_parts > 1 && !start_has_starts(p) ? CPU_CUT_LIST : CPU_CUT_NOT;
}

int cpu_start_make(const cpu_executable *exe, const plan_step *s, base_arena *arena, const cpu_start **out,
                   xlac_error *err) {
  cpu_start *c = BASE_NEW(arena, cpu_start);
  if (!c) return base_oom(err, "an async start");
  uint64_t work = s->n_nested ? cpu_program_work(s->nested[0]) : UINT64_MAX;
  c->lane = exe->lane;
  c->needs_interpreter = !s->n_nested || cpu_program_needs_interpreter(s->nested[0]);
  c->at_once = s->chain->here || work < exe->lane_work;
  c->cut = (uint8_t)start_cut(s);
  *out = c;
  return 0;
}
