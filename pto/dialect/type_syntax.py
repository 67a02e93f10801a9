"""The text of types and attributes, read by `grammar/types.lark`: once per spelling.

The classes of the types are above this module, in `types`, which registers them here; the frontend
and xDSL's own parser both read types through it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, get_args

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.dialects.builtin import Builtin, IntegerType, Signedness
from xdsl.ir import Attribute, Data
from xdsl.parser import AttrParser
from xdsl.parser import Parser as XdslParser
from xdsl.utils.exceptions import ParseError as XdslParseError
from xdsl.utils.exceptions import VerifyException

from pto.dialect.attributes import (
    BLAYOUTS,
    ENUM_KINDS,
    ENUM_VALUES,
    FRACTALS,
    LOCS,
    SLAYOUTS,
    all_attributes,
    enum_class,
    normalise_enum_value,
    opaque_attr_class,
    take_bracketed_text,
)
from pto.dialect.type_records import MultiTileBuf, Pointer, Tile, VectorRegister, View
from pto.grammar.lalr import Parser, SyntaxProblem, Token, Tokens, tokenize
from pto.numerics.formats import BY_MLIR
from pto.spelling import close_match, did_you_mean, nearest

# ---- The types of the dialect

OPAQUE_TYPES = (
    "align",
    "async_event",
    "async_session",
    "eventid_array",
    "local_array",
    "pipe",
    "prefetch_async_context",
    "struct",
    "tile_view",
    "vmi.mask",
    "vmi.vreg",
)
"""Names of the types that the public sources use and that are kept as written."""

_CLASSES: dict[str, type[Data[Any]]] = {}
_ELEMENTS: dict[str, Attribute] = {}
_OPAQUE: list[Callable[[str], type[Data[Any]]]] = []


def register(
    types: Iterable[type[Data[Any]]],
    elements: Iterable[Callable[[], Attribute]],
    opaque: Callable[[str], type[Data[Any]]],
) -> None:
    """The classes of the types, by their names: all of them, those without parameters, and what
    makes the class of a type that is kept as written."""
    _CLASSES.update((cls.name, cls) for cls in types)
    _ELEMENTS.update((type_.name, type_) for type_ in (make() for make in elements))
    _OPAQUE.append(opaque)


# ---- Scalars

_FLOATS: dict[str, Attribute] = {cls.name: cls() for cls in get_args(builtin.AnyFloat)}
_SCALARS: dict[str, Attribute] = {
    "index": builtin.IndexType(),
    "none": builtin.NoneType(),
    "half": builtin.f16,
    **_FLOATS,
}
_INTEGER = re.compile(r"(u|ui|si|i)([0-9]+)")
_SIGNEDNESS = {
    "i": Signedness.SIGNLESS,
    "si": Signedness.SIGNED,
    "u": Signedness.UNSIGNED,
    "ui": Signedness.UNSIGNED,
}
_USUAL_SCALARS = (
    *("index", "none", "tf32", "i1"),
    *(name for name in BY_MLIR if re.fullmatch(r"(?!si|u[0-9])\w+", name)),
)
"""Those that a message lists: one spelling of each integer."""
_MAX_DIGITS = 40
_MAX_INTEGER_WIDTH = (1 << 24) - 1


def scalar_type(name: str) -> Attribute | None:
    """The builtin scalar type of this name, or None."""
    if found := _SCALARS.get(name):
        return found
    if (match := _INTEGER.fullmatch(name)) is None:
        return None
    width = int(match[2])
    if not 0 < width <= _MAX_INTEGER_WIDTH:
        return None
    made = _SCALARS[name] = IntegerType(width, _SIGNEDNESS[match[1]])
    return made


def checked_integer(text: str, token: int) -> int:
    """The integer that a token spells. Raises SyntaxProblem for one that no format holds."""
    if len(text) > _MAX_DIGITS:
        raise SyntaxProblem(token, f"the number {text[:20]}... is too large")
    return int(text, 0) if "x" in text else int(text)


def _nearest_element(word: str) -> str:
    """As `nearest`, of the element types; those of the dialect are spelt with its prefix."""
    spellings = {name: name for name in _USUAL_SCALARS}
    spellings |= {name.removeprefix("pto."): f"!{name}" for name in _ELEMENTS}
    if close := close_match(word, spellings):
        return f"; did you mean '{spellings[close]}'?"
    return f"; known are {', '.join(spellings.values())}"


# ---- Tiles


@dataclass
class _Field:
    """One field between a tile's angle brackets: `key = value`, or a value alone."""

    token: int
    key: str | None
    value: Any


