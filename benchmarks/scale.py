"""Compile time and memory against the number of ops, beside XLA:CPU for the small sizes.

  python benchmarks/scale.py [--ops 1000 10000 100000] [--xla 1000] [--only NAME ...]

Every pattern and size is compiled in a process of its own, text to executable; "ms" is the best of three, "MB" what the process's peak
grew by. XLA compiles sizes up to --xla (it needs the `test` extra). A pattern whose time per op grows with the size by more than the
processor's caches explain has a step that is not linear."""
import argparse
import json
import random
import resource
import subprocess
import sys
import time


def function(type_in, lines, result, type_out):
    return f"func.func @main(%a: {type_in}, %b: {type_in}) -> {type_out} {{\n" + "\n".join(lines) + f"\n  return {result} : {type_out}\n}}\n"


def chain(n):
    """Elementwise ops one after another."""
    t, names = "tensor<64xf32>", ["add", "multiply", "subtract", "maximum"]
    lines = [f"  %v{i} = stablehlo.{names[i % 4]} {f'%v{i - 1}' if i else '%a'}, {'%a' if i & 1 else '%b'} : {t}" for i in range(n)]
    return function(t, lines, f"%v{n - 1}", t)


def dag(n):
    """Ops of few of the latest values, some of them products and transposes."""
    t, draw, names, lines = "tensor<16x16xf32>", random.Random(0), ["%a", "%b"], []
    for i in range(n):
        x, y = names[-1 - draw.randrange(min(4, len(names)))], names[-1 - draw.randrange(min(16, len(names)))]
        kind = draw.randrange(8)
        op = (f"stablehlo.dot_general {x}, {y}, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}" if kind == 0 else
              f"stablehlo.transpose {x}, dims = [1, 0] : ({t}) -> {t}" if kind == 1 else f"stablehlo.tanh {x} : {t}" if kind == 2 else
              f"stablehlo.{('add', 'multiply', 'subtract', 'maximum', 'minimum')[kind - 3]} {x}, {y} : {t}")
        lines.append(f"  %v{i} = {op}")
        names.append(f"%v{i}")
    return function(t, lines, names[-1], t)


def dots(n):
    """Products and tanh in turn."""
    t = "tensor<16x16xf32>"
    lines = [f"  %v{i} = " + (f"stablehlo.dot_general {f'%v{i - 1}' if i else '%a'}, %b, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}" if i % 2 == 0
                              else f"stablehlo.tanh %v{i - 1} : {t}") for i in range(n)]
    return function(t, lines, f"%v{n - 1}", t)


