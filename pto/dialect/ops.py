"""Tile operations of the pto dialect.

Three kinds, all subclasses of `PtoOp`:

- those with a syntax of their own (`tcvt`, `alloc_tile`, `make_tensor_view`, ...), written out;
- the regular ones, `op ins(operands {attrs} : types) outs(operands : types) {attrs}`, whose classes
  are made from the rows of `tile_operations`;
- every other operation, whose statement is kept as a template (`OpaqueOp`), so that it prints back
  as it was written.

The statement syntax of all of them is defined once, in `grammar/pto.lark`; `PtoOp.parse` hands
xDSL's own parser to that grammar. The operations of the machine below the tile are in `buffer_ops`,
`register_ops` and `sync_ops`, which load when one of them is met.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Self, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i32,
)
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from pto.dialect.attributes import EnumAttr, RoundModeAttr, SaturationModeAttr
from pto.dialect.names import BUFFER_OPERATIONS, REGISTER_OPERATIONS, SYNC_OPERATIONS
from pto.dialect.tile_operations import SIGNATURES, Signature
from pto.dialect.types import (
    AnyTile,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    element_format,
)
from pto.numerics.formats import Format
from pto.targets import Product, ResolvedConversion, resolve

SEGMENTS = "operandSegmentSizes"


@cache
def segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    """The `operandSegmentSizes` property for these counts."""
    return DenseArrayBase.from_list(i32, sizes)


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    """`%a, %b`."""
    printer.print_list(values, printer.print_ssa_value)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """`T, U`."""
    printer.print_list(types, printer.print_attribute)


def print_group(
    printer: Printer,
    keyword: str,
    values: Sequence[SSAValue],
    attributes: dict[str, Attribute] | None = None,
) -> None:
    """`ins(%a, %b {key = value} : T, U)`."""
    printer.print_string(f"{keyword}(")
    print_values(printer, values)
    if attributes:
        if values:
            printer.print_string(" ")
        printer.print_attr_dict(attributes)
    if values:
        printer.print_string(" : ")
        print_types(printer, [value.type for value in values])
    printer.print_string(")")


def print_tail(
    printer: Printer,
    attributes: dict[str, Attribute],
    operands: Sequence[SSAValue],
    results: Sequence[SSAValue] = (),
) -> None:
    """How most statements end: ` {attributes} : operand types -> result types`."""
    printer.print_op_attributes(attributes)
    if operands or results:
        printer.print_string(" : ")
    print_types(printer, [value.type for value in operands])
    if operands and results:
        printer.print_string(" -> ")
    print_types(printer, [value.type for value in results])


XDSL_PARSER = "pto.frontend.xdsl_parser"
"""The module above this room that reads a statement for xDSL's parser."""


