"""Unreduced axes: values whose parts are still to be added up between devices, in programs, in arguments and in results."""
import re

import numpy as np
import pytest
import random_groups

import xlac
from xlac.sharding import Mesh, Sharding

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'


def said(dims, unreduced=()):
    parts = ", unreduced={" + ", ".join(f'"{a}"' for a in unreduced) + "}" if unreduced else ""
    return "<@mesh, [" + ", ".join("{" + ", ".join(f'"{a}"' for a in d) + "}" for d in dims) + "]" + parts + ">"


def compiled(arguments, outputs, body, **options):
    """arguments: (type, sharding); outputs: (value, type, sharding)."""
    inside = ", ".join(f"%a{i}: {t} {{sdy.sharding = #sdy.sharding{s}}}" for i, (t, s) in enumerate(arguments))
    outside = ", ".join(f"{t} {{sdy.sharding = #sdy.sharding{s}}}" for _, t, s in outputs)
    text = (f"{MESH}func.func @main({inside}) -> ({outside}) {{\n{body}\n"
            f"return {', '.join(v for v, _, _ in outputs)} : {', '.join(t for _, t, _ in outputs)}\n}}")
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4, **options)
    assert exe.explain("sharding").data["whole"] is None
    return exe


def shards(buffer):
    return [s.data.numpy().tolist() for s in buffer.shards]


def moves(exe):
    return [m["kind"] for m in exe.explain("sharding").data["moves"]]


X = np.arange(8, dtype=np.float32).reshape(4, 2)
LEFT = ("tensor<4x2xf32>", said([(), ("x",)]))
RIGHT = ("tensor<2x2xf32>", said([("x",), ()]))
DOT = "%v = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>"\
    "\n%0 = sdy.sharding_constraint %v <@mesh, [{}, {}], unreduced={\"x\"}> : tensor<4x2xf32>"


def test_a_product_is_left_in_parts():
    w = np.array([[1, 2], [3, 4]], np.float32)
    exe = compiled([LEFT, RIGHT], [("%0", "tensor<4x2xf32>", said([(), ()], "x"))], DOT, results="sharded")
    y = exe(X, w)
    assert moves(exe) == []
    assert shards(y) == [(X[:, :1] @ w[:1]).tolist()] * 2 + [(X[:, 1:] @ w[1:]).tolist()] * 2
    np.testing.assert_array_equal(y.numpy(), X @ w)
    np.testing.assert_array_equal(compiled([LEFT, RIGHT], [("%0", "tensor<4x2xf32>", said([(), ()], "x"))], DOT)(X, w), X @ w)


def test_parts_go_in_and_are_added_up():
    parts = said([(), ()], "x")
    first = compiled([("tensor<4x2xf32>", said([("x",), ()]))], [("%a0", "tensor<4x2xf32>", parts)], "", results="sharded")
    y = first(X)
    top, low = X.copy(), X.copy()
    top[2:], low[:2] = 0, 0
    assert shards(y) == [top.tolist()] * 2 + [low.tolist()] * 2 and moves(first) == []
    for to, kind in ((said([(), ()]), "all_reduce"), (said([("x",), ()]), "reduce_scatter")):
        exe = compiled([("tensor<4x2xf32>", parts)], [("%a0", "tensor<4x2xf32>", to)], "", results="sharded")
        before = xlac.stats()["copies_in"]
        np.testing.assert_array_equal(exe(y).numpy(), X)
        assert xlac.stats()["copies_in"] == before and moves(exe) == [kind]
        np.testing.assert_array_equal(exe(X).numpy(), X)  # a whole array is the first part, and zeros
        np.testing.assert_array_equal(exe(xlac.ShardedBuffer.of(X, Sharding(Mesh({"x": 2, "y": 2}), [(), ()], unreduced=["x"]))).numpy(), X)
        np.testing.assert_array_equal(exe(xlac.ShardedBuffer.of(X, Sharding(Mesh({"x": 2, "y": 2}), ["y", ()], unreduced=["x"]))).numpy(), X)