def fan(n):
    """One value that all ops read, whose sum is the result."""
    t, lines = "tensor<16xf32>", ["  %e = stablehlo.tanh %a : tensor<16xf32>", "  %v0 = stablehlo.add %e, %b : tensor<16xf32>"]
    for i in range(1, n // 2):
        lines += [f"  %s{i} = stablehlo.sine %e : {t}", f"  %v{i} = stablehlo.add %v{i - 1}, %s{i} : {t}"]
    return function(t, lines, f"%v{n // 2 - 1}", t)


def results(n):
    """As many results as ops."""
    t = "tensor<4xf32>"
    lines = [f"  %v{i} = stablehlo.add {f'%v{i - 1}' if i else '%a'}, %b : {t}" for i in range(n)]
    return (f"func.func @main(%a: {t}, %b: {t}) -> ({', '.join([t] * n)}) {{\n" + "\n".join(lines) +
            f"\n  return {', '.join(f'%v{i}' for i in range(n))} : {', '.join([t] * n)}\n}}\n")


def state(n):
    """A loop with a state of n/2 leaves."""
    t, m = "tensor<4xf32>", n // 2
    types = ", ".join(["tensor<i32>"] + [t] * m)
    body = "\n".join(f"    %n{i} = stablehlo.add %s{i}, %s{(i + 1) % m} : {t}" for i in range(m))
    lines = [f"""  %z = stablehlo.constant dense<0> : tensor<i32>
  %c = stablehlo.constant dense<10> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:{m + 1} = stablehlo.while(%i = %z, {", ".join(f"%s{i} = {'%a' if i % 2 else '%b'}" for i in range(m))}) : {types}
  cond {{
    %q = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
{body}
    stablehlo.return %j, {", ".join(f"%n{i}" for i in range(m))} : {types}
  }}"""]
    return function(t, lines, "%w#1", t)


def holes(n):
    """Many values of which every other one dies before the rest, which leaves holes that are too small for what comes then."""
    draw, m = random.Random(1), n // 6
    sizes = [draw.randrange(64, 4000) for _ in range(m)]
    t = lambda s: f"tensor<{s}xf32>"
    lines, a, b = [], [], []
    for i, s in enumerate(sizes):
        lines += [f"  %u{i} = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> {t(s)}"]
        lines += [f"  %h{i} = stablehlo.sine %u{i} : {t(s)}", f"  %k{i} = stablehlo.reverse %h{i}, dims = [0] : {t(s)}"]
    for i, s in enumerate(sizes):
        lines.append(f"  %r{i} = stablehlo.slice %k{i} [0:1] : ({t(s)}) -> {t(1)}")
        a.append(f"%r{i}")
    lines.append(f"  %all = stablehlo.concatenate {', '.join(a)}, dim = 0 : ({', '.join([t(1)] * m)}) -> {t(m)}")
    for i in [*range(0, m, 2), *range(1, m, 2)]:
        lines.append(f"  %q{i} = stablehlo.slice %k{i} [1:2] : ({t(sizes[i])}) -> {t(1)}")
        b.append(f"%q{i}")
    lines.append(f"  %x = stablehlo.concatenate %all, {', '.join(b[:m // 2])}, dim = 0 : ({', '.join([t(m)] + [t(1)] * (m // 2))}) -> {t(m + m // 2)}")
    last, size = "%x", m + m // 2
    for i in range(m):
        lines.append(f"  %c{i} = stablehlo.concatenate {last}, %b, dim = 0 : ({t(size)}, tensor<1xf32>) -> {t(size + 1)}")
        last, size = f"%c{i}", size + 1
    lines.append(f"  %out = stablehlo.concatenate {last}, {', '.join(b[m // 2:])}, dim = 0 : ({', '.join([t(size)] + [t(1)] * (m - m // 2))}) -> {t(size + m - m // 2)}")
    text = function("tensor<f32>", lines, "%out", t(size + m - m // 2))
    return text.replace("%b: tensor<f32>", "%b: tensor<1xf32>")


PATTERNS = {f.__name__: f for f in (chain, dag, dots, fan, results, state, holes)}


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(engine, pattern, n):
    text = PATTERNS[pattern](n)
    if engine == "xla":
        from compiled import Xla

        compile_text = Xla().compile
        compile_text(PATTERNS["chain"](2))
    else:
        import xlac

        def compile_text(t):
            return xlac.compile(xlac.parse(t))
        compile_text(PATTERNS["chain"](2))
    before, best = peak_mb(), float("inf")
    for _ in range(3 if engine == "xlac" else 1):
        start = time.perf_counter()
        keep = compile_text(text)
        best = min(best, time.perf_counter() - start)
        del keep
    return {"ms": best * 1e3, "mb": peak_mb() - before}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--xla", type=int, default=1000, help="the largest size for XLA, 0 for none")
    parser.add_argument("--only", nargs="*", default=list(PATTERNS))
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        engine, pattern, n = options.measure
        print(json.dumps(measure(engine, pattern, int(n))))
        return
    for pattern in options.only:
        for n in options.ops:
            row = f"{pattern:8s} {n:7d} ops"
            for engine in ("xlac", "xla"):
                if engine == "xla" and n > options.xla:
                    continue
                done = subprocess.run([sys.executable, __file__, "--measure", engine, pattern, str(n)], capture_output=True, text=True)
                if done.returncode:
                    row += f"   {engine}: failed: {done.stderr.strip().splitlines()[-1][:100]}"
                    continue
                got = json.loads(done.stdout.splitlines()[-1])
                row += f"   {engine} {got['ms']:9.1f} ms {got['ms'] * 1e3 / n:8.2f} us an op {got['mb']:7.1f} MB"
            print(row, flush=True)


if __name__ == "__main__":
    main()
