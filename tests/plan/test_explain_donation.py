"""What explain("donation") says of an argument is so in a call that gives it away: by the addresses of arguments and results."""
import re
import sys
import pathlib
import warnings

import numpy as np
import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from cpu import donating  # noqa: E402
from cpu.conftest import leaves  # noqa: E402


def call(exe, args, given):
    """(addresses of the arguments, of the results) of a call that donates what is asked."""
    held = [a.copy() for a in args]
    where = [donating.pointer(h) for h in held]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xlac.DonationWarning)
        got = leaves(exe(*(xlac.donate(h) if i in given else h for i, h in enumerate(held))))
    return where, [donating.pointer(np.asarray(g)) for g in got]


def sentences(exe):
    """{argument: what is said of it}; one leaf to a parameter."""
    text = exe.explain("donation")
    return {int(m[1]): m[2] for m in re.finditer(r"^argument (\d+), [^:]*: (.*)$", text, re.M)}


def check(text, args, donate):
    exe = xlac.compile(xlac.parse(text), donate=donate)
    if exe.steps["why_interpreted"] is not None:
        assert exe.explain("donation").startswith("no argument can be donated")
        return 0
    said = sentences(exe)
    where, results = call(exe, args, range(len(args)))
    for i, address in enumerate(where):
        words = said.get(i, "")
        takes = re.match(r"result (\d+) is computed over it", words) or re.search(r"result (\d+),? (?:is copied|which is copied|is not a new value)", words)
        if args[i].nbytes == 0:
            continue
        if takes:
            assert results[int(takes[1])] == address, (i, words, text)
        else:
            assert address not in results, (i, words, text)
        if words.startswith("not donated"):
            again = xlac.compile(xlac.parse(text), donate=(*donate, i))
            assert re.search(r"result \d+", sentences(again)[i]) or "argument" in sentences(again)[i], (i, words, text)
    lent, results = call(exe, args, ())
    assert not set(lent) & set(results), "what is borrowed is nobody's but the caller's"
    return len(said)


def test_random_modules():
    said = 0
    for seed in range(60):
        case = donating.Case(seed)
        said += check(case.text, case.args, case.donate)
    assert said > 30


STEP = """HloModule m
ENTRY e {
  w = f32[256,64] parameter(0)
  g = f32[256,64] parameter(1)
  b = f32[64] parameter(2)
  k = f32[] constant(0.1)
  kb = f32[256,64] broadcast(k), dimensions={}
  d = f32[256,64] multiply(g, kb)
  n = f32[256,64] subtract(w, d)
  t = f32[64,256] transpose(n), dimensions={1,0}
  c = f32[64] negate(b)
  ROOT r = (f32[256,64], f32[64], f32[64,256]) tuple(n, c, t)
}
"""


@pytest.mark.parametrize("donate", [(), (0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)])
def test_an_update_of_weights(donate):
    args = [np.ones((256, 64), np.float32), np.ones((256, 64), np.float32), np.ones(64, np.float32)]
    assert check(STEP, args, donate) >= 2


ALIASED = """
HloModule steps, input_output_alias={ {0}: (0, {}, may-alias) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  zero = f32[] constant(0)
  %s
}
"""


@pytest.mark.parametrize("lines", [
    "next = f32[64,64] add(x, x)\n  y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = tuple(next, y)",
    "y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  next = f32[64,64] add(x, x)\n"
    "  total = f32[] reduce(y, zero), dimensions={0,1}, to_apply=sum\n  ROOT r = tuple(next, total)",
], ids=["the program has it first", "the product goes with what follows it"])
def test_a_result_waits_for_those_who_read_the_argument_under_it(lines):
    module = xlac.parse(ALIASED % lines)
    exe = xlac.compile(module)
    assert sentences(exe)[0] == "result 0 is computed over it"
    args = [np.arange(4096, dtype=np.float32).reshape(64, 64) % 7, np.eye(64, dtype=np.float32)]
    where, results = call(exe, args, (0,))
    assert results[0] == where[0]
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        np.testing.assert_array_equal(got, want)


def test_a_result_that_others_need_is_copied():
    """y is made of what is to lie over x, and of x: one of the two has to be somewhere else."""
    exe = xlac.compile(xlac.parse(ALIASED % ("next = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  "
                                             "y = f32[64,64] dot(next, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  "
                                             "ROOT r = tuple(next, y)")))
    assert "copied there at the end" in sentences(exe)[0]
