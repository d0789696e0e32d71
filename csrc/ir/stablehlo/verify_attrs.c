/* Inherent attributes: there, of their kind, within their range; and reading lists of integers. */
#include "../sdy/sdy.h"
#include "verify.h"

static bool sv_is_int_of(const ir_mattr *a, base_dtype dtype) {
  return a->kind == IR_M_INTEGER && a->type && a->type->kind == IR_TYPE_ELEMENT && a->type->dtype == dtype;
}

static bool sv_is_array_of(const ir_mattr *a, ir_mattr_kind kind, const char *name) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++) {
    const ir_mattr *e = a->v.list->v[i];
    if (e->kind != kind || (name && strcmp(e->name, name) != 0)) return false;
  }
  return true;
}

static bool sv_is_dense_of(const ir_mattr *a, base_dtype dtype) {
  return a->kind == IR_M_DENSE && a->type && a->type->dtype == dtype;
}

static bool sv_attr_satisfies(const ir_mattr *a, const ir_mattr_spec *spec) {
  switch ((ir_mattr_constraint)spec->constraint) {
    case IR_MC_I64:
      return sv_is_int_of(a, XLAC_S64);
    case IR_MC_I32:
      return sv_is_int_of(a, XLAC_S32);
    case IR_MC_F32:
      return a->kind == IR_M_FLOAT && a->type && a->type->dtype == XLAC_F32;
    case IR_MC_BOOL:
      return a->kind == IR_M_BOOL;
    case IR_MC_UNIT:
      return a->kind == IR_M_UNIT;
    case IR_MC_STRING:
      return a->kind == IR_M_STRING;
    case IR_MC_SYMBOL:
      return a->kind == IR_M_SYMBOL && a->v.list->n == 1;
    case IR_MC_SYMBOLS:
      return sv_is_array_of(a, IR_M_SYMBOL, NULL);
    case IR_MC_I64S:
      return a->kind == IR_M_DENSE_ARRAY && a->type->dtype == XLAC_S64;
    case IR_MC_BOOLS:
      return a->kind == IR_M_DENSE_ARRAY && a->type->dtype == XLAC_PRED;
    case IR_MC_DENSE_I64:
      return sv_is_dense_of(a, XLAC_S64);
    case IR_MC_ELEMENTS:
      return a->kind == IR_M_DENSE || a->kind == IR_M_RESOURCE || a->kind == IR_M_DENSE_STRING;
    case IR_MC_DICT:
      return a->kind == IR_M_DICT;
    case IR_MC_ARRAY:
    case IR_MC_LAYOUTS:
    case IR_MC_TILINGS:
      return a->kind == IR_M_ARRAY;
    case IR_MC_STRING_OR_DICT:
      return a->kind == IR_M_STRING || a->kind == IR_M_DICT;
    case IR_MC_TYPED:
      return true;
    case IR_MC_ENUM:
      return a->kind == IR_M_ENUM && strcmp(a->name, spec->sub) == 0;
    case IR_MC_PRECISIONS:
      return sv_is_array_of(a, IR_M_ENUM, spec->sub);
    case IR_MC_STRUCT:
      return a->kind == IR_M_STRUCT && strcmp(a->name, spec->sub) == 0;
    case IR_MC_GROUPS:
      return sv_is_dense_of(a, XLAC_S64) || (a->kind == IR_M_STRUCT && strcmp(a->name, "replica_group_mesh_axes") == 0);
    case IR_MC_ALIASES:
      return sv_is_array_of(a, IR_M_STRUCT, "output_operand_alias");
    case IR_MC_SDY:
      return a->kind == IR_M_SDY && strcmp(sdy_kind_name((sdy_kind)a->sub), spec->sub) == 0;
  }
  return true;
}

static int sv_check_attr(const sv *v, const ir_mattr_spec *spec) {
  const ir_mattr *a = ir_mattr_of(v->op, spec->name);
  if (!a && (spec->flags & IR_REQUIRED))
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "lacks the attribute '%s'", spec->name);
  if (!a) return 0;
  if (!sv_attr_satisfies(a, spec))
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has an attribute '%s' of the wrong kind", spec->name);
  if (a->kind != IR_M_INTEGER) return 0;
  if ((spec->flags & IR_NON_NEGATIVE) && a->v.i < 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %s = %lld; expected a number that is not negative",
                        spec->name, (long long)a->v.i);
  if ((spec->flags & IR_POSITIVE) && a->v.i <= 0)
    return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, NULL, "has %s = %lld; expected a positive number", spec->name,
                        (long long)a->v.i);
  return 0;
}

int sv_check_attrs(const sv *v) {
  const ir_mattr_spec *spec = ir_opcode_info(v->op->opcode)->mlir->attrs;
  for (; spec && spec->name; spec++) TRY(sv_check_attr(v, spec));
  return 0;
}

/* --- lists of integers --- */

sv_ints sv_ints_of(const sv *v, const ir_mattr *a) {
  sv_ints list = {NULL, 0};
  list.v = ir_m_ints(a, v->arena, &list.n);
  return list;
}

int64_t sv_field_int(const ir_mattr *a, const char *name, int64_t otherwise) {
  const ir_mattr *field = ir_m_field(a, name);
  return field && field->kind == IR_M_INTEGER ? field->v.i : otherwise;
}

bool sv_has(sv_ints list, int64_t x) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.v[i] == x) return true;
  return false;
}

bool sv_is_sorted(sv_ints list) {
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i] < list.v[i - 1]) return false;
  return true;
}

/* Lists of dimensions are short where they are valid at all: a longer one than ranks go repeats or is out of range. */
bool sv_is_unique(sv_ints list) {
  if (list.n > 4 * IR_MAX_RANK) return false;
  for (uint32_t i = 0; i < list.n; i++)
    for (uint32_t j = 0; j < i; j++)
      if (list.v[i] == list.v[j]) return false;
  return true;
}

bool sv_constant_ints(const sv *v, uint32_t i, sv_ints *out) {
  const ir_op *def = ir_operand(v->op, i);
  if (def->opcode != IR_OP_CONSTANT) return false;
  const ir_mattr *a = ir_mattr_of(def, "value");
  if (!a || a->kind != IR_M_DENSE || !a->type || a->type->quant || a->type->count > 4 * IR_MAX_RANK) return false;
  *out = sv_ints_of(v, a);
  return out->v != NULL;
}

int sv_check_dims(const sv *v, const char *id, const char *what, sv_ints dims, int64_t below) {
  for (uint32_t i = 0; i < dims.n; i++)
    if (dims.v[i] < 0 || dims.v[i] >= below)
      return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, id, "has %lld in %s; expected numbers in [0, %lld)",
                          (long long)dims.v[i], what, (long long)below);
  return 0;
}

int sv_check_distinct(const sv *v, const char *id, const char *what, sv_ints a, const char *what2, sv_ints b) {
  for (uint32_t k = 0; k < a.n + b.n; k++) {
    int64_t x = k < a.n ? a.v[k] : b.v[k - a.n];
    for (uint32_t j = 0; j < k && k < 8 * IR_MAX_RANK; j++)
      if (x == (j < a.n ? a.v[j] : b.v[j - a.n]))
        return sv_fail_code(v, XLAC_E_VERIFY_ATTRIBUTE, id, "has dimension %lld twice in %s and %s", (long long)x, what,
                            what2);
  }
  return 0;
}
