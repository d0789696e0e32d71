/* Passes on async chains but the scheduler. */
#include "async.h"

/* async-wrap, async-unwrap, async-collective-creator, convert-async-pairs: chains made of ops and ops of chains.
 * Require: nothing. Preserve: control edges, the schedule, shardings, metadata. */

/* --- async-wrap --- */

/* n = f32[4] exponential(a) becomes, with updates=1:
 *    n-start  = ((f32[4]), f32[4], u32[]) exponential-start(a)
 *    n-update = ((f32[4]), f32[4], u32[]) exponential-update(n-start)
 *    n-done   = f32[4] exponential-done(n-update)
 * which is sugar for async-start, async-update and async-done with a computation that holds the exponential. */
typedef struct wrap_pass {
  async_how how;
  base_slice ops; /* empty: all that may be */
  int64_t min_bytes;
} wrap_pass;

/* Operands and result, as the model counts. */
static int64_t async_bytes_touched(const ir_op *op) {
  int64_t sum = ir_type_bytes(op->type);
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!base_add_i64(sum, ir_type_bytes(ir_operand_type(op, i)), &sum)) return INT64_MAX;
  return sum;
}

/* Without a list only what may run at any time is wrapped. */
static bool async_wants_wrap(const async_edit *e, const ir_op *op, const wrap_pass *p) {
  bool able = ir_opcode_pair_start(op->opcode) ? async_may_pair(op) : async_may_wrap(op);
  if (!able || async_bytes_touched(op) < p->min_bytes) return false;
  if (p->ops.n) return async_list_has(p->ops, ir_opcode_text(op->opcode));
  return !(opt_op_facts(&e->facts, op) & (OPT_EFFECT | OPT_RANDOM));
}

/* Ops with a pair of their own get that, as XLA's text would show them. */
static int async_wrap_in(async_edit *e, ir_computation *c, void *ctx) {
  const wrap_pass *p = ctx;
  async_how how = p->how;
  if (!how.thread) how.thread = c->execution_thread;
  IR_FOR_OPS_SAFE(op, c) {
    if (op->id >= e->facts.n_ids || !async_wants_wrap(e, op, p)) continue;
    bool own = ir_opcode_pair_start(op->opcode) != IR_OP_INVALID;
    if (!(own ? async_pair_op(e, op) : async_wrap_op(e, op, &how))) return async_oom(e);
  }
  return 0;
}

/* "main" is the thread without a name. */
int async_wrap_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  wrap_pass p = {.ops = opt_get_text(args, "ops"), .min_bytes = opt_get(args, "min-bytes")};
  base_slice thread = opt_get_text(args, "thread");
  p.how.updates = (uint32_t)opt_get(args, "updates");
  TRY(async_check_opcodes(p.ops, "async-wrap", err));
  if (thread.n && !base_slice_is(thread, "main") && !(p.how.thread = ir_intern(m, thread.p, thread.n)))
    return base_oom(err, "async-wrap");
  async_edit e;
  TRY(async_edit_begin(&e, m, err));
  int status = async_each(&e, async_wrap_in, &p);
  async_edit_end(&e);
  return status;
}

/* --- async-unwrap --- */

/* Ids at or above n_ids are ops made here. */
static int async_unwrap_in(async_edit *e, ir_computation *c, void *ctx) {
  (void)ctx;
  IR_FOR_OPS_SAFE(op, c) {
    bool found = false;
    if (!ir_opcode_has(op->opcode, IR_ASYNC_DONE) || op->id >= e->facts.n_ids) continue;
    if (!async_unwrap(e, op, &found) && found) return async_oom(e);
  }
  return 0;
}

/* Chains are taken apart in all computations that run op by op. */
int async_unwrap_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  async_edit e;
  TRY(async_edit_begin(&e, m, err));
  int status = async_each(&e, async_unwrap_in, NULL);
  async_edit_end(&e);
  return status;
}

/* --- async-collective-creator --- */

/* n = f32[4] all-reduce(a) becomes n-start = f32[4] all-reduce-start(a), n-done = f32[4] all-reduce-done(n-start);
 * kinds without a pair of their own (all-to-all, reduce-scatter) get generic chains. */
