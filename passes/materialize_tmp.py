"""Pass `pto-materialize-tmp`: gives a2a3's PyTorch-compatible conversions their tmp tile.

f32 to i16, f16 to i16 and f16 to i8 without saturation (spec S10, T) receive a tmp tile of exactly
the bytes that the formula gives; where the valid columns are dynamic, of the most that any of them
needs, which can be more than the declared shape does. A conversion that has a tmp tile keeps it.

Changes what those conversions give for infinities and overflow: without tmp the device takes its
native path (spec S9), with it the PyTorch-compatible one. Everything else is preserved.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from pto.dialect.ops import TCvtOp, segments
from pto.dialect.types import Tile, TileBufType, TileType, element_format
from pto.passes.analysis.placement import row_stride
from pto.passes.lowering.allocation import allocate, free_address
from pto.passes.lowering.tile_conversion import (
    check_default_sat,
    conversions,
    saturation_of,
    target_of,
    tile_type,
)
from pto.targets import lookup
from pto.tmp import tmp_bytes, tmp_bytes_up_to


@dataclass(frozen=True)
class MaterializeTmpPass(ModulePass):
    """Adds the tmp tiles that are missing.

    Options: `arch` (default: what the module names; nothing is added on a5) and `default-sat`
    (target, on, off: what an absent satmode means, spec S14).
    """

    name = "pto-materialize-tmp"

    arch: str | None = None
    default_sat: str = "target"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Adds in place. Raises PassFailedException where no room is left for a tile."""
        check_default_sat(self.default_sat)
        for tcvt in conversions(op):
            arch = target_of(tcvt, self.arch)
            if tcvt.tmp is None and (size := required(tcvt, arch, self.default_sat)):
                _add(tcvt, size, arch)


def required(op: TCvtOp, arch: str, default_sat: str) -> int:
    """Bytes of tmp that a conversion wants, 0 if none (spec T)."""
    src, dst = tile_type(op, op.src), op.dst_type
    assert isinstance(dst, TileBufType | TileType)
    names = element_format(src.dtype), element_format(dst.dtype)
    if names[0] is None or names[1] is None:
        return 0
    pair = lookup(arch, names[0], names[1])
    if pair is None or not pair.pytorch_pair:
        return 0
    extents = [(dst.valid_rows, min(src.rows, dst.rows)), (dst.valid_cols, min(src.cols, dst.cols))]
    stride = row_stride(op.src)
    if src.blayout == "col_major":  # taken by columns
        extents = extents[::-1]
    (rows, most_rows), (cols, most_cols) = extents
    size = tmp_bytes if cols is not None else tmp_bytes_up_to
    return size(
        pair.src,
        pair.dst,
        most_rows if rows is None else rows,
        most_cols if cols is None else cols,
        row_stride=stride,
        saturation=saturation_of(op, pair, default_sat),
        arch=arch,
    )


def _add(op: TCvtOp, size: int, arch: str) -> None:
    type_ = TileBufType(Tile("vec", i8, 1, size, 1, size))
    beside = [op.src] if op.dst is None else [op.src, op.dst]
    address = free_address(op, size, beside, arch)
    tmp = allocate(op, type_, "tmp", address=address)
    dst = [] if op.dst is None else [op.dst]
    replacement = TCvtOp.create(
        operands=[op.src, tmp, *dst],
        result_types=[result.type for result in op.results],
        properties={**op.properties, "operandSegmentSizes": segments(1, 1, len(dst))},
        attributes=op.attributes,
        location=op.location,
    )
    Rewriter.replace_op(op, replacement)
