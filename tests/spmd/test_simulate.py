"""Rehearsals: xlac.sharding.simulate beside real groups, and its models by hand."""
import functools
import json
import lzma
import pathlib
import xml.etree.ElementTree as ElementTree

import pytest
import test_spmd_jax

import xlac
from xlac import links
from xlac.hardware import TABLE, hardware
from xlac.hardware_measure import half_length
from xlac.sharding import Level, Mesh, simulate
from xlac.simulated import lengths

MATMUL = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}, %w: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> tensor<64x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}"""
FLAT = {"base": "h100x8-ib", "levels": [{"size": None, "bandwidth": 1e9, "latency": 1e-6}], "step_seconds": 0.0}


def parsed(text=MATMUL):
    return xlac.parse(text, format="mlir")


@functools.cache
def gpt():
    rows = map(json.loads, lzma.open(pathlib.Path(__file__).with_name("gpt.jsonl.xz")))
    return parsed(next(row["text"] for row in rows if row["devices"] == 8))


def same_memory(module, devices, **options):
    real, found = xlac.compile(module, devices=devices, **options), simulate(module, hardware="cpu-ethernet", donate=options.get("donate", ()))
    for key in ("frame_bytes", "peak_bytes", "argument_bytes"):
        assert found.memory[key] == real.memory[key], key
    assert found.devices == devices and found.temporary_bytes == real.memory["peak_bytes"]
    return found


def test_memory_is_that_of_a_group():
    same_memory(parsed(), 8)
    same_memory(gpt(), 8)


@pytest.mark.parametrize("name", test_spmd_jax.names()[::9])
def test_memory_of_jax_programs(name):
    same_memory(xlac.parse(test_spmd_jax.rows()[name]["programs"]["8"], format="mlir"), 8)


def test_a_step_by_hand():
    """One product of a 16 x 16 by a 16 x 16 shard, one all-reduce of 16 x 16 floats over the two along "model"."""
    found = simulate(parsed(), hardware={**FLAT, "matrix": 1e9, "matrix_efficiency": 1.0, "memory_bandwidth": 1e15}, overlap=False)
    [(_, kind, axes, size, sent, seconds, algorithm)] = found.collectives
    assert (kind, axes, size, sent) == ("all-reduce", "model", 2, 16 * 16 * 4)
    assert seconds == pytest.approx(1e-6 + 1024 / 1e9) and algorithm == "recursive doubling"
    assert found.compute == pytest.approx(2 * 16 ** 3 / 1e9, rel=1e-3) and found.exposed == found.collective == pytest.approx(seconds)
    assert found.seconds == pytest.approx(found.compute + found.exposed) and found.overlapped == 0
    assert found.peak_bytes == 2 * 1024 + found.result_bytes + found.constant_bytes + found.temporary_bytes


def test_small_products_and_beginning_by_hand():
    """16 rows, columns and terms, each of which costs as much as 4 more; and a microsecond before anything is done."""
    machine = {**FLAT, "matrix": 1e9, "matrix_efficiency": 1.0, "memory_bandwidth": 1e15}
    plain = simulate(parsed(), hardware=machine, overlap=False)
    found = simulate(parsed(), hardware={**machine, "half_length": 4.0, "call_seconds": 1e-6}, overlap=False)
    assert plain.compute == pytest.approx(2 * 16 ** 3 / 1e9)
    assert found.compute == pytest.approx(plain.compute * 1.25 ** 3 + 1e-6) and found.exposed == pytest.approx(plain.exposed)
    assert found.seconds == pytest.approx(found.compute + found.exposed)


def test_batches_count_for_nothing_in_the_lengths_of_a_product():
    program = {"buffers": [{"type": "f32[5,32,8]"}, {"type": "f32[5,8,64]"}, {"type": "f32[5,32,64]"}, {"type": "(f32[2], s32[])"}]}
    step = {"in": [0, 1], "out": [2], "flops": 2 * 5 * 32 * 8 * 64}
    assert lengths(program, step) == [64, 32, 8]  # of columns, rows and terms
    assert lengths(program, {**step, "out": [3]}) == ()


def test_half_length_is_found_from_two_rates():
    rate, length = 2e11, 12.0
    large, small = rate / (1 + length / 512) ** 3, rate / ((1 + length / 32) ** 2 * (1 + length / 8))
    found = half_length(large, small, 512, (32, 32, 8))
    assert found == pytest.approx((rate, length), rel=1e-6)
    assert half_length(1e9, 2e9, 512, (32, 32, 8)) == pytest.approx((1e9, 0.0), abs=1e-3)  # small ones that are faster


def test_a_ring_by_hand():
    """Four devices, 1 MB: three steps of 250 kB to add up, three to hand out."""
    ways = links._all_reduce(1e6, 4, 1e-6, 1e9)
    assert ways["ring"] == pytest.approx(6 * (1e-6 + 250e-6))
    assert ways["recursive doubling"] == pytest.approx(2 * (1e-6 + 1e-3))
    assert links._all_gather(250e3, 4, 1e-6, 1e9)["ring"] == pytest.approx(3 * (1e-6 + 250e-6))
    assert links._reduce_scatter(1e6, 4, 1e-6, 1e9)["ring"] == pytest.approx(3 * (1e-6 + 250e-6))
    assert links._all_to_all(1e6, 4, 1e-6, 1e9)["pairwise"] == pytest.approx(3 * (1e-6 + 250e-6))


def test_hierarchical_by_hand():
    """Two nodes of four: added up within nodes (3/4 MB), between two on a quarter (250 kB), and handed out within nodes."""
    machine = hardware({**FLAT, "levels": [{"size": 4, "bandwidth": 1e9, "latency": 0.0}, {"size": None, "bandwidth": 1e8, "latency": 0.0}]})
    net = links.Network(machine, 8)
    cost = net.cost({"kind": "all-reduce", "bytes": 1e6, "axes": [[8, 1]], "size": 8})
    assert cost.seconds == pytest.approx(2 * 0.75e-3 + 2 * 0.5 * 250e3 / 1e8) and cost.level is machine.levels[1] and "hierarchical" in cost.algorithm
    inside = net.cost({"kind": "all-reduce", "bytes": 1e6, "axes": [[4, 1]], "size": 4})
    across = net.cost({"kind": "all-reduce", "bytes": 1e6, "axes": [[2, 4]], "size": 2})
    assert inside.seconds == pytest.approx(2 * 0.75e-3) and inside.level is machine.levels[0]
    assert across.seconds == pytest.approx(1e6 / 1e8) and across.level is machine.levels[1]
    assert net.cost({"kind": "collective-permute", "bytes": 1e6, "pairs": [[0, 1], [1, 2]]}).seconds == pytest.approx(1e-3)
    assert net.cost({"kind": "collective-permute", "bytes": 1e6, "pairs": [[3, 4]]}).seconds == pytest.approx(1e-2)
    assert net.cost({"kind": "collective-permute", "bytes": 1e6, "pairs": [[3, 3]]}).seconds == 0


def test_a_torus_by_hand():
    """4 x 4 chips: rings of both dimensions close, so that four links work at once; one row has two of them."""
    level = Level(None, 1e9, 0.0, "torus", 2)
    net = links.Network(hardware({**FLAT, "levels": [level]}), 16)
    assert links.torus_shape(16, 2) == (4, 4) and links.torus_shape(8, 3) == (2, 2, 2) and links.torus_shape(6, 2) == (2, 3)
    assert net.cost({"kind": "all-gather", "bytes": 1e6, "axes": [[16, 1]], "size": 16}).seconds == pytest.approx(15e6 / 4e9)
    assert net.cost({"kind": "all-gather", "bytes": 1e6, "axes": [[4, 1]], "size": 4}).seconds == pytest.approx(3e6 / 2e9)
    assert net.cost({"kind": "all-reduce", "bytes": 1e6, "axes": [[2, 4]], "size": 2}).seconds == pytest.approx(2 * 0.5e6 / 1e9)  # no ring


@pytest.mark.parametrize("kind", sorted(links.SWITCHED))
@pytest.mark.parametrize("name", sorted(TABLE))
def test_collectives_are_monotone(kind, name):
    """More bytes never take less time; nothing takes none; a device alone has nobody to talk to."""
    net = links.Network(TABLE[name], 4096)
    groups = [[[8, 1]], [[64, 1]], [[512, 8]], [[4096, 1]], [[2, 2048], [4, 1]]]
    for axes in groups:
        times = [net.cost({"kind": kind, "bytes": 10.0 ** k, "axes": axes}).seconds for k in range(2, 10)]
        assert times == sorted(times) and times[0] > 0
    assert net.cost({"kind": kind, "bytes": 1e6, "axes": []}).seconds == 0


def test_faster_machines_are_faster():
    slow, fast = simulate(gpt(), hardware={"base": "h100x8-ib", "vector": 1e10, "memory_bandwidth": 1e9}), simulate(gpt())
    assert fast.seconds < slow.seconds and fast.compute < slow.compute
    thin = simulate(gpt(), hardware={"base": "h100x8-ib", "levels": [{"size": None, "bandwidth": 1e6, "latency": 1e-3}]})
    assert thin.exposed > fast.exposed and thin.collective > fast.collective and thin.compute >= 0.9 * fast.compute


def test_overlap_hides_what_it_can():
    apart, beside = (simulate(gpt(), overlap=overlap) for overlap in (False, True))
    assert apart.exposed == pytest.approx(apart.collective) and beside.exposed < apart.exposed
    assert beside.overlapped > 0 and simulate(gpt()).seconds == min(apart.seconds, beside.seconds)
    assert beside.seconds == pytest.approx(beside.compute + beside.exposed)


def test_a_hundred_thousand_devices():
    text = MATMUL.replace("64x", "200000x")
    found = simulate(parsed(text), {"data": 50000, "model": 2})
    assert found.devices == 100000 and found.arguments[0]["shard"] == [4, 16] and found.seconds > 0
    wide = simulate(parsed(text), {"model": 2, "data": 50000})
    assert [row[1:4] for row in found.collectives] == [("all-reduce", "model", 2)] and wide.exposed > found.exposed  # beyond a node
    assert len(found.local.to_text()) < 4000


def test_loops_turn_as_often_as_they_say():
    text = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<%N%> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<8x8xf32>
   cond { %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
     stablehlo.return %c : tensor<i1> }
   do { %n = stablehlo.add %i, %one : tensor<i32>
     %w = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
     stablehlo.return %n, %w : tensor<i32>, tensor<8x8xf32> }
  return %r#1 : tensor<8x8xf32>
}"""
    ten, hundred = (simulate(parsed(text.replace("%N%", n)), hardware=FLAT) for n in ("10", "100"))
    assert hundred.seconds == pytest.approx(10 * ten.seconds, rel=0.02) and not ten.unknown_loops
    [name] = {op for _, op in ten.clock.trips}
    told = simulate(parsed(text.replace("%N%", "10")), hardware=FLAT, trips={name: 100})
    assert told.seconds == pytest.approx(hundred.seconds, rel=0.02)
    with pytest.raises(xlac.ArgumentError, match="no loop 'nobody'"):
        simulate(parsed(text.replace("%N%", "10")), trips={"nobody": 3})
    with pytest.raises(xlac.ArgumentError, match="turn -1 times"):
        simulate(parsed(text.replace("%N%", "10")), trips={name: -1})


