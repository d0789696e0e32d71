/* canonicalize on Shardy's ops: collectives that do nothing or undo one another go, those that follow one another
 * become one, and manual computations lose arguments that nobody reads, or go where they are no different from what
 * is around them. Source: Shardy's canonicalization.cc and the canonicalisers of its ops. */
#include "../../ir/sdy/sdy.h"
#include "mlir_simplify.h"

/* --- parts --- */

/* An attribute of axes by dimension. */
static const sdy_axis_lists *sdyc_lists(const ir_op *op, const char *key) {
  return sdy_of(ir_mattr_of(op, key), SDY_AXIS_LISTS);
}

/* An attribute that is one list of axes; empty where it is missing. */
static sdy_axes sdyc_axes(const ir_op *op, const char *key) {
  const sdy_axes *a = sdy_of(ir_mattr_of(op, key), SDY_AXES);
  return a ? *a : (sdy_axes){0, NULL};
}

static const sdy_sharding *sdyc_out(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
}

/* A collective along no axes. */
static bool sdyc_all_empty(const sdy_axis_lists *lists) {
  for (uint32_t i = 0; i < lists->n; i++)
    if (lists->v[i].n) return false;
  return true;
}

/* The op becomes its operand. */
static int sdyc_drop(opt_rewriter *rw, ir_op *op, ir_value to, bool *changed) {
  assert(op->n_results == 1);
  opt_replace_one(rw, op, to);
  *changed = true;
  return opt_rewriter_status(rw);
}

static int sdyc_drop_if(opt_rewriter *rw, ir_op *op, bool yes, bool *changed) {
  return yes ? sdyc_drop(rw, op, opt_operand(op, 0), changed) : 0;
}

/* A collective of operand v and result sharding s, with one attribute of its own. */
static ir_value sdyc_make(opt_rewriter *rw, ir_opcode opcode, ir_value v, const char *key, const ir_mattr *own,
                          const sdy_sharding *s) {
  ir_value to = opt_make(rw, opcode, opt_type(v), 1, &v);
  opt_set(rw, to, key, own);
  opt_set(rw, to, "out_sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  return to;
}

/* --- collectives of nothing --- */

static int sdyc_gather_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  return sdyc_drop_if(rw, op, sdyc_all_empty(sdyc_lists(op, "gathering_axes")), changed);
}

static int sdyc_slice_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  return sdyc_drop_if(rw, op, sdyc_all_empty(sdyc_lists(op, "slicing_axes")), changed);
}

static int sdyc_scatter_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  return sdyc_drop_if(rw, op, sdyc_all_empty(sdyc_lists(op, "reduce_scatter_axes")), changed);
}

static int sdyc_reduce_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  return sdyc_drop_if(rw, op, sdyc_axes(op, "reduction_axes").n == 0, changed);
}

/* From a sharding to the same one. */
static int sdyc_permute_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  const sdy_sharding *from = sdy_shown(rw->m, opt_operand(op, 0));
  return sdyc_drop_if(rw, op, from && sdy_sharding_equivalent(from, sdyc_out(op)), changed);
}

/* Collectives are not pure to the driver, but an all_to_all that nobody reads can go. */
static int sdyc_unused_exchange(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (opt_is_used(rw, op)) return 0;
  opt_erase(rw, op);
  *changed = true;
  return 0;
}

/* --- one after the other --- */

/* all_slice(all_gather(x)) along the same axes is x. */
static int sdyc_slice_of_gather(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *in = ir_operand(op, 0);
  if (in->opcode != IR_OP_SDY_ALL_GATHER) return 0;
  bool same = sdy_equal(SDY_AXIS_LISTS, sdyc_lists(in, "gathering_axes"), sdyc_lists(op, "slicing_axes"));
  return same ? sdyc_drop(rw, op, opt_operand(in, 0), changed) : 0;
}

/* The sum of one value and zeros is the value. */
static int sdyc_sum_of_replicated(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *in = ir_operand(op, 0);
  if (in->opcode != IR_OP_SDY_REPLICATED_TO_UNREDUCED) return 0;
  bool same = sdy_axes_equal(sdyc_axes(in, "axes"), sdyc_axes(op, "reduction_axes"));
  return same ? sdyc_drop(rw, op, opt_operand(in, 0), changed) : 0;
}

