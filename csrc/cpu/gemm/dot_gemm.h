/* Our own matrix products, of any element type and of operands that lie in any way: dots that BLAS cannot take,
 * and convolutions. Operands are packed as they are needed, so that no transposed or converted copy is ever made
 * whole.
 *
 *  A product is four groups of dimensions, each with its strides in A, B and C. f32[8,32,64] dot f32[8,64,16] over the
 *  last of the one and the second of the other, in batches of the first, is
 *
 *    batch {8: 2048, 1024, 512}   m {32: 64, 0, 16}   n {16: 0, 1, 1}   k {64: 1, 16, 0}
 *
 * Every sum is over k in ascending order, within blocks whose sums are added in turn; blocks depend on types
 * alone. */
#ifndef XLAC_CPU_GEMM_DOT_GEMM_H
#define XLAC_CPU_GEMM_DOT_GEMM_H

#include "../../runtime/threads.h"
#include "../../ir/ir.h"

enum {
  GEMM_MAX_DIMS = 16,
  GEMM_BLOCK_BYTES = 1024, /* of a row of packed A, and of a row of sums */
  GEMM_ROW_BYTES = 1088,   /* from row to row: not a power of two, so that rows don't share cache sets */
  GEMM_ROWS = 96           /* of A packed at a time: a multiple of every kernel's rows */
};

/* One dimension of a product, and what a step along it is in each array, in elements (0: the array has it not). */
typedef struct cpu_gemm_dim {
  int64_t n, a, b, c;
} cpu_gemm_dim;
/* A group of dimensions (batch, m, n or k), the outermost first. Number i of the group is an index into all of
 * them. */
typedef struct cpu_gemm_dims {
  uint32_t n;
  int64_t count; /* product of the extents */
  cpu_gemm_dim v[GEMM_MAX_DIMS];
} cpu_gemm_dims;

/* The inner loop for one packed type and CPU: c += a * b over `steps` steps of k, or c = a * b where it is the
 * first block. A step is one element of the packed type, a pair of 16-bit integers, four bytes, or half a complex
 * number. a and c have rows GEMM_ROW_BYTES apart; b is the panel's part. */
typedef void cpu_gemm_tile(int64_t steps, const char *a, const char *b, char *c, bool first);
typedef struct cpu_gemm_kernel {
  cpu_gemm_tile *tile;
  int rows, columns; /* of the tile, columns in lanes */
} cpu_gemm_kernel;
/* For sums of type t (F32, F64, S32, S64); pairs: S32 sums of S16 products, or F32 sums of BF16 products where
 * there are base_isa_narrow_products. The best for this CPU. */
cpu_gemm_kernel cpu_gemm_kernel_of(base_dtype t, bool pairs);
/* For S32 sums of products of four bytes by four; {NULL} where this CPU has none for A and B of these signs. *shifted:
 * A is signed, and the kernel takes unsigned ones. */
cpu_gemm_kernel cpu_gemm_kernel_of_bytes(bool a_signed, bool b_signed, bool *shifted);

/* C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]. To be filled in: dimensions (cpu_gemm_add), then
 * types (cpu_gemm_types), first elements; then cpu_gemm_prepare, after which it is immutable. */
typedef struct cpu_gemm {
  uint8_t a_type, b_type, c_type; /* of the arrays */
  uint8_t packed, sum;            /* A and B are packed as, sums are of: of the product's real or integer parts */
  bool pairs, is_complex, small, thin;
  uint8_t isa; /* base_isa, of thin products: asked once, as runs are short */
  /* cpu_gemm_prepare's: bytes in fours; shifted: of A as 128 more than they are, which a row of 128 beside A's takes
   * away. */
  bool bytes, shifted;
  int64_t a_at, b_at, c_at; /* first elements */
  cpu_gemm_dims batch, m, n, k;
  /* The rest is cpu_gemm_prepare's. */
  cpu_gemm_kernel kernel;
  int64_t k_block, columns, rows, panels; /* elements of k in a block; of C in a task; panels of B in a batch */
  int64_t panel_bytes, scratch_bytes;     /* of packed B: one panel, all that is packed at a time */
  int64_t chunk;                          /* panels packed at a time */
  bool direct;                            /* a panel would be large: tasks pack of it what they need next */
  bool rows_once;                         /* many tasks need the same rows of A: all of A is packed before */
  int64_t rows_at;                        /* and where in the scratch memory */
} cpu_gemm;

/* Fills the types, once the dimensions are there: in a_type and b_type those that the operands are to be converted
 * to before (cpu_gemm_convert), where they are not theirs. may_be_small: products of little work may go without
 * packing. */
