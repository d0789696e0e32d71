"""Every allocation of a pass on MLIR form may fail: an error, nothing leaked, nothing broken."""
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0])
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
    folders = ("base", "ir", "text", "interp", "stablehlo", "opt")
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
