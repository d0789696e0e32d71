"""Ops that call computations on scalars (sort, scatter, reduce, map, reduce-window, select-and-scatter), with computations
of any kind: compiled they are routines, and give the interpreter's bits for 1, 2 and 7 threads at each level of vector
instructions."""
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

ISAS = ["portable", "avx2", "best"]


def agree(text, *args, routine=True, monkeypatch=None):
    """Compiled at each level and for 1, 2 and 7 threads: the interpreter's bits, and no step by the interpreter."""
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    for isa in ISAS if monkeypatch else ["best"]:
        if monkeypatch:
            monkeypatch.setenv("XLAC_MAX_ISA", isa)
        for passes in (True, False):
            for threads in (1, 2, 7):
                exe = xlac.compile(module, threads=threads, passes=passes)
                exe._check()
                assert not routine or (exe.steps["interpreted"] == 0 and not exe.steps["why_interpreted"]), exe.explain("schedule")
                assert same_bits(leaves(exe(*args)), want), (isa, passes, threads)
    return want


rng = np.random.default_rng(5)
F = rng.standard_normal
NAN = np.float32("nan")

# --- sort ---

COMPARATORS = {
    "abs": "m = f32[] abs(a)\n n = f32[] abs(b)\n ROOT r = pred[] compare(m, n), direction=LT",
    "not_greater": "g = pred[] compare(a, b), direction=GT\n ROOT r = pred[] not(g)",
    "le": "ROOT r = pred[] compare(a, b), direction=LE",
    "two": "e = pred[] compare(a, b), direction=EQ\n k = pred[] compare(c, d), direction=GT\n l = pred[] compare(a, b), direction=LT\n"
           " ROOT r = pred[] select(e, k, l)",
    "product": "m = s32[] multiply(c, c)\n n = s32[] multiply(d, d)\n ROOT r = pred[] compare(m, n), direction=LT",
    "always": "ROOT r = pred[] constant(true)",
    "never": "ROOT r = pred[] constant(false)",
    "plain": "ROOT r = pred[] compare(a, b), direction=LT",
}


def sort_text(body, dims, dim):
    shape = "[" + ",".join(map(str, dims)) + "]"
    return f"""HloModule m
c {{
 a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 {body}
}}
ENTRY e {{
 x = f32{shape} parameter(0)
 y = s32{shape} parameter(1)
 ROOT s = (f32{shape}, s32{shape}) sort(x, y), dimensions={{{dim}}}, to_apply=c
}}"""


@pytest.mark.parametrize("dims, dim", [((1,), 0), ((37,), 0), ((5, 64), 1), ((64, 5), 0), ((3, 100, 2), 1), ((20000,), 0), ((0,), 0), ((4, 0), 1)])
@pytest.mark.parametrize("name", COMPARATORS)
def test_sort(name, dims, dim):
    x = np.round(F(dims) * 4).astype(np.float32)
    agree(sort_text(COMPARATORS[name], dims, dim), x, rng.integers(-9, 9, dims).astype(np.int32))


@pytest.mark.parametrize("n", [50, 5000, 40000])
@pytest.mark.parametrize("name", ["plain", "abs", "le", "two"])
def test_sort_with_nans_is_that_of_the_interpreter(name, n):
    x = np.where(rng.random(n) < 0.1, NAN, F(n)).astype(np.float32)
    agree(sort_text(COMPARATORS[name], (n,), 0), x, rng.integers(-9, 9, n).astype(np.int32))


def test_sort_levels(monkeypatch):
    agree(sort_text(COMPARATORS["two"], (9, 50), 1), np.round(F((9, 50))).astype(np.float32),
          rng.integers(-9, 9, (9, 50)).astype(np.int32), monkeypatch=monkeypatch)


# --- scatter ---

BODIES = {
    "fma": "h = f32[] constant(0.5)\n m = f32[] multiply(a, h)\n ROOT r = f32[] add(m, b)",
    "select": "g = pred[] compare(a, b), direction=LT\n ROOT r = f32[] select(g, b, a)",
    "crossed": "ROOT r = f32[] subtract(b, a)",
    "call": "ROOT r = f32[] call(a, b), to_apply=twice",
    "branch": "g = pred[] compare(a, b), direction=LT\n ROOT r = f32[] conditional(g, a, b), true_computation=half, false_computation=half",
    "constant": "ROOT r = f32[] constant(3)",
    "first": "ROOT r = f32[] copy(a)",
    "mul": "ROOT r = f32[] multiply(a, b)",
    "min": "ROOT r = f32[] minimum(a, b)",
}
HELPERS = """twice {
 p = f32[] parameter(0)
 q = f32[] parameter(1)
 t = f32[] add(q, q)
 ROOT r = f32[] subtract(p, t)
}
half {
 p = f32[] parameter(0)
 h = f32[] constant(0.5)
 ROOT r = f32[] multiply(p, h)
}
"""


