"""Buffers and counters through the C interface."""
import itertools
import threading

import ml_dtypes  # noqa: F401
import numpy as np
import pytest

import xlac


class Buffers:
    """A runtime, counters, and what tests do with buffers."""

    def __init__(self, x):
        self.x, self.lib, self.ffi = x, x.lib, x.ffi
        rt, counters = self.ffi.new("xlac_runtime **"), self.ffi.new("xlac_counters **")
        x.check(self.lib.xlac_runtime_create(rt, x.err))
        x.check(self.lib.xlac_counters_create(counters, x.err))
        self.rt, self.counters, self.kept = rt[0], counters[0], []

    def create(self, dtype, dims):
        out = self.ffi.new("xlac_buffer **")
        self.x.check(self.lib.xlac_buffer_create(out, self.rt, self.counters, self.lib.xlac_dtype_from_text(dtype.encode()),
                                                 len(dims), self.ffi.new("int64_t[]", list(dims)), self.x.err))
        return out[0]

    def wrap_status(self, dtype, dims, strides, pointer, readonly=False, release=None, context=None):
        ffi, out = self.ffi, self.ffi.new("xlac_buffer **")
        number = self.lib.xlac_dtype_from_text(dtype.encode())
        dims, strides = ffi.new("int64_t[]", list(dims)), ffi.NULL if strides is None else ffi.new("int64_t[]", list(strides))
        layout = ffi.new("xlac_layout *", {"dtype": number, "rank": len(dims), "dims": dims, "strides": strides, "readonly": readonly})
        memory = ffi.new("xlac_memory *", {"data": ffi.cast("void *", pointer), "release": release or ffi.NULL,
                                           "ctx": context or ffi.NULL})
        return self.lib.xlac_buffer_wrap(out, self.counters, layout, memory, self.x.err), out[0]

    def wrap(self, array, dtype, **kwargs):
        self.kept.append(array)
        status, b = self.wrap_status(dtype, array.shape, array.strides, array.ctypes.data, **kwargs)
        self.x.check(status)
        return b

    def info(self, b):
        info = self.ffi.new("xlac_buffer_info *")
        self.lib.xlac_buffer_get(b, info)
        return info

    def bytes(self, b):
        info = self.info(b)
        out = self.ffi.new("char[]", info.bytes + 1)
        self.x.check(self.lib.xlac_buffer_copy_to(b, self.ffi.NULL, out, self.x.err))
        return self.ffi.buffer(out, info.bytes)[:]

    def count(self, name):
        names = [self.x.text(self.lib.xlac_counter_name(i)) for i in range(self.lib.XLAC_COUNTERS)]
        return self.lib.xlac_counters_get(self.counters, names.index(name))


@pytest.fixture
def bs(x):
    b = Buffers(x)
    yield b
    assert (b.count("live_buffers"), b.count("live_bytes"), b.count("live_views")) == (0, 0, 0)
    x.lib.xlac_counters_release(b.counters)
    x.lib.xlac_runtime_destroy(b.rt)


def test_counters(x, bs):
    lib, c = x.lib, bs.counters
    names = [x.text(lib.xlac_counter_name(i)) for i in range(lib.XLAC_COUNTERS)]
    assert len(set(names)) == len(names) and lib.xlac_counter_name(lib.XLAC_COUNTERS) == x.ffi.NULL
    lib.xlac_counters_add(c, lib.XLAC_COUNT_COPIES_IN, 3)
    lib.xlac_counters_add(x.ffi.NULL, lib.XLAC_COUNT_COPIES_IN, 3)
    assert bs.count("copies_in") == 3 and lib.xlac_counters_get(x.ffi.NULL, 0) == 0 and lib.xlac_counters_get(c, 1000) == 0
    b = bs.create("f32", [2, 3])
    assert lib.xlac_counters_retain(c) == c
    lib.xlac_counters_reset(c)
    lib.xlac_counters_release(c)
    assert (bs.count("copies_in"), bs.count("live_buffers"), bs.count("live_bytes")) == (0, 1, 24)
    lib.xlac_buffer_release(b)


