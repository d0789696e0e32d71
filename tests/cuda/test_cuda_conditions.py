"""Loops whose number of trips nobody knows, and branches, within a graph: the GPU decides, and the host reads nothing."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import xlac
from simulator import xlac_driver

# Halves until all are small; what it holds is turned over from trip to trip, so that the two states are told apart.
HALVE = """HloModule m
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
body { s = (s32[], f32[9], f32[9]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[9] get-tuple-element(s), index=1
 y = f32[9] get-tuple-element(s), index=2
 one = s32[] constant(1)
 j = s32[] add(i, one)
 half = f32[] constant(0.5)
 h = f32[9] broadcast(half), dimensions={}
 z = f32[9] multiply(x, h)
 r = f32[9] reverse(z), dimensions={0}
 ROOT t = (s32[], f32[9], f32[9]) tuple(j, r, x) }
holds { s = (s32[], f32[9], f32[9]) parameter(0)
 x = f32[9] get-tuple-element(s), index=1
 none = f32[] constant(-inf)
 top = f32[] reduce(x, none), dimensions={0}, to_apply=most
 small = f32[] constant(1)
 ROOT p = pred[] compare(top, small), direction=GT }
ENTRY e { x = f32[9] parameter(0)
 zero = s32[] constant(0)
 s = (s32[], f32[9], f32[9]) tuple(zero, x, x)
 ROOT w = (s32[], f32[9], f32[9]) while(s), condition=holds, body=body }
"""

# In a loop of the Collatz sequence of n: an inner loop, and a branch, whose selector the branch writes over.
NESTED = """HloModule m
even { a = s32[] parameter(0)
 two = s32[] constant(2)
 ROOT c = s32[] divide(a, two) }
odd { a = s32[] parameter(0)
 three = s32[] constant(3)
 one = s32[] constant(1)
 b = s32[] multiply(a, three)
 ROOT c = s32[] add(b, one) }
inner { s = (s32[], s32[]) parameter(0)
 k = s32[] get-tuple-element(s), index=0
 t = s32[] get-tuple-element(s), index=1
 three = s32[] constant(3)
 q = s32[] divide(k, three)
 u = s32[] add(t, k)
 ROOT r = (s32[], s32[]) tuple(q, u) }
some { s = (s32[], s32[]) parameter(0)
 k = s32[] get-tuple-element(s), index=0
 zero = s32[] constant(0)
 ROOT p = pred[] compare(k, zero), direction=GT }
body { s = (s32[], s32[], s32[]) parameter(0)
 n = s32[] get-tuple-element(s), index=0
 count = s32[] get-tuple-element(s), index=1
 total = s32[] get-tuple-element(s), index=2
 one = s32[] constant(1)
 two = s32[] constant(2)
 more = s32[] add(count, one)
 rest = s32[] remainder(n, two)
 zero = s32[] constant(0)
 p = pred[] compare(rest, zero), direction=EQ
 next = s32[] conditional(p, n, n), true_computation=even, false_computation=odd
 again = (s32[], s32[]) tuple(next, total)
 w = (s32[], s32[]) while(again), condition=some, body=inner
 sum = s32[] get-tuple-element(w), index=1
 ROOT r = (s32[], s32[], s32[]) tuple(next, more, sum) }
holds { s = (s32[], s32[], s32[]) parameter(0)
 n = s32[] get-tuple-element(s), index=0
 one = s32[] constant(1)
 ROOT p = pred[] compare(n, one), direction=NE }
ENTRY e { n = s32[] parameter(0)
 zero = s32[] constant(0)
 s = (s32[], s32[], s32[]) tuple(n, zero, zero)
 ROOT w = (s32[], s32[], s32[]) while(s), condition=holds, body=body }
"""

BRANCHES = """HloModule m
f0 { x = f32[40] parameter(0)
 ROOT y = f32[40] cosine(x) }
f1 { x = f32[40] parameter(0)
 ROOT y = f32[40] negate(x) }
f2 { x = f32[40] parameter(0)
 ROOT y = f32[40] copy(x) }
ENTRY e { i = s32[] parameter(0)
 x = f32[40] parameter(1)
 one = s32[] constant(1)
 j = s32[] subtract(i, one)
 a = f32[40] add(x, x)
 b = f32[40] conditional(j, a, x, a), branch_computations={f0, f1, f2}
 ROOT c = f32[40] multiply(b, a) }
"""


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


@pytest.fixture(autouse=True)
def clean(cuda):
    yield
    cuda.fail(None)
    cuda.seed(0)
    found = cuda.reports()
    cuda.clear()
    assert found == []


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("size", [0.5, 1.5, 3, 1e3, 1e4])
def test_no_trips_one_and_odd_and_even_ones(cuda, size, seed):
    cuda.seed(seed)
    exe = xlac.compile(HALVE, device="cuda")
    x = (np.linspace(-1, 1, 9) * size).astype(np.float32)
    want = xlac.interpret(HALVE, x)
    for _ in range(3):
        reads, launches = cuda.count("cuMemcpyDtoHAsync_v2"), cuda.count("cuLaunchKernel")
        for a, b in zip(exe(x), want):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert cuda.count("cuMemcpyDtoHAsync_v2") == reads + 3 and cuda.count("cuLaunchKernel") == launches


@pytest.mark.parametrize("n", [1, 2, 7, 27])
def test_loops_and_branches_within_loops(cuda, n):
    exe = xlac.compile(NESTED, device="cuda")
    want = [int(v) for v in xlac.interpret(NESTED, np.int32(n))]
    for _ in range(3):
        launches = cuda.count("cuLaunchKernel")
        assert [int(v) for v in exe(np.int32(n))] == want
    assert cuda.count("cuLaunchKernel") == launches


def test_the_values_of_one_call_are_not_those_of_the_next(cuda):
    """The same graph, with other trips and branches each time."""
    exe = xlac.compile(NESTED, device="cuda")
    for n in (3, 1, 9, 2, 6):
        assert [int(v) for v in exe(np.int32(n))] == [int(v) for v in xlac.interpret(NESTED, np.int32(n))]


@pytest.mark.parametrize("selector", [-3, 0, 1, 2, 3, 4, 2**31 - 1, -2**31])
def test_branches_by_number(cuda, selector):
    exe = xlac.compile(BRANCHES, device="cuda")
    x = np.linspace(-2, 2, 40, dtype=np.float32)
    want = xlac.interpret(BRANCHES, np.int32(selector), x)
    for _ in range(3):
        launches = cuda.count("cuLaunchKernel")
        assert exe(np.int32(selector), x).tobytes() == np.asarray(want).tobytes()
    assert cuda.count("cuLaunchKernel") == launches


ENDLESS = """HloModule m
body { s = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[8] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] subtract(i, one)
 y = f32[8] negate(x)
 ROOT r = (s32[], f32[8]) tuple(j, y) }
