/* No include guard: loops of 32-bit integers with a number for an operand; signed ones have the same bits. The includer
 * defines FAST(name), a function's name. */
#if defined(__clang__)
#define FAST_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define FAST_LANES _Pragma("GCC ivdep")
#endif

/* Lanes x with a number y; arithmetic wraps. */
#define FAST_INT(name, expr)                                            \
  static void FAST(name)(int64_t n, const void *const *in, void *out) { \
    const uint32_t *a = in[0], y = *(const uint32_t *)in[1];            \
    uint32_t *r = out;                                                  \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                        \
      uint32_t x = a[i];                                                \
      r[i] = expr;                                                      \
    }                                                                   \
  }
FAST_INT(add, x + y)
FAST_INT(multiply, x *y)
FAST_INT(subtract, x - y)
FAST_INT(from, y - x)
FAST_INT(and, x &y)
FAST_INT(or, x | y)
FAST_INT(xor, x ^ y)

/* A shift by the width or more leaves nothing. */
#define FAST_SHIFT(name, shift)                                         \
  static void FAST(name)(int64_t n, const void *const *in, void *out) { \
    const uint32_t *a = in[0], by = *(const uint32_t *)in[1];           \
    uint32_t *r = out, y = by & 31, mask = by < 32 ? UINT32_MAX : 0;    \
    FAST_LANES for (int64_t i = 0; i < n; i++) {                        \
      uint32_t x = a[i];                                                \
      r[i] = (shift) & mask;                                            \
    }                                                                   \
  }
FAST_SHIFT(left, x << y)
FAST_SHIFT(right, x >> y)

vm_fast_fn *const FAST(table)[VM_FAST_INT] = {FAST(add), FAST(multiply), FAST(subtract), FAST(from), FAST(and),
                                              FAST(or),  FAST(xor),      FAST(left),     FAST(right)};

#undef FAST_LANES
#undef FAST_INT
#undef FAST_SHIFT
#undef FAST
