"""Machine code for kernels beside the plain evaluation and the vector VM, at each level of instructions that there is code for."""
import ctypes
import mmap
import re
import subprocess
import sys

import numpy as np
import pytest

import xlac
from xlac import kernels

from . import random_native


LEVELS = {"avx2": ("avx2", "fma", "f16c"), "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl")}


def has(level):
    try:
        words = open("/proc/cpuinfo").read().split()
    except OSError:
        return False
    return all(flag in words for flag in LEVELS[level])


@pytest.fixture(params=LEVELS, autouse=True)
def level(request, monkeypatch):
    if not has(request.param):
        pytest.skip("this machine has no " + request.param)
    monkeypatch.setenv("XLAC_MAX_ISA", request.param)
    return request.param


@pytest.fixture
def without_native(monkeypatch):
    """A call of it turns native code off for what is compiled afterwards, and on again with True."""
    return lambda on=False: monkeypatch.setenv("XLAC_NATIVE", "1" if on else "0")


def agree(text, *arrays, threads=1):
    """Native code's results are the reference's to the bit."""
    got, want = kernels.run(text, *arrays, threads=threads), kernels.run(text, *arrays, reference=True)
    got, want = (got, want) if isinstance(got, tuple) else ((got,), (want,))
    for g, w in zip(got, want):
        if g.tobytes() != w.tobytes():
            wrong = np.flatnonzero(g.ravel().view(f"u{g.itemsize}") != w.ravel().view(f"u{w.itemsize}"))
            raise AssertionError(f"{text}\n{len(wrong)} of {g.size} differ, first at {wrong[:4]}: {g.ravel()[wrong[:4]]}, not {w.ravel()[wrong[:4]]}")


# --- bytes apart ---

@pytest.mark.parametrize("wide", ("u8", "s32", "f64"))
@pytest.mark.parametrize("apart", (2, 3, 4, 5, 8, 16, -1, -2, -3))
def test_bytes_apart(apart, wide, level):
    """Of images' channels, and backwards: two arrays whose last bytes are what is read last."""
    n, step = 333, abs(apart)
    x = np.random.default_rng(0).integers(0, 256, (3, (n - 1) * step + 1)).astype(np.uint8)
    lines = [f"s{i} = u8[1,{n}] slice({i}), slice={{[{r}:{r + 1}], [0:{x.shape[1]}:{step}]}}" for i, r in (("x", 0), ("y", 1))]
    lines = [line.replace("slice(x)", "slice(p)").replace("slice(y)", "slice(p)") for line in lines]
    if apart < 0:
        lines += [f"r{i} = u8[1,{n}] reverse(s{i}), dimensions={{1}}" for i in "xy"]
    name = "r" if apart < 0 else "s"
    lines += [f"w{i} = {wide}[1,{n}] convert({name}{i})" for i in "xy"] + [f"a = {wide}[1,{n}] multiply(wx, wy)", f"b = {wide}[1,{n}] add(a, wx)"]
    text = f"HloModule m\nENTRY e {{\n  p = u8[3,{x.shape[1]}] parameter(0)\n  " + "\n  ".join(lines) + f"\n  ROOT o = u8[1,{n}] convert(b)\n}}\n"
    got, want = (np.asarray(xlac.compile(text, device=d)(x)) for d in ("cpu", "interp"))
    np.testing.assert_array_equal(got, want)
    if apart in (3, 4) and wide == "s32":
        assert "vpshufb" in str(xlac.compile_stage(xlac.parse(text), "assembly"))


# --- functions by interval ---

@pytest.mark.parametrize("opcode", ("tanh", "erf"))
def test_functions_by_interval(opcode):
    """Every lane has the coefficients of its own interval; none of them falls, nor the step to the next, and the end is 1."""
    first, end = (int(np.float32(x).view(np.uint32)) for x in (2**-6, 20))
    rising = np.concatenate([np.arange(first, end, 211, dtype=np.uint32).view(np.float32), np.array([1e30, np.inf], np.float32)])
    mixed = np.random.default_rng(0).permutation(rising) * np.float32(-1)
    text = "HloModule m\nENTRY e {{\n  x = f32[{n}] parameter(0)\n  ROOT r = f32[{n}] {opcode}(x)\n}}\n".format(n=rising.size, opcode=opcode)
    compiled = xlac.compile(text)
    values = np.asarray(compiled(rising))
    assert (np.diff(values) >= 0).all() and (values[-2:] == 1).all()
    want = np.asarray(xlac.compile(text, device="interp")(mixed))
    np.testing.assert_array_equal(np.asarray(compiled(mixed)).view(np.uint32), want.view(np.uint32))


# --- kernels ---

