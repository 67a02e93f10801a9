"""The rules that one tile conversion is checked against (spec V).

Each rule is a generator of findings over a `Conversion`; `RULES` lists them in the order in which
their findings are reported. A finding names the part of the statement it is about; turning that
into a line and column is `verify_tcvt`'s business.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from pto.diagnostics import Severity
from pto.dialect.ops import TCvtOp
from pto.dialect.types import (
    TileBufType,
    TileType,
    element_format,
    elements_per_column,
    type_text,
)
from pto.passes.placement import (
    BLOCK_BYTES,
    AnyTile,
    Placement,
    bits_per_column,
    grown,
    place,
    row_stride,
    tile_bytes,
)
from pto.targets import (
    ROUND_MODES,
    TCVT_TARGETS,
    Pair,
    lookup,
    tcvt_table,
    unified_buffer_bytes,
)
from pto.targets.grids import is_integer
from pto.targets.routes import find_route
from pto.tmp import TmpTerms, tmp_terms


@dataclass(frozen=True, slots=True)
class Where:
    """A part of a statement: what the caret will point at."""

    role: str = "name"
    """"name" | "src" | "tmp" | "dst" (the operand or its type) | "attribute"."""
    part: str = ""
    """Of an operand's type: "dtype", "loc", "shape", "valid", or "" for the operand itself.
    Of an attribute: its key; with a leading "=" its value."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has to say, before it has a place in the text."""

    id: str
    message: str
    where: Where
    notes: tuple[str, ...] = ()
    severity: Severity | None = None
    """Only where it differs from the registry's."""
    quiet: bool = False


@dataclass(frozen=True)
class Conversion:
    """A tcvt with what the rules ask of it."""

    op: TCvtOp
    src: AnyTile
    dst: AnyTile
    tmp: AnyTile | None
    arch: str | None
    """Target, or None to check what holds on every target."""
    default_sat: str
    """"target" | "ON" | "OFF": what an absent satmode means (spec S14)."""
    require_tmp: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets whose tables are asked: one, or all of them."""
        return TCVT_TARGETS if self.arch is None else (self.arch,)

    @property
    def on(self) -> str:
        """`on a5`, or `on any target`, to end a sentence."""
        return "on any target" if self.arch is None else f"on {self.arch}"

    @cached_property
    def src_name(self) -> str:
        """The source's element format as the spec names it, else its type's text."""
        return element_format(self.src.dtype) or type_text(self.src.dtype)

    @cached_property
    def dst_name(self) -> str:
        """The destination's element format."""
        return element_format(self.dst.dtype) or type_text(self.dst.dtype)

    @property
    def names(self) -> str:
        """`f32 to bf16`."""
        return f"{self.src_name} to {self.dst_name}"

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The table rows of this pair, at most one a target; none if it is illegal."""
        found = (lookup(target, self.src_name, self.dst_name) for target in self.targets)
        return tuple(pair for pair in found if pair is not None)

    @cached_property
    def pair(self) -> Pair | None:
        """The table row, where the target is known and has the pair."""
        return self.pairs[0] if self.arch is not None and self.pairs else None

    @property
    def mode(self) -> str | None:
        """The rounding mode as written, without `CAST_`."""
        return self.op.rmode.data if self.op.rmode is not None else None

    @property
    def satmode(self) -> str | None:
        """The saturation mode as written."""
        return self.op.satmode.data if self.op.satmode is not None else None

    def saturation(self, pair: Pair) -> str:
        """The saturation mode that applies: written, selected, or the pair's own default."""
        if self.satmode is not None:
            return self.satmode
        return pair.default_saturation if self.default_sat == "target" else self.default_sat

    @property
    def saturation_note(self) -> str:
        """Which default was used, where the mode is not written (spec S14)."""
        chosen = "its default" if self.default_sat == "target" else "selected by --default-sat"
        return f"satmode is not written; OFF is {chosen}"

    @cached_property
    def tmp_needed(self) -> TmpTerms | None:
        """The tmp tile's size, where this conversion takes the path that uses one (spec S10, T).

        With a dynamic valid region, the size at the declared shape: an upper bound.
        """
        pair = self.pair
        if pair is None or not pair.pytorch_pair or self.arch != "a2a3":
            return None
        if self.saturation(pair) != "OFF":
            return None
        stride = row_stride(self.op.src)
        if self.src_name == "f32" and stride % 8:
            return None  # `row-align` reports it
        rows = _or(self.dst.valid_rows, self.dst.rows)
        cols = min(_or(self.dst.valid_cols, self.dst.cols), stride)
        return tmp_terms(pair.src, pair.dst, rows, cols, row_stride=stride)

    @property
    def tmp_is_bound(self) -> bool:
        """The size is an upper bound, because the valid region is dynamic."""
        return self.dst.valid_rows is None or self.dst.valid_cols is None


