/* The loops of argmax (and argmin, by flipped codes): lanes each follow the computation over their elements in
 * order. A row's elements are dealt to ARGR_SOME lanes that are compared at the end; columns are lanes
 * themselves, so many at a time. What a zero's or a NaN's bits are is looked up at the end: -0 and +0 are equal, so the
 * loop doesn't know which of them it has kept. Where places do not count, one element comes after the other.
 *
 * The computation is the one that JAX gives: keep (v, at) where v > x or v is NaN; of equal values keep the lower
 * place. */
#include "arg_reduce.h"

enum { ARGR_SOME = 16 };

/* By itself, so that registers are those of the loop around the call. */
#define ARGR_APART __attribute__((noinline))

/* Bits as a value, and back, without a cast between pointers. */
#define ARGR_AS(V, U)                  \
  static inline V argr_as_##V(U b) {   \
    V v;                               \
    memcpy(&v, &b, sizeof v);          \
    return v;                          \
  }                                    \
  static inline U argr_bits_##V(V v) { \
    U b;                               \
    memcpy(&b, &v, sizeof b);          \
    return b;                          \
  }
ARGR_AS(float, uint32_t)
ARGR_AS(double, uint64_t)
ARGR_AS(int8_t, uint8_t)
ARGR_AS(uint8_t, uint8_t)
ARGR_AS(int16_t, uint16_t)
ARGR_AS(uint16_t, uint16_t)
ARGR_AS(int32_t, uint32_t)
ARGR_AS(uint32_t, uint32_t)
ARGR_AS(int64_t, uint64_t)
ARGR_AS(uint64_t, uint64_t)
#undef ARGR_AS

/* Floats of 16 bits as integers: sign and magnitude, NaN above all. */
enum { ARGR_NAN = 0x7fff };
static inline int16_t argr_half(const argr_coding *c, uint16_t b) {
  int16_t size = (int16_t)(b & 0x7fff), v = (int16_t)((b ^ (uint16_t)c->flip) & 0x8000 ? -size : size);
  return size > (int16_t)c->infinity ? (int16_t)ARGR_NAN : v;
}
static inline uint16_t argr_half_bits(const argr_coding *c, int16_t v) {
  return (uint16_t)((v < 0 ? (uint16_t)-v | 0x8000 : (uint16_t)v) ^ (uint16_t)c->flip);
}

/* By kind of type. number: floats of 32 or 64 bits; whole: integers; half: floats of 16 bits, compared as
 * integers. */
#define ARGR_LOAD_number(V, U, c, b) argr_as_##V((U)((b) ^ (U)(c)->flip))
#define ARGR_LOAD_whole(V, U, c, b) argr_as_##V((U)((b) ^ (U)(c)->flip))
#define ARGR_LOAD_half(V, U, c, b) argr_half(c, b)
#define ARGR_BITS_number(V, U, c, v) (U)(argr_bits_##V(v) ^ (U)(c)->flip)
#define ARGR_BITS_whole(V, U, c, v) (U)(argr_bits_##V(v) ^ (U)(c)->flip)
#define ARGR_BITS_half(V, U, c, v) argr_half_bits(c, v)
/* Integers have no NaN, and no second zero: the compiler drops what asks for them. */
#define ARGR_ISNAN_number(v) ((v) != (v))
#define ARGR_ISNAN_whole(v) ((void)(v), false)
#define ARGR_ISNAN_half(v) ((v) == ARGR_NAN)
#define ARGR_HAS_ZEROS_number true
#define ARGR_HAS_ZEROS_whole false
#define ARGR_HAS_ZEROS_half true

