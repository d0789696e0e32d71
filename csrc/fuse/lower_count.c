/* Arithmetic on indexes that are numbers is an index itself: 2 * iota(0) + iota(1), as a u32, counts up by 2 along one
 * dimension and by 1 along the other. So a flat index, as random bits are made from, has no ops, and what it walks is
 * one dimension. */
#include "lower_inside.h"

static bool count_is_whole(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  return (info->kind == BASE_KIND_SINT || info->kind == BASE_KIND_UINT) && info->bits >= 8;
}

/* A number that is the index in all iterations: of a constant it has no strides. */
static bool count_index_of(const kernel_value *v, kernel_index *index) {
  *index = (kernel_index){0};
  if (v->kind == KERNEL_COUNT_UP) return *index = *v->index, true;
  if (v->kind == KERNEL_CONSTANT) base_convert(XLAC_S64, &index->offset, (base_dtype)v->dtype, v->data, 1);
  return v->kind == KERNEL_CONSTANT;
}

/* to + by * from; false where that is no int64_t. */
static bool count_add(kernel_index *to, const kernel_index *from, int64_t by, uint32_t rank) {
  int64_t part = 0;
  bool over = __builtin_mul_overflow(from->offset, by, &part) || __builtin_add_overflow(to->offset, part, &to->offset);
  for (uint32_t d = 0; d < rank && !over; d++)
    over = __builtin_mul_overflow(from->strides[d], by, &part) ||
           __builtin_add_overflow(to->strides[d], part, &to->strides[d]);
  return !over;
}

static bool count_times(const lower_run *x, const kernel_value *a, const kernel_value *b, kernel_index *to) {
  kernel_index number, index;
  const kernel_value *c = a->kind == KERNEL_CONSTANT ? a : b, *other = c == a ? b : a;
  if (c->kind != KERNEL_CONSTANT || !count_index_of(c, &number) || !count_index_of(other, &index)) return false;
  return count_add(to, &index, number.offset, x->rank);
}

/* a >> c where nothing is left of any index: 0. */
static bool count_shifts_out(const lower_run *x, const kernel_value *a, const kernel_value *c) {
  int64_t least = 0, most = 0;
  kernel_index by;
  return a->kind == KERNEL_COUNT_UP && c->kind == KERNEL_CONSTANT && count_index_of(c, &by) && by.offset >= 0 &&
         by.offset < base_dtype_of((base_dtype)a->dtype)->bits - 1 && kernel_reach(x->k, a->index, &least, &most) &&
         least >= 0 && most >> by.offset == 0;
}

/* Numbers wrap, so that of a type of as many bits or more the low ones suffice; else all must fit. */
static bool count_converts(const lower_run *x, const kernel_value *from, base_dtype type, kernel_index *to) {
  const base_dtype_info *info = base_dtype_of((base_dtype)from->dtype);
  int64_t least = 0, most = 0, limit = info->bits < 64 ? ((int64_t)1 << (info->bits - 1)) - 1 : INT64_MAX;
  if (!count_index_of(from, to)) return false;
  return from->kind == KERNEL_CONSTANT || base_dtype_of(type)->bits <= info->bits ||
         (kernel_reach(x->k, to, &least, &most) && most <= limit && least >= 0);
}

bool lower_is_count(const lower_run *x, const kernel_value *v, kernel_index *to) {
  const kernel_value *a = &x->values.items[v->in[0]], *b = v->n_in > 1 ? &x->values.items[v->in[1]] : a;
  int64_t least = 0, most = 0;
  kernel_index first, second;
  bool found = false;
  *to = (kernel_index){0};
  if (v->n_in > 2 || !count_is_whole((base_dtype)v->dtype) || !count_is_whole((base_dtype)a->dtype)) return false;
  if (a->kind != KERNEL_COUNT_UP && b->kind != KERNEL_COUNT_UP && v->op.code != SCALAR_CONVERT) return false;
  if (v->op.code == SCALAR_CONVERT)
    found = count_converts(x, a, (base_dtype)v->dtype, to);
  else if (v->op.code == SCALAR_MULTIPLY)
    found = count_times(x, a, b, to);
  else if (v->op.code == SCALAR_SHIFT_RIGHT_LOGICAL)
    found = count_shifts_out(x, a, b);
  else if (v->op.code == SCALAR_ADD || v->op.code == SCALAR_SUBTRACT)
    found = count_index_of(a, &first) && count_index_of(b, &second) && count_add(to, &first, 1, x->rank) &&
            count_add(to, &second, v->op.code == SCALAR_ADD ? 1 : -1, x->rank);
  /* Machine code counts in 32 bits. */
  return found && kernel_reach(x->k, to, &least, &most) && least >= INT32_MIN && most <= INT32_MAX;
}
