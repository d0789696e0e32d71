/* Async chains while a program runs. A start fills a task in the first bytes of its frame and posts it to its
 * lane; each update posts one more part; the done waits, or runs what no thread has begun by itself
 * (rt_task_help). XLA's async-start, async-update and async-done have the same meaning: an update is where work
 * may go on, nothing else.
 *
 * The frame belongs to the step's buffer, so a task needs no memory of its own. Everything a task touches outlives it,
 * since the plan keeps the operands, the results and the frame alive until the done. A task has a cpu_run of its
 * own, with its own error record; it looks at its parent's run only for the wish to stop. */
#include "async.h"

#include <stdio.h>

#include "../interp/blocks.h"
#include "threaded/list.h"

/* How often a waiting thread looks whether it is interrupted, such as by Ctrl-C in Python: unseen by a user, and
 * no cost. */
#define ASYNC_POLL_SECONDS 0.02

static bool task_is_cancelled(const cpu_run *run) {
  for (; run; run = run->parent)
    if (atomic_load_explicit(&run->cancelled, memory_order_relaxed)) return true;
  return false;
}

/* --- the task's side: any thread --- */

/* A run with the task it is for: what task_asked is given as its context. */
typedef struct task_run {
  cpu_run run;
  const cpu_task *task;
} task_run;

/* Whether this thread is the one that started the task: whoever waits for a task may run it. */
static bool task_is_helped(const cpu_task *t) {
  return pthread_equal(pthread_self(), t->owner);
}

/* Whether the task should stop: because a run that it belongs to was cancelled, or because its user wants to
 * interrupt it. The user's function is called by the user's own thread only: it may need Python's GIL, which a
 * lane's thread hasn't. */
static bool task_asked(void *ctx) {
  const task_run *x = ctx;
  const interp_options *outer = &x->task->parent->ctx.options;
  if (task_is_cancelled(x->task->parent)) return true;
  return task_is_helped(x->task) && outer->interrupted && outer->interrupted(outer->interrupt_ctx);
}

/* Makes a run for one part of the task. The tables of the interpreter are set up only where a step needs them,
 * since that costs more than many tasks do. After success the caller ends them. */
static int task_begin(task_run *x, cpu_task *t) {
  assert(t->how && t->parent && t->parent->exe);
  const cpu_start *c = t->how;
  cpu_run *run = &x->run;
  x->task = t;
  *run = (cpu_run){.exe = t->parent->exe, .parent = t->parent, .stop = {.asked = task_asked, .ctx = x}};
  run->profile = t->parent->profile;
  run->lane = task_is_helped(t) ? t->parent->lane : c->number + 1;
  run->depth = 1;
  interp_options options = t->parent->ctx.options;
  options.interrupted = task_asked;
  options.interrupt_ctx = x;
  if (c->needs_interpreter) return interp_begin(&run->ctx, run->exe->base.module, &options, &t->err);
  run->ctx.options = options;
  run->ctx.err = &t->err;
  return 0;
}

/* Only share number `part` of the ranges of a step. */
static int task_run_share(cpu_run *run, const plan_program *p, void *const *pointers, uint32_t part, uint32_t parts) {
  assert(part < parts);
  run->stop.part = part;
  run->stop.parts = parts;
  rt_pool_heed(run->exe->pool, &run->stop);
  int status = cpu_list_run(run, cpu_code_of(run->exe, p)->list, p, pointers);
  rt_pool_heed(run->exe->pool, NULL);
  if (status || !run->stop.stopped) return status;
  return base_fail(run->ctx.err, XLAC_E_INTERRUPTED, "the run was interrupted");
}

/* A start without a program of its own: a copy-start is one memcpy a leaf, everything else is the interpreter's. */
static int task_run_op(cpu_run *run, const cpu_task *t) {
  const plan_step *s = t->start;
  const cpu_start *c = t->how;
  if (!c->bytes) return cpu_run_eval_start(run, s, t->pointers);
  for (uint32_t i = 0; i < s->n_out; i++)
    TRY(interp_copy_bytes(&run->ctx, t->pointers[s->out[i]], t->pointers[s->in[i]], (size_t)c->bytes[i]));
  return 0;
}

