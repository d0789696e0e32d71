/* Elements that go to computed places, or come from them: boxes of dynamic slices and updates, windows of gathers and
 * scatters. Each element is a value; the array lies in memory. */
#include "../../interp/interp.h"
#include "../index/gather_window.h"
#include "scope.h"

/* One index: an element of a buffer, its highest value in range, and what a step means, in elements of the array. */
typedef struct lwindow_index {
  uint32_t buffer;
  int64_t element, limit, stride;
} lwindow_index;

/* A box in an array, which begins where its indices say. Strides in elements: `from` in the array, `to` in the part. */
typedef struct lwindow {
  loop_make *x;
  loop_scope *s;
  uint32_t array, part; /* buffers */
  uint32_t n_index, n_dims;
  lwindow_index index[IR_MAX_RANK];
  cpu_move_dim dims[IR_MAX_RANK];
  bool copied;                      /* all of it is in memory already, and no values */
  int64_t count, first, part_first; /* elements; where it begins in the two arrays without what the indices say */
} lwindow;

static bool lwindow_is_update(const plan_step *t) {
  return t->op->opcode == IR_OP_DYNAMIC_UPDATE_SLICE;
}

bool cpu_loop_may_move(loop_make *x, loop_scope *s, const plan_step *t) {
  const ir_op *op = t->op, *by = NULL;
  const cpu_windows *w = NULL;
  bool update = lwindow_is_update(t), writes = update || op->opcode == IR_OP_SCATTER;
  int64_t n = op->type->count;
  if (update || op->opcode == IR_OP_DYNAMIC_SLICE) {
    n = update ? ir_operand_type(op, 1)->count : n;
    if (ir_operand_type(op, 0)->rank != op->n_operands - 1u - update) return false;
  } else {
    w = op->opcode == IR_OP_GATHER    ? cpu_gather_windows(x->exe, t)
        : op->opcode == IR_OP_SCATTER ? cpu_scatter_windows(x->exe, t, &by)
                                      : NULL;
    if (!w || w->count == 0) return false;
    if (writes) n = ir_operand_type(op, 2)->count;
  }
  x->n_values += (uint32_t)(n < LOOP_MOVED ? n : LOOP_MOVED);
  s->in_memory[t->in[0]] = 1;
  if (writes) s->in_memory[t->out[0]] = 1;
  return n > 0 && n <= LOOP_MOVED && x->n_values <= LOOP_VALUES;
}

/* --- where --- */

/* The place of the first element, in elements of the array (of one index in its steps), as an s32, and whether all
 * indices are in range; NAT_NONE for an index that is always 0. */
static uint32_t lwindow_at(const lwindow *w, uint32_t *inside) {
  nat_body *b = &w->x->code.body;
  uint32_t sum = NAT_NONE;
  *inside = NAT_NONE;
  for (uint32_t i = 0; i < w->n_index && !w->x->failed; i++) {
    const lwindow_index *d = &w->index[i];
    uint32_t mask = 0, value = cpu_loop_get(w->x, w->s, d->buffer, d->element);
    value = cpu_loop_index(w->x, cpu_loop_type(w->s, d->buffer), value, d->limit, &mask);
    if (w->x->failed || b->failed) break;
    if (d->stride != 1 && w->n_index > 1)
      value = nat_op2(b, NAT_IMUL, 4, value, nat_constant(b, 4, (uint64_t)d->stride));
    sum = sum == NAT_NONE ? value : nat_op2(b, NAT_IADD, 4, sum, value);
    *inside = *inside == NAT_NONE ? mask : nat_mask_op(b, NAT_AND, *inside, mask);
  }
  return sum;
}

/* From an element of the box to the next. */
static void lwindow_next(const lwindow *w, int64_t *at, int64_t *from, int64_t *to) {
  for (uint32_t d = w->n_dims; d-- > 0;) {
    *from += w->dims[d].from, *to += w->dims[d].to;
    if (++at[d] < w->dims[d].n) return;
    *from -= at[d] * w->dims[d].from, *to -= at[d] * w->dims[d].to;
    at[d] = 0;
  }
}

/* Elements that a step of what lwindow_at gives means. */
static int64_t lwindow_step(const lwindow *w, uint32_t place) {
  return place == NAT_NONE ? 0 : w->n_index > 1 ? 1 : w->index[0].stride;
}

/* Where the array lies, which the step changes in place, or in a copy. */
static bool lwindow_memory(const lwindow *w, uint32_t before, loop_memory *m) {
  loop_memory from = cpu_loop_memory_of(w->x, w->s, before);
  int64_t n = w->s->p->buffers[w->array].type->count;
  *m = cpu_loop_memory_of(w->x, w->s, w->array);
  if (n > INT32_MAX) w->x->failed = true;
  if (w->x->failed || loop_same_memory(m, &from)) return !w->x->failed;
  if (n <= LOOP_COPIED || cpu_loop_may_copy(w->s, before, w->s, w->array, n))
    cpu_loop_move_elements(w->x, w->s, before, w->s, w->array, n);
  else
    w->x->failed = true;
  return !w->x->failed;
}

