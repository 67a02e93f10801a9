"""Types and attributes: from the text of one token to xDSL's values, once per spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.dialects.builtin import Builtin, IntegerType, Signedness
from xdsl.ir import Attribute
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
    enum_class,
    normalise_enum_value,
    opaque_attr_class,
)
from pto.dialect.types import (
    ALL_TYPES,
    ELEMENT_TYPES,
    MultiTileBuf,
    MultiTileBufType,
    PartitionTensorViewType,
    Pointer,
    PtrType,
    TensorViewType,
    Tile,
    TileBufType,
    TileType,
    View,
    opaque_type_class,
)
from pto.frontend.lalr import Parser, Problem, Tokens, tokenize

_SCALARS: dict[str, Attribute] = {
    "index": builtin.IndexType(),
    "none": builtin.NoneType(),
    "f16": builtin.f16,
    "half": builtin.f16,
    "bf16": builtin.bf16,
    "f32": builtin.f32,
    "f64": builtin.f64,
    "tf32": builtin.FloatTF32Type(),
    "f8E4M3FN": builtin.Float8E4M3FNType(),
    "f8E4M3": builtin.Float8E4M3Type(),
    "f8E5M2": builtin.Float8E5M2Type(),
    "f8E8M0FNU": builtin.Float8E8M0FNUType(),
    "f4E2M1FN": builtin.Float4E2M1FNType(),
}
_KNOWN_SCALARS = (*_SCALARS, "i1", "i4", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
_OTHER_FLOATS = {
    cls.name: cls
    for cls in (
        builtin.Float80Type,
        builtin.Float128Type,
        builtin.Float8E5M2FNUZType,
        builtin.Float8E4M3FNUZType,
        builtin.Float8E4M3B11FNUZType,
        builtin.Float8E3M4Type,
        builtin.Float6E2M3FNType,
        builtin.Float6E3M2FNType,
    )
}
_INTEGER = re.compile(r"(u|ui|si|i)([0-9]+)")
_SIGNEDNESS = {
    "i": Signedness.SIGNLESS,
    "si": Signedness.SIGNED,
    "u": Signedness.UNSIGNED,
    "ui": Signedness.UNSIGNED,
}
_ELEMENT_TYPES: dict[str, Attribute] = {cls.name: cls() for cls in ELEMENT_TYPES}
_MAX_DIGITS = 40
_MAX_INTEGER_WIDTH = (1 << 24) - 1


def scalar_type(name: str) -> Attribute | None:
    """The builtin scalar type of this name, or None."""
    if found := _SCALARS.get(name):
        return found
    if match := _INTEGER.fullmatch(name):
        width = int(match[2])
        if not 0 < width <= _MAX_INTEGER_WIDTH:
            return None
        made: Attribute = IntegerType(width, _SIGNEDNESS[match[1]])
    elif cls := _OTHER_FLOATS.get(name):
        made = cls()
    else:
        return None
    _SCALARS[name] = made
    return made


def checked_integer(text: str, token: int) -> int:
    """The integer that a token spells. Raises Problem for one that no format holds."""
    if len(text) > _MAX_DIGITS:
        raise Problem(token, f"the number {text[:20]}... is too large")
    return int(text, 0) if "x" in text else int(text)


def close_match(word: str, known: Iterable[str], cutoff: float = 0.85) -> str | None:
    """The known word that is nearest in any case, if one is near."""
    from difflib import get_close_matches

    spellings = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), spellings, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None


def nearest(word: str, known: Any) -> str:
    """`; did you mean 'x'?` where a known word is near, else the known words."""
    names = [str(name) for name in known]
    if close := close_match(word, names, 0.6):
        return f"; did you mean '{close}'?"
    return f"; known are {', '.join(names)}"


def _nearest_element(word: str) -> str:
    """As `nearest`, of the element types; those of the dialect are spelt with its prefix."""
    spellings = {name: name for name in _KNOWN_SCALARS}
    spellings |= {name.removeprefix("pto."): f"!{name}" for name in _ELEMENT_TYPES}
    if close := close_match(word, spellings, 0.6):
        return f"; did you mean '{spellings[close]}'?"
    return f"; known are {', '.join(spellings.values())}"


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


_TYPE_NAMES = [cls.name.removeprefix("pto.") for cls in ALL_TYPES]
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


class _TypeActions:
    """What each production of `types.lark` means."""

    at = 0

    def __init__(self) -> None:
        self.tokens: Tokens = Tokens([], [], [])
        self.aliases: dict[str, Attribute] = {}

    def _text(self, token: int) -> str:
        return self.tokens.texts[token]

    def _integer(self, token: int) -> int:
        return checked_integer(self._text(token), token)

    # ---- Words and scalars

    def word(self, token: int) -> tuple[int, str]:
        return token, self._text(token)

    def other_type(self, token: int) -> Attribute:
        text = self._text(token)
        if (alias := self.aliases.get(text)) is not None:
            return alias
        if text in _ELEMENT_TYPES:
            return _ELEMENT_TYPES[text.removeprefix("!")]
        if text.startswith("!pto."):
            self._check_known(token, text.removeprefix("!pto.").partition("<")[0])
            name, _, body = text.removeprefix("!").partition("<")
            if (element := _ELEMENT_TYPES.get(name)) is not None and not body:
                return element
            return opaque_type_class(name)(" ".join(body.removesuffix(">").split()))
        if text.startswith("!") and "." not in text.partition("<")[0]:
            raise Problem(token, f"undefined type alias '{text}'")
        return _xdsl_type(text, token)

    def _check_known(self, token: int, name: str) -> None:
        """A type that is close to a known one and is not known is a misspelling."""
        if name not in _TYPE_NAMES and (close := close_match(name, _TYPE_NAMES)):
            raise Problem(token, f"unknown type '!pto.{name}'; did you mean '!pto.{close}'?")

    def _type(self, value: Any, token: int | None = None) -> Attribute:
        """A type; a word that stands for one is looked up."""
        if isinstance(value, Attribute):
            return value
        if not isinstance(value, tuple):
            raise Problem(0, "expected a type, found a number")
        token, text = value
        if (found := scalar_type(text)) is None:
            raise Problem(token, f"unknown type '{text}'{_nearest_element(text)}")
        return found

    # ---- Pointers and views

    def ptr(self, dtype: Any, space: int | None) -> Attribute:
        return PtrType(Pointer(self._type(dtype), None if space is None else self._text(space)))

    def tensor_view(self, shape: int | None, dtype: Any) -> Attribute:
        return TensorViewType(View(self._extents(shape), self._type(dtype)))

    def partition_tensor_view(self, shape: int | None, dtype: Any) -> Attribute:
        return PartitionTensorViewType(View(self._extents(shape), self._type(dtype)))

    def _extents(self, token: int | None) -> tuple[int | None, ...]:
        if token is None:
            return ()
        words = self._text(token).rstrip().removesuffix("x").split("x")
        return tuple(None if "?" in word else checked_integer(word, token) for word in words)

    # ---- Tiles

    def fields(self, first: _Field, rest: list[_Field] | None = None) -> list[_Field]:
        return [first, *(rest or ())]

    def named_field(self, key: int, value: Any) -> _Field:
        return _Field(key, self._text(key), value)

    def shaped_field(self, shape: int, dtype: Any) -> _Field:
        return _Field(shape, None, _Shape(self._extents(shape), self._type(dtype)))

    def type_field(self, value: Any) -> _Field:
        token = value[0] if isinstance(value, tuple) else 0
        return _Field(token, None, value)

    def integer_field(self, token: int) -> _Field:
        return _Field(token, None, self._integer(token))

    def integer_value(self, token: int) -> int:
        return self._integer(token)

    def dynamic_value(self) -> None:
        return None

    def shape_value(self, shape: int, last: int) -> _Shape:
        return _Shape((*self._extents(shape), self._integer(last)))

    def dynamic_shape_value(self, shape: int) -> _Shape:
        return _Shape((*self._extents(shape), None))

    def tile_buf(self, fields: list[_Field]) -> Attribute:
        return TileBufType(self._tile(fields))

    def tile(self, fields: list[_Field]) -> Attribute:
        return TileType(self._tile(fields))

    def multi_tile_buf(self, fields: list[_Field]) -> Attribute:
        last = fields[-1]
        if last.key != "count" or not isinstance(last.value, int):
            raise Problem(last.token, "expected 'count = N' as the last field of a multi_tile_buf")
        slot = fields[0].value
        if len(fields) != 2 or not isinstance(slot, TileBufType):
            slot = TileBufType(self._tile(fields[:-1]))
        return MultiTileBufType(MultiTileBuf(slot, last.value))

    def _tile(self, fields: list[_Field]) -> Tile:
        named: dict[str, Any] = {}
        where: dict[str, int] = {}
        for field in self._resolve_positions(fields):
            key = str(field.key)
            if key in named:
                raise Problem(field.token, f"'{key}' is given twice")
            if key not in _TILE_KEYS and key != "shape":
                raise Problem(field.token, f"unknown tile field '{key}'{nearest(key, _TILE_KEYS)}")
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
            else:
                key = next(positions, None)
                if key is None:
                    raise Problem(field.token, "too many fields in the positional form of a tile")
                resolved.append(_Field(field.token, key, field.value))
        return resolved

    def _is_loc(self, field: _Field, fields: list[_Field]) -> bool:
        """Whether a word names the memory space: a known one, or the first and not a type."""
        word = field.value[1]
        return word in LOCS or (field is fields[0] and scalar_type(word) is None)

    def _checked_tile(self, named: dict[str, Any], where: dict[str, int]) -> Tile:
        if (shape := named.pop("shape", None)) is not None:
            if len(shape.extents) != 2 or None in shape.extents:
                raise Problem(where["shape"], "a tile has two static extents, as in 16x64xf32")
            named["rows"], named["cols"] = shape.extents
            named["dtype"] = shape.dtype
        if (valid := named.pop("valid", None)) is not None:
            if not isinstance(valid, _Shape) or len(valid.extents) != 2:
                raise Problem(where["valid"], "valid has two extents, as in 16x? or ?x?")
            named["v_row"], named["v_col"] = valid.extents
        for key in ("dtype", "rows", "cols"):
            if key not in named:
                raise Problem(0, f"the tile lacks '{key}'")
        rows, cols = (self._extent(named, where, key) for key in ("rows", "cols"))
        chosen = {
            key: self._choice(key, named[key], where[key]) for key in _CHOICES if key in named
        }
        return Tile(
            loc=chosen.pop("loc", "vec"),
            dtype=self._type(named["dtype"]),
            rows=rows,
            cols=cols,
            valid_rows=self._valid(named, where, "v_row", rows),
            valid_cols=self._valid(named, where, "v_col", cols),
            **chosen,
        )

    def _extent(self, named: dict[str, Any], where: dict[str, int], key: str) -> int:
        value = named[key]
        if not isinstance(value, int) or value <= 0:
            raise Problem(where.get(key, 0), f"'{key}' is a positive number")
        return value

    def _valid(
        self, named: dict[str, Any], where: dict[str, int], key: str, extent: int
    ) -> int | None:
        if key not in named:
            return extent
        value = named[key]
        if value is not None and not isinstance(value, int):
            raise Problem(where.get(key, 0), f"'{key}' is a number or '?'")
        if value is not None and value < 0:  # the public tools print dynamic extents as -1 too
            return None
        return value

    def _choice(self, key: str, value: Any, token: int) -> Any:
        if isinstance(value, tuple):
            value = _CAMEL_WORDS.get(value[1], value[1])
        if value not in _CHOICES[key]:
            raise Problem(token, f"unknown {key} '{value}'{nearest(str(value), _CHOICES[key])}")
        return value

    # ---- Enumerations

    def enumeration(self, kind: int, value: int) -> Attribute:
        name = self._text(kind).removeprefix("#pto.")
        word = normalise_enum_value(name, self._text(value))
        if name not in ENUM_KINDS and (close := close_match(name, ENUM_KINDS)):
            raise Problem(kind, f"unknown attribute '#pto<{name} ..>'; did you mean '{close}'?")
        known = ENUM_VALUES.get(name)
        if known is not None and word not in known:
            raise Problem(value, f"unknown {name} '{self._text(value)}'{nearest(word, known)}")
        return enum_class(name)(word)


_ACTIONS = _TypeActions()


@cache
def _parser() -> Parser:
    return Parser("types", _ACTIONS)


@cache
def _xdsl_context() -> Context:
    """A context for the types and attributes that other dialects define."""
    from xdsl.dialects import get_all_dialects

    from pto.dialect import PTO

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(PTO)
    for name, factory in get_all_dialects().items():
        if name not in ("builtin",):
            context.register_dialect(name, factory)
    return context


def _xdsl_type(text: str, token: int) -> Attribute:
    try:
        parser = XdslParser(_xdsl_context(), text)
        parsed = parser.parse_type()
    except XdslParseError as error:
        raise Problem(token, _first_line(error), offset=error.span.start) from None
    except (ValueError, TypeError, VerifyException) as error:
        raise Problem(token, _first_line(error)) from None
    return parsed


def xdsl_attribute(text: str, token: int) -> Attribute:
    """An attribute in MLIR's builtin syntax (`dense<..>`, `array<..>`, ...), read by xDSL."""
    try:
        return XdslParser(_xdsl_context(), text).parse_attribute()
    except (XdslParseError, ValueError, TypeError, OverflowError, VerifyException) as error:
        message = _first_line(error).replace("symbol alias '#", "attribute alias '#")
        raise Problem(token, message) from None


