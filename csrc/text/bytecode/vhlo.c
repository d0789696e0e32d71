/* Attributes and types of the VHLO dialect in bytecode, to those of StableHLO that they stand for. Source:
 * StableHLO's VhloBytecode.cpp.
 *
 * VHLO freezes everything that a program may hold, also integers, strings and tensors, so that artifacts do not
 * depend on MLIR's own. Here they become the same attributes and types that StableHLO text gives. */
#include "../../ir/types/type_table.h"
#include "bytecode.h"

#include <stdio.h>

/* --- attributes --- */

/*   #vhlo.array_v1<[...]> */
static int bc_list(bc_cursor *c, const ir_mattr **out) {
  uint32_t n = 0;
  const ir_mattr **v;
  TRY(bc_attrs(c, &n, &v));
  *out = ir_m_array(c->r->m, n, v);
  return bc_made(c, *out);
}

/* Keys are VHLO strings. */
static int bc_pairs(bc_cursor *c, const ir_mattr **out) {
  uint32_t n = 0;
  TRY(bc_count(c, 2, &n));
  ir_mentry *v = BASE_ARRAY(&c->r->scratch, ir_mentry, n + 1u);
  if (!v) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *key;
    TRY(bc_attr_of(c, IR_M_STRING, "a key, which is a string", &key));
    v[i].key = key->str;
    TRY(bc_attr(c, &v[i].value));
  }
  const ir_mdict *d = ir_mdict_make(c->r->m, n, v);
  TRY(bc_made(c, d));
  for (uint32_t i = 1; i < n; i++)
    if (d->v[i].key == d->v[i - 1].key) return BC_BAD(c, "a dictionary has a key twice");
  *out = ir_m_dict(c->r->m, d);
  return bc_made(c, *out);
}

/* Enums come as numbers; the table's gaps are numbers that were never given out. */
static int bc_enum(bc_cursor *c, const char *name, const ir_mattr **out) {
  assert(name);
  bc_cursor at = *c;
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, name, strlen(name));
  assert(info);
  uint64_t n = 0;
  while (info->words[n] && n < v) n++;
  if (!info->words[n] || !*info->words[n]) return BC_BAD(&at, "no %s has the number %llu", name, (unsigned long long)v);
  *out = ir_m_enum(c->r->m, "stablehlo", name, (int)n);
  return bc_made(c, *out);
}

/* Fills in the fields of a struct; those that say nothing and need not be written are left out. */
static int bc_struct(bc_cursor *c, const char *name, const ir_mattr *const *values, const ir_mattr **out) {
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, name, strlen(name));
  ir_mentry fields[16];
  uint32_t n = 0, i = 0;
  assert(info);
  for (const ir_field_info *f = info->fields; f->name; f++, i++) {
    const ir_mattr *v = values[i];
    bool idle = !v || (v->kind == IR_M_INTEGER && v->v.i == 0) || (v->kind == IR_M_FLOAT && v->bits == 0) ||
                (v->kind == IR_M_DENSE_ARRAY && v->v.literal->type->count == 0);
    if (!v || (idle && !f->always)) continue;
    const base_istr *key = ir_intern(c->r->m, f->name, strlen(f->name));
    if (!key) return bc_no_memory(c->r);
    assert(n < sizeof fields / sizeof *fields);
    fields[n++] = (ir_mentry){key, v};
  }
  *out = ir_m_struct(c->r->m, "stablehlo", name, n, fields);
  return bc_made(c, *out);
}

/* An enum or struct of that name. */
static int bc_named(bc_cursor *c, ir_mattr_kind kind, const char *name, const ir_mattr **out) {
  bc_cursor at = *c;
  TRY(bc_attr_of(c, kind, name, out));
  return strcmp((*out)->name, name) == 0 ? 0 : BC_BAD(&at, "expected a %s, found a %s", name, (*out)->name);
}

/* A count and signed numbers. */
static int bc_i64s(bc_cursor *c, const ir_mattr **out) {
  uint32_t n = 0;
  int64_t *v;
  TRY(bc_ints(c, &n, &v));
  *out = ir_m_i64s(c->r->m, n, v);
  return bc_made(c, *out);
}

/* One zigzag number as an i64 attribute. */
static int bc_i64(bc_cursor *c, const ir_mattr **out) {
  int64_t v = 0;
  TRY(bc_signed(c, &v));
  *out = ir_m_i64(c->r->m, v);
  return bc_made(c, *out);
}

