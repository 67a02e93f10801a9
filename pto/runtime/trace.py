"""What tile operations produce, as they run: ranges, NaN, infinities, and what conversions lose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.dialect.ops import TCvtOp
from pto.numerics import FORMATS, Format, convert_bits, decode
from pto.runtime.compiler import Compiler, Frame, Step
from pto.runtime.conversion import Rounding, pair_of, rounding_of
from pto.runtime.elements import Element, unpack
from pto.runtime.errors import Fault, place_of
from pto.runtime.operands import is_tile, operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile
from pto.targets import Pair

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
        filename, line, column = place_of(self.operation)
        lost = ", ".join(_counts(self, self.fate)) or "all finite"
        return f"{filename}:{line}:{column}: {self.runs:,} runs, {self.count:,} elements: {lost}"


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
        tiles = [value for value in operands_of(op).outs if is_tile(value)]
        if not tiles:
            return step
        if isinstance(op, TCvtOp):
            return self._conversion(op, compiler, step)
        targets = compiler.slots(tiles)
        types = [str(value.type).removeprefix("!pto.") for value in tiles]
        _, line, _ = place_of(op)

        def observed(frame: Frame) -> None:
            step(frame)
            for slot, type_ in zip(targets, types, strict=True):
                self._write(f"{line:>5}  {op.name}  {type_}: {produced(frame[slot]).text()}")

        return observed

    def _conversion(self, op: TCvtOp, compiler: Compiler, step: Step) -> Step:
        output = operands_of(op).outs[0]
        source, target = tile_layout(op.src).element, tile_layout(output).element
        pair = pair_of(source, target, compiler.options.arch)
        rounding = rounding_of(op, pair, compiler.options)
        total = self._totals.setdefault(op, Total(op, _fate(pair, rounding, target)))
        src, dst = compiler.slots((op.src, output))
        _, line, _ = place_of(op)
        names = f"{source.format} to {target.format}"

        def observed(frame: Frame) -> None:
            before = _defined_codes(frame[src])  # a copy: the tiles may overlap
            step(frame)
            if before is None:  # parts are undefined, which only matters where they are used
                self._write(f"{line:>5}  {op.name}  {names}: partly undefined")
                return
            values = decode(codes_of(frame[dst]), target.format)
            nan = _nan(before, source.format)
            outside = _outside(before, source.format, target.format, pair, rounding) & ~nan
            lost_nan = int((nan & ~_nan_values(values)).sum())
            found = _in_values(values, int(outside.sum()), lost_nan)
            total.add(found)
            self._write(f"{line:>5}  {op.name}  {names}: {found.text(total.fate)}")

        return observed

    def summary(self) -> list[str]:
        """A line for each conversion that ran, those that lost most first."""
        ran = [total for total in self._totals.values() if total.runs]
        ran.sort(key=lambda t: (-t.outside - t.lost_nan, -t.nan - t.inf, place_of(t.operation)))
        return [total.text() for total in ran]


def _fate(pair: Pair, rounding: Rounding, target: Element) -> str:
    """What becomes of a number that is too large (spec S2 to S13)."""
    if rounding.saturation == "ON" or not pair.has_saturation:
        return "saturated"
    return "wrapped" if target.format.is_integer else "overflowed"


def _outside(before: Array, src: Format, dst: Format, pair: Pair, rounding: Rounding) -> Array:
    """Where the source does not fit, once it is rounded (spec S1)."""
    if dst.is_integer and dst.bits < 64:
        if not src.is_integer:
            before = convert_bits(before, src, "i64", rounding.mode, "ON")
            src = FORMATS["i64"]
        whole = decode(before, src)
        beyond: Array = (whole > dst.max_int) | (whole < dst.min_int)
        return beyond
    if pair.has_saturation:  # then saturating makes a difference where it does not fit
        on, off = (
            convert_bits(before, src, dst, rounding.mode, saturation)
            for saturation in ("ON", "OFF")
        )
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
    """`codes_of`; None where a part of the tile is undefined."""
    try:
        return codes_of(tile)
    except Fault:
        return None


def _nan(codes: Array, fmt: Format) -> Array:
    return _nan_values(decode(codes, fmt))


def _nan_values(values: Array) -> Array:
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)


def produced(tile: Tile) -> Produced:
    """What is in the tile; nothing where a part of it was never written."""
    try:
        return _in_values(decode(codes_of(tile), tile.element.format))
    except Fault:
        return Produced(0.0, -1.0, 0, 0, 0)


def _in_values(values: Array, outside: int = 0, lost_nan: int = 0) -> Produced:
    finite = np.isfinite(values)
    numbers = values if finite.all() else values[finite]
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0.0, -1.0)
    nan = int(_nan_values(values).sum())
    inf = values.size - int(finite.sum()) - nan
    return Produced(float(low), float(high), values.size, nan, inf, outside, lost_nan)
