"""The text of kernels: read, verified, printed; and the vector VM beside the plain evaluation, on kernels alone."""
import contextlib
import importlib.util
import json
import os
import pathlib
import random

import numpy as np
import pytest

import xlac
from xlac import kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("XLAC_PROGRAMS", ROOT.parent / "shared" / "bench" / "programs"))
RANDOM_KERNELS = int(os.environ.get("XLAC_RANDOM_KERNELS", 300))


def both(text, *arrays, threads=1):
    """The VM's results and the reference's."""
    one = lambda **k: kernels.run(text, *arrays, **k)  # noqa: E731
    got, want = one(threads=threads), one(reference=True)
    return (got, want) if isinstance(got, tuple) else ((got,), (want,))


def same(text, *arrays, threads=1, close=0.0):
    got, want = both(text, *arrays, threads=threads)
    for g, w in zip(got, want):
        if close:
            np.testing.assert_allclose(np.asarray(g, np.float64), np.asarray(w, np.float64), rtol=close, atol=close)
        else:
            assert g.tobytes() == w.tobytes(), text
    return want


# --- text ---

def test_the_text_of_a_kernel_is_what_it_was_read_from():
    text = """kernel [4,3] from 2 inputs
v0 = f32[] load in0[11 + -3*i0 + -1*i1]
v1 = bf16[] load in1[0 + 1*i1]
v2 = f32[] convert(v1)
v3 = s64[] index[7 + 2*i0]
v4 = f32[] convert(v3)
v5 = f32[] constant(-0)
v6 = pred[] compare(v0, v2), direction=GE
v7 = f32[] select(v6, v4, v5)
v8 = f32[] reduce-precision(v7), exponent_bits=5, mantissa_bits=10
v9 = c64[] constant((1, -2.5))
store out1[0 + 3*i0 + 1*i1] v8
"""
    assert kernels.normal(text) == text
    loose = "// a comment\n\n" + text.replace(" + ", "+").replace("= f32[]", "=   f32[]")
    assert kernels.normal(loose) == text


@pytest.mark.parametrize("order", ["", ", type=FLOAT", ", type=TOTALORDER"])
@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_a_comparison_keeps_its_direction_and_order(direction, order):
    text = f"""kernel [4] from 2 inputs
v0 = f32[] load in0[0 + 1*i0]
v1 = f32[] load in1[0 + 1*i0]
v2 = pred[] compare(v0, v1), direction={direction}{order}
store out0[0 + 1*i0] v2
"""
    assert kernels.normal(text) == text
    a, b = np.array([0.0, 1.0, np.nan, -np.nan], "f4"), np.array([-0.0, 2.0, np.nan, np.inf], "f4")
    (got,) = same(text, a, b)
    if "TOTAL" not in order:
        operator = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}[direction]
        assert got.tolist() == eval(f"a {operator} b").tolist()  # noqa: S307
    else:
        assert got.tolist() == {"EQ": [False, False, True, False], "NE": [True, True, False, True], "GE": [True, False, True, False],
                                "GT": [True, False, False, False], "LE": [False, True, True, True],
                                "LT": [False, True, False, True]}[direction]


@pytest.mark.parametrize("exponent, mantissa", [(256, 23), (300, 256), (2**31 - 1, 2**31 - 1)])
def test_bits_that_no_type_has_change_nothing(exponent, mantissa):
    text = f"""HloModule m
ENTRY e {{
  p = f32[4] parameter(0)
  ROOT r = f32[4] reduce-precision(p), exponent_bits={exponent}, mantissa_bits={mantissa}
}}"""
    x = np.array([1.2345678, 3e38, 1e-40, -np.inf], "f4")
    assert xlac.compile(text)(x).tobytes() == x.tobytes() == xlac.interpret(text, x).tobytes()


