/* reduce: lanes are the kept indices, and each step combines all lanes with their next element, so that every lane sees
 * its elements in ascending order. Where the elements of a step do not lie together, tiles of them are transposed
 * first.
 *
 * Long reductions by a computation known to be associative are cut into segments of REDUCE_SEGMENT elements, reduced
 * each from its own first element, whose results are reduced in turn: a fixed tree, more accurate and faster than one
 * long chain.
 */
#include "fold.h"

enum { REDUCE_LANES = 2048, REDUCE_ROWS = 32, REDUCE_SEGMENT = 1024, REDUCE_LONG = 4096 };

/* One operand list seen as [outer, steps, inner] elements, reduced over the steps. */
typedef struct reduce_slab {
  int64_t outer, steps, inner;
  int64_t outer_stride; /* in elements; steps * inner where whole */
} reduce_slab;

typedef struct reduce_run {
  interp_ctx *ctx;
  interp_fold *fold;
  uint32_t n;
  interp_value *const *init; /* NULL: start from the first element */
  void **acc, **next;        /* REDUCE_LANES accumulators each */
  void **tile;               /* REDUCE_ROWS x REDUCE_LANES elements each */
  void **at;                 /* n pointers */
} reduce_run;

static char *reduce_element(void *base, base_dtype t, int64_t i) {
  assert(i >= 0);
  return (char *)base + i * (int64_t)base_dtype_bytes(t);
}

/* acc = fold(acc, x) in all lanes; where the fold can't write in place, the two accumulator buffers take
 * turns. */
static int reduce_step(reduce_run *r, int64_t lanes, void *const *x) {
  bool in_place = interp_fold_in_place(r->fold);
  TRY(interp_fold_apply(r->ctx, r->fold, lanes, r->acc, x, in_place ? r->acc : r->next));
  if (!in_place) {
    void **swap = r->acc;
    r->acc = r->next;
    r->next = swap;
  }
  return 0;
}

/* The accumulators before the first step; returns how many rows that took from `row`. */
static int64_t reduce_start(reduce_run *r, int64_t lanes, void *const *row) {
  for (uint32_t i = 0; i < r->n; i++) {
    size_t bytes = base_dtype_bytes(r->fold->acc[i]);
    if (r->init)
      interp_fill(bytes, r->acc[i], lanes, r->init[i]->data);
    else
      memcpy(r->acc[i], row[i], (size_t)lanes * bytes);
  }
  return r->init ? 0 : 1;
}

/* Lanes [lane, lane + lanes) of one outer index: rows lie as they are. */
static int reduce_rows(reduce_run *r, const reduce_slab *s, void *const *x, int64_t from, int64_t lanes) {
  for (uint32_t i = 0; i < r->n; i++) r->at[i] = reduce_element(x[i], r->fold->x[i], from);
  int64_t step = reduce_start(r, lanes, r->at);
  for (; step < s->steps; step++) {
    for (uint32_t i = 0; i < r->n; i++) r->at[i] = reduce_element(x[i], r->fold->x[i], from + step * s->inner);
    TRY(reduce_step(r, lanes, r->at));
  }
  return 0;
}

/* `count` outer indices from `outer` at once: lanes are [count, inner], brought together tile by tile. */
static int reduce_tiles(reduce_run *r, const reduce_slab *s, void *const *x, int64_t outer, int64_t count) {
  int64_t lanes = count * s->inner;
  bool started = false;
  if (s->steps == 0) reduce_start(r, lanes, r->tile);
  for (int64_t step = 0; step < s->steps; step += REDUCE_ROWS) {
    int64_t rows = interp_min(REDUCE_ROWS, s->steps - step), row = 0;
    int64_t dims[3] = {rows, count, s->inner}, to[3] = {lanes, s->inner, 1}, from[3] = {s->inner, s->outer_stride, 1};
    for (uint32_t i = 0; i < r->n; i++)
      TRY(interp_strided_copy(r->ctx, base_dtype_bytes(r->fold->x[i]), 3, dims, r->tile[i], to,
                              reduce_element(x[i], r->fold->x[i], outer * s->outer_stride + step * s->inner), from));
    if (!started) row = reduce_start(r, lanes, r->tile);
    started = true;
    for (; row < rows; row++) {
      for (uint32_t i = 0; i < r->n; i++) r->at[i] = reduce_element(r->tile[i], r->fold->x[i], row * lanes);
      TRY(reduce_step(r, lanes, r->at));
    }
  }
  return 0;
}

/* Accumulators to element `to` of the results. */
static void reduce_store(reduce_run *r, int64_t lanes, void *const *out, int64_t to) {
  for (uint32_t i = 0; i < r->n; i++)
    memcpy(reduce_element(out[i], r->fold->acc[i], to), r->acc[i], (size_t)lanes * base_dtype_bytes(r->fold->acc[i]));
}

/* Reduces the slab at x into [outer, inner] dense at out. Small inner dimensions are worked on several
 * outer indices at a time, or lanes would be few. */
