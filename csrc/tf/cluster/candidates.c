/* Candidates: which nodes XLA may compile. The allow list by categories, the filters of RecursiveCompilabilityChecker,
 * then FindCompilationCandidates, which sends every node through them in the order of ids. */
#include "allow_list.h"
#include "../graph/op_def.h"
#include "../graph/functions.h"
#include "pass.h"

/* --- the allow list --- */

/* The categories, as TensorFlow 2.21 lists them. REDUCEWINDOW repeats PWRED, a slip of theirs that is kept. */

const tf_category tf_categories[] = {
    {"PW",
     "ComplexAbs Angle Conj Abs Acos Acosh Asin Atan Atanh Ceil Cos Cosh Sin Exp Expm1 Floor IsFinite "
     "IsInf IsNan Inv Reciprocal Log Log1p Invert LogicalNot Ndtri Neg Rint Round Rsqrt Sigmoid Sign Sinh "
     "Softplus Softsign Sqrt Square Tan Tanh Real Imag Erf Erfc Erfinv Lgamma Digamma Add AddV2 Sub Mul "
     "Div Atan2 Complex DivNoNan MulNoNan FloorDiv Xlogy Xlog1py Xdivy FloorMod BitwiseAnd BitwiseOr "
     "BitwiseXor LeftShift RightShift LogicalAnd LogicalOr Mod Maximum Minimum RealDiv ReciprocalGrad "
     "RsqrtGrad SqrtGrad TruncateDiv TruncateMod Equal NotEqual Greater GreaterEqual Less LessEqual "
     "SigmoidGrad SoftplusGrad SoftsignGrad TanhGrad Pow SquaredDifference ApproximateEqual AddN Bitcast "
     "Cast ClipByValue Const Empty Identity IdentityN Relu Relu6 ReluGrad Relu6Grad LeakyReluGrad Elu "
     "EluGrad Selu SeluGrad Select SelectV2 Transpose ConjugateTranspose _UnaryOpsComposition "
     "CollectiveReduceV2 CollectiveAssignGroupV2 PlaceholderWithDefault PreventGradient StopGradient "
     "Snapshot _EagerConst"},
    {"RED", "All Any Min Max Mean Prod Sum"},
    {"PWRED", "ArgMax ArgMin DiagPart Softmax SparseSoftmaxCrossEntropyWithLogits LogSoftmax"},
    {"REDUCEWINDOW", "ArgMax ArgMin DiagPart Softmax SparseSoftmaxCrossEntropyWithLogits LogSoftmax"},
    {"REDUCEWINDOWPW", "BiasAddGrad LRN LRNGrad"},
    {"BN",
     "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx FusedBatchNormGrad "
     "FusedBatchNormGradV2 FusedBatchNormGradV3"},
    {"Conv", "_FusedConv2D"},
    {"SORT", "TopKV2"},
    {"MISC",
     "ApproxTopK BroadcastTo ExpandDims Fill NoOp Range Rank Reshape Shape ShapeN Size Squeeze Transpose "
     "ZerosLike OnesLike BiasAdd BroadcastArgs BroadcastGradientArgs OneHot Concat ConcatV2 ConcatOffset "
     "Const MirrorPad MirrorPadGrad Pack Pad PadV2 Reverse ReverseV2 ReverseSequence Slice Split SplitV "
     "StridedSlice StridedSliceGrad ResourceStridedSliceAssign Tile Transpose InvertPermutation Unpack "
     "DeviceIndex TensorStridedSliceUpdate XlaConcatND XlaSplitND"},
    {NULL, NULL},
};

/* Whether `word` is one of the words of a text with single blanks between. A match within a longer word is passed
 * over: "Max" is not in "ArgMax Maximum". */
static bool tf_words_have(const char *words, const char *word) {
  assert(*word != 0);
  size_t n = strlen(word);
  for (const char *p = words; (p = strstr(p, word)) != NULL; p += n)
    if ((p == words || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0)) return true;
  return false;
}

bool tf_category_has_op(const tf_category *category, const char *op) {
  assert(category->name != NULL);
  return tf_words_have(category->ops, op);
}

/* Whether the category of that name has the op. FUSIBLE is the union of all categories (GetOrCreateAllowlist), not
 * a row of its own. */
static bool tf_category_has(base_slice name, const char *op) {
  bool all = base_slice_is(name, "FUSIBLE");
  for (const tf_category *c = tf_categories; c->name; c++)
    if ((all || base_slice_is(name, c->name)) && tf_words_have(c->ops, op)) return true;
  return false;
}

