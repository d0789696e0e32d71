"""Buffers in a GPU's memory: results that stay there, arguments that lie there, donation, and DLPack both ways by pointer, against a producer
and a consumer of this test's own on the driver that simulates."""
import ctypes
import gc

import numpy as np
import pytest

from simulator import xlac_driver

import xlac

ADD = """HloModule add
ENTRY e {
  x = f32[4,8] parameter(0)
  y = f32[4,8] parameter(1)
  ROOT s = f32[4,8] add(x, y)
}
"""
STEP = """HloModule step, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[64] parameter(0)
  ROOT y = f32[64] multiply(x, x)
}
"""
PAIR = """HloModule pair
ENTRY e {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  t = s32[8] convert(x)
  inner = (s32[8]) tuple(t)
  ROOT r = (f32[8], (s32[8])) tuple(n, inner)
}
"""
X = np.arange(32, dtype=np.float32).reshape(4, 8)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("steps", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
api = ctypes.pythonapi
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Producer:
    """f32 memory of the driver's as another library would export it. Its values are written by a fill on a stream of its own, which only the
    stream that the consumer names is made to wait for."""

    def __init__(self, cuda, dims, steps=None, versions=True, streams=True, offset=0, values=None):
        self.offset = offset
        self.cuda, self.asked, self.deleted, self.versions, self.streams = cuda, [], 0, versions, streams
        self.dims = (ctypes.c_int64 * len(dims))(*dims)
        self.steps = (ctypes.c_int64 * len(dims))(*steps) if steps else None
        self.values = np.zeros(64, np.float32) if values is None else values
        self.at = cuda.array(self.values)
        self.stream, self.event = cuda.stream(), cuda.event()
        self.deleter = DELETER(self.drop)

    def drop(self, at):
        self.deleted += 1

    def write(self, value):
        bits = int(np.float32(value).view(np.uint32))
        self.cuda.cuMemsetD32Async(self.at, bits, 64, self.stream)
        self.cuda.cuEventRecord(self.event, self.stream)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        if (keywords.get("max_version") and not self.versions) or ("stream" in keywords and not self.streams):
            raise TypeError("unexpected keyword")
        if keywords.get("stream"):
            self.cuda.cuStreamWaitEvent(keywords["stream"], self.event, 0)
        tensor = Tensor(self.at, 2, 0, len(self.dims), 2, 32, 1, self.dims, self.steps, self.offset)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)
        if keywords.get("max_version"):
            self.made = Versioned(1, 0, None, deleter, 0, tensor)
            return api.PyCapsule_New(ctypes.addressof(self.made), b"dltensor_versioned", None)
        self.made = Legacy(tensor, None, deleter)
        return api.PyCapsule_New(ctypes.addressof(self.made), b"dltensor", None)


def take(capsule):
    """The tensor of a capsule and what gives it back, as a consumer has them."""
    made = Versioned.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
    api.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    return made.tensor, lambda: DELETER(made.deleter)(ctypes.addressof(made))


@pytest.fixture(scope="module")
def driver():
    return xlac_driver()


@pytest.fixture
def cuda(driver):
    driver.clear()
    yield driver
    gc.collect()
    assert driver.reports() == []


def on_gpu(text, **options):
    return xlac.compile(text, device="cuda", results="buffer", **options)


def test_results_stay_in_the_gpus_memory_and_are_arguments_where_they_lie(cuda):
    add = on_gpu(ADD)
    one = add(X, X)
    assert (one.device, one.shape, one.dtype, one.__dlpack_device__()) == ("cuda:0", (4, 8), np.float32, (2, 0))
    assert "cuda:0" in repr(one) or repr(one).startswith("Buffer(f32[4,8]")
    cuda.fail("cuMemcpyHtoDAsync_v2:1")
    two = add(one, one)  # no copy of an argument, or it would have failed
    cuda.fail(None)
    assert np.array_equal(np.asarray(two), 4 * X) and np.array_equal(one.numpy(), 2 * X)
    assert two.unsafe_pointer() != one.unsafe_pointer()


def test_results_have_the_programs_structure(cuda):
    n, (t,) = on_gpu(PAIR)(np.arange(8, dtype=np.float32))
    assert (n.device, t.device) == ("cuda:0", "cuda:0")
    assert np.asarray(n).tolist() == [-float(i) for i in range(8)] and np.asarray(t).tolist() == list(range(8))


