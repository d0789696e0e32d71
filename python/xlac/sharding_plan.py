"""Which mesh, and which shardings of a program's arguments: found by annotating one after the other and simulating what Shardy's propagation
makes of it.

A greedy search with one annotation as the move, as in the tactics of PartIR (Alabed et al., PartIR, ASPLOS 2025): of all moves the one is taken with
which the simulated step is quickest, memory beyond the limit counting as time; then the next, until none helps. Moves that gained little before are
looked at last (lazy greedy: Minoux, Accelerated greedy algorithms, 1978). All of it is deterministic."""
import dataclasses
import itertools
import math
import re

from .codes import Code
from .errors import ArgumentError, Error
from .hardware import hardware as hardware_of
from .introduce import written_name
from .mesh import Axis, Dim, Mesh
from .propagation import imported
from .report import html_table, preformatted, seconds_text, short, table
from .shard_values import listed, meshes as meshes_of
from .simulation import on_mesh, rehearse

UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
NAMES = ("data", "model")
MOST_MESHES, BEYOND = 12, 20.0  # memory beyond the limit, as a share of it, counts so much as the step itself
LEAST_GAIN, HOPE = 1e-3, 4.0


@dataclasses.dataclass(frozen=True)
class Move:
    """`axis` on dimension `dim` of the arguments of `group`: the step took `before` seconds without and `after` with it, a device `peak_bytes`."""
    group: str
    arguments: tuple
    dim: int
    axis: str
    before: float
    after: float
    peak_bytes: int

    def __str__(self):
        many = f" ({len(self.arguments)} arguments)" if len(self.arguments) > 1 else ""
        return (f"{self.axis!r} on dimension {self.dim} of {self.group}{many}: {seconds_text(self.before)} -> {seconds_text(self.after)}, "
                f"{short(self.peak_bytes)}B a device")


@dataclasses.dataclass(frozen=True)
class Alternative:
    """What the search came to on one mesh."""
    mesh: Mesh
    seconds: float
    peak_bytes: int
    fits: bool
    moves: tuple
    simulation: object

    def __str__(self):
        axes = " x ".join(f"{name}={size}" for name, size in self.mesh.axes)
        much = "" if self.fits else ", too much"
        return f"{axes}: {seconds_text(self.seconds)}, {short(self.peak_bytes)}B a device{much}, {len(self.moves)} annotations"


class Argument:
    """One of the main function: its name in the module's text, its path in the framework, its shape."""

    def __init__(self, name, path, shape, dtype, bytes):
        self.name, self.path, self.shape, self.dtype, self.bytes = name, path, shape, dtype, bytes


def argument_of(row, path):
    shape = tuple(row.get("shape") or ())
    return Argument(row["name"], path, shape, row["type"], math.prod(shape) * (row.get("itemsize") or 0))


