"""Machine code: the assembler's bytes, and the table of functions."""
import lzma
import re
import runpy
import shutil
import subprocess

import pytest

from .conftest import HERE

ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    """(bytes, text) of each instruction that native_bytes.c emits."""
    cc = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("native") / "bytes"
    sources = [HERE / "native_bytes.c", *(ROOT / "csrc" / "base" / name for name in ("memory.c", "str.c", "status.c", "heed.c"))]
    subprocess.run([cc, "-std=gnu11", "-O1", *map(str, sources), "-lm", "-o", str(program)], check=True)
    lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(" ", 1) for line in lines]


def test_the_assembler_writes_the_recorded_bytes(emitted):
    recorded = lzma.open(HERE / "native_bytes.txt.xz", "rt").read().splitlines()
    assert [" ".join(line) for line in emitted] == recorded


def test_the_assembler_writes_what_gnu_as_makes_of_its_text(emitted, tmp_path):
    assembler = shutil.which("as") or pytest.skip("no assembler")
    source = tmp_path / "all.s"
    source.write_text(".intel_syntax noprefix\n" + "".join(text + "\n" for _, text in emitted))
    listing = subprocess.run([assembler, "-al", str(source), "-o", str(tmp_path / "all.o")], capture_output=True, text=True)
    if listing.returncode:
        pytest.skip("an assembler for another machine: " + listing.stderr[:200])
    bytes_of = {}
    for line in listing.stdout.splitlines():
        if found := re.match(r"\s*(\d+)\s+(?:[0-9a-f]{4,}\s+)?([0-9A-F]+)\b", line):
            bytes_of[int(found[1])] = bytes_of.get(int(found[1]), "") + found[2].lower()
    assert [code for code, _ in emitted] == [bytes_of.get(number) for number in range(2, len(emitted) + 2)]


def test_a_disassembler_reads_what_the_assembler_writes(emitted):
    capstone = pytest.importorskip("capstone")
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    register = re.compile(r"\b(?:[xyz]mm\d+|k\d|r\w\w|r\d+)\b")
    for code, text in emitted:
        name, operands = text.replace("{evex} ", "").split(None, 1)
        (found,) = decoder.disasm(bytes.fromhex(code), 0)
        known = found.mnemonic.replace("lt", "", 1) if "cmp" in name else found.mnemonic  # number 1 is < in its mnemonic
        assert found.size == len(code) // 2 and known == name and register.findall(found.op_str) == register.findall(operands), (code, text)


def test_the_functions_are_those_of_their_definitions():
    cc = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    writer = runpy.run_path(str(ROOT / "csrc" / "cpu" / "native" / "functions.py"))
    found, missing = writer["programs"](writer["preprocessed"](cc))
    assert writer["written"](found) == (ROOT / "csrc" / "cpu" / "native" / "functions.def").read_text()
    assert len(found) >= 50 and ("f8", "SINE") in missing
