/* Makes programs of graphs: which nodes are one unit, what each unit waits for, where its values go, and in which
 * frame (loop of TensorFlow's first control flow) it runs.
 *
 * The graph stays as it is; units refer to its nodes. Parts that are compiled (clusters, and nodes that the host
 * has no op for) are cut out of it, so that they can be lowered by themselves; an input of a part may be any value
 * of the graph, hence the map from values to outputs of parts. */
#include "../cluster/cluster.h"
#include "run.h"

/* A value's way, or an order of two units: from output `output` of unit `from` to input `slot` of unit `to`,
 * TF_CONTROL for the latter. */
typedef struct tfs_wire {
  uint32_t from;
  int32_t output;
  uint32_t to;
  int32_t slot;
} tfs_wire;
BASE_VEC(tfs_wires, tfs_wire);
BASE_VEC(tfs_frame_list, tfs_static_frame);

/* What is needed only while the program is made. Arrays by node are the arena's, and stay for as long as the
 * program. */
typedef struct tfs_builder {
  tfs_program *p;
  tfs_session *session;
  const tf_graph *g;
  const uint8_t *live;
  const uint32_t *group_of;
  uint32_t n_groups;
  const base_istr *const *names;
  base_alloc alloc;
  uint32_t *unit_of, *frame_of, *mark; /* by node, by node, by unit */
  uint32_t *unit_of_group;
  base_map output_of; /* a value of a cut out part -> which output */
  tfs_wires wires;
  tfs_frame_list frames;
  uint32_t *frame_parent;
  xlac_error *err;
} tfs_builder;

static int tfs_build_oom(const tfs_builder *b) {
  assert(b->p);
  return base_oom(b->err, "preparing a graph");
}

/* The graph's source and sink are not nodes that run. */
static bool tfs_is_live(const tfs_builder *b, uint32_t node) {
  assert(node < b->g->nodes.n);
  return node > TF_SINK && (!b->live || b->live[node]);
}

/* One number for a value: its node and which output. */
static uint64_t tfs_value_key(tf_value_id v) {
  return (uint64_t)v.node << 32 | (uint32_t)v.output;
}

/* --- units --- */

/* Makes a compiled unit of these nodes. `cut` is set before anything can fail, for tf_part_free to find the part. */
static int tfs_cut_unit(tfs_builder *b, tfs_unit *u, uint32_t n, const uint32_t *nodes) {
  assert(n > 0);
  u->kind = TFS_UNIT_COMPUTE;
  u->cut = true;
  TRY(tf_cut_out(&u->part, &b->p->arena, &b->session->pass->bodies, b->g, n, nodes, b->err));
  u->n_in = u->part.n_inputs;
  u->n_out = u->part.n_outputs;
  for (uint32_t i = 0; i < u->n_out; i++)
    if (!base_map_set(&b->output_of, tfs_value_key(u->part.outputs[i]), i)) return tfs_build_oom(b);
  return 0;
}

/* A unit of one node. The ends of a function's graph (_Arg, _Retval) are told from nodes of that name by having no
 * text of their own; arguments and results are numbered in the order of the nodes. */
static int tfs_make_unit(tfs_builder *b, uint32_t id) {
  assert(b->p->n_units < b->g->nodes.n);
  const tf_node *node = &b->g->nodes.items[id];
  tfs_unit *u = &b->p->units[b->p->n_units];
  bool ours = node->def->bytes.p == NULL; /* not a node of the graph but one end of it */
  tf_callees callees;
  b->unit_of[id] = b->p->n_units++;
  *u = (tfs_unit){.name = node->name, .node = node, .role = node->role, .n_in = node->n_inputs};
  u->n_out = node->n_outputs;
  if (ours && node->role == TF_ROLE_ARG) {
    u->kind = TFS_UNIT_ARG;
    u->number = b->p->n_args++;
    return 0;
  }
  if (ours && node->role == TF_ROLE_RETVAL) {
    u->kind = TFS_UNIT_RESULT;
    u->number = b->p->n_results++;
    return 0;
  }
  TRY(tf_find_callees(&b->session->pass->bodies, node, &callees, b->err));
  u->kind = callees.kind != TF_CALL_NONE ? TFS_UNIT_CALL : TFS_UNIT_HOST;
  if (u->kind == TFS_UNIT_CALL) return 0;
  u->host = tfs_host_find(node);
  return u->host ? 0 : tfs_cut_unit(b, u, 1, &id);
}

