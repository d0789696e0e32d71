/* sdy-sharding-group-import: groups that have a value in common become one; groups are numbered 0, 1, ... in the order
 * they are first seen in; a value is in its group once. Requires: nothing. Preserves: all else. Fails where a group has
 * values of several shapes, or crosses a manual computation. */
#include <stdlib.h>

#include "../common/common.h"

/* A row for each sdy.sharding_group op. first: the row in which its value comes first; manual: the innermost manual
 * computation around the op, or NULL.
 * %a in group 7, %b in 7 and in 9: 7 and 9 have %b in common, so there is one group, number 0, with %a and %b once
 * each. */
typedef struct imp_group {
  ir_op *op;
  int64_t id;
  uint32_t order; /* in the text */
  uint32_t first; /* of its value */
  const ir_op *manual;
} imp_group;
BASE_VEC(imp_group_list, imp_group);

typedef struct imp_groups {
  opt_rewriter rw;
  imp_group_list rows;
  base_map places;  /* an old number to its place in `parent` */
  uint32_t *parent; /* union-find over numbers, in the order they are seen */
  uint32_t n;
} imp_groups;

/* Inside of a manual computation shapes are local ones, so a group can't have members on both sides. */
static const ir_op *imp_manual_around(const ir_op *op) {
  for (op = op->parent->owner; op; op = op->parent->owner)
    if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION) return op;
  return NULL;
}

/* With the manual computation around it: groups must not reach into one from outside. */
static int imp_note_group(void *ctx, ir_op *op) {
  imp_groups *x = ctx;
  if (op->opcode != IR_OP_SDY_SHARDING_GROUP) return 0;
  imp_group row = {op, ir_m_get_int(op, "group_id", 0), x->rows.n, 0, imp_manual_around(op)};
  return BASE_VEC_PUSH(x->rw.m->alloc, &x->rows, row) ? 0 : base_oom(x->rw.err, "sharding groups");
}

/* qsort is not stable: text order is a key of its own in all three comparisons. */
static int imp_compare_groups(const void *a, const void *b) {
  const imp_group *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* Element types may differ; sizes and which are dynamic may not. */
static bool imp_same_shape(const ir_type *a, const ir_type *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d] || ir_dim_is_dynamic(a, d) != ir_dim_is_dynamic(b, d)) return false;
  return true;
}

/* Rows sorted by number: all of one number are of one place and shape.
 * The words are Shardy's. After the first check all members of a group are compared in pairs of neighbours. */
static int imp_check_groups(imp_groups *x) {
  for (uint32_t i = 1; i < x->rows.n; i++) {
    const imp_group *a = &x->rows.items[i - 1], *b = &x->rows.items[i];
    if (a->id != b->id) continue;
    if (a->manual != b->manual)
      return opt_rewrite_fail(&x->rw, b->op, XLAC_E_VERIFY_STRUCTURE,
                              "ShardingGroupOps values cannot cross ManualComputationOp boundaries for groupId: %lld",
                              (long long)b->id);
    if (!imp_same_shape(ir_operand_type(a->op, 0), ir_operand_type(b->op, 0)))
      return opt_rewrite_fail(&x->rw, b->op, XLAC_E_VERIFY_STRUCTURE,
                              "ShardingGroupOps values must have the same shape for groupId: %lld", (long long)b->id);
  }
  return 0;
}

/* Union-find with path halving. */
static uint32_t imp_root(imp_groups *x, uint32_t i) {
  assert(i < x->n);
  while (x->parent[i] != i) i = x->parent[i] = x->parent[x->parent[i]];
  return i;
}

/* Ids have 32 bits and the verifier bounds results, so that the key is unique for a value. */
static uint64_t imp_value_key(const ir_op *group) {
  return (uint64_t)group->operands[0].op->id << 16 ^ (uint64_t)group->operands[0].index;
}

