"""Execution: tiles and memory as numpy arrays, kernels as closures over them."""

from pto.runtime.errors import ExecutionError
from pto.runtime.launch import run

__all__ = ["ExecutionError", "run"]