/* #stablehlo.output_operand_alias: output indices, operand, operand indices. */
static int bc_alias(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[3];
  TRY(bc_i64s(c, &v[0]));
  TRY(bc_i64(c, &v[1]));
  TRY(bc_i64s(c, &v[2]));
  return bc_struct(c, "output_operand_alias", v, out);
}

/* atol, rtol, ulps, mode. */
static int bc_accuracy(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[4];
  const ir_type *f64 = ir_element(c->r->m, XLAC_F64, NULL);
  TRY(bc_made(c, f64));
  TRY(bc_float_bits(c, f64, &v[0]));
  TRY(bc_float_bits(c, f64, &v[1]));
  TRY(bc_i64(c, &v[2]));
  TRY(bc_named(c, IR_M_ENUM, "result_accuracy_mode", &v[3]));
  return bc_struct(c, "result_accuracy", v, out);
}

/*   "x":(2)4    pre-size and size of a part of an axis */
static int bc_pair_of_sizes(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[2];
  TRY(bc_i64(c, &v[0]));
  TRY(bc_i64(c, &v[1]));
  return bc_struct(c, "sub_axis_info", v, out);
}

/* The name of an axis and, where it is cut, the part. */
static int bc_axis_ref(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[2] = {NULL, NULL};
  uint64_t more = 0;
  TRY(bc_attr_of(c, IR_M_STRING, "an axis's name", &v[0]));
  TRY(bc_varint(c, &more));
  if (more) TRY(bc_named(c, IR_M_STRUCT, "sub_axis_info", &v[1]));
  return bc_struct(c, "axis_ref", v, out);
}

/* The mesh, by its name or in place, and the axes. */
static int bc_mesh_groups(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[2];
  TRY(bc_attr(c, &v[0]));
  TRY(bc_attr_of(c, IR_M_ARRAY, "axes", &v[1]));
  if (v[0]->kind == IR_M_STRING) v[0] = ir_m_symbol(c->r->m, v[0]->str->s, v[0]->str->n);
  TRY(bc_made(c, v[0]));
  return bc_struct(c, "replica_group_mesh_axes", v, out);
}

/*   "x"=2 */
static int bc_mesh_axis(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[2];
  TRY(bc_attr_of(c, IR_M_STRING, "an axis's name", &v[0]));
  TRY(bc_i64(c, &v[1]));
  return bc_struct(c, "mesh_axis", v, out);
}

/* Axes and, where they are not in order, device ids. */
static int bc_mesh(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[2];
  TRY(bc_attr_of(c, IR_M_ARRAY, "a mesh's axes", &v[0]));
  TRY(bc_optional_attr(c, &v[1]));
  return bc_struct(c, "mesh", v, out);
}

/*   #stablehlo.bounds<?, 5> */
static int bc_bounds(bc_cursor *c, const ir_mattr **out) {
  const ir_mattr *v[1];
  TRY(bc_i64s(c, &v[0]));
  return bc_struct(c, "type_extensions", v, out);
}

/* Only 0 and 1 are written. */
static int bc_bool(bc_cursor *c, const ir_mattr **out) {
  bc_cursor at = *c;
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  if (v > 1) return BC_BAD(&at, "expected a bool, found %llu", (unsigned long long)v);
  *out = ir_m_bool(c->r->m, v == 1);
  return bc_made(c, *out);
}

/* The number of a string. */
static int bc_vhlo_string(bc_cursor *c, const ir_mattr **out) {
  const base_istr *s;
  TRY(bc_read_string(c, &s));
  *out = ir_m_string(c->r->m, s->s, s->n);
  return bc_made(c, *out);
}

/* The number of a type. */
static int bc_vhlo_type_attr(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  TRY(bc_type(c, &type));
  *out = ir_m_type(c->r->m, type);
  return bc_made(c, *out);
}

typedef int bc_attr_reader(bc_cursor *c, const ir_mattr **out);
/* By VHLO's code of the attribute, which has been read. Enums are not here: see bc_enum_of. */
static bc_attr_reader *const bc_attr_readers[BC_V_COUNT] = {
    [BC_V_ARRAY] = bc_list,          [BC_V_BOOL] = bc_bool,
    [BC_V_DICT] = bc_pairs,          [BC_V_FLOAT] = bc_float,
    [BC_V_INTEGER] = bc_integer,     [BC_V_ALIAS] = bc_alias,
    [BC_V_STRING] = bc_vhlo_string,  [BC_V_TENSOR] = bc_dense,
    [BC_V_TYPE] = bc_vhlo_type_attr, [BC_V_BOUNDS] = bc_bounds,
    [BC_V_ACCURACY] = bc_accuracy,   [BC_V_SUB_AXIS] = bc_pair_of_sizes,
    [BC_V_AXIS_REF] = bc_axis_ref,   [BC_V_MESH_GROUPS] = bc_mesh_groups,
    [BC_V_MESH_AXIS] = bc_mesh_axis, [BC_V_MESH] = bc_mesh,
};

