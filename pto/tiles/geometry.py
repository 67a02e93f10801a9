"""Bytes and strides of tiles, as their types and the windows cut out of them say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.arith import ConstantOp, IndexCastOp, SelectOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from pto.dialect.ops import SubviewOp
from pto.dialect.type_records import Tile
from pto.dialect.types import AnyTile, TileBufType, element_format, elements_per_column
from pto.targets.vector_unit import BLOCK_BYTES


def bits_per_column(dtype: Attribute) -> int | None:
    """Bits that one column of a tile of `dtype` takes in memory: 8 for packed pairs (spec F2)."""
    fmt = element_format(dtype)
    return None if fmt is None else fmt.memory_bits * elements_per_column(dtype)


def tile_bytes(tile: AnyTile) -> int | None:
    """Bytes of a tile of its declared shape; None for an element type of unknown size."""
    bits = bits_per_column(tile.dtype)
    return None if bits is None else tile.rows * (-(-tile.cols * bits // 8))


def is_plain(tile: Tile) -> bool:
    """Whether rows follow each other, without fractals."""
    return tile.blayout == "row_major" and tile.slayout == "none_box"


def up_to_blocks(size: int) -> int:
    """The bytes of the whole 32-byte blocks that hold `size` bytes."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def grown(tile: TileBufType, size: int) -> TileBufType | None:
    """The tile with enough columns for `size` bytes, in whole 32-byte blocks, its rows and element
    type unchanged; None for a layout or an element type that this cannot be said of."""
    bits = bits_per_column(tile.dtype)
    if bits is None or tile.rows == 0 or not is_plain(tile.data):
        return None
    cols = up_to_blocks(-(-size // tile.rows)) * 8 // bits
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
    if not isinstance(type_, AnyTile):
        type_ = value.type
    assert isinstance(type_, AnyTile)
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
