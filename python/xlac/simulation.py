"""A step of a program on many devices, rehearsed: partitioned and planned, never run; how much memory each device needs, how long it takes."""
import dataclasses
import functools
import json
import math
import re

from . import _core
from .codes import Code
from .errors import ArgumentError
from .hardware import Hardware, hardware as hardware_of
from .links import Network
from .mesh import Mesh
from .report import Memory, html_table, preformatted, seconds_text, short, table
from .shard_values import meshes
from .simulated import Clock, Event
from .traces import places_of, written
from .trips import trips_of

SHOWN = 12  # ops in a text
__all__ = ["Blame", "Event", "Simulation", "simulate"]


@dataclasses.dataclass(frozen=True)
class Blame:
    """What an op costs a step: `seconds` of work or, of a collective, on the network; `exposed` is the part of a collective that the device
    waits for. `bound`: what it is limited by ("operations", "memory", "overhead", "network"); `why` and `help` say more."""
    op: str
    opcode: str
    source: str
    seconds: float
    exposed: float
    bound: str
    why: str
    help: str

    @property
    def weight(self):
        return self.exposed if self.bound == "network" else self.seconds

    def __str__(self):
        where = f" ({self.source})" if self.source else ""
        waited = f", {seconds_text(self.exposed)} of it waited for" if self.bound == "network" and self.exposed else ""
        return f"{self.op}{where}: {seconds_text(self.seconds)}{waited}, limited by {self.bound}" + (f"; {self.why}" if self.why else "")


