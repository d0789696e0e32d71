/* Which ops become one kernel. Fusion does not change the module: it says for every op of a computation whether a
 * kernel ends at it (a root), whether it is computed inside the kernel of its one root, or inside every kernel that
 * uses it, and why it got a buffer of its own. */
#ifndef XLAC_OPT_FUSION_H
#define XLAC_OPT_FUSION_H

#include "../ir/ir.h"

typedef enum fusion_role {
  FUSION_NO,    /* no kernel computes it */
  FUSION_ROOT,  /* the end of a kernel: its value goes to memory */
  FUSION_INNER, /* inside the kernel of fusion.root alone */
  FUSION_CHEAP /* inside every kernel that uses it: broadcasts, iotas, scalars; it may be a root as well (see needed) */
} fusion_role;

/* All by op id of the module; entries of other computations' ops are zero. */
typedef struct fusion_plan {
  uint8_t *role;     /* fusion_role */
  bool *needed;      /* CHEAP: some op outside kernels uses it too, so that it has a buffer */
  ir_op **root;      /* INNER: the root; ROOT: itself */
  const char **why;  /* ROOT: why the value is in memory; static */
  uint32_t *size;    /* ROOT: ops in its kernel */
  uint32_t *waits;   /* how many async operations are waited for before the op; NULL: the module has none */
  bool skips_places; /* nobody reads the places of an argmax that only count (opt/arg_reduce.h) */
} fusion_plan;

/* An elementwise op with a loop, or one that only moves indexes, on static arrays. */
bool fusion_is_candidate(const ir_op *op);
/* broadcast, slice, reverse, transpose: the operand is read at another index. */
bool fusion_moves_index(const ir_op *op);
/* A reduce of one array whose body is one op that a kernel can do lane by lane; that op, or NULL. */
const ir_op *fusion_reduction(const ir_op *op);
/* f is made for all of the module once (fusion_make), then filled for each computation, whose ops come in `order`.
 * Linear in the operands. */
XLAC_MUST_USE bool fusion_make(fusion_plan *f, const ir_module *m, base_arena *arena);
void fusion_decide(fusion_plan *f, const ir_computation *c, uint32_t n, ir_op *const *order);

#endif
