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

#define LOOPS_OF(type) {interp_loops_##type, interp_loops_##type##_avx2, interp_loops_##type##_avx512}
/* By log2 of the size. 0 for bytes up to 3 for eight of them; s2 and s4 are bytes here. */
static interp_loop_fn *const *signed_table(int size) {
  assert(size >= 0 && size < 4);
  interp_loop_fn *const *tables[4][3] = {LOOPS_OF(s8), LOOPS_OF(s16), LOOPS_OF(s32), LOOPS_OF(s64)};
  return tables[size][best_isa()];
}
static interp_loop_fn *const *unsigned_table(int size) {
  assert(size >= 0 && size < 4);
  interp_loop_fn *const *tables[4][3] = {LOOPS_OF(u8), LOOPS_OF(u16), LOOPS_OF(u32), LOOPS_OF(u64)};
  return tables[size][best_isa()];
}
/* Narrow floats compute in f32. */
static interp_loop_fn *const *float_table(base_dtype t) {
  interp_loop_fn *const *wide[3] = LOOPS_OF(f64), *const * tables[3] = LOOPS_OF(f32);
  return (t == XLAC_F64 ? wide : tables)[best_isa()];
}
/* NULL: the loop of ops.def's expression serves. */
static interp_loop_fn *turn_loop(unsigned opcode, base_dtype t) {
  interp_loop_fn *const *tables[3] = LOOPS_OF(turn);
  int which = opcode == IR_OP_SINE ? 0 : opcode == IR_OP_COSINE ? 1 : opcode == IR_OP_TAN ? 2 : -1;
  return t == XLAC_F32 && which >= 0 ? tables[best_isa()][which] : NULL;
}

/* The table of the type that t computes in. NULL where t has no arithmetic. */
static interp_loop_fn *const *expression_table(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  switch ((base_dtype_kind)info->kind) {
    case BASE_KIND_PRED: {
      interp_loop_fn *const *tables[3] = LOOPS_OF(pred);
      return tables[best_isa()];
    }
    case BASE_KIND_SINT:
      return signed_table(__builtin_ctz(info->bytes));
    case BASE_KIND_UINT:
      return unsigned_table(__builtin_ctz(info->bytes));
    case BASE_KIND_FLOAT:
      return float_table(t);
    case BASE_KIND_COMPLEX:
      return t == XLAC_C64 ? interp_loops_c64 : interp_loops_c128;
    case BASE_KIND_NONE:
      break;
  }
  return NULL;
}

/* compare and select, whose loops do not follow from opcode and type alone. The total order looks at bits,
 * so it must see narrow floats as they are. */
static interp_loop_fn *compare_loop_of(const ir_op *op, interp_loop *l) {
  base_dtype t = (base_dtype)l->in[0];
  bool total = base_dtype_is_float(t) && ir_get_word(op, IR_ATTR_TYPE) == IR_COMPARISON_TOTALORDER;
  if (is_narrow(t) && !total) l->work = XLAC_F32;
  return interp_compare_loop(l->work ? (base_dtype)l->work : t, (ir_direction)ir_get_word(op, IR_ATTR_DIRECTION),
                             total);
}

/* Sets work and wraps; in, out and bits are set. An op of its own kind first, then a loop from the op
 * table. */
static interp_loop_fn *loop_fn_of(const ir_op *op, interp_loop *l) {
  base_dtype t = (base_dtype)l->in[0];
  switch (op->opcode) {
    case IR_OP_COMPARE:
      return compare_loop_of(op, l);
    case IR_OP_SELECT:
      return interp_select_loop(base_dtype_bytes(t = (base_dtype)l->out));
    case IR_OP_COPY:
    case IR_OP_CONVERT:
      return interp_convert_loop;
    case IR_OP_STOCHASTIC_CONVERT:
      return interp_stochastic_loop;
    default:
      break;
  }
  if (is_narrow(t)) l->work = XLAC_F32;
  l->wraps = base_dtype_is_integer(t) && l->bits < 8;
  interp_loop_fn *fn = turn_loop(op->opcode, l->work ? (base_dtype)l->work : t);
  if (!fn) fn = interp_part_loop(op->opcode, l->work ? (base_dtype)l->work : t);
  return fn ? fn : expression_table(t)[op->opcode];
}

/* What is checked here is what the loops rely on; that shapes agree is the verifier's business. compare's
 * direction and type are part of the loop, so it is looked up once per op, not per call. */
bool interp_loop_of(const ir_op *op, interp_loop *l) {
  assert(op && l);
  memset(l, 0, sizeof *l);
  if (!ir_opcode_has(op->opcode, IR_ELEMENTWISE) || op->n_operands < 1 || op->n_operands > 3) return false;
  if (!ir_is_tensor(op->type)) return false;
  l->n_in = (uint8_t)op->n_operands;
  l->out = op->type->dtype;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (!ir_is_tensor(ir_operand_type(op, k))) return false;
    l->in[k] = ir_operand_type(op, k)->dtype;
  }
  l->bits = base_dtype_of((base_dtype)l->in[0])->bits;
  if (op->opcode == IR_OP_REDUCE_PRECISION) {
    l->exponent_bits = (uint8_t)ir_get_int(op, IR_ATTR_EXPONENT_BITS, 8);
    l->mantissa_bits = (uint8_t)ir_get_int(op, IR_ATTR_MANTISSA_BITS, 23);
  }
  l->fn = loop_fn_of(op, l);
  return l->fn != NULL;
}

/* For sums and the like that exist without an op, in reductions that are known by opcode. */
bool interp_loop_binary(ir_opcode opcode, base_dtype t, interp_loop *l) {
  assert(opcode < IR_OP_COUNT && t < BASE_DTYPE_COUNT);
  memset(l, 0, sizeof *l);
  l->n_in = 2;
  l->in[0] = l->in[1] = l->out = (uint8_t)t;
  l->bits = base_dtype_of(t)->bits;
  if (is_narrow(t)) l->work = XLAC_F32;
  l->wraps = base_dtype_is_integer(t) && l->bits < 8;
  l->fn = expression_table(t)[opcode];
  return l->fn != NULL;
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
static void run_staged(const interp_loop *l, int64_t n, const void *const *in, void *out) {
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
void interp_loop_run(const interp_loop *l, int64_t n, const void *const *in, void *out) {
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
