/* Collectives over the call's communicator: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, permute.
 *
 * Who meets whom is known when the program is planned: a table by participant. Reductions run their computation on many
 * lanes at a time. What has another form (ragged exchanges, dynamic roots, slices that are sent) is the
 * interpreter's, and so is what a program does that runs alone. */
#include "../interp/parallel/collective_group.h"
#include "../runtime/communicator.h"
#include "body/body.h"
#include "routine.h"

/* What a meeting counts for between two looks at whether the call is interrupted: some 10 us, in element operations. */
enum { COLLECTIVE_TICKS = 1 << 12 };

/* What nearly all sums are, without the lanes of a program: as rt_combine_fn, of exactly COLLECTIVE_AT_ONCE members, or
 * of two. */
enum { COLLECTIVE_AT_ONCE = 4 };
typedef void collective_add_fn(int64_t n, void *into, uint32_t members, const void *const *from);

typedef struct collective_routine {
  rt_collective what;
  uint32_t participants;
  const rt_group *groups; /* by participant; n 0: no group names it */
  const cpu_body *body;   /* of sums; else NULL */
  collective_add_fn *add; /* where the body is just that */
} collective_routine;

/* What a combination goes by. */
typedef struct collective_sum {
  collective_add_fn *add;
  const rt_extent *extents;
  scalar_lanes_run lanes;
} collective_sum;

static const ir_type *collective_type(const ir_type *t, uint32_t k) {
  return ir_is_tuple(t) ? t->elements[k] : t;
}

/* --- running --- */

/* `into` may be the first of what is added, element by element: iterations do not depend on one another. */
#ifdef __clang__
#define COLLECTIVE_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define COLLECTIVE_LANES _Pragma("GCC ivdep")
#endif
#define COLLECTIVE_ADD(name, type)                                                            \
  static void name(int64_t n, void *into, uint32_t members, const void *const *from) {        \
    type *to = into;                                                                          \
    const type *a = from[0], *b = from[1], *c = from[members / 2], *d = from[members - 1];    \
    assert(members == 2 || members == COLLECTIVE_AT_ONCE);                                    \
    if (members == 2) {                                                                       \
      COLLECTIVE_LANES for (int64_t i = 0; i < n; i++) to[i] = a[i] + b[i];                   \
    } else {                                                                                  \
      COLLECTIVE_LANES for (int64_t i = 0; i < n; i++) to[i] = ((a[i] + b[i]) + c[i]) + d[i]; \
    }                                                                                         \
  }
COLLECTIVE_ADD(collective_add_f32, float)
COLLECTIVE_ADD(collective_add_f64, double)
COLLECTIVE_ADD(collective_add_32, uint32_t)
COLLECTIVE_ADD(collective_add_64, uint64_t)

/* NULL: the sum is something else. */
static collective_add_fn *collective_add_of(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  bool adds = root->opcode == IR_OP_ADD && ir_operand(root, 0) == c->params[0] && ir_operand(root, 1) == c->params[1];
  if (!adds) return NULL;
  switch (root->type->dtype) {
    case XLAC_F32:
      return collective_add_f32;
    case XLAC_F64:
      return collective_add_f64;
    case XLAC_S32:
    case XLAC_U32:
      return collective_add_32;
    case XLAC_S64:
    case XLAC_U64:
      return collective_add_64;
    default:
      return NULL;
  }
}

/* Some members' blocks at a time, then two by two: each is read once, and the sum seldom written. */
static void collective_add_all(const collective_sum *x, int64_t n, void *into, uint32_t members,
                               const void *const *from) {
  const void *some[COLLECTIVE_AT_ONCE] = {from[0]};
  for (uint32_t at = 1; at < members; some[0] = into) {
    uint32_t more = members - at >= COLLECTIVE_AT_ONCE - 1 ? COLLECTIVE_AT_ONCE - 1 : 1;
    for (uint32_t i = 0; i < more; i++) some[i + 1] = from[at + i];
    x->add(n, into, more + 1, some);
    at += more;
  }
}

/* A block of the sum. */
static int collective_combine(void *ctx, uint32_t k, int64_t n, void *into, uint32_t members, const void *const *from,
                              xlac_error *err) {
  collective_sum *x = ctx;
  scalar_lanes_run *sum = &x->lanes;
  const size_t bytes = x->extents[k].bytes;
  (void)err;
  if (from[0] != into && (members == 1 || !x->add)) memcpy(into, from[0], (size_t)n * bytes);
  if (x->add) return collective_add_all(x, n, into, members, from), 0;
  int64_t lanes = sum->code->lanes;
  for (uint32_t i = 1; i < members; i++) {
    const void *in[2] = {into, from[i]};
    void *out[1] = {into};
    for (int64_t at = 0; at < n; at += lanes) scalar_lanes_go(sum, at, n - at < lanes ? n : at + lanes, in, out);
  }
  return 0;
}

/* Nobody sends to us: zeros. */
static int collective_zeros(const cpu_routine_run *r, const collective_routine *c) {
  for (uint32_t k = 0; k < c->what.n; k++) {
    int64_t bytes = ir_type_bytes(collective_type(r->step->op->type, k));
    if (bytes) memset(r->out[k], 0, (size_t)bytes);
  }
  return 0;
}

