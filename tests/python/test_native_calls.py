"""Custom calls in native code: xlac_ffi.h from C through ctypes and cffi, in both executors."""
import ctypes
import pathlib
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest

import xlac
import xlac.include

HERE = pathlib.Path(__file__).resolve().parent
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def build(folder, source, *flags):
    path = folder / f"lib{source.stem}.so"
    subprocess.run([CC, "-shared", "-fPIC", "-O1", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", *flags, "-I",
                    xlac.include.directory(), source, "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return build(tmp_path_factory.mktemp("native"), HERE / "native_calls.c")


@pytest.fixture
def lib(path):
    lib = ctypes.CDLL(str(path))
    names = "describe copy increment refuse say_nothing sum wait_for_it".split()
    for name in names:
        xlac.register_custom_call(name, getattr(lib, name))
    yield lib
    for name in [*names, "mine"]:
        xlac.register_custom_call(name, None)


def hlo(body, root="r"):
    return xlac.parse("HloModule m\nENTRY e {\n x = f32[3,4] parameter(0)\n" + body + "\n}")


def everywhere(module, *args):
    """The results of the interpreter and of compiled programs, which must agree, and the executable has no interpreted step."""
    want = xlac.interpret(module, *args)
    for threads in (1, 3):
        executable = xlac.compile(module, threads=threads)
        got = executable(*args)
        assert executable.steps["interpreted"] == 0 and executable.steps["why_interpreted"] is None
        for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            np.testing.assert_array_equal(a, b)
    return want


def described(module, *args):
    out = everywhere(module, *args)
    return bytes(out[-1] if isinstance(out, tuple) else out).rstrip(b"\0").decode()


def test_the_frame(lib):
    text = described(hlo(""" s = s32[] constant(7)
 u = (f32[3,4], s32[]) tuple(x, s)
 ROOT r = (c64[2], token[], u8[600]) custom-call(u, s), custom_call_target="describe", backend_config="a \\"b\\"" """), X)
    assert text == ('1 describe r opaque=a "b":5 [11:3@1,4@0,12 48 1][4:1 4 1][4:1 4 1]->[15:2@0,2 16 1][17:0 0 0][6:600@0,600 600 1] ')


def test_attributes(lib):
    text = described(hlo(r""" ROOT r = u8[900] custom-call(x), custom_call_target="describe", api_version=API_VERSION_TYPED_FFI,
 backend_config={a = 5 : i32, b = -3 : i64, c = 0.1 : f32, d = 1.5, e = "x\22y\0Az", "f g" = true, h, i = array<i32: 1, -2>, j = array<i64>,
 k = {l = 255 : ui8, m = {}}, n = dense<[1, 2, 3]> : tensor<3xi64>, o = @sym, p = dense<0> : tensor<2x2xi32>, p2 = dense<5> : tensor<3xi64>, q = 0x7F800000 : f32,
 r = array<f64: 0.5, 2>, s = false, t = 18446744073709551615 : ui64, u = [1, "]"]}"""), X)
    assert text.split("] ")[1:] == ["a=2:4:5;b=2:5:-3;c=3:11:0.10000000149011612;d=3:12:1.5;e=4:0:x\"y\nz;f g=1:1:1;h=1:1:1;"
                                    "i=5:4:2:1,-2,;j=5:5:0:;k=6:0:{l=2:6:255;m=6:0:{};};n=5:5:3:1,2,3,;o=7:0:@sym;"
                                    "p=7:0:dense<0> : tensor<2x2xi32>;p2=5:5:3:5,5,5,;q=3:11:inf;r=5:12:2:0.5,2,;s=1:1:0;t=2:9:-1;u=7:0:[1, \"]\"];"]


@pytest.mark.parametrize("config", ["{a = }", "{a = 1 : f99}", "{a = 1.5 : i32}", "{= 1}", "{a = 1 b = 2}", "{a = array<i7: 1>}",
                                    "{a = array<i32: x>}", "{a = \"\\q\"}", "{a = {b = 1 : }}", "{a = 1..5}"])
def test_attributes_that_are_none(lib, config):
    module = hlo(f' ROOT r = u8[9] custom-call(x), custom_call_target="describe", api_version=API_VERSION_TYPED_FFI, backend_config={config}')
    for run in (xlac.compile(module), lambda x: xlac.interpret(module, x)):
        with pytest.raises(xlac.Error, match="backend_config that can't be read") as caught:
            run(X)
        assert caught.value.op == "r" and "{name = 1 : i32" in caught.value.hint


def test_deep_attributes(lib):
    config = "{a = " * 40 + "1" + "}" * 40
    module = hlo(f' ROOT r = u8[9] custom-call(x), custom_call_target="describe", api_version=API_VERSION_TYPED_FFI, backend_config={config}')
    with pytest.raises(xlac.Error, match="too deep"):
        xlac.compile(module)(X)


def test_layouts(lib):
    """What has other layouts is seen in them: a copy of bytes from one layout to the other is a transposition."""
    y = everywhere(hlo(""" ROOT r = f32[4,3]{1,0} custom-call(x), custom_call_target="copy", operand_layout_constraints={f32[3,4]{0,1}}"""), X)
    np.testing.assert_array_equal(y, X.T)
    big = np.arange(3 * 70 * 90, dtype=np.float32).reshape(3, 70, 90)
    module = xlac.parse("""HloModule m
ENTRY e { x = f32[3,70,90] parameter(0)
 ROOT r = f32[3,90,70]{1,2,0} custom-call(x), custom_call_target="copy", operand_layout_constraints={f32[3,70,90]{2,1,0}} }""")
    np.testing.assert_array_equal(everywhere(module, big), big.transpose(0, 2, 1))
    module = xlac.parse("""HloModule m
ENTRY e { x = f32[0,70,90] parameter(0)
 ROOT r = f32[0,90,70]{1,2,0} custom-call(x), custom_call_target="copy", operand_layout_constraints={f32[0,70,90]{0,1,2}} }""")
    assert everywhere(module, big[:0]).shape == (0, 90, 70)


def test_aliases(lib):
    """The argument stays as it is; what dies is overwritten."""
    body = """ c = f32[] constant(2)
 b = f32[3,4] broadcast(c), dimensions={}
 y = f32[3,4] multiply(x, b)
 z = f32[3,4] custom-call(y), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}"""
    before = X.copy()
    one = everywhere(hlo(body + "\n ROOT r = f32[3,4] negate(z)"), X)
    np.testing.assert_array_equal(one, -(2 * X + 1))
    both = everywhere(hlo(body + "\n ROOT r = (f32[3,4], f32[3,4]) tuple(y, z)"), X)
    np.testing.assert_array_equal(both[0], 2 * X)
    np.testing.assert_array_equal(both[1], 2 * X + 1)
    layouts = body.replace("custom-call(y)", "custom-call(x)").replace("z = f32[3,4]", "z = f32[3,4]{0,1}") + ", operand_layout_constraints={f32[3,4]{0,1}}"
    np.testing.assert_array_equal(everywhere(hlo(layouts + "\n ROOT r = f32[3,4] negate(z)"), X), -(X + 1))
    np.testing.assert_array_equal(X, before)


def test_failures(lib):
    for name, message in (("refuse", "custom call refuse failed: no luck today, 7$"), ("say_nothing", "it gave no reason")):
        module = hlo(f' ROOT r = f32[3,4] custom-call(x), custom_call_target="{name}"')
        for run in (xlac.compile(module), lambda x, m=module: xlac.interpret(m, x)):
            with pytest.raises(xlac.Error) as caught:
                run(X)
            assert caught.value.op == "r" and caught.value.line == 4
            assert message.rstrip("$") in str(caught.value)


def test_threads_and_memory(lib):
    x = np.random.default_rng(0).standard_normal(100_001)
    module = xlac.parse('HloModule m\nENTRY e { x = f64[100001] parameter(0)\n ROOT r = f64[] custom-call(x), custom_call_target="sum" }')
    np.testing.assert_allclose(everywhere(module, x), x.sum(), rtol=1e-9)
    user = ctypes.c_double.in_dll(lib, "constant_of_the_tests")
    xlac.register_custom_call("sum", lib.sum, user=ctypes.addressof(user))
    np.testing.assert_allclose(everywhere(module, x), x.sum() + 0.25, rtol=1e-9)


def test_interruption(lib):
    module = hlo(' ROOT r = f32[3,4] custom-call(x), custom_call_target="wait_for_it"')
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        xlac.compile(module)(X)
    timer.join()


def test_what_can_be_registered(lib, path):
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("int copy(void *frame);")
    own = ffi.dlopen(str(path))
    address = ctypes.cast(lib.copy, ctypes.c_void_p).value
    api = ctypes.pythonapi
    api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    module = hlo(' ROOT r = f32[3,4] custom-call(x), custom_call_target="mine"')
    executable = xlac.compile(module)
    numba = type("cfunc", (), {"address": address})()
    for what in (address, lib.copy, ffi.addressof(own, "copy"), ffi.cast("void *", address), numba,
                 api.PyCapsule_New(address, b"xlac_ffi", None)):
        with pytest.raises(xlac.Error, match="no custom call is registered.*mine") as caught:
            executable(X)
        assert "register_custom_call" in caught.value.hint
        xlac.register_custom_call("mine", what)  # after compiling
        np.testing.assert_array_equal(executable(X), X)
        np.testing.assert_array_equal(xlac.interpret(module, X), X)
        xlac.register_custom_call("mine", None)
    for wrong in (3, -1, "copy", api.PyCapsule_New(address, b"xla._CUSTOM_CALL_TARGET", None), ffi.new("int *")[0], True):
        with pytest.raises(TypeError):
            xlac.register_custom_call("mine", wrong)


def test_a_callback_of_ctypes_and_a_function_of_python(lib):
    """Code of Python behind a C function takes the GIL by itself; both kinds stand side by side."""
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def callback(frame):
        seen.append(frame)
        return 0

    module = hlo(""" a = f32[3,4] custom-call(x), custom_call_target="mine", output_to_operand_aliasing={{}: (0, {})}
 b = f32[3,4] custom-call(a), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
 ROOT r = f32[3,4] custom-call(b), custom_call_target="python" """)
    xlac.register_custom_call("mine", callback)
    xlac.register_custom_call("python", lambda b: b * 2)
    try:
        np.testing.assert_array_equal(xlac.compile(module)(X), 2 * (X + 1))
        np.testing.assert_array_equal(xlac.interpret(module, X), 2 * (X + 1))
    finally:
        xlac.register_custom_call("python", None)
    assert len(seen) == 2 and all(seen)


def test_registered_comes_before_built_in(lib):
    module = xlac.parse("""HloModule m
ENTRY e { x = f32[2,2] parameter(0)
 ROOT r = f32[2,2] custom-call(x), custom_call_target="Sharding" }""")
    x = np.eye(2, dtype=np.float32)
    xlac.register_custom_call("Sharding", lambda x: x + 1)
    try:
        np.testing.assert_array_equal(xlac.compile(module)(x), x + 1)
        np.testing.assert_array_equal(xlac.interpret(module, x), x + 1)
    finally:
        xlac.register_custom_call("Sharding", None)
    np.testing.assert_array_equal(xlac.compile(module)(x), x)


def test_from_many_threads(lib):
    module = hlo(' ROOT r = f32[3,4] custom-call(x), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}')
    executable, wrong = xlac.compile(module), []

    def work(seed):
        for i in range(200):
            if not np.array_equal(executable(X + seed), X + seed + 1):
                wrong.append(i)
            xlac.register_custom_call(f"other{seed}", lib.copy if i % 2 else None)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(4):
        xlac.register_custom_call(f"other{i}", None)
    assert not wrong


def test_the_header_is_plain_c_and_cpp(tmp_path):
    for compiler, name in ((CC, "a.c"), (shutil.which("c++"), "a.cpp")):
        if compiler is None:
            continue
        (tmp_path / name).write_text('#include "xlac_ffi.h"\nint f(xlac_ffi_frame *x) { return xlac_ffi_find(x, "a") != NULL; }\n')
        subprocess.run([compiler, "-c", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", xlac.include.directory(), tmp_path / name, "-o",
                        tmp_path / "a.o"], check=True)
