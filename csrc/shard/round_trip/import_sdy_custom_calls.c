/* Custom calls that stood for ops of sdy: xla-sdy-import-sdy-custom-calls; constants that nobody may merge:
 * xla-sdy-import-constants; and xla-sdy-open-while-free-vars-sharding, which lets loops see sharded values from outside
 * through open constraints.
 * Requires: shardings are attributes again. Preserves: what the program computes. */
#include <stdlib.h>

#include "round_trip.h"

static int trip_ops_oom(const opt_rewriter *rw) {
  return base_oom(rw->err, "what stood for ops of sdy");
}

/* --- custom calls --- */

/* unspecified_dims=[1,2]: open.
 * "unspecified_dims=[1,2]" in the backend configuration (JAX's unconstrained dimensions): those stay open. */
static int trip_open_dims(opt_rewriter *rw, const ir_op *op, sdy_dim *dims, uint32_t n) {
  assert(n == 0 || dims != NULL);
  static const char key[] = "unspecified_dims=[";
  const char *p = strstr(ir_m_get_str(op, "backend_config"), key);
  for (p = p ? p + sizeof key - 1 : ""; *p && *p != ']'; p += *p == ',') {
    char *end = NULL;
    long d = strtol(p, &end, 10);
    if (end == p || d < 0 || (unsigned long)d >= n || (*end && *end != ',' && *end != ']'))
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                              "backend_config = \"%.80s\" names no dimensions of a tensor of rank %u",
                              ir_m_get_str(op, "backend_config"), n);
    dims[d].open = true;
    p = end;
  }
  return 0;
}

/* The words are XLA's. */
static int trip_need_one(opt_rewriter *rw, const ir_op *op, bool result) {
  if (op->n_operands == 1 && (!result || op->n_results == 1)) return 0;
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_STRUCTURE, "expected CustomCallOp with exactly one %s",
                          op->n_operands == 1 ? "result" : "operand");
}

/* The unspecified dimensions that the backend config names are opened again. */
static int trip_constraint(opt_rewriter *rw, ir_op *op) {
  TRY(trip_need_one(rw, op, true));
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  if (!s)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "expected CustomCallOp with a sharding attribute: @Sharding has neither sdy.sharding nor "
                            "xla.sdy.sharding (programs with mhlo.sharding: xla-sdy-import-shardings first)");
  sdy_sharding to = *s;
  sdy_dim *dims = BASE_ARRAY(&rw->m->arena, sdy_dim, (size_t)s->n_dims + 1);
  if (!dims) return trip_ops_oom(rw);
  if (s->n_dims) memcpy(dims, s->dims, s->n_dims * sizeof *dims);
  assert(op->n_operands == 1);
  TRY(trip_open_dims(rw, op, dims, s->n_dims));
  to.dims = dims;
  ir_value in = opt_operand(op, 0);
  ir_value made = opt_make(rw, IR_OP_SDY_SHARDING_CONSTRAINT, op->type, 1, &in);
  opt_set(rw, made, "sharding", sdy_attr(rw->m, SDY_SHARDING, sdy_sharding_make(rw->m, &to)));
  opt_replace_one(rw, op, made);
  return opt_rewriter_status(rw);
}

/* A number, as "12 : i64". */
static int trip_front_int(opt_rewriter *rw, const ir_op *op, const char *key, int64_t *out) {
  const ir_mattr *a = NULL;
  TRY(trip_front_read(rw, op, op->mlir, key, &a));
  if (a && a->kind == IR_M_INTEGER) {
    *out = a->v.i;
    return 0;
  }
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, "expected CustomCallOp with the number %s", key);
}

/* allowed_direction as a number: none, forward, backward, both. */
static int trip_barrier(opt_rewriter *rw, ir_op *op) {
  int64_t way = 0;
  TRY(trip_need_one(rw, op, true));
  TRY(trip_front_int(rw, op, "xla.sdy.allowed_direction", &way));
  if (way < 0 || way > 3)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, "xla.sdy.allowed_direction is %lld; expected 0 to 3",
                            (long long)way);
  ir_value in = opt_operand(op, 0), made = opt_make(rw, IR_OP_SDY_PROPAGATION_BARRIER, op->type, 1, &in);
  opt_set(rw, made, "allowed_direction", ir_m_i32(rw->m, way));
  opt_replace_one(rw, op, made);
  return opt_rewriter_status(rw);
}

/* Like the op that it becomes, the call must not be used. */
static int trip_group(opt_rewriter *rw, ir_op *op) {
  int64_t id = 0;
  TRY(trip_need_one(rw, op, false));
  TRY(trip_front_int(rw, op, "xla.sdy.sharding_group_id", &id));
  if (opt_is_used(rw, op))
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_STRUCTURE, "xla.sdy.ShardingGroup CustomCallOp should have no uses.");
  ir_value in = opt_operand(op, 0);
  ir_op *made = opt_make_n(rw, IR_OP_SDY_SHARDING_GROUP, 0, NULL, 1, &in, 0);
  if (!made || !ir_m_set(made, "group_id", ir_m_i64(rw->m, id))) return trip_ops_oom(rw);
  opt_erase(rw, op);
  return opt_rewriter_status(rw);
}

