"""Shardings: meshes and shardings as values, and their propagation through programs."""
from .mesh import Axis, Dim, Mesh, Sharding
from .propagation import Conflict, Explanation, Propagation, Reshard, Step, Trace, propagate

__all__ = ["Axis", "Conflict", "Dim", "Explanation", "Mesh", "Propagation", "Reshard", "Sharding", "Step", "Trace", "propagate"]
