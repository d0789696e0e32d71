/* Functions of a graph: their bodies, and which of them a node calls, by whatever way: its op is their name, or
 * attributes name them. One thread at a time: bodies are imported when they are first asked for. */
#ifndef XLAC_TF_GRAPH_FUNCTIONS_H
#define XLAC_TF_GRAPH_FUNCTIONS_H

#include "graph.h"

/* --- bodies, imported once --- */

/* Caches by function, shared by candidates, constness and lowering. Keys are tf_call_key, values live in the arena
 * of the GraphDef, but for the graphs, which tf_bodies_free frees. */
typedef struct tf_bodies {
  tf_graph_def *def;
  base_alloc alloc;
  base_map by_function; /* tf_call_key -> tf_graph * */
  base_map verdicts;    /* tf_call_key and device -> what was found */
  base_map constants;   /* tf_call_key -> which arguments must be constants */
} tf_bodies;
void tf_bodies_init(tf_bodies *b, tf_graph_def *def);
void tf_bodies_free(tf_bodies *b);
/* The function of that name, or NULL. */
const tf_function *tf_bodies_find(const tf_bodies *b, base_slice name);
/* Its body; *out NULL where it is malformed (err untouched). */
XLAC_MUST_USE int tf_body_of(tf_bodies *b, const tf_function *fn, tf_attrs call, const tf_graph **out, xlac_error *err);
/* Why it is malformed: fails. */
XLAC_MUST_USE int tf_body_fails(tf_bodies *b, const tf_function *fn, tf_attrs call, xlac_error *err);
/* What a call of fn with these attributes is known by: one key for all calls where the body leaves nothing open. */
uint64_t tf_call_key(const tf_function *fn, tf_attrs call);

/* --- callees --- */

typedef enum tf_call_kind { TF_CALL_NONE, TF_CALL_DIRECT, TF_CALL_WHILE, TF_CALL_IF, TF_CALL_CASE } tf_call_kind;

/* Branches of a Case that are looked into. */
enum { TF_MOST_CALLEES = 64 };
typedef struct tf_callee {
  base_slice name;
  const tf_function *function; /* NULL where the library has none */
  tf_attrs attrs;              /* values for what its body leaves open */
} tf_callee;

typedef struct tf_callees {
  tf_call_kind kind;
  uint32_t n;
  tf_callee
      list[TF_MOST_CALLEES]; /* WHILE: cond, body; IF: then, else; CASE: the branches; more than fit are unknown */
  bool cut;
} tf_callees;

/* Fills *out; fails only when out of memory. Functions that the library lacks are listed, with `function` NULL. */
XLAC_MUST_USE int tf_find_callees(const tf_bodies *b, const tf_node *n, tf_callees *out, xlac_error *err);

#endif