/* A unit of a cluster's nodes. */
static int tfs_make_group(tfs_builder *b, uint32_t group, uint32_t n, const uint32_t *nodes) {
  assert(n > 0 && group < b->n_groups);
  tfs_unit *u = &b->p->units[b->p->n_units];
  for (uint32_t i = 0; i < n; i++) b->unit_of[nodes[i]] = b->p->n_units;
  b->p->n_units++;
  *u = (tfs_unit){.name = b->names[group], .is_cluster = true};
  return tfs_cut_unit(b, u, n, nodes);
}

/* Nodes by group, a unit for each group and for each other node, by their first nodes. The members of all groups
 * lie in one array, sorted by counting: count[k] is where group k begins. */
static int tfs_make_units(tfs_builder *b) {
  uint32_t n = b->g->nodes.n, *count = BASE_ARRAY(&b->p->arena, uint32_t, (size_t)b->n_groups + 1);
  uint32_t *members = BASE_ARRAY(&b->p->arena, uint32_t, n);
  b->p->units = BASE_ARRAY(&b->p->arena, tfs_unit, n);
  if (!count || !members || !b->p->units) return tfs_build_oom(b);
  memset(count, 0, ((size_t)b->n_groups + 1) * sizeof *count);
  for (uint32_t i = TF_SINK + 1; i < n; i++)
    if (tfs_is_live(b, i) && b->group_of && b->group_of[i] != TF_NO_EDGE) count[b->group_of[i] + 1]++;
  for (uint32_t k = 0; k < b->n_groups; k++) count[k + 1] += count[k];
  uint32_t *at = base_arena_memdup(&b->p->arena, count, ((size_t)b->n_groups + 1) * sizeof *count);
  if (!at) return tfs_build_oom(b);
  for (uint32_t i = TF_SINK + 1; i < n; i++)
    if (tfs_is_live(b, i) && b->group_of && b->group_of[i] != TF_NO_EDGE) members[at[b->group_of[i]]++] = i;
  for (uint32_t i = TF_SINK + 1; i < n; i++) {
    if (!tfs_is_live(b, i)) continue;
    uint32_t group = b->group_of ? b->group_of[i] : TF_NO_EDGE;
    if (group == TF_NO_EDGE)
      TRY(tfs_make_unit(b, i));
    else if (members[count[group]] == i)
      TRY(tfs_make_group(b, group, count[group + 1] - count[group], members + count[group]));
  }
  return 0;
}

/* --- frames --- */

/* The frame that an Enter opens, known by its name; made where there is none yet. `parent` is the frame that the
 * Enter runs in. Number 0 is the outermost, which has no name. */
static int tfs_find_frame(tfs_builder *b, const tf_node *enter, uint32_t parent, uint32_t *out) {
  assert(enter->role == TF_ROLE_ENTER && parent < b->frames.n);
  base_slice text = {"", 0};
  (void)tf_attr_string(tf_attr_or_default(enter->op, enter->def->attrs, BASE_SLICE("frame_name")), &text);
  const base_istr *name = base_intern(&b->g->def->strings, text.p, text.n);
  if (!name) return tfs_build_oom(b);
  for (*out = 1; *out < b->frames.n; ++*out)
    if (b->frames.items[*out].name == name) return 0;
  tfs_static_frame f = {.name = name};
  uint32_t *parents = base_realloc(b->alloc, b->frame_parent, (b->frames.n + (size_t)1) * sizeof *parents);
  if (!parents || !BASE_VEC_PUSH(b->alloc, &b->frames, f)) {
    if (parents) b->frame_parent = parents;
    return tfs_build_oom(b);
  }
  b->frame_parent = parents;
  parents[*out] = parent;
  return 0;
}

