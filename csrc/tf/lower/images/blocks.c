/* Blocks of images to depth or to batch and back, and reversed sequences: reshapes, transpositions, one gather. */
#include "../windows.h"

/* A reshape and a transposition: `dims` split the value, `turn` is their new order. */
typedef struct blocks_shape {
  uint32_t rank;
  int64_t dims[TFL_MOST_DIMS], turn[TFL_MOST_DIMS];
} blocks_shape;

/* Splits, turns, and joins to `dims`. */
static ir_value blocks_move(tfl_op *x, ir_value v, const blocks_shape *split, uint32_t rank, const int64_t *dims) {
  assert(split->rank <= TFL_MOST_DIMS && rank <= TFL_MOST_DIMS);
  return tfl_reshape(x, tfl_transpose(x, tfl_reshape(x, v, split->rank, split->dims), split->turn), rank, dims);
}

/* A shape with h x w blocks of b x b in it, and the order of its dimensions that the other side has. c is the
 * number of features of a pixel of the large image. */
typedef struct blocks_depth {
  int64_t n, h, w, c, b;
} blocks_depth;

/* The large image, [n, h b, w b, c] with features last, or [n, c, h b, w b]. */
static void blocks_space(const blocks_depth *d, bool last, blocks_shape *s, int64_t *whole) {
  const int64_t split[2][6] = {{d->n, d->c, d->h, d->b, d->w, d->b}, {d->n, d->h, d->b, d->w, d->b, d->c}};
  const int64_t turn[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 2, 4, 5}};
  const int64_t dims[2][4] = {{d->n, d->c, d->h * d->b, d->w * d->b}, {d->n, d->h * d->b, d->w * d->b, d->c}};
  memcpy(s->dims, split[last], sizeof split[0]);
  memcpy(s->turn, turn[last], sizeof turn[0]);
  memcpy(whole, dims[last], sizeof dims[0]);
}

/* The small deep image, [n, h, w, b b c] or [n, b b c, h, w]. */
static void blocks_deep(const blocks_depth *d, bool last, blocks_shape *s, int64_t *whole) {
  const int64_t split[2][6] = {{d->n, d->b, d->b, d->c, d->h, d->w}, {d->n, d->h, d->w, d->b, d->b, d->c}};
  const int64_t turn[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 3, 2, 4, 5}};
  const int64_t dims[2][4] = {{d->n, d->b * d->b * d->c, d->h, d->w}, {d->n, d->h, d->w, d->b * d->b * d->c}};
  memcpy(s->dims, split[last], sizeof split[0]);
  memcpy(s->turn, turn[last], sizeof turn[0]);
  memcpy(whole, dims[last], sizeof dims[0]);
}

/* The depth of a pixel is its block, row by row, each with all features. arg: 0 SpaceToDepth, 1 DepthToSpace. */
int tfl_row_depth(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t b = tfl_attr_int(x, "block_size"), from[4], to[4];
  tfl_layout l;
  TRY(tfl_layout_of(x, 2, t, &l));
  if (b < 1 || b > INT16_MAX) return tfl_fail(x, "block_size %lld", (long long)b);
  bool last = l.feature == 3, back = x->row->arg == 1;
  blocks_depth d = {t->dims[0], t->dims[l.spatial[0]], t->dims[l.spatial[1]], t->dims[l.feature], b};
  if (back ? d.c % (b * b) != 0 : d.h % b != 0 || d.w % b != 0)
    return tfl_fail(x, "a shape that blocks of %lld do not fit", (long long)b);
  if (back) d.c /= b * b;
  if (!back) d.h /= b, d.w /= b;
  blocks_shape space = {.rank = 6}, deep = {.rank = 6};
  blocks_space(&d, last, &space, back ? to : from);
  blocks_deep(&d, last, &deep, back ? from : to);
  tfl_out(x, 0, blocks_move(x, tfl_in(x, 0), back ? &deep : &space, 4, to));
  return x->status;
}

/* --- to and from the batch --- */

/* SpaceToBatchND and BatchToSpaceND: dimensions 1 to m are cut into blocks. */
typedef struct blocks_batch {
  uint32_t m; /* spatial dimensions */
  int64_t block[TFL_MOST_DIMS];
  const int64_t *edges; /* pairs: paddings or crops */
  int64_t all;          /* the product of the blocks */
} blocks_batch;

