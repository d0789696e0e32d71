/* Random numbers of tf.random.Generator: its state is a variable of three i64, the counter (low, high) and the key.
 * What a call takes is 256 blocks for each number, as TensorFlow reserves them. */
#include "../random.h"

static ir_value stateful_variable(tfl_op *x, tfl_resource *r) {
  ir_value v = r ? tfl_use(x, &r->value) : (ir_value){NULL, 0};
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  if (t->rank != 1 || t->dims[0] < 3 || t->dtype != XLAC_S64)
    return tfl_fail(x, "the generator's state has not 3 elements of int64"), (ir_value){NULL, 0};
  return tfl_cast(x, v, XLAC_U64);
}

/* The counter `blocks`, a scalar of u64, further. The bits of a converted i64 are the same. */
static void stateful_skip(tfl_op *x, tfl_resource *r, ir_value state, ir_value blocks) {
  ir_value low = tfl_slice(x, state, 0, 0, 1), high = tfl_slice(x, state, 0, 1, 2);
  ir_value next = tfl_binary(x, IR_OP_ADD, low, blocks);
  if (!next.op) return;
  ir_value carry = tfl_cast(x, tfl_compare(x, "LT", next, low), XLAC_U64);
  ir_value parts[] = {next, opt_binary(x->rw, IR_OP_ADD, high, carry),
                      tfl_slice(x, state, 0, 2, opt_type(state)->dims[0])};
  tfl_assign(x, r, tfl_cast(x, tfl_concat(x, 3, parts, 0), XLAC_S64));
}

static int stateful_check_alg(tfl_op *x, uint32_t i) {
  int64_t alg = 0;
  TRY(tfl_int(x, i, &alg));
  return alg == 1 ? 0 : tfl_fail(x, "random algorithm %lld: only Philox, 1, is lowered", (long long)alg);
}

/* resource, alg, delta; arg: 1 gives the state as it was. */
int tfl_row_random_skip(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value state = stateful_variable(x, r), delta = tfl_cast(x, tfl_in(x, 2), XLAC_U64);
  TRY(stateful_check_alg(x, 1));
  if (x->row->arg) tfl_out(x, 0, tfl_cast(x, state, XLAC_S64));
  if (delta.op) stateful_skip(x, r, state, tfl_with(x, IR_OP_MULTIPLY, tfl_reshape(x, delta, 0, NULL), 256));
  return x->status;
}

ir_value tfl_random_from_variable(tfl_op *x, int64_t n) {
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value state = stateful_variable(x, r);
  if (!state.op || stateful_check_alg(x, 1) != 0) return (ir_value){NULL, 0};
  stateful_skip(x, r, state, opt_splat_int(x->rw, tfl_type(x, XLAC_U64, 0, NULL), n * 256));
  ir_value parts[] = {tfl_slice(x, state, 0, 2, 3), tfl_slice(x, state, 0, 0, 2)};
  return tfl_concat(x, 2, parts, 0);
}
