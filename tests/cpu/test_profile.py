"""A profile and a timeline run what a call runs: the same kernels, groups of them and lists of instructions; their steps are these."""
import json
import os
import pathlib

import numpy as np
import pytest

import xlac

from . import random_modules
from .conftest import leaves, same_bits

SOFTMAX = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a,b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a,b) }
ENTRY e {
  x = f32[256,256] parameter(0)
  i = f32[] constant(-inf)
  z = f32[] constant(0)
  m = f32[256] reduce(x, i), dimensions={1}, to_apply=max
  mb = f32[256,256] broadcast(m), dimensions={0}
  s = f32[256,256] subtract(x, mb)
  e = f32[256,256] exponential(s)
  d = f32[256] reduce(e, z), dimensions={1}, to_apply=add
  db = f32[256,256] broadcast(d), dimensions={0}
  ROOT r = f32[256,256] divide(e, db)
}
"""
LOOP = """HloModule m
c { p = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[4,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4,4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4,4] BODY
  ROOT r = (s32[], f32[4,4]) tuple(j, y) }
ENTRY e {
  x = f32[4,4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4,4]) tuple(z, x)
  w = (s32[], f32[4,4]) while(t), condition=c, body=b
  v = f32[4,4] get-tuple-element(w), index=1
  ROOT y = f32[4,4] negate(v)
}
"""
DOT = LOOP.replace("BODY", "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
PLAIN = LOOP.replace("BODY", "multiply(x, x)")


def ran_by_a_call(exe, args):
    result, found = exe._count(*args)
    return leaves(result), json.loads(found)["ran"]


def counted(profile):
    """Of the rows, how often each kind was run."""
    kinds = {"kernel": 0, "group": 0, "list": 0}
    for row in profile.steps:
        if row["by"] in kinds:
            kinds[row["by"]] += row["times"]
    return {"kernels": kinds["kernel"], "groups": kinds["group"], "lists": kinds["list"]}


def check(exe, args):
    want, ran = ran_by_a_call(exe, args)
    profile, timeline = exe.profile(*args), exe.timeline(*args)
    assert profile.ran == ran == timeline.ran
    assert {k: n for k, n in ran.items() if k != "loops"} == counted(profile)
    assert same_bits(leaves(profile.result), want) and same_bits(leaves(timeline.result), want) and same_bits(leaves(exe(*args)), want)
    return profile


def test_a_group_is_one_step():
    exe = xlac.compile(xlac.parse(SOFTMAX), threads=1)
    profile = check(exe, [np.random.default_rng(0).random((256, 256), np.float32)])
    row, = profile.steps
    assert profile.ran == {"kernels": 0, "groups": 1, "lists": 0, "loops": 0}
    assert row["by"] == row["opcode"] == "group" and row["ops"] == ["m", "e", "r"] and row["op"] == "group of m, e, r" and row["times"] == 1
    assert row["bytes"] == 2 * 4 * 256 * 256  # x comes in and r goes out; what is between stays in the cache
    assert "group of m, e, r" in repr(profile) and "group of m, e, r" in profile.chrome_trace() and "group of m" in profile.svg()


def test_lists_of_a_loop_are_timed_trip_by_trip(monkeypatch):
    monkeypatch.setenv("XLAC_NATIVE", "0")  # else the loop is one function
    profile = check(xlac.compile(xlac.parse(DOT)), [np.eye(4, dtype=np.float32)])
    rows = {tuple(row["ops"]): row for row in profile.steps}
    assert rows["y",]["times"] in (1, 5) and profile.ran["lists"] > 0 and profile.ran["loops"] == 0
    assert any(row["by"] == "list" and row["times"] in (5, 6) for row in profile.steps)


def test_a_loop_that_is_a_list_is_one_step():
    profile = check(xlac.compile(xlac.parse(PLAIN)), [np.eye(4, dtype=np.float32)])
    assert profile.ran["loops"] == 1 and any(row["nested"] and row["op"] == "w" for row in profile.steps)


@pytest.mark.parametrize("seed", range(60))
def test_random_modules_run_the_same(seed):
    module = random_modules.Module(seed)
    exe = xlac.compile(xlac.parse(module.text), threads=1 + seed % 2)
    if not exe.steps["why_interpreted"]:
        check(exe, module.args)


def test_several_calls():
    exe, x = xlac.compile(xlac.parse(SOFTMAX)), np.ones((256, 256), np.float32)
    profile = exe.profile(x, repeat=5, warmup=2)
    assert len(profile.all_seconds) == 5 and profile.min_seconds == min(profile.all_seconds)
    assert profile.seconds == sorted(profile.all_seconds)[2]
    row, = profile.steps
    assert row["min_seconds"] <= row["seconds"] and row["times"] == 1
    assert "the median of 5 calls" in repr(profile) and "at least" in profile.svg()
    assert "a first one takes longer" in repr(exe.profile(x)) and "first one" not in repr(exe.profile(x, warmup=1))
    for wrong in ({"repeat": 0}, {"repeat": 1.5}, {"warmup": -1}):
        with pytest.raises(xlac.Error, match=next(iter(wrong))):
            exe.profile(x, **wrong)


def bench_programs():
    """The programs that speed is measured with, where they are; none that takes more than a moment here."""
    data = os.environ.get("XLAC_CONFORMANCE", pathlib.Path(__file__).parents[3] / "shared/conformance")
    folder = pathlib.Path(data).parent / "bench/programs"
    facts = {path: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return [path.with_suffix(".hlo.txt") for path, f in facts.items()
            if f.get("flops", 0) < 3e8 and f.get("n_devices", 1) == 1 and sum(np.prod(o["shape"], initial=1) for o in f["inputs"] + f["outputs"]) < 1e7]


@pytest.mark.parametrize("path", bench_programs(), ids=lambda p: p.name.split(".")[0])
def test_programs_that_speed_is_measured_with(path):
    module, rng = xlac.parse(path.read_text()), np.random.default_rng(5)
    exe = xlac.compile(module, threads=1)
    if exe.steps["why_interpreted"] is not None:
        return
    args = []
    for parameter in module.entry.parameters:
        dtype, shape = np.dtype(random_modules.NUMPY.get(parameter.dtype, "float32")), tuple(parameter.shape)
        args.append(rng.integers(0, 3, shape).astype(dtype) if dtype.kind in "iub" else rng.uniform(0.5, 1.5, shape).astype(dtype))
    check(exe, args)
