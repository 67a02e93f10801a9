"""Which values a format holds: enough to prove that a chain of conversions is exact.

A format is described by the significant bits of its values, the weight of its last place and its
range. From these follow the two questions of double rounding: does a conversion lose anything for
the values that can reach it, and is a chain the direct conversion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Grid:
    """A set of numbers: multiples of 2^`lsb` from `low` to `high` with `bits` significant bits."""

    bits: int
    lsb: int
    low: int | float
    high: int | float
    tapered: bool = False
    """The bits depend on the magnitude (hif8): as a destination it holds no other format."""

    def within(self, other: Grid) -> Grid:
        """The part of the set that is in the other's range."""
        return replace(self, low=max(self.low, other.low), high=min(self.high, other.high))

    def integers(self) -> Grid:
        """The part of the set that is integral."""
        return replace(self, lsb=max(self.lsb, 0))

    def holds(self, other: Grid) -> bool:
        """Whether every number of `other` is in this set; False where that is not certain."""
        if self.tapered:
            return other == self
        fine_enough = other.lsb >= self.lsb and other.used_bits() <= self.bits
        return fine_enough and self.reaches(other)

    def reaches(self, other: Grid) -> bool:
        """Whether the other's range lies within this one's."""
        return self.low <= other.low and other.high <= self.high

    def with_halves(self) -> Grid:
        """The set with the numbers half-way between its neighbours."""
        return replace(self, bits=self.bits + 1, lsb=self.lsb - 1)

    def used_bits(self) -> int:
        """The most significant bits that a number of the set has."""
        exponent = max(_exponent(-self.low), _exponent(self.high))
        return min(self.bits, exponent - self.lsb)


def _exponent(bound: int | float) -> int:
    """The least e with bound <= 2^e: a number below has its bits under 2^e, 2^e itself has one."""
    if isinstance(bound, int):
        return (bound - 1).bit_length() if bound > 0 else 0
    fraction, exponent = math.frexp(bound)
    return exponent - 1 if fraction == 0.5 else exponent


def _symmetric(bits: int, lsb: int, high: int | float, *, tapered: bool = False) -> Grid:
    return Grid(bits, lsb, -high, high, tapered)


def _float(exponent_max: int, fraction_bits: int, lsb: int) -> Grid:
    significand = (1 << (fraction_bits + 1)) - 1
    return _symmetric(fraction_bits + 1, lsb, significand << (exponent_max - fraction_bits))


def _signed(width: int) -> Grid:
    return Grid(width - 1, 0, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def _unsigned(width: int) -> Grid:
    return Grid(width, 0, 0, (1 << width) - 1)


_GRIDS: dict[str, Grid] = {
    "f64": _float(1023, 52, -1074),
    "f32": _float(127, 23, -149),
    "f16": _float(15, 10, -24),
    "bf16": _float(127, 7, -133),
    "f8e4m3fn": _symmetric(4, -9, 448),
    "f8e5m2": _float(15, 2, -16),
    "hif8": _symmetric(4, -22, 1 << 15, tapered=True),
    "f4e2m1": _symmetric(2, -1, 6),
    "f4e1m2": _symmetric(3, -2, 1.75),
    **{f"i{width}": _signed(width) for width in (4, 8, 16, 32, 64)},
    **{f"ui{width}": _unsigned(width) for width in (8, 16, 32, 64)},
}


def grid(name: str) -> Grid | None:
    """The grid of a format by its spec name; None where it is not described (f8e8m0, complex)."""
    return _GRIDS.get(name)


def is_integer(name: str) -> bool:
    """Whether the format is an integer one."""
    return name.startswith(("i", "ui"))


def loses(source: Grid, destination: Grid) -> bool:
    """Whether a conversion rounds any value of `source` that the destination does not clip."""
    return not destination.holds(source.within(destination))
