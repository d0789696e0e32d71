/* Steps one after another on one stream. The host runs ahead of the GPU, but for loops' and branches' conditions and
 * for what it computes itself. */
#include "run.h"

#include "collective.h"
#include "condition.h"
#include "product.h"

int cuda_run_settle(cuda_run *run, xlac_error *err) {
  const interp_options *o = &run->ctx.options;
  bool may_hang = run->meets || run->stop, done = false;
  if (may_hang && o->interrupted && cuda_asks(run->device, run->stream, o->interrupted, o->interrupt_ctx, &done)) {
    run->stopped = true;
    if (run->stop) __atomic_store_n(run->stop, 1, __ATOMIC_RELEASE);
    if (run->meets) cuda_collectives_abort(run);
  }
  if (!done) TRY(cuda_wait(run->device, run->stream, NULL, NULL, err));
  run->meets = false;
  return 0;
}

int cuda_run_wait(cuda_run *run) {
  const interp_options *o = &run->ctx.options;
  if (run->meets || run->stop) {
    TRY(cuda_run_settle(run, run->ctx.err));
    return run->stopped ? base_interrupted(run->ctx.err) : 0;
  }
  return cuda_wait(run->device, run->stream, o->interrupted, o->interrupt_ctx, run->ctx.err);
}

int cuda_run_alone(cuda_run *run) {
  return run->meets ? cuda_run_wait(run) : 0;
}

static int cu_run_check(cuda_run *run, cuda_result result, const char *doing) {
  return cuda_check(&run->device->driver, result, doing, run->ctx.err);
}

/* --- steps --- */

/* Once, now or as a node: parameters are copied when they are given. */
static int cu_run_once(cuda_run *run, const cuda_kernel *k, uint32_t n, const uint64_t *values, void **parameters) {
  if (run->nodes)
    return cuda_nodes_add(run->nodes, CUDA_NODE_KERNEL, k, n, values) ? 0 : base_oom(run->ctx.err, "a launch graph");
  run->n_kernels++;
  return cu_run_check(run,
                      run->device->driver.cuLaunchKernel(k->function, (unsigned)k->launch.grid, 1, 1, k->launch.block,
                                                         1, 1, 0, run->stream, parameters, NULL),
                      "launching a kernel");
}

/* values: both operands and the result, with room for one more. */
static int cu_run_product(cuda_run *run, const cuda_kernel *k, cuda_address *values) {
  values[3] = run->scratch + CUDA_CONDITION_BYTES;
  if (run->nodes)
    return cuda_nodes_add(run->nodes, CUDA_NODE_LIBRARY, k, 4, values) ? 0 : base_oom(run->ctx.err, "a launch graph");
  run->n_kernels++;
  return cuda_product_run(run, k->product, values);
}

static int cu_run_launch(cuda_run *run, const cuda_kernel *k, const plan_step *s, const cuda_address *addresses) {
  uint32_t n = k->arrays ? k->n_arrays : s->n_in + s->n_out;
  if (k->launch.grid == 0 && !k->product) return 0;
  cuda_address *values = BASE_ARRAY(&run->arena, cuda_address, n + 2u);
  void **parameters = BASE_ARRAY(&run->arena, void *, n + 2u);
  if (!values || !parameters) return base_oom(run->ctx.err, "a kernel's parameters");
  for (uint32_t i = 0; i < n + 2; i++) parameters[i] = &values[i];
  for (uint32_t i = 0; i < n; i++)
    values[i] = addresses[k->arrays ? k->arrays[i] : i < s->n_in ? s->in[i] : s->out[i - s->n_in]];
  if (k->product) return cu_run_product(run, k, values);
  if (k->launch.scratch) values[n++] = run->scratch + CUDA_CONDITION_BYTES;
  if (k->launch.rounds == 0) return cu_run_once(run, k, n, values, parameters);
  for (uint32_t round = 0; round < k->launch.rounds; round++) {
    values[n] = round; /* in its low bytes */
    TRY(cu_run_once(run, k, n + 1, values, parameters));
  }
  return 0;
}

static int cu_run_kernel(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  const cuda_kernel *k = &run->exe->codes[p->number].kernels[s - p->steps];
  return k->printed ? cu_run_launch(run, k, s, addresses) : cuda_run_host_kernel(run, p, s, addresses);
}

