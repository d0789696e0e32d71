"""Every rule of async chains, broken once: refused with code, line, column, op and what to do about it. More modules of one fault each
are in tests/ir/cases/verify_async.hlo."""
import pathlib
import sys

import pytest

import xlac

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ir"))
from verify_cases import all_cases  # noqa: E402

HEAD = """HloModule m, replica_count=2
w { a = f32[8] parameter(0)
  ROOT r = f32[8] negate(a) }
two { a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  ROOT r = f32[8] add(a, b) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
%s
ENTRY e {
  x = f32[8] parameter(0)
  %s
}
"""
S = "((f32[8]), f32[8], s32[])"
START = f"st = {S} async-start(x), calls=w\n  "
ASYNC, STRUCTURE, SHAPE = 205, 204, 201

# what is wrong: (stage, code or None, line, column, computations before, the entry's body). Line 13 is the entry's first.
BAD = {
    "no done": ("verify", ASYNC, 13, 3, "", START + "ROOT y = f32[8] negate(x)"),
    "an update and no done": ("verify", ASYNC, 14, 3, "", START + f"u = {S} async-update(st)\n  ROOT y = f32[8] negate(x)"),
    "two dones": ("verify", ASYNC, 13, 3, "", START + "d = f32[8] async-done(st)\n  f = f32[8] async-done(st)\n  ROOT y = f32[8] add(d, f)"),
    "two updates": ("verify", ASYNC, 13, 3, "", START + f"u = {S} async-update(st)\n  v = {S} async-update(st)\n"
                    "  d = f32[8] async-done(u)\n  f = f32[8] async-done(v)\n  ROOT y = f32[8] add(d, f)"),
    "a done and another reader": ("verify", ASYNC, 13, 3, "", START + "d = f32[8] async-done(st)\n  g = f32[8] get-tuple-element(st), index=1\n"
                                  "  ROOT y = f32[8] add(d, g)"),
    "the start is the result": ("verify", ASYNC, 13, 8, "", f"ROOT st = {S} async-start(x), calls=w"),
    "in a tuple": ("verify", ASYNC, 13, 3, "", START + f"ROOT y = ({S}) tuple(st)"),
    "a done of no chain": ("parse", None, 13, 19, "", "ROOT y = f32[8] async-done(x)"),
    "a done of a done": ("parse", None, 15, 19, "", START + "d = f32[8] async-done(st)\n  ROOT y = f32[8] async-done(d)"),
    "a pair's done of its done": ("verify", ASYNC, 15, 8, "", "st = f32[8] all-reduce-start(x), to_apply=sum\n  d = f32[8] all-reduce-done(st)\n"
                                  "  ROOT y = f32[8] all-reduce-done(d)"),
    "an update of another type": ("parse", None, 14, 40, "", START + "u = ((f32[8]), f32[8], u32[], u32[]) async-update(st)\n"
                                  "  ROOT y = f32[8] async-done(u)"),
    "a done of another type": ("verify", SHAPE, 14, 8, "", START + "ROOT y = s32[8] async-done(st)"),
    "no tuple of operands": ("parse", None, 13, 25, "", "st = (f32[8], f32[8]) async-start(x), calls=w\n  ROOT y = f32[8] async-done(st)"),
    "no outputs": ("parse", None, 13, 19, "", "st = ((f32[8])) async-start(x), calls=w\n  ROOT y = f32[8] async-done(st)"),
    "too few operands": ("verify", ASYNC, 13, 3, "", f"st = {S} async-start(x), calls=two\n  ROOT y = f32[8] async-done(st)"),
    "operands of another type": ("verify", ASYNC, 13, 3, "", "st = ((f32[4]), f32[8]) async-start(x), calls=w\n  ROOT y = f32[8] async-done(st)"),
    "outputs of another type": ("verify", ASYNC, 13, 3, "", "st = ((f32[8]), f32[4]) async-start(x), calls=w\n  ROOT y = f32[4] async-done(st)"),
    "more than one op": ("verify", ASYNC, 13, 3, "many { a = f32[8] parameter(0)\n n = f32[8] negate(a)\n ROOT r = f32[8] abs(n) }".replace("\n", ""),
                         f"st = {S} async-start(x), calls=many\n  ROOT y = f32[8] async-done(st)"),
    "nothing to do": ("verify", ASYNC, 13, 3, "same { ROOT a = f32[8] parameter(0) }",
                      f"st = {S} async-start(x), calls=same\n  ROOT y = f32[8] async-done(st)"),
    "one computation, two chains": ("parse", None, 15, 3, "", START + f"d = f32[8] async-done(st)\n  st2 = {S} async-start(d), calls=w\n"
                                    "  ROOT y = f32[8] async-done(st2)"),
    "a done that names another computation": ("parse", None, 14, 8, "v { a = f32[8] parameter(0) ROOT r = f32[8] abs(a) }",
                                              START + "ROOT y = f32[8] async-done(st), calls=v"),
    "a done on another thread": ("parse", None, 14, 8, "", START + 'ROOT y = f32[8] async-done(st), async_execution_thread="t"'),
    "sugar of another op": ("parse", None, 14, 19, "", f"st = {S} abs-start(x)\n  ROOT y = f32[8] negate-done(st)"),
    "attributes on a done": ("parse", None, 14, 35, "", f"st = {S} slice-start(x), slice={{[0:8]}}\n  ROOT y = f32[8] slice-done(st), slice={{[0:8]}}"),
    "a copy": ("verify", ASYNC, 13, 3, "c { a = f32[8] parameter(0) ROOT r = f32[8] copy(a) }",
               f"st = {S} async-start(x), calls=c\n  ROOT y = f32[8] async-done(st)"),
    "an all-reduce": ("verify", ASYNC, 13, 3, "c { a = f32[8] parameter(0) ROOT r = f32[8] all-reduce(a), to_apply=sum }",
                      f"st = {S} async-start(x), calls=c\n  ROOT y = f32[8] async-done(st)"),
    "an all-gather": ("verify", ASYNC, 13, 3, "c { a = f32[8] parameter(0) ROOT r = f32[16] all-gather(a), dimensions={0}, replica_groups={{0,1}} }",
                      "st = ((f32[8]), f32[16]) async-start(x), calls=c\n  ROOT y = f32[16] async-done(st)"),
    "a collective-permute": ("verify", ASYNC, 13, 3, "c { a = f32[8] parameter(0) ROOT r = f32[8] collective-permute(a), source_target_pairs={{0,1}} }",
                             f"st = {S} async-start(x), calls=c\n  ROOT y = f32[8] async-done(st)"),
    "a send": ("verify", ASYNC, 14, 3, "c { a = f32[8] parameter(0) t = token[] parameter(1) ROOT r = (f32[8], u32[], token[]) send(a, t), channel_id=1 }",
               "t = token[] after-all()\n  st = ((f32[8], token[]), (f32[8], u32[], token[])) async-start(x, t), calls=c\n"
               "  ROOT y = (f32[8], u32[], token[]) async-done(st)"),
    "a copy-start and no done": ("verify", ASYNC, 13, 3, "", "cs = (f32[8], f32[8], u32[]) copy-start(x)\n  ROOT y = f32[8] negate(x)"),
    "an all-gather-start with another's done": ("verify", ASYNC, 13, 3, "", "ag = (f32[8], f32[16]) all-gather-start(x), dimensions={0}, replica_groups={{0,1}}\n"
                                                "  ROOT y = f32[16] collective-permute-done(ag)"),
    "an all-reduce-start with two dones": ("verify", ASYNC, 13, 3, "", "ar = f32[8] all-reduce-start(x), to_apply=sum\n  d = f32[8] all-reduce-done(ar)\n"
                                           "  f = f32[8] all-reduce-done(ar)\n  ROOT y = f32[8] add(d, f)"),
    "a done of an op": ("verify", ASYNC, 14, 8, "", "n = f32[8] negate(x)\n  ROOT y = f32[8] all-reduce-done(n)"),
    "a send and no done": ("verify", ASYNC, 14, 3, "", "t = token[] after-all()\n  sd = (f32[8], u32[], token[]) send(x, t), channel_id=1\n"
                           "  ROOT y = f32[8] negate(x)"),
    "recursion": ("parse", None, 10, 67, "again { a = f32[8] parameter(0) ROOT r = f32[8] call(a), to_apply=again }",
                  f"st = {S} async-start(x), calls=again\n  ROOT y = f32[8] async-done(st)"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    stage, code, line, col, before, body = BAD[name]
    with pytest.raises(xlac.ParseError if stage == "parse" else xlac.VerifyError) as caught:
        module = xlac.parse(HEAD % (before, body), strict=stage == "parse")
        assert stage == "verify", "the reader accepted it"
        module.verify()
    error = caught.value
    assert (error.line, error.col) == (line, col), error
    assert len(error.message) > 10
    if stage == "verify":
        assert error.code == code and error.op
        assert error.hint or code == SHAPE


OWN = ("a copy", "an all-reduce", "an all-gather", "a collective-permute", "nothing to do")


@pytest.mark.parametrize("name", OWN)
def test_what_xla_lets_pass(name):
    module = xlac.parse(HEAD % BAD[name][4:])
    module.verify(xla_compat=True)
    text = module.to_text()
    again = xlac.parse(text)
    again.verify(xla_compat=True)
    assert again.to_text() == text and "calls=" in text


@pytest.mark.parametrize("case", [c for c in all_cases() if c.family == "async" and c.code == "VERIFY_ASYNC"], ids=lambda c: c.id)
def test_every_refusal_says_what_to_do(case):
    with pytest.raises(xlac.Error) as caught:
        xlac.parse(case.text).verify()
    assert caught.value.hint


THREAD = """HloModule m
w { a = f32[8] parameter(0)
  ROOT r = f32[8] negate(a) }
ENTRY e { x = f32[8] parameter(0)
  st = ((f32[8]), f32[8]) async-start(x), calls=w, async_execution_thread="aaaa"
  ROOT d = f32[8] async-done(st) }
"""


@pytest.mark.parametrize("which", [0, 1])
def test_threads_that_differ(which):
    """Text can't say it, as the start's thread becomes that of what it wraps; a serialized module can."""
    parts = xlac.parse(THREAD).to_bytes().split(b"aaaa")
    assert len(parts) == 3
    source = parts[0] + (b"bbbb", b"aaaa")[which] + parts[1] + (b"aaaa", b"bbbb")[which] + parts[2]
    with pytest.raises(xlac.VerifyError, match='runs on thread "..../?" but w is for thread'.replace("/?", "")) as caught:
        xlac.parse(source, format="hlo-proto").verify()
    assert caught.value.op == "st" and caught.value.hint


def test_chains_made_by_hand():
    m = xlac.parse(THREAD)
    again = m.entry.add("async-start", m.entry.parameters[0], type="((f32[8]), f32[8])", calls=m.computation("w"),
                        async_execution_thread="aaaa", name="again")
    m.entry.add("async-done", again, type="f32[8]")
    with pytest.raises(xlac.VerifyError, match="wraps w, which st wraps too") as caught:
        m.verify()
    assert caught.value.op == "again" and "copy" in caught.value.hint
    w = xlac.parse(THREAD).computation("w")
    with pytest.raises(xlac.Error, match="would call itself"):
        w.add("async-start", w.parameters[0], type="((f32[8]), f32[8])", calls=w)


def test_the_entry_can_not_be_what_a_chain_waits_for():
    """A send may stand alone in a computation that a start wraps; the entry is called by the program's caller too."""
    text = """HloModule m
ENTRY w { a = f32[8] parameter(0)
  t = token[] parameter(1)
  ROOT r = (f32[8], u32[], token[]) send(a, t), channel_id=1 }
e { a = f32[8] parameter(0)
  t = token[] parameter(1)
  s = ((f32[8], token[]), (f32[8], u32[], token[]), u32[]) async-start(a, t), calls=w
  ROOT d = (f32[8], u32[], token[]) async-done(s) }
"""
    with pytest.raises(xlac.VerifyError, match="needs exactly one consumer, its send-done; found 0"):
        xlac.parse(text).verify(xla_compat=True)
    xlac.parse(text.replace("ENTRY w", "w").replace("\ne {", "\nENTRY e {")).verify(xla_compat=True)
