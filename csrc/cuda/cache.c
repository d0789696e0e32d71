/* Machine code of kernels on disk, so that a program is compiled once per machine. A file is written beside its place
 * and then put there, so that readers find a whole one or none; what it holds is checked by a sum. Whatever goes wrong
 * here, kernels are compiled as if there were no file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cache.h"

static const char cu_cache_magic[8] = "xlacCU1";

/* What stands before the code. */
typedef struct cu_cache_head {
  char magic[8];
  uint64_t bytes, sum;
} cu_cache_head;

static uint64_t cu_cache_mix(uint64_t h, const void *at, size_t n) {
  const unsigned char *p = at;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

/* --- where --- */

/* The folder and those it lies in, for this user alone. */
static bool cu_cache_make_folder(char *path) {
  for (char *at = path + 1; *at; at++) {
    if (*at != '/') continue;
    *at = 0;
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    *at = '/';
    if (!made) return false;
  }
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* XLAC_CUDA_CACHE names it; "" means none. A driver that somebody chose has machine code of its own. */
static bool cu_cache_folder(char *out, size_t room) {
  const char *given = getenv("XLAC_CUDA_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"),
             *driver = getenv("XLAC_CUDA_DRIVER");
  int n = 0;
  if (given)
    n = snprintf(out, room, "%s", given);
  else if (driver && *driver)
    return false;
  else if (cache && *cache)
    n = snprintf(out, room, "%s/xlac/cuda", cache);
  else if (home && *home)
    n = snprintf(out, room, "%s/.cache/xlac/cuda", home);
  return n > 0 && (size_t)n < room && cu_cache_make_folder(out);
}

bool cuda_cache_path(const char *source, const char *how, char *out, size_t room) {
  char folder[CUDA_CACHE_PATH - 64];
  size_t n = strlen(source), m = strlen(how);
  uint64_t a = cu_cache_mix(cu_cache_mix(0xcbf29ce484222325u, how, m + 1), source, n),
           b = cu_cache_mix(cu_cache_mix(0x9e3779b97f4a7c15u, source, n + 1), how, m);
  if (!cu_cache_folder(folder, sizeof folder)) return false;
  int written = snprintf(out, room, "%s/%016llx%016llx.cubin", folder, (unsigned long long)a, (unsigned long long)b);
  return written > 0 && (size_t)written < room;
}

/* --- files --- */

static bool cu_cache_move(int file, bool writes, void *at, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t m = writes ? write(file, (char *)at + done, n - done) : read(file, (char *)at + done, n - done);
    if (m < 0 && errno == EINTR) continue;
    if (m <= 0) return false;
    done += (size_t)m;
  }
  return true;
}

/* The code of an open file; NULL where it isn't whole. */
static char *cu_cache_take(int file, base_alloc alloc) {
  cu_cache_head head;
  struct stat about;
  if (!cu_cache_move(file, false, &head, sizeof head) || memcmp(head.magic, cu_cache_magic, sizeof head.magic) != 0)
    return NULL;
  if (fstat(file, &about) || (uint64_t)about.st_size != head.bytes + sizeof head) return NULL;
  char *image = base_malloc(alloc, (size_t)head.bytes);
  if (!image) return NULL;
  if (cu_cache_move(file, false, image, (size_t)head.bytes) &&
      cu_cache_mix(head.bytes, image, (size_t)head.bytes) == head.sum)
    return image;
  base_free(alloc, image);
  return NULL;
}

char *cuda_cache_read(const char *path, base_alloc alloc) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return NULL;
  char *image = cu_cache_take(file, alloc);
  close(file);
  return image;
}

void cuda_cache_write(const char *path, char *image, size_t bytes) {
  char part[CUDA_CACHE_PATH + 64];
  cu_cache_head head = {.bytes = bytes, .sum = cu_cache_mix(bytes, image, bytes)};
  assert(bytes > 0);
  memcpy(head.magic, cu_cache_magic, sizeof head.magic);
  int n = snprintf(part, sizeof part, "%s.%ld.%p", path, (long)getpid(), (void *)image);
  int file = n > 0 && (size_t)n < sizeof part ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  bool whole = cu_cache_move(file, true, &head, sizeof head) && cu_cache_move(file, true, image, bytes);
  whole = close(file) == 0 && whole;
  if (!whole || rename(part, path)) unlink(part);
}
