"""`pto.tcvt`: the conversions of `pto.numerics`, on tiles (spec R, S)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.dialect.ops import TCvtOp
from pto.numerics import convert_bits
from pto.passes.analysis.placement import Placement
from pto.runtime.compiler import Compiler, Frame, Options, Step, emits
from pto.runtime.elements import Element, pack, unpack
from pto.runtime.elementwise import mark, undefined_in
from pto.runtime.errors import Fault
from pto.runtime.operands import operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Layout, Tile
from pto.targets import Pair, lookup, product, tcvt_table
from pto.tmp import tmp_bytes

Array = NDArray[Any]


@dataclass(frozen=True)
class Rounding:
    """How a conversion rounds and saturates on its target."""

    mode: str | None
    saturation: str | None
    pytorch_path: bool


def rounding_of(op: TCvtOp, pair: Pair, options: Options) -> Rounding:
    """The mode and saturation that the operation has, or what their absence means (spec R9, S14).

    Raises Fault for a mode that the pair lacks.
    """
    mode = None if op.rmode is None else op.rmode.data
    if not pair.accepts(mode):
        raise Fault(
            f"{pair.src} to {pair.dst} has no mode {mode} on {options.arch} [round-mode]",
            f"the pair's modes: {', '.join(pair.modes)}",
        )
    saturation = None if op.satmode is None else op.satmode.data
    if saturation is None:
        saturation = (
            pair.default_saturation
            if options.default_sat == "target"
            else options.default_sat.upper()
        )
    off = saturation == "OFF"
    return Rounding(
        mode=mode if pair.rounds else None,
        saturation=saturation,
        pytorch_path=off and pair.pytorch_pair and (options.arch == "a5" or op.tmp is not None),
    )


def pair_of(source: Element, target: Element, arch: str) -> Pair:
    """The pair on the target. Raises Fault where it is illegal, with what would be legal."""
    src, dst = source.format.name, target.format.name
    if (pair := lookup(arch, src, dst)) is not None:
        return pair
    table = tcvt_table(arch)
    offered = [row.dst for row in table.rows if row.src == src] if table is not None else []
    raise Fault(
        f"{arch} has no conversion from {src} to {dst} [type-pair]",
        f"{src} converts to: {', '.join(offered) or 'nothing'}",
    )


@emits("pto.tcvt", attributes=("rmode", "satmode"))
def _tcvt(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, TCvtOp)
    operands = operands_of(op)
    src, dst = compiler.slot(op.src), operands.target(compiler)
    source, target = tile_layout(op.src).element, tile_layout(operands.outs[0]).element
    pair_arch = compiler.options.arch
    pair = pair_of(source, target, pair_arch)
    rounding = rounding_of(op, pair, compiler.options)
    convert = converter(source, target, rounding)
    packs = source.per_byte == 2 or target.per_byte == 2
    tails_last = compiler.options.arch == "a2a3"
    through_bits = 32 if rounding.pytorch_path else 0
    tmp = None
    if rounding.pytorch_path and op.tmp is not None and product(pair_arch).pytorch_needs_tmp:
        tile_layout(op.tmp)
        tmp = compiler.slot(op.tmp)

    def step(frame: Frame) -> None:
        tile, result = frame[src], dst(frame)
        check_logical_extents(tile, result)
        if tile.memory is result.memory:
            check_overlap(tile, result, tails_last, through_bits)
        if tmp is not None:
            check_tmp(frame[tmp], tile, result)
        undefined = None if packs else undefined_in((tile,))
        convert(tile.read() if packs else tile.data, result.write())
        if undefined is not None:
            mark(op, result, undefined, tile)

    return step


def check_logical_extents(source: Tile, target: Tile) -> None:
    """Raises Fault unless both valid regions have the same elements (spec V, F2)."""
    if source.logical != target.logical:
        (a, b), (c, d) = source.logical, target.logical
        raise Fault(f"valid regions differ: source {a}x{b}, destination {c}x{d} [valid-region]")


def check_overlap(source: Tile, target: Tile, tails_last: bool, through_bits: int) -> None:
    """Raises Fault where the device would write over elements not yet read (spec V, overlap).

    `tails_last`: what is left of the rows is read after all whole repeats (spec L2).
    `through_bits`: the width of a type that the conversion goes through (spec S10), else 0.
    """
    src, dst = _place(source), _place(target)
    if src is not None and dst is not None and _overwrites(dst, src, tails_last, through_bits):
        raise Fault(
            f"the destination, bytes {dst.text()}, overwrites its source, bytes {src.text()},"
            " before all of it is read [overlap]"
        )


def check_tmp(tmp: Tile, source: Tile, target: Tile) -> None:
    """Raises Fault where the scratch tile is too small, or lies over what it must not (spec T)."""
    needed = _tmp_bytes(source.layout, target.layout, target.valid)
    if needed > tmp.layout.size:
        raise Fault(f"the tmp tile has {tmp.layout.size} bytes, {needed} are needed [tmp-small]")
    for name, tile in (("source", source), ("destination", target)):
        place = _place(tile)
        if tile.memory is not tmp.memory or place is None or not needed:
            continue
        used = replace(place, start=tmp.offset).first(needed)
        if used.meets(place):
            raise Fault(
                f"the tmp tile, bytes {used.text()}, overlaps the {name},"
                f" bytes {place.text()} [overlap]"
            )


@lru_cache(maxsize=1024)
def _tmp_bytes(source: Layout, target: Layout, valid: tuple[int, int]) -> int:
    rows, cols = valid[::-1] if target.is_col_major else valid
    stride = source.col_stride if source.is_col_major else source.row_stride
    src, dst = source.element, target.element
    return tmp_bytes(src.format.name, dst.format.name, rows, cols, row_stride=stride // src.size)


def _place(tile: Tile) -> Placement | None:
    """Where the valid region lies; None if it is empty or its columns are not neighbours."""
    rows, cols = tile.data.shape
    size = tile.element.size
    if not rows or not cols or tile.layout.is_col_major:
        return None
    elements = cols * tile.element.per_byte
    bits = 8 * size // tile.element.per_byte
    return Placement(tile.offset, rows, cols * size, tile.layout.row_stride, bits, elements)


@lru_cache(maxsize=1024)
def _overwrites(target: Placement, source: Placement, tails_last: bool, through_bits: int) -> bool:
    return target.overwrites(source, through_bits) or (
        tails_last and target.overwrites_tails(source)
    )


def converter(
    source: Element, target: Element, rounding: Rounding
) -> Callable[[Array, Array], None]:
    """Converts stored items of one tile into those of another, in place of what they held."""
    src, dst = source.format, target.format
    mode, saturation, pytorch = rounding.mode, rounding.saturation, rounding.pytorch_path
    source_bits, target_bits = source.bits, target.bits
    if source.per_byte == 1 and target.per_byte == 1:

        def convert(data: Array, result: Array) -> None:
            convert_bits(
                data.view(source_bits),
                src,
                dst,
                mode,
                saturation,
                pytorch_path=pytorch,
                out=result.view(target_bits),
            )

        return convert

    def convert_packed(data: Array, result: Array) -> None:
        codes = convert_bits(unpack(data, source), src, dst, mode, saturation, pytorch_path=pytorch)
        result[...] = pack(codes, target)

    return convert_packed
