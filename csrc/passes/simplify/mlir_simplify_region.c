/* Simplification of ops with regions (reduce, sort, while, case), and of tuples. Results, operands and region
 * arguments that nobody needs go together: the op is made again without them, and the regions move to the new op. */
#include "mlir_simplify.h"

/* --- reduce --- */

/* What the body gives back comes from outside: that is the result. */
static int region_reduce_outer(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_computation *body = op->called[0];
  if (body->n_results != op->n_results) return 0;
  assert(op->n_called == 1);
  for (uint32_t i = 0; i < op->n_results; i++)
    if (body->results[i].op->parent == body || opt_type(body->results[i]) != op->types[i]) return 0;
  ir_value *values = base_arena_memdup(&rw->arena, body->results, op->n_results * sizeof *values);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Over no dimensions the inputs are the results; over none of the elements, the initial values.
 * A reduction of an empty tensor is the initial value everywhere. */
static int region_reduce_nothing(opt_rewriter *rw, ir_op *op, bool *changed) {
  uint32_t n = 0, pairs = op->n_results;
  opt_ints(rw, op, "dimensions", &n);
  const ir_type *t = ir_operand_type(op, 0);
  bool empty = opt_is_static(t) && t->count == 0;
  if ((n && !empty) || op->n_operands != 2 * pairs) return 0;
  for (uint32_t i = 0; i < pairs; i++)
    if (n ? !opt_is_static(op->types[i]) || op->types[i]->quant : ir_operand_type(op, i) != op->types[i]) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)pairs + 1);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < pairs; i++)
    values[i] = n ? opt_broadcast_in_dim(rw, opt_operand(op, pairs + i), op->types[i], NULL) : opt_operand(op, i);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Marks, by op id, what of the body the used results need, walking backwards from these. False where an inner region
 * or an impure op is in the way. */
static bool region_mark(const opt_rewriter *rw, const ir_op *op, uint8_t *needed) {
  const ir_computation *body = op->called[0];
  for (uint32_t i = 0; i < op->n_results; i++)
    if (opt_is_result_used(rw, opt_result((ir_op *)op, i)) && body->results[i].op->parent == body)
      needed[body->results[i].op->id] = 1;
  for (const ir_op *inner = body->last; inner; inner = inner->prev) {
    if (inner->n_called || (inner->opcode != IR_OP_PARAMETER && !opt_is_pure_alone(inner))) return false;
    if (!needed[inner->id]) continue;
    for (uint32_t i = 0; i < inner->n_operands; i++) needed[inner->operands[i].op->id] = 1;
  }
  return true;
}

/* Ops of the body are in order, so users go before what they use. */
static void region_sweep(opt_rewriter *rw, ir_computation *body, const uint8_t *needed, const uint8_t *gone) {
  for (ir_op *inner = body->last, *before = NULL; inner; inner = before) {
    before = inner->prev;
    if (inner->opcode != IR_OP_PARAMETER && !needed[inner->id]) opt_erase(rw, inner);
  }
  for (uint32_t i = body->n_params; i-- > 0;)
    if (gone[i]) opt_erase_parameter(rw, body, i);
}

/* The op again with the n of its operands and results that stay; its regions move. */
static ir_op *region_narrow(opt_rewriter *rw, ir_op *op, uint32_t n, const ir_value *operands, uint32_t n_results,
                            const ir_type *const *types) {
  ir_op *v = opt_make_n(rw, (ir_opcode)op->opcode, n_results, types, n, operands, op->n_called);
  if (!v) return NULL;
  ir_set_mlir(v, op->mlir);
  ir_move_regions(op, v);
  return v;
}

typedef struct region_subset {
  uint32_t n; /* results that stay */
  const ir_type **types;
  ir_value *operands, *returned, *values; /* values: for all results of the old op */
  uint8_t *gone;                          /* by the region's argument */
} region_subset;

/* Room for all results and operands; what stays is filled in by the caller. */
static bool region_subset_make(opt_rewriter *rw, const ir_op *op, region_subset *s) {
  *s = (region_subset){.types = BASE_ARRAY(&rw->arena, const ir_type *, op->n_results + 1u),
                       .operands = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1),
                       .returned = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u),
                       .values = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u),
                       .gone = base_arena_zalloc(&rw->arena, 2 * (size_t)op->n_operands + 1)};
  rw->failed = rw->failed || !s->types || !s->operands || !s->returned || !s->values || !s->gone;
  return !rw->failed;
}

/* The results of op that stay are those of v, in their order; the others are `values` already (or unused: NULL). */
static void region_replace(opt_rewriter *rw, ir_op *op, ir_op *v, region_subset *s, const uint8_t *drop) {
  /* Results that stay are numbered anew. */
  uint32_t at = 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (!drop[i]) s->values[i] = (ir_value){v, at++};
  for (uint32_t i = 0; i < op->n_results; i++)
    if (!s->values[i].op) s->values[i] = opt_result(op, i);
  opt_replace_results(rw, op, s->values);
  if (!rw->failed) opt_erase(rw, op);
}

