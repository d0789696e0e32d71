/* Ops that call computations: the rules of each such op.
 *
 * Signatures, by which a computation fits its caller, are checked while types are inferred (check/check_called.c), so
 * the rules here only add what XLA's verifier asks beyond that. Element types may differ among floats where XLA allows
 * mixed precision; check_exact_params asks for equality where it does not. */
#include "verify.h"

/* Inference lets a scalar function take other float types than it gets; XLA wants them equal once precisions are final.
 */
static int check_exact_params(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  assert(op->n_called == 1 && op->called[0]->n_params == op->n_operands);
  const ir_computation *c = op->called[0];
  for (uint32_t i = 0; !options->mixed_floats && i < op->n_operands; i++) {
    assert(i < c->n_params);
    if (ir_param_type(c, i)->dtype == ir_operand_type(op, i)->dtype) continue;
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "calls %s, whose parameter %u is %s, with elements of %s",
                          c->name->s, i, IR_SHOW(ir_param_type(c, i)), IR_SHOW(ir_operand_type(op, i)));
  }
  return 0;
}

IR_VERIFY(reduce) {
  return check_exact_params(op, options, err);
}
IR_VERIFY(reduce_window) {
  return check_exact_params(op, options, err);
}
IR_VERIFY(map) {
  return check_exact_params(op, options, err);
}

/* The comparator of n operands takes 2n scalars: a0, b0, a1, b1, ... */
IR_VERIFY(sort) {
  assert(op->n_called == 1 && op->n_operands > 0);
  const ir_computation *c = op->called[0];
  int64_t dim;
  if (!ir_is_scalar_of(ir_result_type(c), XLAC_PRED))
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "compares by %s, which gives %s; expected a pred", c->name->s,
                          IR_SHOW(ir_result_type(c)));
  TRY(ir_check_param_count("to_apply", c, op->n_operands * 2, err));
  for (uint32_t i = 0; i < c->n_params; i++) {
    const ir_type *param = ir_param_type(c, i), *t = ir_operand_type(op, i / 2);
    if (!ir_is_scalar(param) || !ir_same_dtype_or_float(param->dtype, t->dtype))
      return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err,
                            "compares by %s, whose parameter %u is %s; expected a scalar of %s", c->name->s, i,
                            IR_SHOW(param), base_dtype_of(t->dtype)->text);
  }
  return ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), ir_operand_type(op, 0)->rank, &dim, err);
}

/* --- scan --- */

/* --- a value that is not a tuple counts as its own only part --- */
static uint32_t parts_of(const ir_type *t) {
  return ir_is_tuple(t) ? t->n_elements : 1;
}
static const ir_type *part_of(const ir_type *t, uint32_t i) {
  assert(ir_is_tuple(t) ? i < t->n_elements : i == 0);
  return ir_is_tuple(t) ? t->elements[i] : t;
}

/* `whole` is `part` with a dimension of `size` more at `dim`; or the same type where `carried`. A carried value has
 * one type inside and outside of the scan; a scanned one is sliced along `dim`. */
static bool is_stack_of(const ir_type *whole, const ir_type *part, bool carried, int64_t dim, int64_t size) {
  assert(whole && part && dim >= 0);
  if (carried) return ir_compatible(whole, part);
  if (!ir_is_tensor(whole) || !ir_is_tensor(part) || whole->dtype != part->dtype || whole->rank != part->rank + 1)
    return false;
  if (dim >= (int64_t)whole->rank || whole->dims[dim] != size) return false;
  for (uint32_t i = 0; i < part->rank; i++)
    if (part->dims[i] != whole->dims[i + (i >= dim)]) return false;
  return true;
}

/* `what` is "operand", "carry" or "result". */
static int fail_scan(const ir_op *op, const char *what, uint32_t i, const ir_type *whole, const ir_type *part,
                     xlac_error *err) {
  return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "has %s %u of type %s, but its computation has %s there", what,
                        i, IR_SHOW(whole), IR_SHOW(part));
}