def test_arrays_move_both_ways(cuda):
    b = xlac.asarray(X, device="cuda")
    assert b.device == "cuda:0" and xlac.asarray(b, device="cuda:0").unsafe_pointer() == b.unsafe_pointer()
    back = xlac.asarray(b, device="cpu")
    assert back.device == "cpu" and np.array_equal(back.numpy(), X)
    with pytest.raises(BufferError, match="GPU's memory"):
        memoryview(b)
    with pytest.raises(ValueError, match="copy=False"):
        b.__array__(copy=False)
    assert np.array_equal(np.asarray(xlac.asarray(X.T, device="cuda")), X.T)
    assert xlac.asarray(np.zeros((0, 3), np.float32), device="cuda").shape == (0, 3)


def test_programs_of_other_devices_take_copies(cuda):
    b = xlac.asarray(X, device="cuda")
    assert np.array_equal(xlac.compile(ADD)(b, X), 2 * X)
    assert np.array_equal(xlac.interpret(ADD, b, b), 2 * X)
    assert np.array_equal(xlac.compile(ADD, device="cuda")(b, X), 2 * X)
    if sum(d.kind == "cuda" for d in xlac.devices()) > 1:
        assert np.array_equal(np.asarray(on_gpu(ADD)(xlac.asarray(X, device="cuda:1"), b)), 2 * X)


def test_what_does_not_fit_is_an_error_that_names_the_argument(cuda):
    add, b = on_gpu(ADD), xlac.asarray(X[:2], device="cuda")
    with pytest.raises(xlac.Error, match="argument 1"):
        add(X, b)
    with pytest.raises(xlac.Error, match="y"):
        add(X, "no array")
    with pytest.raises(xlac.Error):
        add(X)


def test_a_donated_buffers_memory_is_the_results(cuda):
    step, x = on_gpu(STEP), xlac.asarray(np.full(64, 3, np.float32), device="cuda")
    at = x.unsafe_pointer()
    y = step(xlac.donate(x))
    assert y.unsafe_pointer() == at and x.is_deleted and np.asarray(y).tolist() == [9.0] * 64
    with pytest.raises(xlac.Error, match="donated"):
        step(x)
    with pytest.warns(xlac.DonationWarning, match="other memory"):
        step(xlac.donate(np.ones(64, np.float32)))
    with pytest.warns(xlac.DonationWarning, match="GPU's memory"):
        assert xlac.compile(STEP, device="cuda")(xlac.donate(y))[0] == 81


def test_a_producers_memory_is_an_argument_at_zero_copy(cuda):
    p = Producer(cuda, [4, 8])
    p.write(2.5)
    b = xlac.from_dlpack(p)
    assert b.unsafe_pointer() == p.at and b.device == "cuda:0" and p.asked[-1]["stream"] == 1
    assert np.array_equal(np.asarray(on_gpu(ADD)(b, X)), X + 2.5)
    del b
    gc.collect()
    assert p.deleted >= 1


def test_a_producer_is_an_argument_where_it_lies(cuda):
    """As CuPy's and JAX's arrays are: not by way of the host, which they are copied to by programs on the CPU alone."""
    p, add = Producer(cuda, [4, 8]), on_gpu(ADD)
    p.write(2.5)
    with pytest.raises(xlac.Error, match="argument 1"):
        add(X, Producer(cuda, [4, 4]))
    add(p, p)
    cuda.fail("cuMemcpyHtoDAsync_v2:1")
    assert np.array_equal(np.asarray(add(p, p)), np.full((4, 8), 5.0))
    cuda.fail(None)


@pytest.mark.parametrize("options", [dict(versions=False), dict(streams=False), dict(versions=False, streams=False)])
def test_producers_of_older_versions(cuda, options):
    p = Producer(cuda, [4, 8], **options)
    p.write(1.5)
    assert np.asarray(xlac.from_dlpack(p)).tolist() == np.full((4, 8), 1.5).tolist()


def test_a_producers_strides_are_read(cuda):
    p = Producer(cuda, [4, 8], steps=[1, 4])
    values = np.arange(64, dtype=np.float32)
    cuda.cuMemcpyHtoD_v2(p.at, values.ctypes.data, values.nbytes)
    b, want = xlac.from_dlpack(p), values[:32].reshape(8, 4).T
    assert b.strides == (4, 16) and np.array_equal(np.asarray(b), want)
    assert np.array_equal(np.asarray(on_gpu(ADD)(b, X)), want + X)
    assert np.array_equal(xlac.compile(ADD)(b, X), want + X)


