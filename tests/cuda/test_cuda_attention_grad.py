"""Attention with its gradients: each product and sum of rows computes the scores again, and none of them is in memory."""
import itertools

import numpy as np
import pytest

import gpu
import xlac
from test_cuda_attention import HEAD, TYPES, softmax, text, values


@pytest.fixture(autouse=True)
def device():
    gpu.use()


def program(t, *, batch=(2, 3), rows=40, keys=70, depth=24, width=40, causal=False, bias=False, turned=False, end=""):
    """Attention and the gradients of a loss of which do is its result's, as JAX writes them. turned: operands of gradients change places."""
    n = len(batch)
    b = f"lhs_batch_dims={{{text(range(n))}}}, rhs_batch_dims={{{text(range(n))}}}, "
    shape, lines, whole, far = text((*batch, rows, keys)), text((*batch, rows)), f"f32[{text((*batch, rows, keys))}]", f"lhs_contracting_dims={{{n + 1}}}, rhs_contracting_dims="
    spread, near = f"dimensions={{{text(range(n + 1))}}}", f"lhs_contracting_dims={{{n}}}, rhs_contracting_dims={{{n}}}"
    wide = (lambda k: text((*batch, k)))

    def product(name, left, right, d):
        if turned:
            return f"{name} = {t}[{text((*batch, d[1], d[0]))}] dot({right}, {left}), {b}{near}"
        return f"{name} = {t}[{text((*batch, *d))}] dot({left}, {right}), {b}{near}"

    out = [f"q = {t}[{text((*batch, rows, depth))}] parameter(0)", f"k = {t}[{text((*batch, keys, depth))}] parameter(1)",
           f"v = {t}[{text((*batch, keys, width))}] parameter(2)", f"do = {t}[{text((*batch, rows, width))}] parameter(3)",
           *([f"a = f32[{rows},{keys}] parameter(4)"] if bias else []),
           f"p = f32[{shape}] dot(q, k), {b}{far}{{{n + 1}}}", "c = f32[] constant(0.25)", f"cb = {whole} broadcast(c), dimensions={{}}",
           f"sc = {whole} multiply(p, cb)", f"i = s32[{rows},{keys}] iota(), iota_dimension=0", f"j = s32[{rows},{keys}] iota(), iota_dimension=1",
           f"ge = pred[{rows},{keys}] compare(i, j), direction=GE", f"g = pred[{shape}] broadcast(ge), dimensions={{{n},{n + 1}}}",
           "hidden = f32[] constant(-1e9)", f"hb = {whole} broadcast(hidden), dimensions={{}}", "zero = f32[] constant(0)",
           f"zb = {whole} broadcast(zero), dimensions={{}}",
           *([f"ab = {whole} broadcast(a), dimensions={{{n},{n + 1}}}", f"sa = {whole} add(sc, ab)"] if bias else [f"sa = {whole} copy(sc)"]),
           f"x = {whole} select(g, sa, hb)" if causal else f"x = {whole} copy(sa)", *softmax("x", "f32", (*batch, rows, keys), clamp=True),
           f"wt = {t}[{shape}] convert(w)", f"o = {t}[{wide(rows)},{width}] dot(wt, v), {b}{far}{{{n}}}",
           f"dwt = {t}[{shape}] dot(do, v), {b}{far}{{{n + 1}}}", f"dw = {whole} convert(dwt)", f"wd = {whole} multiply(dw, w)",
           f"delta = f32[{lines}] reduce(wd, none), dimensions={{{n + 1}}}, to_apply=add_f32", f"db = {whole} broadcast(delta), {spread}",
           f"less2 = {whole} subtract(dw, db)", f"ds = {whole} multiply(less2, w)",
           f"dx = {whole} select(g, ds, zb)" if causal else f"dx = {whole} copy(ds)", f"dsc = {whole} multiply(dx, cb)", f"dp = {t}[{shape}] convert(dsc)",
           product("dv", "wt", "do", (keys, width)), product("dk", "dp", "q", (keys, depth)),
           f"dq = {t}[{wide(rows)},{depth}] dot(dp, k), {b}{far}{{{n}}}", end]
    dims = [(rows, width), (rows, depth), *([(depth, keys), (width, keys)] if turned else [(keys, depth), (keys, width)])]
    result = ", ".join(f"{t}[{text((*batch, *d))}]" for d in dims)
    names = "o, dq, dk, dv"
    if "more" in end:
        result, names = f"{result}, f32[{shape}]", f"{names}, more"
    return HEAD.replace("_T", "_f32").replace(" T", " f32") + "".join(f" {x}\n" for x in out if x) + f" ROOT r = ({result}) tuple({names})\n}}\n"


KERNELS = {"attention in one pass on tensor cores": 1, "a product of scores computed again": 3, "sums of scores computed again": 1}
NEAR = {"f16": 6e-3, "bf16": 5e-2, "f32": 2e-2}


def check(module, t, again=True, **options):
    exe = xlac.compile(module, device="cuda", **options)
    report = exe.explain("fusion")
    assert all((str(report).count(kind) == n) == again for kind, n in KERNELS.items()), report[:3000]
    args = values(exe)
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        want = np.asarray(want).astype(np.float64)
        np.testing.assert_allclose(np.asarray(got).astype(np.float64), want, rtol=NEAR[t], atol=NEAR[t] * np.max(np.abs(want)))
    return exe


