/* From MLIR form to HLO form: one rule an opcode. Ops of the same name and no attributes need none.
 *
 * A rule reads x->op and x->operands, makes ops with to_hlo_emit and sets x->results. `plain` is the rule of most:
 * the same opcode, the same operands, attributes by the table, regions as computations on scalars. */
#include "to_hlo.h"
#include "../ir/sdy/sdy.h"

/* ---- CHLO's functions that a few HLO ops give exactly. The others are expanded by passes, or run by the interpreter.
 */

/* A scalar 1 of the operand's element type, spread over `type`. */
static ir_op *chlo_ones(to_hlo_op *x, const ir_type *type) {
  const ir_type *scalar = ir_scalar(x->t->to, (base_dtype)type->dtype);
  ir_literal *one = scalar ? ir_literal_new(x->t->to, scalar) : NULL;
  ir_op *made = one ? to_hlo_emit(x, IR_OP_CONSTANT, scalar, 0, NULL, 0) : NULL;
  if (!made) return NULL;
  base_store_f64((base_dtype)type->dtype, one->data, 1);
  made->u.literal = one;
  made = to_hlo_emit(x, IR_OP_BROADCAST, type, 1, &made, 0);
  return made && ir_set_ints(made, IR_ATTR_DIMENSIONS, 0, NULL) ? made : NULL;
}

/* atan(x) is atan2(x, 1); XLA 0.10.2 has no op of one operand. Not of complex numbers. */
static int chlo_atan(to_hlo_op *x, const ir_type *type) {
  ir_op *operands[2] = {x->operands[0], chlo_ones(x, type)};
  if (!operands[1]) return to_hlo_no_memory(x->t);
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_ATAN2, type, 2, operands, 0));
}

/* Of any element type, but for atan. */
bool to_hlo_is_simple_chlo(const ir_op *op) {
  if (op->opcode == IR_OP_CHLO_TAN || op->opcode == IR_OP_SQUARE) return true;
  return op->opcode == IR_OP_ATAN && base_dtype_is_float((base_dtype)op->type->dtype);
}

/*   chlo.square %x    multiply(%x, %x)        chlo.tan %x    tan(%x)        chlo.atan %x    atan2(%x, ones) */
int to_hlo_simple_chlo(to_hlo_op *x) {
  const ir_type *type = to_hlo_result_type(x);
  if (!type) return to_hlo_no_memory(x->t);
  if (x->op->opcode == IR_OP_ATAN) return chlo_atan(x, type);
  if (x->op->opcode == IR_OP_CHLO_TAN) return to_hlo_results(x, to_hlo_emit(x, IR_OP_TAN, type, 1, x->operands, 0));
  ir_op *operands[2] = {x->operands[0], x->operands[0]};
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_MULTIPLY, type, 2, operands, 0));
}

/* ---- The custom call ApproxTopK where it says that it is but a fallback: sorted, then cut, as XLA itself takes it. */

/* A dictionary, as JAX writes it. NULL where it has none. */
static const ir_mattr *approx_config(const ir_op *op) {
  const ir_mattr *config = ir_mattr_of(op, "mhlo.backend_config");
  return config && config->kind == IR_M_DICT ? config : NULL;
}

/* The dimension that is sorted, or -1 where the op is not of this form. */
static int64_t approx_dimension(const ir_op *op) {
  const ir_mattr *config = approx_config(op), *called = ir_mattr_of(op, "called_computations");
  const ir_mattr *fallback = config ? ir_m_field(config, "is_fallback") : NULL;
  const ir_mattr *dim = config ? ir_m_field(config, "reduction_dim") : NULL;
  if (!fallback || fallback->kind != IR_M_BOOL || !fallback->v.b || !dim || dim->kind != IR_M_INTEGER) return -1;
  if (!called || called->v.list->n != 1 || op->n_results == 0 || op->n_operands != 2 * op->n_results) return -1;
  const ir_type *first = ir_operand_type(op, 0);
  if (!ir_is_tensor(first) || dim->v.i < 0 || dim->v.i >= first->rank) return -1;
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_type *from = ir_operand_type(op, i), *to = op->types[i];
    if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->has_dynamic || to->has_dynamic) return -1;
    if (from->rank != first->rank || to->rank != first->rank || from->dtype != to->dtype) return -1;
    for (uint32_t d = 0; d < first->rank; d++) {
      bool fits = d == dim->v.i ? to->dims[d] <= from->dims[d] : to->dims[d] == from->dims[d];
      if (!fits || from->dims[d] != first->dims[d]) return -1;
    }
  }
  return dim->v.i;
}

