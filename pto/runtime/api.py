"""`run`: executes a function of a module on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute

# The modules that say what operations do, which register themselves.
from pto.runtime import (  # noqa: F401
    control,
    conversion,
    elementwise,
    indexed,
    moves,
    quantise,
    reductions,
    scalars,
    structure,
    transfer,
)
from pto.runtime.arguments import Argument, bind, unbind
from pto.runtime.compiler import Observe, Options, Program
from pto.runtime.core import HERE, Core, Place
from pto.runtime.errors import ArgumentFault, ExecutionError, Fault
from pto.runtime.memory import Memory
from pto.targets import TCVT_TARGETS, resolve, unified_buffer_bytes

DEFAULT_ARCH = "a5"
"""The target of a module that names none."""

DEFAULT_SATURATIONS = ("target", "on", "off")


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
        arch: Target, which wins over the one that the module names; "a5" where none does.
        default_sat: What an absent satmode means: "target" (spec S14), "on" or "off".
        block_idx, block_num, subblock_idx, subblock_num: The core's place in the grid.

    Returns:
        None, the result, or a tuple of the results: arrays of the valid region for tiles.

    Raises:
        ExecutionError: something that must not happen, with the operation's place.
        ValueError: an unknown target or function, or arguments that do not fit.
    """
    kernel = Kernel(module, function, arch=arch, default_sat=default_sat)
    return call(kernel, args, Place(block_idx, block_num, subblock_idx, subblock_num))


def call(kernel: Kernel, args: Sequence[Any], place: Place = HERE) -> Any:
    """Launches a kernel on Python values. Arguments, results and errors as `run`."""
    try:
        arguments = bind_all(kernel.op, args)
    except ArgumentFault as fault:
        raise ValueError(fault.message) from None
    results = kernel.launch(arguments, place)
    kernel.finish(arguments)
    return results if len(results) > 1 else results[0] if results else None


class Kernel:
    """A function of a module, ready to be launched on cores one after the other.

    Raises ValueError for an unknown target or function.
    """

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
        self.options = options_for(module, arch, default_sat, observe)
        self._program = Program(module, self.options)

    @property
    def arguments(self) -> dict[str, Attribute]:
        """The types of the arguments by name."""
        return dict(zip(argument_names(self.op), self.op.function_type.inputs.data, strict=True))

    def finish(self, arguments: Iterable[Argument]) -> None:
        """Brings the arrays behind the arguments up to date. Raises ExecutionError."""
        try:
            for argument in arguments:
                argument.finish()
        except Fault as fault:
            raise ExecutionError(self.op, fault) from fault

    def launch(
        self,
        arguments: Sequence[Argument],
        place: Place = HERE,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Any, ...]:
        """Runs the function on one core and returns its results. Raises ExecutionError."""
        core = Core(unified_buffer(self.options.arch), place, progress)
        return execute(self._program, self.op, arguments, core)


def options_for(
    module: ModuleOp, arch: str | None, default_sat: str, observe: Observe | None = None
) -> Options:
    """The options of a run. Raises ValueError for an unknown or unfit target."""
    if default_sat not in DEFAULT_SATURATIONS:
        raise ValueError(
            f"default_sat is one of {', '.join(DEFAULT_SATURATIONS)}, not {default_sat!r}"
        )
    target = resolve(arch or named_arch(module) or DEFAULT_ARCH)
    if target not in TCVT_TARGETS:
        raise ValueError(f"{target} has no tiles; targets: {', '.join(TCVT_TARGETS)}")
    return Options(target, default_sat, observe)


def named_arch(module: ModuleOp) -> str | None:
    """The target that the module, or the first one in it, names."""
    for op in module.walk():
        if isinstance(op, ModuleOp):
            for key in ("pto.target_arch", "pto.device-spec"):
                if isinstance(attr := op.attributes.get(key), StringAttr):
                    return attr.data
    return None


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


def unified_buffer(arch: str) -> Memory:
    """The memory of vec tiles."""
    return Memory("the unified buffer", unified_buffer_bytes(arch))


def execute(
    program: Program, op: func.FuncOp, arguments: Sequence[Argument], core: Core
) -> tuple[Any, ...]:
    """Runs the function and returns its results. Raises ExecutionError."""
    try:
        with np.errstate(all="ignore"):  # infinities and NaN are values like any other here
            function = program.compiled(op)
            results = function(core, [argument.value for argument in arguments])
            return tuple(unbind(result) for result in results)
    except Fault as fault:
        raise ExecutionError(op, fault) from fault
