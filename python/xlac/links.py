"""How long collectives take on a network, by the latency-bandwidth model: a message of b bytes takes latency + b / bandwidth
(Hockney, The communication challenge for MPP, Parallel Computing 20, 1994).

  ring                 n - 1 steps of a n-th each, twice for an all-reduce: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
                       clusters of workstations, J. Parallel Distrib. Comput. 69, 2009
  recursive doubling   log2 n steps: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH,
                       Int. J. High Perform. Comput. Appl. 19, 2005 (also halving, Rabenseifner's all-reduce, pairwise and Bruck's all-to-all)
  buckets on a torus   rings of all dimensions at once, in both directions: Jain and Sabharwal, Optimal bucket algorithms for large MPI collectives on
                       torus interconnects, ICS 2010
  hierarchical         within nodes, between nodes on what each member has, within nodes again: Cho et al., BlueConnect, MLSys 2019

As libraries do, the quickest that a network allows is taken."""
import collections
import functools
import types
import math

Cost = collections.namedtuple("Cost", "seconds algorithm level")  # level: of the outermost links that are used


def _log2(n):
    return math.ceil(math.log2(n)) if n > 1 else 0


# Each: bytes that a member has before, n members, latency, bandwidth -> {algorithm: seconds}.

def _all_reduce(b, n, a, w):
    part = (n - 1) / n * b / w
    return {"ring": 2 * (n - 1) * a + 2 * part, "recursive halving and doubling": 2 * _log2(n) * a + 2 * part,
            "recursive doubling": _log2(n) * (a + b / w)}


def _reduce_scatter(b, n, a, w):
    part = (n - 1) / n * b / w
    return {"ring": (n - 1) * a + part, "recursive halving": _log2(n) * a + part}


def _all_gather(b, n, a, w):
    return {"ring": (n - 1) * (a + b / w), "recursive doubling": _log2(n) * a + (n - 1) * b / w}


def _all_to_all(b, n, a, w):
    return {"pairwise": (n - 1) * (a + b / n / w), "Bruck": _log2(n) * (a + b / 2 / w)}


def _broadcast(b, n, a, w):
    return {"binomial tree": _log2(n) * (a + b / w), "scatter and all-gather": (_log2(n) + n - 1) * a + 2 * (n - 1) / n * b / w}


SWITCHED = {"all-reduce": _all_reduce, "reduce-scatter": _reduce_scatter, "all-gather": _all_gather, "all-to-all": _all_to_all,
            "ragged-all-to-all": _all_to_all, "collective-broadcast": _broadcast, "collective-reduce": _all_reduce}


def switched(kind, b, n, level):
    """Among n devices that reach each other at the same cost."""
    ways = SWITCHED[kind](b, n, level.latency, level.bandwidth)
    name = min(ways, key=ways.get)  # the first of equals
    return ways[name], name


def torus_shape(n, dims):
    """n chips as `dims` factors that are as equal as can be, largest last."""
    shape, left = [], n
    for i in range(dims, 1, -1):
        root = round(left ** (1 / i))
        factor = next(f for f in range(min(root + 1, left), 0, -1) if left % f == 0 and f ** i <= left * (1 + 1e-9) or f == 1)
        shape.append(factor)
        left //= factor
    return (*shape, left)


