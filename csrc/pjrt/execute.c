/* Runs: arguments are checked and taken, the program is run here or on a queue, results come back at once.
 *
 * The queue is the device's, or the client's for all programs of several devices. These have the arguments and results
 * of each device, the first device's first: a leaf's number is that of its device times their number, and its own.
 *
 * All memory has its place when a call returns, since clients ask for addresses of what is not ready yet. A run holds
 * its arguments' blocks as a user. What is donated was the buffer's own use, which the run takes over. Where nobody
 * else uses the block but runs that are before this one in the queue, results are written over it; where somebody does
 * (a run on another thread, an array of NumPy's), the program is told that it is only borrowed, and copies.
 *
 * Programs are told how an argument lies that isn't row-major; those that can't be get a copy, and results in another
 * layout are computed beside it. */
#include <time.h>

#include "pjrt.h"

enum { EXECUTE_SHORT = 30000 }; /* nanoseconds, of the last run: what two changes of threads take, and JAX's call */

/* An argument or result that is not row-major. */
typedef struct execute_laid {
  struct execute_laid *next;
  uint32_t leaf;
  bool result;
  void *lies;        /* of a result: where it goes */
  void *copy;        /* row-major, while the program runs; NULL: it reads the argument where it is */
  int64_t strides[]; /* in bytes, of an argument as stored */
} execute_laid;

/* All in one allocation, of the thread that runs it. */
typedef struct execute_run {
  PJRT_Executable *e; /* a reference */
  pjrt_queue *queue;
  uint32_t n_devices, n_arguments, n_results; /* of leaves: those of all devices */
  PJRT_Device **devices;
  rt_event *done; /* NULL: whoever called waits */
  pjrt_callbacks callbacks;
  pjrt_block **arguments, **results; /* uses */
  bool *given;                       /* arguments that were donated */
  bool gives;                        /* some of them may be written to */
  execute_laid *laid;                /* those that are not row-major; mostly none */
  bool queued;                       /* it is on the queue, and counted in the blocks of that queue */
  xlac_argument *at;
  void **out;
} execute_run;

/* A leaf's device, and what the executable says of it. */
static PJRT_Device *execute_argument_device(const execute_run *x, uint32_t i) {
  return x->devices[x->n_devices == 1 ? 0 : i / x->e->n_parameters];
}

static const pjrt_parameter *execute_parameter(const execute_run *x, uint32_t i) {
  return &x->e->parameters[x->n_devices == 1 ? i : i % x->e->n_parameters];
}

static PJRT_Device *execute_result_device(const execute_run *x, uint32_t i) {
  return x->devices[x->n_devices == 1 ? 0 : i / x->e->n_results];
}

static const pjrt_result *execute_result(const execute_run *x, uint32_t i) {
  return &x->e->results[x->n_devices == 1 ? i : i % x->e->n_results];
}

/* The argument whose memory a result takes, of the same device; UINT32_MAX: none. */
static uint32_t execute_donor(const execute_run *x, uint32_t i) {
  uint32_t donor = execute_result(x, i)->donor;
  if (donor == UINT32_MAX || x->n_devices == 1) return donor;
  return i / x->e->n_results * x->e->n_parameters + donor;
}

/* --- memory: before the run --- */

/* Whether nobody but this run, and those before it in its queue, uses a block. */
static bool execute_is_ours(const execute_run *x, pjrt_block *b, bool queued) {
  unsigned before = atomic_load(&b->queued); /* read first: whoever leaves counts himself out of this first */
  unsigned users = atomic_load(&b->users);
  assert(users > 0 && "this run is one");
  return !b->readonly && users - before == 1 && (before == 0 || (queued && b->queue == x->queue));
}

static const execute_laid *execute_laid_argument(const execute_run *x, uint32_t i) {
  for (const execute_laid *l = x->laid; l; l = l->next)
    if (!l->result && l->leaf == i) return l;
  return NULL;
}

