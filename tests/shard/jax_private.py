"""Writes jax_private.jsonl.xz: JAX programs with private functions, as lowered for 8 devices, and their shardings as the Shardy in jaxlib
propagates them.

  python tests/shard/jax_private.py"""
import json
import lzma
import pathlib

from jax_programs import P, jax, jnp, lowered, mesh, norm, spec
from jax.sharding import NamedSharding

x, w, v = spec((16, 32), "data", None), spec((32, 64), None, "model"), spec((64, 32), "model", None)
square = spec((32, 32), "data", "model")


def layer(act):
    return lambda x, w, v: act(x @ w) @ v


def nested(x, w):
    inner = jax.jit(lambda a: jax.nn.relu(a) + 1)
    outer = jax.jit(lambda a: inner(a) * jnp.where(a > 0, a, 2.0))
    return outer(outer(x @ w).T)


def transformer_block(x, q, k, v, o, up, down):
    y = norm(x)
    q, k, v = [(y @ m).reshape(8, 16, 2, 8).transpose(0, 2, 1, 3) for m in (q, k, v)]
    a = q @ k.swapaxes(-1, -2)
    a = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((16, 16), bool)), a, -1e9))
    x = x + (a @ v).transpose(0, 2, 1, 3).reshape(8, 16, 16) @ o
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None, None)))
    return x + jax.nn.silu(norm(x) @ up) @ down


def scanned(x, ws):
    def body(c, w):
        c = jax.nn.relu(jnp.clip(c @ w, -3, 3))
        return c, jnp.where(c > 1, c, 0).sum()
    return jax.lax.scan(body, x, ws)


def mapped(x, w):
    f = jax.shard_map(lambda x, w: jax.nn.relu(jax.lax.psum(x @ w, "model")), mesh=mesh, in_specs=(P("data", "model"), P("model", None)),
                      out_specs=P("data", None))
    return jnp.where(f(x, w) > 0, 1.0, 0.0)


def branches(i, x, w):
    return jax.lax.cond(i > 0, lambda x: jax.nn.relu(x @ w), lambda x: jax.nn.silu(x @ w), x)


def twice(x, w):
    f = jax.jit(lambda a: jnp.tanh(a).sum(axis=0))  # of one shape, sharded in two ways
    return f(x @ w), f(jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("model", "data"))))


def constrained(x, w):
    f = jax.jit(lambda a: jax.lax.with_sharding_constraint(jnp.sin(a), NamedSharding(mesh, P(None, ("data", "model")))) * 2)
    return f(x @ w)


def loss(x, w, v):
    return jnp.mean((jax.nn.relu(x @ w) @ v) ** 2)


def programs():
    blocks = [spec((16, 16), None, "model")] * 3 + [spec((16, 16), "model", None), spec((16, 32), None, "model"), spec((32, 16), "model", None)]
    for name in ("relu", "silu", "leaky_relu", "elu", "log_softmax", "swish", "relu6"):
        yield name, lowered(layer(getattr(jax.nn, name)), x, w, v)
    for name in ("gelu", "softmax"):
        yield name, lowered(layer(lambda a, f=getattr(jax.nn, name): jax.nn.relu(f(a))), x, w, v)
    yield "where", lowered(lambda x, w: jnp.where(x @ w > 0, x @ w, 1.0), x, w)
    yield "tril", lowered(lambda a: jnp.tril(a) @ jnp.triu(a), square)
    yield "clip", lowered(lambda x, w: jnp.clip(x @ w, 0, 1).sum(0), x, w)
    yield "var", lowered(lambda x, w: jnp.var(x @ w, axis=1), x, w)
    yield "nested", lowered(nested, spec((32, 32), "data", None), spec((32, 32), None, "model"))
    yield "transformer", lowered(transformer_block, spec((8, 16, 16), "data", None, None), *blocks)
    yield "scan", lowered(scanned, spec((16, 32), "data", None), spec((4, 32, 32), None, None, "model"))
    yield "shard_map", lowered(mapped, spec((16, 64), "data", None), v)
    yield "cond", lowered(branches, spec((), dtype=jnp.int32), x, w)
    yield "twice", lowered(twice, x, w)
    yield "constrained", lowered(constrained, x, w)
    yield "argmax", lowered(lambda x, w: jnp.argmax(jax.nn.relu(x @ w), axis=1), x, w)
    yield "one_hot", lowered(lambda i, w: jax.nn.one_hot(i, 32) @ w, spec((16,), "data", dtype=jnp.int32), w)
    yield "take", lowered(lambda t, i: jnp.take(t, i, axis=0), spec((64, 32), "model", None), spec((16,), "data", dtype=jnp.int32))
    yield "relu_grad", lowered(jax.grad(loss, argnums=(1, 2)), x, w, v)
    yield "sort", lowered(lambda a: jnp.sort(jax.nn.relu(a), axis=1), square)
    yield "while", lowered(lambda a: jax.lax.while_loop(lambda c: jnp.all(c[1] < 3), lambda c: (jax.nn.relu(c[0] @ c[0]), c[1] + 1), (a, 0)), square)
    yield "cumsum", lowered(lambda a: jnp.cumsum(jnp.where(a > 0, a, 0), axis=0), square)


def main():
    from random_programs import shardys

    with lzma.open(pathlib.Path(__file__).with_name("jax_private.jsonl.xz"), "wt", preset=9) as f:
        for name, text in programs():
            f.write(json.dumps({"name": name, "input": text, "shardys": shardys(text, "builtin.module(sdy-propagation-pipeline)")}) + "\n")


if __name__ == "__main__":
    main()
