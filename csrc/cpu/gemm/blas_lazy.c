/* A BLAS that is opened when something first needs it: loading one takes longer than compiling most programs, and
 * programs without products never pay for it. Each executable has one of its own; what is opened stays in the
 * process. */
#include <pthread.h>

#include "blas.h"

/* `blas` is NULL before it is opened, and also after, where there is no library: `opened` tells the two apart. */
struct cpu_blas_lazy {
  base_alloc alloc;
  pthread_mutex_t lock;
  bool opened;
  cpu_blas *blas;
  char path[]; /* "": the usual names */
};

int cpu_blas_lazy_create(cpu_blas_lazy **out, const char *path, base_alloc alloc, xlac_error *err) {
  size_t n = path ? strlen(path) : 0;
  cpu_blas_lazy *l = base_malloc(alloc, sizeof *l + n + 1);
  if (!l) return base_oom(err, "BLAS");
  *l = (cpu_blas_lazy){.alloc = alloc};
  if (n) memcpy(l->path, path, n);
  l->path[n] = 0;
  pthread_mutex_init(&l->lock, NULL);
  *out = l;
  return 0;
}

void cpu_blas_lazy_destroy(cpu_blas_lazy *l) {
  if (!l) return;
  cpu_blas_close(l->blas, l->alloc);
  pthread_mutex_destroy(&l->lock);
  base_free(l->alloc, l);
}

/* The lock is held while the library is opened: a second caller waits for the first one's. */
int cpu_blas_lazy_get(cpu_blas_lazy *l, const cpu_blas **out, xlac_error *err) {
  int status = 0;
  *out = NULL;
  if (!l) return 0;
  pthread_mutex_lock(&l->lock);
  if (!l->opened) status = cpu_blas_open(&l->blas, l->path[0] ? l->path : NULL, l->alloc, err);
  l->opened = status == 0; /* after a failure for want of memory the next one tries again */
  *out = l->blas;
  pthread_mutex_unlock(&l->lock);
  assert(status == 0 || *out == NULL);
  return status;
}

const cpu_blas *cpu_blas_lazy_opened(cpu_blas_lazy *l) {
  if (!l) return NULL;
  pthread_mutex_lock(&l->lock);
  const cpu_blas *blas = l->blas;
  pthread_mutex_unlock(&l->lock);
  return blas;
}
