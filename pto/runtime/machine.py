"""The machine: runs lowered programs instruction by instruction and reports what they did.

Tiles lie in the unified buffer, a memory of bytes; every access is checked (in the tile, aligned to
32 bytes, written before). Vector instructions move whole operands with numpy, so that the cost is
one of instructions, not of elements.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from pto.dialect.ops import TCvtOp
from pto.runtime import api, machine_emit  # noqa: F401  (machine_emit registers the operations)
from pto.runtime.compiler import Program
from pto.runtime.errors import ArgumentFault
from pto.runtime.machine_core import MachineCore
from pto.runtime.machine_report import Report
from pto.runtime.machine_vector import VectorUnit


def machine_core(arch: str, **place: int) -> MachineCore:
    """A core of the target with an empty unified buffer; `place` as in `pto.run`."""
    return MachineCore(api.unified_buffer(arch), **place, vector_unit=VectorUnit(Report(arch)))


def run_lowered(
    module: ModuleOp,
    function: str | None,
    *args: Any,
    arch: str | None = None,
    default_sat: str = "target",
) -> tuple[Any, Report]:
    """Executes a function of a lowered module on the machine.

    Arguments, results and errors as `pto.run`; arrays behind pointers are updated in place. Tile
    operations other than conversions are executed as they are and not counted.

    Returns:
        The results of `pto.run`, and the report.

    Raises:
        ExecutionError: an access out of range, not aligned, or of bytes never written; with the
            operation's place.
        ValueError: an unknown target or function, arguments that do not fit, or a tcvt that was not
            lowered.
    """
    if any(isinstance(op, TCvtOp) for op in module.walk()):
        raise ValueError("the module holds tcvt operations; lower it with pto-lower-tcvt first")
    program = Program(module, api.options_for(module, arch, default_sat))
    op = api.find_function(module, function)
    try:
        arguments = api.bind_all(op, args)
    except ArgumentFault as fault:
        raise ValueError(fault.message) from None
    core = machine_core(program.options.arch)
    results = api.execute(program, op, arguments, core)
    for argument in arguments:
        argument.finish()
    value = results if len(results) > 1 else results[0] if results else None
    return value, core.vector_unit.report
