"""Calls: arguments of every kind, keywords, out=, and the memory of results."""
import gc
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import xlac

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def executable(body, **options):
    return xlac.compile(xlac.parse(f"HloModule m\nENTRY e {{\n{body}\n}}"), **options)


@pytest.fixture
def two():
    return executable("""
  x = f32[3,4] parameter(0)
  y = f32[3,4] parameter(1)
  s = f32[3,4] add(x, y)
  d = f32[3,4] subtract(x, y)
  ROOT r = (f32[3,4], f32[3,4]) tuple(s, d)""")


def test_what_is_not_just_right_is_converted(two):
    want = two(X, X * 2)
    strange = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)
    strange[:] = X
    for x in (X.tolist(), X.astype(">f4"), np.asfortranarray(X), strange, np.repeat(X, 2, 1)[:, ::2], memoryview(X)):
        got = two(x, X * 2)
        assert all(np.array_equal(a, b) for a, b in zip(got, want))


def test_jax_and_dlpack_arrays(two):
    jax = pytest.importorskip("jax")
    got = two(jax.numpy.asarray(X), X)
    assert np.array_equal(got[0], X + X)

    class OnlyDlpack:
        def __dlpack__(self, **kwargs):
            return X.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    assert np.array_equal(two(OnlyDlpack(), X)[0], X + X)


def test_predicates_and_narrow_integers_are_cleaned():
    exe = executable("  x = pred[4] parameter(0)\n  y = s4[2] parameter(1)\n  a = s32[4] convert(x)\n  b = s32[2] convert(y)\n"
                     "  ROOT r = (s32[4], s32[2]) tuple(a, b)")
    s4 = xlac._core.numpy_dtype("s4")
    a, b = exe(np.array([0, 1, 2, 255], np.uint8).view(bool), np.array([0x7F, 0x18], np.uint8).view(s4))
    assert a.tolist() == [0, 1, 1, 1] and b.tolist() == [-1, -8]


def test_parameters_by_name(two):
    want = two(X, X * 2)
    for got in (two(x=X, y=X * 2), two(X, y=X * 2), two(y=X * 2, x=X)):
        assert all(np.array_equal(a, b) for a, b in zip(got, want))
    for args, named, words in [((X,), {"x": X, "y": X}, "twice"), ((), {"x": X}, "missing"), ((X, X), {"z": X}, "no parameter 'z'"),
                               ((X, X, X), {"x": X}, "3 arguments for 2 parameters")]:
        with pytest.raises(TypeError, match=words):
            two(*args, **named)
    with pytest.raises(TypeError):
        two(X, X, seed="no number")


def test_names_of_parameters():
    exe = xlac.compile(xlac.parse("""func.func @main(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.subtract %x, %y : tensor<f32>
  return %0 : tensor<f32>
}"""))
    assert exe(y=np.float32(1), x=np.float32(3)) == 2
    exe = xlac.compile(xlac.parse("HloModule m\nENTRY e {\n  a.1 = f32[] parameter(0)\n  b.1 = f32[] parameter(1)\n  b.2 = f32[] parameter(2)\n"
                                  "  s = f32[] subtract(a.1, b.1)\n  ROOT r = f32[] subtract(s, b.2)\n}"))
    one = np.float32(1)
    assert exe(a=3 * one, **{"b.1": one, "b.2": one}) == 1
    with pytest.raises(TypeError, match="more than one"):
        exe(a=one, b=one)


def test_tuples_of_arrays_in_and_out():
    exe = executable("""
  p = (f32[3,4], (s32[], f32[3,4])) parameter(0)
  q = f32[3,4] parameter(1)
  a = f32[3,4] get-tuple-element(p), index=0
  t = (s32[], f32[3,4]) get-tuple-element(p), index=1
  n = s32[] get-tuple-element(t), index=0
  b = f32[3,4] get-tuple-element(t), index=1
  s = f32[3,4] add(a, b)
  u = (f32[3,4], s32[]) tuple(s, n)
  ROOT r = ((f32[3,4], s32[]), f32[3,4]) tuple(u, q)""")
    for nested in (lambda *x: x, lambda *x: list(x)):
        (s, n), q = exe(nested(X, nested(np.int32(7), X)), X)
        assert np.array_equal(s, 2 * X) and n == 7 and np.array_equal(q, X) and not np.shares_memory(q, X)
    (s, n), q = exe((X.tolist(), (7, X)), X)
    assert np.array_equal(s, 2 * X) and n == 7
    with pytest.raises(xlac.Error):
        exe((X, X, X), X)
    with pytest.raises(xlac.Error):
        exe((X, (np.int32(7),)), X)
    out = ((np.empty((3, 4), np.float32), np.empty((), np.int32)), None)
    result = exe((X, (np.int32(7), X)), X, out=out)
    assert result[0][0] is out[0][0] and result[0][1] is out[0][1] and out[0][1] == 7 and np.array_equal(result[1], X)


def test_out_is_filled_and_returned(two):
    want, out = two(X, X * 2), (np.empty_like(X), np.empty_like(X))
    got = two(X, X * 2, out=out)
    assert got[0] is out[0] and got[1] is out[1] and all(np.array_equal(a, b) for a, b in zip(got, want))
    x, y = X.copy(), X * 2
    got = two(x, y, out=[y, x])  # over the arguments, the other way round
    assert got[0] is y and np.array_equal(y, want[0]) and np.array_equal(x, want[1])
    big = np.zeros((4, 4), np.float32)
    big[:3] = X
    got = two(big[:3], X * 2, out=(big[1:], None))
    assert np.array_equal(big[1:], want[0]) and np.array_equal(got[1], want[1])


