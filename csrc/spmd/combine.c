/* All-reduces of the same groups and the same reduction become one of several operands: devices meet once instead of
 * once for each. The one stands where the first of their results is read; so does one that is alone, so that what
 * stands before and after it can be made at once. Large ones gain nothing by it, and keep their operands alive for
 * longer. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

enum { COMBINE_OPS = 256, COMBINE_BYTES = 1 << 20, COMBINE_KINDS = 4 };

/* Alike, in order, none of them read yet. */
typedef struct combine_set {
  ir_op *ops[COMBINE_OPS];
  uint32_t n;
  int64_t bytes;
} combine_set;

typedef struct combine_pass {
  opt_rewriter rw;
  combine_set sets[COMBINE_KINDS]; /* the first n_sets of them have ops */
  uint32_t n_sets;
} combine_pass;

/* What its body does with its two arguments; IR_OP_INVALID: something longer. */
static ir_opcode combine_how(const ir_op *op) {
  assert(op->opcode == IR_OP_ALL_REDUCE && op->n_called == 1);
  const ir_computation *body = op->called[0];
  const ir_op *root = body->n_results == 1 ? ir_combiner(body) : NULL;
  return root && ir_operand(root, 0) == body->params[0] ? (ir_opcode)root->opcode : IR_OP_INVALID;
}

static bool combine_fits(const ir_op *op) {
  return op->opcode == IR_OP_ALL_REDUCE && op->n_operands == 1 && shc_is_static(op->type) && !op->type->quant &&
         combine_how(op) != IR_OP_INVALID;
}

static bool combine_alike(const ir_op *a, const ir_op *b) {
  static const char *const keys[] = {"replica_groups", "use_global_device_ids"};
  bool same = a->type->dtype == b->type->dtype && combine_how(a) == combine_how(b) &&
              !ir_mattr_of(a, "channel_handle") == !ir_mattr_of(b, "channel_handle");
  for (size_t i = 0; i < sizeof keys / sizeof *keys && same; i++)
    same = ir_mattr_equal(ir_mattr_of(a, keys[i]), ir_mattr_of(b, keys[i]));
  return same;
}

static bool combine_has(const combine_set *x, const ir_op *op) {
  for (uint32_t k = 0; k < x->n; k++)
    if (x->ops[k] == op) return true;
  return false;
}

/* Also in its regions, which nest no deeper than the reader allows. */
static bool combine_reads(const combine_set *x, const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (combine_has(x, op->operands[i].op)) return true;
  for (uint32_t r = 0; r < op->n_called; r++) {
    const ir_computation *c = op->called[r];
    if (c->owner != op) continue;
    for (uint32_t i = 0; i < c->n_results; i++)
      if (combine_has(x, c->results[i].op)) return true;
    IR_FOR_OPS(inner, c) {
      if (combine_reads(x, inner)) return true;
    }
  }
  return false;
}

/* At the cursor. */
static void combine_make(opt_rewriter *rw, const combine_set *x) {
  const ir_type *types[COMBINE_OPS];
  ir_value v[COMBINE_OPS];
  ir_op *first = x->ops[0];
  assert(x->n > 1);
  for (uint32_t i = 0; i < x->n; i++) {
    types[i] = x->ops[i]->type;
    v[i] = opt_operand(x->ops[i], 0);
  }
  ir_op *made = opt_make_n(rw, IR_OP_ALL_REDUCE, x->n, types, x->n, v, 1);
  static const char *const keys[] = {"replica_groups", "use_global_device_ids", "channel_handle"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (made && ir_mattr_of(first, keys[i])) opt_set(rw, (ir_value){made, 0}, keys[i], ir_mattr_of(first, keys[i]));
  if (!made) return;
  opt_make_reducer(rw, made, combine_how(first), opt_tensor(rw, (base_dtype)first->type->dtype, 0, NULL));
  for (uint32_t i = 0; i < x->n && !rw->failed; i++) opt_replace_one(rw, x->ops[i], (ir_value){made, i});
}

/* At the cursor, which is later. */
static void combine_move(opt_rewriter *rw, ir_op *op) {
  ir_value operand = opt_operand(op, 0), moved;
  opt_copy_op(rw, op, &operand, &moved);
  if (!rw->failed) opt_replace_one(rw, op, moved);
}

/* `before`: the op that comes next; NULL: the end of c. The last set takes the place of this one. */
static void combine_close(combine_pass *x, combine_set *set, ir_computation *c, ir_op *before) {
  assert(x->n_sets > 0 && set->n > 0 && set->n <= COMBINE_OPS);
  if (before)
    opt_at(&x->rw, before);
  else
    opt_at_end(&x->rw, c, set->ops[0]);
  if (set->n > 1)
    combine_make(&x->rw, set);
  else if (before && set->ops[0]->next != before)
    combine_move(&x->rw, set->ops[0]);
  *set = x->sets[--x->n_sets];
}

/* To those like it, or to a set of its own. */
static void combine_add(combine_pass *x, ir_op *op, int64_t bytes) {
  combine_set *set = x->sets;
  while (set < x->sets + x->n_sets && !combine_alike(set->ops[0], op)) set++;
  if (set < x->sets + x->n_sets && (set->n == COMBINE_OPS || set->bytes + bytes > COMBINE_BYTES))
    combine_close(x, set, op->parent, op), set = x->sets + x->n_sets;
  if (set == x->sets + COMBINE_KINDS) combine_close(x, --set, op->parent, op);
  if (set == x->sets + x->n_sets) {
    set->n = 0;
    set->bytes = 0;
    x->n_sets++;
  }
  set->ops[set->n++] = op;
  set->bytes += bytes;
}

static void combine_computation(combine_pass *x, ir_computation *c) {
  for (ir_op *op = c->first, *next; op && !x->rw.failed; op = next) {
    next = op->next;
    for (uint32_t i = x->n_sets; i-- > 0;)
      if (combine_reads(&x->sets[i], op)) combine_close(x, &x->sets[i], c, op);
    int64_t bytes = combine_fits(op) ? ir_type_bytes(op->type) : COMBINE_BYTES + 1;
    if (bytes <= COMBINE_BYTES) combine_add(x, op, bytes);
  }
  while (x->n_sets) combine_close(x, &x->sets[0], c, NULL);
}

int spmd_combine_sums(ir_module *m, xlac_error *err) {
  combine_pass x = {.n_sets = 0};
  TRY(opt_rewriter_init(&x.rw, m, err));
  IR_FOR_COMPUTATIONS(c, m) combine_computation(&x, c);
  int status = opt_rewriter_status(&x.rw);
  opt_rewriter_free(&x.rw);
  return status;
}
