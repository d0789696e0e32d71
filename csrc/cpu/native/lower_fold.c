/* What becomes of values that a store combines. Native code does as many combinations as it can in registers; the tree
 * is the vector VM's, whose folds do the rest.
 *
 * Every accumulator begins as the number that leaves any other as it is: -0 of sums, since 0 + -0 is 0. */
#include "lower_convert.h"

/* The VM puts shorter runs of values of one result, and fewer results, side by side: accumulators in memory that code
 * comes back to after a few short vectors, of which the last is masked, have to be waited for. */
enum { NAT_MIN_RUN = 64, NAT_MIN_COLUMNS = 65, NAT_MIN_NARROW = 56 };

/* The type in which values of t are combined: narrow floats in f32, and their lanes are f32 already. */
static nat_type fold_type(nat_type t) {
  bool narrow = t.kind == NAT_BF16 || t.kind == NAT_F16 || t.kind == NAT_CODE;
  return narrow ? (nat_type){NAT_FLOAT, 4, 4, 0, 0} : t;
}

static uint64_t fold_infinity(uint32_t width, bool negative) {
  uint64_t infinity = width == 4 ? 0x7F800000 : 0x7FF0000000000000;
  return infinity | (uint64_t)negative << (8 * width - 1);
}

static bool fold_first_float(scalar_code by, uint32_t width, uint64_t *bits) {
  switch (by) {
    case SCALAR_ADD:
      *bits = (uint64_t)1 << (8 * width - 1);
      return true;
    case SCALAR_MULTIPLY:
      *bits = width == 4 ? 0x3F800000 : 0x3FF0000000000000;
      return true;
    case SCALAR_MAXIMUM:
    case SCALAR_MINIMUM:
      *bits = fold_infinity(width, by == SCALAR_MAXIMUM);
      return true;
    default:
      return false;
  }
}

static bool fold_first_int(scalar_code by, nat_type t, uint64_t *bits) {
  uint64_t sign = (uint64_t)1 << (8 * t.width - 1), ones = sign | (sign - 1);
  bool is_signed = t.kind == NAT_SIGNED;
  switch (by) {
    case SCALAR_ADD:
    case SCALAR_OR:
    case SCALAR_XOR:
      *bits = 0;
      return true;
    case SCALAR_MULTIPLY:
      *bits = 1;
      return true;
    case SCALAR_AND:
      *bits = ones;
      return true;
    case SCALAR_MAXIMUM:
      *bits = is_signed ? sign : 0;
      return true;
    case SCALAR_MINIMUM:
      *bits = is_signed ? sign - 1 : ones;
      return true;
    default:
      return false;
  }
}

/* The bits of the number of type t that changes nothing where it is combined; false where there is none. */
static bool fold_first(scalar_code by, nat_type t, uint64_t *bits) {
  if (t.kind == NAT_FLOAT) return fold_first_float(by, t.width, bits);
  if (t.kind == NAT_PRED) {
    *bits = by == SCALAR_AND || by == SCALAR_MULTIPLY || by == SCALAR_MINIMUM;
    return true;
  }
  return fold_first_int(by, t, bits);
}

