"""Types, attributes, dictionaries and literals."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    SymbolRefAttr,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from pto.dialect.attributes import enum_class
from pto.dialect.type_records import type_text
from pto.dialect.type_syntax import checked_integer, parse_attribute, parse_type, xdsl_attribute
from pto.frontend.builder_state import BuilderState, Entries, make_string
from pto.grammar.lalr import SyntaxProblem, Token

_SHORT_KINDS = {"location": "address_space"}


class Entry(NamedTuple):
    """One entry of a dictionary."""

    token: Token
    key: str
    value: Attribute


class AttributeBuilder:
    """Builds types and attributes."""

    def __init__(self, state: BuilderState) -> None:
        self._state = state
        self._texts = state.texts
        self._type_aliases: dict[str, Attribute] = {}
        self._attribute_aliases: dict[str, Attribute] = {}

    # ---- Types

    def type_alias(self, name: Token, type: Token) -> None:
        self._type_aliases[self._alias(name)] = self.type(type)

    def type(self, token: Token) -> Attribute:
        """The type that a TYPE token spells. Raises SyntaxProblem where it is not one."""
        text = self._texts[token]
        aliases = None
        if self._type_aliases:
            if (alias := self._type_aliases.get(text)) is not None:
                return alias
            aliases = self._type_aliases if "!" in text[1:] else None
        try:
            return parse_type(text, aliases)
        except SyntaxProblem as problem:
            problem.token = token
            raise

    def types(self, first: Token, rest: list[Token] | None = None) -> list[Attribute]:
        if rest is None:
            return [self.type(first)]
        return [self.type(first), *map(self.type, rest)]

    def function_type(self, inputs: list[Attribute], output: Token) -> FunctionType:
        return FunctionType.from_lists(inputs, [self.type(output)])

    def function_type_list(self, inputs: list[Attribute], outputs: list[Attribute]) -> FunctionType:
        return FunctionType.from_lists(inputs, outputs)

    # ---- Dictionaries

    def empty_dictionary(self, braces: Token) -> Entries:
        return Entries()

    def entries(self, first: Entry, rest: list[Entry] | None = None) -> Entries:
        found = Entries()
        found.add(*first)
        for entry in rest or ():
            found.add(*entry)
        return found

    def entry(self, key: Token, value: Attribute | None) -> Entry:
        return Entry(key, self._state.content(key), UnitAttr() if value is None else value)

    # ---- Attributes

    def attribute_alias(self, name: Token, value: Attribute) -> None:
        self._attribute_aliases[self._alias(name)] = value

    def _alias(self, name: Token) -> str:
        return self._texts[name].removesuffix("=").strip()

    def attribute_token(self, token: Token) -> Attribute:
        """The attribute of an ATTRIBUTE or SYMBOL token. Raises SyntaxProblem for none."""
        text = self._texts[token]
        if text.startswith("@"):
            return self.symbol(token)
        if (alias := self._attribute_aliases.get(text)) is not None:
            return alias
        try:
            return parse_attribute(text)
        except SyntaxProblem as problem:
            problem.token = token
            raise

    def symbol(self, token: Token) -> SymbolRefAttr:
        """The reference that a SYMBOL token is."""
        root, *nested = self._texts[token][1:].split("::@")
        return SymbolRefAttr(self._state.content(token, root), nested)

    def string_value(self, token: Token, type: Attribute | None = None) -> Attribute:
        return make_string(self._state.content(token))

    def dictionary_value(self, entries: Entries) -> Attribute:
        return DictionaryAttr(entries)

    def array_value(self, values: list[Attribute] | None) -> Attribute:
        return ArrayAttr(values or ())

    def unit_value(self) -> Attribute:
        return UnitAttr()

    def short_enumeration(self, value: Token) -> Attribute:
        """`key = <vec>`, where the key says which enumeration it is of."""
        key = self._texts[value - 3].strip('"').removeprefix("pto.")
        return enum_class(_SHORT_KINDS.get(key, key))(self._texts[value])

    def location_value(self, token: Token) -> Attribute:
        return self._state.written_location(token) or self._state.location_of(token)

    # ---- Literals

    def typed_literal(self, token: Token, type: Attribute | None) -> Attribute:
        """The value of a literal, of `type` where one is written. Raises SyntaxProblem for none."""
        kind, text = self._state.kinds[token], self._texts[token]
        if kind == "BUILTIN_ATTRIBUTE":
            suffix = "" if type is None else f" : {type_text(type)}"
            return xdsl_attribute(text + suffix, token)
        if kind in ("TRUE", "FALSE"):
            if type is not None and type != i1:
                message = f"'{text}' is a literal of type i1, not {type_text(type)}"
                raise SyntaxProblem(token, message)
            return IntegerAttr(-1 if kind == "TRUE" else 0, i1)
        if kind == "FLOAT":
            type = f64 if type is None else type
            if not isinstance(type, AnyFloat):
                message = f"'{text}' is a floating-point literal, not {type_text(type)}"
                raise SyntaxProblem(token, message)
            return FloatAttr(float(text), type)
        value = checked_integer(text, token)
        if isinstance(type, AnyFloat):
            return self._float_from_bits(token, value, type)
        return self._integer_literal(token, value, i64 if type is None else type)

    def _float_from_bits(self, token: Token, bits: int, type: AnyFloat) -> Attribute:
        """A float by the hexadecimal digits of its bits: MLIR writes NaN and infinity so."""
        text, name = self._texts[token], type_text(type)
        if self._state.kinds[token] != "HEX":
            message = f"'{text}' is an integer, not a value of type {name}"
            hint = f"write '{text}.0', or its bits in hexadecimal"
            raise SyntaxProblem(token, f"{message}; {hint}")
        width = type.bitwidth
        if bits < 0 or bits.bit_length() > width:
            raise SyntaxProblem(token, f"'{text}' has more than the {width} bits of {name}")
        try:
            value = next(iter(type.unpack(bits.to_bytes(type.size, "little"), 1)))
        except NotImplementedError:
            raise SyntaxProblem(token, f"a literal of type {name} is not supported") from None
        return FloatAttr(value, type)

    def _integer_literal(self, token: Token, value: int, type: Attribute) -> Attribute:
        if isinstance(type, IndexType):
            return IntegerAttr(value, type)
        text = self._texts[token]
        if not isinstance(type, IntegerType):
            raise SyntaxProblem(token, f"'{text}' is an integer, not {type_text(type)}")
        width = type.width.data
        if -(1 << (width - 1)) <= value < (1 << width):
            if value >= 1 << (width - 1) and type.signedness.data.name == "SIGNLESS":
                value -= 1 << width
            try:
                return IntegerAttr(value, type)
            except VerifyException:
                pass
        raise SyntaxProblem(token, f"'{text}' does not fit in {type_text(type)}")
