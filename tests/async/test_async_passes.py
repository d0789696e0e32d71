"""The passes on async ops: small modules before and after, and that they change nothing but time. XLAC_ASYNC_SWEEP=2000 tries more
random programs."""
import os
import pathlib
import re
import sys

import numpy as np
import pytest

import xlac

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "opt")]
import programs  # noqa: E402
import random_async  # noqa: E402

SWEEP = int(os.environ.get("XLAC_ASYNC_SWEEP", "0"))
SUM = "sum { sa = f32[] parameter(0)\n  sb = f32[] parameter(1)\n  ROOT sc = f32[] add(sa, sb) }\n"


def module(body, head="", scheduled=False, prelude=SUM):
    flag = ", is_scheduled=true" if scheduled else ""
    m = xlac.parse(f"HloModule m{flag}{head}\n{prelude}ENTRY e {{\n{body}\n}}")
    m.verify()
    return m


def entry(m):
    """The entry's lines without layouts, '%' and the numbers of names."""
    body = re.search(r"(?s)\nENTRY .*?\{\n(.*?)\n\}", "\n" + m.to_text())[1]
    return [re.sub(r"(?<=\])\{[\d,]*\}|(?<=\w)\.\d+", "", line.strip()).replace("%", "") for line in body.split("\n")]


def run(m, pipeline, lenient=False):
    before = m.to_text()
    out = m.run(pipeline, verify_each=not lenient)
    out.verify(xla_compat=lenient)
    assert m.to_text() == before
    again = xlac.parse(out.to_text())
    again.verify(xla_compat=lenient)
    return out


