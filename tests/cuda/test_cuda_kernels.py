"""Forms of kernels: reductions shared out in each way, neighbours that are one access, arrays read across by way of shared memory."""
import ml_dtypes
import numpy as np
import pytest

import gpu
import xlac

TYPES = {"f32": np.float32, "s32": np.int32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "f64": np.float64, "c64": np.complex64}


@pytest.fixture(autouse=True)
def device():
    gpu.use()


def values(dims, t, seed):
    return np.random.default_rng(seed).integers(0, 4, dims).astype(TYPES[t])


def text(dims):
    return ",".join(map(str, dims))


def module(arrays, lines, results, computations=""):
    """Parameters p0, p1, ... of these types and dimensions; the results are the values r0, r1, ..., of the types that are given."""
    parameters = "".join(f" p{i} = {t}[{text(d)}] parameter({i})\n" for i, (t, d) in enumerate(arrays))
    names = ", ".join(f"r{i}" for i in range(len(results)))
    return f"HloModule m\n{computations}ENTRY e {{\n{parameters}{lines} ROOT r = ({', '.join(results)}) tuple({names})\n}}\n"


def check(program, arrays, near=0.0):
    args = [values(d, t, i) for i, (t, d) in enumerate(arrays)]
    exe = xlac.compile(program, device="cuda")
    for _ in range(2):
        for got, want in zip(exe(*args), xlac.interpret(program, *args)):
            np.testing.assert_allclose(np.asarray(got).astype(complex), np.asarray(want).astype(complex), rtol=near, atol=near)
    return exe.explain("fusion")


REDUCED = [  # dimensions, those that are reduced, the form
    ((4, 1024), [1], "threads of a block for each result"), ((300, 64), [1], "threads of a block for each result"),
    ((100, 20), [1], "threads of a block for each result"), ((5, 7, 33), [1, 2], "threads of a block for each result"),
    ((40000,), [0], "threads of a block for each result"), ((3, 20000), [1], "threads of a block for each result"),
    ((1, 18), [1], "threads of a block for each result"), ((300, 64), [0], "a block for results beside each other"),
    ((1000, 3), [0], "a block for results beside each other"), ((5000, 40), [0], "a block for results beside each other"),
    ((7, 50, 33), [1], "a block for results beside each other"), ((3, 90, 5, 8), [1], "a block for results beside each other"),
    ((700, 132), [0], "a block for results beside each other"), ((17, 4), [0], "a block for results beside each other"), ((2, 3, 17), [0], "a thread for each result"),
    ((9, 12), [1], "a thread for each result")]


@pytest.mark.parametrize("t, op", [("s32", "add"), ("f32", "maximum"), ("f16", "add")])
def test_reductions(t, op):
    """Integers and maxima to the bit; sums of floats, whose order is another, nearly."""
    arrays = [(t, dims) for dims, _, _ in REDUCED]
    start = 1 if op == "add" else 2
    lines, results = f" z = {t}[] constant({start})\n", []
    for i, (dims, along, _) in enumerate(REDUCED):
        out = f"{t}[{text([d for j, d in enumerate(dims) if j not in along])}]"
        lines += f" r{i} = {out} reduce(p{i}, z), dimensions={{{text(along)}}}, to_apply=combine\n"
        results.append(out)
    combine = f"combine {{ a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n ROOT c = {t}[] {op}(a, b) }}\n"
    said = check(module(arrays, lines, results, combine), arrays, 2e-3 if t == "f16" else 0)
    for i, (_, _, how) in enumerate(REDUCED):
        assert how in next(line for line in said.splitlines() if f" r{i}: kernel k" in line)
    assert "scratch + 0" in said  # some are cut into pieces


@pytest.mark.parametrize("t, each", [("f32", 4), ("bf16", 8), ("u8", 8), ("f64", 2), ("c64", 2)])
def test_neighbours_are_one_access(t, each):
    arrays = [(t, (5, 40)), (t, (40,)), (t, (5, 41))]
    lines = f""" w = {t}[5,40] broadcast(p1), dimensions={{1}}
 s = {t}[5,40] slice(p2), slice={{[0:5],[1:41]}}
 a = {t}[5,40] add(p0, w)
 r0 = {t}[5,40] multiply(a, s)
 r1 = {t}[5,41] negate(p2)
"""
    said = check(module(arrays, lines, [f"{t}[5,40]", f"{t}[5,41]"]), arrays)
    assert f", {each}> p" in said and f", {each}> q" in said
    assert "a thread for neighbouring elements" in said and "a thread for each element" in said


