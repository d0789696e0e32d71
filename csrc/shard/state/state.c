/* Making the table of values. Uses are listed as MLIR keeps them: the last made first, a block's return before them.
 * The order is part of the result: it decides which op propagation looks at next, and with that who wins where
 * shardings are in conflict. Tables are filled in two passes, counting and then writing, so that each is one array. */
#include "state.h"

/* Shardy's ShardableDataFlowOpInterface: ops whose results and region arguments have one sharding each along an edge.
 * A while's value i is one sharding in four places: the operand, the condition's and the body's argument, and the
 * result; what the body returns is a source of the same edge. */
bool shard_is_flow(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_WHILE:
    case IR_OP_CONDITIONAL:
    case IR_OP_OPT_BARRIER:
    case IR_OP_SDY_NAMED_COMPUTATION:
    case IR_OP_SDY_MANUAL_COMPUTATION:
      return true;
    default:
      return false;
  }
}

bool shard_has_one_use(const shard_state *s, uint32_t slot) {
  assert(slot < s->n_values);
  uint32_t n = s->return_first[slot + 1] - s->return_first[slot];
  for (uint32_t i = s->use_first[slot]; i < s->use_first[slot + 1] && n < 2; i++)
    n += s->uses[i]->op == s->slots[slot].op;
  return n == 1;
}

/* --- counting and filling --- */

/* Numbers the slots. Declarations get none for their results: they have no body that could return anything. */
static void state_number(shard_state *s) {
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c) {
      s->first_slot[op->id] = s->n_slots;
      s->n_slots += op->n_results;
    }
  }
  s->n_values = s->n_slots;
  IR_FOR_COMPUTATIONS(c, s->m) {
    s->first_result[c->id] = SHARD_NO_SLOT;
    if (c->kind != IR_FUNCTION || c->declaration) continue;
    s->first_result[c->id] = s->n_slots;
    s->n_slots += c->n_results;
  }
}

/* The shardings as the module has them. Each value is its own home until state_edges has seen the edges. */
static void state_read(shard_state *s) {
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_results; i++) {
        uint32_t slot = shard_slot_of(s, op, i);
        s->slots[slot] = (shard_slot){.now = sdy_get((ir_value){op, i}), .home = slot, .op = op, .index = i};
      }
    }
    for (uint32_t i = 0; s->first_result[c->id] != SHARD_NO_SLOT && i < c->n_results; i++) {
      uint32_t slot = s->first_result[c->id] + i;
      s->slots[slot] = (shard_slot){.now = sdy_get_result(c, i), .home = slot, .index = i};
    }
  }
}

/* Counts uses and returns of each value, then turns the counts into the offsets at which their lists begin. */
static void state_uses(shard_state *s) {
  uint32_t n = 0, k = 0;
  for (uint32_t slot = 0; slot < s->n_values; slot++) s->use_first[slot] = s->return_first[slot] = 0;
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c) IR_FOR_USES(use, op) s->use_first[shard_slot_of(s, op, use->index)]++;
    for (uint32_t i = 0; i < c->n_results; i++)
      if (c->results[i].op) s->return_first[shard_slot_of(s, c->results[i].op, c->results[i].index)]++;
  }
  for (uint32_t slot = 0; slot < s->n_values; slot++) {
    uint32_t uses = s->use_first[slot], returns = s->return_first[slot];
    s->use_first[slot] = n;
    s->return_first[slot] = k;
    n += uses;
    k += returns;
  }
  s->use_first[s->n_values] = n;
  s->return_first[s->n_values] = k;
}

/* The second pass moves the beginnings on to the ends, which are the next ones' beginnings: hence the shift back. */
static void state_fill_uses(shard_state *s) {
  IR_FOR_COMPUTATIONS(c, s->m) {
    IR_FOR_OPS(op, c) IR_FOR_USES(use, op) s->uses[s->use_first[shard_slot_of(s, op, use->index)]++] = use;
    for (uint32_t i = 0; i < c->n_results; i++) {
      if (!c->results[i].op) continue;
      uint32_t slot = shard_slot_of(s, c->results[i].op, c->results[i].index);
      s->returns[s->return_first[slot]++] = (shard_return){c, i};
    }
  }
  for (uint32_t slot = s->n_values; slot > 0; slot--) {
    s->use_first[slot] = s->use_first[slot - 1];
    s->return_first[slot] = s->return_first[slot - 1];
  }
  s->use_first[0] = s->return_first[0] = 0;
}

