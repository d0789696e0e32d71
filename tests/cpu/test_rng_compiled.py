"""rng-bit-generator compiled: the interpreter's bits, for every type, shape and number of threads."""
import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import leaves, same_bits

TYPES = "s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 f8e5m2 f8e4m3fn".split()
SHAPES = ["", "0", "1", "7", "64", "1000", "3,5", "5,4", "4,5", "2,3,130", "3,2,70", "3,7,65", "33,1,3", "100003"]


def check(algorithm, dtype, shape, state):
    n = len(state)
    module = xlac.parse(f"""HloModule m
ENTRY e {{ s = u64[{n}] parameter(0)
 ROOT r = (u64[{n}], {dtype}[{shape}]) rng-bit-generator(s), algorithm={algorithm} }}""")
    want = leaves(xlac.interpret(module, state))
    for threads in (1, 2, 7):
        executable = xlac.compile(module, threads=threads)
        assert executable.steps["interpreted"] == 0
        assert same_bits(leaves(executable(state)), want), (algorithm, dtype, shape, state)


@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox", "rng_default"])
@pytest.mark.parametrize("dtype", TYPES)
def test_types(algorithm, dtype):
    for shape in ("1000", "3,6,70", "9,5,7"):
        check(algorithm, dtype, shape, np.array([7, 2**64 - 3], "u8"))


@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(algorithm, shape):
    for dtype in ("u32", "u64", "u8"):
        check(algorithm, dtype, shape, np.array([2**63 + 5, 11, 2**64 - 1], "u8")[:2 if dtype == "u8" else 3])


def test_a_loop_s_state():
    """The state is overwritten in place."""
    module = xlac.parse("""HloModule m
b { p = (s32[], u64[2], u32[5,4]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 one = s32[] constant(1)
 j = s32[] add(i, one)
 s = u64[2] get-tuple-element(p), index=1
 g = (u64[2], u32[5,4]) rng-bit-generator(s), algorithm=rng_philox
 t = u64[2] get-tuple-element(g), index=0
 d = u32[5,4] get-tuple-element(g), index=1
 a = u32[5,4] get-tuple-element(p), index=2
 x = u32[5,4] xor(a, d)
 ROOT r = (s32[], u64[2], u32[5,4]) tuple(j, t, x) }
c { p = (s32[], u64[2], u32[5,4]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(50)
 ROOT r = pred[] compare(i, n), direction=LT }
ENTRY e { s = u64[2] parameter(0)
 z = s32[] constant(0)
 u = u32[] constant(0)
 a = u32[5,4] broadcast(u), dimensions={}
 t = (s32[], u64[2], u32[5,4]) tuple(z, s, a)
 ROOT w = (s32[], u64[2], u32[5,4]) while(t), condition=c, body=b }""")
    state = np.array([1, 2], "u8")
    assert same_bits(leaves(xlac.compile(module)(state)), leaves(xlac.interpret(module, state)))
    assert state.tolist() == [1, 2]


DTYPES = {"pred": "?", "s4": ml_dtypes.int4, "s8": "i1", "s32": "i4", "s64": "i8", "u8": "u1", "u32": "u4", "u64": "u8", "f8e5m2": ml_dtypes.float8_e5m2,
          "bf16": ml_dtypes.bfloat16, "f16": "f2", "f32": "f4", "f64": "f8"}
RNG = """HloModule m
ENTRY e {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  first = {t}[{n}] rng(a, b), distribution=rng_{kind}
  second = {t}[{n}] rng(a, b), distribution=rng_{kind}
  zero = f64[] constant(0)
  one = f64[] constant(1)
  third = f64[3] rng(zero, one), distribution=rng_uniform
  ROOT r = ({t}[{n}], {t}[{n}], f64[3]) tuple(first, second, third)
}}"""


@pytest.mark.parametrize("t", "pred s4 s8 s32 s64 u8 u32 u64 f8e5m2 bf16 f16 f32 f64".split())
@pytest.mark.parametrize("kind", ("uniform", "normal"))
def test_rng_has_the_interpreters_numbers(t, kind):
    if kind == "normal" and t[0] not in "fb":
        return
    bounds = {"pred": (False, True), "s4": (-5, 7), "u8": (3, 200), "u32": (0, 2**32 - 1), "u64": (7, 2**64 - 1)}.get(t, (-3, 5))
    for n, seed in ((1, 0), (3, 5), (257, 1), (40_001, 2)):
        module = xlac.parse(RNG.format(t=t, n=n, kind=kind))
        arrays = [np.array(v).astype(np.dtype(DTYPES[t])) for v in bounds]
        want = leaves(xlac.interpret(module, *arrays, seed=seed))
        for threads in (1, 2, 7):
            exe = xlac.compile(module, threads=threads)
            assert same_bits(leaves(exe(*arrays, seed=seed)), want), (t, kind, n)
            assert exe.steps["interpreted"] == 0 and exe.steps["routines"] == 3


def test_rng_draws_again_where_a_number_rounds_to_its_upper_bound():
    """Between neighbours every other number does."""
    module = xlac.parse(RNG.format(t="f32", n=30_000, kind="uniform"))
    low = np.float32(1)
    arrays = [low, np.nextafter(low, np.float32(2))]
    want = leaves(xlac.interpret(module, *arrays))
    got = leaves(xlac.compile(module)(*arrays))
    assert same_bits(got, want) and (got[0] == low).all()


def test_rng_between_equal_preds_takes_no_bits():
    module = xlac.parse(RNG.format(t="pred", n=100, kind="uniform"))
    assert same_bits(leaves(xlac.compile(module)(True, True)), leaves(xlac.interpret(module, True, True)))
