/* Custom calls of the tests, by test_native_calls.py. */
#include "xlac_ffi.h"

/* The frame as text in a result of u8, so that Python can look at it. */
#include <stdio.h>

static int put_attr(char *to, size_t room, const xlac_ffi_attr *a) {
  int n = snprintf(to, room, "%s=%u:%u:", a->name, a->kind, a->dtype);
  switch (a->kind) {
    case XLAC_FFI_BOOL:
    case XLAC_FFI_INT:
      return n + snprintf(to + n, room - (size_t)n, "%lld;", (long long)a->i);
    case XLAC_FFI_FLOAT:
      return n + snprintf(to + n, room - (size_t)n, "%.17g;", a->f);
    case XLAC_FFI_ARRAY:
      n += snprintf(to + n, room - (size_t)n, "%llu:", (unsigned long long)a->n);
      if (a->dtype == XLAC_FFI_S32)
        for (uint64_t i = 0; i < a->n; i++)
          n += snprintf(to + n, room - (size_t)n, "%d,", ((const int32_t *)a->array)[i]);
      if (a->dtype == XLAC_FFI_S64)
        for (uint64_t i = 0; i < a->n; i++)
          n += snprintf(to + n, room - (size_t)n, "%lld,", (long long)((const int64_t *)a->array)[i]);
      if (a->dtype == XLAC_FFI_F64)
        for (uint64_t i = 0; i < a->n; i++)
          n += snprintf(to + n, room - (size_t)n, "%g,", ((const double *)a->array)[i]);
      return n + snprintf(to + n, room - (size_t)n, ";");
    case XLAC_FFI_DICT:
      n += snprintf(to + n, room - (size_t)n, "{");
      for (uint64_t i = 0; i < a->n; i++) n += put_attr(to + n, room - (size_t)n, &a->dict[i]);
      return n + snprintf(to + n, room - (size_t)n, "};");
    default:
      return n + snprintf(to + n, room - (size_t)n, "%.*s;", (int)a->n, a->s);
  }
}

static int put_buffer(char *to, size_t room, const xlac_ffi_buffer *b) {
  int n = snprintf(to, room, "[%u:", b->dtype);
  for (uint32_t d = 0; d < b->rank; d++)
    n += snprintf(to + n, room - (size_t)n, "%lld@%lld,", (long long)b->dims[d], (long long)b->minor_to_major[d]);
  return n + snprintf(to + n, room - (size_t)n, "%lld %llu %d]", (long long)b->count, (unsigned long long)b->bytes,
                      b->data != NULL);
}

int describe(xlac_ffi_frame *f) {
  const xlac_ffi_buffer *out = &f->results[f->n_results - 1];
  char *text = out->data;
  size_t room = (size_t)out->bytes, n = 0;
  for (uint32_t i = 0; i < f->n_results; i++)
    if (f->results[i].data) memset(f->results[i].data, 0, (size_t)f->results[i].bytes);
  n += (size_t)snprintf(text, room, "%d %s %s opaque=%s:%llu ",
                        f->struct_size == sizeof *f && f->version == XLAC_FFI_VERSION, f->target, f->op, f->opaque,
                        (unsigned long long)f->opaque_size);
  for (uint32_t i = 0; i < f->n_operands; i++) n += (size_t)put_buffer(text + n, room - n, &f->operands[i]);
  n += (size_t)snprintf(text + n, room - n, "->");
  for (uint32_t i = 0; i < f->n_results; i++) n += (size_t)put_buffer(text + n, room - n, &f->results[i]);
  n += (size_t)snprintf(text + n, room - n, " ");
  for (uint32_t i = 0; i < f->n_attrs; i++) n += (size_t)put_attr(text + n, room - n, &f->attrs[i]);
  return 0;
}

/* Bytes as stored. */
int copy(xlac_ffi_frame *f) {
  for (uint32_t i = 0; i < f->n_results && i < f->n_operands; i++)
    if (f->results[i].bytes) memcpy(f->results[i].data, f->operands[i].data, (size_t)f->results[i].bytes);
  return 0;
}

/* Adds 1 to what is in the result already. */
int increment(xlac_ffi_frame *f) {
  float *y = f->results[0].data;
  for (int64_t i = 0; i < f->results[0].count; i++) y[i] += 1;
  return 0;
}

int refuse(xlac_ffi_frame *f) {
  (void)f->fail(f, "no %s today, %d", "luck", 7);
  return f->fail(f, "the second word does not count");
}

int say_nothing(xlac_ffi_frame *f) {
  (void)f;
  return 5;
}

typedef struct sum_work {
  xlac_ffi_frame *f;
  const double *x;
  double *parts;
} sum_work;

static void sum_piece(void *ctx, uint64_t begin, uint64_t end) {
  sum_work *w = ctx;
  double *own = w->f->allocate(w->f, 64), s = 0;
  if (!own || (uintptr_t)own % 64) {
    (void)w->f->fail(w->f, "no memory");
    return;
  }
  for (uint64_t i = begin; i < end; i++) s += w->x[i];
  *own = s;
  w->parts[begin / 100] = *own;
}

/* The sum of x and the address in user. */
int sum(xlac_ffi_frame *f) {
  uint64_t n = (uint64_t)f->operands[0].count, pieces = (n + 99) / 100;
  double *parts = f->allocate(f, pieces * sizeof *parts), *y = f->results[0].data;
  sum_work w = {f, f->operands[0].data, parts};
  if (!parts) return f->fail(f, "no memory");
  f->parallel_for(f, n, 100, sum_piece, &w);
  *y = f->user ? *(const double *)f->user : 0;
  for (uint64_t i = 0; i < pieces; i++) *y += parts[i];
  return f->n_threads < 1;
}

/* Waits to be stopped. */
int wait_for_it(xlac_ffi_frame *f) {
  while (!f->interrupted(f)) continue;
  return f->fail(f, "stopped");
}

double constant_of_the_tests = 0.25;
