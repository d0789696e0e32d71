"""Writes jax_programs.jsonl.xz: JAX programs lowered for 8 devices, and what the Shardy in jaxlib makes of them.

  python tests/shard/jax_programs.py"""
import json
import lzma
import os
import pathlib

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

PIPELINES = ["sdy-propagation-pipeline",
             "sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives)"]
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def spec(shape, *axes, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))


def mlp_step(params, x, y):
    def loss(params):
        h = x
        for w, b in params[:-1]:
            h = jax.nn.relu(h @ w + b)
        w, b = params[-1]
        return jnp.mean((h @ w + b - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def norm(x):
    m = x.mean(-1, keepdims=True)
    return (x - m) * jax.lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)


def transformer(x, wq, wk, wv, wo, up, down):
    def block(x):
        y = norm(x)
        q, k, v = [(y @ w).reshape(8, 128, 4, 64).transpose(0, 2, 1, 3) for w in (wq, wk, wv)]
        a = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0)
        x = x + (a @ v).transpose(0, 2, 1, 3).reshape(8, 128, 256) @ wo
        x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None, None)))
        return x + jax.nn.gelu(norm(x) @ up) @ down

    return jnp.sum(block(block(x)))


def conv_net(x, k1, k2, w):
    layout = ("NHWC", "HWIO", "NHWC")
    h = jax.nn.relu(jax.lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=layout))
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = jax.nn.relu(jax.lax.conv_general_dilated(h, k2, (2, 2), "SAME", dimension_numbers=layout))
    return jnp.sum(h.reshape(h.shape[0], -1) @ w)


def scan(x, ws):
    def body(c, w):
        c = jnp.tanh(c @ w)
        return c, c.sum()

    return jax.lax.scan(body, x, ws)


def mapped(x, w):
    inner = jax.shard_map(lambda x, w: jax.lax.psum(x @ w, "model"), mesh=mesh, in_specs=(P("data", "model"), P("model", None)),
                          out_specs=P("data", None))
    return inner(x, w) * 2


def lowered(f, *args):
    return jax.jit(f).lower(*args).as_text()


def programs():
    wide, tall = spec((256, 256), None, "model"), spec((256, 256), "model", None)
    blocks = [wide] * 3 + [tall, spec((256, 1024), None, "model"), spec((1024, 256), "model", None)]
    rows, loop = spec((32, 64), "data", None), spec((6, 64, 64), None, None, "model")
    yield "mlp_step", lowered(mlp_step, [(spec((256, 512), None, "model"), spec((512,), "model")), (spec((512, 256), "model", None), spec((256,)))],
                              spec((64, 256), "data", None), spec((64, 256), "data", None))
    yield "transformer_grad", lowered(jax.grad(transformer, argnums=tuple(range(7))), spec((8, 128, 256), "data", None, None), *blocks)
    yield "conv_grad", lowered(jax.grad(conv_net, argnums=(1, 2, 3)), spec((16, 32, 32, 4), "data", None, None, None),
                               spec((3, 3, 4, 16), None, None, None, "model"), spec((3, 3, 16, 32), None, None, None, "model"),
                               spec((2048, 10), "model", None))
    yield "scan", lowered(scan, rows, loop)
    yield "scan_grad", lowered(jax.grad(lambda x, w: scan(x, w)[0].sum(), argnums=(0, 1)), rows, loop)
    yield "shard_map", lowered(mapped, rows, spec((64, 16), "model", None))
    yield "gather_scatter", lowered(lambda t, i, u: (t[i], t.at[i].add(u)), spec((64, 32), "model", None), spec((16,), "data", dtype=jnp.int32),
                                    spec((16, 32), "data", None))
    yield "sorts", lowered(lambda x: (jnp.sort(x, axis=-1), jnp.argsort(x), jnp.cumsum(x, 0), jnp.linalg.cholesky(x[:64, :64] @ x[:64, :64].T)),
                           spec((64, 128), "data", "model"))


def main():
    from random_programs import shardys

    path = pathlib.Path(__file__).with_name("jax_programs.jsonl.xz")
    with lzma.open(path, "wt", preset=9) as f:
        for name, text in programs():
            outputs = {p: shardys(text, f"builtin.module({p})") for p in PIPELINES}
            f.write(json.dumps({"name": name, "input": text, "outputs": outputs}) + "\n")


if __name__ == "__main__":
    main()
