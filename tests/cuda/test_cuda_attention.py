"""Attention as one kernel: what is recognised, what is not, and that it computes what the ops do."""
import re

import ml_dtypes
import numpy as np
import pytest

import gpu
import xlac

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64, "pred": np.bool_}
HEAD = """HloModule m
add_f32 { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
max_T { a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT c = T[] maximum(a, b) }
ENTRY e {
"""


@pytest.fixture(autouse=True)
def device():
    gpu.use()


def text(dims):
    return ",".join(map(str, dims))


def softmax(x, t, dims, least="-inf", clamp=False):
    """Rows of x by their last dimension, as JAX writes it: a sum of narrow floats is of f32."""
    whole, rows, by = f"{t}[{text(dims)}]", f"{t}[{text(dims[:-1])}]", f"dimensions={{{text(range(len(dims) - 1))}}}"
    wide, last = f"f32[{text(dims)}]", f"dimensions={{{len(dims) - 1}}}"
    return [f"least = {t}[] constant({least})", "none = f32[] constant(0)", f"m0 = {rows} reduce({x}, least), {last}, to_apply=max_{t}",
            *([f"ml = {rows} broadcast(least), dimensions={{}}", f"m = {rows} maximum(ml, m0)"] if clamp else [f"m = {rows} copy(m0)"]),
            f"mb = {whole} broadcast(m), {by}", f"less = {whole} subtract({x}, mb)", f"e = {whole} exponential(less)", f"ew = {wide} convert(e)",
            f"sw = f32[{text(dims[:-1])}] reduce(ew, none), {last}, to_apply=add_f32", f"s = {rows} convert(sw)", f"sb = {whole} broadcast(s), {by}",
            f"w = {whole} divide(e, sb)"]


def program(t, *, batch=(2, 3), rows=40, keys=70, depth=24, width=40, scores="f32", between=(), x="p", arguments=(), out=None, **how):
    """q k^T, whose result is p, the lines `between`, and the softmax of x times v. `arguments` are types of more parameters."""
    n = len(batch)
    b = f"lhs_batch_dims={{{text(range(n))}}}, rhs_batch_dims={{{text(range(n))}}}, "
    shape = text((*batch, rows, keys))
    lines = [f"q = {t}[{text((*batch, rows, depth))}] parameter(0)", f"k = {t}[{text((*batch, keys, depth))}] parameter(1)",
             f"v = {t}[{text((*batch, keys, width))}] parameter(2)", *(f"a{i} = {a} parameter({3 + i})" for i, a in enumerate(arguments)),
             f"p = {scores}[{shape}] dot(q, k), {b}lhs_contracting_dims={{{n + 1}}}, rhs_contracting_dims={{{n + 1}}}",
             *(line.replace("SHAPE", shape) for line in between), *softmax(x, scores, (*batch, rows, keys), **how), f"wt = {t}[{shape}] convert(w)",
             f"ROOT o = {out or t}[{text((*batch, rows, width))}] dot(wt, v), {b}lhs_contracting_dims={{{n + 1}}}, rhs_contracting_dims={{{n}}}"]
    return HEAD.replace("_T", f"_{scores}").replace(" T", f" {scores}") + "".join(f" {line}\n" for line in lines) + "}\n"


def values(exe, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.random(x.shape) < 0.7 if x.dtype == "pred" else rng.standard_normal(x.shape).astype(TYPES[x.dtype]) for x in exe.inputs]


def check(module, near, args=None, one=True, **options):
    exe = xlac.compile(module, device="cuda", **options)
    assert ("attention in one pass" in exe.explain("fusion")) == one
    args = args or values(exe)
    with np.errstate(all="ignore"):
        want = np.asarray(xlac.interpret(module, *args)).astype(np.float64)
    np.testing.assert_allclose(np.asarray(exe(*args)).astype(np.float64), want, rtol=near, atol=near)
    return exe


