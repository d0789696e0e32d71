/* Fast numerics: where a kernel computes with narrow floats (bf16, f16, f8), their lanes are f32 from load to
 * store, and only what is stored, or converted to a narrow type on purpose, is rounded. Strict numerics round
 * after every op. */
#include "vm_inside.h"

/* Floats below 32 bits. */
static bool wide_is_narrow(uint8_t t) {
  return base_dtype_is_float((base_dtype)t) && t != XLAC_F32 && t != XLAC_F64;
}

/* Ops that are the same on f32: those that compute in f32 anyway, and those that only move or convert. */
static bool wide_can(const kernel_value *v, const scalar_loop *l) {
  bool narrow = wide_is_narrow(l->out);
  for (uint32_t j = 0; j < l->n_in; j++) narrow = narrow || wide_is_narrow(l->in[j]);
  unsigned o = v->op.code;
  return !narrow || l->work == XLAC_F32 || o == SCALAR_CONVERT || o == SCALAR_SELECT || o == SCALAR_COPY;
}

/* Whether several ops compute narrow floats, and all can do it wide. For a single op, widening is part of its loop
 * anyway. */
static bool wide_is_worth_it(const cpu_vm *vm) {
  uint32_t ops = 0;
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    const kernel_value *v = &vm->k->values[i];
    if (v->kind != KERNEL_OP) continue;
    if (!wide_can(v, &vm->insts[i].loop)) return false;
    ops += wide_is_narrow(v->dtype);
  }
  return ops > 1;
}

/* A copy of the op's loop for wide lanes. false when out of memory. */
static bool wide_loop(vm_inst *inst, const kernel_value *v, base_arena *arena) {
  assert(v->kind == KERNEL_OP);
  scalar_loop *l = base_arena_memdup(arena, &inst->loop, sizeof *l);
  bool narrow = inst->widens;
  if (!l) return false;
  for (uint32_t j = 0; j < l->n_in; j++)
    if (wide_is_narrow(l->in[j])) l->in[j] = XLAC_F32;
  if (!narrow && wide_is_narrow(l->out)) {
    l->out = XLAC_F32;
    if (v->op.code == SCALAR_SELECT) l->fn = scalar_select_loop(sizeof(float));
  }
  if (!narrow) l->work = BASE_DTYPE_INVALID;
  inst->wide = l;
  return true;
}

/* Values that are computed wide need nothing; loads, constants and conversions to a narrow type are widened after. */
bool vm_choose_wide(cpu_vm *vm, base_arena *arena) {
  assert(vm->fast && !vm->scalar);
  if (!wide_is_worth_it(vm)) return true;
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    const kernel_value *v = &vm->k->values[i];
    vm_inst *inst = &vm->insts[i];
    bool narrow = wide_is_narrow(v->dtype);
    if (narrow) inst->lane = XLAC_F32;
    bool computed =
        v->kind == KERNEL_PICK || v->kind == KERNEL_SCAN || (v->kind == KERNEL_OP && v->op.code != SCALAR_CONVERT);
    inst->widens = narrow && !computed;
    if (v->kind == KERNEL_OP && !wide_loop(inst, v, arena)) return false;
  }
  return true;
}
