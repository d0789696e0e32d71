/* Small passes of the export that rewrite or remove what the dialect has written on ops. */
#include "../common/common.h"

/* sdy-close-shardings: dimensions take no more axes, and nothing is said to be replicated any more.
 * Requires: nothing. Preserves: which axes shard what. */

typedef struct exp_close {
  ir_module *m;
  bool wrong; /* a dimension has a priority and nothing to say */
} exp_close;

/* Explicit replication goes as well: closed dimensions say the same. */
static bool exp_is_closed(const sdy_sharding *s) {
  for (uint32_t i = 0; i < s->n_dims; i++)
    if (s->dims[i].open) return false;
  return s->replicated.n == 0;
}

/* A closed empty dimension may have no priority (the verifier): such ones are found once, and reported at the end. */
static const sdy_sharding *exp_close_map(void *ctx, const sdy_sharding *s) {
  exp_close *x = ctx;
  ir_module *m = x->m;
  if (exp_is_closed(s)) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  if (!to || !dims) return NULL;
  for (uint32_t i = 0; i < s->n_dims; i++) {
    dims[i].open = false;
    x->wrong |= dims[i].priority >= 0 && dims[i].axes.n == 0;
  }
  to->dims = dims;
  to->replicated = (sdy_axes){0};
  return to;
}

/* Priorities of dimensions that say nothing would be invalid now: the verifier reports the first. */
int shard_close_shardings(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  exp_close x = {.m = m};
  TRY(shc_map(m, exp_close_map, &x, err));
  return x.wrong ? shc_verify(m, err) : 0;
}

/* Passes that take something away: sdy-drop-sharding-rules (rules that users did not write),
 * sdy-remove-sharding-groups, sdy-remove-propagation-debug-info, sdy-drop-sharding-and-mesh. Require: nothing; the last
 * that no op of the dialect is left. Preserve: all else. */

/* --- attributes --- */

typedef bool exp_drops_fn(const ir_mentry *e);
/* Dictionaries are shared between ops, so each is done once. */
typedef struct exp_drop {
  ir_module *m;
  exp_drops_fn *drops;
  base_map done; /* a dictionary that loses something, to what is left of it */
  bool failed;
} exp_drop;

/* NULL, rather than an empty dictionary, where nothing is left. */
static const ir_mdict *exp_drop_from(exp_drop *x, const ir_mdict *d) {
  ir_mdict *to = d ? base_map_ptr(&x->done, d) : NULL;
  if (to) return to->n ? to : NULL;
  for (uint32_t i = 0; d && i < d->n; i++) {
    if (!x->drops(&d->v[i])) {
      if (to) to->v[to->n++] = d->v[i];
      continue;
    }
    if (to) continue;
    to = base_arena_memdup(&x->m->arena, d, sizeof *d + d->n * sizeof *d->v);
    if (!to) {
      x->failed = true;
      return d;
    }
    to->n = i;
  }
  if (to && !base_map_set(&x->done, base_key(d), base_key(to))) x->failed = true;
  assert(!to || to->n < d->n);
  return to ? to->n ? to : NULL : d;
}

/* A dictionary that loses nothing is the same one afterwards. */
static int exp_drop_op(void *ctx, ir_op *op) {
  exp_drop *x = ctx;
  ir_set_mlir(op, exp_drop_from(x, op->mlir));
  return x->failed ? -XLAC_E_OUT_OF_MEMORY : 0;
}

/* Arguments and results have attributes of their own. Most dictionaries lose nothing and are kept. */
static void exp_drop_signature(exp_drop *x, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) ir_set_mlir(f->params[i], exp_drop_from(x, f->params[i]->mlir));
  for (uint32_t i = 0; i < ir_function_results(f); i++) {
    const ir_mdict *old = ir_result_attrs(f, i), *d = exp_drop_from(x, old);
    if (d != old && !ir_set_result_attrs(f, i, d)) x->failed = true;
  }
}

/* signatures: attributes of functions' arguments and results too. */
static int exp_drop_all(ir_module *m, bool signatures, exp_drops_fn *drops, xlac_error *err) {
  exp_drop x = {.m = m, .drops = drops};
  base_map_init(&x.done, m->alloc);
  IR_FOR_COMPUTATIONS(c, m)
  if (signatures && c->kind == IR_FUNCTION && !c->owner) exp_drop_signature(&x, c);
  IR_FOR_COMPUTATIONS(c, m) ir_set_return_attrs(c, exp_drop_from(&x, c->return_mlir));
  bool ok = shc_walk_module(m, false, exp_drop_op, &x) == 0 && !x.failed;
  base_map_free(&x.done);
  return ok ? 0 : base_oom(err, "attributes of a module");
}

/* Rules that users wrote say custom=true, and stay: later passes have no other way to know them. */
static bool exp_is_made_rule(const ir_mentry *e) {
  const sdy_rule *rule = sdy_of(e->value, SDY_RULE);
  return rule && !rule->custom && strcmp(e->key->s, "sdy.sharding_rule") == 0;
}

int shard_drop_rules(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return exp_drop_all(m, false, exp_is_made_rule, err);
}

/* What shard_trace_write_edges and shard_trace_write_origins have left. */
static bool exp_is_debug(const ir_mentry *e) {
  static const char *const names[] = {"sdy.propagation_edges",          "sdy.block_arg_propagation_edges",
                                      "sdy.result_propagation_edges",   "sdy.sharding_origins",
                                      "sdy.block_arg_sharding_origins", "sdy.result_sharding_origins"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(e->key->s, names[i]) == 0) return true;
  return false;
}

int shard_drop_debug(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return exp_drop_all(m, true, exp_is_debug, err);
}

/* --- groups --- */

/* They have no results, so nothing else changes. */
static int exp_drop_group(void *ctx, ir_op *op) {
  if (op->opcode != IR_OP_SDY_SHARDING_GROUP) return 0;
  opt_erase(ctx, op);
  return 0;
}

/* Their work was done when propagation began. */
int shard_drop_groups(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, exp_drop_group, &rw);
  opt_rewriter_free(&rw);
  return status;
}

/* --- shardings and meshes --- */

static bool exp_is_sharding(const ir_mentry *e) {
  return strcmp(e->key->s, "sdy.sharding") == 0;
}

/* Verifies at the end: an op of the dialect that is left names a mesh that is gone. */
int shard_drop_sharding_and_mesh(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  TRY(exp_drop_all(m, true, exp_is_sharding, err));
  shc_drop_meshes(m);
  return shc_verify(m, err);
}

/* sdy-sharding-constraint-to-reshard: constraints become reshards.
 * Requires: nothing. Preserves: all else. */

static int exp_to_reshard(void *ctx, ir_op *op) {
  (void)ctx;
  assert(op != NULL);
  if (op->opcode == IR_OP_SDY_SHARDING_CONSTRAINT) ir_set_opcode(op, IR_OP_SDY_RESHARD); /* of the same attributes */
  return 0;
}

int shard_constraint_to_reshard(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  (void)err;
  return shc_walk_module(m, false, exp_to_reshard, NULL);
}
