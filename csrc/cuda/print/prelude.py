"""Writes prelude.def: the functions on elements that printed kernels call, as CUDA C++, from their one definition in C, and *.cuh. The C compiler
preprocesses ops.def, base/math and base/number; each function that an op or a conversion needs becomes a row, with the numbers of those it
calls; their text is packed, to a quarter. C's complex functions are written here; those that are not have no row, and such ops no kernel. Run it without arguments
after changing one of those; tests/cuda compares what it would write."""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CSRC = HERE.parents[1]
INTEGERS = {"S8": ("int8_t", "uint8_t", "int8_t", "uint32_t"), "S16": ("int16_t", "uint16_t", "int16_t", "uint32_t"),
            "S32": ("int32_t", "uint32_t", "int32_t", "uint32_t"), "S64": ("int64_t", "uint64_t", "int64_t", "uint64_t"),
            "U8": ("uint8_t", "uint8_t", "int8_t", "uint32_t"), "U16": ("uint16_t", "uint16_t", "int16_t", "uint32_t"),
            "U32": ("uint32_t", "uint32_t", "int32_t", "uint32_t"), "U64": ("uint64_t", "uint64_t", "int64_t", "uint64_t")}
FLOATS = {"F32": "float", "F64": "double"}
COMPLEX = {"C64": "math_c64", "C128": "math_c128"}
TYPES = {**{name: row[0] for name, row in INTEGERS.items()}, "PRED": "uint8_t", **FLOATS, **COMPLEX}
LIMITS = {"S8": (-1 << 7, (1 << 7) - 1), "S16": (-1 << 15, (1 << 15) - 1), "U8": (0, 255), "U16": (0, 65535), "U32": (0, 4294967295)}
HEAD = """
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ull
#define INFINITY base_f32_of(0x7F800000u)
#define NAN base_f32_of(0x7FC00000u)
#define __FP_FAST_FMA 1
#define __FP_FAST_FMAF 1
#define XLAC_BASE_DTYPE_H
#include "base/math/math.h"
#include "base/math/math_int.h"
#include "base/math/math.c"
#undef XLAC_BASE_DTYPE_H
#include "base/number/convert.c"
#include "scalar/loops/loops_other.c"
#include "interp/algorithm/counter_rng.h"
#include "ir/ops_columns.h"
#define PICK(code, arity, expr, name, ...) name
#define ROW(...) PICK(__VA_ARGS__, EXPR, NONE, )(__VA_ARGS__)
#define NONE(code, arity)
#undef OP
#define OP(code, text, arity, columns) ROW(code, arity columns)
#define GIVEN_1(T) T x
#define GIVEN_2(T) T x, T y
#define GIVEN_3(T) T x, T y, T z
#define ZEXT(x) ((U)((U)(x) << (8 * sizeof(T) - (size_t)BITS)) >> (8 * sizeof(T) - (size_t)BITS))
#define SEXT(x) ((S)(U)((U)(x) << (8 * sizeof(T) - (size_t)BITS)) >> (8 * sizeof(T) - (size_t)BITS))
"""
TAIL = """
#define NARROW(name, text, bits, bytes, exponent, mantissa, bias, sign_bit, ...) \\
  float widen_##name(uint32_t v) { return base_narrow_decode(BASE_NARROW(mantissa, bias, sign_bit, __VA_ARGS__), v); } \\
  uint32_t narrow_##name(float v) { return base_narrow_encode(BASE_NARROW(mantissa, bias, sign_bit, __VA_ARGS__), v); }
#include "base/dtypes.def"
float widen_F8E8M0FNU(uint32_t v) { return base_e8m0_decode(v); }
uint32_t narrow_F8E8M0FNU(float v) { return base_e8m0_encode(v); }
float odd_F64(double v) { return base_f32_odd(v); }
float odd_U32(uint32_t v) { return base_f32_odd((double)v); }
float odd_S32(int32_t v) { return base_f32_odd((double)v); }
float odd_U64(uint64_t v) { return base_f32_odd(base_f64_odd(v)); }
float odd_S64(int64_t v) { return odd_f32_of_s64(v); }
int64_t total_order(uint64_t bits, uint32_t width) {
  int64_t v = (int64_t)(bits << (64 - width));
  return v ^ ((v >> 63) & INT64_MAX);
}
double copysign_f64(double x, double y) { return x; }
double lgamma_of(double x, int *s) { return x; }
int64_t place_signed(int64_t v, int64_t last) { return v < 0 ? 0 : v > last ? last : v; }
int64_t place_unsigned(uint64_t v, int64_t last) { return v > (uint64_t)last ? last : (int64_t)v; }
uint64_t bits_of_F32(float x) { return base_f32_bits(x); }
uint64_t bits_of_F64(double x) { return base_f64_bits(x); }
float op_ABS_C64(math_c64 x) { return math_abs_c64(x); }
double op_ABS_C128(math_c128 x) { return math_abs_c128(x); }
float op_SINE_F32(float x) { return __builtin_fabsf(x) < 0x1p27f ? math_sin_near_f32(x) : math_sin_f32(x); }
float op_COSINE_F32(float x) { return __builtin_fabsf(x) < 0x1p27f ? math_cos_near_f32(x) : math_cos_f32(x); }
float op_TAN_F32(float x) { return __builtin_fabsf(x) < 0x1p27f ? math_tan_near_f32(x) : math_tan_f32(x); }
"""
# C99's complex functions, which a GPU has not, with their branch cuts and special cases.
COMPLEX_TAIL = """
math_c128 c99_divide(math_c128 x, math_c128 y) {
  bool wide = fabs(y.re) >= fabs(y.im);
  double r = wide ? y.im / y.re : y.re / y.im, d = wide ? y.re + y.im * r : y.re * r + y.im;
  math_c128 z = {wide ? (x.re + x.im * r) / d : (x.re * r + x.im) / d, wide ? (x.im - x.re * r) / d : (x.im * r - x.re) / d};
  if (z.re == z.re || z.im == z.im) return z;
  bool infinite = fabs(x.re) == INFINITY || fabs(x.im) == INFINITY, over = fabs(y.re) == INFINITY || fabs(y.im) == INFINITY;
  if (y.re == 0 && y.im == 0 && (x.re == x.re || x.im == x.im)) {
    double many = copysign((double)INFINITY, y.re);
    return (math_c128){many * x.re, many * x.im};
  }
  if (infinite && fabs(y.re) < INFINITY && fabs(y.im) < INFINITY) {
    double a = copysign(fabs(x.re) == INFINITY ? 1.0 : 0.0, x.re), b = copysign(fabs(x.im) == INFINITY ? 1.0 : 0.0, x.im);
    return (math_c128){INFINITY * (a * y.re + b * y.im), INFINITY * (b * y.re - a * y.im)};
  }
  if (over && fabs(x.re) < INFINITY && fabs(x.im) < INFINITY) {
    double a = copysign(fabs(y.re) == INFINITY ? 1.0 : 0.0, y.re), b = copysign(fabs(y.im) == INFINITY ? 1.0 : 0.0, y.im);
    return (math_c128){0.0 * (x.re * a + x.im * b), 0.0 * (x.im * a - x.re * b)};
  }
  return z;
}
math_c128 c99_exp(math_c128 x) {
  if (x.im == 0) return (math_c128){exp(x.re), x.im};
  if (!(fabs(x.im) < INFINITY)) {
    if (x.re == -INFINITY) return (math_c128){0, copysign(0.0, x.im)};
    return (math_c128){x.re == INFINITY ? (double)INFINITY : x.im - x.im, x.im - x.im};
  }
  double half = x.re > 709 && x.re < INFINITY ? exp(0.5 * x.re) : 1, e = half == 1 ? exp(x.re) : half;
  return (math_c128){e * cos(x.im) * half, e * sin(x.im) * half};
}
math_c128 c99_log(math_c128 x) {
  double a = fabs(x.re), b = fabs(x.im), angle = atan2(x.im, x.re), most = a > b ? a : b, least = a > b ? b : a;
  if (most > 0.5 && most < 2) return (math_c128){0.5 * log1p(math_dd_add_f64(math_dd_add(math_dd_product(most, most), math_dd_product(least, least)), -1).hi), angle};
  double up = most > 1e300 ? 0x1p-600 : most < 1e-280 ? 0x1p600 : 1;
  return (math_c128){log(math_hypot(x.re * up, x.im * up)) - (up > 1 ? 600 : up < 1 ? -600 : 0) * 0x1.62e42fefa39efp-1, angle};
}
math_c128 c99_sqrt(math_c128 x) {
  if (x.re == 0 && x.im == 0) return (math_c128){0, x.im};
  if (fabs(x.im) == INFINITY) return (math_c128){INFINITY, x.im};
  if (fabs(x.re) == INFINITY) {
    double nan = x.im - x.im;
    return x.re > 0 ? (math_c128){x.re, x.im == x.im ? copysign(0.0, x.im) : nan} : (math_c128){x.im == x.im ? 0 : nan, copysign((double)INFINITY, x.im)};
  }
  double most = fmax(fabs(x.re), fabs(x.im)), up = most > 1e300 ? 0.25 : most < 1e-280 ? 0x1p108 : 1, down = most > 1e300 ? 2 : most < 1e-280 ? 0x1p-54 : 1;
  double re = x.re * up, im = x.im * up, r = sqrt(0.5 * fabs(re) + 0.5 * math_hypot(re, im)), s = 0.5 * (im / r) * down;
  return x.re >= 0 ? (math_c128){r * down, s} : (math_c128){fabs(s), copysign(r * down, x.im)};
}
math_c128 c99_sinh(math_c128 x) {
  if (x.im == 0) return (math_c128){math_sinh_f64(x.re), x.im};
  if (!(fabs(x.im) < INFINITY)) {
    double nan = x.im - x.im;
    return x.re == 0 ? (math_c128){x.re, nan} : (math_c128){fabs(x.re) == INFINITY ? (double)INFINITY : nan, nan};
  }
  double s = sin(x.im), c = cos(x.im), half = fabs(x.re) > 709 && fabs(x.re) < INFINITY ? 0.5 * exp(0.5 * fabs(x.re)) : 0;
  if (half > 0) return (math_c128){copysign(2 * half * c * half, c * x.re), 2 * half * s * half};
  return (math_c128){x.re == 0 ? copysign(x.re, x.re * c) : math_sinh_f64(x.re) * c, math_cosh_f64(x.re) * s};
}
math_c128 c99_cosh(math_c128 x) {
  if (x.im == 0) return (math_c128){math_cosh_f64(x.re), x.re == x.re ? copysign(0.0, copysign(1.0, x.re) * x.im) : x.im};
  if (!(fabs(x.im) < INFINITY)) {
    double nan = x.im - x.im;
    return x.re == 0 ? (math_c128){nan, 0} : (math_c128){fabs(x.re) == INFINITY ? (double)INFINITY : nan, nan};
  }
  double s = sin(x.im), c = cos(x.im), half = fabs(x.re) > 709 && fabs(x.re) < INFINITY ? 0.5 * exp(0.5 * fabs(x.re)) : 0;
  if (half > 0) return (math_c128){2 * half * c * half, copysign(2 * half * s * half, s * x.re)};
  return (math_c128){math_cosh_f64(x.re) * c, math_sinh_f64(x.re) * s};
}
math_c128 c99_tanh(math_c128 x) {
  double a = fabs(x.re), nan = x.im - x.im;
  if (a == INFINITY) return (math_c128){copysign(1.0, x.re), copysign(0.0, fabs(x.im) > 1 && fabs(x.im) < INFINITY ? sin(x.im) * cos(x.im) : x.im)};
  if (!(fabs(x.im) < INFINITY)) return (math_c128){x.re == 0 ? x.re : nan, nan};
  if (x.im == 0) return (math_c128){tanh(x.re), x.im};
  double s = sin(x.im), c = cos(x.im);
  if (a > 22) return (math_c128){copysign(1.0, x.re), 4 * s * c * exp(-2 * a)};
  double h = math_sinh_f64(x.re), d = h * h + c * c;
  return (math_c128){h * math_cosh_f64(x.re) / d, s * c / d};
}
math_c128 c99_sin(math_c128 x) {
  math_c128 z = c99_sinh((math_c128){-x.im, x.re});
  return (math_c128){z.im, z.im != z.im && fabs(z.re) == INFINITY ? (double)INFINITY : -z.re};
}
math_c128 c99_cos(math_c128 x) {
  return c99_cosh((math_c128){-x.im, x.re});
}
math_c128 c99_tan(math_c128 x) {
  math_c128 z = c99_tanh((math_c128){-x.im, x.re});
  return (math_c128){z.im, -z.re};
}
double c99_part(double v, bool is) { return is ? copysign(fabs(v) == INFINITY ? 1.0 : 0.0, v) : v == v ? v : copysign(0.0, v); }
math_c128 c99_multiply(math_c128 x, math_c128 y) {
  math_c128 z = {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  if (z.re == z.re || z.im == z.im) return z;
  bool left = fabs(x.re) == INFINITY || fabs(x.im) == INFINITY, right = fabs(y.re) == INFINITY || fabs(y.im) == INFINITY;
  bool over = fabs(x.re * y.re) == INFINITY || fabs(x.im * y.im) == INFINITY || fabs(x.re * y.im) == INFINITY || fabs(x.im * y.re) == INFINITY;
  if (!left && !right && !over) return z;
  double a = c99_part(x.re, left), b = c99_part(x.im, left), c = c99_part(y.re, right), d = c99_part(y.im, right);
  return (math_c128){INFINITY * (a * c - b * d), INFINITY * (a * d + b * c)};
}
math_c128 c99_pow(math_c128 x, math_c128 y) {
  return c99_exp(c99_multiply(y, c99_log(x)));
}
"""
# Bits of floats: C++ has no type punning by unions in its letter, but in all compilers of CUDA.
OWN = {"copysign_f64": "double copysign_f64(double x, double y) {\n  return copysign(x, y);\n}",
       "lgamma_of": "double lgamma_of(double x, int *) {\n  return lgamma(x);\n}",
       "base_f32_bits": "uint32_t base_f32_bits(float v) {\n  union { float f; uint32_t u; } x;\n  x.f = v;\n  return x.u;\n}",
       "base_f32_of": "float base_f32_of(uint32_t b) {\n  union { uint32_t u; float f; } x;\n  x.u = b;\n  return x.f;\n}",
       "base_f64_bits": "uint64_t base_f64_bits(double v) {\n  union { double f; uint64_t u; } x;\n  x.f = v;\n  return x.u;\n}",
       "base_f64_of": "double base_f64_of(uint64_t b) {\n  union { uint64_t u; double f; } x;\n  x.u = b;\n  return x.f;\n}"}