/* Of each node the frame that it runs in: an Enter runs outside of the one it opens, an Exit within. Breadth first
 * from the source along all edges; a node gets the frame of the first edge that reaches it. Where edges disagree,
 * the graph is wrong, which tfs_arrive says when it runs. */
static int tfs_find_node_frames(tfs_builder *b) {
  uint32_t n = b->g->nodes.n, *queue = BASE_ARRAY(&b->p->arena, uint32_t, n), n_queue = 1;
  if (!queue) return tfs_build_oom(b);
  for (uint32_t i = 0; i < n; i++) b->frame_of[i] = TF_NO_EDGE;
  b->frame_of[TF_SOURCE] = 0;
  queue[0] = TF_SOURCE;
  for (uint32_t at = 0; at < n_queue; at++) {
    const tf_node *node = &b->g->nodes.items[queue[at]];
    uint32_t frame = b->frame_of[queue[at]];
    if (node->role == TF_ROLE_ENTER) TRY(tfs_find_frame(b, node, frame, &frame));
    if (node->role == TF_ROLE_EXIT) frame = frame ? b->frame_parent[frame] : 0;
    TF_EACH_OUT(b->g, node, e) {
      uint32_t dst = b->g->edges.items[e].dst;
      if (b->frame_of[dst] != TF_NO_EDGE) continue;
      b->frame_of[dst] = frame;
      queue[n_queue++] = dst;
    }
  }
  return 0;
}

/* A cluster's unit is placed once for each of its nodes, all in one frame. */
static int tfs_place_unit(tfs_builder *b, uint32_t id) {
  const tf_node *node = &b->g->nodes.items[id];
  tfs_unit *u = &b->p->units[b->unit_of[id]];
  u->frame = b->frame_of[id] == TF_NO_EDGE ? 0 : b->frame_of[id];
  if (node->role != TF_ROLE_ENTER) return 0;
  TRY(tfs_find_frame(b, node, u->frame, &u->child_frame));
  u->constant_enter = tf_attr_is_true(node->def->attrs, "is_constant");
  b->frames.items[u->child_frame].n_enters++;
  return 0;
}

/* Each unit gets a local number in its frame and places for its inputs there, so that an iteration is one block of
 * memory. A merge waits for its control inputs only: any one value makes it run. */
static int tfs_make_frames(tfs_builder *b) {
  tfs_static_frame root = {.name = NULL};
  b->frame_parent = base_malloc(b->alloc, sizeof *b->frame_parent);
  if (!b->frame_parent || !BASE_VEC_PUSH(b->alloc, &b->frames, root)) return tfs_build_oom(b);
  b->frame_parent[0] = 0;
  TRY(tfs_find_node_frames(b));
  for (uint32_t i = TF_SINK + 1; i < b->g->nodes.n; i++)
    if (tfs_is_live(b, i)) TRY(tfs_place_unit(b, i));
  b->p->n_frames = b->frames.n;
  b->p->has_loops = b->frames.n > 1;
  b->p->frames = base_arena_memdup(&b->p->arena, b->frames.items, b->frames.n * sizeof *b->frames.items);
  if (!b->p->frames) return tfs_build_oom(b);
  for (uint32_t k = 0; k < b->p->n_units; k++) b->p->frames[b->p->units[k].frame].n_units++;
  for (uint32_t f = 0; f < b->p->n_frames; f++) {
    tfs_static_frame *frame = &b->p->frames[f];
    frame->units = BASE_ARRAY(&b->p->arena, uint32_t, frame->n_units + (size_t)1);
    frame->first_wait = BASE_ARRAY(&b->p->arena, uint32_t, frame->n_units + (size_t)1);
    if (!frame->units || !frame->first_wait) return tfs_build_oom(b);
    frame->n_units = 0;
  }
  for (uint32_t k = 0; k < b->p->n_units; k++) {
    tfs_unit *u = &b->p->units[k];
    tfs_static_frame *frame = &b->p->frames[u->frame];
    u->local = frame->n_units++;
    u->slot = frame->n_slots;
    frame->n_slots += u->n_in;
    frame->units[u->local] = k;
    frame->first_wait[u->local] = u->n_control_in + (u->role == TF_ROLE_MERGE && !u->is_cluster ? 0 : u->n_in);
  }
  return 0;
}

