"""Collectives between GPUs by NCCL, of which the simulated driver has one: beside the interpreter's on the CPU, to the bit."""
import os
import pathlib
import signal
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import xlac
from simulator import xlac_driver

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "spmd"))
import collectives_of_ranks  # noqa: E402
import random_groups  # noqa: E402

CALLS = ("ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv")
SUM = """HloModule m, num_partitions={n}
f {{ a = {t}[] parameter(0)
 b = {t}[] parameter(1)
 ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{ x = {t}[{size}] parameter(0)
  ROOT s = {t}[{size}] all-reduce(x), channel_id=1, replica_groups={{{{{members}}}}}, use_global_device_ids=true, to_apply=f }}"""


@pytest.fixture(scope="module")
def cuda():
    return xlac_driver()


@pytest.fixture(autouse=True)
def clean(cuda):
    yield
    cuda.fail(None)
    found = cuda.reports()
    cuda.clear()
    assert found == []


def counts(cuda):
    return {name: cuda.count(name) for name in CALLS}


def reduction(dtype, op="add", n=2, size=37):
    return SUM.format(t=dtype, op=op, n=n, size=size, members=",".join(map(str, range(n))))


def test_every_kind_has_the_bits_of_the_interpreter(cuda):
    """Groups of two and four, crossed and not; sums of floats of four in NCCL's order, which the simulated one has from the CPU."""
    text = collectives_of_ranks.program().replace("8001", "81")
    rng = np.random.default_rng(0)
    v, u = rng.standard_normal((6, 8)).astype("f"), rng.standard_normal((300, 81)).astype("f")
    before = counts(cuda)
    got, want = xlac.compile(text, device="cuda", devices=4)(v, u), xlac.compile(text, devices=4)(v, u)
    for a, b in zip(got, want):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert all(n > before[name] for name, n in counts(cuda).items())


@pytest.mark.parametrize("seed", [105, 118, 131, 146])
def test_random_programs_with_random_shardings(cuda, monkeypatch, seed):
    compiled = xlac.compile
    monkeypatch.setattr(xlac, "compile", lambda m, **options: compiled(m, **options, **({"device": "cuda"} if "devices" in options else {})))
    assert random_groups.check(seed) == "right"


DTYPES = {"pred": np.bool_, "s8": np.int8, "u8": np.uint8, "s16": np.int16, "u16": np.uint16, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
          "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
          "c128": np.complex128, "f8e4m3fn": ml_dtypes.float8_e4m3fn}
