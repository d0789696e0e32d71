"""Loops whose bodies are lists of instructions: the interpreter's bits, also where steps stand between, and interruptions."""
import signal

import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

NUMPY = {"f32": np.float32, "f64": np.float64, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64, "bf16": ml_dtypes.bfloat16,
         "s8": np.int8, "pred": np.bool_, "c64": np.complex64}


def loop(state, body, helpers="", trips=9):
    """A loop over (counter, *state): body has lines that use a0, a1, ... and ends with r0, r1, ... ; the state is the parameters."""
    whole = "(" + ", ".join(["s32[]", *state]) + ")"
    parts = "\n".join(f"  a{i} = {t} get-tuple-element(p), index={i + 1}" for i, t in enumerate(state))
    return f"""HloModule m
{helpers}
c {{ p = {whole} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})
  ROOT r = pred[] compare(i, n), direction=LT }}
b {{ p = {whole} parameter(0)
  i = s32[] get-tuple-element(p), index=0
{parts}
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body}
  ROOT r = {whole} tuple({", ".join(["j"] + [f"r{i}" for i in range(len(state))])}) }}
ENTRY e {{
""" + "\n".join(f"  x{i} = {t} parameter({i})" for i, t in enumerate(state)) + f"""
  z = s32[] constant(0)
  t = {whole} tuple({", ".join(["z"] + [f"x{i}" for i in range(len(state))])})
  ROOT w = {whole} while(t), condition=c, body=b
}}"""


@pytest.mark.parametrize("t", ["f32", "f64", "s32", "u32", "s64", "u64", "bf16", "s8", "pred", "c64"])
@pytest.mark.parametrize("n", ["", "1", "7", "300"])
def test_ops_of_every_type(both, t, n):
    ops = {"pred": "and or xor not", "c64": "add multiply subtract negate divide"}.get(t, "add subtract multiply maximum minimum divide negate abs")
    if t in ("s32", "u32", "s64", "u64", "s8"):
        ops += " and or xor not"
    if t in ("u32", "u64"):
        ops = ops.replace(" abs", "")
    lines, last = [], "a0"
    for i, op in enumerate(ops.split()):
        args = last if op in ("negate", "abs", "not") else f"{last}, a1"
        lines.append(f"  v{i} = {t}[{n}] {op}({args})")
        last = f"v{i}"
    if t not in ("c64", "pred"):
        for d in ("EQ", "NE", "GE", "GT", "LE", "LT"):
            lines.append(f"  q{d} = pred[{n}] compare(a0, {last}), direction={d}\n  s{d} = {t}[{n}] select(q{d}, {last}, a1)\n"
                         f"  t{d} = {t}[{n}] subtract(s{d}, a0)")
            last = f"t{d}"
    lines.append(f"  r0 = {t}[{n}] copy({last})\n  r1 = {t}[{n}] copy(a0)")
    shape = (int(n),) if n else ()
    rng = np.random.default_rng(3)
    args = [np.asarray(rng.integers(0, 2 if t == "pred" else 50, shape)).astype(NUMPY[t]) for _ in range(2)]
    if t == "c64":  # no 0 / 0: which sign a NaN gets is the C compiler's choice, too
        args = [np.asarray(a + rng.standard_normal(shape) + 1j * rng.standard_normal(shape), np.complex64) for a in args]
    got, want, exe = both(loop([f"{t}[{n}]"] * 2, "\n".join(lines)), *args)
    assert same_bits(got, want), exe.plan()


def test_moves_and_indexes(both):
    got, want, exe = both(loop(["f32[3,4]", "f32[4]", "f32[]"], """
  t = f32[4,3] transpose(a0), dimensions={1,0}
  u = f32[4,3] cosine(t)
  v = f32[3,4] transpose(u), dimensions={1,0}
  k = s32[3,4] iota(), iota_dimension=1
  kf = f32[3,4] convert(k)
  ib = s32[3,4] broadcast(i), dimensions={}
  if = f32[3,4] convert(ib)
  s = f32[3,4] add(kf, if)
  w = f32[3,4] broadcast(a1), dimensions={1}
  m = f32[3,4] multiply(s, w)
  r0 = f32[3,4] subtract(v, m)
  r1 = f32[4] reverse(a1), dimensions={0}
  q = f32[1] slice(a1), slice={[1:2]}
  q0 = f32[] reshape(q)
  r2 = f32[] add(q0, a2)"""), np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4), np.arange(4, dtype=np.float32), np.float32(2))
    assert same_bits(got, want), exe.plan()


