import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest


@pytest.fixture
def make_pool(lib, ffi):
    made = []

    def make(threads, alloc=None):
        out, err = ffi.new("rt_pool **"), ffi.new("xlac_error *")
        assert lib.rt_pool_create(out, threads, alloc or lib.base_alloc_libc, err) == 0, ffi.string(err.message)
        made.append(out[0])
        return out[0]

    yield make
    for p in made:
        lib.rt_pool_destroy(p)


def visit(lib, ffi, pool, n, grain, nested=False, work=0):
    """Runs a parallel-for over n elements; (ranges, how many of them other threads ran)."""
    visits, ends = np.zeros(max(n, 1), np.uint8), np.zeros(max(n, 1), np.uint64)
    outside = lib.shim_parallel(pool, n, grain, ffi.cast("uint8_t *", visits.ctypes.data),
                                ffi.cast("uint64_t *", ends.ctypes.data), nested, work)
    assert np.all(visits[:n] == 1), "each element once"
    begins = np.flatnonzero(ends)
    return [(int(b), int(ends[b])) for b in begins], outside


def test_cuts_depend_on_n_and_grain_only(lib, ffi, make_pool):
    pools = [ffi.NULL] + [make_pool(t) for t in (1, 2, 3, 8)]
    for n, grain in ((0, 4), (1, 1), (7, 0), (10, 3), (1000, 1), (1000, 1000), (1000, 10**18), (5000, 1), (100001, 7),
                     (4096, 4)):
        cuts = [visit(lib, ffi, p, n, grain)[0] for p in pools]
        assert all(c == cuts[0] for c in cuts)
        ranges = cuts[0]
        assert [b for b, _ in ranges] == ([0] + [e for _, e in ranges[:-1]] if n else [])
        assert not n or ranges[-1][1] == n
        assert all((e - b) % max(grain, 1) == 0 for b, e in ranges[:-1]) and len(ranges) <= 1024


def test_size_one_starts_no_thread(lib, ffi, make_pool):
    p = make_pool(1)
    ranges, outside = visit(lib, ffi, p, 1000, 10)
    assert len(ranges) == 100 and outside == 0
    assert lib.rt_pool_size(p) == 1 and lib.rt_pool_started(p) == 0


def test_threads_start_on_first_use_and_help(lib, ffi, make_pool):
    p = make_pool(4)
    assert lib.rt_pool_started(p) == 0
    visit(lib, ffi, p, 5, 10)
    assert lib.rt_pool_started(p) == 0, "one range needs nobody else"
    visit(lib, ffi, p, 2, 1)
    assert lib.rt_pool_started(p) == 1, "two ranges need one more"
    assert any(visit(lib, ffi, p, 64, 1, work=200000)[1] for _ in range(20)) and lib.rt_pool_started(p) == 3


def test_nested_calls_run_inline(lib, ffi, make_pool):
    for threads in (1, 2, 5):
        p = make_pool(threads)
        for _ in range(20):
            visit(lib, ffi, p, 40, 1, nested=True)
        assert lib.rt_pool_started(p) == threads - 1


def test_many_callers_at_once(lib, ffi, make_pool):
    p = make_pool(3)
    sums, errors = [], []

    def call(k):
        try:
            sums.append(lib.shim_storm(p, 1500, 3 + k) == 1500 * (3 + k))
            for _ in range(20):
                visit(lib, ffi, p, 500 + k, 3, nested=k % 2 == 0)
        except AssertionError as e:
            errors.append(e)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and sums == [True] * 8


def test_create_and_destroy_often(lib, ffi, make_pool):
    out = ffi.new("rt_pool **")
    for i in range(200):
        assert lib.rt_pool_create(out, 1 + i % 4, lib.base_alloc_libc, ffi.NULL) == 0
        if i % 3:
            assert lib.shim_storm(out[0], 3, 10) == 30
        lib.rt_pool_destroy(out[0])
    lib.rt_pool_destroy(ffi.NULL)


