"""The lexer and the LALR(1) parser, driven by the tables of a grammar.

A parser calls builders: for each production the method that is named after it, with the values of
its parts. The value of a terminal is the number of its token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import itemgetter
from types import MethodType
from typing import Any, NewType, Protocol

from pto.grammar.tables import Tables, load

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
END = "$END"
_CUT = "$CUT"

_DESCRIPTIONS = {
    "ATTRIBUTE": "an attribute (#pto<..>)",
    "ATTRIBUTE_NAME": "an attribute (#pto.x)",
    "BUILTIN_ATTRIBUTE": "an attribute",
    "FLAGS": "flags (fastmath<..>)",
    "FLOAT": "a number",
    "GENERIC_NAME": 'an operation ("pto.x"(..))',
    "HEX": "a number",
    "INTEGER": "an integer",
    "LABEL": "a block (^bb0)",
    "NAME": "a word",
    "OPERATION": "an operation",
    "OTHER_TYPE": "a type",
    "RESULTS": "a result (%x =)",
    "SHAPE": "a shape (16x64x..)",
    "SSA": "a value (%x)",
    "STRING": "a string",
    "SYMBOL": "a symbol (@name)",
    "_DICTIONARY_OPEN": "'{'",
    "TYPE": "a type",
    END: "the end of the file",
}
# Terminals that are never worth naming as an alternative: they may stand almost anywhere.
_UNNAMED = {"LOCATION", "TYPE_ALIAS", "ATTRIBUTE_ALIAS", "EMPTY_BRACES", "RESULTS"}
_STATEMENTS = "a statement"
# Where these may stand, almost anything may: only the closing bracket is worth naming.
_FREE_CLAUSES = {"STAR", "QMARK"}
_CLOSING = {"RPAR", "RSQB", "RBRACE", "MORETHAN"}
_MAX_DEPTH = 600
_CHUNK = 64
_MAX_ALTERNATIVES = 7


Token = NewType("Token", int)
"""The number of a token in its text."""


class SyntaxProblem(Exception):
    """Something wrong at a token; the parser's caller adds the file and the line.

    `id` is that of the diagnostic, `offset` counts characters from the token's first one.
    """

    def __init__(self, token: int, message: str, *, id: str = "syntax", offset: int = 0) -> None:
        super().__init__(message)
        self.token = token
        self.message = message
        self.id = id
        self.offset = offset


@dataclass
class Tokens:
    """A text's tokens, column by column: terminal, text, offset of the first character."""

    kinds: list[str]
    texts: list[str]
    starts: list[int]


_Lexer = tuple[re.Pattern[str], re.Pattern[str], dict[int, str], dict[str, str]]


@cache
def _lexer(grammar: str) -> _Lexer:
    """All terminals, the blanks before them, the terminals by group, the words among them."""
    tables = load(grammar)
    pattern = re.compile(tables.pattern)
    blank = re.compile(tables.pattern[: tables.pattern.index("*+") + 2])
    names = {index: name for name, index in pattern.groupindex.items()}
    return pattern, blank, names, tables.keywords


def tokenize(grammar: str, text: str) -> Tokens:
    """Splits a text into tokens.

    The last token is `$END`, at the end of the last significant one; text that no terminal matches
    gives a token of the kind `` (empty) in front of it, which no state accepts.
    """
    return _tokens(grammar, text, 0, None)


def tokens_on_demand(grammar: str, text: str, start: int) -> Tokens:
    """The tokens from offset `start` on, read when one is asked for that has not been read."""
    end = start

    def read() -> None:
        nonlocal end
        more = _tokens(grammar, text, end, _CHUNK)
        end = more.starts[-1]
        count = len(more.kinds) - (more.kinds[-1] == _CUT)
        tokens.kinds += more.kinds[:count]
        tokens.texts += more.texts[:count]
        tokens.starts += more.starts[:count]

    tokens = Tokens(_Column(read), _Column(read), _Column(read))
    return tokens


class _Column(list[Any]):
    """A column of tokens that calls `read` for more of them."""

    def __init__(self, read: Callable[[], None]) -> None:
        super().__init__()
        self._read = read

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            while index >= len(self):
                self._read()
        return super().__getitem__(index)


