/* Types and layouts, interned per module in one open-addressing table each.
 *
 * A maker fills in a key on the stack whose parts may lie anywhere, looks for its equal, and only when there is none
 * copies the key and its parts into the arena. So parts that are compared by pointer (layouts, element types, texts)
 * must be interned in the same module already; dims and dynamic flags are compared by value. */
#include "../ir.h"
#include "type_table.h"

/* Multiplicative hashing; the high half of the product depends on all bits of h and v. */
static uint32_t mix_hash(uint32_t h, uint64_t v) {
  uint64_t x = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(x >> 32);
}

/* Tables grow on first use. Nonzero when out of memory. */
int ir_type_table_create(ir_module *m) {
  assert(!m->types);
  struct ir_type_table *t = base_malloc(m->alloc, sizeof *t);
  if (!t) return -1;
  memset(t, 0, sizeof *t);
  m->types = t;
  return 0;
}

void ir_type_table_destroy(ir_module *m) {
  if (!m->types) return;
  base_free(m->alloc, m->types->types.slots);
  base_free(m->alloc, m->types->layouts.slots);
  base_free(m->alloc, m->types);
}

/* Makes room for one more entry, at a load of at most 3/4. Slots hold (hash, pointer), so growing touches no types. */
static bool pointer_set_reserve(ir_pointer_set *s, base_alloc alloc) {
  if ((s->n + 1) * 4 <= s->cap * 3) return true;
  uint32_t cap = s->cap ? s->cap * 2 : 64;
  ir_pointer_slot *slots = base_malloc(alloc, (size_t)cap * sizeof *slots);
  if (!slots) return false;
  memset(slots, 0, (size_t)cap * sizeof *slots);
  for (uint32_t i = 0; i < s->cap; i++) {
    if (!s->slots[i].p) continue;
    uint32_t at = s->slots[i].hash & (cap - 1);
    while (slots[at].p) at = (at + 1) & (cap - 1);
    slots[at] = s->slots[i];
  }
  base_free(alloc, s->slots);
  s->slots = slots;
  s->cap = cap;
  return true;
}

/* p must not be in the set yet, and room must have been reserved. */
static void pointer_set_add(ir_pointer_set *s, uint32_t hash, const void *p) {
  assert(s->n < s->cap);
  uint32_t at = hash & (s->cap - 1);
  while (s->slots[at].p) at = (at + 1) & (s->cap - 1);
  s->slots[at] = (ir_pointer_slot){hash, p};
  s->n++;
}

/* NULL lists only where n is 0. */
static bool same_ints(const int64_t *a, const int64_t *b, uint32_t n) {
  return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

/* --- layouts --- */

/* Some of the fields: the others hardly ever differ alone. */
static uint32_t layout_hash(const ir_layout *l) {
  assert(l->minor_to_major || l->rank == 0);
  uint32_t h = mix_hash(7, l->rank);
  for (uint32_t i = 0; i < l->rank; i++) h = mix_hash(h, (uint64_t)l->minor_to_major[i]);
  h = mix_hash(h, (uint64_t)l->memory_space * 31 + (uint64_t)l->element_bits);
  for (uint32_t i = 0; i < l->n_tiles; i++)
    for (uint32_t d = 0; d < l->tiles[i].rank; d++) h = mix_hash(h, (uint64_t)l->tiles[i].dims[d]);
  return h;
}

/* NULL, all dense, is another spelling than a list of 'D's. */
static bool same_levels(const ir_layout *a, const ir_layout *b) {
  if (!a->levels || !b->levels) return a->levels == b->levels;
  for (uint32_t i = 0; i < a->rank; i++) {
    ir_dim_level x = a->levels[i], y = b->levels[i];
    if (x.form != y.form || x.unique != y.unique || x.ordered != y.ordered) return false;
  }
  return true;
}

static bool same_tiles(const ir_layout *a, const ir_layout *b) {
  if (a->n_tiles != b->n_tiles || a->n_splits != b->n_splits) return false;
  for (uint32_t i = 0; i < a->n_tiles; i++)
    if (a->tiles[i].rank != b->tiles[i].rank || !same_ints(a->tiles[i].dims, b->tiles[i].dims, a->tiles[i].rank))
      return false;
  for (uint32_t i = 0; i < a->n_splits; i++)
    if (a->splits[i].dimension != b->splits[i].dimension || a->splits[i].n != b->splits[i].n ||
        !same_ints(a->splits[i].indices, b->splits[i].indices, a->splits[i].n))
      return false;
  return true;
}

/* `physical` is interned with its module, so across modules physical layouts are never equal. */
bool ir_same_layout(const ir_layout *a, const ir_layout *b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->rank != b->rank || !same_ints(a->minor_to_major, b->minor_to_major, a->rank)) return false;
  if (a->tail_padding != b->tail_padding || a->index_type != b->index_type || a->pointer_type != b->pointer_type)
    return false;
  if (a->element_bits != b->element_bits || a->memory_space != b->memory_space) return false;
  if (a->metadata_prefix_bytes != b->metadata_prefix_bytes || a->physical != b->physical) return false;
  return same_levels(a, b) && same_tiles(a, b);
}

