"""Native code beside the vector VM (XLAC_NATIVE=0): processor time of one thread, paired, minimum of several rounds.

  python benchmarks/native.py [NAME ...]          programs of its own: times of calls and of compilation from a module
  python benchmarks/native.py --programs [NAME ...]    all of benchmarks/programs, and those of XLAC_PROGRAMS (see compiled.py): which are slower
                                                  by more than 3 %. Needs the `test` extra.

With --programs, one that is behind is measured anew, up to 60 rounds in all, before it is called slower; the least of all rounds counts."""
import json
import os
import statistics
import sys
import time

import numpy as np

import xlac

ROUNDS = 9


def broadcast(n, name, value):
    return f" c{name} = f32[] constant({value})\n {name} = f32[{n}] broadcast(c{name}), dimensions={{}}\n"


def adam(n=200_000):
    text = f"HloModule adam\nENTRY e {{\n p = f32[{n}] parameter(0)\n g = f32[{n}] parameter(1)\n m = f32[{n}] parameter(2)\n v = f32[{n}] parameter(3)\n"
    for name, value in (("b9", 0.9), ("b1", 0.1), ("b99", 0.999), ("b01", 0.001), ("be", 1e-8)):
        text += broadcast(n, name, value)
    lines = ["m1 multiply m b9", "m2 multiply g b1", "mn add m1 m2", "g2 multiply g g", "v1 multiply v b99", "v2 multiply g2 b01", "vn add v1 v2",
             "s sqrt vn", "d add s be", "u divide mn d", "w multiply u b01", "pn subtract p w"]
    return text + ops(n, lines) + f" ROOT t = (f32[{n}], f32[{n}], f32[{n}]) tuple(pn, mn, vn)\n}}", [(n,)] * 4


def ops(n, lines, t="f32"):
    out = ""
    for line in lines:
        name, op, *operands = line.split()
        out += f" {name} = {t}[{n}] {op}({', '.join(operands)})\n"
    return out


def gelu(n=200_000):
    text = f"HloModule gelu\nENTRY e {{\n x = f32[{n}] parameter(0)\n" + broadcast(n, "h", 0.5) + broadcast(n, "k", 0.044715)
    text += broadcast(n, "r", 0.7978846) + broadcast(n, "o", 1)
    return text + ops(n, ["a multiply x x", "b multiply a x", "c multiply b k", "d add x c", "f multiply d r", "q tanh f", "s add q o", "u multiply x h",
                          "w multiply u s"]) + f" ROOT z = f32[{n}] add(w, x)\n}}", [(n,)]


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
MAX = "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"


def layer_norm(rows=500, n=768):
    s, r = f"{rows},{n}", f"{rows}"
    return f"""HloModule norm
{ADD}ENTRY e {{
 x = f32[{s}] parameter(0)
 g = f32[{n}] parameter(1)
 b = f32[{n}] parameter(2)
 z = f32[] constant(0)
 cn = f32[] constant({n})
 n = f32[{r}] broadcast(cn), dimensions={{}}
 ce = f32[] constant(1e-5)
 e = f32[{r}] broadcast(ce), dimensions={{}}
 sum = f32[{r}] reduce(x, z), dimensions={{1}}, to_apply=add
 mean = f32[{r}] divide(sum, n)
 mb = f32[{s}] broadcast(mean), dimensions={{0}}
 d = f32[{s}] subtract(x, mb)
 q = f32[{s}] multiply(d, d)
 sq = f32[{r}] reduce(q, z), dimensions={{1}}, to_apply=add
 va = f32[{r}] divide(sq, n)
 ve = f32[{r}] add(va, e)
 rs = f32[{r}] rsqrt(ve)
 rb = f32[{s}] broadcast(rs), dimensions={{0}}
 nx = f32[{s}] multiply(d, rb)
 gb = f32[{s}] broadcast(g), dimensions={{1}}
 bb = f32[{s}] broadcast(b), dimensions={{1}}
 y = f32[{s}] multiply(nx, gb)
 ROOT o = f32[{s}] add(y, bb)
}}""", [(rows, n), (n,), (n,)]


def softmax(rows=500, n=512):
    s, r = f"{rows},{n}", f"{rows}"
    return f"""HloModule softmax
{ADD}{MAX}ENTRY e {{
 x = f32[{s}] parameter(0)
 z = f32[] constant(0)
 i = f32[] constant(-inf)
 m = f32[{r}] reduce(x, i), dimensions={{1}}, to_apply=max
 mb = f32[{s}] broadcast(m), dimensions={{0}}
 d = f32[{s}] subtract(x, mb)
 q = f32[{s}] exponential(d)
 t = f32[{r}] reduce(q, z), dimensions={{1}}, to_apply=add
 tb = f32[{s}] broadcast(t), dimensions={{0}}
 ROOT o = f32[{s}] divide(q, tb)
}}""", [(rows, n)]


def distances(n=600, d=8):
    s, t = f"{n},{n}", f"{n},{n},{d}"
    return f"""HloModule distances
{ADD}ENTRY e {{
 x = f32[{n},{d}] parameter(0)
 y = f32[{n},{d}] parameter(1)
 xb = f32[{t}] broadcast(x), dimensions={{0,2}}
 yb = f32[{t}] broadcast(y), dimensions={{1,2}}
 df = f32[{t}] subtract(xb, yb)
 sq = f32[{t}] multiply(df, df)
 z = f32[] constant(0)
 r = f32[{s}] reduce(sq, z), dimensions={{2}}, to_apply=add
 ROOT q = f32[{s}] sqrt(r)
}}""", [(n, d), (n, d)]


