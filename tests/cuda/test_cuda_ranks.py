"""NCCL among the GPUs of several processes: the bits of the CPU, by way of NCCL, and an end for what goes wrong. The simulated NCCL's ranks meet in a folder."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import gpu
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "spmd"))
import collectives_of_ranks  # noqa: E402
import processes  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SPMD = os.path.dirname(collectives_of_ranks.__file__)
PATHS = f"sys.path[:0] = [{HERE!r}, {SPMD!r}]\n"
# counts: how often each entry point of NCCL was called; end: what the driver found, at a process's end.
BEGIN = processes.BEGIN + PATHS + """
import ctypes
library = ctypes.CDLL(os.environ["XLAC_CUDA_DRIVER"])
library.cudasim_count.restype = ctypes.c_long
library.cudasim_report.restype = ctypes.c_char_p
def counts(*names):
    return [library.cudasim_count(name.encode()) for name in names]
def end():
    text = library.cudasim_report(0, None)
    assert text is None, text
def tell(f, *args):
    began = time.monotonic()
    try:
        f(*args)
        print("no error")
    except BaseException as why:
        print(type(why).__name__, str(why).replace(chr(10), " "), flush=True)
    assert time.monotonic() - began < 25, "late"
ADD = "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
def text(size, trips=None):
    reduce = "all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=f"
    if trips is None:
        return f"HloModule m, num_partitions=2\\n{ADD} ENTRY e {{ x = f32[{size}] parameter(0) ROOT s = f32[{size}] {reduce} }}"
    return f'''HloModule m, num_partitions=2
{ADD}
body {{ s = (s32[], f32[{size}]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[{size}] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[{size}] {reduce}
 ROOT r = (s32[], f32[{size}]) tuple(j, y) }}
condition {{ s = (s32[], f32[{size}]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant({trips})
 ROOT p = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[{size}] parameter(0)
 zero = s32[] constant(0)
 start = (s32[], f32[{size}]) tuple(zero, x)
 loop = (s32[], f32[{size}]) while(start), condition=condition, body=body
 ROOT y = f32[{size}] get-tuple-element(loop), index=1 }}'''
x = np.arange(37, dtype=np.float32)
"""
DIGESTS = """
import collectives_of_ranks as c
from collectives_of_ranks import program
c.program = lambda names: program(names).replace("8001", "81")
default_rng = np.random.default_rng
class Small:
    def __init__(self, seed): self.rng = default_rng(seed)
    def standard_normal(self, shape, t): return self.rng.standard_normal((300, 81) if shape == (300, 8001) else shape, t)
np.random.default_rng = Small
said = "".join(f"{at.replace('cuda', 'cpu')} {v}\\n" for at, v in c.digests(names, device=device).items())
print(said, end="", flush=True)
"""
CALLS = ("ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast", "ncclSend", "ncclRecv")
# Of NCCL's own kinds; a ragged exchange is the host's, and sums of four keep the CPU's order in the simulated one.
NAMES = [name for name in collectives_of_ranks.OPS if name != "ragged"]


@pytest.fixture(autouse=True)
def simulated(monkeypatch, tmp_path):
    if os.environ.get("XLAC_CUDA_ON_GPU"):
        pytest.skip("the findings and counts are the simulating driver's")
    gpu.use()
    monkeypatch.setenv("TMPDIR", "/tmp" if len(str(tmp_path)) > 60 else str(tmp_path))


def lines(said):
    return dict(line.split() for out in said for line in out.splitlines())


@pytest.fixture(scope="module")
def bits():
    """By device and result, on the CPU in one process."""
    (said,) = processes.run(1, f"names, device = {NAMES!r}, 'cpu'\n" + DIGESTS, begin="import sys, numpy as np\n" + PATHS)
    return lines([said])


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_kind_has_the_bits_of_the_cpu(bits, ranks):
    """Groups within a process, across, and of both, twice: the communicators of the first call are the second's."""
    said = processes.run(ranks, f"names, device = {NAMES!r}, 'cuda'\n" + DIGESTS + f"assert min(counts(*{CALLS!r})) > 0, counts(*{CALLS!r})\n"
                         "assert counts('ncclCommInitAll') == [0]\nend()", begin=BEGIN, seconds=120)
    assert lines(said) == bits


