"""Errors of execution: raised without a place by tiles and memory, located by the executor."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation


class Fault(Exception):
    """Something that must not happen when an operation runs; `notes` say what would help."""

    def __init__(self, message: str, *notes: str) -> None:
        super().__init__(message)
        self.message = message
        self.notes = notes


class ArgumentFault(Fault):
    """An argument of the function that is missing or does not fit: the caller's mistake."""


class ExecutionError(Exception):
    """A fault at an operation: `file:line:col: error: message`, then the notes.

    Attributes:
        message: what went wrong.
        filename, line, column: the operation's place, from 1.
        notes: what would help, and the calls that led here.
        is_argument: whether an argument from outside is at fault, not the program.
    """

    def __init__(self, operation: Operation, fault: Fault) -> None:
        self.message = f"{operation.name}: {fault.message}"
        self.notes = list(fault.notes)
        self.filename, self.line, self.column = place_of(operation)
        self.is_argument = isinstance(fault, ArgumentFault)
        super().__init__(self.message)

    def __str__(self) -> str:
        head = f"{self.filename}:{self.line}:{self.column}: error: {self.message}"
        return "\n".join([head, *(f"  note: {note}" for note in self.notes)])


def place_of(operation: Operation) -> tuple[str, int, int]:
    """File, line and column of an operation; of the one around it where a pass made this one."""
    current: Operation | None = operation
    while current is not None:
        location = current.location
        if isinstance(location, FileLineColLoc):
            return location.filename.data, location.line.data, location.column.data
        current = current.parent_op()
    return "<module>", 1, 1