/* Part number `part` of the updates + 1 that there are. A list of n parts is cut at ceil(n * part / parts): every
 * part of the list is run once, and the last call ends with the last of them. */
static int task_run_part(cpu_run *run, const cpu_task *t, uint32_t part) {
  const plan_step *s = t->start;
  const cpu_start *c = t->how;
  uint32_t parts = s->chain->updates + 1;
  if (!s->n_nested) return task_run_op(run, t);
  const plan_program *p = s->nested[0];
  if (c->cut == CPU_CUT_STEP) return task_run_share(run, p, t->pointers, part, parts);
  const cpu_list *l = cpu_code_of(run->exe, p)->list;
  if (c->cut == CPU_CUT_NOT) return cpu_list_run(run, l, p, t->pointers);
  uint64_t n = l->n_parts;
  return cpu_list_run_parts(run, l, p, t->pointers, (uint32_t)((n * part + parts - 1) / parts),
                            (uint32_t)((n * (part + 1) + parts - 1) / parts));
}

/* The lane's entry point: a cpu_task begins with its rt_task. After a part has failed the others do nothing; the
 * error waits in the task for the done. */
static void task_run_posted(rt_task *base, uint32_t part) {
  cpu_task *t = (cpu_task *)base;
  task_run x;
  if (t->status) return;
  t->status = task_begin(&x, t);
  if (t->status) return;
  cpu_event e = {.serial = t->serial, .lane = x.run.lane, .task = true};
  if (x.run.profile) e.start = cpu_profile_now(x.run.profile);
  t->status = task_run_part(&x.run, t, part);
  if (x.run.profile) cpu_profile_add(x.run.profile, t->program, t->start, e);
  cpu_units_add(&t->ran, &x.run.ran);
  assert(!x.run.tasks);
  if (t->how->needs_interpreter) interp_end(&x.run.ctx);
}

/* --- the side of who starts it --- */

/* The table of pointers that the task works with. A nested program has one of its own, behind the task in its
 * frame; its arguments are the step's inputs, its results the step's outputs. */
static void task_bind(cpu_task *t, const plan_step *s, void *const *pointers) {
  if (!s->n_nested) {
    t->pointers = pointers;
    return;
  }
  const plan_program *p = s->nested[0];
  char *frame = (char *)t + CPU_TASK_BYTES;
  void **own = (void **)(void *)frame;
  cpu_bind_frame(p, frame, own);
  for (uint32_t i = 0; i < p->n_interface; i++) {
    const plan_buffer *b = &p->buffers[p->interface[i]];
    own[p->interface[i]] = pointers[(b->place == PLAN_ARGUMENT ? s->in : s->out)[b->number]];
  }
  t->pointers = own;
}

/* The tasks that are started and not done are a doubly linked list, so that a done in any order costs nothing. */
static void task_link(cpu_run *run, cpu_task *t) {
  t->before = NULL;
  t->after = run->tasks;
  if (t->after) t->after->before = t;
  run->tasks = t;
}

static void task_unlink(cpu_run *run, cpu_task *t) {
  assert((t->before ? t->before->after : run->tasks) == t);
  *(t->before ? &t->before->after : &run->tasks) = t->after;
  if (t->after) t->after->before = t->before;
}

/* Runs the whole task now, on this thread. An error is kept for the done, as it would be if a lane had run it;
 * only a wish to stop is reported at once. */
static int task_at_once(cpu_run *run, cpu_task *t) {
  xlac_error *outer = run->ctx.err;
  run->ctx.err = &t->err;
  const plan_program *p = t->start->n_nested ? t->start->nested[0] : NULL;
  t->status = p ? cpu_list_run(run, cpu_code_of(run->exe, p)->list, p, t->pointers) : task_run_op(run, t);
  run->ctx.err = outer;
  if (t->status != -XLAC_E_INTERRUPTED) return 0;
  if (outer) *outer = t->err;
  return t->status;
}

