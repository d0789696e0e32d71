"""Propagation of shardings that can say why. `propagate` runs Shardy's pipeline; its trace answers questions about it."""
import dataclasses
import functools
import json
import re

from .codes import Code
from .errors import ArgumentError
from .mesh import Mesh, Sharding
from .remedies import Remedy, Trials
from .suspicions import Search, Suspicion

BEFORE = ("builtin.module(sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
          "sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-pre-order-funcs)")
AFTER = ("builtin.module(sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph,symbol-dce,"
         "sdy-insert-func-call-reshards,sdy-export-pipeline)")
COLLECTIVES = "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}),func.func(sdy-reshard-to-collectives))"
IMPORTS = {"xla.sdy.": "xla-sdy-round-trip-import-pipeline{lift-and-dedup-meshes=true}", "mhlo.sharding": "xla-sdy-stablehlo-import-pipeline"}
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
    col: int = 0

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
            raise ArgumentError(f"no value is defined in line {line}", Code.BAD_ARGUMENT, hint="a line of the program as it was read")
        if self._program_values is None:
            rows = json.loads(self._program._reshards())["values"]
            self._program_values = {v["name"]: (v["opcode"], v["line"], v["col"], v["index"]) for v in rows}
        key = self._program_values.get(value)
        for v in self.values:
            if key and (v["opcode"], v["line"], v["col"], v["index"]) == key:
                return v["name"]
        if value in self._names:
            return value
        raise ArgumentError(f"the program has no value {value!r}", Code.BAD_ARGUMENT, hint='values are called "%3" or "%arg0" as in the text of the module, or "line 12"')

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

    def sharding(self, value):
        """The Sharding of a value (see `find`) after propagation, or None."""
        text = self.values[self._names[self.find(value)]]["sharding"]
        mesh = re.match(r"#sdy\.sharding<@([\w$.]+)", text or "")
        return text and Sharding.parse(text, self.meshes.get(mesh[1]) if mesh else None)

    def shape(self, value):
        """The shape of a value (see `find`) as it is in the whole program, or None where it is no tensor of known shape."""
        from .sharding_svg import rows_of, shape_of

        name = self.find(value)
        kind = next((shape_of(kind) for _, here, _, _, kind in rows_of(self.module.to_text()) if here == name), None)
        return tuple(map(int, kind[0])) if kind and "?" not in kind[0] else None

    def picture(self, value):
        """Which devices have which part of a value, as text: a line for each tile."""
        sharding = self.sharding(value)
        if sharding is None:
            return "  every device has all of it"
        shape = self.shape(value)
        return "\n".join("  " + line for line in sharding.table(shape if shape and len(shape) == len(sharding.dims) else None).splitlines())

    @staticmethod
    def _listed(module):
        return json.loads(module._reshards())

    @functools.cached_property
    def partitioned(self):
        """The program with the collectives that its shardings imply, as ops of sdy: what `reshards` lists."""
        return self._program.run(COLLECTIVES)

    @functools.cached_property
    def _collectives(self):
        return self._listed(self.partitioned)

    @property
    def reshards(self):
        """Every collective that the shardings imply, each with bytes and the line it comes from: a list of Reshard."""
        return [Reshard(r["name"], r["opcode"], r["line"], r["of"], r["bytes"], r["source"], r["from"], r["to"], r["col"])
                for r in self._collectives["reshards"]]

    @functools.cached_property
    def meshes(self):
        """The program's meshes by name."""
        return meshes(self.module)

    @functools.cached_property
    def results(self):
        """What the main function's results were annotated with before propagation: a list of texts and None."""
        head = next((line for line in self._before.to_text().splitlines() if "func.func" in line and "@main(" in line), "")
        rest = head.split(" -> ", 1)[1] if " -> " in head else ""
        rows = re.findall(r"(?:tensor<[^>]*>|!\S+)(?: \{((?:[^{}]|\{[^{}]*\})*)\})?", rest.rsplit(" {", 1)[0])
        return [(re.search(r"#sdy\.sharding<(?:[^<>]|<[^<>]*>)*>", row) or [None])[0] for row in rows]

    def what_if(self, constraint):
        """The reshards as they are and as they would be: (gone, new), two lists of Reshard. `constraint` is a dictionary of
        annotations as `annotate` takes them, or a function that takes the text of the program before propagation and gives back
        the text with other annotations."""
        from . import parse

        other = parse(constraint(self._before.to_text())) if callable(constraint) else annotate(self._before, constraint)
        return compare(self.reshards, propagate(other).trace.reshards)

    @functools.cached_property
    def remedies(self):
        """Single annotations that make reshards vanish: a list of Remedy. Those that save bytes sent come first, before them those that
        do not make devices hold more of the arguments. Each was tried: the program was propagated again with it."""
        return Trials(self).run()

    @functools.cached_property
    def suspicions(self):
        """What of the shardings is seldom meant: uneven cuts, axes along which nothing is sharded, large arguments annotated to be whole,
        constraints at once overruled, data gathered only to be cut up again. A list of Suspicion."""
        return Search(self).run()

    def remedy(self, reshard):
        """The best annotation (see `remedies`) that makes this reshard vanish, or None where none that was tried does."""
        return next((r for r in self.remedies if any(_key(g) == _key(reshard) for g in r.gone)), None)


