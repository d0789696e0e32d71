"""One program in its four formats on the command line."""
import subprocess
import sys

import pytest

PROGRAM = """module @twice {
  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "twice.mlir").write_text(PROGRAM)

    def run(*args):
        done = subprocess.run([sys.executable, "-m", "xlac", *args], capture_output=True, text=True, cwd=tmp_path, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def test_stablehlo_prints_as_itself(run):
    assert run("translate", "twice.mlir") == PROGRAM


def test_stablehlo_to_hlo(run):
    assert run("translate", "twice.mlir", "--to", "hlo").startswith("HloModule twice")


@pytest.mark.parametrize("format", ["bytecode", "hlo-proto"])
def test_binary_formats(run, format):
    run("translate", "twice.mlir", "--to", format, "-o", "twice.bin")
    assert "add" in run("translate", "twice.bin")
    assert "6" in run("run", "twice.bin", "--input=[1, 3]")


def test_runs_and_verifies(run):
    assert "ok" in run("verify", "twice.mlir")
    assert "2" in run("run", "twice.mlir", "--input=[1, 3]")
