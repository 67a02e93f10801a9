"""Which values a format holds: enough to prove that conversions lose nothing.

A set is described by the significant bits of its values, the weight of their last place and their
range. From these follow the two questions of chains and of double rounding: does a conversion lose
anything for the values that can reach it, and is a chain the direct conversion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from pto.numerics.formats import Format


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Multiples of 2^`lsb` from `low` to `high` with at most `bits` significant bits."""

    bits: int
    lsb: int
    low: int | float
    high: int | float
    tapered: bool = False
    """The bits depend on the magnitude (hif8): as a destination it holds no other format."""

    def within(self, other: ValueSet) -> ValueSet:
        """The part of the set that is in the other's range."""
        return replace(self, low=max(self.low, other.low), high=min(self.high, other.high))

    def integers(self) -> ValueSet:
        """The part of the set that is integral."""
        return replace(self, lsb=max(self.lsb, 0))

    def holds(self, other: ValueSet) -> bool:
        """Whether every number of `other` is in this set; False where that is not certain."""
        if self.tapered:
            return other == self
        fine_enough = other.lsb >= self.lsb and other.used_bits() <= self.bits
        return fine_enough and self.reaches(other)

    def reaches(self, other: ValueSet) -> bool:
        """Whether the other's range lies within this one's."""
        return self.low <= other.low and other.high <= self.high

    def with_halves(self) -> ValueSet:
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


@cache
def value_set(fmt: Format) -> ValueSet | None:
    """The finite values of a format; None where they are not described (f8e8m0, complex)."""
    match fmt.kind:
        case "signed" | "unsigned":
            return ValueSet(fmt.bits - (fmt.kind == "signed"), 0, fmt.min_int, fmt.max_int)
        case "tapered":
            top = int(fmt.max_value)
            return ValueSet(fmt.mantissa_bits + 1, lowest_bit(fmt), -top, top, tapered=True)
        case "float":
            largest = fmt.max_value
            high = int(largest) if largest == int(largest) else largest
            return ValueSet(fmt.mantissa_bits + 1, lowest_bit(fmt), -high, high)
        case _:
            return None


def lowest_bit(fmt: Format) -> int:
    """Exponent of the smallest step of a float format."""
    match fmt.kind:
        case "tapered":
            return -22
        case "scale":
            return -fmt.bias
        case _:
            return fmt.min_exponent - fmt.mantissa_bits


def loses(source: ValueSet, destination: ValueSet) -> bool:
    """Whether a conversion rounds any value of `source` that the destination does not clip."""
    return not destination.holds(source.within(destination))
