/* Finding chains among a kernel's values, and running them. From the last value backwards, each value that could
 * end a chain is followed towards its first operand while the value before is used by nobody else:
 *
 *  v3 = multiply(v1, v2)       a chain of three links from v1:
 *  v4 = add(v3, v0)              multiply by v2, add v0, maximum with 0
 *  v5 = maximum(v4, 0)
 *
 * Only where the CPU has AVX2 or more. */
#include "vm_chain.h"

#include "../../base/isa/isa.h"

enum {
  CHAIN_MAX_KEPT = 2,  /* operands in registers */
  CHAIN_FAR = 1 << 18, /* iterations that come from memory: several passes over a block, in which the next one is
                          fetched, are faster than a single short chain */
  CHAIN_MIN_FAR_LINKS = 8
};

/* One number for the whole block. */
static bool chain_is_number(const cpu_vm *vm, uint32_t value) {
  return vm->insts[value].place == VM_SPLAT || vm->insts[value].place == VM_ONE;
}

/* What op `value` does to its operand number j, or -1. */
static int chain_kind(const cpu_vm *vm, uint32_t value, uint32_t j) {
  assert(j < 2 && vm->k->values[value].n_in == 2);
  const kernel_value *v = &vm->k->values[value];
  bool number = chain_is_number(vm, v->in[1 - j]);
  int link = scalar_link_of(v->op.code, j);
  if (link >= 0) return 2 * link + number;
  if (!number) return -1;
  if (v->op.code == SCALAR_MAXIMUM) return j == 0 ? VM_LINK_MAXIMUM : VM_LINK_MAXIMUM_OF;
  return v->op.code != SCALAR_MINIMUM ? -1 : j == 0 ? VM_LINK_MINIMUM : VM_LINK_MINIMUM_OF;
}

/* Ops of f32 or f64 on lanes of their own type. */
static bool chain_may_have(const cpu_vm *vm, uint32_t value) {
  const kernel_value *v = &vm->k->values[value];
  const vm_inst *inst = &vm->insts[value];
  bool real = inst->lane == XLAC_F32 || inst->lane == XLAC_F64;
  return v->kind == KERNEL_OP && v->n_in == 2 && real && inst->place == VM_REGISTER && !inst->widens && !inst->edged &&
         vm->insts[v->in[0]].lane == inst->lane && vm->insts[v->in[1]].lane == inst->lane;
}

/* The operand of `value` that the chain goes on with, towards its beginning: 0, 1, or -1: `value` is in no chain.
 * One that is itself a link is preferred (*goes_on); else one that is not a number, and of those what lies in
 * memory. */
static int chain_next(const cpu_vm *vm, uint32_t value, const uint32_t *uses, bool *goes_on) {
  const kernel_value *v = &vm->k->values[value];
  int found = -1;
  *goes_on = false;
  for (uint32_t j = 0; j < 2 && !*goes_on; j++) {
    uint32_t x = v->in[j];
    if (chain_kind(vm, value, j) < 0) continue;
    *goes_on = uses[x] == 1 && chain_may_have(vm, x) && !vm->insts[x].chain &&
               (chain_kind(vm, x, 0) >= 0 || chain_kind(vm, x, 1) >= 0);
    bool better = found < 0 || chain_is_number(vm, v->in[found]) || vm->insts[x].place == VM_MEMORY;
    if (*goes_on || better) found = (int)j;
  }
  return found;
}

/* Whether the operand is one more value that is computed before: it would take up a register for all of the chain,
 * which is what chains are there to save. */
static bool chain_keeps(const cpu_vm *vm, uint32_t y, uint32_t n, const uint32_t *values, const int *operands) {
  if (vm->insts[y].place != VM_REGISTER) return false;
  for (uint32_t i = 0; i < n; i++)
    if (vm->k->values[values[i]].in[1 - operands[i]] == y) return false;
  return true;
}

/* The links of the chain that ends with `last`, from there to its beginning. */
static uint32_t chain_collect(const cpu_vm *vm, uint32_t last, const uint32_t *uses, uint32_t *values, int *operands) {
  uint32_t n = 0, value = last, kept = 0;
  for (bool goes_on = true; goes_on && n < VM_MAX_CHAIN;) {
    int j = chain_next(vm, value, uses, &goes_on);
    if (j < 0) break;
    if (chain_keeps(vm, vm->k->values[value].in[1 - j], n, values, operands) && ++kept > CHAIN_MAX_KEPT) break;
    values[n] = value;
    operands[n++] = j;
    value = vm->k->values[value].in[j];
  }
  return n;
}

