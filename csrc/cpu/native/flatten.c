/* Kernels whose innermost dimensions are short, as points of 3 coordinates or images of 4 channels are: the last ones
 * become one that is long enough for vectors. An index that walks it without gaps stays one; any other load becomes a
 * gather, whose places are the digits of the flat index.
 *
 *    x[i0, i1] / n[i0], 2000 by 3:  in0[1*i0] and in1[1*v up to 1999], v = i0 / 3
 *
 * An iota along some of them is computed from digits, too.
 *
 * A digit is a product with 2^s / divisor, rounded up, and a shift: exact for the numbers below FLAT_MOST. */
#include "native_inside.h"

enum {
  FLAT_MOST = 1 << 15, /* iterations of the dimension that is made */
  FLAT_ENOUGH = 1024,  /* of which no more are looked for */
  FLAT_EXTRA = 64,     /* values that digits may need */
  FLAT_LEAST = 96,
  FLAT_OPS = 3,        /* of a kernel for each gather: the VM has ways to read short rows, and pays for each op ... */
  FLAT_FEW = 128,      /* ... but from so many iterations ... */
  FLAT_MANY = 1 << 12, /* ... up to so many its ways begin anew for few elements, so that ... */
  FLAT_FEW_LEAST = 32, /* ... shorter rows are worth it ... */
  FLAT_FEW_OPS = 1     /* ... with fewer ops */
};

#define FLAT_NONE UINT32_MAX

typedef struct flat_run {
  const kernel *from;
  kernel *to;
  base_arena *arena;
  kernel_value *values;             /* of `to`: digits, then those of `from` */
  uint32_t first, n_merged, n;      /* dimensions of `from` that become one: from `first` on; values so far */
  int64_t extents[KERNEL_MAX_RANK]; /* of the merged ones */
  int64_t vector;                   /* bytes of a register */
  int64_t split;                    /* how often dimension `first` has its part of them; 1: it is one of them */
  int64_t divisors[FLAT_EXTRA], moduli[FLAT_EXTRA]; /* of digits: the flat index over the one, of that the rest */
  uint32_t digits[FLAT_EXTRA], n_digits;
  uint32_t *counts; /* by value of `from`: an iota's that has gaps */
  bool failed;
} flat_run;

static bool flat_is_few(const kernel *k) {
  return k->count >= FLAT_FEW && k->count <= FLAT_MANY;
}

/* --- which dimensions --- */

/* The first dimension that may be merged: lanes that code combines are of one group of a reduction's. */
static uint32_t flat_lowest(const kernel *k) {
  int64_t group = nat_best_way(k) == CPU_NATIVE_VALUES ? k->count
                  : k->reduction->inner > 1            ? k->reduction->inner
                                                       : k->reduction->reduced,
          n = 1;
  uint32_t d = k->rank;
  while (d > 0 && n < group) n *= k->extents[--d];
  return n == group ? d : k->rank;
}

/* The largest divisor of n that is at most `most`. */
static int64_t flat_divisor(int64_t n, int64_t most) {
  int64_t best = 1;
  for (int64_t i = 1; i <= most && i * i <= n; i++) {
    if (n % i) continue;
    best = i > best ? i : best;
    if (n / i <= most) return n / i;
  }
  return best;
}

static bool flat_choose(flat_run *r) {
  const kernel *k = r->from;
  int64_t total = 1, enough = k->reduction ? FLAT_MOST : FLAT_ENOUGH;
  uint32_t lowest = flat_lowest(k), d = k->rank;
  r->split = 1;
  while (d > lowest && total < enough && r->split == 1) {
    int64_t part =
        k->extents[d - 1] * total <= FLAT_MOST ? k->extents[d - 1] : flat_divisor(k->extents[d - 1], FLAT_MOST / total);
    if (part == 1) break;
    r->split = k->extents[--d] / part;
    total *= part;
    memmove(r->extents + 1, r->extents, r->n_merged++ * sizeof *r->extents);
    r->extents[0] = part;
  }
  r->first = d;
  return r->n_merged > 1 && total >= (flat_is_few(k) ? FLAT_FEW_LEAST : FLAT_LEAST);
}

/* --- values --- */

