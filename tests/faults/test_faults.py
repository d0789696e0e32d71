"""Every allocation of a run, of a pass, of a compilation and of a call may fail: an error, nothing leaked, nothing broken (under the
address sanitizer where there is one)."""
import base64
import importlib.util
import json
import lzma
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent
PROGRAMS = sorted((TESTS / "interp" / "programs").glob("*.hlo")) + sorted((HERE / "programs").glob("*.hlo"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


quant = load(TESTS / "opt" / "test_mlir_passes_quant.py")
random_async = load(TESTS / "async" / "random_async.py")
PIPELINES = [quant.MATH, quant.APART, f"{quant.APART},{quant.TOGETHER}", "inline", "symbol-dce"]


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("faults") / "faults"
    flags = ["-std=gnu11", "-O0", "-g", "-ffp-contract=off", "-fno-strict-aliasing"]
    for sanitize in (["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"], []):
        done = subprocess.run([compiler, *flags, *sanitize, str(HERE / "faults.c"), str(TESTS.parent / "csrc" / "xlac_all.c"), "-o", str(target),
                               "-lm", "-lpthread", "-ldl"], capture_output=True, text=True)
        if done.returncode == 0:
            return target
    raise AssertionError(done.stderr[-2000:])


def run(faults, *args):
    """The numbers of requests, a list for each program."""
    done = subprocess.run([str(faults), *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [[int(n) for n in line.split()[1:]] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("path", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_every_allocation_of_a_run_may_fail(path, faults):
    assert run(faults, "interpret", path)[0][0] > 3


@pytest.mark.parametrize("path", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_every_allocation_of_a_compilation_and_of_a_call_may_fail(path, faults):
    ((compiled, called),) = run(faults, "compile", path)
    assert compiled > 20 and called >= 1


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """All small quantised programs as functions of one module, so that a pass has to ask for memory often."""
    path = tmp_path_factory.mktemp("program") / "program.mlir"
    cases = quant.CASES | quant.PRODUCTS
    path.write_text("\n".join(text.replace("@main", f"@f{i}") for i, text in enumerate(cases.values())))
    return path


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_allocation_of_a_pass_may_fail(pipeline, program, faults):
    assert run(faults, pipeline, program)[0][0] > 3


ASYNC = ["async-wrap{thread=lane updates=1},latency-hiding-scheduler,async-unwrap", "convert-async-to-sync{all=true},async-wrap{thread=x}",
         "convert-async-pairs,latency-hiding-scheduler{memory-percent=100},convert-async-to-sync"]


@pytest.mark.parametrize("pipeline", ASYNC)
def test_every_allocation_of_async_passes_may_fail(pipeline, faults, tmp_path):
    programs = [tmp_path / f"{seed}.hlo" for seed in (3, 8)]
    for seed, path in zip((3, 8), programs):
        path.write_text(random_async.Program(seed).overlapped)
    assert all(n > 3 for (n,) in run(faults, pipeline, *programs))


SHARDINGS = ["sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives)",
             "sdy-add-data-flow-edges,sdy-aggressive-propagate{debug-sharding-origins=true},func.func(sdy-sink-data-flow-edges)"]


@pytest.mark.parametrize("pipeline", SHARDINGS)
def test_every_allocation_of_propagation_may_fail(pipeline, faults, tmp_path):
    programs = []
    for line in lzma.open(TESTS / "shard" / "jax_programs.jsonl.xz", "rt"):
        row = json.loads(line)
        if row["name"] in ("mlp_step", "scan_grad", "shard_map"):
            programs.append(tmp_path / f"{row['name']}.mlir")
            programs[-1].write_text(row["input"])
    assert all(n > 3 for (n,) in run(faults, pipeline, *programs))


GRAPHS = ("chain/sizes", "If/False", "While/cond", "While/columns", "variable/branch", "Einsum/...ij,jk->...ik", "StridedSlice", "Cumsum/flags",
          "MirrorPadGrad", "ConcatV2")


def test_every_allocation_of_a_lowering_may_fail(faults, tmp_path):
    paths = []
    for line in lzma.open(TESTS / "lower" / "flow.jsonl.xz", "rt"):
        case = json.loads(line)
        if case["name"] in GRAPHS:
            paths.append(tmp_path / f"{len(paths)}.pb")
            paths[-1].write_bytes(base64.b64decode(case["graph"]))
    assert len(paths) == len(GRAPHS)
    assert all(n > 20 for (n,) in run(faults, "lower", *paths))
