"""Groups of 8 devices under ThreadSanitizer, called by several threads, some interrupted. It compiles the whole core, which takes minutes: with
XLAC_SPMD_DRIVERS=1 only."""
import os
import pathlib
import subprocess

import pytest
import test_groups
import test_orders
import test_turns

HERE = pathlib.Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
ALL = '{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids'
ADD = "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %s : tensor<f32> })"


def manual(n, op, result, n_result):
    """A collective of n elements a device, three times."""
    part, out = f"tensor<{n}xf32>", f"tensor<{n_result}xf32>"
    body = "\n".join(f"%r{i} = {op} : ({part}) -> {out}" for i in range(3))
    return f"""{MESH}func.func @main(%x: tensor<{8 * n}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x", "y"}}]>}}) -> {result} {{
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"x", "y"}}]>] out_shardings=[<@mesh, [{{}}]>] manual_axes={{"x", "y"}} (%b: {part}) {{
  {body}
  sdy.return %r2 : {out} }} : (tensor<{8 * n}xf32>) -> {result}
  return %0 : {result} }}"""


PROGRAMS = {
    "all_reduce": manual(8192, f'"stablehlo.all_reduce"(%b) {ADD} {ALL}}}', "tensor<8192xf32>", 8192),
    "all_reduce of few": manual(16, f'"stablehlo.all_reduce"(%b) {ADD} {ALL}}}', "tensor<16xf32>", 16),
    "all_gather": manual(2048, f'"stablehlo.all_gather"(%b) {ALL}, all_gather_dim = 0 : i64}}', "tensor<16384xf32>", 16384),
    "sort": MESH + test_orders.sort_text((4096,), 0, [("x", "y")], test_orders.CANONICAL),
    "product": MESH + """func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %w: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.tanh %0 : tensor<64x64xf32>
  return %1 : tensor<64x64xf32> }""",
    "turns": MESH + """func.func @main(%x: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %y = stablehlo.tanh %x : tensor<512x256xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<512x256xf32>, tensor<f32>) -> tensor<512xf32>
  %w = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<512xf32>) -> tensor<512x256xf32>
  %o = stablehlo.multiply %y, %w : tensor<512x256xf32>
  %p = stablehlo.sine %o : tensor<512x256xf32>
  return %p : tensor<512x256xf32> }""",
    "alike": test_turns.BLOCK,
    "attention": test_turns.ATTENTION.replace("512", "64"),
    "halves of weights": test_turns.HALVES,
    "whole weights": test_turns.PRODUCTS.replace('"d"=4', '"d"=8').replace("256x", "512x").replace("0:256", "0:512"),
    "loop": MESH.replace('"x"', '"a"').replace('"y"', '"b"') + f"func.func @main{test_groups.LOOP[1]} {{\n{test_groups.LOOP[0].replace('2000000000', '9')}\n}}",
}


@pytest.mark.skipif(not os.environ.get("XLAC_SPMD_DRIVERS"), reason="XLAC_SPMD_DRIVERS is not set")
def test_groups_have_no_races(tmp_path):
    program = pathlib.Path(os.environ.get("XLAC_SPMD_PROGRAM", tmp_path / "groups"))
    if not program.exists():
        subprocess.run(["cc", "-std=gnu11", "-O1", "-g", "-fsanitize=thread", f"-I{CSRC}", f"-I{CSRC / 'include'}", HERE / "drivers/stress_groups.c", CSRC / "xlac_all.c",
                        "-o", program, "-lm", "-lpthread", "-ldl"], check=True)
    texts = []
    for name, text in PROGRAMS.items():
        texts.append(tmp_path / f"{name}.mlir")
        texts[-1].write_text(text)
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([program, *texts], capture_output=True, text=True, timeout=900, env=environment)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0 and "WARNING" not in done.stderr, (done.stdout + done.stderr)[:4000]