def test_created(x, bs):
    b = bs.create("bf16", [2, 3])
    info = bs.info(b)
    assert (info.rank, info.count, info.bytes, info.dense, info.aligned, info.readonly, info.deleted) == (2, 6, 12, True, True, False, False)
    assert list(info.strides[0:2]) == [6, 2] and list(info.steps[0:2]) == [3, 1] and list(info.dims[0:2]) == [2, 3]
    assert int(x.ffi.cast("uintptr_t", info.data)) % 64 == 0
    x.lib.xlac_buffer_release(b)
    x.lib.xlac_buffer_release(x.ffi.NULL)


@pytest.mark.parametrize("dtype", [row["name"] for row in xlac._core.dtype_table()])
def test_copies_of_any_strides(x, bs, dtype):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 255, (6, 5, 8, xlac._core.numpy_dtype(dtype).itemsize), np.uint8)
    cube = a.view(f"V{a.shape[-1]}")[..., 0]
    for part in (cube, cube.T, cube[::-1], cube[::2, ::-2, 1:7:3], cube[:, :1, ::-1], cube[2:3, 3, 4].reshape(()), cube[:0], np.broadcast_to(cube[0, 0], (3, 2, 8)),
                 cube.transpose(1, 0, 2), np.broadcast_to(cube[0, 0, 0], (4, 4))):
        b = bs.wrap(part, dtype)
        assert bs.bytes(b) == part.tobytes()
        assert bs.info(b).dense == part.flags.c_contiguous
        copy = x.ffi.new("xlac_buffer **")
        x.check(x.lib.xlac_buffer_copy(copy, bs.rt, b, x.err))
        assert bs.bytes(copy[0]) == part.tobytes() and bs.info(copy[0]).dense
        x.lib.xlac_buffer_release(copy[0])
        x.lib.xlac_buffer_release(b)


def test_strides_between_elements(x, bs):
    """Fields of a record lie at strides that are not whole numbers of elements."""
    record = np.zeros((7, 3), [("a", "u1"), ("b", "<f4"), ("c", "<i2")])
    record["b"] = np.arange(21).reshape(7, 3)
    for part in (record["b"], record["b"].T, record["b"][::-2, 1:], record["b"].reshape((1,) * 61 + (7, 3))):
        b = bs.wrap(part, "f32")
        info = bs.info(b)
        assert info.steps == x.ffi.NULL and not info.aligned and bs.bytes(b) == part.tobytes()
        x.lib.xlac_buffer_release(b)


def test_large_copies_use_threads(x, bs):
    a = np.arange(3_000_000, dtype=np.float64).reshape(1000, 3000)
    b, copy = bs.wrap(a.T, "f64"), x.ffi.new("xlac_buffer **")
    x.check(x.lib.xlac_buffer_copy(copy, bs.rt, b, x.err))
    assert bs.bytes(copy[0]) == a.T.tobytes()
    x.lib.xlac_buffer_release(copy[0])
    x.lib.xlac_buffer_release(b)


def test_bad_layouts(x, bs):
    big = 1 << 62
    for dtype, dims, strides, pointer, code in [("f32", [-1], None, 64, 503), ("f32", [2], None, 0, 503), ("f32", [big, big], None, 64, 601),
                                                ("f32", [3], [big], 64, 503), ("f32", [2], [-128], 64, 503), ("f32", [2] * 65, None, 64, 601),
                                                ("f32", [2, 2], [-(2**63), 4], 64, 503), ("nope", [1], None, 64, 503)]:
        status, _ = bs.wrap_status(dtype, dims, strides, pointer)
        x.fails(status, code)
    out = x.ffi.new("xlac_buffer **")
    x.fails(x.lib.xlac_buffer_create(out, bs.rt, x.ffi.NULL, x.lib.xlac_dtype_from_text(b"f32"), 1, x.ffi.new("int64_t[]", [1 << 46]), x.err), 600)
    status, b = bs.wrap_status("f32", [3, 0], [big, -big], 0)  # no elements: no addresses
    x.check(status)
    x.lib.xlac_buffer_release(b)


