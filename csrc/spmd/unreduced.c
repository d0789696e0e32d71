/* Unreduced axes: values whose parts are still to be added up between devices. Each device computes on its part only
 * what sums go through: ops that move data, that add, and that multiply by what is not a part. Anything else is
 * computed of sums. What a sharding calls unreduced though the op does not make it so (a constant) is the value itself
 * on one device, and zeros on all others.
 *
 * Requires: explicit reshards, that is, operands have no unreduced axes that the results have not. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "../shard/rules/rule.h"
#include "inside.h"

typedef enum part_kind { PART_STOPS, PART_MOVES, PART_ADDS, PART_TIMES } part_kind;

/* An op's rows of data: the first ones and what is past `from`; all others (indices, predicates) are not parts. */
typedef struct sum_row {
  ir_opcode opcode;
  uint8_t kind, from, n; /* n 0: to the last */
} sum_row;

static const sum_row sum_rows[] = {
    {IR_OP_RESHAPE, PART_MOVES, 0, 1},     {IR_OP_TRANSPOSE, PART_MOVES, 0, 1},
    {IR_OP_BROADCAST, PART_MOVES, 0, 1},   {IR_OP_SLICE, PART_MOVES, 0, 1},
    {IR_OP_REVERSE, PART_MOVES, 0, 1},     {IR_OP_CONCATENATE, PART_MOVES, 0, 0},
    {IR_OP_SELECT, PART_MOVES, 1, 2},      {IR_OP_DYNAMIC_SLICE, PART_MOVES, 0, 1},
    {IR_OP_GATHER, PART_MOVES, 0, 1},      {IR_OP_DYNAMIC_UPDATE_SLICE, PART_MOVES, 0, 2},
    {IR_OP_ADD, PART_ADDS, 0, 2},          {IR_OP_SUBTRACT, PART_ADDS, 0, 2},
    {IR_OP_NEGATE, PART_ADDS, 0, 1},       {IR_OP_REAL, PART_ADDS, 0, 1},
    {IR_OP_IMAG, PART_ADDS, 0, 1},         {IR_OP_COMPLEX, PART_ADDS, 0, 2},
    {IR_OP_CONVERT, PART_ADDS, 0, 1},      {IR_OP_PAD, PART_ADDS, 0, 1},
    {IR_OP_REDUCE, PART_ADDS, 0, 1},       {IR_OP_REDUCE_WINDOW, PART_ADDS, 0, 1},
    {IR_OP_MULTIPLY, PART_TIMES, 0, 2},    {IR_OP_DIVIDE, PART_TIMES, 0, 1},
    {IR_OP_DOT, PART_TIMES, 0, 2},         {IR_OP_STABLEHLO_DOT, PART_TIMES, 0, 2},
    {IR_OP_CONVOLUTION, PART_TIMES, 0, 2},
};

typedef struct part_pass {
  explicit_pass *e;
  ir_op *op;
  const sdy_mesh *mesh;
  const sdy_sharding *out; /* of the result */
  sdy_axes through, own;   /* of the operands; along which the op itself adds up */
} part_pass;

static const sum_row *sum_row_of(const ir_op *op) {
  for (size_t i = 0; i < sizeof sum_rows / sizeof *sum_rows; i++)
    if (sum_rows[i].opcode == op->opcode) return &sum_rows[i];
  return NULL;
}

static const sdy_sharding *part_operand(const part_pass *x, uint32_t i) {
  return explicit_get(x->e, opt_operand(x->op, i));
}

static bool part_is_unreduced(const sdy_sharding *s) {
  return s && s->unreduced.n;
}

/* Numbers that a conversion keeps, so that it may come before the sum. */
static bool part_widens(const ir_op *op) {
  base_dtype from = (base_dtype)opt_type(opt_operand(op, 0))->dtype, to = (base_dtype)op->types[0]->dtype;
  if (from == XLAC_PRED || to == XLAC_PRED) return false;
  return !base_dtype_is_integer(to) ||
         (base_dtype_is_integer(from) && base_dtype_of(to)->bits >= base_dtype_of(from)->bits);
}

/* What an op with an operand of its own to begin with adds to it: nothing, for zero, and sums only. */
static bool part_begins_with_zero(const ir_op *op) {
  if (op->n_operands != 2 || !spmd_is_zero(opt_operand(op, 1))) return false;
  return op->opcode == IR_OP_PAD || shard_scatter_reduction(op) == IR_OP_ADD;
}