static int cu_run_copy_bytes(cuda_run *run, cuda_address to, cuda_address from, int64_t bytes) {
  if (to == from || bytes == 0) return 0;
  run->tally.copies++;
  run->tally.bytes += bytes;
  if (run->nodes) {
    const uint64_t values[3] = {to, from, (uint64_t)bytes};
    return cuda_nodes_add(run->nodes, CUDA_NODE_COPY, NULL, 3, values) ? 0 : base_oom(run->ctx.err, "a launch graph");
  }
  return cu_run_check(run, run->device->driver.cuMemcpyDtoDAsync_v2(to, from, (size_t)bytes, run->stream), "copying");
}

static int cu_run_copy(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  return cu_run_copy_bytes(run, addresses[s->out[0]], addresses[s->in[0]], p->buffers[s->in[0]].bytes);
}

/* What changes a part of its operands does so in the results' memory. */
static int cu_run_routine(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  const cuda_kernel *k = &run->exe->codes[p->number].kernels[s - p->steps];
  if (k->collective) return cuda_collective_run(run, p, s, k->collective, addresses);
  if (!k->printed && !k->product) return cuda_run_eval(run, p, s, addresses);
  for (uint32_t i = 0; k->launch.changes && i < s->n_out; i++)
    TRY(cu_run_copy_bytes(run, addresses[s->out[i]], addresses[s->in[i]], p->buffers[s->in[i]].bytes));
  return cu_run_launch(run, k, s, addresses);
}

/* Waits for `bytes` of GPU memory to be known to the host. */
static int cu_run_read(cuda_run *run, void *to, cuda_address from, size_t bytes) {
  TRY(cuda_run_alone(run));
  TRY(cu_run_check(run, run->device->driver.cuMemcpyDtoHAsync_v2(to, from, bytes, run->stream), "reading a condition"));
  return cuda_run_wait(run);
}

/* Where the frame of program `nested` begins in the step's own: those of condition and body lie one behind the other.
 */
static cuda_address cu_run_nested_frame(const plan_step *s, const cuda_address *addresses, uint32_t nested) {
  assert(nested < s->n_nested);
  cuda_address before =
      nested ? ((uint64_t)s->nested[0]->frame_bytes + PLAN_ALIGN - 1) & ~(uint64_t)(PLAN_ALIGN - 1) : 0;
  return s->frame == UINT32_MAX ? 0 : addresses[s->frame] + (s->kind == PLAN_WHILE ? before : 0);
}

/* --- loops --- */

typedef struct cu_run_loop {
  const plan_step *s;
  cuda_address *now, *next; /* the state, and the next one */
  int64_t trips;            /* CUDA_TRIPS_UNKNOWN: the condition says */
  cuda_address frames[2];
} cu_run_loop;

/* The state begins as copies of the operands. */
static int cu_run_enter_loop(cuda_run *run, const plan_program *p, const cuda_address *addresses, cu_run_loop *x) {
  const plan_step *s = x->s;
  uint32_t scratch = s->n_in;
  for (uint32_t i = 0; i < s->n_in; i++) {
    x->now[i] = addresses[s->out[i]];
    x->next[i] = s->nested[1]->stays[i] ? x->now[i] : addresses[s->out[scratch++]];
    TRY(cu_run_copy_bytes(run, x->now[i], addresses[s->in[i]], p->buffers[s->in[i]].bytes));
  }
  for (uint32_t i = 0; i < 2; i++) x->frames[i] = cu_run_nested_frame(s, addresses, i);
  return 0;
}

/* Whether there is another trip. */
static int cu_run_goes_on(cuda_run *run, const cu_run_loop *x, int64_t trip, bool *go_on) {
  uint8_t condition = 0;
  *go_on = trip < x->trips;
  if (x->trips != CUDA_TRIPS_UNKNOWN) return 0;
  TRY(cuda_run_program(run, x->s->nested[0], x->now, &run->scratch, x->frames[0]));
  TRY(cu_run_read(run, &condition, run->scratch, sizeof condition));
  *go_on = condition != 0;
  return 0;
}