void cpu_gemm_types(cpu_gemm *g, base_dtype a, base_dtype b, base_dtype c, bool may_be_small);
void cpu_gemm_convert(rt_pool *pool, base_dtype to, void *dst, base_dtype from, const void *src, int64_t n);
/* Appends a dimension unless it has one element. */
void cpu_gemm_add(cpu_gemm_dims *dims, int64_t n, int64_t a, int64_t b, int64_t c);
/* Chooses which operand is A, merges dimensions, cuts blocks. *exchanged: a and b changed places, and so must the
 * pointers that cpu_gemm_run is given. false where it is too large to count. */
bool cpu_gemm_prepare(cpu_gemm *g, bool *exchanged);
/* scratch: g->scratch_bytes. Deterministic for any pool. */
void cpu_gemm_run(const cpu_gemm *g, rt_pool *pool, const void *a, const void *b, void *c, char *scratch);

/* Counts and merges dimensions, the smallest steps innermost: false where a group is empty or too large to count. */
bool cpu_gemm_settle(cpu_gemm *g);

/* The same product by lines of C: row m of batch b is line b * g->m.count + m, which is to be the l-th part of C's
 * memory. Prepared by cpu_gemm_prepare_lines instead of cpu_gemm_prepare: false where it is not a product for that. B
 * is packed first, all of it into scratch_bytes, or some batches into as large a part; then lines of these can be made
 * in any order, each by one thread. */
bool cpu_gemm_prepare_lines(cpu_gemm *g);
typedef struct cpu_gemm_packed {
  char *to;
  int64_t batch, n; /* from that batch on */
} cpu_gemm_packed;
/* pool NULL: on the caller's thread. */
void cpu_gemm_pack_lines(const cpu_gemm *g, rt_pool *pool, const void *b, cpu_gemm_packed packed);
void cpu_gemm_run_lines(const cpu_gemm *g, rt_pool *pool, const void *a, cpu_gemm_packed packed, void *c, int64_t from,
                        int64_t to);
/* The same by strips of columns: all lines of a strip, which reads the part of what is packed that a second-level cache
 * keeps for the next product with the same B. 1: all of it is that. */
int64_t cpu_gemm_strips(const cpu_gemm *g);
void cpu_gemm_run_strip(const cpu_gemm *g, const void *a, cpu_gemm_packed packed, void *c, int64_t strip);
/* Whether line l is made from the l-th part of A's memory alone. */
bool cpu_gemm_owns_lines(const cpu_gemm *g);

/* Steps of the tile for `count` elements of k. */
static inline int64_t cpu_gemm_steps(const cpu_gemm *g, int64_t count) {
  return g->bytes ? (count + 3) / 4 : g->pairs ? (count + 1) / 2 : g->is_complex ? 2 * count : count;
}

/* --- dot_amx.c: tiles of 32 by 32 for CPUs with AMX. Any number of steps. Only where
 * BASE_ISA_KNOWS_AMX --- */
cpu_gemm_tile cpu_gemm_tile_amx_bf16, cpu_gemm_tile_amx_ss, cpu_gemm_tile_amx_su, cpu_gemm_tile_amx_us,
    cpu_gemm_tile_amx_uu;

/* --- dot_small.c --- */
bool cpu_gemm_is_small(const cpu_gemm *g);
void cpu_gemm_run_small(const cpu_gemm *g, const void *a, const void *b, void *c);

/* --- dot_thin.c: asked once dimensions are in order --- */
bool cpu_gemm_is_thin(const cpu_gemm *g);
int64_t cpu_gemm_thin_bytes(const cpu_gemm *g); /* scratch memory; negative where too large to count */
void cpu_gemm_run_thin(const cpu_gemm *g, rt_pool *pool, const void *a, const void *b, void *c, char *scratch);

/* --- dot_pack.c --- */
/* Where the elements of a block lie: first + rows[i] + (steps along the dims of k). */
typedef struct cpu_gemm_block {
  const char *from; /* the array */
  const int64_t *lines;
  int n_lines;      /* rows of A, columns of B */
  int64_t p, count; /* of k */
} cpu_gemm_block;
/* rows x count of A, a row every GEMM_ROW_BYTES; rows up to `padded` and k up to a whole step are zeros. */
void cpu_gemm_pack_a(const cpu_gemm *g, const cpu_gemm_block *block, int padded, char *to);
/* A panel of B, or the block's part of it. */
void cpu_gemm_pack_b(const cpu_gemm *g, const cpu_gemm_block *block, char *to);
/* Offsets of `n` neighbours from number `from` on, in the array that `which` names ('a', 'b', 'c'). */
void cpu_gemm_offsets(const cpu_gemm_dims *dims, char which, int64_t from, int64_t n, int64_t *out);

#endif
