"""Arithmetic on iotas is an index: no op is left of it, and what wraps or does not fit has the bits of the interpreter."""
import re

import numpy as np
import pytest

import xlac


def kernel_of(text, *arrays):
    """The program's kernels as text; compiled and interpreted it gives the same."""
    module = xlac.parse(text)
    want, got = np.asarray(xlac.interpret(module, *arrays)), np.asarray(xlac.compile(xlac.parse(text))(*arrays))
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    return xlac.compile_stage(module, "kernels")


def program(t, to, body, dims="[7,130]"):
    return (f"HloModule m\nENTRY e {{\n i = {t}{dims} iota(), iota_dimension=0\n j = {t}{dims} iota(), iota_dimension=1\n{body}"
            f" x = {to}[] parameter(0)\n b = {to}{dims} broadcast(x), dimensions={{}}\n ROOT y = {to}{dims} add(r, b)\n}}")


def spread(t, name, number):
    return f" {name}s = {t}[] constant({number})\n {name} = {t}[7,130] broadcast({name}s), dimensions={{}}\n"


@pytest.mark.parametrize("t, to", [("u64", "u32"), ("s64", "s32"), ("u32", "u8"), ("s32", "u64"), ("u8", "u8"), ("s8", "s64"), ("u8", "s32"),
                                   ("s16", "u16")])
def test_a_flat_index_is_one_dimension(t, to):
    n = {"8": 100, "16": 130, "32": 130, "64": 130}[re.sub(r"\D", "", t)]
    text = kernel_of(program(t, to, spread(t, "n", n) + f" m = {t}[7,130] multiply(n, i)\n s = {t}[7,130] add(m, j)\n r = {to}[7,130] convert(s)\n"),
                     np.asarray(3, {"u32": "u4", "s32": "i4", "u8": "u1", "u64": "u8", "s64": "i8", "u16": "u2"}[to]))
    wide = int(re.sub(r"\D", "", to)) > int(re.sub(r"\D", "", t))
    if wide and t[1:] == "8":
        assert "convert" in text  # 700 is no number of 8 bits
    else:
        assert "multiply" not in text and "convert" not in text
    if n == 130 and t != "u8" and to != "u8":
        assert "kernel [910]" in text


@pytest.mark.parametrize("t", ["u8", "s8", "s32", "u64"])
@pytest.mark.parametrize("op", ["subtract(i, j)", "subtract(j, c)", "subtract(c, i)", "multiply(j, c)", "multiply(i, j)"])
def test_sums_differences_and_products(t, op):
    d = np.dtype({"u8": "u1", "s8": "i1", "s32": "i4", "u64": "u8"}[t])
    for number in (0, 3, 100, 1 if t[0] == "u" else -5, min(np.iinfo(d).max, 1 << 20)):
        text = kernel_of(program(t, t, spread(t, "c", number) + f" r = {t}[7,130] {op}\n"), np.asarray(3, d))
        assert "index" in text or number == 0
    assert ("multiply" in text) == (op == "multiply(i, j)")


@pytest.mark.parametrize("number", [1 << 31, (1 << 62) + 1])
def test_products_that_no_index_holds_stay_ops(number):
    text = kernel_of(program("u64", "u64", spread("u64", "c", number) + " r = u64[7,130] multiply(j, c)\n"), np.asarray(3, "u8"))
    assert "multiply" in text


@pytest.mark.parametrize("by, ops", [(32, 0), (8, 0), (7, 1), (1, 1), (63, 1), (64, 1)])
def test_high_words_are_zero(by, ops):
    text = kernel_of(program("u64", "u64", spread("u64", "c", by) + " r = u64[7,130] shift-right-logical(j, c)\n"), np.asarray(3, "u8"))
    assert text.count("shift-right") == ops


def test_random_numbers_of_two_dimensions():
    jax = pytest.importorskip("jax")
    text = jax.jit(lambda k: jax.random.normal(jax.random.wrap_key_data(k), (300, 2), "float32")).lower(np.zeros(2, np.uint32)).as_text()
    key = np.array([7, 9], np.uint32)
    got, want = xlac.compile(xlac.parse(text))(key), xlac.interpret(xlac.parse(text), key)
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    assert "u64" not in xlac.compile_stage(xlac.parse(text), "kernels")
