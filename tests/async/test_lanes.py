"""The executor runs async operations on lanes: values, overlap, updates, errors, interrupts, and what is left in flight."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import xlac
from conftest import leaves, same

X = np.linspace(-1, 1, 64, dtype=np.float32)


def program(body, helpers="", head=""):
    return f"HloModule m{head}\n{helpers}\nENTRY e {{\n  x = f32[64] parameter(0)\n{textwrap.indent(textwrap.dedent(body), '  ')}\n}}"


def compiled(text, lanes=None, **options):
    exe = xlac.compile(text, threads=1, lanes=lanes, async_work=1, **options)
    assert exe.steps["why_interpreted"] is None
    exe._check()
    return exe



CHAIN = program("""
    s = ((f32[64]), f32[64], u32[]) sine-start(x)
    k = f32[64] cosine(x)
    u = ((f32[64]), f32[64], u32[]) sine-update(s)
    d = f32[64] sine-done(u)
    ROOT r = f32[64] multiply(d, k)""")


@pytest.mark.parametrize("lanes", [None, 1, 2, 4, {"": 0}, {"side": 2}, {"main": 3}])
def test_values_are_the_interpreters_on_any_lanes(lanes):
    exe = compiled(CHAIN, lanes)
    want = leaves(xlac.interpret(xlac.parse(CHAIN), X))
    for _ in range(5):
        assert same(leaves(exe(X)), want)
    kinds = [line.split()[1] for line in exe.plan().splitlines() if line.startswith("  ") and line.split()[0].isdigit()]
    assert kinds.count("start") == kinds.count("update") == kinds.count("done") == 1


SLEEPERS = program("""
    s = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_sleeps"
    t = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_sleeps", async_execution_thread="other"
    k = f32[64] custom-call(x), custom_call_target="async_sleeps"
    d = f32[64] custom-call-done(s)
    f = f32[64] custom-call-done(t)
    g = f32[64] add(d, f)
    ROOT r = f32[64] add(g, k)""")


@pytest.fixture
def sleeps():
    seen = []

    def sleep(x):
        begin = time.perf_counter()
        time.sleep(0.15)
        seen.append((threading.get_ident(), begin, time.perf_counter()))
        return x
    xlac.register_custom_call("async_sleeps", sleep)
    yield seen
    xlac.register_custom_call("async_sleeps", None)


def test_starts_run_beside_the_caller_and_beside_each_other(sleeps):
    compiled(SLEEPERS, {"other": 1})(X)
    assert len({thread for thread, _, _ in sleeps}) == 3
    assert max(begin for _, begin, _ in sleeps) < min(end for _, _, end in sleeps)


def test_one_lane_runs_one_at_a_time_and_whoever_waits_helps(sleeps):
    compiled(SLEEPERS)(X)
    threads = {thread for thread, _, _ in sleeps}
    assert threading.get_ident() in threads and len(threads) <= 2  # a lane and the caller for three sleeps
    sleeps.clear()
    compiled(SLEEPERS, {"": 0})(X)
    assert {thread for thread, _, _ in sleeps} == {threading.get_ident()}


@pytest.mark.parametrize("lanes", [None, {"": 0}, {"a": 1, "b": 1}])
def test_nested_and_chained_chains(lanes):
    helpers = """
inner { a = f32[64] parameter(0)
  s = ((f32[64]), f32[64]) sine-start(a), async_execution_thread="b"
  n = f32[64] negate(a)
  d = f32[64] sine-done(s)
  ROOT r = f32[64] add(n, d) }"""
    text = program("""
        s = ((f32[64]), f32[64]) call-start(x), to_apply=inner, async_execution_thread="a"
        d = f32[64] call-done(s)
        t = ((f32[64]), f32[64]) call-start(d), to_apply=inner, async_execution_thread="a"
        k = f32[64] exponential(x)
        f = f32[64] call-done(t)
        ROOT r = f32[64] add(f, k)""", helpers)
    exe = compiled(text, lanes)
    want = leaves(xlac.interpret(xlac.parse(text), X))
    assert all(same(leaves(exe(X)), want) for _ in range(20))


LOOP = """HloModule m
cond { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(50)
  ROOT p = pred[] compare(i, n), direction=LT }
left { a = f32[64] parameter(0)
  s = ((f32[64]), f32[64]) tanh-start(a)
  k = f32[64] cosine(a)
  d = f32[64] tanh-done(s)
  ROOT r = f32[64] add(d, k) }
right { a = f32[64] parameter(0)
  ROOT r = f32[64] negate(a) }
body { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  sv = ((f32[64]), f32[64]) sine-start(v)
  odd = s32[] and(i, one)
  w = f32[64] conditional(odd, v, v), branch_computations={left, right}
  dv = f32[64] sine-done(sv)
  n = f32[64] add(dv, w)
  ROOT t = (s32[], f32[64]) tuple(j, n) }
