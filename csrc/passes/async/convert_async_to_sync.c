/* convert-async-to-sync: chains that nothing runs beside become the ops themselves, which cost less.
 * Requires: nothing; without a schedule nothing is known to run beside anything, and nothing changes unless all is
 * asked for. Preserves: control edges, the schedule. A collective's start is remembered by name, as XLA does. */
#include "async.h"

typedef struct sync_pass {
  bool all;
  uint32_t *before; /* by op id: ops that take time up to and with this one, in its computation's order */
} sync_pass;

/* Links of other chains take no time themselves. */
static bool async_takes_time(const ir_op *op) {
  const uint32_t chains = IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE;
  return !async_is_free(op) && !(ir_opcode_info(op->opcode)->traits & chains);
}

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

static int async_to_sync(async_edit *e, ir_op *done) {
  bool found = false;
  const ir_op *start = async_start_of_done(done);
  ir_op *op = async_unwrap(e, done, &found);
  if (!found) return 0;
  if (!op) return async_oom(e);
  bool named = ir_opcode_has(op->opcode, IR_COLLECTIVE);
  return !named || async_name_start(e, op, start->name) ? 0 : async_oom(e);
}

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
