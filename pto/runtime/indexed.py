"""`pto.mgather` and `pto.mscatter`: rows or elements of global memory by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.errors import ArgumentFault, Fault
from pto.runtime.memory import View
from pto.runtime.operands import enum_attribute, operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile
from pto.runtime.transfer import as_matrix

Array = NDArray[Any]


def _by_row(op: Operation, index: Tile, tile: Tile) -> bool:
    """Whether an index stands for a row; where nothing says so, the shape of the indices does."""
    written = enum_attribute(op, "coalesce", choices=("row", "elem"))
    if written is not None:
        return written == "row"
    return index.valid != tile.valid and index.valid_rows * index.valid_cols == tile.valid_rows


def _positions(index: Tile, tile: Tile, by_row: bool) -> Array:
    """The indices: one a row, or one an element."""
    count = index.valid_rows * index.valid_cols
    if by_row and count == tile.valid_rows:
        return index.values().reshape(-1).astype(np.int64)
    if not by_row and index.valid == tile.valid:
        return index.values().astype(np.int64)
    raise Fault(
        f"{index.valid_rows}x{index.valid_cols} indices for {tile.valid_rows}x{tile.valid_cols}"
        f" elements by {'row' if by_row else 'element'} [valid-region]"
    )


_READ_OUTSIDE = ("undefined", "clamp", "wrap", "zero")
_WRITE_OUTSIDE = ("undefined", "clamp", "wrap", "skip")
"""What becomes of an index outside of the table; undefined is an error here."""


def _inside(positions: Array, capacity: int, policy: str) -> tuple[Array, Array]:
    """Positions within the table, and which of them were. Raises Fault for one outside where the
    operation does not say what becomes of it."""
    held = (positions >= 0) & (positions < capacity)
    if held.all():
        return positions, held
    if policy == "clamp":
        return positions.clip(0, capacity - 1), np.ones_like(held)
    if policy == "wrap":
        return positions % capacity, np.ones_like(held)
    if policy in ("zero", "skip"):
        return np.where(held, positions, 0), held
    raise Fault(f"index {positions[~held].flat[0]} into a table of {capacity}")


def _table(items: Array, by_row: bool, columns: int) -> Array:
    """The table as rows of `columns` items, or as one row of items."""
    if not by_row:
        return items.reshape(-1)
    rows = as_matrix(items, col_major=False)
    if rows.shape[1] < columns:
        raise Fault(f"rows of {rows.shape[1]} elements for {columns} [valid-region]")
    return rows[:, :columns]


@emits("pto.mgather", attributes=("coalesce", "gatherOob"))
def _gather(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    table, index = compiler.slots(operands.ins[:2])
    dst, bits = operands.target(compiler), tile_layout(operands.outs[0]).element.bits
    policy = enum_attribute(op, "gatherOob", choices=_READ_OUTSIDE) or "undefined"

    def step(frame: Frame) -> None:
        view, result = frame[table], dst(frame)
        by_row = _by_row(op, frame[index], result)
        positions = _positions(frame[index], result, by_row)
        rows = _table(view.read().view(bits), by_row, result.data.shape[1])
        positions, held = _inside(positions, len(rows), policy)
        taken = rows[positions]
        taken[~held] = 0
        np.copyto(result.write().view(bits), taken)

    return step


_COMBINE: dict[str, Callable[[Array, Any, Array], None]] = {
    "none": lambda table, where, data: table.__setitem__(where, data),
    "add": np.add.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


@emits("pto.mscatter", attributes=("coalesce", "scatterOob", "scatterAtomicOp", "scatterConflict"))
def _scatter(op: Operation, compiler: Compiler) -> Step:
    """Of several writes to one place the last one stays, in row-major order of the source."""
    operands = operands_of(op)
    src, index = compiler.slots(operands.ins[:2])
    table = compiler.slot(operands.outs[0])
    policy = enum_attribute(op, "scatterOob", choices=_WRITE_OUTSIDE) or "undefined"
    enum_attribute(op, "scatterConflict", choices=("default", "last"))
    combine = _COMBINE[enum_attribute(op, "scatterAtomicOp", choices=_COMBINE) or "none"]

    def step(frame: Frame) -> None:
        source: Tile = frame[src]
        view: View = frame[table]
        if not view.pointer.buffer.given:
            raise ArgumentFault(f"scatters into {view.name}, for which no array was given")
        by_row = _by_row(op, frame[index], source)
        positions = _positions(frame[index], source, by_row)
        items = view.write()
        if not by_row and not items.flags.c_contiguous:
            raise Fault("scattering elements into a strided view is not executed here")
        rows = _table(items, by_row, source.data.shape[1])
        positions, held = _inside(positions, len(rows), policy)
        combine(rows, positions[held], source.read().view(rows.dtype)[held])

    return step