def in_child(body):
    """Runs body() in a forked child; true if it returned true within ten seconds."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if body() else 1
        finally:
            os._exit(code)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.002)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(lib, ffi, make_pool):
    p = make_pool(3)
    visit(lib, ffi, p, 100, 1)
    assert lib.rt_pool_started(p) == 2

    def child():
        fresh = lib.rt_pool_started(p) == 0
        visit(lib, ffi, p, 100, 1)
        grandchild = in_child(lambda: lib.rt_pool_started(p) == 0 and lib.shim_storm(p, 5, 10) == 50)
        started = lib.rt_pool_started(p) == 2
        lib.rt_pool_destroy(p)
        return fresh and started and grandchild

    assert in_child(child)
    assert in_child(lambda: lib.rt_pool_destroy(p) is None), "unused in the child, with no thread to join"
    visit(lib, ffi, p, 100, 1)
    assert lib.rt_pool_started(p) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_others_use_the_pool(lib, ffi, make_pool):
    p = make_pool(3)
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            lib.shim_storm(p, 50, 20)

    threads = [threading.Thread(target=storm) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(15):
            assert in_child(lambda: lib.shim_storm(p, 20, 20) == 400)
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_errors(lib, ffi):
    out, err = ffi.new("rt_pool **"), ffi.new("xlac_error *")
    f = ffi.new("shim_faulty *", {"left": 0})
    assert lib.rt_pool_create(out, 2, lib.shim_faulty_alloc(f), err) == -600 and out[0] == ffi.NULL
    assert b"thread pool" in ffi.string(err.message)
    assert lib.rt_pool_create(out, 10**6, lib.base_alloc_libc, err) == -601 and out[0] == ffi.NULL
    assert b"1000000" in ffi.string(err.message)


def test_cpu_count_respects_affinity(module):
    code = ("import importlib.util as u, os; s = u.spec_from_file_location('xlac_base_shim', %r); "
            "m = u.module_from_spec(s); s.loader.exec_module(m); "
            "n = m.lib.rt_cpu_count(); a = sorted(os.sched_getaffinity(0)); "
            "os.sched_setaffinity(0, a[:1]); print(n, len(a), m.lib.rt_cpu_count())" % module.__file__)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    n, allowed, one = map(int, run.stdout.split())
    assert 1 <= n <= allowed and one == 1


NONE = 2**32 - 1
V1 = "cpu,cpuacct"


@pytest.mark.parametrize("membership, files, want", [
    ("0::/\n", {}, NONE),
    ("0::/\n", {"cpu.max": "max 100000\n"}, NONE),
    ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
    ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
    ("0::/\n", {"cpu.max": "1000 100000\n"}, 1),
    ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n", "cpu.max": "400000 100000\n"}, 2),
    ("0::/gone/on/the/host\n", {"cpu.max": "400000 100000\n"}, 4),
    ("0::/a\n", {"unified/a/cpu.max": "700000 100000\n"}, 7),
    (f"3:pids:/\n2:{V1}:/x\n", {f"{V1}/x/cpu.cfs_quota_us": "-1\n", f"{V1}/x/cpu.cfs_period_us": "100000\n"}, NONE),
    (f"2:{V1}:/x\n", {f"{V1}/cpu.cfs_quota_us": "300000\n", f"{V1}/cpu.cfs_period_us": "100000\n"}, 3),
    ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "25000\n"}, 2),
    ("4:cpuset:/\n", {"cpuset/cpu.cfs_quota_us": "50000\n", "cpuset/cpu.cfs_period_us": "25000\n"}, NONE),
    ("4:cpuacct,cpu:/\n", {"cpu/cpu.cfs_quota_us": "1\n", "cpu/cpu.cfs_period_us": "25000\n"}, 1),
    ("garbage\n::\n0:\n9:cpu\n", {"cpu.max": "junk\n"}, NONE),
    ("0::/" + "d/" * 2000 + "\n", {"cpu.max": "100000\n"}, NONE)])
def test_cgroup_quota(lib, tmp_path, membership, files, want):
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "mount" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert lib.rt_cgroup_cpus(str(tmp_path / "membership").encode(), str(tmp_path / "mount").encode()) == want


def test_no_cgroup(lib, tmp_path):
    assert lib.rt_cgroup_cpus(str(tmp_path / "absent").encode(), b"/sys/fs/cgroup") == NONE


HERE = pathlib.Path(__file__).parent


def test_under_thread_sanitizer(tmp_path):
    """stress_threads.c in a process of its own, for ThreadSanitizer must be there from the start."""
    program = tmp_path / "stress"
    csrc = HERE.parents[1] / "csrc"
    sources = [str(csrc / name) for name in ("runtime/threads.c", "runtime/cpus.c", "base/status.c", "base/memory.c")]
    command = ["cc", "-std=gnu11", "-O1", "-g", "-fsanitize=thread", f"-I{csrc}", str(HERE / "stress_threads.c"),
               *sources,
               "-o", str(program), "-pthread"]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("this compiler has no ThreadSanitizer")
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # another sanitizer's, perhaps
    run = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, env=environment)
    if "unexpected memory mapping" in run.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert run.returncode == 0 and "WARNING" not in run.stderr, run.stderr[:4000]