holds { s = (s32[], f32[8]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 zero = s32[] constant(0)
 ROOT p = pred[] compare(i, zero), direction=NE }
ENTRY e { n = s32[] parameter(0)
 x = f32[8] parameter(1)
 s = (s32[], f32[8]) tuple(n, x)
 ROOT w = (s32[], f32[8]) while(s), condition=holds, body=body }
"""


def test_ctrl_c_ends_a_loop_on_the_gpu(cuda):
    exe = xlac.compile(ENDLESS, device="cuda")
    x = np.arange(8, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(exe(np.int32(3), x)[1], -x)
    launches = cuda.count("cuGraphLaunch")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exe(np.int32(-1), x)
    assert time.monotonic() - began < 20 and cuda.count("cuGraphLaunch") == launches + 1
    timer.join()
    np.testing.assert_array_equal(exe(np.int32(3), x)[1], -x)


def test_calls_at_the_same_time(cuda):
    exe = xlac.compile(ENDLESS, device="cuda")
    x = np.arange(8, dtype=np.float32)
    wrong = []

    def work(number):
        for i in range(6):
            n = (number + i) % 5
            if not np.array_equal(exe(np.int32(n), x)[1], x * (-1) ** n):
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_each_call_that_makes_conditions_fails_once(cuda):
    """Then there is no graph, and the host reads the conditions."""
    want = [int(v) for v in xlac.interpret(NESTED, np.int32(6))]

    def calls():
        exe = xlac.compile(NESTED, device="cuda")
        for _ in range(3):
            assert [int(v) for v in exe(np.int32(6))] == want

    calls()
    before = cuda.alive()
    for name in ("cuGraphConditionalHandleCreate", "cuGraphAddNode_v2", "cuMemHostAlloc", "cuModuleGetFunction"):
        for n in (1, 2, 3):
            cuda.fail(f"{name}:{n}:801")
            try:
                calls()
            except xlac.Error as e:
                assert name in ("cuMemHostAlloc", "cuModuleGetFunction") and "801" in str(e)
            assert cuda.calls()[1] == (name if name != "cuMemHostAlloc" else ""), n
            assert cuda.reports() == [] and cuda.alive() == before, (name, n)
    cuda.fail(None)
    calls()


OLD = """
import gpu, numpy as np, xlac
from test_cuda_conditions import NESTED
gpu.use()
exe = xlac.compile(NESTED, device="cuda")
assert "that the host" in exe.explain("fusion"), exe.explain("fusion")[:300]
for _ in range(3):
    assert [int(v) for v in exe(np.int32(6))] == [int(v) for v in xlac.interpret(NESTED, np.int32(6))]
"""


@pytest.mark.skipif(bool(os.environ.get("XLAC_CUDA_ON_GPU")), reason="of the driver that simulates")
def test_an_older_driver_has_the_host_read_conditions(cuda):
    environment = dict(os.environ, XLAC_CUDA_SIM_VERSION="12030", PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", OLD], cwd=pathlib.Path(__file__).parent, env=environment, check=True, timeout=100)