class PtoOp(Operation):
    """An operation whose statement syntax is defined by `grammar/pto.lark`.

    `parse` is the one place where this room reaches for a room above it: xDSL asks the class of an
    operation to parse it, and the grammar of statements is the frontend's.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        parsed: Self = import_module(XDSL_PARSER).parse_statement(cls, parser)
        return parsed


OpT = TypeVar("OpT", bound=Operation)


def parsed_by_grammar(cls: type[OpT]) -> type[OpT]:
    """Gives a class that declares its syntax the parser of the grammar.

    Its statements may have other forms too (`pto.barrier <PIPE_ALL>`), which no format declares.
    """
    setattr(cls, "parse", vars(PtoOp)["parse"])  # noqa: B010
    return cls


@irdl_op_definition
class TCvtOp(IRDLOperation, PtoOp):
    """Element-wise type conversion of a tile's valid region (TCVT; spec R, S, V).

    `pto.tcvt ins(%src[, %tmp] {rmode = .., satmode = ..} : T[, T]) outs(%dst : T)` writes `dst`;
    `%d = pto.tcvt %src {..} : T -> T` yields it. `rmode` absent is the pair's natural mode (spec
    R9), `satmode` absent the pair's default (spec S14).
    """

    name = "pto.tcvt"
    SIGNATURE: ClassVar = SIGNATURES[name]

    src = operand_def()
    tmp = opt_operand_def()
    dst = opt_operand_def()
    rmode = opt_prop_def(RoundModeAttr)
    satmode = opt_prop_def(SaturationModeAttr)
    result = opt_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def dst_type(self) -> Attribute:
        """Type of the tile that receives the result, in either form."""
        return self.operands[-1].type if self.dst is not None else self.results[0].type

    @property
    def mode(self) -> str | None:
        """The rounding mode as written, without `CAST_`."""
        return None if self.rmode is None else self.rmode.data

    @property
    def saturation(self) -> str | None:
        """The saturation mode as written."""
        return None if self.satmode is None else self.satmode.data

    def formats(self) -> tuple[Format, Format] | None:
        """Formats of the elements; None where one of the two is no tile, or of no format."""
        types = self.src.type, self.dst_type
        found = [element_format(t.dtype) if isinstance(t, AnyTile) else None for t in types]
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def resolve(
        self, product: Product, default_saturation: str = "target"
    ) -> ResolvedConversion | None:
        """What the conversion means on a product; None where `formats` is."""
        if (formats := self.formats()) is None:
            return None
        return resolve(
            *formats,
            product,
            mode=self.mode,
            saturation=self.saturation,
            has_tmp=self.tmp is not None,
            default_saturation=default_saturation,
        )

    def _named_attributes(self) -> dict[str, Attribute]:
        named: dict[str, Attribute] = {}
        for key in ("rmode", "satmode"):
            if (value := self.properties.get(key)) is not None:
                named[key] = value
        return {**named, **self.attributes}

    def verify_(self) -> None:
        if (self.dst is None) == (self.result is None):
            raise VerifyException("pto.tcvt either writes outs(..) or yields a result")

    def print(self, printer: Printer) -> None:
        sources = [self.src] if self.tmp is None else [self.src, self.tmp]
        if self.dst is not None:
            printer.print_string(" ")
            print_group(printer, "ins", sources, self._named_attributes())
            printer.print_string(" ")
            print_group(printer, "outs", [self.dst])
            return
        printer.print_string(" ")
        print_values(printer, sources)
        print_tail(printer, self._named_attributes(), sources, self.results)


@irdl_op_definition
class AllocTileOp(IRDLOperation, PtoOp):
    """A tile buffer: `pto.alloc_tile addr = %a valid_row = %r valid_col = %c : !pto.tile_buf<..>`.

    `addr` is the byte address in the tile's memory space; tiles on overlapping addresses share
    memory. `valid_row` and `valid_col` give the dynamic valid extents.
    """

    name = "pto.alloc_tile"

    addr = opt_operand_def()
    valid_row = opt_operand_def()
    valid_col = opt_operand_def()
    result = result_def(TileBufType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        for keyword in ("addr", "valid_row", "valid_col"):
            if (value := getattr(self, keyword)) is not None:
                printer.print_string(f" {keyword} = ")
                printer.print_ssa_value(value)
        print_tail(printer, self.attributes, (), [self.result])


@irdl_op_definition
class MakeTensorViewOp(IRDLOperation, PtoOp):
    """A strided view on global memory.

    `pto.make_tensor_view %ptr, shape = [%m, %n], strides = [%n, %one] : !pto.tensor_view<?x?xf32>`;
    strides are in elements.
    """

    name = "pto.make_tensor_view"

    ptr = operand_def(PtrType)
    shape = var_operand_def()
    strides = var_operand_def()
    layout = opt_prop_def(EnumAttr)
    result = result_def(TensorViewType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.ptr)
        printer.print_string(", shape = [")
        print_values(printer, self.shape)
        printer.print_string("], strides = [")
        print_values(printer, self.strides)
        printer.print_string("]")
        named = {"layout": self.layout} if self.layout is not None else {}
        print_tail(printer, {**named, **self.attributes}, (), [self.result])


@irdl_op_definition
class PartitionViewOp(IRDLOperation, PtoOp):
    """A window of a tensor view: `pto.partition_view %v, offsets = [..], sizes = [..] : T -> U`."""

    name = "pto.partition_view"

    source = operand_def(TensorViewType)
    offsets = var_operand_def()
    sizes = var_operand_def()
    result = result_def(PartitionTensorViewType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(", offsets = [")
        print_values(printer, self.offsets)
        printer.print_string("], sizes = [")
        print_values(printer, self.sizes)
        printer.print_string("]")
        print_tail(printer, self.attributes, [self.source], [self.result])


@irdl_op_definition
class SubviewOp(IRDLOperation, PtoOp):
    """A window of a tile, sharing its memory.

    `pto.subview %t[%i, %j] sizes [16, 64] valid [%r, %c] : T -> U`; the window keeps the parent's
    row stride.
    """

    name = "pto.subview"

    source = operand_def()
    offsets = var_operand_def()
    valid_row = opt_operand_def()
    valid_col = opt_operand_def()
    sizes = prop_def(ArrayAttr[IntegerAttr])
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string("[")
        print_values(printer, self.offsets)
        printer.print_string("] sizes [")
        printer.print_list(self.sizes.data, lambda size: printer.print_int(size.value.data))
        printer.print_string("]")
        if self.valid_row is not None and self.valid_col is not None:
            printer.print_string(" valid [")
            print_values(printer, [self.valid_row, self.valid_col])
            printer.print_string("]")
        print_tail(printer, self.attributes, [self.source], [self.result])


@irdl_op_definition
class SetValidShapeOp(IRDLOperation, PtoOp):
    """Sets a dynamic tile's valid extents: `pto.set_validshape %t, %rows, %cols : T`."""

    name = "pto.set_validshape"

    source = operand_def()
    valid_row = operand_def()
    valid_col = operand_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self.operands)
        print_tail(printer, self.attributes, [self.source])


