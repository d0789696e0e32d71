/* Checks of dimension lists and windows. */
#include "check.h"

/* Lists can be as long as the text is, so duplicates are looked for with a bit per dimension; ranks are at most
 * IR_MAX_RANK. */
typedef uint64_t dim_bits;
_Static_assert(IR_MAX_RANK <= 64, "a dimension needs a bit");

int ir_check_dim(const char *what, int64_t dim, uint32_t rank, xlac_error *err) {
  assert(rank <= IR_MAX_RANK);
  if (dim >= 0 && dim < (int64_t)rank) return 0;
  return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s has dimension %lld, which is out of range for rank %u", what,
                   (long long)dim, rank);
}

int ir_check_dims_in_range(const char *what, const ir_ints *dims, uint32_t rank, xlac_error *err) {
  for (uint32_t i = 0; i < dims->n; i++) TRY(ir_check_dim(what, dims->v[i], rank, err));
  return 0;
}

static int add_dim(const char *what, int64_t dim, dim_bits *seen, xlac_error *err) {
  assert(dim >= 0 && dim < 64);
  if (*seen & (UINT64_C(1) << dim))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s names dimension %lld twice", what, (long long)dim);
  *seen |= UINT64_C(1) << dim;
  return 0;
}

int ir_check_dims_distinct(const char *what, const ir_ints *dims, xlac_error *err) {
  dim_bits seen = 0;
  for (uint32_t i = 0; i < dims->n; i++) {
    TRY(ir_check_dim(what, dims->v[i], IR_MAX_RANK, err));
    TRY(add_dim(what, dims->v[i], &seen, err));
  }
  return 0;
}

int ir_check_dims_sorted(const char *what, const ir_ints *dims, xlac_error *err) {
  for (uint32_t i = 1; i < dims->n; i++)
    if (dims->v[i - 1] >= dims->v[i])
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must be ascending without repeats, but is %s", what,
                       IR_SHOW_INTS(dims->n, dims->v));
  return 0;
}

int ir_check_dims_set(const char *what, const ir_ints *a, const ir_ints *b, uint32_t rank, xlac_error *err) {
  dim_bits seen = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    TRY(ir_check_dim(what, a->v[i], rank, err));
    TRY(add_dim(what, a->v[i], &seen, err));
  }
  for (uint32_t i = 0; b && i < b->n; i++) {
    TRY(ir_check_dim(what, b->v[i], rank, err));
    TRY(add_dim(what, b->v[i], &seen, err));
  }
  return 0;
}

int ir_check_permutation(const char *what, uint32_t n, const int64_t *v, uint32_t rank, xlac_error *err) {
  dim_bits seen = 0;
  bool ok = n == rank;
  for (uint32_t i = 0; ok && i < n; i++) {
    ok = v[i] >= 0 && v[i] < (int64_t)rank && !(seen & (UINT64_C(1) << v[i]));
    if (ok) seen |= UINT64_C(1) << v[i];
  }
  if (ok) return 0;
  return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must name each of the %u dimensions once, but is %s", what, rank,
                   IR_SHOW_INTS(n, v));
}

int ir_check_one_dim(const char *what, const ir_ints *dims, uint32_t rank, int64_t *out, xlac_error *err) {
  if (dims->n != 1)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must name one dimension, but is %s", what,
                     IR_SHOW_INTS(dims->n, dims->v));
  TRY(ir_check_dim(what, dims->v[0], rank, err));
  *out = dims->v[0];
  return 0;
}

static int check_window(const ir_window *w, uint32_t rank, bool open, xlac_error *err) {
  uint32_t n = w ? w->n : 0;
  if (n != rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "the window has %u dimension%s, but %u are needed", n,
                     n == 1 ? "" : "s", rank);
  for (uint32_t i = 0; i < n; i++) {
    const ir_window_dim *d = &w->v[i];
    bool sized = d->size > 0 || (open && d->size == IR_UNBOUNDED);
    const char *bad = !sized                   ? "size"
                      : d->stride <= 0         ? "stride"
                      : d->base_dilation < 1   ? "base dilation (lhs_dilate)"
                      : d->window_dilation < 1 ? "window dilation (rhs_dilate)"
                                               : NULL;
    if (bad) return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "window dimension %u has a %s below 1", i, bad);
  }
  return 0;
}

int ir_check_window(const ir_window *w, uint32_t rank, xlac_error *err) {
  return check_window(w, rank, false, err);
}

int ir_check_kernel_window(const ir_window *w, uint32_t rank, xlac_error *err) {
  return check_window(w, rank, true, err);
}
