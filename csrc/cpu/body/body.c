/* From a computation to a list of ops on lanes: calls and tuples are gone, a branch is a select of what both sides
 * give.
 *
 *    %less (p0: f32[], p1: f32[], p2: s32[], p3: s32[]) -> pred[]     values 0 to 3: the parameters
 *      c = f32[] constant(0)                                              4: constant
 *      a = f32[] add(p0, c)                                               5: add(0, 4)
 *      ROOT l = pred[] compare(a, p1), direction=LT                       6: compare(5, 1); outs = {6}
 *
 * Ops that only rename a value (copy, reshape of one element) have none of their own. What can't be flattened (a
 * loop, an op on arrays, too many calls) is refused, which is no error: the interpreter evaluates the computation
 * then. */
#include "body.h"

#include "../../base/map.h"

enum {
  BODYM_MAX_CALLS = 512,  /* in all: they double with each level */
  BODYM_MAX_DEPTH = 32,   /* calls within calls */
  BODYM_MAX_VALUES = 512, /* calls of calls double with each level; memory to run one is on the stack */
  BODYM_LANE_BYTES = 1 << 15,
  BODYM_MIN_LANES = 64,
  BODYM_MAX_LANES = 512
};

BASE_VEC(bodym_values, cpu_body_value);

/* An op's value: the list of its leaves' values. */
typedef struct bodym_leaves {
  uint32_t n;
  uint32_t *v;
} bodym_leaves;

typedef struct bodym_make {
  base_alloc alloc;
  base_arena scratch;
  bodym_values values;
  bool flat; /* so far; false: not for us */
  uint32_t calls;
} bodym_make;

/* Values by op, for as long as its computation is gone through. */
typedef struct bodym_scope {
  base_map places; /* of ops in `values` */
  bodym_leaves *values;
} bodym_scope;

static const bodym_leaves *bodym_value(const bodym_scope *s, const ir_op *op) {
  uint64_t place = 0;
  bool known = base_map_get(&s->places, base_key(op), &place);
  assert(known);
  (void)known;
  return &s->values[place];
}

/* The caller of cpu_body_make gets the error's text; here the code is enough. */
static int bodym_no_memory(void) {
  return -XLAC_E_OUT_OF_MEMORY;
}

/* From here on callers only return. */
static int bodym_refuse(bodym_make *x) {
  x->flat = false;
  return 0;
}

/* A scalar, or an array of one element, which is as good. */
static bool bodym_is_lane(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && !t->quant && !t->text && t->count == 1;
}

static bool bodym_types_are_lanes(const ir_type *t) {
  if (!ir_is_tuple(t)) return bodym_is_lane(t);
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!bodym_types_are_lanes(t->elements[i])) return false;
  return true;
}

/* A value at the end of the list. *id is left alone where there are too many. */
static int bodym_add(bodym_make *x, cpu_body_value v, uint32_t *id) {
  if (x->values.n >= BODYM_MAX_VALUES) return bodym_refuse(x);
  v.bytes = (uint8_t)base_dtype_bytes((base_dtype)v.dtype);
  *id = x->values.n;
  return BASE_VEC_PUSH(x->alloc, &x->values, v) ? 0 : bodym_no_memory();
}

static int bodym_room(bodym_make *x, uint32_t n, bodym_leaves *out) {
  out->n = n;
  out->v = BASE_ARRAY(&x->scratch, uint32_t, (size_t)n + 1);
  return out->v ? 0 : bodym_no_memory();
}

/* An elementwise op: by its loop, and for one lane by an instruction. */
static int bodym_loop(bodym_make *x, const ir_op *op, const bodym_scope *scope, uint32_t *id) {
  cpu_body_value v = {.dtype = op->type->dtype, .n_in = (uint8_t)op->n_operands, .op = op};
  if (op->n_operands == 0 || op->n_operands > 3 || !interp_loop_of(op, &v.loop)) return bodym_refuse(x);
  for (uint32_t k = 0; k < op->n_operands; k++) {
    v.in[k] = bodym_value(scope, ir_operand(op, k))->v[0];
    x->values.items[v.in[k]].read = true;
  }
  scalar_op s;
  (void)scalar_op_of(op, &s);
  v.one = cpu_list_scalar(&s, &v.loop);
  return bodym_add(x, v, id);
}

