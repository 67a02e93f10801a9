"""Where tiles lie in memory, as far as constants tell.

A tile has a known place if its `alloc_tile` has a constant `addr`, or none, so that it has memory
of its own; so has a window at constant offsets of such a tile. Everything else is unknown, and
unknown is never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.arith import ConstantOp, IndexCastOp, SelectOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from pto.dialect.ops import AllocTileOp, SubviewOp
from pto.dialect.types import TileBufType, TileType, element_format, elements_per_column

AnyTile = TileBufType | TileType

BLOCK_BYTES = 32
REPEAT_BYTES = 256
_BITS = {
    **dict.fromkeys(("f64", "i64", "ui64", "c64"), 64),
    **dict.fromkeys(("f32", "i32", "ui32", "c32"), 32),
    **dict.fromkeys(("f16", "bf16", "i16", "ui16"), 16),
    **dict.fromkeys(("f8e4m3fn", "f8e5m2", "f8e8m0", "hif8", "i8", "ui8"), 8),
    **dict.fromkeys(("f4e2m1", "f4e1m2", "i4"), 4),
}


def bits_per_column(dtype: Attribute) -> int | None:
    """Bits that one column of a tile of `dtype` takes in memory: 8 for packed pairs (spec F2)."""
    name = element_format(dtype)
    return None if name is None else _BITS[name] * elements_per_column(dtype)


def tile_bytes(tile: AnyTile) -> int | None:
    """Bytes of a tile of its declared shape; None for an element type of unknown size."""
    bits = bits_per_column(tile.dtype)
    return None if bits is None else tile.rows * (-(-tile.cols * bits // 8))


def grown(tile: TileBufType, size: int) -> TileBufType | None:
    """The tile with enough columns for `size` bytes, in whole 32-byte blocks, its rows and element
    type unchanged; None for a layout or an element type that this cannot be said of."""
    bits = bits_per_column(tile.dtype)
    if bits is None or tile.rows == 0:
        return None
    if tile.blayout != "row_major" or tile.slayout != "none_box":
        return None
    row_bytes = -(-size // (tile.rows * BLOCK_BYTES)) * BLOCK_BYTES
    cols = row_bytes * 8 // bits
    valid_cols = cols if tile.valid_cols == tile.cols else tile.valid_cols
    return TileBufType(replace(tile.data, cols=cols, valid_cols=valid_cols))


def constant(value: SSAValue) -> int | None:
    """The integer that a value is known to be."""
    owner = value.owner
    if isinstance(owner, IndexCastOp):
        return constant(owner.input)
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def root(value: SSAValue) -> SSAValue:
    """The tile whose memory a chain of windows shares."""
    while isinstance(value.owner, SubviewOp):
        value = value.owner.source
    return value


def row_stride(value: SSAValue) -> int:
    """Elements from one row of a tile to the next, or from one column to the next where it is in
    column-major order: a window keeps those of the tile that it is cut out of."""
    type_ = root(value).type
    if not isinstance(type_, TileBufType | TileType):
        type_ = value.type
    assert isinstance(type_, TileBufType | TileType)
    return type_.rows if type_.blayout == "col_major" else type_.cols


def stride_is_known(value: SSAValue) -> bool:
    """Whether `row_stride` is certain: a value that comes from elsewhere, through a call or a
    region, may be a window there, which its type does not tell."""
    source = root(value)
    owner = source.owner
    if isinstance(owner, Operation):
        passes_on = owner.regions or isinstance(owner, CallOp | SelectOp)
        return not (passes_on and _makes_windows(owner))
    function = owner.parent_op()
    if not isinstance(function, FuncOp) or owner.prev_block is not None:
        return function is None or not _makes_windows(function)
    assert isinstance(source, BlockArgument)
    given = [call.arguments[source.index] for call in _calls_of(function)]
    return all(stride_is_known(tile) and row_stride(tile) == row_stride(source) for tile in given)


def _outermost(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def _makes_windows(op: Operation) -> bool:
    return any(isinstance(inner, SubviewOp) for inner in _outermost(op).walk())


def _calls_of(function: FuncOp) -> Iterator[CallOp]:
    for op in _outermost(function).walk():
        if isinstance(op, CallOp) and op.callee.root_reference == function.sym_name:
            yield op


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
    if not isinstance(tile, TileBufType | TileType) or tile.valid_rows is None:
        return None
    bits = bits_per_column(tile.dtype)
    found = _start(value)
    if bits is None or found is None or not tile.valid_cols or not tile.valid_rows:
        return None
    if tile.blayout != "row_major" or tile.slayout != "none_box":
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
