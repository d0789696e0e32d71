"""Every device keeps what csrc/runtime/device.h promises: one suite in C, run on each, also under the sanitizers."""
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = [HERE / "conformance.c", HERE / "third.c"]
PAIRS = [("interp", "interp"), ("cpu", "cpu"), ("cpu", "cpu:1"), ("cpu:1", "interp"), ("third", "third:1"), ("third", "cpu")]


def objects():
    """The core as the extension's build has left it; None where there is no such build, or it is older than what it was made of."""
    sources = [p for p in sorted((ROOT / "csrc").glob("*/**/*.c")) if p.relative_to(ROOT / "csrc").parts[0] != "py"]
    for folder in sorted((ROOT / "build").glob("temp*/csrc")):
        made = [folder / p.relative_to(ROOT / "csrc").with_suffix(".o") for p in sources]
        if all(o.exists() and o.stat().st_mtime >= p.stat().st_mtime for o, p in zip(made, sources)):
            return made
    return None


def build(path, flags=()):
    core = (None if flags else objects()) or [ROOT / "csrc" / "xlac_all.c"]
    command = ["cc", "-std=gnu11", "-O1", "-g", "-w", "-fno-strict-aliasing", "-ffp-contract=off", f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'csrc' / 'include'}",
               f"-I{HERE}", *flags, *map(str, SOURCES), *map(str, core), "-o", str(path), "-lm", "-lpthread", "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("device") / "conformance")


def run(program, *names, **more):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | more
    return subprocess.run([program, *names], capture_output=True, text=True, timeout=300, env=environment)


@pytest.mark.parametrize("device, other", PAIRS)
def test_the_device_conforms(program, device, other):
    done = run(program, device, other)
    assert done.returncode == 0 and done.stdout.startswith("16 tests"), done.stdout + done.stderr[-2000:]


CUDA_DRIVER = ROOT / "tests" / "cuda" / "driver" / "build"


@pytest.mark.skipif(not CUDA_DRIVER.exists() or shutil.which("c++") is None, reason="no compiler for the simulating driver")
@pytest.mark.parametrize("device, other", [("cuda", "cuda"), ("cuda", "cpu"), ("interp", "cuda")])
def test_a_gpu_conforms_on_the_driver_that_simulates(program, device, other):
    """On a GPU where XLAC_CUDA_ON_GPU is set."""
    real = os.environ.get("XLAC_CUDA_ON_GPU")
    path = "" if real else subprocess.run([CUDA_DRIVER], capture_output=True, text=True, check=True).stdout.strip()
    done = run(program, device, other, XLAC_CUDA_DRIVER=path)
    assert done.returncode == 0 and done.stdout.startswith("16 tests"), done.stdout + done.stderr[-2000:]


@pytest.mark.skipif(not os.environ.get("XLAC_ASYNC_DRIVERS"), reason="XLAC_ASYNC_DRIVERS is not set: compiling the core takes a minute")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_devices_conform_under_the_sanitizers(tmp_path, sanitizer):
    program = build(tmp_path / "conformance", [f"-fsanitize={sanitizer}"])
    for device, other in PAIRS:
        done = run(program, device, other)
        if "unexpected memory mapping" in done.stderr:
            pytest.skip("ThreadSanitizer does not run on this kernel")
        assert done.returncode == 0 and "WARNING" not in done.stderr, (done.stdout + done.stderr)[:4000]