/* *ok turns false when out of memory and never true: callers check once at the end. */
static const int64_t *copy_ints(base_arena *arena, const int64_t *v, uint32_t n, bool *ok) {
  if (n == 0) return NULL;
  int64_t *c = BASE_ARRAY(arena, int64_t, n);
  if (!c) {
    *ok = false;
    return NULL;
  }
  memcpy(c, v, n * sizeof *c);
  return c;
}

static bool copy_layout_parts(ir_module *m, const ir_layout *from, ir_layout *to) {
  bool ok = true;
  base_arena *a = &m->arena;
  to->minor_to_major = copy_ints(a, from->minor_to_major, from->rank, &ok);
  if (from->levels) {
    to->levels = base_arena_memdup(a, from->levels, from->rank * sizeof *from->levels);
    ok = ok && to->levels;
  }
  ir_tile *tiles = BASE_ARRAY(a, ir_tile, from->n_tiles + 1);
  ir_split *splits = BASE_ARRAY(a, ir_split, from->n_splits + 1);
  if (!tiles || !splits) return false;
  for (uint32_t i = 0; i < from->n_tiles; i++)
    tiles[i] = (ir_tile){from->tiles[i].rank, copy_ints(a, from->tiles[i].dims, from->tiles[i].rank, &ok)};
  for (uint32_t i = 0; i < from->n_splits; i++)
    splits[i] = (ir_split){from->splits[i].dimension, from->splits[i].n,
                           copy_ints(a, from->splits[i].indices, from->splits[i].n, &ok)};
  to->tiles = tiles;
  to->splits = splits;
  return ok;
}

/* All parts are copied; `physical` must be of m. */
const ir_layout *ir_layout_intern(ir_module *m, const ir_layout *layout) {
  assert(layout);
  ir_pointer_set *set = &m->types->layouts;
  uint32_t hash = layout_hash(layout);
  if (!pointer_set_reserve(set, m->alloc)) return NULL;
  for (uint32_t at = hash & (set->cap - 1); set->slots[at].p; at = (at + 1) & (set->cap - 1))
    if (set->slots[at].hash == hash && ir_same_layout(set->slots[at].p, layout)) return set->slots[at].p;
  ir_layout *l = base_arena_memdup(&m->arena, layout, sizeof *layout);
  if (!l || !copy_layout_parts(m, layout, l)) return NULL;
  pointer_set_add(set, hash, l);
  return l;
}

/* Row-major, {rank-1, ..., 0}: XLA's LayoutUtil::GetDefaultLayoutForRank. Kept for each rank, as nearly every type
 * has it. */
