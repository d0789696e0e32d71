/* Kernels by their text: for whoever studies one alone. */
#include "../driver/dump.h"
#include "../driver/kernel.h"
#include "api.h"

/* Reads and prints: the kernel as the library would write it. */
int xlac_kernel_text(const char *text, size_t n, char **out, size_t *out_n, xlac_error *err) {
  base_arena arena;
  kernel *k = NULL;
  base_text t;
  base_arena_init(&arena, base_alloc_libc);
  int status = kernel_parse(&k, &arena, text, n, err);
  if (status == 0) {
    base_text_init(&t, base_alloc_libc);
    kernel_put(&t, k);
    status = api_give_text(&t, out, out_n, err);
  }
  base_arena_free(&arena);
  return status;
}

/* `reference` evaluates expression by expression, the oracle of the vector machine. Sizes of all arrays
 * are checked before anything runs, whoever wrote the text. */
int xlac_kernel_run(const char *text, size_t n, const xlac_kernel_call *call, xlac_error *err) {
  assert(call);
  base_arena arena;
  kernel *k = NULL;
  base_arena_init(&arena, base_alloc_libc);
  int status = kernel_parse(&k, &arena, text, n, err);
  if (status == 0 && call->n_in != k->n_inputs)
    status = base_fail(err, XLAC_E_ARGUMENT_COUNT, "the kernel has %u inputs, not %u", k->n_inputs, call->n_in);
  for (uint32_t i = 0; status == 0 && i < k->n_stores; i++)
    if (k->stores[i].buffer >= call->n_out)
      status =
          base_fail(err, XLAC_E_BAD_ARGUMENT, "the kernel stores to out%u of %u", k->stores[i].buffer, call->n_out);
  if (status == 0 && call->reference)
    status = kernel_eval(k, base_alloc_libc, call->in, call->in_bytes, call->out, call->out_bytes, err);
  else if (status == 0)
    status = driver_run_kernel(k, &arena, call, err);
  base_arena_free(&arena);
  return status;
}

/* Of all programs that the plan holds, nested ones too. */
int xlac_executable_kernels(const xlac_executable *exe, char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  if (driver_put_kernels(&t, api_executable_plan(exe))) return api_give_text(&t, text, n, err);
  base_text_free(&t);
  return base_oom(err, "the text of kernels");
}
