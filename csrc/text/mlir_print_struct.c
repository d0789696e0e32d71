/* StableHLO's and CHLO's structured attributes, from the angle bracket on. */
#include "mlir_print.h"

static bool mprint_field_is_empty(const ir_mattr *v) {
  switch ((ir_mattr_kind)v->kind) {
    case IR_M_INTEGER:
      return v->v.i == 0;
    case IR_M_FLOAT:
      return v->v.f == 0;
    case IR_M_DENSE_ARRAY:
      return !v->v.literal || v->v.literal->type->count == 0;
    default:
      return false;
  }
}

/* Fields that are themselves attributes of any kind come whole, with '#' and name. */
static void mprint_field(mprint *p, const ir_field_info *f, const ir_mattr *v) {
  if (v->kind == IR_M_ENUM)
    mprint_attr(p, v);
  else if (f->kind == IR_F_ANY && strcmp(f->name, "sub_axis_info") != 0)
    mprint_attr(p, v);
  else
    mprint_attr_bare(p, v);
}

static void mprint_fields(mprint *p, const ir_mattr *a, const ir_struct_info *info) {
  bool some = false;
  for (const ir_field_info *f = info->fields; f->name; f++) {
    const ir_mattr *v = ir_m_field(a, f->name);
    if (!v || (!f->always && mprint_field_is_empty(v))) continue;
    if (some) BASE_PUT(p->out, ", ");
    some = true;
    base_puts(p->out, f->name);
    BASE_PUT(p->out, " = ");
    mprint_field(p, f, v);
  }
}

static int64_t mprint_field_i64(const ir_mattr *a, const char *name) {
  const ir_mattr *v = ir_m_field(a, name);
  return v && v->kind == IR_M_INTEGER ? v->v.i : 0;
}

/* One side of a convolution's dimension numbers: [b, 0, 1, f]. Dimensions that fit nowhere, which the verifier refuses,
 * are left out. */
static void mprint_conv_side(mprint *p, const ir_mattr *a, const char *const names[3], const char letters[2]) {
  uint32_t n;
  const int64_t *spatial = mprint_ints(p, ir_m_field(a, names[2]), &n);
  int64_t first = mprint_field_i64(a, names[0]), second = mprint_field_i64(a, names[1]);
  base_putc(p->out, '[');
  for (int64_t d = 0; d < (int64_t)n + 2; d++) {
    if (d) BASE_PUT(p->out, ", ");
    if (d == first || d == second) {
      base_putc(p->out, letters[d == first ? 0 : 1]);
      continue;
    }
    for (uint32_t i = 0; i < n; i++)
      if (spatial[i] == d) {
        base_put_u64(p->out, i);
        break;
      }
  }
  base_putc(p->out, ']');
}

void mprint_conv_dims(mprint *p, const ir_mattr *a) {
  static const char *const input[3] = {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"};
  static const char *const kernel[3] = {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
                                        "kernel_spatial_dimensions"};
  static const char *const output[3] = {"output_batch_dimension", "output_feature_dimension",
                                        "output_spatial_dimensions"};
  mprint_conv_side(p, a, input, "bf");
  base_putc(p->out, 'x');
  mprint_conv_side(p, a, kernel, "io");
  BASE_PUT(p->out, "->");
  mprint_conv_side(p, a, output, "bf");
}

/* bounds<?, 5>: the name of type_extensions in text. */
static void mprint_type_extensions(mprint *p, const ir_mattr *a) {
  uint32_t n;
  const int64_t *v = mprint_ints(p, ir_m_field(a, "bounds"), &n);
  BASE_PUT(p->out, "bounds<");
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    if (v[i] == IR_UNBOUNDED)
      base_putc(p->out, '?');
    else
      base_put_i64(p->out, v[i]);
  }
  base_putc(p->out, '>');
}

static void mprint_mesh(mprint *p, const ir_mattr *a) {
  const ir_mattr *axes = ir_m_field(a, "axes"), *ids = ir_m_field(a, "device_ids");
  BASE_PUT(p->out, "<axes=[");
  for (uint32_t i = 0; axes && axes->kind == IR_M_ARRAY && i < axes->v.list->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_attr_bare(p, axes->v.list->v[i]);
  }
  base_putc(p->out, ']');
  if (ids) {
    BASE_PUT(p->out, ", device_ids=");
    mprint_attr(p, ids);
  }
  base_putc(p->out, '>');
}

static void mprint_sub_axis(mprint *p, const ir_mattr *a) {
  base_putc(p->out, '(');
  base_put_i64(p->out, mprint_field_i64(a, "pre_size"));
  base_putc(p->out, ')');
  base_put_i64(p->out, mprint_field_i64(a, "size"));
}

void mprint_struct(mprint *p, const ir_mattr *a) {
  if (strcmp(a->name, "type_extensions") == 0) {
    mprint_type_extensions(p, a);
    return;
  }
  if (strcmp(a->name, "mesh") == 0) {
    mprint_mesh(p, a);
    return;
  }
  if (strcmp(a->name, "sub_axis_info") == 0) {
    mprint_sub_axis(p, a);
    return;
  }
  base_putc(p->out, '<');
  const ir_struct_info *info = ir_struct_find(a->dialect, strlen(a->dialect), a->name, strlen(a->name));
  if (strcmp(a->name, "conv") == 0)
    mprint_conv_dims(p, a);
  else if (info)
    mprint_fields(p, a, info);
  base_putc(p->out, '>');
}
