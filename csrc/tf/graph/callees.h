/* The functions that a node calls, by whatever way: its op is their name, or attributes name them. */
#ifndef XLAC_TF_GRAPH_CALLEES_H
#define XLAC_TF_GRAPH_CALLEES_H

#include "../cluster/pass.h"

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