/* Where each argument lies, and whether it may be written to. */
static void execute_place_arguments(execute_run *x, bool queued) {
  for (uint32_t i = 0; i < x->n_arguments; i++) {
    pjrt_block *b = x->arguments[i];
    assert(b && "all arguments are in use");
    const execute_laid *laid = execute_laid_argument(x, i);
    bool ours = x->given[i] && !laid && execute_is_ours(x, b, queued);
    const int64_t *strides = laid ? laid->strides : NULL;
    x->at[i] = (xlac_argument){execute_parameter(x, i)->shape.dtype ? b->data : NULL, strides, ours};
    x->gives = x->gives || ours;
  }
}

/* Says which result there is no memory for. */
static int execute_no_memory(const execute_run *x, uint32_t i, xlac_error *err) {
  char shape[96];
  const pjrt_result *r = execute_result(x, i);
  const PJRT_Device *d = execute_result_device(x, i);
  pjrt_describe_shape(&r->shape, shape);
  int status = base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: result %u of %.60s, %s, takes %zu bytes",
                         i % x->e->n_results, x->e->name, shape, r->bytes);
  return base_hint(err, status, "arrays on %s take %lld bytes now; what is donated or deleted makes room",
                   d->description.text, (long long)atomic_load(&d->bytes));
}

/* A result lies in the memory of what was given for it, or in new memory. */
static int execute_place_results(execute_run *x, xlac_error *err) {
  for (uint32_t i = 0; i < x->n_results; i++) {
    const pjrt_result *r = execute_result(x, i);
    uint32_t donor = execute_donor(x, i);
    assert(x->results[i] && !x->results[i]->data);
    assert(donor == UINT32_MAX || donor < x->n_arguments);
    if (donor != UINT32_MAX && x->at[donor].given)
      pjrt_block_move(x->results[i], x->arguments[donor]);
    else if (pjrt_block_allocate(x->results[i], execute_result_device(x, i), r->bytes, NULL))
      return execute_no_memory(x, i, err);
    x->out[i] = r->shape.dtype ? x->results[i]->data : NULL;
  }
  return 0;
}

static void execute_count_block(const execute_run *x, pjrt_block *b) {
  if (b->queue == x->queue) atomic_fetch_add(&b->queued, 1);
}

static void execute_count_queued(execute_run *x) {
  assert(!x->queued);
  x->queued = true;
  for (uint32_t i = 0; i < x->n_arguments; i++) execute_count_block(x, x->arguments[i]);
  for (uint32_t i = 0; i < x->n_results; i++) execute_count_block(x, x->results[i]);
}

/* --- on the run's thread --- */

static const xlac_interpret_options execute_defaults = {XLAC_OPTIONS(xlac_interpret_options)};

/* --- what isn't row-major --- */

static int execute_lay_one(execute_run *x, execute_laid *l, xlac_error *err) {
  const pjrt_shape *s = l->result ? &execute_result(x, l->leaf)->shape : &execute_parameter(x, l->leaf)->shape;
  const pjrt_shape plain = {s->dtype, s->rank, s->dims, NULL};
  size_t bytes = l->result ? execute_result(x, l->leaf)->bytes : execute_parameter(x, l->leaf)->bytes;
  if (!l->result && !x->e->group && !x->e->values) return 0; /* it is read in place */
  if (!(l->copy = base_malloc(base_alloc_libc, bytes + 1))) return base_oom(err, "a row-major copy of an array");
  if (l->result) {
    l->lies = x->out[l->leaf];
    x->out[l->leaf] = l->copy;
    return 0;
  }
  TRY(pjrt_layout_copy(x->devices[0]->client->runtime, &plain, l->strides, x->at[l->leaf].data, NULL, l->copy, err));
  x->at[l->leaf] = (xlac_argument){l->copy, NULL, false};
  return 0;
}

static int execute_lay(execute_run *x, xlac_error *err) {
  for (execute_laid *l = x->laid; l; l = l->next) TRY(execute_lay_one(x, l, err));
  return 0;
}

/* Results go where they are to lie. */
static int execute_lay_results(const execute_run *x, xlac_error *err) {
  int64_t strides[IR_MAX_RANK + 1];
  for (const execute_laid *l = x->laid; l; l = l->next) {
    if (!l->result) continue;
    const pjrt_shape *s = &execute_result(x, l->leaf)->shape;
    const pjrt_shape plain = {s->dtype, s->rank, s->dims, NULL};
    pjrt_layout_strides(&plain, strides);
    TRY(pjrt_layout_copy(x->devices[0]->client->runtime, &plain, strides, l->copy, s->minor_to_major, l->lies, err));
  }
  return 0;
}

