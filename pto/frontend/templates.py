"""Statements that are kept as written: how an operation without a syntax of its own prints back
(`pto.dialect.ops.OpaqueOp`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Attribute, Operation, Region, SSAValue

from pto.dialect.ops import OpaqueOp, opaque_op_class, operation_class
from pto.dialect.type_records import type_text
from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import BuilderState, Entries, make_string
from pto.grammar.lalr import SyntaxProblem, Token

Clause: TypeAlias = Token | Entries | Region
"""A part of a statement: a token, an attribute dictionary or a region."""

_NO_SPACE_BEFORE = frozenset((",", ")", "]", ">", "[", "(", "<"))
_NO_SPACE_AFTER = frozenset(("(", "[", "<", ""))
_SPACE_BETWEEN = frozenset((last, piece) for last in (",", ":", "->", "=", "") for piece in "([")


def escaped(text: str) -> str:
    """Text as it stands in a template."""
    return text.replace("%", "%%").replace("{", "{{")


@lru_cache(maxsize=4096)
def literal_text(attr: Attribute) -> str:
    """A type or attribute as it stands in a template."""
    return escaped(type_text(attr))


def _joined(pieces: Sequence[str]) -> str:
    """The pieces of a template, with spaces between them where the field writes some."""
    parts: list[str] = []
    last = ""
    for piece in pieces:
        tight = piece in _NO_SPACE_BEFORE and (last, piece) not in _SPACE_BETWEEN
        if not tight and last not in _NO_SPACE_AFTER:
            parts.append(" ")
        parts.append(piece)
        last = piece
    return "".join(parts)


def template_class(name: str) -> type[OpaqueOp]:
    """The class of an operation `name` that keeps its statement."""
    cls = operation_class(name)
    return cls if issubclass(cls, OpaqueOp) else opaque_op_class(name)


class TemplateMaker:
    """Makes operations that keep their statement."""

    def __init__(self, state: BuilderState, attributes: AttributeBuilder) -> None:
        self._state = state
        self._attributes = attributes

    def values(self, clauses: Sequence[Clause]) -> list[Token]:
        """The values among the clauses."""
        kinds = self._state.kinds
        return [part for part in clauses if isinstance(part, int) and kinds[part] == "SSA"]

    def make(
        self,
        name: str,
        clauses: Sequence[Clause],
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: Mapping[str, Attribute],
    ) -> Operation:
        """The innermost operation.

        Raises:
            SyntaxProblem: the clauses have two dictionaries.
        """
        entries = [clause for clause in clauses if isinstance(clause, Entries)]
        if len(entries) > 1 and any(entries):
            message = f"{name} has two attribute dictionaries"
            raise SyntaxProblem(self._state.name_token(), message)
        syntax = make_string(_joined([self._piece(clause) for clause in clauses]))
        return self._state.make(
            template_class(name),
            operands,
            results,
            {**properties, "syntax": syntax},
            entries[0] if entries else None,
            [clause for clause in clauses if isinstance(clause, Region)],
        )

    def _piece(self, clause: Clause) -> str:
        if isinstance(clause, Entries):
            return "{}"
        if isinstance(clause, Region):
            return "{^}"
        kind = self._state.kinds[clause]
        if kind == "SSA":
            return "%"
        if kind == "TYPE":
            return literal_text(self._attributes.type(clause))
        if kind == "ATTRIBUTE":
            return literal_text(self._attributes.attribute_token(clause))
        return escaped(self._state.texts[clause])
