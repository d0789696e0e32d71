/* Runs: arguments are checked and taken, the program is run here or on the device's queue, results come back at once.
 *
 * All memory has its place when a call returns, since clients ask for addresses of what is not ready yet. A run holds
 * its arguments' blocks as a user. What is donated was the buffer's own use, which the run takes over. Where nobody
 * else uses the block but runs that are before this one in the queue, results are written over it; where somebody does
 * (a run on another thread, an array of NumPy's), the program is told that it is only lent, and copies. */
#include "pjrt.h"

/* All in one allocation, of the thread that runs it. */
typedef struct execute_run {
  PJRT_Executable *e; /* a reference */
  PJRT_Device *device;
  rt_event *done; /* NULL: whoever called waits */
  pjrt_callbacks callbacks;
  pjrt_block **arguments, **results; /* uses */
  bool *given;                       /* arguments that were donated */
  bool gives;                        /* some of them may be written to */
  bool queued;                       /* it is on the queue, and counted in its blocks */
  xlac_argument *at;
  void **out;
} execute_run;

/* --- memory: before the run --- */

/* Whether nobody but this run, and those before it in its queue, uses a block. */
static bool execute_is_ours(pjrt_block *b, bool queued) {
  unsigned before = atomic_load(&b->queued); /* read first: whoever leaves counts himself out of this first */
  unsigned users = atomic_load(&b->users);
  assert(users > 0 && "this run is one");
  return !b->readonly && users - before == 1 && (queued || before == 0);
}

/* Where each argument lies, and whether it may be written to. */
static void execute_place_arguments(execute_run *x, bool queued) {
  for (uint32_t i = 0; i < x->e->n_parameters; i++) {
    pjrt_block *b = x->arguments[i];
    assert(b && "all arguments are in use");
    bool ours = x->given[i] && execute_is_ours(b, queued);
    x->at[i] = (xlac_argument){x->e->parameters[i].shape.dtype ? b->data : NULL, NULL, ours};
    x->gives = x->gives || ours;
  }
}

/* Says which result there is no memory for. */
static int execute_no_memory(const execute_run *x, uint32_t i, xlac_error *err) {
  char shape[96];
  const pjrt_result *r = &x->e->results[i];
  pjrt_describe_shape(&r->shape, shape);
  int status = base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: result %u of %.60s, %s, takes %zu bytes", i,
                         x->e->name, shape, r->bytes);
  return base_hint(err, status, "arrays on %s take %lld bytes now; what is donated or deleted makes room",
                   x->device->description.text, (long long)atomic_load(&x->device->bytes));
}

/* A result lies in the memory of what was given for it, or in new memory. */
static int execute_place_results(execute_run *x, xlac_error *err) {
  for (uint32_t i = 0; i < x->e->n_results; i++) {
    const pjrt_result *r = &x->e->results[i];
    assert(x->results[i] && !x->results[i]->data);
    assert(r->donor == UINT32_MAX || r->donor < x->e->n_parameters);
    if (r->donor != UINT32_MAX && x->at[r->donor].given)
      pjrt_block_move(x->results[i], x->arguments[r->donor]);
    else if (pjrt_block_allocate(x->results[i], x->device, r->bytes, NULL))
      return execute_no_memory(x, i, err);
    x->out[i] = r->shape.dtype ? x->results[i]->data : NULL;
  }
  return 0;
}

static void execute_count_queued(execute_run *x) {
  assert(!x->queued);
  x->queued = true;
  for (uint32_t i = 0; i < x->e->n_parameters; i++) atomic_fetch_add(&x->arguments[i]->queued, 1);
  for (uint32_t i = 0; i < x->e->n_results; i++) atomic_fetch_add(&x->results[i]->queued, 1);
}

/* --- on the run's thread --- */

static const xlac_interpret_options execute_defaults = {XLAC_OPTIONS(xlac_interpret_options)};

static int execute_compiled(execute_run *x, const xlac_interpret_options *options, xlac_error *err) {
  const xlac_executable *exe = x->e->exe;
  if (x->gives) return xlac_executable_call_at(exe, options, x->at, x->out, err);
  void **pointers = (void **)x->at; /* in place: shorter ones over longer ones, from the first on */
  for (uint32_t i = 0; i < x->e->n_parameters; i++) pointers[i] = x->at[i].data;
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
  assert(!*b || !x->queued || atomic_load(&(*b)->queued) > 0);
  if (*b && x->queued) atomic_fetch_sub(&(*b)->queued, 1);
  pjrt_block_leave(*b);
  *b = NULL;
}

