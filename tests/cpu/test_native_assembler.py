"""Machine code: the assembler's bytes, and the table of functions."""
import ctypes
import lzma
import os
import pathlib
import re
import runpy
import shutil
import subprocess

import pytest

import xlac

from .conftest import HERE

ROOT = HERE.parents[1]


def disassembler():
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("capstone loads its library in a way that the address sanitizer ends the process for")
    return pytest.importorskip("capstone")


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
    capstone = disassembler()
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


def test_all_instructions_of_the_table_are_among_them(emitted):
    table = (ROOT / "csrc/cpu/native/x86.def").read_text()
    names = {name.lower() for name in re.findall(r'^X86\(\w+, \w+, "?([\w ]+?)"?,', table, re.M)}
    said = {text.replace("{evex} ", "").split(None, 1)[0] for _, text in emitted}
    assert len(names) > 150 and {n for n in names if not any(s == n or s.startswith(n) or ("cmp" in n and "cmp" in s) for s in said)} == set()


def test_every_function_of_the_assembler_is_called_here():
    """Of those that emit, but for jumps and calls, which need a place to go to: what was compiled has those, below."""
    functions = set(re.findall(r"^(?:void|uint32_t) (x86_\w+)\(x86_code \*c,", (ROOT / "csrc/cpu/native/x86.h").read_text(), re.M))
    called = set(re.findall(r"\b(x86_\w+)\(&code", (HERE / "native_bytes.c").read_text()))
    places = {"x86_init", "x86_jump_back", "x86_jump_on", "x86_land", "x86_align", "x86_add_constant"}
    assert functions - called - places <= {"x86_call", "x86_address"} and {"x86_vector", "x86_masked", "x86_gather"} <= called


KINDS = [("f32", "exponential"), ("f32", "tanh"), ("f32", "sine"), ("f64", "log"), ("f64", "tanh"), ("s32", "abs"), ("s16", "negate"), ("u8", "not"), ("bf16", "rsqrt"),
         ("f16", "sqrt"), ("s64", "popcnt")]
LOOP = """HloModule loop
body { p = (s32[], f32[40]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[40] get-tuple-element(p), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[40] cosine(x)
 ROOT t = (s32[], f32[40]) tuple(j, y) }
cond { p = (s32[], f32[40]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(9)
 ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[40] parameter(0)
 z = s32[] constant(0)
 a = (s32[], f32[40]) tuple(z, x)
 w = (s32[], f32[40]) while(a), condition=cond, body=body
 ROOT r = f32[40] get-tuple-element(w), index=1 }
"""


def programs_of_all_kinds():
    for t, op in KINDS:
        yield f"HloModule m\nENTRY e {{ x = {t}[1003] parameter(0)\n y = {t}[1003] {op}(x)\n z = {t}[1003] divide(y, x)\n ROOT r = {t}[1003] maximum(z, y) }}"
    yield LOOP
    yield """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[64,200] parameter(0)
 i = s32[64,200] iota(), iota_dimension=1
 f = f32[64,200] convert(i)
 g = pred[64,200] compare(x, f), direction=GT
 s = f32[64,200] select(g, x, f)
 z = f32[] constant(0)
 r = f32[64] reduce(s, z), dimensions={1}, to_apply=add
 t = f32[200] reduce(s, z), dimensions={0}, to_apply=add
 p = f32[64,210] pad(s, z), padding=0_0x4_6
 ROOT u = (f32[64], f32[200], f32[64,210]) tuple(r, t, p) }"""


def decoded(decoder, code, entry):
    """Instructions that are reached from the entry, by their places; fails where one is none, or ends outside."""
    found, left = {}, [entry]
    while left:
        at = left.pop()
        while at not in found:
            instruction = next(decoder.disasm(code[at:at + 16], at), None)
            assert instruction is not None, (at, code[at:at + 16].hex())
            found[at] = instruction
            name = instruction.mnemonic
            if name.startswith("j"):
                left.append(int(instruction.op_str, 16))
            if name in ("ret", "jmp"):
                break
            at += instruction.size
    return found


@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_what_is_run_is_decoded_from_end_to_end(level, monkeypatch):
    capstone = disassembler()
    monkeypatch.setenv("XLAC_MAX_ISA", level)
    monkeypatch.setenv("XLAC_PERF_MAP", "1")
    monkeypatch.setenv("XLAC_CACHE", "")
    names = pathlib.Path(f"/tmp/perf-{os.getpid()}.map")
    before = names.stat().st_size if names.exists() else 0
    kept = [xlac.compile(program) for program in programs_of_all_kinds()]  # code lives as long as they do
    rows = names.read_text(errors="replace")[before:].splitlines() if names.exists() else []
    if not rows:
        pytest.skip("no machine code here")
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = False
    seen = set()
    for row in rows:
        start, size, _ = row.split(" ", 2)
        code = ctypes.string_at(int(start, 16), int(size, 16))
        seen |= {one.mnemonic for one in decoded(decoder, code, 0).values()}
    general = {"mov", "movabs", "movsxd", "lea", "add", "sub", "cmp", "and", "xor", "imul", "push", "pop", "call", "ret", "jmp", "je", "jne", "jl", "jge", "jle", "jg", "bzhi",
               "nop", "vzeroupper"}
    assert len(rows) >= len(KINDS) and len(kept) == len(KINDS) + 2
    assert {name for name in seen - general if not name.startswith(("v", "k"))} == set()
    assert {"call", "ret", "jl", "jne"} & seen and ("kmovw" in seen or "kmovq" in seen or "kmovd" in seen) == (level == "avx512")
