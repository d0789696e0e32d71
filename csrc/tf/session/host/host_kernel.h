/* What host ops that look at numbers one by one share. */
#ifndef XLAC_TF_SESSION_HOST_HOST_KERNEL_H
#define XLAC_TF_SESSION_HOST_HOST_KERNEL_H

#include "../run.h"

/* The element's address; its type decides how far apart elements are. */
static inline char *tfs_at(const interp_value *v, int64_t i) {
  assert(i >= 0 && i <= v->count);
  return (char *)v->data + (size_t)i * base_dtype_bytes((base_dtype)v->dtype);
}
/* Element i of an array of real numbers. Integers beyond 2^53 are rounded. */
static inline double tfs_real_at(const interp_value *v, int64_t i) {
  base_dtype t = (base_dtype)v->dtype;
  return base_dtype_is_float(t) ? base_load_f64(t, tfs_at(v, i)) : (double)base_load_i64(t, tfs_at(v, i));
}
/* Rounded to the element's type; for integers towards zero. */
static inline void tfs_put_real(interp_value *v, int64_t i, double x) {
  base_dtype t = (base_dtype)v->dtype;
  if (base_dtype_is_float(t))
    base_store_f64(t, tfs_at(v, i), x);
  else
    base_store_i64(t, tfs_at(v, i), (int64_t)x);
}
/* The lowest bits where the type is narrower. */
static inline void tfs_put_int(interp_value *v, int64_t i, int64_t x) {
  base_store_i64((base_dtype)v->dtype, tfs_at(v, i), x);
}

#endif
