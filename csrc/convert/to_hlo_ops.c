/* From MLIR form to HLO form: one rule an opcode. Ops of the same name and no attributes need none. */
#include "to_hlo.h"

/* The same op with the same operands. */
static ir_op *same_op(to_hlo_op *x, ir_opcode opcode, uint32_t n_called) {
  return to_hlo_emit(x, opcode, to_hlo_result_type(x), x->op->n_operands, x->operands, n_called);
}

/* The same op; its regions are computations on scalars. */
static ir_op *with_regions(to_hlo_op *x, int *status) {
  ir_op *made = NULL;
  ir_computation *called[4];
  uint32_t n = x->op->n_called;
  assert(n <= 4);
  *status = 0;
  for (uint32_t i = 0; i < n && *status == 0; i++) *status = to_hlo_scalar_region(x, x->op->called[i], &called[i]);
  if (*status == 0 && !(made = same_op(x, x->op->opcode, n))) *status = to_hlo_no_memory(x->t);
  for (uint32_t i = 0; made && i < n; i++) made->called[i] = called[i];
  return made;
}

static int put_word(to_hlo_op *x, ir_op *made, ir_attr_key key, const char *word) {
  return ir_set_str(made, key, word, strlen(word)) ? 0 : to_hlo_no_memory(x->t);
}

static int one_dim(to_hlo_op *x, ir_op *made, const char *name) {
  int64_t d = ir_m_get_int(x->op, name, 0);
  return ir_set_ints(made, IR_ATTR_DIMENSIONS, 1, &d) ? 0 : to_hlo_no_memory(x->t);
}

/* --- attributes of ops that keep their operands --- */

static int compare_attrs(to_hlo_op *x, ir_op *made) {
  const char *type = ir_m_get_str(x->op, "compare_type");
  TRY(put_word(x, made, IR_ATTR_DIRECTION, ir_m_get_str(x->op, "comparison_direction")));
  return strcmp(type, "TOTALORDER") == 0 ? put_word(x, made, IR_ATTR_TYPE, type) : 0;
}

static int sort_attrs(to_hlo_op *x, ir_op *made) {
  int64_t d = ir_m_get_int(x->op, "dimension", -1);
  if (d < 0) d += x->op->type->rank;
  return ir_set_ints(made, IR_ATTR_DIMENSIONS, 1, &d) ? 0 : to_hlo_no_memory(x->t);
}

static int scan_attrs(to_hlo_op *x, ir_op *made) {
  uint32_t n;
  const int64_t *segments = ir_m_ints(ir_mattr_of(x->op, "operandSegmentSizes"), &x->t->to->arena, &n);
  int64_t carries = n == 2 ? segments[1] : 0;
  TRY(one_dim(x, made, "dimension"));
  if (!ir_set_int(made, IR_ATTR_NUM_CARRIES, carries)) return to_hlo_no_memory(x->t);
  return to_hlo_flag(x, made, "is_reverse", IR_ATTR_IS_REVERSE);
}

/* Attributes that the table of pairs has no row for. */
static int own_attrs(to_hlo_op *x, ir_op *made) {
  switch (x->op->opcode) {
    case IR_OP_COMPARE:
      return compare_attrs(x, made);
    case IR_OP_SORT:
      return sort_attrs(x, made);
    case IR_OP_SCAN:
      return scan_attrs(x, made);
    case IR_OP_TOPK:
      return ir_set_bool(made, IR_ATTR_LARGEST, true) ? 0 : to_hlo_no_memory(x->t);
    default:
      return 0;
  }
}

static int plain(to_hlo_op *x) {
  int status;
  ir_op *made = with_regions(x, &status);
  TRY(status);
  TRY(to_hlo_attrs(x, made));
  TRY(own_attrs(x, made));
  return to_hlo_results(x, made);
}

/* --- ops with a rule of their own --- */

static int rng(to_hlo_op *x) {
  ir_op *made = to_hlo_emit(x, IR_OP_RNG, to_hlo_result_type(x), 2, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_attrs(x, made));
  return to_hlo_results(x, made);
}

/* A function that is called as a fusion by one call alone, as HLO wants it. */
static bool is_fusion(to_hlo_op *x, const base_istr *callee) {
  const char *kind = ir_m_get_str(x->op, "mhlo.fusion_kind");
  const char *const *words = ir_attr_words(IR_OP_FUSION, IR_ATTR_KIND);
  while (*words && strcmp(*words, kind) != 0) words++;
  return *words && to_hlo_mentioned_once(x->t, callee);
}