static int collective_unnamed(const cpu_routine_run *r, const collective_routine *c) {
  const interp_options *o = &r->run->ctx.options;
  if (c->what.kind == RT_PERMUTE || c->what.kind == RT_BROADCAST) return collective_zeros(r, c);
  return interp_fail(&r->run->ctx, r->step->op, XLAC_E_PARTICIPANTS, "no group names replica %lld, partition %lld",
                     (long long)o->replica, (long long)o->partition);
}

static int collective_run(const cpu_routine_run *r) {
  const collective_routine *c = r->data;
  const interp_options *o = &r->run->ctx.options;
  rt_communicator *meeting = o->communicator;
  collective_sum sum = {.add = c->add, .extents = c->what.extents};
  if (!meeting) return cpu_run_eval(r->run, r->step, r->pointers); /* alone: the operands, or an error */
  if ((uint32_t)(meeting->replicas * meeting->partitions) != c->participants)
    return interp_fail(&r->run->ctx, r->step->op, XLAC_E_PARTICIPANTS, "expected %u participants, found %lld x %lld",
                       (unsigned)c->participants, (long long)meeting->replicas, (long long)meeting->partitions);
  rt_participant us = {(uint32_t)(o->replica * meeting->partitions + o->partition), o->interrupted, o->interrupt_ctx};
  assert(us.number < c->participants);
  const rt_group *group = &c->groups[us.number];
  if (group->n == 0) return collective_unnamed(r, c);
  if (c->body && !c->add) scalar_lanes_begin(&sum.lanes, c->body->lanes, r->scratch);
  TRY(rt_communicator_run(meeting, &us, &c->what, group, r->in, r->out, collective_combine, &sum, r->run->ctx.err));
  return interp_tick(&r->run->ctx, COLLECTIVE_TICKS);
}

/* --- preparing --- */

static bool collective_kind_of(const ir_op *op, rt_collective_kind *kind) {
  switch (op->opcode) {
    case IR_OP_ALL_REDUCE:
      *kind = RT_ALL_REDUCE;
      return true;
    case IR_OP_REDUCE_SCATTER:
      *kind = RT_REDUCE_SCATTER;
      return true;
    case IR_OP_ALL_GATHER:
      *kind = RT_ALL_GATHER;
      return true;
    case IR_OP_ALL_TO_ALL:
      *kind = ir_attr_find(op, IR_ATTR_DIMENSIONS) && op->n_operands == 1 ? RT_ALL_TO_ALL : RT_ALL_TO_ALL_EACH;
      return true;
    case IR_OP_COLLECTIVE_BROADCAST:
      *kind = RT_BROADCAST;
      return !ir_m_get_bool(op, "has_dynamic_root");
    case IR_OP_COLLECTIVE_PERMUTE:
      *kind = RT_PERMUTE;
      return !ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
    default:
      return false;
  }
}

/* Rows of the smaller side along the op's dimension: what is before it, and it with what is after. */
static bool collective_extent(const ir_op *op, rt_collective_kind kind, uint32_t k, rt_extent *e) {
  const ir_type *in = ir_operand_type(op, k), *out = collective_type(op->type, k);
  const ir_type *small = kind == RT_REDUCE_SCATTER ? out : in;
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  bool cut = kind == RT_REDUCE_SCATTER || kind == RT_ALL_GATHER || kind == RT_ALL_TO_ALL;
  int64_t dim = list && list->n == 1 ? list->v[0] : -1;
  if (!ir_is_tensor(in) || !ir_is_tensor(out) || in->dtype != out->dtype || (cut && (dim < 0 || dim >= in->rank)))
    return false;
  *e = (rt_extent){1, 1, (uint32_t)base_dtype_bytes((base_dtype)in->dtype)};
  for (uint32_t d = 0; d < small->rank; d++)
    if (cut && (int64_t)d < dim)
      e->outer *= small->dims[d];
    else
      e->inner *= small->dims[d];
  return true;
}

/* What each member gives and gets must fit his group: in an exchange a row is a part. */
static bool collective_fits(const ir_op *op, rt_collective_kind kind, uint32_t n, rt_extent *e, uint32_t k) {
  const ir_type *in = ir_operand_type(op, k), *out = collective_type(op->type, k);
  int64_t dim = kind == RT_ALL_TO_ALL ? ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0] : 0;
  switch (kind) {
    case RT_ALL_GATHER:
      return out->count == in->count * n;
    case RT_REDUCE_SCATTER:
      return in->count == out->count * n;
    case RT_ALL_TO_ALL:
      if (in->dims[dim] % n) return false;
      e->inner /= n;
      return in->count == out->count;
    case RT_ALL_TO_ALL_EACH:
      return op->n_operands == n && in->count == out->count;
    default:
      return in->count == out->count;
  }
}

