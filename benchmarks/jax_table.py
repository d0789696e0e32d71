"""JAX on xlac beside JAX on XLA:CPU, all in one run: calls, compilation, steps and memory.

    JAX_PLATFORMS=xlac,cpu python benchmarks/jax_table.py [--programs FILE_OR_FOLDER ...] [--limit 300] [--rounds 3]

calls     microseconds of a jitted function's call until it returns, and until its result is there
compile   milliseconds from a program to its first result, tracing excluded: each is compiled anew and run once. Programs are StableHLO: lines of
          files (tests/oracle/jax_programs.jsonl.xz, which JAX's own tests compiled; tests/oracle/capture_jax.py makes longer ones), and
          *.stablehlo.mlir of folders. Those of files and those of folders are counted apart. A long program's run is most of this, and is
          the same the second time: what goes beyond a second run is a row of its own
parts     of a compilation alone: by way of JAX with both, in the plugin, and reading and compiling by themselves, in CPU time of all threads
steps     milliseconds of longer functions, of the same program by xlac's own executor, without JAX, and of its run within the plugin, by JAX's
          profile; and what JAX's own part of a call takes where the program before it has left nothing of JAX's in the caches
memory    megabytes that a process of its own takes at most, beyond what it took before, to train a small network for 20 steps

The two backends take turns; each figure is the least of the rounds, and ratios are xlac's to XLA's, in the geometric mean. With --cpu, times are
those that all threads of the process are on a CPU, for machines that do other work, too."""

import argparse
import functools
import json
import lzma
import math
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
CALLS = 1000
TURNS_SECONDS = 2
PARTS = 100  # programs, as each is compiled in five ways
EACH = "--each"
BACKENDS = ("xlac", "cpu")
NAMES = {"xlac": "xlac", "cpu": "XLA"}


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def least(rounds, *timed):
    """The least of each in some rounds, in which they take turns."""
    best = [math.inf] * len(timed)
    for _ in range(rounds):
        best = [min(b, t()) for b, t in zip(best, timed)]
    return best


def now():
    return time.process_time() if "--cpu" in sys.argv else time.perf_counter()


def clock(function, n=1):
    start = now()
    for _ in range(n):
        out = function()
    elapsed = (now() - start) / n
    jax.block_until_ready(out)
    return elapsed


# --- functions ---


def layer(p, x):
    return jax.nn.gelu(x @ p["w"] + p["b"])


def attention(x, w):
    q, k, v = jnp.split(x @ w, 3, -1)
    return jax.nn.softmax(q @ k.T / math.sqrt(q.shape[-1])) @ v


def train(p, x, y):
    """A step of gradient descent on a network of three layers."""

    def loss(p):
        h = x
        for w in p[:-1]:
            h = jnp.tanh(h @ w)
        return ((h @ p[-1] - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(p)
    return [a - 1e-3 * g for a, g in zip(p, gradient)], value


def network(batch, width):
    r = np.random.default_rng(0)
    p = [r.standard_normal((width, width), np.float32) / np.float32(math.sqrt(width)) for _ in range(3)]
    return p, r.standard_normal((batch, width), np.float32), r.standard_normal((batch, width), np.float32)


def short():
    f = np.float32
    x = np.ones((32, 64), f)
    p = {"w": np.ones((64, 64), f), "b": np.ones(64, f)}
    yield "one add", lambda a: a + 1, (f(1),)
    yield "ten arguments", lambda *a: sum(a), tuple(f(i) for i in range(10))
    yield "layer", layer, (p, x)
    yield "gradient of a layer", jax.grad(lambda p, x: layer(p, x).sum()), (p, x)
    yield "attention", attention, (x, np.ones((64, 192), f))
    yield "loop", lambda v: jax.lax.fori_loop(0, 10, lambda i, u: jnp.sin(u) + i, v), (x,)
    yield "normal", lambda k: jax.random.normal(k, (64,)), (np.zeros(2, np.uint32),)


def long():
    r = np.random.default_rng(1)
    wide, image = r.standard_normal((1024, 1024), np.float32), r.standard_normal((8, 56, 56, 32), np.float32)
    kernel = r.standard_normal((3, 3, 32, 32), np.float32)
    yield "training step", train, network(256, 512)
    back, weights = jax.grad(lambda x, w: attention(x, w).sum()), r.standard_normal((1024, 768), np.float32)
    yield "attention, forth and back", back, (wide, weights / np.float32(32))
    yield "attention that saturates", back, (wide, weights)  # most weights are 0 or 1, and many gradients subnormal, which XLA takes for 0
    yield "layer norm", lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), (wide,)
    yield (
        "convolution",
        lambda x, k: jax.nn.relu(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))),
        (image, kernel),
    )
    yield "normal, a million", lambda k: jax.random.normal(k, (1 << 20,)), (np.zeros(2, np.uint32),)
    yield "sort", jnp.sort, (wide,)
    yield "cumulative sum", lambda x: jnp.cumsum(x, 0), (wide,)


