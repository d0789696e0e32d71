"""Quantised programs compile to kernels on stored integers and real numbers, and give the interpreter's bits."""
import itertools

import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

rng = np.random.default_rng(11)
STORAGE = {"i8": "i8", "u8": "ui8", "i16": "i16", "i32": "i32", "i4": "i4"}


def agree(text, *args, near=False):
    module = xlac.parse(text, format="mlir")
    want = leaves(xlac.interpret(module, *args))
    for threads, passes in itertools.product((1, 2, 7), (True, False)):
        exe = xlac.compile(module, threads=threads, passes=passes)
        exe._check()
        assert not exe.steps["why_interpreted"] and exe.steps["interpreted"] == 0, exe.explain("schedule")
        got = leaves(exe(*args))
        if near:
            assert all(g.dtype == w.dtype and np.max(np.abs(g.astype(np.int64) - w.astype(np.int64)), initial=0) <= 1 for g, w in zip(got, want))
        else:
            assert same_bits(got, want), (threads, passes)
    return want


def quantised(storage, expressed="f32", rest="0.5:3"):
    return f"!quant.uniform<{storage}:{expressed}{rest if rest[0] == ':' else ', ' + rest}>"


SPECIAL = np.array([0, -0.0, 0.25, 0.75, -0.75, 1e9, -1e9, np.inf, -np.inf, np.nan, 1e-30, 63.4999], np.float32)


@pytest.mark.parametrize("q", [
    quantised("i8"), quantised("u8", rest="0.1:7"), quantised("i4", rest="1.5"), quantised("i16", rest="0.003:-9"), quantised("i32", rest="1.0E-7:5"),
    quantised("i32", rest="0.5"), quantised("i8<-7:7>"), quantised("i32<-100000001:100000001>", rest="0.25"), quantised("i8", "f64"), quantised("i8", "bf16"),
    quantised("i8", rest=":1, {1.0, 0.5:10, 0.3:-4}")])
def test_quantise_and_back(q):
    expressed = q[q.index(":f") + 1:].split(",")[0].split(":")[0] if ":f" in q else "bf16"
    text = f"""func.func @main(%x: tensor<40x3xf32>) -> tensor<40x3x{expressed}> {{
  %e = stablehlo.convert %x : (tensor<40x3xf32>) -> tensor<40x3x{expressed}>
  %0 = stablehlo.uniform_quantize %e : (tensor<40x3x{expressed}>) -> tensor<40x3x{q}>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<40x3x{q}>) -> tensor<40x3x{expressed}>
  return %1 : tensor<40x3x{expressed}>
}}"""
    x = (rng.standard_normal((40, 3)) * 40).astype(np.float32)
    x[:12, 1] = SPECIAL
    agree(text, x)


@pytest.mark.parametrize("a, b", [(quantised("i8"), quantised("i8", rest="0.2:-5")), (quantised("i8"), quantised("i32", rest="1.0E-5")),
                                  (quantised("i8", rest=":0, {1.0, 0.5:10, 0.3:-4}"), quantised("i8", rest="0.1")),
                                  (quantised("i8", rest=":0, {1.0, 0.5:10, 0.3:-4}"), quantised("u8", rest=":0, {0.7:1, 0.2:9, 0.3:4}"))])
def test_requantise(a, b):
    storage = b[len("!quant.uniform<"):].split(":")[0].replace("u8", "ui8")
    text = f"""func.func @main(%x: tensor<3x50xi8>) -> tensor<3x50x{storage}> {{
  %0 = stablehlo.bitcast_convert %x : (tensor<3x50xi8>) -> tensor<3x50x{a}>
  %1 = stablehlo.uniform_quantize %0 : (tensor<3x50x{a}>) -> tensor<3x50x{b}>
  %2 = stablehlo.bitcast_convert %1 : (tensor<3x50x{b}>) -> tensor<3x50x{storage}>
  return %2 : tensor<3x50x{storage}>
}}"""
    agree(text, rng.integers(-128, 128, (3, 50)).astype(np.int8))


