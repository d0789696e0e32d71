/* What a GPU runs of a plan, for people: a line for each step, then the source of the kernels. */
#include "../plan/report.h"
#include "../base/plural.h"
#include "collective.h"

static void cu_exeput_how(base_text *out, const cuda_executable *exe, const plan_step *s, const cuda_kernel *k) {
  static const char *const kinds[] = {
      "kernel", "routine on the host", "copy", "while", "conditional", "call", "start", "update", "done"};
  _Static_assert(sizeof kinds / sizeof *kinds == PLAN_DONE + 1, "a word for each kind of step");
  if (k->product)
    BASE_PUT(out, "cuBLASLt's product");
  else if (k->printed)
    base_putf(out, "kernel k%u, %s: %lld blocks of %u threads", (unsigned)k->launch.number, k->launch.how,
              (long long)k->launch.grid, (unsigned)k->launch.block);
  else if (s->kind == PLAN_KERNEL)
    BASE_PUT(out, "kernel by the reference evaluator on the host: it has no form in CUDA C++");
  else if (k->collective)
    cuda_collective_put(exe, k->collective, out);
  else if (s->kind == PLAN_ROUTINE)
    base_putf(out, "the interpreter's %s on the host: it has no kernel", ir_opcode_text(s->op->opcode));
  else
    base_putf(out, "%s", kinds[s->kind]);
}

static void cu_exeput_program(base_text *out, const cuda_executable *exe, const plan_program *p) {
  const cuda_code *code = &exe->codes[p->number];
  assert(code->made);
  base_putf(out, "program %s, %lld bytes of frame\n", p->computation->name->s, (long long)p->frame_bytes);
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    base_putf(out, "  %u %s %s: ", (unsigned)i, ir_opcode_text(s->op->opcode), s->op->name->s);
    cu_exeput_how(out, exe, s, &code->kernels[i]);
    for (uint32_t j = 0; j < s->n_nested; j++)
      base_putf(out, "%s%s", j ? ", " : "; runs ", s->nested[j]->computation->name->s);
    base_putc(out, '\n');
  }
}

static void cu_exeput_source(base_text *out, const cuda_source *s, base_alloc alloc) {
  uint32_t *all = base_malloc(alloc, s->kernels.n * sizeof *all);
  for (uint32_t i = 0; all && i < s->kernels.n; i++) all[i] = i;
  out->failed = out->failed || !all;
  cuda_source_put(s, all, all ? s->kernels.n : 0, out);
  base_free(alloc, all);
}

static bool cu_exeput_stretches(const cuda_executable *exe) {
  bool some = false;
  for (uint32_t i = 0; i < exe->base.plan->n_programs && !some; i++) some = exe->codes[i].n_stretches > 0;
  return some;
}

int cuda_executable_print(const rt_executable *base, base_text *out, xlac_error *err) {
  const cuda_executable *exe = (const cuda_executable *)base;
  plan_list list;
  bool ok = plan_list_programs(exe->alloc, base->plan, &list);
  if (!exe->no_graph)
    base_putf(out, "a call is one launch of a graph of %llu node%s at most, but for the first ones%s\n",
              (unsigned long long)exe->n_nodes, base_plural(exe->n_nodes),
              exe->conditions ? "; the GPU itself decides about loops and branches" : "");
  else
    base_putf(out, "a call is not a graph: %s%s%s%s\n", exe->no_graph_op ? exe->no_graph_op->name->s : "",
              exe->no_graph_op ? " " : "", exe->no_graph, cu_exeput_stretches(exe) ? "; what is in between is" : "");
  for (uint32_t i = 0; ok && i < list.n; i++) cu_exeput_program(out, exe, list.items[i]);
  BASE_VEC_FREE(exe->alloc, &list);
  if (exe->source.kernels.n) cu_exeput_source(out, &exe->source, exe->alloc);
  return ok ? 0 : base_oom(err, "an executable's text");
}