# --- sections ---


def on_both(function, arguments):
    made = {}
    for backend in BACKENDS:
        device = jax.devices(backend)[0]
        with jax.default_device(device):
            made[backend] = jax.jit(function), jax.device_put(arguments, device)
            jax.block_until_ready(made[backend][0](*made[backend][1]))
    return made


def caller(jitted, arguments, wait):
    return (lambda: jax.block_until_ready(jitted(*arguments))) if wait else lambda: jitted(*arguments)


def calls(rounds):
    print(f"\n{'calls':32}{'xlac us':>10}{'XLA us':>10}{'xlac to result':>16}{'XLA to result':>16}")
    ratios = [], []
    for name, function, arguments in short():
        made = on_both(function, arguments)
        rows = [least(rounds, *(functools.partial(clock, caller(*made[b], wait), CALLS) for b in BACKENDS)) for wait in (False, True)]
        for found, (ours, theirs) in zip(ratios, rows):
            found.append(ours / theirs)
        print(f"{name:32}{rows[0][0] * 1e6:10.1f}{rows[0][1] * 1e6:10.1f}{rows[1][0] * 1e6:16.1f}{rows[1][1] * 1e6:16.1f}", flush=True)
    return [("call", mean(ratios[0])), ("call to its result", mean(ratios[1]))]


def programs(sources, limit, largest=math.inf):
    """[(name, text)] of files, and of folders, evenly taken from all there are that are not too long."""
    found = {"": [], " (folders)": []}
    for source in map(pathlib.Path, sources):
        if source.is_dir():
            found[" (folders)"] += [(p.name.removesuffix(".stablehlo.mlir"), p.read_text()) for p in sorted(source.glob("*.stablehlo.mlir"))]
        else:
            with lzma.open(source, "rt") if source.suffix == ".xz" else open(source) as lines:
                found[""] += [(item["test"], item["text"]) for item in map(json.loads, lines)]
    taken = {}
    for kind, all_of_it in found.items():
        one_device = [(name, text) for name, text in all_of_it if "num_partitions = 8" not in text and len(text) <= largest]
        step = max(1, len(one_device) / limit)
        taken[kind] = [one_device[int(i * step)] for i in range(min(limit, len(one_device)))]
    return taken


