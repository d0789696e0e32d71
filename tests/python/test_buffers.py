"""xlac.Buffer: attributes, views, copies, deletion, counts."""
import gc
import subprocess
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from dlpack_producer import random_array

import xlac

DTYPES = [row["name"] for row in xlac._core.dtype_table()]
PLAIN = "pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 c64 c128".split()


def counts(*names):
    stats = xlac.stats()
    return tuple(stats[name] for name in names)


def pointer(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_goes_in_and_out_without_a_copy(dtype):
    a = random_array(dtype, (4, 6))
    for part in (a, a.T, a[::-1, 1::2], a[2], a[1:2, 1:2].reshape(()), a[:0], np.broadcast_to(a[0], (3, 6))):
        xlac.reset_stats()
        b = xlac.asarray(part)
        view = b.numpy()
        assert b.shape == part.shape == view.shape and b.dtype == part.dtype == view.dtype
        assert view.tobytes() == part.tobytes() and view.strides == b.strides
        assert part.size == 0 or pointer(view) == pointer(part) == b.unsafe_pointer()
        assert pointer(np.asarray(b)) == pointer(view) and np.asarray(b).dtype == part.dtype
        assert (b.nbytes, b.size, b.ndim, b.device) == (part.nbytes, part.size, part.ndim, "cpu")
        assert b.readonly == (not part.flags.writeable) == (not view.flags.writeable)
        assert counts("copies_in", "copies_out") == (0, 0)


def test_what_a_buffer_says():
    b = xlac.asarray(np.zeros((2, 3), ml_dtypes.bfloat16))
    assert repr(b) == "Buffer(bf16[2,3])" and len(b) == 2 and b.dtype == ml_dtypes.bfloat16 and not b.is_deleted
    assert repr(xlac.asarray(np.broadcast_to(np.float32(1), 2))) == "Buffer(f32[2], read-only)"
    scalar = xlac.asarray(1.5)
    assert repr(scalar) == "Buffer(f64[])" and scalar.shape == () == scalar.strides
    with pytest.raises(TypeError, match="rank 0"):
        len(scalar)
    with pytest.raises(TypeError):
        xlac.Buffer()
    with pytest.raises((TypeError, AttributeError)):
        xlac.Buffer.x = 1
    assert xlac.asarray(b) is b


def test_asarray_of_anything():
    for what in ([1, 2, 3], (1.0, 2.0), 3, np.float32(1), True, range(4), memoryview(b"abc"), bytearray(b"abc"), [[1j]]):
        assert np.array_equal(xlac.asarray(what).numpy(), np.asarray(what))
    assert np.array_equal(xlac.asarray([1, 2], "bf16").numpy().astype(int), [1, 2])
    assert xlac.asarray([1, 2], dtype=np.int8).dtype == np.int8 and xlac.asarray(xlac.asarray([1.0]), "f8e5m2").dtype == ml_dtypes.float8_e5m2
    block = bytearray(b"abc")
    b = xlac.asarray(block)
    block[0] = ord("z")
    assert bytes(b) == b"zbc"  # the bytearray's own memory
    for bad in (object(), "text", ["a"], np.zeros(2, "M8[s]"), np.zeros(2, object), np.zeros(2, "V3"), [[1], [1, 2]]):
        with pytest.raises((TypeError, ValueError)):
            xlac.asarray(bad)


def test_counts_of_copies():
    a = np.arange(10, dtype=np.float32)
    for what, copied in ((a, 0), (a[::2], 0), (a.astype(">f4"), 1), ([1, 2], 1), (bytearray(4), 0)):
        xlac.reset_stats()
        b = xlac.asarray(what)
        assert counts("copies_in", "arrays_in") == (copied, 1 - copied) and b.dtype.isnative
    assert np.array_equal(xlac.asarray(a.astype(">f4")).numpy(), a)
    xlac.reset_stats()
    b = xlac.asarray(a)
    b.numpy(), memoryview(b), np.asarray(b), np.array(b), b.__array__(copy=True), b.__array__(np.int32)
    assert counts("copies_out", "bytes_copied_out")[0] >= 2 and counts("bytes_in") == (40,)
    xlac.reset_stats()
    assert all(n == 0 for name, n in xlac.stats().items() if not name.startswith("live_"))


def test_live_counts():
    gc.collect()
    before = counts("live_buffers", "live_bytes", "live_views")
    b = xlac.asarray(np.zeros(1000))
    view = b.numpy()
    assert counts("live_buffers", "live_bytes", "live_views") == (before[0] + 1, before[1] + 8000, before[2] + 1)
    del view
    b.delete()
    assert counts("live_buffers", "live_bytes", "live_views") == before


def test_array_method():
    a = np.arange(4, dtype=np.float32)
    b = xlac.asarray(a)
    assert pointer(b.__array__()) == pointer(b.__array__(np.float32, copy=False)) == pointer(a)
    assert b.__array__(np.float64).dtype == np.float64 and pointer(b.__array__(copy=True)) != pointer(a)
    with pytest.raises(ValueError, match="copy=False forbids"):
        b.__array__(np.float64, copy=False)
    with pytest.raises(TypeError):
        b.__array__(copy=7)
    b.numpy()[0] = 9
    assert a[0] == 9


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffer_protocol(dtype):
    a = random_array(dtype, (4, 6))
    b = xlac.asarray(a)
    if dtype not in PLAIN:
        with pytest.raises(BufferError, match=f"no format for {dtype}: use numpy"):
            memoryview(b)
        return
    assert memoryview(b).format == memoryview(a).format and bytes(b) == a.tobytes()
    for part in (a, a.T, a[::-1, ::2], a[:0], a[1:2, 1:2].reshape(())):
        view = memoryview(xlac.asarray(part))
        assert view.shape == part.shape and view.tobytes() == part.tobytes() and view.itemsize == part.itemsize
        assert (view.c_contiguous, view.f_contiguous) == (part.flags.c_contiguous, part.flags.f_contiguous)
        assert np.array_equal(np.asarray(view), part)


def test_buffer_protocol_refuses_what_it_has_not():
    a = np.arange(6.0).reshape(2, 3)
    frozen = a[:]
    frozen.flags.writeable = False
    with pytest.raises((BufferError, TypeError)):
        np.frombuffer(xlac.asarray(a.T))  # wants it contiguous
    with pytest.raises((BufferError, TypeError)):
        (__import__("ctypes").c_char * 48).from_buffer(xlac.asarray(frozen))  # wants to write
    assert memoryview(xlac.asarray(frozen)).readonly and not memoryview(xlac.asarray(a)).readonly


def test_views_keep_the_memory_and_stop_a_deletion():
    b = xlac.asarray(np.arange(5.0))
    for make in (b.numpy, lambda: memoryview(b), lambda: np.asarray(b)[1:3], lambda: np.from_dlpack(b)):
        view = make()
        with pytest.raises(xlac.DonationError, match="view") as caught:
            b.delete()
        assert caught.value.code == 505 and not b.is_deleted
        del view, caught
        gc.collect()
    b.delete()
    assert b.is_deleted and repr(b) == "Buffer(f64[5], deleted)" and b.shape == (5,) and b.dtype == np.float64
    for use in (b.numpy, b.__array__, b.unsafe_pointer, b.delete, b.__dlpack__, lambda: memoryview(b), lambda: np.asarray(b),
                lambda: np.from_dlpack(b), lambda: xlac.from_dlpack(b), lambda: xlac.from_dlpack(b, copy=True)):
        with pytest.raises(xlac.DonationError, match=r"f64\[5\], is gone: it was deleted by delete\(\)"):
            use()


def test_a_second_object_for_a_buffer_sees_its_deletion():
    b = xlac.asarray(np.arange(5.0))
    again = xlac.from_dlpack(b)
    assert again is not b and again.unsafe_pointer() == b.unsafe_pointer()
    again.delete()
    assert b.is_deleted and again.is_deleted


def test_an_array_outlives_its_buffer():
    b = xlac.asarray([1.0, 2.0])
    gone, view = weakref.ref(b), b.numpy()
    del b
    gc.collect()
    assert gone() is None and view.tolist() == [1, 2]


def test_the_callers_array_lives_as_long_as_needed():
    class Array(np.ndarray):
        pass

    a = np.arange(3.0).view(Array)
    gone, b = weakref.ref(a), xlac.asarray(a)
    del a
    view = b.numpy()
    del b
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_one_thread_of_many_deletes():
    for _ in range(100):
        b, barrier, won = xlac.asarray(np.zeros(8)), threading.Barrier(8), []

        def race(b=b, barrier=barrier, won=won):
            barrier.wait()
            try:
                b.delete()
                won.append(1)
            except xlac.DonationError:
                pass

        threads = [threading.Thread(target=race) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert won == [1]


def test_buffers_die_in_any_thread():
    def work():
        for _ in range(300):
            b = xlac.asarray(np.arange(50.0))
            kept = [b.numpy(), memoryview(b), xlac.from_dlpack(b), np.from_dlpack(b)]
            del b
            shared.append(kept)
            if len(shared) > 20:
                shared.pop(0)

    gc.collect()
    before, shared = counts("live_buffers", "live_views"), []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    shared.clear()
    gc.collect()
    assert counts("live_buffers", "live_views") == before


def test_donate():
    b, a = xlac.asarray([1.0]), np.zeros(2)
    assert xlac.donate(b).value is b and xlac.donate(a).value is a and isinstance(xlac.donate(a), xlac.Donation)
    assert repr(xlac.donate(b)) == "donate(Buffer(f64[1]))"
    mark = xlac.donate(a)
    assert xlac.donate(mark) is mark
    with pytest.raises(AttributeError):
        mark.value = 1
    for bad in ([1.0], 3, None):
        with pytest.raises(TypeError, match="__dlpack__"):
            xlac.donate(bad)
    with pytest.raises(TypeError):
        xlac.Donation()


def test_programs_take_buffers():
    module = xlac.parse("HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] add(x, x)\n}\n")
    a = np.arange(6, dtype=np.float32).reshape(3, 2).T
    for run in (lambda x: xlac.interpret(module, x), xlac.compile(module)):
        np.testing.assert_array_equal(run(xlac.asarray(a)), a + a)


SUBINTERPRETER = """
import sys
try:
    import _interpreters
    make, run, end = _interpreters.create, _interpreters.exec, _interpreters.destroy
except ImportError:
    import _xxsubinterpreters as _interpreters
    make, run, end = _interpreters.create, _interpreters.run_string, _interpreters.destroy
one = make()
failed = run(one, "import xlac._core as c; assert c.stats()['live_buffers'] == 0; b = c.from_dlpack; c.reset_stats()")
assert not failed, failed
end(one)
print("fine")
"""


def test_another_interpreter_has_its_own_counts():
    import xlac._core as core

    kept = core.asarray([1.0])
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True)
    if "does not support loading in subinterpreters" in done.stderr or "No module named" in done.stderr:
        pytest.skip("no subinterpreters here")
    assert done.stdout == "fine\n", done.stderr
    assert kept.shape == (1,)


def test_python_reads_elements_as_of_an_array():
    b = xlac.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert b[1, 2] == 5 and b[0].tolist() == [0, 1, 2] and b[..., 1].shape == (2,) and [row.sum() for row in b] == [3, 12] and len(b) == 2
    assert np.shares_memory(b[0], b.numpy())
    one = xlac.asarray(np.float32(2.5))
    assert float(one) == 2.5 and int(one) == 2 and one[()] == 2.5
    for wrong, kind in ((lambda: b[2], IndexError), (lambda: float(b), TypeError), (lambda: iter(one), TypeError)):
        with pytest.raises(kind):
            wrong()
    b.delete()
    for use in (lambda: b[0], lambda: iter(b), lambda: float(b)):
        with pytest.raises(xlac.Error, match="deleted"):
            use()