/* An input goes with the result of its number. If a result that stays reads the input of one that goes, all stay. */
static int region_reduce_drop(opt_rewriter *rw, ir_op *op, const uint8_t *needed, region_subset *s, bool *changed) {
  ir_computation *body = op->called[0];
  uint32_t pairs = op->n_results, kept = 0;
  uint8_t *drop = base_arena_zalloc(&rw->arena, (size_t)pairs + 1);
  if (!drop) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < pairs; i++) {
    bool in = needed[body->params[i]->id] || needed[body->params[pairs + i]->id];
    drop[i] = !opt_is_result_used(rw, opt_result(op, i));
    if (in == (bool)drop[i]) return 0; /* a result needs another's input, or not its own */
    kept += !drop[i];
  }
  if (kept == 0 || kept == pairs) return 0;
  for (uint32_t i = 0; i < pairs; i++) {
    s->values[i] = (ir_value){NULL, 0};
    s->gone[i] = s->gone[pairs + i] = drop[i];
    if (drop[i]) continue;
    s->types[s->n] = op->types[i];
    s->operands[s->n] = opt_operand(op, i);
    s->operands[kept + s->n] = opt_operand(op, pairs + i);
    s->returned[s->n++] = body->results[i];
  }
  ir_op *v = region_narrow(rw, op, 2 * kept, s->operands, kept, s->types);
  assert(s->n == kept);
  TRY(opt_rewriter_status(rw));
  opt_set_results(rw, body, kept, s->returned);
  region_sweep(rw, body, needed, s->gone);
  region_replace(rw, op, v, s, drop);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* The body is walked only if some result is unused. */
static int region_reduce_unused(opt_rewriter *rw, ir_op *op, bool *changed) {
  region_subset s;
  bool unused = false;
  if (op->called[0]->n_results != op->n_results || op->called[0]->n_params != op->n_operands) return 0;
  for (uint32_t i = 0; i < op->n_results; i++) unused = unused || !opt_is_result_used(rw, opt_result(op, i));
  if (!unused || op->n_operands != 2u * op->n_results) return 0;
  uint8_t *needed = base_arena_zalloc(&rw->arena, (size_t)rw->m->n_ids + 1);
  if (!needed || !region_subset_make(rw, op, &s)) return (rw->failed = true), opt_rewriter_status(rw);
  return region_mark(rw, op, needed) ? region_reduce_drop(rw, op, needed, &s, changed) : 0;
}

static int region_reduce(opt_rewriter *rw, ir_op *op, bool *changed) {
  TRY(region_reduce_outer(rw, op, changed));
  if (!*changed) TRY(region_reduce_nothing(rw, op, changed));
  return *changed ? 0 : region_reduce_unused(rw, op, changed);
}

/* --- sort --- */

/* -1 is the last dimension; spelled out for those who read the attribute. */
static int region_sort_dimension(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (op->n_results == 0 || ir_m_get_int(op, "dimension", -1) != -1 || !ir_is_tensor(op->type) || !op->type->rank)
    return 0;
  opt_set(rw, (ir_value){op, 0}, "dimension", ir_m_i64(rw->m, (int64_t)op->type->rank - 1));
  *changed = true;
  return opt_rewriter_status(rw);
}

static bool region_is_returned(const ir_computation *c, const ir_op *op) {
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == op) return true;
  return false;
}

/* The comparator reads parameters 2i and 2i + 1 for input i. */
static bool region_sort_needs(const opt_rewriter *rw, ir_op *op, uint32_t i) {
  const ir_computation *c = op->called[0];
  const ir_op *a = c->params[2 * i], *b = c->params[2 * i + 1];
  assert(2 * i + 1 < c->n_params);
  return a->uses || b->uses || region_is_returned(c, a) || region_is_returned(c, b) ||
         opt_is_result_used(rw, opt_result(op, i));
}

