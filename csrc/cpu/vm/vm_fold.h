/* Runs of lanes combined into few: what reductions along the innermost dimension do with a block. A sum over a row
 * of f32 is 32 sums side by side, which the last step folds: 32 to 16, to 8, to 4, to 2, to 1. */
#ifndef XLAC_CPU_VM_VM_FOLD_H
#define XLAC_CPU_VM_VM_FOLD_H

#include "../square.h"
#include "vm_inside.h"

/* The ops that fold, one row each: FOLD_OP(name, code). */
#define VM_FOLDS(FOLD_OP) \
  FOLD_OP(add, ADD) FOLD_OP(multiply, MULTIPLY) FOLD_OP(maximum, MAXIMUM) FOLD_OP(minimum, MINIMUM)
#define VM_FOLD_NUMBER(name, code) VM_FOLD_##name,
enum { VM_FOLDS(VM_FOLD_NUMBER) VM_FOLD_OPS, VM_FOLD_BYTES = 128 };
#undef VM_FOLD_NUMBER

/* Lane j of acc, of which *valid are in use, becomes its combination with that of x[j], x[j + L], ... where L lanes
 * make VM_FOLD_BYTES. The order depends on n alone, so that every instruction set gives the same bits. */
typedef void vm_fold_fn(int64_t n, const void *x, void *acc, int64_t *valid);
/* `valid` lanes become one, in lane 0: halves are combined until one is left. */
typedef void vm_fold_last_fn(int64_t valid, void *acc);
/* Rows of n elements, one after the other, each with the initial value to one element of out. */
typedef void vm_fold_many_fn(int64_t rows, int64_t n, const void *x, const void *init, void *out);
/* Rows of n elements, each to one element of out, combined from the first to the last. */
typedef void vm_fold_rows_fn(int64_t rows, int64_t n, const void *x, void *out);
/* As vm_fold_fn of the products of x[j] and y[j]; NULL for other ops than addition. */
typedef void vm_fold_products_fn(int64_t n, const void *x, const void *y, void *acc, int64_t *valid);
/* Blocks of `each` elements, a multiple of L, one after the other: n / each times what vm_fold_fn does, without
 * waiting for a block's lanes before the next one is read. *valid is 0 or L before, and L after. NULL for other ops
 * than addition. */
typedef void vm_fold_blocks_fn(int64_t n, int64_t each, const void *x, void *acc, int64_t *valid);
/* The loops of one op and type. `products` and `blocks` may be NULL, the others not. */
typedef struct vm_fold {
  vm_fold_fn *some;
  vm_fold_last_fn *last;
  vm_fold_many_fn *many;
  vm_fold_rows_fn *rows;
  vm_fold_products_fn *products;
  vm_fold_blocks_fn *blocks;
} vm_fold;

extern const vm_fold vm_fold_f32_plain[VM_FOLD_OPS], vm_fold_f64_plain[VM_FOLD_OPS];
extern const vm_fold vm_fold_f32_avx2[VM_FOLD_OPS], vm_fold_f64_avx2[VM_FOLD_OPS];
extern const vm_fold vm_fold_f32_avx512[VM_FOLD_OPS], vm_fold_f64_avx512[VM_FOLD_OPS];
/* Of op on elements of type t, or NULL. */
const vm_fold *vm_fold_of(scalar_code op, base_dtype t);

#endif
