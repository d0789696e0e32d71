"""Pads, concatenations, reshapes and slices from computed places inside of kernels: the interpreter's bits, fewer passes."""
import os
import random

import numpy as np
import pytest

import xlac
from xlac import kernels

from .conftest import leaves, same_bits, same_numbers

SUM = """
sum { a = s32[] parameter(0)
 b = s32[] parameter(1)
 ROOT c = s32[] add(a, b) }
"""


def shape(dims):
    return f"s32[{','.join(map(str, dims))}]"


class Moves:
    """A random program of whole numbers: elementwise ops, sums and moves of some thousand elements."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.values = [], []
        self.dims = tuple(self.r.choice([(40, 70), (3, 20, 40), (2500,), (7, 1, 400), (2, 3, 8, 60), (64, 64)]) for _ in range(2))
        self.args = [np.random.default_rng(seed + i).integers(-50, 50, d).astype(np.int32) for i, d in enumerate(self.dims)]
        self.args.append(np.array(self.r.randrange(-3, 40), np.int32))
        for i, d in enumerate(self.dims):
            self.put(d, f"parameter({i})")
        self.place = self.put((), "parameter(2)")
        self.zero = self.put((), f"constant({self.r.randrange(9)})")
        for _ in range(self.r.randrange(4, 14)):
            self.step()
        roots = self.r.sample(self.values, min(len(self.values), self.r.randrange(1, 4)))
        if self.values[-1] not in roots:
            roots.append(self.values[-1])
        self.lines.append(f"ROOT out = ({', '.join(shape(d) for _, d in roots)}) tuple({', '.join(n for n, _ in roots)})")
        self.text = f"HloModule m\n{SUM}\nENTRY e {{\n  " + "\n  ".join(self.lines) + "\n}\n"

    def put(self, dims, text):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {shape(dims)} {text}")
        if dims:
            self.values.append((name, dims))
        return name

    def any(self):
        return self.r.choice(self.values[-4:])

    def step(self):
        kind = self.r.choice("pad concatenate reshape reshape dynamic slice reverse transpose add add multiply broadcast select reduce same".split())
        x, d = self.any()
        getattr(self, "do_" + kind)(x, d)

    def do_pad(self, x, d):
        edges = [(self.r.randrange(-3, 5), self.r.randrange(-2, 5)) if self.r.random() < 0.6 else (0, 0) for _ in d]
        to = tuple(n + a + b for n, (a, b) in zip(d, edges))
        if min(to) > 0 and np.prod(to) < 20000:
            self.put(to, f"pad({x}, {self.zero}), padding={'x'.join(f'{a}_{b}' for a, b in edges)}")

    def do_concatenate(self, x, d):
        along = self.r.randrange(len(d))
        parts = [(n, e) for n, e in self.values if len(e) == len(d) and e[:along] + e[along + 1:] == d[:along] + d[along + 1:]]
        parts = [self.r.choice(parts) for _ in range(self.r.randrange(2, 4))]
        to = d[:along] + (sum(e[along] for _, e in parts),) + d[along + 1:]
        if np.prod(to) < 20000:
            self.put(to, f"concatenate({', '.join(n for n, _ in parts)}), dimensions={{{along}}}")

    def do_reshape(self, x, d):
        to = list(d)
        for _ in range(self.r.randrange(1, 3)):
            at = self.r.randrange(len(to))
            factors = [f for f in (2, 4, 5, 7, 8) if to[at] % f == 0 and to[at] > f]
            if self.r.random() < 0.4 and len(to) > 1 and at + 1 < len(to):
                to[at:at + 2] = [to[at] * to[at + 1]]
            elif factors and len(to) < 6:
                f = self.r.choice(factors)
                to[at:at + 1] = [f, to[at] // f] if self.r.random() < 0.7 else [1, to[at]]
        self.put(tuple(to), f"reshape({x})")

    def do_dynamic(self, x, d):
        to = tuple(max(1, n - self.r.randrange(0, 6)) for n in d)
        self.put(to, f"dynamic-slice({x}, {', '.join([self.place] * len(d))}), dynamic_slice_sizes={{{','.join(map(str, to))}}}")

    def do_slice(self, x, d):
        cut = [(self.r.randrange(0, max(1, n // 6)), n - self.r.randrange(0, max(1, n // 6)), self.r.choice([1, 1, 1, 2])) for n in d]
        to = tuple(-(-(b - a) // s) for a, b, s in cut)
        self.put(to, f"slice({x}), slice={{{', '.join(f'[{a}:{b}:{s}]' for a, b, s in cut)}}}")

    def do_reverse(self, x, d):
        self.put(d, f"reverse({x}), dimensions={{{self.r.randrange(len(d))}}}")

    def do_transpose(self, x, d):
        order = list(range(len(d)))
        self.r.shuffle(order)
        self.put(tuple(d[o] for o in order), f"transpose({x}), dimensions={{{','.join(map(str, order))}}}")

    def do_add(self, x, d):
        others = [n for n, e in self.values if e == d]
        self.put(d, f"{self.r.choice(['add', 'subtract', 'maximum'])}({x}, {self.r.choice(others)})")

    do_multiply = do_same = do_add

    def do_broadcast(self, x, d):
        k = self.put(d, f"broadcast({self.zero}), dimensions={{}}")
        self.put(d, f"add({x}, {k})")

    def do_select(self, x, d):
        others = [n for n, e in self.values if e == d]
        name = f"p{len(self.lines)}"
        self.lines.append(f"{name} = pred{shape(d)[3:]} compare({x}, {self.r.choice(others)}), direction=LT")
        self.put(d, f"select({name}, {self.r.choice(others)}, {x})")

    def do_reduce(self, x, d):
        along = self.r.randrange(len(d))
        if len(d) > 1:
            k = self.put(d[:along] + d[along + 1:], f"reduce({x}, {self.zero}), dimensions={{{along}}}, to_apply=sum")
            self.put(d, f"broadcast({k}), dimensions={{{','.join(str(i) for i in range(len(d)) if i != along)}}}")


def check(seed):
    made = Moves(seed)
    parsed = xlac.parse(made.text)
    want = leaves(xlac.interpret(parsed, *made.args))
    count = 0
    for options in ({"threads": 1}, {"threads": 3}, {"passes": False}):
        exe = xlac.compile(parsed, **options)
        exe._check()
        assert same_bits(leaves(exe(*made.args)), want), (seed, options, made.text)
        for text in kernels.of(exe):
            kernels.normal(text)  # verified
            count += text.count(" pick(") + text.count(" up to ")
    return count


def test_random_moves():
    edges = [check(seed) for seed in range(int(os.environ.get("XLAC_RANDOM_MOVES", 150)))]
    assert sum(e > 0 for e in edges) > len(edges) // 12


def run(body, *args, passes):
    parsed = xlac.parse(f"HloModule m\n{SUM}\nENTRY e {{{body}\n}}")
    want = leaves(xlac.interpret(parsed, *args))
    for threads in (1, 2, 7):
        exe = xlac.compile(parsed, threads=threads)
        exe._check()
        assert same_numbers(leaves(exe(*args)), want)
    assert len(kernels.of(exe)) == passes and exe.steps["routines"] == 0, exe.explain("fusion")
    return exe


ROPE = """
  x = {t}[16,8,128] parameter(0)
  c = {t}[16,128] parameter(1)
  s = {t}[16,128] parameter(2)
  a = {t}[16,8,64] slice(x), slice={{[0:16], [0:8], [0:64]}}
  b = {t}[16,8,64] slice(x), slice={{[0:16], [0:8], [64:128]}}
  n = {t}[16,8,64] negate(b)
  r = {t}[16,8,128] concatenate(n, a), dimensions={{2}}
  cc = {t}[16,8,128] broadcast(c), dimensions={{0,2}}
  ss = {t}[16,8,128] broadcast(s), dimensions={{0,2}}
  p = {t}[16,8,128] multiply(x, cc)
  q = {t}[16,8,128] multiply(r, ss)
  ROOT o = {t}[16,8,128] add(p, q)"""


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "f64"])
def test_a_rotary_embedding_is_one_pass(dtype, isa, monkeypatch):
    monkeypatch.setenv("XLAC_MAX_ISA", isa)
    kind = xlac._core.numpy_dtype(dtype)
    args = [(8 * np.random.default_rng(i).standard_normal(s)).astype(kind) for i, s in enumerate([(16, 8, 128), (16, 128), (16, 128)])]
    run(ROPE.format(t=dtype), *args, passes=1)
    if dtype == "bf16":
        parsed = xlac.parse(f"HloModule m\n{SUM}\nENTRY e {{{ROPE.format(t=dtype)}\n}}")
        got = np.asarray(xlac.compile(parsed, numerics="fast")(*args), np.float32)
        np.testing.assert_allclose(got, np.asarray(xlac.interpret(parsed, *args), np.float32), rtol=0.02, atol=2)


def test_what_is_padded_is_computed_in_one_pass():
    run("""
  x = s32[40,70] parameter(0)
  z = s32[] constant(3)
  y = s32[40,70] multiply(x, x)
  p = s32[44,75] pad(y, z), padding=1_3x2_3
  ROOT q = s32[44,75] negate(p)""", np.arange(2800, dtype=np.int32).reshape(40, 70), passes=1)


@pytest.mark.parametrize(("body", "says"), [
    ("""
  x = s32[2800] parameter(0)
  z = s32[] constant(3)
  p = s32[2810] pad(x, z), padding=5_5
  r = s32[281,10] reshape(p)
  ROOT q = s32[281,10] negate(r)""", "edges are not those of a dimension"),
    ("""
  x = s32[40] parameter(0)
  z = s32[] constant(3)
  p = s32[50] pad(x, z), padding=5_5
  ROOT q = s32[50] negate(p)""", "too few elements"),
    ("""
  x = s32[3000] parameter(0)
  p = s32[30000] concatenate(x, x, x, x, x, x, x, x, x, x), dimensions={0}
  ROOT q = s32[30000] negate(p)""", "edges enough"),
    ("""
  x = s32[3000] parameter(0)
  i = s32[] parameter(1)
  y = s32[3000] multiply(x, x)
  d = s32[2000] dynamic-slice(y, i), dynamic_slice_sizes={2000}
  ROOT q = s32[2000] negate(d)""", "at a place that is computed"),
])
def test_why_moves_stay_outside(body, says):
    exe = xlac.compile(xlac.parse(f"HloModule m\n{SUM}\nENTRY e {{{body}\n}}"), passes=False)
    assert says in str(exe.explain("fusion")), exe.explain("fusion")


@pytest.mark.parametrize("index", ["s32", "u8", "u64", "s64"])
@pytest.mark.parametrize("n", [24, 3000])
def test_slices_from_computed_places(index, n):
    body = f"""
  x = s32[7,{n + 9}] parameter(0)
  i = {index}[] parameter(1)
  j = {index}[] add(i, i)
  d = s32[1,{n}] dynamic-slice(x, i, j), dynamic_slice_sizes={{1,{n}}}
  r = s32[{n}] reshape(d)
  ROOT q = s32[{n}] negate(r)"""
    x = np.arange(7 * (n + 9), dtype=np.int32).reshape(7, -1)
    kind = xlac._core.numpy_dtype(index)
    for i in (0, 3, 6, 100, np.iinfo(kind).max, np.iinfo(kind).min):
        run(body, x, np.array(i, kind), passes=1)


def test_a_loop_that_slices_its_input():
    body = f"""HloModule m
