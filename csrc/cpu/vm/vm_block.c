/* One block of lanes: where its values lie, and the loops that gather, count, fill and compute them. vm_compute is
 * the heart of the machine; everything above it serves one of the places that vm_inside.h lists. */
#include "vm_walk.h"

enum { VM_SHORT_ROW = 63 };

/* n elements that are `stride` apart become neighbours. Elements are moved as integers of their size. */
#define VM_STRIDED(type)                                    \
  do {                                                      \
    const type *f = from;                                   \
    type *t = to;                                           \
    if (stride == 1 && n > 32)                              \
      memcpy(t, f, (size_t)n * sizeof *t);                  \
    else if (stride == 1)                                   \
      for (int64_t i = 0; i < n; i++) t[i] = f[i];          \
    else                                                    \
      for (int64_t i = 0; i < n; i++) t[i] = f[i * stride]; \
  } while (0)

/* bytes: of an element. */
static void vm_copy_run(size_t bytes, int64_t n, const void *from, int64_t stride, void *to) {
  switch (bytes) {
    case 1:
      VM_STRIDED(uint8_t);
      break;
    case 2:
      VM_STRIDED(uint16_t);
      break;
    case 4:
      VM_STRIDED(uint32_t);
      break;
    case 8:
      VM_STRIDED(uint64_t);
      break;
    default:
      VM_STRIDED(vm_16);
  }
}

/* Whole short rows: rows and columns are so many elements apart. Random numbers of keys come as [n,2] and [n,1], and a
 * row by itself takes longer to find than to copy. */
#define VM_ROWS_OF(type, width)                               \
  for (int64_t r = 0; r < rows; r++, f += down, t += (width)) \
    for (int64_t c = 0; c < (width); c++) t[c] = f[c * across]
/* Neighbours, and one element repeated: vectors. */
#define VM_ROWS_ACROSS(step)                              \
  for (int64_t r = 0; r < rows; r++, f += down, t += row) \
    for (int64_t c = 0; c < row; c++) t[c] = f[c * (step)]
#define VM_ROWS(type)        \
  do {                       \
    const type *f = from;    \
    type *restrict t = to;   \
    if (row == 1)            \
      VM_ROWS_OF(type, 1);   \
    else if (row == 2)       \
      VM_ROWS_OF(type, 2);   \
    else if (row == 3)       \
      VM_ROWS_OF(type, 3);   \
    else if (row == 4)       \
      VM_ROWS_OF(type, 4);   \
    else if (across == 0)    \
      VM_ROWS_ACROSS(0);     \
    else if (across == 1)    \
      VM_ROWS_ACROSS(1);     \
    else                     \
      VM_ROWS_OF(type, row); \
  } while (0)

/* row: elements of one row. down, across: from a row to the next, and from an element to the next, in the input. */
static void vm_copy_rows(size_t bytes, int64_t rows, int64_t row, const void *from, int64_t down, int64_t across,
                         void *to) {
  switch (bytes) {
    case 1:
      VM_ROWS(uint8_t);
      break;
    case 2:
      VM_ROWS(uint16_t);
      break;
    case 4:
      VM_ROWS(uint32_t);
      break;
    case 8:
      VM_ROWS(uint64_t);
      break;
    default:
      VM_ROWS(vm_16);
  }
}

/* How many whole rows begin at `index` and follow each other along the dimension above, of n elements. 0 where the
 * index is within a row, or rows are long enough to be copied one by one. */
static int64_t vm_rows_at(const kernel *k, const int64_t *index, int64_t n) {
  const uint32_t inner = k->rank - 1;
  if (inner == 0 || index[inner] != 0 || k->extents[inner] > VM_SHORT_ROW) return 0;
  int64_t rows = n / k->extents[inner], left = k->extents[inner - 1] - index[inner - 1];
  return rows < left ? rows : left;
}

