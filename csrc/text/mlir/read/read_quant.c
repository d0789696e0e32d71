/* Quantised element types: !quant.uniform<i8<-8:7>:f32:axis, {scale:zero, ...}>.
 *
 *   <i8:f32, 0.5:10>                                   one scale for the tensor
 *   <i8:f32:1, {0.5, 0.25:3}>                          one for each index of dimension 1
 *   <i8:f32:{0:2, 1:4}, {{0.5, 0.25}, {1.0, 2.0}}>     one for each block of 2 by 4
 * Source: MLIR's quant dialect, QuantOps and its type parser; numbers in the messages are StableHLO's constraints. */
#include "../../../ir/types/type_table.h"
#include "read.h"

BASE_VEC(mlir_doubles, double);

/* What is being gathered: scales and zero points, row-major. */
typedef struct mlir_quant_parts {
  ir_quant q;
  mlir_doubles scales;
  mlir_ints zeros, axes, sizes, grid;
} mlir_quant_parts;

/* The bits of a double, as the printer writes what six digits don't give: "0x41DFFFFFFFC00000". */
static const char *mlir_hex_double(const char *p, double *out) {
  uint64_t bits = 0;
  const char *digits = p;
  for (; p - digits <= 16; p++) {
    char c = *p;
    if (text_is(c, TEXT_DIGIT))
      bits = bits << 4 | (uint64_t)(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f')
      bits = bits << 4 | (uint64_t)((c | 32) - 'a' + 10);
    else
      break;
  }
  memcpy(out, &bits, sizeof bits);
  return p > digits && p - digits <= 16 ? p : NULL;
}

/* A decimal number, or the bits of a double in hexadecimal. */
static int mlir_quant_number(mlir_reader *r, double *out) {
  bool hex = r->lx.p[0] == '0' && (r->lx.p[1] | 32) == 'x';
  const char *e = hex ? mlir_hex_double(r->lx.p + 2, out) : base_parse_f64(r->lx.p, r->lx.end, out);
  if (!e) return mlir_expected(r, "a number");
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* "scale" or "scale:zero". A zero point that is absent is 0. */
static int mlir_read_scale(mlir_reader *r, mlir_quant_parts *p) {
  double scale;
  int64_t zero = 0;
  const char *at = r->lx.p;
  TRY(mlir_quant_number(r, &scale));
  xlac_error why = {0};
  if (ir_check_scale((base_dtype)p->q.expressed, scale, &why) != 0)
    return mlir_fail(r, at, (base_code)why.code, "%s", why.message);
  if (mlir_eat(r, ":")) TRY(mlir_read_int(r, &zero));
  bool ok = BASE_VEC_PUSH(r->alloc, &p->scales, scale) && BASE_VEC_PUSH(r->alloc, &p->zeros, zero);
  return ok ? 0 : mlir_no_memory(r);
}

/* Nested braces of scales; the extents of each level go to the grid. */
static int mlir_read_scales(mlir_reader *r, mlir_quant_parts *p, uint32_t level) {
  assert(level <= p->grid.n);
  TRY(mlir_enter(r, r->lx.p));
  TRY(mlir_want(r, "{"));
  if (level == p->grid.n && !BASE_VEC_PUSH(r->alloc, &p->grid, -1)) return mlir_no_memory(r);
  int64_t n = 0;
  if (*r->lx.p != '}') {
    do {
      TRY(*r->lx.p == '{' ? mlir_read_scales(r, p, level + 1) : mlir_read_scale(r, p));
      n++;
    } while (mlir_eat(r, ","));
  }
  if (p->grid.items[level] >= 0 && p->grid.items[level] != n)
    return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "nested lists of scales with unequal lengths");
  p->grid.items[level] = n;
  TRY(mlir_want(r, "}"));
  mlir_leave(r);
  return 0;
}

/* The whole range of the type is the usual one, and not kept as a range of its own. */
static int mlir_read_storage(mlir_reader *r, ir_quant *q) {
  const char *at = r->lx.p;
  base_dtype t = mlir_read_dtype(r);
  if (!t && *at == 'u' && text_is(at[1], TEXT_DIGIT)) { /* "u8" is how MLIR prints what it also reads as "ui8" */
    static const struct {
      const char *word;
      base_dtype dtype;
    } unsigned_words[] = {{"u8", XLAC_U8}, {"u4", XLAC_U4}, {"u16", XLAC_U16}, {"u32", XLAC_U32}, {"u2", XLAC_U2}};
    for (size_t i = 0; i < sizeof unsigned_words / sizeof *unsigned_words; i++)
      if (mlir_eat_word(r, unsigned_words[i].word)) t = unsigned_words[i].dtype;
  }
  if (!t || base_dtype_of(t)->kind == BASE_KIND_COMPLEX)
    return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type prefix");
  unsigned bits = base_dtype_of(t)->bits;
  if (bits > 32) return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type size: %u", bits);
  q->storage = (uint8_t)t;
  ir_own_range(t, &q->storage_min, &q->storage_max);
  if (!mlir_eat(r, "<")) return 0;
  int64_t low, high;
  TRY(mlir_read_int(r, &low));
  TRY(mlir_want(r, ":"));
  TRY(mlir_read_int(r, &high));
  xlac_error why = {0};
  if (ir_check_range((base_dtype)t, low, high, &why) != 0)
    return mlir_fail(r, at, (base_code)why.code, "%s", why.message);
  q->has_range = low != q->storage_min || high != q->storage_max;
  q->storage_min = low;
  q->storage_max = high;
  return mlir_want(r, ">");
}

/* "{0:1, 1:32}": axes and block sizes. */
static int mlir_read_blocks(mlir_reader *r, mlir_quant_parts *p) {
  TRY(mlir_want(r, "{"));
  p->q.axis = -2;
  if (*r->lx.p != '}') {
    do {
      int64_t axis, size;
      TRY(mlir_read_int(r, &axis));
      TRY(mlir_want(r, ":"));
      TRY(mlir_read_int(r, &size));
      if (axis < 0 || size <= 0)
        return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "a block needs an axis and a positive size");
      if (!BASE_VEC_PUSH(r->alloc, &p->axes, axis) || !BASE_VEC_PUSH(r->alloc, &p->sizes, size))
        return mlir_no_memory(r);
    } while (mlir_eat(r, ","));
  }
  return mlir_want(r, "}");
}

