"""Loops whose state is scalars: instructions on one lane, alone and two in one, beside the interpreter."""
import re

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_numbers
from .test_loops import loop

INTS = {"s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64}
FLOATS = {"f32": np.float32, "f64": np.float64}
TYPES = {**INTS, **FLOATS}
BITS = ["add(x, y)", "subtract(y, x)", "multiply(x, y)", "and(x, y)", "or(x, y)", "xor(x, y)", "not(x)", "negate(x)", "maximum(x, y)",
        "minimum(x, y)", "clamp(z, x, y)", "shift-left(x, z)", "shift-right-logical(x, z)", "shift-right-arithmetic(x, z)",
        "shift-left(x, y)", "remainder(x, y)", "remainder(y, x)", "divide(y, x)"]
REALS = ["add(x, y)", "subtract(y, x)", "multiply(x, y)", "divide(x, y)", "maximum(x, y)", "minimum(y, x)", "abs(x)", "negate(x)", "clamp(z, x, y)",
         "remainder(x, y)", "sine(x)"]
NUMBERS = {"s": [5, -3, 2**31 - 1, -2**31, 0, -1], "u": [5, 3, 2**31 - 1, 2**32 - 1, 0, 7], "f": [1.5, -0.0, 3e38, np.nan, -np.inf, 1e-45, 0.1, -2.7]}


def scalar_loop(t, results, trips):
    """The state is y, z and an x of its own for each of `results`, which are lines; the last computes r. Y and Z stay."""
    lines = []
    for k, r in enumerate(results):
        r = re.sub(r"\b[rt]\b", lambda m: f"{m[0]}{k + 2}" if m[0] == "r" else f"t{k}", re.sub(r"\bx\b", f"a{k + 2}", r))
        lines.append("  " + re.sub(r"\by\b", "a0", re.sub(r"\bz\b", "a1", r)).replace("T[]", f"{t}[]"))
    stay = [f"  r{k} = {t}[] copy(a{k})" for k in (0, 1)]
    return loop([f"{t}[]"] * (len(results) + 2), "\n".join(stay + lines), trips=trips)


def check(text, t, n, numbers):
    module = xlac.parse(text)
    exe = xlac.compile(module)
    assert exe.steps["interpreted"] == 0
    for k, x in enumerate(numbers):
        y, z = numbers[(k + 1) % len(numbers)], numbers[(k + 2) % len(numbers)]
        args = [y, z] + [x] * n
        assert same_numbers(leaves(exe(*args)), leaves(xlac.interpret(module, *args))), (text, args)


def numbers_of(t):
    return [v.astype(TYPES[t])[()] for v in np.array(NUMBERS[t[0]], np.float64 if t in FLOATS else np.int64)]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("trips", [0, 1, 4])
@pytest.mark.parametrize("t", [*TYPES])
def test_ops_on_scalars(t, trips):
    ops = REALS if t in FLOATS else BITS + ["abs(x)"] * (t[0] == "s")
    check(scalar_loop(t, [f"r = T[] {op}" for op in ops], trips), t, len(ops), numbers_of(t))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("t", [*FLOATS])
def test_two_ops_in_one(t):
    ops = ("add", "subtract", "multiply")
    pairs = [f"t = T[] {a}(x, y)\n  r = T[] {b}({s})" for a in ops for b in ops for s in ("t, z", "z, t", "t, t")]
    check(scalar_loop(t, pairs, 3), t, len(pairs), numbers_of(t))


@pytest.mark.parametrize("t,to", [("s32", "f32"), ("s32", "f64"), ("s32", "s64"), ("f32", "f64"), ("s64", "s32"), ("f64", "f32"), ("f32", "s32"),
                                  ("pred", "s32"), ("pred", "f32"), ("u32", "f32")])
def test_conversions_of_scalars(t, to):
    numbers = [np.bool_(v) for v in (0, 1)] if t == "pred" else numbers_of(t)
    text = loop([f"{t}[]", f"{to}[]"], f"  r0 = {t}[] copy(a0)\n  b = {to}[] convert(a0)\n  r1 = {to}[] add(a1, b)", trips=2)
    module = xlac.parse(text)
    exe = xlac.compile(module)
    zero = xlac.interpret(xlac.parse(f"HloModule z\nENTRY e {{ ROOT z = {to}[] constant(0) }}"))
    for x in numbers:
        assert same_numbers(leaves(exe(x, zero)), leaves(xlac.interpret(module, x, zero))), x


@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
@pytest.mark.parametrize("t", [*TYPES])
def test_conditions_on_scalars(t, direction):
    """compare(x, y) and at most five trips: as the condition itself, and within it."""
    for both in (False, True):
        state = f"({t}[], {t}[], s32[])"
        take = f"x = {t}[] get-tuple-element(p), index=0\n y = {t}[] get-tuple-element(p), index=1\n k = s32[] get-tuple-element(p), index=2"
        first = f"ROOT r = pred[] compare(x, y), direction={direction}"
        if both:
            first = first.replace("ROOT r", "q") + "\n f = s32[] constant(5)\n s = pred[] compare(k, f), direction=LT\n ROOT r = pred[] and(q, s)"
        text = f"""HloModule m
c {{ p = {state} parameter(0)
 {take}
 {first} }}
b {{ p = {state} parameter(0)
 {take}
 one = s32[] constant(1)
 l = s32[] add(k, one)
 d = {t}[] constant({3 if direction in ("EQ", "LT", "LE") or both else 2})
 e = {t}[] constant({1 if direction in ("EQ", "LT", "LE") or both else 3})
 x2 = {t}[] add({"x, d" if direction in ("EQ", "LT", "LE") or both else "e, d"})
 y2 = {t}[] {"add(y, e)" if direction in ("EQ", "LT", "LE") or both else "add(x2, e)" if direction != "NE" else "copy(x2)"}
 ROOT t = {state} tuple(x2, y2, l) }}
ENTRY e {{ x = {t}[] parameter(0)
 y = {t}[] parameter(1)
 o = s32[] constant(0)
 t = {state} tuple(x, y, o)
 ROOT w = {state} while(t), condition=c, body=b }}"""
        module = xlac.parse(text)
        exe = xlac.compile(module)
        for x, y in ((3, 3), (4, 3), (2, 9), (6, 1)):
            args = TYPES[t](x), TYPES[t](y)
            assert same_numbers(leaves(exe(*args)), leaves(xlac.interpret(module, *args))), (text, args)


@pytest.mark.parametrize("index", ["s32", "s64", "u32"])
@pytest.mark.parametrize("dims,box", [((7,), (1,)), ((7, 3), (1, 3)), ((7, 3), (2, 3)), ((1, 7, 3), (1, 1, 3)), ((2, 7, 3), (2, 1, 3)), ((7, 3), (1, 2))])
def test_rows_that_a_loop_takes_and_puts(dims, box, index):
    """At indexes that are clamped at both ends."""
    whole, part = (f"f32[{','.join(map(str, d))}]" for d in (dims, box))
    at = ", ".join("k" if i == int(len(dims) == 3) else "o" for i in range(len(dims)))
    body = f"""  three = {index}[] constant(3)
  two = {index}[] constant(2)
  o = {index}[] constant(0)
  n = {index}[] multiply(a2, two)
  k = {index}[] subtract(n, three)
  s = {part} dynamic-slice(a0, {at}), dynamic_slice_sizes={{{','.join(map(str, box))}}}
  d = {part} add(s, s)
  r0 = {whole} copy(a0)
  r1 = {whole} dynamic-update-slice(a1, d, {at})
  one = {index}[] constant(1)
  r2 = {index}[] add(a2, one)"""
    text = loop([whole, whole, f"{index}[]"], body.replace("  one = ", "  unit = ").replace("add(a2, one)", "add(a2, unit)"), trips=8)
    module = xlac.parse(text)
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    args = x, -x, TYPES[index](0)
    for passes in (True, False):
        exe = xlac.compile(module, passes=passes)
        assert same_numbers(leaves(exe(*args)), leaves(xlac.interpret(module, *args)))
