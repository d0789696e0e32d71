/* ClusterScopingPass: what feeds a Stage and what an Unstage feeds get scopes of their own, so that stages of a
 * pipeline, which are meant to run at the same time, do not become one cluster. */
#include <stdio.h>

#include "pass.h"

static int tf_append_scope(tf_pass *p, uint32_t id, const char *suffix, xlac_error *err) {
  char joined[512];
  const tf_node *n = &p->graph.nodes.items[id];
  base_slice own = {"", 0};
  if (p->scopes[id])
    own = (base_slice){p->scopes[id]->s, p->scopes[id]->n};
  else if (tf_is_op(n))
    (void)tf_attr_string(tf_attr_find(n->def->attrs, "_XlaInternalScope"), &own);
  int size = own.n ? snprintf(joined, sizeof joined, "%.*s&%s", (int)(own.n < 480 ? own.n : 480), own.p, suffix)
                   : snprintf(joined, sizeof joined, "%s", suffix);
  p->scopes[id] = base_intern(&p->def->strings, joined, (size_t)size);
  return p->scopes[id] ? 0 : base_oom(err, "scoping stages");
}

static int tf_scope_from(tf_pass *p, uint32_t start, bool forward, const char *suffix, uint8_t *seen, xlac_error *err) {
  tf_vertex_ids *stack = &p->cycles.stack;
  const tf_graph *g = &p->graph;
  memset(seen, 0, g->nodes.n);
  stack->n = 0;
  seen[start] = 1;
  if (!BASE_VEC_PUSH(g->alloc, stack, start)) return base_oom(err, "scoping stages");
  while (stack->n > 0) {
    uint32_t id = stack->items[--stack->n];
    const tf_node *n = &g->nodes.items[id];
    TRY(tf_append_scope(p, id, suffix, err));
    for (uint32_t e = forward ? n->first_out : n->first_in; e != TF_NO_EDGE;) {
      const tf_edge *edge = &g->edges.items[e];
      uint32_t next = forward ? edge->dst : edge->src;
      e = forward ? edge->next_out : edge->next_in;
      if (seen[next]) continue;
      seen[next] = 1;
      if (!BASE_VEC_PUSH(g->alloc, stack, next)) return base_oom(err, "scoping stages");
    }
  }
  return 0;
}

int tf_scope_stages(tf_pass *p, xlac_error *err) {
  uint32_t number = 0;
  char suffix[16];
  int status = 0;
  uint8_t *seen = base_malloc(p->graph.alloc, p->graph.nodes.n);
  if (!seen) return base_oom(err, "scoping stages");
  for (uint32_t id = 0; id < p->graph.nodes.n && status == 0; id++) {
    const tf_node *n = &p->graph.nodes.items[id];
    bool stage = tf_node_is(n, "Stage"), unstage = tf_node_is(n, "Unstage");
    if (!stage && !unstage) continue;
    snprintf(suffix, sizeof suffix, "_%u", number++);
    status = tf_scope_from(p, id, unstage, suffix, seen, err);
  }
  base_free(p->graph.alloc, seen);
  return status;
}
