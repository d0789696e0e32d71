"""What went on when in one call: steps of the caller, async operations on their lanes, and who waited for whom."""
import bisect
import collections
import json

from .codes import Code
from .errors import ArgumentError
from .report import Units, html_table, programs_of, seconds_text, table

MAIN = "main"


class Pair:
    """One start and its done. Times in seconds from the beginning of the call: `start` when the start was reached, `begin` and `end` of
    the work (`busy` is its sum, which updates may interrupt), `done` when the caller reached the done, `released` when it went on.
    `exposed` is how long it waited there, `hidden` the part of the work that it did not wait for. `ready` is when the operands were
    there: `earlier` is how much earlier the start would have had to be for nothing to be exposed, and `possible` whether the operands
    were there by then."""

    def __init__(self, op, done_op, lane, computation):
        self.op, self.done_op, self.lane, self.computation = op, done_op, lane, computation
        self.start = self.begin = self.end = self.done = self.released = self.ready = 0.0
        self.busy, self.at_once = 0.0, False

    @property
    def exposed(self):
        return self.busy if self.at_once else self.released - self.done

    @property
    def helped(self):
        """Whether the work had not begun when the done was reached, so that who waited did it."""
        return not self.at_once and self.begin >= self.done

    @property
    def hidden(self):
        return max(0.0, self.busy - self.exposed)

    @property
    def earlier(self):
        return 0.0 if self.at_once else max(0.0, self.end - self.done)

    @property
    def possible(self):
        return self.start - self.earlier >= self.ready

    def advice(self):
        if self.at_once:
            return "run where it was started: it is small, or depends on what was done before"
        if self.exposed < 1e-6 or self.exposed < 0.01 * self.busy:
            return "hidden"
        if self.helped:
            return "no thread of the lane began it in time: the caller did the work"
        how = f"hidden by a start {seconds_text(self.earlier)} earlier"
        return how if self.possible else f"{how}, but the operands come {seconds_text(self.ready - (self.start - self.earlier))} too late for that"


