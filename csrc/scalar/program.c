/* From a computation to a scalar program, and its verifier. Ops that only rename an element (copy, reshape of
 * one element) have no value of their own. What can't be flattened (a loop, an op on arrays, too many calls) is
 * refused, which is no error. */
#include "program.h"

#include "../base/map.h"

enum {
  SPROG_MAX_CALLS = 512, /* in all: calls of calls double with each level */
  SPROG_MAX_DEPTH = 32   /* calls within calls */
};

BASE_VEC(sprog_values, scalar_value);

/* An op's value: the list of its leaves' values. */
typedef struct sprog_leaves {
  uint32_t n;
  uint32_t *v;
} sprog_leaves;

typedef struct sprog_make {
  base_alloc alloc;
  base_arena scratch;
  sprog_values values;
  bool flat; /* so far; false: it is not a scalar program */
  uint32_t calls;
} sprog_make;

/* Values by op, for as long as its computation is gone through. */
typedef struct sprog_scope {
  base_map places; /* of ops in `values` */
  sprog_leaves *values;
} sprog_scope;

static const sprog_leaves *sprog_value(const sprog_scope *s, const ir_op *op) {
  uint64_t place = 0;
  bool known = base_map_get(&s->places, base_key(op), &place);
  assert(known);
  (void)known;
  return &s->values[place];
}

/* The caller of scalar_program_make gets the error's text; here the code is enough. */
static int sprog_no_memory(void) {
  return -XLAC_E_OUT_OF_MEMORY;
}

/* From here on callers only return. */
static int sprog_refuse(sprog_make *x) {
  x->flat = false;
  return 0;
}

/* One element, of a type that loops have. */
static bool sprog_is_lane(const ir_type *t) {
  return scalar_is_one(t) && !t->quant && !t->text;
}

static bool sprog_types_are_lanes(const ir_type *t) {
  if (!ir_is_tuple(t)) return sprog_is_lane(t);
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!sprog_types_are_lanes(t->elements[i])) return false;
  return true;
}

/* A value at the end of the list. *id is left alone where there are too many. */
static int sprog_add(sprog_make *x, scalar_value v, uint32_t *id) {
  if (x->values.n >= SCALAR_MAX_VALUES) return sprog_refuse(x);
  v.bytes = (uint8_t)base_dtype_bytes((base_dtype)v.dtype);
  for (uint32_t k = 0; k < v.n_in; k++) x->values.items[v.in[k]].read = true;
  *id = x->values.n;
  return BASE_VEC_PUSH(x->alloc, &x->values, v) ? 0 : sprog_no_memory();
}

/* The same of an op, whose operands are in v: refused where it has no loop on their types. */
static int sprog_add_op(sprog_make *x, scalar_value v, uint32_t *id) {
  uint8_t in[3] = {0, 0, 0};
  scalar_loop l;
  for (uint32_t k = 0; k < v.n_in; k++) in[k] = x->values.items[v.in[k]].dtype;
  return scalar_loop_of(&v.op, v.n_in, in, v.dtype, &l) ? sprog_add(x, v, id) : sprog_refuse(x);
}

static int sprog_room(sprog_make *x, uint32_t n, sprog_leaves *out) {
  out->n = n;
  out->v = BASE_ARRAY(&x->scratch, uint32_t, (size_t)n + 1);
  return out->v ? 0 : sprog_no_memory();
}

static int sprog_elementwise(sprog_make *x, const ir_op *op, const sprog_scope *scope, uint32_t *id) {
  scalar_value v = {.dtype = op->type->dtype, .n_in = (uint8_t)op->n_operands};
  if (op->n_operands == 0 || op->n_operands > 3 || !scalar_op_of(op, &v.op)) return sprog_refuse(x);
  for (uint32_t k = 0; k < op->n_operands; k++) v.in[k] = sprog_value(scope, ir_operand(op, k))->v[0];
  return sprog_add_op(x, v, id);
}

