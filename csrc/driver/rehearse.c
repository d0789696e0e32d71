/* A program of many devices as each of them would run it: what partitioning came to, the plan, and every collective
 * with its groups, as JSON. Nothing is made to run. Groups are written so that the text is as long as the program,
 * whatever the number of devices: as axes of the mesh, else as the first group. */
#include "rehearse.h"

#include "../ir/sdy/mesh_groups.h"
#include "../plan/report.h"

typedef struct rehearsal {
  base_text *out;
  const spmd_program *program;
  ir_module **local;
} rehearsal;

/* --- groups --- */

/* Digits of the mesh's places, [size, stride] each, major first: a group has a device for each of their values. */
static bool rehearse_put_mesh(base_text *out, const base_istr *text) {
  ir_mesh_groups m;
  if (!ir_mesh_groups_read(&m, text)) return false;
  BASE_PUT(out, "\"axes\": [");
  for (uint32_t i = 0; i < m.n_refs; i++) {
    const ir_mesh_ref *r = &m.refs[i];
    int64_t stride = m.strides[r->axis] * (m.sizes[r->axis] / (r->pre * r->size));
    base_putf(out, "%s[%lld, %lld]", i ? ", " : "", (long long)r->size, (long long)stride);
  }
  base_putf(out, "], \"size\": %lld", (long long)m.group_size);
  return true;
}

/* Device k of [groups,size]<=[reshape]T(perm). */
static int64_t rehearse_iota(const ir_groups *g, int64_t k) {
  int64_t device = 0, strides[IR_MAX_RANK], stride = 1;
  assert(g->n_reshape <= IR_MAX_RANK);
  for (uint32_t i = g->n_reshape; i-- > 0; stride *= g->reshape[i]) strides[i] = stride;
  for (uint32_t i = g->n_reshape; i-- > 0;) {
    int64_t d = g->perm ? g->perm[i] : (int64_t)i, size = g->reshape[d];
    device += k % size * strides[d];
    k /= size;
  }
  return device;
}

static void rehearse_put_first(base_text *out, const ir_groups *g) {
  const ir_ints *list = g->iota || g->lists->n == 0 ? NULL : g->lists->v[0];
  int64_t n = list ? list->n : g->iota ? g->dims[g->n_dims - 1] : 0;
  BASE_PUT(out, "\"devices\": [");
  for (int64_t i = 0; i < n; i++)
    base_putf(out, "%s%lld", i ? ", " : "", (long long)(list ? list->v[i] : rehearse_iota(g, i)));
  base_putf(out, "], \"size\": %lld", (long long)n);
}

/* No groups, or an empty list of them: one of all devices, whose size is null. */
static void rehearse_put_groups(base_text *out, const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *g = a ? a->v.groups : NULL;
  if (!g || (!g->mesh_text && !g->iota && g->lists->n == 0)) {
    BASE_PUT(out, "\"size\": null");
  } else if (!g->mesh_text || !rehearse_put_mesh(out, g->mesh_text)) {
    rehearse_put_first(out, g);
  }
}

/* Sources and targets of a permutation: what differs from pair to pair is only where they are. */
static void rehearse_put_pairs(base_text *out, const ir_op *op) {
  enum { MOST_PAIRS = 4096 };
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SOURCE_TARGET_PAIRS);
  uint32_t n = a ? a->v.lists->n : 0;
  BASE_PUT(out, "\"pairs\": [");
  for (uint32_t i = 0; i < n && i < MOST_PAIRS; i++) {
    const ir_ints *pair = a->v.lists->v[i];
    if (pair->n == 2) base_putf(out, "%s[%lld, %lld]", i ? ", " : "", (long long)pair->v[0], (long long)pair->v[1]);
  }
  BASE_PUT(out, "]");
}

/* --- collectives --- */

/* What op is, or wraps, or starts; NULL: no collective. Dones move nothing. */
static const ir_op *rehearse_collective(const ir_op *op) {
  if (op->opcode == IR_OP_ASYNC_START && op->n_called) op = ir_root(op->called[0]);
  bool moves = ir_opcode_has(op->opcode, IR_COLLECTIVE) && !ir_opcode_has(op->opcode, IR_ASYNC_DONE);
  return moves ? op : NULL;
}

/* "op" is the name of the op that a step bears. */
static void rehearse_put_collective(base_text *out, const ir_op *op, const ir_op *what) {
  const char *kind = ir_opcode_text(what->opcode), *start = strstr(kind, "-start");
  int64_t bytes = 0;
  for (uint32_t i = 0; i < what->n_operands; i++) bytes += ir_type_bytes(ir_operand_type(what, i));
  base_putf(out, "{\"kind\": \"%.*s\", \"bytes\": %lld, \"computation\": ",
            (int)(start ? (size_t)(start - kind) : strlen(kind)), kind, (long long)bytes);
  base_put_json(out, op->parent->name->s, op->parent->name->n);
  BASE_PUT(out, ", \"op\": ");
  base_put_json(out, op->name->s, op->name->n);
  BASE_PUT(out, ", ");
  if (ir_attr_find(what, IR_ATTR_SOURCE_TARGET_PAIRS))
    rehearse_put_pairs(out, what);
  else
    rehearse_put_groups(out, what);
  BASE_PUT(out, "}");
}

static void rehearse_put_collectives(base_text *out, const ir_module *m) {
  bool any = false;
  BASE_PUT(out, "[");
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c) {
    const ir_op *what = rehearse_collective(op);
    if (!what) continue;
    if (any) BASE_PUT(out, ",\n");
    rehearse_put_collective(out, op, what);
    any = true;
  }
  BASE_PUT(out, "]");
}

/* Leaves of arguments, with those of the results that take their memory. */
static void rehearse_put_donations(base_text *out, const plan_program *plan) {
  bool any = false;
  BASE_PUT(out, ", \"donations\": [");
  for (uint32_t i = 0; i < plan->n_donations; i++) {
    const plan_donation *d = &plan->donations[i];
    if (d->result == UINT32_MAX) continue;
    base_putf(out, "%s[%u, %u]", any ? ", " : "", d->argument, d->result);
    any = true;
  }
  BASE_PUT(out, "]");
}

/* --- all of it --- */

static int rehearse_plan(void *ctx, ir_module **m, const plan_program *plan, xlac_error *err) {
  const rehearsal *x = ctx;
  if (plan->interpreted)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the program has no plan to rehearse, since %s", plan->why);
  BASE_PUT(x->out, "{\"sharding\": ");
  spmd_put_report(x->out, x->program, NULL);
  BASE_PUT(x->out, ", \"collectives\": ");
  rehearse_put_collectives(x->out, *m);
  rehearse_put_donations(x->out, plan);
  BASE_PUT(x->out, ", \"plan\": ");
  if (!plan_put_json(x->out, base_alloc_libc, plan)) return base_oom(err, "a rehearsal");
  BASE_PUT(x->out, "}");
  *x->local = *m;
  *m = NULL;
  return 0;
}

int driver_rehearse(ir_module *translated, const driver_options *options, base_text *out, ir_module **local,
                    xlac_error *err) {
  assert(options->partitioned && !options->look);
  rehearsal x = {out, options->partitioned, local};
  driver_options line = *options;
  line.planned = rehearse_plan;
  line.planned_ctx = &x;
  rt_executable *whole = NULL;
  *local = NULL;
  TRY(driver_finish(translated, &line, NULL, &whole, err));
  if (*local) return 0;
  rt_executable_destroy(whole);
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "the device runs programs whole: there is no plan to rehearse");
}
