"""An unchanged JAX with arrays in other layouts and other memories: what it asks for it gets, and values are the same."""
import pytest
from jax_script import run

pytest.importorskip("jax")

HEAD = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental.layout import Format, Layout
    from jax.sharding import NamedSharding, PartitionSpec as P, Mesh, SingleDeviceSharding
    one = SingleDeviceSharding(jax.devices()[0])
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    def order(array):
        return array.format.layout.major_to_minor
    def laid(*dims, where=one):
        return Format(Layout(dims), where)
"""


def test_arrays_in_other_layouts_are_put_computed_with_and_read():
    out = run(HEAD + """
    a = jax.device_put(x, laid(2, 0, 1))
    print(order(a), np.array_equal(a, x), order(a + 1), np.array_equal(a + 1, x + 1))
    for t in (np.int8, np.bool_, np.complex64):  # packed truth values, and elements of two parts
        b = jax.device_put((x % 2).astype(t), laid(1, 2, 0))
        print(order(b), np.array_equal(jax.jit(lambda v: v.sum(1))(b), jnp.asarray((x % 2).astype(t)).sum(1)))
    r = jax.jit(lambda v: v * 2, out_shardings=laid(1, 2, 0))(a)
    print(order(r), np.array_equal(r, x * 2), np.array_equal(r.T, x.T * 2), float(r[1, 2, 3]))
    print(order(jax.device_put(r, laid(0, 1, 2))), np.array_equal(jax.device_put(r, laid(0, 1, 2)), x * 2))
    big = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)  # on the queue
    y = jax.jit(lambda v: v @ v.T, out_shardings=laid(1, 0))(jax.device_put(big / 1e5, laid(1, 0)))
    print(order(y), np.allclose(y, (big / 1e5) @ (big / 1e5).T, rtol=1e-5))
    """)
    assert out == ["(2, 0, 1) True (0, 1, 2) True"] + ["(1, 2, 0) True"] * 3 + [
        "(1, 2, 0) True True 46.0", "(0, 1, 2) True", "(1, 0) True"]


def test_what_is_donated_in_another_layout_is_given_away():
    out = run(HEAD + """
    f = jax.jit(lambda v: v + 1, donate_argnums=0, in_shardings=laid(2, 1, 0), out_shardings=laid(2, 1, 0))
    a = jax.device_put(x, laid(2, 1, 0))
    b = f(a)
    print(a.is_deleted(), order(b), np.array_equal(b, x + 1))
    g = jax.jit(lambda v: v + 1, donate_argnums=0, out_shardings=laid(0, 2, 1))
    c = jnp.asarray(x)
    print(order(g(c)), c.is_deleted())
    """)
    assert out == ["True (2, 1, 0) True", "(0, 2, 1) True"]


def test_a_transposition_that_may_lie_as_it_likes_moves_nothing():
    out = run(HEAD + """
    f = jax.jit(lambda v: (jnp.transpose(v, (2, 0, 1)), v * 2), in_shardings=Format(Layout.AUTO), out_shardings=Format(Layout.AUTO))
    compiled = f.lower(jax.ShapeDtypeStruct(x.shape, x.dtype)).compile()
    print(compiled.input_formats[0][0].layout.major_to_minor, [f.layout.major_to_minor for f in compiled.output_formats])
    t, d = compiled(jnp.asarray(x))
    print(order(t), np.array_equal(t, x.transpose(2, 0, 1)), np.array_equal(d, x * 2))
    """)
    assert out == ["(0, 1, 2) [(1, 2, 0), (0, 1, 2)]", "(1, 2, 0) True True"]


def test_shards_have_layouts_too():
    out = run(HEAD + """
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    cut = NamedSharding(mesh, P("x", "y"))
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    b = jax.device_put(a, laid(1, 0, where=cut))
    f = jax.jit(lambda v: v @ v, out_shardings=laid(1, 0, where=cut))
    print(order(b), np.array_equal(b, a), order(f(b)), np.array_equal(f(b), a @ a))
    print(np.array_equal(jax.jit(lambda v: v.T)(b), a.T))
    """, XLAC_JAX_DEVICES="4")
    assert out == ["(1, 0) True (1, 0) True", "True"]


def test_saved_programs_keep_layouts_and_memories():
    out = run(HEAD + """
    from jax.experimental import serialize_executable
    f = jax.jit(lambda v: (v * 2, v + 1), out_shardings=(laid(1, 2, 0), one.with_memory_kind("pinned_host")))
    saved = serialize_executable.serialize(f.lower(x).compile())
    a, b = serialize_executable.deserialize_and_load(*saved)(x)
    # jaxlib 0.9.0 forgets the layout, also of programs that XLA has saved, and takes it for the usual one
    g = jax.jit(lambda v: v * 2, out_shardings=laid(1, 2, 0, where=SingleDeviceSharding(jax.devices("cpu")[0])))
    saved = serialize_executable.serialize(g.lower(x).compile())
    print(order(serialize_executable.deserialize_and_load(*saved, backend="cpu")(x)) == order(a), order(a) in ((1, 2, 0), (0, 1, 2)))
    print(np.array_equal(a, x * 2), b.sharding.memory_kind, np.array_equal(b, x + 1))
    """)
    assert out == ["True True", "True pinned_host True"]


def test_memories_hold_arguments_results_and_what_is_between():
    out = run(HEAD + """
    for kind in "device", "pinned_host", "unpinned_host":
        there = one.with_memory_kind(kind)
        a = jax.device_put(x, there)
        b = jax.jit(lambda v: v + 1, out_shardings=there)(x)
        c = jax.jit(lambda v: jax.device_put(jax.device_put(v * 2, there) + 0, one.with_memory_kind("device")))(a)
        print(a.sharding.memory_kind, b.sharding.memory_kind, c.sharding.memory_kind, np.array_equal(b, x + 1), np.array_equal(c, x * 2))
    from jax.ad_checkpoint import checkpoint_name
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["h"], offload_src="device", offload_dst="pinned_host")
    loss = jax.checkpoint(lambda v: jnp.sin(checkpoint_name(jnp.sin(v), "h")).sum(), policy=policy)
    print(np.allclose(jax.jit(jax.grad(loss))(x), np.cos(np.sin(x)) * np.cos(x), atol=1e-5))
    """)
    assert out == [f"{kind} {kind} device True True" for kind in ("device", "pinned_host", "unpinned_host")] + ["True"]


@pytest.mark.parametrize("mode", ["{0,0,1}", "{0,1}", "{3,1,0}", "{x}", "{0,1,2,0}"])
def test_a_layout_that_is_none_is_an_error(p, client, mode):
    import plugin
    program = f"""func.func @main(%a: tensor<2x3x4xf32> {{mhlo.layout_mode = "{mode}"}}) -> tensor<2x3x4xf32> {{
      return %a : tensor<2x3x4xf32> }}"""
    with pytest.raises(plugin.Failed, match="a layout of an array of rank 3 that is not an order of its dimensions"):
        p.compile(client, program)
    with pytest.raises(plugin.Failed, match='names the memory kind "attic"'):
        p.compile(client, 'func.func @main(%a: tensor<f32>) -> (tensor<f32> {mhlo.memory_kind = "attic"}) { return %a : tensor<f32> }')
