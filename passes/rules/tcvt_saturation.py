"""Rules about the saturation mode and about values that are lost (spec S, V)."""

from __future__ import annotations

from collections.abc import Iterator

from pto.numerics.formats import Format
from pto.passes.rules.checked_conversion import CheckedConversion
from pto.passes.rules.finding import Anchor, Finding, value_of


def satmode_ignored(c: CheckedConversion) -> Iterator[Finding]:
    """A saturation mode is written where the pair has no choice."""
    if c.op.saturation is None or not c.pairs or any(pair.has_saturation for pair in c.pairs):
        return
    message = f"{c.names} {_no_choice(c)}, so satmode has no effect"
    yield Finding("satmode-ignored", message, value_of("satmode"))


def _no_choice(c: CheckedConversion) -> str:
    resolved = c.resolved[0]
    if _always_saturates(resolved.dst) or resolved.is_dequantisation:
        return "always saturates"
    if c.pairs[0].kind == "s12":
        return "always turns a negative into 0"
    if resolved.src is resolved.dst:
        return "keeps infinities and NaN"
    return "cannot overflow"


def _always_saturates(dst: Format) -> bool:
    """Whether a float format has neither infinities nor NaN (spec S5)."""
    return dst.is_float and not dst.has_nan


def float_saturation(c: CheckedConversion) -> Iterator[Finding]:
    """satmode written on float to float, on a target where a control register decides."""
    resolved = c.on_target
    if c.op.saturation is None or resolved is None or c.product is None:
        return
    control = c.product.float_saturation_control
    if control is None or resolved.saturation is None:
        return
    if resolved.src.is_integer or resolved.dst.is_integer:
        return
    yield Finding(
        "float-saturation",
        f"on {c.product} the register bit {control} decides how {c.names} saturates, not satmode",
        value_of("satmode"),
    )


def nan_to_zero(c: CheckedConversion) -> Iterator[Finding]:
    """NaN becomes zero: spec S2 with ON, S5, S8 and S9."""
    if not c.resolved or c.resolved[0].src.is_integer:
        return
    resolved = c.resolved[0]
    always = resolved.dst.is_integer or _always_saturates(resolved.dst)
    if always or resolved.saturation == "ON":
        notes = () if always else c.saturation_notes(resolved)
        yield Finding(
            "nan-to-zero", f"{c.names} gives 0 for NaN here", Anchor("dst", "dtype"), notes
        )


def negative_to_unsigned(c: CheckedConversion) -> Iterator[Finding]:
    """A signed source and an unsigned destination."""
    if c.resolved and c.resolved[0].src.is_signed and c.resolved[0].dst.kind == "unsigned":
        message = f"{c.names} does not keep negative values"
        yield Finding("negative-to-unsigned", message, Anchor("dst", "dtype"))
