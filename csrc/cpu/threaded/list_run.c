/* Runs lists: of programs that run once, and of loops. Where leaves of a loop's state have two places in turn,
 * there are two bindings: of odd and of even trips, so that a trip copies nothing. A program that runs once binds
 * some instructions at a time on the stack; a loop binds all of its own once. */
#include "../async.h"
#include "../routine.h"
#include "list.h"

enum {
  LISTR_POLL = 1 << 16, /* work between looks at interruptions */
  LISTR_SOME = 32,      /* instructions bound at a time outside of loops */
  LISTR_FEW = 4096      /* bytes on the stack of a loop; what needs more is allocated once a loop */
};

/* Where a cell is in this run. */
static char *listr_address(const list_cell *c, void *const *pointers, char *scratch) {
  if (c->area == LIST_BUFFER) return (char *)pointers[c->at] + c->offset;
  if (c->area == LIST_SCRATCH) return scratch + c->at;
  return (char *)(uintptr_t)(c->area == LIST_FIXED ? c->fixed : pointers);
}

/* Operands that an instruction hasn't are set to the first, so that all three can always be read. */
static void listr_bind(const list_code *c, list_inst *to, void *const *pointers, char *scratch) {
  assert(c->n_in <= 3);
  *to = c->inst;
  for (uint32_t j = 0; j < c->n_in; j++) to->in[j] = listr_address(&c->in[j], pointers, scratch);
  for (uint32_t j = c->n_in; j < 3; j++) to->in[j] = to->in[0];
  to->out = listr_address(&c->out, pointers, scratch);
}

/* What runs as one is one event of the profile, under its first step. */
static cpu_event listr_event(const cpu_run *run) {
  return (cpu_event){.start = cpu_profile_now(run->profile), .depth = run->depth, .lane = run->lane};
}

int cpu_list_run_group(cpu_run *run, const plan_program *p, const cpu_group *g, void *const *pointers, uint64_t given) {
  if (!run->profile) return cpu_group_run(run, g, p, pointers, given);
  cpu_event e = listr_event(run);
  int status = cpu_group_run(run, g, p, pointers, given);
  cpu_profile_add(run->profile, p, &p->steps[cpu_group_first(g)], e);
  return status;
}

/* What follows a part's instructions. */
static int listr_step(cpu_run *run, const plan_program *p, const list_part *part, void *const *pointers) {
  if (part->group) return cpu_list_run_group(run, p, part->group, pointers, 0);
  return part->step ? cpu_run_step(run, p, part->step, pointers) : 0;
}

/* --- once --- */

/* Binds and runs n instructions, LISTR_SOME at a time on the stack. Outside of loops nothing is bound for a second
 * time. */
static void listr_codes(const list_code *codes, uint32_t n, void *const *pointers, char *scratch) {
  list_inst insts[LISTR_SOME + 1];
  for (uint32_t at = 0; at < n; at += LISTR_SOME) {
    uint32_t some = n - at < LISTR_SOME ? n - at : LISTR_SOME;
    for (uint32_t j = 0; j < some; j++) listr_bind(&codes[at + j], &insts[j], pointers, scratch);
    insts[some].code = LIST_END;
    cpu_list_insts(insts);
  }
}

/* A part's instructions, bound on the way. */
static void listr_once(cpu_run *run, const plan_program *p, const cpu_list *l, const list_part *part,
                       void *const *pointers, char *scratch) {
  const list_code *codes = &l->codes[part->first];
  if (part->n == 0) return;
  run->ran.lists++;
  if (!run->profile) {
    listr_codes(codes, part->n, pointers, scratch);
    return;
  }
  cpu_event e = listr_event(run);
  listr_codes(codes, part->n, pointers, scratch);
  cpu_profile_add(run->profile, p, &p->steps[part->at], e);
}

void cpu_list_run_insts(cpu_run *run, const cpu_list *l, const plan_program *p, void *const *pointers, uint32_t part) {
  assert(part < l->n_parts);
  char *scratch = __builtin_alloca_with_align(l->scratch_bytes + 64, 512);
  listr_once(run, p, l, &l->parts[part], pointers, scratch);
}

