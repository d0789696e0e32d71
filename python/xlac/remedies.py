"""Annotations that would save what shardings make devices send: tried one by one, each by propagating again."""
import collections
import dataclasses
import math
import re

from .mesh import Axis, Dim
from .shard_values import Values, listed

MOST = 300  # annotations tried


@dataclasses.dataclass(frozen=True)
class Remedy:
    """An annotation, `sharding` on `value` of the program before propagation instead of `was`, with which the reshards `gone` are
    not needed and those in `new` are: each device then sends `saves` bytes less, and holds `holds` bytes more of arguments."""
    value: str
    line: int
    was: str | None
    sharding: str | None
    gone: tuple
    new: tuple
    saves: int
    holds: int

    def __str__(self):
        what = f"{self.sharding} on {self.value}" if self.sharding else f"no sharding on {self.value}"
        was = f" instead of {self.was}" if self.was else ""
        where = f" (line {self.line})" if self.line else ""
        holds = f", and holds {amount(self.holds, 'of arguments')}" if self.holds else ""
        return f"{what}{where}{was}: each device sends {amount(-self.saves)}{holds}"


def amount(n, of=""):
    return f"{abs(n)} bytes {'more' if n > 0 else 'less'}" + (f" {of}" if of else "") if n else "as much as before"


def vanished(mine, theirs):
    """Those of mine that have none of the same kind in the same place left."""
    left = collections.Counter((r.opcode, r.line, r.of) for r in theirs)
    gone = []
    for r in mine:
        left[r.opcode, r.line, r.of] -= 1
        if left[r.opcode, r.line, r.of] < 0:
            gone.append(r)
    return gone


def inner(sharding):
    return None if sharding is None else sharding.removeprefix("#sdy.sharding")


def text_of(dims, rest):
    return f"#sdy.sharding<{rest[0]}, [{', '.join(map(str, dims))}]{rest[1]}>"


def parts(text):
    """Mesh, dimensions and what follows of #sdy.sharding<...>."""
    from .mesh import _DIM, _axes

    found = re.match(r"#sdy\.sharding<(@[\w$.]+|mesh<.*?\]>), \[(.*?)\]((?:, (?:replicated|unreduced)=.*)?)>$", text)
    dims = [Dim(_axes(body), body.rstrip().endswith("?"), int(p) if p else None) for body, p in _DIM.findall(found[2])]
    return dims, (found[1], found[3])


def argument_shapes(rows):
    """Shapes and bytes of an element of the main function's arguments, by name; of those of known shape."""
    return {v["name"]: (v["shape"], v["itemsize"]) for v in rows
            if v["main"] and v["opcode"] == "argument" and None not in v.get("shape", [None])}


class Trials:
    """The annotations that could matter to a trace's reshards, each tried at most once."""

    def __init__(self, trace):
        self.trace, self.before = trace, trace._before
        self.now = trace.reshards
        rows = listed(self.before)["values"]
        self.values = {name: rows[i] for name, i in Values(rows, "the program").unique()}
        self.shapes = argument_shapes(rows)
        self.meshes = trace.meshes

    def shards(self, sharding):
        if sharding is None:
            return 1
        dims, rest = parts(sharding)
        mesh = self.meshes.get(rest[0].removeprefix("@"))
        return math.prod(a.size or mesh.shape[a.name] for d in dims for a in d.axes) if mesh else 1

    def candidates(self):
        """(value, was, sharding), the likeliest first."""
        seen = set()
        for value, was, sharding in (*self.on_constraints(), *self.at_reshards(), *self.on_arguments(), *self.on_results()):
            if (value, sharding) not in seen and sharding != was:
                seen.add((value, sharding))
                yield value, was, sharding

    def on_constraints(self):
        for name, v in self.values.items():
            if v["opcode"] == "sdy.sharding_constraint" and v["sharding"]:
                dims, rest = parts(v["sharding"])
                yield name, v["sharding"], text_of([Dim(d.axes, True) for d in dims], rest)
                yield name, v["sharding"], None

    def at_reshards(self):
        places = {(v["line"], v["col"], v["opcode"]): name for name, v in reversed(self.values.items())}
        for r in self.now:
            name = places.get((r.line, r.col, r.of))
            if name and r.after:
                yield name, self.values[name]["sharding"], r.after

    def on_arguments(self):
        for name, (shape, _) in self.shapes.items():
            was = self.values[name]["sharding"]
            if was is None:
                continue
            dims, rest = parts(was)
            used = {a.name for d in dims for a in d.axes}
            for i, d in enumerate(dims):
                if d.axes:
                    yield name, was, text_of(dims[:i] + [Dim((), False)] + dims[i + 1:], rest)
            for axis, size in self.meshes[rest[0].removeprefix("@")].axes if rest[0].startswith("@") else ():
                for i, d in enumerate(dims):
                    if axis not in used and shape[i] % (size * math.prod(a.size or 1 for a in d.axes)) == 0:
                        yield name, was, text_of(dims[:i] + [Dim((*d.axes, Axis(axis)), d.open)] + dims[i + 1:], rest)
                    elif axis in used and not any(a.name == axis for a in d.axes) and shape[i] % size == 0:
                        moved = [Dim(tuple(a for a in e.axes if a.name != axis), e.open) for e in dims]
                        yield name, was, text_of(moved[:i] + [Dim((*d.axes, Axis(axis)), d.open)] + moved[i + 1:], rest)

    def on_results(self):
        for i, was in enumerate(self.trace.results):
            if was:
                yield f"result {i}", was, None

    def holds(self, value, was, sharding):
        if value not in self.shapes:
            return 0
        shape, size = self.shapes[value]
        whole = math.prod(shape) * size
        return whole // self.shards(sharding) - whole // self.shards(was)

    def run(self):
        """A list of Remedy, for every annotation that makes a reshard vanish: first those that save bytes sent and do not make devices hold
        more of the arguments, what saves most first."""
        from .errors import Error
        from .propagation import compare, propagate

        found = []
        for n, (value, was, sharding) in enumerate(self.candidates()):
            if n == MOST:
                break
            other = self.before.clone()
            try:
                other._annotate(value, sharding or "")
                theirs = propagate(other).trace.reshards
            except Error:
                continue  # not a sharding that the value can have
            gone, new = vanished(self.now, theirs), compare(self.now, theirs)[1]
            if gone:
                line = self.values[value]["line"] if value in self.values else 0
                saves = sum(r.bytes for r in self.now) - sum(r.bytes for r in theirs)
                found.append(Remedy(value, line, inner(was), inner(sharding), tuple(gone), tuple(new), saves, self.holds(value, was, sharding)))
        return sorted(found, key=lambda r: (r.saves <= 0, r.holds > 0, -r.saves, r.holds, r.value, r.sharding or ""))