def _or(extent: int | None, declared: int) -> int:
    return declared if extent is None else extent


# Types, modes, attributes -------------------------------------------------------------------------


def type_pair(c: Conversion) -> Iterator[Finding]:
    """The pair is in the target's table."""
    if c.pairs:
        return
    if c.arch is not None and tcvt_table(c.arch) is None:
        yield Finding("type-pair", f"{c.arch} has no tcvt", Where())
        return
    who = "no target converts" if c.arch is None else f"{c.arch} does not convert"
    notes = [*_same_type_note(c), *_partner_notes(c), *_route_notes(c)]
    yield Finding("type-pair", f"{who} {c.names}", Where("dst", "dtype"), tuple(notes))


def _same_type_note(c: Conversion) -> list[str]:
    if c.src_name != c.dst_name:
        return []
    return ["f32 to f32 (rounding to an integral value) is the only pair of equal types"]


def _partner_notes(c: Conversion) -> list[str]:
    rows = [row for target in c.targets for row in _rows(target)]
    to = dict.fromkeys(row.dst for row in rows if row.src == c.src_name)
    from_ = dict.fromkeys(row.src for row in rows if row.dst == c.dst_name)
    return [
        f"{c.src_name} converts to {' '.join(to)} {c.on}"
        if to
        else f"{c.src_name} does not convert to anything {c.on}",
        f"{c.dst_name} comes from {' '.join(from_)}"
        if from_
        else f"nothing converts to {c.dst_name} {c.on}",
    ]


def _rows(target: str) -> tuple[Pair, ...]:
    table = tcvt_table(target)
    return table.rows if table else ()


def _route_notes(c: Conversion) -> list[str]:
    for target in c.targets:
        route = find_route(target, c.src_name, c.dst_name)
        if route is None:
            continue
        chain = " -> ".join(route.formats)
        quality = (
            "exact: the bits of a direct conversion"
            if route.exact
            else "not exact: it rounds more than once"
        )
        statements = _route_statements(c, route.formats)
        lines = "".join(f"\n{statement}" for statement in statements)
        return [f"another route on {target}: {chain}, {quality}{lines}"]
    return []


_DTYPES: dict[str, Attribute] = {
    "f32": Float32Type(),
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    **{f"i{n}": IntegerType(n) for n in (4, 8, 16, 32, 64)},
    **{f"ui{n}": IntegerType(n, Signedness.UNSIGNED) for n in (8, 16, 32)},
}


def _route_statements(c: Conversion, formats: tuple[str, ...]) -> list[str]:
    """The chain as statements; none for the forms and formats that it cannot be written for."""
    if c.op.dst is None or not isinstance(c.src, TileBufType):
        return []
    if c.tmp is not None or elements_per_column(c.src.dtype) != 1:
        return []
    lines, source, source_type = [], _value_name(c, "src"), c.src
    for n, name in enumerate(formats[1:-1]):
        if (dtype := _DTYPES.get(name)) is None:
            return []
        type_ = TileBufType(replace(c.src.data, dtype=dtype))
        step = f"%step{n}"
        lines.append(f"{step} = pto.alloc_tile : {type_text(type_)}")
        lines.append(
            f"pto.tcvt ins({source} : {type_text(source_type)}) outs({step} : {type_text(type_)})"
        )
        source, source_type = step, type_
    lines.append(
        f"pto.tcvt ins({source} : {type_text(source_type)})"
        f" outs({_value_name(c, 'dst')} : {type_text(c.dst)})"
    )
    return lines


