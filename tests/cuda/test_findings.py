"""Faults are seeded, each is found and named: an event left out, an index off by one, a barrier that not all reach, a leak."""
import ctypes
import mmap
import pathlib
import subprocess
import sys

import numpy
import pytest

from simulator import CudaError, Driver

I32 = ctypes.c_int32


@pytest.fixture(scope="module")
def cuda():
    return Driver()


@pytest.fixture(autouse=True)
def cleared(cuda):
    cuda.clear()
    yield
    cuda.clear()


def found(cuda, error, *texts):
    """Synchronising fails with the error, and the one finding has these texts."""
    with pytest.raises(CudaError) as raised:
        cuda.synchronize()
    assert raised.value.code == error, raised.value
    assert len(cuda.reports()) == 1, cuda.reports()
    for text in texts:
        assert text in cuda.reports()[0] and text in str(raised.value)


def run(cuda, source, grid, block, *arguments, name="k", **given):
    cuda.launch(cuda.kernel(source, name), grid, block, *arguments, **given)


# ---- bounds ----

INDEX = """
extern "C" __global__ void k(float *a, const float *b, int n, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i + shift];
}
extern "C" __global__ void store(float *a, int at) { if (threadIdx.x == 3) a[at] = 1; }
extern "C" __global__ void bytes(char *a, int at) { a[at] = 1; }
extern "C" __global__ void wide(float *a, int at) { *(float4 *)(a + at) = make_float4(1, 2, 3, 4); }
extern "C" __global__ void local(float *a, int at) {
  float mine[4] = {a[0], a[1], a[2], a[3]};
  a[4] = mine[at];
}
"""


@pytest.mark.parametrize("shift", [1, -1, "far"])
def test_an_index_out_of_bounds(cuda, shift):
    x = numpy.zeros(100, "f4")
    a, b = cuda.array(x), cuda.array(x)
    page = mmap.mmap(-1, mmap.PAGESIZE)  # the host's own: far out could also be what another test has freed
    if shift == "far":
        shift = (ctypes.addressof(ctypes.c_char.from_buffer(page)) - b) // 4
    run(cuda, INDEX, 1, 128, a, b, I32(100), I32(0))
    cuda.synchronize()
    run(cuda, INDEX, 1, 128, a, b, I32(100), I32(shift))
    found(cuda, 700, "out of bounds: kernel k (step", "reads 4 bytes", "thread (99, 0, 0)" if shift == 1 else "thread (0, 0, 0)")


def test_a_store_one_past_the_end(cuda):
    a = cuda.array(numpy.zeros(10, "f4"))
    run(cuda, INDEX, 1, 32, a, I32(10), name="store")
    found(cuda, 700, "kernel store", "writes 4 bytes", "byte 40 of the 40 bytes of device memory")


def test_bounds_are_of_bytes(cuda):
    a = cuda.array(numpy.zeros(7, "i1"))
    run(cuda, INDEX, 1, 1, a, I32(6), name="bytes")
    cuda.synchronize()
    run(cuda, INDEX, 1, 1, a, I32(7), name="bytes")
    found(cuda, 700, "byte 7 of the 7 bytes")


def test_a_vector_beyond_the_end_and_a_misaligned_one(cuda):
    a = cuda.array(numpy.zeros(10, "f4"))
    run(cuda, INDEX, 1, 1, a, I32(4), name="wide")
    cuda.synchronize()
    run(cuda, INDEX, 1, 1, a, I32(8), name="wide")
    found(cuda, 700, "out of bounds")
    cuda.clear()
    run(cuda, INDEX, 1, 1, a, I32(2), name="wide")
    found(cuda, 716, "misaligned", "not a multiple of 16", "kernel wide", "line 8")


def test_a_local_array(cuda):
    a = cuda.array(numpy.zeros(10, "f4"))
    run(cuda, INDEX, 1, 1, a, I32(4), name="local")
    found(cuda, 700, "out of bounds of an array", "line 11")


def test_an_address_of_the_host(cuda):
    x = numpy.zeros(10, "f4")
    run(cuda, INDEX, 1, 32, x.ctypes.data, I32(1), name="store")
    found(cuda, 700, "out of bounds", "no allocation is there")


def test_a_copy_that_is_too_long(cuda):
    a, x = cuda.array(numpy.zeros(10, "f4")), numpy.zeros(11, "f4")
    with pytest.raises(CudaError, match="out of bounds: copy to the device .* writes 44 bytes"):
        cuda.cuMemcpyHtoD_v2(a, x.ctypes.data, 44)