/* The three targets that stand for ops of sdy; others are left alone. */
static int trip_custom_call(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  opt_at(rw, op);
  if (trip_calls(op, "Sharding")) return trip_constraint(rw, op);
  if (trip_calls(op, "xla.sdy.PropagationBarrier")) return trip_barrier(rw, op);
  return trip_calls(op, "xla.sdy.ShardingGroup") ? trip_group(rw, op) : 0;
}

/* fn for all ops of all functions, inner ones first, with a rewriter as context. */
static int trip_walk(ir_module *m, shc_op_fn *fn, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, fn, &rw);
  opt_rewriter_free(&rw);
  return status;
}

int shard_import_custom_calls(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return trip_walk(m, trip_custom_call, err);
}

/* --- constants --- */

/* sdy.constant is not folded, nor merged with others, until propagation is over. */
static int trip_constant(void *ctx, ir_op *op) {
  (void)ctx;
  if (op->opcode == IR_OP_CONSTANT) ir_set_opcode(op, IR_OP_SDY_CONSTANT);
  return 0;
}

int shard_import_constants(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return trip_walk(m, trip_constant, err);
}

/* --- what loops read from outside --- */

typedef struct trip_free {
  opt_rewriter *rw;
  ir_op *loop;
  base_map seen; /* op to the first of its results' constraints (an array by result) */
} trip_free;

/* Whether op is in a region of the loop, at any depth. */
static bool trip_is_within(const ir_op *op, const ir_op *loop) {
  for (const ir_op *at = op; at; at = at->parent->owner)
    if (at->parent->owner == loop) return true;
  return false;
}

/* A sharding that says nothing yet. */
static bool trip_is_open(const sdy_sharding *s) {
  bool open = s->replicated.n == 0 && s->unreduced.n == 0;
  for (uint32_t i = 0; i < s->n_dims; i++)
    open = open && s->dims[i].open && s->dims[i].axes.n == 0 && s->dims[i].priority < 0;
  return open;
}

/* What v is inside: itself, or its constraint.
 * An open constraint before the loop: the sharding outside does not bind what the loop makes of the value. One
 * constraint a value, however often the loop reads it. */
static ir_value trip_seen_as(trip_free *x, ir_value v) {
  ir_value *known = base_map_ptr(&x->seen, v.op);
  if (!known) {
    known = base_arena_zalloc(&x->rw->arena, v.op->n_results * sizeof *known);
    if (!known || !base_map_set(&x->seen, base_key(v.op), base_key(known))) {
      x->rw->failed = true;
      return v;
    }
  }
  if (known[v.index].op) return known[v.index];
  assert(v.index < v.op->n_results);
  const sdy_sharding *s = sdy_shown(x->rw->m, v);
  known[v.index] = v;
  if (!s || s->n_dims == 0 || trip_is_open(s)) return v;
  opt_at(x->rw, x->loop);
  known[v.index] = opt_make(x->rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(v), 1, &v);
  opt_set(x->rw, known[v.index], "sharding",
          sdy_attr(x->rw->m, SDY_SHARDING, sdy_sharding_empty(x->rw->m, s, s->n_dims, true)));
  return known[v.index].op ? known[v.index] : v;
}

/* Operands and what inner regions return. */
static int trip_free_op(void *ctx, ir_op *op) {
  trip_free *x = ctx;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = opt_operand(op, i);
    if (!trip_is_within(v.op, x->loop)) ir_set_operand(op, i, trip_seen_as(x, v));
  }
  for (uint32_t r = 0; r < op->n_called; r++)
    for (uint32_t i = 0; i < op->called[r]->n_results; i++) {
      ir_value v = op->called[r]->results[i];
      if (!trip_is_within(v.op, x->loop)) ir_set_result(op->called[r], i, trip_seen_as(x, v));
    }
  return opt_rewriter_status(x->rw);
}

/* Its regions' operands and what they return, one constraint for each value from outside. */
static int trip_open_loop(void *ctx, ir_op *op) {
  if (op->opcode != IR_OP_WHILE) return 0;
  trip_free x = {.rw = ctx, .loop = op};
  base_map_init(&x.seen, x.rw->m->alloc);
  int status = 0;
  for (uint32_t i = 0; i < op->n_called && status == 0; i++) {
    ir_computation *c = op->called[i];
    status = shc_walk(c, false, trip_free_op, &x);
    for (uint32_t k = 0; k < c->n_results && status == 0; k++)
      if (!trip_is_within(c->results[k].op, op)) ir_set_result(c, k, trip_seen_as(&x, c->results[k]));
  }
  base_map_free(&x.seen);
  return status < 0 ? status : opt_rewriter_status(x.rw);
}

int shard_open_free_values(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return trip_walk(m, trip_open_loop, err);
}