@dataclass
class _Shape:
    """`16x64xf32` (with an element type) or `16x64` (without)."""

    extents: tuple[int | None, ...]
    dtype: Attribute | None = None


Word: TypeAlias = tuple[Token, str]
"""A word that may be a type or a value, and its token."""

_TILE_KEYS = (
    "loc", "dtype", "rows", "cols", "v_row", "v_col", "valid",
    "blayout", "slayout", "fractal", "pad", "compact",
)  # fmt: skip
# The positional form of the ISA manual: `f32, 16, 64, RowMajor, NoneBox, None, Zero`.
_POSITIONS = ("dtype", "rows", "cols", "blayout", "slayout", "fractal", "pad")
_CAMEL_WORDS = {
    "RowMajor": "row_major",
    "ColMajor": "col_major",
    "NoneBox": "none_box",
    "None": 512,
    "NZ": 512,
    "Null": 0,
    "Zero": 1,
    "Max": 2,
    "Min": 3,
}
_CHOICES: dict[str, tuple[Any, ...]] = {
    "loc": LOCS,
    "blayout": BLAYOUTS,
    "slayout": SLAYOUTS,
    "fractal": FRACTALS,
    "pad": (0, 1, 2, 3),
    "compact": (0, 1, 2),
}
_MASK_BITS = {"b8": 8, "b16": 16, "b32": 32}