/* --- moving --- */

/* Whether the box is elements one after the other, in both arrays. */
static bool lwindow_is_run(const lwindow *w) {
  int64_t n = 1;
  for (uint32_t d = w->n_dims; d-- > 0;) {
    if (w->dims[d].n == 1) continue;
    if (w->dims[d].from != n || w->dims[d].to != n) return false;
    n *= w->dims[d].n;
  }
  return true;
}

/* The whole box by its bytes, if both sides are memory; `to` is the array that is written. */
static bool lwindow_copies(lwindow *w, bool writes, uint32_t place) {
  loop_make *x = w->x;
  uint32_t from = writes ? w->part : w->array, to = writes ? w->array : w->part;
  if (!cpu_loop_may_copy(w->s, from, w->s, to, w->count) || !lwindow_is_run(w)) return false;
  nat_type t = cpu_loop_type(w->s, w->array);
  nat_place array = cpu_loop_place(x, cpu_loop_memory_of(x, w->s, w->array), t, w->first, lwindow_step(w, place));
  nat_place part = cpu_loop_place(x, cpu_loop_memory_of(x, w->s, w->part), t, w->part_first, 0);
  if (writes)
    cpu_loop_copy(x, part, NAT_NONE, array, place, w->count * t.bytes);
  else
    cpu_loop_copy(x, array, place, part, NAT_NONE, w->count * t.bytes);
  cpu_loop_note(w->s, to);
  return w->copied = true;
}

/* How many elements from there on are lanes of one value, neighbours on both sides. */
static unsigned lwindow_lanes(const lwindow *w, int64_t done) {
  nat_type t = cpu_loop_type(w->s, w->array);
  unsigned lanes = t.width >= 4 && t.width == t.bytes && t.kind != NAT_PRED ? 16 / t.width : 1;
  return lanes <= w->count - done && lwindow_is_run(w) ? lanes : 1;
}

/* Element `from` of the array, or lanes from it on. */
static nat_place lwindow_place(const lwindow *w, loop_memory m, int64_t from, uint32_t place, unsigned lanes) {
  nat_place p = cpu_loop_place(w->x, m, cpu_loop_type(w->s, w->array), from, lwindow_step(w, place));
  if (lanes > 1) p.width = 16;
  return p;
}

static void lwindow_skip(const lwindow *w, unsigned n, int64_t *at, int64_t *from, int64_t *to) {
  while (n-- > 0) lwindow_next(w, at, from, to);
}

static void lwindow_read(lwindow *w, uint32_t *values) {
  loop_make *x = w->x;
  loop_memory m = cpu_loop_memory_of(x, w->s, w->array);
  int64_t at[IR_MAX_RANK] = {0}, from = w->first, to = w->part_first;
  uint32_t inside, place = lwindow_at(w, &inside);
  if (w->s->p->buffers[w->array].type->count > INT32_MAX) x->failed = true;
  if (x->failed || lwindow_copies(w, false, place)) return;
  for (int64_t i = 0; i < w->count && !x->failed && !x->code.body.failed;) {
    unsigned lanes = lwindow_lanes(w, i);
    uint32_t all = cpu_loop_load(x, w->s, w->array, lwindow_place(w, m, from, place, lanes), place);
    for (unsigned k = 0; k < lanes && !x->code.body.failed; k++)
      values[to + k] = lanes > 1 ? nat_loop_lane(&x->code, all, k) : all;
    i += lanes;
    lwindow_skip(w, lanes, at, &from, &to);
  }
}

/* What an element becomes: of updates that don't fit, what it was. by: SCALAR_NONE: the update. */
static uint32_t lwindow_updated(const lwindow *w, scalar_code by, nat_place p, uint32_t place, uint32_t inside,
                                uint32_t update) {
  nat_body *b = &w->x->code.body;
  nat_type t = cpu_loop_type(w->s, w->array);
  uint32_t old = by || inside != NAT_NONE ? cpu_loop_load(w->x, w->s, w->array, p, place) : 0;
  uint32_t value = by && !b->failed ? nat_combine(b, by, t, old, update) : update;
  if (inside != NAT_NONE) value = nat_select(b, inside, value, old);
  return nat_pack(b, value, t);
}

/* The updates from number `to` on: lanes of one value, where that takes few instructions. */
static uint32_t lwindow_update(const lwindow *w, int64_t to, unsigned *lanes) {
  uint32_t updates[4];
  for (unsigned k = 0; k < *lanes; k++) updates[k] = cpu_loop_get(w->x, w->s, w->part, to + k);
  if (w->x->failed || *lanes == 1) return updates[0];
  if (nat_loop_pack_cost(&w->x->code, updates, *lanes) > 1) *lanes = 1;
  return nat_loop_pack(&w->x->code, updates, *lanes);
}