def _value_name(c: Conversion, role: str) -> str:
    value = getattr(c.op, role)
    hint = value.name_hint if value is not None else None
    return f"%{hint or role}"


def round_mode(c: Conversion) -> Iterator[Finding]:
    """The pair rounds by the mode written, on one of the targets."""
    mode = c.mode
    if mode is None or not c.pairs or any(pair.accepts(mode) for pair in c.pairs):
        return
    offered = [m for m in ROUND_MODES if any(m in pair.modes for pair in c.pairs)]
    none = " (NONE means RINT)" if "RINT" in offered else ""
    yield Finding(
        "round-mode",
        f"{c.names} does not round by {mode} {c.on}",
        Where("attribute", "=rmode"),
        (
            f"modes of this pair {c.on}: {' '.join(offered)}{none}",
            f"write: rmode = #pto<round_mode {offered[0]}>",
        ),
    )


def rmode_ignored(c: Conversion) -> Iterator[Finding]:
    """A mode is written where none has an effect (spec R10, S13)."""
    if c.mode is None or not c.pairs or any(pair.rounds for pair in c.pairs):
        return
    if c.pairs[0].kind == "s13":
        yield Finding(
            "rmode-ignored",
            f"{c.names} is the dequantisation path {c.on}: it rounds to nearest even, not by"
            f" {c.mode}",
            Where("attribute", "=rmode"),
            quiet=c.mode in ("RINT", "NONE"),
        )
        return
    yield Finding(
        "rmode-ignored",
        f"{c.names} rounds nothing, so {c.mode} has no effect",
        Where("attribute", "=rmode"),
        quiet=True,
    )


def ambiguous_none(c: Conversion) -> Iterator[Finding]:
    """NONE on a lossy float to integer conversion on a2a3 (spec R7)."""
    if c.mode != "NONE" or c.arch != "a2a3" or c.pair is None or not c.pair.rounds:
        return
    if is_integer(c.src_name) or not is_integer(c.dst_name):
        return
    yield Finding(
        "ambiguous-none",
        f"NONE on {c.names} means RINT in the reference, TRUNC in the public A2/A3 header",
        Where("attribute", "=rmode"),
        (
            "write the mode that is meant:"
            " rmode = #pto<round_mode RINT> or rmode = #pto<round_mode TRUNC>",
        ),
    )


_KEY_SYNONYMS = {
    "saturate": "satmode",
    "saturation": "satmode",
    "saturation_mode": "satmode",
    "sat": "satmode",
    "round_mode": "rmode",
    "roundmode": "rmode",
    "rounding": "rmode",
    "rnd": "rmode",
    "mode": "rmode",
}
_KNOWN_KEYS = ("rmode", "satmode", "sat_mode")
_STRUCTURAL_KEYS = ("operandSegmentSizes",)


def unknown_attribute(c: Conversion) -> Iterator[Finding]:
    """A key that tcvt does not know; one with a dialect prefix is someone else's."""
    for key in c.op.attributes:
        if "." in key or key in _STRUCTURAL_KEYS:
            continue
        near = _KEY_SYNONYMS.get(key.lower()) or next(
            iter(difflib.get_close_matches(key.lower(), _KNOWN_KEYS, n=1)), None
        )
        notes = (
            (f"did you mean {near!r}? As it is, {_default_effect(c, near)}",)
            if near
            else ("tcvt reads rmode and satmode",)
        )
        yield Finding(
            "unknown-attribute",
            f"tcvt does not know {key!r} and ignores it",
            Where("attribute", key),
            notes,
        )


def _default_effect(c: Conversion, key: str) -> str:
    """What happens without the attribute `key`."""
    if key == "rmode":
        mode = f", {c.pairs[0].natural_mode}" if c.pairs and c.pairs[0].rounds else ""
        return f"it rounds by the pair's default{mode}"
    mode = f", {c.saturation(c.pairs[0])}" if c.pairs and c.pairs[0].has_saturation else ""
    return f"it saturates by the default{mode}"


# Saturation ---------------------------------------------------------------------------------------


