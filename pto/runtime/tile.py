"""Tiles: typed, strided views on a local memory, with a valid region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness

from pto.dialect.type_records import Tile as TileDescription
from pto.dialect.types import AnyTile
from pto.runtime.elements import Element, element_of, rounded
from pto.runtime.errors import RuntimeFault, region_fault, unsupported
from pto.runtime.memory import Memory

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the elements of a tile of one type lie, strides in bytes; extents in stored items."""

    element: Element
    rows: int
    """Declared rows."""
    cols: int
    """Declared columns, as the type counts them."""
    row_stride: int
    col_stride: int
    space: str
    """Memory space, `vec` for the unified buffer."""
    description: TileDescription

    @property
    def size(self) -> int:
        """Bytes of the whole tile."""
        return self.rows * self.element.stored(self.cols) * self.element.size

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie one after the other: not so in a window of a wider tile."""
        if self.is_col_major:
            return self.cols == 1 or self.col_stride == self.size // self.cols
        return self.rows == 1 or self.row_stride == self.size // self.rows

    @property
    def is_col_major(self) -> bool:
        """Whether neighbours in a column are neighbours in memory."""
        return self.description.blayout == "col_major"

    @property
    def is_boxed(self) -> bool:
        """Whether the elements lie in fractals, which no strides describe."""
        return self.description.slayout != "none_box"


@cache
def layout_of(type_: AnyTile) -> Layout:
    """The layout of a tile type. Raises RuntimeFault for element types that are not supported."""
    tile = type_.data
    element = element_of(tile.dtype)
    stored_cols = element.stored(tile.cols)
    if tile.blayout == "col_major":
        if element.is_packed and not element.counts_pairs:
            raise unsupported(f"a col_major tile of {element.text}")
        row_stride, col_stride = element.size, tile.rows * element.size
    else:
        row_stride, col_stride = stored_cols * element.size, element.size
    return Layout(element, tile.rows, tile.cols, row_stride, col_stride, tile.loc, tile)


@cache
def window_layout(type_layout: Layout, parent: Layout) -> Layout:
    """The layout of a window of that type: its elements are as far apart as the parent's."""
    return replace(type_layout, row_stride=parent.row_stride, col_stride=parent.col_stride)


@cache
def byte_layout(layout: Layout) -> Layout:
    """The same rows, as bytes."""
    columns = layout.element.stored(layout.cols) * layout.element.size
    return Layout(
        element=element_of(IntegerType(8, Signedness.UNSIGNED)),
        rows=layout.rows,
        cols=columns,
        row_stride=layout.row_stride,
        col_stride=1,
        space=layout.space,
        description=layout.description,
    )


