/* XLA's own ops that have functions of their own: reductions, windows, sorts, gathers and scatters. The function
 * becomes the region of the op, with scalars for arguments. */
#include "../xla.h"
#include "../../../base/list.h"

/* --- reductions: n operands, then n initial values --- */

/* t without the dimensions, each of which may be there once. */
static int xla_reduced_type(tfl_op *x, const ir_type *t, uint32_t n, const int64_t *dims, const ir_type **out) {
  int64_t kept[TFL_MOST_DIMS];
  uint64_t gone = 0;
  uint32_t rank = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (dims[i] < 0 || dims[i] >= t->rank || (gone >> dims[i] & 1))
      return tfl_fail(x, "dimension %lld of %u, or twice", (long long)dims[i], t->rank);
    gone |= (uint64_t)1 << dims[i];
  }
  for (uint32_t d = 0; d < t->rank; d++)
    if (!(gone >> d & 1)) kept[rank++] = t->dims[d];
  *out = tfl_type(x, (base_dtype)t->dtype, rank, kept);
  return x->status;
}

/* Operands, initial values, and the types of a reducer's arguments and results. */
typedef struct xla_folds {
  uint32_t n;
  ir_value *in;          /* 2 n */
  const ir_type **types; /* of results */
  const ir_type **args;  /* scalars: 2 n */
} xla_folds;

/* Operands of one shape; initial values are scalars of their types. */
static int xla_folds_of(tfl_op *x, xla_folds *f) {
  assert(f != NULL);
  f->n = x->n_in / 2;
  f->in = BASE_ARRAY(x->arena, ir_value, (size_t)x->n_in + 1);
  f->types = BASE_ARRAY(x->arena, const ir_type *, (size_t)x->n_in + 1);
  f->args = BASE_ARRAY(x->arena, const ir_type *, (size_t)x->n_in + 1);
  if (!f->in || !f->types || !f->args) return x->status = base_oom(x->err, "lowering");
  if (f->n == 0 || x->n_in != 2 * f->n) return tfl_fail(x, "%u inputs are not pairs", x->n_in);
  for (uint32_t i = 0; i < x->n_in; i++) {
    const ir_type *own = tfl_in_type(x, i % f->n), *first = tfl_in_type(x, 0);
    if (i >= f->n && (tfl_in_type(x, i)->rank || tfl_in_type(x, i)->dtype != own->dtype))
      return tfl_fail(x, "initial value %u is not a scalar of the operand's type", i - f->n);
    bool fits = own->rank == first->rank;
    for (uint32_t d = 0; fits && d < own->rank; d++) fits = own->dims[d] == first->dims[d];
    if (!fits) return tfl_fail(x, "the operands have different shapes");
    f->in[i] = tfl_in(x, i);
    f->args[i] = tfl_type(x, (base_dtype)own->dtype, 0, NULL);
  }
  return x->status;
}

/* XlaVariadicReduceV2, and XlaReduce with one operand. */
int tfl_row_xla_reduce(tfl_op *x) {
  const int64_t *dims = NULL;
  uint32_t n = 0;
  xla_folds f;
  TRY(tfl_attr_ints(x, "dimensions_to_reduce", &dims, &n));
  TRY(xla_folds_of(x, &f));
  for (uint32_t i = 0; i < f.n; i++) TRY(xla_reduced_type(x, tfl_in_type(x, i), n, dims, &f.types[i]));
  ir_op *op = opt_make_n(x->rw, IR_OP_REDUCE, f.n, f.types, 2 * f.n, f.in, 1);
  opt_set(x->rw, opt_result(op, 0), "dimensions", ir_m_i64s(x->rw->m, n, dims));
  TRY(tfl_function_region(x, op, 0, "reducer", 2 * f.n, f.args, f.n, f.args));
  for (uint32_t i = 0; i < f.n; i++) tfl_out(x, i, opt_result(op, i));
  return x->status;
}

/* --- windows --- */

/* Lists of the op's inputs; base and dilation may be NULL, for 1 everywhere. padding has pairs. */
typedef struct xla_window {
  const int64_t *size, *stride, *base, *dilation, *padding;
} xla_window;