static PJRT_Error *execute_add_laid(execute_run *x, bool result, uint32_t leaf, const pjrt_shape *s) {
  execute_laid *l = pjrt_alloc(sizeof *l + s->rank * sizeof(int64_t));
  if (!l) return pjrt_out_of_memory("the layouts of a call");
  l->next = x->laid;
  l->leaf = leaf;
  l->result = result;
  pjrt_layout_strides(s, l->strides);
  x->laid = l;
  return NULL;
}

static void execute_free_laid(execute_run *x) {
  while (x->laid) {
    execute_laid *next = x->laid->next;
    pjrt_free(x->laid->copy);
    pjrt_free(x->laid);
    x->laid = next;
  }
}

static int execute_compiled(execute_run *x, const xlac_interpret_options *options, xlac_error *err) {
  const xlac_executable *exe = x->e->exe;
  if ((x->gives || x->laid) && !x->e->group) return xlac_executable_call_at(exe, options, x->at, x->out, err);
  void **pointers = (void **)x->at; /* in place: shorter ones over longer ones, from the first on */
  for (uint32_t i = 0; i < x->n_arguments; i++) pointers[i] = x->at[i].data;
  if (x->e->group) return xlac_executable_call_shards(exe, options, pointers, x->out, err);
  return xlac_executable_call(exe, options, pointers, x->out, err);
}

/* --- programs that the interpreter runs whole --- */

static int execute_lend_value(execute_run *x, uint32_t i, xlac_value **out, xlac_error *err) {
  assert(i < x->e->n_parameters);
  const pjrt_shape *s = &x->e->parameters[i].shape;
  if (s->dtype == BASE_DTYPE_INVALID) return xlac_value_token(out, err);
  return xlac_value_lend(out, s->dtype, s->rank, s->dims, x->at[i].data, NULL, NULL, err);
}

static int execute_keep_value(execute_run *x, uint32_t i, const xlac_value *v, xlac_error *err) {
  xlac_value_info info;
  xlac_value_get(v, &info);
  if (info.kind != XLAC_VALUE_ARRAY) return 0;
  if (info.bytes != x->e->results[i].bytes)
    return base_fail(err, XLAC_E_INTERNAL, "result %u has %zu bytes; %zu were expected", i, info.bytes,
                     x->e->results[i].bytes);
  if (info.bytes) memcpy(x->out[i], info.data, info.bytes);
  return 0;
}

static int execute_keep_values(execute_run *x, xlac_value *all, xlac_error *err) {
  xlac_value_info info;
  xlac_value_get(all, &info);
  for (uint32_t i = 0; i < x->e->n_results; i++)
    TRY(execute_keep_value(x, i, info.kind == XLAC_VALUE_TUPLE ? xlac_value_element(all, i) : all, err));
  return 0;
}

static int execute_values(execute_run *x, const xlac_interpret_options *options, xlac_error *err) {
  uint32_t n = 0;
  xlac_value *out = NULL, **values = pjrt_alloc((x->e->n_parameters + 1) * sizeof(xlac_value *));
  int status = values ? 0 : base_oom(err, "the arguments of a call");
  for (; status == 0 && n < x->e->n_parameters; n++) {
    status = execute_lend_value(x, n, &values[n], err);
    if (status) break;
  }
  if (status == 0) status = xlac_executable_run(x->e->exe, options, n, values, &out, err);
  if (status == 0) status = execute_keep_values(x, out, err);
  xlac_value_release(out);
  for (uint32_t i = 0; i < n; i++) xlac_value_release(values[i]);
  pjrt_free(values);
  return status;
}

/* --- one run --- */

static void execute_leave_block(execute_run *x, pjrt_block **b) {
  bool counted = *b && x->queued && (*b)->queue == x->queue;
  assert(!counted || atomic_load(&(*b)->queued) > 0);
  if (counted) atomic_fetch_sub(&(*b)->queued, 1);
  pjrt_block_leave(*b);
  *b = NULL;
}

