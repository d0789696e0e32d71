/* Steps one after another, and those that have programs of their own: loops, branches, calls. A frame begins with
 * a table of pointers, one for each buffer of its program; binding fills it, and steps know their operands by
 * number. */
#include "async.h"
#include "loop/loop.h"
#include "move/move.h"
#include "threaded/list.h"

enum { RUN_LONG = 1 << 16 /* elements */, RUN_SMALL = 32 << 10 /* bytes */ };

/* Arguments and results, wherever the caller has them. */
void cpu_bind_interface(const plan_program *p, void *const *arguments, void *const *results, void **pointers) {
  for (uint32_t i = 0; i < p->n_interface; i++) {
    uint32_t id = p->interface[i];
    const plan_buffer *b = &p->buffers[id];
    pointers[id] = b->place == PLAN_ARGUMENT ? arguments[b->number] : results[b->number];
  }
}

/* Buffers whose place depends on the frame alone, and constants, which are read where the module has them. */
void cpu_bind_frame(const plan_program *p, char *frame, void **pointers) {
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->place == PLAN_FRAME) pointers[i] = frame + b->offset;
    if (b->place == PLAN_CONSTANT) pointers[i] = b->literal ? b->literal->data : frame; /* tokens have no bytes */
  }
}

/* Temporaries that lie in arguments which are donated. */
static void run_bind_spares(const plan_program *p, void *const *arguments, void **pointers) {
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    if (b->place == PLAN_SPARE) pointers[i] = (char *)arguments[p->spares[b->number]] + b->offset;
  }
}

/* A kernel by itself: not in a list of instructions, and not in a group. */
static int run_kernel_step(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  const void *few[16], **in = few;
  void *out[KERNEL_MAX_STORES];
  assert(s->n_out <= KERNEL_MAX_STORES);
  run->ran.kernels++;
  if (s->n_in > 16) in = __builtin_alloca(s->n_in * sizeof *in);
  for (uint32_t i = 0; i < s->n_in; i++) in[i] = pointers[s->in[i]];
  for (uint32_t i = 0; i < s->n_out; i++) out[i] = pointers[s->out[i]];
  cpu_vm_run(cpu_step_code(run->exe, p, s), run->exe->pool, in, out, s->frame == UINT32_MAX ? NULL : pointers[s->frame],
             cpu_run_is_last(p, s));
  return 0;
}

/* Whether `from` is an argument that a result may be computed over, and that the caller has not donated:
 * copying it is what keeps it as it was. */
static bool run_is_protected(const cpu_run *run, const void *from) {
  const plan_program *p = run->exe->base.plan;
  for (uint32_t i = 0; run->arguments && i < p->n_donations; i++) {
    const plan_donation *d = &p->donations[i];
    if (run->arguments[d->argument] == from) return d->result == UINT32_MAX || run->results[d->result] != from;
  }
  return false;
}

/* For the tally of a call: copies that protect an argument of the caller's are counted apart from all others. */
static void run_count_copy(cpu_run *run, const void *from, int64_t bytes) {
  if (bytes <= RUN_SMALL) return; /* those may be instructions of a list, which counts nothing */
  bool protects = run_is_protected(run, from);
  *(protects ? &run->tally.protecting : &run->tally.copies) += 1;
  *(protects ? &run->tally.protecting_bytes : &run->tally.bytes) += bytes;
}

static int run_interrupted(cpu_run *run, const plan_step *s) {
  return interp_place_error(&run->ctx, s->op, base_fail(run->ctx.err, XLAC_E_INTERRUPTED, "the run was interrupted"));
}

/* Nothing where both are one memory. Long copies can be interrupted. */
static int run_copy_leaf(cpu_run *run, const plan_step *s, void *to, const void *from, int64_t bytes) {
  bool heeds = run->stop.asked && bytes >= RUN_LONG;
  if (to == from || bytes == 0) return 0;
  if (heeds) rt_pool_heed(run->exe->pool, &run->stop);
  cpu_move_bytes(run->exe->pool, to, from, bytes);
  if (heeds) rt_pool_heed(run->exe->pool, NULL);
  run_count_copy(run, from, bytes);
  return heeds && run->stop.stopped ? run_interrupted(run, s) : 0;
}

