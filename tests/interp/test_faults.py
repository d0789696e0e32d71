"""Every allocation of a run may fail: an error, nothing leaked, nothing broken (under the address sanitizer where there is one)."""
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
CSRC = HERE.parents[1] / "csrc"
PROGRAMS = sorted((HERE / "programs").glob("*.hlo"))


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("faults") / "faults"
    sources = [str(p) for folder in ("base", "ir", "text", "interp") for p in sorted((CSRC / folder).glob("*.c"))]
    flags = ["-std=gnu11", "-O0", "-g", "-ffp-contract=off", "-fno-strict-aliasing"]
    for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], []):
        done = subprocess.run([compiler, *flags, *sanitize, str(HERE / "faults.c"), *sources, "-o", str(target), "-lm",
                               "-lpthread"], capture_output=True, text=True)
        if done.returncode == 0:
            return target
    raise AssertionError(done.stderr[-2000:])


@pytest.mark.parametrize("path", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_every_allocation_may_fail(path, faults):
    done = subprocess.run([str(faults), str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 3