def test_communicators_are_made_once_and_end_with_the_executable():
    processes.run(2, """
exe = xlac.compile(text(37), device="cuda", devices=2)
for _ in range(4):
    np.testing.assert_array_equal(exe(x), 2 * x)
assert counts("ncclCommInitRankConfig", "ncclGetUniqueId", "ncclAllReduce") == [1, 1 - rank, 4]
del exe
assert counts("ncclCommDestroy") == [1]
xlac.distributed.barrier()
assert not [f for f in os.listdir(os.environ["TMPDIR"]) if f.startswith("cuda-sim-nccl")] or os.environ["TMPDIR"] == "/tmp"
end()""", begin=BEGIN)


@pytest.mark.parametrize("devices", ["cuda", "listed", "loaded"])
def test_a_process_opens_and_prepares_its_own_gpus_alone(devices):
    """The driver that simulates has eight, four of which the program uses, two on each rank."""
    processes.run(2, f"""
where = dict(device="cuda", devices=4) if {devices!r} != "listed" else dict(devices=["cuda:3", "cuda:1", "cuda:2", "cuda:0"])
own = [[0, 1], [2, 3]][rank] if {devices!r} != "listed" else [[1, 3], [0, 2]][rank]
program = text(37).replace("num_partitions=2", "num_partitions=4").replace("{{{{0,1}}}}", "{{{{0,1,2,3}}}}")
program = program.replace("ROOT s", "s").replace("to_apply=f ", "to_apply=f\\n ROOT y = f32[37] multiply(s, s) ")
if {devices!r} == "loaded":
    exe = xlac.load(xlac.compile(program, devices=4).serialize(), device="cuda")
else:
    exe = xlac.compile(program, **where)
def active(gpu):
    flags, active = ctypes.c_uint(), ctypes.c_int()
    assert library.cuDevicePrimaryCtxGetState(gpu, ctypes.byref(flags), ctypes.byref(active)) == 0
    return active.value
for _ in range(2):
    assert [gpu for gpu in range(8) if active(gpu)] == own
    np.testing.assert_array_equal(exe(x), 16 * x * x)
assert counts("cuModuleLoadData", "cuDevicePrimaryCtxRetain") == [2, 2], counts("cuModuleLoadData")
end()""", begin=BEGIN)


@pytest.mark.parametrize("how", ["one of them", "all"])
def test_without_nccl_it_goes_by_the_host(how):
    """Also where only some process has none, whoever asks first."""
    processes.run(2, f"""
if rank == 1 or {how == "all"}: os.environ["XLAC_NCCL"] = "0"
exe = xlac.compile(text(37), device="cuda", devices=2)
for _ in range(2):
    np.testing.assert_array_equal(exe(x), 2 * x)
assert counts("ncclAllReduce", "ncclCommInitRankConfig") == [0, 0]
end()""", begin=BEGIN)


@pytest.mark.parametrize("machines", [1, 2])
def test_processes_that_share_a_gpu_meet_on_the_host_and_those_of_two_machines_do_not(machines):
    processes.run(2, f"""
os.environ["XLAC_CUDA_SIM_MACHINE"] = str(rank if {machines} == 2 else 0)
exe = xlac.compile(text(37), devices=["cuda:0", "cuda:0"])
np.testing.assert_array_equal(exe(x), 2 * x)
assert counts("ncclAllReduce") == [{machines - 1}]
end()""", begin=BEGIN)


