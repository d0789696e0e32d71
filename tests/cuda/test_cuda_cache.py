"""Machine code on disk: a program is compiled once; damaged files, folders that can't be, and writers that die make no difference. And what is
compiled together."""
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from simulator import compiler, library_path, xlac_driver

import xlac

X = np.arange(8, dtype=np.float32)


def text(number):
    return f"HloModule m\nENTRY e {{ x = f32[8] parameter(0)\n c = f32[] constant({number})\n b = f32[8] broadcast(c), dimensions={{}}\n ROOT y = f32[8] multiply(x, b) }}"


@pytest.fixture(scope="module")
def driver():
    return xlac_driver()


@pytest.fixture
def cuda(driver, tmp_path, monkeypatch):
    monkeypatch.setenv("XLAC_CUDA_CACHE", str(tmp_path / "a" / "b"))
    driver.clear()
    yield driver
    driver.fail(None)


def run(number, **options):
    return xlac.compile(text(number), device="cuda", **options)(X)


def files(tmp_path):
    return sorted((tmp_path / "a" / "b").iterdir())


def test_a_program_is_compiled_once(cuda, tmp_path):
    assert np.array_equal(run(3), 3 * X)
    (path,) = files(tmp_path)
    assert path.suffix == ".cubin" and path.stat().st_mode & 0o77 == 0
    cuda.fail("nvrtcCompileProgram:1")
    assert np.array_equal(run(3), 3 * X)
    with pytest.raises(xlac.Error):
        run(4)


def test_what_the_code_depends_on_is_part_of_its_name(cuda, tmp_path):
    run(3), run(4), run(3, numerics="fast")
    assert len(files(tmp_path)) == 3


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:20], lambda b: b[:-1], lambda b: b + b"x", lambda b: b[:100] + bytes([b[100] ^ 1]) + b[101:]])
def test_damaged_files_are_made_again(cuda, tmp_path, damage):
    run(5)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert np.array_equal(run(5), 5 * X) and path.read_bytes() == whole


@pytest.mark.parametrize("place", ["", "/proc/none/here", "/dev/null/x"])
def test_without_a_folder_programs_are_compiled_all_the_same(cuda, monkeypatch, place):
    monkeypatch.setenv("XLAC_CUDA_CACHE", place)
    assert np.array_equal(run(6), 6 * X) and np.array_equal(run(6), 6 * X)


@pytest.mark.skipif(bool(os.environ.get("XLAC_CUDA_ON_GPU")), reason="nobody chose a driver")
def test_a_driver_that_somebody_chose_has_no_cache_unless_asked_for(cuda, monkeypatch, tmp_path):
    monkeypatch.delenv("XLAC_CUDA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert np.array_equal(run(7), 7 * X) and os.environ["XLAC_CUDA_DRIVER"] and not (tmp_path / "home" / "xlac").exists()


def test_threads_write_one_file(cuda, tmp_path):
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(8))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(r, 8 * X) for r in results) and len(results) == 4 and len(files(tmp_path)) == 1


# ---- units ----

LENGTHS = (8, 9, 10)


def units(lengths=LENGTHS):
    """A kernel for each length, with too much in it for two of them to be one unit."""
    lines, results = [], []
    for i, n in enumerate(lengths):
        lines += [f"x{i} = f32[{n}] parameter({i})", f"v{i}_0 = f32[{n}] negate(x{i})"]
        lines += [f"v{i}_{j} = f32[{n}] {'subtract' if j % 3 else 'multiply'}(v{i}_{j - 1}, x{i})" for j in range(1, 240)]
        results.append(f"f32[{n}]")
    values = ", ".join(f"v{i}_239" for i in range(len(lengths)))
    return "HloModule m\nENTRY e { " + "\n ".join(lines) + f"\n ROOT r = ({', '.join(results)}) tuple({values}) }}"


def given(lengths=LENGTHS):
    return [(np.arange(n) % 3 / 4).astype(np.float32) for n in lengths]