def test_the_host_touches_device_memory(cuda):
    a = cuda.array(numpy.arange(10, dtype="f4"))
    assert numpy.ctypeslib.as_array((ctypes.c_float * 10).from_address(a))[3] == 3
    assert len(cuda.reports()) == 1 and "the host touches" in cuda.reports()[0] and "of the 40 bytes" in cuda.reports()[0]


# ---- life ----


def test_use_after_free(cuda):
    a = cuda.array(numpy.zeros(10, "f4"))
    cuda.cuMemFree_v2(a)
    run(cuda, INDEX, 1, 32, a, I32(1), name="store")
    found(cuda, 700, "use after free: kernel store", "freed by the host")


def test_a_second_free(cuda):
    a = cuda.array(numpy.zeros(10, "f4"))
    cuda.cuMemFree_v2(a)
    with pytest.raises(CudaError, match="freed before"):
        cuda.cuMemFree_v2(a)
    with pytest.raises(CudaError, match="no allocation begins"):
        cuda.cuMemFree_v2(12345)


def test_a_free_in_another_stream_without_an_event(cuda):
    s, t, e = cuda.stream(), cuda.stream(), cuda.event()
    x = numpy.zeros(1000, "f4")
    for with_event in (True, False):
        a = cuda.out("cuMemAllocAsync", x.nbytes, s)
        cuda.cuMemsetD32Async(a, 0, x.size, s)
        cuda.cuEventRecord(e, s)
        if with_event:
            cuda.cuStreamWaitEvent(t, e, 0)
        cuda.cuMemFreeAsync(a, t)
        if with_event:
            cuda.synchronize()
    with pytest.raises(CudaError):
        cuda.synchronize()
    assert "free (step" in cuda.reports()[0]


def test_use_before_allocation(cuda):
    s, t = cuda.stream(), cuda.stream()
    a = cuda.out("cuMemAllocAsync", 400, s)
    cuda.cuMemsetD32Async(a, 0, 100, t)
    found(cuda, 700, "use before allocation: fill (step", "nothing orders them")


def test_leaks(cuda):
    before = cuda.alive()
    a = cuda.out("cuMemAlloc_v2", 12345)
    assert "12345 bytes on device 0" in cuda.alive()
    cuda.cuMemFree_v2(a)
    assert cuda.alive() == before


LEAVES = """
from simulator import Driver
cuda = Driver()
other = cuda.out("cuDevicePrimaryCtxRetain", 1)
cuda.cuCtxPushCurrent_v2(other)
b = cuda.out("cuMemAlloc_v2", 100)
cuda.cuDevicePrimaryCtxRelease_v2(1)
assert cuda.reports() == ["leak: the last user of device 1 leaves 1 allocations of 100 bytes"]
cuda.out("cuDevicePrimaryCtxRetain", 1)
cuda.cuMemFree_v2(b)
cuda.cuDevicePrimaryCtxRelease_v2(1)
cuda.cuCtxPopCurrent_v2(None)
"""


def test_what_the_last_user_of_a_device_leaves(cuda):
    """In a process of its own: here xlac may use all devices."""
    subprocess.run([sys.executable, "-c", LEAVES], cwd=pathlib.Path(__file__).parent, check=True, timeout=60)


# ---- races between pieces of work ----


@pytest.mark.parametrize("left_out", [None, 0, 1])
@pytest.mark.parametrize("seed", [0, 9])
def test_an_event_left_out(cuda, left_out, seed):
    """a to b in one stream, b to c in another, b overwritten in the first: two events order them."""
    cuda.library.cudasim_seed(ctypes.c_uint64(seed))
    x = numpy.arange(300, dtype="f4")
    a, b, c = cuda.array(x), cuda.array(x * 0), cuda.array(x * 0)
    s, t, done, read = cuda.stream(), cuda.stream(), cuda.event(), cuda.event()

    def program():
        run(cuda, INDEX, 2, 256, b, a, I32(300), I32(0), stream=s)
        cuda.cuEventRecord(done, s)
        if left_out != 0:
            cuda.cuStreamWaitEvent(t, done, 0)
        run(cuda, INDEX, 2, 256, c, b, I32(300), I32(0), stream=t)
        cuda.cuEventRecord(read, t)
        if left_out != 1:
            cuda.cuStreamWaitEvent(s, read, 0)
        cuda.cuMemsetD32Async(b, 0, 300, s)
        cuda.synchronize()

    if left_out is None:
        program()
        assert (cuda.read(c, x) == x).all()
    else:
        with pytest.raises(CudaError, match="race: .*nothing orders them"):
            program()
        assert cuda.reports()[0].count("(step") == 2
    cuda.library.cudasim_seed(ctypes.c_uint64(0))