/* A profile that times single steps wants all work on one thread, and so posts nothing. */
int cpu_async_start(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  assert(s->kind == PLAN_START && s->chain && s->frame < p->n_buffers);
  const cpu_start *c = cpu_step_code(run->exe, p, s);
  cpu_task *t = pointers[s->frame];
  t->start = s;
  t->how = c;
  t->status = 0;
  t->ran = (cpu_units){0};
  t->err.code = 0;
  t->err.op[0] = t->err.hint[0] = 0;
  t->program = p;
  t->serial = run->profile ? cpu_profile_serial(run->profile) : 0;
  t->posted = !c->at_once && !(run->profile && !run->profile->lanes);
  task_bind(t, s, pointers);
  if (!t->posted) return task_at_once(run, t);
  t->parent = run;
  t->owner = pthread_self();
  task_link(run, t);
  rt_task_init(&t->base, c->lane, task_run_posted);
  rt_task_post(&t->base);
  return 0;
}

/* The task of the chain that s, an update or a done, belongs to: at the beginning of its start's frame. */
static cpu_task *task_of(const plan_program *p, const plan_step *s, void *const *pointers) {
  assert(s->chain && p->steps[s->chain->start].kind == PLAN_START);
  return pointers[p->steps[s->chain->start].frame];
}

uint32_t cpu_async_serial(const plan_program *p, const plan_step *s, void *const *pointers) {
  return task_of(p, s, pointers)->serial;
}

/* Work that is in one part was posted whole by the start, and an update of it does nothing. */
int cpu_async_update(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  cpu_task *t = task_of(p, s, pointers);
  const cpu_start *c = t->how;
  (void)run;
  if (t->posted && c->cut != CPU_CUT_NOT) rt_task_post(&t->base);
  return 0;
}

static int task_interrupted(cpu_run *run, const plan_step *s) {
  return interp_place_error(&run->ctx, s->op, base_fail(run->ctx.err, XLAC_E_INTERRUPTED, "the run was interrupted"));
}

/* Runs the task here if nobody has begun it, else waits in short intervals, so that the wait can be interrupted.
 * After an interruption the task stays linked: cpu_async_abandon takes it back. */
static int task_wait(cpu_run *run, const plan_step *s, cpu_task *t) {
  const interp_options *options = &run->ctx.options;
  while (!rt_task_help(&t->base) && !rt_task_wait(&t->base, ASYNC_POLL_SECONDS))
    if (options->interrupted && options->interrupted(options->interrupt_ctx)) return task_interrupted(run, s);
  task_unlink(run, t);
  cpu_units_add(&run->ran, &t->ran);
  return 0;
}

/* The place is that of the op that failed; the message says whose work it was. */
static int task_fail(cpu_run *run, const plan_step *s, const cpu_task *t) {
  xlac_error *err = run->ctx.err;
  if (!err) return t->status;
  *err = t->err;
  size_t n = strlen(err->message);
  snprintf(err->message + n, sizeof err->message - n, " (started by %s, awaited by %s)", t->start->op->name->s,
           s->op->name->s);
  return t->status;
}

/* The results are complete after this, or the call fails with the task's own error. */
int cpu_async_done(cpu_run *run, const plan_program *p, const plan_step *s, void *const *pointers) {
  cpu_task *t = task_of(p, s, pointers);
  if (t->posted) TRY(task_wait(run, s, t));
  return t->status ? task_fail(run, s, t) : 0;
}

/* Sets the flag before it takes tasks back: parts that are running see it and end early, and only those are waited
 * for. */
void cpu_async_abandon(cpu_run *run) {
  atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
  for (cpu_task *t = run->tasks; t; t = t->after) rt_task_cancel(&t->base);
  run->tasks = NULL;
}
