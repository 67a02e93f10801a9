"""Errors of execution: raised without a place by tiles and memory, located by the executor."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from pto.dialect.location import location_of


class RuntimeFault(Exception):
    """Something that must not happen when an operation runs.

    `notes` say what would help; `id` is that of the diagnostic which tells the same before the run,
    where there is one.
    """

    def __init__(self, message: str, *notes: str, id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.notes = notes
        self.id = id

    def text(self) -> str:
        """The message, and the id in brackets."""
        return f"{self.message} [{self.id}]" if self.id else self.message


class ArgumentFault(RuntimeFault):
    """An argument of the function that is missing or does not fit: the caller's mistake."""


def region_fault(message: str) -> RuntimeFault:
    """The fault of valid regions that do not fit each other."""
    return RuntimeFault(message, id="valid-region")


def unsupported(what: str, *notes: str) -> RuntimeFault:
    """The fault of what exists and is not supported."""
    return RuntimeFault(f"{what} is not supported", *notes)


class ExecutionError(Exception):
    """A fault at an operation: `file:line:col: error: message`, then the notes.

    Attributes:
        message: what went wrong.
        filename, line, column: the operation's place, from 1.
        notes: what would help, and the calls that led here.
        is_argument: whether an argument from outside is at fault, not the program.
    """

    def __init__(self, operation: Operation, fault: RuntimeFault) -> None:
        self.message = f"{operation.name}: {fault.text()}"
        self.notes = list(fault.notes)
        self.filename, self.line, self.column = location_of(operation)
        self.is_argument = isinstance(fault, ArgumentFault)
        super().__init__(self.message)

    def __str__(self) -> str:
        head = f"{self.filename}:{self.line}:{self.column}: error: {self.message}"
        return "\n".join([head, *(f"  note: {note}" for note in self.notes)])

    def __reduce__(self) -> tuple[Any, ...]:
        """The error, without the operation, for other processes."""
        return _execution_error, (self.message, dict(self.__dict__))


def _execution_error(message: str, state: dict[str, Any]) -> ExecutionError:
    """A pickled error again."""
    error = ExecutionError.__new__(ExecutionError, message)
    error.__dict__.update(state)
    return error
