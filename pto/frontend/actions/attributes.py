"""Types, attributes and literals."""

from __future__ import annotations

from typing import Any

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
    i1,
    i64,
)
from xdsl.ir import Attribute

from pto.dialect.attributes import enum_class
from pto.dialect.types import (
    type_text,
)
from pto.frontend.actions.base import (
    Base,
    Entries,
    make_string,
)
from pto.frontend.lalr import Problem
from pto.frontend.types import checked_integer, parse_attribute, parse_type, xdsl_attribute

_SHORT_KINDS = {"location": "address_space"}


class AttributeActions(Base):
    """Values as lists, types, attribute dictionaries and literals."""

    def first_value(self, token: int) -> list[int]:
        return [token]

    def next_value(self, values: list[int], token: int) -> list[int]:
        values.append(token)
        return values

    def value_list(self, values: list[int] | None) -> list[int]:
        return values or []

    def integer_list(self, values: list[int] | None) -> list[int]:
        return values or []

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

    def empty_dictionary(self, token: int) -> Entries:
        return Entries()

    def entries(self, first: Any, rest: list[Any] | None = None) -> Entries:
        found = Entries()
        self._add_entry(found, *first)
        for entry in rest or ():
            self._add_entry(found, *entry)
        return found

    def entry(self, key: int, value: Attribute | None) -> tuple[int, str, Attribute]:
        return key, self._content(key, self.texts[key]), UnitAttr() if value is None else value

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
        root, *nested = self.texts[token][1:].split("::@")
        return SymbolRefAttr(self._content(token, root), nested)

    def type_value(self, token: int) -> Attribute:
        return self.type(token)

    def typed_literal(self, literal: int, type: Attribute | None) -> Attribute:
        return self._typed_literal(literal, type)

    def string_value(self, token: int, type: Attribute | None) -> Attribute:
        return make_string(self._content(token, self.texts[token]))

    def dictionary_value(self, entries: Entries) -> Attribute:
        return DictionaryAttr(entries)

    def array_value(self, values: list[Attribute] | None) -> Attribute:
        return ArrayAttr(values or ())

    def unit_value(self) -> Attribute:
        return UnitAttr()

    def short_enumeration(self, value: int) -> Attribute:
        """`<vec>` where the key says which enumeration it is of."""
        key = self.texts[value - 3].strip('"').removeprefix("pto.")
        return enum_class(_SHORT_KINDS.get(key, key))(self.texts[value])

    def location_value(self, token: int) -> Attribute:
        return self._written_location(token) or self._location_of(token)

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
        value = checked_integer(text, token)
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


def _float_of_bits(bits: int, type: AnyFloat, token: int) -> float:
    try:
        return next(iter(type.unpack(bits.to_bytes(type.size, "little"), 1)))
    except NotImplementedError:
        raise Problem(token, f"a literal of type {type_text(type)} is not supported") from None
