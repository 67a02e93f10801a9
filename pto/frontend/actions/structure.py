"""Files, regions, blocks, modules and functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    LocationAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, Region

from pto.frontend.actions.attributes import AttributeActions
from pto.frontend.actions.base import (
    Entries,
    make_string,
)
from pto.frontend.lalr import Problem

MAX_REGION_DEPTH = 64


class StructureActions(AttributeActions):
    """What holds statements."""

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
        if operations or entry.args:
            entry.add_ops(operations or ())
            blocks = [entry, *blocks]
        return Region(blocks)

    def _with_block(self, region: Region) -> Region:
        """The region, with an empty block if it has none: `{}` is so in every custom syntax."""
        if not region.blocks:
            region.add_block(Block())
        return region

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
        properties = (
            {}
            if name is None
            else {"sym_name": make_string(self._content(name, self.texts[name][1:]))}
        )
        return ModuleOp.create(
            properties=properties,
            attributes=attributes or {},
            regions=[self._with_block(body)],
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
            "sym_name": make_string(self._content(name, self.texts[name][1:])),
            "function_type": FunctionType.from_lists(
                [type for _, type, _ in parameters], [type for type, _ in results]
            ),
        }
        if visibility is not None:
            properties["sym_visibility"] = make_string(self.texts[visibility])
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
        if body is not None:
            self._with_block(body)
        if body is not None and properties["function_type"].inputs.data != body.blocks[0].arg_types:
            raise Problem(self._name_token(), "a function with a body names its arguments")
        self._check_forwards()
        return func.FuncOp.create(
            properties=properties,
            attributes=attributes or {},
            regions=[body if body is not None else Region()],
            location=location,
        )

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


def _dictionaries(entries: Iterable[Entries | None]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(DictionaryAttr(entry or {}) for entry in entries)
