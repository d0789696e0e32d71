"""Programs on the devices of a group: whole arrays in and out, errors that name the device, and no end that is not one."""
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import xlac

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'


def compiled(body, signature, devices=4, mesh=MESH, **options):
    return xlac.compile(xlac.parse(f"{mesh}func.func @main{signature} {{\n{body}\n}}", format="mlir"), devices=devices, **options)


def sharded(shape, *dims):
    return f"tensor<{shape}> {{sdy.sharding = #sdy.sharding<@mesh, [{', '.join('{' + d + '}' for d in dims)}]>}}"


PRODUCT = ("%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>\n"
           "return %0 : tensor<8x6xf32>",
           f'(%x: {sharded("8x4xf32", chr(34) + "a" + chr(34), chr(34) + "b" + chr(34))}, %y: tensor<4x6xf32>) -> '
           f'({sharded("8x6xf32", chr(34) + "a" + chr(34), "")})')


def operands(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((8, 4), np.float32), rng.standard_normal((4, 6), np.float32)


def test_arguments_and_results_are_whole():
    exe = compiled(*PRODUCT)
    x, y = operands()
    for _ in range(3):
        np.testing.assert_allclose(exe(x, y), x @ y, rtol=1e-5, atol=1e-5)


def test_the_local_program_has_shards_and_collectives():
    module = xlac.parse(f"{MESH}func.func @main{PRODUCT[1]} {{\n{PRODUCT[0]}\n}}", format="mlir")
    text = xlac.compile_stage(module, "translated", devices=4)
    assert "f32[4,2]" in text and "all-reduce" in text and "num_partitions=4" in text


def test_sums_that_are_ready_together_are_one_meeting():
    """Those by one op: a maximum has its own, and so has what is computed of one of them."""
    reduce = "%{0} = stablehlo.reduce({1} init: %z) applies stablehlo.{2} across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>"
    body = "\n".join(["%z = stablehlo.constant dense<0.0> : tensor<f32>"]
                     + [reduce.format(i, f"%a{i}", how) for i, how in enumerate(["add", "add", "add", "maximum"])] + ["""
    %s = stablehlo.sine %0 : tensor<4xf32>
    %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
    %p = stablehlo.multiply %w, %a4 : tensor<4x2xf32>""", reduce.format(4, "%p", "add"), "return %0, %1, %2, %3, %4 : " + ", ".join(["tensor<4xf32>"] * 5)])
    cut = ", ".join(f'%a{i}: tensor<4x2xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"b"}}]>}}' for i in range(5))
    whole = ", ".join(['tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}'] * 5)
    module = xlac.parse(f"{MESH}func.func @main({cut}) -> ({whole}) {{\n{body}\n}}", format="mlir")
    sums = [line for line in xlac.compile_stage(module, "translated", devices=4).splitlines() if " all-reduce(" in line]
    assert sorted(line.split(" all-reduce(")[0].count("f32[4]") for line in sums) == [1, 1, 3], sums
    y = [np.arange(8, dtype=np.float32).reshape(4, 2) * (i + 1) for i in range(5)]
    want = [y[0].sum(1), y[1].sum(1), y[2].sum(1), y[3].max(1), (np.sin(y[0].sum(1))[:, None] * y[4]).sum(1)]
    for got, right in zip(xlac.compile(module, devices=4)(*y), want, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-5)


def reduced(name, operand, how, init, shape="8x16", dtype="f32"):
    n = shape.split("x")[0]
    return (
        f"%{name} = stablehlo.reduce({operand} init: {init}) applies stablehlo.{how} across dimensions = [1] : "
        f"(tensor<{shape}x{dtype}>, tensor<{dtype}>) -> tensor<{n}x{dtype}>"
    )


def test_sums_of_other_kinds_do_not_part_those_that_are_alike():
    """A sum that is read later than a maximum meets with another sum, made of that maximum."""
    body = "\n".join(
        [
            "%z = stablehlo.constant dense<0.0> : tensor<f32>",
            reduced("s", "%x", "add", "%z"),
            reduced("m", "%x", "maximum", "%z"),
            """
    %w = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
    %p = stablehlo.multiply %w, %x : tensor<8x16xf32>""",
            reduced("t", "%p", "add", "%z"),
            """
    %r = stablehlo.multiply %t, %s : tensor<8xf32>
    return %r : tensor<8xf32>""",
        ]
    )
    module = xlac.parse(
        f"{MESH}func.func @main(%x: {sharded('8x16', '', chr(34) + 'b' + chr(34))}) -> ({sharded('8', '')}) {{\n{body}\n}}".replace(
            "8x16>", "8x16xf32>"
        ).replace("tensor<8>", "tensor<8xf32>"),
        format="mlir",
    )
    sums = [
        line.split(" all-reduce(")[0].count("f32[8]")
        for line in xlac.compile_stage(module, "translated", devices=4).splitlines()
        if " all-reduce(" in line
    ]
    assert sums == [1, 2]
    x = np.random.default_rng(0).standard_normal((8, 16), np.float32)
    right = (x * np.maximum(x.max(1, keepdims=True), 0)).sum(1) * x.sum(1)
    np.testing.assert_allclose(xlac.compile(module, devices=4)(x), right, rtol=1e-4, atol=1e-4)


GRADIENT = "%g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>"
TURNED = "%t = stablehlo.transpose %g, dims = [1, 0] : (tensor<4x12xf32>) -> tensor<12x4xf32>"


@pytest.mark.parametrize("to, results, left", [
    ("{}, {}", "", 0), ('{"a", "b"}, {}', "", 0), ('{}, {"a", "b"}', "", 0),
    ("{}, {}", ", %g", 1),  # who reads the product itself keeps it as it is
], ids=["all", "rows", "columns", "read twice"])
def test_transposed_sums_of_products_are_sums_of_transposed_products(to, results, left):
    """The gradient of a weight: its transposition costs nothing in the product, and much after the devices have met."""
    cut = '{sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}'
    types = [f"tensor<12x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{to}]>}}"]
    types += ["tensor<4x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"] * bool(results)
    back = ", ".join(t.split(" ")[0] for t in types)
    module = xlac.parse(f"{MESH}func.func @main(%x: tensor<8x4xf32> {cut}, %y: tensor<8x12xf32> {cut}) -> ({', '.join(types)}) {{\n"
                        f"{GRADIENT}\n{TURNED}\nreturn %t{results} : {back}\n}}", format="mlir")
    text = xlac.compile_stage(module, "optimised", devices=4)
    assert text.count(" transpose(") == left
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((8, 4), np.float32), rng.standard_normal((8, 12), np.float32)
    found = xlac.compile(module, devices=4)(x, y)
    for value, right in zip(found if results else [found], [(x.T @ y).T, x.T @ y]):
        np.testing.assert_allclose(value, right, rtol=1e-5, atol=1e-5)


def exponentials(dtype, guarded, kept):
    """(text, local text) of log(sum(exp(x - top))) + top along a sharded dimension; kept: `top` has that dimension, of size 1."""
    top = f"tensor<8x1x{dtype}>" if kept else f"tensor<8x{dtype}>"
    bits = top.replace(dtype, "i1")
    body = [
        f"%z = stablehlo.constant dense<0.0> : tensor<{dtype}>",
        f"%low = stablehlo.constant dense<{'0xFF800000' if dtype == 'f32' else '0xFFF0000000000000'}> : tensor<{dtype}>",
        reduced("own", "%x", "maximum", "%low", dtype=dtype),
        f"%m = stablehlo.broadcast_in_dim %own, dims = [0] : (tensor<8x{dtype}>) -> {top}",
        f"%zeros = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<{dtype}>) -> {top}",
        f"%f = stablehlo.is_finite %m : ({top}) -> {bits}",
        f"%g = stablehlo.select %f, %m, %zeros : {bits}, {top}",
        f"%wide = stablehlo.broadcast_in_dim {'%g' if guarded else '%m'}, dims = [{'0, 1' if kept else 0}] : ({top}) -> tensor<8x16x{dtype}>",
        f"%d = stablehlo.subtract %x, %wide : tensor<8x16x{dtype}>",
        f"%e = stablehlo.exponential %d : tensor<8x16x{dtype}>",
        reduced("s", "%e", "add", "%z", dtype=dtype),
        f"return %s : tensor<8x{dtype}>",
    ]
    cut = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "b"}]>}'
    whole = f"(tensor<8x{dtype}> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}})"
    return f"{MESH}func.func @main(%x: tensor<8x16x{dtype}> {cut}) -> {whole} {{\n" + "\n".join(body) + "\n}"