BUILTINS = {"__builtin_fabsf": "fabsf", "__builtin_fabs": "fabs", "__builtin_copysignf": "copysignf", "__builtin_copysign": "copysign",
            "copysign": "copysign_f64", "lgamma_r": "lgamma_of",
            "__builtin_ldexp": "ldexp", "__builtin_rint": "rint", "__builtin_frexp": "frexp", "__builtin_sqrtf": "sqrtf", "__builtin_sqrt": "sqrt", "__builtin_fmaf": "fmaf", "__builtin_fma": "fma"}
LIBM = set("fabs fabsf copysign copysignf sqrt sqrtf fma fmaf floor ceil exp log log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh "
           "asinh acosh atanh cbrt pow fmod fmodf erf erfc tgamma lgamma fmax fmin ldexp frexp hypot rint".split())
KEYWORDS = set("alignas return if else for while do break continue const static int unsigned long double float bool void char short sizeof struct union "
               "enum typedef true false switch case default signed int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
               "size_t __int128".split())


def convert(to, source):
    """The value v of one native type as one of another, as base_convert has it."""
    if to == source:
        return "v"
    if to == "PRED":
        return "v != 0"
    if to in FLOATS or source not in FLOATS:
        return f"({TYPES[to]})v"
    name = source.lower()
    if to in ("S8", "S16", "U8", "U16"):
        return f"({TYPES[to]})(int32_t)clamped_{name}(v, {LIMITS[to][0]}, {LIMITS[to][1]})"
    if to == "U32":
        return "(uint32_t)(int64_t)clamped_f64(v, 0, 4294967295.0)"
    return f"saturated_{to.lower()}_{name}(v)" if to == "S32" else f"saturated_{to.lower()}(v)"


