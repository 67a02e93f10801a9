"""Rules about the saturation mode and about values that are lost (spec S, V)."""

from __future__ import annotations

from collections.abc import Iterator

from pto.passes.rules.tcvt_findings import Conversion, Finding, Where
from pto.targets import product
from pto.targets.grids import is_integer


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
    """satmode written on float to float, on a target where a control register decides."""
    control = product(c.arch).float_saturation_control if c.arch is not None else None
    if c.satmode is None or control is None or c.pair is None or not c.pair.has_saturation:
        return
    if is_integer(c.src_name) or is_integer(c.dst_name):
        return
    yield Finding(
        "float-saturation",
        f"on {c.arch} the register bit {control} decides how {c.names} saturates, not satmode",
        Where("attribute", "=satmode"),
    )


def nan_to_zero(c: Conversion) -> Iterator[Finding]:
    """NaN becomes zero: spec S2 with ON, S5, S8 and S9."""
    if not c.pairs or is_integer(c.src_name):
        return
    pair = c.pairs[0]
    saturates = pair.has_saturation and c.saturation(pair) == "ON"
    always = is_integer(c.dst_name) or c.dst_name.startswith("f4")
    if always or saturates:
        notes = () if always else c.saturation_notes(pair)
        message = f"{c.names} gives 0 for NaN here"
        yield Finding("nan-to-zero", message, Where("dst", "dtype"), notes)


def negative_to_unsigned(c: Conversion) -> Iterator[Finding]:
    """A signed source and an unsigned destination."""
    if c.pairs and c.dst_name.startswith("ui") and not c.src_name.startswith("ui"):
        yield Finding(
            "negative-to-unsigned",
            f"{c.names} does not keep negative values",
            Where("dst", "dtype"),
        )
