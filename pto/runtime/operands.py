"""The operands of tile operations, in the DPS and the SSA form alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pto.dialect.attributes import EnumAttr
from pto.dialect.ops import RegularOp, TCvtOp
from pto.dialect.types import TileBufType, TileType, type_text
from pto.runtime.compiler import Compiler, Frame
from pto.runtime.core import fresh_tile
from pto.runtime.errors import Fault
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile

Target = Callable[[Frame], Tile]
"""Gives the tile that an operation writes; in the SSA form it makes it."""


@dataclass(frozen=True)
class Operands:
    """Sources and destinations of a tile operation."""

    ins: Sequence[SSAValue]
    outs: Sequence[SSAValue]
    is_ssa: bool
    """Whether the destinations are the operation's results."""

    def target(self, compiler: Compiler, index: int = 0) -> Target:
        """The destination of that index.

        In the SSA form it is a fresh tile, whose dynamic valid extents are those of the first tile
        among the sources.
        """
        if index >= len(self.outs):
            raise Fault("it has no destination")
        value = self.outs[index]
        layout, slot = tile_layout(value), compiler.slot(value)
        if not self.is_ssa:
            return lambda frame: frame[slot]
        rows, cols = layout.description.valid_rows, layout.description.valid_cols
        models = [compiler.slot(source) for source in self.ins if is_tile(source)]
        if not models and (rows is None or cols is None):
            raise Fault("nothing gives the valid extents of its result")

        def make(frame: Frame) -> Tile:
            like_rows, like_cols = frame[models[0]].logical if models else (0, 0)
            like_cols //= layout.element.logical(1)
            tile = fresh_tile(
                layout,
                like_rows if rows is None else rows,
                like_cols if cols is None else cols,
            )
            frame[slot] = tile
            return tile

        return make


def operands_of(op: Operation) -> Operands:
    """`ins` and `outs`; the operands and results, in the SSA form."""
    if isinstance(op, TCvtOp):
        ins = [op.src] if op.tmp is None else [op.src, op.tmp]
        return Operands(ins, op.results or op.operands[-1:], bool(op.results))
    if isinstance(op, RegularOp) and not op.results:
        return Operands(op.ins, op.outs, is_ssa=False)
    return Operands(op.operands, op.results, is_ssa=True)


def is_tile(value: SSAValue) -> bool:
    """Whether the value is a tile."""
    return isinstance(value.type, TileBufType | TileType)


def enum_attribute(op: Operation, *names: str, choices: Iterable[str] | None = None) -> str | None:
    """The value of the first of these enumeration attributes that the operation has, in lower case.

    Raises Fault for an attribute of another kind, and for a value that is none of `choices`.
    """
    for name in names:
        attr = op.attributes.get(name) or op.properties.get(name)
        if attr is None:
            continue
        if not isinstance(attr, EnumAttr):
            raise Fault(f"the attribute {name} is an enumeration, not {type_text(attr)}")
        value = attr.data.lower()
        if choices is not None and value not in choices:
            listed = ", ".join(choices)
            raise Fault(f"{name} = {attr.data} is not executed here", f"executed: {listed}")
        return value
    return None


def flag_attribute(op: Operation, name: str) -> bool:
    """A boolean attribute; absent is false. Raises Fault for another kind of attribute."""
    attr = op.attributes.get(name)
    if attr is not None and not isinstance(attr, IntegerAttr):
        raise Fault(f"the attribute {name} is a boolean, not {type_text(attr)}")
    return attr is not None and attr.value.data != 0


def string_attribute(
    attributes: Mapping[str, Attribute], name: str, choices: Iterable[str]
) -> str | None:
    """A string attribute, one of `choices`. Raises Fault for another one."""
    attr = attributes.get(name)
    if attr is None or (isinstance(attr, StringAttr) and attr.data in choices):
        return attr.data if isinstance(attr, StringAttr) else None
    raise Fault(f"{name} is one of {', '.join(choices)}, not {type_text(attr)}")