def source():
    """What the C compiler is to preprocess: every function that a row may be made of."""
    text = [HEAD]
    for name, c in {**FLOATS, **COMPLEX, "PRED": "uint8_t"}.items():
        column = "ON_FLOAT" if name in FLOATS else "ON_COMPLEX" if name in COMPLEX else "ON_PRED"
        text.append(f"#undef {column}\n#define {column}(...) , (__VA_ARGS__)\n"
                    f"#define EXPR(code, arity, expr) {c} op_##code##_{name}(GIVEN_##arity({c})) {{ return {'(uint8_t)' if name == 'PRED' else ''}expr; }}\n"
                    f'#include "ir/ops.def"\n#undef EXPR\n#undef {column}\n#define {column}(...)')
    for name, (t, u, s, w) in INTEGERS.items():
        own, other = ("ON_SINT", "ON_UINT") if name[0] == "S" else ("ON_UINT", "ON_SINT")
        text.append(f"#undef ON_INT\n#define ON_INT(...) , (__VA_ARGS__)\n#undef {own}\n#define {own}(...) , (__VA_ARGS__)\n"
                    f"#undef {other}\n#define {other}(...)\n#define T {t}\n#define U {u}\n#define S {s}\n#define W {w}\n"
                    f"#define EXPR(code, arity, expr) {t} op_##code##_{name}(GIVEN_##arity({t}), uint32_t BITS) {{ return ({t})expr; }}\n"
                    '#include "ir/ops.def"\n#undef EXPR\n#undef T\n#undef U\n#undef S\n#undef W')
    natives = [t for t in TYPES if t not in COMPLEX]
    for a in natives:
        for b in natives:
            if a != b:
                text.append(f"{TYPES[b]} convert_{a}_{b}({TYPES[a]} v) {{ return {convert(b, a)}; }}")
    return "\n".join(text) + TAIL + COMPLEX_TAIL


