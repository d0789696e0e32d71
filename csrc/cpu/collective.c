/* Collectives over the call's communicator: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, permute.
 *
 * Who meets whom is known when the program is planned: a table by participant. Reductions run their computation on many
 * lanes at a time. What has another form (ragged exchanges, dynamic roots, slices that are sent) is the
 * interpreter's, and so is what a program does that runs alone. */
#include "../interp/parallel/collective_form.h"
#include "body/body.h"
#include "routine.h"

/* What a meeting counts for between two looks at whether the call is interrupted: some 10 us, in element operations. */
enum { COLLECTIVE_TICKS = 1 << 12 };

/* What nearly all sums are, without the lanes of a program: as rt_combine_fn, of exactly COLLECTIVE_AT_ONCE members, or
 * of two. */
enum { COLLECTIVE_AT_ONCE = 4 };
typedef void collective_add_fn(int64_t n, void *into, uint32_t members, const void *const *from);

/* What a combination goes by. */
typedef struct collective_sum {
  collective_add_fn *add;
  const rt_extent *extents;
  scalar_lanes_run lanes;
} collective_sum;

typedef struct collective_routine {
  interp_collective_form form;
  bool agreed;            /* whoever is a member of somebody's group has that group */
  const cpu_body *body;   /* of sums; else NULL */
  collective_add_fn *add; /* where the body is just that: */
  collective_sum plain;   /* nothing of it changes */
} collective_routine;

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
  for (uint32_t k = 0; k < c->form.what.n; k++) {
    int64_t bytes = ir_type_bytes(interp_form_type(r->step->op->type, k));
    if (bytes) memset(r->out[k], 0, (size_t)bytes);
  }
  return 0;
}

static int collective_unnamed(const cpu_routine_run *r, const collective_routine *c) {
  const interp_options *o = &r->run->ctx.options;
  if (c->form.what.kind == RT_PERMUTE || c->form.what.kind == RT_BROADCAST) return collective_zeros(r, c);
  return interp_fail(&r->run->ctx, r->step->op, XLAC_E_PARTICIPANTS, "no group names replica %lld, partition %lld",
                     (long long)o->replica, (long long)o->partition);
}

static int collective_run(const cpu_routine_run *r) {
  const collective_routine *c = r->data;
  const interp_options *o = &r->run->ctx.options;
  rt_communicator *meeting = o->communicator;
  collective_sum sum = {.extents = c->form.what.extents};
  if (!meeting) return cpu_run_eval(r->run, r->step, r->pointers); /* alone: the operands, or an error */
  if ((uint32_t)(meeting->replicas * meeting->partitions) != c->form.participants)
    return interp_fail(&r->run->ctx, r->step->op, XLAC_E_PARTICIPANTS, "expected %u participants, found %lld x %lld",
                       (unsigned)c->form.participants, (long long)meeting->replicas, (long long)meeting->partitions);
  rt_participant us = {rt_participant_number(meeting, o->replica, o->partition), o->interrupted, o->interrupt_ctx};
  assert(us.number < c->form.participants);
  const rt_group *group = &c->form.groups[us.number];
  if (group->n == 0) return collective_unnamed(r, c);
  if (c->body && !c->add) scalar_lanes_begin(&sum.lanes, c->body->lanes, r->scratch);
  void *ctx = c->add ? (void *)(uintptr_t)&c->plain : &sum;
  TRY(rt_communicator_run(meeting, &us, &c->form.what, group, r->in, r->out, collective_combine, ctx, r->run->ctx.err));
  return interp_tick(&r->run->ctx, COLLECTIVE_TICKS);
}

bool cpu_is_meeting(const cpu_executable *exe, const plan_step *s) {
  if (s->kind != PLAN_ROUTINE) return false;
  const cpu_routine *r = &exe->routines.items[s->routine->number];
  return r->run == collective_run && ((const collective_routine *)r->data)->agreed;
}

uint32_t cpu_meeting_shares(const cpu_executable *exe, const plan_step *s, uint32_t participant) {
  const collective_routine *c = exe->routines.items[s->routine->number].data;
  rt_collective_kind kind = c->form.what.kind;
  assert(cpu_is_meeting(exe, s));
  bool same = kind == RT_ALL_REDUCE || kind == RT_ALL_GATHER || kind == RT_BROADCAST;
  if (!same || participant >= c->form.participants || c->form.groups[participant].n < 2) return UINT32_MAX;
  return c->form.groups[participant].members[0];
}

/* --- preparing --- */

/* Whether each group is that of its first member, and the first members of all of its members are that one. */
static bool collective_agrees(const rt_group *groups, uint32_t participants) {
  for (uint32_t i = 0; i < participants; i++) {
    const rt_group *g = &groups[i];
    if (g->n == 0) continue;
    const rt_group *first = &groups[g->members[0]];
    if (first->n != g->n || memcmp(first->members, g->members, g->n * sizeof *g->members) != 0) return false;
    for (uint32_t k = 0; first == g && k < g->n; k++)
      if (groups[g->members[k]].n == 0 || groups[g->members[k]].members[0] != i) return false;
  }
  return true;
}

/* One scalar computation for all arrays. */
static int collective_sum_of(cpu_prepare_run *x, collective_routine *c, bool *known) {
  *known = c->form.what.kind != RT_ALL_REDUCE && c->form.what.kind != RT_REDUCE_SCATTER;
  if (*known) return 0;
  if (x->op->n_called != 1 || x->op->called[0]->n_params != 2) return 0;
  TRY(cpu_body_make(x->op->called[0], x->arena, &c->body, x->err));
  if (!c->body || c->body->program->n_outs != 1) return 0;
  for (uint32_t k = 0; k < c->form.what.n; k++)
    if (ir_operand_type(x->op, k)->dtype != x->op->called[0]->params[0]->type->dtype) return 0;
  x->out->scratch_bytes = (int64_t)c->body->lanes->bytes;
  c->add = collective_add_of(x->op->called[0]);
  *known = true;
  return 0;
}

static int collective_eval(const cpu_routine_run *r) {
  return cpu_run_eval(r->run, r->step, r->pointers);
}

int cpu_prepare_collective(cpu_prepare_run *x) {
  collective_routine *c = BASE_NEW(x->arena, collective_routine);
  bool known = false;
  if (!c) return base_oom(x->err, "a collective");
  x->out->stoppable = false;
  TRY(interp_collective_form_of(x->op, x->arena, &c->form, &known, x->err));
  if (!known) return 0;
  TRY(collective_sum_of(x, c, &known));
  if (!known) return 0;
  x->out->name = "collective";
  x->code = collective_eval; /* of axes of a mesh: needs what it would with its groups */
  if (!c->form.groups) return 0;
  x->out->work = (uint64_t)rt_exchange_bytes(&c->form.what, 1);
  c->plain = (collective_sum){.add = c->add, .extents = c->form.what.extents};
  c->form.what.settles = c->add || !c->body;
  c->agreed = collective_agrees(c->form.groups, c->form.participants);
  x->data = c;
  x->code = collective_run;
  return 0;
}
