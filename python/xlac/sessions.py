"""Running clustered TensorFlow graphs."""
import json
from collections.abc import Mapping, MutableMapping

import numpy as np

from .diagnostics import counted
from .errors import ParseError

__all__ = ["GraphExecutable", "Session", "Variables"]

NUMERICS = ("strict", "fast")


class Session:
    """The variables of a clustered graph, and executables that share them. Any thread may call, one at a time works. Pickles and copies with its
    clusters and its variables' values."""

    def __init__(self, clusters, threads=None, blas=None, numerics="strict", lazy=True, always_defer=False, seed=0):
        from . import _blas_path, _count
        from .codes import Code
        from .errors import ArgumentError

        if numerics not in NUMERICS:
            raise ArgumentError(f"numerics is \"strict\" or \"fast\", not {numerics!r}", Code.BAD_ARGUMENT)
        path = _blas_path(blas)
        self._made = (clusters, threads, blas, numerics, lazy, always_defer, seed)
        count = 0 if threads is None else _count("threads", threads)
        self._session = clusters._graph.session(threads=count, blas=path, no_blas=blas is not None and not blas, numerics=NUMERICS.index(numerics),
                                                compile_at_once=not lazy, always_defer=always_defer, seed=seed)
        self.variables = Variables(self._session)

    def executable(self, feeds=(), fetches=(), targets=()):
        """As Clusters.executable, with this session's variables."""
        return GraphExecutable(self, feeds, fetches, targets)

    def __reduce__(self):
        clusters, *options = self._made
        if self is clusters._session:
            return clusters.__class__._own_session, (clusters,)
        return again, (clusters, tuple(options), dict(self.variables))


def again(clusters, options, variables):
    """A pickled Session."""
    session = Session(clusters, *options)
    session.variables.update(variables)
    return session


class Variables(MutableMapping):
    """{name: array} of a session's variables that have a value. Arrays are copies; setting one copies, too."""

    def __init__(self, session):
        self._session = session

    def __getitem__(self, name):
        names = self._session.names()
        value = self._session.get(names.index(name)) if name in names else None
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name, value):
        self._session.set(name, np.asarray(value))

    def __delitem__(self, name):
        raise TypeError("a variable can be set, not removed")

    def __iter__(self):
        return (name for i, name in enumerate(self._session.names()) if self._session.get(i) is not None)

    def __len__(self):
        return sum(1 for _ in self)

    def __repr__(self):
        return f"Variables({ {name: array.shape for name, array in self.items()} })"