/* arg: 0 ND, with the blocks as input 1; 1 with attribute block_size and two spatial dimensions. */
static int blocks_batch_of(tfl_op *x, uint32_t rank, blocks_batch *b) {
  const int64_t *block = NULL;
  uint32_t n = 2;
  *b = (blocks_batch){.all = 1};
  if (!x->row->arg) TRY(tfl_ints(x, 1, &block, &n));
  b->m = n;
  if (b->m + 1 > rank || 2 * b->m + rank > TFL_MOST_DIMS)
    return tfl_fail(x, "%u blocks, for a value of rank %u", b->m, rank);
  for (uint32_t i = 0; i < b->m; i++) {
    b->block[i] = block ? block[i] : tfl_attr_int(x, "block_size");
    if (b->block[i] < 1 || b->block[i] > INT32_MAX || b->all > INT32_MAX)
      return tfl_fail(x, "a block of %lld", (long long)b->block[i]);
    b->all *= b->block[i];
  }
  TRY(tfl_ints(x, x->row->arg ? 1 : 2, &b->edges, &n));
  for (uint32_t i = 0; i < n; i++)
    if (b->edges[i] < 0 || b->edges[i] > INT32_MAX)
      return tfl_fail(x, "paddings or crops have %lld", (long long)b->edges[i]);
  return n == 2 * b->m ? x->status : tfl_fail(x, "%u paddings or crops for %u blocks", n, b->m);
}

/* Pads, splits dimension 1 + i into [size / block, block] and moves all blocks in front of the batch. */
int tfl_row_space_to_batch(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  blocks_batch b;
  TRY(blocks_batch_of(x, t->rank, &b));
  int64_t low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0}, dims[TFL_MOST_DIMS];
  blocks_shape s = {.rank = t->rank + b.m, .dims = {t->dims[0]}};
  uint32_t rest = t->rank - 1 - b.m;
  for (uint32_t i = 0; i < b.m; i++) {
    low[1 + i] = b.edges[2 * i];
    high[1 + i] = b.edges[2 * i + 1];
    int64_t size = t->dims[1 + i] + low[1 + i] + high[1 + i];
    if (size % b.block[i])
      return tfl_fail(x, "%lld elements in blocks of %lld", (long long)size, (long long)b.block[i]);
    s.dims[1 + 2 * i] = dims[1 + i] = size / b.block[i];
    s.dims[2 + 2 * i] = b.block[i];
    s.turn[i] = 2 + 2 * i;
    s.turn[b.m + 1 + i] = 1 + 2 * i;
  }
  s.turn[b.m] = 0;
  dims[0] = t->dims[0] * b.all;
  for (uint32_t i = 0; i < rest; i++) {
    s.dims[1 + 2 * b.m + i] = dims[1 + b.m + i] = t->dims[1 + b.m + i];
    s.turn[1 + 2 * b.m + i] = 1 + 2 * b.m + i;
  }
  ir_value v = tfl_pad(x, tfl_in(x, 0), tfl_scalar(x, (base_dtype)t->dtype, 0), low, high, NULL);
  tfl_out(x, 0, blocks_move(x, v, &s, t->rank, dims));
  return x->status;
}

/* The other way, and crops at the end. */
int tfl_row_batch_to_space(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  blocks_batch b;
  TRY(blocks_batch_of(x, t->rank, &b));
  if (t->dims[0] % b.all)
    return tfl_fail(x, "a batch of %lld in blocks of %lld", (long long)t->dims[0], (long long)b.all);
  int64_t dims[TFL_MOST_DIMS];
  blocks_shape s = {.rank = t->rank + b.m};
  uint32_t rest = t->rank - 1 - b.m;
  s.turn[0] = b.m;
  dims[0] = s.dims[b.m] = t->dims[0] / b.all;
  for (uint32_t i = 0; i < b.m; i++) {
    s.dims[i] = b.block[i];
    s.dims[b.m + 1 + i] = t->dims[1 + i];
    dims[1 + i] = t->dims[1 + i] * b.block[i];
    s.turn[1 + 2 * i] = b.m + 1 + i;
    s.turn[2 + 2 * i] = i;
  }
  for (uint32_t i = 0; i < rest; i++) {
    s.dims[1 + 2 * b.m + i] = dims[1 + b.m + i] = t->dims[1 + b.m + i];
    s.turn[1 + 2 * b.m + i] = 1 + 2 * b.m + i;
  }
  ir_value v = blocks_move(x, tfl_in(x, 0), &s, t->rank, dims);
  for (uint32_t i = 0; i < b.m && !x->status; i++) {
    int64_t from = b.edges[2 * i], to = dims[1 + i] - b.edges[2 * i + 1];
    if (from > to) return tfl_fail(x, "crops of %lld and %lld", (long long)from, (long long)b.edges[2 * i + 1]);
    v = tfl_slice(x, v, 1 + i, from, to);
  }
  tfl_out(x, 0, v);
  return x->status;
}

