"""A tile conversion as the lowerings see it: formats, rounding, and where its elements lie."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from pto.dialect.ops import TCvtOp
from pto.dialect.types import AnyTile, elements_per_column
from pto.numerics.formats import Format
from pto.passes.common import TargetedPass, fail, tile_type
from pto.targets import ResolvedConversion
from pto.targets.vector_unit import BLOCK_BYTES
from pto.tiles.geometry import bits_per_column, row_stride, stride_is_known

BLOCK_BITS = BLOCK_BYTES * 8


@dataclass(frozen=True)
class Rows:
    """One tile's side of a conversion, as rows of elements in memory.

    A tile in column-major order is taken by columns. Columns count as the tile's type does: pairs
    for packed 4-bit floats (spec F2).
    """

    value: SSAValue
    format: Format
    dtype: Attribute
    stride: int
    """Columns from one row to the next."""
    bits: int
    """Bits of one column."""
    per_column: int
    """Elements of one column."""

    @property
    def stride_blocks(self) -> int:
        """Blocks of 32 bytes from one row to the next."""
        return self.stride * self.bits // BLOCK_BITS


@dataclass(frozen=True)
class TileConversion:
    """A tcvt in DPS form with everything that its absence of attributes means."""

    op: TCvtOp
    resolved: ResolvedConversion
    src: Rows
    dst: Rows
    rows: int | None
    """Valid rows, None where known only at run time."""
    cols: int | None
    """Valid elements of a row, None where known only at run time."""
    most_rows: int
    most_cols: int
    """Their upper bounds, the declared extents."""
    by_columns: bool
    """Whether the tiles are in column-major order, rows and columns exchanged here."""
    program_sets_scale: bool
    """Whether the program sets the scale of dequantisation, which must then stay."""

    @property
    def is_dense(self) -> bool:
        """Whether the valid region is one piece of memory in both tiles, whatever its rows."""
        widths = {side.stride * side.per_column for side in (self.src, self.dst)}
        return widths == {self.cols}

    def check_blocks(self) -> None:
        """Rows start at multiples of 32 bytes, as every instruction's operands do.

        Raises PassFailedException where they do not.
        """
        for side in (self.src, self.dst):
            if side.stride * side.bits % BLOCK_BITS:
                kind = "column" if self.by_columns else "row"
                size = side.stride * side.bits // 8
                raise fail(self.op, f"a {kind} of {size} bytes is not a multiple of 32 bytes")


def analyse(op: TCvtOp, for_pass: TargetedPass, program_sets_scale: bool) -> TileConversion:
    """What a lowering needs to know of a conversion.

    Raises PassFailedException, with the place, for what no lowering takes: the SSA form, a pair or
    mode that the target lacks, boxed layouts, tiles outside of vec.
    """
    if op.dst is None:
        raise fail(op, "the conversion is in SSA form; run pto-tile-to-buf first")
    resolved = for_pass.resolve(op)
    if (illegal := resolved.illegal) is not None:
        advice = "run pto-legalize-tcvt first" if resolved.pair is None else illegal.advice
        raise fail(op, f"{illegal.message}; {advice}")
    src_type, dst_type = tile_type(op, op.src), tile_type(op, op.dst)
    by_columns = _by_columns(op, src_type, dst_type)
    rows, cols, most_rows, most_cols = _extents(src_type, dst_type, by_columns)
    return TileConversion(
        op=op,
        resolved=resolved,
        src=_rows(op, op.src, resolved.src),
        dst=_rows(op, op.dst, resolved.dst),
        rows=rows,
        cols=cols,
        most_rows=most_rows,
        most_cols=most_cols,
        by_columns=by_columns,
        program_sets_scale=program_sets_scale,
    )


def _by_columns(op: TCvtOp, *types: AnyTile) -> bool:
    for type_ in types:
        if type_.loc != "vec":
            raise fail(op, f"a tile in {type_.loc}; conversions are of tiles in vec")
        if type_.slayout != "none_box":
            raise fail(op, "a tile of boxed layout is not lowered")
    src, dst = (type_.blayout == "col_major" for type_ in types)
    if src != dst:
        raise fail(op, "source and destination differ in blayout")
    if src and any(
        bits_per_column(t.dtype) in (4, None) or elements_per_column(t.dtype) > 1 for t in types
    ):
        raise fail(op, "a col_major tile of a 4-bit type is not lowered")
    return src


def _rows(op: TCvtOp, value: SSAValue, fmt: Format) -> Rows:
    type_ = tile_type(op, value)
    bits = bits_per_column(type_.dtype)
    assert bits is not None
    if not stride_is_known(value):
        raise fail(op, "a tile that may be a window of another: where its rows lie is not known")
    per_column = elements_per_column(type_.dtype)
    return Rows(value, fmt, type_.dtype, row_stride(value), bits, per_column)


def _extents(
    src: AnyTile, dst: AnyTile, by_columns: bool
) -> tuple[int | None, int | None, int, int]:
    """Valid rows and columns of the destination and their bounds, in elements.

    Both tiles have the same valid extents, so that neither exceeds what is declared of either.
    """
    packed = elements_per_column(dst.dtype)
    rows, cols = dst.valid_rows, dst.valid_cols
    cols = None if cols is None else cols * packed
    most_rows = min(src.rows, dst.rows)
    most_cols = min(src.cols * elements_per_column(src.dtype), dst.cols * packed)
    if by_columns:
        return cols, rows, most_cols, most_rows
    return rows, cols, most_rows, most_cols