def test_what_it_says():
    found = simulate(gpt())
    text = str(found)
    assert "8 devices (data=4 x model=2) of h100x8-ib" in text and "waited for" in text and "limited by" in text
    assert len(found.blame) > 20 and [b.weight for b in found.blame] == sorted((b.weight for b in found.blame), reverse=True)
    assert sum(b.seconds for b in found.blame if b.bound != "network") == pytest.approx(found.compute)
    assert sum(b.exposed for b in found.blame) == pytest.approx(found.exposed)
    root = ElementTree.fromstring(found.svg())
    assert root.get("role") == "img" and "8 devices" in root.get("aria-label")
    assert "<svg" in found._repr_html_() and "8 devices" in repr(found)
    assert json.loads(json.dumps(found.data))["devices"] == 8
    times = [t for t, _ in found.over_time]
    assert times == sorted(times) and 0.8 * found.peak_bytes < max(live for _, live in found.over_time) <= found.peak_bytes


def test_perfetto(tmp_path):
    found = simulate(gpt())
    text = found.to_perfetto(tmp_path / "step.json")
    events = json.loads(text)["traceEvents"]
    assert json.loads((tmp_path / "step.json").read_text()) == json.loads(text)
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} == {"compute", "network"}
    ends = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert ends == pytest.approx(found.seconds * 1e6, rel=1e-3)