/* Steps go straight to their function where nobody watches or interrupts the run. */
int cpu_list_run_parts(cpu_run *run, const cpu_list *l, const plan_program *p, void *const *pointers, uint32_t first,
                       uint32_t last) {
  int status = 0;
  assert(first <= last && last <= l->n_parts);
  char *scratch = __builtin_alloca_with_align(l->scratch_bytes + 64, 512);
  for (uint32_t i = first; i < last && status == 0; i++) {
    const list_part *part = &l->parts[i];
    listr_once(run, p, l, part, pointers, scratch);
    status = interp_tick(&run->ctx, part->n);
    if (status == 0 && part->group) status = cpu_list_run_group(run, p, part->group, pointers, 0);
    if (status || !part->step) continue;
    if (run->profile || run->stop.asked)
      status = cpu_run_step(run, p, part->step, pointers);
    else
      status = cpu_step_table[part->step->kind](run, p, part->step, pointers);
  }
  if (status && run->tasks) cpu_async_abandon(run);
  return status;
}

/* --- loops --- */

/* Condition and body bound to one place of the state. */
typedef struct listr_binding {
  void **condition, **body; /* the programs' buffers */
  list_inst *condition_insts, *body_insts;
  char *condition_calls, *body_calls; /* of machine code */
} listr_binding;

/* A loop while it runs: on the stack, or allocated once where it needs more. bindings[1] is there only if `swaps`:
 * then the state lies alternately at `now` and at `next`. */
typedef struct listr_loop {
  cpu_run *run;
  const plan_program *condition, *body;
  const cpu_list *condition_list, *body_list;
  char *scratch;
  listr_binding bindings[2];
  bool swaps;
  unsigned char go_on;
} listr_loop;

/* All of a list. */
static void listr_bind_list(const cpu_list *l, list_inst *to, void *const *pointers, char *scratch, char *calls) {
  for (uint32_t i = 0; i < l->n_codes; i++) {
    listr_bind(&l->codes[i], &to[i], pointers, scratch);
    if (l->codes[i].native) cpu_list_bind_call(&l->codes[i], &to[i], pointers, calls);
  }
}

/* The condition's one result is x->go_on. */
static void listr_bind_loop(listr_loop *x, uint32_t which, char *condition_frame, char *body_frame, void *const *now,
                            void *const *next) {
  listr_binding *b = &x->bindings[which];
  void *flag = &x->go_on;
  cpu_bind_frame(x->condition, condition_frame, b->condition);
  cpu_bind_interface(x->condition, now, &flag, b->condition);
  cpu_bind_frame(x->body, body_frame, b->body);
  cpu_bind_interface(x->body, now, next, b->body);
  listr_bind_list(x->condition_list, b->condition_insts, b->condition, x->scratch, b->condition_calls);
  listr_bind_list(x->body_list, b->body_insts, b->body, x->scratch, b->body_calls);
}

/* A part's instructions, which are bound. */
static void listr_insts(cpu_run *run, const plan_program *p, const list_part *part, const list_inst *insts) {
  if (part->n == 0) return;
  run->ran.lists++;
  if (!run->profile) {
    cpu_list_insts(insts);
    return;
  }
  cpu_event e = listr_event(run);
  cpu_list_insts(insts);
  cpu_profile_add(run->profile, p, &p->steps[part->at], e);
}

/* All parts of condition or body, once. */
static int listr_parts(listr_loop *x, const plan_program *p, const cpu_list *l, const list_inst *insts,
                       void *const *pointers) {
  for (uint32_t k = 0; k < l->n_parts; k++) {
    const list_part *part = &l->parts[k];
    listr_insts(x->run, p, part, insts + part->first);
    TRY(listr_step(x->run, p, part, pointers));
  }
  return 0;
}

/* Nothing but instructions. */
static bool listr_is_plain(const cpu_list *l) {
  return l->n_parts == 1 && l->parts[0].n > 0 && !l->parts[0].step && !l->parts[0].group;
}

/* The ends of condition and body lead on: the condition's end tests the flag and goes to the body, the body's goes
 * to the condition of the other binding. Where the condition's last op is a comparison, it tests its result
 * itself. */