def right(exe, lengths=LENGTHS):
    want = xlac.compile(units(lengths))(*given(lengths))
    return all(np.array_equal(a, b) for a, b in zip(exe(*given(lengths)), want))


def test_kernels_of_one_text_are_one(cuda):
    """Only their names differ, which are numbers."""
    lines = [f"d{i} = f32[5,5] dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}" for i, (a, b) in enumerate(["xy", "yx", ("d0", "d1")])]
    exe = xlac.compile("HloModule m\nENTRY e { x = f32[5,5] parameter(0)\n y = f32[5,5] parameter(1)\n " + "\n ".join(lines) +
                       "\n ROOT s = f32[5,5] dot(d2, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} }", device="cuda")
    said = str(exe.explain("fusion"))
    assert said.count("kernel k0,") == 3 and said.count("kernel k1,") == 1 and said.count("__global__") == 2
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (5, 5)).astype(np.float32) for _ in range(2))
    assert np.array_equal(exe(x, y), (x @ y @ y @ x).T @ x)


def test_a_program_is_compiled_in_units_each_with_a_file(cuda, tmp_path):
    exe = xlac.compile(units(), device="cuda")
    assert str(exe.explain("fusion")).count("__global__") == 3 and len(files(tmp_path)) == 3 and right(exe)
    files(tmp_path)[1].unlink()
    compiled = cuda.count("nvrtcCompileProgram")
    assert right(xlac.compile(units(), device="cuda")) and cuda.count("nvrtcCompileProgram") == compiled + 1
    cuda.fail("nvrtcCompileProgram:1")  # a unit that another program has, too, is there
    assert right(xlac.compile(units(LENGTHS[:2]), device="cuda"), LENGTHS[:2])


@pytest.mark.parametrize("call", ["nvrtcCompileProgram", "nvrtcCreateProgram", "nvrtcGetCUBIN", "cuModuleLoadData", "cuModuleGetFunction"])
@pytest.mark.parametrize("number", [1, 3])
def test_a_unit_that_fails_is_the_programs_error(cuda, monkeypatch, call, number):
    monkeypatch.setenv("XLAC_CUDA_CACHE", "")
    before = cuda.alive()
    cuda.fail(f"{call}:{number}")
    with pytest.raises(xlac.Error, match="CUDA|NVRTC"):
        xlac.compile(units(), device="cuda")
    cuda.fail(None)
    assert cuda.alive() == before and cuda.reports() == [] and right(xlac.compile(units(), device="cuda"))


IN_A_PROCESS = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
sys.path.insert(0, sys.argv[1])
import xlac
from test_cuda_cache import units
try:
    xlac.compile(units(), device="cuda")
    print("compiled")
except KeyboardInterrupt:
    print("interrupted")
"""


def process(tmp_path, **variables):
    here = os.path.dirname(os.path.abspath(__file__))
    env = {**os.environ, "XLAC_CUDA_DRIVER": library_path(), "XLAC_CUDA_CACHE": str(tmp_path / "a" / "b"), **variables}
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS, here], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_units_are_the_same_on_a_machine_with_one_cpu(cuda, tmp_path):
    cuda.count("nvrtcCompileProgram")  # not on a GPU
    assert process(tmp_path) == "compiled"
    names = files(tmp_path)
    xlac.compile(units(), device="cuda")
    assert files(tmp_path) == names and len(names) == 3


def test_an_interrupt_is_heeded_between_units(cuda, tmp_path):
    """The compiler of the driver that simulates sends it, while it compiles the first one."""
    script = tmp_path / "compile"
    script.write_text(f"#!/bin/sh\nkill -INT $PPID\nexec {compiler()} \"$@\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "sim").mkdir()
    assert process(tmp_path, XLAC_CUDA_SIM_CXX=str(script), XLAC_CUDA_SIM_CACHE=str(tmp_path / "sim")) == "interrupted"
    assert len(files(tmp_path)) == 1