def _first_line(error: Exception) -> str:
    message = getattr(error, "msg", None) or str(error)
    return str(message).strip().splitlines()[0] if str(message).strip() else "not understood"


_TYPES: dict[str, Attribute] = {}
_ATTRIBUTES: dict[str, Attribute] = {}
_MAX_REMEMBERED = 50_000


def parse_type(text: str, aliases: dict[str, Attribute] | None = None) -> Attribute:
    """The type that a TYPE token spells.

    Raises:
        Problem: it is not one; `offset` counts from the token's first character.
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
        Problem: it is not one.
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


def _parse(text: str, start: str, aliases: dict[str, Attribute]) -> Attribute:
    tokens = tokenize("types", text)
    _ACTIONS.tokens = tokens
    _ACTIONS.aliases = aliases
    try:
        value = _parser().parse(tokens, start)
        return _ACTIONS._type(value) if start == "type" else value
    except Problem as problem:
        problem.offset += tokens.starts[problem.token]
        problem.token = 0
        raise


# ---- For xDSL's own parser


def take_bracketed_text(parser: AttrParser) -> str:
    """The text between the angle brackets that come next, `` where none do."""
    start = parser.pos
    content = parser.lexer.input.content
    if not content.startswith("<", start):
        return ""
    depth = 0
    for index in range(start, len(content)):
        if content[index] == "<":
            depth += 1
        elif content[index] == ">" and content[index - 1] != "-":
            depth -= 1
            if depth == 0:
                parser._resume_from(index + 1)
                return " ".join(content[start + 1 : index].split())
    return parser.raise_error("unbalanced angle brackets")


def parse_rest_of_type(name: str, parser: AttrParser) -> Any:
    """The data of the type `!name`, whose body xDSL's parser has come to."""
    body = take_bracketed_text(parser)
    text = f"!{name}<{body}>" if body else f"!{name}"
    try:
        return parse_type(text).data  # type: ignore[attr-defined]
    except Problem as problem:
        parser.raise_error(problem.message)
