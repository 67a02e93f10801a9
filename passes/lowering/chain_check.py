"""Where a chain of conversions differs from the direct one: an input, found by trying."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics import FORMATS, convert_bits
from pto.numerics.formats import value_of
from pto.targets import lookup

Array = NDArray[Any]

_TRIED = 1 << 16


def inputs(name: str) -> Array:
    """Codes to try: all of a format of up to 16 bits, else those around every power of two, small
    integers with fractions, and random ones; always the same ones."""
    fmt = FORMATS[name]
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 63, _TRIED, np.uint64) << np.uint64(1)
    codes = (random >> np.uint64(64 - fmt.bits)).astype(fmt.code_dtype)
    if fmt.is_integer:
        near = [s * (1 << k) + d for k in range(fmt.bits - 1) for s in (1, -1) for d in (-1, 0, 1)]
        plain = np.array([n & (1 << fmt.bits) - 1 for n in near], np.uint64)
        return np.concatenate([plain.astype(fmt.code_dtype), codes])
    small = np.arange(-4096, 4096) / 8
    values = np.concatenate([small, np.nextafter(small, np.inf, dtype=np.float32)])
    return np.concatenate([values.astype(fmt.carrier).view(fmt.code_dtype), codes])


def convert_in_steps(
    codes: Array, chain: tuple[str, ...], arch: str, mode: str, saturation: str | None
) -> Array:
    """Codes through a chain: the mode and the saturation belong to the last step."""
    for src, dst in pairwise(chain[:-1]):
        codes = convert_bits(codes, src, dst)
    src, dst = chain[-2:]
    pair = lookup(arch, src, dst)
    through_i32 = pair is not None and pair.pytorch_pair and arch == "a5" and saturation == "OFF"
    rounds = pair is None or pair.rounds
    return convert_bits(
        codes, src, dst, mode if rounds else None, saturation, pytorch_path=through_i32
    )


def counterexample(
    chain: tuple[str, ...], arch: str, mode: str, saturation: str | None
) -> str | None:
    """`300 gives 44, not 255`: an input for which the chain is not the direct conversion.

    None where none was found, or where the last step has no such mode.
    """
    pair = lookup(arch, *chain[-2:])
    if pair is not None and pair.rounds and not pair.accepts(mode):
        return None
    src, dst = chain[0], chain[-1]
    codes = inputs(src)
    direct = convert_bits(codes, src, dst, mode, saturation)
    stepwise = convert_in_steps(codes, chain, arch, mode, saturation)
    wrong = np.flatnonzero(direct != stepwise)
    if not wrong.size:
        return None
    at = min(wrong, key=lambda n: _size(int(codes[n]), src))
    return (
        f"{value_of(int(codes[at]), src):.9g} gives {value_of(int(stepwise[at]), dst):g}, "
        f"not {value_of(int(direct[at]), dst):g}"
    )


def _size(code: int, name: str) -> float:
    """Small numbers make better examples, NaN the worst."""
    value = abs(value_of(code, name))
    return value if value == value else float("inf")
