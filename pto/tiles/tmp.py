"""Bytes of scratch that a TCVT with a tmp operand needs (spec T).

On a2a3 the PyTorch-compatible non-saturating conversions f32 to i16, f16 to i16 and f16 to i8 go
through a temporary of 32-bit integers. This module computes the smallest tmp tile, and the terms of
the formula, so that a tool can show where the number comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

from pto.numerics.formats import Format, format_of
from pto.numerics.rules import canonical_saturation
from pto.targets import TMP_TARGET, product_of
from pto.targets.vector_unit import BLOCK_BYTES, REPEAT_MAX

REPEAT_ELEMENTS = 64  # 32-bit elements of one repeat of 256 bytes
BLOCK_ELEMENTS = 8  # 32-bit elements of one block

_HALF_TO_I8_SCRATCH = 128  # the upper half of the region, reused after the narrowing to 16 bits


@dataclass(frozen=True, slots=True)
class TmpTerms:
    """The size of a tmp tile and the terms that it is the maximum of, all in bytes."""

    required: int
    head: int = 0
    """f32 to i16: the whole repeats of one row, at most 255 of them."""
    tail: int = 0
    """f32 to i16: the last `cols mod 64` columns of at most 255 rows, rows at their stride."""
    h: int = 0
    """f16 sources: H, the elements (not bytes) of one sub-block, at most 64."""
    narrow: int = 0
    """f16 sources: the 32-bit integers of one sub-block."""
    scratch: int = 0
    """f16 to i8: the 16-bit integers above the first 128 bytes."""


def tmp_terms(
    src: str | Format,
    dst: str | Format,
    rows: int,
    cols: int,
    *,
    row_stride: int | None = None,
    saturation: str | None = "OFF",
    arch: str = TMP_TARGET,
) -> TmpTerms:
    """As `tmp_bytes`, with the terms of the formula."""
    rows, cols = index(rows), index(cols)
    row_stride = None if row_stride is None else index(row_stride)
    names = format_of(src).name, format_of(dst).name
    _check(names, rows, cols, row_stride)
    without = not product_of(arch).takes_tmp or canonical_saturation(saturation) == "ON"
    if without or rows == 0 or cols == 0:
        return TmpTerms(0)
    match names:
        case "f32", "i16":
            return _f32_to_i16(rows, cols, row_stride)
        case "f16", "i16":
            return _f16_to_i16(cols)
        case "f16", "i8":
            return _f16_to_i8(cols)
    return TmpTerms(0)


def tmp_bytes(
    src: str | Format,
    dst: str | Format,
    rows: int,
    cols: int,
    *,
    row_stride: int | None = None,
    saturation: str | None = "OFF",
    arch: str = TMP_TARGET,
) -> int:
    """Bytes that the tmp tile of a TCVT must have, whatever its dtype (spec T, TCVT).

    `rows` and `cols` are the destination's valid extents; `row_stride` is the source tile's row
    stride in elements (default: `cols` rounded up to whole 32-byte blocks). Formats carry their
    spec names ("f32", "i16"). `saturation` None means the pair's default, which is OFF for every
    pair that has a tmp. The result is 0 for all other pairs, for saturation "ON" and for targets
    other than a2a3.

    Raises ValueError for an unknown format, target or saturation, for negative extents, and for a
    row stride that is shorter than a row or not a whole number of blocks; TypeError for extents
    that are no integers.
    """
    terms = tmp_terms(src, dst, rows, cols, row_stride=row_stride, saturation=saturation, arch=arch)
    return terms.required


def tmp_bytes_up_to(
    src: str | Format,
    dst: str | Format,
    rows: int,
    cols: int,
    *,
    row_stride: int | None = None,
    saturation: str | None = "OFF",
    arch: str = TMP_TARGET,
) -> int:
    """Bytes that serve every valid region of at most `rows` by `cols` (arguments as `tmp_bytes`).

    This can be more than the largest region itself needs: 64 columns have no tail, 63 have one that
    spans all rows at the source's stride.
    """
    if row_stride is None:
        row_stride = _ceil_div(cols, BLOCK_ELEMENTS) * BLOCK_ELEMENTS
    return max(
        tmp_bytes(src, dst, rows, c, row_stride=row_stride, saturation=saturation, arch=arch)
        for c in (cols, min(cols, REPEAT_ELEMENTS - 1))
    )


def tmp_bytes_for_any(rows: int, cols: int, *, row_stride: int | None = None) -> int:
    """Bytes of a tmp tile that serves every TCVT of this shape on a2a3 (spec T, "covering all")."""
    return max(
        tmp_bytes("f32", "i16", rows, cols, row_stride=row_stride),
        tmp_bytes("f16", "i8", rows, cols),
    )


def _f32_to_i16(rows: int, cols: int, row_stride: int | None) -> TmpTerms:
    if row_stride is None:
        row_stride = _ceil_div(cols, BLOCK_ELEMENTS) * BLOCK_ELEMENTS
    repeats, rest = divmod(cols, REPEAT_ELEMENTS)
    head = 4 * REPEAT_ELEMENTS * min(repeats, REPEAT_MAX)
    tail = 0
    if rest:
        blocks_before_last_row = (min(rows, REPEAT_MAX) - 1) * (row_stride // BLOCK_ELEMENTS)
        tail = BLOCK_BYTES * (blocks_before_last_row + _ceil_div(rest, BLOCK_ELEMENTS))
    return TmpTerms(max(head, tail), head=head, tail=tail)


def _f16_to_i16(cols: int) -> TmpTerms:
    h = min(cols, REPEAT_ELEMENTS)
    narrow = BLOCK_BYTES * _ceil_div(h, BLOCK_ELEMENTS)
    return TmpTerms(narrow, h=h, narrow=narrow)


def _f16_to_i8(cols: int) -> TmpTerms:
    h = min(cols, REPEAT_ELEMENTS)
    narrow = BLOCK_BYTES * _ceil_div(h, BLOCK_ELEMENTS)
    scratch = _HALF_TO_I8_SCRATCH + BLOCK_BYTES * _ceil_div(h, 2 * BLOCK_ELEMENTS)
    return TmpTerms(max(narrow, scratch), h=h, narrow=narrow, scratch=scratch)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _check(names: tuple[str, str], rows: int, cols: int, row_stride: int | None) -> None:
    if rows < 0 or cols < 0:
        raise ValueError(f"extents must not be negative: {rows}x{cols}")
    if row_stride is None:
        return
    if row_stride < cols:
        raise ValueError(f"row stride {row_stride} is shorter than a row of {cols} elements")
    if names == ("f32", "i16") and row_stride % BLOCK_ELEMENTS:
        raise ValueError(
            f"row stride {row_stride} of f32 is not a multiple of {BLOCK_ELEMENTS} elements"
            f" ({BLOCK_BYTES} bytes)"
        )