class Simulation:
    """What `simulate` found. Times are seconds of one step of one device: `seconds` in all, `compute` of work, `collective` on the network, of which
    `exposed` is waited for. Bytes of one device: `peak_bytes` at most in all, of which `argument_bytes`, `result_bytes` (that take no argument's
    memory), `constant_bytes`, and at most `temporary_bytes` for everything in between; `memory` has these by op and step. `fits`: in the memory of
    the hardware. `blame` lists ops, what costs most first; `gathers` what every device computes whole, and why; `unknown_loops` loops that count once
    because nobody knows how many iterations they take. `local` is the program of one device: to be looked at, not to be run."""

    HEAD = ("op", "time", "waited for", "limited by", "from", "what would help")

    def __init__(self, module, mesh, devices, hardware, found, local, trips):
        self.module, self.mesh, self.devices, self.hardware, self.local = module, mesh, devices, hardware, local
        self.gathers, self.whole, self._moves = found["sharding"]["gathers"], found["sharding"]["whole"], found["sharding"]["moves"]
        self.arguments, self.results, self._collectives = found["sharding"]["arguments"], found["sharding"]["results"], found["collectives"]
        programs = found["plan"]["programs"]
        self.network = Network(hardware, devices, None if mesh is None or devices != mesh.size else mesh.device_ids)
        self.clock = Clock(programs, self._collectives, hardware, self.network, turns_of(local, trips))
        self.seconds, self.compute = self.clock.seconds, self.clock.compute
        self.collective, self.exposed = self.clock.collective, self.clock.exposed
        self.unknown_loops = tuple(dict.fromkeys(op for _, op in self.clock.unknown))
        given = {result for _, result in found["donations"]}
        self.argument_bytes = sum(leaf["bytes"] for leaf in self.arguments)
        self.result_bytes = sum(leaf["bytes"] for i, leaf in enumerate(self.results) if i not in given)
        self.constant_bytes = sum(b["bytes"] for b in programs[0]["buffers"] if b["place"] == "constant" and not b.get("lent"))
        self.temporary_bytes = programs[0]["peak_bytes"]
        places = functools.partial(getattr, self, "places")  # when they are asked for
        self.memory = Memory({"frame_bytes": programs[0]["frame_bytes"], "peak_bytes": self.temporary_bytes, "argument_bytes": self.argument_bytes,
                              "result_bytes": self.result_bytes, "constant_bytes": self.constant_bytes}, programs, places)

    @property
    def peak_bytes(self):
        return self.argument_bytes + self.result_bytes + self.constant_bytes + self.temporary_bytes

    @property
    def fits(self):
        return self.peak_bytes <= self.hardware.memory_bytes

    @property
    def overlapped(self):
        """Seconds of collectives that other work hides."""
        return max(0.0, self.collective - self.exposed) if self.collective > self.exposed * (1 + 1e-9) else 0.0

    @property
    def events(self):
        return self.clock.events

    @functools.cached_property
    def places(self):
        return places_of(self.local)

    @property
    def over_time(self):
        """[(seconds, bytes in use)] from step to step: arguments, results and constants are there all the time."""
        kept = self.argument_bytes + self.result_bytes + self.constant_bytes
        return [(t, kept + live) for t, live in zip(self.clock.step_times, self.memory.live)]

    def axes_of(self, collective):
        """Names of the axes that a collective's groups are along, as far as they are whole axes."""
        names, stride = {}, self.mesh.size if self.mesh else 1
        for name, size in self.mesh.axes if self.mesh else ():
            stride //= size
            names[size, stride] = name
        return ", ".join(names.get(tuple(part), f"a part of {part[0]}") for part in collective.get("axes", ()))

    @property
    def collectives(self):
        """What moves: [(op, kind, axes, members of a group, bytes before, seconds, algorithm)]."""
        rows = []
        for c in self._collectives:
            cost = self.network.cost(c)
            size = c.get("size") or (2 if "pairs" in c else self.devices)
            rows.append((c["op"], c["kind"], self.axes_of(c), size, c["bytes"], cost.seconds, cost.algorithm))
        return rows

    @functools.cached_property
    def blame(self):
        bounds = {(e.computation, e.op): e for e in reversed(self.clock.events)}
        rows = []
        for key, (work, moved, waited) in self.clock.blame.items():
            event = bounds.get(key)
            if event is None or work + moved <= 0:
                continue
            found = self.clock.collectives.get(key)
            level = self.clock.costs[key].level if found else None
            rows.append(Blame(key[1], event.opcode, written(self.places.get(key))[1], work + moved, waited, event.bound,
                              self._why(found, event), self._help(event, found, level, waited)))
        return sorted(rows, key=lambda row: (-row.weight, row.op))

    def _why(self, found, event):
        if found is None:
            return ""
        axes = self.axes_of(found)
        return f"{found['kind']}{f' along {axes}' if axes else ''}: {event.why}"

    def _help(self, event, found, level, waited):
        if found is None:
            return {"overhead": "so little work that starting it dominates: larger shards, fewer devices",
                    "memory": "narrower types, or what reads it fused",
                    "operations": "more devices, or a type that products are faster of"}[event.bound]
        if not waited:
            return "nothing: other work hides it"
        inner = self.network.levels[0]
        if level is not None and level is not inner:
            if (found.get("size") or self.devices) > inner.size:
                return f"its groups have more than {inner.size} devices: a smaller axis, or a sharding that sends less (trace.remedies, plan)"
            return f"its groups go beyond {inner.size} devices: an axis further to the right in the mesh lies within them"
        if level is not None and level.latency > found["bytes"] / level.bandwidth:
            return "latency dominates: one larger collective instead of several"
        return "another sharding (trace.remedies, plan), or work that does not need its result beside it"

    def to_perfetto(self, path=None):
        """The timeline as JSON for ui.perfetto.dev; written to `path` where one is given."""
        lanes = {"compute": 1, "network": 2}
        events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"one of {self.devices} devices"}}]
        events += [{"name": "thread_name", "ph": "M", "pid": 1, "tid": tid, "args": {"name": name}} for name, tid in lanes.items()]
        for e in self.events:
            name, source = written(self.places.get((e.computation, e.op)))
            said = {"op_name": name, "source": source, "limited by": e.bound, "how": e.why, "times": e.times}
            events.append({"name": e.op, "cat": e.kind, "ph": "X", "ts": round(e.begin * 1e6, 6), "dur": round(e.seconds * 1e6, 6), "pid": 1,
                           "tid": lanes[e.lane], "args": {key: value for key, value in said.items() if value not in ("", 1)}})
        events += [{"name": "memory", "ph": "C", "ts": round(t * 1e6, 6), "pid": 1, "args": {"bytes": live}} for t, live in self.over_time]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        if path is not None:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        return text

    def svg(self, width=900):
        """Work, collectives and waiting over time, and memory below: SVG that needs nothing else."""
        from .simulation_svg import draw

        return draw(self, width)

    @property
    def data(self):
        """The numbers, as `xlac shard --simulate --json` prints them."""
        return {"devices": self.devices, "mesh": dict(self.mesh.axes) if self.mesh else {}, "hardware": self.hardware.name, "seconds": self.seconds,
                "compute": self.compute, "collective": self.collective, "exposed": self.exposed, "overlapped": self.overlapped,
                "peak_bytes": self.peak_bytes, "argument_bytes": self.argument_bytes, "result_bytes": self.result_bytes,
                "constant_bytes": self.constant_bytes, "temporary_bytes": self.temporary_bytes, "memory_bytes": self.hardware.memory_bytes,
                "fits": self.fits, "whole": self.whole, "unknown_loops": list(self.unknown_loops), "gathers": self.gathers,
                "collectives": [dict(zip(("op", "kind", "axes", "size", "bytes", "seconds", "algorithm"), row)) for row in self.collectives],
                "blame": [dataclasses.asdict(row) for row in self.blame]}

    def __repr__(self):
        return f"<xlac.sharding.Simulation: {self.devices} devices, {seconds_text(self.seconds)} a step, {short(self.peak_bytes)}B a device>"

    def rows(self, limit=SHOWN):
        return [(b.op, seconds_text(b.seconds), seconds_text(b.exposed) if b.exposed else "", b.bound, b.source, b.help) for b in self.blame[:limit]]

    def summary(self):
        axes = " x ".join(f"{name}={size}" for name, size in self.mesh.axes) if self.mesh and self.mesh.axes else "no mesh"
        room = f"{100 * self.peak_bytes / self.hardware.memory_bytes:.3g}% of its memory" if self.fits else \
            f"MORE than its memory of {short(self.hardware.memory_bytes)}B"
        lines = [f"{self.devices} devices ({axes}) of {self.hardware.name}: {seconds_text(self.seconds)} a step",
                 f"compute {seconds_text(self.compute)}; collectives {seconds_text(self.collective)}: {seconds_text(self.exposed)} waited for, "
                 f"{seconds_text(self.overlapped)} beside other work",
                 f"memory of a device {short(self.peak_bytes)}B, {room}: arguments {short(self.argument_bytes)}B, "
                 f"results {short(self.result_bytes)}B, temporaries {short(self.temporary_bytes)}B"]
        if self.whole:
            lines.append(f"the program runs whole on every device: {self.whole}")
        lines += [f"every device computes {g['op']} whole ({g['source'] or 'line ' + str(g['line'])}): {g['why']}; {g['remedy']}"
                  for g in self.gathers[:SHOWN]]
        if self.unknown_loops:
            lines.append(f"loops counted once, since nobody knows how many iterations they take (trips= says it): {', '.join(self.unknown_loops)}")
        return lines

    def __str__(self):
        return "\n".join([*self.summary(), table(self.HEAD, self.rows(), right=(1, 2))])

    def _repr_html_(self):
        return f"{preformatted(chr(10).join(self.summary()))}{self.svg()}{html_table(self.HEAD, self.rows(), right=(1, 2))}"


