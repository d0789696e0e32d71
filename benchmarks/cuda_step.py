"""A GPT's training step on a GPU beside XLA:GPU, by way of JAX on the same machine: python benchmarks/cuda_step.py [LAYERS WIDTH LENGTH BATCH].

Compile times are of a program that neither has seen; "warm" is a second process's, with machine code on disk. A step takes the arrays that the last
one gave, donated; its time is the least and the median of 30 groups of 5 steps, the two by turns. Arrays are f32, and products bf16 ("bf16") or f32
rounded to tf32 ("tf32"), as XLA:GPU has f32 by default. On the driver that simulates (XLAC_CUDA_DRIVER) figures mean nothing."""
import os
import statistics
import subprocess
import sys
import time

import numpy as np

SIMULATED = bool(os.environ.get("XLAC_CUDA_DRIVER"))
LAYERS, WIDTH, LENGTH, BATCH = [int(a) for a in sys.argv[1:5]] if len(sys.argv) > 4 else ((1, 64, 16, 2) if SIMULATED else (6, 768, 1024, 8))
VOCABULARY, HEADS = 64 if SIMULATED else 16384, WIDTH // 64
GROUPS, GROUP = (1, 1) if SIMULATED else (30, 5)
SHAPES = {"embed": (VOCABULARY, WIDTH), "place": (LENGTH, WIDTH), "out": (WIDTH, VOCABULARY)}
for _i in range(LAYERS):
    SHAPES |= {f"{_i}.qkv": (WIDTH, 3, HEADS, 64), f"{_i}.join": (HEADS, 64, WIDTH), f"{_i}.up": (WIDTH, 4 * WIDTH), f"{_i}.down": (4 * WIDTH, WIDTH)}
NAMES = sorted(SHAPES)


def step_of(kind):
    import jax
    import jax.numpy as jnp

    t = jnp.bfloat16 if kind == "bf16" else jnp.float32

    def norm(x):
        return ((x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)).astype(t)

    def loss_of(values, rows):
        p = {name: value.astype(t) for name, value in zip(NAMES, values)}
        x = (p["embed"][rows[:, :-1]] + p["place"]).astype(jnp.float32)
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        for i in range(LAYERS):
            q, k, v = jnp.einsum("btd,dchw->cbhtw", norm(x), p[f"{i}.qkv"])
            scores = jnp.einsum("bhtw,bhsw->bhts", q, k).astype(jnp.float32) / 8
            weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(t)
            x = x + jnp.einsum("bhtw,hwd->btd", jnp.einsum("bhts,bhsw->bhtw", weights, v), p[f"{i}.join"])
            x = x + jax.nn.gelu(norm(x) @ p[f"{i}.up"]) @ p[f"{i}.down"]
        logits = jax.nn.log_softmax((norm(x) @ p["out"]).astype(jnp.float32))
        return -jnp.take_along_axis(logits, rows[:, 1:, None], -1).mean()

    def step(rows, values, means, squares):
        loss, grads = jax.value_and_grad(loss_of)(values, rows)
        means = [0.9 * m + 0.1 * g for m, g in zip(means, grads)]
        squares = [0.99 * s + 0.01 * g * g for s, g in zip(squares, grads)]
        values = [v - 1e-3 * m / (jnp.sqrt(s) + 1e-8) for v, m, s in zip(values, means, squares)]
        return loss, values, means, squares
    return step


def arguments():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    values = [(rng.standard_normal(SHAPES[name]) * 0.02).astype(np.float32) for name in NAMES]
    return rows, values, [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]


def lowered(kind):
    import jax

    return jax.jit(step_of(kind), donate_argnums=(1, 2, 3)).lower(*arguments())


class Xlac:
    name = "xlac"

    def __init__(self, kind):
        import xlac

        text = lowered(kind).as_text()
        start = time.perf_counter()
        self.exe = xlac.compile(xlac.parse(text, format="mlir"), device="cuda", results="buffer", numerics="fast" if kind == "tf32" else "strict")
        self.compile = time.perf_counter() - start
        rows, *state = arguments()
        self.rows = xlac.asarray(rows, device="cuda:0")
        self.state = [xlac.asarray(x, device="cuda:0") for part in state for x in part]
        self.donate = xlac.donate

    def step(self):
        loss, *self.state = self.exe(self.rows, *[self.donate(x) for x in self.state])
        return loss

    def wait(self, loss):
        return float(np.asarray(loss))


class Xla:
    name = "XLA"

    def __init__(self, kind):
        import jax

        program = lowered(kind)
        start = time.perf_counter()
        self.exe = program.compile()
        self.compile = time.perf_counter() - start
        self.rows, *self.state = jax.device_put(arguments())

    def step(self):
        loss, *self.state = self.exe(self.rows, *self.state)
        return loss

    def wait(self, loss):
        return float(loss)


def group(side):
    start = time.perf_counter()
    for _ in range(GROUP):
        loss = side.step()
    side.wait(loss)
    return (time.perf_counter() - start) / GROUP


def beside(kind):
    sides = [Xlac(kind), Xla(kind)]
    losses = [[side.wait(side.step()) for _ in range(3)] for side in sides]
    print(f"{kind}: losses of three steps", *[" ".join(f"{x:.6f}" for x in row) for row in losses], sep="  ", flush=True)
    times = [[group(side) for side in sides] for _ in range(GROUPS)]
    warm = float(subprocess.run([sys.executable, __file__, *map(str, (LAYERS, WIDTH, LENGTH, BATCH)), "--warm", kind],
                                capture_output=True, text=True, check=True).stdout.split()[-1])
    for side, mine in zip(sides, zip(*times)):
        print(f"{kind}: {side.name:5s} compile {side.compile:7.3f} s, step {1e3 * min(mine):8.3f} ms, median {1e3 * statistics.median(mine):8.3f}", flush=True)
    ours, theirs = zip(*times)
    print(f"{kind}: ratio of steps {min(ours) / min(theirs):.3f}, of compilations {sides[0].compile / sides[1].compile:.4f}, warm start {1e3 * warm:.0f} ms", flush=True)
    return sides[0].exe


if __name__ == "__main__":
    if "--warm" in sys.argv:
        print(Xlac(sys.argv[-1]).compile)
    else:
        for kind in ("bf16", "tf32"):
            exe = beside(kind)
            if "--profile" in sys.argv:
                print(exe.explain("fusion")[:20000])
