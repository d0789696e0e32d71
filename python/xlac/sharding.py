"""Shardings: meshes and shardings as values, their propagation through programs, and rehearsals of programs on many devices."""
from .hardware import TABLE as hardware_table
from .hardware import Hardware, Level, hardware
from .hardware_measure import measure_hardware
from .mesh import Axis, Dim, Mesh, Sharding
from .propagation import (Conflict, Explanation, Propagation, Reshard, Step, Trace, annotate, imported, meshes,
                          propagate, shardings)
from .remedies import Remedy
from .sharding_plan import Alternative, Move, Plan, plan
from .simulation import Blame, Simulation, simulate
from .suspicions import Suspicion

__all__ = ["Alternative", "Axis", "Blame", "Conflict", "Dim", "Explanation", "Hardware", "Level", "Mesh", "Move", "Plan",
           "Propagation", "Remedy", "Reshard", "Sharding", "Simulation", "Step", "Suspicion", "Trace", "annotate", "hardware",
           "hardware_table", "imported", "measure_hardware", "meshes", "plan", "propagate", "shardings", "simulate"]