def satmode_ignored(c: Conversion) -> Iterator[Finding]:
    """A saturation mode is written where the pair has no choice."""
    if c.satmode is None or not c.pairs or any(pair.has_saturation for pair in c.pairs):
        return
    yield Finding(
        "satmode-ignored",
        f"{c.names} {_no_choice(c)}, so satmode has no effect",
        Where("attribute", "=satmode"),
    )


def _no_choice(c: Conversion) -> str:
    if c.dst_name.startswith("f4") or c.pairs[0].kind == "s13":
        return "always saturates"
    if c.pairs[0].kind == "s12":
        return "always turns a negative into 0"
    if c.src_name == c.dst_name == "f32":
        return "keeps infinities and NaN"
    return "cannot overflow"


def float_saturation(c: Conversion) -> Iterator[Finding]:
    """satmode written on float to float, a2a3: a control register decides there."""
    if c.satmode is None or c.arch != "a2a3" or c.pair is None or not c.pair.has_saturation:
        return
    if is_integer(c.src_name) or is_integer(c.dst_name):
        return
    yield Finding(
        "float-saturation",
        f"on a2a3 the register bit CTRL[48] decides how {c.names} saturates, not satmode",
        Where("attribute", "=satmode"),
    )


def nan_to_zero(c: Conversion) -> Iterator[Finding]:
    """NaN becomes zero: spec S2 with ON, S5, S8 and S9."""
    if not c.pairs or is_integer(c.src_name):
        return
    pair = c.pairs[0]
    saturates = pair.has_saturation and c.saturation(pair) == "ON"
    if is_integer(c.dst_name) or c.dst_name.startswith("f4") or saturates:
        yield Finding("nan-to-zero", f"{c.names} gives 0 for NaN here", Where("dst", "dtype"))


def negative_to_unsigned(c: Conversion) -> Iterator[Finding]:
    """A signed source and an unsigned destination."""
    if c.pairs and c.dst_name.startswith("ui") and not c.src_name.startswith("ui"):
        yield Finding(
            "negative-to-unsigned",
            f"{c.names} does not keep negative values",
            Where("dst", "dtype"),
        )


# Tiles --------------------------------------------------------------------------------------------


def _elements(tile: AnyTile, rows: int | None, cols: int | None) -> tuple[int | None, int | None]:
    """Extents in elements: packed pairs count twice (spec F2)."""
    return rows, None if cols is None else cols * elements_per_column(tile.dtype)


def _extents(pair: tuple[int | None, int | None]) -> str:
    return "x".join("?" if extent is None else str(extent) for extent in pair)


def shape(c: Conversion) -> Iterator[Finding]:
    """Source and destination declare the same extents, in elements."""
    source = _elements(c.src, c.src.rows, c.src.cols)
    destination = _elements(c.dst, c.dst.rows, c.dst.cols)
    if source == destination:
        return
    yield Finding(
        "shape",
        f"the source is {_extents(source)} elements, the destination {_extents(destination)}",
        Where("dst", "shape"),
        tuple(_packed_notes(c)),
    )


def _packed_notes(c: Conversion) -> Iterator[str]:
    for tile in (c.src, c.dst):
        if elements_per_column(tile.dtype) == 2:
            yield (
                f"{type_text(tile.dtype)} counts pairs: {tile.cols} columns hold"
                f" {2 * tile.cols} elements"
            )


def valid_region(c: Conversion) -> Iterator[Finding]:
    """The valid regions agree and lie within their tiles; a dynamic extent matches anything."""
    for role, tile in (("src", c.src), ("dst", c.dst)):
        if _or(tile.valid_rows, 0) > tile.rows or _or(tile.valid_cols, 0) > tile.cols:
            valid = _extents((tile.valid_rows, tile.valid_cols))
            yield Finding(
                "valid-region",
                f"the valid region {valid} is larger than its tile, {tile.rows}x{tile.cols}",
                Where(role, "valid"),
            )
            return
    source = _elements(c.src, c.src.valid_rows, c.src.valid_cols)
    destination = _elements(c.dst, c.dst.valid_rows, c.dst.valid_cols)
    agree = all(a is None or b is None or a == b for a, b in zip(source, destination, strict=True))
    declared_agree = _elements(c.src, c.src.rows, c.src.cols) == _elements(
        c.dst, c.dst.rows, c.dst.cols
    )
    if agree or not declared_agree:  # where the shapes differ, `shape` has said enough
        return
    yield Finding(
        "valid-region",
        f"the source's valid region is {_extents(source)} elements,"
        f" the destination's {_extents(destination)}",
        Where("dst", "valid"),
        tuple(_packed_notes(c)),
    )


