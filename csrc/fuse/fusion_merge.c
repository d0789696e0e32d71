/* Kernels that become one: they iterate over the same elements, and one reads what the other reads or computes, so that
 * one pass through memory does for both. Sums are known when a pass is over, so nobody may need one within it. A merged
 * kernel stands where the first of its parts stood, if all it reads is there by then, or where the last stood, if
 * nobody reads it earlier; nothing else moves, and no step that is not a kernel may lie between the two, lest values
 * live longer for it. Each kernel is compared with the last few alone, so all is linear. */
#include "../kernel/kernel.h"
#include "fusion_inside.h"

/* Limits; of ops in fusion_inside.h. */
enum {
  FUSE_LEAST = 2048,               /* iterations: fewer are not work for memory */
  FUSE_STORES = KERNEL_MAX_STORES, /* of a kernel */
  FUSE_READS = 12,
  FUSE_NEAR = 6 /* kernels to compare with */
};

/* A kernel, or several that have become one: one pass over memory. */
typedef struct fuse_pass {
  ir_op *first;
  uint32_t n_stores, n_ops, n_reads;
  bool reduces, other_reads; /* other_reads: more than there is room for */
  const ir_type *space;      /* iterated over */
  const ir_ints *dims;       /* reduced; NULL: none */
  const ir_op *reads[FUSE_READS];
} fuse_pass;

/* The state of one fusion_merge. `near` has the last few kernels, the newest first. */
typedef struct fuse_run {
  fusion_plan *f;
  uint32_t n;
  ir_op *const *order;
  uint32_t *at;    /* by op id: its place in the order, plus one */
  uint32_t *steps; /* by place: steps before it that are not kernels */
  fuse_pass *pass; /* by place of a root, of those worth it */
  fuse_pass *near[FUSE_NEAR];
  uint32_t n_near;
} fuse_run;

/* Ops that become no step: they only name a value. */
static bool fuse_is_name(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_RESHAPE:
    case IR_OP_OPT_BARRIER:
      return true;
    default:
      return false;
  }
}

/* The first root of the kernel that computes op, or NULL. */
static ir_op *fuse_kernel_of(const fuse_run *x, const ir_op *op) {
  uint8_t role = x->f->of[op->id].role;
  return role == FUSION_ROOT || role == FUSION_INNER ? x->f->of[x->f->of[op->id].root->id].merged_first : NULL;
}

/* Where in the order the value of op is computed. */
static uint32_t fuse_place(const fuse_run *x, const ir_op *op) {
  const ir_op *first = fuse_kernel_of(x, op);
  return x->at[first ? x->f->of[first->id].anchor->id : op->id];
}

/* Whether somebody reads op before or at `place` who is in neither of the two kernels. Depth is bounded by that of
 * cheap ops. */
static bool fuse_is_read_by(const fuse_run *x, const ir_op *op, uint32_t place, const ir_op *a, const ir_op *b) {
  IR_FOR_USES(use, op) {
    const ir_op *user = use->user, *kernel = fuse_kernel_of(x, user);
    if (!x->at[user->id]) continue;
    if (kernel && (kernel == a || kernel == b)) continue;
    if (x->f->of[user->id].role == FUSION_CHEAP) {
      if (x->f->of[user->id].needed && x->at[user->id] <= place) return true;
      if (fuse_is_read_by(x, user, place, a, b)) return true;
      continue;
    }
    if (fuse_place(x, user) <= place) return true;
  }
  return false;
}

/* --- what kernels read --- */

/* Each once; what does not fit is noted as `other_reads`, which forbids to move the kernel up. */
static void fuse_add_read(fuse_pass *p, const ir_op *op) {
  for (uint32_t i = 0; i < p->n_reads; i++)
    if (p->reads[i] == op) return;
  if (p->n_reads == FUSE_READS)
    p->other_reads = true;
  else
    p->reads[p->n_reads++] = op;
}

/* Behind cheap ops is what they are computed from. Depth is bounded by theirs. */
static void fuse_add_source(const fuse_run *x, fuse_pass *p, const ir_op *op, const ir_op *root) {
  uint8_t role = x->f->of[op->id].role;
  if (role == FUSION_CHEAP)
    for (uint32_t k = 0; k < op->n_operands; k++) fuse_add_source(x, p, ir_operand(op, k), root);
  else if (!(role == FUSION_INNER && x->f->of[op->id].root == root))
    fuse_add_read(p, op);
}