/* Ops that leave a lane as it is: only its dims may change, or nothing at all. */
static bool bodym_is_identity(const ir_op *op) {
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

static int bodym_computation(bodym_make *x, const ir_computation *c, const bodym_leaves *args, uint32_t depth,
                             bodym_leaves *out);

/* The leaves of all operands, one operand after another. */
static int bodym_tuple(bodym_make *x, const ir_op *op, const bodym_scope *scope, bodym_leaves *out) {
  TRY(bodym_room(x, ir_type_leaves(op->type), out));
  uint32_t at = 0;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    const bodym_leaves *part = bodym_value(scope, ir_operand(op, k));
    if (part->n) memcpy(out->v + at, part->v, part->n * sizeof *part->v);
    at += part->n;
  }
  return 0;
}

/* A part of the tuple's list, not a copy. */
static bodym_leaves bodym_element(const ir_op *op, const bodym_leaves *tuple) {
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  uint32_t at = 0;
  assert(index >= 0 && index < (int64_t)ir_operand_type(op, 0)->n_elements);
  for (int64_t i = 0; i < index; i++) at += ir_type_leaves(ir_operand_type(op, 0)->elements[i]);
  return (bodym_leaves){ir_type_leaves(op->type), tuple->v + at};
}

/* A call is the callee's ops in its place, on the operands' values. */
static int bodym_called(bodym_make *x, const ir_op *op, const bodym_scope *scope, uint32_t depth, bodym_leaves *out) {
  assert(op->n_called > 0);
  bodym_leaves *args = BASE_ARRAY(&x->scratch, bodym_leaves, (size_t)op->n_operands + 1);
  if (!args) return bodym_no_memory();
  for (uint32_t k = 0; k < op->n_operands; k++) args[k] = *bodym_value(scope, ir_operand(op, k));
  return bodym_computation(x, op->called[0], args, depth + 1, out);
}

/* A branch by a predicate: nothing that is computed here can fail or be seen, so both are, and one is taken. */
static int bodym_branch(bodym_make *x, const ir_op *op, const bodym_scope *scope, uint32_t depth, bodym_leaves *out) {
  bodym_leaves sides[2];
  const ir_type *which = ir_operand_type(op, 0);
  if (op->n_called != 2 || op->n_operands != 3 || which->dtype != XLAC_PRED) return bodym_refuse(x);
  for (uint32_t i = 0; i < 2; i++) {
    TRY(bodym_computation(x, op->called[i], bodym_value(scope, ir_operand(op, i + 1)), depth + 1, &sides[i]));
    if (!x->flat) return 0;
  }
  TRY(bodym_room(x, sides[0].n, out));
  for (uint32_t j = 0; j < sides[0].n && x->flat; j++) {
    uint8_t t = x->values.items[sides[0].v[j]].dtype;
    cpu_body_value v = {
        .dtype = t, .n_in = 3, .in = {bodym_value(scope, ir_operand(op, 0))->v[0], sides[0].v[j], sides[1].v[j]}};
    v.loop = (interp_loop){
        .fn = interp_select_loop(base_dtype_bytes((base_dtype)t)), .n_in = 3, .in = {XLAC_PRED, t, t}, .out = t};
    for (uint32_t k = 0; k < 3; k++) x->values.items[v.in[k]].read = true;
    TRY(bodym_add(x, v, &out->v[j]));
  }
  return 0;
}

