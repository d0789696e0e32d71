/* Walks from a root to its producers with a map: which element of a producer an iteration needs, as an affine
 * function of the iteration for each of the producer's dimensions. Moves of indexes change the map and vanish; at
 * values in memory the map becomes the index of a load.
 *
 * For transpose(p) of f32[2,3] into f32[3,2] the iteration is (i0, i1), the map of p (i1, i0), and the load in0[0 +
 * 1*i0 + 3*i1]. A producer that is needed under two maps becomes two values; under one map it is computed once,
 * however many use it (lower_find). */
#include "lower_inside.h"

enum {
  LOWER_ROWS_LEAST = 1024,
  LOWER_ROWS_VALUES = 128, /* of a kernel that may be made in two ways */
  LOWER_SIDE_LEAST = 8     /* results side by side that are lanes */
};

int lower_no_memory(const lower_run *x) {
  return base_oom(x->err, "a kernel");
}

/* Offsets and coefficients in one block, so that two maps compare by one memcmp. */
lower_map *lower_new_map(lower_run *x, uint32_t n) {
  assert(x->rank <= KERNEL_MAX_RANK);
  lower_map *m = BASE_NEW(x->scratch, lower_map);
  size_t size = ((size_t)n * x->rank + n + 1) * sizeof(int64_t);
  if (!m || !(m->offset = base_arena_zalloc(x->scratch, size))) return NULL;
  m->n = n;
  m->coef = m->offset + n;
  return m;
}

/* Dimension d of the root (or of what it reduces) is iteration dimension place[d]. */
static const lower_map *lower_start(lower_run *x) {
  lower_map *m = lower_new_map(x, x->rank);
  for (uint32_t d = 0; m && d < x->rank; d++) m->coef[d * x->rank + x->place[d]] = 1;
  return m;
}

/* Dimension `to` of m is step * (dimension `from` of of) + start. */
void lower_set(const lower_run *x, lower_map *m, uint32_t to, const lower_map *of, uint32_t from, int64_t start,
               int64_t step) {
  m->offset[to] = start + step * of->offset[from];
  for (uint32_t k = 0; k < x->rank; k++) m->coef[to * x->rank + k] = step * of->coef[from * x->rank + k];
}

/* Dimension d of m is dimensions from to to - 1 of `of`, which op has, as one. */
static void lower_join(const lower_run *x, lower_map *m, uint32_t d, const lower_map *of, const ir_op *op,
                       uint32_t from, uint32_t to) {
  int64_t stride = 1;
  for (uint32_t j = to; j-- > from;) {
    m->offset[d] += stride * of->offset[j];
    for (uint32_t k = 0; k < x->rank; k++) m->coef[d * x->rank + k] += stride * of->coef[j * x->rank + k];
    stride *= op->type->dims[j];
  }
}

/* The map of op's operand, given that of op, which moves indexes. */
static const lower_map *lower_operand_map(lower_run *x, const ir_op *op, const lower_map *map) {
  assert(fusion_moves_index(op));
  const ir_type *t = ir_operand_type(op, 0);
  lower_map *m = lower_new_map(x, t->rank);
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const ir_attr *slice = ir_attr_find(op, IR_ATTR_SLICE);
  uint32_t from[IR_MAX_RANK], to[IR_MAX_RANK];
  if (op->opcode == IR_OP_RESHAPE) (void)fusion_reshape_groups(op, from, to);
  for (uint32_t d = 0; m && d < t->rank; d++) {
    bool reversed = false;
    switch (op->opcode) {
      case IR_OP_BROADCAST: /* an operand's dimension of size 1 stays at its only index */
        if (t->dims[d] != 1) lower_set(x, m, d, map, (uint32_t)dims->v[d], 0, 1);
        break;
      case IR_OP_TRANSPOSE:
        lower_set(x, m, (uint32_t)dims->v[d], map, d, 0, 1);
        break;
      case IR_OP_RESHAPE:
        lower_join(x, m, d, map, op, from[d], to[d]);
        break;
      case IR_OP_SLICE:
        lower_set(x, m, d, map, d, slice->v.slice->v[d].start, slice->v.slice->v[d].stride);
        break;
      default:
        assert(op->opcode == IR_OP_REVERSE);
        for (uint32_t i = 0; dims && i < dims->n; i++) reversed = reversed || dims->v[i] == d;
        lower_set(x, m, d, map, d, reversed ? t->dims[d] - 1 : 0, reversed ? -1 : 1);
    }
  }
  return m;
}

