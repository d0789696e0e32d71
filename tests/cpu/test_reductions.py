"""Reductions by kernels: every place of the reduced dimensions, long and short, few and many results."""
import itertools

import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_numbers

SHAPES = [(7,), (1,), (0,), (3, 0), (5, 300), (300, 5), (64, 64), (2000, 3), (3, 2000), (400, 300), (4, 33, 70), (9, 2, 3, 130), (200000,), (2, 60000),
          (60000, 2), (3, 1, 5, 1)]
KINDS = [("add", "f32", "0"), ("maximum", "f32", "-inf"), ("minimum", "f16", "inf"), ("add", "s32", "3"), ("add", "bf16", "0.5"), ("and", "pred", "true"),
         ("multiply", "f64", "1"), ("add", "c64", "(0, 1)"), ("xor", "u8", "9")]
BODY = "r {{ a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n ROOT c = {t}[] {op}(a, b) }}"


def draw(op, t, shape):
    rng = np.random.default_rng(len(shape))
    if t == "pred":
        return rng.random(shape) > 0.001
    if t in ("s32", "u8"):
        return rng.integers(0, 99, shape).astype({"s32": np.int32, "u8": np.uint8}[t])
    x = rng.standard_normal(shape) if op != "multiply" else 1 + rng.standard_normal(shape) / 1000
    return x.astype({"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64, "c64": np.complex64}[t])


@pytest.mark.parametrize("op,t,init", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(both, op, t, init, shape):
    for n in range(len(shape) + 1):
        for dims in itertools.combinations(range(len(shape)), n):
            check(both, op, t, init, shape, dims)


def check(both, op, t, init, shape, dims):
    x = draw(op, t, shape)
    out = ",".join(str(s) for i, s in enumerate(shape) if i not in dims)
    produce = "z" if t in ("pred", "u8") else "y"
    got, want, exe = both(f"""HloModule m
{BODY.format(t=t, op=op)}
ENTRY e {{
  z = {t}[{','.join(map(str, shape))}] parameter(0)
  {f"y = {t}[{','.join(map(str, shape))}] negate(z)" if produce == "y" else ""}
  i = {t}[] constant({init})
  ROOT q = {t}[{out}] reduce({produce}, i), dimensions={{{','.join(map(str, dims))}}}, to_apply=r
}}""", x)
    assert exe.steps["interpreted"] == 0
    if t in ("s32", "u8", "pred") or op in ("maximum", "minimum"):
        assert same_numbers(got, want), (shape, dims)
        return
    # In whatever order: within the rounding of as many additions as there are, of the magnitudes that there are.
    wide = np.complex128 if t == "c64" else np.float64
    count = max(1, int(np.prod([shape[d] for d in dims])))
    eps = {"f32": 2**-23, "f64": 2**-52, "bf16": 2**-8, "c64": 2**-22}[t]
    size = np.abs(x.astype(wide)).sum(axis=dims) + 2 if op == "add" else np.full_like(want[0], 4)
    growth = eps * (2 + (np.log2(count) + count / 1024 + 2000 * (t != "bf16") if op == "add" else count) * (1 if t != "bf16" else 2**-14))
    assert (np.abs(got[0].astype(wide) - want[0].astype(wide)) <= growth * size).all(), (shape, dims)


def test_a_reduction_takes_in_what_makes_its_operand(both):
    x = np.random.default_rng(1).standard_normal((50, 300)).astype(np.float32)
    got, _, exe = both(f"""HloModule m
{BODY.format(t='f32', op='add')}
ENTRY e {{
  x = f32[50,300] parameter(0)
  m = f32[50] parameter(1)
  mb = f32[50,300] broadcast(m), dimensions={{0}}
  d = f32[50,300] subtract(x, mb)
  s = f32[50,300] multiply(d, d)
  i = f32[] constant(0)
  ROOT q = f32[50] reduce(s, i), dimensions={{1}}, to_apply=r
}}""", x, x.mean(axis=1))
    assert exe.steps["all"] == 1, exe.plan()
    np.testing.assert_allclose(got[0], x.astype(np.float64).var(axis=1) * 300, rtol=1e-4)


def test_a_body_of_several_ops_is_the_interpreters(both):
    got, want, exe = both("""HloModule m
r { a = f32[] parameter(0)
  b = f32[] parameter(1)
  t = f32[] multiply(a, b)
  ROOT c = f32[] add(a, t) }
ENTRY e {
  x = f32[5,6] parameter(0)
  i = f32[] constant(1)
  ROOT q = f32[5] reduce(x, i), dimensions={1}, to_apply=r
}""", np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32))
    assert same_numbers(got, want) and exe.steps["interpreted"] == 0


@pytest.mark.parametrize("n", [1, 3, 500])
def test_reducers_of_arrays_of_one_element(n):
    """StableHLO's verifier lets them pass; kernels take scalars alone."""
    t = "tensor<1xf32>"
    module = xlac.parse(f"""func.func @main(%a: tensor<{n}x1xf32>, %b: {t}) -> {t} {{
  %0 = stablehlo.reduce(%a init: %b) across dimensions = [0] : (tensor<{n}x1xf32>, {t}) -> {t}
    reducer(%x: {t}, %y: {t}) {{
      %1 = stablehlo.add %x, %y : {t}
      stablehlo.return %1 : {t}
    }}
  return %0 : {t}
}}""")
    a, b = np.arange(n, dtype=np.float32)[:, None], np.array([5], np.float32)
    same_numbers(xlac.compile(module)(a, b), xlac.interpret(module, a, b))
    assert xlac.interpret(module, a, b).tolist() == [5 + n * (n - 1) / 2]


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extremes_of_short_rows(op, t):
    """NaN is in a few rows, zeros of both signs are all that others have: rows one by one and many at a time."""
    rng = np.random.default_rng(0)
    for n in (4, 5, 6, 7, 8, 9, 15, 16, 33, 63, 64, 65, 95):
        x = rng.standard_normal((301, n)).astype({"f32": np.float32, "f64": np.float64}[t])
        x[::3] = np.where(rng.random((101, n)) < 0.9, 0.0 if op == "minimum" else -0.0, -0.0 if op == "minimum" else 0.0)
        for nans in (False, True):
            x[250:251, n // 2] = np.nan if nans else x[250, n // 2]
            text = f"HloModule m\n{BODY.format(t=t, op=op)}\nENTRY e {{\n  x = {t}[301,{n}] parameter(0)\n  z = {t}[] constant({'-' * (op == 'maximum')}inf)\n" \
                   f"  ROOT y = {t}[301] reduce(x, z), dimensions={{1}}, to_apply=r\n}}\n"
            got, want = (np.asarray(xlac.compile(text, device=d)(x)) for d in ("cpu", "interp"))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))
            assert np.isnan(got).sum() == nans


@pytest.mark.parametrize("op", ["and", "or"])
def test_truth_along_rows(op):
    """One element decides, wherever it is."""
    x = np.full((300, 700), op == "and")
    for row in range(1, 300):
        x[row, row * 7 % 700] = op == "or"
    text = f"HloModule m\n{BODY.format(t='pred', op=op)}\nENTRY e {{\n  x = pred[300,700] parameter(0)\n  z = pred[] constant({'true' if op == 'and' else 'false'})\n" \
           "  n = pred[300,700] not(x)\n  b = pred[300,700] not(n)\n  ROOT y = pred[300] reduce(b, z), dimensions={1}, to_apply=r\n}\n"
    np.testing.assert_array_equal(np.asarray(xlac.compile(text)(x)), np.arange(300) == 0 if op == "and" else np.arange(300) != 0)


def tree(row, start):
    """The sum that every instruction set and any number of threads give: of blocks of 1024 by lanes of 128 bytes, and of the lanes by halves."""
    lanes = 128 // row.itemsize
    acc = None
    for at in range(0, len(row), 1024):
        block = row[at : at + 1024]
        part = block[:lanes].copy()
        for i in range(lanes, len(block), lanes):
            part[: len(block[i : i + lanes])] += block[i : i + lanes]
        if acc is None:
            acc = part
        else:
            acc[: len(part)] += part
    while len(acc) > 1:
        half = (len(acc) + 1) // 2
        low = acc[:half].copy()
        low[: len(acc) - half] += acc[half:]
        acc = low
    return acc[0] + start


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_sums_of_rows_as_they_lie(t, isa, monkeypatch):
    """Some rows of a block at most at a time, and block after block of longer ones: what is left of either, and rows of two dimensions."""
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    for rows, n in [(70, 96), (33, 130), (67, 1000), (40, 1024), (37, 1026), (33, 2046), (40, 2048), (40, 3000), (35, 40000)]:
        x = np.random.default_rng(n).standard_normal((rows, n)).astype(dtype)
        x[:2, :2] = [[-0.0, -1], [np.inf, 1]]
        want = np.array([tree(row, dtype(0.1)) for row in x])
        for shape, over in [((rows, n), "1"), ((rows, 2, n // 2), "1,2")]:
            text = f"""HloModule m
{BODY.format(op="add", t=t)}
ENTRY e {{
  x = {t}[{",".join(map(str, shape))}] parameter(0)
  z = {t}[] constant(0.1)
  ROOT s = {t}[{rows}] reduce(x, z), dimensions={{{over}}}, to_apply=r
}}"""
            for threads in (1, 3):
                assert same_numbers(leaves(xlac.compile(text, threads=threads)(x.reshape(shape))), [want]), (shape, threads)
