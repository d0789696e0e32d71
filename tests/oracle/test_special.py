"""Ops that are algorithms: random bits, transforms, linear algebra, normalisation, control flow, async, collectives."""
import itertools

import ml_dtypes
import numpy as np
import pytest

import real_xla
import xlac

TYPES = {"pred": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
         "c64": np.complex64, "c128": np.complex128, "u4": ml_dtypes.uint4, "s4": ml_dtypes.int4}
TYPES.update({f"{k}{b}": np.dtype(f"{d}{b}") for k, d in (("s", "int"), ("u", "uint")) for b in (8, 16, 32, 64)})
EPSILON = {"f32": 2e-6, "c64": 2e-6, "f64": 1e-13, "c128": 1e-13, "f16": 4e-3, "bf16": 3e-2}


def module(params, root, before="", result=None, header="", helpers=""):
    lines = [f"HloModule m{header}", helpers, "ENTRY e {"]
    lines += [f"  p{i} = {p} parameter({i})" for i, p in enumerate(params)]
    return "\n".join(lines + [before, f"  ROOT r = {root}", "}"])


def shape(dtype, dims):
    return f"{dtype}[{','.join(map(str, dims))}]"


def draw(dtype, dims, seed=0):
    r = np.random.default_rng(seed)
    v = r.standard_normal(dims)
    if dtype[0] == "c":
        v = v + 1j * r.standard_normal(dims)
    return np.asarray(v).astype(TYPES[dtype])


def interpret(text, *args, **options):
    m = xlac.parse(text)
    m.verify()
    return xlac.interpret(m, *args, **options)


# --- random numbers ---

@pytest.mark.parametrize("algorithm,words", [("rng_philox", 2), ("rng_philox", 3), ("rng_default", 3), ("rng_three_fry", 2)])
@pytest.mark.parametrize("dtype", ["u4", "u8", "u16", "u32", "u64"])
def test_random_bits_are_xlas(algorithm, words, dtype):
    for i, dims in enumerate([(5,), (4,), (3, 5), (2, 3), (7, 1), (3, 4, 5), (), (0,)]):
        state = np.random.default_rng(i).integers(0, 2**64, words, dtype=np.uint64)
        if i % 2:
            state[1] = 2**64 - 1  # the counter carries
        text = module([f"u64[{words}]"], f"(u64[{words}], {shape(dtype, dims)}) rng-bit-generator(p0), algorithm={algorithm}")
        real_xla.same(interpret(text, state), real_xla.run(text, state), (algorithm, dtype, dims))


@pytest.mark.parametrize("dtype,unsigned", [("s8", "u8"), ("s32", "u32"), ("f32", "u32"), ("f64", "u64"), ("bf16", "u16")])
def test_random_bits_of_other_types_are_the_same_bits(dtype, unsigned):
    state = np.array([3, 4], np.uint64)
    got, want = (interpret(module(["u64[2]"], f"(u64[2], {t}[9]) rng-bit-generator(p0), algorithm=rng_philox"), state)[1]
                 for t in (dtype, unsigned))
    assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


def test_rng_follows_the_seed_and_keeps_its_range():
    text = module(["f32[]", "f32[]"], "f32[5000] rng(p0, p1), distribution=rng_uniform")
    low, high = np.float32(2), np.float32(5)
    a, b, c = (np.asarray(interpret(text, low, high, seed=s)) for s in (1, 1, 2))
    assert (a == b).all() and (a != c).any()
    assert a.min() >= 2 and a.max() < 5 and abs(a.mean() - 3.5) < 0.05


@pytest.mark.parametrize("dtype", ["s8", "u8", "s32", "u64", "f16", "bf16", "f64"])
def test_rng_uniform_of_every_type(dtype):
    text = module([f"{dtype}[]", f"{dtype}[]"], f"{dtype}[3000] rng(p0, p1), distribution=rng_uniform")
    t = TYPES[dtype]
    v = np.asarray(interpret(text, np.asarray(1, t), np.asarray(7, t))).astype(np.float64)
    assert v.min() >= 1 and v.max() < 7
    if dtype[0] in "su":
        assert set(v) == set(range(1, 7))


def test_rng_normal_has_its_moments():
    text = module(["f64[]", "f64[]"], "f64[40000] rng(p0, p1), distribution=rng_normal")
    v = np.asarray(interpret(text, np.float64(2), np.float64(5)))
    assert abs(v.mean() - 2) < 0.1 and abs(v.std() - 5) < 0.1


