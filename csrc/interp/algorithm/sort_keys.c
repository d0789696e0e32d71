/* Sort keys and a stable merge sort on them.
 *
 * An element's key is an unsigned number in the order that is sought, so that sorting compares integers,
 * without branches on types. Elements carry their places: equal keys keep their order, as the merges take
 * from the left first. */
#include "sort_keys.h"

#include "../blocks.h"

enum { INSERTION = 16 };

/* Sign-magnitude bits of a float to unsigned order: negatives are complemented, positives get the top bit.
 * The total order: -NaN < -inf < ... < -0 < 0 < ... < NaN; zeros_equal makes -0 the same as 0. */
static inline uint64_t float_key(uint64_t bits, unsigned width, bool zeros_equal) {
  uint64_t top = (uint64_t)1 << (width - 1), all = top | (top - 1);
  if (zeros_equal && bits == top) bits = 0;
  return bits & top ? ~bits & all : bits | top;
}

/* Descending order is the complement of each key, which keeps equal elements in their order, unlike a
 * reversal. */
#define KEY_LOOP(T, expression)                      \
  for (int64_t i = 0; i < n; i++) {                  \
    T v;                                             \
    memcpy(&v, (const T *)data + i, sizeof v);       \
    out[i] = (interp_keyed){(expression) ^ flip, i}; \
  }

/* Integers of any width, and floats of one byte. */
static uint64_t slow_key(base_dtype t, const char *p, bool zeros_equal) {
  if (!base_dtype_is_float(t)) return (uint64_t)base_load_i64(t, p) ^ (uint64_t)1 << 63;
  assert(base_dtype_bytes(t) == 1);
  uint8_t bits;
  memcpy(&bits, p, 1);
  return t == XLAC_F8E8M0FNU ? bits : float_key(bits, base_dtype_of(t)->bits, zeros_equal); /* e8m0 has no sign */
}

/* at is the element's number in data, from 0. */
void interp_sort_keys(base_dtype t, const void *data, int64_t n, bool zeros_equal, bool descending, interp_keyed *out) {
  uint64_t flip = descending ? UINT64_MAX : 0;
  switch (t) {
    case XLAC_F16:
    case XLAC_BF16:
      KEY_LOOP(uint16_t, float_key(v, 16, zeros_equal)) break;
    case XLAC_F32:
      KEY_LOOP(uint32_t, float_key(v, 32, zeros_equal)) break;
    case XLAC_F64:
      KEY_LOOP(uint64_t, float_key(v, 64, zeros_equal)) break;
    case XLAC_U32:
      KEY_LOOP(uint32_t, (uint64_t)v) break;
    case XLAC_U64:
      KEY_LOOP(uint64_t, v) break;
    case XLAC_S32:
      KEY_LOOP(int32_t, (uint64_t)(int64_t)v ^ (uint64_t)1 << 63) break;
    case XLAC_S64:
      KEY_LOOP(int64_t, (uint64_t)v ^ (uint64_t)1 << 63) break;
    default:
      for (int64_t i = 0; i < n; i++) {
        const char *p = (const char *)data + i * (int64_t)base_dtype_bytes(t);
        out[i] = (interp_keyed){slow_key(t, p, zeros_equal) ^ flip, i};
      }
  }
}
#undef KEY_LOOP

/* Complex numbers have no order. */
bool interp_sort_keyable(base_dtype t) {
  return !base_dtype_is_complex(t);
}

/* Comparators by < and > treat NaN as equal to everything, which no key can. */
bool interp_has_nan(base_dtype t, const void *data, int64_t n) {
  if (!base_dtype_is_float(t)) return false;
  const char *p = data;
  if (t == XLAC_F32) {
    uint32_t bits, found = 0;
    for (int64_t i = 0; i < n; i++) {
      memcpy(&bits, p + i * 4, 4);
      found |= (bits & 0x7fffffffu) > 0x7f800000u;
    }
    return found;
  }
  for (int64_t i = 0; i < n; i++) {
    double v = base_load_f64(t, p + i * (int64_t)base_dtype_bytes(t));
    if (v != v) return true;
  }
  return false;
}

/* Stable. */
static void insertion_sort(interp_keyed *v, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    interp_keyed x = v[i];
    int64_t j = i;
    for (; j > 0 && x.key < v[j - 1].key; j--) v[j] = v[j - 1];
    v[j] = x;
  }
}

/* What both sides surely have left is merged without looking at their ends, then interrupts are looked
 * for. Takes from a where keys are equal: stable. */
static int merge_keyed(interp_ctx *ctx, const interp_keyed *a, int64_t na, const interp_keyed *b, int64_t nb,
                       interp_keyed *out) {
  int64_t i = 0, j = 0;
  while (i < na && j < nb) {
    int64_t some = interp_min(INTERP_BLOCK, interp_min(na - i, nb - j));
    for (int64_t k = 0; k < some; k++) {
      bool right = b[j].key < a[i].key;
      *out++ = right ? b[j] : a[i];
      j += right;
      i += !right;
    }
    TRY(interp_tick(ctx, (uint64_t)some));
  }
  TRY(interp_copy_bytes(ctx, out, a + i, (size_t)(na - i) * sizeof *a));
  return interp_copy_bytes(ctx, out + (na - i), b + j, (size_t)(nb - j) * sizeof *b);
}

static void sort_runs(void *v, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += INSERTION)
    insertion_sort((interp_keyed *)v + i, interp_min(INSERTION, end - i));
}

/* v is sorted in place; spare has room for n. */
int interp_sort_keyed(interp_ctx *ctx, interp_keyed *v, interp_keyed *spare, int64_t n) {
  assert(n >= 0);
  _Static_assert(INTERP_BLOCK % INSERTION == 0, "runs end where blocks do");
  interp_keyed *from = v, *to = spare;
  TRY(interp_in_blocks(ctx, n, sort_runs, v));
  for (int64_t width = INSERTION; width < n; width *= 2) {
    for (int64_t i = 0; i < n; i += 2 * width) {
      int64_t na = interp_min(width, n - i), nb = interp_min(width, n - i - na);
      TRY(merge_keyed(ctx, from + i, na, from + i + na, nb, to + i));
    }
    interp_keyed *swap = from;
    from = to;
    to = swap;
  }
  return from != v && n > 0 ? interp_copy_bytes(ctx, v, from, (size_t)n * sizeof *v) : 0;
}