class Plan:
    """What `plan` found: `mesh`, `specs` (by path of the argument, PartitionSpecs as text), `annotations` (Sharding by the argument's name in the
    module), the annotated `module`, its `simulation`, and why: `moves`, each with what it gained, and `alternatives`, the other meshes with what they
    cost. `code` can be pasted into a JAX program. `as_it_is`: the Simulation of the program's own annotations on its own mesh, where that has as many
    devices."""

    HEAD = ("mesh", "a step", "a device", "", "annotations")

    def __init__(self, best, alternatives, arguments, specs, module, simulation, as_it_is, memory, evaluations):
        self.mesh, self.moves, self.alternatives = best.mesh, best.moves, tuple(alternatives)
        self.arguments, self._specs, self.module, self.simulation = arguments, specs, module, simulation
        self.as_it_is, self.memory_limit, self.evaluations = as_it_is, memory, evaluations

    @property
    def specs(self):
        return {a.path: spec_text(dims) for a, dims in zip(self.arguments, self._specs)}

    @property
    def annotations(self):
        from .mesh import Sharding

        return {a.name: Sharding(self.mesh, [tuple(axes) for axes in dims]) for a, dims in zip(self.arguments, self._specs) if dims is not None}

    @property
    def code(self):
        names, sizes = zip(*self.mesh.axes)
        lines = ["from jax.sharding import NamedSharding, PartitionSpec as P", "",
                 f"mesh = jax.make_mesh({sizes}, {names})", "specs = {"]
        lines += [f"    {path!r}: {spec}," for path, spec in self.specs.items()]
        lines += ["}", "", "",
                  "def shardings(**arguments):",
                  '    """For in_shardings: of the function\'s arguments by name, in their order."""',
                  "    cut = lambda name: lambda path, _: NamedSharding(mesh, specs[name + jax.tree_util.keystr(path)])",
                  "    return tuple(jax.tree_util.tree_map_with_path(cut(name), tree) for name, tree in arguments.items())"]
        return "\n".join(lines) + "\n"

    def rows(self):
        return [(" x ".join(f"{name}={size}" for name, size in a.mesh.axes), seconds_text(a.seconds), f"{short(a.peak_bytes)}B",
                 "" if a.fits else "too much", str(len(a.moves))) for a in self.alternatives]

    def summary(self):
        first = self.simulation.summary()
        lines = [*first, f"found with {self.evaluations} simulations; at most {short(self.memory_limit)}B a device"]
        if self.as_it_is is not None:
            lines.append(f"the program's own annotations: {seconds_text(self.as_it_is.seconds)} a step, {short(self.as_it_is.peak_bytes)}B a device")
        lines += [f"  {move}" for move in self.moves]
        return lines

    def __str__(self):
        specs = table(("argument", "shape", "PartitionSpec"),
                      [(a.path, "x".join(map(str, a.shape)) or "scalar", spec_text(dims)) for a, dims in zip(self.arguments, self._specs)])
        return "\n".join([*self.summary(), specs, "other meshes:", table(self.HEAD, self.rows(), right=(1, 2, 4))])

    def __repr__(self):
        return f"<xlac.sharding.Plan: {self.mesh}, {seconds_text(self.simulation.seconds)} a step, {short(self.simulation.peak_bytes)}B a device>"

    def _repr_html_(self):
        specs = html_table(("argument", "PartitionSpec"), list(self.specs.items()))
        return f"{preformatted(chr(10).join(self.summary()))}{specs}{html_table(self.HEAD, self.rows(), right=(1, 2, 4))}{self.simulation.svg()}"

    @property
    def data(self):
        """As `xlac shard --plan --json` prints it."""
        return {"mesh": dict(self.mesh.axes), "specs": self.specs, "simulation": self.simulation.data,
                "moves": [dataclasses.asdict(m) for m in self.moves],
                "alternatives": [{"mesh": dict(a.mesh.axes), "seconds": a.seconds, "peak_bytes": a.peak_bytes, "fits": a.fits,
                                  "moves": [str(m) for m in a.moves]} for a in self.alternatives],
                "as_it_is": self.as_it_is and {"seconds": self.as_it_is.seconds, "peak_bytes": self.as_it_is.peak_bytes}, "code": self.code,
                "evaluations": self.evaluations}


def spec_text(dims):
    """PartitionSpec of lists of axis names."""
    if dims is None:
        return "P()"
    said = ["None" if not axes else repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})" for axes in dims]
    while said and said[-1] == "None":
        said.pop()
    return f"P({', '.join(said)})"


