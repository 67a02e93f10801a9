"""The machine: runs lowered programs instruction by instruction and reports what they did."""

from pto.runtime.machine.launch import MachineKernel, run_lowered
from pto.runtime.machine.report import Report

__all__ = ["MachineKernel", "Report", "run_lowered"]
