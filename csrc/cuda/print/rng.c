/* rng-bit-generator: each element is computed of its own number, by the functions that the interpreter uses. */
#include "../../interp/algorithm/random_bits.h"
#include "routine.h"

/* The state that comes out: the key stays, the counter has advanced. */
static void cu_rng_put_state(cuda_routine *r, const interp_bits *s, bool philox, long long words) {
  base_text *out = r->print.out;
  base_putf(out, "  const uint64_t *state = (const uint64_t *)in0, key = state[0];\n");
  base_putf(out, "  const rng_counter counter = {state[1], %s};\n", !philox ? "0" : words < 3 ? "key" : "state[2]");
  base_putf(out, "  if (n == 0) {\n  const rng_counter next = rng_advance(counter, %lluull);\n",
            (unsigned long long)s->blocks);
  base_putf(out, "  uint64_t *to = (uint64_t *)out0;\n  for (int i = 0; i < %lld; i++)\n", words);
  base_putf(out, "    to[i] = i == 1 ? next.low : i == 2 && %s ? next.high : state[i];\n  }\n",
            philox ? "true" : "false");
}

/* "v": the words of element n's block that are its own. */
static void cu_rng_put_word(cuda_routine *r, const interp_bits *s, bool philox) {
  base_text *out = r->print.out;
  const char *wide = "w[at] | (uint64_t)w[at + 1] << 32";
  base_putf(out, "  uint32_t w[%d];\n", philox ? 4 : 2);
  if (philox) {
    bool is_wide = s->bits == 64;
    base_putf(out, "  const int at = %s;\n  rng_philox(key, rng_advance(counter, n / %d), w);\n",
              is_wide ? "n % 2 * 2" : "n % 4", is_wide ? 2 : 4);
    base_putf(out, "  const uint64_t v = %s;\n", is_wide ? wide : "w[at]");
  } else if (s->bits == 64) {
    base_putf(out, "  const int at = 0;\n  rng_threefry(key, counter.low + n, w);\n  const uint64_t v = %s;\n", wide);
  } else {
    base_putf(out, "  const idx along = n / %lld %% %lld, above = n / %lld;\n", (long long)s->inner, (long long)s->size,
              (long long)(s->inner * s->size));
    base_putf(out, "  rng_threefry(key, counter.low + (above * %lld + along / 2) * %lld + n %% %lld, w);\n",
              (long long)s->half, (long long)s->inner, (long long)s->inner);
    BASE_PUT(out, "  const uint64_t v = w[along % 2];\n");
  }
}

/* Fewer than 8 bits are extended to a byte. */
bool cuda_print_rng_bits(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *given = ir_operand_type(op, 0), *t = ir_is_tuple(op->type) ? op->type->elements[1] : NULL;
  const uint64_t nothing[3] = {0, 0, 0};
  bool philox = ir_get_word(op, IR_ATTR_ALGORITHM) != IR_RNG_THREE_FRY;
  interp_bits s;
  if (!t || given->dtype != XLAC_U64 || given->count < 2 || given->count > 3) return false;
  const base_dtype_info *info = base_dtype_of((base_dtype)t->dtype);
  if (info->kind == BASE_KIND_PRED || info->kind == BASE_KIND_COMPLEX) return false;
  interp_bits_prepare(&s, t, nothing, given->count, philox);
  cuda_print_needs(&r->print, "rng_counter");
  cuda_print_needs(&r->print, "rng_advance");
  cuda_print_needs(&r->print, philox ? "rng_philox" : "rng_threefry");
  cuda_routine_open(r, 1, 2, t->count);
  cu_rng_put_state(r, &s, philox, (long long)given->count);
  cu_rng_put_word(r, &s, philox);
  unsigned whole = info->bytes * 8u;
  bool is_signed = base_dtype_is_signed((base_dtype)t->dtype);
  base_putf(r->print.out, "  ((uint%u_t *)out1)[n] = ", whole);
  if (s.bits < 8)
    base_putf(r->print.out, "(uint8_t)((%s)((uint8_t)v << %u) >> %u);\n", is_signed ? "int8_t" : "uint8_t", 8 - s.bits,
              8 - s.bits);
  else
    base_putf(r->print.out, "(uint%u_t)v;\n", whole);
  cuda_routine_close(r, "a thread for each element");
  return true;
}