def bytes_of(memory):
    """80e9, "80GB", "24 GiB"."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([\d.]+)\s*([A-Za-z]*)\s*", memory)
        try:
            return float(found[1]) * UNITS[found[2].upper()]
        except (TypeError, KeyError, ValueError):
            raise ArgumentError(f"memory: {memory!r} is not a number of bytes", Code.BAD_ARGUMENT, hint='such as 80e9, "80GB" or "16GiB"') from None
    if isinstance(memory, bool) or not isinstance(memory, (int, float)) or not 0 < memory < math.inf:
        raise ArgumentError(f"memory: {memory!r} is not a number of bytes above 0", Code.BAD_ARGUMENT, hint='such as 80e9, "80GB" or "16GiB"')
    return float(memory)


# --- the space ---

def factorings(n, k):
    """All ways to write n as k factors, in order."""
    if k == 1:
        return [(n,)]
    return [(d, *rest) for d in range(1, n + 1) if n % d == 0 for rest in factorings(n // d, k - 1)]


def meshes_for(devices, names, inner):
    """Meshes of so many devices, axes of size 1 included; most likely first: rightmost axes within `inner` devices, then the even ones."""
    shapes = factorings(devices, len(names))
    shapes.sort(key=lambda shape: (shape[-1] > inner, max(shape) / min(shape) if len(shape) > 1 else 0, shape))
    ones = [shape for shape in shapes if sorted(shape)[:-1] == [1] * (len(shape) - 1)]
    chosen = list(dict.fromkeys([*ones[:1], *shapes]))[:MOST_MESHES]
    return [Mesh(list(zip(names, shape))) for shape in chosen]


def starred(path):
    """Without the numbers of layers: params['layers'][3]['w'] and params['layers'][4]['w'] are alike."""
    return re.sub(r"\d+", "*", path)


def groups_of(arguments, rows):
    """{name: [arguments]} of those that are annotated together: of one path but for numbers and one shape, or, without paths, used alike."""
    users = {}
    for row in rows:
        for position, operand in enumerate(row["operands"]):
            users.setdefault(operand, []).append((row["opcode"], position, row["type"]))
    at = {row["name"]: i for i, row in enumerate(rows) if row["main"] and row["opcode"] == "argument"}
    found = {}
    for a in arguments:
        named = a.path != a.name
        key = (starred(a.path), a.shape) if named else (a.shape, a.dtype, tuple(sorted(users.get(at.get(a.name), ()))))
        found.setdefault(key, []).append(a)
    return {members[0].path if len(members) == 1 else starred(members[0].path) if members[0].path != members[0].name else
            f"{members[0].path} and {len(members) - 1} like it": members for members in found.values()}


def bare(module):
    """A copy without annotations of arguments and results."""
    module = module.clone()
    facts = listed(module)
    for row in facts["values"]:
        if row["main"] and row["opcode"] == "argument" and row["sharding"]:
            module._annotate(row["name"], "")
    for i, said in enumerate(facts["results"]):
        if said:
            module._annotate(f"result {i}", "")
    return module


# --- the search ---

class Search:
    """One plan's. `state`: {group: tuple of tuples of axes}, by dimension."""

    def __init__(self, module, hardware, memory, options, budget, progress):
        self.hardware, self.memory, self.options, self.budget, self.progress = hardware, memory, options, budget, progress
        self.module, self.evaluations, self.known, self.gains = module, 0, {}, {}
        facts = listed(module)
        rows = [row for row in facts["values"] if row["main"] and row["opcode"] == "argument"]
        probe = self.simulate(module, Mesh([(name, 1) for name in self.axes_of(module)]))
        paths = [written_name(op) for op in probe.local.entry.parameters]
        if len(paths) != len(rows) or len(set(paths)) != len(paths):
            paths = [row["name"] for row in rows]
        plain = re.compile(r"Arg_|arg\d|p\d|x\.\d")
        self.arguments = [argument_of(row, row["name"] if plain.match(path) else path) for row, path in zip(rows, paths)]
        self.groups = groups_of(self.arguments, facts["values"])
        self.order = sorted(self.groups, key=lambda g: (-sum(a.bytes for a in self.groups[g]), g))

    @staticmethod
    def axes_of(module):
        real = [m for m in meshes_of(module).values() if m.axes]
        return list(real[0].shape) if real else list(NAMES)

    def simulate(self, module, mesh, overlap=False):
        found, mesh = on_mesh(module, mesh)
        return rehearse(found, mesh, mesh.size, self.hardware, overlap, *self.options)

    def annotated(self, mesh, state, opened):
        module, _ = on_mesh(self.module, mesh)
        for group, dims in state.items():
            for a in self.groups[group]:
                module._annotate(a.name, self.text(dims, opened))
        return module

    def text(self, dims, opened):
        return f"#sdy.sharding<@{self.name}, [{', '.join(str(Dim(tuple(map(Axis, axes)), opened)) for axes in dims)}]>"

    @property
    def name(self):
        return next((name for name, m in meshes_of(self.module).items() if m.axes), "mesh")

    def evaluate(self, mesh, state):
        """(cost, Simulation), or None where the program can't have it, or the budget is spent."""
        key = mesh.axes, tuple(sorted(state.items()))
        if key not in self.known:
            if self.evaluations >= self.budget:
                return None
            self.evaluations += 1
            if self.progress is not None:
                self.progress(self.evaluations, self.budget)
            try:
                found = self.simulate(self.annotated(mesh, state, True), mesh)
            except Error as error:
                if error.code in (Code.OUT_OF_MEMORY, Code.INTERRUPTED):
                    raise
                found = None
            self.known[key] = found and (self.cost(found), found)
        return self.known[key]

    def cost(self, simulation):
        beyond = max(0.0, simulation.peak_bytes - self.memory) / self.memory
        return simulation.seconds * (1 + BEYOND * beyond) + beyond * 1e-6

    def screen(self, devices, names, most):
        """What each dimension gains that alone is cut a few times: {(group, dim): part of the cost}. A dimension that propagation cuts when another
        one is cut stands for the same, and is left out."""
        few = next(k for k in range(min(8, devices), 0, -1) if devices % k == 0)
        mesh = Mesh([(name, few if name == names[-1] else 1) for name in names])
        now, gains, same = self.evaluate(mesh, {}), {}, set()
        if now is None or few == 1:
            return {}
        members = {a.name: group for group, arguments in self.groups.items() for a in arguments}
        for group in self.order:
            for d, length in enumerate(self.groups[group][0].shape):
                if length % few or (group, d) in same or self.evaluations >= most:
                    continue
                tried = self.evaluate(mesh, self.with_move({}, (group, d, names[-1])))
                if tried is None:
                    continue
                gains[group, d] = (now[0] - tried[0]) / now[0]
                same |= {(members[a.name], at) for a, dims in zip(self.arguments, self.cut(tried[1])) for at, axes in enumerate(dims) if axes}
        return gains

    def moves(self, mesh, state):
        """(group, dim, axis) that divide."""
        sizes = mesh.shape
        for group, d in self.gains:
            shape = self.groups[group][0].shape
            dims = state.get(group, ((),) * len(shape))
            for axis, size in mesh.axes:
                if size > 1 and axis not in itertools.chain(*dims) and shape[d] % (size * math.prod(sizes[a] for a in dims[d])) == 0:
                    yield group, d, axis

    def with_move(self, state, move):
        group, d, axis = move
        dims = list(state.get(group, ((),) * len(self.groups[group][0].shape)))
        dims[d] = (*dims[d], axis)
        return {**state, group: tuple(dims)}

    def climbs(self, mesh, until):
        """The best state on a mesh, by as many simulations as `until` allows: (state, cost, Simulation, moves), or None. Once each axis is for the
        arguments that gain most by it; and once all axes are for different ones at first, as tensor parallelism beside data parallelism has it."""
        now = self.evaluate(mesh, {})
        if now is None:
            return None
        found = [self.climb(mesh, until, {}, now, (), False)]
        if sum(size > 1 for _, size in mesh.axes) > 1:
            state, _, simulation, taken = self.climb(mesh, until, {}, now, (), True)
            found.append(self.climb(mesh, until, state, (self.cost(simulation), simulation), taken, False))
        return min(found, key=lambda one: one[1])

    def climb(self, mesh, until, state, now, taken, apart):
        """From a state on, by moves; `apart`: that cut what is whole by an axis that nothing is cut by."""
        taken = list(taken)
        stale = {m: HOPE * self.gains[m[:2]] * now[0] for m in self.moves(mesh, state)}  # what a move may gain: as when it was last tried
        while self.evaluations < until:
            best = None
            for move in sorted(self.moves(mesh, state), key=lambda m: -stale.get(m, 0.0)):
                if apart and (move[0] in state or any(move[2] in itertools.chain(*dims) for dims in state.values())):
                    continue
                if best is not None and stale.get(move, 0.0) <= best[0] or self.evaluations >= until:
                    break
                tried = self.evaluate(mesh, self.with_move(state, move))
                stale[move] = now[0] - tried[0] if tried else -math.inf
                if tried and (best is None or stale[move] > best[0]):
                    best = stale[move], move, tried
            if best is None or best[0] <= LEAST_GAIN * now[0]:
                break
            group, d, axis = best[1]
            taken.append(Move(group, tuple(a.path for a in self.groups[group]), d, axis, now[1].seconds, best[2][1].seconds, best[2][1].peak_bytes))
            state, now = self.with_move(state, best[1]), best[2]
        return state, now[0], now[1], tuple(taken)

    def settle(self, mesh, state, specs):
        """(module, Simulation) with what is said to JAX: all arguments closed as propagation has cut them; or, where that needs more than there is,
        as the search had them."""
        module, _ = on_mesh(self.module, mesh)
        for a, dims in zip(self.arguments, specs):
            module._annotate(a.name, self.text(dims, False))
        for annotated, overlap in ((module, None), (module, False)):
            found = rehearse(annotated, mesh, mesh.size, self.hardware, overlap, *self.options)
            if found.peak_bytes <= self.memory:
                return annotated, found
        opened = self.annotated(mesh, state, True)
        return opened, rehearse(opened, mesh, mesh.size, self.hardware, False, *self.options)

    def cut(self, simulation):
        """What of the propagated shardings of arguments a PartitionSpec can say."""
        found = []
        for a, leaf in zip(self.arguments, simulation.arguments):
            inside = re.search(r">, \[(.*)\]", leaf["sharding"] or "")
            dims = re.findall(r"\{([^}]*)\}", inside[1]) if inside else []
            names = [tuple(re.findall(r'"([^"]+)"(?!:)', dim)) for dim in dims]
            found.append(tuple(names) if len(names) == len(a.shape) else ((),) * len(a.shape))
        return found