/* Cuts the next name off a list with commas between; an empty name where two commas meet. The list's NUL ends it. */
static base_slice tf_next_name(const char **list) {
  const char *from = *list;
  while (**list && **list != ',') ++*list;
  base_slice name = {from, (size_t)(*list - from)};
  *list += **list == ',';
  return name;
}

/* A list of nothing but commas allows everything, as the empty flag does: `any` stays true as long as no name that
 * says something was seen. */
bool tf_allow_list_has(const char *list, const char *op) {
  bool any = true; /* of an empty list */
  while (*list) {
    base_slice name = tf_next_name(&list);
    any = any && name.n == 0;
    if (base_slice_is(name, op) || tf_category_has(name, op)) return true;
  }
  return any;
}

int tf_exclude_list_check(const char *list, bool *exclude_where, xlac_error *err) {
  assert(list != NULL);
  *exclude_where = false;
  while (*list) {
    base_slice name = tf_next_name(&list);
    if (name.n == 0) continue;
    if (!base_slice_is(name, "Where"))
      return base_hint(
          err,
          base_fail(err, XLAC_E_BAD_ARGUMENT, "the operation '%.*s' in cluster_exclude_ops can't be excluded",
                    (int)(name.n < 80 ? name.n : 80), name.p),
          "TensorFlow can exclude Where only");
    *exclude_where = true;
  }
  return 0;
}

static bool tf_is_category(base_slice name) {
  for (const tf_category *c = tf_categories; c->name; c++)
    if (base_slice_is(name, c->name)) return true;
  return base_slice_is(name, "FUSIBLE");
}

/* Run once, before the nodes are looked at: TensorFlow ends the process for a name that it does not know
 * (LOG(FATAL)), here it is an error of the call. */
int tf_allow_list_check(const char *list, xlac_error *err) {
  while (*list) {
    base_slice name = tf_next_name(&list);
    if (name.n == 0 || tf_is_category(name)) continue;
    tf_op_row row;
    if (tf_op_row_find(name, &row) && (row.flags & TF_OP_XLA)) continue;
    return base_hint(err,
                     base_fail(err, XLAC_E_BAD_ARGUMENT,
                               "the operation '%.*s' in ops_to_cluster was not found among those XLA compiles",
                               (int)(name.n < 80 ? name.n : 80), name.p),
                     "names are case sensitive; categories are FUSIBLE, PW, RED, PWRED, REDUCEWINDOW, REDUCEWINDOWPW, "
                     "BN, Conv, SORT, MISC");
  }
  return 0;
}

/* --- what XLA can compile --- */

/* Whether XLA can compile a node: the filters of RecursiveCompilabilityChecker, in its order. */

/* Calls within calls that are followed. TensorFlow's RecursiveCompilabilityChecker stops at the same depth
 * (kMaxRecursionDepth), so what lies deeper is refused, not trusted. */
enum { TF_MOST_CALLS = 50 };

/* What all functions of one question share: the library, the row of the device that is asked for, and where errors
 * go. */
typedef struct tf_check {
  tf_bodies *bodies;
  const tf_compile_filter *filter;
  int kernels; /* tf_compilation_kernels */
  xlac_error *err;
} tf_check;

static bool tf_is_one_of(const tf_node *n, const char *const *names) {
  assert(n->op != NULL);
  for (; *names; names++)
    if (n->op->name->s[0] == **names && strcmp(n->op->name->s, *names) == 0) return true; /* few share a letter */
  return false;
}

/* Random ops with a state of their own. Compiled they give other numbers than TensorFlow's kernels, since XLA has
 * a generator of its own. */
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

/* Ops whose compiled kernels are less exact than TensorFlow's own (OpIsInaccurate). */
static bool tf_is_inaccurate(const tf_node *n) {
  static const char *const names[] = {"SelfAdjointEigV2", "Svd", NULL};
  return tf_is_one_of(n, names);
}

/* Ops whose compiled kernels are known to be slower than TensorFlow's (OpIsSlow). */
static bool tf_is_slow(const tf_node *n) {
  static const char *const names[] = {
      "SelfAdjointEigV2",    "Svd", "Qr", "MatrixInverse", "MatrixSolve", "ResizeBilinearGrad", "NonMaxSuppressionV3",
      "NonMaxSuppressionV4", NULL};
  return tf_is_one_of(n, names);
}

/* Prefix of the op's name; false for source and sink, which have no op. */
static bool tf_begins(const tf_node *n, const char *with) {
  return n->op && strncmp(n->op->name->s, with, strlen(with)) == 0;
}