/* The arguments, but those that are others' memory where these can wait: their owners may need a lock (Python's) that
 * somebody holds who waits for the run. */
static void execute_leave(execute_run *x, bool all) {
  for (uint32_t i = 0; i < x->e->n_parameters; i++)
    if (x->arguments[i] && (all || !x->arguments[i]->readonly)) execute_leave_block(x, &x->arguments[i]);
}

/* The arguments are let go before the run is over, so that whoever comes next finds them free. */
static int execute_now(void *ctx, xlac_error *err) {
  execute_run *x = ctx;
  xlac_interpret_options options = execute_defaults;
  xlac_registry *registry = NULL;
  int status = x->e->calls ? pjrt_registry_make(&registry, &x->callbacks, err) : 0;
  const char *blas = x->device->client->options.blas;
  options.registry = registry;
  options.blas_path = blas[0] ? blas : NULL;
  if (status == 0) status = x->e->values ? execute_values(x, &options, err) : execute_compiled(x, &options, err);
  if (registry) xlac_registry_destroy(registry);
  execute_leave(x, false);
  return status;
}

static void execute_drop(void *ctx, const xlac_error *why) {
  execute_run *x = ctx;
  execute_leave(x, false);
  for (uint32_t i = 0; i < x->e->n_results; i++) execute_leave_block(x, &x->results[i]);
  assert(x->done || !why);
  if (x->done) rt_event_set(x->done, why);
  rt_event_release(x->done);
  execute_leave(x, true);
  pjrt_callbacks_free(&x->callbacks);
  pjrt_executable_release(x->e);
  pjrt_free(x);
}

static execute_run *execute_new(PJRT_Executable *e, PJRT_Device *d) {
  size_t n = e->n_parameters, m = e->n_results;
  size_t size =
      sizeof(execute_run) + n * (sizeof(xlac_argument) + sizeof(void *) + sizeof(bool)) + m * 2 * sizeof(void *);
  execute_run *x = pjrt_alloc(size);
  if (!x) return NULL;
  x->e = pjrt_executable_retain(e);
  x->device = d;
  x->at = (xlac_argument *)(x + 1);
  x->arguments = (pjrt_block **)(void *)(x->at + n);
  x->results = x->arguments + n;
  x->out = (void **)(x->results + m);
  x->given = (bool *)(x->out + m);
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
  const pjrt_shape *s = &x->e->parameters[i].shape;
  char want[96], have[96];
  if (!b) return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is NULL", i, x->e->name);
  if (b->memory->device != x->device)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is on %s; the program runs on %s", i, x->e->name,
                     b->memory->device->description.text, x->device->description.text);
  bool same = s->dtype == BASE_DTYPE_INVALID || (s->dtype == b->dtype && s->rank == b->rank);
  for (uint32_t d = 0; same && d < s->rank; d++) same = s->dims[d] == b->dims[d];
  if (same) return NULL;
  pjrt_describe_shape(s, want);
  pjrt_describe_shape(&(pjrt_shape){b->dtype, b->rank, b->dims}, have);
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "argument %u of %s is %s; the program takes %s", i, x->e->name, have, want);
}

/* A buffer that is given away is an argument once. */
static PJRT_Error *execute_check_donation(const execute_run *x, PJRT_Buffer *const *buffers, uint32_t i) {
  for (uint32_t k = 0; k < x->e->n_parameters; k++) {
    if (k == i || buffers[k] != buffers[i]) continue;
    if (x->given[k])
      return pjrt_fail(
          PJRT_INVALID_ARGUMENT,
          "Attempt to donate the same buffer twice in Execute() (flattened argument %u of %s and argument %u). "
          "Toy example for this bug: `f(donate(a), donate(a))`.",
          i, x->e->name, k);
    return pjrt_fail(
        PJRT_INVALID_ARGUMENT,
        "Attempt to donate a buffer which is also used by the same call to Execute() (flattened argument %u "
        "of %s and argument %u). Toy example for this bug: `f(a, donate(a))`.",
        i, x->e->name, k);
  }
  return NULL;
}

