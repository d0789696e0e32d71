"""The plugin driven from C, by many threads: nothing is lost, nothing is kept, and memory does not grow."""
import pathlib
import shutil
import subprocess

import pytest
import xlac

LIBRARY = pathlib.Path(xlac.__file__).parent / "_pjrt.so"
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    out = tmp_path_factory.mktemp("driver") / "driver"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/csrc/include", ROOT / "tests/pjrt/driver.c", "-o", out, "-ldl", "-lpthread"], check=True)
    return out


@pytest.mark.parametrize("threads, turns, devices", [(16, 20, 1), (2, 2000, 1), (4, 40, 4)])
def test_calls_from_many_threads(driver, threads, turns, devices):
    done = subprocess.run([driver, LIBRARY, str(threads), str(turns), str(devices)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{threads * turns * 6} calls, ") and done.stdout.endswith(" 0 wrong\n")
