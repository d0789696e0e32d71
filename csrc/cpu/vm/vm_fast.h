/* Loops that spare the vector VM registers and passes over them: with operands that are one number for all lanes, and
 * of two ops at once. The bits are those of the ops one after another. */
#ifndef XLAC_CPU_VM_VM_FAST_H
#define XLAC_CPU_VM_VM_FAST_H

#include "vm_inside.h"

/* Sizes of the tables below, whose rows stand in the order that their comments name. */
enum { VM_FAST_TWO = 10, VM_FAST_THREE = 4, VM_FAST_INT = 9 };
enum { VM_FAST_EXP, VM_FAST_LOG, VM_FAST_TANH, VM_FAST_LOGISTIC, VM_FAST_SIN, VM_FAST_COS, VM_FAST_RSQRT, VM_FAST_ONE };

typedef struct vm_fast_table {
  vm_fast_fn *two[VM_FAST_TWO]; /* lanes with a number: x+y x*y x-y y-x x/y y/x max(x,y) min(x,y) max(y,x) min(y,x) */
  vm_fast_fn *three[VM_FAST_THREE][VM_FAST_THREE][2][2]; /* by first and second op, and whether y and z are lanes */
} vm_fast_table;

extern const vm_fast_table vm_fast_f32_avx2_table, vm_fast_f64_avx2_table;
extern const vm_fast_table vm_fast_f32_avx512_table, vm_fast_f64_avx512_table;
/* Of fast numerics: products are contracted with sums, a division by a number is a product. */
extern const vm_fast_table vm_loose_f32_avx2_table, vm_loose_f64_avx2_table;
extern const vm_fast_table vm_loose_f32_avx512_table, vm_loose_f64_avx512_table;
/* Of fast numerics: functions of one value (vm_loose_math.h). NULL: the strict one. */
extern vm_fast_fn *const vm_loose_one_f32_avx2[VM_FAST_ONE], *const vm_loose_one_f64_avx2[VM_FAST_ONE];
extern vm_fast_fn *const vm_loose_one_f32_avx512[VM_FAST_ONE], *const vm_loose_one_f64_avx512[VM_FAST_ONE];

/* 32-bit integers with a number: x+y x*y x-y y-x x&y x|y x^y x<<y x>>y */
extern vm_fast_fn *const vm_fast_int_avx2_table[VM_FAST_INT], *const vm_fast_int_avx512_table[VM_FAST_INT];

#endif
