"""What in a program's shardings is probably a mistake: told before anything runs, with the line and the numbers."""
import dataclasses
import math
import re

from .remedies import argument_shapes, parts
from .shard_values import Values, listed

LARGE = 1 << 20  # bytes of an argument that every device holds whole


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """Something about the sharding of `value` (or of the mesh, where it is None); `kind` is one word for it."""
    kind: str
    value: str | None
    line: int
    text: str

    def __str__(self):
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.text} [{self.kind}]"


class Search:
    """Looks through a trace. Shapes are those of arguments and of what the text says of other values."""

    def __init__(self, trace):
        self.trace, self.meshes = trace, trace.meshes
        rows = listed(trace._before)["values"]
        values = Values(rows, "the program")
        self.values = [(name, rows[i]) for name, i in values.unique()]
        self.shapes = {name: v["shape"] for name, v in self.values if None not in v.get("shape", [None])}
        self.operand = {name: values.name(v["operands"][0]) for name, v in self.values if v["operands"]}
        self.bytes = {name: math.prod(shape) * size for name, (shape, size) in argument_shapes(rows).items()}

    def annotated(self):
        for name, v in self.values:
            if v["sharding"] and name in self.shapes:
                dims, rest = parts(v["sharding"])
                mesh = self.meshes.get(rest[0].removeprefix("@"))
                if mesh and len(dims) == len(self.shapes[name]):
                    yield name, v, dims, mesh

    def uneven(self):
        for name, v, dims, mesh in self.annotated():
            for i, (size, d) in enumerate(zip(self.shapes[name], dims)):
                cut = math.prod(a.size or mesh.shape[a.name] for a in d.axes)
                if cut > 1 and size == 1:
                    yield Suspicion("size-one", name, v["line"], f"dimension {i} of {name} has size 1, and is cut into {cut}: all but one device "
                                    "hold nothing of it")
                elif size % cut:
                    held = -(-size // cut)
                    yield Suspicion("uneven", name, v["line"], f"dimension {i} of {name}, of size {size}, is cut into {cut}: devices hold {held} "
                                    f"each, {100 * (held * cut - size) // (held * cut)} % of it padding")

    def whole(self):
        for name, v, dims, mesh in self.annotated():
            held = self.bytes.get(name, 0)
            if v["opcode"] == "argument" and held >= LARGE and not any(d.axes or d.open for d in dims) and mesh.size > 1:
                yield Suspicion("whole", name, v["line"], f"{name} is annotated to be whole on every device: {held} bytes on each of {mesh.size}")

    def idle(self):
        used = {(rest[0].removeprefix("@"), name) for v in self.trace.values if v["sharding"] for dims, rest in [parts(v["sharding"])]
                for name in re.findall(r'"([^"]+)"', " ".join(map(str, dims)) + rest[1])}
        manual = set(re.findall(r'"([^"]+)"', " ".join(re.findall(r"manual_axes=\{([^}]*)\}", self.trace.module.to_text()))))
        for mesh, m in self.meshes.items():
            for name, size in m.axes:
                if size > 1 and (mesh, name) not in used and name not in manual:
                    yield Suspicion("idle-axis", None, 0, f"nothing is sharded along axis {name!r} of @{mesh}: "
                                     f"groups of {size} devices all do the same")

    def overruled(self):
        by_name = dict(self.values)
        for name, v in self.values:
            within = self.operand.get(name)
            inner = by_name.get(within)
            if v["opcode"] == "sdy.sharding_constraint" and inner and inner["opcode"] == v["opcode"] and inner["sharding"] != v["sharding"]:
                yield Suspicion("overruled", name, v["line"], f"the constraint on {within} is followed at once by another one, on {name}: "
                                f"{inner['sharding']}, then {v['sharding']}")

    def there_and_back(self):
        rows = self.trace.reshards
        for first, second in zip(rows, rows[1:]):
            if first.opcode == "sdy.all_gather" and second.of == "sdy.all_gather" and second.opcode in ("sdy.all_slice", "sdy.all_to_all") and \
                    first.before == second.after:
                yield Suspicion("there-and-back", first.name, first.line,
                                f"{first.bytes} bytes are gathered after {first.of} and cut up again as they were: "
                                f"{first.before} -> {first.after} -> {second.after}")

    def run(self):
        found = [s for find in (self.there_and_back, self.overruled, self.uneven, self.whole, self.idle) for s in find()]
        return sorted(dict.fromkeys(found), key=lambda s: (s.line, s.kind, s.value or ""))