const ir_layout *ir_layout_default(ir_module *m, uint32_t rank) {
  assert(rank <= IR_MAX_RANK);
  const ir_layout **cached = &m->types->defaults[rank];
  if (*cached) return *cached;
  int64_t order[IR_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) order[i] = (int64_t)rank - 1 - i;
  ir_layout l = {.rank = rank, .minor_to_major = order, .tail_padding = 1};
  return *cached = ir_layout_intern(m, &l);
}

/* The physical shape is a type and goes over first. */
static const ir_layout *import_layout(ir_module *m, const ir_layout *l) {
  if (!l || !l->physical) return l ? ir_layout_intern(m, l) : NULL;
  ir_layout copy = *l;
  copy.physical = ir_type_import(m, l->physical);
  return copy.physical ? ir_layout_intern(m, &copy) : NULL;
}

/* --- types --- */

/* Whether two types of one module are the same, layouts included. `hash`, `count`, `bare`, `depth` and `n_leaves`
 * follow from the rest. */
static bool same_type(const ir_type *a, const ir_type *b) {
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || a->layout != b->layout) return false;
  if (a->n_elements != b->n_elements || a->inner != b->inner || !same_ints(a->dims, b->dims, a->rank)) return false;
  if (a->text != b->text || a->encoding != b->encoding || a->n_inputs != b->n_inputs) return false;
  if (!ir_quant_equal(a->quant, b->quant)) return false;
  if ((a->dynamic == NULL) != (b->dynamic == NULL)) return false;
  if (a->dynamic && memcmp(a->dynamic, b->dynamic, a->rank * sizeof *a->dynamic) != 0) return false;
  return a->n_elements == 0 || memcmp(a->elements, b->elements, a->n_elements * sizeof *a->elements) == 0;
}

/* Of the facts that same_type compares. */
static uint32_t type_hash(const ir_type *t) {
  uint32_t h = mix_hash(t->kind * 64u + t->dtype, (uint64_t)t->rank << 32 | t->n_elements);
  for (uint32_t i = 0; i < t->rank; i++) h = mix_hash(h, (uint64_t)t->dims[i] * 2 + ir_dim_is_dynamic(t, i));
  for (uint32_t i = 0; i < t->n_elements; i++) h = mix_hash(h, base_key(t->elements[i]));
  h = mix_hash(h, base_key(t->layout));
  h = mix_hash(h, base_key(t->text) * 3 + base_key(t->encoding) + t->n_inputs);
  h = mix_hash(h, ir_quant_hash(t->quant));
  return mix_hash(h, base_key(t->inner));
}

/* *t is the arena's copy of a key; its lists are replaced by copies of their own. */
static bool copy_type_parts(ir_module *m, ir_type *t) {
  bool ok = true;
  t->dims = copy_ints(&m->arena, t->dims, t->rank, &ok);
  if (t->dynamic) {
    t->dynamic = base_arena_memdup(&m->arena, t->dynamic, t->rank * sizeof *t->dynamic);
    ok = ok && t->dynamic;
  }
  if (t->n_elements) {
    t->elements = base_arena_memdup(&m->arena, t->elements, t->n_elements * sizeof *t->elements);
    ok = ok && t->elements;
  }
  return ok && (!t->quant || (t->quant = ir_quant_copy(m, t->quant)));
}

/* Elements are interned already, so their bare forms are there to be used. The same type without layouts, interned;
 * NULL when out of memory. */
static const ir_type *bare_of(ir_module *m, const ir_type *t) {
  ir_type key = *t;
  key.layout = NULL;
  if (t->kind == IR_TYPE_BUFFER) key.inner = t->inner->bare;
  if (t->n_elements == 0) return ir_type_intern(m, &key);
  const ir_type **elements = BASE_ARRAY(&m->arena, const ir_type *, t->n_elements);
  if (!elements) return NULL;
  for (uint32_t i = 0; i < t->n_elements; i++) elements[i] = t->elements[i]->bare;
  key.elements = elements;
  return ir_type_intern(m, &key);
}