/* --- edges --- */

/* Values of nodes that are not there can only come from a wrong group or a wrong set of live nodes. */
static int tfs_wire_value(tfs_builder *b, tf_value_id v, uint32_t to, uint32_t slot) {
  assert(to < b->p->n_units);
  uint64_t output = (uint32_t)v.output;
  if (!tfs_is_live(b, v.node)) return base_fail(b->err, XLAC_E_INTERNAL, "a value of a node that is not there");
  uint32_t from = b->unit_of[v.node];
  if (b->p->units[from].cut && !base_map_get(&b->output_of, tfs_value_key(v), &output))
    return base_fail(b->err, XLAC_E_INTERNAL, "a value of '%.100s' has no number", b->p->units[from].name->s);
  tfs_wire w = {from, (int32_t)output, to, (int32_t)slot};
  return BASE_VEC_PUSH(b->alloc, &b->wires, w) ? 0 : tfs_build_oom(b);
}

/* One edge for two units, however many their nodes have: `mark` remembers which unit a unit was last wired to. */
static int tfs_wire_control(tfs_builder *b, uint32_t node, uint32_t to) {
  assert(to < b->p->n_units);
  if (!tfs_is_live(b, node)) return 0;
  uint32_t from = b->unit_of[node];
  if (from == to || b->mark[from] == to) return 0;
  b->mark[from] = to;
  b->p->units[to].n_control_in++;
  tfs_wire w = {from, TF_CONTROL, to, TF_CONTROL};
  return BASE_VEC_PUSH(b->alloc, &b->wires, w) ? 0 : tfs_build_oom(b);
}

/* The inputs of a unit that is one node. */
static int tfs_wire_node(tfs_builder *b, const tf_node *node, uint32_t to) {
  TF_EACH_IN(b->g, node, k) {
    const tf_edge *e = &b->g->edges.items[k];
    if (e->dst_input == TF_CONTROL)
      TRY(tfs_wire_control(b, e->src, to));
    else
      TRY(tfs_wire_value(b, (tf_value_id){e->src, e->src_output}, to, (uint32_t)e->dst_input));
  }
  return 0;
}

/* Parts know their own inputs, in the order in which the compiled code takes them. */
static int tfs_wire_units(tfs_builder *b) {
  for (uint32_t k = 0; k < b->p->n_units; k++) b->mark[k] = TF_NO_EDGE;
  for (uint32_t k = 0; k < b->p->n_units; k++) {
    const tfs_unit *u = &b->p->units[k];
    if (!u->cut) {
      TRY(tfs_wire_node(b, u->node, k));
      continue;
    }
    for (uint32_t i = 0; i < u->part.n_inputs; i++) TRY(tfs_wire_value(b, u->part.inputs[i], k, i));
    for (uint32_t i = 0; i < u->part.n_control_in; i++) TRY(tfs_wire_control(b, u->part.control_in[i], k));
  }
  return 0;
}

/* A unit's edges lie together: outputs in order, control last. Two stable sorts by counting. */
static int tfs_sort_wires(tfs_builder *b) {
  tfs_program *p = b->p;
  p->edges = BASE_ARRAY(&p->arena, tfs_out, b->wires.n + (size_t)1);
  if (!p->edges) return tfs_build_oom(b);
  p->n_edges = b->wires.n;
  for (uint32_t i = 0; i < b->wires.n; i++) p->units[b->wires.items[i].from].n_edges++;
  uint32_t total = 0;
  for (uint32_t k = 0; k < p->n_units; k++) {
    p->units[k].first_edge = total;
    total += p->units[k].n_edges;
    p->units[k].n_edges = 0;
  }
  for (unsigned control = 0; control < 2; control++)
    for (uint32_t i = 0; i < b->wires.n; i++) {
      const tfs_wire *w = &b->wires.items[i];
      tfs_unit *u = &p->units[w->from];
      if ((w->output == TF_CONTROL) != (control == 1)) continue;
      p->edges[u->first_edge + u->n_edges++] = (tfs_out){w->output, w->to, w->slot};
    }
  return 0;
}