/* Uses all arguments; nothing is taken from anybody yet. */
static PJRT_Error *execute_use_arguments(execute_run *x, const PJRT_ExecuteOptions *o, PJRT_Buffer *const *buffers) {
  for (uint32_t i = 0; i < x->e->n_parameters; i++) {
    PJRT_TRY(execute_check_argument(x, i, buffers[i]));
    PJRT_TRY(pjrt_buffer_use(buffers[i], &x->arguments[i]));
    x->given[i] = x->e->parameters[i].donated && !execute_keeps(o, i);
  }
  for (uint32_t i = 0; x->e->gives && i < x->e->n_parameters; i++)
    if (x->given[i]) PJRT_TRY(execute_check_donation(x, buffers, i));
  return NULL;
}

/* From here on the call goes on. Who loses a race for a buffer that somebody else gives away keeps his use: the array
 * was there when he asked. */
static void execute_take_donated(execute_run *x, PJRT_Buffer *const *buffers) {
  for (uint32_t i = 0; x->e->gives && i < x->e->n_parameters; i++)
    if (x->given[i] && pjrt_buffer_take(buffers[i])) pjrt_block_leave(x->arguments[i]);
}

/* --- results --- */

static PJRT_Error *execute_make_blocks(execute_run *x) {
  for (uint32_t i = 0; i < x->e->n_results; i++)
    if (!(x->results[i] = pjrt_block_create())) return pjrt_out_of_memory("the results of a call");
  return NULL;
}

static void execute_destroy_outputs(PJRT_Buffer **outputs, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    PJRT_Buffer_Destroy_Args args = {.struct_size = sizeof args, .buffer = outputs[i]};
    PJRT_Error *none = pjrt_buffer_destroy(&args);
    assert(!none);
    (void)none;
    outputs[i] = NULL;
  }
}

/* Buffers that use the run's blocks, as the run does. */
static PJRT_Error *execute_make_outputs(const execute_run *x, rt_event *done, PJRT_Buffer **outputs) {
  for (uint32_t i = 0; i < x->e->n_results; i++) {
    const pjrt_result *r = &x->e->results[i];
    bool used = pjrt_block_use(x->results[i]);
    assert(used && "the run uses it");
    (void)used;
    outputs[i] = pjrt_buffer_make(&x->device->memories[r->memory_kind], &r->shape, r->bytes, x->results[i], done);
    if (outputs[i]) continue;
    pjrt_block_leave(x->results[i]);
    execute_destroy_outputs(outputs, i);
    return pjrt_out_of_memory("the results of a call");
  }
  return NULL;
}

/* --- here, or on the queue --- */

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
    if (buffers[i]->ready) TRY(rt_event_wait(buffers[i]->ready, NULL, NULL, err));
  return 0;
}

/* What fails where the client's functions are called fails in events, as it would have on a queue. */
static int execute_failed_event(const xlac_error *why, rt_event **done, xlac_error *err) {
  TRY(rt_event_create(done, base_alloc_libc, err));
  rt_event_set(*done, why);
  return 0;
}

/* The run is over when this returns, and dropped. */
static PJRT_Error *execute_here(execute_run *x, PJRT_Buffer *const *buffers, PJRT_Buffer **outputs, rt_event **done) {
  xlac_error err;
  int status = execute_wait(buffers, x->e->n_parameters, &err);
  bool later = status != 0 || x->e->calls;
  execute_take_donated(x, buffers);
  execute_place_arguments(x, false);
  int placed = execute_place_results(x, status ? NULL : &err);
  if (status == 0) status = placed ? placed : execute_now(x, &err);
  if (status && later) {
    const xlac_error why = err;
    status = execute_failed_event(&why, done, &err);
  }
  PJRT_Error *error = status ? pjrt_error_of(&err) : execute_make_outputs(x, *done, outputs);
  execute_drop(x, NULL);
  return error;
}

/* Under the queue's lock: what is before the run in the queue stays before it. */
static int execute_push(execute_run *x, pjrt_piece *piece, size_t n, rt_event *const *waits, xlac_error *err) {
  execute_place_arguments(x, true);
  TRY(execute_place_results(x, err));
  execute_count_queued(x);
  return pjrt_piece_push(piece, &x->device->work, n, waits, err);
}