def assert_fixed_point(executable):
    found = kernels.of(executable)
    for text in found:
        once = kernels.normal(text)
        assert kernels.normal(once) == once and "\n".join(text.splitlines()[1:]).strip() == once.strip()
    return len(found)


def test_kernels_of_random_modules_read_back():
    spec = importlib.util.spec_from_file_location("array_modules", ROOT / "tests" / "cpu" / "random_modules.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert sum(assert_fixed_point(xlac.compile(xlac.parse(made.Module(seed).text))) for seed in range(40)) > 60


def test_kernels_of_all_benchmark_programs_read_back():
    if not PROGRAMS.is_dir():
        pytest.skip("no benchmark programs")
    total = 0
    for path in sorted(PROGRAMS.glob("*.json")):
        text = path.with_name(path.name.replace(".json", ".stablehlo.mlir"))
        if json.loads(path.read_text()).get("n_devices", 1) == 1 and text.stat().st_size < 500_000:
            total += assert_fixed_point(xlac.compile(xlac.parse(text.read_text())))
    assert total > 300


GOOD = """kernel [2,3] from 1 input
v0 = f32[] load in0[0 + 3*i0 + 1*i1]
v1 = f32[] constant(1)
v2 = f32[] add(v0, v1)
store out0[0 + 3*i0 + 1*i1] v2
"""
SUM = GOOD.replace("store out0[0 + 3*i0 + 1*i1] v2", "over [2,(3),1]\nstore out0[0 + 1*i0] v2 by add from v1")


@pytest.mark.parametrize(("good", "old", "new", "line", "says"), [
    (GOOD, GOOD, "", 1, 'expected "kernel"'),
    (GOOD, "[2,3]", "[2,-3]", 1, "out of range"),
    (GOOD, "[2,3]", "[9223372036854775807,3]", 1, "too many"),
    (GOOD, "[2,3]", "[1,1,1,1,1,1,1,1,1,1,1,2,3]", 1, "12 dimensions"),
    (GOOD, "1 input", "1 output", 1, 'expected "input"'),
    (GOOD, "v1 = ", "v7 = ", 3, "in this order"),
    (GOOD, "in0", "in1", 2, "input 1 of 1"),
    (GOOD, "[0 + 3*i0 + 1*i1]\nv1", "[0 + 3*i2]\nv1", 2, "no such dimension"),
    (GOOD, "[0 + 3*i0 + 1*i1]\nv1", "[-1 + 3*i0 + 1*i1]\nv1", 2, "before the array"),
    (GOOD, "[0 + 3*i0 + 1*i1]\nv1", "[0 + 9223372036854775807*i0 + 1*i1]\nv1", 2, "overflows"),
    (GOOD, "[0 + 3*i0 + 1*i1]\nv1", "[0 + 3*i0 + 1*i1] more\nv1", 2, "should end"),
    (GOOD, "f32[] load", "f31[] load", 2, "f31"),
    (GOOD, "f32[] load", "f32[2] load", 2, ""),
    (GOOD, "f32[] load", "bf16[] load", 4, ""),
    (GOOD, "constant(1)", "constant(x)", 3, ""),
    (GOOD, "constant(1)", "constant({...})", 3, ""),
    (GOOD, "add(v0, v1)", "add(v0, v3)", 4, "v3"),
    (GOOD, "add(v0, v1)", "add(v0)", 4, ""),
    (GOOD, "add(v0, v1)", "frobnicate(v0, v1)", 4, "frobnicate"),
    (GOOD, "add(v0, v1)", "rng(v0, v1), distribution=rng_uniform", 4, "not an elementwise op"),
    (GOOD, "add(v0, v1)", "add(v0, v1) v9 = f32[] negate(v0)", 4, "one value on a line"),
    (GOOD, "add(v0, v1)", "add(v0, v1) } x { y = f32[] constant(2)", 4, "one value on a line"),
    (GOOD, "[0 + 3*i0 + 1*i1] v2", "[0 + 1*i0 + 2*i1] v2", 5, "in order"),
    (GOOD, "[0 + 3*i0 + 1*i1] v2", "[0 + 3*i0 + 1*i1] v3", 5, "no value"),
    (GOOD, "store out0[0 + 3*i0 + 1*i1] v2\n", "", 4, "stores something"),
    (GOOD, "v2\n", "v2\nstore out0[0 + 3*i0 + 1*i1] v1\n", 6, "one output"),
    (GOOD, "v2\n", "v2\nload x\n", 6, 'expected a value, "over" or "store"'),
    (SUM, "[2,(3),1]", "[2,(2),1]", 5, "does not cover"),
    (SUM, "by add", "by divided", 6, "divided"),
    (SUM, "by add", "by compare", 6, ""),
    (SUM, "from v1", "from v0", 6, "not one f32"),
    (SUM, "from v1", "from v9", 6, "before it"),
    (SUM, "[0 + 1*i0] v2", "[0 + 1*i1] v2", 6, "in order"),
    (SUM, "over [2,(3),1]\n", "", 5, "no \"over\""),
    (SUM, " by add from v1", "", 5, "no store that reduces"),
    (SUM, "over [2,(3),1]", "over [2,(3),1]\nover [2,(3),1]", 6, "one \"over\""),
])
def test_what_is_no_kernel_is_refused_with_its_line(good, old, new, line, says):
    assert old in good
    with pytest.raises(xlac.Error) as caught:
        kernels.normal(good.replace(old, new, 1))
    assert says in str(caught.value)
    assert caught.value.line == line, str(caught.value)


def test_any_damage_is_an_error_or_a_kernel():
    draw = random.Random(3)
    for _ in range(500):
        text = list(SUM if draw.randrange(2) else GOOD)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(text))
            text[at:at + draw.randrange(3)] = draw.choice(["", "9", "-", "[", "]", "v0", "\n", "{", "}", "/*", "f32[]", "(", ","])
        try:
            kernels.normal("".join(text))
        except xlac.Error:
            pass