/* Adds what op reads to the pass of its root. */
static void fuse_look_at(const fuse_run *x, const ir_op *op) {
  if (!fuse_kernel_of(x, op)) return;
  const ir_op *root = x->f->of[op->id].root;
  fuse_pass *p = &x->pass[x->at[root->id] - 1];
  if (!p->first) return;
  for (uint32_t k = 0; k < op->n_operands; k++) fuse_add_source(x, p, ir_operand(op, k), root);
  /* their arrays may be read where they were put for that alone */
  if (op->opcode == IR_OP_DYNAMIC_SLICE || op->opcode == IR_OP_GATHER) p->other_reads = true;
}

/* first NULL: the kernel is not worth merging. */
static fuse_pass fuse_pass_of(const fuse_run *x, ir_op *root) {
  assert(x->f->of[root->id].role == FUSION_ROOT);
  fuse_pass p = {.n_stores = 1, .n_ops = x->f->of[root->id].size, .space = root->type};
  if (fusion_reduction(root)) {
    p.reduces = true;
    p.space = ir_operand_type(root, 0);
    p.dims = ir_get_ints(root, IR_ATTR_DIMENSIONS);
  }
  bool moves = fusion_moves_index(root) || root->opcode == IR_OP_IOTA;
  moves = moves || x->f->of[root->id].scans;
  p.first = moves || p.space->count < FUSE_LEAST ? NULL : root;
  return p;
}

/* --- whether two can be one --- */

/* The same iterations, and the same reduced dimensions where both reduce. */
static bool fuse_same_space(const fuse_pass *a, const fuse_pass *b) {
  if (a->space->rank != b->space->rank) return false;
  for (uint32_t d = 0; d < a->space->rank; d++)
    if (a->space->dims[d] != b->space->dims[d]) return false;
  if (!a->dims || !b->dims) return true;
  bool same = a->dims->n == b->dims->n;
  for (uint32_t i = 0; same && i < a->dims->n; i++) same = a->dims->v[i] == b->dims->v[i];
  return same;
}

/* A kernel that stores every element, too, goes through them in their order. */
static bool fuse_is_in_order(const fuse_run *x, const fuse_pass *p) {
  for (const ir_op *op = p->first; op; op = x->f->of[op->id].merged_next)
    if (fusion_reduction(op) && !fusion_reduces_in_order(op)) return false;
  return true;
}

/* Whether some store has an element for every iteration. */
static bool fuse_stores_elements(const fuse_run *x, const fuse_pass *p) {
  for (const ir_op *op = p->first; op; op = x->f->of[op->id].merged_next)
    if (!fusion_reduction(op)) return true;
  return false;
}

/* Whether the kernel of `root` reads `from` only where it iterates: by elementwise ops that nothing moves, some of
 * which other kernels may compute, too. Depth is bounded by that of cheap ops. */
static bool fuse_reads_in_place(const fuse_run *x, const ir_op *from, const ir_op *root) {
  IR_FOR_USES(use, from) {
    const ir_op *op = use->user;
    if (x->f->of[op->id].role == FUSION_CHEAP) {
      if (fusion_moves_index(op) || op->type->count != from->type->count || !fuse_reads_in_place(x, op, root))
        return false;
      continue;
    }
    if (fuse_kernel_of(x, op) != root) continue;
    for (uint32_t depth = 0; op != root; depth++) { /* each inner op has one reader, or several of one kind */
      if (fusion_moves_index(op) || op->type->count != from->type->count || depth == FUSION_MAX_CODE) return false;
      op = op->uses ? op->uses->user : root;
    }
    if (fusion_moves_index(root)) return false;
  }
  return true;
}

/* op is one of the roots that the kernel stores. */
static bool fuse_has(const fuse_run *x, const fuse_pass *p, const ir_op *op) {
  return x->f->of[op->id].role == FUSION_ROOT && x->f->of[op->id].merged_first == p->first;
}

static uint32_t fuse_most_ops(const fuse_run *x) {
  return x->f->model.facts.native ? FUSION_MAX_CODE : FUSION_MAX_OPS;
}

/* Why b, the later one, can't be in one kernel with a although it reads what a reads or computes: NULL where it can,
 * with *why saying what they share; both NULL where they share nothing. */
