"""How far a result is from the expected one, in units in the last place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics import Format, decode

Array = NDArray[Any]


@dataclass(frozen=True)
class Mismatch:
    """One element that differs."""

    index: tuple[int, ...]
    actual: float | int
    expected: float | int
    ulps: int | None
    """Representable values between the two; None where just one is NaN."""


@dataclass(frozen=True)
class Comparison:
    """All elements that differ by more than is allowed."""

    count: int
    compared: int
    worst: list[Mismatch]
    largest: int
    """The largest distance of any two elements, mismatch or not."""


def compare(
    actual: Array, expected: Array, fmt: Format, *, tolerance: int = 0, limit: int = 10
) -> Comparison:
    """Compares codes of one format and shape; NaN equals NaN, and zeros of both signs are equal.

    `tolerance` is in ulps; at most `limit` mismatches are listed, NaN against a number first, then
    the most distant.
    """
    distance, one_nan = ulps(actual, expected, fmt)
    wrong = one_nan | (distance > tolerance)
    order = np.flatnonzero(wrong)
    rank = np.where(one_nan.reshape(-1)[order], np.inf, distance.reshape(-1)[order])
    order = order[np.argsort(-rank, kind="stable")][:limit]
    values, wanted = decode(actual, fmt), decode(expected, fmt)
    worst = []
    for flat in order:
        index = tuple(int(i) for i in np.unravel_index(int(flat), actual.shape))
        ulp = None if one_nan[index] else int(distance[index])
        worst.append(Mismatch(index, values[index].item(), wanted[index].item(), ulp))
    largest = int(distance.max(initial=0, where=~one_nan))
    return Comparison(int(wrong.sum()), actual.size, worst, largest)


def ulps(actual: Array, expected: Array, fmt: Format) -> tuple[Array, Array]:
    """The distance of codes in representable values, and where just one of the two is NaN."""
    ranks = _ranks(actual, fmt), _ranks(expected, fmt)
    # Ranks of 64-bit formats differ by more than an int64 holds: take the unsigned difference.
    high, low = np.maximum(*ranks), np.minimum(*ranks)
    distance = high.astype(np.uint64) - low.astype(np.uint64)
    if not fmt.is_float:
        return distance, np.zeros(actual.shape, bool)
    nan = np.isnan(decode(actual, fmt)), np.isnan(decode(expected, fmt))
    distance[nan[0] | nan[1]] = 0
    return distance, nan[0] != nan[1]


def _ranks(codes: Array, fmt: Format) -> Array:
    """Positions of codes in the order of their values; neighbours differ by 1."""
    if fmt.bits <= 8:
        values = np.asarray(decode(np.arange(1 << fmt.bits), fmt), np.float64)
        numbers = np.unique(values[~np.isnan(values)] + 0.0)  # -0.0 and 0.0 are one
        table = np.searchsorted(numbers, values).astype(np.int64)
        found: Array = table[codes]
        return found
    if fmt.is_integer:
        return decode(codes, fmt) if fmt.kind == "signed" else codes.astype(np.uint64)
    magnitude = (codes & fmt.code_dtype.type(fmt.magnitude_mask)).astype(np.int64)
    ranks: Array = np.where(codes >> fmt.code_dtype.type(fmt.bits - 1), -magnitude, magnitude)
    return ranks
