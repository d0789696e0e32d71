/* Four rows of four elements as four columns, in registers: two steps of interleaving. */
#ifndef XLAC_CPU_SQUARE_H
#define XLAC_CPU_SQUARE_H

/* V: a vector of four elements, of any type. The rows r0 .. r3 are of it, and what c0 .. c3 name is assigned the
 * columns. */
#define CPU_TURN_SQUARE(V, r0, r1, r2, r3, c0, c1, c2, c3)    \
  do {                                                        \
    V low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);    \
    V high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);   \
    V low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);    \
    V high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);   \
    c0 = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);   \
    c1 = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);   \
    c2 = __builtin_shufflevector(high01, high23, 0, 1, 4, 5); \
    c3 = __builtin_shufflevector(high01, high23, 2, 3, 6, 7); \
  } while (0)

#endif
