/* Host ops on shapes: no element is touched. */
#include "../run.h"

/* The sizes of v as a list. */
static int tfs_give_dims(tfs_call *c, uint32_t k, const interp_value *v) {
  assert(v->rank <= IR_MAX_RANK);
  int64_t n = v->rank;
  base_dtype type = BASE_DTYPE_INVALID;
  TRY(tfs_index_type(c, k, &type));
  interp_value *out = tfs_new_tensor(c->alloc, type, 1, &n);
  for (uint32_t d = 0; out && d < v->rank; d++)
    base_store_i64(type, (char *)out->data + d * base_dtype_bytes(type), v->dims[d]);
  return tfs_give_tensor(c, k, out);
}

/* 0: Shape and ShapeN, 1: Size, 2: Rank; of tensors, and of variables by their handles. Strings have sizes, too. */
int tfs_host_shape(tfs_call *c) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    interp_value *v = NULL;
    tfs_object *strings = tfs_is_object(&c->in[i], TFS_STRINGS) ? c->in[i].object : NULL;
    interp_value of_strings = {.rank = strings ? strings->rank : 0, .count = strings ? strings->n_strings : 0};
    if (strings) {
      of_strings.dims = strings->dims;
      v = &of_strings;
    } else {
      TRY(tfs_tensor_in(c, i, &v));
    }
    if (c->unit->host->arg == 0)
      TRY(tfs_give_dims(c, i, v));
    else
      TRY(tfs_give_int(c, i, c->unit->host->arg == 1 ? v->count : v->rank));
  }
  return 0;
}

/* One size may be -1: what is left. The result is a view. */
int tfs_host_reshape(tfs_call *c) {
  interp_value *v = NULL;
  int64_t dims[IR_MAX_RANK], known = 1;
  uint32_t rank = 0, open = UINT32_MAX;
  TRY(tfs_tensor_in(c, 0, &v));
  TRY(tfs_dims_in(c, 1, &rank, dims));
  for (uint32_t d = 0; d < rank; d++) {
    if (dims[d] == -1 && open == UINT32_MAX) {
      open = d;
    } else if (dims[d] < 0 || !base_mul_i64(known, dims[d], &known)) {
      return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "size %lld of dimension %u is not possible", (long long)dims[d], d);
    }
  }
  if (open != UINT32_MAX) {
    dims[open] = known ? v->count / known : 0;
    known *= dims[open];
  }
  if (known != v->count)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "%lld elements don't fit into a shape of %lld", (long long)v->count,
                    (long long)known);
  return tfs_give_tensor(c, 0, tfs_reshaped(c->alloc, v, rank, dims));
}