/* No layout at any depth: the parts know it of themselves. */
static bool is_bare(const ir_type *t) {
  if (t->layout || (t->inner && t->inner->bare != t->inner)) return false;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (t->elements[i]->bare != t->elements[i]) return false;
  return true;
}

/* Linear in the direct elements, since these know their own depth and leaves. Bounds are checked by those who read
 * types, not here. How deep and wide the type is as a tree; both saturate. */
static void measure(ir_type *t) {
  uint64_t leaves = t->kind == IR_TYPE_TUPLE ? 0 : 1;
  uint32_t deepest = t->inner ? t->inner->depth + 1 : 0;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    leaves += t->elements[i]->n_leaves;
    if (t->elements[i]->depth >= deepest) deepest = t->elements[i]->depth + 1;
  }
  t->depth = t->kind == IR_TYPE_TUPLE && deepest == 0 ? 1 : deepest;
  t->n_leaves = leaves > UINT32_MAX ? UINT32_MAX : (uint32_t)leaves;
}

/* A type and its bare form are made together; making the bare form may grow the table, hence the second reservation. */
const ir_type *ir_type_intern(ir_module *m, ir_type *key) {
  assert(m && key);
  ir_pointer_set *set = &m->types->types;
  uint32_t hash = type_hash(key);
  if (!pointer_set_reserve(set, m->alloc)) return NULL;
  for (uint32_t at = hash & (set->cap - 1); set->slots[at].p; at = (at + 1) & (set->cap - 1))
    if (set->slots[at].hash == hash && same_type(set->slots[at].p, key)) return set->slots[at].p;
  ir_type *t = base_arena_memdup(&m->arena, key, sizeof *key);
  if (!t || !copy_type_parts(m, t)) return NULL;
  t->hash = hash;
  t->bare = t;
  measure(t);
  if (!is_bare(t)) {
    t->bare = bare_of(m, t);
    if (!t->bare || !pointer_set_reserve(set, m->alloc)) return NULL;
  }
  pointer_set_add(set, hash, t);
  return t;
}

/* Sets *count, or says why these dims can't be: a negative size, or more than 2^63 - 1 elements or bytes. A zero
 * dimension makes no product overflow less: f32[0,2^62,2^62] is refused. */
int ir_count_elements(base_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *count, xlac_error *err) {
  assert(dtype > BASE_DTYPE_INVALID && dtype < BASE_DTYPE_COUNT && count);
  int64_t n = 1, bytes;
  bool unbounded = false, zero = false, overflow = false;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == IR_UNBOUNDED) {
      unbounded = true;
      continue;
    }
    if (dims[i] < 0)
      return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "dimension %u of a shape is negative (%lld)", i, (long long)dims[i]);
    zero = zero || dims[i] == 0;
    overflow = overflow || !base_mul_i64(n, dims[i] ? dims[i] : 1, &n);
  }
  overflow = overflow || !base_mul_i64(n, (int64_t)base_dtype_bytes(dtype), &bytes);
  if (overflow) return base_fail(err, XLAC_E_TOO_LARGE, "a shape has more than 2^63 - 1 bytes");
  *count = unbounded || zero ? 0 : n;
  return 0;
}

static bool any_true(const bool *v, uint32_t n) {
  for (uint32_t i = 0; v && i < n; i++)
    if (v[i]) return true;
  return false;
}

/* A `dynamic` list without a true in it is none, so that f32[2] has one type however it was made. */
const ir_type *ir_tensor(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims, const bool *dynamic,
                         const ir_layout *layout, xlac_error *err) {
  assert(dtype > BASE_DTYPE_INVALID && dtype < BASE_DTYPE_COUNT);
  if (rank > IR_MAX_RANK) {
    base_fail(err, XLAC_E_TOO_LARGE, "a shape has %u dimensions; at most %d are allowed", rank, IR_MAX_RANK);
    return NULL;
  }
  ir_type key = {.kind = IR_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = rank, .dims = dims, .layout = layout};
  if (ir_count_elements(dtype, rank, dims, &key.count, err) != 0) return NULL;
  key.has_dynamic = any_true(dynamic, rank);
  key.dynamic = key.has_dynamic ? dynamic : NULL;
  const ir_type *t = ir_type_intern(m, &key);
  if (!t) base_oom(err, "a type");
  return t;
}

