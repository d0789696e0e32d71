/* Forward dataflow of sets of ops that wrote. Nodes share sets: most have the set of their first input. */
#include "resources.h"

#include <stdlib.h>

bool tf_may_call_function(const tf_node *n) {
  base_slice name, message;
  if (!tf_is_op(n)) return false;
  if (n->op->function) return true;
  for (uint32_t i = 0; i < n->def->attrs.n; i++) /* one function; TensorFlow does not look into lists, so not Case's */
    if (tf_attr_func(n->def->attrs.v[i].value, &name, &message)) return true;
  return false;
}

tf_resource_use tf_resource_use_of(const tf_node *n) {
  if (!tf_is_op(n)) return TF_RESOURCE_NONE;
  if (n->op->resource != TF_RESOURCE_NONE) return (tf_resource_use)n->op->resource;
  return tf_may_call_function(n) ? TF_RESOURCE_READ_WRITE : TF_RESOURCE_NONE;
}

/* A set of node ids, sorted. */
typedef struct tf_op_set {
  uint32_t n, ids[];
} tf_op_set;

typedef struct tf_flow {
  const tf_graph *g;
  const uint8_t *ignore;
  base_arena arena;
  const tf_op_set **reach; /* by node */
  tf_unsafe_list *out;
  xlac_error *err;
} tf_flow;

static int tf_flow_oom(tf_flow *f) {
  return base_oom(f->err, "checking the order of resource ops");
}

static const tf_op_set *tf_union(tf_flow *f, const tf_op_set *a, const tf_op_set *b) {
  tf_op_set *u = base_arena_alloc(&f->arena, sizeof *u + ((size_t)a->n + b->n) * sizeof *u->ids);
  uint32_t i = 0, k = 0;
  if (!u) return NULL;
  u->n = 0;
  while (i < a->n || k < b->n) {
    uint32_t x = i < a->n ? a->ids[i] : UINT32_MAX, y = k < b->n ? b->ids[k] : UINT32_MAX;
    u->ids[u->n++] = x < y ? x : y;
    i += x <= y;
    k += y <= x;
  }
  if (u->n == a->n) return a;
  return u->n == b->n ? b : u;
}

static const tf_op_set *tf_with(tf_flow *f, const tf_op_set *a, uint32_t id) {
  tf_op_set *one = base_arena_alloc(&f->arena, sizeof *one + sizeof *one->ids);
  if (!one) return NULL;
  one->n = 1;
  one->ids[0] = id;
  return a->n ? tf_union(f, a, one) : one;
}

static int tf_flow_into(tf_flow *f, uint32_t id) {
  const tf_node *n = &f->g->nodes.items[id];
  const tf_op_set *set = f->reach[TF_SOURCE];
  TF_EACH_IN(f->g, n, k) {
    uint32_t src = f->g->edges.items[k].src;
    const tf_op_set *more = f->reach[src];
    if (f->g->nodes.items[src].role == TF_ROLE_NEXT_ITERATION || !more || more == set || more->n == 0) continue;
    set = set->n ? tf_union(f, set, more) : more;
    if (!set) return tf_flow_oom(f);
  }
  tf_resource_use use = f->ignore && f->ignore[id] ? TF_RESOURCE_NONE : tf_resource_use_of(n);
  for (uint32_t i = 0; i < set->n && use != TF_RESOURCE_NONE && use != TF_RESOURCE_WRITE; i++) {
    tf_unsafe_pair pair = {set->ids[i], id};
    if (!BASE_VEC_PUSH(f->g->alloc, f->out, pair)) return tf_flow_oom(f);
  }
  if (use == TF_RESOURCE_WRITE || use == TF_RESOURCE_READ_WRITE) set = tf_with(f, set, id);
  f->reach[id] = set;
  return set ? 0 : tf_flow_oom(f);
}

static int tf_compare_pairs(const void *a, const void *b) {
  const tf_unsafe_pair *x = a, *y = b;
  if (x->before != y->before) return x->before < y->before ? -1 : 1;
  return (x->after > y->after) - (x->after < y->after);
}

static int tf_run_flow(tf_flow *f, uint32_t *order) {
  uint32_t n = 0;
  tf_op_set *empty = BASE_NEW(&f->arena, tf_op_set);
  if (!empty) return tf_flow_oom(f);
  TRY(tf_reverse_post_order(f->g, order, &n, f->err));
  f->reach[TF_SOURCE] = empty;
  for (uint32_t i = 0; i < n; i++)
    if (order[i] != TF_SOURCE) TRY(tf_flow_into(f, order[i]));
  if (f->out->n > 1) qsort(f->out->items, f->out->n, sizeof *f->out->items, tf_compare_pairs);
  return 0;
}

int tf_find_unsafe_pairs(const tf_graph *g, const uint8_t *ignore, tf_unsafe_list *out, xlac_error *err) {
  tf_flow f = {.g = g, .ignore = ignore, .out = out, .err = err};
  base_arena_init(&f.arena, g->alloc);
  uint32_t *order = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *order);
  f.reach = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *f.reach);
  int status = order && f.reach ? 0 : tf_flow_oom(&f);
  if (status == 0) {
    memset(f.reach, 0, (size_t)g->nodes.n * sizeof *f.reach);
    status = tf_run_flow(&f, order);
  }
  base_free(g->alloc, order);
  base_free(g->alloc, f.reach);
  base_arena_free(&f.arena);
  return status;
}
