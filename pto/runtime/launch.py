"""`run`: executes a function of a module on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from pto.runtime.arguments import Argument, bind, unbind
from pto.runtime.compiler import Implementation, Observe, Options, Program
from pto.runtime.errors import ArgumentFault, ExecutionError, RuntimeFault
from pto.runtime.memory import Memory
from pto.runtime.ops import IMPLEMENTATIONS
from pto.runtime.vector_core import ONLY_CORE, GridPosition, VectorCore
from pto.targets import DEFAULT_SATURATIONS, TCVT_TARGETS, Product, UnknownTarget, product_of


def run(
    module: ModuleOp,
    function: str | None = None,
    *args: Any,
    arch: str | None = None,
    default_sat: str = "target",
    block_idx: int = 0,
    block_num: int = 1,
    subblock_idx: int = 0,
    subblock_num: int = 1,
) -> Any:
    """Executes a function on one vector core, the conversions bit-exactly (spec R, S).

    Args:
        module: The parsed module.
        function: Name of the function; None where the module has only one with a body.
        *args: One for each argument of the function. For a pointer an array of any shape, whose
            elements lie in memory in C order; for a view an array of its shape; for a tile an array
            of its declared or its valid shape; for a scalar a number. The arrays are of the carrier
            dtype of the element's format or of its unsigned codes, and are updated in place. Packed
            4-bit elements are given one by one (`float4_e2m1fn`, `int4`) or as packed bytes
            (`uint8`).
        arch: Target, which wins over those that the modules name; "a5" where none does.
        default_sat: What an absent satmode means: "target" (spec S14), "on" or "off".
        block_idx, block_num, subblock_idx, subblock_num: The core's position in the grid.

    Returns:
        None, the result, or a tuple of the results: arrays of the valid region for tiles.

    Raises:
        ExecutionError: something that must not happen, with the operation's place.
        ValueError: an unknown target or function, or arguments that do not fit.
    """
    kernel = Kernel(module, function, arch=arch, default_sat=default_sat)
    return call(kernel, args, GridPosition(block_idx, block_num, subblock_idx, subblock_num))


def call(kernel: Kernel, args: Sequence[Any], position: GridPosition = ONLY_CORE) -> Any:
    """Launches a kernel on Python values. Arguments, results and errors as `run`."""
    try:
        arguments = bind_all(kernel.op, args)
    except ArgumentFault as fault:
        raise ValueError(fault.message) from None
    results = kernel.launch(arguments, position)
    kernel.finish(arguments)
    return results if len(results) > 1 else results[0] if results else None


class Kernel:
    """A function of a module, ready to be launched on cores one after the other.

    Raises ValueError for an unknown target or function.
    """

    IMPLEMENTATIONS: ClassVar[Mapping[str, Implementation]] = IMPLEMENTATIONS
    """What operations do here."""

    def __init__(
        self,
        module: ModuleOp,
        function: str | None = None,
        *,
        arch: str | None = None,
        default_sat: str = "target",
        observe: Observe | None = None,
    ) -> None:
        self.op = find_function(module, function)
        """The function."""
        self.options = options_for(arch, default_sat, observe)
        self.product = _with_tiles(self.options.product_for(self.op))
        self._program = Program(module, self.options, self.IMPLEMENTATIONS)

    @property
    def arguments(self) -> dict[str, Attribute]:
        """The types of the arguments by name."""
        return dict(zip(argument_names(self.op), self.op.function_type.inputs.data, strict=True))

    def product_of(self, op: Operation) -> Product | None:
        """The target of one of the module's operations; None where it names none that is known."""
        try:
            return self.options.product_for(op)
        except UnknownTarget:
            return None

    def finish(self, arguments: Iterable[Argument]) -> None:
        """Brings the arrays behind the arguments up to date. Raises ExecutionError."""
        try:
            for argument in arguments:
                argument.finish()
        except RuntimeFault as fault:
            raise ExecutionError(self.op, fault) from fault

    def core(
        self,
        position: GridPosition = ONLY_CORE,
        progress: Callable[[int, int], None] | None = None,
    ) -> VectorCore:
        """A core with an empty unified buffer."""
        return VectorCore(self.unified_buffer(), position, progress)

    def unified_buffer(self) -> Memory:
        """An empty unified buffer, where vec tiles live."""
        return Memory("the unified buffer", self.product.unified_buffer_bytes)

    def launch(
        self,
        arguments: Sequence[Argument],
        position: GridPosition = ONLY_CORE,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Any, ...]:
        """Runs the function on one core and returns its results. Raises ExecutionError."""
        return self.launch_on(self.core(position, progress), arguments)

    def launch_on(self, core: VectorCore, arguments: Sequence[Argument] = ()) -> tuple[Any, ...]:
        """Runs the function on a core whose unified buffer may hold something already."""
        return execute(self._program, self.op, arguments, core)


def options_for(arch: str | None, default_sat: str, observe: Observe | None = None) -> Options:
    """The options of a run. Raises ValueError for an unknown or unfit target."""
    if default_sat not in DEFAULT_SATURATIONS:
        raise ValueError(
            f"default_sat is one of {', '.join(DEFAULT_SATURATIONS)}, not {default_sat!r}"
        )
    product = None if arch is None else _with_tiles(product_of(arch))
    return Options(product, default_sat, observe)


def _with_tiles(product: Product) -> Product:
    if product.name not in TCVT_TARGETS:
        raise ValueError(f"{product} has no tiles; targets: {', '.join(TCVT_TARGETS)}")
    return product


def find_function(module: ModuleOp, name: str | None) -> func.FuncOp:
    """The function to run. Raises ValueError that lists the functions."""
    functions = [op for op in module.walk() if isinstance(op, func.FuncOp) and op.body.blocks]
    if name is None and len(functions) == 1:
        return functions[0]
    for op in functions:
        if op.sym_name.data == name:
            return op
    names = ", ".join(op.sym_name.data for op in functions) or "none"
    wanted = "name a function" if name is None else f"no function {name!r} with a body"
    raise ValueError(f"{wanted}; functions: {names}")


def argument_names(op: func.FuncOp) -> list[str]:
    """The names of a function's arguments as written; the position of one that has none."""
    return [
        argument.name_hint or str(position)
        for position, argument in enumerate(op.body.blocks[0].args)
    ]


def bind_all(op: func.FuncOp, values: Sequence[Any]) -> list[Argument]:
    """The arguments of a function. Raises ArgumentFault where they do not fit."""
    types, names = op.function_type.inputs.data, argument_names(op)
    if len(types) != len(values):
        raise ArgumentFault(
            f"@{op.sym_name.data} takes {len(types)} arguments, not {len(values)}:"
            f" {', '.join(names)}"
        )
    return [bind(*triple) for triple in zip(names, types, values, strict=True)]


def execute(
    program: Program, op: func.FuncOp, arguments: Sequence[Argument], core: VectorCore
) -> tuple[Any, ...]:
    """Runs the function and returns its results. Raises ExecutionError."""
    try:
        with np.errstate(all="ignore"):  # infinities and NaN are values like any other here
            function = program.compiled(op)
            results = function(core, [argument.value for argument in arguments])
            return tuple(unbind(result) for result in results)
    except RuntimeFault as fault:
        raise ExecutionError(op, fault) from fault