def test_rng_state_starts_where_xlas_does_and_advances():
    text = module([], "(u64[2], u64[2]) tuple(a, b)", "  a = u64[2] rng-get-and-update-state(), delta=3\n"
                  "  b = u64[2] rng-get-and-update-state(), delta=5, control-predecessors={a}")
    a, b = interpret(text)
    real_xla.same(a, real_xla.run(module([], "u64[2] rng-get-and-update-state(), delta=3")))
    assert list(b - a) == [3, 0]


# --- transforms ---

@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 30, 61, 67, 97, 128, 210, 251, 509, 1000, 1009, 2018])
@pytest.mark.parametrize("wide", [False, True])
def test_fft_of_any_length(n, wide):
    c, f = ("c128", "f64") if wide else ("c64", "f32")
    half, tolerance = n // 2 + 1, 2e-15 if wide else 2e-7
    x, real = draw(c, (3, n)), draw(f, (3, n))
    cases = [("FFT", c, n, c, n, x, np.fft.fft(x.astype("c16"))), ("IFFT", c, n, c, n, x, np.fft.ifft(x.astype("c16"))),
             ("RFFT", f, n, c, half, real, np.fft.rfft(real.astype("f8"))),
             ("IRFFT", c, half, f, n, x[:, :half].copy(), np.fft.irfft(x[:, :half].astype("c16"), n))]
    for kind, in_type, n_in, out_type, n_out, arg, want in cases:
        text = module([shape(in_type, (3, n_in))],
                      f"{shape(out_type, (3, n_out))} fft(p0), fft_type={kind}, fft_length={{{n}}}")
        real_xla.close(interpret(text, arg), [want.astype(TYPES[out_type])], tolerance * max(1, np.log2(n)), (kind, n))


@pytest.mark.parametrize("dims", [(4, 6), (3, 5), (2, 3, 4), (5, 1, 7)])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_fft_of_several_dimensions_is_xlas(dims, kind):
    half = dims[:-1] + (dims[-1] // 2 + 1,)
    real_in, real_out = kind == "RFFT", kind == "IRFFT"
    in_type, in_dims = ("f32", dims) if real_in else ("c64", half if real_out else dims)
    out_type, out_dims = ("f32", dims) if real_out else ("c64", half if real_in else dims)
    text = module([shape(in_type, (2,) + in_dims)], f"{shape(out_type, (2,) + out_dims)} fft(p0), fft_type={kind}, "
                  f"fft_length={{{','.join(map(str, dims))}}}")
    x = draw(in_type, (2,) + in_dims)
    real_xla.close(interpret(text, x), real_xla.run(text, x), 1e-6)


def test_fft_of_no_elements():
    text = module(["c64[0,4]"], "c64[0,4] fft(p0), fft_type=FFT, fft_length={4}")
    assert np.asarray(interpret(text, np.zeros((0, 4), np.complex64))).shape == (0, 4)


# --- linear algebra ---

def positive_definite(dtype, n, seed=0):
    a = draw("c128" if dtype[0] == "c" else "f64", (2, n, n), seed)
    return (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(TYPES[dtype])


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 33])
def test_cholesky_is_xlas(dtype, lower, n):
    text = module([shape(dtype, (2, n, n))], f"{shape(dtype, (2, n, n))} cholesky(p0), lower={lower}")
    a = positive_definite(dtype, n)
    real_xla.close(interpret(text, a), real_xla.run(text, a), EPSILON[dtype] * 4)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_cholesky_of_narrow_types_rounds_once(dtype):
    text = module([shape(dtype, (2, 4, 4))], f"{shape(dtype, (2, 4, 4))} cholesky(p0), lower=true")
    a = positive_definite(dtype, 4)
    want = np.linalg.cholesky(a.astype(np.float64)).astype(a.dtype)
    real_xla.same(interpret(text, a), [want])


