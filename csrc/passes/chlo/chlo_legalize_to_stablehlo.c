/* chlo-legalize-to-stablehlo: CHLO's ops become StableHLO's; with the small patterns: constants, functions by
 * formula, top_k and scan. Requires: nothing. Preserves: all other ops. An op that has no form in StableHLO (unranked
 * broadcasts, element types that a function is not defined for) is an error at that op. */
#include "chlo.h"
#include "formula.h"

static const opt_pattern chlo_patterns[] = {
#define MATH(op) {IR_OP_##op, opt_chlo_math},
    MATH(ACOS) MATH(ACOSH) MATH(ASIN) MATH(ASINH) MATH(ATAN) MATH(ATANH) MATH(COSH) MATH(SINH) MATH(CHLO_TAN) MATH(ERF)
        MATH(ERFC) MATH(ERF_INV) MATH(LGAMMA) MATH(DIGAMMA) MATH(POLYGAMMA) MATH(ZETA) MATH(BESSEL_I1E) MATH(NEXT_AFTER)
            MATH(CONJ) MATH(IS_INF) MATH(IS_POS_INF) MATH(IS_NEG_INF) MATH(SQUARE) MATH(ASIN_ACOS_KERNEL) MATH(MULHI)
#undef MATH
#define BROADCAST(op) {IR_OP_CHLO_BROADCAST_##op, opt_chlo_broadcast},
                BROADCAST(ADD) BROADCAST(AND) BROADCAST(ATAN2) BROADCAST(COMPARE) BROADCAST(COMPLEX) BROADCAST(DIVIDE)
                    BROADCAST(MAXIMUM) BROADCAST(MINIMUM) BROADCAST(MULTIPLY) BROADCAST(NEXT_AFTER) BROADCAST(OR)
                        BROADCAST(POLYGAMMA) BROADCAST(POWER) BROADCAST(REMAINDER) BROADCAST(SELECT)
                            BROADCAST(SHIFT_LEFT) BROADCAST(SHIFT_RIGHT_ARITHMETIC) BROADCAST(SHIFT_RIGHT_LOGICAL)
                                BROADCAST(SUBTRACT) BROADCAST(XOR) BROADCAST(ZETA)
#undef BROADCAST
                                    {IR_OP_CHLO_CONSTANT, opt_chlo_constant},
    {IR_OP_CONSTANT_LIKE, opt_chlo_constant_like},
    {IR_OP_TOPK, opt_chlo_top_k},
    {IR_OP_SCAN, opt_chlo_scan},
    {IR_OP_RAGGED_DOT, opt_chlo_ragged_dot},
};

enum { CHLO_PATTERNS = sizeof chlo_patterns / sizeof chlo_patterns[0] };

/* IR_NEWER: HLO has the op, but not in the XLA release that is the reference. */
bool opt_chlo_is_not_in_hlo(const ir_op *op) {
  if (ir_opcode_has(op->opcode, IR_MLIR_ONLY)) return true;
  return ir_opcode_has(op->opcode, IR_NEWER);
}

/* Of the table, only ops that HLO lacks. */
static int chlo_without_hlo(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!opt_chlo_is_not_in_hlo(op)) return 0;
  for (uint32_t i = 0; i < CHLO_PATTERNS; i++)
    if (chlo_patterns[i].opcode == op->opcode) return chlo_patterns[i].fn(rw, op, changed);
  return 0;
}

/* Ops that only broadcast their operands, and constants. */
bool opt_chlo_is_exact(const ir_op *op) {
  if (!ir_opcode_has(op->opcode, IR_MLIR_ONLY) || ir_opcode_has(op->opcode, IR_ELEMENTWISE)) return false;
  for (uint32_t i = 0; i < CHLO_PATTERNS; i++)
    if (chlo_patterns[i].opcode == op->opcode) return true;
  return false;
}

static int chlo_exactly(opt_rewriter *rw, ir_op *op, bool *changed) {
  return opt_chlo_is_exact(op) ? chlo_without_hlo(rw, op, changed) : 0;
}

/* The first op in text order that should have gone. */
static int chlo_check(const opt_rewriter *rw, opt_chlo_set set) {
  IR_FOR_COMPUTATIONS(c, rw->m) {
    IR_FOR_OPS(op, c) {
      const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
      const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : mlir ? mlir->name : "";
      if (strncmp(name, "chlo.", 5) != 0 || (set != OPT_CHLO_ALL && !opt_chlo_is_not_in_hlo(op))) continue;
      return opt_rewrite_fail(rw, op, XLAC_E_LEGALIZE,
                              "failed to legalize operation '%s': StableHLO has no form of it for these types", name);
    }
  }
  return 0;
}