class _TypeBuilder:
    """What each production of `types.lark` means."""

    at = Token(0)

    def __init__(self) -> None:
        self.tokens: Tokens = Tokens([], [], [])
        self.aliases: Mapping[str, Attribute] = {}

    def _text(self, token: int) -> str:
        return self.tokens.texts[token]

    def _integer(self, token: int) -> int:
        return checked_integer(self._text(token), token)

    # ---- Words and scalars

    def word(self, token: Token) -> Word:
        return token, self._text(token)

    def other_type(self, token: Token) -> Attribute:
        text = self._text(token)
        if (alias := self.aliases.get(text)) is not None:
            return alias
        if text.startswith("!pto."):
            name, _, body = text.removeprefix("!").partition("<")
            if not body and (element := _ELEMENTS.get(name)) is not None:
                return element
            return self._opaque(token, name, body.removesuffix(">"))
        if text.startswith("!") and "." not in text.partition("<")[0]:
            raise SyntaxProblem(token, f"undefined type alias '{text}'")
        return _xdsl_type(text, token)

    def _opaque(self, token: int, name: str, body: str) -> Attribute:
        """A type kept as written; one that is close to a known one and is not is a misspelling."""
        known = [cls.removeprefix("pto.") for cls in _CLASSES]
        short = name.removeprefix("pto.")
        if short not in known and (close := close_match(short, known, 0.85)):
            raise SyntaxProblem(token, f"unknown type '!{name}'; did you mean '!pto.{close}'?")
        return _OPAQUE[0](name)(" ".join(body.split()))

    def type_of(self, value: Attribute | Word | Any) -> Attribute:
        """A type; a word that stands for one is looked up."""
        if isinstance(value, Attribute):
            return value
        if not isinstance(value, tuple):
            raise SyntaxProblem(0, "expected a type, found a number")
        token, text = value
        if (found := scalar_type(text)) is None:
            raise SyntaxProblem(token, f"unknown type '{text}'{_nearest_element(text)}")
        return found

    # ---- Pointers, views, registers

    def ptr(self, dtype: Any, space: Token | None) -> Attribute:
        return _made(
            "ptr", Pointer(self.type_of(dtype), None if space is None else self._text(space))
        )

    def tensor_view(self, shape: Token | None, dtype: Any) -> Attribute:
        return _made("tensor_view", View(self._extents(shape), self.type_of(dtype)))

    def partition_tensor_view(self, shape: Token | None, dtype: Any) -> Attribute:
        return _made("partition_tensor_view", View(self._extents(shape), self.type_of(dtype)))

    def vreg(self, shape: Token, dtype: Any) -> Attribute:
        extents = self._extents(shape)
        if len(extents) != 1 or extents[0] is None:
            raise SyntaxProblem(shape, "a register has one static extent, as in 64xf32")
        return _made("vreg", VectorRegister(extents[0], self.type_of(dtype)))

    def mask(self, width: Token) -> Attribute:
        text = self._text(width)
        if text not in _MASK_BITS:
            raise SyntaxProblem(width, f"unknown mask '{text}'{nearest(text, _MASK_BITS)}")
        return _made("mask", _MASK_BITS[text])

    def _extents(self, token: int | None) -> tuple[int | None, ...]:
        if token is None:
            return ()
        words = self._text(token).rstrip().removesuffix("x").split("x")
        return tuple(None if "?" in word else checked_integer(word, token) for word in words)

    # ---- Tiles

    def fields(self, first: _Field, rest: list[_Field] | None = None) -> list[_Field]:
        return [first, *(rest or ())]

    def named_field(self, key: Token, value: Any) -> _Field:
        return _Field(key, self._text(key), value)

    def shaped_field(self, shape: Token, dtype: Any) -> _Field:
        return _Field(shape, None, _Shape(self._extents(shape), self.type_of(dtype)))

    def type_field(self, value: Any) -> _Field:
        token = value[0] if isinstance(value, tuple) else 0
        return _Field(token, None, value)

    def integer_field(self, token: Token) -> _Field:
        return _Field(token, None, self._integer(token))

    def integer_value(self, token: Token) -> int:
        return self._integer(token)

    def dynamic_value(self) -> None:
        return None

    def shape_value(self, shape: Token, last: Token) -> _Shape:
        return _Shape((*self._extents(shape), self._integer(last)))

    def dynamic_shape_value(self, shape: Token) -> _Shape:
        return _Shape((*self._extents(shape), None))

    def tile_buf(self, fields: list[_Field]) -> Attribute:
        return _made("tile_buf", self._tile(fields))

    def tile(self, fields: list[_Field]) -> Attribute:
        return _made("tile", self._tile(fields))

    def multi_tile_buf(self, fields: list[_Field]) -> Attribute:
        last = fields[-1]
        if last.key != "count" or not isinstance(last.value, int):
            raise SyntaxProblem(
                last.token, "expected 'count = N' as the last field of a multi_tile_buf"
            )
        slot = fields[0].value
        if len(fields) != 2 or not isinstance(slot, _CLASSES["pto.tile_buf"]):
            slot = self.tile_buf(fields[:-1])
        return _made("multi_tile_buf", MultiTileBuf(slot, last.value))

    def _tile(self, fields: list[_Field]) -> Tile:
        named: dict[str, Any] = {}
        where: dict[str, int] = {}
        for field in self._resolve_positions(fields):
            key = str(field.key)
            if key in named:
                raise SyntaxProblem(field.token, f"'{key}' is given twice")
            if key not in _TILE_KEYS and key != "shape":
                message = f"unknown tile field '{key}'{nearest(key, _TILE_KEYS)}"
                raise SyntaxProblem(field.token, message)
            named[key] = field.value
            where[key] = field.token
        return self._checked_tile(named, where)

    def _resolve_positions(self, fields: list[_Field]) -> list[_Field]:
        """Gives every field that has no key its key."""
        resolved = []
        positions = iter(_POSITIONS)
        for field in fields:
            if field.key is not None:
                resolved.append(field)
            elif isinstance(field.value, _Shape):
                resolved.append(_Field(field.token, "shape", field.value))
            elif isinstance(field.value, tuple) and self._is_loc(field, fields):
                resolved.append(_Field(field.token, "loc", field.value))
            elif (key := next(positions, None)) is not None:
                resolved.append(_Field(field.token, key, field.value))
            else:
                message = "too many fields in the positional form of a tile"
                raise SyntaxProblem(field.token, message)
        return resolved

    def _is_loc(self, field: _Field, fields: list[_Field]) -> bool:
        """Whether a word names the memory space: a known one, or the first and not a type."""
        word = field.value[1]
        return word in LOCS or (field is fields[0] and scalar_type(word) is None)

    def _checked_tile(self, named: dict[str, Any], where: dict[str, int]) -> Tile:
        if (shape := named.pop("shape", None)) is not None:
            if len(shape.extents) != 2 or None in shape.extents:
                message = "a tile has two static extents, as in 16x64xf32"
                raise SyntaxProblem(where["shape"], message)
            named["rows"], named["cols"] = shape.extents
            named["dtype"] = shape.dtype
        if (valid := named.pop("valid", None)) is not None:
            if not isinstance(valid, _Shape) or len(valid.extents) != 2:
                raise SyntaxProblem(where["valid"], "valid has two extents, as in 16x? or ?x?")
            named["v_row"], named["v_col"] = valid.extents
        for key in ("dtype", "rows", "cols"):
            if key not in named:
                raise SyntaxProblem(0, f"the tile lacks '{key}'")
        rows, cols = (self._extent(named, where, key) for key in ("rows", "cols"))
        chosen = {
            key: self._choice(key, named[key], where[key]) for key in _CHOICES if key in named
        }
        return Tile(
            loc=chosen.pop("loc", "vec"),
            dtype=self.type_of(named["dtype"]),
            rows=rows,
            cols=cols,
            valid_rows=self._valid(named, where, "v_row", rows),
            valid_cols=self._valid(named, where, "v_col", cols),
            **chosen,
        )

    def _extent(self, named: dict[str, Any], where: dict[str, int], key: str) -> int:
        value = named[key]
        if not isinstance(value, int) or value <= 0:
            raise SyntaxProblem(where.get(key, 0), f"'{key}' is a positive number")
        return value

    def _valid(
        self, named: dict[str, Any], where: dict[str, int], key: str, extent: int
    ) -> int | None:
        if key not in named:
            return extent
        value = named[key]
        if value is not None and not isinstance(value, int):
            raise SyntaxProblem(where.get(key, 0), f"'{key}' is a number or '?'")
        if value is not None and value < 0:  # the public tools print dynamic extents as -1 too
            return None
        return value

    def _choice(self, key: str, value: Any, token: int) -> Any:
        if isinstance(value, tuple):
            value = _CAMEL_WORDS.get(value[1], value[1])
        if value not in _CHOICES[key]:
            message = f"unknown {key} '{value}'{nearest(str(value), _CHOICES[key])}"
            raise SyntaxProblem(token, message)
        return value

    # ---- Enumerations

    def enumeration(self, kind: Token, value: Token) -> Attribute:
        name = self._text(kind).removeprefix("#pto.")
        word = normalise_enum_value(name, self._text(value))
        if name not in ENUM_KINDS and (hint := did_you_mean(name, ENUM_KINDS, 0.85)):
            raise SyntaxProblem(kind, f"unknown attribute '#pto<{name} ..>'{hint}")
        known = ENUM_VALUES.get(name)
        if known is not None and word not in known:
            raise SyntaxProblem(
                value, f"unknown {name} '{self._text(value)}'{nearest(word, known)}"
            )
        return enum_class(name)(word)


