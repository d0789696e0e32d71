/* Blocks of lanes. */
#include "vm_inside.h"

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

typedef struct vm_16 {
  uint64_t v[2];
} vm_16;

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

/* Where an iteration is: its index in each dimension. */
static void vm_locate(const kernel *k, int64_t at, int64_t *index) {
  for (uint32_t d = k->rank; d-- > 0;) {
    index[d] = at % k->extents[d];
    at /= k->extents[d];
  }
}

static int64_t vm_offset(const kernel *k, const kernel_index *x, const int64_t *index) {
  int64_t offset = x->offset;
  for (uint32_t d = 0; d < k->rank; d++) offset += x->strides[d] * index[d];
  return offset;
}

/* The next run along the innermost dimension begins where this one ends. */
static void vm_carry(const kernel *k, int64_t *index) {
  for (uint32_t d = k->rank; d-- > 0;) {
    if (index[d] < k->extents[d]) return;
    index[d] = 0;
    if (d > 0) index[d - 1]++;
  }
}

void vm_gather(const kernel *k, const kernel_value *v, const char *from, int64_t at, int64_t n, char *to) {
  int64_t index[KERNEL_MAX_RANK];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  uint32_t inner = k->rank - 1;
  assert(k->rank > 0);
  vm_locate(k, at, index);
  while (n > 0) {
    int64_t run = k->extents[inner] - index[inner];
    if (run > n) run = n;
    vm_copy_run(bytes, run, from + vm_offset(k, v->index, index) * (int64_t)bytes, v->index->strides[inner], to);
    to += run * (int64_t)bytes;
    n -= run;
    index[inner] += run;
    vm_carry(k, index);
  }
}

void vm_count_up(const kernel *k, const kernel_value *v, int64_t at, int64_t n, char *to) {
  int64_t index[KERNEL_MAX_RANK], numbers[128];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  int64_t step = k->rank ? v->index->strides[k->rank - 1] : 0, row = k->rank ? k->extents[k->rank - 1] : 1;
  vm_locate(k, at, index);
  while (n > 0) {
    int64_t block = n < 128 ? n : 128, left = k->rank ? row - index[k->rank - 1] : 1;
    if (block > left) block = left;
    int64_t first = vm_offset(k, v->index, index);
    for (int64_t i = 0; i < block; i++) numbers[i] = first + i * step;
    if (k->rank) {
      index[k->rank - 1] += block;
      vm_carry(k, index);
    }
    base_convert((base_dtype)v->dtype, to, XLAC_S64, numbers, (size_t)block);
    to += block * (int64_t)bytes;
    n -= block;
  }
}

#define VM_FILL(type)                         \
  do {                                        \
    type v, *t = (type *)(void *)to;          \
    memcpy(&v, from, sizeof v);               \
    for (int64_t i = 0; i < n; i++) t[i] = v; \
  } while (0)

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

/* What was loaded or computed in v's type, in the type of lanes. */
static void vm_widen(const kernel_value *v, const void *from, int64_t n, void *to) {
  base_convert(XLAC_F32, to, (base_dtype)v->dtype, from, (size_t)n);
}

/* One lane of a splat. `to` has room for it where it must be computed. */
static const void *vm_splat_lane(const vm_block *b, uint32_t i, void *to) {
  const kernel_value *v = &b->vm->k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  const void *in[3] = {NULL, NULL, NULL}, *from = v->data;
  char narrow[16] __attribute__((aligned(16)));
  if (v->kind == KERNEL_LOAD)
    from = (const char *)b->in[v->buffer] + v->index->offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  if (v->kind == KERNEL_OP) {
    for (uint32_t j = 0; j < v->n_in; j++) in[j] = b->values[v->in[j]];
    interp_loop_run(inst->wide ? inst->wide : &inst->loop, 1, in, inst->widens ? narrow : to);
    from = inst->widens ? narrow : to;
  }
  if (!inst->widens) return from;
  vm_widen(v, from, 1, to);
  return to;
}