static int sprog_constant(sprog_make *x, const ir_op *op, uint32_t *id) {
  scalar_value v = {.dtype = op->type->dtype, .constant = true};
  if (ir_is_tuple(op->type) || op->u.literal->elided) return sprog_refuse(x);
  memcpy(v.element, op->u.literal->data, base_dtype_bytes((base_dtype)v.dtype));
  return sprog_add(x, v, id);
}

/* Ops that leave an element as it is: only its dims may change, or nothing at all. */
static bool sprog_is_identity(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_COPY:
    case IR_OP_OPT_BARRIER:
      return true;
    case IR_OP_BITCAST:
      return op->type->dtype == ir_operand_type(op, 0)->dtype;
    case IR_OP_BROADCAST:
    case IR_OP_RESHAPE:
    case IR_OP_TRANSPOSE:
    case IR_OP_REVERSE:
      return true;
    default:
      return false;
  }
}

static int sprog_computation(sprog_make *x, const ir_computation *c, const sprog_leaves *args, uint32_t depth,
                             sprog_leaves *out);

/* The leaves of all operands, one operand after another. */
static int sprog_tuple(sprog_make *x, const ir_op *op, const sprog_scope *scope, sprog_leaves *out) {
  TRY(sprog_room(x, ir_type_leaves(op->type), out));
  uint32_t at = 0;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    const sprog_leaves *part = sprog_value(scope, ir_operand(op, k));
    if (part->n) memcpy(out->v + at, part->v, part->n * sizeof *part->v);
    at += part->n;
  }
  return 0;
}

/* A part of the tuple's list, not a copy. */
static sprog_leaves sprog_element(const ir_op *op, const sprog_leaves *tuple) {
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  uint32_t at = 0;
  assert(index >= 0 && index < (int64_t)ir_operand_type(op, 0)->n_elements);
  for (int64_t i = 0; i < index; i++) at += ir_type_leaves(ir_operand_type(op, 0)->elements[i]);
  return (sprog_leaves){ir_type_leaves(op->type), tuple->v + at};
}

/* A call is the callee's ops in its place, on the operands' values. */
static int sprog_called(sprog_make *x, const ir_op *op, const sprog_scope *scope, uint32_t depth, sprog_leaves *out) {
  assert(op->n_called > 0);
  sprog_leaves *args = BASE_ARRAY(&x->scratch, sprog_leaves, (size_t)op->n_operands + 1);
  if (!args) return sprog_no_memory();
  for (uint32_t k = 0; k < op->n_operands; k++) args[k] = *sprog_value(scope, ir_operand(op, k));
  return sprog_computation(x, op->called[0], args, depth + 1, out);
}

/* A branch by a predicate: nothing that is computed here can fail or be seen, so both are, and one is taken. */
static int sprog_branch(sprog_make *x, const ir_op *op, const sprog_scope *scope, uint32_t depth, sprog_leaves *out) {
  sprog_leaves sides[2];
  if (op->n_called != 2 || op->n_operands != 3 || ir_operand_type(op, 0)->dtype != XLAC_PRED) return sprog_refuse(x);
  uint32_t which = sprog_value(scope, ir_operand(op, 0))->v[0];
  for (uint32_t i = 0; i < 2; i++) {
    TRY(sprog_computation(x, op->called[i], sprog_value(scope, ir_operand(op, i + 1)), depth + 1, &sides[i]));
    if (!x->flat) return 0;
  }
  TRY(sprog_room(x, sides[0].n, out));
  for (uint32_t j = 0; j < sides[0].n && x->flat; j++) {
    scalar_value v = {.op = {.code = SCALAR_SELECT},
                      .dtype = x->values.items[sides[0].v[j]].dtype,
                      .n_in = 3,
                      .in = {which, sides[0].v[j], sides[1].v[j]}};
    TRY(sprog_add_op(x, v, &out->v[j]));
  }
  return 0;
}