def preprocessed(cc="cc"):
    """Without the system's headers: their names stay names."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("math", "complex", "stdint", "stddef", "stdbool", "stdarg", "stdatomic", "string", "assert", "stdio", "immintrin"):
            (pathlib.Path(folder) / f"{name}.h").write_text("")
        return subprocess.run([cc, "-E", "-P", "-std=gnu11", "-nostdinc", "-U__x86_64__", "-isystem", folder, "-I", str(CSRC), "-I",
                               str(CSRC / "base" / "number"), "-I", str(CSRC / "scalar" / "loops"), "-x", "c", "-"], input=source(),
                              capture_output=True, text=True, check=True).stdout


def closing(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if depth == 0:
            return i
    raise ValueError(text[at:at + 60])


def without_attributes(text):
    text = re.sub(r"\b__extension__\s*", "", text)
    while (m := re.search(r"\b(__attribute__|__asm__|_Pragma)\s*\(", text)):
        text = text[:m.start()] + text[closing(text, m.end() - 1) + 1:]
    return re.sub(r"#pragma[^\n]*\n", "", text)


def chunks(text):
    """Definitions outside of functions, one after another."""
    start = i = 0
    while i < len(text):
        if text[i] in "({[":
            opened, i = text[i], closing(text, i)
            head = text[start:i]
            if opened == "{" and not re.match(r"\s*(static\s+)?(const\s+)?(typedef|enum|struct|union)\b", head) and "=" not in head.split("{")[0]:
                yield text[start:i + 1].strip()
                start = i + 1
        elif text[i] == ";":
            yield text[start:i + 1].strip()
            start = i + 1
        i += 1


def names_of(chunk):
    """What a chunk defines; nothing for what only declares."""
    if chunk.startswith("typedef") or re.match(r"(enum|struct|union)\b", chunk):
        found = re.findall(r"(\w+)\s*;$", chunk)
        if "enum" in chunk.split("{")[0] and "{" in chunk:
            found += re.findall(r"[{,]\s*(\w+)", chunk)
        return found
    head = chunk.split("{")[0]
    if "{" in chunk and "=" not in head and "(" in head:
        return re.findall(r"(\w+)\s*\($", head[:head.index("(") + 1])
    return re.findall(r"(\w+)\s*(?:\[[^\]]*\]\s*)*=", chunk)[:1]


def generic(text, types):
    """_Generic chosen for the types that the function is on."""
    while (m := re.search(r"\b_Generic\s*\(", text)):
        end = closing(text, m.end() - 1)
        parts, depth, part = [], 0, ""
        for c in text[m.end():end]:
            depth += (c in "([{") - (c in ")]}")
            if c == "," and depth == 0:
                parts.append(part)
                part = ""
            else:
                part += c
        rows = dict((p.split(":", 1)[0].strip(), p.split(":", 1)[1].strip()) for p in parts[1:] + [part])
        choice = next((rows[t] for t in types if t in rows), rows.get("default"))
        if choice is None:
            raise ValueError(f"no choice for {types}: {rows}")
        text = text[:m.start()] + "(" + choice + ")" + text[end + 1:]
    return text


def translated(chunk, name):
    """C as CUDA C++."""
    if name in OWN:
        return OWN[name]
    m = re.match(r"op_\w+_(\w+)$", name)
    kind = m.group(1) if m else ""
    chunk = generic(chunk, INTEGERS[kind][:2] if kind in INTEGERS else [TYPES.get(kind, "")])
    chunk = re.sub(r"math_from_c99\(c(\w+)\(((?:math_c99\(\w+\)(?:, )?)+)\)\)", lambda m: f"c99_{m.group(1)}({m.group(2)})", chunk)
    chunk = re.sub(r"math_from_c99\((math_c99\(\w+\)) / (math_c99\(\w+\))\)", r"c99_divide(\1, \2)", chunk)
    if "complex" not in chunk:
        chunk = re.sub(r"\bmath_c99\((\w+)\)", r"\1", chunk)
    for old, new in BUILTINS.items():
        chunk = re.sub(rf"\b{old}\b", new, chunk)
    chunk = re.sub(r"\bldexp\((\d+),", r"ldexp(\1.0,", chunk)  # C++ has one for each float
    chunk = re.sub(r"\b__builtin_isinf\s*\(([^()]*)\)", r"(fabs((double)(\1)) == (double)base_f32_of(0x7F800000u))", chunk)
    chunk = re.sub(r"\b(__extension__|__inline|inline|extern|restrict)\b\s*", "", chunk)
    chunk = re.sub(r"\b_Bool\b", "bool", chunk)
    chunk = re.sub(r"\((math_\w+|base_narrow)\)\s*\{", r"\1{", chunk)
    chunk = woven(chunk)
    return re.sub(r"\bstatic\s+(?!const\b[^=;{]*\[)", "", chunk)


TABLES = re.compile(r"static const float\s+((?:\w+\[16\]\s*=\s*\{[^{}]*\},?\s*){2,});")


def woven(chunk):
    """Tables that are read at one place each become one, whose rows lie together: a few wide accesses of one address."""
    found = TABLES.search(chunk)
    if not found:
        return chunk
    tables = re.findall(r"(\w+)\[16\]\s*=\s*\{([^{}]*)\}", found.group(1))
    columns = [[number.strip() for number in numbers.split(",")] for _, numbers in tables]
    assert all(len(column) == 16 for column in columns)
    rows = ", ".join("{" + ", ".join(row) + "}" for row in zip(*columns))
    rest = chunk[found.end():]
    for k, (name, _) in enumerate(tables):
        rest = re.sub(rf"\b{name}\[([^\]]*)\]", rf"rows[\1][{k}]", rest)
    width = 4 * ((len(tables) + 3) // 4)
    return f"{chunk[:found.start()]}alignas(16) static const float rows[16][{width}] = {{{rows}}};{rest}"


def is_function(text):
    return "{" in text and "(" in text.split("{")[0] and "=" not in text.split("{")[0] and not text.startswith(("typedef", "enum"))


def definitions():
    """By name: the translated text, and the names in it."""
    found, home = {}, {}
    for chunk in chunks(without_attributes(preprocessed())):
        names = names_of(chunk)
        if not names:
            continue
        try:
            text = translated(chunk, names[0])
        except ValueError:
            continue
        found[names[0]] = text
        for n in names:
            home.setdefault(n, names[0])
    return found, home


def needs(text, name, home):
    return [home[w] for w in dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*", text)) if w in home and home[w] != name]


def is_strange(text, name, home):
    """What is not to be had on a GPU: C's complex numbers, and functions that nobody here knows."""
    if re.search(r"\bcomplex\b|__builtin_|\bvoid \*|\(void\)", text):
        return True
    return any(w not in home and w not in LIBM and w not in KEYWORDS and w != "defined" for w in re.findall(r"\b([a-z_]\w*)\s*\(", text))


