/* From MLIR form to HLO form: collectives, communication with the host, custom calls.
 *
 *   %r = "stablehlo.all_reduce"(%x) ({ ... }) {replica_groups = dense<[[0, 1]]>}
 *
 *   %r = f32[4] all-reduce(%x), replica_groups={{0,1}}, to_apply=%region.1
 *
 * HLO gives data and token together as a tuple where StableHLO gives several results. */
#include "../text/mlir/mlir.h"
#include "to_hlo.h"

/* Also reduce_scatter and collective_reduce: a region that combines two scalars, and the groups. */
int to_hlo_all_reduce(to_hlo_op *x) {
  assert(x->op->n_called == 1);
  ir_computation *c;
  TRY(to_hlo_scalar_region(x, x->op->called[0], &c));
  ir_op *made = to_hlo_emit(x, (ir_opcode)x->op->opcode, to_hlo_result_type(x), x->op->n_operands, x->operands, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = c;
  TRY(to_hlo_attrs(x, made));
  return to_hlo_results(x, made);
}

/* HLO splits and concatenates along one dimension. With two, the parts are split off, exchanged as a tuple and put
 * together.
 *   split_dimension = 0, concat_dimension = 1, split_count = 2 on tensor<4x3xf32>
 *
 *   %a = f32[2,3] slice(%x), slice={[0:2],[0:3]}     %b = f32[2,3] slice(%x), slice={[2:4],[0:3]}
 *   %t = (f32[2,3], f32[2,3]) all-to-all(%a, %b)     f32[2,6] concatenate(element 0, element 1), dimensions={1} */
static int all_to_all_tuple(to_hlo_op *x, uint32_t k, ir_op **out) {
  int64_t split = ir_m_get_int(x->op, "split_dimension", 0), count = ir_m_get_int(x->op, "split_count", 1);
  int64_t concat = ir_m_get_int(x->op, "concat_dimension", 0);
  assert(k < x->op->n_operands && count > 0 && split >= 0);
  const ir_type *from = x->operands[k]->type;
  int64_t dims[IR_MAX_RANK];
  if (from->rank) memcpy(dims, from->dims, from->rank * sizeof *dims);
  dims[split] /= count;
  const ir_type *part = ir_tensor_default(x->t->to, (base_dtype)from->dtype, from->rank, dims, x->t->err);
  ir_op **parts = BASE_ARRAY(&x->t->to->arena, ir_op *, (size_t)count + 1);
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, (size_t)count + 1);
  if (!part || !parts || !types) return to_hlo_no_memory(x->t);
  for (int64_t i = 0; i < count; i++) {
    ir_slice *s = base_arena_zalloc(&x->t->to->arena, sizeof *s + from->rank * sizeof *s->v);
    if (!s) return to_hlo_no_memory(x->t);
    s->n = from->rank;
    for (uint32_t d = 0; d < from->rank; d++) s->v[d] = (ir_slice_dim){0, from->dims[d], 1};
    s->v[split] = (ir_slice_dim){i * dims[split], (i + 1) * dims[split], 1};
    ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
    attr.v.slice = s;
    types[i] = part;
    parts[i] = to_hlo_emit(x, IR_OP_SLICE, part, 1, &x->operands[k], 0);
    if (!parts[i] || !ir_attr_set(parts[i], attr)) return to_hlo_no_memory(x->t);
  }
  ir_op *made = to_hlo_emit(x, IR_OP_ALL_TO_ALL, ir_tuple(x->t->to, (uint32_t)count, types), (uint32_t)count, parts, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_attrs(x, made));
  for (int64_t i = 0; i < count; i++) {
    parts[i] = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, part, 1, &made, 0);
    if (!parts[i] || !ir_set_int(parts[i], IR_ATTR_INDEX, i)) return to_hlo_no_memory(x->t);
  }
  *out = to_hlo_emit(x, IR_OP_CONCATENATE, to_hlo_type(x->t, x->op->types[k]), (uint32_t)count, parts, 0);
  return *out && ir_set_ints(*out, IR_ATTR_DIMENSIONS, 1, &concat) ? 0 : to_hlo_no_memory(x->t);
}

/* The parts that came lie one after another along the split dimension: they become a dimension, [count, the rest], that
 * goes before the concatenated one, with which it is merged. */
