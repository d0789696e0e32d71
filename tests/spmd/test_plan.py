"""xlac.sharding.plan: meshes and annotations, found by simulating what propagation makes of them."""
import ast
import json

import numpy as np
import pytest

import xlac
from xlac import sharding_plan
from xlac.sharding import measure_hardware, plan, simulate

# Two layers of a network whose weights are large beside its batch.
MLP = """func.func @main(%up: tensor<512x2048xf32> loc("params['up']"), %down: tensor<2048x512xf32> loc("params['down']"), %x: tensor<64x512xf32> loc("x")) -> tensor<64x512xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32>
  %1 = stablehlo.tanh %0 : tensor<64x2048xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32>
  return %2 : tensor<64x512xf32>
}"""
WEIGHTS = 2 * 512 * 2048 * 4
SLOW = {"base": "h100x8-ib", "matrix": 1e10, "step_seconds": 1e-7}  # so that work is worth sharing


def parsed(text=MLP):
    return xlac.parse(text, format="mlir")


def test_work_is_shared():
    found = plan(parsed(), 8, hardware=SLOW)
    assert found.simulation.devices == 8 and found.simulation.seconds < simulate(parsed(), hardware=SLOW).seconds / 3
    assert found.moves and found.moves[0].after < found.moves[0].before
    assert [a.seconds for a in found.alternatives][0] == min(a.seconds for a in found.alternatives)
    assert found.mesh == found.alternatives[0].mesh and found.evaluations <= 400
    assert list(found.specs) == ["params['up']", "params['down']", "x"]


def test_little_memory_means_cut_weights():
    """Data parallelism would be quickest, but wants all weights on each device."""
    found = plan(parsed(), 8, memory=WEIGHTS // 2, hardware=SLOW)
    assert found.simulation.peak_bytes <= WEIGHTS // 2 and found.simulation.fits
    assert found.specs["params['up']"] != "P()" and found.specs["params['down']"] != "P()"


def test_the_module_is_what_was_simulated():
    found = plan(parsed(), 8, hardware=SLOW)
    again = simulate(found.module, hardware=SLOW)
    assert (again.seconds, again.peak_bytes) == (found.simulation.seconds, found.simulation.peak_bytes)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape).astype(np.float32) for shape in ((512, 2048), (2048, 512), (64, 512))]
    np.testing.assert_allclose(xlac.compile(found.module, devices=8)(*values), xlac.compile(parsed())(*values), rtol=1e-3, atol=1e-3)


def test_what_it_says():
    found = plan(parsed(), 4, hardware=SLOW)
    text = str(found)
    assert "4 devices" in text and "PartitionSpec" in text and "other meshes" in text and str(found.moves[0]) in text
    ast.parse(found.code)
    assert f"jax.make_mesh({tuple(size for _, size in found.mesh.axes)}, ('data', 'model'))" in found.code
    assert json.loads(json.dumps(found.data))["specs"] == found.specs
    assert "<table>" in found._repr_html_() and "Plan" in repr(found)
    assert set(found.annotations) == {row for row in xlac.sharding.shardings(found.module) if row.startswith("%")}


def test_it_is_deterministic_and_bounded():
    one, two = (plan(parsed(), 8, hardware=SLOW, evaluations=30) for _ in range(2))
    assert (one.mesh, one.specs, one.evaluations) == (two.mesh, two.specs, two.evaluations) and one.evaluations <= 30


def test_progress_and_stopping():
    seen = []
    plan(parsed(), 2, hardware=SLOW, progress=lambda done, most: seen.append((done, most)))
    assert seen == [(i + 1, 400) for i in range(len(seen))] and seen

    def stop(done, most):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(parsed(), 2, progress=stop)


def test_its_own_annotations_are_compared():
    text = 'sdy.mesh @grid = <["rows"=8]>\n' + MLP.replace('loc("x")', '{sdy.sharding = #sdy.sharding<@grid, [{"rows"}, {}]>}')
    found = plan(parsed(text), 8, hardware=SLOW)
    assert found.as_it_is is not None and found.simulation.seconds <= found.as_it_is.seconds
    assert list(found.mesh.shape) == ["rows"] and "the program's own annotations" in str(found)
    assert plan(parsed(text), 4, hardware=SLOW).as_it_is is None


def test_groups_of_layers():
    arguments = [sharding_plan.Argument(f"%arg{i}", f"p['layers'][{i}]['w']", (8, 8), "f32", 256) for i in range(3)]
    rows = [{"name": a.name, "main": True, "opcode": "argument", "operands": [], "type": "tensor<8x8xf32>"} for a in arguments]
    assert {name: len(members) for name, members in sharding_plan.groups_of(arguments, rows).items()} == {"p['layers'][*]['w']": 3}


@pytest.mark.parametrize("given, bytes", [("80GB", 80e9), ("16 GiB", 16 * 2**30), ("1.5kb", 1500), (7, 7), (2.5e9, 2.5e9)])
def test_memory_in_words(given, bytes):
    assert sharding_plan.bytes_of(given) == bytes


@pytest.mark.parametrize("options, match", [
    ({"memory": "much"}, "not a number of bytes"), ({"memory": "3 XB"}, "not a number of bytes"), ({"memory": -1}, "not a number of bytes"),
    ({"memory": True}, "not a number of bytes"), ({"devices": 0}, "devices: 0"), ({"devices": 2.0}, "devices: 2.0"), ({"devices": 2**21}, "devices"),
    ({"evaluations": 0}, "evaluations: 0"), ({"hardware": "abacus"}, "no hardware")])
def test_what_is_no_plan(options, match):
    with pytest.raises(xlac.ArgumentError, match=match):
        plan(parsed(), **{"devices": 4, **options})


def test_too_little_memory_says_what_would_do():
    with pytest.raises(xlac.ArgumentError, match="needs .*B at the least") as caught:
        plan(parsed(), 4, memory="1kB", hardware=SLOW)
    least = int(caught.value.hint.partition("memory=")[2].partition(",")[0])
    assert plan(parsed(), 4, memory=least, hardware=SLOW).simulation.peak_bytes <= least


def test_this_machine():
    machine = measure_hardware()
    assert machine.matrix["default"] > 1e8 and machine.memory_bandwidth > 1e8 and machine.levels[0].bandwidth > 1e6 and machine.at_once >= 1
    assert simulate(parsed(), hardware=machine).seconds > 0
    with pytest.raises(xlac.ArgumentError, match="devices: 1"):
        measure_hardware(1)
