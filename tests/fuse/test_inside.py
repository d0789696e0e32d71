"""Values that only their own kernel reads are stored by none: two values that go through rounds together are one kernel."""
import random

import numpy as np
import pytest

import xlac

ROUNDS = """HloModule rounds
ENTRY e {{
 x0 = u32[{n}] parameter(0)
 y0 = u32[{n}] parameter(1)
{rounds} ROOT r = (u32[{n}], u32[{n}]) tuple(x{last}, y{last})
}}"""


def rounds(n, last):
    each = "".join(f" x{i} = u32[{n}] add(x{i - 1}, y{i - 1})\n m{i} = u32[{n}] multiply(y{i - 1}, y{i - 1})\n y{i} = u32[{n}] xor(m{i}, x{i})\n"
                   for i in range(1, last + 1))
    return ROUNDS.format(n=n, rounds=each, last=last)


@pytest.mark.parametrize("n", [2048, 5000])
def test_rounds_of_two_values_are_one_kernel(n):
    x, y = np.random.default_rng(n).integers(0, 1 << 32, (2, n), np.uint32)
    module = xlac.parse(rounds(n, 20))
    for threads in (1, 3):
        got, want = xlac.compile(module, threads=threads)(x, y), xlac.interpret(module, x, y)
        assert all(np.array_equal(g, w) for g, w in zip(got, want))
    assert xlac.compile_stage(module, "kernels").count("\nkernel ") == 1
    assert xlac.compile(module).plan().count("kernel") >= 1


class Program:
    """Ops on arrays of one shape, most of which read the last few values; some are moved, summed up, or results."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.n, self.m = r.choice([(8, 9), (70, 30), (40, 60), (1, 100), (3, 800)])
        self.shape = f"s32[{self.n},{self.m}]"
        lines = [f" v{i} = {self.shape} parameter({i})" for i in range(2)] + [" zero = s32[] constant(0)"]
        results = []
        for i in range(2, r.randint(6, 60)):
            a, b = (f"v{max(0, i - 1 - int(r.expovariate(0.6)))}" for _ in range(2))
            form = r.random()
            if form < 0.06:
                lines.append(f" w{i} = {self.shape} reverse({a}), dimensions={{{r.choice(['0', '1', '0,1'])}}}")
                a = f"w{i}"
            elif form < 0.12:
                lines.append(f" q{i} = s32[{self.m},{self.n}] transpose({a}), dimensions={{1,0}}\n w{i} = {self.shape} reshape(q{i})")
                a = f"w{i}"
            elif form < 0.18:
                d = r.randint(0, 1)
                kept = self.m if d == 0 else self.n
                lines.append(f" q{i} = s32[{kept}] reduce({a}, zero), dimensions={{{d}}}, to_apply=f\n"
                             f" w{i} = {self.shape} broadcast(q{i}), dimensions={{{1 - d}}}")
                a = f"w{i}"
            elif form < 0.22:
                lines.append(f" w{i} = {self.shape} sort({a}), dimensions={{1}}, to_apply=less")
                a = f"w{i}"
            lines.append(f" v{i} = {self.shape} {r.choice(['add', 'subtract', 'multiply', 'xor', 'maximum'])}({a}, {b})")
            if r.random() < 0.06:
                results.append(f"v{i}")
        results += [f"v{i}", f"v{i - 1}"]
        self.text = ("HloModule m\nf { p = s32[] parameter(0)\n q = s32[] parameter(1)\n ROOT r = s32[] add(p, q) }\n"
                     "less { p = s32[] parameter(0)\n q = s32[] parameter(1)\n ROOT r = pred[] compare(p, q), direction=LT }\n"
                     "ENTRY e {\n" + "\n".join(lines) + f"\n ROOT r = ({', '.join([self.shape] * len(results))}) tuple({', '.join(results)})\n}}")


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_programs(first):
    for seed in range(first, first + 50):
        p = Program(seed)
        x, y = np.random.default_rng(seed).integers(-1 << 31, 1 << 31, (2, p.n, p.m)).astype(np.int32)
        module = xlac.parse(p.text)
        want = xlac.interpret(module, x, y)
        exe = xlac.compile(module, threads=1 + seed % 3)
        exe._check()
        assert all(np.array_equal(g, w) for g, w in zip(exe(x, y), want)), f"seed {seed}\n{p.text}"
