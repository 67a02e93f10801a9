"""Statements of arith, scf and cf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import FunctionType, IntegerAttr, VectorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypedAttribute

from pto.dialect.ops import SEGMENTS, opaque_op_class, segments
from pto.dialect.type_records import type_text
from pto.dialect.type_syntax import xdsl_attribute
from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import (
    INDEX,
    BuilderState,
    Entries,
    Header,
    Types,
    Values,
    make_string,
)
from pto.frontend.regions import Argument, RegionBuilder, Result, with_block
from pto.frontend.templates import literal_text
from pto.grammar.lalr import SyntaxProblem, Token
from pto.spelling import nearest

_TERMINATORS = (scf.YieldOp, scf.ConditionOp, func.ReturnOp, cf.BranchOp, cf.ConditionalBranchOp)
_PREDICATES = {
    "arith.cmpi": arith.CMPI_COMPARISON_OPERATIONS,
    "arith.cmpf": arith.CMPF_COMPARISON_OPERATIONS,
}


class InitialValue(NamedTuple):
    """`%name = %value`: an argument of a loop's body and what it starts with."""

    name: Token
    value: Token


class Successor(NamedTuple):
    """A block that a branch goes to, and what it passes."""

    block: Block
    operands: list[SSAValue]


@cache
def _arith_classes() -> dict[str, type[Operation]]:
    return {op.name: op for op in arith.Arith.operations}


@cache
def _default_properties(name: str) -> Mapping[str, Attribute]:
    """The properties that an arith operation has when its statement names none."""
    definition = _arith_classes()[name].get_irdl_definition()  # type: ignore[attr-defined]
    return {
        key: prop.default_value
        for key, prop in definition.properties.items()
        if prop.default_value is not None
    }


