/* bitcast-convert between types of any width, and bitcast between layouts. Elements narrower than a byte lie one to a
 * byte in memory, but side by side, low ones first, in the bits that are cast. */
#include "../../interp/algorithm/arrays.h"
#include "move.h"
#include "../routine.h"

enum { BITS_BLOCK = 1 << 12, BITS_RANGE = 16 }; /* bytes of bits at a time, blocks for a thread */

/* Operand or result, as a stream of bits. */
typedef struct bits_side {
  uint8_t dtype;
  uint32_t width; /* bits of an element in the stream */
  int64_t bytes;  /* of an element in memory */
} bits_side;

/* What is known before a run. */
typedef struct bits_data {
  bits_side from, to;
  int64_t bits; /* in all */
} bits_data;

/* One run: shared by its threads. */
typedef struct bits_work {
  const bits_data *x;
  const char *from;
  char *to;
} bits_work;

/* n elements, one to a byte, into the stream: 8 / width of them to a byte, low ones first. */
static void bits_pack(uint32_t width, const uint8_t *from, int64_t n, uint8_t *to) {
  assert(width > 0 && 8 % width == 0);
  int64_t each = 8 / (int64_t)width;
  uint32_t mask = (1u << width) - 1;
  for (int64_t i = 0; i < n; i += each) {
    uint32_t byte = 0;
    for (int64_t k = 0; k < each && i + k < n; k++) byte |= (from[i + k] & mask) << (uint32_t)k * width;
    *to++ = (uint8_t)byte;
  }
}

/* The other way. Signed elements get their sign in the bits above: (x ^ sign) - sign. */
static void bits_unpack(const bits_side *s, const uint8_t *from, int64_t n, uint8_t *to) {
  assert(s->width > 0 && 8 % s->width == 0);
  int64_t each = 8 / (int64_t)s->width;
  uint32_t mask = (1u << s->width) - 1;
  uint32_t sign = base_dtype_of((base_dtype)s->dtype)->kind == BASE_KIND_SINT ? 1u << (s->width - 1) : 0;
  for (int64_t i = 0; i < n; i += each, from++)
    for (int64_t k = 0; k < each && i + k < n; k++)
      to[i + k] = (uint8_t)(((*from >> (uint32_t)k * s->width & mask) ^ sign) - sign);
}

/* Drops what bits of the bytes the type has no use for. */
static void bits_cut(const bits_side *s, const uint8_t *from, int64_t n, uint8_t *to) {
  uint32_t mask = (1u << base_dtype_of((base_dtype)s->dtype)->bits) - 1;
  for (int64_t i = 0; i < n; i++) to[i] = s->dtype == XLAC_PRED ? from[i] != 0 : (uint8_t)(from[i] & mask);
}

/* Bits [at, at + bits) of the stream. Blocks begin at whole bytes and whole elements of both sides: their size is a
 * multiple of every element's. */
static void bits_block(const bits_work *w, int64_t at, int64_t bits) {
  assert(bits <= BITS_BLOCK * 8);
  const bits_side *f = &w->x->from, *t = &w->x->to;
  uint8_t block[BITS_BLOCK];
  const uint8_t *stream = (const uint8_t *)w->from + at / f->width * f->bytes;
  uint8_t *to = (uint8_t *)w->to + at / t->width * t->bytes;
  /* Whole bytes are a stream of bits as stored. */
  if (f->width < 8) {
    bits_pack(f->width, stream, bits / f->width, block);
    stream = block;
  }
  if (t->width < 8)
    bits_unpack(t, stream, bits / t->width, to);
  else if (base_dtype_of((base_dtype)t->dtype)->bits < 8)
    bits_cut(t, stream, bits / t->width, to);
  else
    memcpy(to, stream, (size_t)(bits / 8));
}

/* Blocks begin to end; for rt_parallel_for. */
static void bits_range(void *ctx, size_t begin, size_t end) {
  const bits_work *w = ctx;
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    int64_t at = i * BITS_BLOCK * 8;
    bits_block(w, at, interp_min(BITS_BLOCK * 8, w->x->bits - at));
  }
}

/* The routine. Blocks share nothing, so any number of threads gives the same bits. */
static int bits_run(const cpu_routine_run *r) {
  bits_work w = {r->data, r->in[0], r->out[0]};
  int64_t blocks = (w.x->bits + BITS_BLOCK * 8 - 1) / (BITS_BLOCK * 8);
  rt_parallel_for(r->run->exe->pool, (size_t)blocks, BITS_RANGE, bits_range, &w);
  return 0;
}

