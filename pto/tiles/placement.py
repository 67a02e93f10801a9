"""Where tiles lie in memory, as far as constants tell, and whether they overlap.

A tile has a known place if its `alloc_tile` has a constant `addr`, or none, so that it has memory
of its own; so has a window at constant offsets of such a tile. Everything else is unknown, and
unknown is never guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from pto.dialect.ops import AllocTileOp, SubviewOp
from pto.dialect.types import AnyTile, TileBufType, elements_per_column
from pto.targets.vector_unit import REPEAT_BYTES
from pto.tiles.geometry import bits_per_column, constant, is_plain, row_stride


@dataclass(frozen=True, slots=True)
class Placement:
    """The valid region of a row-major tile, in bytes of the memory that it lies in."""

    start: int
    rows: int
    row_bytes: int
    """Bytes of the valid columns of one row."""
    stride: int
    """Bytes from one row to the next."""
    element_bits: int
    cols: int
    """Valid elements of a row; a column of packed pairs is two (spec F2)."""
    memory: object = None
    """What the addresses count from: a tile with memory of its own, None for the unified buffer."""

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + (self.rows - 1) * self.stride + self.row_bytes

    def text(self) -> str:
        """`0..1023`."""
        return f"{self.start}..{self.end - 1}"

    def shares_memory(self, other: Placement) -> bool:
        """Whether the two lie in one memory, so that their addresses can be compared."""
        return self.memory == other.memory

    def first(self, size: int) -> Placement:
        """The first `size` bytes, as one row."""
        return replace(self, rows=1, row_bytes=size, stride=size)

    def columns(self, first: int, last: int) -> Placement:
        """The columns from `first` to `last` (exclusive) of all rows."""
        bits = self.element_bits
        start = self.start + first * bits // 8
        size = -(-(last - first) * bits // 8)
        return replace(self, start=start, row_bytes=size, cols=last - first)

    def meets(self, other: Placement) -> bool:
        """Whether the two share a byte; the gap between two rows belongs to neither tile."""
        return self.shares_memory(other) and any(
            other._has_any(start, start + self.row_bytes) for start in self._row_starts()
        )

    def overwrites(self, src: Placement, through_bits: int = 0) -> bool:
        """Whether a conversion of `src` into this place writes over elements not yet read.

        Elements are converted in order, rows from the first. For a wider destination each element
        counts: the documents warn of any overlap there. Otherwise a whole repeat is read before it
        is written, of elements as wide as the widest step of the conversion: `through_bits` is that
        of a type that it goes through (spec S10).
        """
        if not self.shares_memory(src):
            return False
        widest = max(self.element_bits, src.element_bits, through_bits)
        step = 1 if self.element_bits > src.element_bits else REPEAT_BYTES * 8 // widest
        return any(
            src._has_any(start, start + self.row_bytes, first_row=row + 1)
            or self._overwrites_its_row(src, row, step)
            for row, start in enumerate(self._row_starts())
        )

    def destroys(self, src: Placement, through_bits: int, tails_last: bool) -> bool:
        """Whether a conversion of `src` into this place destroys some of it before it is read.

        `through_bits` is the width of a type that it goes through, else 0; `tails_last` says that
        what is left of the rows is read after all whole repeats (spec L2).
        """
        return self.overwrites(src, through_bits) or (tails_last and self.overwrites_tails(src))

    def overwrites_tails(self, src: Placement) -> bool:
        """Whether whole repeats, written for all rows first, write over what is left of a row of
        `src`, which a2a3 reads after them (spec L2)."""
        repeat = REPEAT_BYTES * 8 // max(self.element_bits, src.element_bits)
        head = src.cols // repeat * repeat
        return 0 < head < src.cols and self.columns(0, head).meets(src.columns(head, src.cols))

    def _row_starts(self) -> range:
        return range(self.start, self.start + self.rows * self.stride, self.stride)

    def _has_any(self, start: int, end: int, first_row: int = 0) -> bool:
        """Whether the rows from `first_row` on have a byte in this range."""
        row = max(first_row, (start - self.start - self.row_bytes) // self.stride + 1)
        return row < self.rows and self.start + row * self.stride < end

    def _overwrites_its_row(self, src: Placement, row: int, step: int) -> bool:
        """Whether a step writes over what later steps of the same row read, in bits.

        The end of step k's write and the start of the next read are linear in k, and the write must
        start before the row's end, which holds up to some k: so the extremes decide.
        """
        write = 8 * (self.start + row * self.stride)
        read = 8 * (src.start + row * src.stride)
        read_end = read + src.cols * src.element_bits
        written, consumed = step * self.element_bits, step * src.element_bits
        last = min((src.cols - 1) // step - 1, (read_end - 1 - write) // written)
        return any(
            0 <= k <= last and write + (k + 1) * written > read + (k + 1) * consumed
            for k in (0, last)
        )


def place(value: SSAValue) -> Placement | None:
    """The place of a tile's valid region; None if it is empty or any of it is not a constant."""
    tile = value.type
    if not isinstance(tile, AnyTile) or tile.valid_rows is None:
        return None
    bits = bits_per_column(tile.dtype)
    found = _start(value)
    if bits is None or found is None or not tile.valid_cols or not tile.valid_rows:
        return None
    if not is_plain(tile.data):
        return None
    elements = elements_per_column(tile.dtype)
    memory, start = found
    return Placement(
        start=start,
        rows=tile.valid_rows,
        row_bytes=-(-tile.valid_cols * bits // 8),
        stride=row_stride(value) * bits // 8,
        element_bits=bits // elements,
        cols=tile.valid_cols * elements,
        memory=memory,
    )


def _start(value: SSAValue) -> tuple[SSAValue | None, int] | None:
    """The memory and the first byte of a tile; None where its address is not a constant."""
    owner = value.owner
    if isinstance(owner, AllocTileOp):
        if owner.addr is None:
            return value, 0
        address = constant(owner.addr)
        return None if address is None else (None, address)
    if not isinstance(owner, SubviewOp) or len(owner.offsets) != 2:
        return None
    parent = _start(owner.source)
    row, col = (constant(offset) for offset in owner.offsets)
    type_ = owner.source.type
    if parent is None or row is None or col is None or not isinstance(type_, TileBufType):
        return None
    bits = bits_per_column(type_.dtype)
    if bits is None:
        return None
    memory, start = parent
    return memory, start + (row * row_stride(owner.source) + col) * bits // 8
