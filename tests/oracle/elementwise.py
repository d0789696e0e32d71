"""What elementwise ops give by NumPy, SciPy and Python's integers: the reference where XLA:CPU has none.

Floats up to f32 compute in f64, and the result is rounded to f32 and then to the type, as xlac promises. Integers are Python's.
"""
import pathlib
import re

import ml_dtypes
import numpy as np
from scipy import special

ROOT = pathlib.Path(__file__).resolve().parents[2]

DTYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
    "c128": np.complex128,
}
for name, ml_name in {
        "s1": "int1", "s2": "int2", "s4": "int4", "u1": "uint1", "u2": "uint2", "u4": "uint4", "bf16": "bfloat16",
        "f4e2m1fn": "float4_e2m1fn", "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn",
        "f8e3m4": "float8_e3m4", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
        "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
        "f8e8m0fnu": "float8_e8m0fnu"}.items():
    if hasattr(ml_dtypes, ml_name):
        DTYPES[name] = getattr(ml_dtypes, ml_name)
KINDS = {"SINT": "s", "UINT": "u", "FLOAT": "fb", "COMPLEX": "c", "PRED": "p"}
TYPE_SETS = {"INT": ["SINT", "UINT"], "REAL": ["SINT", "UINT", "FLOAT"], "NUMBER": ["SINT", "UINT", "FLOAT", "COMPLEX"],
             "ANY": ["SINT", "UINT", "FLOAT", "COMPLEX", "PRED"]}


def table():
    """(opcode, arity, element types of operand 0) of every elementwise row of ops.def that has a scalar expression."""
    text = (ROOT / "csrc/ir/ops.def").read_text()
    rows = []
    for m in re.finditer(r'^OP\((\w+), "([^"]+)", ([123]),(.*?)(?=^OP\(|\Z)', text, re.S | re.M):
        words = re.search(r"TYPES\(([^)]*)\)", m[4])
        if "IR_ELEMENTWISE" not in m[4] or not words or m[2] in ("stochastic-convert", "select"):
            continue
        kinds = [k for w in re.findall(r"IR_T_(\w+)", words[1]) for k in TYPE_SETS.get(w, [w])]
        letters = "".join(KINDS[k] for k in kinds)
        rows.append((m[2], int(m[3]), [t for t in DTYPES if t[0] in letters]))
    return rows


def bits_of(type_name):
    return 1 if type_name == "pred" else int(re.match(r"[a-z]+(\d+)", type_name)[1])


def is_float(type_name):
    return type_name[0] in "fb"


def is_narrow(type_name):
    return is_float(type_name) and type_name not in ("f32", "f64")


# --- inputs ---


def all_values(type_name):
    """Every value of a type of at most 16 bits."""
    n = bits_of(type_name)
    if type_name[0] in "su":
        low = -(1 << (n - 1)) if type_name[0] == "s" else 0
        return np.arange(low, low + (1 << n)).astype(DTYPES[type_name])
    codes = np.arange(1 << n, dtype=np.uint8 if n <= 8 else np.uint16)
    return codes.view(DTYPES[type_name])


