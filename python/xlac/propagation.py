"""Propagation of shardings that can say why. `propagate` runs Shardy's pipeline; its trace answers questions about it."""
import dataclasses
import functools
import json

from .codes import Code
from .errors import ArgumentError
from .remedies import Trials
from .shard_values import Match, Values, listed, meshes, read_sharding
from .suspicions import Search

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
    """Where the axes of a value's dimension come from: the steps, the last one first, down to what was written down. `value` is its name
    in the propagated program, `opcode` and `line` are those of the op that makes it in the program as it was read."""
    value: str
    dim: int
    sharding: str | None
    steps: tuple
    origins: tuple
    conflicts: tuple
    opcode: str = ""
    line: int = 0

    def __str__(self):
        made = f" ({self.opcode}{f', line {self.line}' if self.line else ''})" if self.opcode else ""
        lines = [f"{self.value}:{self.dim}{made} of {self.sharding}"]
        lines += [f"  {s}" for s in self.steps]
        lines += [f"  {axis!r} was written down on {origin}" for axis, origin in self.origins]
        lines += [f"  lost: {c}" for c in self.conflicts]
        if len(lines) == 1:
            lines.append("  nothing came here, and nothing was kept away")
        return "\n".join(lines)

    def _repr_html_(self):
        from .report import preformatted

        return preformatted(str(self))


