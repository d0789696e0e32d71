/* Whole files, of folders that several processes use at once. Any thread: nothing is locked. */
#ifndef XLAC_BASE_FILE_H
#define XLAC_BASE_FILE_H

#include "str.h"

enum { BASE_FILE_PATH = 1024 };

/* A number of 128 bits of what the bytes are; near ones differ in half of its bits. No protection against somebody who
 * looks for two of the same number. Bytes in pieces: the number so far goes in, {0, 0} first. */
typedef struct base_sum {
  uint64_t a, b;
} base_sum;
base_sum base_sum_of(base_sum so_far, const void *bytes, size_t n);

/* A folder of the user's for files that can be made again: what `given` names; else, and where that is NULL, `kind` in
 * xlac's folder below XDG_CACHE_HOME or HOME. False where there is none, or no room in `out`. */
bool base_file_cache_folder(const char *given, const char *kind, char out[BASE_FILE_PATH]);

/* The folder and those it lies in, for this user alone where they are new. 0, or the errno. */
int base_file_make_folder(const char *path);
/* All of a file that this user owns and nobody else may write; EPERM for others, EFBIG past 4 GB. 0 and the bytes,
 * freed with base_free, or the errno. */
int base_file_read(const char *path, base_alloc alloc, char **bytes, size_t *n);
/* A file of these parts, one after the other. It is written beside its place and then put there, so readers find a
 * whole one or none. 0, or the errno; then nothing is left. */
int base_file_write(const char *path, uint32_t n_parts, const base_slice *parts);

#endif