/* The layout is made first, so that the error is the right one for a rank beyond the limit. */
const ir_type *ir_tensor_default(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims, xlac_error *err) {
  const ir_layout *layout = rank <= IR_MAX_RANK ? ir_layout_default(m, rank) : NULL;
  if (rank <= IR_MAX_RANK && !layout) {
    base_oom(err, "a layout");
    return NULL;
  }
  return ir_tensor(m, dtype, rank, dims, NULL, layout, err);
}

const ir_type *ir_scalar(ir_module *m, base_dtype dtype) {
  return ir_tensor_default(m, dtype, 0, NULL, NULL);
}

/* Depth and width are the reader's to check, against IR_MAX_TYPE_DEPTH and IR_MAX_TYPE_LEAVES. */
const ir_type *ir_tuple(ir_module *m, uint32_t n, const ir_type *const *elements) {
  assert(elements || n == 0);
  ir_type key = {.kind = IR_TYPE_TUPLE, .n_elements = n, .elements = elements};
  for (uint32_t i = 0; i < n; i++) key.has_dynamic = key.has_dynamic || elements[i]->has_dynamic;
  return ir_type_intern(m, &key);
}

const ir_type *ir_token(ir_module *m) {
  ir_type key = {.kind = IR_TYPE_TOKEN};
  return ir_type_intern(m, &key);
}

const ir_type *ir_opaque(ir_module *m) {
  ir_type key = {.kind = IR_TYPE_OPAQUE};
  return ir_type_intern(m, &key);
}

const ir_type *ir_buffer(ir_module *m, const ir_type *inner) {
  assert(inner);
  ir_type key = {.kind = IR_TYPE_BUFFER, .inner = inner, .has_dynamic = inner->has_dynamic};
  return ir_type_intern(m, &key);
}

/* Of a tuple, future or function type. */
static const ir_type *import_elements(ir_module *m, ir_type *key, const ir_type *t) {
  const ir_type **elements = BASE_ARRAY(&m->arena, const ir_type *, t->n_elements ? t->n_elements : 1);
  if (!elements) return NULL;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!(elements[i] = ir_type_import(m, t->elements[i]))) return NULL;
  key->elements = elements;
  return ir_type_intern(m, key);
}

/* Of a module's own type it gives that type back, after a look-up. *key = *t brings rank, dims and flags along, which
 * intern copies if need be. */
const ir_type *ir_type_import(ir_module *m, const ir_type *t) {
  assert(m && t);
  ir_type key = *t;
  if (t->text && !(key.text = ir_intern(m, t->text->s, t->text->n))) return NULL;
  if (t->encoding && !(key.encoding = ir_intern(m, t->encoding->s, t->encoding->n))) return NULL;
  if (t->layout && !(key.layout = import_layout(m, t->layout))) return NULL;
  if (t->inner && !(key.inner = ir_type_import(m, t->inner))) return NULL;
  return t->n_elements ? import_elements(m, &key, t) : ir_type_intern(m, &key);
}

/* layout NULL takes the layout away. */
const ir_type *ir_type_with_layout(ir_module *m, const ir_type *t, const ir_layout *layout) {
  assert(ir_is_tensor(t));
  ir_type key = *t;
  key.layout = layout;
  return ir_type_intern(m, &key);
}

/* NULL when out of memory, or when the wider elements overflow 63 bits of bytes. */
const ir_type *ir_type_with_dtype(ir_module *m, const ir_type *t, base_dtype dtype) {
  assert(ir_is_tensor(t));
  return ir_tensor(m, dtype, t->rank, t->dims, t->dynamic, t->layout, NULL);
}

