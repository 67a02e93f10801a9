"""Frames: where a running function keeps its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

Frame = list[Any]
"""Values by slot; slot 0 holds the core."""

Step = Callable[[Frame], None]
"""What an operation does when it runs."""


class Slots:
    """The slots of a function's values, and the constants that every frame starts with."""

    def __init__(self) -> None:
        self._slots: dict[SSAValue, int] = {}
        self.template: Frame = [None, None]
        """A frame with the constants in place."""

    CORE = 0
    ABSENT = 1
    """The slot of a value that is not there, which holds None."""

    def slot(self, value: SSAValue) -> int:
        """The slot of a value."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self.template)
            self.template.append(None)
        return slot

    def slots(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """The slots of values."""
        return tuple(self.slot(value) for value in values)

    def optional(self, value: SSAValue | None) -> int:
        """The slot of a value that may be absent."""
        return self.ABSENT if value is None else self.slot(value)

    def constant(self, value: SSAValue, constant: object) -> None:
        """Puts the value of a constant into every frame."""
        self.template[self.slot(value)] = constant


def move(frame: Frame, sources: tuple[int, ...], targets: tuple[int, ...]) -> None:
    """Assigns in parallel."""
    values = [frame[source] for source in sources]
    for target, value in zip(targets, values, strict=True):
        frame[target] = value