/* Trip after trip; the two states change places. */
static int cu_run_trips(cuda_run *run, cu_run_loop *x, bool *swapped) {
  const plan_step *s = x->s;
  *swapped = false;
  for (int64_t trip = 0;; trip++) {
    bool go_on = false;
    base_arena_mark mark = base_arena_here(&run->arena);
    TRY(cu_run_goes_on(run, x, trip, &go_on));
    if (!go_on) return 0;
    TRY(cuda_run_program(run, s->nested[1], x->now, x->next, x->frames[1]));
    base_arena_back(&run->arena, mark);
    TRY(interp_tick(&run->ctx, 1 << 10));
    cuda_address *was = x->now;
    x->now = x->next;
    x->next = was;
    *swapped = !*swapped;
  }
}

/* After an odd number of trips the state lies in the scratch buffers, and is copied back. */
static int cu_run_loop_in(cuda_run *run, const plan_program *p, const cuda_address *addresses, cu_run_loop *x) {
  bool swapped = false;
  TRY(cu_run_enter_loop(run, p, addresses, x));
  TRY(cu_run_trips(run, x, &swapped));
  for (uint32_t i = 0; i < x->s->n_in && swapped; i++)
    TRY(cu_run_copy_bytes(run, x->next[i], x->now[i], p->buffers[x->s->out[i]].bytes));
  return 0;
}

/* One trip of a graph's loop: to the other state, and what its condition says there. */
static int cu_run_turn(cuda_run *run, const cu_run_loop *x, const cuda_address *from, const cuda_address *to) {
  TRY(cuda_run_program(run, x->s->nested[1], from, to, x->frames[1]));
  return cuda_run_program(run, x->s->nested[0], to, &run->scratch, x->frames[0]);
}

/* The copies back of cu_run_loop_in, by a condition. */
static int cu_run_list_copies(cuda_run *run, const plan_program *p, const cu_run_loop *x, uint32_t odd) {
  cuda_condition_scope scope;
  TRY(cuda_condition_begin(run, odd, CUDA_NODE_IF, &scope));
  for (uint32_t i = 0; i < x->s->n_in; i++)
    TRY(cu_run_copy_bytes(run, x->now[i], x->next[i], p->buffers[x->s->out[i]].bytes));
  cuda_condition_end(run, &scope);
  return 0;
}

/* Two trips, between which the states change places: the second one only where its condition says so. `odd` is whether
 * the last one was a first one. */
static int cu_run_list_trips(cuda_run *run, const cu_run_loop *x, uint32_t again, uint32_t second, uint32_t odd) {
  cuda_condition_scope both, other;
  TRY(cuda_condition_begin(run, again, CUDA_NODE_WHILE, &both));
  TRY(cu_run_turn(run, x, x->now, x->next));
  TRY(cuda_condition_set(run, again, run->scratch, CUDA_IF_TRUE, 0, 1));
  TRY(cuda_condition_set(run, second, run->scratch, CUDA_IF_TRUE, 0, 1));
  TRY(cuda_condition_set(run, odd, run->scratch, CUDA_IF_FALSE, 0, 1));
  TRY(cuda_condition_begin(run, second, CUDA_NODE_IF, &other));
  TRY(cu_run_turn(run, x, x->next, x->now));
  TRY(cuda_condition_set(run, again, run->scratch, CUDA_IF_TRUE, 0, 1));
  cuda_condition_end(run, &other);
  cuda_condition_end(run, &both);
  return 0;
}

/* A loop whose condition the GPU reads. */
static int cu_run_list_loop(cuda_run *run, const plan_program *p, const cuda_address *addresses, cu_run_loop *x) {
  const uint32_t again = run->n_conditions, second = again + 1, odd = again + 2;
  run->n_conditions += 3;
  TRY(cu_run_enter_loop(run, p, addresses, x));
  TRY(cuda_run_program(run, x->s->nested[0], x->now, &run->scratch, x->frames[0]));
  TRY(cuda_condition_set(run, again, run->scratch, CUDA_IF_TRUE, 0, 1));
  TRY(cuda_condition_set(run, odd, 0, CUDA_IF_TRUE, 0, 1));
  TRY(cu_run_list_trips(run, x, again, second, odd));
  return cu_run_list_copies(run, p, x, odd);
}

static int cu_run_while(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  cu_run_loop x = {.s = s, .trips = run->exe->codes[p->number].trips[s - p->steps]};
  assert(s->n_nested == 2);
  run->n_loops++;
  x.now = BASE_ARRAY(&run->arena, cuda_address, 2u * s->n_in + 1u);
  if (!x.now) return base_oom(run->ctx.err, "the state of a loop");
  x.next = x.now + s->n_in;
  if (run->nodes && x.trips == CUDA_TRIPS_UNKNOWN) return cu_run_list_loop(run, p, addresses, &x);
  return cu_run_loop_in(run, p, addresses, &x);
}