/* Whether the sum of f(part) is f of the sum of parts. */
static bool part_goes_through(const part_pass *x) {
  const ir_op *op = x->op;
  const sum_row *row = sum_row_of(op);
  uint32_t parts = 0, data = 0;
  if (!row || op->n_results != 1 || (x->out->reduction != SDY_SUM && row->kind != PART_MOVES)) return false;
  bool begins = op->opcode == IR_OP_PAD || op->opcode == IR_OP_REDUCE || op->opcode == IR_OP_REDUCE_WINDOW;
  if (begins && !part_begins_with_zero(op)) return false;
  if (op->opcode == IR_OP_CONVERT && !part_widens(op)) return false;
  if (row->kind == PART_TIMES && op->types[0]->dtype == XLAC_PRED) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const sdy_sharding *s = part_operand(x, i);
    bool is_data = i >= row->from && (row->n == 0 || i < (uint32_t)row->from + row->n), part = part_is_unreduced(s);
    if (part && (!is_data || s->reduction != x->out->reduction || !sdy_axes_equal(s->unreduced, x->through)))
      return false;
    parts += part;
    data += is_data;
  }
  if (op->opcode == IR_OP_DIVIDE && base_dtype_is_integer((base_dtype)op->types[0]->dtype)) return false;
  return row->kind == PART_TIMES ? parts == 1 : parts == data;
}

/* --- what the op adds up itself --- */

/* The axes that its reduced dimensions have; in the rewriter's arena. */
static bool part_find_own(part_pass *x, const sdy_rule *rule) {
  uint32_t n = 0, most = 0;
  for (uint32_t i = 0; i < x->op->n_operands; i++) {
    const sdy_sharding *s = part_operand(x, i);
    for (uint32_t d = 0; s && d < s->n_dims; d++) most += s->dims[d].axes.n;
  }
  sdy_axis *v = BASE_ARRAY(&x->e->rw.arena, sdy_axis, (size_t)most + 1);
  for (uint32_t i = 0; v && rule && i < x->op->n_operands && i < rule->n_operands; i++) {
    const sdy_sharding *s = part_operand(x, i);
    const sdy_tensor_map *map = &rule->operands[i];
    for (uint32_t d = 0; s && d < s->n_dims && d < map->n_dims; d++) {
      bool reduced = false;
      for (uint32_t k = 0; map->dims[d].n == 1 && k < rule->reduction.n; k++)
        reduced = reduced || rule->reduction.v[k] == map->dims[d].v[0];
      for (uint32_t k = 0; reduced && k < s->dims[d].axes.n; k++)
        if (!sdy_axes_overlap((sdy_axes){n, v}, s->dims[d].axes.v[k])) v[n++] = s->dims[d].axes.v[k];
    }
  }
  x->own = (sdy_axes){n, v};
  return v != NULL;
}

/* a without b, or what is in both; in the module's arena. */
static bool part_minus(const part_pass *x, sdy_axes a, sdy_axes b, sdy_axes *out) {
  sdy_axis *v = BASE_ARRAY(&x->e->rw.m->arena, sdy_axis, 2 * ((size_t)a.n + b.n) + 1);
  if (!v) return false;
  *out = (sdy_axes){sdy_axes_minus(a, b, x->mesh, v), v};
  return true;
}

/* --- making parts --- */

static const sdy_sharding *part_sharding(explicit_pass *e, const sdy_sharding *s, sdy_axes unreduced) {
  sdy_sharding to = *s;
  to.unreduced = unreduced;
  if (unreduced.n == 0) to.reduction = SDY_SUM;
  return sdy_sharding_make(e->rw.m, &to);
}

ir_value spmd_make_parts(explicit_pass *e, ir_value v, const sdy_sharding *to, sdy_axes axes) {
  sdy_axes *kept = BASE_NEW(&e->rw.m->arena, sdy_axes);
  const sdy_sharding *out = sdy_sharding_make(e->rw.m, to);
  assert(axes.n > 0 && to->unreduced.n > 0);
  if (!kept || !out || !sdy_axes_make(e->rw.m, axes, kept)) {
    explicit_fail(e, base_oom(e->err, "parts of a sum"));
    return v;
  }
  ir_value made = opt_make(&e->rw, IR_OP_SDY_REPLICATED_TO_UNREDUCED, opt_type(v), 1, &v);
  opt_set(&e->rw, made, "axes", sdy_attr(e->rw.m, SDY_AXES, kept));
  opt_set(&e->rw, made, "out_sharding", sdy_attr(e->rw.m, SDY_SHARDING, out));
  return made;
}