def test_out_that_does_not_fit(two):
    good = np.empty_like(X)
    frozen = np.empty_like(X)
    frozen.flags.writeable = False
    for out in (good, (good,), (good, good), (good, np.empty((4, 3), np.float32)), (good, np.empty((3, 4))), (good, frozen),
                (good, np.empty((4, 3), np.float32).T), (good, X.tolist()), (good, good.reshape(-1)[:12].reshape(3, 4))):
        with pytest.raises(xlac.Error, match="out"):
            two(X, X, out=out)
    assert np.array_equal(two(X, X, out=None)[0], 2 * X)


def test_out_of_what_the_interpreter_runs():
    exe = executable("  x = f32[<=4] parameter(0)\n  ROOT y = f32[<=4] negate(x)")
    out = np.empty(4, np.float32)
    assert exe(np.ones(4, np.float32), out=out) is out and (out == -1).all()
    with pytest.raises(xlac.Error, match="another shape"):
        exe(np.ones(1, np.float32), out=out)


def test_no_arguments_no_elements_and_failures_leave_everything_as_it_was(two):
    assert executable("  ROOT c = f32[2] constant({1, 2})")().tolist() == [1, 2]
    assert executable("  x = f32[0,4] parameter(0)\n  ROOT y = f32[0,4] negate(x)")(np.empty((0, 4), np.float32)).shape == (0, 4)
    live = xlac.memory_stats()["live"]
    before = X.copy()
    for _ in range(3):
        with pytest.raises(xlac.Error):
            two(X, X, X)
        with pytest.raises(xlac.Error):
            two(X, "words")
    assert np.array_equal(X, before) and xlac.memory_stats()["live"] == live


BIG = "  x = f32[{n}] parameter(0)\n  ROOT y = f32[{n}] add(x, x)"


def test_results_are_used_again_and_outlive_their_executable():
    gc.collect()
    exe, x = executable(BIG.format(n=1 << 20)), np.ones(1 << 20, np.float32)
    start = xlac.memory_stats()
    a = exe(x)
    where = a.ctypes.data
    assert where % 64 == 0 and a.flags.writeable and xlac.memory_stats()["live_bytes"] >= start["live_bytes"] + a.nbytes
    view = a[10:20]
    del a
    assert exe(x).ctypes.data != where  # the view holds it
    del view
    assert exe(x).ctypes.data == where
    b = exe(x)
    del exe
    gc.collect()
    assert (b == 2).all()
    del b
    assert xlac.memory_stats()["live"] == start["live"]


def test_no_page_faults_in_the_steady_state():
    exe, x = executable(BIG.format(n=8 << 20), threads=1), np.ones(8 << 20, np.float32)
    for _ in range(2):
        exe(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        exe(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000


def test_trim_and_limit():
    gc.collect()
    exe, x = executable(BIG.format(n=1 << 20)), np.ones(1 << 20, np.float32)
    exe(x)
    assert xlac.memory_stats()["kept_bytes"] >= x.nbytes
    assert xlac.trim() >= x.nbytes and xlac.memory_stats()["kept_bytes"] == 0 and xlac.trim() == 0
    limit = xlac.memory_stats()["limit_bytes"]
    try:
        xlac.set_memory_limit(1 << 20)
        exe(x)
        assert xlac.memory_stats()["kept_bytes"] <= 1 << 20
    finally:
        xlac.set_memory_limit(limit)
    exe(x)
    assert xlac.memory_stats()["kept_bytes"] >= x.nbytes


def test_out_of_memory_is_an_error_and_trims_first():
    code = """if True:
        import resource, numpy as np, xlac
        text = "HloModule m\\nENTRY e {\\n  x = f32[] parameter(0)\\n  ROOT y = f32[%d] broadcast(x), dimensions={}\\n}"
        small, large, huge = (xlac.compile(xlac.parse(text % (n << 20)), threads=1) for n in (24, 40, 1 << 14))
        one = np.float32(1)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (250 << 20), -1))
        assert small(one)[0] == 1 and large(one)[0] == 1  # the second needs what the first has left
        try:
            huge(one)
        except MemoryError as error:
            assert isinstance(error, xlac.OutOfMemoryError), error
        else:
            raise SystemExit("it fits?")
        assert large(one)[0] == 1
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_many_threads_and_many_executables_share_the_memory():
    exes = [executable(BIG.format(n=n), threads=2) for n in (1 << 12, 1 << 15, 1 << 18)]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            exe = exes[rng.integers(3)]
            x = np.full(exe_sizes[exes.index(exe)], rng.integers(100), np.float32)
            if not (exe(x) == 2 * x[0]).all():
                wrong.append(seed)
    exe_sizes = (1 << 12, 1 << 15, 1 << 18)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_thousands_of_executables():
    module = xlac.parse("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}")
    exes = [xlac.compile(module) for _ in range(3000)]
    assert exes[-1](np.ones(4, np.float32))[0] == -1


def test_after_fork():
    code = """if True:
        import os, threading, numpy as np, xlac
        exe = xlac.compile(xlac.parse("HloModule m\\nENTRY e {\\n  x = f32[1048576] parameter(0)\\n  ROOT y = f32[1048576] tanh(x)\\n}"), threads=3)
        x = np.ones(1 << 20, np.float32)
        want, stop = exe(x), False
        def work():
            while not stop:
                exe(x)
        threads = [threading.Thread(target=work) for _ in range(2)]
        [t.start() for t in threads]
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if all(np.array_equal(exe(x), want) for _ in range(3)) else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop = True
        [t.join() for t in threads]
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
