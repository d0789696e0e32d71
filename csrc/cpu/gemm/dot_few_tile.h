/* Included once for each type and CPU: the tiles of dot_few.c, of 8, 4, 2 and 1 rows by two vectors. FEW_NAME(rows)
 * names them, FEW_T is the element, FEW_VEC the vector, FEW_MADD(a, b, s) is s + a * b, FEW_TARGET the function's
 * target. */

/* Sums over k steps: A has `rows` elements a step, B's rows are `step` elements apart, C's `line`. first: the sums
 * begin at zero, else at what C has. `ahead`: where B's row is fetched that is used later, in elements from the
 * one that is used now. */
#define FEW_TILE(rows)                                                                                     \
  FEW_TARGET static void FEW_NAME(rows)(int64_t k, const void *a_, const void *b_, int64_t step, void *c_, \
                                        int64_t line, bool first, int64_t ahead) {                         \
    enum { LANES = sizeof(FEW_VEC) / sizeof(FEW_T) };                                                      \
    typedef FEW_VEC loose __attribute__((aligned(1), may_alias));                                          \
    const FEW_T *a = a_, *b = b_;                                                                          \
    FEW_T *c = c_;                                                                                         \
    FEW_VEC s[rows][2];                                                                                    \
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                               \
      s[i][0] = s[i][1] = (FEW_VEC){0};                                                                    \
      if (first) continue;                                                                                 \
      s[i][0] = *(const loose *)(const void *)(c + i * line);                                              \
      s[i][1] = *(const loose *)(const void *)(c + i * line + LANES);                                      \
    }                                                                                                      \
    for (int64_t p = 0; p < k; p++, a += rows, b += step) {                                                \
      FEW_VEC x = *(const loose *)(const void *)b, y = *(const loose *)(const void *)(b + LANES);          \
      __builtin_prefetch(b + ahead);                                                                       \
      __builtin_prefetch(b + ahead + LANES);                                                               \
      _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                             \
        FEW_VEC v = a[i] - (FEW_VEC){0};                                                                   \
        s[i][0] = FEW_MADD(v, x, s[i][0]);                                                                 \
        s[i][1] = FEW_MADD(v, y, s[i][1]);                                                                 \
      }                                                                                                    \
    }                                                                                                      \
    _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                               \
      *(loose *)(void *)(c + i * line) = s[i][0];                                                          \
      *(loose *)(void *)(c + i * line + LANES) = s[i][1];                                                  \
    }                                                                                                      \
  }
#ifdef FEW_EIGHT
FEW_TILE(8)
#endif
FEW_TILE(4)
FEW_TILE(2)
FEW_TILE(1)
#undef FEW_TILE
#undef FEW_NAME
#undef FEW_T
#undef FEW_VEC
#undef FEW_MADD
