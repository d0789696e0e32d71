/* Ops whose rule is not all there is to say: dimensions that the rule passes through though windows, paddings or
 * products reach into other shards. */
#include "../shard/rules/rule.h"
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

/* Number `at` of a list of the op's; `other` where it has none. */
static int64_t mover_int(const spmd_mover *x, const char *key, uint32_t at, int64_t other) {
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(ir_mattr_of(x->op, key), x->arena, &n);
  return v && at < n ? v[at] : other;
}

static bool mover_is_cut(const sdy_sharding *s, int64_t d) {
  return s && d >= 0 && (uint64_t)d < s->n_dims && s->dims[d].axes.n > 0;
}

/* Windows of one element, one after the other. */
static bool mover_has_windows(const spmd_mover *x, uint32_t d) {
  return mover_int(x, "padding", 2 * d, 0) || mover_int(x, "padding", 2 * d + 1, 0) ||
         mover_int(x, "window_strides", d, 1) != 1 || mover_int(x, "window_dimensions", d, 1) != 1 ||
         mover_int(x, "base_dilations", d, 1) != 1;
}

/* A spatial dimension is exchanged where that is as it is in the operand: without gaps. */
static bool mover_convolves(const spmd_mover *x, uint32_t *tensor, uint32_t *dim) {
  const ir_mattr *dims = ir_mattr_of(x->op, "dimension_numbers");
  uint32_t n = 0, n_kernel = 0, n_out = 0;
  const int64_t *in = ir_m_ints(ir_m_field(dims, "input_spatial_dimensions"), x->arena, &n);
  const int64_t *kernel = ir_m_ints(ir_m_field(dims, "kernel_spatial_dimensions"), x->arena, &n_kernel);
  const int64_t *out = ir_m_ints(ir_m_field(dims, "output_spatial_dimensions"), x->arena, &n_out);
  for (uint32_t i = 0; in && kernel && out && i < n && i < n_kernel && i < n_out; i++) {
    bool from = mover_is_cut(x->shardings[0], in[i]), to = mover_is_cut(x->shardings[2], out[i]), through = from || to;
    bool plain = from && to && mover_int(x, "lhs_dilation", i, 1) == 1 &&
                 sdy_axes_equal(x->shardings[0]->dims[in[i]].axes, x->shardings[2]->dims[out[i]].axes);
    *tensor = mover_is_cut(x->shardings[1], kernel[i]) ? 1 : 0;
    *dim = (uint32_t)(*tensor ? kernel[i] : in[i]);
    if (*tensor || (through && !plain)) return true;
  }
  return false;
}

bool spmd_reaches(const spmd_mover *x, uint32_t *tensor, uint32_t *dim) {
  const sdy_sharding *s = x->shardings[0];
  assert(x->op->n_operands > 0);
  if (x->op->opcode == IR_OP_CONVOLUTION) return mover_convolves(x, tensor, dim);
  for (uint32_t d = 0; s && d < s->n_dims; d++) {
    if (!mover_is_cut(s, d)) continue;
    *tensor = 0, *dim = d;
    if (x->op->opcode == IR_OP_REDUCE_WINDOW && mover_int(x, "base_dilations", d, 1) != 1) return true;
    if (x->op->opcode == IR_OP_SELECT_AND_SCATTER && mover_has_windows(x, d)) return true;
  }
  return false;
}

bool spmd_draws_alone(const ir_module *m, const ir_op *op, const sdy_sharding *s) {
  const sdy_mesh *mesh = sdy_mesh_of(m, s);
  uint32_t dim = 0, n = 0;
  assert(op->opcode == IR_OP_RNG_BIT_GENERATOR);
  for (uint32_t d = 0; d < s->n_dims; d++)
    if (s->dims[d].axes.n) dim = d, n++;
  return mesh && n == 1 && shc_draws_alone(op, dim, sdy_axes_size(s->dims[dim].axes, mesh));
}

/* The axes of all contracted dimensions must be those that the one reader adds up along. */
bool spmd_sums_up(const ir_op *op) {
  const ir_use *use = op->uses;
  return use && !use->next && use->user->opcode == IR_OP_SDY_ALL_REDUCE;
}
