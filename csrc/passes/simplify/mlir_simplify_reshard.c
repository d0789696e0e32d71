/* canonicalize on reshards: one right after another, and one whose value another reshard has already made, maybe of
 * another shape. Source: Shardy's canonicalization.cc (ReshardOfReshard, and its reshard CSE through reshapes). */
#include "../../ir/sdy/sdy.h"
#include "mlir_simplify.h"

/* The sharding that a reshard makes. */
static const sdy_sharding *sdyr_target(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "sharding"), SDY_SHARDING);
}

/* Only where nobody else reads the first: else both are needed. */
static int sdyr_twice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *in = ir_operand(op, 0);
  if (in->opcode != IR_OP_SDY_RESHARD || !opt_has_one_use(rw, in)) return 0;
  ir_value v = opt_operand(in, 0), to = opt_make(rw, IR_OP_SDY_RESHARD, op->type, 1, &v);
  opt_set(rw, to, "sharding", ir_mattr_of(op, "sharding"));
  if (rw->failed) return opt_rewriter_status(rw);
  opt_replace_one(rw, op, to);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* --- reshards of one value --- */

/* Ops that only say how the same data are seen. */
static bool sdyr_is_view(const ir_op *op) {
  return op->opcode == IR_OP_RESHAPE || op->opcode == IR_OP_TRANSPOSE;
}

/* What a chain of views begins with. */
static ir_value sdyr_root(ir_value v) {
  while (sdyr_is_view(v.op)) v = opt_operand(v.op, 0);
  return v;
}

/* The sharding as what v's transpositions began with has it; NULL when out of memory. */
static const sdy_sharding *sdyr_untransposed(opt_rewriter *rw, const sdy_sharding *s, ir_value v) {
  for (; sdyr_is_view(v.op); v = opt_operand(v.op, 0)) {
    if (v.op->opcode == IR_OP_RESHAPE) {
      if (ir_operand_type(v.op, 0)->rank != v.op->type->rank) break;
      continue;
    }
    uint32_t n;
    const int64_t *perm = opt_ints(rw, v.op, "permutation", &n);
    sdy_sharding *to = base_arena_memdup(&rw->arena, s, sizeof *s);
    sdy_dim *dims = base_arena_memdup(&rw->arena, s->dims, s->n_dims * sizeof *dims);
    if (!perm || n != s->n_dims || !to || !dims) return NULL;
    for (uint32_t i = 0; i < n; i++) dims[perm[i]] = s->dims[i];
    to->dims = dims;
    s = to;
  }
  return s;
}

/* An axis, and how far apart its parts are in the flat array. */
typedef struct sdyr_stride {
  sdy_axis axis;
  int64_t stride;
} sdyr_stride;

/* Of all axes, the smallest stride first; NULL when out of memory.
 * On 8x4 with [{"x"}, {"y"}] of sizes 2 and 2: y every 2 elements, x every 16. */
static sdyr_stride *sdyr_strides(opt_rewriter *rw, const sdy_sharding *s, const ir_type *type, const sdy_mesh *mesh,
                                 uint32_t *n) {
  assert(s->n_dims == type->rank);
  uint32_t total = 0;
  for (uint32_t d = 0; d < s->n_dims; d++) total += s->dims[d].axes.n;
  sdyr_stride *v = BASE_ARRAY(&rw->arena, sdyr_stride, (size_t)total + 1);
  int64_t below = 1;
  *n = 0;
  for (uint32_t d = type->rank; v && d-- > 0;) {
    sdy_axes a = s->dims[d].axes;
    int64_t parts = sdy_axes_size(a, mesh), stride = below * ((type->dims[d] + parts - 1) / parts);
    for (uint32_t i = a.n; i-- > 0;) {
      uint32_t k = (*n)++;
      for (; k && v[k - 1].stride > stride; k--) v[k] = v[k - 1];
      v[k] = (sdyr_stride){a.v[i], stride};
      stride *= sdy_axis_size(a.v[i], mesh);
    }
    below *= type->dims[d];
  }
  return v;
}

/* Both cut the flat array into the same parts. */
static bool sdyr_same_parts(opt_rewriter *rw, const sdy_sharding *a, const ir_type *x, const sdy_sharding *b,
                            const ir_type *y) {
  if (sdy_sharding_equal(a, b) && x == y) return true;
  if (!a->mesh_name || a->mesh_name != b->mesh_name || !sdy_axes_equal(a->replicated, b->replicated)) return false;
  /* Then each device has the same run of elements, whatever the shape. */
  if (!opt_is_static(x) || !opt_is_static(y) || x->encoding || y->encoding) return false;
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, a);
  if (!mesh || a->n_dims != x->rank || b->n_dims != y->rank) return false;
  uint32_t n, m;
  const sdyr_stride *p = sdyr_strides(rw, a, x, mesh, &n), *q = sdyr_strides(rw, b, y, mesh, &m);
  if (!p || !q || n != m) return false;
  for (uint32_t i = 0; i < n; i++)
    if (p[i].stride != q[i].stride || !sdy_axis_equal(p[i].axis, q[i].axis)) return false;
  return true;
}