class Tile:
    """A tile: `data` is its valid region, of shape (valid rows, valid columns in stored items).

    Reading goes through `read`, which checks that the region has been written, writing through
    `write`, which notes that it is. Written memory stays written, so that a tile which passed once
    (`ready`) is not looked at again. Operations on corresponding elements read `lanes` instead and
    pass on what is `poison`.
    """

    __slots__ = (
        "beyond",
        "data",
        "element",
        "layout",
        "memory",
        "offset",
        "others",
        "parts",
        "ready",
        "valid_cols",
        "valid_rows",
    )

    def __init__(
        self, layout: Layout, memory: Memory, offset: int, valid_rows: int, valid_cols: int
    ) -> None:
        if not (0 <= valid_rows <= layout.rows and 0 <= valid_cols <= layout.cols):
            raise RuntimeFault(
                f"valid region {valid_rows}x{valid_cols} of a tile of {layout.rows}x{layout.cols}"
            )
        if layout.is_boxed:
            raise unsupported(f"a tile in fractals ({layout.description.compact_text()})")
        element = layout.element
        self.layout = layout
        self.element = element
        self.memory = memory
        self.offset = offset
        self.valid_rows = valid_rows
        self.valid_cols = valid_cols
        self.ready = False
        self.beyond: Tile | None = None
        self.others: dict[tuple[int, int], Tile] = {}
        self.parts: dict[tuple[Layout, int, int, int], Tile] = {}
        strides = (layout.row_stride, layout.col_stride)
        self._check_range(valid_rows, element.stored(valid_cols), strides)
        self.data: Array = np.ndarray(
            (valid_rows, element.stored(valid_cols)), element.storage, memory.data, offset, strides
        )

    def _check_range(self, rows: int, cols: int, strides: tuple[int, int]) -> None:
        if not rows or not cols:
            return
        last = (rows - 1) * strides[0] + (cols - 1) * strides[1] + self.element.size
        if self.offset < 0 or self.offset + last > self.memory.size:
            raise RuntimeFault(
                f"a tile at bytes {self.offset} to {self.offset + last} of {self.memory.name},"
                f" which has {self.memory.size}"
            )

    @property
    def valid(self) -> tuple[int, int]:
        """Valid rows and columns."""
        return self.valid_rows, self.valid_cols

    @property
    def logical(self) -> tuple[int, int]:
        """Valid rows and elements in a valid row: pairs count twice (spec F2)."""
        return self.valid_rows, self.element.logical(self.valid_cols)

    def read(self) -> Array:
        """The valid region. Raises RuntimeFault where a part was never written or is poison."""
        if (not self.ready or self.memory.poison is not None) and (
            poison := self.poison()
        ) is not None:
            raise self._fault("are poison", poison, *filter(None, [self.memory.cause]))
        return self.data

    def write(self) -> Array:
        """The valid region, to be overwritten as a whole."""
        if not self.ready:
            self._shadow(self.memory.written)[...] = True
            self.ready = True
        if self.memory.poison is not None:
            self._shadow(self.memory.poison)[...] = False
        return self.data

    def poison(self) -> Array | None:
        """Which stored items of the valid region are poison, None for none.

        Raises RuntimeFault where a part of the region was never written. What lies beyond the
        region that the tile was taken from (`over`) is poison.
        """
        if self.beyond is not None:
            outside = np.ones(self.data.shape, bool)
            inner = self.beyond.poison()
            outside[: self.beyond.valid_rows, : self.beyond.data.shape[1]] = (
                False if inner is None else inner
            )
            return outside
        if not self.ready:
            self._check_written()
        if self.memory.poison is None:
            return None
        found = np.asarray(self._shadow(self.memory.poison).any(axis=2))
        return found if found.any() else None

    def mark_poison(self, items: Array, cause: str) -> None:
        """Notes that these items of the valid region, which was just written, are poison."""
        self._shadow(self.memory.poison_flags())[...] = items[..., None]
        self.memory.cause = cause

    def values(self) -> Array:
        """The valid region in the type that arithmetic is done in: a view where it can be.

        Raises RuntimeFault as `read` does.
        """
        self.read()
        return self.lanes()

    def lanes(self) -> Array:
        """`values`, whether they are poison or not."""
        element = self.element
        if not element.computes:
            raise unsupported(f"arithmetic on {element.text}")
        return self.data if element.is_native else self.data.astype(element.work)

    def assign(self, values: Array) -> None:
        """Writes the valid region, rounded to nearest even where the element type is narrower."""
        self.write()[...] = rounded(values, self.element.storage)

    def resized(self, valid_rows: int, valid_cols: int) -> Tile:
        """The same memory with other valid extents."""
        key = (valid_rows, valid_cols)
        if (other := self.others.get(key)) is None:
            other = Tile(self.layout, self.memory, self.offset, valid_rows, valid_cols)
            self.others[key] = other
        return other

    def over(self, rows: int, cols: int) -> Tile:
        """The tile with the valid region `rows` x `cols`, the domain of an operation.

        What lies beyond the tile's own valid region is poison. Raises RuntimeFault where it lies
        beyond the tile.
        """
        if self.valid_rows == rows and self.valid_cols == cols:
            return self
        if self.valid_rows >= rows and self.valid_cols >= cols:
            return self.resized(rows, cols)
        if rows > self.layout.rows or cols > self.layout.cols:
            raise region_fault(
                f"{rows}x{cols} elements are read of a source of {self.layout.rows}x"
                f"{self.layout.cols}"
            )
        wider = Tile(self.layout, self.memory, self.offset, rows, cols)
        wider.beyond = self.resized(min(rows, self.valid_rows), min(cols, self.valid_cols))
        return wider

    def as_bytes(self, count: int) -> Tile:
        """The first `count` bytes of each valid row of a row_major tile, as a tile of bytes."""
        layout = self.layout
        if layout.is_col_major and self.valid_rows > 1:
            raise unsupported("a row of bytes of a col_major tile")
        return self.part(byte_layout(layout), self.offset, self.valid_rows, count)

    def window(
        self, type_layout: Layout, row: int, col: int, valid_rows: int, valid_cols: int
    ) -> Tile:
        """The window of that type whose first element is [row, col]."""
        parent = self.layout
        offset = (
            self.offset + row * parent.row_stride + self.element.stored(col) * parent.col_stride
        )
        return self.part(window_layout(type_layout, parent), offset, valid_rows, valid_cols)

    def part(self, layout: Layout, offset: int, valid_rows: int, valid_cols: int) -> Tile:
        """A tile of another layout in the same memory, at a byte offset of it."""
        key = (layout, offset, valid_rows, valid_cols)
        if (part := self.parts.get(key)) is None:
            part = Tile(layout, self.memory, offset, valid_rows, valid_cols)
            self.parts[key] = part
        return part

    def item(self, index: int, *, store: bool) -> Array:
        """A view of the stored item at a linear index of the tile's memory, of shape (1,)."""
        size = self.element.size
        if not 0 <= index < self.layout.size // size:
            raise RuntimeFault(f"element {index} of a tile of {self.layout.size // size}")
        start = self.offset + index * size
        bytes_, poison = slice(start, start + size), self.memory.poison
        if store:
            self.memory.written[bytes_] = True
            if poison is not None:
                poison[bytes_] = False
        elif not self.memory.written[bytes_].all():
            raise RuntimeFault(f"reads element {index}, which was never written", self._note())
        elif poison is not None and poison[bytes_].any():
            raise RuntimeFault(f"reads element {index}, which is poison", self.memory.cause)
        return np.ndarray((1,), self.element.storage, self.memory.data, start)

    def _note(self) -> str:
        return f"the tile is {self.text()}"

    def _shadow(self, flags: Array) -> Array:
        """The flags of the valid region's bytes: rows, columns, bytes of an item."""
        strides = (self.layout.row_stride, self.layout.col_stride, 1)
        shape = (*self.data.shape, self.element.size)
        return np.ndarray(shape, np.bool_, flags, self.offset, strides)

    def _check_written(self) -> None:
        written = np.asarray(self._shadow(self.memory.written).all(axis=2))
        if not written.all():
            raise self._fault("were never written", ~written)
        self.ready = True

    def _fault(self, what: str, items: Array, *causes: str) -> RuntimeFault:
        row, col = (int(n) for n in np.argwhere(items)[0])
        return RuntimeFault(
            f"reads elements that {what}: {int(items.sum())} of {items.size}, the first at row"
            f" {row}, column {col}",
            self._note(),
            *causes,
        )

    def text(self) -> str:
        """`16x64xf32 at byte 4096 of vec`, for messages."""
        kind = f"{self.layout.rows}x{self.layout.cols}x{self.element.text}"
        if self.valid != (self.layout.rows, self.layout.cols):
            kind += f" with {self.valid_rows}x{self.valid_cols} valid"
        return f"{kind} at byte {self.offset} of {self.memory.name}"