/* A number's place among those seen so far. */
static bool imp_number(imp_groups *x, int64_t id, uint32_t *out) {
  uint64_t place;
  if (!base_map_get(&x->places, (uint64_t)id, &place)) {
    place = x->n++;
    x->parent[place] = (uint32_t)place;
    if (!base_map_set(&x->places, (uint64_t)id, place)) return false;
  }
  *out = (uint32_t)place;
  return true;
}

/* Rows by value, in the order of each value's first. The number that a value has first stands for its others. */
static bool imp_join_groups(imp_groups *x) {
  const imp_group *first = NULL;
  for (uint32_t i = 0; i < x->rows.n; i++) {
    imp_group *row = &x->rows.items[i];
    uint32_t a, b;
    if (!first || first->first != row->first) first = row;
    if (!imp_number(x, first->id, &a) || !imp_number(x, row->id, &b)) return false;
    a = imp_root(x, a);
    assert(a < x->n);
    x->parent[imp_root(x, b)] = a;
  }
  return true;
}

/* Where each value comes first. */
static bool imp_find_values(imp_groups *x) {
  base_map seen;
  base_map_init(&seen, x->rw.m->alloc);
  bool ok = true;
  for (uint32_t i = 0; i < x->rows.n && ok; i++) {
    uint64_t first = i, key = imp_value_key(x->rows.items[i].op);
    if (!base_map_get(&seen, key, &first)) ok = base_map_set(&seen, key, i);
    x->rows.items[i].first = (uint32_t)first;
  }
  base_map_free(&seen);
  return ok;
}

static int imp_compare_values(const void *a, const void *b) {
  const imp_group *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static int imp_compare_order(const void *a, const void *b) {
  const imp_group *x = a, *y = b;
  return (x->order > y->order) - (x->order < y->order);
}

/* New numbers; a value's later ops go. In the order of the text. */
static bool imp_renumber(imp_groups *x) {
  uint32_t *to = BASE_ARRAY(&x->rw.arena, uint32_t, (size_t)x->n + 1), next = 0;
  if (!to) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (imp_root(x, i) == i) to[i] = next++;
  qsort(x->rows.items, x->rows.n, sizeof *x->rows.items, imp_compare_order);
  base_map seen;
  base_map_init(&seen, x->rw.m->alloc);
  bool ok = true;
  for (uint32_t i = 0; i < x->rows.n && ok; i++) {
    ir_op *op = x->rows.items[i].op;
    uint64_t other, key = imp_value_key(op);
    if (base_map_get(&seen, key, &other)) {
      opt_erase(&x->rw, op);
      continue;
    }
    uint32_t place;
    ok = base_map_set(&seen, key, 1) && imp_number(x, x->rows.items[i].id, &place) &&
         ir_m_set(op, "group_id", ir_m_i64(x->rw.m, to[imp_root(x, place)]));
  }
  base_map_free(&seen);
  return ok;
}

/* Three orders of the rows: as noted for values, by number for the check, by value for the union. */
static int imp_unite_groups(imp_groups *x) {
  TRY(shc_walk_module(x->rw.m, true, imp_note_group, x));
  if (x->rows.n == 0) return 0;
  x->parent = BASE_ARRAY(&x->rw.arena, uint32_t, x->rows.n);
  bool ok = x->parent && imp_find_values(x);
  qsort(x->rows.items, x->rows.n, sizeof *x->rows.items, imp_compare_groups);
  TRY(imp_check_groups(x));
  qsort(x->rows.items, x->rows.n, sizeof *x->rows.items, imp_compare_values);
  ok = ok && imp_join_groups(x) && imp_renumber(x);
  return ok ? 0 : base_oom(x->rw.err, "sharding groups");
}

int shard_group_import(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_groups x = {.n = 0};
  TRY(opt_rewriter_init(&x.rw, m, err));
  base_map_init(&x.places, m->alloc);
  int status = imp_unite_groups(&x);
  base_map_free(&x.places);
  BASE_VEC_FREE(m->alloc, &x.rows);
  opt_rewriter_free(&x.rw);
  return status;
}
