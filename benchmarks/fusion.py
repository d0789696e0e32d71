"""Programs whose speed is that of what runs together: pairwise distances and forces, mixtures, optimisers, normalisations, losses, stencils.

  python benchmarks/fusion.py [--rounds 5] [--only NAME ...] [--beside TREE] [--half 0|1] [--no-xla]

Needs the `test` extra (JAX writes the programs). Each engine is a process of its own, all take turns, and the least of the rounds counts.
--beside names another checkout, built in place, to be measured in the same run. Ratios above 1: this checkout is faster. --half 1: the
programs that were not looked at while fusion was written."""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).parents[1]
PROGRAMS = {}


def program(*shapes, half=0, **kinds):
    def note(f):
        PROGRAMS[f.__name__] = dict(f=f, shapes=shapes, half=half, **kinds)
        return f

    return note


def array(seed, shape):
    rng = np.random.default_rng(seed)
    shape = tuple(shape)
    if shape[:1] == ("int",):
        return rng.integers(0, shape[1], shape[2:]).astype(np.int32)
    return rng.standard_normal(shape, dtype=np.float32)


def define():
    import jax
    import jax.numpy as jnp
    from jax import lax

    @program((512, 3))
    def distances_3(x):
        return ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)

    @program((400, 32), (300, 32))
    def distances_32(x, y):
        return jnp.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))

    @program((256, 200), (128, 200), half=1)
    def manhattan_200(x, y):
        return jnp.abs(x[:, None, :] - y[None, :, :]).sum(-1)

    @program((600, 8))
    def rbf_8(x):
        return jnp.exp(-0.5 * ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1))

    @program((500, 5), (400, 5), (5,), half=1)
    def matern_5(x, y, scale):
        r = jnp.sqrt((((x[:, None, :] - y[None, :, :]) / scale) ** 2).sum(-1) + 1e-12)
        return (1 + jnp.sqrt(5.0) * r + 5 / 3 * r * r) * jnp.exp(-jnp.sqrt(5.0) * r)

    @program((4096, 16), (32, 16))
    def kmeans_assign(x, c):
        return jnp.argmin(((x[:, None, :] - c[None, :, :]) ** 2).sum(-1), axis=1)

    @program((4096, 8), (24, 8), half=1)
    def kmeans_step(x, c):
        near = jnp.argmin(((x[:, None, :] - c[None, :, :]) ** 2).sum(-1), axis=1)
        one = (near[:, None] == jnp.arange(24)[None, :]).astype(jnp.float32)
        return (one.T @ x) / jnp.maximum(one.sum(0), 1)[:, None]

    @program((512, 3), (512,))
    def nbody(x, m):
        d = x[None, :, :] - x[:, None, :]
        r2 = (d * d).sum(-1) + 0.01
        return (d * (m[None, :] * r2**-1.5)[:, :, None]).sum(1)

    @program((384, 3), half=1)
    def lennard_jones(x):
        d = x[:, None, :] - x[None, :, :]
        r2 = (d * d).sum(-1) + jnp.eye(384)
        s6 = (1 / r2) ** 3
        return (4 * (s6 * s6 - s6) * (1 - jnp.eye(384))).sum() / 2

    @program((2000, 6), (12, 6), (12, 6), (12,))
    def mixture(x, mu, ls, w):
        z = (x[:, None, :] - mu[None]) * jnp.exp(-ls)[None]
        logp = -0.5 * (z * z).sum(-1) - ls.sum(-1)[None] + jax.nn.log_softmax(w)[None]
        return jax.nn.logsumexp(logp, axis=1).mean()

    def adam(p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / 0.9) / (jnp.sqrt(v / 0.999) + 1e-8), m, v

    @program(*[(1024, 512)] * 4)
    def adam_one(p, g, m, v):
        return adam(p, g, m, v)

    @program(*[(512, 256), (256,), (256, 512), (512,)] * 4, half=1)
    def adam_four(*a):
        p, g, m, v = a[:4], a[4:8], a[8:12], a[12:]
        norm = jnp.sqrt(sum((x * x).sum() for x in g))
        g = [x * jnp.minimum(1.0, 1 / (norm + 1e-6)) for x in g]
        return [adam(*x) for x in zip(p, g, m, v)]

    @program(*[(1 << 20,)] * 3)
    def momentum_decay(p, g, m):
        g = g + 1e-4 * p
        m = 0.9 * m + g
        return p - 0.1 * (g + 0.9 * m), m

    @program((1024, 768), (768,), (1024, 768), half=0)
    def layernorm_backward(x, gamma, dy):
        def f(x, gamma):
            mu = x.mean(-1, keepdims=True)
            v = ((x - mu) ** 2).mean(-1, keepdims=True)
            return (x - mu) * lax.rsqrt(v + 1e-5) * gamma

        y, back = jax.vjp(f, x, gamma)
        return y, *back(dy)

    @program((1024, 768), (768,), half=1)
    def rmsnorm_gelu(x, g):
        y = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g
        return jax.nn.gelu(y)

    @program((32, 28, 28, 64), (64,), (64,))
    def batchnorm_train(x, g, b):
        mu = x.mean((0, 1, 2))
        v = ((x - mu) ** 2).mean((0, 1, 2))
        return jax.nn.relu((x - mu) * lax.rsqrt(v + 1e-5) * g + b), mu, v

    @program((16, 32, 32, 64), (64,), half=1)
    def groupnorm(x, g):
        y = x.reshape(16, 32, 32, 8, 8)
        mu = y.mean((1, 2, 4), keepdims=True)
        v = y.var((1, 2, 4), keepdims=True)
        return ((y - mu) * lax.rsqrt(v + 1e-5)).reshape(x.shape) * g

    @program((2048, 1000), ("int", 1000, 2048))
    def cross_entropy(x, y):
        def f(x):
            logp = jax.nn.log_softmax(x)
            hot = jax.nn.one_hot(y, 1000) * 0.9 + 0.0001
            return -(hot * logp).sum(-1).mean()

        return jax.value_and_grad(f)(x)

    @program((4096, 256), (4096, 256), half=1)
    def huber(x, y):
        d = x - y
        e = jnp.where(jnp.abs(d) < 1, 0.5 * d * d, jnp.abs(d) - 0.5)
        return e.mean(), e.mean(0), jnp.clip(d, -1, 1)

    @program((512, 512))
    def cosine(x):
        n = x * lax.rsqrt((x * x).sum(-1, keepdims=True))
        return n, (n[:, None, :64] * n[None, :, :64]).sum(-1)

    @program((480, 640, 3))
    def rgb_to_luma(x):
        y = 0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]
        return y, (x[..., 2] - y) * 0.564, (x[..., 0] - y) * 0.713

    @program((1000, 1000))
    def laplace(u):
        p = jnp.pad(u, 1)
        return u + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u)

    @program((512, 512), (512, 512), half=1)
    def gray_scott(u, v):
        lap = lambda a: jnp.roll(a, 1, 0) + jnp.roll(a, -1, 0) + jnp.roll(a, 1, 1) + jnp.roll(a, -1, 1) - 4 * a
        r = u * v * v
        return u + 0.16 * lap(u) - r + 0.035 * (1 - u), v + 0.08 * lap(v) + r - 0.1 * v

    @program((400000,), half=1)
    def black_scholes(s):
        s = 100 * jnp.exp(0.1 * s)
        d1 = (jnp.log(s / 100) + 0.05) / 0.2
        d2 = d1 - 0.2
        n = lambda x: 0.5 * (1 + lax.erf(x * 0.70710678))
        return s * n(d1) - 95 * n(d2), n(d1)

    @program((20000,), (64,))
    def histogram(x, edges):
        return ((x[:, None] >= edges[None, :]) & (x[:, None] < edges[None, :] + 0.1)).astype(jnp.float32).sum(0)

    @program((300, 20), (20, 200), half=1)
    def min_plus(a, b):
        return (a[:, :, None] + b[None]).min(1)

    @program((8, 12, 256, 64), half=1)
    def rope(x):
        t = jnp.arange(256)[:, None] * 10000 ** (-jnp.arange(32) / 32)[None]
        a, b = x[..., :32], x[..., 32:]
        return jnp.concatenate([a * jnp.cos(t) - b * jnp.sin(t), a * jnp.sin(t) + b * jnp.cos(t)], -1)

    @program((64, 1024), (64, 1024), (64, 1024), (64, 1024), (64, 1024))
    def lstm_gates(i, f, g, o, c):
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    @program((2048, 512), half=1)
    def standardise_columns(x):
        return (x - x.mean(0)) / (x.std(0) + 1e-6)

    @program((1024, 1024), (1024,))
    def masked_softmax(x, b):
        s = jnp.where(jnp.tril(jnp.ones((1024, 1024), bool)), x * 0.125 + b[None, :], -1e9)
        return jax.nn.softmax(s, -1)


