"""docs/embed.c is what the README says it is: thirty lines, and it builds and runs with nothing but a C compiler."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_it_is_short():
    lines = (ROOT / "docs/embed.c").read_text().split("int main")[1].split("\n")
    assert len([line for line in lines if line.strip()]) <= 30


@pytest.mark.parametrize("sources", ["files", "unity"])
def test_it_runs(tmp_path, sources):
    cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        pytest.skip("no C compiler")
    core = [ROOT / "csrc/xlac_all.c"]
    if sources == "files":
        core = [p for p in (ROOT / "csrc").glob("*/*.c") if p.parent.name != "py"]
    program = tmp_path / "embed"
    flags = ["-O0", "-I", ROOT / "csrc/include", "-o", program]
    subprocess.run([cc, ROOT / "docs/embed.c", *core, *flags, "-lm", "-lpthread", "-ldl"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n4\n6\n"