def zeros(module):
    """Arguments for a module's main function; None where some are not arrays of plain numbers."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    types = {
        str(mlir.dtype_to_ir_type(np.dtype(t))): np.dtype(t)
        for t in (
            "bool",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
            "float16",
            "float32",
            "float64",
            "complex64",
            jnp.bfloat16,
        )
    }
    main = next(op for op in module.body.operations if op.operation.name == "func.func" and op.name.value == "main")
    arguments = []
    for given in main.type.inputs:
        if not isinstance(given, ir.RankedTensorType):
            return None
        tensor = ir.RankedTensorType(given)
        dtype = types.get(str(tensor.element_type))
        if dtype is None or any(d < 0 for d in tensor.shape):
            return None
        arguments.append(np.ones(tensor.shape, dtype))
    return arguments


def portable(module):
    """The form in which jaxlib gives a program to a plugin, without CHLO."""
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax

    return _jax.mlir.serialize_portable_artifact(mlir.module_to_bytecode(module), "1.13.0")


def first_result(backend, module, arguments):
    """Seconds to the first result, of compiling alone, and to the first result but for what a second run takes."""
    from jax._src import compiler

    device = jax.devices(backend)[0]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1, device_assignment=np.array([[device.id]]))

    def place():  # anew for each run: some programs are given their arguments
        return jax.block_until_ready([jax.device_put(a, device) for a in arguments])

    def run(placed):
        jax.block_until_ready(loaded.execute_sharded(placed).disassemble_into_single_device_arrays())
        return now()

    placed, start = place(), now()
    loaded = compiler.backend_compile_and_load(device.client, module, jax._src.lib._jax.DeviceList((device,)), options, [])
    compiled = now()
    first = run(placed)
    placed, again = place(), now()
    return first - start, compiled - start, first - start - min(run(placed) - again, first - compiled)


def compilation(sources, limit, largest, rounds):
    with jax.default_device(jax.devices("cpu")[0]):
        jnp.linalg.eigvals(jnp.eye(2))  # XLA's LAPACK calls have no addresses before JAX has lowered one
    return [row for kind, found in programs(sources, limit, largest).items() for row in compilation_of(kind, found, rounds)]


def compilation_of(kind, found, rounds):
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    ratios, left, total = ([], [], []), 0, [0, 0]
    for name, text in found:
        with mlir.make_ir_context():
            try:
                module = ir.Module.parse(text)
                arguments = zeros(module)
                if arguments is None:
                    raise ValueError("arguments")
                best = [(math.inf,) * 3] * 2
                for done in range(rounds):
                    if done and best[1][0] > 2:  # seconds: once is enough
                        break
                    best = [tuple(map(min, b, first_result(backend, module, arguments))) for b, backend in zip(best, BACKENDS)]
            except Exception:  # no such program on one of the two: callbacks, several devices, tokens
                left += 1
                continue
        if EACH in sys.argv:
            print(f"{name:44}" + "".join(f"{seconds * 1e3:10.2f}" for b in best for seconds in b), flush=True)
        total = [t + b[0] for t, b in zip(total, best)]
        for found_ratios, ours, theirs in zip(ratios, *best):
            found_ratios.append(ours / theirs)
    if not ratios[0]:
        return []
    print(
        f"\ncompile{kind}: {len(ratios[0])} programs, {left} left out; all of them to first results {total[0]:.2f} s on xlac, {total[1]:.2f} s on XLA; "
        f"ratio {mean(ratios[0]):.4f}",
        flush=True,
    )
    names = "compile to first result", "compile alone", "compile to first result, but for what a second run takes"
    return [(name + kind, mean(found)) for name, found in zip(names, ratios)]


def parts(sources, limit, rounds):
    """Of a compilation by way of JAX: what the plugin takes, and what of that is reading and compiling. CPU time of all threads."""
    import xlac
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir

    sys.path.insert(0, str(ROOT / "tests/pjrt"))
    from plugin import Plugin

    plugin = Plugin(pathlib.Path(xlac.__file__).parent / "_pjrt.so")
    client, found = plugin.client(), []

    def through_jax(backend, module):
        device = jax.devices(backend)[0]
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1, device_assignment=np.array([[device.id]]))
        return lambda: compiler.backend_compile_and_load(device.client, module, _jax.DeviceList((device,)), options, [])

    def spent(call):
        start = time.process_time()
        call()
        return time.process_time() - start

    for _name, text in programs(sources, limit)[""]:
        with mlir.make_ir_context():
            try:
                module = ir.Module.parse(text)
                code = portable(module)
                alone = [
                    functools.partial(f, code)
                    for f in (functools.partial(plugin.compile, client), xlac.parse, lambda code: xlac.compile(xlac.parse(code)))
                ]
                timed = [through_jax(backend, module) for backend in BACKENDS] + alone
                found.append([min(spent(call) for _ in range(2 * rounds)) for call in timed])
            except Exception:  # no such program on one of the two
                continue
    names = ["by JAX on xlac", "by JAX on XLA", "plugin", "reading", "reading and compiling"]
    means = [mean(column) for column in zip(*found)]
    print(
        f"\nparts of a compilation: {len(found)} programs, CPU ms in the geometric mean: "
        + ", ".join(f"{name} {value * 1e3:.3f}" for name, value in zip(names, means)),
        flush=True,
    )
    return [
        ("plugin's part of a compilation, to all of it", means[2] / means[0]),
        ("compile alone, without the plugin's part", mean([(row[0] - row[2]) / row[1] for row in found])),
    ]


def in_the_plugin(call, beside, turns):
    """Seconds of a program's run within the plugin, as JAX's profile has it, and of `beside`, which take turns: so many, and for some seconds at
    least, as runs that nothing disturbs are rare on a machine that does other work. By the clock, also with --cpu."""
    alone, done, start = math.inf, 0, time.perf_counter()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # it would make beside's calls longer
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            while done < turns or time.perf_counter() - start < TURNS_SECONDS:
                call()
                begin = time.perf_counter()
                beside()
                alone = min(alone, time.perf_counter() - begin)
                done += 1
        (found,) = pathlib.Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(found))
        runs = [
            e.duration_ns
            for plane in profile.planes
            if plane.name.startswith("/device:CUSTOM:xlac:")
            for line in plane.lines
            if line.name == "Programs"
            for e in line.events
        ]
    return min(runs) / 1e9, alone


def own_part(rounds, empty):
    """Seconds of a call that computes next to nothing, on both: again and again, and each time after a program that empties the caches."""
    made = on_both(lambda a: a + 1, (np.float32(1),))

    def after(before, call):
        before()
        return clock(call)

    return [
        least(rounds * 20, *(functools.partial(after, before or call, call) for call in (caller(*made[b], True) for b in BACKENDS)))
        for before in (None, empty)
    ]


def steps(rounds):
    import xlac

    print(f"\n{'steps':32}{'xlac ms':>10}{'XLA ms':>10}{'xlac without JAX':>20}{'in the plugin, to that':>26}")
    ratios, own, within = [], [], []
    for name, function, arguments in long():
        made = on_both(function, arguments)
        with jax.default_device(jax.devices("xlac")[0]):
            program = portable(made["xlac"][0].lower(*arguments).compiler_ir())
        flat = [xlac.asarray(a) for a in jax.tree.leaves(arguments)]
        timed = [caller(*made[b], True) for b in BACKENDS] + [functools.partial(xlac.compile(program), *flat)]
        found = least(rounds * 3, *(functools.partial(clock, call) for call in timed))
        ratios.append(found[0] / found[1])
        own.append(found[0] / found[2])
        threads = 1 if "--cpu" in sys.argv else 0
        jitted = jax.jit(function, compiler_options={"xlac_threads": threads}) if threads else made["xlac"][0]
        alone = functools.partial(xlac.compile(program, threads=threads or None), *flat)
        within.append(operator.truediv(*in_the_plugin(caller(jitted, made["xlac"][1], True), alone, rounds * 10)))
        print(f"{name:32}{found[0] * 1e3:10.2f}{found[1] * 1e3:10.2f}{found[2] * 1e3:20.2f}{within[-1]:26.3f}", flush=True)
    (warm, cold) = own_part(rounds, timed[2])
    print("JAX's own part of a call, us on xlac and on XLA: " + ", ".join(f"{seconds * 1e6:.0f}" for seconds in warm), end="; ")
    print("after the last program above: " + ", ".join(f"{seconds * 1e6:.0f}" for seconds in cold), flush=True)
    return [("step", mean(ratios)), ("step, to xlac without JAX", mean(own)), ("run in the plugin, to xlac without JAX", mean(within))]


def status(key):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(key))) / 1024


def train_alone():
    """In a process of its own: megabytes beyond those at the start."""
    device = jax.devices()[0]
    jax.block_until_ready(jax.device_put(np.ones(1), device))
    before = status("VmRSS")
    p, x, y = (jax.device_put(a, device) for a in network(1024, 1024))
    step = jax.jit(train, donate_argnums=0)
    for _ in range(20):
        p, value = step(p, x, y)
    float(value)
    print(status("VmHWM") - before)


def memory():
    found = []
    for backend in BACKENDS:
        env = {**os.environ, "JAX_PLATFORMS": "xlac,cpu" if backend == "xlac" else "cpu"}
        done = subprocess.run([sys.executable, __file__, "--train"], env=env, capture_output=True, text=True, check=True)
        found.append(float(done.stdout.split()[-1]))
    print(f"\nmemory: {found[0]:.0f} MB on xlac, {found[1]:.0f} MB on XLA")
    return [("peak memory", found[0] / found[1])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", default=[ROOT / "tests/oracle/jax_programs.jsonl.xz"])
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--largest", type=int, default=0, help="leave programs of more kilobytes out, which XLA compiles for minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=["calls", "compile", "parts", "steps", "memory"], help="some sections")
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads instead of time")
    parser.add_argument(EACH, action="store_true", help="each program's milliseconds: to its first result and to compile on xlac, then on XLA")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        return train_alone()
    sections = {
        "calls": lambda: calls(args.rounds),
        "compile": lambda: compilation(args.programs, args.limit, args.largest * 1000 or math.inf, min(args.rounds, 2)),
        "parts": lambda: parts(args.programs, min(args.limit, PARTS), args.rounds),
        "steps": lambda: steps(args.rounds),
        "memory": memory,
    }
    table = [row for name, section in sections.items() if not args.only or name in args.only for row in section()]
    print(f"\n| xlac to XLA:CPU, jax {jax.__version__} | ratio |\n|---|---|")
    for name, ratio in table:
        print(f"| {name} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
