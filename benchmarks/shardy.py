"""Sharding propagation beside Shardy's own (the one in jaxlib) on the same programs, in one run.

  python benchmarks/shardy.py [--rounds 5] [--pipeline sdy-propagation-pipeline] [--ops 100 1000 5000 20000] [--check] [--no-memory]

Programs: stacks of perceptron layers, transformer blocks, loops around blocks, and long elementwise chains, of about the number of ops
asked for, with shardings on their arguments. Times are of the process, on one thread. Each round runs both sides in turn on modules that are parsed already; minimum and median
over the rounds are printed in milliseconds, and the ratio of the medians; then how time grows (the exponent of the number of ops, between the
smallest and the largest program) and the memory that reading and running the program takes (the most that is resident at a time, beyond what the
process had before; and of the whole process, which is one of its own), on the module itself on both sides, and for xlac also on a copy. At the end the geometric means. --check compares the printed outputs byte for byte. What notes
for explanations cost: explain_cost.c. Needs jax for the other side."""
import argparse
import ctypes
import functools
import gc
import math
import statistics
import subprocess
import sys
import time

MESH = 'sdy.mesh @mesh = <["data"=4, "model"=2]>\n'


def sharded(*dims):
    axes = ", ".join("{%s?}" % "".join(f'"{a}", ' for a in dim) for dim in dims)
    return "{sdy.sharding = #sdy.sharding<@mesh, [%s]>}" % axes


class Program:
    """A function in the making: arguments with shardings, and lines of ops."""

    def __init__(self):
        self.args, self.lines, self.n = [], [], 0

    def arg(self, shape, *dims):
        name = f"%arg{len(self.args)}"
        self.args.append(f"{name}: tensor<{shape}xf32>" + (" " + sharded(*dims) if dims else ""))
        return name

    def op(self, text):
        name = f"%v{self.n}"
        self.n += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def splat(self, shape, value="0.000000e+00"):
        return self.op(f"stablehlo.constant dense<{value}> : tensor<{shape}xf32>" if shape else f"stablehlo.constant dense<{value}> : tensor<f32>")

    def unary(self, name, x, shape):
        return self.op(f"stablehlo.{name} {x} : tensor<{shape}xf32>")

    def binary(self, name, x, y, shape):
        return self.op(f"stablehlo.{name} {x}, {y} : tensor<{shape}xf32>")

    def broadcast(self, x, dims, old, new):
        old = f"tensor<{old}xf32>" if old else "tensor<f32>"
        return self.op(f"stablehlo.broadcast_in_dim {x}, dims = {dims} : ({old}) -> tensor<{new}xf32>")

    def dot(self, x, y, shapes, contract, batch=""):
        return self.op(f"stablehlo.dot_general {x}, {y}, {batch}contracting_dims = {contract} : (tensor<{shapes[0]}xf32>, "
                       f"tensor<{shapes[1]}xf32>) -> tensor<{shapes[2]}xf32>")

    def reduce(self, name, x, init, dims, old, new):
        return self.op(f"stablehlo.reduce({x} init: {init}) applies stablehlo.{name} across dimensions = {dims} : "
                       f"(tensor<{old}xf32>, tensor<f32>) -> tensor<{new}xf32>")

    def text(self, result, shape):
        body = "\n".join(self.lines)
        return f"{MESH}func.func public @main({', '.join(self.args)}) -> tensor<{shape}xf32> {{\n{body}\n  return {result} : tensor<{shape}xf32>\n}}\n"


