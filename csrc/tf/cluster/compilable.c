/* Whether XLA can compile a node: the filters of RecursiveCompilabilityChecker, in its order. */
#include "../graph/callees.h"

enum { TF_MOST_CALLS = 50 };

typedef struct tf_check {
  tf_bodies *bodies;
  const tf_compile_filter *filter;
  int kernels; /* tf_compilation_kernels */
  xlac_error *err;
} tf_check;

static bool tf_is_one_of(const tf_node *n, const char *const *names) {
  for (; *names; names++)
    if (strcmp(n->op->name->s, *names) == 0) return true;
  return false;
}

static bool tf_is_stateful_rng(const tf_node *n) {
  static const char *const names[] = {"RandomUniform",
                                      "RandomShuffle",
                                      "RandomUniformInt",
                                      "RandomStandardNormal",
                                      "TruncatedNormal",
                                      "Multinomial",
                                      NULL};
  return tf_is_one_of(n, names);
}

static bool tf_is_inaccurate(const tf_node *n) {
  static const char *const names[] = {"SelfAdjointEigV2", "Svd", NULL};
  return tf_is_one_of(n, names);
}

static bool tf_is_slow(const tf_node *n) {
  static const char *const names[] = {
      "SelfAdjointEigV2",    "Svd", "Qr", "MatrixInverse", "MatrixSolve", "ResizeBilinearGrad", "NonMaxSuppressionV3",
      "NonMaxSuppressionV4", NULL};
  return tf_is_one_of(n, names);
}

static bool tf_begins(const tf_node *n, const char *with) {
  return n->op && strncmp(n->op->name->s, with, strlen(with)) == 0;
}

/* Ops of the table that use a resource and bear its kind's name. */
bool tf_is_stack_op(const tf_node *n) {
  return n->op && n->op->resource != TF_RESOURCE_NONE && tf_begins(n, "Stack");
}

bool tf_is_tensor_array_op(const tf_node *n) {
  return n->op && n->op->resource != TF_RESOURCE_NONE && tf_begins(n, "TensorArray");
}

bool tf_is_functional_control_flow(const tf_node *n) {
  static const char *const names[] = {"While", "StatelessWhile", "If", "StatelessIf", NULL};
  return n->op && tf_is_one_of(n, names);
}

/* --- kernels --- */

static bool tf_types_allowed(base_slice value, tf_type_set allowed) {
  unsigned type = 0;
  if (tf_attr_type(value, &type)) return type < TF_REF && (tf_type_bit(type) & allowed) != 0;
  const char *at = NULL;
  while (tf_attr_next_type(value, &at, &type))
    if (!(tf_type_bit(tf_base_type(type)) & allowed)) return false;
  return value.p != NULL;
}

static bool tf_has_kernel(const tf_node *n, int kernels) {
  base_slice label;
  if (!(n->op->flags & TF_OP_XLA) || kernels < 0) return false;
  if (tf_attr_string(tf_attr_find(n->def->attrs, "_kernel"), &label) && label.n > 0) return false;
  for (uint32_t i = 0; i < n->op->n_on[kernels]; i++) {
    const tf_constraint *c = &n->op->on[kernels][i];
    base_slice name = {c->attr->s, c->attr->n};
    bool end = n->role == TF_ROLE_ARG || n->role == TF_ROLE_RETVAL; /* of a function: it has a type but no attributes */
    if (end && !(tf_type_bit(tf_base_type(n->types[0])) & c->allowed)) return false;
    if (!end && !tf_types_allowed(tf_attr_or_default(n->op, n->def->attrs, name), c->allowed)) return false;
  }
  return true;
}

static bool tf_is_string_const(const tf_node *n) {
  unsigned type = 0;
  return n->role == TF_ROLE_CONST && tf_attr_type(tf_attr_find(n->def->attrs, "dtype"), &type) && type == TF_STRING;
}

static bool tf_forwards_ref(const tf_graph *g, const tf_node *n) {
  int32_t output = 0;
  if (n->role != TF_ROLE_IDENTITY || n->n_inputs == 0) return false;
  const tf_node *from = &g->nodes.items[tf_producer(g, n, 0, &output)];
  return from->op && tf_output_type(from, (uint32_t)output) >= TF_REF;
}

