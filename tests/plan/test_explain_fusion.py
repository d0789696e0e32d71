"""What explain("fusion") says is so: what it says to be in memory is read there by the step that it names, what it says to be in a kernel
has no buffer, what ends a kernel is stored by one."""
import json
import pathlib
import re
import sys

import numpy as np
import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from cpu import random_modules  # noqa: E402
from cpu.test_profile import DOT, PLAIN, SOFTMAX  # noqa: E402


def check(text, **options):
    exe = xlac.compile(xlac.parse(text), **options)
    programs = {p["name"]: p for p in json.loads(exe._report())["programs"]}
    program, said = None, 0
    for line in exe.explain("fusion").splitlines():
        if not line.startswith("  "):
            program = programs.get(line.split(":")[0])
            continue
        if program is None:
            continue
        opcode, name, what = re.match(r"  (\S+) (.+?): (.*)", line).groups()
        said += 1
        check_op(program, opcode, name, what, line)
    return said


def check_op(program, opcode, name, what, line):
    buffers, steps = program["buffers"], program["steps"]
    mine = {i for i, b in enumerate(buffers) if b.get("op") == name and "type" in b}
    writers = [s for s in steps if mine & set(s["out"])]
    readers = [s for s in steps if mine & set(s["in"])]
    reader = re.search(r"in memory since (\S+) (.+?) reads it there", what)
    if what.startswith("in every kernel that uses it"):
        if reader:
            assert reader[2] in [s["op"] for s in readers] and reader[1] in [s["opcode"] for s in readers], line
        elif "since it is a result" in what:
            assert writers and not readers, line
        else:
            assert not readers and not writers, line
    elif what.startswith("in the kernel that ends at"):
        root = what.removeprefix("in the kernel that ends at ")
        assert not readers and not writers, line
        made = [s for s in steps if s["by"] == "kernel" and any(buffers[b].get("op") == root for b in s["out"])]
        inside = [s for s in steps if name in [o["name"] for o in s.get("ops", ())]]  # moves are in the kernel's indexes, and not listed
        assert len(made) == 1 and inside in ([], made), line
    elif what.startswith("ends a kernel"):
        assert any(s["by"] == "kernel" for s in writers), line
    elif "a constant in memory" in what:
        assert readers or any(b["place"] == "constant" for b in (buffers[i] for i in mine)), line
    elif "a step of its own" in what:
        assert any(s["by"] != "kernel" for s in writers) or name in [s["op"] for s in steps if s["by"] != "kernel"], line
    elif what.startswith("not run"):
        assert not readers and not writers and name not in [o["name"] for s in steps for o in s.get("ops", ())], line


@pytest.mark.parametrize("text", [SOFTMAX, DOT, PLAIN])
def test_programs(text):
    assert check(text)


def test_an_init_inside_a_kernel_is_not_said_to_be_in_memory():
    text = xlac.compile(xlac.parse(SOFTMAX)).explain("fusion")
    assert "constant i: in every kernel that uses it\n" in text and "constant z: in every kernel that uses it\n" in text


@pytest.mark.parametrize("seed", range(60))
def test_random_modules(seed):
    check(random_modules.Module(seed).text)


@pytest.mark.parametrize("seed", range(60, 90))
def test_random_modules_as_they_are(seed):
    """Without passes: dead ops, and what passes would bring into another form."""
    check(random_modules.Module(seed).text, passes=False)


DEAD = """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  s = f32[64,64] sort(x), dimensions={1}, to_apply=less
  n = f32[64,64] negate(x)
  t = f32[64,64] transpose(n), dimensions={1,0}
  v = f32[4096] reshape(s)
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64,64] exponential(x)
}
"""


def test_dead_ops_are_said_not_to_run():
    said = xlac.compile(xlac.parse(DEAD), passes=False).explain("fusion")
    assert check(DEAD, passes=False) == 7
    for op in ("sort s", "negate n", "transpose t", "reshape v", "dot d"):
        assert f"  {op}: not run: no result comes of it\n" in said
    assert "exponential r: ends a kernel" in said and "parameter x: no kernel, an argument" in said


def units_said(exe):
    """(program, first step, steps, what) of each line on what runs."""
    program, found = None, []
    for line in str(exe.explain("fusion")).split("\nwhat runs, ")[1].splitlines()[1:]:
        if not line.startswith("  "):
            program = re.match(r"program (.*), \d+ bytes of frame", line)[1]
            continue
        first, last, what = re.match(r"  (\d+)(?:-(\d+))? (.*)", line).groups()
        found.append((program, int(first), int(last or first) - int(first) + 1, what))
    return found


def kind(what):
    """As profiles call it."""
    word = what.split()[0] if what.startswith(("group", "list")) else what.split(": ")[1].split(",")[0].split(";")[0]
    return "kernel" if word in ("vector VM", "machine code") else word


@pytest.mark.parametrize("text", [SOFTMAX, DOT, PLAIN])
def test_what_it_says_to_run_is_what_a_profile_times(text):
    """The same steps at a time, each of them once, and predictions for all kernels."""
    exe = xlac.compile(xlac.parse(text), threads=1)
    shapes = re.findall(r"= f32\[([\d,]+)\]\S* parameter", text.split("ENTRY")[1])
    args = [np.full([int(d) for d in s.split(",")], 0.5, np.float32) for s in shapes]
    program = json.loads(exe._report())["programs"][0]
    said = [u for u in units_said(exe) if u[0] == program["name"]]
    assert sum(n for _, _, n, _ in said) == len(program["steps"])
    timed = [r for r in exe.profile(*args).steps if r["computation"] == program["name"]]
    assert sorted(r["by"] for r in timed) == sorted(kind(what) for *_, what in said)
    assert all("predicted" in what for *_, what in said if "vector VM" in what or "machine code, " in what or "group" in what)


def test_a_tile_says_what_it_saves_and_where_it_ends():
    tiles = [what for *_, what in units_said(xlac.compile(xlac.parse(SOFTMAX))) if "group" in what]
    assert tiles
    for what in tiles:
        units = {"us": 1, "ms": 1000}
        found = re.search(r"predicted (\S+) (.s), one by one (\S+) (.s); it ends there since \w", what).groups()
        assert float(found[0]) * units[found[1]] <= float(found[2]) * units[found[3]]


@pytest.mark.parametrize("native", ["1", "0"])
def test_it_says_whether_kernels_are_machine_code(monkeypatch, native):
    monkeypatch.setenv("XLAC_NATIVE", native)
    text = "HloModule m\nENTRY e {\n  x = f32[5000] parameter(0)\n  y = f32[5000] tanh(x)\n  ROOT z = f32[5000] multiply(y, x)\n}"
    said = xlac.compile(xlac.parse(text)).explain("fusion")
    has_code = native == "1" and "by the vector VM" not in xlac.compile_stage(text, "assembly")
    assert ("machine code, 5000 iterations" in said) == has_code and ("vector VM, 5000 iterations" in said) != has_code