def location(c: Conversion) -> Iterator[Finding]:
    """Both tiles live in the unified buffer."""
    for role, tile in (("src", c.src), ("dst", c.dst)):
        if tile.loc != "vec":
            name = "source" if role == "src" else "destination"
            yield Finding(
                "location",
                f"tcvt works on tiles in vec; its {name} is in {tile.loc}",
                Where(role, "loc"),
            )


def row_align(c: Conversion) -> Iterator[Finding]:
    """A row of a row-major tile is a whole number of 32-byte blocks."""
    tiles = (("src", c.src), ("dst", c.dst), ("tmp", c.tmp))
    for role, tile in tiles:
        if tile is None or tile.blayout != "row_major" or tile.slayout != "none_box":
            continue
        column = bits_per_column(tile.dtype)
        bits = tile.cols * column if column else 0
        if bits % (8 * BLOCK_BYTES):
            yield _misaligned_row(c, role, tile, bits, column or 0)


def _misaligned_row(
    c: Conversion, role: str, tile: AnyTile, bits: int, bits_per_element: int
) -> Finding:
    dtype = element_format(tile.dtype) or type_text(tile.dtype)
    size = f"{bits // 8}" if bits % 8 == 0 else f"{bits / 8}"
    fits = -(-bits // (8 * BLOCK_BYTES)) * 8 * BLOCK_BYTES // bits_per_element
    padded = replace(tile.data, cols=fits, valid_cols=fits if role == "tmp" else tile.valid_cols)
    return Finding(
        "row-align",
        f"a row of {tile.cols} {dtype} is {size} bytes, not a multiple of {BLOCK_BYTES}",
        Where(role, "shape"),
        (f"the next column count that fits is {fits}: {type_text(type(tile)(padded))}",),
    )


# Memory -------------------------------------------------------------------------------------------


def capacity(c: Conversion) -> Iterator[Finding]:
    """Each tile fits the unified buffer, at its address where that is constant."""
    if c.arch is not None and c.arch not in TCVT_TARGETS:
        return
    room = max(unified_buffer_bytes(target) for target in c.targets)
    for role, value in (("src", c.op.src), ("dst", c.op.dst), ("tmp", c.op.tmp)):
        if value is None or not isinstance(value.type, TileBufType | TileType):
            continue
        size = tile_bytes(value.type)
        if size is None or value.type.loc != "vec":
            continue
        placed = place(value)
        end = size if placed is None else placed.start + size
        if end > room:
            at = "" if placed is None or size > room else f" at address {placed.start}"
            yield Finding(
                "capacity",
                f"a tile of {size} bytes{at} does not fit the unified buffer, {room} bytes {c.on}",
                Where(role, "shape"),
            )


def overlap(c: Conversion) -> Iterator[Finding]:
    """Tiles at constant addresses do not overwrite what is still to be read."""
    if c.op.dst is None or not (c.src.loc == c.dst.loc == "vec"):
        return
    src, dst = place(c.op.src), place(c.op.dst)
    if src is not None and dst is not None and dst.overwrites(src):
        yield Finding(
            "overlap",
            f"the destination, bytes {dst.text()}, overwrites its source, bytes {src.text()},"
            " before all of it is read",
            Where("dst"),
            (f"the source ends at byte {src.end}",),
        )
    yield from _tmp_overlap(c, src, dst)


def _tmp_overlap(c: Conversion, src: Placement | None, dst: Placement | None) -> Iterator[Finding]:
    tmp = place(c.op.tmp) if c.op.tmp is not None else None
    if tmp is None or c.tmp_needed is None or c.tmp_is_bound:
        return
    used = tmp.first(c.tmp_needed.required)
    for name, other in (("source", src), ("destination", dst)):
        if other is not None and used.meets(other):
            yield Finding(
                "overlap",
                f"the tmp tile, bytes {used.text()}, overlaps the {name}, bytes {other.text()}",
                Where("tmp"),
            )


# Tmp ----------------------------------------------------------------------------------------------


def tmp_tile(c: Conversion) -> Iterator[Finding]:
    """A tmp tile is there where it is needed, is large enough, and lives in vec (spec T)."""
    if c.tmp is None:
        if c.tmp_needed is not None:
            yield _without_tmp(c, c.tmp_needed)
        return
    if c.tmp.loc != "vec":
        yield Finding(
            "tmp-location",
            f"the tmp tile must be in vec; it is in {c.tmp.loc}",
            Where("tmp", "loc"),
        )
    if c.tmp_needed is not None:
        yield from _small_tmp(c, c.tmp, c.tmp_needed)
    elif c.pairs and not _may_use_tmp(c):
        yield Finding("tmp-unused", f"{c.names} does not use a tmp tile {c.on}", Where("tmp"))


def _may_use_tmp(c: Conversion) -> bool:
    """Whether tmp may matter: unknown target, or a size that another error hides."""
    if c.arch not in (None, "a2a3"):
        return False
    return any(pair.pytorch_pair and c.saturation(pair) == "OFF" for pair in c.pairs)


def alloc_line(name: str, size: int) -> str:
    """The statement that allocates a tmp tile of at least `size` bytes, in whole blocks."""
    size = max(BLOCK_BYTES, -(-size // BLOCK_BYTES) * BLOCK_BYTES)
    return f"{name} = pto.alloc_tile : !pto.tile_buf<vec, 1x{size}xi8>"


def _bound_note(c: Conversion) -> list[str]:
    if not c.tmp_is_bound:
        return []
    return ["the valid region is dynamic: this is the size at the declared shape, an upper bound"]


def _without_tmp(c: Conversion, needed: TmpTerms) -> Finding:
    default = [c.saturation_note] if c.satmode is None else []
    id_, message = (
        ("tmp-missing", f"{c.names} without saturation needs a tmp tile of {needed.required} bytes")
        if c.require_tmp
        else (
            "native-overflow",
            f"{c.names} without saturation and without tmp does not give PyTorch's results for"
            " infinities and overflow",
        )
    )
    return Finding(
        id_,
        message,
        Where(),
        (
            *default,
            f"for PyTorch's results, add a tmp operand:\n{alloc_line('%tmp', needed.required)}",
            *_bound_note(c),
            "to clamp instead: satmode = #pto<saturation_mode ON>",
        ),
    )


def _small_tmp(c: Conversion, tmp: AnyTile, needed: TmpTerms) -> Iterator[Finding]:
    provided = tile_bytes(tmp)
    if provided is None or provided >= needed.required:
        return
    rows = _or(c.dst.valid_rows, c.dst.rows)
    cols = _or(c.dst.valid_cols, c.dst.cols)
    may = "may need up to" if c.tmp_is_bound else "needs"
    yield Finding(
        "tmp-small",
        f"the tmp tile has {provided} bytes, {c.names} of {rows}x{cols} {may} {needed.required}",
        Where("tmp", "shape"),
        (*_term_notes(needed), *_larger_tile_notes(c, tmp, needed.required), *_bound_note(c)),
        severity="warning" if c.tmp_is_bound else None,
    )


def _term_notes(needed: TmpTerms) -> list[str]:
    if not needed.head and not needed.tail:
        return []
    terms = f"head {needed.head} and tail {needed.tail} bytes"
    return [f"the larger of {terms} counts; `pto-opt tmp` shows the terms"]


def _larger_tile_notes(c: Conversion, tmp: AnyTile, size: int) -> list[str]:
    larger = grown(tmp, size) if isinstance(tmp, TileBufType) else None
    if larger is None:
        return []
    return [f"large enough: {_value_name(c, 'tmp')} = pto.alloc_tile : {type_text(larger)}"]


RULES: tuple[Callable[[Conversion], Iterator[Finding]], ...] = (
    type_pair,
    round_mode,
    shape,
    valid_region,
    location,
    row_align,
    capacity,
    overlap,
    tmp_tile,
    ambiguous_none,
    unknown_attribute,
    nan_to_zero,
    negative_to_unsigned,
    rmode_ignored,
    satmode_ignored,
    float_saturation,
)
