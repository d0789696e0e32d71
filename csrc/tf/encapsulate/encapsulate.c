/* Cuts a set of nodes out of a graph: Encapsulator of encapsulate_subgraphs_pass.cc. Edges that cross the border
 * decide what the part takes and gives, in the order of their ids; then the nodes are copied between arguments and
 * results, and at last the arguments are sorted into constants, others and resources, as compiled functions want
 * them. */
#include "encapsulate.h"

#include <stdlib.h>

BASE_VEC(tf_value_ids, tf_value_id);

/* One cut. `inner` maps to 0 while crossing edges are looked for, then to the node's id in the part. */
typedef struct tf_cutter {
  tf_part *part;
  base_arena *arena;
  const tf_graph *g;
  uint32_t n;
  const uint32_t *nodes;
  base_alloc alloc;
  base_map inner;      /* node of g -> node of the part */
  base_map input_of;   /* value of g -> which input it is */
  base_map output_of;  /* value of g -> which output it is */
  base_map control_of; /* node of g, and side -> 1 */
  tf_value_ids inputs, outputs;
  tf_vertex_ids crossing, control_in, control_out;
  xlac_error *err;
} tf_cutter;

/* Fails for want of memory. */
static int tf_cut_oom(const tf_cutter *c) {
  assert(c->part);
  return base_oom(c->err, "cutting a part out of a graph");
}

/* An output of a node as one key; outputs are not negative here but for sides of control edges (0 and 1). For the
 * maps of inputs, outputs and control edges, which are looked up edge by edge. */
static uint64_t tf_value_key(uint32_t node, int32_t output) {
  return (uint64_t)node << 32 | (uint32_t)output;
}

/* *inner is set for nodes of the part only. The map is made before anything else is asked; its values are set once
 * the inputs are counted. */
static bool tf_is_inner(const tf_cutter *c, uint32_t node, uint32_t *inner) {
  uint64_t found = 0;
  if (!base_map_get(&c->inner, node, &found)) return false;
  *inner = (uint32_t)found;
  return true;
}

/* The number of a value in a list where each is once. New values go to the end of the list, so that numbers are in
 * the order of the edges. */
static int tf_number_value(tf_cutter *c, base_map *known, tf_value_ids *list, tf_value_id v) {
  assert(v.output >= 0);
  uint64_t key = tf_value_key(v.node, v.output), found = 0;
  if (base_map_get(known, key, &found)) return 0;
  bool fine = base_map_set(known, key, list->n) && BASE_VEC_PUSH(c->alloc, list, v);
  return fine ? 0 : tf_cut_oom(c);
}

/* Nodes that must run before the part, or after it, each once a side. The source and the sink stand for no node.
 * `side`: 0 for those before the part, 1 for those after it; a node may be on both. */
static int tf_note_control(tf_cutter *c, tf_vertex_ids *list, uint32_t node, uint32_t side) {
  assert(side <= 1);
  uint64_t key = tf_value_key(node, (int32_t)side), found = 0;
  if (node <= TF_SINK || base_map_get(&c->control_of, key, &found)) return 0;
  bool fine = base_map_set(&c->control_of, key, 1) && BASE_VEC_PUSH(c->alloc, list, node);
  return fine ? 0 : tf_cut_oom(c);
}

/* --- what crosses the border --- */

/* By edge id. For qsort: edges are listed node by node, and wanted as they stand in the graph. */
static int tf_compare_crossing(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* An edge with both ends inside does not cross. A crossing edge has one end inside and is listed once. Once over
 * the edges of the set's nodes: the rest of the graph, which may be a thousand times as large, is not looked at. */
static int tf_list_crossing(tf_cutter *c) {
  assert(c->crossing.n == 0);
  uint32_t inner = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    const tf_node *n = &c->g->nodes.items[c->nodes[i]];
    TF_EACH_IN(c->g, n, k)
    if (!tf_is_inner(c, c->g->edges.items[k].src, &inner) && !BASE_VEC_PUSH(c->alloc, &c->crossing, k))
      return tf_cut_oom(c);
    TF_EACH_OUT(c->g, n, k)
    if (!tf_is_inner(c, c->g->edges.items[k].dst, &inner) && !BASE_VEC_PUSH(c->alloc, &c->crossing, k))
      return tf_cut_oom(c);
  }
  if (c->crossing.n > 1) qsort(c->crossing.items, c->crossing.n, sizeof *c->crossing.items, tf_compare_crossing);
  return 0;
}