/* axis: -1 per tensor, -2 by blocks, else the dimension. */
static int mlir_read_axis(mlir_reader *r, mlir_quant_parts *p) {
  p->q.axis = -1;
  if (!mlir_eat(r, ":")) return 0;
  if (*r->lx.p == '{') return mlir_read_blocks(r, p);
  int64_t axis;
  TRY(mlir_read_int(r, &axis));
  if (axis < 0 || axis > INT32_MAX)
    return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "illegal quantized dimension: %lld (quantized_type_c11)",
                     (long long)axis);
  p->q.axis = (int32_t)axis;
  return 0;
}

/* Whether axis and counts fit a tensor is checked where the type is used. */
static int mlir_read_quant_parts(mlir_reader *r, mlir_quant_parts *p) {
  const char *at = r->lx.p;
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_storage(r, &p->q));
  TRY(mlir_want(r, ":"));
  base_dtype expressed = mlir_read_dtype(r);
  if (!expressed || !base_dtype_is_float(expressed))
    return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "expected a float as the expressed type");
  p->q.expressed = (uint8_t)expressed;
  TRY(mlir_read_axis(r, p));
  TRY(mlir_want(r, ","));
  if (*r->lx.p == '{') {
    TRY(mlir_read_scales(r, p, 0));
    if (p->q.axis == -1)
      return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "a list of scales needs an axis (quantized_type_c10)");
  } else {
    TRY(mlir_read_scale(r, p));
  }
  return mlir_want(r, ">");
}

/* What was gathered goes into the module's arena as one record; the lists are freed on every way out. */
int mlir_read_quant(mlir_reader *r, const ir_quant **out) {
  mlir_quant_parts p = {0};
  int status = mlir_read_quant_parts(r, &p);
  ir_quant *q = NULL;
  if (status == 0) {
    p.q.n = p.scales.n;
    p.q.scales = p.scales.items;
    p.q.zero_points = p.zeros.items;
    p.q.n_blocks = p.axes.n;
    p.q.block_axes = p.axes.items;
    p.q.block_sizes = p.sizes.items;
    p.q.grid_rank = p.q.axis == -2 ? p.grid.n : 0;
    p.q.grid_dims = p.grid.items;
    assert(p.scales.n == p.zeros.n && p.axes.n == p.sizes.n);
    q = (ir_quant *)(uintptr_t)ir_quant_copy(r->m, &p.q);
    if (!q) status = mlir_no_memory(r);
  }
  BASE_VEC_FREE(r->alloc, &p.scales);
  BASE_VEC_FREE(r->alloc, &p.zeros);
  BASE_VEC_FREE(r->alloc, &p.axes);
  BASE_VEC_FREE(r->alloc, &p.sizes);
  BASE_VEC_FREE(r->alloc, &p.grid);
  *out = q;
  return status;
}