/* The arguments, but those that are others' memory where these can wait: their owners may need a lock (Python's) that
 * somebody holds who waits for the run. */
static void execute_leave(execute_run *x, bool all) {
  for (uint32_t i = 0; i < x->n_arguments; i++)
    if (x->arguments[i] && (all || !x->arguments[i]->readonly)) execute_leave_block(x, &x->arguments[i]);
}

/* Nanoseconds; more than 0. */
static int64_t execute_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 1;
}

/* The arguments are let go before the run is over, so that whoever comes next finds them free. */
static int execute_now(void *ctx, xlac_error *err) {
  execute_run *x = ctx;
  xlac_interpret_options options = execute_defaults;
  xlac_registry *registry = NULL;
  int64_t traced = pjrt_trace_now(), start = execute_clock();
  int status = x->e->calls ? pjrt_registry_make(&registry, &x->callbacks, err) : 0;
  const char *blas = x->devices[0]->client->options.blas;
  options.registry = registry;
  options.blas_path = blas[0] ? blas : NULL;
  if (status == 0) status = execute_lay(x, err);
  pjrt_traced steps = {x->devices[0], traced ? pjrt_trace_now() : 0};
  if (steps.start) {
    options.step = pjrt_trace_step;
    options.step_ctx = &steps;
  }
  if (status == 0) status = x->e->values ? execute_values(x, &options, err) : execute_compiled(x, &options, err);
  if (status == 0) status = execute_lay_results(x, err);
  execute_free_laid(x);
  pjrt_trace_run(x->e, x->devices, x->n_devices, traced);
  atomic_store_explicit(&x->e->took, execute_clock() - start, memory_order_relaxed);
  if (registry) xlac_registry_destroy(registry);
  execute_leave(x, false);
  return status;
}

static void execute_drop(void *ctx, const xlac_error *why) {
  execute_run *x = ctx;
  execute_leave(x, false);
  for (uint32_t i = 0; i < x->n_results; i++) execute_leave_block(x, &x->results[i]);
  assert(x->done || !why);
  if (x->done) rt_event_set(x->done, why);
  rt_event_release(x->done);
  execute_leave(x, true);
  pjrt_callbacks_free(&x->callbacks);
  execute_free_laid(x);
  pjrt_executable_release(x->e);
  pjrt_free(x);
}

static execute_run *execute_new(PJRT_Executable *e, uint32_t n_devices, PJRT_Device *const *devices) {
  size_t n = (size_t)n_devices * e->n_parameters, m = (size_t)n_devices * e->n_results;
  size_t size = sizeof(execute_run) + n * (sizeof(xlac_argument) + sizeof(void *) + sizeof(bool)) +
                (m * 2 + n_devices) * sizeof(void *);
  execute_run *x = pjrt_alloc(size);
  if (!x) return NULL;
  assert(n_devices > 0 && n <= UINT32_MAX && m <= UINT32_MAX);
  x->e = pjrt_executable_retain(e);
  x->queue = e->group ? &devices[0]->client->groups : &devices[0]->work;
  x->n_devices = n_devices;
  x->n_arguments = (uint32_t)n;
  x->n_results = (uint32_t)m;
  x->at = (xlac_argument *)(x + 1);
  x->arguments = (pjrt_block **)(void *)(x->at + n);
  x->results = x->arguments + n;
  x->out = (void **)(x->results + m);
  x->devices = (PJRT_Device **)(x->out + m);
  x->given = (bool *)(x->devices + n_devices);
  memcpy(x->devices, devices, n_devices * sizeof *devices);
  return x;
}

/* --- arguments --- */

static bool execute_keeps(const PJRT_ExecuteOptions *o, uint32_t i) {
  for (size_t k = 0; o && k < o->num_non_donatable_input_indices; k++)
    if (o->non_donatable_input_indices[k] == (int64_t)i) return true;
  return false;
}

