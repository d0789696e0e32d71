"""Times auto-clustering on graphs of 10,000 to 1,000,000 nodes: chains of matrix products, random DAGs with ops that XLA can't compile,
and training graphs (variables, gradients, updates in a group). The pass is timed with reading and import of the GraphDef; memory is the
process's high-water mark less that before. TensorFlow's own times on such graphs are in its pass's measurements (RunTime of release
2.21): chain 10k/100k 0.060/0.92 s, DAG 0.041/0.80 s, training graph 0.305/35.7 s, without import.

    python benchmarks/cluster.py [--rounds 3] [--nodes 10000 100000]"""
import argparse
import random
import resource
import statistics
import time

import xlac


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def typed(key, type=1):
    return field(5, field(1, key) + field(2, b"\x30" + varint(type)))


def node(name, op, inputs, attrs=b""):
    return field(1, field(1, name.encode()) + field(2, op.encode()) + b"".join(field(3, i.encode()) for i in inputs) + attrs)


FLOAT = typed(b"T")
DTYPE = typed(b"dtype")


def chain(n):
    """h = tanh(x @ w + h), over and over."""
    out = [node("x", "Placeholder", [], DTYPE), node("w", "Placeholder", [], DTYPE)]
    last = "x"
    for i in range(n // 3):
        out += [node(f"m{i}", "MatMul", [last, "w"], FLOAT), node(f"a{i}", "AddV2", [f"m{i}", "x"], FLOAT),
                node(f"t{i}", "Tanh", [f"a{i}"], FLOAT)]
        last = f"t{i}"
    return b"".join(out)


def dag(n):
    rng = random.Random(n)
    out = [node(f"p{i}", "Placeholder", [], DTYPE) for i in range(10)]
    names = [f"p{i}" for i in range(10)]
    for i in range(n):
        a, b = names[-1 - int(rng.random() ** 2 * min(len(names), 200))], names[-1 - int(rng.random() ** 2 * min(len(names), 200))]
        odd = rng.random() < 0.03
        out.append(node(f"n{i}", "BesselJ0", [a], FLOAT) if odd else node(f"n{i}", rng.choice(["AddV2", "Mul", "Maximum"]), [a, b], FLOAT))
        names.append(f"n{i}")
    return b"".join(out)


def train(n):
    """Layers with a variable each: read, product, relu; gradients back; an update for each; a NoOp that waits for all."""
    layers, out, last = n // 8, [node("x", "Placeholder", [], DTYPE), node("lr", "Const", [], DTYPE + field(5, field(1, b"value") + field(
        2, field(8, b"\x08\x01\x12\x00\x2d\x00\x00\x80\x3f"))))], "x"
    for i in range(layers):
        out += [node(f"v{i}", "VarHandleOp", [], DTYPE + field(5, field(1, b"shape") + field(2, field(7, b"")))),
                node(f"r{i}", "ReadVariableOp", [f"v{i}"], DTYPE), node(f"m{i}", "MatMul", [last, f"r{i}"], FLOAT),
                node(f"h{i}", "Relu", [f"m{i}"], FLOAT)]
        last = f"h{i}"
    for i in reversed(range(layers)):
        out += [node(f"g{i}", "ReluGrad", [last, f"h{i}"], FLOAT), node(f"d{i}", "MatMul", [f"g{i}", f"r{i}"], FLOAT),
                node(f"u{i}", "ResourceApplyGradientDescent", [f"v{i}", "lr", f"d{i}"], FLOAT)]
        last = f"d{i}"
    return b"".join(out) + node("train", "NoOp", [f"^u{i}" for i in range(layers)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10000, 100000])
    args = parser.parse_args()
    print(f"{'graph':8} {'nodes':>8} {'MB':>6} {'min s':>8} {'median s':>9} {'us/node':>8} {'clusters':>8} {'MB more':>8}")
    for n in args.nodes:
        for make in (chain, dag, train):
            data = make(n)
            before, times = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
            for _ in range(args.rounds):
                start = time.perf_counter()
                clusters = xlac.cluster(data, format="proto")
                times.append(time.perf_counter() - start)
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            count = len(set(clusters.assignment.values()))
            print(f"{make.__name__:8} {n:8} {len(data) / 1e6:6.1f} {min(times):8.3f} {statistics.median(times):9.3f} "
                  f"{min(times) / n * 1e6:8.2f} {count:8} {more:8.0f}")


if __name__ == "__main__":
    main()