FLOATS = ("f32", "f64", "bf16", "f16")
INTS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
SIZES = (16, 17, 31, 64, 100, 1003)
NAMES = {"f32": "f4", "f64": "f8", "f16": "f2", "pred": "?", **{t: t.replace("s", "i")[0] + str(int(t[1:]) // 8) for t in INTS}}


def dtype_of(t):
    if t == "bf16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(NAMES[t])


def numbers(rng, t, n):
    """Ordinary numbers among the special ones of the type."""
    if t == "pred":
        return rng.random(n) < 0.5
    if t in INTS:
        info = np.iinfo(dtype_of(t))
        a = rng.integers(info.min, info.max, n, dtype=dtype_of(t), endpoint=True)
        a[rng.random(n) < 0.5] //= max(info.max // 16, 1)
        a[rng.random(n) < 0.1] = rng.choice(np.array([info.min, info.max, 0, 1], a.dtype))
        return a
    with np.errstate(all="ignore"):
        a = (rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)).astype(dtype_of(t))
    special = np.array([0, -0.0, 1, -1, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1e9, -3e9], "f8")
    pick = rng.random(n) < 0.3
    with np.errstate(all="ignore"):
        a[pick] = rng.choice(special, pick.sum()).astype(dtype_of(t))
    return a


def flat(t, n, lines, n_in, result="pred"):
    """A kernel of one dimension: loads v0.., then the lines, whose last value is stored."""
    loads = [f"v{i} = {t}[] load in{i}[0 + 1*i0]" for i in range(n_in)]
    last = n_in + len(lines) - 1
    return "\n".join([f"kernel [{n}] from {n_in} input{'s' * (n_in > 1)}", *loads, *lines, f"store out0[0 + 1*i0] v{last}"]) + "\n"


BINARY = {"float": ["add", "subtract", "multiply", "divide"],
          "int": ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
                  "shift-right-logical", "shift-right-arithmetic"],
          "pred": ["and", "or", "xor", "add", "multiply", "maximum", "minimum"]}
UNARY = {"float": ["negate", "abs", "sqrt"], "int": ["negate", "not"], "pred": ["not"]}


def kind_of(t):
    return "pred" if t == "pred" else "float" if t in FLOATS else "int"


@pytest.mark.parametrize("t", [*FLOATS, *INTS, "pred"])
def test_every_op_of_a_type_has_the_bits_of_the_reference(t):
    rng = np.random.default_rng(17)
    for op in BINARY[kind_of(t)]:
        for n in SIZES:
            agree(flat(t, n, [f"v2 = {t}[] {op}(v0, v1)"], 2), numbers(rng, t, n), numbers(rng, t, n))
    for op in UNARY[kind_of(t)] + (["abs", "sign"] if t[0] == "s" else []):
        for n in SIZES:
            agree(flat(t, n, [f"v1 = {t}[] {op}(v0)"], 1), numbers(rng, t, n))


FUNCTIONS = ("ceil cosh erf exponential exponential-minus-one floor log log-plus-one logistic round-nearest-afz round-nearest-even rsqrt sign sine "
             "cosine tan sinh tanh cbrt atan").split()


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_have_the_bits_of_the_reference(t, op):
    rng = np.random.default_rng(1)
    for n in (16, 37, 1000):
        agree(flat(t, n, [f"v1 = {t}[] {op}(v0)", f"v2 = {t}[] add(v1, v0)"], 1), numbers(rng, t, n))


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("op", ["sine", "cosine", "tan"])
def test_angles_of_any_size_have_the_bits_of_the_reference(t, op):
    rng = np.random.default_rng(1)
    for n in (16, 37, 1000):
        with np.errstate(all="ignore"):
            x = (rng.standard_normal(n) * rng.choice([1, 100, 1e8, 1e30], n)).astype(dtype_of(t))
        x[::7], x[3] = 0, -0.0
        agree(flat(t, n, [f"v1 = {t}[] {op}(v0)", f"v2 = {t}[] add(v1, v0)"], 1), x)


@pytest.mark.parametrize("t", FLOATS)
def test_extremes_powers_and_clamps_have_the_bits_of_the_reference(t):
    rng = np.random.default_rng(9)
    for op in ("maximum", "minimum", "power"):
        agree(flat(t, 777, [f"v2 = {t}[] {op}(v0, v1)"], 2), numbers(rng, t, 777), numbers(rng, t, 777))
        for constant in ("0", "-0", "2.5", "nan", "-inf"):
            for operands in ("v0, v1", "v1, v0"):
                agree(flat(t, 777, [f"v1 = {t}[] constant({constant})", f"v2 = {t}[] {op}({operands})"], 1), numbers(rng, t, 777))
    agree(flat(t, 777, [f"v3 = {t}[] clamp(v0, v1, v2)"], 3), *(numbers(rng, t, 777) for _ in range(3)))
    agree(flat(t, 777, ["v1 = pred[] is-finite(v0)"], 1), numbers(rng, t, 777))


@pytest.mark.parametrize("t", [*FLOATS, *INTS, "pred"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_comparisons_and_what_they_select_have_the_bits_of_the_reference(t, direction):
    rng = np.random.default_rng(3)
    for n in SIZES:
        compare = f"v2 = pred[] compare(v0, v1), direction={direction}"
        agree(flat(t, n, [compare], 2), numbers(rng, t, n), numbers(rng, t, n))
        agree(flat(t, n, [compare, f"v3 = {t}[] select(v2, v1, v0)"], 2), numbers(rng, t, n), numbers(rng, t, n))


@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_comparisons_in_total_order_have_the_bits_of_the_reference(t, direction):
    rng = np.random.default_rng(4)
    for n in SIZES:
        a, b = numbers(rng, t, n), numbers(rng, t, n)
        some = rng.random(n) < 0.3
        with np.errstate(all="ignore"):
            a[some], b[::3] = -a[some], a[::3]
        compare = f"v2 = pred[] compare(v0, v1), direction={direction}, type=TOTALORDER"
        agree(flat(t, n, [compare, f"v3 = {t}[] select(v2, v1, v0)"], 2), a, b)


@pytest.mark.parametrize("t", INTS)
@pytest.mark.parametrize("by", [1, 2, 3, 7, 10, 64, 127, 255, 641, 4096, 715827883, -1, -2, -7, -128, "least", 0])
def test_divisions_by_a_number_have_the_bits_of_the_reference(t, by):
    limits = np.iinfo(NAMES[t])
    by = limits.min if by == "least" else by
    if not limits.min <= by <= limits.max:
        return
    for op in ("divide", "remainder"):
        for n in (33, 500):
            x = numbers(np.random.default_rng(abs(by) + 1), t, n)
            x[: n // 3] -= x[: n // 3] % np.array(by or 1, x.dtype)  # multiples, and what is next to them
            x[: n // 6] -= np.array(1, x.dtype)
            agree(flat(t, n, [f"v1 = {t}[] constant({by})", f"v2 = {t}[] {op}(v0, v1)"], 1), x)


@pytest.mark.parametrize("t", [*FLOATS, *INTS, "pred"])
@pytest.mark.parametrize("to", [*FLOATS, *INTS, "pred"])
def test_conversions_have_the_bits_of_the_reference(t, to):
    rng = np.random.default_rng(5)
    for n in (16, 100, 333):
        agree(flat(t, n, [f"v1 = {to}[] convert(v0)"], 1), numbers(rng, t, n))


@pytest.mark.parametrize("t", ["s32", "u32", "s64", "u64", "s16"])
def test_products_with_a_number_have_the_bits_of_the_reference(t):
    limits = np.iinfo(NAMES[t])
    rng, top = np.random.default_rng(8), 1 << 8 * dtype_of(t).itemsize - 2
    for by in (0, 1, 2, 3, 5, 6, 7, 9, 10, 24, 31, 33, top, top + 1, 2 * top - 1, 2 * top, 4 * top - 1, -1, -2, -3, -2 * top):
        if limits.min <= by <= limits.max:
            agree(flat(t, 37, [f"v1 = {t}[] constant({by})", f"v2 = {t}[] multiply(v0, v1)", f"v3 = {t}[] multiply(v1, v2)"], 1), numbers(rng, t, 37))


@pytest.mark.parametrize("by", [0, 1, 7, 15, 31, 32, 63, 64])
def test_shifts_by_a_number_have_the_bits_of_the_reference(by):
    rng = np.random.default_rng(6)
    for t in INTS:
        if by > np.iinfo(dtype_of(t)).max:
            continue
        for op in ("shift-left", "shift-right-logical", "shift-right-arithmetic"):
            agree(flat(t, 100, [f"v1 = {t}[] constant({by})", f"v2 = {t}[] {op}(v0, v1)"], 1), numbers(rng, t, 100))


def test_rows_with_steady_values_and_broadcasts_have_the_bits_of_the_reference():
    rng = np.random.default_rng(7)
    for rows, n in ((3, 101), (5, 128), (40, 5), (2, 203)):
        text = f"""kernel [{rows},{n}] from 4 inputs
v0 = f32[] load in0[0 + {n}*i0 + 1*i1]
v1 = f32[] load in1[0 + 1*i0]
v2 = f32[] load in2[0 + 1*i1]
v3 = f32[] load in3[0]
v4 = f32[] multiply(v1, v3)
v5 = f32[] subtract(v0, v4)
v6 = f32[] divide(v2, v5)
store out0[0 + {n}*i0 + 1*i1] v6
store out1[0 + {n}*i0 + 1*i1] v5
"""
        agree(text, *(numbers(rng, "f32", m) for m in (rows * n, rows, n, 1)))


def chain(rng, t, n_in, length):
    """Ops on values that stay alive for long: more than there are registers."""
    lines = []
    for i in range(n_in, n_in + length):
        op = rng.choice(["add", "subtract", "multiply"])
        near, far = (int(rng.integers(max(i - 3, 0), i)), int(rng.integers(max(i - 40, 0), i)))
        lines.append(f"v{i} = {t}[] {op}(v{near}, v{far})")
    return lines


@pytest.mark.parametrize("t", ["f32", "f64", "s32", "s64", "u16"])
def test_more_values_than_registers_have_the_bits_of_the_reference(t):
    rng = np.random.default_rng(11)
    for _ in range(20):
        n_in, n = int(rng.integers(1, 20)), int(rng.integers(16, 200))
        arrays = [rng.integers(0, 9, n).astype(dtype_of(t)) if t in INTS else rng.standard_normal(n).astype(dtype_of(t)) for _ in range(n_in)]
        agree(flat(t, n, chain(rng, t, n_in, int(rng.integers(10, 120))), n_in), *arrays)


def test_results_over_their_operands_have_the_bits_of_the_reference(without_native):
    n = 1037
    text = f"""HloModule m, input_output_alias={{ {{0}}: (0, {{}}), {{1}}: (1, {{}}) }}
ENTRY e {{
  p = f32[{n}] parameter(0)
  m = f32[{n}] parameter(1)
  a = f32[{n}] add(p, m)
  b = f32[{n}] multiply(a, p)
  c = f32[{n}] subtract(m, b)
  ROOT t = (f32[{n}], f32[{n}]) tuple(b, c)
}}"""
    results = []
    for on in (True, False):
        without_native(on)
        p, m = (np.random.default_rng(2).standard_normal(n).astype("f4") for _ in range(2))
        results.append([np.asarray(r).tobytes() for r in xlac.compile(text)(xlac.donate(p), xlac.donate(m))])
    assert results[0] == results[1]


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(4)
    n = 300_007
    text = flat("f32", n, ["v2 = f32[] add(v0, v1)", "v3 = f32[] divide(v2, v0)", "v4 = f32[] multiply(v3, v1)"], 2)
    a, b = numbers(rng, "f32", n), numbers(rng, "f32", n)
    assert kernels.run(text, a, b, threads=1).tobytes() == kernels.run(text, a, b, threads=3).tobytes()
    agree(text, a, b, threads=2)


def test_arrays_at_any_address_have_the_bits_of_the_reference():
    n = 203
    text = flat("f32", n, ["v2 = f32[] subtract(v0, v1)", "v3 = f32[] multiply(v2, v2)"], 2)
    for shift in range(0, 16, 3):
        raw = np.random.default_rng(shift).standard_normal(2 * n + 32).astype("f4")
        agree(text, raw[shift:shift + n], raw[n + shift + 1:2 * n + shift + 1])




# --- reductions: the vector VM's tree ---

def with_and_without(text, arrays, turn, threads=1):
    """The results of native code and those of the vector VM."""
    results = []
    for on in (True, False):
        turn(on)
        got = kernels.run(text, *arrays, threads=threads)
        results.append([canonical(g).tobytes() for g in (got if isinstance(got, tuple) else (got,))])
    return results


def canonical(a):
    """Which NaN a sum of two of them is, and its sign, are not part of the bits."""
    return np.where(np.isnan(a), np.array(np.nan, a.dtype), a) if a.dtype.kind in "fV" else a


def reduction(t, extents, function, by):
    """A kernel over [outer, (reduced), inner] of two sums and a store beside them."""
    outer, reduced, inner = extents
    dims = [(outer, reduced * inner), (reduced, inner), (inner, 1)]
    kept = [d for d in range(3) if dims[d][0] > 1]
    every = "0" + "".join(f" + {dims[d][1]}*i{j}" for j, d in enumerate(kept))
    result = "0" + "".join(f" + {inner if d == 0 else 1}*i{j}" for j, d in enumerate(kept) if d != 1)
    return f"""kernel [{",".join(str(dims[d][0]) for d in kept)}] from 2 inputs
v0 = {t}[] load in0[{every}]
v1 = {t}[] load in1[{every}]
v2 = {t}[] {function}
v3 = {t}[] multiply(v2, v1)
v4 = {t}[] subtract(v0, v1)
v5 = {t}[] constant(1)
over [{outer},({reduced}),{inner}]
store out0[{result}] v3 by {by} from v5
store out1[{every}] v4
store out2[{result}] v4 by add from v5
"""


@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "s32", "s16"])
@pytest.mark.parametrize("by", ["add", "multiply", "maximum"])
def test_reductions_have_the_bits_of_the_vector_machine(t, by, without_native):
    rng = np.random.default_rng(8)
    for extents in ((1, 1000, 1), (3, 77, 1), (2, 3000, 1), (1, 40, 133), (3, 5, 200), (2, 100, 117), (1, 70000, 1)):
        n = int(np.prod(extents))
        a = [rng.integers(0, 5, n).astype(dtype_of(t)) if t in INTS else (rng.standard_normal(n) * 0.1 + 1).astype(dtype_of(t)) for _ in range(2)]
        text = reduction(t, extents, "xor(v0, v0)" if t in INTS else "exponential(v0)", by)
        on, off = with_and_without(text, a, without_native, threads=2)
        assert on == off, text


ROWS = ((1, 1000, 1), (3, 97, 1), (5, 128, 1), (2, 3000, 1), (1, 31, 1), (7, 2049, 1), (1, 70001, 1), (2, 9, 97), (1, 40, 333), (3, 5, 1500), (140, 64, 1), (75, 95, 1),
        (60, 33, 1))
COMBINES = {"float": ["add", "multiply", "maximum", "minimum"], "int": ["add", "multiply", "maximum", "minimum", "and", "or", "xor"],
            "pred": ["and", "or", "maximum", "minimum"]}


@pytest.mark.parametrize("t", [*FLOATS, *INTS, "pred"])
def test_folds_of_special_numbers_have_the_bits_of_the_vector_machine(t, without_native):
    rng = np.random.default_rng(12)
    function = "or(v0, v1)" if t == "pred" else "subtract(v0, v1)" if t in FLOATS else "xor(v0, v1)"
    for by in COMBINES[kind_of(t)]:
        for outer, reduced, inner in ROWS:
            n = outer * reduced * inner
            a = [numbers(rng, t, n) for _ in range(2)]
            if t in FLOATS and by in ("add", "multiply"):
                a[0][:n // 2] = rng.choice(np.array([1, -0.0, 0.5, -2], a[0].dtype), n // 2)
                a[1][:n // 2] = 0
            every = f"{reduced * inner}*i0 + {inner}*i1 + 1*i2" if inner > 1 else f"{reduced}*i0 + 1*i1"
            text = f"""kernel [{outer},{reduced}{f",{inner}" * (inner > 1)}] from 2 inputs
v0 = {t}[] load in0[0 + {every}]
v1 = {t}[] load in1[0 + {every}]
v2 = {t}[] {function}
v3 = {t}[] {"not(v2)" if t == "pred" else "abs(v2)" if t in FLOATS or t[0] == "s" else "not(v2)"}
v4 = {t}[] constant({1 if t != "pred" else "true"})
over [{outer},({reduced}),{inner}]
store out0[0 + {inner}*i0{" + 1*i2" if inner > 1 else ""}] v2 by {by} from v4
store out1[0 + {inner}*i0{" + 1*i2" if inner > 1 else ""}] v3 by {by} from v4
"""
            on, off = with_and_without(text, a, without_native, threads=1 + outer % 2)
            assert on == off, text


@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "f16", "s32", "u8", "s64"])
@pytest.mark.parametrize("by", ["add", "maximum", "minimum", "multiply"])
def test_short_rows_have_the_bits_of_plain_code(t, by, level, monkeypatch):
    """Rows without a loop, whole vectors and parts of one; many rows that fold together, and those left over. Two stores of one row, and an
    initial value that shows whether it is a sum's -0 or 0."""
    rng = np.random.default_rng(len(by))
    for row in (64, 65, 72, 79, 80, 95, 96, 97, 111, 112, 113, 127, 128):
        a = numbers(rng, t, 39 * row)
        if t in FLOATS and by in ("add", "multiply"):
            a = rng.choice(np.array([1, -0.0, 0.5, -2, 3], a.dtype), 39 * row)
            a[5 * row:9 * row] = -0.0
        if t in FLOATS and by in ("maximum", "minimum"):
            a[:5 * row] = rng.choice(np.array([0.0, -0.0], a.dtype), 5 * row)
        text = f"""kernel [39,{row}] from 1 input
v0 = {t}[] load in0[0 + {row}*i0 + 1*i1]
v1 = {t}[] subtract(v0, v0)
v2 = {t}[] constant({"-0" if t in FLOATS and by == "add" else 2})
v3 = {t}[] constant(0)
over [39,({row}),1]
store out0[0 + 1*i0] v0 by {by} from v2
store out1[0 + 1*i0] v1 by {by} from v3
"""
        for text in (text, text[:text.rindex("store")].replace(f"v1 = {t}[] subtract(v0, v0)\n", f"v1 = {t}[] constant(1)\n")):
            results = []
            for isa in (level, "portable"):
                monkeypatch.setenv("XLAC_MAX_ISA", isa)
                got = kernels.run(text, a)
                results.append([canonical(g).tobytes() for g in (got if isinstance(got, tuple) else (got,))])
            assert results[0] == results[1], text


@pytest.mark.parametrize("types", [("f32", "f64"), ("f32", "s32"), ("f64", "s64"), ("bf16", "f32"), ("s8", "s32"), ("f32", "s8")])
def test_sums_of_two_types_have_the_bits_of_the_vector_machine(types, without_native):
    rng, (t, u) = np.random.default_rng(2), types
    for outer, reduced in ((1, 5000), (3, 777), (2, 96)):
        a = numbers(rng, t, outer * reduced) if t in INTS else rng.standard_normal(outer * reduced).astype(dtype_of(t))
        text = f"""kernel [{outer},{reduced}] from 1 input
v0 = {t}[] load in0[0 + {reduced}*i0 + 1*i1]
v1 = {t}[] add(v0, v0)
v2 = {u}[] convert(v1)
v3 = {t}[] constant(0)
v4 = {u}[] constant(0)
over [{outer},({reduced}),1]
store out0[0 + {reduced}*i0 + 1*i1] v1
store out1[0 + 1*i0] v1 by add from v3
store out2[0 + 1*i0] v2 by add from v4
store out3[0 + 1*i0] v1 by maximum from v3
"""
        on, off = with_and_without(text, [a], without_native)
        assert on == off, text


def test_many_sums_at_once_and_over_several_rows_have_the_bits_of_the_vector_machine(without_native):
    rng = np.random.default_rng(3)
    a = [rng.standard_normal(3 * 4 * 130).astype("f4") for _ in range(2)]
    folds = ["add", "maximum", "minimum", "multiply", "add", "maximum", "add"]
    lines = "\n".join(f"store out{i}[0 + 1*i0] v{2 + i % 4} by {by} from v6" for i, by in enumerate(folds))
    text = f"""kernel [3,4,130] from 2 inputs
v0 = f32[] load in0[0 + 520*i0 + 130*i1 + 1*i2]
v1 = f32[] load in1[0 + 520*i0 + 130*i1 + 1*i2]
v2 = f32[] subtract(v0, v1)
v3 = f32[] tanh(v2)
v4 = f32[] exponential(v0)
v5 = f32[] multiply(v3, v4)
v6 = f32[] constant(0)
over [3,(520),1]
{lines}
"""
    on, off = with_and_without(text, a, without_native)
    assert on == off


@pytest.mark.parametrize("seed", [90187])
def test_one_result_of_many_short_rows_has_the_bits_of_the_vector_machine(seed):
    assert not random_native.differs(seed)


@pytest.mark.parametrize("t", ["f32", "bf16", "s8", "f64"])
@pytest.mark.parametrize("row", [33, 64, 96, 100])
def test_many_rows_in_a_call_have_the_bits_of_the_vector_machine(t, row, without_native):
    """Outer dimensions end within a call, what is read is not the same distance apart along each, and threads begin anywhere."""
    rng = np.random.default_rng(row)
    n = 9 * 7 * 11 * row
    a = [numbers(rng, t, n), numbers(rng, t, 9 * 11 * 2), numbers(rng, t, 7 * row)]
    reduces = f"over [693,({row}),1]\nstore out1[0 + 77*i0 + 11*i1 + 1*i2] v4 by maximum from v0\n"
    for end in ("", reduces):
        text = f"""kernel [9,7,11,{row}] from 3 inputs
v0 = {t}[] constant(3)
v1 = {t}[] load in0[0 + {77 * row}*i0 + {11 * row}*i1 + {row}*i2 + 1*i3]
v2 = {t}[] load in1[0 + 22*i0 + 2*i2]
v3 = {t}[] load in2[{6 * row} + -{row}*i1 + 1*i3]
v4 = {t}[] subtract(v1, v2)
v5 = {t}[] maximum(v4, v3)
v6 = {t}[] multiply(v5, v2)
{end}store out0[0 + {77 * row}*i0 + {11 * row}*i1 + {row}*i2 + 1*i3] v6
"""
        on, off = with_and_without(text, a, without_native, threads=2)
        assert on == off, text


# --- loads that are not neighbours, and iotas ---

@pytest.mark.parametrize("t", [*FLOATS, *INTS, "pred"])
@pytest.mark.parametrize("stride", [2, 3, 4, 7, 16, -1, -2, -5])
def test_loads_at_a_distance_have_the_bits_of_the_reference(t, stride):
    rng = np.random.default_rng(stride % 31)
    op = "or" if t == "pred" else "multiply" if t in FLOATS else "xor"
    for rows, n in ((1, 97), (4, 101), (3, 128)):
        size = rows * n * abs(stride) + 1
        first = (n - 1) * -stride if stride < 0 else 0
        text = f"""kernel [{rows},{n}] from 2 inputs
v0 = {t}[] load in0[{first} + {n * abs(stride)}*i0 + {stride}*i1]
v1 = {t}[] load in1[0 + {n}*i0 + 1*i1]
v2 = {t}[] {op}(v0, v1)
store out0[0 + {n}*i0 + 1*i1] v2
"""
        agree(text, numbers(rng, t, size), numbers(rng, t, rows * n))


SHORT = """kernel [40,{n}] from 3 inputs
v0 = {t}[] load in0[0 + {n}*i0 + 1*i1]
v1 = {t}[] load in1[0 + 1*i0]
v2 = {t}[] load in2[0 + 1*i1]
v3 = {t}[] subtract(v0, v1)
v4 = {t}[] multiply(v3, v2)
v5 = {t}[] maximum(v4, v1)
v6 = {t}[] add(v5, v0)
v7 = {t}[] constant(1)
"""


@pytest.mark.parametrize("t", [*FLOATS, *INTS])
@pytest.mark.parametrize("n", [8, 12, 13, 16, 24, 31])
def test_rows_shorter_than_a_vector_or_two_have_the_bits_of_the_vector_machine(t, n, without_native):
    data = [np.random.default_rng(n).integers(1, 9, size).astype(dtype_of(t)) / dtype_of(t).type(1 if t in INTS else 7) for size in (40 * n, 40, n)]
    data = [a.astype(dtype_of(t)) for a in data]
    for end in (f"store out0[0 + {n}*i0 + 1*i1] v6", "over [40,({n}),1]\nstore out0[0 + 1*i0] v6 by add from v7", "over [1,(40),{n}]\nstore out0[0 + 1*i1] v6 by add from v7"):
        on, off = with_and_without((SHORT + end).format(t=t, n=n) + "\n", data, without_native)
        assert on == off, end


@pytest.mark.parametrize("t", [*FLOATS, *INTS])
@pytest.mark.parametrize("index", ["7 + 2*i0 + 1*i1", "-3 + -1*i1", "5 + 9*i0", "100 + 3*i0 + -4*i1"])
def test_iotas_have_the_bits_of_the_reference(t, index):
    op = "divide" if t in FLOATS else "xor"
    for rows, n in ((3, 101), (5, 128)):
        text = f"""kernel [{rows},{n}] from 1 input
v0 = {t}[] load in0[0 + {n}*i0 + 1*i1]
v1 = {t}[] index[{index}]
v2 = {t}[] {op}(v0, v1)
store out0[0 + {n}*i0 + 1*i1] v2
"""
        agree(text, numbers(np.random.default_rng(1), t, rows * n))


@pytest.mark.parametrize("of", [random_native.Kernel, random_native.Far])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_kernels_have_the_bits_of_the_reference(first, of, monkeypatch):
    """A sample: python -m tests.cpu.random_native FIRST COUNT goes on."""
    monkeypatch.setenv("XLAC_NATIVE", "1")
    for seed in range(first, first + 20):
        assert not random_native.differs(seed, of), f"seed {seed}\n{of(seed).text}"


MAPPED = """
import os, xlac
kept = xlac.compile("HloModule m\\nENTRY e {\\n  x = f32[1000] parameter(0)\\n  y = f32[1000] multiply(x, x)\\n  ROOT z = f32[1000] exponential(y)\\n}")
path = f"/tmp/perf-{os.getpid()}.map"
print(open(path).read() if os.path.exists(path) else "none")
print(*(line for line in open("/proc/self/maps") if " r-xp 00000000 00:00 0" in line), sep="")
if os.path.exists(path):
    os.unlink(path)
"""


@pytest.mark.parametrize("on", ["1", "0"])
def test_perf_knows_the_names_of_machine_code_where_it_is_to(on, monkeypatch):
    monkeypatch.setenv("XLAC_PERF_MAP", on)
    out = subprocess.run([sys.executable, "-c", MAPPED], capture_output=True, text=True, check=True).stdout
    if on == "0":
        assert out.startswith("none\n")
        return
    begin, size = (int(n, 16) for n in re.match(r"([0-9a-f]+) ([0-9a-f]+) xlac e: z\n", out).groups())
    pages = [[int(n, 16) for n in m.groups()] for m in re.finditer(r"^([0-9a-f]+)-([0-9a-f]+) r-xp", out, re.M)]
    assert size > 100 and any(low <= begin and begin + size <= high for low, high in pages), out


def test_the_assembly_of_a_program_names_its_ops(level):
    text = xlac.compile_stage("""HloModule m
ENTRY e {
  x = f32[1000] parameter(0)
  y = f32[1000] multiply(x, x)
  ROOT z = f32[1000] exponential(y)
}""", "assembly")
    register, tail = {"avx2": ("ymm0", "vmaskmovps"), "avx512": ("zmm0", "{k7}")}[level]
    assert "# v2 = exponential" in text and f"vmulps {register}, {register}, {register}" in text and "vfmadd" in text and tail in text


COVERED = {"f32": [*FUNCTIONS[:-2], "power", "maximum", "divide"], "f64": ["exponential", "log", "tanh", "logistic", "floor", "minimum", "sine", "cosine"],
           "bf16": ["exponential", "sine", "add"], "f16": ["tanh", "multiply"], "s32": ["multiply", "shift-left", "abs", "divide", "power"],
           "u16": ["remainder"], "u64": ["maximum"]}


@pytest.mark.parametrize("t", COVERED)
def test_what_is_said_to_be_native_code_is(t):
    for op in COVERED[t]:
        operands = "x, x" if op in (*BINARY["float"], *BINARY["int"], "power") else "x"
        text = f"HloModule m\nENTRY e {{\n  x = {t}[1000] parameter(0)\n  ROOT y = {t}[1000] {op}({operands})\n}}"
        assert "by the vector VM" not in xlac.compile_stage(text, "assembly"), op
    other = "HloModule m\nENTRY e {\n  x = f64[1000] parameter(0)\n  ROOT y = f64[1000] tan(x)\n}"
    assert "by the vector VM" in xlac.compile_stage(other, "assembly")


GATHERS = ["0 + 1*v0 up to 99", "0 + 8*v0 up to 11 + 1*v1 up to 7", "0 + 1*i1 + 300*v0 up to 5", "0 + 300*i0 + 7*i1 + 1*v0 up to 2", "1000 + -3*i1 + 1*v0 up to 40"]


@pytest.mark.parametrize("at", GATHERS)
@pytest.mark.parametrize("t", ["f32", "f64", "s32", "u64", "u8", "s8", "bf16", "f16", "u16"])
def test_gathers_have_the_bits_of_the_reference(t, at):
    text = f"""kernel [3,130] from 3 inputs
v0 = s32[] load in0[0 + 130*i0 + 1*i1]
v1 = s64[] load in1[0 + 1*i0]
v2 = {t}[] load in2[{at}]
v3 = {t}[] multiply(v2, v2)
store out0[0 + 130*i0 + 1*i1] v3
"""
    rng = np.random.default_rng(5)
    places = [rng.integers(-20, 120, 390, dtype=np.int32), rng.integers(-3, 12, 3)]
    agree(text, *places, numbers(rng, t, 2000))


@pytest.mark.parametrize("t", ["u8", "bf16", "pred"])
@pytest.mark.parametrize("at", ["0 + 1*v0 up to LAST", "LAST + -7*i1"])
def test_narrow_gathers_read_nothing_behind_the_table(t, at):
    """Four bytes are gathered for each lane; a page that can't be read begins where the table ends."""
    size = dtype_of(t).itemsize
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    ctypes.CDLL(None).mprotect(
        ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)) + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0
    )
    for n in (913, 1000):
        table = np.frombuffer(memory, dtype_of(t), n, mmap.PAGESIZE - n * size)
        table[:] = numbers(np.random.default_rng(n), t, n)
        text = f"""kernel [130] from 2 inputs
v0 = s32[] load in0[0 + 1*i0]
v1 = {t}[] load in1[{at.replace("LAST", str(n - 1)).replace("i1", "i0")}]
store out0[0 + 1*i0] v1
"""
        places = np.random.default_rng(n).integers(-20, n + 20, 130, dtype=np.int32)
        places[::3] = n - 1 - np.arange(len(places[::3])) % 4
        agree(text, places, table)


def test_narrow_gathers_are_native_code():
    text = xlac.compile_stage(
        """HloModule m
ENTRY e {
  x = u8[256] parameter(0)
  i = u8[500,1] parameter(1)
  y = u8[500] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT z = u8[500] add(y, y)
}""",
        "assembly",
    )
    assert "vpgatherdd" in text and "by the vector VM" not in text


@pytest.mark.parametrize("t", ["f32", "bf16", "s8", "f64", "pred"])
def test_slices_from_computed_places_have_the_bits_of_the_reference(t):
    text = f"""kernel [3,130] from 3 inputs
v0 = s32[] load in0[0 + 1*i0]
v1 = {t}[] load in1[0 + 130*i0 + 1*i1]
v2 = {t}[] load in2[0 + 1*i1 + 130*v0 up to 4]
v3 = {t}[] load in2[0 + 3*i1 + 130*v0 up to 2]
v4 = pred[] compare(v1, v2), direction=LT
v5 = {t}[] select(v4, v2, v3)
store out0[0 + 130*i0 + 1*i1] v5
"""
    rng = np.random.default_rng(6)
    agree(text, np.array([-1, 3, 9], np.int32), numbers(rng, t, 390), numbers(rng, t, 700))


@pytest.mark.parametrize("t", ["f32", "bf16", "u8", "f64", "pred"])
def test_edges_have_the_bits_of_the_reference(t):
    """A roll of rows within an array's edges: the first load would begin before the array."""
    text = f"""kernel [4,131] from 2 inputs
v0 = {t}[] load in0[-131 + 131*i0 + 1*i1] where 1 <= i0 < 4
v1 = {t}[] load in1[0 + 1*i1]
v2 = {t}[] pick(v0, v1) if 1 <= i0 < 4
v3 = {t}[] load in0[-1 + 131*i0 + 1*i1] where 1 <= i1 < 131
v4 = {t}[] load in1[5]
v5 = {t}[] pick(v3, v4) if 1 <= i1 < 131
v6 = pred[] compare(v2, v5), direction=GE
v7 = {t}[] select(v6, v5, v2)
store out0[0 + 131*i0 + 1*i1] v7
"""
    rng = np.random.default_rng(7)
    agree(text, numbers(rng, t, 524), numbers(rng, t, 131))


@pytest.mark.parametrize("t", ["f32", "bf16", "u8", "f64", "s32"])
def test_kernels_cut_at_their_edges_have_the_bits_of_the_reference(t):
    """Rows that are long enough for most of them to have code without masks: neighbours within an array's edges."""
    text = f"""kernel [5,1003] from 2 inputs
v0 = {t}[] load in0[-1003 + 1003*i0 + 1*i1] where 1 <= i0 < 5
v1 = {t}[] load in1[0 + 1*i1]
v2 = {t}[] pick(v0, v1) if 1 <= i0 < 5
v3 = {t}[] load in0[-2 + 1003*i0 + 1*i1] where 2 <= i1 < 1003
v4 = {t}[] pick(v3, v1) if 2 <= i1 < 1003
v5 = {t}[] load in0[3 + 1003*i0 + 1*i1] where 0 <= i1 < 1000
v6 = {t}[] pick(v5, v4) if 0 <= i1 < 1000
v7 = {t}[] add(v2, v4)
v8 = {t}[] add(v7, v6)
store out0[0 + 1003*i0 + 1*i1] v8
store out1[0 + 1003*i0 + 1*i1] v7
"""
    rng = np.random.default_rng(8)
    for threads in (1, 3):
        agree(text, numbers(rng, t, 5015), numbers(rng, t, 1003), threads=threads)


@pytest.mark.parametrize("t", ["f32", "bf16", "s32", "f64"])
def test_short_rows_are_cut_along_outer_dimensions_alone(t):
    """Rolls along all dimensions: within a part, the edges of rows stay masks."""
    every = "1*i2 + 70*i1 + 1400*i0"
    text = f"""kernel [9,20,70] from 1 input
v0 = {t}[] load in0[-1400 + {every}] where 1 <= i0 < 9
v1 = {t}[] load in0[11200 + {every}] where 0 <= i0 < 1
v2 = {t}[] pick(v0, v1) if 1 <= i0 < 9
v3 = {t}[] load in0[70 + {every}] where 0 <= i1 < 19
v4 = {t}[] load in0[-1330 + {every}] where 19 <= i1 < 20
v5 = {t}[] pick(v3, v4) if 0 <= i1 < 19
v6 = {t}[] load in0[-1 + {every}] where 1 <= i2 < 70
v7 = {t}[] load in0[69 + {every}] where 0 <= i2 < 1
v8 = {t}[] pick(v6, v7) if 1 <= i2 < 70
v9 = {t}[] load in0[-71 + {every}] where 1 <= i1 < 20, 1 <= i2 < 70
v10 = {t}[] constant(2)
v11 = {t}[] pick(v9, v10) if 1 <= i1 < 20, 1 <= i2 < 70
v12 = {t}[] subtract(v2, v5)
v13 = {t}[] multiply(v8, v11)
v14 = {t}[] add(v12, v13)
store out0[0 + {every}] v14
"""
    for threads in (1, 3):
        agree(text, numbers(np.random.default_rng(10), t, 12600), threads=threads)


@pytest.mark.parametrize("t", ["f32", "bf16", "u8", "f64"])
def test_parts_of_concatenations_have_the_bits_of_the_reference(t):
    """Parts along rows and across them, some shorter than a vector; a part's own op has no value in the others."""
    text = f"""kernel [40,700] from 2 inputs
v0 = {t}[] load in0[0 + 200*i0 + 2*i1] where 0 <= i0 < 40, 0 <= i1 < 100
v1 = {t}[] load in0[1 + 200*i0 + 2*i1] where 0 <= i0 < 40, 0 <= i1 < 100
v2 = {t}[] subtract(v0, v1) where 0 <= i0 < 40, 0 <= i1 < 100
v3 = {t}[] load in1[-103 + 600*i0 + 1*i1] where 0 <= i0 < 40, 103 <= i1 < 700
v4 = {t}[] multiply(v3, v3) where 0 <= i0 < 40, 103 <= i1 < 700
v5 = {t}[] load in1[7]
v6 = {t}[] pick(v4, v5) if 0 <= i0 < 40, 103 <= i1 < 700
v7 = {t}[] pick(v2, v6) if 0 <= i0 < 40, 0 <= i1 < 100
v8 = {t}[] load in1[0 + 1*i1]
v9 = {t}[] pick(v8, v7) if 20 <= i0 < 40, 0 <= i1 < 700
store out0[0 + 700*i0 + 1*i1] v9
"""
    rng = np.random.default_rng(9)
    for threads in (1, 3):
        agree(text, numbers(rng, t, 8000), numbers(rng, t, 24000), threads=threads)


def test_gathers_and_edges_of_programs_are_native_code(level):
    text = xlac.compile_stage("""HloModule m
ENTRY e {
  x = f32[1000] parameter(0)
  i = s32[500,1] parameter(1)
  y = f32[500] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  z = f32[] constant(0)
  p = f32[1500] pad(y, z), padding=500_500
  q = f32[1500] pad(x, z), padding=0_500
  ROOT s = f32[1500] add(p, q)
}""", "assembly")
    assert "vpgatherdd" in text and "by the vector VM" not in text and {"avx2": "vmaskmovps", "avx512": "vmovdqu32"}[level] in text


@pytest.mark.parametrize("t", ["u8", "s16", "f32", "f64", "u64"])
@pytest.mark.parametrize("row", [2, 3, 4, 5, 8])
def test_lanes_near_each_other_are_permuted_or_selected(t, row):
    """Short rows made one: columns, single rows, rows backwards and parts of longer rows, to the last element of each array."""
    for n in (70, 1021):
        rng = np.random.default_rng(row)
        long = 2 * row + 1
        text = f"""kernel [{n},{row}] from 5 inputs
v0 = {t}[] load in0[0 + {row}*i0 + 1*i1]
v1 = {t}[] load in1[0 + 1*i0]
v2 = {t}[] add(v0, v1)
v3 = {t}[] load in2[0 + 1*i1]
v4 = {t}[] subtract(v2, v3)
v5 = {t}[] load in3[{row - 1} + {row}*i0 + -1*i1]
v6 = {t}[] add(v4, v5)
v7 = {t}[] load in4[{long - row} + {long}*i0 + 1*i1]
v8 = {t}[] subtract(v6, v7)
v9 = {t}[] load in4[0 + {long}*i0 + 2*i1]
v10 = {t}[] add(v8, v9)
store out0[0 + {row}*i0 + 1*i1] v10
"""
        arrays = [numbers(rng, t, m) for m in (n * row, n, row, n * row, n * long)]
        for threads in (1, 3):
            agree(text, *arrays, threads=threads)


def between_pages(a):
    """Copies of an array that end where a page begins which can't be read, and that begin where one ends."""
    whole = -(-a.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, whole + 2 * mmap.PAGESIZE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, whole + mmap.PAGESIZE):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(at + page), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    last = np.frombuffer(memory, a.dtype, a.size, mmap.PAGESIZE + whole - a.nbytes)
    last[:] = a
    yield last
    first = np.frombuffer(memory, a.dtype, a.size, mmap.PAGESIZE)
    first[:] = a
    yield first


@pytest.mark.parametrize("t", [*FLOATS, "s8", "u16", "s32", "u64", "pred", "c64"])
@pytest.mark.parametrize("row", [(2,), (3,), (4,), (5,), (6,), (7,), (8,), (12,), (2, 2), (4, 3), (16, 2)])
def test_cycles_of_short_rows_read_nothing_beside_arrays(t, row, level):
    """Rows backwards, broadcasts of either dimension (AVX2 has no cycles of the inner one), parts of longer rows, columns of a table, parts that
    only some lanes have, iotas; with an outer dimension and without, ending within a cycle."""
    rng = np.random.default_rng(len(t) + sum(row))
    for outer, n in ((None, 1201), (3, 230)):
        extents = [*([outer] if outer else []), n, *row]
        inside = int(np.prod(row))
        strides = [int(np.prod(extents[j + 1:])) for j in range(len(extents))]
        every = " + ".join(f"{s}*i{j}" for j, s in enumerate(strides))
        tail = len(extents) - 1
        long = row[-1] + 3
        rows = [" + ".join(f"{s // row[-1] * by}*i{j}" for j, s in enumerate(strides[:-1])) for by in (row[-1], 1, long)]
        column = f"in2[0 + 1*i{tail}]" if level == "avx512" else f"in1[0 + {rows[1]}]"
        kind = f"v1 = {t}[] load in0[{row[-1] - 1} + {rows[0]} + -1*i{tail}]\n"
        kind += f"v2 = {t}[] load in1[0 + {rows[1]}]\nv3 = {t}[] load {column}\nv4 = {t}[] load in3[2 + {rows[2]} + 1*i{tail}]\n"
        sizes = [outer * n * inside if outer else n * inside] * 2
        sizes = [sizes[0], sizes[0] // row[-1], row[-1], sizes[0] // row[-1] * long - 1, sizes[0] // row[-1]]
        box = f"1 <= i{tail} < {row[-1]}"
        kind += f"v5 = {t}[] load in4[0 + {rows[1]}] where {box}\nv6 = {t}[] pick(v5, v1) if {box}\n"
        joins = ["or"] * 4 if t == "pred" else ["add", "subtract", "add", "subtract"] if t == "c64" else ["subtract", "maximum", "subtract", "add"]
        kind += "".join(f"v{7 + j} = {t}[] {op}(v{6 + j}, v{2 + j if j < 3 else 1})\n" for j, op in enumerate(joins))
        result = 10
        if t not in ("pred", "c64"):
            kind += f"v11 = {t}[] index[3 + -1*i{tail}]\nv12 = {t}[] multiply(v10, v11)\n"
            result = 12
        text = f"kernel [{','.join(map(str, extents))}] from 5 inputs\nv0 = {t}[] load in0[0 + {every}]\n{kind}store out0[0 + {every}] v{result}\n"
        make = (lambda m: (rng.standard_normal(m) + 1j * rng.standard_normal(m)).astype("c8")) if t == "c64" else lambda m: numbers(rng, t, m)
        for arrays in zip(*(between_pages(make(m)) for m in sizes)):
            agree(text, *arrays, threads=1 if outer else 3)


@pytest.mark.parametrize("level_has", ["vpermt2d", "vpshufb"])
def test_short_rows_are_cycles(level_has, level):
    t = "f32" if level_has == "vpermt2d" else "u8"
    text = xlac.compile_stage(f"HloModule m\nENTRY e {{\n  x = {t}[5000,3] parameter(0)\n  ROOT r = {t}[5000,3] reverse(x), dimensions={{1}}\n}}", "assembly")
    assert "by cycles of" in text and level_has.replace("vpermt2d", "vpermt2d" if level == "avx512" else "vpshufb") in text


def test_short_rows_gather_nothing(level):
    text = xlac.compile_stage("""HloModule m
ENTRY e {
  x = f32[5000,3] parameter(0)
  k = f32[5000] parameter(1)
  c = f32[3] parameter(2)
  b = f32[5000,3] broadcast(k), dimensions={0}
  d = f32[5000,3] broadcast(c), dimensions={1}
  m = f32[5000,3] multiply(x, b)
  ROOT r = f32[5000,3] add(m, d)
}""", "assembly")
    assert "vpermd" in text and "gather" not in text


SHORT_ROWS = [([700, 3], "1*i0", "1*i1"), ([40, 5, 4], "4*i0 + 1*i2", "1*i1"), ([30000, 3], "1*i0", "3*i0 + 1*i1"), ([9, 11, 7, 3], "7*i0 + 1*i2", "3*i1 + 1*i3")]


@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("extents, first, second", SHORT_ROWS)
def test_short_rows_have_the_bits_of_the_vector_machine(extents, first, second, sums, without_native):
    """The innermost dimensions become one, and what has gaps in it gathers: enough is computed for that to pay."""
    strides = [int(np.prod(extents[d + 1:])) for d in range(len(extents))]
    every, n = " + ".join(f"{s}*i{d}" for d, s in enumerate(strides)), int(np.prod(extents))
    ops = "".join(f"v{i} = f32[] {op}(v{i - 1}, v{i % 3})\n" for i, op in enumerate(["multiply", "add", "subtract", "add"] * 5, start=3))
    last = "store out0[0 + " + every + "] v22\n"
    if sums:
        kept = " + ".join(f"{s}*i{d + 1}" for d, s in enumerate(strides[1:]))
        last = f"v23 = f32[] constant(0)\nover [1,({extents[0]}),{strides[0]}]\nstore out0[0 + {kept}] v22 by add from v23\n"
    text = f"""kernel [{','.join(map(str, extents))}] from 3 inputs
v0 = f32[] load in0[0 + {every}]
v1 = f32[] load in1[0 + {first}]
v2 = f32[] load in2[0 + {second}]
{ops}{last}"""
    arrays = [numbers(np.random.default_rng(i), "f32", n) for i in range(3)]
    got = kernels.run(text, *arrays)
    without_native()
    want = kernels.run(text, *arrays)
    assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("index, other", [
    ("index[-3 + 1*i0]", "index[0 + 1*i1]"), ("index[0 + 1*i0 + -1*i1]", "constant(-5)"), ("index[8589934592 + 1*i0]", "index[8589934590 + 1*i1]"),
    ("index[0 + 1*i1]", "constant(4294967301)"), ("index[2147483640 + 1*i0]", "index[2147483645 + 1*i1]"), ("index[-2147483648 + 1*i1]", "constant(-2147483648)"),
    ("constant(7)", "index[0 + 1*i1]")])
def test_indexes_of_64_bits_have_the_bits_of_the_reference(index, other, direction):
    """They are of 32 bits where that is enough for all that becomes of them: compared, converted, summed or stored."""
    x = np.random.default_rng(1).standard_normal(40 * 133).astype(np.float32)
    head = f"""kernel [40,133] from 1 input
v0 = f32[] load in0[0 + 133*i0 + 1*i1]
v1 = s64[] {index}
v2 = s64[] {other}
v3 = s64[] abs(v1)
v4 = pred[] compare(v1, v2), direction={direction}
v5 = pred[] compare(v3, v2), direction={direction}
v6 = pred[] xor(v4, v5)
v7 = f32[] constant(-1)
v8 = f32[] select(v6, v0, v7)
"""
    every = "[0 + 133*i0 + 1*i1]"
    agree(head + f"store out0{every} v8\n", x)
    for to in ("f32", "f64", "u64", "s8", "u16", "bf16"):
        agree(head + f"v9 = {to}[] convert(v3)\nstore out0{every} v8\nstore out1{every} v9\n", x)
    agree(head + f"v9 = s64[] add(v1, v2)\nstore out0{every} v8\nstore out1{every} v9\n", x)
    agree(head + f"store out0{every} v8\nstore out1{every} v3\n", x)
    agree(head + f"store out0{every} v8\nstore out1{every} v1\n", x)


def test_causal_masks_compare_32_bits(level):
    text = xlac.compile_stage("""HloModule m
ENTRY e {
  x = f32[200,200] parameter(0)
  i = s64[200,200] iota(), iota_dimension=0
  j = s64[200,200] iota(), iota_dimension=1
  p = pred[200,200] compare(i, j), direction=GE
  z = f32[] constant(-inf)
  b = f32[200,200] broadcast(z), dimensions={}
  ROOT r = f32[200,200] select(p, x, b)
}""", "assembly")
    assert {"avx512": "vpcmpd", "avx2": "vpcmpgtd"}[level] in text and "vpmovsxdq" not in text


def test_an_empty_part_of_a_row_reads_nothing():
    """A load whose box is one column lies, for the others, far outside of its array."""
    text = """kernel [2,100000] from 2 inputs
v0 = f32[] load in0[0 + 100000*i0 + 1*i1]
v1 = f32[] load in1[99999 + 1*i0 + 1*i1] where 0 <= i1 < 1
v2 = f32[] pick(v1, v0) if 0 <= i1 < 1
store out0[0 + 100000*i0 + 1*i1] v2
"""
    agree(text, np.arange(200000, dtype=np.float32), np.arange(100001, dtype=np.float32))


@pytest.mark.parametrize("threads", [1, 3])
def test_results_that_go_past_the_cache(threads):
    """Results of more than 12 MB, of several types in one kernel, whose sizes fit neither lines nor ranges; into memory at any place, too."""
    n = (13 << 18) + 37
    text = f"""HloModule m
ENTRY e {{
  x = f32[{n}] parameter(0)
  y = f32[{n}] parameter(1)
  s = f32[{n}] subtract(x, y)
  a = f32[{n}] add(s, y)
  c = f64[{n}] convert(s)
  k = s32[{n}] iota(), iota_dimension=0
  h = s8[{n}] convert(k)
  m = f32[{n}] multiply(s, a)
  ROOT r = (f32[{n}], f32[{n}], f64[{n}], s8[{n}]) tuple(a, m, c, h)
}}"""
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    native = xlac.compile(xlac.parse(text), threads=threads)
    whole = [np.zeros(n * np.dtype(t).itemsize + 64, np.uint8) for t in (np.float32, np.float32, np.float64, np.int8)]
    out = tuple(room[1 if t is np.int8 else 8:][:n * np.dtype(t).itemsize].view(t)
                for room, t in zip(whole, (np.float32, np.float32, np.float64, np.int8)))
    native(x, y, out=out)
    s = x - y
    want = (s + y, s * (s + y), s.astype(np.float64), np.arange(n, dtype=np.int32).astype(np.int8))
    for got in (out, native(x, y)):
        assert all(np.array_equal(g, w) for g, w in zip(got, want))


# --- lanes inside of a conversion that are wider than all types of the kernel ---


@pytest.mark.parametrize("source", ["u32", "s32"])
@pytest.mark.parametrize("result", ["f16", "bf16"])
def test_a_conversion_by_way_of_f64_in_a_box(source, result):
    """Both values of a pick are there in a box alone, which says nothing of the lanes that they need."""
    n = 1190
    text = f"""HloModule m
ENTRY e {{
  a = {source}[{n}] parameter(0)
  b = {result}[{n}] convert(a)
  c = {result}[{2 * n}] concatenate(b, b), dimensions={{0}}
  ROOT d = {result}[{2 * n}] add(c, c)
}}"""
    module = xlac.parse(text)
    x = (np.random.default_rng(n).integers(1, 2**31 - 1, n) >> np.arange(n) % 31).astype(np.int32 if source == "s32" else np.uint32)
    want, got = xlac.interpret(module, x), xlac.compile(module, threads=1)(x)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.parametrize("wide", ["s64", "u64"])
@pytest.mark.parametrize("narrow", ["f32", "f16"])
def test_sums_of_wide_integers_beside_narrower_floats(wide, narrow):
    """The lanes of both are kept row by row, in so many bytes for each."""
    text = f"""kernel [6,200] from 2 inputs
v0 = {wide}[] load in0[0 + 200*i0 + 1*i1]
v1 = {narrow}[] load in1[0 + 200*i0 + 1*i1]
v2 = {narrow}[] abs(v1)
v3 = {wide}[] constant(1)
v4 = {narrow}[] constant(1)
over [6,(200),1]
store out0[0 + 1*i0] v0 by add from v3
store out1[0 + 1*i0] v2 by add from v4
"""
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 2**40, 1200).astype(wide.replace("s", "int").replace("u", "uint")), rng.random(1200).astype("float" + narrow[1:])
    wides, narrows = kernels.run(text, x, y)
    assert (wides == x.reshape(6, 200).sum(1) + np.array(1, x.dtype)).all()
    assert narrows.tobytes() == by_the_vector_machine(text, x, y)[1]


def by_the_vector_machine(text, *arrays):
    """The vector machine's results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLAC_NATIVE", "0")
        return [r.tobytes() for r in kernels.run(text, *arrays)]


@pytest.mark.parametrize("seed", [803871])
def test_more_that_is_the_same_in_all_iterations_than_there_is_room_for(seed):
    """Such a kernel is the vector machine's. Its code was gone on with, and what it keeps looked for where nothing was."""
    assert not random_native.differs(seed)
