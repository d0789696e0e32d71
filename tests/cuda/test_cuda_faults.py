"""Each call of the driver that running a program makes fails once: an error that says so or a right result, nothing left behind, and the
next call as if nothing had been."""

import re

import numpy as np
import pytest

import xlac
from simulator import xlac_driver
from test_cuda_cache import units

PROGRAM = """
HloModule m
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
body { s = (s32[], f32[16]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[16] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[16] multiply(x, x)
 ROOT r = (s32[], f32[16]) tuple(j, y) }
condition { s = (s32[], f32[16]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(3)
 ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e {
  x = f32[16] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[16]) tuple(zero, x)
  loop = (s32[], f32[16]) while(start), condition=condition, body=body
  y = f32[16] get-tuple-element(loop), index=1
  none = f32[] constant(0)
  total = f32[] reduce(y, none), dimensions={0}, to_apply=sum
  ROOT r = (f32[16], f32[]) tuple(y, total)
}
"""
# A counter that the host must read.
READS = PROGRAM.replace("j = s32[] add(i, one)", "two = s32[] add(i, one)\n j = s32[] maximum(two, i)")

RELEASES = {"cuMemFreeAsync", "cuMemFreeHost", "cuModuleUnload", "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuCtxPushCurrent_v2",
            "nvrtcDestroyProgram", "cuGraphDestroy", "cuGraphExecDestroy"}


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


@pytest.fixture(autouse=True)
def no_more(cuda):
    yield
    cuda.fail(None)
    cuda.clear()


def outcome(exe, x):
    y, total = exe(x)
    np.testing.assert_allclose(y, x**8, rtol=1e-5)
    np.testing.assert_allclose(total, (x**8).sum(), rtol=1e-5)


def alive(cuda):
    """All that there is, streams, events, modules and graphs too. Allocations by size: where the device keeps as many blocks for later calls as
    it may, those that it keeps can be others."""
    return sorted(re.sub(r"allocation \d+", "allocation", cuda.alive(1 << 20)).split(", "))


def each_call_fails(cuda, action):
    """Runs it with the first call failing, with the second, and so on, until there is no n-th; then with the first that asks whether
    work is done, and the second, which are not counted before, as their number is a matter of time. What each failure led to."""
    seen, n, whole = {}, 0, 0
    questions = ["cuStreamQuery:1", "cuStreamQuery:2"]
    while whole < 2 or questions:
        n += 1
        assert n < 2000
        before = alive(cuda)
        cuda.fail(f"*:{n}" if whole < 2 else questions.pop())
        try:
            action()
            raised = None
        except xlac.Error as e:
            raised = str(e)
            del e
        failed = cuda.calls()[1]
        cuda.library.cudasim_fail(f"none:{1 << 40}".encode())  # counts on, fails no more
        cuda.synchronize()
        assert cuda.reports() == [], (n, failed)
        # What a release that failed leaves is lost, and nobody is told; a graph that the driver refuses is given up.
        assert alive(cuda) == before or (raised is None and (failed in RELEASES or failed.startswith("cuGraph"))), (n, failed, raised)
        whole += not failed
        if failed:
            seen.setdefault(failed, []).append(raised)
    return seen


def test_each_call_of_an_execution(cuda, monkeypatch):
    """Step by step: the host reads the condition."""
    monkeypatch.setenv("XLAC_CUDA_CHECK", "1")
    x = np.linspace(0.5, 1.5, 16, dtype=np.float32)
    exe = xlac.compile(READS, device="cuda")
    outcome(exe, x)
    seen = each_call_fails(cuda, lambda: outcome(exe, x))
    assert {"cuLaunchKernel", "cuMemAllocFromPoolAsync"} <= set(seen)
    assert all(r is not None for r in seen["cuLaunchKernel"]) and any("cuda" in r.lower() for r in seen["cuLaunchKernel"])
    outcome(exe, x)


def test_each_call_of_a_compilation_in_units(cuda):
    exe = xlac.compile(units(), device="cuda")
    assert str(exe.explain("fusion")).count("__global__") == 3
    seen = each_call_fails(cuda, lambda: xlac.compile(units(), device="cuda"))
    assert {"cuModuleLoadData", "nvrtcCompileProgram", "cuModuleGetFunction", "cuCtxPushCurrent_v2"} <= set(seen)
    assert all(r is not None for r in seen["nvrtcCompileProgram"])


def test_each_call_of_a_compilation(cuda):
    x = np.linspace(0.5, 1.5, 16, dtype=np.float32)
    seen = each_call_fails(cuda, lambda: outcome(xlac.compile(PROGRAM, device="cuda"), x))
    assert {"cuModuleLoadData", "nvrtcCompileProgram", "cuModuleGetFunction"} <= set(seen)
    outcome(xlac.compile(PROGRAM, device="cuda"), x)


PRODUCTS = """
HloModule m
ENTRY e {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  a = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,64] tanh(a)
  ROOT c = f32[64,64] dot(t, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}
"""


def test_each_call_of_graphs_with_products_of_a_library_and_of_machine_code_from_disk(cuda, monkeypatch, tmp_path):
    """Three calls: steps, a graph that is made with a capture within, and the graph with other addresses."""
    monkeypatch.setenv("XLAC_CUDA_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    xs = [(rng.integers(-8, 9, (64, 64)) / 8).astype(np.float32) for _ in range(3)]
    want = [np.tanh(x @ xs[0]).T @ x for x in xs]

    def calls():
        exe = xlac.compile(PRODUCTS, device="cuda", results="buffer")
        kept = []
        for x, y in zip(xs, want):
            kept.append(exe(xlac.asarray(x, device="cuda:0"), xs[0]))
            np.testing.assert_allclose(np.asarray(kept[-1]), y, rtol=1e-4, atol=1e-4)

    calls()
    seen = each_call_fails(cuda, calls)
    assert {"cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatrixLayoutCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
            "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuModuleLoadData"} <= set(seen)
    assert "nvrtcCompileProgram" not in seen  # it came from the disk
    calls()