/* So many groups of ARGR_SOME neighbours, `step` bytes apart: the best of each lane, and the number of its group. */
#define ARGR_GROUPS(name, V, U, KIND, I)                                                          \
  static void name##_groups(const argr_row *r, int64_t step, int64_t groups, V *best, I *where) { \
    V v[ARGR_SOME];                                                                               \
    I at[ARGR_SOME];                                                                              \
    const argr_coding c = r->coding;                                                              \
    U b[ARGR_SOME];                                                                               \
    memcpy(b, r->x, sizeof b);                                                                    \
    for (int l = 0; l < ARGR_SOME; l++) v[l] = ARGR_LOAD_##KIND(V, U, &c, b[l]), at[l] = 0;       \
    for (int64_t g = 1; g < groups; g++) {                                                        \
      memcpy(b, r->x + g * step, sizeof b);                                                       \
      for (int l = 0; l < ARGR_SOME; l++) {                                                       \
        V x = ARGR_LOAD_##KIND(V, U, &c, b[l]);                                                   \
        bool keeps = (v[l] >= x) | ARGR_ISNAN_##KIND(v[l]);                                       \
        I keep = (I) - (I)keeps;                                                                  \
        if (sizeof(V) == 8) { /* registers have few of them: it is jumped over */                 \
          if (!keeps) v[l] = x, at[l] = (I)g;                                                     \
          continue;                                                                               \
        }                                                                                         \
        v[l] = keep ? v[l] : x;                                                                   \
        at[l] = (at[l] & keep) | ((I)g & ~keep);                                                  \
      }                                                                                           \
    }                                                                                             \
    memcpy(best, v, sizeof v);                                                                    \
    memcpy(where, at, sizeof at);                                                                 \
  }

/* Whether lanes are results as they are: no NaN, no zero, all better than the initial value. */
#define ARGR_SORT(name, V, U, KIND)                                                        \
  static ARGR_APART bool name##_are_plain(const V *v, V init) {                            \
    bool plain = true;                                                                     \
    for (int l = 0; l < ARGR_SOME; l++) plain &= (v[l] > init) & !ARGR_ISNAN_##KIND(v[l]); \
    for (int l = 0; ARGR_HAS_ZEROS_##KIND && l < ARGR_SOME; l++) plain &= v[l] != 0;       \
    return plain;                                                                          \
  }

#define ARGR_PLAIN_SOME(name, V, U, KIND, I)                                                    \
  ARGR_GROUPS(name, V, U, KIND, I)                                                              \
  ARGR_SORT(name, V, U, KIND)                                                                   \
  static void name##_some(const argr_row *r, int64_t step, int64_t groups, V *best, I *where) { \
    name##_groups(r, step, groups, best, where);                                                \
  }                                                                                             \
  static bool name##_plain(const argr_row *r, const V *v, V init) {                             \
    (void)r;                                                                                    \
    return name##_are_plain(v, init);                                                           \
  }

#if defined(__x86_64__)
#include "../../base/isa/isa_avx2_begin.h"

/* The same of 32 bits each, in two vectors. */
#define ARGR_MEET(i, NAN)                                                \
  x##i = (values)(b##i ^ flip);                                          \
  keep##i = (v##i >= x##i) | (NAN(v##i));                                \
  v##i = (values)(((places)v##i & keep##i) | ((places)x##i & ~keep##i)); \
  at##i = (at##i & keep##i) | ((none + (int32_t)g) & ~keep##i)
#define ARGR_WIDE(name, V, NAN, ZERO)                                                                 \
  static void name##_wide(const argr_row *r, int64_t step, int64_t groups, V *best, int32_t *where) { \
    typedef V values __attribute__((vector_size(32)));                                                \
    typedef int32_t places __attribute__((vector_size(32)));                                          \
    const places none = {0}, flip = none + (int32_t)(uint32_t)r->coding.flip;                         \
    const char *from = r->x;                                                                          \
    places at0 = none, at1 = none, b0, b1, keep0, keep1;                                              \
    memcpy(&b0, from, 32), memcpy(&b1, from + 32, 32);                                                \
    values v0 = (values)(b0 ^ flip), v1 = (values)(b1 ^ flip), x0, x1;                                \
    for (int64_t g = 1; g < groups; g++) {                                                            \
      from += step;                                                                                   \
      memcpy(&b0, from, 32), memcpy(&b1, from + 32, 32);                                              \
      ARGR_MEET(0, NAN);                                                                              \
      ARGR_MEET(1, NAN);                                                                              \
    }                                                                                                 \
    memcpy(best, &v0, 32), memcpy(best + 8, &v1, 32);                                                 \
    memcpy(where, &at0, 32), memcpy(where + 8, &at1, 32);                                             \
  }                                                                                                   \
  static bool name##_wide_plain(const V *v, V init) {                                                 \
    typedef V values __attribute__((vector_size(32)));                                                \
    typedef int32_t places __attribute__((vector_size(32)));                                          \
    const places none = {0}, all = none - 1;                                                          \
    values v0, v1;                                                                                    \
    memcpy(&v0, v, 32), memcpy(&v1, v + 8, 32);                                                       \
    places plain = (v0 > init) & (v1 > init) & ~(ZERO(v0)) & ~(ZERO(v1));                             \
    return memcmp(&plain, &all, 32) == 0;                                                             \
  }
