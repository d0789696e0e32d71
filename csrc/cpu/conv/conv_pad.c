/* The padded copy: rows of the last dimension, each filled by one thread. */
#include "conv.h"

/* Elements for a thread at a time. */
enum { PAD_GRAIN = 1 << 14 };

/* What all threads that fill one copy share. */
typedef struct conv_pad_run {
  const cpu_conv_pad *p;
  const char *from;
  char *to;
} conv_pad_run;

/* The elements of the input that fall into the copy along dimension d: [*begin, *end). */
static void conv_pad_range(const cpu_conv_pad *p, uint32_t d, int64_t *begin, int64_t *end) {
  *begin = p->low[d] < 0 ? (-p->low[d] + p->step[d] - 1) / p->step[d] : 0;
  *end = p->low[d] >= p->out[d] ? 0 : (p->out[d] - 1 - p->low[d]) / p->step[d] + 1;
  if (*end > p->in[d]) *end = p->in[d];
  if (*end < *begin) *end = *begin;
}

/* The input row for row number `row` of the copy; -1 for zeros. */
static int64_t pad_source(const cpu_conv_pad *p, int64_t row) {
  assert(p->rank > 0 && row >= 0);
  int64_t at = 0;
  for (uint32_t d = p->rank - 1; d-- > 0; row /= p->out[d]) {
    int64_t e = row % p->out[d] - p->low[d];
    if (e < 0 || e % p->step[d] != 0 || e / p->step[d] >= p->in[d]) return -1;
    at += e / p->step[d] * p->in_stride[d];
  }
  return at;
}

/* Rows are written whole: with zeros first, unless the input fills all of it. */
static void pad_rows(void *ctx, size_t begin, size_t end) {
  const conv_pad_run *r = ctx;
  const cpu_conv_pad *p = r->p;
  uint32_t last = p->rank - 1;
  size_t to = base_dtype_bytes(p->to), from = base_dtype_bytes(p->from), row_bytes = (size_t)p->out[last] * to;
  int64_t first = 0, stop = 0, step = p->step[last];
  conv_pad_range(p, last, &first, &stop);
  for (size_t row = begin; row < end; row++) {
    char *out = r->to + row * row_bytes;
    int64_t source = pad_source(p, (int64_t)row);
    /* Zeros where the input has nothing to say. */
    if (source < 0 || stop - first < p->out[last]) memset(out, 0, row_bytes);
    if (source < 0 || stop == first) continue;
    const char *in = r->from + (size_t)(source + first) * from;
    out += (size_t)(p->low[last] + first * step) * to;
    if (step == 1)
      base_convert(p->to, out, p->from, in, (size_t)(stop - first));
    else
      for (int64_t i = 0; i < stop - first; i++)
        base_convert(p->to, out + (size_t)(i * step) * to, p->from, in + (size_t)i * from, 1);
  }
}

void cpu_conv_pad_run(const cpu_conv_pad *p, rt_pool *pool, const void *from, void *to) {
  conv_pad_run r = {p, from, to};
  assert(p->rank > 0);
  if (p->count == 0) return;
  int64_t length = p->out[p->rank - 1];
  rt_parallel_for(pool, (size_t)(p->count / length), (size_t)(PAD_GRAIN / length + 1), pad_rows, &r);
}
