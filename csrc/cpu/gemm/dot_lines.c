/* Which products can be made some lines at a time, so that what is done with them is done while they are in the cache,
 * and what they are made from has just been put there: a layer's bias and activation, a normalisation before a
 * projection, and attention, where the softmax of some queries' scores stands between two products and no matrix of
 * scores is ever in memory. What may go together is the plan's to find (plan/tile.c); here it is said of a product by
 * itself. */
#include "../../base/isa/isa.h"
#include "../routine.h"
#include "dot_gemm.h"

enum {
  LINES_LEAST =
      16, /* rows of a batch; columns are to fill most of a panel, or else much of it is multiplied for nothing */
  LINES_TERMS = 16,        /* or else packing costs as much as the product */
  LINES_PACKED = 32 << 20, /* bytes of the packed operand, of which none is left out */
  LINES_NEAR = 512 << 10,  /* bytes of it in a batch that stay in the second cache while lines go by */
  LINES_FAR_ROWS = 48      /* rows at once where they don't, so that what is read serves many */
};

/* Why not, or NULL. g is prepared. */
static const char *lines_objection(const cpu_gemm *g) {
  if (base_isa_best() < BASE_ISA_AVX2) return "the next step is a product, which needs AVX2 to be made by rows";
  if (g->m.count < LINES_LEAST || 4 * g->n.count < 3 * g->kernel.columns || g->k.count < LINES_TERMS)
    return "the next step is a product of too few rows, columns or terms to be made by rows";
  if (g->scratch_bytes > LINES_PACKED)
    return "the next step is a product with too large an operand to be packed whole, as rows need it";
  return NULL;
}

int cpu_prepare_lines(cpu_prepare_run *x, const cpu_gemm *dims) {
  const ir_op *op = x->op;
  base_dtype a = (base_dtype)ir_operand_type(op, 0)->dtype, b = (base_dtype)ir_operand_type(op, 1)->dtype;
  cpu_gemm g = *dims;
  cpu_gemm_types(&g, a, b, (base_dtype)op->type->dtype, false);
  x->out->lines.why = "the next step is a product of types that it must convert before";
  if (g.a_type != a || g.b_type != b || !cpu_gemm_prepare_lines(&g)) return 0;
  x->out->lines.why = lines_objection(&g);
  if (x->out->lines.why) return 0;
  x->lines = base_arena_memdup(x->arena, &g, sizeof g);
  if (!x->lines) return base_oom(x->err, "a product");
  bool near = g.panels * g.panel_bytes <= LINES_NEAR && !g.shifted;
  x->out->lines.n = g.batch.count * g.m.count;
  x->out->lines.at_once = near ? g.kernel.rows : (LINES_FAR_ROWS + g.kernel.rows - 1) / g.kernel.rows * g.kernel.rows;
  if (g.shifted) x->out->lines.at_once--; /* for the row beside them */
  x->out->lines.batches = g.batch.count;
  x->out->lines.packed = g.scratch_bytes;
  x->out->lines.own = cpu_gemm_owns_lines(&g);
  return 0;
}
