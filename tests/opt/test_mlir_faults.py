"""Every allocation of a pass on MLIR form, or on async ops, may fail: an error, nothing leaked, nothing broken."""
import json
import lzma
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path[:0] = [__file__.rsplit("/", 1)[0], str(pathlib.Path(__file__).resolve().parents[1] / "async")]
import random_async  # noqa: E402
import test_mlir_passes_quant as quant  # noqa: E402

HERE = pathlib.Path(__file__).parent
CSRC = HERE.parents[1] / "csrc"
PIPELINES = [quant.MATH, quant.APART, f"{quant.APART},{quant.TOGETHER}", "inline", "symbol-dce"]


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("faults") / "faults"
    folders = ("base", "ir", "text", "interp", "stablehlo", "opt", "async", "shard")
    sources = [str(p) for folder in folders for p in sorted((CSRC / folder).glob("*.c"))]
    flags = ["-std=gnu11", "-O0", "-g", "-ffp-contract=off", "-fno-strict-aliasing"]
    for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], []):
        done = subprocess.run([compiler, *flags, *sanitize, str(HERE / "faults.c"), *sources, "-o", str(target), "-lm",
                               "-lpthread"], capture_output=True, text=True)
        if done.returncode == 0:
            return target
    raise AssertionError(done.stderr[-2000:])


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """All small quantised programs as functions of one module, so that a pass has to ask for memory often."""
    path = tmp_path_factory.mktemp("program") / "program.mlir"
    cases = quant.CASES | quant.PRODUCTS
    path.write_text("\n".join(text.replace("@main", f"@f{i}") for i, text in enumerate(cases.values())))
    return path


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_allocation_may_fail(pipeline, program, faults):
    done = subprocess.run([str(faults), pipeline, str(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 3


ASYNC = ["async-wrap{thread=lane updates=1},latency-hiding-scheduler,async-unwrap", "convert-async-to-sync{all=true},async-wrap{thread=x}",
         "convert-async-pairs,latency-hiding-scheduler{memory-percent=100},convert-async-to-sync"]


@pytest.mark.parametrize("pipeline", ASYNC)
def test_every_allocation_of_async_passes_may_fail(pipeline, faults, tmp_path):
    programs = [tmp_path / f"{seed}.hlo" for seed in (3, 8)]
    for seed, path in zip((3, 8), programs):
        path.write_text(random_async.Program(seed).overlapped)
    done = subprocess.run([str(faults), pipeline, *map(str, programs)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(int(n) > 3 for n in done.stdout.split())


SHARDINGS = ["sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives)",
             "sdy-add-data-flow-edges,sdy-aggressive-propagate{debug-sharding-origins=true},func.func(sdy-sink-data-flow-edges)"]


@pytest.mark.parametrize("pipeline", SHARDINGS)
def test_every_allocation_of_propagation_may_fail(pipeline, faults, tmp_path):
    rows = [json.loads(line) for line in lzma.open(HERE.parent / "shard/jax_programs.jsonl.xz", "rt")]
    programs = []
    for row in rows:
        if row["name"] in ("mlp_step", "scan_grad", "shard_map"):
            programs.append(tmp_path / f"{row['name']}.mlir")
            programs[-1].write_text(row["input"])
    done = subprocess.run([str(faults), pipeline, *map(str, programs)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 3
