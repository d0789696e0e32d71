/* One call: arguments that lie on the host are copied to the GPU, the program runs on a stream, results come back. */
#include <time.h>

#include "../interp/device.h"
#include "collective.h"
#include "run.h"

/* A leaf of the arguments or results. */
typedef struct cu_call_leaf {
  void *host;      /* where the caller has it, if it is copied: on the host, or badly aligned; else NULL */
  bool on_gpu;     /* the caller has it in GPU memory */
  cuda_address at; /* in GPU memory */
  bool own;        /* that memory is the call's */
  size_t bytes;
} cu_call_leaf;

typedef struct cu_call_state {
  cuda_run run;
  cu_call_leaf *leaves; /* arguments, then results */
  cuda_address *addresses;
  cuda_lane lane;
  bool waited;           /* for all that was enqueued, and it went well */
  const rt_trace *trace; /* or NULL */
  double began;
} cu_call_state;

static double cu_call_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int cu_call_check(cuda_run *run, cuda_result result, const char *doing) {
  return cuda_check(&run->device->driver, result, doing, run->ctx.err);
}

/* Within GPU memory. */
static int cu_call_move(cuda_run *run, cuda_address to, cuda_address from, size_t bytes) {
  return cu_call_check(run, run->device->driver.cuMemcpyDtoDAsync_v2(to, from, bytes, run->stream), "copying an array");
}

/* Elements of the host's with bits that their type has not are made good there. */
static int cu_call_send(cuda_run *run, const ir_type *t, const cu_call_leaf *leaf) {
  if (leaf->on_gpu) return cu_call_move(run, leaf->at, (cuda_address)(uintptr_t)leaf->host, leaf->bytes);
  if (base_dtype_of((base_dtype)t->dtype)->bits >= 8)
    return cu_call_check(run, run->device->driver.cuMemcpyHtoDAsync_v2(leaf->at, leaf->host, leaf->bytes, run->stream),
                         "copying an argument");
  interp_value *v = interp_lend(run->exe->alloc, t->dtype, t->rank, t->dims, leaf->host, NULL, NULL);
  interp_value *clean = v ? interp_clean(&run->ctx, v) : NULL;
  int status =
      clean ? cu_call_check(run,
                            run->device->driver.cuMemcpyHtoDAsync_v2(leaf->at, clean->data, leaf->bytes, run->stream),
                            "copying an argument")
            : base_oom(run->ctx.err, "an argument");
  if (clean) {
    int waited = cuda_run_settle(run, status ? NULL : run->ctx.err);
    status = status ? status : waited;
  }
  interp_release(clean);
  interp_release(v);
  return status;
}

/* As kernels take it that arrays lie (print/pack.c). */
static bool cu_call_is_aligned(const void *at) {
  return (uintptr_t)at % 16 == 0;
}

/* GPU memory of the caller's is used where it is. */
static int cu_call_place(cuda_run *run, const ir_type *t, void *at, cu_call_leaf *leaf) {
  if (!ir_is_tensor(t)) return 0;
  leaf->bytes = (size_t)ir_type_bytes(t);
  leaf->on_gpu = cuda_is_device_memory(run->device, at);
  if (leaf->on_gpu && cu_call_is_aligned(at)) {
    leaf->at = (cuda_address)(uintptr_t)at;
    return 0;
  }
  leaf->host = at;
  TRY(cuda_take(run->device, leaf->bytes, run->stream, &leaf->at, run->ctx.err));
  leaf->own = true;
  return 0;
}

static int cu_call_arguments(cu_call_state *x, void *const *arguments) {
  const rt_executable *exe = &x->run.exe->base;
  for (uint32_t i = 0; i < exe->n_arguments; i++) {
    TRY(cu_call_place(&x->run, exe->argument_types[i], arguments[i], &x->leaves[i]));
    if (x->leaves[i].host && x->leaves[i].bytes) TRY(cu_call_send(&x->run, exe->argument_types[i], &x->leaves[i]));
  }
  return 0;
}

/* A result in the memory of an argument that is donated shares its copy, too. */
static int cu_call_results(cu_call_state *x, void *const *arguments, void *const *results) {
  const rt_executable *exe = &x->run.exe->base;
  for (uint32_t i = 0; i < exe->n_results; i++) {
    cu_call_leaf *leaf = &x->leaves[exe->n_arguments + i];
    uint32_t over = exe->plan->over ? exe->plan->over[i] : UINT32_MAX;
    if (over != UINT32_MAX && results[i] == arguments[over] && x->leaves[over].own) {
      *leaf = x->leaves[over];
      leaf->own = false;
      x->run.tally.reused++;
      x->run.tally.reused_bytes += (int64_t)leaf->bytes;
    } else {
      TRY(cu_call_place(&x->run, exe->result_types[i], results[i], leaf));
    }
  }
  return 0;
}

static int cu_call_give_results(cu_call_state *x) {
  const rt_executable *exe = &x->run.exe->base;
  for (uint32_t i = 0; i < exe->n_results; i++) {
    const cu_call_leaf *leaf = &x->leaves[exe->n_arguments + i];
    x->waited = x->waited && !(leaf->host && leaf->bytes);
    if (leaf->host && leaf->bytes && leaf->on_gpu)
      TRY(cu_call_move(&x->run, (cuda_address)(uintptr_t)leaf->host, leaf->at, leaf->bytes));
    else if (leaf->host && leaf->bytes)
      TRY(cu_call_check(&x->run,
                        x->run.device->driver.cuMemcpyDtoHAsync_v2(leaf->host, leaf->at, leaf->bytes, x->run.stream),
                        "copying a result"));
  }
  return 0;
}