def _made(name: str, record: Any) -> Attribute:
    return _CLASSES[f"pto.{name}"](record)


_BUILDER = _TypeBuilder()


@cache
def _parser() -> Parser:
    return Parser("types", _BUILDER, [_BUILDER])


# ---- Types and attributes of other dialects


@cache
def _xdsl_context() -> Context:
    """A context for the types and attributes that other dialects define."""
    from xdsl.dialects import get_all_dialects

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    for cls in (*_CLASSES.values(), *all_attributes()):
        context.load_attr_or_type(cls)
    for name, factory in get_all_dialects().items():
        if name != "builtin":
            context.register_dialect(name, factory)
    return context


def _xdsl_type(text: str, token: int) -> Attribute:
    try:
        return XdslParser(_xdsl_context(), text).parse_type()
    except XdslParseError as error:
        raise SyntaxProblem(token, _first_line(error), offset=error.span.start) from None
    except (ValueError, TypeError, VerifyException) as error:
        raise SyntaxProblem(token, _first_line(error)) from None


def xdsl_attribute(text: str, token: int) -> Attribute:
    """An attribute in MLIR's builtin syntax (`dense<..>`, `array<..>`, ...), read by xDSL."""
    try:
        return XdslParser(_xdsl_context(), text).parse_attribute()
    except (XdslParseError, ValueError, TypeError, OverflowError, VerifyException) as error:
        message = _first_line(error).replace("symbol alias '#", "attribute alias '#")
        raise SyntaxProblem(token, message) from None