def test_a_consumer_sees_the_same_memory_and_gives_it_back(cuda):
    b = on_gpu(ADD)(X, X)
    tensor, give_back = take(b.__dlpack__(max_version=(1, 0), stream=1))
    assert (tensor.data, tensor.device, tensor.number, tensor.rank, list(tensor.dims[:2])) == (b.unsafe_pointer(), 2, 0, 2, [4, 8])
    with pytest.raises(xlac.Error, match="view"):
        b.delete()
    stream = cuda.stream()
    cuda.cuMemsetD32Async(tensor.data, 0, 32, stream)  # still going on when it is given back
    give_back()
    del b
    gc.collect()
    cuda.synchronize()


def test_what_can_be_asked_of_an_export(cuda):
    b = xlac.asarray(X, device="cuda")
    for stream in (None, -1, 1, 2, cuda.stream()):
        b.__dlpack__(stream=stream, max_version=(1, 0))
    with pytest.raises(BufferError, match="stream"):
        b.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="can't be exported to device"):
        b.__dlpack__(dl_device=(2, 1))
    tensor, give_back = take(b.__dlpack__(dl_device=(1, 0), max_version=(1, 0)))
    assert tensor.device == 1 and list((ctypes.c_float * 32).from_address(tensor.data)) == X.ravel().tolist()
    give_back()
    assert np.array_equal(xlac.from_dlpack(b, device="cpu").numpy(), X)
    assert xlac.from_dlpack(b).unsafe_pointer() == b.unsafe_pointer() != xlac.from_dlpack(b, copy=True).unsafe_pointer()


def test_numbas_interface(cuda):
    b = xlac.asarray(X, device="cuda")
    about = b.__cuda_array_interface__
    assert about == {"shape": (4, 8), "strides": None, "typestr": "<f4", "data": (b.unsafe_pointer(), False), "version": 3, "stream": None}
    assert not hasattr(xlac.asarray(X), "__cuda_array_interface__")
    assert not hasattr(xlac.asarray(np.ones(2), "bf16"), "__cuda_array_interface__")


def test_no_memory_stays_behind(cuda):
    add, live = on_gpu(ADD), lambda: next(d.live_bytes for d in xlac.devices() if d.name == "cuda:0")
    gc.collect()
    before = live()
    for _ in range(20):
        add(add(X, X), X)
    gc.collect()
    assert live() == before


def test_arrays_that_lie_badly_are_copied(driver):
    """Kernels read 16 bytes at a time: a view that begins elsewhere is copied within the GPU's memory."""
    x = Producer(driver, (4, 8), offset=4)
    driver.cuMemcpyHtoD_v2(x.at, np.arange(64, dtype=np.float32).ctypes.data, 256)
    exe = xlac.compile(ADD, device="cuda")
    before = driver.count("cuMemcpyDtoDAsync_v2")
    np.testing.assert_array_equal(exe(xlac.from_dlpack(x), X), np.arange(1, 33, dtype=np.float32).reshape(4, 8) + X)
    assert driver.count("cuMemcpyDtoDAsync_v2") == before + 1
    assert driver.reports() == []


PRODUCT = """HloModule m
ENTRY e { x = f32[32,32] parameter(0)
 y = f32[32,32] parameter(1)
 d = f32[32,32] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT r = f32[32,32] dot(d, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} }"""


def test_a_librarys_products_need_no_kernel_wherever_arrays_lie(driver, monkeypatch):
    """They are copied to where the library takes them; step by step, and as a graph, nothing is compiled."""
    monkeypatch.setenv("XLAC_CUDA_CACHE", "")
    values = (np.random.default_rng(0).integers(-2, 3, 1025) / 4).astype(np.float32)
    x, y = values[1:].reshape(32, 32), np.eye(32, k=3, dtype=np.float32)
    p, compiled = Producer(driver, [32, 32], offset=4, values=values), driver.count("nvrtcCompileProgram")
    exe = xlac.compile(PRODUCT, device="cuda")
    assert exe.explain("fusion").count("cuBLASLt's product") == 2 and "__global__" not in exe.explain("fusion")
    for _ in range(4):
        assert np.array_equal(exe(p, y), x @ y @ x.T)
    assert driver.count("nvrtcCompileProgram") == compiled and driver.reports() == []
