"""Programs on device="cuda" give what the interpreter gives: movement, integers and elementwise floats to the bit, sums nearly."""
import os

import numpy as np
import pytest

import gpu
import xlac

ADD = "a { x = T parameter(0)\n y = T parameter(1)\n ROOT z = T add(x, y) }\n"


@pytest.fixture(scope="module", autouse=True)
def on_cuda():
    gpu.use()


def reducer(op, t):
    return f"r_{op} {{ x = {t}[] parameter(0)\n y = {t}[] parameter(1)\n ROOT z = {t}[] {op}(x, y) }}\n"


def program(*lines, computations=""):
    return "HloModule m\n" + computations + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in ("f32", "f64"):
        return rng.uniform(-3, 3, shape).astype({"f32": np.float32, "f64": np.float64}[dtype])
    if dtype == "c64":
        return (rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(np.complex64)
    if dtype == "pred":
        return rng.random(shape) < 0.5
    kind = np.dtype({"s": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)


def leaves(result):
    return [np.asarray(x) for x in (result if isinstance(result, (tuple, list)) else [result])]


def has_bits(a, b):
    """Of the same bits; a GPU's NaNs have bits of their own, and its functions of f64 are CUDA's (docs/cuda.md)."""
    if a.tobytes() == b.tobytes() or a.dtype.kind not in "fcV":
        return a.tobytes() == b.tobytes()
    if os.environ.get("XLAC_CUDA_ON_GPU") and a.dtype in (np.float64, np.complex128):
        return np.allclose(a, b, rtol=1e-15, atol=0, equal_nan=True)
    a, b = (x.astype(np.float32) if x.dtype.kind == "V" else x for x in (a, b))
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a.real)[a == a], np.signbit(b.real)[a == a])


def same(text, *args, tolerance=0.0):
    exe = xlac.compile(text, device="cuda")
    assert exe.device.startswith("cuda:")
    got, want = leaves(exe(*args)), leaves(xlac.interpret(text, *args))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype == b.dtype
        if tolerance:
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        else:
            assert has_bits(a, b)
    return exe


ELEMENTWISE = {
    "unary": ["abs", "negate", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "sqrt", "rsqrt", "sine", "cosine", "tan",
              "floor", "ceil", "round-nearest-even", "round-nearest-afz", "sign", "erf", "cbrt"],
    "binary": ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "remainder", "atan2"]}


@pytest.mark.parametrize("t", ["f32", "bf16", "f16", "f64"])
def test_functions_of_floats_have_the_bits_of_the_interpreter(t):
    lines, names = [f"x = f32[300] parameter(0)", f"y = f32[300] parameter(1)", f"a = {t}[300] convert(x)", f"b = {t}[300] convert(y)"], []
    for op in ELEMENTWISE["unary"]:
        lines.append(f"u.{op} = {t}[300] {op}(a)")
        names.append(f"u.{op}")
    for op in ELEMENTWISE["binary"]:
        lines.append(f"v.{op} = {t}[300] {op}(a, b)")
        names.append(f"v.{op}")
    if t in ("bf16", "f16"):
        lines += [f"w.{n} = f32[300] convert({n})" for n in names]
        names, t = [f"w.{n}" for n in names], "f32"
    lines.append(f"ROOT r = ({', '.join([t + '[300]'] * len(names))}) tuple({', '.join(names)})")
    exe = same(program(*lines), values(300, "f32"), values(300, "f32", 1))
    assert "on the host" not in str(exe.explain("fusion"))


@pytest.mark.parametrize("t", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_integers(t):
    lines, names = [f"x = {t}[500] parameter(0)", f"y = {t}[500] parameter(1)"], []
    for op in ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
               "shift-right-logical", "shift-right-arithmetic", "power"]:
        lines.append(f"b.{op} = {t}[500] {op}(x, y)")
        names.append(f"b.{op}")
    for op in ["not", "popcnt", "count-leading-zeros", "negate"]:
        lines.append(f"u.{op} = {t}[500] {op}(x)")
        names.append(f"u.{op}")
    lines.append(f"ROOT r = ({', '.join([t + '[500]'] * len(names))}) tuple({', '.join(names)})")
    same(program(*lines), values(500, t), values(500, t, 1))


