/* Window geometry. All quantities are sizes and positions of verified ops, so they stay well within 64 bits.
 *
 * A window dimension, as HLO prints it (size=3 stride=2 pad=1_1 lhs_dilate=1 rhs_dilate=2), against an
 * array dimension of n elements. Output position o and window element k meet position o * stride + k *
 * window_dilation - padding_low of the dilated base, which holds an element where it is a multiple of
 * base_dilation. Ops over windows ask for one k at a time: which o meet an element with it? That is an
 * arithmetic progression, found without looking at single positions. */
#include "../../base/number/gcd.h"
#include "placement.h"

#include "../../ir/check/check.h"

/* Towards minus infinity, unlike C's division. */
static int64_t floor_div(int64_t a, int64_t b) {
  assert(b > 0);
  return a / b - (a % b < 0);
}

static int64_t ceil_div(int64_t a, int64_t b) {
  assert(b > 0);
  return a / b + (a % b > 0);
}

int64_t interp_window_count(const ir_window_dim *w, int64_t n) {
  if (w->size == IR_UNBOUNDED) return -1;
  int64_t dilated = n > 0 ? (n - 1) * w->base_dilation + 1 : 0;
  int64_t padded = dilated + w->padding_low + w->padding_high, window = (w->size - 1) * w->window_dilation + 1;
  assert(w->size > 0 && w->stride > 0);
  return padded < window ? 0 : (padded - window) / w->stride + 1;
}

/* For all dimensions, with the verifier's checks of overflow. The verifier, as StableHLO's, lets pass a window of
 * unknown size, which only a kernel's size could tell. */
int interp_window_counts(interp_ctx *ctx, const ir_op *op, const ir_window *window, const int64_t *sizes,
                         int64_t *counts) {
  for (uint32_t d = 0; d < window->n; d++) {
    if (window->v[d].size == IR_UNBOUNDED)
      return interp_fail(ctx, op, XLAC_E_EVAL, "the size of the window along dimension %u is not known", d);
    int status = ir_infer_window_size(&window->v[d], sizes[d], &counts[d], ctx->err);
    if (status) return interp_place_error(ctx, op, status);
  }
  return 0;
}

/* The element at position p of the padded base, or -1 for padding and holes. */
int64_t interp_window_element(const ir_window_dim *w, int64_t n, int64_t p) {
  p -= w->padding_low;
  if (w->base_dilation == 1) return p >= 0 && p < n ? p : -1; /* divisions are what this costs */
  if (p < 0 || p % w->base_dilation != 0) return -1;
  p /= w->base_dilation;
  return p < n ? p : -1;
}

/* Output positions in [low, high) that meet an element with window element k: first, first + step, ...;
 * and the elements that they meet: from, from + from_step, ... With both dilation and stride, only every
 * base_dilation / gcd-th position meets one. */
interp_placement interp_window_placement(const ir_window_dim *w, int64_t n, int64_t k, int64_t low, int64_t high) {
  interp_placement r = {.first = 0, .count = 0, .step = 1, .from = 0, .from_step = w->stride};
  int64_t shift = k * w->window_dilation - w->padding_low; /* position = o * stride + shift, before base dilation */
  if (n == 0) return r;
  low = interp_max(low, ceil_div(-shift, w->stride));
  high = interp_min(high, floor_div((n - 1) * w->base_dilation - shift, w->stride) + 1);
  if (w->base_dilation > 1) {
    int64_t common = base_gcd(w->stride, w->base_dilation);
    if (shift % common != 0) return r;
    r.step = w->base_dilation / common;
    r.from_step = w->stride / common;
    while (low < high && (low * w->stride + shift) % w->base_dilation != 0) low++;
  }
  if (low >= high) return r;
  r.first = low;
  r.count = 1 + (high - 1 - low) / r.step;
  r.from = (low * w->stride + shift) / w->base_dilation;
  assert(r.from >= 0 && r.from + (r.count - 1) * r.from_step < n);
  return r;
}

/* The window elements that meet any element at all: the others would find empty boxes. */
void interp_window_range(const ir_window_dim *w, int64_t n, int64_t count, int64_t *low, int64_t *high) {
  int64_t last = n > 0 ? (n - 1) * w->base_dilation : -1;
  *low = count > 0 ? interp_max(0, ceil_div(w->padding_low - (count - 1) * w->stride, w->window_dilation)) : 0;
  *high = last < 0 || count == 0 ? 0 : interp_min(w->size, floor_div(last + w->padding_low, w->window_dilation) + 1);
}

