"""Gathering and scattering by index or pattern, in tiles and in global memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.runtime.compiler import Implementations
from pto.runtime.errors import ArgumentFault, RuntimeFault, region_fault, unsupported
from pto.runtime.memory import View
from pto.runtime.ops.load_store import as_matrix
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile
from pto.targets.vector_unit import BLOCK_BYTES

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

# In tiles ----------------------------------------------------------------------------------------


def _linear(tile: Tile) -> Tile:
    """The declared extents of a row_major tile, whose rows follow each other."""
    whole = tile.resized(tile.layout.rows, tile.layout.cols)
    if not whole.data.flags.c_contiguous:
        raise unsupported("an index into a window of a tile")
    return whole


def _check_index(index: Array, count: int) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= count):
        bad = index[(index < 0) | (index >= count)].flat[0]
        raise RuntimeFault(f"index {bad} into a tile of {count} elements")


def gather(source: Tile, index: Array) -> Array:
    """Elements of a tile by position in its memory.

    Raises RuntimeFault where one was not written, or is poison.
    """
    whole = _linear(source)
    _check_index(index, whole.data.size)
    memory, size = source.memory, source.element.size
    first = source.offset + index.astype(np.int64) * size
    if not whole.ready and not all(memory.written[first + byte].all() for byte in range(size)):
        raise RuntimeFault(
            "gathers elements that were never written", f"the tile is {source.text()}"
        )
    if memory.poison is not None and memory.poison[first].any():
        raise RuntimeFault("gathers elements that are poison", memory.cause)
    result: Array = whole.data.reshape(-1)[index]
    return result


_PATTERNS = {
    "p0101": (2, 0),
    "p1010": (2, 1),
    "p0001": (4, 0),
    "p0010": (4, 1),
    "p0100": (4, 2),
    "p1000": (4, 3),
    "p1111": (1, 0),
}
"""Step and first column (or row) that a mask pattern selects: its lowest digit is column 0."""


def _pattern(op: TileOperation) -> tuple[int, int] | None:
    """Step and first place of the mask pattern, None without one."""
    name = op.choice("maskPattern", "mask_pattern", choices=_PATTERNS)
    return None if name is None else _PATTERNS[name]


@implements("pto.tgather", attributes=("maskPattern", "mask_pattern", "axis"))
@tile_operation
def gather_by_index(op: TileOperation) -> Compute:
    """Elements by position in the source's memory, or those that a pattern selects."""
    op.same_width()
    if (pattern := _pattern(op)) is not None:
        return _gather_by_pattern(*pattern, op.string("axis", ("row", "col")))
    if "index" not in op or len(op.outs) > 1:
        raise unsupported("gathering by comparison")

    def compute(src: Tile, index: Tile, dst: Tile) -> None:
        gathered = gather(src, index.over(*dst.valid).values())
        np.copyto(dst.write(), gathered.view(dst.element.storage))

    return compute


def _gather_by_pattern(every: int, first: int, axis: str | None) -> Compute:
    """The selected columns of all rows (axis `row`), or the selected rows (axis `col`). Without an
    axis those columns fill the destination one after the other, whatever its shape."""

    def compute(src: Tile, dst: Tile) -> None:
        held = src.read()
        chosen = held[first::every] if axis == "col" else held[:, first::every]
        if chosen.size != dst.data.size or (axis and chosen.shape != dst.data.shape):
            selected, shape = ("x".join(map(str, a.shape)) for a in (chosen, dst.data))
            raise region_fault(f"selects {selected} elements for {shape}")
        data = chosen.reshape(-1).view(dst.element.storage).reshape(dst.data.shape)
        np.copyto(dst.write(), data)

    return compute