/* --- edges --- */

/* The edge that reads a result or argument of an op with data flow, if that is all that reads it. */
static ir_op *state_edge_user(const shard_state *s, uint32_t slot) {
  if (s->return_first[slot + 1] != s->return_first[slot] || s->use_first[slot + 1] - s->use_first[slot] != 1)
    return NULL;
  ir_op *user = s->uses[s->use_first[slot]]->user;
  return user->opcode == IR_OP_SDY_DATA_FLOW_EDGE ? user : NULL;
}

/* Named and manual computations own edges for their arguments and for their results, and these are different edges.
 * The arguments of a while's regions are targets of the edge of the result of the same number. A case has no
 * arguments. */
uint32_t shard_owner_of_param(const shard_state *s, const ir_op *param) {
  assert(param->opcode == IR_OP_PARAMETER);
  const ir_op *owner = param->parent->owner;
  if (!owner) return SHARD_NO_SLOT;
  uint64_t i = (uint64_t)param->u.number;
  bool computation = owner->opcode == IR_OP_SDY_NAMED_COMPUTATION || owner->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  if (computation) return shard_slot_of(s, param, 0);
  if (owner->opcode == IR_OP_WHILE && i < owner->n_results) return shard_slot_of(s, owner, (uint32_t)i);
  return SHARD_NO_SLOT;
}

/* A function's argument and an ordinary result hold their own sharding. What belongs to an edge holds it in the edge
 * op, or, where the pass that makes edges has not run, in the owner's result (or argument) itself. */
static uint32_t state_home(const shard_state *s, uint32_t slot) {
  const ir_op *op = s->slots[slot].op;
  uint32_t owner = slot;
  if (op->opcode == IR_OP_PARAMETER) {
    if (op->parent->kind == IR_FUNCTION) return slot;
    owner = shard_owner_of_param(s, op);
    if (owner == SHARD_NO_SLOT) return owner;
  } else if (!shard_is_flow(op)) {
    return slot;
  }
  const ir_op *edge = shard_edge_of(s, owner);
  return edge ? shard_slot_of(s, edge, 0) : owner;
}

/* First all edges, then the homes, which depend on them: an edge may come after the values it stands for. */
static bool state_edges(shard_state *s) {
  for (uint32_t slot = 0; slot < s->n_values; slot++) {
    const ir_op *op = s->slots[slot].op;
    bool param = op->opcode == IR_OP_PARAMETER && op->parent->owner && shard_owner_of_param(s, op) == slot;
    const ir_op *edge = param || shard_is_flow(op) ? state_edge_user(s, slot) : NULL;
    if (edge && !base_map_set(&s->edges, slot, base_key(edge))) return false;
  }
  for (uint32_t slot = 0; slot < s->n_values; slot++) s->slots[slot].home = state_home(s, slot);
  return true;
}

/* Arguments of named and manual computations keep their shardings in a list of the op. */
static int state_arguments(shard_state *s, xlac_error *err) {
  shard_pool pool;
  shard_pool_init(&pool, s->m->alloc);
  IR_FOR_COMPUTATIONS(c, s->m) {
    const ir_op *owner = c->owner;
    if (!owner || (owner->opcode != IR_OP_SDY_NAMED_COMPUTATION && owner->opcode != IR_OP_SDY_MANUAL_COMPUTATION))
      continue;
    const sdy_shardings *list = sdy_of(ir_mattr_of(owner, "in_shardings"), SDY_SHARDINGS);
    const sdy_names *manual = sdy_of(ir_mattr_of(owner, "manual_axes"), SDY_MANUAL_AXES);
    for (uint32_t i = 0; list && i < list->n && i < c->n_params && !pool.failed; i++) {
      const sdy_sharding *in = manual ? shard_manual_inside(&pool, list->v[i], manual) : list->v[i];
      assert(c->params[i]->opcode == IR_OP_PARAMETER);
      const sdy_sharding *kept = in ? sdy_sharding_make(s->m, in) : NULL;
      if (!kept) pool.failed = true;
      s->slots[shard_slot_of(s, c->params[i], 0)].now = kept;
    }
  }
  bool failed = pool.failed;
  shard_pool_free(&pool);
  return failed ? base_oom(err, "propagation") : 0;
}

