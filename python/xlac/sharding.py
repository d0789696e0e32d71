"""Shardings: meshes and shardings as values, and their propagation through programs."""
from .mesh import Axis, Dim, Mesh, Sharding
from .propagation import (Conflict, Explanation, Propagation, Remedy, Reshard, Step, Suspicion, Trace, annotate, imported, meshes,
                          propagate, shardings)

__all__ = ["Axis", "Conflict", "Dim", "Explanation", "Mesh", "Propagation", "Remedy", "Reshard", "Sharding", "Step", "Suspicion", "Trace", "annotate",
           "imported", "meshes", "propagate", "shardings"]