/* The run is enqueued, or its results' event tells why not. */
static void execute_enqueue(execute_run *x, pjrt_piece *piece, PJRT_Buffer *const *buffers, rt_event **waits) {
  xlac_error err;
  pjrt_queue *q = &x->device->work;
  size_t n = execute_pending(buffers, x->e->n_parameters, waits);
  execute_take_donated(x, buffers);
  pthread_mutex_lock(&q->lock);
  int status = execute_push(x, piece, n, waits, &err);
  pthread_mutex_unlock(&q->lock);
  pjrt_piece_watch(piece);
  if (status) execute_drop(x, &err);
}

/* The run's own event is there before the run is: once it is enqueued, it may be over, and gone, at any time. */
static PJRT_Error *execute_there(execute_run *x, PJRT_Buffer *const *buffers, PJRT_Buffer **outputs, rt_event **done) {
  xlac_error err;
  const pjrt_job job = {execute_now, execute_drop, x};
  rt_event **waits = pjrt_alloc((x->e->n_parameters + 1) * sizeof(rt_event *));
  pjrt_piece *piece = pjrt_piece_make(&job);
  int status = waits && piece ? rt_event_create(done, base_alloc_libc, &err) : base_oom(&err, "a call");
  PJRT_Error *error = status ? pjrt_error_of(&err) : execute_make_outputs(x, *done, outputs);
  if (error) {
    pjrt_free(piece);
    execute_drop(x, NULL);
  } else {
    x->done = rt_event_retain(*done);
    execute_enqueue(x, piece, buffers, waits);
  }
  pjrt_free(waits);
  return error;
}

static PJRT_Error *execute_start(execute_run *x, const PJRT_ExecuteOptions *o, PJRT_Buffer *const *buffers,
                                 PJRT_Buffer **outputs, rt_event **done) {
  PJRT_Client *c = x->device->client;
  PJRT_Error *error = execute_use_arguments(x, o, buffers);
  if (!error) error = execute_make_blocks(x);
  if (!error && x->e->calls) error = pjrt_callbacks_read(&x->callbacks, c, o ? o->context : NULL);
  if (error) {
    execute_drop(x, NULL);
    return error;
  }
  bool here = c->options.synchronous || atomic_load_explicit(&c->leaving, memory_order_relaxed) || pjrt_on_queue() ||
              (x->e->inline_ && execute_pending(buffers, x->e->n_parameters, NULL) == 0);
  return here ? execute_here(x, buffers, outputs, done) : execute_there(x, buffers, outputs, done);
}

static PJRT_Error *execute_check(const PJRT_LoadedExecutable_Execute_Args *args, PJRT_Device **device) {
  const PJRT_LoadedExecutable *l = args->executable;
  const PJRT_Executable *e = l->executable;
  if (atomic_load(&l->deleted)) return pjrt_fail(PJRT_INVALID_ARGUMENT, "the executable %s was deleted", e->name);
  if (args->num_devices != l->n_devices)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is for %u devices; arguments for %zu are given", e->name, l->n_devices,
                     args->num_devices);
  if (args->num_args != e->n_parameters)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s takes %u arguments; %zu are given", e->name, e->n_parameters,
                     args->num_args);
  *device = args->execute_device ? args->execute_device : l->devices[0];
  if ((*device)->client != l->client)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%s is to run on a device of another client", e->name);
  return NULL;
}

PJRT_Error *pjrt_loaded_executable_execute(PJRT_LoadedExecutable_Execute_Args *args) {
  PJRT_Device *device = NULL;
  rt_event *done = NULL;
  PJRT_TRY(execute_check(args, &device));
  PJRT_Buffer *const *buffers = args->num_args ? args->argument_lists[0] : NULL;
  execute_run *x = execute_new(args->executable->executable, device);
  if (!x) return pjrt_out_of_memory("a call");
  uint32_t n = x->e->n_results;
  PJRT_Error *error = execute_start(x, args->options, buffers, args->output_lists[0], &done);
  if (!error && args->device_complete_events) {
    args->device_complete_events[0] = pjrt_event_make(done);
    if (!args->device_complete_events[0]) {
      execute_destroy_outputs(args->output_lists[0], n);
      error = pjrt_out_of_memory("an event");
    }
  }
  rt_event_release(done);
  return error;
}
