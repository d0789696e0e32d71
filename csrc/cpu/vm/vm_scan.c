/* Scans: a cumulative sum along a dimension, and others of its kind. Blocks of a unit (all that one outer index
 * has) go one after another, and hand on the results so far, one for each iteration inside of the scanned
 * dimension: a cumulative sum over dimension 1 of [2,100,8] has two units of 800 iterations that carry 8 sums.
 * Units are independent. Results are combined in the order of the dimension alone, narrow floats in f32, so the
 * bits are the same however many threads there are. */
#include "vm_inside.h"

/* One run, as its ranges see it. */
typedef struct vms_run {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
} vms_run;

/* Narrow floats are combined in f32, all other types in their own. */
base_dtype vm_scan_type(base_dtype t) {
  return base_dtype_is_float(t) && t != XLAC_F64 ? XLAC_F32 : t;
}

/* The loop that combines, for each scan, and where in a unit's memory it carries its results: `inner` of them. */
void vm_choose_scans(cpu_vm *vm) {
  vm->scanning = kernel_find_scans(vm->k, &vm->scans);
  for (uint32_t i = 0; vm->scanning && i < vm->k->n_values; i++) {
    const kernel_value *v = &vm->k->values[i];
    if (v->kind != KERNEL_SCAN) continue;
    base_dtype sum = vm_scan_type((base_dtype)v->dtype);
    bool found = scalar_loop_binary((scalar_code)v->op.code, sum, &vm->insts[i].loop);
    assert(found);
    (void)found;
    vm->insts[i].carry = vm->carry_bytes;
    vm->carry_bytes += ((size_t)vm->scans.inner * base_dtype_bytes(sum) + 63) & ~(size_t)63;
  }
}

/* --- lanes that follow one another --- */

/* One result carried through n lanes. Each depends on the one before, so there is nothing to vectorise; `step` is
 * -1 for scans that go back. */
typedef void vms_row_fn(int64_t n, int64_t step, const void *in, void *carry);
#define VMS_LOOP(code, dtype, T, NEXT)                                                     \
  static void vms_##code##_##dtype(int64_t n, int64_t step, const void *in, void *carry) { \
    T *r = (T *)(uintptr_t)in, a = *(T *)carry;                                            \
    for (int64_t i = 0; i < n; i++, r += step) {                                           \
      T v = *r;                                                                            \
      *r = a = NEXT;                                                                       \
    }                                                                                      \
    *(T *)carry = a;                                                                       \
  }
/* One row for each op and type that has such a loop. Signed integers wrap as unsigned ones do. */
#define VMS_ROWS(ROW)             \
  ROW(ADD, F32, float, a + v)     \
  ROW(ADD, F64, double, a + v)    \
  ROW(ADD, U32, uint32_t, a + v)  \
  ROW(ADD, U64, uint64_t, a + v)  \
  ROW(MULTIPLY, F32, float, a *v) \
  ROW(MULTIPLY, F64, double, a *v)
VMS_ROWS(VMS_LOOP)

