/* The kernel that sets conditions of graphs, and lists of nodes that are run by them. What the kernel calls is the
 * driver's own, which it finds for PTX. */
#include "condition.h"

static const char cu_condition_source[] =
    "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);\n"
    "extern \"C\" __global__ void __launch_bounds__(1) set(unsigned long long handle, const unsigned char *at,\n"
    "    unsigned how, unsigned index, unsigned n, const volatile unsigned *stop) {\n"
    "  unsigned value = 0;\n"
    "  if (at && how < 2) value = (*at != 0) != how;\n"
    "  if (at && how >= 2) {\n"
    "    const unsigned v = how == 2 ? *at == 0 : *(const unsigned *)at;\n"
    "    value = (v < n ? v : n - 1) == index;\n"
    "  }\n"
    "  cudaGraphSetConditional(handle, value && !*stop);\n"
    "}\n";

static cuda_result cu_condition_load(cuda_device *d, base_alloc alloc) {
  char *image = NULL;
  const cuda_compiled what = {.text = cu_condition_source, .portable = true};
  if (cuda_compile(d, &what, alloc, &image, NULL)) return CUDA_NOT_FOUND;
  cuda_result result = d->driver.cuModuleLoadData(&d->conditions, image);
  if (result != CUDA_SUCCESS) d->conditions = NULL;
  base_free(alloc, image);
  return result;
}

cuda_result cuda_condition_kernel(cuda_device *d, base_alloc alloc, cuda_function *out) {
  pthread_mutex_lock(&d->lock);
  cuda_result result = d->conditions ? CUDA_SUCCESS : cu_condition_load(d, alloc);
  pthread_mutex_unlock(&d->lock);
  return result == CUDA_SUCCESS ? d->driver.cuModuleGetFunction(out, d->conditions, "set") : result;
}

int cuda_condition_set(cuda_run *run, uint32_t number, cuda_address at, cuda_condition_how how, uint32_t index,
                       uint32_t n) {
  const uint64_t values[] = {number, at, (uint64_t)how, index, n, (uint64_t)(uintptr_t)run->stop};
  assert(run->nodes && run->stop && index < n);
  return cuda_nodes_add(run->nodes, CUDA_NODE_SET, NULL, sizeof values / sizeof *values, values)
             ? 0
             : base_oom(run->ctx.err, "a launch graph");
}

int cuda_condition_begin(cuda_run *run, uint32_t number, cuda_node_kind kind, cuda_condition_scope *scope) {
  const uint64_t values[] = {number};
  cuda_nodes *body = BASE_NEW(run->nodes->arena, cuda_nodes);
  cuda_node *node = body ? cuda_nodes_add(run->nodes, kind, NULL, 1, values) : NULL;
  if (!node) return base_oom(run->ctx.err, "a launch graph");
  *body = (cuda_nodes){.arena = run->nodes->arena, .alloc = run->nodes->alloc};
  node->body = body;
  *scope = (cuda_condition_scope){run->nodes, run->tally};
  run->nodes = body;
  return 0;
}

void cuda_condition_end(cuda_run *run, const cuda_condition_scope *scope) {
  run->nodes = scope->outer;
  run->tally = scope->tally;
}