def test_steps_between_instructions(both):
    got, want, exe = both(loop(["f32[6,6]", "f32[6]", "s32[]", "f32[9,6]"], """
  d = f32[6] dot(a0, a1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[6] tanh(d)
  h2 = f32[1,6] reshape(h)
  zero = s32[] constant(0)
  r3 = f32[9,6] dynamic-update-slice(a3, h2, i, zero)
  r2 = s32[] multiply(a2, j)
  r1 = f32[6] add(h, a1)
  r0 = f32[6,6] negate(a0)"""), np.eye(6, dtype=np.float32), np.arange(6, dtype=np.float32), np.int32(3), np.zeros((9, 6), np.float32))
    assert all(np.allclose(g, w) for g, w in zip(got, want)), exe.plan()


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_state_that_changes_places(both, trips):
    got, want, exe = both(loop(["f32[]", "f32[]", "f32[40]", "f32[40]", "pred[]"], """
  r0 = f32[] add(a0, a1)
  r1 = f32[] copy(a0)
  r2 = f32[40] copy(a3)
  r3 = f32[40] add(a2, a3)
  r4 = pred[] not(a4)""", trips=trips), np.float32(1), np.float32(0), np.ones(40, np.float32), np.arange(40, dtype=np.float32), np.bool_(True))
    assert same_bits(got, want), exe.plan()


@pytest.mark.parametrize("level", ["avx2", "avx512"])
@pytest.mark.parametrize("rows,row", [(1, 256), (1, 301), (6, 64), (7, 25), (24, 24), (2, 33)])
@pytest.mark.parametrize("trips", [1, 2, 5])
def test_machine_code_that_runs_again_and_again(both, monkeypatch, level, rows, row, trips):
    """A kernel of several rows moves its pointers, and begins at the first row on the next trip; state that changes places has two of each."""
    monkeypatch.setenv("XLAC_MAX_ISA", level)
    whole = f"f32[{rows},{row}]"
    rng = np.random.default_rng(row)
    x, y = (rng.standard_normal((rows, row)).astype(np.float32) for _ in range(2))
    got, want, exe = both(loop([whole, whole, f"f32[{row}]", f"f32[{5 * row}]"], f"""
  b = {whole} broadcast(a2), dimensions={{1}}
  s = {whole} sine(a0)
  m = {whole} multiply(s, b)
  r0 = {whole} subtract(m, a1)
  k = {whole} iota(), iota_dimension=1
  e = {whole} add(a0, k)
  r1 = {whole} tanh(e)
  c = f32[{row}] cosine(a2)
  d = f32[{row}] dynamic-slice(a3, i), dynamic_slice_sizes={{{row}}}
  r2 = f32[{row}] subtract(c, d)
  r3 = f32[{5 * row}] copy(a3)""", trips=trips), x, y, x[0], np.tile(y[0], 5))
    assert same_bits(got, want), exe.plan()


SUMMED = [((24, 24), (0,)), ((5, 7), (0,)), ((9, 100), (0,)), ((30, 9), (0,)), ((40, 24), (1,)), ((7, 5), (1,)), ((3, 4, 6), (0, 1)), ((300,), (0,)), ((65,), (0,)), ((20,), (0,)),
          ((6, 90), (1,)), ((4, 3, 5), (1,)), ((1000,), (0,)), ((16, 64), (0,))]


