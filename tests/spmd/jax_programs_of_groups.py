"""Writes jax_programs.jsonl.xz: JAX programs lowered for 2, 4 and 8 devices, and XLA's values.

  python tests/spmd/jax_programs_of_groups.py [NAME ...]     # those alone; all others stay

Each is lowered by jit with shardings or by shard_map; XLA runs it on as many virtual devices, and its values on all meshes agree. Arguments are not
stored: `arguments` makes them of their types."""
import base64
import functools
import json
import lzma
import os
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
MESHES = {2: (2, 1), 4: (2, 2), 8: (4, 2)}
PROGRAMS = []


def arguments(types):
    """Arrays for [(dtype, shape, most)]: numbers from -1 to 1, or integers from 0 to most."""
    made = []
    for k, (dtype, shape, most) in enumerate(types):
        i = np.arange(int(np.prod(shape)), dtype=np.uint64)
        x = ((i + np.uint64(1)) * np.uint64(2654435761) + np.uint64(k) * np.uint64(40503)) % np.uint64(1 << 32)
        x = (x ^ (x >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(1 << 32) >> np.uint64(8)
        values = x % np.uint64(most + 1) if most else x / 2.0**23 - 1
        made.append(values.reshape(shape).astype(dtype))
    return made


def program(*specs, most=None):
    """A program of arguments (shape, axes) or (shape, axes, dtype); `most` is for integers."""
    def add(f):
        PROGRAMS.append((f.__name__, f, specs, most or 7))
        return f
    return add


def define(jax, jnp, P):
    lax = jax.lax

    def constrain(x, mesh, *axes):
        return lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, P(*axes)))

    def norm(x):
        m = x.mean(-1, keepdims=True)
        return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)

    # --- elementwise, reductions, products ---
    @program(((16, 8), ("data", "model")), ((16, 8), ("data", None)))
    def elementwise(mesh, x, y):
        return jnp.tanh(x) * y + jnp.where(x > y, x, y)

    @program(((16, 8), ("data", "model")))
    def reductions(mesh, x):
        return x.sum(), x.max(0), x.min(1), x.mean(), jnp.argmax(x, 1), jnp.argmin(x, 0), x.prod(0), x.std(1)

    @program(((16, 8), ("data", "model")), ((8, 12), ("model", None)))
    def contraction(mesh, x, w):
        return x @ w

    @program(((16, 8), ("data", None)), ((8, 12), (None, "model")))
    def columns(mesh, x, w):
        return jax.nn.relu(x @ w)

    @program(((4, 8, 6), ("data", None, None)), ((4, 6, 8), ("data", None, "model")))
    def batched_dot(mesh, x, y):
        return jnp.einsum("bij,bjk->bik", x, y)

    @program(((16, 8), ("data", "model")))
    def transposes(mesh, x):
        return x.T, x.reshape(4, 4, 8).transpose(2, 0, 1), x.reshape(-1)

    @program(((16, 8), ("data", "model")), ((16, 8), (None, "model")))
    def concatenation(mesh, x, y):
        return jnp.concatenate([x, y], 0), jnp.concatenate([x, y], 1), jnp.stack([x, y])

    @program(((16, 8), ("data", "model")))
    def slices(mesh, x):
        return x[1:13:2, 2:7], x[::-1], jnp.roll(x, 3, 0), jnp.pad(x, ((1, 2), (0, 3)))

    @program(((16, 8), ("data", "model")), ((), (), "int32"))
    def dynamic_slices(mesh, x, i):
        return lax.dynamic_slice(x, (i, 0), (4, 8)), lax.dynamic_update_slice(x, jnp.ones((3, 2)), (i, 1))

    @program(((8,), ("data",)))
    def iotas(mesh, x):
        return x + jnp.arange(8), constrain(jnp.eye(8) * x, mesh, "data", "model"), jnp.linspace(0, 1, 8) * x

    @program(((10, 6), ("data", "model")))
    def uneven(mesh, x):
        y = constrain(x * 2, mesh, "model", "data")
        return (y @ y.T).sum(0), jnp.cumsum(y, 0)

    @program(((16, 8), ("data", "model")))
    def reshards(mesh, x):
        y = constrain(x, mesh, "model", "data")
        z = constrain(y + 1, mesh, None, ("data", "model"))
        return constrain(z * 2, mesh, ("model", "data"), None), y

    @program(((16, 8), ("data", "model"), "int32"), most=100)
    def integers(mesh, x):
        return x // 3 + x % 5, x.sum(), (x ^ 7) & 31, jnp.bitwise_or(x, 1).max(0)

    @program(((16, 8), ("data", "model"), "bfloat16"))
    def half(mesh, x):
        return (x * x).sum(0).astype("float32"), x.astype("float32")

    @program(((16, 8), ("data", "model")))
    def complex_numbers(mesh, x):
        z = x + 1j * x[:, ::-1]
        return jnp.abs(z), jnp.real(z.conj() * z).sum(0)

    # --- sorts, scans, Fourier, linear algebra ---
    @program(((16, 8), ("data", "model")))
    def sorts(mesh, x):
        return jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 1), lax.top_k(x, 3), jnp.median(x, 0)

    @program(((16, 8), ("data", "model")))
    def scans(mesh, x):
        # No cummax: XLA's is wrong where it is sharded, as if it began with 0.
        return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.associative_scan(jnp.add, x, axis=1)

    @program(((8, 16), ("data", None)))
    def fourier(mesh, x):
        return jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x, axis=0), axis=0)

    @program(((4, 6, 6), ("data", None, None)), ((4, 6, 2), ("data", None, "model")))
    def linear_algebra(mesh, x, b):
        a = x @ x.swapaxes(-1, -2) + 4 * jnp.eye(6)
        c = jnp.linalg.cholesky(a)
        return c, jax.scipy.linalg.solve_triangular(c, b, lower=True)

    # --- gathers and scatters ---
    @program(((16, 8), ("data", "model")), ((12,), ("data",), "int32"), most=15)
    def rows(mesh, x, i):
        return x[i], jnp.take(x, i % 8, axis=1)

    @program(((16, 8), ("data", "model")), ((16, 1), ("data", None), "int32"))
    def along(mesh, x, i):
        return jnp.take_along_axis(x, i, 1)

    @program(((16, 8), ("data", "model")), ((12,), ("data",), "int32"), ((12, 8), (None, "model")), most=15)
    def scatters(mesh, x, i, u):
        return x.at[i].add(u), x.at[:, i % 8].max(0.5), jax.ops.segment_sum(u, i, 16)

    @program(((32, 8), ("model", None)), ((8, 4), ("data", None), "int32"), most=31)
    def embedding(mesh, table, i):
        return jax.nn.one_hot(i, 32) @ table, table[i].sum(1)

    # --- convolutions and windows ---
    @program(((8, 8, 8, 4), ("data", None, None, None)), ((3, 3, 4, 6), (None, None, None, "model")))
    def convolution(mesh, x, k):
        y = lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y.mean((1, 2))

    @program(((2, 16, 8, 4), (None, "data", "model", None)), ((3, 3, 4, 3), (None, None, None, None)))
    def spatial_convolution(mesh, x, k):
        y = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return constrain(y, mesh, None, "data", "model", None).mean((0, 3))

    @program(((4, 8, 8, 4), ("data", None, None, "model")), ((3, 3, 1, 4), (None, None, None, "model")))
    def depthwise_gradient(mesh, x, k):
        def loss(k):
            y = lax.conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4)
            return (y**2).mean()
        return jax.grad(loss)(k)

    @program(((4, 8, 8, 2), ("data", "model", None, None)))
    def pooling(mesh, x):
        y = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        z = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
        return y.sum(3), z.mean(0), jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum())(x).sum((0, 3))

    # --- control flow ---
    @program(((16, 8), ("data", "model")), ((8, 8), (None, "model")))
    def loop(mesh, x, w):
        def step(c, _):
            c = jnp.tanh(c @ w)
            return c, c.sum()
        return lax.scan(step, x, None, length=5)

    @program(((16, 8), ("data", "model")))
    def until(mesh, x):
        return lax.while_loop(lambda c: c[1].sum() < 300, lambda c: (c[0] * 1.1, c[1] + c[0] ** 2, c[2] + 1), (x, x * x, 0))

    @program(((16, 8), ("data", "model")), ((), (), "int32"), most=2)
    def branches(mesh, x, i):
        y = lax.switch(i, [lambda x: x * 2, lambda x: x[::-1], lambda x: x - x.mean(0)], x)
        return lax.cond(y.sum() > 0, lambda y: y.T @ y, lambda y: y.T @ y - 1, y)

    @program(((16, 8), ("data", None)))
    def calls(mesh, x):
        f = jax.jit(lambda x, y: jnp.sin(x) @ y.T)
        return f(x, x), f(x * 2, x[:8])

    @program(((8, 8), ("data", "model")))
    def fold(mesh, x):
        return lax.fori_loop(0, 3, lambda i, c: lax.dynamic_update_slice(c, c[i:i + 1] * 2 if False else lax.dynamic_slice(c, (i, 0), (1, 8)) * 2, (i + 1, 0)), x)

    # --- random numbers: those of one device ---
    @program(((8, 4), ("data", "model")))
    def random_numbers(mesh, x):
        key = jax.random.key(3)
        a, b = jax.random.split(key)
        y = constrain(jax.random.normal(a, (8, 4)), mesh, "data", "model")
        return x + y, jax.random.uniform(b, (8,)), jax.random.permutation(b, 8), jnp.where(jax.random.bernoulli(a, 0.5, x.shape), x, 0)

    @program(((8, 4), ("data", "model")))
    def bits(mesh, x):
        state, out = lax.rng_bit_generator(jnp.array([1, 2, 3, 4], jnp.uint32), (8, 4))
        return x + (out >> 9).astype("float32") / 2**23, state

    # --- orders and numbers along what is sharded ---
    @program(((800,), (("data", "model"),)))
    def sort_of_one_dimension(mesh, x):
        y = jnp.round(x * 4)  # many that are equal
        return constrain(jnp.sort(x), mesh, ("data", "model")), constrain(jnp.argsort(y), mesh, "data"), jnp.median(x), jnp.quantile(x, jnp.array([0.1, 0.7]))

    @program(((768,), ("data",)), ((768,), (("data", "model"),), "int32"))
    def sort_by_two_keys(mesh, x, k):
        return lax.sort((k, jnp.round(x * 3), jnp.arange(768)), num_keys=2), jnp.unique(k, size=8), jnp.lexsort((x, k))

    @program(((5, 512), (None, ("data", "model"))))
    def largest_of_rows(mesh, x):
        return lax.top_k(x, 7), lax.top_k(jnp.round(x * 8), 20), lax.argmax(x, 1, jnp.int32)

    @program(((16, 64), ("data", "model")))
    def drawn_by_shard(mesh, x):
        key = jax.random.key(5, impl="rbg")
        return constrain(jax.random.uniform(key, (64, 32)), mesh, "data", "model"), x * jax.random.bernoulli(key, 0.5, x.shape)

    @program(((64, 3), (("data", "model"), None)), ((4, 3), (None, None)))
    def nearest_centres(mesh, x, c):
        for _ in range(3):
            near = jnp.argmin(((x[:, None] - c) ** 2).sum(-1), 1)
            c = jax.ops.segment_sum(x, near, 4) / jnp.maximum(jax.ops.segment_sum(jnp.ones(64), near, 4), 1)[:, None]
        return c, near

    @program(((2, 32, 32, 4), (None, "data", "model", None)), ((3, 3, 4, 8), (None, None, None, None)))
    def image_in_pieces(mesh, x, w):
        y = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), jax.grad(lambda w: (lax.conv(
            x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), "SAME") ** 2).sum())(w)

    @program(((8, 4, 4), (("data", "model"), None, None)), ((8, 4, 2), ("data", None, "model")))
    def many_small_systems(mesh, a, b):
        a = a @ a.transpose(0, 2, 1) + 4 * jnp.eye(4)
        return jnp.linalg.cholesky(a), jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)

    @program(((2, 32, 2, 8), (None, "data", "model", None)), ((2, 32, 2, 8), (None, "data", "model", None)))
    def causal_attention_along_the_sequence(mesh, q, k):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) + jnp.where(jnp.tri(32) > 0, 0.0, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), k), jnp.cumsum(q, 1), lax.associative_scan(lambda a, b: a * 0.5 + b, q, axis=1)

    # --- models ---
    @program(((16, 8), ("data", None)), ((8, 32), (None, "model")), ((32,), ("model",)), ((32, 4), ("model", None)), ((16, 4), ("data", None)))
    def mlp_step(mesh, x, w1, b1, w2, y):
        def loss(w1, b1, w2):
            return jnp.mean((jax.nn.gelu(x @ w1 + b1) @ w2 - y) ** 2)
        value, grads = jax.value_and_grad(loss, (0, 1, 2))(w1, b1, w2)
        return value, [p - 0.1 * g for p, g in zip((w1, b1, w2), grads)]

    @program(((16, 8), (("data", "model"), None)), ((8, 16), ("data", "model")), ((16, 4), ("data", "model")))
    def fsdp(mesh, x, w1, w2):
        def loss(w1, w2):
            h = jax.nn.relu(x @ constrain(w1, mesh, None, None))
            return jnp.mean((h @ constrain(w2, mesh, None, None)) ** 2)
        g = jax.grad(loss, (0, 1))(w1, w2)
        return [constrain(w - 0.1 * d, mesh, "data", "model") for w, d in zip((w1, w2), g)]

    @program(((4, 8, 16), ("data", None, None)), ((16, 16), (None, "model")), ((16, 16), (None, "model")), ((16, 16), (None, "model")),
             ((16, 16), ("model", None)), ((16, 32), (None, "model")), ((32, 16), ("model", None)))
    def transformer(mesh, x, wq, wk, wv, wo, up, down):
        def block(x):
            y = norm(x)
            q, k, v = [(y @ w).reshape(4, 8, 4, 4).transpose(0, 2, 1, 3) for w in (wq, wk, wv)]
            s = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), q @ k.swapaxes(-1, -2) / 2.0, -1e9)
            x = x + (jax.nn.softmax(s) @ v).transpose(0, 2, 1, 3).reshape(4, 8, 16) @ wo
            return constrain(x + jax.nn.gelu(norm(x) @ up) @ down, mesh, "data", None, None)
        return block(block(x)).sum(1), jax.grad(lambda w: jnp.mean(block(x) ** 2) + 0 * w.sum())(wo).sum(0)

    @program(((4, 8, 16), ("data", "model", None)), ((16, 16), (None, None)))
    def sequence_parallel(mesh, x, w):
        q = x @ w
        s = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, x))
        return constrain(jnp.einsum("bqk,bkd->bqd", s, x), mesh, "data", "model", None).mean(1)

    @program(((16, 8), ("data", None)), ((8, 8), (None, None)), ((8, 8, 16), ("model", None, None)), ((8, 16, 8), ("model", None, None)))
    def experts(mesh, x, gate, up, down):
        g = jax.nn.softmax(x @ gate)
        top, index = lax.top_k(g, 2)
        mask = jax.nn.one_hot(index, 8).sum(1) * g
        h = jax.nn.relu(jnp.einsum("td,edh->teh", x, up))
        return jnp.einsum("teh,ehd,te->td", h, down, mask)

    @program(((8, 8, 8, 2), ("data", None, None, None)), ((3, 3, 2, 4), (None, None, None, "model")), ((64, 3), (None, None)))
    def conv_net_step(mesh, x, k, w):
        def loss(k, w):
            h = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return -jax.nn.log_softmax(h.reshape(8, -1) @ w)[:, 0].mean()
        return jax.value_and_grad(loss, (0, 1))(k, w)

    @program(((8, 6, 4), ("data", None, None)), ((4, 16), (None, "model")), ((4, 16), (None, "model")))
    def recurrent(mesh, x, w, u):
        def cell(c, x):
            h, s = c
            i, f, o, g = jnp.split(x @ w + h @ u, 4, -1)
            s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(s), s), None
        zero = jnp.zeros((8, 4))
        return lax.scan(cell, (zero, zero), x.swapaxes(0, 1))[0], jax.grad(lambda w: lax.scan(cell, (zero, zero), x.swapaxes(0, 1))[0][0].sum())(u)

    @program(((16, 8), ("data", None)), ((8,), (None,)), ((8,), (None,)))
    def batch_norm(mesh, x, scale, offset):
        m, v = x.mean(0), x.var(0)
        return (x - m) / jnp.sqrt(v + 1e-3) * scale + offset, m, v

    @program(((16, 32), ("data", "model")), ((16,), ("data",), "int32"), most=31)
    def cross_entropy(mesh, logits, labels):
        return jax.value_and_grad(lambda z: -jnp.take_along_axis(jax.nn.log_softmax(z), labels[:, None], 1).mean())(logits)

    # --- shard_map ---
    def mapped(mesh, f, in_specs, out_specs, **options):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)

    @program(((16, 8), ("data", "model")))
    def map_sums(mesh, x):
        return mapped(mesh, lambda x: (lax.psum(x, "data"), lax.pmax(x.max(), ("data", "model")), lax.pmean(x, "model")), P("data", "model"),
                      (P(None, "model"), P(), P("data", None)))(x)

    @program(((16, 8), ("data", None)), ((8, 8), ("data", None)))
    def map_gather(mesh, x, w):
        return mapped(mesh, lambda x, w: x @ lax.all_gather(w, "data", axis=0, tiled=True), (P("data", None), P("data", None)), P("data", None))(x, w)

    @program(((16, 8), ("data", None)))
    def map_scatter(mesh, x):
        return mapped(mesh, lambda x: lax.psum_scatter(jnp.concatenate([x, x * 2], 1), "data", scatter_dimension=1, tiled=True), P("data", None), P(None, "data"), check_vma=False)(x)

    @program(((16, 8), ("data", None)))
    def map_exchange(mesh, x):
        return mapped(mesh, lambda x: lax.all_to_all(x, "data", 1, 0, tiled=True), P("data", None), P(None, "data"))(x)

    @program(((16, 4), ("data", None)))
    def map_ring(mesh, x):
        n = mesh.shape["data"]

        def ring(x):
            y = x
            for _ in range(n - 1):
                y = lax.ppermute(y, "data", [(i, (i + 1) % n) for i in range(n)])
                x = x + y
            return x / n + 0 * lax.axis_index("data")
        return mapped(mesh, ring, P("data", None), P("data", None))(x).sum(0)

    @program(((16, 8), ("data", "model")), ((8, 8), ("model", None)))
    def map_partly(mesh, x, w):
        f = mapped(mesh, lambda x: x * 2 + lax.psum(x.sum(), "data"), P("data", None), P("data", None), axis_names={"data"})
        return f(x) @ w

    @program(((16, 4), ("data", None)))
    def map_loop(mesh, x):
        def f(x):
            return lax.fori_loop(0, 3, lambda i, c: c + lax.psum(c, "data") * 0.1, x, unroll=False)
        return mapped(mesh, f, P("data", None), P("data", None), check_vma=False)(x)

    @program(((8, 4, 4), ("data", None, None)), ((4, 4), (None, None)))
    def map_pipeline(mesh, x, w):
        n = mesh.shape["data"]

        def stage(x):
            y = x
            for _ in range(n):
                y = lax.ppermute(jnp.tanh(y @ w), "data", [(i, (i + 1) % n) for i in range(n)])
            return y
        return mapped(mesh, stage, P("data", None, None), P("data", None, None), check_vma=False)(x)

    @program(((16, 8), ("data", None)))
    def map_gradient(mesh, x):
        f = mapped(mesh, lambda x: lax.psum((jnp.sin(x) ** 2).sum(), "data"), P("data", None), P())
        return jax.value_and_grad(f)(x)