/* All axes of lists, in the order of the mesh. */
static sdy_axes sdyc_flatten(opt_rewriter *rw, const sdy_axis_lists *lists, const sdy_mesh *mesh) {
  assert(mesh != NULL);
  uint32_t n = 0;
  for (uint32_t i = 0; i < lists->n; i++) n += lists->v[i].n;
  sdy_axis *v = BASE_ARRAY(&rw->arena, sdy_axis, (size_t)n + 1);
  rw->failed = rw->failed || !v;
  if (!v) return (sdy_axes){0, NULL};
  n = 0;
  for (uint32_t i = 0; i < lists->n; i++)
    for (uint32_t k = 0; k < lists->v[i].n; k++) v[n++] = lists->v[i].v[k];
  return (sdy_axes){sdy_axes_sort_and_merge(v, n, mesh), v};
}

/* all_reduce of shards padded with zeros puts the shards side by side: an all_gather. */
static int sdyc_sum_of_sharded(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *in = ir_operand(op, 0);
  if (in->opcode != IR_OP_SDY_SHARDED_TO_UNREDUCED) return 0;
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, sdyc_out(in));
  if (!mesh || !sdy_axes_equal(sdyc_flatten(rw, sdyc_lists(in, "axes"), mesh), sdyc_axes(op, "reduction_axes")))
    return 0;
  ir_value to =
      sdyc_make(rw, IR_OP_SDY_ALL_GATHER, opt_operand(in, 0), "gathering_axes", ir_mattr_of(in, "axes"), sdyc_out(op));
  return rw->failed ? opt_rewriter_status(rw) : sdyc_drop(rw, op, to, changed);
}

/* --- all-to-all after all-to-all --- */

/* Two exchanges that touch a common dimension depend on their order. */
static bool sdyc_share_dims(const sdy_params *a, const sdy_params *b) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t k = 0; k < b->n; k++) {
      const sdy_param *x = &a->v[i], *y = &b->v[k];
      if (x->from == y->from || x->from == y->to || x->to == y->from || x->to == y->to) return true;
    }
  return false;
}

/* By the dimensions they come from, as the verifier wants them. */
static const sdy_params *sdyc_join_params(ir_module *m, const sdy_params *a, const sdy_params *b) {
  sdy_param *v = BASE_ARRAY(&m->arena, sdy_param, (size_t)a->n + b->n + 1);
  if (!v) return NULL;
  for (uint32_t i = 0; i < a->n + b->n; i++) {
    sdy_param p = i < a->n ? a->v[i] : b->v[i - a->n];
    uint32_t k = i;
    for (; k && v[k - 1].from > p.from; k--) v[k] = v[k - 1];
    v[k] = p;
  }
  return sdy_params_make(m, a->n + b->n, v);
}

/* all_to_all(all_to_all(x)) with no dimension in common is one all_to_all. */
static int sdyc_exchange_twice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *in = ir_operand(op, 0);
  if (in->opcode != IR_OP_SDY_ALL_TO_ALL || !opt_has_one_use(rw, in)) return 0;
  const sdy_params *a = sdy_of(ir_mattr_of(in, "params"), SDY_PARAMS);
  const sdy_params *b = sdy_of(ir_mattr_of(op, "params"), SDY_PARAMS);
  if (sdyc_share_dims(a, b)) return 0;
  const ir_mattr *joined = sdy_attr(rw->m, SDY_PARAMS, sdyc_join_params(rw->m, a, b));
  ir_value to = sdyc_make(rw, IR_OP_SDY_ALL_TO_ALL, opt_operand(in, 0), "params", joined, sdyc_out(op));
  return rw->failed ? opt_rewriter_status(rw) : sdyc_drop(rw, op, to, changed);
}

/* --- all-slice after all-reduce: reduce-scatter --- */

/* all_slice after all_reduce: each device sums all and keeps a part, which is what reduce_scatter does. scatter: the
 * sliced axes that are summed over; rest: those that are not, which stay an all_slice after it. */
typedef struct sdyc_fusion {
  sdy_axes *scatter, *rest; /* by dimension */
  uint32_t n;
  bool has_rest;
  const sdy_sharding *out;
} sdyc_fusion;

/* Every user is an all-slice along the same axes, and op is the first. */
static bool sdyc_is_first_slice(opt_rewriter *rw, const ir_op *reduce, const ir_op *op) {
  assert(reduce->opcode == IR_OP_SDY_ALL_REDUCE);
  uint32_t uses = 0;
  IR_FOR_USES(use, reduce) {
    uses++;
    if (use->user->opcode != IR_OP_SDY_ALL_SLICE || use->user->parent != op->parent) return false;
    if (!sdy_equal(SDY_AXIS_LISTS, sdyc_lists(use->user, "slicing_axes"), sdyc_lists(op, "slicing_axes"))) return false;
  }
  if (uses == 1) return opt_has_one_use(rw, reduce);
  for (const ir_op *before = op->prev; before && before != reduce; before = before->prev)
    if (before->opcode == IR_OP_SDY_ALL_SLICE && ir_operand(before, 0) == reduce) return false;
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == reduce) return false;
  return true;
}