body {{
  s = (s32[], s32[20,30], s32[30]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[20,30] get-tuple-element(s), index=1
  a = s32[30] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  n = s32[] add(i, one)
  d = s32[1,30] dynamic-slice(x, i, zero), dynamic_slice_sizes={{1,30}}
  r = s32[30] reshape(d)
  m = s32[30] multiply(a, a)
  b = s32[30] add(m, r)
  ROOT t = (s32[], s32[20,30], s32[30]) tuple(n, x, b)
}}
condition {{
  s = (s32[], s32[20,30], s32[30]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(20)
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = s32[20,30] parameter(0)
  y = s32[30] parameter(1)
  z = s32[] constant(0)
  p = (s32[], s32[20,30], s32[30]) tuple(z, x, y)
  w = (s32[], s32[20,30], s32[30]) while(p), condition=condition, body=body
  ROOT u = s32[30] get-tuple-element(w), index=2
}}
"""
    parsed = xlac.parse(body)
    args = np.arange(600, dtype=np.int32).reshape(20, 30), np.arange(30, dtype=np.int32)
    exe = xlac.compile(parsed)
    exe._check()
    assert np.array_equal(exe(*args), xlac.interpret(parsed, *args)) and " up to 19" in str(exe.explain("kernels"))


def test_edges_of_what_is_empty():
    for body in ("""
  x = s32[3000] parameter(0)
  y = s32[3000] multiply(x, x)
  c = s32[6000] concatenate(y, x), dimensions={0}
  s = s32[0] slice(c), slice={[5000:5000]}
  ROOT q = s32[0] negate(s)""", """
  x = s32[3000] parameter(0)
  z = s32[] constant(1)
  y = s32[3000] multiply(x, x)
  c = s32[3100] pad(y, z), padding=50_50
  s = s32[0] slice(c), slice={[7:7]}
  ROOT q = s32[0] negate(s)""", """
  x = s32[0,40] parameter(0)
  y = s32[0,40] multiply(x, x)
  z = s32[] constant(1)
  c = s32[50,40] pad(y, z), padding=20_30x0_0
  ROOT q = s32[50,40] negate(c)"""):
        parsed = xlac.parse(f"HloModule m\n{SUM}\nENTRY e {{{body}\n}}")
        arg = np.zeros((0, 40) if "s32[0,40]" in body else 3000, np.int32)
        for options in ({}, {"passes": False}):
            assert same_bits(leaves(xlac.compile(parsed, **options)(arg)), leaves(xlac.interpret(parsed, arg)))


@pytest.mark.parametrize("kind", ["bf16", "f32", "f64", "s8"])
@pytest.mark.parametrize("low", [-1, 0, 1])
def test_a_concatenation_within_a_pad_whose_short_rows_stay_whole(kind, low):
    """Found by a long run: rows too short to be cut go across the edges of the pad, and there the parts of the concatenation are chosen from
    within it, where one of them may not be there at all."""
    body = f"""
  x = {kind}[2,5,70] parameter(0)
  z = {kind}[] constant(3)
  c = {kind}[2,10,70] concatenate(x, x), dimensions={{1}}
  p = {kind}[5,{12 + low},73] pad(c, z), padding=2_1x{low}_2x2_1
  ROOT q = {kind}[5,{12 + low},73] negate(p)"""
    x = np.arange(700).reshape(2, 5, 70) % 101
    parsed = xlac.parse(f"HloModule m\nENTRY e {{{body}\n}}")
    x = x.astype(xlac._core.numpy_dtype(kind))
    for options in ({}, {"threads": 3}):
        assert same_bits(leaves(xlac.compile(parsed, **options)(x)), leaves(xlac.interpret(parsed, x)))
