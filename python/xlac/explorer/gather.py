"""What the explorer's page shows, as JSON: columns of numbers, with tables of the strings."""
import re

from .. import _core
from ..errors import Error
from ..introduce import written_name
from . import stages

SCOPE = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
FILE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"')
LINE = re.compile(r"source_line=(\d+)")


class Table:
    """Strings, each once, by number."""

    def __init__(self):
        self.rows, self.numbers = [], {}

    def __call__(self, text):
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.rows)
            self.rows.append(text)
        return number


class Scopes:
    """The tree of name scopes: number 0 is the root."""

    def __init__(self):
        self.names, self.parents, self.known = [""], [-1], {(): 0}

    def __call__(self, path):
        """The number of a tuple of names."""
        number = self.known.get(path)
        if number is None:
            parent = self(path[:-1])
            number = self.known[path] = len(self.names)
            self.names.append(path[-1])
            self.parents.append(parent)
        return number


def scope_path(op_name):
    """The scopes of "jit(step)/layer/dot": those but the last. Slashes in brackets are part of a name."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(op_name):
        depth += (c in "([{") - (c in ")]}")
        if c == "/" and depth <= 0:
            parts.append(op_name[start:i])
            start = i + 1
    return tuple(parts)


COLUMNS = ("name", "opcode", "type", "comp", "scope", "file", "line", "text", "bytes")


class Ops:
    """The ops of a module as columns."""

    def __init__(self):
        self.columns = {name: [] for name in COLUMNS}
        self.strings = {name: Table() for name in ("opcode", "type", "file", "sharding")}
        self.scopes, self.paths, self.labels = Scopes(), {}, {}
        self.operands, self.called, self.shardings, self.comps, self.roots = [], {}, {}, [], []

    def scope(self, metadata, otherwise):
        """The number of an op's scope; `otherwise` are the names of that of an op that says nothing."""
        found = SCOPE.search(metadata) if metadata else None
        name = found[1] if found else ""
        number = self.paths.get(name) if "/" in name else None
        if number is None:
            path = scope_path(name)
            number = self.scopes(path or otherwise)
            if path:
                self.paths[name] = number
        return number

    def add(self, row):
        for name, column in self.columns.items():
            column.append(row[name])

    def json(self):
        return {"ops": self.columns, "operands": self.operands, "called": self.called, "sharding": self.shardings, "comps": self.comps,
                "labels": self.labels,
                "roots": self.roots, "scopes": {"name": self.scopes.names, "parent": self.scopes.parents},
                "strings": {name: table.rows for name, table in self.strings.items()}}


ELEMENT = re.compile(r"([a-z]\w*)\[([\d,<=?]*)\]")


def bytes_of(type, bits, known):
    """Bytes of all arrays of a type; sizes that are known only at run time count at their bound."""
    size = known.get(type)
    if size is None:
        size = 0
        for dtype, dims in ELEMENT.findall(type):
            count = 1
            for d in re.findall(r"\d+", dims):
                count *= int(d)
            size += (count * bits.get(dtype, 0) + 7) // 8
        known[type] = size
    return size


def line_numbers(text):
    """{(computation, op): line} of a module's HLO text, from 0."""
    found, computation = {}, ""
    for number, line in enumerate(text.split("\n")):
        m = re.match(r"\s+(?:ROOT )?%?([^\s=]+) = ", line)
        if m:
            found[computation, m[1]] = number
        elif m := re.match(r"(?:ENTRY )?%?([^\s(]+) \(", line):
            computation = m[1]
    return found


class Numbers(dict):
    """{(computation, op): its number}."""

    def __init__(self, ops):
        comps = ops.comps
        super().__init__(((comps[c], name), i) for i, (name, c) in enumerate(zip(ops.columns["name"], ops.columns["comp"])))

    def all(self, computation, names):
        """The numbers of those that are there."""
        return [self[computation, name] for name in names if (computation, name) in self]


def of_module(module, text):
    """Ops, from a module in HLO form and its text."""
    ops, lines = Ops(), line_numbers(text)
    bits, known = {row["name"]: row["bits"] for row in _core.dtype_table()}, {}
    for computation in module.computations:
        ops.comps.append(computation.name)
        add_computation(ops, computation, lines, bits, known, module.entry)
    return ops


def without_scope(computation, op, entry):
    """Where ops stand that have no scope: parameters together, what is inside reducers and the like by its computation, and the rest."""
    if computation != entry:
        return ("in called computations", computation.name)
    return ("parameters",) if op.opcode == "parameter" else ("(no scope)",)