bool to_hlo_is_approx_topk(const ir_op *op) {
  return strcmp(ir_m_get_str(op, "call_target_name"), "ApproxTopK") == 0 && approx_dimension(op) >= 0;
}

/* Stable, as XLA's own fallback is. */
static ir_op *approx_sort(to_hlo_op *x, int64_t dimension, ir_computation *comparator) {
  assert(dimension >= 0 && comparator);
  uint32_t n = x->op->n_results;
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, n + 1u);
  for (uint32_t i = 0; types && i < n; i++) types[i] = x->operands[i]->type;
  const ir_type *type = !types ? NULL : n == 1 ? types[0] : ir_tuple(x->t->to, n, types);
  ir_op *sort = type ? to_hlo_emit(x, IR_OP_SORT, type, n, x->operands, 1) : NULL;
  if (!sort || !ir_set_ints(sort, IR_ATTR_DIMENSIONS, 1, &dimension) || !ir_set_bool(sort, IR_ATTR_IS_STABLE, true))
    return NULL;
  sort->called[0] = comparator;
  return sort;
}

/* The first elements, as many as the result has. */
static ir_op *approx_cut(to_hlo_op *x, ir_op *sorted, const ir_type *type) {
  assert(ir_is_tensor(sorted->type) && sorted->type->rank == type->rank);
  ir_slice *s = base_arena_zalloc(&x->t->to->arena, sizeof *s + type->rank * sizeof *s->v);
  ir_op *cut = s ? to_hlo_emit(x, IR_OP_SLICE, type, 1, &sorted, 0) : NULL;
  if (!cut) return NULL;
  s->n = type->rank;
  for (uint32_t d = 0; d < type->rank; d++) s->v[d] = (ir_slice_dim){0, type->dims[d], 1};
  ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
  attr.v.slice = s;
  return ir_attr_set(cut, attr) ? cut : NULL;
}

/*   custom_call @ApproxTopK(%x, %ids, %zero, %minus) {is_fallback = true, reduction_dim = 1}
 *
 *   sort by the called comparator along dimension 1, then slice to the result's size */
int to_hlo_approx_topk(to_hlo_op *x) {
  ir_computation *comparator = NULL;
  const ir_mattr *called = ir_mattr_of(x->op, "called_computations");
  TRY(to_hlo_function(x, called->v.list->v[0]->v.list->v[0]->str, &comparator));
  ir_op *sort = approx_sort(x, approx_dimension(x->op), comparator);
  for (uint32_t i = 0; i < x->op->n_results; i++) {
    const ir_type *type = to_hlo_type(x->t, x->op->types[i]);
    ir_op *part = sort;
    if (sort && x->op->n_results > 1)
      part = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, sort->type->elements[i], 1, &sort, 0);
    if (part && part != sort && !ir_set_int(part, IR_ATTR_INDEX, i)) part = NULL;
    if (!part || !type || !(x->results[i] = approx_cut(x, part, type))) return to_hlo_no_memory(x->t);
  }
  return 0;
}

/* ---- Ops of the sdy dialect in HLO form. Those that only say something about shardings are their operands, whatever
 * the mesh. Those that would move data do nothing on a mesh of one device (or of none, as JAX writes for one device),
 * and are for the partitioner's passes on any other. */

/* Its mesh, kept for the next op: nearly all ops of a program are on one. */
static const sdy_mesh *one_device_mesh(to_hlo *t, const sdy_sharding *s) {
  if (!s->mesh_name) return s->mesh;
  if (t->mesh_name != s->mesh_name) {
    t->mesh_name = s->mesh_name;
    t->mesh = sdy_mesh_named(t->from, s->mesh_name);
  }
  return t->mesh;
}

