/* Kernels by their text: for whoever studies one alone. */
#include "../cpu/executable.h"
#include "../plan/report.h"
#include "api.h"

int xlac_kernel_text(const char *text, size_t n, char **out, size_t *out_n, xlac_error *err) {
  base_arena arena;
  kernel *k = NULL;
  ir_module *ops = NULL;
  base_text t;
  base_arena_init(&arena, base_alloc_libc);
  int status = kernel_parse(&k, &ops, &arena, text, n, err);
  if (status == 0) {
    base_text_init(&t, base_alloc_libc);
    kernel_put(&t, k);
    status = api_give_text(&t, out, out_n, err);
  }
  ir_module_destroy(ops);
  base_arena_free(&arena);
  return status;
}

static int kernel_run_vm(const kernel *k, base_arena *arena, const xlac_kernel_call *call, xlac_error *err) {
  cpu_vm *vm = NULL;
  base_pool *pool = NULL;
  TRY(kernel_check_memory(k, call->in_bytes, call->n_out, call->out_bytes, err));
  TRY(cpu_vm_make(k, false, arena, &vm, err));
  void *scratch = base_arena_aligned(arena, (size_t)kernel_scratch_bytes(k) + 1, 64);
  if (!scratch) return base_oom(err, "a kernel's scratch memory");
  if (call->threads > 1) TRY(base_pool_create(&pool, call->threads, base_alloc_libc, err));
  cpu_vm_run(vm, pool, call->in, call->out, scratch, false);
  base_pool_destroy(pool);
  return 0;
}

int xlac_kernel_run(const char *text, size_t n, const xlac_kernel_call *call, xlac_error *err) {
  base_arena arena;
  kernel *k = NULL;
  ir_module *ops = NULL;
  base_arena_init(&arena, base_alloc_libc);
  int status = kernel_parse(&k, &ops, &arena, text, n, err);
  if (status == 0 && call->n_in != k->n_inputs)
    status = base_fail(err, XLAC_E_ARGUMENT_COUNT, "the kernel has %u inputs, not %u", k->n_inputs, call->n_in);
  for (uint32_t i = 0; status == 0 && i < k->n_stores; i++)
    if (k->stores[i].buffer >= call->n_out)
      status =
          base_fail(err, XLAC_E_BAD_ARGUMENT, "the kernel stores to out%u of %u", k->stores[i].buffer, call->n_out);
  if (status == 0 && call->reference)
    status = kernel_eval(k, base_alloc_libc, call->in, call->in_bytes, call->out, call->out_bytes, err);
  else if (status == 0)
    status = kernel_run_vm(k, &arena, call, err);
  ir_module_destroy(ops);
  base_arena_free(&arena);
  return status;
}

static void kernel_put_step(base_text *t, const plan_program *p, uint32_t i) {
  const plan_step *s = &p->steps[i];
  base_putf(t, "// %s, step %u: %s\n", p->computation->name->s, i, s->op->name->s);
  kernel_put(t, s->kernel);
  base_putc(t, '\n');
}

int xlac_executable_kernels(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  plan_list list;
  base_text_init(&t, base_alloc_libc);
  bool ok = plan_list_programs(base_alloc_libc, cpu_executable_program(api_executable_cpu(exe)), &list);
  for (uint32_t i = 0; ok && i < list.n; i++)
    for (uint32_t j = 0; j < list.items[i]->n_steps; j++)
      if (list.items[i]->steps[j].kind == PLAN_KERNEL) kernel_put_step(&t, list.items[i], j);
  BASE_VEC_FREE(base_alloc_libc, &list);
  if (ok) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return base_oom(err, "the text of kernels");
}
