"""Programs of kinds that JAX's own tests compile for other devices only, or in a handful of tests: dropout, recurrent networks,
tridiagonal systems, typed keys. capture_jax.py stores them beside what it captures."""
import functools


def dropout(jax, jnp):
    def masked(key, x, rate):
        keep = jax.random.bernoulli(key, 1 - rate, x.shape)
        return jnp.where(keep, x / (1 - rate), 0)

    def broadcast(key, x, rate):
        keep = jax.random.bernoulli(key, 1 - rate, (x.shape[0], *(1,) * (x.ndim - 1)))
        return jnp.where(keep, x / (1 - rate), 0)

    def network(key, x, rate):
        for i in range(2):
            x = masked(jax.random.fold_in(key, i), jax.nn.gelu(x), rate)
        return x.sum(0)

    key = jax.random.key(0)
    for name, function in dict(masked=masked, broadcast=broadcast, network=network).items():
        for rate in (0.1, 0.5):
            for shape, dtype in (((4, 33), "float32"), ((2, 3, 8), "bfloat16"), ((65,), "float64")):
                yield f"{name} {rate} {dtype}{shape}", functools.partial(function, rate=rate), (key, jnp.ones(shape, dtype))
    yield "gradient", jax.grad(lambda x, key: (masked(key, x, 0.3) ** 2).sum()), (jnp.ones((5, 7)), key)
    yield "keys of a batch", jax.vmap(lambda k, x: masked(k, x, 0.2)), (jax.random.split(key, 6), jnp.ones((6, 9)))


def recurrent(jax, jnp):
    def vanilla(w, h, x):
        h = jnp.tanh(x @ w["x"][:, :h.shape[-1]] + h @ w["h"][:, :h.shape[-1]])
        return h, h

    def gru(w, h, x):
        gates_x, gates_h = jnp.split(x @ w["x"][:, :3 * h.shape[-1]], 3, -1), jnp.split(h @ w["h"][:, :3 * h.shape[-1]], 3, -1)
        r, z = jax.nn.sigmoid(gates_x[0] + gates_h[0]), jax.nn.sigmoid(gates_x[1] + gates_h[1])
        h = (1 - z) * jnp.tanh(gates_x[2] + r * gates_h[2]) + z * h
        return h, h

    def lstm(w, state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w["x"] + h @ w["h"] + w["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def run(cell, w, xs, reverse=False, lengths=None):
        h = jnp.zeros((xs.shape[1], w["h"].shape[0]), xs.dtype)
        first = (h, h) if cell is lstm else h

        def step(state, at):
            new, y = cell(w, state, at[0])
            if lengths is None:
                return new, y
            inside = (at[1] < lengths)[:, None]
            return jax.tree.map(lambda a, b: jnp.where(inside, a, b), new, state), jnp.where(inside, y, 0)

        return jax.lax.scan(step, first, (xs, jnp.arange(xs.shape[0])), reverse=reverse)

    def both(cell, w, xs):
        return jnp.concatenate([run(cell, w, xs)[1], run(cell, w, xs, reverse=True)[1]], -1)

    def stacked(cell, w, xs):
        return run(cell, w, run(cell, w, xs)[1])[1]

    def loss(cell, w, xs):
        return (run(cell, w, xs)[1] ** 2).mean()

    for dtype in ("float32", "float64", "bfloat16"):
        n = 6
        w = {"x": jnp.ones((n, 4 * n), dtype), "h": jnp.ones((n, 4 * n), dtype), "b": jnp.ones((4 * n,), dtype)}
        xs = jnp.ones((5, 3, n), dtype)
        for cell in (vanilla, gru, lstm):
            yield f"{cell.__name__} {dtype}", functools.partial(run, cell), (w, xs)
            yield f"{cell.__name__} {dtype} with lengths", lambda w, xs, k, cell=cell: run(cell, w, xs, lengths=k), (w, xs, jnp.ones(3, "int32"))
            if dtype != "bfloat16":
                yield f"{cell.__name__} {dtype} both ways", functools.partial(both, cell), (w, xs)
                yield f"{cell.__name__} {dtype} stacked", functools.partial(stacked, cell), (w, xs)
                yield f"{cell.__name__} {dtype} gradient", jax.grad(functools.partial(loss, cell)), (w, xs)


def tridiagonal(jax, jnp):
    from jax.lax import linalg
    from jax.scipy.linalg import eigh_tridiagonal
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for n in (2, 5, 16):
            a = jnp.ones((n, n), dtype)
            yield f"reduction {dtype} {n}", lambda a: linalg.tridiagonal(a + jnp.conj(a.T), lower=True)[1:3], (a,)
            d, b = jnp.ones((n,), dtype), jnp.ones((n, 3), dtype)
            yield f"solve {dtype} {n}", lambda d, b: linalg.tridiagonal_solve(d.at[0].set(0), d + 4, d.at[-1].set(0), b), (d, b)
        batch = jnp.ones((3, 7), dtype)
        yield f"solve {dtype} batch", lambda d, b: linalg.tridiagonal_solve(d.at[:, 0].set(0), d + 4, d.at[:, -1].set(0), b), (batch, jnp.ones((3, 7, 2), dtype))
    for dtype in ("float32", "float64"):
        d = jnp.ones((6,), dtype)
        yield f"eigenvalues {dtype}", lambda d: eigh_tridiagonal(d, d[1:], eigvals_only=True), (d,)


def typed_keys(jax, jnp):
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        key = jax.random.key(0, impl=impl)
        makers = {"split": lambda k: jax.random.key_data(jax.random.split(k, 3)), "fold in": lambda k: jax.random.key_data(jax.random.fold_in(k, 5)),
                  "uniform": lambda k: jax.random.uniform(k, (4, 5)), "normal": lambda k: jax.random.normal(k, (7,)),
                  "permutation": lambda k: jax.random.permutation(k, 20), "bits": lambda k: jax.random.bits(k, (9,), "uint8"),
                  "loop": lambda k: jax.lax.fori_loop(0, 4, lambda i, s: (jax.random.split(s[0])[0], s[1] + jax.random.uniform(s[0])), (k, 0.0))[1],
                  "choice": lambda k: jax.random.choice(k, 30, (6,), replace=False), "select": lambda k: jax.random.key_data(jnp.where(
                      jax.random.uniform(k) < 0.5, jax.random.split(k)[0], k))}
        for name, function in makers.items():
            yield f"{name} {impl}", function, (key,)


def programs():
    """(kind, name, StableHLO) of each."""
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    for kind, make in {"dropout": dropout, "recurrent": recurrent, "tridiagonal": tridiagonal, "typed keys": typed_keys}.items():
        for name, function, args in make(jax, jnp):
            yield kind, name, jax.jit(function).lower(*args).as_text()


if __name__ == "__main__":
    for kind, name, text in programs():
        print(f"{kind}: {name}: {len(text)} characters")