/* masked: a window that does not fit changes nothing; else it is moved until it fits. */
static void lwindow_write(lwindow *w, uint32_t before, scalar_code by, bool masked) {
  loop_make *x = w->x;
  loop_memory m;
  int64_t at[IR_MAX_RANK] = {0}, from = w->first, to = w->part_first;
  uint32_t inside, place = lwindow_at(w, &inside);
  if (!masked) inside = NAT_NONE;
  if (!lwindow_memory(w, before, &m) || (!by && !masked && lwindow_copies(w, true, place))) return;
  bool settled = nat_loop_settle(&x->code);
  bool first = settled && inside != NAT_NONE && x->code.body.values[inside].lanes != NAT_LANES_SAME;
  for (int64_t i = 0; i < w->count && !x->failed;) {
    unsigned lanes = (by && !cpu_loop_combines_lanes(by)) || first ? 1 : lwindow_lanes(w, i);
    uint32_t update = lwindow_update(w, to, &lanes);
    nat_place p = lwindow_place(w, m, from, place, lanes);
    if (x->failed || x->code.body.failed) return;
    nat_loop_put(&x->code, p, place, lwindow_updated(w, by, p, place, inside, update));
    i += lanes;
    lwindow_skip(w, lanes, at, &from, &to);
  }
  cpu_loop_note(w->s, w->array);
}

/* --- ops --- */

static void lwindow_box(lwindow *w, const ir_type *whole, const ir_type *part) {
  int64_t strides[2][IR_MAX_RANK];
  cpu_move_strides(whole, strides[0]);
  cpu_move_strides(part, strides[1]);
  w->count = part->count;
  w->n_dims = whole->rank;
  for (uint32_t d = 0; d < whole->rank; d++) w->dims[d] = (cpu_move_dim){part->dims[d], strides[1][d], strides[0][d]};
}

/* A dynamic slice, or an update. */
static void lwindow_slice(lwindow *w, const plan_step *t, uint32_t *values) {
  const ir_type *whole = ir_operand_type(t->op, 0);
  bool update = lwindow_is_update(t);
  lwindow_box(w, whole, update ? ir_operand_type(t->op, 1) : t->op->type);
  for (uint32_t d = 0; d < whole->rank; d++)
    if (w->dims[d].n < whole->dims[d])
      w->index[w->n_index++] =
          (lwindow_index){t->in[1 + update + d], 0, whole->dims[d] - w->dims[d].n, w->dims[d].from};
  w->array = update ? t->out[0] : t->in[0];
  if (update)
    lwindow_write(w, t->in[0], SCALAR_NONE, false);
  else
    lwindow_read(w, values);
}

/* Windows one after the other, as the indices have them. */
static void lwindow_each(lwindow *w, const plan_step *t, const cpu_windows *of, scalar_code by, uint32_t *values) {
  bool writes = t->op->opcode == IR_OP_SCATTER;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)t->op->type->dtype);
  int64_t index_bytes = (int64_t)base_dtype_bytes((base_dtype)of->dtype);
  cpu_window_walk walk;
  w->array = writes ? t->out[0] : t->in[0];
  w->n_dims = of->n_dims, w->n_index = of->n_index, w->count = 1;
  for (uint32_t d = 0; d < of->n_dims; d++) {
    w->dims[d] = (cpu_move_dim){of->dims[d].n, of->dims[d].to / bytes, of->dims[d].from / bytes};
    w->count *= of->dims[d].n;
  }
  cpu_window_walk_begin(&walk, of, 0);
  for (int64_t i = 0; i < of->count && !w->x->failed; i++) {
    w->first = walk.big / bytes, w->part_first = walk.small / bytes;
    for (uint32_t j = 0; j < of->n_index; j++)
      w->index[j] = (lwindow_index){t->in[1], (walk.index + j * of->component) / index_bytes, of->index[j].limit,
                                    of->index[j].stride / bytes};
    if (writes)
      lwindow_write(w, i ? t->out[0] : t->in[0], by, true);
    else
      lwindow_read(w, values);
    if (i + 1 < of->count) cpu_window_walk_next(&walk, 1);
  }
}

void cpu_loop_move(loop_make *x, loop_scope *s, const plan_step *t) {
  const ir_op *by = NULL;
  uint32_t values[LOOP_MOVED] = {0};
  assert(t->op->type->count <= LOOP_MOVED || s->in_memory[t->out[0]]);
  bool writes = t->op->opcode == IR_OP_SCATTER || lwindow_is_update(t);
  lwindow w = {.x = x, .s = s, .part = !writes ? t->out[0] : t->in[lwindow_is_update(t) ? 1 : 2]};
  if (!cpu_loop_type(s, t->in[0]).width) x->failed = true;
  if (x->failed) return;
  if (t->op->opcode == IR_OP_GATHER)
    lwindow_each(&w, t, cpu_gather_windows(x->exe, t), SCALAR_NONE, values);
  else if (t->op->opcode == IR_OP_SCATTER) {
    const cpu_windows *of = cpu_scatter_windows(x->exe, t, &by);
    lwindow_each(&w, t, of, by ? scalar_code_of(by->opcode) : SCALAR_NONE, values);
  } else
    lwindow_slice(&w, t, values);
  for (int64_t i = 0; !writes && !w.copied && i < t->op->type->count; i++)
    cpu_loop_put_element(x, s, t->out[0], i, values[i]);
}
