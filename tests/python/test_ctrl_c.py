"""Ctrl-C during calls that are not runs: KeyboardInterrupt, and nothing of the caller's is lost."""
import os
import signal
import subprocess
import sys
import threading

import pytest

import xlac

COUNT = 300_000
BODY = "".join(f"  p{i} = f32[8] {'sine' if i % 3 else 'negate'}(p{i - 1})\n" for i in range(1, COUNT))
TEXT = "HloModule m\nENTRY e {\n  p0 = f32[8] parameter(0)\n" + BODY + f"  ROOT r = f32[8] negate(p{COUNT - 1})\n}}\n"
SMALL = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] negate(p)\n}\n"


@pytest.fixture(scope="module")
def module():
    return xlac.parse(TEXT)


def send_soon(fn):
    """Calls fn, with SIGINT sent in the midst of it."""
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        fn()
    finally:
        timer.join()


@pytest.mark.parametrize("what", ["parse", "run", "compile", "to_stablehlo"])
def test_calls_are_interrupted_and_the_module_stays(module, what):
    ops = len(module.entry)
    call, done = {"parse": lambda: xlac.parse(TEXT), "run": lambda: module.run("cse,algebraic-simplification,cse,dce"),
                      "compile": lambda: xlac.compile(module), "to_stablehlo": lambda: module.to_stablehlo().to_hlo()}[what], []
    with pytest.raises(KeyboardInterrupt):
        send_soon(lambda: done.append(call()))
    assert not done, "the call did not end by itself"
    assert len(module.entry) == ops and module.entry.root.name == "r"
    assert xlac.parse(SMALL).run("cse").entry.root.opcode == "negate"  # the next call is none the worse


def sharded(n):
    ops = "".join(f"  %{i + 1} = stablehlo.sine %{i} : tensor<8xf32>\n" for i in range(n))
    return ('sdy.mesh @m = <["x"=2]>\nfunc.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {\n'
            f"  %0 = stablehlo.negate %arg0 : tensor<8xf32>\n{ops}  return %{n} : tensor<8xf32>\n}}\n")


def graph(n):
    nodes = "".join(f'node {{ name: "n{i + 1}" op: "Neg" input: "n{i}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}\n' for i in range(n))
    return 'node { name: "n0" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }\n' + nodes


@pytest.mark.parametrize("what", ["load", "propagate", "cluster"])
def test_the_other_long_calls_are_interrupted(what):
    if what == "load":
        small = TEXT[:TEXT.index("  p60000 =")] + "  ROOT r = f32[8] negate(p59999)\n}\n"
        data = xlac.compile(small).serialize()
        call = lambda: xlac.load(data)  # noqa: E731
    elif what == "propagate":
        module = xlac.parse(sharded(40_000))
        call = lambda: xlac.sharding.propagate(module)  # noqa: E731
    else:
        text = graph(40_000)
        call = lambda: xlac.cluster(text)  # noqa: E731
    done = []
    with pytest.raises(KeyboardInterrupt):
        send_soon(lambda: done.append(call()))
    assert not done, "the call did not end by itself"


def test_another_handler_runs_when_the_call_is_over():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        send_soon(lambda: seen.append(xlac.parse(TEXT)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(map(type, seen), key=str) == sorted([int, xlac.Module], key=str)


def peak(code):
    """Peak memory of a process of its own, in MB, after it ran the code."""
    code += "\nprint([int(s.split()[1]) >> 10 for s in open('/proc/self/status') if s.startswith('VmHWM')][0])"  # maxrss is inherited
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()[-1])


CHAIN = """
import xlac
def chain(n):
    calls = "".join(f"cc{i} {{\\n p = f32[] parameter(0)\\n ROOT q = f32[] call(p), to_apply=cc{i - 1}\\n}}\\n" for i in range(1, n))
    return ("HloModule m\\ncc0 {\\n p = f32[] parameter(0)\\n ROOT q = f32[] add(p, p)\\n}\\n" + calls +
            f"ENTRY e {{\\n x = f32[] parameter(0)\\n ROOT r = f32[] call(x), to_apply=cc{n - 1}\\n}}\\n")
"""


def test_inlining_a_chain_takes_memory_in_proportion():
    """30,000 computations: 60 MB; it was 0.9 GB while each copy was walked by the module's range of ids."""
    assert peak(CHAIN + "m = xlac.parse(chain(30000)).run('inline-calls'); assert len(m.computations) == 1") < 250


DAG = """
import xlac
levels = "".join(f"c{i} {{ a = f32[] parameter(0)\\n b = f32[] call(a), to_apply=c{i - 1}\\n ROOT r = f32[] call(b), to_apply=c{i - 1} }}\\n"
                 for i in range(1, 31))
m = xlac.parse("HloModule m\\nc0 { a = f32[] parameter(0)\\n ROOT r = f32[] add(a, a) }\\n" + levels +
               "ENTRY e {\\n x = f32[] parameter(0)\\n ROOT r = f32[] call(x), to_apply=c30\\n}")
before = m.to_text()
"""


def test_inlining_is_counted_before_it_is_done():
    done = "\ntry: m.run('inline-calls', in_place=True)\nexcept xlac.Error as e: assert 'larger than 1000000 ops' in str(e)\nelse: assert 0"
    assert peak(DAG + done + "\nassert m.to_text() == before") < peak(DAG) + 20


def test_a_fingerprint_takes_memory_in_proportion():
    """31 computations that stand for 2^30 calls: each is looked at once. It was 0.3 GB and an error."""
    assert peak(DAG + "\nassert m.fingerprint() == m.fingerprint()") < peak(DAG) + 20


def test_printing_what_stands_for_much_is_interrupted():
    levels = "".join(f"c{i} {{ a = f32[] parameter(0)\n b = f32[] call(a), to_apply=c{i - 1}\n ROOT r = f32[] call(b), to_apply=c{i - 1} }}\n"
                     for i in range(1, 31))
    m = xlac.parse("HloModule m\nc0 { a = f32[] parameter(0)\n ROOT r = f32[] add(a, a) }\n" + levels +
                   "ENTRY e {\n x = f32[] parameter(0)\n ROOT r = f32[] call(x), to_apply=c30\n}")
    with pytest.raises(KeyboardInterrupt):
        send_soon(lambda: m.to_text(mode="canonical"))


def test_constant_folding_counts_what_trips_take():
    def loop(trips):
        return xlac.parse(f"""HloModule m
c {{ p = s32[] parameter(0)
  n = s32[] constant({trips})
  ROOT t = pred[] compare(p, n), direction=LT }}
b {{ p = s32[] parameter(0)
  o = s32[] constant(1)
  ROOT q = s32[] add(p, o) }}
ENTRY e {{ p = s32[] constant(0)
  ROOT w = s32[] while(p), condition=c, body=b }}""").run("constant-folding{max-work=1}").entry.root.opcode
    assert loop(1000) == "constant" and loop(100_000) == "while"