def roots(found):
    yield from (n for n in found if re.match(r"(op|convert|widen|narrow|odd)_[A-Z0-9]\w*$", n) or n in ("rng_philox", "rng_threefry", "rng_advance", "total_order", "place_signed", "place_unsigned", "math_c64", "math_c128", "base_f32_of", "base_f64_of",
                                                                                        "bits_of_F32", "bits_of_F64", "reduced_f32", "reduced_f64"))


# Functions that a GPU has an instruction for: what a NaN's bits are is its own.
EXTREME = 'float r;\n  asm("{0}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));\n  return r;'
INSTRUCTIONS = {"math_max_f32": (800, EXTREME.format("max")), "math_min_f32": (800, EXTREME.format("min")),
                "widen_BF16": (None, "return base_f32_of(v << 16);"),
                "narrow_BF16": (800, 'uint32_t pair;\n  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(v));\n  return pair;'),
                "widen_F16": (530, 'float wide;\n  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}" : "=f"(wide) : "r"(v));\n  return wide;'),
                "narrow_F16": (800, 'uint32_t pair;\n  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(v));\n  return pair;')}


def with_instruction(name, text):
    """The function with the GPU's instruction in it, for GPUs from that capability on."""
    if name not in INSTRUCTIONS:
        return text
    least, body = INSTRUCTIONS[name]
    head, rest = text.split("{", 1)
    own = f"  {body}\n"
    return f"{head}{{\n{own}}}" if least is None else f"{head}{{\n#if __CUDA_ARCH__ >= {least}\n{own}#else\n {rest.rsplit('}', 1)[0]}\n#endif\n}}"


