"""Pass `pto-tile-to-buf`: from tiles as values to tile buffers (spec L1).

`%d = pto.tcvt %s : T -> U`, and the PTO-AS `%d = tcvt %s ..` that parses to it, becomes an
`alloc_tile` and `pto.tcvt ins(%s : T) outs(%d : U)`; so does every other operation of one result
tile whose buffer form is known. `!pto.tile` becomes `!pto.tile_buf` everywhere.

Preserves what every operation computes, its attributes, its place and its value's name. A result
whose valid extents are dynamic has those of the first tile among the operands.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from pto.dialect.ops import SEGMENTS, OpaqueOp, RegularOp, TCvtOp, segments
from pto.dialect.type_records import type_text
from pto.dialect.types import TileBufType, TileType
from pto.passes.lowering.allocation import allocate


@dataclass(frozen=True)
class TileToBufPass(ModulePass):
    """Puts tile operations into the form that writes its destination."""

    name = "pto-tile-to-buf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place. Raises PassFailedException for dynamic extents that nothing gives."""
        operations = list(op.walk())
        for inner in operations:
            _retype(inner)
        for inner in operations:
            if isinstance(inner, TCvtOp | RegularOp) and _yields_tile(inner):
                _write_destination(inner)


def _yields_tile(op: Operation) -> bool:
    if len(op.results) != 1 or not isinstance(op.results[0].type, TileBufType):
        return False
    if isinstance(op, TCvtOp):
        return True
    assert isinstance(op, RegularOp)
    sizes = op.properties.get(SEGMENTS)
    return sizes is None and op.SIGNATURE.accepts(len(op.operands), 1)


# ---- Types


def _buffer(type_: Attribute) -> Attribute:
    """The type with `!pto.tile_buf` for `!pto.tile`."""
    match type_:
        case TileType():
            return TileBufType(type_.data)
        case FunctionType():
            return FunctionType.from_lists(
                [_buffer(t) for t in type_.inputs], [_buffer(t) for t in type_.outputs]
            )
        case _:
            return type_


def _retype(op: Operation) -> None:
    values: list[SSAValue] = [*op.results]
    for region in op.regions:
        values += [argument for block in region.blocks for argument in block.args]
    for value in values:
        if (wanted := _buffer(value.type)) != value.type:
            Rewriter.replace_value_with_new_type(value, wanted)
    if isinstance(op, FuncOp):
        op.properties["function_type"] = _buffer(op.function_type)
    if isinstance(op, OpaqueOp) and (syntax := op.syntax) is not None and "!pto.tile<" in syntax:
        op.properties["syntax"] = StringAttr(_retype_template(syntax, op))


def _retype_template(syntax: str, op: Operation) -> str:
    """The statement's template, whose types are text, with the types as they are now."""
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TileBufType):
            syntax = syntax.replace(type_text(TileType(value.type.data)), type_text(value.type))
    return syntax


# ---- Operations


def _write_destination(op: TCvtOp | RegularOp) -> None:
    result = op.results[0]
    type_ = result.type
    assert isinstance(type_, TileBufType)
    tiles = [value for value in op.operands if isinstance(value.type, TileBufType)]
    alloc = allocate(op, type_, result.name_hint, like=next(iter(tiles), None))
    properties = dict(op.properties)
    if isinstance(op, TCvtOp):
        properties[SEGMENTS] = segments(1, op.tmp is not None, 1)
    else:
        properties = {SEGMENTS: segments(len(op.operands), 1)}
    written = type(op).create(
        operands=[*op.operands, alloc],
        properties=properties,
        attributes=op.attributes,
        location=op.location,
    )
    Rewriter.replace_op(op, written, [alloc])
