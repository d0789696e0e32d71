"""What explain("memory") and explain("kernels") say is what the plan does: offsets, lifetimes and sizes against the steps' reads and
writes, the peak against what is alive, each kernel's text against its step."""
import json
import pathlib
import re
import sys

import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from cpu import random_modules  # noqa: E402
from cpu.test_profile import DOT, PLAIN, SOFTMAX  # noqa: E402

UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}


def amount(text):
    number, unit = re.fullmatch(r"([\d.]+)([kMG]?)B", text).groups()
    return float(number) * UNITS[unit]


def near(said, true):
    """Three digits are shown."""
    return abs(said - true) <= 0.006 * true


def check_memory(exe):
    program = json.loads(exe._report())["programs"][0]
    if program["why_interpreted"]:
        return
    lines = exe.explain("memory").splitlines()
    sizes = {k: amount(v) for k, v in re.findall(r"(\w+) ([\d.]+[kMG]?B)", lines[0])}
    frame = [b for b in program["buffers"] if b["place"] == "frame" and "first" in b]
    steps = program["steps"]
    live = [sum(size for _, size, first, last in exe.memory.blocks() if first <= i <= last) for i in range(len(steps))]
    assert near(sizes["frame"], program["frame_bytes"]) and near(sizes["peak"], max(live, default=0))
    assert all(b["offset"] + b["bytes"] <= program["frame_bytes"] for b in frame)
    peak = re.search(r"^peak at step (\d+) \((.*)\)$", "\n".join(lines), re.M)
    if peak:
        assert live[int(peak[1])] == max(live) and steps[int(peak[1])]["op"] == peak[2]
    rows = [re.match(r"(\S+) +(\S.*?) +(\d+) +(\d+) +(\d+)-(\d+)$", line) for line in lines]
    rows = [m for m in rows if m]
    assert len(rows) == min(len(frame), 30)
    for m in rows:
        named = [b for b in frame if b.get("op", "") == m[1] and b["bytes"] == int(m[3]) and b["offset"] == int(m[4])]
        assert any((b["first"], b["last"]) == (int(m[5]), int(m[6])) for b in named), m[0]
    check_lives(program)


def check_lives(program):
    """Steps touch buffers only while these are said to live, and what lives at a time lies apart but for what is written in place."""
    buffers, steps = program["buffers"], program["steps"]
    for i, step in enumerate(steps):
        for b in (buffers[n] for n in (*step["in"], *step["out"])):
            if b["place"] == "frame" and "first" in b:
                assert b["first"] <= i <= b["last"], (i, b)
        written = [buffers[n] for n in step["out"] if buffers[n]["place"] == "frame" and buffers[n]["bytes"]]
        others = [b for b in buffers if b["place"] == "frame" and "first" in b and b["first"] <= i < b["last"] and b["bytes"] and b not in written]
        for w in written:
            for b in others:
                apart = w["offset"] + w["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= w["offset"]
                assert apart or step["kind"] not in ("kernel", "routine") or step.get("in_place"), (step["op"], w, b)


def check_kernels(exe):
    programs = {p["name"]: p for p in json.loads(exe._report())["programs"]}
    texts = re.split(r"^(?=// )", exe.explain("kernels"), flags=re.M)
    seen = set()
    for text in filter(None, texts):
        head = re.match(r"// (.+), step (\d+): (.*)\n", text)
        if not head:
            continue
        step = programs[head[1]]["steps"][int(head[2])]
        assert step["by"] == "kernel" and step["op"] == head[3], head[0]
        seen.add((head[1], int(head[2])))
        loads, stores = {int(n) for n in re.findall(r"load in(\d+)\[", text)}, {int(n) for n in re.findall(r"^store out(\d+)\[", text, re.M)}
        assert loads <= set(range(len(step["in"]))) and stores == set(range(len(step["out"]))), text
        assert int(re.search(r"^kernel \S+ from (\d+) input", text, re.M)[1]) == len(step["in"])
    assert seen == {(name, i) for name, p in programs.items() for i, s in enumerate(p["steps"]) if s["by"] == "kernel"}
    return len(seen)


@pytest.mark.parametrize("text", [SOFTMAX, DOT, PLAIN])
def test_programs(text):
    exe = xlac.compile(xlac.parse(text))
    check_memory(exe)
    assert check_kernels(exe)


@pytest.mark.parametrize("seed", range(60))
def test_random_modules(seed):
    exe = xlac.compile(xlac.parse(random_modules.Module(seed).text), threads=1)
    check_memory(exe)
    check_kernels(exe)