/* An n x 2 tensor. */
static const ir_mattr *xla_pairs(tfl_op *x, uint32_t n, const int64_t *v) {
  int64_t dims[] = {n, 2};
  return ir_m_dense_i64(x->rw->m, 2, dims, v);
}

static void xla_set_window(tfl_op *x, ir_value v, uint32_t rank, const xla_window *w) {
  ir_module *m = x->rw->m;
  opt_set(x->rw, v, "window_dimensions", ir_m_i64s(m, rank, w->size));
  opt_set(x->rw, v, "window_strides", ir_m_i64s(m, rank, w->stride));
  if (w->base) opt_set(x->rw, v, "base_dilations", ir_m_i64s(m, rank, w->base));
  if (w->dilation) opt_set(x->rw, v, "window_dilations", ir_m_i64s(m, rank, w->dilation));
  opt_set(x->rw, v, "padding", xla_pairs(x, rank, w->padding));
}

/* The result's sizes. */
static int xla_window_dims(tfl_op *x, const ir_type *t, const xla_window *w, int64_t *dims) {
  assert(w->size != NULL && w->stride != NULL && w->padding != NULL);
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t base = w->base ? w->base[d] : 1, far = w->dilation ? w->dilation[d] : 1;
    if (w->size[d] < 1 || w->stride[d] < 1 || base < 1 || far < 1 || w->size[d] > INT32_MAX || far > INT32_MAX)
      return tfl_fail(x, "a window's sizes, strides and dilations must be positive");
    int64_t in = (t->dims[d] ? (t->dims[d] - 1) * base + 1 : 0) + w->padding[2 * d] + w->padding[2 * d + 1];
    int64_t room = in - ((w->size[d] - 1) * far + 1);
    dims[d] = room < 0 ? 0 : room / w->stride[d] + 1;
  }
  return 0;
}

/* operand, initial value, sizes, strides, dilations of the operand and of the window, padding */
int tfl_row_xla_reduce_window(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *scalar = tfl_type(x, (base_dtype)t->dtype, 0, NULL);
  const ir_type *args[] = {scalar, scalar};
  int64_t dims[TFL_MOST_DIMS];
  xla_window w;
  TRY(tfl_known_list(x, 2, t->rank, &w.size));
  TRY(tfl_known_list(x, 3, t->rank, &w.stride));
  TRY(tfl_known_list(x, 4, t->rank, &w.base));
  TRY(tfl_known_list(x, 5, t->rank, &w.dilation));
  TRY(tfl_known_list(x, 6, 2 * t->rank, &w.padding));
  TRY(xla_window_dims(x, t, &w, dims));
  if (tfl_in_type(x, 1) != scalar) return tfl_fail(x, "the initial value is not a scalar of the operand's type");
  const ir_type *type = tfl_type(x, (base_dtype)t->dtype, t->rank, dims);
  ir_value in[] = {tfl_in(x, 0), tfl_in(x, 1)};
  if (x->status) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_REDUCE_WINDOW, 1, &type, 2, in, 1);
  xla_set_window(x, opt_result(op, 0), t->rank, &w);
  TRY(tfl_function_region(x, op, 0, "computation", 2, args, 1, args));
  tfl_out(x, 0, opt_result(op, 0));
  return x->status;
}

/* operand, sizes, strides, padding, source, initial value */
int tfl_row_xla_select_and_scatter(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *scalar = tfl_type(x, (base_dtype)t->dtype, 0, NULL);
  const ir_type *args[] = {scalar, scalar}, *truth = tfl_type(x, XLAC_PRED, 0, NULL);
  int64_t dims[TFL_MOST_DIMS];
  xla_window w = {.size = NULL};
  TRY(tfl_known_list(x, 1, t->rank, &w.size));
  TRY(tfl_known_list(x, 2, t->rank, &w.stride));
  TRY(tfl_known_list(x, 3, 2 * t->rank, &w.padding));
  TRY(xla_window_dims(x, t, &w, dims));
  if (tfl_in_type(x, 5) != scalar || tfl_in_type(x, 4) != tfl_type(x, (base_dtype)t->dtype, t->rank, dims))
    return tfl_fail(x, "the source is not one element for each window, or the initial value no scalar");
  ir_value in[] = {tfl_in(x, 0), tfl_in(x, 4), tfl_in(x, 5)};
  if (x->status) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_SELECT_AND_SCATTER, 1, &t, 3, in, 2);
  xla_set_window(x, opt_result(op, 0), t->rank, &w);
  TRY(tfl_function_region(x, op, 0, "select", 2, args, 1, &truth));
  TRY(tfl_function_region(x, op, 1, "scatter", 2, args, 1, args));
  tfl_out(x, 0, opt_result(op, 0));
  return x->status;
}