/* Run by run along the innermost dimension; several whole short rows at once where there is no box to look at. */
void vm_gather(const kernel *k, const kernel_value *v, const char *from, int64_t at, int64_t n, char *to) {
  int64_t index[KERNEL_MAX_RANK];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  uint32_t inner = k->rank - 1;
  assert(k->rank > 0);
  assert(at >= 0 && n >= 0 && at + n <= k->count);
  vm_locate(k, at, index);
  while (n > 0) {
    int64_t run = k->extents[inner] - index[inner], first = 0, end = 0, stride = v->index->strides[inner];
    int64_t rows = v->box ? 0 : vm_rows_at(k, index, n);
    if (rows > 1) {
      vm_copy_rows(bytes, rows, run, from + vm_offset(k, v->index, index) * (int64_t)bytes,
                   v->index->strides[inner - 1], stride, to);
      to += rows * run * (int64_t)bytes;
      n -= rows * run;
      index[inner - 1] += rows;
      vm_carry_above(k, inner - 1, index);
      continue;
    }
    if (run > n) run = n;
    if (vm_run_in_box(k, v->box, index, run, &first, &end))
      vm_copy_run(bytes, end - first, from + (vm_offset(k, v->index, index) + first * stride) * (int64_t)bytes, stride,
                  to + first * (int64_t)bytes);
    to += run * (int64_t)bytes;
    n -= run;
    index[inner] += run;
    vm_carry(k, index);
  }
}

/* n numbers from `first` on, `by` apart. Eight go along together, so that a vector of them is one addition: baseline
 * x86-64 has no multiplication of 32-bit lanes. */
#define VM_COUNT(T, AS)                                                      \
  static void vm_count_##T(uint32_t first, uint32_t by, uint32_t n, T *to) { \
    uint32_t next[8], i = 0;                                                 \
    for (uint32_t k = 0; k < 8; k++) next[k] = first + k * by;               \
    for (; n - i >= 8; i += 8)                                               \
      for (uint32_t k = 0; k < 8; k++) {                                     \
        to[i + k] = (T)(AS)next[k];                                          \
        next[k] += 8 * by;                                                   \
      }                                                                      \
    for (uint32_t k = 0; i + k < n; k++) to[i + k] = (T)(AS)next[k];         \
  }
VM_COUNT(float, int32_t)
VM_COUNT(uint32_t, uint32_t)
#undef VM_COUNT

/* The row as s32 or f32, where all its numbers fit an int32_t; false: it isn't done. Integers are rounded to f32
 * once, here as in base_convert. */
static bool vm_count_short(base_dtype dtype, int64_t first, int64_t step, int64_t n, char *to) {
  if (n > INT32_MAX || first < INT32_MIN || first > INT32_MAX || step < INT32_MIN || step > INT32_MAX) return false;
  int64_t last = first + (n - 1) * step;
  if (last < INT32_MIN || last > INT32_MAX) return false;
  if (dtype == XLAC_F32)
    vm_count_float((uint32_t)first, (uint32_t)step, (uint32_t)n, (float *)(void *)to);
  else if (dtype == XLAC_S32)
    vm_count_uint32_t((uint32_t)first, (uint32_t)step, (uint32_t)n, (uint32_t *)(void *)to);
  return dtype == XLAC_F32 || dtype == XLAC_S32;
}

/* n numbers of one row, all the same where step is 0. */
static void vm_count_row(base_dtype dtype, int64_t first, int64_t step, int64_t n, char *to) {
  int64_t numbers[128];
  size_t bytes = base_dtype_bytes(dtype);
  if (step == 0) {
    char one[16];
    assert(bytes <= sizeof one);
    base_convert(dtype, one, XLAC_S64, &first, 1);
    vm_fill(bytes, one, n, to);
    return;
  }
  if (vm_count_short(dtype, first, step, n, to)) return;
  for (int64_t at = 0; at < n; at += 128) {
    int64_t block = n - at < 128 ? n - at : 128;
    for (int64_t i = 0; i < block; i++) numbers[i] = first + (at + i) * step;
    base_convert(dtype, to + at * (int64_t)bytes, XLAC_S64, numbers, (size_t)block);
  }
}

/* Iota: the index v->index as a number of v's type, row by row. */
void vm_count_up(const kernel *k, const kernel_value *v, int64_t at, int64_t n, char *to) {
  int64_t index[KERNEL_MAX_RANK], bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  int64_t step = k->rank ? v->index->strides[k->rank - 1] : 0, row = k->rank ? k->extents[k->rank - 1] : 1;
  vm_locate(k, at, index);
  while (n > 0) {
    int64_t left = k->rank ? row - index[k->rank - 1] : 1, block = n < left ? n : left;
    vm_count_row((base_dtype)v->dtype, vm_offset(k, v->index, index), step, block, to);
    if (k->rank) {
      index[k->rank - 1] += block;
      vm_carry(k, index);
    }
    to += block * bytes;
    n -= block;
  }
}