static uint32_t flat_add(flat_run *r, kernel_value v) {
  r->values[r->n] = v;
  return r->n++;
}

static uint32_t flat_constant(flat_run *r, uint32_t number) {
  const void *data = base_arena_memdup(r->arena, &number, sizeof number);
  r->failed = r->failed || !data;
  return flat_add(r, (kernel_value){.kind = KERNEL_CONSTANT, .dtype = XLAC_U32, .data = data});
}

static uint32_t flat_op(flat_run *r, scalar_code code, uint32_t x, uint32_t y) {
  return flat_add(
      r, (kernel_value){.kind = KERNEL_OP, .dtype = XLAC_U32, .n_in = 2, .in = {x, y}, .op = {.code = (uint8_t)code}});
}

static uint32_t flat_convert(flat_run *r, base_dtype to, uint32_t x) {
  return flat_add(
      r, (kernel_value){.kind = KERNEL_OP, .dtype = (uint8_t)to, .n_in = 1, .in = {x}, .op = {.code = SCALAR_CONVERT}});
}

static unsigned flat_log2(int64_t n) {
  unsigned bits = 0;
  while ((int64_t)1 << bits < n) bits++;
  return bits;
}

/* The flat index over `by`, and of that what is left over `modulus`, where that is not 0: one that is there already, or
 * a new one, which is computed from smaller ones. */
static uint32_t flat_digit(flat_run *r, int64_t by, int64_t modulus) {
  for (uint32_t i = 0; i < r->n_digits; i++)
    if (r->divisors[i] == by && r->moduli[i] == modulus) return r->digits[i];
  uint32_t v = modulus ? flat_digit(r, by, 0) : r->digits[0];
  uint32_t whole = modulus & (modulus - 1) ? flat_digit(r, by * modulus, 0) : 0;
  if (r->failed || r->n + 8 > FLAT_EXTRA) return r->failed = true, 0;
  unsigned bits = flat_log2(by);
  if (modulus && !whole) {
    v = flat_op(r, SCALAR_AND, v, flat_constant(r, (uint32_t)modulus - 1));
  } else if (modulus) {
    v = flat_op(r, SCALAR_SUBTRACT, v, flat_op(r, SCALAR_MULTIPLY, whole, flat_constant(r, (uint32_t)modulus)));
  } else {
    bool power = by == (int64_t)1 << bits;
    int64_t factor = (((int64_t)1 << (15 + bits)) + by - 1) / by;
    if (!power) v = flat_op(r, SCALAR_MULTIPLY, v, flat_constant(r, (uint32_t)factor));
    v = flat_op(r, SCALAR_SHIFT_RIGHT_LOGICAL, v, flat_constant(r, power ? bits : 15 + bits));
  }
  r->divisors[r->n_digits] = by, r->moduli[r->n_digits] = modulus;
  r->digits[r->n_digits++] = v;
  return v;
}

/* The same, counted from the end: `last` less the digit. Known by a negative divisor. */
static uint32_t flat_from_end(flat_run *r, int64_t by, int64_t modulus, int64_t last) {
  uint32_t digit = flat_digit(r, by, modulus);
  for (uint32_t i = 0; i < r->n_digits; i++)
    if (r->divisors[i] == -by && r->moduli[i] == modulus) return r->digits[i];
  if (r->failed || r->n + 2 > FLAT_EXTRA) return r->failed = true, 0;
  r->divisors[r->n_digits] = -by, r->moduli[r->n_digits] = modulus;
  return r->digits[r->n_digits++] = flat_op(r, SCALAR_SUBTRACT, flat_constant(r, (uint32_t)last), digit);
}

/* --- indexes --- */

/* Merged dimensions from `from` on that the index goes through as one. */
static uint32_t flat_together(const flat_run *r, const kernel_index *x, uint32_t from, int64_t *extent) {
  uint32_t d = from;
  *extent = r->extents[d];
  for (; d + 1 < r->n_merged; *extent *= r->extents[++d])
    if (x->strides[r->first + d] != x->strides[r->first + d + 1] * r->extents[d + 1]) break;
  return d + 1;
}