def turns_of(module, told):
    """{(computation, op): turns}, also of loops that the caller knows about, by name."""
    found = trips_of(module)
    names = {op for _, op in found}
    for name, turns in told.items():
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 0:
            raise ArgumentError(f"trips: {name!r} is to turn {turns!r} times; expected a number of turns", Code.BAD_ARGUMENT)
        if name not in names:
            raise ArgumentError(f"trips: the program has no loop {name!r}", Code.BAD_ARGUMENT,
                                hint=f"its loops are {', '.join(sorted(names)) or 'none'}")
    return {(computation, op): told.get(op, turns) for (computation, op), turns in found.items()}


# --- the program and its mesh ---

def mesh_of(what):
    """A Mesh, or one from what stands for it: {"data": 64}, [("data", 64)], its text."""
    try:
        return what if isinstance(what, Mesh) else Mesh.parse(what) if isinstance(what, str) else Mesh(what)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what!r} is not a mesh: {error}", Code.BAD_ARGUMENT, hint='such as {"data": 64, "model": 8}') from None


def on_mesh(module, mesh):
    """(the module on a mesh of these sizes, its Mesh): None as it is. Axes keep their names."""
    real = {name: m for name, m in meshes(module).items() if m.axes}
    if mesh is None:
        return module, next(iter(real.values()), None)
    mesh, module = mesh_of(mesh), module.clone()
    for name, old in real.items():
        if sorted(old.shape) != sorted(mesh.shape):
            raise ArgumentError(f"the program's mesh @{name} has the axes {', '.join(old.shape)}, the one given {', '.join(mesh.shape)}",
                                Code.BAD_ARGUMENT, hint="sizes and order may differ; other axes need other annotations (xlac.sharding.plan)")
        module._annotate(f"@{name}", f"#sdy.{mesh}")
    if not real:
        module._annotate("@mesh", f"#sdy.{mesh}")
    return module, mesh


