/* XlaConcatND and XlaSplitND: tensors in a grid, row-major, which are parts of one; padding behind its ends. */
#include "../xla.h"

typedef struct grid {
  uint32_t rank, n; /* dimensions, parts */
  const int64_t *parts;
  int64_t paddings[TFL_MOST_DIMS];
} grid;

static int grid_of(tfl_op *x, const char *attr, uint32_t rank, uint32_t n, grid *g) {
  const int64_t *paddings = NULL;
  uint32_t n_parts = 0, n_paddings = 0;
  int64_t count = 1;
  TRY(tfl_attr_ints(x, attr, &g->parts, &n_parts));
  TRY(tfl_attr_ints(x, "paddings", &paddings, &n_paddings));
  if (n_parts != rank || (n_paddings && n_paddings != rank))
    return tfl_fail(x, "%u numbers of parts and %u paddings for %u dimensions", n_parts, n_paddings, rank);
  for (uint32_t d = 0; d < rank; d++) {
    g->paddings[d] = n_paddings ? paddings[d] : 0;
    if (g->parts[d] < 1 || g->parts[d] > INT32_MAX || g->paddings[d] < 0 || !base_mul_i64(count, g->parts[d], &count))
      return tfl_fail(x, "%lld parts, padded by %lld", (long long)g->parts[d], (long long)g->paddings[d]);
  }
  if (count != n) return tfl_fail(x, "a grid of %lld parts, but there are %u", (long long)count, n);
  g->rank = rank;
  g->n = n;
  return x->status;
}

/* From the last dimension on: neighbours become one. */
int tfl_row_xla_concat(tfl_op *x) {
  grid g;
  TRY(grid_of(x, "num_concats", tfl_in_type(x, 0)->rank, x->n_in, &g));
  ir_value *v = BASE_ARRAY(x->arena, ir_value, (size_t)x->n_in + 1);
  if (!v) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (tfl_in_type(x, i) != tfl_in_type(x, 0)) return tfl_fail(x, "input %u has another type than the first", i);
    v[i] = tfl_in(x, i);
  }
  if (x->status) return x->status;
  uint32_t n = x->n_in;
  for (uint32_t d = g.rank; d-- > 0;) {
    uint32_t run = (uint32_t)g.parts[d];
    n /= run;
    for (uint32_t i = 0; i < n; i++) v[i] = tfl_concat(x, run, v + (size_t)i * run, d);
  }
  for (uint32_t d = 0; d < g.rank && v[0].op; d++) {
    int64_t size = opt_type(v[0])->dims[d];
    if (g.paddings[d] > size) return tfl_fail(x, "dimension %u is smaller than its padding", d);
    v[0] = tfl_slice(x, v[0], d, 0, size - g.paddings[d]);
  }
  tfl_out(x, 0, v[0]);
  return x->status;
}

int tfl_row_xla_split(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t low[TFL_MOST_DIMS] = {0}, size[TFL_MOST_DIMS];
  grid g;
  TRY(grid_of(x, "num_splits", t->rank, x->n_out, &g));
  ir_value v = tfl_pad(x, tfl_in(x, 0), tfl_scalar(x, (base_dtype)t->dtype, 0), low, g.paddings, NULL);
  for (uint32_t d = 0; d < g.rank; d++) {
    int64_t all = t->dims[d] + g.paddings[d];
    if (all % g.parts[d]) return tfl_fail(x, "%lld elements in %lld parts", (long long)all, (long long)g.parts[d]);
    size[d] = all / g.parts[d];
  }
  for (uint32_t i = 0; i < x->n_out; i++) {
    ir_value part = v;
    int64_t rest = i;
    for (uint32_t d = g.rank; d-- > 0; rest /= g.parts[d]) {
      int64_t at = rest % g.parts[d] * size[d];
      part = tfl_slice(x, part, d, at, at + size[d]);
    }
    tfl_out(x, i, part);
  }
  return x->status;
}
