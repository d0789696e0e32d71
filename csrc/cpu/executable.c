/* Builds and executables. A build (rt_build) is what rt_device gives while a plan is being made: its plan_target
 * calls cpu_prepare for each op with an algorithm of its own. Finishing it turns each kernel of the plan into a
 * cpu_vm, each program into a list (threaded/list.h), and gives the executable, which is immutable from then on. */
#include "async.h"
#include "loop/loop.h"
#include "threaded/list.h"
#include "routine.h"
#include "turns.h"

const plan_device cpu_plan_device = {.buffer_bytes = sizeof(void *), .task_bytes = CPU_TASK_BYTES};

/* How a program is used. covered: it is part of a loop that is machine code as a whole. */
typedef struct executable_use {
  bool body, covered;
} executable_use;
static int executable_ready(cpu_executable *exe, const rt_build_options *options, const plan_program *p,
                            executable_use use, xlac_error *err);

/* A copy-start is a memcpy; any other start without a program is evaluated. */
bool cpu_start_needs_interpreter(const plan_step *s) {
  if (s->n_nested) return cpu_program_needs_interpreter(s->nested[0]);
  return s->op->opcode != IR_OP_COPY_START;
}

bool cpu_program_needs_interpreter(const plan_program *p) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_routine *r = p->steps[i].routine;
    if (p->steps[i].kind == PLAN_START && cpu_start_needs_interpreter(&p->steps[i])) return true;
    if (r && (r->calls || r->interpreted)) return true;
    for (uint32_t j = 0; j < p->steps[i].n_nested; j++)
      if (cpu_program_needs_interpreter(p->steps[i].nested[j])) return true;
  }
  return false;
}

/* What the step has in cpu_code.steps: a cpu_vm of a kernel, a cpu_loop of a loop that is machine code, a cpu_start
 * of an async start, NULL of all others.
 * Nested programs come first, since a start looks at the list of the program it runs. */
static int executable_ready_step(cpu_executable *exe, const rt_build_options *options, const plan_program *p,
                                 uint32_t step, bool covered, xlac_error *err) {
  const plan_step *s = &p->steps[step];
  assert(step < p->n_steps && s->kind <= PLAN_DONE);
  cpu_vm *vm = NULL;
  const cpu_start *start = NULL;
  const cpu_loop *loop = s->kind == PLAN_WHILE && !covered ? cpu_loop_make(exe, s) : NULL;
  if (s->kind == PLAN_KERNEL) {
    TRY(cpu_vm_make(s->kernel, exe->fast, &exe->arena, &vm, err));
    const cpu_native_kernel *code = cpu_vm_is_looser(vm) ? NULL : cpu_native_make(exe->native, s->kernel, &exe->arena);
    cpu_native_name(exe->native, code, p->computation->name->s, s->op->name->s);
    cpu_vm_set_native(vm, code);
  }
  for (uint32_t j = 0; j < s->n_nested; j++)
    TRY(executable_ready(exe, options, s->nested[j],
                         (executable_use){.body = s->kind == PLAN_WHILE, .covered = covered || loop}, err));
  if (s->kind == PLAN_START) TRY(cpu_start_make(exe, options, p, s, &start, err));
  exe->codes[p->number].steps[step] = vm ? (const void *)vm : loop ? (const void *)loop : start;
  return 0;
}

/* Depth is bounded by the plan's. A program that several steps share is made ready once. */
static int executable_ready(cpu_executable *exe, const rt_build_options *options, const plan_program *p,
                            executable_use use, xlac_error *err) {
  cpu_code *code = &exe->codes[p->number];
  assert(!p->interpreted && "such steps are routines");
  assert(p->number < cpu_plan_of(exe)->n_programs);
  if (code->list) return 0;
  code->steps = BASE_ARRAY(&exe->arena, const void *, (size_t)p->n_steps + 1);
  if (!code->steps) return base_oom(err, "an executable");
  for (uint32_t i = 0; i < p->n_steps; i++) TRY(executable_ready_step(exe, options, p, i, use.covered, err));
  return cpu_list_make(exe, p, use.body, &code->list, err);
}

/* Saturates: UINT64_MAX means that nobody knows. */
static uint64_t executable_add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Of loops nobody knows how many iterations they take, and of custom calls nobody knows what they do. */
static uint64_t executable_step_work(const plan_program *p, const plan_step *s) {
  uint64_t work = 1;
  if (s->kind == PLAN_START && s->op->opcode == IR_OP_ASYNC_START && !s->n_nested) return UINT64_MAX;
  if (s->kind == PLAN_WHILE || s->op->opcode == IR_OP_CUSTOM_CALL) return UINT64_MAX;
  if (s->kind == PLAN_KERNEL) return (uint64_t)s->kernel->count * s->kernel->n_values + 1;
  if (s->kind == PLAN_ROUTINE) return s->routine->calls ? UINT64_MAX : executable_add(s->routine->work, 1);
  for (uint32_t i = 0; i < s->n_in; i++) work += (uint64_t)p->buffers[s->in[i]].bytes;
  for (uint32_t i = 0; i < s->n_out; i++) work += (uint64_t)p->buffers[s->out[i]].bytes;
  for (uint32_t i = 0; i < s->n_nested; i++) work = executable_add(work, cpu_program_work(s->nested[i]));
  return work;
}

