"""Tiles: typed, strided views on a local memory, with a valid region."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness

from pto.dialect.types import Tile as TileDescription
from pto.dialect.types import TileBufType, TileType
from pto.runtime.elements import Element, element_of, rounded
from pto.runtime.errors import Fault
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
def layout_of(type_: TileBufType | TileType) -> Layout:
    """The layout of a tile type. Raises Fault for element types that are not executed."""
    tile = type_.data
    element = element_of(tile.dtype)
    stored_cols = element.stored(tile.cols)
    if tile.blayout == "col_major":
        if element.per_byte == 2 and not element.counts_pairs:
            raise Fault(f"a col_major tile of {element.text} is not executed here")
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
    pass on what is `undefined`.
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
            raise Fault(
                f"valid region {valid_rows}x{valid_cols} of a tile of {layout.rows}x{layout.cols}"
            )
        if layout.is_boxed:
            raise Fault(
                f"tiles in fractals ({layout.description.compact_text()}) are not executed here"
            )
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
            raise Fault(
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
        """The valid region. Raises Fault where a part of it was never written or is undefined."""
        if (not self.ready or self.memory.undefined is not None) and (
            undefined := self.undefined()
        ) is not None:
            raise self._fault("undefined", undefined)
        return self.data

    def write(self) -> Array:
        """The valid region, to be overwritten as a whole."""
        if not self.ready:
            self._shadow(self.memory.written)[...] = True
            self.ready = True
        if self.memory.undefined is not None:
            self._shadow(self.memory.undefined)[...] = False
        return self.data

    def undefined(self) -> Array | None:
        """Which stored items of the valid region are undefined, None for none.

        Raises Fault where a part of the region was never written. What lies beyond the region that
        the tile was taken from (`over`) is undefined.
        """
        if self.beyond is not None:
            outside = np.ones(self.data.shape, bool)
            inner = self.beyond.undefined()
            outside[: self.beyond.valid_rows, : self.beyond.data.shape[1]] = (
                False if inner is None else inner
            )
            return outside
        if not self.ready:
            self._check_written()
        if self.memory.undefined is None:
            return None
        found = np.asarray(self._shadow(self.memory.undefined).any(axis=2))
        return found if found.any() else None

    def mark_undefined(self, items: Array, cause: str) -> None:
        """Notes that these items of the valid region, which was just written, are undefined."""
        self._shadow(self.memory.undefined_flags())[...] = items[..., None]
        self.memory.cause = cause

    def values(self) -> Array:
        """The valid region in the type that arithmetic is done in: a view where it can be.

        Raises Fault as `read` does.
        """
        self.read()
        return self.lanes()

    def lanes(self) -> Array:
        """`values`, whether they are defined or not."""
        element = self.element
        if element.per_byte == 2 or element.format.name in ("hif8", "f4e1m2"):
            raise Fault(f"arithmetic on {element.text} is not executed here")
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

        What lies beyond the tile's own valid region is undefined. Raises Fault where it lies beyond
        the tile.
        """
        if self.valid_rows == rows and self.valid_cols == cols:
            return self
        if self.valid_rows >= rows and self.valid_cols >= cols:
            return self.resized(rows, cols)
        if rows > self.layout.rows or cols > self.layout.cols:
            raise Fault(
                f"{rows}x{cols} elements are read of a source of {self.layout.rows}x"
                f"{self.layout.cols} [valid-region]"
            )
        wider = Tile(self.layout, self.memory, self.offset, rows, cols)
        wider.beyond = self.resized(min(rows, self.valid_rows), min(cols, self.valid_cols))
        return wider

    def as_bytes(self, count: int) -> Tile:
        """The first `count` bytes of each valid row of a row_major tile, as a tile of bytes."""
        layout = self.layout
        if layout.is_col_major and self.valid_rows > 1:
            raise Fault("the bytes of a row of a col_major tile are not executed here")
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
            raise Fault(f"element {index} of a tile of {self.layout.size // size}")
        start = self.offset + index * size
        bytes_, undefined = slice(start, start + size), self.memory.undefined
        if store:
            self.memory.written[bytes_] = True
            if undefined is not None:
                undefined[bytes_] = False
        elif not self.memory.written[bytes_].all():
            raise Fault(f"reads element {index}, which was never written", self._note())
        elif undefined is not None and undefined[bytes_].any():
            raise Fault(f"reads element {index}, which is undefined", self.memory.cause)
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
            raise self._fault("never written", ~written)
        self.ready = True

    def _fault(self, what: str, items: Array) -> Fault:
        row, col = (int(n) for n in np.argwhere(items)[0])
        cause = [self.memory.cause] if what == "undefined" and self.memory.cause else []
        return Fault(
            f"reads elements that {'were' if what == 'never written' else 'are'} {what}:"
            f" {int(items.sum())} of {items.size}, the first at row {row}, column {col}",
            self._note(),
            *cause,
        )

    def text(self) -> str:
        """`16x64xf32 at byte 4096 of vec`, for messages."""
        kind = f"{self.layout.rows}x{self.layout.cols}x{self.element.text}"
        if self.valid != (self.layout.rows, self.layout.cols):
            kind += f" with {self.valid_rows}x{self.valid_cols} valid"
        return f"{kind} at byte {self.offset} of {self.memory.name}"
