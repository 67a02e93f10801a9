"""Reductions of rows and columns, and their expansion over a tile.

Sums and products are computed in f64 and rounded once: the order in which the device adds is not
documented, and so no order is preferred here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.runtime.compiler import Implementations
from pto.runtime.elements import Element
from pto.runtime.errors import region_fault
from pto.runtime.ops.elementwise import (
    PRECISION,
    apply,
    copy,
    exp_of_difference,
    function_of,
    mark,
    poison_of,
)
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile
from pto.targets.vector_unit import BLOCK_BYTES

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

_REDUCTIONS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_ARGUMENTS: dict[str, Callable[..., Array]] = {"argmax": np.argmax, "argmin": np.argmin}
_AXES = ("row", "col")


def _axis_and_kind(name: str) -> tuple[int, str]:
    """`trowsum` reduces along axis 1, `tcolsum` along axis 0."""
    if name.startswith("trow"):
        return 1, name.removeprefix("trow")
    return 0, name.removeprefix("tcol")


def _check_result(source: Tile, result: Tile, axis: int) -> None:
    expected = (source.valid_rows, 1) if axis == 1 else (1, source.valid_cols)
    if result.valid != expected:
        raise region_fault(
            f"valid region of the result is {result.valid_rows}x{result.valid_cols},"
            f" not {expected[0]}x{expected[1]}"
        )


def _wide(element: Element, kind: str) -> np.dtype[Any] | None:
    """The dtype that is accumulated in, None for the elements' own."""
    if kind in ("max", "min"):
        return None
    return np.dtype(np.float64) if element.is_float else element.storage


@implements(
    *(f"pto.t{axis}{kind}" for axis in _AXES for kind in _REDUCTIONS),
    attributes=("isBinary",),  # the order of the additions, which does not matter here
)
@tile_operation
def reduction(op: TileOperation) -> Compute:
    """The sum, product or extreme of each row or column."""
    axis, kind = _axis_and_kind(op.kind)
    ufunc, wide = _REDUCTIONS[kind], _wide(op.same_format("src"), kind)

    def compute(src: Tile, dst: Tile) -> None:
        _check_result(src, dst, axis)
        if 0 in src.valid:  # the device does nothing either
            return
        poison = poison_of((src,))
        dst.assign(ufunc.reduce(src.lanes(), axis=axis, dtype=wide, keepdims=True))
        if poison is not None:
            mark(op, dst, np.asarray(poison.any(axis=axis, keepdims=True)), src)

    return compute


@implements(*(f"pto.t{axis}{kind}" for axis in _AXES for kind in _ARGUMENTS))
@tile_operation
def argument(op: TileOperation) -> Compute:
    """The position of the first extreme of each row or column."""
    axis, kind = _axis_and_kind(op.kind)
    find = _ARGUMENTS[kind]

    def compute(src: Tile, dst: Tile) -> None:
        _check_result(src, dst, axis)
        if 0 not in src.valid:
            dst.assign(np.expand_dims(find(src.values(), axis=axis), axis))

    return compute


# Expansion ---------------------------------------------------------------------------------------


def _is_row_operand(tile: Tile, rows: int) -> bool:
    """Whether the tile gives one value, or one block of 32 bytes, to each row."""
    return tile.valid_rows >= rows and (
        tile.valid_cols == 1 or tile.valid_cols * tile.element.size == BLOCK_BYTES
    )


def _row_operand(tile: Tile, rows: int, cols: int) -> Tile | Array:
    if not _is_row_operand(tile, rows):
        raise region_fault(
            f"the expanded operand has {tile.valid_rows}x{tile.valid_cols} valid elements;"
            f" {rows} rows of one element or of {BLOCK_BYTES} bytes are expanded"
        )
    part = tile.over(rows, tile.valid_cols)
    if tile.valid_cols == 1:
        return part
    return np.tile(part.values(), (1, -(-cols // tile.valid_cols)))[:, :cols]


def _col_operand(tile: Tile, rows: int, cols: int) -> Tile | Array:
    return tile.over(1, cols)


_EXPANSIONS = ("add", "sub", "mul", "div", "max", "min", "expdif")


@implements(
    *(f"pto.t{axis}expand{kind}" for axis in _AXES for kind in _EXPANSIONS), attributes=PRECISION
)
@tile_operation
def expanded(op: TileOperation) -> Compute:
    """The function of a full operand and one that is expanded over it, in the order written."""
    element = op.same_format("src0", "src1")
    axis, kind = _axis_and_kind(op.kind)
    kind = kind.removeprefix("expand")
    function = exp_of_difference if kind == "expdif" else function_of(f"t{kind}", element)
    expand = _row_operand if axis == 1 else _col_operand

    def compute(src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        if src0.valid == dst.valid or src1.valid != dst.valid:
            apply(op, dst, function, src0.over(rows, cols), expand(src1, rows, cols))
        else:
            apply(op, dst, function, expand(src0, rows, cols), src1)

    return compute


@implements("pto.trowexpand", "pto.tcolexpand")
@tile_operation
def expand(op: TileOperation) -> Compute:
    """The first element of each row, or the first row, over the whole destination."""
    op.same_format("src")
    by_row = op.kind == "trowexpand"

    def compute(src: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        copy(op, dst, src.over(rows, 1) if by_row else src.over(1, cols))

    return compute
