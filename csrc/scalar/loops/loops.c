/* Finds the loop of an op, and runs loops: narrow floats by way of f32, integers narrower than a byte cut to their
 * width. */
#include "../../base/isa/isa.h"
#include "loops.h"

/* 512 lanes of f32 are 2 KB, four buffers 8 KB. */
#define STAGE 512 /* lanes widened at a time; the buffers stay in the first-level cache */

/* f16, bf16 and the floats of 8 bits and fewer: they compute in f32 and round each op's result, as XLA's
 * CPU backend does. */
static bool is_narrow(base_dtype t) {
  return base_dtype_is_float(t) && t != XLAC_F32 && t != XLAC_F64;
}

/* The widest instructions that the CPU has; the bits are the same. Asked again at each lookup, so that a
 * test can lower it. */
static base_isa best_isa(void) {
  base_isa isa = base_isa_best();
  return isa > BASE_ISA_AVX512 ? BASE_ISA_AVX512 : isa;
}

#define LOOPS_OF(type) {scalar_loops_##type, scalar_loops_##type##_avx2, scalar_loops_##type##_avx512}
/* Of integers those for AVX2 are for both: most kernels are machine code, and alone such an op waits for memory. */
#define INTEGER_LOOPS_OF(type) {scalar_loops_##type, scalar_loops_##type##_avx2, scalar_loops_##type##_avx2}
/* By log2 of the size. 0 for bytes up to 3 for eight of them; s2 and s4 are bytes here. */
static scalar_loop_fn *const *signed_table(int size) {
  assert(size >= 0 && size < 4);
  scalar_loop_fn *const *tables[4][3] = {INTEGER_LOOPS_OF(s8), INTEGER_LOOPS_OF(s16), INTEGER_LOOPS_OF(s32),
                                         INTEGER_LOOPS_OF(s64)};
  return tables[size][best_isa()];
}
static scalar_loop_fn *const *unsigned_table(int size) {
  assert(size >= 0 && size < 4);
  scalar_loop_fn *const *tables[4][3] = {INTEGER_LOOPS_OF(u8), INTEGER_LOOPS_OF(u16), INTEGER_LOOPS_OF(u32),
                                         INTEGER_LOOPS_OF(u64)};
  return tables[size][best_isa()];
}
/* Narrow floats compute in f32. */
static scalar_loop_fn *const *float_table(base_dtype t) {
  scalar_loop_fn *const *wide[3] = LOOPS_OF(f64), *const * tables[3] = LOOPS_OF(f32);
  return (t == XLAC_F64 ? wide : tables)[best_isa()];
}
/* The table of the type that t computes in. NULL where t has no arithmetic. */
static scalar_loop_fn *const *expression_table(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  switch ((base_dtype_kind)info->kind) {
    case BASE_KIND_PRED: {
      scalar_loop_fn *const *tables[3] = INTEGER_LOOPS_OF(pred);
      return tables[best_isa()];
    }
    case BASE_KIND_SINT:
      return signed_table(__builtin_ctz(info->bytes));
    case BASE_KIND_UINT:
      return unsigned_table(__builtin_ctz(info->bytes));
    case BASE_KIND_FLOAT:
      return float_table(t);
    case BASE_KIND_COMPLEX:
      return t == XLAC_C64 ? scalar_loops_c64 : scalar_loops_c128;
    case BASE_KIND_NONE:
      break;
  }
  return NULL;
}

/* --- which loop: by the SCALAR column of the op's row, else by its expression. Each sets work and wraps where fn is to
 * be run so; in, out and bits are set. --- */

/* From the table of the type; narrow floats by way of f32, integers below a byte cut to their width. */
static scalar_loop_fn *loop_expression(const scalar_op *op, scalar_loop *l) {
  base_dtype t = (base_dtype)l->in[0];
  if (is_narrow(t)) l->work = XLAC_F32;
  l->wraps = base_dtype_is_integer(t) && l->bits < 8;
#if defined(__x86_64__)
  if (t == XLAC_C64 && op->code == SCALAR_MULTIPLY && best_isa() != BASE_ISA_PORTABLE) return scalar_products_c64;
#endif
  scalar_loop_fn *const *table = expression_table(t);
  return table ? table[op->code] : NULL;
}

/* Sine, cosine and tangent of f32; of other types by their expressions. */
static scalar_loop_fn *loop_turn(const scalar_op *op, scalar_loop *l) {
  scalar_loop_fn *const *tables[3] = LOOPS_OF(turn), *fn = loop_expression(op, l);
  if (l->in[0] != XLAC_F32 && l->work != XLAC_F32) return fn;
  return tables[best_isa()][op->code == SCALAR_SINE ? 0 : op->code == SCALAR_COSINE ? 1 : 2];
}

/* What gives another type than it takes, but for some types, which have an expression. */
static scalar_loop_fn *loop_part(const scalar_op *op, scalar_loop *l) {
  scalar_loop_fn *expression = loop_expression(op, l);
  scalar_loop_fn *fn = scalar_part_loop((scalar_code)op->code, l->work ? (base_dtype)l->work : (base_dtype)l->in[0]);
  l->exponent_bits = op->exponent_bits;
  l->mantissa_bits = op->mantissa_bits;
  return fn ? fn : expression;
}

