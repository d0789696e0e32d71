"""Op sharding rules, one op each; the expected ones are Shardy's."""
import re

import pytest

import xlac

ARGS = "%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<4x16xf32>, %z: tensor<f32>, %i: tensor<i32>, %p: tensor<i1>"
RULES = [
    ("stablehlo.add %a, %b : tensor<8x4xf32>", "([i, j], [i, j])->([i, j]) {i=8, j=4}"),
    ("stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>",
     "([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}"),
    ("stablehlo.transpose %a, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>", "([j, i])->([i, j]) {i=4, j=8}"),
    ("stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<32xf32>", "([i, j])->([ij]) {i=8, j=4}"),
    ("stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<2x16xf32>", "([ij, k])->([i, jk]) {i=2, j=4, k=4}"),
    ("stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<8x4xf32>) -> tensor<8x3x4xf32>", "([i, k])->([i, j, k]) {i=8, j=3, k=4}"),
    ("stablehlo.slice %a [0:4, 0:4] : (tensor<8x4xf32>) -> tensor<4x4xf32>", "([i, j])->([i, j]) {i=8, j=4} permutation={i}"),
    ("stablehlo.concatenate %a, %b, dim = 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>",
     "([i, j], [i, j])->([i, j]) {i=16, j=4} need_replication={i}"),
    ("stablehlo.dynamic_slice %a, %i, %i, sizes = [2, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>",
     "([i, j], [], [])->([i, j]) {i=8, j=4} need_replication={i} blocked_propagation={i}"),
    ("stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>",
     "([i, j], [])->([j]) {i=8, j=4} reduction={i}"),
    ("stablehlo.select %p, %a, %b : tensor<i1>, tensor<8x4xf32>", "([], [i, j], [i, j])->([i, j]) {i=8, j=4}"),
]


def rule(op, options=""):
    text = f"func.func @f({ARGS}) {{\n  %r = {op}\n  return\n}}\n"
    out = xlac.parse(text).run(f"func.func(sdy-populate-op-sharding-rules{options})").to_text()
    found = re.search(r"op_sharding_rule<(.*?)>[},]", out)
    return found and found.group(1)


@pytest.mark.parametrize("op, want", RULES)
def test_rule(op, want):
    assert rule(op) == want


def test_conservative_rules_leave_out_what_is_cut_up():
    assert rule(RULES[6][0], "{conservative-propagation=true}").endswith("blocked_propagation={i}")
    assert rule(RULES[7][0], "{conservative-propagation=true}") == "([j, i], [k, i])->([l, i]) {i=4, j=1, k=1, l=1}"


def test_an_op_without_a_rule():
    assert rule("stablehlo.custom_call @nobody_knows(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>") is None


def test_a_rule_that_is_there_stays():
    own = "#sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4} blocked_propagation={i}, custom>"
    text = f"func.func @f({ARGS}) {{\n  %r = stablehlo.add %a, %b {{sdy.sharding_rule = {own}}} : tensor<8x4xf32>\n  return\n}}\n"
    assert own in xlac.parse(text).run("func.func(sdy-populate-op-sharding-rules)").to_text()
