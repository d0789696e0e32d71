/* Simplification of windows: padding that changes nothing becomes the window's own. */
#include "algebraic_simplification.h"

/* The op of a computation that combines its two parameters by one op, or IR_OP_INVALID. */
static unsigned hs_combiner(const ir_computation *c) {
  const ir_op *body = ir_root(c);
  if (c->n_params != 2 || body->n_operands != 2 || !ir_is_scalar(body->type)) return IR_OP_INVALID;
  const ir_op *a = ir_operand(body, 0), *b = ir_operand(body, 1);
  bool both = (a == c->params[0] && b == c->params[1]) || (a == c->params[1] && b == c->params[0]);
  return both && a->type == body->type && b->type == body->type ? body->opcode : IR_OP_INVALID;
}

/* Whether combining with `value` changes nothing, after `init` has taken part: 0 in sums that begin with 0, which are
 * never -0; the initial value itself in maxima and minima. */
static bool hs_is_neutral(unsigned combiner, const ir_op *init, const ir_op *value) {
  if (combiner == IR_OP_ADD) return hs_is(init, 0.0) && hs_is(value, 0.0) && !base_dtype_is_complex(value->type->dtype);
  if (combiner != IR_OP_MAXIMUM && combiner != IR_OP_MINIMUM) return false;
  if (init->opcode != IR_OP_CONSTANT || value->opcode != IR_OP_CONSTANT || init->type != value->type)
    return init == value;
  return memcmp(init->u.literal->data, value->u.literal->data, base_dtype_bytes((base_dtype)init->type->dtype)) == 0;
}

static bool hs_can_pad(const ir_window *w, const ir_padding *p, const ir_type *padded) {
  if (w->n != p->n || padded->count == 0) return false;
  for (uint32_t d = 0; d < w->n; d++)
    if (w->v[d].base_dilation != 1 || p->v[d].low < 0 || p->v[d].high < 0) return false;
  return true;
}

static ir_op *hs_reduce_window(hs_run *s, ir_op *op) {
  const ir_window *window = ir_get_window(op);
  ir_op *pad = op->n_operands == 2 ? ir_operand(op, 0) : NULL;
  const ir_attr *a = pad && pad->opcode == IR_OP_PAD ? ir_attr_find(pad, IR_ATTR_PADDING) : NULL;
  if (!a || !window || !hs_can_pad(window, a->v.padding, pad->type) || !hlo_is_plain(ir_operand_type(pad, 0)))
    return NULL;
  if (!hs_is_neutral(hs_combiner(op->called[0]), ir_operand(op, 1), ir_operand(pad, 1))) return NULL;
  if (ir_operand_type(pad, 0)->count == 0) return NULL;
  ir_window *own = base_arena_zalloc(&s->x.m->arena, sizeof *own + window->n * sizeof *own->v);
  ir_attr attr = *ir_attr_find(op, IR_ATTR_WINDOW);
  if (!own) return s->x.failed = true, NULL;
  own->n = window->n;
  for (uint32_t d = 0; d < window->n; d++) {
    own->v[d] = window->v[d];
    own->v[d].padding_low += a->v.padding->v[d].low;
    own->v[d].padding_high += a->v.padding->v[d].high;
    own->v[d].base_dilation = a->v.padding->v[d].interior + 1;
  }
  attr.v.window = own;
  if (!ir_attr_set(op, attr)) return s->x.failed = true, NULL;
  ir_set_operand(op, 0, (ir_value){ir_operand(pad, 0), pad->operands[0].index});
  return op;
}

const hs_row hs_window_rules[] = {{IR_OP_REDUCE_WINDOW, hs_reduce_window}, {IR_OP_INVALID, NULL}};