def test_the_program_itself_stays():
    module = parsed()
    before = module.to_text()
    simulate(module, {"data": 64, "model": 2})
    assert module.to_text() == before
    assert simulate(module).devices == 8


@pytest.mark.parametrize("mesh, match", [({"data": 4}, "has the axes data, model, the one given data"), ({"data": 0, "model": 2}, "at least 1"),
                                         (7, "not a mesh"), ({"data": 2**19, "model": 4}, "expected 1 to 1048576")])
def test_bad_meshes(mesh, match):
    with pytest.raises(xlac.Error, match=match):
        simulate(parsed(), mesh)


@pytest.mark.parametrize("what, match", [
    ("h200", "there is no hardware 'h200'"), ({"memory": 3}, "hardware has no 'memory'"), ({"vector": 0}, "vector is 0"),
    ({"vector": float("nan")}, "vector is nan"), ({"vector": "fast"}, "vector is 'fast'"), ({"levels": []}, "levels have the sizes"),
    ({"levels": [{"size": 8, "bandwidth": 1, "latency": 0}]}, "levels have the sizes"), ({"levels": [{"size": None}]}, "level 0 is"),
    ({"levels": [{"size": None, "bandwidth": -1, "latency": 0}]}, "bandwidth of level 0"), ({"matrix": {"f32": -1}}, "matrix\\['f32'\\]"),
    ({"levels": [{"size": None, "bandwidth": 1, "latency": 0, "topology": "star"}]}, "topology 'star'"), ({"at_once": 0}, "at_once is 0")])