/* The map as an index into row-major memory of type t. */
kernel_index *lower_index(lower_run *x, const ir_type *t, const lower_map *map) {
  kernel_index *index = BASE_NEW(x->arena, kernel_index);
  int64_t stride = 1;
  for (uint32_t d = t->rank; index && d-- > 0;) {
    index->offset += stride * map->offset[d];
    for (uint32_t k = 0; k < x->rank; k++) index->strides[k] += stride * map->coef[d * x->rank + k];
    stride *= t->dims[d];
  }
  return index;
}

/* Pointer-equal maps are the common case. */
static bool lower_same_map(const lower_run *x, const lower_map *a, const lower_map *b) {
  return a == b ||
         (a->n == b->n && memcmp(a->offset, b->offset, ((size_t)a->n * x->rank + a->n) * sizeof(int64_t)) == 0);
}

/* A value that is defined only in a box does for wanted iterations within it. The latest entries are tried first. */
static bool lower_find(const lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  for (uint32_t i = x->done.n; i-- > 0;) {
    if (x->done.items[i].op != op || !lower_same_map(x, x->done.items[i].map, map)) continue;
    if (!kernel_box_has(x->k, x->values.items[x->done.items[i].value].box, x->box)) continue;
    *value = x->done.items[i].value;
    return true;
  }
  return false;
}

int lower_add(lower_run *x, const ir_op *op, const lower_map *map, const kernel_value *v, uint32_t *value) {
  *value = x->values.n;
  lower_entry e = {op, map, *value};
  if (!BASE_VEC_PUSH(x->alloc, &x->values, *v) || !BASE_VEC_PUSH(x->alloc, &x->done, e)) return lower_no_memory(x);
  return 0;
}

int lower_note(lower_run *x, const ir_op *op, const lower_map *map, uint32_t value) {
  lower_entry e = {op, map, value};
  return BASE_VEC_PUSH(x->alloc, &x->done, e) ? 0 : lower_no_memory(x);
}

int lower_number_input(lower_run *x, const ir_op *op, int32_t last, uint32_t *number) {
  for (*number = 0; *number < x->inputs.n; ++*number)
    if (x->inputs.items[*number].op == op && x->inputs.items[*number].last == last) return 0;
  fusion_input input = {op, last};
  return BASE_VEC_PUSH(x->alloc, &x->inputs, input) ? 0 : lower_no_memory(x);
}

/* Where the load would leave the array outside of the wanted iterations, it is defined in those alone. */
static int lower_load(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  int32_t last = lower_last_of(x, op, map);
  kernel_value v = {.kind = KERNEL_LOAD, .dtype = op->type->dtype};
  int64_t least = 0, most = 0;
  v.index = last < 0 ? lower_index(x, op->type, map) : lower_index_of_copy(x, op->type, (uint32_t)last, map);
  if (!v.index) return lower_no_memory(x);
  TRY(lower_number_input(x, op, last, &v.buffer));
  bool everywhere = kernel_load_reach(x->k, &v, &least, &most) && least >= 0 && most < op->type->count;
  if (!everywhere) v.box = x->box;
  return lower_add(x, op, map, &v, value);
}

/* The map of the counted dimension is the number itself. */
static int lower_iota(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  kernel_index *index = BASE_NEW(x->arena, kernel_index);
  if (!index) return lower_no_memory(x);
  int64_t d = ir_get_int(op, IR_ATTR_IOTA_DIMENSION, 0);
  index->offset = map->offset[d];
  for (uint32_t k = 0; k < x->rank; k++) index->strides[k] = map->coef[d * x->rank + k];
  kernel_value v = {.kind = KERNEL_COUNT_UP, .dtype = op->type->dtype, .index = index};
  return lower_add(x, op, map, &v, value);
}