def lowered(jax, jnp, name, f, specs, most):
    """Rows for all meshes; the values are XLA's."""
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    types = [(spec[2] if len(spec) > 2 else "float32", spec[0], most if len(spec) > 2 and "int" in spec[2] else 0) for spec in specs]
    import ml_dtypes  # noqa: F401  bfloat16 by its name

    values = arguments(types)
    row, kept = {"name": name, "types": types, "programs": {}}, None
    for n, shape in MESHES.items():
        mesh = Mesh(np.array(jax.devices()[:n]).reshape(shape), ("data", "model"))
        shardings = [NamedSharding(mesh, P(*spec[1])) for spec in specs]
        even = [NamedSharding(mesh, P()) if any(d % (np.prod([mesh.shape[a] for a in np.atleast_1d(s)]) if s else 1) for d, s in zip(spec[0], spec[1])) else sharding
                for spec, sharding in zip(specs, shardings)]
        call = jax.jit(functools.partial(f, mesh), in_shardings=even)
        row["programs"][n] = call.lower(*values).as_text()
        found = [np.asarray(v) for v in jax.tree.leaves(call(*values))]
        if kept is not None and not name.startswith("map_"):
            for a, b in zip(kept, found, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"{name} on {n}")
        kept = found
        row.setdefault("values", {})[n] = [[v.dtype.name, list(v.shape), base64.b64encode(np.ascontiguousarray(v).tobytes()).decode()] for v in found]
    if not name.startswith("map_"):
        row["values"] = {"8": row["values"][8]}
    return row


def main(names):
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    define(jax, jnp, P)
    path, kept = HERE / "jax_programs.jsonl.xz", {}
    if names:
        with lzma.open(path, "rt") as file:
            kept = {row["name"]: row for row in map(json.loads, file) if row["name"] not in names}
    rows, wrong = [], 0
    for one in PROGRAMS:
        try:
            rows.append(kept.get(one[0]) or lowered(jax, jnp, *one))
        except Exception as error:
            print(f"{one[0]}: {str(error)[:1500]}")
            wrong += 1
    with lzma.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    print(len(rows), "programs")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
