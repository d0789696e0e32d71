/* The loops of argmax (and argmin, by flipped codes): lanes each follow the computation over their elements in
 * order. A row's elements are dealt to ARGR_ROW_LANES lanes that are compared at the end; columns are lanes
 * themselves. What a zero's or a NaN's bits are is looked up at the end: -0 and +0 are equal, so the loop doesn't
 * know which of them it has kept.
 *
 * The computation is the one that JAX gives: keep (v, at) where v > x or v is NaN; of equal values keep the lower
 * place. */
#include "arg_reduce.h"

enum { ARGR_ROW_LANES = 16 };

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

/* For values V with bits U, and places I. at, place: element number i of a row and its place. deal: the rest of a
 * row to the lanes. row, columns: the loops that cpu_arg_loops gives. */
#define ARGR_LOOPS(name, V, U, KIND, I)                                                                             \
  static inline V name##_at(const argr_row *r, int64_t i) {                                                         \
    U b;                                                                                                            \
    memcpy(&b, r->x + i * r->stride * (int64_t)sizeof b, sizeof b);                                                 \
    return ARGR_LOAD_##KIND(V, U, &r->coding, b);                                                                   \
  }                                                                                                                 \
  static inline I name##_place(const argr_row *r, int64_t i) {                                                      \
    I p = (I)i;                                                                                                     \
    if (r->places) memcpy(&p, r->places + i * r->stride * (int64_t)sizeof p, sizeof p);                             \
    return p;                                                                                                       \
  }                                                                                                                 \
  /* The computation: (*v, *at) meets (x, p). */                                                                    \
  static inline __attribute__((always_inline)) void name##_meet(V *v, I *at, V x, I p) {                            \
    bool keep = (*v > x) | ARGR_ISNAN_##KIND(*v), keep_at = keep | ((*v == x) & (*at < p));                         \
    *v = keep ? *v : x;                                                                                             \
    *at = keep_at ? *at : p;                                                                                        \
  }                                                                                                                 \
  static V name##_init(const argr_row *r, U *bits, I *at) {                                                         \
    memcpy(bits, r->init, sizeof *bits);                                                                            \
    memcpy(at, r->init_place, sizeof *at);                                                                          \
    return ARGR_LOAD_##KIND(V, U, &r->coding, *bits);                                                               \
  }                                                                                                                 \
  /* The bits of result v: those of the first NaN, of the last zero. *first: where the NaN is; -1: it was there. */ \
  static U name##_result(const argr_row *r, V v, V init, U init_bits, int64_t *first) {                             \
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
  static inline __attribute__((always_inline)) void name##_deal(const argr_row *r, V *v, I *at, bool counts) {      \
    int64_t i = ARGR_ROW_LANES;                                                                                     \
    const argr_coding c = r->coding;                                                                                \
    for (; i + ARGR_ROW_LANES <= r->n; i += ARGR_ROW_LANES) {                                                       \
      for (int l = 0; l < ARGR_ROW_LANES; l++) {                                                                    \
        U b;                                                                                                        \
        I p = (I)i + (I)l;                                                                                          \
        memcpy(&b, r->x + (i + l) * (int64_t)sizeof b, sizeof b);                                                   \
        if (!counts) memcpy(&p, r->places + (i + l) * (int64_t)sizeof p, sizeof p);                                 \
        name##_meet(&v[l], &at[l], ARGR_LOAD_##KIND(V, U, &c, b), p);                                               \
      }                                                                                                             \
    }                                                                                                               \
    for (int l = 0; i < r->n; i++, l++) name##_meet(&v[l], &at[l], name##_at(r, i), name##_place(r, i));            \
  }                                                                                                                 \
  /* Lanes of a row together: which came first matters for none of what is left. */                                 \
  static V name##_lanes(const argr_row *r, I *place) {                                                              \
    V v[ARGR_ROW_LANES];                                                                                            \
    I at[ARGR_ROW_LANES];                                                                                           \
    for (int l = 0; l < ARGR_ROW_LANES; l++) {                                                                      \
      v[l] = name##_at(r, l);                                                                                       \
      at[l] = name##_place(r, l);                                                                                   \
    }                                                                                                               \
    if (r->places)                                                                                                  \
      name##_deal(r, v, at, false);                                                                                 \
    else                                                                                                            \
      name##_deal(r, v, at, true);                                                                                  \
    for (int l = 1; l < ARGR_ROW_LANES; l++) name##_meet(&v[0], &at[0], v[l], at[l]);                               \
    *place = at[0];                                                                                                 \
    return v[0];                                                                                                    \
  }                                                                                                                 \
  static void name##_row(const argr_row *r) {                                                                       \
    U bits;                                                                                                         \
    I at, lanes_at;                                                                                                 \
    int64_t first;                                                                                                  \
    V init = name##_init(r, &bits, &at), v = init;                                                                  \
    if (r->n < 2 * ARGR_ROW_LANES) {                                                                                \
      for (int64_t i = 0; i < r->n; i++) name##_meet(&v, &at, name##_at(r, i), name##_place(r, i));                 \
    } else {                                                                                                        \
      V lanes = name##_lanes(r, &lanes_at);                                                                         \
      name##_meet(&v, &at, lanes, lanes_at);                                                                        \
    }                                                                                                               \
    U b = name##_result(r, v, init, bits, &first);                                                                  \
    if (ARGR_ISNAN_##KIND(v) && first >= 0) at = name##_place(r, first);                                            \
    memcpy(r->value, &b, sizeof b);                                                                                 \
    memcpy(r->place, &at, sizeof at);                                                                               \
  }                                                                                                                 \
  static void name##_columns(const argr_row *r, int64_t lanes) {                                                    \
    V v[ARGR_LANES], init;                                                                                          \
    I at[ARGR_LANES], init_at;                                                                                      \
    U bits;                                                                                                         \
    int64_t first;                                                                                                  \
    init = name##_init(r, &bits, &init_at);                                                                         \
    for (int64_t l = 0; l < lanes; l++) {                                                                           \
      v[l] = init;                                                                                                  \
      at[l] = init_at;                                                                                              \
    }                                                                                                               \
    const argr_coding c = r->coding;                                                                                \
    for (int64_t i = 0; i < r->n; i++) {                                                                            \
      const char *x = r->x + i * r->stride * (int64_t)sizeof(U),                                                    \
                 *places = r->places ? r->places + i * r->stride * (int64_t)sizeof(I) : NULL;                       \
      for (int64_t l = 0; l < lanes; l++) {                                                                         \
        U b;                                                                                                        \
        I p = (I)i;                                                                                                 \
        memcpy(&b, x + l * (int64_t)sizeof b, sizeof b);                                                            \
        if (places) memcpy(&p, places + l * (int64_t)sizeof p, sizeof p);                                           \
        name##_meet(&v[l], &at[l], ARGR_LOAD_##KIND(V, U, &c, b), p);                                               \
      }                                                                                                             \
    }                                                                                                               \
    for (int64_t l = 0; l < lanes; l++) {                                                                           \
      argr_row one = *r;                                                                                            \
      one.x += l * (int64_t)sizeof(U);                                                                              \
      U b = name##_result(&one, v[l], init, bits, &first);                                                          \
      memcpy(r->value + l * (int64_t)sizeof b, &b, sizeof b);                                                       \
      memcpy(r->place + l * (int64_t)sizeof *at, &at[l], sizeof *at);                                               \
    }                                                                                                               \
  }