/* Of a value made of the n in v->in: where all of them are. Operands were all made for the iterations that are wanted
 * now, so any box among them is x->box. */
static void lower_set_box(const lower_run *x, kernel_value *v) {
  for (uint32_t i = 0; i < v->n_in; i++)
    if (x->values.items[v->in[i]].box) v->box = x->box;
}

/* Scans are at the kernel's own iterations (fusion_scan_objects), so there is no box. */
static int lower_scan(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  kernel_value v = {.kind = KERNEL_SCAN, .dtype = op->type->dtype, .n_in = 2};
  kernel_index *index = BASE_NEW(x->arena, kernel_index);
  const lower_map *scalar = lower_new_map(x, 0);
  uint32_t along = 0;
  bool back = false;
  if (!index || !scalar) return lower_no_memory(x);
  v.op.code = (uint8_t)scalar_code_of((ir_opcode)fusion_scan(op, &along, &back)->opcode);
  index->offset = back ? op->type->dims[along] - 1 : 0;
  index->strides[x->place[along]] = back ? -1 : 1;
  v.index = index;
  TRY(lower_value(x, ir_operand(op, 0), map, &v.in[0]));
  TRY(lower_value(x, ir_operand(op, 1), scalar, &v.in[1]));
  assert(!x->box);
  return lower_add(x, op, map, &v, value);
}

/* Operands that were made for the op alone, which come last, go with it. */
static int lower_counted(lower_run *x, const ir_op *op, const lower_map *map, const kernel_index *index,
                         uint32_t n_values, uint32_t n_done, uint32_t *value) {
  kernel_value v = {.kind = KERNEL_CONSTANT, .dtype = op->type->dtype};
  char number[sizeof(int64_t)];
  for (uint32_t d = 0; d < x->rank; d++)
    if (index->strides[d]) v.kind = KERNEL_COUNT_UP;
  base_convert((base_dtype)v.dtype, number, XLAC_S64, &index->offset, 1);
  v.index = v.kind == KERNEL_COUNT_UP ? base_arena_memdup(x->arena, index, sizeof *index) : NULL;
  v.data = v.index ? NULL : base_arena_memdup(x->arena, number, base_dtype_bytes((base_dtype)v.dtype));
  if (!v.index && !v.data) return lower_no_memory(x);
  assert(n_values <= x->values.n && n_done <= x->done.n);
  x->values.n = n_values;
  x->done.n = n_done;
  return lower_add(x, op, map, &v, value);
}

static int lower_elementwise(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  kernel_value v = {.kind = KERNEL_OP, .dtype = op->type->dtype, .n_in = (uint8_t)op->n_operands, .origin = op->id};
  uint32_t n_values = x->values.n, n_done = x->done.n;
  kernel_index index;
  bool scalar = scalar_op_of(op, &v.op);
  assert(scalar && op->n_operands <= 3);
  (void)scalar;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    /* clamp's bounds and select's pred may be scalars beside an array */
    bool spread = ir_operand_type(op, i)->rank == 0 && op->type->rank != 0;
    const lower_map *m = spread ? lower_new_map(x, 0) : map;
    if (!m) return lower_no_memory(x);
    TRY(lower_value(x, ir_operand(op, i), m, &v.in[i]));
  }
  if (v.n_in && lower_is_count(x, &v, &index)) return lower_counted(x, op, map, &index, n_values, n_done, value);
  lower_set_box(x, &v);
  return lower_add(x, op, map, &v, value);
}

/* The kernel has its own copy of the element. */
static int lower_constant(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  kernel_value v = {.kind = KERNEL_CONSTANT, .dtype = op->type->dtype};
  assert(op->u.literal && !op->u.literal->elided);
  v.data = base_arena_memdup(x->arena, op->u.literal->data, base_dtype_bytes((base_dtype)v.dtype));
  return v.data ? lower_add(x, op, map, &v, value) : lower_no_memory(x);
}