/* Tokens are passed as whatever array the client likes. */
static PJRT_Error *execute_check_argument(const execute_run *x, uint32_t i, const PJRT_Buffer *b) {
  const pjrt_shape *s = &execute_parameter(x, i)->shape;
  const PJRT_Device *d = execute_argument_device(x, i);
  char want[96], have[96];
  i %= x->e->n_parameters;
  if (!b) return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is NULL", i, x->e->name);
  if (b->memory->device != d)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is on %s; the program runs on %s", i, x->e->name,
                     b->memory->device->description.text, d->description.text);
  bool same = s->dtype == BASE_DTYPE_INVALID || (s->dtype == b->dtype && s->rank == b->rank);
  for (uint32_t d = 0; same && d < s->rank; d++) same = s->dims[d] == b->dims[d];
  if (same) return NULL;
  pjrt_describe_shape(s, want);
  const pjrt_shape given = pjrt_buffer_shape(b);
  pjrt_describe_shape(&given, have);
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is %s; the program takes %s", i, x->e->name, have, want);
}

/* A buffer that is donated is an argument once, on its device. */
static PJRT_Error *execute_check_donation(const execute_run *x, PJRT_Buffer *const *buffers, uint32_t i) {
  uint32_t first = i - i % x->e->n_parameters;
  for (uint32_t k = first; k < first + x->e->n_parameters; k++) {
    if (k == i || buffers[k] != buffers[i]) continue;
    if (x->given[k])
      return pjrt_fail(
          PJRT_INVALID_ARGUMENT,
          "Attempt to donate the same buffer twice in Execute() (flattened argument %u of %s and argument %u). "
          "Toy example for this bug: `f(donate(a), donate(a))`.",
          i - first, x->e->name, k - first);
    if (k > i)
      return pjrt_fail(PJRT_INVALID_ARGUMENT,
                       "Attempt to use a buffer that was previously donated in the same call to Execute() (flattened "
                       "argument %u of %s, "
                       "first use: %u). Toy example for this bug: `f(donate(a), a)`.",
                       k - first, x->e->name, i - first);
    return pjrt_fail(
        PJRT_INVALID_ARGUMENT,
        "Attempt to donate a buffer which is also used by the same call to Execute() (flattened argument %u "
        "of %s and argument %u). Toy example for this bug: `f(a, donate(a))`.",
        i - first, x->e->name, k - first);
  }
  return NULL;
}

/* Which argument of which program an error is about. */
static PJRT_Error *execute_name_argument(const execute_run *x, uint32_t i, PJRT_Error *why) {
  PJRT_Error_GetCode_Args code = {.struct_size = sizeof code, .error = why};
  PJRT_Error_Message_Args text = {.struct_size = sizeof text, .error = why};
  PJRT_Error_Destroy_Args gone = {.struct_size = sizeof gone, .error = why};
  (void)pjrt_error_get_code(&code);
  pjrt_error_message(&text);
  PJRT_Error *error = pjrt_fail(code.code, "Invalid buffer passed to Execute() as argument %u of %s: %.*s",
                                i % x->e->n_parameters, x->e->name, (int)text.message_size, text.message);
  pjrt_error_destroy(&gone);
  return error;
}

/* Uses all arguments; nothing is taken from anybody yet. */
static PJRT_Error *execute_use_arguments(execute_run *x, const PJRT_ExecuteOptions *o, PJRT_Buffer *const *buffers) {
  for (uint32_t i = 0; i < x->n_arguments; i++) {
    PJRT_TRY(execute_check_argument(x, i, buffers[i]));
    PJRT_Error *deleted = pjrt_buffer_use(buffers[i], &x->arguments[i]);
    if (deleted) return execute_name_argument(x, i, deleted);
    const pjrt_shape s = pjrt_buffer_shape(buffers[i]);
    if (s.minor_to_major && execute_parameter(x, i)->shape.dtype) PJRT_TRY(execute_add_laid(x, false, i, &s));
    x->given[i] = execute_parameter(x, i)->donated && !execute_keeps(o, i % x->e->n_parameters);
  }
  for (uint32_t i = 0; x->e->gives && i < x->n_arguments; i++)
    if (x->given[i]) PJRT_TRY(execute_check_donation(x, buffers, i));
  return NULL;
}

/* From here on the call goes on. Who loses a race for a buffer that somebody else donates keeps his use: the array
 * was there when he asked. */