/* In the order of the edges, which is that of TensorFlow's arguments and results. A value that several nodes of
 * the part take is one input, and one that several nodes outside take is one output. */
static int tf_note_crossing(tf_cutter *c) {
  uint32_t inner = 0;
  TRY(tf_list_crossing(c));
  for (uint32_t i = 0; i < c->crossing.n; i++) {
    const tf_edge *e = &c->g->edges.items[c->crossing.items[i]];
    bool in = tf_is_inner(c, e->dst, &inner), control = e->dst_input == TF_CONTROL;
    if (control)
      TRY(tf_note_control(c, in ? &c->control_in : &c->control_out, in ? e->src : e->dst, !in));
    else
      TRY(tf_number_value(c, in ? &c->input_of : &c->output_of, in ? &c->inputs : &c->outputs,
                          (tf_value_id){e->src, e->src_output}));
  }
  return 0;
}

/* --- building --- */

/* An _Arg or a _Retval that stands for a value. "name_0_arg" and "name_0_retval"; names within the part need not
 * differ from those outside. */
static int tf_add_end_node(tf_cutter *c, tf_value_id v, bool arg) {
  assert(v.output >= 0);
  const tf_node *from = &c->g->nodes.items[v.node];
  tf_graph_def *def = c->g->def;
  base_text name;
  base_text_init(&name, c->alloc);
  base_putf(&name, "%s_%d_%s", from->name->s, (int)v.output, arg ? "arg" : "retval");
  const base_istr *key = name.failed ? NULL : base_intern(&def->strings, name.s, name.n);
  base_text_free(&name);
  if (!key) return tf_cut_oom(c);
  return tf_graph_add_end(&c->part->graph, c->arena, key, tf_output_type(from, (uint32_t)v.output), arg, c->err);
}

/* Node i of the set becomes node TF_SINK + 1 + inputs + i. In the order of the set, which is that of the graph. */
static int tf_copy_nodes(tf_cutter *c) {
  for (uint32_t i = 0; i < c->n; i++)
    TRY(tf_graph_add_node(&c->part->graph, &c->g->nodes.items[c->nodes[i]], NULL, c->err));
  return 0;
}

/* Edges into each node in their old order, so that inputs stay in place; control edges from outside are not
 * copied: the call waits for those. */
static int tf_copy_edges(tf_cutter *c) {
  tf_graph *into = &c->part->graph;
  for (uint32_t i = 0; i < c->n; i++) {
    uint32_t dst = 0, src = 0;
    (void)tf_is_inner(c, c->nodes[i], &dst);
    TF_EACH_IN(c->g, &c->g->nodes.items[c->nodes[i]], k) {
      const tf_edge *e = &c->g->edges.items[k];
      uint64_t input = 0;
      if (tf_is_inner(c, e->src, &src)) {
        TRY(tf_graph_add_edge(into, src, e->src_output, dst, e->dst_input, c->err));
      } else if (e->dst_input != TF_CONTROL) {
        (void)base_map_get(&c->input_of, tf_value_key(e->src, e->src_output), &input);
        TRY(tf_graph_add_edge(into, TF_SINK + 1 + (uint32_t)input, 0, dst, e->dst_input, c->err));
      }
    }
  }
  uint32_t first = TF_SINK + 1 + c->inputs.n + c->n;
  for (uint32_t i = 0; i < c->outputs.n; i++) {
    uint32_t src = 0;
    (void)tf_is_inner(c, c->outputs.items[i].node, &src);
    TRY(tf_graph_add_edge(into, src, c->outputs.items[i].output, first + i, 0, c->err));
  }
  return tf_graph_connect_ends(into, c->err);
}

