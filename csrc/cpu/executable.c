/* Executables: what compilation leaves, and the frames that calls take turns in using. */
#include "loop.h"
#include "routine.h"

static bool executable_needs_interpreter(const plan_program *p) {
  if (p->interpreted) return true;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    if (p->steps[i].kind == PLAN_EVAL || (p->steps[i].routine && p->steps[i].routine->calls)) return true;
    for (uint32_t j = 0; j < p->steps[i].n_nested; j++)
      if (executable_needs_interpreter(p->steps[i].nested[j])) return true;
  }
  return false;
}

/* Depth is bounded by the plan's. A program that several steps share is made ready once. */
static int executable_ready(cpu_executable *exe, const plan_program *p, xlac_error *err) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    plan_step *s = (plan_step *)(uintptr_t)&p->steps[i];
    if (s->kind == PLAN_KERNEL && !s->code) {
      cpu_vm *vm = NULL;
      TRY(cpu_vm_make(s->kernel, &exe->arena, &vm, err));
      s->code = vm;
    }
    if (s->n_nested && s->code) continue;
    for (uint32_t j = 0; j < s->n_nested; j++) TRY(executable_ready(exe, s->nested[j], err));
    if (s->n_nested) s->code = s->nested;
    if (s->kind == PLAN_WHILE) {
      const cpu_loop *loop = NULL;
      TRY(cpu_loop_make(s, &exe->arena, &loop, err));
      s->code = loop;
    }
  }
  return 0;
}

static int executable_build(cpu_executable *exe, const cpu_options *options, xlac_error *err) {
  plan_options plan = options->plan;
  cpu_prepare_options prepare = {0};
  if (!options->no_blas) TRY(cpu_blas_open(&exe->blas, options->blas_path, exe->alloc, err));
  prepare.blas = exe->blas;
  plan.prepare = cpu_prepare;
  plan.prepare_ctx = &prepare;
  TRY(plan_make(exe->m, &plan, &exe->arena, &exe->program, err));
  TRY(executable_ready(exe, exe->program, err));
  exe->needs_interpreter = executable_needs_interpreter(exe->program);
  return base_pool_create(&exe->pool, options->threads, exe->alloc, err);
}

int cpu_compile(cpu_executable **out, ir_module *m, const cpu_options *options, xlac_error *err) {
  base_alloc alloc = options->alloc.fn ? options->alloc : base_alloc_libc;
  cpu_executable *exe = base_malloc(alloc, sizeof *exe);
  if (!exe) {
    ir_module_destroy(m);
    return base_oom(err, "an executable");
  }
  *exe = (cpu_executable){.m = m, .alloc = alloc};
  base_arena_init(&exe->arena, alloc);
  pthread_mutex_init(&exe->lock, NULL);
  int status = executable_build(exe, options, err);
  if (status) {
    cpu_executable_free(exe);
    return status;
  }
  *out = exe;
  return 0;
}

void cpu_executable_free(cpu_executable *exe) {
  if (!exe) return;
  for (uint32_t i = 0; i < exe->n_frames; i++) base_free(exe->alloc, exe->frames[i]);
  base_pool_destroy(exe->pool);
  cpu_blas_close(exe->blas, exe->alloc);
  base_arena_free(&exe->arena);
  ir_module_destroy(exe->m);
  pthread_mutex_destroy(&exe->lock);
  base_free(exe->alloc, exe);
}

const ir_module *cpu_executable_module(const cpu_executable *exe) {
  return exe->m;
}
const plan_program *cpu_executable_program(const cpu_executable *exe) {
  return exe->program;
}
const cpu_blas *cpu_executable_blas(const cpu_executable *exe) {
  return exe->blas;
}

/* Frames are kept for the next call: fresh memory costs a page fault for every 4 KB. */
char *cpu_frame_take(cpu_executable *exe) {
  char *frame = NULL;
  pthread_mutex_lock(&exe->lock);
  if (exe->n_frames) frame = exe->frames[--exe->n_frames];
  pthread_mutex_unlock(&exe->lock);
  size_t bytes = (size_t)exe->program->frame_bytes + 2 * PLAN_ALIGN;
  return frame ? frame : base_malloc(exe->alloc, bytes);
}

void cpu_frame_give(cpu_executable *exe, char *frame) {
  pthread_mutex_lock(&exe->lock);
  bool keep = exe->n_frames < CPU_MAX_FRAMES;
  if (keep) exe->frames[exe->n_frames++] = frame;
  pthread_mutex_unlock(&exe->lock);
  if (!keep) base_free(exe->alloc, frame);
}