def test_memory_that_is_too_small_is_refused():
    for arrays, says in [([np.ones(5, np.float32)], "element 5 of in0"), ([], "1 input"), ([np.ones(6, np.float32)] * 2, "inputs, not 2")]:
        with pytest.raises(xlac.Error, match=says):
            kernels.run(GOOD, *arrays)
        with pytest.raises(xlac.Error, match=says):
            kernels.run(GOOD, *arrays, reference=True)
    with pytest.raises(xlac.Error, match="room|reaches"):
        xlac._core.kernel_run(GOOD, [np.ones(6, np.float32)], [np.ones(5, np.float32).view(np.uint8)], 1, False)
    with pytest.raises(xlac.Error, match="room"):
        xlac._core.kernel_run(SUM, [np.ones(6, np.float32)], [np.ones(1, np.float32).view(np.uint8)], 1, True)


# --- values ---

X = np.random.default_rng(0).standard_normal(4096).astype(np.float32)


def test_a_known_result():
    (want,) = same(SUM, np.arange(6, dtype=np.float32))
    assert want.tolist() == [1 + 3 + 3, 1 + 12 + 3]


@pytest.mark.parametrize("index", ["0 + 64*i0 + 1*i1", "63 + 64*i0 + -1*i1", "0 + 1*i0 + 64*i1", "5", "3 + 1*i1", "2 + 1*i0", "0 + 128*i0 + 2*i1",
                                   "4095 + -64*i0 + -1*i1", "0 + 3*i0", "17 + 5*i0 + 3*i1"])