/* The index in the new dimensions, but for the last of them. */
static kernel_index flat_outer(const flat_run *r, const kernel_index *x) {
  kernel_index y = {.offset = x->offset};
  for (uint32_t d = 0; d < r->first; d++) y.strides[d] = x->strides[d];
  if (r->split > 1) y.strides[r->first] = x->strides[r->first] * r->extents[0];
  return y;
}

/* false: the index has gaps, and its part along the last dimension is left out. */
static bool flat_index(const flat_run *r, const kernel_index *x, kernel_index *y) {
  int64_t extent = 0;
  *y = flat_outer(r, x);
  if (flat_together(r, x, 0, &extent) < r->n_merged) return false;
  y->strides[r->to->rank - 1] = x->strides[r->first + r->n_merged - 1];
  return true;
}

/* A part of an index that has no gaps: `stride` times a digit, the flat index over `inside`, of that the rest modulo
 * `modulus`, or all of it where that is 0. */
typedef struct flat_part {
  uint32_t end; /* merged dimensions before it are done */
  int64_t stride, extent, inside, modulus;
} flat_part;

/* Iterations of the merged dimensions from number d on. */
static int64_t flat_inside(const flat_run *r, uint32_t d) {
  int64_t inside = 1;
  for (; d < r->n_merged; d++) inside *= r->extents[d];
  return inside;
}

/* The next part of x that is not the same all along; false where there is none. */
static bool flat_next(const flat_run *r, const kernel_index *x, flat_part *p) {
  while (p->end < r->n_merged) {
    uint32_t d = p->end;
    p->end = flat_together(r, x, d, &p->extent);
    assert(p->end > d && p->end <= r->n_merged);
    p->stride = x->strides[r->first + p->end - 1];
    p->modulus = d ? p->extent : 0;
    p->inside = flat_inside(r, p->end);
    if (p->stride) return true;
  }
  return false;
}

/* What a load that has gaps reads: a place for each part without. v->in beyond the given ones are final numbers. */
static void flat_places(flat_run *r, const kernel_index *x, kernel_value *v, kernel_index *y, kernel_base *bases) {
  flat_part p = {.end = 0};
  while (!r->failed && flat_next(r, x, &p)) {
    if (v->n_in == 3) {
      r->failed = true;
      return;
    }
    bool back = p.stride < 0;
    if (v->flat && v->n_in == 0) v->rises = p.modulus || back ? 0 : p.inside;
    v->in[v->n_in] = back ? flat_from_end(r, p.inside, p.modulus, p.extent - 1) : flat_digit(r, p.inside, p.modulus);
    bases[v->n_in++] = (kernel_base){back ? -p.stride : p.stride, p.extent - 1};
    if (back) y->offset += p.stride * (p.extent - 1);
  }
}

/* --- iotas --- */

/* The sum of `part`, an index, and what x is of the merged dimensions: each a digit, times its stride. */
static uint32_t flat_sum(flat_run *r, const kernel_index *x, uint32_t part) {
  flat_part p = {.end = 0};
  while (!r->failed && flat_next(r, x, &p)) {
    uint32_t digit = flat_digit(r, p.inside, p.modulus);
    if (p.stride != 1) digit = flat_op(r, SCALAR_MULTIPLY, digit, flat_constant(r, (uint32_t)p.stride));
    part = part == FLAT_NONE ? digit : flat_op(r, SCALAR_ADD, part, digit);
  }
  return part;
}

/* An iota that has gaps, modulo 2^32: its part of outer dimensions and digits. None of it may be a number that an s32
 * does not hold. */
static uint32_t flat_iota(flat_run *r, const kernel_index *x, const kernel_index *outer) {
  static const kernel_index zero;
  int64_t least = 0, most = 0;
  uint32_t part = FLAT_NONE;
  if (!kernel_reach(r->from, x, &least, &most) || least < INT32_MIN || most > INT32_MAX || r->n + 8 > FLAT_EXTRA)
    return r->failed = true, 0;
  if (memcmp(outer, &zero, sizeof zero) != 0) {
    part = flat_add(r, (kernel_value){.kind = KERNEL_COUNT_UP, .dtype = XLAC_S32, .index = outer});
    part = flat_convert(r, XLAC_U32, part);
  }
  part = flat_sum(r, x, part);
  assert(r->failed || part != FLAT_NONE);
  return flat_convert(r, XLAC_S32, part);
}

