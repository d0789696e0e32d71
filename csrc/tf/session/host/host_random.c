/* Random ops with hidden state. Seeded ones give the numbers that TensorFlow gives on a CPU: a Philox generator for
 * each node, of which a call takes 256 blocks for each element, and TensorFlow's way from bits to numbers. Source: the
 * behaviour of random_op_cpu.h, random_distributions.h, guarded_philox_random.h, random_shuffle_op.cc (2.21). */
#include <math.h>
#include <sys/random.h>
#include <time.h>

#include "../random.h"
#include "../run.h"

enum { TFS_BLOCKS_PER_ELEMENT = 256 };

/* From the session's seed, so that runs can be repeated; else from the system, or from the clock where that has
 * none to give at once. */
static uint64_t tfs_any_seed(tfs_session *s) {
  uint64_t seed = 0;
  if (s->options.seed) return s->options.seed + 0x9E3779B97F4A7C15u * ++s->next_seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) return seed;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_nsec * 0x9E3779B97F4A7C15u + (uint64_t)t.tv_sec + ++s->next_seed;
}

/* The generator of a node, noted for the case that the call fails. Made when the node first runs; the two seeds
 * are as TensorFlow has them, and both 0 mean "any". */
static int tfs_generator(tfs_call *c, tfs_random **out) {
  tfs_session *s = tfs_context_of(c->run)->session;
  tfs_random *r = c->unit->random;
  if (!r) {
    uint64_t low = (uint64_t)tfs_attr_int(c, "seed", 0), high = (uint64_t)tfs_attr_int(c, "seed2", 0);
    if (low == 0 && high == 0) low = tfs_any_seed(s), high = tfs_any_seed(s);
    if (!(r = base_malloc(c->alloc, sizeof *r))) return tfs_oom(c);
    *r = (tfs_random){.key = low, .counter = {0, high}};
    c->unit->random = r;
  }
  TRY(tfs_save_random(s, r, c->err));
  *out = r;
  return 0;
}

/* --- bits to numbers --- */

/* From 0 up to 1, without 1: 23 bits as the fraction of a number from 1 up to 2. */
static float tfs_unit_float(uint32_t x) {
  uint32_t bits = (x & 0x7FFFFFu) | 127u << 23;
  float f = 0;
  memcpy(&f, &bits, sizeof f);
  return f - 1.0f;
}

/* The same with 52 bits. */
static double tfs_unit_double(uint32_t x0, uint32_t x1) {
  uint64_t bits = (uint64_t)(x0 & 0xFFFFFu) << 32 | x1 | (uint64_t)1023 << 52;
  double d = 0;
  memcpy(&d, &bits, sizeof d);
  return d - 1.0;
}

/* Box and Muller's way: two uniform numbers to two normal ones. Rounding to float is where TensorFlow rounds. */
static void tfs_normal_floats(uint32_t x0, uint32_t x1, double out[2]) {
  float u = tfs_unit_float(x0);
  if (u < 1.0e-7f) u = 1.0e-7f;
  float v = (float)(2.0f * M_PI * (double)tfs_unit_float(x1)), r = sqrtf(-2.0f * logf(u));
  out[0] = (double)(sinf(v) * r);
  out[1] = (double)(cosf(v) * r);
}