X = "x = f32[4] parameter(0)\n"
CASES = {
    "an op": ("async-wrap", X + "ROOT r = f32[4] sine(x)",
              [X[:-1], "r-start = ((f32[4]), f32[4], u32[]) sine-start(x)", "ROOT r-done = f32[4] sine-done(r-start)"]),
    "updates and a thread": (
        "async-wrap{updates=2 thread=lane}", X + "ROOT r = f32[4] sine(x)",
        [X[:-1], 'r-start = ((f32[4]), f32[4], u32[]) sine-start(x), async_execution_thread="lane"',
         "r-update = ((f32[4]), f32[4], u32[]) sine-update(r-start)",
         "r-update = ((f32[4]), f32[4], u32[]) sine-update(r-update)", "ROOT r-done = f32[4] sine-done(r-update)"]),
    "only what is asked for": ("async-wrap{ops=cosine,tan}", X + "s_ = f32[4] sine(x)\nROOT r = f32[4] cosine(s_)",
                               [X[:-1], "s_ = f32[4] sine(x)", "r-start = ((f32[4]), f32[4], u32[]) cosine-start(s_)",
                                "ROOT r-done = f32[4] cosine-done(r-start)"]),
    "too small": ("async-wrap{min-bytes=33}", X + "ROOT r = f32[4] sine(x)", [X[:-1], "ROOT r = f32[4] sine(x)"]),
    "large enough": ("async-wrap{min-bytes=32}", X + "ROOT r = f32[4] sine(x)",
                     [X[:-1], "r-start = ((f32[4]), f32[4], u32[]) sine-start(x)", "ROOT r-done = f32[4] sine-done(r-start)"]),
    "a copy has its own pair": ("async-wrap", X + "ROOT r = f32[4] copy(x)",
                                [X[:-1], "r-start = (f32[4], f32[4], u32[]) copy-start(x)",
                                 "ROOT r-done = f32[4] copy-done(r-start)"]),
    "a copy to another layout has none": ("async-wrap", "x = f32[4,2]{1,0} parameter(0)\nROOT r = f32[4,2]{0,1} copy(x)",
                                          ["x = f32[4,2] parameter(0)", "ROOT r = f32[4,2] copy(x)"]),
    "control edges": ("async-wrap{ops=sine}", X + "a = f32[4] tan(x)\nb = f32[4] sine(x), control-predecessors={a}\n"
                      "ROOT r = f32[4] cosine(x), control-predecessors={b}",
                      [X[:-1], "a = f32[4] tan(x)",
                       "b-start = ((f32[4]), f32[4], u32[]) sine-start(x), control-predecessors={a}",
                       "b-done = f32[4] sine-done(b-start)", "ROOT r = f32[4] cosine(x), control-predecessors={b-done}"]),
    "shardings go to the done": (
        "async-wrap", X + "ROOT r = f32[4] sine(x), sharding={replicated}",
        [X[:-1], "r-start = ((f32[4]), f32[4], u32[]) sine-start(x)",
         "ROOT r-done = f32[4] sine-done(r-start), sharding={replicated}"]),
    "back": ("async-wrap{updates=1},async-unwrap", X + "ROOT r = f32[4] sine(x)", [X[:-1], "ROOT r = f32[4] sine(x)"]),
    "a call": ("async-unwrap", X + "st = ((f32[4]), f32[4]) call-start(x), to_apply=f\nROOT r = f32[4] call-done(st)",
               [X[:-1], "ROOT call = f32[4] call(x), to_apply=f"]),
    "edges of a chain": (
        "async-unwrap", X + "a = f32[4] tan(x)\nst = ((f32[4]), f32[4]) sine-start(x), control-predecessors={a}\n"
        "b = f32[4] abs(x), control-predecessors={st}\nd = f32[4] sine-done(st), control-predecessors={b}\n"
        "ROOT r = f32[4] cosine(x), control-predecessors={d}",
        [X[:-1], "a = f32[4] tan(x)", "b = f32[4] abs(x), control-predecessors={a}",
         "sine = f32[4] sine(x), control-predecessors={b, a}", "ROOT r = f32[4] cosine(x), control-predecessors={sine}"]),
    "collectives": (
        "async-collective-creator", X + "a = f32[4] all-reduce(x), to_apply=sum\n"
        "ROOT r = f32[4] collective-permute(a), source_target_pairs={{0,0}}",
        [X[:-1], "a-start = f32[4] all-reduce-start(x), replica_groups={}, to_apply=sum",
         "a-done = f32[4] all-reduce-done(a-start)",
         "r-start = (f32[4], f32[4], u32[], u32[]) collective-permute-start(a-done), source_target_pairs={{0,0}}",
         "ROOT r-done = f32[4] collective-permute-done(r-start)"]),
    "large collectives": (
        "async-collective-creator{all-reduce-min-bytes=17}", X + "a = f32[4] all-reduce(x), to_apply=sum\n"
        "ROOT r = f32[4] all-gather(a), dimensions={0}, replica_groups={{0}}",
        [X[:-1], "a = f32[4] all-reduce(x), replica_groups={}, to_apply=sum",
         "r-start = (f32[4], f32[4]) all-gather-start(a), replica_groups={{0}}, dimensions={0}",
         "ROOT r-done = f32[4] all-gather-done(r-start)"]),
    "others are generic": (
        "async-collective-creator", X + "ROOT r = f32[4] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=sum",
        [X[:-1], "r-start = ((f32[4]), f32[4], u32[]) reduce-scatter-start(x), replica_groups={{0}}, dimensions={0}, to_apply=sum",
         "ROOT r-done = f32[4] reduce-scatter-done(r-start)"]),
    "not scheduled, not known to be idle": ("convert-async-to-sync", X + "st = ((f32[4]), f32[4]) sine-start(x)\n"
                                            "ROOT r = f32[4] sine-done(st)",
                                            [X[:-1], "st = ((f32[4]), f32[4]) sine-start(x)", "ROOT r = f32[4] sine-done(st)"]),
}


@pytest.mark.parametrize("name", CASES)
def test_pass(name):
    pipeline, before, after = CASES[name]
    prelude = SUM + "f { p = f32[4] parameter(0)\n  n = f32[4] negate(p)\n  ROOT q = f32[4] sine(n) }\n"
    assert entry(run(module(before, prelude=prelude), pipeline)) == after


SYNC = X + """st = ((f32[4]), f32[4]) sine-start(x)
c = f32[] constant(2)
b = f32[4] broadcast(c), dimensions={}
d = f32[4] sine-done(st)
ar = f32[4] all-reduce-start(x), to_apply=sum, frontend_attributes={zero="1",a="2"}
t = (f32[4], f32[4]) tuple(d, b)
ad = f32[4] all-reduce-done(ar)
ROOT r = f32[4] add(ad, d)"""


def test_chains_that_hide_nothing_become_ops():
    got = entry(run(module(SYNC, scheduled=True), "convert-async-to-sync"))
    assert got == [X[:-1], "st = ((f32[4]), f32[4]) sine-start(x)", "c = f32[] constant(2)", "b = f32[4] broadcast(c), dimensions={}",
                   "d = f32[4] sine-done(st)", "t = (f32[4], f32[4]) tuple(d, b)",
                   'all-reduce = f32[4] all-reduce(x), replica_groups={}, to_apply=sum, '
                   'frontend_attributes={a="2",async_collective_name="ar",zero="1"}', "ROOT r = f32[4] add(all-reduce, d)"]
    assert "start" not in "".join(entry(run(module(SYNC, scheduled=True), "convert-async-to-sync{all=true}"))).replace("_name", "")