def _first_line(error: Exception) -> str:
    message = getattr(error, "msg", None) or str(error)
    return str(message).strip().splitlines()[0] if str(message).strip() else "not understood"


# ---- From text to values

_TYPES: dict[str, Attribute] = {}
_ATTRIBUTES: dict[str, Attribute] = {}
_MAX_REMEMBERED = 50_000


def parse_type(text: str, aliases: Mapping[str, Attribute] | None = None) -> Attribute:
    """The type that a TYPE token spells.

    Raises:
        SyntaxProblem: it is not one; `offset` counts from the token's first character.
    """
    if (known := _TYPES.get(text)) is not None:
        return known
    if (scalar := scalar_type(text)) is not None:
        return scalar
    long_text = f"!pto.tile_buf{text}" if text.startswith("<") else text
    parsed = _parse(long_text, "type", aliases or {})
    if not aliases:
        _remember(_TYPES, text, parsed)
    return parsed


def parse_attribute(text: str) -> Attribute:
    """The attribute that an ATTRIBUTE token of the pto dialect spells.

    Raises:
        SyntaxProblem: it is not one.
    """
    if (known := _ATTRIBUTES.get(text)) is not None:
        return known
    name, _, body = text.removeprefix("#").partition("<")
    inner = body.removesuffix(">").strip()
    one_word = "." not in name.removeprefix("pto.") and re.fullmatch(r"[A-Za-z_][\w$]*", inner)
    if name.startswith("pto.") and not one_word:
        parsed: Attribute = opaque_attr_class(name)(" ".join(inner.split()))
    elif name == "pto" or name.startswith("pto."):
        parsed = _parse(text, "attribute", {})
    else:
        parsed = xdsl_attribute(text, 0)
    _remember(_ATTRIBUTES, text, parsed)
    return parsed


def _remember(memory: dict[str, Attribute], text: str, parsed: Attribute) -> None:
    if len(memory) >= _MAX_REMEMBERED:
        memory.clear()
    memory[text] = parsed


def _parse(text: str, start: str, aliases: Mapping[str, Attribute]) -> Attribute:
    tokens = tokenize("types", text)
    _BUILDER.tokens = tokens
    _BUILDER.aliases = aliases
    try:
        value = _parser().parse(tokens, start)
        return _BUILDER.type_of(value) if start == "type" else value
    except SyntaxProblem as problem:
        problem.offset += tokens.starts[problem.token]
        problem.token = 0
        raise


def parse_rest_of_type(name: str, parser: AttrParser) -> Any:
    """The data of the type `!name`, whose body xDSL's parser has come to."""
    body = take_bracketed_text(parser)
    text = f"!{name}<{body}>" if body else f"!{name}"
    try:
        return parse_type(text).data  # type: ignore[attr-defined]
    except SyntaxProblem as problem:
        parser.raise_error(problem.message)
