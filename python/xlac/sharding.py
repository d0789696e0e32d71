"""Shardings: meshes and shardings as values, and their propagation through programs."""
from .mesh import Axis, Dim, Mesh, Sharding
from .propagation import (Conflict, Explanation, Propagation, Reshard, Step, Trace, annotate, imported, meshes,
                          propagate, shardings)
from .remedies import Remedy
from .suspicions import Suspicion

__all__ = ["Axis", "Conflict", "Dim", "Explanation", "Mesh", "Propagation", "Remedy", "Reshard", "Sharding", "Step", "Suspicion", "Trace", "annotate",
           "imported", "meshes", "propagate", "shardings"]
