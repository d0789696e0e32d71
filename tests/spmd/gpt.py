"""A small GPT, trained on 8 devices, 4 of data by 2 of tensor parallelism, beside one device: the loss curves are the same.

  python tests/spmd/gpt.py [STEPS]       # 200; prints both curves, exits 1 where they differ
  mpiexec -n 4 python tests/spmd/gpt.py [STEPS]   # the 8 devices are shared by 4 processes; rank 0 prints
  python tests/spmd/gpt.py lower         # writes gpt.jsonl.xz, the programs of JAX that both run

Parameters and Adam's state stay in shards from step to step (ShardedBuffers), and each step is given the last one's."""
import json
import lzma
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

FILE = pathlib.Path(__file__).with_name("gpt.jsonl.xz")
VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 32, 4, 2, 32, 16
SHAPES = {"embed": (VOCABULARY, WIDTH), "place": (LENGTH, WIDTH), "out": (WIDTH, VOCABULARY)}
for _i in range(LAYERS):
    SHAPES |= {f"{_i}.qkv": (WIDTH, 3, HEADS, WIDTH // HEADS), f"{_i}.join": (HEADS, WIDTH // HEADS, WIDTH), f"{_i}.up": (WIDTH, 4 * WIDTH),
               f"{_i}.down": (4 * WIDTH, WIDTH)}
NAMES = sorted(SHAPES)
CUT = {"qkv": (None, None, "model"), "join": ("model",), "up": (None, "model"), "down": ("model",), "out": (None, "model"), "embed": (), "place": ()}


def parameters():
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(SHAPES[name]) * 0.1).astype(np.float32) for name in NAMES]


def tokens(step):
    """Rows that count on by a stride of their own: what comes next is to be learnt from what was before."""
    rng = np.random.default_rng(1000 + step)
    start, stride = rng.integers(0, VOCABULARY, (BATCH, 1)), rng.integers(1, 5, (BATCH, 1))
    return ((start + stride * np.arange(LENGTH + 1)) % VOCABULARY).astype(np.int32)


# --- the program, by JAX ---

def training_step(jax, jnp):
    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def loss_of(p, rows):
        x = p["embed"][rows[:, :-1]] + p["place"]
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        for i in range(LAYERS):
            q, k, v = jnp.einsum("btd,dchw->cbthw", norm(x), p[f"{i}.qkv"])
            scores = jnp.einsum("bthw,bshw->bhts", q, k) / np.sqrt(WIDTH // HEADS)
            weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
            x = x + jnp.einsum("bhts,bshw,hwd->btd", weights, v, p[f"{i}.join"])
            x = x + jax.nn.gelu(norm(x) @ p[f"{i}.up"]) @ p[f"{i}.down"]
        logits = jax.nn.log_softmax(norm(x) @ p["out"])
        return -jnp.take_along_axis(logits, rows[:, 1:, None], -1).mean()

    def step(rows, count, values, means, squares):
        loss, grads = jax.value_and_grad(loss_of)(dict(zip(NAMES, values)), rows)
        new = [], [], []
        for name, value, mean, square in zip(NAMES, values, means, squares):
            grad = grads[name]
            mean, square = 0.9 * mean + 0.1 * grad, 0.99 * square + 0.01 * grad * grad
            rate = 3e-3 * jnp.sqrt(1 - 0.99 ** (count + 1)) / (1 - 0.9 ** (count + 1))
            for kept, one in zip(new, (value - rate * mean / (jnp.sqrt(square) + 1e-8), mean, square)):
                kept.append(one)
        return loss, count + 1, *new
    return step


def lower():
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    cut = [NamedSharding(mesh, P(*CUT[name.split(".")[-1]])) for name in NAMES]
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    step, values = training_step(jax, jnp), parameters()
    arguments = tokens(0), np.float32(0), values, values, values
    sharded = jax.jit(step, in_shardings=(rows, whole, cut, cut, cut), out_shardings=(whole, whole, cut, cut, cut), donate_argnums=(2, 3, 4))
    with lzma.open(FILE, "wt") as file:
        for devices, program in ((1, jax.jit(step, donate_argnums=(2, 3, 4))), (8, sharded)):
            file.write(json.dumps({"devices": devices, "text": program.lower(*arguments).as_text()}) + "\n")


# --- training ---

def compiled(devices):
    import xlac

    with lzma.open(FILE, "rt") as file:
        text = next(row["text"] for row in map(json.loads, file) if row["devices"] == devices)
    if devices == 1:
        return xlac.compile(xlac.parse(text, format="mlir"))
    return xlac.compile(xlac.parse(text, format="mlir"), devices=devices, results="sharded")


def train(devices, steps):
    """The losses, and the executable."""
    import xlac

    exe, n, losses = compiled(devices), len(NAMES), []
    zeros = [np.zeros_like(v) for v in parameters()]
    state = [*parameters(), *zeros, *[z.copy() for z in zeros]]
    count = np.zeros((), np.float32)
    for step in range(steps):
        given = [xlac.donate(s) for s in state] if step and devices > 1 else state
        loss, count, *state = exe(tokens(step), count, *given)
        losses.append(float(np.asarray(loss)))
        assert len(state) == 3 * n
    return losses, exe


def rank():
    """This process's, where mpiexec (or XLAC_COORDINATOR) has started several: they share the 8 devices then."""
    import xlac

    if any(name in os.environ for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "XLAC_COORDINATOR")):
        xlac.distributed.init()
        print(xlac.distributed.names()[xlac.distributed.rank()], flush=True)
    return xlac.distributed.rank()


def main(steps):
    curves = {}
    if rank() > 0:
        return not train(8, steps)
    for devices in (1, 8):
        began = time.perf_counter()
        curves[devices], exe = train(devices, steps)
        print(f"{devices} devices: {1e3 * (time.perf_counter() - began) / steps:.2f} ms a step with compilation")
    for step in [*range(0, steps, max(1, steps // 20)), steps - 1]:
        print(f"step {step}: {curves[1][step]:.5f} {curves[8][step]:.5f}")
    off = max(abs(a - b) for a, b in zip(curves[1], curves[8]))
    print(f"largest difference {off:.2e}")
    return off > 5e-3


if __name__ == "__main__":
    if sys.argv[1:] == ["lower"] and "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
        sys.exit(subprocess.run([sys.executable, __file__, "lower"], env=os.environ | flags).returncode)
    sys.exit(lower() if sys.argv[1:] == ["lower"] else main(int(sys.argv[1]) if sys.argv[1:] else 200))