/* Steps that change a part of their operand copy it first where the result has memory of its own. */
static void run_count_update(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  if (s->op->opcode != IR_OP_DYNAMIC_UPDATE_SLICE && s->op->opcode != IR_OP_SCATTER) return;
  for (uint32_t i = 0; i < s->n_out; i++)
    if (pointers[s->in[i]] != pointers[s->out[i]] && p->buffers[s->in[i]].bytes)
      run_count_copy(run, pointers[s->in[i]], p->buffers[s->in[i]].bytes);
}

/* Where the frame of program `nested` begins in the step's own. A loop needs those of condition and body at a
 * time, one after the other; of branches one runs, so all of them begin at the same place. */
static char *run_nested_frame(const plan_step *s, void *const *pointers, uint32_t nested) {
  assert(nested < s->n_nested);
  char *frame = pointers[s->frame];
  int64_t before = nested ? (s->nested[0]->frame_bytes + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1) : 0;
  return s->kind == PLAN_WHILE ? frame + before : frame;
}

/* The state begins as copies of the operands. */
int cpu_enter_while(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers, char **frames,
                    void **now, void **next) {
  assert(s->kind == PLAN_WHILE && s->n_nested == 2);
  uint32_t scratch = s->n_in;
  for (uint32_t i = 0; i < 2; i++) frames[i] = run_nested_frame(s, pointers, i);
  for (uint32_t i = 0; i < s->n_in; i++) {
    now[i] = pointers[s->out[i]];
    next[i] = s->nested[1]->stays[i] ? now[i] : pointers[s->out[scratch++]];
    TRY(run_copy_leaf(run, s, now[i], pointers[s->in[i]], p->buffers[s->in[i]].bytes));
  }
  return 0;
}

/* Where the last state is not where the step's results are, it is copied there. */
int cpu_leave_while(cpu_run *run, const plan_program *p, const plan_step *s, void *const *now, void *const *next) {
  for (uint32_t i = 0; i < s->n_in; i++) TRY(run_copy_leaf(run, s, now[i], next[i], p->buffers[s->out[i]].bytes));
  return 0;
}

/* The state goes to and fro between `now`, the step's results, and `next`; after an odd number of trips it is
 * copied back. Leaves that the body changes in place (`stays`) have one memory for both. */
static int run_while(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  void *few[64], **now = few;
  uint32_t n = s->n_in;
  if (n > 32 && !(now = base_malloc(run->exe->alloc, 2 * (size_t)n * sizeof *now)))
    return base_oom(run->ctx.err, "the state of a loop");
  void **next = now + n;
  char *frames[2];
  int status = cpu_enter_while(run, p, s, pointers, frames, now, next);
  bool swapped = false;
  const cpu_loop *code = cpu_step_code(run->exe, p, s);
  if (status == 0 && code && cpu_native_loop_is_ready(code->code))
    status = cpu_loop_run_code(run, code, frames[0], frames[1], now, next);
  else if (status == 0)
    status = cpu_loop_run(run, s, frames, now, next, &swapped);
  if (status == 0 && swapped) status = cpu_leave_while(run, p, s, now, next);
  if (now != few) base_free(run->exe->alloc, now);
  return status;
}

/* Which branch, as XLA has it: of a predicate, true is branch 0; an index out of range means the last branch. */
static uint32_t run_branch(const plan_program *p, const plan_step *s, void *const *pointers) {
  assert(s->n_nested > 0 && s->n_in > 0);
  base_dtype t = (base_dtype)p->buffers[s->in[0]].type->dtype;
  int64_t v = base_load_i64(t, pointers[s->in[0]]);
  if (t == XLAC_PRED) v = v ? 0 : 1;
  return v >= 0 && v < s->n_nested ? (uint32_t)v : s->n_nested - 1;
}

