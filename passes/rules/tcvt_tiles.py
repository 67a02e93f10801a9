"""Rules about the tiles of a conversion: shapes, rows, places (spec V)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pto.dialect.types import (
    TileBufType,
    TileType,
    element_format,
    elements_per_column,
    type_text,
)
from pto.passes.analysis.placement import (
    BLOCK_BYTES,
    AnyTile,
    Placement,
    bits_per_column,
    place,
    tile_bytes,
)
from pto.passes.rules.tcvt_findings import Conversion, Finding, Where, static
from pto.targets import TCVT_TARGETS, unified_buffer_bytes


def _elements(tile: AnyTile, rows: int | None, cols: int | None) -> tuple[int | None, int | None]:
    """Extents in elements: packed pairs count twice (spec F2)."""
    return rows, None if cols is None else cols * elements_per_column(tile.dtype)


def _extents(pair: tuple[int | None, int | None]) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in pair)


def shape(c: Conversion) -> Iterator[Finding]:
    """Source and destination declare the same extents, in elements."""
    source = _elements(c.src, c.src.rows, c.src.cols)
    destination = _elements(c.dst, c.dst.rows, c.dst.cols)
    if source == destination:
        return
    yield Finding(
        "shape",
        f"the source is {_extents(source)} elements, the destination {_extents(destination)}",
        Where("dst", "shape"),
        tuple(_packed_notes(c)),
    )


def _packed_notes(c: Conversion) -> Iterator[str]:
    for tile in (c.src, c.dst):
        if elements_per_column(tile.dtype) == 2:
            yield (
                f"{type_text(tile.dtype)} counts pairs: {tile.cols} columns hold"
                f" {2 * tile.cols} elements"
            )


def valid_region(c: Conversion) -> Iterator[Finding]:
    """The valid regions agree and lie within their tiles; a dynamic extent matches anything."""
    for role, tile in (("src", c.src), ("dst", c.dst)):
        if static(tile.valid_rows, 0) > tile.rows or static(tile.valid_cols, 0) > tile.cols:
            valid = _extents((tile.valid_rows, tile.valid_cols))
            yield Finding(
                "valid-region",
                f"the valid region {valid} is larger than its tile, {tile.rows}x{tile.cols}",
                Where(role, "valid"),
            )
            return
    source = _elements(c.src, c.src.valid_rows, c.src.valid_cols)
    destination = _elements(c.dst, c.dst.valid_rows, c.dst.valid_cols)
    agree = all(a is None or b is None or a == b for a, b in zip(source, destination, strict=True))
    declared_agree = _elements(c.src, c.src.rows, c.src.cols) == _elements(
        c.dst, c.dst.rows, c.dst.cols
    )
    if agree or not declared_agree:  # where the shapes differ, `shape` has said enough
        return
    yield Finding(
        "valid-region",
        f"the source's valid region is {_extents(source)} elements,"
        f" the destination's {_extents(destination)}",
        Where("dst", "valid"),
        tuple(_packed_notes(c)),
    )


def location(c: Conversion) -> Iterator[Finding]:
    """Both tiles live in the unified buffer."""
    for role, tile in (("src", c.src), ("dst", c.dst)):
        if tile.loc != "vec":
            name = "source" if role == "src" else "destination"
            yield Finding(
                "location",
                f"tcvt works on tiles in vec; its {name} is in {tile.loc}",
                Where(role, "loc"),
            )


def row_align(c: Conversion) -> Iterator[Finding]:
    """A row of a row-major tile is a whole number of 32-byte blocks."""
    tiles = (("src", c.src), ("dst", c.dst), ("tmp", c.tmp))
    for role, tile in tiles:
        if tile is None or tile.blayout != "row_major" or tile.slayout != "none_box":
            continue
        column = bits_per_column(tile.dtype)
        bits = tile.cols * column if column else 0
        if bits % (8 * BLOCK_BYTES):
            yield _misaligned_row(c, role, tile, bits, column or 0)


def _misaligned_row(
    c: Conversion, role: str, tile: AnyTile, bits: int, bits_per_element: int
) -> Finding:
    dtype = element_format(tile.dtype) or type_text(tile.dtype)
    size = f"{bits // 8}" if bits % 8 == 0 else f"{bits / 8}"
    fits = -(-bits // (8 * BLOCK_BYTES)) * 8 * BLOCK_BYTES // bits_per_element
    padded = replace(tile.data, cols=fits, valid_cols=fits if role == "tmp" else tile.valid_cols)
    return Finding(
        "row-align",
        f"a row of {tile.cols} {dtype} is {size} bytes, not a multiple of {BLOCK_BYTES}",
        Where(role, "shape"),
        (f"the next column count that fits is {fits}: {type_text(type(tile)(padded))}",),
    )


def capacity(c: Conversion) -> Iterator[Finding]:
    """Each tile fits the unified buffer, at its address where that is constant."""
    if c.arch is not None and c.arch not in TCVT_TARGETS:
        return
    room = max(unified_buffer_bytes(target) for target in c.targets)
    for role, value in (("src", c.op.src), ("dst", c.op.dst), ("tmp", c.op.tmp)):
        if value is None or not isinstance(value.type, TileBufType | TileType):
            continue
        size = tile_bytes(value.type)
        if size is None or value.type.loc != "vec":
            continue
        placed = place(value)
        if placed is not None and placed.memory is not None:
            placed = None
        end = size if placed is None else placed.start + size
        if end > room or (placed is not None and placed.start < 0):
            at = "" if placed is None or size > room else f" at address {placed.start}"
            yield Finding(
                "capacity",
                f"a tile of {size} bytes{at} does not fit the unified buffer, {room} bytes {c.on}",
                Where(role, "shape"),
            )


def overlap(c: Conversion) -> Iterator[Finding]:
    """Tiles at constant addresses do not overwrite what is still to be read."""
    if c.op.dst is None or not (c.src.loc == c.dst.loc == "vec"):
        return
    src, dst = place(c.op.src), place(c.op.dst)
    if (
        src is not None
        and dst is not None
        and (
            dst.overwrites(src, 32 if c.goes_through_i32 else 0)
            or (c.arch == "a2a3" and dst.overwrites_tails(src))
        )
    ):
        yield Finding(
            "overlap",
            f"the destination, bytes {dst.text()}, overwrites its source, bytes {src.text()},"
            " before all of it is read",
            Where("dst"),
            (_apart_note(src),),
        )
    yield from _tmp_overlap(c, src, dst)


def _tmp_overlap(c: Conversion, src: Placement | None, dst: Placement | None) -> Iterator[Finding]:
    tmp = place(c.op.tmp) if c.op.tmp is not None else None
    if tmp is None or c.tmp_needed is None or c.tmp_is_bound:
        return
    used = tmp.first(c.tmp_needed)
    for name, other in (("source", src), ("destination", dst)):
        if other is not None and used.meets(other):
            yield Finding(
                "overlap",
                f"the tmp tile, bytes {used.text()}, overlaps the {name}, bytes {other.text()}",
                Where("tmp"),
                (_apart_note(other),),
            )


def _apart_note(tile: Placement) -> str:
    """The first block after a tile, as a constant for `addr`."""
    if tile.memory is not None:
        return "give it a tile of its own"
    free = -(-tile.end // BLOCK_BYTES) * BLOCK_BYTES
    return f"the first address after it: %addr = arith.constant {free} : i64"
