/* What is to be known of a start before it runs: where, and in which parts. */
#include "async.h"

#include <stdio.h>

#include "threaded/list.h"
#include "vm/vm_inside.h"

enum { START_ENOUGH = 1 << 14 /* elements: some microseconds */ };

/* A program with async starts of its own can't be cut: a done would look for a task that another part has started. */
static bool start_has_starts(const plan_program *p) {
  for (uint32_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == PLAN_START) return true;
  return false;
}

/* One kernel or routine whose ranges can be run one after another, by whoever comes. */
static bool start_is_divisible(const cpu_executable *exe, const plan_program *p) {
  const cpu_list *l = cpu_code_of(exe, p)->list;
  if (l->n_parts != 1 || l->parts[0].n || !l->parts[0].step) return false;
  const plan_step *s = l->parts[0].step;
  if (s->kind == PLAN_ROUTINE) return s->routine->divisible;
  return s->kind == PLAN_KERNEL && cpu_vm_is_divisible(cpu_step_code(exe, p, s));
}

/* How the chain's updates share the work, from the finest that is possible: ranges of one step, parts of a list,
 * or none. */
static cpu_cut start_cut(const cpu_executable *exe, const plan_step *s) {
  if (!s->n_nested || !s->chain->updates || s->chain->over) return CPU_CUT_NOT; /* a part may be begun twice */
  const plan_program *p = s->nested[0];
  if (start_is_divisible(exe, p)) return CPU_CUT_STEP;
  return cpu_code_of(exe, p)->list->n_parts > 1 && !start_has_starts(p) ? CPU_CUT_LIST : CPU_CUT_NOT;
}

/* The lane of that execution thread, else the next of those for all others, in turn. */
static cpu_lane *start_lane(cpu_executable *exe, const char *thread) {
  uint32_t others = 0;
  for (uint32_t i = 0; i < exe->n_lanes; i++) {
    if (strcmp(exe->lanes[i].thread, thread) == 0) return &exe->lanes[i];
    others += !exe->lanes[i].thread[0];
  }
  assert(others > 0 && "start_open_lanes made one for all threads without a name");
  uint32_t turn = exe->next_lane++ % others;
  for (cpu_lane *l = exe->lanes;; l++)
    if (!l->thread[0] && turn-- == 0) return l;
}

/* The executable's lanes: as the options say, and one for all threads that they don't name. Only described here; a lane
 * is opened when a start first gets it (start_lane_open). */
static int start_open_lanes(cpu_executable *exe, const rt_build_options *options, xlac_error *err) {
  bool others = false;
  exe->lanes = BASE_ARRAY(&exe->arena, cpu_lane, (size_t)options->n_lanes + 1);
  if (!exe->lanes) return base_oom(err, "lanes");
  for (uint32_t i = 0; i <= options->n_lanes; i++) {
    const xlac_lane *l = i < options->n_lanes ? &options->lanes[i] : &(xlac_lane){"", 1};
    if (i == options->n_lanes && others) break;
    others = others || !l->thread[0];
    cpu_lane *own = &exe->lanes[exe->n_lanes++];
    *own = (cpu_lane){.threads = l->threads};
    own->thread = base_arena_memdup(&exe->arena, l->thread, strlen(l->thread) + 1);
    if (!own->thread) return base_oom(err, "lanes");
  }
  return 0;
}

/* Threads that nobody names have lanes by number. */
static int start_lane_open(cpu_executable *exe, cpu_lane *l, xlac_error *err) {
  char number[16];
  snprintf(number, sizeof number, "*%u", (unsigned)(l - exe->lanes));
  return l->lane ? 0 : rt_host_lane(exe->host, l->thread[0] ? l->thread : number, l->threads, &l->lane, err);
}

static uint64_t start_bytes(const plan_program *p, const plan_step *s) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->n_in; i++) sum += (uint64_t)p->buffers[s->in[i]].bytes;
  return sum;
}

/* Elements or bytes, roughly. A generic start without a program runs a computation by the interpreter: no bound is
 * known. */
static uint64_t start_work(const plan_program *p, const plan_step *s) {
  if (s->n_nested) return cpu_program_work(s->nested[0]);
  return s->op->opcode == IR_OP_ASYNC_START ? UINT64_MAX : start_bytes(p, s);
}

static int start_note_bytes(cpu_executable *exe, const plan_program *p, const plan_step *s, cpu_start *c,
                            xlac_error *err) {
  int64_t *bytes = BASE_ARRAY(&exe->arena, int64_t, (size_t)s->n_in + 1);
  if (!bytes) return base_oom(err, "an async start");
  for (uint32_t i = 0; i < s->n_in; i++) bytes[i] = p->buffers[s->in[i]].bytes;
  c->bytes = bytes;
  return 0;
}

/* Starts with less work than an option says run where they are: handing a task to another thread takes
 * microseconds. */
int cpu_start_make(cpu_executable *exe, const rt_build_options *options, const plan_program *p, const plan_step *s,
                   const cpu_start **out, xlac_error *err) {
  cpu_start *c = BASE_NEW(&exe->arena, cpu_start);
  if (!c) return base_oom(err, "an async start");
  uint64_t work = start_work(p, s);
  uint64_t enough = options->async_work ? options->async_work : START_ENOUGH;
  if (!exe->lanes) TRY(start_open_lanes(exe, options, err));
  cpu_lane *lane = start_lane(exe, s->chain->thread);
  TRY(start_lane_open(exe, lane, err));
  c->lane = lane->lane;
  c->number = (uint32_t)(lane - exe->lanes);
  c->needs_interpreter = cpu_start_needs_interpreter(s);
  if (s->op->opcode == IR_OP_COPY_START) TRY(start_note_bytes(exe, p, s, c, err));
  c->at_once = s->chain->here || work < enough;
  c->cut = (uint8_t)start_cut(exe, s);
  *out = c;
  return 0;
}
