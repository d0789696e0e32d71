/* Producers join the kernel of the only root that uses them. Users come before producers here, so that each op is decided
 * once, from what its users have become. */
#include "fusion.h"

#include "../interp/loops.h"

enum {
  FUSION_MAX_OPS = 96,   /* in one kernel: registers are many then, and cache lines few */
  FUSION_MAX_CHEAP = 12, /* ops behind a cheap one, itself included */
  FUSION_MAX_RANK = 12
};

bool fusion_moves_index(const ir_op *op) {
  return op->opcode == IR_OP_BROADCAST || op->opcode == IR_OP_SLICE || op->opcode == IR_OP_REVERSE ||
         op->opcode == IR_OP_TRANSPOSE;
}

static bool fusion_is_static(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && t->rank <= FUSION_MAX_RANK && !t->quant;
}

static bool fusion_is_scalar_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT && op->u.literal && !op->u.literal->elided && op->type->count == 1;
}

bool fusion_is_candidate(const ir_op *op) {
  interp_loop l;
  if (!fusion_is_static(op->type) || op->n_control_preds || op->opcode == IR_OP_COPY) return false;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!fusion_is_static(ir_operand_type(op, i))) return false;
  if (fusion_moves_index(op) || op->opcode == IR_OP_IOTA || fusion_is_scalar_constant(op)) return true;
  return !ir_opcode_has(op->opcode, IR_NONDETERMINISTIC) && interp_loop_of(op, &l);
}

bool fusion_make(fusion_plan *f, const ir_module *m, base_arena *arena) {
  size_t n = (size_t)m->n_ids + 1;
  f->role = base_arena_zalloc(arena, n);
  f->needed = base_arena_zalloc(arena, n * sizeof *f->needed);
  f->root = base_arena_zalloc(arena, n * sizeof *f->root);
  f->why = base_arena_zalloc(arena, n * sizeof *f->why);
  f->size = base_arena_zalloc(arena, n * sizeof *f->size);
  return f->role && f->needed && f->root && f->why && f->size;
}

static bool fusion_expands(const ir_op *op) {
  return op->opcode == IR_OP_BROADCAST && op->type->count != ir_operand_type(op, 0)->count;
}

/* Cheap: nothing is computed, and what is behind it is short. `weight` counts what is behind. */
static bool fusion_is_cheap(const ir_op *op, uint32_t *weight) {
  *weight = 1;
  while (op->opcode == IR_OP_BROADCAST && *weight < FUSION_MAX_CHEAP) {
    op = ir_operand(op, 0);
    ++*weight;
  }
  return *weight > 1 ? *weight < FUSION_MAX_CHEAP : op->opcode == IR_OP_IOTA || fusion_is_scalar_constant(op);
}

/* What the users of an op say: the root that all of them belong to, or why the op must be in memory. */
typedef struct fusion_users {
  ir_op *root;
  const char *why;
  bool outside; /* somebody who is no kernel reads it */
  uint32_t n;
} fusion_users;

static const char *fusion_user_objects(const fusion_plan *f, const ir_op *user, uint32_t n_users) {
  uint8_t role = f->role[user->id];
  if (role == FUSION_NO) return "an op that is no kernel reads it";
  if (fusion_expands(user)) return "a broadcast would compute it many times";
  if (fusion_moves_index(user) && n_users > 1) return "it is read at several indexes";
  if (role == FUSION_CHEAP) return "several kernels read it";
  return NULL;
}

static void fusion_look_at_users(const fusion_plan *f, const ir_op *op, fusion_users *u) {
  uint32_t uses = 0;
  IR_FOR_USES(use, op) uses++;
  IR_FOR_USES(use, op) {
    const ir_op *user = use->user;
    u->n++;
    u->outside = u->outside || f->role[user->id] == FUSION_NO;
    if (u->why) continue;
    u->why = fusion_user_objects(f, user, uses);
    ir_op *root = f->root[user->id];
    if (!u->why && u->root && u->root != root) u->why = "several kernels read it";
    u->root = root;
  }
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) u->why = "it is a result", u->outside = true;
}

static void fusion_decide_op(fusion_plan *f, ir_op *op) {
  fusion_users u = {NULL, NULL, false, 0};
  uint32_t weight = 0;
  if (!fusion_is_candidate(op)) return;
  fusion_look_at_users(f, op, &u);
  f->root[op->id] = op;
  if (fusion_is_cheap(op, &weight)) {
    f->role[op->id] = FUSION_CHEAP;
    f->needed[op->id] = u.outside;
    f->why[op->id] = u.why;
    return;
  }
  if (!u.why && u.root && f->size[u.root->id] >= FUSION_MAX_OPS) u.why = "the kernel is full";
  if (!u.why && !u.root) u.why = "nobody reads it";
  f->role[op->id] = u.why ? FUSION_ROOT : FUSION_INNER;
  f->why[op->id] = u.why;
  if (!u.why) f->root[op->id] = u.root;
  f->size[f->root[op->id]->id]++;
}

void fusion_decide(fusion_plan *f, const ir_computation *c, uint32_t n, ir_op *const *order) {
  assert(n <= c->n_ops);
  for (uint32_t i = 0; i < n; i++) {
    f->role[order[i]->id] = FUSION_NO;
    f->size[order[i]->id] = 0;
    f->needed[order[i]->id] = false;
    f->root[order[i]->id] = NULL;
  }
  for (uint32_t i = n; i-- > 0;) fusion_decide_op(f, order[i]);
}
