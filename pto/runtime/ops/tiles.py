"""Operations that make tiles, or tell and change what they are."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation

from pto.dialect.ops import AllocTileOp, SetValidShapeOp, SubviewOp
from pto.dialect.types import AnyTile, MultiTileBufType
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.frame import Frame, Slots, Step
from pto.runtime.ops.tile_operation import tile_layout
from pto.runtime.tile import Layout, Tile, layout_of
from pto.runtime.vector_core import VectorCore, fresh_tile

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


def _valid_extents(layout: Layout) -> tuple[int, int]:
    """The valid extents that a type gives; the declared ones where they are dynamic."""
    rows, cols = layout.description.valid_rows, layout.description.valid_cols
    return layout.rows if rows is None else rows, layout.cols if cols is None else cols


@implements("pto.alloc_tile", "pto.declare_tile")
def alloc_tile(op: Operation, compiler: Compiler) -> Step:
    """A tile at an address of the unified buffer, or in a memory of its own."""
    (slot,) = compiler.results(op)
    layout = tile_layout(op.results[0])
    rows, cols = _valid_extents(layout)
    addr = row = col = None
    if isinstance(op, AllocTileOp):
        addr, row, col = (
            None if value is None else compiler.slot(value)
            for value in (op.addr, op.valid_row, op.valid_col)
        )

    def step(frame: Frame) -> None:
        valid_rows = rows if row is None else frame[row]
        valid_cols = cols if col is None else frame[col]
        if addr is None:
            frame[slot] = fresh_tile(layout, valid_rows, valid_cols)
        else:
            core: VectorCore = frame[Slots.CORE]
            frame[slot] = core.tile_at(layout, frame[addr], valid_rows, valid_cols)

    return step


@implements("pto.set_validshape")
def set_valid_shape(op: Operation, compiler: Compiler) -> Step:
    """Other valid extents, for the name from there on."""
    assert isinstance(op, SetValidShapeOp)
    tile, row, col = compiler.slots((op.source, op.valid_row, op.valid_col))

    def step(frame: Frame) -> None:
        frame[tile] = frame[tile].resized(frame[row], frame[col])

    return step


@implements("pto.get_validshape")
def get_valid_shape(op: Operation, compiler: Compiler) -> Step:
    """The valid rows and columns."""
    (tile,), (rows, cols) = compiler.operands(op, 1), compiler.results(op, 2)

    def step(frame: Frame) -> None:
        frame[rows], frame[cols] = frame[tile].valid

    return step


@implements("pto.tile_valid_rows", "pto.tile_valid_cols")
def valid_extent(op: Operation, compiler: Compiler) -> Step:
    """The valid rows or columns."""
    (tile,), (result,) = compiler.operands(op, 1), compiler.results(op)
    axis = 0 if op.name == "pto.tile_valid_rows" else 1

    def step(frame: Frame) -> None:
        frame[result] = frame[tile].valid[axis]

    return step


@implements("pto.subview")
def subview(op: Operation, compiler: Compiler) -> Step:
    """A window of a tile."""
    assert isinstance(op, SubviewOp)
    parent, result = tile_layout(op.source), tile_layout(op.result)
    source, slot = compiler.slot(op.source), compiler.slot(op.result)
    row, col = compiler.slots(op.offsets)
    rows, cols = (size.value.data for size in op.sizes.data)
    window = replace(result, rows=rows, cols=cols)
    if parent.element != result.element:
        raise RuntimeFault(f"a window of {result.element.text} on a tile of {parent.element.text}")
    valid = (
        compiler.slots((op.valid_row, op.valid_col))
        if op.valid_row is not None and op.valid_col is not None
        else None
    )
    static = _valid_extents(window)

    def step(frame: Frame) -> None:
        tile: Tile = frame[source]
        first_row, first_col = frame[row], frame[col]
        if not (0 <= first_row <= parent.rows - rows and 0 <= first_col <= parent.cols - cols):
            raise RuntimeFault(
                f"a window of {rows}x{cols} at [{first_row}, {first_col}]"
                f" of a tile of {parent.rows}x{parent.cols}"
            )
        valid_rows, valid_cols = static if valid is None else (frame[valid[0]], frame[valid[1]])
        frame[slot] = tile.window(window, first_row, first_col, valid_rows, valid_cols)

    return step


@implements("pto.treshape")
def reshape(op: Operation, compiler: Compiler) -> Step:
    """The same bytes as another type; dynamic extents stay where the shape does."""
    (source,), (slot,) = compiler.operands(op, 1), compiler.results(op)
    layout = tile_layout(op.results[0])
    shape = (layout.rows, layout.cols)
    static = (layout.description.valid_rows, layout.description.valid_cols)

    def step(frame: Frame) -> None:
        tile: Tile = frame[source]
        if tile.layout.size != layout.size:
            raise RuntimeFault(f"{tile.layout.size} bytes reshaped to {layout.size}")
        if not tile.layout.is_dense:
            raise RuntimeFault(
                "the rows of a window do not follow each other: it cannot be reshaped"
            )
        kept = tile.valid if (tile.layout.rows, tile.layout.cols) == shape else shape
        rows, cols = (k if s is None else s for s, k in zip(static, kept, strict=True))
        frame[slot] = tile.part(layout, tile.offset, rows, cols)

    return step


@implements("pto.tassign")
def assign_address(op: Operation, compiler: Compiler) -> Step:
    """The tile at another byte address."""
    tile, address = compiler.operands(op, 2)
    (slot,), layout = compiler.results(op), tile_layout(op.results[0])

    def step(frame: Frame) -> None:
        core: VectorCore = frame[Slots.CORE]
        frame[slot] = core.tile_at(layout, frame[address], *frame[tile].valid)

    return step


@implements("pto.alloc_multi_tile")
def alloc_multi_tile(op: Operation, compiler: Compiler) -> Step:
    """Tiles of one type, one after the other where an address is given."""
    type_ = op.results[0].type
    tile = type_.data.tile if isinstance(type_, MultiTileBufType) else None
    if not isinstance(type_, MultiTileBufType) or not isinstance(tile, AnyTile):
        raise unsupported("this form of it")
    layout, count = layout_of(tile), type_.data.count
    rows, cols = _valid_extents(layout)
    (slot,) = compiler.results(op)
    addr = compiler.operands(op, 1)[0] if op.operands else None

    def step(frame: Frame) -> None:
        if addr is None:
            frame[slot] = [fresh_tile(layout, rows, cols) for _ in range(count)]
            return
        core: VectorCore = frame[Slots.CORE]
        frame[slot] = [
            core.tile_at(layout, frame[addr] + number * layout.size, rows, cols)
            for number in range(count)
        ]

    return step


@implements("pto.multi_tile_get")
def multi_tile_get(op: Operation, compiler: Compiler) -> Step:
    """One of these tiles by its number."""
    tiles, number = compiler.operands(op, 2)
    (slot,) = compiler.results(op)

    def step(frame: Frame) -> None:
        if not 0 <= frame[number] < len(frame[tiles]):
            raise RuntimeFault(f"tile {frame[number]} of {len(frame[tiles])}")
        frame[slot] = frame[tiles][frame[number]]

    return step
