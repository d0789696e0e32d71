"""Executable.timeline: what it says of starts, dones and lanes, and its pictures."""
import json
import xml.etree.ElementTree

import numpy as np
import pytest

import xlac
from conftest import leaves, same
from test_lanes import CHAIN, X, compiled, program

N = 1 << 18
BIG = f"""HloModule m, is_scheduled=true
ENTRY e {{ x = f32[{N}] parameter(0)
  y = f32[{N}] reverse(x), dimensions={{0}}
  s = ((f32[{N}]), f32[{N}], u32[]) tanh-start(y), async_execution_thread="side"
  k = f32[{N}] exponential(x)
  d = f32[{N}] tanh-done(s)
  ROOT r = f32[{N}] add(d, k) }}"""


def test_pairs():
    x = np.linspace(-2, 2, N, dtype=np.float32)
    exe = compiled(BIG, {"side": 1})
    timeline = exe.timeline(x)
    assert same(leaves(timeline.result), leaves(exe(x)))
    pair, = timeline.pairs
    assert (pair.op, pair.done_op, pair.lane) in (("s", "d", "side"), ("s", "d", "main")) and timeline.lanes == ["main", "side", "async"]
    assert 0 < pair.ready <= pair.start <= pair.begin < pair.end <= timeline.seconds and pair.done <= pair.released
    assert abs(pair.exposed + pair.hidden - max(pair.busy, pair.exposed)) < 1e-9
    assert pair.earlier == max(0, pair.end - pair.done) and pair.possible == (pair.start - pair.earlier >= pair.ready)
    assert "1 async pairs" in repr(timeline) and pair.advice() in repr(timeline)


def test_without_threads_all_is_exposed():
    timeline = compiled(BIG, {"side": 0}).timeline(np.zeros(N, np.float32))
    pair, = timeline.pairs
    assert pair.helped and pair.lane == "main" and pair.hidden < 0.2 * pair.busy and "did the work" in repr(timeline)


def test_what_is_run_at_once():
    pair, = xlac.compile(CHAIN).timeline(X).pairs
    assert pair.at_once and pair.hidden == 0 and "small" in pair.advice()


def test_recorded_calls():
    exe = compiled(CHAIN)
    with pytest.raises(xlac.Error, match="record"):
        exe.timeline()
    exe.record_timeline(True)
    want = exe(X)
    exe.record_timeline(False)
    timeline = exe.timeline()
    assert timeline.result is None and len(timeline.pairs) == 1 and same(leaves(exe(X)), leaves(want))


def test_pictures_and_traces(tmp_path):
    timeline = compiled(BIG, {"side": 1}).timeline(np.zeros(N, np.float32))
    trace = json.loads(timeline.chrome_trace())["traceEvents"]
    assert {e["args"]["name"] for e in trace if e["ph"] == "M"} == {"main", "side", "async"}
    assert sorted(e["ph"] for e in trace if e["name"] == "async") == ["f", "s"]
    assert {"s", "d", "k"} <= {e["name"] for e in trace if e["ph"] == "X"}
    picture = xml.etree.ElementTree.fromstring(timeline._repr_svg_())
    assert picture.tag.endswith("svg") and "script" not in timeline._repr_html_() and "<table>" in timeline._repr_html_()
    for name in ("t.json", "t.svg"):
        timeline.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 500


def test_programs_without_async_ops():
    timeline = xlac.compile(program("ROOT y = f32[64] sine(x)")).timeline(X)
    assert timeline.pairs == [] and timeline.lanes == ["main"] and len(timeline.events) == 1


def test_a_profile_runs_work_where_it_starts():
    profile = compiled(BIG, {"side": 1}).profile(np.zeros(N, np.float32))
    assert {row["op"] for row in profile.steps} >= {"s", "d", "k"}
