/* Which ops become one kernel. Fusion does not change the module: it says for every op of a computation whether a
 * kernel ends at it (a root), whether it is computed inside the kernel of its one root, or inside every kernel that
 * uses it, why it got a buffer of its own, and which roots share a kernel. */
#ifndef XLAC_FUSE_FUSION_H
#define XLAC_FUSE_FUSION_H

#include "../ir/ir.h"

typedef enum fusion_role {
  FUSION_NO,    /* no kernel computes it */
  FUSION_ROOT,  /* the end of a kernel: its value goes to memory */
  FUSION_INNER, /* inside the kernel of fusion.root alone */
  FUSION_CHEAP  /* inside every kernel that uses it: broadcasts, iotas, scalars, one simple op on what is in memory; it
                   may be a root as well (see needed) */
} fusion_role;

/* All by op id of the module; entries of other computations' ops are zero. Arrays in the arena that fusion_make was
 * given. */
typedef struct fusion_plan {
  uint8_t *role;     /* fusion_role */
  bool *needed;      /* CHEAP: some op outside kernels uses it too, so that it has a buffer */
  ir_op **root;      /* INNER: the root; ROOT: itself */
  const char **why;  /* ROOT: why the value is in memory; static */
  uint32_t *size;    /* ROOT: ops in its kernel */
  ir_op **first;     /* ROOT: the root whose kernel stores it, and which is listed first of those; itself as a rule */
  ir_op **next;      /* ROOT: the next that the kernel stores, or NULL */
  ir_op **turn;      /* ROOT that is first: the op among them where the kernel stands in the order */
  const char **one;  /* ROOT: why it is stored by a kernel that stores others too, or why by no such; or NULL; static */
  uint8_t *edges;    /* ROOT: values of its kernel that are picked from two */
  uint8_t *scans;    /* ROOT: along which dimension its kernel has scans, and which way: 0 for none */
  bool *plain;       /* ROOT, INNER: no move stands between the kernel's iterations and its elements */
  bool *spread;      /* INNER: a dimension of it follows from several of the kernel's */
  uint32_t *waits;   /* how many async operations are waited for before the op; NULL: the module has none */
  bool skips_places; /* nobody reads the places of an argmax that only count (passes/hlo/arg_reduce.h) */
} fusion_plan;

/* An elementwise op with a loop, or one that only moves indexes, on static arrays. */
bool fusion_is_candidate(const ir_op *op);
/* The operands are read at other indexes, which a kernel can do: broadcast, slice, reverse, transpose; reshapes of
 * which no dimension is a part of several; pads and concatenations; slices from places that are computed.
 * fusion_moves.c */
bool fusion_moves_index(const ir_op *op);
/* Those that are no kernels by themselves: a view, or a routine, unless others are in the kernel. */
bool fusion_is_soft(const ir_op *op);
/* Pads and concatenations: a value that is there in some iterations only. */
bool fusion_has_edges(const ir_op *op);
/* A reshape that makes several dimensions of one. */
bool fusion_splits(const ir_op *op);
/* Dimension d of a reshape's operand is dimensions from[d] to to[d] - 1 of its result: false where it is not. */
bool fusion_reshape_groups(const ir_op *op, uint32_t *from, uint32_t *to);
/* A reduce of one array whose body is one op that a kernel can do lane by lane; that op, or NULL. */
const ir_op *fusion_reduction(const ir_op *op);
/* A reduce-window that gives each element combined with all before it along one dimension (back: with all after it), by
 * an op as fusion_reduction's; that op, or NULL. */
const ir_op *fusion_scan(const ir_op *op, uint32_t *along, bool *back);
/* f is made for all of the module once (fusion_make), then filled for each computation, whose ops come in `order`.
 * Linear in the operands. */
XLAC_MUST_USE bool fusion_make(fusion_plan *f, const ir_module *m, base_arena *arena);
void fusion_decide(fusion_plan *f, const ir_computation *c, uint32_t n, ir_op *const *order);
/* fusion_merge.c: after fusion_decide, makes one kernel of several that iterate over the same elements and read the
 * same memory, or each other's values, where the order of steps allows it. `order` is that of the steps; numbers: by op
 * id, zeros, and zeros again after. false when out of memory. */
XLAC_MUST_USE bool fusion_merge(fusion_plan *f, uint32_t n, ir_op *const *order, uint32_t *numbers,
                                base_arena *scratch);
/* Whether the dimensions of what op (a reduction) reduces, in their order, are kept ones, reduced ones, kept ones, so
 * that a kernel can go through it in that order. */
bool fusion_reduces_in_order(const ir_op *op);
enum { FUSION_SHORT = 64 /* elements that are too few to reduce side by side */ };

#endif