SCALED = ("c = f32[] constant(0.25)", "cb = f32[SHAPE] broadcast(c), dimensions={}", "x = f32[SHAPE] multiply(p, cb)")
CAUSAL = ("i = s32[40,70] iota(), iota_dimension=0", "j = s32[40,70] iota(), iota_dimension=1", "ge = pred[40,70] compare(i, j), direction=GE",
          "g = pred[SHAPE] broadcast(ge), dimensions={2,3}", "hidden = f32[] constant(-inf)", "hb = f32[SHAPE] broadcast(hidden), dimensions={}",
          "y = f32[SHAPE] select(g, x, hb)")
NEAR = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}


@pytest.mark.parametrize("t", ["f32", "f16", "bf16"])
def test_scores_alone_and_scaled_and_causal(t):
    check(program(t), NEAR[t])
    exe = check(program(t, between=SCALED + CAUSAL, x="y"), NEAR[t])
    assert ("on tensor cores" in exe.explain("fusion")) == (t != "f32")
    assert "program e, 0 bytes of frame" in exe.explain("fusion")  # no scores in memory
    assert "attention.1  attention" in str(exe.profile(*values(exe)))


def hides(rows, keys, mask, hidden):
    """x = select(mask, scaled scores, hidden), where `mask` is lines of which the last one is "ge": of i, the row, and j, the key."""
    pairs = f"{rows},{keys}"
    return (
        f"i = s32[{pairs}] iota(), iota_dimension=0",
        f"j = s32[{pairs}] iota(), iota_dimension=1",
        *(line.replace("PAIRS", pairs) for line in mask),
        "g = pred[SHAPE] broadcast(ge), dimensions={1,2}",
        f"hidden = f32[] constant({hidden})",
        "hb = f32[SHAPE] broadcast(hidden), dimensions={}",
        "y = f32[SHAPE] select(g, x, hb)",
    )


FAR = ("n = s32[] constant(NUMBER)", "nb = s32[PAIRS] broadcast(n), dimensions={}")
MASKS = {
    "causal": ("ge = pred[PAIRS] compare(i, j), direction=GE",),
    "causal as floats": (
        "fi = f32[PAIRS] convert(i)",
        "fj = f32[PAIRS] convert(j)",
        "lt = pred[PAIRS] compare(fi, fj), direction=LT",
        "ge = pred[PAIRS] not(lt)",
    ),
    "later keys": ("ge = pred[PAIRS] compare(i, j), direction=LE",),
    "a window": (
        *(line.replace("NUMBER", "20") for line in FAR),
        "d = s32[PAIRS] subtract(i, j)",
        "near = pred[PAIRS] compare(d, nb), direction=LT",
        "before = pred[PAIRS] compare(d, zb), direction=GE",
        "ge = pred[PAIRS] and(near, before)",
    ),
    "rows without keys": (
        *(line.replace("NUMBER", "70") for line in FAR),
        "k70 = s32[PAIRS] add(j, nb)",
        "ge = pred[PAIRS] compare(i, k70), direction=GE",
    ),
}
ZERO = ("z = s32[] constant(0)", "zb = s32[PAIRS] broadcast(z), dimensions={}")


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("hidden", ["-inf", "-1e9", "-3"])
def test_keys_that_a_mask_hides_are_left_out_where_that_changes_nothing(mask, hidden):
    """-3 is no less than some scores: hidden keys have weights then. So have those of rows that see none."""
    module = program("bf16", batch=(1,), rows=130, keys=200, between=SCALED + hides(130, 200, ZERO + MASKS[mask], hidden), x="y")
    exe = check(module, NEAR["bf16"])
    assert "last_column" in exe.explain("fusion")


@pytest.mark.parametrize("numerics", ["strict", "fast"])
def test_hidden_values_that_are_no_numbers(numerics):
    """0 times inf is NaN, as the program has it; fast numerics need not see what no row asks for, and don't go there."""
    module = program("f16", batch=(1,), rows=64, keys=200, between=SCALED + hides(64, 200, ZERO + MASKS["causal"], "-inf"), x="y")
    exe = xlac.compile(module, device="cuda", numerics=numerics)
    args = values(exe)
    args[2][0, 150] = np.inf
    got = np.asarray(exe(*args)).astype(np.float32)
    assert np.all(np.isnan(got)) if numerics == "strict" else np.all(np.isfinite(got))


