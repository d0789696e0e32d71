/* Builds: each kernel of the plan is printed, those that differ are compiled, constants go to the GPU once. */
#include "print/routine.h"
#include "collective.h"
#include "graph.h"
#include "product.h"

#include <stdio.h>
#include <stdlib.h>

#include "../pipeline/pipeline.h"
#include "../plan/report.h"

static const plan_device cuda_plan_device = {.buffer_bytes = 0, .task_bytes = 0};

typedef struct cuda_build {
  rt_build base;
  plan_target target;
  rt_build_options options;
  cuda_executable *exe;
  cuda_source trial; /* what is printed only to see whether it can be */
} cuda_build;

/* --- kernels --- */

static void cu_executable_begin_source(const cuda_executable *exe, cuda_source *source) {
  cuda_source_begin(source, exe->alloc);
  source->major = exe->device->major;
  source->fast = exe->fast;
}

static int cu_executable_print_step(cuda_executable *exe, const plan_step *s, cuda_kernel *k, xlac_error *err) {
  base_arena scratch;
  cuda_source *source = &exe->source;
  if (s->kind == PLAN_KERNEL) k->printed = cuda_print_kernel(source, s->kernel, &k->launch);
  if (s->kind == PLAN_ROUTINE && !(k->product = cuda_product_make(exe, s->op))) {
    base_arena_init(&scratch, exe->alloc);
    k->printed = cuda_print_routine(source, s->op, &scratch, &k->launch);
    base_arena_free(&scratch);
    if (!k->printed) TRY(cuda_collective_make(exe, s->op, &k->collective, err));
  }
  cuda_source_settle(source, &k->launch);
  return source->body.failed ? base_oom(err, "the text of kernels") : 0;
}

/* What step i needs besides its buffers. */
static void cu_executable_make_scratch(cuda_executable *exe, const plan_program *p, uint32_t i) {
  const plan_step *s = &p->steps[i];
  cuda_code *code = &exe->codes[p->number];
  cuda_kernel *k = &code->kernels[i];
  size_t bytes = k->printed ? (size_t)k->launch.scratch : 0;
  if (k->product && cuda_product_scratch(k->product) > bytes) bytes = cuda_product_scratch(k->product);
  if (bytes || (s->kind == PLAN_WHILE && code->trips[i] == CUDA_TRIPS_UNKNOWN)) bytes += CUDA_CONDITION_BYTES;
  if (bytes > exe->scratch_bytes) exe->scratch_bytes = bytes;
}

static bool cu_executable_sums(const plan_program *p, const plan_tile *t) {
  bool sums = false;
  for (uint32_t i = t->first; i < t->first + t->n && !sums; i++) sums = p->steps[i].kernel->reduction != NULL;
  return sums;
}

/* How many steps from i on, which is in the tile, are one kernel of rows: all that are left, or as many as have a form
 * together where those behind them have rows of another length. 0: none. */
static uint32_t cu_executable_print_rows(cuda_executable *exe, const plan_program *p, const plan_tile *t, uint32_t i) {
  plan_tile own = *t;
  assert(i >= t->first && i < t->first + t->n);
  own.first = i;
  for (own.n -= i - t->first; own.n >= 2; own.n--)
    if ((own.n == t->n || cu_executable_sums(p, &own)) && cuda_rows_print(exe, p, &own, exe->codes[p->number].kernels))
      return own.n;
  return 0;
}