class ControlBuilder:
    """Builds scalar operations and control flow."""

    def __init__(
        self, state: BuilderState, attributes: AttributeBuilder, regions: RegionBuilder
    ) -> None:
        self._state = state
        self._use = state.use
        self._attributes = attributes
        self._regions = regions

    # ---- arith

    def arith_constant(
        self, attributes: Entries | None, literal: Token, type: Attribute | None
    ) -> Operation:
        value = self._attributes.typed_literal(literal, type)
        if not isinstance(value, TypedAttribute):
            message = f"arith.constant takes a number, not {type_text(value)}"
            raise SyntaxProblem(literal, message)
        results = (value.get_type(),)
        return self._state.make(arith.ConstantOp, (), results, {"value": value}, attributes)

    def arith_binary(
        self,
        name: Token,
        lhs: Token,
        rhs: Token,
        flags: Token | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        operands = (self._use(lhs, type), self._use(rhs, type))
        return self._arith(name, operands, type, flags, attributes)

    def arith_unary(
        self,
        name: Token,
        value: Token,
        flags: Token | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        return self._arith(name, (self._use(value, type),), type, flags, attributes)

    def arith_compare(
        self,
        name: Token,
        predicate: Token,
        lhs: Token,
        rhs: Token,
        flags: Token | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        word = self._state.texts[predicate]
        known = _PREDICATES[self._state.texts[name]]
        if word not in known:
            raise SyntaxProblem(predicate, f"unknown predicate '{word}'{nearest(word, known)}")
        operands = (self._use(lhs, type), self._use(rhs, type))
        result = VectorType(i1, type.shape.data) if isinstance(type, VectorType) else i1
        number = IntegerAttr(known.index(word), i64)
        return self._arith(name, operands, result, flags, attributes, {"predicate": number})

    def arith_cast(
        self,
        name: Token,
        value: Token,
        flags: Token | None,
        attributes: Entries | None,
        source: Attribute,
        target: Attribute,
    ) -> Operation:
        text = self._state.texts[name]
        operands = (self._use(value, source),)
        if text in _arith_classes():
            return self._arith(name, operands, target, flags, attributes)
        # xDSL lacks index_castui.
        syntax = make_string(f"% : {literal_text(source)} to {literal_text(target)}")
        cls = opaque_op_class(text)
        return self._state.make(cls, operands, (target,), {"syntax": syntax}, attributes)

    def arith_select(
        self,
        condition: Token,
        true: Token,
        false: Token,
        attributes: Entries | None,
        type: Attribute,
        second: Attribute | None,
    ) -> Operation:
        result = type if second is None else second
        operands = (self._use(condition), self._use(true, result), self._use(false, result))
        return self._state.make(arith.SelectOp, operands, (result,), {}, attributes)

    def _arith(
        self,
        name: Token,
        operands: Sequence[SSAValue],
        result: Attribute,
        flags: Token | None,
        attributes: Entries | None,
        more: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        text = self._state.texts[name]
        properties = _default_properties(text)
        if flags is not None:
            kind, _, values = self._state.texts[flags].removesuffix(">").partition("<")
            key = "fastmath" if kind == "fastmath" else "overflowFlags"
            properties = {**properties, key: xdsl_attribute(f"#arith.{kind}<{values}>", flags)}
        if more:
            properties = {**properties, **more}
        return self._state.make(_arith_classes()[text], operands, (result,), properties, attributes)

    # ---- scf

    def _with_yield(self, region: Region) -> Region:
        """Adds the `scf.yield` that a region without results may leave out."""
        for block in with_block(region).blocks:
            last = block.last_op
            if last is None or not isinstance(last, _TERMINATORS):
                block.add_op(scf.YieldOp.create(location=self._state.location()))
        return region

    def _made(self, header: Header, attributes: Entries | None, *regions: Region) -> Operation:
        return self._state.make(*header._replace(attributes=attributes), regions)

    def if_header(self, condition: Token, results: list[Result] | None) -> Header:
        return Header(scf.IfOp, [self._use(condition, i1)], _types(results))

    def scf_if(
        self, header: Header, then: Region, otherwise: Region | None, attributes: Entries | None
    ) -> Operation:
        second = Region() if otherwise is None else self._with_yield(otherwise)
        return self._made(header, attributes, self._with_yield(then), second)

    def for_header(
        self,
        variable: Token,
        lower: Token,
        upper: Token,
        step: Token,
        initial: list[InitialValue] | None,
        results: list[Result] | None,
        type: Attribute | None,
    ) -> Header:
        bound_type = INDEX if type is None else type
        bounds = [self._use(token, bound_type) for token in (lower, upper, step)]
        types = _types(results)
        carried = self._carried(initial, types)
        counter = self._argument(variable, bound_type)
        self._regions.arguments = [counter, *self._regions.arguments]
        return Header(scf.ForOp, [*bounds, *carried], types)

    def execute_header(self, results: list[Result] | None) -> Header:
        return Header(scf.ExecuteRegionOp, results=_types(results))

    def scf_body(self, header: Header, body: Region, attributes: Entries | None) -> Operation:
        return self._made(header, attributes, self._with_yield(body))

    def while_header(self, initial: list[InitialValue] | None, type: FunctionType) -> Header:
        operands = self._carried(initial, type.inputs.data)
        return Header(scf.WhileOp, operands, type.outputs.data)

    def scf_while(
        self, header: Header, before: Region, after: Region, attributes: Entries | None
    ) -> Operation:
        return self._made(header, attributes, before, self._with_yield(after))

    initial_value = InitialValue

    def _carried(
        self, initial: list[InitialValue] | None, types: Sequence[Attribute]
    ) -> list[SSAValue]:
        """The initial values; their names become the arguments of the region that comes next."""
        initial = initial or []
        values = self._state.uses([start.value for start in initial], types)
        self._regions.arguments = [
            self._argument(start.name, type) for start, type in zip(initial, types, strict=True)
        ]
        return values

    def _argument(self, name: Token, type: Attribute) -> Argument:
        return Argument(self._state.texts[name].removesuffix("=").rstrip(), type, name)

    def scf_condition(
        self, condition: Token, attributes: Entries | None, values: Values, types: Types
    ) -> Operation:
        operands = [self._use(condition, i1), *self._state.uses(values, types)]
        return self._state.make(scf.ConditionOp, operands, (), {}, attributes)

    def scf_yield(self, attributes: Entries | None, values: Values, types: Types) -> Operation:
        return self._state.make(scf.YieldOp, self._state.uses(values, types), (), {}, attributes)

    # ---- cf

    def successor(self, label: Token, values: Values, types: Types) -> Successor:
        return Successor(self._regions.successor_block(label), self._state.uses(values, types))

    def cf_br(self, successor: Successor, attributes: Entries | None) -> Operation:
        return self._state.make(
            cf.BranchOp, successor.operands, (), {}, attributes, (), (successor.block,)
        )

    def cf_cond_br(
        self, condition: Token, then: Successor, otherwise: Successor, attributes: Entries | None
    ) -> Operation:
        operands = [self._use(condition, i1), *then.operands, *otherwise.operands]
        properties = {SEGMENTS: segments(1, len(then.operands), len(otherwise.operands))}
        blocks = (then.block, otherwise.block)
        return self._state.make(
            cf.ConditionalBranchOp, operands, (), properties, attributes, (), blocks
        )


def _types(results: list[Result] | None) -> list[Attribute]:
    return [result.type for result in results or ()]
