"""Where operations stand: in the text that was parsed, or where a written `loc(..)` says."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation


class Location(NamedTuple):
    """A place in a file, line and column counted from 1."""

    filename: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"


NOWHERE = Location("<module>", 1, 1)

_IN_TEXT: WeakKeyDictionary[Operation, FileLineColLoc] = WeakKeyDictionary()


def remember_place(op: Operation) -> None:
    """Keeps where an operation stands in the text, before a written `loc(..)` takes its location's
    place."""
    if isinstance(op.location, FileLineColLoc):
        _IN_TEXT[op] = op.location


def location_of(op: Operation, *, in_text: bool = False) -> Location:
    """The place of an operation: what its `loc(..)` says where it has one, else where it stands.

    `in_text` asks for the latter. An operation that a pass has made is where the one around it is.
    """
    current: Operation | None = op
    while current is not None:
        place = _IN_TEXT.get(current, current.location) if in_text else current.location
        if isinstance(place, FileLineColLoc):
            return Location(place.filename.data, place.line.data, place.column.data)
        current = current.parent_op()
    return NOWHERE
