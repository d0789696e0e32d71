"""Networks on points that turn with their input: e3nn-jax's spherical harmonics, tensor products and linear layers."""
import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

TOLERANCE = 1e-3


def main():
    x = jax.random.normal(jax.random.key(0), (10, 3))
    out = {f"harmonics {l}": jax.jit(lambda x, l=l: e3nn.spherical_harmonics(l, e3nn.IrrepsArray("1o", x), True).array)(x) for l in range(5)}
    a, b = (e3nn.normal(irreps, jax.random.key(i), (10,)) for i, irreps in enumerate(("4x0e + 3x1o + 2x2e", "2x0e + 2x1o")))
    product = jax.jit(lambda a, b: e3nn.tensor_product(a, b))
    out["product"] = product(a, b).array
    turn = e3nn.rand_matrix(jax.random.key(3))
    out["turned product"] = product(a.transform_by_matrix(turn), b.transform_by_matrix(turn)).array
    linear = e3nn.flax.Linear("8x0e + 4x1o")
    w = linear.init(jax.random.key(4), a)
    out["linear"] = jax.jit(lambda w, a: linear.apply(w, a).array)(w, a)
    out["gradient"] = jax.jit(jax.grad(lambda x: (e3nn.spherical_harmonics("0e+1o+2e+3o", e3nn.IrrepsArray("1o", x), True).array ** 3).sum()))(x)
    out["wigner"] = e3nn.Irrep("2e").D_from_matrix(turn)
    out["gate"] = e3nn.gate(e3nn.normal("6x0e + 2x1o", jax.random.key(5), (4,))).array
    assert jnp.isfinite(out["gate"]).all()
    return out