/* Whether the box has all of dimension d. */
static bool flat_is_whole(const flat_run *r, const kernel_box *box, uint32_t d) {
  return box->from[d] == 0 && box->to[d] == r->from->extents[d];
}

/* Boxes that have all of the merged dimensions, or where memory is read (x is the load's index), of those it goes
 * along: what is not read may be computed anywhere. NULL and failed else. */
static const kernel_box *flat_box(flat_run *r, const kernel_box *box, const kernel_index *x) {
  if (!box) return NULL;
  kernel_box *to = base_arena_memdup(r->arena, box, sizeof *box);
  for (uint32_t d = r->first; d < r->first + r->n_merged; d++)
    r->failed = r->failed || (x && x->strides[d] && !flat_is_whole(r, box, d));
  if (!to || r->failed) return r->failed = true, NULL;
  for (uint32_t d = r->first; d < r->to->rank; d++) to->from[d] = 0, to->to[d] = r->to->extents[d];
  return to;
}

/* The value's index, which a dimension does not move of which its box has one iteration: so the load may be anywhere.
 * NULL when out of memory. */
static const kernel_index *flat_alone(flat_run *r, const kernel_value *v) {
  if (!v->box || v->kind != KERNEL_LOAD) return v->index;
  kernel_index *x = base_arena_memdup(r->arena, v->index, sizeof *x);
  for (uint32_t d = r->first; x && d < r->first + r->n_merged; d++) {
    if (v->box->to[d] - v->box->from[d] != 1) continue;
    x->offset += x->strides[d] * v->box->from[d];
    x->strides[d] = 0;
  }
  return x;
}

/* Whether the iteration is in a pick's box, as digits say; the box has all of the other dimensions. */
static uint32_t flat_mask(flat_run *r, const kernel_box *box) {
  uint32_t mask = FLAT_NONE;
  for (uint32_t d = 0; d < r->first; d++) r->failed = r->failed || !flat_is_whole(r, box, d);
  for (uint32_t d = 0; d < r->n_merged && !r->failed; d++) {
    int64_t from = box->from[r->first + d], n = box->to[r->first + d] - from;
    if (flat_is_whole(r, box, r->first + d)) continue;
    if (r->n + 8 > FLAT_EXTRA || n <= 0 || (d == 0 && r->split > 1)) return r->failed = true, 0;
    uint32_t digit = flat_digit(r, flat_inside(r, d + 1), d ? r->extents[d] : 0);
    if (from) digit = flat_op(r, SCALAR_SUBTRACT, digit, flat_constant(r, (uint32_t)from));
    kernel_value in = {.kind = KERNEL_OP, .dtype = XLAC_PRED, .n_in = 2, .in = {digit, flat_constant(r, (uint32_t)n)}};
    in.op = (scalar_op){.code = SCALAR_COMPARE, .direction = SCALAR_LT, .order = SCALAR_ORDER_UNSIGNED};
    uint32_t part = flat_add(r, in);
    if (mask != FLAT_NONE) {
      in = (kernel_value){.kind = KERNEL_OP, .dtype = XLAC_PRED, .n_in = 2, .in = {mask, part}};
      in.op.code = SCALAR_AND;
      part = flat_add(r, in);
    }
    mask = part;
  }
  return mask;
}

/* A pick by a part of the merged dimensions is a selection. */
static void flat_pick(flat_run *r, uint32_t i, kernel_value *v, bool digits) {
  if (digits) r->counts[i] = flat_mask(r, v->pick);
  if (digits || r->failed || r->counts[i] == FLAT_NONE) return;
  kernel_value select = {.kind = KERNEL_OP, .dtype = v->dtype, .n_in = 3, .box = v->box};
  select.op.code = SCALAR_SELECT;
  select.in[0] = r->counts[i], select.in[1] = v->in[0], select.in[2] = v->in[1];
  *v = select;
}

/* --- the whole --- */

