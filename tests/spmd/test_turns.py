"""Devices in turns: loops that are left at each meeting, devices that loop more often than others, products whose weight is packed once for all."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import xlac

ADD = "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %pq = stablehlo.add %p, %q : tensor<f32>\nstablehlo.return %pq : tensor<f32> })"
TURNS, THREADS = 10**15, 1


def groups(text, channel=1):
    n, each = len(text), len(text[0])
    return f"{{replica_groups = dense<{text}> : tensor<{n}x{each}xi64>, channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>, use_global_device_ids}}"


def all_reduce(name, of, who, channel=1, shape="2x3"):
    return f'{name} = "stablehlo.all_reduce"({of}) {ADD} {groups(who, channel)} : (tensor<{shape}xf32>) -> tensor<{shape}xf32>'


def looping(limit, body, after="", result="%r#2"):
    """Each of 4 devices begins with %v, %s = x + its number; %m is the number of trips."""
    return f"""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{
  %id = stablehlo.partition_id : tensor<ui32>
  %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
  %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %b = stablehlo.add %x, %g : tensor<2x3xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  {limit}
  %r:3 = stablehlo.while(%i = %zero, %v = %b, %s = %b) : tensor<i32>, tensor<2x3xf32>, tensor<2x3xf32>
    cond {{ %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{ %j = stablehlo.add %i, %one : tensor<i32>
      {body}
      stablehlo.return %j, %w, %t : tensor<i32>, tensor<2x3xf32>, tensor<2x3xf32>
    }}
  {after}
  return {result} : tensor<2x3xf32>
}}"""


def compiled(text, work, **options):
    exe = xlac.compile(xlac.parse(text, format="mlir"), async_work=work, **options)
    assert ("in turns" in exe.explain("sharding").data["run"]) == (work == TURNS), exe.explain("sharding")
    return exe


def each(text, work, *arguments):
    return [s.data.numpy() for s in compiled(text, work, devices=4, results="sharded")(*arguments).shards]


X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
RING = """%w = "stablehlo.collective_permute"(%v) {source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %t = stablehlo.add %s, %w : tensor<2x3xf32>"""


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("work", [TURNS, THREADS])
def test_a_ring(trips, work):
    found = each(looping(f"%m = stablehlo.constant dense<{trips}> : tensor<i32>", RING), work, X)
    for device, s in enumerate(found):
        np.testing.assert_array_equal(s, sum(X + (device - k) % 4 for k in range(trips + 1)))


UNEVEN = """%h = stablehlo.constant dense<2> : tensor<i32>
  %half = stablehlo.divide %n, %h : tensor<i32>
  %m = stablehlo.add %h, %half : tensor<i32>"""


@pytest.mark.parametrize("work", [TURNS, THREADS])
def test_groups_that_loop_more_often_than_others(work):
    body = all_reduce("%w", "%v", [[0, 1], [2, 3]]) + "\n%t = stablehlo.subtract %s, %w : tensor<2x3xf32>"
    found = each(looping(UNEVEN, body, all_reduce("%o", "%r#2", [[0, 1, 2, 3]], 2), "%o"), work, X)
    v, s = [X + d for d in range(4)], [X + d for d in range(4)]
    for trip in range(3):
        for pair in ((0, 1), (2, 3))[trip == 2 :]:
            total = v[pair[0]] + v[pair[1]]
            for d in pair:
                v[d], s[d] = total, s[d] - total
    for o in found:
        np.testing.assert_allclose(o, sum(s), rtol=1e-6)


@pytest.mark.parametrize("work", [TURNS, THREADS])
def test_one_that_loops_once_more_than_all_others_waits_for_nobody(work):
    first = """%is = stablehlo.compare EQ, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %more = stablehlo.convert %is : (tensor<i1>) -> tensor<i32>
  %m = stablehlo.add %one, %more : tensor<i32>"""
    body = all_reduce("%w", "%v", [[0, 1, 2, 3]]) + "\n%t = stablehlo.add %s, %w : tensor<2x3xf32>"
    exe = compiled(looping(first, body), work, devices=4)
    for _ in range(2):
        with pytest.raises(xlac.Error, match="device 0 waits in .* for device 1, which has finished"):
            exe(X)


def test_two_meetings_a_trip_and_a_loop_without_any_have_the_bits_of_threads():
    body = (
        all_reduce("%u", "%v", [[0, 1, 2, 3]])
        + """
      %a = stablehlo.tanh %u : tensor<2x3xf32>
      """
        + all_reduce("%w", "%a", [[0, 2], [1, 3]], 2)
        + "\n%t = stablehlo.multiply %s, %w : tensor<2x3xf32>"
    )
    after = """%l:2 = stablehlo.while(%i = %zero, %v = %r#2) : tensor<i32>, tensor<2x3xf32>
    cond { %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do { %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.sine %v : tensor<2x3xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<2x3xf32> }"""
    text = looping("%m = stablehlo.constant dense<7> : tensor<i32>", body, after, "%l#1")
    one = xlac.compile(xlac.parse(text, format="mlir"), devices=4, async_work=THREADS, results="sharded")
    for shard, turned in zip(
        one(X).shards, xlac.compile(xlac.parse(text, format="mlir"), devices=4, async_work=TURNS, results="sharded")(X).shards, strict=True
    ):
        assert shard.data.numpy().tobytes() == turned.data.numpy().tobytes()


LAYERS = """sdy.mesh @mesh = <["d"=4]>
func.func @main(%x: tensor<256x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %w: tensor<96x192xf32>, %v: tensor<192x96xf32>)
    -> (tensor<256x96xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x96xf32>, tensor<96x192xf32>) -> tensor<256x192xf32>
  %1 = stablehlo.tanh %0 : tensor<256x192xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<256x192xf32>, tensor<192x96xf32>) -> tensor<256x96xf32>
  %3 = stablehlo.sine %2 : tensor<256x96xf32>
  return %3 : tensor<256x96xf32> }"""


def test_products_by_rows_have_one_packed_weight_where_all_devices_read_the_same():
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(shape, np.float32) for shape in ((256, 96), (96, 192), (192, 96)))
    turns, threads = (compiled(LAYERS, work, devices=4, results="sharded") for work in (TURNS, THREADS))
    wanted = np.sin(np.tanh(x @ w) @ v)
    found = turns(x, w, v)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3, atol=1e-3)
    assert found.numpy().tobytes() == threads(x, w, v).numpy().tobytes()
    whole = xlac.ShardedBuffer.of(w, xlac.sharding.Sharding(xlac.sharding.Mesh({"d": 4}), [(), ()]))
    apart = xlac.ShardedBuffer(whole._leaf, [xlac.asarray(w.copy()) for _ in range(4)])  # each device packs its own
    for given in (whole, apart):
        assert turns(x, given, v).numpy().tobytes() == found.numpy().tobytes()


# 64 rows a device; nothing by rows follows.
PRODUCTS = """sdy.mesh @mesh = <["d"=4]>
func.func @main(%x: tensor<256x320xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %w: tensor<320x448xf32>, %v: tensor<192x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<256x448xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x320xf32>, tensor<320x448xf32>) -> tensor<256x448xf32>
  %1 = stablehlo.slice %0 [0:256, 0:192] : (tensor<256x448xf32>) -> tensor<256x192xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0] : (tensor<256x192xf32>, tensor<192x1024xf32>) -> tensor<256x1024xf32>
  return %0, %2 : tensor<256x448xf32>, tensor<256x1024xf32> }"""


def test_products_have_the_same_bits_however_devices_run_and_wherever_their_weights_lie():
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal(shape, np.float32) for shape in ((256, 320), (320, 448), (192, 1024)))
    turns, threads = (compiled(PRODUCTS, work, devices=4, results="sharded") for work in (TURNS, THREADS))
    whole = xlac.ShardedBuffer.of(w, xlac.sharding.Sharding(xlac.sharding.Mesh({"d": 4}), [(), ()]))
    apart = xlac.ShardedBuffer(whole._leaf, [xlac.asarray(w.copy()) for _ in range(4)])
    found = [[r.numpy() for r in exe(x, given, v)] for exe in (turns, threads) for given in (w, whole, apart)]
    np.testing.assert_allclose(found[0][0], x @ w, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found[0][1], (x @ w)[:, :192] @ v, rtol=1e-3, atol=1e-2)
    for one in found[1:]:
        assert [r.tobytes() for r in one] == [r.tobytes() for r in found[0]]
    again = xlac.load(turns.serialize(), async_work=TURNS, results="sharded")
    assert [r.numpy().tobytes() for r in again(x, w, v)] == [r.tobytes() for r in found[0]]


# Weights of which those along "b" have the same half, too large for a cache: as stored, and turned.
HALVES = """sdy.mesh @mesh = <["b"=4, "a"=2]>
func.func @main(%x: tensor<256x640xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}, %w: tensor<640x1056xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
    %v: tensor<1056x640xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<256x1056xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}, tensor<256x1056xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x640xf32>, tensor<640x1056xf32>) -> tensor<256x1056xf32>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1] : (tensor<256x640xf32>, tensor<1056x640xf32>) -> tensor<256x1056xf32>
  return %0, %1 : tensor<256x1056xf32>, tensor<256x1056xf32> }"""


def test_weights_that_some_devices_have_alike_are_packed_once_for_these():
    rng = np.random.default_rng(2)
    x, w, v = (rng.standard_normal(shape, np.float32) for shape in ((256, 640), (640, 1056), (1056, 640)))
    turns, threads = (compiled(HALVES, work, devices=8, results="sharded") for work in (TURNS, THREADS))
    local = str(xlac.compile_stage(xlac.parse(HALVES, format="mlir"), "translated", devices=8))
    assert "f32[640,528]{1,0} parameter(1), sharding={devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}" in local
    mesh = xlac.sharding.Mesh({"b": 4, "a": 2})
    alike = [xlac.ShardedBuffer.of(w, xlac.sharding.Sharding(mesh, [(), ("a",)])), xlac.ShardedBuffer.of(v, xlac.sharding.Sharding(mesh, [("a",), ()]))]
    assert len({id(s.data) for s in alike[0].shards}) == 2
    apart = [xlac.ShardedBuffer(one._leaf, [xlac.asarray(s.data.numpy().copy()) for s in one.shards]) for one in alike]
    usual = xlac.compile(xlac.parse(HALVES, format="mlir"), devices=8, results="sharded")  # on all CPUs, where these are fewer
    found = [[r.numpy() for r in exe(x, *given)] for exe in (turns, usual, threads) for given in (alike, apart)]
    for value, right in zip(found[0], (x @ w, x @ v.T)):
        np.testing.assert_allclose(value, right, rtol=1e-3, atol=1e-2)
    for one in found[1:]:
        assert [r.tobytes() for r in one] == [r.tobytes() for r in found[0]]


# Of 2 x 4 devices those of one row have the same %x, and the same sum; all have the same weights, one of which is turned.
BLOCK = """sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<256x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %w: tensor<192x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
    %v: tensor<256x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}, %u: tensor<192x192xf32>)
    -> (tensor<256x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<192x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<256x192xf32>
  %m = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<256x192xf32>, tensor<f32>) -> tensor<256xf32>
  %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<256xf32>) -> tensor<256x192xf32>
  %1 = stablehlo.subtract %0, %n : tensor<256x192xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<256x192xf32>, tensor<192x256xf32>) -> tensor<256x256xf32>
  %3 = stablehlo.sine %2 : tensor<256x256xf32>
  %4 = stablehlo.dot_general %3, %v, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x192xf32>) -> tensor<256x192xf32>
  %5 = stablehlo.cosine %4 : tensor<256x192xf32>
  %t = stablehlo.transpose %u, dims = [1, 0] : (tensor<192x192xf32>) -> tensor<192x192xf32>
  %e = stablehlo.exponential %t : tensor<192x192xf32>
  %6 = stablehlo.dot_general %5, %e, contracting_dims = [1] x [0] : (tensor<256x192xf32>, tensor<192x192xf32>) -> tensor<256x192xf32>
  %7 = stablehlo.add %6, %1 : tensor<256x192xf32>
  %8 = stablehlo.dot_general %5, %7, contracting_dims = [0] x [0] : (tensor<256x192xf32>, tensor<256x192xf32>) -> tensor<192x192xf32>
  %9 = stablehlo.sqrt %8 : tensor<192x192xf32>
  return %7, %9 : tensor<256x192xf32>, tensor<192x192xf32> }"""


def operands():
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape, np.float32) / 8 for shape in ((256, 192), (192, 256), (256, 192), (192, 192))]


def bits(results):
    return [shard.data.numpy().tobytes() for result in results for shard in result.shards]


def test_what_devices_compute_alike_has_the_bits_of_each_computing_it():
    turns, threads = (compiled(BLOCK, work, devices=8, results="sharded") for work in (TURNS, THREADS))
    x, w, v, u = operands()
    wanted = bits(threads(x, w, v, u))
    assert len(set(wanted[:8])) == 2 and len(set(wanted[8:])) == 1
    for _ in range(2):
        assert bits(turns(x, w, v, u)) == wanted
    one = xlac.compile(xlac.parse(re.sub(r" \{sdy.sharding = [^}]*\}[^}]*(?:\}[^}]*)?\]>\}|sdy.mesh.*\n", "", BLOCK), format="mlir"))
    for whole, result in zip(one(x, w, v, u), turns(x, w, v, u), strict=True):
        np.testing.assert_allclose(result.numpy(), whole, rtol=1e-3, atol=1e-2)


ON_TWO_CPUS = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # before the library counts
sys.path.insert(0, sys.argv[1])
import test_turns, xlac
few, each = (xlac.compile(xlac.parse(test_turns.BLOCK, format="mlir"), devices=8, async_work=work, results="sharded") for work in (0, test_turns.THREADS))
assert few.explain("sharding").data["run"].startswith("in turns on a thread for each CPU")
for _ in range(3):
    assert test_turns.bits(few(*test_turns.operands())) == test_turns.bits(each(*test_turns.operands()))
print("the same")
"""


