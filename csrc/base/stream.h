/* Copies past the cache. */
#ifndef XLAC_BASE_STREAM_H
#define XLAC_BASE_STREAM_H

#include <stddef.h>

/* n bytes to memory, best 64 bytes at a time; others see them once base_end_stream was called by the same thread. */
void base_stream(void *to, const void *from, size_t n);
void base_end_stream(void);

#endif
