"""jax.experimental.custom_partitioning on eight virtual devices: what an op's function says of its shards is what runs."""
import pytest
from jax_script import run

pytest.importorskip("jax")

HEAD = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental.custom_partitioning import custom_partitioning
    from jax.sharding import NamedSharding, PartitionSpec as P, Mesh
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    a = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    def put(value, *spec):
        return jax.device_put(value, NamedSharding(mesh, P(*spec)))
    seen = []
    def partition(mesh, arguments, result):
        seen.append(tuple(s.sharding.spec for s in arguments))
        cut = NamedSharding(mesh, P("y", None))
        return mesh, lambda x, w: jax.lax.psum(x @ w, "x"), cut, (NamedSharding(mesh, P("y", "x")), NamedSharding(mesh, P("x", None)))
    @custom_partitioning
    def product(x, w):
        return x @ w
    product.def_partition(partition=partition, sharding_rule="i j, j k -> i k", reduction_factors=("j",))
"""


def on_devices(script, **environment):
    return run(HEAD + script, **{"XLAC_JAX_DEVICES": "8", **environment})


def test_in_loops_and_functions_beside_other_ops():
    out = on_devices("""
    def g(product, x, w):
        y = jax.lax.fori_loop(0, 3, lambda i, c: product(jnp.sin(c), w) * 0.5, x)
        return y + jax.jit(lambda v: product(v, w))(x)
    got = jax.jit(lambda x, w: g(product, x, w))(put(a, "y", "x"), put(a, "x"))
    print(got.sharding.spec, np.allclose(got, g(jnp.matmul, a, a), atol=1e-5), seen)
    moved = jax.jit(product)(put(a, "x"), put(a))  # into the shards that the function asks for
    print(np.allclose(moved, a @ a, atol=1e-5), seen[2])
    text = jax.jit(product).lower(put(a, "y", "x"), put(a, "x")).compile().as_text()
    print("all-reduce" in text, "all-gather" in text)
    """)
    assert out == ["P('y', 'x') True [(P('y', 'x'), P('x', None)), (P('y', 'x'), P('x', None))]",
                   "True (P('x', None), P(None, None))", "True False"]


def test_several_results():
    out = on_devices("""
    def halves(mesh, arguments, results):
        seen.append((arguments[0].sharding.spec, results[1].sharding.spec))
        return mesh, lambda v: (v * 2, v.sum(1)), tuple(r.sharding for r in results), (arguments[0].sharding,)
    @custom_partitioning
    def both(v):
        return v * 2, v.sum(1)
    both.def_partition(partition=halves, sharding_rule="i j -> i j, i", need_replication_factors=("j",))
    double, total = jax.jit(both)(put(a, ("y", "x")))
    print(seen, np.array_equal(double, a * 2), np.allclose(total, a.sum(1), atol=1e-6), total.sharding.spec)
    """)
    assert out == ["[(P(('y', 'x'), None), P(('y', 'x'),))] True True P(('y', 'x'),)"]


def test_what_the_function_raises_is_the_programs_error():
    out = on_devices("""
    def wrong(mesh, arguments, result):
        raise ValueError("no such shards")
    @custom_partitioning
    def f(v):
        return v
    f.def_partition(partition=wrong, sharding_rule="i j -> i j")
    try:
        jax.jit(f)(put(a, "x"))
    except jax.errors.JaxRuntimeError as e:
        print("no such shards" in str(e))
    print(np.allclose(jax.jit(product)(put(a, "y", "x"), put(a, "x")), a @ a, atol=1e-5))
    """)
    assert out == ["True", "True"]


def test_one_device_has_nothing_to_ask():
    out = run(HEAD.replace(".reshape(4, 2)", ".reshape(1, 1)") + "    print(np.allclose(jax.jit(product)(a, a), a @ a, atol=1e-5), seen)")
    assert out == ["True []"]
