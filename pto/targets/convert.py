"""`pto.convert`: conversion of arrays as a product's instructions do it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike, NDArray

from pto.numerics.arrays import as_source, codes_of, output_for
from pto.numerics.formats import Format, format_of
from pto.numerics.rules import canonical_mode, canonical_saturation
from pto.targets.products import DEFAULT_TARGET, product_of
from pto.targets.resolution import ResolvedConversion, resolve, resolve_generally
from pto.targets.tables import INSTRUCTIONS, pair_of, table_of

_ASKED = ("TCVT", "Cast", "astype")
"""The instructions whose tables are asked where none is named."""


def convert(
    x: ArrayLike,
    to: str,
    *,
    src: str | None = None,
    mode: str | None = None,
    saturation: str | None = None,
    arch: str | None = DEFAULT_TARGET,
    instruction: str | None = None,
    tmp: bool = False,
    nan_saturation: str = "zero",
    deq_scale: float = 1.0,
    out: NDArray[Any] | None = None,
    engine: str = "auto",
) -> NDArray[Any]:
    """Converts every element of `x` to the format `to`, as `arch` does.

    The pair and the mode must be in one of the target's tables: TCVT, Cast or astype (spec V).
    What is not given follows the first of them that has the pair: the mode is the pair's natural
    one (spec R9), the saturation its default (spec S14).

    Args:
        x: Array of any shape and layout, of the carrier dtype of its format or of its unsigned
            codes; never changed. See `pto.numerics.convert`.
        to: Name of the destination format (spec F), such as "f8e4m3fn".
        src: Name of the source format; by default that of x's dtype. Needed for hif8, f4e1m2,
            c32 and for codes.
        mode: RINT, ROUND, FLOOR, CEIL, TRUNC, ODD, NONE or HYBRID, with or without `CAST_`.
        saturation: "ON", "OFF", or None for the pair's default. No effect where the pair has no
            choice.
        arch: Target or alias, or None for any pair under the general rules of spec R and S, with
            saturation ON by default.
        instruction: "tcvt", "cast", "astype" or "mulcast": whose table and defaults; None for the
            first of the first three that has the pair and the mode.
        tmp: Whether the instruction has a tmp tile, which on a2a3 selects the PyTorch-compatible
            path of the pairs that have it (spec S10). a5 always follows it.
        nan_saturation: "zero", or "keep" for CTRL[50] = 1 (spec S2).
        deq_scale: Multiplier of i32 to f16 (spec S13).
        out: Array that receives the result, of x's shape; it may be x's own memory.
        engine: "numpy", "jit" or "auto".

    Returns:
        `out`, or a new array of x's shape in the destination's carrier dtype; unsigned codes for
        hif8, f4e1m2 (one per element) and c32.

    Raises:
        ValueError: an unknown format, target, instruction or engine; a pair or mode that the target
            lacks, with what it offers.
    """
    array, source = as_source(x, src)
    target = format_of(to)
    if arch is None:
        resolved = resolve_generally(
            source, target, mode=mode, saturation=saturation, through_i32=tmp
        )
    else:
        resolved = _on_target(arch, source, target, instruction, mode, saturation, bool(tmp))
    result = output_for(array.shape, target, out)
    resolved.convert(
        codes_of(array, source),
        out=codes_of(result, target),
        nan_saturation=nan_saturation,
        deq_scale=deq_scale,
        engine=engine,
    )
    return result


@lru_cache(maxsize=512)
def _on_target(
    arch: str,
    src: Format,
    dst: Format,
    instruction: str | None,
    mode: str | None,
    saturation: str | None,
    tmp: bool,
) -> ResolvedConversion:
    """The conversion by the first instruction that offers it; ValueError if none does."""
    product = product_of(arch)
    written, choice = canonical_mode(mode), canonical_saturation(saturation)
    asked = _ASKED if instruction is None else (_instruction(instruction),)
    found = [
        resolve(src, dst, product, instruction=name, mode=written, saturation=choice, has_tmp=tmp)
        for name in asked
        if pair_of(name, product, src, dst) is not None
    ]
    for resolved in found:
        if resolved.illegal is None:
            return resolved
    if not found:
        listed = [t for name in asked if (t := table_of(name, product)) is not None]
        into = sorted({fmt.name for table in listed for fmt in table.destinations(src)})
        from_there = f"it offers {', '.join(into)}" if into else "it converts nothing"
        by = "" if instruction is None else f" by {asked[0]}"
        raise ValueError(
            f"{product} does not convert {src} to {dst}{by}: from {src} {from_there}; "
            "arch=None allows every pair"
        )
    modes = "; ".join(
        f"{r.instruction} offers {', '.join(r.pair.modes)}" for r in found if r.pair is not None
    )
    raise ValueError(f"{src} to {dst} has no mode {written} on {product}: {modes}")


def _instruction(text: str) -> str:
    for name in INSTRUCTIONS:
        if name.lower() == str(text).lower():
            return name
    names = ", ".join(name.lower() for name in INSTRUCTIONS)
    raise ValueError(f"unknown instruction {text!r}; the instructions are {names}")