def worker(folder):
    """Answers to lines "ROUND NAME": the least seconds of a call."""
    from compiled import inputs

    engine, clock = sys.argv[2], time.process_time if sys.argv[4] == "True" else time.perf_counter
    made = {}
    if engine == "xla":
        import compiled

        xla = compiled.Xla()
    else:
        import xlac
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            text, spec = next(pathlib.Path(folder).glob(f"{name}.*mlir")).read_text(), json.loads((pathlib.Path(folder) / f"{name}.json").read_text())
            arrays = inputs(spec) if isinstance(spec, dict) else [array(i, s) for i, s in enumerate(spec)]
            if engine == "xla":
                exe, args = xla.compile(text), xla.put(arrays)
                made[name] = lambda exe=exe, args=args: xla.call(exe, args)
            else:
                exe = xlac.compile(xlac.parse(text))
                made[name] = lambda exe=exe, arrays=arrays: exe(*arrays)
        least, spent = math.inf, 0.0
        while spent < 0.05:
            start = clock()
            made[name]()
            s = clock() - start
            least, spent = min(least, s), spent + s
        print(least, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--beside")
    parser.add_argument("--half", type=int)
    parser.add_argument("--programs", help="a folder of programs in the form of XLAC_PROGRAMS (compiled.py), instead of these")
    parser.add_argument("--no-xla", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="measure processor time, of all threads")
    parser.add_argument("--write", help="write the programs into this folder, and stop")
    options = parser.parse_args()
    if options.programs:
        return compare(options, options.programs, sorted(p.stem for p in pathlib.Path(options.programs).glob("*.json") if wanted(p, options.only)))
    define()
    import jax

    names = [n for n, p in PROGRAMS.items() if (not options.only or n in options.only) and options.half in (None, p["half"])]
    folder = options.write or tempfile.mkdtemp()
    pathlib.Path(folder).mkdir(exist_ok=True)
    for name in names:
        shapes = PROGRAMS[name]["shapes"]
        text = jax.jit(PROGRAMS[name]["f"]).lower(*[array(i, s) for i, s in enumerate(shapes)]).as_text()
        (pathlib.Path(folder) / f"{name}.mlir").write_text(text)
        (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(shapes))
    if not options.write:
        compare(options, folder, names)


def wanted(path, only):
    """Programs for one device that begin with none of its arguments donated, and of a size that is compiled at once."""
    spec = json.loads(path.read_text())
    small = path.with_name(path.stem + ".stablehlo.mlir").stat().st_size < 1_000_000
    return spec.get("n_devices", 1) == 1 and not spec["donated"] and small and (not only or spec["name"] in only)


def compare(options, folder, names):
    trees = {"xlac": ROOT} | ({"beside": pathlib.Path(options.beside)} if options.beside else {}) | ({} if options.no_xla else {"xla": ROOT})
    workers = {}
    for engine, tree in trees.items():
        env = dict(os.environ, XLAC_PROGRAMS=str(folder), PYTHONPATH=os.pathsep.join([str(tree / "python"), str(ROOT / "benchmarks")]))
        workers[engine] = subprocess.Popen([sys.executable, __file__, "--worker", engine, folder, str(options.cpu)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ratios = {engine: [] for engine in trees}
    for name in names:
        least = dict.fromkeys(trees, math.inf)
        for _ in range(options.rounds):
            for engine, w in workers.items():
                w.stdin.write(name + "\n")
                w.stdin.flush()
                least[engine] = min(least[engine], float(w.stdout.readline()))
        for engine in trees:
            ratios[engine].append(least[engine] / least["xlac"])
        others = "".join(f"   {engine} {least[engine] / least['xlac']:6.2f}x" for engine in trees if engine != "xlac")
        print(f"{name:22s} {least['xlac'] * 1e6:10.1f} us{others}", flush=True)
    for engine in trees:
        if engine != "xlac":
            print(f"{engine}: geometric mean {math.exp(sum(map(math.log, ratios[engine])) / len(names)):.2f}, least {min(ratios[engine]):.2f}")
    for w in workers.values():
        w.stdin.close()
        w.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[3])
    else:
        main()
