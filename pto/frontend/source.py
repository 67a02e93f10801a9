"""Source text: positions, and errors that show them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from xdsl.ir import Operation

_MAX_SHOWN_WIDTH = 160


class Source:
    """A file's text and how offsets in it read as lines and columns, both counted from 1."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of each line."""
        starts = [0]
        find = self.text.find
        while (newline := find("\n", starts[-1])) >= 0:
            starts.append(newline + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Offset of a line and column."""
        return self.line_starts[line - 1] + column - 1

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


def excerpt(line: str, column: int, width: int = 1) -> str:
    """The source line with carets under `width` characters from `column` (from 1) on.

    A line longer than a terminal is cut to a window around the column.
    """
    line = line.replace("\t", " ")
    first = 0
    if len(line) > _MAX_SHOWN_WIDTH:
        first = max(0, min(column - 1 - _MAX_SHOWN_WIDTH // 2, len(line) - _MAX_SHOWN_WIDTH))
        line = line[first : first + _MAX_SHOWN_WIDTH]
    caret = column - 1 - first
    width = max(1, min(width, len(line) - caret))
    return f"  {line}\n  {' ' * caret}^{'~' * (width - 1)}"


class ParseError(Exception):
    """A `.pto` text that cannot be read.

    Attributes:
        message: what is wrong, and what was expected.
        filename, line, column: where, from 1.
        source_line: the text of that line.
        width: how many characters are at fault.
        id: `syntax`, or `attribute` for an attribute of the wrong kind (spec V).
    """

    def __init__(
        self, source: Source, offset: int, message: str, *, width: int = 1, id: str = "syntax"
    ) -> None:
        self.message = message
        self.filename = source.filename
        self.line, self.column = source.position(offset)
        self.source_line = source.line(self.line)
        self.width = width
        self.id = id
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions of worker processes are pickled."""
        return _parse_error, (type(self), self.message, dict(self.__dict__))

    def __str__(self) -> str:
        head = f"{self.filename}:{self.line}:{self.column}: error: {self.message}"
        if self.id != "syntax":
            head += f" [{self.id}]"
        return f"{head}\n{excerpt(self.source_line, self.column, self.width)}"


class NotText(ParseError):
    """A file that is not UTF-8 text at all."""

    def __init__(self, filename: str, reason: str) -> None:
        super().__init__(Source("", filename), 0, f"not a text file ({reason})")

    def __str__(self) -> str:
        return f"{self.filename}: {self.message}"


def _parse_error(cls: type[ParseError], message: str, state: dict[str, Any]) -> ParseError:
    """A pickled error again."""
    error = cls.__new__(cls, message)
    error.__dict__.update(state)
    return error


_SOURCES: WeakKeyDictionary[Operation, Source] = WeakKeyDictionary()


def remember_source(module: Operation, source: Source) -> None:
    """Keeps the text that a module was parsed from, for diagnostics."""
    _SOURCES[module] = source


def source_of(module: Operation) -> Source | None:
    """The text that a module was parsed from, if it was parsed."""
    return _SOURCES.get(module)