@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_reads_one_triangle_and_gives_nan_where_not_definite(lower):
    text = module(["f32[4,2,2]"], f"f32[4,2,2] cholesky(p0), lower={lower}")
    a = np.array([[[4, 1], [2, 5]], [[1, 2], [2, 1]], [[np.nan, 0], [0, 1]], [[0, 0], [0, 1]]], np.float32)
    got, want = np.asarray(interpret(text, a)), real_xla.run(text, a)[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert np.isnan(got[1:]).all()


@pytest.mark.parametrize("dtype", ["f32", "c64", "f64", "c128"])
def test_triangular_solve_is_xlas(dtype):
    for left, lower, unit, transpose in itertools.product(("true", "false"), ("true", "false"), ("true", "false"),
                                                          ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")):
        side = (5, 3) if left == "true" else (3, 5)
        a = (draw(dtype, (2, 5, 5)) / 4 + 3 * np.eye(5)).astype(TYPES[dtype])
        b = draw(dtype, (2,) + side, 1)
        text = module([shape(dtype, a.shape), shape(dtype, b.shape)],
                      f"{shape(dtype, b.shape)} triangular-solve(p0, p1), left_side={left}, lower={lower}, "
                      f"unit_diagonal={unit}, transpose_a={transpose}")
        real_xla.close(interpret(text, a, b), real_xla.run(text, a, b), EPSILON[dtype], (left, lower, unit, transpose))


# --- normalisation ---

@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("feature", [0, 1, 2])
def test_batch_norms_are_xlas(dtype, feature):
    x, g = draw(dtype, (4, 5, 6)), draw(dtype, (4, 5, 6), 1)
    scale, offset, mean = (draw(dtype, (x.shape[feature],), s) for s in (2, 3, 4))
    variance = np.abs(draw(dtype, (x.shape[feature],), 5)) + np.asarray(0.5, x.dtype)
    full, per = shape(dtype, x.shape), shape(dtype, scale.shape)
    tail = f", epsilon=0.001, feature_index={feature}"
    cases = [("batch-norm-training", (x, scale, offset), f"({full}, {per}, {per})"),
             ("batch-norm-inference", (x, scale, offset, mean, variance), full),
             ("batch-norm-grad", (x, scale, mean, variance, g), f"({full}, {per}, {per})")]
    for opcode, args, result in cases:
        text = module([shape(dtype, a.shape) for a in args],
                      f"{result} {opcode}({', '.join(f'p{i}' for i in range(len(args)))}){tail}")
        real_xla.close(interpret(text, *args), real_xla.run(text, *args), EPSILON[dtype] * 20, opcode)


# --- control flow ---

LOOP = """
more { s = (s32[], f32[N]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(TRIPS)
  ROOT c = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[N]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[N] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[] convert(i)
  u = f32[1] reshape(x)
  k = s32[] remainder(i, size)
  w = f32[N] dynamic-update-slice(v, u, k)
  ROOT t = (s32[], f32[N]) tuple(j, w) }
"""


def loop(n, trips):
    helpers = LOOP.replace("TRIPS", str(trips)).replace("N]", f"{n}]").replace("  k =", f"  size = s32[] constant({n})\n  k =")
    return module([f"f32[{n}]"], f"(s32[], f32[{n}]) while(t), condition=more, body=step",
                  f"  z = s32[] constant(0)\n  t = (s32[], f32[{n}]) tuple(z, p0)", helpers=helpers)


def test_while_is_xlas():
    text, x = loop(7, 12), draw("f32", (7,))
    real_xla.same(interpret(text, x), real_xla.run(text, x))


def test_while_updates_its_state_in_place():
    """A loop over a big state with small updates takes time and memory by the updates, not by the state."""
    text, x = loop(2_000_000, 3000), np.zeros(2_000_000, np.float32)
    n, v = interpret(text, x)  # copying the state would move 24 GB
    assert n == 3000 and v[2999] == 2999 and x[1] == 0


def test_while_that_never_runs_gives_its_operand():
    text, x = loop(3, 0), draw("f32", (3,))
    real_xla.same(interpret(text, x), [np.int32(0), x])


BRANCHES = """
b0 { a = f32[2] parameter(0)
  ROOT n = f32[2] negate(a) }
b1 { a = f32[2] parameter(0)
  ROOT n = f32[2] add(a, a) }
b2 { a = (f32[2], f32[]) parameter(0)
  ROOT n = f32[2] get-tuple-element(a), index=0 }
"""


@pytest.mark.parametrize("index", [-5, -1, 0, 1, 2, 3, 2**31 - 1])
def test_conditional_by_index(index):
    text = module(["s32[]", "f32[2]"], "f32[2] conditional(p0, p1, p1, t), branch_computations={b0, b1, b2}",
                  "  k = f32[] constant(3)\n  t = (f32[2], f32[]) tuple(p1, k)", helpers=BRANCHES)
    x = draw("f32", (2,))
    real_xla.same(interpret(text, np.int32(index), x), real_xla.run(text, np.int32(index), x))


@pytest.mark.parametrize("flag", [True, False])
def test_conditional_by_flag(flag):
    text = module(["pred[]", "f32[2]"], "f32[2] conditional(p0, p1, p1), true_computation=b0, false_computation=b1",
                  helpers=BRANCHES)
    x = draw("f32", (2,))
    real_xla.same(interpret(text, np.bool_(flag), x), real_xla.run(text, np.bool_(flag), x))


def test_conditional_runs_the_taken_branch_only():
    helpers = BRANCHES + 'bad { a = f32[2] parameter(0)\n  ROOT n = f32[2] custom-call(a), custom_call_target="nobody" }'
    text = module(["pred[]", "f32[2]"], "f32[2] conditional(p0, p1, p1), true_computation=b0, false_computation=bad",
                  helpers=helpers)
    interpret(text, np.bool_(True), np.zeros(2, np.float32))
    with pytest.raises(xlac.Error, match="nobody"):
        interpret(text, np.bool_(False), np.zeros(2, np.float32))


@pytest.mark.parametrize("form", ["call(p0), to_apply=b1", "fusion(p0), kind=kLoop, calls=b1"])
def test_calls(form):
    x = draw("f32", (2,))
    real_xla.same(interpret(module(["f32[2]"], "f32[2] " + form, helpers=BRANCHES), x), [x + x])


# --- async ---

def test_generic_async_runs_in_order():
    x = draw("f32", (2,))
    text = module(["f32[2]"], "f32[2] async-done(u)", "  s = ((f32[2]), f32[2], u32[]) async-start(p0), calls=b1\n"
                  "  u = ((f32[2]), f32[2], u32[]) async-update(s)", helpers=BRANCHES)
    real_xla.same(interpret(text, x), [x + x])


def test_async_sugar_and_first_class_pairs():
    x = draw("f32", (2,))
    cases = [("f32[2] tanh-done(s)", "  s = ((f32[2]), f32[2], u32[]) tanh-start(p0)", None),
             ("f32[2] copy-done(s)", "  s = (f32[2], f32[2], u32[]) copy-start(p0)", x),
             ("f32[2] all-gather-done(s)",
              "  s = (f32[2], f32[2]) all-gather-start(p0), replica_groups={{0}}, dimensions={0}", x),
             ("f32[2] collective-permute-done(s)",
              "  s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(p0), source_target_pairs={{0,0}}", x),
             ("f32[2] all-reduce-done(s)", "  s = f32[2] all-reduce-start(p0), replica_groups={}, to_apply=sum", x)]
    helpers = "sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }"
    for root, before, want in cases:
        got = np.asarray(interpret(module(["f32[2]"], root, before, helpers=helpers), x))
        np.testing.assert_allclose(got, np.tanh(x) if want is None else want, rtol=1e-6)


# --- collectives of one participant ---

SUM = "sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }"
ALONE = [("f32[4] all-reduce(p0), replica_groups={}, to_apply=sum", "same"),
         ("(f32[4], f32[4]) all-reduce(p0, p0), replica_groups={{0}}, to_apply=sum", "both"),
         ("f32[4] all-gather(p0), replica_groups={{0}}, dimensions={0}", "same"),
         ("f32[4] all-to-all(p0), replica_groups={{0}}, dimensions={0}", "same"),
         ("f32[4] reduce-scatter(p0), replica_groups={{0}}, dimensions={0}, to_apply=sum", "same"),
         ("f32[4] collective-broadcast(p0), replica_groups={{0}}", "same"),
         ("f32[4] collective-permute(p0), source_target_pairs={{0,0}}", "same"),
         ("f32[4] collective-permute(p0), source_target_pairs={}", "zeros")]


@pytest.mark.parametrize("root,want", ALONE)
def test_collectives_alone(root, want):
    x = draw("f32", (4,))
    got = real_xla.leaves(interpret(module(["f32[4]"], root, helpers=SUM), x))
    for leaf in got:
        np.testing.assert_array_equal(leaf, np.zeros_like(x) if want == "zeros" else x)
    assert len(got) == (2 if want == "both" else 1)


@pytest.mark.parametrize("root", ["f32[4] all-reduce(p0), replica_groups={}, to_apply=sum",
                                  "f32[4] all-reduce(p0), replica_groups={{0,1}}, to_apply=sum",
                                  "f32[8] all-gather(p0), replica_groups=[1,2]<=[2], dimensions={0}",
                                  "f32[4] collective-permute(p0), source_target_pairs={{0,1},{1,0}}"])
def test_collectives_of_more_say_how_many_they_need(root):
    text = module(["f32[4]"], root, helpers=SUM, header=", replica_count=2")
    with pytest.raises(xlac.Error, match="needs 2 participants"):
        interpret(text, np.zeros(4, np.float32))


def test_collective_permute_in_place():
    text = module(["f32[2,4]", "f32[4,4]", "s32[]", "s32[]"],
                  "f32[4,4] collective-permute(p0, p1, i, j), source_target_pairs={{0,0}}, slice_sizes={{1,3}}",
                  "  i = (s32[], s32[]) tuple(p2, p3)\n  j = (s32[], s32[]) tuple(p3, p2)")
    x, y = draw("f32", (2, 4)), draw("f32", (4, 4), 1)
    want = y.copy()
    want[0, 1:4] = x[1, 0:3]
    real_xla.same(interpret(text, x, y, np.int32(1), np.int32(0)), [want])


def test_ragged_all_to_all_alone():
    text = module(["f32[8]", "f32[8]"] + ["s64[1]"] * 4,
                  "f32[8] ragged-all-to-all(p0, p1, p2, p3, p4, p5), replica_groups={{0}}")
    x, y = draw("f32", (8,)), draw("f32", (8,), 1)
    want = y.copy()
    want[1:4] = x[2:5]
    numbers = [np.array([v], np.int64) for v in (2, 3, 1, 3)]
    real_xla.same(interpret(text, x, y, *numbers), [want])
    numbers[1][0] = numbers[3][0] = 7
    with pytest.raises(xlac.Error, match="does not fit"):
        interpret(text, x, y, *numbers)


@pytest.mark.parametrize("before,root", [
    ("", "((f32[2]), token[]) infeed(t)"), ("", "token[] outfeed(p0, t), outfeed_shape=f32[2]{0}"),
    ("  s = (f32[2], u32[], token[]) send(p0, t), channel_id=1", "token[] send-done(s), channel_id=1"),
    ("  s = (f32[2], u32[], token[]) recv(t), channel_id=1", "(f32[2], token[]) recv-done(s), channel_id=1")])
def test_ops_without_a_peer_say_so(before, root):
    with pytest.raises(xlac.Error, match="the interpreter has none"):
        interpret(module(["f32[2]"], root, "  t = token[] after-all()\n" + before), np.zeros(2, np.float32))


# --- custom calls ---

def test_unknown_custom_call_says_how_to_register():
    with pytest.raises(xlac.Error) as e:
        interpret(module(["f32[2]"], 'f32[2] custom-call(p0), custom_call_target="mine"'), np.zeros(2, np.float32))
    assert "mine" in str(e.value) and "register" in e.value.hint and e.value.op == "r" and e.value.line > 0


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
                                    "annotate_device_placement", "MoveToHost", "MoveToDevice"])