static int reduce_slab_run(reduce_run *r, const reduce_slab *s, void *const *x, void *const *out) {
  int64_t together = s->outer > 1 && s->inner < REDUCE_LANES / 2 ? REDUCE_LANES / s->inner : 1;
  assert(r->init || s->steps > 0);
  for (int64_t outer = 0; outer < s->outer; outer += together) {
    int64_t count = interp_min(together, s->outer - outer);
    if (together > 1) {
      TRY(reduce_tiles(r, s, x, outer, count));
      reduce_store(r, count * s->inner, out, outer * s->inner);
      continue;
    }
    for (int64_t lane = 0; lane < s->inner; lane += REDUCE_LANES) {
      int64_t lanes = interp_min(REDUCE_LANES, s->inner - lane);
      TRY(reduce_rows(r, s, x, outer * s->outer_stride + lane, lanes));
      reduce_store(r, lanes, out, outer * s->inner + lane);
    }
  }
  return 0;
}

static void offset_all(const reduce_run *r, const base_dtype *types, void *const *base, int64_t at, void **out) {
  for (uint32_t i = 0; i < r->n; i++) out[i] = reduce_element(base[i], types[i], at);
}

/* One level of the tree: segments of each outer index to [outer, segments, inner] at out. */
static int reduce_segments(reduce_run *r, const reduce_slab *s, void *const *x, void *const *out, int64_t segments,
                           void **from, void **to) {
  int64_t whole = s->steps / REDUCE_SEGMENT, rest = s->steps % REDUCE_SEGMENT;
  reduce_slab each = {whole, REDUCE_SEGMENT, s->inner, REDUCE_SEGMENT * s->inner},
              last = {1, rest, s->inner, rest * s->inner};
  for (int64_t outer = 0; outer < s->outer; outer++) {
    int64_t at = outer * s->outer_stride, place = outer * segments * s->inner;
    offset_all(r, r->fold->x, x, at, from);
    offset_all(r, r->fold->acc, out, place, to);
    TRY(reduce_slab_run(r, &each, from, to));
    if (rest == 0) continue;
    offset_all(r, r->fold->x, x, at + whole * REDUCE_SEGMENT * s->inner, from);
    offset_all(r, r->fold->acc, out, place + whole * s->inner, to);
    TRY(reduce_slab_run(r, &last, from, to));
  }
  return 0;
}

/* Partial results are a slab of fewer steps, until that is short enough. The initial value takes part
 * once, in the last round. */
static int reduce_long(reduce_run *r, reduce_slab s, void *const *x, void *const *out, interp_value *const *init) {
  void **present = NULL;
  int status = 0;
  r->init = NULL;
  while (status == 0 && s.steps > REDUCE_LONG) {
    int64_t segments = s.steps / REDUCE_SEGMENT + (s.steps % REDUCE_SEGMENT != 0);
    void **partial = interp_fold_buffers(r->ctx, r->n, r->fold->acc, s.outer * segments * s.inner);
    void **from = interp_fold_list(r->ctx, r->n), **to = interp_fold_list(r->ctx, r->n);
    status = partial && from && to ? reduce_segments(r, &s, x, partial, segments, from, to) : interp_failed(r->ctx);
    interp_scratch_free(r->ctx, from);
    interp_scratch_free(r->ctx, to);
    interp_fold_buffers_free(r->ctx, r->n, present);
    present = partial;
    x = partial;
    s.steps = segments;
    s.outer_stride = segments * s.inner;
  }
  r->init = init;
  if (status == 0) status = reduce_slab_run(r, &s, x, out);
  interp_fold_buffers_free(r->ctx, r->n, present);
  return status;
}

/* Buffers are as large as this slab needs. */
static int reduce_run_on(interp_ctx *ctx, interp_fold *fold, const reduce_slab *s, void *const *x,
                         interp_value *const *init, void *const *out) {
  uint32_t n = fold->n;
  reduce_run r = {ctx, fold, n, init, NULL, NULL, NULL, NULL};
  int64_t lanes = interp_min(REDUCE_LANES, s->outer * s->inner),
          tile = s->inner < REDUCE_LANES ? REDUCE_ROWS * (int64_t)REDUCE_LANES : 0;
  if (s->outer == 0 || s->inner == 0) return 0;
  if (s->steps > REDUCE_LONG) lanes = REDUCE_LANES;
  if (s->outer <= 1 && s->steps <= REDUCE_LONG) tile = 0;
  r.acc = interp_fold_buffers(ctx, n, fold->acc, lanes);
  r.next = interp_fold_buffers(ctx, n, fold->acc, lanes);
  r.tile = interp_fold_buffers(ctx, n, fold->x, tile);
  r.at = interp_fold_list(ctx, n);
  int status = interp_failed(ctx);
  if (r.acc && r.next && r.tile && r.at) {
    bool tree = fold->associative && s->steps > REDUCE_LONG;
    status = tree ? reduce_long(&r, *s, x, out, init) : reduce_slab_run(&r, s, x, out);
  }
  interp_fold_buffers_free(ctx, n, r.acc);
  interp_fold_buffers_free(ctx, n, r.next);
  interp_fold_buffers_free(ctx, n, r.tile);
  interp_scratch_free(ctx, r.at);
  return status;
}

