"""The independent proof of plans finds every plan that was broken after the planner made it. XLAC_PLAN_MUTANTS=1000000 for the long run."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ["plan/check.c", "plan/place.c", "plan/overwrite.c", "plan/pack.c", "plan/borrow.c", "kernel/kernel.c", "base/status.c", "base/memory.c", "base/heed.c", "base/dtype.c", "base/str.c"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_broken_plans_are_found(tmp_path):
    program = tmp_path / "mutants"
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-strict-aliasing",
               "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-Icsrc", "-Icsrc/include", "tests/cpu/plan_mutants.c",
               *("csrc/" + f for f in FILES), "-lm", "-lpthread", "-o", str(program)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if "libasan" in built.stderr:
        pytest.skip("no sanitizers here")
    assert built.returncode == 0, built.stderr[-3000:]
    done = subprocess.run([program, os.environ.get("XLAC_PLAN_MUTANTS", "2000")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    plans, broken, found = map(int, done.stdout.split())
    assert broken == found > plans