def _tokens(grammar: str, text: str, start: int, limit: int | None) -> Tokens:
    """The tokens from offset `start` on, `$CUT` after `limit` of them."""
    pattern, blank, names, keywords = _lexer(grammar)
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    end = start
    matches = iter(pattern.scanner(text, start).match, None)  # type: ignore[attr-defined]
    for match in matches if limit is None else islice(matches, limit):
        index = match.lastindex
        name = names[index]
        word = match[index]
        if name in ("OPERATION", "NAME"):
            name = keywords.get(word, name)
        kinds.append(name)
        texts.append(word)
        starts.append(match.start(index))
        end = match.end()
    if limit is not None and len(kinds) == limit:
        return Tokens([*kinds, _CUT], [*texts, ""], [*starts, end])
    blanks = blank.match(text, end)
    bad = blanks.end() if blanks else end
    if bad < len(text):
        kinds.append("")
        string = _STRING.match(text, bad)
        texts.append(string[0] if string else text[bad])
        starts.append(bad)
    kinds.append(END)
    texts.append("")
    starts.append(end)
    return Tokens(kinds, texts, starts)


def _touches(tokens: Tokens, number: int) -> bool:
    """Whether a type or attribute ends right before the token."""
    if number == 0 or tokens.kinds[number - 1] not in ("TYPE", "ATTRIBUTE", "DIALECT_TYPE"):
        return False
    before = number - 1
    return tokens.starts[before] + len(tokens.texts[before]) == tokens.starts[number]


Reduction = tuple[int, str, Callable[..., Any] | None, int, Callable[[list[Any]], Any] | None]
"""Size, origin, action, how many children it is given, and how they are picked."""


@cache
def _reductions(grammar: str, classes: tuple[type, ...]) -> list[tuple[Reduction, int]]:
    """The reductions of a grammar; with each one the number of the builder whose method its action
    is, -1 where it is no method."""
    found: list[tuple[Reduction, int]] = []
    for production in load(grammar).productions:
        name, kept = production.action, production.kept
        owner = next((number for number, cls in enumerate(classes) if hasattr(cls, name)), -1)
        action: Callable[..., Any] | None = None
        if production.repeats:
            action, owner = _append if len(kept) == 2 else _single, -1
        elif owner >= 0:
            action = getattr(classes[owner], name)
            if isinstance(action, type):  # a record of the parts
                owner = -1
        elif len(kept) != 1:
            raise AssertionError(f"no builder has a method {name}")
        reduction = (production.size, production.origin, action, len(kept), _picker(kept))
        found.append((reduction, owner))
    return found


def _bound(reduction: Reduction, builder: object) -> Reduction:
    size, origin, method, count, picker = reduction
    return (size, origin, MethodType(method, builder), count, picker)  # type: ignore[arg-type]


def _picker(kept: tuple[int, ...]) -> Callable[[list[Any]], Any] | None:
    if not kept:
        return None
    return _absent if kept == (-1,) else itemgetter(*kept)


def _absent(parts: list[Any]) -> None:
    return None


def _append(items: list[Any], item: Any) -> list[Any]:
    items.append(item)
    return items


def _single(item: Any) -> list[Any]:
    return [item]


class Position(Protocol):
    """What knows how far the parser has come."""

    at: Token
    """The token in front of which an empty production is reduced."""


