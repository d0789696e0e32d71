"""Auto-clustering of TensorFlow graphs: which nodes XLA would compile together, decided as TensorFlow 2.21 decides it."""
import errno
import os

from . import _core
from .codes import Code
from .diagnostics import counted
from .errors import ArgumentError, ParseError

__all__ = ["Clusters", "cluster"]

COLOURS = ("#8dd3c7", "#ffffb3", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5", "#bc80bd", "#ccebc5", "#ffed6f")


def cluster(graphdef, *, format="auto", **flags):
    """Clusters a TensorFlow graph as TensorFlow 2.21 does, which need not be installed.

    Parameters
    ----------
    graphdef : bytes, str, path-like, file, or an object with SerializeToString
        A GraphDef: its bytes, its text (.pbtxt), or where they are; or a SavedModel, of which the graph that serves is taken: its folder, or its
        saved_model.pb.
    format : {"auto", "proto", "text"}
        Of the bytes.
    **flags
        TensorFlow's, without `tf_xla_`: min_cluster_size (4), max_cluster_size, clustering_fuel, ops_to_cluster ("" or names of ops and
        categories, such as "FUSIBLE" or "PW,MatMul"), cluster_exclude_ops, auto_jit and auto_jit_single_gpu (0: unset), cpu_global_jit (True
        here), deterministic_cluster_names, disable_deadness_safety_checks_for_debugging,
        disable_resource_variable_safety_checks_for_debugging; and those of a session: global_jit_level (1 here; -1 off), session_name,
        session_cpu_global_jit. `default_device` is that of nodes that ask for none. `clone_constants` runs
        CloneConstantsForBetterClusteringPass first, `cluster_scoping` ClusterScopingPass before, `partially_decluster` PartiallyDeclusterPass
        after. `devices` registers types of devices, or changes TensorFlow's own: {"TPU": {"compilation_device": "XLA_CPU_JIT" (or
        "XLA_GPU_JIT"), "autoclustering_policy": "if_enabled_globally" (or "if_explicitly_requested", "always"), "cluster_stack_ops": True,
        ...}}, with the fields of XlaOpRegistry::DeviceRegistration, False where they are left out.

    Returns
    -------
    Clusters

    Raises
    ------
    Error
        The graph is malformed; the message names the node.
    FileNotFoundError
        There is no such file.
    """
    data = read_graph(graphdef)
    try:
        return Clusters(_core.cluster(data, format=format, **flags), data, format, flags)
    except TypeError as error:
        raise unknown_flag(error, flags) from None
    except ParseError as error:
        error.hint = error.hint or mistaken(data)
        raise error


# How files begin that are given for graphs, and what to do with them.
BEGINNINGS = ((b"PK\x03\x04", "this is a zip archive, such as a .keras file: model.export(\"folder\") writes a SavedModel"),
              (b"\x89HDF", "this is an HDF5 file: model.export(\"folder\") writes a SavedModel"),
              (b"\x1f\x8b", "these bytes are compressed: gunzip them first"), (b"TFL3", "this is a TensorFlow Lite model, which has no GraphDef"),
              *((start, "this looks like Python: give the graph that it makes") for start in (b"import ", b"from ")))


def mistaken(data):
    """A hint for what begins like no graph at all, else None."""
    raw = (data[:100].encode("utf-8", "replace") if isinstance(data, str) else bytes(data[:100])).lstrip()
    raw = raw[4:] if raw[4:8] == b"TFL3" else raw
    return next((hint for start, hint in BEGINNINGS if raw.startswith(start)), None)


def unknown_flag(error, flags):
    """The error of a flag that there is not, with the one that was meant; others as they are."""
    import difflib
    import re

    unknown = re.match("'(.*)' is an invalid keyword", str(error))
    if unknown is None:
        given = ", ".join(f"{name}={value!r}" for name, value in flags.items() if isinstance(value, str))
        return TypeError(f"{error}: {given}") if given and type(error) is TypeError else error
    known = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", cluster.__doc__)
    near = difflib.get_close_matches(unknown[1].removeprefix("tf_xla_"), known, 1, 0.5)
    return ArgumentError(f"there is no flag {unknown[1]!r}", Code.BAD_ARGUMENT,
                         hint=f"did you mean {near[0]}?" if near else "docs/api.md lists the flags")


def read_graph(graphdef):
    """The bytes or text of a graph. A missing file is a FileNotFoundError, a folder without saved_model.pb an IsADirectoryError."""
    if hasattr(graphdef, "SerializeToString"):
        graphdef = graphdef.SerializeToString()
    if isinstance(graphdef, os.PathLike) or (isinstance(graphdef, str) and is_path(graphdef)):
        model = os.path.join(graphdef, "saved_model.pb")
        if os.path.isdir(graphdef) and not os.path.exists(model):
            raise IsADirectoryError(errno.EISDIR, "Is a directory without saved_model.pb", str(graphdef))
        with open(model if os.path.isdir(graphdef) else graphdef, "rb") as file:
            graphdef = file.read()
    data = graphdef.read() if callable(getattr(graphdef, "read", None)) else graphdef
    return graph_of_saved_model(data) if isinstance(data, bytes) and data[:1] == b"\x08" else data


def fields(message):
    """(number, bytes) of the fields of a protobuf message that are messages or text. IndexError where it is cut short."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        kind = key & 7
        size = varint() if kind == 2 else {1: 8, 5: 4}.get(kind, 0)
        if kind == 0:
            varint()
        if kind not in (0, 1, 2, 5) or at + size > len(message):
            raise IndexError
        if kind == 2:
            yield key >> 3, message[at:at + size]
        at += size


def graph_of_saved_model(data):
    """The GraphDef in a SavedModel: of the graph that is tagged "serve", else of the first one. A SavedModel begins with the number of its schema, as
    no GraphDef does."""
    try:
        graphs = [dict(fields(meta)) for number, meta in fields(memoryview(data)) if number == 2]
        serving = [meta for meta in graphs if (4, b"serve") in fields(meta.get(1, b""))]
        return bytes((serving or graphs)[0][2])
    except (IndexError, KeyError):
        raise ParseError("this begins like a SavedModel, and has no graph", Code.BAD_PROTO,
                         hint="a SavedModel is a folder with saved_model.pb") from None


def is_path(text):
    """Whether a string is not a graph's text, which has fields, but the name of a file."""
    if not text or len(text) > 4096 or any(c in text for c in "\n{\0"):
        return False
    return text.lower().endswith((".pb", ".pbtxt", ".txt", ".graphdef")) or os.path.exists(text)


class Clusters:
    """A clustered graph. Not for several threads at a time. Pickles and copies as its graph and flags, with the values of the variables that its
    executables share."""

    def __init__(self, graph, data, format, flags):
        self._graph, self._data, self._format, self._flags = graph, data, format, flags
        self._assignment = None
        self._session = None

    @property
    def assignment(self):
        """{node: cluster} of the nodes that are in one."""
        if self._assignment is None:
            self._assignment = self._graph.assignment()
        return self._assignment

    @property
    def clusters(self):
        """{cluster: its nodes}, in TensorFlow's order of nodes."""
        found = {}
        for node, name in self.assignment.items():
            found.setdefault(name, []).append(node)
        return found

    @property
    def timings(self):
        """{"read", "import", "cluster"}: seconds for the bytes, for the graph as TensorFlow makes it, and for the passes."""
        return self._graph.times()

    @property
    def nodes(self):
        """The nodes' names by their number in TensorFlow: 0 is the source, 1 the sink."""
        return [n[0] for n in self._graph.nodes()]

    @property
    def candidates(self):
        """The nodes that XLA can compile and that all filters let pass."""
        return [n[0] for n in self._graph.nodes() if n[4]]

    @property
    def edges(self):
        """(source, its output, destination, its input) by number; -1 stands for control."""
        return self._graph.edges()

    @property
    def scopes(self):
        """{node: scope} as ClusterScopingPass gave them."""
        return {n[0]: n[6] for n in self._graph.nodes() if n[6]}

    @property
    def unsafe_pairs(self):
        """(before, after): ops on resources that may not be in one cluster, on any device."""
        names = self.nodes
        return [(names[a], names[b]) for a, b in self._graph.unsafe_pairs()]

    def deadness(self, node):
        """When a node is alive, as a formula over the switches that decide: "#true", "*p:0". Empty where that was not looked at."""
        return self._graph.deadness(self.nodes.index(node))

    def why(self, node):
        """Why the node is in its cluster, or in none: the first filter that refused it, with what decided."""
        return self._graph.why(node)

    def why_not(self, a, b=None):
        """Why two nodes are not in one cluster: when they are alive, their devices and scopes, the size, resources, or the path that
        would close a cycle."""
        if b is None:
            raise TypeError(f"why_not compares two nodes: why({a!r}) says why one is in no cluster")
        return self._graph.why(a, b)

    def what_if(self, **flags):
        """{node: (cluster here, cluster there)} of the nodes whose cluster would be another with these flags changed. Clusters are the
        same where they hold the same nodes, whatever their names."""
        there = cluster(self._data, format=self._format, **{**self._flags, **flags})
        mine, other = self._by_content(), there._by_content()
        return {n: (self.assignment.get(n), there.assignment.get(n)) for n in sorted(set(mine) | set(other)) if mine.get(n) != other.get(n)}

    def _by_content(self):
        return {node: frozenset(nodes) for nodes in self.clusters.values() for node in nodes}

    def to_graphdef(self, *, encapsulated=False):
        """The graph's bytes, its nodes marked as TensorFlow marks them: _XlaCluster, _XlaAlreadyClustered. `encapsulated`: each cluster
        as a function of the library instead, and a node that calls it (_XlaCompiledKernel, _XlaNumConstantArgs, _XlaNumResourceArgs),
        whose arguments are those that must be constants, others, resources."""
        return self._graph.write(False, "encapsulated" if encapsulated else "marked")

    def to_text(self, *, encapsulated=False):
        """The same as text."""
        return self._graph.write(True, "encapsulated" if encapsulated else "marked")

    def dump(self, directory):
        """Writes what `tf_xla_clustering_debug` makes TensorFlow dump, as text: before_mark_for_compilation.pbtxt,
        mark_for_compilation.pbtxt and mark_for_compilation_annotated.pbtxt (nodes named by their cluster, so that viewers group them);
        and the picture of the graph with its clusters as clusters.svg where it is small enough to look at, else clusters.dot. Returns
        the paths."""
        before = _core.graph_convert(self._data, self._format, "text")
        files = {"before_mark_for_compilation.pbtxt": before, "mark_for_compilation.pbtxt": self.to_text(),
                 "mark_for_compilation_annotated.pbtxt": self._graph.write(True, "annotated")}
        picture = self.svg()
        files["clusters.svg" if picture else "clusters.dot"] = picture or self.to_dot()
        os.makedirs(directory, exist_ok=True)
        paths = [os.path.join(directory, name) for name in files]
        for path, text in zip(paths, files.values()):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return paths

    def session(self, *, threads=None, blas=None, numerics="strict", lazy=True, always_defer=False, seed=0):
        """A Session: variables of its own, and executables that share them.

        `lazy` is TensorFlow's policy: a cluster is compiled when it runs for the first time, and for another signature (shapes, types,
        values of inputs that must be constants) at its second run; a cluster of more than 10 compilations with under 50 runs each
        runs node by node from then on. Without it, each signature is compiled when it is first seen. `always_defer` never
        compiles clusters. `seed` is for random ops that have none (0: drawn from the system). `threads`, `blas` and `numerics` are
        those of xlac.compile."""
        from .sessions import Session

        return Session(self, threads, blas, numerics, lazy, always_defer, seed)

    def executable(self, feeds=(), fetches=(), targets=()):
        """Runs the graph: a callable that takes arrays for `feeds` and gives those of `fetches`, after the nodes `targets` have run too.

        Names are "node" or "node:output". Clusters run compiled, other nodes one by one. `fetches` as a string gives one array, else
        a tuple. All executables of a graph share its variables, which keep their values between calls; session() has others."""
        return self._own_session().executable(feeds, fetches, targets)

    def _own_session(self):
        """The one whose variables the executables share."""
        if self._session is None:
            self._session = self.session()
        return self._session

    def __reduce__(self):
        data = self._data if isinstance(self._data, str) else bytes(self._data)
        return again, (data, self._format, self._flags, None if self._session is None else dict(self._session.variables))

    def to_dot(self):
        """The graph for Graphviz, clusters as boxes."""
        nodes, lines = self._graph.nodes(), ["digraph clusters {", "  rankdir=TB; node [shape=box, style=filled, fillcolor=white];"]
        for i, (name, members) in enumerate(self.clusters.items()):
            inside = set(members)
            lines.append(f"  subgraph \"cluster_{i}\" {{ label={quoted(name)}; style=filled; color=\"{COLOURS[i % len(COLOURS)]}\";")
            lines += [f"    n{k} [label={quoted(label(n))}];" for k, n in enumerate(nodes) if n[0] in inside]
            lines.append("  }")
        lines += [f"  n{k} [label={quoted(label(n))}];" for k, n in enumerate(nodes) if k > 1 and n[3] is None]
        for src, _, dst, into in self.edges:
            if src > 1 and dst > 1:
                lines.append(f"  n{src} -> n{dst}{' [style=dashed]' if into < 0 else ''};")
        return "\n".join([*lines, "}"]) + "\n"

    def __repr__(self):
        held = f"{counted(len(self.clusters), 'cluster')} of {counted(len(self.assignment), 'node')}"
        return f"<xlac.Clusters: {held}, of {len(self.nodes) - 2} in all>"

    def _repr_html_(self):
        """A table of the clusters, and a picture where the graph is small enough to look at."""
        import html

        rows = "".join(f"<tr><td style='background:{COLOURS[i % len(COLOURS)]}'>{html.escape(name)}</td><td>{len(members)}</td>"
                       f"<td style='text-align:left'>{html.escape(', '.join(members[:8]))}{' …' if len(members) > 8 else ''}</td></tr>"
                       for i, (name, members) in enumerate(self.clusters.items()))
        table = f"<table><tr><th>cluster</th><th>nodes</th><th></th></tr>{rows}</table>"
        return f"<div>{html.escape(repr(self))}{table}{self._picture()}</div>"

    def _picture(self):
        picture = self.svg()
        return picture and f"<div style='overflow:auto;max-height:600px'>{picture}</div>"

    def svg(self):
        """The graph as SVG: nodes below those that they read, in the colours of their clusters. Of a graph of more nodes than anyone looks at,
        each cluster is one box, and so are other nodes between the same clusters."""
        from .clusters_svg import draw

        return draw(self._graph.nodes(), self.edges, list(self.clusters))


def again(data, format, flags, variables):
    """Pickled Clusters."""
    clusters = cluster(data, format=format, **flags)
    if variables is not None:
        clusters._own_session().variables.update(variables)
    return clusters


def label(node):
    return f"{node[0]}\n{node[1]}"


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
