/* Moves that are more than an index: pads and concatenations are picks between values that are there in boxes of
 * iterations, and dynamic slices load from places that other values say.
 *
 * pad(p, 0) of f32[8] by 2_2 becomes: load in0[-2 + 1*i0] where 2 <= i0 < 10, and pick(that, 0) if 2 <= i0 < 10. */
#include "lower_inside.h"

/* From what is in memory, at a place that is computed: dimension d of the slice begins at the value of operand d + 1,
 * clamped to 0..last. Where the slice is as long as the array it can only begin at 0. */
int lower_dynamic_slice(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  assert(op->opcode == IR_OP_DYNAMIC_SLICE);
  const ir_op *from = ir_operand(op, 0);
  kernel_value v = {
      .kind = KERNEL_LOAD, .dtype = op->type->dtype, .index = lower_index(x, from->type, map), .box = x->box};
  kernel_base *bases = BASE_ARRAY(x->arena, kernel_base, 3);
  const lower_map *scalar = lower_new_map(x, 0);
  int64_t stride = 1;
  if (!v.index || !bases || !scalar) return lower_no_memory(x);
  TRY(lower_number_input(x, from, -1, &v.buffer));
  for (uint32_t d = from->type->rank; d-- > 0; stride *= from->type->dims[d]) {
    int64_t last = from->type->dims[d] - op->type->dims[d];
    if (last == 0) continue;
    assert(v.n_in < 3);
    bases[v.n_in] = (kernel_base){stride, last};
    TRY(lower_value(x, ir_operand(op, d + 1), scalar, &v.in[v.n_in++]));
  }
  v.bases = bases;
  return lower_add(x, op, map, &v, value);
}

/* All that is wanted, to be narrowed. NULL when out of memory. */
static kernel_box *lower_new_box(lower_run *x) {
  kernel_box *b = BASE_NEW(x->arena, kernel_box);
  if (!b || !BASE_VEC_PUSH(x->alloc, &x->boxes, b)) return NULL;
  for (uint32_t k = 0; k < x->rank; k++) {
    b->from[k] = x->box ? x->box->from[k] : 0;
    b->to[k] = x->box ? x->box->to[k] : x->k->extents[k];
  }
  return b;
}