def test_markers_pass_their_operand_on(target):
    x = draw("f32", (2,))
    text = module(["f32[2]"], f'f32[2] custom-call(p0), custom_call_target="{target}"')
    real_xla.same(interpret(text, x), real_xla.run(text, x))


@pytest.mark.parametrize("k", [0, 1, 3, 5])
def test_topk_custom_call_is_xlas(k):
    text = module(["f32[3,5]"], f'(f32[3,{k}], s32[3,{k}]) custom-call(p0), custom_call_target="TopK"')
    x = np.array([[1, np.nan, 3, 3, -np.nan], [-0.0, 0.0, -np.inf, np.inf, 0], [5, 4, 3, 2, 1]], np.float32)
    got = interpret(text, x)
    if k:
        real_xla.same(got, real_xla.run(text, x))
    else:
        assert [v.shape for v in real_xla.leaves(got)] == [(3, 0), (3, 0)]


# --- shuffle (newer XLA; jaxlib 0.10.2 has no such op) ---

def test_shuffle_rotates():
    x = draw("f32", (2, 5))
    text = module(["f32[2,5]"], "f32[2,5] shuffle(p0), dimensions={0,1}, mode=rotate, shifts={1,-2}")
    real_xla.same(interpret(text, x), [np.roll(x, (-1, 2), (0, 1))])


def test_shuffle_permutes():
    x = draw("f32", (3, 2))
    text = module(["f32[3,2]"],
                  "f32[3,2] shuffle(p0), dimensions={0}, mode=permute, indices=s32[3,1]{1,0} { {2}, {0}, {1} }")
    real_xla.same(interpret(text, x), [x[[2, 0, 1]]])
    text = module(["f32[3,2]"], "f32[3,2] shuffle(p0), dimensions={1,0}, mode=permute, "
                  "indices=s32[3,2,2]{2,1,0} { { {0,2}, {1,0} }, { {0,0}, {1,2} }, { {0,1}, {1,1} } }")
    real_xla.same(interpret(text, x), [np.array([[x[2, 0], x[0, 1]], [x[0, 0], x[2, 1]], [x[1, 0], x[1, 1]]])])