/* Ops of the table that use a resource and bear its kind's name. */
bool tf_is_stack_op(const tf_node *n) {
  return n->op && n->op->resource != TF_RESOURCE_NONE && tf_begins(n, "Stack");
}

/* TensorArrayV3 and its relatives use a resource as stacks do; the op's name tells the two kinds apart. */
bool tf_is_tensor_array_op(const tf_node *n) {
  return n->op && n->op->resource != TF_RESOURCE_NONE && tf_begins(n, "TensorArray");
}

/* A cluster with one of these is compiled however small it is: TensorFlow has no faster way to run a While than to
 * compile it. Case is not among them, in TensorFlow neither. */
bool tf_is_functional_control_flow(const tf_node *n) {
  static const char *const names[] = {"While", "StatelessWhile", "If", "StatelessIf", NULL};
  return n->op && tf_is_one_of(n, names);
}

/* --- kernels --- */

/* Whether a type, or every type of a list, is one of `allowed`. A reference is allowed within a list only, where
 * its base type counts; an attribute that is missing or of another kind allows nothing. */
static bool tf_types_allowed(base_slice value, tf_type_set allowed) {
  unsigned type = 0;
  if (tf_attr_type(value, &type)) return type < TF_REF && (tf_type_bit(type) & allowed) != 0;
  const char *at = NULL;
  while (tf_attr_next_type(value, &at, &type))
    if (!(tf_type_bit(tf_base_type(type)) & allowed)) return false;
  return value.p != NULL;
}

/* Whether XLA has a kernel for the node's types on device `kernels` (0 CPU, 1 GPU, -1 none). A node that asks for
 * a kernel by label (_kernel) asks for one of TensorFlow's own, which XLA never has. */
