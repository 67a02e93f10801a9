"""`double-rounding` is reported iff some value comes out differently, over all chains of two steps.

Both ways are computed with `pto.convert`, on samples that crowd around the values where one of the
formats rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from samples import samples

import pto
from pto.numerics.double_rounding import Rounding, follow
from pto.targets import TCVT_TARGETS, Pair, product_of, table_of

Array = np.ndarray[Any, Any]

SOURCES = ("f32", "f16", "bf16", "i16", "i32", "i64")
LARGEST = {
    "f16": 65504.0,
    "bf16": 3.38e38,
    "f8e4m3fn": 448.0,
    "f8e5m2": 57344.0,
    "hif8": 32768.0,
    "f4e2m1": 6.0,
    "f4e1m2": 1.75,
    "i8": 127,
    "ui8": 255,
    "i16": 32767,
    "ui16": 65535,
    "i32": 2**31 - 1,
    "i64": 2**53,
    "f32": 3.4e38,
}


def convert(x: Array, src: str, dst: str, mode: str | None) -> Array:
    """Saturating, where the pair has the choice."""
    return pto.convert(x, dst, src=src, mode=mode, saturation="ON", arch=None)


def bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


@dataclass(frozen=True)
class Chain:
    first: Pair
    second: Pair

    def __str__(self) -> str:
        return f"{self.first.src}-{self.first.dst}-{self.second.dst}"


def chains() -> list[Chain]:
    """All chains through a float format, on either target, each once."""
    tables = [table_of("TCVT", product_of(arch)) for arch in TCVT_TARGETS]
    rows = [row for table in tables if table is not None for row in table.rows]
    found = {
        (a.src, a.dst, b.dst): Chain(a, b)
        for a in rows
        for b in rows
        if a.src.name in SOURCES and a.dst == b.src and a.src != a.dst and b.src != b.dst
        if not a.dst.is_integer and b.dst.name != "i4"
    }
    return list(found.values())


def reported(chain: Chain, modes: tuple[str, str]) -> bool:
    value, _ = follow(Rounding(chain.first.src, chain.first.dst, modes[0]), None)
    _, found = follow(Rounding(chain.second.src, chain.second.dst, modes[1]), value)
    return found is not None


def modes_of(pair: Pair) -> tuple[str, ...]:
    return tuple(m for m in pair.modes if m != "HYBRID") or ("RINT",)


@pytest.mark.parametrize("chain", chains(), ids=str)
def test_reported_iff_some_value_differs(chain: Chain) -> None:
    src, mid, dst = chain.first.src.name, chain.first.dst.name, chain.second.dst.name
    x = samples(src)
    exact = x.astype(np.float64)
    for mode2 in modes_of(chain.second):
        if (src, mode2) != ("f32", "ODD") and mode2 == "ODD":
            continue  # only f32 rounds to odd, so there is no direct conversion to compare with
        direct = (
            convert(x, src, dst, mode2) if mode2 == "ODD" else convert(exact, "f64", dst, mode2)
        )
        for mode1 in modes_of(chain.first):
            middle = convert(x, src, mid, mode1)
            twice = convert(middle, mid, dst, mode2)
            back = convert(twice, dst, "f64", None)
            at = convert(middle, mid, "f64", None)
            rounds = bool(np.any((back != at) & (np.abs(at) <= LARGEST[dst])))
            differs = bool(np.any(bits(twice) != bits(direct)))
            assert reported(chain, (mode1, mode2)) == (rounds and differs), (mode1, mode2)