@pytest.mark.parametrize("call", ["ncclAllReduce", "ncclGroupEnd", "ncclCommInitRankConfig", "ncclGetUniqueId", "ncclCommGetAsyncError", "cuDeviceGetUuid_v2"])
def test_a_call_that_fails_on_one_rank_ends_all_and_the_next_one_is_right(call):
    """Whoever waits on its GPU, or for a communicator, gives up."""
    said = processes.run(2, f"""
exe = xlac.compile(text(37), device="cuda", devices=2)
if rank == 0: library.cudasim_fail(b"{call}:1")
tell(exe, x)
library.cudasim_fail(b"none:1")
xlac.distributed.barrier()
np.testing.assert_array_equal(exe(x), 2 * x)
np.testing.assert_array_equal(exe(x), 2 * x)
end()""", begin=BEGIN, XLAC_CUDA_SIM_PATIENCE="1000")
    assert "device 0: " in said[0] and ("NCCL says unhandled system error" in said[0] or call.startswith("cu")), said
    assert "rank 0 (process" in said[1] and said[0].split(": ")[2].split(" [")[0] in said[1], said
    assert "): device 0: " in said[1], said


def test_a_rank_that_is_killed_while_others_wait_on_their_gpus():
    started = processes.start(2, """
import signal, threading
exe = xlac.compile(text(37, 2000000000), device="cuda", devices=2)
if rank == 1: threading.Timer(2, os.kill, (os.getpid(), signal.SIGKILL)).start()
tell(exe, x)""", begin=BEGIN, XLAC_CUDA_SIM_PATIENCE="1000")
    (code, out, err), (killed, _, _) = processes.finish(started)
    assert code == 0 and killed != 0, err
    assert "rank 1 (process" in out and "has died" in out, out


def test_a_rank_that_is_killed_between_graphs():
    """Products on both sides of an exchange, in a loop that the hosts turn."""
    started = processes.start(2, """
import signal, threading
dot = " {} = f32[8,8] dot({}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\\n"
program = text(37, 2000000000).replace("f32[37]", "f32[8,8]").replace("all-reduce(x)", "all-reduce(d)")
quarter = ",".join("{" + ",".join("0.25" if i == j else "0" for i in range(8)) + "}" for j in range(8))
products = f" w = f32[8,8] constant({{{quarter}}})\\n" + dot.format("b", "x") + dot.format("c", "b") + dot.format("d", "c")
program = program.replace(" y = ", products + " y = ", 1)
exe = xlac.compile(program, device="cuda", devices=2)
assert "meets other GPUs; what is in between is" in exe.explain("fusion")
if rank == 1: threading.Timer(2, os.kill, (os.getpid(), signal.SIGKILL)).start()
tell(exe, np.ones((8, 8), np.float32))
print(*counts("cuGraphLaunch"))""", begin=BEGIN, XLAC_CUDA_SIM_PATIENCE="1000")
    (code, out, err), (killed, _, _) = processes.finish(started)
    assert code == 0 and killed != 0, err
    assert "rank 1 (process" in out and "has died" in out and int(out.split()[-1]) > 0, out


def test_ctrl_c_on_one_rank_ends_all_and_the_next_call_is_right():
    said = processes.run(2, """
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
exe = xlac.compile(text(37, 2000000000), device="cuda", devices=2)
if rank == 0: threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
tell(exe, x)
xlac.distributed.barrier()
exe = xlac.compile(text(37, 3), device="cuda", devices=2)
np.testing.assert_array_equal(exe(x), 8 * x)
end()""", begin=BEGIN, XLAC_CUDA_SIM_PATIENCE="1000")
    assert "KeyboardInterrupt" in said[0] and "rank 0 (process" in said[1] and "was interrupted" in said[1], said


@pytest.mark.skipif(not shutil.which("mpiexec") or not importlib.util.find_spec("mpi4py"), reason="MPI is not installed: xlac[mpi]")
def test_under_mpiexec():
    script = """
exe = xlac.compile(text(37), device="cuda", devices=2)
np.testing.assert_array_equal(exe(x), 2 * x)
assert counts("ncclAllReduce") == [1]
end()
print("right", flush=True)"""
    path = os.pathsep.join([SPMD, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(["mpiexec", "-n", "2", sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0 and done.stdout.count("right") == 2, (done.stdout, done.stderr)
