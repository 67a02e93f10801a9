"""Execution: tiles and memory as numpy arrays, kernels as closures over them."""

from pto.runtime.api import run
from pto.runtime.errors import ExecutionError

__all__ = ["ExecutionError", "run"]