def perceptron(ops):
    p = Program()
    x = p.arg("64x256", ["data"], [])
    for i in range(max(1, ops // 6)):
        w = p.arg("256x256", *([[], ["model"]] if i % 2 == 0 else [["model"], []])) if i < 400 else w
        b = p.arg("256") if i < 400 else b
        x = p.dot(x, w, ("64x256", "256x256", "64x256"), "[1] x [0]")
        x = p.binary("add", x, p.broadcast(b, "[1]", "256", "64x256"), "64x256")
        x = p.binary("maximum", x, p.broadcast(p.splat(""), "[]", "", "64x256"), "64x256")
    return p.text(x, "64x256")


def norm(p, x, shape, rows):
    zero, mean = p.splat(""), p.splat("", "2.560000e+02")
    total = p.reduce("add", x, zero, f"[{shape.count('x')}]", shape, rows)
    mean = p.binary("divide", total, p.broadcast(mean, "[]", "", rows), rows)
    y = p.binary("subtract", x, p.broadcast(mean, "[0, 1]", rows, shape), shape)
    var = p.reduce("add", p.binary("multiply", y, y, shape), zero, f"[{shape.count('x')}]", shape, rows)
    return p.binary("multiply", y, p.broadcast(p.unary("rsqrt", var, rows), "[0, 1]", rows, shape), shape)


def block(p, x, weights):
    s, h, sc = "8x128x256", "8x128x4x64", "8x4x128x128"
    q0, k0, v0, o0, up, down = weights
    y = norm(p, x, s, "8x128")
    heads = []
    for w in (q0, k0, v0):
        t = p.dot(y, w, (s, "256x256", s), "[2] x [0]")
        t = p.op(f"stablehlo.reshape {t} : (tensor<{s}xf32>) -> tensor<{h}xf32>")
        heads.append(p.op(f"stablehlo.transpose {t}, dims = [0, 2, 1, 3] : (tensor<{h}xf32>) -> tensor<8x4x128x64xf32>"))
    q, k, v = heads
    a = p.dot(q, k, ("8x4x128x64", "8x4x128x64", sc), "[3] x [3]", "batching_dims = [0, 1] x [0, 1], ")
    top = p.reduce("maximum", a, p.splat("", "0xFF800000"), "[3]", sc, "8x4x128")
    e = p.unary("exponential", p.binary("subtract", a, p.broadcast(top, "[0, 1, 2]", "8x4x128", sc), sc), sc)
    total = p.reduce("add", e, p.splat(""), "[3]", sc, "8x4x128")
    e = p.binary("divide", e, p.broadcast(total, "[0, 1, 2]", "8x4x128", sc), sc)
    c = p.dot(e, v, (sc, "8x4x128x64", "8x4x128x64"), "[3] x [2]", "batching_dims = [0, 1] x [0, 1], ")
    c = p.op(f"stablehlo.transpose {c}, dims = [0, 2, 1, 3] : (tensor<8x4x128x64xf32>) -> tensor<{h}xf32>")
    c = p.op(f"stablehlo.reshape {c} : (tensor<{h}xf32>) -> tensor<{s}xf32>")
    x = p.binary("add", x, p.dot(c, o0, (s, "256x256", s), "[2] x [0]"), s)
    y = p.dot(norm(p, x, s, "8x128"), up, (s, "256x1024", "8x128x1024"), "[2] x [0]")
    y = p.unary("tanh", y, "8x128x1024")
    return p.binary("add", x, p.dot(y, down, ("8x128x1024", "1024x256", s), "[2] x [0]"), s)


def block_args(p):
    return [p.arg("256x256", [], ["model"]) for _ in range(3)] + [p.arg("256x256", ["model"], []),
            p.arg("256x1024", [], ["model"]), p.arg("1024x256", ["model"], [])]


def transformer(ops):
    p = Program()
    x = p.arg("8x128x256", ["data"], [], [])
    for _ in range(max(1, ops // 60)):
        x = block(p, x, block_args(p))
    return p.text(x, "8x128x256")


def loop(ops):
    p = Program()
    x, w = p.arg("8x128x256", ["data"], [], []), block_args(p)
    zero, one, n = (p.op(f"stablehlo.constant dense<{v}> : tensor<i32>") for v in (0, 1, 8))
    for _ in range(max(1, ops // 70)):
        p.lines.append(f"  %l{p.n}:2 = stablehlo.while(%x{p.n} = {x}, %i{p.n} = {zero}) : tensor<8x128x256xf32>, tensor<i32>\n    cond {{\n"
                       f"    %c{p.n} = stablehlo.compare LT, %i{p.n}, {n} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                       f"    stablehlo.return %c{p.n} : tensor<i1>\n  }} do {{")
        k = p.n
        y = block(p, f"%x{k}", w)
        i = p.op(f"stablehlo.add %i{k}, {one} : tensor<i32>")
        p.lines.append(f"    stablehlo.return {y}, {i} : tensor<8x128x256xf32>, tensor<i32>\n  }}")
        x = f"%l{k}#0"
    return p.text(x, "8x128x256")


def chain(ops):
    p = Program()
    x, y = p.arg("512x256", ["data"], []), p.arg("512x256", [], ["model"])
    for i in range(max(1, ops // 2)):
        x, y = p.binary("add", x, y, "512x256"), p.unary("tanh", x, "512x256") if i % 3 else x
    return p.text(x, "512x256")


PROGRAMS = {"perceptron": perceptron, "transformer": transformer, "loop": loop, "chain": chain}


def ours(text, pipeline, in_place=False):
    import xlac

    module = xlac.parse(text)

    def run():
        start = time.process_time()
        out = module.run(pipeline, in_place=in_place)
        return time.process_time() - start, out

    return run


def theirs(text, pipeline):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir, passmanager

    context = mlir.make_ir_context()
    context.enable_multithreading(False)

    def run():
        with context:
            module = ir.Module.parse(text)
            passes = passmanager.PassManager.parse(pipeline)
            start = time.process_time()
            passes.run(module.operation)
            return time.process_time() - start, module

    return run


def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))


def memory_here(side, name, ops, pipeline):
    """Prints the kilobytes that one side needs for one program, and all that this process has had."""
    run = {"xlac": functools.partial(ours, in_place=True), "copy": ours, "jaxlib": theirs}[side]
    small = perceptron(10)
    run(small, pipeline)()  # what is loaded and allocated once
    text = PROGRAMS[name](ops)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the process had before and gave back is not to be used again unseen
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = resident("VmRSS")
    result = run(text, pipeline)()
    print(resident("VmHWM") - before, resident("VmHWM"), len(result))


def memory(side, name, ops, pipeline):
    child = subprocess.run([sys.executable, __file__, "--memory-of", side, "--only", name, "--ops", str(ops), "--pipeline", pipeline],
                           capture_output=True, text=True, check=True)
    return [int(n) for n in child.stdout.split()[:2]]


def growth(points):
    (few, fast), (many, slow) = points[0], points[-1]
    return math.log(slow / fast) / math.log(many / few) if many > few else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ops", type=int, nargs="*", default=[100, 1000, 5000, 20000])
    parser.add_argument("--pipeline", default="sdy-propagation-pipeline")
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    pipeline, ratios, smaller = f"builtin.module({options.pipeline})", [], []
    if options.memory_of:
        return memory_here(options.memory_of, options.only[0], options.ops[0], pipeline)
    for name in options.only:
        points = {"xlac": [], "jaxlib": []}
        for ops in options.ops:
            text = PROGRAMS[name](ops)
            sides = {"xlac": ours(text, pipeline), "jaxlib": theirs(text, pipeline)}
            times, outputs = {}, {}
            for _ in range(options.rounds):
                for side, run in sides.items():
                    seconds, outputs[side] = run()
                    times.setdefault(side, []).append(1e3 * seconds)
            if options.check:
                same = outputs["xlac"].to_text().strip() == outputs["jaxlib"].operation.get_asm().strip()
                print(f"{name} {ops}: outputs are {'the same' if same else 'DIFFERENT'}")
            median = {side: statistics.median(t) for side, t in times.items()}
            ratios.append(median["jaxlib"] / median["xlac"])
            print(f"{name:12} {text.count(' = '):6} ops  " + "  ".join(f"{s} {min(t):9.3f} / {median[s]:9.3f} ms" for s, t in times.items()) +
                  f"  ratio {ratios[-1]:6.1f}", flush=True)
            for side, seconds in median.items():
                points[side].append((text.count(" = "), seconds))
            if not options.no_memory:
                room = {side: memory(side, name, ops, options.pipeline) for side in ("xlac", "copy", "jaxlib")}
                smaller.append([room["jaxlib"][i] / max(1, room[side][i]) for side in ("xlac", "copy") for i in (0, 1)])
                print(f"{'':19}memory  " + "  ".join(f"{s} {more} kB of {total} kB" for s, (more, total) in room.items()) +
                      "  ratios {:.1f} and {:.1f}, of a copy {:.1f} and {:.1f}".format(*smaller[-1]), flush=True)
        print(f"{name:12} grows as the number of ops to the power of " + ", ".join(f"{growth(p):.2f} ({s})" for s, p in points.items()))
    print(f"geometric means: {mean(ratios):.1f} times faster" + (", {:.1f} times less memory for the program, {:.1f} of the whole process; {:.1f} and {:.1f} on a copy".format(
        *map(mean, zip(*smaller))) if smaller else ""))


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


if __name__ == "__main__":
    main()