def table():
    """Rows in an order in which each stands behind what it needs: (name, text, needs)."""
    found, home = definitions()
    rows, bad = {}, set()

    def visit(name):
        if name in rows or name in bad:
            return name in rows
        text = found[name]
        needed = needs(text, name, home)
        if is_strange(text, name, home) or not all([visit(n) for n in needed]):
            bad.add(name)
            return False
        rows[name] = (with_instruction(name, text), needed)
        return True

    for name in roots(found):
        visit(name)
    for text in parts():
        name = re.search(r"(\w+)\(", text).group(1)
        rows[name] = (text, [w for w in dict.fromkeys(re.findall(r"\w+", text)) if w in rows and w != name])
    return rows, bad


def parts():
    """The definitions of tensor.cuh, sort.cuh and rows.cuh, which are CUDA C++ as they stand."""
    text = "\n\n".join(re.sub(r"^ *//.*\n", "", (HERE / f"{name}.cuh").read_text(), flags=re.M) for name in ("tensor", "sort", "rows"))
    yield from (part.strip() for part in re.split(r"\n\s*\n", text) if part.strip())


class Model:
    """Probabilities of bits, in 2048ths, each near what it was lately: those of csrc/cuda/print/source.c."""

    def __init__(self):
        self.all = {}

    def bit(self, coder, key, bit=0):
        p = self.all.get(key, 1024)
        bit = coder.bit(p, bit)
        self.all[key] = p - (p >> 4) if bit else p + ((2048 - p) >> 4)
        return bit

    def number(self, coder, key, bits, value=0):
        """Bit by bit, each with a probability for what came before it."""
        m = 1
        for i in reversed(range(bits)):
            m = 2 * m + self.bit(coder, (key, m), value >> i & 1)
        return m - (1 << bits)