/* The frame, and behind it what launches need for themselves. A GPU without room for it says what the plan takes. */
static int cu_call_take_frame(cu_call_state *x) {
  const plan_program *p = x->run.exe->base.plan;
  size_t bytes = ((size_t)p->frame_bytes + CUDA_SCRATCH_ALIGN - 1) & ~(size_t)(CUDA_SCRATCH_ALIGN - 1);
  int status = cuda_lane_reserve(x->run.device, &x->lane, bytes + x->run.exe->scratch_bytes, x->run.ctx.err);
  x->run.scratch = x->lane.block + bytes;
  if (status == 0 && x->run.exe->conditions) {
    TRY(cuda_lane_reserve_stop(x->run.device, &x->lane, x->run.ctx.err));
    x->run.stop = x->lane.stop;
    *x->run.stop = 0;
  }
  return status == -XLAC_E_OUT_OF_MEMORY ? plan_out_of_memory(p, x->run.ctx.err) : status;
}

static int cu_call_enqueue(cu_call_state *x, void *const *arguments, void *const *results) {
  const rt_executable *exe = &x->run.exe->base;
  uint32_t n = exe->n_arguments + exe->n_results;
  x->leaves = base_arena_zalloc(&x->run.arena, (n + (size_t)1) * sizeof *x->leaves);
  x->addresses = BASE_ARRAY(&x->run.arena, cuda_address, n + (size_t)1);
  if (!x->leaves || !x->addresses) return base_oom(x->run.ctx.err, "a call");
  TRY(cu_call_arguments(x, arguments));
  TRY(cu_call_results(x, arguments, results));
  TRY(cu_call_take_frame(x));
  for (uint32_t i = 0; i < n; i++) x->addresses[i] = x->leaves[i].at;
  if (x->trace && x->trace->kind != RT_TRACE_COUNTS) TRY(cuda_profile_begin(&x->run, exe->plan));
  TRY(cuda_run_program(&x->run, exe->plan, x->addresses, x->addresses + exe->n_arguments, x->lane.block));
  TRY(cuda_run_wait(&x->run)); /* what failed leaves results on the host as they were */
  x->waited = true;
  return cu_call_give_results(x);
}

/* Whatever happened, nothing is in flight when the caller goes on. */
static int cu_call_run(cu_call_state *x, void *const *arguments, void *const *results) {
  const rt_executable *exe = &x->run.exe->base;
  int status = cu_call_enqueue(x, arguments, results);
  for (uint32_t i = 0; x->leaves && i < exe->n_arguments + exe->n_results; i++)
    if (x->leaves[i].own) cuda_give(x->run.device, x->leaves[i].at, x->run.stream);
  int waited = x->waited ? 0 : cuda_run_settle(&x->run, status ? NULL : x->run.ctx.err);
  status = status ? status : waited;
  if (status && x->run.n_collectives) cuda_collectives_abort(&x->run);
  if (status == 0 && x->trace) cuda_profile_put(&x->run, x->trace, cu_call_now() - x->began);
  cuda_profile_end(&x->run);
  return status;
}

static int cu_call_entered(const cuda_executable *exe, const rt_call_options *options, cu_call_state *x,
                           void *const *arguments, void *const *results, xlac_error *err) {
  interp_options own;
  interp_read_call_options(&own, options);
  own.alloc = exe->alloc;
  own.natives = exe->device->library->find;
  own.natives_ctx = exe->opened;
  TRY(interp_begin(&x->run.ctx, exe->base.module, &own, err));
  int status = cuda_lane_take(exe->device, &x->lane, err);
  if (status == 0) {
    x->run.stream = x->lane.stream;
    status = cu_call_run(x, arguments, results);
    cuda_lane_give(exe->device, &x->lane);
  }
  interp_end(&x->run.ctx);
  return status;
}

int cuda_call(const rt_executable *base, const rt_call_options *options, void *const *arguments, void *const *results,
              const rt_trace *trace, xlac_error *err) {
  const cuda_executable *exe = (const cuda_executable *)base;
  cu_call_state x = {.run = {.exe = exe, .device = exe->device}, .trace = trace, .began = cu_call_now()};
  TRY(cuda_enter(exe->device, err));
  base_arena_init(&x.run.arena, exe->alloc);
  int status = cu_call_entered(exe, options, &x, arguments, results, err);
  base_arena_free(&x.run.arena);
  cuda_leave(exe->device);
  if (status == 0 && exe->count && (x.run.tally.copies | x.run.tally.reused)) exe->count(exe->count_ctx, &x.run.tally);
  return status;
}

/* --- on values --- */

/* On failure *out is left as it was. */
int cuda_call_values(const rt_executable *base, const rt_call_options *options, uint32_t n, interp_value *const *args,
                     interp_value **out, const rt_trace *trace, xlac_error *err) {
  const cuda_executable *exe = (const cuda_executable *)base;
  const ir_computation *entry = base->module->entry;
  interp_ctx maker = {.err = err};
  maker.options.alloc = exe->alloc;
  TRY(interp_check_args(entry, n, args, err));
  interp_value *result = interp_zeros(&maker, ir_root(entry)->type);
  if (!result) return plan_out_of_memory(base->plan, err);
  int status = interp_call_arrays(exe->alloc, cuda_call, base, options, n, args, result, trace, err);
  if (status)
    interp_release(result);
  else
    *out = result;
  return status;
}
