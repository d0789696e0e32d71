/* No include guard: sin, cos and tan of f32. Most arguments need no more of pi than math_reduced_f32 takes; blocks that
 * have others take the generated loop, whose bits are the same. loops_float.c defines LOOPS_SUFFIX. */
#define TURN_LOOP(code, near)                                                                                \
  static void LOOPS_SUFFIX(turn_##code)(const scalar_loop *l, int64_t n, const void *const *in, void *out) { \
    for (int64_t at = 0; at < n; at += TURN_BLOCK) {                                                         \
      const float *x = (const float *)in[0] + at;                                                            \
      const void *part = x;                                                                                  \
      float *r = (float *)out + at;                                                                          \
      int64_t m = n - at < TURN_BLOCK ? n - at : TURN_BLOCK;                                                 \
      uint32_t most = 0;                                                                                     \
      for (int64_t i = 0; i < m; i++) {                                                                      \
        uint32_t size = base_f32_bits(x[i]) & 0x7FFFFFFF;                                                    \
        most = size > most ? size : most;                                                                    \
      }                                                                                                      \
      if (most >= MATH_NEAR_BITS)                                                                            \
        LOOPS_SUFFIX(f32_##code)(l, m, &part, r);                                                            \
      else                                                                                                   \
        TURN_LANES for (int64_t i = 0; i < m; i++) r[i] = near(x[i]);                                        \
    }                                                                                                        \
  }
#if defined(__clang__)
/* Lanes are independent, as in loops_gen.h. */
#define TURN_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define TURN_LANES _Pragma("GCC ivdep")
#endif
/* Large enough that finding the largest argument costs little, small enough that one far argument slows
 * down few. */
#define TURN_BLOCK 256
TURN_LOOP(SINE, math_sin_near_f32)
TURN_LOOP(COSINE, math_cos_near_f32)
TURN_LOOP(TAN, math_tan_near_f32)
scalar_loop_fn *const LOOPS_SUFFIX(scalar_loops_turn)[3] = {LOOPS_SUFFIX(turn_SINE), LOOPS_SUFFIX(turn_COSINE),
                                                            LOOPS_SUFFIX(turn_TAN)};
#undef TURN_LOOP
#undef TURN_LANES
#undef TURN_BLOCK
