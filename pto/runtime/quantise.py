"""`pto.tquant` and `pto.tdequant`: affine quantisation with parameters by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.numerics import convert_bits
from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.errors import Fault
from pto.runtime.operands import enum_attribute, operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile

Array = NDArray[Any]


def _by_row(tile: Tile, rows: int) -> Array:
    """The parameter of each row: its first column, the last row standing for those beyond it."""
    if not tile.valid_rows or not tile.valid_cols:
        raise Fault("a parameter tile without valid elements [valid-region]")
    values = tile.values()[:, :1]
    return values[np.minimum(np.arange(rows), tile.valid_rows - 1)]


@emits("pto.tquant", attributes=("quant_type", "quantType"))
def _quantise(op: Operation, compiler: Compiler) -> Step:
    """RINT of src * scale [+ offset], each step in f32, clamped to i8 or, with an offset, ui8."""
    operands = operands_of(op)
    source = tile_layout(operands.ins[0]).element
    target = tile_layout(operands.outs[0]).element
    src, scale, *rest = compiler.slots(operands.ins)
    offset = rest[0] if rest else None
    expected = "i8" if offset is None else "ui8"
    kind = "int8_sym" if offset is None else "int8_asym"
    enum_attribute(op, "quant_type", "quantType", choices=(kind,))
    if source.format.name != "f32" or target.format.name != expected:
        raise Fault(
            f"{source.text} to {target.text}: f32 becomes i8, or ui8 with an offset operand"
        )
    dst = operands.target(compiler)

    def step(frame: Frame) -> None:
        result: Tile = dst(frame)
        rows, cols = result.valid
        scaled = frame[src].over(rows, cols).values() * _by_row(frame[scale], rows)
        if offset is not None:
            scaled += _by_row(frame[offset], rows)
        codes = np.asarray(scaled, np.float32).view(np.uint32)
        convert_bits(
            codes, "f32", target.format, "RINT", "ON", out=result.write().view(target.bits)
        )

    return step


@emits("pto.tdequant")
def _dequantise(op: Operation, compiler: Compiler) -> Step:
    """(src - offset) * scale in f32."""
    operands = operands_of(op)
    src, scale, offset = compiler.slots(operands.ins[:3])
    dst = operands.target(compiler)
    if tile_layout(operands.outs[0]).element.format.name != "f32":
        raise Fault("its result is f32")

    def step(frame: Frame) -> None:
        result: Tile = dst(frame)
        rows, cols = result.valid
        values = frame[src].over(rows, cols).values().astype(np.float32)
        shifted = values - _by_row(frame[offset], rows)
        result.assign(shifted * _by_row(frame[scale], rows))

    return step