/* NULL where the CPU has too few registers, or no vectors that are wide enough. */
static vm_chain_fn *chain_fn(bool is_double) {
#if defined(__x86_64__)
  base_isa isa = base_isa_best();
  if (isa >= BASE_ISA_AVX512) return is_double ? vm_chain_f64_avx512_run : vm_chain_f32_avx512_run;
  if (isa >= BASE_ISA_AVX2) return is_double ? vm_chain_f64_avx2_run : vm_chain_f32_avx2_run;
#endif
  (void)is_double;
  return NULL;
}

/* Makes the chain that ends with `last`, if it is long enough to be worth it; its other values get the place
 * VM_INSIDE. false when out of memory. */
static bool chain_make(cpu_vm *vm, uint32_t last, const uint32_t *uses, base_arena *arena) {
  uint32_t values[VM_MAX_CHAIN];
  int operands[VM_MAX_CHAIN];
  uint32_t n = chain_collect(vm, last, uses, values, operands);
  if (n < (vm->k->count >= CHAIN_FAR ? CHAIN_MIN_FAR_LINKS : VM_MIN_CHAIN)) return true;
  assert(n <= VM_MAX_CHAIN);
  vm_chain *c = base_arena_zalloc(arena, sizeof *c + n * sizeof *c->of);
  if (!c) return false;
  c->n = n;
  c->is_double = vm->insts[last].lane == XLAC_F64;
  c->run = chain_fn(c->is_double);
  c->from = vm->k->values[values[n - 1]].in[operands[n - 1]];
  for (uint32_t i = 0; i < n; i++) {
    uint32_t value = values[n - 1 - i], j = (uint32_t)operands[n - 1 - i];
    uint32_t y = vm->k->values[value].in[1 - j];
    c->of[i] = (vm_link){(uint8_t)chain_kind(vm, value, j), chain_is_number(vm, y), y};
    if (value != last) vm->insts[value].place = VM_INSIDE;
  }
  vm->insts[last].chain = c;
  vm->insts[last].n_in = 0;
  return true;
}

/* From the last value on, so that a chain is found from its end and is as long as it can be. */
bool vm_choose_chains(cpu_vm *vm, const uint32_t *uses, base_arena *arena) {
  if (vm->scalar || !chain_fn(false)) return true;
  for (uint32_t i = vm->k->n_values; i-- > 0;)
    if (chain_may_have(vm, i) && !chain_make(vm, i, uses, arena)) return false;
  return true;
}

/* What goes in, then what each link has of its own. */
uint32_t vm_chain_operands(const vm_chain *c, uint32_t *out) {
  out[0] = c->from;
  for (uint32_t i = 0; i < c->n; i++) out[i + 1] = c->of[i].value;
  return c->n + 1;
}

/* A link that has the value as a number reads one lane of it; as the chain's beginning, or as lanes, all are read. */
bool vm_chain_takes_number(const vm_chain *c, uint32_t value) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->of[i].value == value && !c->of[i].number) return false;
  return c->from != value;
}

/* A maximum or minimum with a number, by a comparison: which one depends on whether the number is NaN or a zero,
 * since math_max takes +0 before -0 and keeps NaN, and a comparison knows neither. */
static uint8_t chain_extreme(uint8_t kind, double y) {
  bool most = kind == VM_LINK_MAXIMUM || kind == VM_LINK_MAXIMUM_OF;
  if (y != y) return kind == VM_LINK_MAXIMUM || kind == VM_LINK_MINIMUM ? VM_LINK_unless_nan : VM_LINK_always;
  bool negative = __builtin_signbit(y) != 0;
  if (most) return y == 0 && negative ? VM_LINK_less : VM_LINK_no_less;
  return y == 0 && !negative ? VM_LINK_more : VM_LINK_no_more;
}

/* Binds the links to where their operands are in this block. */
void vm_run_chain(const vm_block *b, const vm_chain *c, int64_t n, void *to) {
  vm_step steps[VM_MAX_CHAIN + 1];
  for (uint32_t i = 0; i < c->n; i++) {
    const vm_link *l = &c->of[i];
    const void *y = b->values[l->value];
    steps[i] = (vm_step){NULL, y, l->kind, l->number};
    if (l->kind > VM_LINKS)
      steps[i].link = chain_extreme(l->kind, c->is_double ? *(const double *)y : (double)*(const float *)y);
  }
  steps[c->n] = (vm_step){NULL, to, VM_LINK_END, false};
  c->run(n, b->values[c->from], c->n + 1, steps);
}
