"""When and why JAX compiles: what differs between the calls of a function, and what compilations took."""
import collections
import functools
import threading

from ..report import Report, seconds_text, table

STAGES = {"/jax/core/compile/jaxpr_trace_duration": "trace", "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
          "/jax/core/compile/backend_compile_duration": "compile"}


class Listener:
    """JAX's listeners can't be taken away again by its public means: one of ours stays, and tells those who listen at the time."""

    def __init__(self):
        self.lock, self.active, self.registered = threading.Lock(), [], False

    def __call__(self, event, seconds, **facts):
        stage = STAGES.get(event)
        if stage is not None:
            for who in list(self.active):
                who(stage, name_of(facts.get("fun_name", "?")), seconds)

    def add(self, who):
        import jax

        with self.lock:
            if not self.registered:
                jax.monitoring.register_event_duration_secs_listener(self)
                self.registered = True
            self.active.append(who)

    def remove(self, who):
        with self.lock:
            self.active.remove(who)


LISTENER = Listener()


def name_of(text):
    """"jit(f)" and "f" are the same function's."""
    return text[4:-1] if text.startswith("jit(") and text.endswith(")") else text


# --- compile times ---

class CompileTimes:
    """While it is entered, what JAX traces, lowers and compiles: `rows` has a dict for each function's name, with "times" compiled and seconds by
    stage. The backend's part is xlac's where the program is compiled for xlac."""

    def __init__(self):
        self.found = {}

    def __enter__(self):
        LISTENER.add(self.note)
        return self

    def __exit__(self, *error):
        LISTENER.remove(self.note)

    def note(self, stage, name, seconds):
        row = self.found.setdefault(name, {"name": name, "times": 0, "trace": 0.0, "lower": 0.0, "compile": 0.0})
        row[stage] += seconds
        row["times"] += stage == "compile"

    @property
    def rows(self):
        return sorted(self.found.values(), key=lambda row: -(row["trace"] + row["lower"] + row["compile"]))

    def __repr__(self):
        rows = self.rows
        total = {stage: sum(row[stage] for row in rows) for stage in STAGES.values()}
        cells = [("total", sum(row["times"] for row in rows), *map(seconds_text, total.values()))]
        cells += [(row["name"], row["times"], *(seconds_text(row[stage]) for stage in STAGES.values())) for row in rows[:40]]
        return table(("function", "compiled", *STAGES.values()), cells, right=(1, 2, 3, 4))


compile_times = CompileTimes


# --- why it was compiled again ---

def describe(leaf):
    """(what decides whether a program fits, the value where that may decide): of a leaf of the arguments."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        weak = " weakly typed" if getattr(leaf, "weak_type", False) else ""
        placed = f" on {leaf.sharding}" if getattr(leaf, "committed", False) else ""
        return f"{leaf.dtype}{list(leaf.shape)}{weak}{placed}", None
    if isinstance(leaf, (bool, int, float, complex)):
        return type(leaf).__name__, repr(leaf)
    return type(leaf).__name__, repr(leaf)[:200]


def signature(args, kwargs):
    """(structure, {path: description}, {path: value})"""
    import jax

    leaves, structure = jax.tree_util.tree_flatten_with_path((args, kwargs))
    kinds, values = {}, {}
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path[1:])
        where = f"argument {path[1].idx}{jax.tree_util.keystr(path[2:])}" if path[0].idx == 0 else f"argument {name}"
        kinds[where], value = describe(leaf)
        if value is not None:
            values[where] = value
    return str(structure), kinds, values


def differences(old, new):
    """What a call has other than an earlier one, most likely reasons alone."""
    lines = [f"{where}: {old[1].get(where, 'was not there')} before, {kind} now" for where, kind in new[1].items() if old[1].get(where) != kind]
    lines += [f"{where}: {kind} before, not there now" for where, kind in old[1].items() if where not in new[1]]
    if not lines and old[0] != new[0]:
        lines = [f"the structure of the arguments: {old[0][:300]} before, {new[0][:300]} now"]
    if not lines:  # values decide where an argument is static
        lines = [f"{where}: {old[2].get(where)} before, {value} now, and the argument is static" for where, value in new[2].items()
                 if old[2].get(where) != value]
    return lines or ["nothing that can be seen in the arguments: a setting of JAX's, a global mesh, or another thread's context has changed, "
                     "or the function "
                     "was made anew (a lambda or a partial in a loop)"]


class Watched:
    """A jitted function that notes why calls of it had to be compiled: `compilations` has (number of the call, reasons)."""

    def __init__(self, function):
        import jax

        functools.update_wrapper(self, function)
        self.jitted = function if hasattr(function, "lower") else jax.jit(function)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.calls, self.compilations, self.seen, self.lock = 0, [], [], threading.Lock()

    def __call__(self, *args, **kwargs):
        me, traced = threading.get_ident(), []

        def note(stage, name, seconds):
            if threading.get_ident() == me and name == self.name and stage == "compile":
                traced.append(seconds)
        found = signature(args, kwargs)  # before the call: it may give the arguments away
        LISTENER.add(note)
        try:
            return self.jitted(*args, **kwargs)
        finally:
            LISTENER.remove(note)
            with self.lock:
                self.note(found, traced)

    def note(self, found, traced):
        self.calls += 1
        if traced:
            nearest = min((differences(old, found) for old in reversed(self.seen)), key=len, default=["the first call"])
            self.compilations.append((self.calls, nearest, sum(traced)))
            self.seen.append(found)

    def __getattr__(self, name):
        return getattr(self.__dict__["jitted"], name)

    def report(self):
        """What was compiled when, and why: each compilation beside the earlier one that it is nearest to."""
        lines = [f"{self.name}: {self.calls} calls, compiled {len(self.compilations)} times"]
        for call, reasons, seconds in self.compilations:
            lines.append(f"  call {call} ({seconds_text(seconds)}): {'; '.join(reasons)}")
        if self.calls and not self.compilations:
            lines.append("it had been compiled for all of them before it was watched: jax.clear_caches() forgets that")
        often = collections.Counter(reason.partition(":")[0] for _, reasons, _ in self.compilations[1:] for reason in reasons)
        if often and often.most_common(1)[0][1] > 2:
            lines.append(f"most often since {often.most_common(1)[0][0]} was another: pad it to few sizes, "
                         "or pass it as an array where it is a static value")
        return Report("\n".join(lines))


def why_recompiled(function):
    """The function, jitted, with report(): why each compilation was needed."""
    return Watched(function)
