"""Arrays in and out of xlac.interpret."""
import gc
import os
import signal
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import xlac
from xlac import dtypes

TWO = """HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  n = s32[] parameter(1)
  c = f32[] convert(n)
  b = f32[2,3] broadcast(c), dimensions={}
  ROOT y = f32[2,3] add(x, b)
}
"""
LOOP = """HloModule loop
body { s = s64[] parameter(0)
  one = s64[] constant(1)
  ROOT a = s64[] add(s, one) }
cond { t = s64[] parameter(0)
  end = s64[] constant(9000000000000)
  ROOT lt = pred[] compare(t, end), direction=LT }
ENTRY e { zero = s64[] constant(0)
  ROOT w = s64[] while(zero), condition=cond, body=body }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def module():
    return xlac.parse(TWO)


def identity(type):
    return xlac.parse(f"HloModule m\nENTRY e {{\n  ROOT x = {type} parameter(0)\n}}\n")


def numpy_types():
    names = [row["name"] for row in xlac._core.dtype_table()]
    return [pytest.param(name, id=name) for name in names]


@pytest.mark.parametrize("name", numpy_types())
def test_every_element_type_goes_in_and_out(name):
    dtype = xlac._core.numpy_dtype(name)
    assert dtypes.name_of(dtype) == name == dtypes.name_of(name)
    rng = np.random.default_rng(0)
    values = np.abs(rng.standard_normal((3, 5))).astype(dtype) if name == "f8e8m0fnu" else np.array(
        rng.standard_normal((3, 5)) * 3).astype(dtype)
    for array in (values, values[1], values[0, 0].reshape(()), values[:0], values[:, ::2], values[::-1]):
        result = xlac.interpret(identity(f"{name}[{','.join(map(str, array.shape))}]"), array)
        assert result.dtype == dtype and result.shape == array.shape and str(result) == str(array)
        assert not np.shares_memory(result, array)


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdFD")
def test_every_c_type(dtype):
    array = np.array([0, 1, 1]).astype(dtype)
    name = dtypes.name_of(array.dtype)
    np.testing.assert_array_equal(xlac.interpret(identity(f"{name}[3]"), array), array)


def test_arrays_of_every_making(module):
    def check(array):
        np.testing.assert_array_equal(xlac.interpret(module, array, 1), np.asarray(array, np.float32) + 1)

    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    frozen = X.copy()
    frozen.flags.writeable = False
    crooked = np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(2, 3)
    for array in (X, cube[:, :, 1], cube[::-1, :, 0], X.T.copy().T, frozen, X.astype(">f4"), np.broadcast_to(X[:1], (2, 3)),
                  crooked, X.tolist(), tuple(map(tuple, X.tolist())), memoryview(X), np.asfortranarray(X)):
        check(array)


def test_dlpack_and_array_protocols(module):
    class Speaks:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Converts:
        def __array__(self, dtype=None, copy=None):
            return X

    for object in (Speaks(X), Converts()):
        np.testing.assert_array_equal(xlac.interpret(module, object, 1), X + 1)


@pytest.mark.parametrize("arguments, words", [
    ((X,), r"expected 2 arguments \(x, n\), found 1"),
    ((X, 1, 2), r"expected 2 arguments \(x, n\), found 3"),
    ((X, 1, object()), r"found 3"),
    ((X.T, 1), r"argument 0 \(x\) must be f32\[2,3\], found f32\[3,2\]"),
    ((X.astype("f8"), 1), r"argument 0 \(x\) must be f32\[2,3\], found f64\[2,3\]"),
    ((X, np.float32(1)), r"argument 1 \(n\) must be s32\[\], found f32\[\]"),
    ((X, 2.5), r"argument 1 \(n\) can't be made an array of s32: these numbers are not integers"),
    ((X, 2**40), r"argument 1 \(n\) .* out of bounds"),
    ((X, None), r"argument 1 \(n\)"),
    ((X, 1j), r"argument 1 \(n\)"),
    ((X, [1]), r"argument 1 \(n\) must be s32\[\], found s32\[1\]"),
    (("abc", 1), r"argument 0 \(x\)"),
    (([[1, 2, 3], [4, 5]], 1), r"argument 0 \(x\)"),
    ((X.astype(object), 1), r"argument 0 \(x\) has dtype object"),
    ((X.astype(np.longdouble), 1), r"argument 0 \(x\) has dtype"),
    ((np.zeros((2, 3), "M8[s]"), 1), r"argument 0 \(x\) has dtype"),
    ((np.zeros((2, 3), "f4,f4"), 1), r"argument 0 \(x\) has dtype"),
    (((X,), 1), r"argument 0 \(x\) must be f32\[2,3\], found f32\[1,2,3\]"),
])
def test_wrong_arguments_are_refused_by_name(module, arguments, words):
    with pytest.raises(xlac.Error, match=words) as caught:
        xlac.interpret(module, *arguments)
    assert 500 <= caught.value.code < 600


def test_wrong_calls():
    with pytest.raises(TypeError):
        xlac.interpret()
    with pytest.raises(TypeError):
        xlac.interpret(TWO)
    with pytest.raises(TypeError):
        xlac.interpret(xlac.parse(TWO), X, 1, nope=3)


def test_tuples_and_tokens():
    m = xlac.parse("HloModule m\nENTRY e {\n  p = (f32[2], (s32[], token[])) parameter(0)\n"
                   "  a = f32[2] get-tuple-element(p), index=0\n  q = (s32[], token[]) get-tuple-element(p), index=1\n"
                   "  ROOT t = ((s32[], token[]), f32[2], ()) tuple(q, a, u)\n}\n".replace("  ROOT", "  u = () tuple()\n  ROOT"))
    (number, token), array, empty = xlac.interpret(m, (np.ones(2, np.float32), (np.int32(7), None)))
    assert number == 7 and token is None and array.tolist() == [1, 1] and empty == ()
    for bad, words in ((np.ones(2, np.float32), "pass a tuple"), ((np.ones(2, np.float32), 1), r"argument 0 \(p\)\[1\]"),
                       ((np.ones(2, np.float32), (1, 2)), r"pass None for a token"),
                       ((np.ones(2, np.float32),), r"argument 0 \(p\)")):
        with pytest.raises(xlac.Error, match=words):
            xlac.interpret(m, bad)


def test_results_own_their_memory():
    m = xlac.parse("HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  c = f32[2] constant({1,2})\n"
                   "  ROOT t = (f32[2], f32[2], f32[2], f32[2]) tuple(x, x, c, c)\n}\n")
    x = np.zeros(2, np.float32)
    results = xlac.interpret(m, x)
    for i, array in enumerate(results):
        assert array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
        array += 10 * (i + 1)
    assert x.tolist() == [0, 0] and results[1].tolist() == [20, 20]
    assert [a.tolist() for a in xlac.interpret(m, x)] == [[0, 0], [0, 0], [1, 2], [1, 2]]
    del m
    gc.collect()
    assert results[3].tolist() == [41, 42]


def test_constants_give_arrays():
    m = xlac.parse("HloModule m\nENTRY e {\n  ROOT c = bf16[2,2] constant({{1,2},{3,4}})\n}\n")
    c = m.entry.root.constant
    assert c.dtype == ml_dtypes.bfloat16 and c.astype(float).tolist() == [[1, 2], [3, 4]]


def test_ctrl_c_stops_a_run():
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        xlac.interpret(xlac.parse(LOOP))


def test_progress_is_told_and_may_stop():
    seen = []

    def progress(seconds):
        seen.append(seconds)
        if len(seen) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        xlac.interpret(xlac.parse(LOOP), progress=progress)
    assert seen == sorted(seen)


def test_other_threads_run_meanwhile():
    module, counted, stop = xlac.parse(LOOP), [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()

    def progress(seconds):
        if counted[0] > 1000:
            raise StopIteration

    with pytest.raises(StopIteration):
        xlac.interpret(module, progress=progress)
    stop.set()
    thread.join()


def test_one_module_in_many_threads(module):
    results, errors = {}, []

    def work(i):
        try:
            for _ in range(50):
                results[i] = xlac.interpret(module, X, i)
                assert module.to_text() and module.find("b").users
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for i, result in results.items():
        np.testing.assert_array_equal(result, X + i)


def test_editing_a_running_module_is_refused():
    module, running, refused = xlac.parse(LOOP), threading.Event(), []

    def progress(seconds):
        running.set()
        if refused:
            raise StopIteration

    def edit():
        running.wait()
        try:
            module.name = "other"
        except xlac.Error as error:
            refused.append(error)

    thread = threading.Thread(target=edit)
    thread.start()
    with pytest.raises(StopIteration):
        xlac.interpret(module, progress=progress)
    thread.join()
    assert "being run" in str(refused[0]) and "clone" in refused[0].hint
    module.name = "other"


def test_nothing_leaks():
    module = xlac.parse(TWO)
    before = None
    for i in range(400):
        xlac.interpret(module, X, 1)
        try:
            xlac.interpret(module, X.T, 1)
        except xlac.Error:
            pass
        if i == 100:
            gc.collect()
            before = sys.getrefcount(X), len(gc.get_objects())
    gc.collect()
    assert sys.getrefcount(X) == before[0] and len(gc.get_objects()) - before[1] < 50


def test_what_xla_accepts_runs():
    """The verifier's strict mode is for people; a run asks only for what XLA asks."""
    text = "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[1,2] reshape(x), inferred_dimension=7\n}\n"
    module = xlac.parse(text)
    with pytest.raises(xlac.VerifyError):
        module.verify()
    module.verify(xla_compat=True)
    for _ in range(2):
        assert xlac.interpret(module, np.ones(2, np.float32)).shape == (1, 2)
    with pytest.raises(xlac.VerifyError):
        module.verify()
