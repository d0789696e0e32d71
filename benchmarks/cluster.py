"""Times auto-clustering on graphs of 10,000 to 1,000,000 nodes: chains of matrix products, random DAGs with ops that XLA can't compile,
and training graphs (variables, gradients, updates in a group). "all" is reading, import and passes, "pass" the passes alone; memory is the
process's high-water mark less that before. With --tensorflow the real pass runs in the same process, turn by turn, and the ratios are
its times over xlac's (memory is then both's).

    python benchmarks/cluster.py [--rounds 3] [--nodes 10000 100000] [--tensorflow liboracle.so]"""
import argparse
import ctypes
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


class TensorFlow:
    """TensorFlow's pass through a library of one C function (`mfc_run`, the project's oracle), each graph in a process that is kept."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self.lib.mfc_run.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        self.lib.mfc_free.argtypes = [ctypes.c_void_p]

    def times(self, data):
        """(seconds of the import, of the pass), and how many clusters there are."""
        out, n = ctypes.c_void_p(), ctypes.c_size_t()
        self.lib.mfc_run(data, len(data), b"global_jit_level=1\n", ctypes.byref(out), ctypes.byref(n))
        lines = [line.split("\t") for line in ctypes.string_at(out, n.value).decode().split("\n")]
        self.lib.mfc_free(out)
        row = next(r for r in lines if r[0] == "T")
        return float(row[2]), float(row[4]), len({r[5] for r in lines if r[0] == "N" and r[5]})


def measure(data, rounds, tensorflow):
    """Rounds in turn: xlac's (all, the pass alone), TensorFlow's (import and pass, the pass alone)."""
    mine, other, counts = [], [], None
    for _ in range(rounds):
        start = time.perf_counter()
        clusters = xlac.cluster(data, format="proto")
        mine.append((time.perf_counter() - start, clusters.timings["cluster"]))
        mine_count = len(set(clusters.assignment.values()))
        if tensorflow:
            *seconds, counts = tensorflow.times(data)
            other.append((sum(seconds), seconds[1]))
            assert counts == mine_count, (counts, mine_count)
    return mine, other, mine_count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="*", default=[10000, 100000])
    parser.add_argument("--tensorflow", metavar="LIB", help="the oracle's library: TensorFlow's own pass in the same run")
    args = parser.parse_args()
    tensorflow = TensorFlow(args.tensorflow) if args.tensorflow else None
    print(f"{'graph':8} {'nodes':>8} {'MB':>6} {'all s':>8} {'(median)':>9} {'pass s':>8} {'(median)':>9} {'us/node':>8} {'clusters':>8} {'MB more':>8}"
          + ("   TensorFlow all s (times) pass s (times)" if tensorflow else ""))
    for n in args.nodes:
        for make in (chain, dag, train):
            data = make(n)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            mine, other, count = measure(data, args.rounds, tensorflow)
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            both = [(min(v), statistics.median(v)) for v in zip(*mine)]
            line = (f"{make.__name__:8} {n:8} {len(data) / 1e6:6.1f} {both[0][0]:8.3f} {both[0][1]:9.3f} {both[1][0]:8.3f} {both[1][1]:9.3f} "
                    f"{both[1][0] / n * 1e6:8.2f} {count:8} {more:8.0f}")
            if tensorflow:
                theirs = [min(v) for v in zip(*other)]
                line += "   " + " ".join(f"{t:8.3f} ({t / m[0]:5.1f})" for t, m in zip(theirs, both))
            print(line, flush=True)


if __name__ == "__main__":
    main()
