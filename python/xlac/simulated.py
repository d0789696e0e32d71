"""What one device of many does in a step, as a model has it: the steps of its plan one after the other, each as long as the roofline says
(Williams, Waterman and Patterson, Roofline, CACM 52, 2009), collectives beside them as far as the order of the program lets them."""

import collections
import math
import re

Event = collections.namedtuple("Event", "op opcode computation kind lane begin seconds times bound why")
Event.__doc__ = """What goes on from `begin` for `seconds`, `times` in all where it is in a loop (the first turn is shown). `kind`: "work",
"collective" or "wait"; `lane`: "compute" or "network"; `bound`: what it is limited by; `why`: its numbers."""

DTYPE = re.compile(r"^\(?(\w+)\[")
SIZE = re.compile(r"^\w+\[([\d,]*)\]")
PRODUCTS = ("dot", "convolution")
F8 = re.compile(r"f8|f4")
MOST_EVENTS = 20000
Times = collections.namedtuple("Times", "seconds compute collective exposed")


def dtype_of(program, step):
    """Of the widest operand of a product."""
    types = [DTYPE.match(program["buffers"][i].get("type", "")) for i in step["in"]]
    names = [found[1] for found in types if found]
    return "f8" if names and all(F8.match(name) for name in names) else next((name for name in names if not F8.match(name)), "f32")


def lengths(program, step):
    """Rows, columns and terms of a product that is a step by itself: each is its multiplications by the elements of the array that lacks it, whatever
    batches there are."""
    arrays = [SIZE.match(program["buffers"][i].get("type", "")) for i in (*step["in"][:2], *step["out"][:1])]
    if len(arrays) != 3 or not all(arrays):
        return ()
    return [max(1.0, step["flops"] / 2 / max(1, math.prod(map(int, filter(None, found[1].split(",")))))) for found in arrays]


def nothing():
    """The blame of an op that has none yet; a function of the module, so that clocks pickle."""
    return [0.0, 0.0, 0.0]


class Clock:
    """Walks through the programs of a rehearsal. `seconds`: of the whole; `events` of what went on, `blame` of each op: its seconds and what of
    them is waited for. `unknown`: loops whose turns nobody knows, which count once."""

    def __init__(self, programs, collectives, hardware, network, trips):
        self.programs, self.hardware, self.network, self.trips = programs, hardware, network, trips
        self.collectives = {(c["computation"], c["op"]): c for c in collectives}
        self.events, self.unknown, self.costs, self.step_times = [], [], {}, []
        self.blame = collections.defaultdict(nothing)  # seconds of work, of collectives, of waiting
        self.slower = 1.0
        if hardware.at_once is not None:
            self.slower = max(1.0, network.total / hardware.at_once)
        begins = hardware.call_seconds * self.slower
        self.seconds, self.compute, self.collective, self.exposed = self.run(0, begins, 1, True)
        self.seconds, self.compute = self.seconds + begins, self.compute + begins

    # --- one step ---

    def roofline(self, program, step):
        """(seconds, what limits it)."""
        h = self.hardware
        product = step["opcode"] in PRODUCTS or any(op["opcode"] in PRODUCTS for op in step.get("ops", ()))
        rate = h.matrix_flops(dtype_of(program, step)) if product else h.vector
        flops = (step["flops"] + h.transcendental_flops * step["transcendentals"]) / rate
        if h.half_length and step["opcode"] in PRODUCTS:
            flops *= math.prod(1 + h.half_length / n for n in lengths(program, step))
        moved = step["read"] + step["written"]
        bandwidth = h.cache_bandwidth if 0 < moved <= h.cache_bytes else h.memory_bandwidth * h.memory_efficiency
        seconds = max(flops, moved / bandwidth)
        bound = "overhead" if seconds < h.step_seconds else "operations" if flops >= moved / bandwidth else "memory"
        return (seconds + h.step_seconds) * self.slower, bound

    def cost(self, program, step):
        """Of the collective that a step is or starts, or None."""
        key = program["name"], step["op"]
        if key not in self.costs:
            found = self.collectives.get(key)
            self.costs[key] = None if found is None else self.network.cost(found)
        return self.costs[key]

    def add(self, program, step, kind, lane, begin, seconds, times, bound, why=""):
        if len(self.events) < MOST_EVENTS and seconds > 0:
            self.events.append(Event(step["op"], step["opcode"], program["name"], kind, lane, begin, seconds, times, bound, why))

    # --- programs ---

    def run(self, number, begin, times, entry=False):
        """Of one run of a program that begins then, `times` in all."""
        program, t, free, flying = self.programs[number], begin, begin, {}
        compute = collective = exposed = 0.0
        for step in program["steps"]:
            if entry:
                self.step_times.append(t)
            key, cost = (program["name"], step["op"]), self.cost(program, step)
            blame = self.blame[key]
            if cost is not None:
                length = cost.seconds * self.slower
                what = self.collectives[key]
                why = f"{cost.algorithm}, {int(what['bytes'])} bytes each"
                starts = max(t, free) if step["kind"] == "start" else t
                self.add(program, step, "collective", "network", starts, length, times, "network", why)
                blame[1] += length * times
                collective += length
                if step["kind"] == "start":
                    free = starts + length
                    flying[frozenset(step["out"])] = (key, starts + length)
                    continue
                t, exposed = starts + length, exposed + length
                blame[2] += length * times
            elif step["kind"] == "done":
                waited, source = self.wait(step, flying, t)
                self.add(program, step, "wait", "compute", t, waited, times, "network")
                self.blame[source or key][2] += waited * times
                t, exposed = t + waited, exposed + waited
            elif step.get("nested") and step["kind"] in ("while", "conditional", "call"):
                inner = self.nested(program, step, t, times)
                t, compute, collective, exposed = t + inner.seconds, compute + inner.compute, collective + inner.collective, exposed + inner.exposed
            elif step["kind"] != "update":
                seconds, bound = self.roofline(program, step)
                self.add(program, step, "work", "compute", t, seconds, times, bound)
                blame[0] += seconds * times
                t, compute = t + seconds, compute + seconds
        t = max([t, *(end for _, end in flying.values())])
        return Times(t - begin, compute, collective, exposed)

    @staticmethod
    def wait(step, flying, t):
        """A done reads what its start writes."""
        for outs in flying:
            if outs <= set(step["in"]) and outs:
                key, end = flying.pop(outs)
                return max(0.0, end - t), key
        return 0.0, None

    def nested(self, program, step, begin, times):
        """A loop by its turns, a conditional by its most expensive branch."""
        turns = 1
        if step["kind"] == "while":
            turns = self.trips.get((program["name"], step["op"]))
            if turns is None:
                self.unknown.append((program["name"], step["op"]))
                turns = 1
        if step["kind"] == "conditional":
            return self.most_expensive(step["nested"], begin, times)
        found = [self.run(n, begin, times * turns) for n in step["nested"] if turns]
        return Times(*(math.fsum(parts) * turns for parts in zip(*found))) if found else Times(0.0, 0.0, 0.0, 0.0)

    def most_expensive(self, branches, begin, times):
        """Each is walked through, and only the longest is kept."""
        best, kept = None, None
        events, blame, unknown = self.events, self.blame, self.unknown
        for n in branches:
            self.events, self.unknown = list(events), list(unknown)
            self.blame = collections.defaultdict(nothing, {key: list(value) for key, value in blame.items()})
            found = self.run(n, begin, times)
            if best is None or found.seconds > best.seconds:
                best, kept = found, (self.events, self.blame, self.unknown)
        self.events, self.blame, self.unknown = kept
        return best
