"""Statements of operations whose classes declare their syntax (`assembly_format`).

xDSL compiles an `assembly_format` to a parser that reads characters. A statement without a rule of
its own is a row of clauses here, so the same format becomes a pattern over clauses, each of which
one letter stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import IRDLOperation, OptionalDef, ParsePropInAttrDict, VerificationContext
from xdsl.utils.exceptions import VerifyException

from pto.dialect.ops import GroupedOp, machine_op_class
from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import BuilderState, Entries
from pto.frontend.templates import Clause
from pto.grammar.lalr import Token

_OPERAND, _TYPE, _ATTRIBUTE, _REGION, _DICTIONARY, _EMPTY_BRACES, _OTHER = "%TARDE?"
_LETTERS = {"SSA": _OPERAND, "TYPE": _TYPE, "STRING": _ATTRIBUTE, "ATTRIBUTE": _ATTRIBUTE}
_MARKS = {",": ",", ":": ":", "[": "[", "]": "]", "->": ">"}
_DICTIONARY_GROUP = "attr_dict"
_TYPE_GROUP = "type_of_"
_DIRECTIVE = re.compile(
    r"\s*(?:`(?P<mark>[^`]+)`|type\(\$(?P<type>\w+)\)|\$(?P<name>\w+)|(?P<dictionary>attr-dict)"
    r"|(?P<group>\()|(?P<end>\^?\s*\)\?))\s*"
)


class DeclaredForm:
    """The syntax that a class declares.

    Of MLIR's format this knows: operands, properties and regions (`$x`), marks, `attr-dict`,
    `type($x)`, and groups that may be absent (`( .. )?`).
    """

    def __init__(self, cls: type[IRDLOperation]) -> None:
        definition = cls.get_irdl_definition()
        self._cls = cls
        self._operands = [name for name, _ in definition.operands]
        self._results = [name for name, _ in definition.results]
        self._regions = [name for name, _ in definition.regions]
        self._pattern = re.compile(self._expression(cls.assembly_format or ""))
        groups = self._pattern.groupindex.keys()
        self._typed = {name for name in self._operands if _TYPE_GROUP + name in groups}
        self._written = [name for name in definition.properties if name in groups]
        self._in_dictionary: set[str] = set()
        if any(isinstance(option, ParsePropInAttrDict) for option in definition.options):
            self._in_dictionary = set(definition.properties) - set(self._written)
        self._properties = definition.properties
        self._constraints = [(name, operand.constr) for name, operand in definition.operands]
        self._constraints += [(name, result.constr) for name, result in definition.results]

    def _expression(self, syntax: str) -> str:
        """The regular expression for the letters of a statement."""
        parts: list[str] = []
        end = 0
        while end < len(syntax):
            if (match := _DIRECTIVE.match(syntax, end)) is None:
                raise ValueError(f"{self._cls.name}: unknown directive {syntax[end:]!r}")
            end = match.end()
            kind, text = match.lastgroup, match[match.lastgroup or 0]
            if kind == "mark":
                parts.append(re.escape(_MARKS[text]))
            elif kind == "type":
                parts.append(f"(?P<{_TYPE_GROUP}{text}>{_TYPE})")
            elif kind == "name":
                parts.append(f"(?P<{text}>{self._letters_of(text)})")
            elif kind == "dictionary":
                parts.append(f"(?P<{_DICTIONARY_GROUP}>{_DICTIONARY})?")
            else:
                parts.append("(?:" if kind == "group" else ")?")
        return "".join(parts)

    def _letters_of(self, name: str) -> str:
        if name in self._operands:
            return _OPERAND
        return f"[{_REGION}{_EMPTY_BRACES}]" if name in self._regions else _ATTRIBUTE

    def build(
        self, clauses: Sequence[Clause], state: BuilderState, attributes: AttributeBuilder
    ) -> Operation | None:
        """The operation, None where the statement is not of this form or breaks the declaration.

        Raises:
            SyntaxProblem: an operand is not of the type that is written for it.
        """
        found = self._parts(clauses, state)
        if found is None or state.result_count() != len(self._results):
            return None
        tokens = {name: clause for name, clause in found.items() if isinstance(clause, int)}
        types = {
            name.removeprefix(_TYPE_GROUP): attributes.type(token)
            for name, token in tokens.items()
            if name.startswith(_TYPE_GROUP)
        }
        operands = {
            name: state.use(tokens[name], types.get(name))
            for name in self._operands
            if name in tokens
        }
        types |= {name: value.type for name, value in operands.items()}
        properties = {name: _property(tokens[name], state, attributes) for name in self._written}
        rest: dict[str, Attribute] = {}
        entries = found.get(_DICTIONARY_GROUP)
        if isinstance(entries, Entries):
            for key, value in entries.items():
                (properties if key in self._in_dictionary else rest)[key] = value
        if not self._accepts(types, properties):
            return None
        regions = [found[name] for name in self._regions]
        return state.make(
            self._cls,
            [*operands.values()],
            [types[name] for name in self._results],
            properties,
            rest,
            [region if isinstance(region, Region) else Region() for region in regions],
        )

    def _parts(self, clauses: Sequence[Clause], state: BuilderState) -> dict[str, Clause] | None:
        """The clauses by the names of the format, None where the statement is not of this form."""
        match = self._pattern.fullmatch("".join([_letter(clause, state) for clause in clauses]))
        if match is None:
            return None
        found = {name: clauses[match.start(name)] for name in match.groupdict() if match[name]}
        if any((name in found) != (_TYPE_GROUP + name in found) for name in self._typed):
            return None
        entries = found.get(_DICTIONARY_GROUP)
        twice = isinstance(entries, Entries) and any(name in entries for name in self._written)
        return None if twice else found

    def _accepts(self, types: dict[str, Attribute], properties: dict[str, Attribute]) -> bool:
        """Whether types of operands and results, and properties, are as the class declares them."""
        context = VerificationContext()
        try:
            for name, constraint in self._constraints:
                if name in types:
                    constraint.verify((types[name],), context)
            for name, declared in self._properties.items():
                if name in properties:
                    declared.constr.verify(properties[name], context)
                elif not isinstance(declared, OptionalDef):
                    return False
        except VerifyException:
            return False
        return True


def _letter(clause: Clause, state: BuilderState) -> str:
    if isinstance(clause, Entries):
        return _DICTIONARY if clause else _EMPTY_BRACES
    if isinstance(clause, Region):
        return _REGION
    return _LETTERS.get(state.kinds[clause]) or _MARKS.get(state.texts[clause], _OTHER)


def _property(token: Token, state: BuilderState, attributes: AttributeBuilder) -> Attribute:
    if state.kinds[token] == "STRING":
        return attributes.string_value(token)
    return attributes.attribute_token(token)


@cache
def declared_class(name: str) -> type[IRDLOperation] | None:
    """The class that declares the operation `name` outside the tables, None where none does."""
    cls = machine_op_class(name)
    if cls is None or not issubclass(cls, IRDLOperation) or issubclass(cls, GroupedOp):
        return None
    return cls


@cache
def declared_form(name: str) -> DeclaredForm | None:
    """The form of the operation `name`, None where its class does not declare its syntax."""
    cls = declared_class(name)
    return None if cls is None or cls.assembly_format is None else DeclaredForm(cls)


def is_as_declared(op: Operation) -> bool:
    """Whether a new operation is one that its class declares; another one gives back its parts."""
    assert isinstance(op, IRDLOperation)
    try:
        op.get_irdl_definition().verify(op)
    except VerifyException:
        for region in list(op.regions):
            op.detach_region(region)
        op.drop_all_references()
        return False
    return True
