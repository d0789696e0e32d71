/* sdy-convert-global-to-local: the program that one device runs.
 * Requires: shardings that go together, and collectives where they change (sdy-insert-explicit-reshards,
 * sdy-reshard-to-collectives); dimensions that divide. Preserves: what the devices compute together. Source: Shardy's
 * answers (2026-06); where those are wrong (shards of sub-axes) or fail (loops, branches, calls), what its own meaning
 * demands. */
#include "local.h"

/* Ops with a local form of their own; all others keep their attributes and get the types of their shards.
 * On <["x"=2, "y"=2]>, for a : tensor<8x4xf32> with [{"x"}, {}]:
 *    %1 = stablehlo.abs %a : tensor<8x4xf32>                             %1 = stablehlo.abs %a : tensor<4x4xf32>
 *    %2 = sdy.all_gather [{"x"}, {}] %1 : tensor<8x4xf32>   becomes      %2 = stablehlo.all_gather(%1), dim 0,
 *                                                                          replica_groups [[0, 2], [1, 3]]
 * The devices along "x" are those that differ in x alone: 0 and 2 have y = 0, 1 and 3 have y = 1. */
static local_fn *locpass_special(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_SDY_ALL_GATHER:
      return local_all_gather;
    case IR_OP_SDY_ALL_REDUCE:
      return local_all_reduce;
    case IR_OP_SDY_ALL_SLICE:
      return local_all_slice;
    case IR_OP_SDY_ALL_TO_ALL:
      return local_all_to_all;
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
      return local_collective_permute;
    case IR_OP_SDY_REDUCE_SCATTER:
      return local_reduce_scatter;
    case IR_OP_SDY_REPLICATED_TO_UNREDUCED:
      return local_replicated_to_unreduced;
    case IR_OP_SDY_SHARDED_TO_UNREDUCED:
      return local_sharded_to_unreduced;
    case IR_OP_SDY_CONSTANT:
      return local_constant;
    case IR_OP_CONCATENATE:
      return local_concatenate;
    case IR_OP_CONVOLUTION:
      return local_convolution;
    case IR_OP_STABLEHLO_DOT:
      return local_dot;
    case IR_OP_DOT:
      return local_dot_general;
    case IR_OP_DYNAMIC_SLICE:
      return local_dynamic_slice;
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return local_dynamic_update_slice;
    case IR_OP_GATHER:
      return local_gather;
    case IR_OP_IOTA:
      return local_iota;
    case IR_OP_PAD:
      return local_pad;
    case IR_OP_REDUCE:
      return local_reduce;
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SELECT_AND_SCATTER:
      return local_windowed;
    case IR_OP_REVERSE:
      return local_reverse;
    case IR_OP_RNG_BIT_GENERATOR:
      return local_rng_bit_generator;
    case IR_OP_SCATTER:
      return local_scatter;
    case IR_OP_SLICE:
      return local_slice;
    default:
      return NULL;
  }
}

/* Ops that are the same on a shard, as far as anybody can see.
 * Calls too: functions are converted like @main, with the shardings of their signatures. */
static bool locpass_is_generic(const ir_op *op) {
  if (op->opcode == IR_OP_UNREGISTERED || op->opcode == IR_OP_CALL) return true;
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return info && (strncmp(info->name, "stablehlo.", 10) == 0 || strncmp(info->name, "chlo.", 5) == 0);
}

static int locpass_region(local_pass *p, ir_computation *c);

/* Only regions the op owns: functions are reached by themselves. */
static int locpass_regions(local_pass *p, ir_op *op) {
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(locpass_region(p, op->called[i]));
  return 0;
}

/* Its body runs on each device as it is: it takes the place of the op.
 * in_shardings and operands must agree, since nothing may move between devices here. */
static int locpass_manual(local_pass *p, ir_op *op) {
  assert(op->n_called == 1 && op->called[0]->n_params == op->n_operands);
  opt_rewriter *rw = &p->rw;
  ir_computation *body = op->called[0];
  TRY(locpass_region(p, body));
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!args || !results) return base_oom(rw->err, "local types");
  for (uint32_t i = 0; i < op->n_operands; i++) {
    args[i] = opt_operand(op, i);
    if (opt_type(args[i]) != body->params[i]->type)
      return local_fail(p, op, "operand %u is sharded in another way than in_shardings say: expected a reshard", i);
  }
  opt_at(rw, op);
  opt_inline(rw, body, args, results);
  if (!rw->failed) opt_replace_op(rw, op, results);
  return opt_rewriter_status(rw);
}

/* What looks at sizes wants to know them.
 * Dynamic and unranked types may be there, as long as nobody shards them. */