def torus(kind, b, extents, level):
    """Along the dimensions of a torus in which a group extends: [(members, whether the ring closes), ...]. All rings work at once on a share of
    the data each, in both directions where they close; each step is one hop."""
    n = math.prod(e for e, _ in extents)
    lanes = sum(2 if closed else 1 for _, closed in extents)
    hops = sum(e // 2 if closed else e - 1 for e, closed in extents)
    once = {"all-reduce": 2 * b * (n - 1) / n, "reduce-scatter": b * (n - 1) / n, "all-gather": b * (n - 1),
            "collective-broadcast": 2 * b * (n - 1) / n, "collective-reduce": 2 * b * (n - 1) / n}
    twice = 2 if kind in ("all-reduce", "collective-broadcast", "collective-reduce") else 1
    if kind in once:
        return twice * hops * level.latency + once[kind] / (lanes * level.bandwidth), "buckets on a torus"
    # All-to-all: half of the longest dimension's data cross its middle, over as many links as cut it in two.
    longest, closed = max(extents)
    crossing = b * longest / 4 / (2 if closed else 1)
    return hops * level.latency + crossing / level.bandwidth, "all-to-all on a torus"


# --- where a group lies ---

@functools.lru_cache(64)
def members(axes):
    """The first group along digits of the device's number, (size, stride) each, major first."""
    found = [0]
    for size, stride in axes:
        found = [at + i * stride for at in found for i in range(size)]
    return tuple(found)


def spread(devices, levels, total):
    """How many members share a unit of each level, as factors from the inside out: 4 x 2 for 8 devices, 4 in each of two nodes. A group that
    lies unevenly counts as its fullest unit says."""
    factors, units, inside = [], list(devices), 1
    for level in levels:
        size = min(level.size or total, total)
        counts = collections.Counter(d // size for d in units)
        here = max(counts.values())
        factors.append(max(1, math.ceil(here / inside)))
        inside = max(inside, here)
    return factors


def extents_of(devices, unit, dims):
    """Of those of the group that are in the first one's unit: [(members, closed)] for each dimension of its torus that they extend in."""
    shape = torus_shape(unit, dims)
    first = devices[0] // unit
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    inside = [d % unit for d in devices if d // unit == first]
    found = []
    for size, stride in zip(shape, strides):
        seen = len({d // stride % size for d in inside})
        if seen > 1:
            found.append((seen, seen == size and size > 2))
    return found


def again(levels, total, places):
    """A pickled Network."""
    return Network(types.SimpleNamespace(levels=levels), total, places)


class Network:
    """The links of a hardware between `total` devices. `places`: the device at each place of the mesh, None: in order."""

    def __init__(self, hardware, total, places=None):
        self.levels, self.total, self.places = hardware.levels, total, places
        self._laid = functools.lru_cache(4096)(self._lay)

    def __reduce__(self):
        return again, (self.levels, self.total, self.places)

    def _lay(self, devices):
        levels = []
        for level in self.levels:
            levels.append(level)
            if level.size is None or level.size >= self.total:
                break
        factors = spread(devices, levels, self.total)
        extents = [extents_of(devices, min(level.size or self.total, self.total), level.dims) if level.topology == "torus" else None
                   for level in levels]
        return [(level, n, e) for level, n, e in zip(levels, factors, extents) if n > 1]

    def group(self, collective):
        """The devices of a collective's first group."""
        if "axes" in collective:
            found = members(tuple(map(tuple, collective["axes"])))
        else:
            found = tuple(collective.get("devices") or range(self.total))
        return tuple(self.places[i] for i in found) if self.places else found

    def permute(self, b, pairs):
        """Every device sends at once; the farthest decides."""
        far = 0
        for source, target in pairs:
            if source != target:
                meets = (i for i, level in enumerate(self.levels) if level.size is None or source // level.size == target // level.size)
                far = max(far, next(meets) + 1)
        if not far:
            return Cost(0.0, "stays", None)
        level = self.levels[far - 1]
        return Cost(level.latency + b / level.bandwidth, "send and receive", level)

    def cost(self, collective):
        """Of a collective as a rehearsal has it: a Cost."""
        kind, b = collective["kind"], collective["bytes"]
        if kind == "collective-permute":
            return self.permute(b, collective["pairs"])
        laid = self._laid(self.group(collective))
        if not laid:
            return Cost(0.0, "alone", None)
        phases = list(self._phases(kind, b, laid))
        name = phases[0][1] if len(phases) == 1 else "hierarchical: " + ", ".join(dict.fromkeys(name for _, name in phases))
        return Cost(sum(seconds for seconds, _ in phases), name, laid[-1][0])

    def _phases(self, kind, b, laid):
        """[(seconds, algorithm)] from the inside out; what is reduced is less for the next level, what is gathered comes from the outside."""
        (level, n, extents), outer = laid[0], laid[1:]
        one = lambda kind, b: torus(kind, b, extents, level) if extents else switched(kind, b, n, level)  # noqa: E731
        if not outer:
            yield one(kind, b)
        elif kind in ("all-reduce", "collective-reduce"):
            yield one("reduce-scatter", b)
            yield from self._phases(kind, b / n, outer)
            yield one("all-gather", b / n)
        elif kind == "reduce-scatter":
            yield one(kind, b)
            yield from self._phases(kind, b / n, outer)
        elif kind == "all-gather":
            yield from self._phases(kind, b, outer)
            yield one(kind, b * math.prod(size for _, size, _ in outer))
        else:
            yield from self._phases(kind, b, outer)
            yield one(kind, b)
