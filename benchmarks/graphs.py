"""Steps of real TensorFlow graphs (those of tests/session), clustered and node by node, side by side: what clusters save.

python benchmarks/graphs.py [NAME...] [--rounds N]; ratios are of times in one process, round by round."""
import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "session"))

import recorded  # noqa: E402

import xlac  # noqa: E402


def step_of(case, **flags):
    """(a function that runs one step, seconds of the first, the executable)"""
    session = xlac.cluster(case["graph"], **flags).session(threads=1)
    start = case["initial"]["feeds"]
    session.executable(list(start), [], [case["initial"]["target"]])(*(recorded.make(f, 0) for f in start.values()))
    step, arrays = session.executable(list(case["feeds"]), case["fetches"]), [recorded.make(f, 0) for f in case["feeds"].values()]
    began = time.perf_counter()
    step(*arrays)
    return (lambda: step(*arrays)), time.perf_counter() - began, step


def timed(run, n):
    began = time.perf_counter()
    for _ in range(n):
        run()
    return (time.perf_counter() - began) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print(f"{'graph':26} {'nodes':>6} {'in clusters':>11} {'first, ms':>10} {'step, us':>9} {'node by node / clustered: min, median':>38}")
    for case in recorded.load():
        if args.names and case["name"] not in args.names:
            continue
        clustered, first, exe = step_of(case, min_cluster_size=2)
        nodes, _, _ = step_of(case, global_jit_level=-1)
        n = max(1, int(0.05 / max(1e-6, timed(nodes, 3))))
        pairs = [(timed(clustered, n), timed(nodes, n)) for _ in range(args.rounds)]
        ratios = [b / a for a, b in pairs]
        units = [u for u in exe.stats["units"] + exe.stats["inside"] if u["runs"]]
        inside = sum(u["nodes"] for u in units if u["kind"] == "cluster")
        print(f"{case['name']:26} {sum(u['nodes'] for u in units):6} {inside:11} {1e3 * first:10.1f} {1e6 * min(a for a, _ in pairs):9.1f} "
              f"{min(ratios):25.2f} {statistics.median(ratios):12.2f}")


if __name__ == "__main__":
    main()
