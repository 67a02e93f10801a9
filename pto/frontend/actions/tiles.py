"""Tile operations: those with a syntax of their own, and the regular ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from pto.dialect import ops
from pto.dialect.attributes import (
    ENUM_VALUES,
    EnumAttr,
    RoundModeAttr,
    SaturationModeAttr,
    normalise_enum_value,
)
from pto.dialect.ops import SEGMENTS, opaque_op_class, segments
from pto.dialect.types import (
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    TileType,
    View,
    type_text,
)
from pto.frontend.actions.attributes import AttributeActions
from pto.frontend.actions.base import (
    NO_ENTRIES,
    Entries,
    Forward,
    escaped,
    literal_text,
    make_string,
)
from pto.frontend.lalr import Problem, Tokens
from pto.frontend.types import checked_integer

_TCVT_OPERAND_TYPES: tuple[type[Attribute], ...] = (TileBufType, TileType)
_TCVT_ATTRIBUTES: dict[str, type[EnumAttr]] = {
    "rmode": RoundModeAttr,
    "satmode": SaturationModeAttr,
}
_EXAMPLES = {"round_mode": "RINT", "saturation_mode": "ON"}


@dataclass
class _Group:
    """What stands between the parentheses of `ins(..)` or `outs(..)`."""

    values: Sequence[int]
    types: Sequence[Any]
    attributes: Entries
    irregular: str | None = None
    """The group's template where it has more than values, attributes and types."""
    extra_values: Sequence[int] = ()


