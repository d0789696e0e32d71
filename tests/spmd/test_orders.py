"""Sorts, top-k and random numbers along sharded dimensions: each device does its part, and nothing is gathered whole."""
import numpy as np
import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
# Canonical zeros and NaNs, then a total order: what jnp.sort writes.
CANONICAL = """
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %pz = stablehlo.compare EQ, %p, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %p1 = stablehlo.select %pz, %zero, %p : tensor<i1>, tensor<f32>
  %pn = stablehlo.compare NE, %p, %p : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %p2 = stablehlo.select %pn, %nan, %p1 : tensor<i1>, tensor<f32>
  %qz = stablehlo.compare EQ, %q, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %q1 = stablehlo.select %qz, %zero, %q : tensor<i1>, tensor<f32>
  %qn = stablehlo.compare NE, %q, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %q2 = stablehlo.select %qn, %nan, %q1 : tensor<i1>, tensor<f32>
  %r = stablehlo.compare LT, %p2, %q2, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>"""
# A comparator that is no single comparison: sixes and above first, those by size.
WRITTEN = """
  %six = stablehlo.constant dense<6.0> : tensor<f32>
  %pb = stablehlo.compare GE, %p, %six : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %qb = stablehlo.compare GE, %q, %six : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %nq = stablehlo.not %qb : tensor<i1>
  %first = stablehlo.and %pb, %nq : tensor<i1>
  %both = stablehlo.and %pb, %qb : tensor<i1>
  %less = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %second = stablehlo.and %both, %less : tensor<i1>
  %r = stablehlo.or %first, %second : tensor<i1>"""


def sharding(*dims):
    return "#sdy.sharding<@mesh, [" + ", ".join("{" + ", ".join(f'"{a}"' for a in d) + "}" for d in dims) + "]>"


def compiled(text, devices=8):
    module = xlac.parse(MESH + text, format="mlir")
    exe = xlac.compile(module, devices=devices)
    data = exe.explain("sharding").data
    assert data["whole"] is None
    return module, exe, data


def sort_text(shape, dim, dims, body):
    f, i = (f"tensor<{'x'.join(map(str, shape))}x{t}>" for t in ("f32", "i32"))
    s = f"{{sdy.sharding = {sharding(*dims)}}}"
    return f"""func.func @main(%x: {f} {s}, %y: {i} {s}) -> ({f} {s}, {i} {s}) {{
  %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = {dim} : i64, is_stable = true}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %a: tensor<i32>, %b: tensor<i32>):{body}
  stablehlo.return %r : tensor<i1>
  }}) : ({f}, {i}) -> ({f}, {i})
  return %0#0, %0#1 : {f}, {i}
}}"""


@pytest.mark.parametrize("body", [CANONICAL, WRITTEN], ids=["canonical", "written"])
@pytest.mark.parametrize("shape, dim, dims", [
    ((1024,), 0, [("x", "y")]),     # shards that the number of devices divides
    ((1000,), 0, [("x", "y")]),     # and that it does not: they are filled up
    ((120,), 0, [("x",)]),
    ((8,), 0, [("y",)]),            # as short as may be
    ((3, 96), 1, [(), ("x",)]),     # rows that cannot take the axes
    ((80, 3, 2), 0, [("x",), (), ("y",)]),
])
def test_a_sort_along_a_sharded_dimension_is_a_stable_one(shape, dim, dims, body):
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(-4, 9, shape).astype(np.float32)
    if body is CANONICAL:  # what the comparator calls equal has different bits
        x.ravel()[:5] = [np.nan, -0.0, 0.0, -np.nan, np.inf]
    y = np.arange(x.size, dtype=np.int32).reshape(shape)
    module, exe, data = compiled(sort_text(shape, dim, dims, body))
    assert data["gathers"] == []
    bits = [np.asarray(v).view(np.int32) for v in exe(x, y)]
    for found, wanted in zip(bits, xlac.interpret(module, x, y), strict=True):
        np.testing.assert_array_equal(found, np.asarray(wanted).view(np.int32))
    if shape == (1024,):  # 128 elements a device: no move is of more than its shard
        assert max(m["bytes"] for m in data["moves"]) <= 4 * 128 and {m["kind"] for m in data["moves"]} == {"all_to_all", "collective_permute"}


def test_a_sort_of_few_elements_on_many_devices_is_gathered():
    x, y = np.arange(64, dtype=np.float32)[::-1].copy(), np.arange(64, dtype=np.int32)
    _, exe, data = compiled(sort_text((64,), 0, [("x", "y")], CANONICAL))
    assert [m["kind"] for m in data["moves"]].count("all_gather") == 2
    np.testing.assert_array_equal(exe(x, y)[1], y[::-1])


@pytest.mark.parametrize("shape, k, dims", [
    ((4, 512), 5, [(), ("x",)]),
    ((4, 512), 63, [("y",), ("x",)]),
    ((96,), 5, [("x", "y")]),
    ((2, 2, 64), 1, [("y",), (), ("x",)]),
])
def test_top_k_along_a_sharded_dimension_moves_k_elements_a_device(shape, k, dims):
    x = np.random.default_rng(k).integers(0, 9, shape).astype(np.float32)  # many that are equal: the first one counts
    to = (*shape[:-1], k)
    all_of_them, values, places = (f"tensor<{'x'.join(map(str, s))}x{t}>" for s, t in ((shape, "f32"), (to, "f32"), (to, "i32")))
    module, exe, data = compiled(f"""func.func @main(%x: {all_of_them} {{sdy.sharding = {sharding(*dims)}}}) -> ({values}, {places}) {{
  %v, %i = chlo.top_k(%x, k = {k}) : {all_of_them} -> ({values}, {places})
  return %v, %i : {values}, {places}
}}""")
    assert data["gathers"] == [] and sum(m["bytes"] for m in data["moves"]) < x.nbytes
    for found, wanted in zip(exe(x), xlac.interpret(module, x), strict=True):
        np.testing.assert_array_equal(found, wanted)


STATES = [[3, 5, 7], [2**64 - 1, 2**64 - 3, 2**64 - 1]]  # the second one's counter carries


@pytest.mark.parametrize("state", STATES, ids=["plain", "carries"])
@pytest.mark.parametrize("algorithm, words", [("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2), ("THREE_FRY", 2)])
@pytest.mark.parametrize("shape, dtype, dims, alone", [
    ((64,), "ui32", [("x", "y")], True),
    ((1, 16, 3), "ui64", [(), ("x",), ()], True),
    ((16, 8), "ui8", [("x",), ("y",)], True),        # rows are drawn, and cut
    ((16, 8), "i16", [(), ("y",)], False),           # no device's numbers lie together
    ((7, 8), "ui32", [(), ("x",)], False),
])
def test_devices_draw_the_numbers_of_one_device(shape, dtype, dims, alone, algorithm, words, state):
    data, old = f"tensor<{'x'.join(map(str, shape))}x{dtype}>", f"tensor<{words}xui64>"
    module, exe, said = compiled(f"""func.func @main(%s: {old}) -> ({old}, {data} {{sdy.sharding = {sharding(*dims)}}}) {{
  %a, %b = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : ({old}) -> ({old}, {data})
  return %a, %b : {old}, {data}
}}""")
    assert [g["op"] for g in said["gathers"]] == ([] if alone else ["stablehlo.rng_bit_generator"])
    key = np.array(state[:words], np.uint64)
    for found, wanted in zip(exe(key), xlac.interpret(module, key), strict=True):
        np.testing.assert_array_equal(found, wanted)