static const char *fuse_objects(const fuse_run *x, const fuse_pass *a, const fuse_pass *b, const char **why) {
  assert(a != b && a->first && b->first);
  bool values = false, memory = false;
  *why = NULL;
  for (uint32_t i = 0; i < b->n_reads; i++) {
    const ir_op *read = b->reads[i];
    if (fuse_has(x, a, read)) {
      values = true;
      if (fusion_reduction(read)) return "it reads what the other sums up";
      if (!fuse_reads_in_place(x, read, b->first)) return "it reads the other's value at other indexes";
    }
    for (uint32_t k = 0; k < a->n_reads && !memory; k++)
      memory = a->reads[k] == read && read->type->count >= FUSE_LEAST;
  }
  if (!values && !memory) return NULL;
  *why = values ? "it reads the other's value" : "both read the same memory";
  if (a->n_stores == FUSE_STORES || a->n_ops + b->n_ops > fuse_most_ops(x)) return "the kernel is full";
  bool elements = fuse_stores_elements(x, a) || !b->reduces;
  if (elements && !(fuse_is_in_order(x, a) && fuse_is_in_order(x, b)))
    return "the sum goes through its operand in another order";
  uint32_t from = fuse_place(x, a->first), to = fuse_place(x, b->first);
  if (x->f->waits && x->f->waits[a->first->id] != x->f->waits[b->first->id])
    return "an async operation is waited for in between";
  return x->steps[from] != x->steps[to - 1] ? "a step that is not a kernel stands in between" : NULL;
}

/* b can stand where a does. */
static bool fuse_can_rise(const fuse_run *x, const fuse_pass *a, const fuse_pass *b) {
  uint32_t place = fuse_place(x, a->first);
  if (b->other_reads) return false;
  for (uint32_t i = 0; i < b->n_reads; i++)
    if (!fuse_has(x, a, b->reads[i]) && fuse_place(x, b->reads[i]) >= place) return false;
  return true;
}

/* a can stand where b does. */
static bool fuse_can_sink(const fuse_run *x, const fuse_pass *a, const fuse_pass *b) {
  uint32_t place = fuse_place(x, b->first);
  for (const ir_op *op = a->first; op; op = x->f->of[op->id].merged_next)
    if (fuse_is_read_by(x, op, place, a->first, b->first)) return false;
  return true;
}

/* Whether a root is read by its own kernel alone, which then needs no memory for it. The kernel stands where its anchor
 * does, which stays. */
static bool fuse_stays_inside(const fuse_run *x, const ir_op *op) {
  const ir_op *first = x->f->of[op->id].merged_first;
  if (fusion_reduction(op) || op == x->f->of[first->id].anchor || !op->uses) return false;
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return false;
  IR_FOR_USES(use, op)
  if (fuse_kernel_of(x, use->user) != first) return false;
  return true;
}

/* b's root becomes the last of a's list; a's pass then stands for both. */
static void fuse_join(fuse_run *x, fuse_pass *a, const fuse_pass *b, bool rises, const char *why) {
  assert(!x->f->of[b->first->id].merged_next && a->n_stores < FUSE_STORES);
  fusion_plan *f = x->f;
  ir_op *last = a->first, *turn = f->of[(rises ? a->first : b->first)->id].anchor;
  while (f->of[last->id].merged_next) last = f->of[last->id].merged_next;
  f->of[last->id].merged_next = b->first;
  f->of[b->first->id].merged_first = a->first;
  f->of[a->first->id].anchor = turn;
  f->of[b->first->id].merge_reason = why;
  a->n_stores = 0;
  for (const ir_op *op = a->first; op; op = f->of[op->id].merged_next) a->n_stores += !fuse_stays_inside(x, op);
  a->n_ops += b->n_ops;
  a->reduces = a->reduces || b->reduces;
  if (!a->dims) a->dims = b->dims;
  a->other_reads = a->other_reads || b->other_reads;
  for (uint32_t i = 0; i < b->n_reads; i++)
    if (!fuse_has(x, a, b->reads[i])) fuse_add_read(a, b->reads[i]);
}

/* Tries the nearest first. The objection of the farthest is the one kept for explanations. */
static bool fuse_with_near(fuse_run *x, fuse_pass *b) {
  const char *why = NULL, *objection = NULL;
  for (uint32_t i = 0; i < x->n_near; i++) {
    fuse_pass *a = x->near[i];
    if (!fuse_same_space(a, b)) continue;
    const char *no = fuse_objects(x, a, b, &why);
    if (!no && !why) continue;
    bool rises = !no && fuse_can_rise(x, a, b);
    if (!no && !rises && !fuse_can_sink(x, a, b)) no = "an op in between needs one and makes what the other needs";
    if (!no) {
      fuse_join(x, a, b, rises, why);
      return true;
    }
    objection = no;
  }
  x->f->of[b->first->id].merge_reason = objection;
  return false;
}