def special_values(type_name):
    dtype = DTYPES[type_name]
    if type_name == "pred":
        return np.array([False, True])
    if type_name[0] in "su":
        low, high = int_range(type_name)
        near = [v for v in (0, 1, -1, 2, -2, 3, 5, 7, -8, 31, 32, 63, 64, low, low + 1, high, high - 1) if low <= v <= high]
        return np.array(near, dtype=np.int64 if type_name[0] == "s" else np.uint64).astype(dtype)
    if type_name[0] == "c":
        parts = [0.0, -0.0, 1, -1, 0.5, -2.5, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info = ml_dtypes.finfo(dtype)
    extremes = [float(v) for v in (info.max, info.tiny, info.smallest_subnormal, info.eps)]
    base = [0.0, 0.5, 1, 1.5, 2, 2.5, 3, 0.3, 100, np.inf, np.nan] + extremes
    with np.errstate(all="ignore"):
        return np.array(base + [-v for v in base], np.float64).astype(dtype)


def int_range(type_name):
    n = bits_of(type_name)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type_name[0] == "s" else (0, (1 << n) - 1)


def random_values(type_name, n, rng):
    dtype = DTYPES[type_name]
    if type_name == "pred":
        return rng.random(n) < 0.5
    if type_name[0] in "su":
        low, high = int_range(type_name)
        if bits_of(type_name) < 8:
            return rng.integers(low, high, n, endpoint=True).astype(dtype)
        small = rng.integers(max(low, -20), 20, n).astype(dtype)
        return np.where(rng.random(n) < 0.5, small, rng.integers(low, high, n, dtype=dtype, endpoint=True)).astype(dtype)
    scale = 10.0 ** rng.uniform(-3, 1.5, n)
    real = rng.choice([-1, 1], n) * scale
    with np.errstate(all="ignore"):
        return (real + 1j * rng.normal(size=n) if type_name[0] == "c" else real).astype(dtype)


def operands(type_name, arity, seed=0):
    """Arrays of one length for each operand: all pairs of special values, then random ones; for narrow types all values."""
    rng = np.random.default_rng(seed)
    if arity == 1 and bits_of(type_name) <= 16 and type_name != "pred":
        return [all_values(type_name)]
    s = special_values(type_name)
    if arity == 3:
        s = s[:12]
    grids = [g.ravel() for g in np.meshgrid(*[s] * arity)]
    return [np.concatenate([g, random_values(type_name, 500, rng)]) for g in grids]


# --- integers ---


def wrap(v, type_name):
    n = bits_of(type_name)
    v &= (1 << n) - 1
    return v - (1 << n) if type_name[0] == "s" and v >> (n - 1) else v


def truncated(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def int_functions(t):
    n, mask = bits_of(t), (1 << bits_of(t)) - 1
    low_ones = lambda v: v & mask
    return {
        "abs": abs, "negate": lambda x: -x, "not": lambda x: ~x, "sign": lambda x: (x > 0) - (x < 0),
        "popcnt": lambda x: low_ones(x).bit_count(), "count-leading-zeros": lambda x: n - low_ones(x).bit_length(),
        "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
        "divide": lambda x, y: truncated(x, y) if y else -1,
        "remainder": lambda x, y: x - y * truncated(x, y) if y else x,
        "power": lambda x, y: pow(x, y, 1 << n) if y >= 0 else x ** (y % 2) if abs(x) == 1 else 0,
        "maximum": max, "minimum": min, "mulhi": lambda x, y: x * y >> n,
        "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
        "shift-left": lambda x, y: x << low_ones(y) if low_ones(y) < n else 0,
        "shift-right-logical": lambda x, y: low_ones(x) >> low_ones(y) if low_ones(y) < n else 0,
        "shift-right-arithmetic": lambda x, y: wrap(low_ones(x), "s%d" % n) >> min(low_ones(y), n - 1),
        "clamp": lambda x, y, z: min(max(x, y), z), "compare": lambda x, y: x < y,
    }


# --- floats ---


def extreme(pick, zero_sign):
    def f(x, y):
        r = np.where(x == y, np.where(zero_sign(np.signbit(x), np.signbit(y)), -abs(x), abs(x)), pick(x, y))
        return np.where(x == y, np.where(x == 0, r, x), r)
    return f


maximum = extreme(np.maximum, np.logical_and)
minimum = extreme(np.minimum, np.logical_or)
FLOAT_EXACT = {
    "abs": abs, "negate": lambda x: -x, "ceil": np.ceil, "floor": np.floor, "round-nearest-even": np.rint,
    "round-nearest-afz": lambda x: np.copysign(np.floor(abs(x)) + (abs(x) - np.floor(abs(x)) >= 0.5), x),
    "sign": lambda x: np.where(x == 0, x, np.sign(x)), "real": lambda x: x, "imag": lambda x: 0 * np.ones_like(x),
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y, "divide": lambda x, y: x / y,
    "maximum": maximum, "minimum": minimum, "remainder": np.fmod, "sqrt": np.sqrt,
    "clamp": lambda x, y, z: minimum(maximum(y, x), z),
}
FLOAT_FUNCTIONS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cbrt": np.cbrt, "cosine": np.cos, "cosh": np.cosh, "erf": special.erf, "exponential": np.exp,
    "exponential-minus-one": np.expm1, "log": np.log, "log-plus-one": np.log1p, "logistic": special.expit,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sine": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
    "atan2": np.arctan2, "power": np.power,
}
COMPLEX = {
    **{k: f for k, f in FLOAT_FUNCTIONS.items() if k not in ("cbrt", "erf", "logistic", "atan2")},
    "negate": lambda x: -x, "abs": lambda x: np.hypot(x.real, x.imag), "real": np.real, "imag": np.imag, "sqrt": np.sqrt,
    "sign": lambda x: np.where(x == 0, 0, x / np.where(x == 0, 1, abs(x))), "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y, "divide": lambda x, y: x / y,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
}
PRED = {"add": np.logical_or, "multiply": np.logical_and, "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
        "not": np.logical_not, "maximum": np.logical_or, "minimum": np.logical_and, "compare": lambda x, y: ~x & y,
        "clamp": lambda x, y, z: (x | y) & z}


def round_to(values, type_name):
    if type_name == "f64":
        return values
    values = np.asarray(values).astype(np.float32)
    return values if type_name == "f32" else values.astype(DTYPES[type_name])


def reference(opcode, type_name, *args):
    """The result array; how many units of the last place a result may be off; and where NaN has no counterpart in the type."""
    with np.errstate(all="ignore"):
        if type_name == "pred":
            return PRED[opcode](*args), 0, False
        if type_name[0] in "su":
            f = int_functions(type_name)[opcode]
            out = [f(*map(int, v)) for v in zip(*args)]
            if opcode == "compare":
                return np.array(out), 0, False
            wide = np.array([wrap(v, type_name) for v in out], np.int64 if type_name[0] == "s" else np.uint64)
            return wide.astype(DTYPES[type_name]), 0, False
        if type_name[0] == "c":
            return COMPLEX[opcode](*[a.astype(np.complex128) for a in args]), None, False
        wide = [a.astype(np.float64) for a in args]
        if opcode == "compare":
            return wide[0] < wide[1], 0, False
        if opcode == "is-finite":
            return np.isfinite(wide[0]), 0, False
        exact = opcode in FLOAT_EXACT
        out = (FLOAT_EXACT if exact else FLOAT_FUNCTIONS)[opcode](*wide)
        unknown = np.isnan(out) if type_name in ("f4e2m1fn", "f6e2m3fn", "f6e3m2fn") else False
        return round_to(out, type_name), 0 if exact else 4 if type_name == "f64" else 1, unknown