def test_threads_in_turns_compute_what_is_alike_once(tmp_path):
    done = subprocess.run([sys.executable, "-c", ON_TWO_CPUS, pathlib.Path(__file__).parent], capture_output=True, text=True, timeout=120)
    assert done.stdout == "the same\n", done.stdout + done.stderr


@pytest.mark.parametrize("work", [TURNS, THREADS])
def test_large_sums_of_other_reducers_than_addition(work):
    n = 1 << 15
    text = f"""func.func @main(%x: tensor<{n}xf32>) -> (tensor<{n}xf32>, tensor<{n}xf32>) {{
  %id = stablehlo.partition_id : tensor<ui32>
  %f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
  %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<{n}xf32>
  %b = stablehlo.add %x, %g : tensor<{n}xf32>
  {all_reduce("%0", "%b", [[0, 1, 2, 3]], 1, n)}
  {all_reduce("%1", "%b", [[0, 1, 2, 3]], 2, n).replace("stablehlo.add", "stablehlo.multiply")}
  return %0, %1 : tensor<{n}xf32>, tensor<{n}xf32>
}}"""
    x = np.linspace(-1, 1, n, dtype=np.float32)
    total, product = compiled(text, work, devices=4)(x)
    np.testing.assert_allclose(total, 4 * x + 6, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(product, x * (x + 1) * (x + 2) * (x + 3), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{"async_work": TURNS}, {}, {"async_work": THREADS}])
