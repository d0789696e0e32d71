/* Kernels of few iterations in a loop's code. Each iteration is code of its own, whose values are the same in all
 * lanes; or where that takes fewer instructions, some iterations are lanes. */
#include "../../passes/op_cost.h"
#include "scope.h"

enum { LKERNEL_LANES = 4 /* at most, of 16 bytes */ };

/* Iterations that are lanes of one. */
typedef struct lkernel {
  loop_make *x;
  loop_scope *s;
  const plan_step *t;
  nat_lower_run lower;
  unsigned n, lane;                              /* how many there are; the present one */
  int64_t index[LKERNEL_LANES][KERNEL_MAX_RANK]; /* of each of them */
} lkernel;

static int64_t lkernel_at(const lkernel *w, const kernel_index *index, unsigned lane) {
  int64_t at = index->offset;
  for (uint32_t d = 0; d < w->t->kernel->rank; d++) at += index->strides[d] * w->index[lane][d];
  return at;
}

static bool lkernel_is_in(const lkernel *w, const kernel_box *box, unsigned lane) {
  for (uint32_t d = 0; d < w->t->kernel->rank; d++)
    if (w->index[lane][d] < box->from[d] || w->index[lane][d] >= box->to[d]) return false;
  return true;
}

static uint32_t lkernel_number(lkernel *w, const kernel_value *v, int64_t number) {
  char element[16] = {0};
  kernel_value constant = {.kind = KERNEL_CONSTANT, .dtype = v->dtype, .data = element};
  base_convert((base_dtype)v->dtype, element, XLAC_S64, &number, 1);
  return nat_lower_constant(&w->lower, &constant);
}

/* From a place that is computed: elements by one index, or the sum of several. */
static uint32_t lkernel_computed_load(lkernel *w, const kernel_value *v, unsigned lane) {
  loop_make *x = w->x;
  nat_body *b = &x->code.body;
  uint32_t buffer = w->t->in[v->buffer], sum = NAT_NONE;
  int64_t stride = v->n_in == 1 ? v->bases[0].stride : 1;
  for (uint32_t j = 0; j < v->n_in && !x->failed; j++) {
    nat_type t = nat_type_of((base_dtype)w->t->kernel->values[v->in[j]].dtype);
    uint32_t part = cpu_loop_index(x, t, w->lower.values[v->in[j]], v->bases[j].last, NULL);
    if (v->n_in > 1) part = nat_op2(b, NAT_IMUL, 4, part, nat_constant(b, 4, (uint64_t)v->bases[j].stride));
    sum = sum == NAT_NONE ? part : nat_op2(b, NAT_IADD, 4, sum, part);
  }
  if (x->failed || b->failed || w->s->p->buffers[buffer].type->count > INT32_MAX) return x->failed = true, 0;
  loop_memory m = cpu_loop_memory_of(x, w->s, buffer);
  nat_place p = cpu_loop_place(x, m, cpu_loop_type(w->s, buffer), lkernel_at(w, v->index, lane), stride);
  return x->failed ? 0 : cpu_loop_load(x, w->s, buffer, p, sum);
}

/* What an iteration has of a value that is not an op. */
static uint32_t lkernel_element(lkernel *w, const kernel_value *v, unsigned lane) {
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      if (v->box && !lkernel_is_in(w, v->box, lane)) return lkernel_number(w, v, 0);
      if (v->n_in) return lkernel_computed_load(w, v, lane);
      return cpu_loop_get(w->x, w->s, w->t->in[v->buffer], lkernel_at(w, v->index, lane));
    case KERNEL_COUNT_UP:
      return lkernel_number(w, v, lkernel_at(w, v->index, lane));
    case KERNEL_PICK: {
      uint32_t from = w->lower.values[v->in[lkernel_is_in(w, v->pick, lane) ? 0 : 1]];
      return w->n > 1 ? nat_loop_lane(&w->x->code, from, lane) : from;
    }
    default:
      return nat_lower_constant(&w->lower, v);
  }
}

/* --- lanes --- */

/* Neighbours in memory: one load; NAT_NONE where they are not. */
static uint32_t lkernel_neighbours(lkernel *w, const kernel_value *v) {
  uint32_t buffer = w->t->in[v->buffer];
  const plan_buffer *b = &w->s->p->buffers[buffer];
  nat_type t = cpu_loop_type(w->s, buffer);
  int64_t first = lkernel_at(w, v->index, 0);
  if (!w->s->in_memory[buffer] || b->place == PLAN_CONSTANT || v->box || w->n * t.width != 16) return NAT_NONE;
  for (unsigned i = 1; i < w->n; i++)
    if (lkernel_at(w, v->index, i) != first + i) return NAT_NONE;
  nat_place p = cpu_loop_place(w->x, cpu_loop_memory_of(w->x, w->s, buffer), t, first, 0);
  p.width = 16;
  return w->x->failed ? 0 : cpu_loop_load(w->x, w->s, buffer, p, NAT_NONE);
}

