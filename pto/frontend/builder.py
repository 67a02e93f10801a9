"""From tokens to xDSL operations: what each production of `pto.lark` means."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar

from xdsl.dialects import arith, cf, func, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from pto.dialect import ops
from pto.dialect.attributes import EnumAttr, RoundModeAttr, SaturationModeAttr, enum_class
from pto.dialect.names import KNOWN_OPERATIONS
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
from pto.frontend.lalr import Problem, Tokens
from pto.frontend.source import Source
from pto.frontend.types import nearest, parse_attribute, parse_type, xdsl_attribute

MAX_REGION_DEPTH = 100
MAX_BRACKET_DEPTH = 200

_INDEX = IndexType()
_RESULT = re.compile(r"(%[\w$.]+)(?::([0-9]+))?")
_NUMERIC_NAME = re.compile(r"%[0-9]+")


class Entries(dict[str, Attribute]):
    """An attribute dictionary that knows where its keys and values stand."""

    def __init__(self) -> None:
        super().__init__()
        self.keys_at: dict[str, int] = {}

    def value_at(self, key: str) -> int:
        """The token at which the value of `key` starts."""
        return self.keys_at[key] + 2


_NO_ENTRIES = Entries()


class _Forward(SSAValue):
    """A value used before its definition; replaced when the definition comes."""

    def __init__(self, type: Attribute | None) -> None:
        super().__init__(type if type is not None else _INDEX)

    @property
    def owner(self) -> Operation | Block:
        raise AssertionError("a forward reference has no owner")

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass
class _Group:
    """What stands between the parentheses of `ins(..)` or `outs(..)`."""

    values: Sequence[int]
    types: Sequence[Any]
    attributes: Entries
    irregular: str | None = None
    """The group's template where it has more than values, attributes and types."""
    extra_values: Sequence[int] = ()


@dataclass
class _Template:
    """Clauses of an operation without rules of its own, on the way to a template."""

    parts: list[Any]
    depth: int = 0


@cache
def _string(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=100_000)
def _int(value: int) -> IntAttr:
    return IntAttr(value)


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


@cache
def _builtin_classes() -> dict[str, type[Operation]]:
    """Classes of the operations that the generic form may name."""
    dialects = (arith.Arith, scf.Scf, cf.Cf, func.Func)
    found = {op.name: op for dialect in dialects for op in dialect.operations}
    found.update({op.name: op for op in ops.WRITTEN_OUT})
    found["builtin.module"] = ModuleOp
    return found


# Results of operations whose statement does not say their type.
_IMPLIED_RESULTS: dict[str, Attribute] = {
    f"pto.{name}": i64
    for name in (
        "get_block_idx", "get_block_num", "get_subblock_idx", "get_subblock_num", "get_ctrl",
        "get_vms4_sr", "get_clock32", "get_clock64", "get_veccoreid",
    )
}  # fmt: skip
_IMPLIED_RESULTS["pto.get_validshape"] = _INDEX
_CHECKED_DIALECTS = ("arith", "scf", "cf", "func", "pto", "builtin")