/* By the code: an enum, or a row of bc_attr_readers. */
int bc_vhlo_attr(bc_cursor *c, const ir_mattr **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  const char *name = bc_enum_of(code);
  if (name) return bc_enum(c, name, out);
  if (code < BC_V_COUNT && bc_attr_readers[code]) return bc_attr_readers[code](c, out);
  return BC_BAD(&at, "an attribute of VHLO with code %llu, which StableHLO %d.%d does not have",
                (unsigned long long)code, BC_NOW / 1000, BC_NOW % 1000);
}

/* --- types --- */

/* The flag says whether the storage is signed; its type is signless. */
static int bc_quant_parts(bc_cursor *c, ir_quant *q) {
  bc_cursor at = *c;
  uint64_t flags = 0;
  const ir_type *storage, *expressed;
  TRY(bc_varint(c, &flags));
  TRY(bc_type(c, &storage));
  TRY(bc_type(c, &expressed));
  bool plain = storage->kind == IR_TYPE_ELEMENT && !storage->quant && expressed->kind == IR_TYPE_ELEMENT &&
               !expressed->quant && base_dtype_is_float((base_dtype)expressed->dtype);
  const base_dtype_info *info = plain ? base_dtype_of((base_dtype)storage->dtype) : NULL;
  if (!info || !base_dtype_is_integer((base_dtype)storage->dtype) || info->bits > 32)
    return BC_BAD(&at, "a quantised type of no integer and float");
  char text[8];
  int n = snprintf(text, sizeof text, "%c%u", flags & 1 ? 's' : 'u', info->bits);
  q->storage = (uint8_t)base_dtype_from_text(text, (size_t)n);
  q->expressed = expressed->dtype;
  return 0;
}

/* The range is written only where it is not the storage type's own. */
static int bc_quant_checked(bc_cursor *c, ir_quant *q) {
  assert(base_dtype_is_integer((base_dtype)q->storage));
  xlac_error why = {0};
  int64_t low, high;
  ir_own_range((base_dtype)q->storage, &low, &high);
  q->has_range = q->storage_min != low || q->storage_max != high;
  int status = ir_check_range((base_dtype)q->storage, q->storage_min, q->storage_max, &why);
  for (uint32_t i = 0; i < q->n && status == 0; i++)
    status = ir_check_scale((base_dtype)q->expressed, q->scales[i], &why);
  return status == 0 ? 0 : BC_BAD(c, "a quantised type: %s", why.message);
}

/* A double, by its bits. */
static int bc_scale(bc_cursor *c, double *out) {
  uint64_t bits = 0;
  TRY(bc_int_bits(c, 64, &bits));
  memcpy(out, &bits, sizeof bits);
  return 0;
}

/* Per tensor: one scale, one zero point, the range. */
static int bc_quant_numbers(bc_cursor *c, ir_quant *q, double *scale, int64_t *zero) {
  TRY(bc_scale(c, scale));
  TRY(bc_signed(c, zero));
  TRY(bc_signed(c, &q->storage_min));
  TRY(bc_signed(c, &q->storage_max));
  q->n = 1;
  q->axis = -1;
  q->scales = scale;
  q->zero_points = zero;
  return 0;
}

/* Per axis: the axis, the range, then lists. */
static int bc_quant_lists(bc_cursor *c, ir_quant *q) {
  uint64_t axis = 0;
  uint32_t n_zeros = 0;
  int64_t *zeros;
  TRY(bc_varint(c, &axis));
  if (axis >= IR_MAX_RANK) return BC_BAD(c, "a quantised dimension of %llu", (unsigned long long)axis);
  TRY(bc_signed(c, &q->storage_min));
  TRY(bc_signed(c, &q->storage_max));
  TRY(bc_count(c, 1, &q->n));
  double *scales = BASE_ARRAY(&c->r->scratch, double, q->n + 1u);
  if (!scales) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < q->n; i++) TRY(bc_scale(c, &scales[i]));
  TRY(bc_ints(c, &n_zeros, &zeros));
  if (n_zeros != q->n) return BC_BAD(c, "%u scales but %u zero points", q->n, n_zeros);
  q->axis = (int32_t)axis;
  q->scales = scales;
  q->zero_points = zeros;
  return 0;
}

