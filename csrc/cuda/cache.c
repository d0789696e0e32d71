/* Machine code of kernels on disk, so that a program is compiled once per machine. A file's first bytes say what it is
 * and have a sum of the rest. Whatever goes wrong here, kernels are compiled as if there were no file. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>

/* What stands before the code. */
typedef struct cu_cache_head {
  char magic[8];
  base_sum sum;
} cu_cache_head;

static cu_cache_head cu_cache_head_of(const char *image, size_t bytes) {
  return (cu_cache_head){"xlacCU2", base_sum_of((base_sum){0}, image, bytes)};
}

/* XLAC_CUDA_CACHE names it; "" means none. A driver that somebody chose has machine code of its own. */
static bool cu_cache_folder(char out[BASE_FILE_PATH]) {
  const char *given = getenv("XLAC_CUDA_CACHE"), *driver = getenv("XLAC_CUDA_DRIVER");
  if (!given && driver && *driver) return false;
  return base_file_cache_folder(given, "cuda", out) && base_file_make_folder(out) == 0;
}

bool cuda_cache_path(base_sum key, char *out, size_t room) {
  char folder[BASE_FILE_PATH];
  if (!cu_cache_folder(folder)) return false;
  int written =
      snprintf(out, room, "%s/%016llx%016llx.cubin", folder, (unsigned long long)key.a, (unsigned long long)key.b);
  return written > 0 && (size_t)written < room;
}

char *cuda_cache_read(const char *path, base_alloc alloc) {
  char *all = NULL;
  size_t n = 0;
  cu_cache_head head;
  if (base_file_read(path, alloc, &all, &n)) return NULL;
  if (n > sizeof head) {
    head = cu_cache_head_of(all + sizeof head, n - sizeof head);
    if (memcmp(&head, all, sizeof head) == 0) return memmove(all, all + sizeof head, n - sizeof head);
  }
  base_free(alloc, all);
  return NULL;
}

void cuda_cache_write(const char *path, const char *image, size_t bytes) {
  assert(bytes > 0);
  cu_cache_head head = cu_cache_head_of(image, bytes);
  const base_slice parts[] = {{(const char *)&head, sizeof head}, {image, bytes}};
  (void)base_file_write(path, 2, parts);
}