static void listr_chain(listr_loop *x, uint32_t which) {
  listr_binding *b = &x->bindings[which];
  list_inst *test = b->condition_insts + x->condition_list->n_codes - 1;
  list_inst *again = b->body_insts + x->body_list->n_codes - 1;
  assert(test->code == LIST_END && again->code == LIST_END);
  *test = (list_inst){.code = LIST_TEST, .in = {&x->go_on, NULL, NULL}, .data = b->body_insts};
  *again = (list_inst){.code = LIST_LOOP_BACK, .data = x->bindings[x->swaps ? !which : which].condition_insts};
  if (x->condition_list->n_codes < 2 || test[-1].out != &x->go_on) return;
  uint32_t both = cpu_list_test(test[-1].code);
  if (both == LIST_CALL) return;
  test[-1].code = both;
  test[-1].data = test->data;
}

/* A loop that is one list, without a look at anything between trips. *odd follows from where the instructions
 * ended: in the condition of binding 0 or 1. */
static int listr_plain(listr_loop *x, uint64_t poll, uint64_t work, uint32_t *odd) {
  const list_inst *at = x->bindings[0].condition_insts, *other = x->bindings[1].condition_insts;
  x->run->ran.loops++;
  for (uint32_t i = 0; i <= x->swaps; i++) listr_chain(x, i);
  while (!cpu_list_go(&at, poll)) TRY(interp_tick(&x->run->ctx, poll * work));
  *odd = x->swaps && at >= other && at < other + x->condition_list->n_codes;
  return 0;
}

/* Trips until the condition says false. *odd: which binding had the last state. The wish to stop is looked at
 * after every LISTR_POLL of work. */
static int listr_trips(listr_loop *x, uint32_t *odd) {
  uint64_t work = x->condition_list->work + x->body_list->work;
  assert(work > 0);
  uint64_t poll = work < LISTR_POLL ? LISTR_POLL / work : 1, left = poll;
  if (listr_is_plain(x->condition_list) && listr_is_plain(x->body_list)) return listr_plain(x, poll, work, odd);
  for (;;) {
    const listr_binding *b = &x->bindings[*odd];
    TRY(listr_parts(x, x->condition, x->condition_list, b->condition_insts, b->condition));
    if (!x->go_on) return 0;
    TRY(listr_parts(x, x->body, x->body_list, b->body_insts, b->body));
    if (x->swaps) *odd ^= 1;
    if (--left) continue;
    TRY(interp_tick(&x->run->ctx, poll * work));
    left = poll;
  }
}

