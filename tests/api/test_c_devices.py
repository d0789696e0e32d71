"""Devices through the C interface: their names, contexts that share nothing, and what each stage of compiling leaves."""
import pytest

SUM = "HloModule m\nENTRY e { x = f32[64] parameter(0)\n ROOT y = f32[64] add(x, x) }\n"


@pytest.fixture
def runtime(x):
    out = x.ffi.new("xlac_runtime **")
    x.check(x.lib.xlac_runtime_create(out, x.err))
    yield out[0]
    x.lib.xlac_runtime_destroy(out[0])


def opened(x, runtime, name):
    info = x.ffi.new("xlac_device_info *")
    x.check(x.lib.xlac_runtime_open_device(runtime, name, info, x.err))
    return x.text(info.name), x.text(info.kind), info.ordinal


def listed(x, runtime):
    info, names = x.ffi.new("xlac_device_info *"), []
    while x.lib.xlac_runtime_device(runtime, len(names), info):
        names.append(x.text(info.name))
    return names


def compiled(x, runtime, device, text=SUM):
    m, out, name = x.parse(text), x.ffi.new("xlac_executable **"), x.ffi.new("char[]", device)
    options = x.options("xlac_compile_options", {"runtime": runtime, "device": name})
    status = x.lib.xlac_compile(m, options, out, x.err)
    x.lib.xlac_module_destroy(m)
    x.check(status)
    return out[0]


def call(x, exe):
    given, got = x.ffi.new("float[64]", [1.5] * 64), x.ffi.new("float[64]")
    x.check(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.new("void *[]", [given]), x.ffi.new("void *[]", [got]), x.err))
    return list(got)


def test_devices_are_opened_by_name_and_listed_in_the_order_of_opening(x, runtime):
    assert listed(x, runtime) == ["cpu:0"]
    assert opened(x, runtime, b"interp") == ("interp:0", "interp", 0)
    assert opened(x, runtime, b"cpu:1") == ("cpu:1", "cpu", 1)
    assert opened(x, runtime, x.ffi.NULL) == opened(x, runtime, b"cpu") == opened(x, runtime, b"cpu:0") == ("cpu:0", "cpu", 0)
    assert listed(x, runtime) == ["cpu:0", "interp:0", "cpu:1"]


@pytest.mark.parametrize("name", [b"", b"cpu:", b"cpu:x", b"cpu:-1", b"cpu:1000000000000", b"cpu:256", b"CPU", b"interp:1:2", b"cpu 1"])
def test_names_of_no_device_are_refused_with_those_there_are(x, runtime, name):
    info = x.ffi.new("xlac_device_info *")
    x.fails(x.lib.xlac_runtime_open_device(runtime, name, info, x.err), 503)
    assert "cpu, interp" in x.text(x.err.hint) and name.decode() in x.text(x.err.message)
    assert listed(x, runtime) == ["cpu:0"]


def test_without_a_driver_there_is_no_gpu_and_the_error_says_what_was_tried(x, runtime, monkeypatch):
    monkeypatch.setenv("XLAC_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    x.fails(x.lib.xlac_runtime_open_device(runtime, b"cuda", x.ffi.new("xlac_device_info *"), x.err), 405)
    assert "/nowhere/libcuda.so.1" in x.text(x.err.message) and listed(x, runtime) == ["cpu:0"]


def test_each_device_runs_the_program_on_memory_of_its_own(x, runtime):
    info = x.ffi.new("xlac_device_info *")
    for device in (b"cpu:0", b"cpu:1", b"interp"):
        exe = compiled(x, runtime, device)
        assert call(x, exe) == [3.0] * 64
        x.lib.xlac_executable_device(exe, info)
        assert x.text(info.name).startswith(device.decode()) and info.host_visible
        x.lib.xlac_executable_destroy(exe)


def test_a_device_lives_as_long_as_a_program_on_it(x):
    out = x.ffi.new("xlac_runtime **")
    x.check(x.lib.xlac_runtime_create(out, x.err))
    exe = compiled(x, out[0], b"cpu:1")
    x.lib.xlac_runtime_destroy(out[0])
    assert call(x, exe) == [3.0] * 64
    x.lib.xlac_executable_destroy(exe)


def test_a_context_has_threads_of_its_own(x, runtime):
    big = "HloModule m\nENTRY e { x = f32[4194304] parameter(0)\n ROOT y = f32[4194304] exponential(x) }\n"
    info, threads = x.ffi.new("xlac_runtime_info *"), []
    for device in (b"cpu", b"cpu:1"):
        m, out, name = x.parse(big), x.ffi.new("xlac_executable **"), x.ffi.new("char[]", device)
        options = x.options("xlac_compile_options", {"runtime": runtime, "device": name, "threads": 3})
        x.check(x.lib.xlac_compile(m, options, out, x.err))
        x.lib.xlac_module_destroy(m)
        data, result = x.ffi.new("float[4194304]"), x.ffi.new("float[4194304]")
        x.check(x.lib.xlac_executable_call(out[0], x.ffi.NULL, x.ffi.new("void *[]", [data]), x.ffi.new("void *[]", [result]), x.err))
        x.lib.xlac_runtime_get(runtime, info)
        threads.append(info.threads)
        x.lib.xlac_executable_destroy(out[0])
    assert threads[0] > 0 and threads[1] == 2 * threads[0]


def test_the_interpreter_runs_what_no_plan_is_made_for(x, runtime):
    text = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n n = s32[] constant(2)\n ROOT r = f32[<=4] set-dimension-size(x, n), dimensions={0} }\n"
    exe, info, dev = compiled(x, runtime, b"cpu", text), x.ffi.new("xlac_executable_info *"), x.ffi.new("xlac_device_info *")
    x.lib.xlac_executable_get(exe, info)
    x.lib.xlac_executable_device(exe, dev)
    assert "known only when it runs" in x.text(info.interpreted) and x.text(dev.name) == "interp:0"
    x.fails(x.lib.xlac_executable_call(exe, x.ffi.NULL, x.ffi.NULL, x.ffi.NULL, x.err), 503)
    x.lib.xlac_executable_destroy(exe)


STAGES = {"translated": "ROOT %y = f32[64]{0} add(%x, %x)", "prepared": "ROOT %y", "optimised": "ROOT %y", "fused": "y", "kernels": "// e, step 0: y",
          "plan": "0 kernel add y: result 0 f32[64] <- argument 0 f32[64]", "executable": "m on cpu:0\nprogram e"}


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_of_compiling_gives_its_text(x, stage):
    m, text, n = x.parse(SUM), x.ffi.new("char **"), x.ffi.new("size_t *")
    x.check(x.lib.xlac_compile_dump(m, x.ffi.NULL, stage.encode(), text, n, x.err))
    got = x.take(text[0])
    assert STAGES[stage] in got and len(got) == n[0]
    x.lib.xlac_module_destroy(m)


def test_a_stage_that_there_is_not_is_refused_with_those_there_are(x):
    m, text = x.parse(SUM), x.ffi.new("char **")
    x.fails(x.lib.xlac_compile_dump(m, x.ffi.NULL, b"linked", text, x.ffi.NULL, x.err), 503)
    assert "translated, prepared, optimised, fused, kernels, programs, assembly, plan, executable" in x.text(x.err.hint)
    x.fails(x.lib.xlac_compile_dump(m, x.ffi.NULL, x.ffi.NULL, text, x.ffi.NULL, x.err), 503)
    x.lib.xlac_module_destroy(m)
