"""Programs on many devices through xlac.h: what each device has, calls with shards, donation, and what partitioning came to."""
import json

PROGRAM = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, %y: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
  %0 = stablehlo.add %x, %b : tensor<4x6xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4xf32>
}"""


def compiled(x, text, **options):
    m, out = x.parse(text), x.ffi.new("xlac_executable **")
    x.check(x.lib.xlac_compile(m, x.options("xlac_compile_options", {"threads": 1, **options}), out, x.err))
    x.lib.xlac_module_destroy(m)
    return out[0]


def test_shards(x):
    exe, group, shard = compiled(x, PROGRAM, n_devices=4), x.ffi.new("xlac_group *"), x.ffi.new("xlac_shard *")
    x.lib.xlac_executable_group(exe, group)
    assert (group.n_devices, group.n_arguments, group.n_results, group.replicas, group.partitions) == (4, 2, 2, 1, 4)
    starts = []
    for device in range(4):
        assert x.lib.xlac_executable_shard(exe, False, 0, device, shard)
        assert (shard.rank, list(shard.whole[0:2]), list(shard.dims[0:2]), shard.bytes, shard.first, shard.contiguous) == (2, [4, 6], [2, 3], 24, True, False)
        starts.append(list(shard.start[0:2]))
    assert starts == [[0, 0], [0, 3], [2, 0], [2, 3]]
    firsts = [x.lib.xlac_executable_shard(exe, False, 1, device, shard) and shard.first for device in range(4)]
    assert firsts == [True, True, False, False] and shard.contiguous
    assert x.lib.xlac_executable_shard(exe, True, 1, 3, shard) and (list(shard.dims[0:1]), shard.first) == ([4], False)
    assert all(x.lib.xlac_executable_shard_memory(exe, device) == x.ffi.NULL for device in (0, 3, 4))  # the host's
    assert not x.lib.xlac_executable_shard(exe, False, 2, 0, shard) and not x.lib.xlac_executable_shard(exe, True, 0, 4, shard)
    x.lib.xlac_executable_destroy(exe)


def test_calls_with_shards(x):
    donate = x.ffi.new("uint32_t[]", [0])
    exe, d = compiled(x, PROGRAM, n_devices=4, n_donate=1, donate=donate), x.ffi.new("xlac_donation *")
    assert x.lib.xlac_executable_shard_donation(exe, 0, d) and (d.argument, d.result, d.in_place) == (0, 0, True)
    assert not x.lib.xlac_executable_shard_donation(exe, 1, d)
    assert not x.lib.xlac_executable_donation(exe, 0, d)  # of a whole array, these shards are not blocks
    whole = [[float(6 * i + j) for j in range(6)] for i in range(4)]
    shards = [x.ffi.new("float[]", [whole[i][j] for i in range(r, r + 2) for j in range(c, c + 3)]) for r in (0, 2) for c in (0, 3)]
    halves = [x.ffi.new("float[]", [100.0] * 3), x.ffi.new("float[]", [200.0] * 3)]  # two devices share each
    sums = [x.ffi.new("float[4]") for _ in range(4)]
    arguments = x.ffi.new("void *[]", [p for i in range(4) for p in (shards[i], halves[i % 2])])
    results = x.ffi.new("void *[]", [p for i in range(4) for p in (shards[i], sums[i])])  # the first is donated
    x.check(x.lib.xlac_executable_call_shards(exe, x.ffi.NULL, arguments, results, x.err))
    assert list(shards[1]) == [203, 204, 205, 209, 210, 211]
    for s in sums:
        assert list(s) == [sum(row) + 900 for row in whole]
    fresh, one = [x.ffi.new("float[6]") for _ in range(4)], x.ffi.new("float[4]")
    results = x.ffi.new("void *[]", [p for i in range(4) for p in (fresh[i], one)])  # all have the same sums, in one memory
    x.check(x.lib.xlac_executable_call_shards(exe, x.ffi.NULL, arguments, results, x.err))
    assert list(one) == [sum(row) + 1800 for row in whole] and list(fresh[1]) == [403, 404, 405, 409, 410, 411]
    x.lib.xlac_executable_destroy(exe)


def test_what_partitioning_came_to(x):
    exe, out, n = compiled(x, PROGRAM, n_devices=4), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_executable_sharding(exe, out, n, x.err))
    found = json.loads(x.take(out[0]))
    assert found["devices"] == 4 and found["whole"] is None and "all_reduce" in [m["kind"] for m in found["moves"]]
    x.lib.xlac_executable_destroy(exe)


def test_an_executable_of_one_device(x):
    exe, group, shard = compiled(x, "HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}"), x.ffi.new("xlac_group *"), x.ffi.new("xlac_shard *")
    x.lib.xlac_executable_group(exe, group)
    assert group.n_devices == 0 and not x.lib.xlac_executable_shard(exe, False, 0, 0, shard)
    assert not x.lib.xlac_executable_shard_donation(exe, 0, x.ffi.new("xlac_donation *"))
    out, data = x.ffi.new("char **"), x.ffi.new("void *[]", [x.ffi.new("float[2]")])
    x.fails(x.lib.xlac_executable_sharding(exe, out, x.ffi.NULL, x.err), 503)
    x.fails(x.lib.xlac_executable_call_shards(exe, x.ffi.NULL, data, data, x.err), 503)
    x.lib.xlac_executable_destroy(exe)


CALLS = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @ask(%x) {api_version = 4 : i32, mhlo.sharding = "{maximal device=0}"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @ask(%0) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}"""


