/* sdy-reshard-to-collectives: reshards become all_slice, collective_permute, all_to_all and all_gather, in this order
 * as far as each is needed. All-reduces and reduce-scatters have other sources. Slices come first and gathers last so
 * that what is moved in between is as small as can be.
 * Requires: nothing. Preserves: what the program computes. Reshards between meshes that differ in more than the order
 * of their devices stay. */
#include "collectives.h"

typedef struct exc_pass {
  opt_rewriter rw;
  base_arena arena;
  bool keep; /* reshards that change nothing */
} exc_pass;

/* No dimension is sharded. */
static bool exc_is_replicated(const sdy_sharding *s) {
  for (uint32_t i = 0; i < s->n_dims; i++)
    if (s->dims[i].axes.n) return false;
  return true;
}

static ir_value exc_behind_barriers(ir_value v) {
  while (v.op->opcode == IR_OP_SDY_PROPAGATION_BARRIER) v = opt_operand(v.op, 0);
  return v;
}

/* --- one reshard --- */

/* The axes of a sharding as lists that can grow. */
static bool exc_lists(rtc *x, const sdy_sharding *s, rtc_list **out) {
  rtc_list *lists = base_arena_zalloc(x->arena, ((size_t)s->n_dims + 1) * sizeof *lists);
  for (uint32_t d = 0; lists && d < s->n_dims; d++)
    for (uint32_t i = 0; i < s->dims[d].axes.n; i++) rtc_push(x, &lists[d], s->dims[d].axes.v[i]);
  *out = lists;
  return lists && !x->failed;
}

/* Appends the axes of all dimensions. */
static void exc_all(rtc *x, const rtc_list *lists, rtc_list *out) {
  for (uint32_t d = 0; d < x->rank; d++)
    for (uint32_t i = 0; i < lists[d].n; i++) rtc_push(x, out, lists[d].v[i]);
}

/* The difference of the two shardings. */
static bool exc_start(rtc *x) {
  rtc_list all_in = {NULL, 0, 0}, all_out = {NULL, 0, 0};
  x->rank = x->from->n_dims;
  assert(x->from->n_dims == x->to->n_dims);
  x->capacity = BASE_ARRAY(x->arena, int64_t, (size_t)x->rank + 1);
  if (!x->capacity || !exc_lists(x, x->from, &x->in) || !exc_lists(x, x->to, &x->out) ||
      !exc_lists(x, x->from, &x->now))
    return false;
  exc_all(x, x->in, &all_in);
  exc_all(x, x->out, &all_out);
  rtc_align(x, x->in, &all_out);
  rtc_align(x, x->out, &all_in);
  for (uint32_t d = 0; d < x->rank; d++) {
    x->capacity[d] = 1;
    while (x->in[d].n && x->out[d].n && sdy_axis_equal(x->in[d].v[0], x->out[d].v[0])) {
      rtc_erase(&x->in[d], 0);
      rtc_erase(&x->out[d], 0);
    }
  }
  exc_all(x, x->in, &x->in_set);
  rtc_find_places(x);
  return !x->failed;
}

static bool exc_is_done(const rtc *x) {
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->in[d].n || x->out[d].n) return false;
  return !x->other_order;
}

/* Axes of size 1 that nothing could place shard nothing, so they may be missing or left. */
static bool exc_is_good(const rtc *x) {
  int64_t size = 1;
  for (uint32_t d = 0; d < x->rank && size == 1; d++) size = rtc_size(x, &x->in[d]) == 1 ? rtc_size(x, &x->out[d]) : 0;
  return size == 1 && !x->other_order;
}

/* Two rounds are enough: what the first leaves out of order the second moves. Axes whose sizes share no divisor can't
 * be exchanged at all, which is the error. */
static int exc_insert(exc_pass *p, ir_op *op, rtc *x) {
  bool ok = exc_start(x);
  for (int round = 0; round < 2 && ok && !exc_is_done(x); round++) {
    rtc_all_slice(x);
    if (!x->failed) rtc_collective_permute(x);
    if (!x->failed) rtc_all_to_alls(x, false);
    if (!x->failed) rtc_all_to_alls(x, true);
    if (!x->failed) rtc_all_gather(x);
    ok = !x->failed;
  }
  if (!ok) return base_oom(p->rw.err, "collectives of a reshard");
  if (!exc_is_good(x))
    return opt_rewrite_fail(&p->rw, op, XLAC_E_LEGALIZE,
                            "no collectives lead from the operand's sharding to this one: their axes' sizes share no "
                            "divisors");
  opt_replace_one(&p->rw, op, x->v);
  return opt_rewriter_status(&p->rw);
}

