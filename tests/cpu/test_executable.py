"""Compiled programs: fusion, loops in place, calls, arguments and errors."""
import gc
import threading

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits, same_numbers

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def text(body, helpers=""):
    return f"HloModule m\n{helpers}\nENTRY e {{\n{body}\n}}"


def test_a_chain_is_one_kernel(both):
    got, want, exe = both(text("""
  x = f32[3,4] parameter(0)
  b = f32[4] parameter(1)
  c = f32[] constant(2)
  bb = f32[3,4] broadcast(b), dimensions={1}
  cc = f32[3,4] broadcast(c), dimensions={}
  s = f32[3,4] add(x, bb)
  t = f32[3,4] tanh(s)
  ROOT r = f32[3,4] multiply(t, cc)"""), X, X[0])
    assert same_bits(got, want)
    assert exe.steps["all"] == exe.steps["kernels"] == 1
    assert exe.memory["frame_bytes"] >= exe.memory["peak_bytes"] == 0


MOVES = [("slice", "f32[2,2]", "slice(y), slice={[1:3],[0:4:2]}"), ("reverse", "f32[3,4]", "reverse(y), dimensions={0,1}"),
         ("transpose", "f32[4,3]", "transpose(y), dimensions={1,0}"), ("broadcast", "f32[3,2,4]", "broadcast(y), dimensions={0,2}")]


@pytest.mark.parametrize("name,shape,move", MOVES)
@pytest.mark.parametrize("after", ["negate", "copy"])
def test_moves_of_indexes_inside_a_kernel(both, name, shape, move, after):
    got, want, exe = both(text(f"""
  x = f32[3,4] parameter(0)
  y = f32[3,4] cosine(x)
  z = {shape} {move}
  ROOT r = {shape} {after}(z)"""), X)
    assert same_bits(got, want)
    if after == "negate" and name != "broadcast":
        assert exe.steps["all"] == 1, exe.plan()


@pytest.mark.parametrize("a,b,dims", [((3, 4), (4, 5), ([], [1], [], [0])), ((4, 3), (4, 5), ([], [0], [], [0])), ((3, 4), (5, 4), ([], [1], [], [1])),
                                      ((2, 3, 4), (2, 4, 5), ([0], [2], [0], [1])), ((2, 4, 3), (2, 5, 4), ([0], [1], [0], [2])),
                                      ((3, 2, 4), (4, 2, 5), ([1], [2], [1], [0])), ((4,), (4,), ([], [0], [], [0])), ((6, 4), (4,), ([], [1], [], [0])),
                                      ((2, 3, 4, 5), (4, 5, 6), ([], [2, 3], [], [0, 1])), ((2, 3, 4, 5), (5, 4, 6), ([], [2, 3], [], [1, 0])),
                                      ((0, 4), (4, 5), ([], [1], [], [0])), ((3, 0), (0, 5), ([], [1], [], [0])), ((300, 200), (200, 150), ([], [1], [], [0]))])
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "bf16"])
def test_dots(both, a, b, dims, dtype):
    rng = np.random.default_rng(0)
    lb, lc, rb, rc = dims
    free = [d for i, d in enumerate(a) if i not in lb + lc], [d for i, d in enumerate(b) if i not in rb + rc]
    out = [a[i] for i in lb] + free[0] + free[1]
    shape = lambda s: f"{dtype}[{','.join(map(str, s))}]"
    numbers = [rng.integers(-8, 9, s).astype(xlac._core.numpy_dtype(dtype)) for s in (a, b)]  # products and sums are exact
    listed = lambda name, v: f", {name}={{{','.join(map(str, v))}}}"
    attributes = listed("lhs_contracting_dims", lc) + listed("rhs_contracting_dims", rc) + (listed("lhs_batch_dims", lb) + listed("rhs_batch_dims", rb) if lb else "")
    got, want, exe = both(text(f"  x = {shape(a)} parameter(0)\n  y = {shape(b)} parameter(1)\n  ROOT r = {shape(out)} dot(x, y){attributes}"), *numbers)
    assert same_numbers(got, want), exe.plan()