/* The total order looks at bits, so it must see narrow floats as they are. */
static scalar_loop_fn *loop_compare(const scalar_op *op, scalar_loop *l) {
  base_dtype t = (base_dtype)l->in[0];
  bool total = base_dtype_is_float(t) && op->order == SCALAR_ORDER_TOTAL;
  if (is_narrow(t) && !total) l->work = XLAC_F32;
  return scalar_compare_loop(l->work ? (base_dtype)l->work : t, (scalar_direction)op->direction, total);
}

/* By size alone: elements are bytes moved. */
static scalar_loop_fn *loop_select(const scalar_op *op, scalar_loop *l) {
  (void)op;
  return scalar_select_loop(base_dtype_bytes((base_dtype)l->out));
}

static scalar_loop_fn *loop_convert(const scalar_op *op, scalar_loop *l) {
  (void)op, (void)l;
  return scalar_convert_loop;
}

static scalar_loop_fn *loop_stochastic(const scalar_op *op, scalar_loop *l) {
  (void)op, (void)l;
  return scalar_stochastic_loop;
}

/* NULL: by the expression. */
typedef scalar_loop_fn *loop_finder(const scalar_op *op, scalar_loop *l);
#include "../../ir/ops_columns.h"
#undef SCALAR
#define SCALAR(find) , loop_##find
#define LOOP_OWN(code, find) [SCALAR_##code] = find,
#define OP(code, text, arity, columns) SCALAR_ROW(LOOP_OWN, SCALAR_NOTHING, code columns)
static loop_finder *const loop_finders[SCALAR_CODES] = {
#include "../../ir/ops.def"
};
#undef OP
#undef LOOP_OWN
#include "../../ir/ops_columns.h"

/* compare's direction and type are part of the loop, so it is looked up once per op, not per call. */
bool scalar_loop_of(const scalar_op *op, uint32_t n_in, const uint8_t *in, uint8_t out, scalar_loop *l) {
  assert(op && in && l);
  memset(l, 0, sizeof *l);
  if (!scalar_types_fit(op, n_in, in, out)) return false;
  assert(n_in >= 1 && n_in <= 3);
  l->n_in = (uint8_t)n_in;
  l->out = out;
  memcpy(l->in, in, n_in);
  l->bits = base_dtype_of((base_dtype)in[0])->bits;
  l->fn = loop_finders[op->code] ? loop_finders[op->code](op, l) : loop_expression(op, l);
  return l->fn != NULL;
}

/* That shapes agree is the verifier's business. */
bool scalar_loop_of_op(const ir_op *op, scalar_loop *l) {
  scalar_op s;
  uint8_t in[3] = {0, 0, 0};
  assert(op && l);
  if (op->n_operands > 3 || !ir_is_tensor(op->type) || !scalar_op_of(op, &s)) return false;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (!ir_is_tensor(ir_operand_type(op, k))) return false;
    in[k] = ir_operand_type(op, k)->dtype;
  }
  return scalar_loop_of(&s, op->n_operands, in, op->type->dtype, l);
}

/* For sums and the like that exist without an op. */
bool scalar_loop_binary(scalar_code code, base_dtype t, scalar_loop *l) {
  const scalar_op op = {.code = (uint8_t)code};
  return scalar_loop_of(&op, 2, (const uint8_t[3]){(uint8_t)t, (uint8_t)t}, (uint8_t)t, l);
}

/* Cuts bytes to the width of t: sign- or zero-extended. s4: 0x0F becomes 0xFF, -1; u4: 0x1F becomes 0x0F. */
static void wrap_bytes(base_dtype t, int64_t n, void *data) {
  int unused = 8 - base_dtype_of(t)->bits;
  int8_t *s = data;
  uint8_t *u = data;
  assert(unused > 0);
  if (base_dtype_is_signed(t)) {
    for (int64_t i = 0; i < n; i++) s[i] = (int8_t)((int8_t)(uint8_t)(u[i] << unused) >> unused);
  } else {
    for (int64_t i = 0; i < n; i++) u[i] = (uint8_t)((uint8_t)(u[i] << unused) >> unused);
  }
}

/* At most STAGE lanes of which some are narrow floats: through f32 and back. Operands that are not narrow
 * (a select's pred, say) pass as they are. */
static void run_staged(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  float stage[4][STAGE];
  const void *wide[3];
  assert(n <= STAGE && l->work == XLAC_F32);
  for (int k = 0; k < l->n_in; k++) {
    bool narrow = is_narrow((base_dtype)l->in[k]);
    if (narrow) base_convert(XLAC_F32, stage[k], (base_dtype)l->in[k], in[k], (size_t)n);
    wide[k] = narrow ? stage[k] : in[k];
  }
  bool narrow = is_narrow((base_dtype)l->out);
  l->fn(l, n, wide, narrow ? stage[3] : out);
  if (narrow) base_convert((base_dtype)l->out, out, XLAC_F32, stage[3], (size_t)n);
}

/* in[k] holds n elements of type l->in[k], out has room for n of l->out; out may be one of in. */
void scalar_loop_run(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  assert(l->fn && l->n_in <= 3);
  if (!l->work) {
    l->fn(l, n, in, out);
    if (l->wraps) wrap_bytes((base_dtype)l->out, n, out);
    return;
  }
  for (int64_t at = 0; at < n; at += STAGE) {
    const void *part[3];
    for (int k = 0; k < l->n_in; k++)
      part[k] = (const char *)in[k] + (size_t)at * base_dtype_bytes((base_dtype)l->in[k]);
    char *r = (char *)out + (size_t)at * base_dtype_bytes((base_dtype)l->out);
    run_staged(l, n - at < STAGE ? n - at : STAGE, part, r);
  }
}
