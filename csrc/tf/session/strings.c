/* Tensors of strings. An object has slices and, in the same block behind them, the bytes: strings never change, so
 * several tensors may share an object. */
#include "strings.h"

/* The sizes must have been checked (tfs_check_dims): their product must not overflow. */
tfs_object *tfs_strings_new(base_alloc alloc, uint32_t rank, const int64_t *dims, size_t bytes, char **to) {
  assert(rank <= IR_MAX_RANK);
  int64_t count = 1;
  tfs_object *o = tfs_object_new(alloc, TFS_STRINGS);
  if (!o) return NULL;
  for (uint32_t d = 0; d < rank; d++) {
    o->dims[d] = dims[d];
    count *= dims[d];
  }
  o->strings = base_malloc(alloc, (size_t)(count + 1) * sizeof *o->strings + bytes);
  if (!o->strings) {
    tfs_object_drop(o);
    return NULL;
  }
  o->rank = rank;
  o->n_strings = count;
  *to = (char *)(o->strings + count);
  for (int64_t i = 0; i < count; i++) o->strings[i] = (base_slice){*to, 0};
  return o;
}

/* Zeros at the end of a string are its padding, and lost: NumPy's bytes are the same. */
int tfs_strings_from_array(base_alloc alloc, const interp_value *v, tfs_object **out, xlac_error *err) {
  char *to = NULL;
  *out = NULL;
  if (v->dtype != XLAC_U8 || v->rank == 0)
    return base_fail(err, XLAC_E_ARGUMENT_TYPE, "strings are given as u8, with their bytes along the last dimension");
  int64_t width = v->dims[v->rank - 1];
  *out = tfs_strings_new(alloc, v->rank - 1, v->dims, (size_t)v->count, &to);
  if (!*out) return base_oom(err, "reading strings");
  if (v->count) memcpy(to, v->data, (size_t)v->count);
  for (int64_t i = 0; i < (*out)->n_strings; i++) {
    int64_t n = width;
    while (n > 0 && to[i * width + n - 1] == 0) n--;
    (*out)->strings[i] = (base_slice){to + i * width, (size_t)n};
  }
  return 0;
}

/* As wide as the longest, and at least one byte, as NumPy has it. NULL also where the array would be too large. */
interp_value *tfs_strings_to_array(base_alloc alloc, const tfs_object *o) {
  assert(o->kind == TFS_STRINGS);
  int64_t dims[IR_MAX_RANK + 1], width = 1, all = 0;
  for (int64_t i = 0; i < o->n_strings; i++)
    if ((int64_t)o->strings[i].n > width) width = (int64_t)o->strings[i].n;
  for (uint32_t d = 0; d < o->rank; d++) dims[d] = o->dims[d];
  dims[o->rank] = width;
  if (o->rank >= IR_MAX_RANK || !base_mul_i64(o->n_strings, width, &all)) return NULL;
  interp_value *v = tfs_new_tensor(alloc, XLAC_U8, o->rank + 1, dims);
  if (!v || v->count == 0) return v;
  memset(v->data, 0, interp_bytes(v));
  for (int64_t i = 0; i < o->n_strings; i++)
    if (o->strings[i].n) memcpy((char *)v->data + i * width, o->strings[i].p, o->strings[i].n);
  return v;
}

/* %g, as TensorFlow's logging does. */
void tfs_print_element(base_text *t, const interp_value *v, int64_t i) {
  assert(i >= 0 && i < v->count);
  base_dtype type = (base_dtype)v->dtype;
  const char *p = (const char *)v->data + (size_t)i * base_dtype_bytes(type);
  if (base_dtype_is_float(type))
    base_putf(t, "%g", base_load_f64(type, p));
  else if (base_dtype_is_complex(type))
    base_putf(t, "(%g,%g)", base_load_f64(base_dtype_real_part(type), p),
              base_load_f64(base_dtype_real_part(type), p + base_dtype_bytes(type) / 2));
  else
    base_putf(t, "%lld", (long long)base_load_i64(type, p));
}
