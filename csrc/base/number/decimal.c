#include "decimal.h"

#include <string.h>

const base_power5 base_powers5[] = {
#define P5(high, low) {high, low},
#include "powers_of_five.def"
#undef P5
};

/* A natural number of up to BIG_LIMBS * 64 bits; 771 digits or 5^1113 * 2^54 take 2640 of them. */
enum { BIG_LIMBS = 48, FIVES = 27 };
typedef struct big_number {
  uint32_t n;
  uint64_t limbs[BIG_LIMBS];
} big_number;

/* clang-format off */
static const uint64_t small_powers5[FIVES + 1] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u, 1220703125u,
    6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u, 19073486328125u, 95367431640625u,
    476837158203125u, 2384185791015625u, 11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u};
/* clang-format on */

static void multiply_add(big_number *b, uint64_t factor, uint64_t carry) {
  for (uint32_t i = 0; i < b->n; ++i) {
    base_u128 v = (base_u128)b->limbs[i] * factor + carry;
    b->limbs[i] = (uint64_t)v;
    carry = (uint64_t)(v >> 64);
  }
  if (!carry) return;
  assert(b->n < BIG_LIMBS);
  b->limbs[b->n++] = carry;
}

static void multiply_power5(big_number *b, int64_t k) {
  assert(k >= 0);
  for (; k > FIVES; k -= FIVES) multiply_add(b, small_powers5[FIVES], 0);
  multiply_add(b, small_powers5[k], 0);
}

static void shift_left(big_number *b, int64_t k) {
  assert(k >= 0 && k < BIG_LIMBS * 64);
  uint32_t whole = (uint32_t)(k / 64);
  multiply_add(b, (uint64_t)1 << k % 64, 0);
  assert(b->n + whole <= BIG_LIMBS);
  memmove(b->limbs + whole, b->limbs, b->n * sizeof *b->limbs);
  memset(b->limbs, 0, whole * sizeof *b->limbs);
  b->n += whole;
}

static int compare_big(const big_number *a, const big_number *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  for (uint32_t i = a->n; i-- > 0;)
    if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
  return 0;
}

/* d * 10^q against m * 2^e: the fives go to the side that keeps both whole, and so do the twos. */
static int compare_scaled(big_number *d, int64_t q, uint64_t m, int e) {
  assert(d->n && m);
  big_number b = {.n = 1, .limbs = {m}};
  if (q >= 0)
    multiply_power5(d, q);
  else
    multiply_power5(&b, -q);
  if (q >= e)
    shift_left(d, q - e);
  else
    shift_left(&b, e - q);
  return compare_big(d, &b);
}

int base_compare_decimal(uint64_t d, int q, uint64_t m, int e) {
  big_number b = {.n = 1, .limbs = {d}};
  return compare_scaled(&b, q, m, e);
}

/* The first digits of a text, gathered by machine words. */
typedef struct digit_word {
  uint64_t value, scale;
} digit_word;

static void flush_word(big_number *b, digit_word *w) {
  multiply_add(b, w->scale, w->value);
  *w = (digit_word){0, 1};
}

static void append_digit(big_number *b, digit_word *w, unsigned digit) {
  assert(digit < 10);
  w->value = w->value * 10 + digit;
  w->scale *= 10;
  if (w->scale == 10000000000000000000u) flush_word(b, w);
}

int base_compare_digits(const char *s, size_t n, int64_t q, uint64_t m, int e) {
  big_number b = {.n = 0};
  digit_word w = {0, 1};
  int taken = 0;
  bool more = false;
  for (const char *end = s + n; s < end; ++s) {
    unsigned digit = (unsigned char)(*s - '0');
    if (digit > 9 || (digit == 0 && taken == 0)) continue;
    if (taken < BASE_MAX_DIGITS) {
      append_digit(&b, &w, digit);
      ++taken;
    } else {
      more |= digit != 0;
      ++q;
    }
  }
  if (more) { /* any digit will do for a rest that is not zero */
    append_digit(&b, &w, 1);
    --q;
  }
  flush_word(&b, &w);
  return compare_scaled(&b, q, m, e);
}