/* Prints what p's steps need, and lays out its constants behind `bytes`. */
static int cu_executable_make_program(cuda_executable *exe, const plan_program *p, uint64_t *bytes, xlac_error *err) {
  cuda_code *code = &exe->codes[p->number];
  const plan_tile *t = NULL; /* the last one that began */
  assert(!p->interpreted && !code->made);
  code->kernels = base_arena_zalloc(&exe->arena, (p->n_steps + (size_t)1) * sizeof *code->kernels);
  code->constants = base_arena_zalloc(&exe->arena, (p->n_buffers + (size_t)1) * sizeof *code->constants);
  code->trips = base_arena_zalloc(&exe->arena, (p->n_steps + (size_t)1) * sizeof *code->trips);
  if (!code->kernels || !code->constants || !code->trips) return base_oom(err, "an executable");
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_tile *begins = exe->checks ? NULL : plan_tile_at(p, i);
    if (begins) t = begins;
    const uint32_t rows = t && i < t->first + t->n ? cu_executable_print_rows(exe, p, t, i) : 0;
    if (rows) {
      i += rows - 1;
      continue;
    }
    TRY(cu_executable_print_step(exe, &p->steps[i], &code->kernels[i], err));
    code->trips[i] = p->steps[i].kind == PLAN_WHILE ? cuda_known_trips(p->steps[i].op) : 0;
    cu_executable_make_scratch(exe, p, i);
  }
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    if (p->buffers[i].place != PLAN_CONSTANT) continue;
    code->constants[i] = *bytes; /* the block's address is added when there is one */
    *bytes += ((uint64_t)p->buffers[i].bytes + PLAN_ALIGN - 1) & ~(uint64_t)(PLAN_ALIGN - 1);
  }
  code->made = true;
  return 0;
}

static int cu_executable_load(cuda_executable *exe, const plan_list *list, xlac_error *err) {
  TRY(cuda_units_make(&exe->units, exe->device, &exe->source, exe->alloc, err));
  for (uint32_t i = 0; i < list->n; i++) {
    const plan_program *p = list->items[i];
    for (uint32_t j = 0; j < p->n_steps; j++) {
      cuda_kernel *k = &exe->codes[p->number].kernels[j];
      if (k->printed) k->function = cuda_units_function(exe->units, k->launch.number);
    }
  }
  return 0;
}

/* --- constants --- */

static int cu_executable_send_constants(cuda_executable *exe, const plan_list *list, xlac_error *err) {
  cuda_device *d = exe->device;
  for (uint32_t i = 0; i < list->n; i++) {
    const plan_program *p = list->items[i];
    cuda_code *code = &exe->codes[p->number];
    for (uint32_t j = 0; j < p->n_buffers; j++) {
      const plan_buffer *b = &p->buffers[j];
      if (b->place != PLAN_CONSTANT) continue;
      code->constants[j] += exe->constants;
      if (b->literal && b->bytes)
        TRY(cuda_check(
            &d->driver,
            d->driver.cuMemcpyHtoDAsync_v2(code->constants[j], b->literal->data, (size_t)b->bytes, d->memory),
            "copying constants", err));
    }
  }
  return cuda_wait(d, d->memory, NULL, NULL, err);
}

static void cu_executable_drop_products(cuda_executable *exe) {
  plan_list list;
  bool ok = exe->codes && plan_list_programs(exe->alloc, exe->base.plan, &list);
  for (uint32_t i = 0; ok && i < list.n; i++) {
    const cuda_code *code = &exe->codes[list.items[i]->number];
    for (uint32_t j = 0; code->made && j < list.items[i]->n_steps; j++)
      cuda_product_destroy(exe, code->kernels[j].product);
  }
  if (ok) BASE_VEC_FREE(exe->alloc, &list);
}

static int cu_executable_make_entered(cuda_executable *exe, const plan_list *list, xlac_error *err) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < list->n; i++) TRY(cu_executable_make_program(exe, list->items[i], &bytes, err));
  TRY(cuda_graph_plan(exe, err));
  if (exe->source.kernels.n) TRY(cu_executable_load(exe, list, err));
  if (bytes) TRY(cuda_take(exe->device, bytes, exe->device->memory, &exe->constants, err));
  return cu_executable_send_constants(exe, list, err);
}

static int cu_executable_make_listed(cuda_executable *exe, const plan_list *list, xlac_error *err) {
  TRY(cuda_enter(exe->device, err));
  int status = cu_executable_make_entered(exe, list, err);
  cuda_leave(exe->device);
  return status;
}

static int cu_executable_make(cuda_executable *exe, const ir_module *m, const plan_program *plan, xlac_error *err) {
  plan_list list;
  exe->base.plan = plan;
  TRY(rt_executable_describe(&exe->base, m, &exe->arena, err));
  assert(exe->base.n_arguments == plan->n_arguments && exe->base.n_results == plan->n_results);
  exe->codes = base_arena_zalloc(&exe->arena, plan->n_programs * sizeof *exe->codes);
  if (!exe->codes || !plan_list_programs(exe->alloc, plan, &list)) return base_oom(err, "an executable");
  cu_executable_begin_source(exe, &exe->source);
  int status = cu_executable_make_listed(exe, &list, err);
  BASE_VEC_FREE(exe->alloc, &list);
  return status;
}