@pytest.mark.parametrize("results", ["sharded", "numpy"])
def test_results_that_are_computed_once_stay_what_they_are(options, results):
    """The product is the same on all devices, and a result by itself; what each makes of it, partly over it, is not."""
    text = """sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<4x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %w: tensor<192x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<192x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<768x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
        tensor<768x192xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0:3 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {}]>]
      manual_axes={"a"} (%u: tensor<1x192xf32>, %v: tensor<192x192xf32>) {
    %p = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0] : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
    %q = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0] : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
    %i = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %d = stablehlo.dynamic_update_slice %q, %u, %i, %z : (tensor<192x192xf32>, tensor<1x192xf32>, tensor<i32>, tensor<i32>) -> tensor<192x192xf32>
    %b = stablehlo.broadcast_in_dim %u, dims = [0, 1] : (tensor<1x192xf32>) -> tensor<192x192xf32>
    %e = stablehlo.add %p, %b : tensor<192x192xf32>
    sdy.return %p, %d, %e : tensor<192x192xf32>, tensor<192x192xf32>, tensor<192x192xf32>
  } : (tensor<4x192xf32>, tensor<192x192xf32>) -> (tensor<192x192xf32>, tensor<768x192xf32>, tensor<768x192xf32>)
  return %0#0, %0#1, %0#2 : tensor<192x192xf32>, tensor<768x192xf32>, tensor<768x192xf32>
}"""
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((4, 192), (192, 192)))
    exe = xlac.compile(xlac.parse(text, format="mlir"), devices=4, results=results, **options)
    for _ in range(3):
        product, update, total = (r if results == "numpy" else r.numpy() for r in exe(x, w))
        np.testing.assert_array_equal(product, w @ w)
        np.testing.assert_array_equal(total, np.concatenate([w @ w + row for row in x]))
        for i in range(4):
            wanted = w.T @ w
            wanted[3] = x[i]
            np.testing.assert_array_equal(update[192 * i:192 * (i + 1)], wanted)