/* Where the kernel may stand instead of at its anchor, which it need not store: at the first root that it does. NULL: a
 * root that comes before the anchor may be read in between. */
static ir_op *fuse_other_anchor(const fuse_run *x, ir_op *first) {
  ir_op *anchor = x->f->of[first->id].anchor, *best = NULL;
  for (ir_op *op = first; op; op = x->f->of[op->id].merged_next) {
    if (op == anchor || fuse_stays_inside(x, op)) continue;
    if (x->at[op->id] < x->at[anchor->id]) return NULL;
    if (!best || x->at[op->id] < x->at[best->id]) best = op;
  }
  return best;
}

/* Takes what only the kernel itself reads from its list: it becomes a part of the kernel like others. */
static void fuse_drop_inside(fuse_run *x, ir_op *first) {
  fusion_plan *f = x->f;
  ir_op *anchor = f->of[first->id].anchor, *other = fuse_other_anchor(x, first), *stored = NULL, *last = NULL;
  if (other) f->of[first->id].anchor = other;
  if (other && !fuse_stays_inside(x, anchor)) f->of[first->id].anchor = anchor;
  anchor = f->of[first->id].anchor;
  for (ir_op *op = first; op; op = f->of[op->id].merged_next)
    if (fuse_stays_inside(x, op))
      f->of[op->id].role = FUSION_INNER;
    else if (!stored)
      stored = op;
  assert(stored && f->of[anchor->id].role == FUSION_ROOT);
  for (ir_op *op = first, *next = NULL; op; op = next) {
    next = f->of[op->id].merged_next;
    f->of[op->id].merged_next = NULL;
    f->of[op->id].merged_first = stored;
    if (f->of[op->id].role == FUSION_INNER) {
      f->of[op->id].root = stored;
      continue;
    }
    if (last) f->of[last->id].merged_next = op;
    last = op;
  }
  f->of[stored->id].anchor = anchor;
}

/* In the order of steps, so that `near` has kernels that come before. */
static void fuse_all(fuse_run *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    fuse_pass *p = &x->pass[i];
    if (!p->first || fuse_with_near(x, p)) continue;
    uint32_t keep = x->n_near < FUSE_NEAR ? x->n_near++ : FUSE_NEAR - 1;
    memmove(x->near + 1, x->near, keep * sizeof *x->near);
    x->near[0] = p;
  }
}

/* Quick where there are fewer than two kernels worth it: nothing is allocated then. */
bool fusion_merge(fusion_plan *f, uint32_t n, ir_op *const *order, uint32_t *numbers, base_arena *scratch) {
  assert(f && numbers && scratch && (order || n == 0));
  fuse_run x = {.f = f, .n = n, .order = order, .at = numbers};
  bool worth = false;
  for (uint32_t i = 0, roots = 0; i < n && !worth; i++) {
    roots += f->of[order[i]->id].role == FUSION_ROOT && fuse_pass_of(&x, order[i]).first;
    worth = roots > 1;
  }
  if (!worth) return true;
  x.steps = base_arena_zalloc(scratch, ((size_t)n + 1) * sizeof *x.steps);
  x.pass = base_arena_zalloc(scratch, (size_t)n * sizeof *x.pass);
  if (!x.steps || !x.pass) return false;
  for (uint32_t i = 0; i < n; i++) {
    const ir_op *op = order[i];
    numbers[op->id] = i + 1;
    x.steps[i + 1] = x.steps[i] + (f->of[op->id].role == FUSION_NO && !fuse_is_name(op));
    if (f->of[op->id].role == FUSION_ROOT) x.pass[i] = fuse_pass_of(&x, order[i]);
  }
  for (uint32_t i = 0; i < n; i++) fuse_look_at(&x, order[i]);
  fuse_all(&x);
  for (uint32_t i = n; i-- > 0;) { /* the first of a list comes before the others */
    const fusion_op *op = &f->of[order[i]->id];
    if (x.pass[i].first && op->merged_first == order[i] && op->merged_next) fuse_drop_inside(&x, order[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    fusion_op *op = &f->of[order[i]->id];
    if (op->role == FUSION_INNER && f->of[op->root->id].role == FUSION_INNER) op->root = f->of[op->root->id].root;
    numbers[order[i]->id] = 0;
  }
  return true;
}