void cpu_native_begin(scalar_code by, base_dtype type, int64_t n, char *to) {
  uint64_t bits = 0;
  nat_type t = fold_type(nat_lane_type_of(type));
  bool found = fold_first(by, t, &bits);
  assert(found && t.bytes > 0);
  (void)found;
  size_t bytes = (size_t)n * t.bytes, done = t.bytes;
  assert(n > 0);
  memcpy(to, &bits, t.bytes);
  for (; done < bytes; done *= 2) memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

cpu_native_way nat_best_way(const kernel *k) {
  const kernel_reduction *r = k->reduction;
  if (!r) return CPU_NATIVE_VALUES;
  if (r->inner > 1) {
    bool rows = r->inner >= NAT_MIN_NARROW && k->extents[k->rank - 1] == r->inner;
    return rows || r->inner >= NAT_MIN_COLUMNS ? CPU_NATIVE_COLUMNS : CPU_NATIVE_VALUES;
  }
  return r->outer == 1 || r->reduced >= NAT_MIN_RUN ? CPU_NATIVE_LANES : CPU_NATIVE_VALUES;
}

/* Where values go: an array with an element for each iteration, one with an element for each result side by side, or
 * one place. NULL when out of memory. */
static const kernel_index *fold_index(nat_body *b) {
  kernel_index *x = BASE_NEW(b->arena, kernel_index);
  int64_t stride = 1, most = b->way == CPU_NATIVE_VALUES ? b->k->count : b->k->reduction->inner;
  for (uint32_t d = b->k->rank; x && b->way != CPU_NATIVE_LANES && d-- > 0 && stride < most; stride *= b->k->extents[d])
    x->strides[d] = stride;
  return x;
}

static void fold_store(nat_body *b, const nat_stream *at, uint32_t value, bool result) {
  if (b->failed) return;
  b->stores[b->n_stores++] = (nat_store){value, nat_stream_of(b, at), result, 0};
}

/* --- in registers --- */

/* Extremes as the VM's folds have them: NaN where there is one, and -0 below 0. The largest of the sizes shows a NaN;
 * where the result is zero, the bits of all together show whether both zeros were there. The instruction gives its
 * second operand where one is NaN. */
static uint32_t fold_extreme(nat_body *b, bool most, uint32_t w, uint32_t x) {
  uint64_t sign_bit = (uint64_t)1 << (8 * w - 1);
  uint32_t best = nat_fold_from(b, nat_constant(b, w, fold_infinity(w, most)));
  uint32_t all = nat_fold_from(b, nat_constant(b, w, most ? UINT64_MAX : 0));
  uint32_t size = nat_fold_from(b, nat_constant(b, w, 0));
  nat_type ints = {NAT_SIGNED, (uint8_t)w, (uint8_t)w, 0, 0};
  nat_fold_to(b, best, nat_op2(b, most ? NAT_FMAX : NAT_FMIN, w, x, best));
  nat_fold_to(b, all, nat_op2(b, most ? NAT_AND : NAT_OR, w, all, x));
  uint32_t now = nat_op2(b, NAT_AND, w, x, nat_constant(b, w, sign_bit - 1));
  nat_fold_to(b, size, nat_combine(b, SCALAR_MAXIMUM, ints, now, size));
  uint32_t zero = nat_op2(b, NAT_AND, w, all, nat_constant(b, w, sign_bit));
  uint32_t is_zero = nat_op(b, NAT_FCMP, w, best, nat_constant(b, w, 0), NAT_NONE, 0);
  uint32_t number = nat_select(b, is_zero, zero, best), infinity = nat_constant(b, w, fold_infinity(w, false));
  return nat_select(b, nat_compare_ints(b, w, true, SCALAR_GT, size, infinity), size, number);
}

static uint32_t fold_lanes(nat_body *b, scalar_code by, nat_type t, uint32_t value) {
  bool extreme = by == SCALAR_MAXIMUM || by == SCALAR_MINIMUM;
  uint64_t bits = 0;
  if (b->failed || t.kind == NAT_PRED || !fold_first(by, t, &bits)) return b->failed = true, 0;
  if (t.kind == NAT_FLOAT && extreme) return fold_extreme(b, by == SCALAR_MAXIMUM, t.width, value);
  uint32_t acc = nat_fold_from(b, nat_constant(b, t.width, bits));
  nat_fold_to(b, acc, nat_combine(b, by, t, acc, value));
  return acc;
}

/* As many vectors a trip as make the lanes of the VM's folds, which all that is combined must share; of integers any
 * number is right. */
static void fold_set_turns(nat_body *b, nat_type t) {
  uint32_t turns = CPU_NATIVE_FOLD_BYTES / (t.width * b->lanes);
  if (t.kind != NAT_FLOAT) return;
  if ((b->turns != 1 && b->turns != turns) || turns == 0 || turns > NAT_MAX_TURNS) b->failed = true;
  b->turns = turns;
}

/* Lanes of 8 bytes beside the vectors of narrower floats would go over those of the next row. */
bool nat_folds_fit(const nat_body *b) {
  for (uint32_t i = 0; b->way == CPU_NATIVE_LANES && i < b->n_folds; i++)
    if (b->values[b->folds[i].first].width * b->lanes * b->turns > CPU_NATIVE_FOLD_BYTES) return false;
  return true;
}

void nat_lower_fold(nat_body *b, const kernel_store *s, uint32_t value) {
  nat_type of = nat_lane_type_of((base_dtype)b->k->values[s->value].dtype), t = fold_type(of);
  const kernel_index *index = fold_index(b);
  nat_stream at = {.output = true, .sum = true, .width = t.bytes, .stride = 1, .index = index};
  at.buffer = (uint32_t)(s - b->k->stores);
  bool whole = of.kind == NAT_COMPLEX || of.bits;
  if (!index || b->failed || nat_is_wide(of) || (whole && b->way != CPU_NATIVE_VALUES)) {
    b->failed = true;
    return;
  }
  if (of.kind == NAT_CODE && b->way != CPU_NATIVE_VALUES) value = nat_decode(b, value, of);
  if (b->way == CPU_NATIVE_VALUES) {
    at.width = of.bytes;
    fold_store(b, &at, nat_pack(b, value, of), false);
  } else if (b->way == CPU_NATIVE_LANES) {
    fold_set_turns(b, t);
    at.stride = 0;
    fold_store(b, &at, fold_lanes(b, s->by, t, value), true);
  } else {
    nat_stream from = at;
    from.output = false;
    uint32_t before = nat_unpack(b, nat_load(b, t.bytes, nat_stream_of(b, &from)), t);
    fold_store(b, &at, nat_pack(b, nat_combine(b, s->by, t, before, value), t), false);
  }
}
