"""What the simulated NCCL finds that hardware hangs at, or gets wrong: each misuse is a finding that says what, and of which rank."""
import ctypes

import numpy as np
import pytest

from simulator import CudaError, xlac_driver

N, U8, S32, F32, SUM, MAX = 16, 1, 2, 7, 0, 2


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


class Ranks:
    """Two ranks on devices 0 and 1, each with a stream and two arrays of N floats."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.contexts = [cuda.out("cuDevicePrimaryCtxRetain", i) for i in range(2)]
        self.comms = (ctypes.c_uint64 * 2)()
        cuda.ncclCommInitAll(self.comms, 2, (ctypes.c_int * 2)(0, 1))
        self.streams, self.others, self.arrays = [], [], []
        for i in range(2):
            with self.on(i):
                self.streams.append(cuda.out("cuStreamCreate", 1))
                self.arrays.append([cuda.out("cuMemAlloc_v2", 4 * N) for _ in range(2)])
                for at in self.arrays[i]:
                    data = np.arange(N, dtype=np.float32) + 100 * i
                    cuda.cuMemcpyHtoD_v2(at, data.tobytes(), data.nbytes)

    def on(self, i):
        return On(self.cuda, self.contexts[i])

    def reduce(self, i, n=N, type=F32, reducer=SUM, stream=None, to=None):
        a, b = self.arrays[i]
        self.cuda.ncclAllReduce(a, to or b, n, type, reducer, self.comms[i], stream or self.streams[i])

    def synchronise(self, i):
        """The error there is: 0, or what has broken the context."""
        with self.on(i):
            return self.cuda.library.cuCtxSynchronize()

    def end(self):
        """What a test has broken is waited for, then forgotten. A context that is broken waits for nothing, so what still runs there
        may break it again."""
        for comm in self.comms:
            self.cuda.library.ncclCommAbort(ctypes.c_uint64(comm))
        while any(self.synchronise(i) for i in range(2)):
            self.cuda.clear()
        for i, stream in [*enumerate(self.streams), *enumerate(self.others)]:
            with self.on(i):
                self.cuda.cuStreamDestroy_v2(stream)
        for i in range(2):
            with self.on(i):
                for at in self.arrays[i]:
                    self.cuda.cuMemFree_v2(at)
            self.cuda.cuDevicePrimaryCtxRelease_v2(i)
        self.cuda.clear()


class On:
    def __init__(self, cuda, context):
        self.cuda, self.context = cuda, context

    def __enter__(self):
        self.cuda.cuCtxPushCurrent_v2(self.context)

    def __exit__(self, *error):
        self.cuda.cuCtxPopCurrent_v2(None)


@pytest.fixture
def ranks(cuda):
    made = Ranks(cuda)
    yield made
    made.end()


def both(ranks, action):
    """Each rank's part on its device; then both streams are waited for. The errors there were."""
    errors = []
    for step in (action, lambda i: ranks.cuda.cuStreamSynchronize(ranks.streams[i])):
        for i in range(2):
            with ranks.on(i):
                try:
                    step(i)
                except CudaError as e:
                    errors.append(e.code)
    return errors


def test_a_sum_is_everybodys(cuda, ranks):
    assert both(ranks, ranks.reduce) == []
    for i in range(2):
        out = ctypes.create_string_buffer(4 * N)
        with ranks.on(i):
            cuda.cuMemcpyDtoH_v2(out, ranks.arrays[i][1], 4 * N)
        np.testing.assert_array_equal(np.frombuffer(out.raw, np.float32), 2 * np.arange(N) + 100)
    assert cuda.reports() == []


@pytest.mark.parametrize("other, words", [({"n": N - 1}, "16 elements of type 7"), ({"type": S32}, "of type 2"), ({"reducer": MAX}, "reducer 2")])
def test_ranks_that_disagree(cuda, ranks, other, words):
    assert both(ranks, lambda i: ranks.reduce(i, **(other if i else {})))
    assert all("rank" in r and "does all-reduce" in r for r in cuda.reports()) and any(words in r for r in cuda.reports())