/* XLA takes a pred and a 6-bit float for whole bytes; StableHLO a truth value for one bit, where counts say so. */
static bits_side bits_side_of(const ir_type *t, const ir_type *other) {
  uint32_t bits = base_dtype_of((base_dtype)t->dtype)->bits, others = base_dtype_of((base_dtype)other->dtype)->bits;
  bits_side s = {t->dtype, t->dtype == XLAC_PRED || bits == 6 ? 8 : bits,
                 (int64_t)base_dtype_bytes((base_dtype)t->dtype)};
  if (t->dtype == XLAC_PRED && other->dtype != XLAC_PRED && others != 6 && t->count == other->count * others)
    s.width = 1;
  return s;
}

/* A pred cast to or from 6-bit floats of another count, which is left to the interpreter. */
static bool bits_is_odd(const ir_type *t, const ir_type *other) {
  return t->dtype == XLAC_PRED && base_dtype_of((base_dtype)other->dtype)->bits == 6 && t->count != other->count;
}

/* Where the two sides differ in bits, it is left to the interpreter. */
int cpu_prepare_bitcast_convert(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *operand = ir_operand_type(x->op, 0);
  if (!ir_is_tensor(t) || !ir_is_tensor(operand) || bits_is_odd(t, operand) || bits_is_odd(operand, t)) return 0;
  bits_data *data = BASE_NEW(x->arena, bits_data);
  if (!data) return base_oom(x->err, "a bitcast-convert");
  *data = (bits_data){.from = bits_side_of(operand, t), .to = bits_side_of(t, operand)};
  if (!base_mul_i64(operand->count, data->from.width, &data->bits) || data->bits != t->count * data->to.width) return 0;
  x->out->name = "bits";
  x->data = data;
  x->out->work = (uint64_t)(operand->count + t->count);
  x->out->stoppable = true;
  x->code = bits_run;
  return 0;
}

/* --- bitcast: the operand's bytes in the order of its layout are the result's in the order of its own --- */

/* store: from row-major memory to scratch memory in the operand's layout; load: from there, read in the result's
 * layout, to row-major memory. */
typedef struct bits_layouts {
  cpu_move store, load;
} bits_layouts;

/* The routine: two copies, by way of scratch memory. */
static int bits_layouts_run(const cpu_routine_run *r) {
  const bits_layouts *x = r->data;
  cpu_move_run(&x->store, r->run->exe->pool, r->scratch, r->in[0]);
  cpu_move_run(&x->load, r->run->exe->pool, r->out[0], r->scratch);
  return 0;
}

/* Strides of an array stored densely in the type's layout. */
static void bits_layout_strides(const ir_type *t, int64_t *strides) {
  int64_t stride = 1;
  cpu_move_strides(t, strides);
  for (uint32_t i = 0; t->layout && t->layout->rank == t->rank && i < t->rank; i++) {
    strides[t->layout->minor_to_major[i]] = stride;
    stride *= interp_max(1, t->dims[t->layout->minor_to_major[i]]);
  }
}

/* Whether the elements are stored as they are here, bytes of which all bits count unless the types are the same. */
static bool bits_is_plain(const ir_type *t, const ir_type *other) {
  int64_t own = (int64_t)base_dtype_bytes((base_dtype)t->dtype) * 8;
  if (!ir_is_tensor(t) || !ir_is_tensor(other)) return false;
  if (t->layout && t->layout->element_bits > 0 && t->layout->element_bits != own) return false;
  return t->dtype == other->dtype || (t->dtype != XLAC_PRED && base_dtype_of((base_dtype)t->dtype)->bits == own);
}

/* Where one of the types isn't plain, the interpreter evaluates the op. */
int cpu_prepare_bitcast(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *operand = ir_operand_type(x->op, 0);
  int64_t from[IR_MAX_RANK], stored[IR_MAX_RANK], to[IR_MAX_RANK];
  if (!bits_is_plain(t, operand) || !bits_is_plain(operand, t)) return 0;
  size_t each = base_dtype_bytes((base_dtype)operand->dtype), bytes = base_dtype_bytes((base_dtype)t->dtype);
  if (operand->count * (int64_t)each != t->count * (int64_t)bytes) return 0;
  bits_layouts *data = BASE_NEW(x->arena, bits_layouts);
  if (!data) return base_oom(x->err, "a bitcast");
  cpu_move_strides(operand, from);
  bits_layout_strides(operand, stored);
  bool made = cpu_move_make(&data->store, x->arena, each, operand->rank, operand->dims, stored, from);
  cpu_move_strides(t, to);
  bits_layout_strides(t, stored);
  made = made && cpu_move_make(&data->load, x->arena, bytes, t->rank, t->dims, to, stored);
  if (!made) return base_oom(x->err, "a bitcast");
  x->out->name = "move";
  x->data = data;
  x->out->scratch_bytes = t->count * (int64_t)bytes;
  x->out->work = (uint64_t)t->count * 2;
  x->out->stoppable = true;
  x->code = bits_layouts_run;
  return 0;
}
