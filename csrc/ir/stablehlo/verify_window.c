/* Windows: their lists, and the sizes they give. */
#include "verify.h"

int sv_read_padding(const sv *v, sv_ints *out) {
  const ir_mattr *a = ir_mattr_of(v->op, "padding");
  *out = (sv_ints){NULL, 0};
  if (!a) return 0;
  if (!a->type || a->type->rank != 2 || a->type->dims[1] != 2)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has a padding of %s; expected pairs, tensor<Nx2xi64>",
                        a->type ? SV_SHOW(a->type) : "no type");
  *out = sv_ints_of(v, a);
  return 0;
}

static int sv_check_window_count(const sv *v, const char *what, uint32_t n, uint32_t expected) {
  if (n == 0 || n == expected) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %u %s; expected %u, one for each window dimension", n,
                      what, expected);
}

static int sv_check_window_positive(const sv *v, const char *what, sv_ints list) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.v[i] != SV_DYNAMIC && list.v[i] <= 0)
      return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL,
                          "has a window with %s %lld in dimension %u; expected a positive one", what,
                          (long long)list.v[i], i);
  return 0;
}

int sv_check_window(const sv *v, const sv_window *w, sv_ints reversal) {
  uint32_t n = w->size.n;
  /* The deprecated dynamic_conv is let through with any number of them, as upstream does. */
  if (v->op->opcode != IR_OP_DYNAMIC_CONV) TRY(sv_check_window_count(v, "window strides", w->stride.n, n));
  TRY(sv_check_window_count(v, "base dilations", w->base_dilation.n, n));
  TRY(sv_check_window_count(v, "window dilations", w->dilation.n, n));
  TRY(sv_check_window_count(v, "paddings", w->padding.n / 2, n));
  TRY(sv_check_window_count(v, "window reversals", reversal.n, n));
  TRY(sv_check_window_positive(v, "size", w->size));
  TRY(sv_check_window_positive(v, "stride", w->stride));
  TRY(sv_check_window_positive(v, "base dilation", w->base_dilation));
  return sv_check_window_positive(v, "dilation", w->dilation);
}

/* (size - 1) * dilation + 1; what overflows counts as endless. */
static int64_t sv_dilated(int64_t size, int64_t dilation) {
  int64_t n;
  if (size <= 0) return 0;
  return base_mul_i64(size - 1, dilation, &n) && base_add_i64(n, 1, &n) ? n : INT64_MAX;
}

static int64_t sv_window_item(sv_ints list, uint32_t i, int64_t otherwise) {
  return i < list.n ? list.v[i] : otherwise;
}

int64_t sv_window_output(const sv_window *w, uint32_t i, int64_t size) {
  if (size == SV_DYNAMIC || w->size.v[i] == SV_DYNAMIC) return SV_DYNAMIC;
  int64_t window = sv_dilated(w->size.v[i], sv_window_item(w->dilation, i, 1));
  int64_t n = sv_dilated(size, sv_window_item(w->base_dilation, i, 1));
  if (w->padding.n && !(base_add_i64(n, w->padding.v[2 * i], &n) && base_add_i64(n, w->padding.v[2 * i + 1], &n)))
    return 0;
  if (n <= 0 || window > n) return 0;
  return (n - window) / sv_window_item(w->stride, i, 1) + 1;
}
