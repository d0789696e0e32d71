/* Types that only MLIR form has: quantised and odd elements, encodings, unranked tensors, functions, verbatim ones. */
#include "../ir.h"
#include "type_table.h"

static bool quant_same_part(const void *a, const void *b, size_t n) {
  return n == 0 || memcmp(a, b, n) == 0;
}

void ir_own_range(base_dtype storage, int64_t *low, int64_t *high) {
  unsigned bits = base_dtype_of(storage)->bits;
  bool is_signed = !base_dtype_is_unsigned(storage);
  assert(bits <= 32);
  *low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  *high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
}

int ir_check_range(base_dtype storage, int64_t low, int64_t high, xlac_error *err) {
  int64_t least, most;
  ir_own_range(storage, &least, &most);
  if (low < least)
    return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type minimum: %lld (quantized_type_c3)",
                     (long long)low);
  if (high > most)
    return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type maximum: %lld (quantized_type_c3)",
                     (long long)high);
  if (low < high) return 0;
  return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage min and storage max: (%lld:%lld) (quantized_type_c3)",
                   (long long)low, (long long)high);
}

int ir_check_scale(base_dtype expressed, double scale, xlac_error *err) {
  unsigned mantissa = base_dtype_of(expressed)->mantissa_bits;
  int bias = (1 << (base_dtype_of(expressed)->exponent_bits - 1)) - 1;
  double largest = (2 - __builtin_ldexp(1, -(int)mantissa)) * __builtin_ldexp(1, bias);
  double smallest = __builtin_ldexp(1, 1 - bias - (int)mantissa);
  if (scale >= smallest && scale <= largest) return 0;
  return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "scale %e out of expressed type range, %e to %e (quantized_type_c%d)",
                   scale, smallest, largest,
                   !(scale > 0)             ? 5
                   : __builtin_isinf(scale) ? 6
                                            : 4);
}

bool ir_quant_equal(const ir_quant *a, const ir_quant *b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->storage != b->storage || a->expressed != b->expressed || a->has_range != b->has_range) return false;
  if (a->storage_min != b->storage_min || a->storage_max != b->storage_max || a->axis != b->axis || a->n != b->n)
    return false;
  if (a->n_blocks != b->n_blocks || a->grid_rank != b->grid_rank) return false;
  return quant_same_part(a->scales, b->scales, a->n * sizeof *a->scales) &&
         quant_same_part(a->zero_points, b->zero_points, a->n * sizeof *a->zero_points) &&
         quant_same_part(a->block_axes, b->block_axes, a->n_blocks * sizeof *a->block_axes) &&
         quant_same_part(a->block_sizes, b->block_sizes, a->n_blocks * sizeof *a->block_sizes) &&
         quant_same_part(a->grid_dims, b->grid_dims, a->grid_rank * sizeof *a->grid_dims);
}

uint64_t ir_quant_hash(const ir_quant *q) {
  if (!q) return 0;
  uint64_t h = (uint64_t)q->storage << 40 ^ (uint64_t)q->expressed << 32 ^ (uint64_t)(uint32_t)q->axis << 8 ^ q->n;
  for (uint32_t i = 0; i < q->n; i++) {
    uint64_t bits;
    memcpy(&bits, &q->scales[i], sizeof bits);
    h = (h ^ bits ^ (uint64_t)q->zero_points[i] << 1) * UINT64_C(0x9E3779B97F4A7C15);
  }
  return h;
}

static const void *quant_part(ir_module *m, const void *p, size_t n, bool *ok) {
  if (n == 0) return NULL;
  const void *c = base_arena_memdup(&m->arena, p, n);
  *ok = *ok && c;
  return c;
}

const ir_quant *ir_quant_copy(ir_module *m, const ir_quant *q) {
  bool ok = true;
  ir_quant *c = base_arena_memdup(&m->arena, q, sizeof *q);
  if (!c) return NULL;
  c->scales = quant_part(m, q->scales, q->n * sizeof *q->scales, &ok);
  c->zero_points = quant_part(m, q->zero_points, q->n * sizeof *q->zero_points, &ok);
  c->block_axes = quant_part(m, q->block_axes, q->n_blocks * sizeof *q->block_axes, &ok);
  c->block_sizes = quant_part(m, q->block_sizes, q->n_blocks * sizeof *q->block_sizes, &ok);
  c->grid_dims = quant_part(m, q->grid_dims, q->grid_rank * sizeof *q->grid_dims, &ok);
  return ok ? c : NULL;
}

const ir_type *ir_tensor_mlir(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text,
                              uint32_t rank, const int64_t *dims, const bool *dynamic, const base_istr *encoding,
                              xlac_error *err) {
  if (!quant && !element_text && !encoding) return ir_tensor(m, dtype, rank, dims, dynamic, NULL, err);
  if (rank > IR_MAX_RANK) {
    base_fail(err, XLAC_E_TOO_LARGE, "a shape has %u dimensions; at most %d are allowed", rank, IR_MAX_RANK);
    return NULL;
  }
  ir_type key = {.kind = IR_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = rank, .dims = dims};
  key.quant = quant;
  key.text = element_text;
  key.encoding = encoding;
  if (ir_count_elements(dtype, rank, dims, &key.count, err) != 0) return NULL;
  for (uint32_t i = 0; dynamic && i < rank; i++) key.has_dynamic = key.has_dynamic || dynamic[i];
  key.dynamic = key.has_dynamic ? dynamic : NULL;
  const ir_type *t = ir_type_intern(m, &key);
  if (!t) base_oom(err, "a type");
  return t;
}

const ir_type *ir_unranked(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text) {
  ir_type key = {.kind = IR_TYPE_UNRANKED, .dtype = (uint8_t)dtype, .quant = quant, .text = element_text};
  return ir_type_intern(m, &key);
}

const ir_type *ir_element(ir_module *m, base_dtype dtype, const ir_quant *quant) {
  ir_type key = {.kind = IR_TYPE_ELEMENT, .dtype = (uint8_t)dtype, .quant = quant};
  return ir_type_intern(m, &key);
}

const ir_type *ir_future(ir_module *m, uint32_t n, const ir_type *const *elements) {
  ir_type key = {.kind = IR_TYPE_FUTURE, .n_elements = n, .elements = elements};
  return ir_type_intern(m, &key);
}

const ir_type *ir_function_type(ir_module *m, uint32_t n_inputs, uint32_t n_results, const ir_type *const *inputs,
                                const ir_type *const *results) {
  const ir_type **all = BASE_ARRAY(&m->arena, const ir_type *, (size_t)n_inputs + n_results + 1);
  if (!all) return NULL;
  if (n_inputs) memcpy(all, inputs, n_inputs * sizeof *all);
  if (n_results) memcpy(all + n_inputs, results, n_results * sizeof *all);
  ir_type key = {.kind = IR_TYPE_FUNCTION, .n_elements = n_inputs + n_results, .elements = all, .n_inputs = n_inputs};
  return ir_type_intern(m, &key);
}

const ir_type *ir_other_type(ir_module *m, const char *text, size_t n) {
  ir_type key = {.kind = IR_TYPE_OTHER, .text = ir_intern(m, text, n)};
  return key.text ? ir_type_intern(m, &key) : NULL;
}
