"""`pto.tcvt`: the conversions of `pto.numerics`, on tiles (spec R, S)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from pto.dialect.ops import TCvtOp
from pto.runtime.compiler import Implementations, Options
from pto.runtime.elements import Element, pack, unpack
from pto.runtime.errors import RuntimeFault, region_fault
from pto.runtime.ops.elementwise import mark, poison_of
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Layout, Tile
from pto.targets import ResolvedConversion, UnknownTarget
from pto.tiles.placement import Placement
from pto.tiles.tmp import tmp_bytes

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


def resolved(op: TCvtOp, options: Options) -> ResolvedConversion:
    """What a conversion means on its target. Raises RuntimeFault where it is illegal there."""
    try:
        product = options.product_for(op)
    except UnknownTarget as error:
        raise RuntimeFault(str(error)) from None
    conversion = op.resolve(product, options.default_saturation)
    assert conversion is not None, "its operands are tiles"
    if (illegal := conversion.illegal) is not None:
        raise RuntimeFault(illegal.message, illegal.advice, id=illegal.id)
    return conversion


@implements("pto.tcvt", attributes=("rmode", "satmode"))
@tile_operation
def convert(op: TileOperation) -> Compute:
    """The conversion of each element."""
    assert isinstance(op.op, TCvtOp)
    source, target = op.element("src"), op.element("dst")
    conversion = resolved(op.op, op.compiler.options)
    run = converter(source, target, conversion)
    packs = source.is_packed or target.is_packed
    uses_tmp = conversion.takes_tmp and conversion.through_i32
    if uses_tmp:
        op.layout("tmp")

    def compute(src: Tile, tmp: Tile | None, dst: Tile) -> None:
        check_extents(src, dst)
        if src.memory is dst.memory:
            check_overlap(src, dst, conversion)
        if uses_tmp and tmp is not None:
            check_tmp(tmp, src, dst)
        poison = None if packs else poison_of((src,))
        run(src.read() if packs else src.data, dst.write())
        if poison is not None:
            mark(op, dst, poison, src)

    return compute


def check_extents(source: Tile, target: Tile) -> None:
    """Raises RuntimeFault unless both valid regions have the same elements (spec V, F2)."""
    if source.logical != target.logical:
        (a, b), (c, d) = source.logical, target.logical
        raise region_fault(f"valid regions differ: source {a}x{b}, destination {c}x{d}")


def check_overlap(source: Tile, target: Tile, conversion: ResolvedConversion) -> None:
    """Raises RuntimeFault where the device would write over elements not yet read (spec V)."""
    src, dst = _place(source), _place(target)
    through_bits, tails_last = conversion.through_bits, conversion.tails_last
    if src is not None and dst is not None and _destroys(dst, src, through_bits, tails_last):
        raise RuntimeFault(
            f"the destination, bytes {dst.text()}, overwrites its source, bytes {src.text()},"
            " before all of it is read",
            id="overlap",
        )


def check_tmp(tmp: Tile, source: Tile, target: Tile) -> None:
    """Raises RuntimeFault where the scratch tile is too small, or lies over what it must not (spec
    T)."""
    needed = _tmp_bytes(source.layout, target.layout, target.valid)
    if needed > tmp.layout.size:
        raise RuntimeFault(
            f"the tmp tile has {tmp.layout.size} bytes, {needed} are needed", id="tmp-small"
        )
    for name, tile in (("source", source), ("destination", target)):
        place = _place(tile)
        if tile.memory is not tmp.memory or place is None or not needed:
            continue
        used = replace(place, start=tmp.offset).first(needed)
        if used.meets(place):
            raise RuntimeFault(
                f"the tmp tile, bytes {used.text()}, overlaps the {name}, bytes {place.text()}",
                id="overlap",
            )


@lru_cache(maxsize=1024)
def _tmp_bytes(source: Layout, target: Layout, valid: tuple[int, int]) -> int:
    rows, cols = valid[::-1] if target.is_col_major else valid
    stride = source.col_stride if source.is_col_major else source.row_stride
    src, dst = source.element, target.element
    return tmp_bytes(src.format, dst.format, rows, cols, row_stride=stride // src.size)


def _place(tile: Tile) -> Placement | None:
    """Where the valid region lies; None if it is empty or its columns are not neighbours."""
    rows, cols = tile.data.shape
    element = tile.element
    if not rows or not cols or tile.layout.is_col_major:
        return None
    return Placement(
        start=tile.offset,
        rows=rows,
        row_bytes=cols * element.size,
        stride=tile.layout.row_stride,
        element_bits=element.format.memory_bits,
        cols=cols * element.per_byte,
    )


@lru_cache(maxsize=1024)
def _destroys(target: Placement, source: Placement, through_bits: int, tails_last: bool) -> bool:
    return target.destroys(source, through_bits, tails_last)


def converter(
    source: Element, target: Element, conversion: ResolvedConversion
) -> Callable[[Array, Array], None]:
    """Converts stored items of one tile into those of another, in place of what they held."""
    if source.is_packed or target.is_packed:

        def convert_packed(data: Array, result: Array) -> None:
            result[...] = pack(conversion.convert(unpack(data, source)), target)

        return convert_packed
    source_bits, target_bits = source.bits, target.bits

    def convert_items(data: Array, result: Array) -> None:
        conversion.convert(data.view(source_bits), out=result.view(target_bits))

    return convert_items
