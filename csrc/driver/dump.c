/* A dump is a compilation with a look at one stage: for stages before the plan the line is ended from
 * `look` by a status of its own, for later ones the executable is printed. */
#include "dump.h"

#include "../cpu/loop/loop.h"
#include "../plan/report.h"
#include "../text/text.h"

enum { DUMP_ENOUGH = 1 }; /* a status that is not an error: the stage has been printed */

typedef struct dump_stage dump_stage;
struct dump_stage {
  const char *name;
  driver_stage after; /* whose module is printed; DRIVER_PLANNED: the executable is, by put */
  int (*put)(base_text *out, const rt_executable *exe, xlac_error *err);
};

typedef struct dump_run {
  const dump_stage *stage;
  const driver_options *options;
  base_text *out;
} dump_run;

/* --- of the executable --- */

/* Of programs that run whole there are no kernels and no steps: the plan says so. */
static int dump_fused(base_text *out, const rt_executable *exe, xlac_error *err) {
  return plan_explain_fusion(out, exe->plan, err);
}

/* `// main, step 3: %fusion.1`, then the kernel's text. */
static void dump_kernel(base_text *out, const plan_program *p, uint32_t i) {
  const plan_step *s = &p->steps[i];
  base_putf(out, "// %s, step %u: %s\n", p->computation->name->s, (unsigned)i, s->op->name->s);
  kernel_put(out, s->kernel);
  base_putc(out, '\n');
}

bool driver_put_kernels(base_text *out, const plan_program *plan) {
  plan_list list;
  bool ok = plan_list_programs(base_alloc_libc, plan, &list);
  for (uint32_t i = 0; ok && i < list.n; i++)
    for (uint32_t j = 0; j < list.items[i]->n_steps; j++)
      if (list.items[i]->steps[j].kind == PLAN_KERNEL) dump_kernel(out, list.items[i], j);
  BASE_VEC_FREE(base_alloc_libc, &list);
  return ok;
}

/* The called computations of routines that are scalar programs. Whether the device runs them as such is its own. */
static int dump_called(base_text *out, const plan_program *p, uint32_t i, xlac_error *err) {
  const plan_step *s = &p->steps[i];
  base_arena arena;
  base_arena_init(&arena, base_alloc_libc);
  int status = 0;
  for (uint32_t j = 0; j < s->op->n_called && status == 0; j++) {
    const scalar_program *program = NULL;
    status = scalar_program_make(s->op->called[j], &arena, &program, err);
    if (!program) continue;
    base_putf(out, "// %s, step %u: %s of %s\n", p->computation->name->s, (unsigned)i, s->op->called[j]->name->s,
              s->op->name->s);
    kernel_put_program(out, program);
    base_putc(out, '\n');
  }
  base_arena_free(&arena);
  return status;
}

static int dump_programs(base_text *out, const rt_executable *exe, xlac_error *err) {
  plan_list list;
  int status = plan_list_programs(base_alloc_libc, exe->plan, &list) ? 0 : base_oom(err, "the text of programs");
  for (uint32_t i = 0; status == 0 && i < list.n; i++)
    for (uint32_t j = 0; status == 0 && j < list.items[i]->n_steps; j++)
      if (list.items[i]->steps[j].kind == PLAN_ROUTINE) status = dump_called(out, list.items[i], j, err);
  BASE_VEC_FREE(base_alloc_libc, &list);
  return status;
}

static int dump_kernels(base_text *out, const rt_executable *exe, xlac_error *err) {
  return driver_put_kernels(out, exe->plan) ? 0 : base_oom(err, "the text of kernels");
}

/* A loop that is machine code as a whole, if step i is one that runs by itself. */
static void dump_loop(base_text *out, const rt_executable *exe, const plan_program *p, uint32_t i) {
  const cpu_executable *cpu = cpu_executable_of(exe);
  const plan_step *s = &p->steps[i];
  if (s->kind != PLAN_WHILE || !cpu || !cpu_step_code(cpu, p, s)) return;
  base_putf(out, "// %s, step %u: %s, a loop as one function\n", p->computation->name->s, (unsigned)i, s->op->name->s);
  (void)cpu_loop_put(out, cpu, s);
  base_putc(out, '\n');
}

