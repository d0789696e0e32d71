/* Values of ops of the sdy dialect in bytecode. They are of MLIR's own types, all others of VHLO's, with a
 * builtin.unrealized_conversion_cast wherever one goes to the other. An op of sdy comes as: casts of its operands, the
 * op, casts of those results that others use; a region of one begins with casts of its arguments and ends with casts of
 * what it returns. Shardy counts uses, so there is no cast that nobody needs. */
#include "../../ir/sdy/sdy.h"
#include "write.h"

/* Whether the computation is a region of an op of sdy. */
static bool bc_cast_inside(const ir_computation *c) {
  return c->owner && sdy_is_op(c->owner);
}

/* Whether the value itself is of MLIR's own type. */
static bool bc_cast_is_own(const ir_op *op) {
  return op->opcode == IR_OP_PARAMETER ? bc_cast_inside(op->parent) : sdy_is_op(op);
}

/* --- which of these are cast --- */

/* Two values with one key would be cast where only one need be: no harm. */
static uint64_t bc_cast_key(const ir_op *op, uint32_t i) {
  return base_key(op) + i;
}

/* Notes that result i of the op is used by an op outside of sdy. */
static bool bc_cast_add(bc_writer *w, const ir_op *op, uint32_t i) {
  return !bc_cast_is_own(op) || base_map_set(&w->casts, bc_cast_key(op, i), 1);
}

/* Once for the whole module, before anything is numbered. */
int bc_find_casts(bc_writer *w) {
  bool ok = true;
  IR_FOR_COMPUTATIONS(c, w->m) {
    for (uint32_t i = 0; !bc_cast_inside(c) && i < c->n_results; i++)
      ok = ok && bc_cast_add(w, c->results[i].op, c->results[i].index);
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; !sdy_is_op(op) && i < op->n_operands; i++)
        ok = ok && bc_cast_add(w, op->operands[i].op, op->operands[i].index);
    }
  }
  return ok ? 0 : bc_write_memory(w);
}

/* Whether anything but an op of sdy uses this result, which is then used through a cast. */
static bool bc_cast_is_needed(const bc_writer *w, const ir_op *op, uint32_t i) {
  uint64_t v;
  return bc_cast_is_own(op) && base_map_get(&w->casts, bc_cast_key(op, i), &v);
}

/* Casts of the first n results; of arguments of a region. */
static uint32_t bc_cast_results(const bc_writer *w, const ir_op *op, uint32_t n) {
  assert(n <= op->n_results);
  uint32_t casts = 0;
  for (uint32_t i = 0; i < n; i++) casts += bc_cast_is_needed(w, op, i);
  return casts;
}

/* Of the first n parameters: each cast takes a number between the parameters and the ops. */
static uint32_t bc_cast_params(const bc_writer *w, const ir_computation *c, uint32_t n) {
  assert(n <= c->n_params);
  uint32_t casts = 0;
  for (uint32_t i = 0; bc_cast_inside(c) && i < n; i++) casts += c->params[i] && bc_cast_is_needed(w, c->params[i], 0);
  return casts;
}

/* Operands of an op of sdy that are not MLIR's own. */
static uint32_t bc_cast_operands(const ir_op *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; sdy_is_op(op) && i < op->n_operands; i++) n += !bc_cast_is_own(op->operands[i].op);
  return n;
}

/* What a region of sdy returns, likewise. */
static uint32_t bc_cast_returned(const ir_computation *c) {
  uint32_t n = 0;
  for (uint32_t i = 0; bc_cast_inside(c) && i < c->n_results; i++) n += !bc_cast_is_own(c->results[i].op);
  return n;
}

/* Casts are values and ops of the block that they stand in. */
uint64_t bc_count_casts(const bc_writer *w, const ir_computation *c) {
  uint64_t n = bc_cast_returned(c) + bc_cast_params(w, c, c->n_params);
  IR_FOR_OPS(op, c) {
    if (sdy_is_op(op)) n += bc_cast_operands(op) + bc_cast_results(w, op, op->n_results);
  }
  return n;
}

/* --- numbers --- */

/* The order: arguments, their casts; for each op the casts of its operands, its results, the casts of those. */
int bc_number_values(bc_writer *w, const ir_computation *c, uint64_t first) {
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (!c->params[i]) return bc_cant_write(w, "a region lacks an argument");
    if (!base_map_set(&w->values, base_key(c->params[i]), first++)) return bc_write_memory(w);
  }
  first += bc_cast_params(w, c, c->n_params);
  IR_FOR_OPS(op, c) {
    if (op->opcode == IR_OP_PARAMETER) continue;
    first += bc_cast_operands(op);
    if (!base_map_set(&w->values, base_key(op), first)) return bc_write_memory(w);
    first += op->n_results + (sdy_is_op(op) ? bc_cast_results(w, op, op->n_results) : 0);
  }
  return 0;
}