static void execute_take_donated(execute_run *x, PJRT_Buffer *const *buffers) {
  for (uint32_t i = 0; x->e->gives && i < x->n_arguments; i++)
    if (x->given[i] && pjrt_buffer_take(buffers[i])) pjrt_block_leave(x->arguments[i]);
}

/* --- results --- */

static PJRT_Error *execute_make_blocks(execute_run *x) {
  for (uint32_t i = 0; i < x->n_results; i++) {
    if (!(x->results[i] = pjrt_block_create())) return pjrt_out_of_memory("the results of a call");
    x->results[i]->queue = x->queue;
    const pjrt_shape *s = &execute_result(x, i)->shape;
    if (s->minor_to_major) PJRT_TRY(execute_add_laid(x, true, i, s));
  }
  return NULL;
}

/* Where a result goes: a list a device. */
static PJRT_Buffer **execute_output(const PJRT_Executable *e, PJRT_Buffer **const *outputs, uint32_t i) {
  return &outputs[i / e->n_results][i % e->n_results];
}

static void execute_destroy_outputs(const PJRT_Executable *e, PJRT_Buffer **const *outputs, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    PJRT_Buffer **at = execute_output(e, outputs, i);
    PJRT_Buffer_Destroy_Args args = {.struct_size = sizeof args, .buffer = *at};
    PJRT_Error *none = pjrt_buffer_destroy(&args);
    assert(!none);
    (void)none;
    *at = NULL;
  }
}

/* Buffers that use the run's blocks, as the run does. */
static PJRT_Error *execute_make_outputs(const execute_run *x, rt_event *done, PJRT_Buffer **const *outputs) {
  for (uint32_t i = 0; i < x->n_results; i++) {
    const pjrt_result *r = execute_result(x, i);
    PJRT_Memory *m = &execute_result_device(x, i)->memories[r->memory_kind];
    PJRT_Buffer **at = execute_output(x->e, outputs, i);
    bool used = pjrt_block_use(x->results[i]);
    assert(used && "the run uses it");
    (void)used;
    *at = pjrt_buffer_make(m, &r->shape, r->bytes, x->results[i], done);
    if (*at) continue;
    pjrt_block_leave(x->results[i]);
    execute_destroy_outputs(x->e, outputs, i);
    return pjrt_out_of_memory("the results of a call");
  }
  return NULL;
}

/* --- here, or on the queue --- */

/* What calls the client's functions, or waits for other processes, may keep a thread that holds Python's lock waiting.
 */
static int64_t execute_expected(const PJRT_Executable *e) {
  int64_t took = atomic_load_explicit(&e->took, memory_order_relaxed);
  return took == 0 || e->calls || e->shared ? PJRT_UNKNOWN : took;
}

/* Whether a queue would take about as long. That of a program whose loops may go on for longer, next time, nobody knows
 * before it runs. */
static bool execute_is_short(const PJRT_Executable *e) {
  return e->inline_ || (e->info.work != UINT64_MAX && execute_expected(e) <= EXECUTE_SHORT);
}

static size_t execute_pending(PJRT_Buffer *const *buffers, uint32_t n, rt_event **waits) {
  size_t found = 0;
  for (uint32_t i = 0; i < n; i++)
    if (buffers[i]->ready && rt_event_poll(buffers[i]->ready, NULL) != RT_EVENT_READY) {
      if (waits) waits[found] = buffers[i]->ready;
      found++;
    }
  return found;
}

static int execute_wait(PJRT_Buffer *const *buffers, uint32_t n, xlac_error *err) {
  for (uint32_t i = 0; i < n; i++)
    if (buffers[i]->ready) {
      pjrt_help(buffers[i]->block->queue, buffers[i]->ready);
      TRY(rt_event_wait(buffers[i]->ready, NULL, NULL, err));
    }
  return 0;
}

/* What fails where the client's functions are called fails in events, as it would have on a queue. */
static int execute_failed_event(const xlac_error *why, rt_event **done, xlac_error *err) {
  TRY(rt_event_create(done, base_alloc_libc, err));
  rt_event_set(*done, why);
  return 0;
}

