"""Ops one after another that stay in vector registers: the interpreter's bits, for all links, types, lengths and specials."""
import itertools
import random

import numpy as np
import pytest

import xlac

SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 3.5, -2.25]
OPS = ["add", "multiply", "subtract", "maximum", "minimum"]


def module(dtype, shape, ops):
    """ops: (name, operand, whether the chain's value comes second) one after another; operands a row, an array or a number."""
    text = "x".join(map(str, shape))
    array, row, number = f"tensor<{text}x{dtype}>", f"tensor<{shape[-1]}x{dtype}>", f"tensor<{dtype}>"
    lines, last = [f"%r = stablehlo.broadcast_in_dim %row, dims = [{len(shape) - 1}] : ({row}) -> {array}",
                   f"%n = stablehlo.broadcast_in_dim %number, dims = [] : ({number}) -> {array}"], "%x"
    for i, (name, operand, second) in enumerate(ops):
        sides = f"{operand}, {last}" if second else f"{last}, {operand}"
        lines.append(f"%v{i} = stablehlo.{name} {sides} : {array}")
        last = f"%v{i}"
    body = "\n  ".join(lines)
    return xlac.parse(f"func.func @main(%x: {array}, %y: {array}, %row: {row}, %number: {number}) -> {array} {{\n  {body}\n  return {last} : {array}\n}}\n")


def arguments(dtype, shape, number, seed):
    draw = np.random.default_rng(seed)
    kind = np.float32 if dtype == "f32" else np.float64

    def mixed(size):
        values = draw.standard_normal(size)
        return np.where(draw.random(size) < 0.3, draw.choice(SPECIALS, size), values).astype(kind)
    return mixed(shape), mixed(shape), mixed(shape[-1:]), kind(number)


def check(m, args):
    same(xlac.compile(m)(*args), xlac.interpret(m, *args))


def same(ours, reference):
    nan = np.isnan(reference)
    assert (np.isnan(ours) == nan).all()
    bits = np.uint32 if reference.dtype == np.float32 else np.uint64
    assert (ours.view(bits)[~nan] == reference.view(bits)[~nan]).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("number", SPECIALS)
def test_every_link_with_every_number(dtype, number):
    for (name, second), extreme in itertools.product(itertools.product(OPS, (False, True)), ("maximum", "minimum")):
        ops = [("add", "%y", False), (name, "%n", second), (name, "%y", second), (extreme, "%n", second), ("multiply", "%r", False)]
        check(module(dtype, (3, 77), ops), arguments(dtype, (3, 77), number, len(name)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_lengths(dtype):
    ops = [("subtract", "%r", False), ("multiply", "%y", False), ("add", "%n", False), ("maximum", "%n", False)]
    for n in (1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 1000, 1024, 2049, 5000):
        check(module(dtype, (2, n), ops), arguments(dtype, (2, n), 0.5, n))


def test_random_chains():
    draw = random.Random(5)
    for seed in range(60):
        ops = [(draw.choice(OPS), draw.choice(["%y", "%r", "%n", "%x"]), draw.random() < 0.4) for _ in range(draw.randrange(3, 70))]
        shape, dtype = draw.choice([(4, 33), (100, 64), (2, 3, 200), (5000,)]), draw.choice(["f32", "f64"])
        check(module(dtype, shape, ops), arguments(dtype, shape, draw.choice(SPECIALS), seed))


def test_over_an_operand():
    ops = [("subtract", "%r", False), ("multiply", "%y", False), ("add", "%x", False), ("maximum", "%n", False)]
    m, args = module("f32", (50, 100), ops), arguments("f32", (50, 100), 0.0, 1)
    reference = xlac.interpret(m, *args)
    for given in (0, 1):
        copies = [np.copy(a) for a in args]
        same(xlac.compile(m, donate=(given,))(*copies), reference)


@pytest.mark.parametrize("shape", [(3_300_001,), (3300, 1000)])
def test_results_that_go_past_the_cache(shape):
    ops = [("subtract", "%y", False), ("multiply", "%n", False), ("maximum", "%n", True), ("minimum", "%y", False), ("add", "%x", False)]
    m, args = module("f32", shape, ops), arguments("f32", shape, -0.0, 7)
    check(m, args)
    exe = xlac.compile(m, threads=2)
    assert exe(*args).tobytes() == xlac.compile(m, threads=1)(*args).tobytes()
    reference = exe(*args)
    out = np.empty(args[0].size + 3, np.float32)[3:].reshape(shape)
    exe(*args, out=out)
    same(out, reference)
    same(xlac.compile(m, donate=(0,))(np.copy(args[0]), *args[1:]), reference)
