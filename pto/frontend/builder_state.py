"""What all builders of one text share: its tokens, the values and their names, locations, and how
an operation is made."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import FileLineColLoc, IndexType, IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from pto.dialect.names import KNOWN_OPERATIONS
from pto.dialect.ops import PtoOp
from pto.dialect.type_records import type_text
from pto.frontend.source import Source
from pto.grammar.lalr import SyntaxProblem, Token, Tokens
from pto.spelling import did_you_mean

Values: TypeAlias = list[Token] | None
Types: TypeAlias = list[Attribute] | None

INDEX = IndexType()
_RESULT = re.compile(r"(%[\w$.-]+)(?::([0-9]+))?")
_WRITTEN_LOCATION = re.compile(r'loc\s*\(\s*"([^"]*)"\s*:\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*\)')
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t"}
_CHECKED_DIALECTS = ("arith", "scf", "cf", "func", "pto", "builtin")
_SEARCHED_NAMES = 2000
_RESULT_COUNT_DIGITS = 4
_COUNT_WORDS = {0: "no", 1: "one"}


class Entries(dict[str, Attribute]):
    """An attribute dictionary that knows the tokens of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_at: dict[str, Token] = {}

    def value_at(self, key: str) -> Token:
        """The token at which the value of `key` starts."""
        return Token(self.keys_at[key] + 2)

    def add(self, token: Token, key: str, value: Attribute) -> None:
        """Adds an entry. Raises SyntaxProblem where the key is there already."""
        if key in self:
            raise SyntaxProblem(token, f"the attribute '{key}' is given twice")
        self[key] = value
        self.keys_at[key] = token

    def merged(self, other: Entries | None) -> Entries:
        """The entries of both. Raises SyntaxProblem where both have a key."""
        if not other:
            return self
        if not self:
            return other
        both = Entries()
        for entries in (self, other):
            for key, value in entries.items():
                both.add(entries.keys_at[key], key, value)
        return both


NO_ENTRIES = Entries()
"""An empty dictionary, which nothing is added to."""


class Header(NamedTuple):
    """What is written of an operation in front of its first region: `make` takes its parts."""

    cls: type[Operation]
    operands: Sequence[SSAValue] = ()
    results: Sequence[Attribute] = ()
    properties: Mapping[str, Attribute] = NO_ENTRIES
    attributes: Entries | None = None


class Forward(SSAValue):
    """A value used before its definition; replaced when the definition comes."""

    def __init__(self, token: Token, type: Attribute | None) -> None:
        super().__init__(type if type is not None else INDEX)
        self.token = token
        """The token of its first use."""
        self.expected = type

    @property
    def owner(self) -> Operation | Block:
        raise AssertionError("a forward reference has no owner")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@cache
def make_string(text: str) -> StringAttr:
    """The string attribute, one per text."""
    return StringAttr(text)


@lru_cache(maxsize=100_000)
def _integer(value: int) -> IntAttr:
    return IntAttr(value)


def counted(number: int, noun: str) -> str:
    """`no value`, `one value`, `2 values`."""
    return f"{_COUNT_WORDS.get(number, number)} {noun}{'' if number == 1 else 's'}"


