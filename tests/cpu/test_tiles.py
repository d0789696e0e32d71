"""The inner loops of matrix products at every instruction set that this CPU has, in a program of their own."""
import shutil
import subprocess

import pytest

from .conftest import HERE


def test_tiles_at_every_level(tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    program = tmp_path / "tiles"
    base = HERE.parents[1] / "csrc" / "base"
    sources = [HERE / "tiles.c", base / "dtype.c", base / "isa/isa.c"]
    subprocess.run([cc, "-std=gnu11", "-O2", "-ffp-contract=off", "-fno-strict-aliasing", *map(str, sources), "-lm", "-o", str(program)],
                   check=True)
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    assert ran.returncode == 0 and "levels" in ran.stdout, ran.stdout
