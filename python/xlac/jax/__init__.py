"""JAX on xlac: `JAX_PLATFORMS=xlac python train.py`. See docs/jax.md."""