class Encoder:
    """Bits as a number between 0 and 1, which probabilities narrow down."""

    def __init__(self):
        self.low, self.range, self.out = 0, 0xFFFFFFFF, bytearray()

    def bit(self, p, bit):
        bound = (self.range >> 11) * p
        if bit:
            self.low += bound
            self.range -= bound
        else:
            self.range = bound
        while self.range < 1 << 24:
            self.shift()
        return bit

    def shift(self):
        if self.low >> 32:
            i = len(self.out) - 1
            while self.out[i] == 255:
                self.out[i], i = 0, i - 1
            self.out[i] += 1
        self.low &= 0xFFFFFFFF
        self.out.append(self.low >> 24)
        self.low, self.range = self.low << 8 & 0xFFFFFFFF, self.range << 8 & 0xFFFFFFFF

    def done(self):
        for _ in range(4):
            self.shift()
        return bytes(self.out)


class Decoder:
    def __init__(self, data):
        self.data, self.at, self.range, self.code = data, 4, 0xFFFFFFFF, int.from_bytes(data[:4], "big")

    def bit(self, p, _):
        bound = (self.range >> 11) * p
        bit = int(self.code >= bound)
        if bit:
            self.code -= bound
            self.range -= bound
        else:
            self.range = bound
        while self.range < 1 << 24:
            byte = self.data[self.at] if self.at < len(self.data) else 0
            self.code, self.range, self.at = self.code << 8 & 0xFFFFFFFF | byte, self.range << 8 & 0xFFFFFFFF, self.at + 1
        return bit


SHORTEST, LONGEST = 3, 258


