/* The categories, as TensorFlow 2.21 lists them. REDUCEWINDOW repeats PWRED, a slip of theirs that is kept. */
#include "allow_list.h"

#include "../graph/op_def.h"

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

static bool tf_words_have(const char *words, const char *word) {
  size_t n = strlen(word);
  for (const char *p = words; (p = strstr(p, word)) != NULL; p += n)
    if ((p == words || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0)) return true;
  return false;
}

bool tf_category_has_op(const tf_category *category, const char *op) {
  return tf_words_have(category->ops, op);
}

static bool tf_category_has(base_slice name, const char *op) {
  bool all = base_slice_is(name, "FUSIBLE");
  for (const tf_category *c = tf_categories; c->name; c++)
    if ((all || base_slice_is(name, c->name)) && tf_words_have(c->ops, op)) return true;
  return false;
}

static base_slice tf_next_name(const char **list) {
  const char *from = *list;
  while (**list && **list != ',') ++*list;
  base_slice name = {from, (size_t)(*list - from)};
  *list += **list == ',';
  return name;
}

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