static int all_to_all_join(to_hlo_op *x, ir_op *made, uint32_t split, uint32_t concat, int64_t count, ir_op **out) {
  const ir_type *t = made->type;
  int64_t apart[IR_MAX_RANK], dims[IR_MAX_RANK], order[IR_MAX_RANK];
  assert(t->rank < IR_MAX_RANK && split != concat);
  uint32_t rank = t->rank + 1, from = 0;
  for (uint32_t d = 0; d < rank; d++) apart[d] = t->dims[d <= split ? d : d - 1];
  apart[split] = count;
  apart[split + 1] /= count;
  for (uint32_t d = 0; d < rank; d++) {
    if (from == split) from++;
    order[d] = d == concat ? split : from++;
    dims[d] = apart[order[d]];
  }
  const ir_type *cut = ir_tensor_default(x->t->to, (base_dtype)t->dtype, rank, apart, x->t->err);
  const ir_type *moved = ir_tensor_default(x->t->to, (base_dtype)t->dtype, rank, dims, x->t->err);
  ir_op *v = cut && moved ? to_hlo_emit(x, IR_OP_RESHAPE, cut, 1, &made, 0) : NULL;
  if (v) v = to_hlo_emit(x, IR_OP_TRANSPOSE, moved, 1, &v, 0);
  if (!v || !ir_set_ints(v, IR_ATTR_DIMENSIONS, rank, order)) return to_hlo_no_memory(x->t);
  *out = to_hlo_emit(x, IR_OP_RESHAPE, to_hlo_type(x->t, x->op->type), 1, &v, 0);
  return *out ? 0 : to_hlo_no_memory(x->t);
}

/* What runs is one exchange of an array, which no part is copied for before it.
 *   %x = f32[4,3]    %e = f32[4,3] all-to-all(%x), dimensions={0}
 *   f32[2,2,3] reshape(%e)    f32[2,2,3] transpose, dimensions={1,0,2}    f32[2,6] reshape */
static int all_to_all_array(to_hlo_op *x, ir_op **out) {
  int64_t split = ir_m_get_int(x->op, "split_dimension", 0), count = ir_m_get_int(x->op, "split_count", 1);
  int64_t concat = ir_m_get_int(x->op, "concat_dimension", 0);
  ir_op *made = to_hlo_emit(x, IR_OP_ALL_TO_ALL, x->operands[0]->type, 1, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_attrs(x, made));
  if (!ir_set_ints(made, IR_ATTR_DIMENSIONS, 1, &split)) return to_hlo_no_memory(x->t);
  *out = made;
  return split == concat ? 0 : all_to_all_join(x, made, (uint32_t)split, (uint32_t)concat, count, out);
}

/* Each operand on its own: HLO's op of several operands means something else. */
int to_hlo_all_to_all(to_hlo_op *x) {
  const ir_type *t = x->operands[0]->type;
  bool plain = ir_is_tensor(t) && !t->has_dynamic && !t->quant && t->rank < IR_MAX_RANK;
  if (x->t->options.executable && x->op->n_operands == 1 && plain) return all_to_all_array(x, &x->results[0]);
  for (uint32_t k = 0; k < x->op->n_operands; k++) TRY(all_to_all_tuple(x, k, &x->results[k]));
  return 0;
}

/* collective_permute and collective_broadcast */
int to_hlo_permute(to_hlo_op *x) {
  ir_op *made = to_hlo_emit(x, (ir_opcode)x->op->opcode, to_hlo_result_type(x), x->op->n_operands, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  if (ir_m_get_bool(x->op, "has_dynamic_root")) { /* HLO has no such thing, the interpreter runs it */
    if (!x->t->options.executable)
      return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "HLO has no has_dynamic_root");
    if (!(made->mlir = ir_mdict_import(x->t->to, x->op->mlir))) return to_hlo_no_memory(x->t);
  }
  TRY(to_hlo_attrs(x, made));
  return to_hlo_results(x, made);
}

/* --- the host --- */

/* Of a tuple that HLO gives where StableHLO has several results. */
static ir_op *element_of(to_hlo_op *x, ir_op *tuple, uint32_t i) {
  ir_op *e = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, tuple->type->elements[i], 1, &tuple, 0);
  return e && ir_set_int(e, IR_ATTR_INDEX, i) ? e : NULL;
}

/* The types of the first n results (or operands) as one: itself, or a tuple. Of no data at all, too: an infeed of a
 * token alone gives ((), token[]). */