/* --- the whole --- */

/* In this order: edges count what units wait for, and frames copy that. */
static int tfs_build(tfs_builder *b) {
  b->unit_of = BASE_ARRAY(&b->p->arena, uint32_t, b->g->nodes.n);
  b->frame_of = BASE_ARRAY(&b->p->arena, uint32_t, b->g->nodes.n);
  b->mark = BASE_ARRAY(&b->p->arena, uint32_t, b->g->nodes.n);
  if (!b->unit_of || !b->frame_of || !b->mark) return tfs_build_oom(b);
  TRY(tfs_make_units(b));
  TRY(tfs_wire_units(b));
  TRY(tfs_sort_wires(b));
  TRY(tfs_make_frames(b));
  for (uint32_t k = 0; k < b->p->n_units; k++) {
    const tfs_unit *u = &b->p->units[k];
    if (u->n_in > b->p->widest) b->p->widest = u->n_in;
    if (u->n_out > b->p->widest) b->p->widest = u->n_out;
  }
  return 0;
}

int tfs_program_build(tfs_program *out, tfs_session *session, const tf_graph *g, const uint8_t *live,
                      const uint32_t *group_of, uint32_t n_groups, const base_istr *const *names, xlac_error *err) {
  assert(n_groups == 0 || (group_of && names));
  tfs_builder b = {.p = out, .session = session, .g = g, .live = live, .group_of = group_of, .n_groups = n_groups};
  b.names = names;
  b.alloc = session->alloc;
  b.err = err;
  *out = (tfs_program){.session = session, .graph = g};
  base_arena_init(&out->arena, session->alloc);
  base_map_init(&b.output_of, session->alloc);
  int status = tfs_build(&b);
  base_map_free(&b.output_of);
  BASE_VEC_FREE(b.alloc, &b.wires);
  BASE_VEC_FREE(b.alloc, &b.frames);
  base_free(b.alloc, b.frame_parent);
  return status;
}

/* Also of one whose making failed: units are zeroed before they are counted. Depth is that of clusters, which have
 * no clusters within. */
void tfs_program_free(tfs_program *p) {
  base_alloc alloc = p->session->alloc;
  for (uint32_t k = 0; k < p->n_units; k++) {
    tfs_unit *u = &p->units[k];
    tfs_compiled_free(u->compiled, alloc);
    if (u->nodes) {
      tfs_program_free(u->nodes);
      base_free(alloc, u->nodes);
    }
    if (u->cut) tf_part_free(&u->part);
    tfs_drop(&u->constant);
    base_free(alloc, u->random);
    base_free(alloc, u->callees);
    base_free(alloc, u->why);
  }
  base_arena_free(&p->arena);
  if (p->pass) tf_pass_free(p->pass);
  base_free(alloc, p->pass);
}

/* Numbers come in the order of the nodes, so that a program of one graph is always the same. */
int tfs_number_clusters(const tf_pass *pass, uint32_t *group_of, uint32_t *n_groups, const base_istr **names,
                        xlac_error *err) {
  base_map groups;
  bool fine = true;
  *n_groups = 0;
  base_map_init(&groups, pass->graph.alloc);
  for (uint32_t i = 0; i < pass->graph.nodes.n && fine; i++) {
    const base_istr *name = pass->result[i];
    uint64_t group = TF_NO_EDGE;
    if (name && !base_map_get(&groups, base_key(name), &group)) {
      group = (*n_groups)++;
      names[group] = name;
      fine = base_map_set(&groups, base_key(name), group);
    }
    group_of[i] = (uint32_t)group;
  }
  base_map_free(&groups);
  return fine ? 0 : base_oom(err, "preparing a graph");
}

/* --- bodies of functions, clusters node by node --- */

/* Results, what has effects, and all that these need. `live` is by node, set to 1 where it is needed. Arguments
 * stay, needed or not: calls count them. */
