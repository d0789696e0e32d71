"""docs/embed.c is what the tour says it is: thirty lines, and it builds and runs with nothing but a C compiler."""
import pathlib
import re
import shutil
import subprocess
import sys
from unittest import mock

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_it_is_short():
    lines = (ROOT / "docs/embed.c").read_text().split("int main")[1].split("\n")
    assert len([line for line in lines if line.strip()]) <= 30


def tour_command():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/tour.md").read_text(), re.S)
    return next(block for block in blocks if "docs/embed.c" in block)


def setup_flags():
    names = {"__file__": str(ROOT / "setup.py"), "__name__": "setup"}
    with mock.patch("setuptools.setup"):
        exec(compile((ROOT / "setup.py").read_text(), "setup.py", "exec"), names)
    return names["compile_flags"]()


def test_the_tour_builds_with_the_flags_that_decide_about_bits():
    semantic = {flag for flag in setup_flags() if re.match("-f(no-)?(strict|trapping|math|fp)", flag)}
    assert len(semantic) == 4
    assert semantic | {"-O2"} <= set(tour_command().split())


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_it_runs_as_the_tour_says(tmp_path):
    for folder in ("docs", "csrc"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    done = subprocess.run(["sh", "-ec", tour_command()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "2\n4\n6\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_it_runs_when_built_of_single_files(tmp_path):
    core = [p for p in (ROOT / "csrc").glob("*/**/*.c") if p.parent.name != "py"]
    program = tmp_path / "embed"
    flags = ["-O0", "-I", ROOT / "csrc/include", "-o", program]
    subprocess.run(["cc", ROOT / "docs/embed.c", *core, *flags, "-lm", "-lpthread", "-ldl"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n4\n6\n"


def test_the_release_says_how_it_is_used(tmp_path):
    """Who has the release alone has no page but its README.md."""
    subprocess.run([sys.executable, ROOT / ".ci/amalgamate.py", tmp_path], check=True)
    assert {"xlac.h", "xlac_ffi.h", "xlac_network.h", "xlac_all.c", "embed.c", "CMakeLists.txt", "README.md"} <= {path.name for path in tmp_path.iterdir()}
    page = (tmp_path / "README.md").read_text()
    assert "embed.c xlac_all.c" in page and not re.search(r"\]\((?!http)", page)
    installed = (tmp_path / "CMakeLists.txt").read_text()
    flags = re.search(r"target_compile_options\(xlac PRIVATE (.*)\)", installed)[1]
    assert flags in page and all(header in installed for header in ("xlac.h", "xlac_ffi.h", "xlac_network.h"))
