"""Heads in groups that share one head of keys: scores are made in the order in which a program has them, and attention is one kernel, forward and back.
Products by themselves whose results or operands are moved give the interpreter's integers, whatever is moved instead."""
import ml_dtypes
import numpy as np
import pytest

import gpu
import xlac


@pytest.fixture(autouse=True)
def device():
    gpu.use()


def text(dims):
    return ",".join(map(str, dims))


def line(rng, i):
    """Two products of integers and what they become: groups' scores, moved, and a product of scores that are moved; dimensions in any order."""
    b, k, t, s, g, d = (int(n) for n in (rng.integers(1, 4), rng.integers(2, 4), rng.integers(9, 14), rng.integers(9, 14), rng.integers(2, 4), rng.integers(1, 5)))
    sizes = {"b": b, "k": k, "t": t, "s": s, "g": g, "d": d}

    def shuffled(names):
        return "".join(rng.permutation(list(names)))

    def shape(names):
        return f"s32[{text(sizes[n] for n in names)}]"

    def dot(name, left, right, batch, terms):
        (a, x), (c, y) = left, right
        lists = [f"{side}_{kind}_dims={{{text(names.index(n) for n in of)}}}" for kind, of in (("batch", batch), ("contracting", terms))
                 for side, names in (("lhs", x), ("rhs", y))]
        made = batch + "".join(n for n in x if n not in batch + terms) + "".join(n for n in y if n not in batch + terms)
        return f" {name} = {shape(made)} dot({a}, {c}), {', '.join(lists)}\n", made

    def swapped(pair):
        return pair if rng.random() < 0.5 else pair[::-1]

    q, key, v, p = shuffled("btgkd"), shuffled("bskd"), shuffled("bskd"), shuffled("bkgts")
    lines = [f" q{i} = {shape(q)} parameter({4 * i})\n", f" k{i} = {shape(key)} parameter({4 * i + 1})\n", f" v{i} = {shape(v)} parameter({4 * i + 2})\n",
             f" p{i} = {shape(p)} parameter({4 * i + 3})\n"]
    made, order = dot(f"m{i}", *swapped([(f"q{i}", q), (f"k{i}", key)]), shuffled("bk"), "d")
    lead = rng.permutation(list(order[:-1] if order[-1] == "s" else order.replace("s", "")))
    to = "".join(lead) + "s" if rng.random() < 0.8 else shuffled(order)
    scaled = rng.random() < 0.5
    lines += [made, *([f" c{i} = s32[] constant(3)\n", f" cb{i} = {shape(order)} broadcast(c{i}), dimensions={{}}\n",
                       f" ms{i} = {shape(order)} multiply({', '.join(swapped([f'm{i}', f'cb{i}']))})\n"] if scaled else []),
              f" x{i} = {shape(to)} transpose({'ms' if scaled else 'm'}{i}), dimensions={{{text(order.index(n) for n in to)}}}\n"]
    turned = shuffled(p) if rng.random() < 0.6 else p
    lines += [f" pt{i} = {shape(turned)} transpose(p{i}), dimensions={{{text(p.index(n) for n in turned)}}}\n"] if turned != p else []
    weights = (f"pt{i}" if turned != p else f"p{i}", turned)
    other, terms = ((f"v{i}", v), "s") if rng.random() < 0.5 else ((f"q{i}", q), shuffled("tg"))
    made, order = dot(f"o{i}", *swapped([weights, other]), shuffled("bk"), terms)
    return "".join(lines) + made, [shape(to), shape(order)], [f"x{i}", f"o{i}"], [[sizes[n] for n in names] for names in (q, key, v, p)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_moved_instead_the_numbers_are_the_same(seed):
    rng = np.random.default_rng(seed)
    parts = [line(rng, i) for i in range(24)]
    names, shapes = [n for part in parts for n in part[2]], [s for part in parts for s in part[1]]
    module = "HloModule m\nENTRY e {\n" + "".join(part[0] for part in parts) + f" ROOT r = ({', '.join(shapes)}) tuple({', '.join(names)})\n}}\n"
    exe = xlac.compile(module, device="cuda")
    args = [rng.integers(-9, 10, dims).astype(np.int32) for part in parts for dims in part[3]]
    for name, got, want in zip(names, exe(*args), xlac.interpret(module, *args)):
        assert np.array_equal(np.asarray(got), np.asarray(want)), name


B, T, K, G, D = 2, 64, 2, 3, 16
KERNELS = ("attention in one pass on tensor cores", "a product of scores computed again", "sums of scores computed again")


def layers():
    """Attention of [B, T, K G, D] queries and [B, T, K, D] keys as programs write it, and in how many kernels a mask's blocks are left out."""
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def weights(scores):
        hidden = jnp.where(jnp.tril(jnp.ones((T, T), bool)), scores.astype(jnp.float32) / 4, -1e9)
        return jax.nn.softmax(hidden).astype(jnp.bfloat16)

    def grouped(q, k, v):
        s = jnp.einsum("btkgd,bskd->bkgts", q.reshape(B, T, K, G, D), k)
        return jnp.einsum("bkgts,bskd->btkgd", weights(s), v).reshape(q.shape)

    def heads_first(q, k, v):
        q, k, v = q.reshape(B, T, K, G, D).transpose(0, 2, 3, 1, 4), k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3)
        o = jnp.einsum("bkgts,bksd->bkgtd", weights(jnp.einsum("bkgtd,bksd->bkgts", q, k)), v)
        return o.transpose(0, 3, 1, 2, 4).reshape(B, T, K * G, D)

    def repeated(q, k, v):
        k, v = (jnp.repeat(x, G, axis=2) for x in (k, v))
        return jnp.einsum("bhqk,bkhe->bqhe", weights(jnp.einsum("bqhe,bkhe->bhqk", q, k)), v)

    def of_jax(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    return {"grouped": grouped, "heads first": heads_first, "repeated": repeated, "of jax": of_jax}


def lowered(name, back):
    import jax

    attention, rng = layers()[name], np.random.default_rng(0)
    args = [rng.standard_normal(dims).astype(ml_dtypes.bfloat16) for dims in ((B, T, K * G, D), (B, T, K, D), (B, T, K, D), (B, T, K * G, D))]
    if not back:
        return jax.jit(attention).lower(*args[:3]).as_text(), args[:3]
    return jax.jit(lambda q, k, v, do: (attention(q, k, v), *jax.vjp(attention, q, k, v)[1](do))).lower(*args).as_text(), args


@pytest.mark.parametrize("name, back", [(name, back) for name in ("grouped", "heads first", "repeated", "of jax") for back in (False, True)])
def test_attention_of_groups_is_the_kernels(name, back):
    module, args = lowered(name, back)
    exe = xlac.compile(module, device="cuda")
    report = str(exe.explain("fusion"))
    assert [report.count(kind) for kind in KERNELS] == ([1, 3, 1] if back else [1, 0, 0]), report[:3000]
    assert report.count("last_column = ") == (4 if back else 1)  # what the mask hides is left out
    got, want = exe(*args), xlac.interpret(module, *args)
    for a, b in zip(got, want) if back else [(got, want)]:
        b = np.asarray(b).astype(np.float64)
        np.testing.assert_allclose(np.asarray(a).astype(np.float64), b, rtol=3e-2, atol=3e-2 * np.max(np.abs(b)))


def test_kernels_of_groups_become_machine_code(monkeypatch):
    import cubins
    import test_nvrtc

    monkeypatch.setenv("XLAC_CUBLASLT", "0")
    library = test_nvrtc.nvrtc()
    report = str(xlac.compile(lowered("grouped", True)[0], device="cuda").explain("fusion"))
    source = report[report.index("typedef signed char int8_t;"):].encode()
    for architecture in test_nvrtc.ARCHITECTURES:
        code, log = cubins.compiled(library, source, architecture)
        assert code and all(spills == 0 for _, _, spills, _ in cubins.kernels(log)), log


@pytest.mark.parametrize("algorithm, rounds", [("dot_bf16_bf16_f32", True), ("dot_f32_f32_f32", False)])
@pytest.mark.parametrize("side", [0, 1])
def test_f32_beside_bf16_is_rounded_where_the_algorithm_says_so(algorithm, rounds, side):
    """To the bit: the terms are few, and small whole numbers but for what is rounded away."""
    rng = np.random.default_rng(side)
    wide = rng.integers(-8, 9, (16, 32)).astype(np.float32) + np.float32(2**-12)
    narrow = rng.integers(-8, 9, (32, 16)).astype(ml_dtypes.bfloat16)
    types, args = ("f32[16,32]", "bf16[32,16]"), (wide, narrow)
    if side:
        types, args = ("bf16[16,32]", "f32[32,16]"), (narrow.T.copy(), wide.T.copy())
    module = f"""HloModule m
ENTRY e {{ a = {types[0]} parameter(0)
 b = {types[1]} parameter(1)
 ROOT c = f32[16,16] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={algorithm} }}"""
    used = [x.astype(ml_dtypes.bfloat16).astype(np.float64) if rounds else x.astype(np.float64) for x in args]
    assert np.array_equal(xlac.compile(module, device="cuda")(*args), (used[0] @ used[1]).astype(np.float32))