/* Runs program `nested` on the step's inputs from number `first` on, and into its outputs. */
static int run_call(cpu_run *run, const plan_step *s, void *const *pointers, uint32_t nested, uint32_t first) {
  const plan_program *callee = s->nested[nested];
  uint32_t n = callee->n_arguments, m = callee->n_results;
  void *few[64], **all = few;
  if (n + m > 64 && !(all = base_malloc(run->exe->alloc, ((size_t)n + m) * sizeof *all)))
    return base_oom(run->ctx.err, "the arguments of a call");
  assert(first + n <= s->n_in && m <= s->n_out);
  for (uint32_t i = 0; i < n; i++) all[i] = pointers[s->in[first + i]];
  for (uint32_t i = 0; i < m; i++) all[n + i] = pointers[s->out[i]];
  int status = cpu_run_program(run, callee, all, all + n, run_nested_frame(s, pointers, nested));
  if (all != few) base_free(run->exe->alloc, all);
  return status;
}

/* The operands of all branches follow the selector, branch after branch: those of the one taken are found by
 * counting. */
static int run_conditional(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  uint32_t branch = run_branch(p, s, pointers), first = 1;
  for (uint32_t i = 0; i < branch; i++) first += s->nested[i]->n_arguments;
  return run_call(run, s, pointers, branch, first);
}

static int run_call_step(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  (void)p;
  return run_call(run, s, pointers, 0, 0);
}

static int run_copy(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  return run_copy_leaf(run, s, pointers[s->out[0]], pointers[s->in[0]], p->buffers[s->in[0]].bytes);
}

/* An algorithm of the CPU's own, or the interpreter's. */
static int run_routine(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  run_count_update(run, p, s, pointers);
  return cpu_run_routine(run, s, pointers);
}

/* How each kind of step runs, by plan_step_kind. */
cpu_step_fn *const cpu_step_table[] = {
    [PLAN_KERNEL] = run_kernel_step, [PLAN_ROUTINE] = run_routine,         [PLAN_COPY] = run_copy,
    [PLAN_WHILE] = run_while,        [PLAN_CONDITIONAL] = run_conditional, [PLAN_CALL] = run_call_step,
    [PLAN_START] = cpu_async_start,  [PLAN_UPDATE] = cpu_async_update,     [PLAN_DONE] = cpu_async_done};

/* Only long steps: to heed a wish costs a look at it for every range. */
static bool run_is_stoppable(const plan_step *s) {
  if (s->kind == PLAN_KERNEL) return s->kernel->count >= RUN_LONG;
  return s->kind == PLAN_ROUTINE && s->routine->stoppable && s->routine->work >= RUN_LONG;
}

static void run_note_event(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers,
                           cpu_event *e) {
  run->depth--;
  e->serial = s->chain ? cpu_async_serial(p, s, pointers) : 0;
  cpu_profile_add(run->profile, p, s, *e);
}

/* A step that may take long asks between its pieces whether it should go on. */
int cpu_run_step(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  bool heeds = run->stop.asked && run_is_stoppable(s);
  assert(s->kind <= PLAN_DONE && cpu_step_table[s->kind]);
  cpu_event e;
  if (run->profile) e = (cpu_event){.start = cpu_profile_now(run->profile), .depth = run->depth++, .lane = run->lane};
  if (heeds) rt_pool_heed(run->exe->pool, &run->stop);
  int status = cpu_step_table[s->kind](run, p, s, pointers);
  if (heeds) rt_pool_heed(run->exe->pool, NULL);
  if (heeds && run->stop.stopped) status = run_interrupted(run, s);
  if (run->profile) run_note_event(run, p, s, pointers, &e);
  return status ? status : interp_tick(&run->ctx, cpu_step_work(s) + 1);
}

void **cpu_bind_program(const plan_program *p, void *const *arguments, void *const *results, char *frame) {
  void **pointers = (void **)(void *)frame;
  assert(!p->interpreted);
  cpu_bind_frame(p, frame, pointers);
  cpu_bind_interface(p, arguments, results, pointers);
  if (p->n_spares) run_bind_spares(p, arguments, pointers);
  return pointers;
}

int cpu_run_program(cpu_run *run, const plan_program *p, void *const *arguments, void *const *results, char *frame) {
  void **pointers = cpu_bind_program(p, arguments, results, frame);
  const cpu_list *l = cpu_code_of(run->exe, p)->list;
  return cpu_list_run_parts(run, l, p, pointers, 0, l->n_parts);
}