static int collective_group_of(cpu_prepare_run *x, interp_ctx *ctx, rt_collective_kind kind, rt_group *out) {
  interp_group g;
  uint32_t *sources = NULL;
  if (kind == RT_PERMUTE)
    TRY(interp_group_of_pairs(ctx, x->op, x->arena, &g, &sources));
  else
    TRY(interp_group_of(ctx, x->op, x->arena, &g));
  *out = (rt_group){g.named ? g.n : 0, g.place, g.members, sources};
  return 0;
}

/* The groups of all participants. *out NULL: the op's groups are wrong, which the interpreter says when it runs. */
static int collective_groups(cpu_prepare_run *x, const rt_communicator *grid, rt_collective_kind kind,
                             const rt_group **out) {
  uint32_t n = (uint32_t)(grid->replicas * grid->partitions);
  rt_group *groups = BASE_ARRAY(x->arena, rt_group, n);
  xlac_error err = {.code = 0};
  interp_ctx ctx = {.err = &err};
  ctx.options.communicator = (rt_communicator *)(uintptr_t)grid; /* read for its size alone */
  *out = NULL;
  if (!groups) return base_oom(x->err, "a collective");
  for (uint32_t i = 0; i < n; i++) {
    ctx.options.replica = i / grid->partitions;
    ctx.options.partition = i % grid->partitions;
    int status = collective_group_of(x, &ctx, kind, &groups[i]);
    if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(x->err, "a collective");
    if (status) return 0;
  }
  *out = groups;
  return 0;
}

/* Extents and groups; false: a form for the interpreter. All groups are as large as the first that is one. */
static bool collective_measure(const ir_op *op, collective_routine *c, rt_extent *extents) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->participants; i++) {
    uint32_t size = c->groups[i].n;
    if (size && n && size != n && c->what.kind != RT_ALL_REDUCE && c->what.kind != RT_BROADCAST) return false;
    if (size) n = size;
  }
  for (uint32_t k = 0; k < c->what.n; k++)
    if (!n || !collective_extent(op, c->what.kind, k, &extents[k]) ||
        !collective_fits(op, c->what.kind, n, &extents[k], k))
      return false;
  return true;
}

/* One scalar computation for all arrays. */
static int collective_sum_of(cpu_prepare_run *x, collective_routine *c, bool *known) {
  *known = c->what.kind != RT_ALL_REDUCE && c->what.kind != RT_REDUCE_SCATTER;
  if (*known) return 0;
  if (x->op->n_called != 1 || x->op->called[0]->n_params != 2) return 0;
  TRY(cpu_body_make(x->op->called[0], x->arena, &c->body, x->err));
  if (!c->body || c->body->program->n_outs != 1) return 0;
  for (uint32_t k = 0; k < c->what.n; k++)
    if (ir_operand_type(x->op, k)->dtype != x->op->called[0]->params[0]->type->dtype) return 0;
  x->out->scratch_bytes = (int64_t)c->body->lanes->bytes;
  c->add = collective_add_of(x->op->called[0]);
  *known = true;
  return 0;
}

/* Groups that are axes of a mesh, as programs have them that are only planned. */
static bool collective_is_by_axes(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  return a && a->v.groups && a->v.groups->mesh_text;
}

static int collective_eval(const cpu_routine_run *r) {
  return cpu_run_eval(r->run, r->step, r->pointers);
}

/* Needs what it would with its groups, and is the interpreter's. */
static int collective_by_axes(cpu_prepare_run *x, collective_routine *c) {
  bool known = false;
  TRY(collective_sum_of(x, c, &known));
  if (!known) return 0;
  x->out->name = "collective";
  x->code = collective_eval;
  return 0;
}

int cpu_prepare_collective(cpu_prepare_run *x) {
  const ir_config *config = &x->op->parent->module->config;
  rt_communicator grid = {NULL, config->replica_count > 0 ? config->replica_count : 1,
                          config->num_partitions > 0 ? config->num_partitions : 1, 1};
  collective_routine *c = BASE_NEW(x->arena, collective_routine);
  rt_extent *extents = BASE_ARRAY(x->arena, rt_extent, (size_t)x->op->n_operands + 1);
  int64_t n = 0;
  bool known = false;
  if (!c || !extents) return base_oom(x->err, "a collective");
  x->out->stoppable = false;
  if (!base_mul_i64(grid.replicas, grid.partitions, &n) || n <= 1 || !collective_kind_of(x->op, &c->what.kind) ||
      x->op->n_operands == 0)
    return 0;
  c->what.n = x->op->n_operands;
  if (collective_is_by_axes(x->op)) return collective_by_axes(x, c);
  if (n > RT_MOST_PARTICIPANTS) return 0;
  c->participants = (uint32_t)n;
  c->what.channel = ir_get_int(x->op, IR_ATTR_CHANNEL_ID, 0);
  c->what.name = x->op->name->s;
  c->what.extents = extents;
  TRY(collective_groups(x, &grid, c->what.kind, &c->groups));
  if (!c->groups || !collective_measure(x->op, c, extents)) return 0;
  TRY(collective_sum_of(x, c, &known));
  if (!known) return 0;
  x->out->name = "collective";
  x->out->work = (uint64_t)rt_exchange_bytes(&c->what, 1);
  x->data = c;
  x->code = collective_run;
  return 0;
}