@implements("pto.tgatherb")
@tile_operation
def gather_blocks(op: TileOperation) -> Compute:
    """Blocks of 32 bytes at byte offsets from the source's start."""
    size = op.same_width().size
    per_block = BLOCK_BYTES // size

    def compute(src: Tile, offsets: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        if cols % per_block:
            raise RuntimeFault(f"{cols} valid columns are not whole blocks of {BLOCK_BYTES} bytes")
        starts = offsets.over(rows, cols // per_block).values().astype(np.int64)
        if np.any(starts % size):
            raise RuntimeFault("an offset in the middle of an element")
        index = starts[..., None] // size + np.arange(per_block)
        gathered = gather(src, index).reshape(rows, cols)
        np.copyto(dst.write(), gathered.view(dst.element.storage))

    return compute


@implements("pto.tscatter", attributes=("maskPattern", "mask_pattern", "axis"))
@tile_operation
def scatter_by_index(op: TileOperation) -> Compute:
    """The source's elements to positions of the destination, the last of equal ones staying."""
    if _pattern(op) is not None or "index" not in op:
        raise unsupported("scattering by a mask pattern")
    op.same_width()

    def compute(src: Tile, index: Tile, dst: Tile) -> None:
        positions, whole, memory = index.values(), _linear(dst), dst.memory
        _check_index(positions, whole.data.size)
        data = src.over(*positions.shape).read().view(dst.element.storage)
        whole.data.reshape(-1)[positions] = data
        starts = dst.offset + positions.astype(np.int64) * dst.element.size
        for byte in range(dst.element.size):
            memory.written[starts + byte] = True
            if memory.poison is not None:
                memory.poison[starts + byte] = False

    return compute


# In global memory --------------------------------------------------------------------------------


def _is_by_row(written: str | None, index: Tile, tile: Tile) -> bool:
    """Whether an index stands for a row; where nothing says so, the shape of the indices does."""
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
    raise region_fault(
        f"{index.valid_rows}x{index.valid_cols} indices for {tile.valid_rows}x{tile.valid_cols}"
        f" elements by {'row' if by_row else 'element'}"
    )


_READ_OUTSIDE = ("undefined", "clamp", "wrap", "zero")
_WRITE_OUTSIDE = ("undefined", "clamp", "wrap", "skip")
"""What becomes of an index outside of the table; undefined is an error here."""


def _inside(positions: Array, capacity: int, policy: str) -> tuple[Array, Array]:
    """Positions within the table, and which of them were. Raises RuntimeFault for one outside where
    the operation does not say what becomes of it."""
    held = (positions >= 0) & (positions < capacity)
    if held.all():
        return positions, held
    if policy == "undefined" or not capacity:
        raise RuntimeFault(f"index {positions[~held].flat[0]} into a table of {capacity}")
    if policy == "clamp":
        return positions.clip(0, capacity - 1), np.ones_like(held)
    if policy == "wrap":
        return positions % capacity, np.ones_like(held)
    return np.where(held, positions, 0), held


def _table(items: Array, by_row: bool, columns: int) -> Array:
    """The table as rows of `columns` items, or as one row of items."""
    if not by_row:
        return items.reshape(-1)
    rows = as_matrix(items, col_major=False)
    if rows.shape[1] < columns:
        raise region_fault(f"rows of {rows.shape[1]} elements for {columns}")
    return rows[:, :columns]


_COALESCE = ("row", "elem")


@implements("pto.mgather", attributes=("coalesce", "gatherOob"))
@tile_operation
def gather_from_memory(op: TileOperation) -> Compute:
    """Rows or elements of a view, by index."""
    bits = op.element("dst").bits
    coalesce = op.choice("coalesce", choices=_COALESCE)
    policy = op.choice("gatherOob", choices=_READ_OUTSIDE) or "undefined"

    def compute(src: View, index: Tile, dst: Tile) -> None:
        by_row = _is_by_row(coalesce, index, dst)
        positions = _positions(index, dst, by_row)
        rows = _table(src.read().view(bits), by_row, dst.data.shape[1])
        positions, held = _inside(positions, len(rows), policy)
        taken = rows[positions]
        taken[~held] = 0
        np.copyto(dst.write().view(bits), taken)

    return compute


_COMBINE: dict[str, Callable[[Array, Any, Array], None]] = {
    "none": lambda table, where, data: table.__setitem__(where, data),
    "add": np.add.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}


@implements(
    "pto.mscatter", attributes=("coalesce", "scatterOob", "scatterAtomicOp", "scatterConflict")
)
@tile_operation
def scatter_to_memory(op: TileOperation) -> Compute:
    """Of several writes to one place the last one stays, in row-major order of the source."""
    op.layout("src")
    coalesce = op.choice("coalesce", choices=_COALESCE)
    policy = op.choice("scatterOob", choices=_WRITE_OUTSIDE) or "undefined"
    op.choice("scatterConflict", choices=("default", "last"))
    combine = _COMBINE[op.choice("scatterAtomicOp", choices=_COMBINE) or "none"]

    def compute(src: Tile, index: Tile, dst: View) -> None:
        if not dst.pointer.buffer.given:
            raise ArgumentFault(f"scatters into {dst.name}, for which no array was given")
        by_row = _is_by_row(coalesce, index, src)
        positions = _positions(index, src, by_row)
        items = dst.write()
        if not by_row and not items.flags.c_contiguous:
            raise unsupported("scattering elements into a strided view")
        rows = _table(items, by_row, src.data.shape[1])
        positions, held = _inside(positions, len(rows), policy)
        combine(rows, positions[held], src.read().view(rows.dtype)[held])

    return compute