/* Depth is bounded by the plan's. */
uint64_t cpu_program_work(const plan_program *p) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < p->n_steps && work < UINT64_MAX; i++)
    work = executable_add(work, executable_step_work(p, &p->steps[i]));
  return work;
}

/* --- building --- */

/* The executable is there from the start: what a plan's routines become while it is made is kept in it. */
typedef struct cpu_build {
  rt_build base;
  plan_target target;
  rt_compute_facts compute; /* the device's, with what this build's kernels become */
  cpu_prepare_options prepare;
  rt_build_options options;
  cpu_executable *exe;
} cpu_build;

/* All but the executable. */
static void build_free(cpu_build *b) {
  base_arena_free(&b->base.arena);
  BASE_VEC_FREE(b->exe->alloc, &b->prepare.routines);
  base_free(b->exe->alloc, b);
}

/* For a build that is given up, before or after a failure. */
static void cpu_build_abandon(rt_build *base) {
  cpu_build *b = (cpu_build *)base;
  cpu_executable *exe = b->exe;
  build_free(b);
  rt_executable_destroy(&exe->base);
}

/* Lanes are there from the first async start on. */
static bool executable_lane(const rt_executable *base, uint32_t index, xlac_lane *out) {
  const cpu_executable *exe = (const cpu_executable *)base;
  if (index >= exe->n_lanes) return false;
  *out = (xlac_lane){.thread = exe->lanes[index].thread, .threads = exe->lanes[index].threads};
  return true;
}

/* "" until something has opened a BLAS. */
static const char *executable_library(const rt_executable *base) {
  return cpu_blas_describe(cpu_blas_lazy_opened(((const cpu_executable *)base)->blas));
}

static const rt_executable_vtable cpu_executable_vtable = {.destroy = cpu_executable_destroy,
                                                           .call = cpu_call,
                                                           .call_in_turns = cpu_call_in_turns,
                                                           .run = cpu_call_values,
                                                           .lane = executable_lane,
                                                           .library = executable_library,
                                                           .print = cpu_executable_print};

const cpu_executable *cpu_executable_of(const rt_executable *exe) {
  return exe->vtable == &cpu_executable_vtable ? (const cpu_executable *)exe : NULL;
}

/* Kernels, lists and lanes lie in the arena; the module goes last, since they refer to its ops. */
void cpu_executable_destroy(rt_executable *base) {
  cpu_executable *exe = (cpu_executable *)base;
  cpu_blas_lazy_destroy(exe->blas);
  BASE_VEC_FREE(exe->alloc, &exe->routines);
  cpu_native_store_destroy(exe->native);
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->owned);
  base_free(exe->alloc, exe);
}

/* Bytes of such elements may hold bits that the type has not. */
static bool executable_is_narrow(const ir_type *t) {
  return ir_is_tensor(t) && base_dtype_of((base_dtype)t->dtype)->bits < 8;
}

/* Whether an op may wait for other devices, or calls what may. */
static bool executable_may_wait(const ir_op *op) {
  return ir_opcode_has(op->opcode, IR_COLLECTIVE | IR_SIDE_EFFECT | IR_ASYNC_START) || op->opcode == IR_OP_CUSTOM_CALL;
}

/* Whether another loop has the same body, whose meetings would count twice. */
static bool executable_has_body_twice(const plan_program *plan, uint32_t step) {
  for (uint32_t i = 0; i < step; i++)
    if (plan->steps[i].kind == PLAN_WHILE &&
        plan->steps[i].nested[1]->computation == plan->steps[step].nested[1]->computation)
      return true;
  return false;
}

/* All that wait for other devices must be steps of the entry, or of bodies of its loops, that can be left and come back
 * to. What is done between them is counted with one trip of each such loop. */
static void executable_note_meetings(cpu_executable *exe, const ir_module *m, const plan_program *plan) {
  rt_executable *base = &exe->base;
  uint32_t meetings = 0, waits = 0;
  for (uint32_t i = 0; i < plan->n_steps; i++) {
    const plan_step *s = &plan->steps[i];
    uint32_t inner = s->kind == PLAN_WHILE ? cpu_turns_loop(exe, s) : 0;
    meetings += cpu_is_meeting(exe, s);
    uint64_t work = inner ? executable_add(cpu_program_work(s->nested[0]), cpu_program_work(s->nested[1]))
                          : executable_step_work(plan, s);
    base->turn_work = executable_add(base->turn_work, work);
    if (inner && !executable_has_body_twice(plan, i)) meetings += inner;
  }
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  waits += executable_may_wait(op);
  base->meetings = waits == meetings ? meetings : RT_NO_TURNS;
}

