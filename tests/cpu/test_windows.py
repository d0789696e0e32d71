"""reduce-window and select-and-scatter beside the interpreter."""
import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_numbers
from .test_products import numbers, one, outputs_of, shape_text, window_text

TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s32": np.int32, "u8": np.uint8, "s4": ml_dtypes.int4,
         "pred": np.bool_, "c64": np.complex64, "s64": np.int64, "u16": np.uint16}
INITS = {"add": "0", "multiply": "1", "maximum": "-2", "minimum": "2", "and": "true", "or": "false", "xor": "true"}


def draw(t, shape, seed=0):
    rng = np.random.default_rng(seed)
    if t == "pred":
        return rng.random(shape) > 0.3
    x = rng.integers(-7, 8, shape) if t in ("s32", "s64", "s4") else rng.integers(0, 200, shape) if t in ("u8", "u16") else rng.standard_normal(shape)
    return (x + (1j * x[::-1] if t == "c64" else 0)).astype(TYPES[t])


def check(text, *args, interpreted=0, close=False):
    module = xlac.parse(text)
    want = leaves(xlac.interpret(module, *args))
    runs = [xlac.compile(module, threads=n) for n in (1, 2, 7)]
    assert runs[0].steps["interpreted"] == interpreted, runs[0].plan()
    got = [leaves(exe(*args)) for exe in runs]
    assert same_numbers(got[0], got[1]) and same_numbers(got[0], got[2])
    if close or ": runs," in runs[0].explain("schedule"):  # associated as reductions are
        for g, w in zip(got[0], want):
            assert np.allclose(g.astype(np.complex128), w.astype(np.complex128), rtol=2e-2 if w.dtype.itemsize == 2 else 1e-4, atol=1e-4), text
    else:
        assert same_numbers(got[0], want), text


def pooling(op, t, shape, window, init=None):
    out = [outputs_of(n, w) for n, w in zip(shape, window)]
    init = init or ("(0, 0)" if t == "c64" else "2" if t[0] == "u" and op == "maximum" else INITS[op])
    return f"""HloModule m
r {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b)
}}
ENTRY e {{
  x = {t}{shape_text(shape)} parameter(0)
  i = {t}[] constant({init})
  ROOT w = {t}{shape_text(out)} reduce-window(x, i), window={window_text(window)}, to_apply=r
}}"""


def same(n):
    return [one(1) for _ in range(n)]


CASES = [((2, 11, 9, 5), [one(1), one(3, 2, 0, 1), one(3, 2, 1, 0), one(1)]), ((2, 3, 11, 9), [one(1), one(1), one(2, 2), one(2, 2)]),
         ((30,), [one(4, 3, 2, 5)]), ((7, 30), [one(2, low=-1, high=2), one(5, dilate=3, low=7)]), ((6, 8), [one(2, base=3, low=1), one(3, base=2, stride=3, high=4)]),
         ((5, 6, 7), [one(2, 1, 1), one(3, 2, 2, 2), one(7, low=6)]), ((3, 4), same(2)), ((4, 5), [one(4), one(5)]), ((9,), [one(3, 1, 5, 6)]),
         ((0, 4), [one(2, low=2, high=2), one(1)]), ((5,), [one(9)]), ((2, 400, 60), [one(1), one(3, 2, 1, 1), one(1)]), ((3, 5000), [one(1), one(7, 2, 3, 3)]),
         ((2, 40000), [one(2), one(3000, 3000, 1500, 1500)]), ((3, 2, 20000), [one(1), one(2, low=1), one(1)])]
SCANS = [((1000,), 0), ((5, 300), 1), ((300, 5), 0), ((4, 50, 7), 1), ((3, 60, 500), 1), ((2, 3, 1), 0), ((6, 2), 1)]


@pytest.mark.parametrize("shape,window", CASES, ids=str)
@pytest.mark.parametrize("op,t", [("maximum", "f32"), ("add", "f32"), ("minimum", "bf16"), ("add", "bf16"), ("add", "s32"), ("multiply", "f64"), ("and", "pred"),
                                  ("add", "c64"), ("maximum", "u8"), ("add", "s4"), ("maximum", "f16"), ("xor", "pred"), ("multiply", "s64"), ("add", "u16")])
def test_windows(op, t, shape, window):
    x = draw(t, shape, 1)
    if op == "multiply" and t == "f64":
        x = 1 + x / 1000
    check(pooling(op, t, shape, window), x)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("shape,along", SCANS, ids=str)
@pytest.mark.parametrize("op,t", [("add", "f32"), ("add", "f64"), ("maximum", "f32"), ("minimum", "bf16"), ("add", "bf16"), ("add", "s32"), ("multiply", "f64"),
                                  ("or", "pred"), ("add", "c64"), ("add", "s4"), ("multiply", "s64")])
def test_scans(op, t, shape, along, backward):
    n = shape[along]
    window = same(len(shape))
    window[along] = one(n, low=0 if backward else n - 1, high=n - 1 if backward else 0)
    x = draw(t, shape, 1)
    if op == "multiply" and t == "f64":
        x = 1 + x / 1000
    text = pooling(op, t, shape, window)
    check(text, x, close=backward and t in ("f32", "f64", "bf16", "c64"))
    if n > 1:
        assert " scan " in xlac.compile(xlac.parse(text)).plan()


