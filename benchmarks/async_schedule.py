"""latency-hiding-scheduler: how long it takes for 100,000 ops, and how much of a pipeline's copies it hides.

    python benchmarks/async_schedule.py [--ops 100000] [--rounds 5]

Prints the pass's CPU time, all of it on one thread (least and median over rounds; the target is 1 s), the time of dce on the same module beside it, and for
pipelines of 16 layers with copies between what share of the copy time it hides of what the best order by hand hides (the target
is 0.8)."""
import argparse
import random
import statistics
import time

import xlac

DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def pipeline(layers, n, by_hand, kind="copy"):
    """Layers whose weights come from somewhere else: as they are written, or with each copy beside the layer before."""
    w = f"f32[{n},{n}]"
    lines = [f"x = {w} parameter(0)"] + [f"w{i} = {w} parameter({i + 1})" for i in range(layers)]
    if kind == "copy":
        start = [f"st{i} = ({w}, {w}, u32[]) copy-start(w{i})" for i in range(layers)]
        done = [f"d{i} = {w} copy-done(st{i})" for i in range(layers)]
    else:
        start = [f"st{i} = (({w}), {w}, u32[]) negate-start(w{i}), async_execution_thread=\"lane\"" for i in range(layers)]
        done = [f"d{i} = {w} negate-done(st{i})" for i in range(layers)]
    if by_hand:
        lines.append(start[0])
    for i in range(layers):
        lines += ([start[i + 1]] if i + 1 < layers else []) if by_hand else [start[i]]
        last = "ROOT " if i == layers - 1 else ""
        lines += [done[i], f"p{i} = {w} dot({f'a{i - 1}' if i else 'x'}, d{i}), {DOT}", f"{last}a{i} = {w} tanh(p{i})"]
    return "HloModule pipeline, is_scheduled=true\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def hidden(module):
    c = module.explain("async").data["computations"][-1]
    return c["work"] - c["exposed"]


def share(layers, n, kind="copy"):
    """What the scheduler hides, of what the order by hand hides."""
    module = xlac.parse(pipeline(layers, n, False, kind)).run("latency-hiding-scheduler")
    module.verify()
    return hidden(module) / hidden(xlac.parse(pipeline(layers, n, True, kind)))


def big(ops, seed=0):
    """A module of about so many ops, a third of them links of chains, in layers that read the last few."""
    rng = random.Random(seed)
    lines, values, w = ["x0 = f32[64,64] parameter(0)"], ["x0"], "f32[64,64]"
    while len(lines) < ops:
        i, a, b = len(lines), rng.choice(values[-50:]), rng.choice(values[-50:])
        if rng.random() < 0.2:
            lines += [f"st{i} = ({w}, {w}, u32[]) copy-start({a})", f"v{i} = {w} copy-done(st{i})"]
        elif rng.random() < 0.1:
            lines += [f"st{i} = (({w}, {w}), {w}, u32[]) add-start({a}, {b})", f"v{i} = {w} add-done(st{i})"]
        else:
            lines.append(f"v{i} = {w} {rng.choice(['add', 'multiply', 'maximum'])}({a}, {b})")
        values.append(f"v{i}")
    lines.append(f"ROOT r = {w} add({values[-1]}, {values[-2]})")
    return "HloModule big\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def seconds(module, pass_name):
    """CPU time of a pass alone: run also copies the module and verifies it once, which an empty pipeline does too."""
    began = time.process_time()
    module.run("")
    between = time.process_time()
    module.run(pass_name)
    return time.process_time() - between - (between - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    module = xlac.parse(big(args.ops))
    module.verify()
    times = {name: [] for name in ("latency-hiding-scheduler", "dce")}
    for _ in range(args.rounds):
        for name, list_ in times.items():
            list_.append(seconds(module, name))
    for name, list_ in times.items():
        print(f"{name}: {args.ops} ops, least {min(list_):.3f} s, median {statistics.median(list_):.3f} s of {args.rounds} rounds")
    for kind in ("copy", "generic"):
        for n in (128, 256, 512, 1024):
            print(f"16 layers of {n} x {n}, {kind} chains: {share(16, n, kind):.2f} of what the order by hand hides")


if __name__ == "__main__":
    main()
