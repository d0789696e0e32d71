/* Values live in registers of some hundred lanes, in the memory they are loaded from where that is dense, or in registers
 * that are filled once where they are the same at every iteration. */
#include "vm.h"

#include <stdalign.h>

enum {
  VM_SCRATCH = 32 * 1024,      /* bytes of registers to aim at: the first-level cache */
  VM_MAX_SCRATCH = 192 * 1024, /* on the stack */
  VM_MAX_LANES = 1024,
  VM_MIN_LANES = 16,
  VM_GRAIN_WORK = 1 << 16 /* element operations that a thread should have */
};

typedef enum vm_place { VM_MEMORY, VM_SPLAT, VM_REGISTER } vm_place;

typedef struct vm_inst {
  uint8_t place; /* where its value is: vm_place */
  bool to_output; /* the last value: written straight to output 0 */
  uint32_t reg;
  interp_loop loop; /* of ops */
} vm_inst;

struct cpu_vm {
  const kernel *k;
  uint32_t n_regs, lanes;
  size_t reg_bytes; /* of one */
  vm_inst insts[];
};

static bool vm_is_splat(const kernel *k, const kernel_value *v) {
  return v->kind == KERNEL_CONSTANT || (v->kind == KERNEL_LOAD && kernel_is_constant(k, v->index));
}

static void vm_choose_places(cpu_vm *vm) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    bool dense = v->kind == KERNEL_LOAD && kernel_is_dense(k, v->index);
    vm->insts[i].place = vm_is_splat(k, v) ? VM_SPLAT : dense ? VM_MEMORY : VM_REGISTER;
    if (v->kind == KERNEL_OP) (void)interp_loop_of(v->op, &vm->insts[i].loop);
  }
  uint32_t last = k->n_values - 1;
  bool direct = k->n_stores == 1 && k->stores[0].value == last && vm->insts[last].place == VM_REGISTER;
  vm->insts[last].to_output = direct && kernel_is_dense(k, &k->stores[0].index);
}

/* A register is free again after the last use of what is in it; splats keep theirs. */
static bool vm_choose_registers(cpu_vm *vm, base_arena *scratch) {
  const kernel *k = vm->k;
  uint32_t *last = BASE_ARRAY(scratch, uint32_t, k->n_values), *pool = BASE_ARRAY(scratch, uint32_t, k->n_values);
  uint32_t n_pool = 0;
  if (!last || !pool) return false;
  for (uint32_t i = 0; i < k->n_values; i++) {
    last[i] = i;
    for (uint32_t j = 0; j < k->values[i].n_in; j++) last[k->values[i].in[j]] = i;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) last[k->stores[i].value] = UINT32_MAX;
  for (uint32_t i = 0; i < k->n_values; i++) {
    vm_inst *inst = &vm->insts[i];
    if (inst->place != VM_MEMORY && !inst->to_output)
      inst->reg = inst->place == VM_REGISTER && n_pool ? pool[--n_pool] : vm->n_regs++;
    for (uint32_t j = 0; j < k->values[i].n_in; j++) {
      uint32_t v = k->values[i].in[j];
      bool again = false;
      for (uint32_t l = 0; l < j; l++) again = again || k->values[i].in[l] == v;
      if (last[v] == i && !again && vm->insts[v].place == VM_REGISTER) pool[n_pool++] = vm->insts[v].reg;
    }
  }
  return true;
}

static void vm_choose_lanes(cpu_vm *vm) {
  size_t widest = 1, regs = vm->n_regs ? vm->n_regs : 1;
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    size_t bytes = base_dtype_bytes((base_dtype)vm->k->values[i].dtype);
    if (bytes > widest) widest = bytes;
  }
  size_t lanes = VM_SCRATCH / (regs * widest) & ~(size_t)63;
  if (lanes > VM_MAX_LANES) lanes = VM_MAX_LANES;
  if (lanes < 64) lanes = 64;
  while (lanes > VM_MIN_LANES && lanes * regs * widest > VM_MAX_SCRATCH) lanes /= 2;
  vm->lanes = (uint32_t)lanes;
  vm->reg_bytes = (lanes * widest + 63) & ~(size_t)63;
}

int cpu_vm_make(const kernel *k, base_arena *arena, cpu_vm **out, xlac_error *err) {
  assert(k->n_values > 0 && k->n_stores == 1);
  cpu_vm *vm = base_arena_zalloc(arena, sizeof *vm + (size_t)k->n_values * sizeof *vm->insts);
  base_arena scratch;
  base_arena_init(&scratch, arena->alloc);
  bool ok = vm != NULL;
  if (ok) {
    vm->k = k;
    vm_choose_places(vm);
    ok = vm_choose_registers(vm, &scratch);
  }
  base_arena_free(&scratch);
  if (!ok) return base_oom(err, "a kernel");
  vm_choose_lanes(vm);
  *out = vm;
  return 0;
}

