/* Times of a call's steps, by events of the driver's between them: the GPU's own clock. */
#include "run.h"

/* One more event than there are steps. */
int cuda_profile_begin(cuda_run *run, const plan_program *p) {
  run->marks = base_arena_zalloc(&run->arena, (p->n_steps + (size_t)1) * sizeof *run->marks);
  if (!run->marks) return base_oom(run->ctx.err, "a profile");
  run->marked = p;
  for (uint32_t i = 0; i <= p->n_steps; i++)
    TRY(cuda_check(&run->device->driver, run->device->driver.cuEventCreate(&run->marks[i], 0), "making an event",
                   run->ctx.err));
  return 0;
}

int cuda_profile_mark(cuda_run *run, const plan_program *p, uint32_t step) {
  if (run->marked != p) return 0;
  return cuda_check(&run->device->driver, run->device->driver.cuEventRecord(run->marks[step], run->stream),
                    "recording an event", run->ctx.err);
}

/* Nanoseconds between two marks; 0 where the driver can't say. */
static double cu_profile_time(const cuda_run *run, uint32_t from, uint32_t to) {
  float milliseconds = 0;
  if (run->device->driver.cuEventElapsedTime(&milliseconds, run->marks[from], run->marks[to])) return 0;
  return 1e6 * (double)milliseconds;
}

void cuda_profile_put(const cuda_run *run, const rt_trace *trace, double seconds) {
  uint32_t n = run->marked ? run->marked->n_steps : 0;
  base_putf(trace->json, "{\"ns\": %.0f, \"cut\": false, \"ran\": {\"kernels\": %llu, \"groups\": 0, \"lists\": 0, ",
            1e9 * seconds, (unsigned long long)run->n_kernels);
  base_putf(trace->json, "\"loops\": %llu}, \"units\": [], \"steps\": [", (unsigned long long)run->n_loops);
  for (uint32_t i = 0; i < n; i++)
    base_putf(trace->json, "%s[0, %u, 1, %.0f]", i ? ", " : "", (unsigned)i, cu_profile_time(run, i, i + 1));
  BASE_PUT(trace->json, "], \"events\": [");
  for (uint32_t i = 0; i < n; i++)
    base_putf(trace->json, "%s[0, %u, 0, %.0f, %.0f%s]", i ? ", " : "", (unsigned)i, cu_profile_time(run, 0, i),
              cu_profile_time(run, i, i + 1), trace->kind == RT_TRACE_LANES ? ", 0, 0, 0" : "");
  BASE_PUT(trace->json, "]}");
}

void cuda_profile_end(cuda_run *run) {
  for (uint32_t i = 0; run->marks && i <= run->marked->n_steps; i++)
    if (run->marks[i]) run->device->driver.cuEventDestroy_v2(run->marks[i]);
}
