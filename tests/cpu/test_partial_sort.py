"""Sorts of which only slices near one end are used: the bits of the whole sort, with what is not used left out."""
import numpy as np
import pytest

import xlac

from .test_moves import check, shape
from .test_sort import CHAIN, FLOATS, INTEGERS, comparators, numbers, with_nans


def program(types, dims, dim, body, slices, whole=()):
    """slices: of result i the range [low, high) of the sorted dimension; whole: results that are used as they are."""
    params = "\n".join(f"  p{k} = {types[k // 2]}[] parameter({k})" for k in range(2 * len(types)))
    given = [shape(t, dims) for t in types]
    lines = [f"  x{k} = {s} parameter({k})" for k, s in enumerate(given)]
    lines.append(f"  s = ({', '.join(given)}) sort({', '.join(f'x{k}' for k in range(len(types)))}), dimensions={{{dim}}}, is_stable=true, to_apply=f")
    results = []
    for j, (i, low, high) in enumerate(slices):
        cut = shape(types[i], (*dims[:dim], high - low, *dims[dim + 1:]))
        ranges = ", ".join(f"[{low}:{high}]" if d == dim else f"[0:{n}]" for d, n in enumerate(dims))
        lines += [f"  g{j} = {given[i]} get-tuple-element(s), index={i}", f"  c{j} = {cut} slice(g{j}), slice={{{ranges}}}"]
        results.append((cut, f"c{j}"))
    for i in whole:
        lines.append(f"  w{i} = {given[i]} get-tuple-element(s), index={i}")
        results.append((given[i], f"w{i}"))
    lines.append(f"  ROOT r = ({', '.join(t for t, _ in results)}) tuple({', '.join(name for _, name in results)})")
    return f"HloModule m\nf {{\n{params}\n{body}\n}}\nENTRY e {{\n" + "\n".join(lines) + "\n}"


def both(low, high):
    return [(0, low, high), (1, low, high)]


def places(dims):
    return np.arange(np.prod(dims), dtype=np.int32).reshape(dims)


CASES = [(t, name, body) for t in FLOATS + INTEGERS for name, body in comparators(t)]