def stencil(n=500):
    s, i = f"{n},{n}", f"{n - 2},{n - 2}"
    part = lambda name, a, b: f" {name} = f32[{i}] slice(x), slice={{[{a}:{a + n - 2}], [{b}:{b + n - 2}]}}\n"  # noqa: E731
    text = f"HloModule stencil\nENTRY e {{\n x = f32[{s}] parameter(0)\n"
    text += part("c", 1, 1) + part("u", 0, 1) + part("d", 2, 1) + part("l", 1, 0) + part("r", 1, 2) + broadcast(i, "k", 0.1) + broadcast(i, "f", 4)
    return text + ops(i, ["a add u d", "b add l r", "g add a b", "h multiply c f", "j subtract g h", "m multiply j k", "o add c m"]) + \
        f" ROOT z = f32[{i}] tanh(o)\n}}", [(n, n)]


def rotary(rows=1000, n=128):
    h = n // 2
    s = f"{rows},{h}"
    text = f"HloModule rotary\nENTRY e {{\n x = f32[{rows},{n}] parameter(0)\n w = f32[{h}] parameter(1)\n p = f32[{s}] iota(), iota_dimension=0\n"
    text += f" wb = f32[{s}] broadcast(w), dimensions={{1}}\n t = f32[{s}] multiply(p, wb)\n c = f32[{s}] cosine(t)\n i = f32[{s}] sine(t)\n"
    text += f" a = f32[{s}] slice(x), slice={{[0:{rows}], [0:{h}]}}\n b = f32[{s}] slice(x), slice={{[0:{rows}], [{h}:{n}]}}\n"
    text += ops(s, ["ac multiply a c", "bi multiply b i", "u subtract ac bi", "ai multiply a i", "bc multiply b c", "v add ai bc"])
    return text + f" ROOT o = f32[{rows},{n}] concatenate(u, v), dimensions={{1}}\n}}", [(rows, n), (h,)]


PROGRAMS = {f.__name__: f for f in (adam, gelu, layer_norm, softmax, distances, stencil, rotary)}


def least(run, seconds=0.02):
    run()
    start, n = time.process_time(), 0
    while time.process_time() - start < seconds:
        run()
        n += 1
    return (time.process_time() - start) / n


def built(text):
    """[with native code, with the vector machine]"""
    made = []
    for on in "10":
        os.environ["XLAC_NATIVE"] = on
        made.append(xlac.compile(text, threads=1))
    return made


def paired(made, arrays, allowed=1.03, rounds=(4, 8, 16, 32)):
    """Native code's time over the vector machine's. Sides take turns, and who is first too."""
    times = [[], []]
    for more in rounds:
        for k in range(more):
            for which in (0, 1) if k % 2 else (1, 0):
                times[which].append(least(lambda: made[which](*arrays), 0.002))
        if min(times[0]) <= allowed * min(times[1]):
            break
    return min(times[0]) / min(times[1])


def all_programs(names):
    """(name, text, arrays)"""
    import compiled
    import unseen
    from programs import load

    for name, (function, shapes, _) in sorted(load().items()):
        if not names or name in names:
            rng = np.random.default_rng(len(name))
            arrays = [unseen.argument(s, rng) for s in shapes]
            yield name, unseen.lowered(function, arrays), arrays
    for path in sorted(compiled.PROGRAMS.glob("*.json")):
        spec = json.loads(path.read_text())
        if spec.get("n_devices", 1) == 1 and not spec["donated"] and (not names or spec["name"] in names):
            yield spec["name"], path.with_suffix(".stablehlo.mlir").read_text(), compiled.inputs(spec)


def slower(names):
    ratios = {}
    for name, text, arrays in all_programs(names):
        ratios[name] = paired(built(xlac.parse(text)), arrays)
        print(f"{name:45s} native / VM {ratios[name]:.3f}", flush=True)
    behind = {name: ratio for name, ratio in ratios.items() if ratio > 1.03}
    print(f"geometric mean of native / VM {statistics.geometric_mean(ratios.values()):.3f}; slower by more than 3 %: {len(behind)} of {len(ratios)}")
    for name, ratio in sorted(behind.items(), key=lambda item: -item[1]):
        print(f"  {name} {ratio:.3f}")


def main(names):
    if names[:1] == ["--programs"]:
        return slower(names[1:])
    rng = np.random.default_rng(0)
    print(f"{'program':12} {'native us':>10} {'VM us':>10} {'VM/native':>10} {'compile us':>11} {'VM':>8}")
    for name in names or PROGRAMS:
        text, shapes = PROGRAMS[name]()
        arrays = [rng.random(s, np.float32) for s in shapes]
        made, times, compile_times = built(text), [[], []], [[], []]
        module = xlac.parse(text)
        for _ in range(ROUNDS):
            for which, on in enumerate("10"):
                times[which].append(least(lambda: made[which](*arrays)))
                os.environ["XLAC_NATIVE"] = on
                compile_times[which].append(least(lambda: xlac.compile(module, threads=1), 0.005))
        native, vm = (min(t) * 1e6 for t in times)
        print(f"{name:12} {native:10.1f} {vm:10.1f} {vm / native:10.2f} {min(compile_times[0]) * 1e6:11.1f} {min(compile_times[1]) * 1e6:8.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