def test_taking(x, bs):
    lib, memory = x.lib, x.ffi.new("xlac_memory *")
    b = bs.create("f32", [4])
    data = bs.info(b).data
    x.check(lib.xlac_buffer_open(b, x.err))
    assert bs.info(b).views == 1 and bs.count("live_views") == 1
    assert "1 view of this buffer, f32[4], is alive" in x.fails(lib.xlac_buffer_take(b, memory, x.err), 505)
    x.fails(lib.xlac_buffer_delete(b, x.err), 505)
    lib.xlac_buffer_close(b)
    x.check(lib.xlac_buffer_take(b, memory, x.err))
    assert memory.data == data and bs.info(b).deleted and bs.info(b).data == x.ffi.NULL and bs.count("live_buffers") == 0
    lib.xlac_buffer_give_back(b)
    assert bs.info(b).data == data and bs.count("live_buffers") == 1 and bs.count("taken") == 0
    x.check(lib.xlac_buffer_take(b, memory, x.err))
    lib.xlac_buffer_taken_by(b, b"donated at step.py:12")
    lib.xlac_buffer_taken_by(b, b"too late")
    for status in (lib.xlac_buffer_open(b, x.err), lib.xlac_buffer_take(b, memory, x.err), lib.xlac_buffer_delete(b, x.err),
                   lib.xlac_buffer_copy_to(b, x.ffi.NULL, data, x.err), lib.xlac_buffer_copy(x.ffi.new("xlac_buffer **"), bs.rt, b, x.err)):
        assert x.fails(status, 504) == "this buffer, f32[4], is gone: donated at step.py:12"
    assert (bs.count("taken"), bs.count("bytes_taken")) == (1, 16)
    memory.release(memory.ctx)
    lib.xlac_buffer_release(b)


def test_foreign_memory_is_released_once(x, bs):
    released = []

    @x.ffi.callback("void (*)(void *)")
    def release(context):
        released.append(int(x.ffi.cast("intptr_t", context)))

    a = np.arange(4, dtype=np.float32)
    for i, end in enumerate(["release", "delete", "take", "view"]):
        b, memory = bs.wrap(a, "f32", release=release, context=x.ffi.cast("void *", i)), x.ffi.new("xlac_memory *")
        if end == "delete":
            x.check(x.lib.xlac_buffer_delete(b, x.err))
            assert released == list(range(i + 1))
        if end == "take":
            x.check(x.lib.xlac_buffer_take(b, memory, x.err))
        if end == "view":
            x.check(x.lib.xlac_buffer_open(b, x.err))
        assert x.lib.xlac_buffer_retain(b) == b
        x.lib.xlac_buffer_release(b)
        x.lib.xlac_buffer_release(b)
        if end == "take":
            assert released == list(range(i))
            memory.release(memory.ctx)
        if end == "view":
            assert released == list(range(i))
            x.lib.xlac_buffer_close(b)
        assert released == list(range(i + 1))
    bad = bs.wrap_status("f32", [4], [1 << 62], a.ctypes.data, release=release, context=x.ffi.cast("void *", 9))
    assert bad[0] < 0 and 9 not in released  # its owner still has it


def test_read_only_memory_is_not_given_away(x, bs):
    b, memory = bs.wrap(np.arange(4.0), "f64", readonly=True), x.ffi.new("xlac_memory *")
    assert "f64[4], is read-only" in x.fails(x.lib.xlac_buffer_take(b, memory, x.err), 506)
    x.check(x.lib.xlac_buffer_delete(b, x.err))
    x.lib.xlac_buffer_release(b)


def test_one_of_several_threads_takes_it(x, bs):
    lib, rounds, n = x.lib, 200, 8
    wins, viewed = [], []
    for _ in range(rounds):
        b, barrier, results = bs.create("f32", [16]), threading.Barrier(n), []

        def race(i, b=b, barrier=barrier, results=results):
            err, memory = x.ffi.new("xlac_error *"), x.ffi.new("xlac_memory *")
            barrier.wait()
            if i % 4 == 3:
                if lib.xlac_buffer_open(b, err) == 0:
                    viewed.append(bool(bs.info(b).data != x.ffi.NULL))
                    lib.xlac_buffer_close(b)
            elif lib.xlac_buffer_take(b, memory, err) == 0:
                results.append(memory)
            else:
                assert err.code in (504, 505)

        threads = [threading.Thread(target=race, args=(i,)) for i in range(n)]
        for t, f in itertools.product(threads, (threading.Thread.start,)):
            f(t)
        for t in threads:
            t.join()
        assert len(results) <= 1
        wins.append(len(results))
        for memory in results:
            memory.release(memory.ctx)
        lib.xlac_buffer_release(b)
    assert sum(wins) > rounds // 2 and all(viewed)