typedef struct creator_pass {
  base_slice ops;
  int64_t min_bytes, all_reduce_min_bytes, all_gather_min_bytes;
  bool generic;
} creator_pass;

/* As XLA's AsyncCollectiveCreator. */
static bool async_is_creatable(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_GATHER:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_RAGGED_ALL_TO_ALL:
      return true;
    default:
      return false;
  }
}

/* Thresholds as XLA has them, by the size of the result. */
static bool async_wants_create(const ir_op *op, const creator_pass *p) {
  int64_t bytes = ir_type_bytes(op->type);
  if (!async_is_creatable(op->opcode) || bytes < p->min_bytes) return false;
  if (op->opcode == IR_OP_ALL_REDUCE && bytes < p->all_reduce_min_bytes) return false;
  if (op->opcode == IR_OP_ALL_GATHER && bytes < p->all_gather_min_bytes) return false;
  return p->ops.n == 0 || async_list_has(p->ops, ir_opcode_text(op->opcode));
}

/* An all-reduce of one operand may work in place. */
static int async_create_in(async_edit *e, ir_computation *c, void *ctx) {
  const creator_pass *p = ctx;
  IR_FOR_OPS_SAFE(op, c) {
    if (op->id >= e->facts.n_ids || !async_wants_create(op, p)) continue;
    bool pair = ir_opcode_pair_start(op->opcode) && !p->generic;
    async_how how = {.thread = c->execution_thread, .alias_first = false};
    how.alias_first = op->opcode == IR_OP_ALL_REDUCE && op->n_operands == 1;
    if (!(pair ? async_pair_op(e, op) : async_wrap_op(e, op, &how))) return async_oom(e);
  }
  return 0;
}

int async_collective_creator_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  creator_pass p = {.ops = opt_get_text(args, "ops"),
                    .min_bytes = opt_get(args, "min-bytes"),
                    .all_reduce_min_bytes = opt_get(args, "all-reduce-min-bytes"),
                    .all_gather_min_bytes = opt_get(args, "all-gather-min-bytes"),
                    .generic = opt_get(args, "generic") != 0};
  TRY(async_check_opcodes(p.ops, "async-collective-creator", err));
  async_edit e;
  TRY(async_edit_begin(&e, m, err));
  int status = async_each(&e, async_create_in, &p);
  async_edit_end(&e);
  return status;
}

/* --- convert-async-pairs --- */

/* Whether the generic chain does nothing but one op of a kind that has its own pair. */
static bool async_is_pairable(const ir_op *done) {
  const ir_op *start = ir_async_start_of(done);
  const ir_op *root = start && start->n_called == 1 ? ir_root(start->called[0]) : NULL;
  return root && ir_opcode_pair_start(root->opcode) && async_may_pair(root) &&
         start->called[0]->n_ops == root->n_operands + 1;
}

/* By way of the plain op. */
static int async_to_pair(async_edit *e, ir_op *done) {
  assert(done->opcode == IR_OP_ASYNC_DONE);
  bool found = false;
  if (!async_is_pairable(done)) return 0;
  ir_op *op = async_unwrap(e, done, &found);
  return op && async_pair_op(e, op) ? 0 : async_oom(e);
}

/* send and recv have no plain op and stay. */
static int async_to_generic(async_edit *e, ir_op *done) {
  assert(done->opcode != IR_OP_ASYNC_DONE);
  bool found = false;
  async_how how = {.thread = done->parent->execution_thread};
  ir_op *op = async_unwrap(e, done, &found);
  if (!found) return 0;
  how.alias_first = op && op->opcode == IR_OP_ALL_REDUCE && op->n_operands == 1;
  return op && async_wrap_op(e, op, &how) ? 0 : async_oom(e);
}

/* Only those of the other kind. */
static int async_convert_in(async_edit *e, ir_computation *c, void *ctx) {
  const bool *generic = ctx;
  IR_FOR_OPS_SAFE(op, c) {
    if (op->id >= e->facts.n_ids || !ir_opcode_has(op->opcode, IR_ASYNC_DONE)) continue;
    bool is_generic = op->opcode == IR_OP_ASYNC_DONE;
    if (is_generic == *generic) continue;
    TRY(*generic ? async_to_generic(e, op) : async_to_pair(e, op));
  }
  return 0;
}