def test_the_host_waits_or_not(cuda):
    x = numpy.arange(300, dtype="f4")
    s, t = cuda.stream(), cuda.stream()
    a, b = cuda.array(x), cuda.array(x)
    run(cuda, INDEX, 2, 256, b, a, I32(300), I32(0), stream=s)
    cuda.cuStreamSynchronize(s)
    cuda.cuMemsetD32Async(b, 0, 300, t)
    cuda.synchronize()
    run(cuda, INDEX, 2, 256, b, a, I32(300), I32(0), stream=s)
    cuda.cuMemsetD32Async(b, 0, 300, t)
    found(cuda, 719, "race: ", "kernel k (step", "fill (step", "allocation")


def test_an_edge_that_a_graph_lacks(cuda):
    x = numpy.arange(300, dtype="f4")
    a, b, c = cuda.array(x), cuda.array(x), cuda.array(x)
    s, t, fork, join = cuda.stream(), cuda.stream(), cuda.event(), cuda.event()
    cuda.cuStreamBeginCapture_v2(s, 1)
    cuda.cuEventRecord(fork, s)
    cuda.cuStreamWaitEvent(t, fork, 0)
    run(cuda, INDEX, 2, 256, b, a, I32(300), I32(0), stream=s)
    run(cuda, INDEX, 2, 256, c, b, I32(300), I32(0), stream=t)  # should wait for what writes b
    cuda.cuEventRecord(join, t)
    cuda.cuStreamWaitEvent(s, join, 0)
    graph = ctypes.c_uint64()
    cuda.cuStreamEndCapture(s, ctypes.byref(graph))
    run_of = cuda.out("cuGraphInstantiateWithFlags", graph.value, 0)
    cuda.cuGraphLaunch(run_of, s)
    found(cuda, 719, "race: kernel k", "in a graph", "reads byte 0 of the 1200 bytes")


def test_overlapping_copies(cuda):
    a = cuda.array(numpy.zeros(100, "f4"))
    cuda.cuMemcpyDtoDAsync_v2(a + 200, a, 200, 0)
    cuda.synchronize()
    cuda.cuMemcpyDtoDAsync_v2(a + 100, a, 200, 0)
    found(cuda, 719, "race: copy")


# ---- races between threads ----

THREADS = """
extern "C" __global__ void blocks(int *a) { a[0] = blockIdx.x; }
extern "C" __global__ void threads(int *a) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x > 0) a[threadIdx.x] = s[threadIdx.x - 1];
}
extern "C" __global__ void rewritten(int *a) {
  __shared__ int s[64];
  for (int i = 0; i < 2; i++) {
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    a[threadIdx.x] += s[63 - threadIdx.x];
  }
}
extern "C" __global__ void plain(int *a) {
  atomicAdd(a, 1);
  if (threadIdx.x == 40) a[1] = a[0];
}
extern "C" __global__ void warp(int *a, int wait) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  if (wait) __syncwarp();
  if (threadIdx.x > 0) a[threadIdx.x] = s[threadIdx.x - 1];
}
extern "C" __global__ void last(float *parts, unsigned *seen, float *out) {
  parts[blockIdx.x] = (float)blockIdx.x;
  if (atomicAdd(seen, 1u) == gridDim.x - 1)
    for (unsigned i = 0; i < gridDim.x; i++) *out += parts[i];
}
extern "C" __global__ void same(int *a) { a[threadIdx.x] = a[threadIdx.x] + 1; }
"""


@pytest.mark.parametrize("name, grid, block, texts", [
    ("blocks", 2, 1, ["race", "writes byte 0 of the 256 bytes", "block (1, 0, 0)", "block (0, 0, 0)"]),
    ("threads", 1, 64, ["race", "shared 's' of 256 bytes"]),
    ("rewritten", 1, 64, ["race", "shared 's'"]),
    ("plain", 1, 64, ["race", "reads byte 0", "thread (40, 0, 0)"]),
])
def test_races_between_threads(cuda, name, grid, block, texts):
    a = cuda.array(numpy.zeros(64, "i4"))
    run(cuda, THREADS, grid, block, a, name=name)
    found(cuda, 719, *texts)


def test_lanes_of_a_warp_are_ordered_by_syncwarp_alone(cuda):
    a = cuda.array(numpy.zeros(64, "i4"))
    run(cuda, THREADS, 1, 32, a, I32(1), name="warp")
    run(cuda, THREADS, 1, 64, a, name="same")
    cuda.synchronize()
    run(cuda, THREADS, 1, 32, a, I32(0), name="warp")
    found(cuda, 719, "race", "shared 's'")


