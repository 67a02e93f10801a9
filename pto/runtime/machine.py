"""The machine: runs lowered programs instruction by instruction and reports what they did.

Tiles lie in the unified buffer, a memory of bytes; every access is checked (in the tile, aligned to
32 bytes, written before). Vector instructions move whole operands with numpy, so that the cost is
one of instructions, not of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from pto.dialect.ops import TCvtOp
from pto.runtime.api import Kernel, call, execute, unified_buffer
from pto.runtime.arguments import Argument
from pto.runtime.core import HERE, Place
from pto.runtime.machine_core import MachineCore
from pto.runtime.machine_emit import MachineProgram
from pto.runtime.machine_report import Report
from pto.runtime.machine_vector import VectorUnit


class MachineKernel(Kernel):
    """A function of a lowered module, ready to be launched on the machine.

    `report` counts what all launches did. Raises ValueError for an unknown target or function, and
    for a tcvt that was not lowered.
    """

    def __init__(
        self, module: ModuleOp, function: str | None = None, *, arch: str | None = None
    ) -> None:
        if any(isinstance(op, TCvtOp) for op in module.walk()):
            raise ValueError("the module holds tcvt operations; run pto-lower-tcvt first")
        super().__init__(module, function, arch=arch)
        self._program = MachineProgram(module, self.options)
        self.report = Report(self.options.arch)

    def core(
        self,
        place: Place = HERE,
        progress: Callable[[int, int], None] | None = None,
        vector_unit: VectorUnit | None = None,
    ) -> MachineCore:
        """A core with an empty unified buffer; its vector unit counts in `report`, unless another
        one is given."""
        return MachineCore(
            unified_buffer(self.options.arch),
            place,
            progress,
            vector_unit=vector_unit or VectorUnit(self.report),
        )

    def launch(
        self,
        arguments: Sequence[Argument],
        place: Place = HERE,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Any, ...]:
        """Runs the function on one core and returns its results. Raises ExecutionError."""
        return self.launch_on(self.core(place, progress), arguments)

    def launch_on(self, core: MachineCore, arguments: Sequence[Argument] = ()) -> tuple[Any, ...]:
        """Runs the function on a core whose unified buffer may hold something already."""
        return execute(self._program, self.op, arguments, core)


def run_lowered(
    module: ModuleOp, function: str | None, *args: Any, arch: str | None = None
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
    kernel = MachineKernel(module, function, arch=arch)
    return call(kernel, args), kernel.report
