/* Checks that the rules of many ops share; check.h has their contract.
 *
 * All of them work on what a reader has just read, so none may rely on what another one checks unless it calls it.
 * Messages say what the op takes and what it got; the position and the name are added once, by ir_check_stamp. */
#include <stdio.h>

#include "../../base/plural.h"
#include "check.h"

/* "{1,2,3}", cut to "{1,2,...}" where it would not fit: lists can be as long as the text. */
char *ir_check_ints_text(uint32_t n, const int64_t *v, char *buf, size_t size) {
  assert(size >= 8 && (n == 0 || v));
  size_t at = 0;
  buf[at++] = '{';
  for (uint32_t i = 0; i < n; i++) {
    char number[24];
    int k = snprintf(number, sizeof number, i ? ",%lld" : "%lld", (long long)v[i]);
    if (at + (size_t)k + 5 > size) {
      memcpy(buf + at, "...", 3);
      at += 3;
      break;
    }
    memcpy(buf + at, number, (size_t)k);
    at += (size_t)k;
  }
  assert(at + 2 <= size);
  memcpy(buf + at, "}", 2);
  return buf;
}

/* The first one who knows the op wins: an error that has a name already keeps it. */
int ir_check_stamp(const ir_op *op, int status, xlac_error *err) {
  assert(op && status <= 0);
  if (status == 0 || !err || err->op[0]) return status;
  err->line = op->line;
  err->col = op->col;
  const char *name = op->name ? op->name->s : "";
  snprintf(err->op, sizeof err->op, "%s", name[0] ? name : ir_opcode_text(op->opcode));
  return status;
}

/* Also for ops that an editor has left without operands or types: what follows may then call ir_operand_type freely. */
int ir_check_operands(const ir_op *op, xlac_error *err) {
  assert(op->opcode < IR_OP_COUNT);
  int arity = ir_opcode_info(op->opcode)->arity;
  if (arity >= 0 && op->n_operands != (uint32_t)arity)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes %d operand%s, but has %u", ir_opcode_text(op->opcode),
                     arity, base_plural(arity), op->n_operands);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    if (!use->op || use->index >= use->op->n_results || !use->op->types || !use->op->types[use->index])
      return base_fail(err, XLAC_E_VERIFY_STRUCTURE, "operand %u of %s is not a value with a type", i,
                       ir_opcode_text(op->opcode));
  }
  return 0;
}

/* 0 for kinds that are not numbers, which are in no set. */
static ir_type_set type_set_of(base_dtype t) {
  switch (base_dtype_of(t)->kind) {
    case BASE_KIND_PRED:
      return IR_T_PRED;
    case BASE_KIND_SINT:
      return IR_T_SINT;
    case BASE_KIND_UINT:
      return IR_T_UINT;
    case BASE_KIND_FLOAT:
      return IR_T_FLOAT;
    case BASE_KIND_COMPLEX:
      return IR_T_COMPLEX;
    default:
      return 0;
  }
}

/* "pred, signed or float" */
static const char *type_set_text(uint32_t set, char *buf, size_t size) {
  static const char *const names[] = {"pred", "signed integer", "unsigned integer", "float", "complex"};
  uint32_t left = (uint32_t)__builtin_popcount(set & IR_T_ANY), at = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < 5; i++) {
    if (!(set & (1u << i))) continue;
    left--;
    int n = snprintf(buf + at, size - at, "%s%s", names[i], left > 1 ? ", " : left == 1 ? " or " : "");
    at += (uint32_t)n;
    assert(at < size);
  }
  return buf;
}

/* Opcodes without a set, and those without operands, pass. */
int ir_check_type_set(const ir_op *op, xlac_error *err) {
  uint32_t set = ir_opcode_info(op->opcode)->types;
  if (!set || op->n_operands == 0) return 0;
  const ir_type *t;
  TRY(ir_check_tensor(op, 0, &t, err));
  if (type_set_of(t->dtype) & set) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes %s elements, but operand 0 is %s", ir_opcode_text(op->opcode),
                   type_set_text(set, (char[96]){0}, 96), IR_SHOW(t));
}

