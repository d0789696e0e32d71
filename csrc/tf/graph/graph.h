/* The graph that the passes work on: nodes with ids and edges with ids, made from a GraphDef as TensorFlow makes
 * them, since every later decision depends on their order. Node 0 is the source, 1 the sink; every other node can
 * be reached from the source. A graph borrows from its GraphDef, which must outlive it; names, ops and types lie
 * in the GraphDef's arena, so pointers to them stay valid when the lists grow, pointers to nodes and edges do not. */
#ifndef XLAC_TF_GRAPH_GRAPH_H
#define XLAC_TF_GRAPH_GRAPH_H

#include "op_def.h"

enum { TF_SOURCE = 0, TF_SINK = 1, TF_CONTROL = -1 };

/* Ops the passes treat in a way of their own. */
typedef enum tf_role {
  TF_ROLE_OTHER,
  TF_ROLE_SWITCH,
  TF_ROLE_SWITCH_N,
  TF_ROLE_MERGE,
  TF_ROLE_ENTER,
  TF_ROLE_EXIT,
  TF_ROLE_NEXT_ITERATION,
  TF_ROLE_LOOP_COND,
  TF_ROLE_CONTROL_TRIGGER,
  TF_ROLE_RECV,
  TF_ROLE_CONST,
  TF_ROLE_IDENTITY,
  TF_ROLE_ARG,
  TF_ROLE_RETVAL
} tf_role;

/* An edge from an output to an input, or between two nodes whose order it sets. */
typedef struct tf_edge {
  uint32_t src, dst;
  int32_t src_output, dst_input; /* TF_CONTROL both, or neither */
  uint32_t next_in, next_out;    /* the next edge into dst, out of src; TF_NO_EDGE at the end */
} tf_edge;
#define TF_NO_EDGE UINT32_MAX

typedef struct tf_node {
  const tf_node_def *def; /* NULL for source and sink */
  const tf_op_def *op;
  const base_istr *name;
  const base_istr *device;          /* as assigned; NULL where none is */
  const uint8_t *types;             /* of the inputs, then of the outputs */
  uint32_t n_inputs, n_outputs;     /* without control */
  uint32_t first_in, last_in, n_in; /* edges, control too */
  uint32_t first_out, last_out, n_out;
  uint8_t role; /* tf_role */
} tf_node;

BASE_VEC(tf_node_list, tf_node);
BASE_VEC(tf_edge_list, tf_edge);

/* Owns the two lists. def is not const: passes intern names and make nodes in its arena. */
typedef struct tf_graph {
  tf_graph_def *def;
  base_alloc alloc;
  tf_node_list nodes;
  tf_edge_list edges;
  bool edited; /* nodes and edges are no longer what def says */
} tf_graph;

/* Imports all of g's nodes; assigned devices are the requested ones, else default_device. Errors name the node: unknown
 * ops, missing or surplus inputs, types that can't be found, names twice, cycles outside loops. */
XLAC_MUST_USE int tf_graph_import(tf_graph *out, tf_graph_def *g, const base_istr *default_device, xlac_error *err);
/* Imports the body of a function: its arguments are nodes of op _Arg, its results of op _Retval. `call` has the values
 * of attributes that the body leaves open. */
XLAC_MUST_USE int tf_graph_import_function(tf_graph *out, tf_graph_def *g, const tf_function *fn, tf_attrs call,
                                           xlac_error *err);
/* A graph of source, sink and the edge between them. */
XLAC_MUST_USE int tf_graph_begin(tf_graph *g, tf_graph_def *def, xlac_error *err);
/* Takes a graph that is all zeros, too. */
void tf_graph_free(tf_graph *g);
/* Adds the node without its edges, as the last one; out (may be NULL) is its id. */
XLAC_MUST_USE int tf_graph_add_node(tf_graph *g, const tf_node *node, uint32_t *out, xlac_error *err);
/* Adds an _Arg that gives, or a _Retval that takes, a value of that type; what it needs is in the arena. */
XLAC_MUST_USE int tf_graph_add_end(tf_graph *g, base_arena *arena, const base_istr *name, unsigned type, bool arg,
                                   xlac_error *err);
/* Fails when out of memory. */
XLAC_MUST_USE int tf_graph_add_edge(tf_graph *g, uint32_t src, int32_t output, uint32_t dst, int32_t input,
                                    xlac_error *err);
/* Nodes without incoming edges get one from the source, nodes without outgoing ones one to the sink. */
XLAC_MUST_USE int tf_graph_connect_ends(tf_graph *g, xlac_error *err);

/* --- changes --- */

/* A node like node `id` under another name, without edges, as the last one. */
XLAC_MUST_USE int tf_graph_copy_node(tf_graph *g, uint32_t id, const base_istr *name, uint32_t *out, xlac_error *err);
/* Takes out those of the first n edges that are marked; the others keep their order and are numbered anew. */
XLAC_MUST_USE int tf_graph_drop_edges(tf_graph *g, const uint8_t *gone, uint32_t n, xlac_error *err);
/* Appends the fields of a NodeDef with the inputs the node now has. names[id] are the nodes' names; NULL: their own. */
XLAC_MUST_USE int tf_graph_put_node(const tf_graph *g, uint32_t id, const base_istr *const *names, base_text *out,
                                    xlac_error *err);

/* --- cluster/prepare_graph.c: CloneConstantsForBetterClusteringPass --- */
/* Elements of a TensorProto by its shape, `most` where it has more; false for an unknown size. */
bool tf_count_elements(base_slice tensor, int64_t most, int64_t *count);
XLAC_MUST_USE int tf_clone_constants(tf_graph *g, xlac_error *err);

/* Types of a node's inputs and outputs from its op's arguments and its attributes (node_types.c). */
XLAC_MUST_USE int tf_node_types(tf_graph *g, tf_node *node, tf_attrs attrs, xlac_error *err);
/* How many values an argument of a node's op stands for; the node's types are known. */
int64_t tf_arg_values(const tf_node *n, const tf_arg_def *a);
/* The role of an op by its name. */
tf_role tf_role_of(const base_istr *op);

static inline unsigned tf_input_type(const tf_node *n, uint32_t i) {
  return n->types[i];
}
static inline unsigned tf_output_type(const tf_node *n, uint32_t i) {
  return n->types[n->n_inputs + i];
}
static inline bool tf_node_is(const tf_node *n, const char *op) {
  return n->op && strcmp(n->op->name->s, op) == 0;
}
static inline bool tf_is_op(const tf_node *n) {
  return n->def != NULL;
}
bool tf_has_type(const tf_node *n, unsigned type); /* any input or output, reference or not */
/* The node that gives data input i, and which of its outputs; TF_SOURCE where nothing is connected. */
uint32_t tf_producer(const tf_graph *g, const tf_node *n, int32_t i, int32_t *output);

/* All nodes, producers before consumers but for edges out of NextIteration: from the source, by depth first search with
 * names breaking ties. `order` has room for every node; *n are reached. */
XLAC_MUST_USE int tf_reverse_post_order(const tf_graph *g, uint32_t *order, uint32_t *n, xlac_error *err);

#define TF_EACH_IN(g, node, e) for (uint32_t e = (node)->first_in; e != TF_NO_EDGE; e = (g)->edges.items[e].next_in)
#define TF_EACH_OUT(g, node, e) for (uint32_t e = (node)->first_out; e != TF_NO_EDGE; e = (g)->edges.items[e].next_out)

#endif