def scalar_body(body, t="f32"):
    helpers = HELPERS if "to_apply" in body or "computation=" in body else ""
    return f"HloModule m\n{helpers}b {{\n a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n {body}\n}}\n".replace("f32", t)


SCATTERS = {
    "points": ("f32[100]", "s32[300,1]", "f32[300]", "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
    "rows": ("f32[40,33]", "s32[90,1]", "f32[90,33]", "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
    "windows": ("f32[20,7,20]", "s32[50,2]", "f32[50,3,5,4]", "update_window_dims={1,2,3}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,2}, index_vector_dim=1"),
    "columns": ("f32[8,50]", "s32[60,1]", "f32[60,8]", "update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1"),
    "many": ("f32[5000]", "s32[40000,1]", "f32[40000]", "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
}


def array(t, low=None, high=None):
    dims = [int(x) for x in t[t.index("[") + 1:-1].split(",") if x]
    return rng.integers(low, high, dims).astype(np.int32) if t[0] == "s" else F(dims).astype(np.float32)


@pytest.mark.parametrize("shape", SCATTERS)
@pytest.mark.parametrize("name", BODIES)
def test_scatter(name, shape):
    x, i, u, dims = SCATTERS[shape]
    text = scalar_body(BODIES[name]) + f"ENTRY e {{\n x = {x} parameter(0)\n i = {i} parameter(1)\n u = {u} parameter(2)\n ROOT s = {x} scatter(x, i, u), {dims}, to_apply=b\n}}"
    agree(text, array(x), array(i, -2, 104 if shape != "many" else 5001), array(u))


@pytest.mark.parametrize("t, dtype", [("bf16", "bfloat16"), ("f16", np.float16), ("s8", np.int8), ("c64", np.complex64), ("f64", np.float64), ("u64", np.uint64)])
def test_scatter_types(t, dtype, monkeypatch):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x, i, u, dims = SCATTERS["rows"]
    text = scalar_body("s = f32[] add(a, a)\n ROOT r = f32[] subtract(s, b)", t) + (
        f"ENTRY e {{\n x = {x} parameter(0)\n i = {i} parameter(1)\n u = {u} parameter(2)\n ROOT s = {x} scatter(x, i, u), {dims}, to_apply=b\n}}").replace("f32", t)
    agree(text, (array(x) * 9).astype(dtype), array(i, 0, 40), (array(u) * 9).astype(dtype), monkeypatch=monkeypatch)


@pytest.mark.parametrize("shape", SCATTERS)
def test_scatter_of_several(shape):
    x, i, u, dims = SCATTERS[shape]
    y, v = x.replace("f32", "s8"), u.replace("f32", "s8")
    text = f"""HloModule m
b {{
 a = f32[] parameter(0)
 k = s8[] parameter(1)
 b = f32[] parameter(2)
 l = s8[] parameter(3)
 g = pred[] compare(b, a), direction=GT
 s = f32[] select(g, b, a)
 m = s8[] select(g, l, k)
 ROOT r = (f32[], s8[]) tuple(s, m)
}}
ENTRY e {{
 x = {x} parameter(0)
 y = {y} parameter(1)
 i = {i} parameter(2)
 u = {u} parameter(3)
 v = {v} parameter(4)
 ROOT s = ({x}, {y}) scatter(x, y, i, u, v), {dims}, to_apply=b
}}"""
    agree(text, array(x), (array(y.replace("s8", "f32")) * 50).astype(np.int8), array(i, -2, 104 if shape != "many" else 5001), array(u),
          (array(v.replace("s8", "f32")) * 50).astype(np.int8))


# --- reduce ---

WELFORD = """HloModule m
b {
 n = f32[] parameter(0)
 m = f32[] parameter(1)
 s = f32[] parameter(2)
 k = f32[] parameter(3)
 x = f32[] parameter(4)
 t = f32[] parameter(5)
 c = f32[] add(n, k)
 d = f32[] subtract(x, m)
 q = f32[] multiply(d, k)
 w = f32[] divide(q, c)
 mm = f32[] add(m, w)
 e = f32[] subtract(x, mm)
 f = f32[] multiply(d, e)
 ss = f32[] add(s, f)
 st = f32[] add(ss, t)
 ROOT r = (f32[], f32[], f32[]) tuple(c, mm, st)
}
ENTRY e {
 o = f32[SHAPE] parameter(0)
 x = f32[SHAPE] parameter(1)
 z = f32[SHAPE] parameter(2)
 i = f32[] constant(0)
 ROOT r = (f32[OUT], f32[OUT], f32[OUT]) reduce(o, x, z, i, i, i), dimensions={DIMS}, to_apply=b
}"""
LAST = """HloModule m
b {
 a = f32[] parameter(0)
 k = s64[] parameter(1)
 b = f32[] parameter(2)
 l = s64[] parameter(3)
 g = pred[] compare(b, a), direction=GE
 s = f32[] select(g, b, a)
 m = s64[] select(g, l, k)
 ROOT r = (f32[], s64[]) tuple(s, m)
}
ENTRY e {
 x = f32[SHAPE] parameter(0)
 y = s64[SHAPE] parameter(1)
 i = f32[] constant(-inf)
 j = s64[] constant(-1)
 ROOT r = (f32[OUT], s64[OUT]) reduce(x, y, i, j), dimensions={DIMS}, to_apply=b
}"""
SHAPES = [((17,), (0,)), ((3, 40), (1,)), ((40, 3), (0,)), ((300, 40), (1,)), ((40, 300), (0,)), ((4, 5, 6, 7), (0, 2)), ((4, 5, 6, 7), (1, 3)),
          ((2, 3), ()), ((0, 4), (0,)), ((4, 0), (0,)), ((1, 20000), (1,)), ((), ())]


def reduction(text, shape, dims):
    out = [n for d, n in enumerate(shape) if d not in dims]
    for word, v in ("SHAPE", shape), ("OUT", out), ("DIMS", dims):
        text = text.replace(word, ",".join(map(str, v)))
    return text


@pytest.mark.parametrize("shape, dims", SHAPES)
def test_reduce_of_several(shape, dims):
    x = np.round(F(shape) * 3).astype(np.float32)
    agree(reduction(LAST, shape, dims), x, np.arange(x.size).reshape(shape))
    agree(reduction(WELFORD, shape, dims), np.ones(shape, np.float32), x, np.zeros(shape, np.float32))


def test_reduce_levels(monkeypatch):
    agree(reduction(WELFORD, (70, 30), (1,)), np.ones((70, 30), np.float32), F((70, 30)).astype(np.float32), np.zeros((70, 30), np.float32),
          monkeypatch=monkeypatch)


SWAP = """HloModule m
b {
 a = f32[] parameter(0)
 k = f32[] parameter(1)
 b = f32[] parameter(2)
 l = f32[] parameter(3)
 ROOT r = (f32[], f32[]) tuple(k, b)
}
ENTRY e {
 x = f32[SHAPE] parameter(0)
 y = f32[SHAPE] parameter(1)
 i = f32[] constant(7)
 ROOT r = (f32[OUT], f32[OUT]) reduce(x, y, i, i), dimensions={DIMS}, to_apply=b
}"""


@pytest.mark.parametrize("shape, dims", SHAPES)
@pytest.mark.parametrize("name", ["fma", "crossed", "call", "first", "branch"])
def test_reduce_by_any_computation(name, shape, dims):
    x = F(shape).astype(np.float32)
    tail = "ENTRY e {\n x = f32[SHAPE] parameter(0)\n i = f32[] constant(0.25)\n ROOT r = f32[OUT] reduce(x, i), dimensions={DIMS}, to_apply=b\n}"
    agree(scalar_body(BODIES[name]) + reduction(tail, shape, dims), x)
    agree(reduction(SWAP, shape, dims), x, F(shape).astype(np.float32))


# --- map ---

@pytest.mark.parametrize("shape", [(), (5,), (100, 333), (0,)])
@pytest.mark.parametrize("name", BODIES)
def test_map(name, shape):
    s = "[" + ",".join(map(str, shape)) + "]"
    dims = ",".join(map(str, range(len(shape))))
    text = scalar_body(BODIES[name]) + f"ENTRY e {{\n x = f32{s} parameter(0)\n y = f32{s} parameter(1)\n ROOT m = f32{s} map(x, y), dimensions={{{dims}}}, to_apply=b\n}}"
    agree(text, F(shape).astype(np.float32), F(shape).astype(np.float32))


# --- reduce-window ---

WINDOWS = {
    "overlap": ((9, 30), (5, 14), "size=3x4 stride=2x2 pad=1_1x0_0"),
    "dilated": ((8, 20), (6, 20), "size=2x3 stride=1x1 pad=0_0x2_2 rhs_dilate=2x2"),
    "holes": ((5, 7), (9, 11), "size=2x3 stride=1x1 pad=1_0x0_0 lhs_dilate=2x2"),
    "many": ((3, 40, 50, 4), (3, 20, 25, 4), "size=1x2x3x1 stride=1x2x2x1 pad=0_0x0_0x1_1x0_0"),
    "all": ((6, 7), (1, 1), "size=6x7"),
    "none": ((0, 4), (0, 2), "size=1x2 stride=1x2"),
}


def window_text(head, call, name, t="f32"):
    shape, out, window = WINDOWS[name]
    return head + call.replace("[IN]", str(list(shape))).replace("[OUT]", str(list(out))).replace("WINDOW", window), shape


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", ["fma", "select", "crossed", "first", "constant"])
def test_reduce_window(name, window):
    text, shape = window_text(scalar_body(BODIES[name]), "ENTRY e {\n x = f32[IN] parameter(0)\n i = f32[] constant(0.25)\n"
                              " ROOT r = f32[OUT] reduce-window(x, i), window={WINDOW}, to_apply=b\n}", window)
    agree(text, F(shape).astype(np.float32))


@pytest.mark.parametrize("window", WINDOWS)
def test_reduce_window_of_several(window, monkeypatch):
    head = LAST[:LAST.index("ENTRY")]
    text, shape = window_text(head, "ENTRY e {\n x = f32[IN] parameter(0)\n y = s64[IN] parameter(1)\n i = f32[] constant(-inf)\n j = s64[] constant(-1)\n"
                              " ROOT r = (f32[OUT], s64[OUT]) reduce-window(x, y, i, j), window={WINDOW}, to_apply=b\n}", window)
    x = np.round(F(shape) * 2).astype(np.float32)
    agree(text, x, np.arange(x.size).reshape(shape), monkeypatch=monkeypatch if window == "holes" else None)


# --- select-and-scatter ---

SELECT = """HloModule m
s {
 p = T[] parameter(0)
 q = T[] parameter(1)
 ROOT r = pred[] compare(p, q), direction=DIRECTION
}
b {
 a = T[] parameter(0)
 b = T[] parameter(1)
 BODY
}
ENTRY e {
 x = T[IN] parameter(0)
 y = T[OUT] parameter(1)
 i = T[] constant(0)
 ROOT r = T[IN] select-and-scatter(x, y, i), window={WINDOW}, select=s, scatter=b
}"""
ADD = "ROOT r = T[] add(a, b)"


@pytest.mark.parametrize("window", ["overlap", "many", "all", "none"])
@pytest.mark.parametrize("t, direction, body", [
    ("f32", "GE", "m = T[] multiply(a, b)\n ROOT r = T[] subtract(b, m)"), ("f32", "NE", ADD), ("f32", "GT", "ROOT r = T[] copy(b)"),
    ("bf16", "GE", ADD), ("f16", "LT", ADD), ("bf16", "EQ", ADD), ("s8", "GE", ADD), ("f64", "LE", "ROOT r = T[] maximum(a, b)"), ("u16", "GT", ADD)])
def test_select_and_scatter(t, direction, body, window, monkeypatch):
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "s8": np.int8, "u16": np.uint16}.get(t)
    dtype = dtype or pytest.importorskip("ml_dtypes").bfloat16
    text, shape = window_text("", SELECT.replace("BODY", body).replace("T[", t + "[").replace("DIRECTION", direction), window)
    out = WINDOWS[window][1]
    x = np.abs(np.round(F(shape) * 3)) if t == "u16" else np.round(F(shape) * 3)
    agree(text, x.astype(dtype), np.abs(F(out) * 9).astype(dtype), monkeypatch=monkeypatch if window == "overlap" else None)


def test_calls_that_double_are_not_followed_for_ever():
    names = ["call0 {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] copy(a)\n}"]
    for k in range(1, 30):
        names.append(f"call{k} {{\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] call(a, b), to_apply=call{k - 1}\n"
                     f" ROOT r = f32[] call(c, b), to_apply=call{k - 1}\n}}")
    tail = "ENTRY e {\n x = f32[8] parameter(0)\n i = f32[] constant(0)\n ROOT r = f32[] reduce(x, i), dimensions={0}, to_apply=call29\n}"
    xlac.compile(xlac.parse("HloModule m\n" + "\n".join(names) + "\n" + tail), passes=False)


def test_windows_of_more_results_than_there_is_memory_for_compile_at_once():
    xlac.compile(xlac.parse(scalar_body(BODIES["fma"]) + "ENTRY e {\n x = f32[1099511627776] parameter(0)\n i = f32[] constant(0)\n"
                            " r = f32[1099511627775] reduce-window(x, i), window={size=2}, to_apply=b\n ROOT s = f32[1] slice(r), slice={[0:1]}\n}"))