/* [low, high): the part of the output that is of interest. */
void interp_window_walk_begin(interp_window_walk *w, const ir_window *window, const int64_t *n, const int64_t *counts,
                              const int64_t *low, const int64_t *high) {
  w->rank = window->n;
  w->dims = window->v;
  w->n = n;
  w->started = false;
  for (uint32_t d = 0; d < w->rank; d++) {
    w->low[d] = low[d];
    w->high[d] = high[d];
    interp_window_range(&window->v[d], n[d], counts[d], &w->begin[d], &w->end[d]);
    w->k[d] = w->begin[d];
  }
}

/* The box of the present window element; false when it is empty. */
static bool walk_box(interp_window_walk *w) {
  int64_t part[IR_MAX_RANK], own[IR_MAX_RANK], extents[IR_MAX_RANK];
  extents[0] = 0; /* compilers that don't know interp_strides of rank 0 */
  for (uint32_t d = 0; d < w->rank; d++) extents[d] = w->high[d] - w->low[d];
  interp_strides(w->rank, extents, part);
  interp_strides(w->rank, w->n, own);
  w->lanes = 1;
  w->part_at = w->operand_at = 0;
  w->whole = true;
  for (uint32_t d = 0; d < w->rank; d++) {
    interp_placement p = interp_window_placement(&w->dims[d], w->n[d], w->k[d], w->low[d], w->high[d]);
    if (p.count == 0) return false;
    w->count[d] = p.count;
    w->lanes *= p.count;
    w->part_at += (p.first - w->low[d]) * part[d];
    w->part_strides[d] = p.step * part[d];
    w->operand_at += p.from * own[d];
    w->operand_strides[d] = p.from_step * own[d];
    w->whole &= p.count == extents[d];
  }
  return true;
}

/* Window elements in row-major order, those with empty boxes left out. False: the walk is over. */
bool interp_window_walk_next(interp_window_walk *w) {
  for (;;) {
    if (!w->started) {
      w->started = true;
      for (uint32_t d = 0; d < w->rank; d++)
        if (w->begin[d] >= w->end[d]) return false;
    } else {
      uint32_t d = w->rank;
      for (; d > 0; d--) {
        if (++w->k[d - 1] < w->end[d - 1]) break;
        w->k[d - 1] = w->begin[d - 1];
      }
      if (d == 0) return false;
    }
    if (walk_box(w)) return true;
  }
}

/* Where the part begins and how many elements it has. */
static void parts_measure(interp_parts *p) {
  int64_t strides[IR_MAX_RANK];
  interp_strides(p->rank, p->dims, strides);
  p->at = 0;
  p->lanes = 1;
  for (uint32_t d = 0; d < p->rank; d++) {
    p->at += p->low[d] * strides[d];
    p->lanes *= p->high[d] - p->low[d];
  }
}

/* Parts are whole inner dimensions and a piece of one more, so that each is dense and has about `lanes`
 * elements. False: there is nothing. */
bool interp_parts_begin(interp_parts *p, uint32_t rank, const int64_t *dims, int64_t lanes) {
  int64_t inner = 1;
  p->rank = rank;
  p->dims = dims;
  p->split = rank;
  p->piece = 1;
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] == 0) return false;
  while (p->split > 0 && inner < lanes) {
    int64_t n = dims[--p->split];
    p->piece = interp_min(n, interp_max(1, lanes / inner));
    inner *= n;
  }
  for (uint32_t d = 0; d < rank; d++) {
    p->low[d] = 0;
    p->high[d] = d < p->split ? 1 : d == p->split ? p->piece : dims[d];
  }
  parts_measure(p);
  return true;
}

/* In row-major order; together they cover the output once. */
bool interp_parts_next(interp_parts *p) {
  for (uint32_t d = interp_min(p->split + 1, p->rank); d > 0; d--) {
    uint32_t i = d - 1;
    int64_t piece = i == p->split ? p->piece : 1;
    p->low[i] += piece;
    if (p->low[i] < p->dims[i]) {
      p->high[i] = interp_min(p->low[i] + piece, p->dims[i]);
      parts_measure(p);
      return true;
    }
    p->low[i] = 0;
    p->high[i] = interp_min(piece, p->dims[i]);
  }
  return false;
}