def test_generic_forms_of_collectives_need_xla_compat():
    m = module(X + "a = f32[4] all-reduce(x), to_apply=sum\nROOT r = f32[4] copy(a)")
    out = run(m, "async-collective-creator{generic=true}", lenient=True)
    with pytest.raises(xlac.VerifyError, match="async opcodes of its own"):
        out.verify()
    start = next(line for line in entry(out) if "a-start =" in line)
    assert "async-start(x), output_to_operand_aliasing={{1}: (0, {})}, calls=" in start
    back = run(out, "convert-async-pairs", lenient=True)
    back.verify()
    assert "all-reduce-start(x)" in "".join(entry(back))
    generic = run(back, "convert-async-pairs{generic=true}", lenient=True)
    assert entry(generic)[1].startswith("all-reduce-start = ((f32[4]), f32[4], u32[]) async-start(x), output_to_operand_aliasing")


def test_effects_and_random_ops_are_wrapped_only_by_name():
    body = X + "z = f32[] constant(0)\ng = f32[4] rng(z, z), distribution=rng_uniform\nROOT r = f32[4] add(x, g)"
    assert "rng-start" not in "".join(entry(run(module(body), "async-wrap")))
    assert "rng-start" in "".join(entry(run(module(body), "async-wrap{ops=rng}")))


@pytest.mark.parametrize("pipeline,word", [("async-wrap{ops=dot,nothing}", "nothing"), ("async-collective-creator{ops=al-reduce}", "al-reduce")])
def test_unknown_opcodes(pipeline, word):
    with pytest.raises(xlac.Error, match=f'no opcode "{word}"'):
        module(X + "ROOT r = f32[4] sine(x)").run(pipeline)


def test_bodies_of_loops_and_branches_but_not_of_reductions():
    prelude = SUM + """more { s = (f32[], f32[4]) parameter(0)
  i = f32[] get-tuple-element(s), index=0
  n = f32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (f32[], f32[4]) parameter(0)
  i = f32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  j = f32[] cosine(i)
  ROOT r = (f32[], f32[4]) tuple(j, v) }
"""
    m = module(X + "z = f32[] constant(0)\nq = f32[] reduce(x, z), dimensions={0}, to_apply=sum\nt = (f32[], f32[4]) tuple(q, x)\n"
               "ROOT w = (f32[], f32[4]) while(t), condition=more, body=body", prelude=prelude)
    text = run(m, "async-wrap").to_text()
    assert "cosine-start(" in text and "reduce-start(" in text and "while-start(" in text and "compare-start(" in text
    assert "add-start(" not in text


# --- what random programs compute stays ---

PIPELINES = ["async-wrap", "async-wrap{updates=2 thread=lane}", "async-unwrap", "async-wrap,async-unwrap", "async-collective-creator",
             "convert-async-pairs", "convert-async-to-sync{all=true}", "async-wrap{thread=x},async-wrap{thread=y},async-unwrap,dce,cse",
             "async-wrap,flatten-tuples,dce,cse,inline-calls", "latency-hiding-scheduler",
             "async-wrap{thread=lane updates=1},latency-hiding-scheduler,convert-async-to-sync",
             "latency-hiding-scheduler{memory-percent=100 copies=1 in-flight=1}"]
LENIENT = ["async-collective-creator{generic=true}", "convert-async-pairs{generic=true},convert-async-pairs"]


def leaves(value):
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def names_apart(text):
    return sorted(re.sub(r"\.\d+", "", text).split("\n"))


@pytest.mark.parametrize("first", range(0, SWEEP or 20, 10))
def test_random_programs(first):
    for seed in range(first, first + 10):
        p, q = random_async.Program(seed), programs.Program(seed, seed % 2 == 0)
        pair = [np.array([1, 2], np.float32), np.array([3, -4], np.float32)]
        for source, args in ((p.sync, p.args), (p.overlapped, p.args), (q.text, pair)):
            m = xlac.parse(source)
            want = leaves(xlac.interpret(m, *args))
            for pipeline in PIPELINES + LENIENT:
                out = m.run(pipeline, verify_each=pipeline in PIPELINES)
                out.verify(xla_compat=pipeline in LENIENT)
                again = xlac.parse(out.to_text())
                assert names_apart(again.to_text()) == names_apart(out.to_text()), (seed, pipeline)
                for module_ in (out, again):
                    got = leaves(xlac.interpret(module_, *args, async_order=seed))
                    assert len(got) == len(want), (seed, pipeline)
                    assert all(np.array_equal(g, w, equal_nan=True) for g, w in zip(got, want)), (seed, pipeline)