/* Operands are the scanned inputs, then the initial carries; results the stacked outputs, then the final carries. */
static int check_scan_types(const ir_op *op, uint32_t carries, int64_t dim, int64_t size, xlac_error *err) {
  assert(carries <= op->n_operands && carries <= parts_of(op->type));
  const ir_computation *c = op->called[0];
  const ir_type *root = ir_result_type(c);
  uint32_t n_inputs = op->n_operands - carries, n_outputs = parts_of(root) - carries;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!is_stack_of(ir_operand_type(op, i), ir_param_type(c, i), i >= n_inputs, dim, size))
      return fail_scan(op, "operand", i, ir_operand_type(op, i), ir_param_type(c, i), err);
  for (uint32_t i = 0; i < carries; i++)
    if (!ir_compatible(ir_param_type(c, n_inputs + i), part_of(root, n_outputs + i)))
      return fail_scan(op, "carry", i, ir_param_type(c, n_inputs + i), part_of(root, n_outputs + i), err);
  for (uint32_t i = 0; i < parts_of(root); i++)
    if (!is_stack_of(part_of(op->type, i), part_of(root, i), i >= n_outputs, dim, size))
      return fail_scan(op, "result", i, part_of(op->type, i), part_of(root, i), err);
  return 0;
}

/* The first scanned input says how often; without one it is the first output. */
IR_VERIFY(scan) {
  const ir_computation *c = op->called[0];
  const ir_type *root = ir_result_type(c);
  int64_t carries = ir_get_int(op, IR_ATTR_NUM_CARRIES, 0), dim;
  uint32_t n_results = parts_of(op->type);
  TRY(ir_check_param_count("to_apply", c, op->n_operands, err));
  if (parts_of(root) != n_results)
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "is declared as %s, but %s gives %s", IR_SHOW(op->type),
                          c->name->s, IR_SHOW(root));
  if (carries < 0 || carries > (int64_t)op->n_operands || carries > (int64_t)n_results ||
      (carries == (int64_t)op->n_operands && carries == (int64_t)n_results))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has num_carries=%lld, %u operands and %u results; one at least must be "
                          "scanned",
                          (long long)carries, op->n_operands, n_results);
  const ir_type *first = carries < (int64_t)op->n_operands ? ir_operand_type(op, 0) : part_of(op->type, 0);
  if (!ir_is_tensor(first))
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "scans %s; expected a tensor", IR_SHOW(first));
  TRY(ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), first->rank, &dim, err));
  return check_scan_types(op, (uint32_t)carries, dim, first->dims[dim], err);
}

/* --- control flow and calls --- */

/* No name means "main". */
static const char *thread_of(const ir_computation *c) {
  return c->execution_thread ? c->execution_thread->s : "main";
}

/* Computations of other threads run beside this one, so only async ops may call them. */
static int check_threads(const ir_op *op, xlac_error *err) {
  const char *own = thread_of(op->parent);
  for (uint32_t i = 0; i < op->n_called; i++)
    if (strcmp(thread_of(op->called[i]), own) != 0)
      return base_hint(err,
                       ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err,
                                      "stands in a computation of thread \"%s\", but calls %s of thread \"%s\"", own,
                                      op->called[i]->name->s, thread_of(op->called[i])),
                       "only async-start changes the thread");
  return 0;
}

/* All ops that op's values pass through, and that are sharded, must be so in the same way. *first is the first of them.
 */
static int check_same_sharding(const ir_op *op, const ir_op **first, const ir_op *next, xlac_error *err) {
  if (!ir_get_sharding(next)) return 0;
  if (!*first) *first = next;
  if (ir_verify_sharding_same(ir_get_sharding(*first), ir_get_sharding(next))) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHARDING, err,
                        "passes values between %s and %s, which are sharded differently", (*first)->name->s,
                        next->name->s);
}

/* Types are inference's; this is about threads and shardings of the state. */
IR_VERIFY(while) {
  assert(op->n_called == 2 && op->called[0]->n_params == 1 && op->called[1]->n_params == 1);
  const ir_computation *condition = op->called[0], *body = op->called[1];
  TRY(check_threads(op, err));
  const ir_op *ops[4] = {op, ir_root(body), body->params[0], condition->params[0]}, *first = NULL;
  for (uint32_t i = 0; i < 4; i++) TRY(check_same_sharding(op, &first, ops[i], err));
  return 0;
}

