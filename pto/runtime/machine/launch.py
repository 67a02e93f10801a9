"""The machine: runs lowered programs instruction by instruction and reports what they did.

Tiles lie in the unified buffer, a memory of bytes; every access is checked (in the tile, aligned to
32 bytes, written before). Vector instructions move whole operands with numpy, so that the cost is
one of instructions, not of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from xdsl.dialects.builtin import ModuleOp

from pto.dialect.ops import TCvtOp
from pto.runtime.launch import Kernel, call
from pto.runtime.machine.core import MachineCore
from pto.runtime.machine.ops import IMPLEMENTATIONS
from pto.runtime.machine.report import Report
from pto.runtime.machine.vector_unit import VectorUnit
from pto.runtime.vector_core import ONLY_CORE, GridPosition


class MachineKernel(Kernel):
    """A function of a lowered module, ready to be launched on the machine.

    `report` counts what all launches did. Raises ValueError for an unknown target or function, and
    for a tcvt that was not lowered.
    """

    IMPLEMENTATIONS: ClassVar = IMPLEMENTATIONS

    def __init__(
        self, module: ModuleOp, function: str | None = None, *, arch: str | None = None
    ) -> None:
        if any(isinstance(op, TCvtOp) for op in module.walk()):
            raise ValueError("the module holds tcvt operations; run pto-lower-tcvt first")
        super().__init__(module, function, arch=arch)
        self.report = Report(self.product.name)

    def core(
        self,
        position: GridPosition = ONLY_CORE,
        progress: Callable[[int, int], None] | None = None,
        vector_unit: VectorUnit | None = None,
    ) -> MachineCore:
        """A core with an empty unified buffer; its vector unit counts in `report`, unless another
        one is given."""
        unit = vector_unit or VectorUnit(self.report)
        return MachineCore(self.unified_buffer(), position, progress, vector_unit=unit)


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