@pytest.mark.parametrize("t", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_have_no_scores_in_memory(t, causal):
    exe = check(program(t, causal=causal, bias=causal), t, numerics="fast")
    report = str(exe.explain("fusion"))
    frame = int(report[report.index("program e, "):].split()[2])
    assert frame <= 4 * 3 * 6 * 40 + 3 * 64  # three numbers for each row


@pytest.mark.parametrize("dims", [dict(batch=(), rows=16, keys=16, depth=1, width=1), dict(batch=(5,), rows=70, keys=130, depth=16, width=48),
                                  dict(batch=(1,), rows=64, keys=64, depth=64, width=64), dict(batch=(1,), rows=33, keys=65, depth=128, width=128)])
@pytest.mark.parametrize("turned", [False, True])
def test_sizes(dims, turned):
    check(program("f16", turned=turned, **dims), "f16")


def test_memory_grows_with_the_length_alone():
    frames = []
    for n in (128, 512):
        report = str(xlac.compile(program("bf16", batch=(2,), rows=n, keys=n), device="cuda").explain("fusion"))
        frames.append(int(report[report.index("program e, "):].split()[2]))
    assert frames[1] == 4 * frames[0]


def test_blocks_in_another_order():
    from simulator import xlac_driver

    driver = xlac_driver()
    for seed in (1, 2):
        driver.seed(seed)
        check(program("f16", causal=True), "f16")
    driver.seed(0)
    assert driver.reports() == []


def test_what_spills_is_compiled_again_with_more_registers(tmp_path, monkeypatch):
    """Once, whether or not it spills then, too."""
    from simulator import xlac_driver

    monkeypatch.setenv("XLAC_CUDA_SIM_KEEP", str(tmp_path))
    monkeypatch.setenv("XLAC_CUDA_CACHE", "")
    counts = []
    for option in (None, b"-DBLOCKS=1", b"-DBLOCKS=2"):
        xlac_driver().library.cudasim_spills(option)
        check(program("f16", batch=(1,), rows=33, keys=48), "f16")
        counts.append(sum(", BLOCKS) k" in path.read_text() for path in tmp_path.glob("*.cu")))
        for path in tmp_path.glob("*.cu"):
            path.unlink()
    xlac_driver().library.cudasim_spills(None)
    assert counts[0] > 0 and counts[1:] == [2 * counts[0]] * 2


WHOLE = "f32[2,3,40,70]"
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("t", ["f16", "bf16"])
def test_what_a_mask_hides_is_left_out(t, turned):
    """Of queries' gradients keys, of keys' and values' queries; sums of rows go through all."""
    exe = check(program(t, batch=(1,), rows=130, keys=200, causal=True, turned=turned), t)
    assert exe.explain("fusion").count("last_column = ") == 4


@pytest.mark.parametrize("numerics", ["strict", "fast"])
def test_hidden_operands_that_are_no_numbers(numerics):
    """Query 5 sees no key behind it, and key 150 is seen by none: only fast numerics may forget that 0 times inf is NaN."""
    module = program("f16", batch=(1,), rows=64, keys=200, causal=True)
    exe = xlac.compile(module, device="cuda", numerics=numerics)
    args = values(exe)
    args[1][0, 150, 3] = np.inf
    dq = np.asarray(exe(*args)[1]).astype(np.float32)
    assert np.all(np.isnan(dq[0, :, 3])) if numerics == "strict" else np.all(np.isfinite(dq))


NOT = {
    "scores that are a result": program("bf16", end=f"more = {WHOLE} copy(x)"),
    "gradients that are moved": program("bf16", end=f"more = {WHOLE} reverse(dsc), dimensions={{3}}"),
    "heads too wide": program("bf16", depth=136),
    "few rows": program("bf16", rows=8),
}


@pytest.mark.parametrize("why", NOT)
def test_what_is_not_computed_again(why):
    check(NOT[why], "bf16", again=False)


def test_f32_that_may_not_be_rounded_is_not_computed_again():
    check(program("f32"), "f32", again=False)


def test_what_jax_makes_of_attention():
    """Two layers: what the first one's weights lead to goes through the second one's."""
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def layer(x, w):
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, p) for p in w)
        s = jnp.einsum("bqhe,bkhe->bhqk", q, k) / 4
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9).astype(jnp.float32)
        return x + jnp.einsum("bhqk,bkhe->bqhe", jax.nn.softmax(s).astype(x.dtype), v).reshape(x.shape)

    def loss(x, w):
        return jnp.sum(layer(layer(x, w[0]), w[1]).astype(jnp.float32) ** 2)

    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 48, 32)).astype(TYPES["bf16"])
    w = [[(rng.standard_normal((32, 2, 16)) / 8).astype(TYPES["bf16"]) for _ in range(3)] for _ in range(2)]
    module = jax.jit(jax.grad(loss, argnums=1)).lower(x, w).as_text()
    exe = xlac.compile(module, device="cuda")
    report = str(exe.explain("fusion"))
    counts = [sum(kind in line for line in report.splitlines()) for kind in KERNELS]
    assert counts[0] == 2 and counts[1] == 6 and counts[2] >= 2, report[:3000]
    args = [x, *itertools.chain(*w)]
    for got, want in zip(exe(*args), xlac.interpret(module, *args)):
        want = np.asarray(want).astype(np.float64)
        np.testing.assert_allclose(np.asarray(got).astype(np.float64), want, rtol=5e-2, atol=5e-2 * np.max(np.abs(want)))