LACKS = {"s16", "u16", "f8e4m3fn"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum", "and", "or"])
def test_reductions_of_every_type(cuda, dtype, op):
    """By NCCL, or by way of the host where it has no such type or reducer; maxima of floats, whose NaNs it would lose."""
    real = dtype[0] in "fb"
    if (dtype[0] == "c" and op in ("maximum", "minimum")) or (op in ("and", "or") and (real or dtype[0] == "c")):
        return
    text = reduction(dtype, op)
    x = (np.random.default_rng(1).standard_normal(37) * 50 + (1j if dtype[0] == "c" else 0)).astype(DTYPES[dtype])
    if real:
        x[[3, 5]] = np.nan, 1 if dtype == "f8e4m3fn" else np.inf
    before = cuda.count("ncclAllReduce")
    got = xlac.compile(text, device="cuda", devices=2)(x)
    assert got.tobytes() == xlac.compile(text, devices=2)(x).tobytes()
    by_host = dtype in LACKS or (op in ("maximum", "minimum") and real) or (op == "multiply" and dtype[0] == "c") or \
        (op in ("and", "or") and dtype != "pred")
    assert (cuda.count("ncclAllReduce") == before) == by_host


def test_another_computation_goes_by_way_of_the_host(cuda):
    text = reduction("f32").replace("ROOT c = f32[] add(a, b)", "d = f32[] multiply(a, b)\n ROOT c = f32[] add(d, b)")
    x = np.linspace(-2, 2, 37, dtype=np.float32)
    before = cuda.count("ncclAllReduce")
    assert xlac.compile(text, device="cuda", devices=2)(x).tobytes() == xlac.compile(text, devices=2)(x).tobytes()
    assert cuda.count("ncclAllReduce") == before


def test_without_nccl_the_host_is_in_between_and_it_is_said(cuda, monkeypatch):
    x = np.arange(37, dtype=np.float32)
    exe = xlac.compile(reduction("f32"), device="cuda", devices=2)
    assert "by NCCL 2.27.0 between GPUs" in exe.explain("fusion")
    monkeypatch.setenv("XLAC_NCCL", "0")
    exe = xlac.compile(reduction("f32"), device="cuda", devices=2)
    before = cuda.count("ncclAllReduce")
    np.testing.assert_array_equal(exe(x), 2 * x)
    assert cuda.count("ncclAllReduce") == before
    assert "no NCCL, with which GPUs exchange directly; XLAC_NCCL is 0" in exe.explain("fusion")


def test_devices_that_share_a_gpu_meet_on_the_host(cuda):
    x = np.arange(37, dtype=np.float32)
    before = cuda.count("ncclAllReduce")
    for devices in (["cuda:0"] * 2, ["cuda:3"] * 2):
        np.testing.assert_array_equal(xlac.compile(reduction("f32"), devices=devices)(x), 2 * x)
    assert cuda.count("ncclAllReduce") == before


def test_groups_are_made_once_and_end_with_the_executable(cuda):
    made = cuda.count("ncclCommInitAll")
    exe = xlac.compile(reduction("f32"), device="cuda", devices=2)
    x = np.arange(37, dtype=np.float32)
    for _ in range(4):
        np.testing.assert_array_equal(exe(x), 2 * x)
    assert cuda.count("ncclCommInitAll") == made + 1 and "cliques" in cuda.alive()
    del exe
    assert "cliques" not in cuda.alive()


def test_calls_at_the_same_time_have_groups_of_their_own(cuda):
    exe = xlac.compile(reduction("f32"), device="cuda", devices=2)
    wrong = []

    def many(seed):
        x = np.random.default_rng(seed).standard_normal(37).astype(np.float32)
        for _ in range(10):
            if exe(x).tobytes() != (x + x).tobytes():
                wrong.append(seed)

    threads = [threading.Thread(target=many, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


LOOP = """HloModule m, num_partitions=2
f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
body { s = (s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[64] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[64] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=f
 half = f32[] constant(0.5)
 h = f32[64] broadcast(half), dimensions={}
 z = f32[64] multiply(y, h)
 ROOT r = (s32[], f32[64]) tuple(j, z) }
condition { s = (s32[], f32[64]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(TRIPS)
 ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e {
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[64]) tuple(zero, x)
  loop = (s32[], f32[64]) while(start), condition=condition, body=body
  ROOT y = f32[64] get-tuple-element(loop), index=1
}
"""


def test_ctrl_c_gives_up_what_is_in_flight_and_the_next_call_is_right(cuda):
    exe = xlac.compile(LOOP.replace("TRIPS", "2000000000"), device="cuda", devices=2)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        exe(np.ones(64, np.float32))
    assert time.monotonic() - began < 20
    timer.join()
    np.testing.assert_array_equal(xlac.compile(LOOP.replace("TRIPS", "3"), device="cuda", devices=2)(np.ones(64, np.float32)), 1)


def test_each_call_of_a_program_on_two_gpus_fails_once(cuda):
    """An error of all or a right result, and the next call is right; whoever waits on a GPU for the one that failed gives up."""
    exe = xlac.compile(LOOP.replace("TRIPS", "2"), device="cuda", devices=2)
    x = np.linspace(0, 1, 64, dtype=np.float32)
    exe(x)
    once = ("ncclAllReduce", "ncclGroupStart", "ncclGroupEnd", "cuMemcpyDtoDAsync_v2")
    # By number, as far as a run has calls, and by name: two devices' calls fall in any order.
    by_name = [f"{name}:1" for name in once]
    failed, n, whole = {}, 0, 0
    while whole < 3 or by_name:
        n += 1
        assert n < 1000
        cuda.fail(f"*:{n}" if whole < 3 else by_name.pop())
        try:
            np.testing.assert_array_equal(exe(x), x)
            said = None
        except xlac.Error as e:
            said = str(e)
        name = cuda.calls()[1]
        cuda.library.cudasim_fail(f"none:{1 << 40}".encode())
        assert cuda.reports() == [], (n, name)
        np.testing.assert_array_equal(exe(x), x)
        whole += not name
        if name:
            failed.setdefault(name, []).append(said)
    assert set(once) <= set(failed)
    assert all(said and "NCCL says unhandled system error" in said for said in failed["ncclAllReduce"] + failed["ncclGroupEnd"])


def test_making_groups_fails_once(cuda):
    x = np.arange(37, dtype=np.float32)
    exe = xlac.compile(reduction("f32"), device="cuda", devices=2)
    cuda.fail("ncclCommInitAll:1")
    with pytest.raises(xlac.Error, match=r"device 0: .*NCCL says unhandled system error \(2\)"):
        exe(x)
    np.testing.assert_array_equal(exe(x), 2 * x)


BETWEEN = """HloModule m, num_partitions=2
f { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8,8] parameter(0)
 w = f32[8,8] parameter(1)
 d0 = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 d1 = f32[8,8] dot(d0, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 d2 = f32[8,8] dot(d1, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 s = f32[8,8] all-reduce(d2), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=f
 d3 = f32[8,8] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 d4 = f32[8,8] dot(d3, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT d5 = f32[8,8] dot(d4, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
TURN = np.roll(np.eye(8, dtype=np.float32), 1, 0)
SQUARE = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.mark.parametrize("refused", [False, True])
def test_kernels_between_collectives_are_graphs(cuda, refused):
    """From the second call on, on each device; what the driver has no graph for goes step by step on that device alone."""
    exe, want = xlac.compile(BETWEEN, device="cuda", devices=2), np.asarray(xlac.compile(BETWEEN, devices=2)(SQUARE, TURN))
    assert "meets other GPUs; what is in between is" in exe.explain("fusion")
    names = ("cuLaunchKernel", "cuGraphLaunch", "ncclAllReduce")
    for i in range(4):
        if refused and i == 1:
            cuda.fail("cuGraphInstantiateWithFlags:1:801")
        before = [cuda.count(name) for name in names]
        np.testing.assert_array_equal(exe(SQUARE, TURN), want)
        cuda.fail(None)
        assert [cuda.count(name) - n for name, n in zip(names, before)] == ([12, 0, 2] if i == 0 else [3, 3, 2] if refused else [0, 4, 2]), i


def test_a_launch_of_a_graph_that_fails_on_one_device_ends_all_and_the_next_call_is_right(cuda):
    exe = xlac.compile(BETWEEN, device="cuda", devices=2)
    want = np.asarray(exe(SQUARE, TURN))
    for n in range(1, 5):
        np.testing.assert_array_equal(exe(SQUARE, TURN), want)
        cuda.fail(f"cuGraphLaunch:{n}")
        with pytest.raises(xlac.Error, match="launching a graph"):
            exe(SQUARE, TURN)
        cuda.fail(None)
        np.testing.assert_array_equal(exe(SQUARE, TURN), want)