class TileActions(AttributeActions):
    """`tcvt`, `alloc_tile`, views, scalars, and `op ins(..) outs(..)`."""

    # ---- Tile operations

    def tcvt_value(
        self,
        keyword: int,
        src: int,
        tmp: int | None,
        attributes: Entries | None,
        types: list[Attribute],
        result: Attribute,
    ) -> Operation:
        tokens = [src] if tmp is None else [src, tmp]
        operands = self._uses(tokens, types)
        return self._tcvt(operands, segments(1, len(operands) - 1, 0), attributes, (result,))

    def tcvt_buffer(
        self, keyword: int, ins: _Group, outs: _Group, attributes: Entries | None
    ) -> Operation:
        if ins.irregular is not None or not 1 <= len(ins.values) <= 2 or len(outs.values) != 1:
            raise Problem(keyword, "pto.tcvt takes ins(src[, tmp]) outs(dst)")
        operands = [*self._uses(ins.values, ins.types), *self._uses(outs.values, outs.types)]
        sizes = segments(1, len(ins.values) - 1, 1)
        return self._tcvt(operands, sizes, self._merged(ins.attributes, attributes), ())

    def _tcvt(
        self,
        operands: Sequence[SSAValue],
        sizes: Attribute,
        attributes: Entries | None,
        results: Sequence[Attribute],
    ) -> Operation:
        properties: dict[str, Attribute] = {SEGMENTS: sizes}
        rest: Mapping[str, Attribute] = attributes or {}
        if attributes:
            rest = self._tcvt_attributes(attributes, properties)
        for operand in operands:
            if not isinstance(operand, Forward) and not isinstance(
                operand.type, _TCVT_OPERAND_TYPES
            ):
                raise Problem(
                    self._name_token(),
                    f"pto.tcvt converts tiles, not {type_text(operand.type)}",
                )
        return ops.TCvtOp.create(
            operands=operands,
            result_types=results,
            properties=properties,
            attributes=rest,
            location=self._location(),
        )

    def _tcvt_attributes(
        self, attributes: Entries, properties: dict[str, Attribute]
    ) -> dict[str, Attribute]:
        """Moves the keys that tcvt knows into `properties`; the rest are returned."""
        if "satmode" in attributes and "sat_mode" in attributes:
            first = min(attributes.keys_at.values())
            raise Problem(
                first - 1, "'satmode' and 'sat_mode' are two spellings of one attribute; give one"
            )
        rest: dict[str, Attribute] = {}
        for key, value in attributes.items():
            name = "satmode" if key == "sat_mode" else key
            expected = _TCVT_ATTRIBUTES.get(name)
            if expected is None:
                rest[key] = value
                continue
            if not isinstance(value, expected):
                at = attributes.keys_at[key]
                has_value = self.texts[at + 1] == "="
                raise Problem(
                    attributes.value_at(key) if has_value else at,
                    _wanted(key, expected.kind, type_text(value) if has_value else "a key alone"),
                    id="attribute",
                )
            properties[name] = value
        return rest

    def alloc_tile(
        self,
        addr: int | None,
        valid_row: int | None,
        valid_col: int | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        self._expect(type, TileBufType, "the result is a tile buffer")
        operands = [self._use(t) for t in (addr, valid_row, valid_col) if t is not None]
        sizes = segments(addr is not None, valid_row is not None, valid_col is not None)
        return self._make(ops.AllocTileOp, operands, (type,), {SEGMENTS: sizes}, attributes)

    def make_tensor_view(
        self,
        ptr: int,
        shape: list[int],
        strides: list[int],
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        properties: dict[str, Attribute] = {SEGMENTS: segments(1, len(shape), len(strides))}
        rest = attributes
        if attributes and (layout := attributes.get("layout")) is not None:
            if not isinstance(layout, EnumAttr):
                raise Problem(
                    attributes.value_at("layout"), "'layout' is a layout such as #pto.layout<nd>"
                )
            properties["layout"] = layout
            rest = Entries()
            rest.update((key, value) for key, value in attributes.items() if key != "layout")
        operands = [self._use(ptr), *self._untyped(shape), *self._untyped(strides)]
        self._expect(operands[0].type, PtrType, "the source is a pointer")
        self._expect(type, TensorViewType, "the result is a tensor view")
        return self._make(ops.MakeTensorViewOp, operands, (type,), properties, rest)

    def partition_view(
        self,
        source: int,
        offsets: list[int],
        sizes: list[int],
        attributes: Entries | None,
        source_type: Attribute,
        type: Attribute | None,
    ) -> Operation:
        operands = [
            self._use(source, source_type),
            *self._untyped(offsets),
            *self._untyped(sizes),
        ]
        if type is None:
            type = self._partition_type(source_type, operands[-len(sizes) :], source)
        self._expect(operands[0].type, TensorViewType, "the source is a tensor view")
        self._expect(type, PartitionTensorViewType, "the result is a partition of one")
        properties = {SEGMENTS: segments(1, len(offsets), len(sizes))}
        return self._make(ops.PartitionViewOp, operands, (type,), properties, attributes)

    def _partition_type(
        self, source_type: Attribute, sizes: Sequence[SSAValue], token: int
    ) -> Attribute:
        """The result type where it is not written: constant sizes are static extents."""
        if not isinstance(source_type, TensorViewType):
            raise Problem(token, f"a view of a {type_text(source_type)} needs its result type")
        extents = tuple(_constant(size) for size in sizes)
        return PartitionTensorViewType(View(extents, source_type.dtype))

    def subview(
        self,
        source: int,
        offsets: list[int],
        sizes: list[int],
        valid: list[int] | None,
        attributes: Entries | None,
        source_type: Attribute,
        type: Attribute,
    ) -> Operation:
        valid = valid or []
        if len(valid) not in (0, 2):
            raise Problem(valid[0], "'valid' takes a row and a column count")
        operands = [
            self._use(source, source_type),
            *self._untyped(offsets),
            *self._untyped(valid),
        ]
        properties: dict[str, Attribute] = {
            SEGMENTS: segments(1, len(offsets), bool(valid), bool(valid)),
            "sizes": ArrayAttr(
                IntegerAttr(checked_integer(self.texts[size], size), i64) for size in sizes
            ),
        }
        return self._make(ops.SubviewOp, operands, (type,), properties, attributes)

    def set_validshape(
        self, source: int, row: int, col: int, attributes: Entries | None, type: Attribute
    ) -> Operation:
        operands = (self._use(source, type), self._use(row), self._use(col))
        return self._make(ops.SetValidShapeOp, operands, (), {}, attributes)

    def load_scalar(
        self,
        ptr: int,
        offset: int,
        attributes: Entries | None,
        ptr_type: Attribute,
        type: Attribute,
    ) -> Operation:
        self._expect(ptr_type, PtrType, "the source is a pointer")
        operands = (self._use(ptr, ptr_type), self._use(offset))
        return self._make(ops.LoadScalarOp, operands, (type,), {}, attributes)

    def store_scalar(
        self,
        value: int,
        ptr: int,
        offset: int,
        attributes: Entries | None,
        ptr_type: Attribute,
        type: Attribute,
    ) -> Operation:
        self._expect(ptr_type, PtrType, "the target is a pointer")
        operands = (self._use(value, type), self._use(ptr, ptr_type), self._use(offset))
        return self._make(ops.StoreScalarOp, operands, (), {}, attributes)

    # ---- Regular operations

    def group(
        self,
        values: list[int],
        attributes: Entries | None,
        types: list[Any] | None,
        keywords: list[Any] | None = None,
    ) -> _Group:
        group = _Group(values, types or [], attributes or NO_ENTRIES)
        if keywords or any(not isinstance(type, Attribute) for type in group.types):
            self._irregular(group, keywords or [])
        return group

    def group_with_comma(self, values: list[int], attributes: Entries, types: list[Any]) -> _Group:
        group = _Group(values, types, attributes)
        self._irregular(group, [], comma=", ")
        return group

    def empty_group(self) -> _Group:
        return _Group([], [], NO_ENTRIES)

    def _irregular(self, group: _Group, keywords: list[Any], comma: str = " ") -> None:
        """Writes the group's template: it has clauses that the regular shape lacks."""
        extra: list[int] = []
        text = ", ".join("%" for _ in group.values)
        if group.attributes:
            text += f"{comma}{{}}"
        text += self._group_types_text(group.types, extra)
        for name, value, attributes, types in keywords:
            text += f" {self.texts[name]}"
            if value is not None:
                extra.append(value)
                text += " %"
            if attributes:
                group.attributes = self._merged(group.attributes, attributes)
                text += " {}"
            text += self._group_types_text(types, extra)
        group.irregular = text
        group.extra_values = extra

    def _group_types_text(self, types: Sequence[Any] | None, extra: list[int]) -> str:
        if not types:
            return ""
        return " : " + ", ".join(self._group_type_text(type, extra) for type in types)

    def _group_type_text(self, type: Any, extra: list[int]) -> str:
        if isinstance(type, str):
            return type
        if isinstance(type, tuple):
            token, typed = type
            extra.append(token)
            return f"% : {literal_text(typed)}"
        return literal_text(type)

    def group_type(self, token: int) -> Attribute:
        return self.type(token)

    def group_string(self, token: int) -> str:
        return escaped(self.texts[token])

    def group_typed_value(self, value: int, type: int) -> tuple[int, Attribute]:
        return value, self.type(type)

    def keyword_operand(
        self, name: int, value: int | None, attributes: Entries | None, types: list[Any] | None
    ) -> tuple[int, int | None, Entries | None, list[Any] | None]:
        return name, value, attributes, types

    def regular(
        self,
        name: int,
        ins: _Group,
        outs: _Group,
        attributes: Entries | None,
        results: list[Attribute] | None,
    ) -> Operation:
        cls = self._operation_class(name)
        inputs = self._group_values(ins)
        outputs = self._group_values(outs)
        properties: dict[str, Attribute] = {SEGMENTS: segments(len(inputs), len(outputs))}
        irregular = ins.irregular is not None or outs.irregular is not None
        if irregular or not issubclass(cls, ops.RegularOp):
            text = f"ins({_group_text(ins)}) outs({_group_text(outs)})"
            if attributes:
                text += " {}"
            if results:
                text += " -> " + ", ".join(map(literal_text, results))
            properties["syntax"] = make_string(text)
        elif not cls.signature.accepts(len(inputs), len(outputs)):
            raise Problem(
                name,
                f"{self.texts[name]} takes {cls.signature.text()}, "
                f"not {len(inputs)} in and {len(outputs)} out",
            )
        op = self._make(
            cls,
            [*inputs, *outputs],
            results or (),
            properties,
            self._merged(ins.attributes, attributes),
        )
        return self._checked(op, name) if self._checks_itself(op) else op

    def _group_values(self, group: _Group) -> list[SSAValue]:
        if group.irregular is not None:
            types = [type for type in group.types if isinstance(type, Attribute)]
            if len(types) == len(group.values):
                return [*self._uses(group.values, types), *self._untyped(group.extra_values)]
            return self._untyped([*group.values, *group.extra_values])
        if group.values and not group.types:
            return self._untyped(group.values)
        return self._uses(group.values, group.types)

    def regular_without_outs(self, name: int, ins: _Group, attributes: Entries | None) -> Operation:
        cls = self._operation_class(name)
        inputs = self._group_values(ins)
        properties: dict[str, Attribute] = {SEGMENTS: segments(len(inputs), 0)}
        if not issubclass(cls, ops.RegularOp) or ins.irregular is not None:
            text = f"ins({_group_text(ins)})" + (" {}" if attributes else "")
            properties["syntax"] = make_string(text)
        elif not cls.signature.accepts(len(inputs), 0):
            raise Problem(
                name,
                f"{self.texts[name]} takes {cls.signature.text()}, "
                f"not {len(inputs)} in and none out",
            )
        return self._make(cls, inputs, (), properties, self._merged(ins.attributes, attributes))

    def regular_with_value(self, name: int, ins: _Group, type: Attribute) -> Operation:
        inputs = self._group_values(ins)
        properties: dict[str, Attribute] = {
            SEGMENTS: segments(len(inputs), 0),
            "syntax": make_string(f"ins({_group_text(ins)}) outs : {literal_text(type)}"),
        }
        return self._make(self._operation_class(name), inputs, (type,), properties, ins.attributes)

    def _operation_class(self, token: int) -> type[Operation]:
        name = self.texts[token]
        self._check_known(name, token)
        return opaque_op_class(name)


def _constant(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    owner = getattr(value, "op", None)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


def _group_text(group: _Group) -> str:
    if group.irregular is not None:
        return group.irregular
    text = ", ".join("%" for _ in group.values)
    if group.attributes:
        text += " {}"
    if group.types:
        text += " : " + ", ".join(map(literal_text, group.types))
    return text


def attribute_wanted(tokens: Tokens, token: int) -> str | None:
    """What to write where a bare word stands for an attribute of tcvt, as in `rmode = TRUNC`."""
    if token < 2 or tokens.kinds[token] != "NAME" or tokens.texts[token - 1] != "=":
        return None
    key, word = tokens.texts[token - 2], tokens.texts[token]
    expected = _TCVT_ATTRIBUTES.get("satmode" if key == "sat_mode" else key)
    return None if expected is None else _wanted(key, expected.kind, word)


def _wanted(key: str, kind: str, found: str) -> str:
    named = normalise_enum_value(kind, found.strip('"').upper())
    example = named if named in ENUM_VALUES[kind] else _EXAMPLES[kind]
    return f"'{key}' is a {kind.replace('_', ' ')} such as #pto<{kind} {example}>, not {found}"