ENTRY e { i = s32[] parameter(0)
  x = f32[64] parameter(1)
  t = (s32[], f32[64]) tuple(i, x)
  ROOT w = (s32[], f32[64]) while(t), condition=cond, body=body }"""


def test_inside_loops_and_branches():
    exe = compiled(LOOP, 2)
    args = np.int32(0), X
    want = leaves(xlac.interpret(xlac.parse(LOOP), *args))
    assert all(same(leaves(exe(*args)), want) for _ in range(10))


def test_many_callers_at_once():
    exe, want, wrong = compiled(LOOP, 2), leaves(xlac.interpret(xlac.parse(LOOP), np.int32(0), X)), []

    def call():
        wrong.extend(1 for _ in range(10) if not same(leaves(exe(np.int32(0), X)), want))
    threads = [threading.Thread(target=call) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


@pytest.mark.parametrize("lanes", [{"": 1}, {"": 0}])
def test_updates_run_parts(lanes):
    n = 1 << 20
    text = f"""HloModule m
add {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }}
ENTRY e {{ x = f32[{n}] parameter(0)
  z = f32[] constant(0)
  s = ((f32[{n}], f32[]), f32[]) reduce-start(x, z), dimensions={{0}}, to_apply=add
  u = ((f32[{n}], f32[]), f32[]) reduce-update(s)
  v = ((f32[{n}], f32[]), f32[]) reduce-update(u)
  ROOT d = f32[] reduce-done(v) }}"""
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    exe = compiled(text, lanes)
    timeline = exe.timeline(x)
    assert sum(e.task for e in timeline.events) == 3
    at_once = xlac.compile(text, threads=1, async_work=1 << 60)
    assert same(leaves(exe(x)), leaves(at_once(x))) and same(leaves(timeline.result), leaves(at_once(x)))
    assert abs(float(exe(x)) - x.astype(np.float64).sum()) < 1


def test_pairs_with_opcodes_of_their_own():
    text = program("""
        s = (f32[64], f32[64], u32[]) copy-start(x)
        g = (f32[64], f32[64]) all-gather-start(x), dimensions={0}, replica_groups={{0}}
        p = (f32[64], f32[64], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}
        k = f32[64] sine(x)
        c = f32[64] copy-done(s)
        a = f32[64] all-gather-done(g)
        b = f32[64] collective-permute-done(p)
        y = f32[64] add(c, a)
        z = f32[64] add(b, k)
        ROOT r = f32[64] add(y, z)""")
    assert same(leaves(compiled(text, {"copy": 1, "collective": 1})(X)), leaves(xlac.interpret(xlac.parse(text), X)))


# --- memory ---

def test_results_over_operands_and_over_donated_arguments():
    body = """
        s = ((f32[64]), f32[64]) negate-start(x), output_to_operand_aliasing={{1}: (0, {})}
        ROOT d = f32[64] negate-done(s)"""
    exe = compiled(program(body, head=", input_output_alias={ {}: (0, {}, may-alias) }"))
    assert exe.donations[0]["in_place"]
    given = X.copy()
    result = exe(xlac.donate(given))
    assert result.ctypes.data == given.ctypes.data and same([result], [-X])
    assert same([exe(X)], [-X])


def test_an_operand_that_is_read_meanwhile_is_not_written_over():
    text = program("""
        y = f32[64] reverse(x), dimensions={0}
        s = ((f32[64]), f32[64]) negate-start(y), output_to_operand_aliasing={{1}: (0, {})}
        z = f32[64] sine(y)
        d = f32[64] negate-done(s)
        ROOT r = f32[64] add(d, z)""")
    exe = compiled(text)
    assert all(same(leaves(exe(X)), leaves(xlac.interpret(xlac.parse(text), X))) for _ in range(20))


# --- errors ---

@pytest.mark.parametrize("lanes", [None, {"": 0}])
def test_errors_inside_surface_at_the_done(lanes):
    def fails(x):
        raise ValueError("no")
    xlac.register_custom_call("async_fails", fails)
    text = program("""
        s = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_fails"
        k = f32[64] sine(x)
        d = f32[64] custom-call-done(s)
        ROOT r = f32[64] add(d, k)""")
    exe = compiled(text, lanes)
    try:
        for _ in range(3):
            with pytest.raises(xlac.Error, match=r"ValueError: no \(started by s, awaited by d\)") as caught:
                exe(X)
            assert isinstance(caught.value.__cause__, ValueError) and caught.value.line
    finally:
        xlac.register_custom_call("async_fails", None)


def test_the_first_done_with_an_error_says_it_with_its_own_cause():
    def make(error):
        def fails(x):
            time.sleep(0.02 if error is ValueError else 0)
            raise error("no")
        return fails
    xlac.register_custom_call("async_fails", make(ValueError))
    xlac.register_custom_call("async_fails_too", make(KeyError))
    text = program("""
        s = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_fails"
        t = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_fails_too"
        d = f32[64] custom-call-done(s)
        f = f32[64] custom-call-done(t)
        ROOT r = f32[64] add(d, f)""", head=", is_scheduled=true")
    try:
        for _ in range(5):
            with pytest.raises(xlac.Error, match="ValueError") as caught:
                compiled(text, 2)(X)
            assert isinstance(caught.value.__cause__, ValueError)
    finally:
        xlac.register_custom_call("async_fails", None)
        xlac.register_custom_call("async_fails_too", None)


def test_work_in_flight_is_taken_back_when_the_caller_fails(sleeps):
    text = program("""
        s = ((f32[64]), f32[64]) custom-call-start(x), custom_call_target="async_sleeps"
        k = f32[64] custom-call(x), custom_call_target="nobody_knows_this"
        d = f32[64] custom-call-done(s)
        ROOT r = f32[64] add(d, k)""", head=", is_scheduled=true")
    exe = compiled(text)
    for _ in range(3):
        with pytest.raises(xlac.Error, match="nobody_knows_this"):
            exe(X)
    del exe
    assert all(end <= time.perf_counter() for _, _, end in sleeps)


FOREVER = """HloModule m
cond { s = (s64[], f32[]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  n = s64[] constant(100000000000)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s64[], f32[]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  v = f32[] get-tuple-element(s), index=1
  one = s64[] constant(1)
  j = s64[] add(i, one)
  w = f32[] cosine(v)
  ROOT t = (s64[], f32[]) tuple(j, w) }
wrapped { s = (s64[], f32[]) parameter(0)
  ROOT w = (s64[], f32[]) while(s), condition=cond, body=body }
ENTRY e { i = s64[] parameter(0)
  x = f32[] parameter(1)
  t = (s64[], f32[]) tuple(i, x)
  s = (((s64[], f32[])), (s64[], f32[])) async-start(t), calls=wrapped
  d = (s64[], f32[]) async-done(s)
  ROOT r = f32[] get-tuple-element(d), index=1 }"""


@pytest.mark.parametrize("lanes", [{"": 1}, {"": 0}])
def test_ctrl_c(lanes):
    """Whether the lane has the work or the caller does it."""
    exe = compiled(FOREVER, lanes)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        exe(np.int64(0), np.float32(1))
    small = compiled(CHAIN, lanes)
    assert same(leaves(small(X)), leaves(xlac.interpret(xlac.parse(CHAIN), X)))


@pytest.mark.parametrize("what", ["thread", "fork"])
def test_the_process_may_end_or_fork_with_work_in_flight(what):
    """A caller in a daemon thread when the interpreter ends; a fork while another thread calls."""
    script = f"""
import os, sys, threading, time, numpy as np, xlac
exe = xlac.compile({FOREVER!r}, threads=1, async_work=1)
chain = xlac.compile({CHAIN!r}, threads=1, async_work=1)
x = np.zeros(64, np.float32)
threading.Thread(target=lambda: exe(np.int64(0), np.float32(1)), daemon=True).start()
time.sleep(0.1)
if {what == "fork"}:
    child = os.fork()
    assert child == 0 or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    chain(x)
    if child == 0:
        os._exit(0)
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("lanes,error", [({"a": 100000}, xlac.Error), ({"a": -1}, xlac.ArgumentError), ({1: 1}, xlac.ArgumentError), ("x", xlac.ArgumentError)])
def test_bad_lanes(lanes, error):
    text = program("""
        s = ((f32[64]), f32[64]) sine-start(x), async_execution_thread="a"
        ROOT d = f32[64] sine-done(s)""")
    with pytest.raises(error):
        xlac.compile(text, lanes=lanes)


def test_a_start_that_is_the_result_runs_interpreted():
    """Its done is dead, so that nothing would wait for the memory of the result."""
    m = xlac.parse("""HloModule m
ENTRY e { x = f32[8] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = ((f32[8], f32[4]), (f32[8], f32[4])) all-gather-start(x, y), replica_groups={}, dimensions={0}
  d = (f32[8], f32[4]) all-gather-done(s) }""")
    m.verify()
    args = [np.arange(n, dtype=np.float32) for n in (8, 4)]
    executable = xlac.compile(m)
    executable._check()
    for source in (lambda: xlac.interpret(m, *args), lambda: executable(*args)):
        for pair in source():
            for got, want in zip(pair, args):
                np.testing.assert_array_equal(got, want)
