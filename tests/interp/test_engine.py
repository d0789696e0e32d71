"""The engine: order, sharing and in-place updates, limits, errors, arguments as they come, interrupts."""
import signal
import time

import ml_dtypes
import numpy as np
import pytest

import xlac


def run(text, *args):
    return xlac.interpret(xlac.parse(text), *args)


def entry(*lines):
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_arguments_are_never_written():
    x = X.copy()
    text = entry("p = f32[2,3] parameter(0)", "a = f32[2,3] add(p, p)", "b = f32[2,3] negate(p)",
                 "ROOT r = f32[2,3] multiply(a, b)")
    np.testing.assert_array_equal(run(text, x), -2 * X * X)
    np.testing.assert_array_equal(x, X)


def test_results_share_nothing():
    text = entry("p = f32[2,3] parameter(0)", "a = f32[2,3] negate(p)", "b = f32[3,2] reshape(a)",
                 "ROOT r = (f32[2,3], f32[2,3], f32[2,3], f32[3,2]) tuple(p, a, a, b)")
    x = X.copy()
    out = run(text, x)
    for i, v in enumerate(out):
        assert not np.shares_memory(v, x)
        for w in out[i + 1:]:
            assert not np.shares_memory(v, w)
        if v.flags.writeable:
            v[...] = 7
    np.testing.assert_array_equal(x, X)


def test_constants_survive_their_module():
    result = run(entry("ROOT c = f32[3] constant({1, 2, 3})"))
    np.testing.assert_array_equal(result, [1, 2, 3])


def test_a_value_used_after_an_in_place_candidate_is_intact():
    text = entry("p = f32[2,3] parameter(0)", "a = f32[2,3] exponential(p)", "b = f32[2,3] negate(a)",
                 "c = f32[2,3] add(a, b)", "d = f32[2,3] subtract(b, a)", "ROOT r = (f32[2,3], f32[2,3]) tuple(c, d)")
    c, d = run(text, X)
    np.testing.assert_array_equal(c, np.zeros_like(X))
    np.testing.assert_allclose(d, -2 * np.exp(X), rtol=1e-6)


def test_ops_need_not_be_in_order_and_may_be_many():
    n = 50_000
    lines = ["p = f32[] parameter(0)", "v0 = f32[] add(p, p)"]
    lines += [f"v{i} = f32[] negate(v{i - 1})" for i in range(1, n)]
    assert run(entry(*lines, f"ROOT r = f32[] negate(v{n - 1})"), np.float32(3)) == 6


def test_dead_ops_are_not_run():
    text = entry("p = f32[3] parameter(0)", 'd = f32[3] custom-call(p), custom_call_target="nobody_has_this"',
                 "ROOT r = f32[3] negate(p)")
    np.testing.assert_array_equal(run(text, np.ones(3, np.float32)), -np.ones(3))


def test_tuple_parameters():
    text = entry("p = (f32[2,3], (s32[], pred[])) parameter(0)", "i = (s32[], pred[]) get-tuple-element(p), index=1",
                 "n = s32[] get-tuple-element(i), index=0", "x = f32[2,3] get-tuple-element(p), index=0",
                 "m = f32[2,3] negate(x)", "ROOT r = (s32[], f32[2,3]) tuple(n, m)")
    n, m = run(text, (X, (np.int32(5), np.True_)))
    assert n == 5
    np.testing.assert_array_equal(m, -X)


LOOP = """HloModule m

condition {{
  p = (s32[], s32[{n}], s32[{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  c = s32[] constant({trips})
  ROOT r = pred[] compare(i, c), direction=LT
}}

body {{
  p = (s32[], s32[{n}], s32[{n}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = s32[{n}] get-tuple-element(p), index=1
  y = s32[{n}] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  u = s32[1] reshape(i)
  z = s32[{n}] dynamic-update-slice(x, u, i)
  ROOT t = (s32[], s32[{n}], s32[{n}]) tuple(next, {results})
}}

ENTRY e {{
  x = s32[{n}] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], s32[{n}], s32[{n}]) tuple(zero, x, x)
  ROOT w = (s32[], s32[{n}], s32[{n}]) while(s), condition=condition, body=body
}}
"""


@pytest.mark.parametrize("results", ["z, y", "y, z", "z, z", "z, x"])
def test_loop_state_updated_in_place_is_what_copies_would_give(results):
    n, trips = 10, 7
    x = np.full(n, -1, np.int32)
    got = run(LOOP.format(n=n, trips=trips, results=results), x)
    a, b = x.copy(), x.copy()
    for i in range(trips):
        z = a.copy()
        z[i] = i
        a, b = {"z, y": (z, b), "y, z": (b, z), "z, z": (z, z), "z, x": (z, a)}[results]
    np.testing.assert_array_equal(got[1], a)
    np.testing.assert_array_equal(got[2], b)
    np.testing.assert_array_equal(x, np.full(n, -1))


def test_loop_state_is_not_copied():
    n = 4_000_000
    start = time.process_time()
    out = run(LOOP.format(n=n, trips=2000, results="z, y"), np.zeros(n, np.int32))
    assert time.process_time() - start < 4  # copies would take 32 GB of traffic
    np.testing.assert_array_equal(out[1][:2000], np.arange(2000))


def test_loop_state_is_not_copied_by_a_call():
    n = 4_000_000
    text = LOOP.format(n=n, trips=2000, results="z, y")
    update = "  z = s32[4000000] dynamic-update-slice(x, u, i)\n"
    assert update in text
    callee = (f"update {{\n  x = s32[{n}] parameter(0)\n  u = s32[1] parameter(1)\n  i = s32[] parameter(2)\n"
              f"  ROOT z = s32[{n}] dynamic-update-slice(x, u, i)\n}}\n\nbody {{")
    text = text.replace(update, f"  z = s32[{n}] call(x, u, i), to_apply=update\n").replace("body {", callee)
    start = time.process_time()
    out = run(text, np.zeros(n, np.int32))
    assert time.process_time() - start < 4
    np.testing.assert_array_equal(out[1][:2000], np.arange(2000))