def test_a_window_longer_than_the_array_scans_it():
    check(pooling("add", "f32", (40,), [one(64, low=63)]), draw("f32", (40,)))


def test_nan_wins_in_maxima():
    x = draw("f32", (40, 30), 2)
    x[3, 7] = np.nan
    check(pooling("maximum", "f32", (40, 30), [one(3, 2, 1, 1), one(2)]), x)


def test_other_bodies_are_the_interpreters():
    text = pooling("add", "f32", (6, 8), [one(2), one(3)]).replace("ROOT c = f32[] add(a, b)", "t = f32[] multiply(a, b)\n  ROOT c = f32[] add(a, t)")
    check(text, draw("f32", (6, 8)))


def choosing(direction, t, shape, window, init="0", add="add"):
    source = [outputs_of(n, w) for n, w in zip(shape, window)]
    return source, f"""HloModule m
s {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction={direction}
}}
r {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {add}(a, b)
}}
ENTRY e {{
  x = {t}{shape_text(shape)} parameter(0)
  y = {t}{shape_text(source)} parameter(1)
  i = {t}[] constant({init})
  ROOT w = {t}{shape_text(shape)} select-and-scatter(x, y, i), window={window_text(window)}, select=s, scatter=r
}}"""


CHOICES = [((2, 11, 9, 5), [one(1), one(3, 2, 1, 1), one(3, 2, 1, 1), one(1)]), ((2, 3, 8, 8), [one(1), one(1), one(2, 2), one(2, 2)]), ((40,), [one(4, 1, 3)]),
           ((3, 20, 100), [one(1), one(5, 1, 2, 2), one(1)]), ((4, 6), [one(4), one(6)]), ((3, 4), same(2)), ((5, 4), [one(1), one(9)]),
           ((2, 9, 200), [one(1), one(2, 3), one(1)])]


@pytest.mark.parametrize("shape,window", CHOICES, ids=str)
@pytest.mark.parametrize("t,direction", [("f32", "GE"), ("f64", "GT"), ("s32", "LE"), ("s64", "LT"), ("f32", "LT")])
def test_select_and_scatter(t, direction, shape, window):
    source, text = choosing(direction, t, shape, window, init="3")
    x = draw(t, shape, 1)
    x.flat[::3] = x.flat[:1]  # ties
    if t == "f32" and x.size > 7:
        x.flat[5] = np.nan
    check(text, x, draw(t, source, 2))


def test_other_choices_are_the_interpreters():
    source, text = choosing("NE", "f32", (6, 6), [one(2, 2), one(2, 2)])
    check(text, draw("f32", (6, 6)), draw("f32", source))
    source, text = choosing("GE", "f32", (6, 6), [one(2, 2), one(2, 2)], add="multiply")
    check(text, draw("f32", (6, 6)), draw("f32", source))


@pytest.mark.parametrize("op", ("add", "multiply", "maximum", "minimum"))
@pytest.mark.parametrize("t", ("f32", "f64", "bf16"))
@pytest.mark.parametrize("shape", ((3, 5, 7, 7), (2, 70, 3, 1), (4, 1, 40, 50), (2, 2, 64, 64), (1, 1, 4, 8), (300, 2, 1, 33)))
def test_one_window_for_all_places(op, t, shape):
    """Global pooling with features before places: runs of memory."""
    window = [one(1), one(1), one(shape[2]), one(shape[3])]
    text = pooling(op, t, shape, window)
    x = draw(t, shape, 1) * (0.001 if op == "multiply" and shape[2] > 8 else 1)
    x = np.where(draw("f32", shape, 2) > 1.9, 0 * x - 0.0, x).astype(TYPES[t])
    check(text, x)
    x.flat[x.size // 2] = np.nan
    got = leaves(xlac.compile(xlac.parse(text))(x))[0]
    assert np.isnan(got.flat[x.size // 2 // (shape[2] * shape[3])].astype(np.float32))
    exe = xlac.compile(xlac.parse(text))
    assert ": runs," in exe.explain("schedule")


@pytest.mark.parametrize("op,value,gone", (("add", "0", True), ("maximum", "-2", True), ("minimum", "2", True), ("add", "-0", False), ("add", "1", False),
                                           ("multiply", "1", False), ("maximum", "-3", False)))
def test_padding_that_changes_nothing_is_the_windows_own(op, value, gone):
    """The gradient of an average pooling is one."""
    window = [one(1), one(2, 1, 0, 0), one(3, 2, 1, 0)]
    text = pooling(op, "f32", (3, 13, 20), window)
    text = text.replace("  x = f32[3,13,20]{2,1,0} parameter(0)", "  x = f32[3,13,20] parameter(0)").replace(
        "  x = f32[3,13,20] parameter(0)", f"  small = f32[3,6,9] parameter(0)\n  v = f32[] constant({value})\n"
        "  x = f32[3,13,20] pad(small, v), padding=0_0x1_1_1x0_3_1")
    assert "pad(small" in text
    check(text, draw("f32", (3, 6, 9)))
    plan = xlac.compile(xlac.parse(text)).explain("schedule")
    assert (" pad " not in plan) == gone, plan