#define VM_FILL(type)                         \
  do {                                        \
    type v, *t = (type *)(void *)to;          \
    memcpy(&v, from, sizeof v);               \
    for (int64_t i = 0; i < n; i++) t[i] = v; \
  } while (0)

/* n copies of one element. */
void vm_fill(size_t bytes, const void *from, int64_t n, char *to) {
  switch (bytes) {
    case 1:
      VM_FILL(uint8_t);
      break;
    case 2:
      VM_FILL(uint16_t);
      break;
    case 4:
      VM_FILL(uint32_t);
      break;
    case 8:
      VM_FILL(uint64_t);
      break;
    default:
      VM_FILL(vm_16);
  }
}

/* What was loaded or computed in v's type, in the type of lanes, which is f32 for all narrow floats. */
static void vm_widen(const kernel_value *v, const void *from, int64_t n, void *to) {
  base_convert(XLAC_F32, to, (base_dtype)v->dtype, from, (size_t)n);
}

/* One lane of a splat. `to` has room for it where it must be computed; a constant or a load is returned where it
 * lies. */
static const void *vm_splat_lane(const vm_block *b, uint32_t i, void *to) {
  const kernel_value *v = &b->vm->k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  const void *in[3] = {NULL, NULL, NULL}, *from = v->data;
  char narrow[16] __attribute__((aligned(16)));
  for (uint32_t j = 0; j < v->n_in; j++) in[j] = b->values[v->in[j]];
  if (v->kind == KERNEL_LOAD)
    from = vm_input(b->vm->k, v, b->in[v->buffer], in) +
           v->index->offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  if (v->kind == KERNEL_OP) {
    scalar_loop_run(inst->wide ? inst->wide : &inst->loop, 1, in, inst->widens ? narrow : to);
    from = inst->widens ? narrow : to;
  }
  if (!inst->widens) return from;
  vm_widen(v, from, 1, to);
  return to;
}

/* The row, as often as blocks of n lanes reach wherever in it they begin: n + row lanes. Doubling what is there
 * fills them in a few copies. */
static void vm_fill_cycle(const vm_block *b, uint32_t i, int64_t n) {
  assert(b->vm->cycle > 0 && n <= b->vm->lanes);
  const kernel *k = b->vm->k;
  const kernel_value *v = &k->values[i];
  int64_t row = b->vm->cycle, bytes = (int64_t)base_dtype_bytes((base_dtype)b->vm->insts[i].lane), filled = row;
  char *to = b->regs + b->vm->insts[i].reg * b->vm->reg_bytes, narrow[VM_MAX_LANES * 2];
  bool widens = b->vm->insts[i].widens;
  vm_gather(k, v, b->in[v->buffer], 0, row, widens ? narrow : to);
  if (widens) vm_widen(v, narrow, row, to);
  for (int64_t wanted = n + row; filled < wanted; filled *= 2)
    memcpy(to + filled * bytes, to, (size_t)((filled < wanted - filled ? filled : wanted - filled) * bytes));
}

/* A splat that is used as a number only (inst->number) is one lane, not a register full. */
static void vm_fill_value(const vm_block *b, uint32_t i, int64_t n) {
  const vm_inst *inst = &b->vm->insts[i];
  if (inst->place == VM_CYCLE) vm_fill_cycle(b, i, n);
  if (inst->place != VM_SPLAT) return;
  char *to = b->regs + inst->reg * b->vm->reg_bytes;
  char lane[16] __attribute__((aligned(16)));
  b->values[i] = vm_splat_lane(b, i, inst->number ? to : lane);
  if (inst->number) return;
  vm_fill(base_dtype_bytes((base_dtype)inst->lane), b->values[i], n, to);
  b->values[i] = to;
}

/* Before the first block. */
void vm_fill_splats(const vm_block *b, int64_t n) {
  for (uint32_t i = 0; i < b->vm->k->n_values; i++) vm_fill_value(b, i, n);
}

void vm_fill_inits(const vm_block *b, int64_t n) {
  const kernel *k = b->vm->k;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    if (s->by && (k->values[s->init].n_in || b->vm->insts[s->init].place != VM_SPLAT)) {
      vm_fill_splats(b, n); /* it is made of others */
      return;
    }
    if (s->by) vm_fill_value(b, s->init, n);
  }
}

