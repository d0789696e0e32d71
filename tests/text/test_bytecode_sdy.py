"""Shardy's dialect in bytecode: we read what jaxlib writes and jaxlib reads what we write, programs of every op and attribute."""
import json
import lzma
import os
import pathlib

import pytest

import xlac

jm = pytest.importorskip("jax._src.interpreters.mlir")
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

SHARED = pathlib.Path(os.environ.get("XLAC_CONFORMANCE") or pathlib.Path(__file__).resolve().parents[3] / "shared" / "conformance")

EVERY_OP = """sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {"b":(2)2}], replicated={"b":(1)2}>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {?}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <mesh<["x"=2], device_ids=[1, 0]>, [{"x"}, {}]> : tensor<8x8xf32>
  sdy.sharding_group %1 group_id=3 : tensor<8x8xf32>
  %2 = sdy.manual_computation(%1, %arg1) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%x: tensor<4x8xf32>, %y: tensor<8x2xf32>) {
    %5 = stablehlo.dot %x, %y : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    sdy.return %5 : tensor<4x2xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.propagation_barrier %2 allowed_direction=BACKWARD : tensor<8x8xf32>
  %20:2 = stablehlo.optimization_barrier %3, %3 : tensor<8x8xf32>, tensor<8x8xf32>
  %4 = sdy.data_flow_edge %20#0 sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %6 = sdy.data_flow_edge %20#1 : tensor<8x8xf32>
  %7 = sdy.named_computation<"foo">(%6) in_shardings=[<@mesh, [{}, {}]>] (%z: tensor<8x8xf32>) {
    %8 = stablehlo.add %z, %z {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>} : tensor<8x8xf32>
    sdy.return %8 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = sdy.constant dense<1.5> : tensor<8x8xf32>
  %9 = stablehlo.add %7, %c : tensor<8x8xf32>
  %12 = sdy.reshard %9 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %11 = sdy.all_slice [{"a"}, {}] %12 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %10 = sdy.all_gather [{"a"}, {}] %11 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %u = sdy.sharding_constraint %10 <@mesh, [{"b"}, {}], unreduced={"a"}> : tensor<8x8xf32>
  %30 = sdy.all_reduce {"a"} %u out_sharding=<@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %31:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}], unreduced={"a"}>]>} %u, %u : tensor<8x8xf32>, tensor<8x8xf32>
  %32 = sdy.all_to_all [{"b"}: 0->1] %30 out_sharding=<@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  %33 = sdy.collective_permute %32 out_sharding=<@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  %34 = sdy.reduce_scatter [{"a"}, {}] %u out_sharding=<@mesh, [{"b", "a"}, {}]> : tensor<8x8xf32>
  %35 = sdy.replicated_to_unreduced {"a"} %33 out_sharding=<@mesh, [{}, {"b"}], unreduced={"a"}> : tensor<8x8xf32>
  %36 = sdy.sharded_to_unreduced [{}, {"b"}] %33 out_sharding=<@mesh, [{}, {}], unreduced={"b"}> : tensor<8x8xf32>
  %37 = stablehlo.convert %10 : (tensor<8x8xf32>) -> tensor<8x8xf8E4M3FN>
  %38 = sdy.sharding_constraint %37 <@mesh, [{}, {}]> : tensor<8x8xf8E4M3FN>
  return %30 : tensor<8x8xf32>
}
"""


def artifact_of(context, text):
    """What jaxlib writes for a program; None where it can't: newer syntax, dialects that have no form in bytecode."""
    with context:
        try:
            return stablehlo.serialize_portable_artifact(ir.Module.parse(text), "1.17.0", allow_other_dialects=True)
        except (ir.MLIRError, ValueError):
            return None


def assert_both_ways(context, artifact):
    with context:
        want = str(stablehlo.deserialize_portable_artifact(context, artifact))
        module = xlac.parse(artifact)
        ours = module.to_bytes("mlir-bytecode")
        assert xlac.parse(ours).to_text() == module.to_text()
        assert str(stablehlo.deserialize_portable_artifact(context, ours)) == want


def test_every_op_and_attribute_goes_both_ways():
    artifact = artifact_of(jm.make_ir_context(), EVERY_OP)
    assert_both_ways(jm.make_ir_context(), artifact)
    assert xlac.parse(artifact).to_text() == xlac.parse(xlac.parse(EVERY_OP).to_bytes("mlir-bytecode")).to_text()


def test_any_cut_or_flipped_artifact_is_refused_or_read_whole():
    artifact = artifact_of(jm.make_ir_context(), EVERY_OP)
    for at in range(0, len(artifact), 3):
        for data in (artifact[:at], artifact[:at] + bytes([artifact[at] ^ 4]) + artifact[at + 1:]):
            try:
                xlac.parse(data, format="mlir-bytecode").to_bytes("mlir-bytecode")
            except xlac.Error as error:
                assert str(error)


def programs(step):
    for name, key in (("cases", "input"), ("cross", "input")):
        path = SHARED / "shardy" / f"{name}.jsonl.xz"
        if not path.exists():
            pytest.skip("no conformance data")
        with lzma.open(path, "rt") as file:
            for i, line in enumerate(file):
                if i % step == 0:
                    yield json.loads(line)[key]


def test_programs_of_shardy_go_both_ways():
    context = jm.make_ir_context()
    compared = 0
    for text in programs(int(os.environ.get("XLAC_SDY_STEP", "10"))):
        artifact = artifact_of(context, text)
        if artifact is not None:
            assert_both_ways(context, artifact)
            compared += 1
    assert compared > 100
