"""Where the parts of a statement stand in the text: what a diagnostic's caret points at.

The IR knows where a statement starts. These functions read the tokens from there on, only for
statements that a diagnostic is about, so that parsing pays nothing for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pto.grammar.lalr import END, tokens_on_demand

_OPENING = ("(", "[", "{", "<")
_CLOSING = (")", "]", "}", ">")
_OPERATION = re.compile(r"[A-Za-z_]\w*\.\w|return\b|\^")
"""The start of another statement, or of a block."""
_STOPS = ("RESULTS", "LBRACE", END)
_PARTS = {
    "dtype": re.compile(r"dtype\s*=\s*([^,>]+)|<(?:[^,<>]*,)?\s*(?:[\d?]+x)+([^,<>]+)"),
    "loc": re.compile(r"loc\s*=\s*(\w+)|<\s*(\w+)\s*,"),
    "shape": re.compile(
        r"(rows\s*=\s*\d+\s*,\s*cols\s*=\s*\d+)|<(?:[^,<>]*,)?\s*(\d+x\d+)x[^,<>]+"
    ),
    "valid": re.compile(
        r"(v_row\s*=\s*[\d?]+\s*,\s*v_col\s*=\s*[\d?]+)|(valid\s*=\s*[\d?]+x[\d?]+)"
    ),
}


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of the text, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an attribute dictionary."""

    key: Span
    value: Span | None


@dataclass(slots=True)
class Group:
    """`operands {attributes} : types`, one of the groups of a statement."""

    operands: list[Span] = field(default_factory=list)
    types: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Statement:
    """The parts of one statement that has operands, attributes and types in `ins(..) outs(..)`
    or in `operands {attributes} : types -> types`."""

    name: Span
    end: int
    ins: Group
    outs: Group
    attributes: dict[str, Entry]


def part_of_type(text: str, type_: Span, part: str) -> Span:
    """The `dtype`, `loc`, `shape` or `valid` of a tile type; all of it where that is absent."""
    match = _PARTS[part].search(text, type_.start, type_.end)
    if match is None or match.lastindex is None:
        return type_
    start, end = match.span(match.lastindex)
    return Span(start, start + len(text[start:end].rstrip()))


def find_statement(text: str, offset: int, name: str) -> Statement | None:
    """The statement of operation `name` that starts at `offset`, None where there is none.

    A statement in generic form is none.
    """
    reader = _Reader(text, offset)
    if reader.kind == "RESULTS":
        reader.take()
    return reader.statement() if reader.text in (name, name.rpartition(".")[2]) else None


class _Reader:
    """Reads the tokens of one statement."""

    def __init__(self, text: str, offset: int) -> None:
        self._tokens = tokens_on_demand("pto", text, offset)
        self._next = 0
        self._end = offset
        self._attributes: dict[str, Entry] = {}

    @property
    def kind(self) -> str:
        """The terminal that comes next."""
        return self._tokens.kinds[self._next]

    @property
    def text(self) -> str:
        """The text of the token that comes next."""
        return self._tokens.texts[self._next]

    def take(self) -> Span:
        """Takes a token."""
        start = self._tokens.starts[self._next]
        self._end = start + len(self.text)
        if self.kind != END:
            self._next += 1
        return Span(start, self._end)

    def _took(self, text: str) -> bool:
        """Takes the token that comes next if this is its text."""
        found = self.text == text
        if found:
            self.take()
        return found

    def statement(self) -> Statement:
        """The statement whose name comes next."""
        name, ins, outs = self.take(), Group(), Group()
        if self._took("ins"):
            self._parenthesised(ins)
            if self._took("outs"):
                self._parenthesised(outs)
            self._dictionary()
        else:
            if self.kind == "RESULTS":  # the variable of a loop
                self.take()
            self._operands(ins)
            if self._took(":"):
                self._types(ins)
            if self._took("->"):
                self._types(outs)
        return Statement(name, self._end, ins, outs, self._attributes)

    def _parenthesised(self, group: Group) -> None:
        if self._took("("):
            self._operands(group)
            if self._took(":"):
                self._types(group)
            self._took(")")

    def _operands(self, group: Group) -> None:
        """The operands up to the types or the end, and the dictionary among them."""
        while self.text not in (":", "->", ")", "}") and self.kind not in _STOPS:
            if self.kind == "SSA":
                group.operands.append(self.take())
            elif _OPERATION.match(self.text):
                return
            elif not self._dictionary():
                self.take()

    def _types(self, group: Group) -> None:
        while self.text not in _CLOSING and self.kind != END:
            group.types.append(self._piece())
            if not self._took(","):
                return

    def _dictionary(self) -> bool:
        """Takes a dictionary, if one comes next."""
        if self.kind not in ("_DICTIONARY_OPEN", "EMPTY_BRACES"):
            return False
        is_empty = self.kind == "EMPTY_BRACES"
        self.take()
        while not is_empty and not self._took("}") and self.kind != END:
            name = self.text.strip('"')
            key = self.take()
            value = self._value() if self._took("=") else None
            self._attributes[name] = Entry(key, value)
            self._took(",")
        return True

    def _value(self) -> Span:
        """The value of an attribute: all up to the comma or the end of the dictionary."""
        span = self._piece()
        while self.text not in (",", "}") and self.kind != END:
            span = Span(span.start, self._piece().end)
        return span

    def _piece(self) -> Span:
        """A token, with all that stands in brackets where it opens some."""
        is_bracket = self.text in _OPENING
        first = self.take()
        while is_bracket and self.text not in _CLOSING and self.kind != END:
            self._piece()
        if is_bracket:
            self.take()
        return Span(first.start, self._end)
