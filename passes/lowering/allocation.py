"""Tiles that passes add: where they are allocated, and where they lie."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from pto.dialect.ops import AllocTileOp, segments
from pto.dialect.types import AnyTile, TileBufType, elements_per_column
from pto.passes.common import fail, function_of
from pto.passes.lowering.emitter import Emitter
from pto.targets import Product
from pto.tiles.geometry import constant, tile_bytes, up_to_blocks


def allocate(
    op: Operation,
    type_: TileBufType,
    hint: str | None,
    *,
    like: SSAValue | None = None,
    address: int | None = None,
) -> SSAValue:
    """A tile in front of `op`, at a byte address or wherever the compiler puts it.

    Dynamic valid extents are those of `like`. Raises PassFailedException where that is missing.
    """
    emit = Emitter(op)
    operands = [] if address is None else [emit.constant(address, i64)]
    extents: list[SSAValue] = []
    dynamic = [type_.valid_rows is None, type_.valid_cols is None]
    if any(dynamic):
        if like is None or not isinstance(like.type, AnyTile):
            raise fail(op, "nothing gives the valid extents of its result")
        if dynamic[0]:
            extents.append(emit.valid_extent(like, "rows"))
        if dynamic[1]:
            cols = emit.valid_extent(like, "cols")
            elements = emit.mul(cols, elements_per_column(like.type.dtype))
            extents.append(emit.value(emit.div(elements, elements_per_column(type_.dtype))))
    alloc = AllocTileOp.create(
        operands=[*operands, *extents],
        result_types=[type_],
        properties={"operandSegmentSizes": segments(len(operands), *map(int, dynamic))},
    )
    return emit.insert(alloc, hint).results[0]


def free_address(op: Operation, size: int, beside: list[SSAValue], product: Product) -> int | None:
    """A byte address in the unified buffer for a new tile of `size` bytes.

    None where the tiles `beside` which it is used have no addresses: the compiler places it too.
    Otherwise behind all tiles of the function. Raises PassFailedException where it does not fit, or
    where a tile's address is not a constant.
    """
    if not any(isinstance(t.owner, AllocTileOp) and t.owner.addr is not None for t in beside):
        return None
    function = function_of(op)
    end = 0
    for tile in function.walk() if function is not None else ():
        if isinstance(tile, AllocTileOp) and tile.result.type.loc == "vec":
            end = max(end, _end(op, tile))
    start = up_to_blocks(end)
    if start + size > product.unified_buffer_bytes:
        raise fail(op, f"no room for a tile of {size} bytes behind the others, at byte {start}")
    return start


def _end(op: Operation, tile: AllocTileOp) -> int:
    if tile.addr is None:
        return 0
    start, size = constant(tile.addr), tile_bytes(tile.result.type)
    if start is None or size is None:
        raise fail(op, "cannot place a tile beside one whose address is not a constant")
    return start + size
