"""Products that go row by row with what stands around them: attention, layers with their activations, normalised inputs."""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import xlac

from .conftest import COMBINERS, leaves

TOGETHER = "products, tile by tile"


def near(got, want, bound):
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        g, w = g.astype(np.float64), w.astype(np.float64)
        assert np.array_equal(np.isnan(g), np.isnan(w))
        assert np.nanmax(np.abs(g - w), initial=0) <= bound * (np.nanmax(np.abs(w), initial=0) + 1)


def numbers(*shape, t=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(t)


def program(lines, **parameters):
    text = "".join(f"  {name} = {t} parameter({i})\n" for i, (name, t) in enumerate(parameters.items()))
    return f"HloModule m\n{COMBINERS}\nENTRY e {{\n{text}{lines}\n}}"


SOFTMAX = """
  lo = f32[] constant(-inf)
  z = f32[] constant(0)
  m = f32[{b},{h},{q}] reduce(s, lo), dimensions={{3}}, to_apply=mostf
  mb = f32[{b},{h},{q},{k}] broadcast(m), dimensions={{0,1,2}}
  d = f32[{b},{h},{q},{k}] subtract(s, mb)
  x = f32[{b},{h},{q},{k}] exponential(d)
  t = f32[{b},{h},{q}] reduce(x, z), dimensions={{3}}, to_apply=sumf
  tb = f32[{b},{h},{q},{k}] broadcast(t), dimensions={{0,1,2}}
  p = f32[{b},{h},{q},{k}] divide(x, tb)
"""
BATCHES = "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}"
SCORES = f"dot(a, c), {BATCHES}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}"
# How scores are made of the product s0, by name; `g` is one more argument.
MADE = {
    "plain": ("f32[1]", "  s = f32[{b},{h},{q},{k}] copy(s0)"),
    "scaled and biased": ("f32[{h},{q},{k}]", """
  eighth = f32[] constant(0.125)
  eighths = f32[{b},{h},{q},{k}] broadcast(eighth), dimensions={{}}
  se = f32[{b},{h},{q},{k}] multiply(s0, eighths)
  gb = f32[{b},{h},{q},{k}] broadcast(g), dimensions={{1,2,3}}
  s = f32[{b},{h},{q},{k}] add(se, gb)"""),
    "causal": ("f32[1]", """
  i = s32[{q},{k}] iota(), iota_dimension=0
  j = s32[{q},{k}] iota(), iota_dimension=1
  c0 = pred[{q},{k}] compare(i, j), direction=GE
  keep = pred[{b},{h},{q},{k}] broadcast(c0), dimensions={{2,3}}
  low = f32[] constant(-1e30)
  lows = f32[{b},{h},{q},{k}] broadcast(low), dimensions={{}}
  s = f32[{b},{h},{q},{k}] select(keep, s0, lows)"""),
    "masked to nothing": ("pred[{b},1,{q},{k}]", """
  g1 = pred[{b},{q},{k}] reshape(g)
  keep = pred[{b},{h},{q},{k}] broadcast(g1), dimensions={{0,2,3}}
  low = f32[] constant(-inf)
  lows = f32[{b},{h},{q},{k}] broadcast(low), dimensions={{}}
  s = f32[{b},{h},{q},{k}] select(keep, s0, lows)"""),
}


def attention(made, b, h, q, k, d):
    extra, lines = MADE[made]
    text = f"  s0 = f32[{{b}},{{h}},{{q}},{{k}}] {SCORES.replace('{', '{{').replace('}', '}}')}\n{lines}{SOFTMAX}"
    text = text.format(b=b, h=h, q=q, k=k) + f"  ROOT o = f32[{b},{h},{q},{d}] dot(p, v), {BATCHES}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{2}}"
    extra = extra.format(b=b, h=h, q=q, k=k)
    types = dict(a=f"f32[{b},{h},{q},{d}]", c=f"f32[{b},{h},{k},{d}]", v=f"f32[{b},{h},{k},{d}]", g=extra)
    shape = [int(n) for n in extra[extra.index("[") + 1:-1].split(",")]
    g = numbers(*shape, seed=4)
    return program(text, **types), (numbers(b, h, q, d), numbers(b, h, k, d, seed=1), numbers(b, h, k, d, seed=2), g > 1.5 if extra[0] == "p" else g)


# Few and many batches: operands are packed before, or as each range of rows begins; rows that no tile divides.
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("b, h, q, k, d", [(1, 3, 450, 700, 33), (2, 6, 197, 300, 64), (1, 9, 70, 1500, 32)])
def test_attention(both, made, b, h, q, k, d):
    text, arguments = attention(made, b, h, q, k, d)
    got, want, exe = both(text, *arguments)
    report = str(exe.explain("fusion"))
    assert f"{TOGETHER}" in report and "(s0, " not in report
    assert exe.memory["frame_bytes"] < 4 * b * h * q * k, "the scores are in no memory"
    near(got, want, 1e-5)


def test_attention_of_two_lines_is_not_one():
    """One query, as when text is made token by token: its product reads the keys once anyway, and the report says why it is alone."""
    text, arguments = attention("plain", 4, 8, 1, 600, 64)
    exe = xlac.compile(xlac.parse(text))
    assert "too few rows, columns or terms" in str(exe.explain("fusion")) and TOGETHER not in str(exe.explain("fusion"))
    near(leaves(exe(*arguments)), leaves(xlac.interpret(xlac.parse(text), *arguments)), 1e-5)


HEADS_INSIDE = """
import jax, jax.numpy as jnp
def flax(q, k, v):
    s = jnp.einsum("...qhd,...khd->...hqk", q / jnp.sqrt(64.0), k)
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, jnp.finfo(s.dtype).min)
    return jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(s.astype(jnp.float32)).astype(q.dtype), v)
def grouped(q, k, v):
    return flax(q, jnp.repeat(k[:, :, ::2], 2, 2), jnp.repeat(v[:, :, ::2], 2, 2))
def library(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)
def matmul(q, k, v):
    q, k, v = (t.transpose(0, 2, 1, 3) for t in (q, k, v))
    s = q @ k.swapaxes(-1, -2) * 0.125
    return (jax.nn.softmax(jnp.where(jnp.arange(s.shape[-1]) < 90, s, -1e9)) @ v).transpose(0, 2, 1, 3)
"""


@pytest.mark.parametrize("form", ["flax", "grouped", "library", "matmul"])
@pytest.mark.parametrize("t", [np.float32, ml_dtypes.bfloat16])
def test_attention_as_libraries_write_it(both, form, t):
    jax = pytest.importorskip("jax")
    names = {}
    exec(HEADS_INSIDE, names)
    arguments = [numbers(2, 400, 4, 64, t=t, seed=i) for i in range(3)]
    got, want, exe = both(jax.jit(names[form]).lower(*arguments).as_text(), *arguments)
    report = str(exe.explain("fusion"))
    assert TOGETHER in report, report
    near(got, want, 1e-5 if t == np.float32 else 2**-7)


LAYER = """
  ab = f32[{m},{n}] broadcast(bias), dimensions={{1}}
  y = f32[{m},{n}] dot(a, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  y1 = f32[{m},{n}] add(y, ab)
  y2 = f32[{m},{n}] tanh(y1)
  o = f32[{m},{k}] dot(y2, u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  {root} = f32[{m},{k}] add(o, a)
"""


@pytest.mark.parametrize("m, n, k", [(4000, 100, 64), (3000, 257, 70), (1000, 513, 200)])
@pytest.mark.parametrize("root, results", [("ROOT r", ""), ("r", "  ROOT all = (f32[{m},{k}], f32[{m},{n}], f32[{m},{n}]) tuple(r, y, y2)")])
def test_layers(both, m, n, k, root, results):
    """Bias, activation and residual; and the same where the values in between are results, too."""
    text = program((LAYER + results).format(m=m, n=n, k=k, root=root), a=f"f32[{m},{k}]", w=f"f32[{k},{n}]", bias=f"f32[{n}]", u=f"f32[{k},{n}]")
    got, want, exe = both(text, numbers(m, k), numbers(k, n, seed=1), numbers(n, seed=2), numbers(k, n, seed=3))
    assert TOGETHER in str(exe.explain("fusion"))
    near(got, want, 1e-5)


def test_a_donated_argument(both):
    """The result lies in the memory of what every row of the product's other operand is read from, or of what is read row by row."""
    for given in ("a", "w"):
        text = program("""
  y = f32[900,900] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[900,900] tanh(y)
  ROOT r = f32[900,900] add(t, GIVEN)""".replace("GIVEN", given), a="f32[900,900]", w="f32[900,900]")
        text = text.replace("HloModule m", f"HloModule m, input_output_alias={{ {{}}: ({int(given == 'w')}, {{}}, may-alias) }}")
        a, w = numbers(900, 900), numbers(900, 900, seed=1)
        want = np.tanh(a.astype(np.float64) @ w) + (a if given == "a" else w)
        module = xlac.parse(text)
        np.testing.assert_allclose(xlac.compile(module)(a.copy(), w.copy()), want, atol=1e-3)
        assert (TOGETHER in str(xlac.compile(module).explain("fusion"))) == (given == "a")


def test_products_that_nothing_links_stay_apart():
    text = program("""
  x = f32[2000,2000] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[2000,2000] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[2000,2000], f32[2000,2000]) tuple(x, y)""", a="f32[2000,64]", b="f32[2000,64]", w="f32[64,2000]")
    assert TOGETHER not in str(xlac.compile(xlac.parse(text)).explain("fusion"))


@pytest.mark.parametrize("m, together", [(256, False), (4000, True)])
def test_few_rows_of_a_large_weight_stay_apart(both, m, together):
    """Each tile would read the weight again, for less than it saves."""
    text = program(f"""
  x = f32[{m},1024] tanh(a)
  y = f32[{m},1024] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[{m},1024] tanh(y)""", a=f"f32[{m},1024]", w="f32[1024,1024]")
    got, want, exe = both(text, numbers(m, 1024), numbers(1024, 1024, seed=1) / 32)
    assert (TOGETHER in str(exe.explain("fusion"))) == together
    near(got, want, 1e-5)


def test_transposed_columns_of_a_tile(both):
    """What is made of the product reads other rows of it: they can't go together."""
    text = program("""
  y = f32[1500,1500] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1500,1500] transpose(y), dimensions={1,0}
  ROOT r = f32[1500,1500] add(t, y)""", a="f32[1500,64]", w="f32[64,1500]")
    got, want, exe = both(text, numbers(1500, 64), numbers(64, 1500, seed=1))
    assert TOGETHER not in str(exe.explain("fusion"))
    near(got, want, 1e-5)


LEVELS = """
import numpy as np, xlac, ml_dtypes
from tests.cpu.test_product_tiles import *
text, arguments = attention("causal", 2, 6, 197, 300, 64)
exe = xlac.compile(xlac.parse(text))
assert (TOGETHER in str(exe.explain("fusion"))) == ("LEVEL" != "portable")
near(leaves(exe(*arguments)), leaves(xlac.interpret(xlac.parse(text), *arguments)), 1e-5)
for k in (64, 77, 1030):
    for contracted, shape in ((0, (k, 70)), (1, (70, k))):
        for t, out, dtype, bound in (("bf16", "f32", ml_dtypes.bfloat16, 1e-5), ("bf16", "bf16", ml_dtypes.bfloat16, 2**-7), ("s8", "s32", np.int8, 0),
                                     ("u8", "s32", np.uint8, 0)):
            text = f"HloModule m\\nENTRY e {{ a = {t}[50,{k}] parameter(0)\\n b = {t}[{shape[0]},{shape[1]}] parameter(1)\\n"
            text += f"ROOT c = {out}[50,70] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracted}}} }}"
            a, b = ((20 * numbers(*s, seed=k)).astype(np.int8).astype(dtype) for s in ((50, k), shape))
            near(leaves(xlac.compile(xlac.parse(text))(a, b)), leaves(xlac.interpret(xlac.parse(text), a, b)), bound * 20)
"""


@pytest.mark.parametrize("level", ["amx", "avx512_bf16", "avx512_vnni", "avx512", "avx2", "portable"])
def test_lower_levels(level):
    """In a process that uses fewer instructions; without AVX2 nothing goes together, and results are right."""
    ran = subprocess.run([sys.executable, "-c", LEVELS.replace("LEVEL", level)], env=os.environ | {"XLAC_MAX_ISA": level}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