class BuilderState:
    """The state of reading one text. The parser sets `at` in front of every empty production."""

    at = Token(0)

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.source = source
        self.tokens = tokens
        self.texts = tokens.texts
        self.kinds = tokens.kinds
        self.statements: list[Token] = []
        """The first tokens of the statements that are not finished, the innermost one last."""
        self._filename = make_string(source.filename)
        self._line_starts = source.line_starts
        self._values: dict[str, SSAValue] = {}
        self._defined_at: dict[str, Token] = {}
        self._scopes: list[list[str]] = []
        self._forwards: list[dict[str, Forward]] = [{}]
        """By name, for each region that is open and around all of them."""

    # ---- Tokens

    def content(self, token: Token, text: str | None = None) -> str:
        """The content of a token's text, or of a part of it: unquoted if it is quoted.

        Raises:
            SyntaxProblem: its escapes are not UTF-8.
        """
        text = self.texts[token] if text is None else text
        if not text.startswith('"'):
            return text
        body = text[1:-1]
        if "\\" not in body:
            return body
        try:
            return _ESCAPE.sub(_unescape, body.encode()).decode()
        except UnicodeDecodeError:
            raise SyntaxProblem(token, "the escapes of this string are not UTF-8") from None

    def name_token(self) -> Token:
        """The token that names the innermost operation."""
        start = self.statements[-1]
        return Token(start + 1) if self.kinds[start] == "RESULTS" else start

    def result_count(self) -> int:
        """How many results the innermost operation names."""
        start = self.statements[-1]
        return len(self._result_names(start)) if self.kinds[start] == "RESULTS" else 0

    def _result_names(self, token: Token) -> list[str]:
        text = self.texts[token]
        if "," not in text and ":" not in text:
            return [text[:-1].rstrip()]
        names: list[str] = []
        for name, count in _RESULT.findall(text):
            if len(count) > _RESULT_COUNT_DIGITS:
                raise SyntaxProblem(token, f"{count[:9]} results are too many")
            names.extend([f"{name}#{index}" for index in range(int(count))] if count else [name])
        return names

    # ---- Values

    def open_scope(self) -> None:
        """Opens a region: the names that it defines end with it."""
        self._scopes.append([])
        self._forwards.append({})

    def close_scope(self) -> None:
        """Closes the innermost region: what it uses and does not define is defined around it."""
        for name in self._scopes.pop():
            del self._values[name]
        for name, forward in self._forwards.pop().items():
            outer = self._forwards[-1].setdefault(name, forward)
            if outer is not forward:
                self._replace(name, forward, outer)

    def _replace(self, name: str, forward: Forward, value: SSAValue) -> None:
        self._check_type(name, value, forward.expected, forward.token)
        forward.replace_all_uses_with(value)

    def _check_type(self, name: str, value: SSAValue, type: Attribute | None, token: Token) -> None:
        if type is None or value._type == type:
            return
        if not isinstance(value, Forward) or value.expected is not None:
            message = f"'{name}' has type {type_text(value.type)}, not {type_text(type)}"
            raise SyntaxProblem(token, message)
        value.expected = value._type = type

    def define(self, name: str, value: SSAValue, token: Token) -> None:
        """Gives a value its name. Raises SyntaxProblem where another value has it."""
        if name in self._values:
            first = self._place(self._defined_at[name])
            raise SyntaxProblem(token, f"'{name}' is defined twice, first at {first}")
        if (forward := self._forwards[-1].pop(name, None)) is not None:
            self._replace(name, forward, value)
        self._values[name] = value
        self._defined_at[name] = token
        if self._scopes:
            self._scopes[-1].append(name)
        if not "0" <= name[1] <= "9":
            value._name = name[1:].partition("#")[0]

    def _place(self, token: Token) -> str:
        line, column = self.source.position(self.tokens.starts[token])
        return f"{line}:{column}"

    def define_results(self, token: Token, op: Operation) -> None:
        """Names the results of an operation. Raises SyntaxProblem where their number is another."""
        names = self._result_names(token)
        results = op.results
        if len(names) != len(results):
            raise SyntaxProblem(
                token,
                f"{op.name} has {counted(len(results), 'result')}, but {len(names)} "
                f"{'is' if len(names) == 1 else 'are'} named",
            )
        for name, value in zip(names, results, strict=True):
            self.define(name, value, token)

    def is_defined(self, name: str) -> bool:
        """Whether a name stands for a value here."""
        return name in self._values

    def use(self, token: Token, type: Attribute | None = None) -> SSAValue:
        """The value of a name.

        Raises:
            SyntaxProblem: it is not of `type`, where one is given.
        """
        name = self.texts[token]
        value = self._values.get(name)
        if value is None and (value := self._values.get(f"{name}#0")) is None:
            value = self._forwards[-1].get(name)
            if value is None:
                value = self._forwards[-1][name] = Forward(token, type)
        if type is not None and value._type is not type:
            self._check_type(name, value, type, token)
        return value

    def uses(
        self, tokens: Sequence[Token] | None, types: Sequence[Attribute] | None
    ) -> list[SSAValue]:
        """The values of names. Raises SyntaxProblem where they are not of these types."""
        tokens, types = tokens or (), types or ()
        if len(tokens) != len(types):
            raise SyntaxProblem(
                tokens[min(len(types), len(tokens) - 1)] if tokens else self.name_token(),
                f"{counted(len(tokens), 'value')}, but {counted(len(types), 'type')}",
            )
        return [self.use(token, type) for token, type in zip(tokens, types, strict=True)]

    def untyped(self, tokens: Sequence[Token]) -> list[SSAValue]:
        """The values of names, of any type."""
        return [self.use(token) for token in tokens]

    def check_forwards(self) -> None:
        """Raises SyntaxProblem where a name has been used and not defined."""
        for forwards in self._forwards:
            for name, forward in forwards.items():
                if (token := self._defined_at.get(name)) is not None:
                    hint = f"; the one at {self._place(token)} is in another region"
                else:
                    hint = did_you_mean(name, list(self._defined_at)[-_SEARCHED_NAMES:], 0.8)
                raise SyntaxProblem(forward.token, f"'{name}' is not defined{hint}")

    # ---- Locations

    def location(self) -> FileLineColLoc:
        """Where the innermost operation stands."""
        return self.location_of(self.name_token())

    def location_of(self, token: Token) -> FileLineColLoc:
        """Where a token stands."""
        offset = self.tokens.starts[token]
        starts = self._line_starts
        line = bisect_right(starts, offset)
        location = FileLineColLoc.__new__(FileLineColLoc)  # its own constructor is slow
        set_field = object.__setattr__
        set_field(location, "filename", self._filename)
        set_field(location, "line", _integer(line))
        set_field(location, "column", _integer(offset - starts[line - 1] + 1))
        return location

    def written_location(self, token: Token) -> FileLineColLoc | None:
        """The place that `loc("file":line:column)` names; None for a location of another kind."""
        if (match := _WRITTEN_LOCATION.fullmatch(self.texts[token])) is None:
            return None
        file, line, column = match.groups()
        return FileLineColLoc(make_string(file), _integer(int(line)), _integer(int(column)))

    # ---- New operations

    def make(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        attributes: Mapping[str, Attribute] | None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
    ) -> Operation:
        """Makes the innermost operation."""
        return cls.create(
            operands=operands,
            result_types=results,
            properties=properties,
            attributes=attributes or {},
            successors=successors,
            regions=regions,
            location=self.location(),
        )

    def checked(self, op: Operation, token: Token) -> Operation:
        """Runs the checks of the operation itself, where the grammar does not imply them.

        Raises:
            SyntaxProblem: a check fails; it is at the token.
        """
        if any(isinstance(value, Forward) for value in op.operands):
            return op
        try:
            if isinstance(op, PtoOp):
                op.verify_()
            elif op.name.startswith("arith.") and isinstance(op, IRDLOperation):
                op.get_irdl_definition().verify(op)
        except (VerifyException, DiagnosticException) as error:
            message = str(error).strip().splitlines()[-1].strip()
            raise SyntaxProblem(token, f"{op.name}: {message}") from None
        return op

    def check_known(self, name: str, token: Token) -> None:
        """Raises SyntaxProblem where an operation is not known and close to a known one."""
        if name in KNOWN_OPERATIONS:
            return
        dialect = name.partition(".")[0]
        if dialect not in _CHECKED_DIALECTS:
            return
        hint = did_you_mean(name, KNOWN_OPERATIONS, 0.85)
        if hint or dialect != "pto":
            raise SyntaxProblem(token, f"unknown operation '{name}'{hint}")


def _unescape(match: re.Match[bytes]) -> bytes:
    """What an escape stands for: a character or, as in MLIR, a byte of UTF-8."""
    name = match[1]
    return _ESCAPES.get(name) or (bytes.fromhex(name.decode()) if len(name) == 2 else name)
