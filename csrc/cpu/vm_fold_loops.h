/* No include guard: the folds of one type (vm_fold.h). The includer defines T, U, an unsigned integer of T's size, INF,
 * the bits of infinity, and FOLD(name), a function's name. Vectors are of 64 bytes whatever the instruction set, two at
 * a time. */
typedef T FOLD(vec) __attribute__((vector_size(64), aligned(8), may_alias));
typedef U FOLD(bits) __attribute__((vector_size(64), aligned(8), may_alias));
enum { FOLD(half) = 64 / sizeof(T), FOLD(lanes) = 128 / sizeof(T) };

/* Lanes of a block into those of what came before, and those into one. */
#define FOLD_REST(name, op)                                                        \
  static void FOLD(name##_into)(int64_t n, const T *x, T *acc, int64_t *valid) {   \
    for (int64_t j = 0; j < n; j++) acc[j] = j < *valid ? op(acc[j], x[j]) : x[j]; \
    if (n > *valid) *valid = n;                                                    \
  }                                                                                \
  static void FOLD(name##_last)(int64_t valid, void *lanes) {                      \
    T *acc = lanes;                                                                \
    for (int64_t low = 0; valid > 1; valid = low) {                                \
      low = (valid + 1) / 2;                                                       \
      for (int64_t j = 0; j < valid - low; j++) acc[j] = op(acc[j], acc[low + j]); \
    }                                                                              \
  }

/* Sums and products. */
#define FOLD_SUM(name, op, OP)                                                       \
  FOLD_REST(name, op)                                                                \
  static void FOLD(name)(int64_t n, const void *in, void *acc, int64_t *valid) {     \
    const T *x = in;                                                                 \
    T part[FOLD(lanes)] __attribute__((aligned(64)));                                \
    int64_t i = FOLD(lanes), given = FOLD(lanes);                                    \
    if (n >= FOLD(lanes)) {                                                          \
      FOLD(vec) a = *(const FOLD(vec) *)x, b = *(const FOLD(vec) *)(x + FOLD(half)); \
      for (; i + FOLD(lanes) <= n; i += FOLD(lanes)) {                               \
        a = a OP * (const FOLD(vec) *)(x + i);                                       \
        b = b OP * (const FOLD(vec) *)(x + i + FOLD(half));                          \
      }                                                                              \
      *(FOLD(vec) *)part = a, *(FOLD(vec) *)(part + FOLD(half)) = b;                 \
      FOLD(name##_into)(n - i, x + i, part, &given);                                 \
      x = part, n = FOLD(lanes);                                                     \
    }                                                                                \
    FOLD(name##_into)(n, x, acc, valid);                                             \
  }
#define FOLD_ADD(x, y) ((x) + (y))
#define FOLD_MULTIPLY(x, y) ((x) * (y))
FOLD_SUM(add, FOLD_ADD, +)
FOLD_SUM(multiply, FOLD_MULTIPLY, *)

/* Extremes as by math_max and math_min: NaN where there is one, and -0 below 0. The largest of the sizes shows a NaN;
 * where the result is zero, the bits of all together show whether both zeros were there. */
typedef struct FOLD(extreme) {
  FOLD(vec) best;
  FOLD(bits) all, size;
} FOLD(extreme);
#define FOLD_EXTREME(name, op, BETTER, BITS)                                                                \
  FOLD_REST(name, op)                                                                                       \
  __attribute__((always_inline)) static inline void FOLD(name##_one)(FOLD(extreme) * e, const T *from) {    \
    FOLD(vec) x = *(const FOLD(vec) *)from;                                                                 \
    FOLD(bits) bits = (FOLD(bits))x, size = bits & ((U) - 1 >> 1), better = (FOLD(bits))(x BETTER e->best); \
    FOLD(bits) larger = (FOLD(bits))(size > e->size);                                                       \
    e->best = (FOLD(vec))((bits & better) | ((FOLD(bits))e->best & ~better));                               \
    e->all = e->all BITS bits;                                                                              \
    e->size = (size & larger) | (e->size & ~larger);                                                        \
  }                                                                                                         \
  static void FOLD(name##_end)(const FOLD(extreme) * e, T * to) {                                           \
    U sign = ~((U) - 1 >> 1);                                                                               \
    for (int j = 0; j < FOLD(half); j++) {                                                                  \
      U zero = e->all[j] & sign, nan = e->size[j];                                                          \
      T best = e->best[j];                                                                                  \
      if (best == 0) memcpy(&best, &zero, sizeof best);                                                     \
      if (nan > INF) memcpy(&best, &nan, sizeof best);                                                      \
      to[j] = best;                                                                                         \
    }                                                                                                       \
  }                                                                                                         \
  static void FOLD(name)(int64_t n, const void *in, void *acc, int64_t *valid) {                            \
    const T *x = in;                                                                                        \
    T part[FOLD(lanes)] __attribute__((aligned(64)));                                                       \
    int64_t i = FOLD(lanes), given = FOLD(lanes);                                                           \
    if (n >= FOLD(lanes)) {                                                                                 \
      FOLD(bits) sizes = {0};                                                                               \
      FOLD(extreme) a = {*(const FOLD(vec) *)x, *(const FOLD(bits) *)x, sizes}, b = a;                      \
      b.best = *(const FOLD(vec) *)(x + FOLD(half)), b.all = *(const FOLD(bits) *)(x + FOLD(half));         \
      a.size = a.all & ((U) - 1 >> 1), b.size = b.all & ((U) - 1 >> 1);                                     \
      for (; i + FOLD(lanes) <= n; i += FOLD(lanes)) {                                                      \
        FOLD(name##_one)(&a, x + i);                                                                        \
        FOLD(name##_one)(&b, x + i + FOLD(half));                                                           \
      }                                                                                                     \
      FOLD(name##_end)(&a, part);                                                                           \
      FOLD(name##_end)(&b, part + FOLD(half));                                                              \
      FOLD(name##_into)(n - i, x + i, part, &given);                                                        \
      x = part, n = FOLD(lanes);                                                                            \
    }                                                                                                       \
    FOLD(name##_into)(n, x, acc, valid);                                                                    \
  }
FOLD_EXTREME(maximum, math_max, >, &)
FOLD_EXTREME(minimum, math_min, <, |)

const vm_fold FOLD_TABLE[VM_FOLD_OPS] = {{FOLD(add), FOLD(add_last)},
                                         {FOLD(multiply), FOLD(multiply_last)},
                                         {FOLD(maximum), FOLD(maximum_last)},
                                         {FOLD(minimum), FOLD(minimum_last)}};

#undef FOLD_REST
#undef FOLD_SUM
#undef FOLD_ADD
#undef FOLD_MULTIPLY
#undef FOLD_EXTREME
#undef FOLD_TABLE
#undef FOLD
#undef T
#undef U
#undef INF