@pytest.mark.parametrize("work", [TURNS, THREADS])
def test_results_of_which_nothing_is_said_are_each_devices_own(work):
    text = """func.func @main(%w: tensor<192x192xf32>) -> tensor<192x192xf32> {
  %p = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : (tensor<192x192xf32>, tensor<192x192xf32>) -> tensor<192x192xf32>
  %i = stablehlo.partition_id : tensor<ui32>
  %f = stablehlo.convert %i : (tensor<ui32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<192x192xf32>
  %e = stablehlo.add %p, %b : tensor<192x192xf32>
  return %e : tensor<192x192xf32>
}"""
    w = np.random.default_rng(4).integers(-3, 4, (192, 192)).astype(np.float32)
    for device, found in enumerate(each(text, work, w)):
        np.testing.assert_array_equal(found, w @ w + device)


ATTENTION = """sdy.mesh @mesh = <["d"=8]>
func.func @main(%q: tensor<16x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}, {}]>}, %k: tensor<16x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}, {}]>},
    %v: tensor<16x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}, {}]>}) -> (tensor<16x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d"}, {}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<16x512x32xf32>, tensor<16x512x32xf32>) -> tensor<16x512x512xf32>
  %e = stablehlo.exponential %s : tensor<16x512x512xf32>
  %r = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<16x512x512xf32>, tensor<f32>) -> tensor<16x512xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0, 1] : (tensor<16x512xf32>) -> tensor<16x512x512xf32>
  %p = stablehlo.divide %e, %b : tensor<16x512x512xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<16x512x512xf32>, tensor<16x512x32xf32>) -> tensor<16x512x32xf32>
  return %o : tensor<16x512x32xf32>
}"""


def test_heads_that_all_devices_read_are_packed_once_for_all():
    rng = np.random.default_rng(5)
    given = [rng.standard_normal((16, 512, 32)).astype(np.float32) / 4 for _ in range(3)]
    found = [compiled(ATTENTION, work, devices=8)(*given) for work in (TURNS, THREADS)] + [xlac.compile(xlac.parse(ATTENTION, format="mlir"), devices=8)(*given)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    scores = np.exp(np.einsum("bqd,bkd->bqk", given[0], given[1]))
    np.testing.assert_allclose(found[0], np.einsum("bqk,bkd->bqd", scores / scores.sum(-1, keepdims=True), given[2]), rtol=1e-4, atol=1e-5)
    assert "group of" in str(compiled(ATTENTION, TURNS, devices=8).profile(*given))
