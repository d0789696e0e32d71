"""TensorFlow graphs as StableHLO, without TensorFlow."""
import json
import re
from typing import NamedTuple

from . import _core
from .clusters import read_graph
from .dtypes import name_of

__all__ = ["Lowered", "lower_graph"]

WRITTEN = re.compile(r"([a-z0-9]+)\[([0-9, ]*)\]")


class Lowered(NamedTuple):
    """A lowered graph: the module, and which tensor each parameter, result and updated variable of its main is. The updates are main's
    last results."""

    module: object
    parameters: list
    results: list
    updates: list


def lower_graph(graphdef, inputs=(), fetches=(), *, variables=(), format="auto"):
    """The part of a TensorFlow graph that computes some values, as a StableHLO module.

    Parameters
    ----------
    graphdef : bytes, str, path-like, file, or an object with SerializeToString
        A GraphDef, as for `cluster`.
    inputs : dict
        Nodes without inputs of their own (placeholders) to types, "f32[2,3]", or to arrays, whose values are then known and may decide shapes.
    fetches : iterable of str
        What is computed: "y", "y:1".
    variables : dict
        VarHandleOps to their values' types, or to None for a variable that has no value yet.
    format : {"auto", "proto", "text"}
        Of the graph.

    Returns
    -------
    Lowered
        Its main takes the inputs it uses and gives the fetches, then the new values of the variables that the graph writes.

    Raises
    ------
    Error
        A node can't be lowered, and the message names it: its op has no lowering, or a shape depends on values.
    """
    named = [described(name, given, False) for name, given in dict(inputs).items()]
    named += [described(name, given, True) for name, given in dict(variables).items()]
    module, report = _core.lower_graph(read_graph(graphdef), format, tuple(named), tuple(fetches))
    report = json.loads(report)
    return Lowered(module, report["parameters"], report["results"], report["updates"])


def described(name, given, variable):
    """(tensor, element type, sizes, data, variable), as the core takes it."""
    if given is None:
        return name, None, (), None, variable
    if isinstance(given, str):
        match = WRITTEN.fullmatch(given)
        if not match:
            raise ValueError(f"{given!r} is not a type: expected one such as 'f32[2,3]'")
        return name, match[1], tuple(int(n) for n in match[2].split(",") if n.strip()), None, variable
    import numpy

    array = numpy.asarray(given)
    return name, name_of(array.dtype), array.shape, array.tobytes(), variable
