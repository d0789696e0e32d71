"""Propagation of shardings that can say why. `propagate` runs Shardy's pipeline; its trace answers questions about it."""
import dataclasses
import json

from .errors import Error

BEFORE = ("builtin.module(sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
          "sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-pre-order-funcs)")
AFTER = ("builtin.module(sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph,symbol-dce,"
         "sdy-insert-func-call-reshards,sdy-export-pipeline)")
COLLECTIVES = "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives))"
LEVELS = ("elementwise ops and the like whose operands nobody else reads", "elementwise ops and the like",
          "factors that need no communication", "everything, but broadcasts only backward", "everything")


@dataclasses.dataclass(frozen=True)
class Step:
    """An axis that came to dimension `dim` of the value `to`, from the value `source`, through `op` along `factor`."""
    to: str
    dim: int
    axis: str
    source: str
    op: str
    opcode: str
    line: int
    factor: str
    step: int
    level: int
    priority: int
    strategy: str
    place: str | None = None

    def __str__(self):
        where = f"line {self.line}" if self.place is None else self.place
        return (f"step {self.step}: {self.to}:{self.dim} got {self.axis!r} from {self.source} through {self.opcode} ({where}), factor "
                f"{self.factor}, among {LEVELS[self.level]}" + (f", priority {self.priority}" if self.priority else ""))


@dataclasses.dataclass(frozen=True)
class Conflict:
    """An axis that could not go on along a factor of `op`: in `value` the axis `against` is in its way, for `reason`."""
    op: str
    opcode: str
    line: int
    factor: str
    axis: str
    against: str
    value: str
    reason: str
    level: int
    priority: int
    place: str | None = None

    def __str__(self):
        where = f"line {self.line}" if self.place is None else self.place
        other = "" if self.against == self.axis else f" ({self.against!r})"
        return f"{self.axis!r} did not go on along factor {self.factor} of {self.opcode} ({where}): in {self.value} {self.reason}{other}"


@dataclasses.dataclass(frozen=True)
class Reshard:
    """An op that moves or adds up data between devices: at least `bytes` are sent by each."""
    name: str
    opcode: str
    line: int
    of: str
    bytes: int
    source: str | None
    before: str | None
    after: str | None

    def __str__(self):
        where = self.source or f"line {self.line}"
        return f"{self.opcode} {self.name} after {self.of} ({where}): {self.bytes} bytes, {self.before} -> {self.after}"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Where the axes of a value's dimension come from: the steps, the last one first, down to what was written down."""
    value: str
    dim: int
    sharding: str | None
    steps: tuple
    origins: tuple
    conflicts: tuple

    def __str__(self):
        lines = [f"{self.value}:{self.dim} of {self.sharding}"]
        lines += [f"  {s}" for s in self.steps]
        lines += [f"  {axis!r} was written down on {origin}" for axis, origin in self.origins]
        lines += [f"  lost: {c}" for c in self.conflicts]
        if len(lines) == 1:
            lines.append("  nothing came here, and nothing was kept away")
        return "\n".join(lines)


