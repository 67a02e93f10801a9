"""What the numeric tests share: the pairs, their variants, and inputs that matter."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numeric_reference import INTEGERS, LAYOUTS, WIDTHS, Variant, convert
from numpy.typing import NDArray

from pto.numerics import FORMATS, convert_bits
from pto.numerics.jit_engine import is_available
from pto.targets import tables

Array = NDArray[Any]

ENGINES = [
    "numpy",
    pytest.param("jit", marks=pytest.mark.skipif(not is_available(), reason="no llvmlite")),
]
FIVE = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")
PYTORCH_PAIRS = {("f32", "i16"), ("f16", "i16"), ("f16", "i8")}
TABLE_PAIRS = {(row.src, row.dst) for table in tables() for row in table.rows}
NARROW = [name for name in WIDTHS if WIDTHS[name] <= 16]
WIDE = [name for name in WIDTHS if WIDTHS[name] > 16]


def pairs(sources: list[str]) -> list[Any]:
    """Every pair with one of these sources; those that no product offers are slow tests."""
    return [
        pytest.param(
            src,
            dst,
            marks=() if (src, dst) in TABLE_PAIRS else pytest.mark.slow,
            id=f"{src}-{dst}",
        )
        for src in sources
        for dst in WIDTHS
        if src != dst or src == "f32"
    ]


def modes(src: str, dst: str) -> tuple[str, ...]:
    """The modes that give different results (spec R, S)."""
    if src in INTEGERS and dst in INTEGERS:
        return ("RINT",)
    if dst == "hif8":
        return ("ROUND", "HYBRID") if src in ("f32", "f16") else ("ROUND",)
    if dst == "f8e8m0" or (src, dst) == ("i32", "f16"):
        return ("RINT",)
    return (*FIVE, "ODD") if (src, dst) == ("f32", "f16") else FIVE


def variants(src: str, dst: str) -> list[Variant]:
    """Every distinguishable way to convert the pair."""
    found = []
    for mode in modes(src, dst):
        found += [Variant(mode), Variant(mode, saturate=False)]
        if (src, dst) in PYTORCH_PAIRS:
            found.append(Variant(mode, saturate=False, pytorch=True))
        if dst in ("f8e4m3fn", "f8e5m2"):
            found.append(Variant(mode, keep_nan=True))
    return found


def run(codes: Array, src: str, dst: str, variant: Variant, engine: str) -> Array:
    """The conversion under test."""
    return convert_bits(
        codes,
        src,
        dst,
        variant.mode,
        "ON" if variant.saturate else "OFF",
        pytorch_path=variant.pytorch,
        nan_saturation="keep" if variant.keep_nan else "zero",
        engine=engine,
    )


def check(codes: Array, src: str, dst: str) -> None:
    """Compares both engines with the reference on `codes`, for every variant."""
    ways = variants(src, dst)
    rows = [convert(src, dst, int(code), ways) for code in codes]
    expected = np.array(rows, dtype=FORMATS[dst].code_dtype).T
    for engine in ("numpy", "jit") if is_available() else ("numpy",):
        for way, right in zip(ways, expected, strict=True):
            assert_codes(run(codes, src, dst, way, engine), right, codes, f"{way} {engine}")


def assert_codes(got: Array, expected: Array, codes: Array, what: str) -> None:
    """Fails with the first few inputs that differ."""
    wrong = np.flatnonzero(got != expected)
    shown = [f"{codes[i]:#x}: {got[i]:#x}, not {expected[i]:#x}" for i in wrong[:5]]
    assert not len(wrong), f"{what}: {len(wrong)} of {len(codes)} differ; {'; '.join(shown)}"


def every_code(name: str) -> Array:
    """All codes of a format of 16 bits or fewer."""
    return np.arange(1 << WIDTHS[name], dtype=FORMATS[name].code_dtype)


@cache
def _boundaries(dst: str, per_format: int) -> list[float]:
    """Values where rounding to `dst` may go either way: its values, ties and limits."""
    rng = np.random.default_rng(7)
    if dst in INTEGERS:
        bits = INTEGERS[dst][0]
        whole = [2.0**i + d for i in range(bits + 2) for d in (-2, -1, 0, 1, 2)]
        return [v + f for v in whole for f in (0.0, 0.5)] + [2.0**i for i in range(-30, 0)]
    codes = (
        every_code(dst)
        if WIDTHS[dst] <= 8
        else rng.integers(0, 1 << WIDTHS[dst], per_format, dtype=np.uint64)
    )
    from pto.numerics import decode  # only to aim; what comes out is judged by the reference

    with np.errstate(invalid="ignore", over="ignore"):
        values = decode(codes.astype(FORMATS[dst].code_dtype), dst)
        values = np.unique(np.abs(values[np.isfinite(values)]))
        ties = values[:-1] / 2 + values[1:] / 2
    return [*values.tolist(), *ties.tolist(), *(2 * values[-3:]).tolist()]


def float_samples(src: str, dst: str, *, mantissas: int, random: int) -> Array:
    """Codes of f32 or f64: every exponent with boundary mantissas, the neighbourhood of ties and
    limits of `dst`, and random patterns; both signs."""
    layout = LAYOUTS[src]
    rng = np.random.default_rng(WIDTHS[dst])
    m = layout.mantissa_bits
    ends = {0, 1, 2, (1 << m) - 1, (1 << m) - 2, 1 << (m - 1)}
    ends |= {1 << i for i in rng.integers(0, m, mantissas)}
    ends |= {(1 << m) - (1 << int(i)) for i in rng.integers(0, m, mantissas)}
    ends |= {(1 << int(i)) + d for i in rng.integers(1, m, mantissas) for d in (-1, 1)}
    exponents = np.arange(1 << layout.exponent_bits, dtype=np.uint64) << np.uint64(m)
    grid = (exponents[:, None] + np.array(sorted(ends), dtype=np.uint64)).reshape(-1)
    dtype = np.dtype(f"f{layout.bits // 8}")
    with np.errstate(over="ignore"):
        aimed = np.array(_boundaries(dst, 300)).astype(dtype).view(f"u{dtype.itemsize}")
    near = (aimed.astype(np.int64)[:, None] + np.array([-2, -1, 0, 1, 2])).reshape(-1)
    sign = np.uint64(1 << (layout.bits - 1))
    near = np.abs(near).astype(np.uint64) & (sign - np.uint64(1))
    anything = rng.integers(0, sign, random, dtype=np.uint64)
    magnitudes = np.concatenate([grid, near, anything])
    return np.concatenate([magnitudes, magnitudes | sign]).astype(FORMATS[src].code_dtype)


def integer_samples(src: str, dst: str, *, random: int) -> Array:
    """Codes of a 32-bit or 64-bit integer: around every power of two and every sum of two, around
    the limits of `dst`, and random ones of every length."""
    bits = WIDTHS[src]
    rng = np.random.default_rng(bits)
    powers = [1 << i for i in range(bits)]
    sums = [a + b for a in powers for b in powers if b < a]
    halves = [a + b + c for a, b in pairwise(powers) for c in powers[:-1]]
    near = [v + d for v in [0, *powers, *sums, *halves] for d in (-1, 0, 1)]
    lengths = rng.integers(0, bits, random).astype(np.uint64)
    anything = rng.integers(0, 1 << 64, random, dtype=np.uint64, endpoint=False) >> lengths
    values = [v % (1 << bits) for v in near] + [-v % (1 << bits) for v in near]
    codes = np.array(values, dtype=np.uint64)
    return np.concatenate([codes, anything]).astype(FORMATS[src].code_dtype)