int64_t cpu_vm_grain(const cpu_vm *vm) {
  int64_t grain = VM_GRAIN_WORK / vm->k->n_values;
  return grain < vm->lanes ? vm->lanes : grain / vm->lanes * vm->lanes;
}

/* --- running --- */

#define VM_STRIDED(type)                                                       \
  do {                                                                         \
    const type *f = from;                                                      \
    type *t = to;                                                              \
    if (stride == 1)                                                           \
      memcpy(t, f, (size_t)n * sizeof *t);                                     \
    else                                                                       \
      for (int64_t i = 0; i < n; i++) t[i] = f[i * stride];                    \
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

static void vm_gather(const kernel *k, const kernel_value *v, const char *from, int64_t at, int64_t n, char *to) {
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

static void vm_count_up(const kernel *k, const kernel_value *v, int64_t at, int64_t n, char *to) {
  int64_t index[KERNEL_MAX_RANK], numbers[128];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  vm_locate(k, at, index);
  while (n > 0) {
    int64_t block = n < 128 ? n : 128;
    for (int64_t i = 0; i < block; i++) {
      numbers[i] = vm_offset(k, v->index, index);
      if (k->rank == 0) continue;
      index[k->rank - 1]++;
      vm_carry(k, index);
    }
    base_convert((base_dtype)v->dtype, to, XLAC_S64, numbers, (size_t)block);
    to += block * (int64_t)bytes;
    n -= block;
  }
}

static void vm_fill(size_t bytes, const void *from, int64_t n, char *to) {
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (int64_t)bytes, from, bytes);
}

typedef struct vm_block {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
  char *regs;
  const void **values; /* where each value's lanes are */
  int64_t n;           /* lanes of splats that are filled */
} vm_block;

static void vm_splats(const vm_block *b) {
  const kernel *k = b->vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (b->vm->insts[i].place != VM_SPLAT) continue;
    size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
    const char *from = v->kind == KERNEL_CONSTANT
                           ? v->data
                           : (const char *)b->in[v->buffer] + v->index->offset * (int64_t)bytes;
    char *to = b->regs + b->vm->insts[i].reg * b->vm->reg_bytes;
    vm_fill(bytes, from, b->n, to);
    b->values[i] = to;
  }
}

static void vm_value(const vm_block *b, uint32_t i, int64_t at, int64_t n) {
  const kernel *k = b->vm->k;
  const kernel_value *v = &k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  char *to = inst->to_output ? (char *)b->out[0] + (k->stores[0].index.offset + at) * (int64_t)bytes
                             : b->regs + inst->reg * b->vm->reg_bytes;
  if (inst->place == VM_SPLAT) return;
  if (inst->place == VM_MEMORY) {
    b->values[i] = (const char *)b->in[v->buffer] + (v->index->offset + at) * (int64_t)bytes;
    return;
  }
  b->values[i] = to;
  if (v->kind == KERNEL_LOAD) {
    vm_gather(k, v, b->in[v->buffer], at, n, to);
  } else if (v->kind == KERNEL_COUNT_UP) {
    vm_count_up(k, v, at, n, to);
  } else {
    const void *in[3] = {NULL, NULL, NULL};
    for (uint32_t j = 0; j < v->n_in; j++) in[j] = b->values[v->in[j]];
    interp_loop_run(&inst->loop, n, in, to);
  }
}

void cpu_vm_run(const cpu_vm *vm, int64_t begin, int64_t end, const void *const *in, void *const *out) {
  const kernel *k = vm->k;
  const void *few[64], **values = few;
  alignas(64) char small[4096];
  char *regs = small;
  size_t need = vm->n_regs * vm->reg_bytes;
  assert(begin >= 0 && end <= k->count && need <= VM_MAX_SCRATCH + 64 * (size_t)vm->n_regs);
  if (k->n_values > 64) values = __builtin_alloca(k->n_values * sizeof *values);
  if (need > sizeof small) regs = __builtin_alloca_with_align(need, 512);
  vm_block b = {vm, in, out, regs, values, end - begin < vm->lanes ? end - begin : vm->lanes};
  const kernel_store *store = &k->stores[0];
  size_t bytes = base_dtype_bytes((base_dtype)k->values[store->value].dtype);
  vm_splats(&b);
  for (int64_t at = begin; at < end; at += vm->lanes) {
    int64_t n = end - at < vm->lanes ? end - at : vm->lanes;
    for (uint32_t i = 0; i < k->n_values; i++) vm_value(&b, i, at, n);
    if (vm->insts[store->value].to_output) continue;
    memcpy((char *)out[0] + (store->index.offset + at) * (int64_t)bytes, values[store->value], (size_t)n * bytes);
  }
}
