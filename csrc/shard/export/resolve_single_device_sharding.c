/* sdy-resolve-single-device-sharding: an op whose results are on one device (on a maximal mesh) goes into an
 * stablehlo.if that only that device takes; the others make zeros, and a sum over all devices gives every one of them
 * the results.
 * Requires: reshards around such ops (sdy-insert-explicit-reshards). Preserves: what the program computes. Source:
 * Shardy's description of the pass and its tests (2026-08-22). */
#include "../common/common.h"

/* %1 = stablehlo.abs %a on <@one, []>, where @one = <[], device_ids=[1]> and @m = <["x"=2]>, becomes
 *    %0 = stablehlo.convert (stablehlo.partition_id) : i64;  %2 = stablehlo.compare EQ, %0, 1
 *    %3 = stablehlo.if(%2) { stablehlo.return (stablehlo.abs %a) } { stablehlo.return zeros }
 *    %4 = sdy.all_reduce {"x"} %3 out_sharding=<@m, [{}]> */
BASE_VEC(single_ops, ir_op *);
/* by_replica: devices are told apart by replica_id rather than partition_id. */
typedef struct single_pass {
  opt_rewriter rw;
  bool by_replica;
  const base_istr *mesh_name; /* the first mesh with axes; NULL: none */
  const sdy_mesh *mesh;
  const sdy_axes *axes; /* all of its axes */
  single_ops ops;
} single_pass;

/* Messages are about the op's sharding, so they stand at the op. */
static int single_fail(single_pass *x, const ir_op *op, const char *what) {
  return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_SHARDING, "%s", what);
}

/* --- which ops --- */

/* A maximal mesh has one device id and no axes: #sdy.mesh<[], device_ids=[3]>. */
static bool single_device(const single_pass *x, const sdy_sharding *s, int64_t *id) {
  const sdy_mesh *mesh = s ? sdy_mesh_of(x->rw.m, s) : NULL;
  if (!mesh || !sdy_mesh_is_maximal(mesh)) return false;
  assert(mesh->n_ids == 1);
  *id = mesh->ids[0];
  return true;
}

/* *on: the device that has op's results. */
static int single_device_of(single_pass *x, ir_op *op, bool *found, int64_t *on) {
  bool spread = false;
  *found = false;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const sdy_sharding *s = ir_is_tensor(op->types[i]) ? sdy_shown(x->rw.m, (ir_value){op, i}) : NULL;
    int64_t id;
    if (single_device(x, s, &id)) {
      if (*found && id != *on)
        return single_fail(x, op, "results are on several devices: expected one for all of them");
      *found = true;
      *on = id;
    } else if (!sdy_sharding_is_replicated(s)) {
      spread = true;
    }
  }
  if (*found && spread)
    return single_fail(x, op, "one result is on a single device and another is sharded: expected it replicated");
  return 0;
}

/* Collected first: the walk must not see the ops that are made. */
static int single_collect(void *ctx, ir_op *op) {
  single_pass *x = ctx;
  bool found;
  int64_t on;
  if (sdy_is_op(op) || op->n_results == 0) return 0;
  TRY(single_device_of(x, op, &found, &on));
  if (found && !BASE_VEC_PUSH(x->rw.m->alloc, &x->ops, op)) return base_oom(x->rw.err, "ops on one device");
  return 0;
}

/* --- the two branches --- */

/* partition_id == device, or replica_id == device; ids are u32, device ids 64 bits. */
static ir_value single_guard(single_pass *x, int64_t on) {
  opt_rewriter *rw = &x->rw;
  ir_opcode own = x->by_replica ? IR_OP_REPLICA_ID : IR_OP_PARTITION_ID;
  ir_value id = opt_make(rw, own, opt_tensor(rw, XLAC_U32, 0, NULL), 0, NULL);
  id = opt_convert(rw, id, XLAC_S64);
  return opt_compare(rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, id,
                     opt_splat_int(rw, opt_tensor(rw, XLAC_S64, 0, NULL), on));
}

/* What a reshard to one device takes: every device has it all. */
static ir_value single_input(const single_pass *x, ir_value v) {
  int64_t id;
  bool to_one = v.op->opcode == IR_OP_SDY_RESHARD && single_device(x, sdy_get(v), &id);
  return to_one ? opt_operand(v.op, 0) : v;
}

/* The branch that the device takes: a copy of the op, without its sharding, which the others do not share. */
static void single_run(single_pass *x, ir_op *op, ir_computation *c) {
  assert(op->n_results > 0);
  opt_rewriter *rw = &x->rw;
  ir_value *operands = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!operands || !results) {
    rw->failed = true;
    return;
  }
  for (uint32_t i = 0; i < op->n_operands; i++) operands[i] = single_input(x, opt_operand(op, i));
  opt_at_end(rw, c, op);
  opt_copy_op(rw, op, operands, results);
  if (rw->failed || !ir_m_set(results[0].op, "sdy.sharding", NULL)) {
    rw->failed = true;
    return;
  }
  opt_set_results(rw, c, op->n_results, results);
}

/* The other branch: zeros, which do not change a sum; tokens are made anew. */
static int single_zeros(single_pass *x, ir_op *op, ir_computation *c) {
  opt_rewriter *rw = &x->rw;
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!results) return base_oom(rw->err, "ops on one device");
  opt_at_end(rw, c, op);
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_type *t = op->types[i];
    bool plain = shc_is_static(t) && !t->quant;
    if (!plain && !ir_is_token(t)) return single_fail(x, op, "a result on one device has no zero of its type");
    results[i] = plain ? opt_splat(rw, t, 0) : opt_make(rw, IR_OP_CREATE_TOKEN, t, 0, NULL);
  }
  if (!rw->failed) opt_set_results(rw, c, op->n_results, results);
  return opt_rewriter_status(rw);
}

