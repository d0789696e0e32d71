/* StableHLO's and CHLO's structured attributes, from the angle bracket on. */
#include "print.h"

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

/* `all`: those that are empty too. */
static void mprint_fields(mprint *p, const ir_mattr *a, const ir_struct_info *info, bool all) {
  bool some = false;
  for (const ir_field_info *f = info->fields; f->name; f++) {
    const ir_mattr *v = ir_m_field(a, f->name);
    if (!v || (!all && !f->always && mprint_field_is_empty(v))) continue;
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

/* The attributes of one side of a convolution, and how its two dimensions that are not spatial are written. */
typedef struct mprint_conv_side {
  const char *first, *second, *spatial, *letters;
} mprint_conv_side;
static const mprint_conv_side mprint_conv_sides[3] = {
    {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "bf"},
    {"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions", "io"},
    {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", "bf"}};

/* Where dimension d stands: -1 the first letter, -2 the second, else the number of the spatial one; -3 nowhere. */
static int64_t mprint_conv_place(const int64_t *spatial, uint32_t n, int64_t first, int64_t second, int64_t d) {
  if (d == first) return -1;
  if (d == second) return -2;
  for (uint32_t i = 0; i < n; i++)
    if (spatial[i] == d) return i;
  return -3;
}

/* Every dimension stands once, as there are as many places as dimensions. */
static bool mprint_side_is_plain(mprint *p, const ir_mattr *a, const mprint_conv_side *side) {
  uint32_t n;
  const int64_t *spatial = mprint_ints(p, ir_m_field(a, side->spatial), &n);
  int64_t first = mprint_field_i64(a, side->first), second = mprint_field_i64(a, side->second);
  for (int64_t d = 0; d < (int64_t)n + 2; d++)
    if (mprint_conv_place(spatial, n, first, second, d) == -3) return false;
  return true;
}

bool mprint_conv_is_plain(mprint *p, const ir_mattr *a) {
  bool plain = true;
  for (int i = 0; i < 3; i++) plain = plain && mprint_side_is_plain(p, a, &mprint_conv_sides[i]);
  return plain;
}

static void mprint_side(mprint *p, const ir_mattr *a, const mprint_conv_side *side) {
  uint32_t n;
  const int64_t *spatial = mprint_ints(p, ir_m_field(a, side->spatial), &n);
  int64_t first = mprint_field_i64(a, side->first), second = mprint_field_i64(a, side->second);
  base_putc(p->out, '[');
  for (int64_t d = 0; d < (int64_t)n + 2; d++) {
    if (d) BASE_PUT(p->out, ", ");
    int64_t place = mprint_conv_place(spatial, n, first, second, d);
    if (place < 0)
      base_putc(p->out, side->letters[place == -1 ? 0 : 1]);
    else
      base_put_i64(p->out, place);
  }
  base_putc(p->out, ']');
}

void mprint_conv_dims(mprint *p, const ir_mattr *a) {
  static const char *const between[3] = {"x", "->", ""};
  for (int i = 0; i < 3; i++) {
    mprint_side(p, a, &mprint_conv_sides[i]);
    base_puts(p->out, between[i]);
  }
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
  bool conv = strcmp(a->name, "conv") == 0;
  if (conv && mprint_conv_is_plain(p, a)) {
    mprint_conv_dims(p, a);
  } else if (info) {
    if (conv) BASE_PUT(p->out, "raw ");
    mprint_fields(p, a, info, conv);
  }
  base_putc(p->out, '>');
}