/* Of each dimension's sliced axes, those it begins with that are summed over are scattered. */
static bool sdyc_split_axes(opt_rewriter *rw, sdyc_fusion *f, const sdy_axis_lists *sliced, sdy_axes summed) {
  bool *used = base_arena_zalloc(&rw->arena, (size_t)summed.n + 1);
  f->n = sliced->n;
  f->scatter = BASE_ARRAY(&rw->m->arena, sdy_axes, (size_t)f->n + 1);
  f->rest = BASE_ARRAY(&rw->m->arena, sdy_axes, (size_t)f->n + 1);
  rw->failed = !used || !f->scatter || !f->rest;
  if (rw->failed) return false;
  /* Every summed axis must be scattered, or the sum would be incomplete. */
  uint32_t left = summed.n;
  for (uint32_t d = 0; d < f->n; d++) {
    sdy_axes a = sliced->v[d];
    uint32_t n = 0;
    for (bool found = true; n < a.n && found;) {
      found = false;
      for (uint32_t i = 0; i < summed.n && !found; i++)
        if (!used[i] && sdy_axis_equal(summed.v[i], a.v[n])) found = used[i] = true;
      n += found;
      left -= found;
    }
    f->scatter[d] = (sdy_axes){n, a.v};
    f->rest[d] = (sdy_axes){a.n - n, a.v ? a.v + n : NULL};
    f->has_rest = f->has_rest || n < a.n;
  }
  return left == 0;
}

/* What the operand is sharded along, and the scattered axes after it. */
static bool sdyc_scattered(opt_rewriter *rw, sdyc_fusion *f, const ir_op *reduce, const sdy_sharding *slice) {
  const sdy_sharding *from = sdy_shown(rw->m, opt_operand(reduce, 0)), *like = sdyc_out(reduce);
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, like);
  sdy_sharding *s = base_arena_memdup(&rw->m->arena, slice, sizeof *slice);
  sdy_dim *dims = BASE_ARRAY(&rw->m->arena, sdy_dim, (size_t)f->n + 1);
  rw->failed = !s || !dims;
  if (rw->failed || !mesh) return false;
  assert(f->scatter != NULL);
  for (uint32_t d = 0; d < f->n; d++) {
    sdy_axes have = from && d < from->n_dims ? from->dims[d].axes : (sdy_axes){0, NULL};
    sdy_axis *v = BASE_ARRAY(&rw->m->arena, sdy_axis, (size_t)have.n + f->scatter[d].n + 1);
    rw->failed = !v;
    if (!v) return false;
    if (have.n) memcpy(v, have.v, have.n * sizeof *v);
    uint32_t n = have.n;
    for (uint32_t i = 0; i < f->scatter[d].n; i++) n = sdy_axes_append(v, n, f->scatter[d].v[i], mesh);
    dims[d] = (sdy_dim){{n, v}, false, -1};
  }
  *s = (sdy_sharding){like->mesh_name, like->mesh, f->n, SDY_SUM, dims, slice->replicated, slice->unreduced};
  f->out = s;
  return true;
}

/* All slices of the sum become the one reduce_scatter (and slice of the rest). */
static int sdyc_slice_of_sum(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_op *reduce = ir_operand(op, 0);
  sdyc_fusion f = {.n = 0};
  if (reduce->opcode != IR_OP_SDY_ALL_REDUCE || !sdyc_is_first_slice(rw, reduce, op)) return 0;
  if (!sdyc_split_axes(rw, &f, sdyc_lists(op, "slicing_axes"), sdyc_axes(reduce, "reduction_axes")) ||
      !sdyc_scattered(rw, &f, reduce, sdyc_out(op)))
    return opt_rewriter_status(rw);
  const ir_mattr *axes = sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, f.n, f.scatter));
  ir_value to = sdyc_make(rw, IR_OP_SDY_REDUCE_SCATTER, opt_operand(reduce, 0), "reduce_scatter_axes", axes, f.out);
  if (ir_mattr_of(reduce, "reduction_op")) opt_set(rw, to, "reduction_op", ir_mattr_of(reduce, "reduction_op"));
  if (f.has_rest && !rw->failed) {
    const ir_mattr *rest = sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, f.n, f.rest));
    to = sdyc_make(rw, IR_OP_SDY_ALL_SLICE, to, "slicing_axes", rest, sdyc_out(op));
  }
  if (rw->failed) return opt_rewriter_status(rw);
  while (reduce->uses && !rw->failed) opt_replace_one(rw, reduce->uses->user, to);
  if (!rw->failed) opt_erase(rw, reduce);
  *changed = true;
  return opt_rewriter_status(rw);
}