def test_the_last_block_without_a_fence(cuda):
    parts, seen, out = cuda.array(numpy.zeros(7, "f4")), cuda.array(numpy.zeros(1, "u4")), cuda.array(numpy.zeros(1, "f4"))
    run(cuda, THREADS, 7, 1, parts, seen, out, name="last")
    found(cuda, 719, "race: kernel last", "block (6, 0, 0)")


# ---- barriers, warps, shared memory ----

BARRIERS = """
extern "C" __global__ void some(int *a) { if (threadIdx.x < 40) __syncthreads(); a[threadIdx.x] = 1; }
extern "C" __global__ void other(int *a) {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
extern "C" __global__ void lanes(int *a) {
  if (threadIdx.x < 16) a[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1);
  else __syncthreads();
}
extern "C" __global__ void never(int *a) {
  __shared__ int s[33];
  if (threadIdx.x < 32) s[threadIdx.x] = 1;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x < 33 ? threadIdx.x : 0];
}
extern "C" __global__ void beyond(int *a, int at) {
  __shared__ int s[16];
  __shared__ int after[16];
  s[threadIdx.x] = after[threadIdx.x] = 1;
  volatile int *p = s;
  a[threadIdx.x] = at == 17 ? s[at] : p[at];
}
extern "C" __global__ void dynamic(int *a, int at) {
  extern __shared__ int d[];
  d[at] = 1;
}
extern "C" __global__ void endless(volatile int *a) { while (a[0] == 0) {} }
extern "C" __global__ void divided(int *a) { a[0] = 1 / a[1]; }
"""


@pytest.mark.parametrize("name, texts", [
    ("some", ["barrier divergence: in kernel some", "thread (40, 0, 0)", "has ended"]),
    ("other", ["barrier divergence", "of line 5", "of line 7"]),
    ("lanes", ["warp divergence: in kernel lanes", "line 11"]),
    ("never", ["uninitialised shared memory", "thread (32, 0, 0)", "byte 128 of shared 's' of 132 bytes"]),
    ("divided", ["a division by zero", "line 32"]),
])
def test_barriers_and_shared_memory(cuda, name, texts):
    a = cuda.array(numpy.zeros(64, "i4"))
    run(cuda, BARRIERS, 1, {"divided": 1, "lanes": 32}.get(name, 64), a, name=name)
    found(cuda, 719, *texts)


@pytest.mark.parametrize("at, name", [(16, "beyond"), (-1, "beyond"), (17, "beyond"), (8, "dynamic")])
def test_bounds_of_shared_memory(cuda, at, name):
    a = cuda.array(numpy.zeros(64, "i4"))
    run(cuda, BARRIERS, 1, 1, a, I32(at), name=name, shared=32)
    if at == 17:
        found(cuda, 700, "out of bounds of an array: kernel beyond", "line 25")
    else:
        found(cuda, 700, "out of bounds: kernel " + name, "reads" if name == "beyond" else "writes")


def test_what_never_ends(cuda):
    a = cuda.array(numpy.zeros(64, "i4"))
    cuda.library.cudasim_limit(ctypes.c_uint64(100000))
    run(cuda, BARRIERS, 1, 1, a, name="endless")
    found(cuda, 702, "no end: kernel endless")
    cuda.library.cudasim_limit(ctypes.c_uint64(0))


def test_launches_that_a_device_refuses(cuda):
    a = cuda.array(numpy.zeros(64, "i4"))
    source = 'extern "C" __global__ void __launch_bounds__(128) k(int *a) { a[threadIdx.x] = 0; }'
    for grid, block, shared, text in [(1, 129, 0, "launch bounds say 128"), (0, 1, 0, "a grid of"), (1, 2048, 0, "blocks of"),
                                      (1, 1, 50000, "shared memory")]:
        with pytest.raises(CudaError, match=text):
            run(cuda, source, grid, block, a, shared=shared)
    cuda.synchronize()


# ---- calls that fail on demand ----


def test_the_nth_call_fails(cuda):
    cuda.fail("cuMemAlloc_v2:2:2")
    a = cuda.out("cuMemAlloc_v2", 100)
    with pytest.raises(CudaError, match="out of memory"):
        cuda.out("cuMemAlloc_v2", 100)
    b = cuda.out("cuMemAlloc_v2", 100)
    assert cuda.calls()[1] == "cuMemAlloc_v2"
    cuda.fail("cuMemFree_v2:1:-1")
    before = cuda.alive()
    cuda.cuMemFree_v2(b)
    assert cuda.alive() == before
    cuda.fail("*:2")
    cuda.cuMemFree_v2(a)
    with pytest.raises(CudaError, match="unknown error"):
        cuda.cuMemFree_v2(b)
    cuda.fail(None)
    cuda.cuMemFree_v2(b)