/* Blocks end where rows end in kernels that read rows where they are. */
int64_t vm_next_block(const cpu_vm *vm, int64_t at, int64_t end) {
  int64_t n = end - at < vm->lanes ? end - at : vm->lanes;
  assert(at < end);
  if (!vm->rows) return n;
  int64_t row = vm->k->extents[vm->k->rank - 1], left = row - at % row;
  return n < left ? n : left;
}

/* A block's iterations at..at+n; first and last are their indexes, where rows or edges matter. in_cycle: where in
 * its row the block begins, in kernels of VM_CYCLE. */
typedef struct vm_span {
  int64_t at, n, in_cycle, first[KERNEL_MAX_RANK], last[KERNEL_MAX_RANK];
} vm_span;

/* How much of a block is in a box. */
typedef enum vm_side { VM_OUT, VM_PART, VM_IN } vm_side;

/* The smallest box around a block's iterations is compared with b: dimensions inside of one in which the block
 * goes on are gone through as a whole. VM_PART may be said of a block that is in fact outside; it is then done run
 * by run. */
static vm_side vm_side_of(const kernel *k, const kernel_box *b, const vm_span *s) {
  vm_side side = VM_IN;
  bool goes_on = false;
  for (uint32_t d = 0; b && d < k->rank; d++) {
    int64_t from = goes_on ? 0 : s->first[d], to = goes_on ? k->extents[d] : s->last[d] + 1;
    if (to <= b->from[d] || from >= b->to[d]) return VM_OUT;
    if (from < b->from[d] || to > b->to[d]) side = VM_PART;
    goes_on = goes_on || s->first[d] != s->last[d];
  }
  return side;
}

/* Where the input of a load begins for this block, computed places included: they are the same at every iteration. */
static const char *vm_begin(const vm_block *b, const kernel_value *v) {
  const void *in[3] = {NULL, NULL, NULL};
  for (uint32_t j = 0; j < v->n_in; j++) in[j] = b->values[v->in[j]];
  return vm_input(b->vm->k, v, b->in[v->buffer], in);
}

/* Where the block's first element lies, of a load that is dense or goes by rows. */
static const char *vm_memory(const vm_block *b, const kernel_value *v, const vm_span *s) {
  int64_t offset = b->vm->rows ? vm_offset(b->vm->k, v->index, s->first) : v->index->offset + s->at;
  return vm_begin(b, v) + offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
}

/* A load that needs no gathering: seen where it is, widened, or one number repeated over the block. */
static const void *vm_load(const vm_block *b, uint32_t i, const vm_span *s) {
  const kernel_value *v = &b->vm->k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  const void *from = vm_memory(b, v, s);
  char *to = b->regs + inst->reg * b->vm->reg_bytes, lane[16] __attribute__((aligned(16)));
  if (inst->place != VM_ONE) {
    if (!inst->widens) return from;
    vm_widen(v, from, s->n, to);
    return to;
  }
  if (inst->widens) {
    vm_widen(v, from, 1, inst->number ? (void *)to : lane);
    from = inst->number ? (const void *)to : lane;
  }
  if (inst->number) return from;
  vm_fill(base_dtype_bytes((base_dtype)inst->lane), from, s->n, to);
  return to;
}

/* A block that is partly in the box picked for: all lanes of the second operand, and over them, run by run, those
 * of the first that are in the box. */
static void vm_mix(const vm_block *b, uint32_t i, const vm_span *s, char *to) {
  const kernel *k = b->vm->k;
  const kernel_value *v = &k->values[i];
  size_t bytes = base_dtype_bytes((base_dtype)b->vm->insts[i].lane);
  const char *in = b->values[v->in[0]];
  int64_t index[KERNEL_MAX_RANK], n = s->n;
  assert(k->rank > 0 && v->kind == KERNEL_PICK);
  memcpy(index, s->first, sizeof index);
  memcpy(to, b->values[v->in[1]], (size_t)n * bytes);
  while (n > 0) {
    int64_t run = k->extents[k->rank - 1] - index[k->rank - 1], from = 0, end = 0;
    if (run > n) run = n;
    if (vm_run_in_box(k, v->pick, index, run, &from, &end))
      memcpy(to + (size_t)from * bytes, in + (size_t)from * bytes, (size_t)(end - from) * bytes);
    to += (size_t)run * bytes;
    in += (size_t)run * bytes;
    n -= run;
    index[k->rank - 1] += run;
    vm_carry(k, index);
  }
}

/* A pick is what it picks from, seen where that is, unless the block has some of both. Pads and concatenations are
 * picks, so most of their blocks cost nothing. */