static int bodym_op(bodym_make *x, const ir_op *op, const bodym_leaves *args, const bodym_scope *scope, uint32_t depth,
                    bodym_leaves *out) {
  if (!bodym_types_are_lanes(op->type)) return bodym_refuse(x);
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      *out = args[op->u.number];
      return 0;
    case IR_OP_TUPLE:
      return bodym_tuple(x, op, scope, out);
    case IR_OP_GET_TUPLE_ELEMENT:
      *out = bodym_element(op, bodym_value(scope, ir_operand(op, 0)));
      return 0;
    case IR_OP_CALL:
    case IR_OP_FUSION:
      return bodym_called(x, op, scope, depth, out);
    case IR_OP_CONDITIONAL:
      return bodym_branch(x, op, scope, depth, out);
    default:
      break;
  }
  if (bodym_is_identity(op)) {
    *out = *bodym_value(scope, ir_operand(op, 0));
    return 0;
  }
  TRY(bodym_room(x, 1, out));
  if (op->opcode != IR_OP_CONSTANT) return bodym_loop(x, op, scope, out->v);
  if (ir_is_tuple(op->type) || op->u.literal->elided) return bodym_refuse(x);
  return bodym_add(x, (cpu_body_value){.dtype = op->type->dtype, .constant = op->u.literal->data}, out->v);
}

static int bodym_computation(bodym_make *x, const ir_computation *c, const bodym_leaves *args, uint32_t depth,
                             bodym_leaves *out) {
  uint32_t n = 0;
  if (depth > BODYM_MAX_DEPTH || x->calls++ > BODYM_MAX_CALLS) return bodym_refuse(x);
  ir_op **order = ir_post_order(c, &x->scratch, &n);
  if (!order) return bodym_no_memory();
  if (n > BODYM_MAX_VALUES) return bodym_refuse(x);
  bodym_scope scope = {.values = BASE_ARRAY(&x->scratch, bodym_leaves, (size_t)n + 1)};
  if (!scope.values) return bodym_no_memory();
  base_map_init(&scope.places, x->alloc);
  int status = 0;
  for (uint32_t i = 0; i < n && x->flat && status == 0; i++) {
    status = bodym_op(x, order[i], args, &scope, depth, &scope.values[i]);
    if (status == 0 && !base_map_set(&scope.places, base_key(order[i]), i)) status = bodym_no_memory();
  }
  if (status == 0 && x->flat) *out = *bodym_value(&scope, ir_root(c));
  base_map_free(&scope.places);
  return status;
}

/* Parameters are the first values, in their order; tuples are refused. */
static int bodym_params(bodym_make *x, const ir_computation *c, bodym_leaves *out) {
  bodym_leaves *args = BASE_ARRAY(&x->scratch, bodym_leaves, (size_t)c->n_params + 1);
  if (!args) return bodym_no_memory();
  for (uint32_t i = 0; i < c->n_params && x->flat; i++) {
    if (!bodym_is_lane(c->params[i]->type)) return bodym_refuse(x);
    TRY(bodym_room(x, 1, &args[i]));
    TRY(bodym_add(x, (cpu_body_value){.dtype = c->params[i]->type->dtype}, args[i].v));
  }
  return x->flat ? bodym_computation(x, c, args, 0, out) : 0;
}

/* --- what remains: in the arena --- */

/* See cpu_body.single. */
static const ir_op *bodym_single(const cpu_body *b) {
  if (b->n_ops != 1 || b->n_outs != 1 || b->n_params != 2) return NULL;
  const cpu_body_value *v = &b->values[b->outs[0]];
  if (v->n_in != 2 || !v->op) return NULL;
  bool straight = v->in[0] == 0 && v->in[1] == 1, crossed = v->in[0] == 1 && v->in[1] == 0;
  return straight || (crossed && ir_opcode_has(v->op->opcode, IR_COMMUTATIVE)) ? v->op : NULL;
}