static void cuda_executable_destroy(rt_executable *base) {
  cuda_executable *exe = (cuda_executable *)base;
  xlac_error err;
  if (exe->codes && cuda_enter(exe->device, &err) == 0) {
    cuda_graphs_destroy(exe);
    cu_executable_drop_products(exe);
    cuda_units_unload(exe->units);
    cuda_give(exe->device, exe->constants, exe->device->memory);
    cuda_leave(exe->device);
  }
  if (exe->opened) exe->device->library->close(exe->opened);
  cuda_units_destroy(exe->units);
  cuda_source_free(&exe->source);
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->owned);
  base_free(exe->alloc, exe);
}

static const rt_executable_vtable cuda_executable_vtable = {
    .destroy = cuda_executable_destroy, .call = cuda_call, .run = cuda_call_values, .print = cuda_executable_print};

/* --- builds --- */

static void cuda_build_abandon(rt_build *base) {
  cuda_build *b = (cuda_build *)base;
  cuda_executable *exe = b->exe;
  base_arena_free(&base->arena);
  cuda_source_free(&b->trial);
  base_free(exe->alloc, b);
  rt_executable_destroy(&exe->base);
}

static int cu_build_check(const plan_program *plan, xlac_error *err) {
  assert(plan && !plan->interpreted);
  if (plan->device.buffer_bytes == 0) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "the plan of %s was made for the frames of another device",
                   plan->computation->name->s);
}

static int cuda_build_finish(rt_build *base, ir_module *owned, const ir_module *m, const plan_program *plan,
                             rt_executable **out, xlac_error *err) {
  cuda_build *b = (cuda_build *)base;
  cuda_executable *exe = b->exe;
  exe->owned = owned;
  exe->arena = base->arena;
  cuda_source_free(&b->trial);
  base_free(exe->alloc, b);
  exe->base.module = m;
  int status = cu_build_check(plan, err);
  if (status == 0) status = cu_executable_make(exe, m, plan, err);
  if (status)
    rt_executable_destroy(&exe->base);
  else
    *out = &exe->base;
  return status;
}

static const rt_build_vtable cuda_build_vtable = {.finish = cuda_build_finish, .abandon = cuda_build_abandon};

/* Whether the op has a kernel, printing says, here for the plan's facts alone: the text is made when the plan is there.
 */
static bool cu_build_prints(cuda_build *b, const ir_op *op, cuda_launch *launch, bool *failed) {
  base_arena scratch;
  base_arena_init(&scratch, b->exe->alloc);
  cuda_source_again(&b->trial);
  bool printed = cuda_print_routine(&b->trial, op, &scratch, launch);
  *failed = b->trial.body.failed;
  base_arena_free(&scratch);
  return printed;
}

/* Ops without a kernel are the interpreter's. */
static int cu_build_prepare(void *ctx, const ir_op *op, plan_routine *out, xlac_error *err) {
  cuda_launch launch;
  bool failed = false, printed = cu_build_prints(ctx, op, &launch, &failed);
  plan_eval_routine(op, out);
  if (printed) out->name = launch.by ? launch.by : "kernel";
  if (printed) out->interpreted = out->calls = false;
  if (printed && !launch.changes) out->in_place = 0;
  return failed ? base_oom(err, "the text of kernels") : 0;
}

static bool cu_build_takes(void *ctx, const ir_op *fusion) {
  cuda_launch launch;
  bool failed = false;
  return cu_build_prints(ctx, fusion, &launch, &failed);
}

/* Of a fused product. */
static bool cu_build_wants(void *ctx, const ir_op *fusion) {
  cuda_build *b = ctx;
  fusion_attention of;
  xlac_error err;
  if (!cu_build_takes(ctx, fusion) || !fusion_product_of(ir_root(fusion->called[0]), &of)) return false;
  if (cuda_enter(b->exe->device, &err)) return false;
  bool wants = cuda_product_gives_way(b->exe, of.scores);
  cuda_leave(b->exe->device);
  return wants;
}

typedef int cu_build_outliner(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                              xlac_error *err);

/* What attention has left of the dots. Two of them may want one operand transposed alike, as both gradients of a
 * projection do. */