int opt_legalize_chlo(ir_module *m, opt_chlo_set set, xlac_error *err) {
  static const opt_pattern native[] = {{IR_OP_INVALID, chlo_without_hlo}}, exact[] = {{IR_OP_INVALID, chlo_exactly}};
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = set == OPT_CHLO_ALL ? opt_rewrite(&rw, CHLO_PATTERNS, chlo_patterns)
                                   : opt_rewrite(&rw, 1, set == OPT_CHLO_EXACT ? exact : native);
  if (status == 0 && set != OPT_CHLO_EXACT) status = chlo_check(&rw, set);
  opt_rewriter_free(&rw);
  return status;
}

int opt_chlo_legalize(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  return opt_legalize_chlo(m, OPT_CHLO_ALL, err);
}

/* CHLO's constants. */

/* The same attribute under StableHLO's name. */
int opt_chlo_constant(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value v = opt_make(rw, IR_OP_CONSTANT, op->type, 0, NULL);
  opt_set(rw, v, "value", ir_mattr_of(op, "value"));
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* The attribute's number as one element of type t; NULL where it is none. */
static ir_literal *chlo_number(opt_rewriter *rw, const ir_mattr *a, base_dtype t) {
  const ir_type *scalar = opt_tensor(rw, t, 0, NULL);
  ir_literal *l = scalar ? ir_literal_new(rw->m, scalar) : NULL;
  if (!l) {
    rw->failed = true;
    return NULL;
  }
  if (a->kind == IR_M_INTEGER)
    base_store_i64(t, l->data, a->v.i);
  else if (a->kind == IR_M_BOOL)
    base_store_i64(t, l->data, a->v.b);
  else if (a->kind == IR_M_FLOAT)
    base_store_f64(t, l->data, a->v.f);
  else if (a->kind == IR_M_DENSE && a->v.literal && a->v.literal->type->dtype == t && a->v.literal->type->count >= 1)
    memcpy(l->data, a->v.literal->data, base_dtype_bytes(t));
  else
    return NULL;
  return l;
}

/* A splat of the operand's shape, known now or at run time. */
int opt_chlo_constant_like(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value like = opt_operand(op, 0);
  const ir_type *type = op->type;
  const ir_mattr *a = ir_mattr_of(op, "value");
  if (!a || !ir_is_tensor(type) || type->quant || type->text || !ir_is_tensor(opt_type(like))) return 0;
  ir_literal *l = chlo_number(rw, a, (base_dtype)type->dtype);
  if (!l) return 0;
  ir_value v;
  if (opt_is_static(type)) {
    v = opt_constant(rw, type, l, true);
  } else {
    v = opt_constant(rw, opt_tensor(rw, (base_dtype)type->dtype, 0, NULL), l, true);
    v = opt_as_type(rw, opt_spread_like(rw, v, like), type);
  }
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* CHLO's functions by their formulas. */

ir_value opt_as_type(opt_rewriter *rw, ir_value v, const ir_type *type) {
  return !v.op || opt_type(v) == type ? v : opt_make(rw, IR_OP_CONVERT, type, 1, &v);
}

/* The name with `suffix`, else (unless it is needed) without. */
static const opt_formula *chlo_formula(const char *name, const char *suffix, bool needed) {
  char text[64];
  size_t n = strlen(name), more = strlen(suffix);
  assert(n + more < sizeof text);
  memcpy(text, name, n);
  memcpy(text + n, suffix, more);
  const opt_formula *f = opt_formula_find(text, n + more);
  return f || needed ? f : opt_formula_find(name, n);
}

/* "chlo.erf" is the formula erf, erf_f64 or erf_complex; a leading underscore marks CHLO's internal ops. */
static const opt_formula *chlo_formula_of(const ir_op *op, base_dtype t) {
  const char *name = ir_opcode_info(op->opcode)->mlir->name + strlen("chlo.");
  if (*name == '_') name++;
  if (base_dtype_is_complex(t)) return chlo_formula(name, "_complex", true);
  return chlo_formula(name, t == XLAC_F64 ? "_f64" : "", false);
}

/* These work on the bits, or lose nothing in a narrow type. */
static bool chlo_keeps_type(unsigned opcode) {
  return opcode == IR_OP_NEXT_AFTER || opcode == IR_OP_SQUARE || opcode == IR_OP_CHLO_TAN || opcode == IR_OP_IS_INF ||
         opcode == IR_OP_IS_POS_INF || opcode == IR_OP_IS_NEG_INF || opcode == IR_OP_MULHI;
}

/* Whether the function is defined for the element type. */
static bool chlo_takes(unsigned opcode, base_dtype t) {
  unsigned bits = base_dtype_of(t)->bits;
  if (opcode == IR_OP_NEXT_AFTER) return base_dtype_is_float(t) && (bits & (bits - 1)) == 0;
  if (opcode == IR_OP_MULHI) return base_dtype_is_integer(t) && bits > 1;
  return base_dtype_is_float(t) || base_dtype_is_complex(t) || opcode == IR_OP_SQUARE || opcode == IR_OP_CONJ;
}

/* Narrow floats are computed in f32 and rounded once. */
int opt_chlo_math(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *type = ir_operand_type(op, 0);
  base_dtype t = (base_dtype)type->dtype;
  bool tensor = (type->kind == IR_TYPE_TENSOR || type->kind == IR_TYPE_UNRANKED) && !type->quant && !type->text;
  if (!tensor || !chlo_takes(op->opcode, t)) return 0;
  if (op->opcode == IR_OP_CONJ && !base_dtype_is_complex(t)) {
    opt_replace_one(rw, op, opt_as_type(rw, opt_operand(op, 0), op->type));
    *changed = true;
    return 0;
  }
  bool widen = base_dtype_is_float(t) && base_dtype_of(t)->bits < 32 && !chlo_keeps_type(op->opcode);
  const opt_formula *formula = chlo_formula_of(op, widen ? XLAC_F32 : t);
  if (!formula) return 0;
  ir_value args[2];
  assert(op->n_operands <= 2);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    args[i] = opt_operand(op, i);
    if (widen) args[i] = opt_convert(rw, args[i], XLAC_F32);
  }
  ir_value v = opt_formula_apply(rw, formula, op->n_operands, args);
  if (widen) v = opt_convert(rw, v, t);
  v = opt_as_type(rw, v, op->type);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* chlo.top_k: a descending sort of values and places together, of which the first k stay. */

/* Places along the last dimension, in the operand's shape. */
static ir_value top_k_places(opt_rewriter *rw, ir_value x, ir_value extents) {
  const ir_type *t = opt_type(x), *type = opt_with_dtype(rw, t, XLAC_S32);
  ir_value v =
      extents.op ? opt_make(rw, IR_OP_DYNAMIC_IOTA, type, 1, &extents) : opt_make(rw, IR_OP_IOTA, type, 0, NULL);
  opt_set(rw, v, "iota_dimension", ir_m_i64(rw->m, (int64_t)t->rank - 1));
  return v;
}

/* Descending by value; TOTALORDER puts NaN first, as XLA's top_k does. Places do not take part. */
static void top_k_order(opt_rewriter *rw, ir_op *sort, base_dtype t) {
  ir_computation *into = rw->into;
  ir_op *before = rw->before;
  const ir_op *origin = rw->origin;
  ir_computation *c = opt_region(rw, sort, 0);
  if (!c) return;
  const ir_type *value = opt_tensor(rw, t, 0, NULL), *place = opt_tensor(rw, XLAC_S32, 0, NULL);
  ir_value a = opt_region_argument(rw, c, value), b = opt_region_argument(rw, c, value);
  opt_region_argument(rw, c, place);
  opt_region_argument(rw, c, place);
  opt_at_end(rw, c, origin);
  ir_value greater =
      opt_compare(rw, IR_DIRECTION_GT, base_dtype_is_float(t) ? IR_COMPARISON_TOTALORDER : IR_COMPARISON_NONE, a, b);
  opt_set_results(rw, c, 1, &greater);
  rw->into = into;
  rw->before = before;
  rw->origin = origin;
}

/* Stable unless the op says otherwise, so that equal values keep their order.
 * Values and an iota of places are sorted together, then both are cut to k. XLA's own top_k expander does the same. */
static ir_op *top_k_sort(opt_rewriter *rw, const ir_op *op, ir_value x, ir_value places) {
  ir_value both[] = {x, places};
  const ir_type *types[] = {opt_type(x), opt_type(places)};
  ir_op *sort = opt_make_n(rw, IR_OP_SORT, 2, types, 2, both, 1);
  const ir_mattr *stable = ir_mattr_of(op, "is_stable");
  opt_set(rw, (ir_value){sort, 0}, "dimension", ir_m_i64(rw->m, (int64_t)opt_type(x)->rank - 1));
  opt_set(rw, (ir_value){sort, 0}, "is_stable", stable ? stable : ir_m_bool(rw->m, true));
  if (sort) top_k_order(rw, sort, (base_dtype)opt_type(x)->dtype);
  return sort;
}

/* The first k along the last dimension of a shape known at run time. */
static ir_value top_k_cut(opt_rewriter *rw, ir_value x, ir_value limits, const ir_type *type) {
  const ir_type *index = opt_type(limits);
  ir_value all[] = {x, opt_splat_int(rw, index, 0), limits, opt_splat_int(rw, index, 1)};
  return opt_make(rw, IR_OP_REAL_DYNAMIC_SLICE, type, 4, all);
}

/* The last size is k, the others are the operand's. */
static void top_k_dynamic(opt_rewriter *rw, ir_op *op, ir_value x, int64_t k, ir_value *results) {
  uint32_t rank = opt_type(x)->rank;
  ir_value sizes[IR_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) sizes[d] = opt_extent(rw, x, d);
  ir_op *sort = top_k_sort(rw, op, x, top_k_places(rw, x, opt_join_extents(rw, rank, sizes)));
  sizes[rank - 1] = opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), k);
  ir_value limits = opt_join_extents(rw, rank, sizes);
  for (uint32_t i = 0; i < 2; i++) results[i] = top_k_cut(rw, (ir_value){sort, i}, limits, op->types[i]);
}