/* --- constants first, resources last --- */

/* Where an argument goes; other nodes stay. Arguments are the nodes behind the graph's two ends. */
static uint32_t tf_moved_node(uint32_t node, uint32_t n_args, const uint32_t *place) {
  return node > TF_SINK && node <= TF_SINK + n_args ? TF_SINK + 1 + place[node - TF_SINK - 1] : node;
}

/* place[i] is the new number of argument i. Arguments are nodes, so the edges follow; nothing else refers to them
 * by number. */
static int tf_permute_inputs(tf_cutter *c, const uint32_t *place) {
  tf_graph *g = &c->part->graph;
  uint32_t n = c->inputs.n;
  tf_node *nodes = base_malloc(c->alloc, (n + (size_t)1) * sizeof *nodes);
  tf_value_id *inputs = BASE_ARRAY(c->arena, tf_value_id, n + (size_t)1);
  if (!nodes || !inputs) {
    base_free(c->alloc, nodes);
    return tf_cut_oom(c);
  }
  for (uint32_t i = 0; i < n; i++) {
    nodes[place[i]] = g->nodes.items[TF_SINK + 1 + i];
    inputs[place[i]] = c->inputs.items[i];
  }
  memcpy(g->nodes.items + TF_SINK + 1, nodes, n * sizeof *nodes);
  base_free(c->alloc, nodes);
  for (uint32_t e = 0; e < g->edges.n; e++) {
    g->edges.items[e].src = tf_moved_node(g->edges.items[e].src, n, place);
    g->edges.items[e].dst = tf_moved_node(g->edges.items[e].dst, n, place);
  }
  c->part->inputs = inputs;
  return 0;
}

/* 0: must be known to compile; 1: other tensors; 2: resources. `marks`: by node of the part, what must be a
 * constant. */
static unsigned tf_input_class(const tf_part *part, const uint8_t *marks, uint32_t i) {
  const tf_node *arg = &part->graph.nodes.items[TF_SINK + 1 + i];
  if (tf_output_type(arg, 0) == TF_RESOURCE) return 2;
  return marks[TF_SINK + 1 + i] ? 0 : 1;
}

/* Stable within each class. Constants first and resources last, so that both are found by their counts. */
static int tf_order_inputs(tf_cutter *c, tf_bodies *bodies) {
  uint32_t n = c->inputs.n, next = 0;
  uint32_t *place = base_malloc(c->alloc, (n + (size_t)1) * sizeof *place);
  uint8_t *marks = base_malloc(c->alloc, c->part->graph.nodes.n);
  int status = place && marks ? 0 : tf_cut_oom(c);
  if (status == 0) status = tf_must_be_constant(bodies, &c->part->graph, NULL, NULL, marks, c->err);
  for (unsigned class = 0; class < 3 && status == 0; class ++) {
    uint32_t from = next;
    for (uint32_t i = 0; i < n; i++)
      if (tf_input_class(c->part, marks, i) == class) place[i] = next++;
    if (class == 0) c->part->n_constants = next - from;
    if (class == 2) c->part->n_resources = next - from;
  }
  if (status == 0) status = tf_permute_inputs(c, place);
  base_free(c->alloc, place);
  base_free(c->alloc, marks);
  return status;
}

/* --- the whole --- */

/* Copies of the lists, in the arena, that the part's users see. `outer` has, by node of the part, which node of
 * the graph it is; TF_NO_EDGE for arguments and results. */