/* How many computations the op calls, by its row: those that must be given, and as many that may be. A conditional or
 * custom-call lists any number of computations under one attribute. */
static void called_bounds(unsigned opcode, uint32_t *least, uint32_t *most) {
  assert(opcode < IR_OP_COUNT);
  bool list = opcode == IR_OP_CONDITIONAL || opcode == IR_OP_CUSTOM_CALL;
  *least = *most = 0;
  for (const ir_attr_spec *spec = ir_opcode_info(opcode)->attrs; spec && spec->key; spec++) {
    if (ir_attr_table[spec->key].kind != IR_KIND_CALLED) continue;
    *least += (spec->flags & IR_REQUIRED) != 0;
    ++*most;
  }
  if (list || ir_opcode_has(opcode, IR_MLIR_ONLY)) *most = UINT32_MAX; /* regions are StableHLO's business */
}

/* CALLED attributes are required too, but live in op->called: ir_check_called counts them. */
int ir_check_attrs(const ir_op *op, xlac_error *err) {
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    const ir_attr *a = &op->attrs[i];
    if (a->key == IR_ATTR_NONE || a->key >= IR_ATTR_COUNT || a->kind != ir_attr_table[a->key].kind)
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "attribute %u of %s is malformed", i, ir_opcode_text(op->opcode));
  }
  const ir_attr_spec *spec = ir_opcode_info(op->opcode)->attrs;
  for (; spec && spec->key; spec++) {
    if (!(spec->flags & IR_REQUIRED) || ir_attr_table[spec->key].kind == IR_KIND_CALLED) continue;
    if (!ir_attr_find(op, spec->key))
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s needs the attribute %s", ir_opcode_text(op->opcode),
                       ir_attr_table[spec->key].text);
  }
  return 0;
}

/* What ir_result_type needs; parameters are for the rules that look at them. */
static int check_computation(const ir_op *op, const ir_computation *c, xlac_error *err) {
  if (!c)
    return base_fail(err, XLAC_E_VERIFY_CALLED, "a computation that %s calls is missing", ir_opcode_text(op->opcode));
  const ir_value *root = c->n_results ? &c->results[0] : NULL;
  if (!root || !root->op || root->index >= root->op->n_results || !root->op->types || !root->op->types[root->index])
    return base_fail(err, XLAC_E_VERIFY_CALLED, "the called computation %s has no root", c->name ? c->name->s : "");
  return 0;
}

int ir_check_called(const ir_op *op, xlac_error *err) {
  uint32_t least, most;
  called_bounds(op->opcode, &least, &most);
  if (op->n_called < least || op->n_called > most) {
    uint32_t need = op->n_called < least ? least : most;
    return base_fail(err, XLAC_E_VERIFY_CALLED, "%s calls %u computation%s, but has %u", ir_opcode_text(op->opcode),
                     need, base_plural(need), op->n_called);
  }
  for (uint32_t i = 0; i < op->n_called; i++) TRY(check_computation(op, op->called[i], err));
  return 0;
}

/* In this order: each check relies on those before it. */
int ir_check_op(const ir_op *op, xlac_error *err) {
  TRY(ir_check_operands(op, err));
  TRY(ir_check_type_set(op, err));
  TRY(ir_check_attrs(op, err));
  return ir_check_called(op, err);
}

/* For variadic opcodes; the others have their arity. */
int ir_check_at_least(const ir_op *op, uint32_t least, xlac_error *err) {
  if (op->n_operands >= least) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s needs at least %u operand%s, but has %u",
                   ir_opcode_text(op->opcode), least, base_plural(least), op->n_operands);
}

