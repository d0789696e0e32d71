/* Passes at the border of StableHLO: after the import of HLO, before the export to it, and for dialects without
 * signs. HLO has one result an op, hence tuples, and bodies that see nothing outside; StableHLO has neither
 * restriction. */
#include "../rewrite/rewrite.h"
#include "../simplify/mlir_simplify.h"

/* stablehlo-ext-canonicalize-from-hlo-import: custom calls take and give tensors, not tuples of them; tuples that are
 * only packed and unpacked go; reshapes to the same type go; loops read from outside what they only pass on. Nothing is
 * computed.
 * Requires: nothing. Preserves: what the program computes. Source: XLA's pass of that name. */

/* More than any program has; nested tuples can be exponentially large in their text. */
enum { TIDY_LEAVES = 4096, TIDY_DEPTH = 64 };

/* The tensors of a (nested) tuple, in depth-first order. */
typedef struct tidy_leaves {
  opt_rewriter *rw;
  uint32_t n;
  ir_value *values;      /* or NULL: types only */
  const ir_type **types; /* or NULL */
} tidy_leaves;

/* false: there is no more room. */
static bool tidy_add(tidy_leaves *x, const ir_type *type, ir_value v) {
  if (x->n == TIDY_LEAVES) return false;
  if (x->values) x->values[x->n] = v;
  if (x->types) x->types[x->n] = type;
  x->n++;
  return true;
}

/* The tensors of a type, those of a value of it taken out. False: too many, or too deep. */
static bool tidy_flatten(tidy_leaves *x, const ir_type *type, ir_value v, uint32_t depth) {
  if (type->kind != IR_TYPE_TUPLE) return tidy_add(x, type, v);
  if (depth == TIDY_DEPTH) return false;
  for (uint32_t i = 0; i < type->n_elements; i++) {
    ir_value part = v;
    if (x->values) {
      part = opt_make(x->rw, IR_OP_GET_TUPLE_ELEMENT, type->elements[i], 1, &v);
      opt_set(x->rw, part, "index", ir_m_i32(x->rw->m, i));
      if (!part.op) return false;
    }
    if (!tidy_flatten(x, type->elements[i], part, depth + 1)) return false;
  }
  return true;
}

/* The tuple of `type` made of values from *at on. */
static ir_value tidy_pack(opt_rewriter *rw, const ir_type *type, ir_op *from, uint32_t *at) {
  if (type->kind != IR_TYPE_TUPLE) return (ir_value){from, (*at)++};
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)type->n_elements + 1);
  if (!parts) return (rw->failed = true), (ir_value){NULL, 0};
  for (uint32_t i = 0; i < type->n_elements; i++) parts[i] = tidy_pack(rw, type->elements[i], from, at);
  return opt_make(rw, IR_OP_TUPLE, type, type->n_elements, parts);
}

static bool tidy_has_tuple(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand_type(op, i)->kind == IR_TYPE_TUPLE) return true;
  return op->n_results == 1 && op->type->kind == IR_TYPE_TUPLE;
}

/* %t = custom_call(%tuple) : tuple<A, B> becomes %a, %b = custom_call(%x, %y), packed again for those who read the
 * tuple. */
static int tidy_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!tidy_has_tuple(op) || op->n_called) return 0;
  tidy_leaves in = {.rw = rw, .values = BASE_ARRAY(&rw->arena, ir_value, TIDY_LEAVES)};
  tidy_leaves out = {.rw = rw, .types = BASE_ARRAY(&rw->arena, const ir_type *, TIDY_LEAVES)};
  if (!in.values || !out.types) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_results; i++)
    if (!tidy_flatten(&out, op->types[i], (ir_value){op, i}, 0)) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!tidy_flatten(&in, ir_operand_type(op, i), opt_operand(op, i), 0)) return opt_rewriter_status(rw);
  ir_op *to = opt_make_n(rw, IR_OP_CUSTOM_CALL, out.n, out.types, in.n, in.values, 0);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!to || !results) return (rw->failed = true), opt_rewriter_status(rw);
  ir_set_mlir(to, op->mlir);
  uint32_t at = 0;
  assert(out.n <= TIDY_LEAVES && in.n <= TIDY_LEAVES);
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = tidy_pack(rw, op->types[i], to, &at);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, results);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Reshapes that HLO had for a layout. */
static int tidy_reshape(opt_rewriter *rw, ir_op *op, bool *changed) {
  return ir_operand_type(op, 0) == op->type ? opt_simplify_into(rw, op, opt_operand(op, 0), changed) : 0;
}