class Trace:
    """What a propagation did. `module` is the program right after it, before Shardy's export passes. `steps` and `conflicts` are lists in
    the order in which they happened. Names of values are those of the text of the propagated program (`Propagation.module`): "%3" in its
    main function, "@f/%3" in @f; where a value is only in `module`, it is called "%3 of trace.module"."""

    def __init__(self, module, text, before, program):
        self.module, self._before, self._program = module, before, program
        data = json.loads(text)
        self.values = data["values"]
        self._traced = Values(self.values, "trace.module")
        self._names, self._homes = self._named(), {v["slot"]: i for i, v in enumerate(self.values)}
        self._steps = [(s["to"], s["from"], s["op"], Step(self._name(s["to"]), s["dim"], s["axis"], self._name(s["from"]), self._name(s["op"]),
                        s["opcode"], s["line"], s["factor"], s["step"], s["level"], s["priority"], s["strategy"], s.get("source")))
                       for s in data["steps"]]
        self._conflicts = [(c["value"], c["op"], Conflict(self._name(c["op"]), c["opcode"], c["line"], c["factor"], c["axis"], c["against"],
                            self._name(c["value"]), c["reason"], c["level"], c["priority"], c.get("source"))) for c in data["conflicts"]]
        self.steps, self.conflicts = [s for *_, s in self._steps], [c for *_, c in self._conflicts]
        self._origins = {}
        for o in data["origins"]:
            self._origins.setdefault(o["value"], []).append((o["axis"], o["origin"]))

    def _named(self):
        """What each value is called. What a data flow edge holds is the sharding of the value it is after."""
        self._known = Values(listed(self._program)["values"], "the propagated program")
        self._match = Match(self.values, self._known.rows)
        names = []
        for i, v in enumerate(self.values):
            j = self._match.to_program.get(i)
            edge = v["opcode"] == "sdy.data_flow_edge" and v["operands"]
            names.append(names[v["operands"][0]] if edge else f"{self._traced.name(i)} of trace.module" if j is None else self._known.name(j))
        return names

    def _name(self, place):
        return "the function's result" if place is None else self._names[place]

    def __repr__(self):
        return (f"<xlac.sharding.Trace: {len(self._known.rows)} values, {len(self.steps)} steps, {len(self.conflicts)} conflicts, "
                f"meshes {', '.join(f'@{name}' for name in self.meshes) or 'none'}>")

    def _place(self, value):
        """The place in `values` of what `find` finds."""
        if value.endswith(" of trace.module"):
            return self._traced.find(value.removesuffix(" of trace.module"))
        words = value.split()
        if len(words) == 2 and words[0] == "line" and words[1].isdigit() and not self._known.of_line(int(words[1])):
            return self._traced.find(value)  # of what the program has no more
        j = self._known.find(value)
        if j not in self._match.to_traced:
            row = self._known.rows[j]
            raise ArgumentError(f"{value!r} was made after propagation: {row['opcode']} of line {row['line']}", Code.BAD_ARGUMENT,
                        hint="ask about its operand" + (f", {self._known.name(row['operands'][0])}" if row["operands"] else ""))
        return self._match.to_traced[j]

    def find(self, value):
        """The name of a value: by that name, by its name in the propagated program's main function or in the only function that has it,
        or by the line that defines it in the program as it was read ("line 12", and "line 12#1" for the second result). Raises Error where
        there is no such value or more than one."""
        return self._names[self._place(value)]

    def _home(self, place):
        return self._homes.get(self.values[place]["home"], place)

    def explain(self, value, dim):
        """Why dimension `dim` of a value (see `find`) is sharded as it is. Raises Error where there is no such value or dimension."""
        place = self._place(value)
        row, home = self.values[place], self._home(place)
        if not 0 <= dim < len(row.get("shape", ())):
            raise ArgumentError(f"{self._names[place]} has no dimension {dim}: it is {row['type']}", Code.BAD_ARGUMENT,
                                hint="dimensions are counted from 0")
        steps, origins, seen, queue = [], [], set(), [(home, dim, None)]
        while queue:
            here, d, axis = queue.pop(0)
            mine = [s for s in self._steps if s[0] == here and (s[3].dim == d if axis is None else s[3].axis == axis)]
            if axis is not None and not mine:
                origins += [o for o in self._origins.get(here, []) if o[0] == axis]
            for s in mine:
                if s not in seen:
                    seen.add(s)
                    steps.append(s)
                    queue.append((s[1], None, s[3].axis))
        if not steps:
            origins = self._origins.get(home, [])
        makers = {s[2] for s in steps} | {place, home}
        lost = tuple(c for value, op, c in self._conflicts if value == home or op in makers)
        return Explanation(self._names[place], dim, row["sharding"], tuple(s[3] for s in steps), tuple(dict.fromkeys(origins)), lost,
                           self._known.rows[self._match.to_program[place]]["opcode"] if place in self._match.to_program else row["opcode"],
                           row["line"])

    def sharding(self, value):
        """The Sharding of a value (see `find`) after propagation, or None."""
        return read_sharding(self.values[self._place(value)]["sharding"], self.meshes)

    def shape(self, value):
        """The shape of a value (see `find`) as it is in the whole program, or None where it is not a tensor of known shape."""
        shape = self.values[self._place(value)].get("shape")
        return None if shape is None or None in shape else tuple(shape)

    def picture(self, value):
        """Which devices have which part of a value, as text: a line for each tile."""
        sharding = self.sharding(value)
        if sharding is None:
            return "  every device has all of it"
        shape = self.shape(value)
        return "\n".join("  " + line for line in sharding.table(shape if shape and len(shape) == len(sharding.dims) else None).splitlines())

    @functools.cached_property
    def partitioned(self):
        """The program with the collectives that its shardings imply, as ops of sdy: what `reshards` lists."""
        return self._program.run(COLLECTIVES)

    @functools.cached_property
    def _collectives(self):
        return listed(self.partitioned)

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
        return listed(self._before)["results"]

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
        """What of the shardings is probably a mistake: uneven cuts, axes along which nothing is sharded, large arguments annotated to be whole,
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


def shardings(module):
    """What a StableHLO module says of its values: Sharding by name, as in its text ("@f/%3" in a function other than main)."""
    known, found = meshes(module), {}
    values = Values(listed(module)["values"], "the module")
    for i, v in enumerate(values.rows):
        if v["sharding"]:
            found[values.name(i)] = read_sharding(v["sharding"], known)
    return found


def annotate(module, annotations):
    """A copy of a StableHLO module with shardings written down: a dictionary of Sharding, or its text ("#sdy.sharding<@mesh, ...>"), or
    None for none, by the names of values in the module's text ("%arg0", "%3#1", "@f/%3" in a function other than main) or "result 0".
    Arguments and results get it themselves; of other values all readers get a constraint. Raises Error where a value can't have it."""
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
    """Propagates the shardings of a module through it, as Shardy's sdy-propagation-pipeline does, on a copy. The module (or what `parse` takes) is
    StableHLO with shardings of sdy, or a program as JAX gives it to XLA in either mode, HLO too, which is imported first. Returns a Propagation.
    Raises Error where shardings can't be propagated. Thread-safe on distinct modules."""
    module = imported(module)
    traced = module.run(BEFORE)
    text = traced._explain_sharding()
    program = traced.run(AFTER)
    return Propagation(program, Trace(traced, text, module, program))