/* --- branches, calls --- */

/* Program `nested` on the step's inputs from number `first` on, and into its outputs. */
static int cu_run_call(cuda_run *run, const plan_step *s, const cuda_address *addresses, uint32_t nested,
                       uint32_t first) {
  const plan_program *callee = s->nested[nested];
  uint32_t n = callee->n_arguments, m = callee->n_results;
  cuda_address *all = BASE_ARRAY(&run->arena, cuda_address, (size_t)n + m + 1);
  if (!all) return base_oom(run->ctx.err, "the arguments of a call");
  assert(first + n <= s->n_in && m <= s->n_out);
  for (uint32_t i = 0; i < n; i++) all[i] = addresses[s->in[first + i]];
  for (uint32_t i = 0; i < m; i++) all[n + i] = addresses[s->out[i]];
  return cuda_run_program(run, callee, all, all + n, cu_run_nested_frame(s, addresses, nested));
}

/* Each branch by a condition of its own: all are set before any is run, which may write over what they are read from.
 */
static int cu_run_list_branches(cuda_run *run, const plan_program *p, const plan_step *s,
                                const cuda_address *addresses) {
  const uint32_t number = run->n_conditions, selector = s->in[0];
  const bool pred = p->buffers[selector].type->dtype == XLAC_PRED;
  uint32_t first = 1;
  cuda_condition_scope scope;
  run->n_conditions += s->n_nested;
  for (uint32_t i = 0; i < s->n_nested; i++)
    TRY(cuda_condition_set(run, number + i, addresses[selector], pred ? CUDA_BRANCH_OF_PRED : CUDA_BRANCH_OF_S32, i,
                           s->n_nested));
  for (uint32_t i = 0; i < s->n_nested; i++) {
    TRY(cuda_condition_begin(run, number + i, CUDA_NODE_IF, &scope));
    TRY(cu_run_call(run, s, addresses, i, first));
    cuda_condition_end(run, &scope);
    first += s->nested[i]->n_arguments;
  }
  return 0;
}

/* As XLA has it: of a predicate, true is branch 0; an index out of range means the last branch. */
static int cu_run_conditional(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  char selector[16] = {0};
  base_dtype t = (base_dtype)p->buffers[s->in[0]].type->dtype;
  if (run->nodes) return cu_run_list_branches(run, p, s, addresses);
  TRY(cu_run_read(run, selector, addresses[s->in[0]], base_dtype_bytes(t)));
  int64_t v = base_load_i64(t, selector);
  if (t == XLAC_PRED) v = v ? 0 : 1;
  uint32_t branch = v >= 0 && v < s->n_nested ? (uint32_t)v : s->n_nested - 1, first = 1;
  for (uint32_t i = 0; i < branch; i++) first += s->nested[i]->n_arguments;
  return cu_run_call(run, s, addresses, branch, first);
}

/* What starts is over when the next step begins, which is allowed: updates and dones have nothing to do. */
static int cu_run_start(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  if (s->n_nested) return cu_run_call(run, s, addresses, 0, 0);
  if (s->op->opcode == IR_OP_COPY_START) return cu_run_copy(run, p, s, addresses);
  return cuda_run_eval_start(run, p, s, addresses);
}

static int cu_run_step_kind(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  switch ((plan_step_kind)s->kind) {
    case PLAN_KERNEL:
      return cu_run_kernel(run, p, s, addresses);
    case PLAN_ROUTINE:
      return cu_run_routine(run, p, s, addresses);
    case PLAN_COPY:
      return cu_run_copy(run, p, s, addresses);
    case PLAN_WHILE:
      return cu_run_while(run, p, s, addresses);
    case PLAN_CONDITIONAL:
      return cu_run_conditional(run, p, s, addresses);
    case PLAN_CALL:
      return cu_run_call(run, s, addresses, 0, 0);
    case PLAN_START:
      return cu_run_start(run, p, s, addresses);
    case PLAN_UPDATE:
    case PLAN_DONE:
      break;
  }
  return 0;
}