/* --- types that only MLIR form has: quantised and odd elements, encodings, unranked tensors, functions, verbatim
 * ones --- */
static bool quant_same_part(const void *a, const void *b, size_t n) {
  return n == 0 || memcmp(a, b, n) == 0;
}

void ir_own_range(base_dtype storage, int64_t *low, int64_t *high) {
  unsigned bits = base_dtype_of(storage)->bits;
  bool is_signed = !base_dtype_is_unsigned(storage);
  assert(bits <= 32);
  *low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
  *high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
}

int ir_check_range(base_dtype storage, int64_t low, int64_t high, xlac_error *err) {
  int64_t least, most;
  ir_own_range(storage, &least, &most);
  if (low < least)
    return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type minimum: %lld (quantized_type_c3)",
                     (long long)low);
  if (high > most)
    return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage type maximum: %lld (quantized_type_c3)",
                     (long long)high);
  if (low < high) return 0;
  return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "illegal storage min and storage max: (%lld:%lld) (quantized_type_c3)",
                   (long long)low, (long long)high);
}

int ir_check_scale(base_dtype expressed, double scale, xlac_error *err) {
  unsigned mantissa = base_dtype_of(expressed)->mantissa_bits;
  int bias = (1 << (base_dtype_of(expressed)->exponent_bits - 1)) - 1;
  double largest = (2 - __builtin_ldexp(1, -(int)mantissa)) * __builtin_ldexp(1, bias);
  double smallest = __builtin_ldexp(1, 1 - bias - (int)mantissa); /* the smallest subnormal */
  if (scale >= smallest && scale <= largest) return 0;
  return base_fail(err, XLAC_E_BAD_SHAPE_TEXT, "scale %e out of expressed type range, %e to %e (quantized_type_c%d)",
                   scale, smallest, largest,
                   !(scale > 0)             ? 5
                   : __builtin_isinf(scale) ? 6
                                            : 4);
}

/* Scales by their bits, so -0.0 and 0.0 differ as their text does. */
bool ir_quant_equal(const ir_quant *a, const ir_quant *b) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->storage != b->storage || a->expressed != b->expressed || a->has_range != b->has_range) return false;
  if (a->storage_min != b->storage_min || a->storage_max != b->storage_max || a->axis != b->axis || a->n != b->n)
    return false;
  if (a->n_blocks != b->n_blocks || a->grid_rank != b->grid_rank) return false;
  return quant_same_part(a->scales, b->scales, a->n * sizeof *a->scales) &&
         quant_same_part(a->zero_points, b->zero_points, a->n * sizeof *a->zero_points) &&
         quant_same_part(a->block_axes, b->block_axes, a->n_blocks * sizeof *a->block_axes) &&
         quant_same_part(a->block_sizes, b->block_sizes, a->n_blocks * sizeof *a->block_sizes) &&
         quant_same_part(a->grid_dims, b->grid_dims, a->grid_rank * sizeof *a->grid_dims);
}

/* 0 for no quantisation. Blocks don't count: they come with different scales. */
uint64_t ir_quant_hash(const ir_quant *q) {
  if (!q) return 0;
  uint64_t h = (uint64_t)q->storage << 40 ^ (uint64_t)q->expressed << 32 ^ (uint64_t)(uint32_t)q->axis << 8 ^ q->n;
  for (uint32_t i = 0; i < q->n; i++) {
    uint64_t bits;
    memcpy(&bits, &q->scales[i], sizeof bits);
    h = (h ^ bits ^ (uint64_t)q->zero_points[i] << 1) * UINT64_C(0x9E3779B97F4A7C15);
  }
  return h;
}

static const void *quant_part(ir_module *m, const void *p, size_t n, bool *ok) {
  if (n == 0) return NULL;
  const void *c = base_arena_memdup(&m->arena, p, n);
  *ok = *ok && c;
  return c;
}