def test_masks_that_lie_in_memory_hide_no_block():
    between = (*SCALED, "far = f32[] constant(-1e9)", "fb = f32[SHAPE] broadcast(far), dimensions={}", "y = f32[SHAPE] select(a0, x, fb)")
    exe = check(program("f16", between=between, x="y", arguments=("pred[2,3,40,70]",)), NEAR["f16"])
    assert "last_column" not in exe.explain("fusion")


def test_f32_on_tensor_cores_where_the_program_lets_it_be_rounded():
    exe = check(program("f32", between=SCALED, x="x"), 2e-2, numerics="fast")
    assert "on tensor cores" in exe.explain("fusion")


def test_masks_and_biases_that_lie_in_memory():
    """Of a batch's keys, of all pairs, and of a head."""
    between = (*SCALED, "kb = pred[SHAPE] broadcast(a0), dimensions={0,3}", "far = f32[] constant(-1e9)", "fb = f32[SHAPE] broadcast(far), dimensions={}",
               "y = f32[SHAPE] select(kb, x, fb)", "pb = f32[SHAPE] broadcast(a1), dimensions={2,3}", "z = f32[SHAPE] add(y, pb)",
               "hb = f32[SHAPE] broadcast(a2), dimensions={1}", "u = f32[SHAPE] multiply(z, hb)", "n = f32[SHAPE] add(u, a3)")
    check(program("bf16", between=between, x="n", arguments=("pred[2,70]", "f32[40,70]", "f32[3]", "f32[2,3,40,70]")), 3e-2)


def test_what_only_ops_outside_read_stays_outside():
    """A constant that a bias, which lies in memory, is bounded by."""
    between = ("c = f32[] constant(-1)", "cb = f32[SHAPE] broadcast(c), dimensions={}", "bias = f32[SHAPE] maximum(a0, cb)", "x = f32[SHAPE] add(p, bias)")
    check(program("f32", between=between, x="x", arguments=("f32[2,3,40,70]",)), 1e-5)


def test_computed_in_narrow_floats():
    """More bits are kept than the program asks for."""
    between = ("c = bf16[] constant(0.125)", "cb = bf16[SHAPE] broadcast(c), dimensions={}", "x = bf16[SHAPE] multiply(p, cb)")
    check(program("bf16", scores="bf16", between=between, x="x", clamp=True), 6e-2)
    check(program("f16", out="f32"), 4e-3)


def test_rows_without_a_number_and_numbers_that_are_none():
    """A row of -inf is NaN, NaN and inf spread over their row alone; the largest comes last, or has passed long ago."""
    module = program("f32", batch=(2,), arguments=("f32[2,40,70]",), between=("x = f32[SHAPE] add(p, a0)",), x="x")
    exe = xlac.compile(module, device="cuda")
    args = values(exe)
    bias = args[3]
    bias[0, 3] = -np.inf
    bias[0, 4, :69] = -np.inf
    bias[0, 5, 17] = np.nan
    bias[0, 6, 66] = np.inf
    bias[1, 7] = np.linspace(-300, 300, 70)
    bias[1, 8] = np.linspace(300, -300, 70)
    check(module, 1e-5, args)


@pytest.mark.parametrize("dims", [dict(batch=(), rows=16, keys=16, depth=1, width=1), dict(batch=(1, 5, 2), rows=17, keys=129, depth=48, width=16),
                                  dict(batch=(1,), rows=65, keys=33, depth=128, width=128), dict(batch=(3,), rows=64, keys=64, depth=64, width=64)])
@pytest.mark.parametrize("t", ["f32", "bf16"])
def test_sizes(dims, t):
    check(program(t, **dims), 3 * NEAR[t])