/* Of the general patterns those on loops and tuples. */
int opt_tidy_import(ir_module *m, const opt_args *args, xlac_error *err) {
  static const opt_pattern own[] = {{IR_OP_CUSTOM_CALL, tidy_custom_call}, {IR_OP_RESHAPE, tidy_reshape}};
  opt_pattern all[32] = {own[0], own[1]};
  uint32_t n = 2;
  opt_rewriter rw;
  (void)args;
  for (const opt_pattern *p = opt_region_patterns; p->fn; p++) {
    if (p->opcode != IR_OP_WHILE && p->opcode != IR_OP_TUPLE && p->opcode != IR_OP_GET_TUPLE_ELEMENT) continue;
    assert(n < sizeof all / sizeof *all);
    all[n++] = *p;
  }
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, n, all);
  opt_rewriter_free(&rw);
  return status;
}

/* stablehlo-ext-prepare-for-hlo-export: what XLA's ops can't say so is said otherwise: large constants of one value are
 * spread out, broadcasts that also permute get a transpose, and bodies of reductions have their own constants.
 * Requires: nothing. Preserves: what the program computes. Source: XLA's pass of that name. */

/* XLA's own bound. */
enum { PREPARE_ELEMENTS = 32 };

/* dense<0.0> : tensor<64x64xf32> is a broadcast of one element, which HLO's text and its folding are happier with. */
static int prepare_constant(opt_rewriter *rw, ir_op *op) {
  const ir_mattr *value = ir_mattr_of(op, "value");
  const ir_type *t = op->type;
  if (!value || value->kind != IR_M_DENSE || !value->splat || !opt_is_static(t) || t->count < PREPARE_ELEMENTS ||
      t->quant)
    return 0;
  opt_at(rw, op);
  const ir_type *type = opt_tensor(rw, (base_dtype)t->dtype, 0, NULL);
  ir_value one = opt_constant_data(rw, type, value->v.literal->data, true);
  ir_value all = opt_broadcast_in_dim(rw, one, t, NULL);
  if (ir_mattr_of(op, "mhlo.sharding")) opt_set(rw, all, "mhlo.sharding", ir_mattr_of(op, "mhlo.sharding"));
  if (!rw->failed) opt_replace_one(rw, op, all);
  return opt_rewriter_status(rw);
}

/* The order of the dimensions sorted; few: insertion. */
static void prepare_order(uint32_t n, const int64_t *dims, int64_t *order) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = i;
    for (; j > 0 && dims[order[j - 1]] > dims[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
}

/* HLO's broadcast dimensions ascend: the operand is transposed first. dims = [1, 0] becomes a transpose and [0, 1]. */
static int prepare_broadcast(opt_rewriter *rw, ir_op *op) {
  uint32_t n = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), &rw->arena, &n);
  bool sorted = true;
  for (uint32_t i = 1; i < n; i++) sorted = sorted && dims[i - 1] <= dims[i];
  if (sorted) return 0;
  int64_t *order = BASE_ARRAY(&rw->arena, int64_t, (size_t)n + 1), *to = BASE_ARRAY(&rw->arena, int64_t, (size_t)n + 1);
  if (!order || !to) return (rw->failed = true), opt_rewriter_status(rw);
  prepare_order(n, dims, order);
  assert(n > 0);
  for (uint32_t i = 0; i < n; i++) to[i] = dims[order[i]];
  opt_at(rw, op);
  ir_value turned = opt_transpose(rw, opt_operand(op, 0), order);
  const ir_mattr *a = ir_m_i64s(rw->m, n, to);
  if (!turned.op || !a || !ir_m_set(op, "broadcast_dimensions", a)) return (rw->failed = true), opt_rewriter_status(rw);
  ir_set_operand(op, 0, turned);
  return opt_rewriter_status(rw);
}

