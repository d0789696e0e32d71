"""The simulating driver itself, on kernels by hand: that it computes what a GPU would."""
import ctypes
import pathlib
import re

import numpy
import pytest

from simulator import CudaError, Driver

ROOT = pathlib.Path(__file__).resolve().parents[2]
I32 = ctypes.c_int32


@pytest.fixture(scope="module")
def cuda():
    return Driver()


@pytest.fixture(autouse=True)
def nothing_found(cuda):
    cuda.clear()
    yield
    assert cuda.reports() == []


def test_every_symbol_that_xlac_uses(cuda):
    """csrc/cuda/driver.def names what is loaded from libcuda, NVRTC, cuBLASLt and NCCL."""
    text = (ROOT / "csrc" / "cuda" / "driver.def").read_text()
    names = re.findall(r"^CUDA_(?:CALL|COMPILER|BLAS|NCCL)\([^,]+, (\w+),", text, re.M)
    assert len(names) > 50
    assert [n for n in names if not hasattr(cuda.library, n)] == []


def test_devices(cuda):
    assert cuda.out("cuDeviceGetCount", type=I32) == 8
    name = ctypes.create_string_buffer(64)
    cuda.cuDeviceGetName(name, 64, 1)
    assert name.value == b"Simulated GPU"
    assert cuda.out("cuDeviceGetAttribute", 10, 0, type=I32) == 32
    assert cuda.out("cuDeviceGetAttribute", 75, 0, type=I32) == 9
    with pytest.raises(CudaError, match="invalid device ordinal"):
        cuda.cuDeviceGetName(name, 64, 8)


ADD = """
extern "C" __global__ void __launch_bounds__(256) k(float *__restrict__ out, const float *__restrict__ a, const float *b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = __fadd_rn(a[i], __ldg(b + i));
}
"""


def test_vector_add(cuda):
    x = numpy.arange(1000, dtype="f4")
    a, b, out = cuda.array(x), cuda.array(x * 0.5), cuda.array(numpy.zeros_like(x))
    cuda.launch(cuda.kernel(ADD), 3, 256, out, a, b, I32(1000))
    assert (cuda.read(out, x) == x * 1.5).all()
    for p in (a, b, out):
        cuda.cuMemFree_v2(p)


