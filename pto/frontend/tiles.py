"""Tile operations: those with a syntax of their own, and the regular ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from pto.dialect import ops
from pto.dialect.attributes import (
    ENUM_VALUES,
    EnumAttr,
    RoundModeAttr,
    SaturationModeAttr,
    enum_class,
    normalise_enum_value,
)
from pto.dialect.ops import SEGMENTS, GroupedOp, segments
from pto.dialect.sync_ops import OPERATIONS, FlagOp
from pto.dialect.type_records import View, type_text
from pto.dialect.type_syntax import checked_integer
from pto.dialect.types import (
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    TileType,
)
from pto.frontend.builder_state import NO_ENTRIES, BuilderState, Entries, Forward, Types
from pto.frontend.templates import Clause, TemplateMaker
from pto.grammar.lalr import SyntaxProblem, Token, Tokens

_TCVT_OPERAND_TYPES = (TileBufType, TileType)
_TCVT_ATTRIBUTES: dict[str, type[EnumAttr]] = {
    "rmode": RoundModeAttr,
    "satmode": SaturationModeAttr,
}
_EXAMPLES = {"round_mode": "RINT", "saturation_mode": "ON"}


@dataclass
class Group:
    """What stands between the parentheses of `ins(..)` or `outs(..)`."""

    values: Sequence[Token]
    types: Sequence[Attribute]
    attributes: Entries
    is_regular: bool = True
    """Whether it has values, attributes and types alone."""
    words: dict[str, Attribute] = field(default_factory=dict)
    """What a word or a string among them says, as a property."""


class Keyword(NamedTuple):
    """A word at the end of a group, with a value or alone: `no_tmp`."""

    name: Token
    value: Token | None
    attributes: Entries | None


class TileBuilder:
    """Builds `tcvt`, `alloc_tile`, views, scalars, and `op ins(..) outs(..)`."""

    def __init__(self, state: BuilderState, templates: TemplateMaker) -> None:
        self._state = state
        self._templates = templates
        self._use = state.use
        self._uses = state.uses
        self._untyped = state.untyped
        self._make = state.make

    def _expect(self, type: Attribute, cls: type[Attribute], what: str) -> None:
        """Checks the kind of a type that the current operation names."""
        if not isinstance(type, cls):
            token = self._state.name_token()
            name = self._state.texts[token]
            raise SyntaxProblem(token, f"{name}: {what}, not {type_text(type)}")

    # ---- Conversions

    def tcvt_value(
        self,
        keyword: Token,
        src: Token,
        tmp: Token | None,
        attributes: Entries | None,
        types: list[Attribute],
        result: Attribute,
    ) -> Operation:
        operands = self._uses([src] if tmp is None else [src, tmp], types)
        sizes = segments(1, len(operands) - 1, 0)
        return self._tcvt(operands, sizes, attributes, (result,))

    def tcvt_buffer(
        self, keyword: Token, ins: Group, outs: Group, attributes: Entries | None
    ) -> Operation:
        irregular = not (ins.is_regular and outs.is_regular)
        if irregular or not 1 <= len(ins.values) <= 2 or len(outs.values) != 1:
            raise SyntaxProblem(keyword, "pto.tcvt takes ins(src[, tmp]) outs(dst)")
        operands = [*self._uses(ins.values, ins.types), *self._uses(outs.values, outs.types)]
        sizes = segments(1, len(ins.values) - 1, 1)
        entries = ins.attributes.merged(outs.attributes).merged(attributes)
        return self._tcvt(operands, sizes, entries, ())

    def _tcvt(
        self,
        operands: Sequence[SSAValue],
        sizes: Attribute,
        attributes: Entries | None,
        results: Sequence[Attribute],
    ) -> Operation:
        properties: dict[str, Attribute] = {SEGMENTS: sizes}
        rest = split_tcvt_attributes(self._state, attributes, properties) if attributes else {}
        for operand in operands:
            if not isinstance(operand, Forward) and not isinstance(
                operand.type, _TCVT_OPERAND_TYPES
            ):
                message = f"pto.tcvt converts tiles, not {type_text(operand.type)}"
                raise SyntaxProblem(self._state.name_token(), message)
        return self._make(ops.TCvtOp, operands, results, properties, rest)

    # ---- Tiles, views and scalars

    def alloc_tile(
        self,
        addr: Token | None,
        valid_row: Token | None,
        valid_col: Token | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        self._expect(type, TileBufType, "the result is a tile buffer")
        operands = self._untyped([t for t in (addr, valid_row, valid_col) if t is not None])
        sizes = segments(addr is not None, valid_row is not None, valid_col is not None)
        return self._make(ops.AllocTileOp, operands, (type,), {SEGMENTS: sizes}, attributes)

    def make_tensor_view(
        self,
        ptr: Token,
        shape: list[Token],
        strides: list[Token],
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
        properties: dict[str, Attribute] = {SEGMENTS: segments(1, len(shape), len(strides))}
        rest = dict(attributes or {})
        if attributes and (layout := rest.pop("layout", None)) is not None:
            if not isinstance(layout, EnumAttr):
                message = "'layout' is a layout such as #pto.layout<nd>"
                raise SyntaxProblem(attributes.value_at("layout"), message)
            properties["layout"] = layout
        operands = [self._use(ptr), *self._untyped(shape), *self._untyped(strides)]
        self._expect(operands[0].type, PtrType, "the source is a pointer")
        self._expect(type, TensorViewType, "the result is a tensor view")
        return self._make(ops.MakeTensorViewOp, operands, (type,), properties, rest)

    def partition_view(
        self,
        source: Token,
        offsets: list[Token],
        sizes: list[Token],
        attributes: Entries | None,
        source_type: Attribute,
        type: Attribute | None,
    ) -> Operation:
        operands = [self._use(source, source_type), *self._untyped(offsets), *self._untyped(sizes)]
        if type is None:
            type = self._partition_type(source_type, operands[-len(sizes) :], source)
        self._expect(operands[0].type, TensorViewType, "the source is a tensor view")
        self._expect(type, PartitionTensorViewType, "the result is a partition of one")
        properties = {SEGMENTS: segments(1, len(offsets), len(sizes))}
        return self._make(ops.PartitionViewOp, operands, (type,), properties, attributes)

    def _partition_type(
        self, source_type: Attribute, sizes: Sequence[SSAValue], token: Token
    ) -> Attribute:
        """The result type where it is not written: constant sizes are static extents."""
        if not isinstance(source_type, TensorViewType):
            message = f"a view of a {type_text(source_type)} needs its result type"
            raise SyntaxProblem(token, message)
        extents = tuple(_constant(size) for size in sizes)
        return PartitionTensorViewType(View(extents, source_type.dtype))

    def subview(
        self,
        source: Token,
        offsets: list[Token],
        sizes: list[Token],
        valid: list[Token] | None,
        attributes: Entries | None,
        source_type: Attribute,
        type: Attribute,
    ) -> Operation:
        valid = valid or []
        if len(valid) not in (0, 2):
            raise SyntaxProblem(valid[0], "'valid' takes a row and a column count")
        operands = [self._use(source, source_type), *self._untyped(offsets), *self._untyped(valid)]
        properties: dict[str, Attribute] = {
            SEGMENTS: segments(1, len(offsets), bool(valid), bool(valid)),
            "sizes": ArrayAttr(
                IntegerAttr(checked_integer(self._state.texts[size], size), i64) for size in sizes
            ),
        }
        return self._make(ops.SubviewOp, operands, (type,), properties, attributes)

    def set_validshape(
        self, source: Token, row: Token, col: Token, attributes: Entries | None, type: Attribute
    ) -> Operation:
        operands = (self._use(source, type), self._use(row), self._use(col))
        return self._make(ops.SetValidShapeOp, operands, (), {}, attributes)

    def load_scalar(
        self,
        ptr: Token,
        offset: Token,
        attributes: Entries | None,
        ptr_type: Attribute,
        type: Attribute,
    ) -> Operation:
        self._expect(ptr_type, PtrType, "the source is a pointer")
        operands = (self._use(ptr, ptr_type), self._use(offset))
        return self._make(ops.LoadScalarOp, operands, (type,), {}, attributes)

    def store_scalar(
        self,
        value: Token,
        ptr: Token,
        offset: Token,
        attributes: Entries | None,
        ptr_type: Attribute,
        type: Attribute,
    ) -> Operation:
        self._expect(ptr_type, PtrType, "the target is a pointer")
        operands = (self._use(value, type), self._use(ptr, ptr_type), self._use(offset))
        return self._make(ops.StoreScalarOp, operands, (), {}, attributes)

    # ---- Flags

    def flag_word(self, word: Token) -> Token:
        """`<PIPE_V>`: the place says which enumeration it is of."""
        return word

    def flag(
        self,
        name: Token,
        src_pipe: Token | Attribute,
        dst_pipe: Token | Attribute,
        event_id: Token | Attribute,
        attributes: Entries | None,
    ) -> Operation:
        properties: dict[str, Attribute] = {}
        parts = (src_pipe, dst_pipe, event_id)
        for (key, kind), part in zip(FlagOp.KINDS.items(), parts, strict=True):
            if isinstance(part, int):
                part = enum_class(kind)(self._state.texts[part])
            properties[key] = part
        text = self._state.texts[name]
        return self._state.checked(
            self._make(OPERATIONS[text], (), (), properties, attributes), name
        )

    # ---- Groups

    def group(
        self,
        values: list[Token],
        attributes: Entries | None,
        types: list[Attribute | None] | None,
        keywords: list[Keyword] | None = None,
    ) -> Group:
        plain = [type for type in types or () if type is not None]
        words: dict[str, Attribute] = {}
        for axis in [type for type in plain if isinstance(type, StringAttr)]:
            plain.remove(axis)
            words["axis"] = axis
        entries = attributes or NO_ENTRIES
        for keyword in keywords or ():
            entries = entries.merged(keyword.attributes)
            if keyword.value is None:
                words[self._state.texts[keyword.name]] = UnitAttr()
        is_regular = not keywords and len(plain) == len(types or ())
        return Group(values, plain, entries, is_regular, words)

    def group_with_comma(
        self, values: list[Token], attributes: Entries, types: list[Attribute | None]
    ) -> Group:
        group = self.group(values, attributes, types)
        group.is_regular = False
        return group

    def empty_group(self) -> Group:
        return Group((), (), NO_ENTRIES)

    def no_group_type(self, value: Token, type: Token) -> None:
        """A value with its type, in the place of a type."""

    def keyword_operand(
        self,
        name: Token,
        value: Token | None,
        attributes: Entries | None,
        types: list[Attribute | None] | None,
    ) -> Keyword:
        return Keyword(name, value, attributes)

    # ---- Regular operations

    def regular(
        self,
        name: Token,
        ins: Group,
        outs: Group,
        attributes: Entries | None,
        results: Types,
        end: Token,
    ) -> Operation:
        return self._grouped(name, end, (ins, outs), attributes, results or ())

    def regular_without_outs(
        self, name: Token, ins: Group, attributes: Entries | None, end: Token
    ) -> Operation:
        return self._grouped(name, end, (ins,), attributes)

    def regular_with_value(self, name: Token, ins: Group, type: Attribute, end: Token) -> Operation:
        ins.is_regular = False
        return self._grouped(name, end, (ins,), None, (type,))

    def _grouped(
        self,
        name: Token,
        end: Token,
        groups: Sequence[Group],
        attributes: Entries | None,
        results: Sequence[Attribute] = (),
    ) -> Operation:
        text = self._state.texts[name]
        self._state.check_known(text, name)
        cls = ops.operation_class(text)
        entries = attributes or NO_ENTRIES
        for group in reversed(groups):
            entries = group.attributes.merged(entries) if group.attributes else entries
        if not issubclass(cls, GroupedOp) or not all(group.is_regular for group in groups):
            return self._as_written(cls, name, end, groups, entries, results)
        operands: list[SSAValue] = []
        for group in groups:
            operands += self._values(group, group.values)
        ins = len(groups[0].values)
        outs = len(operands) - ins
        if not cls.SIGNATURE.accepts(ins, outs):
            takes = f"{text} takes {cls.SIGNATURE.text()}"
            raise SyntaxProblem(name, f"{takes}, not {ins} in and {outs or 'none'} out")
        op = self._make(cls, operands, results, {SEGMENTS: segments(ins, outs)}, entries)
        return self._state.checked(op, name) if isinstance(op, IRDLOperation) else op

    def _values(self, group: Group, tokens: Sequence[Token]) -> list[SSAValue]:
        """Values of a group: those of its list, and others that come after them."""
        count, types = len(group.values), group.types
        if not types or not (group.is_regular or len(types) == count):
            return self._untyped(tokens)
        if len(tokens) == count:
            return self._uses(tokens, types)
        return [*self._uses(tokens[:count], types), *self._untyped(tokens[count:])]

    def _as_written(
        self,
        cls: type[Operation],
        name: Token,
        end: Token,
        groups: Sequence[Group],
        attributes: Entries,
        results: Sequence[Attribute],
    ) -> Operation:
        """An operation whose statement has another shape and is kept as written."""
        if issubclass(cls, GroupedOp) and not issubclass(cls, ops.OpaqueOp):
            message = f"{cls.name} takes {cls.SIGNATURE.text()} and nothing else"
            raise SyntaxProblem(name, message)
        clauses = self._clauses(name + 1, end, attributes)
        kinds = self._state.kinds
        is_outs = (isinstance(part, int) and kinds[part] == "OUTS" for part in clauses)
        split = next((number for number, found in enumerate(is_outs) if found), len(clauses))
        tokens = [self._templates.values(part) for part in (clauses[:split], clauses[split:])]
        operands = [
            value
            for group, values in zip(groups, tokens, strict=False)
            for value in self._values(group, values)
        ]
        properties: dict[str, Attribute] = {SEGMENTS: segments(len(tokens[0]), len(tokens[1]))}
        for group in groups:
            properties |= group.words
        return self._templates.make(cls.name, clauses, operands, results, properties)

    def _clauses(self, start: int, end: int, attributes: Entries) -> list[Clause]:
        """The tokens of a statement, with its attributes in the place of the dictionary."""
        clauses: list[Clause] = []
        depth = 0
        for number in range(start, end):
            kind = self._state.kinds[number]
            if kind in ("_DICTIONARY_OPEN", "LBRACE"):
                if depth == 0:
                    clauses.append(attributes)
                depth += 1
            elif kind == "RBRACE":
                depth -= 1
            elif depth == 0 and kind != "EMPTY_BRACES":
                clauses.append(Token(number))
        return clauses


def split_tcvt_attributes(
    state: BuilderState, attributes: Entries, properties: dict[str, Attribute]
) -> dict[str, Attribute]:
    """Moves the keys that tcvt knows into `properties`; the rest are returned.

    Raises:
        SyntaxProblem: a value is of the wrong kind, or a key is there in two spellings.
    """
    if "satmode" in attributes and "sat_mode" in attributes:
        first = min(attributes.keys_at.values())
        message = "'satmode' and 'sat_mode' are two spellings of one attribute; give one"
        raise SyntaxProblem(Token(first - 1), message)
    rest: dict[str, Attribute] = {}
    for key, value in attributes.items():
        name = _tcvt_key(key)
        expected = _TCVT_ATTRIBUTES.get(name)
        if expected is None:
            rest[key] = value
        elif isinstance(value, expected):
            properties[name] = value
        else:
            at = attributes.keys_at[key]
            found = "a key alone"
            if state.texts[at + 1] == "=":
                at, found = attributes.value_at(key), type_text(value)
            raise SyntaxProblem(at, _wanted(key, expected.kind, found), id="attribute")
    return rest


def _tcvt_key(key: str) -> str:
    return "satmode" if key == "sat_mode" else key


def _constant(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    owner = getattr(value, "op", None)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


def attribute_wanted(tokens: Tokens, token: int) -> str | None:
    """What to write where a bare word stands for an attribute of tcvt, as in `rmode = TRUNC`."""
    if token < 2 or tokens.kinds[token] != "NAME" or tokens.texts[token - 1] != "=":
        return None
    key, word = tokens.texts[token - 2], tokens.texts[token]
    expected = _TCVT_ATTRIBUTES.get(_tcvt_key(key))
    return None if expected is None else _wanted(key, expected.kind, word)


def _wanted(key: str, kind: str, found: str) -> str:
    named = normalise_enum_value(kind, found.strip('"').upper())
    example = named if named in ENUM_VALUES[kind] else _EXAMPLES[kind]
    return f"'{key}' is a {kind.replace('_', ' ')} such as #pto<{kind} {example}>, not {found}"
