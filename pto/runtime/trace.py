"""What tile operations produce, as they run: ranges, NaN, infinities, and what conversions lose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from pto.dialect.location import location_of
from pto.dialect.ops import GroupedOp, TCvtOp
from pto.numerics import FORMATS, Format, convert_bits, decode
from pto.runtime.compiler import Compiler
from pto.runtime.elements import unpack
from pto.runtime.errors import RuntimeFault
from pto.runtime.frame import Frame, Step
from pto.runtime.ops.tcvt import resolved
from pto.runtime.ops.tile_operation import TileOperation, is_tile
from pto.runtime.tile import Tile
from pto.targets import ResolvedConversion

Array = NDArray[Any]


@dataclass(frozen=True)
class Produced:
    """What is in a tile; the range is over its finite elements."""

    low: float
    high: float
    count: int
    nan: int
    inf: int
    outside: int = 0
    """Numbers that a conversion could not represent because they are too large."""
    lost_nan: int = 0
    """Elements that a conversion turned from NaN into a number."""

    def text(self, fate: str = "") -> str:
        """`-3.2 .. 3.1, 2 NaN, 5 saturated`; `fate` is what became of the numbers outside."""
        number = f"{self.low:.7g} .. {self.high:.7g}" if self.low <= self.high else "no number"
        return ", ".join([number, *_counts(self, fate)])


@dataclass
class Total:
    """A conversion over all the times that it ran."""

    operation: TCvtOp
    fate: str
    runs: int = 0
    count: int = 0
    nan: int = 0
    inf: int = 0
    outside: int = 0
    lost_nan: int = 0

    def add(self, found: Produced) -> None:
        """Counts one run."""
        self.runs += 1
        for field in ("count", "nan", "inf", "outside", "lost_nan"):
            setattr(self, field, getattr(self, field) + getattr(found, field))

    def text(self) -> str:
        """One line with the conversion's place."""
        lost = ", ".join(_counts(self, self.fate)) or "all finite"
        where = location_of(self.operation)
        return f"{where}: {self.runs:,} runs, {self.count:,} elements: {lost}"


def _counts(found: Produced | Total, fate: str) -> list[str]:
    counted = (
        (found.nan, "NaN"),
        (found.inf, "inf"),
        (found.outside, fate),
        (found.lost_nan, "NaN to a number"),
    )
    return [f"{number:,} {what}" for number, what in counted if number]


class Trace:
    """Prints what every tile operation produces, and totals the conversions."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._totals: dict[Operation, Total] = {}

    def observe(self, op: Operation, compiler: Compiler, step: Step) -> Step:
        """The step that runs and reports an operation (`compiler.Observe`)."""
        tiles = _tiles_written(op, compiler)
        if not tiles:
            return step
        if isinstance(op, TCvtOp):
            return self._conversion(op, compiler, step)
        targets = compiler.slots(tiles)
        types = [str(value.type).removeprefix("!pto.") for value in tiles]
        line = location_of(op).line

        def observed(frame: Frame) -> None:
            step(frame)
            for slot, type_ in zip(targets, types, strict=True):
                self._write(f"{line:>5}  {op.name}  {type_}: {produced(frame[slot]).text()}")

        return observed

    def _conversion(self, op: TCvtOp, compiler: Compiler, step: Step) -> Step:
        conversion = resolved(op, compiler.options)
        total = self._totals.setdefault(op, Total(op, _fate(conversion)))
        tiles = TileOperation(op, compiler)
        src, dst = compiler.slots((tiles.operand("src"), tiles.operand("dst")))
        line = location_of(op).line

        def observed(frame: Frame) -> None:
            before = _defined_codes(frame[src])  # a copy: the tiles may overlap
            step(frame)
            if before is None:  # parts are poison, which only matters where they are used
                self._write(f"{line:>5}  {op.name}  {conversion}: partly poison")
                return
            values = decode(codes_of(frame[dst]), conversion.dst)
            nan = _nan(before, conversion.src)
            outside = _outside(before, conversion) & ~nan
            lost_nan = int((nan & ~_nan_values(values)).sum())
            found = _in_values(values, int(outside.sum()), lost_nan)
            total.add(found)
            self._write(f"{line:>5}  {op.name}  {conversion}: {found.text(total.fate)}")

        return observed

    def summary(self) -> list[str]:
        """A line for each conversion that ran, those that lost most first."""
        ran = [total for total in self._totals.values() if total.runs]
        ran.sort(key=lambda t: (-t.outside - t.lost_nan, -t.nan - t.inf, location_of(t.operation)))
        return [total.text() for total in ran]


def _tiles_written(op: Operation, compiler: Compiler) -> list[SSAValue]:
    """The tiles that an operation of the regular shape, or one that yields tiles, writes."""
    if isinstance(op, TCvtOp | GroupedOp):
        outs = TileOperation(op, compiler).outs
    else:
        outs = list(op.results)
    return [value for value in outs if is_tile(value)]


def _fate(conversion: ResolvedConversion) -> str:
    """What becomes of a number that is too large (spec S2 to S13)."""
    if conversion.saturation != "OFF":
        return "saturated"
    return "wrapped" if conversion.dst.is_integer else "overflowed"


def _outside(before: Array, conversion: ResolvedConversion) -> Array:
    """Where the source does not fit, once it is rounded (spec S1)."""
    src, dst, mode = conversion.src, conversion.dst, conversion.mode
    if dst.is_integer and dst.bits < 64:
        if not src.is_integer:
            before = convert_bits(before, src, "i64", mode, "ON")
            src = FORMATS["i64"]
        whole = decode(before, src)
        beyond: Array = (whole > dst.max_int) | (whole < dst.min_int)
        return beyond
    if conversion.saturation is not None:  # then it makes a difference where it does not fit
        on, off = (convert_bits(before, src, dst, mode, choice) for choice in ("ON", "OFF"))
        differs: Array = on != off
        return differs
    values = decode(before, src)
    if not dst.is_float or (src.is_integer and dst.name != "f16"):
        return np.zeros(before.shape, bool)
    # Half a step beyond the largest value; f32 and wider formats hold every source.
    step = float(dst.max_value) - float(decode(dst.max_code - 1, dst))
    too_large: Array = np.abs(values) >= float(dst.max_value) + step / 2
    return too_large


def codes_of(tile: Tile) -> Array:
    """A copy of the codes of the valid region."""
    return np.array(unpack(tile.read(), tile.element))


def _defined_codes(tile: Tile) -> Array | None:
    """`codes_of`; None where a part of the tile is poison."""
    try:
        return codes_of(tile)
    except RuntimeFault:
        return None


def _nan(codes: Array, fmt: Format) -> Array:
    return _nan_values(decode(codes, fmt))


def _nan_values(values: Array) -> Array:
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)


def produced(tile: Tile) -> Produced:
    """What is in the tile; nothing where a part of it was never written."""
    try:
        return _in_values(decode(codes_of(tile), tile.element.format))
    except RuntimeFault:
        return Produced(0.0, -1.0, 0, 0, 0)


def _in_values(values: Array, outside: int = 0, lost_nan: int = 0) -> Produced:
    finite = np.isfinite(values)
    numbers = values if finite.all() else values[finite]
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0.0, -1.0)
    nan = int(_nan_values(values).sum())
    inf = values.size - int(finite.sum()) - nan
    return Produced(float(low), float(high), values.size, nan, inf, outside, lost_nan)
