/* Shape inference, internal: one function per INFER(x) of ops.def, all called through ir_infer, which has already run
 * ir_check_op. So the functions may count on the operand count of fixed-arity opcodes, on operands having types, on
 * operand 0's element type set, on required attributes being there with the right kind, and on called computations
 * being whole. */
#ifndef XLAC_IR_INFER_INFER_H
#define XLAC_IR_INFER_INFER_H

#include "../check/check.h"

#include "../ops_columns.h"
#undef INFER
#define INFER(fn) ir_infer_fn ir_infer_##fn;
#define OP(code, text, arity, columns) columns
#include "../ops.def"
#undef OP
#include "../ops_columns.h"

/* Dimensions under construction. On the stack of an inference function; a size may be IR_UNBOUNDED. */
typedef struct ir_dims {
  uint32_t rank;
  int64_t size[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
} ir_dims;

/* d as t has it, bounds and dynamic flags included. */
void ir_dims_of(ir_dims *d, const ir_type *t);
/* TOO_LARGE beyond IR_MAX_RANK. */
XLAC_MUST_USE int ir_dims_push(ir_dims *d, int64_t size, bool dynamic, xlac_error *err);
/* A tensor of these dimensions with the default layout, which is what XLA gives every result it makes anew. */
XLAC_MUST_USE int ir_dims_tensor(ir_module *m, base_dtype dtype, const ir_dims *d, const ir_type **out,
                                 xlac_error *err);
/* The same in `layout` (may be NULL: none). */
XLAC_MUST_USE int ir_dims_tensor_in(ir_module *m, base_dtype dtype, const ir_dims *d, const ir_layout *layout,
                                    const ir_type **out, xlac_error *err);
/* t with another element type and, where XLA does so, without the element size in its layout. */
XLAC_MUST_USE int ir_infer_retype(ir_module *m, const ir_type *t, base_dtype dtype, const ir_type **out,
                                  xlac_error *err);
/* With the default layout. */
XLAC_MUST_USE int ir_infer_scalar(ir_module *m, base_dtype dtype, const ir_type **out, xlac_error *err);
/* A tuple type; refuses more nesting or leaves than type.h allows, which chains of tuple ops could else make. */
XLAC_MUST_USE int ir_infer_tuple_of(ir_module *m, uint32_t n, const ir_type *const *elements, const ir_type **out,
                                    xlac_error *err);
/* A tuple of n types that `element` gives one by one. Gives element i into *out; ctx is the caller's. */
typedef int ir_element_fn(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err);
XLAC_MUST_USE int ir_infer_tuple_from(ir_module *m, uint32_t n, ir_element_fn *element, const void *ctx,
                                      const ir_type **out, xlac_error *err);
/* Element i is operand i's type; ctx is the op. */
ir_element_fn ir_infer_operand_element;
/* Operand 0's type when there is one operand, else the tuple of all. */
XLAC_MUST_USE int ir_infer_operands(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err);
/* ir_higher_precision, or an error where XLA has no answer. */
XLAC_MUST_USE int ir_infer_precision(base_dtype a, base_dtype b, base_dtype *out, xlac_error *err);
/* The windowed dims of t, which has as many dimensions as the window. */
XLAC_MUST_USE int ir_infer_window(const ir_type *t, const ir_window *w, ir_dims *out, xlac_error *err);

/* What ids in a collective's replica_groups count. Without channel_id replicas; with it partitions, where the opcode
 * knows no use_global_device_ids; with that false, which absent means, replicas of all partitions; with it true
 * devices, replica * num_partitions + partition. */
typedef enum ir_group_mode {
  IR_GROUPS_OF_REPLICAS,
  IR_GROUPS_OF_PARTITIONS,
  IR_GROUPS_OF_REPLICAS_IN_PARTITIONS,
  IR_GROUPS_OF_DEVICES
} ir_group_mode;
ir_group_mode ir_group_mode_of(const ir_op *op);
/* What the verifier needs besides: the number of participants of a collective's groups, and the results of all-gather
 * and reduce-scatter for a number of shards that the verifier takes from the declared type when the module does not fix
 * it. */
XLAC_MUST_USE int ir_infer_group_size(const ir_module *m, const ir_op *op, int64_t *out, xlac_error *err);
XLAC_MUST_USE int ir_infer_all_gather_by(ir_module *m, const ir_op *op, int64_t shards, const ir_type **out,
                                         xlac_error *err);
XLAC_MUST_USE int ir_infer_reduce_scatter_by(ir_module *m, const ir_op *op, int64_t shards, const ir_type **out,
                                             xlac_error *err);

#endif
