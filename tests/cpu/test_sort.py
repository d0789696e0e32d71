"""Sorts by keys: the interpreter's bits for every comparator that is seen as keys, for 1, 2 and 7 threads."""
import numpy as np
import pytest

import xlac

from .test_moves import check, shape

FLOATS, INTEGERS = ["f32", "f64", "bf16", "f16"], ["s32", "u8", "s64", "u64", "s16", "pred", "s4"]


def numbers(rng, t, dims):
    kind = xlac._core.numpy_dtype(t)
    if t in INTEGERS:
        return rng.integers(0, 2, dims).astype(bool) if t == "pred" else rng.integers(-8 if t[0] == "s" else 0, 8, dims).astype(kind)
    x = rng.normal(size=dims).astype(kind)
    flat = x.reshape(-1)
    for value in (0.0, -0.0, np.inf, -np.inf):
        flat[rng.integers(0, flat.size, max(1, flat.size // 9)) if flat.size else []] = value
    return x


def with_nans(x):
    bits = x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.dtype.itemsize]).reshape(-1)
    bits[1::5] = np.array(np.nan, x.dtype).view(bits.dtype)
    bits[2::7] = np.array(np.nan, x.dtype).view(bits.dtype) | bits.dtype.type(1 << (8 * x.dtype.itemsize - 1))
    bits[3::11] = np.array(np.nan, x.dtype).view(bits.dtype) | bits.dtype.type(5)
    return x


def canonical(name, x, t):
    return f"""  n{name} = pred[] compare({x}, {x}), direction=NE
  z{name} = pred[] compare({x}, zero), direction=EQ
  y{name} = {t}[] select(z{name}, zero, {x})
  {name} = {t}[] select(n{name}, cn, y{name})
"""


def comparators(t):
    """Texts with $t for the type of parameters 0 and 1."""
    yield "lt", "  ROOT r = pred[] compare(p0, p1), direction=LT"
    yield "gt", "  ROOT r = pred[] compare(p0, p1), direction=GT"
    yield "lt crossed", "  ROOT r = pred[] compare(p1, p0), direction=LT"
    if t in FLOATS:
        yield "lt total", "  ROOT r = pred[] compare(p0, p1), direction=LT, type=TOTALORDER"
        yield "gt total", "  ROOT r = pred[] compare(p0, p1), direction=GT, type=TOTALORDER"
        both = f"  zero = {t}[] constant(0)\n  cn = {t}[] constant(nan)\n" + canonical("a", "p0", t) + canonical("b", "p1", t)
        yield "jax", both + "  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER"
        yield "jax descending", both + "  ROOT r = pred[] compare(b, a), direction=LT, type=TOTALORDER"


def program(t, dims, dim, body, others=()):
    types = [t, *others]
    params = "\n".join(f"  p{k} = {types[k // 2]}[] parameter({k})" for k in range(2 * len(types)))
    out = shape(t, dims) if not others else "(" + ", ".join(shape(u, dims) for u in types) + ")"
    listed = "\n".join(f"  x{k} = {shape(u, dims)} parameter({k})" for k, u in enumerate(types))
    return (f"HloModule m\nf {{\n{params}\n{body}\n}}\nENTRY e {{\n{listed}\n  ROOT r = {out} sort({', '.join(f'x{k}' for k in range(len(types)))}), "
            f"dimensions={{{dim}}}, is_stable=true, to_apply=f\n}}")


CASES = [(t, name, body) for t in FLOATS + INTEGERS for name, body in comparators(t)]


@pytest.mark.parametrize("t,name,body", CASES, ids=[f"{t} {name}" for t, name, _ in CASES])
@pytest.mark.parametrize("dims,dim", [((7, 100), 1), ((100, 7), 0), ((3, 50, 4), 1), ((20,), 0), ((4, 1), 1), ((0, 3), 0), ((3, 0), 0), ((2, 3000), 1)])
def test_sorts(t, name, body, dims, dim):
    rng = np.random.default_rng(6)
    x = numbers(rng, t, dims)
    places = np.arange(x.size, dtype=np.int32).reshape(dims)
    check(program(t, dims, dim, body, ["s32"]), x, places, routine="radix" if x.size and dims[dim] > 1 else None)
    if t in FLOATS:
        x = with_nans(x)
        check(program(t, dims, dim, body), x, routine="radix" if x.size and dims[dim] > 1 else None)
        check(program(t, dims, dim, body, ["s32"]), x, places)


CHAIN = """  lt0 = pred[] compare(p0, p1), direction=LT
  eq0 = pred[] compare(p0, p1), direction=EQ
  gt1 = pred[] compare(p2, p3), direction=GT, type=TOTALORDER
  eq1 = pred[] compare(p2, p3), direction=EQ, type=TOTALORDER
  lt2 = pred[] compare(p4, p5), direction=LT
  and1 = pred[] and(lt2, eq1)
  or1 = pred[] or(gt1, and1)
  and0 = pred[] and(eq0, or1)
  ROOT r = pred[] or(and0, lt0)"""


@pytest.mark.parametrize("dims", [(5, 400), (1, 140000)])
def test_several_keys(dims):
    rng = np.random.default_rng(7)
    x = [rng.integers(-3, 3, dims).astype(np.int8), with_nans(rng.integers(-2, 2, dims).astype(np.float32)), rng.integers(0, 2, dims).astype(np.int64),
         np.arange(np.prod(dims), dtype=np.int32).reshape(dims)]
    check(program("s8", dims, 1, CHAIN, ["f32", "s64", "s32"]), *x, routine="radix")


@pytest.mark.parametrize("t", ["f32", "s32", "f64", "u8"])
@pytest.mark.parametrize("n", [131072, 140001, 300000])
def test_long_rows_are_merged(t, n):
    rng = np.random.default_rng(8)
    body = dict(comparators(t))["jax" if t in FLOATS else "gt"]
    dims = (2, n) if n < 140002 else (n,)
    x = (rng.integers(0, 200, dims) if t == "u8" else rng.normal(size=dims) * 1e6).astype(xlac._core.numpy_dtype(t))
    check(program(t, dims, len(dims) - 1, body, ["s32"]), x, np.arange(x.size, dtype=np.int32).reshape(dims), routine="radix")


def test_other_comparators_are_the_interpreters():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(4, 60)).astype(np.float32)
    body = "  a = f32[] abs(p0)\n  b = f32[] abs(p1)\n  ROOT r = pred[] compare(a, b), direction=LT"
    check(program("f32", x.shape, 1, body), x, eval_ok=True)
    # Alike at first sight, but no order of keys: one side made canonical, two operands mixed, the wrong constant.
    half = "  zero = f32[] constant(0)\n  cn = f32[] constant(nan)\n" + canonical("a", "p0", "f32") + "  ROOT r = pred[] compare(a, p1), direction=LT, type=TOTALORDER"
    ones = "  zero = f32[] constant(1)\n  cn = f32[] constant(7)\n" + canonical("a", "p0", "f32") + canonical("b", "p1", "f32") + \
        "  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER"
    for text in (half, ones):
        check(program("f32", x.shape, 1, text), with_nans(x.copy()), eval_ok=True)
        assert " radix " not in xlac.compile(xlac.parse(program("f32", x.shape, 1, text))).plan()
    mixed = "  ROOT r = pred[] compare(p0, p3), direction=LT"
    check(program("f32", x.shape, 1, mixed, ["f32"]), x, x[::-1].copy(), eval_ok=True)