/* --- constants of bodies --- */

typedef struct prepare_body {
  opt_rewriter *rw;
  ir_computation *body;
  base_map copies;
} prepare_body;

/* A copy of an outer constant at the body's start, one for each. */
static ir_value prepare_inner(prepare_body *x, ir_value v) {
  if (!v.op || v.op->opcode != IR_OP_CONSTANT || v.op->parent == x->body) return v;
  ir_op *copy = base_map_ptr(&x->copies, v.op);
  if (copy) return (ir_value){copy, 0};
  ir_value made = v;
  opt_at_start(x->rw, x->body);
  opt_copy_op(x->rw, v.op, NULL, &made);
  if (x->rw->failed || !base_map_set(&x->copies, base_key(v.op), base_key(made.op))) x->rw->failed = true;
  return x->rw->failed ? v : made;
}

/* Ops whose bodies HLO keeps as computations of their own, which see no outer values. */
static bool prepare_takes_constants(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_REDUCE:
    case IR_OP_ALL_REDUCE:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SCATTER:
    case IR_OP_SELECT_AND_SCATTER:
    case IR_OP_SORT:
      return true;
    default:
      return false;
  }
}

/* Bodies of these ops hold no regions of their own that read from further out. */
static int prepare_bodies(opt_rewriter *rw, ir_op *op) {
  for (uint32_t r = 0; r < op->n_called; r++) {
    prepare_body x = {.rw = rw, .body = op->called[r]};
    base_map_init(&x.copies, rw->m->alloc);
    IR_FOR_OPS_SAFE(inner, x.body)
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      ir_value v = opt_operand(inner, i), to = prepare_inner(&x, v);
      if (to.op != v.op) ir_set_operand(inner, i, to);
    }
    for (uint32_t i = 0; i < x.body->n_results; i++) ir_set_result(x.body, i, prepare_inner(&x, x.body->results[i]));
    base_map_free(&x.copies);
  }
  return opt_rewriter_status(rw);
}

/* Inner regions first; depth is the reader's bound again. */
static int prepare_computation(opt_rewriter *rw, ir_computation *c, uint32_t depth) {
  IR_FOR_OPS_SAFE(op, c) {
    for (uint32_t i = 0; i < op->n_called && depth < 256; i++)
      if (op->called[i]->owner == op) TRY(prepare_computation(rw, op->called[i], depth + 1));
    if (op->opcode == IR_OP_CONSTANT)
      TRY(prepare_constant(rw, op));
    else if (op->opcode == IR_OP_BROADCAST)
      TRY(prepare_broadcast(rw, op));
    else if (prepare_takes_constants(op))
      TRY(prepare_bodies(rw, op));
  }
  return 0;
}

int opt_prepare_export(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  int status = 0;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && status == 0) status = prepare_computation(&rw, c, 0);
  opt_rewriter_free(&rw);
  return status;
}

/* stablehlo-convert-to-signless: unsigned integers become integers of the same bits without a sign, which StableHLO's
 * text and this IR write as signed ones. For dialects that keep the sign in their ops.
 * Requires: nothing. Preserves: bits; what ops compute may change, as comparisons and divisions read a sign now. */

/* The signed type of as many bits; types that are not unsigned integers stay. */
static base_dtype signless_dtype(unsigned dtype) {
  static const uint8_t pairs[][2] = {{XLAC_U1, XLAC_S1},  {XLAC_U2, XLAC_S2},   {XLAC_U4, XLAC_S4},
                                     {XLAC_U8, XLAC_S8},  {XLAC_U16, XLAC_S16}, {XLAC_U32, XLAC_S32},
                                     {XLAC_U64, XLAC_S64}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][0] == dtype) return (base_dtype)pairs[i][1];
  return (base_dtype)dtype;
}

static const ir_type *signless_type(opt_rewriter *rw, const ir_type *t);

