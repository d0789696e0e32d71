/* Many products of tiny matrices, or of small matrices and vectors: transformations of points, Jacobians, filters. */
#ifndef XLAC_CPU_GEMM_DOT_TINY_H
#define XLAC_CPU_GEMM_DOT_TINY_H

#include "dot_gemm.h"

/* The product as the loops want it, or NULL where it is no such product, this CPU has not the instructions, or memory
 * has run out (*failed). dims: with its dimensions alone; types: of both operands and the result. *exchanged: the
 * operands have changed places. */
typedef struct cpu_tiny cpu_tiny;
const cpu_tiny *cpu_tiny_make(const cpu_gemm *dims, base_dtype type, base_arena *arena, bool *exchanged, bool *failed);
/* Whether it is a product of a long matrix and a small one. */
bool cpu_tiny_is_long(const cpu_tiny *t);
void cpu_tiny_run(const cpu_tiny *t, rt_pool *pool, const void *a, const void *b, void *c);

#endif