# --- passes of others on async ops ---

def test_dce_keeps_the_done_of_a_start_it_keeps():
    m = module(X + "st = ((f32[4]), f32[4]) sine-start(x)\nd = f32[4] sine-done(st)\n"
               "ROOT r = f32[4] abs(x), control-predecessors={st}")
    assert any("sine-done" in line for line in entry(run(m, "dce")))


def test_flatten_tuples_leaves_wrapped_ops_their_interfaces():
    t = "((f32[4], f32[4]), f32[4])"
    prelude = f"f {{ p = {t} parameter(0)\n  ROOT q = f32[4] get-tuple-element(p), index=1 }}\n"
    m = module(X + f"u = (f32[4], f32[4]) tuple(x, x)\nv = {t} tuple(u, x)\n"
               f"st = (({t}), f32[4]) call-start(v), to_apply=f\nROOT d = f32[4] call-done(st)", prelude=prelude)
    out = run(m, "flatten-tuples")
    np.testing.assert_array_equal(xlac.interpret(out, np.arange(4, dtype=np.float32)), np.arange(4))


def test_a_wrapped_half_of_a_pair_stays_wrapped():
    """Outside, the done of a send has to read the send itself."""
    m = xlac.parse("""HloModule m
w { q0 = f32[8] parameter(0)
  q1 = token[] parameter(1)
  ROOT r = (f32[8], u32[], token[]) send(q0, q1), channel_id=1 }
ENTRY e { p0 = f32[8] parameter(0)
  p1 = token[] parameter(1)
  s = ((f32[8], token[]), (f32[8], u32[], token[]), u32[]) async-start(p0, p1), calls=w
  ROOT d = (f32[8], u32[], token[]) async-done(s) }""")
    m.verify(xla_compat=True)
    for pipeline in ("async-unwrap", "convert-async-to-sync{all=true}", "convert-async-pairs"):
        assert "async-start(" in m.run(pipeline, verify_each=True).to_text()


@pytest.mark.parametrize("swapped", [False, True])
def test_what_a_start_wraps_stays_one_op_whoever_else_calls_it(swapped):
    lines = ["c = f32[8] call(x), to_apply=w", "s = ((f32[8]), f32[8], s32[]) async-start(x), calls=w", "d = f32[8] async-done(s)"]
    body = "\n  ".join(lines[1:] + lines[:1] if swapped else lines)
    m = xlac.parse(f"HloModule m\nw {{\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] negate(a)\n}}\n"
                   f"ENTRY e {{\n  x = f32[8] parameter(0)\n  {body}\n  ROOT t = f32[8] add(c, d)\n}}\n")
    out = m.run("async-wrap", verify_each=True)
    assert "negate-start" not in out.to_text() and "call-start" in out.to_text() and "add-start" in out.to_text()


@pytest.mark.parametrize("root", "su")
def test_a_chain_whose_start_or_update_is_the_root_stays(root):
    """XLA's rules count consumers alone, so such a program verifies."""
    ops = {"s": "((f32[2]), f32[2], s32[]) async-start(x), calls=w", "u": "((f32[2]), f32[2], s32[]) async-update(s)", "d": "f32[2] async-done(u)"}
    lines = "\n".join(f"  {'ROOT ' * (name == root)}{name} = {op}" for name, op in ops.items())
    module = xlac.parse("HloModule m\nw {\n  a = f32[2] parameter(0)\n  ROOT n = f32[2] negate(a)\n}\n"
                        f"ENTRY e {{\n  x = f32[2] parameter(0)\n{lines}\n}}\n")
    module.verify()
    for passes in ("async-unwrap", "convert-async-to-sync"):
        out = module.run(passes)
        out.verify()
        assert "async-start" in out.to_text() or "negate-start" in out.to_text()


def test_a_chain_whose_result_is_declared_with_other_bounds_stays():
    m = xlac.parse("""HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[<=8], s32[]) custom-call-start(p), custom_call_target="inplace", output_to_operand_aliasing={{}: (0, {})}
  ROOT d = f32[8] custom-call-done(s)
}""")
    m.verify()
    m.run("async-unwrap", in_place=True)
    m.verify()
    assert "-done" in m.to_text()
