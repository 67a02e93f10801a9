"""What tile operations produce, as they run: ranges, NaN, infinities and saturated elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.dialect.ops import TCvtOp
from pto.numerics import Format, decode
from pto.runtime.compiler import Compiler, Frame, Step
from pto.runtime.elements import Element, unpack
from pto.runtime.errors import Fault, place_of
from pto.runtime.operands import is_tile, operands_of
from pto.runtime.tile import Tile

Array = NDArray[Any]


@dataclass(frozen=True)
class Produced:
    """What is in a tile: the range is over its finite elements."""

    low: float
    high: float
    count: int
    nan: int
    inf: int
    saturated: int = 0
    """Elements that a conversion clamped, because they do not fit the destination."""
    lost_nan: int = 0
    """Elements that a conversion turned from NaN into a number."""

    def text(self) -> str:
        """`-3.2 .. 3.1, 2 NaN, 5 saturated`."""
        parts = [f"{self.low:.7g} .. {self.high:.7g}" if self.low <= self.high else "no number"]
        for number, what in (
            (self.nan, "NaN"),
            (self.inf, "inf"),
            (self.saturated, "saturated"),
            (self.lost_nan, "NaN to a number"),
        ):
            if number:
                parts.append(f"{number} {what}")
        return ", ".join(parts)


@dataclass
class Total:
    """A conversion over all the times that it ran."""

    operation: TCvtOp
    runs: int = 0
    count: int = 0
    nan: int = 0
    inf: int = 0
    saturated: int = 0
    lost_nan: int = 0

    def add(self, produced: Produced) -> None:
        """Counts one run."""
        self.runs += 1
        self.count += produced.count
        self.nan += produced.nan
        self.inf += produced.inf
        self.saturated += produced.saturated
        self.lost_nan += produced.lost_nan


class Trace:
    """Prints what every tile operation produces, and totals the conversions."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.conversions: dict[Operation, Total] = {}

    def observe(self, op: Operation, compiler: Compiler, step: Step) -> Step:
        """The step that runs and reports an operation (`compiler.Observe`)."""
        operands = operands_of(op)
        tiles = [value for value in operands.outs if is_tile(value)]
        if not tiles:
            return step
        targets = compiler.slots(tiles)
        types = [str(value.type).removeprefix("!pto.") for value in tiles]
        if isinstance(op, TCvtOp):
            return self._conversion(op, compiler.slot(op.src), targets[0], step)
        _, line, _ = place_of(op)

        def observed(frame: Frame) -> None:
            step(frame)
            for slot, type_ in zip(targets, types, strict=True):
                self._write(f"{line:>5}  {op.name}  {type_}: {produced(frame[slot]).text()}")

        return observed

    def _conversion(self, op: TCvtOp, source: int, target: int, step: Step) -> Step:
        _, line, _ = place_of(op)
        total = self.conversions.setdefault(op, Total(op))

        def observed(frame: Frame) -> None:
            tile: Tile = frame[source]
            before = values_of(tile.read(), tile.element)  # a copy: the tiles may overlap
            step(frame)
            result: Tile = frame[target]
            after = values_of(result.read(), result.element)
            found = converted(before, after, result.element.format)
            total.add(found)
            pair = f"{tile.element.format} to {result.element.format}"
            self._write(f"{line:>5}  {op.name}  {pair}: {found.text()}")

        return observed

    def summary(self) -> list[str]:
        """A line for each conversion that ran, those that lost most first."""
        ran = [total for total in self.conversions.values() if total.runs]
        ran.sort(key=lambda t: (-t.saturated - t.lost_nan, -t.nan - t.inf, place_of(t.operation)))
        return [_total_line(total) for total in ran]


def _total_line(total: Total) -> str:
    filename, line, column = place_of(total.operation)
    counts = (
        (total.saturated, "saturated"),
        (total.lost_nan, "NaN to a number"),
        (total.nan, "NaN"),
        (total.inf, "inf"),
    )
    lost = ", ".join(f"{number:,} {what}" for number, what in counts if number) or "all finite"
    return f"{filename}:{line}:{column}: {total.runs:,} runs, {total.count:,} elements: {lost}"


def values_of(stored: Array, element: Element) -> Array:
    """The elements as f64, or as integers."""
    return decode(unpack(np.array(stored), element), element.format)


def produced(tile: Tile) -> Produced:
    """What is in the tile; elements that were never written do not count."""
    try:
        values = values_of(tile.read(), tile.element)
    except Fault:
        return Produced(0.0, -1.0, 0, 0, 0)
    return _in_values(values)


def _in_values(values: Array, saturated: int = 0, lost_nan: int = 0) -> Produced:
    finite = np.isfinite(values)
    numbers = values if finite.all() else values[finite]
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0.0, -1.0)
    nan = int(np.isnan(values).sum())
    inf = values.size - int(finite.sum()) - nan
    return Produced(float(low), float(high), values.size, nan, inf, saturated, lost_nan)


def converted(before: Array, after: Array, target: Format) -> Produced:
    """What a conversion produced, with what it clamped."""
    largest, smallest = float(target.max_value), float(target.min_value)
    over = (before > largest) & (after == target.max_value)
    under = (before < smallest) & (after == target.min_value)
    lost = np.isnan(before) & ~np.isnan(after)
    return _in_values(after, int(over.sum() + under.sum()), int(lost.sum()))
