/* The graph in which clusters must not make cycles: the nodes, and one more vertex for each loop's frame, which takes
 * the place of its Enters for what goes in and of its Exits for what comes out. */
#include "pass.h"

typedef struct tf_lift {
  tf_pass *p;
  base_map frames; /* frame -> vertex */
  xlac_error *err;
} tf_lift;

static int tf_frame_vertex(tf_lift *l, const base_istr *frame, uint32_t *out) {
  uint64_t known = 0;
  if (base_map_get(&l->frames, base_key(frame), &known)) {
    *out = (uint32_t)known;
    return 0;
  }
  TRY(tf_cycles_add(&l->p->cycles, out, l->err));
  return base_map_set(&l->frames, base_key(frame), *out) ? 0 : base_oom(l->err, "clustering");
}

static int tf_lift_edge(tf_lift *l, const tf_edge *e, bool *gave_up) {
  tf_pass *p = l->p;
  const tf_node *src = &p->graph.nodes.items[e->src], *dst = &p->graph.nodes.items[e->dst];
  uint32_t from = e->src, to = e->dst;
  bool exit = src->role == TF_ROLE_EXIT, enter = dst->role == TF_ROLE_ENTER, cycle = false;
  if (src->role == TF_ROLE_NEXT_ITERATION) return 0;
  if (exit && p->frames[e->src].frame) TRY(tf_frame_vertex(l, p->frames[e->src].frame, &from));
  if (enter && p->frames[e->dst].frame) TRY(tf_frame_vertex(l, p->frames[e->dst].frame, &to));
  TRY(tf_cycles_insert(&p->cycles, from, to, &cycle, l->err));
  if (!cycle) return 0;
  *gave_up = enter || exit;
  if (*gave_up) return 0;
  return base_fail(l->err, XLAC_E_BAD_ARGUMENT, "the edge from '%.100s' to '%.100s' closes a cycle outside of any loop",
                   src->name->s, dst->name->s);
}

int tf_build_cycles(tf_pass *p, xlac_error *err) {
  tf_lift l = {.p = p, .err = err};
  int status = 0;
  uint32_t vertex = 0;
  base_map_init(&l.frames, p->graph.alloc);
  for (uint32_t i = 0; i < p->graph.nodes.n && status == 0; i++) status = tf_cycles_add(&p->cycles, &vertex, err);
  for (uint32_t i = 0; i < p->graph.edges.n && status == 0 && !p->gave_up; i++)
    status = tf_lift_edge(&l, &p->graph.edges.items[i], &p->gave_up);
  base_map_free(&l.frames);
  return status;
}
