"""Programs on 8 devices of this process beside XLA:CPU's 8 virtual devices: data, tensor, sequence, expert and pipeline parallel, FSDP.

  python benchmarks/sharded.py [NAME ...]      # the programs of that name, or all
  python benchmarks/sharded.py --markdown      # all, and then the rows of docs/performance.md; with --folder also of those, and over all
  python benchmarks/sharded.py --folder FOLDER # StableHLO programs for 8 devices, each with a .json file that describes its arguments
  python benchmarks/sharded.py --memory        # a device's memory beside an eighth of one device's, and what is replicated
  python benchmarks/sharded.py --collectives   # all-reduce and all-gather beside memcpy of the same bytes on as many threads
  python benchmarks/sharded.py --calls         # what a call of a tiny program costs, beside one device's

Arguments and results stay in shards between calls, on either side. Figures are CPU time of all threads of the process, so that other
processes count for little; the least of many calls that are made in turn."""
import json
import math
import os
import pathlib
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import compiled

import xlac

PROGRAMS = {}
FLAT, SQUARE = ({"d": 8}, {"d": 2, "m": 4})
ROUNDS = 20


def program(mesh, *arguments, out=None):
    """A function of arrays, (shape, sharding[, dtype]) each, on a mesh of those axes."""
    def add(f):
        PROGRAMS[f.__name__] = (f, mesh, arguments, out)
        return f
    return add


def grid(mesh):
    return Mesh(np.array(jax.devices()).reshape(tuple(mesh.values())), tuple(mesh))


