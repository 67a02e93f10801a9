"""Rules about the element types, the rounding mode and the keys of a conversion (spec R, V)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from pto.dialect.types import TileBufType, elements_per_column, type_text
from pto.passes.rules.tcvt_findings import Conversion, Finding, Where
from pto.targets import ROUND_MODES, Pair, product, tcvt_table
from pto.targets.grids import is_integer
from pto.targets.routes import find_route


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
            else "which may differ from a direct conversion: more than one step rounds or clips"
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
    lines, source, source_type = [], c.value_name("src"), c.src
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
        f" outs({c.value_name('dst')} : {type_text(c.dst)})"
    )
    return lines


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
    """NONE on a lossy float to integer conversion, where a header disagrees (spec R7)."""
    if c.mode != "NONE" or c.arch is None or not product(c.arch).none_may_truncate:
        return
    if c.pair is None or not c.pair.rounds:
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