static int one_device_refuse(to_hlo_op *x, int64_t devices) {
  int status = to_hlo_fail(x->t, x->op, XLAC_E_UNKNOWN_OPCODE,
                           "%s is on a mesh of %lld devices; HLO has no op for it, and it runs on one device only",
                           ir_op_table[x->op->opcode].mlir->name, (long long)devices);
  return base_hint(x->t->err, status,
                   "run sdy-propagation-pipeline, sdy-insert-explicit-reshards{enable-full-version=true}, "
                   "sdy-reshard-to-collectives, sdy-convert-global-to-local and sdy-drop-sharding-and-mesh first");
}

/* A sharding without a mesh is of one device. */
static int one_device_check(to_hlo_op *x, const sdy_sharding *s) {
  const sdy_mesh *mesh = s ? one_device_mesh(x->t, s) : NULL;
  int64_t devices = mesh ? sdy_mesh_size(mesh) : 1;
  return devices == 1 ? 0 : one_device_refuse(x, devices);
}

int to_hlo_sdy_note(to_hlo_op *x) {
  if (x->op->n_results) x->results[0] = x->operands[0];
  return 0;
}

int to_hlo_sdy_move(to_hlo_op *x) {
  TRY(one_device_check(x, sdy_of(ir_mattr_of(x->op, sdy_own_key(x->op)), SDY_SHARDING)));
  return to_hlo_sdy_note(x);
}

/* The region's ops in place of the op. What it uses from outside is there already. */
int to_hlo_sdy_named(to_hlo_op *x) {
  const ir_computation *region = x->op->called[0];
  assert(region->n_params == x->op->n_operands && region->n_results == x->op->n_results);
  for (uint32_t i = 0; i < region->n_params; i++) TRY(to_hlo_bind(x->t, region->params[i], &x->operands[i]));
  TRY(to_hlo_body(x->t, region, x->into));
  for (uint32_t i = 0; i < region->n_results; i++)
    if (!(x->results[i] = to_hlo_value(x->t, region->results[i])))
      return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_STRUCTURE, "its region returns a value that nothing defines");
  return 0;
}

static int one_device_check_all(to_hlo_op *x, const char *key) {
  const sdy_shardings *list = sdy_of(ir_mattr_of(x->op, key), SDY_SHARDINGS);
  for (uint32_t i = 0; list && i < list->n; i++) TRY(one_device_check(x, list->v[i]));
  return 0;
}

/* On one device the global and the local shapes are the same, so the body takes the op's place. */
int to_hlo_sdy_manual(to_hlo_op *x) {
  TRY(one_device_check_all(x, "in_shardings"));
  TRY(one_device_check_all(x, "out_shardings"));
  return to_hlo_sdy_named(x);
}

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

/* The same word in both forms. */
static int put_word(to_hlo_op *x, ir_op *made, ir_attr_key key, int word) {
  return ir_set_word(made, key, word) ? 0 : to_hlo_no_memory(x->t);
}

/* StableHLO's one dimension as HLO's list of one. */
static int one_dim(to_hlo_op *x, ir_op *made, const char *name) {
  int64_t d = ir_m_get_int(x->op, name, 0);
  return ir_set_ints(made, IR_ATTR_DIMENSIONS, 1, &d) ? 0 : to_hlo_no_memory(x->t);
}

/* --- attributes of ops that keep their operands --- */

/* A type that follows from the elements is left out: FLOAT of floats, SIGNED of signed integers. */
static int compare_attrs(to_hlo_op *x, ir_op *made) {
  int type = ir_m_get_word(x->op, "compare_type");
  TRY(put_word(x, made, IR_ATTR_DIRECTION, ir_m_get_word(x->op, "comparison_direction")));
  return type == IR_COMPARISON_TOTALORDER ? put_word(x, made, IR_ATTR_TYPE, type) : 0;
}