@pytest.mark.parametrize("extents", [(24, 64), (3, 5), (1, 1), (0, 7), (64, 1), (7, 200)])
def test_every_form_of_index(index, extents):
    if not extents[1] <= 64 and "64*i0" in index or "128*i0" in index and extents[0] > 24:
        pytest.skip("beyond the array")
    rows, columns = extents
    text = f"""kernel [{rows},{columns}] from 1 input
v0 = f32[] load in0[{index}]
v1 = s32[] index[{index}]
v2 = f32[] convert(v1)
v3 = f32[] subtract(v0, v2)
store out0[0 + {columns}*i0 + 1*i1] v3
"""
    same(text, np.concatenate([X] * 4))


@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("shape", [(1, 1000, 1), (1, 70000, 1), (7, 33, 1), (2, 40, 300), (1, 5, 2000), (3, 0, 4), (0, 3, 2), (1, 40000, 3)])
@pytest.mark.parametrize("dtype", ["f32", "s32", "bf16", "f64"])
def test_reductions(op, shape, dtype):
    outer, reduced, inner = shape
    text = f"""kernel [{outer},{reduced},{inner}] from 1 input
v0 = {dtype}[] load in0[0 + {reduced * inner}*i0 + {inner}*i1 + 1*i2]
v1 = {dtype}[] constant(1)
v2 = {dtype}[] multiply(v0, v1)
over [{outer},({reduced}),{inner}]
store out0[0 + {inner}*i0 + 1*i2] v2 by {op} from v1
"""
    n = max(1, outer * reduced * inner)
    kind = xlac._core.numpy_dtype(dtype)
    data = (1 + 1e-4 * np.resize(X, n)).astype(kind) if dtype != "s32" else np.resize(X * 50, n).astype(np.int32)
    exact = dtype == "s32" or op in ("maximum", "minimum")
    if op == "add" and dtype == "bf16":
        data = (0.01 * np.resize(X, n)).astype(kind)
    for threads in (1, 3):
        same(text, data, threads=threads, close=0 if exact else {"f32": 2e-3, "f64": 1e-10, "bf16": 4e-2}[dtype])


def test_several_outputs():
    text = """kernel [300,70] from 1 input
v0 = f32[] load in0[0 + 70*i0 + 1*i1]
v1 = f32[] sine(v0)
v2 = f32[] cosine(v0)
v3 = pred[] compare(v1, v2), direction=LT
store out0[0 + 70*i0 + 1*i1] v1
store out2[0 + 70*i0 + 1*i1] v3
store out1[5 + 70*i0 + 1*i1] v2
"""
    got = same(text, np.resize(X, 21000), threads=2)
    assert [g.dtype.kind for g in got] == ["f", "f", "b"] and got[1].size == 21005 and not got[1][:5].any()
    same("kernel [] from 1 input\nv0 = f32[] load in0[3]\nv1 = f32[] negate(v0)\nstore out0[0] v0\nstore out1[2] v1\n", X)


UNARY = {"f32": ["negate", "abs", "exponential", "tanh", "floor", "sign", "logistic"], "f64": ["negate", "sine", "sqrt", "round-nearest-even"],
         "s32": ["negate", "abs", "not", "popcnt", "sign"], "u8": ["not", "popcnt", "count-leading-zeros"], "bf16": ["negate", "tanh", "abs"]}
BINARY = {"f32": ["add", "multiply", "divide", "maximum", "power", "atan2"], "f64": ["add", "subtract", "remainder"],
          "s32": ["add", "multiply", "divide", "and", "shift-left", "minimum"], "u8": ["add", "xor", "shift-right-logical", "divide"],
          "bf16": ["add", "multiply", "maximum"]}


