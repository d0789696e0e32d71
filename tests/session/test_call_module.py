"""XlaCallModule, what jax2tf writes: a StableHLO module within a node."""
import numpy as np
import pytest
from graphs import node, placeholder

import xlac

F = "DT_FLOAT"
TEXT = """module {
  func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<i32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %z = func.call @twice(%y) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %i = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%k = %i, %v = %z) : tensor<i32>, tensor<2x2xf32>
      cond { %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %c : tensor<i1> }
      do { %k1 = stablehlo.add %k, %one : tensor<i32>
           %v1 = stablehlo.add %v, %z : tensor<2x2xf32>
           stablehlo.return %k1, %v1 : tensor<i32>, tensor<2x2xf32> }
    return %r#1, %r#0 : tensor<2x2xf32>, tensor<i32>
  }
  func.func private @twice(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.add %x, %x : tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
}"""
OPEN = """module {
  func.func public @main(%p: tensor<i32>, %x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.sine %x : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}"""


def graph(module, inputs, tin, tout, platforms="", **more):
    if isinstance(module, str):
        module = module.encode()
    text = "".join(f"\\\\{b:03o}".replace("\\\\", "\\") for b in module)
    types = {k: {"list": "{ " + " ".join(f"type: {t}" for t in v) + " }"} for k, v in (("Tin", tin), ("Tout", tout))}
    shapes = {"list": "{ " + " ".join("shape { unknown_rank: true }" for _ in tout) + " }"}
    named = {"platforms": {"list": "{ " + platforms + " }"}} if platforms else {}
    return "".join(placeholder(i, t) for i, t in zip(inputs, tin)) + node("c", "XlaCallModule", *inputs, version=9, module=text, Sout=shapes, **types, **named, **more)


@pytest.mark.parametrize("form", ["text", "bytes"])
def test_functions_loops_and_constants(form):
    module = TEXT if form == "text" else xlac.parse(TEXT).to_bytes("mlir-bytecode")
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    step = xlac.cluster(graph(module, ["x", "w"], [F, F], [F, "DT_INT32"])).executable(["x", "w"], ["c", "c:1"])
    y, n = step(x, w)
    np.testing.assert_array_equal(y, x @ w * 8)
    assert n == 3 and step.stats["failures"] == 0


def test_open_sizes_and_platforms():
    text = graph(OPEN, ["x"], [F], [F], platforms='s: "CUDA" s: "CPU"')
    step = xlac.cluster(text).executable("x", "c")
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_allclose(step(x), np.sin(x), rtol=1e-6)


@pytest.mark.parametrize("module,message", [
    ("nonsense", "its module: "), (TEXT.replace("@main", "@other"), "has no function 'main'"), (TEXT.replace("2x3", "4x3").replace("2x2", "4x2"), "argument 0 of its module is"),
    ("module { func.func @main() { return } }", "takes 0 arguments, there are 2 inputs")])
def test_what_does_not_fit(module, message):
    step = xlac.cluster(graph(module, ["x", "w"], [F, F], [F, "DT_INT32"])).executable(["x", "w"], ["c"])
    with pytest.raises(xlac.Error, match=f"node 'c'.*{message}"):
        step(np.zeros((2, 3)), np.zeros((3, 2)))


def test_other_platforms():
    with pytest.raises(xlac.Error, match="for other platforms than CPUs"):
        xlac.cluster(graph(TEXT, ["x", "w"], [F, F], [F, "DT_INT32"], platforms='s: "TPU"')).executable(["x", "w"], ["c"])(np.zeros((2, 3)), np.zeros((3, 2)))