@pytest.mark.parametrize("t", ["f32", "u8", "c64"])
def test_arrays_that_are_read_across(t):
    arrays = [(t, (3, 70, 33)), (t, (40, 3, 5, 20)), (t, (40, 100))]
    lines = f""" r0 = {t}[3,33,70] transpose(p0), dimensions={{0,2,1}}
 r1 = {t}[20,3,5,40] transpose(p1), dimensions={{3,1,2,0}}
 s = {t}[40,64] slice(p2), slice={{[0:40],[5:69]}}
 r2 = {t}[64,40] transpose(s), dimensions={{1,0}}
"""
    said = check(module(arrays, lines, [f"{t}[3,33,70]", f"{t}[20,3,5,40]", f"{t}[64,40]"]), arrays)
    assert said.count("by way of shared memory") >= 3


SCANNED = [  # dimensions, the one along which, from which end, the form
    ((3, 9000), 1, False, "a block for each part"), ((3, 5001), 1, True, "a block for each part"), ((7, 100), 1, False, "a block for each line"),
    ((2100, 4), 0, False, "a block for each part"), ((2, 2049, 3), 1, True, "a block for each part"), ((50, 60), 1, False, "a thread for each line"),
    ((65,), 0, True, "a block for each line"), ((2, 1000), 1, False, "a block for each line"),
    ((3, 260), 1, True, "a block for each line")]


@pytest.mark.parametrize("t, op", [("s32", "add"), ("f32", "maximum"), ("f16", "minimum"), ("f64", "add"), ("c64", "add"), ("u8", "add")])
def test_cumulative_sums(t, op):
    arrays = [(t, dims) for dims, _, _, _ in SCANNED]
    lines, results = f" z = {t}[] constant({'(1, 0)' if t == 'c64' else 1})\n", []
    for i, (dims, along, back, _) in enumerate(SCANNED):
        size, rest = "x".join(str(n if d == along else 1) for d, n in enumerate(dims)), dims[along] - 1
        pad = "x".join((f"0_{rest}" if back else f"{rest}_0") if d == along else "0_0" for d in range(len(dims)))
        results.append(f"{t}[{text(dims)}]")
        lines += f" r{i} = {results[-1]} reduce-window(p{i}, z), window={{size={size} pad={pad}}}, to_apply=combine\n"
    combine = f"combine {{ a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n ROOT c = {t}[] {op}(a, b) }}\n"
    said = check(module(arrays, lines, results, combine), arrays)
    for i, (_, _, _, how) in enumerate(SCANNED):
        assert how in next(line for line in said.splitlines() if f" r{i}: kernel k" in line)


ARG = """larger {{ a = {t}[] parameter(0)
 i = s32[] parameter(1)
 b = {t}[] parameter(2)
 j = s32[] parameter(3)
 gt = pred[] compare(a, b), direction={direction}
 odd = pred[] compare(a, a), direction=NE
 keep = pred[] or(gt, odd)
 eq = pred[] compare(a, b), direction=EQ
 lt = pred[] compare(i, j), direction=LT
 both = pred[] and(eq, lt)
 first = pred[] or(keep, both)
 v = {t}[] select(keep, a, b)
 k = s32[] select(first, i, j)
 ROOT r = ({t}[], s32[]) tuple(v, k) }}
"""


@pytest.mark.parametrize("t, direction", [("f32", "GT"), ("f16", "LT"), ("s32", "GT")])
def test_places_of_the_largest(t, direction):
    """To the bit: NaNs, zeros of both signs and equal elements are those that one thread would find."""
    start = {"f32": "-inf", "f16": "inf", "s32": -2147483648}[t]
    cases = [((3, 5000), 1), ((70, 100), 1), ((500, 7), 0), ((4, 65, 3), 1), ((9, 60), 1)]
    lines, results, args = f" z = {t}[] constant({start})\n o = s32[] constant(0)\n", [], []
    r = np.random.default_rng(3)
    for i, (dims, along) in enumerate(cases):
        out = text([n for d, n in enumerate(dims) if d != along])
        lines += f" i{i} = s32[{text(dims)}] iota(), iota_dimension={along}\n"
        lines += f" a{i} = ({t}[{out}], s32[{out}]) reduce(p{i}, i{i}, z, o), dimensions={{{along}}}, to_apply=larger\n"
        lines += f" r{2 * i} = {t}[{out}] get-tuple-element(a{i}), index=0\n r{2 * i + 1} = s32[{out}] get-tuple-element(a{i}), index=1\n"
        results += [f"{t}[{out}]", f"s32[{out}]"]
        x = r.integers(-3, 4, dims).astype(TYPES[t])
        if t != "s32":
            x = np.where(r.random(dims) < 0.3, -np.abs(x) * 0, x).astype(TYPES[t])
            x[(r.random(dims) < 0.001) & (r.random() < 0.7)] = np.nan
        args.append(x)
    program = module([(t, dims) for dims, _ in cases], lines, results, ARG.format(t=t, direction=direction))
    exe = xlac.compile(program, device="cuda")
    assert exe.explain("fusion").count("parts one behind the other") == len(cases) - 1
    for got, want in zip(exe(*args), xlac.interpret(program, *args)):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


