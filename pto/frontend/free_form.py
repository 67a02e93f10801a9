"""Operations without a syntax of their own in the grammar, and the generic form."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, ModuleOp, VectorType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation

from pto.dialect import ops
from pto.dialect.names import BUFFER_OPERATIONS, KNOWN_OPERATIONS
from pto.dialect.ops import SEGMENTS, opaque_op_class, operation_class
from pto.dialect.tile_operations import SIGNATURES
from pto.dialect.types import PtrType
from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import INDEX, BuilderState, Entries, counted
from pto.frontend.declared_form import declared_class, declared_form, is_as_declared
from pto.frontend.regions import RegionBody, RegionBuilder
from pto.frontend.templates import Clause, TemplateMaker, template_class
from pto.frontend.tiles import split_tcvt_attributes
from pto.grammar.lalr import SyntaxProblem, Token

MAX_BRACKET_DEPTH = 200

_Attributes: TypeAlias = tuple[dict[str, Attribute], dict[str, Attribute]]
"""Properties and attributes."""

# Results of operations whose statement does not say their type.
_IMPLIED_RESULTS: dict[str, Attribute] = {
    f"pto.{name}": i64
    for name in (
        "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "get_ctrl",
        "get_vms4_sr", "get_clock32", "get_clock64", "get_veccoreid",
    )
}  # fmt: skip
_IMPLIED_RESULTS["pto.get_validshape"] = INDEX


@dataclass
class Clauses:
    """What is written after the name of an operation."""

    parts: list[Clause] = field(default_factory=list)
    depth: int = 0
    """How deep brackets are nested."""


@cache
def _builtin_classes() -> dict[str, type[Operation]]:
    """Classes of the operations with a syntax of their own, which the generic form may name."""
    dialects = (arith.Arith, scf.Scf, cf.Cf, func.Func)
    found = {op.name: op for dialect in dialects for op in dialect.operations}
    found.update({op.name: op for op in ops.WRITTEN_OUT})
    found["builtin.module"] = ModuleOp
    return found


class FreeFormBuilder:
    """Builds operations from clauses in a row, or from the generic form."""

    def __init__(
        self,
        state: BuilderState,
        attributes: AttributeBuilder,
        regions: RegionBuilder,
        templates: TemplateMaker,
    ) -> None:
        self._state = state
        self._attributes = attributes
        self._regions = regions
        self._templates = templates

    # ---- Clauses

    def no_clauses(self) -> Clauses:
        return Clauses()

    def clause(self, clauses: Clauses, token: Token) -> Clauses:
        clauses.parts.append(token)
        return clauses

    def clause_dictionary(self, clauses: Clauses, *parts: Token | Entries) -> Clauses:
        entries = next((part for part in parts if isinstance(part, Entries)), Entries())
        clauses.parts.append(entries)
        return clauses

    def clause_region(
        self, clauses: Clauses, entry: Block, body: RegionBody, end: Token
    ) -> Clauses:
        clauses.parts.append(self._regions.region(entry, body))
        return clauses

    def clause_brackets(
        self, clauses: Clauses, opening: Token, inner: Clauses, closing: Token
    ) -> Clauses:
        clauses.depth = max(clauses.depth, inner.depth + 1)
        if clauses.depth > MAX_BRACKET_DEPTH:
            message = f"brackets are nested more than {MAX_BRACKET_DEPTH} deep"
            raise SyntaxProblem(opening, message)
        clauses.parts += [opening, *inner.parts, closing]
        return clauses

    # ---- Operations

    def other_operation(self, name: Token, clauses: Clauses) -> Operation:
        text = self._state.texts[name]
        self._state.check_known(text, name)
        return self._operation(text, clauses)

    def short_named(self, name: Token, clauses: Clauses) -> Operation:
        """An operation that is written without the `pto.` of its name.

        Raises:
            SyntaxProblem: there is no such operation.
        """
        text = self._state.texts[name]
        if f"pto.{text}" not in KNOWN_OPERATIONS:
            raise SyntaxProblem(name, f"unknown operation '{text}'")
        return self._operation(f"pto.{text}", clauses)

    def _operation(self, name: str, clauses: Clauses) -> Operation:
        if (form := declared_form(name)) is not None:
            op = form.build(clauses.parts, self._state, self._attributes)
            if op is not None:
                return op
        if name in BUFFER_OPERATIONS:
            message = f"{name} takes {SIGNATURES[name].text()}"
            raise SyntaxProblem(self._state.name_token(), message)
        operands = self._state.untyped(self._templates.values(clauses.parts))
        results = self._results(name, clauses.parts, operands)
        return self._templates.make(name, clauses.parts, operands, results, {})

    def _results(
        self, name: str, clauses: Sequence[Clause], operands: Sequence[SSAValue]
    ) -> list[Attribute]:
        """Types of the results: the last ones after `->`, or else after the last `:`."""
        count = self._state.result_count()
        if count == 0:
            return []
        types: list[Attribute] = []
        for clause in clauses:
            if not isinstance(clause, int):
                continue
            if self._state.texts[clause] in ("->", ":"):
                types = []
            elif self._state.kinds[clause] == "TYPE":
                types.append(self._attributes.type(clause))
        if name in _IMPLIED_RESULTS and (not types or name == "pto.get_validshape"):
            types = [_IMPLIED_RESULTS[name]] * count
        elif name == "llvm.extractelement" and types and isinstance(types[-1], VectorType):
            types = [types[-1].element_type]
        elif name == "pto.addptr" and operands and isinstance(operands[0].type, PtrType):
            types = [operands[0].type]
        if len(types) < count:
            raise SyntaxProblem(
                self._state.name_token(),
                f"{name} names {counted(count, 'result')}, but its statement gives "
                f"{counted(len(types), 'result type')}",
            )
        return types[-count:]

    # ---- Generic form

    def generic_operation(
        self,
        name: Token,
        values: list[Token] | None,
        labels: list[Token] | None,
        properties: Entries | None,
        regions: list[Region] | None,
        attributes: Entries | None,
        type: FunctionType,
    ) -> Operation:
        text = self._state.content(name)
        self._state.check_known(text, name)
        operands = self._state.uses(values, type.inputs.data)
        outputs = type.outputs.data
        successors = [self._regions.successor_block(label) for label in labels or ()]
        given, rest = properties or Entries(), attributes or Entries()

        def made(cls: builtins.type[Operation]) -> Operation:
            if cls is ops.TCvtOp:
                parts = self._tcvt_properties(given, rest)
            else:
                parts = _properties(cls, given, rest)
            return self._state.make(cls, operands, outputs, *parts, regions or (), successors)

        op = made(_generic_class(text, given))
        if isinstance(op, declared_class(text) or ()) and not is_as_declared(op):
            return made(opaque_op_class(text, generic=True))
        return self._state.checked(op, name)

    def _tcvt_properties(self, properties: Entries, attributes: Entries) -> _Attributes:
        named: dict[str, Attribute] = {}
        rest = split_tcvt_attributes(self._state, properties, named)
        rest |= split_tcvt_attributes(self._state, attributes, named)
        sizes = {SEGMENTS: rest.pop(SEGMENTS)} if SEGMENTS in rest else {}
        return {**sizes, **named}, rest


def _properties(cls: type[Operation], properties: Entries, attributes: Entries) -> _Attributes:
    """The properties and attributes; an attribute that the class has as a property is one."""
    keys: Iterable[str] = (SEGMENTS,)
    if issubclass(cls, IRDLOperation):
        keys = cls.get_irdl_definition().properties
    elif "syntax" in properties:  # the template says where they are written
        keys = ()
    moved = {key: attributes[key] for key in keys if key in attributes and key not in properties}
    rest = {key: value for key, value in attributes.items() if key not in moved}
    return {**properties, **moved}, rest


def _generic_class(name: str, properties: Mapping[str, Attribute]) -> type[Operation]:
    """The class of an operation in generic form, which prints so if it has no other form."""
    if "syntax" in properties:
        return template_class(name)
    if (builtin := _builtin_classes().get(name)) is not None:
        return builtin
    if (declared := declared_class(name)) is not None:
        return declared
    if (signature := SIGNATURES.get(name)) is None:
        return opaque_op_class(name, generic=True)
    sizes = properties.get(SEGMENTS)
    if isinstance(sizes, DenseArrayBase):
        is_grouped = len(sizes.get_values()) == 2
    else:
        is_grouped = not any(role.endswith("?") for role in signature.ins + signature.outs)
    return operation_class(name) if is_grouped else opaque_op_class(name, generic=True)