/* Each kernel, and below it its machine code. */
static int dump_assembly(base_text *out, const rt_executable *exe, xlac_error *err) {
  plan_list list;
  bool ok = plan_list_programs(base_alloc_libc, exe->plan, &list);
  for (uint32_t i = 0; ok && i < list.n; i++)
    for (uint32_t j = 0; j < list.items[i]->n_steps; j++) {
      dump_loop(out, exe, list.items[i], j);
      if (list.items[i]->steps[j].kind != PLAN_KERNEL) continue;
      dump_kernel(out, list.items[i], j);
      if (!cpu_native_put(out, list.items[i]->steps[j].kernel, base_alloc_libc)) BASE_PUT(out, "# by the vector VM\n");
      base_putc(out, '\n');
    }
  BASE_VEC_FREE(base_alloc_libc, &list);
  return ok ? 0 : base_oom(err, "the code of kernels");
}

static int dump_plan(base_text *out, const rt_executable *exe, xlac_error *err) {
  (void)err;
  plan_put(out, exe->plan);
  return 0;
}

static int dump_executable(base_text *out, const rt_executable *exe, xlac_error *err) {
  char name[32];
  rt_device_name(exe->device, name);
  base_putf(out, "%s on %s\n", exe->module->name->s, name);
  return rt_executable_print(exe, out, err);
}

/* --- stages --- */

static const dump_stage dump_stages[] = {
    {"translated", DRIVER_TRANSLATED, NULL},        {"prepared", DRIVER_PREPARED, NULL},
    {"optimised", DRIVER_OPTIMISED, NULL},          {"fused", DRIVER_PLANNED, dump_fused},
    {"kernels", DRIVER_PLANNED, dump_kernels},      {"programs", DRIVER_PLANNED, dump_programs},
    {"assembly", DRIVER_PLANNED, dump_assembly},    {"plan", DRIVER_PLANNED, dump_plan},
    {"executable", DRIVER_PLANNED, dump_executable}};

/* NULL: there is no such stage. */
static const dump_stage *dump_find(const char *name) {
  for (size_t i = 0; i < sizeof dump_stages / sizeof *dump_stages; i++)
    if (strcmp(dump_stages[i].name, name) == 0) return &dump_stages[i];
  return NULL;
}

/* Ends the line once the stage is printed. */
static int dump_look(void *ctx, driver_stage stage, ir_module *m, xlac_error *err) {
  const dump_run *x = ctx;
  const text_print_options plain = {.mode = TEXT_DEFAULT};
  if (stage != x->stage->after) return 0;
  assert(!x->stage->put && "of what is planned there is an executable");
  TRY(text_print_hlo(x->out, m, &plain, err));
  return DUMP_ENOUGH;
}

/* The line has one context for both: this hands the caller's own to its edit. */
static int dump_edit(void *ctx, ir_module *m, xlac_error *err) {
  const dump_run *x = ctx;
  return x->options->edit ? x->options->edit(x->options->ctx, m, err) : 0;
}

static int dump_unknown(const char *stage, xlac_error *err) {
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no stage '%.60s'", stage);
  return base_hint(err, status,
                   "stages are translated, prepared, optimised, fused, kernels, programs, assembly, plan, executable");
}

int driver_dump(ir_module *translated, const driver_options *options, const char *stage, base_text *out,
                xlac_error *err) {
  dump_run x = {.stage = dump_find(stage), .options = options, .out = out};
  driver_options line = *options;
  rt_executable *exe = NULL;
  if (!x.stage) {
    ir_module_destroy(translated);
    spmd_program_destroy(options->partitioned);
    return dump_unknown(stage, err);
  }
  line.edit = dump_edit;
  line.look = dump_look;
  line.ctx = &x;
  int status = driver_finish(translated, &line, NULL, &exe, err);
  if (status == DUMP_ENOUGH) return 0;
  assert(status || x.stage->put);
  if (status == 0) status = x.stage->put(out, exe, err);
  rt_executable_destroy(exe);
  return status;
}