@pytest.mark.parametrize("t,name,body", CASES, ids=[f"{t} {name}" for t, name, _ in CASES])
@pytest.mark.parametrize("dims,dim", [((3, 400), 1), ((300, 3), 0)])
def test_first_and_last_of_rows_with_many_ties(t, name, body, dims, dim):
    rng = np.random.default_rng(1)
    n = dims[dim]
    for low, high in ((0, 1), (2, 9), (0, n // 4), (n - 1, n), (n - n // 4, n), (n - 9, n - 2)):
        text = program([t, "s32"], dims, dim, body, both(low, high))
        check(text, numbers(rng, t, dims), places(dims), routine="partial-sort")
        if t in FLOATS:
            check(text, with_nans(numbers(rng, t, dims)), places(dims), routine="partial-sort")


@pytest.mark.parametrize("t", ["f32", "f64", "s32", "u64", "bf16"])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal", "sawtooth"])
def test_orders_that_put_much_or_nothing_aside(t, order):
    rng, n = np.random.default_rng(2), 5000
    x = {"random": rng.normal(size=(3, n)) * 1e6, "rising": np.tile(np.arange(n), (3, 1)), "falling": np.tile(-np.arange(n), (3, 1)),
         "equal": np.full((3, n), 7), "sawtooth": np.tile(np.arange(n) % 100, (3, 1))}[order]
    x = (np.abs(x) if t[0] == "u" else x).astype(xlac._core.numpy_dtype(t))
    for body in ("  ROOT r = pred[] compare(p0, p1), direction=GT", "  ROOT r = pred[] compare(p0, p1), direction=LT"):
        for low, high in ((0, 1), (0, 100), (0, n // 4), (n - 100, n)):
            check(program([t, "s32"], x.shape, 1, body, both(low, high)), x, places(x.shape), routine="partial-sort")


@pytest.mark.parametrize("extreme", [0, 2**64 - 1])
def test_keys_at_the_ends_of_their_range(extreme):
    x = np.full((2, 900), extreme, np.uint64)
    x[0, ::7] = 1 << 33
    for direction in ("LT", "GT"):
        for low, high in ((0, 40), (860, 900)):
            check(program(["u64", "s32"], x.shape, 1, f"  ROOT r = pred[] compare(p0, p1), direction={direction}", both(low, high)), x, places(x.shape),
                  routine="partial-sort")


@pytest.mark.parametrize("dims", [(5, 400), (1, 140000)])
def test_several_keys(dims):
    rng = np.random.default_rng(3)
    n = dims[1]
    x = [rng.integers(-3, 3, dims).astype(np.int8), with_nans(rng.integers(-2, 2, dims).astype(np.float32)), rng.integers(0, 2, dims).astype(np.int64),
         places(dims)]
    for low, high in ((0, 30), (n - 30, n)):
        slices = [(0, low, high), (3, low, high), (2, low, high - 1)]
        check(program(["s8", "f32", "s64", "s32"], dims, 1, CHAIN, slices), *x, routine="partial-sort")


@pytest.mark.parametrize("t", ["f32", "s32", "f64", "u8"])
@pytest.mark.parametrize("n", [131072, 300001])
def test_long_rows(t, n):
    rng = np.random.default_rng(4)
    body = dict(comparators(t))["jax" if t in FLOATS else "gt"]
    dims = (2, n) if n == 131072 else (n,)
    x = (rng.integers(0, 200, dims) if t == "u8" else rng.normal(size=dims) * 1e6).astype(xlac._core.numpy_dtype(t))
    for low, high in ((0, 1), (0, 1000), (n - 1000, n), (0, n // 3)):
        check(program([t, "s32"], dims, len(dims) - 1, body, both(low, high)), x, places(dims), routine="radix" if high == n // 3 else "partial-sort")


ABSOLUTE = "  a = f32[] abs(p0)\n  b = f32[] abs(p1)\n  ROOT r = pred[] compare(a, b), direction=LT"
NO_ORDER = "  a = f32[] multiply(p0, p1)\n  b = f32[] sine(a)\n  ROOT r = pred[] compare(b, p0), direction=LT"


@pytest.mark.parametrize("body", [ABSOLUTE, NO_ORDER], ids=["by absolute value", "no order at all"])
@pytest.mark.parametrize("dims,dim", [((4, 600), 1), ((600, 5), 0), ((3000, 70), 1), ((70, 3000), 1), ((20000,), 0), ((2, 70000), 1)])
def test_any_comparator_keeps_the_bits_of_the_whole_sort(body, dims, dim):
    x = np.random.default_rng(5).normal(size=dims).astype(np.float32)
    n = dims[dim]
    for low, high in ((0, 1), (3, 17), (n - 1, n)):
        text = program(["f32", "s32"], dims, dim, body, both(low, high))
        check(text, x, places(dims), routine="merge-sort" if high == n else "partial-sort")


def test_not_a_number_where_the_comparator_is_a_plain_one():
    x = with_nans(np.random.default_rng(6).normal(size=(40, 700)).astype(np.float32))
    for direction in ("LT", "GT"):
        for low, high in ((0, 20), (680, 700)):
            check(program(["f32", "s32"], x.shape, 1, f"  ROOT r = pred[] compare(p0, p1), direction={direction}", both(low, high)), x, places(x.shape),
                  routine="partial-sort")


def test_nothing_and_everything():
    x, body = np.random.default_rng(7).normal(size=(3, 200)).astype(np.float32), dict(comparators("f32"))["jax"]
    check(program(["f32", "s32"], x.shape, 1, body, both(0, 0)), x, places(x.shape), routine="partial-sort")
    check(program(["f32", "s32"], x.shape, 1, body, both(0, 200)), x, places(x.shape), routine="radix")
    check(program(["f32", "s32"], x.shape, 1, body, both(90, 110)), x, places(x.shape), routine="radix")


def test_what_else_uses_the_result_gets_all_of_it():
    x, body = np.random.default_rng(8).normal(size=(3, 200)).astype(np.float32), dict(comparators("f32"))["jax"]
    check(program(["f32", "s32"], x.shape, 1, body, [(0, 0, 5)], whole=[1]), x, places(x.shape), routine="radix")
    check(program(["f32", "s32"], x.shape, 1, body, [(0, 0, 5), (0, 190, 200)]), x, places(x.shape), routine="radix")
    check(program(["f32", "s32"], x.shape, 1, body, [(0, 0, 5), (1, 10, 20)]), x, places(x.shape), routine="partial-sort")
    check(program(["f32", "s32"], x.shape, 1, body, [(1, 0, 5)]), x, places(x.shape), routine="partial-sort")


def test_an_executable_that_was_saved_sorts_in_part_too():
    x, body = np.random.default_rng(9).normal(size=(3, 200)).astype(np.float32), dict(comparators("f32"))["jax"]
    exe = xlac.compile(xlac.parse(program(["f32", "s32"], x.shape, 1, body, both(0, 5))))
    loaded = xlac.load(exe.serialize())
    assert " partial-sort " in loaded.plan()
    for got, want in zip(loaded(x, places(x.shape)), exe(x, places(x.shape)), strict=True):
        np.testing.assert_array_equal(got, want)


def approx_top_k(dims, k, dim, direction):
    cut = "x".join(str(k if d == dim else n) for d, n in enumerate(dims))
    whole = "x".join(map(str, dims))
    return f"""module {{
  func.func @before(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<i1> {{
    %0 = stablehlo.compare {direction}, %arg0, %arg1 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }}
  func.func @main(%arg0: tensor<{whole}xf32>) -> (tensor<{cut}xf32>, tensor<{cut}xi32>) {{
    %0 = stablehlo.iota dim = {dim} : tensor<{whole}xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %0, %cst, %c) {{called_computations = [@before], mhlo.backend_config = {{aggregate_to_topk = true,
      is_fallback = true, recall_target = 0.95 : f32, reduction_dim = {dim} : i64, reduction_input_size_override = -1 : i64, top_k = {k} : i64}}}}
      : (tensor<{whole}xf32>, tensor<{whole}xi32>, tensor<f32>, tensor<i32>) -> (tensor<{cut}xf32>, tensor<{cut}xi32>)
    return %1#0, %1#1 : tensor<{cut}xf32>, tensor<{cut}xi32>
  }}
}}"""


@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize("dims,dim", [((6, 900), 1), ((900, 6), 0), ((2, 500, 3), 1)])
def test_approximate_top_k_as_jax_lowers_it(direction, dims, dim):
    x = np.random.default_rng(10).normal(size=dims).astype(np.float32).round(1)  # with ties
    for k in (1, 16, dims[dim] // 4):
        check(approx_top_k(dims, k, dim, direction), x, routine="partial-sort", eval_ok=True)
        check(approx_top_k(dims, k, dim, direction), with_nans(x.copy()), routine="partial-sort", eval_ok=True)
    check(approx_top_k(dims, dims[dim], dim, direction), x, eval_ok=True)