def test_operands_that_lie_otherwise():
    """Heads within rows, keys along memory, and weights as the right operand, as jax.nn.dot_product_attention has them."""
    lines = ["q = f16[2,40,3,32] parameter(0)", "k = f16[2,3,32,72] parameter(1)", "v = f16[2,72,3,24] parameter(2)",
             "p = f32[2,3,40,72] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}",
             "x = f32[1,2,3,40,72] reshape(p)", *softmax("x", "f32", (1, 2, 3, 40, 72)), "wt = f16[1,2,3,40,72] convert(w)",
             "ROOT o = f16[2,3,24,1,40] dot(v, wt), lhs_batch_dims={0,2}, rhs_batch_dims={1,2}, lhs_contracting_dims={1}, rhs_contracting_dims={4}"]
    check(HEAD.replace("_T", "_f32").replace(" T", " f32") + "".join(f" {line}\n" for line in lines) + "}\n", 4e-3)


def test_blocks_in_another_order(monkeypatch):
    driver = gpu_driver()
    for seed in (1, 2):
        driver.seed(seed)
        check(program("f16", between=SCALED + CAUSAL, x="y"), NEAR["f16"])
    driver.seed(0)
    assert driver.reports() == []


def gpu_driver():
    from simulator import xlac_driver

    return xlac_driver()


NOT = {
    "weights that somebody else reads": program("f32").replace("ROOT o =", "o =")[:-2] + " ROOT t = (f32[2,3,40,40], f32[2,3,40,70]) tuple(o, w)\n}\n",
    "a sum of something else": program("f32").replace("ew = f32[2,3,40,70] convert(e)", "ew = f32[2,3,40,70] multiply(e, e)"),
    "a maximum of something else": program("f32").replace("reduce(p, least)", "reduce(pp, least)").replace(" least = ", " pp = f32[2,3,40,70] negate(p)\n least = "),
    "a maximum that is bounded from below": program("f32", least="0"),
    "a sum that begins at one": program("f32").replace("none = f32[] constant(0)", "none = f32[] constant(1)"),
    "heads too wide for registers": program("f32", depth=136),
    "few queries": program("f32", rows=8),
    "f64": program("f64", scores="f64"),
    "a product of other sums": program("f32").replace("wt = f32[2,3,40,70] convert(w)", "wr = f32[2,3,40,70] reverse(w), dimensions={3}\n wt = f32[2,3,40,70] convert(wr)"),
    "scores that are moved": program("f32").replace("reduce(p, least)", "reduce(r, least)").replace("subtract(p, mb)", "subtract(r, mb)").replace(
        " least = ", " r = f32[2,3,40,70] reverse(p), dimensions={3}\n least = "),
}


@pytest.mark.parametrize("why", NOT)
def test_what_is_not_one_kernel(why):
    exe = xlac.compile(NOT[why], device="cuda")
    assert "attention in one pass" not in exe.explain("fusion")
    args = values(exe)
    want, got = xlac.interpret(NOT[why], *args), exe(*args)
    pairs = zip(got, want) if isinstance(got, (tuple, list)) else [(got, want)]
    for a, b in pairs:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)


def test_ops_one_by_one():
    check(program("f32"), 1e-5, one=False, fuse=False)


def test_two_of_them_one_after_the_other():
    """The second one's queries are the first one's result."""
    one = program("f32", batch=(2,), depth=24, width=24)
    head, body = one.split("ENTRY e {\n")
    lines = body.replace("ROOT ", "")[:-2].splitlines()
    again = re.sub(r"\b([a-z]\w*)(?= =|[,)])", r"\1.2", "\n".join(line for line in lines if "parameter(0)" not in line))
    again = again.replace("max_f32.2", "max_f32").replace("add_f32.2", "add_f32").replace("inf.2", "inf").replace("q.2", "o").replace(" o.2 =", " ROOT o.2 =")
    again = again.replace("parameter(1)", "parameter(3)").replace("parameter(2)", "parameter(4)")
    exe = check(head + "ENTRY e {\n" + "\n".join(lines) + "\n" + again + "\n}\n", 2e-5)
    assert exe.explain("fusion").count("attention in one pass") == 2


def test_memory_grows_with_the_length_alone():
    frames = []
    for n in (256, 1024):
        report = xlac.compile(program("bf16", rows=n, keys=n, between=SCALED, x="x"), device="cuda").explain("fusion")
        frames.append(report[report.index("program e, "):].split(" bytes of frame")[0])
    assert frames == ["program e, 0"] * 2