static size_t bodym_round(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

/* As many lanes as keep all values in a first-level cache, and the bytes that running takes. */
static void bodym_measure(cpu_body *b) {
  size_t inside = 0;
  for (uint32_t i = b->n_params; i < b->n_values; i++) inside += b->values[i].bytes;
  size_t lanes = BODYM_LANE_BYTES / (inside + 1) / BODYM_MIN_LANES * BODYM_MIN_LANES;
  b->lanes = (uint32_t)(lanes < BODYM_MIN_LANES ? BODYM_MIN_LANES : lanes > BODYM_MAX_LANES ? BODYM_MAX_LANES : lanes);
  assert(b->lanes >= BODYM_MIN_LANES && b->lanes <= BODYM_MAX_LANES);
  b->lanes_bytes = bodym_round(b->n_values * sizeof(char *));
  for (uint32_t i = b->n_params; i < b->n_values; i++)
    b->lanes_bytes += bodym_round((size_t)b->lanes * b->values[i].bytes);
  b->one_bytes = bodym_round((size_t)b->n_values * CPU_BODY_SLOT) + bodym_round((b->n_ops + 1) * sizeof(list_inst));
}

/* On one lane an op takes over the one before, where nobody else wants the result of that: two ops of floats are
 * then one instruction (cpu_list_pair). An op that has taken one over is not taken over itself. */
static void bodym_pair(const cpu_body *b, cpu_body_value *values, const uint8_t *uses) {
  uint32_t last = UINT32_MAX;
  for (uint32_t i = b->n_params; i < b->n_values; i++) {
    cpu_body_value *v = &values[i], *before = last != UINT32_MAX ? &values[last] : NULL;
    if (!v->n_in) continue;
    uint32_t one = last;
    last = i;
    if (!before || v->n_in != 2 || before->n_in != 2 || before->takes != UINT32_MAX || uses[one] != 1) continue;
    if (v->in[0] != one && v->in[1] != one) continue;
    uint32_t both = cpu_list_pair(before->one, v->one, v->in[1] == one);
    if (both == LIST_CALL) continue;
    v->one = both;
    v->takes = one;
    before->taken = true;
  }
}

/* What runs on one lane. false when out of memory. */
static bool bodym_instructions(bodym_make *x, cpu_body *b, cpu_body_value *values) {
  uint8_t *uses = BASE_ARRAY(&x->scratch, uint8_t, (size_t)b->n_values + 1);
  if (!uses) return false;
  for (uint32_t i = 0; i < b->n_values; i++) {
    values[i].takes = UINT32_MAX;
    for (uint32_t k = 0; k < values[i].n_in; k++)
      if (uses[values[i].in[k]] < 2) uses[values[i].in[k]]++;
  }
  for (uint32_t j = 0; j < b->n_outs; j++) uses[b->outs[j]] = 2;
  bodym_pair(b, values, uses);
  return true;
}

/* NULL when out of memory. */
static cpu_body *bodym_finish(bodym_make *x, const ir_computation *c, const bodym_leaves *outs, base_arena *arena) {
  cpu_body *b = BASE_NEW(arena, cpu_body);
  if (!b) return NULL;
  for (uint32_t j = 0; j < outs->n; j++) x->values.items[outs->v[j]].read = true;
  b->n_params = c->n_params;
  b->n_outs = outs->n;
  b->n_values = x->values.n;
  cpu_body_value *values = base_arena_memdup(arena, x->values.items, x->values.n * sizeof *x->values.items);
  b->values = values;
  b->outs = base_arena_memdup(arena, outs->v, outs->n * sizeof *outs->v);
  if (!values || !b->outs) return NULL;
  for (uint32_t i = 0; i < b->n_values; i++) b->n_ops += values[i].n_in > 0;
  if (!bodym_instructions(x, b, values)) return NULL;
  for (uint32_t j = 0; j < b->n_outs; j++) b->passes = b->passes || b->outs[j] < b->n_params;
  b->single = bodym_single(b);
  bodym_measure(b);
  return b;
}

int cpu_body_make(const ir_computation *c, base_arena *arena, const cpu_body **out, xlac_error *err) {
  bodym_make x = {.alloc = arena->alloc, .flat = true};
  bodym_leaves outs = {0, NULL};
  cpu_body *b = NULL;
  base_arena_init(&x.scratch, arena->alloc);
  int status = bodym_params(&x, c, &outs);
  if (status == 0 && x.flat && !(b = bodym_finish(&x, c, &outs, arena))) status = bodym_no_memory();
  BASE_VEC_FREE(x.alloc, &x.values);
  base_arena_free(&x.scratch);
  *out = b;
  return status ? base_oom(err, "a called computation") : 0;
}