static size_t listr_round(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

/* The bytes of a binding, which begins at `memory` unless that is NULL: two tables of pointers, two lists of
 * instructions, their calls, each on a cache line of its own. */
static size_t listr_layout(const listr_loop *x, char *memory, listr_binding *b) {
  size_t sizes[] = {x->condition->n_buffers * sizeof(void *),
                    x->body->n_buffers * sizeof(void *),
                    x->condition_list->n_codes * sizeof(list_inst),
                    x->body_list->n_codes * sizeof(list_inst),
                    x->condition_list->call_bytes,
                    x->body_list->call_bytes};
  enum { N = sizeof sizes / sizeof *sizes };
  size_t at[N + 1] = {0};
  for (int i = 0; i < N; i++) at[i + 1] = at[i] + listr_round(sizes[i]);
  if (memory) {
    b->condition = (void **)(void *)memory;
    b->body = (void **)(void *)(memory + at[1]);
    b->condition_insts = (list_inst *)(void *)(memory + at[2]);
    b->body_insts = (list_inst *)(void *)(memory + at[3]);
    b->condition_calls = memory + at[4];
    b->body_calls = memory + at[5];
  }
  return at[N];
}

/* The programs' lists, and the bytes of the loop's memory: *scratch of them, then one binding or two. */
static size_t listr_measure(listr_loop *x, const plan_step *s, size_t *scratch) {
  assert(s->kind == PLAN_WHILE && s->n_nested == 2);
  x->condition = s->nested[0];
  x->body = s->nested[1];
  x->condition_list = cpu_code_of(x->run->exe, x->condition)->list;
  x->body_list = cpu_code_of(x->run->exe, x->body)->list;
  for (uint32_t i = 0; i < s->n_in; i++) x->swaps = x->swaps || !x->body->stays[i];
  size_t c = x->condition_list->scratch_bytes, b = x->body_list->scratch_bytes;
  *scratch = listr_round(c > b ? c : b);
  return *scratch + listr_layout(x, NULL, NULL) * (x->swaps ? 2 : 1);
}

/* frames: of condition and body. */
static void listr_bind_all(listr_loop *x, char *memory, size_t scratch, char *const *frames, void *const *now,
                           void *const *next) {
  x->scratch = memory;
  memory += scratch;
  for (uint32_t i = 0; i <= x->swaps; i++) {
    memory += listr_layout(x, memory, &x->bindings[i]);
    listr_bind_loop(x, i, frames[0], frames[1], i ? next : now, i ? now : next);
  }
}

static char *listr_align(void *memory) {
  return (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
}

int cpu_loop_run(cpu_run *run, const plan_step *s, char *const *frames, void *const *now, void *const *next,
                 bool *swapped) {
  char few[LISTR_FEW] __attribute__((aligned(64))), *memory = few, *own = NULL;
  listr_loop x = {.run = run};
  uint32_t odd = 0;
  size_t scratch = 0, bytes = listr_measure(&x, s, &scratch);
  if (bytes > sizeof few) {
    if (!(own = base_malloc(run->exe->alloc, bytes + 64))) return base_oom(run->ctx.err, "a loop");
    memory = listr_align(own);
  }
  listr_bind_all(&x, memory, scratch, frames, now, next);
  int status = listr_trips(&x, &odd);
  if (status && run->tasks) cpu_async_abandon(run);
  base_free(run->exe->alloc, own);
  *swapped = odd != 0;
  return status;
}

/* --- loops that are left after each of their meetings --- */

struct cpu_left_loop {
  listr_loop x;
  uint32_t odd, part; /* part: of the body, the next one; UINT32_MAX: the condition comes first */
};

cpu_left_loop *cpu_loop_open(cpu_run *run, const plan_step *s, char *const *frames, void *const *now,
                             void *const *next) {
  listr_loop x = {.run = run};
  size_t scratch = 0, bytes = listr_measure(&x, s, &scratch);
  cpu_left_loop *l = base_malloc(run->exe->alloc, sizeof *l + bytes + 64);
  if (!l) return NULL;
  *l = (cpu_left_loop){.x = x, .part = UINT32_MAX};
  listr_bind_all(&l->x, listr_align(l + 1), scratch, frames, now, next);
  return l;
}

/* The body from the next part on, up to a meeting; false in *over: there was one. */
static int listr_up_to_meeting(cpu_left_loop *l, bool *over) {
  listr_loop *x = &l->x;
  const listr_binding *b = &x->bindings[l->odd];
  *over = false;
  while (l->part < x->body_list->n_parts) {
    const list_part *part = &x->body_list->parts[l->part++];
    listr_insts(x->run, x->body, part, b->body_insts + part->first);
    TRY(listr_step(x->run, x->body, part, b->body));
    if (part->step && cpu_is_meeting(x->run->exe, part->step)) return 0;
  }
  *over = true;
  return 0;
}

int cpu_loop_go_on(cpu_left_loop *l, bool *over) {
  listr_loop *x = &l->x;
  for (;;) {
    const listr_binding *b = &x->bindings[l->odd];
    bool ended = false;
    if (l->part == UINT32_MAX) {
      TRY(listr_parts(x, x->condition, x->condition_list, b->condition_insts, b->condition));
      *over = !x->go_on;
      if (*over) return 0;
      l->part = 0;
    }
    TRY(listr_up_to_meeting(l, &ended));
    if (!ended) return 0;
    l->part = UINT32_MAX;
    if (x->swaps) l->odd ^= 1;
    TRY(interp_tick(&x->run->ctx, x->condition_list->work + x->body_list->work));
  }
}

bool cpu_loop_close(cpu_left_loop *l) {
  bool swapped = l->odd != 0;
  base_free(l->x.run->exe->alloc, l);
  return swapped;
}