static tf_refusal tf_check_kernel(const tf_check *c, const tf_graph *g, const tf_node *n) {
  if (tf_is_string_const(n)) return TF_REFUSED_STRING_CONST;
  if (tf_forwards_ref(g, n)) return TF_REFUSED_REF_FORWARDED;
  return tf_has_kernel(n, c->kernels) ? TF_REFUSED_NONE : TF_REFUSED_NO_KERNEL;
}

/* --- what the device's row says --- */

static bool tf_takes_resource(const tf_node *n) {
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (tf_base_type(tf_input_type(n, i)) == TF_RESOURCE) return true;
  return false;
}

static tf_refusal tf_check_filter(const tf_compile_filter *f, const tf_node *n, uint32_t depth) {
  const tf_device_registration *d = f->device;
  if (!d->cluster_stateful_rng_ops && tf_is_stateful_rng(n)) return TF_REFUSED_STATEFUL_RNG;
  if (!d->cluster_control_trigger && n->role == TF_ROLE_CONTROL_TRIGGER) return TF_REFUSED_CONTROL_TRIGGER;
  if (!d->elide_assert_and_checknumerics && (tf_node_is(n, "Assert") || tf_node_is(n, "CheckNumerics")))
    return TF_REFUSED_ASSERT;
  if (tf_node_is(n, "CollectiveReduceV2")) return TF_REFUSED_COLLECTIVE_REDUCE;
  if (f->exclude_where && tf_node_is(n, "Where")) return TF_REFUSED_WHERE;
  if (tf_node_is(n, "Unique")) return TF_REFUSED_UNIQUE;
  if (!d->cluster_variant_ops && tf_has_type(n, TF_VARIANT)) return TF_REFUSED_VARIANT;
  if (!d->cluster_stack_ops && tf_is_stack_op(n)) return TF_REFUSED_STACK;
  if (!d->cluster_tensor_array_ops && tf_is_tensor_array_op(n)) return TF_REFUSED_TENSOR_ARRAY;
  if (!d->cluster_resource_variable_ops_unsafely && depth > 1 && tf_takes_resource(n))
    return TF_REFUSED_RESOURCE_IN_FUNCTION;
  if (!d->cluster_inaccurate_ops && tf_is_inaccurate(n)) return TF_REFUSED_INACCURATE;
  if (!d->cluster_slow_ops && tf_is_slow(n)) return TF_REFUSED_SLOW;
  return TF_REFUSED_NONE;
}

/* --- functions: what is found for a body at one depth holds at any, but for the depth itself --- */

static int tf_check_node(tf_check *c, const tf_graph *g, const tf_node *n, uint32_t depth, uint32_t *height,
                         tf_verdict *out);

/* What is known of a body on one device. */
typedef struct tf_body_verdict {
  bool in_progress, known;
  uint32_t height; /* calls below */
  tf_verdict verdict;
} tf_body_verdict;

static int tf_check_body_nodes(tf_check *c, const tf_graph *body, uint32_t depth, uint32_t *height, tf_verdict *out) {
  *height = 0;
  for (uint32_t i = TF_SINK + 1; i < body->nodes.n; i++) {
    tf_verdict inner = {.why = TF_REFUSED_NONE};
    uint32_t below = 0;
    TRY(tf_check_node(c, body, &body->nodes.items[i], depth, &below, &inner));
    if (below > *height) *height = below;
    if (inner.why == TF_REFUSED_NONE) continue;
    *out = (tf_verdict){.why = TF_REFUSED_CALLEE,
                        .inside = body->nodes.items[i].name,
                        .op = body->nodes.items[i].op->name,
                        .inside_why = inner.why};
    if (inner.inside) *out = inner;
    out->why = TF_REFUSED_CALLEE;
    return 0;
  }
  return 0;
}

static int tf_verdict_of_body(tf_check *c, const tf_callee *callee, tf_body_verdict **out) {
  uint64_t key = tf_call_key(callee->function, callee->attrs) ^ base_key(c->filter->device) * 0x9E3779B97F4A7C15u,
           at = 0;
  if (base_map_get(&c->bodies->verdicts, key, &at)) {
    *out = (tf_body_verdict *)(uintptr_t)at;
    return 0;
  }
  *out = BASE_NEW(&c->bodies->def->arena, tf_body_verdict);
  if (!*out || !base_map_set(&c->bodies->verdicts, key, base_key(*out))) return base_oom(c->err, "finding candidates");
  return 0;
}