/* The first pass makes the digits that loads need, the second the values after them, whose numbers move up. */
static void flat_value(flat_run *r, uint32_t i, bool digits) {
  const kernel_value *of = &r->from->values[i];
  kernel_value v = *of;
  kernel_base *bases = NULL;
  const kernel_index *index = NULL;
  for (uint32_t j = 0; j < v.n_in; j++) v.in[j] += r->n;
  if (v.kind == KERNEL_LOAD || v.kind == KERNEL_COUNT_UP) {
    kernel_index *x = BASE_NEW(r->arena, kernel_index);
    if (!x || !(index = flat_alone(r, of))) {
      r->failed = true;
      return;
    }
    v.index = x;
    bool gaps = !flat_index(r, index, x);
    if (gaps && v.kind == KERNEL_COUNT_UP) {
      if (digits) r->counts[i] = flat_iota(r, index, x);
      v = (kernel_value){.kind = KERNEL_OP, .dtype = v.dtype, .n_in = 1, .box = v.box};
      v.op.code = v.dtype == XLAC_S32 ? SCALAR_COPY : SCALAR_CONVERT, v.in[0] = r->counts[i];
    } else if (gaps) {
      bases = BASE_ARRAY(r->arena, kernel_base, 3);
      if (!bases) {
        r->failed = true;
        return;
      }
      if (v.n_in) memcpy(bases, v.bases, v.n_in * sizeof *bases);
      v.bases = bases;
      v.flat = v.n_in == 0;
      flat_places(r, index, &v, x, bases);
    }
  }
  if (v.kind == KERNEL_PICK) flat_pick(r, i, &v, digits);
  if (digits) return;
  v.box = flat_box(r, v.box, v.kind == KERNEL_LOAD ? index : NULL);
  v.pick = v.kind == KERNEL_PICK ? flat_box(r, v.pick, NULL) : NULL;
  r->values[r->n + i] = v;
}

static void flat_values(flat_run *r) {
  kernel_index *x = BASE_NEW(r->arena, kernel_index);
  if (!x) {
    r->failed = true;
    return;
  }
  x->strides[r->to->rank - 1] = 1;
  r->digits[0] = flat_add(r, (kernel_value){.kind = KERNEL_COUNT_UP, .dtype = XLAC_U32, .index = x});
  r->divisors[0] = 1, r->n_digits = 1;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < r->from->n_values && !r->failed; i++) flat_value(r, i, pass == 0);
}

static void flat_stores(flat_run *r) {
  for (uint32_t i = 0; i < r->from->n_stores; i++) {
    kernel_store *s = &r->to->stores[i];
    bool whole = flat_index(r, &r->from->stores[i].index, &s->index);
    r->failed = r->failed || (!whole && !s->by);
    s->value += r->n;
    if (s->by) s->init += r->n;
  }
}

static bool flat_has_scan(const kernel *k) {
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_SCAN) return true;
  return false;
}

/* Whether its lanes are likely to be near each other (lower_near.c), or those of a table that one vector holds. */
static bool flat_is_near(const flat_run *r, const kernel_value *v) {
  int64_t table = r->vector / (base_dtype_bytes((base_dtype)v->dtype) == 8 ? 8 : 4);
  return v->flat && (v->rises || (v->n_in == 1 && v->bases[0].stride * v->bases[0].last < table));
}

static bool flat_pays(const flat_run *r) {
  uint32_t ops = 0, gathers = 0;
  for (uint32_t i = 0; i < r->from->n_values; i++) {
    const kernel_value *v = &r->from->values[i];
    ops += v->kind == KERNEL_OP;
    gathers += v->kind == KERNEL_LOAD && r->values[r->n + i].n_in > v->n_in && !flat_is_near(r, &r->values[r->n + i]);
  }
  return ops >= (flat_is_few(r->from) ? FLAT_FEW_OPS : FLAT_OPS) * gathers;
}