def test_ranks_that_do_different_things(cuda, ranks):
    def action(i):
        if i:
            cuda.ncclBroadcast(*ranks.arrays[i], N, F32, 0, ranks.comms[i], ranks.streams[i])
        else:
            ranks.reduce(i)

    assert both(ranks, action)
    assert any("rank 1 does broadcast" in r and "rank 0 all-reduce" in r for r in cuda.reports())


def test_a_stream_and_memory_of_another_device(cuda, ranks):
    with ranks.on(0):
        with pytest.raises(CudaError):
            ranks.reduce(0, stream=ranks.streams[1])
        with pytest.raises(CudaError):
            ranks.reduce(0, to=ranks.arrays[1][1])
    assert "rank 0 of device 0 is given a stream of another device" in cuda.reports()[0]
    assert "which is not memory of device 0" in cuda.reports()[1]


def test_more_than_the_array_has(cuda, ranks):
    assert both(ranks, lambda i: ranks.reduce(i, n=N + 1))
    assert any("out of bounds: NCCL's all-reduce" in r for r in cuda.reports())


def test_a_result_that_is_read_before_it_is_there(cuda, ranks):
    """By another stream, which nothing orders behind it: a race of the two."""
    def action(i):
        ranks.reduce(i)
        other = cuda.out("cuStreamCreate", 1)
        cuda.cuMemcpyDtoDAsync_v2(ranks.arrays[i][0], ranks.arrays[i][1], 4 * N, other)
        ranks.others.append(other)

    assert both(ranks, action) or any(cuda.library.cuStreamSynchronize(ctypes.c_uint64(s)) for s in ranks.others)
    with ranks.on(0):
        cuda.library.cuCtxSynchronize()
    with ranks.on(1):
        cuda.library.cuCtxSynchronize()
    assert any("race: " in r and "NCCL's all-reduce" in r for r in cuda.reports())


def test_a_group_that_is_not_ended(cuda, ranks):
    cuda.ncclGroupStart()
    with ranks.on(0):
        ranks.reduce(0)
        with pytest.raises(CudaError):
            cuda.cuStreamSynchronize(ranks.streams[0])
    assert cuda.reports() == ["nccl: cuStreamSynchronize within a group that was not ended"]
    with ranks.on(1):
        ranks.reduce(1)
    cuda.ncclGroupEnd()
    with pytest.raises(CudaError):
        cuda.ncclGroupEnd()


def test_what_is_sent_and_never_received(cuda, ranks):
    with ranks.on(0):
        cuda.ncclSend(ranks.arrays[0][0], N, F32, 1, ranks.comms[0], ranks.streams[0])
        with pytest.raises(CudaError):
            cuda.cuStreamQuery(ranks.streams[0])
        cuda.ncclCommAbort(ranks.comms[0])
        cuda.cuStreamSynchronize(ranks.streams[0])


def test_a_rank_that_does_not_come(cuda, ranks, monkeypatch):
    monkeypatch.setenv("XLAC_CUDA_SIM_PATIENCE", "1")
    with ranks.on(0):
        ranks.reduce(0)
        cuda.cuStreamSynchronize(ranks.streams[0])
    assert cuda.reports() == ["nccl: rank 0 waits in all-reduce number 0 for rank 1, which does not come"]


def test_one_gpu_twice_and_peers_that_there_are_none_of(cuda, ranks):
    with pytest.raises(CudaError):
        cuda.ncclCommInitAll((ctypes.c_uint64 * 2)(), 2, (ctypes.c_int * 2)(0, 0))
    with ranks.on(0), pytest.raises(CudaError):
        cuda.ncclSend(ranks.arrays[0][0], N, U8, 2, ranks.comms[0], ranks.streams[0])
