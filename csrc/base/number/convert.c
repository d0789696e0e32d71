#include <assert.h>
#include <string.h>

#include "convert_loops.h"

/* A conversion is up to three loops: from the source type to its native type, to the target's native type, to the
 * target. One loop runs straight through; more of them work on a block that stays in the nearest cache. */

enum { BLOCK = 512 };

typedef struct stage {
  base_loop loop;
  size_t bytes; /* of an element of its result */
} stage;

typedef struct route {
  stage stages[3];
  int n;
} route;

static void add_stage(route *r, base_loop loop, base_dtype result) {
  if (!loop) return;
  assert(r->n < 3);
  r->stages[r->n++] = (stage){loop, base_dtype_bytes(result)};
}

static bool is_narrow_float(base_dtype t) {
  return base_dtype_is_float(t) && base_dtype_of(t)->bits < 32;
}

static route find_route(base_dtype to, base_dtype from) {
  base_dtype near_from = base_native_type(from), near_to = base_native_type(to);
  route r = {.n = 0};
  add_stage(&r, base_widen_loop(from), near_from);
  base_loop odd = is_narrow_float(to) ? base_odd_loop(near_from) : NULL;
  if (odd)
    add_stage(&r, odd, XLAC_F32);
  else if (near_from != near_to)
    add_stage(&r, base_native_loop(near_to, near_from), near_to);
  add_stage(&r, base_narrow_loop(to, base_dtype_is_float(near_from)), to);
  return r;
}

static void run_blocks(const route *r, char *dst, const char *src, size_t src_bytes, size_t n) {
  _Alignas(64) char blocks[2][BLOCK * 8];
  size_t dst_bytes = r->stages[r->n - 1].bytes;
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t m = n - at < BLOCK ? n - at : BLOCK;
    const char *p = src + at * src_bytes;
    for (int i = 0; i < r->n; ++i) {
      char *q = i == r->n - 1 ? dst + at * dst_bytes : blocks[i];
      assert(i == r->n - 1 || r->stages[i].bytes <= 8);
      r->stages[i].loop(q, p, m);
      p = q;
    }
  }
}

/* Not zero in either part. */
static void complex_to_pred(char *dst, base_dtype from, const char *src, size_t n) {
  size_t bytes = base_dtype_bytes(from);
  base_dtype part = base_dtype_real_part(from);
  for (size_t i = 0; i < n; ++i) {
    uint8_t parts[2];
    base_native_loop(XLAC_PRED, part)(parts, src + i * bytes, 2);
    dst[i] = (char)(parts[0] | parts[1]);
  }
}

static bool is_complex(base_dtype t) {
  return base_dtype_of(t)->kind == BASE_KIND_COMPLEX;
}

void base_convert(base_dtype to, void *dst, base_dtype from, const void *src, size_t n) {
  assert(to > BASE_DTYPE_INVALID && to < BASE_DTYPE_COUNT && from > BASE_DTYPE_INVALID && from < BASE_DTYPE_COUNT);
  if (n == 0) return;
  if (to == from) {
    memmove(dst, src, n * base_dtype_bytes(to));
  } else if (is_complex(to) && is_complex(from)) {
    base_native_loop(base_dtype_real_part(to), base_dtype_real_part(from))(dst, src, 2 * n);
  } else if (is_complex(from) && to == XLAC_PRED) {
    complex_to_pred(dst, from, src, n);
  } else {
    route r = find_route(to, from);
    assert(r.n > 0);
    if (r.n == 1)
      r.stages[0].loop(dst, src, n);
    else
      run_blocks(&r, dst, src, base_dtype_bytes(from), n);
  }
}

static uint32_t load_code(const void *p, size_t bytes) {
  if (bytes == 1) return *(const base_loose_u8 *)p;
  return bytes == 2 ? *(const base_loose_u16 *)p : *(const base_loose_u32 *)p;
}

double base_load_f64(base_dtype t, const void *p) {
  if (base_dtype_is_float(t) && t != XLAC_F64) return base_float_to_f64(t, load_code(p, base_dtype_bytes(t)));
  double v;
  base_convert(XLAC_F64, &v, t, p, 1);
  return v;
}

int64_t base_load_i64(base_dtype t, const void *p) {
  int64_t v;
  base_convert(XLAC_S64, &v, t, p, 1);
  return v;
}

void base_store_f64(base_dtype t, void *p, double v) {
  base_convert(t, p, XLAC_F64, &v, 1);
}

void base_store_i64(base_dtype t, void *p, int64_t v) {
  base_convert(t, p, XLAC_S64, &v, 1);
}
