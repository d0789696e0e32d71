/* How LAPACK's routines are described: which buffers they take, and in which order their arguments come. */
#ifndef XLAC_CPU_LINALG_LAPACK_TABLE_H
#define XLAC_CPU_LINALG_LAPACK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { LAPACK_SLOTS = 5, LAPACK_NONE = -1 };

/* An array that a routine takes. Where it is operand and result, the result begins as the operand.
 * shape, of one item of the batch: M the m x n matrix, Q a square one, x min(m, n) numbers, m, n, k and e (n - 1) so
 * many, 1 one, u and v the singular vectors, s the triangular matrix of trsm, q the reflectors of ormqr.
 * type: t the routine's, r its real part's, c the complex one of it, i s32. */
typedef struct lapack_slot {
  int8_t operand, result;
  char shape, type;
  bool copied; /* an operand that the routine changes: it gets a copy */
} lapack_slot;

/* args, a letter an argument: 0..4 a slot, < slot 0 without its first element, a..e a slot's leading dimension, m n k
 * sizes, N max(n, 1), w work, l its size, r real work, R its size, G real work as gesdd has it, i integer work, I its
 * size, B boolean work, f info, o the number one, z a null pointer, p q room for real eigenvectors, h g the attributes
 * low and high; attributes of one character: U uplo, J mode, L compute_left, V compute_right, S side, T trans_x,
 * D diag, O sort, X left, Y transpose. */
typedef struct lapack_routine {
  const char *name;
  char numbers;                        /* r real, c complex, * both */
  uint8_t n_operands, n_results, main; /* main: the slot whose matrix is m x n */
  int8_t info;                         /* the result that says whether it went well */
  const char *args;
  lapack_slot slots[LAPACK_SLOTS];
} lapack_routine;

#endif
