"""Programs in C: lanes, whole executables under ThreadSanitizer, and mutations of plans. The last two compile the whole core, which
takes a minute or more: with XLAC_ASYNC_DRIVERS=1 only."""
import os
import pathlib
import subprocess

import pytest

import random_async

HERE = pathlib.Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
SANITIZER = ["-O1", "-g", "-fsanitize=thread"]
heavy = pytest.mark.skipif(not os.environ.get("XLAC_ASYNC_DRIVERS"), reason="XLAC_ASYNC_DRIVERS is not set")


def build(path, sources, flags):
    command = ["cc", "-std=gnu11", f"-I{CSRC}", f"-I{CSRC / 'include'}", *flags, *map(str, sources), "-o", str(path), "-lm", "-lpthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and "-fsanitize=thread" in flags:
        pytest.skip("this compiler has no ThreadSanitizer")
    assert done.returncode == 0, done.stderr[:4000]
    return path


def run(*command, timeout=600):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # another sanitizer's, perhaps
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, env=environment)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0 and "WARNING" not in done.stderr, (done.stdout + done.stderr)[:4000]


def test_lanes(tmp_path):
    base = [CSRC / name for name in ("runtime/lane.c", "base/status.c", "base/memory.c")]
    run(build(tmp_path / "lanes", [HERE / "drivers/stress_lanes.c", *base], SANITIZER), timeout=60)


@heavy
def test_whole_executables(tmp_path):
    program = build(tmp_path / "executables", [HERE / "drivers/stress_executables.c", CSRC / "xlac_all.c"], SANITIZER)
    texts = []
    for seed in range(int(os.environ.get("XLAC_ASYNC_PROGRAMS", "40"))):
        texts.append(tmp_path / f"{seed}.hlo")
        texts[-1].write_text(random_async.Program(seed, collectives=False).overlapped)
    run(program, *texts)


@heavy
def test_mutated_plans_are_refused(tmp_path):
    run(build(tmp_path / "mutations", [HERE / "drivers/plan_mutations.c"], ["-O0", "-w"]))
