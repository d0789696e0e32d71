"""The order of steps: whichever of three has the least peak; and frames without holes."""
import random

import numpy as np
import pytest

import xlac
from xlac.report import programs_of

N = 1 << 15
X = np.linspace(-1, 1, N, dtype=np.float32)


def same(text, *args):
    module = xlac.parse(text)
    exe = xlac.compile(module)
    exe._check()
    assert np.asarray(exe(*args)).tobytes() == np.asarray(xlac.interpret(module, *args)).tobytes()
    return exe


HEAD = ("HloModule m\nless {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT l = pred[] compare(p, q), direction=LT\n}\n"
        "most {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT l = f32[] maximum(p, q)\n}\n")


def nested(n):
    """Sums of a large value and of what a reduction leaves of the next one: innermost first, one is alive at a time."""
    lines, last = [], None
    for i in range(n):
        lines += [f"  k{i} = f32[] constant({i})\n  b{i} = f32[{N}] broadcast(k{i}), dimensions={{}}\n  c{i} = f32[{N}] add(x, b{i})",
                  f"  w{i} = f32[{N}] sort(c{i}), dimensions={{0}}, to_apply=less"]
        if last:
            lines += [f"  r{i} = f32[] reduce({last}, zero), dimensions={{0}}, to_apply=most", f"  o{i} = f32[{N}] broadcast(r{i}), dimensions={{}}",
                      f"  m{i} = f32[{N}] add(w{i}, o{i})"]
        last = f"m{i}" if last else f"w{i}"
    return HEAD + f"ENTRY e {{\n  x = f32[{N}] parameter(0)\n  zero = f32[] constant(0)\n" + "\n".join(lines) + f"\n  ROOT z = f32[{N}] negate({last})\n}}"


def test_values_are_made_when_they_are_needed():
    exe = same(nested(12), X)
    program = programs_of(exe)[0]
    assert program["order"] in ("list", "depth")
    assert exe.memory["peak_bytes"] < 6 * X.nbytes < 10 * X.nbytes < program["order_peaks"]["program"]
    text = str(exe.explain("schedule"))
    assert "of which at most" in text and "the program's order" in text


def test_a_small_program_keeps_its_order():
    exe = same("HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  a = f32[8] reverse(x), dimensions={0}\n  b = f32[8] add(a, x)\n"
               "  c = f32[8] reverse(b), dimensions={0}\n  ROOT d = f32[8] subtract(c, b)\n}", X[:8])
    assert programs_of(exe)[0]["order"] == "program"
    assert "too little" in str(exe.explain("schedule"))


def random_graph(seed):
    """Transpositions, sorts, reductions and sums of few large values, used again at any distance."""
    draw, n = random.Random(seed), 128
    lines, pool = [], ["x", "y"]
    for i in range(draw.randrange(8, 60)):
        a, b, name = draw.choice(pool[-6:]), draw.choice(pool), f"v{i}_"
        t = f"f32[{n},{n}]"
        kind = draw.randrange(5)
        if kind == 0:
            lines.append(f"  {name} = {t} transpose({a}), dimensions={{1,0}}")
        elif kind == 1:
            lines.append(f"  {name} = {t} sort({a}), dimensions={{1}}, to_apply=less")
        elif kind == 2:
            lines += [f"  r{name} = f32[{n}] reduce({a}, zero), dimensions={{1}}, to_apply=most",
                      f"  {name} = {t} broadcast(r{name}), dimensions={{0}}"]
        elif kind == 3:
            lines += [f"  t{name} = ({t}, {t}) tuple({a}, {b})", f"  g{name} = {t} get-tuple-element(t{name}), index={draw.randrange(2)}",
                      f"  {name} = {t} maximum(g{name}, {b})"]
        else:
            lines.append(f"  {name} = {t} {draw.choice(['add', 'subtract', 'minimum'])}({a}, {b})")
        pool.append(name)
    results = [pool[-1], *draw.sample(pool, draw.randrange(3))]
    return (HEAD + f"ENTRY e {{\n  x = f32[{n},{n}] parameter(0)\n  y = f32[{n},{n}] parameter(1)\n  zero = f32[] constant(-9)\n" + "\n".join(lines) +
            f"\n  ROOT z = ({', '.join([f'f32[{n},{n}]'] * len(results))}) tuple({', '.join(results)})\n}}")


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    module = xlac.parse(random_graph(seed))
    rng = np.random.default_rng(seed)
    args = [rng.standard_normal((128, 128)).astype(np.float32) for _ in range(2)]
    exe = xlac.compile(module)
    exe._check()
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        assert got.tobytes() == want.tobytes()
    program = programs_of(exe)[0]
    peaks = program["order_peaks"]
    assert peaks[program["order"]] <= min(peaks.values()) * 33 // 32
    assert program["frame_bytes"] <= 1.35 * program["peak_bytes"] + 65536
    assert xlac.compile(module).plan() == exe.plan()