class Timeline:
    """One call's timeline. `result` is what the call gave (None where calls were recorded), `seconds` the whole, `lanes` their names,
    `pairs` a Pair for each start and done, `exposed` the seconds that the caller waited in all. What a call runs at a time is one event: a
    step, a group of kernels or a list of small ones."""

    HEAD = ("pair", "lane", "started", "work", "exposed", "hidden", "")

    def __init__(self, result, found, programs, lanes):
        self.result, self.seconds, self.cut = result, found["ns"] * 1e-9, found["cut"]
        names = [name or "async" for name, _ in lanes]
        self.lanes = [MAIN] + [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]
        self.programs, self.ran, self.units = programs, found["ran"], Units(found, programs)
        self.events = [Event(self.units, row) for row in found["events"]]
        self._posted = {e.serial for e in self.events if e.task}
        self._ends = collections.defaultdict(list)
        for e in self.events:
            if not e.task:
                self._ends[e.program, e.step, e.lane].append(e.end)
        self.pairs = self._pairs()

    @property
    def exposed(self):
        return sum(p.exposed for p in self.pairs)

    @property
    def hidden(self):
        return sum(p.hidden for p in self.pairs)

    def _pairs(self):
        pairs = collections.OrderedDict()
        for e in sorted((e for e in self.events if e.serial), key=lambda e: e.begin):
            pair = pairs.get(e.serial)
            if pair is None:
                pair = pairs[e.serial] = Pair(e.op, "", MAIN, e.computation)
            self._note(pair, e)
        return list(pairs.values())

    def _note(self, pair, e):
        if e.task:
            pair.begin = min(pair.begin, e.begin) if pair.busy else e.begin
            pair.end, pair.busy, pair.lane = max(pair.end, e.end), pair.busy + e.end - e.begin, self.lanes[e.lane]
        elif e.kind == "start":
            pair.op, pair.start, pair.ready = e.op, e.begin, self._ready(e)
            pair.at_once = e.serial not in self._posted
            if pair.at_once:
                pair.begin, pair.end, pair.busy = e.begin, e.end, e.end - e.begin
        elif e.kind == "done":
            pair.done_op, pair.done, pair.released = e.op, e.begin, e.end

    def _ready(self, start):
        """When the last step that made an operand of the start was over."""
        program = self.programs[start.program]
        makers = {program["buffers"][b].get("first") for b in program["steps"][start.step]["in"]}
        firsts = {self.units.first.get((start.program, step), step) for step in makers if step is not None}
        ends = [self._ends[start.program, step, start.lane] for step in firsts]
        before = [times[bisect.bisect_right(times, start.begin) - 1] for times in ends if times and times[0] <= start.begin]
        return max(before, default=0.0)

    def rows(self):
        return [(f"{p.op} .. {p.done_op}", p.lane, seconds_text(p.start), seconds_text(p.busy), seconds_text(p.exposed),
                 seconds_text(p.hidden), p.advice()) for p in self.pairs]

    def __repr__(self):
        head = f"{seconds_text(self.seconds)} in all; {len(self.pairs)} async pairs, {seconds_text(self.exposed)} exposed, " \
               f"{seconds_text(self.hidden)} hidden"
        return head + ("\n" + table(self.HEAD, self.rows(), right=(2, 3, 4, 5)) if self.pairs else "")

    def chrome_trace(self):
        """The Chrome trace, as a str of JSON: a thread for each lane, an arrow from each start to its work and on to its done."""
        events = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": i + 1, "args": {"name": name}} for i, name in enumerate(self.lanes)]
        for e in self.events:
            events.append({"name": e.op, "cat": e.kind, "ph": "X", "ts": round(e.begin * 1e6, 3), "dur": round((e.end - e.begin) * 1e6, 3),
                           "pid": 1, "tid": e.lane + 1, "args": {"computation": e.computation}})
            if e.serial and not e.task and e.kind in ("start", "done"):
                flow = {"name": "async", "cat": "async", "id": e.serial, "pid": 1, "tid": e.lane + 1}
                events.append(flow | ({"ph": "s", "ts": round(e.begin * 1e6, 3)} if e.kind == "start" else
                                      {"ph": "f", "bp": "e", "ts": round(e.end * 1e6, 3)}))
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})

    def svg(self, width=900):
        """A row for each lane: steps, async work, and in red what the caller waited for."""
        from .memory_svg import draw_timeline

        return draw_timeline(self, width)

    def _repr_svg_(self):
        return self.svg()

    def save(self, path):
        """Writes the Chrome trace (.json), or the picture (.svg)."""
        text = self.svg() if str(path).endswith(".svg") else self.chrome_trace()
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def _repr_html_(self):
        return self.svg() + html_table(self.HEAD, self.rows(), right=(2, 3, 4, 5))


class Event:
    """A step, or the work of a start (`task`) on its lane."""

    def __init__(self, units, row):
        self.program, self.step, self.depth, begin, ns, self.lane, self.serial, task = row
        self.op, self.by, self.computation = units.names(self.program, self.step)
        step = units.programs[self.program]["steps"][self.step]
        self.begin, self.end, self.task = begin * 1e-9, (begin + ns) * 1e-9, bool(task)
        self.kind = "work" if task else step["kind"]


def timeline(executable, *args, **kwargs):
    """Runs once with a clock at every step and every async operation. Without arguments, where the program takes some: the timeline of
    the last call since `record_timeline(True)`."""
    recorded = executable._recorded
    programs = programs_of(executable)
    takes = any(b["place"] == "argument" for b in programs[0].get("buffers", ()))
    if not args and not kwargs and (recorded or takes):
        if recorded is None:
            raise ArgumentError("no call has been recorded", Code.BAD_ARGUMENT,
                        hint="give timeline() the program's arguments, or call record_timeline(True) before a call")
        return Timeline(None, json.loads(recorded), programs, executable._lanes)
    result, found = executable._timeline(*args, **kwargs)
    return Timeline(result, json.loads(found), programs, executable._lanes)