static int tf_give_lists(tf_cutter *c) {
  tf_part *part = c->part;
  uint32_t *outer = BASE_ARRAY(c->arena, uint32_t, part->graph.nodes.n);
  part->n_inputs = c->inputs.n;
  part->n_outputs = c->outputs.n;
  part->n_control_in = c->control_in.n;
  part->n_control_out = c->control_out.n;
  part->outer = outer;
  if (!outer) return tf_cut_oom(c);
  for (uint32_t i = 0; i < part->graph.nodes.n; i++) outer[i] = TF_NO_EDGE;
  for (uint32_t i = 0; i < c->n; i++) outer[TF_SINK + 1 + c->inputs.n + i] = c->nodes[i];
  const struct {
    const void *from;
    size_t bytes;
    const void **to;
  } lists[] = {{c->outputs.items, c->outputs.n * sizeof(tf_value_id), (const void **)&part->outputs},
               {c->control_in.items, c->control_in.n * sizeof(uint32_t), (const void **)&part->control_in},
               {c->control_out.items, c->control_out.n * sizeof(uint32_t), (const void **)&part->control_out}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    void *copy = base_arena_alloc(c->arena, lists[i].bytes + 1);
    if (!copy) return tf_cut_oom(c);
    if (lists[i].bytes) memcpy(copy, lists[i].from, lists[i].bytes);
    *lists[i].to = copy;
  }
  return 0;
}

/* The set is in the map twice: at first so that crossing edges are known, and then, when inputs are counted, with
 * the new numbers. Nodes of the new graph: its two ends, the inputs, the set, the outputs. */
static int tf_build_part(tf_cutter *c, tf_bodies *bodies) {
  assert(c->part->graph.nodes.n == TF_SINK + 1);
  for (uint32_t i = 0; i < c->n; i++) {
    assert(c->nodes[i] > TF_SINK && (i == 0 || c->nodes[i - 1] < c->nodes[i]));
    if (!base_map_set(&c->inner, c->nodes[i], 0)) return tf_cut_oom(c);
  }
  TRY(tf_note_crossing(c));
  for (uint32_t i = 0; i < c->n; i++)
    if (!base_map_set(&c->inner, c->nodes[i], TF_SINK + 1 + c->inputs.n + i)) return tf_cut_oom(c);
  for (uint32_t i = 0; i < c->inputs.n; i++) TRY(tf_add_end_node(c, c->inputs.items[i], true));
  TRY(tf_copy_nodes(c));
  for (uint32_t i = 0; i < c->outputs.n; i++) TRY(tf_add_end_node(c, c->outputs.items[i], false));
  TRY(tf_copy_edges(c));
  TRY(tf_give_lists(c));
  return tf_order_inputs(c, bodies);
}

/* Maps and vectors are scratch, freed here also after a failure. */
int tf_cut_out(tf_part *out, base_arena *arena, tf_bodies *bodies, const tf_graph *g, uint32_t n, const uint32_t *nodes,
               xlac_error *err) {
  *out = (tf_part){.n_inputs = 0};
  tf_cutter c = {.part = out, .arena = arena, .g = g, .n = n, .nodes = nodes, .alloc = g->alloc, .err = err};
  base_map *maps[] = {&c.inner, &c.input_of, &c.output_of, &c.control_of};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) base_map_init(maps[i], g->alloc);
  int status = tf_graph_begin(&out->graph, g->def, err);
  if (status == 0) status = tf_build_part(&c, bodies);
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) base_map_free(maps[i]);
  BASE_VEC_FREE(c.alloc, &c.inputs);
  BASE_VEC_FREE(c.alloc, &c.outputs);
  BASE_VEC_FREE(c.alloc, &c.crossing);
  BASE_VEC_FREE(c.alloc, &c.control_in);
  BASE_VEC_FREE(c.alloc, &c.control_out);
  return status;
}

/* The lists are the arena's. */
void tf_part_free(tf_part *part) {
  if (part->graph.def) tf_graph_free(&part->graph);
}