class Parser:
    """Parses texts of one grammar, and calls builders.

    For each production the method named after it is called, of the first builder that has it, with
    the values of its parts: the token's number for a terminal, what its own method returned for a
    rule, None for an optional part that is absent. A production with one part and no method has
    that part's value. A class in the place of a method is called without the builder.
    """

    def __init__(self, grammar: str, position: Position, builders: Sequence[object]) -> None:
        self.grammar = grammar
        self.tables: Tables = load(grammar)
        self.position = position
        self.stopped_at = -1
        reductions = _reductions(grammar, tuple(type(builder) for builder in builders))
        self.reductions = [
            reduction if owner < 0 else _bound(reduction, builders[owner])
            for reduction, owner in reductions
        ]

    def parse(self, tokens: Tokens, start: str, *, prefix: bool = False) -> Any:
        """The value of the text as a `start`.

        `position.at` is set whenever an empty production is reduced. With `prefix`, the longest
        text that is a `start` is taken; `stopped_at` is then the first token after it.

        Raises:
            SyntaxProblem: the text is not a `start`, or a builder says that something is wrong.
        """
        states = self.tables.states
        reductions = self.reductions
        position = self.position
        kinds = tokens.kinds
        state = states[self.tables.start_states[start]]
        end = self.tables.end_states[start]
        path = [state]
        values: list[Any] = []
        number = 0
        while True:
            code = state.get(kinds[number])
            if code is None:
                if not prefix or (code := state.get(END)) is None:
                    raise SyntaxProblem(*self._unexpected(tokens, number, state))
                kinds = [*kinds[:number], END]
            if code >= 0:
                state = states[code]
                path.append(state)
                values.append(number)
                number += 1
                if not number & 0x3F and len(path) > _MAX_DEPTH:
                    raise SyntaxProblem(number - 1, "nested too deeply")
                continue
            size, origin, action, count, picker = reductions[-1 - code]
            if size:
                parts = values[-size:]
                del values[-size:]
                del path[-size:]
                if count == 1:
                    part = picker(parts)  # type: ignore[misc]
                    value = part if action is None else action(part)
                elif count:
                    parts.append(None)
                    value = action(*picker(parts))  # type: ignore[misc]
                else:
                    value = action()  # type: ignore[misc]
            else:
                position.at = number  # type: ignore[assignment]
                value = action(*(None,) * count)  # type: ignore[misc]
            values.append(value)
            goto = path[-1][origin]
            if goto == end:
                self.stopped_at = number
                return value
            state = states[goto]
            path.append(state)

    def _unexpected(self, tokens: Tokens, number: int, state: dict[str, int]) -> tuple[int, str]:
        """The token at fault, and what was expected instead of it."""
        if tokens.kinds[number] == "_DICTIONARY_OPEN" and "LBRACE" in state:
            # A region whose first word is no statement looks like a dictionary to the lexer.
            found = tokens.texts[number + 1]
            return number + 1, f"expected '}}', a block (^bb0) or a statement, found '{found}'"
        return number, self._message(tokens, number, state)

    def _message(self, tokens: Tokens, number: int, state: dict[str, int]) -> str:
        found = tokens.texts[number]
        if found == "<" and _touches(tokens, number):
            return "angle brackets that do not match, or nest more than four deep"
        if found == '"':
            return "a string without its closing quote"
        expected = self._expected(state)
        if not found:
            return f"expected {expected}, but the text ends here"
        shown = found if len(found) <= 40 else f"{found[:37]}..."
        return f"expected {expected}, found '{shown}'"

    def _expected(self, state: dict[str, int]) -> str:
        names = {kind for kind in state if kind.isupper() or kind == END}
        names = names - _UNNAMED or names
        if names >= _FREE_CLAUSES:
            closing = sorted(self._describe(name) for name in names & _CLOSING)
            alternatives = [*closing, "a value, type or attribute"]
        elif "GENERIC_NAME" in names and "OPERATION" in names:
            statement_starts = {
                kind
                for kind in names
                if "." in self.tables.spellings.get(kind, "")
                or kind in ("OPERATION", "GENERIC_NAME", "MODULE", "RETURN", "TCVT", "CALL")
                or kind.startswith("ARITH_")
            }
            names -= statement_starts
            alternatives = sorted({self._describe(name) for name in names})
            alternatives.append(_STATEMENTS)
        else:
            alternatives = sorted({self._describe(name) for name in names})
        if len(alternatives) > _MAX_ALTERNATIVES:
            alternatives = [*alternatives[:_MAX_ALTERNATIVES], "..."]
        if len(alternatives) == 1:
            return alternatives[0]
        return f"{', '.join(alternatives[:-1])} or {alternatives[-1]}"

    def _describe(self, kind: str) -> str:
        if spelling := self.tables.spellings.get(kind):
            return f"'{spelling}'"
        if description := _DESCRIPTIONS.get(kind):
            return description
        words = sorted(word for word, name in self.tables.keywords.items() if name == kind)
        return f"'{words[0]}'" if words else kind.lower().strip("_")
