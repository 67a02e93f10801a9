"""Rewrites the types of tmp tiles that are too small, in the text itself.

Only the types change: comments, names and layout of the file stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from pto.cli.tmp_uses import TmpUse
from pto.dialect.location import location_of
from pto.dialect.ops import AllocTileOp, SubviewOp
from pto.dialect.types import TileBufType
from pto.frontend.source import Source
from pto.frontend.spans import Group, Span, find_statement
from pto.tiles.geometry import grown

_RESULT = re.compile(r"(%[\w$.\-]+)\s*=\s*$")


@dataclass(slots=True)
class Growth:
    """The outcome: the new text, one line for each tile grown, and for each left alone."""

    text: str
    grown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class _CannotRewrite(Exception):
    """Why a tile's type cannot be changed in the text."""


def grow_tmp_tiles(source: Source, uses: Iterable[TmpUse]) -> Growth:
    """Grows each tmp tile to what its neediest conversion needs; rows and dtype stay.

    A tile is left alone where its type is not written at each of its uses: a function's parameter,
    a type alias, an operation whose operands and types do not correspond.
    """
    needed: dict[SSAValue, int] = {}
    for use in uses:
        tmp = use.op.tmp
        if tmp is not None and (use.provided or 0) < use.need.bytes:
            needed[tmp] = max(needed.get(tmp, 0), use.need.bytes)
    growth = Growth(source.text)
    edits: dict[Span, str] = {}
    for tile, size in needed.items():
        try:
            new_type, spans = _rewrite(source, tile, size)
        except _CannotRewrite as reason:
            growth.refused.append(f"%{tile.name_hint or 'tmp'}: {reason}")
            continue
        for span in spans:
            long = "loc" in source.text[span.start : span.end].split(",")[0]
            edits[span] = f"!{new_type.name}{new_type.long_body() if long else new_type.body()}"
        line = location_of(_owner(tile), in_text=True).line
        growth.grown.append(f"line {line}: {new_type.rows}x{new_type.cols}, {size} bytes needed")
    for span in sorted(edits, key=lambda s: -s.start):
        growth.text = growth.text[: span.start] + edits[span] + growth.text[span.end :]
    return growth


def _owner(tile: SSAValue) -> Operation:
    owner = tile.owner
    if not isinstance(owner, Operation):
        raise _CannotRewrite("it is a parameter; change its type and that of the callers")
    return owner


def _rewrite(source: Source, tile: SSAValue, size: int) -> tuple[TileBufType, list[Span]]:
    """The tile's new type, and where its type is written."""
    alloc = _owner(tile)
    if not isinstance(alloc, AllocTileOp):
        raise _CannotRewrite(f"it is made by {alloc.name}, not by pto.alloc_tile")
    statement = find_statement(source.text, _offset(source, alloc), alloc.name)
    if statement is None or not statement.ins.types:
        raise _CannotRewrite("its pto.alloc_tile is not written in the usual form")
    name = _result_name(source, statement.name)
    spans = [statement.ins.types[0]]
    for use in tile.uses:
        spans += _type_spans(source, use.operation, name)
    if any("<" not in source.text[s.start : s.end] for s in spans):
        raise _CannotRewrite("its type is an alias")
    if (new_type := grown(alloc.result.type, size)) is None:
        raise _CannotRewrite("its layout or element type is not a plain one")
    return new_type, spans


def _offset(source: Source, op: Operation) -> int:
    """Where an operation starts in the text."""
    place = location_of(op, in_text=True)
    return source.offset(place.line, place.column)


def _result_name(source: Source, operation: Span) -> str:
    """The name before `= pto.alloc_tile`."""
    line_start = source.text.rfind("\n", 0, operation.start) + 1
    match = _RESULT.search(source.text, line_start, operation.start)
    if match is None:
        raise _CannotRewrite("the name of its value was not found")
    return match.group(1)


def _type_spans(source: Source, op: Operation, name: str) -> list[Span]:
    """The types of the operand `name` in one statement that uses it."""
    statement = find_statement(source.text, _offset(source, op), op.name)
    if statement is None:
        raise _CannotRewrite(f"{op.name} uses it in a form that is not understood")
    spans = []
    for group in (statement.ins, statement.outs):
        for index, operand in enumerate(group.operands):
            if source.text[operand.start : operand.end] == name:
                spans.append(_type_at(op, group, index))
    if not spans:
        raise _CannotRewrite(f"{op.name} uses it in a form that is not understood")
    return spans


def _type_at(op: Operation, group: Group, index: int) -> Span:
    in_step = len(group.types) == len(group.operands)
    if not in_step and not (isinstance(op, SubviewOp) and index == 0 and group.types):
        raise _CannotRewrite(f"{op.name} does not write its type beside it")
    return group.types[index]
