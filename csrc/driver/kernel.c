#include "kernel.h"

#include "../cpu/vm/vm.h"

/* Shapes are checked against the memory first: a kernel's text may be anybody's. */
int driver_run_kernel(const kernel *k, base_arena *arena, const xlac_kernel_call *call, xlac_error *err) {
  cpu_vm *vm = NULL;
  rt_pool *pool = NULL;
  cpu_native_store *code = NULL;
  assert(call->n_in == k->n_inputs);
  TRY(kernel_check_memory(k, call->in_bytes, call->n_out, call->out_bytes, err));
  TRY(cpu_vm_make(k, false, arena, &vm, err));
  void *scratch = base_arena_aligned(arena, (size_t)kernel_scratch_bytes(k) + 1, 64);
  if (!scratch) return base_oom(err, "a kernel's scratch memory");
  if (call->threads > 1) TRY(rt_pool_create(&pool, call->threads, base_alloc_libc, err));
  int status = cpu_native_store_create(base_alloc_libc, &code, err);
  if (status == 0) {
    cpu_vm_set_native(vm, cpu_native_make(code, k, arena));
    cpu_native_store_seal(code);
    cpu_vm_run(vm, pool, call->in, call->out, scratch, false);
  }
  cpu_native_store_destroy(code);
  rt_pool_destroy(pool);
  return status;
}
