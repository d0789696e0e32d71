/* Which ops of a kernel run by faster loops: with one operand a number, and in fast numerics
 * functions with a looser bound. Tables are chosen by what the CPU has; plain CPUs keep the interpreter's loops. */
#include "../../base/isa/isa.h"
#include "vm_chain.h"
#include "vm_fast.h"

#if defined(__x86_64__)
/* Those for AVX2 are for AVX-512 too: most kernels are machine code (cpu/native), and what is left waits for memory or
 * is small. */
static vm_fast_two *const fast_tables[2] = {&vm_fast_f32_avx2_table, &vm_fast_f64_avx2_table};
static vm_fast_fn *const *const fast_ones[2][2] = {{vm_loose_one_f32_avx2, vm_loose_one_f64_avx2},
                                                   {vm_loose_one_f32_avx512, vm_loose_one_f64_avx512}};
static vm_fast_two *const fast_ints[2] = {&vm_fast_int_avx2_table, &vm_fast_int_avx512_table};
#endif

/* Loops of f32 and f64, or NULL. */
static vm_fast_two *fast_table(base_dtype t) {
#if defined(__x86_64__)
  if (base_isa_best() >= BASE_ISA_AVX2 && (t == XLAC_F32 || t == XLAC_F64)) return fast_tables[t == XLAC_F64];
#endif
  (void)t;
  return NULL;
}

/* Loops of 32-bit integers, or NULL. */
static vm_fast_two *fast_int_table(base_dtype t) {
#if defined(__x86_64__)
  base_isa isa = base_isa_best();
  if (isa >= BASE_ISA_AVX2 && (t == XLAC_S32 || t == XLAC_U32)) return fast_ints[isa >= BASE_ISA_AVX512];
#endif
  (void)t;
  return NULL;
}

/* A function of one value, in fast numerics. */
static vm_fast_fn *fast_one(unsigned code, base_dtype t) {
#if defined(__x86_64__)
  base_isa isa = base_isa_best();
  if (isa >= BASE_ISA_AVX2 && (t == XLAC_F32 || t == XLAC_F64))
    return fast_ones[isa >= BASE_ISA_AVX512][t == XLAC_F64][code];
#endif
  (void)code, (void)t;
  return NULL;
}

/* One number for all lanes of a block. */
static bool fast_is_number(const cpu_vm *vm, uint32_t value) {
  return vm->insts[value].place == VM_SPLAT || vm->insts[value].place == VM_ONE;
}

/* op(lanes, number) or op(number, lanes). Two numbers, or none, are not a case for these loops. */
static void fast_two(cpu_vm *vm, uint32_t i, vm_fast_two *table) {
  assert(vm->k->values[i].n_in == 2 && vm->k->values[i].kind == KERNEL_OP);
  const kernel_value *v = &vm->k->values[i];
  vm_inst *inst = &vm->insts[i];
  bool a = fast_is_number(vm, v->in[0]), b = fast_is_number(vm, v->in[1]);
  vm_fast_fn *fn = (*table)[v->op.code][a];
  if (a == b || !fn) return;
  inst->fast = fn;
  inst->n_in = 2;
  inst->in[0] = v->in[a ? 1 : 0];
  inst->in[1] = v->in[a ? 0 : 1];
  inst->numbers = 2;
}

/* Splats that only loops which take one number use need no lanes. All start as such, and lose it with the first
 * use that wants lanes: a plain loop, a store, the initial value of a reduction, a product that is summed. */
static void fast_find_numbers(cpu_vm *vm) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) vm->insts[i].number = fast_is_number(vm, i);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const vm_inst *inst = &vm->insts[i];
    if (inst->place == VM_INSIDE || inst->place == VM_SPLAT) continue;
    for (uint32_t j = 0; j < inst->n_in; j++)
      if (!(inst->numbers >> j & 1)) vm->insts[inst->in[j]].number = false;
    uint32_t operands[VM_MAX_CHAIN + 1], n = inst->chain ? vm_chain_operands(inst->chain, operands) : 0;
    for (uint32_t j = 0; j < n; j++)
      if (!vm_chain_takes_number(inst->chain, operands[j])) vm->insts[operands[j]].number = false;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) vm->insts[k->stores[i].value].number = false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by) vm->insts[k->stores[i].init].number = false;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++)
    if (vm->sums[i].products) vm->insts[vm->sums[i].in[0]].number = vm->insts[vm->sums[i].in[1]].number = false;
}

/* After chains: what is in one, or is inside of another op, is left alone. */
void vm_choose_fast(cpu_vm *vm) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    base_dtype lane = (base_dtype)vm->insts[i].lane;
    if (v->kind != KERNEL_OP || vm->insts[i].place != VM_REGISTER || vm->insts[i].widens || vm->insts[i].chain)
      continue;
    if (vm->fast && v->n_in == 1 && vm->insts[v->in[0]].lane == lane) vm->insts[i].fast = fast_one(v->op.code, lane);
    vm_fast_two *floats = fast_table(lane), *table = floats ? floats : fast_int_table(lane);
    if (v->n_in == 2 && table && vm->insts[v->in[0]].lane == lane) fast_two(vm, i, table);
  }
  fast_find_numbers(vm);
}

bool cpu_vm_is_looser(const cpu_vm *vm) {
  for (uint32_t i = 0; vm->fast && i < vm->k->n_values; i++) {
    const kernel_value *v = &vm->k->values[i];
    bool narrow = vm->insts[i].lane != v->dtype;
    if (narrow || (v->kind == KERNEL_OP && v->n_in == 1 && fast_one(v->op.code, (base_dtype)v->dtype))) return true;
  }
  return false;
}