def test_calls_that_one_device_makes_get_a_name_of_their_own(x):
    m, out, n = x.parse(CALLS), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_module_verify(m, x.ffi.NULL, x.err))
    x.check(x.lib.xlac_module_name_single_calls(m, b"ask", b"ask_once", x.err))
    x.check(x.lib.xlac_module_print(m, x.ffi.NULL, out, n, x.err))
    text = x.take(out[0])
    assert text.count("@ask_once(") == text.count("@ask(") == 1 and text.index("@ask_once(") < text.index("@ask(")
    assert not x.lib.xlac_module_is_verified(m)
    x.fails(x.lib.xlac_module_name_single_calls(m, x.ffi.NULL, b"ask_once", x.err), 503)
    x.lib.xlac_module_destroy(m)


def test_the_program_of_each_device_and_what_it_costs(x):
    exe, cost, whole = compiled(x, PROGRAM, n_devices=4), x.ffi.new("xlac_cost *"), compiled(x, PROGRAM)
    local, out, n = x.lib.xlac_executable_local(exe), x.ffi.new("char **"), x.ffi.new("size_t *")
    assert x.lib.xlac_executable_local(whole) == x.ffi.NULL
    x.check(x.lib.xlac_module_print(local, x.ffi.NULL, out, n, x.err))
    text = x.take(out[0])
    assert "f32[2,3]" in text and "f32[4,6]" not in text
    x.check(x.lib.xlac_executable_cost(exe, cost, x.err))
    of_one = cost.flops
    x.check(x.lib.xlac_executable_cost(whole, cost, x.err))
    assert 0 < of_one < cost.flops and cost.transcendentals == 0 and cost.bytes_read >= 4 * 24
    x.lib.xlac_executable_destroy(exe)
    x.lib.xlac_executable_destroy(whole)


def rehearsed(x, text, devices, passes=None, **more):
    m, local, out, n = x.parse(text), x.ffi.new("xlac_module **"), x.ffi.new("char **"), x.ffi.new("size_t *")
    options = x.options("xlac_compile_options", {"n_devices": devices, **more})
    status = x.lib.xlac_rehearse(m, options, passes or x.ffi.NULL, local, out, n, x.err)
    x.lib.xlac_module_destroy(m)
    if status:
        return status, x.ffi.string(x.err.message).decode()
    text = x.ffi.string(out[0]).decode()
    x.lib.xlac_free(out[0])
    x.lib.xlac_module_destroy(local[0])
    return status, json.loads(text)


def test_a_rehearsal(x):
    _, found = rehearsed(x, PROGRAM, 4)
    assert set(found) == {"sharding", "collectives", "donations", "plan"} and found["donations"] == []
    assert [(c["kind"], c["bytes"], c["axes"], c["size"]) for c in found["collectives"]] == [("all-reduce", 8, [[2, 1]], 2), ("all-gather", 8, [[2, 2]], 2)]
    assert found["sharding"]["devices"] == 4 and [leaf["shard"] for leaf in found["sharding"]["arguments"]] == [[2, 3], [3]]
    exe, info = compiled(x, PROGRAM, n_devices=4), x.ffi.new("xlac_executable_info *")
    x.lib.xlac_executable_get(exe, info)
    assert found["plan"]["programs"][0]["peak_bytes"] == info.peak_bytes
    x.lib.xlac_executable_destroy(exe)
    _, beside = rehearsed(x, PROGRAM, 4, b"async-collective-creator")
    assert [step["kind"] for step in beside["plan"]["programs"][0]["steps"]].count("start") == 2


def test_rehearsals_that_are_refused(x):
    assert "a rehearsal needs a number of devices" in rehearsed(x, PROGRAM, 0)[1]
    assert "expected 4 devices, found 8" in rehearsed(x, PROGRAM, 8)[1]
    assert "expected 1 to 1048576" in rehearsed(x, PROGRAM, 2**20 + 1)[1]
    name = x.ffi.new("char[]", b"interp")
    assert "the device runs programs whole" in rehearsed(x, PROGRAM, 4, device=name)[1]
    status, message = rehearsed(x, PROGRAM, 4, b"no-such-pass")
    assert status and "no-such-pass" in message
