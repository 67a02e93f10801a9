"""`pto.tquant` and `pto.tdequant`: affine quantisation with parameters by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics import convert_bits
from pto.runtime.compiler import Implementations
from pto.runtime.errors import RuntimeFault, region_fault
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


def _by_row(tile: Tile, rows: int) -> Array:
    """The parameter of each row: its first column, the last row standing for those beyond it."""
    if not tile.valid_rows or not tile.valid_cols:
        raise region_fault("a parameter tile without valid elements")
    values = tile.values()[:, :1]
    return values[np.minimum(np.arange(rows), tile.valid_rows - 1)]


@implements("pto.tquant", attributes=("quant_type", "quantType"))
@tile_operation
def quantise(op: TileOperation) -> Compute:
    """RINT of src * scale [+ offset], each step in f32, clamped to i8 or, with an offset, ui8."""
    source, target = op.element("src"), op.element("dst")
    expected, kind = ("ui8", "int8_asym") if "offset" in op else ("i8", "int8_sym")
    op.choice("quant_type", "quantType", choices=(kind,))
    if source.format.name != "f32" or target.format.name != expected:
        raise RuntimeFault(
            f"{source.text} to {target.text}: f32 becomes i8, or ui8 with an offset operand"
        )

    def compute(src: Tile, scale: Tile, offset: Tile | None, dst: Tile) -> None:
        rows, cols = dst.valid
        scaled = src.over(rows, cols).values() * _by_row(scale, rows)
        if offset is not None:
            scaled += _by_row(offset, rows)
        codes = np.asarray(scaled, np.float32).view(np.uint32)
        out = dst.write().view(target.bits)
        convert_bits(codes, "f32", target.format, "RINT", "ON", out=out)

    return compute


@implements("pto.tdequant")
@tile_operation
def dequantise(op: TileOperation) -> Compute:
    """(src - offset) * scale in f32."""
    if op.element("dst").format.name != "f32":
        raise RuntimeFault("its result is f32")

    def compute(src: Tile, scale: Tile, offset: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        values = src.over(rows, cols).values().astype(np.float32)
        dst.assign((values - _by_row(offset, rows)) * _by_row(scale, rows))

    return compute
