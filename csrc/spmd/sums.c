/* Where parts of a sum can't be carried as a program says, they are added up as soon as they are there: unreduced axes
 * say how a value is spread, not which one it is. Arguments and results keep theirs, since callers bring and take
 * parts, and so do manual computations along their manual axes, since their bodies compute with parts.
 *
 * Before propagation. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

/* s with only those of its unreduced axes that are among the manual ones; NULL when out of memory. */
static const sdy_sharding *sums_keep(ir_module *m, const sdy_sharding *s, const sdy_names *manual) {
  sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, (size_t)s->unreduced.n + 1);
  sdy_sharding to = *s;
  uint32_t n = 0;
  if (!v) return NULL;
  for (uint32_t i = 0; i < s->unreduced.n; i++)
    if (manual && sdy_is_manual_axis(manual, s->unreduced.v[i].name)) v[n++] = s->unreduced.v[i];
  to.unreduced = (sdy_axes){n, v};
  if (n == 0) to.reduction = SDY_SUM;
  return sdy_sharding_make(m, &to);
}

static bool sums_keep_list(ir_op *op, const char *key, const sdy_names *manual) {
  ir_module *m = op->parent->module;
  const sdy_shardings *list = sdy_of(ir_mattr_of(op, key), SDY_SHARDINGS);
  if (!list) return true;
  const sdy_sharding **v = BASE_ARRAY(&m->arena, const sdy_sharding *, (size_t)list->n + 1);
  for (uint32_t i = 0; v && i < list->n; i++)
    if (!(v[i] = sums_keep(m, list->v[i], manual))) return false;
  return v && ir_m_set(op, key, sdy_attr(m, SDY_SHARDINGS, sdy_shardings_make(m, list->n, v)));
}

/* v, where the cursor is, added up: sharded as s says, and along no other axis. */
static ir_value sums_reshard(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  sdy_sharding closed = *s;
  sdy_dim *dims = BASE_ARRAY(&rw->arena, sdy_dim, (size_t)s->n_dims + 1);
  for (uint32_t d = 0; dims && d < s->n_dims; d++) {
    dims[d] = s->dims[d];
    dims[d].open = false;
  }
  closed.dims = dims;
  const sdy_sharding *to = dims ? sums_keep(rw->m, &closed, NULL) : NULL;
  ir_value made = opt_make(rw, IR_OP_SDY_RESHARD, opt_type(v), 1, &v);
  opt_set(rw, made, "sharding", to ? sdy_attr(rw->m, SDY_SHARDING, to) : NULL);
  return made;
}

/* Whoever reads v, which is in parts, reads their sum. */
static void sums_add_up(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  if (!s || s->unreduced.n == 0) return;
  shc_at_value(rw, v);
  ir_value sum = sums_reshard(rw, v, s);
  shc_replace_value(rw, v, sum, sum.op);
}

/* Collectives of sdy give the value that they take, in another sharding. */
static int sums_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  const char *key = sdy_own_key(op);
  const sdy_names *manual = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  const sdy_sharding *own = key ? sdy_of(ir_mattr_of(op, key), SDY_SHARDING) : NULL;
  if (own && sdy_is_collective(op)) {
    opt_at(rw, op);
    opt_replace_one(rw, op, sums_reshard(rw, opt_operand(op, 0), own));
    return rw->failed ? -XLAC_E_OUT_OF_MEMORY : SHC_SKIP;
  }
  const sdy_sharding *kept = own ? sums_keep(rw->m, own, NULL) : NULL;
  bool ok = !own || (kept && ir_m_set(op, key, sdy_attr(rw->m, SDY_SHARDING, kept)));
  ok = ok && sums_keep_list(op, "sdy.sharding", NULL) && sums_keep_list(op, "in_shardings", manual) &&
       sums_keep_list(op, "out_shardings", manual);
  const sdy_shardings *out = manual ? sdy_get_list(op) : NULL;
  for (uint32_t i = 0; ok && out && i < out->n; i++) sums_add_up(rw, opt_result(op, i), out->v[i]);
  return ok && !rw->failed ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* A result of the program is in parts when it has been added up. */
static void sums_return(opt_rewriter *rw, ir_computation *f, uint32_t i) {
  const sdy_sharding *s = sdy_get_result(f, i);
  if (!s || s->unreduced.n == 0 || rw->failed) return;
  opt_at_end(rw, f, f->results[i].op);
  ir_value whole = sums_reshard(rw, f->results[i], s);
  if (!rw->failed) ir_set_result(f, i, whole);
}

int spmd_sum_parts(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  ir_computation *f = shc_main(m, true);
  if (!f) return shc_no_main(m, err);
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, sums_op, &rw);
  for (uint32_t i = 0; status == 0 && i < f->n_params && !rw.failed; i++)
    sums_add_up(&rw, opt_result(f->params[i], 0), sdy_get(opt_result(f->params[i], 0)));
  for (uint32_t i = 0; status == 0 && i < f->n_results; i++) sums_return(&rw, f, i);
  int ended = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "sums of parts");
  return status ? status : ended;
}

/* --- collectives want to know how their operands are sharded --- */

static int sums_name(void *ctx, ir_op *op) {
  ir_module *m = ctx;
  if (!sdy_is_collective(op)) return 0;
  ir_value v = opt_operand(op, 0);
  while (v.op->opcode == IR_OP_SDY_RESHARD) v = opt_operand(v.op, 0);
  const sdy_sharding *like = sdy_get(opt_result(op, 0));
  if (!like || sdy_shown(m, v) || sdy_rank(opt_type(v)) != like->n_dims) return 0;
  const sdy_sharding *whole = sdy_sharding_empty(m, like, like->n_dims, false);
  return whole && sdy_set(v, whole) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

int spmd_name_sources(ir_module *m, xlac_error *err) {
  int status = shc_walk_module(m, false, sums_name, m);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "sums of parts") : status;
}