def plan(module, devices, memory=None, hardware="h100x8-ib", *, evaluations=400, donate=(), trips=None, progress=None):
    """Proposes a mesh of `devices` devices and shardings of the arguments with which a simulated step is quickest and a device needs no more than
    `memory` (bytes, "80GB"; None: what the hardware has). The program is what `parse` takes; annotations of its arguments and results are not looked
    at, axes of its mesh keep their names, and constraints inside stay. At most `evaluations` simulations; `progress(done, most)` is called before
    each, and may raise; so may Ctrl-C. `hardware`, `donate` and `trips` are those of `simulate`. Returns a Plan. Raises Error where no mesh has the
    memory, saying the least that would do, or where the program has no plan."""
    machine = hardware_of(hardware)
    limit = bytes_of(machine.memory_bytes if memory is None else memory)
    for what, value, most in (("devices", devices, 2**20), ("evaluations", evaluations, 10**6)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ArgumentError(f"{what}: {value!r}; expected a number from 1 to {most}", Code.BAD_ARGUMENT)
    given = imported(module)
    own = next((m for m in meshes_of(given).values() if m.axes), None)
    options = tuple(donate), dict(trips or {})
    search = Search(bare(given), machine, limit, options, evaluations, progress)
    names = search.axes_of(given)
    meshes = meshes_for(devices, names, machine.levels[0].size or devices)
    search.gains = search.screen(devices, names, evaluations // 2)
    found = []
    for i, mesh in enumerate(meshes):
        share = search.evaluations + max(1, (evaluations - search.evaluations) // (len(meshes) - i))
        result = search.climbs(mesh, share)
        if result is not None:
            found.append((mesh, *result))
    if not found:
        raise ArgumentError(f"no mesh of {devices} devices can have the program", Code.BAD_ARGUMENT, hint="more evaluations=, or other axes")
    found.sort(key=lambda row: row[2])
    alternatives = [Alternative(mesh, s.seconds, s.peak_bytes, s.peak_bytes <= limit, moves, s) for mesh, _, _, s, moves in found]
    mesh, state, _, simulation, _ = found[0]
    least = min(a.peak_bytes for a in alternatives)
    if simulation.peak_bytes > limit:
        raise ArgumentError(f"a device needs {short(least)}B at the least of what was tried on {devices} devices, and may have {short(limit)}B",
                            Code.BAD_ARGUMENT, hint=f"memory={math.ceil(least)}, more devices, or more evaluations= than {evaluations}")
    specs = search.cut(simulation)
    final, done = search.settle(mesh, state, specs)
    as_it_is = rehearse(given, own, own.size, machine, None, *options) if own is not None and own.size == devices else None
    return Plan(alternatives[0], alternatives, search.arguments, specs, final, done, as_it_is, limit, search.evaluations)