/* The same axes; the order of devices may differ. */
static bool exc_same_devices(const sdy_mesh *a, const sdy_mesh *b) {
  return sdy_mesh_is_maximal(a) == sdy_mesh_is_maximal(b) &&
         sdy_mesh_equal(&(sdy_mesh){.n_axes = a->n_axes, .axes = a->axes},
                        &(sdy_mesh){.n_axes = b->n_axes, .axes = b->axes});
}

static bool exc_same_name(const sdy_sharding *a, const sdy_sharding *b) {
  return sdy_name_equal(a->mesh_name, b->mesh_name) && sdy_mesh_equal(a->mesh, b->mesh);
}

/* Reshards from one mesh to another may stay, where neither of the shardings is fully replicated or unknown. */
static int exc_stay(exc_pass *p, ir_op *op, const sdy_sharding *from, const sdy_sharding *to) {
  if (from && !exc_is_replicated(to)) {
    const sdy_mesh *mesh = sdy_mesh_of(p->rw.m, from), *other = sdy_mesh_of(p->rw.m, to);
    if (mesh && other && !exc_same_name(from, to) && !exc_same_devices(mesh, other)) return 0;
  }
  return opt_rewrite_fail(&p->rw, op, XLAC_E_LEGALIZE,
                          "no collectives lead from one of these shardings to the other: their ranks or meshes differ");
}

/* A fully replicated side has no mesh that matters: it takes the other's. */
static int exc_reshard(exc_pass *p, ir_op *op) {
  assert(op->n_operands == 1);
  ir_module *m = p->rw.m;
  const sdy_sharding *to = sdy_get((ir_value){op, 0});
  ir_value v = exc_behind_barriers(opt_operand(op, 0));
  const sdy_sharding *shown = sdy_shown(m, v), *from = shown;
  if (p->keep && sdy_sharding_equivalent(shown, to)) return 0;
  if (!from) from = sdy_sharding_empty(m, to, sdy_rank(opt_type(v)), false);
  if (from && exc_is_replicated(to) && !exc_is_replicated(from)) to = sdy_sharding_empty(m, from, from->n_dims, false);
  if (!from || !to) return base_oom(p->rw.err, "collectives of a reshard");
  if (from->n_dims != to->n_dims) return exc_stay(p, op, shown, sdy_get((ir_value){op, 0}));
  if (exc_is_replicated(to) && exc_is_replicated(from)) {
    opt_replace_one(&p->rw, op, opt_operand(op, 0));
    return opt_rewriter_status(&p->rw);
  }
  const sdy_mesh *mesh = sdy_mesh_of(m, from), *other = sdy_mesh_of(m, to);
  bool same = exc_same_name(from, to);
  if (!mesh || !other || (!same && !exc_same_devices(mesh, other)))
    return exc_stay(p, op, shown, sdy_get((ir_value){op, 0}));
  base_arena_free(&p->arena);
  base_arena_init(&p->arena, m->alloc);
  rtc x = {.rw = &p->rw,
           .arena = &p->arena,
           .mesh = mesh,
           .from = from,
           .to = to,
           .other_order = !same,
           .type = op->type,
           .v = v};
  opt_at(&p->rw, op);
  return exc_insert(p, op, &x);
}

static int exc_op(void *ctx, ir_op *op) {
  return op->opcode == IR_OP_SDY_RESHARD ? exc_reshard(ctx, op) : 0;
}

int shard_reshard_to_collectives(ir_module *m, const opt_args *args, xlac_error *err) {
  exc_pass p = {.keep = opt_get(args, "keep-redundant-reshards")};
  TRY(opt_rewriter_init(&p.rw, m, err));
  base_arena_init(&p.arena, m->alloc);
  int status = shc_walk_module(m, false, exc_op, &p);
  base_arena_free(&p.arena);
  opt_rewriter_free(&p.rw);
  return status == 0 ? shc_verify_fitting(m, err) : status;
}