/* The row, as often as blocks of n lanes reach wherever in it they begin. */
static void vm_fill_cycle(const vm_block *b, uint32_t i, int64_t n) {
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

void vm_fill_splats(const vm_block *b, int64_t n) {
  const kernel *k = b->vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const vm_inst *inst = &b->vm->insts[i];
    if (inst->place == VM_CYCLE) vm_fill_cycle(b, i, n);
    if (inst->place != VM_SPLAT) continue;
    char *to = b->regs + inst->reg * b->vm->reg_bytes;
    char lane[16] __attribute__((aligned(16)));
    b->values[i] = vm_splat_lane(b, i, inst->number ? to : lane);
    if (inst->number) continue;
    vm_fill(base_dtype_bytes((base_dtype)inst->lane), b->values[i], n, to);
    b->values[i] = to;
  }
}

int64_t vm_next_block(const cpu_vm *vm, int64_t at, int64_t end) {
  int64_t n = end - at < vm->lanes ? end - at : vm->lanes;
  if (!vm->rows) return n;
  int64_t row = vm->k->extents[vm->k->rank - 1], left = row - at % row;
  return n < left ? n : left;
}

static const char *vm_memory(const vm_block *b, const kernel_value *v, int64_t at) {
  int64_t index[KERNEL_MAX_RANK] = {0}, offset = v->index->offset + at;
  if (b->vm->rows) {
    vm_locate(b->vm->k, at, index);
    offset = vm_offset(b->vm->k, v->index, index);
  }
  return (const char *)b->in[v->buffer] + offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
}

/* A load that needs no gathering. */
static const void *vm_load(const vm_block *b, uint32_t i, int64_t at, int64_t n) {
  const kernel_value *v = &b->vm->k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  const void *from = vm_memory(b, v, at);
  char *to = b->regs + inst->reg * b->vm->reg_bytes, lane[16] __attribute__((aligned(16)));
  if (inst->place != VM_ONE) {
    if (!inst->widens) return from;
    vm_widen(v, from, n, to);
    return to;
  }
  if (inst->widens) {
    vm_widen(v, from, 1, inst->number ? (void *)to : lane);
    from = inst->number ? (const void *)to : lane;
  }
  if (inst->number) return from;
  vm_fill(base_dtype_bytes((base_dtype)inst->lane), from, n, to);
  return to;
}

/* An op, a gathered load or a counting up, in the value's own type where it widens. */
static void vm_make_lanes(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *to) {
  const kernel *k = b->vm->k;
  const kernel_value *v = &k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  if (v->kind == KERNEL_LOAD) {
    vm_gather(k, v, b->in[v->buffer], at, n, to);
  } else if (v->kind == KERNEL_COUNT_UP) {
    vm_count_up(k, v, at, n, to);
  } else {
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t j = 0; j < inst->n_in; j++) in[j] = b->values[inst->in[j]];
    if (inst->fast)
      inst->fast(n, in, to);
    else
      interp_loop_run(inst->wide ? inst->wide : &inst->loop, n, in, to);
  }
}

static void vm_value(const vm_block *b, uint32_t i, int64_t at, int64_t n) {
  const kernel *k = b->vm->k;
  const vm_inst *inst = &b->vm->insts[i];
  if (inst->place == VM_SPLAT || inst->place == VM_INSIDE) return;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)inst->lane);
  char *to = b->regs + inst->reg * b->vm->reg_bytes, narrow[VM_MAX_LANES * 2] __attribute__((aligned(64)));
  if (inst->place == VM_CYCLE) {
    b->values[i] = to + at % b->vm->cycle * bytes;
    return;
  }
  if (inst->place != VM_REGISTER) {
    b->values[i] = vm_load(b, i, at, n);
    return;
  }
  if (inst->to_output) to = (char *)b->out[k->stores[0].buffer] + (k->stores[0].index.offset + at) * bytes;
  b->values[i] = to;
  vm_make_lanes(b, i, at, n, inst->widens ? narrow : to);
  if (inst->widens) vm_widen(&k->values[i], narrow, n, to);
}

void vm_compute(const vm_block *b, int64_t at, int64_t n) {
  assert(n > 0 && n <= b->vm->lanes);
  for (uint32_t i = 0; i < b->vm->k->n_values; i++) vm_value(b, i, at, n);
}