def manual(mesh, in_specs, out_specs):
    return lambda f: jax.shard_map(f, mesh=grid(mesh), in_specs=in_specs, out_specs=out_specs, check_vma=False)


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attend(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def block(x, qkv, o, up, down):
    b, s, d = x.shape
    q, k, v = jnp.split((norm(x) @ qkv).reshape(b, s, 8, -1), 3, -1)
    x = x + attend(q, k, v).reshape(b, s, d) @ o
    return x + jax.nn.gelu(norm(x) @ up) @ down


def sgd(loss, *weights):
    return [w - 0.01 * g for w, g in zip(weights, jax.grad(lambda w: loss(*w))(weights))]


# --- data parallel ---

@program(FLAT, ((512, 256), P("d")), ((256, 1024), P()), ((1024, 256), P()))
def data_mlp(x, w, v):
    return jax.nn.gelu(x @ w) @ v


@program(FLAT, ((256, 128), P("d")), ((128, 512), P()), ((512, 128), P()), out=[P(), P()])
def data_mlp_step(x, w, v):
    return sgd(lambda w, v: ((jax.nn.gelu(x @ w) @ v - x) ** 2).mean(), w, v)


@program(FLAT, ((16, 32, 32, 3), P("d")), ((3, 3, 3, 32), P()), ((3, 3, 32, 32), P()), ((32, 10), P()))
def data_convolutions(x, a, b, c):
    for w in (a, b):
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    return x.mean((1, 2)) @ c


@program(FLAT, ((64, 128), P("d"), "int32"), ((1000, 64), P()), ((64, 1000), P()))
def data_embedding_loss(tokens, table, head):
    logits = jax.nn.log_softmax(table[tokens] @ head, -1)
    return -jnp.take_along_axis(logits, tokens[..., None], -1).mean()


# --- tensor parallel ---

@program(FLAT, ((512, 256), P()), ((256, 1024), P(None, "d")), ((1024, 256), P("d")))
def tensor_mlp(x, w, v):
    return jax.nn.gelu(x @ w) @ v


@program(FLAT, ((256, 128), P()), ((128, 512), P(None, "d")), ((512, 128), P("d")), out=[P(None, "d"), P("d")])
def tensor_mlp_step(x, w, v):
    return sgd(lambda w, v: ((jax.nn.gelu(x @ w) @ v - x) ** 2).mean(), w, v)


@program(FLAT, ((4, 128, 8, 32), P(None, None, "d")), ((4, 128, 8, 32), P(None, None, "d")), ((4, 128, 8, 32), P(None, None, "d")))
def tensor_heads(q, k, v):
    return attend(q, k, v)


@program(FLAT, ((1024, 128), P()), ((128, 4096), P(None, "d")), ((1024,), P(), "int32"))
def tensor_vocabulary_loss(x, head, labels):
    logits = x @ head
    picked = jnp.sum(jnp.where(jnp.arange(4096) == labels[:, None], logits, 0.0), -1)
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


@program(SQUARE, ((512, 512), P("d", "m")), ((512, 512), P("d", "m")), out=P("d", "m"))
def tensor_product_of_two_axes(a, b):
    return a @ b


# --- sequence parallel ---

@program(FLAT, ((2, 512, 4, 32), P(None, "d")), ((2, 512, 4, 32), P(None, "d")), ((2, 512, 4, 32), P(None, "d")))
def sequence_attention(q, k, v):
    return attend(q, k, v)


@program(FLAT, ((2, 512, 4, 32), P(None, "d")), ((2, 512, 4, 32), P(None, "d")), ((2, 512, 4, 32), P(None, "d")))
def sequence_ring_attention(q, k, v):
    @manual(FLAT, (P(None, "d"),) * 3, P(None, "d"))
    def ring(q, k, v):
        def step(_, carry):
            k, v, top, total, out = carry
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
            new = jnp.maximum(top, scores.max(-1))
            weights, scale = jnp.exp(scores - new[..., None]), jnp.exp(top - new)
            out = out * scale[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
            k, v = (jax.lax.ppermute(t, "d", [(i, (i + 1) % 8) for i in range(8)]) for t in (k, v))
            return k, v, new, total * scale + weights.sum(-1), out
        b, s, h, d = q.shape
        start = (k, v, jnp.full((b, h, s), -jnp.inf), jnp.zeros((b, h, s)), jnp.zeros((b, h, s, d)))
        _, _, _, total, out = jax.lax.fori_loop(0, 8, step, start)
        return (out / total[..., None]).transpose(0, 2, 1, 3)
    return ring(q, k, v)


@program(FLAT, ((8, 1024, 128), P(None, "d")), ((128, 256), P()), ((256, 128), P()))
def sequence_norm_and_mlp(x, w, v):
    return x + jax.nn.gelu(norm(x) @ w) @ v


@program(FLAT, ((4, 4096, 32), P(None, "d")), ((5, 1, 32), P()))
def sequence_convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=32)


# --- expert parallel ---

@program(FLAT, ((1024, 128), P("d")), ((128, 8), P()), ((8, 128, 256), P("d")), ((8, 256, 128), P("d")), out=P("d"))
def expert_layer(x, gate, w, v):
    best = jax.nn.softmax(x @ gate, -1)
    choice = jax.nn.one_hot(best.argmax(-1), 8)
    place = (jnp.cumsum(choice, 0) - 1) * choice
    slot = jax.nn.one_hot(place.sum(-1).astype(jnp.int32), 160)
    send = choice[:, :, None] * slot[:, None, :]
    inside = jnp.einsum("tec,td->ecd", send, x)
    return jnp.einsum("tec,ecd->td", send * best.max(-1)[:, None, None], jax.nn.gelu(inside @ w) @ v)


@program(FLAT, ((8, 8, 32, 128), P("d")), ((8, 128, 256), P("d")), ((8, 256, 128), P("d")))
def expert_exchange(x, w, v):
    @manual(FLAT, (P("d"),) * 3, P("d"))
    def layer(x, w, v):
        there = jax.lax.all_to_all(x, "d", 1, 0, tiled=True)
        return jax.lax.all_to_all(jax.nn.gelu(there @ w[0]) @ v[0], "d", 0, 1, tiled=True)
    return layer(x, w, v)


# --- pipeline parallel ---

@program(FLAT, ((8, 16, 128), P()), ((8, 128, 128), P("d")))
def pipeline_of_layers(x, w):
    @manual(FLAT, (P(), P("d")), P())
    def run(x, w):
        stage = jax.lax.axis_index("d")

        def step(i, carry):
            here, out = carry
            here = jnp.where(stage == 0, x[jnp.minimum(i, 7)], here)
            here = jnp.tanh(here @ w[0])
            at = jnp.maximum(i - 7, 0)
            out = out.at[at].set(jnp.where((stage == 7) & (i >= 7), here, out[at]))
            return jax.lax.ppermute(here, "d", [(i, (i + 1) % 8) for i in range(8)]), out
        return jax.lax.psum(jax.lax.fori_loop(0, 15, step, (jnp.zeros((16, 128)), jnp.zeros_like(x)))[1], "d")
    return run(x, w)


# --- FSDP ---

@program(FLAT, ((256, 128), P("d")), ((128, 512), P("d")), ((512, 128), P("d")), out=[P("d"), P("d")])
def fsdp_mlp_step(x, w, v):
    return sgd(lambda w, v: ((jax.nn.gelu(x @ w) @ v - x) ** 2).mean(), w, v)


@program(FLAT, ((8, 64, 128), P("d")), ((128, 384), P("d")), ((128, 128), P("d")), ((128, 512), P("d")), ((512, 128), P("d")), out=[P("d")] * 4)
def fsdp_block_step(x, *weights):
    return sgd(lambda *w: (block(x, *w) ** 2).mean(), *weights)


@program(FLAT, *[((512, 512), P("d"))] * 4)
def fsdp_adam(w, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


# --- several at once ---

@program(SQUARE, ((8, 64, 128), P("d")), ((128, 384), P(None, "m")), ((128, 128), P("m")), ((128, 512), P(None, "m")), ((512, 128), P("m")))
def data_and_tensor_block(x, *weights):
    return block(x, *weights)


# --- both sides ---

def values(arguments):
    rng = np.random.default_rng(0)
    for shape, _, *dtype in arguments:
        yield rng.integers(0, 1000, shape).astype(dtype[0]) if dtype else (rng.standard_normal(shape) / 8).astype(np.float32)


def least(calls, rounds=ROUNDS):
    best = [math.inf] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begun = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - begun)
    return best


def lowered(name):
    f, mesh, arguments, out = PROGRAMS[name]
    named = [NamedSharding(grid(mesh), spec) for _, spec, *_ in arguments]
    wanted = {} if out is None else {"out_shardings": jax.tree.map(lambda s: NamedSharding(grid(mesh), s), out, is_leaf=lambda s: isinstance(s, P))}
    jitted, arrays = jax.jit(f, in_shardings=named, keep_unused=True, **wanted), list(values(arguments))
    return jitted, jitted.lower(*arrays).as_text(), arrays, named


def beside(text, arrays, theirs):
    """CPU seconds of a call: xlac's, XLA's by `theirs`, which returns arrays of JAX."""
    exe = xlac.compile(text, devices=8, results="sharded")
    said = exe.explain("sharding").data
    assert said["whole"] is None, said["whole"]
    ours = [xlac.ShardedBuffer.of(a, xlac.sharding.Sharding.parse(leaf["sharding"])) if leaf["sharding"] else a
            for a, leaf in zip(arrays, said["arguments"])]
    found = exe(*ours)
    for a, b in zip(found if isinstance(found, (list, tuple)) else [found], theirs(), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-3, atol=2e-4)
    return least([lambda: exe(*ours), lambda: jax.block_until_ready(theirs())])


def both(name):
    jitted, text, arrays, named = lowered(name)
    given = [jax.device_put(a, s) for a, s in zip(arrays, named)]
    return beside(text, arrays, lambda: jax.tree.leaves(jitted(*given)))


def of_file(text):
    """CPU seconds of a call of one program for 8 devices, as StableHLO: xlac's, XLA's."""
    spec = json.loads(text.with_name(text.name.replace(".stablehlo.mlir", ".json")).read_text())
    devices, loaded = tuple(jax.devices()), compiled.Xla(8).compile(text.read_text())
    arrays = compiled.inputs(spec)
    given = [jax.device_put(a, GSPMDSharding(devices, s)) for a, s in zip(arrays, loaded.get_parameter_shardings())]
    shardings = [GSPMDSharding(devices, s) for s in loaded.get_output_shardings()]

    def theirs():
        parts = loaded.execute_sharded(given).disassemble_into_single_device_arrays()
        return [jax.make_array_from_single_device_arrays(tuple(out["shape"]), s, shards) for out, s, shards in zip(spec["outputs"], shardings, parts)]
    return beside(text.read_text(), arrays, theirs)


def programs_of(folder):
    """{name: its StableHLO file} of those for 8 devices."""
    texts = sorted(pathlib.Path(folder).glob("*.stablehlo.mlir"))
    return {text.name.partition(".")[0]: text for text in texts if "num_partitions = 8" in text.read_text()[:1000]}


def table(names, both=both):
    print(f"{'program':<28}{'xlac':>10}{'XLA':>10}{'times as fast':>15}")
    ratios, rows = [], []
    for name in names:
        ours, theirs = both(name)
        ratios.append(theirs / ours)
        rows.append(f"| {name} | {ours * 1e3:.2f} | {theirs * 1e3:.2f} | {ratios[-1]:.2f} |")
        print(f"{name:<28}{ours * 1e3:>7.2f} ms{theirs * 1e3:>7.2f} ms{ratios[-1]:>15.2f}", flush=True)
    print_mean(ratios)
    return rows, ratios


def print_mean(ratios):
    print(f"{len(ratios)} programs, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times as fast, slower on {sum(r < 1 for r in ratios)}")


def markdown(files):
    """All programs, those of files too, as rows of docs/performance.md."""
    rows, ratios = table(PROGRAMS)
    if files:
        more, others = table(files, lambda name: of_file(files[name]))
        rows, ratios = rows + more, ratios + others
        print_mean(ratios)
    print("\n".join(["", "| program | xlac | XLA | times as fast |", "|---|---|---|---|", *rows]))


# --- memory ---

AXES = re.compile(r"replica_groups=mesh\[.*?\] \{(.*?)\}")
NAMES = re.compile(r"'(\w+)'")
LINE = re.compile(r"^  (?:ROOT )?%(\S+) = .*? ([\w-]+)\((.*?)\)(.*)$", re.M)
ONE_TO_ONE = {"transpose", "reshape", "bitcast", "copy", "convert"}


def cut_of(local, arguments, axes):
    """{op: the axes of the mesh along which devices have other elements of it}, of the entry of a device's program. What is still to be added up
    along an axis is as large on each device as its sum: it is not cut along that. Where an op may do either, it is taken as cut."""
    found, read = {}, {}
    lines = LINE.findall(local[local.index("ENTRY"):])
    for name, opcode, operands, rest in lines:
        inputs = re.findall(r"%([\w.-]+)", operands)
        along = {axis for group in AXES.findall(rest) for axis in NAMES.findall(group)}
        cut = set().union(*(found.get(i, set()) for i in inputs))
        if opcode == "parameter":
            cut = set(arguments[int(operands)])
        elif opcode == "partition-id":
            cut = set(axes)
        elif opcode in ("all-reduce", "all-gather"):
            cut -= along
        elif opcode in ("reduce-scatter", "all-to-all"):
            cut |= along
        found[name] = cut
        read[name] = (opcode, inputs, along)
    for name in reversed(read):
        opcode, inputs, along = read[name]
        sums = along if opcode in ("all-reduce", "reduce-scatter") else parts_of(read, found, name) if opcode in ONE_TO_ONE else set()
        for operand in inputs:
            found[operand] = found[operand] - sums if operand in found else set()
    return found


def parts_of(read, found, name):
    """Axes along which what is made of the op's operand one to one is in parts."""
    return set().union(*(found[i] for i in read[name][1])) - found[name]


def temporaries(step, sizes):
    """(bytes of a device's frame, those of them that other devices have, too), where most is alive."""
    cut = cut_of(step.local.to_text(), [set(NAMES.findall((leaf["sharding"] or "").replace('"', "'").partition(">")[2])) for leaf in step.arguments], sizes)
    devices, shared = math.prod(sizes.values()), 0
    for op, size in step.memory.by_op.items():
        shared += size * (1 - math.prod(sizes[axis] for axis in cut.get(op.removesuffix(" (scratch)"), sizes)) / devices)
    return step.memory["frame_bytes"], round(shared)


def memory(names):
    """What a device has at once, beside an eighth of what one device has, and what is replicated. Of arguments and results that is what a device has
    beyond an eighth; of temporaries what other devices have, too: gathered weights, and sums in parts, which are as large as their sum."""
    print(f"{'program':<28}{'a device':>12}{'one device / 8':>16}{'replicated':>12}{'ratio':>8}")
    ratios = []
    for name in names:
        f, sizes = PROGRAMS[name][:2]
        _, text, arrays, _ = lowered(name)
        if "sdy.manual_computation" in text:
            continue  # written by shard
        one = xlac.compile(jax.jit(f, keep_unused=True).lower(*arrays).as_text()).memory
        step = xlac.sharding.simulate(text, hardware="cpu-ethernet")
        held, whole = step.argument_bytes + step.result_bytes, (one["argument_bytes"] + one["result_bytes"]) / 8
        frame, shared = temporaries(step, sizes)
        expected = one["frame_bytes"] / 8 + whole + (held - whole) + shared
        ratios.append((held + frame) / expected)
        print(f"{name:<28}{held + frame:>12,}{one['frame_bytes'] // 8 + round(whole):>16,}{round(held - whole) + shared:>12,}{ratios[-1]:>8.2f}", flush=True)
    print(f"{len(ratios)} programs, geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, the largest {max(ratios):.2f}")


# --- collectives ---

def collectives():
    axis = xlac.sharding.Sharding.parse('#sdy.sharding<mesh<["d"=8]>, [{"d"}]>')
    pool = ThreadPoolExecutor(8)
    print(f"{'collective':<14}{'bytes a device':>15}{'xlac':>11}{'memcpy':>11}{'of its speed':>14}")
    for name, specs, move in (("all_reduce", P(), lambda x: jax.lax.psum(x, "d")), ("all_gather", P(), lambda x: jax.lax.all_gather(x, "d", tiled=True))):
        for n in (1 << 14, 1 << 17, 1 << 20, 1 << 21):
            x = np.arange(8 * n, dtype=np.float32)
            exe = xlac.compile(jax.jit(manual(FLAT, P("d"), specs)(move)).lower(x).as_text(), devices=8, results="sharded")
            given = xlac.ShardedBuffer.of(x, axis)
            parts = [x[i * n:(i + 1) * n].copy() for i in range(8)]
            rows = [np.empty((1 if name == "all_reduce" else 8, n), np.float32) for _ in range(8)]

            def copy(i):
                for k, row in enumerate(rows[i]):
                    np.copyto(row, parts[k if name == "all_gather" else i])
            exe(given)
            ours, theirs = least([lambda: exe(given), lambda: list(pool.map(copy, range(8)))])
            print(f"{name:<14}{4 * n:>15,}{ours * 1e6:>8.0f} us{theirs * 1e6:>8.0f} us{theirs / ours:>14.2f}", flush=True)


# --- calls ---

def per_call(call, count=200):
    """CPU seconds of one of many."""
    def many():
        for _ in range(count):
            call()
    return least([many])[0] / count


def calls():
    """Tiny programs: what there is beside a call of one device is overhead."""
    mesh, x = jax.sharding.Mesh(np.array(jax.devices()), "d"), np.ones((32, 4), np.float32)
    own = xlac.compile(jax.jit(lambda x: x + x).lower(x[:4]).as_text())
    one = per_call(lambda: own(x[:4]))
    print(f"{'program':<12}{'whole arrays':>14}{'a device':>11}{'shards':>11}{'a device':>11}{'XLA, shards':>14}   (one device: {one * 1e6:.2f} us)")
    for name, f, out in (("add", lambda x: x + x, P("d")), ("all_reduce", lambda x: x.sum(0), P())):
        jitted = jax.jit(f, in_shardings=NamedSharding(mesh, P("d")), out_shardings=NamedSharding(mesh, out))
        text, given = jitted.lower(x).as_text(), jax.device_put(x, NamedSharding(mesh, P("d")))
        whole, cut = xlac.compile(text, devices=8), xlac.compile(text, devices=8, results="sharded")
        shards = xlac.ShardedBuffer.of(x, xlac.sharding.Sharding.parse('#sdy.sharding<mesh<["d"=8]>, [{"d"}, {}]>'))
        found = [per_call(lambda: whole(x)), per_call(lambda: cut(shards)), per_call(lambda: jax.block_until_ready(jitted(given)), 20)]
        each = [f"{t * 1e6:.2f}" for t in (found[0], (found[0] - one) / 8, found[1], (found[1] - one) / 8, found[2])]
        print(f"{name:<12}{each[0]:>11} us{each[1]:>8} us{each[2]:>8} us{each[3]:>8} us{each[4]:>11} us", flush=True)


if __name__ == "__main__":
    if "--calls" in sys.argv:
        calls()
    elif "--collectives" in sys.argv:
        collectives()
    elif "--memory" in sys.argv:
        memory(PROGRAMS)
    elif "--markdown" in sys.argv or "--folder" in sys.argv:
        files = programs_of(sys.argv[sys.argv.index("--folder") + 1]) if "--folder" in sys.argv else {}
        if "--markdown" in sys.argv:
            markdown(files)
        else:
            table(files, lambda name: of_file(files[name]))
    else:
        table(sys.argv[1:] or PROGRAMS)