int async_convert_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  async_edit e;
  bool generic = opt_get(args, "generic") != 0;
  TRY(async_edit_begin(&e, m, err));
  int status = async_each(&e, async_convert_in, &generic);
  async_edit_end(&e);
  return status;
}

/* convert-async-to-sync: chains that nothing runs beside become the ops themselves, which cost less.
 * Requires: nothing; without a schedule nothing is known to run beside anything, and nothing changes unless all is
 * asked for. Preserves: control edges, the schedule. A collective's start is remembered by name, as XLA does. */

typedef struct sync_pass {
  bool all;
  uint32_t *before; /* by op id: ops that take time up to and with this one, in its computation's order */
} sync_pass;

/* Links of other chains take no time themselves. */
static bool async_takes_time(const ir_op *op) {
  const uint32_t chains = IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE;
  return !async_is_free(op) && !(ir_opcode_info(op->opcode)->traits & chains);
}

/* Two links with the same count have nothing between them that takes time. */
static void async_count_before(sync_pass *p, const ir_computation *c) {
  uint32_t n = 0;
  IR_FOR_OPS(op, c) p->before[op->id] = n += async_takes_time(op);
}

/* frontend_attributes with async_collective_name="start", sorted. */
static bool async_name_start(async_edit *e, ir_op *op, const base_istr *start) {
  static const char key_text[] = "async_collective_name";
  const ir_attr *old = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  uint32_t n = old ? old->v.dict->n : 0, at = 0;
  ir_dict *dict = base_arena_zalloc(&e->m->arena, sizeof *dict + (n + 1) * sizeof(ir_dict_entry));
  const base_istr *key = ir_intern(e->m, key_text, sizeof key_text - 1);
  if (!dict || !key) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (old->v.dict->v[i].key == key) continue;
    if (at == i && strcmp(old->v.dict->v[i].key->s, key_text) > 0)
      dict->v[at++] = (ir_dict_entry){.key = key, .value = start}, key = NULL;
    dict->v[at++] = old->v.dict->v[i];
  }
  if (key) dict->v[at++] = (ir_dict_entry){.key = key, .value = start};
  dict->n = at;
  ir_attr a = ir_attr_make(IR_ATTR_FRONTEND_ATTRIBUTES);
  a.v.dict = dict;
  return ir_attr_set(op, a);
}

/* The start's name is kept for profiles. */
static int async_to_sync(async_edit *e, ir_op *done) {
  bool found = false;
  const ir_op *start = async_start_of_done(done);
  ir_op *op = async_unwrap(e, done, &found);
  if (!found) return 0;
  if (!op) return async_oom(e);
  bool named = ir_opcode_has(op->opcode, IR_COLLECTIVE);
  return !named || async_name_start(e, op, start->name) ? 0 : async_oom(e);
}

/* `before` is of the list as it was; what conversion adds stands at dones already visited. */
static int async_sync_in(async_edit *e, ir_computation *c, void *ctx) {
  sync_pass *p = ctx;
  if (!p->all) async_count_before(p, c);
  IR_FOR_OPS_SAFE(op, c) {
    if (op->id >= e->facts.n_ids || !ir_opcode_has(op->opcode, IR_ASYNC_DONE)) continue;
    const ir_op *start = async_start_of_done(op);
    if (start && (p->all || p->before[start->id] == p->before[op->id])) TRY(async_to_sync(e, op));
  }
  return 0;
}

int async_to_sync_pass(ir_module *m, const opt_args *args, xlac_error *err) {
  sync_pass p = {.all = opt_get(args, "all") != 0};
  if (!m->config.is_scheduled && !p.all) return 0;
  async_edit e;
  TRY(async_edit_begin(&e, m, err));
  p.before = base_arena_zalloc(&e.facts.arena, ((size_t)m->n_ids + 1) * sizeof *p.before);
  int status = p.before ? async_each(&e, async_sync_in, &p) : async_oom(&e);
  async_edit_end(&e);
  return status;
}