/* --- sorts --- */

/* Operands, then the dimension; the comparator takes both elements of each operand in turn. */
int tfl_row_xla_variadic_sort(tfl_op *x) {
  uint32_t n = x->n_in - 1, axis = 0;
  int64_t dim = 0;
  const ir_type *first = tfl_in_type(x, 0), *truth = tfl_type(x, XLAC_PRED, 0, NULL);
  const ir_type **types = BASE_ARRAY(x->arena, const ir_type *, (size_t)n + 1);
  const ir_type **args = BASE_ARRAY(x->arena, const ir_type *, 2 * (size_t)n + 1);
  ir_value *in = BASE_ARRAY(x->arena, ir_value, (size_t)n + 1);
  if (!types || !args || !in) return x->status = base_oom(x->err, "lowering");
  if (n == 0) return tfl_fail(x, "nothing to sort");
  TRY(tfl_int(x, n, &dim));
  TRY(tfl_axis(x, dim, first->rank, &axis));
  for (uint32_t i = 0; i < n; i++) {
    types[i] = tfl_in_type(x, i);
    in[i] = tfl_in(x, i);
    bool fits = types[i]->rank == first->rank;
    for (uint32_t d = 0; fits && d < first->rank; d++) fits = types[i]->dims[d] == first->dims[d];
    if (!fits) return tfl_fail(x, "the operands have different shapes");
    args[2 * i] = args[2 * i + 1] = tfl_type(x, (base_dtype)types[i]->dtype, 0, NULL);
  }
  if (x->status) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_SORT, n, types, n, in, 1);
  opt_set(x->rw, opt_result(op, 0), "dimension", ir_m_i64(x->rw->m, axis));
  opt_set(x->rw, opt_result(op, 0), "is_stable", ir_m_bool(x->rw->m, tfl_attr_bool(x, "is_stable")));
  TRY(tfl_function_region(x, op, 0, "comparator", 2 * n, args, 1, &truth));
  for (uint32_t i = 0; i < n; i++) tfl_out(x, i, opt_result(op, i));
  return x->status;
}

/* --- gathers and scatters --- */

/* GatherDimensionNumbers or ScatterDimensionNumbers. */
typedef struct xla_places {
  tfl_dims window, gone, map, batch, index_batch; /* the last two go together */
  int64_t vector;
} xla_places;

/* Fields 1 to 6 of both messages mean the same, but for who the windows' dimensions belong to. */
static int xla_places_of(tfl_op *x, uint32_t rank, uint32_t index_rank, uint32_t window_rank, xla_places *p) {
  TRY(tfl_message_dims(x, 1, window_rank, &p->window));
  TRY(tfl_message_dims(x, 2, rank, &p->gone));
  TRY(tfl_message_dims(x, 3, rank, &p->map));
  TRY(tfl_message_dim(x, 4, index_rank + 1, &p->vector));
  TRY(tfl_message_dims(x, 5, rank, &p->batch));
  return tfl_message_dims(x, 6, index_rank, &p->index_batch);
}

