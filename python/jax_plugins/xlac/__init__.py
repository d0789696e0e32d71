"""Where JAX looks for plugins: it calls initialize() before the first backend is made."""
from xlac.jax.plugin import initialize  # noqa: F401
