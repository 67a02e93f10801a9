"""Rules about the element types, the rounding mode and the keys of a conversion (spec R, V)."""

from __future__ import annotations

from collections.abc import Iterator

from pto.numerics.rules import MODES
from pto.passes.rules.checked_conversion import CheckedConversion, format_text
from pto.passes.rules.finding import Anchor, Finding, value_of
from pto.passes.rules.routes import ChainPreview
from pto.spelling import close_match
from pto.targets import table_of


def type_pair(c: CheckedConversion, preview: ChainPreview) -> Iterator[Finding]:
    """The pair is in the target's table."""
    if c.pairs:
        return
    if c.product is not None and table_of("TCVT", c.product) is None:
        yield Finding("type-pair", f"{c.product} has no tcvt")
        return
    who = "no target converts" if c.product is None else f"{c.product} does not convert"
    notes = [*_same_type_note(c), *_partner_notes(c), *preview.notes(c)]
    yield Finding("type-pair", f"{who} {c.names}", Anchor("dst", "dtype"), tuple(notes))


def _same_type_note(c: CheckedConversion) -> list[str]:
    if format_text(c.src) != format_text(c.dst):
        return []
    return ["f32 to f32 (rounding to an integral value) is the only pair of equal types"]


def _partner_notes(c: CheckedConversion) -> list[str]:
    tables = [table for product in c.products if (table := table_of("TCVT", product)) is not None]
    src, dst = format_text(c.src), format_text(c.dst)
    to = dict.fromkeys(row.dst.name for t in tables for row in t.rows if row.src is c.src_format)
    from_ = dict.fromkeys(row.src.name for t in tables for row in t.rows if row.dst is c.dst_format)
    return [
        f"{src} converts to {' '.join(to)} {c.on}"
        if to
        else f"{src} does not convert to anything {c.on}",
        f"{dst} comes from {' '.join(from_)}" if from_ else f"nothing converts to {dst} {c.on}",
    ]


def round_mode(c: CheckedConversion) -> Iterator[Finding]:
    """The pair rounds by the mode written, on one of the targets."""
    mode = c.mode
    if mode is None or not c.pairs or any(pair.accepts(mode) for pair in c.pairs):
        return
    offered = [m for m in MODES if any(m in pair.modes for pair in c.pairs)]
    none = " (NONE means RINT)" if "RINT" in offered else ""
    yield Finding(
        "round-mode",
        f"{c.names} does not round by {mode} {c.on}",
        value_of("rmode"),
        (
            f"modes of this pair {c.on}: {' '.join(offered)}{none}",
            f"write: rmode = #pto<round_mode {offered[0]}>",
        ),
    )


def rmode_ignored(c: CheckedConversion) -> Iterator[Finding]:
    """A mode is written where none has an effect (spec R10, S13)."""
    if c.mode is None or not c.pairs or any(pair.rounds for pair in c.pairs):
        return
    if c.resolved[0].is_dequantisation:
        yield Finding(
            "rmode-ignored",
            f"{c.names} is the dequantisation path {c.on}: it rounds to nearest even, not by"
            f" {c.mode}",
            value_of("rmode"),
            quiet=c.mode in ("RINT", "NONE"),
        )
        return
    yield Finding(
        "rmode-ignored",
        f"{c.names} rounds nothing, so {c.mode} has no effect",
        value_of("rmode"),
        quiet=True,
    )


def ambiguous_none(c: CheckedConversion) -> Iterator[Finding]:
    """NONE on a lossy float to integer conversion, where a header disagrees (spec R7)."""
    resolved = c.on_target
    if c.mode != "NONE" or c.product is None or not c.product.none_may_truncate:
        return
    if resolved is None or resolved.mode is None:
        return
    if resolved.src.is_integer or not resolved.dst.is_integer:
        return
    yield Finding(
        "ambiguous-none",
        f"NONE on {c.names} means RINT in the reference, TRUNC in the public A2/A3 header",
        value_of("rmode"),
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


def unknown_attribute(c: CheckedConversion) -> Iterator[Finding]:
    """A key that tcvt does not know; one with a dialect prefix is someone else's."""
    for key in c.op.attributes:
        if "." in key or key in _STRUCTURAL_KEYS:
            continue
        near = _KEY_SYNONYMS.get(key.lower()) or close_match(key, _KNOWN_KEYS)
        notes = (
            (f"did you mean {near!r}? As it is, {_default_effect(c, near)}",)
            if near
            else ("tcvt reads rmode and satmode",)
        )
        yield Finding(
            "unknown-attribute",
            f"tcvt does not know {key!r} and ignores it",
            Anchor(attribute=key),
            notes,
        )


def _default_effect(c: CheckedConversion, key: str) -> str:
    """What happens without the attribute `key`."""
    resolved = c.resolved[0] if c.resolved else None
    if key == "rmode":
        pair = resolved.pair if resolved and resolved.mode else None
        mode = f", {pair.natural_mode}" if pair else ""
        return f"it rounds by the pair's default{mode}"
    mode = f", {resolved.saturation}" if resolved and resolved.saturation else ""
    return f"it saturates by the default{mode}"