@pytest.mark.parametrize("level", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("t", ["f32", "f64", "s32", "bf16"])
@pytest.mark.parametrize("extents,dims", SUMMED)
def test_small_reductions_are_those_of_a_program_without_a_loop(both, monkeypatch, level, t, extents, dims):
    """Of values that are computed, by one op or by many, of values that lie there, and beside what is stored of each; from numbers that are the loop's."""
    monkeypatch.setenv("XLAC_MAX_ISA", level)
    whole, left = f"{t}[{','.join(map(str, extents))}]", f"{t}[{','.join(str(n) for i, n in enumerate(extents) if i not in dims)}]"
    kept = ",".join(str(i) for i in range(len(extents)) if i not in dims)
    which = ",".join(map(str, dims))
    combiners = "".join(f"{op}_ {{ x = {t}[] parameter(0)\n y = {t}[] parameter(1)\n ROOT r = {t}[] {op}(x, y) }}\n" for op in ("add", "maximum"))
    many = f"f = {whole} add(d, a0)\n g = {whole} multiply(f, d)" if t == "s32" else f"f = {whole} tanh(d)\n g = {whole} exponential(f)"
    shape = tuple(n for i, n in enumerate(extents) if i not in dims)
    rng = np.random.default_rng(sum(extents))
    args = [rng.standard_normal(s) * 9 for s in (extents, shape, ())]
    state, body = [whole, left, f"{t}[]"], f"""
 most = {left} reduce(a0, a2), dimensions={{{which}}}, to_apply=maximum_
 b = {whole} broadcast(a1), dimensions={{{kept}}}
 d = {whole} subtract(a0, b)
 zero = {t}[] constant(3)
 total = {left} reduce(d, zero), dimensions={{{which}}}, to_apply=add_
 {many}
 other = {left} reduce(g, a2), dimensions={{{which}}}, to_apply=add_
 largest = {left} reduce(g, zero), dimensions={{{which}}}, to_apply=maximum_
 two = {left} add(total, other)
 three = {left} maximum(most, largest)
 r1 = {left} subtract(three, two)
 r0 = {whole} negate(g)
 r2 = {t}[] negate(a2)"""
    args = [np.asarray(a).astype(NUMPY[t]) for a in args]
    got, _, exe = both(loop(state, body, combiners, trips=3), *args)
    parameters = "".join(f" a{i} = {s} parameter({i})\n" for i, s in enumerate(state))
    trip = xlac.compile(f"HloModule m\n{combiners}ENTRY e {{\n{parameters}{body}\n ROOT r = ({', '.join(state)}) tuple(r0, r1, r2) }}")
    for _ in range(3):
        args = leaves(trip(*args))
    assert same_bits(got[1:], args), exe.plan()


def test_loops_in_loops_and_branches(both):
    helpers = """
ic { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  z = s32[] constant(0)
  ROOT r = pred[] compare(i, z), direction=GT }
ib { p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  f = f32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  h = f32[] constant(0.5)
  j = s32[] subtract(i, one)
  g = f32[] multiply(f, h)
  g2 = f32[] add(g, h)
  ROOT r = (s32[], f32[]) tuple(j, g2) }
ft { p = f32[] parameter(0)
  ROOT r = f32[] sine(p) }
ff { p = f32[] parameter(0)
  ROOT r = f32[] negate(p) }"""
    got, want, exe = both(loop(["f32[]"], """
  t2 = (s32[], f32[]) tuple(i, a0)
  w = (s32[], f32[]) while(t2), condition=ic, body=ib
  f = f32[] get-tuple-element(w), index=1
  two = s32[] constant(2)
  odd = s32[] remainder(i, two)
  zero = s32[] constant(0)
  even = pred[] compare(odd, zero), direction=EQ
  r0 = f32[] conditional(even, f, f), true_computation=ft, false_computation=ff""", helpers, 30), np.float32(7))
    assert same_bits(got, want), exe.plan()


def test_an_endless_loop_is_interrupted():
    exe = xlac.compile(xlac.parse(loop(["f32[]"], "  h = f32[] constant(0.5)\n  r0 = f32[] multiply(a0, h)").replace("i = s32[] get-tuple-element(p), index=0\n  n =",
                                                                                                                 "i = s32[] constant(1)\n  n =")))

    def stop(*_):
        raise KeyboardInterrupt
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            exe(np.float32(1))
    finally:
        signal.signal(signal.SIGALRM, before)


# Each branch compares numbers of its own type, whose truth values are lanes of that width.
TRUTHS = """HloModule m
t {{ p = (f32[], {W}[], f32[]) parameter(0)
 a = f32[] get-tuple-element(p), index=0
 c = f32[] get-tuple-element(p), index=2
 ROOT r = pred[] compare(a, c), direction=LT }}
f {{ p = (f32[], {W}[], f32[]) parameter(0)
 b = {W}[] get-tuple-element(p), index=1
 z = {W}[] constant(3)
 ROOT r = pred[] compare(b, z), direction=GT }}
body {{ p = (s32[], f32[], {W}[], f32[], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 a = f32[] get-tuple-element(p), index=1
 b = {W}[] get-tuple-element(p), index=2
 c = f32[] get-tuple-element(p), index=3
 s = f32[] get-tuple-element(p), index=4
 one = s32[] constant(1)
 two = s32[] constant(2)
 j = s32[] add(i, one)
 m = s32[] remainder(i, two)
 zero = s32[] constant(0)
 even = pred[] compare(m, zero), direction=EQ
 q = (f32[], {W}[], f32[]) tuple(a, b, c)
 k = pred[] conditional(even, q, q), true_computation={A}, false_computation={B}
 h = f32[] constant(1)
 w = f32[] convert(k)
 u = {W}[] constant(1)
 kw = {W}[] convert(k)
 b2 = {W}[] add(b, kw)
 b3 = {W}[] add(b2, u)
 lim = {W}[] constant(7)
 b4 = {W}[] remainder(b3, lim)
 sn = f32[] add(s, w)
 ten = f32[] constant(0.3)
 a2 = f32[] add(a, ten)
 a3 = f32[] select(k, a2, h)
 ROOT t = (s32[], f32[], {W}[], f32[], f32[]) tuple(j, a3, b4, c, sn) }}
cond {{ p = (s32[], f32[], {W}[], f32[], f32[]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(37)
 ROOT c = pred[] compare(i, n), direction=LT }}
ENTRY e {{ a = f32[] parameter(0)
 b = {W}[] parameter(1)
 c = f32[] parameter(2)
 z = s32[] constant(0)
 s = f32[] constant(0)
 t = (s32[], f32[], {W}[], f32[], f32[]) tuple(z, a, b, c, s)
 ROOT w = (s32[], f32[], {W}[], f32[], f32[]) while(t), condition=cond, body=body }}
"""


@pytest.mark.parametrize("t", ["s64", "f64", "s8", "s32"])
@pytest.mark.parametrize("branches", ["tf", "ft"])
def test_branches_that_give_truth_values_of_different_widths(both, t, branches):
    text = TRUTHS.format(W=t, A=branches[0], B=branches[1])
    kind = {"s64": np.int64, "f64": np.float64, "s8": np.int8, "s32": np.int32}[t]
    for v in range(9):
        got, want, _ = both(text, np.float32(v * 0.9 - 3), kind(v), np.float32(v * 0.4))
        assert same_bits(got, want)
