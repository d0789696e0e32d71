"""explain("sharding"): what every device computes whole and why, what moves, how arguments and results are cut."""
import numpy as np
import pytest
import test_spmd_jax

import xlac
from xlac.errors import ArgumentError

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
X = '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}'


def compiled(body, signature, devices=4):
    return xlac.compile(xlac.parse(f"{MESH}func.func @main{signature} {{\n{body}\n}}", format="mlir"), devices=devices)


def test_what_is_computed_whole_has_a_cause_and_a_remedy():
    body = """%l = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.constant dense<8> : tensor<2xi64>
  %r = stablehlo.rng %l, %h, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x8xf32>
  %0 = stablehlo.add %r, %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>"""
    found = compiled(body, f'({X}, %h: tensor<f32>) -> tensor<8x8xf32>').explain("sharding")
    [row] = found.data["gathers"]
    assert row["op"] == "stablehlo.rng" and row["line"] == 5 and row["why"] and row["remedy"]
    assert "stablehlo.rng at line 5" in found and found.data["whole"] is None


def test_moves_have_kind_axes_bytes_and_a_reader():
    body = """%z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.negate %0 : tensor<8xf32>
  return %1 : tensor<8xf32>"""
    found = compiled(body, f"({X}) -> tensor<8xf32>").explain("sharding")
    [row] = [row for row in found.data["moves"] if row["kind"] == "all_reduce"]
    assert row["axes"] == "a" and row["bytes"] == 16 and row["op"] == "stablehlo.reduce" and row["line"] == 4
    assert row["reader"]["op"] == "stablehlo.negate" and row["reader"]["line"] == 5
    assert "all_reduce along a: 16B of stablehlo.reduce at line 4, for stablehlo.negate at line 5" in found
    assert found.data["arguments"] == [{"dims": [8, 8], "shard": [4, 4], "bytes": 64, "view": False, "sharding": '#sdy.sharding<mesh<["a"=2, "b"=2]>, [{"a"}, {"b"}]>'}]


def test_collectives_of_the_programs_own():
    text = """HloModule m, num_partitions=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0) ROOT s = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }"""
    found = xlac.compile(xlac.parse(text), devices=2).explain("sharding").data
    [row] = found["moves"]
    assert (row["kind"], row["axes"], row["bytes"], row["line"], row["reader"]) == ("all_reduce", "", 16, 3, None)
    assert (found["devices"], found["replicas"], found["partitions"]) == (2, 1, 2)


def test_a_program_for_one_device_has_none():
    exe = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}"))
    with pytest.raises(ArgumentError, match="one device"):
        exe.explain("sharding")


@pytest.mark.parametrize("name", test_spmd_jax.names())
def test_no_program_runs_whole(name):
    """What the partitioner's passes refuse would run whole on every device: slow, and hiding a fault of theirs."""
    exe = xlac.compile(xlac.parse(test_spmd_jax.rows()[name]["programs"]["8"], format="mlir"), devices=8)
    assert exe.explain("sharding").data["whole"] is None


def test_library_functions_are_whole_along_what_their_rule_does_not_share():
    body = """%0 = stablehlo.custom_call @doubled(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=8, k=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>"""
    xlac.register_custom_call("doubled", lambda x: np.asarray(x) + np.asarray(x).sum(1, keepdims=True))
    try:
        exe = compiled(body, f"({X}) -> tensor<8x8xf32>")
        x = np.arange(64, dtype=np.float32).reshape(8, 8)
        np.testing.assert_array_equal(exe(x), x + x.sum(1, keepdims=True))
        [row] = exe.explain("sharding").data["gathers"]
        assert (row["op"], row["tensor"], row["dim"]) == ("stablehlo.custom_call", 0, 1)
    finally:
        xlac.register_custom_call("doubled", None)


def test_branches_may_return_what_is_sharded_otherwise():
    body = """%0 = "stablehlo.if"(%p) ({ %s = stablehlo.add %x, %x : tensor<8x8xf32>
    stablehlo.return %s : tensor<8x8xf32> }, { stablehlo.return %x : tensor<8x8xf32> }) : (tensor<i1>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>"""
    exe = compiled(body, f"({X}, %p: tensor<i1>) -> tensor<8x8xf32>")
    assert exe.explain("sharding").data["whole"] is None
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(exe(x, np.array(True)), x + x)
    np.testing.assert_array_equal(exe(x, np.array(False)), x)


def test_functions_of_chlo_are_local():
    body = """%0 = chlo.square %x : tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = chlo.erf_inv %0 : tensor<8x8xf32> -> tensor<8x8xf32>
  %v, %i = chlo.top_k(%1, k = 3) : tensor<8x8xf32> -> (tensor<8x3xf32>, tensor<8x3xi32>)
  return %v, %i : tensor<8x3xf32>, tensor<8x3xi32>"""
    exe = compiled(body, '(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> (tensor<8x3xf32>, tensor<8x3xi32>)')
    assert exe.explain("sharding").data["gathers"] == []
    x = np.random.default_rng(0).uniform(0, 0.9, (8, 8)).astype(np.float32)
    values, numbers = exe(x)
    np.testing.assert_array_equal(numbers, np.argsort(-x, 1)[:, :3])
    assert values.shape == (8, 3)
