"""Routines that move elements: the interpreter's bits for 1, 2 and 7 threads, fused or not."""
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

TYPES = ["f32", "bf16", "s8", "pred", "f64", "c64", "c128", "s4", "u2", "f8e4m3fn"]


def check(text, *args, routine=None, eval_ok=False):
    """The compiled values beside the interpreter's; `routine` must be in the plan."""
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    for fuse in (True, False):
        for threads in (1, 2, 7):
            exe = xlac.compile(module, threads=threads, fuse=fuse)
            assert same_bits(leaves(exe(*args)), want), exe.plan()
            if not fuse and not eval_ok:
                assert " eval " not in exe.plan(), exe.plan()
    if routine:  # unsimplified: an update of everything is not an update
        exe = xlac.compile(module, fuse=False, passes=False)
        assert same_bits(leaves(exe(*args)), want), exe.plan()
        assert f" {routine} " in exe.plan(), exe.plan()


def numbers(rng, dtype, shape):
    t = xlac._core.numpy_dtype(dtype)
    if dtype == "pred":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("c"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(t)
    return rng.integers(*((0, 4) if dtype == "u2" else (-8, 8)), shape).astype(t)


def braces(v):
    return "{" + ",".join(map(str, v)) + "}"


def shape(t, dims):
    return f"{t}[{','.join(map(str, dims))}]"


def program(*lines):
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("dims,order", [((5, 7), (1, 0)), ((33, 70), (1, 0)), ((3, 4, 5), (2, 0, 1)), ((2, 3, 4, 5), (0, 2, 1, 3)),
                                        ((130, 3, 65), (2, 1, 0)), ((4, 0, 3), (1, 2, 0)), ((1, 6, 1), (2, 1, 0)), ((7,), (0,)),
                                        ((2, 1, 3, 2, 2, 3), (5, 3, 0, 1, 4, 2)), ((300, 4), (1, 0)), ((17, 5, 16, 3), (2, 0, 1, 3)),
                                        ((67, 2), (1, 0)), ((2, 67), (1, 0)), ((3, 2, 4, 37, 2), (0, 1, 4, 2, 3))])
def test_transposes(t, dims, order):
    x = numbers(np.random.default_rng(1), t, dims)
    out = [dims[d] for d in order]
    check(program(f"  x = {shape(t, dims)} parameter(0)", f"  ROOT r = {shape(t, out)} transpose(x), dimensions={braces(order)}"), x)


@pytest.mark.parametrize("t", ["f32", "s8", "bf16", "f64"])
@pytest.mark.parametrize("dims", [(1100, 1030), (3, 200000), (200000, 3), (5, 400, 331)])
def test_big_transposes(t, dims):
    x = np.arange(np.prod(dims), dtype=np.int64).astype(np.uint8).astype(xlac._core.numpy_dtype(t)).reshape(dims)
    check(program(f"  x = {shape(t, dims)} parameter(0)",
                  f"  ROOT r = {shape(t, dims[::-1])} transpose(x), dimensions={braces(range(len(dims))[::-1])}"), x, routine="tiles")


@pytest.mark.parametrize("dims,order,steps", [((40, 50), (1, 0), 3), ((4, 5), (1, 0), 1), ((6, 7, 30), (1, 0, 2), 1), ((6, 70, 30, 1), (3, 0, 2, 1), 3)])
def test_rows_that_become_columns_are_turned_in_memory(dims, order, steps):
    x, out = np.random.default_rng(1).normal(size=dims).astype(np.float32), [dims[d] for d in order]
    text = program(f"  x = {shape('f32', dims)} parameter(0)", f"  c = {shape('f32', dims)} cosine(x)",
                   f"  y = {shape('f32', out)} transpose(c), dimensions={braces(order)}", f"  ROOT r = {shape('f32', out)} multiply(y, y)")
    check(text, x, eval_ok=True)
    exe = xlac.compile(xlac.parse(text))
    assert exe.steps["all"] == steps, exe.plan()


CHANNELS = [
    ((40, 50, 3), (2, 0, 1), 1),
    ((3, 40, 50), (1, 2, 0), 1),
    ((2, 30, 41, 4), (0, 3, 1, 2), 1),
    ((4, 2, 31, 30), (1, 2, 3, 0), 1),
    ((700, 2), (1, 0), 1),
    ((3, 40, 50), (2, 1, 0), 3),
    ((40, 50, 3), (2, 1, 0), 3),
    ((40, 50, 5), (2, 0, 1), 3),
    ((5, 900), (1, 0), 3),
]


@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize("t", ["f32", "bf16", "u8"])
@pytest.mark.parametrize("dims,order,steps", CHANNELS)
def test_channels_are_turned_in_the_kernel_that_computes_with_them(dims, order, steps, t, native, monkeypatch):
    """Up to four, and rows of all others stay rows; the vector machine turns in memory."""
    monkeypatch.setenv("XLAC_NATIVE", native)
    x, out = numbers(np.random.default_rng(1), t, dims), [dims[d] for d in order]
    text = program(
        f"  x = {shape(t, dims)} parameter(0)",
        f"  c = {shape(t, dims)} multiply(x, x)",
        f"  y = {shape(t, out)} transpose(c), dimensions={braces(order)}",
        f"  z = {shape(t, out)} reverse(y), dimensions={{0}}",
        f"  ROOT r = {shape(t, out)} multiply(z, z)",
    )
    check(text, x, eval_ok=True)
    exe = xlac.compile(xlac.parse(text))
    assert exe.steps["all"] == (steps if native == "1" else 3), exe.plan()


def test_channels_that_are_put_together_are_turned_in_memory():
    """Channels of points become one dimension with the points, which must have no edges inside."""
    x, y = (np.random.default_rng(i).normal(size=(1, 2000)).astype(np.float32) for i in range(2))
    text = program("  x = f32[1,2000] parameter(0)", "  y = f32[1,2000] parameter(1)", "  p = f32[1,2000] multiply(x, y)", "  s = f32[1,2000] add(x, y)",
                   "  c = f32[3,2000] concatenate(p, s, x), dimensions={0}", "  t = f32[2000,3] transpose(c), dimensions={1,0}",
                   "  ROOT r = f32[2000,3] multiply(t, t)")
    check(text, x, y, eval_ok=True)
    assert "where 0 <= i1" not in str(xlac.compile(xlac.parse(text)).explain("kernels"))


@pytest.mark.parametrize("t", TYPES)
def test_slices_reversals_broadcasts_and_copies(t):
    x = numbers(np.random.default_rng(2), t, (6, 5, 4))
    for line, out in (("slice(x), slice={[1:6:2],[0:5],[3:4]}", (3, 5, 1)), ("slice(x), slice={[0:6],[2:2],[0:4]}", (6, 0, 4)),
                      ("reverse(x), dimensions={0,2}", (6, 5, 4)), ("reverse(x), dimensions={}", (6, 5, 4)), ("copy(x)", (6, 5, 4)),
                      ("broadcast(x), dimensions={0,2,3}", (6, 3, 5, 4)), ("broadcast(x), dimensions={1,2,3}", (2, 6, 5, 4)),
                      ("broadcast(x), dimensions={0,1,2}", (6, 5, 4, 7))):
        check(program(f"  x = {shape(t, x.shape)} parameter(0)", f"  ROOT r = {shape(t, out)} {line}"), x)


def test_bits_of_other_types():
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    check(program("  x = f32[6,4] parameter(0)", "  ROOT r = u32[6,4] bitcast-convert(x)"), x)
    check(program("  x = f32[6,4] parameter(0)", "  ROOT r = u8[6,4,4] bitcast-convert(x)"), x)
    check(program("  x = f32[6,4] parameter(0)", "  y = s8[6,4,4] bitcast-convert(x)", "  ROOT r = s32[6,4] bitcast-convert(y)"), x)
    check(program("  x = f32[6,4] parameter(0)", "  y = s32[6,4] bitcast-convert(x)", "  ROOT r = (f32[6,4], s32[6,4]) tuple(x, y)"), x)


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("dim,sizes", [(0, (2, 1, 3)), (1, (2, 0, 3)), (2, (4, 4, 1)), (1, (1,))])
def test_concatenations(t, dim, sizes):
    rng = np.random.default_rng(3)
    parts = [numbers(rng, t, [n if d == dim else k for d, k in enumerate((3, 5, 4))]) for n in sizes]
    out = [sum(sizes) if d == dim else k for d, k in enumerate((3, 5, 4))]
    lines = [f"  x{i} = {shape(t, p.shape)} parameter({i})" for i, p in enumerate(parts)]
    listed = ", ".join(f"x{i}" for i in range(len(parts)))
    check(program(*lines, f"  ROOT r = {shape(t, out)} concatenate({listed}), dimensions={{{dim}}}"), *parts)


def test_big_concatenations():
    x, y = (np.arange(700 * n, dtype=np.float32).reshape(700, n) for n in (333, 400))
    check(program("  x = f32[700,333] parameter(0)", "  y = f32[700,400] parameter(1)", "  ROOT r = f32[700,733] concatenate(x, y), dimensions={1}"),
          x, y, routine="concat")
    check(program("  x = f32[700,400] parameter(0)", "  ROOT r = f32[2100,400] concatenate(x, x, x), dimensions={0}"), y)


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("padding", ["0_0x0_0x0_0", "1_2x0_3x4_0", "1_2_1x0_0x0_0_2", "-1_0x0_-2x-1_-1", "-1_3_2x2_-3_1x-2_0", "0_0_1x1_1x-4_0",
                                     "-3_0x0_0x0_0", "-9_9x0_0x0_0", "0_0x0_0x1_1"])
def test_pads(t, padding):
    rng = np.random.default_rng(4)
    x = numbers(rng, t, (3, 5, 4))
    sides = [list(map(int, p.split("_"))) + [0] for p in padding.split("x")]
    out = [max(0, n + p[0] + p[1] + max(0, n - 1) * p[2]) for n, p in zip(x.shape, sides)]
    check(program(f"  x = {shape(t, x.shape)} parameter(0)", f"  c = {t}[] parameter(1)", f"  ROOT r = {shape(t, out)} pad(x, c), padding={padding}"),
          x, numbers(rng, t, ()))


@pytest.mark.parametrize("dims,padding,out", [((900, 400), "3_5x7_1", (908, 408)), ((900, 400), "0_0_1x0_0_2", (1799, 1198)), ((0, 400), "600_0x0_1", (600, 401)),
                                              ((200000,), "1_1", (200002,)), ((3, 100000), "1_1x0_0", (5, 100000))])
def test_big_pads(dims, padding, out):
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    check(program(f"  x = {shape('f32', dims)} parameter(0)", "  c = f32[] parameter(1)", f"  ROOT r = {shape('f32', out)} pad(x, c), padding={padding}"),
          x, np.float32(-1), routine="pad")


INDICES = [("s32", (1, -5, 2)), ("s64", (2, 99, -1)), ("u8", (0, 255, 1)), ("u64", (1, 1, 2**64 - 1)), ("s16", (-32768, 32767, 0)), ("u32", (1, 2**32 - 1, 0))]


@pytest.mark.parametrize("index,at", INDICES)
@pytest.mark.parametrize("t", ["f32", "s4", "c128", "bf16"])
@pytest.mark.parametrize("box", [(2, 3, 4), (1, 1, 1), (4, 5, 6), (3, 0, 2), (1, 5, 6)])
def test_dynamic_slices_and_updates(t, index, at, box):
    rng = np.random.default_rng(5)
    x, u = numbers(rng, t, (4, 5, 6)), numbers(rng, t, box)
    starts = [np.array(v).astype(xlac._core.numpy_dtype(index)) for v in at]
    given = [f"  i{k} = {index}[] parameter({k + 2})" for k in range(3)]
    head = [f"  x = {shape(t, x.shape)} parameter(0)", f"  u = {shape(t, box)} parameter(1)", *given]
    check(program(*head, f"  s = {shape(t, box)} dynamic-slice(x, i0, i1, i2), dynamic_slice_sizes={braces(box)}",
                  f"  d = {shape(t, x.shape)} dynamic-update-slice(x, u, i0, i1, i2)", f"  ROOT r = ({shape(t, box)}, {shape(t, x.shape)}) tuple(s, d)"),
          x, u, *starts, routine="update")


def test_starts_in_one_vector():
    x = np.arange(30, dtype=np.int32).reshape(5, 6)
    check(program("  x = s32[5,6] parameter(0)", "  i = s32[2] parameter(1)", "  s = s32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}",
                  "  ROOT r = s32[5,6] dynamic-update-slice(x, s, i)"), x, np.array([9, 1], np.int32))


LOOP = """HloModule m
c { p = (s32[], f32[64,9], f32[3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(70)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[64,9], f32[3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  a = f32[64,9] get-tuple-element(p), index=1
  x = f32[3] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  s = f32[1,3] dynamic-slice(a, i, j), dynamic_slice_sizes={1,3}
  t = f32[3] reshape(s)
  y = f32[3] add(x, t)
  u = f32[1,3] reshape(y)
  w = f32[64,9] dynamic-update-slice(a, u, j, i)
  ROOT r = (s32[], f32[64,9], f32[3]) tuple(j, w, y) }
ENTRY e {
  a = f32[64,9] parameter(0)
  x = f32[3] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[64,9], f32[3]) tuple(z, a, x)
  ROOT w = (s32[], f32[64,9], f32[3]) while(t), condition=c, body=b }"""


def test_a_loop_updates_in_place():
    check(LOOP, np.ones((64, 9), np.float32), np.arange(3, dtype=np.float32), eval_ok=True)
    plan = xlac.compile(xlac.parse(LOOP)).plan()
    assert "update dynamic-update-slice w: argument 1 f32[64,9] <- argument 1" in plan, plan


def test_an_array_updated_by_itself_is_not_written_over():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(program("  x = f32[3,4] parameter(0)", "  i = s32[] parameter(1)", "  y = f32[3,4] negate(x)",
                  "  s = f32[2,4] dynamic-slice(y, i, i), dynamic_slice_sizes={2,4}", "  d = f32[3,4] dynamic-update-slice(y, s, i, i)",
                  "  ROOT r = f32[3,4] dynamic-update-slice(d, d, i, i)"), x, np.int32(1), eval_ok=True)


@pytest.mark.parametrize("t", ["u8", "bf16", "f32", "f64", "c128"])
@pytest.mark.parametrize("dims,order", [((4, 16, 8, 12), (0, 2, 1, 3)), ((2, 7, 5, 3, 4, 6), (0, 1, 3, 2, 4, 5)), ((40, 50, 3), (2, 1, 0)), ((1000, 2), (1, 0))])
def test_kernels_that_only_move(t, dims, order):
    """A reshape and a transposition are one kernel, which is a copy with strides; and every second element of a flat array."""
    rng = np.random.default_rng(11)
    n = int(np.prod(dims))
    turned = ",".join(str(dims[d]) for d in order)
    x = numbers(rng, t, (n,))
    check(f"HloModule m\nENTRY e {{\n  x = {t}[{n}] parameter(0)\n  s = {t}[{','.join(map(str, dims))}] reshape(x)\n"
          f"  ROOT r = {t}[{turned}] transpose(s), dimensions={{{','.join(map(str, order))}}}\n}}", x)
    check(f"HloModule m\nENTRY e {{\n  x = {t}[{n}] parameter(0)\n  s = {t}[{n - 1}] slice(x), slice={{[1:{n}]}}\n  ROOT r = {t}[{n // 2}] slice(s), slice={{[0:{n - 1}:2]}}\n}}", x)