SOFTMAX = """HloModule m
sum {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }}
most {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }}
ENTRY e {{
 p = {t}[{rows},{n}] parameter(0)
 g = f32[{n}] parameter(1)
 x = f32[{rows},{n}] convert(p)
 z = f32[] constant(0)
 l = f32[] constant(-inf)
 m = f32[{rows}] reduce(x, l), dimensions={{1}}, to_apply=most
 mb = f32[{rows},{n}] broadcast(m), dimensions={{0}}
 d = f32[{rows},{n}] subtract(x, mb)
 e = f32[{rows},{n}] exponential(d)
 s = f32[{rows}] reduce(e, z), dimensions={{1}}, to_apply=sum
 rs = f32[{rows}] rsqrt(s)
 sb = f32[{rows},{n}] broadcast(rs), dimensions={{0}}
 q = f32[{rows},{n}] multiply(e, sb)
 gg = f32[{rows},{n}] broadcast(g), dimensions={{1}}
 w = f32[{rows},{n}] multiply(q, gg)
 ROOT r = ({t}[{rows},{n}], f32[{rows}]) tuple(o, s)
 }}
""".replace(" ROOT r", " o = {t}[{rows},{n}] convert(w)\n ROOT r")


def near(program, rows, n, t):
    """What explain says of it; results are the interpreter's."""
    r = np.random.default_rng(rows)
    exe = xlac.compile(program, device="cuda")
    args = [r.standard_normal(x.shape).astype(TYPES[x.dtype]) for x in exe.inputs]
    for _ in range(2):
        for got, want in zip(exe(*args), xlac.interpret(program, *args)):
            np.testing.assert_allclose(np.asarray(got).astype(float), np.asarray(want).astype(float), rtol=2e-2 if t == "bf16" else 2e-5, atol=1e-6)
    return exe.explain("fusion")


@pytest.mark.parametrize("rows, n, t, threads", [(40, 64, "f32", 4), (512, 256, "f32", 16), (300, 772, "f32", 32), (97, 3000, "f32", 256), (3001, 33, "bf16", 4),
                                                 (40000, 5, "f32", 1), (70, 9000, "bf16", 512)])
def test_steps_by_rows_are_one_kernel(rows, n, t, threads):
    """The plan's tiles: so many threads of a row go through all of its steps, with their part of it in registers."""
    said = near(SOFTMAX.format(rows=rows, n=n, t=t), rows, n, t)
    assert "threads for each row of several steps, in registers" in said and "with the step above" in said
    assert f"threadIdx.x / {threads};" in said and said.count("__global__") == 1 and said.count("in0)[") + said.count("a0)[") == 1


@pytest.mark.parametrize("n, pack", [(6150, 2), (6151, 1)])
def test_rows_that_do_not_fit_in_registers_are_one_kernel_too(n, pack):
    """Its threads go through the row once for each step, by accesses of 16 bytes where there are such; a rest not all of them have."""
    program = SOFTMAX.format(rows=17, n=n, t="f64").replace("f32", "f64").replace(" convert(p)", " add(p, y)")
    said = near(program.replace(" x = ", f" y = f64[17,{n}] parameter(2)\n x = "), 17, n, "f64")
    assert "which go through it once for each" in said and "in registers" not in said and said.count("__global__") == 1
    assert "threadIdx.x / 512;" in said
    assert said.count(f"= *(const pack<double, {pack}> *)&((const double *)a") == 5  # two arguments twice, and what is kept between