def _key(r):
    return r.opcode, r.line, r.of, r.bytes, r.before, r.after


def _less(some, others):
    left, kept = [_key(r) for r in others], []
    for r in some:
        if _key(r) in left:
            left.remove(_key(r))
        else:
            kept.append(r)
    return kept


def compare(mine, theirs):
    """(gone, new): what of the reshards is only in the first list, and only in the second."""
    return _less(mine, theirs), _less(theirs, mine)


def meshes(module):
    """A module's meshes: Mesh by name."""
    return {name: Mesh.parse(text) for name, text in re.findall(r"sdy\.mesh @([\w$.]+) = (<\[.*?\](?:, device_ids=\[.*?\])?>)", module.to_text())}


def shardings(module):
    """What a StableHLO module says of its values: Sharding by name, as in its text; "result 0" of the main function."""
    known, found = meshes(module), {}
    for v in json.loads(module._reshards())["values"]:
        if v["sharding"]:
            name = re.match(r"#sdy\.sharding<@([\w$.]+)", v["sharding"])
            found[v["name"]] = Sharding.parse(v["sharding"], known.get(name[1]) if name else None)
    return found


def annotate(module, annotations):
    """A copy of a StableHLO module with shardings written down: a dictionary of Sharding, or its text ("#sdy.sharding<@mesh, ...>"), or
    None for none, by the names of values in the module's text ("%arg0", "%3#1") or "result 0". Arguments and results get it
    themselves; of other values all readers get a constraint. Raises Error where a value can't have it."""
    copy = module.clone()
    for value, sharding in annotations.items():
        copy._annotate(value, "" if sharding is None else str(sharding))
    return copy


def imported(module):
    """The module in StableHLO with shardings of sdy: what JAX sends through HLO, or writes for GSPMD, is imported as XLA does."""
    from . import parse

    module = parse(module)
    if module.form == "hlo":
        module = module.to_stablehlo()
    text = module.to_text()
    if "#sdy." in text and "xla.sdy." not in text:
        return module
    return next((module.run(passes) for word, passes in IMPORTS.items() if word in text), module)


@dataclasses.dataclass(frozen=True)
class Propagation:
    """`module` is the program with its shardings, as Shardy's sdy-propagation-pipeline gives it; `trace` says why."""
    module: object
    trace: Trace

    def to_svg(self):
        """A picture of the program with every collective that the shardings imply: dimensions in the colours of the axes that shard
        them, what moves data between devices in red with its bytes. SVG that needs nothing else."""
        from .sharding_svg import module_picture

        return module_picture(self.trace.partitioned)

    def _repr_html_(self):
        return f'<div style="overflow:auto;max-height:85vh">{self.to_svg()}</div>'


def propagate(module):
    """Propagates the shardings of a module through it, as Shardy's sdy-propagation-pipeline does, on a copy. The module (or what `parse` takes) is StableHLO with
    shardings of sdy, or a program as JAX gives it to XLA in either mode, HLO too, which is imported first. Returns a Propagation.
    Raises Error where shardings can't be propagated. Thread-safe on distinct modules."""
    module = imported(module)
    traced = module.run(BEFORE)
    text = traced._explain_sharding()
    program = traced.run(AFTER)
    return Propagation(program, Trace(traced, text, module, program))