static bool tf_has_kernel(const tf_node *n, int kernels) {
  assert(n->op != NULL && kernels < 2);
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

/* XLA's Const takes no strings, though the table's type set does not say so: the check is one of its own
 * (LogNotCompilable, "string constant"). */
static bool tf_is_string_const(const tf_node *n) {
  unsigned type = 0;
  return n->role == TF_ROLE_CONST && tf_attr_type(tf_attr_find(n->def->attrs, "dtype"), &type) && type == TF_STRING;
}

/* An Identity of a reference would hand out the variable's memory rather than a value. */
static bool tf_forwards_ref(const tf_graph *g, const tf_node *n) {
  int32_t output = 0;
  if (n->role != TF_ROLE_IDENTITY || n->n_inputs == 0) return false;
  const tf_node *from = &g->nodes.items[tf_producer(g, n, 0, &output)];
  return from->op && tf_output_type(from, (uint32_t)output) >= TF_REF;
}

/* The filters that depend on the node and its types alone, in the checker's order. */
static tf_refusal tf_check_kernel(const tf_check *c, const tf_graph *g, const tf_node *n) {
  if (tf_is_string_const(n)) return TF_REFUSED_STRING_CONST;
  if (tf_forwards_ref(g, n)) return TF_REFUSED_REF_FORWARDED;
  return tf_has_kernel(n, c->kernels) ? TF_REFUSED_NONE : TF_REFUSED_NO_KERNEL;
}

/* --- what the device's row says --- */

/* Whether some input is a resource handle; references count by their base type. */
static bool tf_takes_resource(const tf_node *n) {
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (tf_base_type(tf_input_type(n, i)) == TF_RESOURCE) return true;
  return false;
}

/* The filters that the row of the device decides, in the order of RecursiveCompilabilityChecker::IsCompilableNode:
 * the first that refuses is the one that users are told. `depth` is 1 for a node of the graph, more within
 * functions. */
static tf_refusal tf_check_filter(const tf_compile_filter *f, const tf_node *n, uint32_t depth) {
  assert(f->device != NULL && depth >= 1);
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

/* All nodes of a function's body, up to the first that is refused. *height is the number of calls below the body.
 * The verdict names the innermost node: a refusal in a function that the body calls keeps its own `inside`. */
static int tf_check_body_nodes(tf_check *c, const tf_graph *body, uint32_t depth, uint32_t *height, tf_verdict *out) {
  assert(depth > 1);
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

/* The entry of a body in the cache, made empty on first sight. The key is the call and the device's row, since
 * rows differ in what they cluster. */
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

/* Fills an entry. While it is filled it is in_progress, so that a function that calls itself meets its own entry
 * and is refused instead of followed for ever. */
static int tf_check_body(tf_check *c, const tf_callee *callee, uint32_t depth, tf_body_verdict *v) {
  assert(!v->in_progress && !v->known);
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

/* One function that a node calls. A cached verdict counts only where the calls below it fit under the limit from
 * here, too: the same body may be near enough from one caller and too deep from another. */
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

/* All functions of a node, in the order of its attributes (cond before body, then before else). The reason says
 * which part of the construct refused; what is inside keeps its own reason. */
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

/* What is refused for its place rather than for its op: ends of the graph, arguments at the outermost level
 * (within a function they are compiled with it), and nodes whose memory the scoped allocator has planned. */
static tf_refusal tf_check_place(const tf_node *n, uint32_t depth) {
  if (!tf_is_op(n)) return TF_REFUSED_NOT_AN_OP;
  if (depth == 1 && (n->role == TF_ROLE_ARG || n->role == TF_ROLE_RETVAL)) return TF_REFUSED_ARGUMENT;
  if (tf_attr_has(n->def->attrs, "_scoped_allocator") || tf_attr_has(n->def->attrs, "_forward_from"))
    return TF_REFUSED_SCOPED_ALLOCATOR;
  return TF_REFUSED_NONE;
}

/* One node at a depth. A direct call needs no kernel of its own: what it calls is compiled in its place. The row's
 * filters come last, after the callees, as in TensorFlow, which matters for the reason that users see only. */
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
  assert(filter->device != NULL);
  tf_check c = {.bodies = b, .filter = filter, .kernels = tf_compilation_kernels(filter->device), .err = err};
  uint32_t height = 0;
  return tf_check_node(&c, g, n, 1, &height, verdict);
}

/* --- the candidates of a graph --- */

/* One text a row of refusals.def; the enum is made of the same rows, so the two can't disagree. */
const char *tf_refusal_text(tf_refusal why) {
  static const char *const texts[] = {
#define REFUSAL(name, text) text,
#include "refusals.def"
#undef REFUSAL
  };
  assert(why < sizeof texts / sizeof *texts);
  return texts[why];
}

/* Candidates: nodes in the order of their ids, through the filters in TensorFlow's order. */

tf_attrs tf_callee_attrs(const tf_node *n) {
  return n->op && n->op->function ? n->op->function->attrs : (tf_attrs){0, NULL};
}

/* The node's own attribute wins over its callee's. */
static bool tf_find_bool(const tf_node *n, const char *key, bool *value, bool *on_callee) {
  *on_callee = false;
  if (tf_attr_bool(tf_attr_find(n->def->attrs, key), value)) return true;
  *on_callee = true;
  return tf_attr_bool(tf_attr_find(tf_callee_attrs(n), key), value);
}

/* True where either the node or the function that it calls says so: unlike _XlaCompile, whose false value counts,
 * too. */
static bool tf_is_set(const tf_node *n, const char *key) {
  return tf_attr_is_true(n->def->attrs, key) || tf_attr_is_true(tf_callee_attrs(n), key);
}

/* _XlaCompile asks for one node whatever the level is; _XlaMustCompile (tf.function(jit_compile=True)) counts only
 * where clustering is on at all. */
bool tf_is_forced(const tf_pass *p, const tf_node *n) {
  bool value = false, on_callee = false;
  if (tf_find_bool(n, "_XlaCompile", &value, &on_callee) && value) return true;
  return p->jit_level > 0 && tf_is_set(n, "_XlaMustCompile");
}

/* Whether auto-clustering is on for a device. The last line is OptimizerOptions.cpu_global_jit of a session, which
 * turns it on for CPUs alone. */
bool tf_should_compile(const tf_pass *p, bool forced, uint32_t device) {
  assert(device < p->devices.n);
  const tf_device_registration *r = p->devices.items[device].registration;
  if (!r) return false;
  if (forced || r->autoclustering_policy == XLAC_CLUSTER_ALWAYS) return true;
  if (r->autoclustering_policy == XLAC_CLUSTER_IF_ENABLED_GLOBALLY) return p->jit_level > 0;
  return p->flags.session_cpu_global_jit && base_slice_is(p->devices.items[device].type, "CPU");
}

/* The filters of FindCompilationCandidates in their order; v->why is set before each test to the reason that holds
 * if the test returns, and is TF_REFUSED_NONE or TF_REFUSED_NOT_LISTED at the end. */
static int tf_check_candidate(tf_pass *p, uint32_t id, tf_verdict *v, xlac_error *err) {
  const tf_node *n = &p->graph.nodes.items[id];
  bool value = false, on_callee = false;
  v->why = TF_REFUSED_NOT_AN_OP;
  if (!tf_is_op(n)) return 0;
  v->why = TF_REFUSED_XLA_COMPILE_FALSE;
  if (tf_find_bool(n, "_XlaCompile", &value, &on_callee) && !value) {
    if (on_callee) v->why = TF_REFUSED_FUNCTION_XLA_COMPILE_FALSE;
    return 0;
  }
  uint32_t device = p->device_of[id];
  const tf_device_registration *r = device == TF_NO_EDGE ? NULL : p->devices.items[device].registration;
  v->why = TF_REFUSED_UNKNOWN_DEVICE;
  if (!r) return 0;
  v->why = TF_REFUSED_NOT_ENABLED;
  if (!tf_should_compile(p, tf_is_forced(p, n), device)) return 0;
  tf_compile_filter filter = {r, p->exclude_where};
  TRY(tf_check_compilable(&p->bodies, &filter, &p->graph, n, v, err));
  if (v->why != TF_REFUSED_NONE) return 0;
  if (!tf_allow_list_has(p->flags.ops_to_cluster, n->op->name->s)) v->why = TF_REFUSED_NOT_LISTED;
  return 0;
}

/* The Identity that keeps a loop's condition alive in its body: compiled with the loop's condition it would make a
 * cycle. */
static bool tf_is_loop_identity(const tf_graph *g, const tf_node *n) {
  int32_t output = 0;
  if (n->role != TF_ROLE_IDENTITY || n->n_inputs != 1) return false;
  const tf_node *sw = &g->nodes.items[tf_producer(g, n, 0, &output)];
  if (sw->role != TF_ROLE_SWITCH || output != 1) return false;
  int32_t unused = 0;
  if (g->nodes.items[tf_producer(g, sw, 1, &unused)].role != TF_ROLE_LOOP_COND) return false;
  TF_EACH_OUT(g, n, e)
  if (g->edges.items[e].src_output == TF_CONTROL && g->nodes.items[g->edges.items[e].dst].role == TF_ROLE_CONST)
    return true;
  return false;
}

/* A stateful op whose value a compiled consumer needs as a constant would be evaluated at compile time and then
 * frozen into the executable. Stacks and TensorArrays are exempt: what is constant of them is their size. */
static bool tf_is_stateful_constant(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  return p->must_be_constant[id] && (n->op->flags & TF_OP_STATEFUL) && !tf_is_stack_op(n) && !tf_is_tensor_array_op(n);
}

int tf_check_device(const tf_pass *p, uint32_t id, xlac_error *err) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (p->device_of[id] == TF_NO_DEVICE || !p->devices.items[p->device_of[id]].malformed) return 0;
  return base_hint(
      err,
      base_fail(err, XLAC_E_BAD_ARGUMENT, "node '%.120s' has a malformed device '%.120s'", n->name->s, n->device->s),
      "devices look like /job:name/replica:0/task:0/device:CPU:0, of which parts may be left out");
}

/* Fuel counts candidates that were accepted, in the order of ids: bisecting over it finds the node whose
 * clustering breaks a model (tf_xla_clustering_fuel). Malformed devices are reported as long as there is fuel
 * only, as TensorFlow, which stops looking, does. */
int tf_find_candidates(tf_pass *p, xlac_error *err) {
  assert(p->graph.nodes.n > TF_SINK);
  int64_t fuel = p->flags.clustering_fuel;
  TRY(tf_allow_list_check(p->flags.ops_to_cluster, err));
  TRY(tf_exclude_list_check(p->flags.cluster_exclude_ops, &p->exclude_where, err));
  TRY(tf_must_be_constant(&p->bodies, &p->graph, NULL, NULL, p->must_be_constant, err));
  for (uint32_t id = 0; id < p->graph.nodes.n; id++) {
    const tf_node *n = &p->graph.nodes.items[id];
    tf_verdict *v = &p->verdicts[id];
    if (fuel > 0) TRY(tf_check_device(p, id, err));
    *v = (tf_verdict){.why = TF_REFUSED_NONE};
    TRY(tf_check_candidate(p, id, v, err));
    if (v->why == TF_REFUSED_NONE && tf_is_stateful_constant(p, id)) v->why = TF_REFUSED_STATEFUL_CONSTANT;
    if (v->why == TF_REFUSED_NONE && tf_is_loop_identity(&p->graph, n)) v->why = TF_REFUSED_LOOP_IDENTITY;
    if (v->why == TF_REFUSED_NONE && fuel <= 0) v->why = TF_REFUSED_FUEL;
    if (v->why != TF_REFUSED_NONE) continue;
    p->candidate[id] = 1;
    p->n_candidates++;
    fuel--;
  }
  return 0;
}