/* NULL: by the interpreter's loop, a lane at a time. */
static vms_row_fn *vms_row_of(unsigned code, base_dtype t) {
#define VMS_FIND(row, dtype, T, NEXT) \
  if (code == SCALAR_##row && same == XLAC_##dtype) return vms_##row##_##dtype;
  base_dtype same = t == XLAC_S32 ? XLAC_U32 : t == XLAC_S64 ? XLAC_U64 : t;
  VMS_ROWS(VMS_FIND)
#undef VMS_FIND
  return NULL;
}

/* One result is carried (inner == 1). Each of n values at `lanes`, in the type of sums, becomes the combination of
 * carry and all up to it, from the last where the scan goes back. */
static void vms_row(const vm_inst *inst, unsigned code, base_dtype sum, bool back, int64_t n, char *lanes,
                    char *carry) {
  size_t bytes = base_dtype_bytes(sum);
  vms_row_fn *fn = vms_row_of(code, sum);
  if (fn) {
    fn(n, back ? -1 : 1, back ? lanes + (size_t)(n - 1) * bytes : lanes, carry);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    char *lane = lanes + (size_t)(back ? n - 1 - i : i) * bytes;
    const void *in[2] = {carry, lane};
    scalar_loop_run(&inst->loop, 1, in, carry);
    memcpy(lane, carry, bytes);
  }
}

/* The same where `inner` results are carried: lanes at..at+n of a unit, in runs that do not go beyond the last of them.
 */
static void vms_columns(const vm_inst *inst, base_dtype sum, const kernel_scans *s, int64_t at, int64_t n, char *lanes,
                        char *carries) {
  size_t bytes = base_dtype_bytes(sum);
  for (int64_t done = 0, run = 0; done < n; done += run) {
    int64_t first = s->back ? at + n - done - 1 : at + done, column = first % s->inner;
    run = s->back ? column + 1 : s->inner - column;
    if (run > n - done) run = n - done;
    if (s->back) first -= run - 1, column -= run - 1;
    char *carry = carries + (size_t)column * bytes, *lane = lanes + (size_t)(first - at) * bytes;
    const void *in[2] = {carry, lane};
    scalar_loop_run(&inst->loop, run, in, carry);
    memcpy(lane, carry, (size_t)run * bytes);
  }
}

/* In the type of sums: directly in `to` where lanes have it, else in a copy. */
void vm_scan(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *to) {
  const kernel_value *v = &b->vm->k->values[i];
  const vm_inst *inst = &b->vm->insts[i];
  base_dtype lane = (base_dtype)inst->lane, sum = vm_scan_type((base_dtype)v->dtype);
  assert(v->kind == KERNEL_SCAN && b->carry && n > 0);
  const kernel_scans *s = &b->vm->scans;
  char wide[VM_MAX_LANES * sizeof(float)] __attribute__((aligned(64))), *lanes = lane == sum ? to : wide;
  const void *from = b->values[v->in[0]];
  if (lane != sum)
    base_convert(sum, lanes, lane, from, (size_t)n);
  else if (from != lanes)
    memcpy(lanes, from, (size_t)n * base_dtype_bytes(sum));
  if (s->inner == 1)
    vms_row(inst, v->op.code, sum, s->back, n, lanes, b->carry + inst->carry);
  else
    vms_columns(inst, sum, s, at % s->span, n, lanes, b->carry + inst->carry);
  if (lane != sum) base_convert(lane, to, sum, lanes, (size_t)n);
}

/* --- units --- */

/* A new unit: what is carried begins as the scans' initial values. */
static void vms_begin(const vm_block *b) {
  const kernel *k = b->vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_SCAN) continue;
    char first[16] __attribute__((aligned(16)));
    base_dtype sum = vm_scan_type((base_dtype)v->dtype);
    base_convert(sum, first, (base_dtype)b->vm->insts[v->in[1]].lane, b->values[v->in[1]], 1);
    vm_fill(base_dtype_bytes(sum), first, b->vm->scans.inner, b->carry + b->vm->insts[i].carry);
  }
}

/* The block that ends at `to`, for scans that go back: vm_next_block's mirror image. */
static int64_t vms_block_before(const cpu_vm *vm, int64_t from, int64_t to) {
  assert(from < to);
  int64_t n = to - from < vm->lanes ? to - from : vm->lanes;
  if (!vm->rows) return n;
  int64_t row = vm->k->extents[vm->k->rank - 1], left = (to - 1) % row + 1;
  return n < left ? n : left;
}

/* For rt_parallel_for: units begin .. end, each from its first block to its last, or backwards. */
static void vms_units(void *ctx, size_t begin, size_t end) {
  const vms_run *r = ctx;
  const cpu_vm *vm = r->vm;
  int64_t span = vm->scans.span;
  VM_BLOCK(b, vm, r->in, r->out, span < vm->lanes ? span : vm->lanes);
  b.carry = __builtin_alloca_with_align(vm->carry_bytes + 64, 512);
  for (size_t unit = begin; unit < end; unit++) {
    int64_t from = (int64_t)unit * span, to = from + span, n = 0;
    vms_begin(&b);
    for (int64_t done = 0; done < span; done += n) {
      n = vm->scans.back ? vms_block_before(vm, from, to - done) : vm_next_block(vm, from + done, to);
      int64_t at = vm->scans.back ? to - done - n : from + done;
      vm_compute(&b, at, n);
      for (uint32_t i = 0; i < vm->k->n_stores; i++) vm_store(&b, i, at, n);
    }
  }
}

/* Units that a thread should have: some 65 thousand element operations. */
static int64_t vms_grain(const cpu_vm *vm) {
  return (1 << 16) / (vm->scans.span * vm->k->n_values + 1) + 1;
}

/* Whether there are more units than make one range. */
bool vm_scan_is_divisible(const cpu_vm *vm) {
  return vm->k->count && vm->k->count / vm->scans.span > vms_grain(vm);
}

void vm_scan_run(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out) {
  vms_run r = {vm, in, out};
  if (vm->k->count == 0) return;
  assert(vm->k->count % vm->scans.span == 0);
  int64_t units = vm->k->count / vm->scans.span, grain = vms_grain(vm);
  if (units <= grain)
    vms_units(&r, 0, (size_t)units);
  else
    rt_parallel_for(pool, (size_t)units, (size_t)grain, vms_units, &r);
}