/* Inputs that neither decide the order nor are asked for. */
static int region_sort_unused(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_computation *c = op->called[0];
  region_subset s;
  uint8_t *drop = base_arena_zalloc(&rw->arena, op->n_results + 1u);
  if (!drop || !region_subset_make(rw, op, &s)) return (rw->failed = true), opt_rewriter_status(rw);
  if (c->n_params != 2 * op->n_operands || op->n_results != op->n_operands) return 0;
  for (uint32_t i = 0; i < op->n_results; i++) {
    drop[i] = !region_sort_needs(rw, op, i);
    s.values[i] = (ir_value){NULL, 0};
    s.gone[2 * i] = s.gone[2 * i + 1] = drop[i];
    if (drop[i]) continue;
    s.types[s.n] = op->types[i];
    s.operands[s.n++] = opt_operand(op, i);
  }
  if (s.n == 0 || s.n == op->n_results) return 0;
  ir_op *v = region_narrow(rw, op, s.n, s.operands, s.n, s.types);
  TRY(opt_rewriter_status(rw));
  for (uint32_t i = c->n_params; i-- > 0;)
    if (s.gone[i]) opt_erase_parameter(rw, c, i);
  region_replace(rw, op, v, &s, drop);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* --- while --- */

/* The body returns the argument itself, or the value the loop began with; types must agree in all four places. */
static bool region_is_invariant(const ir_op *op, uint32_t i) {
  assert(i < op->called[1]->n_results);
  const ir_computation *body = op->called[1];
  ir_value back = body->results[i], in = opt_operand(op, i);
  if (opt_type(in) != op->types[i] || body->params[i]->type != op->types[i]) return false;
  if (op->called[0]->params[i]->type != op->types[i]) return false;
  return opt_same_value(back, in) || (back.op == body->params[i]);
}

/* Both regions take the whole state, and the body returns it. */
static bool region_is_loop(const ir_op *op) {
  uint32_t n = op->n_operands;
  if (op->n_called != 2 || op->n_results != n) return false;
  return op->called[0]->n_params == n && op->called[1]->n_params == n && op->called[1]->n_results == n;
}

/* State that never changes is not state: the regions use the value itself. */
static int region_while(opt_rewriter *rw, ir_op *op, bool *changed) {
  region_subset s;
  uint32_t n = op->n_operands;
  if (!region_is_loop(op) || !region_subset_make(rw, op, &s)) return opt_rewriter_status(rw);
  for (uint32_t i = 0; i < n; i++) {
    s.gone[i] = region_is_invariant(op, i);
    s.values[i] = s.gone[i] ? opt_operand(op, i) : (ir_value){NULL, 0};
    if (s.gone[i]) continue;
    s.types[s.n] = op->types[i];
    s.operands[s.n] = opt_operand(op, i);
    s.returned[s.n++] = op->called[1]->results[i];
  }
  if (s.n == n || s.n == 0) return 0;
  /* One at least stays: a while without state has no results to tell it by. */
  ir_computation *regions[] = {op->called[0], op->called[1]};
  for (uint32_t i = 0; i < n && !rw->failed; i++) {
    if (!s.gone[i]) continue;
    for (uint32_t r = 0; r < 2; r++) opt_replace_results(rw, regions[r]->params[i], &s.values[i]);
  }
  /* What a region gives back may have been one of those parameters. */
  for (uint32_t i = 0, at = 0; i < n; i++)
    if (!s.gone[i]) s.returned[at++] = regions[1]->results[i];
  ir_op *v = region_narrow(rw, op, s.n, s.operands, s.n, s.types);
  TRY(opt_rewriter_status(rw));
  opt_set_results(rw, regions[1], s.n, s.returned);
  opt_set_results(rw, regions[0], regions[0]->n_results, regions[0]->results);
  for (uint32_t i = n; i-- > 0;)
    for (uint32_t r = 0; s.gone[i] && r < 2; r++) opt_erase_parameter(rw, regions[r], i);
  region_replace(rw, op, v, &s, s.gone);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* --- tuples, custom calls --- */

/* get_tuple_element(tuple(a, b), 1) is b. */
static int region_element(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_op *tuple = ir_operand(op, 0);
  int64_t i = ir_m_get_int(op, "index", 0);
  if (tuple->opcode != IR_OP_TUPLE || i < 0 || i >= tuple->n_operands) return 0;
  return opt_simplify_to(rw, op, opt_operand(tuple, (uint32_t)i), changed);
}

/* tuple(get_tuple_element(t, 0), get_tuple_element(t, 1), ...) is t if these are all of t's elements. */
static int region_tuple(opt_rewriter *rw, ir_op *op, bool *changed) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *element = ir_operand(op, i);
    if (element->opcode != IR_OP_GET_TUPLE_ELEMENT || ir_m_get_int(element, "index", 0) != i) return 0;
    if (!opt_same_value(opt_operand(element, 0), opt_operand(ir_operand(op, 0), 0))) return 0;
  }
  return op->n_operands ? opt_simplify_to(rw, op, opt_operand(ir_operand(op, 0), 0), changed) : 0;
}

/* mhlo's way to write a typed backend configuration is StableHLO's with api_version 4. */
static int region_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_mattr *config = ir_mattr_of(op, "mhlo.backend_config"), *now = ir_mattr_of(op, "backend_config");
  const ir_mattr *version = ir_mattr_of(op, "api_version");
  if (!config || config->kind != IR_M_DICT || (now && (now->kind != IR_M_STRING || now->str->n))) return 0;
  if (version && (version->kind != IR_M_INTEGER || version->v.i != 1)) return 0;
  ir_value v = {op, 0};
  opt_set(rw, v, "backend_config", config);
  opt_set(rw, v, "api_version", ir_m_i32(rw->m, 4));
  rw->failed = rw->failed || !ir_m_set(op, "mhlo.backend_config", NULL);
  *changed = true;
  return opt_rewriter_status(rw);
}

const opt_pattern opt_region_patterns[] = {
    {IR_OP_REDUCE, region_reduce},
    {IR_OP_SORT, region_sort_dimension},
    {IR_OP_SORT, region_sort_unused},
    {IR_OP_WHILE, region_while},
    {IR_OP_GET_TUPLE_ELEMENT, region_element},
    {IR_OP_TUPLE, region_tuple},
    {IR_OP_CUSTOM_CALL, region_custom_call},
    {IR_OP_INVALID, NULL},
};
