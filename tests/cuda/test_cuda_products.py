"""Products of matrices by cuBLASLt, which the simulating driver has a stand-in for, and without it."""

import re

import ml_dtypes
import numpy as np
import pytest

import gpu
import xlac

CASES = [  # left, right, their batch and contracting dimensions
    ((70, 40), (40, 33), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ((40, 70), (40, 33), "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ((70, 40), (33, 40), "", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ((40, 70), (33, 40), "", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
    ((2, 3, 32, 40), (2, 3, 40, 16), "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, ", "lhs_contracting_dims={3}, rhs_contracting_dims={2}"),
    ((2, 32, 3, 40), (2, 24, 3, 40), "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, ", "lhs_contracting_dims={3}, rhs_contracting_dims={3}"),
    ((2, 3, 32, 40), (2, 24, 3, 40), "lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, ", "lhs_contracting_dims={3}, rhs_contracting_dims={3}"),
    ((1024,), (1024, 64), "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ((64, 1024), (1024,), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ((256, 1), (1, 256), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ((256, 16), (16, 16), "", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ((8, 16, 8, 4), (8, 4, 48), "", "lhs_contracting_dims={2,3}, rhs_contracting_dims={0,1}"),
]


@pytest.fixture(autouse=True)
def device():
    gpu.use()


def text(dims):
    return ",".join(map(str, dims))


def free(dims, *taken):
    return [d for i, d in enumerate(dims) if i not in [n for part in taken for n in part]]


def numbers(words, key):
    found = re.search(key + r"={([0-9,]*)}", words)
    return [int(n) for n in found[1].split(",")] if found else []


def dot(i, a, b, words, t, result=None):
    batch, left, right = (numbers(words, key) for key in ("lhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims"))
    dims = [a[n] for n in batch] + free(a, batch, left) + free(b, numbers(words, "rhs_batch_dims"), right)
    shape = f"{result or t}[{text(dims)}]"
    operands = f" x{i} = {t}[{text(a)}] parameter({2 * i})\n y{i} = {t}[{text(b)}] parameter({2 * i + 1})\n"
    return f"{operands} d{i} = {shape} dot(x{i}, y{i}), {words}\n", shape


def program(cases, t, result=None):
    """All of them in one module, so that there is one compilation."""
    dots = [dot(i, a, b, batch + contracting, t, result) for i, (a, b, batch, contracting) in enumerate(cases)]
    root = f" ROOT r = ({', '.join(shape for _, shape in dots)}) tuple({', '.join(f'd{i}' for i in range(len(dots)))})\n"
    return "HloModule m\nENTRY e {\n" + "".join(line for line, _ in dots) + root + "}\n"


def values(dims, t, seed):
    types = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "s32": np.int32, "bf16": ml_dtypes.bfloat16}
    return (np.random.default_rng(seed).integers(-8, 9, dims) / (1 if t == "s32" else 8)).astype(types[t])


def arguments(cases, t):
    return [values(dims, t, i + j) for i, (a, b, *_) in enumerate(cases) for j, dims in enumerate((a, b))]


def check(module, exe, args, near):
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        np.testing.assert_allclose(np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64), rtol=near, atol=near)


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
def test_products(t):
    module = program(CASES, t)
    exe = xlac.compile(module, device="cuda")
    assert exe.explain("fusion").count("cuBLASLt's product") == len(CASES)
    for _ in range(3):
        check(module, exe, arguments(CASES, t), 1e-2 if t in ("bf16", "f16") else 1e-6)


@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_narrow_operands_with_a_wide_result(t):
    module = program(CASES[:1], t, "f32")
    exe = xlac.compile(module, device="cuda")
    assert "cuBLASLt's product" in exe.explain("fusion")
    check(module, exe, arguments(CASES[:1], t), 1e-6)


S8 = [
    ((64, 48), (40, 48), "", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ((3, 64, 48), (3, 40, 48), "lhs_batch_dims={0}, rhs_batch_dims={0}, ", "lhs_contracting_dims={2}, rhs_contracting_dims={2}"),
    ((67, 128), (128, 64), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),  # the right one is transposed for it
    ((128, 66), (128, 64), "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),  # both are
]
NOT_S8 = [  # rows of five bytes, columns that are no words, and few operations for what would be moved
    ((64, 45), (40, 45), "", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ((64, 48), (42, 48), "", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ((8, 128), (128, 64), "", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
]


@pytest.mark.parametrize("cases", [S8, NOT_S8])
def test_8_bit_integers_have_sums_of_32_bits(cases):
    module = program(cases, "s8", "s32")
    exe = xlac.compile(module, device="cuda")
    assert exe.explain("fusion").count("cuBLASLt's product") == (len(cases) if cases is S8 else 0)
    rng = np.random.default_rng(0)
    args = [rng.integers(-128, 128, dims).astype(np.int8) for case in cases for dims in case[:2]]
    for _ in range(3):
        for got, want in zip(exe(*args), xlac.interpret(module, *args)):
            assert np.array_equal(np.asarray(got), np.asarray(want))


def test_8_bit_integers_with_results_of_8_bits_are_a_kernel():
    exe = xlac.compile(program(S8[:1], "s8"), device="cuda")
    assert "cuBLASLt" not in exe.explain("fusion")


TURNED = [  # what is transposed for the library: left, right, both, left; and the terms alone that are listed in another order
    ((3, 2, 2, 32, 16), (2, 32, 256), "", "lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}"),
    ((2, 32, 256), (3, 2, 2, 32, 16), "", "lhs_contracting_dims={1,0}, rhs_contracting_dims={3,1}"),
    ((4, 32, 8, 16), (8, 32, 4, 16), "", "lhs_contracting_dims={0,2}, rhs_contracting_dims={2,0}"),
    ((2, 32, 2, 16, 2), (2, 2, 2, 16, 256), "lhs_batch_dims={0,2,4}, rhs_batch_dims={0,1,2}, ", "lhs_contracting_dims={3}, rhs_contracting_dims={3}"),
    ((64, 4, 16), (4, 16, 64), "", "lhs_contracting_dims={2,1}, rhs_contracting_dims={1,0}"),
]


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
def test_operands_are_transposed_for_products_that_pay_for_it(t):
    module = program(TURNED, t)
    exe = xlac.compile(module, device="cuda")
    report = exe.explain("fusion")
    assert report.count("cuBLASLt's product") == len(TURNED)
    for _ in range(3):
        check(module, exe, arguments(TURNED, t), 1e-2 if t in ("bf16", "f16") else 1e-6)


def test_a_transposition_is_part_of_the_kernel_that_makes_the_operand():
    module = """
HloModule m
ENTRY e {
  x = f32[3,2,4,32,16] parameter(0)
  y = f32[2,32,256] parameter(1)
  n = f32[3,2,4,32,16] negate(x)
  ROOT d = f32[3,4,16,256] dot(n, y), lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}
}
"""
    exe = xlac.compile(module, device="cuda")
    report = exe.explain("fusion")
    assert "cuBLASLt's product" in report and report.count("__global__") == 1
    args = values((3, 2, 4, 32, 16), "f32", 0), values((2, 32, 256), "f32", 1)
    np.testing.assert_allclose(exe(*args), xlac.interpret(module, *args), rtol=1e-6, atol=1e-6)


def test_products_share_what_is_transposed():
    module = """
HloModule m
ENTRY e {
  g = f32[3,2,4,32,16] parameter(0)
  x = f32[2,32,256] parameter(1)
  w = f32[256,3,4,16] parameter(2)
  a = f32[3,4,16,256] dot(g, x), lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}
  b = f32[2,32,256] dot(g, w), lhs_contracting_dims={0,2,4}, rhs_contracting_dims={1,2,3}
  ROOT t = (f32[3,4,16,256], f32[2,32,256]) tuple(a, b)
}
"""
    exe = xlac.compile(module, device="cuda")
    report = exe.explain("fusion")
    assert report.count("cuBLASLt's product") == 2 and report.count("__global__") == 1
    args = values((3, 2, 4, 32, 16), "f32", 0), values((2, 32, 256), "f32", 1), values((256, 3, 4, 16), "f32", 2)
    check(module, exe, args, 1e-6)


@pytest.mark.parametrize("dims", [((6, 7, 8, 9), (7, 9, 40)), ((3, 2, 2, 32, 16), (2, 32, 24))])
def test_few_operations_pay_for_no_transposition(dims):
    contracting = "lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}"
    cases = [(*dims, "", contracting)]
    exe = xlac.compile(program(cases, "f32"), device="cuda")
    assert "transpose" not in exe.explain("fusion")


def test_what_is_no_matrix_is_a_kernel(monkeypatch):
    apart = [((6, 7, 8, 9), (7, 9, 40), "", "lhs_contracting_dims={1,3}, rhs_contracting_dims={0,1}")]
    for cases, t in ((apart, "f32"), (CASES[:1], "s32")):
        module = program(cases, t)
        exe = xlac.compile(module, device="cuda")
        assert "cuBLASLt" not in exe.explain("fusion")
        check(module, exe, arguments(cases, t), 1e-6)
    monkeypatch.setenv("XLAC_CUBLASLT", "0")
    module = program(CASES, "f32")
    exe = xlac.compile(module, device="cuda")
    assert "cuBLASLt" not in exe.explain("fusion")
    check(module, exe, arguments(CASES, "f32"), 1e-6)


def test_products_in_graphs_get_new_addresses():
    module = """
HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  a = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  t = f32[64,64] tanh(b)
  ROOT c = f32[64,64] dot(t, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""
    exe = xlac.compile(module, device="cuda", results="buffer")
    w = values((64, 64), "f32", 0)
    kept = []
    for i in range(8):
        x = values((64, 64), "f32", i)
        kept.append((exe(xlac.asarray(x, device="cuda:0"), w), xlac.interpret(module, x, w)))
    for got, want in kept:
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