#define ARGR_UNEQUAL(v) v != v
#define ARGR_ZERO(v) v == 0
#define ARGR_NEVER(v) none
ARGR_WIDE(argr_f32, float, ARGR_UNEQUAL, ARGR_ZERO)
ARGR_WIDE(argr_s32, int32_t, ARGR_NEVER, ARGR_NEVER)
#include "../../base/isa/isa_end.h"
#define ARGR_WIDE_SOME(name, V, U, KIND)                                                              \
  ARGR_GROUPS(name, V, U, KIND, int32_t)                                                              \
  ARGR_SORT(name, V, U, KIND)                                                                         \
  static void name##_some(const argr_row *r, int64_t step, int64_t groups, V *best, int32_t *where) { \
    if (r->coding.wide)                                                                               \
      name##_wide(r, step, groups, best, where);                                                      \
    else                                                                                              \
      name##_groups(r, step, groups, best, where);                                                    \
  }                                                                                                   \
  static bool name##_plain(const argr_row *r, const V *v, V init) {                                   \
    return r->coding.wide ? name##_wide_plain(v, init) : name##_are_plain(v, init);                   \
  }
#else
#define ARGR_WIDE_SOME(name, V, U, KIND) ARGR_PLAIN_SOME(name, V, U, KIND, int32_t)
#endif

/* For values V with bits U, and places I of the same size, where there is one. at, place: element number i of a row and
 * its place. row, columns: the loops that cpu_arg_loops gives. */
