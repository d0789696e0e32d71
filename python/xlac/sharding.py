"""Shardings: meshes and shardings as values, their propagation through programs, and rehearsals of programs on many devices."""
from .hardware import TABLE as hardware_table
from .hardware import Hardware, Level, hardware
from .mesh import Axis, Dim, Mesh, Sharding
from .propagation import (Conflict, Explanation, Propagation, Reshard, Step, Trace, annotate, imported, meshes,
                          propagate, shardings)
from .remedies import Remedy
from .simulation import Blame, Simulation, simulate
from .suspicions import Suspicion

__all__ = ["Axis", "Blame", "Conflict", "Dim", "Explanation", "Hardware", "Level", "Mesh", "Propagation", "Remedy", "Reshard",
           "Sharding", "Simulation", "Step", "Suspicion", "Trace", "annotate", "hardware", "hardware_table", "imported", "meshes",
           "propagate", "shardings", "simulate"]
