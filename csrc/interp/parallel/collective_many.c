/* Collectives of a parallel run: the members of a group bring their operands to a meeting, and each makes its own
 * result of what all have brought. */
#include "../../runtime/communicator.h"
#include "../blocks.h"
#include "collective_group.h"

/* --- parts: r's box [at, at + size) along dimension d from or to another value --- */

/* Copies x to where r's dimension d begins at `at`; other dims are the same. */
static int many_place(interp_ctx *ctx, const interp_value *x, uint32_t d, int64_t at, interp_value *r) {
  int64_t from[IR_MAX_RANK], to[IR_MAX_RANK];
  size_t bytes = base_dtype_bytes((base_dtype)r->dtype);
  interp_strides(x->rank, x->dims, from);
  interp_strides(r->rank, r->dims, to);
  if (x->count == 0) return 0;
  return interp_strided_copy(ctx, bytes, x->rank, x->dims, (char *)r->data + at * to[d] * (int64_t)bytes, to, x->data,
                             from);
}

/* Part k of n of x along d. Equal parts: dimension d must be divisible. */
static int many_part(interp_ctx *ctx, const ir_op *op, const interp_value *x, int64_t d, int64_t k, int64_t n,
                     interp_value **out) {
  assert(n > 0 && k >= 0 && k < n);
  int64_t dims[IR_MAX_RANK], from[IR_MAX_RANK] = {0};
  if (d < 0 || d >= x->rank || x->dims[d] % n != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "dimension %lld can't be cut into %lld parts", (long long)d, (long long)n);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[d] /= n;
  interp_value *r = interp_array(ctx, (base_dtype)x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  interp_strides(x->rank, x->dims, from);
  int status = interp_copy_box(ctx, base_dtype_bytes((base_dtype)x->dtype), x->rank, dims, r->data, x->data,
                               k * dims[d] * from[d], from);
  return interp_deliver(status, r, out);
}

/* The n values one after another along d; consumes nothing. */
static int many_join(interp_ctx *ctx, const ir_op *op, uint32_t n, interp_value *const *parts, int64_t d,
                     interp_value **out) {
  int64_t dims[IR_MAX_RANK], total = 0;
  const interp_value *x = parts[0];
  if (d < 0 || d >= x->rank) return interp_fail(ctx, op, XLAC_E_EVAL, "has no dimension %lld", (long long)d);
  for (uint32_t i = 0; i < n; i++) {
    bool fits = parts[i]->kind == INTERP_ARRAY && parts[i]->rank == x->rank && parts[i]->dtype == x->dtype;
    for (uint32_t k = 0; fits && k < x->rank; k++) fits = k == d || parts[i]->dims[k] == x->dims[k];
    if (!fits || !base_add_i64(total, parts[i]->dims[d], &total))
      return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "the participants bring values that do not fit together");
  }
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[d] = total;
  interp_value *r = interp_array(ctx, (base_dtype)x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  int status = 0;
  int64_t at = 0;
  for (uint32_t i = 0; i < n && status == 0; i++) {
    status = many_place(ctx, parts[i], (uint32_t)d, at, r);
    at += parts[i]->dims[d];
  }
  return interp_deliver(status, r, out);
}

/* --- one result of each kind: value k of every member is at values[i * step] --- */

typedef struct many_job {
  interp_ctx *ctx;
  const ir_op *op;
  const interp_group *group;
  const interp_meeting *meeting;
  interp_value **column; /* group->n of them: scratch */
} many_job;

static interp_value **many_column(const many_job *j, uint32_t k) {
  assert(k < j->meeting->n_values);
  for (uint32_t i = 0; i < j->group->n; i++) j->column[i] = j->meeting->values[i * j->meeting->n_values + k];
  return j->column;
}

/* -1 where op has none. */
static int64_t many_dimension(const many_job *j) {
  const ir_ints *list = ir_get_ints(j->op, IR_ATTR_DIMENSIONS);
  return list->n == 1 ? list->v[0] : -1;
}

static bool same_shape(const interp_value *a, const interp_value *b) {
  return a->kind == INTERP_ARRAY && b->kind == INTERP_ARRAY && a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* In the group's order, so that every member gets the same bits. */
static int many_reduce(const many_job *j, uint32_t k, interp_value **out) {
  interp_ctx *ctx = j->ctx;
  interp_value **v = many_column(j, k);
  interp_body *body = NULL;
  for (uint32_t i = 1; i < j->group->n; i++)
    if (!same_shape(v[0], v[i]))
      return interp_fail(ctx, j->op, XLAC_E_PARTICIPANTS, "the participants bring values that do not fit together");
  if (v[0]->kind != INTERP_ARRAY || j->op->n_called != 1 || j->op->called[0]->n_params != 2)
    return interp_fail(ctx, j->op, XLAC_E_EVAL, "reduces with a computation that does not take two arrays");
  interp_value *r = interp_copy_as(ctx, v[0], (base_dtype)v[0]->dtype);
  if (!r) return interp_failed(ctx);
  int status = interp_body_prepare(ctx, j->op->called[0], &body);
  for (uint32_t i = 1; i < j->group->n && !status; i++) {
    const void *args[2] = {r->data, v[i]->data};
    void *outs[1] = {r->data};
    status = interp_tick(ctx, (uint64_t)r->count);
    if (!status) status = interp_apply(ctx, body, r->count, args, outs);
  }
  interp_body_free(body);
  return interp_deliver(status, r, out);
}

/* Reduces the whole and cuts our part out: simple rather than fast. */
static int many_reduce_scatter(const many_job *j, uint32_t k, interp_value **out) {
  interp_value *whole = NULL;
  TRY(many_reduce(j, k, &whole));
  int status = many_part(j->ctx, j->op, whole, many_dimension(j), j->group->place, j->group->n, out);
  interp_release(whole);
  return status;
}

/* One operand cut along a dimension: the part for us of every member, joined along the same one. */
static int many_exchange(const many_job *j, interp_value **out) {
  interp_value **v = many_column(j, 0);
  uint32_t n = 0;
  int status = 0;
  for (; n < j->group->n && !status; n++) {
    interp_value *part = NULL;
    status = many_part(j->ctx, j->op, v[n], many_dimension(j), j->group->place, j->group->n, &part);
    if (status) break;
    v[n] = part;
  }
  if (!status) status = many_join(j->ctx, j->op, j->group->n, v, many_dimension(j), out);
  for (uint32_t i = 0; i < n; i++) interp_release(v[i]);
  return status;
}

/* Operands by receiver: result k is what member k has for us. */
static int many_receive(const many_job *j, uint32_t k, interp_value **out) {
  if (j->meeting->n_values != j->group->n)
    return interp_fail(j->ctx, j->op, XLAC_E_PARTICIPANTS, "has %u operands in a group of %u", j->meeting->n_values,
                       j->group->n);
  *out = interp_retain(j->meeting->values[k * j->meeting->n_values + j->group->place]);
  return 0;
}

/* The first's, or the one's that a last operand names for each value. */
static int many_broadcast(const many_job *j, uint32_t k, interp_value **out) {
  int64_t root = 0;
  if (ir_m_get_bool(j->op, "has_dynamic_root")) {
    const interp_value *roots = j->meeting->values[j->group->place * j->meeting->n_values + j->meeting->n_values - 1];
    if (roots->kind != INTERP_ARRAY || roots->count <= k)
      return interp_fail(j->ctx, j->op, XLAC_E_EVAL, "has fewer roots than operands");
    root = interp_element_index(roots, k);
    if (root < 0 || root >= j->group->n)
      return interp_fail(j->ctx, j->op, XLAC_E_EVAL, "root %lld of a group of %u", (long long)root, j->group->n);
  }
  *out = interp_retain(j->meeting->values[(uint32_t)root * j->meeting->n_values + k]);
  return 0;
}

/* The reduction at the first of the group, zeros elsewhere. */
static int many_reduce_to_one(const many_job *j, uint32_t k, interp_value **out) {
  if (j->group->place == 0) return many_reduce(j, k, out);
  const interp_value *v = j->meeting->values[j->group->place * j->meeting->n_values + k];
  interp_value *r = interp_array(j->ctx, (base_dtype)v->dtype, v->rank, v->dims);
  if (!r) return interp_failed(j->ctx);
  return interp_deliver(interp_zero_bytes(j->ctx, r->data, interp_bytes(r)), r, out);
}

/* --- ragged all-to-all --- */

/* Rows that member i has for us into our output: input, output, input offsets, send sizes, output offsets, ... Offsets
 * and sizes hold as many updates for each receiver. */
static int many_ragged_from(const many_job *j, uint32_t i, interp_value *dst) {
  interp_value **v = j->meeting->values + i * j->meeting->n_values;
  const interp_value *src = v[0];
  int64_t updates = v[2]->count / j->group->n, row = src->dims[0] ? src->count / src->dims[0] : 0;
  size_t bytes = (size_t)row * base_dtype_bytes((base_dtype)src->dtype);
  for (int64_t u = j->group->place * updates, end = u + updates; u < end; u++) {
    int64_t from = interp_element_index(v[2], u), n = interp_element_index(v[3], u), to = interp_element_index(v[4], u);
    if (n < 0 || from < 0 || to < 0 || n > src->dims[0] || n > dst->dims[0] || from > src->dims[0] - n ||
        to > dst->dims[0] - n)
      return interp_fail(j->ctx, j->op, XLAC_E_EVAL, "%lld rows from row %lld to row %lld do not fit the operands",
                         (long long)n, (long long)from, (long long)to);
    TRY(interp_copy_bytes(j->ctx, (char *)dst->data + (size_t)to * bytes,
                          (const char *)src->data + (size_t)from * bytes, (size_t)n * bytes));
  }
  return 0;
}

static int many_ragged(const many_job *j, interp_value **out) {
  interp_value *const *own = j->meeting->values + j->group->place * j->meeting->n_values;
  for (uint32_t i = 0; i < j->group->n; i++) {
    interp_value **v = j->meeting->values + i * j->meeting->n_values;
    bool fits = j->meeting->n_values == 6;
    for (uint32_t k = 0; fits && k < 6; k++) fits = v[k]->kind == INTERP_ARRAY && v[k]->rank > 0;
    for (uint32_t k = 2; fits && k < 6; k++) fits = v[k]->count == own[2]->count && v[k]->count % j->group->n == 0;
    fits = fits && v[0]->rank == own[1]->rank && v[0]->dtype == own[1]->dtype;
    for (uint32_t d = 1; fits && d < v[0]->rank; d++) fits = v[0]->dims[d] == own[1]->dims[d];
    if (!fits)
      return interp_fail(j->ctx, j->op, XLAC_E_PARTICIPANTS, "the participants bring values that do not fit together");
  }
  interp_value *dst = interp_copy_as(j->ctx, own[1], (base_dtype)own[1]->dtype);
  if (!dst) return interp_failed(j->ctx);
  int status = 0;
  for (uint32_t i = 0; i < j->group->n && !status; i++) status = many_ragged_from(j, i, dst);
  return interp_deliver(status, dst, out);
}

/* --- all of it --- */

static int many_result(const many_job *j, uint32_t k, interp_value **out) {
  switch (j->op->opcode) {
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_GATHER_START:
      return many_join(j->ctx, j->op, j->group->n, many_column(j, k), many_dimension(j), out);
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_REDUCE_START:
      return many_reduce(j, k, out);
    case IR_OP_REDUCE_SCATTER:
      return many_reduce_scatter(j, k, out);
    case IR_OP_COLLECTIVE_REDUCE:
      return many_reduce_to_one(j, k, out);
    case IR_OP_COLLECTIVE_BROADCAST:
      return many_broadcast(j, k, out);
    case IR_OP_ALL_TO_ALL:
      return ir_attr_find(j->op, IR_ATTR_DIMENSIONS) && j->op->n_operands == 1 ? many_exchange(j, out)
                                                                               : many_receive(j, k, out);
    case IR_OP_RAGGED_ALL_TO_ALL:
      return many_ragged(j, out);
    default:
      return interp_fail(j->ctx, j->op, XLAC_E_EVAL, "%s is not run by several participants",
                         ir_opcode_text(j->op->opcode));
  }
}

/* Results as t wants them: the one itself, or a tuple. Consumes them. */
static int many_give(interp_ctx *ctx, const ir_type *t, uint32_t n, interp_value **results, interp_value **out) {
  if (n == 1 && !ir_is_tuple(t)) {
    *out = interp_retain(results[0]);
  } else {
    *out = interp_tuple(ctx, n, results);
  }
  return *out ? 0 : interp_failed(ctx);
}

/* Each result on its own, then the tuple. */
static int many_run(many_job *j, base_arena *arena, const ir_type *t, interp_value **out) {
  uint32_t n = j->op->opcode == IR_OP_RAGGED_ALL_TO_ALL ? 1 : j->op->n_operands, made = 0;
  if (j->op->opcode == IR_OP_COLLECTIVE_BROADCAST && ir_m_get_bool(j->op, "has_dynamic_root")) n--;
  interp_value **results = BASE_ARRAY(arena, interp_value *, (size_t)n + 1);
  j->column = BASE_ARRAY(arena, interp_value *, (size_t)j->group->n + 1);
  if (!results || !j->column) return base_oom(j->ctx->err, "a collective's results");
  int status = 0;
  while (made < n && (status = many_result(j, made, &results[made])) == 0) made++;
  if (!status) status = many_give(j->ctx, t, n, results, out);
  for (uint32_t i = 0; i < made; i++) interp_release(results[i]);
  return status;
}

/* --- meeting: in a hub, or in a communicator --- */

typedef struct many_meet {
  interp_meeting *meeting; /* NULL: none */
  void *shared;            /* the communicator's */
  rt_collective what;
  interp_meeting own; /* a view of what the communicator's members have brought */
  uint32_t n_copies;  /* of those, if they are copies: of several processes */
} many_meet;

static rt_participant many_us(const interp_ctx *ctx) {
  return (rt_participant){interp_group_us(ctx), ctx->options.interrupted, ctx->options.interrupt_ctx};
}

/* Members bring their lists of values. */
static int many_meet_shared(interp_ctx *ctx, const ir_op *op, const interp_group *g, base_arena *arena,
                            interp_value *const *operands, many_meet *x) {
  uint32_t n = op->n_operands;
  const void **items = BASE_ARRAY(arena, const void *, (size_t)g->n + 1);
  interp_value **values = BASE_ARRAY(arena, interp_value *, (size_t)g->n * n + 1);
  rt_group group = {.n = g->n, .place = g->place, .members = g->members};
  rt_participant us = many_us(ctx);
  if (!items || !values) return base_oom(ctx->err, "a meeting");
  x->what = (rt_collective){.kind = RT_ALL_GATHER, .channel = g->channel, .name = op->name->s, .n = n};
  TRY(rt_communicator_meet(ctx->options.communicator, &us, &x->what, &group, operands, items, &x->shared, ctx->err));
  for (uint32_t i = 0; i < g->n; i++)
    if (n) memcpy(values + (size_t)i * n, items[i], n * sizeof *values);
  x->own = (interp_meeting){.members = g->members, .n = g->n, .n_values = n, .values = values};
  x->meeting = &x->own;
  return 0;
}

/* --- between processes: values as bytes, which are gathered --- */

enum { MANY_HEAD = (2 + IR_MAX_RANK) * sizeof(int64_t) };

static size_t many_packed(const interp_value *v) {
  return MANY_HEAD + ((interp_bytes(v) + 7) & ~(size_t)7);
}

static char *many_pack(const interp_value *v, char *at) {
  int64_t head[2 + IR_MAX_RANK] = {v->dtype, v->rank};
  if (v->rank) memcpy(head + 2, v->dims, v->rank * sizeof *v->dims);
  memcpy(at, head, MANY_HEAD);
  if (v->count) memcpy(at + MANY_HEAD, v->data, interp_bytes(v));
  return at + many_packed(v);
}

static const char *many_unpack(interp_ctx *ctx, const char *at, interp_value **out) {
  int64_t head[2 + IR_MAX_RANK];
  memcpy(head, at, MANY_HEAD);
  *out = interp_array(ctx, (base_dtype)head[0], (uint32_t)head[1], head + 2);
  if (!*out) return NULL;
  if ((*out)->count) memcpy((*out)->data, at + MANY_HEAD, interp_bytes(*out));
  return at + many_packed(*out);
}

static int many_gather(interp_ctx *ctx, const ir_op *op, const interp_group *g, int64_t bytes, const void *in,
                       void *out) {
  const rt_extent extent = {1, bytes, 1};
  const rt_collective what = {RT_ALL_GATHER, g->channel, op->name->s, 1, &extent, false};
  const rt_group group = {.n = g->n, .place = g->place, .members = g->members};
  const rt_participant us = many_us(ctx);
  return rt_communicator_run(ctx->options.communicator, &us, &what, &group, &in, &out, NULL, NULL, ctx->err);
}

/* The lengths of all, then as many bytes of each as the longest has. */
static int many_meet_processes(interp_ctx *ctx, const ir_op *op, const interp_group *g, base_arena *arena,
                               interp_value *const *operands, many_meet *x) {
  uint32_t n = op->n_operands;
  int64_t own = 0, most = 0, *sizes = BASE_ARRAY(arena, int64_t, (size_t)g->n + 1);
  interp_value **values = BASE_ARRAY(arena, interp_value *, (size_t)g->n * n + 1);
  if (!sizes || !values) return base_oom(ctx->err, "a meeting");
  for (uint32_t k = 0; k < n; k++) {
    if (operands[k]->kind != INTERP_ARRAY)
      return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "brings what is not an array to other processes");
    own += (int64_t)many_packed(operands[k]);
  }
  TRY(many_gather(ctx, op, g, sizeof own, &own, sizes));
  for (uint32_t i = 0; i < g->n; i++) most = sizes[i] > most ? sizes[i] : most;
  char *all = base_arena_alloc(arena, (size_t)most * (g->n + 1u) + 1), *at = all;
  if (!all) return base_oom(ctx->err, "a meeting");
  for (uint32_t k = 0; k < n; k++) at = many_pack(operands[k], at);
  memset(at, 0, (size_t)(most - own));
  TRY(many_gather(ctx, op, g, most, all, all + most));
  x->own = (interp_meeting){.members = g->members, .n = g->n, .n_values = n, .values = values};
  x->meeting = &x->own;
  for (uint32_t i = 0; i < g->n; i++) {
    const char *from = all + most * (i + 1);
    for (uint32_t k = 0; k < n; k++, x->n_copies++)
      if (!(from = many_unpack(ctx, from, &values[x->n_copies]))) return interp_failed(ctx);
  }
  return 0;
}

static int many_arrive(interp_ctx *ctx, const ir_op *op, const interp_group *g, base_arena *arena,
                       interp_value *const *operands, many_meet *x) {
  *x = (many_meet){.meeting = NULL};
  if (!ctx->options.hub && ctx->options.communicator->processes > 1) {
    int status = many_meet_processes(ctx, op, g, arena, operands, x);
    for (uint32_t i = 0; status && i < x->n_copies; i++) interp_release(x->own.values[i]);
    return status;
  }
  if (!ctx->options.hub) return many_meet_shared(ctx, op, g, arena, operands, x);
  return interp_hub_meet(ctx, op, g->channel, g->n, g->members, g->place, op->n_operands, operands, &x->meeting);
}

/* A result that is another member's value is copied before that member goes on: its memory is its plan's. Replaces *v,
 * also on failure by what is to be released. */
static int many_own(interp_ctx *ctx, base_arena *arena, interp_value **v) {
  interp_value *copy = NULL;
  if ((*v)->kind == INTERP_ARRAY) {
    if (interp_is_unique(*v) && !(*v)->lent) return 0;
    copy = interp_copy_as(ctx, *v, (base_dtype)(*v)->dtype);
  } else if ((*v)->kind == INTERP_TUPLE) {
    uint32_t n = (*v)->n_elements, made = 0;
    interp_value **parts = BASE_ARRAY(arena, interp_value *, (size_t)n + 1);
    int status = parts ? 0 : base_oom(ctx->err, "a collective's results");
    for (; made < n && status == 0; made++) {
      parts[made] = interp_retain((*v)->elements[made]);
      status = many_own(ctx, arena, &parts[made]);
    }
    copy = status ? NULL : interp_tuple(ctx, n, parts);
    for (uint32_t i = 0; i < made; i++) interp_release(parts[i]);
  } else {
    return 0;
  }
  if (!copy) return interp_failed(ctx);
  interp_release(*v);
  *v = copy;
  return 0;
}

/* Also after a failure: others wait for us, or look at what we brought. */
static int many_leave(interp_ctx *ctx, base_arena *arena, many_meet *x, int status, interp_value **out) {
  if (!x->meeting) return status;
  for (uint32_t i = 0; i < x->n_copies; i++) interp_release(x->own.values[i]);
  if (x->n_copies) return status;
  if (!x->shared) {
    interp_hub_leave(ctx, x->meeting);
    return status;
  }
  bool made = status == 0;
  if (made) status = many_own(ctx, arena, out);
  rt_participant us = many_us(ctx);
  xlac_error ignored = {.code = 0};
  int parted = rt_communicator_part(ctx->options.communicator, &us, x->shared, status ? &ignored : ctx->err);
  if (status == 0) status = parted;
  if (made && status) interp_release(*out);
  return status;
}

/* A participant that no group names gets zeros from a broadcast; elsewhere that is an error. */
static int many_grouped(interp_ctx *ctx, const ir_op *op, base_arena *arena, const ir_type *t,
                        interp_value *const *operands, interp_value **out) {
  interp_group g;
  many_meet meet;
  TRY(interp_group_of(ctx, op, arena, &g));
  if (!g.named) {
    if (op->opcode != IR_OP_COLLECTIVE_BROADCAST)
      return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "no group of %s names replica %lld, partition %lld",
                         ir_opcode_text(op->opcode), (long long)ctx->options.replica,
                         (long long)ctx->options.partition);
    *out = interp_zeros(ctx, t);
    return *out ? 0 : interp_failed(ctx);
  }
  TRY(many_arrive(ctx, op, &g, arena, operands, &meet));
  many_job j = {ctx, op, &g, meet.meeting, NULL};
  return many_leave(ctx, arena, &meet, many_run(&j, arena, t, out), out);
}