@irdl_op_definition
class LoadScalarOp(IRDLOperation, PtoOp):
    """One element behind a pointer: `pto.load_scalar %p[%i] : !pto.ptr<f32> -> f32`."""

    name = "pto.load_scalar"

    ptr = operand_def(PtrType)
    offset = operand_def()
    result = result_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.ptr)
        printer.print_string("[")
        printer.print_ssa_value(self.offset)
        printer.print_string("]")
        print_tail(printer, self.attributes, [self.ptr], [self.result])


@irdl_op_definition
class StoreScalarOp(IRDLOperation, PtoOp):
    """Writes one element: `pto.store_scalar %v, %p[%i] : !pto.ptr<f32>, f32`."""

    name = "pto.store_scalar"

    value = operand_def()
    ptr = operand_def(PtrType)
    offset = operand_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        printer.print_ssa_value(self.ptr)
        printer.print_string("[")
        printer.print_ssa_value(self.offset)
        printer.print_string("]")
        print_tail(printer, self.attributes, [self.ptr, self.value])


class OpaqueOp(PtoOp):
    """An operation kept as it was written.

    The property `syntax` is the statement after the operation's name, with `%` for each operand in
    order, `{}` for the attribute dictionary and `{^}` for each region; types and keywords stand in
    it as text, in which `%` and `{` are doubled.
    An operation that was in generic form has no template and prints in generic form.
    """

    traits: ClassVar[OpTraits] = OpTraits(lambda: (NoTerminator(),))

    @property
    def syntax(self) -> str | None:
        """The statement's template, or None where the operation was in generic form."""
        attr = self.properties.get("syntax")
        return attr.data if isinstance(attr, StringAttr) else None

    def print(self, printer: Printer) -> None:
        if (template := self.syntax) is None:
            raise AssertionError("an operation without a template prints in generic form")
        print_template(printer, template, self)


def print_template(printer: Printer, template: str, op: Operation) -> None:
    """Prints a statement's tail from its template (see `OpaqueOp`)."""
    values, bodies = iter(op.operands), iter(op.regions)
    if template and template[0] not in "(<[,":
        printer.print_string(" ")
    for piece in _TEMPLATE_PIECE.findall(template):
        if piece == "{^}":
            printer.print_region(next(bodies))
        elif piece == "%":
            printer.print_ssa_value(next(values))
        elif piece == "{}":
            printer.print_attr_dict(op.attributes)
        else:
            printer.print_string(piece.replace("%%", "%").replace("{{", "{"))


