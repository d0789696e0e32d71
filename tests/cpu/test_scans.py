"""Cumulative sums inside of kernels: with what they are computed from and what is made of them, in one pass."""
import numpy as np
import pytest

import xlac
from xlac import kernels

from .conftest import leaves, same_bits, same_numbers

BODY = """HloModule m
f {{ a = {t}[] parameter(0)
 b = {t}[] parameter(1)
 ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{
  x = {t}[{s}] parameter(0)
  y = {t}[{s}] parameter(1)
  z = {t}[] constant({z})
  p = {t}[{s}] multiply(x, y)
  w = {t}[{s}] reduce-window(p, z), window={{size={size} pad={pad}}}, to_apply=f
  q = {t}[{s}] subtract(w, y)
  ROOT r = {t}[{s}] maximum(q, x)
}}
"""


def text(shape, along, back, dtype="s32", op="add", z=3):
    n = shape[along]
    size = "x".join(str(n) if d == along else "1" for d in range(len(shape)))
    pad = "x".join((f"0_{n - 1}" if back else f"{n - 1}_0") if d == along else "0_0" for d in range(len(shape)))
    return BODY.format(t=dtype, s=",".join(map(str, shape)), size=size, pad=pad, op=op, z=z)


def data(shape, dtype):
    r = np.random.default_rng(3)
    kind = xlac._core.numpy_dtype(dtype)
    return [(r.integers(-5, 6, shape) * (0.25 if kind.kind not in "iu" else 1)).astype(kind) for _ in range(2)]


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("shape", "along"), [((64, 700), 1), ((64, 40), 1), ((700, 64), 0), ((9, 50, 30), 1), ((3000,), 0), ((20, 1, 500), 2), ((8, 4, 30, 7), 2)])
def test_a_cumulative_sum_and_what_is_around_it_are_one_pass(shape, along, back, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    parsed = xlac.parse(text(shape, along, back))
    args = data(shape, "s32")
    want = leaves(xlac.interpret(parsed, *args))
    for threads in (1, 2, 7):
        exe = xlac.compile(parsed, threads=threads)
        exe._check()
        assert same_numbers(leaves(exe(*args)), want)
    assert len(kernels.of(exe)) == 1 and exe.steps["routines"] == 0, exe.explain("fusion")
    assert " scan(" in str(exe.explain("kernels"))


@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s8", "u32", "c64", "s64"])
def test_every_type_has_the_interpreters_bits(dtype, op):
    if dtype == "c64" and op in ("maximum", "minimum"):
        pytest.skip("no order")
    program = text((33, 90), 1, False, dtype, op, "(1, 2)" if dtype == "c64" else 1)
    if dtype == "c64":
        program = program.replace("maximum(q, x)", "add(q, x)")
    parsed, args = xlac.parse(program), data((33, 90), dtype)
    exe = xlac.compile(parsed)
    assert same_numbers(leaves(exe(*args)), leaves(xlac.interpret(parsed, *args)))
    assert len(kernels.of(exe)) == 1 and " scan(" in str(exe.explain("kernels"))


def test_from_the_end_as_the_routine_has_it():
    parsed = xlac.parse(text((64, 700), 1, True, "f32", "add", 0))
    args = [np.random.default_rng(i).standard_normal((64, 700)).astype(np.float32) for i in range(2)]
    assert same_bits(leaves(xlac.compile(parsed)(*args)), leaves(xlac.compile(parsed, fuse=False)(*args)))


@pytest.mark.parametrize(("program", "says"), [
    (text((2, 70000), 1, False), "too few to be shared among threads"),
    (text((9, 5, 3000), 1, False), "carry so many results"),
    (text((64, 700), 1, False).replace("q = s32[64,700] subtract(w, y)", "v = s32[64,700] reverse(w), dimensions={1}\n  q = s32[64,700] subtract(v, y)"),
     "in their order"),
    (text((64, 700), 1, False).replace("q = s32[64,700] subtract(w, y)",
                                       "v = s32[64,700] reduce-window(w, z), window={size=64x1 pad=63_0x0_0}, to_apply=f\n  q = s32[64,700] subtract(v, y)"),
     "along another way"),
])
def test_why_scans_stay_outside(program, says):
    parsed = xlac.parse(program)
    exe = xlac.compile(parsed, passes=False)
    assert says in str(exe.explain("fusion")), exe.explain("fusion")
    args = data(tuple(map(int, program.split("x = s32[")[1].split("]")[0].split(","))), "s32")
    assert same_bits(leaves(exe(*args)), leaves(xlac.interpret(parsed, *args)))


def test_two_scans_of_one_kind_are_one_pass():
    program = text((64, 700), 1, False).replace(
        "q = s32[64,700] subtract(w, y)",
        "v = s32[64,700] reduce-window(w, z), window={size=1x700 pad=0_0x699_0}, to_apply=f\n  q = s32[64,700] subtract(v, w)")
    parsed, args = xlac.parse(program), data((64, 700), "s32")
    exe = xlac.compile(parsed)
    assert same_bits(leaves(exe(*args)), leaves(xlac.interpret(parsed, *args)))
    assert str(exe.explain("kernels")).count(" scan(") == 2 and len(kernels.of(exe)) == 1


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("shape", "along"), [
    ((3, 90), 1), ((4, 90), 1), ((5, 1024), 1), ((131, 300), 1), ((7, 33, 3), 1), ((2, 70000), 1), ((6, 70000), 1), ((1, 5), 1)])
@pytest.mark.parametrize(("dtype", "op"), [("f32", "add"), ("f32", "multiply"), ("f64", "add"), ("s32", "add"), ("u64", "add")])
def test_lines_that_are_done_four_at_a_time(dtype, op, shape, along, back):
    """The scan alone is a routine's: four lines side by side, and the rest of them singly; long lines in parts."""
    lines = text(shape, along, back, dtype, op, 1).replace("ROOT r", "r").replace(" w = ", " ROOT w = ").replace("reduce-window(p", "reduce-window(x")
    parsed = xlac.parse(lines)
    args = data(shape, dtype)
    if op == "multiply":  # exact in any order: from the end, the interpreter multiplies the other way round
        args[0][...] = np.where(args[0] > 0, 1, -1)
        args[0][..., 1::1000] *= np.arange(2, 2 + args[0][..., 1::1000].shape[-1]) % 3 + 1
    exe = xlac.compile(parsed, threads=2)
    assert " scan " in exe.plan()
    assert same_numbers(leaves(exe(*args)), leaves(xlac.interpret(parsed, *args)))