/* How the operand's dims fall into kept and reduced ones. */
typedef struct reduce_dims {
  uint32_t rank, kept_rank;
  int64_t kept[IR_MAX_RANK], kept_strides[IR_MAX_RANK];
  uint32_t reduced_rank;
  int64_t reduced[IR_MAX_RANK], reduced_strides[IR_MAX_RANK];
  bool simple; /* the operand is [outer, steps, inner] as stored */
  reduce_slab slab;
} reduce_dims;

/* dims=[2,3,4] reduced over {1} is the slab outer 2, steps 3, inner 4: no copy. Over {0,2} it is not
 * simple: reduced and kept dimensions alternate. */
static void reduce_dims_make(reduce_dims *s, const interp_value *x, const ir_ints *dims) {
  int64_t strides[IR_MAX_RANK];
  int phase = 0; /* 0 before the reduced dims, 1 in them, 2 behind them */
  memset(s, 0, sizeof *s);
  s->simple = true;
  s->slab = (reduce_slab){1, 1, 1, 0};
  interp_strides(x->rank, x->dims, strides);
  for (uint32_t d = 0; d < x->rank; d++) {
    bool reduced = ir_ints_has(dims, d);
    uint32_t k = reduced ? s->reduced_rank++ : s->kept_rank++;
    (reduced ? s->reduced : s->kept)[k] = x->dims[d];
    (reduced ? s->reduced_strides : s->kept_strides)[k] = strides[d];
    if (x->dims[d] == 1) continue;
    if (reduced && phase == 2) s->simple = false;
    phase = reduced ? (phase == 2 ? 2 : 1) : (phase == 0 ? 0 : 2);
    *(reduced ? &s->slab.steps : phase == 0 ? &s->slab.outer : &s->slab.inner) *= x->dims[d];
  }
  if (!s->simple) {
    s->slab.outer = 1;
    s->slab.steps = interp_count(s->reduced_rank, s->reduced);
    s->slab.inner = interp_count(s->kept_rank, s->kept);
  }
  s->slab.outer_stride = s->slab.steps * s->slab.inner;
}

/* A dense [reduced dims..., kept dims...] copy, for operands whose kept and reduced dims alternate. */
static interp_value *reduce_gathered(interp_ctx *ctx, const reduce_dims *s, interp_value *x) {
  int64_t dims[IR_MAX_RANK], from[IR_MAX_RANK];
  uint32_t k = s->reduced_rank;
  memcpy(dims, s->reduced, k * sizeof *dims);
  memcpy(dims + k, s->kept, s->kept_rank * sizeof *dims);
  memcpy(from, s->reduced_strides, k * sizeof *from);
  memcpy(from + k, s->kept_strides, s->kept_rank * sizeof *from);
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return NULL;
  if (interp_copy_box(ctx, base_dtype_bytes(x->dtype), x->rank, dims, r->data, x->data, 0, from) == 0) return r;
  interp_release(r);
  return NULL;
}

/* results[i] in the fold's accumulator type. */
static int reduce_all(interp_ctx *ctx, interp_fold *f, const reduce_dims *s, interp_value **acc, interp_value **x,
                      interp_value **results, void **from, void **to) {
  for (uint32_t i = 0; i < f->n; i++) {
    if (!s->simple) {
      interp_value *gathered = reduce_gathered(ctx, s, x[i]);
      if (!gathered) return interp_failed(ctx);
      interp_release(x[i]);
      x[i] = gathered;
    }
    results[i] = interp_array(ctx, f->acc[i], s->kept_rank, s->kept);
    if (!results[i]) return interp_failed(ctx);
    from[i] = x[i]->data;
    to[i] = results[i]->data;
  }
  return reduce_run_on(ctx, f, &s->slab, from, acc, to);
}

/* Operands: n arrays, n initial values. */
int interp_eval_reduce(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  uint32_t n = op->n_operands / 2;
  interp_fold f;
  reduce_dims s;
  TRY(interp_need_one_size(ctx, op, operands, 0, n));
  TRY(interp_fold_begin(ctx, op, op->called[0], n, true, &f));
  reduce_dims_make(&s, operands[0], ir_get_ints(op, IR_ATTR_DIMENSIONS));
  void **lists = interp_fold_list(ctx, 5 * n);
  interp_value **acc = (interp_value **)lists, **x = acc + n, **results = acc + 2 * n;
  int status = lists ? interp_fold_operands(ctx, &f, operands + n, operands, acc, x) : interp_failed(ctx);
  if (status == 0) {
    status = reduce_all(ctx, &f, &s, acc, x, results, lists + 3 * n, lists + 4 * n);
    interp_release_all(n, acc);
    interp_release_all(n, x);
    if (status == 0)
      status = interp_finish_all(ctx, op, n, results, out);
    else
      interp_release_all(n, results);
  }
  interp_scratch_free(ctx, lists);
  interp_fold_end(ctx, &f);
  return status;
}