def add_computation(ops, computation, lines, bits, known, entry):
    comp, first = len(ops.comps) - 1, len(ops.columns["name"])
    instructions = computation.instructions
    here = {op: first + k for k, op in enumerate(instructions)}
    ops.roots.append(here.get(computation.root, -1))
    for op in instructions:
        metadata, type, sharding = op.metadata or "", op.bare_type, op.sharding
        file, line = FILE.search(metadata), LINE.search(metadata)
        number = len(ops.columns["name"])
        if op.opcode == "parameter" and computation == entry:
            ops.labels[number] = written_name(op)
        ops.add({"name": op.name, "opcode": ops.strings["opcode"](op.opcode), "type": ops.strings["type"](type), "comp": comp,
                 "scope": ops.scope(metadata, without_scope(computation, op, entry)), "file": ops.strings["file"](file[1] if file else ""),
                 "line": int(line[1]) if line else 0,
                 "text": lines.get((computation.name, op.name), -1), "bytes": bytes_of(type, bits, known)})
        ops.operands.append([here[o] for o in op.operands])
        if called := [c.name for c in op.called]:
            ops.called[number] = called
        if sharding:
            ops.shardings[number] = ops.strings["sharding"](sharding)


def costs(executable, numbers):
    """{op's number: [flops, transcendentals, read, written]}"""
    found = {}
    for row in executable.cost.by_op:
        number = numbers.get((row["computation"], row["op"]))
        if number is not None and (row["flops"] or row["transcendentals"] or row["bytes_read"] or row["bytes_written"]):
            found[number] = [row["flops"], row["transcendentals"], row["bytes_read"], row["bytes_written"]]
    return found


def steps_of(executable, numbers):
    """Steps of the entry: [op, by, the ops in it]; and which step an op of any program is in."""
    from ..report import programs_of

    programs, inside, steps = programs_of(executable), {}, []
    for p, program in enumerate(programs):
        for s, step in enumerate(program["steps"]):
            names = [op["name"] for op in step.get("ops") or [{"name": step["op"]}]]
            members = numbers.all(program["name"], names)
            for number in members:
                inside[number] = [p, s]
            if p == 0:
                steps.append([numbers.get((program["name"], step["op"]), -1), step["op"], step["by"], members])
    return steps, inside, [program["name"] for program in programs]


def memory_of(executable):
    """Bytes in use by step, and the buffers of the entry: [place, bytes, first, last, op, type]."""
    memory = executable.memory
    rows = [[b["place"], b["bytes"], b.get("first", -1), b.get("last", -1), b.get("op", ""), b.get("type", "scratch"), b.get("offset", -1)]
            for b in memory.all_buffers]
    return {"live": memory.live, "peak": memory.peak_step if memory.live else -1, "buffers": rows, "steps": memory.steps, "sizes": dict(memory)}


def profile_of(profile, numbers):
    """Seconds by op: what ran as one is shared out by nothing but the step's own op, and shown as that."""
    rows = []
    for row in profile.steps:
        rows.append([row["op"], row["by"], row["computation"], row["times"], row["seconds"], row["min_seconds"],
                     numbers.all(row["computation"], row["ops"]), row["flops"], row["bytes"], row["nested"]])
    return {"rows": rows, "seconds": profile.seconds, "least": profile.min_seconds, "calls": len(profile.all_seconds),
            "events": events_of(profile, numbers)}


MOST_EVENTS = 5000


def events_of(profile, numbers):
    """What ran when: [label, op's number or -1, depth, start, seconds] of the first events of one call."""
    return [[op, numbers.get((computation, op.partition(" ")[0]), -1), depth, start, seconds]
            for op, _, computation, depth, start, seconds in profile.events[:MOST_EVENTS]]


def kernels_of(module, how):
    """[[where, text with the machine code]]"""
    from .. import compile_stage

    text = compile_stage(module, "assembly", **how) or compile_stage(module, "kernels", **how)
    parts = re.split(r"(?m)^// (?=.*, step \d+)", text)
    return [[part.split("\n", 1)[0], part.partition("\n")[2].strip("\n")] for part in parts if part.strip()]


def ports(executable):
    return [[list(map(str_or_none, p)) for p in side] for side in (executable.inputs, executable.outputs)]


def str_or_none(x):
    return x if x is None or isinstance(x, (bool, int)) else str(x)


def sharding_of(module):
    """Of a StableHLO program with shardings: how its parameters are cut, the collectives that follow, and what of it is probably a mistake."""
    if not stages.is_sharded(module):
        return None
    from ..propagation import propagate

    try:
        trace = propagate(module).trace
        return {"reshards": [str(r) for r in trace.reshards], "bytes": [r.bytes for r in trace.reshards],
                "suspicions": [str(s) for s in trace.suspicions], "parameters": [cut(trace, i) for i in range(len(module.entry.parameters))]}
    except Error as error:
        return {"reshards": [], "bytes": [], "suspicions": [f"the shardings can't be propagated: {error}"], "parameters": []}


def cut(trace, i):
    """The dimensions of a parameter's sharding, such as [{"data"}, {}], with the name of its mesh; None where it has none."""
    sharding = trace.values[trace._place(f"%arg{i}")]["sharding"]
    return sharding and re.sub(r"^#sdy\.sharding<(.*)>$", r"\1", sharding)


MOST_DEVICES = 64  # contexts of this process that a page opens; programs for more are shown without what a device runs


def target_of(module, device):
    """What `compile` is told to compile for: the devices of a program's shardings, where they are of this process, else the one named."""
    from ..commands_passes import devices_of

    devices = devices_of(module) if device == "cpu" and stages.is_sharded(module) else 1
    return {"devices": devices} if 1 < devices <= MOST_DEVICES else {"device": device}


