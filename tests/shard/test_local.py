"""Programs made local: types, collectives, places of shards, padding; and what they compute on devices."""
import os
import pathlib
import subprocess
import sys

import pytest

import xlac

HERE = pathlib.Path(__file__).parent
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'


def run(text, passes="sdy-convert-global-to-local,sdy-drop-sharding-and-mesh"):
    module = xlac.parse(text, format="mlir")
    module.verify()
    return module.run(passes).to_text()


def moved(op, before, after, shape="8x8xf32"):
    """One of the dialect's collectives from a sharding to another."""
    return MESH + f"""func.func @main(%a: tensor<{shape}> {{sdy.sharding = #sdy.sharding<@mesh, {before}>}})
    -> (tensor<{shape}> {{sdy.sharding = #sdy.sharding<@mesh, {after}>}}) {{
  %0 = sdy.{op} %a out_sharding=<@mesh, {after}> : tensor<{shape}>
  return %0 : tensor<{shape}>
}}"""


@pytest.mark.parametrize("op, before, after, words", [
    ('all_gather [{"b"}, {}]', '[{"a", "b"}, {}]', '[{"a"}, {}]',
     ['"stablehlo.all_gather"', "dense<[[0, 1, 2, 3], [4, 5, 6, 7]]>", "(tensor<1x8xf32>) -> tensor<4x8xf32>"]),
    ('all_slice [{}, {"b":(2)2}]', "[{}, {}]", '[{}, {"b":(2)2}]',
     ["dense<[0, 4, 0, 4, 0, 4, 0, 4]>", "stablehlo.partition_id", "-> tensor<8x4xf32>"]),
    ('all_to_all [{"b"}: 0->1]', '[{"b"}, {}]', '[{}, {"b"}]', ["split_count = 4", "concat_dimension = 0", "-> tensor<8x2xf32>"]),
    ("collective_permute", '[{"a", "b"}, {}]', '[{"b", "a"}, {}]',
     ["dense<[[0, 0], [1, 4], [2, 1], [3, 5], [4, 2], [5, 6], [6, 3], [7, 7]]>"]),
    ('all_reduce {"a"}', '[{"b"}, {}]', '[{"b"}, {}]', ['"stablehlo.all_reduce"', "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]>", "handle = 1"]),
    ('reduce_scatter [{}, {"a"}]', '[{"b"}, {}]', '[{"b"}, {"a"}]', ['"stablehlo.reduce_scatter"', "-> tensor<2x4xf32>"]),
])
def test_collectives(op, before, after, words):
    text = run(moved(op, before, after))
    assert "sdy" not in text
    for word in words:
        assert word in text


def test_iota_counts_from_its_shard():
    text = run(MESH + """func.func @main() -> (tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xi32>
  return %0 : tensor<8xi32>
}""")
    assert "dense<[0, 0, 0, 0, 4, 4, 4, 4]>" in text and "stablehlo.add" in text


def test_loops_are_local():
    text = run(MESH + """func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %p = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.while(%x = %a) : tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}""")
    assert "tensor<8xf32>" not in text and text.count("tensor<4xf32>") == 6


REFUSED = {
    "uneven": (moved('all_slice [{"b"}, {}]', "[{}, {}]", '[{"b"}, {}]', "6x8xf32"), 4, "even"),
    "a reshard": (moved("reshard", '[{"a"}, {}]', "[{}, {}]").replace("out_sharding=", ""), 4, "legalize"),
    "a sum without an all-reduce": (MESH + """func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<f32> {
  %0 = stablehlo.dot %a, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}""", 3, "all_reduce"),
    "another sharding returned": (MESH + """func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}""", 3, "reshard"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    text, line, word = REFUSED[name]
    with pytest.raises(xlac.Error) as caught:
        run(text)
    assert caught.value.line == line and word in str(caught.value)


# --- padding ---

PAD = "sdy-pad-for-divisibility"


def test_padding_goes_before_the_cut_and_after_the_gather():
    text = run(MESH + """func.func @main(%a: tensor<6xf32>) -> tensor<6xf32> {
  %0 = sdy.all_slice [{"b"}] %a out_sharding=<@mesh, [{"b"}]> : tensor<6xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<6xf32>
  %2 = sdy.all_gather [{"b"}] %1 out_sharding=<@mesh, [{}]> : tensor<6xf32>
  return %2 : tensor<6xf32>
}""", PAD)
    assert "high = [2]" in text and "stablehlo.negate %1" in text and "[0:6]" in text


def test_what_is_cut_already_is_gathered_before_it_is_padded():
    """Two shards of three elements are not the first half of four shards of two."""
    text = run(MESH + """func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<6xf32> {
  %0 = sdy.all_slice [{"b":(1)2}] %a out_sharding=<@mesh, [{"a", "b":(1)2}]> : tensor<6xf32>
  %1 = sdy.all_gather [{"a", "b":(1)2}] %0 out_sharding=<@mesh, [{}]> : tensor<6xf32>
  return %1 : tensor<6xf32>
}""", PAD)
    assert text.index('sdy.all_gather [{"a"}] %arg0') < text.index("high = [2]") < text.index('sdy.all_slice [{"a", "b":(1)2}]')


def test_sums_over_padding_see_zeros():
    text = run(MESH + """func.func @main(%a: tensor<6xf32>) -> tensor<f32> {
  %0 = sdy.all_slice [{"b"}] %a out_sharding=<@mesh, [{"b"}]> : tensor<6xf32>
  %1 = stablehlo.exponential %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<6xf32>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [0] x [0] : (tensor<6xf32>, tensor<6xf32>) -> tensor<f32>
  %3 = sdy.all_reduce {"b"} %2 out_sharding=<@mesh, []> : tensor<f32>
  return %3 : tensor<f32>
}""", PAD)
    assert text.count("stablehlo.select") == 1  # of what is no longer zero


@pytest.mark.parametrize("where, line", [("argument", 2), ("result", 2)])
def test_uneven_signature(where, line):
    sharding = ' {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}'
    first, second = (sharding, "") if where == "argument" else ("", sharding)
    with pytest.raises(xlac.Error) as caught:
        run(MESH + f"func.func @main(%a: tensor<6xf32>{first}) -> (tensor<6xf32>{second}) {{\n  return %a : tensor<6xf32>\n}}", PAD)
    assert caught.value.line == line and where in str(caught.value)


# --- on devices ---

def test_on_devices():
    """XLA on 8 devices computes what the whole program does. SPMD=2000 tries more programs."""
    pytest.importorskip("jax")
    programs = os.environ.get("SPMD", "24")
    done = subprocess.run([sys.executable, str(HERE / "spmd.py"), "0", programs], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
