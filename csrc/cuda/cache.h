/* Machine code of kernels on disk. Any thread, any process: nothing is locked. */
#ifndef XLAC_CUDA_CACHE_H
#define XLAC_CUDA_CACHE_H

#include "../base/file.h"

enum { CUDA_CACHE_PATH = BASE_FILE_PATH + 64 };

/* The file for what this is the sum of: all that the code depends on. False: there is no cache, or no folder for it. */
bool cuda_cache_path(base_sum key, char *out, size_t room);
/* The code, the caller's, or NULL where there is none, or it is damaged. */
char *cuda_cache_read(const char *path, base_alloc alloc);
/* Leaves no file where it can't be written whole. */
void cuda_cache_write(const char *path, const char *image, size_t bytes);

#endif