static const ir_mattr *xla_places_attr(tfl_op *x, const char *kind, const xla_places *p) {
  assert(strcmp(kind, "gather") == 0 || strcmp(kind, "scatter") == 0);
  static const char *const gather[] = {"offset_dims",           "collapsed_slice_dims",
                                       "operand_batching_dims", "start_indices_batching_dims",
                                       "start_index_map",       "index_vector_dim"};
  static const char *const scatter[] = {"update_window_dims",           "inserted_window_dims",
                                        "input_batching_dims",          "scatter_indices_batching_dims",
                                        "scatter_dims_to_operand_dims", "index_vector_dim"};
  const char *const *names = strcmp(kind, "gather") == 0 ? gather : scatter;
  const tfl_dims *lists[] = {&p->window, &p->gone, &p->batch, &p->index_batch, &p->map};
  ir_module *m = x->rw->m;
  ir_mentry fields[6];
  for (int i = 0; i < 6; i++) {
    fields[i].key = ir_intern(m, names[i], strlen(names[i]));
    fields[i].value = i < 5 ? ir_m_i64s(m, lists[i]->n, lists[i]->v) : ir_m_i64(m, p->vector);
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(m, "stablehlo", kind, 6, fields);
}

/* Indices' dimensions without the vectors', in order, fill the result's that windows leave. The verifier checks
 * what is left to check. */
int tfl_row_xla_gather(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *at = tfl_in_type(x, 1);
  const int64_t *sizes = NULL;
  int64_t dims[2 * TFL_MOST_DIMS];
  xla_places p;
  TRY(tfl_known_list(x, 2, t->rank, &sizes));
  TRY(xla_places_of(x, t->rank, at->rank, TFL_MOST_DIMS, &p));
  uint32_t lead = p.vector < at->rank ? at->rank - 1 : at->rank, rank = lead + p.window.n, kept = 0, next = 0, w = 0;
  int64_t window[TFL_MOST_DIMS];
  for (uint32_t d = 0; d < t->rank; d++) {
    if (sizes[d] < 0 || sizes[d] > t->dims[d])
      return tfl_fail(x, "a slice of %lld of %lld", (long long)sizes[d], (long long)t->dims[d]);
    if (!base_list_has(p.gone.v, p.gone.n, d) && !base_list_has(p.batch.v, p.batch.n, d)) window[kept++] = sizes[d];
  }
  if (kept != p.window.n || rank > TFL_MOST_DIMS) return tfl_fail(x, "dimension_numbers do not fit the slices");
  for (uint32_t d = 0; d < rank; d++) {
    if (base_list_has(p.window.v, p.window.n, d)) {
      dims[d] = window[w++];
      continue;
    }
    if (next == p.vector) next++;
    if (next >= at->rank) return tfl_fail(x, "dimension_numbers do not fit the indices");
    dims[d] = at->dims[next++];
  }
  if (w != kept) return tfl_fail(x, "offset_dims lie outside of the result");
  ir_value in[] = {tfl_in(x, 0), tfl_in(x, 1)};
  ir_value r = opt_make(x->rw, IR_OP_GATHER, tfl_type(x, (base_dtype)t->dtype, rank, dims), 2, in);
  opt_set(x->rw, r, "dimension_numbers", xla_places_attr(x, "gather", &p));
  opt_set(x->rw, r, "slice_sizes", ir_m_i64s(x->rw->m, t->rank, sizes));
  opt_set(x->rw, r, "indices_are_sorted", ir_m_bool(x->rw->m, tfl_attr_bool(x, "indices_are_sorted")));
  tfl_out(x, 0, r);
  return x->status;
}

/* operand, indices, updates */
int tfl_row_xla_scatter(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *at = tfl_in_type(x, 1), *u = tfl_in_type(x, 2);
  const ir_type *scalar = tfl_type(x, (base_dtype)t->dtype, 0, NULL), *args[] = {scalar, scalar};
  xla_places p;
  if (u->dtype != t->dtype) return tfl_fail(x, "operand and updates have different element types");
  TRY(xla_places_of(x, t->rank, at->rank, u->rank, &p));
  ir_value in[] = {tfl_in(x, 0), tfl_in(x, 1), tfl_in(x, 2)};
  if (x->status) return x->status;
  ir_op *op = opt_make_n(x->rw, IR_OP_SCATTER, 1, &t, 3, in, 1);
  opt_set(x->rw, opt_result(op, 0), "scatter_dimension_numbers", xla_places_attr(x, "scatter", &p));
  opt_set(x->rw, opt_result(op, 0), "indices_are_sorted", ir_m_bool(x->rw->m, tfl_attr_bool(x, "indices_are_sorted")));
  TRY(tfl_function_region(x, op, 0, "update_computation", 2, args, 1, args));
  tfl_out(x, 0, opt_result(op, 0));
  return x->status;
}
