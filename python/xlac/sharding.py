"""Shardings and their propagation through programs."""
from .propagation import Conflict, Explanation, Propagation, Reshard, Step, Trace, propagate

__all__ = ["Conflict", "Explanation", "Propagation", "Reshard", "Step", "Trace", "propagate"]
