"""Buffers in memory that the host does not see, through the C interface: a GPU's, on the driver that simulates."""
import os
import pathlib
import shutil
import subprocess

import pytest

DRIVER = pathlib.Path(__file__).resolve().parents[1] / "cuda" / "driver" / "build"
SUM = b"HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] add(x, x) }\n"


@pytest.fixture(scope="module", autouse=True)
def driver():
    if not DRIVER.exists() or not shutil.which("cc") or not shutil.which("c++"):
        pytest.skip("no compiler for the driver that simulates")
    os.environ["XLAC_CUDA_DRIVER"] = subprocess.run([DRIVER], capture_output=True, text=True, check=True).stdout.strip()


class Runtime:
    def __init__(self, x):
        self.x, self.lib, self.ffi, out = x, x.lib, x.ffi, x.ffi.new("xlac_runtime **")
        x.check(self.lib.xlac_runtime_create(out, x.err))
        self.rt = out[0]
        self.gpu = self.device(b"cuda:0")

    def device(self, name):
        out = self.ffi.new("const xlac_device **")
        self.x.check(self.lib.xlac_runtime_find_device(self.rt, name, out, self.x.err))
        return out[0]

    def made(self, call, *args):
        out = self.ffi.new("xlac_buffer **")
        self.x.check(call(out, *args, self.x.err))
        return out[0]

    def host(self, values):
        f32 = self.lib.xlac_dtype_from_text(b"f32")
        b = self.made(self.lib.xlac_buffer_create, self.rt, self.ffi.NULL, f32, 1, self.ffi.new("int64_t[]", [len(values)]))
        self.ffi.memmove(self.info(b).data, self.ffi.new("float[]", values), 4 * len(values))
        return b

    def info(self, b):
        info = self.ffi.new("xlac_buffer_info *")
        self.lib.xlac_buffer_get(b, info)
        return info

    def copied(self, b, to):
        return self.made(self.lib.xlac_buffer_copy_on, to, self.rt, b)

    def values(self, b):
        out = self.ffi.new("float[]", int(self.info(b).count))
        self.x.check(self.lib.xlac_buffer_copy_to(b, self.rt, out, self.x.err))
        return list(out)

    def release(self, *buffers):
        for b in buffers:
            self.lib.xlac_buffer_release(b)


@pytest.fixture
def r(x):
    runtime = Runtime(x)
    yield runtime
    x.lib.xlac_runtime_destroy(runtime.rt)


def test_devices_are_found_and_say_what_they_are(x, r):
    info = x.ffi.new("xlac_device_info *")
    x.lib.xlac_device_get(r.gpu, info)
    assert (x.text(info.name), x.text(info.kind), info.host_visible) == ("cuda:0", "cuda", False)
    assert r.device(b"cpu") == x.ffi.NULL and r.device(b"cuda:0") == r.gpu
    assert x.lib.xlac_runtime_find_device(r.rt, b"cuda:99", x.ffi.new("const xlac_device **"), x.err) < 0
    for stream in (0, 1, 2**64 - 1):
        x.check(x.lib.xlac_device_join(r.gpu, stream, x.err))


def test_copies_between_the_host_and_the_gpu(x, r):
    numbers = [float(i) for i in range(10)]
    here = r.host(numbers)
    there = r.copied(here, r.gpu)
    again, back = r.copied(there, r.gpu), r.copied(there, x.ffi.NULL)
    same = r.made(x.lib.xlac_buffer_copy, r.rt, there)
    assert r.info(here).device == r.info(back).device == x.ffi.NULL and r.info(there).device == r.info(same).device == r.gpu
    assert [r.values(b) for b in (there, again, back, same)] == [numbers] * 4
    assert len({r.info(b).data for b in (there, again, same)}) == 3
    x.lib.xlac_buffer_share(there)
    x.lib.xlac_buffer_share(here)  # which is nothing to the host's
    r.release(here, there, again, back, same)


def test_memory_of_another_owner_in_strides(x, r):
    here, dims, strides = r.host([float(i) for i in range(12)]), x.ffi.new("int64_t[]", [2, 3]), x.ffi.new("int64_t[]", [-16, 4])
    there = r.copied(here, r.gpu)
    layout = x.ffi.new("xlac_layout *", {"dtype": r.info(there).dtype, "rank": 2, "dims": dims, "strides": strides, "device": r.gpu})
    memory = x.ffi.new("xlac_memory *", {"data": r.info(there).data + 20})
    view = r.made(x.lib.xlac_buffer_wrap, x.ffi.NULL, layout, memory)
    assert r.values(view) == [5.0, 6.0, 7.0, 1.0, 2.0, 3.0]
    r.release(view, there, here)


def test_what_has_no_device_or_no_size_is_refused(x, r):
    out, dims = x.ffi.new("xlac_buffer **"), x.ffi.new("int64_t[]", [1 << 62])
    assert x.lib.xlac_buffer_create_on(out, x.ffi.NULL, x.ffi.NULL, 1, 1, dims, x.err) < 0
    assert x.lib.xlac_buffer_create_on(out, r.gpu, x.ffi.NULL, r.lib.xlac_dtype_from_text(b"f64"), 1, dims, x.err) < 0


def test_calls_on_buffers_leave_results_there(x, r):
    m, exe = x.parse(SUM.decode()), x.ffi.new("xlac_executable **")
    name = x.ffi.new("char[]", b"cuda:0")
    x.check(x.lib.xlac_compile(m, x.options("xlac_compile_options", {"runtime": r.rt, "device": name}), exe, x.err))
    assert x.lib.xlac_executable_memory(exe[0]) == r.gpu
    given, results, args = r.host([1.5] * 64), x.ffi.new("xlac_buffer *[1]"), x.ffi.new("xlac_input **")
    x.check(x.lib.xlac_input_create(args, exe[0], x.err))
    for _ in range(3):
        x.check(x.lib.xlac_input_lend(args[0], 0, given, x.err))
        x.check(x.lib.xlac_executable_run_input(exe[0], x.ffi.NULL, args[0], results, x.err))
        r.release(given)
        given = results[0]
    assert r.info(given).device == r.gpu and r.values(given) == [12.0] * 64
    r.release(given)
    x.lib.xlac_input_destroy(args[0])
    x.lib.xlac_executable_destroy(exe[0])
    x.lib.xlac_module_destroy(m)


def test_each_device_of_a_group_has_its_own_memory(x, r):
    """Whole arrays are the host's; shards are where their devices are."""
    text = b"""sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    m, exe = x.parse(text.decode()), x.ffi.new("xlac_executable **")
    name = x.ffi.new("char[]", b"cuda:1,cuda:0")
    x.check(x.lib.xlac_compile(m, x.options("xlac_compile_options", {"runtime": r.rt, "device": name, "n_devices": 2}), exe, x.err))
    assert x.lib.xlac_executable_memory(exe[0]) == x.ffi.NULL
    assert [x.lib.xlac_executable_shard_memory(exe[0], d) for d in range(3)] == [r.device(b"cuda:1"), r.gpu, x.ffi.NULL]
    x.lib.xlac_executable_destroy(exe[0])
    x.lib.xlac_module_destroy(m)