TYPES = ["pred", "s2", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64"]


@pytest.mark.parametrize("source", ["s32", "u64", "f32", "f64", "s64"])
def test_conversions_between_all_types(source):
    lines, names = [f"x = {source}[400] parameter(0)"], []
    for t in TYPES:
        back = "f64" if t[0] in "fb" else "s64" if t != "u64" else t
        lines += [f"a.{t} = {t}[400] convert(x)", f"b.{t} = {back}[400] convert(a.{t})"]
        names.append((f"b.{t}", back))
    lines.append(f"ROOT r = ({', '.join(b + '[400]' for _, b in names)}) tuple({', '.join(n for n, _ in names)})")
    x = values(400, source)
    if source in ("f32", "f64"):
        x[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-42]
    same(program(*lines), x)


def test_comparisons_and_selections():
    lines, names = ["x = f32[64] parameter(0)", "y = f32[64] parameter(1)"], []
    for d in ["EQ", "NE", "LT", "LE", "GT", "GE"]:
        lines += [f"p.{d} = pred[64] compare(x, y), direction={d}", f"q.{d} = pred[64] compare(x, y), direction={d}, type=TOTALORDER",
                  f"s.{d} = f32[64] select(p.{d}, x, y)"]
        names += [(f"p.{d}", "pred"), (f"q.{d}", "pred"), (f"s.{d}", "f32")]
    lines.append(f"ROOT r = ({', '.join(t + '[64]' for _, t in names)}) tuple({', '.join(n for n, _ in names)})")
    x, y = values(64, "f32"), values(64, "f32", 1)
    x[:6], y[:6] = [np.nan, -np.nan, 0.0, -0.0, np.inf, 1], [np.nan, 1, -0.0, 0.0, np.inf, np.nan]
    same(program(*lines), x, y)


@pytest.mark.parametrize("line", [
    "ROOT r = f32[5,7,6] broadcast(x), dimensions={0,2}", "ROOT r = f32[6,5] transpose(x), dimensions={1,0}", "ROOT r = f32[5,6] reverse(x), dimensions={0,1}",
    "ROOT r = f32[2,3] slice(x), slice={[1:5:2], [0:6:2]}", "ROOT r = f32[30] reshape(x)", "z = f32[] constant(7)\nROOT r = f32[9,12] pad(x, z), padding=1_3x2_-1_1",
    "ROOT r = f32[10,6] concatenate(x, x), dimensions={0}", "i = f32[5,6] iota(), iota_dimension=1\nROOT r = f32[5,6] add(x, i)"])
def test_movement(line):
    same(program("x = f32[5,6] parameter(0)", line), values((5, 6), "f32"))


@pytest.mark.parametrize("shape, dims", [((8,), (0,)), ((300, 7), (1,)), ((7, 300), (1,)), ((7, 300), (0,)), ((300, 7), (0,)), ((5, 200, 6), (1,)),
                                         ((5, 200, 6), (0, 2)), ((3, 5000), (1,)), ((5000, 3), (0,)), ((40000,), (0,)), ((4, 0), (1,))])
@pytest.mark.parametrize("op, t", [("add", "f32"), ("maximum", "s32"), ("multiply", "u8"), ("add", "bf16")])
def test_reductions(shape, dims, op, t):
    left = [n for d, n in enumerate(shape) if d not in dims]
    source, dims_text = "f32" if t == "bf16" else t, ",".join(map(str, dims))
    shape_text, left_text = ",".join(map(str, shape)), ",".join(map(str, left))
    lines = [f"x = {source}[{shape_text}] parameter(0)", f"c = {t}[{shape_text}] convert(x)", f"z = {t}[] constant(1)",
             f"s = {t}[{left_text}] reduce(c, z), dimensions={{{dims_text}}}, to_apply=r_{op}",
             f"ROOT r = {source}[{left_text}] convert(s)"]
    same(program(*lines, computations=reducer(op, t)), values(shape, source), tolerance=2e-2 if t == "bf16" else 1e-4 if t == "f32" else 0)


def test_a_softmax_of_rows():
    lines = ["x = f32[9,257] parameter(0)", "low = f32[] constant(-inf)", "zero = f32[] constant(0)",
             "m = f32[9] reduce(x, low), dimensions={1}, to_apply=r_maximum", "mb = f32[9,257] broadcast(m), dimensions={0}",
             "d = f32[9,257] subtract(x, mb)", "e = f32[9,257] exponential(d)", "s = f32[9] reduce(e, zero), dimensions={1}, to_apply=r_add",
             "sb = f32[9,257] broadcast(s), dimensions={0}", "ROOT r = f32[9,257] divide(e, sb)"]
    same(program(*lines, computations=reducer("maximum", "f32") + reducer("add", "f32")), values((9, 257), "f32"), tolerance=1e-5)


def test_a_loop_turns_as_often_as_its_condition_says():
    loop = ("c { s = (s32[], f32[4,5]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(7)\n ROOT p = pred[] compare(i, n), direction=LT }\n"
            "b { s = (s32[], f32[4,5]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n one = s32[] constant(1)\n j = s32[] add(i, one)\n"
            " x = f32[4,5] get-tuple-element(s), index=1\n t = f32[5,4] transpose(x), dimensions={1,0}\n u = f32[4,5] reshape(t)\n y = f32[4,5] add(u, x)\n"
            " ROOT r = (s32[], f32[4,5]) tuple(j, y) }\n")
    for n in (7, 0):
        lines = ["x = f32[4,5] parameter(0)", f"i = s32[] constant({7 - n})", "s = (s32[], f32[4,5]) tuple(i, x)",
                 "ROOT w = (s32[], f32[4,5]) while(s), condition=c, body=b"]
        same(program(*lines, computations=loop), values((4, 5), "f32"))


@pytest.mark.parametrize("selector", [0, 1, 2, -1, 9])
def test_branches(selector):
    branches = "".join(f"f{i} {{ x = f32[6] parameter(0)\n k = f32[] constant({i})\n b = f32[6] broadcast(k), dimensions={{}}\n ROOT y = f32[6] add(x, b) }}\n" for i in range(3))
    lines = ["i = s32[] parameter(0)", "x = f32[6] parameter(1)", "ROOT r = f32[6] conditional(i, x, x, x), branch_computations={f0, f1, f2}"]
    same(program(*lines, computations=branches), np.int32(selector), values(6, "f32"))


def test_what_has_no_kernel_is_computed_on_the_host():
    less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
    lines = ["x = f32[40,30] parameter(0)", "y = f32[30,20] parameter(1)", "d = f32[40,20] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
             "ROOT s = f32[40,20] sort(d), dimensions={0}, to_apply=less"]
    exe = same(program(*lines, computations=less), values((40, 30), "f32"), values((30, 20), "f32", 1), tolerance=1e-5)
    assert "on the host" in str(exe.explain("fusion"))


def test_sums_so_far():
    lines = ["x = f32[6,40] parameter(0)", "z = f32[] constant(0)", "y = f32[6,40] exponential(x)",
             "s = f32[6,40] reduce-window(y, z), window={size=1x40 pad=0_0x39_0}, to_apply=r_add", "ROOT r = f32[6,40] negate(s)"]
    same(program(*lines, computations=reducer("add", "f32")), values((6, 40), "f32"), tolerance=1e-5)


def test_places_that_are_computed():
    lines = ["x = f32[10,8] parameter(0)", "i = s32[12] parameter(1)", "k = s32[] parameter(2)", "z = s32[] constant(0)",
             "g = f32[12] gather(x, j), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}",
             "d = f32[4,8] dynamic-slice(x, k, z), dynamic_slice_sizes={4,8}", "e = f32[4,8] exponential(d)", "h = f32[12] negate(g)",
             "ROOT r = (f32[12], f32[4,8]) tuple(h, e)"]
    lines.insert(4, "j1 = s32[12,1] reshape(i)\nj = s32[12,2] concatenate(j1, j1), dimensions={1}")
    same(program(*lines), values((10, 8), "f32"), np.array([-3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99], np.int32), np.int32(8))


def test_complex_numbers():
    lines = ["x = c64[30] parameter(0)", "y = c64[30] parameter(1)", "m = c64[30] multiply(x, y)", "a = f32[30] abs(m)", "re = f32[30] real(x)",
             "im = f32[30] imag(y)", "z = c64[30] complex(re, im)", "s = c64[30] subtract(z, x)", "ROOT r = (c64[30], f32[30], c64[30]) tuple(m, a, s)"]
    same(program(*lines), values(30, "c64"), values(30, "c64", 1))


def test_no_elements_are_no_work():
    same(program("x = f32[0,3] parameter(0)", "ROOT y = f32[0,3] exponential(x)"), np.zeros((0, 3), np.float32))


def host_free(text, *args, tolerance=0.0):
    exe = same(text, *args, tolerance=tolerance)
    assert "on the host" not in str(exe.explain("fusion"))


@pytest.mark.parametrize("t", ["f32", "s8", "c64", "pred"])
@pytest.mark.parametrize("line", [
    "ROOT r = T[6,7,5] transpose(x), dimensions={1,2,0}", "ROOT r = T[5,6,7] reverse(x), dimensions={0,2}", "ROOT r = T[2,3,7] slice(x), slice={[1:5:2], [0:6:2], [0:7]}",
    "ROOT r = T[9,12,7] pad(x, z), padding=1_3x2_-1_1x0_0", "ROOT r = T[5,13,7] concatenate(x, y, x), dimensions={1}",
    "ROOT r = T[4,6,2] dynamic-slice(x, i, k, i), dynamic_slice_sizes={4,6,2}", "ROOT r = T[5,6,7] dynamic-update-slice(x, y, i, k, k)",
    "ROOT r = T[3,2,7] gather(x, j), offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,1,7}"])
def test_moves_by_themselves_are_kernels(line, t):
    lines = ["x = T[5,6,7] parameter(0)", "y = T[5,1,7] slice(x), slice={[0:5], [2:3], [0:7]}", "i = s32[] parameter(1)", "k = s32[] parameter(2)",
             "j = s32[3,2] parameter(3)", "z = T[] parameter(4)", line]
    host_free(program(*lines).replace("T[", t + "["), values((5, 6, 7), t), np.int32(2), np.int32(-1), np.array([[5, 0], [1, 2], [9, 9]], np.int32),
              values((), t))


@pytest.mark.parametrize("a, b, lhs, rhs, result", [
    ((70, 33), (33, 90), "lhs_contracting_dims={1}", "rhs_contracting_dims={0}", (70, 90)), ((33, 70), (90, 33), "lhs_contracting_dims={0}", "rhs_contracting_dims={1}", (70, 90)),
    ((3, 5, 20), (3, 20, 4), "lhs_batch_dims={0}, lhs_contracting_dims={2}", "rhs_batch_dims={0}, rhs_contracting_dims={1}", (3, 5, 4)),
    ((4, 3, 5, 6), (6, 3, 7), "lhs_contracting_dims={1,3}", "rhs_contracting_dims={1,0}", (4, 5, 7)), ((50,), (50,), "lhs_contracting_dims={0}", "rhs_contracting_dims={0}", ())])
@pytest.mark.parametrize("t, out", [("f32", "f32"), ("s8", "s32"), ("bf16", "f32"), ("f64", "f64")])
def test_products_are_kernels(a, b, lhs, rhs, result, t, out):
    source = "f32" if t == "bf16" else t
    text = lambda d: ",".join(map(str, d))
    lines = [f"p = {source}[{text(a)}] parameter(0)", f"q = {source}[{text(b)}] parameter(1)", f"x = {t}[{text(a)}] convert(p)", f"y = {t}[{text(b)}] convert(q)",
             f"ROOT r = {out}[{text(result)}] dot(x, y), {lhs}, {rhs}"]
    host_free(program(*lines), values(a, source), values(b, source, 1), tolerance=1e-4 if out[0] == "f" else 0)


@pytest.mark.parametrize("dims, left", [("0,2", (6,)), ("1", (5, 7)), ("0,1,2", ())])
def test_reductions_whose_dimensions_lie_apart_are_kernels(dims, left):
    left = ",".join(map(str, left))
    lines = ["x = s32[5,6,7] parameter(0)", "z = s32[] constant(3)", f"ROOT r = s32[{left}] reduce(x, z), dimensions={{{dims}}}, to_apply=r_add"]
    host_free(program(*lines, computations=reducer("add", "s32")), values((5, 6, 7), "s32"))


def test_the_place_of_the_largest_is_found_by_a_kernel():
    body = ("b { a = f32[] parameter(0)\n i = s32[] parameter(1)\n c = f32[] parameter(2)\n j = s32[] parameter(3)\n g = pred[] compare(a, c), direction=GE\n"
            " m = f32[] select(g, a, c)\n k = s32[] select(g, i, j)\n ROOT t = (f32[], s32[]) tuple(m, k) }\n")
    lines = ["x = f32[7,9] parameter(0)", "i = s32[7,9] parameter(1)", "low = f32[] constant(-inf)", "z = s32[] constant(0)",
             "ROOT r = (f32[7], s32[7]) reduce(x, i, low, z), dimensions={1}, to_apply=b"]
    host_free(program(*lines, computations=body), values((7, 9), "f32"), values((7, 9), "s32"))


@pytest.mark.parametrize("window, shape", [("size=1x3x3 pad=0_0x1_1x2_0", (2, 9, 8)), ("size=1x2x3 stride=1x2x3", (2, 4, 2)),
                                           ("size=2x3x1 rhs_dilate=1x2x1 lhs_dilate=1x2x1", (1, 13, 8))])
@pytest.mark.parametrize("op, t", [("add", "s32"), ("maximum", "f32")])
def test_windows_are_kernels(window, shape, op, t):
    shape = ",".join(map(str, shape))
    lines = [f"x = {t}[2,9,8] parameter(0)", f"z = {t}[] constant(3)", f"ROOT r = {t}[{shape}] reduce-window(x, z), window={{{window}}}, to_apply=r_{op}"]
    host_free(program(*lines, computations=reducer(op, t)), values((2, 9, 8), t))


@pytest.mark.parametrize("kernel, more, result", [
    ((3, 3, 4, 6), "window={size=3x3}", (2, 6, 5, 6)), ((3, 2, 4, 6), "window={size=3x2 stride=2x1 pad=1_1x0_2 rhs_dilate=2x1 rhs_reversal=1x0}", (2, 3, 8, 6)),
    ((2, 2, 1, 8), "window={size=2x2 lhs_dilate=2x2}, feature_group_count=4", (2, 14, 12, 8)), ((3, 3, 4, 6), "window={size=3x3}, batch_group_count=2", (1, 6, 5, 6))])
@pytest.mark.parametrize("t", ["f32", "bf16", "s32"])
def test_convolutions_are_kernels(kernel, more, result, t):
    source = "f32" if t == "bf16" else t
    text = lambda d: ",".join(map(str, d))
    lines = [f"p = {source}[2,8,7,4] parameter(0)", f"q = {source}[{text(kernel)}] parameter(1)", f"x = {t}[2,8,7,4] convert(p)", f"y = {t}[{text(kernel)}] convert(q)",
             f"c = {t}[{text(result)}] convolution(x, y), {more}, dim_labels=b01f_01io->b01f", f"ROOT r = {source}[{text(result)}] convert(c)"]
    host_free(program(*lines), values((2, 8, 7, 4), source), values(kernel, source, 1), tolerance=0 if t == "s32" else 5e-2 if t == "bf16" else 1e-4)
