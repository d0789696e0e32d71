/* Sorts, inside: what is known of one. */
#ifndef XLAC_CUDA_SORT_H
#define XLAC_CUDA_SORT_H

#include "routine.h"

enum { CU_SORT_OPERANDS = 8, CU_SORT_KEYS = 5 };

/* What elements are ordered by: an integer, or a float in the total order. */
typedef struct cu_sort_key {
  uint32_t value; /* of the comparator, made of the left side's parameters */
  bool descends;
} cu_sort_key;

typedef struct cu_sort {
  const scalar_program *p;
  int64_t lines, n, inner; /* elements of a line, and how far apart they are */
  int64_t first;           /* so many of each line are sought, with their numbers; 0: all, without */
  int64_t room, threads;   /* in shared memory */
  uint32_t n_keys;
  cu_sort_key keys[CU_SORT_KEYS]; /* the first that differs decides */
} cu_sort;

/* --- sort.c --- */
/* "const idx base": where the line begins. */
void cuda_sort_put_base(cuda_routine *r, const cu_sort *s);
/* The element whose number is `self` goes to place `at` of its line: of operand i, or of top-k; and of all operands. */
void cuda_sort_put_move(cuda_routine *r, const cu_sort *s, uint32_t i, const char *self, const char *at);
void cuda_sort_put_moves(cuda_routine *r, const cu_sort *s, const char *self, const char *at);

/* --- radix.c --- */
/* By digits of the keys, a block for each line. False where the line is too long for a block, or the network takes
 * fewer instructions. */
bool cuda_sort_put_radix(cuda_routine *r, const cu_sort *s, uint32_t n_out);
/* Lines that are longer, digit after digit through memory. False where numbers of elements are too large. */
bool cuda_sort_put_radix_rounds(cuda_routine *r, const cu_sort *s, uint32_t n_out);

#endif