class Builder:
    """The actions of `pto.lark`: builds operations as their statements end.

    One builder reads one text.
    """

    at: int = 0
    tokens: Tokens

    def __init__(self, source: Source, tokens: Tokens) -> None:
        self.source = source
        self.tokens = tokens
        self.texts = tokens.texts
        self._filename = _string(source.filename)
        self._starts: list[int] = []
        self._values: dict[str, SSAValue] = {}
        self._defined_at: dict[str, int] = {}
        self._scopes: list[list[str]] = []
        self._pending: list[tuple[str | None, Attribute, int]] | None = None
        self._blocks: list[dict[str, Block]] = []
        self._undefined_blocks: list[dict[str, int]] = []
        self._forwards: dict[str, tuple[_Forward, int]] = {}
        self._type_aliases: dict[str, Attribute] = {}
        self._attribute_aliases: dict[str, Attribute] = {}
        self._line_starts = source.line_starts

    # ---- Files

    def file(self, items: list[Operation | None] | None = None) -> ModuleOp:
        operations = [item for item in items or () if item is not None]
        if not operations:
            raise Problem(self._last_token(), "expected a module or a function, the file is empty")
        self._check_forwards()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        return ModuleOp.create(regions=[Region(Block(operations))], location=self._location_of(0))

    def type_alias(self, name: int, value: Attribute | int) -> None:
        alias = self.texts[name].removesuffix("=").strip()
        self._type_aliases[alias] = self.type(value) if isinstance(value, int) else value

    def attribute_alias(self, name: int, value: Attribute) -> None:
        self._attribute_aliases[self.texts[name].removesuffix("=").strip()] = value

    def _last_token(self) -> int:
        return len(self.texts) - 1

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
        if location is not None:
            op.location = self._written_location(location)
        return op

    def short_operation(
        self, start: int, results: int, name: int, clauses: _Template, location: int | None
    ) -> Operation:
        op = self._other(f"pto.{self.texts[name]}", clauses)
        return self.operation(start, results, op, location)

    def _results_token(self) -> int | None:
        start = self._starts[-1]
        return start if self.tokens.kinds[start] == "RESULTS" else None

    def _name_token(self) -> int:
        """The token that names the current operation."""
        start = self._starts[-1]
        return start + 1 if self.tokens.kinds[start] == "RESULTS" else start

    def _result_names(self, token: int) -> list[str]:
        text = self.texts[token]
        if "," not in text and ":" not in text:
            return [text[:-1].rstrip()]
        names = []
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
                f"{op.name} has {_count(len(results), 'result')}, but {len(names)} "
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
        if value is None:
            if (value := self._values.get(f"{name}#0")) is None:
                return self._forward(name, token, type)
        if type is not None and value._type is not type and value._type != type:
            raise Problem(
                token, f"'{name}' has type {type_text(value.type)}, not {type_text(type)}"
            )
        return value

    def _forward(self, name: str, token: int, type: Attribute | None) -> SSAValue:
        known = self._forwards.get(name)
        if known is None:
            known = self._forwards[name] = (_Forward(type), token)
        return known[0]

    def _check_forwards(self) -> None:
        for name, (_, token) in self._forwards.items():
            raise Problem(token, f"'{name}' is not defined{self._nearest_value(name)}")

    def _nearest_value(self, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, list(self._defined_at)[-2000:], n=1, cutoff=0.8)
        return f"; did you mean '{close[0]}'?" if close else ""

    def _uses(self, tokens: Sequence[int], types: Sequence[Attribute]) -> list[SSAValue]:
        if len(tokens) != len(types):
            raise Problem(
                tokens[min(len(types), len(tokens) - 1)] if tokens else self._name_token(),
                f"{_count(len(tokens), 'value')}, but {_count(len(types), 'type')}",
            )
        return [self._use(token, type) for token, type in zip(tokens, types, strict=True)]

    def _untyped(self, tokens: Sequence[int]) -> list[SSAValue]:
        return [self._use(token) for token in tokens]

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
        set_field(location, "line", _int(line))
        set_field(location, "column", _int(offset - starts[line - 1] + 1))
        return location

    def _written_location(self, token: int) -> LocationAttr:
        text = self.texts[token]
        match = re.fullmatch(r'loc\s*\(\s*"([^"]*)"\s*:\s*([0-9]+)\s*:\s*([0-9]+)\s*\)', text)
        if match:
            return FileLineColLoc(_string(match[1]), _int(int(match[2])), _int(int(match[3])))
        return self._location_of(token)

    # ---- Regions and blocks

    def open_region(self) -> Block:
        if len(self._scopes) >= MAX_REGION_DEPTH:
            raise Problem(self.at - 1, f"regions are nested more than {MAX_REGION_DEPTH} deep")
        self._scopes.append([])
        self._blocks.append({})
        self._undefined_blocks.append({})
        arguments, self._pending = self._pending or [], None
        entry = Block(arg_types=[type for _, type, _ in arguments])
        for (name, _, token), value in zip(arguments, entry.args, strict=True):
            if name is not None:
                self._define(name, value, token)
        return entry

    def entry_block(self, operations: list[Operation]) -> list[Operation]:
        return operations

    def blocks(
        self, entry: list[Operation] | None, blocks: list[Block] | None = None
    ) -> tuple[list[Operation] | None, list[Block]]:
        return entry, blocks or []

    def region(self, entry: Block, parts: tuple[list[Operation] | None, list[Block]]) -> Region:
        operations, blocks = parts
        for label, token in self._undefined_blocks.pop().items():
            raise Problem(token, f"the block '{label}' is not defined")
        self._blocks.pop()
        for name in self._scopes.pop():
            del self._values[name]
        if operations or entry.args or not blocks:
            entry.add_ops(operations or ())
            blocks = [entry, *blocks]
        return Region(blocks)

    def empty_region(self, token: int) -> Region:
        return self.region(self.open_region(), (None, []))

    def label(self, token: int, arguments: list[tuple[int, Attribute]] | None) -> Block:
        name = self.texts[token]
        block = self._blocks[-1].get(name)
        defined = name not in self._undefined_blocks[-1]
        if block is not None and defined:
            raise Problem(token, f"the block '{name}' is defined twice")
        self._undefined_blocks[-1].pop(name, None)
        if block is None:
            block = self._blocks[-1][name] = Block()
        for index, (value_token, type) in enumerate(arguments or ()):
            argument = block.insert_arg(type, index)
            self._define(self.texts[value_token], argument, value_token)
        return block

    def typed_names(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

    def typed_name(self, name: int, type: Attribute, location: int | None) -> tuple[int, Attribute]:
        return name, type

    def block(self, block: Block, operations: list[Operation] | None = None) -> Block:
        block.add_ops(operations or ())
        return block

    def _successor_block(self, token: int) -> Block:
        if not self._blocks:
            raise Problem(token, "a branch outside of a region")
        name = self.texts[token]
        block = self._blocks[-1].get(name)
        if block is None:
            block = self._blocks[-1][name] = Block()
            self._undefined_blocks[-1][name] = token
        return block

    # ---- Modules and functions

    def module_header(
        self, keyword: int, name: int | None, attributes: Entries | None
    ) -> tuple[int | None, Entries | None, LocationAttr]:
        return name, attributes, self._location()

    def module(self, header: Any, body: Region) -> ModuleOp:
        name, attributes, location = header
        properties = {} if name is None else {"sym_name": _string(self.texts[name][1:])}
        return ModuleOp.create(
            properties=properties,
            attributes=attributes or {},
            regions=[body],
            location=location,
        )

    def function_header(
        self,
        visibility: int | None,
        name: int,
        parameters: list[tuple[int | None, Attribute, Entries | None]] | None,
        results: list[tuple[Attribute, Entries | None]] | None,
        attributes: Entries | None,
    ) -> tuple[dict[str, Attribute], Entries | None, LocationAttr]:
        parameters = parameters or []
        results = results or []
        properties: dict[str, Attribute] = {
            "sym_name": _string(self.texts[name][1:].strip('"')),
            "function_type": FunctionType.from_lists(
                [type for _, type, _ in parameters], [type for type, _ in results]
            ),
        }
        if visibility is not None:
            properties["sym_visibility"] = _string(self.texts[visibility])
        if any(entries for _, _, entries in parameters):
            properties["arg_attrs"] = _dictionaries(entries for _, _, entries in parameters)
        if any(entries for _, entries in results):
            properties["res_attrs"] = _dictionaries(entries for _, entries in results)
        self._pending = [
            (None if token is None else self.texts[token], type, 0 if token is None else token)
            for token, type, _ in parameters
        ]
        return properties, attributes, self._location()

    def function(self, header: Any, body: Region | None) -> Operation:
        self._pending = None
        properties, attributes, location = header
        if body is not None and properties["function_type"].inputs.data != body.blocks[0].arg_types:
            raise Problem(self._name_token(), "a function with a body names its arguments")
        self._check_forwards()
        return func.FuncOp.create(
            properties=properties,
            attributes=attributes or {},
            regions=[body if body is not None else Region()],
            location=location,
        )

    def parameters(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

    def named_parameter(
        self, name: int, type: Attribute, attributes: Entries | None, location: int | None
    ) -> tuple[int, Attribute, Entries | None]:
        return name, type, attributes

    def unnamed_parameter(
        self, type: Attribute, attributes: Entries | None
    ) -> tuple[None, Attribute, Entries | None]:
        return None, type, attributes

    def result_types(self, type: Attribute) -> list[tuple[Attribute, None]]:
        return [(type, None)]

    def result_type_list(self, results: list[Any] | None) -> list[Any]:
        return results or []

    def results(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

    def result(
        self, type: Attribute, attributes: Entries | None
    ) -> tuple[Attribute, Entries | None]:
        return type, attributes

    def call(
        self,
        keyword: int,
        callee: int,
        values: list[int] | None,
        attributes: Entries | None,
        type: FunctionType,
    ) -> Operation:
        return func.CallOp.create(
            operands=self._uses(values or [], type.inputs.data),
            result_types=type.outputs.data,
            properties={"callee": self._symbol(callee)},
            attributes=attributes or {},
            location=self._location(),
        )

    def return_(
        self,
        keyword: int,
        attributes: Entries | None,
        values: list[int] | None,
        types: list[Attribute] | None,
    ) -> Operation:
        return self._make(func.ReturnOp, self._uses(values or [], types or []), (), {}, attributes)

    # ---- arith

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

    def arith_constant(
        self, attributes: Entries | None, literal: int, type: Attribute | None
    ) -> Operation:
        value = self._typed_literal(literal, type)
        return self._make(arith.ConstantOp, (), (_type_of(value),), {"value": value}, attributes)

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
            syntax = _string(f"% : {_literal_text(source)} to {_literal_text(target)}")
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
        for block in region.blocks:
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
        bound_type = type if type is not None else _INDEX
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

    def initial_values(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

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

    def do_region(self, region: Region) -> Region:
        return region

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
            if not isinstance(operand, _Forward) and not isinstance(
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
                kind = expected.kind
                raise Problem(
                    attributes.value_at(key),
                    f"'{key}' is {_article(kind)} such as #pto<{kind} {_EXAMPLES[kind]}>, "
                    f"not {type_text(value)}",
                    id="attribute",
                )
            properties[name] = value
        return rest

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

    def alloc_tile(
        self,
        addr: int | None,
        valid_row: int | None,
        valid_col: int | None,
        attributes: Entries | None,
        type: Attribute,
    ) -> Operation:
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
        if attributes and isinstance(layout := attributes.get("layout"), EnumAttr):
            properties["layout"] = layout
            rest = Entries()
            rest.update((key, value) for key, value in attributes.items() if key != "layout")
        operands = [self._use(ptr), *self._untyped(shape), *self._untyped(strides)]
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
            "sizes": ArrayAttr(IntegerAttr(int(self.texts[size]), i64) for size in sizes),
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
        operands = (self._use(value, type), self._use(ptr, ptr_type), self._use(offset))
        return self._make(ops.StoreScalarOp, operands, (), {}, attributes)

    # ---- Regular operations

    def ins(self, group: _Group) -> _Group:
        return group

    def outs(self, group: _Group) -> _Group:
        return group

    def group(
        self,
        values: list[int],
        attributes: Entries | None,
        types: list[Any] | None,
        keywords: list[Any] | None = None,
    ) -> _Group:
        group = _Group(values, types or [], attributes or _NO_ENTRIES)
        if keywords or any(not isinstance(type, Attribute) for type in group.types):
            self._irregular(group, keywords or [])
        return group

    def group_with_comma(self, values: list[int], attributes: Entries, types: list[Any]) -> _Group:
        group = _Group(values, types, attributes)
        self._irregular(group, [], comma=", ")
        return group

    def empty_group(self) -> _Group:
        return _Group([], [], _NO_ENTRIES)

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
            return f"% : {_literal_text(typed)}"
        return _literal_text(type)

    def group_types(self, first: Any, rest: list[Any] | None = None) -> list[Any]:
        return [first, *(rest or ())]

    def group_type(self, token: int) -> Attribute:
        return self.type(token)

    def group_string(self, token: int) -> str:
        return _escaped(self.texts[token])

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
                text += " -> " + ", ".join(map(_literal_text, results))
            properties["syntax"] = _string(text)
        elif not cls.signature.accepts(len(inputs), len(outputs)):
            raise Problem(
                name,
                f"{self.texts[name]} takes {cls.signature.text()}, "
                f"not {len(inputs)} in and {len(outputs)} out",
            )
        return self._make(
            cls,
            [*inputs, *outputs],
            results or (),
            properties,
            self._merged(ins.attributes, attributes),
        )

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
            properties["syntax"] = _string(text)
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
            "syntax": _string(f"ins({_group_text(ins)}) outs : {_literal_text(type)}"),
        }
        return self._make(self._operation_class(name), inputs, (type,), properties, ins.attributes)

    def _operation_class(self, token: int) -> type[Operation]:
        name = self.texts[token]
        self._check_known(name, token)
        return opaque_op_class(name)

    def _check_known(self, name: str, token: int) -> None:
        """An operation that is close to a known one and is not known is a misspelling."""
        if name in KNOWN_OPERATIONS:
            return
        dialect = name.partition(".")[0]
        if dialect not in _CHECKED_DIALECTS:
            return
        from difflib import get_close_matches

        close = get_close_matches(name, KNOWN_OPERATIONS, n=1, cutoff=0.85)
        if close or dialect != "pto":
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise Problem(token, f"unknown operation '{name}'{hint}")

    # ---- Other operations

    def no_clauses(self) -> _Template:
        return _Template([])

    def clause(self, clauses: _Template, token: int) -> _Template:
        clauses.parts.append(token)
        return clauses

    def word(self, token: int) -> int:
        return token

    def clause_dictionary(self, clauses: _Template, *tokens: Any) -> _Template:
        entries = next((token for token in tokens if isinstance(token, Entries)), Entries())
        clauses.parts.append(entries)
        return clauses

    def clause_region(self, clauses: _Template, entry: Block, blocks: Any, end: int) -> _Template:
        clauses.parts.append(self.region(entry, blocks))
        return clauses

    def clause_brackets(
        self, clauses: _Template, opening: int, inner: _Template, closing: int
    ) -> _Template:
        clauses.depth = max(clauses.depth, inner.depth + 1)
        if clauses.depth > MAX_BRACKET_DEPTH:
            raise Problem(opening, f"brackets are nested more than {MAX_BRACKET_DEPTH} deep")
        clauses.parts.append(opening)
        clauses.parts.extend(inner.parts)
        clauses.parts.append(closing)
        return clauses

    def other_operation(self, name: int, clauses: _Template) -> Operation:
        text = self.texts[name]
        self._check_known(text, name)
        return self._other(text, clauses)

    def _other(self, name: str, clauses: _Template) -> Operation:
        operands: list[SSAValue] = []
        attributes = Entries()
        regions: list[Region] = []
        pieces = _TemplateText()
        kinds = self.tokens.kinds
        for part in clauses.parts:
            if isinstance(part, Entries):
                if attributes:
                    raise Problem(self._name_token(), f"{name} has two attribute dictionaries")
                attributes = part
                pieces.add("{}")
            elif isinstance(part, Region):
                regions.append(part)
                pieces.add("{^}")
            elif kinds[part] == "SSA":
                operands.append(self._use(part))
                pieces.add("%")
            elif kinds[part] == "TYPE":
                pieces.add(_literal_text(self.type(part)))
            elif kinds[part] == "ATTRIBUTE":
                pieces.add(_literal_text(self._attribute(part)))
            else:
                pieces.add(_escaped(self.texts[part]))
        results = self._other_results(name, clauses, operands)
        return self._make(
            opaque_op_class(name),
            operands,
            results,
            {"syntax": _string(pieces.text())},
            attributes,
            regions,
        )

    def _other_results(
        self, name: str, clauses: _Template, operands: Sequence[SSAValue]
    ) -> list[Attribute]:
        """Types of the results: the last ones after `->`, or else after the last `:`."""
        count = self._result_count()
        if count == 0:
            return []
        kinds = self.tokens.kinds
        types: list[Attribute] = []
        for part in clauses.parts:
            if not isinstance(part, int):
                continue
            if self.texts[part] in ("->", ":"):
                types = []
            elif kinds[part] == "TYPE":
                types.append(self.type(part))
        if name in _IMPLIED_RESULTS and (not types or name == "pto.get_validshape"):
            types = [_IMPLIED_RESULTS[name]] * count
        elif name == "llvm.extractelement" and types and isinstance(types[-1], VectorType):
            types = [types[-1].element_type]
        elif name == "pto.addptr" and operands and isinstance(operands[0].type, PtrType):
            types = [operands[0].type]
        if len(types) < count:
            raise Problem(
                self._name_token(),
                f"{name} names {_count(count, 'result')}, but its statement gives "
                f"{_count(len(types), 'result type')}",
            )
        return types[-count:]

    # ---- Generic form

    def generic_operation(
        self,
        name: int,
        values: list[int] | None,
        labels: list[int] | None,
        properties: Entries | None,
        regions: list[Region] | None,
        attributes: Entries | None,
        type: FunctionType,
    ) -> Operation:
        text = self.texts[name].strip('"')
        self._check_known(text, name)
        operands = self._uses(values or [], type.inputs.data)
        given = dict(properties or {})
        cls = _builtin_classes().get(text) or opaque_op_class(text, _stays_generic(text, given))
        rest = dict(attributes or {})
        if cls is ops.TCvtOp:
            moved: dict[str, Attribute] = {}
            rest = {
                **self._tcvt_attributes(properties or Entries(), moved),
                **self._tcvt_attributes(attributes or Entries(), moved),
            }
            given = {**{key: given[key] for key in (SEGMENTS,) if key in given}, **moved}
            rest.pop(SEGMENTS, None)
        elif hasattr(cls, "get_irdl_definition"):
            for key in cls.get_irdl_definition().properties:
                if key in rest and key not in given:
                    given[key] = rest.pop(key)
        if SEGMENTS in rest:
            given[SEGMENTS] = rest.pop(SEGMENTS)
        return self._checked(
            cls.create(
                operands=operands,
                result_types=type.outputs.data,
                properties=given,
                attributes=rest,
                successors=[self._successor_block(label) for label in labels or ()],
                regions=regions or (),
                location=self._location(),
            ),
            name,
        )

    def _checked(self, op: Operation, token: int) -> Operation:
        """Checks what the custom syntax cannot get wrong: counts and kinds of a generic form."""
        from xdsl.utils.exceptions import DiagnosticException, VerifyException

        try:
            if not op.regions and not any(isinstance(value, _Forward) for value in op.operands):
                if isinstance(op, ops.PtoOp):
                    op.verify_()
                if hasattr(op, "get_irdl_definition"):
                    op.get_irdl_definition().verify(op)
        except (VerifyException, DiagnosticException) as error:
            message = str(error).strip().splitlines()[-1].strip()
            raise Problem(token, f"{op.name}: {message}") from None
        return op

    def regions(self, first: Region, rest: list[Region] | None = None) -> list[Region]:
        return [first, *(rest or ())]

    def labels(self, first: int, rest: list[int] | None = None) -> list[int]:
        return [first, *(rest or ())]

    # ---- Values, types, attributes

    def first_value(self, token: int) -> list[int]:
        return [token]

    def next_value(self, values: list[int], token: int) -> list[int]:
        values.append(token)
        return values

    def value_list(self, values: list[int] | None) -> list[int]:
        return values or []

    def integer_list(self, values: list[int] | None) -> list[int]:
        return values or []

    def integers(self, first: int, rest: list[int] | None = None) -> list[int]:
        return [first, *(rest or ())]

    def type(self, token: int) -> Attribute:
        text = self.texts[token]
        if self._type_aliases:
            if (alias := self._type_aliases.get(text)) is not None:
                return alias
            aliases = self._type_aliases if "!" in text[1:] else None
        else:
            aliases = None
        try:
            return parse_type(text, aliases)
        except Problem as problem:
            problem.token = token
            raise

    def types(self, first: int, rest: list[int] | None = None) -> list[Attribute]:
        if rest is None:
            return [self.type(first)]
        return [self.type(first), *map(self.type, rest)]

    def type_list(self, types: list[Attribute] | None) -> list[Attribute]:
        return types or []

    def function_type(self, inputs: list[Attribute], output: int) -> FunctionType:
        return FunctionType.from_lists(inputs, [self.type(output)])

    def function_type_list(self, inputs: list[Attribute], outputs: list[Attribute]) -> FunctionType:
        return FunctionType.from_lists(inputs, outputs)

    def dictionary(self, entries: Entries) -> Entries:
        return entries

    def empty_dictionary(self, token: int) -> Entries:
        return Entries()

    def entries(self, first: Any, rest: list[Any] | None = None) -> Entries:
        found = Entries()
        self._add_entry(found, *first)
        for entry in rest or ():
            self._add_entry(found, *entry)
        return found

    def _add_entry(self, entries: Entries, token: int, key: str, value: Attribute) -> None:
        if key in entries:
            raise Problem(token, f"the attribute '{key}' is given twice")
        entries[key] = value
        entries.keys_at[key] = token

    def entry(self, key: int, value: Attribute | None) -> tuple[int, str, Attribute]:
        return key, self.texts[key].strip('"'), UnitAttr() if value is None else value

    def key(self, token: int) -> int:
        return token

    def attribute_token(self, token: int) -> Attribute:
        return self._attribute(token)

    def _attribute(self, token: int) -> Attribute:
        text = self.texts[token]
        if text.startswith("@"):
            return self._symbol(token)
        if (alias := self._attribute_aliases.get(text)) is not None:
            return alias
        try:
            return parse_attribute(text)
        except Problem as problem:
            problem.token = token
            raise

    def _symbol(self, token: int) -> Attribute:
        root, *nested = (part.strip('"') for part in self.texts[token][1:].split("::@"))
        return SymbolRefAttr(root, nested)

    def type_value(self, token: int) -> Attribute:
        return self.type(token)

    def typed_literal(self, literal: int, type: Attribute | None) -> Attribute:
        return self._typed_literal(literal, type)

    def string_value(self, token: int, type: Attribute | None) -> Attribute:
        return _string(_unquoted(self.texts[token]))

    def dictionary_value(self, entries: Entries) -> Attribute:
        return DictionaryAttr(entries)

    def array_value(self, values: list[Attribute] | None) -> Attribute:
        return ArrayAttr(values or ())

    def attribute_values(
        self, first: Attribute, rest: list[Attribute] | None = None
    ) -> list[Attribute]:
        return [first, *(rest or ())]

    def unit_value(self) -> Attribute:
        return UnitAttr()

    def short_enumeration(self, value: int) -> Attribute:
        """`<vec>` where the key says which enumeration it is of."""
        key = self.texts[value - 3].strip('"')
        return enum_class(_SHORT_KINDS.get(key, key))(self.texts[value])

    def function_type_value(self, type: FunctionType) -> Attribute:
        return type

    def location_value(self, token: int) -> Attribute:
        return self._written_location(token)

    def literal(self, token: int) -> int:
        return token

    def _typed_literal(self, token: int, type: Attribute | None) -> Attribute:
        kind, text = self.tokens.kinds[token], self.texts[token]
        if kind == "BUILTIN_ATTRIBUTE":
            suffix = "" if type is None else f" : {type_text(type)}"
            return xdsl_attribute(text + suffix, token)
        if kind in ("TRUE", "FALSE"):
            if type is not None and type != i1:
                raise Problem(token, f"'{text}' is a literal of type i1, not {type_text(type)}")
            return IntegerAttr(-1 if kind == "TRUE" else 0, i1)
        if kind == "FLOAT":
            return self._float_literal(token, float(text), type)
        value = int(text, 16) if kind == "HEX" else int(text)
        if isinstance(type, AnyFloat):
            return self._float_from_bits(token, value, type, kind)
        return self._integer_literal(token, value, i64 if type is None else type)

    def _float_literal(self, token: int, value: float, type: Attribute | None) -> Attribute:
        if type is None:
            from xdsl.dialects.builtin import f64

            type = f64
        if not isinstance(type, AnyFloat):
            raise Problem(
                token, f"'{self.texts[token]}' is a floating-point literal, not {type_text(type)}"
            )
        return FloatAttr(value, type)

    def _float_from_bits(self, token: int, bits: int, type: AnyFloat, kind: str) -> Attribute:
        """A float given as the hexadecimal digits of its bits, as MLIR writes NaN and inf."""
        text = self.texts[token]
        if kind != "HEX":
            raise Problem(
                token,
                f"'{text}' is an integer, not a value of type {type_text(type)}; "
                f"write '{text}.0', or its bits in hexadecimal",
            )
        width = type.bitwidth
        if bits < 0 or bits.bit_length() > width:
            raise Problem(token, f"'{text}' has more than the {width} bits of {type_text(type)}")
        return FloatAttr(_float_of_bits(bits, type, token), type)

    def _integer_literal(self, token: int, value: int, type: Attribute) -> Attribute:
        if isinstance(type, IndexType):
            return IntegerAttr(value, type)
        if not isinstance(type, IntegerType):
            raise Problem(token, f"'{self.texts[token]}' is an integer, not {type_text(type)}")
        width = type.width.data
        if not -(1 << (width - 1)) <= value < (1 << width):
            raise Problem(token, f"'{self.texts[token]}' does not fit in {type_text(type)}")
        if value >= 1 << (width - 1) and type.signedness.data.name == "SIGNLESS":
            value -= 1 << width
        try:
            return IntegerAttr(value, type)
        except Exception:
            raise Problem(
                token, f"'{self.texts[token]}' does not fit in {type_text(type)}"
            ) from None


class _TemplateText:
    """Joins a template's pieces with the spacing of the field."""

    _NO_SPACE_BEFORE: ClassVar = {",", ")", "]", ">", "[", "(", "<"}
    _NO_SPACE_AFTER: ClassVar = {"(", "[", "<", ""}

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.last = ""

    def add(self, piece: str) -> None:
        """Appends a piece, with a space before it where the field writes one."""
        tight = piece in self._NO_SPACE_BEFORE and not (
            piece in "([" and self.last in (",", ":", "->", "=", "")
        )
        if not tight and self.last not in self._NO_SPACE_AFTER:
            self.pieces.append(" ")
        self.pieces.append(piece)
        self.last = piece

    def text(self) -> str:
        """The template."""
        return "".join(self.pieces)


_TERMINATORS = (scf.YieldOp, scf.ConditionOp, func.ReturnOp, cf.BranchOp, cf.ConditionalBranchOp)
_TCVT_OPERAND_TYPES: tuple[type[Attribute], ...] = (TileBufType, TileType)
_TCVT_ATTRIBUTES: dict[str, type[EnumAttr]] = {
    "rmode": RoundModeAttr,
    "satmode": SaturationModeAttr,
}
_SHORT_KINDS = {"location": "address_space"}
_EXAMPLES = {"round_mode": "RINT", "saturation_mode": "ON"}
_CMP_PREDICATES = {
    "arith.cmpi": arith.CMPI_COMPARISON_OPERATIONS,
    "arith.cmpf": arith.CMPF_COMPARISON_OPERATIONS,
}


def _stays_generic(name: str, properties: Mapping[str, Attribute]) -> bool:
    """Whether a generic form has no other form: no template, nor the two groups of `ins`, `outs`."""
    if "syntax" in properties:
        return False
    if (signature := ops.REGULAR_OPS.get(name)) is None:
        return True
    sizes = properties.get(SEGMENTS)
    if isinstance(sizes, DenseArrayBase):
        return len(sizes.get_values()) != 2
    return any(role.endswith("?") for role in signature.ins + signature.outs)


def _constant(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    owner = getattr(value, "op", None)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


def _type_of(attr: Attribute) -> Attribute:
    found: Attribute = attr.get_type()  # type: ignore[attr-defined]
    return found


def _float_of_bits(bits: int, type: AnyFloat, token: int) -> float:
    try:
        return next(iter(type.unpack(bits.to_bytes(type.size, "little"), 1)))
    except NotImplementedError:
        raise Problem(token, f"a literal of type {type_text(type)} is not supported") from None


def _dictionaries(entries: Iterable[Entries | None]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(DictionaryAttr(entry or {}) for entry in entries)


def _unquoted(text: str) -> str:
    body = text[1:-1]
    if "\\" not in body:
        return body
    return re.sub(
        r"\\([0-9A-Fa-f]{2}|.)",
        lambda match: (
            _ESCAPES.get(match[1]) or (chr(int(match[1], 16)) if len(match[1]) == 2 else match[1])
        ),
        body,
    )


_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def _escaped(text: str) -> str:
    """Text as it stands in a template."""
    return text.replace("%", "%%").replace("{", "{{")


@lru_cache(maxsize=4096)
def _literal_text(attr: Attribute) -> str:
    return _escaped(type_text(attr))


def _group_text(group: _Group) -> str:
    if group.irregular is not None:
        return group.irregular
    text = ", ".join("%" for _ in group.values)
    if group.attributes:
        text += " {}"
    if group.types:
        text += " : " + ", ".join(map(_literal_text, group.types))
    return text


def _count(number: int, noun: str) -> str:
    words = {0: "no", 1: "one"}
    return f"{words.get(number, number)} {noun}{'' if number == 1 else 's'}"


def _article(kind: str) -> str:
    return f"a {kind.replace('_', ' ')}"
