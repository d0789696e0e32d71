"""Two executables of one plan, in C. Compiling the whole core takes a minute: with XLAC_ASYNC_DRIVERS=1 only."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not os.environ.get("XLAC_ASYNC_DRIVERS"), reason="XLAC_ASYNC_DRIVERS is not set")
def test_executables_with_other_threads_and_numerics_share_one_plan(tmp_path):
    program = tmp_path / "two"
    command = ["cc", "-std=gnu11", "-O0", "-w", "-Icsrc", "-Icsrc/include", "tests/cpu/two_executables.c", "-o", str(program), "-lm", "-lpthread", "-ldl"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    done = subprocess.run([program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stdout + done.stderr
