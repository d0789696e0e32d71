"""Graphs with wrong bytes run or fail with an error of ours; nothing else. XLAC_MUTANTS=n runs n of them."""
import os
import random

import recorded

import xlac

CASES = [case for case in recorded.load() if len(case["graph"]) < 20000]


def mutated(graph, random):
    data = bytearray(graph)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(data))
        if random.random() < 0.7:
            data[at] = random.choice((random.randrange(256), data[at] ^ 1 << random.randrange(8), (data[at] + 1) % 256))
        else:
            other, n = random.randrange(len(data)), random.randrange(1, 12)
            data[at:at + n] = data[other:other + n]
    return bytes(data)


def run(case, graph, options, flags):
    session = xlac.cluster(graph, **flags).session(**options)
    start = case["initial"]["feeds"]
    session.executable(list(start), [], [case["initial"]["target"]])(*(recorded.make(f, 0) for f in start.values()))
    step = session.executable(list(case["feeds"]), case["fetches"])
    for number in range(2):
        step(*(recorded.make(f, number) for f in case["feeds"].values()))
    assert step.stats["runs"] == 2 and step.explain()


def test_mutated_graphs():
    draw, failed = random.Random(1), 0
    n = int(os.environ.get("XLAC_MUTANTS", 0)) or 150
    for _ in range(n):
        case = draw.choice(CASES)
        graph, options = mutated(case["graph"], draw), {"always_defer": draw.random() < 0.3, "lazy": draw.random() < 0.7}
        try:
            run(case, graph, options, {"min_cluster_size": draw.choice((1, 4)), "global_jit_level": draw.choice((1, 1, -1))})
        except (xlac.Error, ValueError):  # of NumPy: a feed of another type
            failed += 1
    assert 0 < failed < n