static const ir_type *data_type(to_hlo_op *x, uint32_t n, const ir_type *const *types) {
  if (n == 1) return to_hlo_type(x->t, types[0]);
  const ir_type **all = BASE_ARRAY(&x->t->to->arena, const ir_type *, n + 1u);
  for (uint32_t i = 0; all && i < n; i++)
    if (!(all[i] = to_hlo_type(x->t, types[i]))) return NULL;
  return all ? ir_tuple(x->t->to, n, all) : NULL;
}

/* Results (data..., token) from a tuple (data or (data...), token). */
static int unpack_received(to_hlo_op *x, ir_op *made) {
  assert(x->op->n_results >= 1);
  uint32_t n = x->op->n_results - 1;
  ir_op *data = made ? element_of(x, made, 0) : NULL;
  if (!data) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++)
    if (!(x->results[i] = n == 1 ? data : element_of(x, data, i))) return to_hlo_no_memory(x->t);
  x->results[n] = element_of(x, made, 1);
  return x->results[n] ? 0 : to_hlo_no_memory(x->t);
}

/*   %0:2 = "stablehlo.infeed"(%t)    %i = ((f32[2]), token[]) infeed(%t) */
int to_hlo_infeed(to_hlo_op *x) {
  uint32_t n = x->op->n_results - 1;
  const ir_type *parts[2] = {data_type(x, n, x->op->types), ir_token(x->t->to)};
  if (!parts[0] || !parts[1]) return to_hlo_no_memory(x->t);
  ir_op *made = to_hlo_emit(x, IR_OP_INFEED, ir_tuple(x->t->to, 2, parts), 1, x->operands, 0);
  const char *config = ir_m_get_str(x->op, "infeed_config");
  if (!made || (*config && !ir_set_str(made, IR_ATTR_INFEED_CONFIG, config, strlen(config))))
    return to_hlo_no_memory(x->t);
  return unpack_received(x, made);
}

/* The operands but for the token, as one op. The token is always the last operand. */
static ir_op *sent_data(to_hlo_op *x) {
  assert(x->op->n_operands >= 1);
  uint32_t n = x->op->n_operands - 1;
  if (n == 1) return x->operands[0];
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, n + 1u);
  for (uint32_t i = 0; types && i < n; i++) types[i] = x->operands[i]->type;
  return types ? to_hlo_emit(x, IR_OP_TUPLE, ir_tuple(x->t->to, n, types), n, x->operands, 0) : NULL;
}

/* HLO's outfeed says the type of what it sends, layouts with it. */
int to_hlo_outfeed(to_hlo_op *x) {
  ir_op *operands[2] = {sent_data(x), x->operands[x->op->n_operands - 1]};
  if (!operands[0]) return to_hlo_no_memory(x->t);
  ir_op *made = to_hlo_emit(x, IR_OP_OUTFEED, ir_token(x->t->to), 2, operands, 0);
  const char *config = ir_m_get_str(x->op, "outfeed_config");
  ir_attr shape = ir_attr_make(IR_ATTR_OUTFEED_SHAPE);
  shape.v.type = operands[0]->type;
  if (!made || !ir_attr_set(made, shape)) return to_hlo_no_memory(x->t);
  if (*config && !ir_set_str(made, IR_ATTR_OUTFEED_CONFIG, config, strlen(config))) return to_hlo_no_memory(x->t);
  x->results[0] = made;
  return 0;
}

/* Both ends of a pair say the channel and whether the other side is the host. */
static int finish_transfer(to_hlo_op *x, ir_op *made) {
  TRY(to_hlo_channel(x, made));
  return to_hlo_flag(x, made, "is_host_transfer", IR_ATTR_IS_HOST_TRANSFER);
}

/* StableHLO's one op is HLO's start and its end, one after the other. */
int to_hlo_send(to_hlo_op *x) {
  ir_op *operands[2] = {sent_data(x), x->operands[x->op->n_operands - 1]};
  if (!operands[0]) return to_hlo_no_memory(x->t);
  const ir_type *types[3] = {operands[0]->type, ir_scalar(x->t->to, XLAC_U32), ir_token(x->t->to)};
  if (!types[1] || !types[2]) return to_hlo_no_memory(x->t);
  ir_op *start = to_hlo_emit(x, IR_OP_SEND, ir_tuple(x->t->to, 3, types), 2, operands, 0);
  if (!start) return to_hlo_no_memory(x->t);
  TRY(finish_transfer(x, start));
  x->results[0] = to_hlo_emit(x, IR_OP_SEND_DONE, types[2], 1, &start, 0);
  return x->results[0] ? finish_transfer(x, x->results[0]) : to_hlo_no_memory(x->t);
}