static int locpass_check(local_pass *p, const ir_op *op) {
  bool sharded = sdy_is_collective(op), known = true;
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
    bool in = i < op->n_operands;
    const local_fact *f = in ? local_operand(p, op, i) : local_result(p, op, i - op->n_operands);
    const ir_type *now = in ? opt_type(opt_operand(op, i)) : f->type;
    sharded = sharded || !local_is_whole(f);
    known = known && shc_is_static(f->type) && shc_is_static(now) && now->rank == f->type->rank;
  }
  if (known || !sharded) return 0;
  return local_fail(p, op, "only tensors whose sizes are known can be sharded here");
}

/* Order matters for errors: what has no local form is refused before anything of it is changed. */
static int locpass_op(local_pass *p, ir_op *op) {
  assert(op->opcode != IR_OP_PARAMETER);
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION) return locpass_manual(p, op);
  local_fn *special = locpass_special(op);
  if (special) {
    TRY(locpass_check(p, op));
    opt_at(&p->rw, op);
    return special(p, op); /* bodies of windows and updates stay as they are */
  }
  if (op->opcode != IR_OP_SDY_NAMED_COMPUTATION && !locpass_is_generic(op)) {
    const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
    int status = local_fail(p, op, "failed to legalize operation '%s'", info ? info->name : op->name->s);
    return base_hint(
        p->rw.err, status,
        "reshards, constraints, groups and edges must be gone before (sdy-reshard-to-collectives, the export "
        "passes), and so must ops of CHLO");
  }
  TRY(local_retype(p, op));
  return locpass_regions(p, op);
}

/* Regions nest no deeper than the verifier allows. */
static int locpass_region(local_pass *p, ir_computation *c) {
  for (uint32_t i = 0; i < c->n_params; i++) TRY(local_retype(p, c->params[i]));
  for (ir_op *op = c->first, *next = NULL; op; op = next) {
    next = op->next;
    if (op->opcode != IR_OP_PARAMETER) TRY(locpass_op(p, op));
  }
  return 0;
}

/* What a function gives back is sharded as it says. */
static int locpass_results(local_pass *p, const ir_computation *f, const ir_type *const *before) {
  for (uint32_t i = 0; i < f->n_results; i++) {
    const ir_type *expected = NULL, *found = opt_type(f->results[i]);
    local_fact fact = {before[i], sdy_get_result(f, i)};
    ir_op at = {.line = f->return_line ? f->return_line : f->line, .col = f->return_col, .opcode = IR_OP_PARAMETER};
    at.name = f->name;
    TRY(local_type(p, &at, &fact, &expected));
    if (expected == found) continue;
    return base_fail_at(p->rw.err, XLAC_E_LEGALIZE, at.line, at.col, "func.return",
                        "value %u that is returned is sharded in another way than the function's result: expected a "
                        "reshard before it",
                        i);
  }
  return 0;
}

/* The types of what is returned are kept, for the shardings that the signature declares are of these. */
static int locpass_function(local_pass *p, ir_computation *f) {
  const ir_type **before = BASE_ARRAY(&p->rw.arena, const ir_type *, (size_t)f->n_results + 1);
  if (!before) return base_oom(p->rw.err, "local types");
  for (uint32_t i = 0; i < f->n_results; i++) before[i] = opt_type(f->results[i]);
  TRY(locpass_region(p, f));
  return locpass_results(p, f, before);
}

/* Facts first, for the whole module: calls need the shardings of functions that come later. */
static int locpass_all(local_pass *p) {
  TRY(local_note_facts(p));
  for (ir_computation *c = p->rw.m->first; c; c = c->next)
    if (c->kind == IR_FUNCTION && !c->owner && !c->declaration) TRY(locpass_function(p, c));
  return opt_rewriter_status(&p->rw);
}

/* Verified at the end: shardings that do not go together show up as types that do not. */
int shard_convert_to_local(ir_module *m, const opt_args *args, xlac_error *err) {
  local_pass p = {.per_dim = opt_get(args, "per-dim-all-gather"),
                  .combine = opt_get(args, "combine-multi-dimension-reduce-scatter"),
                  .mesh_axes = opt_get(args, "enable-rgv3") || opt_get(args, "rehearsal"),
                  .uneven = opt_get(args, "uneven"),
                  .rehearsal = opt_get(args, "rehearsal"),
                  .by_replica = opt_get(args, "replica-count") > 1};
  if (p.by_replica && opt_get(args, "partition-count") > 1)
    return base_fail(err, XLAC_E_BAD_PIPELINE,
                     "sdy-convert-global-to-local: replica-count and partition-count are both above 1: expected one of "
                     "them");
  memset(err, 0, sizeof *err);
  TRY(opt_rewriter_init(&p.rw, m, err));
  int status = locpass_all(&p);
  opt_rewriter_free(&p.rw);
  return status == 0 ? shc_verify(m, err) : status;
}