static int sprog_op(sprog_make *x, const ir_op *op, const sprog_leaves *args, const sprog_scope *scope, uint32_t depth,
                    sprog_leaves *out) {
  if (!sprog_types_are_lanes(op->type)) return sprog_refuse(x);
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      *out = args[op->u.number];
      return 0;
    case IR_OP_TUPLE:
      return sprog_tuple(x, op, scope, out);
    case IR_OP_GET_TUPLE_ELEMENT:
      *out = sprog_element(op, sprog_value(scope, ir_operand(op, 0)));
      return 0;
    case IR_OP_CALL:
    case IR_OP_FUSION:
      return sprog_called(x, op, scope, depth, out);
    case IR_OP_CONDITIONAL:
      return sprog_branch(x, op, scope, depth, out);
    default:
      break;
  }
  if (sprog_is_identity(op)) {
    *out = *sprog_value(scope, ir_operand(op, 0));
    return 0;
  }
  TRY(sprog_room(x, 1, out));
  return op->opcode == IR_OP_CONSTANT ? sprog_constant(x, op, out->v) : sprog_elementwise(x, op, scope, out->v);
}

/* HLO lets the float types of calls differ from their computations'; who runs such converts, and this does not. */
static bool sprog_has_type(const sprog_make *x, const ir_op *op, const sprog_leaves *leaves) {
  return ir_is_tuple(op->type) || x->values.items[leaves->v[0]].dtype == op->type->dtype;
}

/* Ops that must be run though no result needs them: whatever has an effect, or may have one in what it calls. */
static bool sprog_has_effects(const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    bool flat = op->opcode == IR_OP_CALL || op->opcode == IR_OP_FUSION || op->opcode == IR_OP_CONDITIONAL;
    if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT) || op->opcode == IR_OP_CUSTOM_CALL || (op->n_called && !flat))
      return true;
  }
  return false;
}

static int sprog_computation(sprog_make *x, const ir_computation *c, const sprog_leaves *args, uint32_t depth,
                             sprog_leaves *out) {
  uint32_t n = 0;
  if (depth > SPROG_MAX_DEPTH || x->calls++ > SPROG_MAX_CALLS || c->n_ops > SCALAR_MAX_VALUES || sprog_has_effects(c))
    return sprog_refuse(x);
  ir_op **order = ir_post_order(c, &x->scratch, &n);
  sprog_scope scope = {.values = BASE_ARRAY(&x->scratch, sprog_leaves, (size_t)n + 1)};
  if (!order || !scope.values) return sprog_no_memory();
  base_map_init(&scope.places, x->alloc);
  int status = 0;
  for (uint32_t i = 0; i < n && x->flat && status == 0; i++) {
    status = sprog_op(x, order[i], args, &scope, depth, &scope.values[i]);
    if (status == 0 && x->flat && !sprog_has_type(x, order[i], &scope.values[i])) status = sprog_refuse(x);
    if (status == 0 && !base_map_set(&scope.places, base_key(order[i]), i)) status = sprog_no_memory();
  }
  if (status == 0 && x->flat) *out = *sprog_value(&scope, ir_root(c));
  base_map_free(&scope.places);
  return status;
}

/* Parameters are the first values, in their order; tuples are refused. */
static int sprog_params(sprog_make *x, const ir_computation *c, sprog_leaves *out) {
  sprog_leaves *args = BASE_ARRAY(&x->scratch, sprog_leaves, (size_t)c->n_params + 1);
  if (!args) return sprog_no_memory();
  for (uint32_t i = 0; i < c->n_params && x->flat; i++) {
    if (!sprog_is_lane(c->params[i]->type)) return sprog_refuse(x);
    TRY(sprog_room(x, 1, &args[i]));
    TRY(sprog_add(x, (scalar_value){.dtype = c->params[i]->type->dtype}, args[i].v));
  }
  return x->flat ? sprog_computation(x, c, args, 0, out) : 0;
}

