"""The builders of statements, put together: each production of `pto.lark` is a method of one."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation

from pto.dialect.location import remember_place
from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import BuilderState
from pto.frontend.control import ControlBuilder
from pto.frontend.free_form import Clauses, FreeFormBuilder
from pto.frontend.regions import RegionBuilder
from pto.frontend.templates import TemplateMaker
from pto.frontend.tiles import TileBuilder
from pto.grammar.lalr import Token

Part = TypeVar("Part")


class StatementBuilder:
    """Builds what all statements share, and lists."""

    def __init__(self, state: BuilderState, free_form: FreeFormBuilder) -> None:
        self._state = state
        self._free_form = free_form

    def here(self) -> Token:
        """Marks the first token of an operation."""
        self._state.statements.append(self._state.at)
        return self._state.at

    def end(self) -> Token:
        """Marks the token after a statement."""
        return self._state.at

    def operation(
        self, start: Token, results: Token | None, op: Operation, location: Token | None
    ) -> Operation:
        self._state.statements.pop()
        if results is not None:
            self._state.define_results(results, op)
        if location is not None:
            written = self._state.written_location(location)
            if written is not None:
                remember_place(op)
                op.location = written
        return op

    def short_operation(
        self, start: Token, results: Token, name: Token, clauses: Clauses, location: Token | None
    ) -> Operation:
        op = self._free_form.short_named(name, clauses)
        return self.operation(start, results, op, location)

    def next_value(self, values: list[Token], token: Token) -> list[Token]:
        values.append(token)
        return values

    def list_or_empty(self, parts: list[Part] | None) -> list[Part]:
        return parts or []

    def listed(self, first: Part, rest: list[Part] | None = None) -> list[Part]:
        """The list of a production `x ("," x)*`: its first part, and the list of the others."""
        return [first, *(rest or ())]

    attribute_values = group_types = initial_values = integers = labels = listed
    parameters = regions = results = typed_names = listed


def builders_of(state: BuilderState) -> tuple[object, ...]:
    """The builders that share a state; of each production one of them has the method."""
    attributes = AttributeBuilder(state)
    regions = RegionBuilder(state, attributes)
    templates = TemplateMaker(state, attributes)
    tiles = TileBuilder(state, templates)
    control = ControlBuilder(state, attributes, regions)
    free_form = FreeFormBuilder(state, attributes, regions, templates)
    return (StatementBuilder(state, free_form), attributes, tiles, control, regions, free_form)
