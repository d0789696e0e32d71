/* Loops that spare the vector VM registers: with operands that are one number for all lanes. */
#ifndef XLAC_CPU_VM_VM_FAST_H
#define XLAC_CPU_VM_VM_FAST_H

#include "vm_inside.h"

/* Lanes with a number, which is the second operand or, at [1], the first, of the ops that ops.def has an expression for
 * (vm_fast_rows.h), by scalar_code; NULL: none. */
typedef vm_fast_fn *const vm_fast_two[SCALAR_CODES][2];
/* Functions of one value, by scalar_code; NULL: none. */
typedef vm_fast_fn *const vm_fast_one[SCALAR_CODES];

extern const vm_fast_two vm_fast_f32_avx2_table, vm_fast_f64_avx2_table;
/* Of fast numerics (vm_loose_math.h). NULL: the strict one. */
extern vm_fast_one vm_loose_one_f32_avx2, vm_loose_one_f64_avx2, vm_loose_one_f32_avx512, vm_loose_one_f64_avx512;

/* Of 32-bit integers. */
extern vm_fast_two vm_fast_int_avx2_table, vm_fast_int_avx512_table;

#endif
