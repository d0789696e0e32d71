/* Executables: what compilation leaves. */
#include "async.h"
#include "threaded/list.h"
#include "routine.h"

const plan_device cpu_plan_device = {.buffer_bytes = sizeof(void *), .task_bytes = CPU_TASK_BYTES};

static int executable_ready(cpu_executable *exe, const cpu_options *options, const plan_program *p, bool body,
                            xlac_error *err);

bool cpu_start_needs_interpreter(const plan_step *s) {
  if (s->n_nested) return cpu_program_needs_interpreter(s->nested[0]);
  return s->op->opcode != IR_OP_COPY_START;
}

bool cpu_program_needs_interpreter(const plan_program *p) {
  if (p->interpreted) return true;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    if (p->steps[i].kind == PLAN_START && cpu_start_needs_interpreter(&p->steps[i])) return true;
    if (p->steps[i].kind == PLAN_EVAL || (p->steps[i].routine && p->steps[i].routine->calls)) return true;
    for (uint32_t j = 0; j < p->steps[i].n_nested; j++)
      if (cpu_program_needs_interpreter(p->steps[i].nested[j])) return true;
  }
  return false;
}

static int executable_ready_step(cpu_executable *exe, const cpu_options *options, const plan_program *p, uint32_t step,
                                 xlac_error *err) {
  const plan_step *s = &p->steps[step];
  cpu_vm *vm = NULL;
  const cpu_start *start = NULL;
  if (s->kind == PLAN_KERNEL) TRY(cpu_vm_make(s->kernel, exe->fast, &exe->arena, &vm, err));
  for (uint32_t j = 0; j < s->n_nested; j++)
    TRY(executable_ready(exe, options, s->nested[j], s->kind == PLAN_WHILE && j == 1, err));
  if (s->kind == PLAN_START) TRY(cpu_start_make(exe, options, p, s, &start, err));
  exe->codes[p->number].steps[step] = vm ? (const void *)vm : start;
  return 0;
}

/* Depth is bounded by the plan's. A program that several steps share is made ready once. */
static int executable_ready(cpu_executable *exe, const cpu_options *options, const plan_program *p, bool body,
                            xlac_error *err) {
  cpu_code *code = &exe->codes[p->number];
  if (code->list || p->interpreted) return 0;
  code->steps = BASE_ARRAY(&exe->arena, const void *, (size_t)p->n_steps + 1);
  if (!code->steps) return base_oom(err, "an executable");
  for (uint32_t i = 0; i < p->n_steps; i++) TRY(executable_ready_step(exe, options, p, i, err));
  return cpu_list_make(exe, p, body, &code->list, err);
}

static uint64_t executable_add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Of loops nobody knows how often they turn, and of custom calls nobody knows what they do. */
static uint64_t executable_step_work(const plan_program *p, const plan_step *s) {
  uint64_t work = 1;
  if (s->kind == PLAN_START && s->op->opcode == IR_OP_ASYNC_START && !s->n_nested) return UINT64_MAX;
  if (s->kind == PLAN_WHILE || s->op->opcode == IR_OP_CUSTOM_CALL) return UINT64_MAX;
  if (s->kind == PLAN_KERNEL) return (uint64_t)s->kernel->count * s->kernel->n_values + 1;
  if (s->kind == PLAN_ROUTINE) return s->routine->calls ? UINT64_MAX : executable_add(s->routine->work, 1);
  if (s->kind == PLAN_EVAL && s->op->n_called) return UINT64_MAX;
  for (uint32_t i = 0; i < s->n_in; i++) work += (uint64_t)p->buffers[s->in[i]].bytes;
  for (uint32_t i = 0; i < s->n_out; i++) work += (uint64_t)p->buffers[s->out[i]].bytes;
  for (uint32_t i = 0; i < s->n_nested; i++) work = executable_add(work, cpu_program_work(s->nested[i]));
  return work;
}

/* Depth is bounded by the plan's. */
uint64_t cpu_program_work(const plan_program *p) {
  uint64_t work = 0;
  if (p->interpreted) return UINT64_MAX;
  for (uint32_t i = 0; i < p->n_steps && work < UINT64_MAX; i++)
    work = executable_add(work, executable_step_work(p, &p->steps[i]));
  return work;
}

static void executable_add_types(const ir_type *t, const ir_type **types, uint32_t *n) {
  if (!ir_is_tuple(t)) {
    types[(*n)++] = t;
    return;
  }
  for (uint32_t i = 0; i < t->n_elements; i++) executable_add_types(t->elements[i], types, n);
}

static int executable_list_arguments(cpu_executable *exe, xlac_error *err) {
  const ir_computation *entry = exe->m->entry;
  uint32_t n = 0;
  for (uint32_t i = 0; i < entry->n_params; i++) n += ir_type_leaves(entry->params[i]->type);
  exe->argument_types = BASE_ARRAY(&exe->arena, const ir_type *, (size_t)n + 1);
  if (!exe->argument_types) return base_oom(err, "an executable");
  n = 0;
  for (uint32_t i = 0; i < entry->n_params; i++) executable_add_types(entry->params[i]->type, exe->argument_types, &n);
  return 0;
}