static const void *vm_pick(const vm_block *b, uint32_t i, const vm_span *s, char *to) {
  const kernel_value *v = &b->vm->k->values[i];
  vm_side side = vm_side_of(b->vm->k, v->pick, s);
  if (side != VM_PART) return b->values[v->in[side == VM_IN ? 0 : 1]];
  vm_mix(b, i, s, to);
  return to;
}

/* An op, a gathered load, a scan or a counting up: in the value's own type first where it widens. */
static void vm_make_lanes(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *wide) {
  const kernel *k = b->vm->k;
  const kernel_value *v = &k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  char narrow[VM_MAX_LANES * 2] __attribute__((aligned(64))), *to = inst->widens ? narrow : wide;
  if (v->kind == KERNEL_LOAD && inst->gathers) {
    vm_load_each(b, i, at, n, to);
  } else if (v->kind == KERNEL_LOAD) {
    vm_gather(k, v, vm_begin(b, v), at, n, to);
  } else if (v->kind == KERNEL_SCAN) {
    vm_scan(b, i, at, n, to);
  } else if (v->kind == KERNEL_COUNT_UP) {
    vm_count_up(k, v, at, n, to);
  } else {
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t j = 0; j < inst->n_in; j++) in[j] = b->values[inst->in[j]];
    if (inst->chain)
      vm_run_chain(b, inst->chain, n, to);
    else if (inst->fast)
      inst->fast(n, in, to);
    else
      scalar_loop_run(inst->wide ? inst->wide : &inst->loop, n, in, to);
  }
  if (inst->widens) vm_widen(v, narrow, n, wide);
}

/* Where the lanes of value i are to be made; NULL: they are there, or nobody needs them (a load outside of its
 * box, which a pick leaves out). In any case b->values[i] is set. */
static char *vm_lanes_of(const vm_block *b, uint32_t i, const vm_span *s) {
  const kernel *k = b->vm->k;
  const vm_inst *inst = &b->vm->insts[i];
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)inst->lane);
  char *to = b->regs + inst->reg * b->vm->reg_bytes;
  if (inst->place == VM_CYCLE) {
    b->values[i] = to + s->in_cycle * bytes;
    return NULL;
  }
  vm_side side = inst->edged ? vm_side_of(k, k->values[i].box, s) : VM_IN;
  b->values[i] = to;
  if (side == VM_OUT) return NULL;
  if (k->values[i].kind == KERNEL_PICK) {
    b->values[i] = vm_pick(b, i, s, to);
    return NULL;
  }
  if (inst->place == VM_ONE || (inst->place != VM_REGISTER && side == VM_IN)) {
    b->values[i] = vm_load(b, i, s);
    return NULL;
  }
  if (inst->to_output && !b->streams) {
    const kernel_store *store = &k->stores[inst->to_output - 1];
    to = (char *)b->out[store->buffer] + (store->index.offset + s->at) * bytes;
    b->values[i] = to;
  }
  return to;
}

/* One step's worth of the lines that will be read next. */
static void vm_fetch(cpu_vm_ahead *a) {
  int64_t end = a->at + a->step < a->bytes ? a->at + a->step : a->bytes;
  for (uint32_t i = 0; i < a->n; i++)
    for (int64_t at = a->at; at < end; at += 64) {
      if (a->far)
        __builtin_prefetch(a->from[i] + at, 0, 2);
      else
        __builtin_prefetch(a->from[i] + at);
    }
  a->at = end;
}

/* One instruction after another over the whole block, so that each loop runs over neighbours in the cache. */
void vm_compute(const vm_block *b, int64_t at, int64_t n) {
  vm_span s;
  assert(n > 0 && n <= b->vm->lanes);
  s.at = at;
  s.n = n;
  if (b->vm->rows || b->vm->edges) vm_locate(b->vm->k, at, s.first);
  if (b->vm->edges) vm_locate(b->vm->k, at + n - 1, s.last);
  s.in_cycle = b->vm->cycle ? at % b->vm->cycle : 0;
  for (uint32_t j = 0; j < b->vm->n_visits; j++) {
    uint32_t i = b->vm->visits[j];
    char *to = vm_lanes_of(b, i, &s);
    if (to) vm_make_lanes(b, i, at, n, to);
    if (b->ahead && b->vm->insts[i].place == VM_REGISTER && b->ahead->at < b->ahead->bytes) vm_fetch(b->ahead);
  }
}
