"""Where the parts of a statement stand in the text: what a diagnostic's caret points at.

The IR knows where a statement starts. These functions scan the text from there, only for statements
that a diagnostic is about, so that parsing pays nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|\#(?=[\s!])[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<arrow>->)
      | (?P<value>%[\w$.\-]+(?:\#\d+)?)
      | (?P<word>[!\#@^]?[\w$.]+)
      | (?P<mark>[<>(){}\[\],:=])
      | (?P<other>\S)""",
    re.VERBOSE,
)
_OPENING = {"(": ")", "{": "}", "[": "]", "<": ">"}
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
class Attribute:
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
    attributes: dict[str, Attribute]


def part_of_type(text: str, type_: Span, part: str) -> Span:
    """The `dtype`, `loc`, `shape` or `valid` of a tile type; all of it where that is absent."""
    match = _PARTS[part].search(text, type_.start, type_.end)
    if match is None or match.lastindex is None:
        return type_
    start, end = match.span(match.lastindex)
    return Span(start, start + len(text[start:end].rstrip()))


def find_statement(text: str, offset: int, name: str) -> Statement | None:
    """The statement of operation `name` that starts at `offset`, None where there is none."""
    if text.startswith('"', offset):  # the generic form
        return None
    return _Scanner(text, offset).statement(name)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Scanner:
    """Reads the tokens of one statement, lazily."""

    def __init__(self, text: str, offset: int) -> None:
        self._tokens = self._scan(text, offset)
        self._ahead: _Token | None = next(self._tokens, None)
        self._last_end = offset
        self.attributes: dict[str, Attribute] = {}

    @staticmethod
    def _scan(text: str, offset: int) -> Iterator[_Token]:
        for match in _TOKEN.finditer(text, offset):
            if match.lastgroup != "comment":
                kind = match.lastgroup or ""
                yield _Token(kind, match.group(), match.start(), match.end())

    def _take(self) -> _Token | None:
        token = self._ahead
        if token is not None:
            self._last_end = token.end
            self._ahead = next(self._tokens, None)
        return token

    def _at(self, text: str) -> bool:
        return self._ahead is not None and self._ahead.text == text

    def statement(self, name: str) -> Statement | None:
        short = name.rpartition(".")[2]
        for _ in range(64):  # past `%a, %b =`
            token = self._take()
            if token is None:
                return None
            if token.text in (name, short):
                break
        else:
            return None
        ins, outs = Group(), Group()
        if self._at("ins"):
            self._take()
            self._parenthesised(ins)
            if self._at("outs"):
                self._take()
                self._parenthesised(outs)
            if self._at("{"):
                self._dictionary()
        else:
            self._bare(ins, outs)
        return Statement(Span(token.start, token.end), self._last_end, ins, outs, self.attributes)

    def _parenthesised(self, group: Group) -> None:
        if not self._at("("):
            return
        self._take()
        self._operands(group)
        if self._at(":"):
            self._take()
            self._types(group)
        if self._at(")"):
            self._take()

    def _bare(self, ins: Group, outs: Group) -> None:
        """`%a, %b {attributes} : types -> types`."""
        self._operands(ins)
        if self._at(":"):
            self._take()
            self._types(ins)
        if self._at("->"):
            self._take()
            self._types(outs)

    def _operands(self, group: Group) -> None:
        while self._ahead is not None and not (self._at(":") or self._at(")")):
            if self._at("{"):
                self._dictionary()
                continue
            token = self._take()
            if token is not None and token.kind == "value":
                group.operands.append(Span(token.start, token.end))

    def _types(self, group: Group) -> None:
        while (span := self._piece()) is not None:
            group.types.append(span)
            if not self._at(","):
                return
            self._take()

    def _dictionary(self) -> None:
        self._take()
        while self._ahead is not None and not self._at("}"):
            key = self._take()
            value = None
            if self._at("="):
                self._take()
                value = self._piece()
            if key is not None and key.text != ",":
                name = key.text.strip('"')
                self.attributes[name] = Attribute(Span(key.start, key.end), value)
        self._take()

    def _piece(self) -> Span | None:
        """One type or attribute value: a token and the brackets attached to it."""
        first = self._take()
        if first is None or first.text in _OPENING.values():
            return None
        if first.text in _OPENING:
            self._rest_of_bracket(_OPENING[first.text])
        while self._ahead is not None and self._ahead.start == self._last_end:
            if self._ahead.text not in _OPENING:
                break
            bracket = self._take()
            assert bracket is not None
            self._rest_of_bracket(_OPENING[bracket.text])
        if self._at(":") and first.kind in ("word", "other"):  # `1 : i32`
            self._take()
            self._piece()
        return Span(first.start, self._last_end)

    def _rest_of_bracket(self, closing: str) -> None:
        stack = [closing]
        while stack and (token := self._take()) is not None:
            if token.text in _OPENING:
                stack.append(_OPENING[token.text])
            elif token.text == stack[-1]:
                stack.pop()