/* In one region only; a search backwards, for there are no numbers of places. */
static bool sdyr_is_before(const ir_op *a, const ir_op *b) {
  if (a->parent != b->parent) return false;
  for (const ir_op *op = b->prev; op; op = op->prev)
    if (op == a) return true;
  return false;
}

/* Values still to be looked at: a value and its reshapes. */
typedef struct sdyr_search {
  ir_value *list;
  uint32_t n, cap;
} sdyr_search;

/* false: out of memory, which ends the search without a result. */
static bool sdyr_push(opt_rewriter *rw, sdyr_search *s, ir_value v) {
  if (s->n == s->cap) {
    uint32_t cap = s->cap ? s->cap * 2 : 16;
    ir_value *grown = BASE_ARRAY(&rw->arena, ir_value, cap);
    if (!grown) return false;
    if (s->n) memcpy(grown, s->list, s->n * sizeof *grown);
    s->list = grown;
    s->cap = cap;
  }
  s->list[s->n++] = v;
  return true;
}

/* A reshard before op that has made what op makes for `target`, of any shape; NULL: none.
 * Through reshapes, which keep the flat order; transpositions are undone on the target's side. */
static ir_op *sdyr_find(opt_rewriter *rw, const ir_op *op, const sdy_sharding *target, ir_value root) {
  sdyr_search s = {NULL, 0, 0};
  bool ok = sdyr_push(rw, &s, root);
  while (s.n && ok) {
    ir_value v = s.list[--s.n];
    IR_FOR_USES(use, v.op) {
      ir_op *user = use->user;
      if (use->index != v.index || user == op) continue;
      if (user->opcode == IR_OP_RESHAPE) ok = ok && sdyr_push(rw, &s, (ir_value){user, 0});
      if (user->opcode != IR_OP_SDY_RESHARD) continue;
      if (sdyr_same_parts(rw, sdyr_target(user), user->type, target, op->type) && sdyr_is_before(user, op)) return user;
    }
  }
  return NULL;
}

/* The views from root to v, of `from` instead of root. */
static ir_value sdyr_view_again(opt_rewriter *rw, ir_value root, ir_value v, ir_value from) {
  ir_op *path[64];
  uint32_t n = 0;
  for (; v.op != root.op && n < 64; v = opt_operand(v.op, 0)) path[n++] = v.op;
  while (n-- > 0) {
    assert(n < 64);
    ir_value to;
    rw->into = from.op->parent;
    rw->before = from.op->next;
    opt_copy_op(rw, path[n], &from, &to);
    if (rw->failed) return from;
    from = to;
  }
  return from;
}

/* Chains longer than the table of sdyr_view_again are left alone. */
static bool sdyr_is_short(ir_value root, ir_value v) {
  uint32_t n = 0;
  for (; v.op != root.op && n <= 64; v = opt_operand(v.op, 0)) n++;
  return n <= 64;
}

/* The value is looked for where its views begin. */
static int sdyr_again(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value in = opt_operand(op, 0), root = sdyr_root(in);
  if (!root.op->uses || (!root.op->uses->next && root.op == in.op) || !sdyr_is_short(root, in)) return 0;
  const sdy_sharding *target = sdyr_untransposed(rw, sdyr_target(op), in);
  ir_op *found = target ? sdyr_find(rw, op, target, root) : NULL;
  if (!found) return opt_rewriter_status(rw);
  ir_value v = {found, 0};
  if (found->type != opt_type(root)) {
    rw->into = found->parent;
    rw->before = found->next;
    v = opt_make(rw, IR_OP_RESHAPE, opt_type(root), 1, &v);
  }
  if (!rw->failed) v = sdyr_view_again(rw, root, in, v);
  if (rw->failed) return opt_rewriter_status(rw);
  opt_replace_one(rw, op, v);
  *changed = true;
  return opt_rewriter_status(rw);
}

const opt_pattern opt_sdy_reshard_patterns[] = {{IR_OP_SDY_RESHARD, sdyr_twice}, {IR_OP_INVALID, NULL}};
const opt_pattern opt_sdy_reuse_patterns[] = {{IR_OP_SDY_RESHARD, sdyr_again}, {IR_OP_INVALID, NULL}};