const kernel *nat_flatten(const kernel *k, const nat_target *target, bool any, base_arena *arena) {
  flat_run r = {.from = k, .arena = arena, .vector = target->vector};
  if (k->rank < 2 || k->count == 0 || flat_has_scan(k) || !flat_choose(&r)) return NULL;
  r.to = base_arena_memdup(arena, k, sizeof *k);
  r.values = BASE_ARRAY(arena, kernel_value, k->n_values + FLAT_EXTRA);
  r.counts = BASE_ARRAY(arena, uint32_t, k->n_values);
  kernel_store *stores = base_arena_memdup(arena, k->stores, k->n_stores * sizeof *stores);
  if (!r.to || !r.values || !r.counts || !stores) return NULL;
  r.to->stores = stores;
  r.to->rank = r.first + (r.split > 1) + 1;
  if (r.split > 1) r.to->extents[r.first] = r.split;
  r.to->extents[r.to->rank - 1] = 1;
  for (uint32_t d = 0; d < r.n_merged; d++) r.to->extents[r.to->rank - 1] *= r.extents[d];
  flat_values(&r);
  flat_stores(&r);
  r.to->values = r.values;
  r.to->n_values = r.n + k->n_values;
  return r.failed || (!any && !flat_pays(&r)) ? NULL : r.to;
}

/* --- indexes of 64 bits ---
 *
 * Indexes of 64 bits that are only compared, or made another type: where all that they come to fits 32 bits, so does
 * what they are compared with or the comparison is left alone. A vector then has twice the lanes: triangles and bands
 * of matrices, causal masks. */

/* Whether the value is a number of 32 bits in all iterations, and what it is made of, too. */
static bool narrow_fits(const kernel *k, uint32_t i, const bool *narrow) {
  const kernel_value *v = &k->values[i];
  int64_t least = 0, most = 0;
  if (v->dtype != XLAC_S64) return false;
  if (v->kind == KERNEL_COUNT_UP)
    return kernel_reach(k, v->index, &least, &most) && least > INT32_MIN && most <= INT32_MAX;
  if (v->kind == KERNEL_CONSTANT) {
    memcpy(&least, v->data, sizeof least);
    return least > INT32_MIN && least <= INT32_MAX;
  }
  return v->kind == KERNEL_OP && v->op.code == SCALAR_ABS && narrow[v->in[0]];
}

/* Whether value i may have operands of 32 bits in place of 64. */
static bool narrow_takes(const kernel *k, uint32_t i, const bool *narrow) {
  const kernel_value *v = &k->values[i];
  if (v->kind != KERNEL_OP) return false;
  if (v->op.code == SCALAR_COMPARE) return narrow[v->in[0]] && narrow[v->in[1]];
  return v->op.code == SCALAR_CONVERT || (v->op.code == SCALAR_ABS && narrow[i]);
}

/* Takes back what some user can't take. Returns whether anything was. */
static bool narrow_settle(const kernel *k, bool *narrow) {
  bool changed = false;
  for (uint32_t i = k->n_values; i-- > 0;) {
    const kernel_value *v = &k->values[i];
    bool takes = narrow_takes(k, i, narrow);
    if (v->kind == KERNEL_OP && v->op.code == SCALAR_ABS && narrow[i] && !narrow[v->in[0]])
      narrow[i] = false, changed = true;
    for (uint32_t j = 0; j < v->n_in; j++)
      if (narrow[v->in[j]] && !takes) narrow[v->in[j]] = false, changed = true;
  }
  return changed;
}

const kernel *nat_narrow(const kernel *k, base_arena *arena) {
  bool *narrow = base_arena_zalloc(arena, k->n_values + 1), any = false;
  for (uint32_t i = 0; narrow && i < k->n_values; i++) any |= narrow[i] = narrow_fits(k, i, narrow);
  if (!any) return k;
  for (uint32_t i = 0; i < k->n_stores; i++)
    narrow[k->stores[i].value] = false, narrow[k->stores[i].by ? k->stores[i].init : k->stores[i].value] = false;
  while (narrow_settle(k, narrow)) continue;
  kernel *to = base_arena_memdup(arena, k, sizeof *k);
  kernel_value *values = base_arena_memdup(arena, k->values, k->n_values * sizeof *values);
  if (!to || !values) return k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    if (!narrow[i]) continue;
    values[i].dtype = XLAC_S32;
    if (values[i].kind != KERNEL_CONSTANT) continue;
    int64_t number = 0;
    memcpy(&number, values[i].data, sizeof number);
    if (!(values[i].data = base_arena_memdup(arena, &(int32_t){(int32_t)number}, sizeof(int32_t)))) return k;
  }
  to->values = values;
  return to;
}