/* With places of 32 and of 64 bits. */
#define ARGR_BOTH(name, V, U, KIND)                                                            \
  ARGR_LOOPS(argr_##name##_s32, V, U, KIND, int32_t)                                           \
  ARGR_LOOPS(argr_##name##_s64, V, U, KIND, int64_t)                                           \
  static const argr_loops argr_##name[] = {{argr_##name##_s32_row, argr_##name##_s32_columns}, \
                                           {argr_##name##_s64_row, argr_##name##_s64_columns}};
ARGR_BOTH(f32, float, uint32_t, number)
ARGR_BOTH(f64, double, uint64_t, number)
ARGR_BOTH(f16, int16_t, uint16_t, half)
ARGR_BOTH(s8, int8_t, uint8_t, whole)
ARGR_BOTH(u8, uint8_t, uint8_t, whole)
ARGR_BOTH(s16, int16_t, uint16_t, whole)
ARGR_BOTH(u16, uint16_t, uint16_t, whole)
ARGR_BOTH(s32, int32_t, uint32_t, whole)
ARGR_BOTH(u32, uint32_t, uint32_t, whole)
ARGR_BOTH(s64, int64_t, uint64_t, whole)
ARGR_BOTH(u64, uint64_t, uint64_t, whole)

/* For types that opt_arg_reduction_of lets through. */
const argr_loops *cpu_arg_loops(base_dtype value, base_dtype place) {
  bool wide = place == XLAC_S64;
  switch (value) {
    case XLAC_F32:
      return &argr_f32[wide];
    case XLAC_F64:
      return &argr_f64[wide];
    case XLAC_F16:
    case XLAC_BF16:
      return &argr_f16[wide];
    case XLAC_S8:
      return &argr_s8[wide];
    case XLAC_U8:
      return &argr_u8[wide];
    case XLAC_S16:
      return &argr_s16[wide];
    case XLAC_U16:
      return &argr_u16[wide];
    case XLAC_S32:
      return &argr_s32[wide];
    case XLAC_U32:
      return &argr_u32[wide];
    case XLAC_S64:
      return &argr_s64[wide];
    default:
      assert(value == XLAC_U64);
      return &argr_u64[wide];
  }
}
