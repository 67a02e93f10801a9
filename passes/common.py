"""What passes share: errors with a place, the target and the options that most of them have."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from pto.dialect.location import NOWHERE, location_of
from pto.dialect.ops import TCvtOp
from pto.dialect.target import target_of
from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, element_format
from pto.targets import (
    DEFAULT_SATURATIONS,
    TCVT_TARGETS,
    Product,
    ResolvedConversion,
    UnknownTarget,
    product_of,
)


def fail(op: Operation, message: str) -> PassFailedException:
    """The error of a pass at an operation, `file:line:col: message`."""
    place = location_of(op)
    return PassFailedException(message if place is NOWHERE else f"{place}: {message}")


def conversions(module: ModuleOp) -> list[TCvtOp]:
    """All tile conversions of a module, in text order."""
    return [op for op in module.walk() if isinstance(op, TCvtOp)]


def function_of(op: Operation) -> FuncOp | None:
    """The function around an operation."""
    current: Operation | None = op
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    return current


def tile_type(op: TCvtOp, value: SSAValue) -> AnyTile:
    """The type of a tile operand. Raises PassFailedException for another type."""
    if isinstance(value.type, AnyTile):
        return value.type
    raise fail(op, f"an operand of type {type_text(value.type)} is no tile")


def check_default_sat(default_sat: str) -> None:
    """Raises PassFailedException for an option that is not target, on or off."""
    if default_sat not in DEFAULT_SATURATIONS:
        listed = ", ".join(DEFAULT_SATURATIONS)
        raise PassFailedException(f"default-sat is one of {listed}, not {default_sat}")


@dataclass(frozen=True)
class TargetedPass(ModulePass):
    """A pass that depends on a target.

    Options: `arch` (a target with tiles or an alias; default: what the module names) and
    `default-sat` (target, on, off: what an absent satmode means, spec S14).
    """

    name = "pto-targeted-pass"

    arch: str | None = None
    default_sat: str = "target"

    def product(self, op: Operation) -> Product:
        """The target of an operation: the option, else what a module around it names.

        Raises PassFailedException for an unknown or absent one, and for one without TCVT.
        """
        name = self.arch
        if name is None and (named := target_of(op)) is not None:
            name = named.name
        if name is None:
            raise fail(op, "no target: give arch, or pto.target_arch in the module")
        try:
            product = product_of(name)
        except UnknownTarget as error:
            raise fail(op, str(error)) from None
        if product.name not in TCVT_TARGETS:
            raise fail(op, f"{product} has no tcvt; the targets are {', '.join(TCVT_TARGETS)}")
        return product

    def resolve(self, op: TCvtOp) -> ResolvedConversion:
        """What a conversion means on its target.

        Raises PassFailedException for operands that are no tiles, and elements of no format.
        """
        product = self.product(op)
        resolved = op.resolve(product, self.default_sat)
        if resolved is None:
            raise _no_formats(op)
        return resolved


def _no_formats(op: TCvtOp) -> PassFailedException:
    """Why a conversion has no formats."""
    for type_ in (op.src.type, op.dst_type):
        if not isinstance(type_, AnyTile):
            return fail(op, f"an operand of type {type_text(type_)} is no tile")
        if element_format(type_.dtype) is None:
            return fail(op, f"elements of type {type_text(type_.dtype)} are not converted")
    raise AssertionError(op.name)
