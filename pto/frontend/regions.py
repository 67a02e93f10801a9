"""Files, regions, blocks, modules and functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region

from pto.frontend.attributes import AttributeBuilder
from pto.frontend.builder_state import BuilderState, Entries, Header, Types, Values, make_string
from pto.grammar.lalr import SyntaxProblem, Token

MAX_REGION_DEPTH = 64


class Argument(NamedTuple):
    """An argument of the entry block of a region that comes next."""

    name: str | None
    """None for one that is not named."""
    type: Attribute
    token: Token


class Parameter(NamedTuple):
    """A parameter of a function."""

    name: Token | None
    type: Attribute
    attributes: Entries | None
    location: Token | None = None


class Result(NamedTuple):
    """A result of a function or of an operation with regions."""

    type: Attribute
    attributes: Entries | None = None


class RegionBody(NamedTuple):
    """What is written between the braces of a region."""

    operations: Sequence[Operation]
    """Those of the entry block."""
    blocks: list[Block]
    """The blocks after it."""


@dataclass
class _Blocks:
    """The blocks of one region, by label."""

    known: defaultdict[str, Block] = field(default_factory=lambda: defaultdict(Block))
    undefined: dict[str, Token] = field(default_factory=dict)
    """Labels that a branch names and that stand in front of no block so far."""


class RegionBuilder:
    """Builds what holds statements.

    The builder of an operation with a region sets `arguments` when the region's header is read.
    """

    def __init__(self, state: BuilderState, attributes: AttributeBuilder) -> None:
        self._state = state
        self._attributes = attributes
        self._blocks: list[_Blocks] = []
        self.arguments: Sequence[Argument] = ()

    # ---- Files

    def file(self, items: list[Operation | None] | None = None) -> ModuleOp:
        operations = [item for item in items or () if item is not None]
        if not operations:
            end = Token(len(self._state.texts) - 1)
            raise SyntaxProblem(end, "expected a module or a function, the file is empty")
        self._state.check_forwards()
        if len(operations) == 1 and isinstance(operations[0], ModuleOp):
            return operations[0]
        location = self._state.location_of(Token(0))
        return ModuleOp.create(regions=[Region(Block(operations))], location=location)

    # ---- Regions and blocks

    def open_region(self) -> Block:
        if len(self._blocks) >= MAX_REGION_DEPTH:
            brace = Token(self._state.at - 1)
            raise SyntaxProblem(brace, f"regions are nested more than {MAX_REGION_DEPTH} deep")
        self._state.open_scope()
        self._blocks.append(_Blocks())
        arguments, self.arguments = self.arguments, ()
        entry = Block(arg_types=[argument.type for argument in arguments])
        for argument, value in zip(arguments, entry.args, strict=True):
            if argument.name is not None:
                self._state.define(argument.name, value, argument.token)
        return entry

    def blocks(
        self, operations: list[Operation] | None, blocks: list[Block] | None = None
    ) -> RegionBody:
        return RegionBody(operations or (), blocks or [])

    def region(self, entry: Block, body: RegionBody) -> Region:
        for label, token in self._blocks.pop().undefined.items():
            raise SyntaxProblem(token, f"the block '{label}' is not defined")
        self._state.close_scope()
        if not body.operations and not entry.args:
            return Region(body.blocks)
        entry.add_ops(body.operations)
        return Region([entry, *body.blocks])

    def empty_region(self, braces: Token) -> Region:
        return self.region(self.open_region(), RegionBody((), []))

    def label(self, token: Token, arguments: list[tuple[Token, Attribute]] | None) -> Block:
        name = self._state.texts[token]
        blocks = self._blocks[-1]
        if name in blocks.known and name not in blocks.undefined:
            raise SyntaxProblem(token, f"the block '{name}' is defined twice")
        blocks.undefined.pop(name, None)
        block = blocks.known[name]
        for index, (value, type) in enumerate(arguments or ()):
            argument = block.insert_arg(type, index)
            self._state.define(self._state.texts[value], argument, value)
        return block

    def typed_name(
        self, name: Token, type: Attribute, location: Token | None
    ) -> tuple[Token, Attribute]:
        return name, type

    def block(self, block: Block, operations: list[Operation] | None = None) -> Block:
        block.add_ops(operations or ())
        return block

    def successor_block(self, token: Token) -> Block:
        """The block that a branch names. Raises SyntaxProblem outside of a region."""
        if not self._blocks:
            raise SyntaxProblem(token, "a branch outside of a region")
        name = self._state.texts[token]
        blocks = self._blocks[-1]
        if name not in blocks.known:
            blocks.undefined[name] = token
        return blocks.known[name]

    # ---- Modules and functions

    def module_header(
        self, keyword: Token, name: Token | None, attributes: Entries | None
    ) -> Header:
        properties = {} if name is None else {"sym_name": self._symbol_name(name)}
        return Header(ModuleOp, properties=properties, attributes=attributes)

    def module(self, header: Header, body: Region) -> Operation:
        return self._state.make(*header, [with_block(body)])

    def _symbol_name(self, token: Token) -> Attribute:
        return make_string(self._state.content(token, self._state.texts[token][1:]))

    def function_header(
        self,
        visibility: Token | None,
        name: Token,
        parameters: list[Parameter] | None,
        results: list[Result] | None,
        attributes: Entries | None,
    ) -> Header:
        parameters, results, texts = parameters or [], results or [], self._state.texts
        properties: dict[str, Attribute] = {
            "sym_name": self._symbol_name(name),
            "function_type": FunctionType.from_lists(
                [parameter.type for parameter in parameters], [result.type for result in results]
            ),
        }
        if visibility is not None:
            properties["sym_visibility"] = make_string(texts[visibility])
        if any(parameter.attributes for parameter in parameters):
            properties["arg_attrs"] = _dictionaries(parameters)
        if any(result.attributes for result in results):
            properties["res_attrs"] = _dictionaries(results)
        self.arguments = [
            Argument(None, type, name) if token is None else Argument(texts[token], type, token)
            for token, type, *_ in parameters
        ]
        return Header(func.FuncOp, properties=properties, attributes=attributes)

    def function(self, header: Header, body: Region | None) -> Operation:
        self.arguments = ()
        if body is not None:
            type = header.properties["function_type"]
            assert isinstance(type, FunctionType)
            if type.inputs.data != with_block(body).blocks[0].arg_types:
                message = "a function with a body names its arguments"
                raise SyntaxProblem(self._state.name_token(), message)
        self._state.check_forwards()
        return self._state.make(*header, [Region() if body is None else body])

    named_parameter = Parameter

    def unnamed_parameter(self, type: Attribute, attributes: Entries | None) -> Parameter:
        return Parameter(None, type, attributes)

    result = Result

    def result_types(self, type: Attribute) -> list[Result]:
        return [Result(type)]

    def call(
        self,
        keyword: Token,
        callee: Token,
        values: Values,
        attributes: Entries | None,
        type: FunctionType,
    ) -> Operation:
        operands = self._state.uses(values, type.inputs.data)
        properties = {"callee": self._attributes.symbol(callee)}
        return self._state.make(func.CallOp, operands, type.outputs.data, properties, attributes)

    def return_(
        self, keyword: Token, attributes: Entries | None, values: Values, types: Types
    ) -> Operation:
        return self._state.make(func.ReturnOp, self._state.uses(values, types), (), {}, attributes)


def with_block(region: Region) -> Region:
    """The region, with an empty block if it has none: `{}` is so in every custom syntax."""
    if not region.blocks:
        region.add_block(Block())
    return region


def _dictionaries(parts: Iterable[Parameter | Result]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(DictionaryAttr(part.attributes or {}) for part in parts)
