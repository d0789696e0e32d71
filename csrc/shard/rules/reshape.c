/* The rule of a reshape: common factors of the two shapes, major to minor, as long as they have any. Where the next
 * sizes have no common divisor both sides get factors of their own until their products are equal again. */
#include "rule.h"

typedef struct reshape_side {
  const ir_type *t;
  uint32_t dim;
  int64_t sizes, factors; /* products so far: of the dimensions begun, of the factors made */
} reshape_side;

static int64_t reshape_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static bool reshape_open(const reshape_side *s) {
  return s->dim < s->t->rank;
}

/* A dimension of size 1 at hand is a factor of its own. */
static bool reshape_unit(const reshape_side *s) {
  return reshape_open(s) && s->t->dims[s->dim] == 1;
}

static void reshape_begin(reshape_side *s) {
  if (reshape_open(s) && s->sizes == s->factors) s->sizes *= s->t->dims[s->dim];
}

static void reshape_end(reshape_side *s) {
  if (reshape_open(s) && s->sizes == s->factors) s->dim++;
}

/* The side that is behind takes what brings the two together, or at least leaves the common divisor for later. */
static int64_t reshape_catch_up(int64_t next, int64_t gcd, int64_t behind, int64_t ahead) {
  if (ahead % behind == 0 && next % (ahead / behind) == 0) return ahead / behind;
  return next > gcd ? next / gcd : next;
}

static void reshape_in(shard_maker *b, reshape_side *s, int64_t size) {
  shard_one(b, s->dim, SHARD_NO_DIM, size, SHARD_PASS, false);
  s->factors *= size;
}

static void reshape_out(shard_maker *b, reshape_side *s, int64_t size) {
  shard_one(b, SHARD_NO_DIM, s->dim, size, SHARD_PASS, false);
  s->factors *= size;
}

static void reshape_step(shard_maker *b, reshape_side *in, reshape_side *out) {
  int64_t next_in = in->sizes / in->factors, next_out = out->sizes / out->factors;
  int64_t gcd = reshape_gcd(next_in, next_out);
  if (in->factors < out->factors) {
    reshape_in(b, in, reshape_catch_up(next_in, gcd, in->factors, out->factors));
  } else if (in->factors > out->factors) {
    reshape_out(b, out, reshape_catch_up(next_out, gcd, out->factors, in->factors));
  } else if (gcd > 1) {
    shard_one(b, in->dim, out->dim, gcd, SHARD_PASS, false);
    in->factors *= gcd;
    out->factors *= gcd;
  } else {
    reshape_in(b, in, next_in);
    reshape_out(b, out, next_out);
  }
}

bool shard_rule_reshape(shard_maker *b) {
  reshape_side in = {shard_tensor_type(b, 0), 0, 1, 1}, out = {shard_result_type(b, 0), 0, 1, 1};
  if (in.t->kind != IR_TYPE_TENSOR || out.t->kind != IR_TYPE_TENSOR || in.t->count == 0 || in.t->has_dynamic ||
      out.t->has_dynamic || in.t->count != out.t->count)
    return false;
  while ((reshape_open(&in) || reshape_open(&out)) && !b->failed) {
    if (reshape_unit(&in)) {
      shard_one(b, in.dim++, SHARD_NO_DIM, 1, SHARD_PASS, false);
    } else if (reshape_unit(&out)) {
      shard_one(b, SHARD_NO_DIM, out.dim++, 1, SHARD_PASS, false);
    } else {
      reshape_begin(&in);
      reshape_begin(&out);
      reshape_step(b, &in, &out);
      reshape_end(&in);
      reshape_end(&out);
    }
  }
  return true;
}