/*   %0:2 = "stablehlo.recv"(%t)
 *
 *   %s = (f32[2], u32[], token[]) recv(%t)    %d = (f32[2], token[]) recv-done(%s) */
int to_hlo_recv(to_hlo_op *x) {
  const ir_type *types[3] = {data_type(x, x->op->n_results - 1u, x->op->types), ir_scalar(x->t->to, XLAC_U32),
                             ir_token(x->t->to)};
  if (!types[0] || !types[1] || !types[2]) return to_hlo_no_memory(x->t);
  const ir_type *done[2] = {types[0], types[2]};
  ir_op *start = to_hlo_emit(x, IR_OP_RECV, ir_tuple(x->t->to, 3, types), 1, x->operands, 0);
  if (!start) return to_hlo_no_memory(x->t);
  TRY(finish_transfer(x, start));
  ir_op *made = to_hlo_emit(x, IR_OP_RECV_DONE, ir_tuple(x->t->to, 2, done), 1, &start, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(finish_transfer(x, made));
  return unpack_received(x, made);
}

/* --- custom calls --- */

/* JAX's way to write a typed configuration: a dictionary beside an empty string, of version 1 or none. XLA takes it for
 * API_VERSION_TYPED_FFI. */
static const ir_mattr *typed_config(const to_hlo_op *x) {
  const ir_mattr *config = ir_mattr_of(x->op, "mhlo.backend_config"), *now = ir_mattr_of(x->op, "backend_config");
  if (!config || config->kind != IR_M_DICT || (now && (now->kind != IR_M_STRING || now->str->n))) return NULL;
  return ir_m_get_int(x->op, "api_version", 1) == 1 ? config : NULL;
}

/* A dictionary as its MLIR text, which is what XLA keeps; a string as it is; nothing for an empty one. */
static int put_backend_config(to_hlo_op *x, ir_op *made) {
  const ir_mattr *typed = typed_config(x), *a = typed ? typed : ir_mattr_of(x->op, "backend_config");
  if (!a || (a->kind == IR_M_STRING && a->str->n == 0)) return 0;
  ir_config_text *c = BASE_NEW(&x->t->to->arena, ir_config_text);
  base_text text;
  base_text_init(&text, x->t->to->alloc);
  if (a->kind == IR_M_STRING) {
    base_put(&text, a->str->s, a->str->n);
  } else {
    text_put_mlir_attr(&text, a);
  }
  if (c && !text.failed) c->text = ir_intern(x->t->to, text.s ? text.s : "", text.n);
  base_text_free(&text);
  if (!c || !c->text) return to_hlo_no_memory(x->t);
  ir_attr attr = ir_attr_make(IR_ATTR_BACKEND_CONFIG);
  attr.v.config = c;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* Versions 0 and 1 are HLO's default and left out. */
static int put_api_version(to_hlo_op *x, ir_op *made) {
  int64_t v = typed_config(x) ? IR_API_TYPED_FFI : ir_m_get_int(x->op, "api_version", IR_API_ORIGINAL);
  if (v <= IR_API_ORIGINAL || v > IR_API_TYPED_FFI) return 0;
  return ir_set_word(made, IR_ATTR_API_VERSION, (int)v) ? 0 : to_hlo_no_memory(x->t);
}

/* See from_hlo_output_aliases for an example. */
static int put_output_aliases(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "output_operand_aliases");
  uint32_t n = a ? a->v.list->n : 0;
  if (n == 0) return 0;
  ir_aliasing *aliases = base_arena_zalloc(&x->t->to->arena, sizeof *aliases + n * sizeof *aliases->v);
  if (!aliases) return to_hlo_no_memory(x->t);
  aliases->n = n;
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *s = a->v.list->v[i];
    uint32_t outputs, inputs;
    const int64_t *output = ir_m_ints(ir_m_field(s, "output_tuple_indices"), &x->t->to->arena, &outputs);
    const int64_t *input = ir_m_ints(ir_m_field(s, "operand_tuple_indices"), &x->t->to->arena, &inputs);
    aliases->v[i].output = ir_ints_make(x->t->to, outputs, output);
    aliases->v[i].index = ir_ints_make(x->t->to, inputs, input);
    aliases->v[i].operand = ir_m_field(s, "operand_index")->v.i;
    if (!aliases->v[i].output || !aliases->v[i].index) return to_hlo_no_memory(x->t);
  }
  ir_attr attr = ir_attr_make(IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  attr.v.aliasing = aliases;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* Those that stand for an op of HLO's go elsewhere. What is called is translated first, as the call needs it. */
int to_hlo_custom_call(to_hlo_op *x) {
  if (to_hlo_is_encoded(x->op)) return to_hlo_encoded(x);
  if (to_hlo_is_approx_topk(x->op)) return to_hlo_approx_topk(x);
  const ir_mattr *called = ir_mattr_of(x->op, "called_computations");
  uint32_t n = called ? called->v.list->n : 0;
  ir_computation **computations = BASE_ARRAY(&x->t->to->arena, ir_computation *, n + 1u);
  if (!computations) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) TRY(to_hlo_function(x, called->v.list->v[i]->v.list->v[0]->str, &computations[i]));
  ir_op *made = to_hlo_emit(x, IR_OP_CUSTOM_CALL, to_hlo_result_type(x), x->op->n_operands, x->operands, n);
  const char *target = ir_m_get_str(x->op, "call_target_name");
  if (!made || !ir_set_str(made, IR_ATTR_CUSTOM_CALL_TARGET, target, strlen(target))) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) made->called[i] = computations[i];
  TRY(to_hlo_flag(x, made, "has_side_effect", IR_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT));
  TRY(put_api_version(x, made));
  TRY(put_backend_config(x, made));
  TRY(put_output_aliases(x, made));
  TRY(to_hlo_layouts(x, made));
  TRY(to_hlo_extras(x, made));
  return to_hlo_results(x, made);
}

