/* No include guard: the folds of one type (vm_fold.h). The includer defines T, S, an integer of T's size, INF, the
 * bits of infinity, FOLD(name), a function's name, and FOLD_WIDTH, the bytes of the machine's vectors, if not 16.
 * Vectors are of 64 bytes whatever the instruction set, two at a time. */
typedef T FOLD(vec) __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
enum { FOLD(half) = 64 / sizeof(T), FOLD(lanes) = 128 / sizeof(T) };
/* Comparisons of wider vectors than the machine's are compiled lane by lane, so what compares goes in the machine's. */
#ifndef FOLD_WIDTH
#define FOLD_WIDTH 16
#endif
typedef T FOLD(part) __attribute__((vector_size(FOLD_WIDTH), aligned(sizeof(T)), may_alias));
typedef S FOLD(bits) __attribute__((vector_size(FOLD_WIDTH), aligned(sizeof(S)), may_alias));
enum { FOLD(parts) = 128 / FOLD_WIDTH, FOLD(each) = FOLD_WIDTH / sizeof(T) };

/* Lanes of a block into those of what came before, and those into one. */
#define FOLD_REST(name, op)                                                                                          \
  static void FOLD(name##_into)(int64_t n, const T *restrict x, T *restrict acc, int64_t *valid) {                   \
    int64_t both = n < *valid ? n : *valid;                                                                          \
    for (int64_t j = 0; j < both; j++) acc[j] = op(acc[j], x[j]);                                                    \
    if (n <= *valid) return;                                                                                         \
    memcpy(acc + both, x + both, (size_t)(n - both) * sizeof *acc);                                                  \
    *valid = n;                                                                                                      \
  }                                                                                                                  \
  static void FOLD(name##_last)(int64_t valid, void *lanes) {                                                        \
    T *acc = lanes;                                                                                                  \
    if (valid == FOLD(lanes)) {                                                                                      \
      for (int j = 0; j < FOLD(half); j++) acc[j] = op(acc[j], acc[FOLD(half) + j]);                                 \
      for (int j = 0; j < FOLD(half) / 2; j++) acc[j] = op(acc[j], acc[FOLD(half) / 2 + j]);                         \
      for (int j = 0; j < FOLD(half) / 4; j++) acc[j] = op(acc[j], acc[FOLD(half) / 4 + j]);                         \
      valid = FOLD(half) / 4;                                                                                        \
    }                                                                                                                \
    for (int64_t low = 0; valid > 1; valid = low) {                                                                  \
      low = (valid + 1) / 2;                                                                                         \
      for (int64_t j = 0; j < valid - low; j++) acc[j] = op(acc[j], acc[low + j]);                                   \
    }                                                                                                                \
  }                                                                                                                  \
  /* The first lanes of a run, of n elements in all. */                                                              \
  __attribute__((always_inline)) static inline void FOLD(name##_end)(int64_t n, const T *restrict x, const T *first, \
                                                                     T *restrict acc, int64_t *valid) {              \
    T part[FOLD(lanes)] __attribute__((aligned(64)));                                                                \
    int64_t given = FOLD(lanes), rest = n % FOLD(lanes);                                                             \
    x += n - rest;                                                                                                   \
    if (*valid == 0) {                                                                                               \
      memcpy(acc, first, sizeof part);                                                                               \
      for (int64_t j = 0; j < rest; j++) acc[j] = op(acc[j], x[j]);                                                  \
      *valid = given;                                                                                                \
    } else {                                                                                                         \
      memcpy(part, first, sizeof part);                                                                              \
      FOLD(name##_into)(rest, x, part, &given);                                                                      \
      FOLD(name##_into)(FOLD(lanes), part, acc, valid);                                                              \
    }                                                                                                                \
  }

/* Sums and products. */                                                           \
#define FOLD_SUM(name, op, OP)                                                     \
  FOLD_REST(name, op)                                                              \
  static void FOLD(name)(int64_t n, const void *in, void *acc, int64_t *valid) {   \
    const T *x = in;                                                               \
    T first[FOLD(lanes)] __attribute__((aligned(64)));                             \
    if (n < FOLD(lanes)) {                                                         \
      FOLD(name##_into)(n, x, acc, valid);                                         \
      return;                                                                      \
    }                                                                              \
    FOLD(vec) a = *(const FOLD(vec) *)x, b = *(const FOLD(vec) *)(x + FOLD(half)); \
    for (int64_t i = FOLD(lanes); i + FOLD(lanes) <= n; i += FOLD(lanes)) {        \
      a = a OP * (const FOLD(vec) *)(x + i);                                       \
      b = b OP * (const FOLD(vec) *)(x + i + FOLD(half));                          \
    }                                                                              \
    *(FOLD(vec) *)first = a, *(FOLD(vec) *)(first + FOLD(half)) = b;               \
    FOLD(name##_end)(n, x, first, acc, valid);                                     \
  }
#define FOLD_CHOOSE(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))
/* As expressions, for what is not a vector. */
#define FOLD_ADD(x, y) ((x) + (y))
#define FOLD_MULTIPLY(x, y) ((x) * (y))
/* Rows from `done` on one after the other, each with the initial value to one element. A row of no elements gives the
 * initial value. */
#define FOLD_MANY(name, op, done)                                                                       \
  static void FOLD(name##_many)(int64_t rows, int64_t n, const void *in, const void *init, void *out) { \
    T first = *(const T *)init, *to = out;                                                              \
    for (int64_t row = done; row < rows; row++) {                                                       \
      T acc[FOLD(lanes)] __attribute__((aligned(64)));                                                  \
      int64_t valid = 0;                                                                                \
      FOLD(name)(n, (const T *)in + row * n, acc, &valid);                                              \
      FOLD(name##_last)(valid, acc);                                                                    \
      to[row] = valid ? op(acc[0], first) : first;                                                      \
    }                                                                                                   \
  }
/* FOLD(half) rows of n elements, 4 and more, as n columns, by squares of 4; the last ones of a row may overlap. */
typedef T FOLD(four) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
__attribute__((noinline)) static void FOLD(turn)(int64_t n, const T *restrict x, T *restrict to) {
  assert(n >= 4 && n < CPU_VM_SHORT_RUN);
  for (int64_t l = 0; l < FOLD(half); l += 4)
    for (int64_t at = 0; at < n; at += 4) {
      int64_t j = at + 4 < n ? at : n - 4;
      const T *from = x + l * n + j;
      FOLD(four) r0 = *(const FOLD(four) *)from, r1 = *(const FOLD(four) *)(from + n);
      FOLD(four) r2 = *(const FOLD(four) *)(from + 2 * n), r3 = *(const FOLD(four) *)(from + 3 * n);
      T *square = to + j * FOLD(half) + l;
      CPU_TURN_SQUARE(FOLD(four), r0, r1, r2, r3, *(FOLD(four) *)square, *(FOLD(four) *)(square + FOLD(half)),
                      *(FOLD(four) *)(square + 2 * FOLD(half)), *(FOLD(four) *)(square + 3 * FOLD(half)));
    }
}

/* Of rows that leave all lanes as many as half of these go along together: the halves of two are two vectors of which
 * each has half of either, so that every step combines whole vectors, until lane j is row j. Gives how many rows are
 * done. With AVX-512 alone (FOLD_MANY_BY_HALVES), where a row's own halves take longer than the row. */
#if FOLD_WIDTH == 64
#define FOLD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define FOLD_STEP(op, a, b, step) op(FOLD_SHUFFLE(a, b, step##_LOW), FOLD_SHUFFLE(a, b, step##_HIGH))
#define FOLD_TOGETHER(name, both)                                                                    \
  static int64_t FOLD(name##_together)(int64_t rows, int64_t n, const T *x, T init, T *to) {         \
    FOLD(vec) v[FOLD(half)], first;                                                                  \
    int64_t row = 0;                                                                                 \
    for (int j = 0; j < FOLD(half); j++) first[j] = init;                                            \
    for (; n >= FOLD(lanes) && row + FOLD(half) <= rows; row += FOLD(half)) {                        \
      for (int l = 0; l < FOLD(half); l++) v[l] = FOLD(name##_halves)(n, x + (row + l) * n);         \
      enum { K = sizeof(T) == 4 ? 4 : 2 }; /* lanes of 16 bytes, which the last steps stay within */ \
      for (int k = 0; k < K; k++) {                                                                  \
        FOLD(vec) low = FOLD_STEP(both, v[k], v[K + k], FOLD_HALF);                                  \
        FOLD(vec) high = FOLD_STEP(both, v[2 * K + k], v[3 * K + k], FOLD_HALF);                     \
        v[k] = FOLD_STEP(both, low, high, FOLD_FOURTH);                                              \
      }                                                                                              \
      v[0] = FOLD_STEP(both, v[0], v[1], FOLD_PAIR);                                                 \
      if (K == 4) v[0] = FOLD_STEP(both, v[0], FOLD_STEP(both, v[2], v[3], FOLD_PAIR), FOLD_SINGLE); \
      *(FOLD(vec) *)(to + row) = both(v[0], first);                                                  \
    }                                                                                                \
    return row;                                                                                      \
  }
/* As vm_fold's ops, on vectors. */
#define FOLD_EXTREME_OF(name, BETTER, BITS)                                                              \
  __attribute__((always_inline)) static inline FOLD(vec) FOLD(name##_both)(FOLD(vec) x, FOLD(vec) y) {   \
    FOLD(bits) a = (FOLD(bits))x, b = (FOLD(bits))y, best = FOLD_CHOOSE((FOLD(bits))(x BETTER y), a, b); \
    best = FOLD_CHOOSE((FOLD(bits))(x == y), a BITS b, best);                                            \
    return (FOLD(vec))FOLD_CHOOSE((FOLD(bits))(x != x), a, best);                                        \
  }
FOLD_EXTREME_OF(maximum, >, &)
FOLD_EXTREME_OF(minimum, <, |)
/* Halves of a row's lanes, combined: of the extremes by way of memory. */
#define FOLD_HALVES(name)                                                                        \
  static inline FOLD(vec) FOLD(name##_halves)(int64_t n, const T *x) {                           \
    T acc[FOLD(lanes)] __attribute__((aligned(64)));                                             \
    int64_t valid = 0;                                                                           \
    const T *from = n == FOLD(lanes) ? x : acc;                                                  \
    if (from == acc) FOLD(name)(n, x, acc, &valid);                                              \
    return FOLD(name##_both)(*(const FOLD(vec) *)from, *(const FOLD(vec) *)(from + FOLD(half))); \
  }
/* What is left of a row is added with -0 beyond its end, which changes nothing. */
static inline FOLD(vec) FOLD(add_halves)(int64_t n, const T *x) {
  FOLD(vec) a = *(const FOLD(vec) *)x, b = *(const FOLD(vec) *)(x + FOLD(half));
  int64_t i = FOLD(lanes);
  assert(n >= FOLD(lanes));
  for (; i + FOLD(lanes) <= n; i += FOLD(lanes)) {
    a += *(const FOLD(vec) *)(x + i);
    b += *(const FOLD(vec) *)(x + i + FOLD(half));
  }
  if (i < n) a += (FOLD(vec))FOLD_SOME(n - i < FOLD(half) ? n - i : FOLD(half), x + i);
  if (i + FOLD(half) < n) b += (FOLD(vec))FOLD_SOME(n - i - FOLD(half), x + i + FOLD(half));
  return a + b;
}
#endif

#if FOLD_WIDTH == 64
#define FOLD_MANY_BY_HALVES(name, op, both) \
  FOLD_TOGETHER(name, both)                 \
  FOLD_MANY(name, op, FOLD(name##_together)(rows, n, in, first, to))
#else
#define FOLD_MANY_BY_HALVES(name, op, both) FOLD_MANY(name, op, 0)
#endif

/* Short rows, each in its order. Very short ones are loops over rows, which become shuffles of vectors; of longer ones
 * as many as are lanes go along together, as columns. */
#define FOLD_ROWS_OF(width, op)              \
  for (int64_t row = 0; row < rows; row++) { \
    T s = x[row * (width)];                  \
    for (int j = 1; j < (width); j++) {      \
      T next = x[row * (width) + j];         \
      s = op(s, next);                       \
    }                                        \
    to[row] = s;                             \
  }
#define FOLD_ROWS(name, op, done)                                                     \
  static void FOLD(name##_rows)(int64_t rows, int64_t n, const void *in, void *out) { \
    T columns[CPU_VM_SHORT_RUN * FOLD(half)] __attribute__((aligned(64)));            \
    const T *x = in;                                                                  \
    T *to = out;                                                                      \
    if (n == 2) {                                                                     \
      FOLD_ROWS_OF(2, op)                                                             \
      return;                                                                         \
    }                                                                                 \
    if (n == 3) {                                                                     \
      FOLD_ROWS_OF(3, op)                                                             \
      return;                                                                         \
    }                                                                                 \
    if (n == 4) {                                                                     \
      FOLD_ROWS_OF(4, op)                                                             \
      return;                                                                         \
    }                                                                                 \
    int64_t row = done;                                                               \
    for (; n > 4 && row + FOLD(half) <= rows; row += FOLD(half)) {                    \
      T *s = columns;                                                                 \
      FOLD(turn)(n, x + row * n, columns);                                            \
      for (int64_t j = 1; j < n; j++)                                                 \
        for (int l = 0; l < FOLD(half); l++) {                                        \
          T next = columns[j * FOLD(half) + l];                                       \
          s[l] = op(s[l], next);                                                      \
        }                                                                             \
      memcpy(to + row, s, FOLD(half) * sizeof *s);                                    \
    }                                                                                 \
    for (; row < rows; row++) {                                                       \
      T s = x[row * n];                                                               \
      for (int64_t j = 1; j < n; j++) s = op(s, x[row * n + j]);                      \
      to[row] = s;                                                                    \
    }                                                                                 \
  }
static void FOLD(add_blocks)(int64_t n, int64_t each, const void *in, void *lanes, int64_t *valid) {
  const T *x = in;
  FOLD(vec) *acc = lanes, s = {0}, t = {0};
  assert(each > 0 && each % FOLD(lanes) == 0 && n >= each && (*valid == 0 || *valid == FOLD(lanes)));
  if (*valid) s = acc[0], t = acc[1];
  for (int64_t at = 0; at + each <= n; at += each) {
    FOLD(vec) a = *(const FOLD(vec) *)(x + at), b = *(const FOLD(vec) *)(x + at + FOLD(half));
    for (int64_t i = at + FOLD(lanes); i < at + each; i += FOLD(lanes)) {
      a += *(const FOLD(vec) *)(x + i);
      b += *(const FOLD(vec) *)(x + i + FOLD(half));
    }
    if (*valid) {
      s += a;
      t += b;
    } else {
      s = a;
      t = b;
    }
    *valid = FOLD(lanes);
  }
  acc[0] = s, acc[1] = t;
}
/* Sums of products of two rows. The last ones, which fill no vectors, are computed before, and added as lanes at
 * the end. */
#define FOLD_PRODUCTS(name)                                                                       \
  static void FOLD(name)(int64_t n, const void *xs, const void *ys, void *acc, int64_t *valid) {  \
    const T *x = xs, *y = ys;                                                                     \
    T first[2 * FOLD(lanes)] __attribute__((aligned(64)));                                        \
    int64_t whole = n - n % FOLD(lanes);                                                          \
    for (int64_t i = whole; i < n; i++) first[FOLD(lanes) + i - whole] = x[i] * y[i];             \
    if (whole == 0) {                                                                             \
      FOLD(add_into)(n, first + FOLD(lanes), acc, valid);                                         \
      return;                                                                                     \
    }                                                                                             \
    FOLD(vec) a = *(const FOLD(vec) *)x * *(const FOLD(vec) *)y;                                  \
    FOLD(vec) b = *(const FOLD(vec) *)(x + FOLD(half)) * *(const FOLD(vec) *)(y + FOLD(half));    \
    for (int64_t i = FOLD(lanes); i < whole; i += FOLD(lanes)) {                                  \
      FOLD(vec) p = *(const FOLD(vec) *)(x + i), q = *(const FOLD(vec) *)(y + i);                 \
      a += p * q;                                                                                 \
      p = *(const FOLD(vec) *)(x + i + FOLD(half)), q = *(const FOLD(vec) *)(y + i + FOLD(half)); \
      b += p * q;                                                                                 \
    }                                                                                             \
    *(FOLD(vec) *)first = a, *(FOLD(vec) *)(first + FOLD(half)) = b;                              \
    FOLD(add_end)(FOLD(lanes) + n - whole, first, first, acc, valid);                             \
  }
FOLD_SUM(add, FOLD_ADD, +)
FOLD_PRODUCTS(add_products)
FOLD_SUM(multiply, FOLD_MULTIPLY, *)
FOLD_MANY_BY_HALVES(add, FOLD_ADD, FOLD_ADD)
FOLD_MANY(multiply, FOLD_MULTIPLY, 0)
FOLD_ROWS(add, FOLD_ADD, 0)
FOLD_ROWS(multiply, FOLD_MULTIPLY, 0)

/* Extremes as by math_max and math_min: NaN where there is one, and -0 below 0. The largest of the sizes shows a NaN;
 * where the result is zero, the bits of all together show whether both zeros were there. */
typedef struct FOLD(extreme) {
  FOLD(part) best;
  FOLD(bits) all, size;
} FOLD(extreme);
#define FOLD_SIGN ((S)(1ull << (8 * sizeof(S) - 1)))
#define FOLD_EXTREME(name, op, BETTER, BITS)                                                               \
  FOLD_REST(name, op)                                                                                      \
  __attribute__((always_inline)) static inline void FOLD(name##_one)(FOLD(extreme) * e, const T *from) {   \
    FOLD(part) x = *(const FOLD(part) *)from;                                                              \
    FOLD(bits) bits = (FOLD(bits))x, size = bits & ~FOLD_SIGN;                                             \
    e->best = (FOLD(part))FOLD_CHOOSE((FOLD(bits))(x BETTER e->best), bits, (FOLD(bits))e->best);          \
    e->all = e->all BITS bits;                                                                             \
    e->size = FOLD_CHOOSE((FOLD(bits))(size > e->size), size, e->size);                                    \
  }                                                                                                        \
  __attribute__((always_inline)) static inline void FOLD(name##_settle)(const FOLD(extreme) * e, T * to) { \
    FOLD(bits) best = FOLD_CHOOSE((FOLD(bits))(e->best == 0), e->all & FOLD_SIGN, (FOLD(bits))e->best);    \
    *(FOLD(bits) *)(void *)to = FOLD_CHOOSE((FOLD(bits))(e->size > INF), e->size, best);                   \
  }                                                                                                        \
  static void FOLD(name)(int64_t n, const void *in, void *acc, int64_t *valid) {                           \
    const T *x = in;                                                                                       \
    T first[FOLD(lanes)] __attribute__((aligned(64)));                                                     \
    if (n < FOLD(lanes)) {                                                                                 \
      FOLD(name##_into)(n, x, acc, valid);                                                                 \
      return;                                                                                              \
    }                                                                                                      \
    FOLD(extreme) e[FOLD(parts)];                                                                          \
    for (int k = 0; k < FOLD(parts); k++) {                                                                \
      const T *from = x + k * FOLD(each);                                                                  \
      e[k] = (FOLD(extreme)){*(const FOLD(part) *)from, *(const FOLD(bits) *)(const void *)from, {0}};     \
      e[k].size = e[k].all & ~FOLD_SIGN;                                                                   \
    }                                                                                                      \
    for (int64_t i = FOLD(lanes); i + FOLD(lanes) <= n; i += FOLD(lanes))                                  \
      for (int k = 0; k < FOLD(parts); k++) FOLD(name##_one)(&e[k], x + i + k * FOLD(each));               \
    for (int k = 0; k < FOLD(parts); k++) FOLD(name##_settle)(&e[k], first + k * FOLD(each));              \
    FOLD(name##_end)(n, x, first, acc, valid);                                                             \
  }
FOLD_EXTREME(maximum, math_max, >, &)
FOLD_EXTREME(minimum, math_min, <, |)
#if FOLD_WIDTH == 64
FOLD_HALVES(maximum)
FOLD_HALVES(minimum)
#endif
FOLD_MANY_BY_HALVES(maximum, math_max, FOLD(maximum_both))
FOLD_MANY_BY_HALVES(minimum, math_min, FOLD(minimum_both))

/* Extremes have no order: four lanes of a row are combined with the next four, the last of which may come twice, and
 * four rows are turned. A block with a NaN is left: gives how many rows are done. */
typedef S FOLD(four_bits) __attribute__((vector_size(4 * sizeof(S)), aligned(sizeof(S)), may_alias));
#define FOLD_BETTER(best, BETTER, next) \
  ((FOLD(four))FOLD_CHOOSE((FOLD(four_bits))((next)BETTER(best)), (FOLD(four_bits))(next), (FOLD(four_bits))(best)))
#define FOLD_QUICK(name, BETTER, BITS)                                                                                \
  static int64_t FOLD(name##_quick)(int64_t rows, int64_t n, const T *x, T *to) {                                     \
    S strange = 0;                                                                                                    \
    int64_t row = 0;                                                                                                  \
    for (int64_t i = 0; i < rows * n; i++) strange |= x[i] != x[i];                                                   \
    for (; !strange && row + 4 <= rows; row += 4) {                                                                   \
      FOLD(four) best[4], all[4];                                                                                     \
      for (int l = 0; l < 4; l++) {                                                                                   \
        const T *from = x + (row + l) * n;                                                                            \
        FOLD(four) most = *(const FOLD(four) *)from;                                                                  \
        FOLD(four_bits) bits = (FOLD(four_bits))most;                                                                 \
        for (int64_t j = 4; j < n; j += 4) {                                                                          \
          FOLD(four) next = *(const FOLD(four) *)(from + (j + 4 < n ? j : n - 4));                                    \
          most = FOLD_BETTER(most, BETTER, next);                                                                     \
          bits = bits BITS(FOLD(four_bits)) next;                                                                     \
        }                                                                                                             \
        best[l] = most, all[l] = (FOLD(four))bits;                                                                    \
      }                                                                                                               \
      CPU_TURN_SQUARE(FOLD(four), best[0], best[1], best[2], best[3], best[0], best[1], best[2], best[3]);            \
      CPU_TURN_SQUARE(FOLD(four), all[0], all[1], all[2], all[3], all[0], all[1], all[2], all[3]);                    \
      FOLD(four) left = FOLD_BETTER(best[0], BETTER, best[1]), right = FOLD_BETTER(best[2], BETTER, best[3]);         \
      FOLD(four) most = FOLD_BETTER(left, BETTER, right);                                                             \
      FOLD(four_bits)                                                                                                 \
      bits = ((FOLD(four_bits))all[0] BITS(FOLD(four_bits)) all[1])BITS((FOLD(four_bits))all[2] BITS(FOLD(four_bits)) \
                                                                            all[3]);                                  \
      *(FOLD(four_bits) *)(void *)(to + row) =                                                                        \
          FOLD_CHOOSE((FOLD(four_bits))(most == 0), bits & FOLD_SIGN, (FOLD(four_bits))most);                         \
    }                                                                                                                 \
    return row;                                                                                                       \
  }
#if FOLD_WIDTH > 16
FOLD_QUICK(maximum, >, &)
FOLD_QUICK(minimum, <, |)
FOLD_ROWS(maximum, math_max, n < 5 ? 0 : FOLD(maximum_quick)(rows, n, x, to))
FOLD_ROWS(minimum, math_min, n < 5 ? 0 : FOLD(minimum_quick)(rows, n, x, to))
#else
FOLD_ROWS(maximum, math_max, 0)
FOLD_ROWS(minimum, math_min, 0)
#endif

/* Products are summed up alone, and so are many blocks. */
#define FOLD_ALONE_add FOLD(add_products), FOLD(add_blocks)
#define FOLD_ALONE_multiply NULL, NULL
#define FOLD_ALONE_maximum NULL, NULL
#define FOLD_ALONE_minimum NULL, NULL
#define FOLD_ENTRY(name, code) {FOLD(name), FOLD(name##_last), FOLD(name##_many), FOLD(name##_rows), FOLD_ALONE_##name},
const vm_fold FOLD_TABLE[VM_FOLD_OPS] = {VM_FOLDS(FOLD_ENTRY)};

#undef FOLD_ALONE_add
#undef FOLD_ALONE_multiply
#undef FOLD_ALONE_maximum
#undef FOLD_ALONE_minimum
#undef FOLD_ENTRY
#undef FOLD_PRODUCTS
#undef FOLD_MANY
#undef FOLD_MANY_BY_HALVES
#undef FOLD_TOGETHER
#undef FOLD_HALVES
#undef FOLD_EXTREME_OF
#undef FOLD_STEP
#undef FOLD_SHUFFLE
#undef FOLD_ROWS
#undef FOLD_ROWS_OF
#undef FOLD_REST
#undef FOLD_SUM
#undef FOLD_ADD
#undef FOLD_MULTIPLY
#undef FOLD_EXTREME
#undef FOLD_BETTER
#undef FOLD_QUICK
#undef FOLD_SIGN
#undef FOLD_CHOOSE
#if FOLD_WIDTH == 64
#undef FOLD_SOME
#undef FOLD_HALF_LOW
#undef FOLD_HALF_HIGH
#undef FOLD_FOURTH_LOW
#undef FOLD_FOURTH_HIGH
#undef FOLD_PAIR_LOW
#undef FOLD_PAIR_HIGH
#undef FOLD_SINGLE_LOW
#undef FOLD_SINGLE_HIGH
#endif
#undef FOLD_WIDTH
#undef FOLD_TABLE
#undef FOLD
#undef T
#undef S
#undef INF
