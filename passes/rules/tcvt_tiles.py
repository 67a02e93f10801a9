"""Rules about the tiles of a conversion: shapes, rows, places (spec V)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, elements_per_column
from pto.passes.rules.checked_conversion import CheckedConversion, format_text, static
from pto.passes.rules.finding import Anchor, Finding
from pto.targets import UnknownTarget
from pto.targets.vector_unit import BLOCK_BYTES
from pto.tiles.geometry import bits_per_column, is_plain, tile_bytes, up_to_blocks
from pto.tiles.placement import Placement, place


def _elements(tile: AnyTile, rows: int | None, cols: int | None) -> tuple[int | None, int | None]:
    """Extents in elements: packed pairs count twice (spec F2)."""
    return rows, None if cols is None else cols * elements_per_column(tile.dtype)


def _extents(pair: tuple[int | None, int | None]) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in pair)


def shape(c: CheckedConversion) -> Iterator[Finding]:
    """Source and destination declare the same extents, in elements."""
    source = _elements(c.src, c.src.rows, c.src.cols)
    destination = _elements(c.dst, c.dst.rows, c.dst.cols)
    if source == destination:
        return
    yield Finding(
        "shape",
        f"the source is {_extents(source)} elements, the destination {_extents(destination)}",
        Anchor("dst", "shape"),
        tuple(_packed_notes(c)),
    )


def _packed_notes(c: CheckedConversion) -> Iterator[str]:
    for tile in (c.src, c.dst):
        if elements_per_column(tile.dtype) == 2:
            yield (
                f"{type_text(tile.dtype)} counts pairs: {tile.cols} columns hold"
                f" {2 * tile.cols} elements"
            )


def valid_region(c: CheckedConversion) -> Iterator[Finding]:
    """The valid regions agree and lie within their tiles; a dynamic extent matches anything."""
    for operand, tile in (("src", c.src), ("dst", c.dst)):
        if static(tile.valid_rows, 0) > tile.rows or static(tile.valid_cols, 0) > tile.cols:
            valid = _extents((tile.valid_rows, tile.valid_cols))
            yield Finding(
                "valid-region",
                f"the valid region {valid} is larger than its tile, {tile.rows}x{tile.cols}",
                Anchor(operand, "valid"),
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
        Anchor("dst", "valid"),
        tuple(_packed_notes(c)),
    )


def location(c: CheckedConversion) -> Iterator[Finding]:
    """Both tiles live in the unified buffer."""
    for operand, tile in (("src", c.src), ("dst", c.dst)):
        if tile.loc != "vec":
            name = "source" if operand == "src" else "destination"
            yield Finding(
                "location",
                f"tcvt works on tiles in vec; its {name} is in {tile.loc}",
                Anchor(operand, "loc"),
            )


def row_align(c: CheckedConversion) -> Iterator[Finding]:
    """A row of a row-major tile is a whole number of 32-byte blocks."""
    for operand, tile in (("src", c.src), ("dst", c.dst), ("tmp", c.tmp)):
        column = None if tile is None else bits_per_column(tile.dtype)
        if tile is None or column is None or not is_plain(tile.data):
            continue
        if tile.cols * column % (8 * BLOCK_BYTES):
            yield _misaligned_row(operand, tile, column)


def _misaligned_row(operand: str, tile: AnyTile, bits_per_element: int) -> Finding:
    bits = tile.cols * bits_per_element
    size = f"{bits // 8}" if bits % 8 == 0 else f"{bits / 8}"
    fits = up_to_blocks(-(-bits // 8)) * 8 // bits_per_element
    valid = fits if operand == "tmp" else tile.valid_cols
    padded = type(tile)(replace(tile.data, cols=fits, valid_cols=valid))
    return Finding(
        "row-align",
        f"a row of {tile.cols} {format_text(tile)} is {size} bytes, not a multiple of"
        f" {BLOCK_BYTES}",
        Anchor(operand, "shape"),
        (f"the next column count that fits is {fits}: {type_text(padded)}",),
    )


def capacity(c: CheckedConversion) -> Iterator[Finding]:
    """Each tile fits the unified buffer, at its address where that is constant."""
    try:
        room = max(product.unified_buffer_bytes for product in c.products)
    except UnknownTarget:  # a target without tiles, which `type-pair` tells
        return
    for operand, value in (("src", c.op.src), ("dst", c.op.dst), ("tmp", c.op.tmp)):
        if value is None or not isinstance(value.type, AnyTile) or value.type.loc != "vec":
            continue
        if (size := tile_bytes(value.type)) is None:
            continue
        placed = place(value)
        start = 0 if placed is None or placed.memory is not None else placed.start
        if start < 0 or start + size > room:
            at = "" if not start or size > room else f" at address {start}"
            yield Finding(
                "capacity",
                f"a tile of {size} bytes{at} does not fit the unified buffer, {room} bytes {c.on}",
                Anchor(operand, "shape"),
            )


def overlap(c: CheckedConversion) -> Iterator[Finding]:
    """Tiles at constant addresses do not overwrite what is still to be read."""
    if c.op.dst is None or not (c.src.loc == c.dst.loc == "vec"):
        return
    src, dst = place(c.op.src), place(c.op.dst)
    resolved = c.on_target
    through_bits = 0 if resolved is None else resolved.through_bits
    tails_last = resolved is not None and resolved.tails_last
    if src is not None and dst is not None and dst.destroys(src, through_bits, tails_last):
        yield Finding(
            "overlap",
            f"the destination, bytes {dst.text()}, overwrites its source, bytes {src.text()},"
            " before all of it is read",
            Anchor("dst"),
            (_apart_note(src),),
        )
    yield from _tmp_overlap(c, src, dst)


def _tmp_overlap(
    c: CheckedConversion, src: Placement | None, dst: Placement | None
) -> Iterator[Finding]:
    tmp = place(c.op.tmp) if c.op.tmp is not None else None
    if tmp is None or c.tmp_need is None or c.tmp_need.is_bound:
        return
    used = tmp.first(c.tmp_need.bytes)
    for name, other in (("source", src), ("destination", dst)):
        if other is not None and used.meets(other):
            yield Finding(
                "overlap",
                f"the tmp tile, bytes {used.text()}, overlaps the {name}, bytes {other.text()}",
                Anchor("tmp"),
                (_apart_note(other),),
            )


def _apart_note(tile: Placement) -> str:
    """The first block after a tile, as a constant for `addr`."""
    if tile.memory is not None:
        return "give it a tile of its own"
    return f"the first address after it: %addr = arith.constant {up_to_blocks(tile.end)} : i64"
