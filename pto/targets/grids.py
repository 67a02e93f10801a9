"""Which values a format holds, coarsely: enough to prove that a chain of conversions is exact.

A format is described by the significant bits of its values, the weight of its last place and its
largest magnitude. From these follow the two questions of double rounding: does a conversion lose
anything for the values that can reach it, and is a chain the direct conversion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Grid:
    """A set of numbers: multiples of 2^`lsb` up to `bound` with `bits` significant bits."""

    bits: int
    lsb: int
    bound: int
    tapered: bool = False
    """The bits depend on the magnitude (hif8): as a destination it holds no other format."""

    def within(self, bound: int) -> Grid:
        """The part of the set up to this magnitude."""
        return replace(self, bound=min(self.bound, bound))

    def integers(self) -> Grid:
        """The part of the set that is integral."""
        return replace(self, lsb=max(self.lsb, 0))

    def holds(self, other: Grid) -> bool:
        """Whether every number of `other` is in this set; False where that is not certain."""
        if self.tapered:
            return other == self
        used = min(other.bits, other.bound.bit_length() - other.lsb)
        return used <= self.bits and other.lsb >= self.lsb and other.bound <= self.bound


def _float(exponent_max: int, fraction_bits: int, lsb: int) -> Grid:
    significand = (1 << (fraction_bits + 1)) - 1
    shift = exponent_max - fraction_bits
    bound = significand << shift if shift >= 0 else significand >> -shift
    return Grid(fraction_bits + 1, lsb, bound)


def _integer(width: int, *, signed: bool) -> Grid:
    magnitude_bits = width - 1 if signed else width
    return Grid(magnitude_bits, 0, 1 << magnitude_bits)


_GRIDS: dict[str, Grid] = {
    "f64": _float(1023, 52, -1074),
    "f32": _float(127, 23, -149),
    "f16": _float(15, 10, -24),
    "bf16": _float(127, 7, -133),
    "f8e4m3fn": Grid(4, -9, 448),
    "f8e5m2": _float(15, 2, -16),
    "hif8": Grid(4, -22, 1 << 15, tapered=True),
    "f4e2m1": Grid(2, -1, 6),
    "f4e1m2": Grid(3, -2, 1),
    "i4": _integer(4, signed=True),
    "i8": _integer(8, signed=True),
    "i16": _integer(16, signed=True),
    "i32": _integer(32, signed=True),
    "i64": _integer(64, signed=True),
    "ui8": _integer(8, signed=False),
    "ui16": _integer(16, signed=False),
    "ui32": _integer(32, signed=False),
}


def grid(name: str) -> Grid | None:
    """The grid of a format by its spec name; None where it is not described (f8e8m0, complex)."""
    return _GRIDS.get(name)


def is_integer(name: str) -> bool:
    """Whether the format is an integer one."""
    return name.startswith(("i", "ui"))


def loses(source: Grid, destination: Grid) -> bool:
    """Whether a conversion rounds any value of `source` that the destination does not clip."""
    return not destination.holds(source.within(destination.bound))