/* Points q at what is scratch memory or on the stack: ir_element copies it. */
static int bc_quant_type(bc_cursor *c, bool per_axis, const ir_type **out) {
  ir_quant q = {0};
  double scale;
  int64_t zero = 0;
  TRY(bc_quant_parts(c, &q));
  if (per_axis) {
    TRY(bc_quant_lists(c, &q));
  } else {
    TRY(bc_quant_numbers(c, &q, &scale, &zero));
  }
  TRY(bc_quant_checked(c, &q));
  *out = ir_element(c->r->m, (base_dtype)q.storage, &q);
  return bc_made(c, *out);
}

/* [encoding], dimensions, element type. */
static int bc_vhlo_shaped(bc_cursor *c, uint64_t code, const ir_type **out) {
  const ir_mattr *encoding = NULL;
  const ir_type *element;
  uint32_t rank = 0;
  int64_t *dims;
  if (code == BC_VT_TENSOR_ENCODING) TRY(bc_attr(c, &encoding));
  TRY(bc_ints(c, &rank, &dims));
  TRY(bc_type(c, &element));
  if (code == BC_VT_BUFFER) return bc_make_memref(c, element, rank, dims, out);
  return bc_make_tensor(c, element, rank, dims, encoding, out);
}

/*   (a, b) -> c: a list of types, then another */
static int bc_vhlo_function(bc_cursor *c, const ir_type **out) {
  uint32_t n = 0, n_results = 0;
  const ir_type **inputs, **results;
  TRY(bc_types(c, &n, &inputs));
  TRY(bc_types(c, &n_results, &results));
  *out = ir_function_type(c->r->m, n, n_results, inputs, results);
  return bc_made(c, *out);
}

/*   tuple<a, b>      !stablehlo.future<a> */
static int bc_vhlo_list_type(bc_cursor *c, uint64_t code, const ir_type **out) {
  assert(code == BC_VT_TUPLE || code == BC_VT_FUTURE);
  uint32_t n = 0;
  const ir_type **v;
  TRY(bc_types(c, &n, &v));
  *out = code == BC_VT_TUPLE ? ir_tuple(c->r->m, n, v) : ir_future(c->r->m, n, v);
  return bc_made(c, *out);
}

/* Types that are only a name here. */
static int bc_vhlo_plain(bc_cursor *c, const char *text, const ir_type **out) {
  *out = ir_other_type(c->r->m, text, strlen(text));
  return bc_made(c, *out);
}

/*   complex<f32>      tensor<*xf32> */
static int bc_vhlo_of(bc_cursor *c, uint64_t code, const ir_type **out) {
  const ir_type *element;
  TRY(bc_type(c, &element));
  return code == BC_VT_COMPLEX ? bc_make_complex(c, element, out) : bc_make_unranked(c, element, out);
}

/* By the code: a scalar, or one of the others. */
int bc_vhlo_type(bc_cursor *c, const ir_type **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  base_dtype scalar = bc_scalar_of(code);
  if (scalar) return *out = ir_element(c->r->m, scalar, NULL), bc_made(c, *out);
  switch (code) {
    case BC_VT_COMPLEX:
    case BC_VT_UNRANKED:
      return bc_vhlo_of(c, code, out);
    case BC_VT_FUNCTION:
      return bc_vhlo_function(c, out);
    case BC_VT_INDEX:
      return bc_vhlo_plain(c, "index", out);
    case BC_VT_TENSOR:
    case BC_VT_TENSOR_ENCODING:
    case BC_VT_BUFFER:
      return bc_vhlo_shaped(c, code, out);
    case BC_VT_TOKEN:
      return *out = ir_token(c->r->m), bc_made(c, *out);
    case BC_VT_TUPLE:
    case BC_VT_FUTURE:
      return bc_vhlo_list_type(c, code, out);
    case BC_VT_QUANT:
    case BC_VT_QUANT_AXIS:
      return bc_quant_type(c, code == BC_VT_QUANT_AXIS, out);
    case BC_VT_WITNESS:
      return bc_vhlo_plain(c, "!shape.witness", out);
    case BC_VT_NONE:
      return bc_vhlo_plain(c, "none", out);
    case BC_VT_TF32:
      return bc_vhlo_plain(c, "tf32", out);
    default:
      return BC_BAD(&at, "a type of VHLO with code %llu, which StableHLO %d.%d does not have", (unsigned long long)code,
                    BC_NOW / 1000, BC_NOW % 1000);
  }
}
