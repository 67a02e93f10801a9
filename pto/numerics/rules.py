"""Which modes and which saturation a pair of formats has under the general rules of spec R and S.

Nothing here knows a target; what a product supports is in `pto.targets`.
"""

from __future__ import annotations

from functools import cache

from pto.numerics.formats import FORMATS, Format
from pto.numerics.kernel import ConversionRule
from pto.numerics.value_sets import lowest_bit

MODES = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "NONE", "HYBRID")
"""Every rounding mode, in the spec's spelling (spec R)."""
FIVE_MODES = MODES[:5]
SATURATIONS = ("ON", "OFF")

#: The pairs that have the PyTorch-compatible path (spec S10).
PYTORCH_PAIRS = frozenset({("f32", "i16"), ("f16", "i16"), ("f16", "i8")})


def parts(src: Format, dst: Format) -> tuple[Format, Format]:
    """The formats that are really converted: those of the parts where both are complex.

    Raises ValueError for a pair that does not exist: complex with real, or one type with itself
    unless that is f32 or c64 (spec R11).
    """
    if src.is_complex != dst.is_complex:
        raise ValueError(f"{src} to {dst}: a complex format converts only to a complex format")
    if src is dst and src.name not in ("f32", "c64"):
        raise ValueError(
            f"{src} to {dst} is no conversion; f32 to f32 and c64 to c64, which round to an "
            "integral value, are the only pairs of one type"
        )
    if src.is_complex:
        return FORMATS[src.part], FORMATS[dst.part]
    return src, dst


@cache
def is_exact(src: Format, dst: Format) -> bool:
    """Whether every finite value of `src` is a value of `dst` (spec R10)."""
    src, dst = parts(src, dst)
    if src is dst or dst.kind in ("tapered", "scale"):
        return False
    if dst.is_integer:
        return src.is_integer and dst.min_int <= src.min_int and src.max_int <= dst.max_int
    if src.is_integer:
        digits = src.bits - (src.kind == "signed")
        return digits <= dst.mantissa_bits + 1 and src.max_int <= dst.max_value
    return (
        src.mantissa_bits <= dst.mantissa_bits
        and lowest_bit(dst) <= lowest_bit(src)
        and src.max_value <= dst.max_value
    )


@cache
def is_dequantisation(src: Format, dst: Format) -> bool:
    """Whether the pair is i32 to f16, which multiplies by a scale and ignores modes (spec S13)."""
    return (src.name, dst.name) == ("i32", "f16")


@cache
def modes(src: Format, dst: Format) -> tuple[str, ...]:
    """The modes that the pair accepts."""
    source, target = parts(src, dst)
    if ignores_mode(src, dst):
        return MODES
    if target.kind == "tapered":  # spec R8, R9
        return ("ROUND", "HYBRID") if source.name in ("f32", "f16") else ("ROUND",)
    if (source.name, target.name) == ("f32", "f16"):  # spec R6
        return (*FIVE_MODES, "ODD", "NONE")
    return (*FIVE_MODES, "NONE")


@cache
def ignores_mode(src: Format, dst: Format) -> bool:
    """Whether any mode may be written and none has an effect (spec R10, S6, S13)."""
    source, target = parts(src, dst)
    return (
        is_exact(src, dst)
        or (source.is_integer and target.is_integer)
        or target.kind == "scale"
        or is_dequantisation(source, target)
    )


@cache
def natural_mode(src: Format, dst: Format) -> str:
    """The mode of a conversion that names none (spec R9)."""
    return "ROUND" if parts(src, dst)[1].kind == "tapered" else "RINT"


@cache
def has_saturation(src: Format, dst: Format) -> bool:
    """Whether ON and OFF can differ (spec S2 to S6, S8 to S13)."""
    source, target = parts(src, dst)
    if target.is_integer:
        return not source.is_integer or (
            not is_exact(source, target) and target.bits <= source.bits
        )
    if source.is_integer or target.is_wide_float or target.nan_code is None:
        return False
    if target.kind == "scale" or (source.kind == "scale" and is_exact(source, target)):
        return False
    return source.has_nan or not is_exact(source, target)


def canonical_mode(mode: str | None) -> str | None:
    """The spelling of this module for a mode as written: `CAST_` and case do not matter.

    Raises ValueError that lists the modes.
    """
    if mode is None:
        return None
    canonical = str(mode).upper().removeprefix("CAST_")
    if canonical not in MODES:
        raise ValueError(f"unknown rounding mode {mode!r}; the modes are {', '.join(MODES)}")
    return canonical


def canonical_saturation(saturation: str | None) -> str | None:
    """ON or OFF for any case. Raises ValueError for anything else."""
    if saturation is None:
        return None
    canonical = str(saturation).upper()
    if canonical not in SATURATIONS:
        raise ValueError(f"saturation is 'ON', 'OFF' or None, not {saturation!r}")
    return canonical


def rule_of(
    src: Format,
    dst: Format,
    mode: str | None,
    saturation: str | None,
    *,
    through_i32: bool = False,
    nan_saturation: str = "zero",
) -> ConversionRule:
    """The kernel's rule for a conversion, or ValueError that lists what the pair offers.

    `saturation` None means ON, and has no effect where the pair has no choice.
    """
    if nan_saturation not in ("zero", "keep"):
        raise ValueError(f"nan_saturation is 'zero' or 'keep', not {nan_saturation!r}")
    offered = modes(src, dst)
    written = canonical_mode(mode)
    if written is not None and written not in offered:
        raise ValueError(f"{src} to {dst} has no mode {written}; it offers {', '.join(offered)}")
    source, target = parts(src, dst)
    natural = natural_mode(src, dst)
    # An f8e8m0 NaN stays one wherever the powers of two are exact (spec S6).
    passes_nan = source.kind == "scale" and is_exact(src, dst)
    off = canonical_saturation(saturation) == "OFF" and has_saturation(src, dst)
    return ConversionRule(
        natural if written in (None, "NONE") or ignores_mode(src, dst) else str(written),
        saturate=not (off or passes_nan),
        keep_nan=nan_saturation == "keep",
        through_i32=through_i32 and (source.name, target.name) in PYTORCH_PAIRS,
    )
