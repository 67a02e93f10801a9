"""The scratch tile that one conversion of tiles needs (spec S10, T)."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from pto.dialect.types import AnyTile
from pto.targets import ResolvedConversion
from pto.tiles.geometry import row_stride
from pto.tiles.tmp import BLOCK_ELEMENTS, TmpTerms, tmp_bytes, tmp_bytes_up_to, tmp_terms


@dataclass(frozen=True, slots=True)
class TmpNeed:
    """What the tmp tile of a conversion must hold."""

    rows: int
    """Valid rows of the destination, the declared ones where they are dynamic; columns, for tiles
    in column-major order, which are taken by columns."""
    cols: int
    row_stride: int
    """Of the source, in elements."""
    terms: TmpTerms
    """At these extents."""
    bytes: int
    """What certainly serves: more than the terms where the valid columns are dynamic."""
    is_bound: bool
    """The valid region is dynamic, so that less may be needed."""


def tmp_need(conversion: ResolvedConversion, source: SSAValue, dst: AnyTile) -> TmpNeed | None:
    """What the tmp tile of a conversion into a tile of type `dst` must hold.

    None where it takes no such path, where it converts nothing, and for rows that are no whole
    blocks, of which the formula does not speak.
    """
    src = source.type
    assert isinstance(src, AnyTile)
    if not conversion.takes_tmp:
        return None
    extents = [(dst.valid_rows, min(src.rows, dst.rows)), (dst.valid_cols, min(src.cols, dst.cols))]
    if src.blayout == "col_major":
        extents.reverse()
    (valid_rows, most_rows), (valid_cols, most_cols) = extents
    stride = row_stride(source)
    if conversion.src.bits == 32 and stride % BLOCK_ELEMENTS:
        return None
    rows = most_rows if valid_rows is None else valid_rows
    cols = min(most_cols if valid_cols is None else valid_cols, stride)
    terms = tmp_terms(conversion.src, conversion.dst, rows, cols, row_stride=stride)
    size = tmp_bytes if valid_cols is not None else tmp_bytes_up_to
    needed = size(conversion.src, conversion.dst, rows, cols, row_stride=stride)
    if not needed:
        return None
    is_bound = valid_rows is None or valid_cols is None
    return TmpNeed(rows, cols, stride, terms, needed, is_bound)