def near_names(clusters, error):
    """A hint for a node that is not there: those whose names are like it, or what can be fed."""
    import difflib
    import re

    asked = re.match(r"(feed|fetch|target) '(.*?)(:\d+)?': the graph has no such node", error.message)
    if asked is None:
        return None
    near = difflib.get_close_matches(asked[2], clusters.nodes[2:], 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    fed = [name for name, op, *_ in clusters._graph.nodes() if op == "Placeholder"][:8] if asked[1] == "feed" else []
    return f"the graph's placeholders are {', '.join(fed)}" if fed else None


def names(what):
    return (what,) if isinstance(what, str) else tuple(what)


class GraphExecutable:
    """One way to run a clustered graph: call it with an array for each feed, by position, or with a dict by name ("x", or "x:0" as
    TensorFlow writes it)."""

    def __init__(self, session, feeds, fetches, targets):
        self.session = session
        self.feeds, self.fetches, self.targets = names(feeds), names(fetches), names(targets)
        self._one = isinstance(fetches, str)
        try:
            self._step = session._session.step(self.feeds, self.fetches, self.targets)
        except ParseError as error:
            error.hint = near_names(session._made[0], error) or error.hint
            raise error
        self._dtypes = [dtype for _, dtype in self._step.feeds()]
        report = json.loads(self._step.report())
        for i in report["string_feeds"]:
            self._dtypes[i] = None
        self._strings = report["string_fetches"]

    @property
    def variables(self):
        """The session's variables: {name: array}."""
        return self.session.variables

    def __call__(self, *arrays):
        """Arrays of another element type, lists and numbers are converted to the feed's; strings are given as text or bytes, and come as
        bytes, as NumPy has them: without zeros at their ends. Raises Error, which names the node; variables
        are then as they were before the call."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            arrays = self._by_name(arrays[0])
        if len(arrays) != len(self.feeds):
            given = counted(len(arrays), "array")
            takes = f"takes {counted(len(self.feeds), 'array')}, for {', '.join(self.feeds)}" if self.feeds else "takes no arrays: `feeds` names none"
            raise TypeError(f"the executable {takes}; found {given}")
        result = self._step.run(tuple(np.asarray(a, d) if d else as_bytes(a) for a, d in zip(arrays, self._dtypes)))
        if self._strings:
            result = tuple(as_strings(r) if i in self._strings else r for i, r in enumerate(result))
        return result[0] if self._one else result

    def __reduce__(self):
        return Session.executable, (self.session, self.feeds, self.fetches[0] if self._one else self.fetches, self.targets)

    def _by_name(self, given):
        given = {name if name in self.feeds else f"{name}".removesuffix(":0"): array for name, array in given.items()}  # "x:0" is what "x" gives
        missing, surplus = [n for n in self.feeds if n not in given], [n for n in given if n not in self.feeds]
        if missing or surplus:
            lacks = [f"missing feeds: {', '.join(missing)}"] * bool(missing)
            has = ", ".join(self.feeds) or "none, as `feeds` names none"
            unknown = [f"unknown feeds: {', '.join(map(str, surplus))}; it has {has}"] * bool(surplus)
            raise TypeError("; ".join(lacks + unknown))
        return tuple(given[n] for n in self.feeds)

    @property
    def stats(self):
        """What happened so far: runs, failures and seconds of the whole; `units` has a dict for each cluster and each node outside of
        clusters, `inside` for each node that ran in functions and in clusters that ran node by node; and sums over all of them:
        clusters, compiles, hits (runs of something compiled before), compiled_runs, fallen_back, host_runs."""
        found = json.loads(self._step.report())
        both = found["units"] + found["inside"]
        found["clusters"] = sum(u["kind"] == "cluster" for u in found["units"])
        for key in ("compiles", "hits", "compiled_runs", "fallen_back"):
            found[key] = sum(u.get(key, 0) for u in both)
        found["host_runs"] = sum(u["runs"] for u in both if u["kind"] == "host")
        return found

    def explain(self):
        """A line for each cluster and node: how often it ran, in what way, how long, and why it fell back."""
        found = self.stats
        lines = [f"{found['runs']} runs, {found['failures']} failed, {found['seconds']:.6f} s; {found['compiles']} compiled, "
                 f"{found['compiled_runs']} compiled runs, {found['host_runs']} of the host, {found['fallen_back']} node by node"]
        for unit in sorted(found["units"], key=lambda u: -u["seconds"]):
            lines.append("  " + explained(unit))
        if found["inside"]:
            lines.append("in functions, and in clusters that ran node by node:")
            lines += ["  " + explained(unit) for unit in sorted(found["inside"], key=lambda u: -u["seconds"])]
        return "\n".join(lines)

    def __repr__(self):
        return f"<xlac.GraphExecutable: {', '.join(self.feeds) or 'nothing'} -> {', '.join(self.fetches + self.targets) or 'nothing'}>"


def as_bytes(strings):
    """Text (as UTF-8) or bytes to u8 with one dimension more."""
    array = np.asarray(strings)
    if array.dtype.kind == "O":
        array = np.array([s.encode() if isinstance(s, str) else bytes(s) for s in array.ravel()], "S").reshape(array.shape)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.kind != "S":
        raise TypeError(f"the feed takes strings, not {array.dtype}")
    array = np.ascontiguousarray(array, f"S{max(array.dtype.itemsize, 1)}")
    return np.frombuffer(array.tobytes(), np.uint8).reshape(np.shape(strings) + (array.dtype.itemsize,))


def as_strings(array):
    return np.ascontiguousarray(array).view(f"S{array.shape[-1]}").reshape(array.shape[:-1])


def explained(unit):
    what = f"{unit['name']} ({unit['nodes']} nodes)" if unit["kind"] == "cluster" else f"{unit['name']} ({unit['op']})"
    parts = [f"{unit['kind']}, {unit['runs']} runs"]
    if unit["dead"]:
        parts.append(f"{unit['dead']} times dead")
    if "compiles" in unit:
        parts.append(f"{unit['compiles']} compiled in {unit['compile_seconds']:.6f} s for {unit['signatures']} signatures")
        if unit["fallen_back"]:
            parts.append(f"{unit['fallen_back']} node by node")
        if unit["megamorphic"]:
            parts.append("megamorphic: too many signatures for too few runs")
        if unit["why"]:
            parts.append(f"not compiled: {unit['why']}")
    if unit["kind"] != "host":
        parts.append(f"{unit['seconds']:.6f} s")
    return f"{what}: {'; '.join(parts)}"