/* --- collective-permute: pairs, not groups; everybody a pair names meets --- */

/* Who is not a target gets zeros, as in XLA. Those that no pair names don't wait for anybody. */
static int many_permute(interp_ctx *ctx, const ir_op *op, base_arena *arena, const ir_type *t,
                        interp_value *const *operands, interp_value **out) {
  interp_group g;
  uint32_t *sources = NULL;
  many_meet meet = {.meeting = NULL};
  TRY(interp_group_of_pairs(ctx, op, arena, &g, &sources));
  if (g.named) TRY(many_arrive(ctx, op, &g, arena, operands, &meet));
  uint32_t source = g.named ? sources[g.place] : UINT32_MAX;
  int status = 0;
  if (source != UINT32_MAX) {
    status = many_give(ctx, t, op->n_operands, meet.meeting->values + source * meet.meeting->n_values, out);
  } else if (!(*out = interp_zeros(ctx, t))) {
    status = interp_failed(ctx);
  }
  return many_leave(ctx, arena, &meet, status, out);
}

/* t: the result's type, which for a start op is an element of the op's. */
int interp_collective_many(interp_ctx *ctx, const ir_op *op, const ir_type *t, interp_value *const *operands,
                           interp_value **out) {
  assert(ctx->options.hub || ctx->options.communicator);
  base_arena arena;
  bool permutes = op->opcode == IR_OP_COLLECTIVE_PERMUTE || op->opcode == IR_OP_COLLECTIVE_PERMUTE_START;
  base_arena_init(&arena, ctx->options.alloc);
  int status =
      permutes ? many_permute(ctx, op, &arena, t, operands, out) : many_grouped(ctx, op, &arena, t, operands, out);
  base_arena_free(&arena);
  return status;
}