/* The plan, and what is prepared for its routines meanwhile. */
static int executable_plan(cpu_executable *exe, plan_options options, cpu_prepare_options *prepare, xlac_error *err) {
  plan_program *p = NULL;
  options.device = cpu_plan_device;
  options.prepare = cpu_prepare;
  options.prepare_ctx = prepare;
  TRY(plan_make(exe->m, &options, &exe->arena, &p, err));
  exe->program = p;
  return 0;
}

static int executable_prepare(cpu_executable *exe, const plan_options *options, xlac_error *err) {
  cpu_prepare_options prepare = {.blas = exe->blas, .arena = &exe->arena, .alloc = exe->alloc};
  int status =
      exe->program ? cpu_prepare_plan(exe->program, &prepare, err) : executable_plan(exe, *options, &prepare, err);
  exe->routines = prepare.routines;
  return status;
}

/* exe->program is the plan, or NULL: then it is made. */
static int executable_build(cpu_executable *exe, const cpu_options *options, xlac_error *err) {
  if (options->runtime)
    exe->runtime = cpu_runtime_retain(options->runtime);
  else
    TRY(cpu_runtime_create(&exe->runtime, exe->alloc, err));
  TRY(cpu_runtime_pool(exe->runtime, options->threads, &exe->pool, err));
  if (!options->no_blas) TRY(cpu_blas_lazy_create(&exe->blas, options->blas_path, exe->alloc, err));
  TRY(executable_prepare(exe, &options->plan, err));
  exe->codes = base_arena_zalloc(&exe->arena, exe->program->n_programs * sizeof *exe->codes);
  if (!exe->codes) return base_oom(err, "an executable");
  TRY(executable_ready(exe, options, exe->program, false, err));
  exe->needs_interpreter = cpu_program_needs_interpreter(exe->program);
  exe->work = cpu_program_work(exe->program);
  exe->count = options->count;
  exe->count_ctx = options->count_ctx;
  return executable_list_arguments(exe, err);
}

static int executable_make(cpu_executable **out, const cpu_executable *like, const cpu_options *options,
                           xlac_error *err) {
  cpu_executable *exe = base_malloc(like->alloc, sizeof *exe);
  if (!exe) {
    ir_module_destroy(like->owned);
    return base_oom(err, "an executable");
  }
  *exe = *like;
  base_arena_init(&exe->arena, exe->alloc);
  int status = executable_build(exe, options, err);
  if (status) {
    cpu_executable_free(exe);
    return status;
  }
  *out = exe;
  return 0;
}

static base_alloc executable_alloc(const cpu_options *options) {
  return options->alloc.fn ? options->alloc : base_alloc_libc;
}

int cpu_compile(cpu_executable **out, ir_module *m, const cpu_options *options, xlac_error *err) {
  const cpu_executable like = {.m = m, .owned = m, .alloc = executable_alloc(options), .fast = options->fast};
  return executable_make(out, &like, options, err);
}

int cpu_finish_plan(cpu_executable **out, const ir_module *m, const plan_program *plan, const cpu_options *options,
                    xlac_error *err) {
  const cpu_executable like = {.m = m, .program = plan, .alloc = executable_alloc(options), .fast = options->fast};
  if (plan->device.buffer_bytes != cpu_plan_device.buffer_bytes || plan->device.task_bytes < cpu_plan_device.task_bytes)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the plan of %s was made for the frames of another device",
                     plan->computation->name->s);
  return executable_make(out, &like, options, err);
}

void cpu_executable_free(cpu_executable *exe) {
  if (!exe) return;
  cpu_blas_lazy_destroy(exe->blas);
  BASE_VEC_FREE(exe->alloc, &exe->routines);
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->owned);
  cpu_runtime_release(exe->runtime);
  base_free(exe->alloc, exe);
}

const ir_module *cpu_executable_module(const cpu_executable *exe) {
  return exe->m;
}
const plan_program *cpu_executable_program(const cpu_executable *exe) {
  return exe->program;
}
const cpu_blas *cpu_executable_blas(const cpu_executable *exe) {
  return cpu_blas_lazy_opened(exe->blas);
}

bool cpu_executable_lane(const cpu_executable *exe, uint32_t index, xlac_lane *out) {
  if (index >= exe->n_lanes) return false;
  *out = (xlac_lane){.thread = exe->lanes[index].thread, .threads = exe->lanes[index].threads};
  return true;
}

cpu_runtime *cpu_executable_runtime(const cpu_executable *exe) {
  return exe->runtime;
}
uint64_t cpu_executable_work(const cpu_executable *exe) {
  return exe->work;
}
