"""What asynchronous operations gain and cost on the compiled executor, side by side in one run.

  python benchmarks/async_overlap.py [--rounds 9] [--size 2048] [--layers 16]

- overlap: two independent matrix products of one thread each, plain and with one of them started before the other.
- pair: a call of one tiny op, plain and between a start and a done: run where it starts, and on a lane (async_work=1).
- pipeline: layers of a product each, whose weights are copied first; plain copies, each copy a pair just before its layer, each copy
  started a layer ahead, and no copies at all. "hidden" is the share of the copies' time that is gone.

Every round times all sides in turn; minimum and median over the rounds, and the ratio of the minima. Overlap needs two idle CPUs: the
line "two threads" says how long two threads take for what one does alone, 1.0 on an idle machine."""
import argparse
import statistics
import threading
import time

import numpy as np

import xlac


def timed(calls, rounds, repeat=1):
    """(minimum, median) seconds of each call, taken in turn."""
    spent = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            for _ in range(repeat):
                call()
            spent[i].append((time.perf_counter() - begin) / repeat)
    return [(min(s), statistics.median(s)) for s in spent]


def show(name, rows, unit=1e3, suffix="ms"):
    print(name)
    for label, (least, middle) in rows:
        print(f"  {label:<34} min {least * unit:9.3f} {suffix}  median {middle * unit:9.3f} {suffix}  {least / rows[0][1][0]:6.3f} of the first")


def product(n, name, a, b, kind="dot", of=None):
    t = f"f32[{n},{n}]"
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    if kind == "dot-start":
        return f"  {name} = (({t}, {t}), {t}, u32[]) dot-start({a}, {b}), {dims}"
    return f"  {name} = {t} dot-done({of})" if kind == "dot-done" else f"  {name} = {t} dot({a}, {b}), {dims}"


def compiled(lines, **options):
    return xlac.compile("HloModule m, is_scheduled=true\nENTRY e {\n" + "\n".join(lines) + "\n}", threads=1, **options)


def overlap(n, rounds):
    head = [f"  a = f32[{n},{n}] parameter(0)", f"  b = f32[{n},{n}] parameter(1)"]
    last = [f"  ROOT r = (f32[{n},{n}], f32[{n},{n}]) tuple(x, y)"]
    plain = compiled([*head, product(n, "x", "a", "b"), product(n, "y", "b", "a"), *last])
    started = compiled([*head, product(n, "s", "a", "b", "dot-start"), product(n, "y", "b", "a"), product(n, "x", "", "", "dot-done", "s"), *last])
    one = compiled([*head, "  ROOT" + product(n, "x", "a", "b")[1:]])
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    assert all((p == s).all() for p, s in zip(plain(a, b), started(a, b)))

    def two_threads():
        other = threading.Thread(target=one, args=(a, b))
        other.start()
        one(a, b)
        other.join()
    alone, both = timed([lambda: one(a, b), two_threads], 3)
    print(f"two threads: {both[0] / alone[0]:.2f} of one thread's time")
    show(f"overlap: two products of {n} x {n}", list(zip(("one after the other", "one of them started before"),
                                                         timed([lambda: plain(a, b), lambda: started(a, b)], rounds))))
    pair = started.timeline(a, b).pairs[0]
    print(f"  by the timeline: {1e3 * pair.busy:.1f} ms of work, {1e3 * pair.exposed:.1f} ms exposed")


def tiny(rounds):
    plain = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] negate(x) }"
    pair = "HloModule m\nENTRY e { x = f32[4] parameter(0)\n s = ((f32[4]), f32[4], u32[]) negate-start(x)\n ROOT y = f32[4] negate-done(s) }"
    x = np.ones(4, np.float32)
    sides = [xlac.compile(plain), xlac.compile(pair), xlac.compile(pair, async_work=1), xlac.compile(pair, async_work=1, lanes={"": 0})]
    rows = timed([lambda e=e: e(x) for e in sides], rounds, 3000)
    show("pair: one op on 4 floats", list(zip(("plain", "pair", "pair on a lane", "pair on a lane without threads"), rows)), 1e6, "us")
    print(f"  a pair costs {1e6 * (rows[1][0] - rows[0][0]):.3f} us, on a lane {1e6 * (rows[2][0] - rows[0][0]):.3f} us")


def pipeline(n, layers, rounds):
    """Layers of 64 rows. copies: "none", "plain", "late" (started just before they are needed) or "ahead" (a layer before)."""
    t = f"f32[{n},{n}]"

    def lines(copies):
        out = [f"  h0 = f32[64,{n}] parameter(0)"] + [f"  w{i} = {t} parameter({i + 1})" for i in range(layers)]
        start = lambda i: f"  s{i} = ({t}, {t}, u32[]) copy-start(w{i})"  # noqa: E731
        if copies == "ahead":
            out.append(start(0).replace("  s0", "  c_s0"))
        for i in range(layers):
            weight = f"w{i}"
            if copies == "plain":
                out.append(f"  c{i} = {t} copy(w{i})")
                weight = f"c{i}"
            elif copies != "none":
                if copies == "late":
                    out.append(start(i).replace(f"  s{i}", f"  c_s{i}"))
                elif i + 1 < layers:
                    out.append(start(i + 1).replace(f"  s{i + 1}", f"  c_s{i + 1}"))
                out.append(f"  c{i} = {t} copy-done(c_s{i})")
                weight = f"c{i}"
            root = "ROOT " if i + 1 == layers else ""
            out.append(f"  {root}h{i + 1} = f32[64,{n}] dot(h{i}, {weight}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        return out
    kinds = ("none", "plain", "late", "ahead")
    exes = [compiled(lines(k), passes=False, async_work=1) for k in kinds]
    rng = np.random.default_rng(0)
    args = [(rng.standard_normal((n, n)) / n ** 0.5).astype(np.float32) for _ in range(layers + 1)]
    args[0] = args[0][:64].copy()
    rows = timed([lambda e=e: e(*args) for e in exes], rounds)
    show(f"pipeline: {layers} layers of 64 x {n} by {n} x {n}, weights copied", list(zip(kinds, rows)))
    copying = rows[1][0] - rows[0][0]
    for kind, (least, _) in zip(kinds[2:], rows[2:]):
        print(f"  {kind}: {100 * (rows[1][0] - least) / copying:.0f}% of the copies' time is hidden" if copying > 0 else "  copies take no time")
    timeline = exes[3].timeline(*args)
    print(f"  by the timeline: {1e3 * sum(p.busy for p in timeline.pairs):.2f} ms of copying, {1e3 * timeline.exposed:.2f} ms exposed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=16)
    args = parser.parse_args()
    overlap(args.size, args.rounds)
    tiny(args.rounds)
    pipeline(args.size // 2, args.layers, args.rounds)


if __name__ == "__main__":
    main()