/* --- sequences --- */

/* Place i along seq_dim comes from length - 1 - i where i < length: one gather with the batch in both. */
int tfl_row_reverse_sequence(tfl_op *x) {
  assert(x->n_out == 1);
  const ir_type *t = tfl_in_type(x, 0), *lengths = tfl_in_type(x, 1);
  uint32_t batch = 0, seq = 0;
  int64_t turn[TFL_MOST_DIMS], back[TFL_MOST_DIMS];
  TRY(tfl_axis(x, tfl_attr_int(x, "batch_dim"), t->rank, &batch));
  TRY(tfl_axis(x, tfl_attr_int(x, "seq_dim"), t->rank, &seq));
  if (batch == seq || lengths->rank != 1 || lengths->dims[0] != t->dims[batch])
    return tfl_fail(x, "batch_dim %u, seq_dim %u and lengths of rank %u", batch, seq, lengths->rank);
  turn[0] = batch;
  turn[1] = seq;
  for (uint32_t d = 0, n = 2; d < t->rank; d++)
    if (d != batch && d != seq) turn[n++] = d;
  for (uint32_t d = 0; d < t->rank; d++) back[turn[d]] = d;
  base_dtype index = (base_dtype)lengths->dtype;
  int64_t grid[] = {t->dims[batch], t->dims[seq]};
  ir_value place = tfl_iota(x, index, 2, grid, 1), length = tfl_along(x, tfl_in(x, 1), place, 0);
  ir_value from = tfl_with(x, IR_OP_SUBTRACT, opt_binary(x->rw, IR_OP_SUBTRACT, length, place), 1);
  from = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, place, length), from, place);
  ir_value v = tfl_take(x, tfl_transpose(x, tfl_in(x, 0), turn), from, 1, 1);
  tfl_out(x, 0, tfl_transpose(x, v, back));
  return x->status;
}

/* --- patches --- */

/* A list with a number for each dimension, 1 for batch and depth. For ExtractImagePatches, whose windows lie in
 * rows and columns only. */
static int blocks_window(tfl_op *x, const char *name, int64_t *out) {
  const int64_t *v = NULL;
  uint32_t n = 0;
  TRY(tfl_attr_ints(x, name, &v, &n));
  if (n != 4 || v[0] != 1 || v[3] != 1) return tfl_fail(x, "attribute '%s' is not [1, rows, columns, 1]", name);
  for (int i = 0; i < 2; i++) {
    out[i] = v[1 + i];
    if (out[i] < 1 || out[i] > INT16_MAX) return tfl_fail(x, "attribute '%s' has %lld", name, (long long)out[i]);
  }
  return 0;
}

/* The window at each place as its depth: a strided slice for each place in the window, one after the other. */
int tfl_row_patches(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t size[2], stride[2], rate[2];
  tfl_layout l = {.n = 2, .batch = 0, .feature = 3, .spatial = {1, 2}};
  tfl_span s[2];
  TRY(blocks_window(x, "ksizes", size));
  TRY(blocks_window(x, "strides", stride));
  TRY(blocks_window(x, "rates", rate));
  if (t->rank != 4 || size[0] * size[1] > 4096)
    return tfl_fail(x, "patches of %lld x %lld", (long long)size[0], (long long)size[1]);
  for (int i = 0; i < 2; i++)
    s[i] = (tfl_span){.in = t->dims[1 + i], .size = size[i], .stride = stride[i], .dilation = rate[i]};
  TRY(tfl_pad_spans(x, &l, s));
  int64_t low[] = {0, s[0].low, s[1].low, 0}, high[] = {0, s[0].high, s[1].high, 0};
  ir_value v = tfl_pad(x, tfl_in(x, 0), tfl_scalar(x, (base_dtype)t->dtype, 0), low, high, NULL);
  ir_value *parts = BASE_ARRAY(x->arena, ir_value, (size_t)(size[0] * size[1]));
  if (!parts) return x->status = base_oom(x->err, "lowering");
  for (int64_t k = 0; k < size[0] * size[1]; k++) {
    int64_t from[] = {0, k / size[1] * rate[0], k % size[1] * rate[1], 0}, steps[] = {1, stride[0], stride[1], 1};
    int64_t to[] = {t->dims[0], from[1] + (s[0].out - 1) * stride[0] + 1, from[2] + (s[1].out - 1) * stride[1] + 1,
                    t->dims[3]};
    parts[k] = opt_slice(x->rw, v, from, to, steps);
  }
  tfl_out(x, 0, tfl_concat(x, (uint32_t)(size[0] * size[1]), parts, 3));
  return x->status;
}