/* k beyond the size takes everything. */
static void top_k_static(opt_rewriter *rw, ir_op *op, ir_value x, int64_t k, ir_value *results) {
  const ir_type *t = opt_type(x);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    limits[d] = d + 1 == t->rank && k < t->dims[d] ? k : t->dims[d];
    strides[d] = 1;
  }
  ir_op *sort = top_k_sort(rw, op, x, top_k_places(rw, x, (ir_value){NULL, 0}));
  for (uint32_t i = 0; i < 2; i++) {
    results[i] = opt_slice(rw, (ir_value){sort, i}, starts, limits, strides);
    results[i] = opt_as_type(rw, results[i], op->types[i]);
  }
}

/* Places must be i32. */
int opt_chlo_top_k(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value x = opt_operand(op, 0), results[2];
  const ir_type *t = opt_type(x);
  int64_t k = ir_m_get_int(op, "k", 0);
  bool places = ir_is_tensor(op->types[1]) && op->types[1]->dtype == XLAC_S32;
  if (!ir_is_tensor(t) || t->rank == 0 || t->quant || t->text || k < 0 || k > INT32_MAX || !places) return 0;
  if (opt_is_static(t))
    top_k_static(rw, op, x, k, results);
  else
    top_k_dynamic(rw, op, x, k, results);
  if (!rw->failed) opt_replace_op(rw, op, results);
  *changed = true;
  return 0;
}