/* The elements of all lanes. */
static void lkernel_elements(lkernel *w, const kernel_value *v, uint32_t *values) {
  for (unsigned i = 0; i < w->n; i++) values[i] = w->x->failed ? 0 : lkernel_element(w, v, i);
}

static uint32_t lkernel_value(lkernel *w, uint32_t i) {
  const kernel_value *v = &w->t->kernel->values[i];
  uint32_t values[LKERNEL_LANES], neighbours = NAT_NONE;
  if (v->kind == KERNEL_OP) {
    w->x->code.body.alike = w->n == 1;
    uint32_t value = nat_lower_op(&w->lower, v);
    w->x->code.body.alike = false;
    return w->n > 1 && nat_loop_settle(&w->x->code) ? nat_loop_spread(&w->x->code, value) : value;
  }
  if (v->kind == KERNEL_CONSTANT || w->n == 1) return lkernel_element(w, v, 0);
  if (v->kind == KERNEL_LOAD) neighbours = lkernel_neighbours(w, v);
  if (neighbours != NAT_NONE) return neighbours;
  lkernel_elements(w, v, values);
  return w->x->failed || w->x->code.body.failed ? 0 : nat_loop_pack(&w->x->code, values, w->n);
}

/* How many iterations lanes can be; 1 where a value has no such form. */
static unsigned lkernel_lanes(const kernel *k) {
  uint32_t widest = 4;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    nat_type t = nat_type_of((base_dtype)v->dtype);
    bool truth = t.kind == NAT_PRED && (v->kind == KERNEL_OP || v->kind == KERNEL_CONSTANT);
    if (!truth && (t.kind == NAT_PRED || t.width < 4 || t.bytes != t.width || (v->kind == KERNEL_LOAD && v->n_in)))
      return 1;
    uint32_t inside = v->kind == KERNEL_OP ? nat_op_width(k, v) : 4;
    if (t.width > widest) widest = t.width;
    if (inside > widest) widest = inside;
  }
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->values[k->stores[i].value].dtype == XLAC_PRED) return 1;
  return 16 / widest;
}

/* Whether a step of lanes reads the leaf, element after element, or writes it. */
static bool lkernel_uses(const plan_program *p, const plan_step *t, uint32_t leaf, bool writes) {
  const kernel *k = t->kernel;
  if (t->kind != PLAN_KERNEL || k->rank == 0 || k->count < 2 || lkernel_lanes(k) == 1) return false;
  for (uint32_t i = 0; i < (writes ? k->n_stores : k->n_values); i++) {
    const kernel_value *v = &k->values[i];
    if (!writes && (v->kind != KERNEL_LOAD || v->n_in || v->box || v->index->strides[k->rank - 1] != 1)) continue;
    const plan_buffer *b = &p->buffers[writes ? t->out[k->stores[i].buffer] : t->in[v->buffer]];
    bool stays = b->place == PLAN_ARGUMENT && (!writes || p->stays[leaf]);
    if (b->number == leaf && (stays || (writes && b->place == PLAN_RESULT))) return true;
  }
  return false;
}

unsigned cpu_loop_carried_lanes(const loop_scope *body, uint32_t leaf) {
  const plan_program *p = body->p;
  nat_type t = cpu_loop_type(body, leaf);
  bool reads = false, writes = false;
  if (body->p->buffers[leaf].type->count < 2 || t.width < 4 || t.width != t.bytes || t.kind == NAT_PRED) return 1;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    reads = reads || lkernel_uses(p, &p->steps[i], leaf, false);
    writes = writes || lkernel_uses(p, &p->steps[i], leaf, true);
  }
  return reads && writes ? 16 / t.width : 1;
}

/* Whether lanes take fewer instructions than iterations one by one, by the first of them. */
static bool lkernel_is_worth(lkernel *w) {
  const kernel *k = w->t->kernel;
  double gain = 0;
  uint32_t values[LKERNEL_LANES];
  for (uint32_t i = 0; i < k->n_values && !w->x->failed && !w->x->code.body.failed; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_OP) gain += (w->n - 1) * opt_op_weight(scalar_opcode((scalar_code)v->op.code));
    if (v->kind == KERNEL_PICK) gain -= w->n;
    if (v->kind != KERNEL_LOAD || lkernel_neighbours(w, v) != NAT_NONE) continue;
    lkernel_elements(w, v, values);
    if (!w->x->failed) gain -= nat_loop_pack_cost(&w->x->code, values, w->n);
  }
  return gain > w->n * k->n_stores / 2.0;
}

/* --- all of it --- */

/* What a store of a kernel combines. */
static void lkernel_combined(lkernel *w, uint32_t store, const uint32_t *stored) {
  const kernel *k = w->t->kernel;
  uint32_t out[LOOP_COUNT];
  cpu_loop_combine(&w->x->code, k, store, stored, w->lower.values[k->stores[store].init], out);
  for (int64_t i = 0; i < k->reduction->outer * k->reduction->inner; i++)
    cpu_loop_put_element(w->x, w->s, w->t->out[k->stores[store].buffer], i, out[i]);
}

