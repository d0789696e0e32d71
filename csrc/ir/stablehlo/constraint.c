/* Which kinds of attributes the definitions of ops (ODS) ask for: the constraints of the columns of ops.def. */
#include "../attrs/mattr.h"
#include "../sdy/sdy.h"
#include "stablehlo.h"

/* An integer attribute of exactly this type. */
static bool constraint_is_int_of(const ir_mattr *a, base_dtype t) {
  return a->kind == IR_M_INTEGER && a->type->kind == IR_TYPE_ELEMENT && a->type->dtype == t;
}

/* An enum or struct of that name. */
static bool constraint_named(const ir_mattr *a, ir_mattr_kind kind, const char *name) {
  return a->kind == kind && strcmp(a->name, name) == 0;
}

/* An array of attributes of one kind. */
static bool constraint_list_of(const ir_mattr *a, ir_mattr_kind kind) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (a->v.list->v[i]->kind != kind) return false;
  return true;
}

/* A list, empty or not, of such attributes. */
static bool constraint_list_of_named(const ir_mattr *a, ir_mattr_kind kind, const char *name) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (!constraint_named(a->v.list->v[i], kind, name)) return false;
  return true;
}

/* dense<[1, 0]> : tensor<2xindex> each. */
static bool constraint_are_layouts(const ir_mattr *a) {
  if (!constraint_list_of(a, IR_M_DENSE)) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++) {
    const ir_type *t = a->v.list->v[i]->type;
    if (t->rank != 1 || !t->text || strcmp(t->text->s, "index") != 0) return false;
  }
  return true;
}

/* array<i64: ...>, array<i1: ...> */
static bool constraint_dense_array_of(const ir_mattr *a, base_dtype t) {
  return a->kind == IR_M_DENSE_ARRAY && a->type->dtype == t;
}

/* A tensor of i64; of other integer types it is another attribute. */
static bool constraint_dense_of_i64(const ir_mattr *a) {
  return a->kind == IR_M_DENSE && a->type->dtype == XLAC_S64 && !a->type->text && !a->type->quant;
}

bool stablehlo_attr_is_of(const ir_mattr_spec *spec, const ir_mattr *a) {
  switch ((ir_mattr_constraint)spec->constraint) {
    case IR_MC_I64:
      return constraint_is_int_of(a, XLAC_S64);
    case IR_MC_I32:
      return constraint_is_int_of(a, XLAC_S32);
    case IR_MC_F32:
      return a->kind == IR_M_FLOAT && a->type->dtype == XLAC_F32;
    case IR_MC_BOOL:
      return a->kind == IR_M_BOOL;
    case IR_MC_UNIT:
      return a->kind == IR_M_UNIT;
    case IR_MC_STRING:
      return a->kind == IR_M_STRING;
    case IR_MC_SYMBOL:
      return a->kind == IR_M_SYMBOL && a->v.list->n == 1;
    case IR_MC_SYMBOLS:
      return constraint_list_of(a, IR_M_SYMBOL);
    case IR_MC_I64S:
      return constraint_dense_array_of(a, XLAC_S64);
    case IR_MC_BOOLS:
      return constraint_dense_array_of(a, XLAC_PRED);
    case IR_MC_DENSE_I64:
      return constraint_dense_of_i64(a);
    case IR_MC_ELEMENTS:
      return a->kind == IR_M_DENSE || a->kind == IR_M_RESOURCE;
    case IR_MC_DICT:
      return a->kind == IR_M_DICT;
    case IR_MC_ARRAY:
      return a->kind == IR_M_ARRAY;
    case IR_MC_STRING_OR_DICT:
      return a->kind == IR_M_STRING || a->kind == IR_M_DICT;
    case IR_MC_TYPED:
      return a->type != NULL || a->kind == IR_M_BOOL;
    case IR_MC_ENUM:
      return constraint_named(a, IR_M_ENUM, spec->sub);
    case IR_MC_PRECISIONS:
      return constraint_list_of_named(a, IR_M_ENUM, spec->sub);
    case IR_MC_STRUCT:
      return constraint_named(a, IR_M_STRUCT, spec->sub);
    case IR_MC_GROUPS:
      return constraint_dense_of_i64(a) || constraint_named(a, IR_M_STRUCT, "replica_group_mesh_axes");
    case IR_MC_LAYOUTS:
      return constraint_are_layouts(a);
    case IR_MC_TILINGS:
      return constraint_list_of(a, IR_M_ARRAY);
    case IR_MC_ALIASES:
      return constraint_list_of_named(a, IR_M_STRUCT, "output_operand_alias");
    case IR_MC_SDY:
      return a->kind == IR_M_SDY && strcmp(sdy_kind_name((sdy_kind)a->sub), spec->sub) == 0;
  }
  return false;
}
