"""Statements of arith, scf and cf."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import (
    FunctionType,
    IntegerAttr,
    LocationAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypedAttribute

from pto.dialect.ops import SEGMENTS, opaque_op_class, segments
from pto.dialect.types import type_text
from pto.frontend.actions.base import (
    INDEX,
    Entries,
    literal_text,
    make_string,
)
from pto.frontend.actions.structure import StructureActions
from pto.frontend.lalr import Problem
from pto.frontend.types import nearest, xdsl_attribute

_TERMINATORS = (scf.YieldOp, scf.ConditionOp, func.ReturnOp, cf.BranchOp, cf.ConditionalBranchOp)
_CMP_PREDICATES = {
    "arith.cmpi": arith.CMPI_COMPARISON_OPERATIONS,
    "arith.cmpf": arith.CMPF_COMPARISON_OPERATIONS,
}


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


class ControlActions(StructureActions):
    """Scalars and control flow."""

    # ---- arith

    def arith_constant(
        self, attributes: Entries | None, literal: int, type: Attribute | None
    ) -> Operation:
        value = self._typed_literal(literal, type)
        if not isinstance(value, TypedAttribute):
            raise Problem(literal, f"arith.constant takes a number, not {type_text(value)}")
        return self._make(arith.ConstantOp, (), (value.get_type(),), {"value": value}, attributes)

    def arith_binary(
        self,
        name: int,
        lhs: int,
        rhs: int,
        flags: int | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        text = self.texts[name]
        return self._make(
            _arith_classes()[text],
            (self._use(lhs, type), self._use(rhs, type)),
            (type,),
            self._arith_properties(text, flags),
            attributes,
        )

    def arith_unary(
        self, name: int, value: int, flags: int | None, attributes: Entries | None, type: Attribute
    ) -> Operation:
        text = self.texts[name]
        return self._make(
            _arith_classes()[text],
            (self._use(value, type),),
            (type,),
            self._arith_properties(text, flags),
            attributes,
        )

    def _arith_properties(self, name: str, flags: int | None) -> Mapping[str, Attribute]:
        properties = _default_properties(name)
        if flags is None:
            return properties
        kind, _, values = self.texts[flags].removesuffix(">").partition("<")
        key = "fastmath" if kind == "fastmath" else "overflowFlags"
        attr = xdsl_attribute(f"#arith.{kind}<{values}>", flags)
        return {**properties, key: attr}

    def arith_compare(
        self,
        name: int,
        predicate: int,
        lhs: int,
        rhs: int,
        flags: int | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        text, word = self.texts[name], self.texts[predicate]
        known = _CMP_PREDICATES[text]
        if word not in known:
            raise Problem(predicate, f"unknown predicate '{word}'{nearest(word, known)}")
        properties = {
            **self._arith_properties(text, flags),
            "predicate": IntegerAttr(known.index(word), i64),
        }
        result: Attribute = i1
        if isinstance(type, VectorType):
            result = VectorType(i1, type.shape.data)
        return self._make(
            _arith_classes()[text],
            (self._use(lhs, type), self._use(rhs, type)),
            (result,),
            properties,
            attributes,
        )

    def arith_cast(
        self,
        name: int,
        value: int,
        flags: int | None,
        attributes: Entries | None,
        source: Attribute,
        target: Attribute,
    ) -> Operation:
        text = self.texts[name]
        operands = (self._use(value, source),)
        if text not in _arith_classes():  # xDSL lacks index_castui
            syntax = make_string(f"% : {literal_text(source)} to {literal_text(target)}")
            return self._make(
                opaque_op_class(text), operands, (target,), {"syntax": syntax}, attributes
            )
        return self._make(
            _arith_classes()[text],
            operands,
            (target,),
            self._arith_properties(text, flags),
            attributes,
        )

    def arith_select(
        self,
        condition: int,
        true: int,
        false: int,
        attributes: Entries | None,
        type: Attribute,
        second: Attribute | None,
    ) -> Operation:
        result = type if second is None else second
        operands = (self._use(condition), self._use(true, result), self._use(false, result))
        return self._make(arith.SelectOp, operands, (result,), {}, attributes)

    # ---- scf and cf

    def _with_yield(self, region: Region) -> Region:
        """Adds the `scf.yield` that a region without results may leave out."""
        for block in self._with_block(region).blocks:
            last = block.last_op
            if last is None or not isinstance(last, _TERMINATORS):
                block.add_op(scf.YieldOp.create(location=self._location()))
        return region

    def if_header(
        self, condition: int, results: list[tuple[Attribute, Any]] | None
    ) -> tuple[SSAValue, list[Attribute], LocationAttr]:
        return self._use(condition, i1), [type for type, _ in results or ()], self._location()

    def scf_if(
        self, header: Any, then: Region, otherwise: Region | None, attributes: Entries | None
    ) -> Operation:
        condition, results, location = header
        second = Region() if otherwise is None else self._with_yield(otherwise)
        return scf.IfOp.create(
            operands=(condition,),
            result_types=results,
            attributes=attributes or {},
            regions=(self._with_yield(then), second),
            location=location,
        )

    def for_header(
        self,
        variable: int,
        lower: int,
        upper: int,
        step: int,
        initial: list[tuple[int, int]] | None,
        results: list[tuple[Attribute, Any]] | None,
        type: Attribute | None,
    ) -> tuple[list[SSAValue], list[Attribute], LocationAttr]:
        bound_type = type if type is not None else INDEX
        bounds = [self._use(token, bound_type) for token in (lower, upper, step)]
        types = [result for result, _ in results or ()]
        initial = initial or []
        carried = self._uses([value for _, value in initial], types)
        self._pending = [
            (self._single_name(variable), bound_type, variable),
            *(
                (self._single_name(name), type, name)
                for (name, _), type in zip(initial, types, strict=True)
            ),
        ]
        return [*bounds, *carried], types, self._location()

    def _single_name(self, token: int) -> str:
        return self.texts[token].removesuffix("=").rstrip()

    def scf_for(self, header: Any, body: Region, attributes: Entries | None) -> Operation:
        operands, results, location = header
        return scf.ForOp.create(
            operands=operands,
            result_types=results,
            attributes=attributes or {},
            regions=(self._with_yield(body),),
            location=location,
        )

    def execute_header(
        self, results: list[tuple[Attribute, Any]] | None
    ) -> tuple[list[Attribute], LocationAttr]:
        return [type for type, _ in results or ()], self._location()

    def scf_execute_region(
        self, header: Any, body: Region, attributes: Entries | None
    ) -> Operation:
        results, location = header
        return scf.ExecuteRegionOp.create(
            result_types=results,
            attributes=attributes or {},
            regions=(self._with_yield(body),),
            location=location,
        )

    def initial_value(self, name: int, value: int) -> tuple[int, int]:
        return name, value

    def while_header(
        self, initial: list[tuple[int, int]] | None, type: FunctionType
    ) -> tuple[list[SSAValue], list[Attribute], LocationAttr]:
        initial = initial or []
        inputs = type.inputs.data
        operands = self._uses([value for _, value in initial], inputs)
        self._pending = [
            (self._single_name(name), type, name)
            for (name, _), type in zip(initial, inputs, strict=True)
        ]
        return operands, list(type.outputs.data), self._location()

    def scf_while(
        self, header: Any, before: Region, after: Region, attributes: Entries | None
    ) -> Operation:
        operands, results, location = header
        return scf.WhileOp.create(
            operands=operands,
            result_types=results,
            attributes=attributes or {},
            regions=(before, self._with_yield(after)),
            location=location,
        )

    def scf_condition(
        self,
        condition: int,
        attributes: Entries | None,
        values: list[int] | None,
        types: list[Attribute] | None,
    ) -> Operation:
        operands = [self._use(condition, i1), *self._uses(values or [], types or [])]
        return self._make(scf.ConditionOp, operands, (), {}, attributes)

    def scf_yield(
        self, attributes: Entries | None, values: list[int] | None, types: list[Attribute] | None
    ) -> Operation:
        return self._make(scf.YieldOp, self._uses(values or [], types or []), (), {}, attributes)

    def successor(
        self, label: int, values: list[int] | None, types: list[Attribute] | None
    ) -> tuple[Block, list[SSAValue]]:
        return self._successor_block(label), self._uses(values or [], types or [])

    def cf_br(self, successor: Any, attributes: Entries | None) -> Operation:
        block, operands = successor
        return cf.BranchOp.create(
            operands=operands,
            successors=[block],
            attributes=attributes or {},
            location=self._location(),
        )

    def cf_cond_br(
        self, condition: int, then: Any, otherwise: Any, attributes: Entries | None
    ) -> Operation:
        sizes = segments(1, len(then[1]), len(otherwise[1]))
        return cf.ConditionalBranchOp.create(
            operands=[self._use(condition, i1), *then[1], *otherwise[1]],
            successors=[then[0], otherwise[0]],
            properties={SEGMENTS: sizes},
            attributes=attributes or {},
            location=self._location(),
        )