/* chlo.scan: a loop over the steps, which takes slices of the inputs and writes into the outputs. */

/* Operands are inputs, then carries; results outputs, then carries. dim: the dimension that is scanned.
 * The body takes a slice of each input, which lacks the dimension, and the carries; it gives a slice of each output
 * and the next carries. reverse: from the last place to the first. */
typedef struct scan_parts {
  opt_rewriter *rw;
  ir_op *op;
  uint32_t dim, n_inputs, n_carries, n_outputs;
  bool reverse;
} scan_parts;

static ir_value unroll_i64(opt_rewriter *rw, int64_t v) {
  return opt_splat_int(rw, opt_tensor(rw, XLAC_S64, 0, NULL), v);
}

/* A plain tensor that has the dimension. */
static bool scan_knows(const ir_type *t, uint32_t dim) {
  return ir_is_tensor(t) && t->rank > dim && !t->quant && !t->text;
}

/* false: what the pattern does not know, which the pass then reports. */
static bool scan_begin(scan_parts *s, opt_rewriter *rw, ir_op *op) {
  uint32_t n;
  const int64_t *segments = ir_m_ints(ir_mattr_of(op, "operandSegmentSizes"), &rw->arena, &n);
  if (n != 2 || segments[0] < 0 || segments[1] < 0 || segments[0] + segments[1] != op->n_operands) return false;
  *s = (scan_parts){.rw = rw, .op = op, .reverse = ir_m_get_bool(op, "is_reverse")};
  s->n_inputs = (uint32_t)segments[0];
  s->n_carries = (uint32_t)segments[1];
  int64_t dim = ir_m_get_int(op, "dimension", -1);
  if (s->n_carries > op->n_results || dim < 0 || dim >= IR_MAX_RANK || op->called[0]->declaration) return false;
  s->n_outputs = op->n_results - s->n_carries;
  s->dim = (uint32_t)dim;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!scan_knows(ir_operand_type(op, i), s->dim)) return false;
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (!scan_knows(op->types[i], s->dim)) return false;
    if (op->types[i]->has_dynamic && s->n_inputs == 0) return false;
  }
  return true;
}