def test_bad_hardware(what, match):
    with pytest.raises(xlac.ArgumentError, match=match):
        simulate(parsed(), hardware=what)


def test_hardware_of_another_kind():
    with pytest.raises(TypeError, match="not int"):
        simulate(parsed(), hardware=3)


def test_what_has_no_plan():
    text = 'sdy.mesh @mesh = <["a"=2]>\nfunc.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}'
    with pytest.raises(xlac.Error):
        simulate(parsed(text))


def test_without_shardings_one_device_does_it_all():
    found = simulate("HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] tanh(x) }")
    assert found.devices == 1 and found.collective == 0 and found.mesh is None and "no mesh" in str(found)


def test_another_order_of_devices():
    """With "model" across nodes its collectives are slower."""
    ids = [i % 2 * 4 + i // 2 for i in range(8)]
    text = MATMUL.replace('"model"=2]>', f'"model"=2], device_ids={ids}>')
    machine = {**FLAT, "levels": [{"size": 4, "bandwidth": 1e9, "latency": 1e-6}, {"size": None, "bandwidth": 1e7, "latency": 1e-5}]}
    assert simulate(parsed(text), hardware=machine).collective > simulate(parsed(), hardware=machine).collective
    assert Mesh({"data": 4, "model": 2}, ids).device_ids is not None
