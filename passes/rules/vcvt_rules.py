"""The rules for a register conversion, `pto.vcvt`, against the astype table (spec A1, V)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pto.dialect.types import OpaqueType
from pto.passes.rules.tcvt_findings import Finding, Where
from pto.targets import Pair, astype_pair

VCVT = "pto.vcvt"

MODE_OF_LETTER = {
    "R": "RINT",
    "A": "ROUND",
    "F": "FLOOR",
    "C": "CEIL",
    "Z": "TRUNC",
    "O": "ODD",
    "H": "HYBRID",
}
"""The assembler's `rnd` letters."""
_VREG = re.compile(r"\d+x(.+)")
_FORMATS = {
    "f8E4M3FN": "f8e4m3fn",
    "f8E4M3": "f8e4m3fn",
    "f8E5M2": "f8e5m2",
    "!pto.f8E8M0": "f8e8m0",
    "!pto.hif8": "hif8",
    "!pto.f4E2M1x2": "f4e2m1",
    "!pto.f4E1M2x2": "f4e1m2",
    **{name: name for name in ("f32", "f16", "bf16")},
    **{f"{sign}i{n}": f"i{n}" for sign in ("", "s") for n in (4, 8, 16, 32, 64)},
    **{f"ui{n}": f"ui{n}" for n in (8, 16, 32, 64)},
}


def register_conversion(op: Operation) -> Iterator[Finding]:
    """The mode and the saturation that are written exist for the pair."""
    if not op.operands or not op.results:
        return
    src, dst = _format(op.operands[0].type), _format(op.results[0].type)
    if src is None or dst is None:
        return
    pair = astype_pair(src, dst)
    if pair is None:
        message = f"no register conversion of {src} to {dst}"
        yield Finding("type-pair", message, Where())
        return
    yield from _round_mode(op, pair)
    yield from _saturation(op, pair)


def _format(type_: object) -> str | None:
    if not isinstance(type_, OpaqueType) or type_.name != "pto.vreg":
        return None
    match = _VREG.fullmatch(type_.data)
    return _FORMATS.get(match.group(1).strip()) if match else None


def _string(op: Operation, key: str) -> str | None:
    attr = op.attributes.get(key)
    return attr.data if isinstance(attr, StringAttr) else None


def _round_mode(op: Operation, pair: Pair) -> Iterator[Finding]:
    letter = _string(op, "rnd")
    mode = MODE_OF_LETTER.get(letter or "")
    if mode is None or not pair.rounds or pair.accepts(mode):
        return
    letters = " ".join(k for k, v in MODE_OF_LETTER.items() if v in pair.modes)
    yield Finding(
        "round-mode",
        f"a register conversion of {pair.src} to {pair.dst} does not round by {mode}",
        Where("attribute", "=rnd"),
        (f"modes of this pair: {' '.join(pair.modes)} (rnd = {letters})",),
    )


def _saturation(op: Operation, pair: Pair) -> Iterator[Finding]:
    if _string(op, "sat") is None or pair.has_saturation:
        return
    yield Finding(
        "sat-mode",
        f"a register conversion of {pair.src} to {pair.dst} has no saturation mode",
        Where("attribute", "=sat"),
        ("remove sat",),
    )
