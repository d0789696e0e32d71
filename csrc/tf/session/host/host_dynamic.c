/* Host ops whose results have shapes that depend on values. */
#include "../run.h"

/* Whether element i is not zero; not a number is not zero. */
static bool tfs_is_set(const interp_value *v, int64_t i) {
  assert(i >= 0 && i < v->count);
  base_dtype type = (base_dtype)v->dtype;
  const char *p = (const char *)v->data + (size_t)i * base_dtype_bytes(type);
  if (base_dtype_is_complex(type)) {
    size_t half = base_dtype_bytes(type) / 2;
    base_dtype part = base_dtype_real_part(type);
    return base_load_f64(part, p) != 0 || base_load_f64(part, p + half) != 0;
  }
  return base_dtype_is_float(type) ? base_load_f64(type, p) != 0 : base_load_i64(type, p) != 0;
}

/* The coordinates of what is not zero, in order. Counts first, since the result's size is the count. */
int tfs_host_where(tfs_call *c) {
  interp_value *v = NULL;
  int64_t n = 0, row = 0;
  TRY(tfs_tensor_in(c, 0, &v));
  for (int64_t i = 0; i < v->count; i++) n += tfs_is_set(v, i);
  interp_value *out = tfs_new_tensor(c->alloc, XLAC_S64, 2, (int64_t[]){n, v->rank});
  if (!out) return tfs_oom(c);
  int64_t *to = out->data;
  for (int64_t i = 0; i < v->count && v->rank; i++) {
    if (!tfs_is_set(v, i)) continue;
    int64_t rest = i;
    for (uint32_t d = v->rank; d-- > 0; rest /= v->dims[d]) to[row * v->rank + d] = rest % v->dims[d];
    row++;
  }
  return tfs_give_tensor(c, 0, out);
}

/* --- unique --- */

/* Values in the order in which they first come. */
typedef struct tfs_unique {
  base_map seen; /* bits -> place among the unique ones */
  interp_value *index;
  int64_t *counts, *first; /* by place */
  int64_t n;
} tfs_unique;

/* Equal elements have equal keys: both zeros of a float are one. Elements that are not numbers are told apart by
 * their bits. */
static uint64_t tfs_element_key(const interp_value *v, int64_t i) {
  assert(base_dtype_bytes((base_dtype)v->dtype) <= sizeof(uint64_t));
  size_t size = base_dtype_bytes((base_dtype)v->dtype);
  const char *p = (const char *)v->data + (size_t)i * size;
  uint64_t bits = 0;
  if (base_dtype_is_float((base_dtype)v->dtype) && base_load_f64((base_dtype)v->dtype, p) == 0) return 0;
  memcpy(&bits, p, size);
  return bits;
}

/* `index` gets the place of each element's value; what was made is freed by the caller. */
static int tfs_find_unique(tfs_call *c, const interp_value *v, tfs_unique *u) {
  assert(v->rank == 1);
  base_dtype type = BASE_DTYPE_INVALID;
  TRY(tfs_index_type(c, 1, &type));
  u->counts = base_malloc(c->alloc, (size_t)(v->count + 1) * 2 * sizeof *u->counts);
  u->index = tfs_new_tensor(c->alloc, type, 1, v->dims);
  if (!u->counts || !u->index) return tfs_oom(c);
  u->first = u->counts + v->count + 1;
  size_t size = base_dtype_bytes((base_dtype)u->index->dtype);
  for (int64_t i = 0; i < v->count; i++) {
    uint64_t key = tfs_element_key(v, i), place = (uint64_t)u->n;
    if (!base_map_get(&u->seen, key, &place)) {
      if (!base_map_set(&u->seen, key, place)) return tfs_oom(c);
      u->first[u->n] = i;
      u->counts[u->n++] = 0;
    }
    u->counts[place]++;
    base_store_i64((base_dtype)u->index->dtype, (char *)u->index->data + (size_t)i * size, (int64_t)place);
  }
  return 0;
}

/* Output 2, the counts, is there in some of the ops only. */
static int tfs_give_unique(tfs_call *c, const interp_value *v, tfs_unique *u) {
  size_t size = base_dtype_bytes((base_dtype)v->dtype);
  interp_value *values = tfs_new_tensor(c->alloc, (base_dtype)v->dtype, 1, &u->n);
  for (int64_t i = 0; values && i < u->n; i++)
    memcpy((char *)values->data + (size_t)i * size, (const char *)v->data + (size_t)u->first[i] * size, size);
  TRY(tfs_give_tensor(c, 0, values));
  TRY(tfs_give_tensor(c, 1, interp_retain(u->index)));
  if (c->n_out < 3) return 0;
  base_dtype type = BASE_DTYPE_INVALID;
  TRY(tfs_index_type(c, 2, &type));
  interp_value *counts = tfs_new_tensor(c->alloc, type, 1, &u->n);
  for (int64_t i = 0; counts && i < u->n; i++)
    base_store_i64(type, (char *)counts->data + (size_t)i * base_dtype_bytes(type), u->counts[i]);
  return tfs_give_tensor(c, 2, counts);
}

/* Unique, UniqueV2 (arg 1, with an axis), and those with counts. */
int tfs_host_unique(tfs_call *c) {
  interp_value *v = NULL, *axis = NULL;
  tfs_unique u = {.n = 0};
  TRY(tfs_tensor_in(c, 0, &v));
  if (c->unit->host->arg == 1) TRY(tfs_tensor_in(c, 1, &axis));
  if (v->rank != 1 || base_dtype_bytes((base_dtype)v->dtype) > 8)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "it takes a list (rank 1) of elements of at most 8 bytes");
  if (axis && axis->count && tfs_int_at(axis, 0) != 0)
    return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "a list has no axis but 0");
  base_map_init(&u.seen, c->alloc);
  int status = tfs_find_unique(c, v, &u);
  if (status == 0) status = tfs_give_unique(c, v, &u);
  base_map_free(&u.seen);
  base_free(c->alloc, u.counts);
  interp_release(u.index);
  return status;
}