@pytest.mark.parametrize("kept", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_of_exponentials_begin_with_the_maximum_of_the_own_shard(dtype, guarded, kept):
    """Also of shards of infinities, of NaN, and of numbers so low that nothing is left of them beside the others."""
    module = xlac.parse(exponentials(dtype, guarded, kept), format="mlir")
    text = xlac.compile_stage(module, "translated", devices=4)
    assert text.count(" all-reduce(") == 2
    assert text.index(f"{dtype}[8,4]{{1,0}} exponential(") < text.index(" all-reduce(")
    x = np.random.default_rng(1).standard_normal((8, 16)).astype({"f32": np.float32, "f64": np.float64}[dtype])
    x[1, 4:8] = -np.inf
    x[1] -= 500
    x[2] = -np.inf
    x[3, 5] = np.inf
    x[4, 9] = np.nan
    x[5, :4] -= 5000
    x[6, 8:] += 5000
    x[7, :12] = -np.inf
    with np.errstate(all="ignore"):
        top = x.max(1, keepdims=True)
        right = np.exp(x - (np.where(np.isfinite(top), top, 0) if guarded else top)).sum(1)
    np.testing.assert_allclose(xlac.compile(module, devices=4)(x), right, rtol=1e-5)


def test_what_else_reads_exponentials_keeps_them():
    """The sum alone may begin sooner: a softmax wants the numbers themselves, and another maximum is none of x's."""
    text = exponentials("f32", False, False)
    for old, new in (
        (
            "return %s",
            "%u = stablehlo.reduce(%e init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> "
            "tensor<8xf32>\n%v = stablehlo.add %s, %u : tensor<8xf32>\nreturn %v",
        ),
        ("reduce(%x init: %low) applies stablehlo.maximum", "reduce(%x init: %z) applies stablehlo.add"),
    ):
        assert old in text
        local = xlac.compile_stage(xlac.parse(text.replace(old, new), format="mlir"), "translated", devices=4)
        assert local.index(" all-reduce(") < local.index(" exponential(") and local.count(" exponential(") == 1


def test_arguments_that_lie_otherwise():
    exe = compiled(*PRODUCT)
    x, y = operands()
    np.testing.assert_allclose(exe(np.asfortranarray(x), y[:, ::-1]), x @ y[:, ::-1], rtol=1e-5, atol=1e-5)
    with pytest.raises(xlac.ArgumentError):
        exe(x[:4], y)
    with pytest.raises(xlac.ArgumentError):
        exe(x)


def test_bits_do_not_depend_on_threads():
    body = """%z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  return %0 : tensor<1000xf32>"""
    signature = f'(%x: {sharded("64x1000xf32", chr(34) + "a" + chr(34) + ", " + chr(34) + "b" + chr(34), "")}) -> tensor<1000xf32>'
    x = np.random.default_rng(1).standard_normal((64, 1000), np.float32)
    results = [compiled(body, signature, threads=threads, async_work=work)(x) for threads in (1, 4, 8) for work in (0, 1, 10**9)]
    assert len({r.tobytes() for r in results}) == 1
    np.testing.assert_allclose(results[0], x.sum(0), rtol=1e-4, atol=1e-4)


def test_the_interpreter_is_a_device_of_groups_too():
    x, y = operands()
    np.testing.assert_allclose(compiled(*PRODUCT, device="interp")(x, y), x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("devices", [1, 2, 3, 8])
def test_as_many_devices_as_the_mesh_has(devices):
    with pytest.raises(xlac.Error, match="expected 4 devices"):
        compiled(*PRODUCT, devices=devices)


def test_devices_by_list_and_by_mesh():
    x, y = operands()
    mesh = xlac.sharding.Mesh({"a": 2, "b": 2})
    for devices, name in ((["cpu"] * 4, "cpu:0"), (["cpu:2"] * 4, "cpu:2"), ([d for d in xlac.devices() if d.name == "cpu:0"] * 4, "cpu:0"), (mesh, "cpu:0")):
        exe = compiled(*PRODUCT, devices=devices)
        assert exe.device == name
        np.testing.assert_allclose(exe(x, y), x @ y, rtol=1e-5, atol=1e-5)
    for devices, why in ((["cpu", "cpu:1"] * 2, "one context"), ([], "at least 1"), ([1, 2], "names"), (xlac.sharding.Mesh({"a": 3}), "expected 4 devices"),
                         (["cpu", "cpu:0", "cpu"], "expected 4 devices"), (["nothing"] * 4, "nothing")):
        with pytest.raises(xlac.Error, match=why):
            compiled(*PRODUCT, devices=devices)


@pytest.mark.parametrize("devices", [0, -1, 5000, "four", 1.5])
def test_numbers_of_devices_that_are_none(devices):
    with pytest.raises(xlac.ArgumentError, match="devices"):
        compiled(*PRODUCT, devices=devices)


def test_meshes_of_one_device_cut_nothing():
    """What was exported from one device has them, in a program of several."""
    on = 'sdy.sharding = #sdy.sharding<@{}, [{{"{}"}}, {{}}]>'
    exe = compiled("%0 = stablehlo.add %x, %y : tensor<4x2xf32>\n"
                   '%1 = sdy.sharding_constraint %0 <@one, [{"i"}, {}]> : tensor<4x2xf32>\n'
                   "return %1 : tensor<4x2xf32>",
                   f"(%x: tensor<4x2xf32> {{{on.format('one', 'i')}}}, %y: tensor<4x2xf32> {{{on.format('mesh', 'a')}}}) -> "
                   f"(tensor<4x2xf32> {{{on.format('one', 'i')}}})", mesh=MESH + 'sdy.mesh @one = <["i"=1]>\n')
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(exe(x, -2 * x), -x)


def test_a_program_without_shardings_runs_on_each_device():
    exe = compiled("%0 = stablehlo.add %x, %x : tensor<3xf32>\n return %0 : tensor<3xf32>", "(%x: tensor<3xf32>) -> tensor<3xf32>", mesh="", devices=3)
    np.testing.assert_array_equal(exe(np.arange(3, dtype=np.float32)), [0, 2, 4])


def test_replicas():
    text = """HloModule m, replica_count=2, num_partitions=2
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4] parameter(0) r = u32[] replica-id() f = f32[] convert(r) y = f32[4] broadcast(f), dimensions={} z = f32[4] add(x, y)
  ROOT s = f32[4] all-reduce(z), replica_groups={{0,1}}, to_apply=add }"""
    exe = xlac.compile(xlac.parse(text), devices=4)
    np.testing.assert_array_equal(exe(np.arange(4, dtype=np.float32)), [1, 3, 5, 7])


@pytest.mark.parametrize("dtype, name", [(np.float32, "f32"), (np.float64, "f64"), (np.int32, "i32"), (np.uint32, "ui32"), (np.int64, "i64"), (np.int16, "i16")])
def test_sums_of_every_width(dtype, name):
    """Of large arrays, by all devices, and of small ones, by the last to come: in the order of the group."""
    for n in (5, 70001):
        body = f"""%0 = "stablehlo.all_reduce"(%x) ({{ ^bb0(%a: tensor<{name}>, %b: tensor<{name}>): %c = stablehlo.add %a, %b : tensor<{name}>
      stablehlo.return %c : tensor<{name}> }}) {{replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}} : (tensor<{n}x{name}>) -> tensor<{n}x{name}>
    return %0 : tensor<{n}x{name}>"""
        exe = compiled(body, f"(%x: tensor<{n}x{name}>) -> tensor<{n}x{name}>", devices=3, mesh="")
        x = (np.random.default_rng(n).standard_normal(n) * 1000).astype(dtype)
        np.testing.assert_array_equal(exe(x), x + x + x)


@pytest.mark.parametrize("members", [2, 3, 4, 7, 8, 9, 17])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_sums_of_any_number_of_members_are_in_the_order_of_the_group(members, op):
    """Of sizes that caches hold, and (here by two sizes) that are written past them, with ends that are no whole line."""
    for n in (1, 5000) if members > 8 else (1, 5000, 1600001 // members * 2 + 1):
        t = f"tensor<{members}x{n}xf32>"
        body = f"""%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a"}}, {{}}]>] out_shardings=[<@mesh, [{{"a"}}, {{}}]>] manual_axes={{"a"}} (%b: tensor<1x{n}xf32>) {{
      %r = "stablehlo.all_reduce"(%b) ({{ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %c = stablehlo.{op} %p, %q : tensor<f32>
      stablehlo.return %c : tensor<f32> }}) {{replica_groups = dense<[{list(range(members))}]> : tensor<1x{members}xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}
        : (tensor<1x{n}xf32>) -> tensor<1x{n}xf32>
      sdy.return %r : tensor<1x{n}xf32> }} : ({t}) -> {t}
    return %0 : {t}"""
        exe = compiled(body, f"(%x: {t}) -> {t}", devices=members, mesh=f'sdy.mesh @mesh = <["a"={members}]>\n')
        x = np.random.default_rng(n).standard_normal((members, n)).astype(np.float32) * 1000
        wanted = x[0]
        for row in x[1:]:
            wanted = wanted + row if op == "add" else np.maximum(wanted, row)
        np.testing.assert_array_equal(exe(x), np.broadcast_to(wanted, x.shape))


def test_devices_that_do_not_meet_run_on_the_callers_thread():
    cut = sharded("8x4xf32", '"a"', '"b"')
    exe = compiled("%0 = stablehlo.tanh %x : tensor<8x4xf32>\n return %0 : tensor<8x4xf32>", f"(%x: {cut}) -> ({cut})")
    x, _ = operands()
    before = set(os.listdir("/proc/self/task"))
    for _ in range(3):
        np.testing.assert_allclose(exe(x), np.tanh(x), rtol=1e-5)
    assert set(os.listdir("/proc/self/task")) <= before


def threads_of(call):
    before = set(os.listdir("/proc/self/task"))
    call()
    return len(set(os.listdir("/proc/self/task")) - before)


def test_devices_with_little_to_do_meet_in_turns_on_the_callers_thread():
    x, y = operands()
    small, forced = compiled(*PRODUCT), compiled(*PRODUCT, async_work=1)
    assert threads_of(lambda: small(x, y)) == 0 and "in turns on the caller's thread" in small.explain("sharding")
    assert threads_of(lambda: forced(x, y)) >= 3 and "they run on a thread each" in forced.explain("sharding")
    for _ in range(3):
        assert small(x, y).tobytes() == forced(x, y).tobytes()


ON_FEW_CPUS = """
import os, signal, sys, time
signal.signal(signal.SIGALRM, signal.default_int_handler)
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])  # before the library counts
import numpy as np
import xlac
text = open(sys.argv[1]).read()
x = np.random.default_rng(0).standard_normal((1024, 512), np.float32)
few, each = (xlac.compile(xlac.parse(text, format="mlir"), devices=8, async_work=work) for work in (0, 1))
assert few.explain("sharding").data["run"].startswith("in turns on a thread for each CPU"), few.explain("sharding")
assert each.explain("sharding").data["run"] == "on a thread each"
before = set(os.listdir("/proc/self/task"))
for i in range(20):
    assert few(x + i).tobytes() == each(x + i).tobytes()
    if i == 0:
        np.testing.assert_allclose(few(x), np.tanh(x / 4) * np.tanh(x / 4).sum(1, keepdims=True), rtol=1e-3, atol=1e-3)
for i in range(5):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3 * (i + 1))
        for _ in range(100):
            few(x)
        time.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
    assert few(x).tobytes() == each(x).tobytes()
"""


def test_more_devices_than_cpus_take_turns_on_a_thread_for_each(tmp_path):
    """The bits are those of a thread for each device, also after calls that were interrupted."""
    body = "\n".join(["""%c = stablehlo.constant dense<2.5e-1> : tensor<1024x512xf32>
    %s = stablehlo.multiply %x, %c : tensor<1024x512xf32>
    %y = stablehlo.tanh %s : tensor<1024x512xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>""", reduced("r", "%y", "add", "%z", "1024x512"), """
    %w = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<1024xf32>) -> tensor<1024x512xf32>
    %o = stablehlo.multiply %y, %w : tensor<1024x512xf32>
    return %o : tensor<1024x512xf32>"""])
    cut = 'tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}'
    path = tmp_path / "module.mlir"
    path.write_text(f'sdy.mesh @mesh = <["a"=2, "b"=4]>\nfunc.func @main(%x: {cut}) -> ({cut}) {{\n{body}\n}}')
    done = subprocess.run([sys.executable, "-c", ON_FEW_CPUS, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == 5 * "interrupted\n", done.stdout + done.stderr


def test_branches_that_meet_have_threads():
    body = """%z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.constant dense<true> : tensor<i1>
  %r = "stablehlo.if"(%p) ({
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %s : tensor<f32>
  }, { stablehlo.return %z : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
  return %r : tensor<f32>"""
    exe = compiled(body, f'(%x: {sharded("8xf32", chr(34) + "a" + chr(34))}) -> tensor<f32>', async_work=10**9)
    assert exe.explain("sharding").data["run"].startswith("on a thread each, since an op")


def long_chain(rows, products):
    """Products of rows by a square, one after another: each device has a share of the rows."""
    lines = [f"%{k + 1} = stablehlo.dot_general %{k if k else 'x'}, %w, contracting_dims = [1] x [0] : (tensor<{rows}x{rows}xf32>, "
             f"tensor<{rows}x{rows}xf32>) -> tensor<{rows}x{rows}xf32>" for k in range(products)]
    cut = sharded(f"{rows}x{rows}xf32", '"a", "b"', "")
    return "\n".join([*lines, f"return %{products} : tensor<{rows}x{rows}xf32>"]), f"(%x: {cut}, %w: tensor<{rows}x{rows}xf32>) -> tensor<{rows}x{rows}xf32>"


def test_ctrl_c_ends_devices_in_turns():
    exe = compiled(*long_chain(2048, 60), async_work=10**15)
    assert "in turns" in exe.explain("sharding")
    x = np.zeros((2048, 2048), np.float32)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exe(x, x)
    assert time.monotonic() - began < 20
    timer.join()


CALL = ("""%0 = stablehlo.custom_call @sharded_test(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>} : (tensor<8xf32>) -> tensor<8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>""", f'(%x: {sharded("8xf32", chr(34) + "a" + chr(34) + ", " + chr(34) + "b" + chr(34))}) -> tensor<f32>')


@pytest.fixture
def custom_call():
    yield lambda f: xlac.register_custom_call("sharded_test", f)
    xlac.register_custom_call("sharded_test", None)


def test_an_exception_in_one_device_ends_all(custom_call):
    def fails(x):
        if x[0] == 4:
            raise ValueError("not this one")
        return x

    custom_call(fails)
    exe = compiled(*CALL)
    x = np.arange(8, dtype=np.float32)
    for _ in range(3):
        with pytest.raises(Exception, match="not this one|device 2"):
            exe(x)
    custom_call(lambda x: x * 2)
    assert exe(x) == 56


@pytest.mark.parametrize("async_work", [1, 10**9])
def test_calls_at_the_same_time(async_work):
    exe = compiled(*PRODUCT, async_work=async_work)
    wrong = []

    def many(seed):
        x, y = operands(seed)
        for _ in range(20):
            if not np.allclose(exe(x, y), x @ y, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=many, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


LOOP = ("""%c = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %c, %v = %x) : tensor<i32>, tensor<8xf32>
    cond { %n = stablehlo.constant dense<2000000000> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do { %o = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %o : tensor<i32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %w = stablehlo.subtract %v, %b : tensor<8xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<8xf32>
    }
  return %r#1 : tensor<8xf32>""", f'(%x: {sharded("8xf32", chr(34) + "a" + chr(34))}) -> tensor<8xf32>')


@pytest.mark.parametrize("async_work", [1, 10**9])
def test_ctrl_c_ends_all_devices(async_work):
    exe = compiled(*LOOP, async_work=async_work)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exe(np.ones(8, np.float32))
    assert time.monotonic() - began < 20
    timer.join()


def test_devices_that_wait_for_one_another():
    # Device 0 goes where no other goes, and waits there for all.
    body = """%id = stablehlo.partition_id : tensor<ui32>
  %z = stablehlo.constant dense<0> : tensor<ui32>
  %p = stablehlo.compare EQ, %id, %z : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({
    %s = "stablehlo.all_reduce"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32> }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %s : tensor<2xf32>
  }, { stablehlo.return %x : tensor<2xf32> }) : (tensor<i1>) -> tensor<2xf32>
  return %r : tensor<2xf32>"""
    exe = compiled(body, "(%x: tensor<2xf32>) -> tensor<2xf32>", devices=2, mesh="")
    for _ in range(2):
        with pytest.raises(xlac.Error, match="device 0 waits in .* for device 1, which has finished"):
            exe(np.ones(2, np.float32))


def test_a_forked_child_has_threads_of_its_own():
    exe = compiled(*PRODUCT)
    x, y = operands()
    exe(x, y)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(exe(x, y), x @ y, atol=1e-5) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("out", ["", '"a"', '"b"', '"a", "b"'])
@pytest.mark.parametrize("into", ["", '"a"', '"b"', '"a", "b"'])
def test_whole_arrays_are_given_away_where_no_other_device_reads_them(into, out):
    body = "%0 = stablehlo.cosine %x : tensor<4096xf32>\n %1 = stablehlo.add %0, %x : tensor<4096xf32>\n return %1 : tensor<4096xf32>"
    exe = compiled(body, f"(%x: {sharded('4096xf32', into)[:-1]}, tf.aliasing_output = 0 : i32}}) -> ({sharded('4096xf32', out)})")
    x = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
    wanted, given = np.cos(x) + x, x.copy()
    if into == out == '"a", "b"':
        found = exe(xlac.donate(given))
        assert np.shares_memory(found, given)
    else:
        with pytest.warns(xlac.errors.DonationWarning):
            found = exe(xlac.donate(given))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_executables_of_groups_are_serialized():
    """As what they were compiled from, with their options: what is said of them is said again."""
    text, *values = SERIALIZED
    for options in ({}, {"donate": [0]}, {"fuse": False, "passes": False}, {"numerics": "fast", "threads": 4}):
        for form in ("mlir", "hlo"):
            module = xlac.parse(text, format="mlir")
            exe = xlac.compile(module if form == "mlir" else xlac.parse(HLO), devices=4, results="sharded", **options)
            wanted = [shard.data.numpy().tolist() for shard in exe(*values).shards]
            module = None
            for again in (xlac.load(exe.serialize(), results="sharded"), pickle.loads(pickle.dumps(exe))):
                assert [shard.data.numpy().tolist() for shard in again(*values).shards] == wanted
                said = [re.sub(r"at line \d+", "", str(one.explain("sharding"))) for one in (exe, again)]  # the program is printed anew
                assert said[0] == said[1] and len(again.donations) == len(exe.donations)
                assert again.numerics == exe.numerics and again.serialize() == exe.serialize()
    assert xlac.load(exe.serialize(), threads=1)(*values).tolist() == exe(*values).numpy().tolist()


def test_damaged_bytes_of_groups_are_refused():
    data = bytearray(xlac.compile(xlac.parse(SERIALIZED[0], format="mlir"), devices=4, donate=[0]).serialize())
    for damage in (lambda d: d[:-9], lambda d: d[:60] + b"x" + d[61:], lambda d: d[:20] + (8).to_bytes(4, "little") + d[24:]):
        with pytest.raises(xlac.Error):
            xlac.load(bytes(damage(data)))


SERIALIZED = ("""sdy.mesh @m = <["x"=2, "y"=2]>
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {"y"}]>}) {
  %0 = stablehlo.constant dense<0.1> : tensor<8x6xf32>
  %1 = stablehlo.reverse %x, dims = [0] : tensor<8x6xf32>
  %2 = stablehlo.add %1, %0 : tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}""", np.arange(48, dtype=np.float32).reshape(8, 6))
HLO = """HloModule m, num_partitions=4
ENTRY e { x = f32[8,6] parameter(0)
  id = u32[] partition-id()
  f = f32[] convert(id)
  b = f32[8,6] broadcast(f), dimensions={}
  ROOT r = f32[8,6] add(x, b) }"""


def test_devices_share_the_caches():
    """What one device would have no need to go through row by row, four do: scores of queries and keys are in no device's memory."""
    queries = 'tensor<4x512x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "b"}, {}]>}'
    body = """
    %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x512x32xf32>, tensor<4x512x32xf32>) -> tensor<4x512x512xf32>
    %t = stablehlo.tanh %s : tensor<4x512x512xf32>
    %o = stablehlo.dot_general %t, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x512x512xf32>, tensor<4x512x32xf32>) -> tensor<4x512x32xf32>
    return %o : tensor<4x512x32xf32>"""
    q, k, v = np.random.default_rng(0).standard_normal((3, 4, 512, 32), np.float32) / 8
    exe = compiled(body, f"(%q: {queries}, %k: tensor<4x512x32xf32>, %v: tensor<4x512x32xf32>) -> ({queries})")
    assert exe.memory["frame_bytes"] < 4 * 128 * 512 * 4
    np.testing.assert_allclose(exe(q, k, v), np.einsum("bqk,bkd->bqd", np.tanh(np.einsum("bqd,bkd->bqk", q, k)), v), rtol=1e-4, atol=1e-5)


def test_devices_that_read_much_whole_do_not_go_by_rows():
    """Weights that are too large for the second cache would be read from farther away once a tile."""
    rows = 'tensor<512x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}'
    body = """
    %s = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
    %t = stablehlo.tanh %s : tensor<512x1024xf32>
    %o = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0] : (tensor<512x1024xf32>, tensor<1024x1024xf32>) -> tensor<512x1024xf32>
    return %o : tensor<512x1024xf32>"""
    exe = compiled(body, f"(%x: {rows}, %w: tensor<1024x1024xf32>, %v: tensor<1024x1024xf32>) -> ({rows})")
    assert "products, tile by tile" not in str(exe.explain("fusion"))


def test_replica_groups_along_axes_are_those_of_devices():
    """JAX 0.11 names axes of a mesh, which need not be the one of the shardings, where older ones listed devices."""
    meshes = {"@mesh": "", "@again": 'sdy.mesh @again = <["a"=2, "b"=4]>\n', "@turned": 'sdy.mesh @turned = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n'}

    def gathered(groups, members, mesh=""):
        body = f"""%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"a", "b"}}]>] out_shardings=[<@mesh, [{{"a", "b"}}]>] manual_axes={{"a", "b"}} (%s: tensor<1xf32>) {{
          %1 = "stablehlo.all_gather"(%s) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = {groups}, use_global_device_ids}}> : (tensor<1xf32>) -> tensor<{members}xf32>
          sdy.return %1 : tensor<{members}xf32>
        }} : (tensor<8xf32>) -> tensor<{8 * members}xf32>
        return %0 : tensor<{8 * members}xf32>"""
        exe = compiled(body, f"(%x: tensor<8xf32>) -> tensor<{8 * members}xf32>", 8, 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n' + mesh)
        return exe(np.arange(8, dtype=np.float32)).reshape(8, members).astype(int).tolist()

    a, b, (low, high) = '#stablehlo.axis_ref<name = "a">', '#stablehlo.axis_ref<name = "b">', (
        f'#stablehlo.axis_ref<name = "b", sub_axis_info = #stablehlo.sub_axis_info<pre_size = {pre}, size = 2>>' for pre in (2, 1))
    for axes, lists in [([a], [[0, 4], [1, 5], [2, 6], [3, 7]]), ([b], [[0, 1, 2, 3], [4, 5, 6, 7]]), ([b, a], [[0, 4, 1, 5, 2, 6, 3, 7]]),
                        ([low, a], [[0, 4, 1, 5], [2, 6, 3, 7]]), ([high], [[0, 2], [1, 3], [4, 6], [5, 7]]), ([], [[d] for d in range(8)])]:
        for name, mesh in meshes.items():
            own = [[7 - d for d in row] for row in lists] if name == "@turned" else lists
            expected = [next(row for row in own if d in row) for d in range(8)]
            assert gathered(f"#stablehlo.replica_group_mesh_axes<mesh = {name}, axes = [{', '.join(axes)}]>", len(lists[0]), mesh) == expected, (axes, name)
    for wrong in (['#stablehlo.axis_ref<name = "c">'], [a, a], [b, low]):
        with pytest.raises(xlac.Error, match="axes that @mesh does not have"):
            gathered(f"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{', '.join(wrong)}]>", 2)