static int tf_check_body(tf_check *c, const tf_callee *callee, uint32_t depth, tf_body_verdict *v) {
  const tf_graph *body = NULL;
  TRY(tf_body_of(c->bodies, callee->function, callee->attrs, &body, c->err));
  v->verdict = (tf_verdict){.why = body ? TF_REFUSED_NONE : TF_REFUSED_UNKNOWN_FUNCTION};
  v->in_progress = true;
  if (body) TRY(tf_check_body_nodes(c, body, depth + 1, &v->height, &v->verdict));
  v->in_progress = false;
  /* Too deep is so from here; from nearer to the graph it may not be. */
  v->known = v->verdict.why != TF_REFUSED_TOO_DEEP && v->verdict.inside_why != TF_REFUSED_TOO_DEEP;
  return 0;
}

static int tf_check_callee(tf_check *c, const tf_callee *callee, uint32_t depth, uint32_t *height, tf_verdict *out) {
  tf_body_verdict *v = NULL;
  *height = 0;
  out->why = TF_REFUSED_UNKNOWN_FUNCTION;
  if (!callee->function) return 0;
  TRY(tf_verdict_of_body(c, callee, &v));
  out->why = TF_REFUSED_TOO_DEEP;
  if (v->in_progress || depth + (v->known ? v->height : 0) > TF_MOST_CALLS) return 0;
  if (!v->known) TRY(tf_check_body(c, callee, depth, v));
  *out = v->verdict;
  *height = v->height;
  return 0;
}

static int tf_check_callees(tf_check *c, const tf_callees *callees, uint32_t depth, uint32_t *height, tf_verdict *out) {
  static const uint8_t reasons[] = {[TF_CALL_DIRECT] = TF_REFUSED_CALLEE,
                                    [TF_CALL_WHILE] = TF_REFUSED_WHILE_BODY,
                                    [TF_CALL_IF] = TF_REFUSED_IF_BRANCH,
                                    [TF_CALL_CASE] = TF_REFUSED_CASE_BRANCH};
  if (callees->cut) out->why = TF_REFUSED_UNKNOWN_FUNCTION;
  for (uint32_t i = 0; i < callees->n && out->why == TF_REFUSED_NONE; i++) {
    uint32_t below = 0;
    TRY(tf_check_callee(c, &callees->list[i], depth, &below, out));
    if (below + 1 > *height) *height = below + 1;
    if (out->why == TF_REFUSED_CALLEE) out->why = reasons[callees->kind];
  }
  return 0;
}

/* --- one node --- */

static tf_refusal tf_check_place(const tf_node *n, uint32_t depth) {
  if (!tf_is_op(n)) return TF_REFUSED_NOT_AN_OP;
  if (depth == 1 && (n->role == TF_ROLE_ARG || n->role == TF_ROLE_RETVAL)) return TF_REFUSED_ARGUMENT;
  if (tf_attr_has(n->def->attrs, "_scoped_allocator") || tf_attr_has(n->def->attrs, "_forward_from"))
    return TF_REFUSED_SCOPED_ALLOCATOR;
  return TF_REFUSED_NONE;
}

static int tf_check_node(tf_check *c, const tf_graph *g, const tf_node *n, uint32_t depth, uint32_t *height,
                         tf_verdict *out) {
  tf_callees callees;
  out->why = (uint8_t)tf_check_place(n, depth);
  if (out->why != TF_REFUSED_NONE) return 0;
  TRY(tf_find_callees(c->bodies, n, &callees, c->err));
  if (callees.kind != TF_CALL_DIRECT) out->why = (uint8_t)tf_check_kernel(c, g, n);
  if (out->why == TF_REFUSED_NONE) TRY(tf_check_callees(c, &callees, depth, height, out));
  if (out->why == TF_REFUSED_NONE) out->why = (uint8_t)tf_check_filter(c->filter, n, depth);
  return 0;
}

int tf_check_compilable(tf_bodies *b, const tf_compile_filter *filter, const tf_graph *g, const tf_node *n,
                        tf_verdict *verdict, xlac_error *err) {
  tf_check c = {.bodies = b, .filter = filter, .kernels = tf_compilation_kernels(filter->device), .err = err};
  uint32_t height = 0;
  return tf_check_node(&c, g, n, 1, &height, verdict);
}