/* Values of other roots are computed with the kernel's own, but sums, which are known when it is over. */
static bool lower_is_inside(const lower_run *x, const ir_op *op) {
  assert(op->id < op->parent->module->n_ids);
  if (op == x->root) return true;
  uint8_t role = x->f->of[op->id].role;
  if (role == FUSION_CHEAP) return true;
  return (role == FUSION_INNER || (role == FUSION_ROOT && op->opcode != IR_OP_REDUCE)) &&
         x->f->of[x->f->of[op->id].root->id].merged_first == x->f->of[x->root->id].merged_first;
}

/* Depth is at most the number of ops of a fusion, which fusion bounds. */
int lower_value(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value) {
  assert(op && map && map->n == op->type->rank && value);
  if (lower_find(x, op, map, value)) return 0;
  if (!lower_is_inside(x, op)) return lower_load(x, op, map, value);
  if (op->opcode == IR_OP_IOTA) return lower_iota(x, op, map, value);
  if (op->opcode == IR_OP_CONSTANT) return lower_constant(x, op, map, value);
  if (op->opcode == IR_OP_REDUCE_WINDOW) return lower_scan(x, op, map, value);
  if (op->opcode == IR_OP_PAD) return lower_pad(x, op, map, value);
  if (op->opcode == IR_OP_CONCATENATE) return lower_concatenate(x, op, map, value);
  if (op->opcode == IR_OP_DYNAMIC_SLICE) return lower_dynamic_slice(x, op, map, value);
  if (op->opcode == IR_OP_GATHER) return lower_gather(x, op, map, value);
  if (!fusion_moves_index(op)) return lower_elementwise(x, op, map, value);
  const lower_map *m = lower_operand_map(x, op, map);
  if (!m) return lower_no_memory(x);
  TRY(lower_value(x, ir_operand(op, 0), m, value));
  return lower_note(x, op, map, *value);
}

/* All indexes of the kernel, of which some values share none. Each value has an index of its own, so none is changed
 * twice. */
static int lower_collapse(lower_run *x, kernel *k) {
  kernel_index **indexes = BASE_ARRAY(x->scratch, kernel_index *, (size_t)x->values.n + k->n_stores);
  uint32_t n = 0;
  if (!indexes) return lower_no_memory(x);
  for (uint32_t i = 0; i < x->values.n; i++)
    if (x->values.items[i].index) indexes[n++] = (kernel_index *)(uintptr_t)x->values.items[i].index;
  for (uint32_t i = 0; i < k->n_stores; i++) indexes[n++] = &k->stores[i].index;
  kernel_collapse(k, n, indexes, x->boxes.n, x->boxes.items);
  return 0;
}

/* Values and inputs leave the scratch vectors for the kernel's arena. */
static int lower_finish(lower_run *x, kernel *k, const fusion_input **inputs) {
  assert(x->values.n > 0);
  const ir_type *t = x->space;
  k->count = t->count;
  k->n_values = x->values.n;
  k->n_inputs = x->inputs.n;
  k->values = base_arena_memdup(x->arena, x->values.items, x->values.n * sizeof *x->values.items);
  *inputs = base_arena_memdup(x->arena, x->inputs.items, x->inputs.n * sizeof *x->inputs.items);
  if (!k->values || !*inputs) return lower_no_memory(x);
  return lower_collapse(x, k);
}

/* Row-major over the iterations that `keep` marks; 0 along the others. */
static void lower_add_store(const lower_run *x, kernel *k, kernel_store s, const bool *reduced) {
  assert(s.value < x->values.n);
  int64_t stride = 1;
  s.buffer = k->n_stores;
  for (uint32_t d = x->space->rank; d-- > 0;) {
    if (reduced[d] && s.by) continue;
    s.index.strides[x->place[d]] = stride;
    stride *= x->space->dims[d];
  }
  assert(k->n_stores < KERNEL_MAX_STORES);
  k->stores[k->n_stores++] = s;
}

