/* Element types in CUDA C++, and conversions between all of them, with the routes of base/number/convert.c. */
#include <stdio.h>

#include "print.h"

static const char *const cu_type_names[BASE_DTYPE_COUNT] = {
#define DTYPE(name, ...) [XLAC_##name] = #name,
#include "../../base/dtypes.def"
};

const char *cuda_dtype_name(base_dtype t) {
  assert(t > BASE_DTYPE_INVALID && t < BASE_DTYPE_COUNT);
  return cu_type_names[t];
}

bool cuda_is_narrow_float(base_dtype t) {
  return base_dtype_is_float(t) && base_dtype_of(t)->bits < 32;
}

base_dtype cuda_sum_type(base_dtype t) {
  return cuda_is_narrow_float(t) ? XLAC_F32 : t;
}

/* By log2 of the size. */
const char *cuda_type(base_dtype t) {
  static const char *const signed_types[] = {"int8_t", "int16_t", "int32_t", "int64_t"};
  static const char *const unsigned_types[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"};
  const base_dtype_info *info = base_dtype_of(t);
  int size = __builtin_ctz(info->bytes);
  if (t == XLAC_F32) return "float";
  if (t == XLAC_F64) return "double";
  if (info->kind == BASE_KIND_COMPLEX) return t == XLAC_C64 ? "math_c64" : "math_c128";
  return (info->kind == BASE_KIND_SINT ? signed_types : unsigned_types)[size];
}

void cuda_print_needs(cuda_print *x, const char *name) {
  if (!cuda_source_needs(x->s, name)) x->strange = true;
}

/* The type that holds all values of t and that conversions between types are made of. */
static base_dtype cu_type_native(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  if (info->kind == BASE_KIND_SINT && info->bits < 8) return XLAC_S8;
  if (info->kind == BASE_KIND_UINT && info->bits < 8) return XLAC_U8;
  return cuda_is_narrow_float(t) ? XLAC_F32 : base_dtype_real_part(t);
}

/* "name_A" or "name_A_B", noted. */
static void cu_type_call(cuda_print *x, char room[64], const char *name, base_dtype a, base_dtype b) {
  if (b)
    snprintf(room, 64, "%s_%s_%s", name, cuda_dtype_name(a), cuda_dtype_name(b));
  else
    snprintf(room, 64, "%s_%s", name, cuda_dtype_name(a));
  cuda_print_needs(x, room);
}

/* An integer of fewer than 8 bits from a byte: the nearest one, or the low bits. */
static void cu_type_put_small(cuda_print *x, base_dtype t, bool clamp, const char *byte) {
  int bits = base_dtype_of(t)->bits, unused = 8 - bits;
  bool is_signed = base_dtype_is_signed(t);
  int most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, least = is_signed ? -(1 << (bits - 1)) : 0;
  const char *c = cuda_type(t);
  if (clamp)
    base_putf(x->out, "(%s)((%s) < %d ? %d : (%s) > %d ? %d : (%s))", c, byte, least, least, byte, most, most, byte);
  else
    base_putf(x->out, "(%s)((%s)((uint8_t)(%s) << %d) >> %d)", c, c, byte, unused, unused);
}

/* To t from its native type. */
static void cu_type_put_narrowed(cuda_print *x, base_dtype t, bool from_float, const char *native) {
  char call[64];
  if (cuda_is_narrow_float(t)) {
    cu_type_call(x, call, "narrow", t, 0);
    base_putf(x->out, "(%s)%s(%s)", cuda_type(t), call, native);
  } else if (base_dtype_is_integer(t) && base_dtype_of(t)->bits < 8) {
    cu_type_put_small(x, t, from_float, native);
  } else if (base_dtype_is_complex(t)) {
    cuda_print_needs(x, cuda_type(t));
    base_putf(x->out, "%s{%s, 0}", cuda_type(t), native);
  } else {
    base_puts(x->out, native);
  }
}

/* Whether f32 may not hold a value of t, which then is rounded to odd on its way to a narrow float. */
static bool cu_type_is_odd(base_dtype t) {
  return t == XLAC_F64 || t == XLAC_S32 || t == XLAC_S64 || t == XLAC_U32 || t == XLAC_U64;
}

static void cu_type_put_route(cuda_print *x, base_dtype to, base_dtype source, const char *from) {
  char widened[256], native[400], call[64];
  base_dtype a = cu_type_native(source), b = cu_type_native(to);
  snprintf(widened, sizeof widened, "%s", from);
  if (cuda_is_narrow_float(source)) {
    cu_type_call(x, call, "widen", source, 0);
    snprintf(widened, sizeof widened, "%s(%s)", call, from);
  } else if (base_dtype_is_complex(source)) {
    snprintf(widened, sizeof widened, "(%s).re", from);
  }
  snprintf(native, sizeof native, "%s", widened);
  if (cuda_is_narrow_float(to) && cu_type_is_odd(a)) {
    cu_type_call(x, call, "odd", a, 0);
    snprintf(native, sizeof native, "%s(%s)", call, widened);
  } else if (a != b) {
    cu_type_call(x, call, "convert", a, b);
    snprintf(native, sizeof native, "%s(%s)", call, widened);
  }
  cu_type_put_narrowed(x, to, base_dtype_is_float(a), native);
}

void cuda_print_convert(cuda_print *x, base_dtype to, base_dtype source, const char *from) {
  assert(strlen(from) < 200);
  if (to == source) {
    base_puts(x->out, from);
  } else if (base_dtype_is_complex(to) && base_dtype_is_complex(source)) {
    const char *part = to == XLAC_C64 ? "float" : "double";
    cuda_print_needs(x, cuda_type(to));
    base_putf(x->out, "%s{(%s)(%s).re, (%s)(%s).im}", cuda_type(to), part, from, part, from);
  } else if (base_dtype_is_complex(source) && to == XLAC_PRED) {
    base_putf(x->out, "(uint8_t)((%s).re != 0 || (%s).im != 0)", from, from);
  } else {
    cu_type_put_route(x, to, source, from);
  }
}

/* --- constants --- */

/* A float by its bits: any NaN, too. */
static void cu_type_put_real(cuda_print *x, base_dtype t, const void *data) {
  uint64_t bits = 0;
  memcpy(&bits, data, base_dtype_bytes(t));
  cuda_print_needs(x, t == XLAC_F64 ? "base_f64_of" : "base_f32_of");
  if (t == XLAC_F64)
    base_putf(x->out, "base_f64_of(0x%llxull)", (unsigned long long)bits);
  else
    base_putf(x->out, "base_f32_of(0x%lxu)", (unsigned long)bits);
}

void cuda_print_constant(cuda_print *x, base_dtype t, const void *data) {
  uint64_t bits = 0;
  base_dtype part = base_dtype_real_part(t);
  if (t == XLAC_F32 || t == XLAC_F64) {
    cu_type_put_real(x, t, data);
  } else if (base_dtype_is_complex(t)) {
    cuda_print_needs(x, cuda_type(t));
    base_putf(x->out, "%s{", cuda_type(t));
    cu_type_put_real(x, part, data);
    BASE_PUT(x->out, ", ");
    cu_type_put_real(x, part, (const char *)data + base_dtype_bytes(part));
    BASE_PUT(x->out, "}");
  } else {
    memcpy(&bits, data, base_dtype_bytes(t));
    base_putf(x->out, "(%s)0x%llxull", cuda_type(t), (unsigned long long)bits);
  }
}
