"""Double rounding: whether rounding a value twice can differ from rounding it once (spec V)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pto.numerics.formats import Format
from pto.numerics.value_sets import ValueSet, loses, value_set

_DIRECTED = ("FLOOR", "CEIL", "TRUNC")


@dataclass(frozen=True, slots=True)
class Rounding:
    """A conversion and the mode by which it rounds, NONE and absence resolved (spec R7, R9)."""

    src: Format
    dst: Format
    mode: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of some numbers."""

    values: ValueSet
    """They are all in this set."""
    rounded: Rounding | None = None
    """The conversion that last lost precision, none yet if None."""
    original: ValueSet | None = None
    """The set of the numbers before that conversion."""


@dataclass(frozen=True, slots=True)
class DoubleRounding:
    """Two conversions that round the same value one after the other."""

    first: Rounding
    second: Rounding
    odd_helps: bool
    """Rounding the first step by ODD would make the result that of rounding once."""


def follow(step: Rounding, before: Known | None) -> tuple[Known | None, DoubleRounding | None]:
    """What is known after a step, and whether the step rounds what was rounded before.

    `before` None stands for numbers of the source of which nothing else is known. What is known
    after is None where the formats are not described.
    """
    source, destination = value_set(step.src), value_set(step.dst)
    if source is None or destination is None:
        return None, None
    before = before or Known(source)
    if not loses(before.values, destination):
        return replace(before, values=before.values.within(destination)), None
    first, original = before.rounded, before.original
    found = None
    if first and original and _can_differ(original, first, step, destination):
        odd = replace(first, mode="ODD")
        has_odd = (first.src.name, first.dst.name) == ("f32", "f16")  # spec R6
        helps = has_odd and not _can_differ(original, odd, step, destination)
        found = DoubleRounding(first, step, helps)
    after = destination.within(before.values)
    integral = before.values.lsb >= 0 or step.src is step.dst
    return Known(after.integers() if integral else after, step, before.values), found


def _can_differ(
    original: ValueSet, first: Rounding, second: Rounding, destination: ValueSet
) -> bool:
    """Whether rounding `original` by the two steps can differ from rounding it once."""
    middle = value_set(first.dst)
    if middle is None or first.dst.is_integer or first.src is first.dst:
        return False  # rounding to an integral value is meant as such
    reaching = original.within(destination)
    if middle.holds(reaching):
        return False  # what the first step rounds, the second clips
    unsigned = destination.low == 0  # negatives are clipped: FLOOR is TRUNC there
    modes = [_towards_zero(step.mode) if unsigned else step.mode for step in (first, second)]
    if _loses_only_near_zero(reaching, middle, destination):
        return modes[1] not in ("RINT", "ROUND", "TRUNC") and modes[0] != modes[1]
    if modes[0] == modes[1] and modes[0] in _DIRECTED:
        return not middle.holds(destination)
    if modes == ["TRUNC", "ROUND"]:  # half-way and above goes up, and truncation keeps that
        return not middle.holds(destination.with_halves())
    # Round to odd keeps the sticky bit: safe with two bits to spare (spec R6).
    spare = middle.bits >= destination.bits + 2 and middle.holds(destination.with_halves())
    return not (first.mode == "ODD" and spare)


def _towards_zero(mode: str) -> str:
    return "TRUNC" if mode == "FLOOR" else mode


def _loses_only_near_zero(source: ValueSet, middle: ValueSet, destination: ValueSet) -> bool:
    """Whether the middle format rounds only numbers that are too small to matter: less than half
    of the destination's least step, before and after."""
    if source.used_bits() > middle.bits or not middle.reaches(source):
        return False
    exponent = middle.lsb + source.bits - 1  # from 2^exponent on, the middle holds all bits
    return exponent < destination.lsb - 1