/* Outer, reduced, inner dimensions. Inner ones are those that lie innermost in memory where they are kept; and all kept
 * ones where little is reduced, so that lanes are elements of the result, unless the kernel goes by rows. */
static void lower_order_reduction(lower_run *x, const bool *reduced, kernel_reduction *r) {
  const ir_type *t = x->space;
  uint32_t rank = t->rank, next = 0, inner_from = rank;
  r->outer = r->reduced = r->inner = 1;
  for (uint32_t d = 0; d < rank; d++)
    if (reduced[d]) r->reduced *= t->dims[d];
  while (inner_from > 0 && !reduced[inner_from - 1]) inner_from--;
  if (x->way == LOWER_ALONG) inner_from = rank;
  bool all = r->reduced < FUSION_SHORT && x->way != LOWER_BY_ROWS;
  for (uint32_t d = 0; d < rank; d++) {
    if (reduced[d] || (all || d >= inner_from)) continue;
    x->place[d] = next++;
    r->outer *= t->dims[d];
  }
  for (uint32_t d = 0; d < rank; d++)
    if (reduced[d]) x->place[d] = next++;
  for (uint32_t d = 0; d < rank; d++) {
    if (reduced[d] || !(all || d >= inner_from)) continue;
    x->place[d] = next++;
    r->inner *= t->dims[d];
  }
}

/* What the root stores: its value at every iteration, or the combination of its operand's. */
static int lower_root(lower_run *x, const ir_op *root, kernel *k, const lower_map *map, const bool *reduced) {
  const ir_op *combiner = fusion_reduction(root);
  kernel_store s = {.by = combiner ? scalar_code_of((ir_opcode)combiner->opcode) : SCALAR_NONE};
  x->root = root;
  if (s.by) {
    const lower_map *scalar = lower_new_map(x, 0);
    if (!scalar) return lower_no_memory(x);
    TRY(lower_value(x, ir_operand(root, 1), scalar, &s.init));
  }
  TRY(lower_value(x, s.by ? ir_operand(root, 0) : root, map, &s.value));
  lower_add_store(x, k, s, reduced);
  return 0;
}

/* The root that says over what the kernel iterates: one that reduces, if any does. Sums iterate over their operands,
 * which are what the other stores have an element of each. */
static const ir_op *lower_shaper(const lower_run *x, const ir_op *first) {
  for (const ir_op *op = first; op; op = x->f->of[op->id].merged_next)
    if (fusion_reduction(op)) return op;
  return first;
}

/* The iteration space first, then the values of each root, then what is left to do with all of them. */
static int lower_kernel(lower_run *x, const ir_op *first, kernel *k, const fusion_input **inputs) {
  assert(first && (x->f->of[first->id].role == FUSION_ROOT || x->f->of[first->id].role == FUSION_CHEAP));
  bool reduced[KERNEL_MAX_RANK] = {false};
  const ir_op *shaper = lower_shaper(x, first);
  bool reduces = fusion_reduction(shaper) != NULL;
  const ir_ints *dims = reduces ? ir_get_ints(shaper, IR_ATTR_DIMENSIONS) : NULL;
  x->space = reduces ? ir_operand_type(shaper, 0) : shaper->type;
  x->rank = x->space->rank;
  for (uint32_t d = 0; d < x->rank; d++) x->place[d] = d;
  if (reduces) {
    kernel_reduction *r = BASE_NEW(x->arena, kernel_reduction);
    if (!r) return lower_no_memory(x);
    for (uint32_t i = 0; i < dims->n; i++) reduced[dims->v[i]] = true;
    lower_order_reduction(x, reduced, r);
    k->reduction = r;
  }
  x->k = k;
  k->rank = x->rank;
  for (uint32_t d = 0; d < x->rank; d++) k->extents[x->place[d]] = x->space->dims[d];
  const lower_map *map = lower_start(x);
  if (!map) return lower_no_memory(x);
  for (const ir_op *op = first; op; op = x->f->of[op->id].merged_next) TRY(lower_root(x, op, k, map, reduced));
  return lower_finish(x, k, inputs);
}