static int call(to_hlo_op *x, const char *attr) {
  ir_computation *callee;
  const base_istr *name = ir_mattr_of(x->op, attr)->v.list->v[0]->str;
  bool fusion = is_fusion(x, name);
  TRY(to_hlo_function(x, name, &callee));
  ir_op *made = same_op(x, fusion ? IR_OP_FUSION : IR_OP_CALL, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = callee;
  if (fusion) TRY(put_word(x, made, IR_ATTR_KIND, ir_m_get_str(x->op, "mhlo.fusion_kind")));
  if (x->op->opcode == IR_OP_COMPOSITE) TRY(to_hlo_composite(x, made));
  return to_hlo_results(x, made);
}

static int token(to_hlo_op *x) {
  return to_hlo_results(
      x, to_hlo_emit(x, IR_OP_AFTER_ALL, to_hlo_type(x->t, x->op->type), x->op->n_operands, x->operands, 0));
}

static int tuple(to_hlo_op *x) {
  return to_hlo_results(x, same_op(x, IR_OP_TUPLE, 0));
}

/* What HLO has no op for stays as it is, with its MLIR attributes, for the interpreter. */
static int kept(to_hlo_op *x) {
  if (!x->t->options.executable) {
    const ir_mlir_info *info = ir_op_table[x->op->opcode].mlir;
    int status =
        to_hlo_fail(x->t, x->op, XLAC_E_UNKNOWN_OPCODE, "HLO has no op for %s", info ? info->name : x->op->u.name->s);
    return base_hint(x->t->err, status, "run the passes that expand it first: see docs/passes.md");
  }
  int status;
  ir_op *made = with_regions(x, &status);
  TRY(status);
  made->mlir = ir_mdict_import(x->t->to, x->op->mlir);
  if (x->op->mlir && !made->mlir) return to_hlo_no_memory(x->t);
  if (x->op->opcode == IR_OP_UNREGISTERED) {
    made->u.name = ir_intern(x->t->to, x->op->u.name->s, x->op->u.name->n);
    if (!made->u.name) return to_hlo_no_memory(x->t);
  }
  return to_hlo_results(x, made);
}

/* StableHLO takes a complex number for true when its real part is not zero; HLO when either part is not. */
static int convert_truth(to_hlo_op *x) {
  const ir_type *from = x->operands[0]->type, *to = x->op->type;
  ir_op *operand = x->operands[0];
  if (ir_is_tensor(from) && base_dtype_is_complex((base_dtype)from->dtype) && to->dtype == XLAC_PRED) {
    base_dtype part = base_dtype_real_part((base_dtype)from->dtype);
    const ir_type *real = ir_tensor_default(x->t->to, part, from->rank, from->dims, x->t->err);
    if (!real || !(operand = to_hlo_emit(x, IR_OP_REAL, real, 1, &operand, 0))) return to_hlo_no_memory(x->t);
  }
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_CONVERT, to_hlo_result_type(x), 1, &operand, 0));
}