/* The run is over when this returns, and dropped. */
static PJRT_Error *execute_here(execute_run *x, PJRT_Buffer *const *buffers, PJRT_Buffer **const *outputs,
                                rt_event **done) {
  xlac_error err;
  int status = execute_wait(buffers, x->n_arguments, &err);
  bool later = status != 0 || (x->e->calls && !x->callbacks.n);
  execute_take_donated(x, buffers);
  execute_place_arguments(x, false);
  int placed = execute_place_results(x, status ? NULL : &err);
  if (status == 0) status = placed ? placed : execute_now(x, &err);
  if (status && later) {
    const xlac_error why = err;
    status = execute_failed_event(&why, done, &err);
  }
  const char *told = atomic_load(&x->callbacks.told);
  PJRT_Error *error = status == 0 ? execute_make_outputs(x, *done, outputs)
                      : told      ? pjrt_fail_with(PJRT_INTERNAL, told)
                                  : pjrt_error_of(&err);
  execute_drop(x, NULL);
  return error;
}

/* Under the queue's lock: what is before the run in the queue stays before it. */
static int execute_push(execute_run *x, pjrt_piece *piece, size_t n, rt_event *const *waits, xlac_error *err) {
  execute_place_arguments(x, true);
  TRY(execute_place_results(x, err));
  execute_count_queued(x);
  return pjrt_piece_push(piece, x->queue, n, waits, err);
}

/* The run is enqueued, or dropped: where there is no memory for its results, the call says so, as XLA's does. */
static PJRT_Error *execute_enqueue(execute_run *x, pjrt_piece *piece, PJRT_Buffer *const *buffers, rt_event **waits,
                                   PJRT_Buffer **const *outputs) {
  xlac_error err;
  pjrt_queue *q = x->queue;
  size_t n = execute_pending(buffers, x->n_arguments, waits);
  execute_take_donated(x, buffers);
  pthread_mutex_lock(&q->lock);
  int status = execute_push(x, piece, n, waits, &err);
  pthread_mutex_unlock(&q->lock);
  pjrt_piece_watch(piece);
  if (status == 0) return NULL;
  execute_destroy_outputs(x->e, outputs, x->n_results);
  execute_drop(x, &err);
  return pjrt_error_of(&err);
}

/* The run's own event is there before the run is: once it is enqueued, it may be over, and gone, at any time. */
static PJRT_Error *execute_there(execute_run *x, PJRT_Buffer *const *buffers, PJRT_Buffer **const *outputs,
                                 rt_event **done) {
  xlac_error err;
  const pjrt_job job = {execute_now, execute_drop, x, execute_expected(x->e)};
  rt_event **waits = pjrt_alloc(((size_t)x->n_arguments + 1) * sizeof(rt_event *));
  pjrt_piece *piece = pjrt_piece_make(&job);
  int status = waits && piece ? rt_event_create(done, base_alloc_libc, &err) : base_oom(&err, "a call");
  PJRT_Error *error = status ? pjrt_error_of(&err) : execute_make_outputs(x, *done, outputs);
  if (error) {
    pjrt_free(piece);
    execute_drop(x, NULL);
  } else {
    x->done = rt_event_retain(*done);
    error = execute_enqueue(x, piece, buffers, waits, outputs);
  }
  pjrt_free(waits);
  return error;
}

/* What calls Python does so on its caller's thread, as with XLA's CPU: the function may wait for threads of its own
 * that run programs, which must not stand behind it in a queue; and where it raises, so does the call, before JAX has
 * taken the tokens that would carry the error into all later programs with ordered effects. What is shared with other
 * processes keeps its place in the queue: they run such programs in the same order. */
static bool execute_belongs_here(const execute_run *x, PJRT_Buffer *const *buffers) {
  const PJRT_Client *c = x->devices[0]->client;
  if (c->options.synchronous || atomic_load_explicit(&c->leaving, memory_order_relaxed) || pjrt_on_queue()) return true;
  bool calls = x->callbacks.n > 0 && !x->e->shared;
  return calls || (execute_is_short(x->e) && execute_pending(buffers, x->n_arguments, NULL) == 0);
}

