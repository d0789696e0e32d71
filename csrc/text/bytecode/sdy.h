/* The sdy dialect in bytecode: its own encoding of attributes, as of Shardy's dialect version 0.0.1. Internal to
 * sdy.c, write_sdy.c and those that call them. Source: Shardy's bytecode.cc and sdy_bytecode.td. */
#ifndef XLAC_TEXT_BYTECODE_SDY_H
#define XLAC_TEXT_BYTECODE_SDY_H

#include "../../ir/sdy/sdy.h"
#include "bytecode.h"

/* Codes of its attributes. */
enum {
  BC_SDY_MANUAL_AXES,
  BC_SDY_MESH_AXIS,
  BC_SDY_MESH,
  BC_SDY_SUB_AXIS,
  BC_SDY_AXIS,
  BC_SDY_DIM,
  BC_SDY_SHARDING,
  BC_SDY_SHARDINGS,
  BC_SDY_DIM_MAP,
  BC_SDY_TENSOR_MAP,
  BC_SDY_RULE,
  BC_SDY_AXES,
  BC_SDY_AXIS_LISTS,
  BC_SDY_PARAM,
  BC_SDY_PARAMS,
  BC_SDY_SHARDING_UNREDUCED,  /* a sharding, then its unreduced axes */
  BC_SDY_SHARDINGS_UNREDUCED, /* where one of them has unreduced axes */
  BC_SDY_COUNT
};

/* Properties are the op's own attributes in the order of their names: the one after `last` (NULL: the first), or NULL.
 */
const ir_mattr_spec *bc_sdy_next_spec(const ir_mlir_info *op, const ir_mattr_spec *last);

/* sdy.c: reading. The properties of an op, added to its attributes. */
XLAC_MUST_USE int bc_sdy_attr(bc_cursor *c, const ir_mattr **out);
/* The inherent attributes of an op of sdy, in the order in which its row has them. */
XLAC_MUST_USE int bc_sdy_properties(bc_cursor *c, const ir_mlir_info *op, const ir_mdict **attrs);

#endif