def test_threads_without_a_row_do_not_read_one_that_is_written_in_place():
    """Rows that a product has put where their result goes; they are no multiple of a block's."""
    program = SOFTMAX.format(rows=301, n=33, t="f32").replace(" convert(p)", " dot(p, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 1)
    program = program.replace(" x = ", " y = f32[33,33] parameter(2)\n x = ").replace(" o = f32[301,33] convert(w)\n", "").replace("tuple(o, s)", "tuple(w, s)")
    assert "const bool there = own < 301" in near(program, 301, 33, "f32")


def test_rows_that_are_read_in_another_order_are_a_kernel_of_their_own():
    """A thread needs what others have; the steps behind it are one kernel."""
    said = near(SOFTMAX.format(rows=70, n=300, t="f32").replace(" convert(p)", " reverse(p), dimensions={1}"), 70, 300, "f32")
    assert said.count("__global__") == 2 and said.count("with the step above") == 3 and "k0, a thread for" in said


def test_steps_beside_others_that_have_rows_of_another_length_are_one_kernel_all_the_same():
    """What goes by those rows in the plan, too, but has no form together with them, is a kernel of its own."""
    program = SOFTMAX.format(rows=40, n=512, t="f32").replace(" x = ", " y = f32[480] parameter(2)\n x = ")
    for other in (" v = f32[480] negate(y)\n", " i = f32[480] add(y, y)\n j = f32[480] reverse(i), dimensions={0}\n v = f32[480] negate(j)\n"):
        both = program.replace(" o = ", other + " o = ").replace("ROOT r = (f32[40,512], f32[40]) tuple(o, s)", "ROOT r = (f32[40,512], f32[40], f32[480]) tuple(o, s, v)")
        said = near(both, 40, 512, "f32")
        assert "threads for each row of several steps, in registers" in said and "with the step above" in said and said.count("__global__") == 2


def test_sums_along_single_elements_between_sums_of_rows_are_part_of_their_kernel():
    """As gradients of normalisations with keepdims have them."""
    program = SOFTMAX.format(rows=40, n=512, t="f32").replace(" rs = f32[40] rsqrt(s)\n", " su = f32[40,1] reshape(s)\n sv = f32[40] reduce(su, z), dimensions={1}, to_apply=sum\n rs = f32[40] rsqrt(sv)\n")
    assert near(program, 40, 512, "f32").count("__global__") == 1


@pytest.mark.parametrize("axis, sizes, packed", [(0, (5, 3, 8), True), (1, (8, 16, 40), True), (1, (6, 18, 40), False), (1, (4, 12, 48), False)])
def test_arrays_put_one_behind_the_other_are_read_by_accesses_of_16_bytes(axis, sizes, packed):
    """Where neighbours are all of one array: what another one has is not read."""
    shapes = [(s, 64) if axis == 0 else (24, s) for s in sizes]
    dims = [16, 64] if axis == 0 else [24, 64]
    params = "".join(f" p{i} = bf16[{a},{b}] parameter({i})\n" for i, (a, b) in enumerate(shapes))
    shape = f"bf16[{dims[0]},{dims[1]}]"
    program = f"HloModule m\nENTRY e {{\n{params} c = {shape} concatenate(p0, p1, p2), dimensions={{{axis}}}\n ROOT r = {shape} negate(c)\n}}"
    exe = xlac.compile(program, device="cuda")
    xs = [np.random.default_rng(i).standard_normal(s).astype(TYPES["bf16"]) for i, s in enumerate(shapes)]
    assert np.asarray(exe(*xs)).tobytes() == np.asarray(xlac.interpret(program, *xs)).tobytes()
    assert (exe.explain("fusion").count("*(const pack<uint16_t, 8> *)") == 3) == packed


def test_large_arrays_have_two_accesses_of_a_thread_on_their_way():
    """Before the first of them is used; with and without a rest."""
    for n in (1 << 20, (1 << 20) + 1028):
        arrays = [("bf16", (2 * n,))]
        program = module(arrays, f" r0 = bf16[{2 * n}] negate(p0)\n", [f"bf16[{2 * n}]"])
        x = (np.arange(2 * n) % 251).astype(TYPES["bf16"])
        exe = xlac.compile(program, device="cuda")
        said = exe.explain("fusion")
        assert "p0[2];" in said and ("if (m < " in said) == (n % 2048 != 0)
        assert np.asarray(exe(x)).tobytes() == np.asarray(-x).tobytes()