/* Everything but tensors is refused, buffers included; those who take buffers look by themselves. */
int ir_check_tensor(const ir_op *op, uint32_t i, const ir_type **out, xlac_error *err) {
  assert(out);
  TRY(ir_check_at_least(op, i + 1, err));
  const ir_type *t = ir_operand_type(op, i);
  if (!ir_is_tensor(t))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes a tensor as operand %u, but got %s",
                     ir_opcode_text(op->opcode), i, IR_SHOW(t));
  *out = t;
  return 0;
}

int ir_check_all_tensors(const ir_op *op, xlac_error *err) {
  const ir_type *t;
  for (uint32_t i = 0; i < op->n_operands; i++) TRY(ir_check_tensor(op, i, &t, err));
  return 0;
}

/* Operand i orders, and carries no value. */
int ir_check_token(const ir_op *op, uint32_t i, xlac_error *err) {
  TRY(ir_check_at_least(op, i + 1, err));
  const ir_type *t = ir_operand_type(op, i);
  if (ir_is_token(t)) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes a token as operand %u, but got %s",
                   ir_opcode_text(op->opcode), i, IR_SHOW(t));
}

int ir_check_tuple(const ir_op *op, uint32_t i, uint32_t n, const ir_type **out, xlac_error *err) {
  assert(out);
  TRY(ir_check_at_least(op, i + 1, err));
  const ir_type *t = ir_operand_type(op, i);
  if (!ir_is_tuple(t) || t->n_elements < n)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes a tuple of at least %u element%s as operand %u, but got %s",
                     ir_opcode_text(op->opcode), n, base_plural(n), i, IR_SHOW(t));
  *out = t;
  return 0;
}

/* Opcodes that pass buffers through or group them, so that their float types may differ. */
static bool mixes_floats(unsigned opcode) {
  switch (opcode) {
    case IR_OP_CALL:
    case IR_OP_CONDITIONAL:
    case IR_OP_CONSTANT:
    case IR_OP_CONVOLUTION:
    case IR_OP_DOT:
    case IR_OP_RAGGED_DOT:
    case IR_OP_SCALED_DOT:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_REDUCE_START:
    case IR_OP_ALL_REDUCE_DONE:
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_GATHER_START:
    case IR_OP_ALL_GATHER_DONE:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
    case IR_OP_COLLECTIVE_PERMUTE_DONE:
    case IR_OP_COPY_START:
    case IR_OP_COPY_DONE:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_DOMAIN:
    case IR_OP_FUSION:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_OPT_BARRIER:
    case IR_OP_INFEED:
    case IR_OP_OUTFEED:
    case IR_OP_PARAMETER:
    case IR_OP_RECV:
    case IR_OP_RECV_DONE:
    case IR_OP_REDUCE_PRECISION:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SEND:
    case IR_OP_SEND_DONE:
    case IR_OP_SORT:
    case IR_OP_TUPLE:
    case IR_OP_WHILE:
      return true;
    default:
      return false;
  }
}

/* The first float type below t is kept in *seen; false when another one follows. Nesting is bounded by the readers. */
static bool one_float(const ir_type *t, base_dtype *seen) {
  if (ir_is_tensor(t)) {
    if (!base_dtype_is_float(t->dtype)) return true;
    if (*seen == BASE_DTYPE_INVALID) *seen = t->dtype;
    return *seen == (base_dtype)t->dtype;
  }
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!one_float(t->elements[i], seen)) return false;
  return true;
}

/* XLA's ShapeVerifier with mixed precision not allowed. Tuples are looked into. */
int ir_check_mixed_floats(const ir_op *op, xlac_error *err) {
  if (mixes_floats(op->opcode)) return 0;
  base_dtype seen = BASE_DTYPE_INVALID;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (one_float(ir_operand_type(op, i), &seen)) continue;
    int status =
        base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s has operands of different float types: %s before operand %u, %s",
                  ir_opcode_text(op->opcode), base_dtype_of(seen)->text, i, IR_SHOW(ir_operand_type(op, i)));
    return base_hint(err, status, "convert the operands to one float type first");
  }
  return 0;
}