/* Towards minus infinity; b > 0. */
static int64_t lower_floor(int64_t a, int64_t b) {
  assert(b > 0);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Whether one iteration of the kernel's dimension k is wanted. */
static bool lower_is_one(const lower_run *x, uint32_t k) {
  return (x->box ? x->box->to[k] - x->box->from[k] : x->k->extents[k]) == 1;
}

/* Narrows b to the iterations for which dimension d of the map is 0..n-1. At most one dimension of the kernel moves it,
 * beside those of which one iteration is wanted: parts of length 1 that are reshaped. false where none is left. */
static bool lower_narrow(const lower_run *x, const lower_map *m, uint32_t d, int64_t n, kernel_box *b) {
  int64_t off = m->offset[d];
  assert(d < m->n);
  for (uint32_t k = 0; k < x->rank; k++)
    if (lower_is_one(x, k)) off += m->coef[d * x->rank + k] * (x->box ? x->box->from[k] : 0);
  for (uint32_t k = 0; k < x->rank; k++) {
    int64_t c = m->coef[d * x->rank + k];
    if (c == 0 || lower_is_one(x, k)) continue;
    int64_t low = c > 0 ? -off : off - (n - 1), high = c > 0 ? n - 1 - off : off, step = c > 0 ? c : -c;
    int64_t from = -lower_floor(-low, step), to = lower_floor(high, step) + 1;
    if (b->from[k] < from) b->from[k] = from;
    if (b->to[k] > to) b->to[k] = to;
    return b->from[k] < b->to[k];
  }
  return off >= 0 && off < n;
}

/* The wanted iterations for which the map is in an array of type t; *some: there are any, *all: they are all. */
static int lower_inside_of(lower_run *x, const ir_type *t, const lower_map *m, kernel_box **out, bool *some,
                           bool *all) {
  assert(out && some && all);
  kernel_box *b = *out = lower_new_box(x);
  if (!b) return lower_no_memory(x);
  *some = t->count > 0;
  for (uint32_t d = 0; *some && d < t->rank; d++) *some = lower_narrow(x, m, d, t->dims[d], b);
  *all = *some && kernel_box_has(x->k, b, x->box);
  if (*some) return 0;
  x->boxes.n--; /* it is none */
  return 0;
}

/* `operand` where it is wanted in b. Boxes nest: the wanted iterations are put back afterwards. */
static int lower_in_box(lower_run *x, const ir_op *operand, const lower_map *m, const kernel_box *b, uint32_t *value) {
  const kernel_box *outside = x->box;
  x->box = b;
  int status = lower_value(x, operand, m, value);
  x->box = outside;
  return status;
}

/* `inside` in b, `outside` elsewhere in `domain` (NULL: in all that is wanted). */
static int lower_pick(lower_run *x, const ir_op *op, const kernel_box *b, uint32_t inside, uint32_t outside,
                      const kernel_box *domain, uint32_t *value) {
  kernel_value v = {.kind = KERNEL_PICK, .dtype = op->type->dtype, .n_in = 2, .in = {inside, outside}, .pick = b};
  bool all = !x->values.items[inside].box && !x->values.items[outside].box;
  v.box = all ? NULL : domain ? domain : x->box;
  *value = x->values.n;
  return BASE_VEC_PUSH(x->alloc, &x->values, v) ? 0 : lower_no_memory(x);
}

/* Three cases: wanted iterations are all inside, all outside, or mixed, which takes a pick. */
int lower_pad(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  assert(op->opcode == IR_OP_PAD);
  const ir_op *from = ir_operand(op, 0);
  const ir_padding *padding = ir_attr_find(op, IR_ATTR_PADDING)->v.padding;
  lower_map *m = lower_new_map(x, from->type->rank), *scalar = lower_new_map(x, 0);
  kernel_box *b = NULL;
  uint32_t inside = 0, outside = 0;
  bool some = false, all = false;
  if (!m || !scalar) return lower_no_memory(x);
  for (uint32_t d = 0; d < m->n; d++) lower_set(x, m, d, map, d, -padding->v[d].low, 1);
  TRY(lower_inside_of(x, from->type, m, &b, &some, &all));
  if (some) TRY(lower_in_box(x, from, m, all ? x->box : b, &inside));
  if (!all) TRY(lower_value(x, ir_operand(op, 1), scalar, &outside));
  *value = all ? inside : outside;
  if (some && !all) TRY(lower_pick(x, op, b, inside, outside, NULL, value));
  return lower_note(x, op, map, *value);
}

/* From the last operand that is wanted to the first, each picked over those after it. */
int lower_concatenate(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  assert(op->opcode == IR_OP_CONCATENATE);
  uint32_t along = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  int64_t start = op->type->dims[along];
  const kernel_box *after = NULL; /* where *value is */
  for (uint32_t i = op->n_operands; i-- > 0;) {
    const ir_op *from = ir_operand(op, i);
    lower_map *m = lower_new_map(x, from->type->rank);
    kernel_box *b = NULL, *both = NULL;
    uint32_t inside = 0;
    bool some = false, all = false;
    if (!m) return lower_no_memory(x);
    bool last_chance = i == 0 && !after; /* nothing is iterated over */
    start -= from->type->dims[along];
    for (uint32_t d = 0; d < m->n; d++) lower_set(x, m, d, map, d, d == along ? -start : 0, 1);
    TRY(lower_inside_of(x, from->type, m, &b, &some, &all));
    if (!some && !last_chance) continue;
    TRY(lower_in_box(x, from, m, all || last_chance ? x->box : b, &inside));
    if (after) {
      if (!(both = lower_new_box(x))) return lower_no_memory(x);
      for (uint32_t k = 0; k < x->rank; k++) {
        both->from[k] = b->from[k] < after->from[k] ? b->from[k] : after->from[k];
        both->to[k] = b->to[k] > after->to[k] ? b->to[k] : after->to[k];
      }
      bool whole = kernel_box_has(x->k, both, x->box);
      TRY(lower_pick(x, op, b, inside, *value, whole ? NULL : both, value));
    } else {
      *value = inside;
    }
    after = both ? both : b;
  }
  return lower_note(x, op, map, *value);
}