@pytest.mark.parametrize("line, f, sums", [
    ("stablehlo.add %a0, %a0 : tensor<4x2xf32>", lambda x: x + x, 0),
    ("stablehlo.negate %a0 : tensor<4x2xf32>", lambda x: -x, 0),
    ("stablehlo.multiply %a0, %a1 : tensor<4x2xf32>", lambda x: x * 3, 0),
    ("stablehlo.divide %a0, %a1 : tensor<4x2xf32>", lambda x: x / 3, 0),
    ("stablehlo.divide %a1, %a0 : tensor<4x2xf32>", lambda x: 3 / x, 1),
    ("stablehlo.multiply %a0, %a0 : tensor<4x2xf32>", lambda x: x * x, 2),
    ("stablehlo.add %a0, %a1 : tensor<4x2xf32>", lambda x: x + 3, 1),
    ("stablehlo.tanh %a0 : tensor<4x2xf32>", np.tanh, 1),
    ("stablehlo.reverse %a0, dims = [0] : tensor<4x2xf32>", lambda x: x[::-1], 0),
])
def test_ops_compute_on_parts_where_sums_go_through(line, f, sums):
    parts = said([(), ()], "x")
    exe = compiled([("tensor<4x2xf32>", parts), ("tensor<4x2xf32>", said([(), ()]))], [("%0", "tensor<4x2xf32>", parts)], f"%v = {line}\n%0 = sdy.sharding_constraint %v {parts} : tensor<4x2xf32>", results="sharded")
    split = compiled([("tensor<4x2xf32>", said([("x",), ()]))], [("%a0", "tensor<4x2xf32>", parts)], "", results="sharded")
    y = exe(split(X + 1), np.full((4, 2), 3, np.float32))
    np.testing.assert_allclose(y.numpy(), f(X + 1), rtol=1e-6)
    assert moves(exe) == ["all_reduce"] * sums


def test_what_only_says_parts_is_the_value_on_one_device():
    exe = compiled([], [("%0", "tensor<2xf32>", said([()], "xy"))], "%v = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
                   f"%0 = sdy.sharding_constraint %v {said([()], 'xy')} : tensor<2xf32>", results="sharded")
    assert shards(exe()) == [[1, 2], [0, 0], [0, 0], [0, 0]]
    np.testing.assert_array_equal(exe().numpy(), [1, 2])


@pytest.mark.parametrize("dtype, text", [(np.int8, "i8"), (np.complex64, "complex<f32>"), (np.float16, "f16"), (bool, "i1")])
def test_parts_of_every_type_are_added_up(dtype, text):
    x = np.array([1, 0, 3, 0, 5, 1, 0, 2]).astype(dtype)
    exe = compiled([(f"tensor<8x{text}>", said([("y",)], "x"))], [("%a0", f"tensor<8x{text}>", said([("y",)], "x"))], "")
    np.testing.assert_array_equal(exe(x), x)


def test_parts_are_added_up_behind_what_they_go_through():
    text = """sdy.mesh @other = <["q"=3]>
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %w: tensor<8x16xf32>) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], unreduced={"y"}>]>} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}], unreduced={"y"}>]>} : tensor<8x16xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x16xf32>
  %3 = sdy.reshard %2 <@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}"""
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4)  # @other is nobody's
    a, w = np.arange(64, dtype=np.float32).reshape(8, 8), np.arange(128, dtype=np.float32).reshape(8, 16) % 5
    np.testing.assert_array_equal(exe(a, w), 2 * (a @ w))
    data = exe.explain("sharding").data
    assert data["whole"] is None and data["gathers"] == []


def test_parts_that_cannot_be_carried_are_added_up_where_they_are_and_it_is_said():
    """The sum cannot be left in parts: what is summed is cut otherwise than what it is multiplied with."""
    text = random_groups.Program(2504, True).text()
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=int(np.prod([n for _, n in random_groups.Program(2504, True).mesh])))
    found = exe.explain("sharding")
    assert found.data["whole"] is None and re.search(r"\(line \d+\)$", found.data["summed"])
    assert "sums are made where their parts are, not where the program says" in found
    assert random_groups.check(2504, unreduced=True) == "right"