/* What calls must know of the program. */
static int executable_note_facts(cpu_executable *exe, const ir_module *m, const plan_program *plan, xlac_error *err) {
  TRY(rt_executable_describe(&exe->base, m, &exe->arena, err));
  assert(exe->base.n_arguments == plan->n_arguments && exe->base.n_results == plan->n_results);
  exe->needs_interpreter = cpu_program_needs_interpreter(plan);
  exe->base.work = cpu_program_work(plan);
  executable_note_meetings(exe, m, plan);
  for (uint32_t i = 0; i < exe->base.n_arguments; i++)
    exe->needs_care = exe->needs_care || executable_is_narrow(exe->base.argument_types[i]);
  return 0;
}

/* Code for all programs of the plan, then what calls must know. */
static int executable_build(cpu_executable *exe, const rt_build_options *options, const ir_module *m,
                            const plan_program *plan, xlac_error *err) {
  exe->base.plan = plan;
  exe->base.module = m;
  TRY(rt_host_pool(exe->host, options->threads, &exe->pool, err));
  exe->codes = base_arena_zalloc(&exe->arena, plan->n_programs * sizeof *exe->codes);
  if (!exe->codes) return base_oom(err, "an executable");
  TRY(executable_ready(exe, options, plan, (executable_use){.body = false}, err));
  cpu_native_store_seal(exe->native);
  return executable_note_facts(exe, m, plan, err);
}

/* Frames are laid out by the plan, so it must have left room for what this device keeps in them. */
static int build_check(const plan_program *plan, xlac_error *err) {
  assert(plan && !plan->interpreted);
  if (plan->device.buffer_bytes == cpu_plan_device.buffer_bytes &&
      plan->device.task_bytes >= cpu_plan_device.task_bytes)
    return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "the plan of %s was made for the frames of another device",
                   plan->computation->name->s);
}

/* The end of a build, whether it succeeds or not: b is freed, and on failure the executable with it. `owned` is
 * the module where the executable is to keep it. Where the plan is somebody else's (owned is NULL), its routines
 * are prepared now, and must be those that it was planned with. */
static int cpu_build_finish(rt_build *base, ir_module *owned, const ir_module *m, const plan_program *plan,
                            rt_executable **out, xlac_error *err) {
  cpu_build *b = (cpu_build *)base;
  cpu_executable *exe = b->exe;
  exe->owned = owned;
  int status = build_check(plan, err);
  if (status == 0 && !owned) status = cpu_prepare_plan(plan, &b->prepare, err);
  assert(status || b->prepare.routines.n == plan->n_routines);
  exe->arena = b->base.arena;
  exe->routines = b->prepare.routines;
  rt_build_options options = b->options;
  base_arena_init(&b->base.arena, exe->alloc);
  b->prepare.routines = (cpu_routines){NULL, 0, 0};
  build_free(b);
  if (status == 0) status = executable_build(exe, &options, m, plan, err);
  if (status)
    rt_executable_destroy(&exe->base);
  else
    *out = &exe->base;
  return status;
}

static const rt_build_vtable cpu_build_vtable = {.finish = cpu_build_finish, .abandon = cpu_build_abandon};

/* Everything that can't fail. */
static void build_set_up(cpu_build *b, cpu_executable *exe, rt_device *d, const rt_build_options *options) {
  base_alloc alloc = ((rt_host_device *)d)->alloc;
  *exe = (cpu_executable){.alloc = alloc, .fast = options->fast, .host = rt_host_of(d)};
  exe->base.vtable = &cpu_executable_vtable;
  exe->base.device = rt_device_retain(d);
  exe->count = options->count;
  exe->count_ctx = options->count_ctx;
  base_arena_init(&exe->arena, alloc);
  *b = (cpu_build){.options = *options, .exe = exe};
  base_arena_init(&b->base.arena, alloc);
  b->prepare = (cpu_prepare_options){.arena = &b->base.arena, .alloc = alloc};
  b->compute = d->facts.compute;
  b->target = (plan_target){.device = cpu_plan_device,
                            .compute = &b->compute,
                            .prepare = cpu_prepare,
                            .ctx = &b->prepare,
                            .skips_places = true};
  b->base.vtable = &cpu_build_vtable;
  b->base.target = &b->target;
}

int cpu_build_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err) {
  base_alloc alloc = ((rt_host_device *)d)->alloc;
  cpu_build *b = base_malloc(alloc, sizeof *b);
  cpu_executable *exe = b ? base_malloc(alloc, sizeof *exe) : NULL;
  if (!exe) {
    base_free(alloc, b);
    return base_oom(err, "an executable");
  }
  build_set_up(b, exe, d, options);
  int status = options->no_blas ? 0 : cpu_blas_lazy_create(&exe->blas, options->blas_path, alloc, err);
  if (status == 0) status = cpu_native_store_create(alloc, &exe->native, err);
  cpu_native_store_use(exe->native, options->saved);
  b->compute.native = exe->native != NULL;
  if (status) {
    cpu_build_abandon(&b->base);
    return status;
  }
  b->prepare.blas = exe->blas;
  *out = &b->base;
  return 0;
}
