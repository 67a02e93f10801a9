"""`pto.convert`: conversion of arrays as a product's instructions do it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike, NDArray

from pto.numerics.conversion import as_source
from pto.numerics.conversion import convert as convert_between
from pto.numerics.formats import Format, format_of
from pto.numerics.rules import canonical_mode, has_saturation
from pto.targets import Pair, Table, resolve, tables

INSTRUCTIONS = ("TCVT", "Cast", "astype")


def convert(
    x: ArrayLike,
    to: str,
    *,
    src: str | None = None,
    mode: str | None = None,
    saturation: str | None = None,
    arch: str | None = "a5",
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
        saturation: "ON", "OFF", or None for the pair's default.
        arch: Target or alias, or None for any pair under the general rules of spec R and S, with
            saturation ON by default.
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
        ValueError: an unknown format, target or engine; a pair or mode that the target lacks,
            with what it offers; a saturation where the pair has no choice.
    """
    array, source = as_source(x, src)
    target = format_of(to)
    pytorch_path = tmp
    if arch is not None:
        row = _row(arch, source, target, mode)
        mode = row.natural_mode if mode is None and row.rounds else mode
        if saturation is None and has_saturation(source, target):
            # Where the target has no choice nothing overflows, and inf and NaN are kept.
            saturation = row.default_saturation if row.has_saturation else "OFF"
        pytorch_path = row.pytorch_pair and (tmp or resolve(arch) == "a5")
    return convert_between(
        array,
        target,
        src=source,
        mode=mode,
        saturation=saturation,
        pytorch_path=pytorch_path,
        nan_saturation=nan_saturation,
        deq_scale=deq_scale,
        out=out,
        engine=engine,
    )


@lru_cache(maxsize=512)
def _row(arch: str, src: Format, dst: Format, mode: str | None) -> Pair:
    """The first table row that offers the pair and the mode; ValueError if there is none."""
    offered = [table for table in tables(arch) if table.instruction in INSTRUCTIONS]
    found = [(t, row) for t in offered if (row := t.pair(src.name, dst.name))]
    if not found:
        raise ValueError(_no_pair(arch, src, dst, offered))
    written = canonical_mode(mode)
    for _, row in found:
        if row.accepts(written):
            return row
    modes = "; ".join(f"{table.instruction} offers {', '.join(row.modes)}" for table, row in found)
    raise ValueError(f"{src} to {dst} has no mode {written} on {resolve(arch)}: {modes}")


def _no_pair(arch: str, src: Format, dst: Format, offered: list[Table]) -> str:
    into = sorted({row.dst for table in offered for row in table.rows if row.src == src.name})
    from_there = f"it offers {', '.join(into)}" if into else "it converts nothing"
    return (
        f"{resolve(arch)} does not convert {src} to {dst}: from {src} {from_there}; "
        "arch=None allows every pair"
    )