/* ---- interpreter.run_parallel, the op by which upstream's tests run several participants: its programs (one list a
 * replica) and the functions that give its infeed become the op's called computations, in that order. */

/* NULL where it is not a symbol of one name. */
static const base_istr *parallel_symbol(const ir_mattr *a) {
  bool flat = a->kind == IR_M_SYMBOL && a->v.list->n == 1;
  return flat ? a->v.list->v[0]->str : NULL;
}

/* 0 for what is not an array. */
static uint32_t parallel_length(const ir_mattr *a) {
  return a && a->kind == IR_M_ARRAY ? a->v.list->n : 0;
}

static int parallel_bad(to_hlo_op *x) {
  return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE,
                     "programs must be an array of arrays of function symbols, infeed an array of them");
}

/* One after another from called[*n] on. */
static int parallel_functions(to_hlo_op *x, const ir_mattr *list, ir_computation **called, uint32_t *n) {
  for (uint32_t i = 0; i < parallel_length(list); i++) {
    const base_istr *name = parallel_symbol(list->v.list->v[i]);
    if (!name) return parallel_bad(x);
    TRY(to_hlo_function(x, name, &called[(*n)++]));
  }
  return 0;
}

/* Programs must be a rectangle: as many partitions for each replica. The attributes stay with the op, so that the
 * interpreter finds out how many programs there are, and which of the called computations are the infeed's. */
int to_hlo_run_parallel(to_hlo_op *x) {
  const ir_mattr *programs = ir_mattr_of(x->op, "programs"), *infeed = ir_mattr_of(x->op, "infeed");
  uint32_t rows = parallel_length(programs), n = parallel_length(infeed), done = 0;
  for (uint32_t r = 0; r < rows; r++) n += parallel_length(programs->v.list->v[r]);
  if (rows == 0 || parallel_length(programs->v.list->v[0]) == 0) return parallel_bad(x);
  ir_computation **called = BASE_ARRAY(&x->t->to->arena, ir_computation *, n + 1u);
  if (!called) return to_hlo_no_memory(x->t);
  for (uint32_t r = 0; r < rows; r++) {
    const ir_mattr *row = programs->v.list->v[r];
    if (parallel_length(row) != parallel_length(programs->v.list->v[0])) return parallel_bad(x);
    TRY(parallel_functions(x, row, called, &done));
  }
  TRY(parallel_functions(x, infeed, called, &done));
  ir_op *made = to_hlo_emit(x, IR_OP_UNREGISTERED, to_hlo_result_type(x), x->op->n_operands, x->operands, n);
  if (!made) return to_hlo_no_memory(x->t);
  memcpy(made->called, called, n * sizeof *called);
  made->mlir = ir_mdict_import(x->t->to, x->op->mlir);
  made->u.name = ir_intern(x->t->to, x->op->u.name->s, x->op->u.name->n);
  return made->mlir && made->u.name ? to_hlo_results(x, made) : to_hlo_no_memory(x->t);
}