/* All four words of a block make two numbers. */
static void tfs_normal_doubles(const uint32_t x[4], double out[2]) {
  double u = tfs_unit_double(x[0], x[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  double v = 2 * M_PI * tfs_unit_double(x[2], x[3]), r = sqrt(-2.0 * log(u));
  out[0] = sin(v) * r;
  out[1] = cos(v) * r;
}

/* Half floats take their bits from the low end of a word, as a float does. */
static double tfs_unit_narrow(base_dtype type, uint32_t x) {
  unsigned mantissa = base_dtype_of(type)->mantissa_bits;
  return 1.0 * (x & ((1u << mantissa) - 1)) / (double)(1u << mantissa);
}

/* One block of uniform numbers; how many. */
static unsigned tfs_uniform_block(base_dtype type, const uint32_t x[4], double out[4]) {
  if (type == XLAC_F64) {
    out[0] = tfs_unit_double(x[0], x[1]);
    out[1] = tfs_unit_double(x[2], x[3]);
    return 2;
  }
  for (unsigned i = 0; i < 4; i++)
    out[i] = type == XLAC_F32 ? (double)tfs_unit_float(x[i]) : tfs_unit_narrow(type, x[i]);
  return 4;
}

/* Four floats or two doubles from one block; how many. */
static unsigned tfs_normal_block(base_dtype type, const uint32_t x[4], double out[4]) {
  assert(out);
  if (type == XLAC_F64) {
    tfs_normal_doubles(x, out);
    return 2;
  }
  tfs_normal_floats(x[0], x[1], out);
  tfs_normal_floats(x[2], x[3], out + 2);
  return 4;
}

/* Numbers beyond two deviations are drawn again, from the blocks that only this group has. Ends also where luck
 * never comes: with zeros. */
static unsigned tfs_truncated_group(base_dtype type, uint64_t key, rng_counter at, double out[4]) {
  unsigned want = type == XLAC_F64 ? 2 : 4, n = 0;
  uint32_t x[4];
  double two[2];
  for (uint64_t block = 0; n < want && block < 65536; block++) {
    rng_philox(key, rng_advance(at, block), x);
    for (unsigned part = 0; part < (type == XLAC_F64 ? 1u : 2u); part++) {
      if (type == XLAC_F64)
        tfs_normal_doubles(x, two);
      else
        tfs_normal_floats(x[2 * part], x[2 * part + 1], two);
      for (unsigned i = 0; i < 2 && n < want; i++)
        if (fabs(two[i]) < 2.0) out[n++] = two[i];
    }
  }
  while (n < want) out[n++] = 0;
  return want;
}

/* kind: 0 uniform, 1 normal, 2 truncated normal. A group of numbers begins where TensorFlow's threads would begin
 * it. */
static void tfs_fill_random(interp_value *v, int32_t kind, const tfs_random *r) {
  assert(kind >= 0 && kind <= 2);
  base_dtype type = (base_dtype)v->dtype;
  size_t size = base_dtype_bytes(type);
  uint64_t step = kind == 2 ? (type == XLAC_F64 ? 2 : 4) * TFS_BLOCKS_PER_ELEMENT / 4 : 1;
  rng_counter at = r->counter;
  uint32_t x[4];
  double numbers[4];
  for (int64_t i = 0; i < v->count; at = rng_advance(at, step)) {
    unsigned n = 0;
    if (kind < 2) rng_philox(r->key, at, x);
    if (kind == 0) n = tfs_uniform_block(type, x, numbers);
    if (kind == 1) n = tfs_normal_block(type, x, numbers);
    if (kind == 2) n = tfs_truncated_group(type, r->key, at, numbers);
    for (unsigned k = 0; k < n && i < v->count; k++, i++)
      base_store_f64(type, (char *)v->data + (size_t)i * size, numbers[k]);
  }
}

/* --- the ops --- */

/* Not filled yet; the shape is input 0. */
static int tfs_random_result(tfs_call *c, base_dtype type, interp_value **out) {
  uint32_t rank = 0;
  int64_t dims[IR_MAX_RANK];
  TRY(tfs_dims_in(c, 0, &rank, dims));
  TRY(tfs_check_dims(c, rank, dims));
  *out = tfs_new_tensor(c->alloc, type, rank, dims);
  return *out ? 0 : tfs_oom(c);
}

/* The generator moves on by the whole reserve, as guarded_philox_random does, whatever was used of it. */
int tfs_host_random(tfs_call *c) {
  tfs_random *r = NULL;
  interp_value *v = NULL;
  base_dtype type = tfs_out_dtype(c, 0);
  if (!base_dtype_is_float(type)) return tfs_fail(c, XLAC_E_ARGUMENT_TYPE, "its result is not a float");
  TRY(tfs_generator(c, &r));
  TRY(tfs_random_result(c, type, &v));
  tfs_fill_random(v, c->unit->host->arg, r);
  r->counter = rng_advance(r->counter, (uint64_t)v->count * TFS_BLOCKS_PER_ELEMENT);
  return tfs_give_tensor(c, 0, v);
}

/* Bits modulo the range: what TensorFlow does, though it is not quite even. */
int tfs_host_random_int(tfs_call *c) {
  tfs_random *r = NULL;
  interp_value *v = NULL;
  int64_t low = 0, high = 0;
  base_dtype type = tfs_out_dtype(c, 0);
  TRY(tfs_int_in(c, 1, &low));
  TRY(tfs_int_in(c, 2, &high));
  if (type != XLAC_S32 && type != XLAC_S64)
    return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "its result is neither s32 nor s64");
  if (low >= high) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "maxval must be over minval");
  TRY(tfs_generator(c, &r));
  TRY(tfs_random_result(c, type, &v));
  uint64_t range = (uint64_t)high - (uint64_t)low;
  unsigned each = type == XLAC_S64 ? 2 : 4;
  uint32_t x[4] = {0};
  for (int64_t i = 0; i < v->count; i++) {
    unsigned k = (unsigned)(i % each);
    if (k == 0) rng_philox(r->key, rng_advance(r->counter, (uint64_t)(i / each)), x);
    uint64_t bits = each == 2 ? x[2 * k] | (uint64_t)x[2 * k + 1] << 32 : x[k];
    base_store_i64(type, (char *)v->data + (size_t)i * base_dtype_bytes(type), (int64_t)((uint64_t)low + bits % range));
  }
  r->counter = rng_advance(r->counter, (uint64_t)v->count * TFS_BLOCKS_PER_ELEMENT);
  return tfs_give_tensor(c, 0, v);
}

/* Rows change places with later ones, one draw a row. */
static void tfs_shuffle(const tfs_random *r, int64_t n, int64_t *order) {
  assert(n > 0);
  uint32_t x[4] = {0};
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = 0; i + 1 < n; i++) {
    if (i % 4 == 0) rng_philox(r->key, rng_advance(r->counter, (uint64_t)i / 4), x);
    int64_t j = i + (int64_t)(x[i % 4] % (uint32_t)(n - i)), was = order[i];
    order[i] = order[j];
    order[j] = was;
  }
}

/* What has one row or none comes as it is, and draws nothing. */
int tfs_host_random_shuffle(tfs_call *c) {
  tfs_random *r = NULL;
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, 0, &v));
  if (v->rank == 0 || v->dims[0] <= 1 || v->count <= 1) return tfs_give_tensor(c, 0, interp_retain(v));
  TRY(tfs_generator(c, &r));
  int64_t n = v->dims[0], *order = base_malloc(c->alloc, (size_t)n * sizeof *order);
  interp_value *out = order ? tfs_new_tensor(c->alloc, (base_dtype)v->dtype, v->rank, v->dims) : NULL;
  size_t row = interp_bytes(v) / (size_t)n;
  if (out) tfs_shuffle(r, n, order);
  for (int64_t i = 0; i < n && out; i++)
    memcpy((char *)out->data + (size_t)i * row, (const char *)v->data + (size_t)order[i] * row, row);
  r->counter = rng_advance(r->counter, ((uint64_t)n - 1 + 3) / 4);
  base_free(c->alloc, order);
  return tfs_give_tensor(c, 0, out);
}