_TEMPLATE_PIECE = re.compile(r"(?:[^%{]|%%|\{\{)+|%|\{\^?\}")


class GroupedOp(PtoOp):
    """`op ins(operands {attrs} : types) outs(operands : types) {attrs}`.

    `ins` and `outs` are its two groups of operands.
    """

    SIGNATURE: ClassVar[Signature]

    @property
    def ins(self) -> Sequence[SSAValue]:
        """The operands of `ins(..)`."""
        return self.operands[: self._group_sizes()[0]]

    @property
    def outs(self) -> Sequence[SSAValue]:
        """The operands of `outs(..)`."""
        return self.operands[self._group_sizes()[0] :]

    def _group_sizes(self) -> tuple[int, ...]:
        sizes = self.properties.get(SEGMENTS)
        if not isinstance(sizes, DenseArrayBase):
            return (len(self.operands) - len(self.SIGNATURE.outs), len(self.SIGNATURE.outs))
        return tuple(int(size) for size in sizes.get_values())

    def check_groups(self) -> None:
        """Raises VerifyException where the counts of operands do not fit the signature."""
        ins, outs = self._group_sizes()
        if not self.SIGNATURE.accepts(ins, outs):
            raise VerifyException(
                f"{self.name} takes {self.SIGNATURE.text()}, not {ins} in and {outs} out"
            )

    def print(self, printer: Printer) -> None:
        inside = self.SIGNATURE.attributes_in_ins
        printer.print_string(" ")
        print_group(printer, "ins", self.ins, self.attributes if inside else None)
        if self.outs:
            printer.print_string(" ")
            print_group(printer, "outs", self.outs)
        if not inside:
            printer.print_op_attributes(self.attributes)
        if self.results:
            printer.print_string(" -> ")
            print_types(printer, [result.type for result in self.results])


class RegularOp(GroupedOp, OpaqueOp):
    """A tile operation that is a row of `tile_operations`.

    A statement with clauses beyond the regular shape keeps its template (`OpaqueOp.syntax`).
    """

    def verify_(self) -> None:
        if self.syntax is None:
            self.check_groups()

    def print(self, printer: Printer) -> None:
        if self.syntax is not None:
            OpaqueOp.print(self, printer)
        else:
            super().print(printer)


_MACHINE_ROOMS = {
    **dict.fromkeys(BUFFER_OPERATIONS, "pto.dialect.buffer_ops"),
    **dict.fromkeys(REGISTER_OPERATIONS, "pto.dialect.register_ops"),
    **dict.fromkeys(SYNC_OPERATIONS, "pto.dialect.sync_ops"),
}


def machine_op_class(name: str) -> type[Operation] | None:
    """The class of an operation below the tile, None for another one."""
    if (module := _MACHINE_ROOMS.get(name)) is None:
        return None
    declared: dict[str, type[Operation]] = import_module(module).OPERATIONS
    return declared[name]


@cache
def operation_class(name: str) -> type[Operation]:
    """The class of the operation `name`, which has no syntax of its own in the grammar."""
    if (machine := machine_op_class(name)) is not None:
        return machine
    if (signature := SIGNATURES.get(name)) is not None:
        return type("RegularOp", (RegularOp,), {"name": name, "SIGNATURE": signature})
    return opaque_op_class(name)


@cache
def opaque_op_class(name: str, generic: bool = False) -> type[OpaqueOp]:
    """The class of an operation `name` whose statement is kept as written.

    `generic` gives the class of those that were in generic form and print so.
    """
    fields: dict[str, Any] = {"name": name}
    if generic:
        fields["print"] = Operation.print
    return type("OpaqueOp", (OpaqueOp,), fields)


WRITTEN_OUT: tuple[type[Operation], ...] = (
    TCvtOp,
    AllocTileOp,
    MakeTensorViewOp,
    PartitionViewOp,
    SubviewOp,
    SetValidShapeOp,
    LoadScalarOp,
    StoreScalarOp,
)