/* Tuples, futures and functions. Depth of types is bounded by their makers. */
static const ir_type *signless_parts(opt_rewriter *rw, const ir_type *t) {
  const ir_type **parts = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)t->n_elements + 1);
  bool same = true;
  if (!parts) return NULL;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    parts[i] = signless_type(rw, t->elements[i]);
    if (!parts[i]) return NULL;
    same = same && parts[i] == t->elements[i];
  }
  if (same) return t;
  if (t->kind == IR_TYPE_TUPLE) return ir_tuple(rw->m, t->n_elements, parts);
  if (t->kind == IR_TYPE_FUTURE) return ir_future(rw->m, t->n_elements, parts);
  return ir_function_type(rw->m, t->n_inputs, t->n_elements - t->n_inputs, parts, parts + t->n_inputs);
}

/* Types with a text of their own (index, quantised ones) stay. */
static const ir_type *signless_type(opt_rewriter *rw, const ir_type *t) {
  assert(t != NULL);
  if (t->kind == IR_TYPE_TUPLE || t->kind == IR_TYPE_FUTURE || t->kind == IR_TYPE_FUNCTION)
    return signless_parts(rw, t);
  base_dtype dtype = signless_dtype(t->dtype);
  if (t->quant || t->text || dtype == t->dtype) return t;
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(rw->m, dtype, NULL, NULL);
  if (!ir_is_tensor(t)) return t;
  return ir_tensor_mlir(rw->m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

/* A constant's value has the same bits; narrow integers fill their bytes with the sign. */
static void signless_value(opt_rewriter *rw, ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "value");
  bool constant = op->opcode == IR_OP_CONSTANT || op->opcode == IR_OP_CHLO_CONSTANT ||
                  op->opcode == IR_OP_SDY_CONSTANT ||
                  (op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, "arith.constant") == 0);
  if (!constant || !a || a->kind != IR_M_DENSE || !a->v.literal) return;
  const ir_literal *from = a->v.literal;
  const ir_type *t = signless_type(rw, a->type), *of = signless_type(rw, from->type);
  if (t == a->type && of == from->type) return;
  ir_literal *l = t && of ? ir_literal_new(rw->m, of) : NULL;
  if (l) l->elided = from->elided;
  if (l && l->data && from->data)
    base_convert((base_dtype)of->dtype, l->data, (base_dtype)from->type->dtype, from->data, (size_t)of->count);
  opt_set(rw, (ir_value){op, 0}, "value", l ? ir_m_dense(rw->m, t, l, a->splat) : NULL);
}

/* Ids of replicas and partitions are unsigned by definition (the original pass breaks on them): they stay, and who
 * reads one reads it converted. */
static void signless_id(opt_rewriter *rw, ir_op *op) {
  const ir_type *t = signless_type(rw, op->type);
  opt_at_end(rw, op->parent, op);
  rw->before = op->next;
  ir_value id = {op, 0}, v = t && t != op->type ? opt_make(rw, IR_OP_CONVERT, t, 1, &id) : id;
  rw->failed = rw->failed || !t;
  if (v.op == op || rw->failed) return;
  opt_replace_results(rw, op, &v);
  ir_set_operand(v.op, 0, id);
}

/* Results only: operands are others' results. */
static void signless_op(opt_rewriter *rw, ir_op *op) {
  if (op->opcode == IR_OP_REPLICA_ID || op->opcode == IR_OP_PARTITION_ID) {
    signless_id(rw, op);
    return;
  }
  for (uint32_t i = 0; i < op->n_results && !rw->failed; i++) {
    const ir_type *t = signless_type(rw, op->types[i]);
    rw->failed = !t;
    if (t && t != op->types[i]) opt_set_type(rw, opt_result(op, i), t);
  }
  signless_value(rw, op);
}

int opt_convert_to_signless(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m) {
    /* Function types that are spelled out; a declaration has nothing else. */
    if (c->function_type) ir_set_function_type(c, signless_type(&rw, c->function_type));
    rw.failed = rw.failed || (c->declaration && c->kind == IR_FUNCTION && !c->function_type);
    for (ir_op *op = c->first; op && !rw.failed; op = op->next) signless_op(&rw, op);
  }
  int status = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  return status;
}