const ir_quant *ir_quant_copy(ir_module *m, const ir_quant *q) {
  assert(q && (q->n == 0 || (q->scales && q->zero_points)));
  bool ok = true;
  ir_quant *c = base_arena_memdup(&m->arena, q, sizeof *q);
  if (!c) return NULL;
  c->scales = quant_part(m, q->scales, q->n * sizeof *q->scales, &ok);
  c->zero_points = quant_part(m, q->zero_points, q->n * sizeof *q->zero_points, &ok);
  c->block_axes = quant_part(m, q->block_axes, q->n_blocks * sizeof *q->block_axes, &ok);
  c->block_sizes = quant_part(m, q->block_sizes, q->n_blocks * sizeof *q->block_sizes, &ok);
  c->grid_dims = quant_part(m, q->grid_dims, q->grid_rank * sizeof *q->grid_dims, &ok);
  return ok ? c : NULL;
}

/* Without anything of MLIR's own it is the same type that ir_tensor gives, so that such types stay pointer-equal.
 * Element and encoding texts must be interned in m. */
const ir_type *ir_tensor_mlir(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text,
                              uint32_t rank, const int64_t *dims, const bool *dynamic, const base_istr *encoding,
                              xlac_error *err) {
  if (!quant && !element_text && !encoding) return ir_tensor(m, dtype, rank, dims, dynamic, NULL, err);
  if (rank > IR_MAX_RANK) {
    base_fail(err, XLAC_E_TOO_LARGE, "a shape has %u dimensions; at most %d are allowed", rank, IR_MAX_RANK);
    return NULL;
  }
  ir_type key = {.kind = IR_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = rank, .dims = dims};
  key.quant = quant;
  key.text = element_text;
  key.encoding = encoding;
  if (ir_count_elements(dtype, rank, dims, &key.count, err) != 0) return NULL;
  for (uint32_t i = 0; dynamic && i < rank; i++) key.has_dynamic = key.has_dynamic || dynamic[i];
  key.dynamic = key.has_dynamic ? dynamic : NULL;
  const ir_type *t = ir_type_intern(m, &key);
  if (!t) base_oom(err, "a type");
  return t;
}

const ir_type *ir_unranked(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text) {
  ir_type key = {.kind = IR_TYPE_UNRANKED, .dtype = (uint8_t)dtype, .quant = quant, .text = element_text};
  return ir_type_intern(m, &key);
}

const ir_type *ir_element(ir_module *m, base_dtype dtype, const ir_quant *quant) {
  ir_type key = {.kind = IR_TYPE_ELEMENT, .dtype = (uint8_t)dtype, .quant = quant};
  return ir_type_intern(m, &key);
}

const ir_type *ir_future(ir_module *m, uint32_t n, const ir_type *const *elements) {
  ir_type key = {.kind = IR_TYPE_FUTURE, .n_elements = n, .elements = elements};
  return ir_type_intern(m, &key);
}

/* Inputs and results stand in one list, inputs first. */
const ir_type *ir_function_type(ir_module *m, uint32_t n_inputs, uint32_t n_results, const ir_type *const *inputs,
                                const ir_type *const *results) {
  const ir_type **all = BASE_ARRAY(&m->arena, const ir_type *, (size_t)n_inputs + n_results + 1);
  if (!all) return NULL;
  if (n_inputs) memcpy(all, inputs, n_inputs * sizeof *all);
  if (n_results) memcpy(all + n_inputs, results, n_results * sizeof *all);
  ir_type key = {.kind = IR_TYPE_FUNCTION, .n_elements = n_inputs + n_results, .elements = all, .n_inputs = n_inputs};
  return ir_type_intern(m, &key);
}

/* A type that xlac only passes through: equal where the texts are. */
const ir_type *ir_other_type(ir_module *m, const char *text, size_t n) {
  assert(text);
  ir_type key = {.kind = IR_TYPE_OTHER, .text = ir_intern(m, text, n)};
  return key.text ? ir_type_intern(m, &key) : NULL;
}
