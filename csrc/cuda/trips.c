/* How often loops turn that count: then nobody has to read their conditions, and they are part of a launch graph. The
 * counter is run through at compile time, by the interpreter's own loops, so that it wraps and rounds as it will. */
#include "../scalar/loops/loops.h"
#include "executable.h"

enum { CU_TRIPS_MOST = 1 << 20, CU_TRIPS_BYTES = 16 };

/* The element of the state that decides, and where its value is. */
typedef struct cu_trips {
  int64_t element; /* -1: none yet */
  char now[CU_TRIPS_BYTES] __attribute__((aligned(16)));
} cu_trips;

/* An op on scalars that are constants or the element. */
typedef struct cu_trips_op {
  scalar_loop loop;
  const void *in[3];
} cu_trips_op;

static const ir_op *cu_trips_behind_copies(const ir_op *op) {
  while (op->opcode == IR_OP_COPY || (op->opcode == IR_OP_RESHAPE && op->type->count == 1)) op = ir_operand(op, 0);
  return op;
}

static const void *cu_trips_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT && op->type->count == 1 && op->u.literal && !op->u.literal->elided &&
                 base_dtype_bytes((base_dtype)op->type->dtype) <= CU_TRIPS_BYTES
             ? op->u.literal->data
             : NULL;
}

/* Operands that are something else leave the op unread. */
static bool cu_trips_read(cu_trips *x, const ir_op *op, const ir_computation *c, cu_trips_op *out) {
  if (ir_opcode_has(op->opcode, IR_NONDETERMINISTIC) || !ir_is_tensor(op->type) || op->type->count != 1 ||
      op->n_operands == 0 || op->n_operands > 3 || !scalar_loop_of_op(op, &out->loop))
    return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *in = cu_trips_behind_copies(ir_operand(op, i));
    int64_t element = in->opcode == IR_OP_GET_TUPLE_ELEMENT && ir_operand(in, 0) == c->params[0]
                          ? ir_get_int(in, IR_ATTR_INDEX, 0)
                          : -1;
    if (x->element < 0) x->element = element;
    out->in[i] = element >= 0 ? x->now : cu_trips_constant(in);
    if (!out->in[i] || (element >= 0 && element != x->element)) return false;
  }
  return true;
}

/* The element's first value. */
static bool cu_trips_begin(cu_trips *x, const ir_op *loop) {
  const ir_op *first = ir_operand(loop, 0);
  if (first->opcode != IR_OP_TUPLE || x->element < 0) return false;
  const ir_op *own = cu_trips_behind_copies(ir_operand(first, (uint32_t)x->element));
  const void *value = cu_trips_constant(own);
  if (value) memcpy(x->now, value, base_dtype_bytes((base_dtype)own->type->dtype));
  return value != NULL;
}

int64_t cuda_known_trips(const ir_op *loop) {
  const ir_computation *condition = loop->called[0], *body = loop->called[1];
  const ir_op *root = ir_root(body);
  cu_trips x = {.element = -1};
  cu_trips_op holds, step;
  char go_on[CU_TRIPS_BYTES] __attribute__((aligned(16))) = {0};
  IR_FOR_OPS(op, condition) {
    if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT)) return CUDA_TRIPS_UNKNOWN;
  }
  if (loop->n_operands != 1 || condition->n_params != 1 || body->n_params != 1 || root->opcode != IR_OP_TUPLE)
    return CUDA_TRIPS_UNKNOWN;
  if (!cu_trips_read(&x, cu_trips_behind_copies(ir_root(condition)), condition, &holds) || !cu_trips_begin(&x, loop) ||
      !cu_trips_read(&x, cu_trips_behind_copies(ir_operand(root, (uint32_t)x.element)), body, &step))
    return CUDA_TRIPS_UNKNOWN;
  for (int64_t n = 0; n < CU_TRIPS_MOST; n++) {
    scalar_loop_run(&holds.loop, 1, holds.in, go_on);
    if (!go_on[0]) return n;
    scalar_loop_run(&step.loop, 1, step.in, x.now);
  }
  return CUDA_TRIPS_UNKNOWN;
}