static void lkernel_next_index(const kernel *k, int64_t *index) {
  for (uint32_t d = k->rank; d-- > 0;) {
    if (++index[d] < k->extents[d]) return;
    index[d] = 0;
  }
}

/* The next n iterations, which begin at `next`. */
static void lkernel_turn(lkernel *w, int64_t *next, unsigned n) {
  w->n = n;
  for (unsigned i = 0; i < n; i++) {
    memcpy(w->index[i], next, sizeof w->index[i]);
    lkernel_next_index(w->t->kernel, next);
  }
}

/* All values of the present iterations; what they store, of each. */
static void lkernel_iterations(lkernel *w, int64_t i, uint32_t *stored, int64_t *at) {
  const kernel *k = w->t->kernel;
  for (uint32_t j = 0; j < k->n_values && !w->x->failed && !w->x->code.body.failed; j++)
    w->lower.values[j] = lkernel_value(w, j);
  if (w->x->code.body.failed) w->x->failed = true;
  for (uint32_t j = 0; j < k->n_stores && !w->x->failed; j++)
    for (unsigned lane = 0; lane < w->n; lane++) {
      uint32_t value = w->lower.values[k->stores[j].value];
      stored[(i + lane) * k->n_stores + j] = w->n > 1 ? nat_loop_lane(&w->x->code, value, lane) : value;
      at[(i + lane) * k->n_stores + j] = lkernel_at(w, &k->stores[j].index, lane);
    }
}

/* Lanes of one value that are neighbours in memory, from iteration i on: how many are stored at once. */
static unsigned lkernel_put_lanes(const lkernel *w, uint32_t j, int64_t i, const uint32_t *stored, const int64_t *at) {
  const kernel *k = w->t->kernel;
  uint32_t buffer = w->t->out[k->stores[j].buffer], values[LKERNEL_LANES];
  nat_type t = cpu_loop_type(w->s, buffer);
  if (!w->s->in_memory[buffer] || t.width < 4 || t.bytes != t.width || i + 16 / t.width > k->count) return 0;
  for (unsigned lane = 0; lane < 16u / t.width; lane++) {
    values[lane] = stored[(i + lane) * k->n_stores + j];
    if (at[(i + lane) * k->n_stores + j] != at[i * k->n_stores + j] + lane) return 0;
  }
  if (nat_loop_pack_cost(&w->x->code, values, 16 / t.width) > 0) return 0;
  nat_place p = cpu_loop_place(w->x, cpu_loop_memory_of(w->x, w->s, buffer), t, at[i * k->n_stores + j], 0);
  p.width = 16;
  if (!w->x->failed) nat_loop_put(&w->x->code, p, NAT_NONE, nat_loop_pack(&w->x->code, values, 16 / t.width));
  cpu_loop_note(w->s, buffer);
  return 16 / t.width;
}

/* A store of all iterations. */
static void lkernel_put(const lkernel *w, uint32_t j, const uint32_t *stored, const int64_t *at) {
  const kernel *k = w->t->kernel;
  for (int64_t i = 0, n = 0; i < k->count && !w->x->failed; i += n ? n : 1) {
    n = lkernel_put_lanes(w, j, i, stored, at);
    if (!n)
      cpu_loop_put_element(w->x, w->s, w->t->out[k->stores[j].buffer], at[i * k->n_stores + j],
                           stored[i * k->n_stores + j]);
  }
}

/* All iterations, then their stores: an output may be the memory of an input. */
void cpu_loop_kernel(loop_make *x, loop_scope *s, const plan_step *t) {
  const kernel *k = t->kernel;
  size_t n = (size_t)k->n_stores * (size_t)k->count;
  lkernel w = {.x = x, .s = s, .t = t, .lower = {.b = &x->code.body}};
  int64_t next[KERNEL_MAX_RANK] = {0};
  unsigned lanes = lkernel_lanes(k);
  uint32_t *stored = BASE_ARRAY(x->arena, uint32_t, n + 1);
  int64_t *at = BASE_ARRAY(x->arena, int64_t, n + 1);
  w.lower.values = BASE_ARRAY(x->arena, uint32_t, k->n_values + 1);
  x->code.body.k = k;
  if (!stored || !at || !w.lower.values) x->failed = true;
  if (lanes > k->count) lanes = (unsigned)k->count;
  if (lanes > 1) {
    lkernel_turn(&w, next, lanes);
    if (!lkernel_is_worth(&w)) lanes = 1;
    memset(next, 0, sizeof next);
  }
  for (int64_t i = 0; i < k->count && !x->failed; i += w.n) {
    lkernel_turn(&w, next, k->count - i < lanes ? (unsigned)(k->count - i) : lanes);
    lkernel_iterations(&w, i, stored, at);
  }
  for (uint32_t j = 0; j < k->n_stores && !x->failed; j++) {
    if (k->stores[j].by)
      lkernel_combined(&w, j, stored);
    else
      lkernel_put(&w, j, stored, at);
  }
}