def random_kernel(draw):
    """(text, arrays): affine loads of all kinds, ops of few types, one or more stores or a reduction."""
    rank = draw.randrange(4)
    extents = [draw.choice([1, 2, 3, 5, 17, 64, 90]) for _ in range(rank)]
    dense = [int(np.prod(extents[d + 1:])) for d in range(rank)]
    n_inputs, lines, types, arrays = draw.randrange(1, 4), [], [], []
    kinds = [draw.choice(list(UNARY)) for _ in range(n_inputs)]

    def index(least_zero=True):
        strides = draw.choice([dense, [draw.randrange(-3, 4) for _ in range(rank)], [s if draw.randrange(2) else 0 for s in dense]])
        low = sum(min(0, s * (e - 1)) for s, e in zip(strides, extents))
        offset = -low + draw.randrange(3) if least_zero else draw.randrange(-5, 6)
        high = offset + sum(max(0, s * (e - 1)) for s, e in zip(strides, extents))
        return f"[{offset}" + "".join(f" + {s}*i{d}" for d, s in enumerate(strides) if s) + "]", high

    sizes = [1] * n_inputs
    for _ in range(draw.randrange(1, 14)):
        i, what = len(types), draw.randrange(5)
        if what == 0 or i == 0:
            which = draw.randrange(n_inputs)
            where, high = index()
            sizes[which] = max(sizes[which], high + 1)
            types.append(kinds[which])
            lines.append(f"v{i} = {kinds[which]}[] load in{which}{where}")
        elif what == 1:
            types.append(draw.choice(["s32", "f32"]))
            lines.append(f"v{i} = {types[-1]}[] " + (f"index{index(False)[0]}" if draw.randrange(2) else f"constant({draw.randrange(9)})"))
        else:
            a = draw.randrange(i)
            fits = [b for b in range(i) if types[b] == types[a]]
            if what == 2:
                lines.append(f"v{i} = {types[a]}[] {draw.choice(UNARY[types[a]])}(v{a})")
                types.append(types[a])
            elif what == 3:
                lines.append(f"v{i} = {types[a]}[] {draw.choice(BINARY[types[a]])}(v{a}, v{draw.choice(fits)})")
                types.append(types[a])
            else:
                types.append(draw.choice(list(UNARY)))
                lines.append(f"v{i} = {types[-1]}[] convert(v{a})")
    whole = "[0" + "".join(f" + {s}*i{d}" for d, s in enumerate(dense)) + "]"
    stored = {len(types) - 1, *(draw.randrange(len(types)) for _ in range(draw.randrange(3)))}
    lines += [f"store out{n}{whole} v{v}" for n, v in enumerate(sorted(stored))]
    for kind, size in zip(kinds, sizes):
        base = np.resize(X, size + 1)[1:] * 3
        arrays.append((np.abs(base) * 20 if kind == "u8" else base * 9 if kind == "s32" else base).astype(xlac._core.numpy_dtype(kind)))
    head = f"kernel [{','.join(map(str, extents))}] from {n_inputs} input{'' if n_inputs == 1 else 's'}\n"
    return head + "\n".join(lines) + "\n", arrays


def test_random_kernels():
    for seed in range(RANDOM_KERNELS):
        text, arrays = random_kernel(random.Random(seed))
        assert kernels.normal(kernels.normal(text)) == kernels.normal(text)
        same(text, *arrays, threads=1 + seed % 2)