/* The number of steps; no op where nothing tells it. */
static ir_value scan_length(const scan_parts *s) {
  if (s->n_inputs) {
    const ir_type *t = ir_operand_type(s->op, 0);
    if (!ir_dim_is_dynamic(t, s->dim)) return unroll_i64(s->rw, t->dims[s->dim]);
    return opt_convert(s->rw, opt_extent(s->rw, opt_operand(s->op, 0), s->dim), XLAC_S64);
  }
  if (ir_mattr_of(s->op, "scan_dim_size")) return unroll_i64(s->rw, ir_m_get_int(s->op, "scan_dim_size", 0));
  if (s->n_outputs && !ir_dim_is_dynamic(s->op->types[0], s->dim))
    return unroll_i64(s->rw, s->op->types[0]->dims[s->dim]);
  return (ir_value){NULL, 0};
}

/* An output before the first step: zeros of its shape, which is that of the input beside it where it is not static. */
static ir_value scan_blank(const scan_parts *s, uint32_t i) {
  const ir_type *t = s->op->types[i];
  if (opt_is_static(t)) return opt_splat(s->rw, t, 0);
  ir_value zero = opt_splat(s->rw, opt_tensor(s->rw, (base_dtype)t->dtype, 0, NULL), 0);
  ir_value like = opt_operand(s->op, i < s->n_inputs ? i : 0);
  return opt_dynamic_broadcast(s->rw, zero, opt_extents(s->rw, like), t, NULL);
}

/* --- one step --- */

/* The state is the carries, then the outputs. */
static void scan_step_of(const scan_parts *s, opt_loop *loop, ir_value length, ir_value *next) {
  opt_rewriter *rw = s->rw;
  ir_value at = loop->index;
  const ir_computation *body = s->op->called[0];
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)body->n_params + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)body->n_results + 1);
  rw->failed = rw->failed || !args || !results;
  if (rw->failed) return;
  if (s->reverse) at = opt_binary(rw, IR_OP_SUBTRACT, opt_binary(rw, IR_OP_SUBTRACT, length, unroll_i64(rw, 1)), at);
  for (uint32_t i = 0; i < s->n_inputs && !rw->failed; i++)
    args[i] = opt_as_type(rw, opt_take(rw, opt_operand(s->op, i), s->dim, at), body->params[i]->type);
  for (uint32_t i = 0; i < s->n_carries; i++)
    args[s->n_inputs + i] = opt_as_type(rw, loop->state[i], body->params[s->n_inputs + i]->type);
  if (rw->failed) return;
  opt_inline(rw, body, args, results);
  for (uint32_t i = 0; i < s->n_carries && !rw->failed; i++)
    next[i] = opt_as_type(rw, results[s->n_outputs + i], opt_type(loop->state[i]));
  for (uint32_t i = 0; i < s->n_outputs && !rw->failed; i++)
    next[s->n_carries + i] = opt_put(rw, loop->state[s->n_carries + i], results[i], s->dim, at);
}

/* In the loop the carries come first, in the op's results the outputs. */
static void scan_loop(const scan_parts *s, ir_value length, ir_value *state, ir_value *results) {
  opt_rewriter *rw = s->rw;
  uint32_t n = s->n_carries + s->n_outputs;
  opt_loop loop;
  for (uint32_t i = 0; i < s->n_carries; i++)
    state[i] = opt_as_type(rw, opt_operand(s->op, s->n_inputs + i), s->op->types[s->n_outputs + i]);
  for (uint32_t i = 0; i < s->n_outputs; i++) state[s->n_carries + i] = scan_blank(s, i);
  opt_loop_begin(rw, &loop, length, n, state);
  if (!rw->failed) scan_step_of(s, &loop, length, state);
  opt_loop_end(rw, &loop, state, state);
  for (uint32_t i = 0; i < s->n_outputs; i++) results[i] = state[s->n_carries + i];
  for (uint32_t i = 0; i < s->n_carries; i++) results[s->n_outputs + i] = state[i];
}

/* A loop with one trip for each place along the dimension. */
int opt_chlo_scan(opt_rewriter *rw, ir_op *op, bool *changed) {
  scan_parts s;
  if (!scan_begin(&s, rw, op)) return 0;
  ir_value length = scan_length(&s);
  if (!length.op) return 0;
  ir_value *state = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  rw->failed = rw->failed || !state || !results;
  if (!rw->failed) scan_loop(&s, length, state, results);
  if (!rw->failed) opt_replace_op(rw, op, results);
  *changed = true;
  return 0;
}