static int tfs_mark_needed(const tf_graph *g, uint8_t *live, xlac_error *err) {
  assert(g->nodes.n > TF_SINK);
  uint32_t *stack = base_malloc(g->alloc, g->nodes.n * sizeof *stack), n = 0;
  if (!stack) return base_oom(err, "preparing a function");
  memset(live, 0, g->nodes.n);
  for (uint32_t i = TF_SINK + 1; i < g->nodes.n; i++) {
    const tf_node *node = &g->nodes.items[i];
    bool effects = node->op && (node->op->flags & TF_OP_STATEFUL);
    if (node->role != TF_ROLE_RETVAL && node->role != TF_ROLE_ARG && !effects) continue;
    live[i] = 1;
    stack[n++] = i;
  }
  while (n > 0) {
    const tf_node *node = &g->nodes.items[stack[--n]];
    TF_EACH_IN(g, node, e) {
      uint32_t src = g->edges.items[e].src;
      if (src <= TF_SINK || live[src]) continue;
      live[src] = 1;
      stack[n++] = src;
    }
  }
  base_free(g->alloc, stack);
  return 0;
}

/* A program of g; where pass is there, it has clustered g and is the program's then. On failure the pass stays the
 * caller's. */
static int tfs_build_body(tfs_session *s, const tf_graph *g, tf_pass *pass, tfs_program **out, xlac_error *err) {
  size_t n = g->nodes.n;
  uint32_t n_groups = 0, *group_of = base_malloc(s->alloc, n * sizeof *group_of);
  const base_istr **names = base_malloc(s->alloc, n * sizeof *names);
  uint8_t *live = base_malloc(s->alloc, n);
  tfs_program *p = base_malloc(s->alloc, sizeof *p);
  int status = group_of && names && live && p ? tfs_mark_needed(g, live, err) : base_oom(err, "preparing a function");
  if (status == 0 && pass) status = tfs_number_clusters(pass, group_of, &n_groups, names, err);
  if (status == 0) {
    status = tfs_program_build(p, s, g, live, pass ? group_of : NULL, n_groups, names, err);
    if (status != 0) tfs_program_free(p);
  }
  base_free(s->alloc, group_of);
  base_free(s->alloc, (void *)names);
  base_free(s->alloc, live);
  if (status != 0) {
    base_free(s->alloc, p);
    return status;
  }
  p->pass = pass;
  *out = p;
  return 0;
}

/* Functions are clustered like graphs, with the flags of the session's pass, when they are first called. */
static int tfs_cluster_body(tfs_session *s, const tf_callee *callee, tfs_program **out, xlac_error *err) {
  tf_pass *pass = base_malloc(s->alloc, sizeof *pass);
  if (!pass) return base_oom(err, "preparing a function");
  int status = tf_cluster_function(pass, s->pass, callee->function, callee->attrs, err);
  if (status == 0) status = tfs_build_body(s, &pass->graph, pass, out, err);
  if (status != 0) {
    tf_pass_free(pass);
    base_free(s->alloc, pass);
  }
  return status;
}

/* The program goes on the session's list before the map, so that it is freed in any case. */
int tfs_body_program(tfs_session *s, const tf_callee *callee, tfs_program **out, xlac_error *err) {
  uint64_t known = 0;
  if (!callee->function)
    return base_fail(err, XLAC_E_UNKNOWN_NAME, "function '%.*s' is not in the library",
                     (int)(callee->name.n < 100 ? callee->name.n : 100), callee->name.p);
  uint64_t key = tf_call_key(callee->function, callee->attrs);
  if (base_map_get(&s->body_of, key, &known)) {
    *out = (tfs_program *)(uintptr_t)known;
    return 0;
  }
  tfs_program *p = NULL;
  TRY(tfs_cluster_body(s, callee, &p, err));
  p->next = s->bodies;
  s->bodies = p;
  if (!base_map_set(&s->body_of, key, base_key(p))) return base_oom(err, "preparing a function");
  *out = p;
  return 0;
}

/* When a cluster can't be compiled, or it is not worth while. */
int tfs_unit_nodes(tfs_session *s, tfs_unit *unit, tfs_program **out, xlac_error *err) {
  assert(unit->cut);
  if (!unit->nodes) TRY(tfs_build_body(s, &unit->part.graph, NULL, &unit->nodes, err));
  *out = unit->nodes;
  return 0;
}