static to_hlo_fn *const rules[IR_OP_COUNT] = {
    [IR_OP_CONSTANT] = to_hlo_constant,
    [IR_OP_CONVERT] = convert_truth,
    [IR_OP_CHLO_CONSTANT] = to_hlo_constant,
    [IR_OP_BROADCAST] = to_hlo_broadcast_in_dim,
    [IR_OP_STABLEHLO_BROADCAST] = to_hlo_legacy_broadcast,
    [IR_OP_STABLEHLO_DOT] = to_hlo_legacy_dot,
    [IR_OP_CONVOLUTION] = to_hlo_convolution,
    [IR_OP_REDUCE_WINDOW] = to_hlo_reduce_window,
    [IR_OP_SELECT_AND_SCATTER] = to_hlo_select_and_scatter,
    [IR_OP_PAD] = to_hlo_pad,
    [IR_OP_SLICE] = to_hlo_slice_op,
    [IR_OP_RNG] = rng,
    [IR_OP_WHILE] = to_hlo_while,
    [IR_OP_IF] = to_hlo_branches,
    [IR_OP_CONDITIONAL] = to_hlo_branches,
    [IR_OP_OPT_BARRIER] = to_hlo_barrier,
    [IR_OP_CUSTOM_CALL] = to_hlo_custom_call,
    [IR_OP_TUPLE] = tuple,
    [IR_OP_AFTER_ALL] = token,
    [IR_OP_CREATE_TOKEN] = token,
    [IR_OP_ASYNC_START] = to_hlo_async_start,
    [IR_OP_ASYNC_DONE] = to_hlo_async_done,
    [IR_OP_ALL_REDUCE] = to_hlo_all_reduce,
    [IR_OP_REDUCE_SCATTER] = to_hlo_all_reduce,
    [IR_OP_COLLECTIVE_REDUCE] = to_hlo_all_reduce,
    [IR_OP_ALL_TO_ALL] = to_hlo_all_to_all,
    [IR_OP_COLLECTIVE_PERMUTE] = to_hlo_permute,
    [IR_OP_COLLECTIVE_BROADCAST] = to_hlo_permute,
    [IR_OP_INFEED] = to_hlo_infeed,
    [IR_OP_OUTFEED] = to_hlo_outfeed,
    [IR_OP_SEND] = to_hlo_send,
    [IR_OP_RECV] = to_hlo_recv,
    [IR_OP_SDY_CONSTANT] = to_hlo_constant,
    [IR_OP_SDY_SHARDING_GROUP] = to_hlo_sdy_note,
    [IR_OP_SDY_DATA_FLOW_EDGE] = to_hlo_sdy_note,
    [IR_OP_SDY_FUNC_DATA_FLOW_EDGE] = to_hlo_sdy_note,
    [IR_OP_SDY_PROPAGATION_BARRIER] = to_hlo_sdy_note,
    [IR_OP_SDY_NAMED_COMPUTATION] = to_hlo_sdy_named,
    [IR_OP_SDY_MANUAL_COMPUTATION] = to_hlo_sdy_manual,
    [IR_OP_SDY_SHARDING_CONSTRAINT] = to_hlo_sdy_move,
    [IR_OP_SDY_RESHARD] = to_hlo_sdy_move,
    [IR_OP_SDY_ALL_GATHER] = to_hlo_sdy_move,
    [IR_OP_SDY_ALL_SLICE] = to_hlo_sdy_move,
    [IR_OP_SDY_ALL_TO_ALL] = to_hlo_sdy_move,
    [IR_OP_SDY_COLLECTIVE_PERMUTE] = to_hlo_sdy_move,
    [IR_OP_SDY_ALL_REDUCE] = to_hlo_sdy_move,
    [IR_OP_SDY_REDUCE_SCATTER] = to_hlo_sdy_move,
    [IR_OP_SDY_SHARDED_TO_UNREDUCED] = to_hlo_sdy_move,
    [IR_OP_SDY_REPLICATED_TO_UNREDUCED] = to_hlo_sdy_move,
};

/* HLO's needs bounds, and as many sizes as dimensions. */
static bool is_bounded_reshape(const ir_op *op) {
  if (op->opcode != IR_OP_STABLEHLO_DYNAMIC_RESHAPE || !ir_is_tensor(op->type)) return false;
  for (uint32_t i = 0; i < op->type->rank; i++)
    if (op->type->dims[i] == IR_UNBOUNDED) return false;
  const ir_type *sizes = ir_operand_type(op, 1);
  return ir_is_tensor(sizes) && sizes->rank == 1 && !sizes->has_dynamic && sizes->dims[0] == op->type->rank &&
         !sizes->text;
}

int to_hlo_one(to_hlo_op *x) {
  unsigned opcode = x->op->opcode;
  TRY(to_hlo_promote(x));
  if (rules[opcode]) return rules[opcode](x);
  if (opcode == IR_OP_UNREGISTERED && x->t->options.executable && !strcmp(x->op->u.name->s, "interpreter.run_parallel"))
    return to_hlo_run_parallel(x);
  if (opcode == IR_OP_CALL) return call(x, "callee");
  if (opcode == IR_OP_COMPOSITE) return call(x, "decomposition");
  if (!x->t->options.executable && is_bounded_reshape(x->op)) return to_hlo_dynamic_reshape(x);
  if (!x->t->options.executable && to_hlo_is_simple_chlo(x->op)) return to_hlo_simple_chlo(x);
  return ir_opcode_has(opcode, IR_MLIR_ONLY) ? kept(x) : plain(x);
}