/* The number of a value; `cast`: of the cast of one that is of MLIR's own type. Casts of results stand behind all
 * results, in their order, but only for those that need one. */
static int bc_cast_number(bc_writer *w, ir_value v, bool cast, uint64_t *out) {
  const ir_op *op = v.op;
  if (!base_map_get(&w->values, base_key(op), out)) return bc_cant_write(w, "a value is used before it is there");
  *out += v.index;
  if (!cast || !bc_cast_is_own(op)) return 0;
  const ir_computation *c = op->parent;
  if (op->opcode != IR_OP_PARAMETER) {
    *out += op->n_results - v.index + bc_cast_results(w, op, v.index);
    return 0;
  }
  uint32_t at = (uint32_t)op->u.number;
  *out += c->n_params - at + bc_cast_params(w, c, at);
  return 0;
}

/* `to_own`: to MLIR's own type, else to VHLO's. */
static int bc_mark_cast(bc_writer *w, const ir_mattr *loc, ir_value v, bool to_own) {
  uint32_t name = 0, at = 0;
  uint64_t number = 0;
  TRY(bc_cast_number(w, v, false, &number));
  TRY(bc_op_name_of(w, w->builtin, true, "unrealized_conversion_cast", 26, &name));
  TRY(bc_add_loc(w, loc, &at));
  bc_mark(w, BC_MARK_OP, name);
  bc_mark(w, BC_MARK_BYTE, BC_OP_RESULTS | BC_OP_OPERANDS);
  bc_mark(w, BC_MARK_ATTR, at);
  bc_mark(w, BC_MARK_VARINT, 1);
  TRY(bc_mark_type(w, to_own, v.op->types[v.index]));
  bc_mark(w, BC_MARK_VARINT, 1);
  bc_mark(w, BC_MARK_VARINT, number);
  return 0;
}

/* VHLO's types to builtin's, for the operands that an op of VHLO gives. */
int bc_mark_casts_before(bc_writer *w, const ir_op *op) {
  for (uint32_t i = 0; sdy_is_op(op) && i < op->n_operands; i++) {
    ir_value v = {op->operands[i].op, op->operands[i].index};
    if (!bc_cast_is_own(v.op)) TRY(bc_mark_cast(w, op->loc, v, true));
  }
  return 0;
}

/* And back, for results that ops of VHLO use. */
int bc_mark_casts_after(bc_writer *w, const ir_op *op) {
  for (uint32_t i = 0; sdy_is_op(op) && i < op->n_results; i++)
    if (bc_cast_is_needed(w, op, i)) TRY(bc_mark_cast(w, op->loc, (ir_value){(ir_op *)(uintptr_t)op, i}, false));
  return 0;
}

/* A region of an sdy op has arguments of builtin's types. */
int bc_mark_casts_of_params(bc_writer *w, const ir_computation *c) {
  for (uint32_t i = 0; bc_cast_inside(c) && i < c->n_params; i++)
    if (bc_cast_is_needed(w, c->params[i], 0))
      TRY(bc_mark_cast(w, c->params[i]->loc, (ir_value){c->params[i], 0}, false));
  return 0;
}

/* What the region of an sdy op returns must be of builtin's types. */
int bc_mark_casts_of_return(bc_writer *w, const ir_computation *c) {
  for (uint32_t i = 0; bc_cast_inside(c) && i < c->n_results; i++)
    if (!bc_cast_is_own(c->results[i].op)) TRY(bc_mark_cast(w, c->return_loc, c->results[i], true));
  return 0;
}

/* One use; *cast is the number of the next cast that was put before. */
static int bc_mark_use(bc_writer *w, bool user_is_own, ir_value v, uint64_t *cast) {
  uint64_t number = 0;
  if (user_is_own && !bc_cast_is_own(v.op)) {
    number = (*cast)++;
  } else {
    TRY(bc_cast_number(w, v, !user_is_own, &number));
  }
  bc_mark(w, BC_MARK_VARINT, number);
  return 0;
}

/* The casts of its operands are the values right before the op's own results. */
int bc_mark_operands(bc_writer *w, const ir_op *op) {
  uint64_t cast = 0;
  bool own = sdy_is_op(op);
  if (op->n_operands && own) TRY(bc_cast_number(w, (ir_value){(ir_op *)(uintptr_t)op, 0}, false, &cast));
  cast -= bc_cast_operands(op);
  for (uint32_t i = 0; i < op->n_operands; i++)
    TRY(bc_mark_use(w, own, (ir_value){op->operands[i].op, op->operands[i].index}, &cast));
  return 0;
}

/* The casts of what is returned are the last values of the region. */
int bc_mark_returned(bc_writer *w, const ir_computation *c, uint64_t next) {
  uint64_t cast = next - bc_cast_returned(c);
  for (uint32_t i = 0; i < c->n_results; i++) TRY(bc_mark_use(w, bc_cast_inside(c), c->results[i], &cast));
  return 0;
}