/* --- types against each other: dimensions, and which of two element types XLA keeps --- */
bool ir_same_dims(const ir_type *a, const ir_type *b) {
  assert(ir_is_tensor(a) && ir_is_tensor(b));
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (!ir_sizes_fit(a->dims[i], b->dims[i])) return false;
  return true;
}

/* XLA's SameElementTypeIgnoringFpPrecision. */
bool ir_same_dtype_or_float(base_dtype a, base_dtype b) {
  return a == b || (base_dtype_is_float(a) && base_dtype_is_float(b));
}

/* std::numeric_limits::max_exponent of a float type, for all that XLA has: one more than the largest exponent. The
 * topmost exponent code is taken where it means infinity, or NaN in a type without mantissa bits (f8e8m0fnu). */
static int64_t overflow_exponent(base_dtype t) {
  const base_dtype_info *f = base_dtype_of(t);
  assert(f->exponent_bits > 0 && f->exponent_bits < 16);
  int64_t top = (INT64_C(1) << f->exponent_bits) - 1;
  bool top_is_taken = base_float_has_inf(t) || (f->mantissa_bits == 0 && base_float_has_nan(t));
  return top - top_is_taken - f->bias + 1;
}

/* Orders element types as primitive_util::HigherPrecisionType does; the one with the greater value is kept. The
 * criteria are digits of one number, the first the most significant: complex, range, mantissa digits, bits, sign. */
static int64_t precision_order(base_dtype t) {
  base_dtype part = base_dtype_real_part(t);
  int64_t range = -1, digits = -1;
  if (base_dtype_is_float(part)) {
    range = overflow_exponent(part);
    digits = base_dtype_of(part)->mantissa_bits + 1;
  }
  int64_t order = base_dtype_is_complex(t);
  order = order * 4096 + range + 1;
  order = order * 128 + digits + 1;
  order = order * 256 + base_dtype_of(part)->bits;
  return order * 2 + base_dtype_is_signed(part);
}

/* Equal orders of different types mean that XLA's comparison ends in a failure. */
base_dtype ir_higher_precision(base_dtype a, base_dtype b) {
  assert(a > BASE_DTYPE_INVALID && b > BASE_DTYPE_INVALID && a < BASE_DTYPE_COUNT && b < BASE_DTYPE_COUNT);
  if (a == b) return a;
  int64_t x = precision_order(a), y = precision_order(b);
  return x > y ? a : y > x ? b : BASE_DTYPE_INVALID;
}

/* --- dimension lists and windows ---
 *
 * Lists can be as long as the text is, so duplicates are looked for with a bit per dimension and not pair by pair;
 * ranks are at most IR_MAX_RANK. */
typedef uint64_t dim_bits;
_Static_assert(IR_MAX_RANK <= 64, "a dimension needs a bit");

/* [0, rank). Negative numbers never count from the end in HLO. */
int ir_check_dim(const char *what, int64_t dim, uint32_t rank, xlac_error *err) {
  assert(rank <= IR_MAX_RANK);
  if (dim >= 0 && dim < (int64_t)rank) return 0;
  return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s has dimension %lld, which is out of range for rank %u", what,
                   (long long)dim, rank);
}

int ir_check_dims_in_range(const char *what, const ir_ints *dims, uint32_t rank, xlac_error *err) {
  for (uint32_t i = 0; i < dims->n; i++) TRY(ir_check_dim(what, dims->v[i], rank, err));
  return 0;
}

/* The bit must be in range, which ir_check_dim has seen to. */
static int add_dim(const char *what, int64_t dim, dim_bits *seen, xlac_error *err) {
  assert(dim >= 0 && dim < 64);
  if (*seen & (UINT64_C(1) << dim))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s names dimension %lld twice", what, (long long)dim);
  *seen |= UINT64_C(1) << dim;
  return 0;
}

