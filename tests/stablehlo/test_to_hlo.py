"""StableHLO to HLO: XLA's own reader takes the text, and it gives the same values as the StableHLO."""
import numpy as np
import pytest

import xlac

hlo = pytest.importorskip("jaxlib._hlo")
jax = pytest.importorskip("jax")
jnp = jax.numpy


def loop(x, w):
    return jax.lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ w) + i, x), jnp.sum(x, axis=1)


def branches(x, i):
    y = x * 2
    return jax.lax.switch(i, [lambda: x + y, lambda: x - y, lambda: y])


def scatter(x, i):
    return x.at[i].add(1.5), x[i], jnp.sort(x), jnp.cumsum(x)


def convolve(x, k):
    return jax.lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2))


def pooled(x, _):
    return jax.grad(lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID").sum())(x)


def special(x, y):
    return jnp.arctan(x), jnp.arctan2(x, y), jax.scipy.special.erf(x), jnp.square(y)


def spread(x, y):
    return x[:, None] + y[None, :, None], jnp.pad(x, ((1, 2),)), jnp.argmax(y)


F32 = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
PROGRAMS = {
    "loop": (loop, F32[:4], np.eye(8, dtype=np.float32)), "branches": (branches, F32, np.int32(1)),
    "scatter": (scatter, F32[0], np.array([1, 1, 3], np.int32)),
    "convolve": (convolve, F32.reshape(1, 2, 4, 6), F32[:2, :8].reshape(2, 2, 2, 2)), "pooled": (pooled, F32, np.float32(0)),
    "special": (special, F32, F32 + 1), "spread": (spread, F32[0], F32[1]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_jax(name):
    function, *args = PROGRAMS[name]
    text = jax.jit(function, keep_unused=True).lower(*args).as_text()
    module = xlac.parse(text)
    assert module.to_text() == text
    module.verify()
    translated = module.to_hlo()
    translated.verify(xla_compat=True)
    hlo.hlo_module_from_text(translated.to_text())
    want = [np.asarray(v) for v in jax.tree.leaves(function(*map(jnp.asarray, args)))]
    for result in (xlac.interpret(module, *args), xlac.interpret(xlac.parse(translated.to_text()), *args)):
        leaves = [result] if isinstance(result, np.ndarray) else list(result)
        assert len(leaves) == len(want)
        for got, expected in zip(leaves, want):
            np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-5, atol=2e-5)


def test_aliases_donors_shardings_and_counts():
    module = xlac.parse("""
module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 3 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}", tf.aliasing_output = 1 : i32},
                         %arg1: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    return %arg1, %0 : tensor<4xf32>, tensor<4xf32>
  }
}
""").to_hlo()
    text = module.to_text()
    assert "input_output_alias={ {1}: (0, {}, may-alias) }" in text and "buffer_donor={ (1, {}) }" in text
    assert "num_partitions=2" in text and "replica_count=3" in text and "sharding={devices=[2]<=[2]}" in text


def test_what_hlo_lacks_is_expanded():
    module = xlac.parse("""
func.func @"<main>"(%arg0: tensor<2xf32>, %arg1: tensor<2x2xf32>, %arg2: tensor<2xcomplex<f32>>)
    -> (tensor<2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<2xf32>) {
  %0 = chlo.lgamma %arg0 : tensor<2xf32> -> tensor<2xf32>
  %1 = chlo.broadcast_power %arg1, %arg0 : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "stablehlo.einsum"(%arg1, %arg0) {einsum_config = "ab,b->a"} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = chlo.atan %arg2 : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  %4 = chlo.erf %arg0 : tensor<2xf32> -> tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xcomplex<f32>>, tensor<2xf32>
}
""")
    before = module.to_text()
    translated = module.to_hlo()
    text = translated.to_text()
    assert module.to_text() == before and "erf(" in text and "ENTRY %_main_" in text
    hlo.hlo_module_from_text(text)
    assert text == module.to_text(format="hlo")
    x, y, z = np.array([3, 4], np.float32), np.array([[2, 3], [1, 5]], np.float32), np.array([1 + 2j, -0.5j], np.complex64)
    gamma, powers, sums, atan, _ = xlac.interpret(translated, x, y, z)
    np.testing.assert_allclose(gamma, np.log([2, 6]), rtol=1e-6)
    np.testing.assert_allclose(powers, y ** x, rtol=1e-6)
    np.testing.assert_allclose(sums, y @ x, rtol=1e-6)
    np.testing.assert_allclose(atan, np.arctan(z), rtol=1e-6)


def test_what_hlo_lacks_for_good_is_refused_where_it_stands():
    module = xlac.parse("""
func.func @main(%arg0: tensor<?xf32>, %arg1: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_reshape %arg0, %arg1 : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
""")
    with pytest.raises(xlac.Error, match=r"an argument has the type f32\[\?\], which HLO does not have") as caught:
        module.to_hlo()
    assert (caught.value.line, caught.value.col) == (2, 17)