def test_blas_is_found_and_used(both):
    _, _, exe = both(text("  x = f32[8,8] parameter(0)\n  ROOT r = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
                     np.eye(8, dtype=np.float32))
    assert exe.steps["routines"] == 1 and "OpenBLAS" in exe.steps["blas"]


LOOP = """
c { p = (s32[], f32[5], f32[10,5], f32[3,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[5], f32[10,5], f32[3,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[5] get-tuple-element(p), index=1
  a = f32[10,5] get-tuple-element(p), index=2
  k = f32[3,4] get-tuple-element(p), index=3
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
  y = f32[5] cosine(x)
  w = f32[5] reverse(y), dimensions={0}
  yr = f32[1,5] reshape(w)
  u = f32[10,5] dynamic-update-slice(a, yr, i, z)
  ROOT r = (s32[], f32[5], f32[10,5], f32[3,4]) tuple(j, w, u, k) }"""


def test_a_loop_updates_its_state_in_place(both):
    got, want, exe = both(text("""
  x = f32[5] parameter(0)
  k = f32[3,4] parameter(1)
  z = s32[] constant(0)
  zf = f32[] constant(0)
  a = f32[10,5] broadcast(zf), dimensions={}
  t = (s32[], f32[5], f32[10,5], f32[3,4]) tuple(z, x, a, k)
  ROOT w = (s32[], f32[5], f32[10,5], f32[3,4]) while(t), condition=c, body=b""", LOOP), X.reshape(-1)[:5].copy(), X)
    assert same_bits(got, want)
    assert "dynamic-update-slice u: argument 2 f32[10,5] <- argument 2" in exe.plan()


def test_a_loop_that_swaps_its_state(both):
    helpers = """
c { p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  s = f32[4] add(x, y)
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, y, s) }"""
    got, want, _ = both(text("""
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(z, x, x)
  ROOT w = (s32[], f32[4], f32[4]) while(t), condition=c, body=b""", helpers), X[1].copy())
    assert same_bits(got, want)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_branches(both, index):
    helpers = """
f { p = f32[3,4] parameter(0)
  ROOT r = f32[3,4] negate(p) }
g { p = f32[3,4] parameter(0)
  ROOT r = f32[3,4] parameter(0) }
h { p = (f32[3,4], f32[3,4]) parameter(0)
  a = f32[3,4] get-tuple-element(p), index=0
  b = f32[3,4] get-tuple-element(p), index=1
  ROOT r = f32[3,4] subtract(a, b) }""".replace("g { p = f32[3,4] parameter(0)\n  ROOT", "g { ROOT")
    got, want, _ = both(text("""
  i = s32[] parameter(0)
  x = f32[3,4] parameter(1)
  e2 = f32[3,4] exponential(x)
  t = (f32[3,4], f32[3,4]) tuple(e2, x)
  ROOT r = f32[3,4] conditional(i, x, e2, t), branch_computations={f, g, h}""", helpers), np.int32(index), X)
    assert same_bits(got, want)


def test_values_returned_twice_and_arguments_returned(both):
    got, want, _ = both(text("""
  x = f32[3,4] parameter(0)
  y = f32[3,4] sine(x)
  c = f32[2] constant({1, 2})
  t = (f32[3,4], f32[2]) tuple(y, c)
  ROOT r = (f32[3,4], f32[3,4], f32[3,4], (f32[3,4], f32[2]), f32[2]) tuple(y, x, y, t, c)"""), X)
    assert same_bits(got, want)
    got[0][0, 0] = 99
    assert got[2][0, 0] != 99 and X[0, 0] != 99


def test_a_kernel_of_many_ops_is_cut(both):
    lines = ["  v0 = f32[3,4] parameter(0)"] + [f"  v{i} = f32[3,4] {'add' if i % 2 else 'multiply'}(v{i - 1}, v{max(0, i - 3)})" for i in range(1, 700)]
    lines[-1] = lines[-1].replace("  v", "  ROOT v")
    got, want, exe = both(text("\n".join(lines)), X * 0.5)
    assert same_bits(got, want)
    assert 1 < exe.steps["kernels"] < 700


def test_what_only_the_interpreter_runs(both):
    got, want, exe = both(text("  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)"), np.ones(3, np.float32))
    assert same_bits(got, want) and "known only when it runs" in exe.steps["why_interpreted"]


def test_errors_are_the_interpreters():
    exe = xlac.compile(xlac.parse(text("  x = f32[3,4] parameter(0)\n  ROOT y = f32[3,4] negate(x)")))
    for args in ((), (X, X), (X.T.copy(),), (X.astype(np.float64),)):
        with pytest.raises(xlac.Error) as compiled:
            exe(*args)
        with pytest.raises(xlac.Error) as interpreted:
            xlac.interpret(xlac.parse(text("  x = f32[3,4] parameter(0)\n  ROOT y = f32[3,4] negate(x)")), *args)
        assert str(compiled.value) == str(interpreted.value)
    with pytest.raises(xlac.VerifyError):
        xlac.compile(xlac.parse(text("  x = f32[3,4] parameter(0)\n  ROOT y = f32[4,4] negate(x)")))


def test_many_threads_call_one_executable():
    exe = xlac.compile(xlac.parse(text("""
  x = f32[500,40] parameter(0)
  e2 = f32[500,40] exponential(x)
  d = f32[500,500] dot(e2, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[500,500] tanh(d)""")), threads=2)
    inputs = [np.full((500, 40), i / 10, np.float32) for i in range(8)]
    want = [exe(x) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(5):
            if not np.array_equal(exe(inputs[i]), want[i]):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_results_outlive_the_executable():
    exe = xlac.compile(xlac.parse(text("  x = f32[3,4] parameter(0)\n  ROOT y = f32[3,4] negate(x)")))
    y = exe(X)
    del exe
    gc.collect()
    assert np.array_equal(y, -X)


def test_custom_calls_and_random_numbers(both):
    xlac.register_custom_call("twice", lambda x: 2 * x)
    try:
        got, want, exe = both(text("""
  x = f32[3,4] parameter(0)
  y = f32[3,4] custom-call(x), custom_call_target="twice"
  lo = f32[] constant(0)
  hi = f32[] constant(1)
  n = f32[3,4] rng(lo, hi), distribution=rng_uniform
  s = u64[2] constant({1, 2})
  g = (u64[2], u32[3,4]) rng-bit-generator(s), algorithm=rng_three_fry
  ROOT r = (f32[3,4], f32[3,4], (u64[2], u32[3,4])) tuple(y, n, g)"""), X)
    finally:
        xlac.register_custom_call("twice", None)
    assert same_bits(got, want) and exe.steps["interpreted"] == 0


def test_stablehlo_is_compiled_too():
    module = xlac.parse("""func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.tanh %x : tensor<3x4xf32>
  %1 = stablehlo.add %0, %x : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}""")
    exe = xlac.compile(module)
    assert same_bits(leaves(exe(X)), leaves(xlac.interpret(module, X))) and exe.steps["all"] == 1
    assert set(exe.timings) == {"copy", "passes", "plan"} and "1 step: 1 kernel>" in repr(exe)