Q = quantised("i8", rest="0.0301:3")
R = quantised("i8", rest="0.07:-2")
OPS = {
    "add": (f"stablehlo.add %a, %b : tensor<8x9x{Q}>", Q),
    "multiply": (f"stablehlo.multiply %a, %b : (tensor<8x9x{Q}>, tensor<8x9x{Q}>) -> tensor<8x9x{R}>", R),
    "divide": (f"stablehlo.divide %a, %b : tensor<8x9x{Q}>", Q),
    "exponential": (f"stablehlo.exponential %a : (tensor<8x9x{Q}>) -> tensor<8x9x{R}>", R),
    "tanh": (f"stablehlo.tanh %a : tensor<8x9x{Q}>", Q),
    "maximum": (f"stablehlo.maximum %a, %b : tensor<8x9x{Q}>", Q),
    "clamp": (f"stablehlo.clamp %b, %a, %b : tensor<8x9x{Q}>", Q),
}


@pytest.mark.parametrize("name", OPS)
def test_elementwise(name):
    op, result = OPS[name]
    agree(f"func.func @main(%a: tensor<8x9x{Q}>, %b: tensor<8x9x{Q}>) -> tensor<8x9x{result}> {{\n %0 = {op}\n return %0 : tensor<8x9x{result}>\n}}",
          *(rng.integers(-128, 128, (8, 9)).astype(np.int8) for _ in "ab"))


def test_compare_select_and_constants():
    agree(f"""func.func @main(%a: tensor<4x5x{Q}>) -> (tensor<4x5x{Q}>, tensor<4x5xi1>) {{
  %c = stablehlo.constant() {{value = dense<7> : tensor<4x5xi8>}} : () -> tensor<4x5x{Q}>
  %0 = stablehlo.compare GT, %a, %c : (tensor<4x5x{Q}>, tensor<4x5x{Q}>) -> tensor<4x5xi1>
  %1 = stablehlo.select %0, %a, %c : tensor<4x5xi1>, tensor<4x5x{Q}>
  return %1, %0 : tensor<4x5x{Q}>, tensor<4x5xi1>
}}""", rng.integers(-128, 128, (4, 5)).astype(np.int8))


def test_moves_keep_what_is_stored():
    agree(f"""func.func @main(%a: tensor<4x6x{Q}>, %p: tensor<{Q}>) -> tensor<6x9x{Q}> {{
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6x{Q}>) -> tensor<6x4x{Q}>
  %1 = stablehlo.concatenate %0, %0, dim = 1 : (tensor<6x4x{Q}>, tensor<6x4x{Q}>) -> tensor<6x8x{Q}>
  %2 = stablehlo.pad %1, %p, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<6x8x{Q}>, tensor<{Q}>) -> tensor<6x9x{Q}>
  return %2 : tensor<6x9x{Q}>
}}""", rng.integers(-128, 128, (4, 6)).astype(np.int8), np.int8(5))


def test_reduction():
    agree(f"""func.func @main(%a: tensor<30x40x{Q}>, %i: tensor<{Q}>) -> tensor<30x{Q}> {{
  %0 = stablehlo.reduce(%a init: %i) across dimensions = [1] : (tensor<30x40x{Q}>, tensor<{Q}>) -> tensor<30x{Q}>
   reducer(%x: tensor<{Q}>, %y: tensor<{Q}>) {{
    %1 = stablehlo.maximum %x, %y : tensor<{Q}>
    stablehlo.return %1 : tensor<{Q}>
  }}
  return %0 : tensor<30x{Q}>
}}""", rng.integers(-128, 128, (30, 40)).astype(np.int8), np.int8(-128))


def test_product():
    w = quantised("i8<-127:127>", rest=":1, {" + ", ".join(f"{0.01 + 0.001 * i}" for i in range(24)) + "}")
    agree(f"""func.func @main(%a: tensor<16x32x{Q}>, %b: tensor<32x24x{w}>) -> tensor<16x24x{R}> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x32x{Q}>, tensor<32x24x{w}>) -> tensor<16x24x{R}>
  return %0 : tensor<16x24x{R}>
}}""", rng.integers(-128, 128, (16, 32)).astype(np.int8), rng.integers(-127, 128, (32, 24)).astype(np.int8), near=True)