/* The branches' results and the op's own must be sharded alike. */
IR_VERIFY(conditional) {
  TRY(check_threads(op, err));
  const ir_op *first = NULL;
  TRY(check_same_sharding(op, &first, op, err));
  for (uint32_t i = 0; i < op->n_called; i++) TRY(check_same_sharding(op, &first, ir_root(op->called[i]), err));
  return 0;
}

/* --- composite calls --- */

/* NULL where the key is absent, or the dictionary. */
static const base_istr *dict_value(const ir_dict *d, const char *key) {
  assert(key && key[0]);
  for (uint32_t i = 0; d && i < d->n; i++)
    if (strcmp(d->v[i].key->s, key) == 0) return d->v[i].value;
  return NULL;
}

/* A composite's version: a plus sign, if any, and at most 18 digits. */
static bool is_count(const char *s) {
  if (*s == '+') s++;
  size_t digits = strspn(s, "0123456789");
  return digits > 0 && digits < 19 && s[digits] == 0;
}

/* A composite call keeps what StableHLO's composite has in frontend_attributes: composite.name, .attributes,
 * .version. */
IR_VERIFY(call) {
  if (!ir_get_bool(op, IR_ATTR_IS_COMPOSITE, false)) return 0;
  const ir_attr *a = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  const ir_dict *d = a ? a->v.dict : NULL;
  const base_istr *name = dict_value(d, "composite.name"), *attributes = dict_value(d, "composite.attributes"),
                  *version = dict_value(d, "composite.version");
  if (!name || name->n == 0)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "is a composite without a name; expected frontend_attributes with a "
                          "composite.name");
  if (attributes && attributes->n == 0)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has an empty composite.attributes; expected {} at least");
  if (version && !is_count(version->s))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has composite.version=%s; expected a number that is not negative", version->s);
  return 0;
}

/* --- fusion --- */

/* What is fused is checked once for the module, by ir_verify_fusions. */
IR_VERIFY(fusion) {
  TRY(check_threads(op, err));
  if (op->n_called != 1)
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "calls %u computations; expected one", op->n_called);
  if (op->called[0] == m->entry)
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "runs the entry computation as its body");
  return ir_verify_aliasing(op, op->type, options, err);
}

/* Whether an op without users is of use in a fused computation. */
static bool acts(const ir_op *op) {
  if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT)) return true;
  return op->opcode == IR_OP_CUSTOM_CALL && ir_get_bool(op, IR_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, false);
}

/* XLA's rule: everything in a fused computation is used, and the root by nobody inside. */
static int check_fused(const ir_op *fusion, xlac_error *err) {
  assert(fusion->opcode == IR_OP_FUSION && fusion->n_called == 1);
  const ir_computation *c = fusion->called[0];
  IR_FOR_OPS(op, c) {
    if (op == ir_root(c) && op->uses)
      return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "is the root of the fused computation %s, but %s uses it",
                            c->name->s, op->uses->user->name->s);
    if (op != ir_root(c) && !op->uses && !acts(op))
      return base_hint(
          err, ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err, "in the fused computation %s has no users", c->name->s),
          "remove it; of a parameter, the operand of %s too", fusion->name->s);
  }
  return 0;
}

/* `owners`: computation to the first fusion that runs it. */
static int check_fusion_owner(const ir_op *op, base_map *owners, xlac_error *err) {
  const ir_op *other = base_map_ptr(owners, op->called[0]);
  if (other)
    return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err,
                          "runs %s, which %s runs too; a fused computation has one caller", op->called[0]->name->s,
                          other->name->s);
  if (!base_map_set(owners, base_key(op->called[0]), base_key(op))) return base_oom(err, "a table of fusions");
  return check_fused(op, err);
}

static int check_fusions(const ir_module *m, base_map *owners, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_FUSION) TRY(check_fusion_owner(op, owners, err));
    }
  }
  return 0;
}

/* Linear in the module. */
int ir_verify_fusions(const ir_module *m, xlac_error *err) {
  assert(m);
  base_map owners;
  base_map_init(&owners, m->alloc);
  int status = check_fusions(m, &owners, err);
  base_map_free(&owners);
  return status;
}
