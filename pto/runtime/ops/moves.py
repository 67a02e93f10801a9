"""Operations that move, place, pad and fill."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pto.dialect.attributes import PADS
from pto.runtime.compiler import Implementations
from pto.runtime.errors import RuntimeFault, region_fault
from pto.runtime.ops.elementwise import copy, mark, poison_of, scalar_of
from pto.runtime.ops.load_store import fill_outside
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


@implements("pto.tmov", attributes=("reluPreMode",))
@tile_operation
def move(op: TileOperation) -> Compute:
    """A copy, in elements of one width."""
    op.refuse_quantisation()
    op.same_width()

    def compute(src: Tile, dst: Tile) -> None:
        copy(op, dst, src.over(*dst.valid))

    return compute


@implements("pto.tprint", attributes=("printFormat",))
@tile_operation
def print_tile(op: TileOperation) -> Compute:
    """Prints the valid region on standard error."""
    op.layout("src")  # only tiles are printed
    line = op.location().line

    def compute(src: Tile) -> None:
        print(f"line {line}: {src.text()}\n{src.read()}", file=sys.stderr)

    return compute


@implements("pto.tfillpad", attributes=("mode", "padValue"))
@tile_operation
def fill_pad(op: TileOperation) -> Compute:
    """The source's valid region, the rest of the destination's declared extents padded."""
    layout = op.layout("dst")
    op.same_width()
    op.string("mode", ("expand", "inplace"))  # how a device does it
    written = op.choice("padValue", choices=PADS)
    pad = layout.description.pad if written is None else PADS.index(written)
    if not pad:
        raise RuntimeFault("the destination's type has no padding value (pad=0)")

    def compute(src: Tile, dst: Tile) -> None:
        if src.valid_rows > layout.rows or src.valid_cols > layout.cols:
            raise RuntimeFault(f"{src.valid} valid elements into {layout.rows}x{layout.cols}")
        held = src.read()
        if src.memory is dst.memory and src.offset != dst.offset:
            held = held.copy()
        part = dst.resized(*src.valid)
        np.copyto(part.write(), held.view(layout.element.storage))
        fill_outside(part, pad)

    return compute


@implements("pto.ttrans")
@tile_operation
def transpose(op: TileOperation) -> Compute:
    """Rows become columns."""
    op.same_format("src")

    def compute(src: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        part = src.over(cols, rows)
        poison = poison_of((part,))
        np.copyto(dst.write(), part.data.T)
        if poison is not None:
            mark(op, dst, poison.T, part)

    return compute


@implements("pto.textract", "pto.tinsert", attributes=("reluPreMode",))
@tile_operation
def extract_or_insert(op: TileOperation) -> Compute:
    """A window of the larger tile at [row, col], read (textract) or written (tinsert)."""
    op.refuse_quantisation()
    op.same_width()

    def extract(src: Tile, row: int | None, col: int | None, dst: Tile) -> None:
        copy(op, dst, window_of(src, row or 0, col or 0, *dst.valid))

    def insert(src: Tile, row: int | None, col: int | None, dst: Tile) -> None:
        copy(op, window_of(dst, row or 0, col or 0, *src.valid), src)

    return extract if op.kind == "textract" else insert


def window_of(tile: Tile, row: int, col: int, rows: int, cols: int) -> Tile:
    """`rows` x `cols` elements at [row, col] of a tile's declared extents."""
    layout = tile.layout
    if not (0 <= row <= layout.rows - rows and 0 <= col <= layout.cols - cols):
        raise RuntimeFault(
            f"{rows}x{cols} elements at [{row}, {col}] of a tile of {layout.rows}x{layout.cols}"
        )
    offset = tile.offset + row * layout.row_stride + layout.element.stored(col) * layout.col_stride
    return tile.part(layout, offset, rows, cols)


@implements("pto.tconcat")
@tile_operation
def concatenate(op: TileOperation) -> Compute:
    """The columns of src0, then those of src1."""
    op.same_format("src0", "src1")

    def compute(src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        same_rows = src0.valid_rows == src1.valid_rows == rows
        if not same_rows or src0.valid_cols + src1.valid_cols != cols:
            raise region_fault(f"{src0.valid} and {src1.valid} into {dst.valid}")
        dst.assign(np.concatenate([src0.read(), src1.read()], axis=1))

    return compute


@implements("pto.tci", attributes=("descending",))
@tile_operation
def count(op: TileOperation) -> Compute:
    """start, start + 1, ... along the row; start - 1, ... with `descending`."""
    element = op.element("dst")
    direction, convert = -1 if op.flag("descending") else 1, scalar_of(element)

    def compute(start: Any, dst: Tile) -> None:
        if dst.valid_rows != 1:
            raise region_fault(f"{dst.valid_rows} valid rows; a sequence fills one")
        steps = np.arange(dst.valid_cols)
        dst.write()[0] = convert(start) + (direction * steps).astype(element.work)

    return compute


@implements("pto.ttri", attributes=("upperOrLower",))
@tile_operation
def triangle(op: TileOperation) -> Compute:
    """Ones below the diagonal of that number and on it, or above it and on it; zeros elsewhere."""
    is_upper = op.flag("upperOrLower")

    def compute(diagonal: int, dst: Tile) -> None:
        rows, cols = np.ogrid[: dst.valid_rows, : dst.valid_cols]
        last = rows + diagonal
        dst.assign(cols >= last if is_upper else cols <= last)

    return compute