static PJRT_Error *execute_start(execute_run *x, const PJRT_ExecuteOptions *o, PJRT_Buffer *const *buffers,
                                 PJRT_Buffer **const *outputs, rt_event **done) {
  PJRT_Client *c = x->devices[0]->client;
  PJRT_Error *error = execute_use_arguments(x, o, buffers);
  if (!error) error = execute_make_blocks(x);
  if (!error && x->e->calls) error = pjrt_callbacks_read(&x->callbacks, c, x->n_devices, o ? o->context : NULL);
  if (error) {
    execute_drop(x, NULL);
    return error;
  }
  return execute_belongs_here(x, buffers) ? execute_here(x, buffers, outputs, done)
                                          : execute_there(x, buffers, outputs, done);
}

static PJRT_Error *execute_check(const PJRT_LoadedExecutable_Execute_Args *args) {
  const PJRT_LoadedExecutable *l = args->executable;
  const PJRT_Executable *e = l->executable;
  if (atomic_load(&l->deleted)) return pjrt_fail(PJRT_INVALID_ARGUMENT, "the executable %s was deleted", e->name);
  if (args->num_devices != l->n_devices)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is for %u devices; arguments for %zu are given", e->name, l->n_devices,
                     args->num_devices);
  if (args->num_args != e->n_parameters)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s takes %u arguments; %zu are given", e->name, e->n_parameters,
                     args->num_args);
  if (args->execute_device && args->execute_device->client != l->client)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is to run on a device of another client", e->name);
  if (args->execute_device && e->group)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is for %u devices; one is named that is to run it", e->name,
                     l->n_devices);
  return NULL;
}

/* One for each device; none where there is no memory for all. */
static PJRT_Error *execute_make_events(PJRT_Event **events, uint32_t n, rt_event *done) {
  for (uint32_t i = 0; i < n; i++) {
    if ((events[i] = pjrt_event_make(done))) continue;
    while (i-- > 0) {
      PJRT_Event_Destroy_Args args = {.struct_size = sizeof args, .event = events[i]};
      (void)pjrt_event_destroy(&args);
      events[i] = NULL;
    }
    return pjrt_out_of_memory("an event");
  }
  return NULL;
}

/* The arguments of all devices in one list. */
static PJRT_Error *execute_group(execute_run *x, const PJRT_LoadedExecutable_Execute_Args *args, rt_event **done) {
  size_t n = x->e->n_parameters;
  PJRT_Buffer **buffers = pjrt_alloc(((size_t)x->n_arguments + 1) * sizeof(PJRT_Buffer *));
  if (!buffers) {
    execute_drop(x, NULL);
    return pjrt_out_of_memory("a call");
  }
  for (uint32_t i = 0; n && i < x->n_devices; i++)
    memcpy(buffers + i * n, args->argument_lists[i], n * sizeof *buffers);
  PJRT_Error *error = execute_start(x, args->options, buffers, args->output_lists, done);
  pjrt_free(buffers);
  return error;
}

static PJRT_Error *execute_one(execute_run *x, const PJRT_LoadedExecutable_Execute_Args *args, rt_event **done) {
  PJRT_Buffer *const *buffers = args->num_args ? args->argument_lists[0] : NULL;
  return execute_start(x, args->options, buffers, args->output_lists, done);
}

PJRT_Error *pjrt_loaded_executable_execute(PJRT_LoadedExecutable_Execute_Args *args) {
  const PJRT_LoadedExecutable *l = args->executable;
  rt_event *done = NULL;
  PJRT_TRY(execute_check(args));
  PJRT_Device *const *devices = args->execute_device ? &args->execute_device : l->devices;
  execute_run *x = execute_new(l->executable, l->n_devices, devices);
  if (!x) return pjrt_out_of_memory("a call");
  PJRT_Error *error = l->executable->group ? execute_group(x, args, &done) : execute_one(x, args, &done);
  if (!error && args->device_complete_events) {
    error = execute_make_events(args->device_complete_events, l->n_devices, done);
    if (error) execute_destroy_outputs(l->executable, args->output_lists, l->n_devices * l->executable->n_results);
  }
  rt_event_release(done);
  return error;
}