def compiled(program, device):
    """(the module as given or None, executable, what it is called by, what it was compiled for): what there is to show. Programs that can't be
    compiled are shown alone."""
    from .. import _taken, compile
    from ..called import TreeExecutable

    if isinstance(program, TreeExecutable):
        return None, program.executable, program, {"device": device}
    if isinstance(program, _core.Executable):
        return None, program, program, {"device": device}
    module, calling = _taken(program)
    how = target_of(module, device)
    try:
        executable = compile(module, **how)
    except Error as error:
        return module, None, error, how
    return module, executable, TreeExecutable(executable, calling) if calling else executable, how


def shown_of(given, executable, how):
    """(the module whose ops are shown, whether it is one device's part): what runs, else what one of several devices would run, else what HLO would
    make of the program, else the program."""
    if executable is not None:
        local = executable._copy_local()
        return (executable.module, False) if local is None else (local, True)
    try:
        if stages.is_sharded(given):
            return given.run(stages.PARTITIONING).to_hlo(), True
    except Error:
        pass
    try:
        return given.to_hlo() if given.form == "mlir" else given, False
    except Error:
        return given, False


def of_program(program, arrays, profile, device, passes):
    """(parts, title) for page_of."""
    given, executable, called, how = compiled(program, device)
    shown, partitioned = shown_of(given, executable, how)
    text = shown.to_text(elide_large_constants=True)
    ops = of_module(shown, text)
    main = ops.json()
    main.update({"name": shown.name or shown.entry.name, "kind": "program", "why_not": str(called) if executable is None else None,
                 "partitioned": partitioned, "staged": given is not None})
    parts = {"main": main, "texts": stages.of(given, executable, text, how, passes)}
    if executable is not None:
        numbers = Numbers(ops)
        main["cost"] = costs(executable, numbers)
        main["steps"], main["inside"], main["programs"] = steps_of(executable, numbers)
        main["ports"], main["plan"] = ports(called), {**executable.steps, "device": executable.device, "numerics": executable.numerics}
        main["totals"] = dict(executable.cost)
        if arrays and profile is None:
            profile = called.profile(*arrays, repeat=5, warmup=2)
        main["profile"] = profile_of(profile, numbers) if profile is not None else None
        parts["memory"] = memory_of(executable)
        parts["kernels"] = kernels_of(given if given is not None else shown, how)
        parts["notes"] = {"donation": str(called.explain("donation")), "fusion": str(executable.explain("fusion")),
                          "devices": str(executable.explain("sharding")) if partitioned else None}
    sharding = sharding_of(given) if given is not None else None
    if sharding:
        parts["sharding"] = sharding
        for port, how_cut in zip(main.get("ports", [[]])[0], sharding.pop("parameters")):
            port[4] = how_cut
    return parts, f"{main['name']} - xlac explorer"


MOST_REASONS = 3000  # nodes in no cluster that are asked why; each answer walks the graph


def reasons_of(clusters, names):
    """[[why, the numbers of the nodes]] of the nodes in no cluster, the most frequent reason first."""
    found, outside = {}, [i for i, name in enumerate(names) if name not in clusters.assignment]
    for i in outside[:MOST_REASONS]:
        reason = clusters.why(names[i]).partition("): ")[2]
        found.setdefault(reason, []).append(i)
    return {"rows": sorted(([why, nodes] for why, nodes in found.items()), key=lambda row: -len(row[1])), "left": max(0, len(outside) - MOST_REASONS)}


def of_clusters(clusters):
    """A TensorFlow graph: nodes are ops, their names' parts scopes, and clusters stand where computations do. A node whose name is also that of a
    scope is in that scope; the graph's source and sink, which every node hangs on, are left out."""
    ops, comps, assignment = Ops(), Table(), clusters.assignment
    rows = list(enumerate(clusters._graph.nodes()))[2:]
    here = {number: i for i, (number, _) in enumerate(rows)}
    holders = {name.rpartition("/")[0] for _, (name, *_) in rows}
    comps("not clustered")
    for _, (name, opcode, *_) in rows:
        path = name if name in holders else name.rpartition("/")[0]
        ops.add({"name": name, "opcode": ops.strings["opcode"](opcode), "type": ops.strings["type"](""),
                 "comp": comps(assignment.get(name) or "not clustered"),
                 "scope": ops.scopes(tuple(path.split("/")) if path else ()), "file": ops.strings["file"](""), "line": 0, "text": -1, "bytes": 0})
        ops.operands.append([])
    for source, _, destination, _ in clusters.edges:
        if source in here and destination in here:
            ops.operands[here[destination]].append(here[source])
    ops.comps, ops.roots = comps.rows, [-1] * len(comps.rows)
    main = {**ops.json(), "name": "TensorFlow graph", "kind": "clusters", "why_not": None}
    return {"main": main, "texts": {"lines": [], "stages": []}, "reasons": reasons_of(clusters, ops.columns["name"])}, "clusters - xlac explorer"