def test_nested_calls_have_a_limit():
    def nested(n):
        text = "HloModule m\n\ncall0 {\n  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p)\n}\n\n"
        for i in range(1, n):
            text += f"call{i} {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=call{i - 1}\n}}\n\n"
        return text + f"ENTRY e {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=call{n - 1}\n}}\n"
    assert run(nested(200), np.float32(2)) == -2
    with pytest.raises(xlac.Error, match="deep"):
        run(nested(1000), np.float32(2))


def test_errors_name_the_op():
    text = entry("z = f32[] constant(0)", "c = f32[3] constant({...})", "ROOT bad.op = f32[3] negate(c)")
    with pytest.raises(xlac.Error, match="constant") as caught:
        run(text)
    assert caught.value.op == "c" and caught.value.line == 4 and caught.value.hint


def test_running_out_of_memory_is_an_error():
    text = entry("z = f32[] constant(0)", "big = f32[2000000,2000000000] broadcast(z), dimensions={}",
                 "s = f32[1,1] slice(big), slice={[0:1], [0:1]}", "ROOT r = f32[] reshape(s)")
    with pytest.raises(xlac.OutOfMemoryError, match="memory") as caught:
        run(text)
    assert caught.value.op == "big"


@pytest.mark.parametrize("args,what", [((), "argument"), ((X, X), "argument"), ((X.astype(np.float64),), "f64"),
                                       ((X.T,), r"3,2"), ((X[0],), r"\[3\]"), (((X,),), "argument 0|tuple")])
def test_wrong_arguments_are_refused(args, what):
    with pytest.raises((xlac.Error, TypeError), match=what):
        run(entry("p = f32[2,3] parameter(0)", "ROOT r = f32[2,3] negate(p)"), *args)


def test_misaligned_strided_and_read_only_arguments():
    text = entry("p = f32[4] parameter(0)", "ROOT r = f32[4] add(p, p)")
    raw = np.zeros(17, np.uint8)
    odd = raw[1:].view(np.float32)
    odd[...] = [1, 2, 3, 4]
    np.testing.assert_array_equal(run(text, odd), [2, 4, 6, 8])
    np.testing.assert_array_equal(run(text, np.arange(8, dtype=np.float32)[::2]), [0, 4, 8, 12])
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    np.testing.assert_array_equal(run(text, fixed), [2, 2, 2, 2])


def test_bits_outside_a_type_do_not_matter():
    dirty = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    text = entry("p = pred[4] parameter(0)", "n = pred[4] not(p)", "a = u8[4] convert(p)",
                 "ROOT r = (pred[4], u8[4]) tuple(n, a)")
    n, a = run(text, dirty)
    np.testing.assert_array_equal(n, [True, False, False, False])
    np.testing.assert_array_equal(a, [0, 1, 1, 1])
    nibbles = np.array([0x0F, 0xF7, 0x08, 0x71], np.uint8).view(ml_dtypes.int4)
    got = run(entry("p = s4[4] parameter(0)", "ROOT r = s32[4] convert(p)"), nibbles)
    np.testing.assert_array_equal(got, [-1, 7, -8, 1])


def test_dynamic_dimensions_take_smaller_arrays():
    text = entry("p = f32[<=5] parameter(0)", "ROOT r = f32[<=5] negate(p)")
    np.testing.assert_array_equal(run(text, np.ones(3, np.float32)), -np.ones(3))
    with pytest.raises(xlac.Error):
        run(text, np.ones(6, np.float32))


REDUCE = """HloModule m

twice {{
  a = f32[] parameter(0)
  ROOT r = f32[] add(a, a)
}}

reducer {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
{body}
}}

ENTRY e {{
  x = f32[40,30] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[40] reduce(x, z), dimensions={{1}}, to_apply=reducer
}}
"""


def test_bodies_run_alike_vectorised_and_lane_by_lane():
    x = np.random.default_rng(3).normal(size=(40, 30)).astype(np.float32)
    tail = "  m = f32[] maximum(a, b)\n  ROOT r = f32[] {}"
    plain = run(REDUCE.format(body=tail.format("copy(m)")), x)
    called = run(REDUCE.format(body="  h = f32[] constant(0.5)\n  m0 = f32[] maximum(a, b)\n  m = f32[] multiply(m0, h)\n"
                                    "  ROOT r = f32[] call(m), to_apply=twice"), x)
    by_lane = run(REDUCE.format(body="  p = pred[] compare(a, b), direction=GT\n  c = f32[] constant(1)\n  k = f32[1] reshape(a)\n"
                                     "  s = s32[] convert(p)\n  i = f32[2] concatenate(b1, k), dimensions={0}\n"
                                     "  d = f32[1] dynamic-slice(i, s), dynamic_slice_sizes={1}\n"
                                     "  ROOT r = f32[] reshape(d)".replace("b1, k", "l, k").replace(
                                         "  k = ", "  l = f32[1] reshape(b)\n  k = ")), x)
    want = np.maximum(x.max(axis=1), 0)
    for got in (plain, called, by_lane):
        np.testing.assert_array_equal(got, want)


def test_a_long_run_can_be_interrupted():
    text = LOOP.format(n=2, trips=2_000_000_000, results="x, y")

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(text, np.zeros(2, np.int32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
