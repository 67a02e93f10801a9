"""What a rule yields: a finding, and the part of a statement that it is about."""

from __future__ import annotations

from dataclasses import dataclass

from pto.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Anchor:
    """A part of a statement: what the caret points at.

    Without an operand and without an attribute it is the operation's name.
    """

    operand: str = ""
    """"src" | "tmp" | "dst"."""
    part: str = ""
    """Of the operand's type: "dtype", "loc", "shape" or "valid"; "" for the operand itself."""
    attribute: str = ""
    """The key of an attribute."""
    value: bool = False
    """The attribute's value, not its key."""


NAME = Anchor()


def value_of(attribute: str) -> Anchor:
    """The value of an attribute."""
    return Anchor(attribute=attribute, value=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has to say, before it has a place in the text."""

    id: str
    message: str
    anchor: Anchor = NAME
    notes: tuple[str, ...] = ()
    severity: Severity | None = None
    """Only where it differs from the registry's."""
    quiet: bool = False