/* What remains, in the arena. NULL when out of memory. */
static const scalar_program *sprog_finish(sprog_make *x, uint32_t n_params, const sprog_leaves *outs,
                                          base_arena *arena) {
  scalar_program *p = BASE_NEW(arena, scalar_program);
  if (!p) return NULL;
  p->n_params = n_params;
  p->n_outs = outs->n;
  p->n_values = x->values.n;
  for (uint32_t j = 0; j < outs->n; j++) x->values.items[outs->v[j]].read = true;
  for (uint32_t i = 0; i < p->n_values; i++) p->n_ops += x->values.items[i].n_in > 0;
  p->values = base_arena_memdup(arena, x->values.items, x->values.n * sizeof *x->values.items);
  p->outs = base_arena_memdup(arena, outs->v, outs->n * sizeof *outs->v);
  return p->values && p->outs ? p : NULL;
}

int scalar_program_make(const ir_computation *c, base_arena *arena, const scalar_program **out, xlac_error *err) {
  assert(c && arena && out);
  sprog_make x = {.alloc = arena->alloc, .flat = true};
  sprog_leaves outs = {0, NULL};
  *out = NULL;
  base_arena_init(&x.scratch, arena->alloc);
  int status = sprog_params(&x, c, &outs);
  if (status == 0 && x.flat && !(*out = sprog_finish(&x, c->n_params, &outs, arena))) status = sprog_no_memory();
  BASE_VEC_FREE(x.alloc, &x.values);
  base_arena_free(&x.scratch);
  if (status) return base_oom(err, "a called computation");
  return *out ? scalar_program_verify(*out, err) : 0;
}

scalar_code scalar_program_single(const scalar_program *p) {
  if (p->n_ops != 1 || p->n_outs != 1 || p->n_params != 2) return SCALAR_NONE;
  const scalar_value *v = &p->values[p->outs[0]];
  scalar_code code = (scalar_code)v->op.code;
  if (v->n_in != 2) return SCALAR_NONE;
  bool straight = v->in[0] == 0 && v->in[1] == 1, crossed = v->in[0] == 1 && v->in[1] == 0;
  return straight || (crossed && scalar_is_commutative(code)) ? code : SCALAR_NONE;
}

/* --- the verifier --- */

static int sprog_fail(xlac_error *err, uint32_t i, const char *what) {
  return base_fail(err, XLAC_E_INTERNAL, "value v%u of a scalar program %s", i, what);
}

static int sprog_verify_value(const scalar_program *p, uint32_t i, xlac_error *err) {
  const scalar_value *v = &p->values[i];
  uint8_t in[3] = {0, 0, 0};
  scalar_loop l;
  if (v->dtype == BASE_DTYPE_INVALID || v->dtype >= BASE_DTYPE_COUNT ||
      v->bytes != base_dtype_bytes((base_dtype)v->dtype))
    return sprog_fail(err, i, "has no element type, or not its size");
  bool is_op = v->op.code != SCALAR_NONE, is_param = i < p->n_params;
  if (is_op + is_param + v->constant != 1 || is_op != (v->n_in > 0))
    return sprog_fail(err, i, "is none of a parameter, a constant and an op");
  for (uint32_t k = 0; k < v->n_in; k++) {
    if (k > 2 || v->in[k] >= i || !p->values[v->in[k]].read) return sprog_fail(err, i, "uses what is not before it");
    in[k] = p->values[v->in[k]].dtype;
  }
  return !is_op || scalar_loop_of(&v->op, v->n_in, in, v->dtype, &l) ? 0
                                                                     : sprog_fail(err, i, "is not an op on its types");
}

int scalar_program_verify(const scalar_program *p, xlac_error *err) {
  assert(p && p->n_params <= p->n_values);
  uint32_t ops = 0;
  for (uint32_t i = 0; i < p->n_values; i++) {
    TRY(sprog_verify_value(p, i, err));
    ops += p->values[i].n_in > 0;
  }
  if (ops != p->n_ops) return sprog_fail(err, p->n_values, "ends more or fewer ops than it has");
  for (uint32_t j = 0; j < p->n_outs; j++)
    if (p->outs[j] >= p->n_values || !p->values[p->outs[j]].read)
      return sprog_fail(err, p->outs[j], "is a result, and not there");
  return 0;
}