/* --- what others use --- */

/* The sum over all devices; reshards that only wanted that go. */
static void single_sum(single_pass *x, ir_op *op, uint32_t i, ir_value part) {
  opt_rewriter *rw = &x->rw;
  sdy_sharding like = {.mesh_name = x->mesh_name};
  const sdy_sharding *whole = sdy_sharding_empty(rw->m, &like, opt_type(part)->rank, false);
  ir_value sum = opt_make(rw, IR_OP_SDY_ALL_REDUCE, opt_type(part), 1, &part);
  opt_set(rw, sum, "reduction_axes", sdy_attr(rw->m, SDY_AXES, x->axes));
  opt_set(rw, sum, "out_sharding", whole ? sdy_attr(rw->m, SDY_SHARDING, whole) : NULL);
  if (rw->failed || !whole) {
    rw->failed = true;
    return;
  }
  ir_op *before = rw->before;
  for (ir_use *u = op->uses, *next = NULL; u; u = next) {
    next = u->next;
    const sdy_sharding *to = u->user->opcode == IR_OP_SDY_RESHARD ? sdy_get((ir_value){u->user, 0}) : NULL;
    if (u->index == i && to && sdy_sharding_equal(to, whole)) {
      if (u->user == before) before = before->next;
      opt_replace_one(rw, u->user, sum);
    }
  }
  shc_replace_value(rw, (ir_value){op, i}, sum, NULL);
  rw->before = before;
}

/* An operand can come twice: it is erased once. */
static void single_drop_reshards(single_pass *x, const ir_use *operands, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    ir_op *reshard = operands[i].op;
    bool seen = false;
    for (uint32_t k = 0; k < i; k++) seen = seen || operands[k].op == reshard;
    int64_t id;
    if (seen || reshard->opcode != IR_OP_SDY_RESHARD || !single_device(x, sdy_get((ir_value){reshard, 0}), &id))
      continue;
    if (!opt_is_used(&x->rw, reshard)) opt_erase(&x->rw, reshard);
  }
}

/* The operands are copied aside: erasing the op drops its list, and reshards before it may then be unused. */
static int single_resolve(single_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->rw;
  bool found;
  int64_t on;
  TRY(single_device_of(x, op, &found, &on));
  if (!found) return 0;
  opt_at(rw, op);
  ir_value guard = single_guard(x, on);
  ir_op *cond = opt_make_n(rw, IR_OP_IF, op->n_results, op->types, 1, &guard, 2);
  ir_computation *run = cond ? opt_region(rw, cond, 0) : NULL, *zeros = cond ? opt_region(rw, cond, 1) : NULL;
  if (!run || !zeros) return base_oom(rw->err, "ops on one device");
  single_run(x, op, run);
  TRY(opt_rewriter_status(rw));
  TRY(single_zeros(x, op, zeros));
  opt_at(rw, op);
  for (uint32_t i = 0; i < op->n_results && !rw->failed; i++) {
    ir_value part = {cond, i};
    if (ir_is_tensor(op->types[i]))
      single_sum(x, op, i, part);
    else
      shc_replace_value(rw, (ir_value){op, i}, part, NULL);
  }
  TRY(opt_rewriter_status(rw));
  uint32_t n = op->n_operands;
  ir_use *operands = n ? base_arena_memdup(&rw->arena, op->operands, n * sizeof *operands) : NULL;
  if (n && !operands) return base_oom(rw->err, "ops on one device");
  opt_erase(rw, op);
  single_drop_reshards(x, operands, n);
  return opt_rewriter_status(rw);
}

/* --- the pass --- */

/* The first mesh that has axes, and all of these: the sum over them is the sum over all devices. A module whose only
 * meshes are maximal has nothing to sum over and stays. */
static bool single_find_mesh(single_pass *x) {
  ir_module *m = x->rw.m;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const sdy_mesh *mesh = sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH);
    if (mesh->n_axes == 0) continue;
    x->mesh = mesh;
    x->mesh_name = ir_mattr_of(c->first, "sym_name")->str;
    break;
  }
  if (!x->mesh) return true;
  sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, x->mesh->n_axes);
  sdy_axes *axes = BASE_NEW(&m->arena, sdy_axes);
  for (uint32_t i = 0; v && i < x->mesh->n_axes; i++) v[i] = (sdy_axis){x->mesh->axes[i].name, 0, 0};
  if (!v || !axes) return false;
  *axes = (sdy_axes){x->mesh->n_axes, v};
  x->axes = axes;
  return true;
}

/* All ops are found before the first is changed. */
static int single_all(single_pass *x) {
  if (!single_find_mesh(x)) return base_oom(x->rw.err, "ops on one device");
  if (!x->mesh) return 0;
  TRY(shc_walk_module(x->rw.m, true, single_collect, x));
  for (uint32_t i = 0; i < x->ops.n; i++) TRY(single_resolve(x, x->ops.items[i]));
  return 0;
}

/* One program is numbered either way: a device with both a replica and a partition number has no single id to
 * compare. */
int shard_resolve_single_device(ir_module *m, const opt_args *args, xlac_error *err) {
  single_pass x = {.by_replica = opt_get(args, "replica-count") > 1};
  if (x.by_replica && opt_get(args, "partition-count") > 1)
    return base_fail(err, XLAC_E_BAD_PIPELINE,
                     "sdy-resolve-single-device-sharding: replica-count and partition-count are both above 1: expected "
                     "one of them");
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = single_all(&x);
  if (status == 0) status = opt_rewriter_status(&x.rw);
  BASE_VEC_FREE(m->alloc, &x.ops);
  opt_rewriter_free(&x.rw);
  return status;
}