/* *out may be a kernel in part when this fails; it lies in the arena and goes with that. */
static int lower_once(const fusion_plan *f, const ir_op *root, lower_way way, base_arena *arena, kernel **out,
                      const fusion_input **inputs, xlac_error *err) {
  base_arena scratch;
  lower_run x = {.f = f, .arena = arena, .scratch = &scratch, .alloc = arena->alloc, .way = way, .err = err};
  uint32_t stores = 0;
  kernel *k = BASE_NEW(arena, kernel);
  base_arena_init(&scratch, arena->alloc);
  for (const ir_op *op = root; op; op = f->of[op->id].merged_next) stores++;
  if (k) k->stores = BASE_ARRAY(arena, kernel_store, stores);
  int status = !k || !k->stores ? lower_no_memory(&x) : lower_kernel(&x, root, k, inputs);
  base_arena_free(&scratch);
  BASE_VEC_FREE(x.alloc, &x.done);
  BASE_VEC_FREE(x.alloc, &x.values);
  BASE_VEC_FREE(x.alloc, &x.inputs);
  BASE_VEC_FREE(x.alloc, &x.boxes);
  *out = k;
  return status;
}

/* Whether k reduces few elements each, which are neighbours in what the root reads, to many results. */
static bool lower_has_short_rows(const kernel *k, const ir_op *root) {
  const kernel_reduction *r = k->reduction;
  if (!r || k->n_stores != 1 || r->outer != 1 || r->reduced < 2 || r->reduced >= FUSION_SHORT ||
      k->n_values > LOWER_ROWS_VALUES)
    return false;
  const ir_ints *dims = ir_get_ints(root, IR_ATTR_DIMENSIONS);
  uint32_t rank = ir_operand_type(root, 0)->rank, last = 0;
  for (uint32_t i = 0; i < dims->n; i++) last += (uint32_t)dims->v[i] >= rank - dims->n;
  return last == dims->n && k->count >= LOWER_ROWS_LEAST;
}

/* Loads that take their lanes one by one count double, those of short rows once. */
static uint32_t lower_count_slow(const kernel *k) {
  uint32_t slow = 0;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_LOAD || kernel_is_constant(k, v->index) || kernel_is_dense(k, v->index)) continue;
    int64_t stride = k->rank ? v->index->strides[k->rank - 1] : 0;
    slow += stride != 0 && stride != 1 ? 2 : k->extents[k->rank - 1] < FUSION_SHORT;
  }
  return slow;
}

/* Few results side by side, of many elements each, that are computed from arrays with other dimensions. */
static bool lower_has_few_results(const kernel *k) {
  const kernel_reduction *r = k->reduction;
  return r && k->n_stores == 1 && r->inner > 1 && r->inner < LOWER_SIDE_LEAST && r->reduced >= FUSION_SHORT &&
         k->n_values <= LOWER_ROWS_VALUES && lower_count_slow(k);
}

/* Sums of short rows: lanes are results, which lie far apart in memory, or elements as stored, whichever has fewer
 * slow loads. The order in which a result is combined is the same. Sums of long columns that are few: lanes are
 * elements of one result where rows would not be read as they lie. */
int fusion_lower(const fusion_plan *f, const ir_op *root, base_arena *arena, kernel **out, const fusion_input **inputs,
                 xlac_error *err) {
  assert(f && root && arena && out && inputs);
  kernel *other = NULL;
  const fusion_input *others = NULL;
  TRY(lower_once(f, root, LOWER_AS_STORED, arena, out, inputs, err));
  if (lower_has_few_results(*out)) return lower_once(f, root, LOWER_ALONG, arena, out, inputs, err);
  if (!lower_has_short_rows(*out, root) || !lower_count_slow(*out)) return 0;
  TRY(lower_once(f, root, LOWER_BY_ROWS, arena, &other, &others, err));
  if (lower_count_slow(other) >= lower_count_slow(*out)) return 0;
  *out = other;
  *inputs = others;
  return 0;
}
