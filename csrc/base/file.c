/* Whole files: read with a look at who could have written them, written beside their place and then put there. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../include/xlac.h"

/* --- sums --- */

/* One to one in the state and in the word, so one changed word always shows. */
static uint64_t sum_mix(uint64_t h, uint64_t word, uint64_t by) {
  h = (h ^ word) * by;
  return h ^ h >> 29;
}

base_sum base_sum_of(base_sum so_far, const void *bytes, size_t n) {
  const unsigned char *p = bytes;
  uint64_t a = so_far.a ^ n, b = so_far.b + n;
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = 0;
    if (n - i < 8)
      memcpy(&word, p + i, n - i);
    else
      memcpy(&word, p + i, 8);
    a = sum_mix(a, word, 0x9e3779b97f4a7c15u);
    b = sum_mix(b, word, 0xff51afd7ed558ccdu);
  }
  a = sum_mix(a, b, 0xc4ceb9fe1a85ec53u); /* b meets the new a: of both old ones, alike differences would cancel out */
  return (base_sum){a, sum_mix(b, a, 0xd6e8feb86659fd93u)};
}

/* --- folders --- */

bool base_file_cache_folder(const char *given, const char *kind, char out[BASE_FILE_PATH]) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = 0;
  if (given)
    n = snprintf(out, BASE_FILE_PATH, "%s", given);
  else if (cache && *cache)
    n = snprintf(out, BASE_FILE_PATH, "%s/xlac/%s", cache, kind);
  else if (home && *home)
    n = snprintf(out, BASE_FILE_PATH, "%s/.cache/xlac/%s", home, kind);
  return n > 0 && n < BASE_FILE_PATH;
}

int base_file_make_folder(const char *path) {
  char part[BASE_FILE_PATH];
  size_t n = strlen(path);
  if (n == 0 || n >= sizeof part) return ENAMETOOLONG;
  memcpy(part, path, n + 1);
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i]) continue;
    part[i] = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) return errno;
    part[i] = path[i];
  }
  return 0;
}

/* --- files --- */

/* 0, or the errno. */
static int file_move(int file, bool writes, void *at, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t m = writes ? write(file, (char *)at + done, n - done) : read(file, (char *)at + done, n - done);
    if (m < 0 && errno == EINTR) continue;
    if (m <= 0) return m ? errno : EIO;
    done += (size_t)m;
  }
  return 0;
}

/* Of an open file. */
static int file_take(int file, base_alloc alloc, char **bytes, size_t *n) {
  struct stat about;
  if (fstat(file, &about)) return errno;
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH))) return EPERM;
  if (about.st_size < 0 || about.st_size > UINT32_MAX) return EFBIG;
  char *all = base_malloc(alloc, (size_t)about.st_size);
  if (!all) return ENOMEM;
  int status = file_move(file, false, all, (size_t)about.st_size);
  if (status) {
    base_free(alloc, all);
    return status;
  }
  *bytes = all;
  *n = (size_t)about.st_size;
  return 0;
}

int base_file_read(const char *path, base_alloc alloc, char **bytes, size_t *n) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) return errno;
  int status = file_take(file, alloc, bytes, n);
  close(file);
  return status;
}

int base_file_write(const char *path, uint32_t n_parts, const base_slice *parts) {
  char beside[BASE_FILE_PATH + 64];
  int n = snprintf(beside, sizeof beside, "%s.%ld.%p", path, (long)getpid(), (void *)&n);
  if (n < 0 || (size_t)n >= sizeof beside) return ENAMETOOLONG;
  int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), status = 0;
  if (file < 0) return errno;
  for (uint32_t i = 0; i < n_parts && !status; i++)
    status = file_move(file, true, (void *)(uintptr_t)parts[i].p, parts[i].n);
  if (close(file) && !status) status = errno;
  if (!status && rename(beside, path)) status = errno;
  if (status) unlink(beside);
  return status;
}