/* --- calls --- */

/* Functions by name, and the calls of each. Modules without calls, which most are, pay for neither table. */
static int state_calls(shard_state *s, xlac_error *err) {
  base_map_init(&s->functions, s->m->alloc);
  bool any = false;
  IR_FOR_COMPUTATIONS(c, s->m) {
    if (c->kind == IR_FUNCTION && !base_map_set(&s->functions, base_key(c->name), base_key(c)))
      return base_oom(err, "propagation");
    IR_FOR_OPS(op, c) any = any || op->opcode == IR_OP_CALL;
  }
  if (!any) return 0;
  for (int fill = 0; fill < 2; fill++) {
    IR_FOR_COMPUTATIONS(c, s->m) {
      IR_FOR_OPS(op, c) {
        ir_computation *callee = op->opcode == IR_OP_CALL ? shard_callee(s, op) : NULL;
        if (!callee) continue;
        shard_callers *callers = &s->callers[callee->id];
        if (fill) callers->calls[callers->n] = op;
        callers->n++;
      }
    }
    for (uint32_t i = 0; i < s->m->n_computation_ids && !fill; i++) {
      if (s->callers[i].n == 0) continue;
      s->callers[i].calls = BASE_ARRAY(&s->arena, ir_op *, s->callers[i].n);
      if (!s->callers[i].calls) return base_oom(err, "propagation");
      s->callers[i].n = 0;
    }
  }
  return 0;
}

/* Names are interned by module, so a pointer comparison nearly always answers; a symbol whose string came from
 * elsewhere is looked up by its text. */
ir_computation *shard_callee(const shard_state *s, const ir_op *call) {
  const ir_mattr *a = ir_mattr_of(call, "callee");
  const base_istr *name = NULL;
  if (a && a->kind == IR_M_SYMBOL && a->v.list->n == 1) name = a->v.list->v[0]->str;
  if (!name) return NULL;
  ir_computation *c = base_map_ptr(&s->functions, name);
  if (c) return c;
  const base_istr *own = base_intern_find(&s->m->strings, name->s, name->n);
  return own ? base_map_ptr(&s->functions, own) : NULL;
}

/* On failure the caller frees the table, which it may since all of it is zero at first. */
int shard_state_make(shard_state *s, ir_module *m, xlac_error *err) {
  memset(s, 0, sizeof *s);
  s->m = m;
  s->tick = 1;
  s->n_ids = m->n_ids;
  base_arena_init(&s->arena, m->alloc);
  base_arena_foresee(&s->arena, 1); /* little besides the tables, which are as large as they are */
  base_map_init(&s->edges, m->alloc);
  base_map_init(&s->kept, m->alloc);
  base_map_init(&s->lists, m->alloc);
  s->first_slot = BASE_ARRAY(&s->arena, uint32_t, (size_t)m->n_ids + 1);
  s->first_result = BASE_ARRAY(&s->arena, uint32_t, (size_t)m->n_computation_ids + 1);
  s->callers = base_arena_zalloc(&s->arena, ((size_t)m->n_computation_ids + 1) * sizeof *s->callers);
  if (!s->first_slot || !s->first_result || !s->callers) return base_oom(err, "propagation");
  state_number(s);
  size_t n = (size_t)s->n_slots + 1;
  s->slots = base_arena_zalloc(&s->arena, n * sizeof *s->slots);
  s->use_first = BASE_ARRAY(&s->arena, uint32_t, n);
  s->return_first = BASE_ARRAY(&s->arena, uint32_t, n);
  if (!s->slots || !s->use_first || !s->return_first) return base_oom(err, "propagation");
  state_read(s);
  state_uses(s);
  s->uses = BASE_ARRAY(&s->arena, const ir_use *, (size_t)s->use_first[s->n_values] + 1);
  s->returns = BASE_ARRAY(&s->arena, shard_return, (size_t)s->return_first[s->n_values] + 1);
  if (!s->uses || !s->returns) return base_oom(err, "propagation");
  state_fill_uses(s);
  if (!state_edges(s)) return base_oom(err, "propagation");
  TRY(state_arguments(s, err));
  TRY(state_calls(s, err));
  return shard_state_groups(s, err);
}