/* Without a rank at hand the limit of all ranks has to do. */
int ir_check_dims_distinct(const char *what, const ir_ints *dims, xlac_error *err) {
  assert(what && dims);
  dim_bits seen = 0;
  for (uint32_t i = 0; i < dims->n; i++) {
    TRY(ir_check_dim(what, dims->v[i], IR_MAX_RANK, err));
    TRY(add_dim(what, dims->v[i], &seen, err));
  }
  return 0;
}

/* Of values in range or not: range is another check's. */
int ir_check_dims_sorted(const char *what, const ir_ints *dims, xlac_error *err) {
  assert(what && dims);
  for (uint32_t i = 1; i < dims->n; i++)
    if (dims->v[i - 1] >= dims->v[i])
      return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must be ascending without repeats, but is %s", what,
                       IR_SHOW_INTS(dims->n, dims->v));
  return 0;
}

int ir_check_dims_set(const char *what, const ir_ints *a, const ir_ints *b, uint32_t rank, xlac_error *err) {
  assert(what && a && rank <= IR_MAX_RANK);
  dim_bits seen = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    TRY(ir_check_dim(what, a->v[i], rank, err));
    TRY(add_dim(what, a->v[i], &seen, err));
  }
  for (uint32_t i = 0; b && i < b->n; i++) {
    TRY(ir_check_dim(what, b->v[i], rank, err));
    TRY(add_dim(what, b->v[i], &seen, err));
  }
  return 0;
}

int ir_check_permutation(const char *what, uint32_t n, const int64_t *v, uint32_t rank, xlac_error *err) {
  assert(what && rank <= IR_MAX_RANK && (v || n == 0));
  dim_bits seen = 0;
  bool ok = n == rank;
  for (uint32_t i = 0; ok && i < n; i++) {
    ok = v[i] >= 0 && v[i] < (int64_t)rank && !(seen & (UINT64_C(1) << v[i]));
    if (ok) seen |= UINT64_C(1) << v[i];
  }
  if (ok) return 0;
  return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must name each of the %u dimensions once, but is %s", what, rank,
                   IR_SHOW_INTS(n, v));
}

int ir_check_one_dim(const char *what, const ir_ints *dims, uint32_t rank, int64_t *out, xlac_error *err) {
  assert(what && dims && out);
  if (dims->n != 1)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "%s must name one dimension, but is %s", what,
                     IR_SHOW_INTS(dims->n, dims->v));
  TRY(ir_check_dim(what, dims->v[0], rank, err));
  *out = dims->v[0];
  return 0;
}

/* `open`: sizes may be unbounded. Padding may be negative (it crops), so that is left to the arithmetic of sizes. */
static int check_window(const ir_window *w, uint32_t rank, bool open, xlac_error *err) {
  uint32_t n = w ? w->n : 0;
  if (n != rank)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "the window has %u dimension%s, but %u are needed", n,
                     base_plural(n), rank);
  for (uint32_t i = 0; i < n; i++) {
    const ir_window_dim *d = &w->v[i];
    bool sized = d->size > 0 || (open && d->size == IR_UNBOUNDED);
    const char *bad = !sized                   ? "size"
                      : d->stride <= 0         ? "stride"
                      : d->base_dilation < 1   ? "base dilation (lhs_dilate)"
                      : d->window_dilation < 1 ? "window dilation (rhs_dilate)"
                                               : NULL;
    if (bad) return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "window dimension %u has a %s below 1", i, bad);
  }
  return 0;
}

int ir_check_window(const ir_window *w, uint32_t rank, xlac_error *err) {
  return check_window(w, rank, false, err);
}

int ir_check_kernel_window(const ir_window *w, uint32_t rank, xlac_error *err) {
  return check_window(w, rank, true, err);
}