class Trace:
    """What a propagation did. `module` is the program right after it, before Shardy's export passes; names of values are those of
    its text. `steps` and `conflicts` are lists in the order in which they happened."""

    def __init__(self, module, text, before, program):
        self.module, self._before, self._program = module, before, program
        data = json.loads(text)
        self.values = data["values"]
        self._names = {v["name"]: i for i, v in enumerate(self.values)}
        name = self._name
        self.steps = [Step(name(s["to"]), s["dim"], s["axis"], name(s["from"]), name(s["op"]), s["opcode"], s["line"], s["factor"], s["step"],
                           s["level"], s["priority"], s["strategy"], s.get("source")) for s in data["steps"]]
        self.conflicts = [Conflict(name(c["op"]), c["opcode"], c["line"], c["factor"], c["axis"], c["against"], name(c["value"]), c["reason"],
                                   c["level"], c["priority"], c.get("source")) for c in data["conflicts"]]
        self._origins = {}
        for o in data["origins"]:
            self._origins.setdefault(name(o["value"]), []).append((o["axis"], o["origin"]))
        self._program_values = None

    def _name(self, place):
        return "the function's result" if place is None else self.values[place]["name"]

    def find(self, value):
        """The name in `module` of a value: by that name itself, by its name in the text of the propagated program, or by the line
        that defines it ("line 12")."""
        words = value.split()
        if len(words) == 2 and words[0] == "line" and words[1].isdigit():
            line = int(words[1])
            found = [v["name"] for v in self.values if v["line"] == line and v["opcode"] != "sdy.data_flow_edge"]
            if found:
                return found[0]
            raise Error(f"no value is defined in line {line}", 503, hint="a line of the program as it was read")
        if self._program_values is None:
            rows = json.loads(self._program._reshards())["values"]
            self._program_values = {v["name"]: (v["opcode"], v["line"], v["col"], v["index"]) for v in rows}
        key = self._program_values.get(value)
        for v in self.values:
            if key and (v["opcode"], v["line"], v["col"], v["index"]) == key:
                return v["name"]
        if value in self._names:
            return value
        raise Error(f"the program has no value {value!r}", 503, hint='values are called "%3" or "%arg0" as in the text of the module, or "line 12"')

    def explain(self, value, dim):
        """Why dimension `dim` of a value (see `find`) is sharded as it is. Raises Error where there is no such value or dimension."""
        name = self.find(value)
        row = self.values[self._names[name]]
        steps, origins, seen, queue = [], [], set(), [(name, dim, None)]
        while queue:
            here, d, axis = queue.pop(0)
            mine = [s for s in self.steps if s.to == here and (axis is None or s.axis == axis) and (axis is not None or s.dim == d)]
            if axis is not None and not mine:
                origins += [o for o in self._origins.get(here, []) if o[0] == axis]
            for s in mine:
                if s in seen:
                    continue
                seen.add(s)
                steps.append(s)
                queue.append((s.source, None, s.axis))
        if not steps:
            origins = self._origins.get(name, [])
        makers = {s.op for s in steps} | {name}
        lost = tuple(c for c in self.conflicts if c.value == name or c.op in makers)
        return Explanation(name, dim, row["sharding"], tuple(steps), tuple(dict.fromkeys(origins)), lost)

    @property
    def reshards(self):
        """Every collective that the shardings imply, each with bytes and the line it comes from: a list of Reshard."""
        rows = json.loads(self._program.run(COLLECTIVES)._reshards())["reshards"]
        return [Reshard(r["name"], r["opcode"], r["line"], r["of"], r["bytes"], r["source"], r["from"], r["to"]) for r in rows]

    def what_if(self, constraint):
        """The reshards as they are and as they would be: (gone, new), two lists of Reshard. `constraint` is a function that takes a
        copy of the text of the program before propagation and gives back the text with another annotation."""
        from . import parse

        other = propagate(parse(constraint(self._before.to_text())))
        mine, theirs = self.reshards, other.trace.reshards
        key = lambda r: (r.opcode, r.of, r.bytes, r.before, r.after)  # noqa: E731
        return _less(mine, theirs, key), _less(theirs, mine, key)


def _less(some, others, key):
    left, kept = [key(r) for r in others], []
    for r in some:
        if key(r) in left:
            left.remove(key(r))
        else:
            kept.append(r)
    return kept


@dataclasses.dataclass(frozen=True)
class Propagation:
    """`module` is the program with its shardings, as Shardy's sdy-propagation-pipeline gives it; `trace` says why."""
    module: object
    trace: Trace


def propagate(module):
    """Propagates the shardings of a StableHLO module through it, as Shardy's sdy-propagation-pipeline does, on a copy. Returns a
    Propagation. Raises Error where shardings can't be propagated. Thread-safe on distinct modules."""
    traced = module.run(BEFORE)
    text = traced._explain_sharding()
    program = traced.run(AFTER)
    return Propagation(program, Trace(traced, text, module, program))
