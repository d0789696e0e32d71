/* HistogramFixedWidth: how many values fall into each of some steps of a range; what is outside counts for the ends. */
#include "../windows.h"

int tfl_row_histogram(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *range = tfl_in_type(x, 1);
  int64_t bins = 0, flat[] = {t->count, 1};
  TRY(tfl_int(x, 2, &bins));
  if (bins < 1 || range->rank != 1 || range->dims[0] != 2 || range->dtype != t->dtype)
    return tfl_fail(x, "%lld bins of a range that is not two numbers like the values", (long long)bins);
  ir_value v = tfl_reshape(x, tfl_in(x, 0), 1, flat), ends = tfl_in(x, 1);
  ir_value low = tfl_reshape(x, tfl_slice(x, ends, 0, 0, 1), 0, NULL);
  ir_value high = tfl_reshape(x, tfl_slice(x, ends, 0, 1, 2), 0, NULL);
  ir_value width = tfl_with(x, IR_OP_DIVIDE, opt_binary(x->rw, IR_OP_SUBTRACT, high, low), (double)bins);
  v = tfl_binary(x, IR_OP_SUBTRACT, tfl_binary(x, IR_OP_MAXIMUM, v, low), low);
  v = tfl_with(x, IR_OP_MINIMUM, tfl_binary(x, IR_OP_DIVIDE, v, width), (double)(bins - 1));
  ir_value at = tfl_reshape(x, tfl_cast(x, v, XLAC_S32), 2, flat);
  base_dtype own = tfl_out_dtype(x, 0);
  ir_value none = tfl_full(x, own, 1, &bins, 0), ones = tfl_full(x, own, 1, flat, 1);
  tfl_out(x, 0, tfl_put_nd(x, IR_OP_ADD, none, at, ones));
  return x->status;
}