#define ARGR_LOOPS(name, V, U, KIND, I)                                                                             \
  static inline V name##_at(const argr_row *r, int64_t i) {                                                         \
    U b;                                                                                                            \
    memcpy(&b, r->x + i * r->stride * (int64_t)sizeof b, sizeof b);                                                 \
    return ARGR_LOAD_##KIND(V, U, &r->coding, b);                                                                   \
  }                                                                                                                 \
  /* The computation: (*v, *at) meets (x, p). */                                                                    \
  static void name##_meet(V *v, int64_t *at, V x, int64_t p) {                                                      \
    bool keep = (*v > x) | ARGR_ISNAN_##KIND(*v), keep_at = keep | ((*v == x) & (*at < p));                         \
    *v = keep ? *v : x;                                                                                             \
    *at = keep_at ? *at : p;                                                                                        \
  }                                                                                                                 \
  /* The bits of result v: those of the first NaN, of the last zero. *first: where the NaN is; -1: it was there. */ \
  static U name##_bits(const argr_row *r, V v, V init, U init_bits, int64_t *first) {                               \
    U b = ARGR_BITS_##KIND(V, U, &r->coding, v);                                                                    \
    bool nan = ARGR_ISNAN_##KIND(v), zero = ARGR_HAS_ZEROS_##KIND && v == 0;                                        \
    int64_t i = nan ? 0 : r->n - 1;                                                                                 \
    *first = -1;                                                                                                    \
    if (!nan && !zero) return b;                                                                                    \
    if (nan && ARGR_ISNAN_##KIND(init)) return init_bits;                                                           \
    for (; i >= 0 && i < r->n; i += nan ? 1 : -1) {                                                                 \
      V x = name##_at(r, i);                                                                                        \
      if (nan ? !ARGR_ISNAN_##KIND(x) : x != 0) continue;                                                           \
      memcpy(&b, r->x + i * r->stride * (int64_t)sizeof b, sizeof b);                                               \
      *first = i;                                                                                                   \
      return b;                                                                                                     \
    }                                                                                                               \
    return init_bits;                                                                                               \
  }                                                                                                                 \
  static V name##_init(const argr_row *r) {                                                                         \
    U bits;                                                                                                         \
    memcpy(&bits, r->init, sizeof bits);                                                                            \
    return ARGR_LOAD_##KIND(V, U, &r->coding, bits);                                                                \
  }                                                                                                                 \
  /* (v, at) is what all elements come to; if there are any. */                                                     \
  static void name##_finish(const argr_row *r, V v, int64_t at) {                                                   \
    U bits;                                                                                                         \
    int64_t first, best_at = argr_place(r, r->init_place);                                                          \
    memcpy(&bits, r->init, sizeof bits);                                                                            \
    V init = ARGR_LOAD_##KIND(V, U, &r->coding, bits), best = init;                                                 \
    if (r->n > 0) name##_meet(&best, &best_at, v, at);                                                              \
    bits = name##_bits(r, best, init, bits, &first);                                                                \
    if (ARGR_ISNAN_##KIND(best) && first >= 0) best_at = argr_place_of(r, first);                                   \
    memcpy(r->value, &bits, sizeof bits);                                                                           \
    memcpy(r->place, &best_at, (size_t)r->place_bytes); /* the low bytes */                                         \
  }                                                                                                                 \
  static ARGR_APART void name##_put(const argr_row *r, const V *v, const I *at) {                                   \
    const argr_coding c = r->coding;                                                                                \
    U bits[ARGR_SOME];                                                                                              \
    int64_t wide[ARGR_SOME];                                                                                        \
    int32_t narrow[ARGR_SOME];                                                                                      \
    for (int l = 0; l < ARGR_SOME; l++) {                                                                           \
      bits[l] = ARGR_BITS_##KIND(V, U, &c, v[l]);                                                                   \
      wide[l] = (int64_t)at[l], narrow[l] = (int32_t)at[l];                                                         \
    }                                                                                                               \
    memcpy(r->value, bits, sizeof bits);                                                                            \
    memcpy(r->place, r->place_bytes == 8 ? (void *)wide : narrow, (size_t)(ARGR_SOME * r->place_bytes));            \
  }                                                                                                                 \
  /* Element after element, from number i on. */                                                                    \
  static void name##_rest(const argr_row *r, int64_t i, V v, int64_t at) {                                          \
    for (; i < r->n && r->places; i++) name##_meet(&v, &at, name##_at(r, i), argr_place_of(r, i));                  \
    for (; i < r->n; i++) {                                                                                         \
      V x = name##_at(r, i);                                                                                        \
      bool keep = (v >= x) | ARGR_ISNAN_##KIND(v);                                                                  \
      v = keep ? v : x;                                                                                             \
      at = keep ? at : i;                                                                                           \
    }                                                                                                               \
    name##_finish(r, v, at);                                                                                        \
  }                                                                                                                 \
  static void name##_one(const argr_row *r) {                                                                       \
    name##_rest(r, 1, r->n ? name##_at(r, 0) : 0, r->n ? argr_place_of(r, 0) : 0);                                  \
  }                                                                                                                 \
  static void name##_row(const argr_row *r) {                                                                       \
    V v[ARGR_SOME];                                                                                                 \
    I at[ARGR_SOME];                                                                                                \
    if (r->places || r->n < 2 * ARGR_SOME) {                                                                        \
      name##_one(r);                                                                                                \
      return;                                                                                                       \
    }                                                                                                               \
    name##_some(r, ARGR_SOME *(int64_t)sizeof(U), r->n / ARGR_SOME, v, at);                                         \
    V best = v[0];                                                                                                  \
    int64_t place = (int64_t)at[0] * ARGR_SOME;                                                                     \
    for (int l = 1; l < ARGR_SOME; l++) name##_meet(&best, &place, v[l], (int64_t)at[l] * ARGR_SOME + l);           \
    name##_rest(r, r->n / ARGR_SOME * ARGR_SOME, best, place);                                                      \
  }                                                                                                                 \
  static void name##_columns(const argr_row *r, int64_t lanes) {                                                    \
    V v[ARGR_SOME];                                                                                                 \
    I at[ARGR_SOME];                                                                                                \
    bool some = !r->places && lanes >= ARGR_SOME && r->n > 0;                                                       \
    for (int64_t done = 0, m = some ? ARGR_SOME : 1; done < lanes; done += m) {                                     \
      argr_row one = argr_column(r, some && lanes - done < m ? lanes - m : done, sizeof(U));                        \
      if (!some) {                                                                                                  \
        name##_one(&one);                                                                                           \
        continue;                                                                                                   \
      }                                                                                                             \
      name##_some(&one, r->stride *(int64_t)sizeof(U), r->n, v, at);                                                \
      if ((sizeof(U) == 4 || sizeof(U) == 2) && name##_plain(&one, v, name##_init(&one))) {                         \
        name##_put(&one, v, at);                                                                                    \
        continue;                                                                                                   \
      }                                                                                                             \
      for (int l = 0; l < ARGR_SOME; l++) {                                                                         \
        argr_row column = argr_column(&one, l, sizeof(U));                                                          \
        name##_finish(&column, v[l], at[l]);                                                                        \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static const argr_loops name = {name##_row, name##_columns};

/* The place at an address, and that of element number i. */
static int64_t argr_place(const argr_row *r, const void *at) {
  int32_t narrow;
  int64_t wide;
  if (r->place_bytes == 8) return memcpy(&wide, at, sizeof wide), wide;
  return memcpy(&narrow, at, sizeof narrow), narrow;
}
static int64_t argr_place_of(const argr_row *r, int64_t i) {
  return r->places ? argr_place(r, r->places + i * r->stride * r->place_bytes) : i;
}
/* The row that lies `lane` elements beside. */
static argr_row argr_column(const argr_row *r, int64_t lane, size_t bytes) {
  argr_row one = *r;
  one.x += lane * (int64_t)bytes;
  one.value += lane * (int64_t)bytes;
  one.place += lane * r->place_bytes;
  if (one.places) one.places += lane * r->place_bytes;
  return one;
}

ARGR_WIDE_SOME(argr_f32, float, uint32_t, number)
ARGR_LOOPS(argr_f32, float, uint32_t, number, int32_t)
ARGR_PLAIN_SOME(argr_f64, double, uint64_t, number, int64_t)
ARGR_LOOPS(argr_f64, double, uint64_t, number, int64_t)
ARGR_PLAIN_SOME(argr_f16, int16_t, uint16_t, half, int32_t)
ARGR_LOOPS(argr_f16, int16_t, uint16_t, half, int32_t)
ARGR_PLAIN_SOME(argr_s8, int8_t, uint8_t, whole, int32_t)
ARGR_LOOPS(argr_s8, int8_t, uint8_t, whole, int32_t)
ARGR_PLAIN_SOME(argr_u8, uint8_t, uint8_t, whole, int32_t)
ARGR_LOOPS(argr_u8, uint8_t, uint8_t, whole, int32_t)
ARGR_PLAIN_SOME(argr_s16, int16_t, uint16_t, whole, int32_t)
ARGR_LOOPS(argr_s16, int16_t, uint16_t, whole, int32_t)
ARGR_PLAIN_SOME(argr_u16, uint16_t, uint16_t, whole, int32_t)
ARGR_LOOPS(argr_u16, uint16_t, uint16_t, whole, int32_t)
ARGR_WIDE_SOME(argr_s32, int32_t, uint32_t, whole)
ARGR_LOOPS(argr_s32, int32_t, uint32_t, whole, int32_t)
ARGR_PLAIN_SOME(argr_u32, uint32_t, uint32_t, whole, int32_t)
ARGR_LOOPS(argr_u32, uint32_t, uint32_t, whole, int32_t)
ARGR_PLAIN_SOME(argr_s64, int64_t, uint64_t, whole, int64_t)
ARGR_LOOPS(argr_s64, int64_t, uint64_t, whole, int64_t)
ARGR_PLAIN_SOME(argr_u64, uint64_t, uint64_t, whole, int64_t)
ARGR_LOOPS(argr_u64, uint64_t, uint64_t, whole, int64_t)

/* For types that opt_arg_reduction_of lets through. */
const argr_loops *cpu_arg_loops(base_dtype value) {
  switch (value) {
    case XLAC_F32:
      return &argr_f32;
    case XLAC_F64:
      return &argr_f64;
    case XLAC_F16:
    case XLAC_BF16:
      return &argr_f16;
    case XLAC_S8:
      return &argr_s8;
    case XLAC_U8:
      return &argr_u8;
    case XLAC_S16:
      return &argr_s16;
    case XLAC_U16:
      return &argr_u16;
    case XLAC_S32:
      return &argr_s32;
    case XLAC_U32:
      return &argr_u32;
    case XLAC_S64:
      return &argr_s64;
    default:
      assert(value == XLAC_U64);
      return &argr_u64;
  }
}