const opt_pattern opt_sdy_collective_patterns[] = {
    {IR_OP_SDY_ALL_GATHER, sdyc_gather_nothing},      {IR_OP_SDY_ALL_SLICE, sdyc_slice_of_gather},
    {IR_OP_SDY_ALL_SLICE, sdyc_slice_nothing},        {IR_OP_SDY_ALL_SLICE, sdyc_slice_of_sum},
    {IR_OP_SDY_ALL_REDUCE, sdyc_reduce_nothing},      {IR_OP_SDY_ALL_REDUCE, sdyc_sum_of_replicated},
    {IR_OP_SDY_ALL_REDUCE, sdyc_sum_of_sharded},      {IR_OP_SDY_ALL_TO_ALL, sdyc_exchange_twice},
    {IR_OP_SDY_ALL_TO_ALL, sdyc_unused_exchange},     {IR_OP_SDY_COLLECTIVE_PERMUTE, sdyc_permute_nothing},
    {IR_OP_SDY_REDUCE_SCATTER, sdyc_scatter_nothing}, {IR_OP_INVALID, NULL},
};

/* --- manual computations --- */

/* i counts what is left, old what there was. */
static int sdyc_unused_arguments(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(op->n_called == 1);
  ir_computation *c = op->called[0];
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_sharding **left = BASE_ARRAY(&rw->arena, const sdy_sharding *, (size_t)in->n + 1);
  uint32_t n = 0, before = c->n_params;
  if (!left) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0, old = 0; i < c->n_params && old < in->n; old++) {
    if (opt_is_used(rw, c->params[i])) {
      left[n++] = in->v[old];
      i++;
      continue;
    }
    opt_erase_parameter(rw, c, i);
    ir_operand_remove(op, i);
  }
  if (c->n_params == before) return 0;
  opt_set(rw, (ir_value){op, 0}, "in_shardings", sdy_attr(rw->m, SDY_SHARDINGS, sdy_shardings_make(rw->m, n, left)));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* How many devices there are along the manual axes. */
static int64_t sdyc_manual_size(opt_rewriter *rw, const ir_op *op, const sdy_shardings *in, const sdy_shardings *out) {
  const sdy_names *axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  const sdy_mesh *mesh = NULL;
  for (uint32_t i = 0; i < in->n + out->n && (!mesh || sdy_mesh_is_empty(mesh)); i++)
    mesh = sdy_mesh_of(rw->m, i < in->n ? in->v[i] : out->v[i - in->n]);
  int64_t size = 1;
  for (uint32_t i = 0; mesh && i < axes->n; i++) size *= sdy_axis_size((sdy_axis){.name = axes->v[i]}, mesh);
  return size;
}

/* Only parameters: the body returns arguments or values from outside. */
static bool sdyc_is_hollow(const ir_op *op) {
  IR_FOR_OPS(inner, op->called[0])
  if (inner->opcode != IR_OP_PARAMETER) return false;
  return true;
}

/* Any of the results has a data-flow edge. */
static bool sdyc_has_edge(const ir_op *op) {
  IR_FOR_USES(use, op)
  if (use->user->opcode == IR_OP_SDY_DATA_FLOW_EDGE) return true;
  return false;
}

/* Edges hold on to arguments and results of the computation: who adds them sinks them again. */
static bool sdyc_has_edges(const ir_op *op) {
  const ir_computation *c = op->called[0];
  bool any = sdyc_has_edge(op);
  for (uint32_t i = 0; i < c->n_params && !any; i++) any = sdyc_has_edge(c->params[i]);
  return any;
}

/* A computation without manual axes of a size above 1 is its body; one without operands and results may go only where
 * it does nothing. */
static int sdyc_plain_computation(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_computation *c = op->called[0];
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  bool alone = in->n == 0 && out->n == 0;
  if (sdyc_has_edges(op)) return 0;
  if (alone && !sdyc_is_hollow(op)) return 0;
  if (!alone && sdyc_manual_size(rw, op, in, out) != 1) return 0;
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!args || !results) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_operands; i++) args[i] = opt_operand(op, i);
  opt_inline(rw, c, args, results);
  assert(c->n_results == op->n_results || rw->failed);
  opt_replace_op(rw, op, results);
  *changed = true;
  return opt_rewriter_status(rw);
}

const opt_pattern opt_sdy_computation_patterns[] = {
    {IR_OP_SDY_MANUAL_COMPUTATION, sdyc_unused_arguments},
    {IR_OP_SDY_MANUAL_COMPUTATION, sdyc_plain_computation},
    {IR_OP_INVALID, NULL},
};
