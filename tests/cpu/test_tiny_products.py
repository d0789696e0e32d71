"""Many products of tiny matrices, and dots that are multiplications or sums of products, beside the interpreter."""
import os
import pathlib

import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import same_bits
from .test_product_tiles import near, numbers

TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "s32": np.int32, "c64": np.complex64}


def text_of(dims):
    return "[" + ",".join(map(str, dims)) + "]"


def dot(t, a, b, out, batch, contracting):
    lists = [f"{side}_{what}_dims={{{','.join(map(str, dims))}}}" for what, pair in (("batch", batch), ("contracting", contracting))
             for side, dims in zip(("lhs", "rhs"), pair, strict=True) if dims]
    return f"HloModule m\nENTRY e {{\n  a = {t}{text_of(a)} parameter(0)\n  b = {t}{text_of(b)} parameter(1)\n  ROOT r = {t}{text_of(out)} {', '.join(['dot(a, b)', *lists])}\n}}"


def draw(t, shape, seed):
    rng = np.random.default_rng(seed)
    if t[0] == "s":
        return rng.integers(-128, 128, shape).astype(TYPES[t])
    x = rng.standard_normal(shape).astype(TYPES[t])
    x[rng.random(shape) < 0.2] = -0.0
    return x


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("n", [9, 130])
@pytest.mark.parametrize("m, p, k", [(4, 4, 4), (3, 3, 3), (1, 17, 5), (5, 1, 17), (2, 2, 1), (7, 16, 9), (6, 1, 4), (33, 1, 8), (1, 40, 64), (9, 5, 3)])
def test_all_layouts(both, t, n, m, p, k):
    """The matrices as they are or transposed, the batch first or in the middle."""
    for left in ((n, m, k), (n, k, m), (m, n, k)):
        for right in ((n, k, p), (n, p, k)):
            batch = ([left.index(n)], [0])
            contracting = ([2 if left != (n, k, m) else 1], [1 if right == (n, k, p) else 2])
            if len(set(left)) < 3 and left == (n, k, m):
                contracting = ([1], contracting[1])
            text = dot(t, left, right, (n, m, p), batch, contracting)
            got, want, exe = both(text, numbers(*left, t=TYPES[t]), numbers(*right, t=TYPES[t], seed=1))
            near(got, want, 1e-5 if t == "f32" else 1e-13)


def test_two_batch_dimensions(both):
    text = dot("f32", (5, 3, 7, 4), (5, 7, 4, 2), (5, 7, 3, 2), ([0, 2], [0, 1]), ([3], [2]))
    got, want, _ = both(text, numbers(5, 3, 7, 4), numbers(5, 7, 4, 2, seed=1))
    near(got, want, 1e-5)


@pytest.mark.parametrize("t", TYPES)
def test_outer_products_have_the_interpreters_bits(both, t):
    """No term is added up, so what else is done than multiply may not show: zeros of products that are -0, say."""
    for a, b, out, batch in (((6,), (40,), (6, 40), ([], [])), ((6, 40), (6,), (6, 40), ([0], [0])), ((6, 4), (6, 5), (6, 4, 5), ([0], [0]))):
        got, want, _ = both(dot(t, a, b, out, batch, ([], [])), draw(t, a, 0), draw(t, b, 1))
        assert same_bits(got, want)


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("shape, rank", [((50, 16), 1), ((3, 20, 7), 2), ((3, 20, 7), 1), ((700,), 0), ((200,), 0), ((0, 5), 1), ((5, 0), 1)])
def test_dots_of_vectors(both, t, shape, rank):
    batch, contracting = list(range(rank)), list(range(rank, len(shape)))
    text = dot(t, shape, shape, shape[:rank], (batch, batch), (contracting, contracting))
    got, want, _ = both(text, draw(t, shape, 0), draw(t, shape, 1))
    near([np.abs(g) for g in got], [np.abs(w) for w in want], {"bf16": 2**-7, "f16": 2**-9, "f64": 1e-13}.get(t, 1e-5))


def test_they_are_recognised():
    exe = xlac.compile(xlac.parse(dot("f32", (100, 4, 4), (100, 4, 4), (100, 4, 4), ([0], [0]), ([2], [1]))))
    cpu = pathlib.Path("/proc/cpuinfo")
    if cpu.exists() and "avx512dq" in cpu.read_text() and "XLAC_MAX_ISA" not in os.environ:
        assert "tiny products" in exe.plan()


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("rows, k, n", [(256, 8, 8), (257, 3, 3), (1021, 4, 4), (5000, 2, 64), (700, 64, 8), (3000, 16, 16), (2049, 5, 11), (600, 1, 5)])
def test_a_long_matrix_and_a_small_one(both, t, rows, k, n):
    """In pieces, of which the last is shorter; either matrix as it is or transposed, on either side."""
    for long, contracting in (((rows, k), 1), ((k, rows), 0)):
        for small, other in (((k, n), 0), ((n, k), 1)):
            x, w = numbers(*long, t=TYPES[t]), numbers(*small, t=TYPES[t], seed=1)
            for a, b, lists, out in ((long, small, (contracting, other), (rows, n)), (small, long, (other, contracting), (n, rows))):
                text = dot(t, a, b, out, ([], []), ([lists[0]], [lists[1]]))
                got, want, _ = both(text, *((x, w) if a is long else (w, x)))
                near(got, want, 1e-5 if t == "f32" else 1e-13)


@pytest.mark.parametrize("small, long, out, contracting", [
    ((8, 6), (16, 6, 40, 3), (8, 16, 40, 3), (1, 1)), ((16, 40, 3, 8), (8, 6), (16, 40, 3, 6), (3, 0)), ((3, 8), (2, 5, 70, 8, 2), (3, 2, 5, 70, 2), (1, 3)),
    ((5, 4, 300, 3), (3, 3), (5, 4, 300, 3), (3, 1))])
def test_a_long_array_of_several_dimensions_and_a_small_matrix(both, small, long, out, contracting):
    """What is not the innermost of its dimensions is a batch."""
    text = dot("f32", small, long, out, ([], []), ([contracting[0]], [contracting[1]]))
    got, want, _ = both(text, numbers(*small), numbers(*long, seed=1))
    near(got, want, 1e-5)


def test_batches_of_long_matrices(both):
    text = dot("f32", (3, 500, 6), (3, 6, 4), (3, 500, 4), ([0], [0]), ([2], [1]))
    got, want, exe = both(text, numbers(3, 500, 6), numbers(3, 6, 4, seed=1))
    near(got, want, 1e-5)