REDUCE = """
// A string with extern __shared__ in a comment is left alone.
extern "C" __global__ void k(float *out, const float *in) {
  __shared__ float partial[128];
  unsigned t = threadIdx.x;
  partial[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  for (unsigned s = 64; s > 0; s >>= 1) {
    if (t < s) partial[t] += partial[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}
extern "C" __global__ void dynamic(int *out, const int *in, int n) {
  extern __shared__ __align__(16) unsigned char bytes[];
  int *turned = reinterpret_cast<int *>(bytes);
  turned[n - 1 - threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = turned[threadIdx.x];
}
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_block_reduction(cuda, seed):
    x = numpy.random.default_rng(3).integers(0, 100, (5, 128)).astype("f4")
    cuda.library.cudasim_seed(ctypes.c_uint64(seed))
    a, out = cuda.array(x), cuda.array(numpy.zeros(5, "f4"))
    cuda.launch(cuda.kernel(REDUCE), 5, 128, out, a)
    assert (cuda.read(out, numpy.zeros(5, "f4")) == x.sum(1)).all()
    cuda.library.cudasim_seed(ctypes.c_uint64(0))


def test_dynamic_shared_memory(cuda):
    x = numpy.arange(96, dtype="i4")
    a, out = cuda.array(x), cuda.array(x)
    f = cuda.kernel(REDUCE, "dynamic")
    cuda.launch(f, 1, 96, out, a, I32(96), shared=96 * 4)
    assert (cuda.read(out, x) == x[::-1]).all()
    assert cuda.out("cuFuncGetAttribute", 1, cuda.kernel(REDUCE), type=I32) == 512
    assert cuda.out("cuFuncGetAttribute", 1, f, type=I32) == 0
    cuda.cuFuncSetAttribute(f, 8, 100000)
    cuda.launch(f, 1, 96, out, a, I32(96), shared=100000)
    cuda.synchronize()


WARP = """
extern "C" __global__ void k(int *out, const int *in) {
  unsigned lane = threadIdx.x % 32;
  int v = in[threadIdx.x];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  v = __shfl_sync(0xffffffffu, v, 0);
  unsigned odd = __ballot_sync(0xffffffffu, in[threadIdx.x] & 1);
  int up = __shfl_up_sync(0xffffffffu, in[threadIdx.x], 1), x = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 5);
  double wide = __shfl_sync(0xffffffffu, (double)in[threadIdx.x] / 2, 3, 8);
  out[threadIdx.x * 5] = v;
  out[threadIdx.x * 5 + 1] = __popc(odd);
  out[threadIdx.x * 5 + 2] = up;
  out[threadIdx.x * 5 + 3] = x;
  out[threadIdx.x * 5 + 4] = (int)(wide * 2);
  if (lane < 7) __syncwarp(0x7fu);
}
"""


def test_warp_shuffles(cuda):
    x = numpy.random.default_rng(4).integers(0, 1000, 64).astype("i4")
    a, out = cuda.array(x), cuda.array(numpy.zeros(320, "i4"))
    cuda.launch(cuda.kernel(WARP), 1, 64, out, a)
    got = cuda.read(out, numpy.zeros((64, 5), "i4"))
    w = x.reshape(2, 32)
    lane = numpy.arange(32)
    assert (got[:, 0].reshape(2, 32) == w.sum(1, keepdims=True)).all()
    assert (got[:, 1].reshape(2, 32) == (w & 1).sum(1, keepdims=True)).all()
    assert (got[:, 2].reshape(2, 32) == w[:, numpy.maximum(lane - 1, 0)]).all()
    assert (got[:, 3].reshape(2, 32) == w[:, lane ^ 5]).all()
    assert (got[:, 4].reshape(2, 32) == w[:, lane // 8 * 8 + 3]).all()


ATOMICS = """
__device__ int offset = 5;
extern "C" __global__ void k(int *counts, const int *in, float *sum, unsigned *seen, int *last) {
  atomicAdd(&counts[in[blockIdx.x * 64 + threadIdx.x] % 10], 1);
  atomicAdd(sum, 0.5f);
  __shared__ int is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(seen, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (is_last && threadIdx.x < 10) last[threadIdx.x] = offset + atomicAdd(&counts[threadIdx.x], 0);
}
extern "C" __global__ void partial(float *parts, unsigned *seen, float *out) {
  __shared__ bool is_last;
  parts[blockIdx.x] = (float)blockIdx.x;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(seen, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  float s = 0;
  if (is_last) for (unsigned i = 0; i < gridDim.x; i++) s += parts[i];
  if (is_last) *out = s;
}
"""


def test_atomics(cuda):
    x = numpy.random.default_rng(5).integers(0, 1000, 256).astype("i4")
    counts = cuda.array(numpy.zeros(10, "i4"))
    total, seen, last = cuda.array(numpy.zeros(1, "f4")), cuda.array(numpy.zeros(1, "u4")), cuda.array(numpy.zeros(10, "i4"))
    cuda.launch(cuda.kernel(ATOMICS), 4, 64, counts, cuda.array(x), total, seen, last)
    expected = numpy.bincount(x % 10, minlength=10)
    assert (cuda.read(counts, numpy.zeros(10, "i4")) == expected).all()
    assert (cuda.read(last, numpy.zeros(10, "i4")) == expected + 5).all()
    assert cuda.read(total, numpy.zeros(1, "f4"))[0] == 128


def test_the_last_block_reads_what_the_others_wrote(cuda):
    """Behind a fence and an atomic this is no race."""
    parts, seen, out = cuda.array(numpy.zeros(7, "f4")), cuda.array(numpy.zeros(1, "u4")), cuda.array(numpy.zeros(1, "f4"))
    cuda.launch(cuda.kernel(ATOMICS, "partial"), 7, 1, parts, seen, out)
    assert cuda.read(out, numpy.zeros(1, "f4"))[0] == 21


def test_streams_pools_and_events(cuda):
    x = numpy.arange(4096, dtype="f4")
    s, t, e, f = cuda.stream(), cuda.stream(), cuda.event(), cuda.event()
    properties = (ctypes.c_int32 * 22)(1, 0, 1, 0)
    pool = cuda.out("cuMemPoolCreate", properties)
    threshold = ctypes.c_uint64(2**64 - 1)
    cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(threshold))
    a = cuda.out("cuMemAllocFromPoolAsync", x.nbytes, pool, s)
    b = cuda.out("cuMemAllocFromPoolAsync", x.nbytes, pool, s)
    host = cuda.out("cuMemHostAlloc", x.nbytes, 1)
    cuda.cuMemcpyHtoDAsync_v2(a, x.ctypes.data, x.nbytes, s)
    cuda.cuMemsetD32Async(b, 0x3F800000, x.size, s)
    cuda.cuEventRecord(e, s)
    cuda.cuStreamWaitEvent(t, e, 0)
    cuda.launch(cuda.kernel(ADD), 2, 256, b, a, b, I32(x.size), stream=t)
    cuda.cuMemcpyDtoHAsync_v2(host, b, x.nbytes, t)
    cuda.cuEventRecord(f, t)
    cuda.cuMemFreeAsync(a, t)
    cuda.cuEventSynchronize(f)
    assert (numpy.ctypeslib.as_array((ctypes.c_float * x.size).from_address(host)) == x + 1).all()
    cuda.cuStreamWaitEvent(s, f, 0)
    cuda.cuMemFreeAsync(b, s)
    for stream in (s, t):
        cuda.cuStreamSynchronize(stream)
        cuda.cuStreamDestroy_v2(stream)
    for event in (e, f):
        cuda.cuEventDestroy_v2(event)
    cuda.cuMemFreeHost(host)
    cuda.cuMemPoolDestroy(pool)


def test_functions_of_the_host_run_in_order(cuda):
    seen = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda context: seen.append(context))
    s, x = cuda.stream(), numpy.zeros(100000, "f4")
    a = cuda.array(x)
    for i in range(1, 6):
        cuda.cuMemsetD32Async(a, i, x.size, s)
        cuda.cuLaunchHostFunc(s, callback, i)
    cuda.cuStreamSynchronize(s)
    assert seen == [1, 2, 3, 4, 5]
    cuda.cuStreamDestroy_v2(s)


def test_copies_between_devices(cuda):
    x = numpy.arange(100, dtype="i4")
    other = cuda.out("cuDevicePrimaryCtxRetain", 1)
    a = cuda.array(x)
    cuda.cuCtxPushCurrent_v2(other)
    b = cuda.array(x * 0)
    assert cuda.out("cuPointerGetAttribute", 9, b, type=I32) == 1
    cuda.cuMemcpyPeerAsync(b, other, a, cuda.context, x.nbytes, 0)
    assert (cuda.read(b, x) == x).all()
    cuda.cuMemFree_v2(b)
    cuda.cuCtxPopCurrent_v2(None)
    cuda.cuDevicePrimaryCtxRelease_v2(1)


def test_errors_of_the_compiler_are_in_its_log(cuda):
    with pytest.raises(CudaError, match=r"test\.cu:2.*nowhere"):
        cuda.compile('extern "C" __global__ void k(float *a) {\n  a[0] = nowhere;\n}')
    with pytest.raises(CudaError, match="unrecognized option --no-such"):
        cuda.compile("", "--no-such")
    with pytest.raises(CudaError, match="named symbol not found"):
        cuda.kernel(ADD, "other")


def test_memory_has_an_end(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    assert 0 < free.value <= total.value
    with pytest.raises(CudaError, match="out of memory"):
        cuda.out("cuMemAlloc_v2", free.value + 1)


def test_graphs_are_captured_updated_and_launched(cuda):
    x = numpy.arange(512, dtype="f4")
    a, b, c, d = (cuda.array(x) for _ in range(4))
    f = cuda.kernel(ADD)
    s, t, fork, join = cuda.stream(), cuda.stream(), cuda.event(), cuda.event()

    def capture(first):
        cuda.cuStreamBeginCapture_v2(s, 1)
        cuda.launch(f, 2, 256, b, first, first, I32(512), stream=s)
        cuda.cuEventRecord(fork, s)
        cuda.cuStreamWaitEvent(t, fork, 0)
        cuda.launch(f, 2, 256, c, b, b, I32(512), stream=t)
        cuda.launch(f, 2, 256, d, b, first, I32(512), stream=s)
        cuda.cuEventRecord(join, t)
        cuda.cuStreamWaitEvent(s, join, 0)
        return end()

    def end():
        graph = ctypes.c_uint64()
        cuda.cuStreamEndCapture(s, ctypes.byref(graph))
        return graph.value

    graph = capture(a)
    assert (cuda.read(c, x) == x).all()  # nothing has run
    run = cuda.out("cuGraphInstantiateWithFlags", graph, 0)
    cuda.cuGraphDestroy(graph)
    for _ in range(2):
        cuda.cuGraphLaunch(run, s)
    cuda.cuStreamSynchronize(s)
    assert (cuda.read(c, x) == 4 * x).all() and (cuda.read(d, x) == 3 * x).all()
    graph, result = capture(cuda.array(x * 10)), (ctypes.c_uint64 * 3)()
    cuda.cuGraphExecUpdate_v2(run, graph, result)
    cuda.cuGraphLaunch(run, t)
    cuda.cuStreamSynchronize(t)
    assert (cuda.read(c, x) == 40 * x).all()
    cuda.cuStreamBeginCapture_v2(s, 1)
    cuda.launch(f, 2, 256, b, a, a, I32(512), stream=s)
    smaller = end()
    with pytest.raises(CudaError, match="graph update was not performed"):
        cuda.cuGraphExecUpdate_v2(run, smaller, result)
    for g in (graph, smaller):
        cuda.cuGraphDestroy(g)
    cuda.cuGraphExecDestroy(run)


def test_a_capture_must_be_joined(cuda):
    s, t, e = cuda.stream(), cuda.stream(), cuda.event()
    a, graph = cuda.array(numpy.zeros(4, "f4")), ctypes.c_uint64()
    cuda.cuStreamBeginCapture_v2(s, 1)
    cuda.cuEventRecord(e, s)
    cuda.cuStreamWaitEvent(t, e, 0)
    cuda.cuMemsetD32Async(a, 1, 4, t)
    with pytest.raises(CudaError, match="unjoined work"):
        cuda.cuStreamEndCapture(s, ctypes.byref(graph))
    cuda.cuMemsetD32Async(a, 1, 4, t)  # both streams are as before
    cuda.cuStreamSynchronize(t)