def token(model, coder, before, literal=0, length=0, back=0):
    """One character behind `before`, or `length` of them that stand so far back already. (character, length, back)"""
    if not model.bit(coder, "copy", int(length > 0)):
        return model.number(coder, ("character", before), 7, literal), 0, 0
    length = model.number(coder, "length", 8, length - SHORTEST) + SHORTEST
    bits = model.number(coder, "bits", 5, back.bit_length())
    value = 1
    for i in reversed(range(bits - 1)):
        value = 2 * value + model.bit(coder, ("back", bits, i), back >> i & 1)
    return 0, length, value


def worth(length, back):
    """Bits that a copy saves, roughly."""
    return 3.1 * length - 7 - back.bit_length()


def copies(data, tries=200):
    """(length, back) at each place: what saves most."""
    seen, best = {}, []
    for i in range(len(data)):
        found = (0, 0)
        for j in reversed(seen.get(data[i:i + SHORTEST], [])[-tries:]):
            if found[0] == LONGEST or data[i:i + found[0] + 1] != data[j:j + found[0] + 1]:
                continue  # nearer ones are cheaper, so only longer ones are better
            n = found[0] + 1
            while n < LONGEST and i + n < len(data) and data[i + n] == data[j + n]:
                n += 1
            if worth(n, i - j) > max(0, worth(*found)):
                found = (n, i - j)
        best.append(found)
        seen.setdefault(data[i:i + SHORTEST], []).append(i)
    return best


def packed(text):
    """What csrc/cuda/print/source.c unpacks: characters, and copies of what stands already, by a coder of bits with probabilities."""
    data, model, coder, at = text.encode("ascii"), Model(), Encoder(), 0
    best = copies(data)
    while at < len(data):
        n, back = best[at]
        before = data[at - 1] if at else 0
        if n == 0 or (at + 1 < len(data) and worth(*best[at + 1]) > worth(n, back) + 2):
            token(model, coder, before, literal=data[at])
            at += 1
        else:
            token(model, coder, before, length=n, back=back)
            at += n
    return coder.done()


def unpacked(packed_bytes, n):
    out, model, coder = bytearray(), Model(), Decoder(packed_bytes)
    while len(out) < n:
        character, length, back = token(model, coder, out[-1] if out else 0)
        if length == 0:
            out.append(character)
        for _ in range(length):
            out.append(out[-back])
    return out.decode()


def c_strings(data, width=140):
    """Bytes as literals, a line each."""
    lines, line = [], ""
    for byte in data:
        c = chr(byte)
        line += {"\\": "\\\\", '"': '\\"', "\n": "\\n"}.get(c, c if 32 <= byte < 127 else f"\\{byte:03o}")
        if len(line) >= width:
            lines.append(line)
            line = ""
    return "\n".join(f'"{line}"' for line in [*lines, line] if line)


def definition(text):
    """A row's text as it stands in front of a kernel."""
    head = "" if text.startswith(("template", "static")) else "static __device__ " if is_function(text) else "__device__ " if "=" in text and not text.startswith(("typedef", "enum")) else ""
    return head + text + "\n"


def whole_text(rows):
    """All functions, each with a zero behind it."""
    return "".join(definition(text) + "\0" for text, _ in rows.values())


def written():
    rows, _ = table()
    number = {name: i for i, name in enumerate(rows)}
    text = whole_text(rows)
    out = ["/* clang-format off */",
           "/* Generated by prelude.py, which prints the text with --text. CUDA_FUNCTION(name, \"numbers of those it needs\"), each behind what it needs;",
           " * CUDA_EIGHTH(name), the first of them and each eighth from there on;",
           " * CUDA_TEXT(bytes, packed): the functions in this order, each with a zero behind it, and how many bytes they are. */",
           "#ifdef CUDA_FUNCTION"]
    out += [f'CUDA_FUNCTION({name}, "{" ".join(str(number[n]) for n in needed)}")' for name, (_, needed) in rows.items()]
    out += ["#elif defined CUDA_EIGHTH", *(f"CUDA_EIGHTH({name})" for name in list(rows)[::8])]
    return "\n".join(out) + f"\n#else\nCUDA_TEXT({len(text)},\n{c_strings(packed(text))})\n#endif\n#undef CUDA_FUNCTION\n#undef CUDA_EIGHTH\n/* clang-format on */\n"


if __name__ == "__main__":
    if "--bad" in sys.argv:
        print(*sorted(n for n in table()[1]), sep="\n")
    elif "--text" in sys.argv:
        print(whole_text(table()[0]).replace("\0", "\n"), end="")
    else:
        (HERE / "prelude.def").write_text(written())