void shard_state_free(shard_state *s) {
  base_map_free(&s->functions);
  base_map_free(&s->edges);
  base_map_free(&s->kept);
  base_map_free(&s->lists);
  BASE_VEC_FREE(s->m->alloc, &s->meshes);
  BASE_VEC_FREE(s->m->alloc, &s->changes);
  base_arena_free(&s->arena);
}

/* Shardings that values have had, in the module: equal ones once. Programs have few different ones, and what comes
 * after propagation looks at each of them once. */

/* Hashing of shardings: multiplication by 2^64 over the golden ratio, and a shift that brings high bits down. */
static uint64_t keep_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ (h >> 29);
}

/* Names are interned, so their addresses stand for them. */
static uint64_t keep_axes(uint64_t h, sdy_axes axes) {
  h = keep_mix(h, axes.n);
  for (uint32_t i = 0; i < axes.n; i++) {
    h = keep_mix(h, base_key(axes.v[i].name));
    if (axes.v[i].size) h = keep_mix(h, (uint64_t)axes.v[i].pre * 8191 + (uint64_t)axes.v[i].size);
  }
  return h;
}

/* Everything that sdy_sharding_equal compares must be in here or be ignored: equal shardings have equal hashes. */
static uint64_t keep_hash(const sdy_sharding *s) {
  uint64_t h = keep_mix(s->n_dims, s->mesh_name ? base_key(s->mesh_name) : base_key(s->mesh));
  for (uint32_t d = 0; d < s->n_dims; d++) {
    h = keep_axes(h, s->dims[d].axes);
    h = keep_mix(h, (uint64_t)s->dims[d].open + 2 * (uint64_t)(s->dims[d].priority + 1));
  }
  return keep_axes(keep_axes(h, s->replicated), s->unreduced);
}

const sdy_sharding *shard_state_keep(shard_state *s, const sdy_sharding *to) {
  assert(to != NULL);
  uint64_t hash = keep_hash(to);
  uint64_t found = 0;
  const sdy_sharding *known = base_map_get(&s->kept, hash, &found) ? (const sdy_sharding *)(uintptr_t)found : NULL;
  if (known && sdy_sharding_equal(known, to)) return known;
  /* A collision of hashes replaces the entry: then a later equal sharding is copied again, which is only a waste. */
  known = sdy_sharding_make(s->m, to);
  return known && base_map_set(&s->kept, hash, base_key(known)) ? known : NULL;
}

/* Only plain ops with one result can share the list attribute. Arguments keep a sharding and not a list, and ops of
 * the dialect that have a sharding attribute of their own (sdy_own_key) are written by sdy_set. */
bool shard_state_write(shard_state *s, ir_value v, const sdy_sharding *to) {
  if (v.op->opcode == IR_OP_PARAMETER || v.op->n_results != 1 || sdy_own_key(v.op) || sdy_is_op(v.op))
    return sdy_set(v, to);
  const ir_mattr *list = base_map_ptr(&s->lists, to);
  if (!list) {
    sdy_shardings *one = BASE_NEW(&s->m->arena, sdy_shardings);
    const sdy_sharding **v = base_arena_memdup(&s->m->arena, &to, sizeof(const sdy_sharding *));
    if (!one || !v) return false;
    *one = (sdy_shardings){1, v};
    list = sdy_attr(s->m, SDY_SHARDINGS, one);
    if (!list || !base_map_set(&s->lists, base_key(to), base_key(list))) return false;
  }
  return ir_m_set(v.op, "sdy.sharding", list);
}