/* The result's unreduced axes are `kept` now, and the others are made so afterwards. */
static int part_after(part_pass *x, uint32_t result, sdy_axes kept, sdy_axes made) {
  ir_value v = {x->op, result};
  const sdy_sharding *to = explicit_get(x->e, v), *now = part_sharding(x->e, to, kept);
  explicit_after(x->e, v);
  ir_value parts = now ? spmd_make_parts(x->e, v, to, made) : v;
  if (x->e->status || x->e->rw.failed || !now || !sdy_set(v, now)) return base_oom(x->e->err, "parts of a sum");
  explicit_replace(x->e, v, parts);
  return x->e->status;
}

/* Whether the op adds up as its sharding says: by a sum, a largest or a smallest one. */
static bool part_adds_so(const part_pass *x) {
  return spmd_reduction(x->op) == (int)x->out->reduction;
}

/* Axes of the op's own that it adds up otherwise than the result is to be: nobody could do it later. */
static bool part_is_uncombined(const part_pass *x) {
  bool meet = false;
  for (uint32_t i = 0; i < x->own.n; i++) meet = meet || sdy_axes_overlap(x->out->unreduced, x->own.v[i]);
  return meet && !part_adds_so(x);
}

int spmd_settle_parts(explicit_pass *e, ir_op *op, const sdy_rule *rule, bool *whole) {
  part_pass x = {.e = e, .op = op, .out = op->n_results ? explicit_get(e, (ir_value){op, 0}) : NULL};
  sdy_axes made, rest, kept;
  *whole = false;
  if (!part_is_unreduced(x.out) || !(x.mesh = explicit_mesh(e, x.out))) return 0;
  for (uint32_t i = 0; i < op->n_operands && x.through.n == 0; i++)
    if (part_is_unreduced(part_operand(&x, i))) x.through = part_operand(&x, i)->unreduced;
  bool through = x.through.n && part_goes_through(&x);
  if (!part_find_own(&x, rule)) return base_oom(e->err, "parts of a sum");
  *whole = part_is_uncombined(&x);
  if (*whole) x.own.n = 0;
  opt_at(&e->rw, op);
  for (uint32_t i = 0; i < op->n_operands && !through; i++) {
    explicit_use use = {op, NULL, i};
    if (part_is_unreduced(part_operand(&x, i))) (void)explicit_reduce(e, use, part_operand(&x, i), NULL);
  }
  if (e->status) return e->status;
  bool ok = part_minus(&x, x.out->unreduced, x.own, &rest);
  ok = ok && part_minus(&x, rest, through ? x.through : (sdy_axes){0, NULL}, &made);
  ok = ok && part_minus(&x, x.out->unreduced, made, &kept);
  if (!ok) return base_oom(e->err, "parts of a sum");
  for (uint32_t i = 0; i < op->n_results && made.n; i++) TRY(part_after(&x, i, kept, made));
  return e->status;
}

/* --- whether there are any --- */

static bool part_is_said(const ir_mattr *a) {
  const sdy_sharding *one = a ? sdy_of(a, SDY_SHARDING) : NULL;
  const sdy_shardings *list = a ? sdy_of(a, SDY_SHARDINGS) : NULL;
  bool found = part_is_unreduced(one);
  for (uint32_t i = 0; list && i < list->n && !found; i++) found = part_is_unreduced(list->v[i]);
  return found;
}

bool spmd_has_parts(const ir_module *m) {
  static const char *const keys[] = {"sdy.sharding", "sharding", "in_shardings", "out_shardings", "out_sharding"};
  IR_FOR_COMPUTATIONS(c, m) {
    for (uint32_t i = 0; i < c->n_results && c->kind == IR_FUNCTION; i++)
      if (part_is_unreduced(sdy_get_result(c, i))) return true;
    IR_FOR_OPS(op, c) {
      for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (part_is_said(ir_mattr_of(op, keys[i]))) return true;
    }
  }
  return false;
}