@pytest.mark.parametrize("shape", [(1, 1000, 1), (1, 70000, 1), (7, 330, 1), (2, 140, 300), (1, 500, 20), (3, 0, 4), (0, 3, 2), (1, 40000, 3)])
@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
def test_several_reductions_beside_outputs_of_every_iteration(shape, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    outer, reduced, inner = shape
    each, kept = f"0 + {reduced * inner}*i0 + {inner}*i1 + 1*i2", f"0 + {inner}*i0 + 1*i2"
    text = f"""kernel [{outer},{reduced},{inner}] from 1 input
v0 = s32[] load in0[{each}]
v1 = s32[] constant(3)
v2 = s32[] multiply(v0, v0)
v3 = s64[] convert(v2)
v4 = s64[] constant(-1)
v5 = f32[] convert(v0)
v6 = f32[] constant(-1000)
over [{outer},({reduced}),{inner}]
store out0[{kept}] v0 by add from v1
store out1[{each}] v2
store out2[{kept}] v3 by minimum from v4
store out3[{kept}] v5 by maximum from v6
store out4[{each}] v3
store out5[{kept}] v0 by xor from v1
"""
    data = np.random.default_rng(5).integers(-99, 99, max(1, outer * reduced * inner)).astype(np.int32)
    for threads in (1, 2, 7):
        same(text, data, threads=threads)


EDGES = """kernel [3,{n}] from 3 inputs
v0 = s32[] load in1[0]
v1 = f32[] load in0[-2 + 8*i0 + 1*i1 + 8*v0 up to 3] where 2 <= i1 < 10
v2 = f32[] constant(0.5)
v3 = f32[] pick(v1, v2) if 2 <= i1 < 10
v4 = f32[] load in2[-4 + 4*i0] where 1 <= i0 < 3
v5 = f32[] negate(v4) where 1 <= i0 < 3
v6 = f32[] load in2[0 + 1*i1] where 0 <= i0 < 1, 0 <= i1 < 10
v7 = f32[] pick(v6, v2) if 0 <= i1 < 10 where 0 <= i0 < 1
v8 = f32[] pick(v5, v7) if 1 <= i0 < 3
v9 = f32[] add(v3, v8)
store out0[0 + {n}*i0 + 1*i1] v9
store out1[0 + {n}*i0 + 1*i1] v3
"""


@pytest.mark.parametrize("n", [12, 100, 1500])
@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
def test_edges_and_places_that_are_computed(n, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    text = EDGES.format(n=n)
    assert kernels.normal(text) == text
    for place in (-5, 0, 2, 3, 99):
        for threads in (1, 2, 7):
            out, padded = same(text, X[:64], np.array([place], np.int32), X[100:120], threads=threads)
        rows = padded.reshape(3, n)
        at = 8 * min(max(place, 0), 3)
        assert (rows[:, 2:10].reshape(-1) == X[at:at + 24]).all() and (rows[:, :2] == 0.5).all() and (rows[:, 10:] == 0.5).all()


BOXED = EDGES.format(n=12)


@pytest.mark.parametrize(("old", "new", "line", "says"), [
    ("where 2 <= i1 < 10\nv2", "where 2 <= i1 < 13\nv2", 3, "beyond"),
    ("where 2 <= i1 < 10\nv2", "where 5 <= i1 < 5\nv2", 3, "empty"),
    ("where 2 <= i1 < 10\nv2", "where 2 <= i7 < 10\nv2", 3, "no such dimension"),
    ("where 2 <= i1 < 10\nv2", "where 1 <= i1 < 10\nv2", 3, "before the array"),
    ("where 2 <= i1 < 10\nv2", "where 3 <= i1 < 10\nv2", 5, "not defined"),
    ("if 2 <= i1 < 10", "if 2 <= i1 < 11", 5, "not defined"),
    ("if 1 <= i0 < 3", "if 2 <= i0 < 3", 10, "not defined"),
    ("negate(v4) where 1 <= i0 < 3", "negate(v4)", 7, "not defined"),
    ("8*v0 up to", "8*v2 up to", 3, "not an integer"),
    ("pick(v1, v2)", "pick(v1, v0)", 5, "none of its type"),
    ("pick(v1, v2)", "pick(v1)", 5, 'expected ","'),
    ("store out1[0 + 12*i0 + 1*i1] v3", "store out1[0 + 12*i0 + 1*i1] v1", 13, "not defined in all"),
    ("store out1[0 + 12*i0 + 1*i1]", "store out1[0 + 12*i0 + 1*i1 + 1*v0 up to 2]", 13, "load's place"),
])
def test_wrong_edges_are_refused_with_their_line(old, new, line, says):
    assert old in BOXED
    with pytest.raises(xlac.Error) as caught:
        kernels.normal(BOXED.replace(old, new, 1))
    assert says in str(caught.value) and caught.value.line == line, str(caught.value)


def test_loads_at_the_edge_stay_within_the_array():
    for size, place in ((48, 3), (47, 3)):
        with pytest.raises(xlac.Error) if size < 48 else contextlib.nullcontext():
            kernels.run(BOXED, X[:size], np.array([place], np.int32), X[:10])


@pytest.mark.parametrize("shape", [(1, 3000, 1), (40, 30, 1), (7, 900, 1), (3, 40, 300), (2, 5, 2000), (1, 1, 5), (5, 100, 3), (0, 4, 2)])
@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s16", "f64"])
def test_scans(shape, dtype, back, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    outer, along, inner = shape
    place = f"{along - 1} + -1*i1" if back else "0 + 1*i1"
    text = f"""kernel [{outer},{along},{inner}] from 1 input
v0 = {dtype}[] load in0[0 + {along * inner}*i0 + {inner}*i1 + 1*i2]
v1 = {dtype}[] constant(3)
v2 = {dtype}[] multiply(v0, v1)
v3 = {dtype}[] scan(v2, v1) by add along [{place}]
v4 = {dtype}[] scan(v0, v1) by maximum along [{place}]
v5 = {dtype}[] subtract(v3, v4)
v6 = {dtype}[] scan(v5, v1) by add along [{place}]
store out0[0 + {along * inner}*i0 + {inner}*i1 + 1*i2] v5
store out1[0 + {along * inner}*i0 + {inner}*i1 + 1*i2] v6
"""
    if along > 1 and outer:
        assert kernels.normal(text) == text
    n = max(1, outer * along * inner)
    kind = xlac._core.numpy_dtype(dtype)
    data = (0.1 * np.resize(X, n)).astype(kind) if dtype != "s16" else np.resize(X * 5, n).astype(np.int16)
    for threads in (1, 2, 7):
        same(text, data, threads=threads)


SCAN = """kernel [4,6] from 1 input
v0 = f32[] load in0[0 + 6*i0 + 1*i1]
v1 = f32[] constant(1)
v2 = f32[] scan(v0, v1) by add along [0 + 1*i1]
v3 = f32[] scan(v2, v1) by multiply along [0 + 1*i1]
store out0[0 + 6*i0 + 1*i1] v3
"""


@pytest.mark.parametrize(("old", "new", "line", "says"), [
    ("along [0 + 1*i1]\nv3", "along [0 + 2*i1]\nv3", 4, "one dimension"),
    ("along [0 + 1*i1]\nv3", "along [1 + 1*i1]\nv3", 4, "first place"),
    ("along [0 + 1*i1]\nv3", "along [0 + 1*i0 + 1*i1]\nv3", 4, "one dimension"),
    ("along [0 + 1*i1]\nv3", "along [5 + -1*i1]\nv3", 5, "another way"),
    ("along [0 + 1*i1]\nv3", "along [0 + 1*i0]\nv3", 5, "another way"),
    ("scan(v0, v1)", "scan(v1, v0)", 4, "not the same at every iteration"),
    ("scan(v0, v1)", "scan(v0, v7)", 4, "after they are made"),
    ("by add", "by compare", 4, ""),
    ("by add", "by frobnicate", 4, "frobnicate"),
    ("[4,6]", "[1,6]", None, None),
    ("store out0[0 + 6*i0 + 1*i1] v3", "over [4,(6),1]\nstore out0[0 + 1*i0] v3 by add from v1", 4, "not a scan"),
])
def test_wrong_scans_are_refused_with_their_line(old, new, line, says):
    assert old in SCAN
    if line is None:
        assert (kernels.run(SCAN.replace(old, new), np.ones(6, np.float32)) == [2, 6, 24, 120, 720, 5040]).all()
        return
    with pytest.raises(xlac.Error) as caught:
        kernels.normal(SCAN.replace(old, new, 1))
    assert says in str(caught.value) and caught.value.line == line, str(caught.value)
