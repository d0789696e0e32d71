/* Whether a value that several kernels read is stored once, or computed by each of them.
 *
 *    d = f32[512,512,3] subtract(b0, b1)      b0, b1: broadcasts of f32[512,3]
 *    q = f32[512,512] reduce(multiply(d, d))  one kernel
 *    f = f32[512,3] reduce(multiply(d, w))    another: d is computed in both, and never in memory
 *
 * Behind the value stands a tree of ops, up to what is in memory anyway: arguments, results of reductions and routines,
 * values that are results. What is read anew counts by its share of the value's elements, so that what is broadcast is
 * free. Every op is decided by itself when its turn comes: an op in the tree may turn out to be in memory for a reason
 * of its own, which only makes the tree smaller. */
#include "fusion_inside.h"

enum {
  ANEW_ARRAYS = 4,
  ANEW_LOOK = 8,   /* uses of an op that are looked at */
  ANEW_READERS = 3 /* that count, at most */
};

typedef struct anew_tree {
  const fusion_model *m;
  double ops;      /* cycles an element */
  uint32_t weight; /* ops */
  int64_t count;   /* elements */
  bool in_tile;    /* it will be gone through tile by tile: some rows are in the second cache at a time */
  uint32_t n_arrays;
  const ir_op *arrays[ANEW_ARRAYS]; /* in memory, each once */
} anew_tree;

/* Somebody needs the value in memory, whatever becomes of its other readers. A look at a few of them: to be wrong costs
 * time, not bits. */
static bool anew_is_stored(const ir_op *op) {
  while (op->opcode == IR_OP_RESHAPE) op = ir_operand(op, 0);
  if (fusion_reduction(op) || !fusion_is_candidate(op)) return true;
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return true;
  uint32_t looked = 0;
  IR_FOR_USES(use, op) {
    if (looked++ == ANEW_LOOK) break;
    if (!fusion_reduction(use->user) && !fusion_is_candidate(use->user)) return true;
  }
  return false;
}

/* false where there are too many. */
static bool anew_add_array(anew_tree *x, const ir_op *op) {
  for (uint32_t i = 0; i < x->n_arrays; i++)
    if (x->arrays[i] == op) return true;
  if (x->n_arrays == ANEW_ARRAYS) return false;
  x->arrays[x->n_arrays++] = op;
  return true;
}

/* A part of what is in memory, perhaps without its dimensions of size 1. */
static bool anew_is_slice(const ir_op *op) {
  if (op->opcode == IR_OP_RESHAPE && fusion_moves_index(op) && !fusion_splits(op)) op = ir_operand(op, 0);
  return op->opcode == IR_OP_SLICE && anew_is_stored(ir_operand(op, 0));
}

/* Adds op, which is no more than a lane by lane function of what is behind it. false where that is not so, or too much.
 * Depth is bounded by the weight. */
static bool anew_add(anew_tree *x, const ir_op *op, bool top) {
  uint32_t weight = 0;
  if (fusion_is_cheap(op, &weight)) {
    x->weight += weight;
    const ir_op *from = op;
    while (from->opcode == IR_OP_BROADCAST) from = ir_operand(from, 0);
    if (from->opcode == IR_OP_IOTA) x->ops += fusion_count_cost(x->m);
    bool memory = from->opcode != IR_OP_IOTA && !fusion_is_scalar_constant(from);
    return x->weight <= FUSION_MAX_CHEAP && (!memory || anew_add_array(x, from));
  }
  if (!top && anew_is_stored(op)) return anew_add_array(x, op);
  if (anew_is_slice(op)) {
    x->weight++;
    return anew_add_array(x, op);
  }
  if (fusion_moves_index(op) || op->opcode == IR_OP_REDUCE_WINDOW || ++x->weight > FUSION_MAX_CHEAP) return false;
  x->ops += fusion_op_cost(x->m, op);
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!anew_add(x, ir_operand(op, i), false)) return false;
  return true;
}

enum { ANEW_ROWS = 16 }; /* that are enough for tiles */

/* Whether op adds up (or the like) rows that tiles can have: its last dimensions, and not too many elements. */
static bool anew_reduces_rows(const anew_tree *x, const ir_op *op) {
  const ir_ints *dims = fusion_reduction(op) ? ir_get_ints(op, IR_ATTR_DIMENSIONS) : NULL;
  const ir_type *from = dims ? ir_operand_type(op, 0) : NULL;
  if (!dims || op->type->count < ANEW_ROWS || ir_type_bytes(from) / op->type->count > fusion_tile_bytes(x->m))
    return false;
  for (uint32_t i = 0; i < dims->n; i++)
    if (dims->v[i] < from->rank - dims->n) return false;
  return true;
}

/* A value that is reduced by rows goes with what is made of these rows: softmax's exponentials and their sums. */
static bool anew_is_in_tile(const anew_tree *x, const ir_op *op) {
  uint32_t looked = 0;
  IR_FOR_USES(use, op) {
    if (looked++ == ANEW_LOOK) break;
    if (anew_reduces_rows(x, use->user)) return true;
  }
  return false;
}

/* What is in a cache at a time of an array that is walked with the value. */
static int64_t anew_extent(const anew_tree *x, const ir_type *t) {
  int64_t bytes = ir_type_bytes(t), tile = fusion_tile_bytes(x->m);
  return x->in_tile && t->count == x->count && bytes > tile ? tile : bytes;
}

/* Reading all arrays once, cycles an element. */
static double anew_reads(const anew_tree *x) {
  double cycles = 0;
  for (uint32_t i = 0; i < x->n_arrays; i++) {
    const ir_type *t = x->arrays[i]->type;
    int64_t bytes = ir_type_bytes(t);
    double share = x->count ? (double)bytes / (double)x->count : 0;
    cycles += share * fusion_read_cost(x->m, anew_extent(x, t));
  }
  return cycles;
}

bool fusion_is_better_anew(const fusion_model *m, const ir_op *op, uint32_t readers, fusion_op *entry) {
  assert(readers > 0);
  anew_tree x = {.m = m, .count = op->type->count};
  if (!anew_add(&x, op, true)) return false;
  x.in_tile = anew_is_in_tile(&x, op);
  int64_t bytes = anew_extent(&x, op->type);
  /* Several readers may come to share a kernel, so that few of them count. */
  double n = readers < ANEW_READERS ? readers : ANEW_READERS,
         each = (double)base_dtype_bytes((base_dtype)op->type->dtype);
  double once = x.ops + anew_reads(&x);
  double stored = once + each * (fusion_write_cost(m, bytes) + n * fusion_read_cost(m, bytes));
  entry->anew = (float)(n * once * (double)x.count);
  entry->stored = (float)(stored * (double)x.count);
  return entry->anew <= entry->stored;
}