def replicas_of(module):
    """How many replicas a program is for."""
    found = re.search(r"mhlo\.num_replicas = (\d+)", module.to_text()[:4096])
    return int(found[1]) if found else 1


def rehearse(module, mesh, devices, hardware, overlap, donate, trips):
    """A Simulation of an imported module whose mesh is settled."""
    if overlap is None and hardware.overlaps:
        ways = [rehearse(module, mesh, devices, hardware, way, donate, trips) for way in (False, True)]
        return min(ways, key=lambda way: way.seconds)
    passes = None
    if overlap:
        rates = {"gigaflops": hardware.matrix_flops("bf16") / 1e9, "memory-gigabytes": hardware.memory_bandwidth / 1e9,
                 "link-gigabytes": hardware.levels[0 if devices <= (hardware.levels[0].size or devices) else -1].bandwidth / 1e9}
        words = " ".join(f"{key}={max(1, min(10**9, math.floor(value)))}" for key, value in rates.items())
        passes = f"async-collective-creator,latency-hiding-scheduler{{memory-percent=110 {words}}}"
    local, text = _core._rehearse(module, devices, passes, list(donate))
    return Simulation(module, mesh, devices, hardware, json.loads(text), local, trips)


def simulate(module, mesh=None, hardware: "str | dict | Hardware" = "h100x8-ib", *, overlap=None, donate=(), trips=None):
    """Rehearses a step of a program on a mesh, up to a million devices: partitions it by its shardings and plans it as `xlac.compile(devices=...)`
    does, without running it. The program is what `parse` takes, with shardings. `mesh` gives the axes of its mesh other sizes, such as
    {"data": 256, "model": 2}; None: as it is. `hardware` is the name of one in `xlac.sharding.hardware_table`, or a dict
    (`xlac.sharding.hardware`). `overlap`: whether collectives are started early and go on beside other work, where the hardware can do that
    (None: the quicker of both). `donate`: arguments whose memory is donated. `trips`: {name of a loop: turns} of loops that don't say it.
    Returns a Simulation. Raises Error where the program has no plan, or the mesh or the hardware is none."""
    from .propagation import imported

    machine = hardware_of(hardware)
    module, mesh = on_mesh(imported(module), mesh)
    devices = (mesh.size if mesh else 1) * replicas_of(module)
    return rehearse(module, mesh, devices, machine, overlap, donate, trips or {})
