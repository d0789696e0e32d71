/* The compiled executor's built-in custom calls, for the interpreter. */
#include <pthread.h>

#include "lapack.h"

struct cpu_natives {
  base_alloc alloc;
  const char *blas_path;
  pthread_mutex_t lock;
  bool opened;
  cpu_blas *blas;
};

int cpu_natives_create(cpu_natives **out, const char *blas_path, base_alloc alloc, xlac_error *err) {
  cpu_natives *n = base_malloc(alloc, sizeof *n);
  if (!n) return base_oom(err, "custom calls");
  *n = (cpu_natives){.alloc = alloc, .blas_path = blas_path};
  pthread_mutex_init(&n->lock, NULL);
  *out = n;
  return 0;
}

void cpu_natives_destroy(cpu_natives *n) {
  if (!n) return;
  cpu_blas_close(n->blas, n->alloc);
  pthread_mutex_destroy(&n->lock);
  base_free(n->alloc, n);
}

bool cpu_natives_find(void *ctx, const char *target, interp_native *out) {
  cpu_natives *n = ctx;
  if (strncmp(target, "lapack_", 7) != 0) return cpu_native_find(NULL, target, out);
  pthread_mutex_lock(&n->lock);
  if (!n->opened && cpu_blas_open(&n->blas, n->blas_path, n->alloc, NULL) != 0) n->blas = NULL;
  n->opened = true;
  pthread_mutex_unlock(&n->lock);
  return cpu_native_find(n->blas, target, out);
}