/* -1 is the last dimension, StableHLO's default. */
static int sort_attrs(to_hlo_op *x, ir_op *made) {
  int64_t d = ir_m_get_int(x->op, "dimension", -1);
  if (d < 0) d += x->op->type->rank;
  return ir_set_ints(made, IR_ATTR_DIMENSIONS, 1, &d) ? 0 : to_hlo_no_memory(x->t);
}

/* Segment sizes are {others, carries}. */
static int scan_attrs(to_hlo_op *x, ir_op *made) {
  assert(x->op->opcode == IR_OP_SCAN);
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

/* The rule of ops that are the same in both forms. */
static int plain(to_hlo_op *x) {
  int status;
  ir_op *made = with_regions(x, &status);
  TRY(status);
  TRY(to_hlo_attrs(x, made));
  TRY(own_attrs(x, made));
  return to_hlo_results(x, made);
}

/* --- ops with a rule of their own --- */

/* The third operand, the shape, HLO has in the type. */
static int rng(to_hlo_op *x) {
  ir_op *made = to_hlo_emit(x, IR_OP_RNG, to_hlo_result_type(x), 2, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_attrs(x, made));
  return to_hlo_results(x, made);
}

/* A function that is called as a fusion by one call alone, as HLO wants it. */
static bool is_fusion(to_hlo_op *x, const base_istr *callee, int *kind) {
  const char *word = ir_m_get_str(x->op, "mhlo.fusion_kind");
  *kind = ir_word_number(ir_attr_words(IR_OP_FUSION, IR_ATTR_KIND), word, strlen(word));
  return *kind >= 0 && to_hlo_mentioned_once(x->t, callee);
}

/* `attr` names the attribute that names the function: "callee" of a call, "decomposition" of a composite. */
static int call(to_hlo_op *x, const char *attr) {
  ir_computation *callee;
  const base_istr *name = ir_mattr_of(x->op, attr)->v.list->v[0]->str;
  int kind;
  bool fusion = is_fusion(x, name, &kind);
  TRY(to_hlo_function(x, name, &callee));
  ir_op *made = same_op(x, fusion ? IR_OP_FUSION : IR_OP_CALL, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = callee;
  if (fusion) TRY(put_word(x, made, IR_ATTR_KIND, kind));
  if (x->op->opcode == IR_OP_COMPOSITE) TRY(to_hlo_composite(x, made));
  return to_hlo_results(x, made);
}

/* after_all, and create_token as an after-all of nothing. */
static int token(to_hlo_op *x) {
  return to_hlo_results(
      x, to_hlo_emit(x, IR_OP_AFTER_ALL, to_hlo_type(x->t, x->op->type), x->op->n_operands, x->operands, 0));
}

static int tuple(to_hlo_op *x) {
  return to_hlo_results(x, same_op(x, IR_OP_TUPLE, 0));
}

/* What HLO has no op for stays as it is, with its MLIR attributes, for the interpreter. Strictly, the op is refused
 * by the name that StableHLO has for it. */
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
  assert(x->op->n_operands == 1);
  const ir_type *from = x->operands[0]->type, *to = x->op->type;
  ir_op *operand = x->operands[0];
  if (ir_is_tensor(from) && base_dtype_is_complex((base_dtype)from->dtype) && to->dtype == XLAC_PRED) {
    base_dtype part = base_dtype_real_part((base_dtype)from->dtype);
    const ir_type *real = ir_tensor_default(x->t->to, part, from->rank, from->dims, x->t->err);
    if (!real || !(operand = to_hlo_emit(x, IR_OP_REAL, real, 1, &operand, 0))) return to_hlo_no_memory(x->t);
  }
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_CONVERT, to_hlo_result_type(x), 1, &operand, 0));
}

/* Opcodes without an entry are calls, plain, or kept. */
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

/* Plain where HLO has the op, kept where only MLIR does. */
int to_hlo_one(to_hlo_op *x) {
  unsigned opcode = x->op->opcode;
  assert(opcode < IR_OP_COUNT);
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
