/* The numbers of the op rng (docs/rng.md), one after the other.
 *
 * A stream is a key, a counter, and the words of the present block that have not been used: element i
 * takes the words that follow those of element i - 1. */
#ifndef XLAC_INTERP_ALGORITHM_RNG_STREAM_H
#define XLAC_INTERP_ALGORITHM_RNG_STREAM_H

#include <assert.h>
#include <math.h>

#include "../../base/dtype.h"
#include "counter_rng.h"

typedef struct rng_stream {
  uint64_t key;
  rng_counter counter;
  uint32_t words[4];
  unsigned left; /* unused words of the present block */
} rng_stream;

static inline uint32_t rng_next32(rng_stream *s) {
  assert(s->left <= 4);
  if (s->left == 0) {
    rng_philox(s->key, s->counter, s->words);
    s->counter = rng_advance(s->counter, 1);
    s->left = 4;
  }
  return s->words[4 - s->left--];
}

/* Two words, the low one first. */
static inline uint64_t rng_next64(rng_stream *s) {
  uint64_t low = rng_next32(s);
  return low | (uint64_t)rng_next32(s) << 32;
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double rng_unit(uint64_t bits) {
  return (double)(bits >> 11) * 0x1p-53;
}

/* Box-Muller; one draw in two is thrown away so that element i depends on nothing but the stream's
 * position. 1 - unit is never 0, so the logarithm is finite. */
static inline double rng_box_muller(double unit, double turn) {
  return sqrt(-2.0 * log(1.0 - unit)) * cos(6.283185307179586 * turn);
}

/* The distribution: uniform in [low, high), or normal around `low` with deviation `high`. */
typedef struct rng_bounds {
  base_dtype type;
  bool normal;
  double low, high; /* of floats */
  int64_t from, to; /* of integers and preds */
} rng_bounds;

static inline rng_bounds rng_bounds_of(base_dtype t, bool normal, const void *low, const void *high) {
  rng_bounds b = {.type = t, .normal = normal};
  if (base_dtype_is_float(t))
    b.low = base_load_f64(t, low), b.high = base_load_f64(t, high);
  else
    b.from = base_load_i64(t, low), b.to = base_load_i64(t, high);
  return b;
}

/* Without bias to speak of: the high half of a 64 x 64 bit product. */
static inline int64_t rng_uniform_int(const rng_bounds *b, uint64_t bits) {
  uint64_t range = (uint64_t)b->to - (uint64_t)b->from;
  return (int64_t)((uint64_t)b->from + (uint64_t)((unsigned __int128)bits * range >> 64));
}
/* Preds between equal bounds, which take no bits. */
static inline bool rng_is_settled(const rng_bounds *b) {
  return b->type == XLAC_PRED && (b->from != 0) == (b->to != 0);
}

/* low + (high - low) * u in the element's type, never high itself. Rounding may reach high: then draw again, a few
 * times. */
static inline void rng_uniform_float(rng_stream *s, const rng_bounds *b, void *p) {
  for (int attempt = 0; attempt < 64; attempt++) {
    base_store_f64(b->type, p, b->low + (b->high - b->low) * rng_unit(rng_next64(s)));
    if (!(base_load_f64(b->type, p) >= b->high)) return;
  }
  base_store_f64(b->type, p, b->low);
}

/* Takes as many words as its type and distribution need, and stores one element at p. */
static inline void rng_element(rng_stream *s, const rng_bounds *b, void *p) {
  if (b->normal) {
    uint64_t unit = rng_next64(s), turn = rng_next64(s);
    base_store_f64(b->type, p, b->low + b->high * rng_box_muller(rng_unit(unit), rng_unit(turn)));
  } else if (base_dtype_is_float(b->type)) {
    rng_uniform_float(s, b, p);
  } else if (b->type == XLAC_PRED) {
    *(bool *)p = rng_is_settled(b) ? b->from != 0 : (rng_next32(s) & 1) != 0;
  } else {
    base_store_i64(b->type, p, rng_uniform_int(b, rng_next64(s)));
  }
}

#endif
