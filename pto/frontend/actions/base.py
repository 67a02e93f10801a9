"""What all actions share: tokens, values and their names, locations, new operations."""

from __future__ import annotations

import builtins
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    FileLineColLoc,
    IndexType,
    IntAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation

from pto.dialect import ops
from pto.dialect.names import KNOWN_OPERATIONS
from pto.dialect.types import (
    type_text,
)
from pto.frontend.lalr import Problem, Tokens
from pto.frontend.source import Source, remember_position
from pto.frontend.types import close_match

INDEX = IndexType()
_RESULT = re.compile(r"(%[\w$.-]+)(?::([0-9]+))?")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t"}
_NUMERIC_NAME = re.compile(r"%[0-9]+")
_CHECKED_DIALECTS = ("arith", "scf", "cf", "func", "pto", "builtin")


class Entries(dict[str, Attribute]):
    """An attribute dictionary that knows where its keys and values stand."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_at: dict[str, int] = {}

    def value_at(self, key: str) -> int:
        """The token at which the value of `key` starts."""
        return self.keys_at[key] + 2


NO_ENTRIES = Entries()


class Forward(SSAValue):
    """A value used before its definition; replaced when the definition comes."""

    def __init__(self, type: Attribute | None) -> None:
        super().__init__(type if type is not None else INDEX)

    @property
    def owner(self) -> Operation | Block:
        raise AssertionError("a forward reference has no owner")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@cache
def make_string(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=100_000)
def integer(value: int) -> IntAttr:
    return IntAttr(value)


class Base:
    """The state of reading one text, and the helpers of every kind of statement."""

    at: int = 0
    tokens: Tokens

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.source = source
        self.tokens = tokens
        self.texts = tokens.texts
        self._filename = make_string(source.filename)
        self._starts: list[int] = []
        self._values: dict[str, SSAValue] = {}
        self._defined_at: dict[str, int] = {}
        self._scopes: list[list[str]] = []
        self._pending: list[tuple[str | None, Attribute, int]] | None = None
        self._blocks: list[dict[str, Block]] = []
        self._undefined_blocks: list[dict[str, int]] = []
        self._forwards: dict[str, tuple[Forward, int]] = {}
        self._type_aliases: dict[str, Attribute] = {}
        self._attribute_aliases: dict[str, Attribute] = {}
        self._line_starts = source.line_starts

    # ---- Lists: a production `x ("," x)*` is given its first part and the list of the others

    def listed(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

    attribute_values = group_types = initial_values = integers = labels = listed
    parameters = regions = results = typed_names = listed

    # ---- Operations: positions, results

    def here(self) -> int:
        """Marks the first token of an operation."""
        self._starts.append(self.at)
        return self.at

    def operation(
        self, start: int, results: int | None, op: Operation, location: int | None
    ) -> Operation:
        self._starts.pop()
        if results is not None:
            self._define_results(results, op)
        if location is not None and (written := self._written_location(location)) is not None:
            if isinstance(op.location, FileLineColLoc):
                remember_position(op, op.location.line.data, op.location.column.data)
            op.location = written
        return op

    def _results_token(self) -> int | None:
        start = self._starts[-1]
        return start if self.tokens.kinds[start] == "RESULTS" else None

    def _name_token(self) -> int:
        """The token that names the current operation."""
        results = self._results_token()
        return self._starts[-1] if results is None else results + 1

    def _result_names(self, token: int) -> list[str]:
        text = self.texts[token]
        if "," not in text and ":" not in text:
            return [text[:-1].rstrip()]
        names: list[str] = []
        for name, count in _RESULT.findall(text):
            if count:
                names.extend(f"{name}#{index}" for index in range(int(count)))
            else:
                names.append(name)
        return names

    def _result_count(self) -> int:
        token = self._results_token()
        return 0 if token is None else len(self._result_names(token))

    def _define_results(self, token: int, op: Operation) -> None:
        names = self._result_names(token)
        results = op.results
        if len(names) != len(results):
            raise Problem(
                token,
                f"{op.name} has {counted(len(results), 'result')}, but {len(names)} "
                f"{'is' if len(names) == 1 else 'are'} named",
            )
        for name, value in zip(names, results, strict=True):
            self._define(name, value, token)

    def _define(self, name: str, value: SSAValue, token: int) -> None:
        if name in self._values:
            line, column = self.source.position(self.tokens.starts[self._defined_at[name]])
            raise Problem(token, f"'{name}' is defined twice, first at {line}:{column}")
        if (forward := self._forwards.pop(name, None)) is not None:
            forward[0].replace_all_uses_with(value)
        self._values[name] = value
        self._defined_at[name] = token
        if self._scopes:
            self._scopes[-1].append(name)
        if not _NUMERIC_NAME.match(name) and "#" not in name:
            value._name = name[1:]
        elif "#" in name and not _NUMERIC_NAME.match(name):
            value._name = name[1:].partition("#")[0]

    def _use(self, token: int, type: Attribute | None = None) -> SSAValue:
        """The value of a name, which has to be of `type` where one is given."""
        name = self.texts[token]
        value = self._values.get(name)
        if value is None and (value := self._values.get(f"{name}#0")) is None:
            return self._forward(name, token, type)
        if type is not None and value._type is not type and value._type != type:
            raise Problem(
                token, f"'{name}' has type {type_text(value.type)}, not {type_text(type)}"
            )
        return value

    def _forward(self, name: str, token: int, type: Attribute | None) -> SSAValue:
        known = self._forwards.get(name)
        if known is None:
            known = self._forwards[name] = (Forward(type), token)
        return known[0]

    def _check_forwards(self) -> None:
        for name, (_, token) in self._forwards.items():
            raise Problem(token, f"'{name}' is not defined{self._nearest_value(name)}")

    def _nearest_value(self, name: str) -> str:
        close = close_match(name, list(self._defined_at)[-2000:], 0.8)
        return f"; did you mean '{close}'?" if close else ""

    def _uses(self, tokens: Sequence[int], types: Sequence[Attribute]) -> list[SSAValue]:
        if len(tokens) != len(types):
            raise Problem(
                tokens[min(len(types), len(tokens) - 1)] if tokens else self._name_token(),
                f"{counted(len(tokens), 'value')}, but {counted(len(types), 'type')}",
            )
        return [self._use(token, type) for token, type in zip(tokens, types, strict=True)]

    def _untyped(self, tokens: Sequence[int]) -> list[SSAValue]:
        return [self._use(token) for token in tokens]

    # ---- Strings and names

    def _content(self, token: int, text: str) -> str:
        """The content of a token's text, or of a part of it, that may be quoted."""
        if not text.startswith('"'):
            return text
        try:
            return unquoted(text)
        except UnicodeDecodeError:
            raise Problem(token, "the escapes of this string are not UTF-8") from None

    # ---- Locations

    def _location(self) -> FileLineColLoc:
        return self._location_of(self._name_token())

    def _location_of(self, token: int) -> FileLineColLoc:
        offset = self.tokens.starts[token]
        starts = self._line_starts
        line = bisect_right(starts, offset)
        location = FileLineColLoc.__new__(FileLineColLoc)
        set_field = object.__setattr__
        set_field(location, "filename", self._filename)
        set_field(location, "line", integer(line))
        set_field(location, "column", integer(offset - starts[line - 1] + 1))
        return location

    def _written_location(self, token: int) -> FileLineColLoc | None:
        """The place that `loc("file":line:column)` names; None for a location of another kind."""
        text = self.texts[token]
        match = re.fullmatch(r'loc\s*\(\s*"([^"]*)"\s*:\s*([0-9]+)\s*:\s*([0-9]+)\s*\)', text)
        if match:
            return FileLineColLoc(
                make_string(match[1]), integer(int(match[2])), integer(int(match[3]))
            )
        return None

    # ---- New operations

    def _make(
        self,
        op: type[Operation],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        attributes: Entries | None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        return op.create(
            operands=operands,
            result_types=results,
            properties=properties,
            attributes=attributes or {},
            regions=regions,
            location=self._location(),
        )

    def _checked(self, op: Operation, token: int) -> Operation:
        """Runs the checks of the operation itself, where the grammar does not imply them."""
        from xdsl.utils.exceptions import DiagnosticException, VerifyException

        if any(isinstance(value, Forward) for value in op.operands):
            return op
        try:
            if isinstance(op, ops.PtoOp):
                op.verify_()
            if op.name.startswith(("pto.", "arith.")) and isinstance(op, IRDLOperation):
                op.get_irdl_definition().verify(op)
        except (VerifyException, DiagnosticException) as error:
            message = str(error).strip().splitlines()[-1].strip()
            raise Problem(token, f"{op.name}: {message}") from None
        return op

    def _checks_itself(self, op: Operation) -> bool:
        """Whether a regular operation has checks beyond its operand counts."""
        return isinstance(op, ops.RegularOp) and type(op).verify_ is not ops.RegularOp.verify_

    def _expect(self, type: Attribute, cls: builtins.type[Attribute], what: str) -> None:
        """Checks the kind of a type that the current operation names."""
        if not isinstance(type, cls):
            token = self._name_token()
            raise Problem(token, f"{self.texts[token]}: {what}, not {type_text(type)}")

    def _merged(self, first: Entries, second: Entries | None) -> Entries:
        if not second:
            return first
        if not first:
            return second
        merged = Entries()
        for entries in (first, second):
            for key, value in entries.items():
                self._add_entry(merged, entries.keys_at[key], key, value)
        return merged

    def _add_entry(self, entries: Entries, token: int, key: str, value: Attribute) -> None:
        if key in entries:
            raise Problem(token, f"the attribute '{key}' is given twice")
        entries[key] = value
        entries.keys_at[key] = token

    def _check_known(self, name: str, token: int) -> None:
        """An operation that is close to a known one and is not known is a misspelling."""
        if name in KNOWN_OPERATIONS:
            return
        dialect = name.partition(".")[0]
        if dialect not in _CHECKED_DIALECTS:
            return
        close = close_match(name, KNOWN_OPERATIONS)
        if close or dialect != "pto":
            hint = f"; did you mean '{close}'?" if close else ""
            raise Problem(token, f"unknown operation '{name}'{hint}")


def unquoted(text: str) -> str:
    """The content of a quoted text, whose escapes are characters or, as in MLIR, bytes of UTF-8.

    Raises UnicodeDecodeError where the bytes are none.
    """
    body = text[1:-1]
    if "\\" not in body:
        return body
    return _ESCAPE.sub(_escape, body.encode()).decode()


def _escape(match: re.Match[bytes]) -> bytes:
    name = match[1]
    return _ESCAPES.get(name) or (bytes.fromhex(name.decode()) if len(name) == 2 else name)


def escaped(text: str) -> str:
    """Text as it stands in a template."""
    return text.replace("%", "%%").replace("{", "{{")


@lru_cache(maxsize=4096)
def literal_text(attr: Attribute) -> str:
    return escaped(type_text(attr))


def counted(number: int, noun: str) -> str:
    words = {0: "no", 1: "one"}
    return f"{words.get(number, number)} {noun}{'' if number == 1 else 's'}"