static int cu_run_step(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  int status = cu_run_step_kind(run, p, s, addresses);
  if (status == 0 && run->exe->checks) status = cuda_run_wait(run);
  if (status == 0) status = interp_tick(&run->ctx, 1 << 6);
  return status ? interp_place_error(&run->ctx, s->op, status) : 0;
}

/* --- programs --- */

/* Where each buffer lies. */
static void cu_run_bind(const cuda_run *run, const plan_program *p, const cuda_address *arguments,
                        const cuda_address *results, cuda_address frame, cuda_address *addresses) {
  const cuda_address *constants = run->exe->codes[p->number].constants;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &p->buffers[i];
    switch ((plan_place)b->place) {
      case PLAN_FRAME:
        addresses[i] = frame + (uint64_t)b->offset;
        break;
      case PLAN_ARGUMENT:
        addresses[i] = arguments[b->number];
        break;
      case PLAN_RESULT:
        addresses[i] = results[b->number];
        break;
      case PLAN_SPARE:
        addresses[i] = arguments[p->spares[b->number]] + (uint64_t)b->offset;
        break;
      case PLAN_CONSTANT:
        addresses[i] = constants[i];
        break;
      case PLAN_TILE: /* there are no products by lines here */
        break;
    }
  }
}

int cuda_run_steps(cuda_run *run, const plan_program *p, uint32_t from, uint32_t to, const cuda_address *addresses) {
  assert(from <= to && to <= p->n_steps);
  for (uint32_t i = from; i < to; i++) {
    TRY(cuda_profile_mark(run, p, i));
    TRY(cu_run_step(run, p, &p->steps[i], addresses));
  }
  return 0;
}

/* All that the addresses of a program's buffers follow from, and what else a graph has in it. */
static int cu_run_key(cuda_run *run, const cuda_address *arguments, const cuda_address *results, cuda_address frame,
                      cuda_passage *at) {
  const uint32_t n = at->p->n_arguments, m = at->p->n_results;
  cuda_address *key = BASE_ARRAY(&run->arena, cuda_address, (size_t)n + m + 3);
  if (!key) return base_oom(run->ctx.err, "a program's addresses");
  for (uint32_t i = 0; i < n; i++) key[i] = arguments[i];
  for (uint32_t i = 0; i < m; i++) key[n + i] = results[i];
  key[n + m] = frame;
  key[n + m + 1] = run->scratch;
  key[n + m + 2] = (cuda_address)(uintptr_t)run->stop;
  at->key = key;
  at->n = (size_t)n + m + 3;
  return 0;
}

/* Stretches are graphs, the steps in between the host's. */
static int cu_run_stretches(cuda_run *run, cuda_passage *at) {
  const cuda_code *code = &run->exe->codes[at->p->number];
  uint32_t next = 0;
  for (uint32_t i = 0; i < code->n_stretches; i++) {
    bool done = false;
    at->stretch = &code->stretches[i];
    assert(next <= at->stretch->from && at->stretch->from < at->stretch->to);
    TRY(cuda_run_steps(run, at->p, next, at->stretch->from, at->addresses));
    TRY(cuda_graph_run(run, at, &done));
    next = done ? at->stretch->to : at->stretch->from;
    if (!done) continue;
    TRY(interp_tick(&run->ctx, 1 << 6));
  }
  return cuda_run_steps(run, at->p, next, at->p->n_steps, at->addresses);
}

/* What is listed, or timed step by step, has no graphs. */
int cuda_run_program(cuda_run *run, const plan_program *p, const cuda_address *arguments, const cuda_address *results,
                     cuda_address frame) {
  const cuda_code *code = &run->exe->codes[p->number];
  assert(!p->interpreted && code->made);
  cuda_address *addresses = BASE_ARRAY(&run->arena, cuda_address, p->n_buffers + (size_t)1);
  cuda_passage at = {.p = p, .addresses = addresses};
  if (!addresses) return base_oom(run->ctx.err, "a program's addresses");
  cu_run_bind(run, p, arguments, results, frame, addresses);
  if (code->n_stretches && !run->nodes && !run->marks) {
    TRY(cu_run_key(run, arguments, results, frame, &at));
    return cu_run_stretches(run, &at);
  }
  TRY(cuda_run_steps(run, p, 0, p->n_steps, addresses));
  return cuda_profile_mark(run, p, p->n_steps);
}
