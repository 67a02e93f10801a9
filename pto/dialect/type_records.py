"""What the types of the pto dialect say, as frozen records.

Two spellings of a type are one value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir import Attribute

DEFAULT_FRACTAL = 512

Extent = int | None
"""A static extent, or None for one that is known only at run time (written `?`)."""


def extent_text(extent: Extent) -> str:
    """The extent as PTO writes it."""
    return "?" if extent is None else str(extent)


def dims(shape: tuple[Extent, ...]) -> str:
    """The shape as PTO writes it: `16x?x64`."""
    return "x".join(map(extent_text, shape))


@lru_cache(maxsize=4096)
def type_text(attr: Attribute) -> str:
    """The canonical text of a type or attribute."""
    return str(attr)


@dataclass(frozen=True)
class Tile:
    """A two-dimensional tile in a local memory: `!pto.tile_buf`, `!pto.tile`.

    `rows` and `cols` are in elements; tiles of packed 4-bit floats count pairs (spec F2).
    `valid_rows` and `valid_cols` bound the elements that hold data; None is dynamic.
    """

    loc: str
    """Memory space: vec, mat, left, right, acc, bias or scaling."""
    dtype: Attribute
    """Element type."""
    rows: int
    cols: int
    valid_rows: Extent
    valid_cols: Extent
    blayout: str = "row_major"
    """Block layout: row_major or col_major."""
    slayout: str = "none_box"
    """Layout inside a fractal: none_box, row_major or col_major."""
    fractal: int = DEFAULT_FRACTAL
    """Fractal size in bytes."""
    pad: int = 0
    """Padding value: 0 none, 1 zero, 2 largest, 3 smallest."""
    compact: int = 0

    def compact_text(self) -> str:
        """`vec, 16x64xf32, valid=?x?, pad=1`: what differs from the default is named."""
        parts = [self.loc, f"{self.rows}x{self.cols}x{type_text(self.dtype)}"]
        if (self.valid_rows, self.valid_cols) != (self.rows, self.cols):
            parts.append(f"valid={dims((self.valid_rows, self.valid_cols))}")
        if self.blayout != "row_major":
            parts.append(f"blayout={self.blayout}")
        if self.slayout != "none_box":
            parts.append(f"slayout={self.slayout}")
        if self.fractal != DEFAULT_FRACTAL:
            parts.append(f"fractal={self.fractal}")
        if self.pad:
            parts.append(f"pad={self.pad}")
        if self.compact:
            parts.append(f"compact={self.compact}")
        return ", ".join(parts)

    def long_text(self) -> str:
        """`loc=vec, dtype=f32, rows=16, ...`: every field named."""
        text = (
            f"loc={self.loc}, dtype={type_text(self.dtype)}, rows={self.rows}, cols={self.cols}, "
            f"v_row={extent_text(self.valid_rows)}, v_col={extent_text(self.valid_cols)}, "
            f"blayout={self.blayout}, slayout={self.slayout}, "
            f"fractal={self.fractal}, pad={self.pad}"
        )
        return f"{text}, compact={self.compact}" if self.compact else text


@dataclass(frozen=True)
class MultiTileBuf:
    """`count` tile buffers of one type, one of which is selected at a time."""

    tile: Attribute
    count: int


@dataclass(frozen=True)
class Pointer:
    """The element type behind a pointer and, where written, its memory space (`gm`, `ub`, ...)."""

    dtype: Attribute
    space: str | None = None


@dataclass(frozen=True)
class View:
    """Extents, outermost first (None is dynamic), and element type of a view on global memory."""

    shape: tuple[Extent, ...]
    dtype: Attribute


@dataclass(frozen=True)
class VectorRegister:
    """A register of so many elements of a type."""

    lanes: int
    dtype: Attribute