static int cu_build_arrange(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                            xlac_error *err) {
  const cuda_build *b = ctx;
  (void)m, (void)wants;
  TRY(cuda_enter(b->exe->device, err));
  int status = cuda_product_arrange(b->exe, dot, changed, err);
  cuda_leave(b->exe->device);
  return status;
}

static int cu_build_regroup(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                            xlac_error *err) {
  (void)ctx, (void)wants;
  return cuda_product_regroup(m, dot, changed, err);
}

/* Of computations whose numbers are at most `last`: those that are made on the way are not looked at. */
static int cu_build_outline_all(ir_module *m, uint32_t last, cu_build_outliner *outline, fusion_wants_fn *wants,
                                void *ctx, bool *changed, xlac_error *err) {
  bool own = false;
  IR_FOR_COMPUTATIONS(c, m) {
    bool here = false;
    IR_FOR_OPS(op, c)
    if (op->opcode == IR_OP_DOT && c->id <= last) TRY(outline(m, op, wants, ctx, &here, err));
    if (here && (outline == fusion_outline_recomputed || outline == cu_build_regroup))
      TRY(fusion_sort_computation(c, err));
    own = own || here;
  }
  *changed = *changed || own;
  if (own && (outline == cu_build_arrange || outline == cu_build_regroup))
    return pipeline_run_text(m, "cse,dce", 7, NULL, err);
  return own ? pipeline_run_text(m, "dce", 3, NULL, err) : 0;
}

static int cu_build_outline(void *ctx, ir_module *m, bool *changed, xlac_error *err) {
  uint32_t last = 0;
  IR_FOR_COMPUTATIONS(c, m) last = c->id > last ? c->id : last;
  TRY(cu_build_outline_all(m, last, cu_build_regroup, NULL, ctx, changed, err));
  TRY(cu_build_outline_all(m, last, fusion_outline_attention, cu_build_takes, ctx, changed, err));
  TRY(cu_build_outline_all(m, last, fusion_outline_recomputed, cu_build_takes, ctx, changed, err));
  TRY(cu_build_outline_all(m, last, cu_build_arrange, NULL, ctx, changed, err));
  return cu_build_outline_all(m, last, fusion_outline_product, cu_build_wants, ctx, changed, err);
}

static void cu_build_set_up(cuda_build *b, cuda_executable *exe, rt_device *device, const rt_build_options *options) {
  cuda_device *d = cuda_device_of(device);
  const char *checks = getenv("XLAC_CUDA_CHECK");
  *exe = (cuda_executable){.alloc = d->base.alloc, .device = d, .fast = options->fast};
  exe->base = (rt_executable){.vtable = &cuda_executable_vtable, .device = rt_device_retain(device)};
  exe->base.work = UINT64_MAX;
  exe->checks = checks && checks[0] == '1';
  exe->count = options->count;
  exe->count_ctx = options->count_ctx;
  base_arena_init(&exe->arena, exe->alloc);
  cuda_source_begin(&exe->source, exe->alloc);
  *b = (cuda_build){.options = *options, .exe = exe};
  cu_executable_begin_source(exe, &b->trial);
  b->target = (plan_target){.device = cuda_plan_device,
                            .compute = &device->facts.compute,
                            .prepare = cu_build_prepare,
                            .outline = cu_build_outline,
                            .takes = cu_build_takes,
                            .ctx = b};
  b->base.vtable = &cuda_build_vtable;
  b->base.target = &b->target;
  base_arena_init(&b->base.arena, exe->alloc);
}

int cuda_build_begin(rt_device *device, const rt_build_options *options, rt_build **out, xlac_error *err) {
  cuda_device *d = cuda_device_of(device);
  cuda_build *b = base_malloc(d->base.alloc, sizeof *b);
  cuda_executable *exe = b ? base_malloc(d->base.alloc, sizeof *exe) : NULL;
  if (!exe) {
    base_free(d->base.alloc, b);
    return base_oom(err, "an executable");
  }
  cu_build_set_up(b, exe, device, options);
  int status = options->no_blas ? 0 : d->library->open(&exe->opened, options->blas_path, exe->alloc, err);
  if (status)
    cuda_build_abandon(&b->base);
  else
    *out = &b->base;
  return status;
}
